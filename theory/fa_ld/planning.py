"""FA-LD's planning rule (section 4.3.1, "Optimal choice of K"), made explicit.

To be within eps, Theorem 4.9's two terms are made eps/2 each:

    eta m = min{ m/(2L), eps^2 / (3600 d kappa^2 ((K-1)^2 + kappa) H_rho) }
    T     = (4/(eta m)) log( 2 sqrt(2d) (D + sqrt(tau/m)) / eps )    local steps,   T/K rounds.

Away from the cap the rounds are proportional to ((K-1)^2 + kappa)/K, least at K = sqrt(1 + kappa).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, sqrt

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.validation import positive, real, whole

from ..bound import Bound
from ..constants import Constants
from ..tuning import planner
from .bounds import _refuse_participation, w2_bound
from .setting import setting


@dataclass(frozen=True)
class Plan:
    """Step size and effort that a bound asks for.

    Attributes
    ----------
    eps : float
        W2 to be reached.
    step_size : float
    local_steps : int
        K.
    n_steps : int
        Local steps, a multiple of K.
    n_rounds : int
    cap_binds : bool
        True when the step size is the largest that the theorem allows, 1/(2L); then rounds go like
        1/K until it stops binding, whatever kappa is.
    algorithm : fedsim.FALD
        With this step size.
    """

    eps: float
    step_size: float
    local_steps: int
    n_steps: int
    n_rounds: int
    cap_binds: bool
    algorithm: FALD

    @property
    def note(self) -> str:
        """One sentence when the cap binds."""
        if not self.cap_binds:
            return ""
        return ("the cap step_size = 1/(2 smoothness) binds: the accuracy term does not decide, and rounds "
                "fall like 1/local_steps until it does")


def plan(constants: Constants, algorithm: FALD, eps: float) -> Plan:
    """Step size and rounds after which Theorem 4.9 guarantees W2 <= eps.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        Its step size is replaced; local steps, temperature and shared noise are kept. Full
        participation.
    eps : float
        W2 to be reached, positive.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-LD section 4.3.1 and appendix B.2, with the constants filled in and H_rho for H_0.
    """
    eps = positive("eps", eps)
    _guaranteed(constants, algorithm)
    _refuse_participation(algorithm)
    s = setting(constants, algorithm)
    wanted = eps**2 / (3600.0 * s.d * s.kappa**2 * ((s.K - 1) ** 2 + s.kappa) * s.H)
    cap = s.m / (2.0 * s.L)
    rate = min(cap, wanted)
    if rate <= 0.0:
        raise ValueError(f"eps={eps!r} is too small: the planned step size underflows")
    steps = max(4.0 / rate * np.log(2.0 * s.start / eps), 0.0)
    n_rounds = ceil(steps / s.K)
    return Plan(eps, rate / s.m, s.K, n_rounds * s.K, n_rounds, cap <= wanted,
                replace(algorithm, step_size=rate / s.m))


def _guaranteed(constants: Constants, algorithm: FALD) -> Bound:
    """Theorem 4.9 at its largest step size: checks the arguments in the theorem's own words."""
    if not isinstance(algorithm, FALD):
        raise ValueError(f"algorithm={algorithm!r} must be a FALD")
    _refuse_participation(algorithm)
    cap = 0.5 / constants.smoothness if isinstance(constants, Constants) else 1.0
    return w2_bound(constants, replace(algorithm, step_size=cap), n_rounds=0)


def optimal_local_steps(condition_number: float, *, rule: str = "(K-1)^2") -> tuple[int, ...]:
    """Local steps that minimise the predicted rounds while the cap does not bind.

    Parameters
    ----------
    condition_number : float
        kappa, at least 1.
    rule : "(K-1)^2" or "K^2"
        Minimise ((K-1)^2 + kappa)/K (Theorem 4.9), least at sqrt(1 + kappa), or (K^2 + kappa)/K (the
        text of section 4.3.1), least at sqrt(kappa).

    Returns
    -------
    Every integer minimiser, increasing: two where there is a tie.

    Source: FA-LD section 4.3.1.

    Examples
    --------
    >>> optimal_local_steps(33.97), optimal_local_steps(1.0)
    ((6,), (1, 2))
    """
    kappa = real("condition_number", condition_number)
    if kappa < 1.0:
        raise ValueError(f"condition_number={condition_number!r} must be at least 1")
    if rule not in ("(K-1)^2", "K^2"):
        raise ValueError(f"rule={rule!r} must be one of '(K-1)^2', 'K^2'")
    best = sqrt(1.0 + kappa) if rule == "(K-1)^2" else sqrt(kappa)
    candidates = sorted({max(1, floor(best) + shift) for shift in (-1, 0, 1)})
    shift = 1 if rule == "(K-1)^2" else 0
    cost = [((K - shift) ** 2 + kappa) / K for K in candidates]
    least = min(cost)
    return tuple(K for K, c in zip(candidates, cost, strict=True) if c <= least * (1.0 + 1e-14))


def best_plan(constants: Constants, algorithm: FALD, eps: float, *, largest: int = 10**6) -> Plan:
    """The plan with the fewest predicted rounds over `local_steps`, with the cap taken into account.

    Parameters
    ----------
    constants, algorithm, eps
        As for `plan`; the algorithm's own local steps are replaced too.
    largest : int
        Search up to this many local steps.

    Returns
    -------
    Plan with the fewest predicted rounds; fewer local steps may do as well where rounds are few.
    """
    whole("largest", largest, 1)
    eps = positive("eps", eps)
    _guaranteed(constants, algorithm)
    s = setting(constants, algorithm)
    # the cap binds while (K-1)^2 + kappa <= room: rounds fall like 1/K there, and beyond it they are
    # least at the optimum of the rule, so the best is one of these
    room = eps**2 / (3600.0 * s.d * s.kappa * s.H) * 2.0
    edge = 1.0 + sqrt(max(room - s.kappa, 0.0))
    centres = {floor(min(centre, largest)) for centre in (edge, sqrt(1.0 + s.kappa), 1.0)}
    tries = {K for centre in centres for K in range(centre - 2, centre + 4) if 1 <= K <= largest}
    plans = [plan(constants, replace(algorithm, local_steps=K), eps) for K in sorted(tries)]
    return min(plans, key=lambda found: (found.n_rounds, found.local_steps))


@planner(FALD)
def _planned(constants: Constants, algorithm: FALD, eps: float) -> tuple[float, int]:
    found = plan(constants, algorithm, eps)
    return found.step_size, found.n_rounds
