"""What compiled code an algorithm provides, and the step size that it asks for."""

from __future__ import annotations

from typing import Any

from ..settings.schedules import CONSTANT, HARMONIC, StepSizes
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
