"""FA-HMC's lemmas about the oracle, which starts in the target: Lemmas D.2, D.9 and D.10.

Statements along a trajectory are evaluated at u = k eta, k = 1..K (``index == "leapfrog_step"``).
"""

from __future__ import annotations

import numpy as np

from fedsim.settings.validation import positive

from ..facts import Constants
from ..statement import Terms
from .setting import FULL, FULL_TURN, Setting, hessian_theorem, maximal_constant, theorem, within
from .trajectories import times


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
    k, u = times(s)
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
    k, u = times(s)
    return Terms({"momentum": u**2 * s.c_d * s.d / 3.0}, rounds=k, inputs={"times": u})


@hessian_theorem("Lemma D.9 (16)", quantity="oracle_gradient_deviation", terms=("curvature",),
                 hypotheses=(within(FULL_TURN), FULL), index="leapfrog_step",
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
    k, u = times(s)
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
