"""What follows from a chain of parts: against exact fractions, and for an algorithm made up here."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from brute_force import outcomes
from examples_of import close, gaussian_start, make_problem, regression
from test_exact_minibatch import evaluation, spread

import fedsim as fs
import theory
from fedsim.algorithms.federated import Federated
from fedsim.stability.search import Stability
from theory.exact import NoExactLaw, exact_law, families, joint_law, sample_rounds, stationary_law
from theory.exact.federated import chain
from theory.exact.federated.chain import Part, Repeat
from theory.exact.federated.rounds import FederatedFamily

SCHEME_I, SCHEME_II = fs.Participation(2, True), fs.Participation(2, False)
HARMONIC = fs.schedules.Harmonic(offset=6.0, slope=0.3)


@dataclass(frozen=True)
class Underdamped(Federated):
    """Clients hold a momentum that is zero where a round begins: explicit Euler steps with friction."""

    step_size: Any
    local_steps: int = 1
    friction: float = 1.5
    shared_noise: float = 0.3
    participation: Any = None
    debias = None

    def __post_init__(self):
        super().__post_init__()

    def stability(self, problem):
        return Stability(0.5, True, 1.0, self.schedule.largest, "not judged here")

    radius = _radius = lambda self, problem: 0.5


class UnderdampedFamily(FederatedFamily):
    """All that theory needs."""

    def chain(self, algorithm, eta):
        return [Part([[0.0, eta], [0.0, -algorithm.friction * eta]], kick=[0.0, eta],
                     noise=[0.0, np.sqrt(2.0 * algorithm.friction * eta)])]


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setitem(families._FAMILIES, Underdamped, UnderdampedFamily())


def euler(algorithm, eta, dim):
    """F (2 d, 2 d) and k (2 d, d) of one step."""
    unit = np.eye(dim)
    return (np.kron([[1.0, eta], [0.0, 1.0 - algorithm.friction * eta]], unit),
            np.kron([[0.0], [eta]], unit))


def noise_of(problem, algorithm, eta):
    """Covariance of the stacked momenta's noise."""
    s, w = algorithm.shared_noise, problem.weights
    between = s * np.ones((len(w), len(w))) + np.diag((1.0 - s) / w)
    return np.kron(between, np.kron(np.diag([0.0, 2.0 * algorithm.friction * eta]), np.eye(problem.dim)))


def stepped(problem, algorithm, n_steps, start, gradient=None):
    """Mean and second moment of all (theta, p) after every step and before communications; servers' too."""
    dim, clients = problem.dim, problem.n_clients
    everyone = np.kron(np.ones((clients, 1)), np.eye(2 * dim)[:, :dim])
    position = np.kron(np.eye(clients), np.eye(2 * dim)[:dim])
    second = start.cov + np.outer(start.mean, start.mean)
    m, q = everyone @ start.mean, everyone @ second @ everyone.T
    after, before = [(m, q)], []
    for k in range(n_steps):
        eta = float(algorithm.schedule.at(k))
        m, q = (gradient or one_gradient)(problem, *euler(algorithm, eta, dim), m, q)
        q = q + noise_of(problem, algorithm, eta)
        if (k + 1) % algorithm.local_steps == 0:
            before.append((m, q))
            chances, shares = zip(*outcomes(algorithm.participation, problem.weights), strict=True)
            servers = np.array([np.kron(share, np.eye(dim)) @ position for share in shares])
            mean, second = spread(servers, np.zeros((len(shares), dim)), np.array(chances), m, q)
            m, q = everyone @ mean, everyone @ second @ everyone.T
        after.append((m, q))
    return [[(position @ m, position @ (q - np.outer(m, m)) @ position.T) for m, q in found]
            for found in (after, before)]


def one_gradient(problem, drift, kick, m, q):
    """All clients' steps with additive gradient noise."""
    width, dim = kick.shape
    size = problem.n_clients * width
    matrix, shift, noise = np.zeros((size, size)), np.zeros(size), np.zeros((size, size))
    noises = problem.noise_covariances
    for c, hessian in enumerate(problem.dense_hessians):
        rows = slice(c * width, (c + 1) * width)
        matrix[rows, rows] = drift
        matrix[rows, c * width:c * width + dim] -= kick @ hessian
        shift[rows] = kick @ hessian @ problem.minimizers[c]
        if noises is not None:
            noise[rows, rows] = kick @ noises[c] @ kick.T
    m, q = spread(matrix[None], shift[None], np.ones(1), m, q)
    return m, q + noise


@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize("structure", ["dense", "diagonal", "isotropic"])
@pytest.mark.parametrize("noise", [None, 0.7, "covariances"])
def test_laws_of_a_made_up_algorithm(structure, noise, participation):
    problem = make_problem(structure, noise=noise, uniform=participation is SCHEME_II)
    start = gaussian_start(2)
    for step, every, shared in ((0.1, 1, 0.0), (0.15, 4, 0.4), (HARMONIC, 3, 1.0),
                                (np.linspace(0.2, 0.05, 12), 4, 0.5)):
        algorithm = Underdamped(step, every, shared_noise=shared, participation=participation)
        after, before = stepped(problem, algorithm, 3 * every, start)
        joint = joint_law(problem, algorithm, 3 * every, start=start)
        close(joint.mean.reshape(3 * every + 1, -1), [m for m, _ in after])
        close(joint.cov, [q for _, q in after])
        close(joint.before_mean.reshape(3, -1), [m for m, _ in before])
        close(joint.before_cov, [q for _, q in before])
        law = exact_law(problem, algorithm, 3, start=start)
        close(law.mean, [m[:2] for m, _ in after[::every]])
        close(law.cov, [q[:2, :2] for _, q in after[::every]])
        thin = exact_law(problem, algorithm, 3, start=start, covariance="diagonal")
        close(thin.cov, np.diagonal(law.cov, axis1=1, axis2=2))


@pytest.mark.parametrize("participation", [None, SCHEME_I])
def test_stationary_law_and_replicas(participation, alarm):
    problem = make_problem(noise="covariances")
    algorithm = Underdamped(0.2, 3, participation=participation)
    limit, law = stationary_law(problem, algorithm), exact_law(problem, algorithm, 400, record=())
    close(limit.mean, law.mean[-1])
    close(limit.cov, law.cov[-1])
    law = exact_law(problem, algorithm, 3)
    drawn = sample_rounds(problem, algorithm, 3, 10_000, 5)[:, 0]
    alarm.assert_normal((drawn.mean(axis=0) - law.mean[-1]) / np.sqrt(np.diagonal(law.cov[-1]) / 10_000))


@pytest.mark.parametrize("participation", [None, SCHEME_I])
def test_minibatches(participation):
    problem, start = regression(2, False), gaussian_start(2)
    for step in (0.03, fs.schedules.Harmonic(30.0, 1.0)):
        algorithm = Underdamped(step, 2, participation=participation)
        after, _ = stepped(problem, algorithm, 6, start, evaluation)
        law = exact_law(problem, algorithm, 3, start=start)
        close(law.mean, [m[:2] for m, _ in after[::2]], 1e-11)
        close(law.cov, [q[:2, :2] for _, q in after[::2]], 1e-11)


def test_a_missing_chain_is_said_in_words(monkeypatch):
    monkeypatch.setitem(families._FAMILIES, Underdamped, FederatedFamily())
    for call in (exact_law, joint_law):
        with pytest.raises(NoExactLaw, match="Underdamped declares no chain"):
            call(make_problem(), Underdamped(0.1), 2)


# --- one direction after the other, against exact fractions


class Langevin:
    """FA-LD, and underdamped, FA-HMC and other orders: parts of a step of size eta."""

    @staticmethod
    def simple(eta):
        return [Part([[0.0]], kick=[eta], noise=[np.sqrt(2.0 * eta)])]

    @staticmethod
    def friction(eta):
        return UnderdampedFamily().chain(Underdamped(0.1), eta)

    @staticmethod
    def hamiltonian(eta):
        return theory.exact.federated.fa_hmc.FAHMCFamily().chain(fs.FAHMC(0.1, 11), eta)

    @staticmethod
    def late(eta):
        """The momentum is drawn anew after its use, and so is zero in the first step alone."""
        return [Repeat(Langevin.friction(eta), 5), theory.exact.federated.fa_hmc.FRESH]


def fractions(parts, sizes, a, b):
    """Deviation along a, and covariances of noise and of gradient noise, of steps of these sizes."""
    first = second = None
    for eta in sizes:
        for part in chain.unrolled(parts(eta)):
            width = len(part.change)
            exact = [[Fraction(float(x)) for x in row] for row in part.change]
            kick = [Fraction(float(x)) for x in part.kick or [0.0] * width]
            noise = [Fraction(float(x)) for x in part.noise or [0.0] * width]
            if first is None:
                unit = [[Fraction(int(i == j)) for j in range(width)] for i in range(width)]
                first, second = unit, [[[Fraction(0)] * width for _ in range(width)] for _ in range(2)]

            def matrix(curvature, exact=exact, kick=kick, width=width):
                return [[exact[i][j] + (i == j) - (kick[i] * Fraction(curvature) if j == 0 else 0)
                         for j in range(width)] for i in range(width)]

            left, right, every = matrix(a), matrix(b), range(width)
            first = [[sum(left[i][j] * first[j][k] for j in every) for k in every] for i in every]
            second = [[[sum(left[i][j] * table[j][k] * right[n][k] for j in every for k in every)
                        + column[i] * column[n] for n in every] for i in every]
                      for table, column in zip(second, (noise, kick), strict=True)]
            # fractions of all digits would grow without end: 60 decimals are as good
            first, *second = ([[Fraction(round(x * 10**80), 10**80) for x in row] for row in table]
                              for table in (first, *second))
    return float(first[0][0] - 1), *(float(table[0][0]) for table in second)


class _Schedule:
    """What `chain.Steps` reads of an algorithm."""

    def __init__(self, sizes):
        self.schedule, self.local_steps = fs.schedules.as_schedule(sizes), 0


@pytest.mark.parametrize("parts", [Langevin.simple, Langevin.friction, Langevin.hamiltonian, Langevin.late])
@pytest.mark.parametrize("size", [0.2, 1e-3, 1e-7])
@pytest.mark.parametrize("listed", [False, True])
def test_fractions(parts, size, listed, monkeypatch):
    """Relative to each number alone, however small; a batch may end within a round."""
    curvatures, count = np.array([[0.7, 2.9]]), 13
    sizes = size * np.linspace(1.0, 0.5, 2 * count) if listed else np.full(2 * count, size)
    algorithm = _Schedule(sizes if listed else size)
    algorithm.local_steps = count
    family = type("Family", (), {"chain": lambda self, algorithm, eta: parts(eta)})()
    for room in (10, 10**6) if listed else (10**6,):
        monkeypatch.setattr(chain, "BATCH", room)
        found = chain.Steps(family, algorithm, curvatures, True).rounds(np.arange(2))
        pairs = np.s_[:, :, None], np.s_[:, None, :]
        for number in (0, 1):
            deviation, injected, gradient, alone, noisy = (
                answer[number if listed else 0] for answer in (
                    found.deviation(), found.injected(*pairs), found.gradient(*pairs), found.injected(),
                    found.gradient()))
            for i, a in enumerate(curvatures[0]):
                for j, b in enumerate(curvatures[0]):
                    wanted = fractions(parts, sizes[number * count:(number + 1) * count], a, b)
                    np.testing.assert_allclose(
                        [deviation[0, i], injected[0, i, j], gradient[0, i, j]], wanted, rtol=3e-13)
                assert alone[0, i] == pytest.approx(injected[0, i, i], rel=1e-13)
                assert noisy[0, i] == pytest.approx(gradient[0, i, i], rel=1e-13)
