"""Readings of the stale-gradient paper's figure 1: stability, curves and end points of each."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
from theory.exact.stale import average_law, companion, stability_limit
from theory.stale import mse_step_size

from . import _stale as sim

PRINTED, SUMS, STABLE, LARGE = "printed", "batch sums", "posterior, C = 1/5000", "posterior, C = 1/500"


def _algorithm(constant: float, tau: int, length: int) -> fs.StaleSGLD:
    return fs.StaleSGLD(mse_step_size(length, tau, constant), tau)


def _end_mse(problem: fs.GaussianMean, tau: int, length: int, start: float, constant: float) -> float:
    return float(_law(problem, constant, tau, length, start).mse[-1])


@lru_cache(maxsize=8)
def _law(problem: fs.GaussianMean, constant: float, tau: int, length: int, start: float) -> Any:
    return average_law(problem, _algorithm(constant, tau, length), length, start=[start],
                       truth=sim.followed_truth(problem))


def compute(p: Any) -> dict[str, pd.DataFrame]:
    """Tables of figure 1."""
    posterior = sim.gaussian_model(p.n_data, p.batch_size, p.data_seed)
    sums = sim.gaussian_model(p.n_data, p.batch_size, p.data_seed, "batch_sum")
    curves, ends = [], []
    for name, problem, constant in ((SUMS, sums, p.constant), (STABLE, posterior, p.stable_constant)):
        for tau in p.ages:
            curves += reading(p, name, problem, constant, tau)
            ends.append(end(p, name, problem, constant, tau))
    ends += [end(p, LARGE, posterior, p.large_constant, tau) for tau in p.ages]
    table, slopes = growth(p, sums)
    return {"stability": stability(p, posterior, sums), "printed": printed(p, posterior),
            "curves": pd.concat(curves, ignore_index=True).fillna(0.0),  # the exact law has no interval
            "ends": pd.DataFrame(ends), "far": lower(p, sums), "growth": table, "slopes": slopes,
            "best": best(p, sums)}


def stability(p: Any, posterior: fs.GaussianMean, sums: fs.GaussianMean) -> pd.DataFrame:
    """h a against the stability limit, and whether fedsim accepts the step size."""
    rows = []
    for name, problem, constant in ((PRINTED, posterior, p.constant), (SUMS, sums, p.constant),
                                    (STABLE, posterior, p.stable_constant),
                                    (LARGE, posterior, p.large_constant)):
        for tau in p.ages:
            algorithm = _algorithm(constant, tau, p.L0 * tau)
            a, h = problem.curvature, algorithm.schedule.largest
            try:
                fs.validate(problem, algorithm)
                accepted = True
            except fs.UnstableStepSize:
                accepted = False
            rows.append({"reading": name, "age": tau, "constant": constant, "curvature": a, "step_size": h,
                         "ha": h * a, "limit": stability_limit(tau), "share": h * a / stability_limit(tau),
                         "radius": float(np.abs(np.linalg.eigvals(companion(a, h, tau))).max()),
                         "accepted": accepted})
    return pd.DataFrame(rows)


def printed(p: Any, posterior: fs.GaussianMean) -> pd.DataFrame:
    """Exact MSE of the printed setting, as far as it stays below 1e20."""
    rows = []
    for tau in p.ages:
        length, h = p.L0 * tau, mse_step_size(p.L0 * tau, tau, p.constant)
        growth = float(np.abs(np.linalg.eigvals(companion(posterior.curvature, h, tau))).max())
        seen = int(min(length, np.ceil(40.0 / np.log10(growth) / 4.0) + 4 * tau))
        law = average_law(posterior, fs.StaleSGLD(h, tau), seen, start=[p.start], allow_unstable=True)
        rows.append(sim.exact_rows(law, law.lengths[law.mse < 1e20], age=tau))
    return pd.concat(rows, ignore_index=True)


def reading(p: Any, name: str, problem: fs.GaussianMean, constant: float, tau: int) -> list[pd.DataFrame]:
    """Exact errors along the run, and those of replicas, which are independent from age to age."""
    length, truth = p.L0 * tau, sim.followed_truth(problem)
    law, algorithm = _law(problem, constant, tau, length, p.start), _algorithm(constant, tau, length)
    lengths, labels = sim.spaced(length, 50), {"reading": name, "age": tau}
    averages = sim.running_averages(problem, algorithm, lengths, p.n_replicas, p.seed + tau, [p.start])
    return [sim.exact_rows(law, lengths, **labels), sim.replica_rows(averages, lengths, truth, **labels)]


def end(p: Any, name: str, problem: fs.GaussianMean, constant: float, tau: int) -> dict[str, Any]:
    """Replicas against the exact law at the end."""
    length = p.L0 * tau
    row = sim.end_row(problem, _algorithm(constant, tau, length),
                      _law(problem, constant, tau, length, p.start), p.n_end_replicas, p.seed + 100 + tau,
                      [p.start], reading=name, age=tau)
    return row | {"constant": constant}


def lower(p: Any, sums: fs.GaussianMean) -> pd.DataFrame:
    """Least ratio of the exact curve to the line tau^(2/3) L^(-2/3) through its end."""
    rows = []
    for start in (p.start, p.far_start):
        for tau in p.ages[:3]:
            law = _law(sums, p.constant, tau, p.L0 * tau, start)
            ratio = law.mse / (law.mse[-1] * (law.lengths / law.lengths[-1]) ** (-2.0 / 3.0))
            rows.append({"start": start, "age": tau, "least": float(ratio.min()),
                         "iteration": int(law.lengths[np.argmin(ratio)])})
    return pd.DataFrame(rows)


def growth(p: Any, sums: fs.GaussianMean) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Exact MSE at the end against L0, at age 2."""
    mse = [float(_law(sums, p.constant, 2, 2 * L0, p.start).mse[-1]) for L0 in p.L0_grid]
    table = pd.DataFrame({"L0": p.L0_grid, "age": 2, "mse": mse})
    return table, pd.DataFrame([sim.slope_row(p.L0_grid, mse, -2.0 / 3.0, reading=SUMS, against="L0")])


def best(p: Any, sums: fs.GaussianMean) -> pd.DataFrame:
    """The least exact MSE over C, at the same age and L."""
    rows = []
    for tau in p.best_ages:
        length = p.L0 * tau
        limit = stability_limit(tau) / sums.curvature / mse_step_size(length, tau)
        ends = partial(_end_mse, sums, tau, length, p.start)
        found, mse = sim.best_step(ends, p.constant, limit=limit)
        used = float(_law(sums, p.constant, tau, length, p.start).mse[-1])
        rows.append({"age": tau, "iteration": length, "best_constant": found, "best_mse": mse, "mse": used})
    return pd.DataFrame(rows)
