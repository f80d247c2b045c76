"""The certificate of the leapfrogs' contraction: its identity, its range, and functions beyond quadratics."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory

Contraction = theory.fa_hmc.Contraction


def test_identity():
    """c^2|z_0|^2 - |z_K|^2 - sum of what co-coercivity says, for any z_0 and w, is the form of S."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        m, wide, K = rng.uniform(0.01, 1.0), rng.uniform(0.1, 3.0), int(rng.integers(1, 9))
        eta = rng.uniform(0.05, 1.0) / K / math.sqrt(m + wide)
        one = Contraction(m, m + wide, eta, K)
        o = np.full(K, eta**2)
        o[0] /= 2
        first, w = rng.standard_normal(), rng.standard_normal(K)
        waves = [math.sin(n * one.angle) / math.sin(one.angle) for n in range(K + 1)]
        z = [math.cos(j * one.angle) * first - sum(o[i] * waves[j - i] * w[i] for i in range(j))
             for j in range(K + 1)]
        multipliers = one.multipliers / wide
        left = one.factor**2 * first**2 - z[K] ** 2 - sum(
            multipliers[j] * w[j] * (wide * z[j] - w[j]) for j in range(K))
        assert left == pytest.approx(w @ one.matrix @ w / wide, rel=1e-10, abs=1e-12)


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
    assert Contraction(1.0 / kappa, 1.0, 2.0 / (1.0 + 1.0 / kappa) ** 0.5, 1).certified


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
