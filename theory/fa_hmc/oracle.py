"""FA-HMC's lemmas about the oracle, which starts in the target: Lemmas D.2, D.9 and D.10.

Statements along a trajectory are evaluated at u = k eta, k = 1..K (``index == "leapfrog_step"``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.law import recorded_rounds
from fedsim.validation import positive

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from .setting import FULL_TURN, PAPER, maximal_constant, setting, within
from .trajectories import times


@theorem(id="fa_hmc.target_moment_bound", paper=PAPER, number="Lemma D.2", kind="upper",
         quantity="target_second_moment", algorithm=FAHMC, convention="federated", hypotheses=(),
         variants=("printed",))
def target_moment_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int = 0, record: Any = None,
                        variant: str = "printed") -> Bound:
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

    Raises
    ------
    ValueError
        For constants of another convention, another class of algorithm, and an unknown variant.
    """
    return Bound.from_terms(
        {"spread": constants.dim / constants.strong_convexity}, recorded_rounds(0), assumptions=(),
        quantity="target_second_moment", kind="upper", source="FA-HMC Lemma D.2", variant=variant,
        target=constants.target, inputs={"minimizer": constants.minimizer})


@theorem(id="fa_hmc.oracle_deviation_bound", paper=PAPER, number="Lemma D.9 (14)", kind="upper",
         quantity="oracle_deviation", algorithm=FAHMC, convention="federated", hypotheses=(),
         variants=("printed",), index="leapfrog_step")
def oracle_deviation_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int = 0, record: Any = None,
                           variant: str = "printed") -> Bound:
    """A trajectory from the target against a straight line.

    Guarantee:  E||theta^pi(u) - theta^pi - u p||^2 <= L^2 d u^4/(4 mu).

    Source: FA-HMC Lemma D.9 (14). For every u: the trajectory stays in the target, so that
    E||grad f||^2 <= L^2 d/mu along it.

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

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant.
    """
    s = setting(constants, algorithm)
    k, u = times(s)
    return Bound.from_terms(
        {"curvature": s.L**2 * s.d * u**4 / (4.0 * s.mu)}, k, assumptions=(),
        quantity="oracle_deviation", kind="upper", source="FA-HMC Lemma D.9 (14)", variant=variant,
        index="leapfrog_step", inputs={"times": u})


@theorem(id="fa_hmc.oracle_reach_bound", paper=PAPER, number="Lemma D.9 (15)", kind="upper",
         quantity="oracle_reach", algorithm=FAHMC, convention="federated", hypotheses=(FULL_TURN,),
         variants=("printed",), index="leapfrog_step")
def oracle_reach_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int = 0, record: Any = None,
                       variant: str = "printed") -> Bound:
    """How far a trajectory from the target leads, weighted by the momentum's largest entry.

    Guarantee, for u <= 1/sqrt(L):  E||theta^pi(u) - theta^pi||^2 ||p||_max^2 <= u^2 c_d d/3.

    Source: FA-HMC Lemma D.9 (15), with ||p|| in our transcription where its proof has ||p||_max. The proof
    applies Lemma D.3 at u/2 from the middle of the trajectory, with C = 1.042, so that the left side is at
    most 1.086 u^2 E||p'||^2 ||p||_max^2 <= 1.086 u^2 sqrt(d (d+2) c_d) <= .16 u^2 c_d d.

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

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant.
    """
    s = setting(constants, algorithm)
    k, u = times(s)
    return Bound.from_terms(
        {"momentum": u**2 * s.c_d * s.d / 3.0}, k, assumptions=(within(s, FULL_TURN),),
        quantity="oracle_reach", kind="upper", source="FA-HMC Lemma D.9 (15)", variant=variant,
        index="leapfrog_step", inputs={"times": u})


@theorem(id="fa_hmc.oracle_gradient_bound", paper=PAPER, number="Lemma D.9 (16)", kind="upper",
         quantity="oracle_gradient_deviation", algorithm=FAHMC, convention="federated",
         hypotheses=(FULL_TURN,), variants=("corrected", "printed"), index="leapfrog_step")
def oracle_gradient_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int = 0, record: Any = None,
                          hessian_smoothness: float = 0.0, variant: str = "corrected") -> Bound:
    """Gradients along a trajectory from the target against their first-order expansion.

    Guarantee:  E||grad f(theta^pi(u)) - grad f(theta^pi) - u Hess f p||^2 <= L^3 delta_pi u^4, with
    delta_pi of (17), for u <= 1/sqrt(L).

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

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant.
    """
    s = setting(constants, algorithm, hessian_smoothness)
    k, u = times(s)
    scale = 1.0 if variant == "printed" else s.L**3
    return Bound.from_terms(
        {"curvature": scale * s.target_error * u**4}, k, assumptions=(within(s, FULL_TURN),),
        quantity="oracle_gradient_deviation", kind="upper", source="FA-HMC Lemma D.9 (16)", variant=variant,
        index="leapfrog_step", inputs={"times": u})


@theorem(id="fa_hmc.maxima_bound", paper=PAPER, number="Lemma D.10", kind="upper",
         quantity="gaussian_maxima", algorithm=FAHMC, convention="federated", hypotheses=(),
         variants=("printed",), index="leapfrog_step")
def maxima_bound(constants: Constants, algorithm: FAHMC, *, momentum_variance: float = 1.0,
                 n_rounds: int = 0, record: Any = None, variant: str = "printed") -> Bound:
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

    Raises
    ------
    ValueError
        For constants of another convention, another class of algorithm, and an unknown variant; for
        momentum_variance not greater than 0.
    """
    v, d = positive("momentum_variance", momentum_variance), constants.dim
    return Bound.from_terms(
        {"maximum": maximal_constant(d) * np.array([v, d * v**2, v**2])}, np.arange(3), assumptions=(),
        quantity="gaussian_maxima", kind="upper", source="FA-HMC Lemma D.10", variant=variant,
        index="leapfrog_step", inputs={"momentum_variance": v})
