"""What a figure is.

A figure is one module in the folder of its paper that defines

    TITLE       a few words
    PAPER       the paper and the figure's number in it ("ours" where the paper has none)
    SHOWS       one sentence
    COST        {"tiny": ..., "quick": ..., "paper": ...}, each a few words; an estimate says so
    PARAMETERS  list of `Parameter`
    CLAIMS      list of `Claim`, `Finding` and `Unjudged` (reproduce/claims.py)
    compute(scale) -> {name: DataFrame}      everything that is drawn, and nothing is drawn that is not here
    draw(tables) -> matplotlib Figure        from the tables alone

where it draws a figure of a paper,

    REPRODUCES  tuple of "paper number" as reproduce/coverage.py writes them

and, if it can read data files (see reproduce/data.py),

    DATA        tuple of the files' usual names; then it is compute(scale, files), files {name: path}

if it is to be made with others in one process, after them, because they share runs,

    TOGETHER    a name for them

and nothing else has to be edited for it to be listed, made, checked and put into the gallery. Twins are one
module: its `FIGURES` has such definitions, a `Panel` each, by the end of their ids. An id begins with the
folder's name, or with its `ID`. Modules without `TITLE` and `FIGURES` are shared parts. A parameter
called "seed" or "..._seed" is a seed: `compute(..., reseed=k)` moves it, so that verdicts can be judged on
other seeds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from matplotlib.figure import Figure as Drawing

from fedsim.hints import choice

from .claims import Claim, Finding, Tables, Unjudged
from .verdicts import DATA_SETS, EXACT, FAIL, MISPRINT, NOT_TESTABLE, OUTSIDE, PASS, REPLICAS

__all__ = ["DATA_SETS", "EXACT", "FAIL", "MISPRINT", "NOT_TESTABLE", "OUTSIDE", "PASS", "REPLICAS",
           "SCALES", "BadInput", "ByScale", "Claim", "Drawing", "Figure", "Finding", "Panel", "Parameter",
           "Tables", "Unjudged", "be_quiet", "changed", "check_scale", "clear_note", "note", "reseeded",
           "settings"]

SCALES = ("tiny", "quick", "paper")
SEED_STEP = 100_003
"""How far one reseeding moves a seed: further than any figure counts on from it."""
_RESEED: ContextVar[int] = ContextVar("reseed", default=0)
_CHANGED: ContextVar[Mapping[str, Any]] = ContextVar("changed", default={})  # noqa: B039


class BadInput(ValueError):
    """What a figure was given to read, or needs to have installed, is not there or not right."""


@dataclass(frozen=True)
class ByScale:
    """A value that depends on the scale: tiny (tests), quick (default), paper."""

    tiny: Any
    quick: Any
    paper: Any


@dataclass(frozen=True)
class Parameter:
    """One number of a figure's set-up.

    Parameters
    ----------
    name : str
        An identifier: `settings` makes an attribute of it.
    value : object
        A plain value, a list, or `ByScale`.
    origin : "paper" or "ours"
        Whether the paper prints it.
    reason : str
        Why this value; required for ours.
    printed : object
        What the paper prints in its place, of ours; a picture says both.
    """

    name: str
    value: Any
    origin: str
    reason: str = ""
    printed: Any = None

    def __post_init__(self) -> None:
        if self.origin not in ("paper", "ours"):
            raise ValueError(f"origin={self.origin!r} of parameter {self.name} must be 'paper' or 'ours'")
        if self.origin == "ours" and not self.reason:
            raise ValueError(f"reason='' of parameter {self.name} must say why, since the paper does not")
        if not self.name.isidentifier():
            raise ValueError(f"name={self.name!r} must be an identifier")

    @property
    def is_seed(self) -> bool:
        """Whether it only chooses random numbers."""
        return self.name == "seed" or self.name.endswith("_seed")

    def at(self, scale: str) -> Any:
        """The value at a scale."""
        return getattr(self.value, scale) if isinstance(self.value, ByScale) else self.value


def settings(parameters: Iterable[Parameter], scale: str) -> SimpleNamespace:
    """The parameters at a scale, as attributes; within `reseeded`, with other seeds.

    Within `changed`, some have other values.
    """
    check_scale(scale)
    moved = _RESEED.get() * SEED_STEP
    values = {item.name: _CHANGED.get().get(item.name, item.at(scale)) for item in parameters}
    return SimpleNamespace(**{item.name: values[item.name] + moved if item.is_seed else values[item.name]
                              for item in parameters})


@contextmanager
def reseeded(k: int) -> Iterator[None]:
    """Inside it, `settings` gives the k-th other seed for every seed."""
    token = _RESEED.set(k)
    try:
        yield
    finally:
        _RESEED.reset(token)


@contextmanager
def changed(values: Mapping[str, Any]) -> Iterator[None]:
    """Inside it, `settings` gives these values for the parameters of these names."""
    token = _CHANGED.set(values)
    try:
        yield
    finally:
        _CHANGED.reset(token)


def check_scale(scale: str) -> str:
    """One of the known scales."""
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r} must be {choice(scale, SCALES)}")
    return scale


class Panel(SimpleNamespace):
    """What the module of a figure defines, where several figures are one module."""


REQUIRED = {"TITLE": str, "PAPER": str, "SHOWS": str, "COST": Mapping, "PARAMETERS": list, "CLAIMS": list,
            "compute": Callable, "draw": Callable}


class Figure:
    """A figure's module with its id, checked to be complete.

    Attributes
    ----------
    title, paper, shows : str
        A few words; the paper and the figure's number in it; one sentence.
    cost : mapping scale -> str
        An estimate says so.
    reproduces : tuple of str
        The numbered figures of the papers that it draws, as reproduce/coverage.py writes them.
    data : tuple of str
        Usual names of the data files that it can read.
    loose : mapping table -> (column, value, tolerance)
        Rows that amplify rounding: `--check` compares those rows alone with this absolute tolerance.
    together : str
        A name that it has in common with figures which share runs; "" where it shares none.
    unstable : bool
        Has it runs beyond stability, whose verdict one processor alone may leave undecided?
    source : str
        Name of the Python module that says what it is; "" where it is made by hand.
    """

    def __init__(self, id: str, module: Any, source: str = "") -> None:
        for name, kind in REQUIRED.items():
            if not isinstance(getattr(module, name, None), kind):  # type: ignore[arg-type]
                raise ValueError(f"figure {id} must define {name} "
                                 f"({getattr(kind, '__name__', kind)}); see reproduce/figure.py")
        names = [item.name for item in module.CLAIMS]
        twice = {name for name in names if name and names.count(name) > 1}
        if twice:
            raise ValueError(f"CLAIMS of figure {id} name {', '.join(sorted(twice))} more than once")
        missing = [scale for scale in SCALES if scale not in module.COST]
        if missing:
            raise ValueError(f"COST of figure {id} has no entry for {', '.join(missing)}")
        self.id, self.module, self.source = id, module, source
        self.title: str = module.TITLE
        self.paper: str = module.PAPER
        self.shows: str = module.SHOWS
        self.cost: Mapping[str, str] = module.COST
        self.reproduces: tuple[str, ...] = getattr(module, "REPRODUCES", ())
        self.data: tuple[str, ...] = getattr(module, "DATA", ())
        self.loose: Mapping[str, tuple[str, str, float]] = getattr(module, "LOOSE", {})
        self.unstable: bool = getattr(module, "UNSTABLE", False)
        self.together: str = getattr(module, "TOGETHER", "")

    def files(self, given: Mapping[str, Path]) -> dict[str, Path]:
        """Those of the `given` data files that it reads."""
        return {name: given[name] for name in self.data if name in given}

    def command(self, scale: str = "quick", files: Iterable[str] = ()) -> str:
        """The command that makes it, from data files of these names."""
        options = [] if scale == "quick" else [f"--scale {scale}"]
        return " ".join([f"python -m reproduce {self.id}", *options, *(f"--data {name}" for name in files)])

    def compute(self, scale: str, given: Mapping[str, Path] | None = None, reseed: int = 0,
                changes: Mapping[str, Any] | None = None) -> Tables:
        """All tables, from the `given` data files where it reads any. Runs the simulations.

        `changes` are other values of some parameters.
        """
        check_scale(scale)
        with reseeded(reseed), changed(changes or {}):
            return self.module.compute(scale, *([self.files(given or {})] if self.data else []))

    def draw(self, tables: Tables) -> Drawing:
        """The picture, from the tables alone."""
        return self.module.draw(tables)

    def _said(self, kind: type) -> list[Any]:
        return [item for item in self.module.CLAIMS if isinstance(item, kind)]

    @property
    def judged(self) -> list[Claim | Finding]:
        """The claims and the findings, in order."""
        return [item for item in self.module.CLAIMS if not isinstance(item, Unjudged)]

    def claims(self, tables: Tables) -> list[dict[str, str]]:
        """Every claim of the paper with its verdict."""
        return [claim.judged(tables) for claim in self._said(Claim)]

    def findings(self, tables: Tables) -> list[dict[str, str]]:
        """Every finding of ours with its verdict."""
        return [finding.judged(tables) for finding in self._said(Finding)]

    def unjudged(self) -> list[dict[str, str]]:
        """What the paper says and nothing here can judge."""
        return [item.said() for item in self._said(Unjudged)]

    def departures(self, scale: str) -> str:
        """The parameters at a scale that are not what the paper prints, in words; "" where none is."""
        return "; ".join(f"{_called(item)} {_numbers(item.at(scale))} ({_numbers(item.printed, True)})"
                         for item in self.module.PARAMETERS if item.printed not in (None, item.at(scale)))

    def parameters(self, scale: str) -> list[dict[str, Any]]:
        """Every parameter at a scale, as plain values."""
        return [{"name": item.name, "value": item.at(scale), "origin": item.origin, "reason": item.reason}
                for item in self.module.PARAMETERS]


def _called(item: Parameter) -> str:
    """A parameter for readers: by the paper's letter, or with its figure, where that is its reason."""
    if re.fullmatch(r"[A-Z]( of figure \d)?", item.reason):
        return f"{item.reason} ="
    name = re.sub(" [0-9]$", "", item.name.replace("_", " "))
    return f"{name} {item.reason}:" if item.reason.startswith("of figure") else name


def _numbers(value: Any, theirs: bool = False) -> str:
    """A value in words, of a list its parts; `theirs`: as what the paper has."""
    text = ", ".join(map(str, value if isinstance(value, list) else [value]))
    return f"the paper: {text}" if theirs and not text.startswith("not printed") else text


_TELLS = [True]


def be_quiet() -> None:
    """Tell no notes from now on: several processes would overwrite each other's."""
    _TELLS[0] = False


def note(text: str) -> None:
    """Tell what a figure is doing; shown only to a terminal, on one line that is overwritten."""
    if _TELLS[0] and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K    {text[:100]}")
        sys.stderr.flush()


def clear_note() -> None:
    """Remove the last note."""
    if _TELLS[0] and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
