"""Data on clients: its checks, and what linear and logistic regression share."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np

from ...equality import ByValue
from ...interfaces import ProblemParts
from ...settings.limits import refuse_bytes
from ...settings.validation import (
    Array,
    array,
    client_weights,
    one_of,
    points,
    positive,
    set_fields,
    shape,
    unmasked,
    whole,
)
from ..quadratic import Quadratic
from .gradients import Data, regression_scratch
from .minibatch import MAX_DATA, Minibatch
from .tile_sums import packed

CONVENTIONS = ("federated", "components", "global")
LARGEST = 1e150
"""Curvatures and slopes beyond it have squares, which laws and limits are made of, that overflow."""


def client_numbers(value: object, n_data: int) -> np.ndarray:
    """Integers 0, ..., N-1 (n,), each of which occurs."""
    numbers = np.asarray(unmasked("clients", value))
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"clients must be an array of integers, got dtype {numbers.dtype}")
    if numbers.shape != (n_data,):
        raise ValueError(f"clients has shape {numbers.shape}; it must be ({n_data},), one per row of "
                         "features")
    low = int(np.argmin(numbers))
    if numbers[low] < 0:
        raise ValueError(f"clients[{low}]={numbers[low]} must be at least 0")
    missing = np.setdiff1d(np.arange(min(int(numbers.max()) + 1, n_data + 1)), numbers)
    if len(missing):
        raise ValueError(f"clients={int(numbers.max())} occurs but client {missing[0]} has no data; clients "
                         "must be numbered 0, ..., N-1 and each must have data")
    numbers = numbers.astype(np.int64)
    numbers.setflags(write=False)
    return numbers


class Batched(ByValue, ProblemParts):
    """What problems share whose gradients may be estimated from minibatches."""

    batch_size: int | None
    replace: bool
    grad_scale: str

    def _check_batches(self) -> bool:
        """Check how minibatches are drawn; True where they are, and `batch_size` is to be checked too."""
        object.__setattr__(self, "replace", bool(one_of("replace", self.replace, (True, False))))
        one_of("grad_scale", self.grad_scale, ("unbiased", "batch_sum"))
        if self.batch_size is None and self.grad_scale != "unbiased":
            raise ValueError(f"grad_scale={self.grad_scale!r} must be 'unbiased' when batch_size=None")
        return self.batch_size is not None

    @property
    def has_minibatches(self) -> bool:
        """True with a `batch_size`."""
        return self.batch_size is not None

    @property
    def _batch_words(self) -> str:
        """The minibatches' part of the readable line."""
        return "" if self.batch_size is None else (
            f", batch_size={self.batch_size}, replace={self.replace}, grad_scale={self.grad_scale!r}")


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
    _targets_name = "targets"
    _unit = 1.0
    """Factor of the sum of `slopes` over data in a gradient."""
    _steepest = 1.0
    """Largest second derivative of the loss in its score."""

    def _normalise(self) -> None:
        """Check and convert the fields; called by ``__post_init__``."""
        features, name = array("features", self.features, 2), self._targets_name
        targets = array(name, getattr(self, name), 1)
        n_data = len(features)
        shape(name, targets, (n_data,), " (one per row of features)")
        clients = client_numbers(self.clients, n_data)
        sizes = np.bincount(clients)
        weights = sizes / n_data if self.weights is None else self.weights
        set_fields(self, features=features, clients=clients, weights=client_weights(weights, len(sizes)),
                   prior_variance=positive("prior_variance", self.prior_variance), **{name: targets})
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
        if self.prior_variance < 1.0 / LARGEST:
            raise ValueError(f"prior_variance={self.prior_variance} must be at least {1.0 / LARGEST:g}: "
                             "squares of its inverse overflow")
        targets = getattr(self, self._targets_name)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", self.features, self.features)
            parts = ((self._steepest * squares, "features", self.features, "curvature"),
                     (np.sqrt(squares) * np.abs(targets), self._targets_name, targets, "slope at 0"),
                     (0.5 * targets**2, self._targets_name, targets, "value at 0"))
            for part, name, values, what in parts:
                bounds = self._unit * np.bincount(self.clients, part) / self.weights
                if (bounds <= LARGEST).all():
                    continue
                client = int(np.argmax(bounds))
                own = np.where(self.clients == client, np.abs(values).T, 0.0).T
                worst = np.unravel_index(int(np.argmax(own)), values.shape)
                index = ", ".join(str(int(i)) for i in worst)
                raise ValueError(f"{name}[{index}]={values[worst]:g} (with weights[{client}]="
                                 f"{self.weights[client]:g}) gives a potential whose {what} is beyond "
                                 f"{LARGEST:g}, where squares overflow; scale {name}")

    def _slopes(self, scores: Array, targets: Array) -> Array:
        """Derivative of the loss in the score x'X_r, in units of `unit`."""
        raise NotImplementedError

    def _losses(self, scores: Array, targets: Array) -> Array:
        """The loss of each datum, in units of `unit`."""
        raise NotImplementedError

    def _model(self) -> Any:
        """Compiled form with full gradients, for minibatches to be drawn from."""
        raise NotImplementedError

    @property
    def n_clients(self) -> int:
        """Number of clients N."""
        return len(self.sizes)

    @property
    def dim(self) -> int:
        """Dimension d, the number of features."""
        return self.features.shape[1]

    def pooled(self) -> Any:
        """f as a problem of one client that holds all data; minibatches are then drawn from all of them."""
        changes: dict[str, Any] = {"clients": np.zeros(len(self.clients), np.int64), "weights": None}
        if self.gradient_noise is not None:
            changes["gradient_noise"] = self.gradient_noise * float(np.sqrt((self.weights**2).sum()))
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of data of each client, (N,)."""
        return np.bincount(self.clients)

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

    def _rows(self, client: int | None) -> tuple[Array, Array, float]:
        """Features, targets and weight of one client, or of all together."""
        if client is None:
            return self.features, getattr(self, self._targets_name), 1.0
        rows = self.clients == whole("client", client, 0, self.n_clients - 1)
        return self.features[rows], getattr(self, self._targets_name)[rows], float(self.weights[client])

    def potential(self, client: int | None, x: Any) -> Array:
        """f_(c), or f with client=None, at points `x` (..., d), in NumPy; without the laws' normalisers."""
        at = points("x", x, self.dim)
        features, targets, weight = self._rows(client)
        share = 1.0 if client is None else 1.0 / self.n_clients
        fit = self._unit * self._losses(at @ features.T, targets).sum(axis=-1)
        return (fit + 0.5 * share / self.prior_variance * (at**2).sum(axis=-1)) / weight

    def gradient(self, client: int | None, x: Any) -> Array:
        """Exact grad f_(c), or grad f with client=None, at points `x` (..., d), in NumPy."""
        at = points("x", x, self.dim)
        features, targets, weight = self._rows(client)
        share = 1.0 if client is None else 1.0 / self.n_clients
        fit = self._unit * self._slopes(at @ features.T, targets) @ features
        return (fit + share / self.prior_variance * at) / weight

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
        low, high = self._component_bounds
        if convention == "federated":
            low, high = low / self.weights, high / self.weights
        if convention == "global":
            self._refuse_matrices(1)
            spectrum = np.linalg.eigvalsh(self.features.T @ self.features)
            low, high = self._bounds(spectrum, 1.0 / self.prior_variance)
        return float(np.min(low)), float(np.max(high))

    def _bounds(self, spectrum: Any, prior: Any, factor: Any = 1.0) -> tuple[Any, Any]:
        """Bounds on the Hessian from the spectrum (.., d) of X'X."""
        high = factor * self._unit * self._steepest * spectrum[..., -1] + prior
        return self._least(factor * self._unit * np.clip(spectrum[..., 0], 0.0, None)) + prior, high

    def _least(self, curvature: Any) -> Any:
        """Least curvature of the losses where those of their squares have this one."""
        raise NotImplementedError

    def _refuse_matrices(self, count: int) -> None:
        """Refuse what has no room for so many (d, d) matrices, and twice that to work with."""
        refuse_bytes(24.0 * count * self.dim**2, f"features with {self.dim} columns: {count} dense matrices "
                     "of curvatures", "use fewer features or clients")

    @cached_property
    def _spectra(self) -> Array:
        self._refuse_matrices(self.n_clients)
        features = [self._rows(client)[0] for client in range(self.n_clients)]
        return np.linalg.eigvalsh(np.array([rows.T @ rows for rows in features]))

    @cached_property
    def _component_bounds(self) -> tuple[Array, Array]:
        return self._bounds(self._spectra, 1.0 / (self.prior_variance * self.n_clients))

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

    def _with_minibatches(self, model: Any) -> Any:
        """The compiled form of gradients estimated from `batch_size` data."""
        assert self.batch_size is not None
        ratio = self.sizes / self.batch_size if self.grad_scale == "unbiased" else 1.0
        return Minibatch(model, self._table, self.batch_size, self.replace, self._unit / self.weights * ratio)

    def _scratch(self, dim: int, n_lanes: int, dtype: Any) -> Any:
        """What a gradient of this problem needs to work in."""
        return regression_scratch(dim, n_lanes, dtype, self.batch_size or 0)

    def curvature_problem(self) -> Quadratic:
        """The quadratic problem that stability is judged on."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(n_clients={self.n_clients}, dim={self.dim}, "
                f"{len(self.features)} data{self._batch_words})")
