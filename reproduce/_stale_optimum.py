"""Exact MSE of stale SGLD with the step size optimised at fixed age and number of iterations."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
from theory.exact.stale import average_law, stability_limit
from theory.stale import AverageLaw, mse_step_size, optimal_constant

from . import _stale as sim
from .figure import note

PLAIN, SUMS, POSTERIOR = "N(0, 1), exact gradients", "figure 1's model, batch sums", "figure 1's model"


def models(p: Any) -> dict[str, Any]:
    """The three problems."""
    return {PLAIN: fs.Quadratic(np.ones(1), np.zeros((1, 1))),
            SUMS: sim.gaussian_model(p.n_data, p.batch_size, p.data_seed, "batch_sum"),
            POSTERIOR: sim.gaussian_model(p.n_data, p.batch_size, p.data_seed)}


def _numbers(problem: Any) -> tuple[float, float, float]:
    """a, mean and gradient variance of the law that is followed."""
    if isinstance(problem, fs.GaussianMean):
        return problem.curvature, problem.pull / problem.curvature, problem.gradient_variance
    return 1.0, 0.0, 0.0


def guess(problem: Any, tau: int, length: int) -> float:
    """h that balances the leading terms: bias h (tau + 1/2 + S/(2a)) against variance."""
    a, mean, noise = _numbers(problem)
    age = tau + 0.5 + 0.5 * noise / a
    return mse_step_size(length, max(age, 1.0), optimal_constant(a, mean)) * max(1.0, age ** (-2.0 / 3.0))


def law_of(problem: Any, tau: int, length: int, h: float) -> AverageLaw:
    """Exact law from a start that is drawn from the law that is followed, whose mean of theta^2 is truth."""
    a, mean, _ = _numbers(problem)
    return average_law(problem, fs.StaleSGLD(h, tau), length, start=fs.Gaussian([mean], [1.0 / a]),
                       truth=mean**2 + 1.0 / a)


def _mse(problem: Any, tau: int, length: int, h: float) -> float:
    return float(law_of(problem, tau, length, h).mse[-1])


def best(problem: Any, tau: int, length: int, factor: float = 1.0) -> tuple[float, float]:
    """Best step size and its MSE, within a factor 3 of the guess times `factor`."""
    width = 3.0
    note(f"best step size at tau = {tau}, L = {length}")
    start, limit = factor * guess(problem, tau, length), stability_limit(tau) / _numbers(problem)[0]
    h, mse = sim.best_step(partial(_mse, problem, tau, length), start, width, limit)
    if abs(np.log(h / start)) > 0.95 * np.log(width):
        raise ValueError(f"width={width:g} must be larger: step size {h:.4g} is at the edge of the search")
    return h, mse


def by_age(p: Any) -> pd.DataFrame:
    """Best step size and MSE at fixed L against the age, for the three models."""
    rows = []
    for name, problem in models(p).items():
        a, _, noise = _numbers(problem)
        factor = 1.0
        for tau in p.ages if name == PLAIN else p.model_ages:
            h, mse = best(problem, tau, p.length, factor)
            factor = h / guess(problem, tau, p.length)  # the next age's is not far from it
            rows.append({"model": name, "age": tau, "iteration": p.length, "step_size": h, "mse": mse,
                         "noise_age": 0.5 + 0.5 * noise / a, "delay": a * tau * h})
    return pd.DataFrame(rows)


def _steps(found: pd.DataFrame) -> list[tuple[int, float]]:
    """Ages and best step sizes of the plain model."""
    one = found[found["model"] == PLAIN]
    return [(int(tau), float(h)) for tau, h in zip(one["age"], one["step_size"], strict=True)]


def scan(p: Any, found: pd.DataFrame) -> pd.DataFrame:
    """MSE against the step size for the plain model, around its best."""
    problem = models(p)[PLAIN]
    rows = []
    for tau, step in _steps(found):
        steps = step * np.geomspace(1.0 / 6.0, 6.0, p.n_scan) if tau in p.scan_ages else ()
        rows += [{"age": tau, "step_size": float(h), "mse": _mse(problem, tau, p.length, float(h))}
                 for h in steps if h < 0.98 * stability_limit(tau)]
    return pd.DataFrame(rows)


def by_length(p: Any) -> pd.DataFrame:
    """Best step size and MSE at a fixed age against L, for the plain model."""
    problem, rows = models(p)[PLAIN], []
    for length in p.lengths:
        h, mse = best(problem, p.length_age, length)
        rows.append({"age": p.length_age, "iteration": length, "step_size": h, "mse": mse})
    return pd.DataFrame(rows)


def by_workers(p: Any) -> pd.DataFrame:
    """Best MSE of W workers in turn, age W - 1 and L = W Lbar, for the plain model."""
    problem, rows = models(p)[PLAIN], []
    for n_workers in p.workers:
        length = n_workers * p.per_worker
        h, mse = best(problem, n_workers - 1, length)
        rows.append({"workers": n_workers, "iteration": length, "step_size": h, "mse": mse,
                     "variance": float(law_of(problem, n_workers - 1, length, h).variance[-1])})
    return pd.DataFrame(rows)


def replicas(p: Any, found: pd.DataFrame) -> pd.DataFrame:
    """Replicas of the plain model at the best step sizes."""
    problem, rows = models(p)[PLAIN], []
    for tau, h in _steps(found):
        law = law_of(problem, tau, p.length, h)
        rows.append(sim.end_row(problem, fs.StaleSGLD(h, tau), law, p.n_replicas, p.seed + tau,
                                fs.Gaussian([0.0], [1.0]), age=tau))
    return pd.DataFrame(rows)


def slopes(ages: pd.DataFrame, lengths: pd.DataFrame) -> pd.DataFrame:
    """Fitted log-log slopes with intervals."""
    rows = []
    for name, one in sim.groups(ages, "model"):
        rows.append(sim.slope_row(one["age"], one["mse"], 2.0 / 3.0, model=name, of="mse", against="tau"))
        rows.append(sim.slope_row(one["age"], one["step_size"], -2.0 / 3.0, model=name, of="step_size",
                                  against="tau"))
        rows.append(sim.slope_row(one["age"] + one["noise_age"], one["mse"], 2.0 / 3.0, model=name, of="mse",
                                  against="tau + 1/2 + S/(2a)"))
    for of, theory in (("mse", -2.0 / 3.0), ("step_size", -1.0 / 3.0)):
        rows.append(sim.slope_row(lengths["iteration"], lengths[of], theory, model=PLAIN, of=of, against="L"))
    return pd.DataFrame(rows)
