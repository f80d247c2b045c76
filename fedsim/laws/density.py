"""Laws on the line by quadrature, from their potential: what runs without a closed form are compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..settings.lazy_import import lazy
from ..settings.limits import refuse_bytes
from ..settings.support import shown_support, support_of
from ..settings.validation import Array, array, positive, real, shown, whole
from .law import Gaussian
from .lines import line_of

CubicSpline = lazy("scipy.interpolate", "CubicSpline")
minimize_scalar = lazy("scipy.optimize", "minimize_scalar")

_COARSE, _FINE = 6001, 8001
_NEGLIGIBLE = 1e-60
"""Of the largest weight; small, so that heavy tails have their moments."""
_ADVICE = "; pass about where its law is, and how wide"
_VALLEYS = 100
_ACCURACY = 1e-9
"""Relative to the whole; half as many points have to give the same."""


class Density:
    """The law proportional to exp(-potential(x)) on the line, or a part of it.

    Integrals are sums over points that are even in t, x = centre + scale sinh(t), which converge faster than
    any power of their distance where the potential is smooth; see `fedsim.laws.lines` for parts of the line.

    Parameters
    ----------
    potential : function
        Of an array of points (n,); returns (n,).
    centre, scale : float
        About where the law is, and how wide: a guess that is wrong a hundredfold will do. With one finite end
        only the scale counts, about how far from there; with two neither.
    support : (lo, hi), optional
        The ends of the law; the potential is asked for between them alone.

    Raises
    ------
    ValueError
        Where exp(-potential) has no integral, or is too narrow or rough to be seen from there.

    Examples
    --------
    >>> law = fs.Density(lambda x: np.log(np.cosh(x)))
    >>> round(float(law.variance), 10), round(float(law.cdf(0.0)), 12)
    (2.4674011003, 0.5)
    """

    def __init__(self, potential: Callable[[Array], Any], *, centre: float = 0.0, scale: float = 1.0,
                 support: Any = None) -> None:
        if not callable(potential):
            raise ValueError(f"potential={shown(potential)} must be a function of an array of points")
        self._potential = potential
        self._centre, self._scale = real("centre", centre), positive("scale", scale)
        self._support = support_of(support, 1)
        self._line = line_of(self._support, self._centre, self._scale)
        with np.errstate(all="ignore"):
            self._t, self._weights, self._lowest = self._table(*self._range())
            halved = self._sums(self._weights[::2], self._t[::2])
            whole_sums = self._sums(self._weights, self._t)
        self._total = whole_sums[0]
        if not np.allclose(halved, whole_sums, rtol=_ACCURACY, atol=_ACCURACY * abs(self._total)):
            raise self._refusal("is too narrow or too rough for quadrature at", _ADVICE)

    def _at(self, t: Array) -> tuple[Array, Array]:
        """Points and minus the logarithm of their weight in t."""
        x = self._line.at(t)
        try:
            values = np.asarray(self._potential(x))
        except ValueError:  # says by itself what is wrong
            raise
        except Exception as error:
            raise ValueError(f"potential={shown(self._potential)} fails between x={x.min():g} and "
                             f"{x.max():g}: {type(error).__name__}: {error}") from None
        if values.dtype.kind not in "biuf":
            raise ValueError(f"potential gives dtype {values.dtype}; it must be real numbers")
        values = values.astype(np.float64)
        if values.shape != x.shape:
            raise ValueError(f"potential gives shape {values.shape} at {len(x)} points; it must be {x.shape}")
        for place in np.flatnonzero(np.isnan(values) | (values == -np.inf)):
            raise ValueError(f"potential at x={x[place]:g} is {values[place]}; it must be a number or inf")
        return x, values - self._line.log_slope(t)

    def _range(self) -> tuple[float, float]:
        """Where the law is, in t: beyond, its density and first moments are negligible."""
        t = np.linspace(-self._line.reach, self._line.reach, _COARSE)
        _, cost = self._at(t)
        kept = np.flatnonzero(cost <= cost.min() - np.log(_NEGLIGIBLE))
        if kept[0] == 0 or kept[-1] == len(t) - 1:
            raise self._refusal("does not grow enough for exp(-potential) to have an integral, seen from")
        first, last = float(t[kept[0] - 1]), float(t[kept[-1] + 1])
        for place, least in self._valleys(t, cost):
            if not first <= place <= last and least <= cost.min() - np.log(_NEGLIGIBLE):
                raise self._too_narrow(place)
        return first, last

    def _valleys(self, t: Array, cost: Array) -> list[tuple[float, float]]:
        """Places in t of the least costs between grid points, and these costs."""
        inner = np.isfinite(cost[1:-1]) & (cost[1:-1] < cost[:-2]) & (cost[1:-1] <= cost[2:])
        found = []
        for i in (np.flatnonzero(inner) + 1)[:_VALLEYS]:
            best = minimize_scalar(lambda place: float(self._at(np.array([place]))[1][0]), method="bounded",
                                   bounds=(t[i - 1], t[i + 1]), options={"xatol": 1e-12})
            found.append((float(best.x), min(float(best.fun), float(cost[i]))))
        return found

    def _refusal(self, what: str, advice: str = "") -> ValueError:
        return ValueError(f"potential={shown(self._potential)} {what} centre={self._centre:g} with scale="
                          f"{self._scale:g}{advice}")

    def _too_narrow(self, place: float) -> ValueError:
        x = self._line.at(np.array(place))
        return self._refusal(f"has a mode near x={x:g} that is too narrow to be seen from", _ADVICE)

    def _table(self, first: float, last: float) -> tuple[Array, Array, float]:
        t = np.linspace(first, last, _FINE)
        _, cost = self._at(t)
        lowest = float(cost.min())
        for place, least in self._valleys(t, cost):
            grid = float(np.interp(place, t, np.minimum(cost, lowest + 1e3)))
            if least < lowest + 40.0 and grid > least + 1.0:
                raise self._too_narrow(place)
        return t, np.exp(lowest - cost), lowest

    def _sums(self, weights: Array, t: Array) -> Array:
        """Integrals of 1 and of two functions that every law has means of."""
        tests = np.ones(len(t)), np.tanh(t), 1.0 / np.cosh(t)
        return np.array([(weights * values).sum() for values in tests]) * (t[1] - t[0])

    def _integral(self, values: Array) -> Any:
        """Integrals up to a place in t, of these values times the law."""
        return CubicSpline(self._t, values * self._weights / self._total).antiderivative()

    @cached_property
    def _mass(self) -> Any:
        return self._integral(np.ones(len(self._t)))

    def pdf(self, x: ArrayLike) -> Array:
        """Density at points (...)."""
        points = array("x", x)
        t, values = self._line.places(points.ravel()), np.zeros(points.size)
        inside = np.isfinite(t)
        with np.errstate(over="ignore"):
            _, cost = self._at(t[inside])
            slope = np.exp(self._line.log_slope(t[inside]))
        values[inside] = np.exp(self._lowest - cost) / (self._total * slope)
        return values.reshape(points.shape)

    def cdf(self, x: ArrayLike) -> Array:
        """Probability of at most x (...)."""
        places = np.clip(self._line.places(array("x", x)), self._t[0], self._t[-1])
        return np.clip(self._mass(places), 0.0, 1.0)

    def quantile(self, probability: ArrayLike) -> Array:
        """Points (...) that the law exceeds with these probabilities' complements."""
        chance = array("probability", probability)
        if not ((chance >= 0.0) & (chance <= 1.0)).all():
            raise ValueError(f"probability={shown(probability)} must lie in [0, 1]")
        return self._line.at(self._places(chance))

    def _places(self, chance: Array) -> Array:
        """Where in t the mass reaches these probabilities."""
        low, high = np.full(chance.shape, self._t[0]), np.full(chance.shape, self._t[-1])
        for _ in range(60):  # bisection, since the mass increases
            middle = 0.5 * (low + high)
            below = self._mass(middle) < chance
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def moment(self, order: int, about: float = 0.0) -> float:
        """E (x - about)^order; ValueError where the tails have none."""
        power, point = whole("order", order, 0, 20), real("about", about)
        gaps = self._line.at(self._t) - point
        parts = gaps**power * self._weights
        if max(abs(parts[0]), abs(parts[-1])) > _ACCURACY * np.abs(parts).max():
            raise ValueError(f"order={order} must be less: the tails are too heavy for E |x|^{power}")
        return float(parts.sum() / self._weights.sum())

    @property
    def mean(self) -> float:
        """E x."""
        return self.moment(1)

    @property
    def variance(self) -> float:
        """Var x."""
        return self.moment(2, about=self.mean)

    def gaussian(self) -> Gaussian:
        """The Gaussian with its mean and variance, for `Law.w2`: what that gives is a lower bound."""
        return Gaussian([self.mean], [self.variance])

    def w2(self, sample: ArrayLike) -> float:
        """2-Wasserstein distance to the empirical law of a sample (n,) or (n, 1)."""
        points = np.sort(array("sample", sample, 1, 2).ravel())
        self.moment(2)  # which there must be
        refuse_bytes(100.0 * len(points), f"sample of {len(points)} points", "take fewer")
        inner = self._places(np.arange(1, len(points)) / len(points))
        t = np.concatenate([self._t[:1], inner, self._t[-1:]])
        x = self._line.at(self._t)
        mass = np.diff(self._mass(t))
        first, second = (np.diff(self._integral((x - self.mean) ** power)(t)) for power in (1, 2))
        gaps = points - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            square = float((second - 2.0 * gaps * first + gaps**2 * mass).sum())
        if not np.isfinite(square):
            raise ValueError(f"sample has an entry {points[np.abs(points).argmax()]:g}: its square leaves "
                             "float64")
        return float(np.sqrt(max(0.0, square)))

    def sample(self, n: int, seed: int) -> Array:
        """`n` independent draws (n,), by quantiles of NumPy's uniform numbers."""
        count = whole("n", n, 1)
        refuse_bytes(100.0 * count, f"n={n!r} draws", "draw fewer at once")
        return self.quantile(np.random.default_rng(whole("seed", seed)).random(count))

    def __repr__(self) -> str:
        ends = "" if self._support is None else f", support={shown_support(self._support)}"
        return f"Density({shown(self._potential)}, centre={self._centre:g}, scale={self._scale:g}{ends})"

