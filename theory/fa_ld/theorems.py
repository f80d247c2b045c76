"""FA-LD's W2 bounds: Theorems 4.7 and 4.9, 4.8, 4.10.

All speak about the W2 distance between the law of the averaged iterate after k local steps and the
target exp(-f/tau); at round n, k = n K. Every f_c is m-strongly convex and L-smooth, kappa = L/m, and

    H_rho = D^2 + max_c T_{c,rho}/m + gamma^2/(m^2 d) + sigma^2/m^2     (Definition A.4),

with E||gradient noise of client c||^2 <= sigma^2 d, so that sigma^2 is the largest of the clients'
noise traces over d.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.settings.schedules import Harmonic

from ..bound import Assumption
from ..federated import EQUAL_WEIGHTS, decay, required
from ..statement import Terms
from .notation import CONSTANT, DRAWN, FULL, Setting, theorem, within


@theorem("Theorems 4.7 and 4.9 (B.6, B.8)", quantity="w2", terms=("initialization", "discretization"),
         source="FA-LD Theorem 4.7/4.9, equation (27)", hypotheses=(CONSTANT, within("1/(2L)"), FULL),
         variants={"proof": "with the constant of equation (27), sqrt(800) = 28.29",
                   "printed": "with 30, to which the statement rounds it"})
def w2_bound(s: Setting, rounds: np.ndarray, variant: str) -> Terms:
    """W2 bound with all clients, a constant step size and any shared noise.

    Guarantee, after k = n K local steps with step size eta <= 1/(2L):

        W2 <= (1 - eta m/4)^k sqrt(2d) (D + sqrt(tau/m))
              + sqrt(800) kappa sqrt(eta m d) sqrt(((K-1)^2 + kappa) H_rho)

    Source: FA-LD Theorem 4.7 (independent noise, shared_noise = 0) and Theorem 4.9 (any).

    Examples
    --------
    >>> round(float(bound.value[-1]), 2), bound.hypotheses_hold, bound.is_vacuous
    (31.5, True, True)
    """
    factor = 30.0 if variant == "printed" else np.sqrt(800.0)
    floor = factor * s.kappa * np.sqrt(s.eta * s.m * s.d) * np.sqrt(((s.K - 1) ** 2 + s.kappa) * s.H)
    return Terms({"initialization": decay(s.eta * s.m / 4, rounds * float(s.K)) * s.start,
                  "discretization": floor}, floor=float(floor))


def _rule(s: Setting, algorithm: FALD) -> Assumption:
    schedule: Any = algorithm.schedule
    off = max(abs(schedule.offset / (2 * s.L) - 1.0), abs(12 * schedule.slope / s.m - 1.0))
    return Assumption.at_most("step_size = 1/(2 smoothness + strong_convexity k/12), relative deviation "
                              "<= 1e-9", off, 1e-9)


HARMONIC = required("step_size 1/(2 smoothness + strong_convexity k/12)",
                    lambda algorithm: isinstance(algorithm.schedule, Harmonic),
                    "step_size={algorithm.step_size!r} must be fedsim.schedules.Harmonic for Theorem 4.8; "
                    "for a constant one use theory.fa_ld.w2_bound (Theorem 4.7)", _rule)


@theorem("Theorem 4.8 (B.7)", quantity="w2", terms=("discretization",),
         source="FA-LD Theorem 4.8, equation (29)", hypotheses=(HARMONIC, FULL))
def w2_bound_decreasing(s: Setting, algorithm: FALD, rounds: np.ndarray) -> Terms:
    """W2 bound with all clients and the decreasing step size eta_k = 1/(2L + m k/12).

    Guarantee, after k = n K local steps:

        W2 <= 45 kappa sqrt(((K-1)^2 + kappa) H_rho) sqrt(eta_k m d)

    Source: FA-LD Theorem 4.8, printed for independent noise (H_rho = H_0 at shared_noise = 0).

    It holds for every K and any shared noise. Lemma E.1's induction goes step by step, so that it holds for
    decreasing step sizes: E||theta_k - theta_*||^2 <= 6 d H_rho at every k, and with
    E_pi||theta - theta_*||^2 <= d tau/m <= d H_rho,

        W2^2 <= 2 (6 d H_rho) + 2 d H_rho = 14 d H_rho        for every k.

    The bound squared is 2025 kappa^2 ((K-1)^2 + kappa) H_rho d/(2 kappa + k/12); for k <= K it is more than
    60 times that, so that the first round is free. From k = K on the last synchronization k_0 >= K has
    k - k_0 <= K - 1 < k_0, hence eta_{k_0}/eta_k = (24 kappa + k)/(24 kappa + k_0) < 2, which is what Lemma
    B.3 asks for; it is proved for any shared noise, and so are Lemma B.5 and the paper's induction.

    The schedule is best made by ``fs.schedules.Harmonic.from_theorem``. The bound's floor is 0.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> schedule = fs.schedules.Harmonic.from_theorem(smoothness=3.0, strong_convexity=1.0)
    >>> algorithm = fs.FALD(schedule, local_steps=2)
    >>> round(float(bound.value[-1]), 2), bound.hypotheses_hold
    (100.25, True)
    """
    schedule: Any = algorithm.schedule
    eta = schedule.at(rounds * s.K)
    value = 45.0 * s.kappa * np.sqrt(((s.K - 1) ** 2 + s.kappa) * s.H) * np.sqrt(eta * s.m * s.d)
    return Terms({"discretization": value}, floor=0.0 if schedule.slope > 0.0 else None)


@theorem("Theorem 4.10 (C.3)", quantity="w2", terms=("initialization", "discretization", "participation"),
         source="FA-LD Theorem 4.10/C.3, equation (36)",
         hypotheses=(CONSTANT, within("1/(2L)"), DRAWN, EQUAL_WEIGHTS),
         variants={"printed": "", "informal": "has K^2 for (K-1)^2, as Theorem 4.10 prints it"},
         formerly={"amortised": "printed"})
def w2_bound_partial(s: Setting, algorithm: FALD, rounds: np.ndarray, variant: str) -> Terms:
    """W2 bound when S clients are drawn in every round, by scheme I or II.

    Guarantee, after k = n K local steps with step size eta <= 1/(2L):

        W2 <= (1 - eta m/4)^k sqrt(2d) (D + sqrt(tau/m))
              + 30 kappa sqrt(eta m d) sqrt(((K-1)^2 + kappa) H_rho)
              + 2 sqrt( C_K d tau (rho^2 + N (1-rho^2)) C_S / (S m) )

    with C_K = eta m K / (1 - exp(-eta m K/2)), C_S = 1 (scheme I) or (N-S)/(N-1) (scheme II).

    Source: FA-LD Theorem C.3, of which Theorem 4.10 is the informal version. In our transcription of C.3 the
    last root ends before (rho^2 + ...); it is taken to end where it does in Theorem 4.10 and in the last
    line of the proof.

    Proof of (K-1)^2, where the paper's (36) has K^2. With A = (K-1)^2 + kappa a local step adds
    400 eta^2 d L^2 H_rho A to W2^2, and the drawing at the end of a round at most 28 K^2 eta^2 d L^2 H_rho
    (and the last term). Summed with the decay (1 - eta m/2), and with x = eta m K/2 <= K/(4 kappa), these are

        (2/(eta m)) eta^2 d L^2 H_rho [400 A + 28 K x/(1 - e^-x)].

    x/(1 - e^-x) <= 1 + x, so that 28 K x/(1 - e^-x) <= 28 K + 7 K^2/kappa, which is at most 50 A: 50 A minus
    it increases in kappa and is 43 K^2 - 128 K + 100 > 0 at kappa = 1. Hence [...] <= 450 A, which gives
    30^2 A under the root. (By numbers [...] is at most .968 of 450 A, at K = 2 and kappa = 1.)

    More clients drawn than there are by scheme II are a ValueError.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2, participation=fs.Participation(1, replace=True))
    >>> round(float(bound.value[-1]), 2), bound.hypotheses_hold
    (37.33, True)
    """
    chosen: Any = algorithm.participation
    S = chosen.n_active
    if not chosen.replace and S > s.N:
        raise ValueError(f"n_active={S} must be at most n_clients={s.N} "
                         "(scheme II draws without replacement)")
    Q = s.K**2 if variant == "informal" else (s.K - 1) ** 2
    drawn = participation_term(s, chosen.variance_factor(s.N))
    local = 30.0 * s.kappa * np.sqrt(s.eta * s.m * s.d) * np.sqrt(s.H * (Q + s.kappa))
    return Terms({"initialization": decay(s.eta * s.m / 4, rounds * float(s.K)) * s.start,
                  "discretization": local, "participation": drawn}, floor=float(local + drawn))


def participation_term(s: Setting, share: float) -> float:
    """Theorem C.3's last term, 2 sqrt(C_K d tau (rho^2 + N (1-rho^2)) share/m) with share = C_S/S."""
    C_K = s.eta * s.m * s.K / -np.expm1(-0.5 * s.eta * s.m * s.K)
    return float(2.0 * np.sqrt(C_K * s.d * s.mean_temperature * share / s.m))
