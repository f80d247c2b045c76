"""W2 to the target with 60 digits, by plain recursions written apart from `theory.exact`.

A chain is an affine map (M, v, Q): x -> M x + v + noise of covariance Q. A round of FA-LD or FA-HMC is put
together step by step, a step of DE-SGLD or DE-SGHMC is written down for all clients; maps are composed one
after the other, or squared where the step size is constant. The numbers of the setting are taken as the
binary fractions that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpmath import mp

import fedsim as fs
from fedsim.interfaces import start_of

DIGITS = 60
Affine = tuple[Any, Any, Any]


class NotRedone(ValueError):
    """There is no recursion for this algorithm here."""


_to_mp = np.frompyfunc(mp.mpf, 1, 1)


def many_digits(values: Any) -> np.ndarray:
    """The same numbers as an array of mpmath numbers."""
    return np.asarray(_to_mp(np.asarray(values, dtype=np.float64)), dtype=object)


def _eye(size: int) -> np.ndarray:
    return many_digits(np.eye(size))


def _zeros(*shape: int) -> np.ndarray:
    return many_digits(np.zeros(shape))


def after(second: Affine, first: Affine) -> Affine:
    """`first`, then `second`."""
    return (second[0] @ first[0], second[0] @ first[1] + second[1],
            second[0] @ first[2] @ second[0].T + second[2])


def power(one: Affine, times: int) -> Affine:
    """`one` so many times, by squaring."""
    size = len(one[1])
    result: Affine = (_eye(size), _zeros(size), _zeros(size, size))
    while times:
        if times % 2:
            result = after(one, result)
        one, times = (after(one, one), times // 2) if times > 1 else (one, 0)
    return result


def _eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = mp.eigsy(mp.matrix(((matrix + matrix.T) / 2).tolist()))
    size = len(matrix)
    return (np.array([values[i] for i in range(size)], dtype=object),
            np.array([[vectors[i, j] for j in range(size)] for i in range(size)], dtype=object))


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = _eigen(matrix)
    roots = np.array([mp.sqrt(max(value, mp.mpf(0))) for value in values], dtype=object)
    return (vectors * roots) @ vectors.T


def w2(mean: np.ndarray, cov: np.ndarray, other_mean: np.ndarray, other_cov: np.ndarray) -> Any:
    """W2 between two Gaussians by the trace formula, which 60 digits can afford."""
    root = _root(other_cov)
    values, _ = _eigen(root @ cov @ root)
    overlap = sum((mp.sqrt(max(value, mp.mpf(0))) for value in values), mp.mpf(0))
    total = ((mean - other_mean) ** 2).sum() + np.trace(cov) + np.trace(other_cov) - 2 * overlap
    return mp.sqrt(max(total, mp.mpf(0)))


def _inverse(matrix: np.ndarray) -> np.ndarray:
    size, found = len(matrix), mp.inverse(mp.matrix(matrix.tolist()))
    return np.array([[found[i, j] for j in range(size)] for i in range(size)], dtype=object)


class _Problem:
    """A `fedsim.Quadratic` with many digits."""

    def __init__(self, problem: Any) -> None:
        if not isinstance(problem, fs.Quadratic):
            raise NotRedone(f"no 60-digit law for {type(problem).__name__}")
        self.N, self.d = problem.n_clients, problem.dim
        self.hessians, self.minimizers = many_digits(problem.dense_hessians), many_digits(problem.minimizers)
        self.weights = many_digits(problem.weights)
        noise = problem.noise_covariances
        self.noise = _zeros(self.N, self.d, self.d) if noise is None else many_digits(noise)
        self.pulls = [hessian @ point for hessian, point in zip(self.hessians, self.minimizers, strict=True)]

    def target(self, temperature: float) -> tuple[np.ndarray, np.ndarray]:
        curvature = sum(weight * hessian for weight, hessian in zip(self.weights, self.hessians, strict=True))
        inverse = _inverse(curvature)
        pull = sum(weight * pull for weight, pull in zip(self.weights, self.pulls, strict=True))
        return inverse @ pull, mp.mpf(temperature) * inverse


def _langevin(p: _Problem, algorithm: Any, c: int, eta: Any) -> tuple[Any, ...]:
    """Map, shift, own noise and factor of the common noise of a local step of FA-LD."""
    tau, shared = mp.mpf(algorithm.temperature), mp.mpf(algorithm.shared_noise)
    own = 2 * eta * tau * (1 - shared) / p.weights[c] * _eye(p.d) + eta**2 * p.noise[c]
    return _eye(p.d) - eta * p.hessians[c], eta * p.pulls[c], own, mp.sqrt(2 * eta * tau * shared) * _eye(p.d)


def _hamiltonian(p: _Problem, algorithm: Any, c: int, eta: Any) -> tuple[Any, ...]:
    """The same of an update of FA-HMC: leapfrogs of (q, p) one by one."""
    d, one, hessian, pull, half = p.d, _eye(p.d), p.hessians[c], p.pulls[c], eta / 2
    near = one - eta * half * hessian
    move = np.block([[near, eta * one], [-half * (hessian + hessian @ near), near]])
    shift = np.concatenate([eta * half * pull, eta * pull - half * hessian @ (eta * half * pull)])
    before, later = np.vstack([-eta * half * one, -half * near]), np.vstack([0 * one, -half * one])
    noise = before @ p.noise[c] @ before.T + later @ p.noise[c] @ later.T
    total = power((move, shift, noise), algorithm.leapfrog_steps)
    reach, shared = total[0][:d, d:], mp.mpf(algorithm.shared_noise)
    own = (1 - shared) / p.weights[c] * (reach @ reach.T) + total[2][:d, :d]
    return total[0][:d, :d], total[1][:d], own, mp.sqrt(shared) * reach


def _federated_round(p: _Problem, algorithm: Any, number: int) -> Affine:
    """The server's value from one communication to the next, every client stepped on its own."""
    step = _langevin if isinstance(algorithm, fs.FALD) else _hamiltonian
    maps, shifts = [_eye(p.d)] * p.N, [_zeros(p.d)] * p.N
    cov = [[_zeros(p.d, p.d)] * p.N for _ in range(p.N)]
    K, known = algorithm.local_steps, None
    for k in range(number * K, (number + 1) * K):
        if known is None or not algorithm.schedule.is_constant:
            eta = mp.mpf(float(algorithm.schedule.at(k)))
            known = [step(p, algorithm, c, eta) for c in range(p.N)]
        cov = [[known[c][0] @ cov[c][e] @ known[e][0].T + known[c][3] @ known[e][3].T
                + (known[c][2] if c == e else 0) for e in range(p.N)] for c in range(p.N)]
        shifts = [known[c][0] @ shifts[c] + known[c][1] for c in range(p.N)]
        maps = [known[c][0] @ maps[c] for c in range(p.N)]
    w = p.weights
    return (sum(w[c] * maps[c] for c in range(p.N)), sum(w[c] * shifts[c] for c in range(p.N)),
            sum(w[c] * w[e] * cov[c][e] for c in range(p.N) for e in range(p.N)))


def _blocks(parts: Sequence[np.ndarray]) -> np.ndarray:
    d = len(parts[0])
    whole = _zeros(len(parts) * d, len(parts) * d)
    for i, part in enumerate(parts):
        whole[i * d:(i + 1) * d, i * d:(i + 1) * d] = part
    return whole


def _gossip_step(p: _Problem, algorithm: Any) -> Affine:
    """One step of all clients of DE-SGLD, or of (positions, velocities) of DE-SGHMC."""
    eta, w, one = mp.mpf(float(algorithm.schedule.largest)), p.weights, _eye(p.N * p.d)
    slope = _blocks([w[c] * p.hessians[c] for c in range(p.N)])
    pull = np.concatenate([w[c] * p.pulls[c] for c in range(p.N)])
    noise = _blocks([w[c] ** 2 * p.noise[c] for c in range(p.N)])
    mixing = np.kron(many_digits(algorithm.mixing), _eye(p.d))
    if isinstance(algorithm, fs.DESGLD):
        return mixing - eta * slope, eta * pull, 2 * eta * one + eta**2 * noise
    friction = mp.mpf(algorithm.friction)
    kept = (1 - friction * eta) * one
    kick = 2 * friction * eta * one + eta**2 * noise
    enters = np.vstack([eta * one, one])
    return (np.block([[mixing - eta**2 * slope, eta * kept], [-eta * slope, kept]]),
            np.concatenate([eta**2 * pull, eta * pull]), enters @ kick @ enters.T)


def _begin(p: _Problem, problem: Any, algorithm: Any, start: Any) -> tuple[np.ndarray, np.ndarray]:
    mean, cov = start_of(problem, algorithm, start)
    wide = _zeros(p.d, p.d) if cov is None else many_digits(np.diag(cov) if cov.ndim == 1 else cov)
    if isinstance(algorithm, (fs.FALD, fs.FAHMC)):
        return many_digits(mean), wide
    points = many_digits(np.broadcast_to(mean, (p.N, p.d))).reshape(-1)
    wide = np.kron(many_digits(np.ones((p.N, p.N))), wide)
    if isinstance(algorithm, fs.DESGLD):
        return points, wide
    speeds = many_digits(algorithm.start_velocities(problem)).reshape(-1)
    full = _zeros(2 * len(points), 2 * len(points))
    full[:len(points), :len(points)] = wide
    return np.concatenate([points, speeds]), full


def _reader(p: _Problem, algorithm: Any, clients: bool) -> Callable[[Any, Any], list[tuple[Any, Any]]]:
    """The laws whose mean distance is meant: the average, or every client."""
    if isinstance(algorithm, (fs.FALD, fs.FAHMC)):
        return lambda mean, cov: [(mean, cov)]
    width = len(_gossip_step(p, algorithm)[1])
    views = []
    for pick in (np.eye(p.N) if clients else np.full((1, p.N), 1.0)):
        view = _zeros(p.d, width)
        view[:, :p.N * p.d] = np.kron(many_digits(pick[None]), _eye(p.d)) / (1 if clients else p.N)
        views.append(view)
    return lambda mean, cov: [(view @ mean, view @ cov @ view.T) for view in views]


def exact_w2(problem: Any, algorithm: Any, start: Any, rounds: Sequence[int], *,
             clients: bool = False) -> list[Any]:
    """W2 to the target at `rounds`, of the average or (`clients`) the mean over clients, 60 digits.

    Raises
    ------
    NotRedone
        For what has no recursion here: participation, debiasing, other algorithms, changing gossip steps.

    Examples
    --------
    >>> problem = fs.Quadratic([2.0], [[1.0]])
    >>> mp.nstr(exact_w2(problem, fs.FALD(0.25), None, [1])[0], 20)
    '0.5'
    """
    gossip = isinstance(algorithm, (fs.DESGLD, fs.DESGHMC))
    if not gossip and not isinstance(algorithm, (fs.FALD, fs.FAHMC)):
        raise NotRedone(f"no 60-digit law for {type(algorithm).__name__}")
    if any(getattr(algorithm, name, None) is not None for name in ("participation", "debias")):
        raise NotRedone("no 60-digit law with participation or debiasing")
    constant = algorithm.schedule.is_constant
    if gossip and not constant:
        raise NotRedone("no 60-digit law of gossip with a schedule")
    with mp.workdps(DIGITS):
        p = _Problem(problem)
        mean, cov = _begin(p, problem, algorithm, start)
        goal = p.target(getattr(algorithm, "temperature", 1.0))
        one = None
        if constant:
            one = _gossip_step(p, algorithm) if gossip else _federated_round(p, algorithm, 0)
        read, found, now = _reader(p, algorithm, clients), {}, 0
        for until in sorted({int(number) for number in rounds}):
            steps = [power(one, until - now)] if one is not None else (
                _federated_round(p, algorithm, number) for number in range(now, until))
            for move in steps:
                mean, cov = move[0] @ mean + move[1], move[0] @ cov @ move[0].T + move[2]
            laws = read(mean, cov)
            found[until], now = sum((w2(*law, *goal) for law in laws), mp.mpf(0)) / len(laws), until
        return [found[int(number)] for number in rounds]
