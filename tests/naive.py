"""Slow twins of the compiled kernels: plain Python, one number at a time.

Written from the papers and from the documented layout of the random streams, not from the kernels.
Nothing here is shared with the code it judges, except the tags that say which stream is which.
"""

from __future__ import annotations

import math

import naive_regression
import numpy as np

from fedsim.random.streams import GRADIENT_NOISE, OWN_NOISE, PARTICIPATION, SHARED_NOISE, START

MASK = 0xFFFFFFFF


def philox(counter, key):
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011), on Python integers."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k0, q & MASK, (p >> 32) ^ d ^ k1, p & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return a, b, c, d


def box_muller(w0, w1, w2, w3):
    """Two normals: 52 bits of radius uniform in (0, 1], 2 bits of quadrant, 52 of an angle within it."""
    uniform = 1.0 - (((w0 << 32) | w1) >> 12) * 2.0**-52
    bits = (w2 << 32) | w3
    quadrant, fraction = bits >> 62, ((bits >> 10) & (2**52 - 1)) * 2.0**-52
    angle = (fraction - 0.5) * math.pi / 2
    radius = math.sqrt(-2.0 * math.log(uniform))
    cos, sin = math.cos(angle), math.sin(angle)
    for _ in range(quadrant):  # turn by a quarter
        cos, sin = -sin, cos
    return radius * cos, radius * sin


def box_muller_single(w0, w1):
    """The same from two words, whose integers are first rounded to single precision."""
    uniform = float(np.float32(np.float32(w0 >> 1) + np.float32(0.5))) * 2.0**-31
    angle = (float(np.float32(w1 & 0x3FFFFFFF)) * 2.0**-30 - 0.5) * math.pi / 2
    radius = math.sqrt(-2.0 * math.log(uniform))
    cos, sin = math.cos(angle), math.sin(angle)
    for _ in range(w1 >> 30):
        cos, sin = -sin, cos
    return radius * cos, radius * sin


class Streams:
    """The random numbers of one replica."""

    def __init__(self, seed, replica, single=False):
        self.key = (seed & MASK, seed >> 32)
        self.replica, self.single = replica, single

    def words(self, tag, position, client, place):
        return philox(((client << 16) | place, position, self.replica, tag), self.key)

    def normals(self, tag, position, client, rows):
        """`rows` normals; a call of Philox gives two of them (four in single precision)."""
        out, place = [], 0
        while len(out) < rows:
            words = self.words(tag, position, client, place)
            if self.single:
                out += [*box_muller_single(*words[:2]), *box_muller_single(*words[2:])]
            else:
                out += box_muller(*words)
            place += 1
        return out[:rows]

    def of_step(self, tag, step, client, dim):
        """Noise of one step. So many steps share a draw that none of its normals is wasted."""
        per_call = 4 if self.single else 2
        together = per_call // math.gcd(dim, per_call)
        drawn = self.normals(tag, step // together, client, together * dim)
        first = step % together * dim
        return drawn[first:first + dim]

    def uniform(self, round, draw):
        """In [0, 1) with 53 bits."""
        words = self.words(PARTICIPATION, round, draw, 0)
        return (((words[0] << 32) | words[1]) >> 11) * 2.0**-53


def taking_part(streams, round, chosen, weights):
    """Who works in a round, one drawn twice twice, and the share of each."""
    everyone = list(range(len(weights)))
    if chosen is None:
        return everyone, list(weights)
    if hasattr(chosen, "sets"):
        members = sorted(int(c) for c in chosen.sets[round % len(chosen.sets)])
        total = sum(weights[c] for c in members)
        return members, [weights[c] / total for c in members]
    if hasattr(chosen, "probabilities"):
        chances = [float(q) for q in np.broadcast_to(chosen.probabilities, len(weights))]
        answering = [c for c in everyone if streams.uniform(round, c) < chances[c]]
        total = sum(weights[c] for c in answering)
        return answering, [weights[c] / (chances[c] if chosen.unbiased else total) for c in answering]
    drawn = draw_clients(streams, round, chosen, weights)
    return drawn, [1.0 / len(drawn)] * len(drawn)


def averaged(server, local, drawn, shares):
    """The server's value, moved towards each client by its share."""
    return [server[i] + sum(share * (local[c][i] - server[i]) for c, share in zip(drawn, shares, strict=True))
            for i in range(len(server))]


def draw_clients(streams, round, scheme, weights):
    """The clients of a round. Scheme I inverts the cumulative weights, scheme II shuffles."""
    drawn, n_clients = [], len(weights)
    if scheme.replace:
        for slot in range(scheme.n_active):
            u, below, client = streams.uniform(round, slot), weights[0], 0
            while u >= below and client < n_clients - 1:
                client += 1
                below += weights[client]
            drawn.append(client)
        return drawn
    pool = list(range(n_clients))
    for slot in range(scheme.n_active):
        other = slot + int(streams.uniform(round, slot) * (n_clients - slot))
        pool[slot], pool[other] = pool[other], pool[slot]
        drawn.append(pool[slot])
    return drawn


def hessian(problem, client):
    """A_c as a list of rows, from whatever was given."""
    given, dim = problem.hessians, problem.dim
    if given.ndim == 3:
        return [[float(entry) for entry in row] for row in given[client]]
    diagonal = [float(given[client])] * dim if given.ndim == 1 else [float(entry) for entry in given[client]]
    return [[diagonal[i] if i == j else 0.0 for j in range(dim)] for i in range(dim)]


def exact_gradient(problem, client, x):
    """A_c (x - b_c), or the gradient of a regression."""
    if hasattr(problem, "features"):
        return naive_regression.exact_gradient(problem, client, x)
    dim, matrix = len(x), hessian(problem, client)
    gap = [x[j] - float(problem.minimizers[client, j]) for j in range(dim)]
    return [sum(matrix[i][j] * gap[j] for j in range(dim)) for i in range(dim)]


def stochastic_gradient(problem, streams, client, step, x, draw=0):
    """With its noise. The factor of a covariance is not unique: the problem's own is used."""
    if hasattr(problem, "features"):
        return naive_regression.stochastic_gradient(problem, streams, client, step, draw, x)
    dim, gradient, noise = len(x), exact_gradient(problem, client, x), problem.gradient_noise
    if noise is None:
        return gradient
    z = streams.normals(GRADIENT_NOISE + draw, step, client, dim)
    if np.ndim(noise) == 0:
        return [gradient[i] + float(noise) * z[i] for i in range(dim)]
    factor = problem._arrays().factors[client]
    return [gradient[i] + sum(float(factor[i, j]) * z[j] for j in range(dim)) for i in range(dim)]


def first_point(start, dim, seed, replica):
    """The start: the origin, a point, or one draw of a Gaussian by its symmetric square root."""
    if start is None:
        return [0.0] * dim
    if not hasattr(start, "cov"):
        return [float(entry) for entry in start]
    values, vectors = np.linalg.eigh(start.cov)
    root = vectors @ np.diag(np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
    z = Streams(seed, replica).normals(START, 0, 0, dim)
    return [float(start.mean[i]) + sum(float(root[i, j]) * z[j] for j in range(dim)) for i in range(dim)]


def fa_ld(problem, algorithm, n_rounds, seed, replica, start=None, single=False):
    """FA-LD, Algorithm 4 (Algorithms 2 and 3 without participation): server values (n_rounds + 1, d)."""
    streams = Streams(seed, replica, single)
    weights = [float(weight) for weight in problem.weights]
    dim, tau, shared = problem.dim, algorithm.temperature, algorithm.shared_noise
    server = first_point(start, dim, seed, replica)
    path = [server]
    for round in range(n_rounds):
        drawn, shares = taking_part(streams, round, algorithm.participation, weights)
        local = {client: list(server) for client in drawn}
        for step in range(round * algorithm.local_steps, (round + 1) * algorithm.local_steps):
            eta = float(algorithm.schedule.at(step))
            common = streams.of_step(SHARED_NOISE, step, 0, dim)
            for client, x in local.items():
                gradient = stochastic_gradient(problem, streams, client, step, x)
                own = streams.of_step(OWN_NOISE, step, client, dim)
                local[client] = [
                    x[i] - eta * gradient[i] + math.sqrt(2 * eta * tau * shared) * common[i]
                    + math.sqrt(2 * eta * tau * (1 - shared) / weights[client]) * own[i]
                    for i in range(dim)]
        server = averaged(server, local, drawn, shares)
        path.append(server)
    return np.array(path)
