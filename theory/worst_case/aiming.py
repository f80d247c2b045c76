"""What can be searched for, and what makes the instances of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.settings.validation import instance, one_of

from ..declare.registry import Theorem, named, theorems
from ..facts.constants_of_problem import constants
from ..judge.examining import both_sides
from .classes import ProblemClass
from .cube import Cube
from .forms import FORMS, Form
from .instances import Maker
from .limits import StepLimits
from .values import OBJECTIVES, START, STATIONARY

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
                raise ValueError(f"{argument}={value!r} must be left out for a quantity without a theorem")
        return Maker(cls if quantity == "w2" else replace(cls, **FREE_OF_START), FORMS[name]), ""
    if entry.kind == "rate":
        raise ValueError(f"aim={aim!r} must be a bound, or a quantity: a rate holds up to an unknown "
                         "constant")
    found = _form_of(entry)
    if found is None:
        raise ValueError(f"aim={aim!r} has no instances to search: they are made for {', '.join(FORMS)}")
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
    facts = constants(one.problem, one.algorithm, one.start)
    bound, _ = both_sides(entry, one.problem, one.algorithm, 1, facts, start=one.start, variant=variant)
    if objective == "excess" and (START not in bound.terms or len(bound.terms) < 2):
        raise ValueError(f"objective='excess' of {entry.id} must have a term {START!r} beside others; its "
                         f"terms are {', '.join(bound.terms)}")
    if objective == "stationary" and (not bound.floor or entry.quantity != "w2" or entry.kind != "upper"):
        raise ValueError(f"objective='stationary' of {entry.id} must be an upper bound on W2 with a limit")
