"""Tables of the stale-gradient figures on logistic regression that say the opposite."""

from __future__ import annotations

from reproduce.stale.adult import A9A
from reproduce.verdicts import DOES_NOT_HOLD, FAIL, HOLDS, PASS

FIG2, FIG3, FIG4, FIGS6 = ("stale_fig2_logistic", "stale_fig3_logistic", "stale_fig4_logistic",
                           "stale_figs6_11_logistic")


def put(table, column, value):
    """Put `value`, or what it makes of the table, into a column."""
    def change(tables):
        tables[table][column] = value(tables[table]) if callable(value) else value
        return tables

    return change


def on_a9a(change=lambda tables: tables):
    """The same of rows that call themselves a9a."""
    def both(tables):
        return change(put("data", "source", A9A)(tables))

    return both


fewer_is_better = put("ends", "loss", lambda table: 0.01 * table["workers"])
more_is_better = put("ends", "loss", lambda table: -0.01 * table["workers"])
rising = put("ends", "variance", lambda table: table["variance"] * table["workers"] ** 2.0)
falling = put("ends", "variance", lambda table: table["variance"] / table["workers"] ** 2.0)
linear = put("speedups", "speedup", lambda table: 1.0 * table["workers"])
no_speedup = put("speedups", "speedup", 1.0)

OPPOSITES = {
    (FIG2, "iterations_a9a"): [(PASS, on_a9a(falling))],
    (FIG2, "iterations"): [(DOES_NOT_HOLD, rising), (HOLDS, falling)],
    (FIG2, "in_time_a9a"): [(PASS, on_a9a(falling))],
    (FIG2, "in_time"): [(DOES_NOT_HOLD, rising), (HOLDS, falling)],
    (FIG2, "linear_a9a"): [(PASS, on_a9a(linear))],
    (FIG2, "linear"): [(DOES_NOT_HOLD, no_speedup), (HOLDS, linear)],
    (FIG2, "origin"): [(DOES_NOT_HOLD, rising), (HOLDS, falling)],
    (FIG2, "decay"): [(HOLDS, put("decay", "slope", -1.0)), (DOES_NOT_HOLD, put("decay", "slope", -0.3))],
    (FIG3, "faster_a9a"): [(PASS, on_a9a(more_is_better))],
    (FIG3, "faster"): [(DOES_NOT_HOLD, fewer_is_better)],
    (FIG3, "in_time_a9a"): [(PASS, on_a9a(more_is_better))],
    (FIG3, "in_time"): [(DOES_NOT_HOLD, fewer_is_better)],
    (FIG3, "reason_a9a"): [(PASS, on_a9a(put("ends", "spread", 1.0)))],
    (FIG3, "reason"): [(HOLDS, put("ends", "spread", 1.0))],
    (FIG3, "spread_a9a"): [(PASS, on_a9a(put("ends", "spread", lambda table: 1.0 / table["workers"])))],
    (FIG3, "spread"): [(HOLDS, put("ends", "spread", lambda table: 1.0 / table["workers"])),
                       (DOES_NOT_HOLD, put("ends", "spread", lambda table: 1.0 * table["workers"]))],
    (FIG4, "small_variance_a9a"): [(PASS, on_a9a(put("ends", "spread", 1e-3)))],
    (FIG4, "small_variance"): [(DOES_NOT_HOLD, put("ends", "spread", 1.0))],
    (FIG4, "variance"): [(DOES_NOT_HOLD, put("variances", "variance", lambda table: 3.0 * table["single"]))],
    (FIGS6, "faster_a9a"): [(PASS, on_a9a(more_is_better))],
    (FIGS6, "faster"): [(DOES_NOT_HOLD, fewer_is_better)],
    (FIGS6, "in_time_a9a"): [(PASS, on_a9a(more_is_better))],
    (FIGS6, "in_time"): [(DOES_NOT_HOLD, fewer_is_better)],
    (FIGS6, "bounds"): [(FAIL, put("bounds", "several", 1.0))],
    (FIGS6, "bias"): [(DOES_NOT_HOLD, put("divided", "loss", lambda table: -0.1 * table["servers"]))],
    (FIGS6, "variance"): [(DOES_NOT_HOLD, put("divided", "variance", 1.0)),
                          (HOLDS, put("divided", "variance", lambda table: 1.0 / table["servers"]))],
}
