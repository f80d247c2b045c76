"""Exact laws of FA-HMC's limit of vanishing step size, and of its worst case, two kinds of clients.

An update follows the continuous trajectory of length x: in the notation of `fa_hmc`, C = cos(sqrt(A) x),
D = A^(-1/2) sin(sqrt(A) x) and V = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.federated import Federated
from fedsim.interfaces import Problem, offers
from fedsim.laws.law import Law
from fedsim.settings.alignment import together
from fedsim.settings.validation import (
    Array,
    UnstableStepSize,
    array,
    nonnegative,
    positive,
    real,
    shape,
    shown,
    unmasked,
)
from fedsim.stability.federated import curvatures, turned_back
from fedsim.stability.search import Stability, largest_stable, round_radius, scalar_round_radius

from ..asking import exact_law
from ..families import exact
from .chain import Motion, geometric, power_deviation
from .fa_hmc import FRESH, FAHMCFamily


@dataclass(frozen=True)
class Flow:
    """A part of a chain: the trajectory of this length, along which gradients' noise averages out."""

    length: float

    def motion(self, values: Array, noisy: bool) -> Motion:
        """See `chain.Part`."""
        root = np.sqrt(values)
        change, reach = -2.0 * np.sin(0.5 * root * self.length) ** 2, np.sin(root * self.length) / root
        moved = np.array([[change, reach], [-values * reach, change]])
        return Motion(moved, moved[:, :0], moved[:, :0])


@dataclass(frozen=True)
class FAHMCFlow(Federated):
    """FA-HMC in the limit of small steps: each update follows the continuous trajectory.

    It has an exact law, also a stationary and a joint one, and is never simulated. Noise of gradients
    averages out along a trajectory.

    Parameters
    ----------
    trajectory_length : float
        Leapfrog steps times step size, in units of 1/sqrt(Hessian).
    local_steps : int
        T, local updates between communications.
    shared_noise : float
        Fraction of the averaged momentum's variance that is common to all clients.
    participation : optional
        Who takes part in a round, as of `fedsim.FALD`.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 4.0], [[0.0], [1.0]])
    >>> flow = theory.exact.FAHMCFlow(trajectory_length=0.5, local_steps=2)
    >>> theory.exact_law(problem, flow, n_rounds=1000).at(1000).mean.round(3)
    array([0.755])
    """

    trajectory_length: float
    local_steps: int = 1
    shared_noise: float = 1.0
    participation: Any = None
    debias = None

    def __post_init__(self) -> None:
        super().__post_init__()

    def _normalise_step(self) -> None:
        object.__setattr__(self, "trajectory_length", positive("trajectory_length", self.trajectory_length))

    @property
    def step_size(self) -> float:  # type: ignore[override]
        """What a schedule would change: the trajectory's length."""
        return self.trajectory_length

    def _radius(self, problem: Any) -> float:
        """Radius of the round map, of its second moment with participation; 1 at resonance."""
        return self._round_radius(problem, curvatures(problem.curvature_problem()), self.trajectory_length)

    def _round_radius(self, problem: Any, modes: tuple[Array, Array | None], length: float) -> float:
        values, vectors = modes
        shifts = power_deviation(-Flow(length).motion(values, False).change[0, 0], self.local_steps)
        averaging = self._averaging(problem)
        factor = 0.0 if averaging is not None else self.variance_factor(problem)
        if averaging is not None:
            table = shifts if vectors is None else turned_back(shifts, vectors)
            radius = averaging.radius(np.concatenate([table, self._idle(table)]))
        elif vectors is None:
            radius = scalar_round_radius(shifts, problem.weights, factor)
        else:
            radius = round_radius(turned_back(shifts, vectors), problem.weights, factor)
        turned = np.sqrt(values.max()) * length > 1.0  # else a radius near one is that of a flat direction
        return 1.0 if turned and abs(radius - 1.0) < 1e-12 else radius

    def stability(self, problem: Any) -> Stability:
        """Does the round contract? `max_step_size` is the shortest trajectory found for which it does not."""
        offers("problem", problem, Problem)
        modes, length = curvatures(problem.curvature_problem()), self.trajectory_length
        value = self._round_radius(problem, modes, length)
        safe = 0.5 / np.sqrt(float(modes[0].max()))
        while self.participation is not None and safe > 1e-12 / np.sqrt(float(modes[0].max())) and (
                self._round_radius(problem, modes, safe) >= 1.0):
            safe *= 0.5
        limit = largest_stable(lambda x: self._round_radius(problem, modes, x), safe)
        stable = value < 1.0 or length < safe  # a short trajectory's radius rounds to one
        return _FlowStability(value, bool(stable), limit if stable else float(np.fmin(limit, length)), length)


class _FlowStability(Stability):
    """Names the trajectory's length instead of a step size."""

    def require(self) -> None:
        """Raise `UnstableStepSize` unless stable."""
        if not self.stable:
            raise UnstableStepSize(
                f"trajectory_length={self.step_size:g} must be less than the limit {self.max_step_size:.6g}: "
                f"the round map has radius {self.radius:.6g}, and no law is approached (at radius one, "
                "trajectories return to where they began)", self.step_size, self.max_step_size)


@exact(FAHMCFlow)
class FAHMCFlowFamily(FAHMCFamily):
    """The same rounds, with trajectories instead of leapfrogs."""

    def chain(self, algorithm: Any, eta: Any) -> list[Any]:
        return [FRESH, Flow(eta)]


def flow_law(problem: Any, trajectory_length: float, n_rounds: int, *, local_steps: int = 1,
             shared_noise: float = 1.0, participation: Any = None, **options: Any) -> Law:
    """Exact law of `FAHMCFlow`; `options` as for `exact_law`.

    Raises
    ------
    UnstableStepSize
        At resonance, where trajectories return to where they began.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 4.0], [[0.0], [1.0]])
    >>> theory.exact.flow_law(problem, 0.5, 100, local_steps=2).at(100).mean.round(3)
    array([0.755])
    """
    algorithm = FAHMCFlow(trajectory_length, local_steps, shared_noise, participation)
    return exact_law(problem, algorithm, n_rounds, **options)


def _counts(rounds: Any) -> Array:
    """Numbers from 0 on, infinity included."""
    try:
        endless = np.isposinf(np.asarray(unmasked("rounds", rounds)))
    except (TypeError, ValueError, MemoryError):  # no numbers: refused below
        endless = np.zeros(1, bool)
    finite = array("rounds", np.where(endless, 0.0, rounds) if endless.any() else rounds)
    if (finite < 0.0).any():
        raise ValueError(f"rounds={shown(rounds)} must be at least 0")
    return np.where(endless, np.inf, finite)


def two_group_law(rounds: Any, *, curvatures: tuple[float, float], minimizers: tuple[float, float],
                  trajectory_length: float, local_steps: int, shared_noise: float = 1.0,
                  start_mean: float = 0.0, start_variance: float = 0.0) -> tuple[Array, Array]:
    """Law of a coordinate of `FAHMCFlow` with two kinds of clients, half of each, in closed form.

    With trajectory length x, c_a = cos(sqrt(a) x), s_a = sin(sqrt(a) x)/sqrt(a) for the curvatures
    a = L, m, and gamma = (c_L^T + c_m^T)/2, the mean after n rounds is
    gamma^n m_0 + (1 - gamma^n) theta, theta = [b_L (1 - c_L^T) + b_m (1 - c_m^T)] / (2 (1 - gamma)), and
    the variance gamma^2n v_0 + Q (1 - gamma^2n)/(1 - gamma^2), where Q = s Q_1 + (1 - s) Q_0,

        Q_0 = [(1 - c_L^2T)/L + (1 - c_m^2T)/m] / 2,
        Q_1 = Q_0/2 + s_L s_m (1 - (c_L c_m)^T) / (1 - c_L c_m) / 2.

    Parameters
    ----------
    rounds : array of float, any shape
        n; infinity gives the stationary law.
    curvatures, minimizers : of the two kinds
    trajectory_length, local_steps, shared_noise : as for `FAHMCFlow`
    start_mean, start_variance : at round 0

    Returns
    -------
    mean, variance : arrays of the shape of `rounds`

    Source: FA-HMC Theorem I.1. Its statement omits the minimizers and the noise's size, and its proof
    takes one Gaussian for two correlated sums, which gives a larger variance unless T = 1 or L = m.

    Examples
    --------
    >>> mean, variance = theory.exact.two_group_law(
    ...     [0, 10, np.inf], curvatures=(4.0, 1.0), minimizers=(1.0, 0.0),
    ...     trajectory_length=0.5, local_steps=2)
    >>> mean.round(3).tolist()
    [0.0, 0.754, 0.755]
    """
    n = _counts(rounds)
    flow = FAHMCFlow(trajectory_length, local_steps, shared_noise)
    count, common = flow.local_steps, flow.shared_noise
    start, spread = real("start_mean", start_mean), nonnegative("start_variance", start_variance)
    curvatures, minimizers = together(0, curvatures=curvatures, minimizers=minimizers)
    a = shape("curvatures", array("curvatures", curvatures, 1), (2,))
    if a.min() <= 0.0:
        raise ValueError(f"curvatures={shown(curvatures)} must be greater than 0")
    centres = shape("minimizers", array("minimizers", minimizers, 1), (2,))
    phase = np.sqrt(a) * flow.trajectory_length
    lost, reach = 2.0 * np.sin(0.5 * phase) ** 2, np.sin(phase) / np.sqrt(a)  # 1 - c_a, s_a
    gone = -power_deviation(lost, count)  # 1 - c_a^T
    leaving = 0.5 * gone.sum()  # 1 - gamma
    if leaving == 0.0:
        raise ValueError(f"trajectory_length={trajectory_length!r} is too short: the round map rounds to 1")
    if 2.0 - leaving < 1e-12 or (leaving < 1e-12 and phase.max() > 0.5):
        length = flow.trajectory_length
        raise UnstableStepSize(
            f"trajectory_length={length:g} is a resonance: the round map is {1.0 - leaving:g}, and "
            "trajectories return to where they began", length, float("nan"))
    alone = 0.5 * (-power_deviation(lost, 2 * count) / a).sum()
    both = 0.5 * alone + 0.5 * reach.prod() * geometric(lost.sum() - lost.prod(), count)
    fixed, remaining = 0.5 * (gone @ centres) / leaving, (1.0 - leaving) ** n
    noise = (common * both + (1.0 - common) * alone) / (leaving * (2.0 - leaving))
    return remaining * start + (1.0 - remaining) * fixed, remaining**2 * spread + (1.0 - remaining**2) * noise
