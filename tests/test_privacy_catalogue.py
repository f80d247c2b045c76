"""The privacy theorem in the catalogue: bounds, and the exact side they are checked with."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim.settings.participation import Participation
from theory import privacy
from theory.judge.examining import drawn_numbers
from theory.privacy.profiles import drawn_client_delta, record_shift

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
            verdict = theory.examine(entry, problem, algorithm, 5, variant=variant,
                                     privacy=drawn_numbers(entry, problem, algorithm, 5))
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
