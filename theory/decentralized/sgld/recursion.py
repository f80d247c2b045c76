"""DE-SGLD's own coupling, evaluated step by step instead of closed in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.settings.validation import Array

from ...declare.statement import Terms
from ...facts.constants_of_problem import Constants
from ...recursions.bounds import recursion_terms
from ...recursions.catalogue import recursion_of
from ...recursions.langevin import Moved, Step, average_step, least, moved, root, surplus
from ...recursions.rounds import over_root
from ..paper import recursion_of_sgld as theorem
from ..recursion import NAMES, Clients, OfClients, derived, with_disagreement


class Given(NamedTuple):
    """Step size, and the mean variance that injected noise has left in the modes after the step."""

    size: float
    variance: float


@dataclass(frozen=True, eq=False)
class Steps(OfClients):
    """The state are squares: of W2 of the average, of R, Q, of s where there are several clients, and of sp
    where all modes of their network shrink.

    Parameters
    ----------
    clients : Clients
    schedule : a schedule
    of_clients : bool
        Whether the bound is that of the clients.
    """

    clients: Clients
    schedule: Any
    of_clients: bool = False
    _variances: list[Any] = field(default_factory=list)

    @property
    def constant(self) -> bool:
        """Whether all step sizes are equal."""
        return bool(self.schedule.is_constant)

    @property
    def by_modes(self) -> bool:
        """Whether the spread is followed mode by mode too: not where a mode does not shrink."""
        return self.clients.N > 1 and (not self.constant
                                       or self.clients.mixing(self.schedule.largest) < 1.0)

    @property
    def kept(self) -> float:
        """The least share of E that a step of constant size leaves."""
        return self.clients.f.kept(self.schedule.largest / self.clients.N)

    def begin(self) -> list[float]:
        """The state before the first step."""
        c = self.clients
        spreads = [c.spread] * (0 if c.N == 1 else 2 if self.by_modes else 1)
        return [c.w2**2, c.distance**2, c.distance**2 + c.spread, *spreads]

    def given(self, number: int, since: int = 0) -> Given:
        """What step `number` depends on besides the state."""
        if not self.constant:
            return self._listed(number)
        eta = float(self.schedule.largest)
        if not self.by_modes:
            return Given(eta, 0.0)
        keep = (self.clients.modes - eta * self.clients.q) ** 2
        left = -np.expm1((number + 1.0) * np.log(np.maximum(keep, 1e-300)))
        return Given(eta, float((self._heat(eta) * left / (1.0 - keep)).sum()) / self.clients.N)

    def _heat(self, eta: float) -> Array:
        """Variance that a step adds to each mode."""
        return 2.0 * eta * self.clients.d + eta * eta * self.clients.traces_by_mode

    def _listed(self, number: int) -> Given:
        """The same with step sizes that change: variances are followed."""
        c, known = self.clients, self._variances
        while len(known) <= number:
            eta = float(self.schedule.at(len(known)))
            before = known[-1][1] if known else np.zeros(len(c.modes))
            known.append((eta, (c.modes - eta * c.q) ** 2 * before + self._heat(eta)))
        eta, variances = known[number]
        return Given(eta, float(variances.sum()) / c.N)

    def round(self, state: Sequence[Any], given: Given) -> tuple[list[Moved], list[Step]]:
        """See `w2_recursion`."""
        c, f, eta = self.clients, self.clients.f, given.size
        E, R0, Q0, *spreads = state
        R, s_sq = least(R0, (root(E) + f.reach) ** 2, Q0), least(spreads[0], Q0) if spreads else 0.0
        near, far, s = root(R), root(Q0), root(s_sq)
        gap = least(s_sq, Q0 - R)
        beyond = surplus(root(R + gap), near, gap)  # of w = sqrt(min(R + s^2, Q))
        h, heat = eta / c.N, 2.0 * eta * c.d
        step = average_step(E, s_sq, h, f, c.noise)
        push, lost = eta * (c.r * (near + beyond) + c.gradients), c.mixing(eta) - 1.0
        less, more = f.shift(h, near, beyond), c.loss(eta) * far + eta * c.gradients
        of_R = moved(near, less, 2.0 * h * c.d + h * h * c.noise)
        after = [step.of(E), Moved(R - R0 + of_R.change, of_R.after),
                 moved(far, more, heat + eta * eta * c.noise / c.N)]
        if not spreads:
            return after, [step]
        apart = (heat * (c.N - 1) + eta * eta * c.traces_by_mode.sum()) / c.N
        one = moved(s, lost * s + push, apart).after
        if len(spreads) == 1:
            return [*after, Moved(one - spreads[0], one)], [step]
        before = root(spreads[1])
        turn = moved(before, lost * before + push, 0.0)
        s_new = least(one, (given.variance**0.5 + root(turn.after)) ** 2)
        return [*after, Moved(s_new - spreads[0], s_new), turn], [step]

    def terms(self, state: Sequence[float], parts: dict[str, float], number: int) -> dict[str, float]:
        """Parts of E over its root, and of the clients what keeps them apart."""
        average = over_root(parts)
        if not self.of_clients:
            return average
        return with_disagreement(average, sum(average.values()), min(state[2:4]) if len(state) > 3 else 0.0)


@recursion_of.register(DESGLD)
def _steps(algorithm: DESGLD, constants: Constants, hessian_smoothness: float | None,
           of_clients: bool = False) -> Steps:
    return Steps(Clients.of(constants, algorithm.mixing, hessian_smoothness), algorithm.schedule, of_clients)


SHARED = derived("step_size", lambda algorithm: algorithm.schedule.largest)


@theorem("derived here (average)", quantity="w2", terms=NAMES,
         source="derived here, from the coupling of DE-SGLD's Theorem 1", **SHARED)
def w2_recursion(constants: Constants, algorithm: DESGLD, rounds: np.ndarray, *,
                 hessian_smoothness: float | None = None) -> Terms:
    """W2 bound of the clients' average by DE-SGLD's own coupling, evaluated at every step.

    Guarantee, for mu-strongly convex and L-smooth components, any mixing matrix (useful for
    eta < (1 + lambda_N)/L), schedule and gradient noise: sqrt(E) >= W2, where E begins as the square of W2 of
    the average at the start (or of ||average - x_*|| + B, B^2 = d/(N mu), where that is not known) and goes
    on as the Langevin step h = eta/N of `theory.recursions.langevin` for f = sum_i f_i, m = N mu and N L in
    place of L, with spread s^2 >= (1/N) sum_i ||x_i - average||^2 and noise sum_i v_i:

        push = eta (r w + Gamma),  w^2 = min(R^2 + s^2, Q^2),  gW = max_{j>=2} |lambda_j - eta q|
        s'  = the smaller of  sqrt((gW s + push)^2 + (1/N) sum_{j>=2} (2 eta d + eta^2 v_(j)))
              and  sqrt((1/N) sum_{j>=2} V_j') + sp',  sp' = gW sp + push,
              V_j' = (lambda_j - eta q)^2 V_j + 2 eta d + eta^2 v_(j)
        R'^2 = (|1 - eta q| R + eta r w)^2 + 2 eta d/N + (eta/N)^2 sum_i v_i
        Q'^2 = (rW Q + eta Gamma)^2 + 2 eta d + (eta^2/N) sum_i v_i

    with rW = max(1 - eta mu, eta L - lambda_N), q = (L+mu)/2, r = (L-mu)/2,
    Gamma^2 = (1/N) sum_i |grad f_i(x_*)|^2, v_(j) = sum_i u_j(i)^2 v_i of the
    modes (lambda_j, u_j) of the network; V_j begins as 0 and sp as s; R <- min(R, sqrt(E) + B, Q) and
    s <- min(s, Q) before every step.

    Derivation. The average moves by (1/N) sum_i grad f_i(x_i), because W keeps averages: with p_i = 1/N and
    potentials N f_i this is what `theory.recursions.langevin` speaks about. With u = P x and H the maps that
    take x - x_* to gradient differences, mu <= H <= L and symmetric,
    P x' = (W - J - eta q) u - eta P (H - q)(x - x_*) - eta P grad F(x_*) + P noise, whose first map has the
    eigenvalues lambda_j - eta q: the one line in squares; the other line carries the noise exactly, mode by
    mode, as it does not depend on the rest, and adds norms. R as in `theory.fa_ld.w2_recursion`. For Q,
    lambda_N - eta L <= W - eta H <= 1 - eta mu.

    Source: derived here; the paper closes the same coupling by constants (Theorem 1).

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), round(bound.floor, 3), bound.is_vacuous
    (0.249, 0.081, False)
    """
    return recursion_terms(_steps(algorithm, constants, hessian_smoothness), rounds)


@theorem("derived here (clients)", quantity="w2_clients", terms=(*NAMES, "disagreement"),
         source="derived here, from the coupling of DE-SGLD's Theorem 1", **SHARED)
def w2_clients_recursion(constants: Constants, algorithm: DESGLD, rounds: np.ndarray, *,
                         hessian_smoothness: float | None = None) -> Terms:
    """Bound of the mean over clients of their W2, by DE-SGLD's own coupling, evaluated at every step.

    Guarantee, with E and s of `w2_recursion`:

        (1/N) sum_i W2(x_i) <= sqrt(E + s^2)

    Derivation. With the same Y for all clients, the mean of W2 is at most
    ((1/N) sum_i ||x_i - Y||^2)^(1/2), and squares add up about the average: Theorem 1 adds norms.

    Source: derived here; the paper closes the same coupling by constants (Theorem 1, equation (20)).

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), round(bound.floor, 3), bound.is_vacuous
    (0.268, 0.13, False)
    """
    return recursion_terms(_steps(algorithm, constants, hessian_smoothness, of_clients=True), rounds)
