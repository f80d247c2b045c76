"""FA-LD's rates: by hand at a point, and that the constants of their proofs do."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from examples_of.fa_ld import KAPPA, TAU, D, H, K, M, by_hand, fald

import fedsim as fs
import theory

START_SQ = 3.0 * (np.sqrt(1.92) + np.sqrt(TAU / M)) ** 2


def test_rates_by_hand():
    eps = 0.05
    size = D * KAPPA**2 * H / eps**2
    log = np.log(2 * START_SQ / eps**2)
    sharp = theory.fa_ld.rounds_rate(by_hand(), fald(), eps=eps)
    assert sharp.kind == "rate" and sharp.inputs["eps"] == eps
    wanted = {"smoothness": log * KAPPA / K, "discretization": log * size * KAPPA / K,
              "local_steps": log * size * (K - 1) ** 2 / K}
    assert {name: part[0] for name, part in sharp.terms.items()} == pytest.approx(wanted, rel=1e-12)
    for variant, square in (("printed", (K - 1) ** 2), ("informal", K**2)):
        bound = theory.fa_ld.rounds_rate(by_hand(), fald(), eps=eps, variant=variant)
        assert bound.value[0] == pytest.approx(np.log(D / eps) * size * (square + KAPPA) / K, rel=1e-12)
    for variant, square in (("sharp", (K - 1) ** 2), ("informal", K**2)):
        bound = theory.fa_ld.rounds_rate_decreasing(by_hand(), fald(), eps=eps, variant=variant)
        assert bound.value[0] == pytest.approx(size * (square + KAPPA) / K, rel=1e-12)
    drawn, even = fald(participation=fs.Participation(2, True)), by_hand(weights=[1 / 3] * 3)
    partial = theory.fa_ld.rounds_rate_partial(even, drawn, eps=eps)
    full = theory.fa_ld.rounds_rate(even, fald(), eps=eps)
    assert partial.value == full.value and partial.violated == (theory.fa_ld.rates.ENOUGH,)
    share = 3 * TAU * (0.25 + 0.75 * 3) / M / 2
    assert partial.assumptions[0].margin == pytest.approx(1 - share / (100 * eps**2))
    near = by_hand(initial_distance=0.0)
    assert theory.fa_ld.rounds_rate(near, fald(), eps=100.0).value[0] == 0.0


def cases(seed):
    rng = np.random.default_rng([4, 3, seed])
    for _ in range(60):
        m, kappa, steps = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(0, 2), int(rng.integers(1, 40))
        far = 10.0 ** rng.uniform(-1, 3)
        apart = m * far * 10.0 ** rng.uniform(-2, 0.5)
        facts = by_hand(weights=[1 / 3] * 3, strong_convexity=m, smoothness=kappa * m, initial_distance=far,
                        heterogeneity=apart, gradient_noise_traces=m * m * far)
        s = theory.fa_ld.setting(facts, fald(local_steps=steps))
        yield facts, s, s.nearest_start * 10.0 ** -rng.uniform(0.5, 1.5)


def test_as_many_rounds_as_the_proof_says_are_enough():
    """With its step size w2_bound is at most eps after 1 + 3200 times the rate, not after a 3300th of it."""
    for facts, s, eps in cases(1):
        A = (s.K - 1) ** 2 + s.kappa
        rate = min(0.5 / s.kappa, eps**2 / (1600 * s.kappa**2 * s.d * A * s.H))
        one = fald(step_size=rate / s.m, local_steps=s.K)
        n_rounds = int(1 + 3200 * theory.fa_ld.rounds_rate(facts, one, eps=eps).value[0])
        bound = theory.fa_ld.w2_bound(facts, one, n_rounds=n_rounds, record=[])
        assert bound.hypotheses_hold and bound.value[-1] <= eps * (1 + 1e-9)
        fewer = theory.fa_ld.w2_bound(facts, one, n_rounds=n_rounds // 3300, record=[])
        assert fewer.value[-1] > eps


def test_as_many_rounds_of_theorem_4_8_as_the_proof_says_are_enough():
    for facts, s, eps in cases(2):
        schedule = fs.schedules.Harmonic.from_theorem(strong_convexity=s.m, smoothness=s.L)
        one = fald(step_size=schedule, local_steps=s.K)
        rate = theory.fa_ld.rounds_rate_decreasing(facts, one, eps=eps).value[0]
        bound = theory.fa_ld.w2_bound_decreasing(facts, one, n_rounds=int(1 + 24300 * rate), record=[])
        assert bound.value[-1] <= eps < bound.value[0]
        assert theory.fa_ld.plan(facts, one, eps).n_rounds <= 1 + 24300 * rate


def test_enough_clients_are_of_order_d_over_eps_squared():
    """With the rule's step size C_K is at most 2 + 1/800, and drawing adds an eighth to the second term."""
    for facts, s, eps in cases(3):
        A = (s.K - 1) ** 2 + s.kappa
        rate = min(0.5 / s.kappa, eps**2 / (1600 * s.kappa**2 * s.d * A * s.H))
        one = fald(step_size=rate / s.m, local_steps=s.K, participation=fs.Participation(10**6, True))
        squared = theory.fa_ld.w2_bound_partial(facts, one, n_rounds=0).floor ** 2
        noise = 4 * (2 + 1 / 800) * s.d * s.mean_temperature / (1e6 * s.m)
        full = theory.fa_ld.w2_bound(facts, dataclasses.replace(one, participation=None), n_rounds=0)
        assert full.floor**2 < squared <= (1.125 * full.floor**2 + noise) * (1 + 1e-12)


def test_rounds_are_least_between_one_local_step_and_many():
    """(28) over K is of order K + kappa/K: least at the square root of 1 + kappa."""
    wide = by_hand(smoothness=50.0)
    rounds = {steps: theory.fa_ld.rounds_rate(wide, fald(local_steps=steps), eps=0.01).value[0]
              for steps in range(1, 60)}
    assert min(rounds, key=rounds.get) in theory.fa_ld.optimal_local_steps(100.0)


@pytest.mark.parametrize("name", ["rounds_rate", "rounds_rate_decreasing", "rounds_rate_partial"])
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), 1e-200, "small"])
def test_bad_accuracies(name, bad):
    one = fald(participation=fs.Participation(2, True) if name.endswith("partial") else None)
    with pytest.raises(ValueError, match=r"eps="):
        getattr(theory.fa_ld, name)(by_hand(), one, eps=bad)
