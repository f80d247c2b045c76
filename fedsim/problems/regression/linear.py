"""Bayesian linear regression on clients: quadratic potentials, with minibatches as gradient noise."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...laws.law import Gaussian
from ...settings.validation import Array, positive, set_fields
from ..quadratic import Quadratic
from .data import LARGEST, Regression
from .gradients import LinearModel


@dataclass(frozen=True, eq=False, repr=False)
class LinearRegression(Regression):
    """Normal errors of variance xi^2 and a normal prior of variance lambda per coefficient.

    Component of client c: f_c(x) = |y_c - X_c x|^2 / (2 xi^2) + |x|^2 / (2 lambda N). Federated algorithms
    follow f_(c) = f_c / w_c, decentralized ones f_c itself.

    Parameters
    ----------
    features : (n, d)
    targets : (n,)
    clients : (n,) integers
        Who holds each row; numbered 0, ..., N-1, each with data. Rows of pandas are paired by their labels,
        in the order of `features`; of arrays and lists by position.
    noise_std : float
        xi, standard deviation of an error, in units of `targets`.
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
        posterior with b data a client, not of `target`.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Notes
    -----
    Without `batch_size` gradients are those of `as_quadratic`, computed from X_c'X_c. The noise of
    minibatches grows with the distance and makes the stability limit of the second moment smaller than the
    mean's; federated (without debiasing) and decentralized algorithms judge it by `batch_response`.

    Source: DE-SGLD section 5.1, with the factors 1 / (2 xi^2) that its density has and its f_i lacks, and
    with the sign and the factor X_j that its stochastic gradient lacks.

    Examples
    --------
    >>> problem = fs.LinearRegression([[1.0], [2.0]], [1.0, 2.0], [0, 1], noise_std=1.0, prior_variance=1.0)
    >>> problem.target().mean.round(12).tolist(), problem.target().cov.round(12).tolist()
    ([0.833333333333], [[0.166666666667]])
    """

    features: Array
    targets: Array
    clients: Any
    _: KW_ONLY
    noise_std: float
    prior_variance: float
    weights: Any = None
    batch_size: int | None = None
    replace: bool = True
    grad_scale: str = "unbiased"

    if TYPE_CHECKING:  # what is given, where the fields say what is kept

        def __init__(self, features: ArrayLike, targets: ArrayLike, clients: ArrayLike, *, noise_std: float,
                     prior_variance: float, weights: ArrayLike | None = None, batch_size: int | None = None,
                     replace: bool = True, grad_scale: str = "unbiased") -> None: ...

    def __post_init__(self) -> None:
        self._normalise()
        noise = positive("noise_std", self.noise_std)
        if not LARGEST**-0.5 <= noise <= LARGEST**0.5:
            raise ValueError(f"noise_std={self.noise_std} must lie in [{LARGEST**-0.5:g}, {LARGEST**0.5:g}]: "
                             "squares of its powers overflow")
        set_fields(self, noise_std=noise)
        self._refuse_overflow()

    @property
    def _unit(self) -> float:  # type: ignore[override]
        """1 / xi^2."""
        return 1.0 / self.noise_std**2

    def _losses(self, scores: Array, targets: Array) -> Array:
        """(x'X_r - y_r)^2 / 2."""
        return 0.5 * (scores - targets) ** 2

    def _slopes(self, scores: Array, targets: Array) -> Array:
        """x'X_r - y_r."""
        return scores - targets

    def _least(self, curvature: Any) -> Any:
        return curvature

    def _quadratic(self, share: Array) -> Quadratic:
        """Quadratic clients with this share (N,) of the likelihood."""
        self._refuse_matrices(2 * self.n_clients)
        precisions = np.empty((self.n_clients, self.dim, self.dim))
        pulls = np.empty((self.n_clients, self.dim))
        prior = np.eye(self.dim) / (self.prior_variance * self.n_clients)
        for c in range(self.n_clients):
            features, targets = self._rows(c)
            precisions[c] = share[c] * self._unit * (features.T @ features) + prior
            pulls[c] = share[c] * self._unit * (features.T @ targets)
        minimizers = np.asarray(np.linalg.solve(precisions, pulls[..., None])[..., 0], dtype=np.float64)
        return Quadratic(precisions / self.weights[:, None, None], minimizers, self.weights)

    @cached_property
    def _full(self) -> Quadratic:
        return self._quadratic(np.ones(self.n_clients))

    @cached_property
    def _followed(self) -> Quadratic:
        return self._quadratic(self.followed_share)

    def as_quadratic(self) -> Quadratic:
        """The quadratic problem with the same potentials f_(c) and weights, and exact gradients."""
        return self._full

    def curvature_problem(self) -> Quadratic:
        """The quadratic problem whose gradients are the means of this problem's; see Notes."""
        return self._followed

    @property
    def response_work(self) -> float | None:
        """Operations that `batch_response` takes, n d^4; None without `batch_size`."""
        return float(len(self.features)) * self.dim**4 if self.has_minibatches else None

    def batch_response(self) -> Array | None:
        """How the noise of a stochastic gradient of f_(c) grows with the distance, (N, d^2, d^2).

        For x with covariance B the covariance of the noise has the part (table of c) B.ravel() that is linear
        in B; with moments m and B it is the noise at x = m besides. None without `batch_size`.

        With g_r = X_r (X_r'x - y_r), r = 1, ..., n_c, the noise has covariance
        u [sum_r g_r g_r' - (sum_r g_r)(sum_r g_r)' / n_c], u = k b s^2 / (n_c xi^4 w_c^2), where s is n_c / b
        (1 for "batch_sum") and k is 1 with replacement, else (n_c - b) / (n_c - 1).
        """
        return None if self.batch_size is None else self._batch_response

    @cached_property
    def _batch_response(self) -> Array:
        b, dim = self.batch_size or 0, self.dim
        tables = np.empty((self.n_clients, dim * dim, dim * dim))
        for c, n in enumerate(self.sizes):
            features, _ = self._rows(c)
            scale = (n / b if self.grad_scale == "unbiased" else 1.0) * self._unit / self.weights[c]
            finite = 1.0 if self.replace else (n - b) / max(n - 1, 1)
            products = (features[:, :, None] * features[:, None, :]).reshape(n, dim * dim)
            gram = features.T @ features
            tables[c] = finite * b / n * scale**2 * (products.T @ products - np.kron(gram, gram) / n)
        return tables

    def target(self, temperature: float = 1.0) -> Gaussian:
        """The posterior, tempered: proportional to exp(-f / temperature)."""
        return self._full.target(temperature)

    def _model(self) -> LinearModel:
        """The data, and the quadratic form of the full gradients."""
        return LinearModel(self._data, self.prior_pull, self._full._arrays())

    def _potentials(self, client: int, x: Array) -> Array:
        """As `exact_potential` has them, which is of the quadratic."""
        return self._full.potential(client, x)

    def _arrays(self) -> Any:
        """The NamedTuple that compiled code sees."""
        return self._full._arrays() if self.batch_size is None else super()._arrays()
