"""Exact privacy profiles: the smallest delta at which a mechanism is (epsilon, delta)-private.

Not in the paper: they are what its guarantees are judged by. A profile of one pair of neighbouring data
sets is a lower bound of the mechanism's, and the probability of any event is a lower bound of the pair's,
so that what is computed here can refute a guarantee but never wrongly.

Source: FA-LD definition (13).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedsim.settings.lazy_import import lazy
from fedsim.settings.validation import Array, fraction, nonnegative, positive, real

from .setting import PrivacySetting
from .terms import exp

brentq = lazy("scipy.optimize", "brentq")
log_ndtr, ndtr = lazy("scipy.special", "log_ndtr", "ndtr")
binom = lazy("scipy.stats", "binom")

Component = tuple[float, float, float]
"""Probability, centre and width of one normal part of a mixture."""

REACH = 12.0
POINTS = 200_001


def gaussian_delta(epsilon: float, shift: float) -> float:
    """Smallest delta for which N(0,1) against N(shift,1) is (epsilon, delta)-private: the exact profile.

    Phi(shift/2 - epsilon/shift) - e^epsilon Phi(-shift/2 - epsilon/shift). Releasing n noisy steps whose
    means move by `shift` standard deviations each is one release with shift * sqrt(n).

    Parameters
    ----------
    epsilon : float
        At least 0, or infinite.
    shift : float
        Distance of the means in standard deviations, at least 0.

    Returns
    -------
    float, from 0 to 1

    Raises
    ------
    ValueError
        For arguments that are negative or not numbers.

    Source: FA-LD definition (13), for one normal against another.

    Examples
    --------
    >>> round(theory.privacy.gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    shifts = np.array([nonnegative_or_inf("shift", shift)])
    return float(gaussian_deltas(nonnegative_or_inf("epsilon", epsilon), shifts)[0])


def nonnegative_or_inf(name: str, value: object) -> float:
    """A real number from 0 on, infinity included."""
    if isinstance(value, (float, np.floating)) and not 0.0 <= value < math.inf:
        if value == math.inf:
            return math.inf
        raise ValueError(f"{name}={value!r} must be at least 0")
    return nonnegative(name, value)


def gaussian_deltas(epsilon: float, shifts: Array) -> Array:
    """`gaussian_delta` for several shifts, (n,), all 0 or none."""
    if epsilon == math.inf or shifts[0] == 0.0:
        return np.zeros_like(shifts)
    with np.errstate(over="ignore"):  # e^epsilon beyond a float64 comes with a tail below it
        centre = epsilon / shifts
        tails = np.exp(epsilon + log_ndtr(-0.5 * shifts - centre))
    return np.maximum(ndtr(0.5 * shifts - centre) - tails, 0.0)


def batches_delta(epsilon: float, shift: float, n_steps: int, batch_fraction: float) -> float:
    """A lower bound of delta when each of `n_steps` steps draws a minibatch; exact where all are full.

    The data sets: all records alike, or one of them changed. A step's mean then moves by `shift` standard
    deviations in the steps that draw the changed record. An observer who only adds the steps up sees
    N(0,1), or N(j shift/sqrt(n), 1) with the binomial probability of j. Their ratio increases along the
    line, so that the worst events are half-lines; both directions are taken.

    Parameters
    ----------
    epsilon, shift : float
    n_steps : int
        At least 1; the result is exact for this pair of data sets when it is 1.
    batch_fraction : float
        In (0, 1]; a step draws the changed record with this probability.

    Source: FA-LD definition (13) and assumption G.2.

    >>> [round(theory.privacy.profiles.batches_delta(epsilon, 1.0, 1, share), 6)
    ...  for epsilon, share in ((1.0, 1.0), (0.1, 0.1))]
    [0.126937, 0.018472]
    """
    if batch_fraction == 1.0:
        return gaussian_delta(epsilon, shift * math.sqrt(n_steps))
    if shift == 0.0 or epsilon == math.inf:
        return 0.0
    counts = np.arange(n_steps + 1.0)
    centres = counts * (shift / math.sqrt(n_steps))
    logs = binom.logpmf(counts, n_steps, batch_fraction)
    chances = np.exp(logs)
    bases = logs - 0.5 * centres**2

    def log_ratio(x: float) -> float:
        powers = bases + x * centres
        largest = powers.max()
        return float(largest + np.log(np.exp(powers - largest).sum()))

    def crossing(level: float) -> float | None:
        low, high = -40.0 - centres[-1], 40.0 + centres[-1]
        if not log_ratio(low) < level < log_ratio(high):
            return None
        return float(brentq(lambda x: log_ratio(x) - level, low, high, xtol=1e-9))

    events = [0.0]
    above, below = crossing(epsilon), crossing(-epsilon)
    if above is not None:
        events.append(float(chances @ ndtr(centres - above)) - exp(epsilon + float(log_ndtr(-above))))
    if below is not None:
        inside = math.log(max(float(chances @ ndtr(below - centres)), math.ulp(0.0)))
        events.append(float(ndtr(below)) - exp(epsilon + inside))
    return max(events)


def mixture_delta(epsilon: float, first: Sequence[Component], second: Sequence[Component],
                  points: int = POINTS) -> float:
    """Exact delta at `epsilon` of one mixture of normals on the line against another.

    The worst event is the set where one density exceeds e^epsilon times the other, a union of intervals
    whose ends are found on a fine grid; as any event gives a lower bound of delta, the grid errs on the
    safe side of a counterexample.

    Parameters
    ----------
    first, second : sequences of (probability, centre, width)
    points : int
        Of the grid.

    Source: FA-LD definition (13).

    >>> round(theory.privacy.profiles.mixture_delta(1.0, [(1.0, 0.0, 1.0)], [(1.0, 1.0, 1.0)]), 6)
    0.126937
    """
    factor = exp(nonnegative("epsilon", epsilon))
    if factor == math.inf:
        return 0.0
    parts = [*first, *((-factor * chance, centre, width) for chance, centre, width in second)]
    low = min(centre - REACH * width for _, centre, width in parts)
    high = max(centre + REACH * width for _, centre, width in parts)
    grid = np.linspace(low, high, points)
    excess = sum(chance / width * np.exp(-0.5 * ((grid - centre) / width) ** 2)
                 for chance, centre, width in parts)
    inside = np.concatenate([[False], excess > 0.0, [False]])
    ends = np.flatnonzero(np.diff(inside.astype(np.int8))).reshape(-1, 2)
    start, stop = grid[ends[:, 0]], grid[ends[:, 1] - 1]
    total = sum(chance * _mass((start - centre) / width, (stop - centre) / width)
                for chance, centre, width in parts)
    return max(float(total), 0.0)


def _mass(low: Array, high: Array) -> float:
    """Probability of the intervals [low, high], in all, under N(0, 1), accurate in both tails."""
    upper = low > 0.0
    return float((ndtr(np.where(upper, -low, high)) - ndtr(np.where(upper, -high, low))).sum())


def drawn_client_delta(epsilon: float, shift: float, drawn: float, gap: float) -> float:
    """Exact delta at `epsilon` of one round in which one client's noisy value is uploaded, for d = 1.

    With probability `drawn` the upload is that of the client with the changed record: N(0,1), or
    N(shift,1) once the record is changed; otherwise another client's, N(gap,1). Units are standard
    deviations of the noise.

    Source: FA-LD definition (13).

    >>> everyone_is_drawn = theory.privacy.profiles.drawn_client_delta(1.0, 1.0, 1.0, 0.0)
    >>> everyone_is_drawn == theory.privacy.profiles.mixture_delta(1.0, [(1.0, 0.0, 1.0)], [(1.0, 1.0, 1.0)])
    True
    """
    shift, drawn, gap = positive("shift", shift), fraction("drawn", drawn), real("gap", gap)
    others = (1.0 - drawn, gap, 1.0)
    return mixture_delta(epsilon, [(drawn, 0.0, 1.0), others], [(drawn, shift, 1.0), others])


def record_shift(given: PrivacySetting, step_size: float, weight: float) -> float:
    """Standard deviations by which one record moves a step whose minibatch holds it.

    (54) without its root of logs: sensitivity sqrt(step_size / (2 weight tau (1 - shared_noise))) /
    batch_fraction.

    Source: FA-LD (53) and (54).

    >>> given = theory.privacy.PrivacySetting(sensitivity=2.0, batch_fraction=1.0, delta0=1e-5, delta1=0.0,
    ...     delta2=0.0, local_steps=1, n_rounds=1, n_clients=2)
    >>> theory.privacy.profiles.record_shift(given, 0.25, 0.5)
    1.0
    """
    private = 2.0 * weight * given.temperature * (1.0 - given.shared_noise)
    return given.sensitivity / given.batch_fraction * math.sqrt(step_size / private)
