"""FA-LD's privacy theorem against hand computation, a naive second writing, and exact privacy losses."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedsim as fs
import theory
from fedsim.algorithms.fa_ld import FALD
from fedsim.participation import Participation
from fedsim.schedules import Harmonic
from theory import privacy
from theory.privacy import PrivacySetting, guarantee_at
from theory.privacy.bounds import standard_numbers
from theory.privacy.profiles import batches_delta, drawn_client_delta, mixture_delta, record_shift

PLAIN = {"sensitivity": 1.0, "batch_fraction": 0.1, "delta0": 1e-6, "delta1": 1e-6, "delta2": 1e-6,
         "local_steps": 10, "n_rounds": 100, "n_clients": 50}
SCHEME_I, SCHEME_II = Participation(10, True), Participation(10, False)


def plain(**changes):
    return PrivacySetting(**{**PLAIN, **changes})


def naive(s, eta, variant):
    """Equations (54) to (65) for numbers that do not overflow, with G.3's end of the root."""
    n, k, e, g = s.n_clients, s.local_steps, s.n_rounds, s.batch_fraction
    c0, p = math.sqrt(2 * math.log(1.25 / s.delta0)), min(s.weights)
    private = s.temperature * (1 - s.shared_noise)
    eps1 = c0 * s.sensitivity * math.sqrt(2 * eta / (private * p))

    def both(eps, times, delta):
        rule = math.inf
        if delta > 0:
            rule = math.sqrt(2 * times * math.log(1 / delta)) * eps + times * eps * (math.exp(eps) - 1)
        return min(rule, times * eps)

    eps_k = both(eps1, k, s.delta1)
    q = 1 / n if variant == "printed" else max(s.weights)
    if s.scheme == "II":
        a, delta = s.n_active / n, s.n_active / n * (k * g * s.delta0 + s.delta1)
    else:
        a, delta = 1 - (1 - q) ** s.n_active, 0.0
        for copies in range(1, s.n_active + 1):
            part = 1.25 * k * g * (s.delta0 / 1.25) ** (1 / copies**2) + s.delta1
            part *= (math.exp(eps_k) - 1) / (math.exp(eps_k / copies) - 1)
            delta += math.comb(s.n_active, copies) * q**copies * (1 - q) ** (s.n_active - copies) * part
    if variant == "record_level":
        return both(eps_k, e, s.delta2), e * a * (k * g * s.delta0 + s.delta1) + s.delta2
    tilde = math.log(1 + a * (math.exp(eps_k) - 1))
    return both(tilde, e, s.delta2), e * delta + s.delta2


# ---- values ---------------------------------------------------------------------------------------

def test_by_hand_with_basic_composition():
    # log(1.25/delta0) = 2, so (54) = 2/0.5 sqrt(eta/(2 p)) = 1/2, (56) = 2 sqrt(2 eta/p) = 1/2, (57) = 1/16
    s = PrivacySetting(sensitivity=1.0, batch_fraction=0.5, delta0=1.25 * math.exp(-2.0), delta1=0.0,
                       delta2=0.0, local_steps=3, n_rounds=4, n_clients=2,
                       participation=Participation(1, False))
    found = guarantee_at(s, 1.0 / 64.0, variant="printed")
    assert privacy.validity_ceiling(s) == pytest.approx(1.0 / 16.0, rel=1e-14)
    assert found.terms["epsilon_batch"] == pytest.approx(0.5, rel=1e-14)
    assert found.terms["epsilon_step"] == pytest.approx(0.5, rel=1e-14)
    assert found.terms["epsilon_client"] == pytest.approx(1.5, rel=1e-14)
    assert found.terms["epsilon_round"] == pytest.approx(1.0082660974, abs=1e-10)  # log(2.7408445352)
    assert found.epsilon == pytest.approx(4.0330643897, abs=1e-10)
    assert found.delta == pytest.approx(4 * 0.5 * 3 * 0.5 * 1.25 * math.exp(-2.0), rel=1e-14)
    assert dict(found.branches) == {"local": "basic", "rounds": "basic"}
    assert found.assumptions[0].margin == pytest.approx(0.75, rel=1e-14)


def test_by_hand_with_advanced_composition():
    # as above with eta = 1/64e4: eps_1 = 0.005. sqrt(2*5000*4) = 200, sqrt(2*200*9) = 60, N = S = 2
    s = PrivacySetting(sensitivity=1.0, batch_fraction=0.5, delta0=1.25 * math.exp(-2.0),
                       delta1=math.exp(-4.0), delta2=math.exp(-9.0), local_steps=5000, n_rounds=200,
                       n_clients=2)
    found = guarantee_at(s, 1.0 / 64e4)
    local = 200 * 0.005 + 25 * (math.exp(0.005) - 1)
    assert found.terms["epsilon_client"] == pytest.approx(local, rel=1e-13)
    assert local == pytest.approx(1.1253130215, abs=1e-10)
    # 60 + 200 (e^1.1253 - 1) is above 200: basic composition of the rounds
    assert dict(found.branches) == {"local": "advanced", "rounds": "basic"}
    assert found.epsilon == pytest.approx(200 * local, rel=1e-13)
    smaller = guarantee_at(replace(s, local_steps=1), 1.0 / 64e4)
    assert dict(smaller.branches) == {"local": "basic", "rounds": "advanced"}
    assert smaller.epsilon == pytest.approx(0.3 + 1.0 * (math.exp(0.005) - 1), rel=1e-13)


def test_scheme_i_against_scheme_ii():
    one = guarantee_at(plain(participation=SCHEME_I, delta2=0.0), 1e-8, variant="printed")
    two = guarantee_at(plain(participation=SCHEME_II, delta2=0.0), 1e-8, variant="printed")
    assert one.delta == pytest.approx(0.19, abs=0.005)
    assert two.delta == pytest.approx(4e-5, rel=1e-12)
    assert one.is_vacuous and "1/records" in one.why_vacuous[0]
    assert not two.is_vacuous
    record = guarantee_at(plain(participation=SCHEME_I, delta2=0.0), 1e-8)
    assert record.delta == pytest.approx(100 * (1 - 0.98**10) * 2e-6, rel=1e-12) and not record.is_vacuous


def test_the_root_covers_its_first_term_only():
    s = plain(participation=SCHEME_II)
    printed, proved = (guarantee_at(s, 1e-8, variant=name) for name in ("printed", "record_level"))
    # eps_1 = 2 sqrt(50e-8 log(1.25e6)), eps_K = 10 eps_1, eps~ = log(1 + 0.2 (e^eps_K - 1)) = 0.0108245
    tilde = math.log(1 + 0.2 * (math.exp(20 * math.sqrt(50e-8 * math.log(1.25e6))) - 1))
    first, second = 200 * math.log(1e6), 100 * math.expm1(tilde)
    assert printed.epsilon == pytest.approx(tilde * (math.sqrt(first) + second), rel=1e-12)
    assert printed.epsilon == pytest.approx(0.58078, abs=5e-6)
    inner = 20 * math.sqrt(50e-8 * math.log(1.25e6))
    assert proved.epsilon == pytest.approx(inner * (math.sqrt(first) + 100 * math.expm1(inner)), rel=1e-12)
    assert proved.delta == printed.delta


def test_the_default_is_proved_for_records():
    """Under participation the default does not use the amplification, and its hypotheses hold."""
    s = plain(participation=SCHEME_II)
    default, proved = guarantee_at(s, 1e-8), guarantee_at(s, 1e-8, variant="record_level")
    assert (default.epsilon, default.delta, default.variant) == (proved.epsilon, proved.delta, "record_level")
    assert default.hypotheses_hold
    step = privacy.largest_step_size(s, 1.0)
    assert step.guarantee.hypotheses_hold
    assert guarantee_at(s, step.step_size, variant="record_level").epsilon == pytest.approx(1.0, rel=1e-12)
    most = privacy.largest_shared_noise(s, 0.5 * step.step_size, 1.0)
    shared = replace(s, shared_noise=most)
    assert guarantee_at(shared, 0.5 * step.step_size, variant="record_level").epsilon <= 1.0 + 1e-9


def test_corrected_is_a_deprecated_name_of_the_default():
    s = plain(participation=SCHEME_II)
    calls = [lambda **more: guarantee_at(s, 1e-10, **more).epsilon,
             lambda **more: privacy.round_ceiling(s, **more),
             lambda **more: privacy.simplified_epsilon(s, 1e-10, **more),
             lambda **more: privacy.epsilon_rate(s, 1e-10, **more).value,
             lambda **more: privacy.step_size_rate(s, **more).value,
             lambda **more: privacy.largest_step_size(s, 1.0, **more).step_size,
             lambda **more: privacy.largest_shared_noise(s, 1e-10, 1.0, **more),
             lambda **more: privacy.largest_active_clients(s, 1e-10, 10.0, **more)]
    for call in calls:
        with pytest.warns(DeprecationWarning, match="corrected"):
            old = call(variant="corrected")
        assert old == call()


reasonable = st.fixed_dictionaries({
    "sensitivity": st.floats(0.01, 10), "batch_fraction": st.floats(0.01, 1), "delta0": st.floats(1e-9, 0.9),
    "delta1": st.sampled_from([0.0, 1e-9, 1e-4, 0.3]), "delta2": st.sampled_from([0.0, 1e-9, 1e-4, 0.3]),
    "local_steps": st.integers(1, 200), "n_rounds": st.integers(1, 5000), "temperature": st.floats(0.1, 5),
    "shared_noise": st.floats(0, 0.99)})


@st.composite
def valid(draw, *, schemes=("all", "I", "II"), most=12):
    n = draw(st.integers(1, most))
    raw = np.array(draw(st.lists(st.floats(0.1, 1.0), min_size=n, max_size=n)))
    scheme = draw(st.sampled_from(schemes))
    chosen = None if scheme == "all" else Participation(draw(st.integers(1, n)), scheme == "I")
    s = PrivacySetting(**draw(reasonable), n_clients=n, weights=None if scheme == "II" else raw / raw.sum(),
                       participation=chosen)
    return s, draw(st.floats(1e-6, 1.0)) * privacy.validity_ceiling(s)


@settings(max_examples=300)
@given(valid(), st.sampled_from(privacy.VARIANTS))
def test_against_the_naive_writing(case, variant):
    s, eta = case
    s = replace(s, local_steps=min(s.local_steps, 30))
    found = guarantee_at(s, eta, variant=variant)
    epsilon, delta = naive(s, eta, variant)
    assert found.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert found.delta == pytest.approx(delta, rel=1e-9)


@given(valid(schemes=("II",)))
def test_scheme_ii_factored_is_unfactored(case):
    s, eta = case
    found = guarantee_at(s, eta, variant="printed")
    share = s.n_active / s.n_clients
    inner, tilde = found.terms["epsilon_client"], found.terms["epsilon_round"]
    if inner < 600.0:
        assert math.expm1(tilde) == pytest.approx(share * math.expm1(inner), rel=1e-12 * max(inner, 1.0))
        advanced = math.inf if s.delta2 == 0 else (
            math.sqrt(2 * s.n_rounds * math.log(1 / s.delta2)) + s.n_rounds * share * math.expm1(inner))
        assert found.epsilon == pytest.approx(tilde * min(advanced, s.n_rounds), rel=1e-11)
    total_steps = s.n_rounds * s.local_steps
    assert found.delta == pytest.approx(share * s.batch_fraction * total_steps * s.delta0
                                        + s.n_rounds * share * s.delta1 + s.delta2, rel=1e-12)


def test_full_participation_is_scheme_ii_with_everyone():
    everyone = guarantee_at(plain(participation=Participation(50, False)), 1e-8)
    full = guarantee_at(plain(), 1e-8)
    for variant in privacy.VARIANTS:
        again = guarantee_at(plain(), 1e-8, variant=variant)
        assert (again.epsilon, again.delta) == (full.epsilon, full.delta)
    assert (everyone.epsilon, everyone.delta) == (full.epsilon, full.delta)
    assert full.hypotheses_hold and everyone.hypotheses_hold


# ---- monotonicity -----------------------------------------------------------------------------------

@given(valid(), st.sampled_from(privacy.VARIANTS), st.floats(1.0, 3.0))
def test_monotone(case, variant, factor):
    s, eta = case
    here = guarantee_at(s, eta, variant=variant)
    slack = 1.0 - 1e-12
    changes = [replace(s, shared_noise=1.0 - (1.0 - s.shared_noise) / factor),
               replace(s, temperature=s.temperature / factor), replace(s, sensitivity=s.sensitivity * factor),
               replace(s, n_rounds=math.ceil(s.n_rounds * factor)),
               replace(s, local_steps=math.ceil(s.local_steps * factor))]
    if s.participation is not None and s.n_active < s.n_clients:
        changes.append(replace(s, participation=replace(s.participation, n_active=s.n_active + 1)))
    for other in changes:
        there = guarantee_at(other, eta, variant=variant)
        assert there.epsilon >= here.epsilon * slack and there.delta >= here.delta * slack
    faster = guarantee_at(s, eta * factor, variant=variant)
    assert faster.epsilon >= here.epsilon * slack and faster.delta >= here.delta * slack
    assert guarantee_at(s, eta * 4.0, variant=variant).epsilon > here.epsilon


# ---- ceilings and what they imply -------------------------------------------------------------------

def exchangeable(s, variant):
    """The setting, changed where needed so that the variant's hypotheses hold."""
    if variant == "record_level" or s.everyone_is_drawn:
        return s
    draws = s.participation
    return replace(s, client_sizes=1, weights=None,
                   participation=replace(draws, n_active=1) if draws.replace else draws)


@settings(max_examples=300)
@given(valid(), st.sampled_from(privacy.VARIANTS), st.floats(1e-8, 1.0))
def test_ceilings_imply_their_conclusions(case, variant, part):
    s = replace(case[0], delta1=case[0].delta1 or 1e-7, delta2=case[0].delta2 or 1e-5)
    s = exchangeable(s, variant)
    up = 1.0 + 1e-10
    edge = guarantee_at(s, privacy.validity_ceiling(s))
    assert edge.terms["epsilon_batch"] == pytest.approx(1.0, rel=1e-12)
    local, total = privacy.local_ceiling(s), privacy.round_ceiling(s, variant=variant)
    assert 0.0 < total <= local <= privacy.validity_ceiling(s)
    first, second = math.log(1 / s.delta1), math.log(1 / s.delta2)
    at = guarantee_at(s, part * local, variant=variant).terms  # (61)
    assert at["epsilon_client"] <= 2 * math.sqrt(2 * s.local_steps * first) * at["epsilon_step"] * up
    found = guarantee_at(s, part * total, variant=variant)
    assert found.hypotheses_hold
    at = found.terms
    limit = privacy.round_epsilon_ceiling(s)
    share = 1.0 if variant == "record_level" else at["drawn"]
    assert math.expm1(at["epsilon_client"]) * share <= math.expm1(limit) * up  # (71)
    assert at["epsilon_round"] <= limit * up  # (66), (72)
    twice = 2 * math.sqrt(2 * s.n_rounds * second)
    assert found.epsilon <= twice * at["epsilon_round"] * up  # (67)
    simple = privacy.simplified_epsilon(s, part * total, variant=variant)
    assert found.epsilon <= simple * up  # (73)
    by_hand = 4 * math.sqrt(2 * math.log(1.25 / s.delta0)) * s.sensitivity * math.sqrt(
        part * total * s.local_steps * first / (s.temperature * (1 - s.shared_noise) * min(s.weights)))
    assert simple == pytest.approx(twice * math.log1p(share * math.expm1(by_hand)), rel=1e-9)


def test_the_simplified_bound_stops_at_its_validity():
    """Beyond (57) it would be false: one minibatch step of one client, exact delta 50 times the claimed."""
    s = PrivacySetting(sensitivity=1e-3, batch_fraction=1e-4, delta0=1e-6, delta1=1e-6, delta2=1e-6,
                       local_steps=1, n_rounds=1, n_clients=1)
    eta = 2500.0 * privacy.validity_ceiling(s)
    twice = 2.0 * math.sqrt(2.0 * math.log(1e6))  # (73) by hand: twice squared times (56), for K = T = 1
    claimed = twice**2 * 2.0 * s.sensitivity * math.sqrt(eta * math.log(1.25e6))
    exact = batches_delta(claimed, record_shift(s, eta, 1.0), 1, s.batch_fraction)
    assert claimed == pytest.approx(1.10524, rel=1e-5)
    assert exact > 49.0 * guarantee_at(s, eta).delta
    with pytest.raises(ValueError, match=r"step_size=.*\(57\)"):
        privacy.simplified_epsilon(s, eta)
    for ceiling in (privacy.local_ceiling(s), privacy.round_ceiling(s)):
        assert ceiling == privacy.validity_ceiling(s)
    rate = privacy.epsilon_rate(s, eta)
    assert not rate.hypotheses_hold and "(57)" in next(one for one in rate.assumptions if not one.holds).name
    assert privacy.epsilon_rate(s, 1e-3 * eta / 2500.0).hypotheses_hold
    assert not privacy.step_size_rate(s).hypotheses_hold
    assert privacy.step_size_rate(plain()).hypotheses_hold


def test_numbers_without_a_place_for_hypotheses_need_them():
    """What returns a bare number refuses a variant that is not proved in the setting."""
    s = plain(participation=SCHEME_II)
    calls = [lambda given: privacy.round_ceiling(given, variant="printed"),
             lambda given: privacy.simplified_epsilon(given, 1e-10, variant="printed"),
             lambda given: privacy.largest_step_size(given, 1.0, variant="printed").step_size,
             lambda given: privacy.largest_shared_noise(given, 1e-10, 1.0, variant="printed"),
             lambda given: privacy.largest_active_clients(given, 1e-10, 10.0, variant="printed")]
    for call in calls:
        with pytest.raises(ValueError, match="variant='printed' needs one record per client"):
            call(s)
        assert call(replace(s, client_sizes=1)) > 0.0
    for rate in (privacy.epsilon_rate(s, 1e-10, variant="printed"),
                 privacy.step_size_rate(s, variant="printed")):
        assert not rate.hypotheses_hold
    weights = np.full(50, 0.5 / 49)
    weights[0] = 0.5
    for participation, words in ((Participation(1, True), "equal weights"),
                                 (Participation(2, True), "equal weights|n_active=1")):
        unequal = plain(participation=participation, weights=weights, client_sizes=1)
        with pytest.raises(ValueError, match=words):
            privacy.largest_step_size(unequal, 1.0, variant="printed")
    twice = plain(participation=Participation(2, True), client_sizes=1)
    with pytest.raises(ValueError, match="n_active=1 in scheme I"):
        privacy.largest_step_size(twice, 1.0, variant="printed")


@pytest.mark.parametrize("variant, share", [("record_level", 1.0), ("printed", 0.2)])
def test_rates_are_what_the_formulas_tend_to(variant, share):
    s = plain(participation=SCHEME_II, n_rounds=10**12, local_steps=3, client_sizes=1)
    step = privacy.round_ceiling(s, variant=variant) * 1e-10
    rate = privacy.epsilon_rate(s, step, variant=variant)
    assert rate.kind == "rate" and rate.hypotheses_hold
    assert privacy.simplified_epsilon(s, step, variant=variant) / rate.value == pytest.approx(1.0, abs=1e-6)
    by_hand = 16 * share * math.sqrt(step * 3e12 * math.log(1.25e6) * math.log(1e6) ** 2 * 50)
    assert rate.value == pytest.approx(by_hand, rel=1e-12)
    ceiling = privacy.step_size_rate(s, variant=variant)
    assert ceiling.kind == "rate" and ceiling.hypotheses_hold
    # (69) approaches (74) like sqrt(K log(1/delta2) N^2 / (T S^2))
    assert privacy.round_ceiling(s, variant=variant) / ceiling.value == pytest.approx(1.0, abs=5e-5)
    assert ceiling.value == pytest.approx(1 / share**2 / 50 / (16 * 3e12 * math.log(1.25e6)), rel=1e-12)


@given(valid(), st.sampled_from(privacy.VARIANTS), st.floats(1e-6, 1e4))
def test_largest_step_size(case, variant, budget):
    s = exchangeable(case[0], variant)
    found = privacy.largest_step_size(s, budget, variant=variant)
    assert found.guarantee.epsilon <= budget
    assert found.guarantee.hypotheses_hold
    above = guarantee_at(s, found.step_size * (1 + 1e-9), variant=variant)
    if found.binding == "epsilon":
        assert above.epsilon > budget
    else:
        assert found.step_size == privacy.validity_ceiling(s) and not above.assumptions[0].holds
    eta = 0.3 * privacy.largest_step_size(replace(s, shared_noise=0.0), budget, variant=variant).step_size
    most = privacy.largest_shared_noise(s, eta, budget, variant=variant)
    assert most == pytest.approx(0.7, abs=1e-9)
    assert guarantee_at(replace(s, shared_noise=most), eta, variant=variant).epsilon <= budget * (1 + 1e-9)


@settings(max_examples=200)
@given(valid(schemes=("all", "I", "II")), st.sampled_from(privacy.VARIANTS), st.floats(0.0, 1.0),
       st.floats(0.0, 1.0))
def test_largest_active_clients_is_the_brute_force(case, variant, tight, strict):
    s, eta = replace(case[0], weights=None), case[1]
    if variant == "printed":  # scheme I is proved for one draw only
        s = replace(s, client_sizes=1, participation=None)
    scheme = s.scheme == "I"
    each = [guarantee_at(replace(s, participation=Participation(n, scheme)), eta, variant=variant)
            for n in range(1, s.n_clients + 1)]
    budget = (1 - tight) * 0.999 * each[0].epsilon + tight * 1.001 * each[-1].epsilon
    delta = (1 - strict) * 0.999 * each[0].delta + strict * 1.001 * each[-1].delta
    fit = [n for n, one in enumerate(each, 1) if one.epsilon <= budget and one.delta <= delta]
    if not fit:
        with pytest.raises(ValueError, match=r"epsilon=.* must be at least"):
            privacy.largest_active_clients(s, eta, budget, delta=delta, variant=variant)
    else:
        assert privacy.largest_active_clients(s, eta, budget, delta=delta, variant=variant) == fit[-1]
        alone = max(n for n, one in enumerate(each, 1) if one.epsilon <= budget)
        assert privacy.largest_active_clients(s, eta, budget, variant=variant) == alone


def test_largest_active_clients_by_hand():
    s = plain(delta0=1e-9, delta1=0.0, delta2=1e-8, client_sizes=1)
    # each round spends S/50 (10 * 0.1 * 1e-9); 100 rounds and delta2 make 2e-9 S + 1e-8
    assert privacy.largest_active_clients(s, 1e-9, 5.0, delta=5.1e-8) == 20
    # printed: log(1 + S/50 (e^eps_K - 1)) (sqrt(200 log 1e8) + 2 S (e^eps_K - 1)) for eps_K = 10 eps_1
    grown = math.expm1(20 * math.sqrt(50e-9 * math.log(1.25e9)))
    by_hand = [math.log1p(n / 50 * grown) * (math.sqrt(200 * math.log(1e8)) + 2 * n * grown)
               for n in range(1, 51)]
    for budget in (0.1, 0.5, 0.9):
        best = privacy.largest_active_clients(s, 1e-9, budget, variant="printed")
        assert best == sum(value <= budget for value in by_hand)
    with pytest.raises(ValueError, match="epsilon=1e-06 and delta=None must be at least"):
        privacy.largest_active_clients(s, 1e-9, 1e-6)
    with pytest.raises(ValueError, match=r"step_size=.*\(57\)"):
        privacy.largest_active_clients(s, 1.0, 1.0)
    with pytest.raises(ValueError, match="weights"):
        privacy.largest_active_clients(plain(n_clients=2, weights=[0.3, 0.7]), 1e-9, 10.0)


# ---- against exact privacy losses -------------------------------------------------------------------

@given(valid(schemes=("all",)))
def test_gaussian_mechanism_holds_exactly(case):
    s, eta = case
    shift = record_shift(s, eta, s.smallest_weight)  # moves one step's mean, in standard deviations
    assert privacy.gaussian_delta(guarantee_at(s, eta).terms["epsilon_batch"], shift) <= s.delta0


@settings(max_examples=40)
@given(valid(schemes=("all",)), st.floats(0.0, 1.0))
def test_one_minibatch_step_holds_exactly(case, where):
    s, eta = case
    shift = record_shift(s, eta, s.smallest_weight)
    # without the changed record the batch holds another one, whose effect differs by at most one record
    epsilon = guarantee_at(s, eta).terms["epsilon_step"]
    exact = drawn_client_delta(epsilon, shift, s.batch_fraction, where * shift)
    assert exact <= s.batch_fraction * s.delta0 * (1 + 1e-9) + 1e-15


@settings(max_examples=200)
@given(valid(schemes=("all",)))
def test_many_full_batch_rounds_hold_exactly(case):
    s = replace(case[0], batch_fraction=1.0)
    # the guarantee covers an observer of every local step; T Gaussian steps are one with shift sqrt(T)
    found = guarantee_at(s, min(case[1], privacy.validity_ceiling(s)))
    shift = record_shift(s, found.step_size, s.smallest_weight) * math.sqrt(s.n_rounds * s.local_steps)
    assert privacy.gaussian_delta(found.epsilon, shift) <= found.delta + 1e-15


@settings(max_examples=40)
@given(valid(schemes=("I", "II")), st.floats(0.0, 1.0), st.sampled_from([1, 3, 100]))
def test_one_round_with_one_drawn_client_holds_exactly(case, where, records):
    s = replace(case[0], batch_fraction=1.0, local_steps=1, n_rounds=1, delta1=0.0, delta2=0.0, weights=None,
                participation=Participation(1, case[0].participation.replace), client_sizes=records)
    eta = min(case[1], privacy.validity_ceiling(s))
    shift = record_shift(s, eta, s.smallest_weight)
    for variant in privacy.VARIANTS:
        claim = guarantee_at(s, eta, variant=variant)
        if not claim.hypotheses_hold:  # more than one record per client, and clients left out
            assert variant == "printed" and records > 1 and s.n_clients > 1
            continue
        exact = drawn_client_delta(claim.epsilon, shift, claim.terms["drawn"], where * records * shift)
        assert exact <= claim.delta * (1 + 1e-9) + 1e-15


def test_the_exact_profiles_would_catch_a_wrong_constant():
    s = plain(batch_fraction=1.0, n_rounds=1, local_steps=1, delta0=1e-6, delta1=0.0, delta2=0.0)
    eta = 0.5 * privacy.validity_ceiling(s)
    found = guarantee_at(s, eta)
    shift = record_shift(s, eta, 1 / 50)
    assert privacy.gaussian_delta(found.terms["epsilon_batch"] / 2, shift) > s.delta0
    assert privacy.gaussian_delta(found.epsilon / 4, shift) > found.delta


def test_exact_profile_by_quadrature():
    from scipy.integrate import quad
    from scipy.stats import norm

    for epsilon, shift, drawn, gap in ((0.3, 0.8, 0.2, 5.0), (0.1, 0.5, 0.6, -1.0), (1.0, 2.0, 1.0, 0.0)):
        def excess(x, epsilon=epsilon, shift=shift, drawn=drawn, gap=gap):
            other = (1 - drawn) * norm.pdf(x, gap)
            return max(drawn * norm.pdf(x) + other
                       - math.exp(epsilon) * (drawn * norm.pdf(x, shift) + other), 0.0)
        exact = sum(quad(excess, low, low + 0.25, epsabs=1e-14)[0] for low in np.arange(-12.0, 16.0, 0.25))
        assert exact - 2e-8 <= drawn_client_delta(epsilon, shift, drawn, gap) <= exact + 1e-12


def test_batches_against_quadrature():
    """Two ways to the delta of one random minibatch, and the sum of several by its definition."""
    for epsilon, shift, fraction in ((0.1, 1.0, 0.1), (0.02, 0.3, 0.5), (1.5, 4.0, 0.2)):
        both = [(1.0 - fraction, 0.0, 1.0), (fraction, shift, 1.0)]
        exact = max(mixture_delta(epsilon, both, [(1.0, 0.0, 1.0)]),
                    mixture_delta(epsilon, [(1.0, 0.0, 1.0)], both))
        assert batches_delta(epsilon, shift, 1, fraction) == pytest.approx(exact, rel=1e-6)
    four = [(math.comb(4, j) * 0.3**j * 0.7 ** (4 - j), j * 1.2 / 2.0, 1.0) for j in range(5)]
    exact = max(mixture_delta(0.4, four, [(1.0, 0.0, 1.0)]), mixture_delta(0.4, [(1.0, 0.0, 1.0)], four))
    assert batches_delta(0.4, 1.2, 4, 0.3) == pytest.approx(exact, rel=1e-6)


# ---- the catalogue ----------------------------------------------------------------------------------

PRIVACY = [entry for entry in theory.theorems() if entry.id.startswith("privacy.")]
NUMBERS = {"sensitivity": 2.0, "batch_fraction": 1.0, "delta0": 1e-5, "delta1": 1e-6, "delta2": 1e-6,
           "client_sizes": None}


def case(n_clients=4, step_size=1e-6, **more):
    problem = fs.Quadratic(np.linspace(1.0, 2.0, n_clients), np.linspace(-1.0, 1.0, n_clients)[:, None])
    algorithm = fs.FALD(step_size, **more)
    return problem, algorithm, theory.constants(problem, algorithm)


def given_to(entry, **changes):
    numbers = {**NUMBERS, **changes}
    problem, algorithm, facts = case()
    return {name: numbers[name] for name in entry.inputs(problem, algorithm, facts, 3, None)}


def test_the_catalogue_lists_privacy():
    assert [entry.id for entry in PRIVACY] == [f"privacy.{name}_bound" for name in (
        "client", "epsilon_rate", "minibatch_step", "noisy_step", "round", "run", "simplified_client",
        "simplified_run")]
    for entry in PRIVACY:
        assert entry.function is getattr(privacy, entry.function.__name__)
        assert not entry.applies(fs.FALD(0.1, shared_noise=1.0))
        _, algorithm, facts = case(shared_noise=1.0)
        with pytest.raises(ValueError, match="shared_noise=1"):
            entry.function(facts, algorithm, n_rounds=3, **given_to(entry))


@pytest.mark.parametrize("entry", [one for one in PRIVACY if one.kind != "rate"], ids=lambda one: one.id)
def test_examine_gives_a_verdict(entry):
    for more in ({}, {"local_steps": 3}, {"participation": Participation(2, False), "local_steps": 2},
                 {"participation": Participation(3, True)}, {"step_size": fs.schedules.Harmonic(1e6, 1e5)},
                 {"shared_noise": 0.5}):
        problem, algorithm, _ = case(**more)
        for variant in entry.variants:
            verdict = theory.examine(entry, problem, algorithm, 5, variant=variant)
            assert verdict.holds and not verdict.contradicts_theorem


def test_the_bounds_are_the_guarantee():
    problem, algorithm, facts = case(participation=Participation(2, False), local_steps=3)
    for variant in privacy.VARIANTS:
        bound = privacy.run_bound(facts, algorithm, n_rounds=7, variant=variant, **NUMBERS)
        for r, delta, epsilon in zip(bound.rounds, bound.value, bound.inputs["epsilon"], strict=True):
            claim = privacy.guarantee(problem, algorithm, int(r), variant=variant, **NUMBERS)
            assert (delta, epsilon) == (pytest.approx(claim.delta, rel=1e-14), claim.epsilon)
        assert [one.name for one in bound.assumptions] == [one.name for one in claim.assumptions]
        rate = privacy.epsilon_rate_bound(facts, algorithm, n_rounds=7, variant=variant, **NUMBERS)
        s = privacy.setting_of(problem, algorithm, 7, **NUMBERS)
        assert rate.kind == "rate" and rate.value[-1] == privacy.epsilon_rate(s, 1e-6, variant=variant).value
        assert {"(57)", "(69)"} <= {one.name[-4:] for one in rate.assumptions}


def halved(bound, by):
    """The same claim with a smaller epsilon."""
    changed = {**bound.inputs, "epsilon": bound.inputs["epsilon"] / by}
    return replace(bound, inputs=changed)


def test_the_exact_side_would_catch_a_smaller_epsilon():
    problem, algorithm, facts = case(local_steps=2)
    s = privacy.setting_of(problem, algorithm, 3, **NUMBERS)
    for function, observed, names in ((privacy.noisy_step_bound, "step", 3),
                                      (privacy.client_bound, "client", 4), (privacy.run_bound, "run", 6)):
        bound = function(facts, algorithm, n_rounds=3, **dict(list(NUMBERS.items())[:names]))
        release = privacy.Release(s, algorithm.schedule, observed)
        assert release.is_exact and theory.check(bound, release).holds
        assert not theory.check(halved(bound, 8.0), release).holds


def test_the_exact_side_is_the_gaussian_where_all_is_seen():
    problem, algorithm, _ = case(local_steps=3)
    s = privacy.setting_of(problem, algorithm, 5, **NUMBERS)
    release = privacy.Release(s, algorithm.schedule)
    one = record_shift(s, 1e-6, 0.25)
    whole = privacy.gaussian_delta(0.01, one * math.sqrt(15))
    assert release.delta(0.01, 5) == pytest.approx(whole, rel=1e-12)
    for delta in (1e-9, 1e-3):
        assert release.delta(release.epsilon(delta, 5), 5) == pytest.approx(delta, rel=1e-8)
    falling = privacy.Release(s, fs.schedules.Listed([4e-6, 1e-6] + [1e-9] * 13), "client")
    assert falling.delta(0.0, 2) == pytest.approx(privacy.gaussian_delta(0.0, one * math.sqrt(5)), rel=1e-12)


@pytest.mark.parametrize("scheme", [True, False])
def test_the_exact_side_of_drawn_clients_by_enumeration(scheme):
    """Two rounds, draws seen: over both rounds' draws by hand; and the delta that one hidden draw leaves."""
    problem, algorithm, _ = case(3, participation=Participation(2, scheme))
    chance = 1 - (2 / 3) ** 2 if scheme else 2 / 3
    s = privacy.setting_of(problem, algorithm, 2, **NUMBERS)
    one = record_shift(s, 1e-6, 1 / 3)
    by_hand = (2 * chance * (1 - chance) * privacy.gaussian_delta(0.001, one)
               + chance**2 * privacy.gaussian_delta(0.001, one * math.sqrt(2)))
    assert privacy.Release(s, algorithm.schedule).delta(0.001, 2) == pytest.approx(by_hand, rel=1e-12)
    alone = privacy.Release(replace(s, client_sizes=1), algorithm.schedule)
    exact = drawn_client_delta(0.001, one, 1 / 3, one)
    other = drawn_client_delta(0.001, one, 1 / 3, 0.0)
    assert alone.delta(0.001, 2) == pytest.approx(max(exact, other), rel=1e-6, abs=1e-18)
    assert not alone.is_exact and "lower bound" in alone.note


def test_the_amplification_is_refuted_only_outside_its_hypotheses():
    problem, algorithm, facts = case(100, participation=Participation(1, False))
    numbers = {**NUMBERS, "delta1": 0.0, "delta2": 0.0}
    s = privacy.setting_of(problem, algorithm, 1, **numbers)
    algorithm = replace(algorithm, step_size=privacy.validity_ceiling(s))
    for variant, sizes, holds in (("record_level", None, True), ("printed", None, False),
                                  ("printed", 1, True)):
        bound = privacy.run_bound(facts, algorithm, n_rounds=1, variant=variant,
                                  **{**numbers, "client_sizes": sizes})
        verdict = theory.check(bound, privacy.Release(replace(s, client_sizes=sizes), algorithm.schedule))
        assert verdict.holds == holds and not verdict.contradicts_theorem
        assert verdict.hypotheses_met == holds


def test_a_release_is_needed():
    problem, algorithm, facts = case()
    bound = privacy.run_bound(facts, algorithm, n_rounds=2, **NUMBERS)
    with pytest.raises(ValueError, match=r"must be a theory\.privacy\.Release"):
        theory.check(bound, theory.exact_law(problem, algorithm, 2))
    with pytest.raises(ValueError, match="observed='all'"):
        privacy.Release(bound.inputs["setting"], algorithm.schedule, "all")


# ---- errata -----------------------------------------------------------------------------------------

def test_errata_and_remarks():
    ours = {entry.id: entry for entry in [*theory.errata("FA-LD"), *theory.remarks("FA-LD")]
            if entry.id.startswith("fa_ld.privacy")}
    assert {id.split(".")[-1]: (entry.grade, entry.consequence) for id, entry in ours.items()} == {
        "client_sampling": ("error", "conclusion"), "scheme_i_chance": ("error", "range"),
        "grouping": ("transcription", "nothing")}
    known = {entry.id for entry in theory.theorems()}
    for entry in ours.values():
        assert entry.derivation and set(entry.theorems) <= known
        assert entry.evidence().demonstrated == (entry.grade == "error"), entry.id


def test_evidence_comes_out_for_the_authors_where_they_are_right(monkeypatch):
    """The same comparison within the theorem's range: one record per client, and equal weights."""
    from theory.privacy import errata

    single, weighted = errata.one_upload, errata.one_weighted_upload
    monkeypatch.setattr(errata, "one_upload", lambda n_clients, records: single(n_clients, 1))
    monkeypatch.setattr(errata, "one_weighted_upload", lambda sizes: weighted(len(sizes) * (1,)))
    for name in ("client_sampling", "scheme_i_chance"):
        entry = next(one for one in theory.errata("FA-LD") if one.id == f"fa_ld.privacy.{name}")
        assert entry.evidence().speaks_for == "the authors"


def test_scheme_i_with_unequal_weights_by_quadrature():
    """The computed exact delta, against a plain sum over a grid of the two densities."""
    from scipy.stats import norm

    from theory.privacy.errata import one_weighted_upload, weighted_upload_delta

    s, eta = one_weighted_upload((1, *48 * (2,), 3))
    np.testing.assert_allclose(s.weights, s.client_sizes / s.client_sizes.sum())  # section 2.1
    claim = guarantee_at(s, eta, variant="printed")
    x = np.linspace(-12.0, 12.0, 2_000_001)
    half = eta / 0.01 / math.sqrt(2 * eta / 0.01)
    others = 0.96 * norm.pdf(x, 0.0, math.sqrt(0.5)) + 0.03 * norm.pdf(x, 0.0, math.sqrt(1 / 3))
    first, second = (0.01 * norm.pdf(x, sign * half) + others for sign in (-1.0, 1.0))
    exact = np.maximum(first - math.exp(claim.epsilon) * second, 0.0).sum() * (x[1] - x[0])
    assert weighted_upload_delta(s, eta, claim.epsilon) == pytest.approx(exact, rel=1e-4)
    assert exact > 100 * claim.delta


def test_the_right_chance_does_not_save_scheme_i():
    """The light client's own chance .01 in place of 1/N = .02."""
    entry = next(one for one in theory.errata("FA-LD") if one.id == "fa_ld.privacy.scheme_i_chance")
    found = entry.evidence().numbers
    assert found["unequal_delta"] == pytest.approx(2e-8)
    assert found["right_chance_delta"] == pytest.approx(1e-8)
    assert found["right_chance_epsilon"] < found["unequal_epsilon"]
    assert found["right_chance_exact"] > found["unequal_exact"] > 100 * found["unequal_delta"]


def test_few_records_a_client_are_covered_by_slack():
    entry = next(one for one in theory.errata("FA-LD") if one.id == "fa_ld.privacy.client_sampling")
    assert entry.evidence().text.endswith("the printed delta is exceeded from 4 on.")


# ---- flags ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II, Participation(1, True)])
@pytest.mark.parametrize("variant", privacy.VARIANTS)
def test_fully_shared_noise_protects_nothing(participation, variant):
    found = guarantee_at(plain(participation=participation, shared_noise=1.0), 1e-8, variant=variant)
    assert found.epsilon == math.inf and not found.protected and found.is_vacuous
    assert not math.isnan(found.delta) and not any(math.isnan(value) for value in found.terms.values())
    assert not found.hypotheses_hold and "no private noise" in repr(found)
    with pytest.raises(ValueError, match="shared_noise"):
        privacy.largest_step_size(plain(shared_noise=1.0), 1.0)


def test_hypotheses_are_reported():
    beyond = guarantee_at(plain(), 2.0 * privacy.validity_ceiling(plain()))
    assert not beyond.hypotheses_hold and beyond.assumptions[0].margin == pytest.approx(-1.0)
    assert beyond.epsilon > 0.0
    drawn = guarantee_at(plain(participation=SCHEME_II), 1e-8, variant="printed")
    assert [one.holds for one in drawn.assumptions] == [True, False]
    for records, holds in ((1, True), (2, False)):
        sized = plain(participation=SCHEME_II, client_sizes=records)
        assert guarantee_at(sized, 1e-8, variant="printed").hypotheses_hold == holds
    assert guarantee_at(plain(participation=SCHEME_II), 1e-8).hypotheses_hold
    weights = np.full(50, 0.5 / 49)
    weights[0] = 0.5
    unequal = plain(participation=SCHEME_I, weights=weights, client_sizes=1)
    found = guarantee_at(unequal, 1e-9, variant="printed")
    assert [one.holds for one in found.assumptions] == [True, True, False, False]


def test_vacuous_delta_counts_records():
    many = guarantee_at(plain(participation=SCHEME_II, client_sizes=1000), 1e-8)
    assert many.delta == pytest.approx(4.1e-5) and many.vacuous_delta == 2e-5 and many.is_vacuous
    assert not guarantee_at(plain(participation=SCHEME_II, client_sizes=100), 1e-8).is_vacuous
    assert "1 or more" in guarantee_at(plain(n_rounds=10**7), 1e-8).why_vacuous[0]


def test_convenience_takes_the_algorithm():
    rest = {key: PLAIN[key] for key in ("sensitivity", "batch_fraction", "delta0", "delta1", "delta2")}
    algorithm = FALD.from_paper(eta=1e-8, K=10, tau=0.5, rho=0.6, S=10, scheme="II")
    found = privacy.guarantee(np.full(50, 0.02), algorithm, 100, **rest)
    plainly = privacy.fa_ld_guarantee(**PLAIN, step_size=1e-8, temperature=0.5, shared_noise=0.36,
                                      participation=SCHEME_II)
    assert (found.epsilon, found.delta) == (plainly.epsilon, plainly.delta)
    falling = FALD(Harmonic(1e8, 1.0), local_steps=10)
    assert privacy.guarantee(np.full(50, 0.02), falling, 100, **rest).step_size == 1e-8


# ---- extremes and bad input -------------------------------------------------------------------------

def spread(low, high):
    return st.floats(low, high).map(lambda power: 10.0**power)


@settings(max_examples=300)
@given(st.fixed_dictionaries({
    "sensitivity": spread(-300, 300), "batch_fraction": spread(-300, 0), "delta0": spread(-300, -1e-9),
    "delta1": st.one_of(st.just(0.0), spread(-320, -1e-12)),
    "delta2": st.one_of(st.just(0.0), spread(-320, -1e-12)),
    "local_steps": st.integers(1, 2**53), "n_rounds": st.integers(1, 2**53), "temperature": spread(-300, 300),
    "shared_noise": st.one_of(st.just(1.0), st.just(1.0 - 2.0**-53), st.floats(0, 1)),
    "n_clients": st.integers(1, 60)}), spread(-320, 308), st.integers(0, 60), st.booleans(),
    st.sampled_from(privacy.VARIANTS))
def test_extremes_never_give_nan(numbers, step, n_active, replace_drawn, variant):
    chosen = None
    if n_active and (replace_drawn or n_active <= numbers["n_clients"]):
        chosen = Participation(n_active, replace_drawn)
    s = PrivacySetting(**numbers, participation=chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = guarantee_at(s, step, variant=variant)
        for value in (found.epsilon, found.delta, *found.terms.values()):
            assert value >= 0.0  # false for NaN
        assert found.epsilon > 0.0
        assert all(math.isfinite(one.margin) for one in found.assumptions)
        assert isinstance(found.is_vacuous, bool) and "nan" not in repr(found)


@pytest.mark.parametrize("changes, words", [
    ({"sensitivity": 0.0}, "sensitivity"), ({"sensitivity": math.nan}, "sensitivity"),
    ({"batch_fraction": 0.0}, "batch_fraction"), ({"batch_fraction": 1.5}, "batch_fraction"),
    ({"delta0": 0.0}, "delta0"), ({"delta0": 1.0}, "delta0"), ({"delta1": 1.0}, "delta1"),
    ({"delta2": -1e-9}, "delta2"), ({"local_steps": 0}, "local_steps"), ({"n_rounds": 0}, "n_rounds"),
    ({"n_rounds": 2.0}, "n_rounds"), ({"n_clients": 0}, "n_clients"), ({"n_clients": None}, "n_clients"),
    ({"weights": [0.5, 0.6]}, "weights"), ({"temperature": 0.0}, "temperature"),
    ({"shared_noise": 1.1}, "shared_noise"), ({"participation": 3}, "participation"),
    ({"participation": Participation(51, False)}, "n_active"), ({"client_sizes": 0}, "client_sizes"),
    ({"client_sizes": [1.0, 2.0]}, "client_sizes"), ({"client_sizes": [0.5] * 50}, "client_sizes"),
    ({"weights": [0.3, 0.7], "n_clients": 2, "participation": Participation(1, False)}, "weights"),
])
def test_bad_settings(changes, words):
    with pytest.raises(ValueError, match=words):
        plain(**changes)


def test_bad_arguments():
    with pytest.raises(ValueError, match="step_size"):
        guarantee_at(plain(), 0.0)
    with pytest.raises(ValueError, match="variant"):
        guarantee_at(plain(), 1e-8, variant="fixed")
    with pytest.raises(ValueError, match="variant"):
        privacy.round_ceiling(plain(), variant="fixed")
    with pytest.raises(ValueError, match="epsilon"):
        privacy.largest_step_size(plain(), -1.0)
    with pytest.raises(ValueError, match="delta1"):
        privacy.local_ceiling(plain(delta1=0.0))
    with pytest.raises(ValueError, match=r"step_size.*\(69\)"):
        privacy.simplified_epsilon(plain(), 1.0)
    with pytest.raises(ValueError, match="step_size"):
        privacy.largest_shared_noise(plain(), 1.0, 0.1)
    with pytest.raises(ValueError, match="n_active"):
        guarantee_at(plain(participation=Participation(10**8, True)), 1e-8, variant="printed")
    with pytest.raises(ValueError, match="algorithm"):
        privacy.setting_of(np.full(50, 0.02), 1e-8, 10, sensitivity=1.0, batch_fraction=1.0, delta0=1e-6,
                           delta1=0.0, delta2=0.0)


@pytest.mark.parametrize("epsilon, shift", [(math.nan, 1.0), (1.0, math.nan), (-1.0, 1.0), (1.0, -1.0)])
def test_the_gaussian_profile_refuses_what_is_no_size(epsilon, shift):
    with pytest.raises(ValueError, match="must be at least 0"):
        privacy.gaussian_delta(epsilon, shift)


def test_the_standard_numbers_do_not_hang_on_the_last_bit_of_a_step_size():
    """Which depends on the processor that found the eigenvalues."""
    problem = fs.Quadratic([[1.0, 3.0], [2.0, 5.0]], np.zeros((2, 2)))
    known = theory.constants(problem, fs.FALD(0.01))
    one, other, far = (standard_numbers(fs.FALD(eta), known, 20, -3.0)
                       for eta in (0.01, np.nextafter(0.01, 1.0), 0.011))
    assert one.pop("sensitivity") == pytest.approx(other.pop("sensitivity"), rel=1e-12)
    assert one == other != far
