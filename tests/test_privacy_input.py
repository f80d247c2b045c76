"""The privacy theorem: flags, extreme numbers and bad input."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from examples_of.privacy import PLAIN, SCHEME_I, SCHEME_II, plain
from hypothesis import given, settings, strategies as st

import fedsim as fs
import theory
from fedsim.algorithms.fa_ld import FALD
from fedsim.settings.participation import Participation
from fedsim.settings.schedules import Harmonic
from theory import privacy
from theory.privacy import PrivacySetting, guarantee_at
from theory.privacy.bounds import standard_numbers


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
    ({"n_rounds": 2.5}, "n_rounds"), ({"n_clients": 0}, "n_clients"), ({"n_clients": None}, "n_clients"),
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
