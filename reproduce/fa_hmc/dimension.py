"""Computations of FA-HMC's figure 2: rounds to an accuracy against the dimension.

Coordinates are independent and alike, so that all but a check follow one of them: W2 in dimension d is
sqrt(d) times its.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
import theory
from theory.rates import fit_affine, fit_root_log, loglog_slope

from ..figure import Tables, note
from . import shared as sim

RULE, BEST = "the paper's rule", "best at each d"


def _algorithm(p: Any, step: float, shared: float | None = None) -> fs.FAHMC:
    return fs.FAHMC(step, p.leapfrog_steps, p.local_steps, p.shared_noise if shared is None else shared)


def _one(p: Any, variance: float = 4.0) -> fs.Quadratic:
    """One coordinate of the experiment."""
    return fs.papers.fa_hmc_gaussian(1, variance=variance, n_clients=p.n_clients)


def rounds(p: Any) -> pd.DataFrame:
    """With the paper's step rule."""
    rows = []
    for name, variance in p.variances.items():
        problem = _one(p, variance)
        for threshold, eps in p.thresholds.items():
            for dim in p.dims:
                step = sim.paper_step(dim, p.step_factor)
                rows.append({"variance": name, "threshold": threshold, "dim": dim, "step_size": step,
                             "rounds": sim.rounds_alike(problem, _algorithm(p, step), eps, dim)})
    return pd.DataFrame(rows)


def best(p: Any) -> pd.DataFrame:
    """With the fewest rounds over step sizes."""
    rows = []
    for threshold, eps in p.thresholds.items():
        for dim in p.best_dims:
            note(f"best step size at d={dim}, {threshold}")
            found = theory.tuning.best_step_size(_one(p), _algorithm(p, 0.01), eps / np.sqrt(dim),
                                                 smallest=1e-4, n_grid=17, n_refine=2)
            if found is None:
                raise ValueError(f"threshold={threshold!r} is not reached by any step size at d={dim}")
            rows.append({"threshold": threshold, "dim": dim, "step_size": found.step_size,
                         "rounds": found.n_rounds, "scaled_step": found.step_size * dim**0.25})
    return pd.DataFrame(rows)


def fits(p: Any, ruled: pd.DataFrame, tuned: pd.DataFrame) -> pd.DataFrame:
    """Of rounds against dimension: log-log slope, n^2 = a d + b, n = a sqrt(d) log(c d)."""
    rows = []
    found = [(*key, RULE, one) for key, one in sim.groups(ruled, ["variance", "threshold"])]
    found += [(next(iter(p.variances)), threshold, BEST, one)
              for threshold, one in sim.groups(tuned, "threshold")]
    for variance, threshold, steps, one in found:
        d, n = one["dim"].to_numpy(float), one["rounds"].to_numpy(float)
        slope, line = loglog_slope(d, n), fit_affine(d, n**2)
        a, log_c, explained = fit_root_log(d, n)
        rows.append({"variance": variance, "threshold": threshold, "steps": steps, "slope": slope.value,
                     "slope_low": slope.low, "slope_high": slope.high, "affine": line.slope,
                     "offset": line.offset, "r_squared": line.r_squared, "root_log": a, "log_c": log_c,
                     "root_log_r_squared": explained})
    return pd.DataFrame(rows)


def replicas(p: Any) -> Tables:
    """Rounds at which the replicas' W2 and its band pass the first threshold; bands around there."""
    threshold, eps = next(iter(p.thresholds.items()))
    problem, rows, bands = _one(p), [], []
    for number, dim in enumerate(p.simulated_dims):
        note(f"simulating d={dim}")
        algorithm = _algorithm(p, sim.paper_step(dim, p.step_factor))
        exact = int(sim.rounds_alike(problem, algorithm, eps, dim))
        last = int(np.ceil((1.0 + p.window) * exact))
        record = np.unique(np.linspace((1.0 - p.window) * exact, last, 60).astype(int))
        run = fs.simulate(problem, algorithm, last, p.n_replicas, seed=p.seed + number, record=record)
        law = theory.exact_law(problem, algorithm, last, record=record)
        kept = np.searchsorted(run.rounds, record)
        scale, (deviation, compared) = np.sqrt(dim), sim.deviation(run, law)
        w2, exact_w2 = scale * run.w2()[kept], scale * law.w2()[kept]
        low, high = scale * run.w2_interval(0.95)[kept].T
        rows.append({"threshold": threshold, "dim": dim, "exact": exact, "rounds": _first(record, w2, eps),
                     "low": _first(record, low, eps), "high": _first(record, high, eps),
                     "floor": scale * run.w2_floor()[kept][0],
                     "deviation": deviation, "compared": compared})
        bands.append(pd.DataFrame({"dim": dim, "round": record, "w2": w2, "low": low, "high": high,
                                   "exact": exact_w2}))
    return {"replicas": pd.DataFrame(rows), "band": pd.concat(bands)}


def _first(rounds: np.ndarray, w2: np.ndarray, eps: float) -> float:
    """Where the curve first passes below eps, by interpolation between recorded rounds."""
    below = np.flatnonzero(w2 <= eps)
    if not len(below):
        return np.inf
    i = int(below[0])
    if i == 0:
        return float(rounds[0])
    share = (w2[i - 1] - eps) / (w2[i - 1] - w2[i])
    return float(rounds[i - 1] + share * (rounds[i] - rounds[i - 1]))


def fixed(p: Any) -> pd.DataFrame:
    """One step size for all dimensions: rounds and stationary W2."""
    eps = next(iter(p.thresholds.values()))
    problem, step = _one(p), sim.paper_step(p.fixed_dim, p.step_factor)
    algorithm = _algorithm(p, step)
    bias = theory.stationary_law(problem, algorithm).w2(problem.target())
    return pd.DataFrame([{"dim": dim, "step_size": step, "stationary_w2": bias * np.sqrt(dim),
                          "rounds": sim.rounds_alike(problem, algorithm, eps, dim)} for dim in p.fixed_grid])


def checks(p: Any) -> pd.DataFrame:
    """All coordinates at once against one of them, and other levels of shared noise, at fixed_dim."""
    eps, dim = next(iter(p.thresholds.values())), p.fixed_dim
    step = sim.paper_step(dim, p.step_factor)
    whole = fs.papers.fa_hmc_gaussian(dim, n_clients=p.n_clients)
    return pd.DataFrame([{"shared_noise": shared, "dim": dim,
                          "rounds": sim.rounds_to(whole, _algorithm(p, step, shared), eps),
                          "rounds_from_one": sim.rounds_alike(_one(p), _algorithm(p, step, shared), eps, dim)}
                         for shared in p.shared_check])


def posterior(p: Any) -> pd.DataFrame:
    """Mean and variance of a coordinate of the overall posterior, by the second group's variance."""
    targets = [(variance, _one(p, variance).target()) for variance in p.variances.values()]
    return pd.DataFrame([{"variance": variance, "mean": float(target.mean[0]),
                          "spread": float(target.variances[0])} for variance, target in targets])
