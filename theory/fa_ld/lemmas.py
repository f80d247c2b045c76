"""FA-LD's lemmas: B.3, C.2, E.1, E.2 about the clients inside a round, B.1, B.2, B.4, B.5, F.1 about a step.

The former are evaluated at local steps 0..n_rounds*K (``index == "local_step"``). At a multiple of
K a client's value is the one after synchronization. Notation as in `theory.fa_ld.theorems`.

Their range: printed is (0, 2/m), and beyond 2/L they are false: with L = 10 m and eta = 1/m clients diverge.
They hold for eta <= 2/(L+m): there a gradient step contracts by 1 - eta m (as |1 - eta l| <= 1 - eta m for
every l in [m, L]), which is less than the 1 - eta m/2 that the proof of Lemma E.1 uses in (44); nothing else
in the proofs of E.1, E.2, B.3 and C.2 depends on the step size. "printed" differs from "corrected" in this
range, and where it says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.interfaces import Problem
from fedsim.laws.moments import w2_of
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.alignment import together
from fedsim.settings.validation import array, shape, shown, whole

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from ..exact import joint_law
from ..facts.constants_of_problem import Constants
from ..theorem_parts import EQUAL_WEIGHTS, other_kinds
from .notation import CONSTANT, DRAWN, FULL, Setting, largest_step_of_round, theorem, within

STEP_RANGE = replace(within("2/(L+m)", printed="2/m"), refuses=other_kinds)
FACTORS = {"corrected": (28.0, 4.0), "printed": (112.0, 8.0)}
"""Of drift and noise in Lemmas B.3 and C.2."""
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
    by_round = variant == "corrected" or algorithm.schedule.is_constant
    eta = (largest_step_of_round if by_round else _step_at)(algorithm, rounds)
    drift, noise = FACTORS[variant]
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
    n_rounds = whole("n_rounds", n_rounds, 1)
    chosen: Any = algorithm.participation
    rounds = rounds[rounds > 0]
    eta = largest_step_of_round(algorithm, rounds * s.K, before=True)
    drift, noise = FACTORS[variant]
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


def _two_sets_of_points(problem: Quadratic, algorithm: FALD, *others: Any) -> dict[str, Any]:
    """Points for Lemma B.1 when it is examined on a problem: the clients' minimizers, and those
    mirrored at the global one and moved by a standard deviation of the target."""
    try:
        points, centre = problem.minimizers, problem.minimizer
    except AttributeError:
        raise ValueError(f"problem={shown(problem)} must have clients whose minimizers are known") from None
    away = centre - points + np.sqrt(algorithm.target(problem).variances)
    return {"points": points, "others": centre + away}


@theorem("Lemma B.1 (4.4)", quantity="squared_distance_after_step", terms=("contraction", "divergence"),
         source="FA-LD Lemma B.1", index="local_step", hypotheses=(within("1/(L+m)"),),
         inputs=_two_sets_of_points, arguments={"points": "(N, d): beta^c.", "others": "(N, d): theta^c."})
def contraction_bound(s: Setting, constants: Constants, *, points: Any, others: Any) -> Terms:
    """Contraction of one exact gradient step, up to the clients' divergence.

    Guarantee, for any points beta^c, theta^c with averages beta, theta and averaged gradients:

        ||beta - theta - eta (grad f(beta) - grad f(theta))||^2
            <= (1 - eta m) ||beta - theta||^2
               + 4 eta L sum_c p_c (||beta^c - beta||^2 + ||theta^c - theta||^2)

    Source: FA-LD Lemma B.1.

    Of a schedule the largest step size is used.

    Examples
    --------
    >>> round(float(bound.value[0]), 3)
    1.503
    """
    beta, theta = (shape(name, array(name, value, 2), (s.N, s.d)) for name, value in zip(
        ("points", "others"), together(0, 1, points=points, others=others), strict=True))
    p = constants.weights
    spread = sum(p @ ((x - p @ x) ** 2).sum(axis=1) for x in (beta, theta))
    return Terms({"contraction": max(1 - s.eta * s.m, 0.0) * ((p @ beta - p @ theta) ** 2).sum(),
                  "divergence": 4 * s.eta * s.L * spread}, rounds=np.array([1]),
                 inputs={"points": beta, "others": theta, "step_size": s.eta})


@theorem("Lemma B.2", quantity="langevin_increment", terms=("drift", "noise"), index="local_step")
def discretization_bound(s: Setting) -> Terms:
    """Movement of the stationary Langevin diffusion within one step.

    Guarantee, for every time s, with k eta the last multiple of eta before it:

        E||theta(s) - theta(k eta)||^2 <= 2 eta^2 d kappa L tau + 16 eta d tau

    Source: FA-LD Lemma B.2, whose range of step sizes is not needed. (Our transcription ends with tau/p_c;
    the p_c is struck out in the proof, where the mark of the stroke is kept.)

    Of a schedule the largest step size is used.

    Examples
    --------
    >>> round(float(bound.value[0]), 3)
    0.162
    """
    return Terms({"drift": 2 * s.eta**2 * s.d * s.kappa * s.L * s.tau, "noise": 16 * s.eta * s.d * s.tau},
                 rounds=np.array([1]), inputs={"step_size": s.eta, "temperature": s.tau})


@theorem("Lemma B.4", quantity="averaged_gradient_noise", terms=("gradient_noise",), index="local_step",
         variants={"proof": "", "printed": "1 for sum_c p_c^2"})
def gradient_noise_bound(s: Setting, constants: Constants, variant: str) -> Terms:
    """Variance of the averaged stochastic gradient.

    Guarantee:  E||sum_c p_c (g_c - grad f_c)||^2 <= d sigma^2 sum_c p_c^2.

    Source: FA-LD Lemma B.4; its proof has this line, its statement bounds sum_c p_c^2 by 1.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]], gradient_noise=0.5)
    >>> algorithm = fs.FALD(0.01, local_steps=2)
    >>> bound.value.tolist()
    [0.125]
    """
    share = 1.0 if variant == "printed" else float((constants.weights**2).sum())
    return Terms({"gradient_noise": s.d * s.sigma**2 * share}, rounds=np.array([1]))


def _distances(problem: Problem, algorithm: FALD, constants: Any, n_rounds: int,
               start: Any) -> dict[str, Any]:
    """The exact W2 of the averaged iterate at local steps 0..n_rounds*K."""
    law = joint_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)
    goal = algorithm.target(problem)
    return {"w2": w2_of(law.average_mean, law.average_cov, goal.mean, goal.cov)}


@theorem("Lemma B.5 (4.6)", quantity="w2_sq_of_average", terms=("contraction", "error"), index="local_step",
         source="FA-LD Lemma B.5", hypotheses=(CONSTANT, within("1/(2L)"), FULL), inputs=_distances,
         arguments={"w2": "(n,): Distances of the averaged iterate at local steps 0..n-1."})
def one_step_bound(s: Setting, *, w2: Any) -> Terms:
    """One local step of the averaged iterate, in squared W2.

    Guarantee, for every local step k:

        W2^2(k+1) <= (1 - eta m/2) W2^2(k) + 400 eta^2 d L^2 H_rho ((K-1)^2 + kappa)

    Source: FA-LD Lemma B.5, printed for independent noise (H_rho = H_0 at shared_noise = 0); with Lemma B.3,
    which is printed for any shared noise, the same proof gives the step behind Theorem 4.9.

    The bound is on the squared distance at local steps 1..n, where n is the length of `w2`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    4.5
    """
    before = array("w2", w2, 1)
    return Terms({"contraction": max(1 - s.eta * s.m / 2, 0.0) * before**2,
                  "error": 400 * (s.eta * s.L) ** 2 * s.d * s.H * ((s.K - 1) ** 2 + s.kappa)},
                 rounds=np.arange(1, len(before) + 1))


@theorem("Lemma F.1", quantity="w2", terms=("distance", "spread"),
         variants={"triangle": "", "printed": "sqrt(2) times it"})
def initial_bound(s: Setting, constants: Constants, variant: str) -> Terms:
    """W2 between the start and the target.

    Guarantee:  W2(start, target) <= ||theta_0 - theta_*|| + sqrt(d tau/m).

    Source: FA-LD Lemma F.1 (a point), which has sqrt(2) times this; for a random start with the root mean
    square distance. Proof: the triangle inequality through the point theta_*, whose W2 from the target is
    (E_pi||theta - theta_*||^2)^(1/2) <= sqrt(d tau/m), as the lemma's proof has it.

    It is a bound at round 0.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=4.0, initial_distance=2.0)
    >>> bound = theory.fa_ld.initial_bound(known, fs.FALD(0.1))
    >>> bound.value.tolist()
    [3.0]
    """
    factor = np.sqrt(2 * s.d) if variant == "printed" else np.sqrt(s.d)
    return Terms({"distance": factor * s.D, "spread": factor * np.sqrt(s.tau / s.m)}, rounds=np.array([0]),
                 start_distance=constants.initial_w2)
