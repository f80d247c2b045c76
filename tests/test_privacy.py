"""FA-LD's privacy theorem against hand computation and a naive second writing; its ceilings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from examples_of.privacy import SCHEME_I, SCHEME_II, plain, valid
from hypothesis import given, settings, strategies as st

from fedsim.settings.participation import Participation
from theory import privacy
from theory.privacy import PrivacySetting, guarantee_at
from theory.privacy.profiles import batches_delta, record_shift


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


@pytest.mark.parametrize("budget", [1e-3, 0.1, 1.0, 10.0])
def test_the_largest_step_size_is_the_last_double_within_the_budget(budget):
    found = privacy.largest_step_size(plain(), budget)
    assert found.binding == "epsilon" and found.guarantee.epsilon <= budget
    assert guarantee_at(plain(), math.nextafter(found.step_size, math.inf)).epsilon > budget


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
