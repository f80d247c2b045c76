"""compare_algorithms: what each algorithm costs to the same accuracy, each at its best step size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsim.interfaces import Algorithm, Problem, offers, validate_sizes
from fedsim.settings.limits import entries
from fedsim.settings.validation import one_of, positive, shown

from ..exact import stationary_law
from .best import COSTS, best_step_size, spent, with_step
from .telling import Teller

if TYPE_CHECKING:
    import pandas as pd

MOST = 10_000
"""Algorithms in a table."""


def compare_algorithms(problem: Problem, algorithms: Sequence[Algorithm] | Mapping[str, Algorithm],
                       eps: float, *, start: Any = None, progress: bool = False,
                       **search: Any) -> pd.DataFrame:
    """Exact rounds, gradients and floats until W2 stays <= `eps`, of each algorithm at its best step size.

    Parameters
    ----------
    problem : Problem
    algorithms : sequence of algorithms, or mapping name -> algorithm
        Their step sizes are replaced by those with the fewest rounds; all else stays as it is. To choose
        among numbers of local steps, name each: ``{"K=1": fs.FALD(0.1), "K=5": fs.FALD(0.1, 5)}``.
    eps : float
        In the problem's units.
    start : optional
        The same for all, as for `theory.exact_law`.
    progress : bool
        A line for every algorithm, on the error stream; without it where there was none for some seconds.
    **search
        Passed to `theory.tuning.best_step_size`, as n_grid, max_rounds, keep_momentum.

    Returns
    -------
    DataFrame
        One row per algorithm, in their order, with columns algorithm, step_size (the best found), rounds,
        gradients (evaluated in one run, one of each client that works; of stale algorithms one of f in each
        update), floats (sent in one run), w2 (of the stationary law at this step size, at most `eps`), reason
        (why numbers are missing, or "").

    Raises
    ------
    ValueError
        Naming argument, value and condition; for algorithms that sample different targets.

    Source: none; the exact side of the papers' tables of complexities.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> table = theory.compare_algorithms(problem, [fs.FALD(0.1), fs.FAHMC(0.1, 5)], eps=0.05)
    >>> table[["algorithm", "rounds", "gradients"]].values.tolist()
    [['FALD', 14, 28], ['FAHMC', 2, 20]]
    """
    import pandas as pd

    listed = algorithms if isinstance(algorithms, Mapping) else _named(algorithms)
    if not listed:
        raise ValueError(f"algorithms={shown(algorithms)} must have at least one")
    goal, target = positive("eps", eps), None
    one_of("progress", progress, (True, False))
    for name, one in listed.items():
        validate_sizes(problem, one, start)
        if target is not None and one.temperature != target:
            raise ValueError(f"algorithms[{shown(name)}] has temperature={one.temperature:g}, another "
                             f"{target:g}: all must sample the same target")
        target = one.temperature
    rows, teller = list[dict[str, Any]](), Teller("compare_algorithms", len(listed), progress)
    for name, one in listed.items():
        rows.append({"algorithm": name, **_row(problem, one, goal, start, search)})
        teller.tell(len(rows), f"{name}: {rows[-1]['rounds']} rounds")
    return pd.DataFrame(rows).astype(dict.fromkeys(COSTS, "Int64"))


def _named(algorithms: Any) -> dict[str, Any]:
    """By class, and where that is not enough by the parameters in which they differ."""
    try:
        given = entries("algorithms", algorithms, MOST)
    except TypeError:
        raise ValueError(f"algorithms={shown(algorithms)} must be a sequence of algorithms, or a mapping "
                         "name -> algorithm") from None
    for place, one in enumerate(given):
        offers(f"algorithms[{place}]", one, Algorithm)
    names = [_name(one, [other for other in given if type(other) is type(one)]) for one in given]
    return {name if names.count(name) == 1 else f"{name} ({place})": one
            for place, (name, one) in enumerate(zip(names, given, strict=True))}


def _name(algorithm: Any, alike: list[Any]) -> str:
    """The class, with the parameters in which those `alike` differ; all their step sizes are replaced."""
    known = [one.name for one in fields(algorithm)] if is_dataclass(algorithm) else []
    words = ", ".join(f"{name}={shown(vars(algorithm)[name])}" for name in known if name != "step_size"
                      and len({shown(vars(one)[name]) for one in alike}) > 1)
    return type(algorithm).__name__ + (f"({words})" if words else "")


def _row(problem: Problem, algorithm: Algorithm, eps: float, start: Any,
         search: Mapping[str, Any]) -> dict[str, Any]:
    row = {"step_size": np.nan, **spent(problem, algorithm, None), "w2": np.nan, "reason": ""}
    try:
        best = best_step_size(problem, algorithm, eps, start=start, **search)
    except ValueError as refusal:
        if str(refusal).startswith(tuple(f"{name}=" for name in search)):
            raise
        return row | {"reason": str(refusal)}
    if best is None:
        within = f" within max_rounds={search['max_rounds']}" if "max_rounds" in search else ""
        return row | {"reason": f"no step size tried reaches eps={eps:g} and stays within it{within}"}
    chosen = with_step(algorithm, best.step_size, search.get("keep_momentum", False))
    return row | spent(problem, chosen, best.n_rounds) | {
        "step_size": best.step_size, "w2": float(stationary_law(problem, chosen).w2(chosen.target(problem)))}
