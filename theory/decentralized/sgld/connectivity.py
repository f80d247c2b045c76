"""DE-SGLD Remark 3: Theorem 1's bound grows with gamma-bar, everything else the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.settings.validation import Array, whole

from ...bound import Bound
from ...checking import Measured, quantity
from ...facts import Constants
from ...statement import Terms
from .bounds import clients_terms
from .paper import HYPOTHESES, theorem
from .quantities import one_number
from .setting import Setting, setting

N_VALUES = 60


@dataclass(frozen=True, eq=False)
class Connectivity:
    """Theorem 1's bound for the clients along values of gamma-bar.

    Attributes
    ----------
    second : (m,)
        gamma-bar, rising from |lambda_N| towards one.
    value : (m,)
        The bound, equation (20), with lambda_N, step size and constants the same.

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


def connectivity(constants: Constants, algorithm: DESGLD, n_rounds: int) -> Connectivity:
    """Theorem 1's bound for the clients after `n_rounds`, as printed, for gamma-bar from |lambda_N| to one.

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGLD
        Constant step size; of its network lambda_N counts.
    n_rounds : int

    Returns
    -------
    Connectivity

    Raises
    ------
    NotApplicable
        As for `w2_bound`.
    ValueError
        As for `setting`, and for n_rounds below 0.

    Source: DE-SGLD Remark 3.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> known = theory.constants(problem, algorithm, [1.0])
    >>> theory.de_sgld.connectivity(known, algorithm, 100).decrease < 0.0
    True
    """
    s, rounds = setting(constants, algorithm), np.array([whole("n_rounds", n_rounds)])
    widest = 1.0 - abs(s.smallest) if s.N > 1 else 1.0
    second = 1.0 - widest * np.geomspace(1.0, 1e-6, N_VALUES)
    value = [sum(np.sum(part) for part in clients_terms(replace(s, second=float(gamma)), rounds,
                                                        "printed").values()) for gamma in second]
    return Connectivity(second, np.array(value, dtype=np.float64))


def _decrease(bound: Bound, law: Any, level: float) -> Measured:
    if not isinstance(law, Connectivity):
        raise ValueError(f"law={law!r} must be a theory.de_sgld.Connectivity: the statement is about a bound")
    return one_number(law.decrease)._replace(scale=1.0)


quantity("connectivity_decrease", "largest relative fall of Theorem 1's bound as gamma-bar grows", _decrease,
         lambda problem, algorithm, bound, n_rounds, start, record: bound.inputs["connectivity"])


@theorem("section 3, Remark 3", quantity="connectivity_decrease", terms=("zero",), hypotheses=HYPOTHESES,
         source="DE-SGLD Remark 3")
def connectivity_bound(s: Setting, constants: Constants, algorithm: DESGLD, n_rounds: int) -> Terms:
    """Theorem 1's bound for the clients falls nowhere as gamma-bar grows.

    Guarantee: the largest fall of equation (20) between neighbouring values of gamma-bar is at most 0.

    Source: DE-SGLD Remark 3.

    The bound is looked at after `n_rounds`, whatever is recorded.

    Examples
    --------
    >>> bound.value.tolist(), round(bound.inputs["connectivity"].decrease, 3)
    ([0.0], -0.034)
    """
    return Terms({"zero": 0.0}, rounds=np.array([0]),
                 inputs={"connectivity": connectivity(constants, algorithm, n_rounds)})
