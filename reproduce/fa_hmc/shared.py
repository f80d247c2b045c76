"""Shared by FA-HMC's figures: when rounds count as alike, and how spreads and replicas are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..verdicts import FAIL, NOT_TESTABLE, PASS, Judgement

SECTION, ALGORITHM = "section 5", "algorithm 3"
READINGS = {SECTION: "averaging every T leapfrog steps (section 5)",
            ALGORITHM: "averaging after T iterations (Algorithm 3)"}
"""When clients communicate: Algorithm 3 counts iterations of K leapfrog steps, section 5 leapfrog steps."""
FIFTH = 1.2
"""Numbers of rounds within this factor count as alike."""
LIMITED = ("Limited is read over the whole range of T: rounds vary by less than the square root of T's "
           "growth, halfway between not at all and like T.")
LEGEND: dict[str, Any] = {"handlelength": 3.2}
"""Long enough to tell dashes from dots."""
MARKED: dict[str, Any] = {"marker": "o", "markersize": 4}


def either(judge: Callable[[str], Judgement], else_because: str = "") -> Judgement:
    """A sentence of the paper in either reading: PASS in one that bears it out, whose numbers are the reason.

    Where none does it is FAIL, or NOT TESTABLE if one of them leaves it open, with what `judge` says of both.
    """
    found = [Judgement(*judge(reading)) for reading in READINGS]
    said = [f"{words[0].upper()}{words[1:]}: {one.why}" for words, one in zip(READINGS.values(), found,
                                                                             strict=True)]
    good = [place for place, one in enumerate(found) if one.verdict == PASS]
    if not good:
        remarks = dict.fromkeys(one.remark for one in found if one.remark)
        verdict = FAIL if {one.verdict for one in found} == {FAIL} else NOT_TESTABLE
        return Judgement(verdict, f"{else_because}{' '.join(said)}", " ".join(remarks))
    return Judgement(PASS, said[good[0]], said[1 - good[0]])


def limited(rounds: pd.Series) -> tuple[float, str]:
    """The variation of rounds, by local steps, over what `LIMITED` allows; and in words."""
    growth, factor = rounds.index[-1] / rounds.index[0], float(rounds.max() / rounds.min())
    return factor / float(np.sqrt(growth)), (
        f"the fewest rounds vary by a factor {factor:.1f} from T = {rounds.index[0]} to {rounds.index[-1]}; "
        f"the root of T's growth is {np.sqrt(growth):.1f}.")


def crossing(x: np.ndarray, y: np.ndarray, level: float) -> float:
    """Where y first comes down to the level, by interpolation; infinity if it never does."""
    i = int(np.argmax(y <= level))
    if y[i] > level:
        return np.inf
    if i == 0:
        return float(x[0])
    return float(x[i - 1] + (y[i - 1] - level) / (y[i - 1] - y[i]) * (x[i] - x[i - 1]))


def draw_spread(ax: Axes, values: Any, colour: str, label: str, band: str | None = None, alpha: float = 0.25,
                **options: Any) -> None:
    """Median and range over data sets, where all are finite.

    Parameters
    ----------
    values : a grouped column
        Its groups are the places on the axis.
    label, band : str
        Names of the median's line and of the range.
    alpha : float
        Of the range.
    """
    table = values.agg(["min", "median", "max"])
    table = table[np.isfinite(table["max"])]
    ax.fill_between(table.index, table["min"], table["max"], color=colour, alpha=alpha, linewidth=0,
                    label=band)
    ax.plot(table.index, table["median"], color=colour, label=label, **(MARKED | options))
