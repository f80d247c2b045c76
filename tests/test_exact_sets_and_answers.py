"""Exact laws and stability where known sets take turns, or clients answer by chance: against brute force."""

from __future__ import annotations

import dataclasses
import itertools

import brute_force
import brute_force_fa_hmc
import numpy as np
import pytest
from examples_of import close, gaussian_start, make_problem, regression
from scores import scores

import fedsim as fs
import theory
from fedsim.stability.federated import curvatures
from theory.exact import FAHMCFlow, NoExactLaw, joint_law, sample_rounds, stationary_law
from theory.exact.federated.minibatch import MinibatchRounds

IN_TURN = fs.FixedParticipation([[0, 2], [1], [0, 1, 2], [2]], cyclic=True)
LISTED = fs.FixedParticipation([[1], [0, 2], [0, 1, 2], [2]])
ANSWERS = fs.IndependentParticipation([0.3, 0.8, 0.5])
WEIGHED = fs.IndependentParticipation([0.6, 0.9, 0.5], unbiased=True)
KINDS = [IN_TURN, LISTED, ANSWERS, WEIGHED]
DEBIAS = [(None, "none"), ("fresh", "none"), ("stale", "none"), ("stale", "exact"), ("stale", "printed")]
STEPS = (0.2, fs.schedules.Harmonic(4.0, 0.3))


def compared(problem, algorithm, brute, start):
    """The law and brute force, with everything that may be asked for."""
    moments = () if start is None else (start.mean, start.cov)
    mean, cov = brute.rounds(problem, algorithm, 4, *moments)
    law = theory.exact_law(problem, algorithm, 4, start=start, allow_unstable=True)
    assert law.is_gaussian == isinstance(algorithm.participation, fs.FixedParticipation)
    close(law.mean, mean, 1e-12)
    close(law.cov, cov, 1e-12)
    thin = theory.exact_law(problem, algorithm, 4, start=start, covariance="diagonal", record=[2],
                            allow_unstable=True)
    close(thin.cov, np.diagonal(cov, axis1=1, axis2=2)[[0, 2, 4]], 1e-12)


@pytest.mark.parametrize("structure", ["dense", "diagonal", "isotropic"])
@pytest.mark.parametrize("chosen", KINDS, ids=str)
def test_fa_ld_equals_brute_force(chosen, structure):
    for noise, step, shared, local_steps in itertools.product((None, 0.7, "covariances"), STEPS,
                                                              (0.0, 0.4, 1.0), (1, 3)):
        problem = make_problem(structure, noise=noise)
        start = gaussian_start(2) if local_steps == 1 else None
        compared(problem, fs.FALD(step, local_steps, 0.6, shared, chosen), brute_force, start)


@pytest.mark.parametrize("structure", ["dense", "diagonal"])
@pytest.mark.parametrize(("debias", "first"), DEBIAS)
@pytest.mark.parametrize("chosen", KINDS, ids=str)
def test_fa_hmc_equals_brute_force(chosen, debias, first, structure):
    for noise, step, shared in itertools.product((None, "covariances"), STEPS, (0.0, 0.4)):
        algorithm = fs.FAHMC(step, 2, 2, shared, debias, first, chosen)
        compared(make_problem(structure, noise=noise), algorithm, brute_force_fa_hmc, gaussian_start(2))


@pytest.mark.parametrize("chosen", [ANSWERS, WEIGHED, fs.FixedParticipation([[0, 2]], cyclic=True)], ids=str)
def test_the_stationary_law_is_the_long_run(chosen):
    for structure, noise in itertools.product(("dense", "diagonal"), (None, "covariances")):
        problem = make_problem(structure, noise=noise)
        for algorithm in (fs.FALD(0.1, 3, 1.0, 0.3, chosen),
                          fs.FAHMC(0.2, 2, 2, 0.3, "stale", "none", chosen)):
            law, fixed = theory.exact_law(problem, algorithm, 3000), stationary_law(problem, algorithm)
            close(law.mean[-1], fixed.mean, 1e-10)
            close(law.cov[-1], fixed.cov, 1e-10)


@pytest.mark.parametrize("debias", [None, "stale"])
def test_many_periods_are_one_step(debias):
    """Beginning and ending anywhere in a period; recorded rounds or not."""
    problem = make_problem()
    algorithm = fs.FAHMC(0.02, 2, 2, 0.3, debias, participation=IN_TURN)
    every = theory.exact_law(problem, algorithm, 203, start=gaussian_start(2))
    for record in ((), (1, 2, 57, 58, 130), (4, 8, 100, 101)):
        some = theory.exact_law(problem, algorithm, 203, start=gaussian_start(2), record=record)
        close(some.mean, every.mean[some.rounds], 1e-11)
        close(some.cov, every.cov[some.rounds], 1e-11)
    far = theory.exact_law(problem, algorithm, 4 * 10**9 + 1, record=[4 * 10**9])
    near = theory.exact_law(problem, algorithm, 10**5 + 1, record=[10**5])
    close(far.mean[1:], near.mean[1:], 1e-9)


def test_what_has_no_law_says_why():
    problem = make_problem()
    for chosen, why in ((IN_TURN, "take turns, so that the law is periodic"), (LISTED, "a list, which ends")):
        with pytest.raises(NoExactLaw, match=why):
            stationary_law(problem, fs.FALD(0.1, participation=chosen))
    for chosen in KINDS:
        with pytest.raises(NoExactLaw, match=r"participation=\w+Participation.*the joint law.*exact_law"):
            joint_law(problem, fs.FALD(0.1, participation=chosen), 3)
    with pytest.raises(ValueError, match="participation has 4 sets; n_rounds=5 needs one for each round"):
        theory.exact_law(problem, fs.FALD(0.1, participation=LISTED), 5)
    long = fs.FixedParticipation([[0], [1]] * 5000 + [[2]], cyclic=True)
    with pytest.raises(NoExactLaw, match="would be stepped through one by one"):
        theory.exact_law(problem, fs.FALD(1e-6, participation=long), 10**10, record=range(0, 10**10, 20_000),
                         covariance="none", allow_unstable=True)


@pytest.mark.parametrize("chosen", KINDS, ids=str)
@pytest.mark.parametrize("structure", ["dense", "diagonal"])
def test_drawn_rounds_follow_the_law(chosen, structure, alarm):
    problem = make_problem(structure, noise="covariances" if structure == "dense" else None)
    for algorithm in (fs.FALD(0.15, 2, 1.0, 0.4, chosen), fs.FAHMC(0.2, 2, 2, 0.4, "stale", "none", chosen)):
        law = theory.exact_law(problem, algorithm, 4, start=gaussian_start(2))
        points = sample_rounds(problem, algorithm, 4, 40_000, seed=5, start=gaussian_start(2))[:, 0]
        gaps = points - law.mean[-1]
        products = gaps[:, :, None] * gaps[:, None, :]
        error = products.std(axis=0) / 200.0
        alarm.assert_normal(gaps.mean(axis=0) / points.std(axis=0) * 200.0, "mean")
        alarm.assert_normal((products.mean(axis=0) - law.cov[-1]) / error, "covariance")


def test_trajectories_in_the_limit():
    """`FAHMCFlow` is what short leapfrog steps approach."""
    problem = make_problem()
    for chosen in KINDS:
        flow = theory.exact_law(problem, FAHMCFlow(0.4, 2, 0.3, chosen), 4)
        fine = theory.exact_law(problem, fs.FAHMC(0.4 / 400, 400, 2, 0.3, participation=chosen), 4)
        close(fine.mean, flow.mean, 1e-5)
        close(fine.cov, flow.cov, 1e-5)
        assert FAHMCFlow(0.4, 2, 0.3, chosen).stability(problem).radius == pytest.approx(
            fs.FAHMC(0.4 / 400, 400, 2, 0.3, participation=chosen).stability(problem).radius, rel=1e-5)


@pytest.mark.parametrize("kind", ["dense", "diagonal"])
def test_all_clients_and_certain_answers_are_full_participation(kind):
    problem = make_problem(kind, noise="covariances")
    certain = (fs.IndependentParticipation(1.0), fs.IndependentParticipation([1.0] * 3, True))
    for debias in (None, "stale", "fresh"):
        laws = [theory.exact_law(problem, fs.FAHMC(0.2, 2, 2, 0.4, debias, participation=chosen), 9)
                for chosen in (None, *certain, [range(3)] * 9, fs.FixedParticipation([range(3)], True))]
        for law in laws[1:]:
            assert law.is_gaussian
            close(law.mean, laws[0].mean, 1e-13)
            close(law.cov, laws[0].cov, 1e-13)


def enumerated_radius(problem, algorithm):
    """Per round, from the second moment's matrix: all outcomes of a round, or all sets in turn."""
    unit, chosen = np.eye(2), algorithm.participation

    def mean(start, client):
        alone = dataclasses.replace(algorithm, participation=[[client]])
        law = theory.exact_law(problem, alone, 1, start=start, covariance="none", allow_unstable=True)
        return law.mean[1]

    moves = np.array([np.column_stack([mean(row, client) - mean(None, client) for row in unit]) - unit
                      for client in range(problem.n_clients)])
    total, count = np.eye(4), chosen.n_sets if isinstance(chosen, fs.FixedParticipation) else 1
    for number in range(count):
        outcomes = brute_force.outcomes(chosen, problem.weights, number)
        maps = [(chance, unit + np.tensordot(shares, moves, axes=1)) for chance, shares in outcomes]
        total = sum(chance * np.kron(one, one) for chance, one in maps) @ total
    return np.abs(np.linalg.eigvals(total)).max() ** (0.5 / count)


def growth(problem, algorithm, n_rounds):
    """By how much a covariance grows in a round in the long run, by what a distant start adds to the law."""
    laws = [theory.exact_law(problem, algorithm, 2 * n_rounds, allow_unstable=True, record=[n_rounds],
                             start=fs.Gaussian([0.0, 0.0], size * np.eye(2))) for size in (1e12, 1.0)]
    sizes = [np.trace(laws[0].cov[k] - laws[1].cov[k]) for k in (1, 2)]
    return (sizes[1] / sizes[0]) ** (0.5 / n_rounds)


FEW = fs.IndependentParticipation([0.05, 0.3, 0.2], unbiased=True)


@pytest.mark.parametrize("chosen", [IN_TURN, ANSWERS, WEIGHED, FEW], ids=str)
@pytest.mark.parametrize("debias", [None, "fresh", "FA-LD"])
def test_stability_is_that_of_second_moments(chosen, debias):
    for structure in ("dense", "diagonal"):
        problem = make_problem(structure)

        def at(step, problem=problem):
            if debias == "FA-LD":
                return fs.FALD(step, 2, participation=chosen)
            return fs.FAHMC(step, 2, 2, 0.5, debias, participation=chosen)

        limit = at(0.01).stability(problem).max_step_size
        for factor in (0.02, 0.5, 1.0 - 1e-3, 1.0 + 1e-3):
            found = at(factor * limit).stability(problem)
            assert found.stable == (factor < 1.0)
            assert found.max_step_size == pytest.approx(limit, rel=1e-6)
            if np.isfinite(found.radius):  # the leapfrog itself has a limit
                assert enumerated_radius(problem, at(factor * limit)) == pytest.approx(found.radius, rel=1e-9)


@pytest.mark.parametrize("chosen", [IN_TURN, ANSWERS, WEIGHED, FEW], ids=str)
def test_beyond_the_limit_second_moments_diverge(chosen):
    """Also where rounds remember."""
    for structure, debias in itertools.product(("dense", "diagonal"), (None, "stale", "fresh")):
        problem = make_problem(structure)
        limit = fs.FAHMC(0.01, 2, 2, 0.5, debias, participation=chosen).stability(problem).max_step_size
        for factor in (1.0 - 1e-3, 1.0 + 1e-3):
            algorithm = fs.FAHMC(factor * limit, 2, 2, 0.5, debias, participation=chosen)
            radius = algorithm.stability(problem).radius
            assert (radius < 1.0) == (factor < 1.0)
            if 0.99 < radius < 1.1:  # elsewhere a client's leapfrog has its own limit
                found = growth(problem, algorithm, 600)
                assert (found < 1.0) == (factor < 1.0)
                assert found == pytest.approx(radius, abs=2e-3)


def test_who_never_works_does_not_count():
    """However stiff; with debiasing its gradient counts."""
    stiff = fs.Quadratic([1.0, 2.0, 1e8], np.zeros((3, 1)), [0.3, 0.3, 0.4])
    alone = fs.Quadratic([1.0, 2.0], np.zeros((2, 1)))
    chosen = fs.FixedParticipation([[0], [0, 1], [1]], cyclic=True)
    for make in (lambda: fs.FALD(0.5, 2, participation=chosen),
                 lambda: fs.FAHMC(0.5, 3, 2, participation=chosen)):
        one, other = make().stability(stiff), make().stability(alone)
        assert one.stable and one.radius == pytest.approx(other.radius, rel=1e-12)
        assert one.max_step_size == pytest.approx(other.max_step_size, rel=1e-9)
    assert not fs.FAHMC(0.5, 3, 2, 1.0, "fresh", participation=chosen).stability(stiff).stable


def test_radius_of_long_lists():
    """Products that underflow or overflow a number, and those that hardly move."""
    problem = make_problem()
    few, many = (fs.FixedParticipation([0, 1, 2, 1] * count) for count in (1, 3000))
    for size in (1e-13, 1e-3, 0.1, 3.0):
        one, other = (fs.FALD(size, 3, participation=chosen).stability(problem) for chosen in (few, many))
        assert one.radius == pytest.approx(other.radius, rel=1e-12)
        assert (one.stable, one.max_step_size) == (other.stable, pytest.approx(other.max_step_size, rel=1e-9))
    modes = curvatures(problem)
    assert fs.FALD(1e-17, participation=many)._round_radius(problem, modes, 1e-17) < 1.0


@pytest.mark.parametrize("chosen", [fs.FixedParticipation([[0, 1], [1], [0]], cyclic=True),
                                    fs.IndependentParticipation([0.3, 0.7]),
                                    fs.IndependentParticipation([0.3, 0.7], unbiased=True)], ids=str)
def test_stability_under_minibatches_is_that_of_the_exact_moments(chosen):
    problem = regression(1)
    for make in (lambda step: fs.FALD(step, 2, participation=chosen),
                 lambda step: fs.FAHMC(step, 2, 2, participation=chosen)):
        limit = make(1e-4).stability(problem).max_step_size
        for factor in (0.5, 1.0):
            algorithm = make(factor * limit)
            rounds = MinibatchRounds(problem, algorithm)
            assert algorithm.stability(problem).radius**2 == pytest.approx(rounds.radius(), rel=1e-6)


def test_replicas_with_minibatches_follow_their_moments(alarm):
    problem, start = regression(3, False, sizes=(6, 9, 7)), [3.0, -2.0]
    for chosen in (fs.FixedParticipation([[0, 1], [2]], cyclic=True), fs.IndependentParticipation(0.4)):
        algorithm = fs.FALD(0.002, 3, participation=chosen)
        law = theory.exact_law(problem, algorithm, 6, start=start, record=(1, 3))
        run = fs.simulate(problem, algorithm, 6, 40_000, seed=71, start=start, record=(1, 3))
        alarm.assert_normal(scores(run, law), repr(chosen))
