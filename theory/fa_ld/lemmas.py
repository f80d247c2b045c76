"""FA-LD's lemmas about the clients inside a round: Lemmas B.3, C.2, E.1 and E.2.

They are evaluated at local steps 0..n_rounds*K (``index == "local_step"``). At a multiple of K a
client's value is the one after synchronization. Notation as in `theory.fa_ld.theorems`.

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
from fedsim.settings.validation import whole

from ..bound import Assumption
from ..facts import Constants
from ..statement import Hypothesis, Terms
from .notation import DRAWN, EQUAL_WEIGHTS, Setting, largest_step_of_round, theorem, within

STEP_RANGE = within("2/(L+m)", printed="2/m")
IN_RANGE = {"corrected": "", "printed": "for step sizes up to 2/m"}


def _halving(algorithm: FALD, rounds: np.ndarray, variant: str) -> Assumption | None:
    if variant != "printed" or algorithm.schedule.is_constant:
        return None
    share = largest_step_of_round(algorithm, rounds) / _step_at(algorithm, rounds)
    return Assumption.at_most("largest step_size of the round <= 2 step_size(k)", float(share.max()), 2.0)


@theorem("Lemma B.3 (4.5)", quantity="divergence", terms=("drift", "noise"), index="local_step",
         source="FA-LD Lemma B.3",
         hypotheses=(STEP_RANGE, Hypothesis("printed, with a schedule: at most halved in a round", _halving)),
         variants={"corrected": "", "printed": "112 and 8 for 28 and 4, eta_k, and step sizes up to 2/m"})
def divergence_bound(s: Setting, algorithm: FALD, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """How far clients drift apart inside a round.

    Guarantee, for every local step k, with eta the largest step size of the round so far:

        sum_c p_c E||theta_k^c - theta_k||^2 <= 28 (K-1)^2 eta^2 d L^2 H_rho
                                                + 4 (K-1) eta d tau (rho^2 + N (1-rho^2))

    Source: FA-LD Lemma B.3. The statement has 112 and 8 and eta_k, to allow a step size that halves within a
    round; 28 and 4 is the proof's line before that.

    Examples
    --------
    >>> round(float(bound.value[-1]), 4), bound.index
    (0.1588, 'local_step')
    """
    eta, drift, noise = largest_step_of_round(algorithm, rounds), 28.0, 4.0
    if variant == "printed":
        drift, noise = 112.0, 8.0
        eta = eta if algorithm.schedule.is_constant else _step_at(algorithm, rounds)
    return {"drift": drift * (s.K - 1) ** 2 * (eta * s.L) ** 2 * s.d * s.H,
            "noise": noise * (s.K - 1) * eta * s.d * s.mean_temperature}


def _step_at(algorithm: FALD, steps: np.ndarray) -> np.ndarray:
    schedule = algorithm.schedule
    if schedule.n_steps is not None:
        steps = np.minimum(steps, schedule.n_steps - 1)
    return np.asarray(schedule.at(steps))


@theorem("Lemma C.2", quantity="participation_gap", terms=("drift", "noise"),
         hypotheses=(STEP_RANGE, DRAWN, EQUAL_WEIGHTS),
         variants={"corrected": "", "printed": "112 and 8 for 28 and 4, for step sizes up to 2/m"})
def participation_gap_bound(s: Setting, algorithm: FALD, n_rounds: int, rounds: np.ndarray,
                            variant: str) -> Terms:
    """Error of averaging S drawn clients in place of all, at each synchronization.

    Guarantee at the end of rounds 1, 2, ..., with eta the largest step size of the round:

        E||theta - beta||^2 <= (C_S/S) ( 28 K^2 eta^2 d L^2 H_rho + 4 K eta d tau (rho^2 + N (1-rho^2)) )

    where beta = sum_c p_c beta^c is the average over all clients, C_S = 1 (scheme I) or (N-S)/(N-1)
    (scheme II).

    Source: FA-LD Lemma C.2; the statement has 112 and 8, its proof 28 and 4, which (36) uses.

    Rounds count from 1, and n_rounds is at least 1.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2, participation=fs.Participation(1, replace=True))
    >>> round(float(bound.value[-1]), 4)
    0.475
    """
    whole("n_rounds", n_rounds, 1)
    chosen: Any = algorithm.participation
    rounds = rounds[rounds > 0]
    eta = largest_step_of_round(algorithm, rounds * s.K, before=True)
    drift, noise = (112.0, 8.0) if variant == "printed" else (28.0, 4.0)
    share = chosen.variance_factor(s.N)
    return Terms({"drift": share * drift * s.K**2 * (eta * s.L) ** 2 * s.d * s.H,
                  "noise": share * noise * s.K * eta * s.d * s.mean_temperature}, rounds=rounds)


@theorem("Lemma E.1", quantity="second_moment", index="local_step", hypotheses=(STEP_RANGE,),
         terms=("initialization", "injected_noise", "gradient_noise", "heterogeneity"), variants=IN_RANGE)
def second_moment_bound(s: Setting, constants: Constants, rounds: np.ndarray) -> Terms:
    """Uniform bound of every client's second moment about the global minimizer.

    Guarantee, for every client c and local step k:

        E||theta_k^c - theta_*||^2 <= d D^2 + (6 d/m) (max_c T_{c,rho} + sigma^2/m + gamma^2/(m d))

    Source: FA-LD Lemma E.1.

    It is a bound of the largest client's.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    15.94
    """
    return Terms({"initialization": s.d * s.D**2, "injected_noise": 6 * s.d / s.m * s.client_temperature,
                  "gradient_noise": 6 * s.d * (s.sigma / s.m) ** 2,
                  "heterogeneity": 6 * (s.gamma / s.m) ** 2}, inputs={"point": constants.minimizer})


@theorem("Lemma E.2", quantity="gradient_second_moment", index="local_step", hypotheses=(STEP_RANGE,),
         terms=("initialization", "injected_noise", "heterogeneity", "gradient_noise"), variants=IN_RANGE)
def gradient_moment_bound(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    """Uniform bound of every client's stochastic gradient.

    Guarantee, for every client c and local step k:

        E||g_c(theta_k^c)||^2 <= 14 d L^2 H_rho

    Source: FA-LD Lemma E.2.

    It is a bound of the largest client's; its terms are those of H_rho.

    Examples
    --------
    >>> round(float(bound.value[-1]), 1)
    393.8
    """
    scale = 14.0 * s.d * np.square(s.L)
    return {"initialization": scale * s.D**2, "injected_noise": scale * (s.client_temperature / s.m),
            "heterogeneity": scale * ((s.gamma / s.m) ** 2 / s.d),
            "gradient_noise": scale * (s.sigma / s.m) ** 2}
