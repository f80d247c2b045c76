"""The step size with the fewest exact rounds to an accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.interfaces import Algorithm, Problem, validate_sizes
from fedsim.settings.validation import one_of, positive, shown, whole

from .searching import Search, Trial, TunedStep as TunedStep, with_step
from .telling import Teller

COSTS = {"rounds": "communications", "gradients": "gradient_evaluations", "floats": "floats_sent"}
"""Names of costs in tables and plans, and those of one run."""


def spent(problem: Problem, algorithm: Algorithm, n_rounds: int | None) -> dict[str, Any]:
    """What a run of so many rounds costs, by those names; None where there is no such run."""
    costs = {} if n_rounds is None else algorithm.costs(problem, n_rounds)
    told = {name: round(costs[key]) if key in costs else None for name, key in COSTS.items()}
    return told | {"rounds": n_rounds}  # rounds of a sampler may have several communications, or none


def best_step_size(problem: Problem, algorithm: Algorithm, eps: float, *, start: Any = None,
                   smallest: float | None = None, n_grid: int = 25, n_refine: int = 3,
                   max_rounds: int = 10**9, keep_momentum: bool = False) -> TunedStep | None:
    """Step size with the fewest exact rounds to W2 <= `eps`, of those whose W2 stays within it.

    Those are step sizes with a stationary W2 of at most `eps`; one that only passes through counts as not
    reaching it. A logarithmic grid of step sizes up to the stability limit, refined around its best
    entry. Among equal numbers of rounds the smallest step size wins, the one with least bias. Everything
    else of the algorithm stays; step sizes that it excludes (DE-SGHMC beyond 1/friction) count as not
    reaching `eps`. What takes longer than some seconds says so on the error stream.

    Parameters
    ----------
    problem, algorithm, eps, start
        As for `rounds_to`; the algorithm's step size is replaced.
    smallest : float, optional
        Smallest step size tried, default 1e-6 of the stability limit.
    n_grid, n_refine : int
        Entries per grid and refinements.
    max_rounds : int
    keep_momentum : bool
        For DE-SGHMC: friction times step size stays, instead of the friction.

    Returns
    -------
    TunedStep, or None when no step size that was tried reaches `eps`.

    Source: none; the exact side of the papers' planned step sizes.
    Raises: ValueError as for `rounds_to`, without a stability limit, and for `smallest` beyond it.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> theory.tuning.best_step_size(problem, fs.FALD(0.01, local_steps=5), 0.05).n_rounds
    11
    """
    return best_step_sizes(problem, algorithm, [eps], start=start, smallest=smallest, n_grid=n_grid,
                           n_refine=n_refine, max_rounds=max_rounds, keep_momentum=keep_momentum)[0]


def best_step_sizes(problem: Problem, algorithm: Algorithm, accuracies: Sequence[float], *,
                    start: Any = None, smallest: float | None = None, n_grid: int = 25, n_refine: int = 3,
                    max_rounds: int = 10**9, keep_momentum: bool = False) -> list[TunedStep | None]:
    """`best_step_size` for each of these accuracies, with laws that are made once for all."""
    validate_sizes(problem, algorithm, start)
    wanted = [positive("eps", eps) for eps in accuracies]
    n_grid = whole("n_grid", n_grid, 5, 10**6)
    one_of("keep_momentum", keep_momentum, (False, True))
    limit = _limit(problem, algorithm, keep_momentum)
    low = limit * 1e-6 if smallest is None else positive("smallest", smallest)
    high = limit * (1.0 - 1e-9)
    if low >= high:
        raise ValueError(f"smallest={low:g} must be less than the stability limit {limit:g}")
    count = whole("n_refine", n_refine) + 1
    teller = Teller(f"step sizes of {type(algorithm).__name__}", count, False)
    searches = [Search(eps, low, high, whole("max_rounds", max_rounds, 0, 2**53)) for eps in wanted]
    trial = Trial(problem, algorithm, start, keep_momentum)
    for number in range(1, count + 1):
        live = [(search, search.steps(n_grid)) for search in searches if not search.done]
        if not live:
            break
        found = trial.first_rounds([(search.eps, search.cutoff, steps) for search, steps in live])
        for (search, steps), rounds in zip(live, found, strict=True):
            search.take(dict(zip(steps, rounds, strict=True)))
        teller.tell(number, "grids")
    return [search.result for search in searches]


def _limit(problem: Problem, algorithm: Algorithm, keep_momentum: bool) -> float:
    """The largest step size worth trying: the stability limit; with a momentum that is kept, from above."""
    if keep_momentum and isinstance(algorithm, DESGHMC):  # with equal curvatures momentum beta has (1 + beta)
        return float(np.sqrt(2.0 * DESGLD(1.0, algorithm.mixing).stability(problem).max_step_size))
    stability = with_step(algorithm, algorithm.schedule.largest).stability(problem)
    if not np.isfinite(stability.max_step_size):
        advice = "; give step sizes to rounds_to instead" if stability.stable else ""
        raise ValueError(f"algorithm={shown(algorithm)} on this problem: {stability.limit}{advice}")
    return stability.max_step_size
