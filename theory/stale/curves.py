"""What is read off curves: constants of a rate with several terms, and speedups of W workers over one.

Constants are fitted, and labelled as fitted. Speedups are at equal precision:

iteration speedup = iterations of a single worker / average iterations per worker;
time speedup = time of a single worker / time of W workers.

From a fixed start the variance of an average begins at zero, rises and falls again: "reached" means for
the first time after its maximum. Otherwise the start itself would count as precise.

Source: stale-gradient paper, section 5 for the definitions of speedups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.settings.alignment import aligned, together
from fedsim.settings.lazy_import import lazy
from fedsim.settings.validation import Array, array, instance, positive, shape, whole

from ..exact.delay import AverageLaw
from ..rates import above_zero

nnls = lazy("scipy.optimize", "nnls")


@dataclass(frozen=True, eq=False)
class TermFit:
    """A combination of a rate's terms that lies closest to measured values.

    Attributes
    ----------
    constants : mapping name -> float
        Fitted, each at least 0.
    curve, measured : (n,)
    largest_error : float
        Largest relative deviation of the curve from what was measured.

    Examples
    --------
    >>> fit = theory.stale.fit_constants({"time": [4.0, 2.0, 1.0]}, [8.0, 4.0, 2.0])
    >>> type(fit).__name__, round(fit.constants["time"], 6), round(fit.largest_error, 6)
    ('TermFit', 2.0, 0.0)
    """

    constants: Mapping[str, float]
    curve: Array
    measured: Array
    largest_error: float

    @property
    def label(self) -> str:
        """For a legend."""
        shown = ", ".join(f"{name} {value:.3g}" for name, value in self.constants.items())
        return f"fitted constants: {shown}"


def fit_constants(terms: Mapping[str, Any], measured: Any) -> TermFit:
    """Nonnegative least squares of measured values on the terms of a rate, in relative error.

    Parameters
    ----------
    terms : mapping name -> (n,)
        E.g. the `terms` of a bound of kind "rate", with all constants one.
    measured : (n,)
        Positive.

    Returns
    -------
    TermFit

    Raises
    ------
    ValueError
        For no terms, `measured` that is not greater than 0, and a term of another shape or not finite.

    Source: none; the theorems hold up to constants, which this determines by fitting.

    Examples
    --------
    >>> fit = theory.stale.fit_constants({"time": [4.0, 2.0, 1.0], "step": [1.0, 1.0, 1.0]}, [9.0, 5.0,
    ...     3.0])
    >>> fit.label
    'fitted constants: time 2, step 1'
    """
    if not instance("terms", terms, Mapping):
        raise ValueError("terms must name at least one term")
    measured, *parts = aligned(("measured", measured, 0), *(
        (f"terms[{name!r}]", part, 0) for name, part in terms.items()))
    terms = dict(zip(terms, parts, strict=True))
    values = above_zero("measured", measured)
    table = np.stack([shape(f"terms[{name!r}]", array(f"terms[{name!r}]", part, 1), values.shape,
                            " (one per measured value)") for name, part in terms.items()], axis=1)
    constants = nnls(table / values[:, None], np.ones(len(values)))[0]
    curve = table @ constants
    return TermFit(dict(zip(terms, constants.tolist(), strict=True)), curve, values,
                   float(np.abs(curve / values - 1.0).max()))


def first_reaching(lengths: Any, values: Any, precision: float) -> int | None:
    """First L after the largest value at which a curve is at most `precision`.

    Parameters
    ----------
    lengths : (n,) increasing
    values : (n,)
    precision : float

    Returns
    -------
    int or None
        None when it is not reached.

    Raises
    ------
    ValueError
        For lengths that do not increase, values of another shape, and a precision not greater than 0.

    Source: none; the rule of this module, for the definitions of the stale-gradient paper, section 5.

    Examples
    --------
    >>> theory.stale.first_reaching([1, 2, 3, 4], [0.1, 0.9, 0.5, 0.2], 0.3)
    4
    """
    lengths, values = together(0, lengths=lengths, values=values)
    counts = array("lengths", lengths, 1)
    if (np.diff(counts) <= 0.0).any():
        raise ValueError("lengths must increase")
    curve = shape("values", array("values", values, 1), counts.shape, " (one per length)")
    goal, peak = positive("precision", precision), int(np.argmax(curve))
    below = np.flatnonzero(curve[peak:] <= goal)
    return int(counts[peak + below[0]]) if len(below) else None


def _reached(name: str, law: AverageLaw, precision: float) -> int:
    instance(name, law, AverageLaw)
    length = first_reaching(law.lengths, law.variance, precision)
    if length is None:
        raise ValueError(f"precision={precision!r} is not reached by {name} within {law.lengths[-1]} "
                         f"iterations (variance {law.variance[-1]:.3g})")
    return length


def iteration_speedup(single: AverageLaw, several: AverageLaw, n_workers: int, precision: float) -> float:
    """L_1 / (L_W / W) at equal variance.

    Parameters
    ----------
    single, several : AverageLaw
        Of one worker and of W workers, by the server's iterations.
    n_workers : int
        W.
    precision : float
        Variance to be reached.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For n_workers below 1, a precision not greater than 0, and one that is not reached.

    Source: stale-gradient paper, section 5. Iterations per worker at equal variance obey
    L_1/L_2 = W_2/W_1 by Corollary 5; section 5.1 prints the inverse.

    Examples
    --------
    >>> law = theory.stale.AverageLaw(np.arange(1, 5), np.zeros(4), np.array([0.1, 0.9, 0.5, 0.2]), 0.0,
    ...     "one")
    >>> theory.stale.iteration_speedup(law, law, 2, 0.3)
    2.0
    """
    workers = whole("n_workers", n_workers, 1)
    return _reached("single", single, precision) / (_reached("several", several, precision) / workers)


def time_speedup(single: AverageLaw, several: AverageLaw, times_single: Any, times_several: Any,
                 precision: float) -> float:
    """Ratio of the times at which one worker and W workers reach a variance.

    Parameters
    ----------
    single, several, precision : as for `iteration_speedup`
    times_single, times_several : (n,)
        Time of each update, as in ``fedsim.Workers(...).history(n).times``: simulated time.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For a precision not greater than 0 or not reached, and for times that end before it is, or are not
        greater than 0 there.

    Source: stale-gradient paper, section 5.

    Examples
    --------
    >>> law = theory.stale.AverageLaw(np.arange(1, 5), np.zeros(4), np.array([0.1, 0.9, 0.5, 0.2]), 0.0,
    ...     "one")
    >>> theory.stale.time_speedup(law, law, [1.0, 2.0, 3.0, 4.0], [0.5, 1.0, 1.5, 2.0], 0.3)
    2.0
    """
    moments = []
    for name, law, times in (("single", single, times_single), ("several", several, times_several)):
        clock: Array = array(f"times_{name}", times, 1)
        reached = _reached(name, law, precision)
        if reached > len(clock):
            raise ValueError(f"times_{name} has {len(clock)} entries; update {reached} reaches the precision")
        moments.append(positive(f"times_{name}[{reached - 1}]", float(clock[reached - 1])))
    return moments[0] / moments[1]
