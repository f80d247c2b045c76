"""DE-SGHMC's lemmas about the perturbed heavy-ball method: Lemma 13 with (88), and Lemmas 19, 20 and 21.

Lemma 13 has moments of positions and velocities that hold for every iteration; those from the first
iteration on have rounds that count from 1, and n_rounds at least 1. The others are about numbers, not
iterations: that the recursion of the appendix contracts. Notation and constants as in `setting`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.provenance import Identity, Provenance, attach
from fedsim.settings.validation import instance, whole

from ...declare.statement import Terms
from ...theorem_parts import Source, of_its_size
from ..paper import sghmc_theorem as theorem, theorem_of_constants
from ..setting import power
from .setting import Chain

SECOND_CONSTANT = {"sharp": "c_2 with the factor 1 + 1/(2 c_1) of (79)",
                   "printed": "with 1 + 1/c_1, as printed after (86)"}


def _from_first(n_rounds: int, rounds: np.ndarray) -> np.ndarray:
    n_rounds = whole("n_rounds", n_rounds, 1)
    return rounds[rounds > 0]


@theorem("Lemma 13, proof, equation (88)", quantity="lyapunov", terms=("start", "noise"),
         variants=SECOND_CONSTANT, source="DE-SGHMC Lemma 13, equation (88)")
def lyapunov_bound(s: Chain, n_rounds: int, rounds: np.ndarray, variant: str) -> Terms:
    """The Lyapunov function of the heavy-ball recursion.

    Guarantee, for every iteration k from the first on (n_rounds at least 1), with q = max(q_1, q_2):

        V_k = b E[Fbar(x_before) - Fbar(x_a)] + E||x + beta/(1-beta) (x - x_before) - x_a||^2
            <= V_1 q^(k-1) + (2 (eta^4 sigma^2 N + 2 gamma eta^3 N d)/(1-beta)^2 + c_2 ||x_a||^2)/(1-q)

    with V_1 <= b L_a E||x_0 - x_a||^2/2 + 2 E||x_1 - x_a||^2 + 2 beta^2/(1-beta)^2 E||x_1 - x_0||^2.

    Source: DE-SGHMC, proof of Lemma 13, equation (88).

    Examples
    --------
    >>> int(bound.rounds[0]), round(float(bound.value[-1]), 2)
    (1, 8.2)
    """
    c, rounds = s.as_printed(variant == "printed"), _from_first(n_rounds, rounds)
    noise = c.c3 - c.V1  # c_3 first: it asks whether q < 1
    return Terms({"start": c.V1 * power(float(np.log(c.q)), rounds - 1), "noise": noise}, rounds=rounds,
                 inputs={"weight": c.b})


@theorem("Lemma 13, equation (45)", quantity="extrapolated", terms=("motion", "fixed_point"),
         variants=SECOND_CONSTANT)
def extrapolation_bound(s: Chain, n_rounds: int, rounds: np.ndarray, variant: str) -> Terms:
    """Uniform second moment of the extrapolated positions.

    Guarantee, for every iteration from the first on (n_rounds at least 1):

        E||x + beta/(1-beta) (x - x_before)||^2 <= c_4 = 2 c_3 + 2 ||x_a||^2

    Source: DE-SGHMC Lemma 13, equation (45). c_3 and c_4 are those of a given eta and gamma; a supremum
    over all that are allowed depends on neither.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    17.08
    """
    c, rounds = s.as_printed(variant == "printed"), _from_first(n_rounds, rounds)
    return Terms({"motion": 2.0 * c.c3, "fixed_point": 2.0 * c.begin.fixed_norm**2}, rounds=rounds)


@theorem("Lemma 13, equations (46), (105)", quantity="velocities", terms=("start", "motion"),
         variants={"corrected": "c~_4 as in Source", "printed": "c~_4 and c_2 as printed"})
def velocity_bound(s: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """Uniform second moment of the velocities.

    Guarantee, for every iteration:

        sum_i E||v_i||^2 <= c_5 = E||v_0||^2
                                  + (2 eta^2 c~_4 + eta^2 sigma^2 N + 2 gamma eta N d)/(1 - 2 beta^2)

    Source: DE-SGHMC Lemma 13, equation (46), with the explicit constant of its proof, (105). The lemma
    asserts that there is a constant; (105) is one with c~_4 = 2 ||grad F(x^*)||^2 + 2 L^2 sup E||x - x^*||^2
    >= E||grad F(x)||^2, but not with the printed c~_4 = L (||grad F(x^*)||^2 + sup E||x - x^*||^2), which has
    another unit. The printed c_2 inside it is the larger one of `lyapunov_bound`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    6.73
    """
    c = s.as_printed(variant == "printed")
    return {"start": c.start_velocity_sq, "motion": c.c5 - c.start_velocity_sq}


@theorem("Lemma 13, equation (46) of x", quantity="positions", terms=("moment",),
         source="DE-SGHMC Lemma 13, equation (46)",
         variants={"convexity": "", "printed": "4 c_3 + 4 ||x_a||^2 + 2 beta^2/(1-beta)^2 (2 c_3/(mu b) + 2 "
                                               "||x_a||^2), after (102); proved too, by erratum "
                                               "de_sghmc.strong_convexity_factor"})
def position_bound(s: Chain, n_rounds: int, rounds: np.ndarray, variant: str) -> Terms:
    """Uniform second moment of the positions.

    Guarantee, for every iteration from the first on (n_rounds at least 1):

        sum_i E||x_i||^2 <= (sqrt(max(c_3, E||x_0 - x_a||^2)) + ||x_a||)^2

    Source: DE-SGHMC Lemma 13, equation (46), which asserts that there is a constant. Proof:
    x - x_a = (1-beta) (x + beta/(1-beta) (x - x_before) - x_a) + beta (x_before - x_a), so that by convexity
    and (88), E||x - x_a||^2 <= max(c_3, E||x_0 - x_a||^2).

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    10.61
    """
    c, rounds = s.as_printed(variant == "printed"), _from_first(n_rounds, rounds)
    value = c.printed_position if variant == "printed" else (c.fixed_sq**0.5 + c.begin.fixed_norm) ** 2
    return Terms({"moment": value}, rounds=rounds)


@dataclass(frozen=True)
class Recursion:
    """The numbers of the heavy-ball recursion of a setting.

    Attributes
    ----------
    gradient_coefficient : float
        k_{alpha,beta}, equation (80).
    ratio : float
        q_1 = a/b, equation (106).
    least_factor : float
        The least s >= 0 for which s M - Q is positive semidefinite.
    of : fedsim.provenance.Provenance
        What it is of; not known for one computed from a `Chain` alone.

    Examples
    --------
    >>> theory.de_sghmc.Recursion(gradient_coefficient=-0.2, ratio=0.5, least_factor=0.9).ratio
    0.5
    """

    gradient_coefficient: float
    ratio: float
    least_factor: float
    of: Provenance = field(init=False, default=Provenance(), repr=False, compare=False)


def recursion(c: Chain) -> Recursion:
    """Compute them; `least_factor` from the matrices, not from equation (107).

    With u = s - 1 - 2 c_1, the matrix is u (1, t)(1, t)' + diag(X, t^2 Y), t = beta/(1-beta),
    X = 2 alpha mu L_a/((1-beta)(L_a+mu)), Y = alpha mu/beta: semidefinite exactly when u >= -1/(1/X + 1/Y).

    Parameters
    ----------
    c : Chain
        See `chain`.

    Returns
    -------
    Recursion

    Raises
    ------
    ValueError
        For what is no `Chain`.

    Source: DE-SGHMC Lemmas 19 to 21, equations (80), (106) and (107).

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))
    >>> c = theory.de_sghmc.chain(theory.constants(problem, algorithm), algorithm)
    >>> found = theory.de_sghmc.recursion(c)
    >>> found.gradient_coefficient < 0.0, found.ratio < 1.0, found.least_factor < 1.0
    (True, True, True)
    """
    instance("c", c, Chain)
    mu, L_a, beta = c.base.mu, c.L_alpha, c.beta
    resistance = (1.0 - beta) * (L_a + mu) / (2.0 * c.alpha * mu * L_a) + beta / (c.alpha * mu)
    return Recursion(c.k, c.q1, max(0.0, 1.0 + 2.0 * c.c1 - 1.0 / resistance))


_RECURSION = Source(Recursion, "a theory.de_sghmc.Recursion: the bound is about {meaning}",
                    lambda bound: bound.inputs["recursion"], False)
_RECURSION.enter("gradient_coefficient", "k_{alpha,beta} of the heavy-ball recursion",
                 lambda bound, law: of_its_size(law.gradient_coefficient, 0))
_RECURSION.enter("lyapunov_ratio", "q_1 = a/b of the heavy-ball recursion",
                 lambda bound, law: of_its_size(law.ratio, 0))
_RECURSION.enter("least_factor", "least s with s M - Q positive semidefinite in the heavy-ball recursion",
                 lambda bound, law: of_its_size(law.least_factor, 0))


def _number(s: Chain, algorithm: DESGHMC, name: str, value: float) -> Terms:
    of_run = attach(recursion(s), replace(s.base.constants.of, algorithm=Identity.of(algorithm)))
    return Terms({name: value}, rounds=np.array([0]), inputs={"recursion": of_run})


@theorem_of_constants("Lemma 19", quantity="gradient_coefficient", terms=("zero",))
def gradient_coefficient_bound(s: Chain, algorithm: DESGHMC) -> Terms:
    """The coefficient of ||grad Fbar||^2 is negative.

    Guarantee: k_{alpha,beta} = alpha/(1-beta) [alpha/(1-beta) - 2/(L_a+mu) + 2 c_1 alpha/(1-beta)] < 0.

    Source: DE-SGHMC Lemma 19.

    Examples
    --------
    >>> bound.value.tolist(), bound.inputs["recursion"].gradient_coefficient < 0.0
    ([0.0], True)
    """
    return _number(s, algorithm, "zero", 0.0)


@theorem_of_constants("Lemma 20", quantity="lyapunov_ratio", terms=("one",))
def ratio_bound(s: Chain, algorithm: DESGHMC) -> Terms:
    """The Lyapunov function's first part contracts.

    Guarantee: q_1 = a/b < 1.

    Source: DE-SGHMC Lemma 20, with the printed c_2 and the 64 of (38). Proof, with l = lambda_N: a < b means
    c_2 < -k mu^2. By (37) and beta <= (1 + l - 4 alpha mu)/4,

        -k (1-beta)^2 >= alpha^2 (4 alpha mu/(3-l) - 2 c_1) >= alpha^3 mu (1+l)/(3-l),   2 c_1 <= alpha mu,

    and c_2 (1-beta)^2 = 4 beta^2 (1-l)^2 (1 + c_1)/c_1 <= alpha^3 mu^3 (1+l) (1-l)^2 (1 + c_1)/16 by (38). So
    (1-l)^2 (3-l) (1 + c_1) < 16 is enough. c_1 <= alpha mu/2 <= (1+l)/8, and (1-l)^2 (3-l) (1 + (1+l)/8)
    falls from 16 at l = -1. (The display in print has 4 where 2 c_2/mu in a gives 8; the lemma needs no
    other constant.) q_1 tends to one as l tends to -1.

    Examples
    --------
    >>> bound.value.tolist(), bound.inputs["recursion"].ratio < 1.0
    ([1.0], True)
    """
    return _number(s.as_printed(True), algorithm, "one", 1.0)


@theorem_of_constants("Lemma 21", quantity="least_factor", terms=("factor",))
def factor_bound(s: Chain, algorithm: DESGHMC) -> Terms:
    """The Lyapunov function's second part contracts.

    Guarantee: s M - Q is positive semidefinite for s >= q_2 = max(0, 1 - 2 c_1).

    Source: DE-SGHMC Lemma 21, equation (107), with L_a for the L that Q has in print.

    Examples
    --------
    >>> round(float(bound.value[0]), 4), round(bound.inputs["recursion"].least_factor, 4)
    (0.9901, 0.9901)
    """
    return _number(s, algorithm, "factor", s.q2)
