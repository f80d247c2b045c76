"""FA-HMC's lower bound, Theorem C.1 (I.1): two kinds of clients along exact trajectories.

Half of the clients have f_c = L ||theta - theta_L||^2/2, half mu ||theta - theta_mu||^2/2, coordinatewise,
and each update follows the exact trajectory of length x (`theory.exact.FAHMCFlow`). With
c_a = cos(sqrt(a) x) and gamma = (c_L^T + c_mu^T)/2 the mean after n *rounds* is
gamma^n m_0 + (1 - gamma^n) theta_eta, with a fixed point theta_eta that is not the target's mean theta_*:

    theta_eta = [theta_L (1 - c_L^T) + theta_mu (1 - c_mu^T)] / (2 (1 - gamma)),
    theta_eta - theta_* = -(T/4 - 1/6) x^2 L mu (L - mu) (theta_L - theta_mu) / (L + mu)^2 + O(x^4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fedsim.interfaces import start_moments
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import (
    Array,
    array,
    fraction,
    instance,
    nonnegative,
    positive,
    real,
    set_fields,
    whole,
)

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from ..exact import FAHMCFlow, two_group_law
from ..exact.evolution import matrix_of
from ..facts.constants_of_problem import Constants
from ..theorem_parts import shares_of_root
from .notation import FULL, theorem


@dataclass(frozen=True)
class TwoGroups:
    """The problem of Theorem C.1.

    Parameters
    ----------
    L, mu : float
        Curvatures, L >= mu > 0.
    theta_L, theta_mu : float
        Minimizers, the same in every coordinate.
    dim : int
    start_mean, start_variance : float
        Of the start, per coordinate.

    Examples
    --------
    >>> theory.fa_hmc.TwoGroups(L=1.0, mu=0.25, theta_L=2.0, theta_mu=1.0, dim=10).theta_star
    1.8
    """

    L: float
    mu: float
    theta_L: float
    theta_mu: float
    dim: int = 1
    start_mean: float = 0.0
    start_variance: float = 0.0

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[str, Any], Any]] = {
            "L": positive, "mu": positive, "theta_L": real, "theta_mu": real, "start_mean": real,
            "start_variance": nonnegative, "dim": partial(whole, at_least=1)}
        set_fields(self, **{name: check(name, getattr(self, name)) for name, check in checks.items()})
        if self.L < self.mu:
            raise ValueError(f"L={self.L!r} must be at least mu={self.mu!r}")

    @classmethod
    def of(cls, problem: Quadratic, start: Any = None) -> TwoGroups:
        """Read off a problem, or a ValueError saying why it is not of this kind."""
        instance("problem", problem, Quadratic, advice="of two kinds of clients")
        mean, cov = start_moments(start, problem.dim)
        spread = np.zeros((problem.dim, problem.dim)) if cov is None else matrix_of(cov)
        curved = problem.dense_hessians[:, 0, 0]
        first = curved == curved.max()
        share = float(problem.weights[first].sum())
        kinds = [(problem.dense_hessians[side], problem.minimizers[side]) for side in (first, ~first)]
        unit = np.eye(problem.dim)
        if not (abs(share - 0.5) <= 1e-12 and np.ptp(mean) == 0.0
                and np.array_equal(spread, spread[0, 0] * unit)
                and all((hessians == hessians[0, 0, 0] * unit).all() and np.ptp(minimizers) == 0.0
                        for hessians, minimizers in kinds)):
            raise ValueError(f"problem={problem!r} must have two kinds of clients of weight 1/2 each, with "
                             "isotropic Hessians and minimizers (and a start) equal in every coordinate")
        (high, theta_L), (low, theta_mu) = kinds
        return cls(float(high[0, 0, 0]), float(low[0, 0, 0]), float(theta_L[0, 0]), float(theta_mu[0, 0]),
                   problem.dim, float(mean[0]), float(spread[0, 0]))

    @property
    def theta_star(self) -> float:
        """The target's mean in each coordinate."""
        return (self.L * self.theta_L + self.mu * self.theta_mu) / (self.L + self.mu)

    @property
    def problem(self) -> Quadratic:
        """Two clients; more of each kind give the same law when shared_noise is 1."""
        return Quadratic([self.L, self.mu], np.full((2, self.dim), [[self.theta_L], [self.theta_mu]]))

    def target(self) -> Gaussian:
        """The target, in `dim` dimensions."""
        return self.problem.target()

    def fixed_point(self, length: float, local_steps: int) -> tuple[float, float]:
        """gamma and theta_eta of trajectories of this length."""
        length = positive("length", length)
        local_steps = whole("local_steps", local_steps, 1)
        gone = 1.0 - np.cos(np.sqrt([self.L, self.mu]) * length) ** local_steps
        if not gone.sum() > 0.0:
            raise ValueError(f"length={length!r} is too short: the round map rounds to 1")
        return float(1.0 - 0.5 * gone.sum()), float(gone @ [self.theta_L, self.theta_mu] / gone.sum())

    def law(self, rounds: Any, length: float, local_steps: int,
            shared_noise: float = 1.0) -> tuple[Array, Array]:
        """Exact mean and variance of a coordinate, `theory.exact.two_group_law`."""
        return two_group_law(rounds, curvatures=(self.L, self.mu), minimizers=(self.theta_L, self.theta_mu),
                             trajectory_length=length, local_steps=local_steps, shared_noise=shared_noise,
                             start_mean=self.start_mean, start_variance=self.start_variance)

    def w2(self, rounds: Any, length: float, local_steps: int, shared_noise: float = 1.0) -> Array:
        """Exact W2 to the target after n rounds, for an array of n."""
        mean, variance = self.law(rounds, length, local_steps, shared_noise)
        goal = 2.0 / (self.L + self.mu)
        return np.sqrt(self.dim * ((mean - self.theta_star) ** 2 + (np.sqrt(variance) - np.sqrt(goal)) ** 2))

    def printed_variance(self, rounds: Any, length: float, local_steps: int) -> Array:
        """Variance as in the proof of Theorem I.1, which takes one Gaussian for two correlated sums."""
        a, local_steps = np.array([self.L, self.mu]), whole("local_steps", local_steps, 1)
        length = positive("length", length)
        gone = 1.0 - np.cos(np.sqrt(a) * length) ** (2 * local_steps)
        gamma, _ = self.fixed_point(length, local_steps)
        jump = 0.25 * np.sqrt(gone / a).sum() ** 2
        left = gamma ** (2 * array("rounds", rounds))
        return left * self.start_variance + jump * (1.0 - left) / (1.0 - gamma**2)


def _of_proof(words: str, judge: Callable[[TwoGroups, Any], Assumption]) -> Hypothesis:
    """What only "printed" asks for."""
    return Hypothesis(words, lambda groups, algorithm, variant: judge(groups, algorithm)
                      if variant == "printed" else None)


LENGTH, SIDES, CENTRED = ("trajectory_length <= 1/sqrt(L)", "0 < theta_mu <= theta_L", "start of mean zero")


@theorem("Theorem C.1 (I.1)", quantity="w2", kind="lower", terms=("bias", "contraction"),
         source="FA-HMC Theorem C.1/I.1", algorithm=FAHMCFlow, only={"n_clients": 2},
         inputs=lambda problem, algorithm, constants, n_rounds, start: {
             "groups": TwoGroups.of(problem, start)},
         hypotheses=(
             _of_proof(LENGTH, lambda groups, algorithm: Assumption.at_most(
                 LENGTH, algorithm.trajectory_length, 1.0 / np.sqrt(groups.L))),
             _of_proof(SIDES, lambda groups, algorithm: Assumption.yes(
                 SIDES, 0.0 < groups.theta_mu <= groups.theta_L)),
             _of_proof(CENTRED, lambda groups, algorithm: Assumption.yes(CENTRED, groups.start_mean == 0.0)),
             FULL),
         variants={"mean": "the exact gap of the means, all in \"bias\"; it needs the last hypothesis alone",
                   "printed": ""},
         arguments={"groups": "theory.fa_hmc.TwoGroups"})
def lower_bound(constants: Constants, algorithm: FAHMCFlow, rounds: np.ndarray, variant: str, *,
                groups: TwoGroups) -> Terms:
    """Lower bound of W2 on the problem of two kinds of clients, whatever the shared noise.

    Guarantee, after n rounds from a start of mean m_0:

        W2^2 >= d (gamma^n m_0 + (1 - gamma^n) theta_eta - theta_*)^2

    Source: FA-HMC Theorem C.1 (I.1). W2 is at least the distance of the means. From a start of mean zero
    the proof goes on to d (theta_eta - theta_*)^2 + d theta_eta^2 gamma^(2n) ("printed"), which drops a
    cross term of right sign, because 0 < theta_eta <= theta_*. The exponent counts rounds.

    Its terms are shares of the root.

    Examples
    --------
    >>> groups = theory.fa_hmc.TwoGroups(L=1.0, mu=0.25, theta_L=2.0, theta_mu=1.0, dim=10)
    >>> algorithm = theory.exact.FAHMCFlow(0.5, local_steps=10)
    >>> known = theory.constants(groups.problem, algorithm)
    >>> bound = theory.fa_hmc.lower_bound(known, algorithm, groups=groups, n_rounds=30)
    >>> round(float(bound.value[-1]), 3), round(float(groups.w2(30, 0.5, 10)), 3)
    (0.224, 0.314)
    """
    instance("groups", groups, TwoGroups)
    x, T = algorithm.trajectory_length, algorithm.local_steps
    gamma, fixed = groups.fixed_point(x, T)
    if variant == "mean":
        mean, _ = groups.law(rounds, x, T)
        bias, gone = (mean - groups.theta_star) ** 2, np.zeros(len(rounds))
    else:
        bias = np.full(len(rounds), (fixed - groups.theta_star) ** 2)
        gone = fixed**2 * np.abs(gamma) ** (2 * rounds)
    return Terms(shares_of_root({"bias": groups.dim * bias, "contraction": groups.dim * gone}),
                 target=groups.target(), start_distance=constants.initial_w2,
                 floor=float(np.sqrt(groups.dim) * abs(fixed - groups.theta_star)), is_root=True)


def fewest_rounds(groups: TwoGroups, eps: float, local_steps: int, shared_noise: float = 1.0, *,
                  n_grid: int = 400) -> tuple[int, float]:
    """Fewest exact rounds to W2 <= eps over the trajectory length, in (0, 1/sqrt(L)].

    Parameters
    ----------
    groups : TwoGroups
    eps : float
    local_steps : int
    shared_noise : float
    n_grid : int
        Trajectory lengths tried, from 1e-3/sqrt(L) up; refined once around the best.

    Returns
    -------
    rounds : int
    trajectory_length : float

    Raises
    ------
    ValueError
        When no trajectory length that was tried reaches eps.

    Source: FA-HMC Theorem C.1, whose claim is that these rounds grow like sqrt(d) log(d/eps)/eps.

    Examples
    --------
    >>> groups = theory.fa_hmc.TwoGroups(L=1.0, mu=0.25, theta_L=2.0, theta_mu=1.0, dim=10)
    >>> rounds, length = theory.fa_hmc.fewest_rounds(groups, 0.3, local_steps=10, n_grid=60)
    >>> rounds, round(length, 2)
    (8, 0.44)
    """
    instance("groups", groups, TwoGroups)
    eps, T = positive("eps", eps), whole("local_steps", local_steps, 1)
    shared_noise = fraction("shared_noise", shared_noise)
    top = 1.0 / np.sqrt(groups.L)
    lengths = np.geomspace(1e-3 * top, top, whole("n_grid", n_grid, 10, 10**6))
    reached: dict[float, int] = {}
    for _ in range(2):
        rounds = {float(length): _first_within(groups, eps, float(length), T, shared_noise)
                  for length in lengths}
        reached |= {length: n for length, n in rounds.items() if n is not None}
        if not reached:
            raise ValueError(f"eps={eps:g} is not reached by any trajectory length down to {lengths[0]:g}")
        best = min(reached, key=reached.__getitem__)
        lengths = np.linspace(best * lengths[0] / lengths[1], min(best * lengths[1] / lengths[0], top),
                              n_grid)
    return reached[best], best


def _first_within(groups: TwoGroups, eps: float, length: float, T: int, shared: float) -> int | None:
    """First round within eps; W2 falls towards its limit where the start is far on one side."""
    gamma, _ = groups.fixed_point(length, T)
    if float(groups.w2(np.inf, length, T, shared)) > eps or not 0.0 < gamma < 1.0:
        return None
    low, high = 0, 1
    while float(groups.w2(high, length, T, shared)) > eps:
        low, high = high, 2 * high
    while True:
        grid = np.unique(np.linspace(low, high, min(high - low + 1, 4096)).astype(np.int64))
        place = int(np.argmax(groups.w2(grid, length, T, shared) <= eps))
        if place == 0 or grid[place] - grid[place - 1] == 1:
            return int(grid[place])
        low, high = int(grid[place - 1]), int(grid[place])
