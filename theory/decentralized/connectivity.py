"""What Remarks 3 and 12 say: how the clients' bounds of Theorems 1 and 11 grow with gamma-bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from ..judge.checking import Measured
from ..theorem_parts import Source
from .setting import Setting

N_VALUES = 60


@dataclass(frozen=True, eq=False)
class Connectivity:
    """A theorem's bound for the clients along values of gamma-bar.

    Attributes
    ----------
    second : (m,)
        gamma-bar, rising from |lambda_N| towards one.
    value : (m,)
        The bound, with lambda_N, step size and constants the same.

    Examples
    --------
    >>> theory.de_sgld.Connectivity(np.array([0.0, 0.5, 0.9]), np.array([1.0, 2.0, 1.0])).decrease
    1.0
    """

    second: Array
    value: Array

    @property
    def decrease(self) -> float:
        """The largest fall of the bound between neighbours, relative to it; below 0 where it only grows."""
        return float((-np.diff(self.value) / self.value[1:]).max())


def along_gamma_bar(s: Setting, terms: Callable[[Setting], Mapping[str, Any]]) -> Connectivity:
    """The sum of some terms for gamma-bar from |lambda_N| to one."""
    widest = 1.0 - abs(s.smallest) if s.N > 1 else 1.0
    second = 1.0 - widest * np.geomspace(1.0, 1e-6, N_VALUES)
    value = [sum(np.sum(part) for part in terms(replace(s, second=float(gamma))).values())
             for gamma in second]
    return Connectivity(second, np.array(value, dtype=np.float64))


Source(Connectivity, "a theory.de_sgld.Connectivity: the statement is about a bound",
       lambda bound: bound.inputs["connectivity"], False).enter(
    "connectivity_decrease", "largest relative fall of a clients' bound as gamma-bar grows",
    lambda bound, law: Measured(np.array([law.decrease]), np.array([0]), 1.0))
