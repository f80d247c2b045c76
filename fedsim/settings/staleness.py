"""Staleness: the age of the gradient used at each update, common to all replicas.

It is a plain sequence of integers, so that the chain given it is a linear recursion and has an exact law.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from ..hints import listed
from .limits import refuse_bytes
from .progress import progress_bar
from .server import SERVICES, History, history_bytes, history_of
from .validation import is_listed, locked, nonnegative, one_of, set_fields, whole, whole_numbers

Ages = int | Iterable[int] | np.ndarray
"""One age of every gradient, or the age of each."""


class FixedAges(NamedTuple):
    """Compiled form of `Fixed`."""

    tau: int


class ListedAges(NamedTuple):
    """Compiled form of `Sequence`."""

    values: Any


class SeveralAges(NamedTuple):
    """Compiled form of `Several`."""

    values: Any


_LISTED = 24.0
"""Bytes of an age while lists are made: twice in the table, and once in its rows or before."""


class Staleness:
    """What all forms share."""
    schedules = 1
    """How many there are."""
    limit: int | None = None
    """The age it settles at; None where it need not settle, as with random ages."""

    def ages(self, n_updates: int) -> np.ndarray:
        """Ages at updates 0, ..., n_updates - 1, of the first schedule where there are several."""
        raise NotImplementedError

    def _arrays(self) -> Any:
        """The NamedTuple that compiled code sees."""
        raise TypeError("_bind() first: the ages of a simulated server depend on the number of updates")


def as_staleness(value: object) -> Any:
    """An int becomes `Fixed`, a sequence `Sequence`, a schedule itself."""
    if isinstance(value, Staleness):
        return value
    return Sequence(value) if is_listed(value) else Fixed(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fixed(Staleness):
    """Staleness min(l, tau) at update l: the gradient is taken at theta_{max(l - tau, 0)}.

    `reach` is how many updates are made, where that is known: no gradient is older, and no more iterates
    are kept.
    """

    tau: int
    reach: int | None = None

    def __post_init__(self) -> None:
        tau = whole("staleness", self.tau, 0)
        set_fields(self, tau=tau, limit=tau)

    def ages(self, n_updates: int) -> np.ndarray:
        return np.minimum(np.arange(n_updates), self.tau)

    def _arrays(self) -> FixedAges:
        return FixedAges(self.tau if self.reach is None else min(self.tau, self.reach))


@dataclass(frozen=True, eq=False)
class Sequence(ByValue, Staleness):
    """An explicit age for every update, (n_updates,); none may point before the start."""

    values: Any

    def __post_init__(self) -> None:
        ages = whole_numbers("staleness", self.values).astype(np.int64)
        for i in np.flatnonzero((ages < 0) | (ages > np.arange(len(ages)))):
            raise ValueError(f"staleness[{i}]={ages[i]} must " + (
                f"lie in [0, {i}]: update {i} can use iterates 0 to {i}" if i else
                "be 0: the first update can use the start alone"))
        set_fields(self, values=locked(ages))

    def __repr__(self) -> str:
        return f"Sequence({listed(self.values, 'ages')})"

    def ages(self, n_updates: int) -> np.ndarray:
        if n_updates != len(self.values):
            raise ValueError(f"staleness has {len(self.values)} entries; it must have one for each of the "
                             f"{n_updates} updates")
        return self.values

    def _arrays(self) -> ListedAges:
        return ListedAges(self.values)


@dataclass(frozen=True, eq=False)
class Several(ByValue, Staleness):
    """Several schedules (m, n_updates): replica r follows number r modulo m."""

    values: Any

    def __post_init__(self) -> None:
        table = np.array([Sequence(row).values for row in self.values], dtype=np.int64)
        set_fields(self, values=locked(table), schedules=len(table))

    def __repr__(self) -> str:
        return f"Several({len(self.values)} schedules of {len(self.values[0])} ages)"

    def ages(self, n_updates: int) -> np.ndarray:
        return self.one(0).ages(n_updates)

    def _arrays(self) -> SeveralAges:
        return SeveralAges(self.values)

    def one(self, number: int) -> Sequence:
        """One of the schedules."""
        return Sequence(self.values[number])


@dataclass(frozen=True)
class Workers(Staleness):
    """An asynchronous server with `n` workers, simulated event by event.

    The server sends theta_0 to all workers. Whenever a worker's gradient arrives it updates, and sends
    the new iterate back to that worker. Times are simulated, in units of the mean service time.

    Parameters
    ----------
    n : int
        Workers, at least 1.
    service : "deterministic", "exponential", "lognormal" or "pareto"
        Law of the time for a gradient, mean 1. Lognormal has log standard deviation 0.5, pareto
        tail index 2.5.
    update_cost : float
        Time of an update at the server, which handles one gradient at a time.
    cap : int, optional
        A gradient older than this is discarded: no update is made, and the worker starts afresh.
    seed : int
        Decides the service times.
    schedules : int
        1: one schedule common to all replicas, so that a chain given it is a linear recursion and Gaussian.
        m > 1: replica r follows number r modulo m, each with service times of its own. Then the law is a
        mixture; with at least as many schedules as replicas each replica has its own.

    Source: stale-gradient paper, Algorithm 2.

    Examples
    --------
    >>> workers = fs.Workers(2, 'deterministic', update_cost=0.5)
    >>> workers.history(6).ages.tolist()
    [0, 1, 1, 1, 1, 1]
    """

    n: int
    service: str = "exponential"
    update_cost: float = 0.0
    cap: int | None = None
    seed: int = 0
    schedules: int = 1

    def __post_init__(self) -> None:
        set_fields(self, n=whole("n", self.n, 1), service=one_of("service", self.service, tuple(SERVICES)),
                   update_cost=nonnegative("update_cost", self.update_cost),
                   cap=None if self.cap is None else whole("cap", self.cap, 0),
                   seed=whole("seed", self.seed, 0), schedules=whole("schedules", self.schedules, 1, 2**20))
        # equal deterministic service without discards
        if self.service == "deterministic" and (self.cap is None or self.cap >= self.n - 1):
            set_fields(self, limit=self.n - 1)

    def history(self, n_updates: int, number: int = 0) -> History:
        """Simulate the schedule of this number until `n_updates` updates are made.

        Raises
        ------
        ValueError
            Naming argument, value and condition; also for more updates than the memory holds.
        """
        length, which = whole("n_updates", n_updates, 0), whole("number", number, 0, self.schedules - 1)
        self._refuse(length, 1, 0.0)
        with progress_bar(length, "schedule of workers") as bar:
            return history_of(self, length, which, bar.update)

    def ages(self, n_updates: int) -> np.ndarray:
        return self.history(n_updates).ages

    def worked_out(self, n_updates: int, n_replicas: int | None = None) -> Sequence | Several:
        """The schedules as lists of ages: all, or those that the first `n_replicas` replicas follow."""
        if self.schedules == 1:
            self._refuse(n_updates, 1, _LISTED)
            return Sequence(self.ages(n_updates))
        # of one replica two, so that its law stays that of a mixture
        count = self.schedules if n_replicas is None else min(self.schedules, max(2, n_replicas))
        self._refuse(n_updates, count, _LISTED)
        table = np.empty((count, n_updates), np.int64)
        with progress_bar(count * n_updates, "schedules of workers") as bar:
            for number, row in enumerate(table):
                row[:] = history_of(self, n_updates, number, bar.update).ages
        return Several(table)

    def _refuse(self, n_updates: int, count: int, listed: float) -> None:
        """Refuse what one history at a time, and `count` lists of ages, need."""
        what = "" if count == 1 else f", of {count} schedules,"
        refuse_bytes(history_bytes(self.n, n_updates) + listed * count * n_updates,
                     f"{self!r} with n_updates={n_updates} (n_rounds){what}",
                     "use fewer workers, schedules or rounds, or a fixed age")
