"""What compiled code an algorithm provides, and the step size that it asks for."""

from __future__ import annotations

from typing import Any

from ..settings.schedules import ConstantStep, HarmonicStep, ListedStep
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


@step_size_at.register(ConstantStep)
def _constant(schedule, k):
    return schedule.value


@step_size_at.register(HarmonicStep)
def _harmonic(schedule, k):
    return 1.0 / (schedule.offset + schedule.slope * k)


@step_size_at.register(ListedStep)
def _listed(schedule, k):
    return schedule.values[k]
