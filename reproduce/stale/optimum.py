"""Exact MSE of stale SGLD with the step size optimised at fixed age and number of iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
from theory.exact.delay import stability_limit
from theory.stale import AverageLaw, mse_step_size, optimal_constant

from ..figure import note
from . import shared as sim
from .law import Sums, followed

PLAIN = fs.Quadratic(np.ones(1), np.zeros((1, 1)))
SUMS, POSTERIOR = "batch sums", "posterior"


def _numbers(problem: Any) -> tuple[float, float, float]:
    """a, mean and gradient variance of the law that is followed."""
    law = followed(problem)
    return 1.0 / float(law.variances[0]), float(law.mean[0]), getattr(problem, "gradient_variance", 0.0)


def guess(problem: Any, tau: int, length: int) -> float:
    """h that balances the leading terms: bias h (tau + 1/2 + S/(2a)) against variance."""
    a, mean, noise = _numbers(problem)
    age = tau + 0.5 + 0.5 * noise / a
    return mse_step_size(length, max(age, 1.0), optimal_constant(a, mean)) * max(1.0, age ** (-2.0 / 3.0))


def law_of(problem: Any, tau: int, length: int, h: float) -> AverageLaw:
    """Exact law from a start that is drawn from the law that is followed."""
    ages = np.minimum(np.arange(length), tau)
    return Sums.of(h * _numbers(problem)[0], ages).law(problem, h)


def _mse(problem: Any, tau: int, length: int, h: float) -> float:
    return float(law_of(problem, tau, length, h).mse[-1])


def best(problem: Any, tau: int, length: int, factor: float = 1.0) -> tuple[float, float]:
    """Best step size and its MSE, within a factor 3 of the guess times `factor`."""
    width = 3.0
    note(f"best step size at tau = {tau}, L = {length}")
    start, limit = factor * guess(problem, tau, length), stability_limit(tau) / _numbers(problem)[0]
    h, mse = sim.best_step(lambda h: _mse(problem, tau, length, h), start, width, limit)
    if abs(np.log(h / start)) > 0.95 * np.log(width):
        raise ValueError(f"width={width:g} must be larger: step size {h:.4g} is at the edge of the search")
    return h, mse


def _by_age(problem: Any, ages: list[int], length: int, **labels: Any) -> list[dict[str, Any]]:
    """Best step size and MSE of one problem for each age; `noise_age` acts like an additional age."""
    a, _, noise = _numbers(problem)
    rows, factor = [], 1.0
    for tau in ages:
        h, mse = best(problem, tau, length, factor)
        factor = h / guess(problem, tau, length)  # the next age's is not far from it
        rows.append({**labels, "age": tau, "iteration": length, "step_size": h, "mse": mse,
                     "noise_age": 0.5 + 0.5 * noise / a})
    return rows


def by_age(p: Any) -> pd.DataFrame:
    """At fixed L against the age, for the target N(0, 1) with exact gradients."""
    return pd.DataFrame(_by_age(PLAIN, p.ages, p.length))


def by_model(p: Any) -> pd.DataFrame:
    """The same for figure 1's model on every data set, in both readings of its minibatches."""
    return pd.DataFrame([
        row for name, scale in ((SUMS, "batch_sum"), (POSTERIOR, "unbiased"))
        for k, problem in enumerate(sim.data_sets(p, scale))
        for row in _by_age(problem, p.model_ages, p.length, model=name, data_set=k)])


def _steps(found: pd.DataFrame) -> list[tuple[int, float]]:
    return [(int(tau), float(h)) for tau, h in zip(found["age"], found["step_size"], strict=True)]


def scan(p: Any, found: pd.DataFrame) -> pd.DataFrame:
    """MSE against the step size for the plain target, around its best."""
    rows = []
    for tau, step in _steps(found):
        steps = step * np.geomspace(1.0 / 6.0, 6.0, p.n_scan) if tau in p.scan_ages else ()
        rows += [{"age": tau, "step_size": float(h), "mse": _mse(PLAIN, tau, p.length, float(h))}
                 for h in steps if h < 0.98 * stability_limit(tau)]
    return pd.DataFrame(rows)


def by_length(p: Any) -> pd.DataFrame:
    """Best step size and MSE at a fixed age against L, for the plain target."""
    rows = []
    for length in p.lengths:
        h, mse = best(PLAIN, p.length_age, length)
        rows.append({"age": p.length_age, "iteration": length, "step_size": h, "mse": mse})
    return pd.DataFrame(rows)


def by_workers(p: Any) -> pd.DataFrame:
    """Best MSE of W workers in turn, age W - 1 and L = W Lbar, for the plain target."""
    rows = []
    for n_workers in p.workers:
        length = n_workers * p.per_worker
        h, mse = best(PLAIN, n_workers - 1, length)
        rows.append({"workers": n_workers, "iteration": length, "step_size": h, "mse": mse,
                     "variance": float(law_of(PLAIN, n_workers - 1, length, h).variance[-1])})
    return pd.DataFrame(rows)


def replicas(p: Any, found: pd.DataFrame) -> pd.DataFrame:
    """Replicas of the plain target at the best step sizes."""
    rows = []
    for tau, h in _steps(found):
        law = law_of(PLAIN, tau, p.length, h)
        rows.append(sim.end_row(PLAIN, fs.StaleSGLD(h, tau), law, p.n_replicas, p.seed + tau,
                                followed(PLAIN), age=tau))
    return pd.DataFrame(rows)


def slopes(ages: pd.DataFrame, lengths: pd.DataFrame) -> pd.DataFrame:
    """Fitted log-log slopes of the plain target with intervals."""
    rows = []
    for against, x, table, theories in (("tau", ages["age"], ages, (2.0, -2.0)),
                                        ("L", lengths["iteration"], lengths, (-2.0, -1.0))):
        rows += [sim.slope_row(x, table[of], theory / 3.0, of=of, against=against)
                 for of, theory in zip(("mse", "step_size"), theories, strict=True)]
    return pd.DataFrame(rows)


def model_slopes(models: pd.DataFrame) -> pd.DataFrame:
    """Those of figure 1's model on every data set, in tau and in tau + 1/2 + S/(2a)."""
    return pd.DataFrame([
        sim.slope_row(x, one[of], theory / 3.0, model=model, data_set=k, of=of, against=against,
                      noise_age=float(one["noise_age"].iloc[0]))
        for (model, k), one in sim.groups(models, ["model", "data_set"])
        for against, x in (("tau", one["age"]), ("tau + noise", one["age"] + one["noise_age"]))
        for of, theory in (("mse", 2.0), ("step_size", -2.0))])
