"""FA-HMC's lemmas about an update: Lemmas D.4, D.6, D.7 and D.8. Notation as in `theorem_44`.

Statements with B_c = sup_t E||grad f_c(theta_t^c)||^2 take it as `gradient_moments` (by default Lemma
D.7's bound); those about one client take its number, by default the one of smallest weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.interfaces import Problem
from fedsim.settings.validation import array, nonnegative

from ..declare.statement import Terms
from ..exact import joint_law
from .hypotheses import EQUAL, EQUAL_ALONG, FULL_TURN, HALF_TURN, MOMENTS, SHORT, trajectory_lengths, within
from .notation import FULL, SMOOTH, Setting, client_number, hessian_theorem, known_moments, theorem
from .quantities import gradient_moments as exact_moments
from .theorem_44 import DIVERGENCE, VARIANTS, along_coupling, divergence


def _gradients(problem: Problem, algorithm: FAHMC, constants: Any, n_rounds: int,
               start: Any) -> dict[str, Any]:
    """The exact B_c up to the last round."""
    law = joint_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)
    return {"gradient_moments": [exact_moments(law, c).max() for c in range(problem.n_clients)]}


@theorem("Lemma D.4", quantity="main_part_sq", terms=("contraction", "divergence", "momentum"),
         hypotheses=(within(FULL_TURN), EQUAL_ALONG, MOMENTS, FULL), variants=VARIANTS, index="local_step",
         inputs=along_coupling)
def main_part_bound(s: Setting, algorithm: FAHMC, variant: str, *, coupling: Any,
                    gradient_moments: Any = None) -> Terms:
    """The second-order part (I) of an update minus the oracle's.

    Guarantee, with V_j the divergence bound of Lemma D.8 (see `divergence_bound`):

        E||(I)||^2 <= (1 - mu X^2/2) E_t + 2 X^2 L V_j + X^6 L^2 sum_c w_c s_c d/9

    Source: FA-HMC Lemma D.4. Printed with 2/9 for 1/9, both true; it needs a constant step size within
    each round, because (K eta_i)^4 of earlier steps is replaced by the present one's.

    It is a bound at updates 0..n-1, where n is the length of `coupling`.

    Examples
    --------
    >>> bound.value[[0, -1]].round(3).tolist()
    [1.057, 0.02]
    """
    before = array("coupling", coupling, 1)
    moments = known_moments(s, gradient_moments, variant)
    lengths = trajectory_lengths(algorithm, len(before))
    read = s.of(variant)
    apart = divergence(read, lengths, np.arange(len(before)) % s.T, moments, variant)
    last = 2.0 / 9.0 if variant == "printed" else 1.0 / 9.0
    return Terms(
        {"contraction": np.maximum(1.0 - 0.5 * s.mu * lengths**2, 0.0) * before,
         "divergence": 2.0 * lengths**2 * s.L * np.sum(list(apart.values()), axis=0),
         "momentum": last * lengths**6 * s.L**2 * (s.w @ read.s) * s.d},
        rounds=np.arange(len(before)))


@theorem("Lemma D.8", quantity="divergence", terms=DIVERGENCE,
         hypotheses=(within(FULL_TURN), EQUAL, MOMENTS, FULL), variants=VARIANTS, index="local_step",
         inputs=_gradients)
def divergence_bound(s: Setting, algorithm: FAHMC, rounds: np.ndarray, variant: str, *,
                     gradient_moments: Any = None) -> dict[str, Any]:
    """How far clients drift apart inside a round.

    Guarantee, j updates after a communication, with X = K eta <= 1/sqrt(L):

        sum_c w_c E||theta_t^c - theta_t||^2 <= V_j
            = j^2 X^4 sum_c w_c [ (31/30) B_c + (2/9) L s_c d + sigma_g^2 d/(18 K) ]
              + 2 j X^2 [ (1-rho)(N-1) d + (X^2/(4K)) sum_c w_c (1-w_c) sigma_g^2 d ]

    Source: FA-HMC Lemma D.8. The printed T sum_i X_i^4 sum_c w_c (1-w_c) L Delta_i^c multiplies by the
    splits (4/9, 5/9) in place of dividing, and weights the momenta's distance (1-rho)(N-1) d, which is a
    sum over clients already, by w_c (1-w_c) once more: it is false for unequal weights.

    Examples
    --------
    >>> bound.value[[0, 1]].round(3).tolist()
    [0.0, 0.202]
    """
    moments = known_moments(s, gradient_moments, variant)
    schedule = trajectory_lengths(algorithm, int(rounds.max()))
    lengths = schedule[np.maximum(rounds - 1, 0)] if len(schedule) else np.full(len(rounds), s.X)
    return divergence(s.of(variant), lengths, rounds % s.T, moments, variant)


DEVIATION: dict[str, Any] = {
    "terms": ("gradient", "momentum", "gradient_noise"), "hypotheses": (within(FULL_TURN), MOMENTS, FULL),
    "variants": {"corrected": "", "printed": "sigma^(c) and Assumption 3.4 read literally (see `notation`)"},
    "index": "leapfrog_step", "inputs": _gradients}


@theorem("Lemma D.6 (7)", quantity="leapfrog_deviation", **DEVIATION)
def leapfrog_deviation_bound(s: Setting, variant: str, *, client: int | None = None,
                             gradient_moments: Any = None) -> Terms:
    """Leapfrog against a straight line.

    Guarantee, for k = 1..K leapfrog steps of client c at any update t, X <= 1/sqrt(L):

        E||theta_{t,k}^c - theta_t^c - k eta p||^2 <= (1/3) (k eta)^4 L (B_c/L + s_c d + sigma_g^2 d/(L k))

    Source: FA-HMC Lemma D.6 (7). The printed splits (18/19, 1/19) give 1/3 up to X = 1/(2 sqrt(L)) only.
    Proof for the whole range: with e_k the L2 norm on the left, q_k - q_0 - k eta p =
    -(k eta)^2/2 grad f - (eta^2/2) noise - eta^2 sum_{j<k} (k-j) (grad f(q_j) - grad f(q_0)) gives, the
    first two being orthogonal,
    e_k <= (eta^2/2) (k^4 |grad f|^2 + k (2k^2+1)/3 sigma_g^2 d)^(1/2)
           + L eta^2 sum_{j<k} (k-j) (j eta |p| + e_j).
    Iterated at k eta = 1/sqrt(L), e_k^2 is at most .3256 (= (cosh 1 - 1)^2 + (sinh 1 - 1)^2, reached as
    k grows; .25 at k = 1) of (k eta)^4 L (..), and less for shorter trajectories.

    Of a schedule the largest step size counts.

    Examples
    --------
    >>> round(float(bound.value[-1]), 4)
    0.0653
    """
    read, c, k = s.of(variant), client_number(s, client), np.arange(1, s.K + 1)
    scale = (k * s.X / s.K) ** 4 / 3.0
    return Terms({"gradient": scale * known_moments(s, gradient_moments, variant)[c],
                  "momentum": scale * s.L * read.s[c] * s.d,
                  "gradient_noise": scale * read.sigma_sq * s.d / k}, rounds=k, inputs={"client": c})


@hessian_theorem("Lemma D.6 (8)", quantity="leapfrog_gradient_deviation",
                 **DEVIATION | {"hypotheses": (within(FULL_TURN), MOMENTS, SMOOTH, FULL)})
def leapfrog_gradient_deviation_bound(s: Setting, variant: str, *, client: int | None = None,
                                      gradient_moments: Any = None) -> Terms:
    """Gradients along a leapfrog against their first-order expansion.

    Guarantee:  E||grad f_c(theta_{t,k}^c) - grad f_c(theta_t^c) - k eta Hess f_c p||^2
    <= (k eta)^4 L^3 delta_k^c, with delta_k^c of (9), for X <= 1/sqrt(L).

    Source: FA-HMC Lemma D.6 (8). The last line of its proof has u^2/2 <= 1/(8 L), u = k eta, which is
    X <= 1/(2 sqrt(L)). Proof for the whole range: (33) and (7) leave (3/2) E||(b_2)||^2 <= (L_H^2/2) u^2
    E[(2 u^2 |p|^2 + u^4 |grad f|^2 + u^4 sigma_g^2 d/k) |p|_max^2], where E[|p|^2 |p|_max^2] <= c_d d s_c^2,
    and E|p|_max^2 <= (2 log(2d) + 4) s_c <= c_d s_c/26, so that u^2/(2*26) <= 1/(8 L) is enough.

    Of a schedule the largest step size counts.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    1.762
    """
    read, c, k = s.of(variant), client_number(s, client), np.arange(1, s.K + 1)
    scale = (k * s.X / s.K) ** 4 * s.L**3
    of_moments, of_momentum, of_noise = (part[c] for part in read.client_error)
    return Terms({"gradient": scale * of_moments * known_moments(s, gradient_moments, variant)[c],
                  "momentum": scale * of_momentum, "gradient_noise": scale * of_noise * read.sigma_sq / k},
                 rounds=k, inputs={"client": c})


UNIFORM = (SHORT, EQUAL, FULL)
COSTS = {"corrected": "", "printed": "B_a^c without the momentum's variance, see `client_step_bound`"}


def _positions(problem: Problem, algorithm: FAHMC, constants: Any, n_rounds: int,
               start: Any) -> dict[str, Any]:
    """The exact second moments of the client of smallest weight."""
    law = joint_law(problem, algorithm, max(n_rounds, 1) * algorithm.local_steps, start=start)
    client, centre = int(np.argmin(problem.weights)), constants.need("minimizer")
    return {"second_moments": law.second_moment_about(centre)[:-1, client], "client": client}


@theorem("Lemma D.7 (10)", quantity="client_second_moment_after", terms=("contraction", "growth"),
         hypotheses=(within(HALF_TURN, printed=FULL_TURN), FULL), variants=("corrected", "printed"),
         index="local_step", inputs=_positions,
         arguments={"second_moments": "(n,): E||theta_t^c - theta_*||^2 where updates t = 0..n-1 start."})
def client_step_bound(s: Setting, algorithm: FAHMC, variant: str, *, second_moments: Any,
                      client: int | None = None) -> Terms:
    """One update of one client's second moment about the global minimizer.

    Guarantee, for X <= 1/(2 sqrt(L)):

        E||theta_{t+1}^c - theta_*||^2 <= (1 - mu X^2/4 + (2/3) X^6 L^4/mu) E||theta_t^c - theta_*||^2
                                          + X^2 B_a^c

    with B_a^c of `Setting.moment_constants`, and without X^6 for K = 1.

    Source: FA-HMC Lemma D.7 (10). Printed: 2 for 2/3 and X^2 (L/mu) B_a^c, where B_a^c lacks the momentum's
    variance s_c: false for shared_noise < 1. The above comes out of (36)-(38) with (c_3, c_4) = (9/10,
    1/10) and (c_5, c_6) = (1/2, 1/2): with L X^2 <= 1/4 the momentum has 15/14 + (L/mu)/(18 c_4) <= 2 L/mu,
    the slope 4/(4 c_3 mu) + 4/(16*120 c_4 c_6 mu) <= 4/(3 mu), the noise 15/(14*16 mu) + 4/(16*72 c_4 mu) <=
    1/(7 mu), the lost contraction is 4 X^6 L^4/(120 c_4 c_5 mu). For X^2 <= mu/(4 L^2) the factor is at most
    1 - mu X^2/8, which is (39).

    It bounds the moment after updates, at local steps 1..n.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.574
    """
    c, before = client_number(s, client), array("second_moments", second_moments, 1)
    nonnegative("smallest of second_moments", float(before.min()))
    X = trajectory_lengths(algorithm, len(before))
    cost = s.moment_constants(variant)[c]
    if variant == "printed":
        keep = 1.0 - 0.25 * s.mu * X**2 + (2.0 * X**6 * s.L**4 / s.mu if s.K >= 2 else 0.0)
        growth = X**2 * s.kappa * cost
    else:
        lost = 2.0 / 3.0 * X**6 * s.L**4 / s.mu if s.K >= 2 else 0.0
        keep = np.maximum(1.0 - 0.25 * s.mu * X**2, 0.0) + lost
        growth = X**2 * cost
    return Terms({"contraction": keep * before, "growth": growth}, rounds=np.arange(1, len(before) + 1),
                 inputs={"client": c})


@theorem("Lemma D.7 (11)", quantity="client_second_moment", terms=("initialization", "growth"),
         hypotheses=UNIFORM, variants=COSTS, index="local_step")
def client_moment_bound(s: Setting, rounds: np.ndarray, variant: str, *, client: int | None = None) -> Terms:
    """Uniform bound of one client's second moment about the global minimizer.

    Guarantee:  sup_t E||theta_t^c - theta_*||^2 <= D + (8/mu) (B_a^c + sum_e w_e B_a^e)

    Source: FA-HMC Lemma D.7 (11).

    Examples
    --------
    >>> round(float(bound.value[-1]), 1)
    108.6
    """
    c = client_number(s, client)
    return Terms({"initialization": s.D, "growth": s.second_moments(variant)[c] - s.D}, inputs={"client": c})


@theorem("Lemma D.7 (12)", quantity="client_gradient_moment", terms=("distance", "heterogeneity"),
         hypotheses=UNIFORM, variants=COSTS, index="local_step")
def client_gradient_bound(s: Setting, rounds: np.ndarray, variant: str, *,
                          client: int | None = None) -> Terms:
    """Uniform bound of one client's gradient.

    Guarantee:  B_c <= 2 L^2 (D + (8/mu) (B_a^c + sum_e w_e B_a^e)) + 2 ||grad f_c(theta_*)||^2

    Source: FA-HMC Lemma D.7 (12).

    Examples
    --------
    >>> round(float(bound.value[-1]), 1)
    1955.2
    """
    c = client_number(s, client)
    return Terms({"distance": 2.0 * s.L**2 * s.second_moments(variant)[c],
                  "heterogeneity": 2.0 * s.slopes[c] ** 2}, inputs={"client": c})
