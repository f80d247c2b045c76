"""Clients on a line, of which the errata of both algorithms compute their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array

from ..facts import Constants, constants
from .setting import Setting, setting


def pair(second: float) -> Array:
    """Mixing matrix of two clients, weights (1 +- second)/2; `second` is both gamma-bar and lambda_N."""
    return 0.5 * np.array([[1.0 + second, 1.0 - second], [1.0 - second, 1.0 + second]])


@dataclass(frozen=True)
class Instance:
    """Clients f_i = a_i (x - b_i)^2/2 with gradient noise of standard deviation `noise`, under DE-SGLD.

    alpha is the step size of the average, as in `Setting`.
    """

    curvatures: tuple[float, ...]
    minimizers: tuple[float, ...]
    start: tuple[float, ...]
    mixing: Array
    alpha: float
    noise: float = 0.0

    @property
    def problem(self) -> Quadratic:
        """The components."""
        minimizers = np.array(self.minimizers)[:, None]
        return Quadratic.from_components(self.curvatures, minimizers, self.noise or None)

    @property
    def first(self) -> Array:
        """x^(0), (N, 1)."""
        return np.array(self.start)[:, None]

    @property
    def algorithm(self) -> Any:
        """DE-SGLD with step size alpha."""
        return DESGLD(self.alpha, self.mixing)

    @cached_property
    def constants(self) -> Constants:
        """Of problem and start."""
        return constants(self.problem, self.algorithm, self.first)

    @cached_property
    def setting(self) -> Setting:
        """The paper's letters."""
        return setting(self.constants, self.algorithm, self.alpha)


class Undamped(Instance):
    """The same under DE-SGHMC with friction 1/eta: beta = 0, so that q_1 = 0 and q = 1 - 2 c_1."""

    @property
    def algorithm(self) -> DESGHMC:
        """DE-SGHMC with step size sqrt(alpha)."""
        eta = float(np.sqrt(self.alpha))
        return DESGHMC(eta, 1.0 / eta, self.mixing)
