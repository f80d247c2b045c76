"""What compiled code an algorithm provides, and the step size that it asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..settings.schedules import CONSTANT, HARMONIC, StepSizes
from ..settings.validation import Array
from ..vector.compile import dispatched


@dispatched
def advance(kernel: Any, problem: Any, lane_set: Any, work: Any, round: int) -> None:
    """One communication round of an algorithm for all lanes; chosen by the class of `kernel`."""


@dispatched
def observe(work: Any, view: int, out: Any) -> None:
    """Copy the rows (d, B) whose law is recorded: view 0 is the average, view 1 + c client c."""


@dispatched
def step_size_at(schedule: Any, k: int) -> float:
    """Step size of local step k; one body per class of schedule."""


@step_size_at.register(StepSizes)
def _step_size(schedule, k):
    if schedule.kind == CONSTANT:
        return schedule.value
    if schedule.kind == HARMONIC:
        return 1.0 / (schedule.value + schedule.slope * k)
    return schedule.values[k]


def momentum_noise(algorithm: Any, n_rounds: Array, gradient_noise: float, n_averaged: int = 1,
                   speed: float = 0.0) -> Array:
    """`_noise_so_far` of the average of so many chains with friction that start at this speed.

    At first velocities gather noise, later they forget it: the smaller of two bounds holds at all times.
    """
    time, friction = algorithm.schedule.total(n_rounds), algorithm.friction
    given = 2.0 + algorithm.schedule.largest * gradient_noise**2 / friction
    with np.errstate(over="ignore"):
        diffused: Array = given * time * np.minimum(1.0 / friction, friction * time * time)
    return diffused / n_averaged + (speed * np.minimum(time, 1.0 / friction)) ** 2
