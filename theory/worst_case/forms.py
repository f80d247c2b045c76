"""What an instance is of: a problem, and an algorithm as a function of its step size.

A function under the decorator `form` serves a class of algorithms. It reads its numbers from the cube in an
order that never depends on their values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
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
from .classes import ProblemClass
from .cube import Cube
from .problems import point, points, quadratic

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


def _ends(problem: Quadratic, cls: ProblemClass, scale: float, follows: float = 1.0) -> tuple[float, float]:
    """m and L that the step size answers to: of the instance, or of the class."""
    if cls.constants == "class":
        low, high = cls.curvatures
        return low / scale**2, high / scale**2
    values = problem.hessians if problem.structure == "diagonal" else np.linalg.eigvalsh(problem.hessians)
    found = values / follows
    return float(found.min()), float(found.max())


@form("fa_ld", FALD)
def _fa_ld(cube: Cube, cls: ProblemClass) -> Draft:
    problem, scale = quadratic(cube, cls)
    steps = cube.pick("local_steps", cls.local_steps)
    shared = cube.with_ends("shared_noise", *cls.shared_noise)
    largest = 2.0 * NOT_QUITE / _ends(problem, cls, scale)[1]
    return Draft(problem, lambda step: FALD(step, steps, 1.0, shared), largest,
                 point(cube, cls, problem, scale))


@form("fa_ld.decreasing", FALD)
def _fa_ld_decreasing(cube: Cube, cls: ProblemClass) -> Draft:
    problem, scale = quadratic(cube, cls)
    steps = cube.pick("local_steps", cls.local_steps)
    shared = cube.with_ends("shared_noise", *cls.shared_noise)
    low, high = _ends(problem, cls, scale)
    schedule = schedules.Harmonic.from_theorem(strong_convexity=low, smoothness=high)
    return Draft(problem, lambda step: FALD(schedule, steps, 1.0, shared), 1.0,
                 point(cube, cls, problem, scale), False)


@form("fa_ld.scheme_i", FALD)
def _fa_ld_drawn(cube: Cube, cls: ProblemClass, replace: bool = True) -> Draft:
    problem, scale = quadratic(cube, cls, equal=not replace)
    active = cube.pick("n_active", range(1, cls.n_clients + 1))
    steps = cube.pick("local_steps", cls.local_steps)
    shared = cube.with_ends("shared_noise", *cls.shared_noise)
    largest, drawn = 1.0 / _ends(problem, cls, scale)[1], Participation(active, replace)
    return Draft(problem, lambda step: FALD(step, steps, 1.0, shared, drawn), largest,
                 point(cube, cls, problem, scale))


@form("fa_ld.scheme_ii", FALD)
def _fa_ld_drawn_once(cube: Cube, cls: ProblemClass) -> Draft:
    return _fa_ld_drawn(cube, cls, replace=False)


@form("fa_hmc", FAHMC)
def _fa_hmc(cube: Cube, cls: ProblemClass) -> Draft:
    """The whole trajectory is at most a quarter of the shortest oscillation: longer ones turn back."""
    problem, scale = quadratic(cube, cls)
    leapfrogs = cube.pick("leapfrog_steps", cls.leapfrog_steps)
    steps = cube.pick("local_steps", cls.local_steps)
    shared = cube.with_ends("shared_noise", *cls.shared_noise)
    largest = 1.0 / (math.sqrt(_ends(problem, cls, scale)[1]) * leapfrogs)
    return Draft(problem, lambda step: FAHMC(step, leapfrogs, steps, shared), largest,
                 point(cube, cls, problem, scale))


@form("fa_hmc.flow", FAHMCFlow)
def _fa_hmc_flow(cube: Cube, cls: ProblemClass) -> Draft:
    """Two groups of clients along exact trajectories, from a start of mean zero."""
    high = cube.log("curvature", min(DIFFERENT, cls.condition), cls.condition)
    steps = cube.pick("local_steps", cls.local_steps)
    shared = cube.with_ends("shared_noise", *cls.shared_noise)
    near, gap = cube.log("minimizer", 1e-3, max(cls.minimizers, 1e-3)), cube.log("gap", 1.0, 4.0)
    problem = fa_hmc_two_groups(cls.dim, curvatures=(high, 1.0), n_clients=cls.n_clients,
                                minimizers=(near * gap, near))
    variance = cube.or_zero("start_variance", cls.start_variance, 0.3)
    start = Gaussian(np.zeros(cls.dim), np.full(cls.dim, variance))
    return Draft(problem, lambda length: FAHMCFlow(length, steps, shared), 1.0 / math.sqrt(high), start)


def mixing_matrix(cube: Cube, cls: ProblemClass) -> Array:
    """Of two clients any; of more a combination of no mixing, full mixing and a ring."""
    n = cls.n_clients
    if n == 1:
        return np.ones((1, 1))
    if n == 2:
        u = cube.unit("mixing")
        w = 0.5 * 10.0 ** (4.0 * (u / 0.7 - 1.0)) if u <= 0.7 else 0.5 + 0.45 * (u - 0.7) / 0.3
        return np.array([[1.0 - w, w], [w, 1.0 - w]])
    parts = np.exp(6.0 * (2.0 * cube.units("mixing", 2) - 1.0))
    stay, full, ring = np.array([1.0, *parts]) / (1.0 + parts.sum())
    mixed = stay * np.eye(n) + full * network.complete(n) + ring * network.ring(n)
    return 0.5 * (mixed + mixed.T) + np.diag(1.0 - mixed.sum(axis=1))


@form("de_sgld", DESGLD)
def _de_sgld(cube: Cube, cls: ProblemClass) -> Draft:
    problem, scale = quadratic(cube, cls, components=True)
    mixing = mixing_matrix(cube, cls)
    smallest = float(np.linalg.eigvalsh(mixing)[0])
    largest = (1.0 + smallest) * NOT_QUITE / _ends(problem, cls, scale, cls.n_clients)[1]
    return Draft(problem, lambda step: DESGLD(step, mixing), largest, points(cube, cls, problem, scale))


@form("de_sghmc", DESGHMC)
def _de_sghmc(cube: Cube, cls: ProblemClass) -> Draft:
    """The momentum is a share of the largest one that the paper allows at the step size."""
    problem, scale = quadratic(cube, cls, components=True)
    mixing, share = mixing_matrix(cube, cls), cube.with_ends("momentum", 0.0, 1.0)
    velocity = cube.signed("velocity", cls.start, cls.n_clients, cls.dim)
    low, high = _ends(problem, cls, scale, cls.n_clients)
    limit = step_size_limit(low, high, mixing)

    def make(step: float) -> DESGHMC:
        beta = min(share * largest_momentum(low, high, mixing, min(step, limit)), 0.9)
        return DESGHMC(step, (1.0 - beta) / step, mixing, velocity)

    return Draft(problem, make, limit, points(cube, cls, problem, scale))


@form("stale", StaleSGLD)
def _stale(cube: Cube, cls: ProblemClass) -> Draft:
    """One client: only the potential of all matters."""
    problem, scale = quadratic(cube, cls, one=True)
    age = cube.pick("staleness", cls.staleness)
    largest = stability_limit(age) * NOT_QUITE / _ends(problem, cls, scale)[1]
    return Draft(problem, lambda step: StaleSGLD(step, age), largest, point(cube, cls, problem, scale))
