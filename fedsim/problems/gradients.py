"""What compiled code a problem provides: gradients of its clients, lane by lane."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..random.normals import normals
from ..random.slots import Normals, normal_row
from ..random.streams import GRADIENT_NOISE
from ..settings.validation import Array
from ..vector import lanes
from ..vector.compile import dispatched, inner
from ..vector.memory import Scratch


@dispatched
def exact_gradient(problem: Any, client: Any, x: Array, scratch: Scratch, out: Array) -> None:
    """Evaluate a client's exact gradient at `x` (d, B) into `out` (d, B), lane by lane.

    `client` is a number, or one number per lane. One body per class of problem; a class that only adds to
    another one how gradients are disturbed holds it as `inner`.
    """


@exact_gradient.otherwise
def _inner_gradient(problem, client, x, scratch, out):
    exact_gradient(problem.inner, client, x, scratch, out)


@dispatched
def exact_potential(problem: Any, client: int, x: Array, scratch: Scratch, out: Array) -> None:
    """Evaluate a client's potential at `x` (d, B) into `out` (B,), up to a constant of the client.

    A class of problems that has a body says so by `ProblemParts._without_potential`.
    """


@exact_potential.otherwise
def _inner_potential(problem, client, x, scratch, out):
    exact_potential(problem.inner, client, x, scratch, out)


@dispatched
def stochastic_gradient(problem: Any, lane_set: Any, client: Any, step: int, draw: int, x: Array,
                        scratch: Scratch, out: Array) -> None:
    """The same with the problem's gradient noise.

    `draw` counts the evaluations within a step, so that each has its own noise.
    """


@dispatched
def langevin(problem: Any, lane_set: Any, client: Any, step: int, x: Array, scratch: Any, gradient: Array,
             eta: float, size: float, private: Any, own: Normals, shared_size: float,
             shared: Normals) -> None:
    """A Langevin step of a client: x <- x - eta g(x) + size private own + shared_size shared.

    `own` and `shared` are its normals; `gradient` (d, B) is room for g(x). A class
    of problems may supply a body that needs fewer passes over the rows.
    """


@langevin.otherwise
def _langevin(problem, lane_set, client, step, x, scratch, gradient, eta, size, private, own, shared_size,
              shared):
    stochastic_gradient(problem, lane_set, client, step, 0, x, scratch, gradient)
    for i in range(x.shape[0]):
        if shared_size > 0.0:
            lanes.langevin_shared(x[i], eta, gradient[i], size, private, normal_row(own, i),
                                  shared_size, normal_row(shared, i))
        else:
            lanes.langevin(x[i], eta, gradient[i], size, private, normal_row(own, i))


@dispatched
def kick(problem: Any, client: Any, size: float, x: Array, velocity: Array, scratch: Any,
         gradient: Array) -> None:
    """velocity += size g(x), with the exact gradient."""


@kick.otherwise
def _kick(problem, client, size, x, velocity, scratch, gradient):
    exact_gradient(problem, client, x, scratch, gradient)
    for i in range(x.shape[0]):
        lanes.axpy(velocity[i], size, gradient[i])


@dispatched
def is_exact(problem: Any) -> bool:
    """True when `stochastic_gradient` has no noise, so that equal points give equal gradients."""


@is_exact.otherwise
def _is_noisy(problem):
    return False


def no_noise(problem):
    """Body of `is_exact` for classes without gradient noise."""
    return True


def without_noise(problem, lane_set, client, step, draw, x, scratch, out):
    """Body of `stochastic_gradient` for those."""
    exact_gradient(problem, client, x, scratch, out)


def noise_free(cls: Any) -> Any:
    """Class decorator: gradients of this class of problems have no noise."""
    is_exact.register(cls)(no_noise)
    stochastic_gradient.register(cls)(without_noise)
    return cls


class NoisyGradients(NamedTuple):
    """A compiled form with additional normal noise of this standard deviation in every evaluation."""

    inner: Any
    noise_std: float


def with_noise(form: Any, noise_std: float | None) -> Any:
    """A compiled form with this noise, where there is any."""
    return form if noise_std is None else NoisyGradients(form, float(noise_std))


@stochastic_gradient.register(NoisyGradients)
def _with_noise(problem, lane_set, client, step, draw, x, scratch, out):
    stochastic_gradient(problem.inner, lane_set, client, step, draw, x, scratch, out)
    normals(lane_set, GRADIENT_NOISE + draw, step, client, scratch.normals)
    for i in range(x.shape[0]):
        lanes.axpy(out[i], problem.noise_std, scratch.normals[i])


@dispatched
def leapfrog(problem: Any, client: Any, size: float, x: Array, velocity: Array, corrected: bool,
             correction: Array, slot: int, scratch: Any, gradient: Array) -> None:
    """velocity += size g(x), then x += velocity, with the exact gradient.

    With `corrected`, row block `slot` of `correction` (slots, d, B) is added to the gradient.
    """


@leapfrog.otherwise
def _leapfrog(problem, client, size, x, velocity, corrected, correction, slot, scratch, gradient):
    kick(problem, client, size, x, velocity, scratch, gradient)
    drift(size, x, velocity, corrected, correction, slot)


@inner
def drift(size, x, velocity, corrected, correction, slot):
    """x += velocity, after velocity += size times the correction."""
    for i in range(x.shape[0]):
        if corrected:
            lanes.axpy(velocity[i], size, correction[slot, i])
        lanes.axpy(x[i], 1.0, velocity[i])
