"""f = sum_c w_c f_(c) of any clients as a problem of one client: what stale algorithms follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from ..interfaces import Problem, ProblemParts
from ..laws.law import Gaussian
from ..settings.support import Support
from ..settings.validation import Array, points, set_fields, whole
from ..vector import lanes
from .gradients import NoisyGradients, exact_gradient, exact_potential, noise_free
from .quadratic import Quadratic


@noise_free
class PooledClients(NamedTuple):
    """Compiled form: the weighted sum of the clients' exact gradients, which leave ``scratch.rows`` alone,
    and of their potentials."""

    inner: Any
    weights: Array


@exact_gradient.register(PooledClients)
def _sum_of_clients(problem, client, x, scratch, out):
    for i in range(out.shape[0]):
        lanes.fill(out[i], 0.0)
    for each in range(problem.weights.shape[0]):
        exact_gradient(problem.inner, each, x, scratch, scratch.rows)
        for i in range(out.shape[0]):
            lanes.axpy(out[i], problem.weights[each], scratch.rows[i])


@exact_potential.register(PooledClients)
def _sum_of_potentials(problem, client, x, scratch, out):
    lanes.fill(out, 0.0)
    for each in range(problem.weights.shape[0]):
        exact_potential(problem.inner, each, x, scratch, scratch.rows[0])
        lanes.axpy(out, problem.weights[each], scratch.rows[0])


class OneClient(ProblemParts):
    """A problem of one client."""

    n_clients = 1

    @property
    def weights(self) -> Array:
        """The one client's weight."""
        return np.ones(1)

    def pooled(self) -> Any:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False, repr=False)
class Pooled(ByValue, OneClient):
    """The clients of a problem as one, whose gradient is sum_c w_c grad f_(c).

    For problems that have exact gradients, and normal noise of one standard deviation or none. It is what
    `pooled` of a problem class of one's own returns.

    Parameters
    ----------
    problem : the problem of several clients

    Examples
    --------
    >>> from fedsim.problems.pooled import Pooled
    >>> problem = fs.Quadratic([[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [1.0, 1.0]])
    >>> Pooled(problem).gradient(0, [1.0, 1.0]).tolist()
    [0.5, 1.0]
    """

    problem: Problem
    dim: int = field(init=False)
    """This and what follows: as the clients."""
    keeps_gaussian: bool = field(init=False, default=True)
    is_judged: bool = field(init=False, default=True)
    is_convex: bool = field(init=False, default=True)
    support: Support | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        clients = self.problem
        set_fields(self, dim=clients.dim, keeps_gaussian=clients.keeps_gaussian, is_judged=clients.is_judged,
                   is_convex=clients.is_convex, support=clients.support)

    @property
    def gradient_noise(self) -> float | None:
        """Standard deviation of the noise of sum_c w_c grad f_(c)."""
        noise = self.problem.gradient_noise
        return None if noise is None else float(noise * np.sqrt((self.problem.weights**2).sum()))

    def target(self, temperature: float = 1.0) -> Gaussian:
        """As of the clients."""
        return self.problem.target(temperature)

    def gradient(self, client: int, x: Array) -> Array:
        """grad f at points `x` (..., d), in NumPy."""
        whole("client", client, 0, 0)
        point = points("x", x, self.dim)
        return sum((weight * self.problem.gradient(each, point)
                    for each, weight in enumerate(self.problem.weights)), np.zeros(point.shape))

    def _potentials(self, client: int, x: Array) -> Array:
        """As `exact_potential` has them."""
        return sum((weight * self.problem._potentials(each, x)
                    for each, weight in enumerate(self.problem.weights)), np.zeros(x.shape[:-1]))

    def _without_potential(self) -> str:
        return self.problem._without_potential()

    def curvature_problem(self) -> Quadratic:
        """The pooled problem that stability is judged on."""
        return self.problem.curvature_problem().pooled()

    def _arrays(self) -> Any:
        """The NamedTuple that compiled code sees."""
        exact = self.problem._arrays()
        if self.gradient_noise is None:
            return PooledClients(exact, self.problem.weights)
        return NoisyGradients(PooledClients(exact.inner, self.problem.weights), self.gradient_noise)

    def __repr__(self) -> str:
        return f"Pooled({self.problem!r})"
