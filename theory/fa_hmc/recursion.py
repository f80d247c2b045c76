"""FA-HMC's convergence theorem with explicit constants: the recursion behind Theorem 4.4.

theta_t = sum_c w_c theta_t^c is coupled with theta_t^pi, which starts in the target and follows exact
trajectories of f with the averaged momentum; E_t = E||theta_t - theta_t^pi||^2 >= W2(theta_t, target)^2.
With X = K eta the trajectory length and j = t - t_0 the updates since the last communication,

    E_{t+1} <= (1 - mu X^2/4) E_t + a_j(X),

    a_j = (15/7) L X^2 V_j + X^6 L^2 sum_c w_c s_c d/8 + X^4/(3K) sum_c w_c^2 sigma_g^2 d
          + X^6 L^3/(9 mu) (sum_c w_c delta_K^c + delta_pi),

    V_j = j^2 X^4 sum_c w_c [ (31/30) B_c + (2/9) L s_c d + sigma_g^2 d/(18 K) ]
          + 2 j X^2 [ (1-rho)(N-1) d + (X^2/(4K)) sum_c w_c (1-w_c) sigma_g^2 d ],

B_c = sup_t E||grad f_c(theta_t^c)||^2, delta_K^c and delta_pi as in (9) and (17), for X <= 1/sqrt(L) and
mu X^2 <= 1/4. The second limit is what 1/c_1 = (1 - mu X^2/4)/(1 - mu X^2/2) <= 15/14 of section G needs;
Lemmas D.4 to D.6, D.8 and D.9 hold up to 1/sqrt(L) (see there).

Variants. "corrected" is the above: the paper's proof with Lemma D.8 in its corrected form.
"consistent" has the constants printed at the end of section G, with s_c for sigma^(c) and sigma_g^2 of
the proofs; the term 3 X^6 L^2 T sum_i sum_c w_c (1-w_c) Delta_i^c in it rests on the printed Lemma D.8,
which is false for unequal weights. "printed" reads the definitions literally (see `setting`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.settings.validation import Array

from .setting import Setting, trajectory_lengths

VARIANTS = {"corrected": "with Lemma D.8 corrected",
            "printed": "as printed, sigma^(c) and Assumption 3.4 read literally",
            "consistent": "as printed, with s_c for sigma^(c) and the proofs' sigma_g^2"}


def added(given: Setting, length: Any, since: Any, moments: Array, variant: str) -> dict[str, Array]:
    """a_j(X) by its parts, at trajectory lengths X and updates since communication j of equal shapes."""
    s = given.of(variant)
    X, j = np.asarray(length, dtype=np.float64), np.asarray(since, dtype=np.float64)
    of_moments, of_momentum, of_noise = s.client_error
    numerical = X**6 * s.L**3 / (9.0 * s.mu)
    noise = X**4 / (3.0 * s.K) * (s.w**2).sum() * s.sigma_sq * s.d
    if variant == "corrected":
        slopes, momenta, apart, random = divergence(s, X, j, moments)
        factor = 15.0 / 7.0 * s.L * X**2
    else:
        slopes, momenta, apart, random = printed_divergence(s, X, j, moments)
        factor = 3.0 * s.L * X**2
    return {
        "heterogeneity": factor * slopes,
        "correlation": factor * apart,
        "gradient_noise": factor * random + noise + numerical * (s.w @ of_noise) * s.sigma_sq / s.K,
        "discretization": factor * momenta + X**6 * s.L**2 * (s.w @ s.s) * s.d / 8.0
        + numerical * (s.w @ (of_moments * moments + of_momentum) + s.target_error)}


def divergence(s: Setting, X: Array, j: Array, moments: Array) -> tuple[Array, Array, Array, Array]:
    """Lemma D.8 corrected: parts of gradients, of the momenta's size, of their distance, of noise."""
    share = float((s.w * (1.0 - s.w)).sum())
    return (j**2 * X**4 * (31.0 / 30.0) * (s.w @ moments),
            j**2 * X**4 * (2.0 / 9.0) * s.L * (s.w @ s.s) * s.d,
            2.0 * j * X**2 * s.spread * s.d,
            (j**2 * X**4 / (18.0 * s.K) + j * X**4 / (2.0 * s.K) * share) * s.sigma_sq * s.d)


def printed_divergence(s: Setting, X: Array, j: Array, moments: Array) -> tuple[Array, Array, Array, Array]:
    """Lemma D.8 as it stands, T j X^4 sum_c w_c (1-w_c) L Delta^c with Delta^c of (13)."""
    share = s.w * (1.0 - s.w)
    return (s.T * j * X**4 * (5.0 / 9.0) * (share @ moments),
            s.T * j * X**4 * s.L * (share @ s.s) * s.d / 81.0,
            s.T * j * X**2 * share.sum() * s.spread * s.d,
            s.T * j * X**4 * share.sum() * s.sigma_sq * s.d / (6.0 * s.K))


def contraction(s: Setting, length: Any) -> Array:
    """1 - mu X^2/4, and 0 beyond."""
    return np.maximum(1.0 - 0.25 * s.mu * np.asarray(length, dtype=np.float64) ** 2, 0.0)


def log_contraction(s: Setting) -> float:
    """log(1 - mu X^2/4) without loss for short trajectories; minus infinity beyond."""
    rate = 0.25 * s.mu * s.X**2
    return float(np.log1p(-rate)) if rate < 1.0 else -np.inf


def iterated(s: Setting, algorithm: FAHMC, steps: np.ndarray, moments: Array, initial: float,
             variant: str) -> dict[str, Array]:
    """The recursion's E_t at local updates `steps`, by the parts of a_j and of E_0."""
    if not algorithm.schedule.is_constant:
        return _stepped(s, algorithm, steps, moments, initial, variant)
    T, keep, log_keep = s.T, float(contraction(s, s.X)), log_contraction(s)
    parts = added(s, np.full(T, s.X), np.arange(T), moments, variant)
    rounds, rest = np.divmod(steps, T)
    with np.errstate(invalid="ignore"):
        left = np.where(steps > 0, np.exp(steps * log_keep), 1.0)
        decayed = np.where(rounds > 0, -np.expm1(rounds * float(T) * log_keep), 0.0)
        inside = np.where(rest > 0, np.exp(rest * log_keep), 1.0)
    once = -np.expm1(T * log_keep)  # 1 - keep^T
    found = {"initialization": left * initial}
    for name, part in parts.items():
        sums = np.zeros(T + 1)  # sum_{i<j} keep^(j-1-i) a_i
        for i in range(T):
            sums[i + 1] = keep * sums[i] + part[i]
        series = decayed / once if once > 0.0 else rounds.astype(np.float64)
        found[name] = inside * sums[T] * series + sums[rest]
    return found


def _stepped(s: Setting, algorithm: FAHMC, steps: np.ndarray, moments: Array, initial: float,
             variant: str) -> dict[str, Array]:
    """The same for schedules, step by step."""
    last = int(steps.max())
    lengths = trajectory_lengths(algorithm, last)
    parts = added(s, lengths, np.arange(last) % s.T, moments, variant)
    table = np.array(list(parts.values()))
    now = np.zeros((len(parts) + 1, last + 1))
    now[0, 0] = initial
    for t, keep in enumerate(contraction(s, lengths)):
        now[:, t + 1] = keep * now[:, t]
        now[1:, t + 1] += table[:, t]
    return dict(zip(("initialization", *parts), now[:, steps], strict=True))


def steady(s: Setting, moments: Array, variant: str) -> float:
    """Limit of the recursion at communications for a constant step size, the smallest over a round."""
    keep, once = float(contraction(s, s.X)), -np.expm1(s.T * log_contraction(s))
    total = 0.0
    for part in np.sum(list(added(s, np.full(s.T, s.X), np.arange(s.T), moments, variant).values()), axis=0):
        total = keep * total + float(part)
    return total / float(once)
