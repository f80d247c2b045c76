"""What decentralized algorithms share: every client keeps its own state and gossips synchronously.

A round is one iteration. All clients read the old states of their neighbours, and their gradients
are taken at their own old point. They follow the components f_i = w_i f_(i).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from ..interfaces import Problem, offers
from ..problems.gradients import stochastic_gradient
from ..problems.quadratic import Quadratic
from ..random.normals import draw, steps_per_draw
from ..random.slots import NormalRoom, Normals, Numbers, normal_room
from ..random.streams import OWN_NOISE
from ..settings.network import check_mixing, smallest_eigenvalue
from ..settings.validation import Array, set_fields, whole
from ..stability.minibatch import Judged, gossip_second_moment, only_limit
from ..stability.own_blocks import SymmetricGossip
from ..stability.search import Radius, first_limit, symmetric_extremes
from ..vector import lanes
from ..vector.compile import dispatched, inner
from ..vector.memory import aligned
from .bodies import observe


class Gossip(NamedTuple):
    """A sparse mixing matrix: row i has neighbours columns[first[i]:first[i+1]] with these weights."""

    first: Any
    columns: Any
    weights: Array


class DecentralizedWork(NamedTuple):
    """State of a block of B lanes: positions (2, N, d, B), the old ones at ``turn[0]``."""

    positions: Array
    velocities: Array
    turn: Any
    own: NormalRoom
    gradient: Array
    scratch: Any


@dispatched
def client_update(kernel: Any, work: Any, step: int, client: int, weight: float, own: Normals,
                  new: Any) -> None:
    """Add gradient and noise to `new` (d, B), which holds the mixed positions of the neighbours.

    ``work.gradient`` is the client's gradient of f_(i) at its old point, `weight` its w_i; `own` are its
    normals.
    """


@inner
def mix(first, columns, weights, rows, base, width, new):
    """new = sum_j W_ij x_j for rows x_j = rows[base + width j]; entries of W_i from first[0] to first[1]."""
    start, end = first[0], first[1]
    for i in range(new.shape[0]):
        if end - start == 3:  # a ring or a path: one pass
            lanes.mix_three(new[i], weights[start], rows[base + width * columns[start], i],
                            weights[start + 1], rows[base + width * columns[start + 1], i],
                            weights[start + 2], rows[base + width * columns[start + 2], i])
            continue
        if end == start:
            lanes.fill(new[i], 0.0)
            continue
        lanes.scale(new[i], weights[start], rows[base + width * columns[start], i])
        whole = start + 1 + (end - start - 1) // 2 * 2
        for k in range(start + 1, whole, 2):
            lanes.axpy_pair(new[i], weights[k], rows[base + width * columns[k], i],
                            weights[k + 1], rows[base + width * columns[k + 1], i])
        if whole < end:
            lanes.axpy(new[i], weights[whole], rows[base + width * columns[whole], i])


def gossip_round(kernel, problem, lane_set, work, round):
    """Body of `advance` for decentralized algorithms: one iteration of every client."""
    turn, dim = work.turn[0], work.gradient.shape[0]
    per_draw = work.own.rows.shape[1] // dim
    for client in range(work.positions.shape[1]):
        x, new = work.positions[turn, client], work.positions[1 - turn, client]
        own = draw(lane_set, work.own, OWN_NOISE, round // per_draw, Numbers(client), client, round, dim,
                   round % per_draw == 0)
        stochastic_gradient(problem, lane_set, client, round, 0, x, work.scratch, work.gradient)
        mix(kernel.gossip.first[client:client + 2], kernel.gossip.columns, kernel.gossip.weights,
            work.positions[turn], 0, 1, new)
        client_update(kernel, work, round, client, kernel.weights[client], own, new)
    work.turn[0] = 1 - turn


@observe.register(DecentralizedWork)
def _observe(work, view, out):
    turn, n_clients = work.turn[0], work.positions.shape[1]
    for i in range(out.shape[0]):
        if view > 0:
            lanes.copy(out[i], work.positions[turn, view - 1, i])
        else:
            lanes.scale(out[i], 1.0 / n_clients, work.positions[turn, 0, i])
            for client in range(1, n_clients):
                lanes.axpy(out[i], 1.0 / n_clients, work.positions[turn, client, i])


COMMON = {"eta": "step_size", "lr": "step_size", "learning_rate": "step_size", "h": "step_size"}
NETWORK = {"W": "mixing", "network": "mixing", "graph": "mixing=fs.network.metropolis(graph)",
           "mixing": "a mixing matrix (N, N), as fs.network.ring(n) makes it of n clients"}
"""Other names of arguments, and what to write for them."""


class Decentralized(ByValue, Judged):
    """Base of the decentralized algorithms' parameter classes."""

    convention = "components"
    mixing: Array
    friction: float | None
    n_clients: int
    """Number of clients that the mixing matrix connects."""

    def __post_init__(self) -> None:
        self._normalise_step()
        mixing = check_mixing(self.mixing)
        set_fields(self, mixing=mixing, n_clients=len(mixing))

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless this algorithm can run on this problem."""
        offers("problem", problem, Problem)
        if problem.n_clients != self.n_clients:
            raise ValueError(f"mixing has shape {self.mixing.shape}; it must be "
                             f"{(problem.n_clients, problem.n_clients)} for the problem's clients")

    def _clients_differ(self, problem: Problem) -> bool:
        """True: each has a state, a start and a law of its own."""
        return True

    def _separates(self, problem: Problem) -> bool:
        """True: a step treats each coordinate alone, given a problem that does."""
        return True

    def _second_moment(self, problem: Problem) -> tuple[Radius | None, str]:
        return gossip_second_moment(problem, self.mixing, self.friction)

    def _is_stable(self, problem: Problem) -> bool:
        """Whether `_radius` is below one; of a second moment that may be seen before the radius is known."""
        self.check(problem)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            second, _ = self._second_moment(problem)
            if isinstance(second, SymmetricGossip):  # the mean's map is in it
                return second.is_stable(self.schedule.largest)
        return super()._is_stable(problem)

    def _limit(self, radius: Radius, high: float) -> float:
        return only_limit(radius.crossing, high) if isinstance(radius, SymmetricGossip) else first_limit(
            radius, high)

    def costs(self, problem: Problem, n_rounds: int) -> dict[str, int]:
        """What one replica of `n_rounds` costs; a number is sent along every edge in both directions."""
        offers("problem", problem, Problem)
        n_rounds = whole("n_rounds", n_rounds)
        links = int(np.count_nonzero(self.mixing)) - self.n_clients
        return {"communications": n_rounds, "gradient_evaluations": n_rounds * self.n_clients,
                "floats_sent": n_rounds * problem.dim * links}

    def _gossip(self) -> Gossip:
        """The mixing matrix as compiled code sees it: only its nonzero entries."""
        rows, columns = np.nonzero(self.mixing)
        first = np.searchsorted(rows, np.arange(self.n_clients + 1)).astype(np.int64)
        return Gossip(first, columns.astype(np.int64), self.mixing[rows, columns])

    def _start_velocity_rows(self, problem: Problem, dim: int, n_lanes: int) -> Array:
        """Velocities at the start (N, d, B); empty for algorithms without any."""
        return aligned((0, dim, n_lanes))

    def _workspace(self, problem: Problem, start: Array, dtype: Any) -> DecentralizedWork:
        """Room for one block, beginning at `start`: (d, B), or (N, d, B) with a start per client."""
        dim, n_lanes = start.shape[-2:]
        per_draw = steps_per_draw(dim, dtype)
        positions = aligned((2, self.n_clients, dim, n_lanes))
        positions[0] = start
        return DecentralizedWork(
            positions=positions, velocities=self._start_velocity_rows(problem, dim, n_lanes),
            turn=np.zeros(1, np.int64),
            own=normal_room(self.n_clients, per_draw * dim, n_lanes, dtype, keep=per_draw > 1),
            gradient=aligned((dim, n_lanes)), scratch=problem._scratch(dim, n_lanes, dtype))


def component_product(problem: Quadratic, columns: Array) -> Array:
    """blkdiag(w_i A_i) times columns (N d, k), in the problem's own structure."""
    blocks = columns.reshape(problem.n_clients, problem.dim, -1)
    scale = problem.weights[:, None, None]
    if problem.structure != "dense":
        return (scale * problem.diagonal_hessians[:, :, None] * blocks).reshape(columns.shape)
    return (scale * (problem.hessians @ blocks)).reshape(columns.shape)


def mixed(mixing: Any, columns: Array) -> Array:
    """(W x I) times columns (N d, k)."""
    return (mixing @ columns.reshape(mixing.shape[0], -1)).reshape(columns.shape)


def shared_curvatures(problem: Quadratic) -> Array | None:
    """Eigenvalues of the components' common Hessian, or None where they differ."""
    tables = problem.hessians.reshape(problem.n_clients, -1) * problem.weights[:, None]
    if np.ptp(tables, axis=0).max() > 1e-14 * np.abs(tables).max():
        return None
    if problem.structure == "dense":
        return np.linalg.eigvalsh(problem.hessians[0]) * problem.weights[0]
    return tables[0]


def coordinate_curvatures(problem: Quadratic) -> Array:
    """Curvatures (c, N) of the components along each coordinate, each row once; not for dense Hessians."""
    return np.unique((problem.weights[:, None] * problem.diagonal_hessians).T, axis=0)


def step_room(problem: Quadratic, mixing: Array) -> float:
    """Smallest eigenvalue of A^(-1/2) (W + 1) A^(-1/2): step sizes below it keep W - step A above -1.

    Taken from the largest one of (W + 1)^(-1/2) A (W + 1)^(-1/2), whose entries are bounded however flat a
    component is.
    """
    shared = shared_curvatures(problem)
    if shared is not None:
        return float((1.0 + smallest_eigenvalue(mixing)) / shared.max())
    values, vectors = np.linalg.eigh(mixing)
    root = (vectors / np.sqrt(1.0 + values)) @ vectors.T
    if problem.structure == "dense":
        high = symmetric_extremes(
            lambda columns: mixed(root, component_product(problem, mixed(root, columns))),
            problem.n_clients * problem.dim)[1]
    else:
        high = max(float(np.linalg.eigvalsh((root * curvature) @ root)[-1])
                   for curvature in coordinate_curvatures(problem))
    with np.errstate(over="ignore"):
        return float(1.0 / np.float64(high))
