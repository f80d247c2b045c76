"""The machine runs what a sampler's function says: replica by replica, and in law."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given, settings, strategies as st
from naive import Streams
from random_samplers import sampler_of, sources
from sampler_brute import one_round, tape_of
from scipy import stats

import fedsim as fs
import theory
from fedsim.random.streams import OWN_NOISE, SHARED_NOISE
from fedsim.samplers import SamplerWarning

ROUNDS, REPLICAS = 3, 192
PROBLEM = fs.Quadratic([[1.0], [2.0], [0.5]], [[0.5], [-1.0], [2.0]], weights=[0.5, 0.2, 0.3])


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
