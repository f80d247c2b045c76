"""A class of problems: the ranges in which they are drawn, and a worst one is searched or certified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from fedsim.settings.limits import entries
from fedsim.settings.validation import (
    fraction,
    nonnegative,
    one_of,
    positive,
    real,
    set_fields,
    shown,
    such,
    whole,
)

MOST_CLIENTS, MOST_DIM, MOST = 16, 8, 1000
"""The last: entries of a list of whole numbers."""


def inside(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    return such(name, value, lambda number: 0.0 < number < 1.0, "lie strictly between 0 and 1")


def at_least_one(name: str, value: Any) -> float:
    """A number of at least 1."""
    positive(name, value)
    return such(name, value, lambda number: number >= 1.0, "be at least 1")


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list, np.ndarray))


def span(name: str, value: Any, of: Any) -> tuple[float, float]:
    """A pair (low, high) from a number or a pair; `of` checks one number."""
    if _is_pair(value):
        if len(value) != 2:
            raise ValueError(f"{name}={shown(value)} must be a number, or a pair (low, high)")
        low, high = of(f"{name}[0]", value[0]), of(f"{name}[1]", value[1])
        if low > high:
            raise ValueError(f"{name}=({low:g}, {high:g}) is empty: low must be at most high")
        return low, high
    number = of(name, value)
    return number, number


def alone(value: Any) -> Any:
    """One number where both ends of a pair are it."""
    return value[0] if isinstance(value, tuple) and value[0] == value[1] else value


def _largest(name: str, value: Any, of: Any) -> Any:
    """A number that is the largest, or a pair."""
    return span(name, value, of) if _is_pair(value) else nonnegative(name, value)


def _weights(name: str, value: Any) -> Any:
    return one_of(name, value, ("free", "equal")) if isinstance(value, str) else span(name, value, inside)


def _counts(name: str, value: Any, least: int = 1, most: int = 2**64 - 1) -> tuple[int, ...]:
    values = tuple(entries(name, value, MOST)) if _is_pair(value) or isinstance(value, range) else (value,)
    if not values:
        raise ValueError(f"{name}={shown(value)} must name at least one number")
    counts = tuple(whole(name, one, least, most) for one in values)
    if len(set(counts)) < len(counts):
        raise ValueError(f"{name}={shown(value)} must name each number once")
    return counts


def _one_or_several(name: str, value: Any, most: int) -> Any:
    counts = _counts(name, value, 1, most)
    return counts if _is_pair(value) or isinstance(value, range) else counts[0]


def _by(check: Callable[[str, Any], Any], later: bool = False) -> dict[str, Any]:
    """The check of a field by itself; records leave out a field that came later and has its default."""
    return {"check": check, "later": later}


@dataclass(frozen=True, kw_only=True)
class ProblemClass:
    """Quadratic clients and the settings of an algorithm, each in a range: what `search` and `certify` take.

    Lengths are in units of 1/sqrt(m): every curvature of the potentials that the algorithm follows lies
    between m = 1 and `condition`. Translations, rotations and the unit of length are removed, since no bound
    in units that agree depends on them. A pair (low, high) is a range; one number is the largest there may
    be, from 0 on, of `minimizers`, `heterogeneity`, `start`, `start_variance` and `gradient_noise`, and known
    of the others.

    Parameters
    ----------
    dim, n_clients : int or tuple of int
        At most 8 and 16. Several are for random settings; a search, or a certificate, is of one.
    condition : float
        kappa, at least 1: curvatures are from 1 to kappa.
    curvature_range : (low, high), optional
        In place of `condition`: smallest and largest curvature, where they are in other units, as all else.
    rotated : bool, optional
        Hessians of different eigenvectors, in two dimensions, or several; there by default. Elsewhere they
        commute, and
        then one coordinate is the worst (see `theory.worst_case.commuting_supremum`).
    spectra : "free" or "ends"
        "ends": rotated Hessians have both ends of the curvatures as eigenvalues.
    minimizers : float
        Largest coordinate of a client's minimizer, where the first client's is the origin.
    heterogeneity : float or (low, high), optional
        In place of `minimizers`: the largest norm of a client's gradient at the global minimizer.
    distance : float or (low, high), optional
        In place of both: between the minimizers of two clients in one dimension, of which the first is 0.
    weights : "free", "equal", float or (low, high)
        Equal ones also where the algorithm asks for them. A number is the first of two clients'.
    start : float or (low, high)
        Largest coordinate of the start's mean, from the global minimizer, where agents may begin apart; a
        pair is of the one point, at rest, where all begin. With `distance`: from the first client's
        minimizer.
    start_variance : float
        Largest variance of the start; 0 is always among them.
    gradient_noise : float or (low, high)
        Standard deviation of the noise of every coordinate of a gradient.
    step_size : float or (low, high), optional
        Without it, from 1e-4 of the largest step size within the hypotheses up to that.
    shared_noise : float or (low, high)
    mixing : float or (low, high), optional
        Of two agents: w, where the mixing matrix is [[1-w, w], [w, 1-w]].
    local_steps, leapfrog_steps, n_rounds, staleness : int or tuple of int
        One of these.
    constants : "instance" or "class"
        What a bound is told of curvatures: those of the instance, or 1 and `condition`.
    units : float
        At least 1. Problems are also looked for in units of length up to so much larger or smaller: for
        printed formulas that add what has different units.

    Raises
    ------
    ValueError
        Naming argument, value and condition; for empty ranges.

    Source: derived here.

    Examples
    --------
    >>> theory.worst_case.ProblemClass(condition=10.0).curvatures
    (1.0, 10.0)
    >>> theory.worst_case.ProblemClass(local_steps=())
    Traceback (most recent call last):
    ...
    ValueError: local_steps=() must name at least one number
    """

    dim: Any = field(default=1, metadata=_by(partial(_one_or_several, most=MOST_DIM)))
    n_clients: Any = field(default=2, metadata=_by(partial(_one_or_several, most=MOST_CLIENTS)))
    condition: float = field(default=100.0, metadata=_by(at_least_one))
    rotated: bool | None = None
    minimizers: float = field(default=1e3, metadata=_by(nonnegative))
    heterogeneity: Any = field(default=None, metadata=_by(partial(_largest, of=nonnegative)))
    weights: Any = field(default="free", metadata=_by(_weights))
    start: Any = field(default=1e3, metadata=_by(partial(_largest, of=real)))
    start_variance: float = field(default=1e6, metadata=_by(nonnegative))
    gradient_noise: Any = field(default=1e3, metadata=_by(partial(_largest, of=nonnegative)))
    step_size: Any = field(default=None, metadata=_by(partial(span, of=positive)))
    shared_noise: Any = field(default=(0.0, 1.0), metadata=_by(partial(span, of=fraction)))
    local_steps: Any = field(default=(1, 2, 5, 15), metadata=_by(_counts))
    leapfrog_steps: Any = field(default=(1, 2, 5, 15), metadata=_by(_counts))
    n_rounds: Any = field(default=(1, 3, 10), metadata=_by(_counts))
    staleness: Any = field(default=(0, 1, 2, 5), metadata=_by(partial(_counts, least=0)))
    constants: str = field(default="instance", metadata=_by(partial(one_of, choices=("instance", "class"))))
    units: float = field(default=1.0, metadata=_by(at_least_one))
    curvature_range: Any = field(default=None, metadata=_by(partial(span, of=positive), later=True))
    spectra: str = field(default="free", metadata=_by(partial(one_of, choices=("free", "ends")), later=True))
    distance: Any = field(default=None, metadata=_by(partial(span, of=nonnegative), later=True))
    mixing: Any = field(default=None, metadata=_by(partial(span, of=inside), later=True))

    def __post_init__(self) -> None:
        for one in fields(self):
            value, check = getattr(self, one.name), one.metadata.get("check")
            if check and not (value is None and one.default is None):
                set_fields(self, **{one.name: check(one.name, value)})
        plane = self.dim == 2 or isinstance(self.dim, tuple)
        rotated = plane if self.rotated is None else one_of("rotated", self.rotated, (True, False))
        if rotated and not plane:
            raise ValueError(f"rotated=True in dim={self.dim} must be in two dimensions: only there is one "
                             "angle per client all that there is")
        set_fields(self, rotated=rotated)
        if self.spectra == "ends" and not (rotated and self.dim == 2):
            raise ValueError("spectra='ends' must be of rotated Hessians in two dimensions")
        if self.units > 1.0 and (self.step_size is not None or self.constants == "class"):
            raise ValueError(f"units={self.units:g} must be 1 where step_size is given, or constants of the "
                             "class: these are in units of m")
        if self.curvature_range is not None:
            low, high = self.curvature_range
            if self.condition not in (type(self).condition, high / low):
                raise ValueError(f"condition={self.condition:g} must be left out where curvature_range="
                                 f"{self.curvature_range} is given")
            set_fields(self, condition=high / low)
        for name in ("weights", "mixing", "distance"):
            value = alone(getattr(self, name))
            if value not in (None, "free", "equal") and self.n_clients != 2:
                raise ValueError(f"{name}={value} must be left out with n_clients={self.n_clients}: numbers "
                                 "of it are of two clients")
        if self.distance is not None and (self.dim != 1 or self.heterogeneity is not None):
            raise ValueError(f"distance={self.distance} must be left out in dim={self.dim} with "
                             f"heterogeneity={self.heterogeneity}: it is in place of it, in one dimension")

    @property
    def curvatures(self) -> tuple[float, float]:
        """Smallest and largest curvature."""
        return (1.0, self.condition) if self.curvature_range is None else self.curvature_range

    def ranges(self) -> dict[str, Any]:
        """Every range by its name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}
