"""FA-HMC's decreasing step sizes: Proposition 4.5 (J.1) with its constants set right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log, sqrt

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.schedules import Listed
from fedsim.validation import one_of, positive

from ..constants import Constants
from .bounds import initial_error
from .planning import kept_error, longest_allowed, prepared, rounds_to_decay

LONGEST = 10**7
"""Local updates a listed schedule may have."""


@dataclass(frozen=True, eq=False)
class DynamicPlan:
    """A schedule in stages, each of which divides the bound on E_t by the same factor.

    Attributes
    ----------
    eps : float
    schedule : fedsim.schedules.Listed
        One step size per local update, constant within each stage.
    stage_rounds, trajectory_lengths, targets : tuple
        Communications and K eta of each stage, and the bound on E at its end.
    n_rounds : int
    algorithm : fedsim.FAHMC
        With this schedule.
    """

    eps: float
    schedule: Listed
    stage_rounds: tuple[int, ...]
    trajectory_lengths: tuple[float, ...]
    targets: tuple[float, ...]
    n_rounds: int
    algorithm: FAHMC


def dynamic_plan(constants: Constants, algorithm: FAHMC, eps: float, *, order: str = "linear") -> DynamicPlan:
    """A decreasing schedule after which the recursion guarantees W2 <= eps, without the factor log(1/eps).

    Parameters
    ----------
    constants, algorithm, eps
        As for `plan`.
    order : "linear" or "quadratic"
        With E_0 the squared W2 at the start, and the error kept at X^2 = g at most
        "linear" C g: the first stage has g = min(E_0/(4 C), cap) and ends when the start has decayed by
        4, so that E <= E_0/2; every further one halves g, lasts twice as long, and halves the bound.
        "quadratic" C g^2, which needs shared momenta (or T = 1) and exact gradients: g = min(sqrt(E_0/(8 C)),
        cap), a decay by 8, and every stage quarters the bound.

    Returns
    -------
    DynamicPlan

    Raises
    ------
    ValueError
        For "quadratic" where the error is not quadratic, and where the schedule would be too long.

    Source: FA-HMC Proposition 4.5 (J.1) with its constants set right. Printed: the start's 8 and step
    eta/sqrt(2) of a = 4 beside a proof for a = 2, and g = E_0/(2 a c_d Delta L), which fits neither an
    error C g nor C g^2.
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
    if begin <= eps**2 or begin == 0.0:
        stages = 0
    else:
        stages = ceil(log(begin / eps**2) / log(shrink) - 1e-12)
    first = rounds_to_decay(s, g, decay)
    total = first * (2**stages - 1) * s.T
    if total > LONGEST:
        raise ValueError(f"eps={eps!r} asks for {total} local updates, more than {LONGEST}; use a larger eps")
    rounds = tuple(first * 2**i for i in range(stages))
    lengths = tuple(sqrt(g / 2**i) for i in range(stages))
    targets = tuple(begin / shrink ** (i + 1) for i in range(stages))
    if not stages:
        rounds, lengths, targets = (0,), (sqrt(g),), (begin,)
    values = np.repeat(np.array(lengths) / s.K, [max(n, int(not stages)) * s.T for n in rounds])
    schedule = Listed(values)
    return DynamicPlan(eps, schedule, rounds, lengths, targets, sum(rounds),
                       replace(algorithm, step_size=schedule))
