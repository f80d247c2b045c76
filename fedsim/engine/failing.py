"""Which gradient stopped a run: the block is run again up to there, the last round with a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problems.failing import GradientError, gradient_error, traced, unknown_place
from .state import arrays_in


def failed_gradient(stopped: Any, last: int) -> GradientError | None:
    """Why a block's part stopped before round `last`; None where no gradient of one's own fails there."""
    trace = unknown_place(stopped.job.problem.dim)
    arrays = traced(stopped.state.arrays, trace)
    if arrays is None:
        return None
    part = type(stopped)(stopped.job, stopped.first, stopped.last)
    part.run_plainly(stopped.done, max(stopped.done, 1))
    for number in range(stopped.done, last):
        before = [(array, array.copy()) for array in arrays_in(part.state.work) if array.flags.writeable]
        try:
            part.run_plainly(number + 1, 1)
        except Exception as error:
            for array, values in before:
                array[...] = values
            return _located(part, part.state._replace(arrays=arrays), trace, number, error)
    return None


def _located(part: Any, state: Any, trace: Any, number: int, failed: Exception) -> GradientError | None:
    """Round `number` + 1 again, with a trace."""
    part.state = state
    try:
        part.run_plainly(number + 1, 1)
    except type(failed) as error:
        if np.isnan(trace[0]):
            return None
        replica = min(part.first + int(trace[1]), part.last - 1)
        return gradient_error(error, int(trace[0]), trace[2:].copy(), number + 1, replica)
    return None


