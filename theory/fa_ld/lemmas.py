"""FA-LD's lemmas about the clients inside a round: Lemmas B.3, C.2, E.1 and E.2.

They are evaluated at local steps 0..n_rounds*K (``index == "local_step"``). At a multiple of K a
client's value is the one after synchronization. Notation as in `theory.fa_ld.bounds`.

Their range: printed is (0, 2/m), and beyond 2/L they are false: with L = 10 m and eta = 1/m clients diverge.
They hold for eta <= 2/(L+m): there a gradient step contracts by 1 - eta m (as |1 - eta l| <= 1 - eta m for
every l in [m, L]), which is less than the 1 - eta m/2 that the proof of Lemma E.1 uses in (44); nothing else
in the proofs of E.1, E.2, B.3 and C.2 depends on the step size. "printed" differs from "corrected" in this
range, and where it says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.law import recorded_rounds
from fedsim.validation import whole

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .setting import PAPER, Setting, largest_step_of_round, local_steps_recorded, setting, within

STEP_RANGE = "step_size <= 2/(smoothness + strong_convexity)"


def _range(s: Setting, variant: str) -> Assumption:
    return within(s, "2/m" if variant == "printed" else "2/(L+m)")


@theorem(id="fa_ld.divergence_bound", paper=PAPER, number="Lemma B.3 (4.5)", kind="upper",
         quantity="divergence", algorithm=FALD, convention="federated", hypotheses=(STEP_RANGE,),
         variants=("corrected", "printed"), index="local_step")
def divergence_bound(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
                     variant: str = "corrected") -> Bound:
    """How far clients drift apart inside a round.

    Guarantee, for every local step k, with eta the largest step size of the round so far:

        sum_c p_c E||theta_k^c - theta_k||^2 <= 28 (K-1)^2 eta^2 d L^2 H_rho
                                                + 4 (K-1) eta d tau (rho^2 + N (1-rho^2))

    Source: FA-LD Lemma B.3. The statement has 112 and 8 and eta_k, to allow a step size that halves within a
    round; 28 and 4 is the proof's line before that.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
    n_rounds : int
    record : sequence of local steps, optional
    variant : "corrected" or "printed"
        "printed" has 112 and 8 with eta_k, and step sizes up to 2/m.

    Returns
    -------
    Bound on "divergence" with terms "drift" and "noise".

    Raises
    ------
    ValueError
        Naming argument, value and condition: as for `setting`, and for constants of another convention,
        another class of algorithm, n_rounds below 0, a `record` beyond it, a schedule that ends too early,
        and an unknown variant.
    """
    s = setting(constants, algorithm)
    steps = local_steps_recorded(algorithm, n_rounds, record)
    assumptions = [_range(s, variant)]
    eta = largest_step_of_round(algorithm, steps)
    drift, noise = 28.0, 4.0
    if variant == "printed":
        drift, noise = 112.0, 8.0
        if not algorithm.schedule.is_constant:
            now = _step_at(algorithm, steps)
            assumptions.append(Assumption.at_most("largest step_size of the round <= 2 step_size(k)",
                                                  float((eta / now).max()), 2.0))
            eta = now
    return Bound.from_terms(
        {"drift": drift * (s.K - 1) ** 2 * (eta * s.L) ** 2 * s.d * s.H,
         "noise": noise * (s.K - 1) * eta * s.d * s.mean_temperature},
        steps, assumptions=tuple(assumptions), quantity="divergence", kind="upper",
        source="FA-LD Lemma B.3", variant=variant, index="local_step")


def _step_at(algorithm: FALD, steps: np.ndarray) -> np.ndarray:
    schedule = algorithm.schedule
    if schedule.n_steps is not None:
        steps = np.minimum(steps, schedule.n_steps - 1)
    return np.asarray(schedule.at(steps))


@theorem(id="fa_ld.participation_gap_bound", paper=PAPER, number="Lemma C.2", kind="upper",
         quantity="participation_gap", algorithm=FALD, convention="federated",
         hypotheses=(STEP_RANGE, "participation by scheme I or II", "equal weights for scheme II"),
         variants=("corrected", "printed"), applies=lambda algorithm: algorithm.participation is not None)
def participation_gap_bound(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
                            variant: str = "corrected") -> Bound:
    """Error of averaging S drawn clients in place of all, at each synchronization.

    Guarantee at the end of rounds 1, 2, ..., with eta the largest step size of the round:

        E||theta - beta||^2 <= (C_S/S) ( 28 K^2 eta^2 d L^2 H_rho + 4 K eta d tau (rho^2 + N (1-rho^2)) )

    where beta = sum_c p_c beta^c is the average over all clients, C_S = 1 (scheme I) or (N-S)/(N-1)
    (scheme II).

    Source: FA-LD Lemma C.2; the statement has 112 and 8, its proof 28 and 4, which (36) uses.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        With `participation`.
    n_rounds : int
        At least 1.
    record : sequence of rounds, optional
    variant : "corrected" or "printed"
        "printed" has 112 and 8, and step sizes up to 2/m.

    Returns
    -------
    Bound on "participation_gap" with terms "drift" and "noise"; rounds count from 1.

    Raises
    ------
    ValueError
        As for `divergence_bound`, and without participation.
    """
    chosen = algorithm.participation
    if chosen is None:
        raise ValueError("participation=None must be a fedsim.Participation for this lemma (Lemma C.2)")
    s = setting(constants, algorithm)
    rounds = recorded_rounds(whole("n_rounds", n_rounds, 1), record)
    rounds = rounds[rounds > 0]
    eta = largest_step_of_round(algorithm, rounds * s.K, before=True)
    drift, noise = (112.0, 8.0) if variant == "printed" else (28.0, 4.0)
    share = chosen.variance_factor(s.N)
    equal = chosen.replace or float(np.abs(constants.weights * s.N - 1.0).max()) <= 1e-9
    return Bound.from_terms(
        {"drift": share * drift * s.K**2 * (eta * s.L) ** 2 * s.d * s.H,
         "noise": share * noise * s.K * eta * s.d * s.mean_temperature},
        rounds, assumptions=(_range(s, variant), Assumption.yes("equal weights or scheme I", equal)),
        quantity="participation_gap", kind="upper", source="FA-LD Lemma C.2", variant=variant)


@theorem(id="fa_ld.second_moment_bound", paper=PAPER, number="Lemma E.1", kind="upper",
         quantity="second_moment", algorithm=FALD, convention="federated", hypotheses=(STEP_RANGE,),
         variants=("corrected", "printed"), index="local_step")
def second_moment_bound(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
                        variant: str = "corrected") -> Bound:
    """Uniform bound of every client's second moment about the global minimizer.

    Guarantee, for every client c and local step k:

        E||theta_k^c - theta_*||^2 <= d D^2 + (6 d/m) (max_c T_{c,rho} + sigma^2/m + gamma^2/(m d))

    Source: FA-LD Lemma E.1. The variants differ in the range of step sizes only.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
    n_rounds : int
    record : sequence of local steps, optional
    variant : "corrected" or "printed"

    Returns
    -------
    Bound on "second_moment" (the largest client's) with terms "initialization", "injected_noise",
    "gradient_noise" and "heterogeneity".

    Raises
    ------
    ValueError
        As for `divergence_bound`.
    """
    s = setting(constants, algorithm)
    steps = local_steps_recorded(algorithm, n_rounds, record)
    return Bound.from_terms(
        {"initialization": s.d * s.D**2, "injected_noise": 6 * s.d / s.m * s.client_temperature,
         "gradient_noise": 6 * s.d * (s.sigma / s.m) ** 2, "heterogeneity": 6 * (s.gamma / s.m) ** 2},
        steps, assumptions=(_range(s, variant),), quantity="second_moment", kind="upper",
        source="FA-LD Lemma E.1", variant=variant, index="local_step",
        inputs={"point": constants.minimizer})


@theorem(id="fa_ld.gradient_moment_bound", paper=PAPER, number="Lemma E.2", kind="upper",
         quantity="gradient_second_moment", algorithm=FALD, convention="federated",
         hypotheses=(STEP_RANGE,), variants=("corrected", "printed"), index="local_step")
def gradient_moment_bound(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
                          variant: str = "corrected") -> Bound:
    """Uniform bound of every client's stochastic gradient.

    Guarantee, for every client c and local step k:

        E||g_c(theta_k^c)||^2 <= 14 d L^2 H_rho

    Source: FA-LD Lemma E.2. The variants differ in the range of step sizes only.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
    n_rounds : int
    record : sequence of local steps, optional
    variant : "corrected" or "printed"

    Returns
    -------
    Bound on "gradient_second_moment" (the largest client's) with the four terms of H_rho.

    Raises
    ------
    ValueError
        As for `divergence_bound`.
    """
    s = setting(constants, algorithm)
    steps = local_steps_recorded(algorithm, n_rounds, record)
    scale = 14.0 * s.d * np.square(s.L)
    return Bound.from_terms(
        {"initialization": scale * s.D**2, "injected_noise": scale * (s.client_temperature / s.m),
         "heterogeneity": scale * ((s.gamma / s.m) ** 2 / s.d),
         "gradient_noise": scale * (s.sigma / s.m) ** 2},
        steps, assumptions=(_range(s, variant),), quantity="gradient_second_moment", kind="upper",
        source="FA-LD Lemma E.2", variant=variant, index="local_step")
