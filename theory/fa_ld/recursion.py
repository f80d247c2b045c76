"""FA-LD's own coupling, evaluated local step by local step instead of closed in one line."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD

from ..declare.statement import Terms
from ..facts.constants_of_problem import Constants
from ..recursions.bounds import HESSIAN_SMOOTHNESS, recursion_terms
from ..recursions.catalogue import recursion, recursion_of
from ..recursions.federated import NAMES, Federated
from ..recursions.langevin import Moved, Potential, Step, average_step, least, moved, root
from ..recursions.stationary import BELOW_TWO, STATIONARY, UP_TO_TWO, stationary_terms
from ..theorem_parts import EQUAL_WEIGHTS, required
from .notation import CONSTANT, FULL, theorem


class Rounds(Federated):
    """See `w2_recursion`."""

    def local(self, h: float, E: Any, S: Any, near: Any, beyond: Any, far: Any,
              ) -> tuple[Step, Moved, Moved, Any]:
        """One local step."""
        f, Gamma, apart = self.potential, self.gradients, 1.0 - self.algorithm.shared_noise
        heat, square = 2.0 * h * f.temperature * f.dim, h * h
        less, more = f.shift(h, near, beyond), f.loss(h) * far + h * Gamma
        all_heat = heat * (1.0 - apart + self.clients * apart)
        spread = abs(1.0 - h * f.middle) * root(S) + h * (f.radius * (near + beyond) + Gamma)
        return (average_step(E, S, h, f, self.noise),
                moved(near, less, heat + square * self.noise),
                moved(far, more, all_heat + square * self.noises),
                spread**2 + heat * apart * (self.clients - 1) + square * (self.noises - self.noise))

    @cached_property
    def numbers(self) -> tuple[Any, ...]:
        """What `moves` needs of a step size that all steps have, as in `local` and `average_step`."""
        f, h, noise = self.potential, float(self.algorithm.schedule.largest), self.noise
        m, L, d, tau = f.strong_convexity, f.smoothness, f.dim, f.temperature
        apart, heat, square = 1.0 - self.algorithm.shared_noise, 2.0 * h * tau * d, h * h
        share = 1.0 / (1.0 + m * h)
        of_R = heat + square * noise
        of_Q = heat * (1.0 - apart + self.clients * apart) + square * self.noises
        of_S = heat * apart * (self.clients - 1), square * (self.noises - noise)
        energy = (share * h * (L - m), share * 2.0 * L * d * tau * h * h,
                  share * h * h * (1.0 + h * L) * noise, 2.0 * m * h * share, (1.0 - m * h) * share)
        return (h, f.reach, f.radius, abs(1.0 - h * f.middle), f.loss(h), self.gradients, of_R, of_Q, of_S,
                f.wandering(h), square * noise, energy if h * L <= 1.0 else None)

    @property
    def kept(self) -> float:
        """The least share of E that a round leaves."""
        return float(self.potential.kept(self.given(0)[0]) ** len(self.given(0)))

    def ahead(self, state: Sequence[float], given: Sequence[float]) -> list[float]:
        """What becomes of the state by `round`, in floats and in one piece; changes are not followed."""
        h, B, r, turn, loss, Gamma, of_R, of_Q, of_S, wander, extra, energy = self.numbers
        sqrt, several, less, pull, push = math.sqrt, self.clients > 1, 1.0 + loss, h * r, h * Gamma
        drawn, added, keep = (energy[0], energy[1] + energy[2], energy[4]) if energy else (0.0, 0.0, 0.0)
        twice, of_E, of_S = 2.0 * wander[1], wander[0] + extra, sum(of_S)
        E, Q = state[0], min(state[1], (sqrt(state[0]) + B) ** 2)
        R, S = Q, 0.0
        for _ in given:
            e = sqrt(E)
            near = e + B
            near *= near
            R = near if near < R else R
            R = Q if Q < R else R
            S = Q if Q < S else S
            gap = Q - R
            w = pull * sqrt(R + (S if S < gap else gap))
            A = turn * e + pull * sqrt(E + S)
            coupled = A * (A + twice) + of_E
            if energy:
                other = keep * E + drawn * S + added
                E = other if other < coupled else coupled
            else:
                E = coupled
            R, Q = turn * sqrt(R) + w, less * sqrt(Q) + push
            R, Q = R * R + of_R, Q * Q + of_Q
            if several:
                S = turn * sqrt(S) + w + push
                S = S * S + of_S
        between = self.drawn * min(S, Q)
        R = min(R, (sqrt(E) + B) ** 2, Q)
        return [E + between, min(R + between, (sqrt(E + between) + B) ** 2, Q)]

    def moves(self, state: Sequence[Any], given: Sequence[float]) -> list[Moved]:
        """The first of `round`, bit by bit, in one piece; numbers may be complex."""
        h, B, r, turn, loss, Gamma, of_R, of_Q, of_S, given_D, extra, energy = self.numbers
        (own_S, noise_S), (total, predicted) = of_S, given_D
        sqrt = cmath.sqrt if any(isinstance(x, complex) for x in state) else math.sqrt
        several, pull, push, less_sq = self.clients > 1, h * r, h * Gamma, (1.0 + loss) ** 2
        E, at_first = state[0], sqrt(state[0])
        begin = R = Q = least(state[1], (at_first + B) ** 2)
        slack, dE, dR, dQ, S = (at_first + B) ** 2 - begin, 0.0, 0.0, 0.0, 0.0
        for _ in given:
            e = sqrt(E)
            most, nearest = slack + dE * (1.0 + 2.0 * B / (e + at_first)), (e + B) ** 2
            dR = most if most.real < dR.real else dR
            dR = dQ if dQ.real < dR.real else dR
            R = nearest if nearest.real < R.real else R
            R = Q if Q.real < R.real else R
            S = (Q if Q.real < S.real else S) if several else 0.0
            near, far, gap = sqrt(R), sqrt(Q), dQ - dR
            gap = gap if gap.real < S.real else S
            beyond = gap / (sqrt(R + gap) + near) if gap else 0.0
            less, more = loss * near + pull * beyond, loss * far + push
            drift = pull * (S / (sqrt(E + S) + e) if S else 0.0)
            fall = loss * e + drift
            A = e + fall
            wander = 2.0 * A * predicted + total
            change = fall * (2.0 * e + fall) + wander + extra
            after = less_sq * E + (drift * (A + (1.0 + loss) * e) + wander + extra)
            if energy:
                grown = energy[0] * S + energy[1] + energy[2]
                other = grown - energy[3] * E
                if other.real < change.real:
                    change, after = other, energy[4] * E + grown
            S = (turn * sqrt(S) + h * (r * (near + beyond) + Gamma)) ** 2 + own_S + noise_S
            dE, E = dE + change, after
            dR, R = dR + (less * (2.0 * near + less) + of_R), (near + less) ** 2 + of_R
            dQ, Q = dQ + (more * (2.0 * far + more) + of_Q), (far + more) ** 2 + of_Q
        between, e = self.drawn * (least(S, Q) if several else 0.0), sqrt(E)
        dR = least(dR, slack + dE * (1.0 + 2.0 * B / (e + at_first)), dQ)
        R, dE, E = least(R, (e + B) ** 2, Q), dE + between, E + between
        e = sqrt(E)
        return [Moved(dE, E), Moved(begin - state[1] + least(
            dR + between, slack + dE * (1.0 + 2.0 * B / (e + at_first)), dQ),
            least(R + between, (e + B) ** 2, Q))]


recursion_of.register(FALD, Rounds.of)


@theorem("derived here", quantity="w2", terms=NAMES, arguments=HESSIAN_SMOOTHNESS,
         source="derived here, from the coupling of FA-LD's section 4", variants=("proved",),
         hypotheses=(UP_TO_TWO, EQUAL_WEIGHTS))
def w2_recursion(constants: Constants, algorithm: FALD, rounds: np.ndarray, *,
                 hessian_smoothness: float | None = None) -> Terms:
    """W2 bound by FA-LD's own coupling, evaluated at every local step instead of closed in one line.

    Guarantee, for m-strongly convex and L-smooth clients, any shared noise, temperature, schedule, gradient
    noise and participation, and any eta (useful for eta < 2/L): sqrt(E) >= W2, where E begins as the square
    of W2 at the start (or of ||theta_0 - theta_*|| + B where that is not known), and goes on by

        E   local step: the smaller of the coupling and the energy bound of `theory.recursions.langevin`,
            with spread S and noise sum_c p_c^2 v_c; at the end of a round E + phi S;
        R'  = (|1-hq| sqrt(R) + h r w)^2 + 2 h tau d + h^2 sum_c p_c^2 v_c;
        S'  = (|1-hq| sqrt(S) + h r w + h Gamma)^2 + 2 h tau (1-s)(N-1) d + h^2 sum_c (p_c - p_c^2) v_c;
        Q'  = (rho_h sqrt(Q) + h Gamma)^2 + 2 h tau (s + N (1-s)) d + h^2 sum_c p_c v_c.

    R >= ||xbar - theta_*||^2, S >= sum_c p_c ||x_c - xbar||^2, Q >= sum_c p_c ||x_c - theta_*||^2; s is the
    shared noise, v_c the trace of a client's gradient noise, Gamma^2 = sum_c p_c |g_c(theta_*)|^2,
    w = sqrt(min(R + S, Q)), q = (L+m)/2, r = (L-m)/2, rho_h = max(|1-hm|, |1-hL|), B^2 = d tau/m. Before
    every step R <- min(R, (sqrt(E) + B)^2, Q), S <- min(S, Q); where clients meet S = 0 and Q = R.

    Derivation. With g_c = grad f_c, and by sum_c p_c g_c(theta_*) = 0,

        xbar' - theta_* = (1-hq)(xbar - theta_*) - h sum_c p_c [g_c(x_c) - g_c(theta_*) - q (x_c - theta_*)]
                          + noise,

    where the sum is at most r w by (S) of `theory.recursions.langevin` and Jensen's inequality, and the
    noises, averaged, are centred, independent of what is before them, of variance 2 h tau d (whatever s is)
    and sum_c p_c^2 v_c (clients' gradient noises are independent): this is R. Without its mean, which is an
    orthogonal projection in the weighted norm, x_c' - theta_* is

        (1-hq)(x_c - xbar) - h P[g_c(x_c) - g_c(theta_*) - q (x_c - theta_*)] - h g_c(theta_*) + P noise:

    this is S. Each client alone contracts by rho_h towards theta_* but for h g_c(theta_*), with private
    noise s + (1-s)/p_c, whose weighted sum is s + N (1-s): this is Q, in that norm. What participation
    adds is derived in `theory.recursions.federated`.

    Source: derived here; the paper closes the same coupling by constants (Theorems 4.7 to 4.10).

    Where the Hessian of f is known to be M-Lipschitz, `hessian_smoothness` makes the discretization smaller.
    More than 500,000 local steps of one size are bounded by tangents (`theory.recursions.rounds`).

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), round(bound.floor, 3), bound.is_vacuous
    (0.236, 0.151, False)
    """
    return recursion_terms(recursion(constants, algorithm, hessian_smoothness), rounds)


ONE_STEP = required("local_steps = 1", lambda algorithm: algorithm.local_steps == 1,
                    "local_steps={algorithm.local_steps} must be 1: with several the clients drift apart; "
                    "theory.fa_ld.w2_recursion has a floor for them")


@theorem("derived here (stationary)", quantity="stationary_w2", only={"local_steps": 1},
         terms=("discretization", "gradient_noise"),
         source="derived here, from one local step as gradient flow", variants=("proved",),
         hypotheses=(CONSTANT, FULL, ONE_STEP, STATIONARY, BELOW_TWO))
def stationary_bound(constants: Constants, algorithm: FALD) -> Terms:
    """W2 of the stationary law with one local step, all clients and a constant step size.

    Guarantee, for eta < 2/L, with v_c the traces of the clients' gradient noises, which may depend on the
    point:

        W2^2 <= eta (tau L d + sum_c p_c^2 v_c)/(m (2 - eta L))

    Source: derived here, see `theory.recursions.stationary`; m and L of the average f would do.

    It is at most the floor of `w2_recursion`, whose energy inequality it is at stationarity.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01)
    >>> round(float(bound.value[0]), 4)
    0.1234
    """
    f = Potential(constants.strong_convexity, constants.smoothness, constants.dim, algorithm.temperature)
    return stationary_terms(f, algorithm.schedule.largest,
                            float(constants.weights**2 @ constants.gradient_noise_traces))
