"""A server and its workers, event by event: what they did, and when."""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from .validation import locked


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


SERVICES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "deterministic": lambda rng: np.ones(1024),
    "exponential": lambda rng: rng.exponential(size=1024),
    "lognormal": lambda rng: rng.lognormal(-0.125, 0.5, size=1024),
    "pareto": lambda rng: (1.0 + rng.pareto(2.5, size=1024)) * 0.6}
"""Draws of the service time, whose mean is 1."""

_TICK = 2**14  # updates between two steps of a progress bar
_DISCARDS = 1000
"""Discarded gradients for each update, and each worker, beyond which a cap is refused."""
_TRIAL = 64
"""Updates after which it is refused where so many are in sight, rather than made."""
_KEPT_BYTES = 2**27
"""Histories that are kept for the next time they are asked for take no more than this."""
_kept: OrderedDict[tuple[Any, int, int], History] = OrderedDict()
_lock = Lock()


def history_bytes(n: int, n_updates: int) -> float:
    """Bytes, about, that the history of so many updates of `n` workers takes while it is made."""
    return 24.0 * n_updates + 300.0 * n


def history_of(workers: Any, n_updates: int, number: int, tick: Callable[[int], Any]) -> History:
    """What `Workers` do on the schedule of this number; `tick` is told of every so many updates."""
    key = workers, n_updates, number
    with _lock:
        history = _kept.pop(key, None)
        if history is not None:
            _kept[key] = history  # the last to go
    if history is not None:
        tick(n_updates)
        return history
    history = _simulate(workers, n_updates, number, tick)
    if history_bytes(workers.n, n_updates) <= _KEPT_BYTES:
        with _lock:
            _kept[key] = history
            while len(_kept) > 256 or sum(history_bytes(one.n, m) for one, m, _ in _kept) > _KEPT_BYTES:
                _kept.popitem(last=False)
    return history


def service_times(service: str, rng: np.random.Generator) -> Iterator[float]:
    """Service times of this law, one after the other."""
    return (time for _ in itertools.count() for time in SERVICES[service](rng).tolist())


def _simulate(workers: Any, n_updates: int, number: int, tick: Callable[[int], Any]) -> History:
    seed = workers.seed if number == 0 else [workers.seed, number]
    service = service_times(workers.service, np.random.default_rng(seed))
    version = [0] * workers.n
    events = [(next(service), worker, worker) for worker in range(workers.n)]  # (ready, dispatch, worker)
    waited = np.zeros(workers.n)  # for the server, with a gradient ready
    heapq.heapify(events)
    ages, who = np.empty(n_updates, np.int64), np.empty(n_updates, np.int64)
    times = np.empty(n_updates)
    done, order, free, discarded = 0, workers.n, 0.0, 0
    limit = _DISCARDS * (n_updates + workers.n)
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
            if done % _TICK == 0:
                tick(_TICK)
        else:
            discarded += 1
            in_sight = discarded * n_updates > 2 * limit * done >= 2 * limit * _TRIAL
            if in_sight or discarded > limit:
                raise ValueError(f"cap={workers.cap} discards nearly every gradient of n={workers.n} "
                                 f"workers ({discarded} in the first {done} updates); use a larger cap or "
                                 "fewer workers")
        version[worker] = done
        heapq.heappush(events, (now + next(service), order, worker))
        order += 1
    tick(n_updates % _TICK)
    end = float(times[-1]) if n_updates else 0.0
    for ready, _, worker in events:
        waited[worker] += max(end - ready, 0.0)
    busy = end - waited  # exact where nobody waits
    return History(locked(ages), locked(times), locked(who), locked(busy), discarded)
