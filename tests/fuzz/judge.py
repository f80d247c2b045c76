"""Is the answer to a call with garbage sound?

Accepted: nothing that is not finite which the valid call did not have, and no warning of NumPy. Refused: a
ValueError or TypeError whose message names what was wrong. Both within the time of the processor given.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import re
import resource
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numba.core.dispatcher import Dispatcher

import fedsim as fs

from . import garbage, known
from .doors import Door, doors

SECONDS = 20
"""Of the processor, for one call."""
ROOM = 3 * 2**30
"""Bytes beyond those in use that one call may take."""


class Ran(BaseException):
    """A simulation was about to begin: its arguments were accepted."""


class TooLong(BaseException):
    """A call takes more than `SECONDS` of the processor."""


class Answer(NamedTuple):
    """What a call came to: accepted, refused, other, unnamed, silent, warned or late; and in words."""

    kind: str
    words: str = ""

    @property
    def sound(self) -> bool:
        """Accepted or refused as it should be."""
        return self.kind in ("accepted", "refused")


@contextlib.contextmanager
def nothing_runs() -> Iterator[None]:
    """No kernel may be compiled and no block be made; files go into a folder of their own."""
    inside = [0]

    def refuse(*args: Any, **options: Any) -> None:
        raise Ran

    def compiles(plain: Callable[..., Any]) -> Callable[..., Any]:
        def compile_tried(kernel: Any, *args: Any, **options: Any) -> Any:
            if not inside[0] and kernel.py_func.__name__ not in known.TRIED:
                raise Ran
            inside[0] += 1
            try:
                return plain(kernel, *args, **options)
            finally:
                inside[0] -= 1

        return compile_tried

    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(known.FOLDER.name))
        for owner, name in ((Dispatcher, "_compile_for_args"), (Dispatcher, "compile")):
            stack.enter_context(mock.patch.object(owner, name, compiles(getattr(owner, name))))
        for module, name in (("running", "run_on_threads"), ("running", "run_on_executor"),
                             ("block", "lane_state"), ("block", "run_rounds")):
            stack.enter_context(mock.patch.object(importlib.import_module(f"fedsim.engine.{module}"), name,
                                                  refuse))
        yield


@contextlib.contextmanager
def limits() -> Iterator[None]:
    """So much time and memory, where the system can say so."""
    def late(*args: Any) -> None:
        raise TooLong

    before, soft = signal.signal(signal.SIGPROF, late), resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, soft[1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, soft)


def unsound_numbers(value: Any, deep: int = 5) -> set[str]:
    """Which of "nan" and "inf" a result holds."""
    if isinstance(value, (float, complex, np.inexact)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fc":
            return set()
        return ({"nan"} if np.isnan(value).any() else set()) | ({"inf"} if np.isinf(value).any() else set())
    if deep == 0 or value is None or isinstance(value, (str, bytes, type)):
        return set()
    if dataclasses.is_dataclass(value):
        parts: Any = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif isinstance(value, fs.Gaussian):
        parts = [value.mean, value.variances]
    elif hasattr(value, "items") and not hasattr(value, "dtypes"):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = value
    else:
        return set()
    return set().union(*(unsound_numbers(part, deep - 1) for part in parts))


def names(door: Door, replaced: dict[str, str]) -> set[str]:
    """Words of which a refusal has to have one: the arguments, what they are called inside, their parts."""
    words = set(replaced)
    for argument, what in replaced.items():
        words |= {word for pattern, others in known.ALIASES.items() for word in others
                  if re.search(pattern, f"{door.name}:{argument}")}
        value = garbage.ALL[what]()
        if type(value).__module__.startswith(("fedsim", "theory")):
            words |= {part for part in dir(value) if part[0] != "_"} | {type(value).__name__}
    return words


def answer(door: Door, replaced: dict[str, str]) -> Answer:
    """What comes of the door's valid call with these arguments replaced by garbage of these names."""
    arguments = {**door.arguments, **{name: garbage.ALL[what]() for name, what in replaced.items()}}
    with warnings.catch_warnings(record=True) as heard, limits():
        warnings.simplefilter("always")
        try:
            result = door.call(**arguments)
        except Ran:
            return Answer("accepted")
        except TooLong:
            return Answer("late", f"more than {SECONDS} s")
        except (ValueError, TypeError, FileNotFoundError, fs.DivergedError) as error:
            message = str(error)
            if any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", message) for word in names(door, replaced)):
                return Answer("refused", message)
            return Answer("unnamed", f"{type(error).__name__}: {message[:150]}")
        except Exception as error:
            return Answer("other", f"{type(error).__name__}: {str(error)[:150]}")
    loud = [str(one.message) for one in heard if not issubclass(one.category, DeprecationWarning)]
    if loud:
        return Answer("warned", loud[0])
    allowed = known.NOT_FINITE.get(door.name, set())
    held = unsound_numbers(result) - unsound_numbers(valid(door)) - allowed
    return Answer("silent", f"{', '.join(sorted(held))} in {result!r:.100}") if held else Answer("accepted")


_VALID: dict[str, Any] = {}


def valid(door: Door) -> Any:
    """The result of the valid call; None where it is a simulation."""
    if door.name not in _VALID:
        try:
            _VALID[door.name] = door.call(**door.arguments)
        except Ran:
            _VALID[door.name] = None
    return _VALID[door.name]


def chosen(door: Door, generator: np.random.Generator) -> dict[str, str]:
    """One or two arguments of a door, and garbage for each."""
    places = [*door.arguments, *door.optional]
    some = generator.permutation(len(places))[:int(generator.integers(1, 3))]
    found = {}
    for i in sorted(some):
        kinds = list(garbage.like(door.arguments.get(places[i])) if generator.random() < 0.5 else garbage.ALL)
        found[places[i]] = kinds[generator.integers(len(kinds))]
    return found


def line(door: Door, replaced: dict[str, str]) -> str:
    """The call, to be pasted after ``from fuzz.judge import again``."""
    return f"again({door.name!r}, {replaced!r})"


def again(name: str, replaced: dict[str, str]) -> Answer:
    """A call that was written down."""
    with nothing_runs():
        door = doors()[name]
        assert door is not None
        return answer(door, replaced)


def fuzz(n_calls: int, seed: int, some: list[Door] | None = None) -> tuple[Counter[str], list[str]]:
    """Counts by kind of `n_calls` calls, door after door, and every failure as a line that repeats it."""
    with nothing_runs():
        every = some or [door for door in doors().values() if door is not None]
        counts: Counter[str] = Counter()
        failures = []
        for number in range(n_calls):
            door = every[number % len(every)]
            replaced = chosen(door, np.random.default_rng([seed, number]))
            found = answer(door, replaced)
            counts[found.kind] += 1
            if not found.sound:
                failures.append(f"{line(door, replaced)}  # {found.kind}: {found.words}")
    return counts, failures
