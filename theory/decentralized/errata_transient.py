"""The term of Lemmas 8 and 16 for a start apart: a slip in its proof, and bounds that hold without it.

`Instance` has clients on a line, of which the errata of both algorithms compute their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.network import complete, ring
from fedsim.settings.validation import Array

from ..declare.corrections import Evidence
from ..exact import exact_law
from ..facts.constants_of_problem import Constants, constants
from .paper import sgld_erratum as erratum
from .schemes import coupling
from .setting import Setting, setting

HORIZON = 60


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


def step_ratio(it: Instance, n_rounds: int) -> float:
    """What the recursion adds up to, over the printed g^2 (rho^k - g^(2k))/(rho - g^2), for a start apart."""
    s, added_up = it.setting, 0.0
    for k in range(n_rounds):  # e <- rho e + eta (eta + (1 + eta L)^2/mu') g^(2k), the recursion of Lemma 8
        added_up = (1.0 - s.alpha * s.mu_prime) * added_up + s.alpha * s.drift * s.second ** (2 * k)
    return added_up / float(s.second**2 * s.geometric(n_rounds))


def without_the_term(it: Instance) -> tuple[Array, Array]:
    """Lemma 8 and (30) with the term deleted, at iterations 0, ..., HORIZON, from (26) and (27)."""
    s, main = it.setting, it.setting.disagreement_sq
    average = s.initialization(np.arange(HORIZON + 1)) + s.euler + s.noise + np.sqrt(main)
    return np.full(HORIZON + 1, main + s.noise**2), average


def statement_ratios(it: Instance) -> tuple[float, float]:
    """Largest exact / bound without the term, of Lemma 8 and of (30)."""
    lemma, theorem = without_the_term(it)
    exact = coupling(it.problem, it.algorithm, HORIZON, it.first, alpha=it.alpha).average_to_euler
    w2 = exact_law(it.problem, it.algorithm, HORIZON, start=it.first).w2()
    return float((exact / lemma).max()), float((w2 / theorem).max())


LAZY = pair(0.5)
INSTANCES = (
    Instance((1.0, 2.0), (0.0, 0.0), (10.0, -10.0), LAZY, 0.2),
    Instance((100.0, 200.0), (0.0, 0.0), (1e3, -1e3), LAZY, 3e-3, 5.0),
    Instance((1.0, 2.0), (0.0, 0.0), (1e4, -1e4), complete(2), 0.3),
    Instance((0.5, 3.0, 1.0, 2.0, 0.7), (1.0, -4.0, 2.0, 0.0, 3.0), (30.0, -20.0, 5.0, -40.0, 25.0), ring(5),
             0.1, 2.0),
    Instance((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (3.0, 1.0, -2.0), complete(3), 0.02, 1e3),
    Instance((1.0, 1.0, 5.0, 5.0), (0.0, 0.0, 0.0, 0.0), (3e6, 3.1e6, 2.9e6, 3e6), ring(4), 0.01),
)


@erratum("transient", "proof of Lemma 8 (and so Lemma 16)", "proof", "nothing",
         ("coupling_bound", "w2_bound", "w2_clients_bound", "de_sghmc.coupling_bound", "de_sghmc.w2_bound",
          "de_sghmc.w2_clients_bound"),
         "sum_i rho^i eta (eta + (1+eta L)^2/mu') (4 L^2 g^(2(k-i))/N) E|x^(0)|^2 = ... (g^(2k) - rho^k)/(1 "
         "- rho g^-2) (4 L^2/N) E|x^(0)|^2",
         "eta (eta + (1+eta L)^2/mu') (rho^k - g^(2k))/(rho - g^2) (4 L^2/N) E|x^(0)|^2; or no term at all")
def transient(stepped: Instance = INSTANCES[0], instances: tuple[Instance, ...] = INSTANCES) -> Evidence:
    """mu' = mu (1 - eta L/2), rho = 1 - eta mu', g = gamma-bar. e <- rho e + c g^(2k) X adds up to c X
    (rho^k - g^(2k))/(rho - g^2): the display has g^(2(k-i)) for g^(2(k-1-i)), then loses c. Yet Lemma 8,
    so (20) and (30), hold without the term. In L2 norms: by (61) and Lemma 5 the clients are Delta_j <=
    g^j S + (1-g^j) a + n from their average; S is that at the start, a = eta D/(1-g), n^2 = (eta^2
    sigma^2 N + 2dN eta)/(1-g^2); by (26) S <= D/(2L). With r = 1 - eta mu the average is at most u + w
    from (24): w^2 <= eta sigma^2/(mu N (2 - eta mu)), u = (eta L/sqrt N) sum_j r^(k-1-j) Delta_j <= t
    (a+n), t = L/(mu sqrt N): clear if S <= a; else eta L < (1-g)/2, so sum_j r^(k-1-j) g^j <= 2
    r^k/(1-g), and S adds at most r^k a to (1-r^k)(a+n). So (u+w)^2 <= 4 t^2 (a^2+n^2) + eta sigma^2/(mu'
    N), at most what is left. Lemma 16, (39), (40) are shown for c_5 >= max(4 eta^2 L^2 S^2, E|v^(0)|^2),
    as (105) with its c~_4 corrected is: with eta^2 for eta, a = eta sqrt(c_5)/(1-g), n = 0, and the
    momentum adds m = (beta/eta) sqrt(c_5)/L to a; by (38) m <= a/16, so (a+m)^2 <= 2 a^2 + m^2.
    """
    # The step of the proof at one instance, and the statements without the term at others. Curvatures 1 and 2
    # on a lazy pair; other networks, starts, noises and units for the statements.
    ratio = step_ratio(stepped, 5)
    longer = Instance(tuple(a / 100.0 for a in stepped.curvatures), stepped.minimizers, stepped.start,
                      stepped.mixing, 100.0 * stepped.alpha)  # the same in units a tenth as long
    lemma, theorem = np.max([statement_ratios(it) for it in instances], axis=0)
    fails, stands = ratio > 1.0, max(lemma, theorem) <= 1.0
    return Evidence(fails and stands, {
        "recursion / printed sum, 5 iterations": ratio,
        "the same with lengths in other units": step_ratio(longer, 5),
        "exact / Lemma 8 without the term, largest": float(lemma),
        "exact W2 / (30) without the term, largest": float(theorem)},
        ("The recursion adds up to more than the printed term. " if fails else
         "The recursion adds up to no more than the printed term here. ")
        + ("With the term deleted Lemma 8 and (30) hold in every instance." if stands else
           "With the term deleted Lemma 8 or (30) is violated."))
