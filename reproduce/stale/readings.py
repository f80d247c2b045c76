"""Readings of the stale-gradient paper's figure 1: stability, curves and end points of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
from theory.exact.delay import average_law, companion, stability_limit
from theory.stale import AverageLaw, mse_step_size

from . import shared as sim
from .law import Sums, followed

PRINTED, SUMS, POSTERIOR = "printed", "batch sums", "posterior, smaller C"


def _algorithm(constant: float, tau: int, length: int) -> fs.StaleSGLD:
    return fs.StaleSGLD(mse_step_size(length, tau, constant), tau)


def _laws(problems: list[fs.GaussianMean], constant: float, tau: int, length: int) -> list[AverageLaw]:
    """One for each data set."""
    algorithm = _algorithm(constant, tau, length)
    h = algorithm.schedule.largest
    sums = Sums.of(h * problems[0].curvature, algorithm.ages(length))
    return [sums.law(one, h) for one in problems]


def compute(p: Any) -> dict[str, pd.DataFrame]:
    """Tables of figure 1."""
    posterior, sums = sim.data_sets(p), sim.data_sets(p, "batch_sum")
    chosen = sim.typical(posterior)
    limits = stability(p, posterior[0], sums[0])
    curves, ends, replicas = [], [], []
    for name, problems, constant in ((PRINTED, posterior, p.constant), (SUMS, sums, p.constant),
                                     (POSTERIOR, posterior, p.smaller_constant)):
        if not limits[limits["reading"] == name]["accepted"].all():
            continue
        for tau in p.ages:
            laws = _laws(problems, constant, tau, p.L0 * tau)
            ends += [{"reading": name, "age": tau, "iteration": p.L0 * tau, "data_set": k,
                      "mse": float(law.mse[-1])} for k, law in enumerate(laws)]
            one, seen = drawn(p, name, problems[chosen], constant, tau, laws[chosen])
            curves += one
            replicas.append(seen)
    table, slopes = growth(p, sums)
    return {"sets": sim.sets_table(posterior), "stability": limits, "printed": printed(p, posterior[chosen]),
            "curves": pd.concat(curves, ignore_index=True).fillna(0.0),  # the exact law has no interval
            "ends": pd.DataFrame(ends), "replicas": pd.DataFrame(replicas),
            "growth": table, "slopes": slopes}


def stability(p: Any, posterior: fs.GaussianMean, sums: fs.GaussianMean) -> pd.DataFrame:
    """h a against the stability limit, and whether fedsim accepts the step size: the same for all data."""
    rows = []
    for name, problem, constant in ((PRINTED, posterior, p.constant), (SUMS, sums, p.constant),
                                    (POSTERIOR, posterior, p.smaller_constant)):
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
        law = average_law(posterior, fs.StaleSGLD(h, tau), seen, start=followed(posterior),
                          allow_unstable=True)
        rows.append(sim.exact_rows(law, law.lengths[law.mse < 1e20], age=tau))
    return pd.concat(rows, ignore_index=True)


def drawn(p: Any, name: str, problem: fs.GaussianMean, constant: float, tau: int,
          law: AverageLaw) -> tuple[list[pd.DataFrame], dict[str, Any]]:
    """Exact errors along the run of one data set and those of replicas; more replicas at the end.

    Replicas are independent from age to age.
    """
    length, algorithm, start = p.L0 * tau, _algorithm(constant, tau, p.L0 * tau), followed(problem)
    lengths, labels = sim.spaced(length, 50), {"reading": name, "age": tau}
    averages = sim.running_averages(problem, algorithm, lengths, p.n_replicas, p.seed + tau, start)
    end = sim.end_row(problem, algorithm, law, p.n_end_replicas, p.seed + 100 + tau, start, **labels)
    return [sim.exact_rows(law, lengths, **labels),
            sim.replica_rows(averages, lengths, law.truth, **labels)], end


def growth(p: Any, sums: list[fs.GaussianMean]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Exact MSE at the end against L0, at age 2, and its slope for each data set."""
    rows = [{"L0": L0, "data_set": k, "mse": float(law.mse[-1])} for L0 in p.L0_grid
            for k, law in enumerate(_laws(sums, p.constant, 2, 2 * L0))]
    table = pd.DataFrame(rows)
    return table, pd.DataFrame([sim.slope_row(one["L0"], one["mse"], -2.0 / 3.0, data_set=k, against="L0")
                                for k, one in sim.groups(table, "data_set")])
