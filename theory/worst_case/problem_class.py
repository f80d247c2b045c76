"""A class of problems: the ranges in which a worst one is searched, and in which it is certified."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from fedsim.settings.limits import entries
from fedsim.settings.validation import fraction, nonnegative, one_of, positive, real, set_fields, shown, whole

MOST_CLIENTS, MOST_DIM, MOST = 16, 8, 1000
"""The last: entries of a list of whole numbers."""
WHOLE = {"local_steps": 1, "leapfrog_steps": 1, "n_rounds": 1, "staleness": 0}
LARGEST = ("minimizers", "start_variance")
LARGEST_OR_RANGE = {"start": real, "gradient_noise": nonnegative, "heterogeneity": nonnegative}
PAIR = (tuple, list, np.ndarray)
WHERE_GIVEN = {"recorded": "where given"}
"""Of what came later: records without it stay what they are."""


@dataclass(frozen=True, kw_only=True)
class ProblemClass:
    """Quadratic clients and the settings of an algorithm, each in a range: for `search` and `certify`.

    Lengths are in units of 1/sqrt(m): every curvature of the potentials that the algorithm follows lies
    between m = 1 and `condition`. Translations, rotations and the unit of length are removed, since no bound
    in units that agree depends on them. A pair (low, high) is a range; one number is the largest there may
    be, from 0 on, of `minimizers`, `heterogeneity`, `start`, `start_variance` and `gradient_noise`, and known
    of the others.

    Parameters
    ----------
    dim, n_clients : int
        At most 8 and 16.
    condition : float
        kappa, at least 1: curvatures are from 1 to kappa.
    curvature_range : (low, high), optional
        In place of `condition`: smallest and largest curvature, where they are in other units, as all else.
    rotated : bool, optional
        Hessians of different eigenvectors, in two dimensions; there by default. Elsewhere they commute, and
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

    dim: int = 1
    n_clients: int = 2
    condition: float = 100.0
    rotated: bool | None = None
    minimizers: float = 1e3
    heterogeneity: Any = None
    weights: Any = "free"
    start: Any = 1e3
    start_variance: float = 1e6
    gradient_noise: Any = 1e3
    step_size: Any = None
    shared_noise: Any = (0.0, 1.0)
    local_steps: Any = (1, 2, 5, 15)
    leapfrog_steps: Any = (1, 2, 5, 15)
    n_rounds: Any = (1, 3, 10)
    staleness: Any = (0, 1, 2, 5)
    constants: str = "instance"
    units: float = 1.0
    curvature_range: Any = field(default=None, metadata=WHERE_GIVEN)
    spectra: str = field(default="free", metadata=WHERE_GIVEN)
    distance: Any = field(default=None, metadata=WHERE_GIVEN)
    mixing: Any = field(default=None, metadata=WHERE_GIVEN)

    def __post_init__(self) -> None:
        set_fields(self, dim=whole("dim", self.dim, 1, MOST_DIM),
                   n_clients=whole("n_clients", self.n_clients, 1, MOST_CLIENTS))
        for name in ("condition", "units"):
            set_fields(self, **{name: at_least_one(name, getattr(self, name))})
        for name in LARGEST:
            set_fields(self, **{name: nonnegative(name, getattr(self, name))})
        for name, of in LARGEST_OR_RANGE.items():
            value = getattr(self, name)
            if isinstance(value, PAIR):
                set_fields(self, **{name: span(name, value, of)})
            elif value is not None:
                set_fields(self, **{name: nonnegative(name, value)})
        self._check_curvatures()
        self._check_pairs()
        rotated = self.dim == 2 if self.rotated is None else one_of("rotated", self.rotated, (True, False))
        if rotated and self.dim != 2:
            raise ValueError(f"rotated=True in dim={self.dim} must be in two dimensions: only there is one "
                             "angle per client all that there is")
        set_fields(self, rotated=rotated)
        if one_of("spectra", self.spectra, ("free", "ends")) == "ends" and not rotated:
            raise ValueError("spectra='ends' must be of rotated Hessians, rotated=True")
        if self.units > 1.0 and (self.step_size is not None or self.constants == "class"):
            raise ValueError(f"units={self.units:g} must be 1 where step_size is given, or constants of the "
                             "class: these are in units of m")
        one_of("constants", self.constants, ("instance", "class"))
        set_fields(self, shared_noise=span("shared_noise", self.shared_noise, fraction))
        if self.step_size is not None:
            set_fields(self, step_size=span("step_size", self.step_size, positive))
        for name, least in WHOLE.items():
            set_fields(self, **{name: _counts(name, getattr(self, name), least)})

    def _check_curvatures(self) -> None:
        if self.curvature_range is None:
            return
        low, high = span("curvature_range", self.curvature_range, positive)
        if self.condition not in (type(self).condition, high / low):
            raise ValueError(f"condition={self.condition:g} must be left out where curvature_range="
                             f"{shown(self.curvature_range)} is given")
        set_fields(self, curvature_range=(low, high), condition=high / low)

    def _check_pairs(self) -> None:
        """What is said of two clients, or of two in one dimension."""
        for name, of in (("weights", inside), ("mixing", inside), ("distance", nonnegative)):
            value = getattr(self, name)
            if value is None or isinstance(value, str):
                continue
            if self.n_clients != 2:
                raise ValueError(f"{name}={shown(value)} must be left out with n_clients={self.n_clients}: a "
                                 "number of it is of two clients")
            set_fields(self, **{name: span(name, value, of)})
        if isinstance(self.weights, str):
            one_of("weights", self.weights, ("free", "equal"))
        if self.distance is not None and (self.dim > 1 or self.heterogeneity is not None):
            raise ValueError(f"distance={shown(self.distance)} must be left out in dim={self.dim} with "
                             f"heterogeneity={self.heterogeneity}: it is in place of it, in one dimension")

    @property
    def curvatures(self) -> tuple[float, float]:
        """Smallest and largest curvature."""
        return (1.0, self.condition) if self.curvature_range is None else self.curvature_range

    def ranges(self) -> dict[str, Any]:
        """Every range by its name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def inside(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name}={shown(value)} must lie strictly between 0 and 1")
    return number


def at_least_one(name: str, value: Any) -> float:
    """A number of at least 1."""
    number = positive(name, value)
    if number < 1.0:
        raise ValueError(f"{name}={shown(value)} must be at least 1")
    return number


def span(name: str, value: Any, of: Any) -> tuple[float, float]:
    """A pair (low, high) from a number or a pair; `of` checks one number."""
    if isinstance(value, PAIR):
        if len(value) != 2:
            raise ValueError(f"{name}={shown(value)} must be a number, or a pair (low, high)")
        low, high = of(f"{name}[0]", value[0]), of(f"{name}[1]", value[1])
        if low > high:
            raise ValueError(f"{name}=({low:g}, {high:g}) is empty: low must be at most high")
        return low, high
    number = of(name, value)
    return number, number


def _counts(name: str, value: Any, least: int) -> tuple[int, ...]:
    several = isinstance(value, (tuple, list, range, np.ndarray))
    values = tuple(entries(name, value, MOST)) if several else (value,)
    if not values:
        raise ValueError(f"{name}={shown(value)} must name at least one number")
    counts = tuple(whole(name, one, least) for one in values)
    if len(set(counts)) < len(counts):
        raise ValueError(f"{name}={shown(value)} must name each number once")
    return counts
