"""Quadratic clients with additive Gaussian gradient noise: the posterior is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...equality import ByValue
from ...fingerprints import fields_of, plain
from ...interfaces import ProblemParts
from ...laws.law import Gaussian
from ...laws.law_checks import rounding_of
from ...settings.alignment import aligned, square, together
from ...settings.limits import refuse_bytes
from ...settings.validation import (
    Array,
    array,
    client_weights,
    definite,
    nonnegative,
    points,
    positive,
    set_fields,
    shape,
    symmetric,
    whole,
)
from ...vector.memory import aligned_copy
from ..gradients import with_noise
from .gradients import CoordinateQuadratic, DenseQuadratic, DiagonalQuadratic, NoisyQuadratic, PlaneQuadratic


def _are_covariances(noise: object) -> bool:
    """True for what is no single number."""
    return isinstance(noise, (list, tuple, np.ndarray)) and getattr(noise, "ndim", 3) > 0


def _in_order(hessians: Any, minimizers: Any, weights: Any, noise: Any) -> tuple[Any, Any, Any, Any]:
    """Clients (rows, entries of lists) as in `minimizers`, and so coordinates (columns, both of a matrix)."""
    minimizers, hessians, weights, noise = together(
        0, minimizers=minimizers, hessians=hessians, weights=weights, gradient_noise=noise)
    minimizers, hessians, noise = aligned(
        ("minimizers", minimizers, 1), ("hessians", hessians, 1), ("gradient_noise", noise, 1))
    if isinstance(hessians, (list, tuple)):
        hessians = square("hessians", hessians)
    return hessians, minimizers, weights, square("gradient_noise", noise)


def _semidefinite_factor(cov: Array) -> Array:
    """Lower triangular F with F F' = cov, also for singular cov. Shape (N, d, d)."""
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))[..., None, :]
    return np.ascontiguousarray(np.swapaxes(np.linalg.qr(np.swapaxes(root, -1, -2), mode="r"), -1, -2))


@dataclass(frozen=True, eq=False, repr=False)
class Quadratic(ByValue, ProblemParts):
    """Clients' potentials f_c(x) = (x - b_c)' A_c (x - b_c) / 2, global f = sum_c w_c f_c.

    Parameters
    ----------
    hessians : (N, d, d), or (N, d) diagonal, or (N,) isotropic
        A_c, symmetric positive definite.
    minimizers : (N, d)
        b_c. Of tables with labels the clients and coordinates are paired by them, in this one's order.
    weights : (N,), optional
        w_c, positive, summing to one; uniform by default.
    gradient_noise : None, float or (N, d, d)
        Additive Gaussian noise of every evaluation of grad f_c: standard deviation per coordinate,
        or covariances S_c (positive semidefinite).

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> problem.target().mean, problem.target().cov
    (array([0.75]), array([[0.5]]))
    """

    hessians: Array
    minimizers: Array
    weights: Any = None
    gradient_noise: Any = None
    structure: str = field(init=False, default="dense")
    n_clients: int = field(init=False)
    """Number of clients N."""
    dim: int = field(init=False)
    """Dimension d."""

    if TYPE_CHECKING:  # what is given, where the fields say what is kept

        def __init__(self, hessians: ArrayLike, minimizers: ArrayLike, weights: ArrayLike | None = None,
                     gradient_noise: ArrayLike | None = None) -> None: ...

    def __post_init__(self) -> None:
        hessians, minimizers, weights, noise = _in_order(self.hessians, self.minimizers, self.weights,
                                                         self.gradient_noise)
        hessians = array("hessians", hessians, 1, 2, 3)
        minimizers = array("minimizers", minimizers, 2, advice=(
            "(N, d), one row per client: np.reshape(minimizers, (-1, 1)) in one dimension"))
        n_clients, dim = minimizers.shape
        shape("hessians", hessians, (n_clients, dim, dim)[: hessians.ndim],
              f" to match minimizers of shape {minimizers.shape}")
        if hessians.ndim == 3:
            hessians = symmetric("hessians", hessians)
            values = np.linalg.eigvalsh(hessians)
            # eigenvalues are known to about d eps ||A||: below that a matrix is not seen to be definite
            smallest = np.where(values[:, 0] > 1e-15 * dim * values[:, -1], values[:, 0],
                                np.minimum(values[:, 0], 0.0))
            definite("hessians", smallest)
        else:
            definite("hessians", hessians.reshape(n_clients, -1).min(axis=1))
        if _are_covariances(noise):
            given, noise = noise, symmetric("gradient_noise", shape(
                "gradient_noise", array("gradient_noise", noise, 3), (n_clients, dim, dim)))
            values = np.linalg.eigvalsh(noise)
            slack: Array = np.maximum(1e-12 * np.abs(noise).max(axis=(1, 2)), rounding_of(values, given))
            definite("gradient_noise", values[:, 0] + slack, strictly=False)
        elif noise is not None:
            noise = nonnegative("gradient_noise", noise) or None
            if noise is not None and noise > 1e150:
                raise ValueError(f"gradient_noise={noise:g} must be at most 1e150: its square would overflow")
        set_fields(self, hessians=hessians, minimizers=minimizers, gradient_noise=noise,
                   weights=client_weights(weights, n_clients), n_clients=n_clients, dim=dim,
                   structure={1: "isotropic", 2: "diagonal", 3: "dense"}[hessians.ndim])

    @classmethod
    def from_components(cls, hessians: ArrayLike, minimizers: ArrayLike,
                        gradient_noise: ArrayLike | None = None) -> Quadratic:
        """The decentralized convention f = sum_i f_i, all arguments in units of f_i.

        Stored as weights 1/N, Hessians N A_i, noise standard deviation N sigma or covariance N^2 G_i.

        Parameters
        ----------
        hessians : (N, d, d), (N, d) or (N,)
        minimizers : (N, d)
        gradient_noise : None, float or (N, d, d)
            Noise of an evaluation of grad f_i.
        """
        hessians, minimizers, _, gradient_noise = _in_order(hessians, minimizers, None, gradient_noise)
        components = array("hessians", hessians, 1, 2, 3)
        n_clients = len(components)
        noise: Any = None
        with np.errstate(over="ignore"):  # infinite entries are refused below
            if _are_covariances(gradient_noise):
                noise = n_clients**2 * array("gradient_noise", gradient_noise, 3)
            elif gradient_noise is not None:
                noise = n_clients * nonnegative("gradient_noise", gradient_noise)
            return cls(n_clients * components, minimizers, None, noise)

    @cached_property
    def dense_hessians(self) -> Array:
        """A_c as (N, d, d), whatever was given."""
        if self.structure == "dense":
            return self.hessians
        refuse_bytes(8.0 * (self.n_clients + 1) * self.dim**2, f"dense Hessians of {self!r}", "use what "
                     "keeps them diagonal, or fewer clients or dimensions")
        return self.diagonal_hessians[:, :, None] * np.eye(self.dim)

    @cached_property
    def diagonal_hessians(self) -> Array:
        """Diagonals of A_c as (N, d); only for diagonal and isotropic problems."""
        if self.structure == "dense":
            raise ValueError("hessians are dense; diagonal_hessians exists for (N, d) and (N,) input only")
        full = self.hessians if self.hessians.ndim == 2 else np.repeat(self.hessians[:, None], self.dim, 1)
        return np.ascontiguousarray(full)

    @cached_property
    def noise_covariances(self) -> Array | None:
        """S_c as (N, d, d), or None without gradient noise."""
        if self.gradient_noise is None:
            return None
        if np.ndim(self.gradient_noise) == 0:
            return np.broadcast_to(self.gradient_noise**2 * np.eye(self.dim),
                                   (self.n_clients, self.dim, self.dim))
        return self.gradient_noise

    @cached_property
    def mean_hessian(self) -> Array:
        """sum_c w_c A_c, (d, d), or its diagonal (d,) for diagonal and isotropic problems."""
        tables = self.dense_hessians if self.structure == "dense" else self.diagonal_hessians
        return np.tensordot(self.weights, tables, axes=1)

    @cached_property
    def minimizer(self) -> Array:
        """Global minimizer of f, (d,)."""
        dense, power = self.structure == "dense", np.frexp(np.abs(self.hessians).max())[1]
        # a power of two does not round, and no product leaves the range
        tables = np.ldexp(self.hessians if dense else self.diagonal_hessians, -power)
        mean, how = np.ldexp(self.mean_hessian, -power), "c,cij,cj->i" if dense else "c,ci,ci->i"
        pull = np.einsum(how, self.weights, tables, self.minimizers)
        return np.linalg.solve(mean, pull) if dense else pull / mean

    def target(self, temperature: float = 1.0) -> Gaussian:
        """The law proportional to exp(-f / temperature)."""
        tau = positive("temperature", temperature)
        least = float((np.diagonal(self.mean_hessian) if self.structure == "dense"
                       else self.mean_hessian).min())
        if not least * 1e308 > tau:
            raise ValueError(f"temperature={tau:g} must be less than 1e308 times {least:g}, the least mean "
                             "curvature of hessians: the target's variance would leave the range of float64")
        if self.structure == "dense":
            inverse = np.linalg.inv(self.mean_hessian)
            return Gaussian(self.minimizer, tau * 0.5 * (inverse + inverse.T))
        make = Gaussian._of if np.isfinite(self.minimizer).all() else Gaussian  # which refuses it by name
        return make(self.minimizer, tau / self.mean_hessian)

    def pooled(self) -> Quadratic:
        """f itself as a problem of one client: the same target, and the noise of sum_c w_c grad f_c."""
        noise: Any = self.gradient_noise
        if isinstance(noise, np.ndarray):
            noise = np.einsum("c,cij->ij", self.weights**2, noise)[None]
        elif noise is not None:
            noise = noise * float(np.sqrt((self.weights**2).sum()))
        return Quadratic(self.mean_hessian[None], self.minimizer[None], None, noise)

    def curvature_problem(self) -> Quadratic:
        """The problem that stability is judged on: itself."""
        return self

    def gradient(self, client: int, x: Array) -> Array:
        """Exact grad f_c at points `x` (..., d), in NumPy."""
        client = whole("client", client, 0, self.n_clients - 1)
        difference = points("x", x, self.dim) - self.minimizers[client]
        if self.structure == "dense":
            return difference @ self.hessians[client]
        return difference * self.diagonal_hessians[client]

    def potential(self, client: int | None, x: Any) -> Array:
        """f_c, or f with client=None, at points `x` (..., d), in NumPy."""
        if client is None:
            values = [weight * self.potential(c, x) for c, weight in enumerate(self.weights)]
            return np.asarray(np.sum(values, axis=0))
        slope = self.gradient(client, x)
        return np.asarray(0.5 * (slope * (points("x", x, self.dim) - self.minimizers[client])).sum(axis=-1))

    def _potentials(self, client: int, x: Array) -> Array:
        """As `exact_potential` has them."""
        return self.potential(client, x)

    def _without_potential(self) -> str:
        return ""

    def _definition(self) -> dict[str, Any]:
        """The fields in the one form that all equal problems share; see `fedsim.fingerprints`."""
        noise = self.gradient_noise
        if noise is not None:
            noise = np.full(self.minimizers.shape, noise**2) if np.ndim(noise) == 0 else plain(noise)
        even = np.full(self.n_clients, 1.0 / self.n_clients)  # however they were rounded
        return fields_of(self) | {
            "hessians": plain(self.hessians) if self.structure == "dense" else self.diagonal_hessians,
            "minimizers": self.minimizers + 0.0,
            "weights": even if np.allclose(self.weights, even, rtol=1e-14, atol=0.0) else self.weights,
            "gradient_noise": noise if noise is not None and noise.any() else None}

    def _arrays(self) -> Any:
        """The NamedTuple that compiled code sees."""
        exact: Any
        if self.structure == "dense":
            exact = (PlaneQuadratic if self.dim == 2 else DenseQuadratic)(self.hessians, self.minimizers)
        else:
            exact = DiagonalQuadratic(self.diagonal_hessians, self.minimizers)
        return self._with_noise(exact)

    def _coordinate_arrays(self, n_replicas: int) -> Any:
        """The compiled form with pairs of coordinates as lanes, or None where coordinates mix.

        For even dimension, diagonal Hessians and isotropic noise: then coordinates are independent,
        and long rows of coordinates make a few replicas as fast as many.
        """
        if self.structure == "dense" or self.dim % 2 or np.ndim(self.gradient_noise) > 0:
            return None

        def fold(table: Array) -> Array:
            pairs = table.reshape(self.n_clients, self.dim // 2, 2).transpose(0, 2, 1)
            copies = np.broadcast_to(pairs[..., None], (*pairs.shape, n_replicas))
            return aligned_copy(copies).reshape(self.n_clients, 2, -1)

        return self._with_noise(CoordinateQuadratic(fold(self.diagonal_hessians), fold(self.minimizers)))

    def _coordinates(self, first: int, last: int) -> Quadratic | None:
        """These coordinates as a problem, for compiled code; None where coordinates mix."""
        if self.structure == "dense" or np.ndim(self.gradient_noise) > 0:
            return None
        part = object.__new__(Quadratic)  # what is given was checked, and weights would be rounded again
        set_fields(part, hessians=np.ascontiguousarray(self.diagonal_hessians[:, first:last]),
                   minimizers=np.ascontiguousarray(self.minimizers[:, first:last]), weights=self.weights,
                   gradient_noise=self.gradient_noise, structure="diagonal", n_clients=self.n_clients,
                   dim=last - first)
        return part

    def _with_noise(self, exact: Any) -> Any:
        if np.ndim(self.gradient_noise) == 0:
            return with_noise(exact, self.gradient_noise)
        return NoisyQuadratic(exact, _semidefinite_factor(self.gradient_noise))

    def __repr__(self) -> str:
        noise = self.gradient_noise
        shown = "covariances" if isinstance(noise, np.ndarray) else noise
        return (f"Quadratic(n_clients={self.n_clients}, dim={self.dim}, {self.structure} hessians, "
                f"gradient_noise={shown})")
