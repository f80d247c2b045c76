"""FA-LD: federated averaging Langevin dynamics.

With eta_k the step size of local step k, K local steps a round, temperature tau, shared_noise s
(the paper's rho squared) and client weights p_c, client c makes K local steps

    theta_c <- theta_c - eta_k g_c(theta_c) + sqrt(2 eta_k tau s) xi_k + sqrt(2 eta_k tau (1-s)/p_c) xi_k^c

from the server's value, where xi_k is common to all clients and g_c is an unbiased gradient of f_(c).
The server then takes theta = sum_c p_c theta_c, or with participation (1/S) sum over the drawn clients.

Source: FA-LD Algorithms 1 to 4, equations (7) and (11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..interfaces import Problem
from ..problems.gradients import langevin
from ..settings.participation import Participation, SetsOfClients, TakesPart
from ..settings.schedules import StepSizeLike
from ..settings.validation import Array, fraction, positive, set_fields, shown
from ..stability.search import Radius
from .bodies import advance, step_size_at
from .clients import local_update
from .federated import COMMON, SCHEMES, Federated, begin_round, federated_round


class FALDKernel(NamedTuple):
    """Compiled parameters."""

    schedule: Any
    local_steps: int
    temperature: float
    shared_noise: float
    clients: Any


advance.register(FALDKernel)(federated_round)


@begin_round.register(FALDKernel)
def _begin_round(kernel, problem, lane_set, work, round):
    pass


@local_update.register(FALDKernel)
def _langevin_step(kernel, problem, lane_set, work, slot, step, client, private, own, shared):
    eta = step_size_at(kernel.schedule, step)
    size = np.sqrt(2.0 * eta * kernel.temperature * (1.0 - kernel.shared_noise))
    shared_size = np.sqrt(2.0 * eta * kernel.temperature * kernel.shared_noise)
    langevin(problem, lane_set, client, step, work.local[slot], work.scratch, work.gradient, eta, size,
             private, own, shared_size, shared)


@dataclass(frozen=True, eq=False)
class FALD(Federated):
    """Parameters of FA-LD.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        eta, in units of 1/Hessian; a schedule is indexed by the local step.
    local_steps : int
        K, local steps between communications.
    temperature : float
        tau of the target exp(-f/tau).
    shared_noise : float
        Fraction of the averaged noise's variance that is common to all clients: this paper's rho^2, where
        `FAHMC` has its paper's rho.
    participation : optional
        Who takes part in a round, all clients by default: `Participation`, drawn by a scheme;
        `IndependentParticipation`, who answers by chance; or `FixedParticipation`, known sets, which may be
        given as a sequence or an array.

    Raises
    ------
    ValueError
        For a step size or temperature that is not positive, `local_steps` below 1, or `shared_noise`
        outside [0, 1].

    Source: FA-LD Algorithms 2 (independent noise), 3 (correlated noise) and 4 (sampled clients).

    Examples
    --------
    >>> fs.FALD.from_paper(eta=1e-3, K=10, rho=0.5).shared_noise
    0.25
    """

    step_size: StepSizeLike
    local_steps: int = 1
    temperature: float = 1.0
    shared_noise: float = 0.0
    participation: TakesPart | SetsOfClients | None = None
    _name = "FA-LD"
    _aliases = COMMON | {"eta": "step_size", "K": "local_steps", "tau": "temperature",
                        "rho": "shared_noise=rho**2", "S": SCHEMES, "scheme": SCHEMES}

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, temperature=positive("temperature", self.temperature))

    @classmethod
    def from_paper(cls, eta: Any, K: int = 1, tau: float = 1.0, rho: float = 0.0,
                   S: int | None = None, scheme: str | None = None) -> FALD:
        """The paper's symbols: eta, K, tau, rho (squared into shared_noise), S and scheme I or II."""
        if (S is None) != (scheme is None):
            raise ValueError(f"S={shown(S)} and scheme={shown(scheme)} must be given together")
        chosen = None if S is None else Participation.from_paper(S, str(scheme))
        return cls(eta, K, tau, fraction("rho", rho) ** 2, chosen)

    def _kernel(self, problem: Problem) -> FALDKernel:
        """The NamedTuple that compiled code sees."""
        return FALDKernel(self.schedule.arrays(), self.local_steps, self.temperature, self.shared_noise,
                          self._clients(problem))

    def _evaluations(self, eta: float) -> list[tuple[Array, Array]]:
        return [(np.ones((1, 1)), np.array([eta]))]

    def _search(self, radius: Radius, largest: float) -> tuple[float, int]:
        return 1.0 / largest, 400  # there every client's map is a contraction; 2/L with equal Hessians
