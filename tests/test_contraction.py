"""The certificate of the leapfrogs' contraction: its identity, its range, and functions beyond quadratics."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import fedsim as fs
import theory
from theory.certificates import semidefinite

Contraction = theory.fa_hmc.Contraction


def fractions(rng, count):
    return [Fraction(int(n), 64) for n in rng.integers(-300, 300, count)]


def test_identity():
    """c^2|z_0|^2 - |z_K|^2 - sum of what co-coercivity says, for any z_0 and w, is the form of S: exactly."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        m, wide, K = rng.uniform(0.01, 1.0), rng.uniform(0.1, 3.0), int(rng.integers(1, 9))
        one = Contraction(m, m + wide, rng.uniform(0.05, 1.0) / K / math.sqrt(m + wide), K)
        square = Fraction(one.step_size) ** 2
        wide = Fraction(one.smoothness) - Fraction(one.strong_convexity)
        wave, cosine = chebyshev(1 - square * Fraction(one.strong_convexity) / 2, K)
        o = [square / 2] + [square] * (K - 1)
        (first, *w), kept = fractions(rng, K + 1), range(K)
        z = [cosine[j] * first - sum(o[i] * wave[j - i] * w[i] for i in range(j)) for j in range(K + 1)]
        multipliers = [2 * cosine[K] * o[j] * wave[K - j] / cosine[j] for j in kept]
        left = wide * (cosine[K] ** 2 * first**2 - z[K] ** 2) - sum(
            multipliers[j] * w[j] * (wide * z[j] - w[j]) for j in kept)
        assert left == sum(one.matrix[i][j] * w[i] * w[j] for i in kept for j in kept)
        np.testing.assert_allclose(one.cosines, np.array(cosine[:K], dtype=float), rtol=1e-13)
        np.testing.assert_allclose(one.reach, [float(o[j] * wave[K - j]) for j in kept], rtol=1e-12)


def chebyshev(a, K):
    """sin(n phi)/sin(phi) and cos(n phi), n <= K, at cos(phi) = a."""
    wave, cosine = [Fraction(0), Fraction(1)], [Fraction(1), a]
    for _ in range(K - 1):
        wave.append(2 * a * wave[-1] - wave[-2])
        cosine.append(2 * a * cosine[-1] - cosine[-2])
    return wave, cosine


def test_the_recursion_of_signs_against_elimination_in_fractions():
    """The same answer as LDL' of S: at random, and on the neighbouring doubles of every limit."""
    rng = np.random.default_rng(3)
    seen = {True: 0, False: 0}
    for _ in range(60):
        K, kappa = int(rng.integers(1, 6)), 10 ** rng.uniform(0.01, 3)
        inside, outside = 1.0 / K, 2.5 / K
        while np.nextafter(inside, outside) != outside:
            middle = 0.5 * (inside + outside)
            held = Contraction(1.0 / kappa, 1.0, middle, K).certified
            inside, outside = (middle, outside) if held else (inside, middle)
        for step in (rng.uniform(1.0, 2.5) / K, inside, outside):
            one = Contraction(1.0 / kappa, 1.0, step, K)
            if K * one.angle < 0.5 * math.pi - 1e-9:
                assert semidefinite(one.matrix).holds == one.certified == (one.margin >= 0.0)
                seen[one.certified] += 1
    assert min(seen.values()) > 60


@pytest.mark.parametrize("kappa", [1.1, 3.0, 4.0, 100.0, 1e6])
def test_one_leapfrog_is_decided_to_the_last_double(kappa):
    """For K = 1 the limit is eta^2/2 <= 2/(L + m): what is one double beyond is refused."""
    root = 2.0 / math.sqrt(1.0 + kappa)
    for ulps in range(-4, 5):
        eta = root + ulps * math.ulp(root)
        assert Contraction(1.0, kappa, eta, 1).certified == (Fraction(eta) ** 2 * (Fraction(kappa) + 1) <= 4)
    assert not Contraction(1.0, kappa, root * (1.0 + 3e-14), 1).certified
    assert Contraction(1.0, kappa, root * (1.0 - 3e-14), 1).certified


def test_the_limit_itself_is_within():
    for power in (-200, -3, 0, 3, 200):  # eta^2 (L + m) = 4
        step, m, L = math.ldexp(1.0, power), math.ldexp(1.0, -2 * power), math.ldexp(3.0, -2 * power)
        at = Contraction(m, L, step, 1)
        assert (at.certified, at.margin, at.reason) == (True, 0.0, "")
        assert semidefinite(at.matrix).holds
        beyond = Contraction(m, np.nextafter(L, np.inf), step, 1)
        assert not beyond.certified and -1e-14 < beyond.margin < 0.0
        assert beyond.reason == "is not certified"
    assert not Contraction(1.0, 1.0, math.ldexp(1.0, 600), 1).certified
    for L in (2.0, 3.0):  # cos(phi) is 0
        assert not Contraction(2.0, L, 1.0, 1).certified and Contraction(2.0, L, 1.0, 1).margin == -1.0
    assert not Contraction(1.0, 1e308, 1e3, 1).certified
    assert Contraction(1e-308, 1.0, 1e-200, 5).certified
    assert Contraction(1.0 + 1e-13, 1.0, 0.3, 5).certified  # m above L by rounding


def test_all_lengths_are_decided():
    for K in (200, 2000):
        assert Contraction(0.01, 1.0, 2.38 / K, K).certified
        assert not Contraction(0.01, 1.0, 2.40 / K, K).certified
    with pytest.raises(ValueError, match="leapfrog_steps=13 must be at most 12"):
        _ = Contraction(0.01, 1.0, 0.01, 13).matrix
    with pytest.raises(ValueError, match=r"must leave all cos\(j phi\) positive"):
        _ = Contraction(1.0, 1.0, 1.0, 2).matrix


def test_what_no_precision_decides_is_computed_and_not_certified(monkeypatch):
    """Up to 12 leapfrogs fractions decide then; beyond nothing does, and no bound is made of it."""
    monkeypatch.setattr(theory.certificates.enclosures, "PRECISIONS", (4,))
    assert Contraction(0.1, 1.0, 1.0 / 12, 12).certified
    assert not Contraction(0.1, 1.0, 2.5 / 8, 8).certified
    one = Contraction(0.1, 1.0, 0.1, 13)
    assert not one.certified and one.margin < 0.0 and "computed, not certified" in one.reason
    problem, algorithm = fs.Quadratic([0.1, 1.0], [[0.0], [1.0]]), fs.FAHMC(0.1, leapfrog_steps=13)
    with pytest.raises(theory.fa_hmc.NotCertified, match="computed, not certified"):
        theory.examine("fa_hmc.w2_recursion", problem, algorithm, n_rounds=2)


@pytest.mark.parametrize(("m", "K", "X", "square"), [(0.1, 3, 1.0, 0.90320254), (0.5, 5, 0.5, 0.88007442)])
def test_values_of_semidefinite_programs(m, K, X, square):
    """The largest contraction that a program over all functions of the class finds."""
    one = Contraction(m, 1.0, X / K, K)
    assert one.certified and one.factor**2 == pytest.approx(square, abs=1e-8)
    assert one.lost == pytest.approx(1.0 - square, abs=1e-8)


@pytest.mark.parametrize(("kappa", "reach"), [
    (1.1, (1.4475, 1.5671, 1.5899, 1.6016, 1.6078)), (4, (1.7889, 1.9884, 2.0229, 2.0399, 2.0487)),
    (100, (1.9901, 2.2929, 2.3448, 2.3711, 2.3849)), (1e6, (2.0000, 2.3094, 2.3626, 2.3896, 2.4039))])
def test_range(kappa, reach):
    """Certified up to here, in units of 1/sqrt(L), at all shorter lengths, and not beyond; m = L always."""
    for K, longest in zip((1, 2, 3, 5, 20), reach, strict=True):
        for share in np.linspace(0.02, 0.9999, 25):
            assert Contraction(1.0 / kappa, 1.0, share * longest / K, K).certified
        assert not Contraction(1.0 / kappa, 1.0, 1.0001 * longest / K, K).certified
    assert Contraction(1.0, 1.0, 0.3, 5).certified


def leapfrogs(slope, x, p, eta, K):
    x, p = np.array(x), np.array(p)
    for _ in range(K):
        p = p - 0.5 * eta * slope(x)
        x = x + eta * p
        p = p - 0.5 * eta * slope(x)
    return x


def test_ridges():
    """Pairs of chains of log cosh along random directions contract at least so fast; quadratics attain it."""
    rng = np.random.default_rng(2)
    largest = 0.0
    for _ in range(60):
        m, wide, K = 10 ** rng.uniform(-2, 0), 10 ** rng.uniform(-1, 1), int(rng.integers(1, 7))
        one = Contraction(m, m + wide, rng.uniform(0.1, 1.4) / K / math.sqrt(m + wide), K)
        assert one.certified
        directions = rng.standard_normal((4, 3))
        directions *= math.sqrt(wide / 4) / np.linalg.norm(directions, axis=1, keepdims=True)
        bend = 10 ** rng.uniform(-1, 1, 4)

        def slope(x, a=directions, t=bend, m=m):
            return m * x + (np.tanh(x @ a.T / t) * t) @ a

        x, y, p = (10 ** rng.uniform(-1, 1) * rng.standard_normal((200, 3)) for _ in range(3))
        apart = np.linalg.norm(leapfrogs(slope, x, p, one.step_size, K)
                               - leapfrogs(slope, y, p, one.step_size, K), axis=1)
        largest = max(largest, (apart / np.linalg.norm(x - y, axis=1)).max() / one.factor)
    assert largest <= 1.0 + 1e-10
    one = Contraction(0.3, 2.0, 0.2, 4)
    flat = leapfrogs(lambda x: 0.3 * x, np.ones(1), np.zeros(1), 0.2, 4)
    assert flat[0] == pytest.approx(one.factor, rel=1e-13)


def test_bad_input():
    with pytest.raises(ValueError, match="strong_convexity=2 must be at most smoothness=1"):
        Contraction(2.0, 1.0, 0.1, 3)
    with pytest.raises(ValueError, match="leapfrog_steps"):
        Contraction(1.0, 1.0, 0.1, 0)
