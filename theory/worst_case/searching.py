"""search: the worst problem of a class that a budget of evaluations finds."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.settings.validation import instance, one_of, whole

from . import portfolio
from .aiming import aimed, maker_of
from .classes import ProblemClass
from .found import Found, evaluate
from .instances import Maker
from .values import Instance, Value

SHRUNK, SHRINKS = 0.8, 60
"""Factor of a step size that is beyond a hypothesis whose limit its margin does not tell, and how often."""


def search(aim: str, problem_class: ProblemClass | None = None, *, budget: int = 2000, seed: int = 0,
           objective: str = "ratio", variant: str | None = None, progress: bool = False) -> Found:
    """Look for the problem of a class at which a bound is tightest, or a quantity largest.

    Every point is within the hypotheses. 15 percent of the budget go to DIRECT, the rest to four independent
    restarts (more beyond 10,000) of differential evolution and Nelder-Mead. The result depends on the
    arguments alone. Ctrl-C ends the search with what it has.

    Parameters
    ----------
    aim : str
        A theorem, as `theory.examine` takes it, or a quantity: see `aims`.
    problem_class : ProblemClass, optional
        The default one has two clients in one dimension. A search in one dimension finds the worst of
        problems whose Hessians commute only: also try ``ProblemClass(dim=2)``.
    budget : int
        Evaluations, at least 40.
    seed : int
    objective : "ratio", "excess" or "stationary"
        Exact over bound at its largest over the rounds (bound over exact for lower bounds); the same without
        the start's term on either side, since a far start makes many bounds tight; or that of the limits.
    variant : str, optional
        The theorem's default by default.
    progress : bool
        A line for every part, on the error stream.

    Returns
    -------
    Found

    Raises
    ------
    ValueError
        Naming argument, value and condition, before the search begins; for a class that is outside the
        hypotheses, or unstable, at a corner.

    Source: derived here.

    Examples
    --------
    >>> cls = theory.worst_case.ProblemClass(condition=10.0, local_steps=5)
    >>> found = theory.worst_case.search("fa_ld.w2_bound", cls, budget=100)
    >>> 0.0 < found.value < 1.0, found.evaluations, found.lost
    (True, 100, 0)
    """
    budget, seed = whole("budget", budget, 40), whole("seed", seed)
    one_of("progress", progress, (True, False))
    work = _work(aim, problem_class, objective, variant)
    counter = portfolio.Counter(work)
    began, interrupted = time.monotonic(), False

    def tell(counter: portfolio.Counter) -> None:
        if progress:
            name, value, done = counter.parts[-1]
            print(f"{aim}: {name} {value:.6g}, best {counter.best:.6g} after {done} of {budget} evaluations, "
                  f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    try:
        portfolio.run(counter, work.maker.size, budget, seed, tell)
    except KeyboardInterrupt:
        if work.best is None:
            raise
        interrupted = True
    return _found(work, counter, budget, seed, interrupted)


@dataclass
class _Work:
    """The function of a point of the cube that is maximised."""

    aim: str
    variant: str
    objective: str
    maker: Maker
    lost: int = 0
    best: tuple[Instance, Value] | None = None

    def at(self, point: Any) -> tuple[Instance, Value]:
        """Instance and value; where a hypothesis fails whose limit is not told, with a smaller step size."""
        one = self.maker(point)
        found = self._value(one)
        for shrinks in range(1, SHRINKS):
            if found.inside or self.maker.cls.step_size is not None:
                break
            one = self.maker(point, SHRUNK**shrinks)
            found = self._value(one)
        return one, found

    def _value(self, one: Instance) -> Value:
        return evaluate(self.aim, self.variant, self.objective, one)

    def __call__(self, point: Any) -> float:
        try:
            one, found = self.at(point)
        except ValueError:  # outside the range of float64
            self.lost += 1
            return -np.inf
        if not (found.inside and np.isfinite(found.value)):
            self.lost += 1
            return -np.inf
        if self.best is None or found.value > self.best[1].value:
            self.best = one, found
        return found.value


def _work(aim: str, problem_class: ProblemClass | None, objective: str, variant: str | None) -> _Work:
    """What is maximised, after every check of the arguments."""
    cls = ProblemClass() if problem_class is None else instance("problem_class", problem_class, ProblemClass)
    maker, chosen = maker_of(aim, cls, objective, variant)
    work = _Work(aimed(aim), chosen, objective if chosen else "", maker)
    _require_corners(work)
    return work


def _require_corners(work: _Work) -> None:
    """Refuse a class that is outside the hypotheses, or unstable, somewhere at its corners."""
    for point in work.maker.corners():
        try:
            one, found = work.at(point)
        except ValueError as refusal:
            raise ValueError(f"problem_class={work.maker.cls!r} has a corner without a value for {work.aim}: "
                             f"{refusal}") from None
        if not found.inside:
            raise ValueError(f"problem_class={work.maker.cls!r} has a corner outside the hypotheses of "
                             f"{work.aim}: {one.algorithm!r} on curvatures from 1 to "
                             f"{work.maker.cls.condition:g}")


def _found(work: _Work, counter: portfolio.Counter, budget: int, seed: int, interrupted: bool) -> Found:
    if work.best is None:
        raise ValueError(f"problem_class={work.maker.cls!r} has no point with a value for {work.aim}: "
                         f"{work.lost} of {counter.evaluations} evaluations were refused")
    one, found = work.best
    return Found(work.aim, work.variant, work.objective, found.value, one.problem, one.algorithm, one.start,
                 one.n_rounds, one.known, found.round, found.binding, work.maker.cls, budget,
                 counter.evaluations, seed, tuple((name, value) for name, value, _ in counter.parts),
                 work.lost, interrupted, work.maker.size)


def sample(aim: str, problem_class: ProblemClass | None = None, count: int = 60, *, seed: int = 0,
           objective: str = "ratio", variant: str | None = None) -> np.ndarray:
    """Random problems of a class, for comparison with a search: uniform points of its cube.

    Parameters
    ----------
    aim, problem_class, seed, objective, variant
        As for `search`.
    count : int
        Fewer are the beginning of more.

    Returns
    -------
    (count,) values, -inf where there is none

    Raises
    ------
    ValueError
        As `search`.

    Source: derived here.

    Examples
    --------
    >>> values = theory.worst_case.sample("fa_hmc.divergence_bound", count=5)
    >>> values.shape, bool(values.max() < 0.5 + 1e-9)
    ((5,), True)
    """
    work = _work(aim, problem_class, objective, variant)
    rng = np.random.default_rng(whole("seed", seed))
    return np.array([work(rng.random(work.maker.size)) for _ in range(whole("count", count, 1))])
