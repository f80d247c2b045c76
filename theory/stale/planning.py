"""A step size and a number of iterations for a wanted error of the time average, by the paper's rates.

With the largest age tau (at least 1, see `rules`), a time constant V and a step constant A the shapes are

    bias      V/(L h) + A tau h          least at V/(L h) = A tau h
    MSE       V/(L h) + (A tau h)^2      least at V/(L h) = 2 (A tau h)^2
    variance  V/(L h) + (A h)^2          least at V/(L h) = 2 (A h)^2

for the Euler integrators, K = 1. The paper does not know V and A. Where f is quadratic and the test
function the sum of squares, they are those of small steps, derived from the exact law: the bias grows like
(d tau + (d + s)/2) h, s at most the trace of the gradient noise over the smallest curvature, and L h Var
tends to V = sum_k (2/a_k^3 + 8 m_k^2/a_k^2) over curvatures a_k and means m_k; in one dimension (V/2)^(1/3)
is `optimal_constant`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fedsim.algorithms.stale import Stale, StaleSGHMC, StaleSGLD
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.staleness import as_staleness
from fedsim.settings.validation import instance, one_of, positive, real, shown

from ..facts.constants_of_problem import Constants, refuse_off_target
from ..float_range import float64_range
from .setting import largest_age

STRETCH = 4000
"""Updates over which the largest age is taken where ages do not settle."""
ROOM = 0.1
"""Share of the stability limit up to which the constants of small steps are good to about a fifth."""


@dataclass(frozen=True)
class StalePlan:
    """A step size and a number of iterations for a wanted error.

    Attributes
    ----------
    step_size : float
    n_iterations : int
        L of the server; L/W on each of W workers.
    quantity : "bias", "mse" or "variance"
    eps : float
    tau : int
        Age that the plan is for.
    time_constant, step_constant : float
        V and A.
    capped : bool
        The best step size would exceed a tenth of the stability limit and is cut to it.
    kind : "rate"
        A plan by a shape whose constants are not the theorem's.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0], [[0.0]]), fs.StaleSGLD(0.1, staleness=4)
    >>> found = theory.stale.plan(theory.constants(problem, algorithm), algorithm, 0.01, "mse")
    >>> found.label
    'rate of the mse with constants 2 and 1.12: step_size 0.0128, 23383 iterations'
    """

    step_size: float
    n_iterations: int
    quantity: str
    eps: float
    tau: int
    time_constant: float
    step_constant: float
    capped: bool
    kind: str = "rate"

    @property
    def label(self) -> str:
        """For a legend or a log."""
        return (f"rate of the {self.quantity} with constants {self.time_constant:.3g} and "
                f"{self.step_constant:.3g}: step_size {self.step_size:.3g}, {self.n_iterations} iterations")


def plan(constants: Constants, algorithm: Stale, eps: float, quantity: str = "mse", *,
         time_constant: float | None = None, step_constant: float | None = None) -> StalePlan:
    """Step size and iterations for which the rate of the bias, MSE or variance is `eps`.

    Parameters
    ----------
    constants : Constants
        Convention "global".
    algorithm : fedsim.StaleSGLD or fedsim.StaleSGHMC
        Its step size is what is planned, and of no influence. tau is the age at which it settles, or the
        largest one in 4000 updates.
    eps : float
        Bias, MSE or variance wanted, in units of phi or its square.
    quantity : "bias", "mse" or "variance"
    time_constant, step_constant : float, optional
        V and A. By default those of the sum of squares at small steps, for stale SGLD on quadratic f; for
        the bias V is an upper bound, from the distance of the start. A of the variance has no default: the
        term h^(2K) of Theorem 4 does not occur in the exact law.

    Returns
    -------
    StalePlan of kind "rate": no guarantee.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: stale-gradient paper, Theorems 2 to 4 and section 4.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0], [[0.0]]), fs.StaleSGLD(0.1, staleness=4)
    >>> found = theory.stale.plan(theory.constants(problem, algorithm), algorithm, 3e-4)
    >>> round(found.step_size, 12), found.n_iterations, found.capped
    (0.002222222222, 4500000, False)
    """
    one_of("quantity", quantity, ("bias", "mse", "variance"))
    goal = positive("eps", eps)
    if not isinstance(constants, Constants) or constants.convention != "global":
        raise ValueError(f"constants={shown(constants)} must be a theory.Constants of convention 'global'")
    instance("algorithm", algorithm, StaleSGLD, StaleSGHMC)
    if quantity != "variance":
        refuse_off_target(constants, f"theory.stale.plan of the {quantity}")
    V = _time_constant(constants, algorithm, quantity) if time_constant is None else positive(
        "time_constant", time_constant)
    ages = getattr(as_staleness(algorithm.staleness), "values", None)
    tau = largest_age(algorithm, STRETCH) if ages is None else int(ages.max(initial=0))
    A = _step_constant(constants, algorithm, quantity, tau) if step_constant is None else positive(
        "step_constant", step_constant)
    slope = A * (1.0 if quantity == "variance" else max(tau, 1))
    power, share = (1, 0.5) if quantity == "bias" else (2, 1.0 / 3.0)
    best = (share * goal) ** (1.0 / power) / slope  # its part of the least value of the shape
    ends = Quadratic(np.array([[constants.strong_convexity, constants.smoothness]]), np.zeros((1, 2)))
    limit = replace(algorithm, step_size=1.0, staleness=tau).stability(ends).max_step_size  # type: ignore
    h = min(best, ROOM * limit)
    length = V / (h * (goal - (slope * h) ** power))
    if length > 2.0**53:
        raise ValueError(f"eps={eps!r} asks for {length:.3g} iterations; it must be larger")
    return StalePlan(h, max(1, math.ceil(length * (1.0 - 1e-12))), quantity, goal, tau, V, A, h < best)


def optimal_constant(curvature: float, mean: float = 0.0) -> float:
    """C of `mse_step_size` for phi = theta^2 under N(mean, 1/a): (1/a^3 + 4 mean^2/a^2)^(1/3).

    At small steps the bias is tau h and the variance (2/a^3 + 8 mean^2/a^2) / (L h).

    Parameters
    ----------
    curvature : float
        a, the precision of the target.
    mean : float

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For a curvature that is not greater than 0, and beyond the range of float64.

    Source: derived from the exact law.

    Examples
    --------
    >>> round(theory.stale.optimal_constant(4.0), 12)
    0.25
    """
    a, centre = positive("curvature", curvature), real("mean", mean)
    with float64_range(f"curvature={a!r} and mean={centre!r}"):
        cube = 1.0 / a**3 + 4.0 * centre**2 / a**2
        if cube == np.inf:
            raise OverflowError
    return float(np.cbrt(cube))


def _target(constants: Constants, algorithm: Stale, name: str) -> Gaussian:
    if constants.target is None or not isinstance(algorithm, StaleSGLD):
        raise ValueError(f"{name}=None is known for stale SGLD on quadratic f alone, and algorithm="
                         f"{shown(algorithm)} with target={constants.target!r} is not that; pass {name}=...")
    if constants.off_target:
        raise ValueError(f"{name}=None: {constants.off_target}; pass {name}=...")
    return constants.target


def _time_constant(constants: Constants, algorithm: Stale, quantity: str) -> float:
    """V of the sum of squares; of the bias at most |E psi(theta_0) - E psi|, psi as in `fluctuation`."""
    target = _target(constants, algorithm, "time_constant")
    values, vectors = np.linalg.eigh(target.cov)
    curvatures, means = 1.0 / values, vectors.T @ target.mean
    if quantity != "bias":
        return sum(2.0 * optimal_constant(a, m) ** 3 for a, m in zip(curvatures, means, strict=True))
    distance, slowest = constants.need("initial_distance"), float(curvatures.min())
    squares = max(distance**2 / (2.0 * slowest), float(0.5 * (values**2).sum()))
    return squares + 2.0 * float(np.linalg.norm(target.mean)) * distance / slowest


def _step_constant(constants: Constants, algorithm: Stale, quantity: str, tau: int) -> float:
    if quantity == "variance":
        raise ValueError("step_constant=None has no default for quantity='variance': the term h^(2K) of "
                         "Theorem 4 does not occur in the exact law; pass step_constant=...")
    _target(constants, algorithm, "step_constant")
    noise = float(constants.gradient_noise_traces[0]) / constants.strong_convexity
    return (constants.dim * tau + 0.5 * (constants.dim + noise)) / max(tau, 1)
