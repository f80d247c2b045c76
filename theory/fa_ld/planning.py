"""Plans by FA-LD's theorems, and its own rules (sections 4.3.1, 4.3.2 and 4.4), made explicit.

`plan` finds the fewest rounds that a theorem allows; `paper_plan` is what the paper does with it:

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

from dataclasses import replace
from math import ceil, floor, isfinite
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.settings.participation import Participation
from fedsim.settings.schedules import Harmonic
from fedsim.settings.validation import instance, positive, shown

from ..declare.registry import named
from ..facts import Constants
from ..tuning import Plan, planner
from ..tuning.planning import promised
from .notation import Setting, setting
from .theorems import participation_term


@planner(FALD)
def plan(constants: Constants, algorithm: FALD, eps: float) -> Plan:
    """Step size with the fewest rounds after which a theorem of the paper guarantees W2 <= eps.

    Theorem 4.9 for all clients, Theorem 4.8 where the algorithm has a `fedsim.schedules.Harmonic` step
    size, Theorem 4.10 where it has `participation`. See `theory.tuning.plan`.

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

    Raises
    ------
    ValueError
        Naming argument, value and condition; with participation also where too few clients are drawn for eps
        at any step size (see `fewest_active`).

    Source: FA-LD Theorems 4.8, 4.9 and 4.10 in their smallest proved form.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=2.0, weights=[0.5, 0.5],
    ...                   initial_distance=1.0, heterogeneity=0.0)
    >>> schedule = fs.schedules.Harmonic.from_theorem(strong_convexity=1.0, smoothness=2.0)
    >>> for algorithm in (fs.FALD(0.1, 2), fs.FALD(schedule, 2)):
    ...     found = theory.fa_ld.plan(known, algorithm, 0.1)
    ...     print(found.theorem, f"{found.n_rounds:.4g}")
    fa_ld.w2_bound 2.652e+07
    fa_ld.w2_bound_decreasing 4.374e+07
    """
    theorem, one = _stated(constants, algorithm, eps)
    return promised(theorem, constants, one, float(eps))


def paper_plan(constants: Constants, algorithm: FALD, eps: float) -> Plan:
    """Step size and rounds after which the paper guarantees W2 <= eps, by its own rule.

    Each term of Theorem 4.9 is made eps/2, of Theorem 4.10 eps/3; Theorem 4.8 leaves the rounds alone.

    Parameters
    ----------
    constants, algorithm, eps
        As for `plan`.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        As for `plan`; with participation where too few clients are drawn for the rule, with the least number
        that would do.

    Source: FA-LD sections 4.3.1, 4.3.2 and 4.4 and appendix B.2, with the constants filled in and H_rho for
    H_0.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=2.0, weights=[0.5, 0.5],
    ...                   initial_distance=1.0, heterogeneity=0.0)
    >>> theory.fa_ld.paper_plan(known, fs.FALD(0.1, 2), 0.1).n_rounds
    104598943
    """
    theorem, one = _stated(constants, algorithm, eps)
    if theorem == "fa_ld.w2_bound_decreasing":
        return plan(constants, algorithm, eps)
    found, s = _shares(constants, theorem, one, eps)
    drawn = one.participation
    if drawn is not None and participation_term(s, drawn.variance_factor(s.N)) > eps / 3.0:
        raise ValueError(f"n_active={drawn.n_active} must be at least {_fewest(s, drawn, eps)} for "
                         f"eps={eps!r}: a third of eps is for the participation (Theorem 4.10)")
    return found


def _stated(constants: Constants, algorithm: FALD, eps: float) -> tuple[str, Any]:
    """The theorem about an algorithm, and the algorithm as it speaks about it."""
    positive("eps", eps)
    instance("constants", constants, Constants)
    instance("algorithm", algorithm, FALD)
    constant = replace(algorithm, step_size=algorithm.schedule.largest)
    if algorithm.participation is not None:
        if not algorithm.schedule.is_constant:
            raise ValueError(f"step_size={algorithm.step_size!r} must be constant with participation: the "
                             "paper has no theorem for both")
        return "fa_ld.w2_bound_partial", constant
    if not isinstance(algorithm.schedule, Harmonic):
        return "fa_ld.w2_bound", constant
    return "fa_ld.w2_bound_decreasing", replace(algorithm, step_size=Harmonic.from_theorem(
        strong_convexity=constants.strong_convexity, smoothness=constants.smoothness))


def _shares(constants: Constants, theorem: str, algorithm: FALD, eps: float) -> tuple[Plan, Setting]:
    """Equal shares of eps for initialization, discretization and drawing; and the setting at that step."""
    bound, parts = named(theorem).function, 2 if algorithm.participation is None else 3
    bound(constants, algorithm, n_rounds=0)  # checks the arguments
    s = setting(constants, algorithm)
    cap, share = s.m / (2.0 * s.L), eps / (30.0 * parts * s.kappa)
    accurate = share * share / (s.d * ((s.K - 1) ** 2 + s.kappa) * s.H)
    rate = min(cap, accurate)
    steps = 4.0 / rate * (np.log(parts * s.start) - np.log(eps)) if rate > 0.0 else np.inf
    if not isfinite(steps):
        raise ValueError(f"eps={eps!r} is too small: the planned step size or rounds leave float64")
    chosen = replace(algorithm, step_size=rate / s.m)
    if parts == 3 and (violated := bound(constants, chosen, n_rounds=0).violated):
        raise ValueError(f"weights={constants.weights} must satisfy: {'; '.join(violated)}")
    found = Plan(eps=eps, step_size=rate / s.m, n_rounds=ceil(max(steps, 0.0) / s.K), algorithm=chosen,
                 theorem=theorem, limited_by="hypotheses" if cap <= accurate else "accuracy")
    return found, setting(constants, chosen)


def fewest_active(constants: Constants, algorithm: FALD, eps: float) -> int:
    """The fewest drawn clients S with which `paper_plan` guarantees W2 <= eps by Theorem 4.10.

    `plan` may do with fewer, in more rounds.

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
    theorem, one = _stated(constants, replace(algorithm, participation=drawn), eps)
    return _fewest(_shares(constants, theorem, one, eps)[1], drawn, eps)


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
