"""The chain of constants of Theorem 11 and its appendix B, in the order of the paper.

With alpha = eta^2, beta = 1 - gamma eta, the iteration is a perturbed heavy-ball method on
Fbar(x) = F(x) + x'(I - W x I) x/(2 alpha), which is mu-strongly convex and L_a-smooth,
L_a = L + (1 - lambda_N)/alpha, with minimizer x_a. Otherwise notation as in `theory.de_sgld.setting`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.settings.validation import Array, instance, one_of

from ...declare.bound import Assumption
from ...facts.constants_of_problem import Constants
from ..applicable import NotApplicable, require_constant_step
from ..setting import Setting, setting as network_setting
from .momentum import first_constant, largest_beta
from .start_terms import Beginning, beginning_bound

STEP_RANGE = "step_size^2 <= (1 + lambda_N)/(2 (smoothness + strong_convexity))"
MOMENTUM_RANGE = "1 - friction*step_size <= largest momentum of equation (38)"
ROUNDED = 1e-15
"""1 - friction*step_size is not known better than this."""


@dataclass(frozen=True)
class Chain:
    """Everything that Theorem 11 and its lemmas are made of.

    Attributes
    ----------
    base : theory.de_sgld.Setting
        With alpha = eta^2.
    eta, beta : float
    start_velocity_sq : float
        E||v^(0)||^2 of all clients.
    begin : Beginning
        Where the iteration starts relative to x_a.
    variant : "corrected" or "printed"
        The explicit constant (105): with a c~_4 that is one, and the c_2 of (79), or both as printed.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))
    >>> c = theory.de_sghmc.chain(theory.constants(problem, algorithm), algorithm)
    >>> c.alpha == 0.1**2, c.beta, round(c.q, 4)
    (True, 0.0, 0.9901)
    """

    base: Setting
    eta: float
    beta: float
    start_velocity_sq: float
    begin: Beginning
    variant: str

    def as_printed(self, printed: bool) -> Chain:
        """With the constant (105) as printed, or corrected."""
        return replace(self, variant="printed" if printed else "corrected")

    @property
    def alpha(self) -> float:
        """eta^2."""
        return self.base.alpha

    @property
    def L_alpha(self) -> float:
        """L + (1 - lambda_N)/alpha, equation (72)."""
        return self.base.L + (1.0 - self.base.smallest) / self.alpha

    @property
    def c1(self) -> float:
        """c_1, equation (76)."""
        return first_constant(self.base.mu, self.base.L, self.base.smallest, self.alpha, self.beta)

    @property
    def largest_beta(self) -> float:
        """The largest beta that (38) allows."""
        return largest_beta(self.base.mu, self.base.L, self.base.smallest, self.alpha)

    @property
    def k(self) -> float:
        """k_{alpha,beta}, equation (80): negative by Lemma 19."""
        share = self.alpha / (1.0 - self.beta)
        return share * (share * (1.0 + 2.0 * self.c1) - 2.0 / (self.L_alpha + self.base.mu))

    @property
    def c2(self) -> float:
        """c_2: with 1 + 1/(2 c_1), which (79) has; printed, somewhat larger, with 1 + 1/c_1."""
        ratio = 2.0 * self.beta / (1.0 - self.beta) * (1.0 - self.base.smallest)
        return ratio**2 * (1.0 + (1.0 if self.variant == "printed" else 0.5) / self.c1)

    @property
    def a(self) -> float:
        """a, equation (85)."""
        return 2.0 * self.alpha * self.beta / (1.0 - self.beta) ** 2 + 2.0 * self.c2 / self.base.mu

    @property
    def b(self) -> float:
        """b, equation (86)."""
        return 2.0 * self.alpha * self.beta / (1.0 - self.beta) ** 2 - 2.0 * self.k * self.base.mu

    @property
    def q1(self) -> float:
        """a/b, equation (106): below one by Lemma 20."""
        return self.a / self.b

    @property
    def q2(self) -> float:
        """Equation (107), which is max(0, 1 - 2 c_1)."""
        mu, L_a, beta = self.base.mu, self.L_alpha, self.beta
        return max(0.0, 1.0 - self.alpha * mu * L_a / ((1.0 - beta) * (L_a + mu) + 2.0 * L_a * beta))

    @property
    def q(self) -> float:
        """max(q_1, q_2), below one within (37) and (38)."""
        return max(self.q1, self.q2)

    @property
    def heat(self) -> float:
        """eta^4 sigma^2 N + 2 gamma eta^3 N d: trace of the noise in a step of all positions."""
        return self.alpha * self.base.heat_of(self.beta)

    @property
    def V1(self) -> float:
        """Bound of V_1, equations (94) and (95), with x^(1) where x^(0) is printed."""
        carried = self.beta / (1.0 - self.beta)
        return (0.5 * self.b * self.L_alpha * self.begin.start_sq + 2.0 * self.begin.first_sq
                + 2.0 * carried**2 * self.begin.step_sq)

    @cached_property
    def c3(self) -> float:
        """Bound of E||x + beta/(1-beta) (x - x_before) - x_a||^2, equation (88)."""
        if self.k >= 0.0 or not 0.0 <= self.q < 1.0:
            raise NotApplicable(f"1 - friction*step_size={self.beta:g} must be at most "
                                f"{max(self.largest_beta, 0.0):.4g} for step_size={self.eta:g}: the bound "
                                "has no value (DE-SGHMC Theorem 11, equations (37), (38))")
        return self.V1 + self.rest / (1.0 - self.q)

    @property
    def rest(self) -> float:
        """What V_k gains in a step, equation (88)."""
        return 2.0 / (1.0 - self.beta) ** 2 * self.heat + self.c2 * self.begin.fixed_norm**2

    @property
    def c4(self) -> float:
        """Bound of E||x + beta/(1-beta) (x - x_before)||^2, equation (45)."""
        return 2.0 * self.c3 + 2.0 * self.begin.fixed_norm**2

    @property
    def fixed_sq(self) -> float:
        """Bound of E||x - x_a||^2 at every iteration.

        x - x_a = (1 - beta) (x + beta/(1-beta) (x - x_before) - x_a) + beta (x_before - x_a), so that it is
        at most the larger of c_3 and its value at the start.
        """
        return max(self.c3, self.begin.start_sq)

    @property
    def printed_position(self) -> float:
        """Bound of E||x||^2 in the proof of Lemma 13, after (102), as printed."""
        norm, carried = self.begin.fixed_norm, self.beta / (1.0 - self.beta)
        return 4.0 * self.c3 + 4.0 * norm**2 + 2.0 * carried**2 * (
            2.0 * self.c3 / (self.base.mu * self.b) + 2.0 * norm**2)

    @property
    def gradient_bound(self) -> float:
        """c~_4, meant as a bound of E||grad F(x)||^2.

        Corrected: 2 ||grad F(x^*)||^2 + 2 L^2 (2 E||x - x_a||^2 + 2 ||x_a - x^*||^2), by `fixed_sq`.
        Printed: L (||grad F(x^*)||^2 + sup E||x - x^*||^2), in another unit, with `printed_position`.
        """
        s = self.base
        if self.variant == "printed":
            return s.L * (s.gradient_sq + 2.0 * self.printed_position + 2.0 * s.minimizer_norm**2)
        away = 2.0 * self.fixed_sq + 2.0 * self.begin.fixed_distance**2
        return 2.0 * s.gradient_sq + 2.0 * s.L**2 * away

    @cached_property
    def c5(self) -> float:
        """Bound of E||v||^2 of all clients, equation (105)."""
        room = 1.0 - 2.0 * self.beta**2
        if room <= 0.0:
            raise NotApplicable(f"1 - friction*step_size={self.beta:g} must be less than sqrt(1/2): the "
                                "bound has no value (DE-SGHMC Lemma 13)")
        gains = 2.0 * self.alpha * self.gradient_bound + self.base.heat_of(self.beta)
        return self.start_velocity_sq + gains / room

    @property
    def hypotheses(self) -> tuple[Assumption, ...]:
        """(37) and (38)."""
        s = self.base
        step = Assumption.at_most(STEP_RANGE, self.alpha, (1.0 + s.smallest) / (2.0 * (s.L + s.mu)))
        limit, beta = self.largest_beta, max(self.beta - ROUNDED, 0.0)
        if limit <= ROUNDED:  # zero up to rounding at the end of (37), where L = mu
            return step, Assumption.yes(MOMENTUM_RANGE, beta == 0.0 and limit >= -ROUNDED)
        return step, Assumption.at_most(MOMENTUM_RANGE, beta, limit)

    @property
    def lost(self) -> float:
        """1 - sqrt(1 - beta), without cancellation."""
        return self.beta / (1.0 + float(np.sqrt(1.0 - self.beta)))


def momentum(algorithm: DESGHMC) -> float:
    """beta = 1 - friction*step_size, where rounding of friction = 1/step_size counts as zero."""
    beta = 1.0 - algorithm.friction * require_constant_step(algorithm)
    return 0.0 if beta < ROUNDED else beta


def chain(constants: Constants, algorithm: DESGHMC, variant: str = "corrected",
          begin: Beginning | None = None) -> Chain:
    """Collect the constants.

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGHMC
        Constant step size.
    variant : "corrected" or "printed"
        Which explicit constant (105), see `Chain`.
    begin : Beginning, optional
        Of the problem itself; from the constants by default.

    Returns
    -------
    Chain

    Raises
    ------
    NotApplicable
        For a network that is not connected.
    ValueError
        For a schedule, a mixing matrix of another size, and constants that are not known.

    Source: DE-SGHMC Theorem 11 and appendix B.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))
    >>> c = theory.de_sghmc.chain(theory.constants(problem, algorithm), algorithm, "printed")
    >>> round(c.c5, 2)
    6.77
    """
    instance("algorithm", algorithm, DESGHMC)
    one_of("variant", variant, ("corrected", "printed"))
    instance("begin", begin, Beginning, type(None))
    eta, beta = require_constant_step(algorithm), momentum(algorithm)
    base = network_setting(constants, algorithm, eta**2)
    velocity: Array = np.zeros(1) if algorithm.start_velocity is None else algorithm.start_velocity
    speed = float((velocity**2).sum() * (base.N if velocity.ndim == 1 else 1))
    return Chain(base, eta, beta, speed, begin or beginning_bound(base, beta, speed), variant)
