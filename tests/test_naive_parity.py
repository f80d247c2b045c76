"""The compiled kernel of every algorithm equals its slow twin on the same noise, for every option."""

import dataclasses
import itertools

import numpy as np
import pytest
from algorithms import ROWS, each
from cases import ONE_LEAF_AND_TWO, fa_hmc, fa_ld

import fedsim as fs

SEED = 0x9E3779B97F4A7C15
TOLERANCE = {"double": 1e-12, "single": 1e-5}


def test_every_algorithm_has_a_row():
    exported = (getattr(fs, name) for name in fs.__all__)
    assert {value for value in exported if hasattr(value, "_kernel")} == set(ROWS)


def assert_parity(row, problem, algorithm, start, n_rounds, noise="double", replicas=ONE_LEAF_AND_TWO):
    """The average of replicas, and every client's path where it is alone in its run."""
    options = {"seed": SEED, "start": start, "allow_unstable": True, "noise": noise, "threads": 1}
    run = fs.simulate(problem, algorithm, n_rounds, max(replicas) + 1, keep_final=True, **options)
    for replica in replicas:
        slow = row.twin(problem, algorithm, n_rounds, SEED, replica, start, noise == "single")
        average = slow[-1] if slow.ndim == 2 else slow[-1].mean(axis=0)
        error = np.abs(run.final[replica] - average).max() / np.abs(slow).max()
        assert error <= TOLERANCE[noise], (
            f"replica {replica}: {problem}, {algorithm}, start={start}: {error:g}")
    if slow.ndim == 3:
        alone = fs.simulate(problem, algorithm, n_rounds, 1, covariance="none", **options)
        slow = row.twin(problem, algorithm, n_rounds, SEED, 0, start, noise == "single")
        for client, law in enumerate(alone.clients):
            error = np.abs(law.mean - slow[:, client]).max() / np.abs(slow).max()
            assert error <= TOLERANCE[noise], (
                f"client {client}: {problem}, {algorithm}, start={start}: {error:g}")


@pytest.mark.parametrize(**each(lambda row: row.groups))
def test_kernel_is_its_slow_twin(kind, name):
    group = ROWS[kind].groups[name]
    for noise in ("double", "single")[:1 + group.single]:
        for problem, algorithm, start in group.options():
            assert_parity(ROWS[kind], problem, algorithm, start, group.n_rounds, noise, group.replicas)


@pytest.mark.parametrize(**each(lambda row: row.laws))
def test_what_has_an_exact_law_has_a_slow_twin(kind, name):
    row = ROWS[kind]
    assert_parity(row, *row.laws[name], row.n_rounds)


@pytest.mark.parametrize(**each(lambda row: row.bits))
def test_every_round_of_a_path(kind, name):
    """`sample_path` is replica i of the same streams, at every round."""
    row = ROWS[kind]
    problem, algorithm, start = row.laws[name]
    paths = fs.sample_path(problem, algorithm, row.n_rounds, seed=SEED, n_chains=71, start=start)
    for replica in (1, 70):
        slow = row.path(problem, algorithm, row.n_rounds, SEED, replica, start)
        np.testing.assert_allclose(paths[replica], slow[1:], atol=1e-12 * np.abs(slow).max(), rtol=0)


@pytest.mark.parametrize("kind", ROWS)
def test_the_twins_are_not_the_same_code(kind):
    """A change of the slow twin is noticed: the comparison can fail."""
    row = ROWS[kind]
    problem, algorithm, start = row.plainest
    other = dataclasses.replace(algorithm, step_size=algorithm.step_size * (1.0 + 1e-9))
    run = fs.simulate(problem, algorithm, 3, 64, seed=SEED, start=start, keep_final=True)
    assert np.abs(run.final[0] - row.path(problem, other, 3, SEED, 0, start)[-1]).max() > 1e-12


def test_the_options_of_fa_ld_cover_the_pairs():
    """Each class of problem meets both kinds of participation, and each schedule does."""
    assert {(s, n, p) for s, n, _, p in fa_ld.GRID} == {
        (*q, p) for q in fa_ld.PROBLEMS for p in (False, True)}
    assert {(s, p) for _, _, s, p in fa_ld.GRID} == set(itertools.product(fa_ld.SCHEDULES, (False, True)))


def test_the_options_of_fa_hmc_cover_the_pairs():
    """Each way of debiasing meets each amount of shared noise and each number of leapfrog steps."""
    seen = [(a.debias, a.first_round, a.shared_noise, a.leapfrog_steps)
            for case in fa_hmc.GRID for _, a, _ in fa_hmc.options(*case)]
    assert {(d, f, s) for d, f, s, _ in seen} == {(*d, s) for d in fa_hmc.DEBIAS for s in (0.0, 0.5, 1.0)}
    assert {(d, f, k) for d, f, _, k in seen} == {(*d, k) for d in fa_hmc.DEBIAS for k in (1, 2, 5)}
