"""Constants of a rate with several terms, fitted and labelled as fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from fedsim.settings.validation import Array, array, shape


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
    if not terms:
        raise ValueError("terms must name at least one term")
    values = array("measured", measured, 1)
    if (values <= 0.0).any():
        raise ValueError(f"measured has an entry {values.min():g}; all must be greater than 0")
    table = np.stack([shape(f"terms[{name!r}]", array(f"terms[{name!r}]", part, 1), values.shape,
                            " (one per measured value)") for name, part in terms.items()], axis=1)
    found = nnls(table / values[:, None], np.ones(len(values)))[0]
    curve = table @ found
    constants = {name: float(value) for name, value in zip(terms, found, strict=True)}
    return TermFit(constants, curve, values, float(np.abs(curve / values - 1.0).max()))
