"""The arguments of the papers' proofs, iterated to their limits: what `losses.py` puts into its ladders.

A level has all repairs up to it, and is a bound for all strongly convex and smooth clients with exact
gradients; docs/losses_federated.md and docs/losses_gossip.md say why. E is the square of a bound of W2, R of
the average's distance to the minimizer, Q of all clients' and S of their spread, as in `theory.recursions`.
Written plainly, apart from `theory`, which the last level is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, nan, sin, sqrt
from typing import Any

import numpy as np

import fedsim as fs
import theory

PAIR = fs.Quadratic(hessians=[[1.0, 4.0], [2.0, 3.0]], minimizers=[[0.0, 1.0], [1.0, 0.0]])
RING = fs.Quadratic.from_components([[1.0, 4.0], [2.0, 3.0]] * 3, [[0.0, 1.0], [1.0, 0.0]] * 3)
SINGLE = fs.Quadratic(hessians=[[1.0, 4.0]], minimizers=[[0.0, 0.0]])
ALL = fs.FALD(0.02, 5, shared_noise=0.25)
DRAWN = fs.FALD(0.02, 5, shared_noise=0.25, participation=fs.Participation(1, replace=False))
LEAPS = fs.FAHMC(0.01, 10, local_steps=5, shared_noise=0.25)
GOSSIP = fs.DESGLD(0.02, fs.network.ring(6))
MOMENTUM = fs.DESGHMC(sqrt(0.02), 1.0 / sqrt(0.02), fs.network.ring(6))
C_P = 0.161393
"""Share of the diffusion's wandering in a step that can be foreseen, at most."""
UNROUNDED, COUNTED, FOLLOWED, SPREAD, SECTOR, NORMS, DIFFUSION, FORESEEN, ENERGY = range(1, 10)
"""FA-LD's repairs in their order; a level has all up to it."""


class Known:
    """What a bound knows: constants of clients (of components for gossip), and of the start."""

    def __init__(self, problem: Any, algorithm: Any) -> None:
        k = theory.constants(problem, algorithm)
        self.m, self.L, self.d, self.N = k.strong_convexity, k.smoothness, k.dim, int(k.need("n_clients"))
        self.tau: float = getattr(algorithm, "temperature", 1.0)
        self.q, self.r = (self.L + self.m) / 2, (self.L - self.m) / 2
        p = np.full(self.N, 1 / self.N) if k.convention == "components" else k.weights
        self.Gamma, self.B = sqrt(p @ k.gradient_norms**2), sqrt(self.d * self.tau / self.m)
        self.D, self.facts = float(k.need("initial_distance")), k

    def rho(self, h: float) -> float:
        """What a gradient step multiplies distances by at most."""
        return max(abs(1 - h * self.m), abs(1 - h * self.L))


def limit(turn: Callable[..., tuple[float, ...]], *state: float) -> tuple[float, ...]:
    """The state that `turn` tends to."""
    for _ in range(100_000):
        after = turn(*state)
        if all(abs(new - old) <= 1e-14 * new for new, old in zip(after, state, strict=True)):
            break
        state = after
    return after


def average_step(c: Known, level: int, h: float, E: float, S: float, M: float | None, m: float, L: float,
                 ) -> float:
    """E >= ||average - diffusion||^2 after a step of size h of potentials with m and L, at spread S."""
    q, r, heat = (L + m) / 2, (L - m) / 2, c.tau * c.d
    wander = 2 / 3 * heat * L**2 * h**3
    if level < DIFFUSION:
        wander = (h * L) ** 2 * (2 * h**2 * heat * L**2 / m + 16 * h * heat)
    A_sq = (abs(1 - h * q) * sqrt(E) + h * r * sqrt(E + S)) ** 2
    if level < SECTOR:
        A_sq = (1 - h * m) * E + 4 * h * L * S
    if level < NORMS:
        return (1 - h * m / 2) / (1 - h * m) * A_sq + (2 - h * m) / (h * m) * wander
    if level < FORESEEN:
        return (sqrt(A_sq) + sqrt(wander)) ** 2
    foreseen = sqrt(C_P * heat * L**2 * h**3)
    if M is not None:
        foreseen = min(foreseen, h**2 / 2 * (L * sqrt(L * heat) + heat * M))
    coupled = A_sq + 2 * sqrt(A_sq) * foreseen + wander
    if level < ENERGY or h * L > 1:
        return coupled
    return min(coupled, ((1 - m * h) * E + h * (L - m) * S + 2 * L * heat * h**2) / (1 + m * h))


def fa_ld(algorithm: Any, level: int, M: float | None = None) -> float:
    """Limit of FA-LD's coupling with the repairs up to `level`; E, R, S and Q as in `theory.fa_ld`."""
    c, h, K, s = Known(PAIR, algorithm), algorithm.step_size, algorithm.local_steps, algorithm.shared_noise
    some = algorithm.participation
    phi = some.variance_factor(c.N) if some else 0.0
    uniform = 14 * c.d * c.L**2 * theory.fa_ld.setting(c.facts, algorithm).H
    heat = 2 * h * c.tau * c.d
    all_heat = heat * (s + c.N * (1 - s))

    def apart(count: int, slopes: Sequence[float], S: float) -> float:
        if level < COUNTED:
            count = max(K - 1, count)
        if level < SPREAD:
            moved = sum(slopes) if level >= FOLLOWED else count * uniform
            return 2 * count * (h**2 * moved + all_heat)
        return S

    def turn(E: float, R: float) -> tuple[float, float]:
        slopes: list[float] = []
        S = 0.0
        if level >= SPREAD:
            R = min(R, (sqrt(E) + c.B) ** 2)
        Q = R
        for j in range(K):
            if level >= SPREAD:
                R, S = min(R, (sqrt(E) + c.B) ** 2, Q), min(S, Q)
            w = sqrt(min(R + S, Q))
            E = average_step(c, level, h, E, apart(j, slopes, S), M, c.m, c.L)
            slopes.append((c.L * sqrt(Q) + c.Gamma) ** 2)
            R, S, Q = ((abs(1 - h * c.q) * sqrt(R) + h * c.r * w) ** 2 + heat,
                       (abs(1 - h * c.q) * sqrt(S) + h * c.r * w + h * c.Gamma) ** 2
                       + heat * (1 - s) * (c.N - 1),
                       (c.rho(h) * sqrt(Q) + h * c.Gamma) ** 2 + all_heat)
        if level < SPREAD:
            return E + phi * apart(K, slopes, S), Q
        S, R = min(S, Q), min(R, (sqrt(E) + c.B) ** 2, Q)
        return E + phi * S, min(R + phi * S, Q)

    return sqrt(limit(turn, c.B**2, c.D**2)[0])


def fa_hmc(level: int, M: float | None = None) -> float:
    """Limit of FA-HMC's coupling: 1 moments followed, 2 spread, 3 sector, 4 norms, 5 whole trajectories."""
    c, eta, K, s = Known(PAIR, LEAPS), LEAPS.step_size, LEAPS.leapfrog_steps, LEAPS.shared_noise
    X, paper = K * eta, theory.fa_hmc.setting(Known(PAIR, LEAPS).facts, LEAPS)
    heat, gone = c.d * (s + c.N * (1 - s)), c.d * (1 - s) * (c.N - 1)
    j = np.arange(K + 1)
    sums = eta**2 * np.tril(j[:, None] - j)  # sums @ x: eta^2 sum_{i<k} (k-i) x_i
    inner, one, time_sq = sums * (j > 0), np.eye(K + 1), (j * eta) ** 2
    fast, slow = np.linalg.inv(one - c.L * inner), np.linalg.inv(one - c.q * inner)
    angle = 2 * np.arcsin(eta * sqrt(c.m) / 2)
    shrink = cos(K * angle) if theory.fa_hmc.Contraction(c.m, c.L, eta, K).certified else nan
    reach = eta**2 * np.where(j, 1.0, 0.5) * np.sin((K - j) * angle) / sin(angle)
    later = c.L * sqrt(c.d) * eta / 3
    if M is not None:
        later = min(later, eta**2 / 12 * (M * sqrt(c.d * (c.d + 2)) + c.L * sqrt(c.L * c.d)))
    jumps = np.where(j, later, c.L * sqrt(c.d) * eta / 6)
    error = np.linalg.solve(one - c.L * sums, sums @ jumps)[K]

    def update(E: float, R: float, S: float, Q: float) -> tuple[float, ...]:
        near = sqrt(min(R + S, Q)) if level > 1 else sqrt(Q)
        slope, push = c.Gamma + c.L * near, c.Gamma + c.r * near
        n = fast @ np.sqrt(time_sq * heat + (time_sq / 2 * slope) ** 2)
        turned = slow @ (c.r * inner @ n + np.sqrt(
            time_sq * gone + (time_sq / 2 * (c.q * sqrt(S) + push)) ** 2))
        spreads = (np.sqrt((abs(1 - time_sq / 2 * c.q) * sqrt(S) + time_sq / 2 * push) ** 2 + time_sq * gone)
                   + inner @ (c.q * turned + c.r * n)) ** 2
        h, swept = X**2 / 2, c.L * (inner @ n)[K]
        return (coupled(E, S, slope, shrink * c.r * float((reach / np.cos(j * angle) * spreads)[:K].sum())),
                (sqrt((abs(1 - h * c.q) * sqrt(R) + h * c.r * near) ** 2 + 2 * h * c.d) + swept) ** 2,
                spreads[K], (sqrt((c.rho(h) * sqrt(Q) + h * c.Gamma) ** 2 + 2 * h * heat) + swept) ** 2)

    def coupled(E: float, S: float, slope: float, drift: float) -> float:
        if level == 5:
            return (sqrt(shrink**2 * E + drift) + error) ** 2
        own, target, momentum = slope**2 / c.L + heat, paper.target_error, X**6 * c.L**2 * heat
        A_sq = (abs(1 - X**2 / 2 * c.q) * sqrt(E) + X**2 / 2 * c.r * sqrt(E + S)) ** 2
        if level == 4:
            numerical = X**4 * sqrt(c.L**3) * (sqrt(own / 72) + sqrt(target / 144))
            return (sqrt(A_sq + momentum / 9) + numerical) ** 2
        rest = momentum / 8 + X**6 * c.L**3 / (9 * c.m) * (own + target)
        if level == 3:
            return (1 - c.m * X**2 / 4) / (1 - c.m * X**2 / 2) * A_sq + rest
        return (1 - c.m * X**2 / 4) * E + 15 / 7 * c.L * X**2 * S + rest

    def turn(E: float, R: float) -> tuple[float, ...]:
        S, Q = 0.0, R
        for _ in range(LEAPS.local_steps):
            if level > 1:
                R, S = min(R, (sqrt(E) + c.B) ** 2, Q), min(S, Q)
            E, R, S, Q = update(E, R, S, Q)
        return E, min(R, (sqrt(E) + c.B) ** 2, Q) if level > 1 else Q

    E, R = limit(turn, c.B**2, c.D**2)
    moments = [(c.Gamma + c.L * sqrt(R)) ** 2] * c.N
    if level > 1:
        return sqrt(E)
    return theory.fa_hmc.w2_bound(c.facts, LEAPS, n_rounds=1, gradient_moments=moments).floor or nan


def gossip(level: int, M: float | None = None, momentum: bool = False) -> tuple[float, float]:
    """Limits for average and clients of DE-SGLD; `momentum`: of DE-SGHMC at friction 1/step_size.

    Levels: 1 moments followed, 2 empty halves (DE-SGHMC), 3 noises in squares, 4 spread followed, 5 Lemma 8
    by norms, 6 sector, 7 one coupling.
    """
    c, W = Known(RING, GOSSIP), GOSSIP.mixing
    eta, modes = GOSSIP.step_size, np.linalg.eigvalsh(W + 2 * np.ones((c.N, c.N)) / c.N)[:-1]
    gap, heat, reach = 1 - np.abs(modes).max(), 2 * eta * c.d, c.B / sqrt(c.N)
    slowest, rW = np.abs(modes - eta * c.q).max(), max(1 - eta * c.m, eta * c.L - np.linalg.eigvalsh(W)[0])
    lasting = sqrt(sum(heat / (1 - (modes - eta * c.q) ** 2)) / c.N)

    def turn(E: float, R: float, s: float, sp: float, Q: float) -> tuple[float, ...]:
        if level == 7:
            R = min(R, sqrt(E) + reach, Q)
        s = min(s, Q)
        w = min(sqrt(R**2 + s**2), Q)
        push = eta * (c.r * w + c.Gamma)
        return (average_step(c, ENERGY, eta / c.N, E, s**2, M, c.N * c.m, c.N * c.L),
                sqrt((abs(1 - eta * c.q) * R + eta * c.r * w) ** 2 + heat / c.N),
                min(sqrt((slowest * s + push) ** 2 + heat * (c.N - 1) / c.N), lasting + slowest * sp + push),
                slowest * sp + push, sqrt((rW * Q + eta * c.Gamma) ** 2 + heat))

    E, _, s, _, Q = limit(turn, c.B**2, c.D, 1.0, 1.0, c.D + 1.0)
    if level == 7:
        return sqrt(E), sqrt(E + s**2)
    slope, euler = c.L * Q + c.Gamma, 1.65 * c.L / c.m * sqrt(eta * c.d / c.N)
    drift, inner, outer = eta * slope / gap, c.m * (1 - eta * c.L / 2), 1 + eta * c.L
    push = sqrt(eta / inner + outer**2 / inner**2) * c.L
    extra = None
    if level < 3 and momentum:
        s = sqrt(3 - level) * sqrt(drift**2 + heat / gap**2)
        push *= sqrt(3 - level)
    elif level < 3:
        noise = sqrt(heat / (1 - (1 - gap) ** 2))
        s, extra = 2 * sqrt(drift**2 + noise**2), 2 * (drift + noise)
    elif level == 3:
        s = drift + sqrt(sum(heat / (1 - modes**2)) / c.N)
    elif level > 4:
        push = c.L / c.m if level == 5 else c.r / sqrt(c.m * c.L)
    return float(euler + push * s), float(euler + push * s + (s if extra is None else extra))
