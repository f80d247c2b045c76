"""The numbers that the statements about decentralized algorithms share.

Everything is about the components f_i, whose sum is f: each is mu-strongly convex and L-smooth, so that
f / N is too. x = (x_1, ..., x_N) holds all clients, F(x) = sum_i f_i(x_i), x_* is the minimizer of f and
x^* = (x_*, ..., x_*). alpha is the step size of the Euler scheme that the average follows: eta for
DE-SGLD, eta^2 for DE-SGHMC.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.algorithms.gossip import Decentralized
from fedsim.settings.network import second_eigenvalue, smallest_eigenvalue
from fedsim.settings.validation import Array, instance, positive

from ..facts.constants_of_problem import Constants
from .applicable import NotApplicable, require_connected, require_constant_step, require_rows


def power(log_base: float, exponent: Any) -> Array:
    """exp(exponent * log_base) with 0^0 = 1: a power from its logarithm, for bases close to one."""
    exponent = np.asarray(exponent, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(exponent == 0.0, 1.0, np.exp(exponent * log_base))


def geometric_sum(log_x: float, log_y: float, k: Any) -> Array:
    """sum_{i<k} x^i y^(k-1-i) from the logarithms, without loss where x and y are close."""
    k = np.asarray(k, dtype=np.float64)
    high, gap = max(log_x, log_y), -abs(log_x - log_y)
    with np.errstate(invalid="ignore"):
        ratio = k if gap == 0.0 else np.expm1(k * gap) / np.expm1(gap)
    return np.where(k == 0.0, 0.0, power(high, np.maximum(k - 1.0, 0.0)) * ratio)


@dataclass(frozen=True)
class Setting:
    """Constants and parameters under the paper's own letters; what is not known is asked for when used.

    Attributes
    ----------
    constants : theory.Constants
        Convention "components".
    alpha : float
    smallest : float
        lambda_N, smallest eigenvalue of the mixing matrix.
    second : float
        gamma-bar, second largest magnitude of its eigenvalues; 0 for one client.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=2.0, convention="components")
    >>> theory.de_sgld.Setting(known, alpha=0.1, smallest=0.0, second=0.5).mu_prime
    0.9
    """

    constants: Constants
    alpha: float
    smallest: float
    second: float

    @property
    def base(self) -> Setting:
        """Itself; of DE-SGHMC's `Chain`, what it rests on."""
        return self

    @property
    def mu(self) -> float:
        """Strong convexity of the components."""
        return self.constants.strong_convexity

    @property
    def L(self) -> float:
        """Smoothness of the components."""
        return self.constants.smoothness

    @property
    def d(self) -> int:
        """Dimension."""
        return self.constants.dim

    @property
    def N(self) -> int:
        """Number of clients."""
        return int(self.constants.need("n_clients"))

    @property
    def gap(self) -> float:
        """1 - gamma-bar."""
        return 1.0 - self.second

    @property
    def square_gap(self) -> float:
        """1 - gamma-bar^2."""
        return 1.0 - self.second**2

    @property
    def sigma_sq(self) -> float:
        """sigma^2 of Assumption 1: E||gradient noise of a client||^2 is at most this."""
        return float(self.constants.gradient_noise_traces.max())

    @property
    def growth(self) -> float:
        """C of (121): E||gradient noise of a client at x||^2 is at most C (1 + ||x||^2)."""
        known = self.constants.noise_growth
        return self.sigma_sq if known is None else known

    @property
    def average_sq(self) -> float:
        """E||average at the start - x_*||^2."""
        return float(self.constants.need("initial_distance") ** 2)

    @property
    def origin_sq(self) -> float:
        """E||x^(0)||^2 of all clients, about the origin."""
        return float(self.N * self.constants.need("initial_second_moment"))

    @property
    def start_sq(self) -> float:
        """E||x^(0) - x^*||^2 of all clients."""
        return self.N * (self.average_sq + self.constants.initial_spread)

    @property
    def minimizer_norm(self) -> float:
        """||x^*||, of all clients."""
        return float(np.sqrt(self.N) * np.linalg.norm(self.constants.need("minimizer")))

    @cached_property
    def gradient_norms(self) -> Array:
        """||grad f_i(x_*)|| of each client, (N,); the largest client's where only that is known."""
        known = self.constants
        largest_alone = known.gradient_at_minimizer is None and known.heterogeneity is not None
        return np.full(self.N, known.heterogeneity) if largest_alone else known.gradient_norms

    @property
    def gradient_sq(self) -> float:
        """||grad F(x^*)||^2."""
        return float((self.gradient_norms**2).sum())

    @cached_property
    def gaps(self) -> float:
        """sum_i f_i(0) - min f_i; where not known from ||grad f_i(0)||^2 / (2 mu)."""
        if self.constants.gaps_at_origin is not None:
            return float(self.constants.gaps_at_origin.sum())
        slopes = self.gradient_norms + self.L * float(np.linalg.norm(self.constants.need("minimizer")))
        return float((slopes**2).sum() / (2.0 * self.mu))

    @property
    def C1(self) -> float:
        """C_1 of equation (27): sqrt(2 L sum_i (f_i(0) - min f_i)) (1 + 2 (L + mu)/mu)."""
        return float(np.sqrt(2.0 * self.L * self.gaps) * (1.0 + 2.0 * (self.L + self.mu) / self.mu))

    @property
    def fixed_point_distance(self) -> float:
        """Lemma 18: ||x_alpha - x^*|| of the noise-free fixed point x_alpha is at most this."""
        return self.C1 * self.alpha * float(np.sqrt(self.N)) / self.gap

    @property
    def mu_prime(self) -> float:
        """mu (1 - alpha L/2)."""
        if self.alpha * self.L >= 2.0:
            raise NotApplicable(f"step size {self.alpha:g} of the average must be less than 2/smoothness="
                                f"{2.0 / self.L:g}: the bound has no value")
        return self.mu * (1.0 - 0.5 * self.alpha * self.L)

    @property
    def drift(self) -> float:
        """alpha + (1 + alpha L)^2 / mu'."""
        return self.alpha + (1.0 + self.alpha * self.L) ** 2 / self.mu_prime

    @property
    def target_norm(self) -> float:
        """sqrt(2 d / (mu N)), Lemma 10."""
        return float(np.sqrt(2.0 * self.d / (self.mu * self.N)))

    @property
    def euler(self) -> float:
        """1.65 (L/mu) sqrt(alpha d/N), the error of Lemma 9."""
        return float(1.65 * self.L / self.mu * np.sqrt(self.alpha * self.d / self.N))

    @property
    def noise(self) -> float:
        """sqrt(alpha) sigma / sqrt(mu' N)."""
        return float(np.sqrt(self.alpha * self.sigma_sq / (self.mu_prime * self.N)))

    @property
    def room(self) -> float:
        """1 + lambda_N - eta L of DE-SGLD, which has to be positive."""
        room = 1.0 + self.smallest - self.alpha * self.L
        if room <= 0.0:
            raise NotApplicable(f"step_size={self.alpha!r} must be less than (1 + lambda_N)/smoothness="
                                f"{(1.0 + self.smallest) / self.L!r}: the bound has no value (DE-SGLD "
                                "Lemma 5)")
        return room

    def heat_of(self, beta: float = 0.0) -> float:
        """alpha sigma^2 N + 2 (1 - beta) d N: trace of the noise in a step of all clients, over alpha."""
        return self.alpha * self.sigma_sq * self.N + 2.0 * (1.0 - beta) * self.d * self.N

    @property
    def gradient_parts(self) -> dict[str, float]:
        """The four terms of D^2, equation (26), of DE-SGLD."""
        return {"start": 4.0 * self.L**2 * self.start_sq,
                "fixed_point": 8.0 * (self.L * self.fixed_point_distance) ** 2,
                "noise": 2.0 * self.L**2 * self.heat_of() / (self.mu * self.room),
                "heterogeneity": 4.0 * self.gradient_sq}

    @property
    def gradient_bound(self) -> float:
        """D^2 of equation (26), of DE-SGLD."""
        return sum(self.gradient_parts.values())

    @property
    def disagreement_parts(self) -> dict[str, float]:
        """The terms of Lemma 6 but that for the start, of DE-SGLD."""
        return {"gradients": 4.0 * self.gradient_bound * self.alpha**2 / self.gap**2,
                "gradient_noise": 4.0 * self.sigma_sq * self.N * self.alpha**2 / self.square_gap,
                "injected_noise": 8.0 * self.d * self.N * self.alpha / self.square_gap}

    @property
    def disagreement_sq(self) -> float:
        """First term of Lemma 8: what the clients' distance from their average contributes, of DE-SGLD."""
        return self.drift / self.mu_prime * self.L**2 / self.N * sum(self.disagreement_parts.values())

    def contraction(self, rounds: Any) -> Array:
        """(1 - mu alpha)^k."""
        return power(np.log1p(-self.mu * self.alpha) if self.mu * self.alpha < 1.0 else -np.inf, rounds)

    def initialization(self, rounds: Any) -> Array:
        """(1 - mu alpha)^k (sqrt(E||average - x_*||^2) + sqrt(2 d/(mu N)))."""
        return self.contraction(rounds) * (np.sqrt(self.average_sq) + self.target_norm)

    def geometric(self, rounds: Any) -> Array:
        """H = (x^k - y^k)/(x - y) = sum_{i<k} x^i y^(k-1-i), x = 1 - alpha mu', y = gamma-bar^2."""
        with np.errstate(divide="ignore"):
            return geometric_sum(np.log1p(-self.alpha * self.mu_prime), 2.0 * np.log(self.second), rounds)

    def transient_sq(self, rounds: Any) -> Array:
        """gamma-bar^2 H 4 L^2 E||x^(0)||^2/N: the term of Lemmas 8 and 16 for a start apart, as printed."""
        return self.second**2 * self.geometric(rounds) * 4.0 * self.L**2 * self.origin_sq / self.N

    def mixing_power(self, rounds: Any) -> Array:
        """gamma-bar^k."""
        with np.errstate(divide="ignore"):
            return power(np.log(self.second), rounds)

    def start_distance(self, apart: bool) -> float:
        """W2 at the start, of the average or (`apart`) the clients' mean; or an upper bound of it.

        Where it is not known, ||x_0 - x_*|| and ||X - x_*|| <= sqrt(d/(mu N)) add up in L2: their squares
        need not, because the mean of a skewed target is not its mode x_*.
        """
        known = self.constants.initial_w2
        if known is None:
            known = float(np.sqrt(self.average_sq) + np.sqrt(self.d / (self.mu * self.N)))
        return known + (float(np.sqrt(self.constants.initial_spread)) if apart else 0.0)


def setting(constants: Constants, algorithm: Decentralized, alpha: float | None = None) -> Setting:
    """Collect what the statements need.

    Parameters
    ----------
    constants : Constants of convention "components"
    algorithm : fedsim.DESGLD or fedsim.DESGHMC
        Constant step size.
    alpha : float, optional
        The step size of the average's Euler scheme; the algorithm's step size by default.

    Returns
    -------
    Setting

    Raises
    ------
    NotApplicable
        For a network that is not connected.
    ValueError
        For a schedule, or a mixing matrix of another size.

    Source: DE-SGLD section 3 and its appendix.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> s = theory.de_sgld.setting(theory.constants(problem, algorithm), algorithm)
    >>> s.mu, s.L, s.N, round(s.second, 12)
    (1.0, 2.0, 2, 0.0)
    """
    instance("constants", constants, Constants)
    eta = require_constant_step(instance("algorithm", algorithm, DESGLD, DESGHMC))
    matrix = algorithm.mixing
    require_rows(matrix, constants.need("n_clients"))
    require_connected(matrix)
    return Setting(constants, eta if alpha is None else positive("alpha", alpha), smallest_eigenvalue(matrix),
                   second_eigenvalue(matrix))
