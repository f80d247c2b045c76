"""Every public callable, found by itself, with a valid call.

The valid call of a function or class is the first one in the examples of its docstring; that of a method
has what `known.ARGUMENTS` knows of parameters of its names, and the first instance that its class's example
makes.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

from test_examples import pasted, public

import fedsim as fs
import theory

from . import known

FURTHER = ("fedsim.distance", "fedsim.data.libsvm", "fedsim.data.magic", "fedsim.data.adult",
           "fedsim.data.idx", "fedsim.data.cifar")
"""Modules whose functions users call too, besides those that must have an example."""
KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Door(NamedTuple):
    """A callable and arguments, by name, that it accepts; `optional` are those that may be given besides."""

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Any]
    optional: tuple[str, ...] = ()


class Called(Exception):
    """The example has come to the call that was looked for."""


def callables() -> dict[str, Any]:
    """What users call: public functions and classes, by the name they find first, and those of `FURTHER`."""
    found = dict(public())
    for place in FURTHER:
        module = importlib.import_module(place)
        found |= {f"{place}.{name}": member for name, member in vars(module).items()
                  if name[0] != "_" and getattr(member, "__module__", "").endswith(place.split(".")[-1])
                  and inspect.isfunction(member)}
    return found


def checks(cls: type) -> bool:
    """Whether its constructor looks at what it is given; a plain record keeps it as it is."""
    if issubclass(cls, (Exception, tuple)):
        return False
    made = getattr(cls, "__dataclass_params__", None)
    return hasattr(cls, "__post_init__") or ("__init__" in vars(cls) and (made is None or not made.init))


def bound_arguments(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a call by name."""
    signature = inspect.signature(function)
    given = signature.bind(*args, **options).arguments
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            given |= given.pop(name, {})
    return dict(given)


def run_example(name: str, text: str) -> dict[str, Any]:
    """Execute the examples of a docstring, whatever comes out; the names they made."""
    example = pasted(name, text)
    with contextlib.redirect_stdout(io.StringIO()):
        for part in example.examples:
            exec(compile(part.source, name, "single"), example.globs)
    return example.globs


def of_function(name: str, function: Any) -> dict[str, Any] | None:
    """Arguments of the first call in its own example."""
    caught: list[dict[str, Any]] = []

    def spy(*args: Any, **options: Any) -> None:
        caught.append(bound_arguments(function, args, options))
        raise Called

    place, own = name.rsplit(".", 1)
    home = fs.papers if place == "fedsim.papers" else importlib.import_module(place)
    with mock.patch.object(home, own, spy):
        with contextlib.suppress(Called):
            run_example(name, function.__doc__ or "")
    return caught[0] if caught else None


def of_class(name: str, cls: Any) -> tuple[dict[str, Any] | None, Any]:
    """Arguments of the first construction in its own example, and what was made."""
    if name in known.INSTANCES:
        return None, known.INSTANCES[name]()
    if not checks(cls):
        made = run_example(name, cls.__doc__ or "")
        return None, next((value for value in made.values() if type(value) is cls), None)
    caught: list[tuple[dict[str, Any], Any]] = []
    original = cls.__init__

    @functools.wraps(original)
    def spy(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        if type(self) is cls:
            caught.append((bound_arguments(cls, args, options), self))
            raise Called

    with mock.patch.object(cls, "__init__", spy), contextlib.suppress(Called):
        run_example(name, cls.__doc__ or "")
    return caught[0] if caught else (None, None)


def others(function: Any, given: dict[str, Any]) -> tuple[str, ...]:
    """Parameters that the valid call leaves out."""
    return tuple(name for name, part in inspect.signature(function).parameters.items()
                 if part.kind in KINDS and name not in given and name != "self")


def methods(name: str, cls: type, made: Any) -> dict[str, Door | None]:
    """Public methods that take arguments; None where no valid call is known."""
    found: dict[str, Door | None] = {}
    for inner in dir(cls):
        static = inspect.getattr_static(cls, inner)
        of_class = isinstance(static, (classmethod, staticmethod))
        if inner[0] == "_" or not (of_class or inspect.isfunction(static)):
            continue
        home = getattr(getattr(static, "__func__", static), "__module__", "") or ""
        if not home.startswith(("fedsim", "theory")):
            continue
        full = f"{name}.{inner}"
        owner = cls if of_class else made
        wanted = [one for one, part in inspect.signature(getattr(cls, inner)).parameters.items()
                  if part.kind in KINDS and one != "self"]
        if not wanted or known.INTERNAL.search(full):
            continue
        if owner is None:
            found[full] = None
            continue
        arguments = {one: known.ARGUMENTS[one]() for one in wanted if one in known.ARGUMENTS}
        arguments |= known.CALLS[full]() if full in known.CALLS else {}
        bound = getattr(owner, inner)
        missing = [one for one, part in inspect.signature(bound).parameters.items()
                   if part.default is part.empty and part.kind in KINDS and one not in arguments]
        found[full] = None if missing else Door(full, bound, arguments, others(bound, arguments))
    return found


@functools.cache
def doors() -> dict[str, Door | None]:
    """Every public callable that takes arguments and looks at them; None where no valid call is known."""
    found: dict[str, Door | None] = {}
    stated = {id(entry.function): entry for entry in theory.theorems()}
    for name, member in callables().items():
        if inspect.isclass(member):
            if issubclass(member, Exception):
                continue
            arguments, made = of_class(name, member)
            if checks(member) and not known.INTERNAL.search(name):
                arguments = known.CALLS[name]() if name in known.CALLS else arguments
                found[name] = None if arguments is None else Door(name, member, arguments,
                                                                  others(member, arguments))
            found |= methods(name, member, made)
        elif inspect.signature(member).parameters and not known.INTERNAL.search(name):
            arguments = known.CALLS[name]() if name in known.CALLS else (
                known.stated(stated[id(member)]) if id(member) in stated else of_function(name, member))
            found[name] = None if arguments is None else Door(name, member, arguments,
                                                              others(member, arguments))
    for entry in theory.theorems():
        example = known.examined(entry)
        found[f"theory.examine[{entry.id}]"] = example and Door(
            f"theory.examine[{entry.id}]", functools.partial(theory.examine, entry.id), example,
            ("start", "record", "variant", "known"))
    return dict(sorted(found.items()))
