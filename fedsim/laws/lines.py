"""The line, half of it or an interval, as a smooth image of all real numbers t: where quadrature is easy.

Whatever a smooth density does at a finite end, it dies away exponentially in t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..settings.support import Support
from ..settings.validation import Array


@dataclass(frozen=True)
class WholeLine:
    """x = centre + scale sinh(t): for t up to 150, 7e64 scales away."""

    centre: float
    scale: float
    reach = 150.0
    """Largest t, in size, that is looked at."""

    def at(self, t: Array) -> Array:
        """Points x."""
        return np.add(self.centre, self.scale * np.sinh(t))

    def places(self, x: Array) -> Array:
        """The t of points x; infinite beyond the ends."""
        return np.arcsinh((x - self.centre) / self.scale)

    def log_slope(self, t: Array) -> Array:
        """log dx/dt."""
        return np.log(self.scale * np.cosh(t))


@dataclass(frozen=True)
class HalfLine:
    """x = end + sign scale exp(sign t), sign 1 above the end and -1 below it."""

    end: float
    sign: float
    scale: float
    reach = 300.0

    def at(self, t: Array) -> Array:
        """Points x."""
        x = self.end + self.sign * self.scale * np.exp(self.sign * t)
        nearest = np.nextafter(self.end, self.sign * np.inf)  # potentials need not be defined at the end
        return np.maximum(x, nearest) if self.sign > 0 else np.minimum(x, nearest)

    def places(self, x: Array) -> Array:
        """The t of points x; infinite beyond the ends."""
        with np.errstate(divide="ignore"):
            return self.sign * np.log(np.maximum(self.sign * (x - self.end), 0.0) / self.scale)

    def log_slope(self, t: Array) -> Array:
        """log dx/dt."""
        return np.log(self.scale) + self.sign * t


@dataclass(frozen=True)
class Interval:
    """x = low + (high - low) / (1 + exp(-t))."""

    low: float
    high: float
    reach = 300.0

    def at(self, t: Array) -> Array:
        """Points x."""
        x = self.low + (self.high - self.low) / (1.0 + np.exp(-t))
        return np.clip(x, np.nextafter(self.low, self.high), np.nextafter(self.high, self.low))

    def places(self, x: Array) -> Array:
        """The t of points x; infinite beyond the ends."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(x - self.low, 0.0)) - np.log(np.maximum(self.high - x, 0.0))

    def log_slope(self, t: Array) -> Array:
        """log dx/dt."""
        return np.log(self.high - self.low) - np.logaddexp(0.0, t) - np.logaddexp(0.0, -t)


Line = WholeLine | HalfLine | Interval
"""An increasing function of t: `at`, `places`, `log_slope` and `reach` are as of the whole line."""


def line_of(support: Support | None, centre: float, scale: float) -> Line:
    """The line on which a law lives that has this support."""
    low, high = (-np.inf, np.inf) if support is None else (float(ends[0]) for ends in support)
    if np.isfinite(low) and np.isfinite(high):
        return Interval(low, high)
    if np.isfinite(low):
        return HalfLine(low, 1.0, scale)
    return HalfLine(high, -1.0, scale) if np.isfinite(high) else WholeLine(centre, scale)
