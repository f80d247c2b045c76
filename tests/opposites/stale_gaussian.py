"""Opposites of the stale-gradient figures on the Gaussian model."""

import numpy as np
import pandas as pd

from reproduce.stale.fig1 import POSTERIOR, PRINTED, SUMS
from reproduce.verdicts import DOES_NOT_HOLD, FAIL, HOLDS, MISPRINT, NOT_TESTABLE, OPEN, PASS


def _with(table, column, value, where=None):
    """Change: `value` (or a function of the rows) in a column, for the rows for which `where` holds."""
    def change(tables):
        one = tables[table]
        rows = np.ones(len(one), dtype=bool) if where is None else where(one).to_numpy()
        new = value(one[rows]) if callable(value) else value
        tables[table] = one.assign(**{column: one[column].astype(float)})
        tables[table].loc[rows, column] = new
        return tables
    return change


def _one_set(change):
    """The same change on data set 0 alone, so that data sets disagree."""
    def changed(tables):
        altered = change({name: table.copy() for name, table in tables.items()})
        for name, table in tables.items():
            if "data_set" in table and len(altered[name]) == len(table):
                mine = table["data_set"] == 0
                tables[name] = pd.concat([altered[name][mine], table[~mine]]).sort_index()
        return tables
    return changed


def _stable_as_printed(tables):
    """The printed setting is stable, and its end points are those of the batch sums."""
    tables["stability"] = tables["stability"].assign(accepted=True)
    sums = tables["ends"][tables["ends"]["reading"] == SUMS]
    tables["ends"] = pd.concat([tables["ends"], sums.assign(reading=PRINTED)], ignore_index=True)
    return tables


UNEQUAL = _with("ends", "mse", lambda one: one["age"] * 1.0, lambda one: one["reading"] == SUMS)
FLAT = _with("ends", "mse", 1.0, lambda one: one["reading"] == POSTERIOR)
STEEP = _with("slopes", "slope", -1.0)
SCORES = [(DOES_NOT_HOLD, _with("replicas", "z_mean", 9.0))]


def _variances(power, where=None):
    """Variances that fall with this power of W, all else equal."""
    return _with("judged", "variance", lambda one: one["workers"].astype(float) ** -power, where)


def _last_step(one):
    return one["ha"] == one["ha"].max()


def _speedup(value, where=None, table="speedups"):
    """Iteration speedups that are this function of W, with the iterations that belong to them."""
    def change(tables):
        tables = _with(table, "iteration_speedup", lambda one: value(one["workers"]), where)(tables)
        return _with(table, "iteration", lambda one: 600.0 * one["workers"] / one["iteration_speedup"],
                     where)(tables)
    return change


def _time_shares(costly):
    """Time speedups equal to iteration speedups, times `costly` at the largest cost of updates."""
    def change(tables):
        one = tables["times"]
        share = np.where(one["update_cost"] == one["update_cost"].max(), costly, 1.0)
        tables["times"] = one.assign(time_speedup=one["iteration_speedup"] * share)
        return tables
    return change


def _slope(of, value):
    return _with("slopes", "slope", value, lambda one: one["of"] == of)


def _model_slopes(against, mse, noise=None):
    """Slopes of the best MSE, and minus them of the best step; with another noise age, where given."""
    def change(tables):
        tables = _with("model_slopes", "slope", lambda one: np.where(one["of"] == "mse", mse, -mse),
                       lambda one: one["against"] == against)(tables)
        return tables if noise is None else _with("model_slopes", "noise_age", noise)(tables)
    return change


OPPOSITES = {
    ("stale_fig1", "same_mse"): [(PASS, _stable_as_printed), (FAIL, UNEQUAL),
                                 (NOT_TESTABLE, _one_set(UNEQUAL)), (MISPRINT, FLAT)],
    ("stale_fig1", "L0_exponent"): [(FAIL, STEEP), (NOT_TESTABLE, _one_set(STEEP))],
    ("stale_fig1", "posterior_noise"): [(DOES_NOT_HOLD, FLAT), (OPEN, _one_set(FLAT))],
    ("stale_fig1", "replicas"): SCORES,
    ("stale_fig2a", "faster"): [(DOES_NOT_HOLD, _variances(-1.0)), (OPEN, _one_set(_variances(-1.0)))],
    ("stale_fig2a", "faster_large"): [(HOLDS, _variances(1.0, _last_step)),
                                      (DOES_NOT_HOLD, _variances(-1.0, _last_step))],
    ("stale_fig2a", "one_constant"): [(HOLDS, _with("ratios", "ratio", 1.0)),
                                      (DOES_NOT_HOLD, _with("ratios", "ratio", 5.0))],
    ("stale_fig2a", "replicas"): SCORES,
    ("stale_fig2b", "replicas"): SCORES,
    ("stale_fig2b", "faster"): [(DOES_NOT_HOLD, _variances(-1.0)), (OPEN, _one_set(_variances(-1.0)))],
    ("stale_fig2b", "saturation"): [(DOES_NOT_HOLD, _with("workers", "throughput", 1.0)),
                                    (OPEN, _one_set(_with("workers", "throughput", 1.0)))],
    ("stale_fig2c", "linear"): [(DOES_NOT_HOLD, _speedup(np.sqrt)), (OPEN, _one_set(_speedup(np.sqrt)))],
    ("stale_fig2c", "linear_large"): [(HOLDS, _speedup(lambda n: n, _last_step)),
                                      (DOES_NOT_HOLD, _speedup(np.sqrt, _last_step))],
    ("stale_fig2c", "declared_latency"): [(DOES_NOT_HOLD, _time_shares(1.0)),
                                          (OPEN, _one_set(_time_shares(1.0))), (HOLDS, _time_shares(0.5))],
    ("stale_fig2c", "workers_ratio"): [(PASS, _speedup(lambda n: 1.0 / n)), (MISPRINT, _speedup(lambda n: n)),
                                       (NOT_TESTABLE, _speedup(np.sqrt))],
    ("stale_fig2c", "replicas"): SCORES,
    ("stale_optimal_step", "optimal_mse"): [(FAIL, _with("bound", "mse", lambda one: one["age"] ** 0.5))],
    ("stale_optimal_step", "optimal_step"): [(FAIL, _with("bound", "step_size", 1.0))],
    ("stale_optimal_step", "exact_mse"): [(DOES_NOT_HOLD, _slope("mse", 0.2))],
    ("stale_optimal_step", "exact_step_size"): [(DOES_NOT_HOLD, _slope("step_size", 0.0))],
    ("stale_optimal_step", "no_speedup"): [(FAIL, _with("shared", "mse", lambda one: 1.0 / one["workers"]))],
    ("stale_optimal_step", "in_figure_1"): [
        (DOES_NOT_HOLD, _with("models", "mse", lambda one: one["age"] ** 0.1)),
        (DOES_NOT_HOLD, _with("models", "step_size", lambda one: one["age"] ** -1.0))],
    ("stale_optimal_step", "noise_age"): [(DOES_NOT_HOLD, _model_slopes("tau + noise", 1.0)),
                                          (OPEN, _one_set(_model_slopes("tau + noise", 1.0)))],
    ("stale_optimal_step", "exact_workers"): [
        (DOES_NOT_HOLD, _with("workers", "mse", lambda one: one["workers"].astype(float) ** (-2.0 / 3.0)))],
    ("stale_optimal_step", "replicas"): SCORES,
    ("stale_speedup_limit", "always_achievable"): [(NOT_TESTABLE, _with("useful", "useful", 2.0))],
    ("stale_speedup_limit", "grows"): [(DOES_NOT_HOLD, _with("variances", "ratio", 1.0))],
    ("stale_speedup_limit", "small_delay"): [(DOES_NOT_HOLD, _with("variances", "ratio", 2.0))],
    ("stale_speedup_limit", "useful_workers"): [(DOES_NOT_HOLD, _with("slopes", "slope", -0.5))],
    ("stale_speedup_limit", "linear_functions"): [
        (DOES_NOT_HOLD, _with("theta", "value", lambda one: 1.0 + one["age"]))],
    ("stale_speedup_limit", "replicas"): SCORES,
}
