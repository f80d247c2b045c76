"""Computations of FA-LD's figure 1(a): rounds to an accuracy against the number of local steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
import theory

from ..figure import note
from . import shared as sim


def _algorithm(p: Any, local_steps: int) -> fs.FALD:
    return fs.FALD(p.step_size, local_steps, shared_noise=p.shared_noise)


def equal(p: Any) -> pd.DataFrame:
    """Exact rounds of the printed set-up on every data set."""
    rows = []
    for alpha in p.alphas:
        note(f"exact rounds, alpha={alpha:g}")
        for number in range(p.n_data_sets):
            problem = sim.problem_of(p, alpha, number)
            rows += [{"alpha": alpha, "data_set": number, "local_steps": k,
                      "rounds": sim.rounds_to(problem, _algorithm(p, k), p.eps, p.start)}
                     for k in p.local_steps]
    return pd.DataFrame(rows)


def heterogeneity(p: Any) -> pd.DataFrame:
    """gamma of section 4.1, the largest client gradient at the minimum, on every data set."""
    algorithm = _algorithm(p, 1)
    return pd.DataFrame([
        {"alpha": alpha, "data_set": number, "quoted": float(sim.QUOTED[alpha]),
         "gamma": theory.constants(sim.problem_of(p, alpha, number), algorithm).need("heterogeneity")}
        for alpha in p.alphas for number in range(p.n_data_sets)])


def repeats(p: Any) -> pd.DataFrame:
    """First passage of the fitted W2 of 300 replicas: one simulated experiment, and many drawn by rounds."""
    rows = []
    for alpha, k in p.simulated:
        problem, algorithm = sim.problem_of(p, alpha), _algorithm(p, k)
        exact = sim.rounds_to(problem, algorithm, p.eps, p.start)
        horizon = int(np.ceil(1.7 * exact + 4))
        note(f"simulating alpha={alpha:g}, K={k}")
        run = fs.simulate(problem, algorithm, n_rounds=horizon, n_replicas=p.n_replicas, seed=p.seed,
                          start=p.start)
        target, every = problem.target(), np.arange(horizon + 1)
        ordered = np.sort([
            _first(sim.fitted_w2(theory.exact.sample_rounds(
                problem, algorithm, horizon, p.n_replicas, seed=p.seed + 1 + experiment, start=p.start,
                record=every), target), p.eps)
            for experiment in range(p.n_experiments)])
        last = len(ordered) - 1
        rows.append({"alpha": alpha, "local_steps": k, "exact": exact, "replicas": _first(run.w2(), p.eps),
                     "low": ordered[int(0.05 * last)], "median": sim.median_with_infinity(ordered),
                     "high": ordered[int(np.ceil(0.95 * last))]})
    return pd.DataFrame(rows)


def _first(w2: np.ndarray, eps: float) -> float:
    """First round at which the curve is below eps, infinity when it never is."""
    below = np.flatnonzero(w2 <= eps)
    return float(below[0]) if len(below) else np.inf


def unequal(p: Any) -> pd.DataFrame:
    """Exact rounds for clients of unequal curvature at the fixed step size, on every data set."""
    rows = []
    for alpha, spread in p.variants:
        note(f"unequal curvature, alpha={alpha:g}, spread={spread:g}")
        for number in range(p.n_data_sets):
            problem = sim.unequal_of(p, alpha, spread, number)
            rows += [{"alpha": alpha, "spread": spread, "data_set": number, "local_steps": k,
                      "rounds": sim.rounds_to(problem, _algorithm(p, k), p.eps, p.start)}
                     for k in p.local_steps]
    return pd.DataFrame(rows)


def tuned(p: Any) -> pd.DataFrame:
    """Exact rounds for clients of unequal curvature with the best step size for every K."""
    rows = []
    for alpha, spread in p.tuned_variants:
        for k in p.tuned_steps:
            note(f"tuning the step size, alpha={alpha:g}, spread={spread:g}, K={k}")
            for number in range(p.n_tuned_sets):
                best = theory.tuning.best_step_size(
                    sim.unequal_of(p, alpha, spread, number), fs.FALD(p.step_size, k), p.eps, start=p.start,
                    n_grid=17, n_refine=1)
                rows.append({"alpha": alpha, "spread": spread, "local_steps": k, "data_set": number,
                             "rounds": np.inf if best is None else float(best.n_rounds)})
    return pd.DataFrame(rows)


def bias(p: Any) -> pd.DataFrame:
    """Stationary W2 at every K of the printed problem, at smallest and largest K of the variants."""
    rows = []
    ends = [min(p.local_steps), max(p.local_steps)]
    for alpha, spread in [(max(p.alphas), 0.0), *p.variants]:
        for number in range(p.n_data_sets):
            problem = sim.unequal_of(p, alpha, spread, number)
            for k in ends if spread else p.local_steps:
                law = theory.stationary_law(problem, _algorithm(p, k))
                rows.append({"alpha": alpha, "spread": spread, "data_set": number, "local_steps": k,
                             "w2": law.w2(problem.target())})
    return pd.DataFrame(rows)


def rule(p: Any) -> pd.DataFrame:
    """The number of local steps that section 4.3.1 derives from the bound."""
    values = np.linalg.eigvalsh(sim.problem_of(p, 0.0).mean_hessian)
    return pd.DataFrame([{"local_steps": theory.fa_ld.optimal_local_steps(float(values[-1] / values[0]))[0]}])
