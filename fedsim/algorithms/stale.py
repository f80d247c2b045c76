"""Stale SGLD and SGHMC: the whole stochastic gradient is taken at an old iterate.

With g an unbiased gradient of f, tau_l the age at update l and z standard normal,

    stale SGLD    theta_{l+1} = theta_l - h g(theta_{l - tau_l}) + sqrt(2 h) z
    stale SGHMC   q_{l+1} = (1 - B h) q_l - h g(theta_{l - tau_l}) + sqrt(2 B h) z
                  theta_{l+1} = theta_l + h q_{l+1}

There is one chain, on the pooled problem f = sum_c w_c f_(c); a round is one update.

Source: stale-gradient paper, equation (3) and Algorithm 1.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..equality import ByValue
from ..interfaces import AlgorithmParts, Problem
from ..random.normals import steps_per_draw
from ..random.slots import normal_room
from ..settings.staleness import Fixed, Sequence, Several, Workers, as_staleness
from ..settings.validation import Array, positive
from ..stability.delay import radius_of, step_limit
from ..stability.search import Stability
from ..vector.tiles import aligned
from .delayed import FixedAges, Hamiltonian, Langevin, ListedAges, SeveralAges, StaleKernel, StaleWork

_AHEAD = 64  # draws made together at most


class Stale(ByValue, AlgorithmParts):
    """What both stale algorithms share."""

    convention = "global"
    staleness: Any
    friction: float | None

    def _normalise(self) -> None:
        self._normalise_step()
        staleness = as_staleness(self.staleness)
        object.__setattr__(self, "staleness", staleness.tau if isinstance(staleness, Fixed) else staleness)

    def ages(self, n_rounds: int) -> np.ndarray:
        """Age of the gradient at updates 0, ..., n_rounds - 1."""
        return as_staleness(self.staleness).ages(n_rounds)

    def _bind(self, problem: Problem, n_rounds: int) -> tuple[Any, Any]:
        """The pooled problem, and this algorithm with the ages of so many updates worked out."""
        staleness = as_staleness(self.staleness)
        if isinstance(staleness, Fixed):
            return problem.pooled(), self
        known = staleness.worked_out(n_rounds) if isinstance(staleness, Workers) else staleness
        if not isinstance(known, Several):
            known = Sequence(known.ages(n_rounds))
        return problem.pooled(), dataclasses.replace(self, staleness=known)  # type: ignore[type-var]

    def _worked_out(self) -> Fixed | Sequence | Several:
        staleness = as_staleness(self.staleness)
        if not isinstance(staleness, (Fixed, Sequence, Several)):
            raise TypeError("_bind() first: the ages of a simulated server depend on the number of updates")
        return staleness

    def _separates(self, problem: Problem) -> bool:
        """True: a step treats each coordinate alone, given a problem that does."""
        return True

    def _is_gaussian(self, problem: Problem) -> bool:
        """False for real minibatches, and for mixtures over several schedules."""
        staleness = as_staleness(self.staleness)
        mixed = isinstance(staleness, Several) or (isinstance(staleness, Workers) and staleness.schedules > 1)
        return not mixed and problem.keeps_gaussian

    def costs(self, problem: Problem, n_rounds: int) -> dict[str, int]:
        """What one replica costs: every update is one gradient, one upload and one download."""
        return {"communications": n_rounds, "gradient_evaluations": n_rounds,
                "floats_sent": 2 * n_rounds * problem.dim}

    def _radius(self, problem: Problem) -> float:
        """Growth per update of the slowest or least stable mode."""
        return radius_of(self, problem, self.schedule.largest)

    def stability(self, problem: Problem) -> Stability:
        """Growth per update, and the step-size limit."""
        step, value = self.schedule.largest, self._radius(problem)
        limit = step_limit(self, problem)
        return Stability(value, bool(value < 1.0), limit, step, f"{type(self).__name__} with stale gradients")

    def _workspace(self, problem: Problem, start: Array, dtype: Any) -> StaleWork:
        """Room for one block, beginning at `start` (d, B)."""
        dim, n_lanes = start.shape
        staleness = self._worked_out()
        oldest = staleness.tau if isinstance(staleness, Fixed) else int(staleness.values.max(initial=0))
        ring = aligned((oldest + 3, dim, n_lanes))
        ring[0] = start
        return StaleWork(
            ring=ring, velocity=aligned((dim, n_lanes)), made=np.zeros(1, np.int64),
            own=normal_room(_AHEAD, steps_per_draw(dim, dtype) * dim, n_lanes, dtype),
            gradient=aligned((dim, n_lanes)), scratch=problem._scratch(dim, n_lanes, dtype))

    def _stale_kernel(self, dynamics: Any) -> StaleKernel:
        staleness = self._worked_out()
        ages: Any
        if isinstance(staleness, Fixed):
            ages = FixedAges(staleness.tau)
        else:
            form = SeveralAges if isinstance(staleness, Several) else ListedAges
            ages = form(staleness.values)
        return StaleKernel(self.schedule.arrays(), ages, dynamics)


@dataclass(frozen=True, eq=False)
class StaleSGLD(Stale):
    """Parameters of stale SGLD. A problem of several clients is pooled: there is one chain, on f.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        h, in units of 1/Hessian of f.
    staleness : int, sequence of int, or `Workers`
        tau: the age min(l, tau) at update l; or an age for every update; or a simulated server.

    Examples
    --------
    >>> fs.StaleSGLD(0.01, staleness=4).ages(6).tolist()
    [0, 1, 2, 3, 4, 4]
    """

    step_size: Any
    staleness: Any = 0
    friction = None

    def __post_init__(self) -> None:
        self._normalise()

    @classmethod
    def from_paper(cls, h: Any, tau: Any = 0) -> StaleSGLD:
        """The paper's symbols."""
        return cls(h, tau)

    def _kernel(self, problem: Problem) -> StaleKernel:
        """The NamedTuple that compiled code sees."""
        return self._stale_kernel(Langevin(0))


@dataclass(frozen=True, eq=False)
class StaleSGHMC(Stale):
    """Parameters of stale SGHMC; velocities start at zero. A problem of several clients is pooled.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        h.
    friction : float
        B, positive.
    staleness : int, sequence of int, or `Workers`
        As in `StaleSGLD`.

    Examples
    --------
    >>> problem = fs.GaussianMean([1.0, 2.0, 3.0])
    >>> round(fs.StaleSGHMC(0.01, friction=1.0, staleness=2).stability(problem).max_step_size, 3)
    0.129
    """

    step_size: Any
    friction: float
    staleness: Any = 0

    def __post_init__(self) -> None:
        self._normalise()
        object.__setattr__(self, "friction", positive("friction", self.friction))

    @classmethod
    def from_paper(cls, h: Any, B: float, tau: Any = 0) -> StaleSGHMC:
        """The paper's symbols."""
        return cls(h, B, tau)

    def _kernel(self, problem: Problem) -> StaleKernel:
        """The NamedTuple that compiled code sees."""
        return self._stale_kernel(Hamiltonian(self.friction))
