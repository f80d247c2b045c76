"""FA-HMC's lower bound and its plans."""

from __future__ import annotations

import numpy as np
import pytest
from examples_of.fa_hmc import by_hand, fahmc

import fedsim as fs
import theory
from theory import fa_hmc, rates
from theory.exact import FAHMCFlow

# --- the lower bound

GROUPS = {"L": 1.0, "mu": 0.25, "theta_L": 2.0, "theta_mu": 1.0}


def test_lower_bound_by_hand_and_below_the_exact_law():
    for L, mu in ((1.0, 0.25), (1.0, 1.0), (4.0, 0.1), (100.0, 1.0)):
        for x in (1.0 / np.sqrt(L), 0.3 / np.sqrt(L), 0.02 / np.sqrt(L)):
            for steps in (1, 2, 10, 50):
                groups = fa_hmc.TwoGroups(L, mu, 2.0, 1.0, 3, start_variance=0.5)
                problem = fs.Quadratic([L, mu, L, mu], [[2.0] * 3, [1.0] * 3] * 2)
                start = fs.Gaussian(np.zeros(3), np.full(3, 0.5))
                for shared in (0.0, 0.4, 1.0):
                    algorithm = FAHMCFlow(x, steps, shared)
                    record = [1, 3, 10, 100]
                    law = theory.exact_law(problem, algorithm, 1000, start=start, record=record)
                    facts = theory.constants(problem, algorithm, start)
                    for variant in ("printed", "mean"):
                        bound = fa_hmc.lower_bound(facts, algorithm, groups=groups, n_rounds=1000,
                                                   record=record, variant=variant)
                        verdict = theory.check(bound, law)
                        assert verdict.holds and verdict.hypotheses_met, verdict.message
                    if shared == 1.0:  # and the closed form is that law
                        np.testing.assert_allclose(groups.w2(law.rounds, x, steps), law.w2(), rtol=1e-7,
                                                   atol=1e-12)
                c_l, c_m = np.cos(np.sqrt(L) * x) ** steps, np.cos(np.sqrt(mu) * x) ** steps
                gamma = 0.5 * (c_l + c_m)
                fixed = (2.0 * (1 - c_l) + (1 - c_m)) / (2 * (1 - gamma))
                goal = (2 * L + mu) / (L + mu)
                wanted = np.sqrt(3 * ((fixed - goal) ** 2 + fixed**2 * gamma ** (2 * law.rounds)))
                bound = fa_hmc.lower_bound(facts, algorithm, groups=groups, n_rounds=1000, record=record,
                                           variant="printed")
                np.testing.assert_allclose(bound.value, wanted, rtol=1e-7, atol=1e-12)


def test_lower_bound_reads_the_problem():
    problem = fs.Quadratic([1.0, 0.25, 1.0, 0.25], [[2.0, 2.0], [1.0, 1.0]] * 2)
    verdict = theory.examine("fa_hmc.lower_bound", problem, FAHMCFlow(0.5, 10), 40)
    assert verdict.holds and verdict.hypotheses_met and verdict.tightness > 0.5
    away = theory.examine("fa_hmc.lower_bound", problem, FAHMCFlow(0.5, 10), 40, start=[1.0, 1.0],
                          variant="printed")
    assert away.bound.violated == ("start of mean zero",)
    exact = theory.examine("fa_hmc.lower_bound", problem, FAHMCFlow(0.5, 10), 40, start=[1.0, 1.0])
    assert exact.holds and exact.hypotheses_met
    for other in (fs.Quadratic([1.0, 0.5, 0.25], np.zeros((3, 1))),
                  fs.Quadratic([1.0, 0.5], [[0.0, 1.0], [0.0, 0.0]]),
                  fs.Quadratic([[1.0, 2.0], [1.0, 0.5]], np.zeros((2, 2)))):
        with pytest.raises(ValueError, match="two kinds of clients"):
            theory.examine("fa_hmc.lower_bound", other, FAHMCFlow(0.5, 10), 4)


def test_fewest_rounds_grow_like_the_lower_rate():
    """8, 32, 118 and 430 rounds at d = 10 .. 10^4, and hardly any dependence on T beyond T = 10."""
    dims = (10, 100, 1000, 10_000)
    found = [fa_hmc.fewest_rounds(fa_hmc.TwoGroups(**GROUPS, dim=d), 0.3, 10, n_grid=60)[0] for d in dims]
    assert found == [8, 32, 118, 430]
    for d, n in zip(dims[:2], found[:2], strict=True):  # by brute force over a fine grid
        groups = fa_hmc.TwoGroups(**GROUPS, dim=d)
        lengths = np.geomspace(1e-3, 1.0, 1000)
        assert n == min(int(np.argmax(inside)) for length in lengths if (
            inside := groups.w2(np.arange(2 * n), length, 10) <= 0.3).any())
    shape = [fa_hmc.lower_rate(by_hand(dim=d), fahmc(), eps=0.3).value[0] for d in dims]
    fit = rates.fit_rate(dims, shape, found, side="lower")
    assert fit.spread < 2.0 and 0.1 < fit.constant < 0.2
    many = fa_hmc.fewest_rounds(fa_hmc.TwoGroups(**GROUPS, dim=100), 0.3, 100, n_grid=60)[0]
    assert abs(many - found[1]) <= 3


# --- planning

@pytest.mark.parametrize("eps", [2.0, 0.3, 0.05])
@pytest.mark.parametrize("shared, noise", [(1.0, None), (0.0, 0.5)])
def test_the_papers_plan_keeps_its_promise(eps, shared, noise):
    problem = fs.Quadratic([1.0, 2.0], [[0.0, 1.0], [1.0, -1.0]], [0.3, 0.7], noise)
    algorithm = fs.FAHMC(1.0, 4, 5, shared)
    facts = theory.constants(problem, algorithm, [4.0, 4.0])
    plan = fa_hmc.paper_plan(facts, algorithm, eps)
    bound = fa_hmc.w2_bound(facts, plan.algorithm, n_rounds=plan.n_rounds, record=[plan.n_rounds])
    assert bound.hypotheses_hold and bound.value[-1] <= eps * (1 + 1e-9)
    assert plan.trajectory_length == pytest.approx(4 * plan.step_size) and plan.n_steps == 5 * plan.n_rounds
    assert plan.cap_binds == (plan.trajectory_length == pytest.approx(np.sqrt(1 / 16), rel=1e-9))
    law = theory.exact_law(problem, plan.algorithm, plan.n_rounds, start=[4.0, 4.0], record=[])
    assert law.w2()[-1] <= eps
    if not plan.cap_binds and plan.n_rounds:
        kept = fa_hmc.planning.kept_error(fa_hmc.setting(facts, plan.algorithm), plan.trajectory_length**2)
        assert kept == pytest.approx(eps**2 / 2, rel=1e-9)


def test_the_plan_enters_the_comparison():
    problem = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
    found = theory.tuning.compare(problem, fs.FAHMC(0.1, 3, 2), 0.2, start=[3.0], n_grid=9, n_refine=1)
    assert found.predicted_rounds >= found.planned_rounds >= found.best_rounds >= 1


def test_the_papers_rules_by_hand():
    facts, eps = by_hand(), 0.1
    inverse = max(2.0, 3 * np.sqrt(3) / 0.1, 3 * 9 * 0.75 * 3 / 0.01, 3 * 0.38 * 0.4 / 0.04)
    step = fa_hmc.theorem_step_size(facts, fahmc(), eps, constant=0.7)
    assert step == pytest.approx(np.sqrt(0.7 / inverse) / 4, rel=1e-13)
    vanilla = fa_hmc.vanilla_algorithm(facts, fahmc(), eps, constant=0.7, correlation_constant=2.0)
    g = 0.7 * min(0.5, 0.1 / (3 * np.sqrt(3)))
    assert vanilla.step_size == pytest.approx(np.sqrt(g) / 4)
    assert vanilla.shared_noise == pytest.approx(1 - 2 * 2 * g / 3)
    best = fa_hmc.u_curve(facts, fahmc(), 2.0)
    noise, apart = 3 * 0.38 * 0.4 / 16, 3 * 0.75 * 3 / 4
    assert best == pytest.approx(max(np.sqrt((2 + noise) / apart), 1.0))
    assert fa_hmc.u_curve(facts, fahmc(shared_noise=1.0), 2.0) == np.inf
    wide = by_hand(smoothness=200.0)
    steps = np.arange(1, 200)
    rounds = [fa_hmc.rounds_rate(wide, fahmc(local_steps=int(t)), eps=2.0, variant="resolved").value[0]
              for t in steps]
    assert abs(steps[int(np.argmin(rounds))] - fa_hmc.u_curve(wide, fahmc(), 2.0)) <= 1


@pytest.mark.parametrize("order, shared", [("linear", 0.5), ("linear", 1.0), ("quadratic", 1.0)])
def test_dynamic_schedules_reach_every_stage(order, shared):
    """The recursion's own bound and the exact coupling are below D/2^s (D/4^s) when stage s ends."""
    problem = fs.Quadratic([1.0, 1.1], [[0.0], [0.2]])
    algorithm, start = fs.FAHMC(1.0, 2, 2, shared), [3.0]
    facts = theory.constants(problem, algorithm, start)
    begin = facts.initial_w2**2
    eps = facts.initial_w2 / 3 if order == "linear" else facts.initial_w2 / 9
    found = fa_hmc.dynamic_plan(facts, algorithm, eps, order=order)
    ends = np.cumsum(found.stage_rounds)
    shrink = 2.0 if order == "linear" else 4.0
    assert found.n_rounds == ends[-1] and len(found.schedule.values) == 2 * ends[-1]
    assert isinstance(found, theory.Plan) and found.n_steps == 2 * ends[-1]
    assert found.limited_by == "schedule" and found.trajectory_length == max(found.trajectory_lengths)
    np.testing.assert_allclose(found.targets, begin / shrink ** np.arange(1, len(ends) + 1), rtol=1e-12)
    assert found.targets[-1] <= eps**2 < found.targets[-1] * shrink * (1 + 1e-9)
    np.testing.assert_allclose(np.divide(found.stage_rounds[1:], found.stage_rounds[:-1]), 2.0)
    np.testing.assert_allclose(np.divide(found.trajectory_lengths[:-1], found.trajectory_lengths[1:]),
                               np.sqrt(2.0), rtol=1e-12)
    bound = fa_hmc.coupling_bound(facts, found.algorithm, n_rounds=int(ends[-1]), record=2 * ends)
    assert bound.hypotheses_hold
    assert (bound.value[1:] <= np.array(found.targets) * (1 + 1e-9)).all()
    law = theory.exact_law(problem, found.algorithm, int(ends[-1]), start=start, record=ends)
    assert (law.w2()[1:] ** 2 <= found.targets).all()


def test_dynamic_schedule_that_is_too_long():
    for eps in (1e-9, 1e-300, 5e-324):  # squares of the latter are 0
        with pytest.raises(ValueError, match=f"eps={eps!r} asks for more than 10000000 local updates"):
            fa_hmc.dynamic_plan(by_hand(), fahmc(), eps)


def test_dynamic_schedule_of_no_stages():
    facts = by_hand()
    found = fa_hmc.dynamic_plan(facts, fahmc(), 3.0)  # starts within 3
    assert found.n_rounds == 0 and found.stage_rounds == (0,) and found.targets == (4.0,)
    assert fa_hmc.w2_bound(facts, found.algorithm, n_rounds=0).value[0] <= 3.0


# --- (42): stages in which the squared error falls by a

def stages(fall, count, x=0.05):
    """E/E_0 after stages of (42) that keep the error C g^2, C g_1^2 = E_0/(2 fall), mu g_1/4 = x."""
    error, found = 1.0, []
    first = int(np.ceil(np.log(2.0 * fall) / x))
    for stage in range(count):
        keep = (1.0 - x * fall ** (-stage / 2)) ** (first * 2**stage)
        error = keep * error + (1.0 - keep) * 0.5 / fall ** (stage + 1)
        found.append(error)
    return np.array(found)


def test_an_accuracy_whose_square_is_no_number_needs_no_stage():
    problem, one = fs.Quadratic([1.0, 1.1], [[0.0], [0.2]]), fs.FAHMC(1.0, 2, local_steps=2)
    assert fa_hmc.dynamic_plan(theory.constants(problem, one, [3.0]), one, 1e300).n_rounds == 0


@pytest.mark.parametrize("fall", [1.2, 2.0, 4.0])
def test_stages_that_double_reach_their_levels(fall):
    assert (stages(fall, 20) <= fall ** -np.arange(1.0, 21.0)).all()


def test_stages_that_double_do_not_follow_a_faster_fall():
    """Beyond a = 4 the start stays: (42) is for 1 < a <= 4; the proposition takes 2."""
    errors = stages(16.0, 20)
    assert errors[-1] > 1e12 * 16.0**-20 and errors[-1] / errors[-2] > 0.99


def test_the_rate_of_stages_by_hand():
    facts, eps = by_hand(initial_w2=2.0), 0.1
    one = fahmc(shared_noise=1.0)
    exact = theory.Constants(dim=3, strong_convexity=0.5, smoothness=2.0, weights=[1 / 3] * 3,
                             initial_distance=1.0, initial_w2=2.0, heterogeneity=0.0)
    T = one.local_steps
    for fall in (2.0, 4.0):
        bound = fa_hmc.stages_rate(exact, one, eps=eps, fall=fall)
        size = 8.0 * np.log(2 * fall) / T * 400.0 ** (np.log(2) / np.log(fall))
        assert bound.terms["smoothness"][0] == pytest.approx(2.0 * size)
        assert bound.terms["bias"][0] == pytest.approx(size * T * np.sqrt(2 * fall * 3 / 4))
        assert not set(bound.violated) & {"fall <= 4", fa_hmc.proposition_45.ALIKE}
    assert "fall <= 4" in fa_hmc.stages_rate(exact, one, eps=eps, fall=4.1).violated
    assert fa_hmc.proposition_45.ALIKE in fa_hmc.stages_rate(facts, one, eps=eps).violated
    assert fa_hmc.stages_rate(exact, one, eps=3.0).value[0] == 0.0
    for bad in (1.0, 0.5, -1.0, float("nan")):
        with pytest.raises(ValueError, match="fall="):
            fa_hmc.stages_rate(exact, one, eps=eps, fall=bad)
