"""Planning by bounds: which step sizes a bound speaks about, what it asks for, and what trusting it costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
import theory
from theory.recursions.catalogue import first_within, recursion
from theory.tuning import best_step_size, compare, informative_steps, plan_by_recursion
from theory.tuning.first_round import rounds_to

README = fs.Quadratic([[1.0, 4.0], [2.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]])
ALGORITHM = fs.FALD(0.01, shared_noise=0.25)
RING = fs.network.ring(4)
GOSSIP = fs.Quadratic([1.0, 2.0, 3.0, 2.0], [[0.0], [1.0], [2.0], [1.0]])


@pytest.mark.parametrize(("K", "unknown", "quadratic"), [
    (1, 0.2154, 0.2154), (2, 0.1601, 0.1603), (5, 0.0878, 0.0972), (10, 0.0507, 0.0592),
    (50, 0.0124, 0.0145)])
def test_informative_steps_of_the_readme_problem(K, unknown, quadratic):
    """As they were derived; and the limit is below the start there and not beyond."""
    algorithm = fs.FALD(0.01, K, shared_noise=0.25)
    for M, wanted in ((None, unknown), (0.0, quadratic)):
        found = informative_steps("fa_ld.w2_recursion", README, algorithm, hessian_smoothness=M)
        assert found.largest == pytest.approx(wanted, rel=8e-3)
        assert found.below == pytest.approx(1.3132, rel=1e-3)
        known = theory.constants(README, algorithm)
        for share, says in ((0.9999, True), (1.0001, False)):
            bound = theory.fa_ld.w2_recursion(known, fs.FALD(share * found.largest, K, shared_noise=0.25),
                                              n_rounds=0, hessian_smoothness=M)
            assert (not bound.always_vacuous) == says


def test_informative_steps():
    published = informative_steps("fa_ld.w2_bound", README, ALGORITHM)
    assert published.largest < 1e-5  # Theorem 4.7
    assert informative_steps("fa_ld.w2_recursion", README, ALGORITHM, below=1e-9).largest is None
    known = theory.constants(README, ALGORITHM)
    assert informative_steps("fa_ld.w2_recursion", known, ALGORITHM).largest > 0.2
    for theorem, problem, algorithm in (
            ("fa_hmc.w2_recursion", README, fs.FAHMC(0.1, 3)), ("de_sgld.w2_recursion", GOSSIP, fs.DESGLD(
                0.01, RING)), ("de_sghmc.w2_recursion", GOSSIP, fs.DESGHMC(0.1, 9.0, RING)),
            ("stale.w2_recursion", README, fs.StaleSGLD(0.01, 2))):
        found = informative_steps(theorem, problem, algorithm, start=np.full(problem.dim, 30.0))
        assert found.largest is not None and min(found.floors) < found.below
    with pytest.raises(ValueError, match="has no limit"):
        informative_steps("fa_hmc.error_rate", README, fs.FAHMC(0.1, 3))
    with pytest.raises(ValueError, match=r"theorem='fa_ld\.no'"):
        informative_steps("fa_ld.no", README, ALGORITHM)


def test_plans_of_the_readme_problem():
    """As they were derived, K = 1, 2, 5; tangents may ask for a thousandth more."""
    for eps, rounds in ((0.3, (229, 146, 98)), (0.1, (2785, 1803, 1156))):
        found = plan_by_recursion(README, ALGORITHM, eps, local_steps=(1, 2, 5))
        for (_, _, needed), wanted in zip(found.tried, rounds, strict=True):
            assert wanted - 1 <= needed <= 1.001 * wanted + 1
        known = theory.constants(README, found.algorithm)
        bound = theory.fa_ld.w2_recursion(known, found.algorithm, n_rounds=found.n_rounds, record=())
        assert bound.value[-1] <= eps * (1.0 + 1e-12)
        law = theory.exact_law(README, found.algorithm, found.n_rounds, record=())
        assert law.w2()[-1] <= eps


@pytest.mark.parametrize(("eps", "price"), [(0.3, 76.0), (0.1, 232.0)])
def test_the_price_in_gradients(eps, price):
    found = plan_by_recursion(README, ALGORITHM, eps, minimise="gradients", local_steps=(1, 2, 5))
    assert found.algorithm.local_steps == 1 and found.price == pytest.approx(price, rel=0.02)
    floats = plan_by_recursion(README, ALGORITHM, eps, minimise="floats", local_steps=(1, 5))
    assert floats.effort == floats.algorithm.costs(README, floats.n_rounds)["floats_sent"]
    assert floats.algorithm.local_steps == 5


@pytest.mark.parametrize(("problem", "algorithm"), [
    (README, fs.FAHMC(0.1, 3)), (GOSSIP, fs.DESGLD(0.01, RING)), (GOSSIP, fs.DESGHMC(0.1, 7.0, RING)),
    (README, fs.StaleSGLD(0.01, 3))])
def test_plans_of_all_algorithms_reach_their_accuracy(problem, algorithm):
    """From constants alone."""
    known = theory.constants(problem, algorithm)
    found = plan_by_recursion(known, algorithm, 0.3, local_steps=(1, 2))
    assert found is not None and np.isnan(found.price) and found.exact_effort is None
    law = theory.exact_law(problem, found.algorithm, found.n_rounds, record=())
    assert law.w2()[-1] <= 0.3


@pytest.mark.parametrize(("bound", "algorithm", "eps", "slack"), [
    (theory.fa_ld.w2_recursion, fs.FALD(0.02, shared_noise=0.25), 0.6, 1.0),
    (theory.fa_ld.w2_recursion, fs.FALD(1e-4, shared_noise=0.25), 0.3, 1.002),
    (theory.de_sgld.w2_recursion, fs.DESGLD(1e-4, fs.network.complete(2)), 0.1, 1.002),
    (theory.de_sghmc.w2_recursion, fs.DESGHMC(0.01, 70.0, fs.network.complete(2)), 0.1, 1.002),
    (theory.stale.w2_recursion, fs.StaleSGLD(1e-3, 2), 1.0, 1.01)])
def test_first_rounds_are_those_of_the_bound(bound, algorithm, eps, slack):
    """By steps exactly; by tangents no fewer, and hardly more."""
    known = theory.constants(README, algorithm)
    found = first_within(recursion(known, algorithm), eps)[0]
    values = bound(known, algorithm, n_rounds=found, record=range(found)).value
    assert values[-1] <= eps  # and where it is so first cannot be later
    wanted = int(np.argmax(values <= eps))
    assert 0 < wanted <= found <= slack * wanted + (slack > 1.0)


def test_no_first_round():
    known = theory.constants(README, ALGORITHM)
    assert first_within(recursion(known, fs.FALD(0.02)), 1e-3, most=10_000) is None
    assert first_within(recursion(known, fs.FALD(0.6, 2)), 1e-3) is None  # it grows


def test_a_momentum_that_is_kept():
    """Planning for DE-SGHMC keeps friction times step size, in the plan and in its exact counterpart."""
    algorithm = fs.DESGHMC(0.1, 7.0, RING)
    found = plan_by_recursion(GOSSIP, algorithm, 0.3)
    chosen = found.algorithm
    assert chosen.friction * chosen.step_size == pytest.approx(0.7) and chosen.friction != 7.0
    best = best_step_size(GOSSIP, algorithm, 0.3, keep_momentum=True)
    assert found.exact_effort == best.n_rounds
    kept = replace(algorithm, step_size=best.step_size, friction=0.7 / best.step_size)
    assert rounds_to(GOSSIP, kept, 0.3) == best.n_rounds
    fewer = [rounds_within(replace(algorithm, step_size=size, friction=0.7 / size), best.n_rounds - 1)
             for size in np.geomspace(0.05, 2.0, 60)]
    assert fewer.count(None) == 60
    assert rounds_within(kept, best.n_rounds) == best.n_rounds


def rounds_within(algorithm, most):
    """Exact rounds to 0.3, where they are no more; None where there is no law."""
    try:
        return rounds_to(GOSSIP, algorithm, 0.3, max_rounds=most)
    except fs.UnstableStepSize:
        return None


def test_compare_by_recursion():
    ours, theirs = (compare(README, ALGORITHM, 0.3, by=by) for by in ("recursion", "paper"))
    assert ours.price < theirs.price / 1000 and ours.best_rounds == theirs.best_rounds
    assert ours.planned_rounds <= ours.predicted_rounds
    with pytest.raises(ValueError, match="by='luck'"):
        compare(README, ALGORITHM, 0.3, by="luck")
    for wrong, said in ((0, "local_steps=0"), ((), r"local_steps=\(\)"), ((2, 0), "local_steps=0")):
        with pytest.raises(ValueError, match=f"{said} must"):
            plan_by_recursion(README, ALGORITHM, 0.3, local_steps=wrong)
    assert plan_by_recursion(README, ALGORITHM, 0.3, local_steps=2).tried[0][0] == 2
    with pytest.raises(ValueError, match=r"staleness=Workers.* must settle"):
        plan_by_recursion(README, fs.StaleSGLD(0.01, fs.Workers(3)), 0.3)
    with pytest.raises(ValueError, match=r"StaleSGHMC.* has no recursion"):
        plan_by_recursion(README, fs.StaleSGHMC(0.01, 1.0, 2), 0.3)
