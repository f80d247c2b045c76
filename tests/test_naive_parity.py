"""The compiled kernel equals its slow twin on the same noise, for every kind of problem and option."""

import itertools

import naive
import numpy as np
import pytest

import fedsim as fs

SEED = 0x9E3779B97F4A7C15
REPLICAS = (0, 63, 65)  # 64 replicas in one leaf, and two in the next, which may be laid out otherwise
ROUNDS = 3

# (structure, noise): the class of problem that compiled code sees
PROBLEMS = list(itertools.product(("dense", "diagonal"), (None, "std", "cov")))
SCHEDULES = ("constant", "listed", "harmonic")


def spd(rng, n, dim, low=0.5):
    """Random symmetric positive definite matrices (n, d, d)."""
    factor = rng.standard_normal((n, dim, dim))
    return factor @ np.swapaxes(factor, 1, 2) / dim + low * np.eye(dim)


def make_problem(rng, structure, noise, n_clients, dim, weighted, singular=False):
    minimizers = rng.standard_normal((n_clients, dim))
    weights = rng.dirichlet(np.full(n_clients, 3.0)) if weighted else None
    hessians = {"dense": lambda: spd(rng, n_clients, dim),
                "diagonal": lambda: rng.uniform(0.5, 3.0, (n_clients, dim)),
                "isotropic": lambda: rng.uniform(0.5, 3.0, n_clients)}[structure]()
    if noise == "cov":
        factor = rng.standard_normal((n_clients, dim, dim))
        if singular:
            factor[:, :, 0] = 0.0  # rank d - 1, zero at d = 1
        noise = factor @ np.swapaxes(factor, 1, 2)
    elif noise == "std":
        noise = 0.7
    return fs.Quadratic(hessians, minimizers, weights, noise)


def make_step_size(kind, local_steps):
    if kind == "constant":
        return 0.11
    if kind == "harmonic":
        return fs.schedules.Harmonic(8.0, 0.9)
    return 0.02 + 0.1 * np.random.default_rng(7).random(ROUNDS * local_steps)


def options(structure, noise, schedule, sampled):
    """Every dimension, number of local steps and amount of shared noise; the rest varies along."""
    rng = np.random.default_rng([len(structure), SCHEDULES.index(schedule), sampled])
    grid = itertools.product((1, 2, 3, 5), (1, 2, 3), (0.0, 0.3, 1.0))
    for number, (dim, local_steps, shared) in enumerate(grid):
        n_clients = (3, 1, 4, 2)[number % 4]
        scheme_two = sampled and number % 3 == 1
        kind = "isotropic" if structure == "diagonal" and number % 5 == 2 else structure
        problem = make_problem(rng, kind, noise, n_clients, dim, weighted=not scheme_two,
                               singular=number % 2 == 1)
        active = 1 + number % n_clients if scheme_two else 1 + number % 5
        participation = fs.Participation(active, not scheme_two) if sampled else None
        algorithm = fs.FALD(make_step_size(schedule, local_steps), local_steps, (1.0, 0.3)[number % 2],
                            shared, participation)
        start = (None, rng.standard_normal(dim),
                 fs.Gaussian(rng.standard_normal(dim), spd(rng, 1, dim)[0]))[number % 3]
        yield problem, algorithm, start


def assert_parity(problem, algorithm, start, noise, tolerance):
    run = fs.simulate(problem, algorithm, ROUNDS, 66, seed=SEED, start=start, keep_final=True,
                      allow_unstable=True, noise=noise, threads=1)
    for replica in REPLICAS:
        slow = naive.fa_ld(problem, algorithm, ROUNDS, SEED, replica, start, noise == "single")
        error = np.abs(run.final[replica] - slow[-1]).max() / max(1.0, np.abs(slow).max())
        assert error <= tolerance, f"replica {replica}: {problem}, {algorithm}, start={start}: {error:g}"


CASES = [(*problem, SCHEDULES[(i + sampled) % 3], sampled)
         for i, problem in enumerate(PROBLEMS) for sampled in (False, True)]


@pytest.mark.parametrize(("structure", "noise", "schedule", "sampled"), CASES)
def test_kernel_is_its_slow_twin(structure, noise, schedule, sampled):
    for problem, algorithm, start in options(structure, noise, schedule, sampled):
        assert_parity(problem, algorithm, start, "double", 1e-12)


@pytest.mark.parametrize(("structure", "noise", "schedule", "sampled"), [CASES[5], CASES[8]])
def test_single_precision_variates_too(structure, noise, schedule, sampled):
    for problem, algorithm, start in options(structure, noise, schedule, sampled):
        assert_parity(problem, algorithm, start, "single", 1e-5)


def test_products_in_groups_of_rows():
    """Dense dimensions from 3 on take four, two or one row of the Hessian at a time."""
    rng = np.random.default_rng(3)
    for dim in (3, 4, 5, 6, 7, 8, 19):
        for participation in (None, fs.Participation(2, True)):
            problem = make_problem(rng, "dense", None, 3, dim, weighted=True)
            assert_parity(problem, fs.FALD(0.05, 2, 1.0, 0.3, participation), None, "double", 1e-12)


def test_the_cases_cover_the_pairs():
    """Each class of problem meets both kinds of participation, and each schedule does."""
    assert {(s, n, p) for s, n, _, p in CASES} == {(*q, p) for q in PROBLEMS for p in (False, True)}
    assert {(s, p) for _, _, s, p in CASES} == set(itertools.product(SCHEDULES, (False, True)))


@pytest.mark.parametrize("replica", [1, 70])
def test_every_round_of_a_path(replica):
    """`sample_path` is replica i of the same streams, at every round."""
    rng = np.random.default_rng(5)
    problem = make_problem(rng, "dense", None, 3, 3, weighted=True)
    algorithm = fs.FALD(0.1, 3, 1.0, 0.3)
    paths = fs.sample_path(problem, algorithm, 20, seed=SEED, n_chains=71)
    slow = naive.fa_ld(problem, algorithm, 20, SEED, replica)
    np.testing.assert_allclose(paths[replica], slow[1:], atol=1e-12 * np.abs(slow).max(), rtol=0)


def test_the_twins_are_not_the_same_code():
    """A change of the slow twin is noticed: the comparison can fail."""
    rng = np.random.default_rng(1)
    problem = make_problem(rng, "dense", None, 2, 2, weighted=True)
    good, bad = fs.FALD(0.1, 2), fs.FALD(0.1, 2, temperature=1.0 + 1e-9)
    run = fs.simulate(problem, good, ROUNDS, 64, seed=SEED, keep_final=True)
    slow = naive.fa_ld(problem, bad, ROUNDS, SEED, 0)
    assert np.abs(run.final[0] - slow[-1]).max() > 1e-12
