"""NewProblem: clients with f_c(x) = sum_i log cosh(x_i - b_ci).

What a problem must and may offer stands in `fedsim.interfaces`, with the defaults of what it may. A compiled
form is a NamedTuple of arrays and numbers; `exact_gradient` has a body for its class, which works on rows:
one coordinate of all replicas, so that the loop over `b` vectorises. `fs.Custom` needs none of this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from ..interfaces import ProblemParts
from ..laws.law import Gaussian, NoTarget
from ..settings.validation import Array, array, client_weights, points, set_fields, whole
from ..vector.compile import inner
from ..vector.math import tanh
from ..vector.per_lane import coordinate, per_lane
from .gradients import exact_gradient, noise_free
from .pooled import Pooled
from .quadratic import Quadratic


@noise_free
class NewProblemForm(NamedTuple):
    """Compiled form: gradient tanh(x - b_c), no gradient noise."""

    centres: Array


@inner
def _row(out, x, centre):
    for b in range(out.shape[0]):
        out[b] = tanh(x[b] - per_lane(centre, b))  # a client is one for all lanes, or one in each


@exact_gradient.register(NewProblemForm)
def _new_problem_gradient(problem, client, x, scratch, out):
    for i in range(x.shape[0]):
        _row(out[i], x[i], coordinate(problem.centres, client, i))


@dataclass(frozen=True, eq=False, repr=False)
class NewProblem(ByValue, ProblemParts):
    """Clients' potentials f_c(x) = sum_i log cosh(x_i - b_ci), global f = sum_c w_c f_c.

    Parameters
    ----------
    centres : (N, d)
        b_c.
    weights : (N,), optional
        w_c, positive, summing to one; uniform by default.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> problem = fs.NewProblem([[-1.0], [1.0]])
    >>> run = fs.simulate(problem, fs.FALD(0.1, local_steps=3), n_rounds=20, n_replicas=256, seed=1)
    >>> run.target is None, problem.gradient(0, [1.0]).round(3).tolist()
    (True, [0.964])
    """

    centres: Array
    weights: Any = None
    keeps_gaussian = False

    def __post_init__(self) -> None:
        centres = array("centres", self.centres, 2)
        set_fields(self, centres=centres, weights=client_weights(self.weights, len(centres)))

    @property
    def n_clients(self) -> int:
        """Number of clients N."""
        return self.centres.shape[0]

    @property
    def dim(self) -> int:
        """Dimension d."""
        return self.centres.shape[1]

    def target(self, temperature: float = 1.0) -> Gaussian:
        """Always raises: the target has no closed form."""
        raise NoTarget(f"problem={self!r}: the target has no closed form; compare with a reference sample")

    def gradient(self, client: int, x: Array) -> Array:
        """Exact grad f_c at points `x` (..., d), in NumPy."""
        number = whole("client", client, 0, self.n_clients - 1)
        return np.tanh(points("x", x, self.dim) - self.centres[number])

    def pooled(self) -> Pooled:
        """f itself as a problem of one client."""
        return Pooled(self)

    def curvature_problem(self) -> Quadratic:
        """Clients of the largest curvature, on which stability is judged."""
        return Quadratic(np.ones(self.n_clients), np.zeros(self.centres.shape), self.weights)

    def _arrays(self) -> NewProblemForm:
        """The NamedTuple that compiled code sees."""
        return NewProblemForm(self.centres)

    def __repr__(self) -> str:
        return f"NewProblem(n_clients={self.n_clients}, dim={self.dim})"
