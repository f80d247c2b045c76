"""The privacy theorem against exact privacy losses, and these against quadrature."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from examples_of.privacy import plain, valid
from hypothesis import given, settings, strategies as st

from fedsim.settings.participation import Participation
from theory import privacy
from theory.privacy import guarantee_at
from theory.privacy.profiles import batches_delta, drawn_client_delta, mixture_delta, record_shift


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


@pytest.mark.parametrize("n_active, replace_, holds", [(1, True, True), (1, False, True), (2, True, False)])
def test_a_lone_client_is_never_left_out(n_active, replace_, holds):
    """So that nothing is asked of its records, unless scheme I draws it twice."""
    s = privacy.PrivacySetting(
        sensitivity=1.0, batch_fraction=1.0, delta0=0.5, delta1=0.0, delta2=0.0, local_steps=1, n_rounds=1,
        n_clients=1, weights=None, participation=Participation(n_active, replace_), temperature=1.0,
        shared_noise=0.0, client_sizes=3)
    claim = guarantee_at(s, privacy.validity_ceiling(s), variant="printed")
    assert claim.hypotheses_hold == holds


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
