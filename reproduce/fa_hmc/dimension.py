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
from ..statistics import deviation, rounds_to
from ..tables import groups
from ..tabulate import tabulate
from .shared import crossing

RULE, BEST = "the paper's rule", "best at each d"


def tables_of(p: Any) -> Tables:
    """Tables: rounds, fits, replicas, band, best, fixed, checks, posterior."""
    ruled = tabulate("rounds", _ruled, p, {"variance": p.variances, "threshold": p.thresholds, "dim": p.dims})
    tuned = tabulate("best step size", _best, p, {"threshold": p.thresholds, "dim": p.best_dims})
    posteriors = tabulate("posterior", _posterior, p, {"variance": p.variances.values()})
    return {"rounds": ruled, "fits": _fits(p, ruled, tuned), **_replicas(p), "best": tuned,
            "fixed": tabulate("one step size", _fixed, p, {"dim": p.fixed_grid}),
            "checks": tabulate("checks", _check, p, {"shared_noise": p.shared_check}),
            "posterior": posteriors}


def _algorithm(p: Any, dim: int, shared: float | None = None) -> fs.FAHMC:
    """With the paper's step rule, eta = 0.02 / d^(1/4)."""
    return fs.FAHMC(float(p.step_factor / dim**0.25), p.leapfrog_steps, p.local_steps,
                    p.shared_noise if shared is None else shared)


def _one(p: Any, variance: float = 4.0) -> fs.Quadratic:
    """One coordinate of the experiment."""
    return fs.papers.fa_hmc_gaussian(1, variance=variance, n_clients=p.n_clients)


def _rounds(one: fs.Quadratic, algorithm: fs.FAHMC, eps: float, dim: int) -> float:
    """Exact rounds to W2 <= eps for `dim` independent coordinates like that of `one`."""
    return rounds_to(one, algorithm, eps / float(np.sqrt(dim)))


def _ruled(p: Any, variance: str, threshold: str, dim: int) -> dict[str, float]:
    algorithm = _algorithm(p, dim)
    return {"step_size": algorithm.schedule.largest,
            "rounds": _rounds(_one(p, p.variances[variance]), algorithm, p.thresholds[threshold], dim)}


def _best(p: Any, threshold: str, dim: int) -> dict[str, float]:
    """With the fewest rounds over step sizes."""
    best = theory.tuning.best_step_size(_one(p), _algorithm(p, dim), p.thresholds[threshold] / np.sqrt(dim),
                                        smallest=1e-4, n_grid=17, n_refine=2)
    if best is None:
        raise ValueError(f"threshold={threshold!r} is not reached by any step size at d={dim}")
    return {"step_size": best.step_size, "rounds": best.n_rounds, "scaled_step": best.step_size * dim**0.25}


def _fits(p: Any, ruled: pd.DataFrame, tuned: pd.DataFrame) -> pd.DataFrame:
    """Of rounds against dimension: log-log slope, n^2 = a d + b, n = a sqrt(d) log(c d)."""
    own = tuned.assign(variance=next(iter(p.variances)))
    rows = []
    for steps, table in ((RULE, ruled), (BEST, own)):
        for (variance, threshold), one in groups(table, ["variance", "threshold"]):
            d, n = one["dim"].to_numpy(float), one["rounds"].to_numpy(float)
            slope, line = loglog_slope(d, n), fit_affine(d, n**2)
            a, log_c, explained = fit_root_log(d, n)
            rows.append({"variance": variance, "threshold": threshold, "steps": steps, "slope": slope.value,
                         "slope_low": slope.low, "slope_high": slope.high, "affine": line.slope,
                         "offset": line.offset, "r_squared": line.r_squared, "root_log": a, "log_c": log_c,
                         "root_log_r_squared": explained})
    return pd.DataFrame(rows)


def _replicas(p: Any) -> Tables:
    """Rounds at which the replicas' W2 and its band pass the first threshold; bands around there."""
    threshold, eps = next(iter(p.thresholds.items()))
    problem, rows, bands = _one(p), [], []
    for number, dim in enumerate(p.simulated_dims):
        note(f"simulating d={dim}")
        algorithm, scale = _algorithm(p, dim), np.sqrt(dim)
        exact = int(_rounds(problem, algorithm, eps, dim))
        last = int(np.ceil((1.0 + p.window) * exact))
        record = np.unique(np.linspace((1.0 - p.window) * exact, last, 60).astype(int))
        run = fs.simulate(problem, algorithm, last, p.n_replicas, seed=p.seed + number, record=record)
        law = theory.exact_law(problem, algorithm, last, record=record)
        late = np.searchsorted(run.rounds, record)
        low, high = scale * run.w2_interval(0.95)[late].T
        band = pd.DataFrame({"dim": dim, "round": record, "w2": scale * run.w2()[late], "low": low,
                             "high": high, "exact": scale * law.w2()[late]})
        worst, compared = deviation(run, law)
        rows.append({"threshold": threshold, "dim": dim, "exact": exact,
                     **{name: crossing(record, band[column].to_numpy(), eps)
                        for name, column in (("rounds", "w2"), ("low", "low"), ("high", "high"))},
                     "floor": scale * run.w2_floor()[late][0], "deviation": worst, "compared": compared})
        bands.append(band)
    return {"replicas": pd.DataFrame(rows), "band": pd.concat(bands)}


def _fixed(p: Any, dim: int) -> dict[str, float]:
    """One step size for all dimensions: rounds and stationary W2."""
    problem, algorithm = _one(p), _algorithm(p, p.fixed_dim)
    bias = theory.stationary_law(problem, algorithm).w2(problem.target())
    return {"step_size": algorithm.schedule.largest, "stationary_w2": bias * np.sqrt(dim),
            "rounds": _rounds(problem, algorithm, next(iter(p.thresholds.values())), dim)}


def _check(p: Any, shared_noise: float) -> dict[str, float]:
    """All coordinates at once against one of them, at fixed_dim."""
    eps, dim = next(iter(p.thresholds.values())), p.fixed_dim
    whole, algorithm = fs.papers.fa_hmc_gaussian(dim, n_clients=p.n_clients), _algorithm(p, dim, shared_noise)
    return {"dim": dim, "rounds": rounds_to(whole, algorithm, eps),
            "rounds_from_one": _rounds(_one(p), algorithm, eps, dim)}


def _posterior(p: Any, variance: float) -> dict[str, float]:
    """Mean and variance of a coordinate of the overall posterior."""
    target = _one(p, variance).target()
    return {"mean": float(target.mean[0]), "spread": float(target.variances[0])}
