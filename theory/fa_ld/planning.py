"""FA-LD's planning rules (sections 4.3.1, 4.3.2 and 4.4), made explicit.

Constant step size, all clients (Theorem 4.9): its two terms are made eps/2 each,

    eta m = min{ m/(2L), eps^2 / (3600 d kappa^2 ((K-1)^2 + kappa) H_rho) }
    T     = (4/(eta m)) log( 2 sqrt(2d) (D + sqrt(tau/m)) / eps )    local steps,   T/K rounds.

Away from the cap the rounds are proportional to ((K-1)^2 + kappa)/K, least at K = sqrt(1 + kappa).

Step size 1/(2L + m k/12), all clients (Theorem 4.8): there is no step size to choose, and the bound is at
most eps from

    k = 12 ( 2025 kappa^2 ((K-1)^2 + kappa) H_rho d/eps^2 - 2 kappa )    local steps on.

S drawn clients (Theorem 4.10, C.3): a third of eps for each of its three terms,

    eta m = min{ m/(2L), eps^2 / (8100 d kappa^2 ((K-1)^2 + kappa) H_rho) }
    T     = (4/(eta m)) log( 3 sqrt(2d) (D + sqrt(tau/m)) / eps )    local steps,
    S / C_S >= 36 C_K d tau (rho^2 + N (1-rho^2)) / (m eps^2),

with C_K, between 2 and 2 + eta m K, at this eta: the paper's "S = Omega(d/eps^2)".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, sqrt

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.settings.participation import Participation
from fedsim.settings.schedules import Harmonic
from fedsim.settings.validation import instance, positive, shown

from ..facts.constants_of_problem import Constants
from ..tuning import planner
from .notation import Setting, setting
from .theorems import participation_term, w2_bound, w2_bound_decreasing, w2_bound_partial

COUNTED = 2**53 - 2
"""Rounds up to here are found to the last one."""


@dataclass(frozen=True)
class Plan:
    """Step size and effort that a bound asks for.

    Attributes
    ----------
    eps : float
        W2 to be reached.
    step_size : float
        The first one, where it decreases.
    local_steps : int
        K.
    n_steps : int
        Local steps, a multiple of K.
    n_rounds : int
    cap_binds : bool
        True when the step size is the largest that the theorem allows, 1/(2L); then rounds go like
        1/K until it stops binding, whatever kappa is.
    algorithm : fedsim.FALD
        With this step size or schedule.
    theorem : str
        Id of the theorem that guarantees it.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=2.0, weights=[1.0],
    ...                          initial_distance=1.0)
    >>> found = theory.fa_ld.plan(known, fs.FALD(0.1, local_steps=2), 0.1)
    >>> found.n_steps == 2 * found.n_rounds, found.cap_binds, found.algorithm.step_size == found.step_size
    (True, False, True)
    """

    eps: float
    step_size: float
    local_steps: int
    n_steps: int
    n_rounds: int
    cap_binds: bool
    algorithm: FALD
    theorem: str = "fa_ld.w2_bound"

    @property
    def note(self) -> str:
        """One sentence when the cap binds."""
        return "" if not self.cap_binds else (
            "the cap step_size = 1/(2 smoothness) binds: the accuracy term does not decide, and rounds "
            "fall like 1/local_steps until it does")


def plan(constants: Constants, algorithm: FALD, eps: float) -> Plan:
    """Step size and rounds after which the paper guarantees W2 <= eps.

    Theorem 4.9 for all clients, Theorem 4.8 where the algorithm has a `fedsim.schedules.Harmonic` step
    size, Theorem 4.10 where it has `participation`.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        Its step size is replaced (a harmonic one by that of Theorem 4.8); local steps, temperature, shared
        noise and participation are kept.
    eps : float
        W2 to be reached, positive.

    Returns
    -------
    Plan
        For Theorem 4.8 its rounds are the fewest that the bound allows.

    Raises
    ------
    ValueError
        Naming argument, value and condition; with participation also where too few clients are drawn, with
        the least number that would do (see `fewest_active`).

    Source: FA-LD sections 4.3.1, 4.3.2 and 4.4 and appendix B.2, with the constants filled in and H_rho for
    H_0.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=2.0, weights=[0.5, 0.5],
    ...                   initial_distance=1.0, heterogeneity=0.0)
    >>> schedule = fs.schedules.Harmonic.from_theorem(strong_convexity=1.0, smoothness=2.0)
    >>> for algorithm in (fs.FALD(0.1, 2), fs.FALD(schedule, 2)):
    ...     found = theory.fa_ld.plan(known, algorithm, 0.1)
    ...     print(found.theorem, found.n_rounds)
    fa_ld.w2_bound 104598943
    fa_ld.w2_bound_decreasing 43739976
    """
    eps = positive("eps", eps)
    instance("constants", constants, Constants)
    instance("algorithm", algorithm, FALD)
    if algorithm.participation is not None:
        return _partial_plan(constants, algorithm, algorithm.participation, eps)
    if isinstance(algorithm.schedule, Harmonic):
        return _decreasing_plan(constants, algorithm, eps)
    w2_bound(constants, replace(algorithm, step_size=1.0), n_rounds=0)  # checks the arguments
    return _constant_plan(setting(constants, algorithm), algorithm, eps, 2, "fa_ld.w2_bound")


def _constant_plan(s: Setting, algorithm: FALD, eps: float, parts: int, theorem: str) -> Plan:
    """A constant step size with eps/parts for the initialization and for the discretization."""
    cap = s.m / (2.0 * s.L)
    share = eps / (30.0 * parts * s.kappa)
    accurate = share * share / (s.d * ((s.K - 1) ** 2 + s.kappa) * s.H)
    rate = min(cap, accurate)
    if rate <= 0.0:
        raise ValueError(f"eps={eps!r} is too small: the planned step size underflows")
    steps = max(4.0 / rate * (np.log(parts * s.start) - np.log(eps)), 0.0) if rate < 1e-290 else (
        max(4.0 / rate * np.log(parts * s.start / eps), 0.0))
    if not isfinite(steps):
        raise ValueError(f"eps={eps!r} is too small: the planned rounds overflow")
    n_rounds = ceil(steps / s.K)
    return Plan(eps, rate / s.m, s.K, n_rounds * s.K, n_rounds, cap <= accurate,
                replace(algorithm, step_size=rate / s.m), theorem)


def _decreasing_plan(constants: Constants, algorithm: FALD, eps: float) -> Plan:
    """Theorem 4.8: the first round at which its bound is at most eps."""
    w2_bound_decreasing(constants, algorithm, n_rounds=0)  # checks the arguments
    chosen = replace(algorithm, step_size=Harmonic.from_theorem(
        strong_convexity=constants.strong_convexity, smoothness=constants.smoothness))
    s = setting(constants, chosen)
    # two factors, so that no square under- or overflows before the answer does
    size = 45.0 * s.kappa * sqrt(s.d) * sqrt(s.H) / eps
    steps = max(12.0 * (size * size * ((s.K - 1) ** 2 + s.kappa) - 2.0 * s.kappa), 0.0)
    if not isfinite(steps):
        raise ValueError(f"eps={eps!r} is too small: the planned rounds overflow")
    n_rounds = ceil(steps / s.K)
    if n_rounds < COUNTED:  # to the last one, whatever the rounding above
        near = np.unique([max(n_rounds - 1, 0), n_rounds, n_rounds + 1])
        bound = w2_bound_decreasing(constants, chosen, n_rounds=n_rounds + 1, record=near)
        n_rounds = int(bound.rounds[np.append(bound.value[:-1] <= eps, True)][0])
    return Plan(eps, 1.0 / (2.0 * s.L), s.K, n_rounds * s.K, n_rounds, False, chosen,
                "fa_ld.w2_bound_decreasing")


def _partial_plan(constants: Constants, algorithm: FALD, drawn: Participation, eps: float) -> Plan:
    """Theorem 4.10: a third of eps for each term, with the clients that the algorithm draws."""
    planned, s = _thirds(constants, algorithm, eps)
    if participation_term(s, drawn.variance_factor(s.N)) > eps / 3.0:
        raise ValueError(f"n_active={drawn.n_active} must be at least {_fewest(s, drawn, eps)} for "
                         f"eps={eps!r}: a third of eps is for the participation (Theorem 4.10)")
    return planned


def fewest_active(constants: Constants, algorithm: FALD, eps: float) -> int:
    """The fewest drawn clients S with which `plan` guarantees W2 <= eps by Theorem 4.10.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FALD
        With `participation`, whose scheme counts and whose number is not used.
    eps : float
        W2 to be reached, positive; a third of it is the participation's.

    Returns
    -------
    int
        With scheme II at most N, with scheme I it may exceed N (clients are drawn repeatedly).

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-LD section 4.4, "S = Omega(d/eps^2)", with Theorem C.3's constants.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=2.0, weights=[0.01] * 100,
    ...                   initial_distance=1.0, heterogeneity=0.0)
    >>> for scheme in (True, False):
    ...     algorithm = fs.FALD(0.1, 2, shared_noise=1.0, participation=fs.Participation(1, scheme))
    ...     print(theory.fa_ld.fewest_active(known, algorithm, 2.0))
    19
    16
    """
    eps = positive("eps", eps)
    instance("constants", constants, Constants)
    if not isinstance(algorithm, FALD) or not isinstance(algorithm.participation, Participation):
        raise ValueError(f"algorithm={shown(algorithm)} must be a FALD with participation by scheme I or II "
                         "(Theorem 4.10)")
    drawn = replace(algorithm.participation, n_active=1)
    return _fewest(_thirds(constants, replace(algorithm, participation=drawn), eps)[1], drawn, eps)


def _fewest(s: Setting, drawn: Participation, eps: float) -> int:
    if s.N == 1:  # whoever is drawn
        return 1
    ratio = eps / 3.0 / participation_term(s, 1.0)
    limit = ratio * ratio  # of C_S/S
    if limit < 1e-300:
        raise ValueError(f"eps={eps!r} is too small: the number of drawn clients overflows")
    near = floor(1.0 / limit if drawn.replace else s.N / (1.0 + limit * (s.N - 1)))
    tries = range(max(near - 1, 1), near + 2)  # whatever the rounding above
    return next((S for S in tries if participation_term(
        s, replace(drawn, n_active=S).variance_factor(s.N)) <= eps / 3.0), near + 2)


def _thirds(constants: Constants, algorithm: FALD, eps: float) -> tuple[Plan, Setting]:
    """Step size and rounds of Theorem 4.10, whatever the drawing adds, and the setting at that step size."""
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant with participation: the paper "
                         "has no theorem for both")
    w2_bound_partial(constants, algorithm, n_rounds=0)  # checks the arguments
    planned = _constant_plan(setting(constants, algorithm), algorithm, eps, 3, "fa_ld.w2_bound_partial")
    bound = w2_bound_partial(constants, planned.algorithm, n_rounds=0)
    if not bound.hypotheses_hold:
        raise ValueError(f"weights={constants.weights} must satisfy: {'; '.join(bound.violated)}")
    return planned, setting(constants, planned.algorithm)


@planner(FALD)
def _planned(constants: Constants, algorithm: FALD, eps: float) -> tuple[float, int]:
    """What `theory.tuning.compare` asks for: a constant step size, also in place of a schedule."""
    if not algorithm.schedule.is_constant:
        algorithm = replace(algorithm, step_size=algorithm.schedule.largest)
    planned = plan(constants, algorithm, eps)
    return planned.step_size, planned.n_rounds
