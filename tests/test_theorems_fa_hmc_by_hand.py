"""FA-HMC's theorems and lemmas by hand at a point, their hypotheses and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from examples_of.fa_hmc import (
    BEND,
    C_D,
    ETA,
    MOMENTS,
    MU,
    RHO,
    SLOPES,
    W2,
    WEIGHTS,
    D,
    K,
    L,
    S,
    T,
    X,
    by_hand,
    fahmc,
)

import fedsim as fs
import theory
from theory import fa_hmc
from theory.exact import FAHMCFlow


def hand_added(j, variant):
    """a_j written out: weights, s_c, sigma_g^2 = 1.2/3, bend = c_d L_H^2/L^3."""
    literal = variant == "printed"
    sigma = 0.4 / L if literal else 0.4
    s = S * D if literal else S
    bend = C_D * BEND**2 / 8.0
    own = [(1 + bend * v / 8) * m / L + (v + bend * v**2) * D + sigma * D / (K * L) * (1 + bend * v)
           for v, m in zip(s, MOMENTS, strict=True)]
    oracle = 1.25 * (4.0 + BEND**2 * C_D / 8) * D
    rest = (X**6 * 4 * sum(w * v for w, v in zip(WEIGHTS, s, strict=True)) * D / 8
            + X**4 / (3 * K) * 0.38 * sigma * D
            + X**6 * 8 / (9 * 0.5) * (sum(w * e for w, e in zip(WEIGHTS, own, strict=True)) + oracle))
    if variant == "corrected":
        apart = j**2 * X**4 * sum(w * (31 / 30 * m + 2 / 9 * L * v * D + sigma * D / (18 * K))
                                  for w, m, v in zip(WEIGHTS, MOMENTS, s, strict=True))
        apart += 2 * j * X**2 * (0.75 * 2 * D + X**2 / (4 * K) * (0.16 + 0.21 + 0.25) * sigma * D)
        return 15 / 7 * L * X**2 * apart + rest
    spread = sum(w * v for w, v in zip(WEIGHTS, s, strict=True)) - 1 if literal else 1.5
    delta = [5 / 9 * m / L + v * D / 81 + sigma * D / (6 * K * L) + spread * D / (L * X**2)
             for m, v in zip(MOMENTS, s, strict=True)]
    return 3 * X**6 * 4 * T * j * sum(
        w * (1 - w) * e for w, e in zip(WEIGHTS, delta, strict=True)) + rest


def test_setting_by_hand():
    s = fa_hmc.setting(by_hand(), fahmc(), BEND)
    assert (s.mu, s.L, s.kappa, s.d, s.N, s.K, s.T, s.rho) == (MU, L, 4.0, D, 3, K, T, RHO)
    assert s.X == pytest.approx(X) and s.D == pytest.approx(5.76) and s.sigma_sq == pytest.approx(0.4)
    np.testing.assert_allclose(s.s, S, rtol=1e-14)
    assert s.spread == pytest.approx(WEIGHTS @ S - 1) == 1.5 and s.c_d == pytest.approx(C_D)
    cost = [8 * v * 3 + 4 * g**2 / 1.5 + 0.4 * 3 / (7 * 4 * 0.5) for v, g in zip(S, SLOPES, strict=True)]
    np.testing.assert_allclose(s.moment_constants(), cost, rtol=1e-13)
    mean = 0.2 * cost[0] + 0.3 * cost[1] + 0.5 * cost[2]
    second = [5.76 + 16 * (c + mean) for c in cost]
    np.testing.assert_allclose(s.second_moments(), second, rtol=1e-13)
    np.testing.assert_allclose(s.gradient_moments(), [8 * m + 2 * g**2 for m, g in
                                                      zip(second, SLOPES, strict=True)], rtol=1e-13)
    printed = [24 + 4 * g**2 / 1.5 + 0.2 * 3 / (7 * 4 * 0.5) for g in SLOPES]
    np.testing.assert_allclose(s.moment_constants("printed"), printed, rtol=1e-13)
    alone = theory.Constants(dim=1, strong_convexity=1.0, smoothness=1.0, initial_distance=1.0)
    assert fa_hmc.setting(alone, fahmc()).slopes.tolist() == [0.0]


@pytest.mark.parametrize("variant", ["corrected", "printed", "consistent"])
def test_recursion_by_hand(variant):
    options = {"gradient_moments": MOMENTS, "hessian_smoothness": BEND, "variant": variant}
    a = [hand_added(j, variant) for j in range(3)]
    keep = 1 - 0.5 * X**2 / 4
    step = fa_hmc.one_step_bound(by_hand(), fahmc(), coupling=[2.0, 1.0, 3.0, 5.0], **options)
    np.testing.assert_allclose(step.value, [2 * keep + a[0], keep + a[1], 3 * keep + a[2], 5 * keep + a[0]],
                               rtol=1e-13)
    assert step.rounds.tolist() == [1, 2, 3, 4] and step.hypotheses_hold
    E = [W2**2]
    for t in range(12):
        E.append(keep * E[-1] + a[t % 3])
    bound = fa_hmc.coupling_bound(by_hand(), fahmc(), n_rounds=4, **options)
    np.testing.assert_allclose(bound.value, E, rtol=1e-12)
    listed = fa_hmc.coupling_bound(by_hand(), fahmc(step_size=np.full(12, ETA)), n_rounds=4, **options)
    np.testing.assert_allclose(listed.value, E, rtol=1e-12)
    w2 = fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=4, **options)
    np.testing.assert_allclose(w2.value, np.sqrt(E[::3]), rtol=1e-12)
    for _ in range(3000):
        E.append(keep * E[-1] + a[(len(E) - 1) % 3])
    while (len(E) - 1) % 3:
        E.append(keep * E[-1] + a[(len(E) - 1) % 3])
    assert fa_hmc.steady_state(by_hand(), fahmc(), **options) == pytest.approx(E[-1], rel=1e-3)
    assert w2.floor == pytest.approx(np.sqrt(fa_hmc.steady_state(by_hand(), fahmc(), **options)), rel=1e-14)
    far = fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=10**8, record=[10**8], **options)
    assert far.value[-1] == pytest.approx(w2.floor, rel=1e-9)


def test_lemmas_by_hand():
    facts, algorithm = by_hand(), fahmc()
    apart = [hand_added(j, "corrected") - hand_added(0, "corrected") for j in range(3)]
    drift = fa_hmc.divergence_bound(facts, algorithm, n_rounds=1, gradient_moments=MOMENTS)
    np.testing.assert_allclose(drift.value, [*(np.array(apart) / (15 / 7 * L * X**2)), 0.0], atol=1e-15)
    main = fa_hmc.main_part_bound(facts, algorithm, coupling=[2.0, 1.0], gradient_moments=MOMENTS)
    kick = X**6 * 4 * 2.5 * 3 / 9
    np.testing.assert_allclose(main.value, [2 * (1 - 0.0064) + kick,
                                            1 - 0.0064 + 2 * X**2 * L * drift.value[1] + kick], rtol=1e-13)
    u = ETA * np.arange(1, 5)
    k = np.arange(1, 5)
    seven = fa_hmc.leapfrog_deviation_bound(facts, algorithm, gradient_moments=MOMENTS)
    np.testing.assert_allclose(seven.value, u**4 / 3 * (3 + 2 * 4 * 3 + 0.4 * 3 / k), rtol=1e-13)
    assert seven.inputs["client"] == 0 and seven.index == "leapfrog_step"
    eight = fa_hmc.leapfrog_gradient_deviation_bound(facts, algorithm, client=2, gradient_moments=MOMENTS,
                                                     hessian_smoothness=BEND)
    bend = C_D * BEND**2 / 8
    wanted = (1 + bend * 1.75 / 8) * 3.5 + (1.75 + bend * 1.75**2) * 3
    wanted = wanted + 0.4 * 3 / (2 * k) * (1 + bend * 1.75)
    np.testing.assert_allclose(eight.value, u**4 * 8 * wanted, rtol=1e-13)
    cost = 8 * 4 * 3 + 4 * 1.7**2 / 1.5 + 0.4 * 3 / 14
    step = fa_hmc.client_step_bound(facts, algorithm, second_moments=[6.0], client=0)
    assert step.value[0] == pytest.approx((1 - X**2 / 8 + 4 / 3 * X**6 * 16) * 6 + X**2 * cost, rel=1e-13)
    loose = fa_hmc.client_step_bound(facts, algorithm, second_moments=[6.0], client=0, variant="printed")
    assert loose.value[0] == pytest.approx((1 - 0.5 * X**2 / 4 + 4 * X**6 * 16) * 6 + X**2 * 4 * (
        24 + 4 * 1.7**2 / 1.5 + 0.2 * 3 / 14))
    assert fa_hmc.target_moment_bound(facts, algorithm).value[0] == 6.0
    flow = fa_hmc.flow_distance_bound(facts, algorithm, position_gap=[3.0, 0, 4], momentum_gap=[0, 1.0, 0],
                                      variant="corrected")
    np.testing.assert_allclose(flow.value, 5 * (1 - u**2 / 8) + 2 * np.sinh(0.5) * u, rtol=1e-13)
    sharp = fa_hmc.flow_distance_bound(facts, algorithm, position_gap=[3.0, 0, 4], momentum_gap=[0, 1.0, 0])
    np.testing.assert_allclose(sharp.terms["momentum"], np.sinh(np.sqrt(2) * u) / np.sqrt(2), rtol=1e-13)
    moved = fa_hmc.displacement_bound(facts, algorithm, point=[0.0] * 3, momentum=[1.0, 2, 2],
                                      gradient=[0.0, 3, 4])
    np.testing.assert_allclose(moved.value, 18 * u**2 + 25 * u**4 + 1.2 * u**4 / k, rtol=1e-13)
    six = fa_hmc.gradient_displacement_bound(facts, algorithm, point=[0.0] * 3, momentum=[1.0, 2, 2],
                                             gradient=[0.0, 3, 4], variant="printed")
    np.testing.assert_allclose(six.value, 4 * (18 * u**2 + 25 * u**4 + 1.2 * u**4), rtol=1e-13)
    np.testing.assert_allclose(fa_hmc.oracle_deviation_bound(facts, algorithm).value, 6 * u**4, rtol=1e-13)
    np.testing.assert_allclose(fa_hmc.oracle_reach_bound(facts, algorithm).value, u**2 * C_D, rtol=1e-13)
    oracle = fa_hmc.oracle_gradient_bound(facts, algorithm, hessian_smoothness=BEND)
    np.testing.assert_allclose(oracle.value, 8 * 1.25 * (4 + bend) * 3 * u**4, rtol=1e-13)
    np.testing.assert_allclose(fa_hmc.maxima_bound(facts, algorithm, momentum_variance=2.0).value,
                               C_D * np.array([2, 12, 4]), rtol=1e-14)


def test_rates_by_hand():
    eps, facts = 0.1, by_hand()
    parts = {"smoothness": 2.0, "bias": 3 * np.sqrt(3) / 0.1, "correlation": 3 * 9 * 0.75 * 3 / 0.01,
             "gradient_noise": 3 * 0.38 * 0.4 / (4 * 0.01)}
    bound = fa_hmc.rounds_rate(facts, fahmc(), eps=eps, variant="resolved")
    assert bound.kind == "rate" and bound.hypotheses_hold and len(bound.assumptions) == 3
    for name, part in parts.items():
        assert bound.terms[name][0] == pytest.approx(4 / (0.5 * 3) * np.log(2 * 4 / 0.01) * part, rel=1e-13)
    sharp = fa_hmc.rounds_rate(facts, fahmc(), eps=eps)
    assert sharp.terms["correlation"][0] == pytest.approx(bound.terms["correlation"][0] / 3, rel=1e-13)
    falling = fa_hmc.dynamic_rate(facts, fahmc(), eps=eps)
    for name, part in sharp.terms.items():
        logs = 1.0 if name == "smoothness" else np.log(2 * 4 / 0.01)
        assert falling.terms[name][0] == pytest.approx(part[0] / logs, rel=1e-13)
    printed = fa_hmc.rounds_rate(facts, fahmc(), eps=eps, variant="printed")
    g = 1 / max(parts.values())
    assert printed.value[0] == pytest.approx(
        300 * np.log(300) * (3 * (g + 2.25) + 0.38 * 0.4 / 12), rel=1e-12)
    assert fa_hmc.dynamic_rate(facts, fahmc(), eps=eps, variant="printed").value[0] == pytest.approx(
        300 * C_D * (3 * (g + 2.25) + 0.38 * 0.4 / 12), rel=1e-12)
    assert fa_hmc.vanilla_rate(facts, fahmc(), eps=eps).value[0] == pytest.approx(
        10 * np.sqrt(3) * np.log(300))
    assert fa_hmc.lower_rate(facts, fahmc(), eps=eps).value[0] == pytest.approx(10 * np.sqrt(3) * np.log(30))
    error = fa_hmc.error_rate(facts, fahmc(), n_rounds=1, gradient_moments=MOMENTS)
    wanted = 5 * X**4 * (5.6 + L * 2.5 * 3) + 2 * X**2 * 0.75 * 2 * 3
    wanted += X**2 / (K * L) * (0.38 + 5 * L * X**2) * 0.4 * 3
    np.testing.assert_allclose(error.value, (1 - 0.5 * X**2 / 4) ** np.arange(4) * 4 + wanted, rtol=1e-13)
    said = fa_hmc.error_rate(facts, fahmc(), n_rounds=1, gradient_moments=MOMENTS, variant="printed")
    wanted = X**2 * (9 * (5.6 * X**2 + 0.75 * 9) / L + 0.38 * 0.4 / L * 3 / 4)
    age = np.array([0, 0, 1, 2])
    np.testing.assert_allclose(said.value, (1 - 0.5 * X**2 / 4) ** age * 4 + wanted, rtol=1e-13)
    for bad in (0.0, -1.0, float("nan"), "x", 5e-324):
        for name in ("rounds_rate", "vanilla_rate", "lower_rate", "dynamic_rate", "stages_rate"):
            with pytest.raises(ValueError, match="eps="):
                getattr(fa_hmc, name)(facts, fahmc(), eps=bad)
    with pytest.raises(ValueError, match="a rate holds up to an unknown constant"):
        theory.check(bound, [1.0])


# --- hypotheses, refusals, bad input

@pytest.mark.parametrize("length, holds", [(0.5, True), (0.5 * (1 + 1e-9), False), (0.1, True)])
def test_trajectory_margin(length, holds):
    facts = by_hand(strong_convexity=1.0, smoothness=1.0)
    bound = fa_hmc.w2_bound(facts, fahmc(step_size=length / K), n_rounds=3, gradient_moments=MOMENTS)
    only, smooth = bound.assumptions
    assert smooth.holds and bound.hypotheses_hold is holds
    assert only.margin == pytest.approx(1 - length / 0.5, abs=1e-12)
    own = fa_hmc.w2_bound(facts, fahmc(step_size=length / K), n_rounds=3)
    assert len(own.assumptions) == 3 and own.hypotheses_hold is holds  # mu/(4 L^2) = 1/4 here


def test_margins_of_the_variants():
    for smoothness, holds in ((1.0, False), (2.0, True)):  # mu X^2 <= 1/4 binds below a condition of 4
        algorithm = fahmc(step_size=0.99 / np.sqrt(smoothness) / K)
        printed, corrected = (fa_hmc.coupling_bound(
            by_hand(smoothness=smoothness), algorithm, n_rounds=1, gradient_moments=MOMENTS, variant=v)
            for v in ("printed", "corrected"))
        assert printed.hypotheses_hold and corrected.hypotheses_hold is holds
    rising = fahmc(step_size=[0.01, 0.02, 0.02])
    for variant, name in (("printed", "step_size never increases"),
                          ("corrected", "constant step_size within each round")):
        bound = fa_hmc.coupling_bound(by_hand(), rising, n_rounds=1, gradient_moments=MOMENTS,
                                      variant=variant)
        assert bound.violated == (name,)


def test_bounds_are_finite_far_outside_their_hypotheses():
    for step in (0.3, 3.0, 1e3):
        bound = fa_hmc.w2_bound(by_hand(), fahmc(step_size=step), n_rounds=50)
        assert not bound.hypotheses_hold and np.isfinite(bound.value).all() and (bound.value > 0).all()
        assert np.isfinite(bound.floor) and bound.is_vacuous


def test_unknown_distances_are_bounded():
    facts = by_hand(initial_w2=None)
    bound = fa_hmc.coupling_bound(facts, fahmc(), n_rounds=0)
    assert bound.value[0] == pytest.approx((2.4 + np.sqrt(6)) ** 2)
    assert fa_hmc.coupling_bound(facts, fahmc(), n_rounds=0, initial=9.0).value[0] == 9.0
    with pytest.raises(ValueError, match="initial_distance=None"):
        fa_hmc.coupling_bound(by_hand(initial_distance=None), fahmc(), n_rounds=0)


@pytest.mark.parametrize("convention", ["components", "global"])
def test_the_wrong_convention_is_refused(convention):
    facts = by_hand(convention=convention)
    for entry in theory.theorems():
        if entry.id.startswith("fa_hmc."):
            chosen = FAHMCFlow(0.1) if entry.algorithm is FAHMCFlow else fahmc()
            with pytest.raises(ValueError, match=f"convention='{convention}'"):
                entry.function(facts, chosen, n_rounds=1)
    for rule in (fa_hmc.plan, fa_hmc.dynamic_plan, fa_hmc.u_curve):
        with pytest.raises(ValueError, match=f"convention='{convention}'"):
            rule(facts, fahmc(), 0.1)


@pytest.mark.parametrize("changes, words", [
    ({"participation": fs.Participation(2, True)}, "participation="),
    ({"debias": "stale"}, "debias='stale'"),
])
def test_other_rounds_are_refused(changes, words):
    problem = fs.Quadratic([1.0, 2.0, 3.0], np.zeros((3, 1)))
    for name in ("w2_bound", "divergence_bound", "client_moment_bound", "rounds_rate", "error_rate"):
        extra = {"eps": 0.1} if name == "rounds_rate" else {}
        with pytest.raises(ValueError, match=words):
            getattr(fa_hmc, name)(by_hand(), fahmc(**changes), n_rounds=1, **extra)
    with pytest.raises(ValueError, match=words):
        fa_hmc.coupling_law(problem, fahmc(**changes), 1)


@pytest.mark.parametrize("call, words", [
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=-1), "n_rounds=-1"),
    (lambda: fa_hmc.coupling_bound(by_hand(), fahmc(), n_rounds=1.5), "n_rounds=1.5"),
    (lambda: fa_hmc.error_rate(by_hand(), fahmc(), n_rounds=None), "n_rounds=None"),
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1, gradient_moments=[1.0]), "gradient_moments"),
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1, gradient_moments=[1.0, -1, 1]),
     "gradient_moments has a negative entry"),
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1, hessian_smoothness=-1.0), "hessian_smoothness"),
    (lambda: fa_hmc.coupling_bound(by_hand(), fahmc(), n_rounds=1, initial=-1.0), "initial=-1"),
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1, variant="proof"), "variant='proof'"),
    (lambda: fa_hmc.one_step_bound(by_hand(), fahmc(), coupling=[[1.0]]), "coupling"),
    (lambda: fa_hmc.one_step_bound(by_hand(), fahmc(step_size=[0.1]), coupling=[1.0, 1.0]),
     "step_size has 1 entries"),
    (lambda: fa_hmc.steady_state(by_hand(), fahmc(step_size=[0.1])), "no steady state"),
    (lambda: fa_hmc.error_rate(by_hand(), fahmc(step_size=[0.1] * 3), n_rounds=1), "must be constant"),
    (lambda: fa_hmc.client_moment_bound(by_hand(), fahmc(), n_rounds=1, client=3), "client=3"),
    (lambda: fa_hmc.flow_distance_bound(by_hand(), fahmc(), position_gap=[1.0], momentum_gap=[1.0] * 3),
     "position_gap"),
    (lambda: fa_hmc.maxima_bound(by_hand(), fahmc(), momentum_variance=0.0), "momentum_variance=0.0"),
    (lambda: fa_hmc.coupling_law(fs.Quadratic([1.0], [[0.0]]), fahmc(), -1), "n_steps=-1"),
    (lambda: fa_hmc.coupling_law("problem", fahmc(), 1), "problem='problem'"),
    (lambda: fa_hmc.plan(by_hand(), fahmc(), 0.0), "eps=0.0"),
    (lambda: fa_hmc.plan(by_hand(), fs.FALD(0.1), 0.1), "must be a fedsim.FAHMC"),
    (lambda: fa_hmc.plan(by_hand(), fahmc(), 1e-200), "eps=1e-200 is too small"),
    (lambda: fa_hmc.theorem_step_size(by_hand(), fahmc(), 0.1, constant=-1.0), "constant=-1.0"),
    (lambda: fa_hmc.dynamic_plan(by_hand(), fahmc(), 0.1, order="cubic"), "order='cubic'"),
    (lambda: fa_hmc.dynamic_plan(by_hand(), fahmc(), 0.1, order="quadratic"), "exact gradients"),
    (lambda: fa_hmc.dynamic_plan(by_hand(), fahmc(), 1e-6), "more than 10000000"),
    (lambda: fa_hmc.TwoGroups(1.0, 2.0, 1.0, 1.0), "must be at least mu"),
    (lambda: fa_hmc.TwoGroups(1.0, 0.0, 1.0, 1.0), "mu=0.0"),
    (lambda: fa_hmc.TwoGroups.of(fs.Quadratic([1.0, 2.0, 2.0], np.zeros((3, 1)))), "weight 1/2 each"),
    (lambda: fa_hmc.fewest_rounds(fa_hmc.TwoGroups(1.0, 0.25, 2.0, 1.0, 10**6), 1e-6, 5, n_grid=12),
     "is not reached"),
    (lambda: theory.check(fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1), fa_hmc.coupling_law(
        fs.Quadratic([1.0], [[0.0]]), fs.FAHMC(0.1, 1), 1)), "must be a fedsim.Law"),
    (lambda: theory.check(fa_hmc.coupling_bound(by_hand(), fahmc(), n_rounds=1), theory.exact_law(
        fs.Quadratic([1.0], [[0.0]]), fs.FAHMC(0.1, 1), 1)), "must be a theory.fa_hmc.CouplingLaw"),
    (lambda: theory.check(fa_hmc.client_moment_bound(by_hand(), fahmc(), n_rounds=1), "law"), "JointLaw"),
    (lambda: theory.check(fa_hmc.oracle_deviation_bound(by_hand(), fahmc()), "law"), "fedsim.Quadratic"),
])
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_root_is_the_start_to_the_bit_where_nothing_else_is():
    """Or rounding alone would make a bound that never falls below its start say something."""
    problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.0001, 50, local_steps=5)
    for start in np.random.default_rng(0).uniform(1.0, 9.0, 60):
        bound = fa_hmc.w2_bound(theory.constants(problem, algorithm, [start]), algorithm, n_rounds=0)
        assert bound.value[0] == bound.start_distance and bound.is_vacuous and bound.is_root
