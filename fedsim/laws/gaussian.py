"""Gaussian: a normal law at one time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from ..settings.alignment import square, together
from ..settings.limits import refuse_bytes
from ..settings.validation import (
    Array,
    array,
    instance,
    points,
    read_only,
    real,
    shape,
    shown,
    whole,
    whole_numbers,
)
from .law_checks import covariance, not_negative
from .moments import roots, w2_of


class Gaussian:
    """A normal law on R^d.

    Parameters
    ----------
    mean : (d,)
    cov : (d, d) positive semidefinite, or (d,) variances of independent coordinates

    Attributes
    ----------
    mean, variances : (d,)
    table : (d, d), or (d,)
        What it was made from: the covariance, or variances.

    Examples
    --------
    >>> fs.Gaussian([0.0], [[1.0]]).w2(fs.Gaussian([3.0], [[25.0]]))
    5.0
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        mean, cov = together(0, mean=mean, cov=cov)
        self.mean: Array = array("mean", mean, 1)
        table = array("cov", square("cov", cov), 1, 2)
        if table.ndim == 1:
            shape("cov", table, self.mean.shape, " (one variance per coordinate)")
            self.table: Array = not_negative("cov", table)
        else:
            self.table = covariance("cov", shape("cov", table, (self.dim, self.dim)), cov)
        self.variances: Array = table if table.ndim == 1 else np.diagonal(self.table)

    @classmethod
    def _of(cls, mean: Array, variances: Array) -> Gaussian:
        """A law with moments (d,), (d,) that the house made, finite and not negative, without checks."""
        law = cls.__new__(cls)
        law.mean, law.table = read_only(mean.copy()), read_only(variances.copy())
        law.variances = law.table
        return law

    @property
    def dim(self) -> int:
        """Dimension d."""
        return len(self.mean)

    @property
    def is_diagonal(self) -> bool:
        """True when made from variances alone."""
        return self.table.ndim == 1

    @property
    def cov(self) -> Array:
        """Covariance (d, d), made anew of variances; ValueError where the memory has no room for it."""
        if self.is_diagonal:
            refuse_bytes(16.0 * self.dim**2, f"cov of dim={self.dim} as a dense matrix", "use variances")
        return np.diag(self.table) if self.is_diagonal else self.table

    def w2(self, other: Gaussian) -> float:
        """2-Wasserstein distance to another Gaussian (not squared)."""
        instance("other", other, Gaussian)
        shape("other.mean", other.mean, self.mean.shape)
        if self.table.ndim == other.table.ndim:
            return float(w2_of(self.mean, self.table, other.mean, other.table))
        return float(w2_of(self.mean, self.cov, other.mean, other.cov))

    def sample(self, n: int, seed: int) -> Array:
        """`n` independent draws, shape (n, d), from NumPy's generator."""
        count = whole("n", n, 1)
        refuse_bytes(24.0 * count * self.dim, f"n={n!r} draws of dimension {self.dim}", "draw fewer at once")
        draws = np.random.default_rng(whole("seed", seed)).standard_normal((count, self.dim))
        if self.is_diagonal:
            return self.mean + draws * np.sqrt(self.variances)
        return self.mean + draws @ roots(self.cov)

    def marginal(self, coordinates: int | Sequence[int]) -> Gaussian:
        """The law of one coordinate, or of several in this order.

        Raises
        ------
        ValueError
            Naming coordinates, where one is not there or is named twice.

        Examples
        --------
        >>> law = fs.Gaussian([1.0, 2.0, 3.0], [1.0, 4.0, 9.0])
        >>> law.marginal(1).mean.tolist(), law.marginal([2, 0]).variances.tolist()
        ([2.0], [9.0, 1.0])
        """
        some = [coordinates] if isinstance(coordinates, (int, np.integer)) else coordinates
        # of a long range as many are written out as show that it is too long
        chosen = whole_numbers("coordinates", some[:self.dim + 1] if isinstance(some, range) else some)
        if chosen.ndim != 1 or not len(chosen) or len(set(chosen.tolist())) < len(chosen) or (
                chosen < 0).any() or (chosen >= self.dim).any():
            raise ValueError(f"coordinates={shown(coordinates)} must be " + (
                f"different numbers from 0 to {self.dim - 1}" if self.dim > 1 else "[0]"))
        cov = self.variances[chosen] if self.is_diagonal else self.cov[np.ix_(chosen, chosen)]
        return Gaussian(self.mean[chosen], cov)

    def logpdf(self, x: ArrayLike) -> Array:
        """Logarithm of the density at points x (..., d): (...).

        Raises
        ------
        ValueError
            Where the law has no density, its covariance being singular.
        """
        gap = points("x", x, self.dim) - self.mean
        if self.is_diagonal:
            values, turned = self.variances, gap
        else:
            values, vectors = np.linalg.eigh(self.cov)
            turned = gap @ vectors
        if not values.min() > 1e-14 * values.max():
            raise ValueError(f"cov has eigenvalues from {values.min():g} to {values.max():g}: a law on fewer "
                             f"than {self.dim} dimensions has no density; take the marginal of some")
        return -0.5 * ((turned**2 / values).sum(axis=-1) + np.log(2.0 * np.pi * values).sum())

    def pdf(self, x: ArrayLike) -> Array:
        """The density at points x (..., d): (...).

        Raises
        ------
        ValueError
            As of `logpdf`.

        Examples
        --------
        >>> fs.Gaussian([0.0], [[1.0]]).pdf([[0.0], [1.0]]).round(4).tolist()
        [0.3989, 0.242]
        """
        return np.exp(self.logpdf(x))

    def ellipse(self, level: float = 0.95, n: int = 100) -> Array:
        """Points (n, 2) along the ellipse around the mean that has this probability; of two dimensions.

        The last point is the first. Where the covariance is singular it is a segment or a point.

        Raises
        ------
        ValueError
            Naming the argument, or the dimension where it is not 2.

        Examples
        --------
        >>> fs.Gaussian([0.0, 0.0], [1.0, 4.0]).ellipse(0.5, 5).round(3).tolist()
        [[1.177, 0.0], [0.0, 2.355], [-1.177, 0.0], [-0.0, -2.355], [1.177, -0.0]]
        """
        if self.dim != 2:
            raise ValueError(f"a Gaussian of dimension {self.dim} has no ellipse; it must have 2 dimensions: "
                             "take .marginal([i, j])")
        if not 0.0 < real("level", level) < 1.0:
            raise ValueError(f"level={level!r} must lie between 0 and 1")
        angles = np.linspace(0.0, 2.0 * np.pi, whole("n", n, 2))
        radius = np.sqrt(-2.0 * np.log1p(-level))  # of the chi-squared law with two degrees of freedom
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return self.mean + radius * circle @ roots(self.cov)

    def __repr__(self) -> str:
        return f"Gaussian(dim={self.dim}, mean={self.mean[:4]}, variances={self.variances[:4]})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
