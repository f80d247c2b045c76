"""FA-HMC's decreasing step sizes: Proposition 4.5 (J.1) with its constants set right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, exp, log, sqrt

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.settings.schedules import Listed
from fedsim.settings.validation import one_of, positive, real

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from ..facts.constants_of_problem import Constants
from ..theorem_parts import accuracy, half_start
from ..tuning import Plan
from .notation import FULL, Setting, theorem
from .planning import kept_error, longest_allowed, prepared, rounds_to_decay
from .rates import MODERATE, ROUNDS, halvings, inverse_squared_length, printed_rounds
from .theorem_44 import initial_error

LONGEST = 10**7
"""Local updates a listed schedule may have."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DynamicPlan(Plan):
    """A `Plan` of stages, at whose ends the bound on E_t is below levels that fall by the same factor.

    Attributes
    ----------
    schedule : fedsim.schedules.Listed
        The algorithm's: one step size per local update, constant within each stage.
    stage_rounds, trajectory_lengths, targets : tuple
        Communications and K eta of each stage, and the bound on E at its end.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 1.1], [[0.0], [0.2]]), fs.FAHMC(1.0, 2, local_steps=2)
    >>> found = theory.fa_hmc.dynamic_plan(theory.constants(problem, algorithm, [3.0]), algorithm, 1.5)
    >>> found.stage_rounds, [round(target, 2) for target in found.targets]
    ((269, 538, 1076), [4.67, 2.33, 1.17])
    """

    stage_rounds: tuple[int, ...] = ()
    trajectory_lengths: tuple[float, ...] = ()
    targets: tuple[float, ...] = ()

    @property
    def schedule(self) -> Listed:
        """That of the algorithm."""
        schedule: Listed = self.algorithm.schedule
        return schedule


def dynamic_plan(constants: Constants, algorithm: FAHMC, eps: float, *, order: str = "linear") -> DynamicPlan:
    """A decreasing schedule after which the recursion guarantees W2 <= eps, without the factor log(1/eps).

    Parameters
    ----------
    constants, algorithm, eps
        As for `plan`.
    order : "linear" or "quadratic"
        With E_0 the squared W2 at the start, and the error kept at X^2 = g at most
        "linear" C g: the first stage has g = min(E_0/(4 C), cap) and lasts until the start has decayed
        by 4; every further one halves g and lasts twice as long, and each ends with at most half of what
        it began with. "quadratic" C g^2, which needs shared momenta (or T = 1) and exact gradients:
        g = min(sqrt(E_0/(8 C)), cap), a decay by 8, and every stage leaves at most a quarter.

    Returns
    -------
    DynamicPlan

    Raises
    ------
    ValueError
        As for `plan`, for "quadratic" where the error is not quadratic, and where the schedule would be too
        long.

    Source: FA-HMC Proposition 4.5 (J.1) with its constants set right. Printed: the start's 8 and step
    eta/sqrt(2) of a = 4 beside a proof for a = 2, and g = E_0/(2 a c_d Delta L), which fits neither an
    error C g nor C g^2.

    Later stages let the start decay by less than 4 (8): (1 - x/y)^y grows with y. With x = mu g/4 <= 1/16
    (cap), y log(1 - x/y)/log(1 - x) >= x/(-log(1 - x)) >= .968, a decay by 3.83 (7.49) at least. A stage
    that keeps the share q of its start E ends at q E + (1-q) kept with kept <= E/4 (E/8), so at most
    (1/3.83 + .75/4) E < E/2 (or (1/7.49 + .875/8) E < E/4).

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 1.1], [[0.0], [0.2]]), fs.FAHMC(1.0, 2, local_steps=2)
    >>> found = theory.fa_hmc.dynamic_plan(theory.constants(problem, algorithm, [3.0]), algorithm, 1.5)
    >>> found.n_rounds, found.algorithm.schedule.n_steps
    (1883, 3766)
    """
    eps = positive("eps", eps)
    s = prepared(constants, algorithm)
    begin, cap = initial_error(constants, s), longest_allowed(s)
    power = {"linear": 1, "quadratic": 2}[one_of("order", order, ("linear", "quadratic"))]
    if power == 2 and (s.sigma_sq > 0.0 or (s.spread > 0.0 and s.T > 1)):
        raise ValueError(f"order={order!r} needs exact gradients and shared_noise=1 (or local_steps=1): "
                         "otherwise the error that is kept is linear in the squared trajectory length")
    shrink, decay = 2.0**power, 2.0 ** (power + 1)
    coefficient = kept_error(s, cap) / cap**power  # error/g^power increases with g
    g = min((begin / (decay * coefficient)) ** (1.0 / power), cap)
    # by logarithms, as eps**2 may be no float
    above = log(begin) - 2.0 * log(eps) if begin > 0.0 else 0.0
    stages = max(ceil(above / log(shrink) - 1e-12), 0)
    first = rounds_to_decay(s, g, decay)
    total = first * (2**stages - 1) * s.T
    if total > LONGEST:
        raise ValueError(f"eps={eps!r} asks for more than {LONGEST} local updates; use a larger eps")
    rounds = tuple(first * 2**i for i in range(stages)) or (0,)
    lengths = tuple(sqrt(g / 2**i) for i in range(len(rounds)))
    targets = tuple(begin / shrink ** (i + 1) for i in range(stages)) or (begin,)
    schedule = Listed(np.repeat(np.array(lengths) / s.K, [max(n, 1) * s.T for n in rounds]))
    return DynamicPlan(eps=eps, step_size=schedule.largest, n_rounds=sum(rounds),
                       algorithm=replace(algorithm, step_size=schedule), theorem="fa_hmc.w2_bound",
                       limited_by="schedule", stage_rounds=rounds, trajectory_lengths=lengths,
                       targets=targets)


def _printed_length(s: Setting, eps: float) -> float:
    """Proposition 4.5's g, the minimum of 1/sqrt(L) and 1 over the other three parts."""
    return 1.0 / max((inverse_squared_length(s, eps) | {"smoothness": sqrt(s.L)}).values())


@theorem("Proposition 4.5 (J.1)", quantity="rounds_to_w2", kind="rate", terms=ROUNDS,
         source="FA-HMC Proposition 4.5", inputs=half_start,
         hypotheses=(Hypothesis("step sizes in stages, as `dynamic_plan`"), *MODERATE, FULL),
         variants={"sharp": "", "printed": "as printed; it has no smoothness term"})
def dynamic_rate(s: Setting, constants: Constants, variant: str, *, eps: float) -> Terms:
    """Shape of the rounds to W2 <= eps with step sizes that fall in stages.

    Guarantee: rounds = O(value), with 1/g of `theory.fa_hmc.rates` but T in the correlation,

        (4/(mu T)) [ L log(2 E_0/eps^2) + T sqrt(d)/eps + d T (1-rho) N/eps^2
                     + d sum_c w_c^2 sigma_g^2/(K eps^2) ]

    Source: FA-HMC Proposition 4.5 (J.1). Printed: t <= C c_d d (T^2 (g + (1-rho) N)
    + sum_c w_c^2 sigma_g^2/K)/eps^2 iterations, g the minimum of 1/sqrt(L) and 1 over the other three parts.
    "sharp": stage s halves E_s = E_0/2^s with the step size of `rounds_rate` for that accuracy, which takes
    (4 log(4)/mu)/g_s updates; the parts of 1/g_s in 1/eps_s and 1/eps_s^2 add up to a multiple of the
    last, that of L is there in each of the log_2(E_0/eps^2) stages.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_hmc.dynamic_rate(known, algorithm, eps=0.01)
    >>> bound.kind, float(bound.value[0].round(1))
    ('rate', 412.0)
    """
    small = accuracy(eps)
    if variant == "printed":
        parts = printed_rounds(s, s.c_d * s.d / small**2, _printed_length(s, small))
    else:
        inverse = inverse_squared_length(s, small, 1)
        inverse["smoothness"] *= halvings(constants, s, small)
        parts = {name: 4.0 / (s.mu * s.T) * part for name, part in inverse.items()}
    return Terms(parts, rounds=np.array([0]), inputs={"eps": small})


ALIKE = "shared_noise=1 (or local_steps=1) and exact gradients"
FALLS = "fall <= 4"


@theorem("Proposition J.1 (42)", quantity="rounds_to_w2", kind="rate", terms=ROUNDS,
         source="FA-HMC Proposition J.1, equation (42)", inputs=half_start,
         arguments={"fall": "float: a > 1, by which the bound on E_t falls in each stage."},
         hypotheses=(Hypothesis("stages that double, with step sizes that fall by a^(1/4)"),
                     Hypothesis(ALIKE, lambda s: Assumption.yes(ALIKE, s.sigma_sq == 0.0 and (
                         s.spread == 0.0 or s.T == 1))),
                     Hypothesis(FALLS, lambda fall: Assumption.at_most(FALLS, float(fall), 4.0)),
                     *MODERATE[:2], FULL),
         variants={"sharp": "", "printed": "as printed, for any a"})
def stages_rate(s: Setting, constants: Constants, variant: str, *, eps: float, fall: float = 4.0) -> Terms:
    """Shape of the rounds to W2 <= eps with stages that double while the squared error falls by a in each.

    Guarantee, for 1 < a <= 4, shared momenta (or T = 1) and exact gradients: rounds = O(value), the value
    being

        (4 log(2a)/(mu T)) [L + T sqrt(2 a d/E_0)] (E_0/eps^2)^(log_a 2)

    Source: FA-HMC Proposition J.1, (42), the "stronger result" of its proof. Printed for any a > 0: t = (4
    log(2a)/mu) (c_d Delta/D) (D/eps^2)^(log_a 2) updates, with Delta = d (T^2 (g + (1-rho) N) + sum_c w_c^2
    sigma_g^2/K) and D for E_0.

    Proof, with X^2 = g, where Theorem 4.4 keeps an error of order C g^2, C = d T^2 (hence the hypothesis on
    momenta and gradients: otherwise it is of order g). Stage j has g_j = g_1 a^(-(j-1)/2), with C g_1^2 <=
    E_0/(2a) and g_1 <= 1/L, and 2^(j-1) t_1 updates, t_1 = 4 log(2a)/(mu g_1). Of its start at most
    exp(-mu g_j 2^(j-1) t_1/4) <= 1/(2a) is left, because (2/sqrt(a))^(j-1) >= 1 for a <= 4, and what is kept
    is at most E_0/(2 a^j), so that E <= E_0/a^j after stage j. log_a(E_0/eps^2) stages, rounded up, take at
    most 2 t_1 (E_0/eps^2)^(log_a 2) updates.

    For a > 4 these stages do not get there (erratum any_fall): the sum of g_j t_j is then finite, and for
    small steps the share (2a)^(-sqrt(a)/(sqrt(a)-2)) of E_0 stays in the recursion. Nor would other step
    sizes do: an error of order g^2 allows no fewer than order 1/eps rounds, which a = 4 has, sqrt(d)/eps.
    The proposition itself takes a = 2.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_hmc.stages_rate(known, algorithm, eps=0.01)
    >>> float(bound.value[0].round(1)), bound.violated
    (2609.8, ())
    """
    small, a = accuracy(eps), real("fall", fall)
    if a <= 1.0:
        raise ValueError(f"fall={fall!r} must be greater than 1: the error has to fall")
    begin = initial_error(constants, s)
    if begin <= small**2:
        return Terms({"bias": 0.0}, rounds=np.array([0]), inputs={"eps": small})
    stages = exp(log(2.0) / log(a) * (log(begin) - 2.0 * log(small)))
    size = 4.0 * log(2.0 * a) / (s.mu * s.T) * stages
    if variant == "printed":
        terms = printed_rounds(s, size * s.T * s.c_d * s.d / begin, _printed_length(s, small))
    else:
        terms = {"smoothness": size * s.L, "bias": size * s.T * sqrt(2.0 * a * s.d / begin)}
    return Terms(terms, rounds=np.array([0]), inputs={"eps": small})
