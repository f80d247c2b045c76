"""Bayesian softmax (multi-class logistic) regression on clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...laws.law import Gaussian
from ...settings.lazy_import import lazy
from ...settings.validation import Array, locked, points, positive, set_fields, shape, whole
from .batched import bytes_or_numbers, class_numbers, in_order
from .data import Regression
from .softmax_gradients import Rows, SoftmaxBatch, SoftmaxModel, SoftmaxScratch, softmax_scratch

minimize = lazy("scipy.optimize", "minimize")
LinearOperator, cg = lazy("scipy.sparse.linalg", "LinearOperator", "cg")
helmert = lazy("scipy.linalg", "helmert")

RESOLVED = 1e-10
"""Least share of the largest curvature that rounding leaves six digits."""


logsumexp, softmax = lazy("scipy.special", "logsumexp", "softmax")

MOST_DIMENSIONS = 2000
"""Of a problem whose Hessian is made as a matrix."""
_NUMBERS = 2**22  # that NumPy works on at a time


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxRegression(Regression):
    """Labels y in 0, ..., C-1 with P(y = k) = softmax(theta X)_k, a normal prior of variance lambda.

    theta (C, p) is a point (d,), d = C p, class by class: class k has coordinates k p, ..., k p + p - 1.
    Component of client c: f_c(theta) = sum over its rows r of log sum_k exp(theta_k'X_r) - theta_{y_r}'X_r,
    plus |theta|^2 / (2 lambda N). Federated algorithms follow f_(c) = f_c / w_c, decentralized ones f_c.

    Parameters
    ----------
    features : (n, p)
        With a column of ones for an intercept, where one is wanted. Bytes (uint8) are kept as bytes.
    labels : (n,) integers
        0, ..., C-1, each of which occurs.
    clients : (n,) integers
        Who holds each row; numbered 0, ..., N-1, each with data. Rows of pandas are paired by their labels,
        in the order of `features`; of arrays and lists by position.
    n_classes : int, optional
        C; by default the largest label plus one.
    feature_scale : float
        Features are multiplied by it: 1/255 for pixels that are bytes.
    prior_variance : float
        lambda, of every entry of theta.
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
    Stability is judged on clients of constant curvature `smoothness`, the upper bound on all Hessians, which
    at the mode may be many times too large: good step sizes may need ``allow_unstable=True``.

    With two classes theta_1 - theta_0 has prior variance 2 lambda: the predictive law is that of
    `LogisticRegression` with twice the `prior_variance`.

    Source: FA-LD section 6.2 and appendix G, FA-HMC section 5.4, which name the model; the prior is ours.

    Examples
    --------
    >>> problem = fs.SoftmaxRegression([[1.0], [2.0], [1.0]], [2, 1, 0], [0, 0, 1], prior_variance=4.0)
    >>> problem.dim, problem.n_classes, problem.smoothness
    (3, 3, 3.9375)
    >>> problem.probabilities(problem.mode(), [[3.0]]).round(3).tolist()
    [[0.183, 0.635, 0.183]]
    """

    features: Array
    labels: Array
    clients: Any
    _: KW_ONLY
    prior_variance: float
    n_classes: int | None = None
    feature_scale: float = 1.0
    weights: Any = None
    batch_size: int | None = None
    replace: bool = True
    grad_scale: str = "unbiased"
    gradient_noise: float | None = None

    if TYPE_CHECKING:  # what is given, where the fields say what is kept

        def __init__(self, features: ArrayLike, labels: ArrayLike, clients: ArrayLike, *,
                     prior_variance: float, n_classes: int | None = None, feature_scale: float = 1.0,
                     weights: ArrayLike | None = None, batch_size: int | None = None, replace: bool = True,
                     grad_scale: str = "unbiased", gradient_noise: float | None = None) -> None: ...

    _targets_name = "labels"
    _steepest = 0.5  # the largest eigenvalue that diag(s) - s s' can have
    keeps_gaussian = False

    def __post_init__(self) -> None:
        labels, n_classes = class_numbers(in_order(self), self.n_classes)
        set_fields(self, n_classes=n_classes, _classes=n_classes,
                   feature_scale=positive("feature_scale", self.feature_scale))
        self._set_data(bytes_or_numbers(self.features), labels)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = [np.einsum("ij,ij->i", rows, rows) for rows, _ in self._parts(None)]
            self._refuse_beyond(np.concatenate(squares), "features", self.features, "curvature")

    def _parts(self, client: int | None) -> Iterator[tuple[Array, Array]]:
        """Features as numbers, and labels, of the rows of one client or of all, some at a time."""
        rows = np.arange(len(self.labels)) if client is None else np.flatnonzero(
            self.clients == whole("client", client, 0, self.n_clients - 1))
        count = max(1, _NUMBERS // max(self.features.shape[1], self._classes))
        for first in range(0, len(rows), count):
            chosen = rows[first:first + count]
            yield self.feature_scale * self.features[chosen].astype(np.float64), self.labels[chosen]

    def _at_points(self, client: int | None, x: Any, part: Any) -> Array:
        """part(rows, labels, theta) summed over the parts of the data, for each point (..., d)."""
        at = points("x", x, self.dim)
        flat = at.reshape(-1, self._classes, self.features.shape[1])
        sums = [sum(part(rows, labels, theta) for rows, labels in self._parts(client)) for theta in flat]
        return np.array(sums).reshape(at.shape[:-1] + np.shape(sums[0]))

    def potential(self, client: int | None, x: Any) -> Array:
        """f_(c), or f with client=None, at points `x` (..., d), in NumPy; without the prior's normaliser."""
        def loss(rows: Array, labels: Array, theta: Array) -> Any:
            scores = rows @ theta.T
            return (logsumexp(scores, axis=1) - scores[np.arange(len(labels)), labels]).sum()

        fit = self._at_points(client, x, loss)  # which looks at x first
        return self._posterior(client, fit, 0.5 * (np.asarray(x, np.float64) ** 2).sum(axis=-1))

    def gradient(self, client: int | None, x: Any) -> Array:
        """Exact grad f_(c), or grad f with client=None, at points `x` (..., d), in NumPy."""
        def slope(rows: Array, labels: Array, theta: Array) -> Array:
            chances = softmax(rows @ theta.T, axis=1)
            chances[np.arange(len(labels)), labels] -= 1.0
            return (chances.T @ rows).ravel()

        return self._posterior(client, self._at_points(client, x, slope), np.asarray(x, np.float64))

    def hessian(self, x: Any) -> Array:
        """Hessian (d, d) of f at one point `x` (d,), in NumPy; for at most 2,000 dimensions."""
        at = shape("x", points("x", x, self.dim), (self.dim,))
        self._refuse_matrices_of_curvature()
        return self._likelihood_curvature(at) + np.eye(self.dim) / self.prior_variance

    def _refuse_matrices_of_curvature(self) -> None:
        if self.dim > MOST_DIMENSIONS:
            raise ValueError(f"problem={self!r}: its Hessian has {8e-9 * self.dim**2:.2g} GB; "
                             f"dimensions must be at most {MOST_DIMENSIONS}. hessian_times needs no matrix")

    def _likelihood_curvature(self, at: Array) -> Array:
        """The Hessian without the prior's part."""
        p, n_classes = self.features.shape[1], self._classes
        sums = np.zeros((n_classes, p, n_classes, p))
        for rows, _ in self._parts(None):
            s = softmax(rows @ at.reshape(n_classes, p).T, axis=1)
            for k in range(n_classes):
                for m in range(n_classes):
                    spread = s[:, k] * (float(k == m) - s[:, m])
                    sums[k, :, m] += (rows.T * spread) @ rows
        return sums.reshape(self.dim, self.dim)

    def hessian_times(self, x: Any, vector: Any) -> Array:
        """The Hessian of f at `x` (d,) times `vector` (d,), without the matrix."""
        at = shape("x", points("x", x, self.dim), (self.dim,))
        along = shape("vector", points("vector", vector, self.dim), (self.dim,))
        turned = along.reshape(self._classes, -1).T

        def part(rows: Array, labels: Array, theta: Array) -> Array:
            s, change = softmax(rows @ theta.T, axis=1), rows @ turned
            change = s * (change - (s * change).sum(axis=1, keepdims=True))
            return (change.T @ rows).ravel()

        return self._at_points(None, at, part) + along / self.prior_variance

    @cached_property
    def _mode(self) -> Array:
        """By L-BFGS and Newton's steps, which need no matrix."""
        def across(vector: Array) -> Array:  # without what all classes share, none of which is in the mode
            by_class = vector.reshape(self._classes, -1)
            return (by_class - by_class.mean(axis=0)).ravel()

        found = minimize(lambda x: float(self.potential(None, x)), np.zeros(self.dim), method="L-BFGS-B",
                         jac=lambda x: self.gradient(None, x), options={"maxiter": 5000, "maxfun": 10_000})
        point, gain = across(np.asarray(found.x)), np.inf
        for _ in range(20):  # each step doubles the digits that L-BFGS found
            slope = across(self.gradient(None, point))
            operator = LinearOperator((self.dim,) * 2, matvec=lambda v, at=point: self.hessian_times(at, v))
            step, failed = cg(operator, slope, rtol=1e-8, maxiter=10 * self.dim)
            step = across(step)
            before, gain = gain, float(slope @ step)
            if failed or not gain < 0.25 * before:
                break
            point = across(point - step)
        self._refuse_far(step)
        return locked(point)

    def mode(self) -> Array:
        """The posterior's mode (d,), the minimizer of f: by L-BFGS and Newton's steps without matrices."""
        return self._mode

    def laplace(self, temperature: float = 1.0) -> Gaussian:
        """The normal law at the mode with the posterior's curvature there; an approximation of it.

        The likelihood does not see one vector added to all classes: there the variance is the prior's.

        Raises
        ------
        ValueError
            Naming prior_variance, where the likelihood is so flat that its curvature is lost to rounding.
        """
        positive("temperature", temperature)
        self._refuse_matrices_of_curvature()
        k, variance, eye = self._classes, self.prior_variance, np.eye(self.features.shape[1])
        across = np.kron(helmert(k).T, eye)  # directions in which classes differ
        values, vectors = np.linalg.eigh(across.T @ self._likelihood_curvature(self._mode) @ across)
        values = np.maximum(values, 0.0) + 1.0 / variance
        if not values[0] > RESOLVED * values[-1]:
            raise ValueError(
                f"prior_variance={variance:g} is too vague for these data: the least curvature at the mode "
                f"of the posterior, {values[0]:.2g}, is lost beside the largest, {values[-1]:.2g}; it must "
                f"be more than {RESOLVED:g} of it")
        turned = across @ vectors
        cov = (turned / values) @ turned.T + np.kron(np.full((k, k), variance / k), eye)
        return Gaussian(self._mode, temperature * np.asarray(0.5 * (cov + cov.T)))

    def probabilities(self, x: Any, features: Any) -> Array:
        """P(y = k) for rows of features at points of the parameters.

        Parameters
        ----------
        x : (..., d)
            Points, e.g. of `fedsim.sample_path`.
        features : (m, p)
            In the units of the problem's: `feature_scale` multiplies them too.

        Returns
        -------
        (..., m, C)

        Raises
        ------
        ValueError
            Naming argument and shape.

        Examples
        --------
        >>> problem = fs.SoftmaxRegression([[1.0], [2.0]], [0, 1], [0, 1], prior_variance=1.0)
        >>> problem.probabilities([[0.0, 0.0], [1.0, 0.0]], [[1.0]]).round(3).tolist()
        [[[0.5, 0.5]], [[0.731, 0.269]]]
        """
        rows, at = bytes_or_numbers(features), points("x", x, self.dim)
        shape("features", rows, (len(rows), self.features.shape[1]), " (the problem's number of features)")
        theta = at.reshape(*at.shape[:-1], self._classes, -1)
        scores = self.feature_scale * rows.astype(np.float64) @ np.swapaxes(theta, -1, -2)
        return np.asarray(softmax(scores, axis=-1))

    def _spectrum(self, client: int | None) -> Array:
        self._refuse_matrices(1)
        products = sum(rows.T @ rows for rows, _ in self._parts(client))
        return np.asarray(np.linalg.eigvalsh(products), np.float64)

    @cached_property
    def _data(self) -> Rows:  # type: ignore[override]
        order = np.argsort(self.clients, kind="stable")
        first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
        return Rows(np.ascontiguousarray(self.features[order]), self.labels[order], self.feature_scale, first,
                    self.sizes.astype(np.int64))

    def _model(self) -> SoftmaxModel:
        return SoftmaxModel(self._data, self._classes, 1.0 / self.weights, self.prior_pull)

    def _with_minibatches(self, model: Any, size: int) -> SoftmaxBatch:
        return SoftmaxBatch(model, size, bool(self.replace), self._batch_factors(size))

    def _scratch(self, dim: int, n_lanes: int, dtype: Any) -> SoftmaxScratch:
        longest = int(self.sizes.max())
        return softmax_scratch(dim, n_lanes, dtype, self.batch_size or 0, longest, self._classes)

    def __repr__(self) -> str:
        return (f"SoftmaxRegression(n_clients={self.n_clients}, n_classes={self._classes}, dim={self.dim}, "
                f"{len(self.labels)} data{self._batch_words})")
