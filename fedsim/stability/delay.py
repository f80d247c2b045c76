"""Stability of recursions with delay.

For curvature a and fixed age tau, stale SGLD has the characteristic equation
z^tau (z - 1) + h a = 0 and is stable exactly for 0 < h a < 2 sin(pi / (2 (2 tau + 1))).
Stale SGHMC has z^(tau-1) (z - 1)(z - 1 + B h) + h^2 a = 0 (times z for tau = 0).
For ages that vary the growth rate over a long stretch of the schedule is measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interfaces import Problem
from ..settings.lazy_import import lazy
from ..settings.staleness import Sequence, Several, as_staleness
from ..settings.validation import Array
from .search import BELOW_ONE, gaps_to_one, largest_stable, radius_of

brentq = lazy("scipy.optimize", "brentq")

LARGEST_AGE = 3000
"""Age up to which the roots of stale SGHMC's polynomial are taken, whose degree it is."""
STRETCH = 4000
"""Updates over which the growth under varying ages is measured."""


def pooled_curvatures(problem: Problem) -> Array:
    """Eigenvalues of the Hessian of f, or of the problem that stability is judged on."""
    matrix = problem.pooled().curvature_problem().mean_hessian
    return np.unique(matrix if matrix.ndim == 1 else np.linalg.eigvalsh(matrix))


def sgld_limit(tau: int) -> float:
    """Largest stable h a of stale SGLD with fixed age tau.

    Examples
    --------
    >>> from fedsim.stability.delay import sgld_limit
    >>> sgld_limit(0), round(sgld_limit(2), 6)
    (2.0, 0.618034)
    """
    return float(2.0 * np.sin(np.pi / (2.0 * (2 * tau + 1))))


def sgld_radius(ha: float, tau: int) -> float:
    """Largest root of z^tau (z - 1) + h a = 0 in size.

    Complex roots r e^(i phi) have r = sin(tau phi) / sin((tau + 1) phi), which gives h a as an
    increasing function of phi on (0, pi / (tau + 1)); below the double root the largest one is real.
    """
    if tau == 0:
        return abs(1.0 - ha)
    double = tau**tau / (tau + 1.0) ** (tau + 1) if tau < 100 else float(
        np.exp(tau * np.log(tau / (tau + 1.0))) / (tau + 1.0))
    if ha <= double:
        return float(brentq(lambda z: tau * np.log(z) + np.log1p(-z) - np.log(ha), tau / (tau + 1.0),
                            1.0 - 1e-16, xtol=1e-16)) if ha > 1e-15 else min(1.0 - ha, BELOW_ONE)

    def gap(phi: float) -> float:
        r = np.sin(tau * phi) / np.sin((tau + 1) * phi)
        return float(tau * np.log(r) + 0.5 * np.log(1.0 - 2.0 * r * np.cos(phi) + r * r) - np.log(ha))

    end = np.pi / (tau + 1)
    if ha == np.inf or gap(end * (1.0 - 1e-13)) < 0.0:  # so far out the root is a power of h a
        return float(ha ** (1.0 / (tau + 1)))
    phi = brentq(gap, 1e-7 * end, end * (1.0 - 1e-13), xtol=1e-16)
    return float(np.sin(tau * phi) / np.sin((tau + 1) * phi))


def sghmc_radius(h: float, curvature: float, friction: float, tau: int) -> float:
    """Largest characteristic root of stale SGHMC with fixed age, in size.

    The two roots 1 + w next to one, w (w + B h) (1 + w)^(tau - 1) + h^2 a = 0, are taken apart where they are
    near: a polynomial's roots keep few digits there.
    """
    damping, pull = friction * h, h * (h * curvature)
    if not (damping < 1e100 and pull < 1e100):
        return float("inf")
    near = _next_to_one(damping, pull, tau)
    if tau > LARGEST_AGE and near is None:
        raise ValueError(f"staleness={tau} must be at most {LARGEST_AGE} for the stability of stale SGHMC "
                         f"with step_size={h:g}: it asks for the roots of a polynomial of that degree; take "
                         "a smaller step size, or pass allow_unstable=True")
    if near is not None and (tau < 2 or tau > LARGEST_AGE):
        return near
    polynomial = np.zeros(max(tau, 1) + 2)  # (z - 1) (z - 1 + B h) z^(tau - 1) + h^2 a, times z for tau = 0
    polynomial[:3] = 1.0, (damping - 1.0) - 1.0, 1.0 - damping
    polynomial[-1 if tau else -2] += pull
    roots = np.roots(polynomial)
    if near is None:
        return float(np.abs(roots).max())
    others = np.sort_complex(roots)[np.argsort(np.abs(np.sort_complex(roots) - 1.0))][2:]
    return max(near, float(np.abs(others).max(initial=0.0)))


def _next_to_one(damping: float, pull: float, tau: int) -> float | None:
    """Radius of the two roots next to one, by Newton's iterations; None where they are not near."""
    half = np.sqrt(complex(0.25 * damping * damping - pull))
    far = -0.5 * damping - half
    roots = np.array([far, pull / far if far else 0.0])
    if np.abs(roots).max() * (tau + 1) > 0.01:
        return None
    for _ in range(20):
        weight = pull * np.exp((1 - tau) * np.log1p(roots))
        slope = 2.0 * roots + damping + (tau - 1) * weight / (1.0 + roots)
        roots = roots - (roots * (roots + damping) + weight) / np.where(slope == 0.0, np.inf, slope)
    return radius_of(float(gaps_to_one(roots).min()))


@np.errstate(over="ignore", invalid="ignore")
def _growth(h: float, curvatures: Array, friction: float | None, ages: Array) -> float:
    """Growth per update of the noise-free recursion over a schedule, worst over curvatures."""
    n, oldest = len(ages), int(ages.max())
    past = np.ones((n + 1, len(curvatures)))
    velocity = np.zeros(len(curvatures))
    log_scale = np.zeros(len(curvatures))
    for update in range(n):
        pull = h * curvatures * past[update - ages[update]]
        if friction is None:
            past[update + 1] = past[update] - pull
        else:
            velocity = (1.0 - friction * h) * velocity - pull
            past[update + 1] = past[update] + h * velocity
        if update % 64 == 63:  # rescale what the recursion can still see
            first = max(0, update + 1 - oldest)
            size = np.maximum(np.abs(past[first:update + 2]).max(axis=0), np.abs(velocity))
            gone = size == 0.0  # step_size curvature = 1 with fresh gradients ends in one update
            size[gone], log_scale[gone] = 1.0, -np.inf
            past[first:update + 2] /= size
            velocity = velocity / size
            log_scale += np.log(size)
    first = max(0, n - oldest)
    with np.errstate(divide="ignore"):
        log_scale += np.log(np.abs(past[first:]).max(axis=0))
    growth = float(np.exp(log_scale.max() / n))
    return float("inf") if np.isnan(growth) else growth  # it overflowed between two scalings


def _stretch(staleness: Any) -> Array:
    """Ages to measure growth on; of several schedules, which have the same law, the first."""
    if isinstance(staleness, (Sequence, Several)):
        return np.atleast_2d(staleness.values)[0]
    return staleness.ages(STRETCH)


@np.errstate(over="ignore")
def growth_at(algorithm: Any, curvatures: Array, step: float) -> float:
    """Growth per update at this step size, of the slowest or least stable of `pooled_curvatures`."""
    staleness, friction = as_staleness(algorithm.staleness), algorithm.friction
    if staleness.limit is not None:
        tau = staleness.limit
        if friction is None:
            return max(sgld_radius(step * a, tau) for a in (curvatures[0], curvatures[-1]))
        return max(sghmc_radius(step, a, friction, tau) for a in curvatures)
    ages = _stretch(staleness)
    return _growth(step, curvatures, friction, ages) if len(ages) else 0.0


def step_limit(algorithm: Any, curvatures: Array) -> float:
    """Largest stable step size on a problem with these `pooled_curvatures`."""
    staleness = as_staleness(algorithm.staleness)
    if staleness.limit is not None and algorithm.friction is None:
        return sgld_limit(staleness.limit) / float(curvatures[-1])
    return largest_stable(lambda h: growth_at(algorithm, curvatures, h), safe_step(algorithm, curvatures),
                          growth=1.2, scan=200)


def safe_step(algorithm: Any, curvatures: Array) -> float:
    """A step size that is stable; below it a radius is one only by rounding."""
    staleness, friction = as_staleness(algorithm.staleness), algorithm.friction
    ages = np.array([staleness.limit]) if staleness.limit is not None else _stretch(staleness)
    below = np.float64(0.1 * sgld_limit(int(max(ages, default=0)))) / curvatures[-1]
    if friction is not None:
        below = 0.1 * min(np.sqrt(below), below * friction, 1.0 / friction)
    return float(below)
