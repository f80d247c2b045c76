"""Theorems 1 and 11 and the lemmas of DE-SGLD and DE-SGHMC, by hand at a point."""

from __future__ import annotations

import dataclasses
from math import sqrt

import numpy as np
import pytest
from examples_of.decentralized import (
    DISTANCE2,
    GAPS,
    GRADIENT2,
    LEAST,
    MOMENT,
    MU,
    SIGMA2,
    SPREAD,
    D,
    G,
    L,
    N,
    W,
    by_hand,
)

import fedsim as fs
import theory

LD, HMC = theory.de_sgld, theory.de_sghmc
C1 = sqrt(2 * L * GAPS) * (1 + 2 * 3 / 1)


def hand_d2(eta):
    return (4 * L**2 * 3 * (DISTANCE2 + SPREAD) + 8 * L**2 * C1**2 * eta**2 * 3 / (1 / 3) ** 2
            + 2 * L**2 * (eta * SIGMA2 * 3 + 2 * D * 3) / (MU * (1 + LEAST - eta * L)) + 4 * GRADIENT2)


def hand_terms(alpha, k, variant="without_transient"):
    """What Theorems 1 and 11 share."""
    mu1 = MU * (1 - alpha * L / 2)
    rho, y = 1 - alpha * mu1, G**2
    geometric = sum(rho**i * y ** (k - 1 - i) for i in range(k))
    transient = {"network_transient": sqrt(y * geometric) * 2 * L / sqrt(3) * sqrt(3 * MOMENT)}
    return (transient if variant != "without_transient" else {}) | {
            "initialization": (1 - MU * alpha) ** k * (sqrt(DISTANCE2) + sqrt(2 * D / (MU * N))),
            "discretization": 1.65 * L / MU * sqrt(alpha * D / N),
            "gradient_noise": sqrt(alpha) * sqrt(SIGMA2) / sqrt(mu1 * N)}


@pytest.mark.parametrize("variant", ["without_transient", "printed"])
def test_theorem_1_by_hand(variant):
    eta, k = 0.1, 4
    mu1, gap2 = MU * (1 - eta), 1 - G**2
    wanted = hand_terms(eta, k, variant)
    wanted["disagreement"] = sqrt(eta) * sqrt(eta / mu1 + 1.2**2 / mu1**2) * sqrt(
        4 * L**2 * hand_d2(eta) * eta / (N * (1 / 3) ** 2) + 4 * L**2 * SIGMA2 * eta / gap2
        + 8 * L**2 * D / gap2)
    algorithm = fs.DESGLD(eta, W)
    bound = LD.w2_bound(by_hand(), algorithm, n_rounds=k, variant=variant)
    assert set(bound.terms) == set(wanted)
    for name, value in wanted.items():
        assert bound.terms[name][k] == pytest.approx(value, rel=1e-13), name
    assert bound.value[k] == pytest.approx(sum(wanted.values()), rel=1e-13)
    assert bound.floor == pytest.approx(sum(wanted[name] for name in (
        "discretization", "gradient_noise", "disagreement")), rel=1e-13)
    clients = LD.w2_clients_bound(by_hand(), algorithm, n_rounds=k, variant=variant)
    assert clients.terms["clients_transient"][k] == pytest.approx(2 * G**k * sqrt(MOMENT))
    e3 = 2 * sqrt(hand_d2(eta)) / (sqrt(N) * (1 / 3)) + 2 * sqrt(SIGMA2) / sqrt(gap2)
    assert clients.terms["clients_spread"][k] == pytest.approx(
        sqrt(eta) * 2 * sqrt(2 * D) / sqrt(gap2) + eta * e3, rel=1e-13)
    assert clients.value[k] - bound.value[k] == pytest.approx(
        clients.terms["clients_transient"][k] + clients.terms["clients_spread"][k], rel=1e-12)


def test_de_sgld_lemmas_by_hand():
    eta, k, algorithm = 0.1, 5, fs.DESGLD(0.1, W)
    d2, gap2 = hand_d2(eta), 1 - G**2

    def last(function, **options):
        return function(by_hand(), algorithm, n_rounds=k, **options).value[-1]

    lemma_6 = (4 * G ** (2 * k) * 3 * MOMENT + 4 * d2 * eta**2 / (1 / 3) ** 2 + 4 * SIGMA2 * 3 * eta**2 / gap2
               + 8 * D * 3 * eta / gap2)
    assert last(LD.gradient_bound) == pytest.approx(d2, rel=1e-13)
    assert last(LD.disagreement_bound) == pytest.approx(lemma_6, rel=1e-13)
    assert last(LD.gradient_error_bound) == pytest.approx(L**2 / 3 * lemma_6, rel=1e-13)
    shared = hand_terms(eta, k)
    average = LD.w2_bound(by_hand(), algorithm, n_rounds=k).terms["disagreement"][-1]
    lemma_8 = average**2 + shared["gradient_noise"] ** 2
    assert last(LD.coupling_bound) == pytest.approx(lemma_8, rel=1e-12)
    assert last(LD.coupling_bound, variant="printed") == pytest.approx(
        lemma_8 + hand_terms(eta, k, "printed")["network_transient"] ** 2, rel=1e-12)
    assert last(LD.euler_bound) == pytest.approx(
        0.9**k * (sqrt(DISTANCE2) + sqrt(D / (MU * N))) + shared["discretization"], rel=1e-13)
    assert last(LD.target_moment_bound) == pytest.approx(D / (N * MU))
    assert last(LD.target_moment_bound, variant="printed") == pytest.approx(2 * D / (N * MU))
    rate = MU * (1 + LEAST - eta * L)
    assert last(LD.iterate_bound) == pytest.approx(
        (1 - eta * rate) ** k * (sqrt(3 * (DISTANCE2 + SPREAD)) + C1 * eta * sqrt(3) / (1 / 3)) ** 2
        + (eta * SIGMA2 * 3 + 2 * D * 3) / rate, rel=1e-13)
    assert last(LD.growing_noise_bound) == SIGMA2  # where the noise is bounded
    for growth in (0.3, 7.0):
        known = dataclasses.replace(by_hand(), noise_growth=growth)
        bound = LD.growing_noise_iterate_bound(known, algorithm, n_rounds=k)
        off, common = C1 * eta * sqrt(3) / (1 / 3), sqrt(3) * np.linalg.norm(by_hand().minimizer)
        source = eta * growth * 3 + 4 * eta * growth * common**2 + 4 * eta * growth * off**2 + 2 * D * 3
        assert bound.value.tolist() == pytest.approx([max(
            (sqrt(3 * (DISTANCE2 + SPREAD)) + off) ** 2, source * 2 / rate)] * (k + 1), rel=1e-13)
        small = bound.assumptions[-1]
        assert small.margin == pytest.approx(1 - eta * (4 * growth + MU * L) / (MU * (1 + LEAST)))
        assert LD.growing_noise_bound(known, algorithm, n_rounds=k).value.tolist() == [growth] * (k + 1)
    assert last(LD.fixed_point_bound) == pytest.approx(C1 * eta * sqrt(3) / (1 / 3), rel=1e-13)


BEGIN = theory.de_sghmc.Beginning(fixed_norm=1.3, fixed_distance=0.6, start_sq=4.0, first_sq=5.0, step_sq=1.5)


@pytest.mark.parametrize("variant", ["without_transient", "printed", "printed_constant"])
@pytest.mark.parametrize("share", [0.0, 0.8])
def test_theorem_11_by_hand(variant, share):
    """The chain of constants of appendix B, equation by equation."""
    as_printed = variant == "printed_constant"
    eta, k = 0.35, 4
    alpha = eta**2
    beta = share * HMC.largest_momentum(MU, L, W, eta)
    velocity = np.array([0.5, -1.0])
    algorithm = fs.DESGHMC(eta, (1 - beta) / eta, W, velocity)
    l_a = L + (1 - LEAST) / alpha
    r = alpha * MU / (1 - LEAST + alpha * L)
    c1 = 0.5 * alpha * MU / ((1 + beta) + (1 - beta) * r)
    assert c1 == pytest.approx(0.5 * alpha * MU / ((1 - beta) * (1 + MU / l_a) + 2 * beta))  # equation (76)
    k_ab = alpha / (1 - beta) * (alpha / (1 - beta) - 2 / (l_a + MU) + 2 * c1 * alpha / (1 - beta))
    c2 = 4 * beta**2 / (1 - beta) ** 2 * (1 - LEAST) ** 2 * (1 + (1 if as_printed else 0.5) / c1)
    a = 2 * alpha * beta / (1 - beta) ** 2 + 2 * c2 / MU
    b = 2 * alpha * beta / (1 - beta) ** 2 - 2 * k_ab * MU
    q = max(a / b, 1 - 2 * c1)
    kept = beta / (1 - beta)
    v1 = b * l_a / 2 * 4.0 + 2 * 5.0 + 2 * kept**2 * 1.5
    gamma = algorithm.friction
    heat = 2 / (1 - beta) ** 2 * (eta**4 * SIGMA2 * N + 2 * gamma * eta**3 * N * D)
    c3 = v1 + (heat + c2 * 1.3**2) / (1 - q)
    if as_printed:
        far = 4 * c3 + 4 * 1.3**2 + 2 * kept**2 * (2 * c3 / (MU * b) + 2 * 1.3**2)
        c4t = L * (GRADIENT2 + 2 * far + 2 * 3 * 0.25)
    else:
        c4t = 2 * GRADIENT2 + 2 * L**2 * (2 * max(c3, 4.0) + 2 * 0.6**2)
    c5 = 3 * 1.25 + (2 * eta**2 * c4t + eta**2 * SIGMA2 * N + 2 * gamma * eta * N * D) / (1 - 2 * beta**2)
    found = HMC.chain(by_hand(), algorithm, "printed" if as_printed else "corrected", BEGIN)
    for name, value in {"L_alpha": l_a, "c1": c1, "k": k_ab, "c2": c2, "a": a, "b": b, "q2": 1 - 2 * c1,
                        "V1": v1, "c3": c3, "c4": 2 * c3 + 2 * 1.3**2, "gradient_bound": c4t,
                        "c5": c5}.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-9, abs=1e-300), name
    mu2 = MU * (1 - alpha * L / 2)
    a2 = alpha / mu2 + (1 + alpha * L) ** 2 / mu2**2
    wanted = hand_terms(alpha, k, variant)
    wanted["disagreement"] = eta * sqrt(2 * a2) * sqrt(
        beta**2 * c5 / (eta**4 * N) + 2 * L**2 * c5 / (N * (1 / 3) ** 2))
    wanted["momentum"] = eta * sqrt(2 * a2) * sqrt((sqrt(1 - beta) - 1) ** 2 / eta**4 * D / N)
    bound = HMC.w2_bound(by_hand(), algorithm, n_rounds=k, variant=variant, begin=BEGIN)
    for name, value in wanted.items():
        assert bound.terms[name][k] == pytest.approx(value, rel=1e-9, abs=1e-14), name
    clients = HMC.w2_clients_bound(by_hand(), algorithm, n_rounds=k, variant=variant, begin=BEGIN)
    assert clients.value[k] - bound.value[k] == pytest.approx(
        sqrt(2) * G**k * sqrt(MOMENT) + eta * sqrt(2 * c5) / (sqrt(N) * (1 / 3)), rel=1e-9)
    lemma_16 = 2 * a2 * (beta**2 * c5 / (eta**2 * N) + 2 * L**2 * c5 * eta**2 / (N * (1 / 3) ** 2)) + wanted[
        "gradient_noise"] ** 2 + wanted.get("network_transient", 0.0) ** 2
    constant, lemma_14, other = ("printed", "printed_constant", "printed") if as_printed else (
        "corrected", "printed", "sharp")
    position = 4 * c3 + 4 * 1.3**2 + 2 * kept**2 * (2 * c3 / (MU * b) + 2 * 1.3**2) if as_printed else (
        sqrt(max(c3, 4.0)) + 1.3) ** 2
    lemmas_by_hand = [
        (HMC.extrapolation_bound, other, 2 * c3 + 2 * 1.3**2), (HMC.velocity_bound, constant, c5),
        (HMC.lyapunov_bound, other, v1 * q ** (k - 1) + (heat + c2 * 1.3**2) / (1 - q)),
        (HMC.position_bound, "printed" if as_printed else "convexity", position),
        (HMC.disagreement_bound, lemma_14, 2 * G ** (2 * k) * 3 * MOMENT + 2 * c5 * eta**2 / (1 / 3) ** 2),
        (HMC.coupling_bound, variant, lemma_16)]
    for function, name, value in lemmas_by_hand:
        options = {"n_rounds": k, "variant": name, "begin": BEGIN}
        assert function(by_hand(), algorithm, **options).value[-1] == pytest.approx(value, rel=1e-9)
    damping = HMC.damping_bound(by_hand(), algorithm, n_rounds=k).value[-1]
    assert damping == pytest.approx(wanted["momentum"] ** 2, rel=1e-6, abs=1e-20)


def test_no_momentum_is_theorem_1_with_the_squared_step():
    """beta = 0: the two theorems share the scheme of the average, and so these terms."""
    eta = 0.3
    fast = HMC.w2_bound(by_hand(), fs.DESGHMC(eta, 1 / eta, W), n_rounds=9)
    slow = LD.w2_bound(by_hand(), fs.DESGLD(eta**2, W), n_rounds=9)
    for name in ("initialization", "discretization", "gradient_noise"):
        np.testing.assert_allclose(fast.terms[name], slow.terms[name], rtol=1e-12)
    assert fast.terms["momentum"][-1] == 0.0


def test_geometric_sum_where_both_bases_are_close():
    from theory.decentralized.setting import geometric_sum

    for x, y in ((0.9, 0.4), (0.4, 0.9), (0.7, 0.7), (0.7, 0.7 * (1 + 1e-13)), (1 - 1e-12, 1 - 2e-12),
                 (0.3, 0.0)):
        with np.errstate(divide="ignore"):
            found = geometric_sum(np.log(x), np.log(y), [0, 1, 2, 7])
        wanted = [sum(x**i * y ** (k - 1 - i) for i in range(k)) for k in (0, 1, 2, 7)]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
