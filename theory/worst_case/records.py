"""Found instances as data: every number in hexadecimal, so that it comes back to the last bit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import fedsim
from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.algorithms.fa_ld import FALD
from fedsim.algorithms.stale import StaleSGLD
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.participation import Participation
from fedsim.settings.schedules import Constant, Harmonic
from fedsim.settings.validation import instance, read_only, set_fields, shown

from ..exact.federated.flow import FAHMCFlow
from ..judge.verdict import Verdict
from .classes import ProblemClass
from .found import Found
from .instances import told

CLASSES: dict[str, type] = {kind.__name__: kind for kind in (
    Constant, DESGHMC, DESGLD, FAHMC, FAHMCFlow, FALD, Gaussian, Harmonic, Participation, ProblemClass,
    Quadratic, StaleSGLD)}
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
        return {"class": type(value).__name__,
                **{field.name: encoded(getattr(value, field.name)) for field in fields(value) if field.init}}
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
        return _made(kind, {name: decoded(one) for name, one in value.items() if name != "class"})
    return value


def _made(kind: type, made: dict[str, Any]) -> Any:
    """The object of its fields; weights that sum to one but for rounding are not normalised once more."""
    one = kind(**made)
    if kind is Quadratic:
        set_fields(one, weights=read_only(made["weights"]))
    return one


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
        raise ValueError(f"interrupted=True of {found!r}: only a search that ended can be made again")
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
