"""FA-LD's statements up to constants: the rounds that sections 4.3.1, 4.3.2 and 4.4 ask for.

They are of kind "rate": shapes, with every unknown constant set to one, of the rounds to W2 <= eps with a
step size of the statement's own; that of the algorithm is of no influence. What is done with them stands in
`theory.rates`. With A = (K-1)^2 + kappa, S_0^2 = d (D + sqrt(tau/m))^2 and H_rho for the H_0 that the
sections write for independent noise, the rule of (28) is

    1/(eta m) = kappa + d kappa^2 A H_rho/eps^2

up to a constant, and the start has decayed to eps^2/2 after (2/(eta m)) log(2 S_0^2/eps^2) local steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from ..theorem_parts import EQUAL_WEIGHTS, accuracy, half_start, of_order
from .notation import DRAWN, FULL, Setting, theorem

RULE = Hypothesis("step size by the rule of (28)")
PARTS = ("smoothness", "discretization", "local_steps")
FORMS = {"sharp": "", "printed": "as (28); it has no smoothness term, and log(d/eps)",
         "informal": "that with K^2 for (K-1)^2, as the section itself"}


def inverse_step(s: Setting, eps: float, variant: str) -> dict[str, float]:
    """d kappa^2 A H_rho/eps^2 by its parts."""
    size = s.d * s.kappa**2 * s.H / eps**2
    return {"discretization": size * s.kappa,
            "local_steps": size * (s.K if variant == "informal" else s.K - 1) ** 2}


def _constant(s: Setting, eps: Any, variant: str) -> Terms:
    """Rounds with a constant step size."""
    small = accuracy(eps)
    parts = inverse_step(s, small, variant)
    if variant == "sharp":
        parts = {"smoothness": s.kappa, **parts}
        log = np.log(2.0) + 2.0 * (np.log(s.nearest_start) - np.log(small))
    else:
        log = np.log(s.d) - np.log(small)
    return _rounds({name: max(float(log), 0.0) * part for name, part in parts.items()}, s, small)


def _rounds(steps: dict[str, float], s: Setting, eps: float) -> Terms:
    return Terms({name: part / s.K for name, part in steps.items()}, rounds=np.array([0]),
                 inputs={"eps": eps})


@theorem("section 4.3.1 (28)", quantity="rounds_to_w2", kind="rate", terms=PARTS, hypotheses=(RULE, FULL),
         variants=FORMS, inputs=half_start)
def rounds_rate(s: Setting, variant: str, *, eps: float) -> Terms:
    """Shape of the rounds to W2 <= eps with all clients and a constant step size.

    Guarantee, with A, S_0 and the step size of `theory.fa_ld.rates`: rounds = O(value), the value being

        (1/K) (kappa + d kappa^2 ((K-1)^2 + kappa) H_rho/eps^2) log(2 S_0^2/eps^2)

    Source: FA-LD section 4.3.1 and appendix B.2, (28): T = Omega(d kappa^2 ((K-1)^2 + kappa) H_0 log(d/eps)/
    eps^2) local steps suffice, so that the rounds T/K are of order K + kappa/K in K. "sharp": 1 + 3200 times
    the value suffice. Proof: with eta m = min{1/(2 kappa), eps^2/(1600 kappa^2 d A H_rho)} the second
    term of `w2_bound`'s "recursion" is at most eps^2/2, and the first is after (2/(eta m)) log(2 S_0^2/eps^2)
    local steps, as (1 - x)^(1/x) <= 1/e; 1/(eta m) is at most 1600 times the bracket.

    "The optimal K is O(sqrt(T))" follows from it, and is no entry of its own: T at the best K, about
    sqrt(1 + kappa), is at least d kappa^3 H_rho log(..)/eps^2, whose root exceeds sqrt(kappa) wherever
    d kappa^2 H_rho log(..) >= eps^2.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.01, local_steps=2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_ld.rounds_rate(known, algorithm, eps=0.1)
    >>> bound.kind, float(bound.value[0].round(0))
    ('rate', 36108.0)
    """
    return _constant(s, eps, variant)


@theorem("section 4.3.2, iterations", quantity="rounds_to_w2", kind="rate", terms=PARTS[1:],
         hypotheses=(Hypothesis("step size 1/(2 smoothness + strong_convexity k/12)"), FULL),
         inputs=half_start, variants={"sharp": "", "informal": "with K^2 for (K-1)^2, as the section has it"})
def rounds_rate_decreasing(s: Setting, variant: str, *, eps: float) -> Terms:
    """Shape of the rounds to W2 <= eps with all clients and the decreasing step size of Theorem 4.8.

    Guarantee: rounds = O(value), the value being (1/K) d kappa^2 ((K-1)^2 + kappa) H_rho/eps^2.

    Source: FA-LD section 4.3.2, "Omega(d/eps^2) iterations", a factor log(d/eps) fewer than with a constant
    step size. "sharp": 1 + 24300 times the value suffice, as Theorem 4.8's bound, 45 kappa sqrt(A H_rho)
    sqrt(12 d/(24 kappa + k)), is at most eps from k = 12 * 2025 kappa^2 A H_rho d/eps^2 on.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.01, local_steps=2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_ld.rounds_rate_decreasing(known, algorithm, eps=0.1)
    >>> float(bound.value[0].round(0))
    5625.0
    """
    small = accuracy(eps)
    return _rounds(inverse_step(s, small, variant), s, small)


ENOUGH = "dim temperature (rho^2 + N (1-rho^2)) C_S/(strong_convexity n_active) of order eps^2"


def _enough(s: Setting, algorithm: FALD, eps: Any) -> Assumption:
    drawn: Any = algorithm.participation
    return of_order(ENOUGH, s.d * s.mean_temperature * drawn.variance_factor(s.N) / s.m, accuracy(eps) ** 2)


@theorem("section 4.4, iterations", quantity="rounds_to_w2", kind="rate", terms=PARTS,
         hypotheses=(RULE, Hypothesis(ENOUGH, _enough), DRAWN, EQUAL_WEIGHTS), inputs=half_start,
         variants=FORMS)
def rounds_rate_partial(s: Setting, variant: str, *, eps: float) -> Terms:
    """Shape of the rounds to W2 <= eps when enough clients are drawn in every round.

    Guarantee: rounds = O(value), the value being that of `rounds_rate`, where the S drawn clients are so many
    that d tau (rho^2 + N (1-rho^2)) C_S/(S m) = O(eps^2), with C_S as in `w2_bound_partial`.

    Source: FA-LD section 4.4, "Omega(d log(d/eps)/eps^2) iterations given enough devices satisfying S =
    Omega(d/eps^2)". The latter is a hypothesis here, "of order" being judged with a constant of 100, which is
    ours; `fewest_active` counts with the theorem's. "sharp": in `w2_bound_partial`'s "recursion" drawing adds
    at most an eighth to the second term, and C_K times 4 d tau (rho^2 + N (1-rho^2)) C_S/(S m). C_K is at
    most 2 + eta m K, where the rule makes eta m K at most (eps^2/(1600 d H_rho)) K/(kappa^2 A) <= 1/800,
    since K <= A, and S_0^2 <= 2 d H_rho, for eps <= S_0.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2, participation=fs.Participation(200, replace=True))
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_ld.rounds_rate_partial(known, algorithm, eps=0.1)
    >>> float(bound.value[0].round(0)), bound.hypotheses_hold
    (36108.0, True)
    """
    return _constant(s, eps, variant)
