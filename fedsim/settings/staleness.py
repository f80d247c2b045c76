"""Staleness: the age of the gradient used at each update, common to all replicas.

It is a plain sequence of integers, so that the chain given it is a linear recursion and has an exact law.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from .validation import nonnegative, one_of, set_fields, unmasked, whole


class FixedAges(NamedTuple):
    """Compiled form of `Fixed`."""

    tau: int


class ListedAges(NamedTuple):
    """Compiled form of `Sequence`."""

    values: Any


class SeveralAges(NamedTuple):
    """Compiled form of `Several`."""

    values: Any


class Staleness:
    """What all forms share."""
    schedules = 1

    @property
    def limit(self) -> int | None:
        """The age it settles at; None where it need not settle."""
        return None

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
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0):
        return Sequence(value)
    return Fixed(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fixed(Staleness):
    """Staleness min(l, tau) at update l: the gradient is taken at theta_{max(l - tau, 0)}."""

    tau: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", whole("staleness", self.tau, 0))

    def ages(self, n_updates: int) -> np.ndarray:
        return np.minimum(np.arange(n_updates), self.tau)

    def _arrays(self) -> FixedAges:
        return FixedAges(self.tau)

    @property
    def limit(self) -> int:
        return self.tau


@dataclass(frozen=True, eq=False)
class Sequence(ByValue, Staleness):
    """An explicit age for every update, (n_updates,); none may point before the start."""

    values: Any

    def __post_init__(self) -> None:
        unmasked("staleness", self.values)
        try:
            ages = np.asarray(self.values)
        except ValueError:
            raise ValueError("staleness must be a sequence of integers, not a ragged one") from None
        if ages.ndim != 1 or ages.dtype.kind not in "iu":
            raise ValueError(f"staleness must be a sequence of integers, got shape {ages.shape} and "
                             f"dtype {ages.dtype}")
        ages = ages.astype(np.int64)
        for i in np.flatnonzero((ages < 0) | (ages > np.arange(len(ages)))):
            raise ValueError(f"staleness[{i}]={ages[i]} must lie in [0, {i}]: update {i} can use iterates "
                             f"0 to {i}")
        ages.setflags(write=False)
        object.__setattr__(self, "values", ages)

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
        table = np.array([Sequence(row).values for row in self.values])
        table.setflags(write=False)
        object.__setattr__(self, "values", table)

    def ages(self, n_updates: int) -> np.ndarray:
        return self.one(0).ages(n_updates)

    def _arrays(self) -> SeveralAges:
        return SeveralAges(self.values)

    @property
    def schedules(self) -> int:  # type: ignore[override]
        """How many there are."""
        return len(self.values)

    def one(self, number: int) -> Sequence:
        """One of the schedules."""
        return Sequence(self.values[number])


class History(NamedTuple):
    """What the workers did, up to the last update.

    Attributes
    ----------
    ages, times, workers : (n_updates,)
        Age of the gradient, time and worker of each update; times in units of the mean service time.
    busy : (n,)
        Time up to the last update that each worker computed gradients, unfinished ones included; the rest
        it waited for the server.
    discarded : int
        Gradients older than the cap.
    """

    ages: np.ndarray
    times: np.ndarray
    workers: np.ndarray
    busy: np.ndarray
    discarded: int

    @property
    def utilisation(self) -> np.ndarray:
        """Share of the time up to the last update that each worker computed gradients, (n,), at most 1.

        Raises
        ------
        ValueError
            For a history without updates.

        Examples
        --------
        >>> fs.Workers(2, 'deterministic', update_cost=0.5).history(2).utilisation.tolist()
        [0.75, 0.5]
        """
        if not len(self.times):
            raise ValueError("n_updates=0 must be at least 1: no time has passed of which to take a share")
        return self.busy / self.times[-1]


_SERVICES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "deterministic": lambda rng: np.ones(1024),
    "exponential": lambda rng: rng.exponential(size=1024),
    "lognormal": lambda rng: rng.lognormal(-0.125, 0.5, size=1024),
    "pareto": lambda rng: (1.0 + rng.pareto(2.5, size=1024)) * 0.6}
"""Draws of the service time, whose mean is 1."""


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
        set_fields(self, n=whole("n", self.n, 1), service=one_of("service", self.service, tuple(_SERVICES)),
                   update_cost=nonnegative("update_cost", self.update_cost),
                   cap=None if self.cap is None else whole("cap", self.cap, 0),
                   seed=whole("seed", self.seed, 0), schedules=whole("schedules", self.schedules, 1, 2**20))

    def _service_times(self, rng: np.random.Generator) -> Iterator[float]:
        return (time for _ in itertools.count() for time in _SERVICES[self.service](rng).tolist())

    def history(self, n_updates: int, number: int = 0) -> History:
        """Simulate the schedule of this number until `n_updates` updates are made."""
        return _simulate(self, whole("n_updates", n_updates, 0),
                         whole("number", number, 0, self.schedules - 1))

    def ages(self, n_updates: int) -> np.ndarray:
        return self.history(n_updates).ages

    def worked_out(self, n_updates: int) -> Sequence | Several:
        """The schedules as lists of ages."""
        if self.schedules == 1:
            return Sequence(self.ages(n_updates))
        return Several([self.history(n_updates, number).ages for number in range(self.schedules)])

    @property
    def limit(self) -> int | None:
        """n - 1 for equal deterministic service without discards; otherwise the ages stay random."""
        settles = self.service == "deterministic" and (self.cap is None or self.cap >= self.n - 1)
        return self.n - 1 if settles else None


@lru_cache(maxsize=32)
def _simulate(workers: Workers, n_updates: int, number: int) -> History:
    seed = workers.seed if number == 0 else [workers.seed, number]
    service = workers._service_times(np.random.default_rng(seed))
    version = [0] * workers.n
    events = [(next(service), worker, worker) for worker in range(workers.n)]  # (ready, dispatch, worker)
    waited = np.zeros(workers.n)  # for the server, with a gradient ready
    heapq.heapify(events)
    ages, who = np.empty(n_updates, np.int64), np.empty(n_updates, np.int64)
    times = np.empty(n_updates)
    done, order, free, discarded = 0, workers.n, 0.0, 0
    limit = 1000 * (n_updates + workers.n)
    while done < n_updates:
        ready, _, worker = heapq.heappop(events)
        age = done - version[worker]
        now = ready
        if workers.cap is None or age <= workers.cap:
            free = max(free, ready) + workers.update_cost
            now = free
            waited[worker] += now - ready
            ages[done], who[done], times[done] = age, worker, now
            done += 1
        else:
            discarded += 1
            if discarded > limit:
                raise ValueError(f"cap={workers.cap} discards nearly every gradient of n={workers.n} "
                                 "workers; use a larger cap or fewer workers")
        version[worker] = done
        heapq.heappush(events, (now + next(service), order, worker))
        order += 1
    end = float(times[-1]) if n_updates else 0.0
    for ready, _, worker in events:
        waited[worker] += max(end - ready, 0.0)
    busy = end - waited  # exact where nobody waits
    for part in (ages, times, who, busy):
        part.setflags(write=False)
    return History(ages, times, who, busy, discarded)
