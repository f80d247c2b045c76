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
from fedsim.law import recorded_rounds
from fedsim.schedules import Harmonic

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .setting import PAPER, Setting, decay, setting, within


def _start_distance(constants: Constants, s: Setting) -> float:
    """W2 at the start; where it is not known an upper bound of it, so that a bound is never called
    vacuous without reason."""
    if constants.initial_w2 is not None:
        return constants.initial_w2
    return float(np.sqrt(s.d * (s.D**2 + s.tau / s.m)))


def _is_full(algorithm: FALD) -> bool:
    return algorithm.participation is None


def _full_and_constant(algorithm: FALD) -> bool:
    return _is_full(algorithm) and algorithm.schedule.is_constant


def _full_and_harmonic(algorithm: FALD) -> bool:
    return _is_full(algorithm) and isinstance(algorithm.schedule, Harmonic)


def _partial_and_constant(algorithm: FALD) -> bool:
    return not _is_full(algorithm) and algorithm.schedule.is_constant


def _refuse_participation(algorithm: FALD) -> None:
    if algorithm.participation is not None:
        raise ValueError(f"participation={algorithm.participation!r} must be None for this theorem; "
                         "use theory.fa_ld.w2_bound_partial (Theorem 4.10)")


def _refuse_schedule(algorithm: FALD) -> None:
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant for this theorem; for the "
                         "harmonic schedule use theory.fa_ld.w2_bound_decreasing (Theorem 4.8)")


@theorem(id="fa_ld.w2_bound", paper=PAPER, number="Theorems 4.7 and 4.9 (B.6, B.8)", kind="upper",
         quantity="w2", algorithm=FALD, convention="federated",
         hypotheses=("constant step_size <= 1/(2 smoothness)", "full participation"),
         variants=("corrected", "printed", "proof"), applies=_full_and_constant)
def w2_bound(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
             variant: str = "corrected") -> Bound:
    """W2 bound with all clients, a constant step size and any shared noise.

    Guarantee, after k = n K local steps with step size eta <= 1/(2L):

        W2 <= (1 - eta m/4)^k sqrt(2d) (D + sqrt(tau/m))
              + 30 kappa sqrt(eta m d) sqrt(((K-1)^2 + kappa) H_rho)

    Source: FA-LD Theorem 4.7 (independent noise, shared_noise = 0) and Theorem 4.9 (any).

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        Full participation, constant step size.
    n_rounds, record
        As in `fedsim.recorded_rounds`.
    variant : "corrected", "printed" or "proof"
        The printed statement needs no correction; "proof" has the proof's sqrt(800) = 28.29 for 30.

    Returns
    -------
    Bound with terms "initialization" and "discretization".

    Raises
    ------
    ValueError
        For participation or a schedule, naming the function for those.

    Examples
    --------
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2)
    >>> bound = w2_bound(constants(problem, algorithm), algorithm, n_rounds=1000)
    >>> round(float(bound.value[-1]), 2), bound.hypotheses_hold, bound.is_vacuous
    (31.84, True, True)
    """
    _refuse_participation(algorithm)
    _refuse_schedule(algorithm)
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    factor = np.sqrt(800.0) if variant == "proof" else 30.0
    floor = factor * s.kappa * np.sqrt(s.eta * s.m * s.d) * np.sqrt(((s.K - 1) ** 2 + s.kappa) * s.H)
    return Bound.from_terms(
        {"initialization": decay(s.eta * s.m / 4, rounds * float(s.K)) * s.start, "discretization": floor},
        rounds, assumptions=(within(s, "1/(2L)"),), quantity="w2", kind="upper",
        source="FA-LD Theorem 4.7/4.9, equation (27)", variant=variant, target=constants.target,
        start_distance=_start_distance(constants, s), floor=float(floor))


@theorem(id="fa_ld.w2_bound_decreasing", paper=PAPER, number="Theorem 4.8 (B.7)", kind="upper",
         quantity="w2", algorithm=FALD, convention="federated",
         hypotheses=("step_size 1/(2 smoothness + strong_convexity k/12)", "full participation",
                     "local_steps - 1 <= 24 condition_number (missing in print)"),
         applies=_full_and_harmonic)
def w2_bound_decreasing(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
                        variant: str = "corrected") -> Bound:
    """W2 bound with all clients and the decreasing step size eta_k = 1/(2L + m k/12).

    Guarantee, after k = n K local steps:

        W2 <= 45 kappa sqrt(((K-1)^2 + kappa) H_rho) sqrt(eta_k m d)

    Source: FA-LD Theorem 4.8. Its proof uses eta at the last synchronization <= 2 eta_k, which needs
    K - 1 <= 24 kappa; the statement does not say so. Printed for independent noise; the proof holds
    word for word for any shared noise with H_rho in place of H_0, as in Theorem 4.9.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        With a `fedsim.schedules.Harmonic` step size, best made by ``Harmonic.from_theorem``.
    n_rounds, record
        As in `fedsim.recorded_rounds`.
    variant : "corrected" or "printed"
        "printed" leaves the condition on `local_steps` out and asks for shared_noise = 0.

    Returns
    -------
    Bound with the one term "discretization"; its floor is 0.

    Raises
    ------
    ValueError
        For participation or another kind of schedule.
    """
    _refuse_participation(algorithm)
    schedule = algorithm.schedule
    if not isinstance(schedule, Harmonic):
        raise ValueError(f"step_size={algorithm.step_size!r} must be fedsim.schedules.Harmonic for Theorem "
                         "4.8; for a constant one use theory.fa_ld.w2_bound (Theorem 4.7)")
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    eta = schedule.at(rounds * s.K)
    off = max(abs(schedule.offset / (2 * s.L) - 1.0), abs(12 * schedule.slope / s.m - 1.0))
    assumptions = [Assumption.at_most("step_size = 1/(2 smoothness + strong_convexity k/12), relative "
                                      "deviation <= 1e-9", off, 1e-9)]
    if variant == "printed":
        assumptions.append(Assumption.yes("shared_noise = 0", algorithm.shared_noise == 0.0))
    else:
        assumptions.append(Assumption.at_most("local_steps - 1 <= 24 condition_number", s.K - 1.0,
                                              24.0 * s.kappa))
    value = 45.0 * s.kappa * np.sqrt(((s.K - 1) ** 2 + s.kappa) * s.H) * np.sqrt(eta * s.m * s.d)
    return Bound.from_terms(
        {"discretization": value}, rounds, assumptions=tuple(assumptions), quantity="w2", kind="upper",
        source="FA-LD Theorem 4.8, equation (29)", variant=variant, target=constants.target,
        start_distance=_start_distance(constants, s), floor=0.0 if schedule.slope > 0.0 else None)


@theorem(id="fa_ld.w2_bound_partial", paper=PAPER, number="Theorem 4.10 (C.3)", kind="upper",
         quantity="w2", algorithm=FALD, convention="federated",
         hypotheses=("constant step_size <= 1/(2 smoothness)", "participation by scheme I or II",
                     "equal weights for scheme II"),
         variants=("corrected", "printed", "amortised"), applies=_partial_and_constant)
def w2_bound_partial(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
                     variant: str = "corrected") -> Bound:
    """W2 bound when S clients are drawn in every round, by scheme I or II.

    Guarantee, after k = n K local steps with step size eta <= 1/(2L):

        W2 <= (1 - eta m/4)^k sqrt(2d) (D + sqrt(tau/m)) + 30 kappa sqrt(eta m d) sqrt(H_rho (Q + kappa))
              + 2 sqrt( C_K d tau (rho^2 + N (1-rho^2)) C_S / (S m) )

    with C_K = eta m K / (1 - exp(-eta m K/2)), C_S = 1 (scheme I) or (N-S)/(N-1) (scheme II), Q = K^2.

    Source: FA-LD Theorem 4.10 (a), whose O(...) Theorem C.3 makes explicit. C.3 as printed has
    Q = (K-1)^2 and (rho^2 + N (1-rho^2)) C_S outside the root. Its proof gives Q = K^2 and the
    grouping above.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        With `participation`, constant step size.
    n_rounds, record
        As in `fedsim.recorded_rounds`.
    variant : "corrected", "printed" or "amortised"
        "corrected" as above; "printed" is Theorem C.3's display; "amortised" has Q = (K-1)^2 in the
        right grouping, which is also true (the once-per-round error spread over the round).

    Returns
    -------
    Bound with terms "initialization", "discretization" and "participation".

    Raises
    ------
    ValueError
        Without participation, or with a schedule.
    """
    chosen = algorithm.participation
    if chosen is None:
        raise ValueError("participation=None must be a fedsim.Participation for this theorem; with all "
                         "clients use theory.fa_ld.w2_bound (Theorem 4.7)")
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant for this theorem; the paper "
                         "has none for participation with a schedule")
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    S = chosen.n_active
    if not chosen.replace and S > s.N:
        raise ValueError(f"n_active={S} must be at most n_clients={s.N} "
                         "(scheme II draws without replacement)")
    Q = s.K**2 if variant == "corrected" else (s.K - 1) ** 2
    C_S = chosen.variance_factor(s.N) * S
    C_K = s.eta * s.m * s.K / -np.expm1(-0.5 * s.eta * s.m * s.K)
    spread = s.mean_temperature / s.tau
    if variant == "printed":
        drawn = 2.0 * np.sqrt(C_K * s.d * s.tau / (S * s.m)) * spread * C_S
    else:
        drawn = 2.0 * np.sqrt(C_K * s.d * s.tau * spread * C_S / (S * s.m))
    local = 30.0 * s.kappa * np.sqrt(s.eta * s.m * s.d) * np.sqrt(s.H * (Q + s.kappa))
    equal = chosen.replace or float(np.abs(constants.weights * s.N - 1.0).max()) <= 1e-9
    return Bound.from_terms(
        {"initialization": decay(s.eta * s.m / 4, rounds * float(s.K)) * s.start,
         "discretization": local, "participation": drawn},
        rounds, assumptions=(within(s, "1/(2L)"), Assumption.yes("equal weights or scheme I", equal)),
        quantity="w2", kind="upper", source="FA-LD Theorem 4.10/C.3, equation (36)", variant=variant,
        target=constants.target, start_distance=_start_distance(constants, s), floor=float(local + drawn))
