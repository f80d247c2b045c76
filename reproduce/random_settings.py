"""What the scoreboard draws at random for an algorithm: a problem, its parameters, rounds and a start.

`CLASSES` has the class of problems of every algorithm; the laws within are those of its function, and with
them the stored numbers: scales, minimizers and starts are unbounded. A function under the decorator `draws`
serves an algorithm, or theorems alone: settings within the hypotheses, and in a part of the draws beyond
them. `known` has the constants where `theory.constants` does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import fedsim as fs
from theory import de_sghmc, de_sgld
from theory.decentralized.sgld.minibatch import largest_step
from theory.exact import FAHMCFlow
from theory.facts.potentials_of_problem import potentials
from theory.worst_case import ProblemClass

Drawn = tuple[Any, Any, int, Any]
"""Problem, algorithm, rounds and start."""
Draw = Callable[[np.random.Generator], Drawn]
DRAWS: dict[type | str, Draw] = {}
"""By class of algorithm or id of a theorem: what draws problem, algorithm, rounds and start."""
RANDOM = ProblemClass(n_clients=range(1, 7), dim=range(1, 4), condition=1e3, n_rounds=range(1, 40))
CLASSES: dict[type, ProblemClass] = {
    fs.FALD: replace(RANDOM, local_steps=(1, 2, 3, 8, 30), n_rounds=range(5, 40)),
    fs.FAHMC: replace(RANDOM, n_clients=range(1, 6), condition=100.0, leapfrog_steps=(1, 2, 5, 10),
                      n_rounds=range(3, 25)),
    FAHMCFlow: replace(RANDOM, n_clients=(2, 4), dim=range(1, 5), local_steps=(1, 2, 10, 50),
                       n_rounds=range(5, 60)),
    fs.DESGLD: RANDOM, fs.DESGHMC: RANDOM,
    fs.StaleSGLD: replace(RANDOM, n_clients=range(1, 5), staleness=range(12), n_rounds=range(3, 60))}
SERVICES = ("deterministic", "exponential", "lognormal", "pareto")


def draws(*served: type | str) -> Callable[[Draw], Draw]:
    """Decorator: this function draws for these classes of algorithms, or ids of theorems."""
    def add(draw: Draw) -> Draw:
        DRAWS.update(dict.fromkeys(served, draw))
        return draw

    return add


def one(rng: np.random.Generator, numbers: Sequence[int]) -> int:
    """One of several whole numbers."""
    return int(rng.choice(numbers))


def curvatures(problem: fs.Quadratic, weights: Any = 1.0) -> tuple[float, float]:
    """Smallest and largest, of the f_(i) or of the components w_i f_(i)."""
    values = np.reshape(weights, (-1, 1)) * np.linalg.eigvalsh(problem.hessians)
    return float(values.min()), float(values.max())


def hessians_of(rng: np.random.Generator, clients: int, dim: int, most: float) -> np.ndarray:
    """Hessians (N, d, d) with eigenvalues from 1 to at most `most`, each in a basis of its own."""
    condition = float(10.0 ** rng.uniform(0.0, np.log10(most)))
    bases = (np.linalg.qr(rng.standard_normal((dim, dim)))[0] for _ in range(clients))  # drawn one by one
    return np.array([(basis * condition ** rng.random(dim)) @ basis.T for basis in bases])


def federated_problem(rng: np.random.Generator, clients: int, dim: int, most: float,
                      weights: Callable[[], np.ndarray | None]) -> fs.Quadratic:
    """Quadratic clients of any scale, with gradient noise in half of the draws."""
    hessians, scale = hessians_of(rng, clients, dim, most), float(10.0 ** rng.uniform(-2.0, 2.0))
    minimizers = float(10.0 ** rng.uniform(-2.0, 1.0)) * rng.standard_normal((clients, dim))
    return fs.Quadratic(scale * hessians, minimizers, weights(),
                        None if rng.random() < 0.5 else float(scale * rng.random()))


def gossip_problem(rng: np.random.Generator, clients: int) -> fs.Quadratic:
    """Quadratics of any scale; weights or noise in some."""
    hessians = hessians_of(rng, clients, one(rng, RANDOM.dim), RANDOM.condition)
    scale, dim = float(10.0 ** rng.uniform(-3.0, 3.0)), hessians.shape[1]
    minimizers = float(10.0 ** rng.uniform(-2.0, 2.0)) / np.sqrt(scale) * rng.standard_normal((clients, dim))
    weights = None if rng.random() < 0.5 else rng.dirichlet(np.full(clients, 1.0)) * 0.9 + 0.1 / clients
    noise = None if rng.random() < 0.5 else float(np.sqrt(scale) * 10.0 ** rng.uniform(-2.0, 1.0))
    return fs.Quadratic(clients * scale * hessians, minimizers, weights, noise)


@draws(fs.FALD)
def draw_fa_ld(rng: np.random.Generator, cls: ProblemClass = CLASSES[fs.FALD]) -> Drawn:
    """Problem, algorithm, rounds and start; every hypothesis of the theorems holds for most draws.

    Unequal weights, gradient noise, temperature, shared noise, participation and the harmonic schedule each
    in a part of the draws.
    """
    clients, dim = one(rng, cls.n_clients), one(rng, cls.dim)
    participation = None
    if rng.random() < 0.4:
        replace = bool(rng.random() < 0.5)
        participation = fs.Participation(int(rng.integers(1, clients + 1)), replace)
    equal = rng.random() < 0.4 or (participation is not None and not participation.replace)
    problem = federated_problem(rng, clients, dim, cls.condition, lambda: None if equal else (
        rng.dirichlet(np.full(clients, 1.0)) * 0.9 + 0.1 / clients))
    smallest, largest = curvatures(problem)
    step: Any = 0.5 / largest * float(10.0 ** rng.uniform(-2.0, 0.05))
    if participation is None and rng.random() < 0.3:
        step = fs.schedules.Harmonic.from_theorem(strong_convexity=smallest, smoothness=largest)
    shared = float(rng.choice([0.0, 1.0, rng.random()]))
    steps, temperature = one(rng, cls.local_steps), float(10.0 ** rng.uniform(-1.0, 1.0))
    algorithm = fs.FALD(step, steps, temperature, shared, participation)
    start = None if rng.random() < 0.5 else problem.minimizer + rng.standard_normal(dim)
    return problem, algorithm, one(rng, cls.n_rounds), start


@draws(fs.FAHMC)
def draw_fa_hmc(rng: np.random.Generator, cls: ProblemClass = CLASSES[fs.FAHMC]) -> Drawn:
    """Problem, algorithm, rounds and start; every hypothesis of the theorems holds for most draws.

    Unequal weights, gradient noise, shared noise, far starts and trajectories beyond the theorems' range each
    in a part of the draws.
    """
    clients, dim = one(rng, cls.n_clients), one(rng, cls.dim)
    problem = federated_problem(rng, clients, dim, cls.condition, lambda: None if rng.random() < 0.4 else (
        rng.dirichlet(np.full(clients, 0.4)) * 0.98 + 0.02 / clients))
    smallest, largest = curvatures(problem)
    # the theorems ask for lengths up to 1/(2 sqrt(L)), the moment bounds for sqrt(mu)/(2 L)
    longest = 0.5 / np.sqrt(largest) if rng.random() < 0.6 else 0.5 * np.sqrt(smallest) / largest
    length = longest * float(10.0 ** rng.uniform(-1.5, 0.05))
    leapfrogs, steps = one(rng, cls.leapfrog_steps), one(rng, cls.local_steps)
    shared = float(rng.choice([0.0, 1.0, rng.random()]))
    algorithm = fs.FAHMC(length / leapfrogs, leapfrogs, steps, shared)
    size = float(10.0 ** rng.uniform(-1.0, 1.0)) / np.sqrt(smallest)
    start = None if rng.random() < 0.5 else problem.minimizer + size * rng.standard_normal(dim)
    return problem, algorithm, one(rng, cls.n_rounds), start


@draws(FAHMCFlow)
def draw_fa_hmc_flow(rng: np.random.Generator, cls: ProblemClass = CLASSES[FAHMCFlow]) -> Drawn:
    """Problem, algorithm, rounds and start, which has mean zero; most draws meet the hypotheses."""
    low = float(10.0 ** rng.uniform(-1.0, 1.0))
    high = low * float(10.0 ** rng.uniform(0.0, np.log10(cls.condition)))
    near = float(10.0 ** rng.uniform(-1.0, 1.0))
    dim, clients = one(rng, cls.dim), one(rng, cls.n_clients)
    problem = fs.papers.fa_hmc_two_groups(dim, curvatures=(high, low), n_clients=clients,
                                          minimizers=(near * (1.0 + 3.0 * rng.random()), near))
    length = float(10.0 ** rng.uniform(-2.0, 0.1)) / np.sqrt(high)
    flow = FAHMCFlow(length, one(rng, cls.local_steps), float(rng.choice([0.0, 1.0, rng.random()])))
    start = None if rng.random() < 0.5 else fs.Gaussian(np.zeros(dim), rng.random() * np.eye(dim))
    return problem, flow, one(rng, cls.n_rounds), start


def network(rng: np.random.Generator, clients: int) -> Any:
    """Mixing matrix of a connected graph: complete, ring, path, star, or a path with random links."""
    kind = int(rng.integers(5))
    if kind < 4:
        return (fs.network.complete, fs.network.ring, fs.network.path, fs.network.star)[kind](clients)
    links = np.triu(rng.random((clients, clients)) < 0.4, 1) | np.eye(clients, k=1, dtype=bool)
    return fs.network.metropolis((links | links.T).astype(float))


def start_of(rng: np.random.Generator, problem: fs.Quadratic, kinds: str = "opcg") -> Any:
    """The origin, a point, a point per client, or a Gaussian, near the target or far from it."""
    size = float(10.0 ** rng.uniform(-2.0, 2.0)) * float(np.sqrt(problem.target().variances.sum()))
    kind = kinds[rng.integers(len(kinds))]
    point = problem.minimizer + size * rng.standard_normal(problem.dim)
    if kind == "c":
        return point + size * rng.standard_normal(problem.minimizers.shape)
    return {"o": None, "p": point, "g": fs.Gaussian(point, size**2 * rng.random(problem.dim))}[kind]


@draws(fs.DESGLD)
def draw_de_sgld(rng: np.random.Generator) -> Drawn:
    """Problem, algorithm, rounds and start within the hypotheses of Theorem 1."""
    clients = one(rng, RANDOM.n_clients)
    problem, mixing = gossip_problem(rng, clients), network(rng, clients)
    limit = de_sgld.step_size_limit(*curvatures(problem, problem.weights), mixing)
    step = float(limit * rng.choice([1.0 - 1e-6, rng.uniform(0.05, 1.0), 10.0 ** rng.uniform(-3.0, 0.0)]))
    algorithm = fs.DESGLD(min(step, (1.0 - 1e-6) * limit), mixing)
    return problem, algorithm, one(rng, RANDOM.n_rounds), start_of(rng, problem)


@draws("de_sgld.growing_noise_bound", "de_sgld.growing_noise_iterate_bound")
def draw_minibatches(rng: np.random.Generator) -> Drawn:
    """Linear regression with minibatches, and most steps as small as appendix D asks for.

    N from 1 to 4, d from 1 to 3, each client with 3 to 12 data of any scale, minibatches of 1 datum to all,
    with replacement and without.
    """
    clients, dim, per_client = (int(rng.integers(low, high)) for low, high in ((1, 5), (1, 4), (3, 13)))
    count = clients * per_client
    features = float(10.0 ** rng.uniform(-1.0, 1.0)) * rng.standard_normal((count, dim))
    targets = features @ rng.standard_normal(dim)
    targets += float(10.0 ** rng.uniform(-2.0, 1.0)) * rng.standard_normal(count)
    problem = fs.LinearRegression(
        features, targets, np.arange(count) % clients, noise_std=float(10.0 ** rng.uniform(-1.0, 1.0)),
        prior_variance=float(10.0 ** rng.uniform(-1.0, 1.0)), batch_size=int(rng.integers(1, per_client + 1)),
        replace=bool(rng.random() < 0.5))
    mixing, start = network(rng, clients), start_of(rng, problem.as_quadratic())
    tiny = fs.DESGLD(1e-12, mixing)
    limit = largest_step(de_sgld.setting(known(problem, tiny, 0, start), tiny))
    step = limit * float(rng.choice([1.0, rng.uniform(0.05, 1.0), 10.0 ** rng.uniform(-2.0, 0.5)]))
    highest = (1.0 - 1e-6) * de_sgld.step_size_limit(*problem.curvature_bounds("components"), mixing)
    return problem, fs.DESGLD(min(step, highest), mixing), one(rng, RANDOM.n_rounds), start


def known(problem: Any, algorithm: Any, n_rounds: int, start: Any) -> Any:
    """The constants of a problem with minibatches; None for others, of which any theorem finds them."""
    if not isinstance(problem, fs.LinearRegression):
        return None
    return de_sgld.minibatch_constants(problem, algorithm, start, known="a_posteriori", n_rounds=n_rounds)


@draws(fs.DESGHMC)
def draw_de_sghmc(rng: np.random.Generator) -> Drawn:
    """Problem, algorithm, rounds and start within the hypotheses of Theorem 11.

    Momentum zero, half of the largest that the theorem allows, or all of it; velocities at rest or not.
    """
    clients = one(rng, RANDOM.n_clients)
    problem, mixing = gossip_problem(rng, clients), network(rng, clients)
    curvature = curvatures(problem, problem.weights)
    limit = de_sghmc.step_size_limit(*curvature, mixing)
    step = float(limit * rng.choice([1.0, rng.uniform(0.05, 1.0), 10.0 ** rng.uniform(-1.5, 0.0)]))
    beta = de_sghmc.largest_momentum(*curvature, mixing, step) * float(rng.choice([0.0, 0.5, 1.0]))
    velocity = None
    if rng.random() < 0.5:
        velocity = float(10.0 ** rng.uniform(-2.0, 2.0)) * rng.standard_normal((clients, problem.dim))
    algorithm = fs.DESGHMC(step, (1.0 - beta) / step, mixing, velocity)
    return problem, algorithm, one(rng, RANDOM.n_rounds), start_of(rng, problem)


@draws(fs.StaleSGLD)
def draw_stale(rng: np.random.Generator, cls: ProblemClass = CLASSES[fs.StaleSGLD]) -> Drawn:
    """Problem, algorithm, updates and start; the hypothesis on the step size holds for most draws.

    One age for all updates, or those of workers that discard older gradients, under one schedule or
    three; steps from a thirtieth of the largest allowed to beyond it, and exactly the largest in a part of
    the draws.
    """
    problem, age = gossip_problem(rng, one(rng, cls.n_clients)), one(rng, cls.staleness)
    staleness: Any = age
    if rng.random() < 0.6:
        staleness = fs.Workers(age + 1, SERVICES[rng.integers(4)], cap=age, seed=int(rng.integers(2**31)),
                               schedules=int(rng.choice([1, 3])))
    share = 1.0 if rng.random() < 0.2 else float(10.0 ** rng.uniform(-1.5, 0.05))
    step = share / ((age + 1.0) * float(potentials(problem).global_curvature[1]))
    return problem, fs.StaleSGLD(step, staleness), one(rng, cls.n_rounds), start_of(rng, problem, "opg")
