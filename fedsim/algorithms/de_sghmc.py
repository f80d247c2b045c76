"""DE-SGHMC: decentralized stochastic gradient Hamiltonian Monte Carlo.

With friction gamma, all clients at once make

    v_i <- v_i - eta (gamma v_i + g_i(x_i)) + sqrt(2 gamma eta) xi_i
    x_i <- sum_j W_ij x_j + eta v_i

with the old positions and the new velocity; velocities are not mixed. Friction 1/eta makes the
positions exactly those of DE-SGLD with step size eta^2.

Source: DE-SGHMC equations (32) and (33).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..interfaces import Problem, largest_noise, offers
from ..problems.quadratic import Quadratic
from ..random.slots import normal_row
from ..settings.alignment import align_fields
from ..settings.lazy_import import lazy
from ..settings.schedules import StepSizeLike
from ..settings.validation import Array, array, positive, set_fields, shape
from ..stability.search import DENSE_SIZE, Stability, gaps_to_one, general_radius, radius_of
from ..vector import lanes
from ..vector.memory import aligned, aligned_copy
from .bodies import advance, momentum_noise, step_size_at
from .gossip import (
    COMMON,
    NETWORK,
    Decentralized,
    client_update,
    component_product,
    coordinate_curvatures,
    gossip_round,
    mixed,
    shared_curvatures,
    step_room,
)

csr_array = lazy("scipy.sparse", "csr_array")


class DESGHMCKernel(NamedTuple):
    """Compiled parameters."""

    schedule: Any
    friction: float
    weights: Array
    gossip: Any


advance.register(DESGHMCKernel)(gossip_round)


@client_update.register(DESGHMCKernel)
def _momentum_step(kernel, work, step, client, weight, own, new):
    eta = step_size_at(kernel.schedule, step)
    size = np.sqrt(2.0 * kernel.friction * eta)
    for i in range(new.shape[0]):
        velocity = work.velocities[client, i]
        lanes.damped(velocity, 1.0 - eta * kernel.friction, eta * weight, work.gradient[i], size,
                     normal_row(own, i))
        lanes.axpy(new[i], eta, velocity)


@dataclass(frozen=True, eq=False)
class DESGHMC(Decentralized):
    """Parameters of DE-SGHMC.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        eta; its square is in units of 1/Hessian of the components f_i.
    friction : float
        gamma, positive; 1 - gamma eta is the momentum kept in a step.
    mixing : (N, N)
        Symmetric, doubly stochastic, positive diagonal; see `fedsim.network`.
    start_velocity : (d,) or (N, d), optional
        Velocities at the start, zero by default.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, friction=2.0, mixing=fs.network.complete(2))
    >>> algorithm.stability(problem).stable
    True
    """

    step_size: StepSizeLike
    friction: float
    mixing: Array
    start_velocity: Any = None
    _aliases = COMMON | NETWORK | {"gamma": "friction"}

    def __post_init__(self) -> None:
        align_fields(self, "mixing", "start_velocity")
        super().__post_init__()
        friction = positive("friction", self.friction)
        if friction * self.schedule.largest > 1.0 + 1e-12:
            raise ValueError(f"friction={friction:g} must be at most 1/step_size="
                             f"{1.0 / self.schedule.largest:g} (momentum would change sign each step)")
        given = self.start_velocity
        set_fields(self, friction=friction, start_velocity=None if given is None else array(
            "start_velocity", given, 1, 2))

    @classmethod
    def from_paper(cls, eta: Any, gamma: float, W: Any) -> DESGHMC:
        """The paper's symbols."""
        return cls(eta, gamma, W)

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless this algorithm can run on this problem."""
        super().check(problem)
        if self.start_velocity is not None:
            wanted = (problem.n_clients, problem.dim)[2 - self.start_velocity.ndim:]
            shape("start_velocity", self.start_velocity, wanted)

    def start_velocities(self, problem: Problem) -> Array:
        """Velocities at the start, (N, d)."""
        offers("problem", problem, Problem)
        given = 0.0 if self.start_velocity is None else self.start_velocity
        return np.broadcast_to(given, (problem.n_clients, problem.dim))

    def _start_velocity_rows(self, problem: Problem, dim: int, n_lanes: int) -> Array:
        """Velocities at the start, (N, d, B)."""
        if self.start_velocity is None:
            return aligned((problem.n_clients, dim, n_lanes))
        velocities = self.start_velocities(problem)
        return aligned_copy(np.broadcast_to(velocities[:, :, None], (*velocities.shape, n_lanes)))

    def _separates(self, problem: Problem) -> bool:
        """True while velocities start at zero, so that they can be laid out by coordinates too."""
        return self.start_velocity is None

    def _noise_so_far(self, problem: Problem, n_rounds: Array) -> Array:
        speed = float(np.abs(self.start_velocities(problem)).max())
        return momentum_noise(self, n_rounds, largest_noise(problem), self.n_clients, speed)

    def _exact_radius(self, problem: Quadratic, eta: float) -> float:
        keep = 1.0 - eta * self.friction
        curvatures = shared_curvatures(problem)
        if curvatures is not None:  # z^2 - (lambda - eta^2 theta + beta) z + beta lambda = 0 per mode
            lost = np.maximum(np.linalg.eigvalsh(np.eye(len(self.mixing)) - self.mixing), 0.0)[:, None]
            pull, damping = eta * (eta * curvatures), eta * self.friction
            # of z - 1, whose coefficients do not cancel
            half, rest = 0.5 * (lost + pull + damping), lost * damping + pull
            far = -half - np.sqrt((half**2 - rest).astype(complex))
            return radius_of(float(np.minimum(gaps_to_one(far), gaps_to_one(rest / far)).min()))
        if not eta * (eta * float(problem.hessians.max())) < 1e100:
            return float("inf")
        if problem.structure != "dense":
            return max(_coordinate_radius(self.mixing, eta * (eta * rows), keep)
                       for rows in _portions(coordinate_curvatures(problem)))
        size, sparse = problem.n_clients * problem.dim, csr_array(self.mixing)

        def apply(columns: Array) -> Array:
            position, moved = columns[:size], columns[size:]  # velocities times eta
            new = keep * moved - eta * (eta * component_product(problem, position))
            return np.concatenate([mixed(sparse, position) + new, new])

        return general_radius(apply, 2 * size)

    def _exact_stability(self, problem: Quadratic) -> Stability:
        """The limit is eta^2 < (1 + beta) r with the r of DE-SGLD, (1 + lambda_N) / L for equal curvature L.

        An eigenvector u of eigenvalue z has z^2 - (w + beta - eta^2 a) z + beta w = 0 with the real numbers
        w = u* W u and a = u* A u of a unit vector: |beta w| < 1, so that |z| < 1 unless a root passes -1,
        where eta^2 a = (1 + beta) (1 + w).
        """
        step, value = self.schedule.largest, self._exact_radius(problem, self.schedule.largest)
        with np.errstate(over="ignore", divide="ignore"):
            room = np.sqrt(8.0) / np.sqrt(np.float64(step_room(problem, self.mixing)))
            limit = float(4.0 / (self.friction + np.hypot(self.friction, room)))
        return Stability(value, bool(value < 1.0 or step < limit), limit, step, "DE-SGHMC map of all clients")

    def _kernel(self, problem: Problem) -> DESGHMCKernel:
        """The NamedTuple that compiled code sees."""
        return DESGHMCKernel(self.schedule.arrays(), self.friction, problem.weights, self._gossip())


PORTION = 2_000_000
"""Entries of the matrices whose eigenvalues are taken together."""


def _portions(curvatures: Array) -> list[Array]:
    """Rows (c, N) in portions whose matrices (c, 2N, 2N) are not too large together."""
    rows = max(1, PORTION // (2 * curvatures.shape[1]) ** 2)
    return [curvatures[first:first + rows] for first in range(0, len(curvatures), rows)]


def _coordinate_radius(mixing: Array, pulls: Array, keep: float) -> float:
    """Largest radius of coordinates that do not mix, with `pulls` eta^2 a of shape (c, N)."""
    clients, unit = len(mixing), np.eye(len(mixing))
    if 2 * clients > DENSE_SIZE:
        sparse = csr_array(mixing)

        def apply(columns: Array, pull: Array) -> Array:
            new = keep * columns[clients:] - pull[:, None] * columns[:clients]
            return np.concatenate([sparse @ columns[:clients] + new, new])

        return max(general_radius(partial(apply, pull=pull), 2 * clients) for pull in pulls)
    pulled = pulls[:, :, None] * unit
    kept = np.broadcast_to(keep * unit, pulled.shape)
    matrices = np.concatenate([np.concatenate([mixing - pulled, kept], axis=2),
                               np.concatenate([-pulled, kept], axis=2)], axis=1)
    if not np.isfinite(matrices).all():
        return float("inf")
    return float(np.abs(np.linalg.eigvals(matrices)).max())
