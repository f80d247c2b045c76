"""The targets of a search, and the functions that make instances of them from points of the unit cube."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from fedsim.interfaces import Algorithm, Problem
from fedsim.settings.validation import Array, instance, one_of, shown

from ..declare.registry import Theorem, named, theorems
from ..facts import Constants, constants
from ..judge.examining import bound_of
from .algorithm_templates import FORMS, Cube, Draft, Form
from .exact_values import OBJECTIVES, START, STATIONARY, Instance
from .problem_class import ProblemClass

PROBED = 1e-3
"""Of the largest step size: where the margins are read."""
AT_LIMIT, BELOW = 1.0 - 1e-12, 1.0 - 1e-9
"""Of a limit that belongs to the interval, and of one that does not."""


@dataclass
class StepLimits:
    """Reads limits from the margins of a theorem's hypotheses.

    A margin is 1 - value/limit, and a value is a power of the step size: two readings give the power, which
    is kept, and each further problem needs one.
    """

    entry: Theorem
    variant: str
    powers: dict[str, float] = field(default_factory=dict)

    def largest(self, draft: Draft, facts: Constants) -> float:
        """For this problem, algorithm and start; at most `draft.largest`."""
        first = PROBED * draft.largest
        shares = self._shares(draft, facts, first)
        if set(shares) - set(self.powers):
            for name, half in self._shares(draft, facts, 0.5 * first).items():
                told = shares.get(name, 0.0) > 0.0 and half > 0.0
                self.powers[name] = round(math.log2(shares[name] / half), 6) if told else 0.0
        limits = [draft.largest]
        for name, share in shares.items():
            power = self.powers.get(name, 0.0)
            if power > 0.1 and share > 0.0:
                limits.append(first * share ** (-1.0 / power) * (BELOW if " < " in name else AT_LIMIT))
        return min(limits)

    def _shares(self, draft: Draft, facts: Constants, step: float) -> dict[str, float]:
        """value / limit of every hypothesis."""
        bound = bound_of(self.entry, draft.problem, draft.make(step), 1, facts, start=draft.start,
                         variant=self.variant)
        return {one.name: 1.0 - one.margin for one in bound.assumptions}


SMALLEST_STEP = 1e-4
"""Of the largest step size."""
CORNERS = 6
"""Of so many coordinates all corners are tried before a search; of the others both ends together."""
AT_CORNERS = ("curvature", "step_size", "angle")
MOST_UNKNOWNS = 64


@dataclass
class Maker:
    """Instances of a class for a form; `limits` of a theorem, None for a quantity without one."""

    cls: ProblemClass
    form: Form
    limits: StepLimits | None = None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("dim", "n_clients"):
            if isinstance(several := getattr(self.cls, name), tuple):
                raise ValueError(f"{name}={several} of the problem class must be one number for a search")
        cube = Cube()
        draft = self.form.body(cube, self.cls)
        self._read(cube, draft)
        self.names = tuple(cube.names)
        if self.cls.step_size is None and draft.has_step and self.limits is None:
            raise ValueError("step_size=None of the problem class must be given for a quantity without a "
                             "theorem: no hypothesis limits it")
        if self.size > MOST_UNKNOWNS:
            raise ValueError(f"n_clients={self.cls.n_clients} in dim={self.cls.dim} make {self.size} "
                             f"unknowns; they must be at most {MOST_UNKNOWNS}: beyond, no search finds its "
                             "way")

    @property
    def size(self) -> int:
        """Unknowns."""
        return len(self.names)

    def _read(self, cube: Cube, draft: Draft) -> tuple[int, float]:
        """Rounds, and the step size or its share of the largest."""
        rounds = cube.pick("n_rounds", self.cls.n_rounds)
        if not draft.has_step:
            return rounds, 1.0
        low, high = (SMALLEST_STEP, 1.0) if self.cls.step_size is None else self.cls.step_size
        return rounds, cube.log("step_size", low, high)

    def __call__(self, point: Any, factor: float = 1.0) -> Instance:
        """The instance of a point (p,) of the cube, its step size times a factor."""
        cube = Cube(point)
        draft = self.form.body(cube, self.cls)
        rounds, size = self._read(cube, draft)
        known = None
        if self.limits is not None:
            given = draft.problem, draft.make(draft.largest), draft.start
            known = told(self.cls, *given)
            if draft.has_step and self.cls.step_size is None:
                size *= self.limits.largest(draft, constants(*given) if known is None else known)
        return Instance(draft.problem, draft.make(factor * size), draft.start, rounds, known)

    def corners(self) -> Iterator[Array]:
        """Points at which a class must be within hypotheses, and stable, if it is anywhere."""
        axes = [i for i, name in enumerate(self.names) if name in AT_CORNERS][:CORNERS]
        for ends in product((0.0, 1.0), repeat=len(axes)):
            for rest in (0.0, 0.5, 1.0):
                point = np.full(self.size, rest)
                point[axes] = ends
                yield point


def told(cls: ProblemClass, problem: Problem, algorithm: Algorithm, start: Any) -> Constants | None:
    """What a bound is told on an instance of a class, where it is not what `theory.constants` finds."""
    if cls.constants == "instance":
        return None
    low, high = cls.curvatures
    return replace(constants(problem, algorithm, start), strong_convexity=low, smoothness=high)


FREE_OF_START: Any = {"start": 0.0, "start_variance": 0.0, "n_rounds": 1}
"""What stationary laws do not depend on is not searched."""
NOT_OF_PROBLEMS = "privacy_"
"""How quantities begin that do not depend on curvatures."""
SIMPLEST = ProblemClass(local_steps=1, leapfrog_steps=1, staleness=0)
"""What a theorem speaks about if it speaks about any of its form."""


def aims() -> tuple[str, ...]:
    """What can be searched: theorems with bounds for which there are instances, and quantities.

    Examples
    --------
    >>> "fa_ld.w2_bound" in theory.worst_case.aims(), "fa_ld.stationary_w2" in theory.worst_case.aims()
    (True, True)
    """
    bounds = [entry.id for entry in theorems() if entry.kind != "rate" and _form_of(entry) is not None]
    return (*bounds, *(f"{name}.{what}" for name in FORMS for what in ("w2", *STATIONARY)))


def _form_of(entry: Theorem) -> Form | None:
    """The first form that a theorem speaks about."""
    if entry.quantity.startswith(NOT_OF_PROBLEMS):
        return None
    for one in FORMS.values():
        draft = one.body(Cube(), SIMPLEST)
        algorithm = draft.make(0.1 * draft.largest)
        if isinstance(algorithm, entry.algorithm) and entry.applies(algorithm, draft.problem):
            return one
    return None


def aimed(aim: Any) -> str:
    """What is searched: one of `aims`, which for a theorem is its id, whatever it was named by."""
    name, _, quantity = aim.rpartition(".") if isinstance(aim, str) else ("", "", "")
    return aim if name in FORMS and quantity in ("w2", *STATIONARY) else named(aim, name="aim").id


def maker_of(aim: str, cls: ProblemClass, objective: str, variant: str | None) -> tuple[Maker, str]:
    """What makes instances, and the variant, "" for a quantity; after every check of the arguments."""
    aim = aimed(aim)
    name, _, quantity = aim.rpartition(".")
    entry = next((one for one in theorems() if one.id == aim), None)
    if entry is None:
        for argument, value, without in (("variant", variant, None), ("objective", objective, "ratio")):
            if value != without:
                raise ValueError(f"{argument}={shown(value)} must be left out for a quantity without a "
                                 "theorem")
        return Maker(cls if quantity == "w2" else replace(cls, **FREE_OF_START), FORMS[name]), ""
    if entry.kind == "rate":
        raise ValueError(f"aim={shown(aim)} must be a bound, or a quantity: a rate holds up to an unknown "
                         "constant")
    found = _form_of(entry)
    if found is None:
        raise ValueError(f"aim={shown(aim)} has no instances to search: they are made for {', '.join(FORMS)}")
    chosen = str(one_of("variant", entry.variants[0] if variant is None else variant, entry.variants))
    if objective == "stationary":
        cls = replace(cls, **FREE_OF_START)
    maker = Maker(cls, found, StepLimits(entry, chosen))
    _require_objective(entry, objective, maker, chosen)
    return maker, chosen


def unknowns(aim: str, problem_class: ProblemClass | None = None, *, objective: str = "ratio") -> int:
    """How many numbers a search chooses; a budget of 100 for each of them looks everywhere.

    Examples
    --------
    >>> theory.worst_case.unknowns("fa_ld.w2_bound"), theory.worst_case.unknowns("stale.w2_recursion")
    (11, 7)
    """
    cls = ProblemClass() if problem_class is None else instance("problem_class", problem_class, ProblemClass)
    return maker_of(aim, cls, objective, None)[0].size


def objectives(aim: str) -> tuple[str, ...]:
    """What can be made as large as possible of a theorem; see `search`.

    Examples
    --------
    >>> theory.worst_case.objectives("fa_ld.w2_bound")
    ('ratio', 'excess', 'stationary')
    """
    found = []
    for objective in OBJECTIVES:
        try:
            maker_of(aim, SIMPLEST, objective, None)
        except ValueError:
            if objective == "ratio":
                raise
        else:
            found.append(objective)
    return tuple(found)


def _require_objective(entry: Theorem, objective: str, maker: Maker, variant: str) -> None:
    one_of("objective", objective, OBJECTIVES)
    if objective == "ratio":
        return
    one = maker(np.full(maker.size, 0.5))
    bound, _ = replace(one, n_rounds=1, known=None).sides(entry, variant)
    if objective == "excess" and (START not in bound.terms or len(bound.terms) < 2):
        raise ValueError(f"objective='excess' of {entry.id} must have a term {START!r} beside others; its "
                         f"terms are {', '.join(bound.terms)}")
    if objective == "stationary" and (not bound.floor or entry.quantity != "w2" or entry.kind != "upper"):
        raise ValueError(f"objective='stationary' of {entry.id} must be an upper bound on W2 with a limit")
