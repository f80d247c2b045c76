"""FA-HMC: its laws in limiting cases, what its options mean, and bad input."""

import itertools

import numpy as np
import pytest
from cases import scheme_two
from cases.fa_hmc import LAWS
from problems import drawn_quadratic, quadratic

import fedsim as fs


@pytest.mark.parametrize("noise", [None, "std", "cov"])
@pytest.mark.parametrize("shared", [0.0, 0.4, 1.0])
def test_one_leapfrog_step_is_langevin(noise, shared):
    """FAHMC(eta, 1, T) is FALD(eta^2/2, T) on the same noise; the defaults of shared_noise differ."""
    problem = drawn_quadratic(np.random.default_rng(2), "dense", noise, 3, 2, weighted=True)
    for participation in (None, fs.Participation(2, True)):
        hmc = fs.FAHMC(0.3, 1, 4, shared, participation=participation)
        langevin = fs.FALD(0.045, 4, shared_noise=shared, participation=participation)
        one, other = (fs.simulate(problem, a, 5, 70, seed=3, keep_final=True).final for a in (hmc, langevin))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(one).max())
    assert fs.FAHMC(0.3, 1).shared_noise != fs.FALD(0.045).shared_noise


def test_all_clients_drawn_without_replacement_is_full_participation():
    problem = drawn_quadratic(np.random.default_rng(4), "dense", "std", 4, 2, weighted=False)
    for debias in (None, "stale", "fresh"):
        one, other = (fs.simulate(problem, fs.FAHMC(0.2, 3, 2, 0.3, debias, participation=p), 6, 66, seed=5,
                                  keep_final=True).final for p in (None, fs.Participation(4, False)))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(one).max())


def test_the_cases_cover_what_matters():
    """Shared noise 0, 0.5, 1, with and without gradient noise, debiased or not, full and partial."""
    seen = {(a.shared_noise, p.gradient_noise is not None) for p, a, _ in LAWS.values()}
    assert seen >= set(itertools.product((0.0, 0.5, 1.0), (False, True)))
    drawn = {(a.debias, a.participation is not None) for _, a, _ in LAWS.values()}
    assert drawn == set(itertools.product((None, "stale", "fresh"), (False, True)))


GOOD = dict(step_size=0.1, leapfrog_steps=3, local_steps=2, shared_noise=0.5)
BAD = [(name, value) for name, values in {
    "leapfrog_steps": (0, -2, 2.5, True, None, "3", np.nan), "local_steps": (0, 1.5, None),
    "shared_noise": (-0.1, 1.1, np.nan, None), "step_size": (0.0, -0.1, np.inf, None, [0.1, -0.1], []),
    "debias": ("Stale", 1, True, ""), "first_round": (None, "zero", 0), "participation": (2, "I"),
}.items() for value in values]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_arguments_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        fs.FAHMC(**(GOOD | {name: value}))


@pytest.mark.parametrize("rho", [-0.5, 1.5, "x"])
def test_the_papers_symbols(rho):
    """rho is the shared fraction itself, not its root as in FA-LD."""
    assert fs.FAHMC.from_paper(0.1, 5, 10, 0.25) == fs.FAHMC(0.1, 5, 10, 0.25)
    with pytest.raises(ValueError, match="rho"):
        fs.FAHMC.from_paper(0.1, 5, 10, rho)


def test_what_cannot_run_is_refused_with_limit_and_value():
    lone, steep = fs.Quadratic([2.0], [[1.0]]), fs.Quadratic([0.1, 10.0], [[1.0], [0.0]])
    for problem, algorithm, message, limit in (
            (lone, fs.FAHMC(1.5, 3), "step_size=1.5 must be less than the stability limit 1.414", np.sqrt(2)),
            (lone, fs.FAHMC(1.0, 2), "step_size=1 must be less than the stability limit 1 .a resonance", 1.0),
            (steep, fs.FAHMC(0.1, 10, 5, debias="stale"), "step_size=0.1 .* radius 2.25015", 0.0454045)):
        with pytest.raises(fs.UnstableStepSize, match=message) as refused:
            fs.simulate(problem, algorithm, 3, 2, seed=1)
        assert refused.value.limit == pytest.approx(limit, rel=1e-5)
        assert refused.value.step_size == algorithm.step_size
    with pytest.raises(ValueError, match=r"weights\[1\]=0 must be greater than 0"):  # private momentum
        fs.Quadratic([1.0, 1.0], [[0.0], [0.0]], [1.0, 0.0])
    with pytest.raises(ValueError, match="n_active=3 must be at most n_clients=2"):
        fs.simulate(steep, fs.FAHMC(0.1, 2, participation=scheme_two(3)), 3, 2, seed=1)
    with pytest.raises(ValueError, match="step_size"):
        fs.simulate(steep, fs.FAHMC([0.1, 0.1, 0.1], 2, 2), 2, 2, seed=1)


def test_costs():
    """K gradients a local update, T updates a round; communications do not depend on either."""
    costs = fs.simulate(quadratic(), fs.FAHMC(0.2, 3, 4), 5, 2, seed=1).costs
    assert costs == {"communications": 5, "gradient_evaluations": 5 * 4 * 3 * 3,
                     "floats_sent": 5 * 2 * (3 + 3)}
