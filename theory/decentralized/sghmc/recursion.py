"""DE-SGHMC's coupling with the Langevin diffusion of the average, evaluated step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.settings.schedules import Constant

from ...declare.bound import ROUNDING
from ...declare.statement import Terms
from ...facts.constants_of_problem import Constants
from ...recursions.bounds import recursion_terms
from ...recursions.catalogue import recursion_of
from ...recursions.langevin import Moved, Step, least, moved, root, surplus
from ...recursions.rounds import over_root
from ..paper import recursion_of_sghmc as theorem
from ..recursion import NAMES, Clients, OfClients, derived, with_disagreement
from ..sgld.recursion import Steps as WithoutMomentum
from .modes import Given, Modes, around

LISTED = 20_000
"""Steps up to which moments of the modes are kept one by one."""


@dataclass(frozen=True, eq=False)
class Steps(OfClients):
    """The state are squares: e of xt, and of V, R, Q, Vp, and y and sp where there are several clients.

    Parameters
    ----------
    clients : Clients
    size, beta : float
        eta, and the share of velocities that a step keeps, greater than 0.
    velocities : tuple of float
        At the start: norm of the average, and ((1/N) sum_i |v_i|^2)^(1/2).
    of_clients : bool
        Whether the bound is that of the clients.
    """

    clients: Clients
    size: float
    beta: float
    velocities: tuple[float, float] = (0.0, 0.0)
    of_clients: bool = False
    _known: list[Any] = field(default_factory=list)

    @cached_property
    def modes(self) -> Modes:
        """See `Modes`."""
        average, every = self.velocities
        return Modes(self.clients, self.size, self.beta, max(every**2 - average**2, 0.0))

    @cached_property
    def lag(self) -> float:
        """k: xt = xbar + k vbar."""
        return self.beta * self.size / (1.0 - self.beta)

    @cached_property
    def pushed(self) -> bool:
        """Whether the clients' spread is followed by pushes, rather than bounded by Q alone."""
        return self.clients.N > 1 and self.modes.shrink

    @property
    def kept(self) -> float:
        """The least share of E that a step leaves."""
        return self.numbers.factor

    def begin(self) -> list[float]:
        """The state before the first step."""
        c, (average, every) = self.clients, self.velocities
        ahead = self.lag * average
        state = [(c.w2 + ahead) ** 2, average**2, (c.distance + ahead) ** 2, c.distance**2 + c.spread,
                 every**2]
        return [*state, 0.0, 0.0] if self.pushed else state

    def given(self, number: int, since: int = 0) -> Given:
        """What step `number` depends on besides the state: of the spread before it, and from `since` on."""
        if not self.pushed:
            return Given(0.0, 0.0)
        if since or number > LISTED:
            return self.modes.given(self.modes.settled(number), self.modes.after(since or number)[1], since)
        known = self._known
        if not known:
            known.append(self.modes.after(0))
        while len(known) <= number:
            state, left = known[-1]
            known.append((self.modes.noise + around(self.modes.matrices, state), self.modes.matrices @ left))
        return self.modes.given(*known[number])

    def spread(self, state: Sequence[Any], given: Given) -> Any:
        """s^2."""
        if self.clients.N == 1:
            return 0.0
        if not self.pushed:
            return state[3]
        return least((given.variance**0.5 + given.start + root(state[6])) ** 2, state[3])

    @cached_property
    def numbers(self) -> SimpleNamespace:
        """What all rounds share."""
        c, f, eta, beta, k = self.clients, self.clients.f, self.size, self.beta, self.lag
        al, lost = eta * eta / (1.0 - beta), 1.0 - beta
        h = al / c.N
        (total, predicted), loss, noise = f.wandering(h), f.loss(h), h * h * c.noise
        heat = 2.0 * lost * c.d + eta * eta * c.noise / c.N
        return SimpleNamespace(
            al=al, lost=lost, total=total, predicted=predicted, loss=loss, factor=(1.0 + loss) ** 2,
            noise=noise, late=al * c.L * k, al_r=al * c.r, late_q=c.q * k, steep=math.sqrt(c.L * c.d / c.N),
            closer=-al * c.q if al * c.q <= 1.0 else al * c.q - 2.0, loss_Q=c.loss(eta * eta),
            push=eta * eta * c.gradients, carry=eta * beta, heat=heat, heat_V=heat / c.N,
            heat_R=2.0 * h * c.d + noise, heat_Q=eta * eta * heat)

    def round(self, state: Sequence[Any], given: Given) -> tuple[list[Moved], list[Step]]:
        """See `w2_recursion`."""
        c, f, eta, k, one = self.clients, self.clients.f, self.size, self.lag, self.numbers
        E, V_sq, R_sq, Q_sq, P_sq, *response = state
        e, V, Rt, Q, P = root(E), root(V_sq), root(R_sq), root(Q_sq), root(P_sq)
        s_sq, L, r = self.spread(state, given), c.L, c.r
        now = e + k * V
        R = least(Rt + k * V, now + f.reach, Q)
        w = root(least(R * R + s_sq, Q_sq))
        far = root(now * now + s_sq)
        drift = one.late * V + one.al_r * surplus(far, now, s_sq)
        less = one.loss * e + drift
        A = e + less
        wander = 2.0 * A * one.predicted + one.total
        step = Step(less * (2.0 * e + less) + wander + one.noise, one.factor,
                    {"client_drift": drift * (A + (1.0 + one.loss) * e), "discretization": wander,
                     "gradient_noise": one.noise})
        slope = least(L * w, one.steep + L * far)
        turn = eta * slope - one.lost * V
        closer = one.closer * Rt + one.al * (one.late_q * V + r * w)
        more = one.loss_Q * Q + one.push + one.carry * P
        kick = eta * (c.gradients + L * w) - one.lost * P
        after = [step.of(E), moved(V, turn, one.heat_V), moved(Rt, closer, one.heat_R),
                 moved(Q, more, one.heat_Q), moved(P, kick, one.heat)]
        if response:
            alpha, b, gain = self.modes.cascade
            y, sp = (root(x) for x in response)
            rise = (alpha - 1.0) * y + gain * eta * eta * (c.r * w + c.gradients)
            after += [moved(y, rise, 0.0), moved(sp, (b - 1.0) * sp + y + rise, 0.0)]
        return after, [step]

    def terms(self, state: Sequence[float], parts: dict[str, float], number: int) -> dict[str, float]:
        """Parts of e over its root, the momentum, and of the clients what keeps them apart."""
        average = {**over_root(parts), "momentum": self.lag * state[1] ** 0.5}
        if not self.of_clients:
            return average
        apart = float(self.spread(state, self.given(number)))
        return with_disagreement(average, sum(average.values()), apart)


SHARED = derived("step_size^2", lambda algorithm: algorithm.schedule.largest**2)


@recursion_of.register(DESGHMC)
def _steps(algorithm: DESGHMC, constants: Constants, hessian_smoothness: float | None,
           of_clients: bool = False) -> Any:
    """The recursion; without momentum it is DE-SGLD's."""
    clients = Clients.of(constants, algorithm.mixing, hessian_smoothness)
    eta = float(algorithm.schedule.largest)
    beta = 1.0 - algorithm.friction * eta
    if beta <= ROUNDING:
        return WithoutMomentum(clients, Constant(eta * eta), of_clients)
    given = algorithm.start_velocity
    each = np.broadcast_to(0.0 if given is None else given, (clients.N, clients.d))
    velocities = float(np.linalg.norm(each.mean(axis=0))), float(np.sqrt(np.square(each).sum(axis=1).mean()))
    return Steps(clients, eta, beta, velocities, of_clients)


@theorem("derived here (average)", quantity="w2", terms=(*NAMES, "momentum"),
         source="derived here, from a coupling with the average's diffusion", **SHARED)
def w2_recursion(constants: Constants, algorithm: DESGHMC, rounds: np.ndarray, *,
                 hessian_smoothness: float | None = None) -> Terms:
    """W2 bound of the clients' average, for every friction, by a recursion evaluated at every step.

    Guarantee, for mu-strongly convex and L-smooth components, any mixing matrix, gradient noise and friction
    at most 1/eta (not only in Theorem 11's range): e + k V >= W2, with beta = 1 - friction eta,
    k = beta eta/(1 - beta), al = eta^2/(1 - beta) and h = al/N. Everything below is a norm; e begins as W2 of
    the average at the start (or ||average - x_*|| + B, B^2 = d/(N mu), where that is not known) plus k V:

        A    = |1 - al q| e + al q k V + al r sqrt((e + k V)^2 + s^2)
        e'^2 = A^2 + 2 A ||E[D|Y]|| + ||D||^2 + h^2 sum_i v_i,  with the bounds of D in `theory.recursions`
        V'^2 = (beta V + eta min(L w, sqrt(L d/N) + L sqrt((e + k V)^2 + s^2)))^2 + 2 (1-beta) d/N
               + (eta/N)^2 sum_i v_i
        R~'^2 = (|1 - al q| R~ + al q k V + al r w)^2 + 2 h d + h^2 sum_i v_i
        Q'^2 = (rW Q + eta^2 Gamma + eta beta U)^2 + eta^2 (2 (1-beta) d + (eta^2/N) sum_i v_i)
        U'^2 = (beta U + eta (Gamma + L w))^2 + 2 (1-beta) d + (eta^2/N) sum_i v_i
        s    = min(sqrt((1/N) sum_{j>=2} V_j) + what is left of a start apart + sp, Q)

    with q, r, Gamma, rW (of the step eta^2) as in `theory.de_sgld.w2_recursion`, w^2 = min(R^2 + s^2,
    Q^2), R = min(R~ + k V, e + k V + B, Q); V >= ||average velocity||, U^2 >= (1/N) sum_i E|v_i|^2. V_j
    are the positions' variances that noise leaves in the modes [[lambda_j - eta^2 q, eta beta], [-eta q,
    beta]] of the network. sp bounds the response to pushes p = eta^2 (r w + Gamma), exactly sum_{i<=n}
    a^i b^(n-i) with a mode's roots a, b: y' = alpha y + p, sp' = b sp + y' with the largest of each (or,
    where it is smaller, one recursion by |a^(n+1) - b^(n+1)|/|a - b|).

    Derivation. xt = xbar + k vbar follows xt' = xt - (al/N) sum_i (grad f_i(x_i) + noise) + sqrt(2 h) z
    exactly: an Euler step of size h for f whose gradients are taken at x_i instead of xt. Coupled with Y
    as in `theory.recursions.langevin`, and xbar - Y = (xt - Y) - k vbar, it gives e. The mean gradient is
    at most L w, because those at x_* add up to 0, and at most its value at Y plus L times the distance to
    it: V. R~ is the same about x_*. Q and U are positions and velocities of all clients in one norm. For
    beta = 0 the bound is that of `theory.de_sgld.w2_recursion` with step eta^2, which also has an energy
    inequality: as beta goes to 0 this one stays above it. It has a limit where about friction^2 > kappa
    L.

    Source: derived here; not from the paper's chain of schemes (Theorem 11).

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), round(bound.floor, 3), bound.is_vacuous
    (0.249, 0.081, False)
    """
    return recursion_terms(_steps(algorithm, constants, hessian_smoothness), rounds)


@theorem("derived here (clients)", quantity="w2_clients", terms=(*NAMES, "momentum", "disagreement"),
         source="derived here, from a coupling with the average's diffusion", **SHARED)
def w2_clients_recursion(constants: Constants, algorithm: DESGHMC, rounds: np.ndarray, *,
                         hessian_smoothness: float | None = None) -> Terms:
    """Bound of the mean over clients of their W2, by the recursion of `w2_recursion`.

    Guarantee, with e + k V and s of `w2_recursion`:

        (1/N) sum_i W2(x_i) <= sqrt((e + k V)^2 + s^2)

    Derivation: as `theory.de_sgld.w2_clients_recursion`.

    Source: derived here; not from the paper's chain of schemes (Theorem 11).

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), round(bound.floor, 3), bound.is_vacuous
    (0.268, 0.13, False)
    """
    return recursion_terms(_steps(algorithm, constants, hessian_smoothness, of_clients=True), rounds)
