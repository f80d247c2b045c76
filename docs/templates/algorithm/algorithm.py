"""TEMPLATE of a federated algorithm; it becomes `fedsim/algorithms/fa_new.py`.

FA-NEW: Langevin steps of clients, averaged. With eta the step size, K local steps a round, s the shared noise
and w_c the clients' weights, client c makes K local steps

    theta_c <- theta_c - eta g_c(theta_c) + sqrt(2 eta s) xi + sqrt(2 eta (1-s)/w_c) xi^c

from the server's value, where xi is common to all clients. The server then takes theta = sum_c w_c theta_c.

Source: paper, algorithm, equation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..interfaces import Problem
from ..problems.gradients import stochastic_gradient
from ..random.slots import normal_row
from ..settings.participation import Participation
from ..settings.validation import Array
from ..stability.minibatch import Radius
from ..vector import lanes
from .bodies import advance, step_size_at
from .clients import local_update
from .federated import Federated, begin_round, federated_round


class FANewKernel(NamedTuple):
    """Compiled parameters: what compiled code sees of the algorithm; its class chooses the bodies below."""

    schedule: Any
    local_steps: int
    shared_noise: float  # federated_round asks for these three, and for clients
    clients: Any


advance.register(FANewKernel)(federated_round)  # a round: choose clients, broadcast, local steps, average


@begin_round.register(FANewKernel)
def _begin_round(kernel, problem, lane_set, work, round):
    pass


@local_update.register(FANewKernel)
def _langevin_step(kernel, problem, lane_set, work, slot, step, client, private, own, shared):
    # rows work.local[slot][i] hold coordinate i of all lanes; `private` is 1/sqrt(w_c)
    x, eta = work.local[slot], step_size_at(kernel.schedule, step)
    size = np.sqrt(2.0 * eta * (1.0 - kernel.shared_noise))
    stochastic_gradient(problem, lane_set, client, step, 0, x, work.scratch, work.gradient)
    for i in range(x.shape[0]):
        lanes.langevin_shared(x[i], eta, work.gradient[i], size, private, normal_row(own, i),
                              np.sqrt(2.0 * eta * kernel.shared_noise), normal_row(shared, i))


@dataclass(frozen=True, eq=False)
class FANew(Federated):
    """Parameters of FA-NEW.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        eta, in units of 1/Hessian; a schedule is indexed by the local step.
    local_steps : int
        K, local steps between communications.
    shared_noise : float
        s, the fraction of the averaged noise's variance that is common to all clients.
    participation : Participation, optional
        Clients drawn each round; all by default.

    Raises
    ------
    ValueError
        For a step size that is not positive, `local_steps` below 1, or `shared_noise` outside [0, 1].

    Source: paper, algorithm.

    Examples
    --------
    >>> fs.FANew(0.01, local_steps=10).local_steps
    10
    """

    step_size: Any
    local_steps: int = 1
    shared_noise: float = 0.0
    participation: Participation | None = None
    _name = "FA-NEW"

    def __post_init__(self) -> None:
        super().__post_init__()

    def _kernel(self, problem: Problem) -> FANewKernel:
        return FANewKernel(self.schedule.arrays(), self.local_steps, self.shared_noise,
                           self._clients(problem))

    def _evaluations(self, eta: float) -> list[tuple[Array, Array]]:
        # what a local update does to theta, gradient by gradient: stability follows
        return [(np.ones((1, 1)), np.array([eta]))]

    def _search(self, radius: Radius, largest: float) -> tuple[float, int]:
        return 1.0 / largest, 400  # a step size known to be stable, and how finely to search above it
