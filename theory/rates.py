"""What can be said of a rate that holds up to an unknown constant: its shape.

A rate never becomes "the bound" by a constant of our own. Three honest things can be drawn: the measured
values over the shape (bounded, if the rate is right; a drift speaks against it), the smallest constant
for which the shape is an envelope of what was measured, labelled as fitted, and slopes with intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.settings.alignment import together
from fedsim.settings.lazy_import import lazy
from fedsim.settings.validation import Array, array, one_of, shape, such

student = lazy("scipy.stats", "t")

__all__ = ["Line", "RateFit", "Slope", "fit_affine", "fit_rate", "fit_root_log", "loglog_slope"]


def above_zero(name: str, value: Any) -> Array:
    """Numbers (n,) that are all greater than 0."""
    checked = array(name, value, 1)
    if (checked <= 0.0).any():
        raise ValueError(f"{name} has an entry {checked.min():g}; all must be greater than 0")
    return checked


def _pairs(x: Any, y: Any, least: int, second_name: str = "y") -> tuple[Array, Array]:
    x, y = together(0, **{"x": x, second_name: y})
    first = above_zero("x", x)
    second = shape(second_name, above_zero(second_name, y), first.shape, " (one per x)")
    if len(np.unique(first)) < least:
        raise ValueError(f"x has {len(np.unique(first))} different entries; {least} are needed")
    return first, second


def _explained(values: Array, fitted: Array) -> float:
    """Share of the variance of `values`."""
    rest, total = values - fitted, ((values - values.mean()) ** 2).sum()
    return float(1.0 - rest @ rest / total) if total > 0.0 else 1.0


@dataclass(frozen=True)
class Slope:
    """Slope of log y against log x, with a confidence interval.

    Attributes
    ----------
    value, low, high : float
    level : float
        Of the interval, by Student's t with n - 2 degrees of freedom. It measures how straight the
        points are, for scatter as for bend; points from an exact law have no scatter.
    n_points : int

    Examples
    --------
    >>> found = theory.rates.loglog_slope([1, 10, 100], [3, 31, 300])
    >>> found.low < found.value < found.high
    True
    """

    value: float
    low: float
    high: float
    level: float
    n_points: int

    def __contains__(self, exponent: float) -> bool:
        return self.low <= exponent <= self.high

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.level:.0%} interval {self.low:.3f} to {self.high:.3f})"


def loglog_slope(x: Any, y: Any, *, level: float = 0.95) -> Slope:
    """Least-squares slope of log y against log x.

    Parameters
    ----------
    x, y : (n,)
        Positive, with at least three different x.
    level : float
        Confidence of the interval.

    Returns
    -------
    Slope

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: none; Student's interval of a least-squares line.

    Examples
    --------
    >>> found = theory.rates.loglog_slope([1, 10, 100], [3, 30, 300])
    >>> round(found.value, 12), 1.01 in found
    (1.0, False)
    """
    first, second = _pairs(x, y, 3)
    confidence = such("level", level, lambda share: 0.0 < share < 1.0, "lie strictly between 0 and 1")
    u, v = np.log(first), np.log(second)
    centred = u - u.mean()
    slope = float(centred @ v / (centred @ centred))
    rest = v - v.mean() - slope * centred
    error = np.sqrt(rest @ rest / (len(u) - 2) / (centred @ centred))
    reach = float(student.ppf(0.5 + 0.5 * confidence, len(u) - 2) * error)
    return Slope(slope, slope - reach, slope + reach, confidence, len(u))


@dataclass(frozen=True, eq=False)
class RateFit:
    """A rate's shape beside measured values.

    Attributes
    ----------
    x, shape, measured : (n,)
    constant : float
        Fitted: the smallest C with C shape >= measured at every x (the largest with <= for side "lower").
    ratio : (n,)
        measured / shape.
    drift : Slope or None
        Of the ratio against x; None for fewer than three x. An interval that excludes 0 means that the
        shape is off by a factor that changes with x.
    side : "upper" or "lower"

    Examples
    --------
    >>> fit = theory.rates.fit_rate([1, 2, 4], [1, 2, 4], [3, 5, 10])
    >>> fit.label
    'shape of the rate, fitted constant 3'
    """

    x: Array
    shape: Array
    measured: Array
    constant: float
    ratio: Array
    drift: Slope | None
    side: str = field(default="upper")

    @property
    def curve(self) -> Array:
        """constant * shape: an envelope of what was measured, and no bound."""
        return self.constant * self.shape

    @property
    def label(self) -> str:
        """For a legend."""
        return f"shape of the rate, fitted constant {self.constant:.3g}"

    @property
    def spread(self) -> float:
        """Largest over smallest ratio: 1 where the shape is exact up to its constant."""
        return float(self.ratio.max() / self.ratio.min())


def fit_rate(x: Any, rate: Any, measured: Any, *, side: str = "upper", level: float = 0.95) -> RateFit:
    """Fit the constant of a rate, and look for drift.

    Parameters
    ----------
    x : (n,)
        What the rate depends on (dimension, 1/accuracy, local steps ...), positive.
    rate : (n,)
        The shape at x, up to its constant.
    measured : (n,)
        E.g. rounds needed, by the exact law.
    side : "upper" or "lower"
        Is the rate an upper or a lower bound (up to its constant)?
    level : float
        Of the drift's interval.

    Returns
    -------
    RateFit

    Raises
    ------
    ValueError
        As for `loglog_slope`, one x being enough; for an unknown side.

    Source: none; the theorems' rates hold up to constants.

    Examples
    --------
    >>> fit = theory.rates.fit_rate([1, 2, 4], [1, 2, 4], [3, 5, 10])
    >>> fit.constant, fit.spread, fit.label
    (3.0, 1.2, 'shape of the rate, fitted constant 3')
    """
    one_of("side", side, ("upper", "lower"))
    x, rate, measured = together(0, x=x, rate=rate, measured=measured)
    first, second = _pairs(x, measured, 1, "measured")
    form = shape("rate", above_zero("rate", rate), first.shape, " (one per x)")
    ratio = second / form
    constant = float(ratio.max() if side == "upper" else ratio.min())
    drift = loglog_slope(first, ratio, level=level) if len(np.unique(first)) >= 3 else None
    return RateFit(first, form, second, constant, ratio, drift, side)


@dataclass(frozen=True)
class Line:
    """Least-squares line y = slope x + offset, with the share of variance it explains.

    Examples
    --------
    >>> round(theory.rates.fit_affine([1, 2, 3], [3, 5, 7]).slope, 12)
    2.0
    """

    slope: float
    offset: float
    r_squared: float


def fit_affine(x: Any, y: Any) -> Line:
    """Least-squares y = a x + b.

    With x the dimension and y the squared rounds it tests rounds^2 = a d + b, as FA-HMC's Figure 2 does.

    Parameters
    ----------
    x, y : (n,)
        Positive, with at least two different x.

    Returns
    -------
    Line

    Raises
    ------
    ValueError
        For entries not greater than 0, unequal shapes, and fewer than two different x.

    Source: FA-HMC Figure 2, whose fit it is.

    Examples
    --------
    >>> line = theory.rates.fit_affine([1, 2, 3], [3, 5, 7])
    >>> round(line.slope, 9), round(line.offset, 9), round(line.r_squared, 9)
    (2.0, 1.0, 1.0)
    """
    first, second = _pairs(x, y, 2)
    slope, offset = np.polyfit(first, second, 1)
    return Line(float(slope), float(offset), _explained(second, slope * first + offset))


def fit_root_log(x: Any, y: Any) -> tuple[float, float, float]:
    """Least-squares y = a sqrt(x) log(c x): returns a, log(c) and the share of variance explained.

    It is linear after division by sqrt(x): y/sqrt(x) = a log x + a log c.

    Parameters
    ----------
    x, y : (n,)
        As for `fit_affine`.

    Returns
    -------
    (a, log(c), share) : floats

    Raises
    ------
    ValueError
        As for `fit_affine`, and where y/sqrt(x) is constant.

    Source: FA-HMC Proposition 4.3 and Theorem C.1, the dimension's part of whose rates it is.

    Examples
    --------
    >>> x = np.array([2.0, 10.0, 50.0])
    >>> a, log_c, share = theory.rates.fit_root_log(x, 3.0 * np.sqrt(x) * np.log(5.0 * x))
    >>> round(a, 9), round(float(np.exp(log_c)), 9), round(share, 9)
    (3.0, 5.0, 1.0)
    """
    first, second = _pairs(x, y, 2)
    a, b = np.polyfit(np.log(first), second / np.sqrt(first), 1)
    if a == 0.0:
        raise ValueError("y / sqrt(x) is constant: sqrt(x) log(c x) has no finite c that fits it")
    return float(a), float(b / a), _explained(second, np.sqrt(first) * (a * np.log(first) + b))
