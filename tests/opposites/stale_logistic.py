"""Tables of the stale-gradient figures on logistic regression that say the opposite."""

from __future__ import annotations

import pandas as pd

from reproduce.verdicts import DOES_NOT_HOLD, ECHOED, FAIL, HOLDS, NOT_TESTABLE, OPEN

FIG2, FIG3, FIG4, FIGS6 = ("stale_fig2_logistic", "stale_fig3_logistic", "stale_fig4_logistic",
                           "stale_figs6_11_logistic")


def put(table, column, value):
    """Put `value`, or what it makes of the table, into a column."""
    def change(tables):
        tables[table][column] = value(tables[table]) if callable(value) else value
        return tables

    return change


def with_gap(tables):
    """A loss that falls with the workers, of chains that hardly differ."""
    return narrow(more_is_better(tables))


fewer_is_better = put("ends", "loss", lambda table: 0.01 * table["workers"])
more_is_better = put("ends", "loss", lambda table: -0.01 * table["workers"])
rising = put("ends", "variance", lambda table: table["variance"] * table["workers"] ** 2.0)
falling = put("ends", "variance", lambda table: table["variance"] / table["workers"] ** 2.0)
linear = put("speedups", "speedup", lambda table: 1.0 * table["workers"])
no_speedup = put("speedups", "speedup", 1.0)
untold = put("speedups", "speedup", lambda table: table["workers"] * 1e6 ** (table["data_set"] % 2))

wide, narrow = put("ends", "spread", 1.0), put("ends", "spread", 1e-3)
calmer = put("ends", "spread", lambda table: 1.0 / table["workers"])
wilder = put("ends", "spread", lambda table: 1.0 * table["workers"])



def network_ends(loss):
    """Ends of the network on 12 splits that hardly differ, by the number of workers."""
    def change(tables):
        return tables | {"network": pd.DataFrame([
            {"data_set": number, "n_train": 1348, "dim": 1210, "rate": rate, "workers": n, "iterations": 1000,
             "loss": loss(n) + 1e-3 * (number % 5) * n} for number in range(12) for rate in (0.01, 0.03)
            for n in (1, 2, 4, 6, 9)])}

    return change


staleness_hurts = network_ends(lambda n: 0.3 + 0.1 * (n - 4) ** 2)
staleness_is_harmless = network_ends(lambda n: 0.5 - 0.04 * n)

SENTENCES = {
    (FIG2, "iterations"): (falling, rising), (FIG2, "in_time"): (falling, rising),
    (FIG2, "linear"): (linear, no_speedup), (FIG3, "faster"): (more_is_better, fewer_is_better),
    (FIG3, "in_time"): (more_is_better, fewer_is_better), (FIG3, "reason"): (wide, with_gap),
    (FIG3, "spread"): (calmer, wilder), (FIG4, "small_variance"): (narrow, wide),
    (FIGS6, "faster"): (more_is_better, fewer_is_better),
    (FIGS6, "in_time"): (more_is_better, fewer_is_better)}
"""What bears a sentence out, and what contradicts it: of the paper's claim, and of the same as a finding."""

OPPOSITES = {
    (FIG2, "origin"): [(DOES_NOT_HOLD, rising), (HOLDS, falling)],
    (FIG2, "decay"): [(HOLDS, put("decay", "slope", -1.0)), (DOES_NOT_HOLD, put("decay", "slope", -0.3))],
    (FIG4, "variance"): [(DOES_NOT_HOLD, put("variances", "variance", lambda table: 3.0 * table["single"]))],
    (FIG3, "cifar"): [(ECHOED, staleness_hurts), (NOT_TESTABLE, staleness_is_harmless)],
    (FIG3, "network"): [(HOLDS, staleness_hurts), (DOES_NOT_HOLD, staleness_is_harmless)],
    (FIG3, "network_small_steps"): [(HOLDS, staleness_is_harmless), (DOES_NOT_HOLD, staleness_hurts)],
    (FIGS6, "bounds"): [(FAIL, put("bounds", "several", 1.0))],
    (FIGS6, "bias"): [(DOES_NOT_HOLD, put("divided", "loss", lambda table: -0.1 * table["servers"]))],
    (FIGS6, "variance"): [(DOES_NOT_HOLD, put("divided", "variance", 1.0)),
                          (HOLDS, put("divided", "variance", lambda table: 1.0 / table["servers"]))],
}
for (_figure, _name), (_so, _not_so) in SENTENCES.items():
    OPPOSITES[_figure, _name] = [(HOLDS, _so), (DOES_NOT_HOLD, _not_so)]
    OPPOSITES[_figure, f"{_name}_a9a"] = [(ECHOED, _so), (NOT_TESTABLE, _not_so)]
OPPOSITES[FIG2, "linear_a9a"].append((NOT_TESTABLE, untold))
OPPOSITES[FIG2, "linear"].append((OPEN, untold))
