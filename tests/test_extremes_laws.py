"""Exact laws, constants and plans with extreme numbers: right, refused by name, or said to lose digits."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from extremes import draw, judge

import fedsim as fs
import theory
from fedsim.settings import limits
from theory.exact import joint_law, sample_rounds

SEED = 7
PAIR = fs.network.complete(2)
PROBLEM = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
DRAWN = fs.Participation(2, True)
RNG = np.random.default_rng(5)


# --- the search


def searched(numbers):
    """Cases that broke a promise, and counts: through, refused in part, warned of, not made."""
    broken, counts = [], dict.fromkeys(("through", "refused", "warned", "not drawn"), 0)
    for number in numbers:
        try:
            case = draw(SEED, number)
        except ValueError:
            counts["not drawn"] += 1
            continue
        try:
            answers, warned = judge(case)
        except Exception as error:
            broken.append(f"seed {SEED}, case {number}: {error!r} for {case}")
            continue
        refused = any(isinstance(answer, ValueError) for answer in answers.values())
        counts["refused" if refused else "through"] += 1
        counts["warned"] += bool(warned)
    print(f"seed {SEED}: {counts}")
    return broken, counts


def test_extreme_problems_have_finite_answers_or_are_refused():
    broken, counts = searched(range(150))
    assert not broken, "\n".join(broken)
    assert counts["through"] > 50


@pytest.mark.slow
def test_many_extreme_problems_have_finite_answers_or_are_refused():
    broken, counts = searched(range(2200))
    assert not broken, "\n".join(broken)
    assert counts["through"] > 700


# --- digits next to the limit

NEAR = {
    "FALD": (PROBLEM, fs.FALD, 1.0),
    "FALD, drawn": (PROBLEM, lambda h: fs.FALD(h, participation=fs.Participation(1, True)), None),
    "FAHMC": (fs.Quadratic([3.0], [[1.0]]), lambda h: fs.FAHMC(h, 1), None),
    "DESGLD": (PROBLEM, lambda h: fs.DESGLD(h, PAIR), None),
    "DESGHMC": (PROBLEM, lambda h: fs.DESGHMC(h, 0.1, PAIR), None),
    "StaleSGLD": (PROBLEM, lambda h: fs.StaleSGLD(h, 2), None),
    "StaleSGHMC": (PROBLEM, lambda h: fs.StaleSGHMC(h, 0.5, 2), None),
}


@pytest.mark.parametrize("name", NEAR)
def test_lost_digits_are_said_next_to_the_limit_and_nowhere_else(name):
    problem, make, limit = NEAR[name]
    limit = limit or make(1e-3).stability(problem).max_step_size
    for share in (1e-9, 1e-3, 0.5, 0.99, 1.0 - 1e-6, 1.0 - 1e-9):
        theory.stationary_law(problem, make(share * limit))  # a warning is an error
        theory.exact_law(problem, make(share * limit), 2**50, record=[])
    near = make((1.0 - 2e-12) * limit)
    with pytest.warns(theory.PrecisionWarning, match=r"step_size=.* within .*e-12 .* about 4 digits"):
        law = theory.stationary_law(problem, near)
    with pytest.warns(theory.PrecisionWarning, match="digits"):
        long = theory.exact_law(problem, near, 2**50, record=[]).at(2**50)
    assert long.variances == pytest.approx(law.variances, rel=0.05)
    theory.exact_law(problem, near, 100)  # so few rounds lose nothing


# --- digits where contraction is slow

SPARSE = fs.network.ring(40)


@pytest.mark.parametrize("make", [lambda h, network: fs.DESGLD(h, network),
                                  lambda h, network: fs.DESGHMC(h, 0.5, network)])
@pytest.mark.parametrize("hessians", [
    RNG.uniform(0.5, 3.0, (3, 2)), np.repeat(RNG.uniform(0.5, 3.0, (1, 2)), 5, axis=0),
    np.array([[[1.0, 0.3], [0.3, 0.5]], [[2.0, -0.4], [-0.4, 1.0]]]), RNG.uniform(0.5, 3.0, (40, 1))],
    ids=["diagonal", "common", "dense", "sparse network"])
def test_slow_decentralized_contraction_keeps_its_digits(make, hessians):
    """As the step size goes to zero the average's law goes to that of exp(-f), by a relative step size."""
    clients, dim = len(hessians), hessians.shape[-1]
    network = SPARSE if clients == 40 else fs.network.complete(clients)
    problem = fs.Quadratic(hessians, np.random.default_rng(clients).standard_normal((clients, dim)))
    target, algorithm = problem.target(), make(1e-12, network)
    long = theory.exact_law(problem, algorithm, 2**50, record=[])
    for law in (theory.stationary_law(problem, algorithm), long.at(2**50),
                theory.stationary_law(problem, algorithm, client=1), long.clients[1].at(2**50)):
        assert law.mean == pytest.approx(target.mean, rel=1e-9, abs=1e-10)
        assert law.variances == pytest.approx(target.variances, rel=1e-9)


# --- memory

MEMORY = 2.0**31
"""What is taken for half of the machine's."""
WIDE = fs.Quadratic(RNG.uniform(0.5, 3.0, (10, 10_000)), RNG.standard_normal((10, 10_000)))
MANY = fs.Quadratic(RNG.uniform(0.5, 3.0, (1000, 100)), RNG.standard_normal((1000, 100)))
TOO_LARGE = {
    "stationary, clients drawn": lambda: theory.stationary_law(WIDE, fs.FALD(0.01, 5, participation=DRAWN)),
    "long run, clients drawn": lambda: theory.exact_law(
        WIDE, fs.FALD(0.01, 5, participation=DRAWN), 2**50, record=[]),
    "stale anchor, clients drawn": lambda: theory.stationary_law(
        WIDE, fs.FAHMC(0.1, 2, debias="stale", participation=DRAWN)),
    "joint": lambda: joint_law(WIDE, fs.FALD(0.01, 5), 0),
    "sampling of common noise": lambda: sample_rounds(
        WIDE_MANY, fs.FALD(0.01, 5, shared_noise=0.5, participation=DRAWN), 2, 2, 1),
    "old gradients": lambda: theory.stationary_law(WIDE, fs.StaleSGLD(1e-4, 500)),
    "an average over old gradients": lambda: theory.stale.average_law(
        fs.Quadratic(np.eye(400)[None], np.zeros((1, 400))), fs.StaleSGHMC(0.1, 1.0), 200),
    "many decentralized clients": lambda: theory.stationary_law(
        MANY, fs.DESGLD(0.1, fs.network.ring(1000))),
}
WIDE_MANY = fs.Quadratic(RNG.uniform(0.5, 3.0, (400, 1000)), RNG.standard_normal((400, 1000)))


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_does_not_fit_is_refused_before_it_is_allocated(name, monkeypatch):
    monkeypatch.setattr(limits, "memory_limit", lambda: MEMORY)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"needs about [0-9.]+ GB, more than half of this machine"):
        TOO_LARGE[name]()
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 0.25 * MEMORY


@pytest.mark.parametrize("algorithm", [fs.FALD(0.1), fs.DESGLD(0.1, PAIR), fs.StaleSGLD(0.1, 2)])
def test_too_many_rounds_are_refused_before_they_are_written_out(algorithm):
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"record=range\(0, 100000000\) of 100000001 rounds "):
        theory.exact_law(PROBLEM, algorithm, 10**8, record=range(10**8), covariance="none")
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 1e6
    assert len(theory.exact_law(PROBLEM, algorithm, 10**8).rounds) < 450


def test_too_many_rounds_of_a_changing_step_size_are_refused():
    harmonic = fs.schedules.Harmonic(10.0, 0.1)
    for algorithm in (fs.FALD(harmonic), fs.DESGLD(harmonic, PAIR)):
        with pytest.raises(theory.NoExactLaw, match="n_rounds=100000000 must be at most 10000000 "):
            theory.exact_law(PROBLEM, algorithm, 10**8)


def test_scalar_noise_of_equal_clients_makes_no_tables():
    same = fs.Quadratic(np.repeat(WIDE.hessians[:1], 10, axis=0), WIDE.minimizers, None, 0.5)
    tracemalloc.start()
    law = theory.stationary_law(same, fs.DESGLD(0.1, fs.network.ring(10)))
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert law.is_diagonal and taken < 0.1 * MEMORY


# --- numbers


@pytest.mark.parametrize("scale", [1e-295, 1e-150, 1e150, 1e295])
@pytest.mark.parametrize("make", [
    lambda L: fs.FALD(0.3 / L, 2), lambda L: fs.DESGLD(0.3 / L, PAIR), lambda L: fs.StaleSGLD(0.3 / L, 1),
    lambda L: fs.FAHMC(0.3 / np.sqrt(L), 2), lambda L: fs.DESGHMC(0.3 / np.sqrt(L), np.sqrt(L), PAIR),
    lambda L: fs.StaleSGHMC(0.3 / np.sqrt(L), np.sqrt(L), 1)])
def test_laws_scale_with_the_problem(make, scale):
    """x / sqrt(scale) has the law of the problem in units of one."""
    one = fs.Quadratic([[1.0], [0.4]], [[0.0], [1.0]])
    other = fs.Quadratic(scale * one.hessians, one.minimizers / np.sqrt(scale))
    for ask in (lambda problem, algorithm: theory.stationary_law(problem, algorithm),
                lambda problem, algorithm: theory.exact_law(problem, algorithm, 2**50, record=[]).at(2**50),
                lambda problem, algorithm: theory.exact_law(problem, algorithm, 7).at(7)):
        expected, found = ask(one, make(1.0)), ask(other, make(scale))
        assert found.variances * scale == pytest.approx(expected.variances, rel=1e-10)
        assert found.mean * np.sqrt(scale) == pytest.approx(expected.mean, rel=1e-10)
    known = theory.constants(other, make(scale))
    assert known.initial_w2 * np.sqrt(scale) == pytest.approx(theory.constants(one, make(1.0)).initial_w2)


def known(algorithm):
    return theory.constants(PROBLEM, algorithm)


REFUSED = {
    "FA-LD's rounds": (lambda: theory.fa_ld.plan(known(fs.FALD(0.1)), fs.FALD(0.1), 1e-155),
                       "eps=1e-155 is too small: within the hypotheses"),
    "DE-SGLD's accuracy": (lambda: theory.de_sgld.plan(known(fs.DESGLD(0.1, PAIR)), fs.DESGLD(0.1, PAIR),
                                                       5e-324), "eps=5e-324 is too small"),
    "DE-SGHMC's accuracy": (lambda: theory.de_sghmc.plan(
        known(fs.DESGHMC(0.1, 5.0, PAIR)), fs.DESGHMC(0.1, 5.0, PAIR), 1e-155), "eps=1e-155 is too small"),
    "FA-HMC's rate": (lambda: theory.fa_hmc.theorem_step_size(
        known(fs.FAHMC(0.1, 5)), fs.FAHMC(0.1, 5), 5e-324, constant=1.0), "eps=5e-324 must be between"),
    "FA-HMC's U curve": (lambda: theory.fa_hmc.u_curve(known(fs.FAHMC(0.1, 5)), fs.FAHMC(0.1, 5), 1e300),
                         r"eps=1e\+300 must be between"),
    "FA-HMC's vanilla step": (lambda: theory.fa_hmc.vanilla_algorithm(
        known(fs.FAHMC(0.1, 5)), fs.FAHMC(0.1, 5, 10), 5e-324, constant=1.0), "eps=5e-324 with constant"),
    "a start far away": (lambda: theory.constants(PROBLEM, fs.FALD(0.1), start=[1e155]),
                         r"start and minimizers of size 1e\+155 must be less than about 1e154"),
    "old gradients": (lambda: fs.validate(PROBLEM, fs.StaleSGHMC(1e-3, 1.0, 2**32)),
                      "staleness=4294967296 must be at most 3000"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_leaves_the_range_is_refused_by_name(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("eps", [1e155, 1e300])
def test_plans_for_what_any_law_fulfils(eps):
    for paper, algorithm in ((theory.fa_ld, fs.FALD(0.1)), (theory.fa_hmc, fs.FAHMC(0.1, 5)),
                             (theory.de_sgld, fs.DESGLD(0.1, PAIR)),
                             (theory.de_sghmc, fs.DESGHMC(0.1, 5.0, PAIR))):
        assert paper.plan(known(algorithm), algorithm, eps).n_rounds == 0


def test_huge_friction_and_old_gradients():
    assert fs.StaleSGHMC(1e-310, 1e308).stability(PROBLEM).max_step_size == pytest.approx(2e-308, rel=1e-6)
    fs.validate(PROBLEM, fs.StaleSGHMC(1e-13, 1.0, 2**32))


@pytest.mark.parametrize("age", [0, 1, 3, 20])
def test_roots_next_to_one_keep_their_digits(age):
    """The slow root of a small step size is 1 - h a/B to first order."""
    for step in (1e-4, 1e-9, 1e-15):
        radius = fs.StaleSGHMC(step, 50.0, age).stability(fs.Quadratic([1.0], [[0.0]])).radius
        assert 1.0 - radius == pytest.approx(step / 50.0, rel=0.1, abs=2.3e-16)
        assert radius < 1.0
