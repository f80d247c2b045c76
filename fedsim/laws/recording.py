"""The rounds at which a law is kept."""

from __future__ import annotations

import itertools
from collections.abc import Sized
from typing import Any

import numpy as np

from ..settings.limits import refuse_bytes
from ..settings.validation import shown, whole, whole_numbers

MAX_ROUNDS_RECORDED = 2000


def recorded_rounds(n_rounds: int, record: Any = None) -> np.ndarray:
    """The rounds at which a law is kept: sorted({0, n_rounds} and `record`).

    Parameters
    ----------
    n_rounds : int
        Number of rounds (communications), at least 0.
    record : sequence of ints in [0, n_rounds], or None
        None keeps every round up to 2,000 rounds, and about 400 log-spaced ones beyond.

    Returns
    -------
    (n,) int64, increasing.

    Raises
    ------
    ValueError
        Naming argument, value and condition; also for more rounds than the memory holds.

    Examples
    --------
    >>> fs.recorded_rounds(3).tolist()
    [0, 1, 2, 3]
    >>> len(fs.recorded_rounds(100_000)) < 450
    True
    >>> fs.recorded_rounds(100, [10]).tolist()
    [0, 10, 100]
    """
    n_rounds = whole("n_rounds", n_rounds, 0, 2**53)
    if record is not None:
        rounds = _listed(n_rounds, record)
    elif n_rounds <= MAX_ROUNDS_RECORDED:
        rounds = np.arange(n_rounds + 1)
    else:  # small rounds coincide after rounding: space more finely until enough differ
        spaced = (np.unique(np.rint(np.geomspace(1.0, n_rounds, n))) for n in itertools.count(400, 20))
        rounds = next(values for values in spaced if len(values) >= 400)
    return np.unique(np.concatenate([[0, n_rounds], rounds.astype(np.int64)])).astype(np.int64)


def n_recorded(n_rounds: int, record: Any = None) -> int:
    """How many rounds `recorded_rounds` gives; a range is not written out for it.

    Examples
    --------
    >>> from fedsim.laws.recording import n_recorded
    >>> n_recorded(10**12, range(10**12)), n_recorded(100, [10, 10])
    (1000000000001, 3)
    """
    if not isinstance(record, range):
        return len(recorded_rounds(n_rounds, record))
    last = whole("n_rounds", n_rounds, 0, 2**53)
    _require_within(last, record)
    return len(record) + sum(end not in record for end in {0, last})


def _require_within(n_rounds: int, rounds: Any) -> None:
    """Check the smallest and the largest of an array, or of a range, by its ends."""
    if rounds if isinstance(rounds, range) else len(rounds):  # a range may be too long for len
        ends = (rounds[0], rounds[-1]) if isinstance(rounds, range) else (rounds.min(), rounds.max())
        if min(ends) < 0 or max(ends) > n_rounds:
            bad = min(ends) if min(ends) < 0 else max(ends)
            raise ValueError(f"record contains {bad}; it must lie in [0, n_rounds={n_rounds}]")


def _listed(n_rounds: int, record: Any) -> np.ndarray:
    """A record as an array, in the order given."""
    if isinstance(record, range):
        _require_within(n_rounds, record)
    count = record.size if isinstance(record, np.ndarray) else len(record) if isinstance(record, Sized) else 1
    refuse_bytes(40.0 * count, lambda: f"record={shown(record)} of {count} rounds",
                 "record fewer, as range(0, n_rounds, 1000) does")
    if isinstance(record, range):
        return np.arange(record.start, record.stop, record.step) if record else np.empty(0, np.int64)
    rounds = whole_numbers("record", record)
    _require_within(n_rounds, rounds)
    return rounds
