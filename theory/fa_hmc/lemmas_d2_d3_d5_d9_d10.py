"""FA-HMC's lemmas along trajectories, from given points and from the target: D.2, D.3, D.5, D.9 and D.10.

Statements are evaluated at u = k eta, k = 1..K (``index == "leapfrog_step"``), eta the largest step size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.interfaces import Problem
from fedsim.settings.alignment import together
from fedsim.settings.validation import Array, array, positive, shape

from ..declare.statement import Terms
from ..facts.constants_of_problem import Constants
from .hypotheses import FULL_TURN, HALF_TURN, within
from .notation import FULL, SMOOTH, Setting, client_number, hessian_theorem, maximal_constant, theorem


def _times(s: Setting) -> tuple[np.ndarray, Array]:
    """k = 1..K and u = k eta."""
    k = np.arange(1, s.K + 1)
    return k, np.asarray(k * (s.X / s.K), dtype=np.float64)


def _two_trajectories(problem: Problem, algorithm: FAHMC, *others: Any) -> dict[str, Any]:
    """Starts a standard deviation of the target apart, and momenta a vector of ones."""
    return {"position_gap": np.sqrt(algorithm.target(problem).variances),
            "momentum_gap": np.ones(problem.dim)}


@theorem("Lemma D.3", quantity="flow_distance", terms=("position", "momentum"),
         hypotheses=(within(HALF_TURN), FULL), index="leapfrog_step", inputs=_two_trajectories,
         variants={"sharp": "", "corrected": "C = 2 sinh(1/2)", "printed": "C = sinh(1/2)"},
         arguments={"position_gap": "(d,): theta(0) - theta'(0).", "momentum_gap": "(d,): p(0) - p'(0)."})
def flow_distance_bound(s: Setting, variant: str, *, position_gap: Any, momentum_gap: Any) -> Terms:
    """Two exact trajectories of f, from different starts with different momenta.

    Guarantee, for times u <= 1/(2 sqrt(L)):

        ||theta(u) - theta'(u)|| <= (1 - mu u^2/4) ||theta(0) - theta'(0)||
                                    + (sinh(sqrt(L) u)/sqrt(L)) ||p(0) - p'(0)||

    Source: FA-HMC Lemma D.3: its first claim for the momenta, its second for the starts. The second claim
    has C u for the last factor. Its proof needs sinh(h) <= C h up to h = 1/2, so that C >= 2 sinh(1/2) =
    1.042; sinh(1/2) = 0.521 is printed, and false: without any force trajectories part by u ||p - p'||.

    The algorithm's largest step size and number of leapfrog steps say at which times.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.806
    """
    position_gap, momentum_gap = together(0, position_gap=position_gap, momentum_gap=momentum_gap)
    apart, push = (shape(name, array(name, value, 1), (s.d,)) for name, value in
                   (("position_gap", position_gap), ("momentum_gap", momentum_gap)))
    k, u = _times(s)
    reach = {"sharp": np.sinh(np.sqrt(s.L) * u) / np.sqrt(s.L), "corrected": 2.0 * np.sinh(0.5) * u,
             "printed": np.sinh(0.5) * u}[variant]
    return Terms({"position": np.maximum(1.0 - 0.25 * s.mu * u**2, 0.0) * np.linalg.norm(apart),
                  "momentum": reach * np.linalg.norm(push)}, rounds=k,
                 inputs={"times": u, "position_gap": apart, "momentum_gap": push})


def _from_the_middle(problem: Problem, algorithm: FAHMC, constants: Any, *others: Any) -> dict[str, Any]:
    """The client of smallest weight, from the global minimizer, with a typical momentum."""
    client = int(np.argmin(problem.weights))
    size = algorithm.shared_noise + (1.0 - algorithm.shared_noise) / problem.weights[client]
    point = constants.need("minimizer")
    return {"client": client, "point": point, "momentum": np.full(problem.dim, np.sqrt(size)),
            "gradient": problem.gradient(client, point)}


MOVED: dict[str, Any] = {
    "terms": ("momentum", "gradient", "gradient_noise"), "hypotheses": (within(FULL_TURN), FULL),
    "variants": {"proof": "as the end of the lemma's proof has it", "printed": "without the last 1/k"},
    "index": "leapfrog_step", "inputs": _from_the_middle,
    "arguments": {"point": "(d,): q_0.", "momentum": "(d,): p_0.", "gradient": "(d,): grad f_c(q_0)."}}


@theorem("Lemma D.5 (5)", quantity="leapfrog_displacement", **MOVED)
def displacement_bound(s: Setting, variant: str, *, point: Any, momentum: Any, gradient: Any,
                       client: int | None = None) -> Terms:
    """How far k leapfrog steps of a client lead, from a point with a momentum.

    Guarantee, for k eta <= 1/sqrt(L):

        E||q_k - q_0||^2 <= 2 (k eta)^2 ||p||^2 + (k eta)^4 ||grad f_c(q_0)||^2 + (k eta)^4 sigma_g^2 d/k

    Source: FA-HMC Lemma D.5 (5). The printed splits (3/5, 1/3, 1/15) give the constants up to
    1/(2 sqrt(L)). Proof for the whole range, by L2 norms as for `leapfrog_deviation_bound`:
    e_k <= ((k eta |p| + (k eta)^2 |grad f|/2)^2 + (eta^4/12) k (2k^2+1) sigma_g^2 d)^(1/2)
    + L eta^2 sum_{j<k} (k-j) e_j, and iterated e_k^2 is at most .9855 of the bound (.75 at k = 1).

    Of a schedule the largest step size counts.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.02
    """
    return _moved(s, variant, point, momentum, gradient, client)


@theorem("Lemma D.5 (6)", quantity="leapfrog_gradient_displacement", **MOVED)
def gradient_displacement_bound(s: Setting, variant: str, *, point: Any, momentum: Any, gradient: Any,
                                client: int | None = None) -> Terms:
    """How much a client's gradient changes over k leapfrog steps: L^2 times `displacement_bound`.

    Guarantee, for k eta <= 1/sqrt(L):  E||grad f_c(q_k) - grad f_c(q_0)||^2 <= L^2 times (5).

    Source: FA-HMC Lemma D.5 (6), from (5) by L-smoothness.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.181
    """
    return _moved(s, variant, point, momentum, gradient, client, s.L**2)


def _moved(s: Setting, variant: str, point: Any, momentum: Any, gradient: Any, client: Any,
           factor: float = 1.0) -> Terms:
    """The parts of (5) at k = 1..K, and what the exact value depends on."""
    point, momentum, gradient = together(0, point=point, momentum=momentum, gradient=gradient)
    q, p, g = (shape(name, array(name, value, 1), (s.d,)) for name, value in
               (("point", point), ("momentum", momentum), ("gradient", gradient)))
    k, u = _times(s)
    noise = u**4 * s.sigma_sq * s.d
    parts = {"momentum": 2.0 * u**2 * (p**2).sum(), "gradient": u**4 * (g**2).sum(),
             "gradient_noise": noise if variant == "printed" else noise / k}
    return Terms({name: factor * part for name, part in parts.items()}, rounds=k,
                 inputs={"client": client_number(s, client), "point": q, "momentum": p,
                         "step_size": s.X / s.K})


@theorem("Lemma D.2", quantity="target_second_moment", terms=("spread",))
def target_moment_bound(constants: Constants) -> Terms:
    """The target about its mode.

    Guarantee:  E||theta^pi - theta_*||^2 <= d/mu.

    Source: FA-HMC Lemma D.2 (Proposition 1 of Durmus and Moulines).

    `theory.check` needs the constants' minimizer.

    Examples
    --------
    >>> bound.value.tolist()
    [1.0]
    """
    return Terms({"spread": constants.dim / constants.strong_convexity}, rounds=np.array([0]),
                 inputs={"minimizer": constants.minimizer})


@theorem("Lemma D.9 (14)", quantity="oracle_deviation", terms=("curvature",), hypotheses=(FULL,),
         index="leapfrog_step")
def oracle_deviation_bound(s: Setting) -> Terms:
    """A trajectory from the target against a straight line.

    Guarantee:  E||theta^pi(u) - theta^pi - u p||^2 <= L^2 d u^4/(4 mu).

    Source: FA-HMC Lemma D.9 (14). For every u: the trajectory stays in the target, so that
    E||grad f||^2 <= L^2 d/mu along it.

    Examples
    --------
    >>> round(float(bound.value[-1]), 6)
    0.000225
    """
    k, u = _times(s)
    return Terms({"curvature": s.L**2 * s.d * u**4 / (4.0 * s.mu)}, rounds=k, inputs={"times": u})


@theorem("Lemma D.9 (15)", quantity="oracle_reach", terms=("momentum",), hypotheses=(within(FULL_TURN), FULL),
         index="leapfrog_step")
def oracle_reach_bound(s: Setting) -> Terms:
    """How far a trajectory from the target leads, weighted by the momentum's largest entry.

    Guarantee, for u <= 1/sqrt(L):  E||theta^pi(u) - theta^pi||^2 ||p||_max^2 <= u^2 c_d d/3.

    Source: FA-HMC Lemma D.9 (15), with ||p|| in our transcription where its proof has ||p||_max. The proof
    applies Lemma D.3 at u/2 from the middle of the trajectory, with C = 1.042, so that the left side is at
    most 1.086 u^2 E||p'||^2 ||p||_max^2 <= 1.086 u^2 sqrt(d (d+2) c_d) <= .16 u^2 c_d d.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.478
    """
    k, u = _times(s)
    return Terms({"momentum": u**2 * s.c_d * s.d / 3.0}, rounds=k, inputs={"times": u})


@hessian_theorem("Lemma D.9 (16)", quantity="oracle_gradient_deviation", terms=("curvature",),
                 hypotheses=(within(FULL_TURN), SMOOTH, FULL), index="leapfrog_step",
                 variants={"corrected": "", "printed": "without L^3"})
def oracle_gradient_bound(s: Setting, variant: str) -> Terms:
    """Gradients along a trajectory from the target against their first-order expansion.

    Guarantee:  E||grad f(theta^pi(u)) - grad f(theta^pi) - u Hess f p||^2 <= L^3 delta_pi u^4, with
    delta_pi of (17), for u <= 1/sqrt(L).

    Source: FA-HMC Lemma D.9 (16), printed without the L^3 that equation (28) uses.

    Examples
    --------
    >>> round(float(bound.value[-1]), 5)
    0.01013
    """
    k, u = _times(s)
    scale = 1.0 if variant == "printed" else s.L**3
    return Terms({"curvature": scale * s.target_error * u**4}, rounds=k, inputs={"times": u})


@theorem("Lemma D.10", quantity="gaussian_maxima", terms=("maximum",), index="leapfrog_step",
         arguments={"momentum_variance": "float: v, positive."})
def maxima_bound(constants: Constants, *, momentum_variance: float = 1.0) -> Terms:
    """Largest entries of a Gaussian momentum of variance v per coordinate.

    Guarantee, with c_d = 128 + 32 log(2 d)^2:

        E||p||_max^2 <= c_d v,    E||p||^2 ||p||_max^2 <= c_d d v^2,    E||p||_max^4 <= c_d v^2

    Source: FA-HMC Lemma D.10.

    Entries 0, 1 and 2 are the three statements. Of the constants only the dimension counts.

    Examples
    --------
    >>> bound.value.round(1).tolist()
    [143.4, 143.4, 143.4]
    """
    v, d = positive("momentum_variance", momentum_variance), constants.dim
    return Terms({"maximum": maximal_constant(d) * np.array([v, d * v**2, v**2])}, rounds=np.arange(3),
                 inputs={"momentum_variance": v})
