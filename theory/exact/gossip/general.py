"""The law of all clients for any Hessians: matrices, in groups of coordinates that do not mix.

The state of group g is (part, client, coordinate), flattened: positions first, then velocities. Dense
Hessians are one group of d coordinates, diagonal ones d groups of one coordinate each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.lazy_import import lazy
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array

from ...float_range import times_squared
from ..affine import AffineMap, Moments, NoExactLaw
from ..evolution import matrix_of, variances_of
from ..tables import symmetrised
from .average_first import AverageFirst, TurnedMap
from .fixed import fixed_positions

csr_array = lazy("scipy.sparse", "csr_array")

SPARSE = 0.1
"""Below this share of nonzero entries W is used as a sparse matrix."""
POWER_SIZE = 2400
"""Up to this size of a state its map is raised to powers as a matrix, else it is stepped."""
ADVICE = ("clients that all have the same Hessian need less; otherwise use covariance='none' for means, "
          "or fewer clients")


class Move(NamedTuple):
    """A step: its size eta, the share beta of velocities kept (None: there are none), and the heat h."""

    size: float
    keep: float | None
    heat: float
    damping: float | None = None

    @property
    def lost(self) -> float:
        """1 - beta, which keeps its digits where the `damping` friction times step size was given."""
        assert self.keep is not None
        return 1.0 - self.keep if self.damping is None else self.damping

    @property
    def parts(self) -> int:
        """1, or 2 with velocities."""
        return 1 if self.keep is None else 2

    @property
    def kicks(self) -> Array:
        """How a client's noise enters its parts, (parts,): x gets eta times the velocity's."""
        return np.array([1.0] if self.keep is None else [self.size, 1.0])


class Components:
    """The components f_i of a quadratic problem, in groups, and the mixing matrix; and the stacked state.

    The state (G, n) has n = parts N e, positions first.

    Attributes
    ----------
    hessians : (G, N, e, e), pulls : (G, N, e), noise : (G, N, e, e) or None
        A_i, A_i b_i and G_i of the f_i = w_i f_(i).
    minimizers : (N, d)
    """

    def __init__(self, problem: Any, mixing: Array, dense: bool) -> None:
        self.clients, self.dim, weights = problem.n_clients, problem.dim, problem.weights
        self.dense, self.minimizers = dense, problem.minimizers
        self.hessians = self._grouped(weights, problem.dense_hessians if dense else problem.diagonal_hessians)
        self.noise = None if problem.gradient_noise is None else self._grouped(
            weights**2, problem.noise_covariances if dense else _variances(problem))
        self.pulls = (self.hessians @ self.spread_out(problem.minimizers)[..., None])[..., 0]
        deviation = mixing - np.eye(len(mixing))
        few = np.count_nonzero(mixing) < SPARSE * mixing.size
        self.mixing: Any = csr_array(deviation) if few else deviation

    @property
    def width(self) -> int:
        """Coordinates e of a group."""
        return self.hessians.shape[-1]

    @property
    def groups(self) -> int:
        """G."""
        return len(self.hessians)

    def pulled(self, x: Array) -> Array:
        """A x for positions (G, N, e, k)."""
        return self.hessians * x if self.width == 1 else self.hessians @ x

    def mixed(self, x: Array) -> Array:
        """((W - I) x I) x for positions (G, N, e, k)."""
        flat = x.reshape(len(x), self.clients, -1)
        if isinstance(self.mixing, np.ndarray):
            return (self.mixing @ flat).reshape(x.shape)
        if len(flat) == 1:  # without a copy
            return np.asarray(self.mixing @ flat[0]).reshape(x.shape)
        return np.stack([self.mixing @ group for group in flat]).reshape(x.shape)

    def spread_out(self, table: Array) -> Array:
        """(..., N, d), or (d,) for all clients, as (..., G, N, e)."""
        each = np.broadcast_to(table, (*table.shape[:-2], self.clients, self.dim))
        return each[..., None, :, :] if self.dense else np.swapaxes(each, -1, -2)[..., None]

    def _grouped(self, weights: Array, table: Array) -> Array:
        """Weighted matrices (N, d, d), or diagonals (N, d), as (G, N, e, e)."""
        if self.dense:
            return (weights[:, None, None] * table)[None]
        return (weights[:, None] * table).T[:, :, None, None]

    def refuse_size(self, size: int, advice: str = ADVICE) -> None:
        """Raise ValueError where covariances of a state of `size` numbers would not fit in memory."""
        what = f"{self.groups} covariances of {self.clients} clients x {self.width} coordinates"
        velocities = " with velocities" if size > self.clients * self.width else ""
        refuse_bytes(40.0 * self.groups * size * size, f"{what}{velocities} and room to work", advice)

    def begin(self, mean: Array, velocities: Array | None, cov: Array | None) -> Moments:
        """Moments of the state for a start (d,) or (N, d), with a covariance common to all clients."""
        state = self.state(mean, velocities)
        if cov is None:
            return state, None
        self.refuse_size(state.shape[1])
        full = np.zeros((*state.shape, state.shape[1]))
        blocks = self.blocks(full)
        if self.dense:
            blocks[0] = matrix_of(cov)[None, :, None]
        else:
            blocks[:, :, 0, :, 0] = variances_of(cov)[:, None, None]
        return state, full

    def state(self, points: Array, velocities: Array | None) -> Array:
        """(..., G, n) of positions (..., N, d), or (d,) for all clients."""
        tables = [self.spread_out(table) for table in (points, velocities) if table is not None]
        state = np.stack(np.broadcast_arrays(*tables), axis=-3)
        return state.reshape(*state.shape[:-3], -1)

    def positions(self, states: Array) -> Array:
        """Positions of the clients in states (..., G, n), (..., N, d)."""
        x = states.reshape(*states.shape[:-1], -1, self.clients, self.width)[..., 0, :, :]
        return x[..., 0, :, :] if self.dense else np.swapaxes(x[..., 0], -1, -2)

    def blocks(self, cov: Array) -> Array:
        """Covariances of positions, (G, N, e, N, e), a view."""
        size = self.clients * self.width
        return cov[:, :size, :size].reshape(self.groups, *(self.clients, self.width) * 2)

    def own(self, cov: Array) -> Array:
        """Covariances of the positions of each client alone, (G, N, e, e)."""
        return np.einsum("gcicj->gcij", self.blocks(cov))

    def views(self, mean: Array, cov: Array | None) -> Moments:
        """Average and clients: means (1 + N, d), covariances (1 + N, d, d) or variances (1 + N, d)."""
        x = self.positions(mean)
        means = np.concatenate([x.mean(axis=0)[None], x])
        if cov is None:
            return means, None
        average = self.blocks(cov).sum(axis=1).sum(axis=2)[:, None] / self.clients**2  # rows of rows: fast
        covs = np.concatenate([average, self.own(cov)], axis=1)
        return means, symmetrised(covs[0]) if self.dense else covs[:, :, 0, 0].T


def _variances(problem: Any) -> Array:
    """Variances (N, d) of the clients' gradient noise."""
    noise = problem.gradient_noise
    if np.ndim(noise) == 0:
        return np.full((problem.n_clients, problem.dim), noise**2)
    return np.diagonal(noise, axis1=1, axis2=2)


@dataclass(frozen=True)
class GossipMap:
    """One step of all clients; moments are (G, n) and (G, n, n) with n = parts N e."""

    components: Components
    move: Move

    @property
    def size(self) -> int:
        """n."""
        return self.move.parts * self.components.clients * self.components.width

    def _split(self, table: Array) -> Array:
        """(G, n, ...) as (G, parts, N, e, ...)."""
        c = self.components
        return table.reshape(c.groups, self.move.parts, c.clients, c.width, *table.shape[2:])

    def deviate(self, columns: Array) -> Array:
        """(M - I) times columns (G, n, k)."""
        state, eta, c = self._split(columns), self.move.size, self.components
        x = state[:, 0]
        if self.move.keep is None:
            pulled = c.pulled(x)
            pulled *= -eta
            pulled += c.mixed(x)
            return pulled.reshape(columns.shape)
        made = np.empty_like(state)
        made[:, 1] = -self.move.lost * state[:, 1] - eta * c.pulled(x)
        made[:, 0] = c.mixed(x) + eta * (state[:, 1] + made[:, 1])
        return made.reshape(columns.shape)

    @cached_property
    def shift(self) -> Array:
        """(G, n)."""
        pull = self.move.size * self.components.pulls
        both = self.move.kicks[:, None, None] * pull[:, None]
        return both.reshape(self.components.groups, self.size)

    def noises(self, mean: Array, cov: Array) -> Array:
        """D_i of every client at a state with these moments, (G, N, e, e)."""
        c, move = self.components, self.move
        heat = np.broadcast_to(move.heat * np.eye(c.width), (c.groups, c.clients, c.width, c.width))
        return heat if c.noise is None else heat + times_squared(move.size, c.noise)

    def add_noise(self, cov: Array, noises: Array) -> None:
        """Add Q, of the clients' own `noises` (G, N, e, e), to a covariance in place."""
        c, kicks = self.components, self.move.kicks
        each = np.arange(c.clients)
        blocks = cov.reshape(c.groups, len(kicks), c.clients, c.width, len(kicks), c.clients, c.width)
        own = noises.transpose(1, 0, 2, 3)
        for a, one in enumerate(kicks):
            for b, other in enumerate(kicks):
                blocks[:, a, each, :, b, each, :] += one * other * own

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments one step later; `cov` None follows the mean alone."""
        after = mean + (self.deviate(mean[..., None])[..., 0] + self.shift)
        if cov is None:
            return after, None
        half = self.deviate(cov)
        half += cov
        turned = np.ascontiguousarray(half.swapaxes(1, 2))
        turned += self.deviate(turned)
        self.add_noise(turned, self.noises(mean, cov))
        return after, turned

    @property
    def noise(self) -> Array:
        """Q, (G, n, n)."""
        noise = np.zeros((self.components.groups, self.size, self.size))
        self.add_noise(noise, self.noises(self.shift, noise))
        return noise

    @property
    def deviation(self) -> Array:
        """M - I, (G, n, n)."""
        shape = (self.components.groups, self.size, self.size)
        return self.deviate(np.broadcast_to(np.eye(self.size), shape))

    def dense(self) -> AffineMap:
        """The same as matrices, for draws of many steps at once."""
        return AffineMap(self.deviation, self.shift, self.noise)

    @cached_property
    def turned(self) -> TurnedMap:
        """The same as matrices, in coordinates in which slow contraction keeps its digits."""
        coordinates: Any = AverageFirst(self.components)
        other = GossipMap(coordinates, self.move)
        return TurnedMap(coordinates, AffineMap(other.deviation, other.shift,
                                                coordinates.covariance(self.noise)))

    def squared(self) -> TurnedMap:
        """Two steps."""
        return self.turned.squared()

    def fixed_mean(self) -> Array:
        """Solution of m = M m + v: (I - W + a A) x = a A b, velocities (W - I) x / eta."""
        c, move = self.components, self.move
        rate = move.size if move.keep is None else move.size * move.size / move.lost
        positions = np.stack([fixed_positions(c, rate, group) for group in range(c.groups)])
        if move.keep is None:
            return positions.reshape(c.groups, -1)
        velocities = -c.mixed(positions[..., None])[..., 0] / move.size
        return np.stack([positions, velocities], axis=1).reshape(c.groups, -1)

    def lyapunov(self) -> Callable[[Array], Array]:
        """Solver of S = M S M' + Q."""
        return self.turned.lyapunov(symmetric=self.move.keep is None)

    def stationary(self) -> tuple[Array, Array]:
        """Fixed moments; the caller has checked that the map contracts."""
        return self.fixed_mean(), self.lyapunov()(self.noise)

    def power(self, rounds: np.ndarray) -> Any:
        """What `affine.evolve` should be given: this map, or a function to step with where it is large."""
        gaps = np.diff(rounds)
        if not len(gaps) or gaps.max() == 1 or self.size <= POWER_SIZE:
            return self
        if rounds[-1] > 200_000:
            raise NoExactLaw(f"n_rounds={rounds[-1]} of {self.size} numbers per coordinate group would be "
                             "stepped through one by one; ask for fewer rounds, or use stationary_law")
        return lambda number: self
