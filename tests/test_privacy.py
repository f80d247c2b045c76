"""FA-LD's privacy theorem against hand computation, a naive second writing, and exact privacy losses."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theory
from fedsim.algorithms.fa_ld import FALD
from fedsim.participation import Participation
from fedsim.schedules import Harmonic
from theory import privacy
from theory.privacy import PrivacySetting, guarantee_at
from theory.privacy.errata import drawn_client_delta, record_shift

PLAIN = {"sensitivity": 1.0, "batch_fraction": 0.1, "delta0": 1e-6, "delta1": 1e-6, "delta2": 1e-6,
         "local_steps": 10, "n_rounds": 100, "n_clients": 50}
SCHEME_I, SCHEME_II = Participation(10, True), Participation(10, False)


def plain(**changes):
    return PrivacySetting(**{**PLAIN, **changes})


def naive(s, eta, variant):
    """Equations (54) to (65) written as they are printed, for numbers that do not overflow."""
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
    if variant == "printed" and s.scheme == "II":
        inside = 2 * e * math.log(1 / s.delta2) + e * a * (math.exp(eps_k) - 1) if s.delta2 else math.inf
        return tilde * min(math.sqrt(inside), e), e * delta + s.delta2
    return both(tilde, e, s.delta2), e * delta + s.delta2


# ---- values ---------------------------------------------------------------------------------------

def test_by_hand_with_basic_composition():
    # log(1.25/delta0) = 2, so (54) = 2/0.5 sqrt(eta/(2 p)) = 1/2, (56) = 2 sqrt(2 eta/p) = 1/2, (57) = 1/16
    s = PrivacySetting(sensitivity=1.0, batch_fraction=0.5, delta0=1.25 * math.exp(-2.0), delta1=0.0,
                       delta2=0.0, local_steps=3, n_rounds=4, n_clients=2,
                       participation=Participation(1, False))
    found = guarantee_at(s, 1.0 / 64.0)
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
    one = guarantee_at(plain(participation=SCHEME_I, delta2=0.0), 1e-8)
    two = guarantee_at(plain(participation=SCHEME_II, delta2=0.0), 1e-8)
    assert one.delta == pytest.approx(0.19, abs=0.005)
    assert two.delta == pytest.approx(4e-5, rel=1e-12)
    assert one.is_vacuous and "1/records" in one.why_vacuous[0]
    assert not two.is_vacuous
    record = guarantee_at(plain(participation=SCHEME_I, delta2=0.0), 1e-8, variant="record_level")
    assert record.delta == pytest.approx(100 * (1 - 0.98**10) * 2e-6, rel=1e-12) and not record.is_vacuous


def test_misgrouped_root_promises_too_much():
    s = plain(participation=SCHEME_II)
    printed, corrected = (guarantee_at(s, 1e-8, variant=name) for name in ("printed", "corrected"))
    # eps_1 = 2 sqrt(50e-8 log(1.25e6)), eps_K = 10 eps_1, eps~ = log(1 + 0.2 (e^eps_K - 1)) = 0.0108245
    tilde = math.log(1 + 0.2 * (math.exp(20 * math.sqrt(50e-8 * math.log(1.25e6))) - 1))
    first, second = 200 * math.log(1e6), 100 * math.expm1(tilde)
    assert corrected.epsilon == pytest.approx(tilde * (math.sqrt(first) + second), rel=1e-12)
    assert printed.epsilon == pytest.approx(tilde * math.sqrt(first + second), rel=1e-12)
    assert corrected.epsilon == pytest.approx(0.58078, abs=5e-6)
    assert printed.epsilon == pytest.approx(0.56911, abs=5e-6)


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
    found = guarantee_at(s, eta)
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
    for variant in privacy.VARIANTS[::2]:
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

@settings(max_examples=300)
@given(valid(), st.sampled_from(["corrected", "record_level"]), st.floats(1e-8, 1.0))
def test_ceilings_imply_their_conclusions(case, variant, part):
    s = replace(case[0], delta1=case[0].delta1 or 1e-7, delta2=case[0].delta2 or 1e-5)
    up = 1.0 + 1e-10
    edge = guarantee_at(s, privacy.validity_ceiling(s))
    assert edge.terms["epsilon_batch"] == pytest.approx(1.0, rel=1e-12)
    local, total = privacy.local_ceiling(s), privacy.round_ceiling(s, variant=variant)
    assert 0.0 < total <= local
    first, second = math.log(1 / s.delta1), math.log(1 / s.delta2)
    at = guarantee_at(s, part * local, variant=variant).terms  # (61)
    assert at["epsilon_client"] <= 2 * math.sqrt(2 * s.local_steps * first) * at["epsilon_step"] * up
    found = guarantee_at(s, part * total, variant=variant)
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


def test_rates_are_what_the_formulas_tend_to():
    s = plain(participation=SCHEME_II, n_rounds=10**12, local_steps=3)
    step = privacy.round_ceiling(s) * 1e-10
    rate = privacy.epsilon_rate(s, step)
    assert rate.kind == "rate"
    assert privacy.simplified_epsilon(s, step) / rate.value == pytest.approx(1.0, abs=1e-6)
    by_hand = 16 * 0.2 * math.sqrt(step * 3e12 * math.log(1.25e6) * math.log(1e6) ** 2 * 50)
    assert rate.value == pytest.approx(by_hand, rel=1e-12)
    ceiling = privacy.step_size_rate(s)
    assert ceiling.kind == "rate"
    # (69) approaches (74) like sqrt(K log(1/delta2) N^2 / (T S^2))
    assert privacy.round_ceiling(s) / ceiling.value == pytest.approx(1.0, abs=5e-5)
    assert ceiling.value == pytest.approx(50**2 / 50 / (16 * 100 * 3e12 * math.log(1.25e6)), rel=1e-12)


@given(valid(), st.sampled_from(privacy.VARIANTS), st.floats(1e-6, 1e4))
def test_largest_step_size(case, variant, budget):
    s, _ = case
    found = privacy.largest_step_size(s, budget, variant=variant)
    assert found.guarantee.epsilon <= budget
    assert found.guarantee.assumptions[0].holds  # (57)
    above = guarantee_at(s, found.step_size * (1 + 1e-9), variant=variant)
    if found.binding == "epsilon":
        assert above.epsilon > budget
    else:
        assert found.step_size == privacy.validity_ceiling(s) and not above.assumptions[0].holds
    eta = 0.3 * privacy.largest_step_size(replace(s, shared_noise=0.0), budget, variant=variant).step_size
    most = privacy.largest_shared_noise(s, eta, budget, variant=variant)
    assert most == pytest.approx(0.7, abs=1e-9)
    assert guarantee_at(replace(s, shared_noise=most), eta, variant=variant).epsilon <= budget * (1 + 1e-9)


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
    for variant in ("record_level", "corrected"):
        claim = guarantee_at(s, eta, variant=variant)
        if not claim.hypotheses_hold:  # more than one record per client, and clients left out
            assert variant == "corrected" and records > 1 and s.n_clients > 1
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


def test_errata_are_demonstrated():
    ours = [entry for entry in theory.errata() if entry.id.startswith("fa_ld.privacy")]
    assert len(ours) == 4
    for entry in ours:
        assert entry.evidence().demonstrated == (entry.kind == "numerical"), entry.id


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
    drawn = guarantee_at(plain(participation=SCHEME_II), 1e-8)
    assert [one.holds for one in drawn.assumptions] == [True, False]
    assert guarantee_at(plain(participation=SCHEME_II, client_sizes=1), 1e-8).hypotheses_hold
    assert not guarantee_at(plain(participation=SCHEME_II, client_sizes=2), 1e-8).hypotheses_hold
    assert guarantee_at(plain(participation=SCHEME_II), 1e-8, variant="record_level").hypotheses_hold
    weights = np.full(50, 0.5 / 49)
    weights[0] = 0.5
    unequal = plain(participation=SCHEME_I, weights=weights, client_sizes=1)
    assert [one.holds for one in guarantee_at(unequal, 1e-9).assumptions] == [True, True, False]


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
        guarantee_at(plain(participation=Participation(10**8, True)), 1e-8)
    with pytest.raises(ValueError, match="algorithm"):
        privacy.setting_of(np.full(50, 0.02), 1e-8, 10, sensitivity=1.0, batch_fraction=1.0, delta0=1e-6,
                           delta1=0.0, delta2=0.0)
