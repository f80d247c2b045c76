"""Moments of samplers of one's own with minibatches: the shipped ones, and every batch enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sampler_zoo as zoo
from brute_force_decentralized import batches
from examples_of import close, gaussian_start, regression
from sampler_brute import stacked_law
from test_samplers import BRUTE

import fedsim as fs
import theory
from fedsim.samplers import blocks, grad, mean, noise, past, pieces, radius, sqrt, weights
from theory.exact import NoExactLaw, joint_law, sample_rounds, traced_minibatch

BATCHES = [(1, True, "unbiased"), (2, False, "unbiased"), (2, True, "batch_sum"), (2, False, "batch_sum")]
EVEN, TILTED = np.array([[0.7, 0.3], [0.3, 0.7]]), np.array([[0.8, 0.2], [0.4, 0.6]])
AIM = "ignore::fedsim.samplers.SamplerWarning"


@fs.sampler
def drawn_fa_ld(x, *, step_size, local_steps, clients):
    for _ in range(local_steps):
        x = x - step_size * grad(x) + sqrt(2 * step_size / weights()) * noise()
    return mean(x, drawn=clients)


def shipped_pairs():
    W, schedule = EVEN, fs.schedules.Harmonic(120.0, 5.0)
    yield (zoo.fa_ld(step_size=0.006, temperature=0.5, shared_noise=0.4), fs.FALD(0.006, 1, 0.5, 0.4))
    yield zoo.fa_ld(step_size=0.006, local_steps=7), fs.FALD(0.006, 7)
    yield zoo.fa_ld(step_size=schedule), fs.FALD(schedule)
    yield (zoo.fa_hmc(step_size=0.05, leapfrog_steps=2, local_steps=2, shared_noise=0.3),
           fs.FAHMC(0.05, 2, 2, 0.3))
    for clients in (fs.Participation(2, True), fs.Participation(1, True)):
        yield (drawn_fa_ld(step_size=0.006, local_steps=3, clients=clients),
               fs.FALD(0.006, 3, participation=clients))
    yield zoo.de_sgld(step_size=0.02, W=W), fs.DESGLD(0.02, W)
    yield zoo.de_sghmc(step_size=0.1, friction=2.0, W=W), fs.DESGHMC(0.1, 2.0, W)


def worst(one, other):
    """Largest relative difference."""
    return float(np.abs(np.asarray(one) - other).max()) / float(np.abs(other).max())


def shipped_differences(problem, start):
    for mine, shipped in shipped_pairs():
        law, known = (theory.exact_law(problem, each, 5, start=start) for each in (mine, shipped))
        assert not law.is_gaussian and len(law.clients) == len(known.clients)
        pairs = [(law, known), *zip(law.clients, known.clients, strict=True)]
        if shipped.schedule.is_constant:
            pairs.append(tuple(theory.stationary_law(problem, each) for each in (mine, shipped)))
        yield max(max(worst(one.mean, other.mean), worst(one.cov, other.cov)) for one, other in pairs)
        yield worst(mine._radius(problem), shipped._radius(problem))


@pytest.mark.filterwarnings(AIM)  # of schemes, as the shipped
@pytest.mark.parametrize(("batch_size", "replace", "grad_scale"), BATCHES)
def test_moments_and_radius_are_the_shipped_ones(batch_size, replace, grad_scale):
    problem = regression(batch_size, replace, grad_scale, weights=[0.3, 0.7])
    found = list(shipped_differences(problem, gaussian_start(2)))
    assert len(found) == 16 and max(found) < 1e-12


@pytest.mark.parametrize("name", ["DE-SGLD", "FA-LD"])
def test_the_limit_is_the_shipped_one(name):
    problem, W = regression(1, sizes=(3, 4)), EVEN
    mine, shipped = {"DE-SGLD": (zoo.de_sgld(step_size=0.02, W=W), fs.DESGLD(0.02, W)),
                     "FA-LD": (zoo.fa_ld(step_size=0.005, local_steps=3), fs.FALD(0.005, 3))}[name]
    limit = shipped.stability(problem).max_step_size
    assert mine.stability(problem).max_step_size == pytest.approx(limit, rel=1e-9)
    assert limit < 0.9 * mine.stability(problem.as_quadratic()).max_step_size
    with pytest.raises(fs.UnstableStepSize):
        theory.exact_law(problem, type(mine)(**mine._fields() | {"step_size": 1.01 * limit}), 3)


def test_noise_that_does_not_depend_on_the_point():
    data = fs.GaussianMean([1.0, 2.0, 4.0, 0.5], batch_size=2)
    for age in (0, 2):
        for mine, shipped in ((zoo.stale_sgld(step_size=0.05, age=age), fs.StaleSGLD(0.05, age)),
                              (zoo.stale_sghmc(step_size=0.1, friction=2.0, age=age),
                               fs.StaleSGHMC(0.1, 2.0, age))):
            law, known = (theory.exact_law(data, one, 9) for one in (mine, shipped))
            assert not law.is_gaussian
            close(law.mean, known.mean)
            close(law.cov, known.cov)


# ------------------------------------------------------------------------------- every batch enumerated


class Path:
    """A problem whose gradients are of batches that were chosen before, one call after the other."""

    def __init__(self, problem, chosen):
        self.n_clients, self.dim, self.weights = problem.n_clients, problem.dim, problem.weights
        self.chosen, self.calls = chosen, 0

    def gradient(self, client, x):
        hessian, pull = self.chosen[self.calls]
        self.calls = (self.calls + 1) % len(self.chosen)
        return (hessian @ x - pull) / self.weights[client]


def enumerated(problem, algorithm, n_rounds, start, networks=None):
    """Moments of all clients' first parts at every round, over all batches, and all networks (chance, W)."""
    calls = algorithm.trace(problem).how_many("grad") * n_rounds
    each = [batches(problem, client) for client in range(problem.n_clients)] * calls
    paths = list(itertools.product(*each))
    first, second, total = 0.0, 0.0, 0.0
    for turns in itertools.product(networks or [(1.0, None)], repeat=n_rounds):
        chance = float(np.prod([one for one, _ in turns])) / len(paths)
        fixed = algorithm if networks is None else type(algorithm)(**algorithm._fields() | {
            "W": [W for _, W in turns]})
        for chosen in paths:
            centre, cov = stacked_law(fixed, Path(problem, chosen), n_rounds, start)
            first = first + chance * centre
            second = second + chance * (cov + centre[:, :, None] * centre[:, None])
            total += chance
    assert total == pytest.approx(1.0)
    return first, second - first[:, :, None] * first[:, None]


@fs.sampler
def inner_noise(x, s, *, step_size, W):
    """A gradient where the noise of another one enters; one of them is kept, and used again a round later."""
    g, n = grad(x), noise()
    y = W @ (x - step_size * g) + 0.2 * n
    return x + 0.3 * (y - x) - step_size * grad(y) + 0.5 * s + 0.1 * n, 0.4 * step_size * (g - grad(y))


@fs.sampler(follows="components")
def around(x, *, step_size, W):
    return W @ (x - step_size * grad(W @ x) + sqrt(2 * step_size) * noise())


@fs.sampler(follows="global")
def stale(x, *, step_size):
    return x - step_size * grad(past(x, 1)) + sqrt(2 * step_size) * noise()


TINY = {"sizes": (2, 2), "dim": 1, "weights": [0.3, 0.7]}
CASES = {
    "EXTRA": (zoo.extra_sgld(step_size=0.05, W=EVEN), 2,
              regression(1, sizes=(2, 3), dim=1)),
    "EXTRA in the plane": (zoo.extra_sgld(step_size=0.05, W=TILTED), 2, regression(1, sizes=(2, 2))),
    "DIGing": (zoo.diging_sgld(step_size=0.05, W=TILTED), 2, regression(1, False, sizes=(2, 3), dim=1)),
    "inner noise": (inner_noise(step_size=0.03, W=TILTED), 1, regression(1, **TINY)),
    "local steps": (zoo.scaffold_ld(step_size=0.03, local_steps=2), 2, regression(1, **TINY)),
    "stale": (stale(step_size=0.05), 4, regression(2, False, sizes=(4,), dim=1)),
    "random networks": (zoo.random_pairs(step_size=0.05, W=fs.network.random([EVEN, np.eye(2)], [0.3, 0.7])),
                        2, regression(1, **TINY)),
    "random networks, used twice": (zoo.extra_sgld(step_size=0.05, W=fs.network.random(
        [EVEN, np.eye(2)], [0.3, 0.7])), 2, regression(1, **TINY)),
}


def enumeration_difference(name):
    algorithm, rounds, problem = CASES[name]
    start = np.array([0.7, -0.4])[:problem.dim]
    networks = list(zip(algorithm.W.chances, algorithm.W.matrices, strict=True)) if "random" in name else None
    centre, cov = enumerated(problem, algorithm, rounds, start, networks)
    law = theory.exact_law(problem, algorithm, rounds, start=start, allow_unstable=True)
    d = problem.dim
    differ, size = bool(law.clients), 1.0 / problem.n_clients
    average = np.kron(np.full((1, problem.n_clients), size), np.eye(d))
    views = [(law, average), *((one, np.eye(len(centre[0]))[c * d:(c + 1) * d])
                               for c, one in enumerate(law.clients))]
    found = [np.abs(view.mean - centre @ rows.T).max() for view, rows in views]
    found += [np.abs(view.cov - rows @ cov @ rows.T).max() for view, rows in views]
    if algorithm._follows != "global":
        joint = joint_law(problem, algorithm, rounds, start=start, allow_unstable=True)
        assert (joint.sync_steps.size == 0) == differ
        found += [np.abs(joint.mean.reshape(centre.shape) - centre).max(), np.abs(joint.cov - cov).max()]
        if not differ:  # what is averaged last, averaged
            w = np.kron(problem.weights[None], np.eye(d))
            found.append(np.abs(w @ joint.before_cov @ w.T - law.cov[1:]).max())
    return max(found)


@pytest.mark.filterwarnings(AIM)
@pytest.mark.parametrize("name", CASES)
def test_every_batch_enumerated(name):
    assert enumeration_difference(name) < 1e-12


def _transposed(monkeypatch):
    right = blocks.Blocks.mix
    monkeypatch.setattr(blocks.Blocks, "mix", lambda self, W, of: right(self, W.swapaxes(1, 2), of))


def _mean_alone(monkeypatch):
    """Noise at the mean of the point, without its covariance: the law of the mean, dressed up."""
    right = traced_minibatch.MinibatchRounds.noise
    monkeypatch.setattr(traced_minibatch.MinibatchRounds, "noise",
                        lambda self, means, covs: right(self, means, np.zeros_like(covs)))


def _one_client_less(monkeypatch):
    right = pieces.Pieces._made

    def made(self, *given):
        piece = right(self, *given)
        return piece._replace(kicks=tuple(np.concatenate([kick[:, :-1], 0.0 * kick[:, -1:]], axis=1)
                                          for kick in piece.kicks))

    monkeypatch.setattr(pieces.Pieces, "_made", made)


def _other_scale(monkeypatch):
    monkeypatch.setattr(traced_minibatch, "clients_scale", lambda follows, w: radius.clients_scale(
        "components" if follows == "clients" else "clients", w))


def _one_batch_for_both(monkeypatch):
    """Gradients at one point are one: right for exact ones only."""
    from fedsim.samplers import sampler

    right = sampler.trace
    monkeypatch.setattr(sampler, "trace", lambda *given: right(*given[:-1], True))
    monkeypatch.setattr(sampler, "_traced", sampler._traced.__wrapped__)


def _root_forgotten(monkeypatch):
    right = pieces.Pieces._made
    monkeypatch.setattr(pieces.Pieces, "_made", lambda self, *given: right(self, *given)._replace(roots=()))


def _cut_too_late(monkeypatch):
    """A gradient where another one's noise enters is taken in the same piece."""
    monkeypatch.setattr(pieces, "places", lambda nodes: [
        -1 if node.kind in ("state", "past") else 0 for node in nodes])


@pytest.mark.filterwarnings(AIM)
@pytest.mark.parametrize(("mutant", "name"), [
    (_transposed, "DIGing"), (_mean_alone, "EXTRA"), (_one_client_less, "EXTRA"),
    (_other_scale, "local steps"), (_one_batch_for_both, "inner noise"), (_root_forgotten, "random networks"),
    (_cut_too_late, "local steps")])
def test_faults_are_seen(mutant, name, monkeypatch):
    mutant(monkeypatch)
    assert enumeration_difference(name) > 1e-6


def full_batch_difference(name):
    """Rounds in pieces, loops turn by turn, against the same rounds as one matrix."""
    algorithm, n_rounds = BRUTE[name]
    problem = regression(9, False, sizes=(9,)) if name == "stale" else regression(3, False, sizes=(3, 3, 3))
    slow = type(algorithm)(**algorithm._fields() | {"step_size": 0.1 * algorithm.schedule.at(np.arange(4))
                                                    if name == "schedule" else 0.1 * algorithm.step_size})
    start = fs.Gaussian([0.7, -0.4], np.diag([0.5, 0.2]))
    law, plain = (theory.exact_law(one, slow, n_rounds, start=start, allow_unstable=True)
                  for one in (problem, problem.as_quadratic()))
    return max(max(worst(one.mean, other.mean), worst(one.cov, other.cov))
               for one, other in zip((law, *law.clients), (plain, *plain.clients), strict=True))


@pytest.mark.filterwarnings(AIM)
@pytest.mark.parametrize("name", BRUTE)
def test_full_batches_without_replacement_are_full_gradients(name):
    assert full_batch_difference(name) < 1e-12


def _one_turn_less(monkeypatch):
    right = pieces.flat
    monkeypatch.setattr(pieces, "flat", lambda nodes, out: right([
        node._replace(payload=node.payload._replace(turns=node.payload.turns - 1)) if node.kind == "loop"
        else node for node in nodes], out))


def _half_the_noise(monkeypatch):
    right = pieces.Pieces._piece

    def piece(self, *given):
        made = right(self, *given)
        return made._replace(noise=0.5 * made.noise)

    monkeypatch.setattr(pieces.Pieces, "_piece", piece)


@pytest.mark.filterwarnings(AIM)
@pytest.mark.parametrize("mutant", [_one_turn_less, _half_the_noise])
@pytest.mark.parametrize("name", ["everything", "two_steps_back"])
def test_faults_of_pieces_are_seen(mutant, name, monkeypatch):
    mutant(monkeypatch)
    assert full_batch_difference(name) > 1e-4


# ------------------------------------------------------------------------------------------ the long run


@pytest.mark.filterwarnings(AIM)
@pytest.mark.parametrize("algorithm", [
    zoo.extra_sgld(step_size=0.02, W=fs.network.path(3)),
    zoo.diging_sgld(step_size=0.005, W=fs.network.path(3)),
    zoo.scaffold_ld(step_size=0.005, local_steps=3), zoo.random_pairs(
        step_size=0.01, W=fs.network.random_pairs(fs.network.path(3)))], ids=lambda one: type(one).__name__)
def test_stationary_moments_are_the_long_run(algorithm):
    problem = regression(2, sizes=(9, 12, 7), weights=[0.3, 0.3, 0.4])
    assert 0.0 < algorithm._radius(problem) < 1.0
    late = theory.exact_law(problem, algorithm, 2500, record=())
    for client, found in zip((None, 0, 1, 2), (late, *late.clients), strict=False):
        fixed = theory.stationary_law(problem, algorithm, client=client)
        close(found.mean[-1], fixed.mean, 1e-10)
        close(found.cov[-1], fixed.cov, 1e-9)


@pytest.mark.parametrize("sampler", [zoo.extra_sgld, zoo.diging_sgld], ids=lambda one: one.__name__)
def test_beyond_the_limit_of_the_second_moment_it_grows(sampler):
    problem, W = regression(1, sizes=(3, 4)), EVEN
    limit = sampler(step_size=0.02, W=W).stability(problem).max_step_size
    mean_limit = sampler(step_size=0.02, W=W).stability(problem.as_quadratic()).max_step_size
    assert limit < 0.95 * mean_limit
    for step, grows in ((0.9 * limit, False), (1.1 * limit, True)):
        law = theory.exact_law(problem, sampler(step_size=step, W=W), 1600, record=[800], allow_unstable=True)
        ends = [np.trace(one) for one in law.cov[1:]]
        assert (ends[1] > 2.0 * ends[0]) == grows


def test_what_is_not_known(monkeypatch):
    problem, W = regression(2), EVEN
    gossip = zoo.de_sgld(step_size=0.02, W=W)
    with pytest.raises(NoExactLaw, match="with minibatches only moments are known"):
        sample_rounds(problem, gossip, 3, 10, 0)
    with pytest.raises(NoExactLaw, match="gradient by gradient"):
        theory.exact_law(problem, gossip, 10**12, record=())
    with pytest.raises(NoExactLaw, match="take turns"):
        theory.stationary_law(problem, zoo.random_pairs(step_size=0.02, W=[W, np.eye(2)]))
    many = regression(2, sizes=(3,) * 125)
    with pytest.raises(ValueError, match="a state of 250 numbers is not known with minibatches"):
        theory.exact_law(many, zoo.de_sgld(step_size=1e-3, W=fs.network.ring(125)), 3)
    means, full = (theory.exact_law(problem, gossip, 3, covariance=kept) for kept in ("none", "diagonal"))
    close(means.mean, full.mean)
    with pytest.raises(ValueError, match="used before and after a gradient of the same round"):
        twice = around(step_size=0.02, W=fs.network.random([W, np.eye(2)]))
        radius.pieces_of(problem, "components", twice.trace(problem))
    monkeypatch.setattr(pieces, "MOST_NODES", 20)
    with pytest.raises(ValueError, match="a round of 23 operations has no moments with minibatches"):
        theory.exact_law(problem, zoo.fa_ld(step_size=1e-6, local_steps=7), 3)
