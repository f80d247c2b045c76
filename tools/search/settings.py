"""Settings of every class of algorithm: problem, algorithm, rounds and start, from a point of a cube."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fedsim as fs
from reproduce.random_settings import curvatures
from theory.de_sghmc import largest_momentum, step_size_limit as sghmc_limit
from theory.de_sgld import step_size_limit as sgld_limit
from theory.exact import FAHMCFlow

from . import problems
from .numbers import SIZE, Numbers

LOCAL_STEPS = 400
"""Local steps of a run whose joint laws are followed; more only where powers of a round are used."""


@dataclass(frozen=True)
class Setting:
    """One random setting.

    Attributes
    ----------
    kind : str
        Of the algorithm, a key of `KINDS`.
    problem, algorithm, start
    n_rounds : int
    long_rounds : int
        Rounds of a comparison at communications only; at least `n_rounds`.
    numbers : Numbers
        What it was made from: `build(kind, numbers)` makes it again.
    """

    kind: str
    problem: Any = field(repr=False)
    algorithm: Any = field(repr=False)
    start: Any = field(repr=False)
    n_rounds: int
    long_rounds: int
    numbers: Numbers = field(repr=False)


def _rounds(n: Numbers, local_steps: int, grows: bool) -> tuple[int, int]:
    """Rounds, so that few local steps are followed one by one; and of long runs, in a third of the draws."""
    most = max(1, LOCAL_STEPS // local_steps)
    rounds = max(1, min(most, int(n.log("rounds", 0.0, 1.9))))
    if not n.coin("last", 1.0 / 3.0):
        return rounds, rounds
    return rounds, max(rounds, int(10.0 ** (2.0 + (3.0 if grows else 0.5) * 3.0 * n.uniform("last"))))


def _shared(n: Numbers) -> float:
    return float(n.pick("shared_kind", (0.0, 0.3, 1.0, n.uniform("shared")), (0.3, 0.25, 0.3, 0.15)))


def _steps(n: Numbers, name: str = "local_steps") -> int:
    """1 to 30, one in a quarter of the draws."""
    return max(1, int(n.log(name, -0.5, np.log10(31.0))))


def _fa_ld(n: Numbers) -> tuple[Any, ...]:
    chosen = n.pick("participation", (None, "I", "II"), (0.6, 0.25, 0.15))
    problem = problems.quadratic(n, equal=True if chosen == "II" else None)
    low, high = curvatures(problem)
    kind = n.pick("step_kind", ("log", "limit", "large"), (0.75, 0.15, 0.1))
    share = {"log": n.log("step", -3.5, 0.0), "limit": 0.5, "large": n.between("step", 0.05, 1.9)}[kind]
    step: Any = share / high
    if chosen is None and n.coin("schedule", 0.25):
        step = fs.schedules.Harmonic.from_theorem(strong_convexity=low, smoothness=high)
    part = None
    if chosen is not None:
        part = fs.Participation(n.whole("active", 1, problem.n_clients), chosen == "I")
    algorithm = fs.FALD(step, _steps(n), n.log("temperature", -2.0, 2.0), _shared(n), part)
    return problem, algorithm, _rounds(n, algorithm.local_steps, algorithm.schedule.is_constant), False


def _fa_hmc(n: Numbers) -> tuple[Any, ...]:
    problem = problems.quadratic(n)
    low, high = curvatures(problem)
    kind = n.pick("step_kind", ("log", "limit", "moments", "short"), (0.5, 0.15, 0.1, 0.25))
    length = {"log": 0.5 * n.log("step", -2.0, 0.3), "limit": 0.5, "moments": 0.5 * np.sqrt(low / high),
              "short": 0.5 * np.sqrt(low / high) * n.log("step", -1.0, 0.0)}[kind] / np.sqrt(high)
    leapfrogs = _steps(n, "leapfrogs")
    algorithm = fs.FAHMC(float(length) / leapfrogs, leapfrogs, _steps(n), _shared(n))
    return problem, algorithm, _rounds(n, algorithm.local_steps, True), False


def _network(n: Numbers, clients: int) -> Any:
    kind = n.pick("graph", ("complete", "ring", "star", "path", "random"))
    if kind != "random":
        return getattr(fs.network, kind)(clients)
    links = np.triu(n.uniforms("links", clients, clients) < 0.4, 1) | np.eye(clients, k=1, dtype=bool)
    return fs.network.metropolis((links | links.T).astype(float))


def _below(n: Numbers, limit: float) -> float:
    """10^U(-3.5,0) of a limit, or the limit itself, or a little less or more."""
    kind = n.pick("step_kind", ("log", "limit", "below", "above"), (0.75, 0.1, 0.1, 0.05))
    return limit * {"log": n.log("step", -3.5, 0.0), "limit": 1.0, "below": 1.0 - 1e-6, "above": 1.1}[kind]


def _de_sgld(n: Numbers) -> tuple[Any, ...]:
    problem = problems.quadratic(n, components=True)
    mixing = _network(n, problem.n_clients)
    step = _below(n, sgld_limit(*curvatures(problem, problem.weights), mixing))
    return problem, fs.DESGLD(step, mixing), _rounds(n, 1, True), True


def _de_sghmc(n: Numbers) -> tuple[Any, ...]:
    """Step and momentum within (37) and (38), at their ends, and a little beyond; any momentum in a few."""
    problem = problems.quadratic(n, components=True)
    mixing, low_high = _network(n, problem.n_clients), curvatures(problem, problem.weights)
    limit = sghmc_limit(*low_high, mixing)
    step = float(np.sqrt(_below(n, limit**2)))
    largest = largest_momentum(*low_high, mixing, min(step, limit))
    share = n.pick("momentum_kind", (0.0, 1.0, n.uniform("momentum"), 1.5), (0.2, 0.3, 0.35, 0.15))
    beta = min(largest * share, 0.9) if share <= 1.0 or n.uniform("momentum") < 0.5 else n.uniform("momentum")
    velocity = None
    if n.coin("velocity_kind", 0.5):
        size = min(n.log("velocity_scale", -2.0, 2.0), problems.FAR)
        velocity = size * n.normals("velocity", problem.n_clients, problem.dim)
    return problem, fs.DESGHMC(step, (1.0 - beta) / step, mixing, velocity), _rounds(n, 1, True), True


def _fa_hmc_flow(n: Numbers) -> tuple[Any, ...]:
    """Two kinds of clients along exact trajectories: what the lower bound speaks about."""
    low = n.log("scale", -1.0, 1.0)
    high = low * max(1.0, n.log("condition", 0.0, 3.0))
    near, gap = min(n.log("minimizer_scale", -2.0, 2.0), problems.FAR), 1.0 + 3.0 * n.uniform("momentum")
    problem = fs.papers.fa_hmc_two_groups(n.whole("dim", 1, 3), curvatures=(high, low),
                                          n_clients=2 * n.whole("clients", 1, 3),
                                          minimizers=(near * gap, near))
    length = n.log("step", -2.0, 0.2) / np.sqrt(high)
    flow = FAHMCFlow(float(length), _steps(n), _shared(n))
    begin = None
    if n.coin("start_kind", 0.5):
        size = min(n.log("start_scale", -2.0, 2.0), problems.FAR) / np.sqrt(low)
        begin = fs.Gaussian(np.zeros(problem.dim), size**2 * np.full(problem.dim, n.uniform("spread_of_all")))
    return problem, flow, _rounds(n, 1, True), False, begin


def _stale(n: Numbers) -> tuple[Any, ...]:
    """Ages 0 to 10; steps that the age leaves stable, in units of the global curvature."""
    problem = problems.quadratic(n)
    high = float(np.linalg.eigvalsh(np.einsum("c,cij->ij", problem.weights, problem.hessians)).max())
    age = n.pick("age", (0, 1, 2, 5, 10))
    step = n.log("step", -3.5, 0.0) / (high * (1.0 + age))
    algorithm: Any = fs.StaleSGLD(step, age)
    if n.coin("dynamics", 0.4):
        friction = n.log("friction", -0.3, 1.0) * float(np.sqrt(high))
        algorithm = fs.StaleSGHMC(min(float(np.sqrt(step)) / (1.0 + age), 1.0 / friction), friction, age)
    return problem, algorithm, _rounds(n, 1, True), False


KINDS: dict[str, tuple[Callable[[Numbers], tuple[Any, ...]], tuple[type, ...], float]] = {
    "FALD": (_fa_ld, (fs.FALD,), 0.34), "FAHMC": (_fa_hmc, (fs.FAHMC,), 0.26),
    "DESGLD": (_de_sgld, (fs.DESGLD,), 0.14), "DESGHMC": (_de_sghmc, (fs.DESGHMC,), 0.16),
    "FAHMCFlow": (_fa_hmc_flow, (FAHMCFlow,), 0.05),
    "Stale": (_stale, (fs.StaleSGLD, fs.StaleSGHMC), 0.05)}
"""What draws a setting, the classes of its algorithm, and its share of random settings."""


def build(kind: str, numbers: Numbers) -> Setting:
    """The setting that a point of the unit cube stands for."""
    problem, algorithm, (rounds, long_rounds), per_client, *begin = KINDS[kind][0](numbers)
    start = begin[0] if begin else problems.start(numbers, problem, algorithm.target(problem), per_client)
    return Setting(kind, problem, algorithm, start, rounds, long_rounds, numbers)


def draw(seed: int, number: int, kind: str | None = None) -> Setting:
    """Setting `number` of a seed, whatever was drawn before it.

    >>> draw(1, 7).numbers.code == draw(1, 7).numbers.code != draw(1, 8).numbers.code
    True
    """
    values = np.random.default_rng([seed, number]).random(SIZE + 1)
    shares = np.cumsum([share for _, _, share in KINDS.values()])
    kinds = tuple(KINDS)
    chosen = kinds[min(int(np.searchsorted(shares, values[-1], side="right")), len(kinds) - 1)]
    return build(kind or chosen, Numbers(values[:-1]))
