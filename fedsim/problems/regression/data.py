"""Data on clients: its checks, and what linear and logistic regression share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ...laws.law import Gaussian, NoTarget
from ...settings.limits import refuse_bytes
from ...settings.validation import (
    Array,
    array,
    client_weights,
    entry_of,
    locked,
    nonnegative,
    one_of,
    points,
    positive,
    set_fields,
    shape,
    whole,
)
from ..gradients import with_noise
from ..quadratic import Quadratic
from .batched import Batched, client_numbers, in_order
from .gradients import Data, regression_scratch
from .minibatch import MAX_DATA, Minibatch
from .tile_sums import packed

CONVENTIONS = ("federated", "components", "global")
CLOSE = 1e-6
"""Newton's steps that move no score by more have found the mode."""
LARGEST = 1e150
"""Curvatures and slopes beyond it have squares, which laws and limits are made of, that overflow."""


class Regression(Batched):
    """Clients that hold rows of data and follow f_(c) = f_c / w_c.

    f_c = sum over the client's rows of loss(x'X_r, y_r) + |x|^2 / (2 lambda N), lambda = `prior_variance`, so
    that f = sum_c w_c f_(c) is minus the log posterior whatever the weights.
    """

    features: Array
    clients: np.ndarray
    prior_variance: float
    weights: Any
    gradient_noise: float | None = None
    sizes: np.ndarray
    """Number of data of each client, (N,)."""
    n_clients: int
    """Number of clients N."""
    dim: int
    """Dimension d."""
    _targets_name = "targets"
    _classes = 1
    """Parameters of a feature, one for each class."""
    _unit = 1.0
    """Factor of the sum of `slopes` over data in a gradient."""
    _steepest = 1.0
    """Largest second derivative of the loss in its score."""

    def _normalise(self) -> None:
        """Check and convert the fields; called by ``__post_init__``."""
        targets = array(self._targets_name, in_order(self), 1)
        self._set_data(array("features", self.features, 2), targets)

    def _set_data(self, features: Array, targets: Array) -> None:
        """Check the fields, of which these two are converted already, and set them."""
        name, n_data = self._targets_name, len(features)
        shape(name, targets, (n_data,), " (one per row of features)")
        clients = client_numbers(self.clients, n_data)
        sizes = locked(np.bincount(clients))
        weights = sizes / n_data if self.weights is None else self.weights
        set_fields(self, features=features, clients=clients, weights=client_weights(weights, len(sizes)),
                   prior_variance=positive("prior_variance", self.prior_variance), **{name: targets},
                   sizes=sizes, n_clients=len(sizes), dim=self._classes * features.shape[1])
        if self.prior_variance < 1.0 / LARGEST:
            raise ValueError(f"prior_variance={self.prior_variance} must be at least {1.0 / LARGEST:g}: "
                             "squares of its inverse overflow")
        if self.gradient_noise is not None:
            set_fields(self, gradient_noise=nonnegative("gradient_noise", self.gradient_noise) or None)
        if not self._check_batches():
            return
        size, least = whole("batch_size", self.batch_size, 1), int(np.argmin(sizes))
        if size > sizes[least]:
            raise ValueError(f"batch_size={size} must be at most {sizes[least]}, the number of data of "
                             f"client {least}")
        if sizes.max() > MAX_DATA:
            raise ValueError(f"clients: client {int(np.argmax(sizes))} has {sizes.max()} data; with a "
                             f"batch_size it must have at most {MAX_DATA} (the random streams' numbers)")
        set_fields(self, batch_size=size)

    def _refuse_overflow(self) -> None:
        """Refuse numbers each of which has a float64, and whose gradients and curvatures have none."""
        targets = getattr(self, self._targets_name)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", self.features, self.features)
            self._refuse_beyond(self._steepest * squares, "features", self.features, "curvature")
            self._refuse_beyond(np.sqrt(squares) * np.abs(targets), self._targets_name, targets, "slope at 0")
            self._refuse_beyond(0.5 * targets**2, self._targets_name, targets, "value at 0")

    def _refuse_beyond(self, parts: Array, name: str, values: Array, what: str) -> None:
        """Refuse `values` whose `parts` of a potential (n,) sum to too much for a client."""
        bounds = self._unit * np.bincount(self.clients, parts) / self.weights
        if (bounds <= LARGEST).all():
            return
        client = int(np.argmax(bounds))
        own = np.where(self.clients == client, np.abs(values).T, 0.0).T
        worst = np.unravel_index(int(np.argmax(own)), values.shape)
        raise ValueError(f"{entry_of(name, worst)}={values[worst]:g} (with weights[{client}]="
                         f"{self.weights[client]:g}) gives a potential whose {what} is beyond "
                         f"{LARGEST:g}, where squares overflow; scale {name}")

    def _moves(self, step: Any) -> float:
        """By how much a step of Newton's moves a score x'X_r at most."""
        by_class = step.reshape(-1, self.features.shape[1]).T
        return max(float(np.abs(rows @ by_class).max()) for rows, _ in self._parts(None))

    def _refuse_far(self, step: Any) -> None:
        """Refuse a mode that was not found: the last of Newton's steps still moved a score."""
        far = self._moves(step)
        if not far < CLOSE:
            raise ValueError(f"prior_variance={self.prior_variance:g} is too vague for these data: the mode "
                             f"is not found, the last step moves a score by {far:.2g}; it must be less than "
                             f"{CLOSE:g}. Where features separate the labels, only the prior holds it back")

    def _parts(self, client: int | None) -> Iterator[tuple[Array, Array]]:
        """Features and targets of the rows of one client or of all, in parts that memory can hold."""
        yield self._rows(client)

    def _slopes(self, scores: Array, targets: Array) -> Array:
        """Derivative of the loss in the score x'X_r, in units of `unit`."""
        raise NotImplementedError

    def _losses(self, scores: Array, targets: Array) -> Array:
        """The loss of each datum, in units of `unit`."""
        raise NotImplementedError

    def _model(self) -> Any:
        """Compiled form with full gradients, for minibatches to be drawn from."""
        raise NotImplementedError

    def pooled(self) -> Any:
        """f as a problem of one client that holds all data; minibatches are then drawn from all of them."""
        changes: dict[str, Any] = {"clients": np.zeros(len(self.clients), np.int64), "weights": None}
        if self.gradient_noise is not None:
            changes["gradient_noise"] = self.gradient_noise * float(np.sqrt((self.weights**2).sum()))
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    @cached_property
    def _data(self) -> Data:
        """The data sorted by client, as compiled code sees it."""
        order = np.argsort(self.clients, kind="stable")
        first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
        return Data(np.ascontiguousarray(self.features[order].T), getattr(self, self._targets_name)[order],
                    first, self.sizes.astype(np.int64))

    @cached_property
    def _table(self) -> Array:
        """The same data as minibatches are summed from."""
        return packed(self._data.columns, self._data.targets)

    @property
    def prior_pull(self) -> Array:
        """Factors (N,) of x in the prior's part of grad f_(c): 1 / (lambda N w_c)."""
        return 1.0 / (self.prior_variance * self.n_clients * self.weights)

    def _rows(self, client: int | None) -> tuple[Array, Array]:
        """Features and targets of one client, or of all together."""
        targets = getattr(self, self._targets_name)
        if client is None:
            return self.features, targets
        rows = self.clients == whole("client", client, 0, self.n_clients - 1)
        return self.features[rows], targets[rows]

    def potential(self, client: int | None, x: Any) -> Array:
        """f_(c), or f with client=None, at points `x` (..., d), in NumPy; without the laws' normalisers."""
        at, (features, targets) = points("x", x, self.dim), self._rows(client)
        fit = self._unit * self._losses(at @ features.T, targets).sum(axis=-1)
        return self._posterior(client, fit, 0.5 * (at**2).sum(axis=-1))

    def _potentials(self, client: int, x: Array) -> Array:
        """As `exact_potential` has them."""
        return self.potential(client, x)

    def _without_potential(self) -> str:
        return ""

    def gradient(self, client: int | None, x: Any) -> Array:
        """Exact grad f_(c), or grad f with client=None, at points `x` (..., d), in NumPy."""
        at, (features, targets) = points("x", x, self.dim), self._rows(client)
        return self._posterior(client, self._unit * self._slopes(at @ features.T, targets) @ features, at)

    def _posterior(self, client: int | None, fit: Array, prior: Array) -> Array:
        """The likelihood's part and the prior's, of f_(c) or f."""
        weight, share = (1.0, 1.0) if client is None else (self.weights[int(client)], 1.0 / self.n_clients)
        return (fit + share / self.prior_variance * prior) / weight

    def target(self, temperature: float = 1.0) -> Gaussian:
        """Always raises: the posterior has no closed form."""
        raise NoTarget(f"problem={self!r}: the posterior has no closed form, so there is no target law; "
                       "use problem.laplace() for an approximation, or a reference sample")

    def curvature_bounds(self, convention: str = "federated") -> tuple[float, float]:
        """Strong convexity and smoothness of the potentials that an algorithm follows.

        Parameters
        ----------
        convention : "federated", "components" or "global"
            Of the f_(c) = f_c / w_c; of the components f_c; or of f. The least and the largest over clients.

        Source: DE-SGLD appendix E. It prints 2 max_i sum_j |X_j|^2 for the largest eigenvalue of
        X_i'X_i, which belongs to losses without the factor 1/2 and bounds an eigenvalue by a trace.
        """
        one_of("convention", convention, CONVENTIONS)
        if convention == "global":
            low, high = self._bounds(self._spectrum(None), 1.0 / self.prior_variance)
        else:
            low, high = self._bounds(self._spectra, 1.0 / (self.prior_variance * self.n_clients))
        if convention == "federated":
            low, high = low / self.weights, high / self.weights
        return float(np.min(low)), float(np.max(high))

    def _bounds(self, spectrum: Any, prior: Any, factor: Any = 1.0) -> tuple[Any, Any]:
        """Bounds on the Hessian from the spectrum (.., d) of X'X."""
        high = factor * self._unit * self._steepest * spectrum[..., -1] + prior
        return self._least(factor * self._unit * np.clip(spectrum[..., 0], 0.0, None)) + prior, high

    def _least(self, curvature: Any) -> Any:
        """Least curvature of the losses where those of their squares have this one: none, far out."""
        return 0.0 * curvature

    def _refuse_matrices(self, count: int) -> None:
        """Refuse what has no room for so many matrices over features, and twice that to work with."""
        columns = self.features.shape[1]
        refuse_bytes(24.0 * count * columns**2, f"features with {columns} columns: {count} dense matrices "
                     "of curvatures", "use fewer features or clients")

    def _spectrum(self, client: int | None) -> Array:
        """Eigenvalues of X'X of one client's data, or of all."""
        self._refuse_matrices(1)
        features, _ = self._rows(client)
        return np.asarray(np.linalg.eigvalsh(features.T @ features), np.float64)

    @cached_property
    def _spectra(self) -> Array:
        """Least and largest of them of every client, (N, 2)."""
        return np.array([self._spectrum(client)[[0, -1]] for client in range(self.n_clients)])

    @property
    def strong_convexity(self) -> float:
        """Of the f_(c); see `curvature_bounds` for other conventions."""
        return self.curvature_bounds()[0]

    @property
    def smoothness(self) -> float:
        """Of the f_(c); see `curvature_bounds` for other conventions."""
        return self.curvature_bounds()[1]

    @property
    def followed_share(self) -> Array:
        """Share (N,) of the likelihood in the mean gradient: 1, or b/n_c with grad_scale="batch_sum"."""
        if self.batch_size is None or self.grad_scale == "unbiased":
            return np.ones(self.n_clients)
        return self.batch_size / self.sizes

    def _with_minibatches(self, model: Any, size: int) -> Any:
        """The compiled form of gradients estimated from so many data."""
        return Minibatch(model, self._table, size, self.replace, self._batch_factors(size))

    def _batch_factors(self, size: int) -> Array:
        """Factors (N,) of a minibatch's sum in its gradient."""
        ratio = self.sizes / size if self.grad_scale == "unbiased" else 1.0
        return self._unit / self.weights * ratio

    def _scratch(self, dim: int, n_lanes: int, dtype: Any) -> Any:
        """What a gradient of this problem needs to work in."""
        return regression_scratch(dim, n_lanes, dtype, self.batch_size or 0)

    def _arrays(self) -> Any:
        """The NamedTuple that compiled code sees."""
        model, size = self._model(), self.batch_size
        return with_noise(model if size is None else self._with_minibatches(model, size), self.gradient_noise)

    def curvature_problem(self) -> Quadratic:
        """Clients of constant curvature: the largest that any Hessian of a mean gradient can have."""
        prior = 1.0 / (self.prior_variance * self.n_clients)
        _, high = self._bounds(self._spectra, prior, self.followed_share)
        largest = float((high / self.weights).max())
        return Quadratic(np.full(self.n_clients, largest), np.zeros((self.n_clients, self.dim)), self.weights)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(n_clients={self.n_clients}, dim={self.dim}, "
                f"{len(self.features)} data{self._batch_words})")
