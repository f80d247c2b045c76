"""FA-LD's one-step statements: Lemmas B.1, B.2, B.4, B.5 and F.1. Notation as in `theory.fa_ld.theorems`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.laws.distance import w2_gaussian
from fedsim.settings.validation import array, shape

from ..exact import joint_law
from ..facts import Constants
from ..statement import Terms
from .notation import CONSTANT, FULL, Setting, theorem, within

ONE = np.array([1])


def _two_sets_of_points(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                        start: Any) -> dict[str, Any]:
    """Points for Lemma B.1 when it is examined on a problem: the clients' minimizers, and those
    mirrored at the global one and moved by a standard deviation of the target."""
    away = problem.minimizer - problem.minimizers + np.sqrt(algorithm.target(problem).variances)
    return {"points": problem.minimizers, "others": problem.minimizer + away}


@theorem("Lemma B.1 (4.4)", quantity="squared_distance_after_step", terms=("contraction", "divergence"),
         source="FA-LD Lemma B.1", index="local_step", hypotheses=(within("1/(L+m)"),),
         inputs=_two_sets_of_points,
         arguments={"points": "(N, d): beta^c.", "others": "(N, d): theta^c."})
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
    beta = shape("points", array("points", points, 2), (s.N, s.d))
    theta = shape("others", array("others", others, 2), (s.N, s.d))
    p = constants.weights
    spread = sum(p @ ((x - p @ x) ** 2).sum(axis=1) for x in (beta, theta))
    return Terms({"contraction": max(1 - s.eta * s.m, 0.0) * ((p @ beta - p @ theta) ** 2).sum(),
                  "divergence": 4 * s.eta * s.L * spread}, rounds=ONE,
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
                 rounds=ONE, inputs={"step_size": s.eta, "temperature": s.tau})


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
    return Terms({"gradient_noise": s.d * s.sigma**2 * share}, rounds=ONE)


def _distances_inside_rounds(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                             start: Any) -> dict[str, Any]:
    """The exact W2 of the averaged iterate at local steps 0..n_rounds*K."""
    law = joint_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)
    goal = algorithm.target(problem)
    return {"w2": w2_gaussian(law.average_mean, law.average_cov, goal.mean, goal.cov)}


@theorem("Lemma B.5 (4.6)", quantity="w2_sq_of_average", terms=("contraction", "error"), index="local_step",
         source="FA-LD Lemma B.5", hypotheses=(CONSTANT, within("1/(2L)"), FULL),
         inputs=_distances_inside_rounds,
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
