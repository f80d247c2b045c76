"""The range and the digits of float64: what is refused, and what is said, where they do not suffice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from fedsim.settings.validation import Array

__all__ = ["PrecisionWarning", "float64_range", "times_squared"]


class PrecisionWarning(UserWarning):
    """A law next to the stability limit has lost digits; the message says how many are left.

    Its variance grows like 1/(limit - step size), a difference of which rounding leaves few digits.

    Examples
    --------
    >>> import warnings
    >>> problem, algorithm = fs.Quadratic([1.0], [[0.0]]), fs.FALD(2.0 * (1.0 - 1e-12))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     law = theory.stationary_law(problem, algorithm)
    >>> caught[0].category is theory.PrecisionWarning
    True
    """


@contextmanager
def float64_range(what: str | Callable[[], str]) -> Iterator[None]:
    """Overflow passes as infinity inside, which the caller looks for; what cannot pass is a ValueError.

    `what` names the arguments, or is called for their names when they are wanted.

    Examples
    --------
    >>> from theory.float_range import float64_range
    >>> with float64_range("step_size=1e200"):
    ...     1e200**2
    Traceback (most recent call last):
    ...
    ValueError: step_size=1e200: an intermediate result leaves the range of float64; rescale the problem
    """
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except (OverflowError, ZeroDivisionError, np.linalg.LinAlgError) as error:
        words = what if isinstance(what, str) else what()
        raise ValueError(f"{words}: an intermediate result leaves the range of float64; rescale the problem"
                         ) from error


def times_squared(step: float, table: Array) -> Array:
    """step^2 times a table, also where the square alone would leave the range.

    Examples
    --------
    >>> from theory.float_range import times_squared
    >>> times_squared(1e200, np.array([0.0, 1e-200])).tolist()
    [0.0, 1e+200]
    """
    square = step * step
    return square * table if 1e-290 < square < 1e290 else step * (step * table)
