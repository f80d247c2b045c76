"""FA-LD's planning: step sizes, local steps and rounds that the theorems guarantee."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from examples_of.fa_ld import RHO2, H, K, by_hand, fald

import fedsim as fs
import theory
from fedsim.settings.schedules import Harmonic


@pytest.mark.parametrize("kappa", [1.0, 2.0, 3.7, 8.0, 33.97, 1000.0])
def test_optimal_local_steps_by_enumeration(kappa):
    tried = np.arange(1, 200)
    for rule, shift in (("(K-1)^2", 1), ("K^2", 0)):
        cost = ((tried - shift) ** 2 + kappa) / tried
        wanted = tried[cost <= cost.min() * (1 + 1e-14)]
        assert theory.fa_ld.optimal_local_steps(kappa, rule=rule) == tuple(wanted)
    assert theory.fa_ld.optimal_local_steps(1.0) == (1, 2)


@pytest.mark.parametrize("eps", [1e-3, 0.1, 3.0])
def test_the_papers_plan_is_guaranteed_by_the_theorem(eps):
    found = theory.fa_ld.paper_plan(by_hand(), fald(), eps)
    assert found.theorem == "fa_ld.w2_bound" and not found.cap_binds
    for variant in ("recursion", "proof", "printed"):
        bound = theory.fa_ld.w2_bound(by_hand(), found.algorithm, n_rounds=found.n_rounds, variant=variant)
        assert bound.hypotheses_hold and bound.value[-1] <= eps * (1 + 1e-12)
    assert bound.floor == pytest.approx(eps / 2, rel=1e-12)  # by the rule as printed, with 30
    assert found.n_steps == K * found.n_rounds


def test_where_the_cap_binds():
    far = by_hand(initial_distance=1e3, heterogeneity=0.0, gradient_noise_traces=0.0)
    for plan in (theory.fa_ld.plan, theory.fa_ld.paper_plan):
        found = plan(far, fald(), 1e6)
        assert found.cap_binds and found.step_size == pytest.approx(0.25, rel=1e-12) and "cap" in found.note
        assert plan(far, fald(), 1.0).note == ""


def test_best_plan_by_enumeration():
    facts = by_hand(smoothness=20.0, initial_distance=50.0)  # kappa is 40
    tried = [theory.fa_ld.plan(facts, fald(local_steps=steps), 0.5).n_rounds for steps in range(3, 10)]
    found = theory.fa_ld.best_plan(facts, fald(), 0.5)
    assert found.n_rounds == min(tried) and found.local_steps == 6
    assert theory.fa_ld.best_plan(facts, fald(), 0.5, largest=4).local_steps == 4
    assert theory.fa_ld.best_plan(facts, fald(), 1e4).n_rounds == 0


@pytest.mark.parametrize("shared", [0.0, RHO2])
@pytest.mark.parametrize("eps", [0.01, 1.0, 30.0])
def test_the_plan_for_theorem_4_8_is_tight(eps, shared):
    """At its last round the bound is at most eps, and above eps one round before."""
    found = theory.fa_ld.plan(by_hand(), fald(step_size=Harmonic(1.0, 1.0), shared_noise=shared), eps)
    assert found.theorem == "fa_ld.w2_bound_decreasing" and found.algorithm.shared_noise == shared
    assert found.algorithm.schedule == Harmonic(4.0, 0.5 / 12)  # 2 L and m/12
    assert (found.step_size, found.n_steps, found.cap_binds) == (0.25, K * found.n_rounds, False)
    bound = theory.fa_ld.w2_bound_decreasing(by_hand(), found.algorithm, n_rounds=found.n_rounds,
                                             record=[found.n_rounds - 1])
    assert bound.hypotheses_hold and bound.value[-1] <= eps < bound.value[-2]
    # by hand: 45^2 kappa^2 ((K-1)^2 + kappa) H m d/(2L + m k/12) <= eps^2
    h = H + (6.0 if shared == 0.0 else 0.0)
    steps = (2025 * 16 * 13 * h * 0.5 * 3 / eps**2 - 4.0) * 12 / 0.5
    assert found.n_rounds == pytest.approx(np.ceil(steps / K), abs=1)


def test_a_plan_for_theorem_4_8_may_need_no_round():
    found = theory.fa_ld.plan(by_hand(), fald(step_size=Harmonic(1.0, 1.0)), 1e6)
    assert found.n_rounds == 0
    assert theory.fa_ld.w2_bound_decreasing(by_hand(), found.algorithm, n_rounds=0).value[0] <= 1e6


@pytest.mark.parametrize("eps", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("replace", [True, False])
def test_the_plan_for_theorem_4_10_is_thirds(replace, eps):
    """Given the fewest clients that do, each term is at most a third of eps; one client fewer is refused."""
    facts = by_hand(weights=[1 / 400] * 400, initial_distance=100.0, gradient_noise_traces=1.2)
    drawn = fald(participation=fs.Participation(7, replace))
    fewest = theory.fa_ld.fewest_active(facts, drawn, eps)
    found = theory.fa_ld.paper_plan(facts, fald(participation=fs.Participation(fewest, replace)), eps)
    own, bound = (theory.fa_ld.w2_bound_partial(facts, found.algorithm, n_rounds=found.n_rounds,
                                                variant=variant) for variant in ("recursion", "printed"))
    assert own.hypotheses_hold and own.value[-1] < eps
    assert found.theorem == "fa_ld.w2_bound_partial" and bound.hypotheses_hold
    assert found.algorithm.participation == fs.Participation(fewest, replace)
    for term in bound.terms.values():
        assert term[-1] <= eps / 3 * (1 + 1e-12)
    assert bound.terms["discretization"][-1] == pytest.approx(eps / 3, rel=1e-12)
    assert replace or 1 < fewest <= 400
    with pytest.raises(ValueError, match=f"n_active={fewest - 1} must be at least {fewest} for eps"):
        theory.fa_ld.paper_plan(facts, fald(participation=fs.Participation(fewest - 1, replace)), eps)
    better = theory.fa_ld.plan(facts, found.algorithm, eps)
    assert better.n_rounds < found.n_rounds and better.theorem == found.theorem
    fewer = fald(participation=fs.Participation(fewest - 1, replace))
    assert not replace or theory.fa_ld.plan(facts, fewer, eps).value <= eps


def test_one_client_is_drawn_whole():
    facts = theory.Constants(dim=1, strong_convexity=1.0, smoothness=1.0, weights=[1.0], initial_distance=1.0)
    for replace in (True, False):
        drawn = fs.FALD(0.1, participation=fs.Participation(1, replace))
        assert theory.fa_ld.fewest_active(facts, drawn, 1e-6) == 1
        assert theory.fa_ld.plan(facts, drawn, 1e-3).n_rounds > 0


def test_plans_reach_their_accuracy():
    """The exact law at the plan's last round, for the three theorems."""
    problem = fs.Quadratic([1.0, 1.5], [[1.0], [-1.0]])
    drawn = fs.Participation(2, False)
    for algorithm, eps in ((fs.FALD(0.1, 2), 3.0), (fs.FALD(0.1, 2, participation=drawn), 3.0)):
        facts = theory.constants(problem, algorithm, [9.0])
        found = theory.fa_ld.plan(facts, algorithm, eps)
        law = theory.exact_law(problem, found.algorithm, found.n_rounds, start=[9.0], record=[])
        assert law.w2()[0] > eps >= law.w2()[-1]
    facts = theory.constants(problem, fs.FALD(Harmonic(1.0, 1.0)), [9.0])
    found = theory.fa_ld.plan(facts, fs.FALD(Harmonic(1.0, 1.0)), 100.0)
    assert 0 < found.n_rounds < 10_000
    law = theory.exact_law(problem, found.algorithm, found.n_rounds, start=[9.0], record=[])
    assert law.w2()[-1] <= 100.0


def test_best_plan_for_theorem_4_8_by_enumeration():
    for eps in (0.5, 30.0, 400.0, 3000.0):
        facts = by_hand(initial_distance=50.0)
        chosen = fald(step_size=Harmonic(1.0, 1.0))
        tried = [theory.fa_ld.plan(facts, dataclasses.replace(chosen, local_steps=steps), eps).n_rounds
                 for steps in range(1, 40)]
        assert theory.fa_ld.best_plan(facts, chosen, eps).n_rounds == min(tried)


def test_a_schedule_is_compared_by_its_constant_plan():
    problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    schedule = Harmonic.from_theorem(strong_convexity=1.0, smoothness=3.0)
    found, plain = (theory.tuning.compare(problem, fs.FALD(step, 2), 0.5, n_grid=9, n_refine=0)
                    for step in (schedule, 0.1))
    assert found == plain


@pytest.mark.parametrize("call, words", [
    (lambda: theory.fa_ld.plan(by_hand(), fald(), 0.0), "eps=0.0"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(), np.nan), "eps=nan"),
    (lambda: theory.fa_ld.best_plan(by_hand(), fald(participation=fs.Participation(1, True)), 1.0),
     "participation="),
    (lambda: theory.fa_ld.paper_plan(by_hand(), fald(participation=fs.Participation(1, True)), 1.0),
     "n_active=1 must be at least 3241 for eps=1.0"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(participation=fs.Participation(1, True)), 1.0),
     r"eps=1.0 is too small: within .* fa_ld.w2_bound_partial the limit of the bound is at least 18.97"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(participation=fs.Participation(1, False)), 1.0),
     "equal weights or scheme I"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(participation=fs.Participation(4, False)), 1.0),
     "n_active=4 must be at most n_clients=3"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(step_size=Harmonic(4.0, 0.1),
                                               participation=fs.Participation(1, True)), 1.0),
     "must be constant with participation"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(step_size=Harmonic(4.0, 0.1)), 1e-200),
     "eps=1e-200 is too small"),
    (lambda: theory.fa_ld.plan(3, fald(step_size=Harmonic(4.0, 0.1)), 1.0), "constants=3"),
    (lambda: theory.fa_ld.fewest_active(by_hand(), fald(), 1.0), "FALD with participation"),
    (lambda: theory.fa_ld.fewest_active(by_hand(), 3, 1.0), "FALD with participation"),
    (lambda: theory.fa_ld.fewest_active(3, fald(participation=fs.Participation(1, True)), 1.0),
     "constants=3"),
    (lambda: theory.fa_ld.fewest_active(by_hand(), fald(participation=fs.Participation(1, True)), 1e-160),
     "eps=1e-160 is too small"),
    (lambda: theory.fa_ld.plan(by_hand(convention="global"), fald(), 1.0), "convention='global'"),
    (lambda: theory.fa_ld.plan(3, fald(), 1.0), "constants=3"),
    (lambda: theory.fa_ld.plan(by_hand(), 3, 1.0), "algorithm=3"),
    (lambda: theory.fa_ld.optimal_local_steps(0.5), "condition_number=0.5"),
    (lambda: theory.fa_ld.optimal_local_steps(4.0, rule="K"), "rule='K'"),
])
def test_bad_plans(call, words):
    with pytest.raises(ValueError, match=words):
        call()
