"""Opposites for the figures of FA-HMC."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from reproduce.claims import Tables
from reproduce.fa_hmc.shared import READINGS
from reproduce.verdicts import DOES_NOT_HOLD, ECHOED, FAIL, HOLDS, NOT_TESTABLE, PASS

Where = Callable[[pd.DataFrame], pd.Series]


def scaled(name: str, columns: str | list[str], factor: float, where: Where | None = None):
    """Multiply numbers of the rows where `where` holds."""
    def change(tables: Tables) -> Tables:
        table = tables[name]
        chosen = slice(None) if where is None else where(table).to_numpy()
        for column in [columns] if isinstance(columns, str) else columns:
            table[column] = table[column].astype(float)
            table.loc[chosen, column] *= factor
        return tables
    return change


def written(name: str, column: str, value: float, where: Where | None = None):
    """Put a number into the rows where `where` holds."""
    def change(tables: Tables) -> Tables:
        table = tables[name]
        table[column] = table[column].astype(float)
        table.loc[slice(None) if where is None else where(table).to_numpy(), column] = value
        return tables
    return change


def copied(name: str, columns: dict[str, str], where: Where | None = None):
    """Put columns in the place of others."""
    def change(tables: Tables) -> Tables:
        table = tables[name]
        chosen = slice(None) if where is None else where(table).to_numpy()
        for column, source in columns.items():
            table.loc[chosen, column] = table.loc[chosen, source]
        return tables
    return change


def _of(algorithm: str, smallest: bool = False) -> Where:
    return lambda long: ((long["algorithm"] == algorithm)
                         & ((long["step_size"] == long["step_size"].min()) if smallest else True))


def _with(**wanted: object) -> Where:
    """Rows that have the values wanted."""
    return lambda table: (table[list(wanted)] == pd.Series(wanted)).all(axis=1)


def _last(column: str, **wanted: float) -> Where:
    """Rows at the largest value of a column that have the values wanted."""
    def chosen(table: pd.DataFrame) -> pd.Series:
        found = table[column] == table[column].max()
        for key, value in wanted.items():
            found &= table[key] == value
        return found
    return chosen


HMC, LD = "FA-HMC", "FA-LD"
FOLLOWS = (DOES_NOT_HOLD, written("replicas", "deviation", 9.0))
CURVES_FOLLOW = (DOES_NOT_HOLD, written("curves", "deviation", 9.0))
OPPOSITES = {}
for _figure in ("fa_hmc_fig1a", "fa_hmc_fig1b", "fa_hmc_fig1d"):
    _good, _poor = (scaled("long", "error", factor, _of(HMC, True)) for factor in (1e-4, 1e4))
    OPPOSITES |= {(_figure, "small"): [(ECHOED, _good), (NOT_TESTABLE, _poor)],
                  (_figure, "surrogate"): [(DOES_NOT_HOLD, scaled("short", "error", 10.0))]}
    for _reading in "35":
        OPPOSITES |= {
            (_figure, f"small_steps_{_reading}"): [(HOLDS, _good), (DOES_NOT_HOLD, _poor)],
            (_figure, f"least_error_{_reading}"): [
                (HOLDS, scaled("long", "error", 0.01, _of(HMC))),
                (DOES_NOT_HOLD, scaled("long", "error", 100.0, _of(HMC)))],
            (_figure, f"wide_range_{_reading}"): [(HOLDS, written("long", "error", 1.0, _of(HMC))),
                                                  (DOES_NOT_HOLD, written("long", "error", 1.0, _of(LD)))]}
_gap = scaled("long", "error", 1e4, _of(LD, True))
_own = {"reading": "section 5"}
OPPOSITES |= {
    ("fa_hmc_fig1d", "gap"): [(ECHOED, _gap)],
    **{("fa_hmc_fig1d", f"gap_at_small_steps_{reading}"): [(HOLDS, _gap)] for reading in "35"},
    ("fa_hmc_fig1d", "surrogate"): [(HOLDS, copied("short", {"error": "surrogate"}))],
    ("fa_hmc_fig1c", "optimum"): [(ECHOED, written("rounds", "rounds", 0.5, _with(local_steps=70, **_own)))],
    ("fa_hmc_fig1c", "accuracy"): [(NOT_TESTABLE, written("rounds", "rounds", 0.5, _with(local_steps=100)))],
    ("fa_hmc_fig1c", "factor"): [(ECHOED, written("rounds", "rounds", 1.0, _with(local_steps=10, **_own)))],
    **{("fa_hmc_fig1c", f"inner_optimum_{reading[-1]}"): [
        (HOLDS, written("rounds", "rounds", 0.5, _with(local_steps=10, reading=reading))),
        (DOES_NOT_HOLD, written("rounds", "rounds", 0.5, _with(local_steps=100, reading=reading)))]
       for reading in READINGS},
    **{("fa_hmc_fig1c", f"tenfold_{reading[-1]}"): [
        (HOLDS, written("rounds", "rounds", 0.5, _with(local_steps=10, reading=reading))),
        (DOES_NOT_HOLD, written("rounds", "rounds", 0.5, _with(local_steps=1, reading=reading)))]
       for reading in READINGS},
    ("fa_hmc_fig1c", "surrogate"): [(DOES_NOT_HOLD, scaled("short", "error", 10.0))],
    ("fa_hmc_fig2", "proportional"): [(FAIL, written("fits", "slope", 0.9))],
    ("fa_hmc_fig2", "aligned"): [(FAIL, written("fits", "root_log_r_squared", 0.9))],
    ("fa_hmc_fig2", "posterior"): [
        (PASS, lambda tables: tables | {"posterior": tables["posterior"].assign(mean=16.2, spread=1.6)}),
        (FAIL, written("posterior", "mean", 5.0))],
    ("fa_hmc_fig2", "replicas"): [FOLLOWS],
    ("fa_hmc_fig2", "best_step"): [(DOES_NOT_HOLD, scaled("best", "scaled_step", 2.0, _last("dim")))],
    ("fa_hmc_fig2", "one_step"): [
        (DOES_NOT_HOLD, scaled("fixed", "rounds", 100.0, lambda table: table["dim"] >= 50))],
    ("fa_hmc_fig2", "shared_noise"): [
        (DOES_NOT_HOLD, scaled("checks", "rounds", 2.0, _last("shared_noise")))],
    ("fa_hmc_lower_bound", "rate"): [(FAIL, written("fits", "root_log", -1.0))],
    ("fa_hmc_lower_bound", "local_steps"): [(FAIL, scaled("sweep", "rounds", 10.0, _last("local_steps")))],
    ("fa_hmc_lower_bound", "display"): [
        (PASS, copied("laws", {"display_mean": "mean", "display_variance": "variance"})),
        (FAIL, scaled("laws", "closed_mean", 2.0)), (FAIL, scaled("laws", "proof_variance", 2.0))],
    ("fa_hmc_lower_bound", "bound"): [(DOES_NOT_HOLD, scaled("curves", "bound", 10.0))],
    ("fa_hmc_lower_bound", "replicas"): [CURVES_FOLLOW],
    ("fa_hmc_correlation", "flat"): [
        (FAIL, scaled("rounds", "rounds", 10.0, _last("local_steps", noise=0.0, shared=1.0)))],
    ("fa_hmc_correlation", "u_curve"): [(HOLDS, scaled("rounds", "rounds", 2.0, _last("local_steps")))],
    ("fa_hmc_correlation", "shared_saves"): [
        (HOLDS, scaled("rounds", "rounds", 3.0, _last("local_steps", noise=0.0, shared=0.0)))],
    ("fa_hmc_correlation", "noise"): [
        (DOES_NOT_HOLD, written("rounds", "rounds", 100.0, lambda table: table["noise"] > 0.0))],
    ("fa_hmc_correlation", "shape"): [(DOES_NOT_HOLD, scaled("rounds", "shape", 1e-9))],
    ("fa_hmc_correlation", "replicas"): [FOLLOWS],
    ("fa_hmc_debiasing", "mean"): [
        (DOES_NOT_HOLD, written("bias", "mean_error", 1.0, lambda table: table["kind"] != "not debiased"))],
    ("fa_hmc_debiasing", "covariance"): [
        (HOLDS, scaled("bias", "spread_error", 1e-3, lambda table: table["kind"] != "not debiased"))],
    ("fa_hmc_debiasing", "w2"): [
        (HOLDS, scaled("bias", "w2", 1e-3, lambda table: table["kind"] != "not debiased"))],
    ("fa_hmc_debiasing", "stability"): [(HOLDS, written("stability", "unstable_from", np.inf))],
    ("fa_hmc_debiasing", "replicas"): [CURVES_FOLLOW],
}
