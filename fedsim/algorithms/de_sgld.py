"""DE-SGLD: decentralized stochastic gradient Langevin dynamics.

With mixing matrix W and components f_i, all clients at once make

    x_i <- sum_j W_ij x_j - eta g_i(x_i) + sqrt(2 eta) xi_i

from the old states, g_i an unbiased gradient of f_i at the client's own old point. The average is an
Euler step of size eta/N on f = sum_i f_i with gradients taken elsewhere; it targets exp(-f), while each
client keeps a spread of order sqrt(eta) of its own.

Source: DE-SGLD equations (2) and (13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..interfaces import Problem
from ..problems.quadratic import Quadratic
from ..random.slots import normal_row
from ..settings.lazy_import import lazy
from ..settings.schedules import StepSizeLike
from ..settings.validation import Array
from ..stability.search import Stability, symmetric_extremes
from ..vector import lanes
from .bodies import advance, step_size_at
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


class DESGLDKernel(NamedTuple):
    """Compiled parameters."""

    schedule: Any
    weights: Array
    gossip: Any


advance.register(DESGLDKernel)(gossip_round)


@client_update.register(DESGLDKernel)
def _langevin_step(kernel, work, step, client, weight, own, new):
    eta = step_size_at(kernel.schedule, step)
    for i in range(new.shape[0]):
        lanes.langevin(new[i], eta * weight, work.gradient[i], np.sqrt(2.0 * eta), 1.0, normal_row(own, i))


@dataclass(frozen=True, eq=False)
class DESGLD(Decentralized):
    """Parameters of DE-SGLD.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        eta, in units of 1/Hessian of the components f_i.
    mixing : (N, N)
        Symmetric, doubly stochastic, positive diagonal; see `fedsim.network`.

    Examples
    --------
    >>> fs.DESGLD(0.01, fs.network.ring(4)).n_clients
    4
    """

    step_size: StepSizeLike
    mixing: Array
    friction = None
    _aliases = COMMON | NETWORK | {"gamma": "fs.DESGHMC(step_size, friction, mixing), which has friction",
                                  "friction": "fs.DESGHMC(step_size, friction, mixing), which has friction"}

    @classmethod
    def from_paper(cls, eta: Any, W: Any) -> DESGLD:
        """The paper's symbols."""
        return cls(eta, W)

    def _exact_radius(self, problem: Quadratic, step: float) -> float:
        curvatures = shared_curvatures(problem)
        if curvatures is not None:
            modes = np.linalg.eigvalsh(self.mixing)
            return float(np.abs(modes[:, None] - step * curvatures).max())
        if not step * float(problem.hessians.max()) < 1e100:
            return float("inf")
        if problem.structure == "dense":
            sparse, size = csr_array(self.mixing), problem.n_clients * problem.dim
            return max(map(abs, symmetric_extremes(
                lambda columns: mixed(sparse, columns) - step * component_product(problem, columns), size)))
        return max(float(np.abs(np.linalg.eigvalsh(self.mixing - step * np.diag(curvature))).max())
                   for curvature in coordinate_curvatures(problem))

    def _exact_stability(self, problem: Quadratic) -> Stability:
        """The limit is (1 + lambda_N) / L for equal curvature L.

        W - eta A stays above -1 up to the smallest eigenvalue of A^(-1/2) (W + 1) A^(-1/2), and it
        stays below 1 for every eta; the radius of the second moment is convex in eta.
        """
        step, value = self.schedule.largest, self._exact_radius(problem, self.schedule.largest)
        limit = step_room(problem, self.mixing)
        return Stability(value, bool(value < 1.0 or step < limit), limit, step, "DE-SGLD map of all clients")

    def _noise_so_far(self, problem: Problem, n_rounds: Array) -> Array:
        return super()._noise_so_far(problem, n_rounds) / self.n_clients  # of the average

    def _kernel(self, problem: Problem) -> DESGLDKernel:
        """The NamedTuple that compiled code sees."""
        return DESGLDKernel(self.schedule.arrays(), problem.weights, self._gossip())
