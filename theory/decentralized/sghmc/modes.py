"""Modes of the network under DE-SGHMC: what noise, pushes and a start apart leave in them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fedsim.settings.validation import Array

from ..recursion import Clients


class Given(NamedTuple):
    """Mean variance that noise has left in the modes' positions after the step, and what is left of a start
    apart."""

    variance: float
    start: float


@dataclass(frozen=True, eq=False)
class Modes:
    """The network's modes [[lambda_j - eta^2 q, eta beta], [-eta q, beta]].

    Parameters
    ----------
    clients : Clients
    size : float, eta
    beta : float
    velocity_spread : float
        (1/N) sum_i |v_i - average|^2 at the start.
    """

    clients: Clients
    size: float
    beta: float
    velocity_spread: float
    _settled: dict[int, Array] = field(init=False, default_factory=dict)

    @cached_property
    def matrices(self) -> Array:
        """(N - 1, 2, 2)."""
        eta, q, modes = self.size, self.clients.q, self.clients.modes
        return np.stack([np.stack([modes - eta * eta * q, np.full_like(modes, eta * self.beta)], -1),
                         np.broadcast_to([-eta * q, self.beta], (len(modes), 2))], -2)

    @cached_property
    def roots(self) -> tuple[Array, Array]:
        """|a_j| >= |b_j| of z^2 - (lambda_j - eta^2 q + beta) z + beta lambda_j, and |a_j - b_j|."""
        half = 0.5 * (self.clients.modes - self.size**2 * self.clients.q + self.beta)
        apart = np.sqrt((half * half - self.beta * self.clients.modes).astype(complex))
        large = np.maximum(np.abs(half + apart), np.abs(half - apart))
        return large, 2.0 * np.abs(apart)

    @cached_property
    def cascade(self) -> tuple[float, float, float]:
        """(alpha, b, gain): y <- alpha y + gain eta^2 push, sp <- b sp + y bounds the response to pushes.

        The response of a mode is eta^2 sum_{i<=n} a^i b^(n-i) exactly: at most that of the cascade of the
        largest roots, and at most eta^2 2 |a|/|a - b| |a|^n. The one with the smaller sum is taken.
        """
        large, apart = self.roots
        small = np.abs(self.beta * self.clients.modes) / np.maximum(large, 1e-300)
        alpha, b = float(large.max()), float(small.max())
        with np.errstate(divide="ignore"):
            gain = float((2.0 * large / apart).max())
        one = (1.0 - alpha) * (1.0 - b)
        return (0.0, alpha, gain) if gain * one < 1.0 - alpha else (alpha, b, 1.0)

    @property
    def shrink(self) -> bool:
        """Whether all do."""
        return float(self.roots[0].max()) < 1.0

    @cached_property
    def heat(self) -> Array:
        """Noise of a step in the velocities of the modes, (N - 1,)."""
        return 2.0 * (1.0 - self.beta) * self.clients.d + self.size**2 * self.clients.traces_by_mode

    def after(self, steps: int) -> tuple[Array, Array]:
        """Covariances of (position, velocity) that noise has left, and powers of the matrices, (N - 1, 2, 2).
        """
        known, total = self._doubled, self.noise
        while len(known) < steps.bit_length():
            power, total = known[-1]
            known.append((power @ power, total + around(power, total)))
        state, moved = np.zeros_like(total), np.broadcast_to(np.eye(2), total.shape)
        for bit in range(steps.bit_length()):
            if steps >> bit & 1:
                power, total = known[bit]
                state, moved = total + around(power, state), power @ moved
        return state, moved

    @cached_property
    def _doubled(self) -> list[tuple[Array, Array]]:
        """Powers of the matrices and the noise of 1, 2, 4, ... steps, as far as they were asked for."""
        return [(self.matrices, self.noise)]

    def settled(self, steps: int) -> Array:
        """The covariances `after` very many steps, once."""
        if steps not in self._settled:
            self._settled[steps] = self.after(steps)[0]
        return self._settled[steps]

    def given(self, state: Array, moved: Array, since: float = 0.0) -> Given:
        """What steps depend on; `since`: whatever is left of the start later on, too."""
        left = np.abs(moved[:, 0])
        if since:
            left = np.linalg.norm(moved, axis=(1, 2))[:, None] * np.full(2, self.largest_power)
        return Given(float(state[:, 0, 0].sum()) / self.clients.N,
                     float(left.max(axis=0) @ np.sqrt([self.clients.spread, self.velocity_spread])))

    @cached_property
    def noise(self) -> Array:
        """Covariances of a step's noise, (N - 1, 2, 2)."""
        push = np.array([self.size, 1.0])
        return self.heat[:, None, None] * np.outer(push, push)

    @cached_property
    def largest_power(self) -> float:
        """A bound of all powers' norms: M^n = U_n M - a b U_(n-1), |U_n| <= n |a|^(n-1)."""
        a = float(self.roots[0].max())
        most = max(1.0, 1.0 / (math.e * a * -math.log(a))) if a > 0.0 else 1.0
        return 1.0 + most * (float(np.linalg.norm(self.matrices, axis=(1, 2)).max()) + a * a)


def around(power: Array, state: Array) -> Array:
    """M S M'."""
    return power @ state @ power.swapaxes(1, 2)
