"""sweep: the exact laws of many settings of an algorithm, in one tidy table."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fedsim.hints import did_you_mean
from fedsim.interfaces import Algorithm, Problem, validate_sizes
from fedsim.settings.limits import entries
from fedsim.settings.validation import one_of, positive, shown, whole
from fedsim.stability.federated import curvatures

from ..declare.registry import Theorem, about
from ..exact import stationary_law
from ..exact.federated.together import laws_together
from ..facts.constants_of_problem import constants
from .best import COSTS, spent
from .first_round import rounds_to
from .first_rounds_together import crossings, goal_of
from .telling import say

if TYPE_CHECKING:
    import pandas as pd

MOST = 100_000
"""Settings in a table."""
TOGETHER = 200
"""Step sizes treated at a time."""
Row = dict[str, Any]


def sweep(problem: Problem, algorithm: Algorithm, *, eps: float | None = None, start: Any = None,
          max_rounds: int = 10**9, theorem: Any = None, progress: bool = False,
          **settings: Any) -> pd.DataFrame:
    """Exact laws for every combination of settings: stability, distance of the limit, rounds to an accuracy.

    Parameters
    ----------
    problem, algorithm, start
        As for `theory.exact_law`; what is not varied stays as the algorithm has it.
    eps : float, optional
        W2 to be reached, in the problem's units.
    max_rounds : int
        Look no further for it.
    theorem : str, Theorem or callable, optional
        As for `theory.examine`: one with a limit, which is put beside the exact one.
    progress : bool
        A line for every combination of what is varied besides the step size, on the error stream. Ctrl-C
        ends with the rows that are done.
    **settings : sequences, or mappings name -> value
        What is varied, by the algorithm's own names, as ``step_size=[0.01, 0.02]``; a single value is fixed.
        Of a mapping the names stand in the table, as of ``mixing={"ring": fs.network.ring(10)}``.

    Returns
    -------
    DataFrame
        One row per combination, the last setting changing fastest, with a column for each setting and

        stable : True, False, or None for what the algorithm refuses
        radius : float
            Of the round map, see `fedsim.stability`: below 1 where stable.
        w2 : float
            Of the stationary law to the target: the error that more rounds do not remove. NaN where there
            is no such law.
        eps, rounds, gradients, floats
            With `eps`: the first round at which W2 is at most that, as `theory.tuning.rounds_to` finds it
            (beyond round 1,024 a dip between the rounds that it looks at is not seen), and what one run costs
            up to it. NA where there is none, and where `w2` is above `eps`: W2 does not stay within it.
        bound, vacuous
            With `theorem`: the limit of its bound, and whether that is not below the distance at the start.
        reason : str
            Why a number is missing, "" where none is.

    Raises
    ------
    TypeError
        For what is no parameter of the algorithm.
    ValueError
        Naming argument, value and condition; for values that no combination allows.

    Constant step sizes are treated many at once where all clients take part in each round, others one by one.

    Source: none; the exact side of the papers' grids.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> table = theory.sweep(problem, fs.FALD(0.1), step_size=[0.02, 0.1], local_steps=[1, 5], eps=0.05)
    >>> table[["step_size", "local_steps", "rounds"]].values.tolist()
    [[0.02, 1, 67], [0.02, 5, 16], [0.1, 1, 14], [0.1, 5, <NA>]]
    >>> table["reason"].iloc[-1]
    'W2 does not stay within eps: its limit is 0.115'
    """
    import pandas as pd

    validate_sizes(problem, algorithm, start)
    goal = None if eps is None else positive("eps", eps)
    limit = whole("max_rounds", max_rounds, 0, 2**53)
    one_of("progress", progress, (True, False))
    entry = None if theorem is None else about(theorem, algorithm)
    if entry is not None and (entry.kind == "rate" or entry.inputs is not None):
        raise ValueError(f"theorem={entry.id!r} must be a bound with a limit (floor), as those on W2 are")
    varied = {name: _values(algorithm, name, value) for name, value in settings.items()}
    count = int(np.prod([len(values) for values in varied.values()], dtype=float))
    if count > MOST:
        raise ValueError(f"settings of {count} combinations must have at most {MOST}; vary less at a time")
    made = [_made(algorithm, varied, labels) for labels in itertools.product(*varied.values())]
    _refuse_hopeless(varied, made)
    rows: dict[int, Row] = {}
    groups, begun = _groups(list(varied), made), time.monotonic()
    try:
        for done, members in enumerate(groups, 1):
            some = [made[place][1] for place in members]
            known = _together(problem, some, goal, start, limit)
            for i, (place, one) in enumerate(zip(members, some, strict=True)):
                row = _row(problem, one, goal, start, limit, known.get(i))
                beside = {} if entry is None else _limit(entry, problem, one, start)
                rows[place] = {**made[place][0], **row, **beside, "reason": "; ".join(
                    filter(None, (row["reason"], beside.get("reason", ""))))}
            if progress:
                say(f"sweep: {done} of {len(groups)} combinations", begun)
    except KeyboardInterrupt:
        if not rows:
            raise
    table = pd.DataFrame([rows[place] for place in sorted(rows)])
    for name, values in varied.items():
        if None in values:  # pandas would write NaN
            table[name] = pd.Series([rows[place][name] for place in sorted(rows)], dtype=object)
    return table.astype({} if goal is None else dict.fromkeys(COSTS, "Int64"))


def _values(algorithm: Any, name: str, value: Any) -> dict[Any, Any]:
    """What is varied: label -> value."""
    known = [one.name for one in fields(algorithm)] if is_dataclass(algorithm) else []
    kind = type(algorithm)
    if name not in known:
        told = getattr(kind, "_aliases", {}).get(name, "")
        end = f": write {told}" if told else did_you_mean(name, known) or f", which has {', '.join(known)}"
        raise TypeError(f"{name}={shown(value)} is no parameter of {kind.__name__}{end}")
    if isinstance(value, Mapping):
        found = dict(value)
    else:
        several = isinstance(value, (list, tuple, range)) or (
            isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", 1) == 1)
        listed = entries(name, value, MOST) if several else [value]
        plain = [one.item() if isinstance(one, np.generic) else one for one in listed]
        found = {one if isinstance(one, (bool, int, float, str, type(None))) else shown(one): one
                 for one in plain}
        if len(found) < len(listed):
            raise ValueError(f"{name}={shown(value)} must have values that differ, or names for them: "
                             f"{name}={{'first': ..., 'second': ...}}")
    if not found:
        raise ValueError(f"{name}={shown(value)} must have at least one value")
    return found


def _made(algorithm: Any, varied: Mapping[str, dict[Any, Any]], labels: tuple[Any, ...]) -> tuple[Row, Any]:
    """The columns of a combination, and the algorithm; or its refusal."""
    columns = dict(zip(varied, labels, strict=True))
    try:
        return columns, replace(algorithm, **{name: varied[name][label] for name, label in columns.items()})
    except ValueError as refusal:
        return columns, refusal


def _refuse_hopeless(varied: Mapping[str, dict[Any, Any]], made: list[tuple[Row, Any]]) -> None:
    """Raise the refusal of a value that no combination allows."""
    for name, values in varied.items():
        for label in values:
            those = [one for columns, one in made if columns[name] == label]
            if those and all(isinstance(one, ValueError) for one in those):
                raise those[0]


def _groups(names: list[str], made: list[tuple[Row, Any]]) -> list[list[int]]:
    """Places that differ in the step size alone."""
    groups: dict[Any, list[int]] = {}
    for place, (columns, _) in enumerate(made):
        key = tuple(repr(columns[name]) for name in names if name != "step_size")
        groups.setdefault(key, []).append(place)
    return [members[i:i + TOGETHER] for members in groups.values() for i in range(0, len(members), TOGETHER)]


class _Known(NamedTuple):
    """Radius, W2 of the limit, and the first round within eps (or -1) of a setting treated with others."""

    radius: float
    floor: float = np.nan
    first: int = -1


def _together(problem: Problem, algorithms: list[Any], eps: float | None, start: Any, limit: int,
              ) -> dict[int, _Known]:
    """By place, of those with a constant step size that have such laws, or are not stable."""
    alike = [place for place, one in enumerate(algorithms)
             if not isinstance(one, ValueError) and one.schedule.is_constant]
    sizes = np.array([algorithms[place].schedule.largest for place in alike])
    try:
        laws = laws_together(problem, algorithms[alike[0]], sizes, start) if alike else None
        if laws is None:
            return {}
        judged = problem.curvature_problem()
        modes = curvatures(judged)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # infinite: not stable
            radii = np.array([algorithms[place]._radius_at(judged, modes, size)
                              for place, size in zip(alike, sizes.tolist(), strict=True)])
    except ValueError:  # each has its own words for it
        return {}
    known = {alike[i]: _Known(float(radii[i])) for i in np.flatnonzero(~(radii < 1.0))}
    finite = np.isfinite(laws.covs).reshape(len(sizes), -1).all(axis=1)
    good = np.flatnonzero(laws.contracts & (radii < 1.0) & finite)
    if not len(good):
        return known
    goal = goal_of(laws.of(good), algorithms[alike[0]].target(problem))
    floors, found = goal.floor(), np.full(len(good), -1)
    if eps is not None and (stays := np.flatnonzero(floors <= eps)).size:
        found[stays] = crossings(goal.of(stays), eps, limit).rounds
    return known | {alike[i]: _Known(float(radii[i]), float(floor), int(first))
                    for i, floor, first in zip(good, floors, found, strict=True)}


def _row(problem: Problem, algorithm: Algorithm, eps: float | None, start: Any, limit: int,
         known: _Known | None) -> Row:
    """What is found of a setting, by the functions that a user would call where it is not `known`."""
    row: Row = {"stable": None, "radius": np.nan, "w2": np.nan, "reason": ""}
    first = None
    try:
        if isinstance(algorithm, ValueError):
            raise ValueError(f"refused: {algorithm}")
        radius = float(algorithm._radius(problem)) if known is None else known.radius
        stable = algorithm._is_stable(problem) if known is None else radius < 1.0
        row |= {"stable": bool(stable), "radius": radius}
        if not stable:
            raise ValueError(f"unstable: the round map has radius {radius:.6g}")
        row["w2"] = known.floor if known is not None else float(
            stationary_law(problem, algorithm).w2(algorithm.target(problem)))
        if eps is not None and row["w2"] > eps:
            raise ValueError(f"W2 does not stay within eps: its limit is {row['w2']:.3g}")
        if eps is not None:
            first = rounds_to(problem, algorithm, eps, start=start, max_rounds=limit) if known is None else (
                known.first if known.first >= 0 else None)
            if first is None:
                raise ValueError(f"W2 is above eps up to max_rounds={limit}")
    except ValueError as reason:
        row["reason"] = str(reason)
    return row if eps is None else row | {"eps": eps, **spent(problem, algorithm, first)}


def _limit(entry: Theorem, problem: Problem, algorithm: Algorithm, start: Any) -> Row:
    """The limit of a theorem's bound."""
    nothing: Row = {"bound": np.nan, "vacuous": None}
    if isinstance(algorithm, ValueError):
        return nothing
    try:
        entry.require(algorithm, problem)
        bound = entry.function(constants(problem, algorithm, start), algorithm, n_rounds=0)
    except ValueError as refusal:
        return nothing | {"reason": f"{entry.id}: {refusal}"}
    if bound.floor is None:
        return nothing | {"reason": f"{entry.id} has no limit"}
    words = "" if bound.hypotheses_hold else f"{entry.id}: fails {'; '.join(bound.violated)}"
    return {"bound": bound.floor, "vacuous": bound.always_vacuous, "reason": words}
