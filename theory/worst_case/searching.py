"""`search`: the worst problem of a class that a budget of evaluations finds.

The budget is spent on DIRECT, then on restarts of differential evolution and Nelder-Mead. Every single
optimiser sometimes sits in a wrong basin; restarts from independent seeds are what helps, and whether they
agree is what a reader wants to know. One counter sees every evaluation and keeps the best point itself:
optimisers have their own idea of it, and overrun what they are allowed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.settings.validation import Array, instance, one_of, whole

from ..tuning.telling import say
from .exact_values import Instance, Value
from .problem_class import ProblemClass
from .search_result import Found, evaluate
from .targets import Maker, aimed, maker_of

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
    counter = Counter(work)
    began, interrupted = time.monotonic(), False

    def tell(counter: Counter) -> None:
        if progress:
            name, value, done = counter.parts[-1]
            say(f"{aim}: {name} {value:.6g}, best {counter.best:.6g} after {done} of {budget} evaluations",
                began)

    try:
        spend(counter, work.maker.size, budget, seed, tell)
    except KeyboardInterrupt:
        if work.best is None:
            raise
        interrupted = True
    if work.best is None:
        raise ValueError(f"problem_class={work.maker.cls!r} has no point with a value for {work.aim}: "
                         f"{work.lost} of {counter.evaluations} evaluations were refused")
    one, found = work.best
    return Found(**vars(one), aim=work.aim, variant=work.variant, objective=work.objective, value=found.value,
                 round=found.round, binding=found.binding, problem_class=work.maker.cls, budget=budget,
                 evaluations=counter.evaluations, seed=seed, lost=work.lost, interrupted=interrupted,
                 parts=tuple((name, value) for name, value, _ in counter.parts), unknowns=work.maker.size)


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
        for shrinks in range(SHRINKS):
            one = self.maker(point, SHRUNK**shrinks)
            found = evaluate(self.aim, self.variant, self.objective, one)
            if found.inside or self.maker.cls.step_size is not None:
                break
        return one, found

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
                             f"{work.aim}: {one.algorithm!r} on curvatures from "
                             f"{{:g}} to {{:g}}".format(*work.maker.cls.curvatures))


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


DIRECT_SHARE = 0.15
"""Of the budget: it is deterministic, and covers plateaus."""
EVOLUTION_SHARE = 0.6
"""Of a restart; the rest is Nelder-Mead from its best point."""
RESTARTS, PER_RESTART = 4, 2500
"""At least so many, and one more for each so many evaluations."""
POPULATION = 16
"""Of the differential evolution: a power of two, as Sobol points want it."""
ENDS = 0.05
"""By how much optimisers see the cube extended, and pressed to its faces: suprema often sit there."""
SIMPLEX = (0.2, 0.05, 0.01)
"""Sizes of the first simplex, one after the other as long as a restart lasts."""


class Spent(Exception):
    """The evaluations of a part of the budget are used up."""


@dataclass
class Counter:
    """Counts evaluations of a function to be maximised, and keeps the best point.

    Attributes
    ----------
    function : callable (p,) -> float
        -inf where there is no value.
    allowed : int
        Evaluations up to the end of the present part.
    """

    function: Callable[[Array], float]
    allowed: int = 0
    evaluations: int = 0
    best: float = -np.inf
    at: Array | None = None
    part_best: float = -np.inf
    part_at: Array | None = None
    parts: list[tuple[str, float, int]] = field(default_factory=list)

    def __call__(self, point: Any) -> float:
        """What optimisers minimise: minus the value, or 0 where there is none."""
        if self.evaluations >= self.allowed:
            raise Spent
        self.evaluations += 1
        at = np.clip((1.0 + 2.0 * ENDS) * np.asarray(point, dtype=np.float64) - ENDS, 0.0, 1.0)
        value = self.function(at)
        if value > self.part_best:
            self.part_best, self.part_at = value, at.copy()
        if value > self.best:
            self.best, self.at = value, at.copy()
        return -value if np.isfinite(value) else 0.0


def parts_of(budget: int) -> list[tuple[str, int]]:
    """Names and evaluations of the parts of a budget, which they use up."""
    restarts = max(RESTARTS, budget // PER_RESTART)
    first = int(DIRECT_SHARE * budget)
    each, more = divmod(budget - first, restarts)
    return [("direct", first), *((f"restart {i + 1}", each + (i < more)) for i in range(restarts))]


def spend(counter: Counter, size: int, budget: int, seed: int, tell: Callable[[Counter], None]) -> None:
    """Spend a budget on a function of `size` unknowns; `tell` hears of every part that ends.

    The best of a part is noted also where it is interrupted.
    """
    from scipy.optimize import Bounds, direct

    for number, (name, evaluations) in enumerate(parts_of(budget)):
        counter.allowed = counter.evaluations + evaluations
        counter.part_best, counter.part_at = -np.inf, None
        try:
            if number:
                rng = np.random.default_rng([seed, number])
                _restart(counter, size, evaluations, rng)
            else:
                direct(counter, Bounds(np.zeros(size), np.ones(size)), maxfun=evaluations + 10 * size,
                       maxiter=10**6, vol_tol=0.0, len_tol=0.0)
        except Spent:
            pass
        finally:
            counter.parts.append((name, counter.part_best, counter.evaluations))
        tell(counter)


def _restart(counter: Counter, size: int, evaluations: int, rng: np.random.Generator) -> None:
    """Differential evolution from Sobol points, then Nelder-Mead from its best."""
    from scipy.optimize import Bounds, differential_evolution, minimize
    from scipy.stats import qmc

    end, bounds = counter.allowed, Bounds(np.zeros(size), np.ones(size))
    counter.allowed = end - evaluations + int(EVOLUTION_SHARE * evaluations)
    points = qmc.Sobol(size, rng=rng).random(POPULATION)
    try:
        differential_evolution(counter, bounds, init=points, maxiter=10**6, tol=0.0, polish=False, rng=rng)
    except Spent:
        pass
    counter.allowed = end
    for number in range(evaluations):  # it ends by the counter
        best = rng.random(size) if counter.part_at is None else (counter.part_at + ENDS) / (1.0 + 2.0 * ENDS)
        steps = SIMPLEX[number % len(SIMPLEX)] * rng.choice((-1.0, 1.0), size)
        corners = best + np.diag(np.where(np.abs(best + steps - 0.5) <= 0.5, steps, -steps))
        minimize(counter, best, method="Nelder-Mead", bounds=bounds,
                 options={"initial_simplex": np.vstack([best, corners]), "adaptive": True, "maxfev": 10**9,
                          "maxiter": 10**9, "xatol": 1e-9, "fatol": 1e-12})
