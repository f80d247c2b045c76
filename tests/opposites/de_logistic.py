"""Figures 5 to 10 of the decentralized paper."""

from __future__ import annotations

import numpy as np

from reproduce.claims import Tables
from reproduce.decentralized.shared import HOLD, VIOLATED
from reproduce.verdicts import DOES_NOT_HOLD, ECHOED, FAIL, HOLDS, NOT_TESTABLE, OPEN, OUTSIDE, PASS

from . import Change


def _with(name, **columns):
    """The tables with other columns in one of them: values, or functions of the table."""
    def change(tables: Tables) -> Tables:
        return {**tables, name: tables[name].assign(**columns)}

    return change


def _differences(sign, scaling=None):
    """All differences of this sign, where `scaling` is theirs."""
    def change(tables: Tables) -> Tables:
        table = tables["contrasts"]
        others = table["data_set"] < 0 if scaling is None else table["scaling"] != scaling
        return {**tables, "contrasts": table.assign(
            difference=table["difference"].where(others, sign * (0.01 + 1e-4 * table["data_set"])))}

    return change


def _other_rows(then):
    """Rows that are not the telescope's, changed."""
    return lambda tables: _with("setting", data="9 rows of --data, NOT THE PAPER'S DATA")(then(tables))


def _range(within, only=None):
    """Within the theorem's range or not: all rows, or those of `only` (column, value), others opposite."""
    def change(tables: Tables) -> Tables:
        table = tables["hypotheses"]
        good = np.full(len(table), within) if only is None else (table[only[0]] == only[1]) == within
        return {**tables, "hypotheses": table.assign(
            status=np.where(good, HOLD, VIOLATED), why=np.where(good, "all hypotheses hold", "too large"))}

    return change


def _distances(alone, joined):
    """W2 of the disconnected and of the connected networks."""
    def change(tables: Tables) -> Tables:
        table = tables["distances"]
        w2 = table["network"].map({"disconnected": alone}).fillna(joined)
        return {**tables, "distances": table.assign(w2=w2, low=0.9 * w2, high=1.1 * w2)}

    return change


def _exchanged(kind):
    """The two methods of figure 8 exchanged."""
    def change(tables: Tables) -> Tables:
        table = tables["pace"]
        return {**tables, "pace": table.assign(**{
            f"{kind}_this": table[f"{kind}_other"], f"{kind}_other": table[f"{kind}_this"]})}

    return change


def _momentum(value, then):
    """Changed tables, with this momentum."""
    return lambda tables: _with("setting", momentum=value)(then(tables))


def _accuracy(share):
    """An accuracy with this share of the posterior's gain."""
    return _with("sets", accuracy=lambda table: table["larger_class"] + share * (
        table["posterior_accuracy"] - table["larger_class"]) + 1e-5 * table["data_set"])


_ONE_SCALING = _range(True, ("features", "in [-1, 1]"))
_ONE_SET = _range(True, ("data_set", 0))
_LAW = [(HOLDS, _with("sets", least_w2=lambda table: 2.0 * table["spread"])),
        (OPEN, _with("sets", least_w2=lambda table: 0.5 * table["spread"]))]
_ORDER = [(HOLDS, _distances(3.0, 1.0)), (DOES_NOT_HOLD, _distances(1.0, 3.0)),
          (OPEN, _distances(1.0, 1.05))]

OPPOSITES: dict[tuple[str, str], list[Change]] = {
    ("de_fig5", "works_well"): [(FAIL, _accuracy(-0.1)), (NOT_TESTABLE, _accuracy(0.8))],
    ("de_fig8", "faster"): [(NOT_TESTABLE, _exchanged("first"))],  # features and prior are ours
    ("de_fig8", "smaller_deviation"): [(NOT_TESTABLE, _exchanged("sd"))],
}
for _figure in ("de_fig5", "de_fig6", "de_fig7", "de_fig8"):
    _worst = FAIL if _figure in ("de_fig5", "de_fig6") else NOT_TESTABLE
    OPPOSITES[_figure, "disconnected"] = [(_worst, _differences(-1.0))]
    OPPOSITES[_figure, "accuracy_first"] = _LAW
    OPPOSITES[_figure, "order_in_w2"] = _ORDER
for _figure in ("de_fig9", "de_fig10"):
    OPPOSITES[_figure, "disconnected"] = [(ECHOED, _differences(1.0)), (NOT_TESTABLE, _differences(-1.0))]
    OPPOSITES[_figure, "unstable"] = [(DOES_NOT_HOLD, _with("stability", radius=0.5))]
    for _name, _scaling in (("better_as_defined", "unbiased"), ("better_with_sums", "batch_sum")):
        OPPOSITES[_figure, _name] = [(HOLDS, _differences(1.0, _scaling)),
                                     (DOES_NOT_HOLD, _differences(-1.0, _scaling))]
    OPPOSITES[_figure, "step_size_range"] = [
        *((NOT_TESTABLE, _other_rows(_momentum(1.0 / 33.0, _range(within)))) for within in (True, False)),
        (OUTSIDE, _other_rows(_momentum(1.0 / 31.0, _range(True)))), (PASS, _range(True)),
        (OUTSIDE, _range(False)), (PASS, _ONE_SCALING), (NOT_TESTABLE, _ONE_SET)]
for _figure in ("de_fig5", "de_fig6"):
    OPPOSITES[_figure, "step_size_range"] = [(OUTSIDE, _range(False)), (PASS, _range(True)),
                                             (NOT_TESTABLE, _ONE_SET)]
for _figure in ("de_fig7", "de_fig8"):
    OPPOSITES[_figure, "step_size_range"] = [(OUTSIDE, _range(False)), (PASS, _range(True)),
                                             (PASS, _ONE_SCALING), (NOT_TESTABLE, _ONE_SET)]
