"""The theorem of `coupled`: FA-HMC's own coupling, evaluated update by update."""

from __future__ import annotations

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from ..facts.constants_of_problem import Constants
from ..recursions.bounds import HESSIAN_SMOOTHNESS, recursion_terms
from ..recursions.catalogue import recursion, recursion_of
from ..recursions.federated import NAMES
from ..theorem_parts import EQUAL_WEIGHTS, required
from .contraction import Contraction
from .coupling_recursion import Rounds
from .notation import theorem

recursion_of.register(FAHMC, Rounds.of)


BIASED = required("not debiased", lambda algorithm: algorithm.debias is None,
                  "debias={algorithm.debias!r} must be None: the debiased update's anchor is correlated with "
                  "what it is compared with, and no recursion is derived for it")


def _certified(constants: Constants, algorithm: FAHMC) -> Assumption:
    one = Contraction(constants.strong_convexity, constants.smoothness, algorithm.schedule.largest,
                      algorithm.leapfrog_steps)
    return Assumption("certified contraction of K leapfrogs", one.certified, one.margin)


@theorem("derived here", quantity="w2", terms=NAMES, arguments=HESSIAN_SMOOTHNESS, variants=("proved",),
         source="derived here, from the coupling of FA-HMC's appendix D",
         hypotheses=(BIASED, Hypothesis("certified contraction of K leapfrogs (beyond it there is no value)",
                                        _certified), EQUAL_WEIGHTS))
def w2_recursion(constants: Constants, algorithm: FAHMC, rounds: np.ndarray, *,
                 hessian_smoothness: float | None = None) -> Terms:
    """W2 bound by FA-HMC's own coupling, evaluated at every update, with the sharp contraction of leapfrogs.

    Guarantee, for m-strongly convex and L-smooth clients, any shared noise rho, schedule, gradient noise and
    participation: sqrt(E) >= W2, where E begins as the square of W2 at the start (or of
    ||theta_0 - theta_*|| + B, B^2 = d/m, where that is not known), and goes on by

        E'  = ( sqrt( (sqrt(c^2 E + sum_{j<K} D_j s_j^2) + eps_K)^2 + Z N_K^2 ) + rem )^2,

    at the end of a round E + phi S; for K = 1 the smaller of this and of the two bounds of a Langevin step
    h = eta^2/2 (`theory.recursions.langevin`). c is certified by `Contraction`, D_j = r c b_j/cos(j phi) with
    its numbers, Z = sum_c p_c^2 v_c, V = sum_c p_c v_c, r = (L-m)/2, q = (L+m)/2. NotCertified, a ValueError,
    where c is not proved.

    Derivation. Clients. Let z_j^c be the distance of client c's trajectory after j leapfrogs from that of f
    which begins in Y with the averaged momentum, u_j^c = z_j^c - zbar_j, w_j = sum_c p_c (H_j^c - m) z_j^c.
    Summed over clients, co-coercivity says <w_j, (L-m) zbar_j - w_j> >= -(L-m)^2 s_j^2/4 with
    s_j^2 = sum_c p_c |u_j^c|^2, and `Contraction`'s identity gives
    |zbar_K|^2 <= c^2 |zbar_0|^2 + sum_j D_j s_j^2, pointwise.

    Integration. eps_K >= ||K leapfrogs of f - its exact flow|| from the target, which the flow keeps: with
    ||grad f(Y_s) - grad f(Y_0)|| <= L sqrt(d) s the kicks are off by r_0 <= L sqrt(d) eta^3/6 and
    r_j <= L sqrt(d) eta^3/3 (for an M-Lipschitz Hessian r_j <= (eta^4/12)(M sqrt(d(d+2)) + L sqrt(L d))), and
    eps_k = sum_{j<k} (k-j)(r_j + eta^2 L eps_j).

    Spread. With h_j = (j eta)^2/2, n_j >= ||q_j - x|| and a_j >= ||P(q_j - x)||, from
    q_j = x + j eta p - h_j g(x) - eta^2 sum_{1<=i<j} (j-i)(g(q_i) - g(x)), in which x - h_j g(x) is known
    before p is drawn:

        n_j = sqrt((j eta)^2 d (rho + N (1-rho)) + h_j^2 (Gamma + L w)^2) + eta^2 L sum_{1<=i<j} (j-i) n_i
        a_j = sqrt((j eta)^2 d (1-rho)(N-1) + h_j^2 (q s + r w + Gamma)^2)
              + eta^2 sum_{1<=i<j} (j-i)(q a_i + r n_i)
        s_j = sqrt((|1 - h_j q| s + h_j (r w + Gamma))^2 + (j eta)^2 d (1-rho)(N-1)) + the same sum,

    S' = (sqrt(s_K^2 + (V-Z) N_K^2) + rem)^2; and with e = eta^2 L sum_{1<=i<K} (K-i) n_i + rem, h = h_K,

        Q' = (sqrt((rho_h sqrt(Q) + h Gamma)^2 + 2 h d (rho + N (1-rho)) + V N_K^2) + e)^2
        R' = (sqrt((|1-hq| sqrt(R) + h r w)^2 + 2 h d + Z N_K^2) + e)^2,

    clipped and restarted as in `theory.fa_ld.w2_recursion`.

    Gradient noise. The 2K - 1 draws of an update enter by N_k^2 = eta^4 (k^2/4 + sum_{1<=i<k} (k-i)^2/2) and,
    through gradients at moved points, by rem = eta^2 L sum_{1<=i<K} (K-i) delta_i,
    delta_k = sqrt(V) N_k + eta^2 L sum_{1<=i<k} (k-i) delta_i; the former is centred given the momenta.

    Source: derived here; the paper closes a weaker form of the coupling by constants (Theorem 4.4).

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), round(bound.floor, 3), bound.is_vacuous
    (0.385, 0.012, False)
    """
    return recursion_terms(recursion(constants, algorithm, hessian_smoothness), rounds)
