"""Computations of FA-LD's figure 1(a): rounds to an accuracy against the number of local steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
import theory

from . import _fa_ld as sim
from .figure import note


def _problem(p: Any, alpha: float, seed: int, spread: float = 0.0) -> fs.Quadratic:
    if spread == 0.0:
        return fs.papers.fa_ld_simulation(alpha, seed, n_clients=p.n_clients, n_data=p.n_data)
    return fs.papers.fa_ld_unequal_curvature(alpha, seed, spread=spread, n_clients=p.n_clients,
                                             n_data=p.n_data)


def _rounds(p: Any, problem: fs.Quadratic, local_steps: int, step: float) -> float:
    algorithm = fs.FALD(step, local_steps, shared_noise=p.shared_noise)
    return sim.rounds_to(problem, algorithm, p.eps, p.start)


def equal(p: Any) -> pd.DataFrame:
    """Exact rounds as printed: medians over data sets with their 5-95% range, and the largest saving."""
    rows = []
    for alpha in p.alphas:
        note(f"exact rounds, alpha={alpha:g}")
        problems = [_problem(p, alpha, seed) for seed in range(p.n_data_sets)]
        table = np.array([[_rounds(p, problem, k, p.step_size) for k in p.local_steps]
                          for problem in problems])
        for k, column in zip(p.local_steps, table.T, strict=True):
            low, high = np.quantile(column, [0.05, 0.95])
            rows.append({"alpha": alpha, "local_steps": k, "rounds": sim.median_with_infinity(column),
                         "low": low, "high": high,
                         "saving": float((table[:, p.local_steps.index(100)] / column).max())})
    return pd.DataFrame(rows)


def lottery(p: Any) -> pd.DataFrame:
    """First passage of the fitted W2 of 300 replicas: one simulated experiment, and many drawn by rounds."""
    rows = []
    for alpha, k in p.simulated:
        problem = _problem(p, alpha, p.data_seed)
        algorithm = fs.FALD(p.step_size, k, shared_noise=p.shared_noise)
        exact = sim.rounds_to(problem, algorithm, p.eps, p.start)
        horizon = int(np.ceil(1.7 * exact + 4))
        note(f"simulating alpha={alpha:g}, K={k}")
        run = fs.simulate(problem, algorithm, n_rounds=horizon, n_replicas=p.n_replicas, seed=p.seed,
                          start=p.start)
        target, every = problem.target(), np.arange(horizon + 1)
        hits = []
        for experiment in range(p.n_experiments):
            draws = theory.exact.sample_rounds(problem, algorithm, horizon, p.n_replicas,
                                               seed=1000 + experiment, start=p.start, record=every)
            mean = draws.mean(axis=0)
            gap = draws - mean
            cov = np.einsum("rni,rnj->nij", gap, gap) / (p.n_replicas - 1)
            hits.append(_first(fs.distance.w2_gaussian(mean, cov, target.mean, target.cov), p.eps))
        ordered = np.sort(hits)
        rows.append({"alpha": alpha, "local_steps": k, "exact": exact, "replicas": _first(run.w2(), p.eps),
                     "low": ordered[int(0.05 * (len(ordered) - 1))],
                     "median": sim.median_with_infinity(ordered),
                     "high": ordered[int(np.ceil(0.95 * (len(ordered) - 1)))]})
    return pd.DataFrame(rows)


def _first(w2: np.ndarray, eps: float) -> float:
    """First round at which the curve is below eps, infinity when it never is."""
    below = np.flatnonzero(w2 <= eps)
    return float(below[0]) if len(below) else np.inf


def unequal(p: Any) -> pd.DataFrame:
    """Exact rounds for clients of unequal curvature at the fixed step size; a median of inf means never."""
    rows = []
    for alpha, spread in p.variants:
        note(f"unequal curvature, alpha={alpha:g}, spread={spread:g}")
        problems = [_problem(p, alpha, seed, spread) for seed in range(p.n_variant_sets)]
        for k in p.local_steps:
            found = np.array([_rounds(p, problem, k, p.step_size) for problem in problems])
            rows.append({"alpha": alpha, "spread": spread, "local_steps": k,
                         "rounds": sim.median_with_infinity(found),
                         "reached": float(np.isfinite(found).mean())})
    return pd.DataFrame(rows)


def tuned(p: Any) -> pd.DataFrame:
    """Exact rounds for clients of unequal curvature with the best step size for every K."""
    rows = []
    for alpha, spread in p.tuned_variants:
        for k in p.tuned_steps:
            note(f"tuning the step size, alpha={alpha:g}, spread={spread:g}, K={k}")
            for seed in range(p.n_tuned_sets):
                best = theory.tuning.best_step_size(_problem(p, alpha, seed, spread), fs.FALD(p.step_size, k),
                                                    p.eps, start=p.start, n_refine=1)
                rows.append({"alpha": alpha, "spread": spread, "local_steps": k, "data_set": seed,
                             "rounds": np.inf if best is None else float(best.n_rounds),
                             "step_size": np.nan if best is None else best.step_size})
    return pd.DataFrame(rows)


def bias(p: Any) -> pd.DataFrame:
    """Stationary W2 against K: of the printed problem, and of the first variant."""
    rows = []
    for alpha, spread in [(max(p.alphas), 0.0), *p.variants]:
        problem = _problem(p, alpha, p.data_seed, spread)
        values = np.linalg.eigvalsh(problem.hessians)
        rule = theory.fa_ld.optimal_local_steps(float(values.max() / values.min()))[0]
        for k in p.local_steps:
            law = theory.stationary_law(problem, fs.FALD(p.step_size, k, shared_noise=p.shared_noise))
            rows.append({"alpha": alpha, "spread": spread, "local_steps": k, "w2": law.w2(problem.target()),
                         "rule": rule})
    return pd.DataFrame(rows)

