"""DE-SGHMC's lemmas about the perturbed heavy-ball method: Lemmas 19, 20 and 21.

They are about numbers, not iterations: that the recursion of the appendix contracts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.provenance import Part, Provenance, attach

from ...bound import Bound
from ...checking import Measured, quantity
from ...statement import Terms
from ..sgld.quantities import one_number
from .paper import HYPOTHESES, theorem_of_constants
from .setting import Chain


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
    None: a `Chain` is checked already.

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
    mu, L_a, beta = c.base.mu, c.L_alpha, c.beta
    resistance = (1.0 - beta) * (L_a + mu) / (2.0 * c.alpha * mu * L_a) + beta / (c.alpha * mu)
    return Recursion(c.k, c.q1, max(0.0, 1.0 + 2.0 * c.c1 - 1.0 / resistance))


def _register(name: str, meaning: str, read: Callable[[Recursion], float]) -> None:
    def measure(bound: Bound, law: Any, level: float) -> Measured:
        if not isinstance(law, Recursion):
            raise ValueError(f"law={law!r} must be a theory.de_sghmc.Recursion: the bound is about {meaning}")
        return one_number(read(law))

    quantity(name, meaning, measure,
             lambda problem, algorithm, bound, n_rounds, start, record: bound.inputs["recursion"])


_register("gradient_coefficient", "k_{alpha,beta} of the heavy-ball recursion",
          lambda found: found.gradient_coefficient)
_register("lyapunov_ratio", "q_1 = a/b of the heavy-ball recursion", lambda found: found.ratio)
_register("least_factor", "least s with s M - Q positive semidefinite in the heavy-ball recursion",
          lambda found: found.least_factor)


def _number(s: Chain, algorithm: DESGHMC, name: str, value: float) -> Terms:
    found = attach(recursion(s), replace(s.base.constants.of, algorithm=Part.of(algorithm)))
    return Terms({name: value}, rounds=np.array([0]), inputs={"recursion": found})


@theorem_of_constants("Lemma 19", quantity="gradient_coefficient", terms=("zero",), hypotheses=HYPOTHESES)
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


@theorem_of_constants("Lemma 20", quantity="lyapunov_ratio", terms=("one",), hypotheses=HYPOTHESES)
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


@theorem_of_constants("Lemma 21", quantity="least_factor", terms=("factor",), hypotheses=HYPOTHESES)
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
