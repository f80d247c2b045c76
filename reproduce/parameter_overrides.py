"""`--set`: a figure with other parameters than its own, and how everything made of it says so.

A claim of a paper is then not judged: a parameter that somebody chose says nothing about the paper's set-up.
"""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedsim.hints import choice, shown

from . import store
from .claims import Claim, Finding
from .figure import BadInput, Figure, Parameter, Tables
from .verdicts import NOT_TESTABLE, Judgement

Changes = Mapping[str, Any]
FAILURES = (ValueError, LookupError, ArithmeticError, TypeError, AttributeError, StopIteration)
"""What a figure may raise on parameters that it was not written for."""
CUSTOM = "custom"


def read(texts: Sequence[str], figures: Sequence[Figure], scale: str) -> dict[str, Any]:
    """What `--set` says: values by name, checked against the parameters of every chosen figure.

    Raises
    ------
    BadInput
        For a text without "=", a name that a figure has not, and a value of another type or shape.
    """
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, written = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise BadInput(f"--set {text}: it must be name=value, as --set local_steps=50")
        if name in changes:
            raise BadInput(f"--set {text}: {name} was set twice; give it once")
        for figure in figures:
            known = {item.name: item for item in figure.module.PARAMETERS}
            if name not in known:
                raise BadInput(f"--set {text}: {name!r} must be a parameter of {figure.id}: "
                               f"{choice(name, known)}; python -m reproduce --list {figure.id} shows them")
            changes[name] = _like(known[name], _value(written), scale, text)
    return changes


def _value(written: str) -> Any:
    """A JSON or Python literal; other words are text."""
    try:
        return json.loads(written)
    except ValueError:
        pass
    try:
        return ast.literal_eval(written.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return written


def _like(parameter: Parameter, value: Any, scale: str, text: str) -> Any:
    """The value in the type of the parameter's own, or `BadInput`."""
    own = parameter.at(scale)
    try:
        return own if value == own and type(value) is type(own) else _fitted(own, value)
    except OverflowError:
        raise BadInput(f"--set {text}: {parameter.name} is too large for a float64") from None
    except ValueError as error:
        raise BadInput(f"--set {text}: {parameter.name}={shown(value)} must be {error}, "
                       f"as its own {shown(own)}") from None


def _fitted(own: Any, value: Any) -> Any:
    """`value` in the type and shape of `own`; a ValueError says what that is."""
    if own is None:
        return value
    if isinstance(own, dict):
        if not isinstance(value, dict) or not value:
            raise ValueError("a mapping {name: value}")
        return {str(key): _fitted(next(iter(own.values())), one) for key, one in value.items()}
    if isinstance(own, (list, tuple)):
        return _sequence(own, value)
    wanted = {bool: "true or false", int: "an integer", float: "a finite number", str: "a text"}[type(own)]
    if isinstance(own, (bool, str)):
        right = type(value) is type(own)
    else:
        right = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")
        right = right and (isinstance(own, float) or value == int(value))
    if not right:
        raise ValueError(wanted)
    return type(own)(value)


def _sequence(own: Any, value: Any) -> Any:
    """A list of such entries as `own` has; entries that are lists keep the length and types of its own."""
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"a list: write [{shown(value)}]")
    if not value and own:
        raise ValueError("a list with at least one entry")
    if isinstance(own, tuple):
        return tuple(_row(own, value))
    # one float among integers makes all of them numbers
    models = [entry for entry in own if isinstance(entry, float)] or own or value
    model = models[0]
    if isinstance(model, (list, tuple)):
        return [type(model)(_row(model, entry)) for entry in value]
    return [_fitted(model, entry) for entry in value]


def _row(own: Any, value: Any) -> list[Any]:
    """An entry that is a list: place by place."""
    if not isinstance(value, (list, tuple)) or len(value) != len(own):
        raise ValueError(f"a list of length {len(own)} at each of its places that has one")
    return [_fitted(mine, given) for mine, given in zip(own, value, strict=True)]


def said(figure: Figure, changes: Changes, scale: str) -> str:
    """The mark of picture, JSON and reasons: "with local_steps=50 in place of 10: not the paper's set-up"."""
    own = {item.name: item.at(scale) for item in figure.module.PARAMETERS}
    parts = [f"{name}={shown(value)} in place of {shown(own[name])}" for name, value in changes.items()]
    return f"with {', '.join(parts)}: not the paper's set-up"


def options(changes: Changes) -> list[str]:
    """The options of the command line that make these changes."""
    return [f"--set {shlex.quote(f'{name}={json.dumps(value)}')}" for name, value in changes.items()]


def judged(figure: Figure, tables: Tables, changes: Changes, scale: str) -> dict[str, Any]:
    """Claims, findings and parameters of a figure with changed parameters, as its JSON has them."""
    why = said(figure, changes, scale)
    both = [(item, _marked(item, tables, why)) for item in figure.judged]
    rows = figure.parameters(scale)
    for row in rows:
        if row["name"] in changes:
            row |= {"reason": f"in place of {shown(row['value'])}, which is {row['origin']}", "origin": "set",
                    "value": changes[row["name"]]}
    return {"claims": [told for item, told in both if isinstance(item, Claim)],
            "findings": [told for item, told in both if isinstance(item, Finding)],
            "unjudged": figure.unjudged(), "parameters": rows,
            "changed": {"said": why, "values": dict(changes)}}


def _marked(item: Claim | Finding, tables: Tables, why: str) -> dict[str, str]:
    """A finding as these tables have it; a claim without verdict, and what its judge says of them."""
    try:
        verdict, reason, remark = Judgement(*item.judge(tables))
    except FAILURES as error:
        verdict, remark = NOT_TESTABLE, ""
        reason = f"These numbers cannot be judged ({type(error).__name__}: {error})."
    if isinstance(item, Claim):
        heard = f"Of these numbers alone its judge says {verdict}: {reason}"
        told = Judgement(NOT_TESTABLE, f"{why}.", heard)
    else:
        told = Judgement(verdict, reason, f"{why}. {remark}".strip())
    return replace(item, judge=lambda _: told).judged(tables)


def refuse_folder(folder: Path) -> None:
    """`BadInput` where what is made with `--set` or `--style` would replace what is kept of the figures."""
    inside = folder.resolve()
    if inside == store.FOLDER or (store.FOLDER in inside.parents and CUSTOM not in inside.parts):
        raise BadInput(f"--out {folder}: what is made with --set or --style must not replace what is stored "
                       "there; leave --out away, or name another folder")
