"""What is said against FA-HMC's text, and the forms of its statements that take its place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from examples_of.fa_hmc import by_hand, draw_case, fahmc

import fedsim as fs
import theory
from theory import fa_hmc
from theory.fa_hmc.hypotheses import MOMENT_RANGE
from theory.judge.checking import QUANTITIES

SEED = 20261122
OURS = [entry for entry in theory.theorems() if entry.id.startswith("fa_hmc.")]
ERRATA = {  # id: (grade, consequence)
    "any_fall": ("proof", "range"),
    "divergence_weights": ("error", "constant"), "dynamic_inequality": ("proof", "constant"),
    "dynamic_references": ("error", "nothing"), "dynamic_schedule": ("proof", "constant"),
    "figure_covariance": ("error", "nothing"), "figure_threshold": ("error", "nothing"),
    "flow_constant": ("error", "constant"),
    "lower_bias": ("proof", "nothing"), "lower_display": ("error", "nothing"),
    "lower_exponent": ("proof", "nothing"), "lower_variance": ("proof", "nothing"),
    "momentum_deviation": ("proof", "nothing"), "noise_normalisation": ("error", "constant"),
    "noise_signs": ("proof", "nothing"), "old_errors": ("error", "range"),
    "oracle_scale": ("error", "nothing"),
    "sampling_cost": ("error", "constant"), "second_order_difference": ("proof", "nothing"),
    "squared_accuracy": ("proof", "nothing"), "steps_within_a_round": ("proof", "range"),
    "trajectory_range": ("proof", "constant")}
LOOSE = {"displacement_noise", "main_part_constant", "synchronization_unit", "three_constants", "u_curve"}
MARKS = {"average_weights", "hamiltonian_sign", "index_of_sum", "leapfrog_argument", "missing_gradients",
         "oracle_norm", "sketch_constants", "symbols_of_the_lower_bound"}
VARIANTS = {
    "w2_recursion": ("proved",),
    **dict.fromkeys(("one_step_bound", "coupling_bound", "w2_bound", "main_part_bound", "divergence_bound"),
                    ("corrected", "printed", "consistent")),
    **dict.fromkeys(("client_step_bound", "client_moment_bound", "client_gradient_bound",
                     "leapfrog_deviation_bound", "leapfrog_gradient_deviation_bound",
                     "oracle_gradient_bound"),
                    ("corrected", "printed")),
    **dict.fromkeys(("target_moment_bound", "oracle_deviation_bound", "oracle_reach_bound", "maxima_bound",
                     "vanilla_rate", "lower_rate"), ("printed",)),
    **dict.fromkeys(("displacement_bound", "gradient_displacement_bound"), ("proof", "printed")),
    "flow_distance_bound": ("sharp", "corrected", "printed"), "lower_bound": ("mean", "printed"),
    "rounds_rate": ("sharp", "printed", "resolved"), "error_rate": ("sharp", "printed"),
    "dynamic_rate": ("sharp", "printed"), "stages_rate": ("sharp", "printed")}


# --- the register

def test_the_entries_and_their_grades():
    """Nothing else is said against the paper."""
    assert {e.id.removeprefix("fa_hmc."): (e.grade, e.consequence) for e in theory.errata("FA-HMC")} == ERRATA
    remarks = theory.remarks("FA-HMC")
    for grade, wanted in (("loose", LOOSE), ("transcription", MARKS)):
        assert {e.id.removeprefix("fa_hmc.") for e in remarks if e.grade == grade} == wanted
    known = {entry.id for entry in theory.theorems()}
    for entry in theory.errata("FA-HMC") + remarks:
        assert set(entry.theorems) <= known, entry.id
        assert 0 < len(entry.derivation) <= 1500 and entry.printed and entry.corrected, entry.id
        assert entry.grade in ("error", "proof") or entry.consequence == "nothing", entry.id


def test_the_evidence_of_every_entry():
    for entry in theory.errata("FA-HMC") + theory.remarks("FA-HMC"):
        found = entry.evidence()
        assert found.demonstrated == (entry.kind == "numerical") == bool(found.numbers), entry.id
        assert found.text and all(np.isfinite(value) for value in found.numbers.values()), entry.id


@pytest.mark.parametrize("name, module, theorem", [
    ("noise_normalisation", "errata", "leapfrog_deviation_bound"),
    ("flow_constant", "errata_lemmas", "flow_distance_bound"),
    ("sampling_cost", "errata_lemmas", "client_step_bound"),
    ("divergence_weights", "errata_lemmas", "divergence_bound"),
    ("oracle_scale", "errata_lemmas", "oracle_gradient_bound")])
def test_the_evidence_can_come_out_for_the_authors(monkeypatch, name, module, theorem):
    """Were the printed formula the corrected one, the same comparison would say so."""
    true = getattr(fa_hmc, theorem)
    monkeypatch.setattr(getattr(fa_hmc, module), theorem,
                        lambda *a, **k: true(*a, **(k | {"variant": "corrected"})))
    entry, = [e for e in theory.errata("FA-HMC") if e.id == f"fa_hmc.{name}"]
    found = entry.evidence()
    assert not found.demonstrated and found.speaks_for == "the authors"


def test_the_other_evidence_can_come_out_for_the_authors(monkeypatch):
    """Splits that would reach their constants, a schedule within its levels, a display that is exact."""
    def evidence(name):
        return next(e for e in theory.errata("FA-HMC") if e.id == f"fa_hmc.{name}").evidence()

    with monkeypatch.context() as patch:
        stages = fa_hmc.errata_schedules.doubling_stages
        patch.setattr(fa_hmc.errata_schedules, "doubling_stages", lambda a, step: stages(min(a, 4.0), 2.0))
        assert not evidence("any_fall").demonstrated
    with monkeypatch.context() as patch:
        true = fa_hmc.errata.printed_splits
        patch.setattr(fa_hmc.errata, "printed_splits", lambda x: true(min(x, 0.25)))
        assert not evidence("trajectory_range").demonstrated
    with monkeypatch.context() as patch:
        def fading(problem, algorithm, n, start=None):
            law = fa_hmc.coupling_law(problem, algorithm, n, start=start)
            return replace(law, distance_sq=law.distance_sq * algorithm.schedule.values[-1] ** 4)

        patch.setattr(fa_hmc.errata, "coupling_law", fading)
        assert not evidence("old_errors").demonstrated
    with monkeypatch.context() as patch:
        patch.setattr(fa_hmc.TwoGroups, "printed_variance", lambda self, n, x, T: self.law(n, x, T)[1])
        assert not evidence("lower_variance").demonstrated
    with monkeypatch.context() as patch:
        true_stages = fa_hmc.errata_schedules.stage_errors
        patch.setattr(fa_hmc.errata_schedules, "stage_errors",
                      lambda x, first, added, shrink: true_stages(x, first, min(added, 0.25), shrink))
        assert not evidence("dynamic_schedule").demonstrated


def test_the_first_variant_is_the_proved_form():
    assert {entry.id.removeprefix("fa_hmc."): entry.variants for entry in OURS} == VARIANTS
    with pytest.warns(DeprecationWarning, match="it means variant='sharp'"):
        old = fa_hmc.rounds_rate(by_hand(), fahmc(), eps=0.1, variant="corrected")
    assert old.variant == "sharp"


# --- Theorem 4.4 with one update per round

@pytest.mark.parametrize("steps, exact", [(1, 7.2e-5), (5, 1.17e-5)])
def test_the_rate_does_not_vanish_with_one_update_per_round(steps, exact):
    """Clients never part, E tends to a positive number, and so must its rate."""
    problem = fs.Quadratic([1.0, 4.0], [[1.0], [-1.0]])
    algorithm = fs.FAHMC(0.2 / steps, steps, 1, 1.0)
    law = fa_hmc.coupling_law(problem, algorithm, 4000)
    assert law.distance_sq[-1] == pytest.approx(exact, rel=0.02)
    facts, moments = theory.constants(problem, algorithm), law.gradient_moments.max(axis=0)
    for variant in ("sharp", "printed"):
        rate = fa_hmc.error_rate(facts, algorithm, n_rounds=4000, record=[4000], gradient_moments=moments,
                                 variant=variant)
        assert rate.terms["initialization"][-1] < 1e-15 and rate.value[-1] > exact
    bound = fa_hmc.coupling_bound(facts, algorithm, n_rounds=4000, record=[4000], gradient_moments=moments)
    assert exact < bound.value[-1] < 300 * rate.value[-1]


def test_the_rate_dominates_the_recursion_up_to_a_constant():
    """The explicit floor over the shape is bounded for every T, K, weight and noise at a condition of 4."""
    rng, ratios = np.random.default_rng(SEED), []
    for _ in range(300):
        weights = rng.dirichlet(np.full(4, 0.5)) + 1e-3
        facts = theory.Constants(
            dim=int(rng.integers(1, 50)), strong_convexity=0.25, smoothness=1.0,
            weights=weights / weights.sum(),
            gradient_at_minimizer=10.0 ** rng.uniform(-2, 2, 4), initial_distance=0.0, initial_w2=0.0,
            gradient_noise_traces=np.full(4, 10.0 ** rng.uniform(-3, 3)), hessian_smoothness=0.0)
        algorithm = fs.FAHMC(10.0 ** rng.uniform(-3, 0) / 4, 4, int(10 ** rng.uniform(0, 3)),
                             rng.choice([0.0, 0.7, 1.0]))
        given = 10.0 ** rng.uniform(-2, 2, 4)
        floor = fa_hmc.steady_state(facts, algorithm, gradient_moments=given)
        rate = fa_hmc.error_rate(facts, algorithm, n_rounds=1, record=[0], gradient_moments=given)
        ratios.append(floor / rate.value[0])
    assert max(ratios) < 60 * 4 + 40  # (60/7)(31/30) kappa and the parts of delta_pi, kappa^2


# --- ranges

def test_lemma_d6_on_its_whole_range():
    """(7) and (8) up to 1/sqrt(L), every client, exact moments and noise; and by norms for every k."""
    rng = np.random.default_rng([SEED, 1])
    largest = 0.0
    for number in range(150):
        case = problem, algorithm, start, rounds = draw_case(rng, "full")
        facts = theory.constants(problem, algorithm, start)
        law = theory.exact.joint_law(problem, algorithm, rounds * algorithm.local_steps, start=start)
        moments = [fa_hmc.quantities.gradient_moments(law, c).max() for c in range(problem.n_clients)]
        for bound in (fa_hmc.leapfrog_deviation_bound, fa_hmc.leapfrog_gradient_deviation_bound):
            verdict = theory.check(bound(facts, algorithm, client=number % problem.n_clients,
                                         gradient_moments=moments), law)
            assert verdict.hypotheses_met and verdict.holds, (verdict, case)
            largest = max(largest, verdict.tightness)
    assert largest > 0.7
    five, seven = np.array([fa_hmc.errata.leapfrog_by_norms(k) for k in range(1, 31)]).T
    assert (np.diff(seven) > 0).all() and seven[0] == pytest.approx(0.75) and (np.diff(five) > 0).all()
    assert seven[-1] / 3 == pytest.approx(0.3255, abs=5e-5) and five[-1] == pytest.approx(0.9851, abs=5e-4)
    assert seven[-1] / 3 < (np.cosh(1) - 1) ** 2 + (np.sinh(1) - 1) ** 2 < 0.3257


def test_lemma_d7_on_a_longer_range():
    """(10) up to 1/(2 sqrt(L)), not only where it contracts; it implies (39)."""
    rng = np.random.default_rng([SEED, 3])
    for number in range(150):
        case = problem, algorithm, start, rounds = draw_case(rng, "half")
        facts, c = theory.constants(problem, algorithm, start), number % problem.n_clients
        law = theory.exact.joint_law(problem, algorithm, rounds * algorithm.local_steps, start=start)
        before = law.second_moment_about(problem.minimizer)[:-1, c]
        bound = fa_hmc.client_step_bound(facts, algorithm, second_moments=before, client=c)
        verdict = theory.check(bound, law)
        assert verdict.hypotheses_met and verdict.holds, (verdict, case)
    step = fahmc(step_size=np.sqrt(0.5 / 16) / 4)  # X^2 = mu/(4 L^2)
    bound = fa_hmc.client_step_bound(by_hand(), step, second_moments=[8.0], client=0)
    assert bound.terms["contraction"][0] <= (1 - 0.5 * (0.5 / 16) / 8) * 8.0


def test_the_recursions_range():
    """1/sqrt(L) from a condition of 4 on, and 1/(2 sqrt(mu)) below."""
    for kappa, limit in ((16.0, 1.0), (4.0, 1.0), (2.0, 2**-0.5), (1.0, 0.5)):
        facts = by_hand(strong_convexity=2.0 / kappa, smoothness=2.0)
        for share, holds in ((1.0, True), (1.0 + 1e-9, False)):
            algorithm = fahmc(step_size=share * limit / np.sqrt(2.0) / 4)
            bound = fa_hmc.coupling_bound(facts, algorithm, n_rounds=1, gradient_moments=[1.0, 1.0, 1.0])
            assert bound.hypotheses_hold is holds, (kappa, share)


def test_the_splits_reach_their_constants_at_half_the_length():
    assert max(fa_hmc.errata.printed_splits(0.25).values()) == pytest.approx(1.0, abs=1e-12)
    assert fa_hmc.errata.printed_splits(1.0)["D.5, momentum"] == pytest.approx(1.25)


# --- schedules

def test_later_stages_decay_by_less_and_reach_their_levels():
    """(1 - x/y)^y grows with y: later stages keep more of their start, and still end below their level."""
    problem = fs.Quadratic([1.0, 1.1], [[0.0], [0.2]])
    algorithm, start = fs.FAHMC(1.0, 2, 2, 0.5), [3.0]
    facts = theory.constants(problem, algorithm, start)
    found = fa_hmc.dynamic_plan(facts, algorithm, facts.initial_w2 / 8)
    kept = [(1 - 0.25 * facts.strong_convexity * x**2) ** (2 * n)
            for x, n in zip(found.trajectory_lengths, found.stage_rounds, strict=True)]
    assert len(kept) == 6 and (np.diff(kept) > 0).all() and kept[-1] < 1 / 3.83
    ends = 2 * np.cumsum(found.stage_rounds)
    bound = fa_hmc.coupling_bound(facts, found.algorithm, n_rounds=found.n_rounds, record=ends)
    levels = np.array([facts.initial_w2**2, *found.targets])
    assert (bound.value[1:] <= (1 / 3.83 + 0.75 / 4) * levels[:-1]).all()


@pytest.mark.parametrize("decay, shrink, uncorrected", [(4, 2, 1.249), (8, 4, 1.456)])
def test_the_corrected_schedules_reach_their_levels_by_the_true_decay(decay, shrink, uncorrected):
    """With log(4)/(-log(1-x)) updates in the first stage later ones fall short; with log(4)/x none does."""
    stages = fa_hmc.errata_schedules.stage_errors
    for x in (0.25, 0.1, 1e-2, 1e-5):
        lasts = np.log(decay) / x  # not rounded up: the worst case
        assert max(stages(x, lasts, 1 / decay, shrink)) <= 1.0 + 1e-12
    assert max(stages(1e-5, lasts, 1 / decay, shrink)) > 1.0 - 1e-4
    short = np.log(decay) / -np.log1p(-0.25)
    assert max(stages(0.25, short, 1 / decay, shrink)) == pytest.approx(uncorrected, abs=1e-3)


def test_where_the_printed_schedule_settles():
    """At C/3 for small steps and at .372 C at most; below its levels only for C <= 3."""
    stages = fa_hmc.errata_schedules.stage_errors
    for x, share in ((1e-6, 1 / 3), (0.25, 0.372)):
        first = np.log(8) / -np.log1p(-x)
        assert stages(x, first, 100 / 8, 2, 40)[-1] == pytest.approx(100 * share, rel=1e-3)
    first = np.log(8) / -np.log1p(-1e-6)
    assert max(stages(1e-6, first, 3 / 8, 2)) <= 1.0 + 1e-5 < max(stages(1e-6, first, 3.1 / 8, 2))


def test_the_quotient_of_appendix_j():
    x, y = 0.5, 2.0
    assert y * np.log1p(-x / y) / np.log1p(-x) == pytest.approx(0.830, abs=5e-4)
    assert (1 / 16) / -np.log1p(-1 / 16) > 0.968 and 4**0.968 > 3.82


# --- what single entries say

def test_lemma_d8_on_either_reading_of_the_momenta():
    """False at d = 1, where both readings agree; with D.2's d true in this example from d = 14 on."""
    ratios = {}
    for d in (1, 13, 14):
        problem = fs.Quadratic(np.ones(2), np.zeros((2, d)), [0.99, 0.01])
        algorithm = fs.FAHMC(0.001, 10, 2, 0.0)
        law = theory.exact.joint_law(problem, algorithm, 2)
        for variant in ("consistent", "printed"):
            bound = fa_hmc.divergence_bound(theory.constants(problem, algorithm), algorithm, n_rounds=1,
                                            gradient_moments=[2.0 * d, 2.0 * d], variant=variant)
            ratios[d, variant] = law.divergence()[1] / bound.value[1]
    assert ratios[1, "printed"] == pytest.approx(ratios[1, "consistent"], rel=1e-12)
    assert all(ratios[d, "consistent"] == pytest.approx(25.25, abs=0.01) for d in (1, 13, 14))
    assert ratios[13, "printed"] > 1.0 > ratios[14, "printed"]
    weights, g = np.array([0.99, 0.01]), np.array([1.0, 0.0])
    left = weights @ (0.5 * (g - weights @ g)) ** 2
    assert left > 15 * 1.25 * weights @ ((1 - weights) ** 2 * g**2)
    assert left < 1.25 * weights @ ((1 - weights) * g**2)


def test_where_assumption_3_4_breaks_the_first_order_lemma():
    """(7) with L sigma_g^2 d, K = 1 and large noise: 1/4 > y/(48 (1 - y/4)) + 1/(3 L), y = L eta^2."""
    for L, y, fails in ((1.4, 1e-3, True), (1.3, 1e-3, False), (1.6, 1.0, True), (1.4, 1.0, False)):
        problem, algorithm = fs.Quadratic([L], [[0.0]], None, 1e8), fs.FAHMC(np.sqrt(y / L), 1)
        start = fs.Gaussian([0.0], [[0.25 * y / L * 1e8 / (L * (1 - y / 4))]])  # stationary
        law = theory.exact.joint_law(problem, algorithm, 1, start=start)
        moments = [fa_hmc.quantities.gradient_moments(law, 0).max()]
        bound = fa_hmc.leapfrog_deviation_bound(theory.constants(problem, algorithm, start), algorithm,
                                                gradient_moments=moments, variant="printed")
        assert theory.check(bound, law).holds is not fails, (L, y)
        assert fails == (0.25 > y / (48 * (1 - y / 4)) + 1 / (3 * L))


def test_the_second_moments_of_lemma_d7_need_the_momentums_variance():
    """(11) with B_a = 2 d, L = mu = 1: 32 d, and 40 clients with private momenta go beyond in long rounds."""
    many = 40
    problem, algorithm = fs.Quadratic(np.ones(many), np.zeros((many, 1))), fs.FAHMC(0.25, 2, 40, 0.0)
    law = theory.exact.joint_law(problem, algorithm, 39)
    assert law.second_moment_about(problem.minimizer)[-1, 0] > 32.0


def test_the_printed_variance_of_the_lower_bound():
    """Too large for shared momenta, too small for private ones."""
    for L, mu, x, T in ((1.0, 0.25, 0.5, 10), (4.0, 0.25, 0.5, 10), (100.0, 1.0, 0.1, 100)):
        groups = fa_hmc.TwoGroups(L=L, mu=mu, theta_L=2.0, theta_mu=1.0)
        printed = groups.printed_variance(10**6, x, T)
        assert groups.law(np.inf, x, T)[1] < printed < groups.law(np.inf, x, T, 0.0)[1]
        c, s = np.cos(np.sqrt([L, mu]) * x), np.sin(np.sqrt([L, mu]) * x) / np.sqrt([L, mu])
        own = (1 - c ** (2 * T)) / [L, mu]
        gamma, _ = groups.fixed_point(x, T)
        shared = 0.25 * (own.sum() + 2 * s.prod() * (1 - c.prod() ** T) / (1 - c.prod()))
        assert groups.law(np.inf, x, T)[1] == pytest.approx(shared / (1 - gamma**2), rel=1e-9)
        assert groups.law(np.inf, x, T, 0.0)[1] == pytest.approx(0.5 * own.sum() / (1 - gamma**2), rel=1e-9)


# --- rates

def test_rates_carry_their_assumptions():
    facts = by_hand(initial_w2=3.0)
    for entry in OURS:
        if entry.kind == "rate":
            extra = {"n_rounds": 1} if entry.index == "local_step" else {"eps": 0.1}
            found = entry.function(facts, fahmc(), **extra)
            assert found.assumptions, entry.id
            assert {a.name for a in found.assumptions} <= {*entry.hypotheses, MOMENT_RANGE}
    few, many = (fa_hmc.vanilla_rate(facts, fahmc(shared_noise=rho), eps=1e-4) for rho in (1.0, 0.5))
    assert fa_hmc.rates.SHARED not in few.violated and fa_hmc.rates.SHARED in many.violated
    level = by_hand(strong_convexity=2.0, smoothness=2.0)
    assert fa_hmc.lower_rate(level, fahmc(), eps=0.1).violated == (fa_hmc.rates.APART,)
    far = by_hand(initial_w2=1e3, initial_distance=1e3)
    assert fa_hmc.rounds_rate(far, fahmc(), eps=0.1).violated == (fa_hmc.rates.ORDERS[0],)


def test_rates_from_a_start_that_is_near_enough():
    for start in (0.0, 1e-3):
        facts = by_hand(initial_w2=start)
        assert fa_hmc.rounds_rate(facts, fahmc(), eps=0.1).value[0] == 0.0
        assert fa_hmc.dynamic_rate(facts, fahmc(), eps=0.1).terms["smoothness"][0] == 0.0


# --- a start that is the target

def test_a_bound_that_starts_at_the_target_starts_at_zero():
    """E_0 = 0: no ratio of one rounding to another."""
    rng = np.random.default_rng([SEED, 2])
    for _ in range(100):
        problem, algorithm, _, rounds = draw_case(rng, "reach")
        start = problem.target()
        law = fa_hmc.coupling_law(problem, algorithm, rounds * algorithm.local_steps, start=start)
        facts = theory.constants(problem, algorithm, start)
        bound = fa_hmc.coupling_bound(facts, algorithm, n_rounds=rounds,
                                      gradient_moments=law.gradient_moments.max(axis=0))
        verdict = theory.check(bound, law)
        assert bound.value[0] == 0.0 and verdict.holds and verdict.tightness <= 1.0, verdict
    near = theory.constants(problem, algorithm, fs.Gaussian(start.mean, 1.001 * start.cov))
    assert fa_hmc.coupling_bound(near, algorithm, n_rounds=0).value[0] > 0.0


def test_sizes_that_roundings_are_measured_by():
    """A client at the minimizer, far from the origin: its moments are differences of large numbers."""
    problem, algorithm = fs.Quadratic([3.0, 3.0], np.full((2, 1), 1e6)), fs.FAHMC(1e-3, 2)
    for name, size in (("moment", 1e12), ("gradient", 9e12)):
        bound = getattr(fa_hmc, f"client_{name}_bound")(
            theory.constants(problem, algorithm, [1e6]), algorithm, n_rounds=1)
        law = theory.exact.joint_law(problem, algorithm, 1, start=[1e6])
        measured = QUANTITIES[bound.quantity].measure(bound, law, 0.999)
        assert size <= measured.scale <= 4 * size and measured.value.max() < 1.0
        assert theory.check(bound, law).holds
