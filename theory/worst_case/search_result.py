"""The result of a search: a value, the instance that attains it, whether the restarts agree; and it as data.

Every number of a record is in hexadecimal, so that it comes back to the last bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

import fedsim
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.participation import Participation
from fedsim.settings.schedules import Constant, Harmonic
from fedsim.settings.validation import instance, read_only, set_fields, shown

from ..declare.registry import named
from ..judge.examining import examine
from ..judge.verdict import Verdict
from .algorithm_templates import FORMS
from .exact_values import Instance, Value, of_quantity, of_theorem
from .problem_class import ProblemClass
from .targets import told

AGREE = 0.01
"""Restarts agree where the third best is so near the best."""
ENOUGH = 100
"""Evaluations per unknown, below which a search has not looked everywhere."""
SAME = 1e-9
"""Relative difference to which a value comes again."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Found(Instance):
    """The largest value that a search found, and the instance that attains it.

    Attributes
    ----------
    aim : str
        The theorem's id, or the quantity.
    variant, objective : str
        "" for quantities.
    value : float
    problem, algorithm, start, n_rounds
        The instance.
    known : Constants or None
        What the bound was told, where it is not what `theory.constants` finds.
    round : int or None
        At which round the value is attained; None for what is stationary.
    binding : str
        The bound's largest term there.
    problem_class : ProblemClass
    budget, evaluations, seed : int
    parts : tuple of (name, value)
        The best of DIRECT, and of each restart.
    lost : int
        Evaluations without a value: outside the hypotheses, or refused.
    interrupted : bool

    Examples
    --------
    >>> cls = theory.worst_case.ProblemClass(condition=10.0)
    >>> found = theory.worst_case.search("fa_hmc.divergence_bound", cls, budget=400)
    >>> round(found.value, 6), found.verify().holds, found.problem.n_clients
    (0.5, True, 2)
    """

    aim: str
    variant: str
    objective: str
    value: float
    round: int | None
    binding: str
    problem_class: ProblemClass
    budget: int
    evaluations: int
    seed: int
    parts: tuple[tuple[str, float], ...]
    lost: int = 0
    interrupted: bool = False
    unknowns: int = 0

    @property
    def spread(self) -> tuple[float, ...]:
        """The best of every restart, which a reader compares."""
        return tuple(value for name, value in self.parts if name != "direct")

    @property
    def agreed(self) -> bool:
        """Whether three parts came within 1 percent of the best, with 100 evaluations per unknown.

        Even then it is found, not proved, that nothing in the class is worse; `certify` proves.
        """
        best = sorted((value for _, value in self.parts), reverse=True)
        near = len(best) >= 3 and best[2] >= self.value - AGREE * abs(self.value)
        return near and self.evaluations >= ENOUGH * self.unknowns and not self.interrupted

    def verify(self) -> Verdict | float:
        """The instance again: the verdict of `theory.examine` on it, or the quantity.

        Raises
        ------
        ValueError
            Where another value comes out than was found, or the instance is outside the hypotheses.
        """
        again = evaluate(self.aim, self.variant, self.objective, self)
        if not again.inside:
            raise ValueError(f"aim={self.aim!r}: the instance is outside the hypotheses")
        same = SAME
        if self.variant:  # what rounding may do to the exact quantity differs between processors
            _, measured = self.sides(named(self.aim), self.variant)
            size = float(np.abs(measured.value).max())
            same = max(SAME, measured.rounding * max(measured.scale, size) / size if size > 0.0 else 0.0)
        if not abs(again.value - self.value) <= same * abs(self.value):
            raise ValueError(f"value={self.value!r} of {self.aim} comes out as {again.value!r}; it must be "
                             f"the same to {same:g}")
        if not self.variant:
            return again.value
        return examine(self.aim, self.problem, self.algorithm, self.n_rounds, start=self.start,
                       variant=self.variant, known=self.known)

    def __repr__(self) -> str:
        what = f"{self.aim} ({self.variant}, {self.objective})" if self.variant else self.aim
        state = ("interrupted" if self.interrupted else "the restarts agree" if self.agreed
                 else "the restarts do not agree, or were few")
        return (f"Found({what}: {self.value:.6g} in {self.evaluations} evaluations, {state}; "
                f"binding: {self.binding or '-'})")


def evaluate(aim: str, variant: str, objective: str, at: Instance) -> Value:
    """What an instance comes to."""
    if not variant:
        return of_quantity(aim.rpartition(".")[2], at)
    return of_theorem(named(aim), variant, objective, at)


CLASSES: dict[str, type] = {kind.__name__: kind for kind in (
    *(form.algorithm for form in FORMS.values()), Constant, Gaussian, Harmonic, Participation, ProblemClass,
    Quadratic)}
"""What a record may name."""
KEPT = ("aim", "variant", "objective", "value", "problem_class", "budget", "evaluations", "seed", "parts",
        "lost", "unknowns", "round", "binding", "problem", "algorithm", "start", "n_rounds")


def encoded(value: Any) -> Any:
    """As JSON has it: floats in hexadecimal, arrays as lists, objects by their fields."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, (np.ndarray, list, tuple)):
        return [encoded(one) for one in value]
    if isinstance(value, Gaussian):
        return {"class": "Gaussian", "mean": encoded(value.mean), "cov": encoded(value.variances)}
    if is_dataclass(value) and type(value).__name__ in CLASSES:
        kept = [one.name for one in fields(value) if one.init and not (
            one.metadata.get("later") and getattr(value, one.name) == one.default)]
        return {"class": type(value).__name__, **{name: encoded(getattr(value, name)) for name in kept}}
    raise ValueError(f"value={shown(value)} must be a number, an array, or one of {', '.join(CLASSES)}")


def decoded(value: Any) -> Any:
    """What `encoded` was given; lists of numbers become arrays."""
    if isinstance(value, str) and value.lstrip("-").startswith("0x"):
        return float.fromhex(value)
    if isinstance(value, list):
        items = [decoded(one) for one in value]
        return tuple(items) if all(isinstance(one, int) for one in items) else np.array(items)
    if isinstance(value, Mapping):
        kind = CLASSES.get(value.get("class", ""))
        if kind is None:
            raise ValueError(f"class={value.get('class')!r} must be one of {', '.join(CLASSES)}")
        made = {name: decoded(one) for name, one in value.items() if name != "class"}
        found = kind(**made)
        if kind is Quadratic:  # weights that sum to one but for rounding are not normalised once more
            set_fields(found, weights=read_only(made["weights"]))
        return found
    return value


def digest(record: Mapping[str, Any]) -> str:
    """Of all of a record but itself: a change of one bit anywhere changes it."""
    kept = {name: value for name, value in record.items() if name != "digest"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def to_record(found: Found) -> dict[str, Any]:
    """What a search found, as JSON has it.

    Parameters
    ----------
    found : Found

    Returns
    -------
    dict
        With a "digest" of all the rest.

    Raises
    ------
    ValueError
        For a search that was interrupted: another run would not come to it.

    Source: derived here.

    Examples
    --------
    >>> cls = theory.worst_case.ProblemClass(local_steps=1, n_rounds=1)
    >>> record = theory.worst_case.to_record(theory.worst_case.search("fa_ld.w2_bound", cls, budget=40))
    >>> record["problem"]["class"], theory.worst_case.verify(record).holds
    ('Quadratic', True)
    """
    if instance("found", found, Found).interrupted:
        raise ValueError(f"interrupted=True of {shown(found)}: only a search that ended can be made again")
    record = {name: encoded(getattr(found, name)) for name in KEPT}
    record["parts"] = [[name, encoded(value)] for name, value in found.parts]
    record["version"] = fedsim.__version__
    return {**record, "digest": digest(record)}


def from_record(record: Mapping[str, Any]) -> Found:
    """The `Found` of a record; a ValueError where anything of it was changed.

    Examples
    --------
    >>> cls = theory.worst_case.ProblemClass(local_steps=1, n_rounds=1)
    >>> found = theory.worst_case.search("fa_ld.w2_bound", cls, budget=40)
    >>> theory.worst_case.from_record(theory.worst_case.to_record(found)).value == found.value
    True
    """
    missing = {*KEPT, "digest", "version"} - set(instance("record", record, Mapping))
    if missing:
        raise ValueError(f"record={shown(dict(record))} must have {', '.join(sorted(missing))}")
    if digest(record) != record["digest"]:
        raise ValueError(f"digest={record['digest']!r} of the record of {record['aim']} is not that of what "
                         "it says: it was changed")
    made = {name: decoded(record[name]) for name in KEPT if name != "parts"}
    parts = tuple((name, decoded(value)) for name, value in record["parts"])
    return Found(**made, parts=parts, known=told(made["problem_class"], made["problem"], made["algorithm"],
                                                 made["start"]))


def verify(record: Mapping[str, Any]) -> Verdict | float:
    """The instance of a record again: see `Found.verify`.

    Raises
    ------
    ValueError
        Where the record was changed, or another value comes out.

    Source: derived here.

    Examples
    --------
    >>> cls = theory.worst_case.ProblemClass(local_steps=1, n_rounds=1)
    >>> record = theory.worst_case.to_record(theory.worst_case.search("fa_ld.w2_bound", cls, budget=40))
    >>> theory.worst_case.verify(record | {"budget": 41})
    Traceback (most recent call last):
    ...
    ValueError: digest=...
    """
    return from_record(record).verify()
