"""The coupling recursions written a second time: plainly, in norms instead of changes of squares."""

from __future__ import annotations

from math import cos, inf, pi, sin, sqrt

import numpy as np

C_P = 0.161393


def langevin(E, spread, h, m, L, d, tau, noise, M=None):
    """E after a step of the average."""
    q, r, G = (L + m) / 2, (L - m) / 2, tau * d * L**2
    A = abs(1 - h * q) * sqrt(E) + h * r * sqrt(E + spread)
    dP = sqrt(C_P * G * h**3)
    if M is not None:
        dP = min(dP, h**2 / 2 * (L * sqrt(L * d * tau) + tau * d * M))
    coupled = A**2 + 2 * A * dP + 2 / 3 * G * h**3 + h**2 * noise
    if h * L > 1:
        return coupled
    return min(coupled, ((1 - m * h) * E + h * (L - m) * spread + 2 * L * d * tau * h**2
                         + h**2 * (1 + h * L) * noise) / (1 + m * h))


class Known:
    """What the recursions take from constants of federated or global potentials."""

    def __init__(self, k, tau=1.0):
        self.m, self.L, self.d, self.N, self.tau = k.strong_convexity, k.smoothness, k.dim, k.n_clients, tau
        self.q, self.r = (self.L + self.m) / 2, (self.L - self.m) / 2
        p, v = k.weights, k.gradient_noise_traces
        self.Gamma = sqrt(p @ k.gradient_norms**2)
        self.Z, self.V = p**2 @ v, p @ v
        self.B = sqrt(self.d * tau / self.m)
        self.D = k.initial_distance
        self.start = min(k.initial_w2, self.D + self.B)

    def rho(self, h):
        return max(abs(1 - h * self.m), abs(1 - h * self.L))


def fa_ld(k, a, n_rounds, M=None):
    """Values of `theory.fa_ld.w2_recursion`."""
    c, s, K = Known(k, a.temperature), a.shared_noise, a.local_steps
    phi = 0.0 if a.participation is None else a.participation.variance_factor(c.N)
    E, R, found = c.start**2, c.D**2, [c.start]
    for number in range(n_rounds):
        R = min(R, (sqrt(E) + c.B) ** 2)
        S, Q = 0.0, R
        for step in range(K):
            h = float(a.schedule.at(number * K + step))
            R = min(R, (sqrt(E) + c.B) ** 2, Q)
            S = min(S, Q) if c.N > 1 else 0.0
            w = sqrt(min(R + S, Q))
            E, R, S, Q = (
                langevin(E, S, h, c.m, c.L, c.d, c.tau, c.Z, M),
                (abs(1 - h * c.q) * sqrt(R) + h * c.r * w) ** 2 + 2 * h * c.tau * c.d + h**2 * c.Z,
                (abs(1 - h * c.q) * sqrt(S) + h * c.r * w + h * c.Gamma) ** 2
                + 2 * h * c.tau * (1 - s) * (c.N - 1) * c.d + h**2 * (c.V - c.Z),
                (c.rho(h) * sqrt(Q) + h * c.Gamma) ** 2 + 2 * h * c.tau * c.d * (s + c.N * (1 - s))
                + h**2 * c.V)
        S, R = min(S, Q) if c.N > 1 else 0.0, min(R, (sqrt(E) + c.B) ** 2, Q)
        E, R = E + phi * S, min(R + phi * S, Q)
        found.append(sqrt(E))
    return np.array(found)


def fa_hmc(k, a, n_rounds, M=None):
    """Values of `theory.fa_hmc.w2_recursion`, for a constant step size."""
    c, rho, K, eta = Known(k), a.shared_noise, a.leapfrog_steps, float(a.schedule.largest)
    phi = 0.0 if a.participation is None else a.participation.variance_factor(c.N)
    angle = 2 * np.arcsin(eta * sqrt(c.m) / 2)
    factor, X = cos(K * angle), K * eta
    assert K * angle < pi / 2
    o = [eta**2 / 2] + [eta**2] * (K - 1)
    b = [o[j] * sin((K - j) * angle) / sin(angle) for j in range(K)]
    jumps = [c.L * sqrt(c.d) * eta**3 / 6]
    later = c.L * sqrt(c.d) * eta**3 / 3
    if M is not None:
        later = min(later, eta**4 / 12 * (M * sqrt(c.d * (c.d + 2)) + c.L * sqrt(c.L * c.d)))
    jumps += [later] * (K - 1)
    eps, N_sq, delta = [0.0], [0.0], [0.0]
    for j in range(1, K + 1):
        eps.append(sum((j - i) * jumps[i] for i in range(j))
                   + eta**2 * c.L * sum((j - i) * eps[i] for i in range(1, j)))
        N_sq.append(eta**4 * (j**2 / 4 + sum((j - i) ** 2 / 2 for i in range(1, j))))
        delta.append(sqrt(c.V * N_sq[j]) + eta**2 * c.L * sum((j - i) * delta[i] for i in range(1, j)))
    rem = eta**2 * c.L * sum((K - i) * delta[i] for i in range(1, K))
    heat, apart = c.d * (rho + c.N * (1 - rho)), c.d * (1 - rho) * (c.N - 1)
    E, R, found = c.start**2, c.D, [c.start]
    for _ in range(n_rounds):
        R = Q = min(R, sqrt(E) + c.B)
        s = 0.0
        for _ in range(a.local_steps):
            R = min(R, sqrt(E) + c.B, Q)
            s = min(s, Q) if c.N > 1 else 0.0
            w = min(sqrt(R**2 + s**2), Q)
            n, turned, spread = [0.0], [0.0], [s]
            for j in range(1, K + 1):
                h = (j * eta) ** 2 / 2
                other = eta**2 * sum((j - i) * (c.q * turned[i] + c.r * n[i]) for i in range(1, j))
                n.append(sqrt((j * eta) ** 2 * heat + (h * (c.Gamma + c.L * w)) ** 2)
                         + eta**2 * c.L * sum((j - i) * n[i] for i in range(1, j)))
                turned.append(sqrt((j * eta) ** 2 * apart + (h * (c.q * s + c.r * w + c.Gamma)) ** 2) + other)
                spread.append(sqrt((abs(1 - h * c.q) * s + h * (c.r * w + c.Gamma)) ** 2
                                   + (j * eta) ** 2 * apart) + other)
            drift = c.r * sum(factor * b[j] / cos(j * angle) * spread[j] ** 2 for j in range(K))
            new = (sqrt((sqrt(factor**2 * E + drift) + eps[K]) ** 2 + c.Z * N_sq[K]) + rem) ** 2
            if K == 1:
                new = min(new, langevin(E, s**2, eta**2 / 2, c.m, c.L, c.d, 1.0, c.Z, M))
            h, extra = X**2 / 2, eta**2 * c.L * sum((K - i) * n[i] for i in range(1, K)) + rem
            E, R, Q, s = (
                new,
                sqrt((abs(1 - h * c.q) * R + h * c.r * w) ** 2 + X**2 * c.d + c.Z * N_sq[K]) + extra,
                sqrt((c.rho(h) * Q + h * c.Gamma) ** 2 + X**2 * heat + c.V * N_sq[K]) + extra,
                sqrt(spread[K] ** 2 + (c.V - c.Z) * N_sq[K]) + rem)
        s, R = min(s, Q) if c.N > 1 else 0.0, min(R, sqrt(E) + c.B, Q)
        E, R = E + phi * s**2, min(sqrt(R**2 + phi * s**2), Q)
        found.append(sqrt(E))
    return np.array(found)


class Network:
    """What the recursions take from constants of components, and from a mixing matrix."""

    def __init__(self, k, W):
        self.mu, self.L, self.d, self.N = k.strong_convexity, k.smoothness, k.dim, k.n_clients
        self.q, self.r, N = (self.L + self.mu) / 2, (self.L - self.mu) / 2, self.N
        v = k.gradient_noise_traces
        self.v = v.sum()
        self.Gamma = sqrt((k.gradient_norms**2).mean())
        self.B, self.D, self.spread = sqrt(self.d / (N * self.mu)), k.initial_distance, k.initial_spread
        self.start = min(k.initial_w2, self.D + self.B)
        # an orthonormal basis of what sums to zero
        basis = np.linalg.svd(np.eye(N) - 1.0 / N)[0][:, :N - 1]
        self.modes, turn = np.linalg.eigh(basis.T @ W @ basis)
        self.by_mode = v @ (basis @ turn) ** 2
        self.smallest = np.linalg.eigvalsh(W)[0]

    def rW(self, size):
        return max(abs(1 - size * self.mu), abs(self.smallest - size * self.L))


def de_sgld(k, a, n_rounds, M=None):
    """Values of DE-SGLD's recursions, of the average and of the clients."""
    c = Network(k, a.mixing)
    E, R, s, Q = c.start**2, c.D, sqrt(c.spread), sqrt(c.D**2 + c.spread)
    sp, V, found = s, np.zeros(c.N - 1), [(c.start, sqrt(c.start**2 + c.spread))]
    for number in range(n_rounds):
        eta = float(a.schedule.at(number))
        R = min(R, sqrt(E) + c.B, Q)
        s = min(s, Q)
        w = min(sqrt(R**2 + s**2), Q)
        h, push = eta / c.N, eta * (c.r * w + c.Gamma)
        gW = np.abs(c.modes - eta * c.q).max(initial=0.0)
        one = sqrt((gW * s + push) ** 2 + (2 * eta * c.d * (c.N - 1) + eta**2 * c.by_mode.sum()) / c.N)
        V = (c.modes - eta * c.q) ** 2 * V + 2 * eta * c.d + eta**2 * c.by_mode
        sp = gW * sp + push
        two = sqrt(V.sum() / c.N) + sp
        E, R, Q, s = (
            langevin(E, s**2, h, c.N * c.mu, c.N * c.L, c.d, 1.0, c.v, M),
            sqrt((abs(1 - eta * c.q) * R + eta * c.r * w) ** 2 + 2 * eta * c.d / c.N + h**2 * c.v),
            sqrt((c.rW(eta) * Q + eta * c.Gamma) ** 2 + 2 * eta * c.d + eta**2 * c.v / c.N),
            0.0 if c.N == 1 else min(one, two if a.schedule.is_constant is False or gW < 1 else inf))
        found.append((sqrt(E), sqrt(E + min(s, Q) ** 2)))
    return np.array(found).T


def de_sghmc(k, a, n_rounds, M=None):
    """Values of DE-SGHMC's recursions, of the average and of the clients, for modes that shrink."""
    c, eta = Network(k, a.mixing), float(a.schedule.largest)
    beta = 1 - a.friction * eta
    lag, al = beta * eta / (1 - beta), eta**2 / (1 - beta)
    h, L, m = al / c.N, c.N * c.L, c.N * c.mu
    G, first = c.d * L**2, np.zeros((c.N, c.d)) if a.start_velocity is None else np.broadcast_to(
        a.start_velocity, (c.N, c.d))
    V, P = np.linalg.norm(first.mean(axis=0)), sqrt((first**2).sum(axis=1).mean())
    apart = sqrt(max(P**2 - V**2, 0.0))
    e, R, Q = c.start + lag * V, c.D + lag * V, sqrt(c.D**2 + c.spread)
    matrices = [np.array([[one - eta**2 * c.q, eta * beta], [-eta * c.q, beta]]) for one in c.modes]
    roots = np.array([sorted(np.abs(np.linalg.eigvals(one))) for one in matrices]).reshape(-1, 2)
    gaps = [abs(np.subtract(*np.linalg.eigvals(one))) for one in matrices]
    if c.N > 1:
        alpha, b, gain = roots[:, 1].max(), roots[:, 0].max(), 1.0
        other = max((2 * large / gap if gap else inf) for (_, large), gap in zip(roots, gaps, strict=True))
        if other * (1 - alpha) * (1 - b) < 1 - alpha:
            alpha, b, gain = 0.0, alpha, other
    covs, powers = [np.zeros((2, 2)) for _ in matrices], [np.eye(2) for _ in matrices]
    heats = [np.outer([eta, 1], [eta, 1]) * (2 * (1 - beta) * c.d + eta**2 * one) for one in c.by_mode]
    y = sp = 0.0
    found = []
    for _ in range(n_rounds + 1):
        if c.N == 1:
            s = 0.0
        else:
            left = np.abs(powers)[:, 0].max(axis=0) @ [sqrt(c.spread), apart]
            s = min(sqrt(sum(cov[0, 0] for cov in covs) / c.N) + left + sp, Q)
        ex = e + lag * V
        found.append((ex, sqrt(ex**2 + s**2)))
        near = min(R + lag * V, ex + c.B, Q)
        w = min(sqrt(near**2 + s**2), Q)
        far = sqrt(ex**2 + s**2)
        A = abs(1 - al * c.q) * e + al * c.q * lag * V + al * c.r * far
        dP = sqrt(C_P * G * h**3)
        if M is not None:
            dP = min(dP, h**2 / 2 * (L * sqrt(L * c.d) + c.d * M))
        slope = min(c.L * w, sqrt(c.L * c.d / c.N) + c.L * far)
        push = eta**2 * (c.r * w + c.Gamma)
        e, R, V, Q, P = (
            sqrt(A**2 + 2 * A * dP + 2 / 3 * G * h**3 + h**2 * c.v),
            sqrt((abs(1 - al * c.q) * R + al * c.q * lag * V + al * c.r * w) ** 2 + 2 * h * c.d
                 + h**2 * c.v),
            sqrt((beta * V + eta * slope) ** 2 + 2 * (1 - beta) * c.d / c.N + (eta / c.N) ** 2 * c.v),
            sqrt((c.rW(eta**2) * Q + eta**2 * c.Gamma + eta * beta * P) ** 2
                 + eta**2 * (2 * (1 - beta) * c.d + eta**2 * c.v / c.N)),
            sqrt((beta * P + eta * (c.Gamma + c.L * w)) ** 2 + 2 * (1 - beta) * c.d + eta**2 * c.v / c.N))
        if c.N > 1:
            y = alpha * y + gain * push
            sp = b * sp + y
            covs = [one @ cov @ one.T + heat for one, cov, heat in zip(matrices, covs, heats, strict=True)]
            powers = [one @ power for one, power in zip(matrices, powers, strict=True)]
    assert m > 0
    return np.array(found).T


def stale(k, a, ages, M=None):
    """Values of `theory.stale.w2_recursion`, for one schedule of ages."""
    c, h = Known(k), float(a.schedule.largest)
    G, v = c.d * c.L**2, float(k.gradient_noise_traces.max())
    e, moves = [c.start], []
    for number, age in enumerate(ages):
        D = min(sqrt(2 * G * h**3 * (age + 1 / 3)), h * sqrt(2 * c.L * c.d))
        lag = sum(moves[number - age:number]) + h * sqrt(v * age)
        moves.append(h * c.L * e[number - age] + D)
        if age:
            e.append(sqrt((c.rho(h) * e[-1] + h * c.L * lag + D) ** 2 + h**2 * v))
        elif max(ages) == 0:
            e.append(sqrt(langevin(e[-1] ** 2, 0.0, h, c.m, c.L, c.d, 1.0, v, M)))
        else:
            dP = sqrt(C_P * G * h**3)
            if M is not None:
                dP = min(dP, h**2 / 2 * (c.L * sqrt(c.L * c.d) + c.d * M))
            A = c.rho(h) * e[-1]
            e.append(sqrt(A**2 + 2 * A * dP + 2 / 3 * G * h**3 + h**2 * v))
    return np.array(e)
