"""DE-SGLD Remark 3: Theorem 1's bound grows with gamma-bar, everything else the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.validation import Array, whole

from ..bound import Bound
from ..catalogue import theorem
from ..check import Measured, quantity
from ..constants import Constants
from .bounds import HYPOTHESES, clients_terms
from .quantities import one_number
from .setting import PAPER, applicable, hypotheses, setting

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
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> connectivity(constants(problem, algorithm, [1.0]), algorithm, 100).decrease < 0.0
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


@theorem(id="de_sgld.connectivity_bound", paper=PAPER, number="section 3, Remark 3", kind="upper",
         quantity="connectivity_decrease", algorithm=DESGLD, convention="components", hypotheses=HYPOTHESES,
         variants=("printed",), applies=applicable)
def connectivity_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
                       variant: str = "printed") -> Bound:
    """Theorem 1's bound for the clients falls nowhere as gamma-bar grows.

    Guarantee: the largest fall of equation (20) between neighbouring values of gamma-bar is at most 0.

    Source: DE-SGLD Remark 3.

    Parameters
    ----------
    constants, algorithm
        As for `w2_bound`.
    n_rounds : int
        The iteration at which the bound is looked at.
    record
        Not used.
    variant : "printed"

    Returns
    -------
    Bound on "connectivity_decrease" of value 0.

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    s = setting(constants, algorithm)
    return Bound.from_terms(
        {"zero": 0.0}, np.array([0]), assumptions=hypotheses(s), quantity="connectivity_decrease",
        kind="upper", source="DE-SGLD Remark 3", variant=variant,
        inputs={"connectivity": connectivity(constants, algorithm, n_rounds)})
