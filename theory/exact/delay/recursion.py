"""Means and covariances of a recursion with delay, update by update.

In the eigenbasis of the Hessian of f, with y the distance to the minimizer and a_i the curvatures, the
update l with age s is

    SGLD     y_i(l+1) = y_i(l) - h a_i y_i(l-s) + e_i,      Cov(e_i, e_j) = 2 h [i = j] + h^2 S_ij
    SGHMC    q_i(l+1) = (1 - B h) q_i(l) - h a_i y_i(l-s) + e_i,    y_i(l+1) = y_i(l) + h q_i(l+1),
                                                            Cov(e_i, e_j) = 2 B h [i = j] + h^2 S_ij

with S the covariance of the gradient noise, so that the covariances of each pair (i, j) of directions
follow a recursion of their own.

Source: stale-gradient paper, equation (3) and Algorithm 1; the law is derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array

from ...float_range import times_squared
from ..evolution import matrix_of


@dataclass(frozen=True)
class Directions:
    """f in the eigenbasis of its Hessian.

    Attributes
    ----------
    curvatures : (d,)
    vectors : (d, d), eigenvectors as columns, or None where they are the coordinates
    minimizer : (d,)
    noise : (p,)
        Entries S_ij of the gradient noise for each pair.
    left, right : (p,) int
        The pairs (i, j) of directions whose covariances are followed: all, or (i, i) alone.
    """

    curvatures: Array
    vectors: Any
    minimizer: Array
    noise: Array
    left: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, problem: Any, cov: Any, variances: bool = False) -> Directions:
        """Directions of a pooled problem, started with covariance `cov` ((d, d), (d,) or None).

        All pairs are followed where directions are correlated, or where `vectors` mix them; with
        `variances` only pairs (i, i) wherever coordinates are the directions.
        """
        dim, gradient_noise = problem.dim, problem.gradient_noise
        matrix = isinstance(gradient_noise, np.ndarray)
        dense = problem.structure == "dense" and dim > 1
        if dense:
            values, vectors = np.linalg.eigh(problem.mean_hessian)
        else:
            values, vectors = np.atleast_1d(problem.mean_hessian).reshape(dim), None
        correlated = dense or (not variances and (matrix or (cov is not None and np.ndim(cov) == 2)))
        if correlated and dim > 1:
            left, right = (index.ravel() for index in np.indices((dim, dim)))
        else:
            left = right = np.arange(dim)
        noise = np.zeros(len(left))
        if matrix:
            table = gradient_noise[0] if vectors is None else vectors.T @ gradient_noise[0] @ vectors
            noise = table[left, right]
        elif gradient_noise is not None:
            noise = np.where(left == right, float(gradient_noise) ** 2, 0.0)
        return cls(values, vectors, problem.minimizer, noise, left, right)

    @property
    def all_pairs(self) -> bool:
        """Are all pairs of directions followed?"""
        return len(self.left) > len(self.curvatures)

    @cached_property
    def swap(self) -> np.ndarray:
        """Where the pair (j, i) stands, for each pair (i, j)."""
        dim = len(self.curvatures)
        return np.arange(dim * dim).reshape(dim, dim).T.ravel() if self.all_pairs else np.arange(dim)

    def inject(self, step: float, friction: float | None) -> Array:
        """Covariances (p,) of the noise e of one update."""
        unit = 2.0 * step * (1.0 if friction is None else friction)
        return np.where(self.left == self.right, unit, 0.0) + times_squared(step, self.noise)

    def enter(self, mean: Array, cov: Any) -> tuple[Array, Array]:
        """Moments of x as the mean (d,) of y and covariances (p,) of its pairs."""
        gap = mean - self.minimizer
        cov = np.zeros(len(gap)) if cov is None else cov
        if cov.ndim == 1 and self.vectors is None and not self.all_pairs:
            return gap, cov
        table = matrix_of(cov)
        if self.vectors is not None:
            gap, table = self.vectors.T @ gap, self.vectors.T @ table @ self.vectors
        return gap, table[self.left, self.right]

    def leave(self, mean: Array, cov: Array) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d), or variances (d,), of x."""
        dim = len(mean)
        table = cov.reshape(dim, dim) if self.all_pairs else cov
        if self.vectors is None:
            return self.minimizer + mean, table
        table = self.vectors @ table @ self.vectors.T
        return self.minimizer + self.vectors @ mean, 0.5 * (table + table.T)


class Delays:
    """The last iterates of the recursion.

    Parameters
    ----------
    directions : Directions
    friction : float or None
        B of SGHMC; None for SGLD.
    oldest : int
        Largest age.
    width : int
        How many iterates the newest one's covariance is kept with, at least `oldest` + 1.
    mean, cov : (d,) and (p,)
        Moments of y(0); velocities start at zero.

    Attributes
    ----------
    mean : (d, width), column l modulo width is E y(l)
    cov : (p, oldest + 1, width), Cov(y_i(l), y_j(m)) at [pair, l mod oldest + 1, m mod width]
    updates : int
        How many were made, the number l of the newest iterate.
    """

    def __init__(self, directions: Directions, friction: float | None, oldest: int, width: int,
                 mean: Array, cov: Array) -> None:
        self.directions, self.friction = directions, friction
        self.depth, self.width = oldest + 1, width
        refuse_bytes(16.0 * len(cov) * self.depth * width, f"covariances of {len(cov)} pairs of directions "
                     f"with ages up to {oldest}", "use a smaller staleness, diagonal Hessians or fewer "
                     "dimensions")
        self.cov = np.zeros((len(cov), self.depth, width))
        self.cov[:, 0, 0] = cov
        self.mean = np.zeros((len(mean), width))
        self.mean[:, 0] = mean
        self._velocity = np.zeros(len(mean))
        self._with_velocity = np.zeros((len(cov), width))  # Cov(q_i(l), y_j(m))
        self._of_velocity = np.zeros(len(cov))  # Cov(q_i(l), q_j(l))
        self._left = directions.curvatures[directions.left]
        self._right = directions.curvatures[directions.right]
        self.updates = 0

    def step(self, step: float, age: int) -> Array:
        """One update; returns the covariances (p, k) of y_i(l+1) with the known y_j, before it is one."""
        newest, swap = self.updates, self.directions.swap
        known = min(newest + 1, self.width)
        old, now, new = (newest - age) % self.depth, newest % self.depth, (newest + 1) % self.depth
        stale, here, next = (newest - age) % self.width, newest % self.width, (newest + 1) % self.width
        pull = step * self._left[:, None] * self.cov[:, old, :known]
        noise = self.directions.inject(step, self.friction)
        forces = step * self.directions.curvatures * self.mean[:, stale]
        if self.friction is None:
            row = self.cov[:, now, :known] - pull
            own = row[:, here] - step * self._right * row[:, stale] + noise
            self.mean[:, next] = self.mean[:, here] - forces
        else:
            keep = 1.0 - self.friction * step
            before = self._with_velocity[:, stale]
            crossed = self._right * before + self._left * before[swap]
            square = self._left * self._right * self.cov[:, old, stale]
            self._of_velocity = (keep**2 * self._of_velocity - keep * step * crossed + step**2 * square
                                 + noise)
            velocity = keep * self._with_velocity[:, :known] - pull
            row = self.cov[:, now, :known] + step * velocity
            both = velocity[:, here] + step * self._of_velocity
            own = row[swap, here] + step * both
            self._with_velocity[:, :known] = velocity
            self._with_velocity[:, next] = both
            self._velocity = keep * self._velocity - forces
            self.mean[:, next] = self.mean[:, here] + step * self._velocity
        self.cov[:, new, :known] = row
        self.cov[:, new, next] = 0.5 * (own + own[swap])  # pairs (i, j) and (j, i) would drift apart
        earlier = np.arange(max(0, newest + 2 - self.depth), newest + 1)  # they know the new one
        self.cov[:, earlier % self.depth, next] = row[swap][:, earlier % self.width]
        self.updates = newest + 1
        return row

    @property
    def newest(self) -> tuple[Array, Array]:
        """Mean (d,) of y(l) and covariances (p,) of its pairs."""
        return (self.mean[:, self.updates % self.width],
                self.cov[:, self.updates % self.depth, self.updates % self.width])
