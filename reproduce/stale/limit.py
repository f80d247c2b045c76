"""Exact stationary variance of stale averages against h a tau, up to the stability limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
from theory.exact.delay import (
    average_law,
    long_run_variance,
    stability_limit,
    stationary_autocovariance,
    stationary_variance,
)

from . import shared as sim
from .law import followed
from .optimum import PLAIN, law_of


def largest_age(ha: float, share: float = 0.97) -> int:
    """The largest age at which h a is at most this share of the stability limit."""
    tau = 0
    while ha <= share * stability_limit(tau + 1):
        tau += 1
    return tau


def ages_of(ha: float, count: int) -> np.ndarray:
    """Ages from 0 to the largest stable one."""
    return np.unique(np.rint(np.linspace(0, largest_age(ha), count)).astype(int))


def variances(p: Any) -> pd.DataFrame:
    """L h Var of the average of theta^2 as L grows, over that without staleness, for a = 1."""
    rows = []
    for mean in p.means:
        for ha in p.steps:
            fresh = long_run_variance(1.0, ha, 0, mean)
            for tau in ages_of(ha, p.n_ages).tolist():
                value = long_run_variance(1.0, ha, tau, mean)
                rows.append({"mean": mean, "ha": ha, "age": tau, "delay": ha * tau, "value": ha * value,
                             "ratio": value / fresh,
                             "spread": stationary_variance(1.0, ha, tau) / stationary_variance(1.0, ha, 0)})
    return pd.DataFrame(rows)


def of_theta(p: Any) -> pd.DataFrame:
    """The same for the average of theta itself: autocovariances, and long runs."""
    ha, rows = p.steps[0], []
    for tau in ages_of(ha, 6).tolist():
        lags = stationary_autocovariance(1.0, ha, tau, 20_000)
        law = average_law(PLAIN, fs.StaleSGLD(ha, tau), p.length, function="identity")
        rows.append({"ha": ha, "age": tau, "value": ha * float(lags[0] + 2.0 * lags[1:].sum()),
                     "finite": ha * p.length * float(law.variance[-1]), "iteration": p.length})
    return pd.DataFrame(rows)


def replicas(p: Any) -> pd.DataFrame:
    """Replicas at one step size against the exact law at the same L."""
    rows = []
    for tau in ages_of(p.simulated_step, p.n_simulated).tolist():
        law = law_of(PLAIN, tau, p.length, p.simulated_step)
        rows.append(sim.end_row(PLAIN, fs.StaleSGLD(p.simulated_step, tau), law, p.n_replicas, p.seed + tau,
                                followed(PLAIN), ha=p.simulated_step, age=tau, delay=p.simulated_step * tau))
    table = pd.DataFrame(rows)
    scale = p.length / long_run_variance(1.0, p.simulated_step, 0)
    for name in ("variance", "replicas_variance", "replicas_variance_low", "replicas_variance_high"):
        table[name.replace("variance", "ratio")] = table[name] * scale
    return table


def speedups(p: Any) -> pd.DataFrame:
    """Iteration speedup W V(0) / V(W - 1) in the long run, with age W - 1."""
    rows = []
    for mean in p.means:
        for ha in p.speedup_steps:
            fresh = long_run_variance(1.0, ha, 0, mean)
            for tau in ages_of(ha, p.n_ages).tolist():
                rows.append({"mean": mean, "ha": ha, "workers": tau + 1,
                             "speedup": (tau + 1) * fresh / long_run_variance(1.0, ha, tau, mean)})
    return pd.DataFrame(rows)


def useful(p: Any) -> pd.DataFrame:
    """The most workers with a given share of the linear speedup, the best number, and the stable one."""
    rows = []
    for mean in p.means:
        for ha in p.useful_steps:
            most = largest_age(ha)
            workers = np.arange(1, most + 2)
            found = np.array([long_run_variance(1.0, ha, tau, mean) for tau in range(most + 1)])
            share = found[0] / found
            best = int(np.argmax(workers * share))
            rows.append({"mean": mean, "ha": ha, "useful": int(workers[share >= p.share].max()),
                         "best": int(workers[best]), "best_speedup": float((workers * share)[best]),
                         "stable": most + 1})
    return pd.DataFrame(rows)


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Fitted exponents of those numbers in h a."""
    return pd.DataFrame([sim.slope_row(one["ha"], one[name], -1.0, mean=mean, of=name, against="ha")
                         for mean, one in sim.groups(table, "mean") for name in ("useful", "best", "stable")])
