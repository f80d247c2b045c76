"""What an instance is of: a problem, and an algorithm as a function of its step size.

A function under the decorator `form` serves a class of algorithms. It reads its numbers from a point of the
unit cube (`Cube`) in an order that never depends on their values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fedsim import network, schedules
from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.algorithms.fa_ld import FALD
from fedsim.algorithms.stale import StaleSGLD
from fedsim.laws.law import Gaussian
from fedsim.problems.papers import fa_hmc_two_groups
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.participation import Participation
from fedsim.settings.validation import Array

from ..decentralized.sghmc.momentum import largest_momentum, step_size_limit
from ..exact.delay.closed import stability_limit
from ..exact.federated.flow import FAHMCFlow
from .problem_class import ProblemClass


class Cube:
    """Coordinates of a point of the unit cube, read in a fixed order.

    Without a point every coordinate is the middle, and what was asked for says how many there are: an order
    that depended on what is read would give a coordinate two meanings.

    Parameters
    ----------
    point : (p,) in [0, 1], optional

    Attributes
    ----------
    names : list of str
        What was read so far, in order.

    Examples
    --------
    >>> from theory.worst_case.algorithm_templates import Cube
    >>> cube = Cube([0.5, 1.0])
    >>> cube.log("curvature", 1.0, 100.0), cube.pick("local_steps", (1, 2, 5)), cube.names
    (10.0, 5, ['curvature', 'local_steps'])
    """

    def __init__(self, point: Any = None) -> None:
        self._point = None if point is None else np.asarray(point, dtype=np.float64)
        self.names: list[str] = []

    def unit(self, name: str) -> float:
        """The next coordinate, in [0, 1]."""
        self.names.append(name)
        return 0.5 if self._point is None else float(self._point[len(self.names) - 1])

    def units(self, name: str, *shape: int) -> Array:
        """A table of coordinates."""
        return np.array([self.unit(name) for _ in range(int(np.prod(shape)))]).reshape(shape)

    def log(self, name: str, low: float, high: float) -> float:
        """From low to high, by equal factors; nothing is read where they agree."""
        if low == high:
            return low
        return float(min(high, low * (high / low) ** self.unit(name)))

    def with_ends(self, name: str, low: float, high: float) -> float:
        """From low to high, a twelfth of the coordinate at either end: suprema often sit there."""
        if low == high:
            return low
        return low + (high - low) * min(1.0, max(0.0, 1.2 * self.unit(name) - 0.1))

    def or_zero(self, name: str, largest: Any, share: float) -> float:
        """Zero in a share of the coordinate, then by equal factors from 1e-3 or less up to the largest."""
        if isinstance(largest, tuple):
            return self.with_ends(name, *largest)
        if largest == 0.0:
            return 0.0
        u, decades = self.unit(name), max(3.0, math.log10(largest / 1e-3))
        return 0.0 if u <= share else largest * 10.0 ** (decades * ((u - share) / (1.0 - share) - 1.0))

    def signed(self, name: str, largest: Any, *shape: int) -> Array:
        """Of either sign up to the largest, by factors where they are large and through 0 in the middle."""
        if isinstance(largest, tuple):
            count = int(np.prod(shape))
            return np.array([self.with_ends(name, *largest) for _ in range(count)]).reshape(shape)
        if largest == 0.0:
            return np.zeros(shape)
        return np.sinh(math.asinh(largest) * (2.0 * self.units(name, *shape) - 1.0))

    def pick(self, name: str, options: Sequence[Any]) -> Any:
        """One of the options, by equal parts of the coordinate; nothing is read where there is one."""
        if len(options) == 1:
            return options[0]
        return options[min(int(self.unit(name) * len(options)), len(options) - 1)]


def quadratic(cube: Cube, cls: ProblemClass, *, components: bool = False, equal: bool = False,
              one: bool = False) -> tuple[Quadratic, float]:
    """Clients of a class, and their unit of length.

    `components`: the class is about f_i = f_(i)/N. `equal`: weights are. `one`: a single client.
    """
    n, dim = 1 if one else cls.n_clients, cls.dim
    scale = cube.log("units", 1.0 / cls.units, cls.units)
    hessians = _hessians(cube, cls, n)
    weights = None
    if isinstance(cls.weights, tuple) and not (equal or components or one):
        first = cube.with_ends("weight", *cls.weights)
        weights = np.array([first, 1.0 - first])
    elif cls.weights == "free" and not (equal or components) and n > 1:
        parts = np.exp([0.0, *(6.0 * (2.0 * cube.units("weight", n - 1) - 1.0))])
        weights = parts / parts.sum()
    minimizers: Any = np.zeros((n, dim))
    if cls.distance is not None and n > 1:
        minimizers[1:] = cube.with_ends("distance", *cls.distance)
    elif cls.heterogeneity is None:
        minimizers[1:] = cube.signed("minimizer", cls.minimizers, n - 1, dim)
    elif n > 1:
        gradients = _gradients(cube, cls, n, np.full(n, 1.0 / n) if weights is None else weights)
        minimizers = -(np.linalg.solve(hessians, gradients[..., None])[..., 0] if cls.rotated
                       else gradients / hessians)
    noise = cube.or_zero("gradient_noise", cls.gradient_noise, 0.2)
    follows = n if components else 1
    return Quadratic(hessians * (follows / scale**2), minimizers * scale, weights,
                     noise * (follows / scale) if noise else None), scale


def _hessians(cube: Cube, cls: ProblemClass, n: int) -> Array:
    """(N, d) diagonals, or (N, d, d) where the class turns the eigenvectors of all clients but the first."""
    dim, (low, high) = cls.dim, cls.curvatures
    values = np.full((n, dim), low)
    if cls.spectra == "ends":
        values[:, 1] = high
    elif high > low:
        values = np.minimum(low * (high / low) ** cube.units("curvature", n, dim), high)
    if not cls.rotated:
        return values
    angles = np.pi * np.array([0.0, *cube.units("angle", n - 1)])
    cos, sin = np.cos(angles), np.sin(angles)
    turns = np.array([[cos, -sin], [sin, cos]])
    turned = np.einsum("ijc,cj,kjc->cik", turns, values, turns)
    return np.asarray(0.5 * (turned + turned.transpose(0, 2, 1)))


def _gradients(cube: Cube, cls: ProblemClass, n: int, weights: Array) -> Array:
    """(N, d) at the global minimizer, whose average is 0; in half of the cube the largest norm is reached."""
    raw = 2.0 * cube.units("gradient", n, cls.dim) - 1.0
    centred = raw - weights @ raw
    size = float(np.sqrt((centred**2).sum(axis=1).max()))
    low, high = cls.heterogeneity if isinstance(cls.heterogeneity, tuple) else (0.0, cls.heterogeneity)
    return centred * (max(low, high * min(1.0, 2.0 * size)) / size if size else 0.0)


def point(cube: Cube, cls: ProblemClass, problem: Quadratic, scale: float) -> Any:
    """The start: a point, or a normal law around it."""
    origin: Any = problem.minimizer if cls.distance is None else problem.minimizers[0]
    mean = origin + scale * cube.signed("start", cls.start, cls.dim)
    variance = scale**2 * cube.or_zero("start_variance", cls.start_variance, 0.3)
    return Gaussian(mean, np.full(cls.dim, variance)) if variance else mean


def points(cube: Cube, cls: ProblemClass, problem: Quadratic, scale: float) -> Any:
    """The start of all clients, or in half of the cube a point for each."""
    if cls.start == 0.0 or isinstance(cls.start, tuple):
        return point(cube, cls, problem, scale)
    own = cube.unit("start_of_each") > 0.5
    common = point(cube, cls, problem, scale)
    apart = scale * cube.signed("start_apart", cls.start, cls.n_clients, cls.dim)
    mean = common.mean if isinstance(common, Gaussian) else common
    return mean + apart - apart.mean(axis=0) if own else common


NOT_QUITE = 1.0 - 1e-9
"""Below a limit at which nothing contracts any more."""
DIFFERENT = 1.0 + 1e-6
"""Least curvature of the other group, where a theorem speaks about two."""


@dataclass(frozen=True)
class Draft:
    """An instance whose step size is not chosen yet.

    Attributes
    ----------
    problem : Quadratic
    make : callable(step_size) -> algorithm
    largest : float
        The step size up to which the algorithm contracts, or what is tried where nothing limits it.
    start : point or Gaussian
    has_step : bool
        False where a schedule decides.
    """

    problem: Any
    make: Callable[[float], Any]
    largest: float
    start: Any
    has_step: bool = True


@dataclass(frozen=True)
class Form:
    """A class of algorithms in one of its uses.

    Attributes
    ----------
    name : str
    algorithm : type
    body : callable(Cube, ProblemClass) -> Draft
    """

    name: str
    algorithm: type
    body: Callable[[Cube, ProblemClass], Draft]


FORMS: dict[str, Form] = {}
"""By name. A theorem is searched with the first one that it speaks about."""


def form(name: str, algorithm: type) -> Callable[[Callable[[Cube, ProblemClass], Draft]], Any]:
    """Decorator: this function makes instances of the class `algorithm`."""
    def add(body: Callable[[Cube, ProblemClass], Draft]) -> Any:
        FORMS[name] = Form(name, algorithm, body)
        return body

    return add


Made = tuple[Callable[[float], Any], float | None]
"""The algorithm as a function of its step size, and the largest of these; None where a schedule decides."""


def on_clients(name: str, algorithm: type, begin: Callable[..., Any] = point, **kind: bool) -> Any:
    """Decorator: the same of `quadratic` clients of a kind; the function is told which (m, L) they have."""
    def add(body: Callable[[Cube, ProblemClass, tuple[float, float]], Made]) -> Any:
        def draft(cube: Cube, cls: ProblemClass) -> Draft:
            problem, scale = quadratic(cube, cls, **kind)
            follows = cls.n_clients if "components" in kind else 1.0
            make, largest = body(cube, cls, _ends(problem, cls, scale, follows))
            return Draft(problem, make, largest or 1.0, begin(cube, cls, problem, scale), largest is not None)

        form(name, algorithm)(draft)
        return body

    return add


def _ends(problem: Quadratic, cls: ProblemClass, scale: float, follows: float) -> tuple[float, float]:
    """m and L that the step size answers to: of the instance, or of the class."""
    if cls.constants == "class":
        low, high = cls.curvatures
        return low / scale**2, high / scale**2
    values = problem.hessians if problem.structure == "diagonal" else np.linalg.eigvalsh(problem.hessians)
    found = values / follows
    return float(found.min()), float(found.max())


def _local(cube: Cube, cls: ProblemClass) -> tuple[int, float]:
    """Local steps and shared noise of a federated algorithm."""
    return cube.pick("local_steps", cls.local_steps), cube.with_ends("shared_noise", *cls.shared_noise)


@on_clients("fa_ld", FALD)
def _fa_ld(cube: Cube, cls: ProblemClass, ends: tuple[float, float]) -> Made:
    steps, shared = _local(cube, cls)
    return lambda step: FALD(step, steps, 1.0, shared), 2.0 * NOT_QUITE / ends[1]


@on_clients("fa_ld.decreasing", FALD)
def _fa_ld_decreasing(cube: Cube, cls: ProblemClass, ends: tuple[float, float]) -> Made:
    steps, shared = _local(cube, cls)
    schedule = schedules.Harmonic.from_theorem(strong_convexity=ends[0], smoothness=ends[1])
    return lambda step: FALD(schedule, steps, 1.0, shared), None


def _fa_ld_drawn(cube: Cube, cls: ProblemClass, ends: tuple[float, float], replace: bool) -> Made:
    drawn = Participation(cube.pick("n_active", range(1, cls.n_clients + 1)), replace)
    steps, shared = _local(cube, cls)
    return lambda step: FALD(step, steps, 1.0, shared, drawn), 1.0 / ends[1]


on_clients("fa_ld.scheme_i", FALD)(partial(_fa_ld_drawn, replace=True))
on_clients("fa_ld.scheme_ii", FALD, equal=True)(partial(_fa_ld_drawn, replace=False))


@on_clients("fa_hmc", FAHMC)
def _fa_hmc(cube: Cube, cls: ProblemClass, ends: tuple[float, float]) -> Made:
    """The whole trajectory is at most a quarter of the shortest oscillation: longer ones turn back."""
    leapfrogs = cube.pick("leapfrog_steps", cls.leapfrog_steps)
    steps, shared = _local(cube, cls)
    return lambda step: FAHMC(step, leapfrogs, steps, shared), 1.0 / (math.sqrt(ends[1]) * leapfrogs)


def _two_minimizers(cube: Cube, cls: ProblemClass, share: float) -> tuple[float, float]:
    """Minimizers of two groups, seen from the start; the global one is at `share` of the way to the first.

    Both are on one side of the start, and the first is at most four times as far, as the proof of FA-HMC's
    Theorem C.1 has it, unless the class says where the start is.
    """
    if cls.start == 0.0 or isinstance(cls.start, tuple):
        middle = -cube.with_ends("start", *cls.start) if cls.start else 0.0
        apart = cube.log("minimizer", 1e-6 * cls.minimizers, cls.minimizers)
        return middle + (1.0 - share) * apart, middle - share * apart
    gap = cube.log("gap", 1.0, 4.0) if cls.minimizers else 1.0
    largest = cls.start / (1.0 + share * (gap - 1.0))
    if gap > 1.0:
        largest = min(largest, cls.minimizers / (gap - 1.0))
    near = cube.log("minimizer", 1e-6 * min(cls.start, cls.minimizers or cls.start), largest)
    return near * gap, near


@form("fa_hmc.flow", FAHMCFlow)
def _fa_hmc_flow(cube: Cube, cls: ProblemClass) -> Draft:
    """Two groups of clients along exact trajectories, from a start of mean zero."""
    weights, noise = (value if isinstance(value, tuple) else (0.0, 1.0)
                      for value in (cls.weights, cls.gradient_noise))
    for name, met in (("heterogeneity", cls.heterogeneity is None), ("distance", cls.distance is None),
                      ("spectra", cls.spectra == "free"), ("gradient_noise", noise[0] <= 0.0 <= noise[1]),
                      ("weights", weights[0] <= 0.5 <= weights[1])):
        if not met:
            raise ValueError(f"{name}={getattr(cls, name)} must be left out: two groups of clients of weight "
                             "1/2 have isotropic Hessians and exact gradients, and `minimizers` apart")
    low, highest = cls.curvatures
    high = cube.log("curvature", low * min(DIFFERENT, cls.condition), highest)
    steps, shared = _local(cube, cls)
    problem = fa_hmc_two_groups(cls.dim, curvatures=(high, low), n_clients=cls.n_clients,
                                minimizers=_two_minimizers(cube, cls, high / (high + low)))
    variance = cube.or_zero("start_variance", cls.start_variance, 0.3)
    start = Gaussian(np.zeros(cls.dim), np.full(cls.dim, variance))
    return Draft(problem, lambda length: FAHMCFlow(length, steps, shared), 1.0 / math.sqrt(high), start)


def mixing_matrix(cube: Cube, cls: ProblemClass) -> Array:
    """Of two clients any; of more a combination of no mixing, full mixing and a ring."""
    n = cls.n_clients
    if n == 1:
        return np.ones((1, 1))
    if n == 2:
        if cls.mixing is not None:
            w = cube.with_ends("mixing", *cls.mixing)
        else:
            u = cube.unit("mixing")
            w = 0.5 * 10.0 ** (4.0 * (u / 0.7 - 1.0)) if u <= 0.7 else 0.5 + 0.45 * (u - 0.7) / 0.3
        return np.array([[1.0 - w, w], [w, 1.0 - w]])
    parts = np.exp(6.0 * (2.0 * cube.units("mixing", 2) - 1.0))
    stay, full, ring = np.array([1.0, *parts]) / (1.0 + parts.sum())
    mixed = stay * np.eye(n) + full * network.complete(n) + ring * network.ring(n)
    return 0.5 * (mixed + mixed.T) + np.diag(1.0 - mixed.sum(axis=1))


@on_clients("de_sgld", DESGLD, points, components=True)
def _de_sgld(cube: Cube, cls: ProblemClass, ends: tuple[float, float]) -> Made:
    mixing = mixing_matrix(cube, cls)
    smallest = float(np.linalg.eigvalsh(mixing)[0])
    return lambda step: DESGLD(step, mixing), (1.0 + smallest) * NOT_QUITE / ends[1]


@on_clients("de_sghmc", DESGHMC, points, components=True)
def _de_sghmc(cube: Cube, cls: ProblemClass, ends: tuple[float, float]) -> Made:
    """The momentum is a share of the largest one that the paper allows at the step size."""
    mixing, share = mixing_matrix(cube, cls), cube.with_ends("momentum", 0.0, 1.0)
    fastest = 0.0 if isinstance(cls.start, tuple) else cls.start
    velocity = cube.signed("velocity", fastest, cls.n_clients, cls.dim)
    limit = step_size_limit(*ends, mixing)

    def make(step: float) -> DESGHMC:
        beta = min(share * largest_momentum(*ends, mixing, min(step, limit)), 0.9)
        return DESGHMC(step, (1.0 - beta) / step, mixing, velocity)

    return make, limit


@on_clients("stale", StaleSGLD, one=True)
def _stale(cube: Cube, cls: ProblemClass, ends: tuple[float, float]) -> Made:
    """One client: only the potential of all matters."""
    age = cube.pick("staleness", cls.staleness)
    return lambda step: StaleSGLD(step, age), stability_limit(age) * NOT_QUITE / ends[1]
