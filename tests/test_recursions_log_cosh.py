"""Recursions against laws that are not Gaussian: clients m(x-a)^2/2 + (L-m) t^2 log cosh((x-b)/t), d = 1.

The law of the average at communications is followed on a grid: a round's kernel is a mixture over normals
(FA-LD) or follows from the end of a trajectory as a function of its momentum (FA-HMC, one client).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import fedsim as fs
import theory


class Clients:
    """Random ones, and the target on a grid."""

    def __init__(self, rng, clients):
        self.m, self.L = 1.0, float(rng.uniform(2.0, 10.0))
        self.weights = rng.dirichlet(np.full(clients, 3.0))
        self.centre, self.kink = rng.normal(0, 1.0, clients), rng.normal(0, 1.0, clients)
        self.width = 10 ** rng.uniform(-1, 0.5, clients)
        self.grid = np.linspace(-14.0, 14.0, 1201)
        self.step = self.grid[1] - self.grid[0]
        level = np.zeros_like(self.grid)
        for p, a, b, t in zip(self.weights, self.centre, self.kink, self.width, strict=True):
            u = np.abs((self.grid - b) / t)
            level += p * (self.m * (self.grid - a) ** 2 / 2
                          + (self.L - self.m) * t**2 * (u + np.log1p(np.exp(-2 * u)) - np.log(2)))
        target = np.exp(level.min() - level)
        self.target = target / target.sum()
        low, high = -20.0, 20.0
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.weights @ self.slopes(middle) < 0 else (low, middle)
        self.minimizer = low

    def slopes(self, x):
        return self.m * (x - self.centre) + (self.L - self.m) * self.width * np.tanh(
            (x - self.kink) / self.width)

    def constants(self, far):
        return theory.Constants(
            dim=1, strong_convexity=self.m, smoothness=self.L, weights=self.weights,
            gradient_at_minimizer=self.slopes(self.minimizer)[:, None],
            initial_distance=abs(far - self.minimizer), initial_w2=self.w2(self.point(far)))

    def point(self, far):
        """All mass in the grid point nearest to it."""
        law = np.zeros_like(self.grid)
        law[np.abs(self.grid - far).argmin()] = 1.0
        return law

    def w2(self, law):
        """By quantiles."""
        levels = np.union1d(np.cumsum(law), np.cumsum(self.target))
        levels = levels[(levels > 0) & (levels < 1)]
        middles = 0.5 * (np.append(0, levels) + np.append(levels, 1))
        ends = [self.grid[np.minimum(np.searchsorted(np.cumsum(one), middles), len(self.grid) - 1)]
                for one in (law, self.target)]
        return float(np.sqrt((np.diff(np.concatenate([[0], levels, [1]])) * (ends[0] - ends[1]) ** 2).sum()))


def langevin_kernel(c, h, K):
    """Rows of a round of FA-LD with one or two local steps, own noises, from every grid point."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(24)
    masses = masses / masses.sum()
    N = len(c.weights)
    rows = np.empty((len(c.grid), len(c.grid)))
    ends = np.append(c.grid - 0.5 * c.step, c.grid[-1] + 0.5 * c.step)
    kicks = np.stack(np.meshgrid(*[nodes] * N), -1).reshape(-1, N)
    shares = np.prod(np.stack(np.meshgrid(*[masses] * N), -1).reshape(-1, N), axis=1)
    for i, x in enumerate(c.grid):
        if K == 1:
            centres, weights = np.array([x - h * c.weights @ c.slopes(x)]), np.ones(1)
        else:
            each = x - h * c.slopes(x) + np.sqrt(2 * h / c.weights) * kicks
            centres, weights = (each - h * c.slopes(each)) @ c.weights, shares
        reached = ndtr((ends[None] - centres[:, None]) / np.sqrt(2 * h))
        rows[i] = weights @ np.diff(reached, axis=1)
    return rows


def test_fa_ld():
    rng, largest = np.random.default_rng(3), 0.0
    for number in range(6):
        clients, K = ((1, 1), (3, 1), (2, 2), (1, 2), (2, 2), (2, 1))[number]
        c = Clients(rng, clients)
        h = rng.uniform(0.05, 0.8) / c.L
        far = c.grid[np.abs(c.grid - rng.choice([c.minimizer, 4.0])).argmin()]
        kernel, law = langevin_kernel(c, h, K), c.point(far)
        bound = theory.fa_ld.w2_recursion(c.constants(far), fs.FALD(h, K), n_rounds=25)
        for value in bound.value[1:]:
            law = law @ kernel
            assert law.sum() == pytest.approx(1.0, abs=1e-6)
            found = c.w2(law / law.sum())
            assert found <= value + 2 * c.step  # rounding to the grid
            largest = max(largest, found / value)
    assert largest > 0.5  # or nothing would be tried


def test_fa_hmc():
    rng = np.random.default_rng(4)
    momenta = np.linspace(-8.0, 8.0, 1601)
    for K in (1, 2, 3, 5):
        c = Clients(rng, 1)
        eta = rng.uniform(0.2, 1.2) / np.sqrt(c.L) / K
        far = c.grid[np.abs(c.grid - 3.0).argmin()]
        ends = np.append(c.grid - 0.5 * c.step, c.grid[-1] + 0.5 * c.step)
        kernel = np.empty((len(c.grid), len(c.grid)))
        for i, start in enumerate(c.grid):
            x, p = np.full_like(momenta, start), momenta.copy()
            for _ in range(K):
                p = p - 0.5 * eta * c.slopes(x[:, None])[:, 0]
                x = x + eta * p
                p = p - 0.5 * eta * c.slopes(x[:, None])[:, 0]
            assert (np.diff(x) > 0).all()  # so that the end tells the momentum
            kernel[i] = np.diff(ndtr(np.interp(ends, x, momenta, left=-9.0, right=9.0)))
        law, bound = c.point(far), theory.fa_hmc.w2_recursion(c.constants(far), fs.FAHMC(eta, K), n_rounds=25)
        for value in bound.value[1:]:
            law = law @ kernel
            assert law.sum() == pytest.approx(1.0, abs=1e-6)
            assert c.w2(law / law.sum()) <= value + 2 * c.step
