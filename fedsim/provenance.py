"""Provenance: what a law, a bound or a set of constants is of, so that like is compared with like.

A start's fingerprint is of its moments: no start and the origin have the same.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .fingerprints import KEPT, fingerprint, plain
from .interfaces import Algorithm, Problem, ProblemParts, start_of

PARTS = ("problem", "algorithm", "start")
_SHOWN = 6
"""Numbers of an array that a readable line spells out."""


class Identity(NamedTuple):
    """A problem, algorithm or start: its fingerprint, and a readable line."""

    fingerprint: str
    words: str

    @classmethod
    def of(cls, value: Any) -> Identity | None:
        """Of a problem or algorithm, a dataclass; None for one that has no fingerprint."""
        if not dataclasses.is_dataclass(value):
            return None
        digits = getattr(value, KEPT, None) or fingerprint(value)
        return None if digits is None else cls(digits, _words(value, digits))


def _words(value: Any, digits: str) -> str:
    """A short line; the fingerprint's beginning stands for numbers that are left out."""
    if not value.__dataclass_params__.repr:
        return f"{value!r} #{digits[:8]}"
    shown, whole = [], True
    for field in dataclasses.fields(value):
        part = getattr(value, field.name)
        if isinstance(part, np.ndarray):
            fits = part.size <= _SHOWN
            text = str(part.tolist()) if fits else f"{part.shape} array"
        elif not field.init or part == field.default:
            continue
        else:
            fits = len(repr(part)) <= 60
            text = repr(part) if fits else type(part).__name__
        whole &= fits
        shown.append(f"{field.name}={text}")
    return f"{type(value).__name__}({', '.join(shown)})" + ("" if whole else f" #{digits[:8]}")


@functools.lru_cache(maxsize=64)
def _origin(dim: int) -> Identity:
    """The part that stands for a start that was not given."""
    return Identity(str(fingerprint((np.zeros(dim), None))), "the origin")


def _of_start(problem: Problem, algorithm: Algorithm, start: Any) -> Identity:
    """The moments of a start, in the form that all equal ones share."""
    if start is None:
        return _origin(problem.dim)
    mean, cov = start_of(problem, algorithm, start)
    cov = plain(cov) if cov is not None and cov.ndim == 2 else cov
    mean = mean + 0.0
    if mean.ndim == 2 and (mean == mean[0]).all():
        mean = mean[0]
    if cov is not None and not cov.any():
        cov = None
    digits = str(fingerprint((mean, None if cov is None else cov + 0.0)))
    if cov is None and not mean.any():
        return Identity(digits, "the origin")
    if mean.size > _SHOWN or (cov is not None and cov.ndim == 2):
        what = "a Gaussian" if cov is not None else "a point" if mean.ndim == 1 else "a point for each client"
        return Identity(digits, f"{what} in dimension {mean.shape[-1]} #{digits[:8]}")
    if cov is None:
        return Identity(digits, f"{'point' if mean.ndim == 1 else 'points'} {mean.tolist()}")
    return Identity(digits, f"Gaussian(mean={mean.tolist()}, variances={cov.tolist()})")


@dataclasses.dataclass(frozen=True, repr=False)
class Provenance:
    """What something is of; a part that is None is not known.

    Attributes
    ----------
    problem, algorithm, start : Identity or None

    Examples
    --------
    >>> from fedsim.provenance import Provenance
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> one, other = (Provenance.of(problem, fs.FALD(step)) for step in (0.1, 0.2))
    >>> one.mismatch(other), one.mismatch(Provenance()), one.start.words
    ('algorithm', None, 'the origin')
    """

    problem: Identity | None = None
    algorithm: Identity | None = None
    start: Identity | None = None

    @classmethod
    def of(cls, problem: Problem, algorithm: Algorithm, start: Any = None) -> Provenance:
        """Of what was made from these; `start` as in `fedsim.simulate`."""
        return cls(Identity.of(problem), Identity.of(algorithm), _of_start(problem, algorithm, start))

    def client(self, number: int) -> Provenance:
        """Of the law of one client, which is not that of the average."""
        return self.altered(f"client {number}", str(number))

    def altered(self, words: str, mark: str = "") -> Provenance:
        """Of something made from the algorithm that is not its law: `words` say what, before "of ..."."""
        if self.algorithm is None:
            return self
        digits, name = self.algorithm
        made = Identity(f"{digits}/{mark or words}", f"{words} of {name}")
        return dataclasses.replace(self, algorithm=made)

    def mismatch(self, other: Provenance) -> str | None:
        """The first of "problem", "algorithm", "start" that is known to differ; None where none is."""
        for name in PARTS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None and theirs is not None and mine.fingerprint != theirs.fingerprint:
                return name
        return None

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the parts that are not known."""
        return tuple(name for name in PARTS if getattr(self, name) is None)

    def as_json(self) -> dict[str, list[str]]:
        """Plain values to save."""
        return {name: list(getattr(self, name)) for name in PARTS if getattr(self, name) is not None}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any] | None) -> Provenance:
        """What `as_json` gave; nothing is known of what was saved without it."""
        return cls(**{name: Identity(*map(str, part)) for name, part in (saved or {}).items()})

    def __str__(self) -> str:
        problem, algorithm, start = (f"an unknown {name}" if getattr(self, name) is None
                                     else getattr(self, name).words for name in PARTS)
        return f"{algorithm} on {problem}, start: {start}"

    def __repr__(self) -> str:
        return f"Provenance({self})"


T = TypeVar("T")


def attach(thing: T, of: Provenance) -> T:
    """Say what a law, bound, ... is of, and return it. Copies changed by hand do not keep it."""
    object.__setattr__(thing, "of", of)
    return thing


def of_source(source: Any) -> Provenance:
    """What a law, or whatever else a quantity is read from, is of."""
    known = getattr(source, "of", None)
    if isinstance(known, Provenance):
        return known
    if isinstance(source, ProblemParts):  # a problem itself
        return Provenance(Identity.of(source))
    return Provenance(*(Identity.of(getattr(source, name, None)) for name in PARTS[:2]))


def differing(mine: Provenance, theirs: Provenance, names: tuple[str, str]) -> str:
    """A sentence naming the first part known to differ, with both readable lines; "" when none is."""
    part = mine.mismatch(theirs)
    if part is None:
        return ""
    one, other = getattr(mine, part).words, getattr(theirs, part).words
    return f"{part} of the {names[1]}, {other}, differs from that of the {names[0]}, {one}"


def compared(mine: Provenance, theirs: Provenance, names: tuple[str, str], same: bool) -> str:
    """What to say of a comparison: that it is one of different things on purpose, or what is not known.

    Raises
    ------
    ValueError
        For a known difference, unless `same` is False.
    """
    difference = differing(mine, theirs, names)
    if difference and same:
        raise ValueError(f"{difference}; compare like with like, or pass same=False to compare them on "
                         "purpose")
    notes = [f"compared on purpose: {difference}"] if difference else []
    for name, other, of in zip(names, names[::-1], (mine, theirs), strict=True):
        if len(of.unknown) == 1:
            notes.append(f"{of.unknown[0]} of the {name} is not known: taken to be that of the {other}")
        elif of.unknown:
            listed = f"{', '.join(of.unknown[:-1])} and {of.unknown[-1]}"
            notes.append(f"{listed} of the {name} are not known: taken to be those of the {other}")
    return ". ".join(notes)
