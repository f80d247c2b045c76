"""FA-HMC's lemmas about trajectories and the oracle: Lemmas D.2, D.3, D.5, D.9 and D.10.

Statements along a trajectory are evaluated at u = k eta, k = 1..K (``index == "leapfrog_step"``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.law import recorded_rounds
from fedsim.validation import Array, array, positive, shape

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from .bounds import all_clients
from .setting import FULL_TURN, HALF_TURN, PAPER, Setting, client_number, maximal_constant, setting, within


def _times(s: Setting) -> tuple[np.ndarray, Array]:
    k = np.arange(1, s.K + 1)
    return k, np.asarray(k * (s.X / s.K), dtype=np.float64)


@theorem(id="fa_hmc.target_moment_bound", paper=PAPER, number="Lemma D.2", kind="upper",
         quantity="target_second_moment", algorithm=FAHMC, convention="federated", hypotheses=(),
         variants=("corrected",))
def target_moment_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int = 0, record: Any = None,
                        variant: str = "corrected") -> Bound:
    """The target about its mode.

    Guarantee:  E||theta^pi - theta_*||^2 <= d/mu.

    Source: FA-HMC Lemma D.2 (Proposition 1 of Durmus and Moulines).

    Parameters
    ----------
    constants : Constants
        Convention "federated", with the minimizer.
    algorithm : fedsim.FAHMC
    n_rounds, record
        Of no influence.

    Returns
    -------
    Bound with one entry and the term "spread".
    """
    return Bound.from_terms(
        {"spread": constants.dim / constants.strong_convexity}, recorded_rounds(0), assumptions=(),
        quantity="target_second_moment", kind="upper", source="FA-HMC Lemma D.2", variant=variant,
        inputs={"minimizer": constants.minimizer})


def _two_trajectories(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                      start: Any) -> dict[str, Any]:
    """Starts a standard deviation of the target apart, and momenta a vector of ones."""
    return {"position_gap": np.sqrt(algorithm.target(problem).variances),
            "momentum_gap": np.ones(problem.dim)}


@theorem(id="fa_hmc.flow_distance_bound", paper=PAPER, number="Lemma D.3", kind="upper",
         quantity="flow_distance", algorithm=FAHMC, convention="federated", hypotheses=(HALF_TURN,),
         variants=("corrected", "printed", "sharp"), index="leapfrog_step", inputs=_two_trajectories)
def flow_distance_bound(constants: Constants, algorithm: FAHMC, *, position_gap: Any, momentum_gap: Any,
                        n_rounds: int = 0, record: Any = None, variant: str = "corrected") -> Bound:
    """Two exact trajectories of f, from different starts with different momenta.

    Guarantee, for times u <= 1/(2 sqrt(L)):

        ||theta(u) - theta'(u)|| <= (1 - mu u^2/4) ||theta(0) - theta'(0)|| + C u ||p(0) - p'(0)||

    Source: FA-HMC Lemma D.3. Its proof needs sinh(h) <= C h up to h = 1/2, so that C >= 2 sinh(1/2) =
    1.042; sinh(1/2) = 0.521 is printed, and false: without any force trajectories part by u ||p - p'||.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        Its largest step size and number of leapfrog steps say at which times.
    position_gap, momentum_gap : (d,)
        theta(0) - theta'(0) and p(0) - p'(0).
    n_rounds, record
        Of no influence.
    variant : "corrected", "printed" or "sharp"
        "sharp" has sinh(sqrt(L) u)/sqrt(L) for C u, the lemma's first claim.

    Returns
    -------
    Bound at leapfrog steps 1..K with terms "position" and "momentum".
    """
    s = setting(constants, algorithm)
    apart = shape("position_gap", array("position_gap", position_gap, 1), (s.d,))
    push = shape("momentum_gap", array("momentum_gap", momentum_gap, 1), (s.d,))
    k, u = _times(s)
    if variant == "sharp":
        reach = np.sinh(np.sqrt(s.L) * u) / np.sqrt(s.L)
    else:
        reach = (2.0 if variant == "corrected" else 1.0) * np.sinh(0.5) * u
    return Bound.from_terms(
        {"position": np.maximum(1.0 - 0.25 * s.mu * u**2, 0.0) * np.linalg.norm(apart),
         "momentum": reach * np.linalg.norm(push)}, k, assumptions=(within(s, HALF_TURN),),
        quantity="flow_distance", kind="upper", source="FA-HMC Lemma D.3", variant=variant,
        index="leapfrog_step", inputs={"times": u, "position_gap": apart, "momentum_gap": push})


def _from_the_middle(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                     start: Any) -> dict[str, Any]:
    """The client of smallest weight, from the global minimizer, with a typical momentum."""
    client = int(np.argmin(problem.weights))
    size = algorithm.shared_noise + (1.0 - algorithm.shared_noise) / problem.weights[client]
    point = problem.minimizer
    return {"client": client, "point": point, "momentum": np.full(problem.dim, np.sqrt(size)),
            "gradient": problem.gradient(client, point)}


@theorem(id="fa_hmc.displacement_bound", paper=PAPER, number="Lemma D.5 (5)", kind="upper",
         quantity="leapfrog_displacement", algorithm=FAHMC, convention="federated",
         hypotheses=(FULL_TURN,), index="leapfrog_step", inputs=_from_the_middle, applies=all_clients)
def displacement_bound(constants: Constants, algorithm: FAHMC, *, point: Any, momentum: Any, gradient: Any,
                       client: int | None = None, n_rounds: int = 0, record: Any = None,
                       variant: str = "corrected") -> Bound:
    """How far k leapfrog steps of a client lead, from a point with a momentum.

    Guarantee, for k eta <= 1/sqrt(L):

        E||q_k - q_0||^2 <= 2 (k eta)^2 ||p||^2 + (k eta)^4 ||grad f_c(q_0)||^2 + (k eta)^4 sigma_g^2 d/k

    Source: FA-HMC Lemma D.5 (5). Printed without the last 1/k, which is true but weaker. The printed
    splits (3/5, 1/3, 1/15) of the proof give 2.5 for 2; triangle inequalities in L2, with
    q_k - q_0 at most sinh(h)/h, (cosh(h) - 1)/h^2 of its first-order parts, h = k eta sqrt(L), give 2.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        Its largest step size counts.
    point, momentum, gradient : (d,)
        q_0, p_0 and grad f_c(q_0).
    client : int, optional
        Whose leapfrog it is; the one of smallest weight by default.
    n_rounds, record
        Of no influence.
    variant : "corrected" or "printed"

    Returns
    -------
    Bound at leapfrog steps 1..K with terms "momentum", "gradient" and "gradient_noise".
    """
    s = setting(constants, algorithm)
    q, p, g = (shape(name, array(name, value, 1), (s.d,)) for name, value in
               (("point", point), ("momentum", momentum), ("gradient", gradient)))
    k, u = _times(s)
    noise = u**4 * s.of(variant).sigma_sq * s.d
    return Bound.from_terms(
        {"momentum": 2.0 * u**2 * (p**2).sum(), "gradient": u**4 * (g**2).sum(),
         "gradient_noise": noise if variant == "printed" else noise / k}, k,
        assumptions=(within(s, FULL_TURN),), quantity="leapfrog_displacement", kind="upper",
        source="FA-HMC Lemma D.5 (5)", variant=variant, index="leapfrog_step",
        inputs={"client": client_number(s, client), "point": q, "momentum": p, "step_size": s.X / s.K})


@theorem(id="fa_hmc.oracle_deviation_bound", paper=PAPER, number="Lemma D.9 (14)", kind="upper",
         quantity="oracle_deviation", algorithm=FAHMC, convention="federated", hypotheses=(HALF_TURN,),
         variants=("corrected",), index="leapfrog_step")
def oracle_deviation_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int = 0, record: Any = None,
                           variant: str = "corrected") -> Bound:
    """A trajectory from the target against a straight line.

    Guarantee:  E||theta^pi(u) - theta^pi - u p||^2 <= L^2 d u^4/(4 mu).

    Source: FA-HMC Lemma D.9 (14).

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
    n_rounds, record
        Of no influence.

    Returns
    -------
    Bound at leapfrog steps 1..K with the term "curvature".
    """
    s = setting(constants, algorithm)
    k, u = _times(s)
    return Bound.from_terms(
        {"curvature": s.L**2 * s.d * u**4 / (4.0 * s.mu)}, k, assumptions=(within(s, HALF_TURN),),
        quantity="oracle_deviation", kind="upper", source="FA-HMC Lemma D.9 (14)", variant=variant,
        index="leapfrog_step", inputs={"times": u})


@theorem(id="fa_hmc.oracle_reach_bound", paper=PAPER, number="Lemma D.9 (15)", kind="upper",
         quantity="oracle_reach", algorithm=FAHMC, convention="federated", hypotheses=(HALF_TURN,),
         variants=("corrected",), index="leapfrog_step")
def oracle_reach_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int = 0, record: Any = None,
                       variant: str = "corrected") -> Bound:
    """How far a trajectory from the target leads, weighted by the momentum's largest entry.

    Guarantee:  E||theta^pi(u) - theta^pi||^2 ||p||_max^2 <= u^2 c_d d/3.

    Source: FA-HMC Lemma D.9 (15), where ||p||_max is printed as ||p||. Its 1/3 comes from the C = 0.521
    of Lemma D.3, and is true with the right C because c_d is generous.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
    n_rounds, record
        Of no influence.

    Returns
    -------
    Bound at leapfrog steps 1..K with the term "momentum".
    """
    s = setting(constants, algorithm)
    k, u = _times(s)
    return Bound.from_terms(
        {"momentum": u**2 * s.c_d * s.d / 3.0}, k, assumptions=(within(s, HALF_TURN),),
        quantity="oracle_reach", kind="upper", source="FA-HMC Lemma D.9 (15)", variant=variant,
        index="leapfrog_step", inputs={"times": u})


@theorem(id="fa_hmc.oracle_gradient_bound", paper=PAPER, number="Lemma D.9 (16)", kind="upper",
         quantity="oracle_gradient_deviation", algorithm=FAHMC, convention="federated",
         hypotheses=(HALF_TURN,), index="leapfrog_step")
def oracle_gradient_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int = 0, record: Any = None,
                          hessian_smoothness: float = 0.0, variant: str = "corrected") -> Bound:
    """Gradients along a trajectory from the target against their first-order expansion.

    Guarantee:  E||grad f(theta^pi(u)) - grad f(theta^pi) - u Hess f p||^2 <= L^3 delta_pi u^4, with
    delta_pi of (17).

    Source: FA-HMC Lemma D.9 (16), printed without the L^3 that equation (28) uses.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
    hessian_smoothness : float
    n_rounds, record
        Of no influence.
    variant : "corrected" or "printed"

    Returns
    -------
    Bound at leapfrog steps 1..K with the term "curvature".
    """
    s = setting(constants, algorithm, hessian_smoothness)
    k, u = _times(s)
    scale = 1.0 if variant == "printed" else s.L**3
    return Bound.from_terms(
        {"curvature": scale * s.target_error * u**4}, k, assumptions=(within(s, HALF_TURN),),
        quantity="oracle_gradient_deviation", kind="upper", source="FA-HMC Lemma D.9 (16)", variant=variant,
        index="leapfrog_step", inputs={"times": u})


@theorem(id="fa_hmc.maxima_bound", paper=PAPER, number="Lemma D.10", kind="upper",
         quantity="gaussian_maxima", algorithm=FAHMC, convention="federated", hypotheses=(),
         variants=("corrected",), index="leapfrog_step")
def maxima_bound(constants: Constants, algorithm: FAHMC, *, momentum_variance: float = 1.0,
                 n_rounds: int = 0, record: Any = None, variant: str = "corrected") -> Bound:
    """Largest entries of a Gaussian momentum of variance v per coordinate.

    Guarantee, with c_d = 128 + 32 log(2 d)^2:

        E||p||_max^2 <= c_d v,    E||p||^2 ||p||_max^2 <= c_d d v^2,    E||p||_max^4 <= c_d v^2

    Source: FA-HMC Lemma D.10.

    Parameters
    ----------
    constants : Constants
        Of which the dimension counts.
    algorithm : fedsim.FAHMC
    momentum_variance : float
    n_rounds, record
        Of no influence.

    Returns
    -------
    Bound whose entries 0, 1 and 2 are the three statements, in the term "maximum".
    """
    v, d = positive("momentum_variance", momentum_variance), constants.dim
    return Bound.from_terms(
        {"maximum": maximal_constant(d) * np.array([v, d * v**2, v**2])}, np.arange(3), assumptions=(),
        quantity="gaussian_maxima", kind="upper", source="FA-HMC Lemma D.10", variant=variant,
        index="leapfrog_step", inputs={"momentum_variance": v})
