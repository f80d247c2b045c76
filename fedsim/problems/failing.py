"""Where a gradient of one's own fails: the error that says so, and gradients that leave a trace."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..settings.validation import Array, shown
from ..vector.per_lane import per_lane
from .gradients import exact_gradient, noise_free

_HINTS = {IndexError: "an index must be at least 0 and less than the length of its axis",
          OverflowError: "compiled integers have 64 bits"}


class GradientError(ValueError):
    """A gradient of one's own cannot be computed at a point: it reads out of range, or raises an error.

    Attributes
    ----------
    client : int
    x : (d,)
        The point.
    round : int or None
        In which communication of a run; None outside of runs.
    replica : int or None
        The same of the replica, the first in its block that fails.

    Examples
    --------
    >>> def gradient(client, x, slopes):
    ...     return slopes[int(x + 5.0)] * x
    >>> problem = fs.Custom(gradient, n_clients=1, data=np.ones(10))
    >>> try:
    ...     problem.gradient(0, [7.0])
    ... except fs.GradientError as error:
    ...     print(error.client, error.x)
    0 [7.]
    """

    def __init__(self, message: str, client: int, x: Array, round: int | None = None,
                 replica: int | None = None) -> None:
        super().__init__(message)
        self.client, self.x, self.round, self.replica = client, x, round, replica

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.client, self.x, self.round, self.replica)


def gradient_error(error: Exception, client: int, x: Array, round: int | None = None,
                   replica: int | None = None) -> GradientError:
    """What compiled code raised, with where."""
    where = "" if round is None else f" in round {round}, of replica {replica},"
    hint = _HINTS.get(type(error))
    return GradientError(f"gradient of client {client} fails{where} at x={shown(x)}: {type(error).__name__}: "
                         f"{error}{f'; {hint}' if hint else ''}", client, x, round, replica)


@noise_free
class Traced(NamedTuple):
    """A compiled form whose gradients are evaluated lane by lane; `trace` (2 + d,) says where the last was.

    It has the client, the lane, and the point.
    """

    inner: Any
    trace: Array


@exact_gradient.register(Traced)
def _traced_gradient(problem, client, x, scratch, out):
    for b in range(x.shape[1]):
        problem.trace[0], problem.trace[1] = per_lane(client, b), b
        for i in range(x.shape[0]):
            problem.trace[2 + i] = x[i, b]
        exact_gradient(problem.inner, per_lane(client, b), x[:, b:b + 1], scratch, out[:, b:b + 1])
    problem.trace[0] = np.nan  # what fails from here on is no gradient


def traced(form: Any, trace: Array) -> Any:
    """The form with gradients of one's own, inside it or itself, `Traced`; None where there are none."""
    if getattr(type(form), "made_at_run_time", False):
        return Traced(form, trace)
    inner = traced(form.inner, trace) if hasattr(form, "inner") else None
    return None if inner is None else form._replace(inner=inner)


def unknown_place(dim: int) -> Array:
    """A trace that nobody has written."""
    return np.full(2 + dim, np.nan)
