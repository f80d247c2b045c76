"""One planner for all bounds on W2: step size and rounds to an accuracy, and what trusting them costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.algorithms.federated import Federated
from fedsim.interfaces import Algorithm, Problem
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import one_of, positive, shown, whole, whole_numbers

from ..declare.registry import TheoremLike, about, named, theorems
from ..facts import Constants, constants
from ..recursions.catalogue import recursion
from .best import COSTS, best_step_size, with_step
from .fewest import (
    BEYOND,
    SMALLEST,
    SMALLEST_SQUARE,
    TINIEST,
    OutOfReach,
    Promise,
    fewest,
    largest_below,
    largest_step,
)
from .telling import Teller


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A step size and the rounds after which a theorem promises an accuracy.

    It is made by keywords alone: the papers' own classes of plans had their fields in three other orders.

    Attributes
    ----------
    eps : float
        W2 to be reached.
    step_size : float
        The largest one, where it is a schedule.
    n_rounds : int
        Communications from which on the bound is at most eps.
    algorithm : the algorithm with this step size, and what else was chosen
    theorem : str
        Id of the theorem that promises it.
    limited_by : "hypotheses", "accuracy" or "schedule"
        Why the step size is no larger: it is the largest that the theorem allows, larger ones reach eps later
        or settle above it, or the theorem leaves no choice.
    value, floor : float or None
        The bound at `n_rounds`, and its limit; None for a rule that does not look at them.
    costs : mapping
        Communications, gradient_evaluations and floats_sent of one run.
    minimise : "rounds", "gradients" or "floats"
    tried : tuple of (local_steps, step_size, n_rounds)
        Where local steps were chosen: the best of each number of them that reaches eps.
    exact_effort : int or None
        The least effort by exact laws over the same local steps and all step sizes; None where it was not
        asked for, or the problem is not known.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> found = theory.tuning.plan("fa_ld.w2_bound", problem, fs.FALD(0.01, local_steps=2), 0.3)
    >>> found.value <= 0.3, found.limited_by, found.n_steps == 2 * found.n_rounds
    (True, 'accuracy', True)
    """

    eps: float
    step_size: float
    n_rounds: int
    algorithm: Any
    theorem: str
    limited_by: str = "accuracy"
    value: float | None = None
    floor: float | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    minimise: str = "rounds"
    tried: tuple[tuple[int, float, int], ...] = ()
    exact_effort: int | None = None

    @property
    def cap_binds(self) -> bool:
        """Whether the step size is the largest that the theorem allows."""
        return self.limited_by == "hypotheses"

    @property
    def local_steps(self) -> int:
        """Local steps in a round; 1 for algorithms without them."""
        return self.algorithm.local_steps if isinstance(self.algorithm, Federated) else 1

    @property
    def n_steps(self) -> int:
        """Local steps in all, a multiple of `local_steps`."""
        return self.n_rounds * self.local_steps

    @property
    def trajectory_length(self) -> float:
        """Leapfrog steps times their size; the step size of algorithms without them."""
        return self.step_size * (self.algorithm.leapfrog_steps if isinstance(self.algorithm, FAHMC) else 1)

    @property
    def effort(self) -> float:
        """The cost that `minimise` names, in one run."""
        return self.costs[COSTS[self.minimise]]

    @property
    def price(self) -> float:
        """Effort that the bound asks for over the least one by exact laws (NaN where that is not known)."""
        return np.nan if self.exact_effort is None else self.effort / max(self.exact_effort, 1)

    @property
    def note(self) -> str:
        """One sentence when the largest step size is what limits."""
        return "" if not self.cap_binds else (
            f"the cap step_size = {self.step_size:.4g} of {self.theorem} binds: the accuracy does not "
            "decide, and rounds fall like 1/local_steps until it does")


def plan(theorem: TheoremLike, problem: Problem | Constants, algorithm: Algorithm, eps: float, *,
         start: Any = None, **given: Any) -> Plan:
    """The step size with the fewest rounds to W2 <= eps that a theorem promises, and those rounds.

    Parameters
    ----------
    theorem : str, Theorem or callable
        As for `theory.examine`: an upper bound on W2 that has a limit, published or a recursion.
    problem : a problem, or its `Constants`
    algorithm : an algorithm that the theorem is about
        Its step size is replaced, the rest is kept; of DE-SGHMC the momentum 1 - friction step_size. A
        schedule stays: then only the rounds are looked for.
    eps : float
        W2 to be reached.
    start : optional
        As for `theory.constants`, where a problem is given.
    **given
        Further arguments of the theorem, as variant and hessian_smoothness.

    Returns
    -------
    Plan
        At its rounds the bound is at most eps, one round before it is not, and all hypotheses hold. Of a
        recursion with more than 5,000 rounds or 50,000 local steps rounds are from above, by a thousandth.

    Raises
    ------
    ValueError
        Naming argument, value and condition; where no step size within the hypotheses reaches eps, the
        smallest limit found.

    Source: none; the papers' own rules, which give half of eps to each part of their bounds, are
    `theory.<paper>.paper_plan`.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.01, local_steps=2)
    >>> for theorem in ("fa_ld.w2_bound", "fa_ld.w2_recursion"):
    ...     print(f"{theory.tuning.plan(theorem, problem, algorithm, 0.2).n_rounds:.4g}")
    1.646e+07
    115
    """
    eps, entry = positive("eps", eps), about(theorem, algorithm)
    if (entry.kind, entry.quantity, entry.index) != ("upper", "w2", "round"):
        raise ValueError(f"theorem={entry.id!r} must be an upper bound on W2 by rounds to plan with; it is "
                         f"a bound of kind {entry.kind!r} on {entry.quantity!r} by {entry.index}")
    facts = problem if isinstance(problem, Constants) else constants(problem, algorithm, start)
    return promised(entry.id, facts, algorithm, eps, problem=problem, **given)


def promised(theorem: str, facts: Constants, algorithm: Algorithm, eps: float, *,
             problem: Problem | Constants | None = None, chosen: Callable[[float], Any] | None = None,
             **given: Any) -> Plan:
    """`plan` by constants, with an algorithm that is `chosen` for each step size."""
    promise = Promise(named(theorem), facts, chosen or (lambda size: with_step(algorithm, size, True)), given)
    if algorithm.schedule.is_constant or chosen is not None:
        largest = largest_step(facts, algorithm)
        smallest = (SMALLEST_SQUARE if isinstance(algorithm, DESGHMC) else SMALLEST) * largest
        size, _, capped = fewest(promise, eps, BEYOND * largest, smallest if promise.by_rounds else TINIEST)
        limited_by = "hypotheses" if capped else "accuracy"
    else:
        promise.entry.require(algorithm)
        size, limited_by = float(algorithm.schedule.largest), "schedule"
        promise.chosen = lambda size: algorithm
        largest_below(promise, eps, size, size)
    (rounds, value), made = promise.counted(size, eps), promise.chosen(size)
    if problem is None or isinstance(problem, Constants):  # one with as many clients and dimensions
        clients = facts.n_clients or 1
        problem = Quadratic(np.ones(clients), np.zeros((clients, facts.dim)), facts.weights)
    return Plan(eps=eps, step_size=size, n_rounds=rounds, algorithm=made, theorem=promise.entry.id,
                limited_by=limited_by, value=value, floor=promise.limit(size),
                costs=made.costs(problem, rounds))


def plan_by_recursion(problem: Problem | Constants, algorithm: Algorithm, eps: float, *,
                      minimise: str = "rounds", local_steps: int | Sequence[int] = (1, 2, 3, 5, 10, 20, 50),
                      start: Any = None, hessian_smoothness: float | None = None,
                      progress: bool = False) -> Plan | None:
    """The step size, and for federated algorithms the local steps, that a recursion asks for.

    `plan` by the algorithm's recursion for each number of local steps, of which the best is taken. A plan
    holds for every problem with these constants, quadratic or not.

    Parameters
    ----------
    problem : a problem, or its `Constants`
        With a problem that has exact laws, `price` says what trusting the bound costs.
    algorithm : fedsim.FALD, FAHMC, DESGLD, DESGHMC or StaleSGLD
        Its step size is replaced, of federated algorithms also the local steps. DE-SGHMC keeps its momentum
        1 - friction step_size: at a fixed friction no step size, however small, makes its bound small.
    eps : float
        W2 to be reached.
    minimise : "rounds", "gradients" or "floats"
    local_steps : int, or sequence of them
    start : optional
        As for `theory.constants`, where a problem is given.
    hessian_smoothness : float, optional
        As for the recursions.
    progress : bool
        A line for every number of local steps, on the error stream; without it where there was none for
        some seconds.

    Returns
    -------
    Plan, or None where no step size tried has a limit below eps.

    Raises
    ------
    ValueError
        Naming argument, value and condition; for an algorithm that has no recursion.

    Source: derived here; the papers' rules are `theory.<paper>.paper_plan`.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> found = theory.tuning.plan_by_recursion(problem, fs.FALD(0.01), 0.2, local_steps=(1, 2))
    >>> found.algorithm.local_steps, found.n_rounds, found.exact_effort
    (2, 115, 2)
    """
    eps, cost = positive("eps", eps), COSTS[one_of("minimise", minimise, tuple(COSTS))]
    facts = problem if isinstance(problem, Constants) else constants(problem, algorithm, start)
    made = with_step(algorithm, SMALLEST_SQUARE * largest_step(facts, algorithm), True)
    recursion(facts, made, hessian_smoothness)  # what is wrong with the arguments is said here
    entry = next(one for one in theorems() if one.id.endswith(".w2_recursion") and isinstance(
        algorithm, one.algorithm))
    counts = [1]
    if isinstance(algorithm, Federated):
        counts = [whole("local_steps", one, 1) for one in whole_numbers("local_steps", local_steps).tolist()]
    if not counts:
        raise ValueError(f"local_steps={shown(local_steps)} must have at least one number to try")
    teller = Teller("plan_by_recursion", len(counts), one_of("progress", progress, (True, False)))
    plans: dict[int, Plan] = {}
    for done, count in enumerate(counts):
        teller.tell(done, f"next local_steps={count}")
        one: Any = with_local_steps(algorithm, count)
        try:
            plans[count] = replace(promised(
                entry.id, facts, replace(one, step_size=one.schedule.largest), eps, hessian_smoothness=
                hessian_smoothness, problem=problem), minimise=minimise)
        except OutOfReach:
            continue
    if not plans:
        return None
    exact = None if isinstance(problem, Constants) else _least(problem, algorithm, counts, eps, start, cost)
    return replace(min(plans.values(), key=lambda found: found.effort), exact_effort=exact, tried=tuple(
        (count, found.step_size, found.n_rounds) for count, found in plans.items()))


def with_local_steps(algorithm: Algorithm, count: int) -> Any:
    """The algorithm with another number of local steps, where it has one."""
    changed: Any = algorithm
    return replace(changed, local_steps=count) if isinstance(algorithm, Federated) else algorithm


def _least(problem: Problem, algorithm: Algorithm, counts: Sequence[int], eps: float, start: Any,
           cost: str) -> int | None:
    """The least effort to eps by exact laws, over local steps and step sizes; None where there is none."""
    efforts = []
    for count in counts:
        one = with_local_steps(algorithm, count)
        try:
            found = best_step_size(problem, one, eps, start=start, keep_momentum=True)
        except ValueError:  # no exact law
            continue
        if found is not None:
            efforts.append(int(with_step(one, found.step_size, True).costs(problem, found.n_rounds)[cost]))
    return min(efforts, default=None)
