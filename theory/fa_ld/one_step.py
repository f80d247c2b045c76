"""FA-LD's one-step statements: Lemmas B.1, B.2, B.4, B.5 and F.1. Notation as in `theory.fa_ld.bounds`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.distance import w2_gaussian
from fedsim.law import recorded_rounds
from fedsim.validation import array, shape

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from ..exact import joint_law
from .bounds import _full_and_constant, _refuse_participation, _refuse_schedule
from .setting import PAPER, setting, within


def _two_sets_of_points(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                        start: Any) -> dict[str, Any]:
    """Points for Lemma B.1 when it is examined on a problem: the clients' minimizers, and those
    mirrored at the global one and moved by a standard deviation of the target."""
    away = problem.minimizer - problem.minimizers + np.sqrt(algorithm.target(problem).variances)
    return {"points": problem.minimizers, "others": problem.minimizer + away}


@theorem(id="fa_ld.contraction_bound", paper=PAPER, number="Lemma B.1 (4.4)", kind="upper",
         quantity="squared_distance_after_step", algorithm=FALD, convention="federated",
         hypotheses=("step_size <= 1/(smoothness + strong_convexity)",), variants=("printed",),
         index="local_step", inputs=_two_sets_of_points)
def contraction_bound(constants: Constants, algorithm: FALD, *, points: Any, others: Any, n_rounds: int = 0,
                      record: Any = None, variant: str = "printed") -> Bound:
    """Contraction of one exact gradient step, up to the clients' divergence.

    Guarantee, for any points beta^c, theta^c with averages beta, theta and averaged gradients:

        ||beta - theta - eta (grad f(beta) - grad f(theta))||^2
            <= (1 - eta m) ||beta - theta||^2
               + 4 eta L sum_c p_c (||beta^c - beta||^2 + ||theta^c - theta||^2)

    Source: FA-LD Lemma B.1.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        Its largest step size is used.
    points, others : (N, d)
        beta^c and theta^c.
    n_rounds, record
        Of no influence: the statement is about one step.

    Returns
    -------
    Bound with one entry and terms "contraction" and "divergence".

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant; for `points` or `others` of another shape.
    """
    s = setting(constants, algorithm)
    beta = shape("points", array("points", points, 2), (s.N, s.d))
    theta = shape("others", array("others", others, 2), (s.N, s.d))
    p = constants.weights
    spread = sum(p @ ((x - p @ x) ** 2).sum(axis=1) for x in (beta, theta))
    return Bound.from_terms(
        {"contraction": max(1 - s.eta * s.m, 0.0) * ((p @ beta - p @ theta) ** 2).sum(),
         "divergence": 4 * s.eta * s.L * spread},
        np.array([1]), assumptions=(within(s, "1/(L+m)"),), quantity="squared_distance_after_step",
        kind="upper", source="FA-LD Lemma B.1", variant=variant, index="local_step",
        inputs={"points": beta, "others": theta, "step_size": s.eta})


@theorem(id="fa_ld.discretization_bound", paper=PAPER, number="Lemma B.2", kind="upper",
         quantity="langevin_increment", algorithm=FALD, convention="federated", hypotheses=(),
         variants=("printed",), index="local_step")
def discretization_bound(constants: Constants, algorithm: FALD, *, n_rounds: int = 0, record: Any = None,
                         variant: str = "printed") -> Bound:
    """Movement of the stationary Langevin diffusion within one step.

    Guarantee, for every time s, with k eta the last multiple of eta before it:

        E||theta(s) - theta(k eta)||^2 <= 2 eta^2 d kappa L tau + 16 eta d tau

    Source: FA-LD Lemma B.2, whose range of step sizes is not needed. (Our transcription ends with tau/p_c;
    the p_c is struck out in the proof, where the mark of the stroke is kept.)

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        Its largest step size is used.
    n_rounds, record
        Of no influence: the statement is about one step.
    variant : "printed"
        The only form.

    Returns
    -------
    Bound with one entry and terms "drift" and "noise".

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant.
    """
    s = setting(constants, algorithm)
    return Bound.from_terms(
        {"drift": 2 * s.eta**2 * s.d * s.kappa * s.L * s.tau, "noise": 16 * s.eta * s.d * s.tau},
        np.array([1]), assumptions=(), quantity="langevin_increment", kind="upper",
        source="FA-LD Lemma B.2", variant=variant, index="local_step", target=constants.target,
        inputs={"step_size": s.eta, "temperature": s.tau})


@theorem(id="fa_ld.gradient_noise_bound", paper=PAPER, number="Lemma B.4", kind="upper",
         quantity="averaged_gradient_noise", algorithm=FALD, convention="federated", hypotheses=(),
         variants=("proof", "printed"), index="local_step")
def gradient_noise_bound(constants: Constants, algorithm: FALD, *, n_rounds: int = 0, record: Any = None,
                         variant: str = "proof") -> Bound:
    """Variance of the averaged stochastic gradient.

    Guarantee:  E||sum_c p_c (g_c - grad f_c)||^2 <= d sigma^2 sum_c p_c^2.

    Source: FA-LD Lemma B.4; its proof has this line, its statement bounds sum_c p_c^2 by 1.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
    n_rounds, record
        Of no influence: the statement is about one evaluation.
    variant : "proof" or "printed"
        "printed" has 1 for sum_c p_c^2.

    Returns
    -------
    Bound with one entry and the term "gradient_noise".

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant.
    """
    s = setting(constants, algorithm)
    share = 1.0 if variant == "printed" else float((constants.weights**2).sum())
    return Bound.from_terms(
        {"gradient_noise": s.d * s.sigma**2 * share}, np.array([1]), assumptions=(),
        quantity="averaged_gradient_noise", kind="upper", source="FA-LD Lemma B.4", variant=variant,
        index="local_step")


def _distances_inside_rounds(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                             start: Any) -> dict[str, Any]:
    """The exact W2 of the averaged iterate at local steps 0..n_rounds*K."""
    law = joint_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)
    goal = algorithm.target(problem)
    return {"w2": w2_gaussian(law.average_mean, law.average_cov, goal.mean, goal.cov)}


@theorem(id="fa_ld.one_step_bound", paper=PAPER, number="Lemma B.5 (4.6)", kind="upper",
         quantity="w2_sq_of_average", algorithm=FALD, convention="federated",
         hypotheses=("constant step_size <= 1/(2 smoothness)", "full participation"),
         variants=("printed",), index="local_step", applies=_full_and_constant,
         inputs=_distances_inside_rounds)
def one_step_bound(constants: Constants, algorithm: FALD, *, w2: Any, n_rounds: int = 0, record: Any = None,
                   variant: str = "printed") -> Bound:
    """One local step of the averaged iterate, in squared W2.

    Guarantee, for every local step k:

        W2^2(k+1) <= (1 - eta m/2) W2^2(k) + 400 eta^2 d L^2 H_rho ((K-1)^2 + kappa)

    Source: FA-LD Lemma B.5, printed for independent noise (H_rho = H_0 at shared_noise = 0); with Lemma B.3,
    which is printed for any shared noise, the same proof gives the step behind Theorem 4.9.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        Full participation, constant step size.
    w2 : (n,)
        Distances of the averaged iterate at local steps 0..n-1.
    n_rounds, record
        Of no influence: `w2` decides.
    variant : "printed"
        The only form.

    Returns
    -------
    Bound on the squared distance at local steps 1..n, terms "contraction" and "error".

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant; for distances that are not (n,).
    """
    _refuse_participation(algorithm)
    _refuse_schedule(algorithm)
    s = setting(constants, algorithm)
    before = array("w2", w2, 1)
    return Bound.from_terms(
        {"contraction": max(1 - s.eta * s.m / 2, 0.0) * before**2,
         "error": 400 * (s.eta * s.L) ** 2 * s.d * s.H * ((s.K - 1) ** 2 + s.kappa)},
        np.arange(1, len(before) + 1), assumptions=(within(s, "1/(2L)"),), quantity="w2_sq_of_average",
        kind="upper", source="FA-LD Lemma B.5", variant=variant, index="local_step",
        target=constants.target)


@theorem(id="fa_ld.initial_bound", paper=PAPER, number="Lemma F.1", kind="upper", quantity="w2",
         algorithm=FALD, convention="federated", hypotheses=(), variants=("triangle", "printed"))
def initial_bound(constants: Constants, algorithm: FALD, *, n_rounds: int = 0, record: Any = None,
                  variant: str = "triangle") -> Bound:
    """W2 between the start and the target.

    Guarantee:  W2(start, target) <= ||theta_0 - theta_*|| + sqrt(d tau/m).

    Source: FA-LD Lemma F.1 (a point), which has sqrt(2) times this; for a random start with the root mean
    square distance. Proof: the triangle inequality through the point theta_*, whose W2 from the target is
    (E_pi||theta - theta_*||^2)^(1/2) <= sqrt(d tau/m), as the lemma's proof has it.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
    n_rounds, record
        Of no influence: the statement is about round 0.
    variant : "triangle" or "printed"
        "printed" has the factor sqrt(2).

    Returns
    -------
    Bound at round 0 with terms "distance" and "spread".

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant.

    Examples
    --------
    >>> from theory.constants import Constants
    >>> known = Constants(dim=1, strong_convexity=1.0, smoothness=4.0, weights=[1.0], initial_distance=2.0)
    >>> initial_bound(known, FALD(0.1)).value.tolist()
    [3.0]
    """
    s = setting(constants, algorithm)
    factor = np.sqrt(2 * s.d) if variant == "printed" else np.sqrt(s.d)
    return Bound.from_terms(
        {"distance": factor * s.D, "spread": factor * np.sqrt(s.tau / s.m)}, recorded_rounds(0),
        assumptions=(), quantity="w2", kind="upper", source="FA-LD Lemma F.1", variant=variant,
        target=constants.target, start_distance=constants.initial_w2)
