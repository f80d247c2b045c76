"""How good predicted probabilities are, and their average over samples of the parameters.

A posterior predictive is the average over samples of the probabilities that each of them predicts; scores are
of that average, not averages of scores. Probabilities (m, C) are of m rows and C classes, labels (m,) in
0, ..., C-1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..settings.alignment import aligned, together
from ..settings.validation import Array, array, as_array, entry_of, flag, shape, unmasked, whole

N_BINS = 15
"""Of `calibration_error`, as in Guo et al. (2017)."""
LEAST = 1e-300
"""Probabilities below it count as this in `log_loss`."""


def predictive(probabilities: Any, running: bool = False) -> Array:
    """Posterior predictive: the average of the probabilities that samples predict.

    Parameters
    ----------
    probabilities : (n, m, C)
        Of n samples, e.g. ``problem.probabilities(samples, features)``.
    running : bool
        The averages of the first 1, 2, ..., n samples, instead of the last of them.

    Returns
    -------
    (m, C), or (n, m, C) with `running`

    Raises
    ------
    ValueError
        Where these are no probabilities.

    Source: FA-LD section 6.2; FA-HMC section 5.4.

    Examples
    --------
    >>> samples = [[[1.0, 0.0]], [[0.5, 0.5]]]
    >>> fs.estimators.predictive(samples).tolist()
    [[0.75, 0.25]]
    >>> fs.estimators.predictive(samples, running=True).tolist()
    [[[1.0, 0.0]], [[0.75, 0.25]]]
    """
    for axis in (1, 2):
        probabilities = aligned(("probabilities", probabilities, axis))[0]
    chances = _chances(probabilities, 3)
    if not flag("running", running):
        return np.asarray(chances.mean(axis=0))
    return np.cumsum(chances, axis=0) / np.arange(1.0, len(chances) + 1.0)[:, None, None]


def _chances(probabilities: Any, axes: int = 2) -> Array:
    chances = array("probabilities", probabilities, axes)
    off = np.abs(chances.sum(axis=-1) - 1.0)
    for place in np.argwhere((chances.min(axis=-1) < 0.0) | (off > 1e-6)):
        row = chances[tuple(place)]
        raise ValueError(f"{entry_of('probabilities', place)} has entries from {row.min():g} on and the sum "
                         f"{row.sum():g}; they must be at least 0 and sum to 1")
    return chances


def _checked(probabilities: Any, labels: Any) -> tuple[Array, np.ndarray]:
    """Probabilities (m, C) and labels (m,)."""
    probabilities, labels = together(0, probabilities=probabilities, labels=labels)
    chances = _chances(probabilities)
    try:
        numbers = as_array(unmasked("labels", labels))
    except ValueError as error:  # ragged or masked
        raise ValueError(f"labels must be an array of integers ({error})") from None
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"labels must be an array of integers, got dtype {numbers.dtype}")
    shape("labels", numbers, (len(chances),), " (one per row of probabilities)")
    for place in np.flatnonzero((numbers < 0) | (numbers >= chances.shape[1])):
        raise ValueError(f"labels[{place}]={numbers[place]} must lie in 0, ..., {chances.shape[1] - 1}, the "
                         "classes of probabilities")
    return chances, numbers


def accuracy(probabilities: Any, labels: Any) -> float:
    """Share of rows whose most probable class is the label; of equal ones the first counts.

    Parameters
    ----------
    probabilities : (m, C)
    labels : (m,) integers

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> fs.estimators.accuracy([[0.9, 0.1], [0.5, 0.5]], [0, 1])
    0.5
    """
    chances, numbers = _checked(probabilities, labels)
    return float((chances.argmax(axis=1) == numbers).mean())


def brier_score(probabilities: Any, labels: Any) -> float:
    """Mean over rows of sum_k (P_k - 1{y = k})^2, from 0 to 2: not divided by the number of classes.

    Parameters
    ----------
    probabilities : (m, C)
    labels : (m,) integers

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: G. W. Brier, Verification of forecasts expressed in terms of probability (1950).

    Examples
    --------
    >>> round(fs.estimators.brier_score([[0.9, 0.1], [0.5, 0.5]], [0, 1]), 12)
    0.26
    """
    chances, numbers = _checked(probabilities, labels)
    return float(((chances - np.eye(chances.shape[1])[numbers]) ** 2).sum(axis=1).mean())


def log_loss(probabilities: Any, labels: Any) -> float:
    """Mean over rows of -log P_y, in nats: the negative log likelihood of a row.

    Parameters
    ----------
    probabilities : (m, C)
        Those of the labels count as 1e-300 where they are less.
    labels : (m,) integers

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> round(fs.estimators.log_loss([[0.9, 0.1], [0.5, 0.5]], [0, 1]), 6)
    0.399254
    """
    chances, numbers = _checked(probabilities, labels)
    return float(-np.log(np.maximum(chances[np.arange(len(numbers)), numbers], LEAST)).mean())


def calibration_error(probabilities: Any, labels: Any, n_bins: int = N_BINS) -> float:
    """Expected calibration error: by how much confidence and accuracy differ, in bins of confidence.

    Confidence is the largest probability of a row. With M bins ((i-1)/M, i/M] it is
    sum over bins of |sum over their rows of (1{correct} - confidence)| / m.

    Parameters
    ----------
    probabilities : (m, C)
    labels : (m,) integers
    n_bins : int
        M. The papers print none; 15 is usual.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Notes
    -----
    It is no proper score: who always says the share of each class is calibrated, and knows nothing.

    Source: C. Guo, G. Pleiss, Y. Sun and K. Weinberger, On calibration of modern neural networks (2017).

    Examples
    --------
    >>> round(fs.estimators.calibration_error([[0.9, 0.1], [0.5, 0.5]], [0, 1]), 12)
    0.3
    """
    chances, numbers = _checked(probabilities, labels)
    count = whole("n_bins", n_bins, 1)
    confidence = chances.max(axis=1)
    edges = np.arange(1, count) / count
    gaps = (chances.argmax(axis=1) == numbers) - confidence
    return float(np.abs(np.bincount(np.searchsorted(edges, confidence), gaps)).sum() / len(gaps))
