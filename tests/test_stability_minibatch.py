"""Stability where minibatch noise grows with the distance: against theory, and what `simulate` does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from cases import POSTERIORS
from examples_of import regression

import fedsim as fs
from fedsim.algorithms.federated import Federated
from fedsim.stability import batches, own_blocks, search
from theory.exact.batches import MinibatchNoise
from theory.exact.families import family_of
from theory.exact.federated.minibatch import MinibatchRounds
from theory.exact.gossip import general
from theory.exact.gossip.minibatch import MinibatchMap

RING = fs.network.ring(5)
FEW = regression(1, sizes=(3, 4, 6, 5, 3))
SUMS = regression(2, False, "batch_sum", sizes=(3, 4, 6, 5, 3), weights=[0.3, 0.1, 0.2, 0.2, 0.2])
FEDERATED = {
    "FA-LD": fs.FALD(0.004, 2),
    "FA-LD, scheme I": fs.FALD(0.01, 3, participation=fs.Participation(2, True)),
    "FA-HMC": fs.FAHMC(0.05, 2, 2),
    "FA-HMC, scheme I": fs.FAHMC(0.04, 3, participation=fs.Participation(3, True)),
}
DECENTRALIZED = {"DE-SGLD": fs.DESGLD(0.02, RING), "DE-SGHMC": fs.DESGHMC(0.1, 1.0, RING)}


def theory_map(problem, algorithm):
    """One step of all clients, as theory has it."""
    family = family_of(algorithm)
    components = general.Components(problem.curvature_problem(), algorithm.mixing, True)
    return MinibatchMap(components, family.move(algorithm, algorithm.schedule.largest),
                        MinibatchNoise(problem))


def dense_root(problem, algorithm):
    """Root of the radius of what theory's step does to covariances, from all unit matrices."""
    step = theory_map(problem, algorithm)
    size, zero = step.size, np.zeros((1, step.size))
    base = step.step(zero, np.zeros((1, size, size)))[1]
    table = [(step.step(zero, row.reshape(1, size, size))[1] - base).ravel() for row in np.eye(size * size)]
    return np.sqrt(np.abs(np.linalg.eigvals(np.array(table))).max())


def theory_limit(problem, algorithm):
    """The limit that theory's own error names, without fedsim's check before it."""
    with pytest.raises(fs.UnstableStepSize) as caught:
        family_of(algorithm).require_stable(problem, algorithm)
    return caught.value.limit


@pytest.mark.parametrize("problem", [FEW, SUMS], ids=["unbiased", "batch_sum"])
def test_the_response_is_theorys(problem):
    root = np.random.default_rng(3).standard_normal((5, 2, 2))
    cov = root @ root.swapaxes(1, 2)
    ours = (problem.batch_response() @ cov.reshape(5, 4, 1)).reshape(5, 2, 2)
    expected = MinibatchNoise(problem).linear(cov) / problem.weights[:, None, None] ** 2
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert regression(None).batch_response() is None


@pytest.mark.parametrize("problem", [FEW, SUMS], ids=["unbiased", "batch_sum"])
@pytest.mark.parametrize("name", [*FEDERATED, *DECENTRALIZED])
@pytest.mark.parametrize("share", [0.3, 0.98, 1.1])
def test_radius_and_limit_are_theorys(name, problem, share):
    algorithm = {**FEDERATED, **DECENTRALIZED}[name]
    algorithm = replace(algorithm, step_size=share * algorithm.stability(problem).max_step_size)
    found = algorithm.stability(problem)
    if name in FEDERATED:
        rounds = MinibatchRounds(problem, algorithm)
        expected = np.sqrt(rounds.radius())
    else:
        expected = dense_root(problem, algorithm)
    assert found.radius == pytest.approx(expected, rel=1e-6)
    assert algorithm._radius(problem) == pytest.approx(found.radius, rel=1e-9)
    assert found.stable == (share < 1.0) and "second moment" in found.source
    mean = algorithm.stability(problem.curvature_problem()).max_step_size
    assert found.max_step_size < 0.99 * mean
    # where theory's check is asked: the mean is stable
    between = replace(algorithm, step_size=0.5 * (found.max_step_size + mean))
    assert found.max_step_size == pytest.approx(theory_limit(problem, between), rel=1e-5)


@pytest.mark.parametrize("name", ["FA-LD", "FA-HMC", "DE-SGLD", "DE-SGHMC"])
def test_simulate_refuses_what_only_the_mean_survives(name):
    algorithm = {**FEDERATED, **DECENTRALIZED}[name]
    limit = algorithm.stability(FEW).max_step_size
    mean = algorithm.stability(FEW.as_quadratic()).max_step_size
    below, between = (replace(algorithm, step_size=step) for step in (0.98 * limit, 0.5 * (limit + mean)))
    assert between._radius(FEW.as_quadratic()) < 1.0
    assert np.isfinite(fs.simulate(FEW, below, 3, 64, seed=1, threads=1).mean).all()
    with pytest.raises(fs.UnstableStepSize, match="of the second moment") as caught:
        fs.simulate(FEW, between, 3, 64, seed=1, threads=1)
    assert caught.value.limit == pytest.approx(limit, rel=1e-9)
    run = fs.simulate(FEW, between, 3, 64, seed=1, threads=1, allow_unstable=True)
    assert np.isfinite(run.mean).all()


def gossip_problem(rng, clients):
    """Clients of unequal data and weights on a network that may be sparse."""
    sizes = tuple(int(n) for n in rng.integers(3, 9, clients))
    weights = rng.dirichlet(np.ones(clients)) if rng.random() < 0.5 else None
    scale = "batch_sum" if weights is not None and rng.random() < 0.5 else "unbiased"
    batch, again = int(rng.integers(1, 4)), bool(rng.random() < 0.5)
    problem = regression(batch, again, scale, sizes=sizes, weights=weights)
    return problem, (fs.network.ring if rng.random() < 0.5 else fs.network.complete)(clients)


@pytest.mark.parametrize("number", range(6))
def test_verdicts_next_to_the_limit(number):
    """By clients' own blocks, as by the dense table of what theory's step does to covariances."""
    rng = np.random.default_rng([11, number])
    problem, mixing = gossip_problem(rng, int(rng.integers(3, 6)))
    limit = fs.DESGLD(1e-3, mixing).stability(problem).max_step_size
    for share in (1e-6, 0.5, 0.98, 0.999, 1.001, 1.02, 1.5, 4.0):
        algorithm = fs.DESGLD(share * limit, mixing)
        expected = dense_root(problem, algorithm)
        assert algorithm._is_stable(problem) == (expected < 1.0) == (share < 1.0)
        assert algorithm._radius(problem) == pytest.approx(expected, rel=1e-12)
    for beyond in (1e80, 1e160, 1e300):
        assert not fs.DESGLD(beyond, mixing)._is_stable(problem)


def test_many_clients_are_decided_by_few_products(monkeypatch):
    """Counted: products of own blocks, where the map itself has 4 10^4 numbers."""
    problem, mixing = regression(2, sizes=(5, 8) * 50), fs.network.ring(100)
    counts = []
    answer = own_blocks.Step.answer
    monkeypatch.setattr(own_blocks.Step, "answer", lambda *words: counts.append(1) or answer(*words))
    limit = fs.DESGLD(1e-3, mixing).stability(problem).max_step_size
    step_of_all, starts = theory_map(problem, fs.DESGLD(limit, mixing)), np.eye(200)[None]
    for share, most in ((0.5, 3), (0.98, 12), (0.999, 60), (1.001, 60), (1.02, 60)):
        counts.clear()
        assert fs.DESGLD(share * limit, mixing)._is_stable(problem) == (share < 1.0)
        assert 1 <= len(counts) <= most
    zero, growth = np.zeros((1, 200)), 0.0
    base = step_of_all.step(zero, np.zeros((1, 200, 200)))[1]
    for _ in range(400):  # of theory's step at the limit covariances neither grow nor shrink
        after = step_of_all.step(zero, starts)[1] - base
        growth, starts = np.trace(after[0]) / np.trace(starts[0]), after / np.trace(after[0])
    assert growth == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("clients", [2, 5, 20])
def test_tiny_step_sizes_are_stable(clients):
    """Where the square of the step size is zero, and the radius rounds to one."""
    problem, mixing = regression(1, sizes=(4,) * clients), fs.network.complete(clients)
    limit = fs.DESGLD(1e-3, mixing).stability(problem).max_step_size
    for step in (5e-324, 1e-170, 1e-100, 1e-30):
        stability = fs.DESGLD(step, mixing).stability(problem)
        assert stability.stable and stability.radius == pytest.approx(1.0, rel=1e-12)
        assert stability.max_step_size == pytest.approx(limit, rel=1e-9)
        fs.validate(problem, fs.DESGLD(step, mixing))


def test_all_data_without_replacement_are_full_gradients():
    full = regression(3, False, sizes=(3, 3))
    for algorithm in (fs.FALD(0.01, 2), fs.DESGLD(0.01, fs.network.complete(2))):
        assert algorithm.stability(full) == algorithm.stability(full.as_quadratic())


def test_what_is_not_judged_says_so(monkeypatch):
    debiased = fs.FAHMC(0.05, 2, 2, debias="fresh")
    assert "with debiasing, of the mean alone" in debiased.stability(FEW).source
    assert debiased._radius(FEW) == debiased._radius(FEW.as_quadratic())
    monkeypatch.setattr(batches, "MAX_TABLE", 10)
    for algorithm in (*FEDERATED.values(), *DECENTRALIZED.values()):
        found, mean = algorithm.stability(FEW), algorithm.stability(FEW.as_quadratic())
        assert "of the mean alone: too large" in found.source
        assert (found.radius, found.max_step_size) == (mean.radius, mean.max_step_size)
        assert algorithm._radius(FEW) == mean.radius
    many = regression(1, sizes=(3,) * 24)
    ring = fs.network.ring(24)
    assert "too large" in fs.DESGHMC(0.05, 1.0, ring).stability(many).source


@dataclass(frozen=True)
class Declared(Federated):
    """A new algorithm, which says what the local update of another one is and nothing else of stability."""

    step_size: float
    other: Any
    participation: Any = None
    shared_noise: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "local_steps", self.other.local_steps)
        object.__setattr__(self, "participation", self.other.participation)
        super().__post_init__()

    def _evaluations(self, eta):
        return self.other._evaluations(eta)


@pytest.mark.parametrize("name", FEDERATED)
@pytest.mark.parametrize("problem", [
    FEW, FEW.as_quadratic(), fs.Quadratic([[1.0, 3.0], [2.0, 0.5], [1.0, 1.0], [4.0, 2.0]], np.ones((4, 2)))],
    ids=["minibatches", "dense", "diagonal"])
def test_a_new_algorithm_has_stability_from_its_evaluations_alone(name, problem):
    known = FEDERATED[name]
    found, wanted = Declared(known.step_size, known).stability(problem), known.stability(problem)
    assert found.radius == pytest.approx(wanted.radius, rel=1e-12)
    assert found.stable == wanted.stable
    assert found.source.startswith("Declared round map, largest client curvature")
    assert Declared(found.max_step_size, known)._radius(problem) == pytest.approx(1.0, rel=1e-9)
    if found.max_step_size != pytest.approx(wanted.max_step_size, rel=1e-9):
        # the leapfrog of the stiffest client grows although the round still contracts
        edge = 2.0 / np.sqrt(np.linalg.eigvalsh(problem.curvature_problem().dense_hessians).max())
        assert isinstance(known, fs.FAHMC) and wanted.max_step_size == pytest.approx(edge, rel=1e-9)
        assert found.max_step_size > edge
    fs.validate(problem, Declared(0.99 * wanted.max_step_size, known))
    with pytest.raises(fs.UnstableStepSize, match="Declared round map"):
        fs.validate(problem, Declared(1.01 * found.max_step_size, known))


def test_radii_that_are_nearly_equal_are_told_apart(monkeypatch):
    """Where narrow Krylov spaces see several of them at once."""
    problem = POSTERIORS[9]
    algorithm = fs.DESGHMC((0.05 / problem.smoothness) ** 0.5, 1.5, fs.network.ring(problem.n_clients))
    assert 0.98 < algorithm._radius(problem) < 1.0
    monkeypatch.setattr(search, "WIDER", (30,))
    monkeypatch.setattr(search, "RESTARTS", 3)
    values = 1.0 - 1e-12 * np.arange(900)
    with pytest.raises(ValueError, match="a map of 900 numbers do not converge; use fewer clients"):
        search.leading(lambda vector: values * vector, np.ones(900))
