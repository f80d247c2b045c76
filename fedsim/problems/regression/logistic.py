"""Bayesian logistic regression on clients."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...laws.law import Gaussian
from ...settings.lazy_import import lazy
from ...settings.validation import Array, locked, points, positive, set_fields, shape, unmasked
from .batched import in_order
from .data import CLOSE, Regression
from .gradients import LogisticModel

_MOST_STEPS = 500

expit = lazy("scipy.special", "expit")


def _advice(labels: Array) -> str:
    """How labels of two other values become 0 and 1."""
    values = np.unique(labels)
    if values.tolist() == [-1.0, 1.0]:
        return ": of labels -1 and +1 pass (labels + 1) // 2"
    two = len(values) == 2
    return f": of labels {values[0]:g} and {values[1]:g} pass labels == {values[1]:g}" if two else ""


@dataclass(frozen=True, eq=False, repr=False)
class LogisticRegression(Regression):
    """Labels y in {0, 1} with P(y = 1) = 1 / (1 + exp(-x'X)), a normal prior of variance lambda.

    Component of client c: f_c(x) = sum of log(1 + exp(-(2 y_r - 1) x'X_r)) over its rows r
    + |x|^2 / (2 lambda N). Federated algorithms follow f_(c) = f_c / w_c, decentralized ones f_c itself.

    Parameters
    ----------
    features : (n, d)
        With a column of ones for an intercept, where one is wanted.
    labels : (n,) of 0 and 1
    clients : (n,) integers
        Who holds each row; numbered 0, ..., N-1, each with data. Rows of pandas are paired by their labels,
        in the order of `features`; of arrays and lists by position.
    prior_variance : float
        lambda.
    weights : (N,), optional
        w_c, positive, summing to one; by default n_c / n.
    batch_size : int, optional
        b data for each gradient evaluation, drawn anew for every step, evaluation, client and replica; at
        most the least n_c. All data by default.
    replace : bool
        Draw them with replacement.
    grad_scale : "unbiased" or "batch_sum"
        Multiply the minibatch's sum by n_c / b, or by 1. With "batch_sum" the mean gradient is that of a
        posterior with b data a client, not of this one.
    gradient_noise : float, optional
        Standard deviation per coordinate of additional normal noise in every evaluation of grad f_(c).

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Notes
    -----
    Stability is judged on clients of constant curvature `smoothness`, the upper bound on all Hessians. For
    FA-LD that is sufficient (every local step of every client contracts), so larger steps may be stable
    too; for FA-HMC it is the stability of the leapfrog at that curvature.

    Source: FA-HMC section 7; DE-SGLD section 5.2 with the labels' sign that its equation (55) lacks.

    Examples
    --------
    >>> problem = fs.LogisticRegression([[1.0], [2.0], [1.0]], [1, 1, 0], [0, 0, 1], prior_variance=4.0)
    >>> problem.mode().round(6).tolist(), problem.smoothness
    ([0.615321], 2.0625)
    """

    features: Array
    labels: Array
    clients: Any
    _: KW_ONLY
    prior_variance: float
    weights: Any = None
    batch_size: int | None = None
    replace: bool = True
    grad_scale: str = "unbiased"
    gradient_noise: float | None = None

    if TYPE_CHECKING:  # what is given, where the fields say what is kept

        def __init__(self, features: ArrayLike, labels: ArrayLike, clients: ArrayLike, *,
                     prior_variance: float, weights: ArrayLike | None = None, batch_size: int | None = None,
                     replace: bool = True, grad_scale: str = "unbiased",
                     gradient_noise: float | None = None) -> None: ...

    _targets_name = "labels"
    _steepest = 0.25
    keeps_gaussian = False

    def __post_init__(self) -> None:
        unmasked("labels", self.labels)
        labels = in_order(self)  # an array of them has no index any more
        with suppress(ValueError, TypeError, OverflowError, MemoryError):  # which are named below
            if np.asarray(labels).dtype == bool:
                set_fields(self, labels=np.asarray(labels).astype(np.float64))
        self._normalise()
        for place in np.flatnonzero((self.labels != 0.0) & (self.labels != 1.0)):
            raise ValueError(f"labels[{place}]={self.labels[place]:g} must be 0 or 1{_advice(self.labels)}")
        self._refuse_overflow()

    def _losses(self, scores: Array, targets: Array) -> Array:
        """log(1 + exp(-(2 y_r - 1) x'X_r))."""
        return np.logaddexp(0.0, (1.0 - 2.0 * targets) * scores)

    def _slopes(self, scores: Array, targets: Array) -> Array:
        """P(y = 1) - y_r."""
        return expit(scores) - targets

    def hessian(self, x: Any) -> Array:
        """Hessian of f at one point `x` (d,), in NumPy."""
        self._refuse_matrices(1)
        scores = self.features @ shape("x", points("x", x, self.dim), (self.dim,))
        spread = expit(scores) * expit(-scores)
        return (self.features.T * spread) @ self.features + np.eye(self.dim) / self.prior_variance

    @cached_property
    def _mode(self) -> Array:
        point, value, gain = np.zeros(self.dim), self.potential(None, np.zeros(self.dim)), np.inf
        while gain > 1e-10 * (1.0 + value):  # Newton's steps, halved until they gain what they promise
            slope = self.gradient(None, point)
            step = np.linalg.solve(self.hessian(point), slope)
            gain, size = float(slope @ step), 1.0
            while self.potential(None, point - size * step) > value - 0.25 * size * gain and size > 1e-12:
                size *= 0.5
            point = point - size * step
            value = self.potential(None, point)
        with suppress(np.linalg.LinAlgError):
            for number in range(_MOST_STEPS):  # beyond the digits of the potential
                step = np.linalg.solve(self.hessian(point), self.gradient(None, point))
                point = point - step
                if number and self._moves(step) < CLOSE:
                    break
        self._refuse_far(step)
        return locked(point)

    def mode(self) -> Array:
        """The posterior's mode (d,): the minimizer of f."""
        return self._mode

    def laplace(self, temperature: float = 1.0) -> Gaussian:
        """The normal law at the mode with the posterior's curvature there; an approximation of it."""
        inverse = np.linalg.inv(self.hessian(self._mode))
        return Gaussian(self._mode, positive("temperature", temperature) * 0.5 * (inverse + inverse.T))

    def _model(self) -> LogisticModel:
        """The data."""
        return LogisticModel(self._data, 1.0 / self.weights, self.prior_pull, int(self.sizes.max()))
