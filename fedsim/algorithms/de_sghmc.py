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
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..interfaces import Problem
from ..problems.quadratic import Quadratic
from ..random.slots import normal_row
from ..settings.validation import Array, array, positive, shape
from ..stability.search import Stability, general_radius, largest_stable
from ..vector import lanes
from ..vector.tiles import aligned, aligned_copy
from .bodies import advance, step_size_at
from .gossip import Decentralized, client_update, component_product, gossip_round, mixed, shared_curvatures


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
        lanes.damp(velocity, 1.0 - eta * kernel.friction)
        lanes.langevin(velocity, eta * weight, work.gradient[i], size, 1.0, normal_row(own, i))
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

    step_size: Any
    friction: float
    mixing: Array
    start_velocity: Any = None

    def __post_init__(self) -> None:
        self._normalise()
        friction = positive("friction", self.friction)
        if friction * self.schedule.largest > 1.0 + 1e-12:
            raise ValueError(f"friction={friction:g} must be at most 1/step_size="
                             f"{1.0 / self.schedule.largest:g} (momentum would change sign each step)")
        object.__setattr__(self, "friction", friction)
        if self.start_velocity is not None:
            object.__setattr__(self, "start_velocity", array("start_velocity", self.start_velocity, 1, 2))

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
        given = 0.0 if self.start_velocity is None else self.start_velocity
        return np.broadcast_to(given, (problem.n_clients, problem.dim))

    def _start_velocity_rows(self, problem: Problem, dim: int, n_lanes: int) -> Array:
        """Velocities at the start, (N, d, B)."""
        if self.start_velocity is None:
            return aligned((problem.n_clients, dim, n_lanes))
        return aligned_copy(np.repeat(self.start_velocities(problem)[:, :, None], n_lanes, axis=2))

    def _separates(self, problem: Problem) -> bool:
        """True while velocities start at zero, so that they can be laid out by coordinates too."""
        return self.start_velocity is None

    def _exact_radius(self, problem: Quadratic, eta: float) -> float:
        keep = 1.0 - eta * self.friction
        curvatures = shared_curvatures(problem)
        if curvatures is not None:  # z^2 - (lambda - eta^2 theta + beta) z + beta lambda = 0 per mode
            modes = np.linalg.eigvalsh(self.mixing)[:, None]
            half = 0.5 * (modes - eta**2 * curvatures + keep)
            root = np.sqrt((half**2 - keep * modes).astype(complex))
            return float(np.maximum(np.abs(half + root), np.abs(half - root)).max())
        size, sparse = problem.n_clients * problem.dim, csr_array(self.mixing)

        def apply(columns: Array) -> Array:
            position, velocity = columns[:size], columns[size:]
            new = keep * velocity - eta * component_product(problem, position)
            return np.concatenate([mixed(sparse, position) + eta * new, new])

        return general_radius(apply, 2 * size)

    def _exact_stability(self, problem: Quadratic) -> Stability:
        """For equal curvature L the limit is eta^2 L < (1 + lambda_N)(1 + beta)."""
        step, value = self.schedule.largest, self._exact_radius(problem, self.schedule.largest)
        trace = np.trace(problem.dense_hessians, axis1=1, axis2=2) * problem.weights
        limit = largest_stable(lambda eta: self._exact_radius(problem, eta),
                               0.03 / float(np.sqrt(trace.max())), growth=1.3, scan=100)
        return Stability(value, bool(value < 1.0), limit, step, "DE-SGHMC map of all clients")

    def _kernel(self, problem: Problem) -> DESGHMCKernel:
        """The NamedTuple that compiled code sees."""
        return DESGHMCKernel(self.schedule.arrays(), self.friction, problem.weights, self._gossip())
