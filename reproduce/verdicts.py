"""The words for verdicts, what each means, and how random evidence becomes one of them.

A claim is a sentence of a paper; its verdict is PASS, ECHOED, FAIL, MISPRINT, OUTSIDE or NOT TESTABLE. A
finding is a sentence of ours; it HOLDS, DOES NOT HOLD or is OPEN. The two are never counted together.

What rests on random data is judged on `MIN_SETS` data sets or more (`unanimous`); what rests on replicas,
by intervals whose error level over all comparisons of a claim is `LEVEL` (`intervals`, `above`, `within`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

PASS, ECHOED, FAIL, MISPRINT = "PASS", "ECHOED", "FAIL", "MISPRINT"
OUTSIDE, NOT_TESTABLE = "OUTSIDE", "NOT TESTABLE"
HOLDS, DOES_NOT_HOLD, OPEN = "HOLDS", "DOES NOT HOLD", "OPEN"

CLAIM_WORDS: Mapping[str, str] = {
    PASS: "what the paper says is what the numbers say; where it is true but not sharp, a remark says so",
    ECHOED: "seen here as the paper says, and nothing here could have contradicted it: the data stand in for "
            "the paper's, or what it does not print is ours",
    FAIL: "contradicted in the paper's own set-up, on every data set and seed tried; of a theorem, by a "
          "counterexample within its hypotheses",
    MISPRINT: "false as it stands in our transcription, true in the corrected reading that the reason names",
    OUTSIDE: "the theorem's hypotheses do not cover the figure, so neither contradicts the other",
    NOT_TESTABLE: "cannot be decided here, for the reason given; also where data sets or seeds disagree",
}
FINDING_WORDS: Mapping[str, str] = {
    HOLDS: "a sentence of ours that the numbers bear out",
    DOES_NOT_HOLD: "a sentence of ours that the numbers refute",
    OPEN: "a sentence of ours that the numbers leave undecided",
}
AS_FINDING: Mapping[str, str] = {PASS: HOLDS, FAIL: DOES_NOT_HOLD, NOT_TESTABLE: OPEN}

EXACT = "exact law, nothing random"
DATA_SETS = "every one of at least 12 data sets"
REPLICAS = "replicas, error level 1% over all comparisons"
ROWS = ("test rows drawn again and independent runs, error level 1% over the comparisons of one score on one "
        "data set at one number of rounds")
BASES = (EXACT, DATA_SETS, REPLICAS, ROWS)
"""What a verdict can rest on."""

MIN_SETS = 12
LEVEL = 0.01
"""Chance that any of a claim's intervals misses its true value."""


class Judgement(NamedTuple):
    """A verdict, one sentence or two of why with the numbers that decide, and what else is worth saying."""

    verdict: str
    why: str
    remark: str = ""


def counted(verdicts: Sequence[str]) -> str:
    """Verdicts in words: "2 PASS, 1 FAIL"; "none" when there is none."""
    kinds = [word for word in (*CLAIM_WORDS, *FINDING_WORDS) if word in verdicts]
    return ", ".join(f"{verdicts.count(word)} {word}" for word in kinds) or "none"


def total(judged: Iterable[Mapping[str, str]]) -> str:
    """The same of judged claims or findings, without those that another figure counts."""
    return counted([item["verdict"] for item in judged if not item.get("counted_in")])


def unanimous(good: ArrayLike, least: int = MIN_SETS) -> str:
    """The verdict on a sentence that was judged on each of several data sets by itself.

    Parameters
    ----------
    good : (n_sets,) booleans
        Whether it is true on each.
    least : int
        With fewer sets nothing is decided.

    Returns
    -------
    str
        PASS when true on all, FAIL when false on all, NOT TESTABLE when they disagree or are too few.
    """
    true = np.asarray(good, dtype=bool)
    if true.ndim != 1:
        raise ValueError(f"good with shape {true.shape} must have one dimension, a value a data set")
    if len(true) < least or 0 < true.sum() < len(true):
        return NOT_TESTABLE
    return PASS if true[0] else FAIL


def shares(good: ArrayLike, sets: str = "data sets") -> str:
    """The same in words: "on 12 of 12 data sets"."""
    true = np.asarray(good, dtype=bool)
    return f"on {int(true.sum())} of {len(true)} {sets}"


def intervals(samples: ArrayLike, n_comparisons: int | None = None,
              level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of means that are all right together with probability 1 - level (Student, Bonferroni).

    Parameters
    ----------
    samples : (n, ...) array
        Independent draws along the first axis: runs, or one number of each data set.
    n_comparisons : int or None
        How many means the claim compares; None for all in `samples`.
    level : float

    Returns
    -------
    low, high : (...) arrays
    """
    values = np.asarray(samples, dtype=float)
    if len(values) < 2:
        raise ValueError(f"samples with {len(values)} draws must have at least 2")
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    count = max(mean.size, 1) if n_comparisons is None else n_comparisons
    width = stats.t.ppf(1.0 - level / (2.0 * count), len(values) - 1) * error
    return mean - width, mean + width


def above(low: ArrayLike, high: ArrayLike, limit: float = 0.0) -> str:
    """Are all means above `limit`? PASS when every interval is, FAIL when none reaches it, else open."""
    lows, highs = np.atleast_1d(low), np.atleast_1d(high)
    if (lows > limit).all():
        return PASS
    return FAIL if (highs < limit).all() else NOT_TESTABLE


def within(low: ArrayLike, high: ArrayLike, least: ArrayLike, most: ArrayLike) -> str:
    """Equivalence: PASS when every interval lies in [least, most], FAIL when one lies wholly outside."""
    lows, highs = np.atleast_1d(low), np.atleast_1d(high)
    if ((lows >= least) & (highs <= most)).all():
        return PASS
    return FAIL if ((lows > most) | (highs < least)).any() else NOT_TESTABLE
