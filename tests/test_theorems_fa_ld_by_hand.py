"""FA-LD's theorems and lemmas by hand at a point, their hypotheses and refusals."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from examples_of.fa_ld import ETA, KAPPA, MEAN_TEMPERATURE, RHO2, TAU, WEIGHTS, D, H, K, L, M, by_hand, fald

import fedsim as fs
import theory
from fedsim.settings.schedules import Harmonic
from theory.fa_ld.notation import LIMITS


def test_setting_by_hand():
    s = theory.fa_ld.setting(by_hand(), fald())
    assert (s.m, s.L, s.kappa, s.d, s.N, s.K, s.tau, s.eta) == (M, L, KAPPA, D, 3, K, TAU, ETA)
    assert s.D**2 == pytest.approx(1.92) and s.sigma**2 == pytest.approx(0.4)
    assert s.client_temperature == pytest.approx(12.0)
    assert s.mean_temperature == pytest.approx(MEAN_TEMPERATURE)
    assert s.mean_temperature == pytest.approx(WEIGHTS @ (TAU * (RHO2 + (1 - RHO2) / WEIGHTS)))
    assert s.H == pytest.approx(H, rel=1e-14)


@pytest.mark.parametrize("changes", [
    {"initial_distance": 1e200}, {"heterogeneity": 1e200}, {"strong_convexity": 1e-200},
    {"gradient_noise_traces": 1e300, "smoothness": 1e-9, "strong_convexity": 1e-9}])
def test_constants_beyond_float64_are_refused(changes):
    with pytest.raises(ValueError, match="make H_rho too large for a float64"):
        theory.fa_ld.w2_bound(by_hand(**changes), fald(), n_rounds=1)


def test_w2_bound_by_hand():
    bound = theory.fa_ld.w2_bound(by_hand(), fald(), n_rounds=7, variant="proof")
    start = np.sqrt(6.0) * (np.sqrt(1.92) + np.sqrt(6.0))
    floor = np.sqrt(800) * 4 * np.sqrt(0.1 * 0.5 * 3) * np.sqrt((9 + 4) * H)
    wanted = [(1 - 0.0125) ** (4 * n) * start + floor for n in range(8)]
    np.testing.assert_allclose(bound.value, wanted, rtol=1e-13)
    np.testing.assert_allclose(bound.terms["initialization"][0], start, rtol=1e-14)
    assert bound.floor == pytest.approx(floor, rel=1e-14) and bound.quantity == "w2"
    printed = theory.fa_ld.w2_bound(by_hand(), fald(), n_rounds=7, variant="printed")
    assert printed.floor == pytest.approx(floor * 30 / np.sqrt(800), rel=1e-14)
    default = theory.fa_ld.w2_bound(by_hand(), fald(), n_rounds=7)
    squared = [start**2 / 2]
    for _ in range(28):
        squared.append(0.975 * squared[-1] + 400 * 0.01 * 3 * 4 * H * (9 + 4))
    np.testing.assert_allclose(default.value**2, squared[::4], rtol=1e-13)
    assert default.variant == "recursion" and default.floor == pytest.approx(floor, rel=1e-14)
    # independent noise: T = 3/.2 = 15 replaces 12 in H
    own = theory.fa_ld.w2_bound(by_hand(), fald(shared_noise=0.0), n_rounds=0)
    assert own.floor == pytest.approx(floor * np.sqrt((H + 6.0) / H), rel=1e-13)


def test_w2_bound_decreasing_by_hand():
    schedule = Harmonic.from_theorem(strong_convexity=M, smoothness=L)
    bound = theory.fa_ld.w2_bound_decreasing(by_hand(), fald(step_size=schedule), n_rounds=5)
    wanted = [45 * 4 * np.sqrt((9 + 4) * H) * np.sqrt(0.5 * 3 / (4.0 + 0.5 * 4 * n / 12)) for n in range(6)]
    np.testing.assert_allclose(bound.value, wanted, rtol=1e-13)
    assert bound.hypotheses_hold and bound.floor == 0.0


@pytest.mark.parametrize("replace", [True, False])
def test_w2_bound_partial_by_hand(replace):
    even = by_hand(weights=[1 / 3] * 3)
    hand_h = H - 24.0 + 3.0 * (0.25 + 0.75 * 3) / 0.5
    algorithm = fald(participation=fs.Participation(2, replace))
    start = np.sqrt(6.0) * (np.sqrt(1.92) + np.sqrt(6.0))
    c_s = 1.0 if replace else 0.5
    c_k = 0.2 / (1 - np.exp(-0.1))
    spread = 0.25 + 3 * 0.75
    drawn = 2 * np.sqrt(c_k * 3 * 3.0 * spread * c_s / (2 * 0.5))
    for variant, q in (("informal", 16), ("printed", 9)):
        bound = theory.fa_ld.w2_bound_partial(even, algorithm, n_rounds=3, variant=variant)
        local = 120 * np.sqrt(0.15) * np.sqrt(hand_h * (q + 4))
        np.testing.assert_allclose(
            bound.value, [0.9875 ** (4 * n) * start + local + drawn for n in range(4)], rtol=1e-12)
        assert bound.terms["participation"][0] == pytest.approx(drawn, rel=1e-12)
    default = theory.fa_ld.w2_bound_partial(even, algorithm, n_rounds=3)
    squared, local, gap = start**2 / 2, 400 * 0.12 * hand_h * 13, 28 * 16 * 0.12 * hand_h + 16 * 0.9 * spread
    for n in range(4):
        assert default.value[n] ** 2 == pytest.approx(squared, rel=1e-13)
        for _ in range(4):
            squared = 0.975 * squared + local
        squared += c_s / 2 * gap
    assert default.variant == "recursion" and default.floor**2 == pytest.approx(
        40 * local + c_s / 2 * gap / (1 - 0.975**4), rel=1e-13)


@pytest.mark.parametrize("replace", [None, True, False])
def test_the_default_is_what_its_lemmas_give(replace):
    """Lemmas F.1, B.5 and C.2 step by step, on random constants; no other form is smaller."""
    rng = np.random.default_rng([2, 7, 43])
    drawn = None if replace is None else fs.Participation(2, replace)
    name = "w2_bound" if replace is None else "w2_bound_partial"
    forms = next(entry.variants for entry in theory.theorems() if entry.id == f"fa_ld.{name}")
    for _ in range(10):
        m, kappa, K = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(0, 2), int(rng.integers(1, 9))
        facts = by_hand(weights=[1 / 3] * 3, strong_convexity=m, smoothness=kappa * m,
                        initial_distance=10.0 ** rng.uniform(-1, 3), heterogeneity=10.0 ** rng.uniform(-2, 2))
        full = fs.FALD(0.5 * 10.0 ** -rng.uniform(0, 4) / (kappa * m), K, TAU, RHO2)
        one = dataclasses.replace(full, participation=drawn)
        w2 = [theory.fa_ld.initial_bound(facts, one).value[0]]
        gap = 0.0 if drawn is None else theory.fa_ld.participation_gap_bound(facts, one, n_rounds=1).value[0]
        for _ in range(20):
            value = w2[-1]
            for _ in range(K):
                value = np.sqrt(theory.fa_ld.one_step_bound(facts, full, w2=[value]).value[0])
            w2.append(np.hypot(value, np.sqrt(gap)))
        values = {form: getattr(theory.fa_ld, name)(facts, one, n_rounds=20, variant=form) for form in forms}
        np.testing.assert_allclose(values[forms[0]].value, w2, rtol=1e-11)
        assert all((values[forms[0]].value <= bound.value).all() for bound in values.values())
        assert all(values[forms[0]].floor <= bound.floor * (1 + 1e-15) for bound in values.values())
        assert values[forms[0]].value[0] == values[forms[0]].start_distance  # to the bit: it is vacuous there


def test_lemmas_by_hand():
    lemma = theory.fa_ld
    drift, noise = 9 * 0.01 * 3 * 4 * H, 3 * 0.1 * 3 * MEAN_TEMPERATURE
    for variant, (a, b) in {"corrected": (28, 4), "printed": (112, 8)}.items():
        found = lemma.divergence_bound(by_hand(), fald(), n_rounds=2, variant=variant)
        np.testing.assert_allclose(found.value, a * drift + b * noise, rtol=1e-13)
        assert found.rounds.tolist() == list(range(9)) and found.index == "local_step"
        drawn = fald(participation=fs.Participation(2, True))
        gap = lemma.participation_gap_bound(by_hand(), drawn, n_rounds=3, variant=variant)
        np.testing.assert_allclose(
            gap.value, 0.5 * (a * 16 * 0.01 * 3 * 4 * H + b * 4 * 0.1 * 3 * MEAN_TEMPERATURE), rtol=1e-13)
        assert gap.rounds.tolist() == [1, 2, 3]
    moment = lemma.second_moment_bound(by_hand(), fald(), n_rounds=1)
    np.testing.assert_allclose(moment.value, 5.76 + 36.0 * (12 + 0.8 + 2.89 / 1.5), rtol=1e-13)
    slope = lemma.gradient_moment_bound(by_hand(), fald(), n_rounds=1)
    np.testing.assert_allclose(slope.value, 14 * 3 * 4 * H, rtol=1e-13)
    assert lemma.discretization_bound(by_hand(), fald()).value[0] == pytest.approx(
        2 * 0.01 * 3 * 4 * 2 * 3 + 16 * 0.1 * 9)
    assert lemma.gradient_noise_bound(by_hand(), fald()).value[0] == pytest.approx(1.2 * 0.38)
    assert lemma.gradient_noise_bound(by_hand(), fald(), variant="printed").value[0] == pytest.approx(1.2)
    step = lemma.one_step_bound(by_hand(), fald(), w2=[2.0, 1.0])
    error = 400 * 0.01 * 3 * 4 * H * 13
    np.testing.assert_allclose(step.value, [0.975 * 4.0 + error, 0.975 + error], rtol=1e-13)
    assert step.rounds.tolist() == [1, 2]
    first = lemma.initial_bound(by_hand(), fald())
    assert first.value[0] == pytest.approx(2.4 + np.sqrt(18.0))
    printed = lemma.initial_bound(by_hand(), fald(), variant="printed")
    assert printed.value[0] == pytest.approx(np.sqrt(2) * (2.4 + np.sqrt(18.0)))
    points, others = np.eye(3), np.zeros((3, 3))
    one = lemma.contraction_bound(by_hand(), fald(), points=points, others=others)
    spread = sum(p * ((e - WEIGHTS) ** 2).sum() for p, e in zip(WEIGHTS, points, strict=True))
    assert one.value[0] == pytest.approx(0.95 * 0.38 + 4 * 0.1 * 2 * spread)


def test_a_schedule_takes_the_largest_step_of_the_round():
    steps = [0.1, 0.05, 0.2, 0.02, 0.01, 0.03]
    bound = theory.fa_ld.divergence_bound(by_hand(), fald(step_size=steps, local_steps=3), n_rounds=2)
    # nothing has been done at a synchronization; the first step of a round decides until a larger one
    largest = np.array([0.1, 0.1, 0.1, 0.02, 0.02, 0.02, 0.03])
    np.testing.assert_allclose(bound.terms["noise"], 4 * 2 * largest * 3 * MEAN_TEMPERATURE, rtol=1e-13)
    drawn = fald(step_size=steps, local_steps=3, participation=fs.Participation(1, True))
    gap = theory.fa_ld.participation_gap_bound(by_hand(), drawn, n_rounds=2)
    np.testing.assert_allclose(gap.terms["noise"], 4 * 3 * np.array([0.2, 0.03]) * 3 * MEAN_TEMPERATURE)


# --- hypotheses, vacuity, refusals

def test_the_largest_step_sizes_by_hand():
    known = SimpleNamespace(L=5.0, m=2.0)
    assert {name: round(largest(known), 12) for name, (_, largest) in LIMITS.items()} == {
        "1/(2L)": 0.1, "1/(L+m)": 0.142857142857, "2/(L+m)": 0.285714285714, "2/m": 1.0}


@pytest.mark.parametrize("step, holds", [(0.25, True), (0.25 * (1 + 1e-9), False), (0.1, True)])
def test_step_size_margin(step, holds):
    bound = theory.fa_ld.w2_bound(by_hand(), fald(step_size=step), n_rounds=3)
    only, = bound.assumptions
    assert bound.hypotheses_hold is holds and only.holds is holds
    assert only.margin == pytest.approx(1 - step / 0.25, abs=1e-12)


def test_bounds_are_finite_far_outside_their_hypotheses():
    for step in (0.26, 3.0, 1e6):
        bound = theory.fa_ld.w2_bound(by_hand(), fald(step_size=step), n_rounds=50)
        assert not bound.hypotheses_hold and np.isfinite(bound.value).all() and (bound.value > 0).all()


def test_theorem_4_8_asks_for_nothing_but_its_schedule():
    schedule = Harmonic.from_theorem(strong_convexity=M, smoothness=L)
    for steps in (97, 98, 10_000):  # 24 kappa = 96
        for shared in (0.0, RHO2, 1.0):
            algorithm = fald(step_size=schedule, local_steps=steps, shared_noise=shared)
            assert theory.fa_ld.w2_bound_decreasing(by_hand(), algorithm, n_rounds=1).hypotheses_hold
    other = Harmonic(offset=4.0, slope=0.05)
    assert not theory.fa_ld.w2_bound_decreasing(by_hand(), fald(step_size=other), n_rounds=1).hypotheses_hold


def test_scheme_two_needs_equal_weights():
    algorithm = fald(participation=fs.Participation(2, False))
    assert not theory.fa_ld.w2_bound_partial(by_hand(), algorithm, n_rounds=1).hypotheses_hold
    assert theory.fa_ld.w2_bound_partial(by_hand(weights=[1 / 3] * 3), algorithm, n_rounds=1).hypotheses_hold


def test_all_clients_drawn_leaves_no_participation_term():
    drawn = fald(participation=fs.Participation(3, False))
    even = by_hand(weights=[1 / 3] * 3)
    for variant in ("recursion", "printed"):
        bound = theory.fa_ld.w2_bound_partial(even, drawn, n_rounds=2, variant=variant)
        full = theory.fa_ld.w2_bound(even, fald(), n_rounds=2, variant=variant)
        np.testing.assert_allclose(bound.value, full.value, rtol=1e-14)


@pytest.mark.parametrize("name, algorithm, words", [
    ("w2_bound", fald(participation=fs.Participation(2, True)), "w2_bound_partial"),
    ("w2_bound", fald(step_size=Harmonic(4.0, 0.1)), "w2_bound_decreasing"),
    ("w2_bound_decreasing", fald(), "theory.fa_ld.w2_bound "),
    ("w2_bound_decreasing", fald(step_size=Harmonic(4.0, 0.1), participation=fs.Participation(2, True)),
     "w2_bound_partial"),
    ("w2_bound_partial", fald(), "theory.fa_ld.w2_bound "),
    ("w2_bound_partial", fald(step_size=Harmonic(4.0, 0.1), participation=fs.Participation(2, True)),
     "must be constant"),
    ("w2_bound_partial", fald(participation=fs.Participation(4, False)),
     "n_active=4 must be at most n_clients=3"),
    ("participation_gap_bound", fald(), "participation=None"),
])
def test_the_wrong_theorem_points_at_the_right_one(name, algorithm, words):
    with pytest.raises(ValueError, match=words):
        getattr(theory.fa_ld, name)(by_hand(), algorithm, n_rounds=1)


@pytest.mark.parametrize("n_rounds", [-1, 1.5, None])
def test_bad_rounds(n_rounds):
    for name in ("w2_bound", "divergence_bound"):
        with pytest.raises(ValueError, match=f"n_rounds={n_rounds}"):
            getattr(theory.fa_ld, name)(by_hand(), fald(), n_rounds=n_rounds)


def test_a_schedule_that_ends_too_early():
    short = fald(step_size=[0.1] * 7, participation=fs.Participation(1, True))
    for name in ("divergence_bound", "participation_gap_bound"):
        assert getattr(theory.fa_ld, name)(by_hand(), short, n_rounds=1).hypotheses_hold
        with pytest.raises(ValueError, match="step_size has 7 entries"):
            getattr(theory.fa_ld, name)(by_hand(), short, n_rounds=2)


def test_the_papers_own_problem_is_vacuous():
    """Section 6: kappa = 34, floor above 1e2, true bias about 1.4e-5."""
    problem, algorithm = fs.papers.fa_ld_simulation(0.0, 0), fs.FALD(1e-7, local_steps=10)
    facts = theory.constants(problem, algorithm)
    bound = theory.fa_ld.w2_bound(facts, algorithm, n_rounds=10_000)
    assert facts.condition_number == pytest.approx(33.97, abs=0.01)
    bias = theory.stationary_law(problem, algorithm).w2(algorithm.target(problem))
    assert bias == pytest.approx(1.38e-5, rel=0.01) and bound.floor > 1e2
    assert bound.hypotheses_hold and bound.is_vacuous and bound.always_vacuous
    assert "bound vacuous: floor" in bound.remark
    partial = fs.FALD(1e-7, local_steps=10, participation=fs.Participation(10, False))
    assert theory.fa_ld.w2_bound_partial(facts, partial, n_rounds=100).is_vacuous


def test_a_bound_that_says_something():
    """A step size small enough, followed for long enough, from far away."""
    problem = fs.Quadratic(np.ones(1), np.zeros((1, 1)))
    algorithm = fs.FALD(1e-7)
    facts = theory.constants(problem, algorithm, start=[5.0])
    bound = theory.fa_ld.w2_bound(facts, algorithm, n_rounds=10**9)
    assert bound.hypotheses_hold and not bound.is_vacuous and bound.value[-1] < 0.1 < bound.start_distance
    assert theory.check(bound, theory.exact_law(problem, algorithm, 10**9, start=[5.0])).holds
