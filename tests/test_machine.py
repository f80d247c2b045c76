"""The machine runs what a sampler's function says: replica by replica, and in law."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sampler_zoo as zoo
from hypothesis import given, settings, strategies as st
from naive import Streams
from random_samplers import sampler_of, sources
from sampler_brute import one_round, tape_of
from scipy import stats

import fedsim as fs
import theory
from fedsim.random.streams import OWN_NOISE, SHARED_NOISE
from fedsim.samplers import SamplerWarning, grad, mean, noise as fresh, sqrt

ROUNDS, REPLICAS = 3, 192
PROBLEM = fs.Quadratic([[1.0], [2.0], [0.5]], [[0.5], [-1.0], [2.0]], weights=[0.5, 0.2, 0.3])
PROBLEM_OF_EQUALS = fs.Quadratic([[1.0], [2.0], [0.5]], [[0.5], [-1.0], [2.0]])


@fs.sampler
def drawn(x, *, step_size, who):
    return mean(x - step_size * grad(x) + sqrt(2 * step_size) * fresh(), drawn=who)


@fs.sampler(follows="components")
def twice_drawn(x, s, *, step_size, W):
    return W @ x - s - step_size * grad(x) + sqrt(2 * step_size) * fresh(), s + (x - W @ x) / 2


def used(nodes, out):
    """Nodes that the new state needs."""
    seen, stack = set(), list(out)
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            stack += [m for m, c in nodes[n].terms if np.any(np.asarray(c) != 0.0)]
    return seen


def by_hand(algorithm, problem, n_rounds, seed, replica, start):
    """The first part (n_rounds, N, d), by the tape as it was written and by one number after the other."""
    streams, N = Streams(seed, replica), problem.n_clients
    nodes, names, out = tape_of(algorithm, N, problem.weights, n_rounds)
    needed = used(nodes, out)
    own, common = ([n for n, node in enumerate(nodes) if node.kind == "noise" and node.payload == kind
                    and n in needed] for kind in (False, True))
    history, path = [{name: np.zeros((N, problem.dim)) for name in names}], []
    history[0][names[0]] = np.broadcast_to(start, (N, problem.dim))
    for number in range(n_rounds):
        def normals(n, shared, number=number):
            if n not in needed:
                return np.zeros((N, problem.dim))
            tag, places = (SHARED_NOISE, common) if shared else (OWN_NOISE, own)
            step = number * len(places) + places.index(n)
            return np.array([streams.of_step(tag, step, 0 if shared else c, problem.dim) for c in range(N)])

        history.insert(0, one_round(algorithm, problem, history, normals, number, n_rounds=n_rounds))
        path.append(history[0][names[0]])
    return np.array(path)


def differences(algorithm, problem, seed=7, replicas=(0, 63, 65), start=1.5, **options):
    """Relative to the largest value, between replicas and what is computed by hand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerWarning)
        run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=seed, start=[start] * problem.dim,
                          keep_final=True, allow_unstable=True, threads=1, **options)
    errors = []
    for replica in replicas:
        path = by_hand(algorithm, problem, ROUNDS, seed, replica, start)
        errors.append(np.abs(run.final[replica] - path[-1].mean(axis=0)).max() / max(np.abs(path).max(), 1.0))
    return run, max(errors)


@settings(max_examples=300)
@given(sources(), st.sampled_from(["clients", "components"]))
def test_samplers_that_nobody_wrote(alarm, source, follows):
    algorithm = sampler_of(source, follows)
    run, error = differences(algorithm, PROBLEM)
    assert error < 1e-12, source
    law = theory.exact_law(PROBLEM, algorithm, ROUNDS, start=[1.5], record=run.rounds, allow_unstable=True)
    for seen, known in zip([run, *run.clients], [law, *law.clients], strict=True):
        sd, size = np.sqrt(known.cov[1:, 0, 0]), np.abs(known.mean).max() + 1.0
        random = sd > 1e-9 * size
        assert np.abs(seen.mean[1:, 0] - known.mean[1:, 0])[~random].max(initial=0.0) < 1e-9 * size, source
        if random.any():
            z = (seen.mean[1:, 0] - known.mean[1:, 0])[random] / sd[random] * np.sqrt(REPLICAS)
            alarm.assert_normal(z, source)
            ratio = (REPLICAS - 1) * seen.cov[1:, 0, 0][random] / sd[random]**2
            low = stats.chi2.cdf(ratio, REPLICAS - 1)
            alarm.assert_pvalue(np.minimum(1.0, 2.0 * np.minimum(low, 1.0 - low)), source)


TWINS = {
    "EXTRA": zoo.extra_sgld(step_size=0.1, W=fs.network.ring(3)),
    "a schedule, and many local steps": zoo.fa_ld(step_size=[0.05, 0.02, 0.1], local_steps=5),
    "all data in one place": zoo.stale_sgld(step_size=0.1, age=2),
    "known sets": zoo.known_delays(step_size=0.1, sets=((0, 1), (2,))),
    "pairs": zoo.random_pairs(step_size=0.1, W=fs.network.random_pairs(fs.network.ring(3))),
    "pairs, twice": twice_drawn(step_size=0.1, W=fs.network.random_pairs(fs.network.ring(3))),
    "scheme I": drawn(step_size=0.1, who=fs.Participation(2, replace=True)),
    "scheme II": drawn(step_size=0.1, who=fs.Participation(2, replace=False)),
    "who answers": drawn(step_size=0.1, who=fs.IndependentParticipation([1.0, 0.7, 0.4], unbiased=False)),
}


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("noise", [None, 0.3, "covariances"])
@pytest.mark.parametrize("name", TWINS)
def test_the_twin_in_numpy(name, noise, dim):
    """The same replicas, and all that is kept of them, without a compiler."""
    rng = np.random.default_rng(3)
    if noise == "covariances":
        roots = rng.normal(size=(3, dim, dim))
        noise = roots @ roots.transpose(0, 2, 1)
    problem = fs.Quadratic(rng.uniform(0.5, 2.0, (3, dim)), rng.normal(size=(3, dim)), gradient_noise=noise)
    options = {"n_rounds": ROUNDS, "n_replicas": 140, "seed": 5, "average": "square", "keep_final": True,
               "start": fs.Gaussian(np.ones(dim), np.eye(dim)), "record": [1], "allow_unstable": True}
    run = fs.simulate(problem, TWINS[name], **options)
    slow = fs.simulate(problem, TWINS[name], compiled=False, **options)
    pairs = [(getattr(one, part), getattr(other, part)) for part in ("mean", "cov", "spread")
             for one, other in zip([run, *run.clients], [slow, *slow.clients], strict=True)]
    for one, other in [*pairs, (run.final, slow.final), (run.averages, slow.averages)]:
        assert one.shape == other.shape and np.abs(one - other).max() < 1e-12


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
def test_what_has_no_twin_is_said():
    options = {"n_rounds": 2, "n_replicas": 2, "seed": 1, "compiled": False}
    with pytest.raises(ValueError, match="has no twin in NumPy: compiled=False is for samplers"):
        fs.simulate(PROBLEM, fs.FALD(0.1), **options)
    for name, value in (("noise", "single"), ("checkpoint", "folder"), ("executor", ThreadPoolExecutor(1))):
        with pytest.raises(ValueError, match=rf"{name}=.* must be .* with compiled=False"):
            fs.simulate(PROBLEM, TWINS["EXTRA"], **{name: value}, **options)
    data = fs.LinearRegression(np.arange(6.0)[:, None], np.ones(6), clients=np.arange(6) % 3, batch_size=1,
                               noise_std=1.0, prior_variance=1.0)
    with pytest.raises(ValueError, match="has minibatches, which only compiled replicas draw"):
        fs.simulate(data, TWINS["EXTRA"], allow_unstable=True, **options)
    with pytest.raises(fs.DivergedError, match="diverged at round"):
        fs.simulate(PROBLEM, zoo.de_sgld(step_size=30.0, W=np.eye(3)), 100, 2, seed=1, compiled=False,
                    allow_unstable=True)


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
@pytest.mark.parametrize("name", [name for name in TWINS if "pairs" in name or "scheme" in name])
def test_what_is_drawn_at_random_has_the_moments_of_the_law(alarm, name):
    """A network, or a set of clients, is one for all that a round does with it."""
    R = 40_000
    run = fs.simulate(PROBLEM_OF_EQUALS, TWINS[name], 5, R, seed=11, start=[1.0], allow_unstable=True)
    law = theory.exact_law(PROBLEM_OF_EQUALS, TWINS[name], 5, start=[1.0], allow_unstable=True)
    for seen, known in zip([run, *run.clients], [law, *law.clients], strict=True):
        alarm.assert_normal((seen.mean[1:, 0] - known.mean[1:, 0]) / np.sqrt(known.cov[1:, 0, 0] / R))
        alarm.assert_student((seen.cov[1:, 0, 0] - known.cov[1:, 0, 0]) / seen.spread[1:, 0, 0],
                             seen.n_leaves - 1)
