"""FA-HMC's statements with a constant of the Hessian's smoothness: known, given by hand, or not known."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
from examples_of.fa_hmc import by_hand, fahmc

import fedsim as fs
import theory
from theory import fa_hmc
from theory.judge.examining import bound_of

UNKNOWN = "Hessian-Lipschitz constant not known"
LOW, HIGH = 1.0, 2.0
MOMENTA, CHANCES = np.polynomial.hermite_e.hermegauss(40)


class Bent:
    """f'' rises from 1 to 2 about 0, so that |f'''| <= 1/(4 width)."""

    def __init__(self, width):
        self.width, self.smoothness = width, (HIGH - LOW) / (4.0 * width)
        x = 1e-8 * np.sinh(np.linspace(-1.0, 1.0, 501) * np.arcsinh(8e8))  # fine about the bend
        rise = np.diff(x) * 0.5 * (self.slope(x)[1:] + self.slope(x)[:-1])
        value = np.concatenate([[0.0], np.cumsum(rise)])
        mass = np.exp(value.min() - value) * np.gradient(x)
        self.x, self.p = x[:, None], MOMENTA[None]
        self.mass = mass[:, None] / mass.sum() * CHANCES / CHANCES.sum()

    def slope(self, x):
        return LOW * x + (HIGH - LOW) * self.width * np.logaddexp(0.0, x / self.width)

    def curvature(self, x):
        return LOW + (HIGH - LOW) / (1.0 + np.exp(-np.clip(x / self.width, -700.0, 700.0)))

    def mean(self, values):
        """Over positions in the target and normal momenta."""
        return float((self.mass * values).sum())

    def deviation(self, time, leapfrogs):
        """E|f'(x(time)) - f'(x) - time f''(x) p|^2 of as many leapfrog steps from (x, p)."""
        q, v, h = self.x + 0.0 * self.p, self.p + 0.0 * self.x, time / leapfrogs
        for _ in range(leapfrogs):
            v = v - 0.5 * h * self.slope(q)
            q = q + h * v
            v = v - 0.5 * h * self.slope(q)
        return self.mean((self.slope(q) - self.slope(self.x) - time * self.curvature(self.x) * self.p) ** 2)

    def bounds(self, time, **given):
        """D.9 (16) and D.6 (8), one leapfrog long, with exact second moments of the gradient."""
        known = theory.Constants(dim=1, strong_convexity=LOW, smoothness=HIGH, n_clients=1,
                                 initial_distance=1.0, hessian_smoothness=given.pop("known", None))
        algorithm, moment = fs.FAHMC(time, 1), self.mean(self.slope(self.x) ** 2)
        return (fa_hmc.oracle_gradient_bound(known, algorithm, **given),
                fa_hmc.leapfrog_gradient_deviation_bound(known, algorithm, n_rounds=1,
                                                         gradient_moments=[moment], **given))


@pytest.mark.parametrize("width", [1e-3, 1e-6])
def test_a_bend_of_unknown_width_is_outside_the_hypotheses(width):
    """Read as 0, as it once was by default, D.9 (16) and D.6 (8) are false by more than ten times."""
    f, ratios = Bent(width), []
    for time in (0.1, 0.01, 0.001):
        exact = f.deviation(time, 10), f.deviation(time, 1)
        for value, bound, known, given in zip(
                exact, f.bounds(time), f.bounds(time, known=f.smoothness),
                f.bounds(time, hessian_smoothness=f.smoothness), strict=True):
            assert bound.violated == (f"{UNKNOWN} (0 is taken)",)
            assert known.hypotheses_hold and given.hypotheses_hold
            assert known.value[-1] == given.value[-1] >= value
            ratios.append(value / bound.value[-1])
    if width == 1e-6:
        np.testing.assert_allclose(ratios[::2], [0.172, 1.292, 12.456], rtol=5e-3)
        np.testing.assert_allclose(ratios[1::2], [0.253, 1.891, 18.242], rtol=5e-3)


def test_of_an_argument_and_the_constants_the_argument_counts():
    f = Bent(0.1)
    for bound, other in zip(f.bounds(0.1, known=7.0, hessian_smoothness=0.0),
                            f.bounds(0.1, hessian_smoothness=0.0), strict=True):
        assert bound.hypotheses_hold and bound.value[-1] == other.value[-1]


READERS = [entry for entry in theory.theorems()
           if "hessian_smoothness" in inspect.signature(entry.function).parameters]


@pytest.mark.parametrize("entry", READERS, ids=lambda entry: entry.id)
def test_no_statement_reads_what_is_not_known_as_0(entry):
    """By default it is outside its hypotheses, or as large as with any constant at all."""
    problem = fs.Quadratic([1.0, 3.0], [[0.0, 1.0], [1.0, -0.5]])
    mixing = fs.network.complete(2)
    algorithm = next(one for one in (
        fs.FALD(0.01, 2), fs.FAHMC(0.01, 3, 2), fs.DESGLD(0.01, mixing), fs.DESGHMC(0.1, 5.0, mixing),
        fs.StaleSGLD(0.01, 0)) if isinstance(one, entry.algorithm))
    facts = theory.constants(problem, algorithm)
    bare = dataclasses.replace(facts, hessian_smoothness=None)
    extra = {} if entry.inputs is None else entry.inputs(problem, algorithm, facts, 5, None)
    default = entry.function(bare, algorithm, n_rounds=5, **extra)
    reads_constants = any(UNKNOWN in words for words in default.violated)
    assert facts.hessian_smoothness == 0.0 and reads_constants == entry.id.startswith("fa_hmc.") - (
        entry.id == "fa_hmc.w2_recursion")
    known = bound_of(entry, problem, algorithm, 5, facts)
    assert not any(UNKNOWN in words for words in known.violated)
    if reads_constants:  # of quadratics nothing changes
        np.testing.assert_array_equal(known.value, entry.function(
            bare, algorithm, n_rounds=5, hessian_smoothness=0.0, **extra).value)
        return
    for M in (0.0, 1.0, 1e6):
        told = entry.function(bare, algorithm, n_rounds=5, hessian_smoothness=M, **extra)
        assert (told.value <= default.value * (1 + 1e-12)).all()


def test_what_is_no_statement_is_refused():
    facts = by_hand(hessian_smoothness=None)
    for call in (lambda: fa_hmc.steady_state(facts, fahmc()), lambda: fa_hmc.plan(facts, fahmc(), 0.1),
                 lambda: fa_hmc.dynamic_plan(facts, fahmc(), 0.5),
                 lambda: theory.tuning.informative_steps("fa_hmc.w2_bound", facts, fahmc(), 1.0)):
        with pytest.raises(ValueError, match=f"hessian_smoothness=None: {UNKNOWN}"):
            call()
    assert fa_hmc.setting(facts, fahmc()).L_H is None
    assert fa_hmc.steady_state(facts, fahmc(), hessian_smoothness=0.0) == fa_hmc.steady_state(
        by_hand(), fahmc()) < fa_hmc.steady_state(by_hand(hessian_smoothness=5.0), fahmc())
    assert fa_hmc.plan(by_hand(hessian_smoothness=50.0), fahmc(), 0.1).n_rounds > fa_hmc.plan(
        by_hand(), fahmc(), 0.1).n_rounds
    assert fa_hmc.u_curve(facts, fahmc(), 0.1) == fa_hmc.u_curve(by_hand(), fahmc(), 0.1)  # a rate
    with pytest.raises(ValueError, match="hessian_smoothness=-1"):
        by_hand(hessian_smoothness=-1.0)
    with pytest.raises(ValueError, match="off_target=None"):
        by_hand(off_target=None)
