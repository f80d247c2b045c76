"""Blocks that are fewer than threads are cut by coordinates: the same bits, and only where nothing mixes."""

import numpy as np
import pytest

import fedsim as fs
from fedsim.engine.job import make_job

RNG = np.random.default_rng(1)
DIM = 136  # two parts of 68: neither whole tiles nor a power of two
PROBLEM = fs.Quadratic(RNG.uniform(1.0, 3.0, (3, DIM)), RNG.standard_normal((3, DIM)), [0.2, 0.3, 0.5],
                       gradient_noise=0.3)
EXACT = fs.Quadratic([1.0, 2.0, 3.0], PROBLEM.minimizers)
ALGORITHMS = {
    "FA-LD": (EXACT, fs.FALD(0.1, 3, shared_noise=0.25)), "FA-HMC": (PROBLEM, fs.FAHMC(0.1, 3, 2, 0.5)),
    "DE-SGLD": (PROBLEM, fs.DESGLD(0.05, fs.network.ring(3))), "stale": (PROBLEM, fs.StaleSGLD(0.02, 2))}


def cut(problem=PROBLEM, algorithm=ALGORITHMS["FA-LD"][1], n_replicas=64, threads=2, **options):
    """Coordinates in each part."""
    options = {"seed": 1, "covariance": "diagonal", "threads": threads} | options
    job = make_job(problem, algorithm, 2, n_replicas, **options)
    return [part.problem.dim for part in job.parts()]


@pytest.mark.parametrize("noise", ["double", "single"])
@pytest.mark.parametrize("n_replicas", [20, 64])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_parts_have_the_bits_of_the_whole(name, n_replicas, noise):
    problem, algorithm = ALGORITHMS[name]
    assert cut(problem, algorithm, n_replicas) == [68, 68]
    one, two = (fs.simulate(problem, algorithm, 7, n_replicas, seed=1, covariance="diagonal", keep_final=True,
                            noise=noise, threads=threads) for threads in (1, 2))
    for first, second in zip((one, *one.clients), (two, *two.clients), strict=True):
        assert (first.mean == second.mean).all() and (first.cov == second.cov).all()
    assert (one.final == two.final).all()


def test_what_mixes_or_is_short_is_not_cut():
    assert cut(n_replicas=640) == [DIM]  # blocks enough for all threads
    assert cut(threads=3) == [68, 68]  # parts are not too short
    assert cut(threads=1) == cut(covariance="full") == cut(average="identity") == [DIM]
    assert cut(start=fs.Gaussian(np.zeros(DIM), np.eye(DIM) + 0.1)) == [DIM]
    assert cut(algorithm=fs.FALD(0.1, participation=fs.Participation(2, True))) == [DIM]
    assert cut(fs.Quadratic([np.eye(DIM)] * 3, PROBLEM.minimizers)) == [DIM]
    odd = fs.Quadratic(PROBLEM.hessians[:, :130], PROBLEM.minimizers[:, :130])
    assert cut(odd) == [130]


def test_a_random_start_of_independent_coordinates_is_cut_with_them():
    start = fs.Gaussian(np.zeros(DIM), np.linspace(0.5, 2.0, DIM))
    assert cut(start=start) == [68, 68]
    one, two = (fs.simulate(PROBLEM, fs.FALD(0.1), 3, 64, seed=1, covariance="diagonal", start=start,
                            threads=threads) for threads in (1, 2))
    assert (one.mean == two.mean).all() and (one.cov == two.cov).all()


def test_the_first_diverged_round_is_that_of_the_whole():
    """Only the last coordinate diverges soon, in the second part."""
    curvature = np.ones((2, DIM))
    curvature[:, -1], curvature[:, 0] = 9.0, 6.0
    problem, rounds = fs.Quadratic(curvature, np.ones((2, DIM))), []
    for threads in (1, 2):
        with pytest.raises(fs.DivergedError) as error:
            fs.simulate(problem, fs.FALD(0.5), 2000, 64, seed=1, allow_unstable=True, covariance="none",
                        threads=threads)
        rounds.append(error.value.round)
    assert rounds[0] == rounds[1]
