"""FA-HMC's rules for constant step sizes: from the explicit recursion, Theorem 4.1, Proposition 4.3.

`plan` and `paper_plan` are guarantees: they solve the recursion of Theorem 4.4 with its explicit constants,
the former for the fewest rounds. `theorem_step_size` and `vanilla_algorithm` are the paper's rules, which
hold for *some* constant; it has to be given, and nothing is guaranteed for a given one.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf, log, nextafter, sqrt

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.settings.validation import instance, positive

from ..facts import Constants, refuse_off_target
from ..theorem_parts import accuracy
from ..tuning import Plan, planner
from ..tuning.fewest import refined
from ..tuning.planning import promised
from .notation import Setting, known_moments, setting
from .rates import inverse_squared_length, vanilla_g
from .theorem_44 import added, initial_error


def prepared(constants: Constants, algorithm: FAHMC) -> Setting:
    """The numbers of a rule, after the checks that all rules share; the step size is of no influence."""
    instance("constants", constants, Constants)
    instance("algorithm", algorithm, FAHMC)
    if constants.convention != "federated":
        raise ValueError(f"convention={constants.convention!r} of the constants must be 'federated'")
    refuse_off_target(constants, "a plan of FA-HMC")
    return setting(constants, replace(algorithm, step_size=1.0))


def longest_allowed(s: Setting) -> float:
    """X^2 that every hypothesis allows: the recursion's, and Lemma D.7's mu/(4 L^2), which is smaller."""
    return s.mu / (4.0 * s.L**2)


def kept_error(s: Setting, g: float) -> float:
    """Error that the recursion keeps at X^2 = g: at most 4 max_j a_j/(mu X^2)."""
    moments = known_moments(s, None, "corrected")
    parts = added(s, np.array([sqrt(g)]), np.array([s.T - 1]), moments, "corrected")
    return float(sum(np.sum(part) for part in parts.values())) * 4.0 / (s.mu * g)


def rounds_to_decay(s: Setting, g: float, factor: float) -> int:
    """Communications after which (1 - mu g/4)^t <= 1/factor."""
    return max(ceil(log(factor) / (-s.T * np.log1p(-0.25 * s.mu * g)) - 1e-12), 0) if factor > 1.0 else 0


@planner(FAHMC)
def plan(constants: Constants, algorithm: FAHMC, eps: float) -> Plan:
    """Constant step size with the fewest rounds after which Theorem 4.4's recursion guarantees W2 <= eps.

    See `theory.tuning.plan`.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        Its step size is replaced; leapfrog steps, local steps and shared noise are kept.
    eps : float
        W2 to be reached, positive.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        Naming argument, value and condition; for constants that do not know `hessian_smoothness`.

    Source: FA-HMC Theorem 4.4 with its explicit constants.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> found = theory.fa_hmc.plan(theory.constants(problem, algorithm), algorithm, 0.1)
    >>> found.n_rounds, round(found.trajectory_length, 5), found.cap_binds
    (34071, 0.00843, False)
    """
    eps = positive("eps", eps)
    prepared(constants, algorithm)
    return promised("fa_hmc.w2_bound", constants, replace(algorithm, step_size=1.0), eps)


def paper_plan(constants: Constants, algorithm: FAHMC, eps: float) -> Plan:
    """Constant step size and rounds by the paper's rule: both parts of the recursion are made eps^2/2.

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
        As for `plan`.

    Source: FA-HMC section 4.2, "solving the two inequalities", with the explicit constants, for the decayed
    start and the error that is kept, B_c by Lemma D.7.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> found = theory.fa_hmc.paper_plan(theory.constants(problem, algorithm), algorithm, 0.1)
    >>> found.n_rounds, round(found.trajectory_length, 5), found.cap_binds
    (62256, 0.00587, False)
    """
    eps = positive("eps", eps)
    s = prepared(constants, algorithm)
    cap, square = longest_allowed(s), eps * eps  # infinite for what any law fulfils
    g = cap
    while kept_error(s, g) > 0.5 * square and g > 1e-250:
        g *= 0.25
    if g <= 1e-250 or eps <= 1e-125:
        raise ValueError(f"eps={eps!r} is too small: the planned step size underflows")
    if g < cap:  # the largest X^2 with at most this error, which increases with X
        g, _ = refined(lambda g: kept_error(s, g), nextafter(0.5 * square, inf), g, (4.0 * g, 0.0), 0.0)
    step, n_rounds = sqrt(g) / s.K, rounds_to_decay(s, g, 2.0 * initial_error(constants, s) / square)
    return Plan(eps=eps, step_size=step, n_rounds=n_rounds, algorithm=replace(algorithm, step_size=step),
                theorem="fa_hmc.w2_bound", limited_by="hypotheses" if g == cap else "accuracy")


def theorem_step_size(constants: Constants, algorithm: FAHMC, eps: float, *, constant: float) -> float:
    """Step size by the rule of Theorem 4.1, for a given value of its unknown constant.

    eta^2 = (C/K^2) min{ 1/L, eps/(sqrt(d) T), eps^2/(d T^2 (1-rho) N), eps^2 K/(d sum_c w_c^2 sigma_g^2) }

    Parameters
    ----------
    constants, algorithm, eps
        As for `plan`.
    constant : float
        C. The theorem says only that some value works, depending on L, L/mu and L_H^2/L^3.

    Returns
    -------
    float : eta.

    Raises
    ------
    ValueError
        As for `plan`, and for a constant that is not greater than 0.

    Source: FA-HMC Theorem 4.1.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> known = theory.constants(problem, algorithm)
    >>> round(theory.fa_hmc.theorem_step_size(known, algorithm, 0.1, constant=1.0), 5)
    0.02
    """
    s = prepared(constants, algorithm)
    parts = inverse_squared_length(s, accuracy(eps))
    return sqrt(positive("constant", constant) / max(parts.values())) / s.K


def vanilla_algorithm(constants: Constants, algorithm: FAHMC, eps: float, *, constant: float,
                      correlation_constant: float = 1.0) -> FAHMC:
    """FA-HMC in the setting of Proposition 4.3, for given values of its unknown constants.

    g = C min{1/L, eps/(T sqrt(d))}, shared_noise = 1 - min(1, C' L g/N). (L makes the printed 1 - O(g/N)
    free of units.)

    Parameters
    ----------
    constants, algorithm, eps
        As for `plan`; step size and shared noise are replaced.
    constant, correlation_constant : float
        C and C'.

    Returns
    -------
    fedsim.FAHMC

    Raises
    ------
    ValueError
        As for `plan`, and for constants that are not greater than 0.

    Source: FA-HMC Proposition 4.3, equation (2). It also wants sigma_g^2 = O(K g), which is a matter of
    the problem.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> known = theory.constants(problem, algorithm)
    >>> found = theory.fa_hmc.vanilla_algorithm(known, algorithm, 0.1, constant=1.0)
    >>> round(found.step_size, 5), round(found.shared_noise, 5)
    (0.02, 0.985)
    """
    s = prepared(constants, algorithm)
    g = positive("constant", constant) * vanilla_g(s, positive("eps", eps))
    if not 0.0 < g < float("inf"):
        raise ValueError(f"eps={eps!r} with constant={constant!r} makes a step size of {g:g}; it must be "
                         "finite and greater than 0")
    apart = positive("correlation_constant", correlation_constant) * s.L * g / s.N
    return replace(algorithm, step_size=sqrt(g) / s.K, shared_noise=max(1.0 - apart, 0.0))


def u_curve(constants: Constants, algorithm: FAHMC, eps: float) -> float:
    """Local steps T at which Theorem 4.1's rate has its fewest rounds; infinite for shared noise 1.

    With noise = d sum_c w_c^2 sigma_g^2/(K eps^2), rounds go like
    (L + noise)/T + sqrt(d)/eps + d T (1-rho) N/eps^2, least at T = sqrt((L + noise) eps^2/(d (1-rho) N)).

    Parameters
    ----------
    constants, algorithm, eps
        As for `plan`; step size and local steps are of no influence.

    Returns
    -------
    float : at least 1.

    Raises
    ------
    ValueError
        As for `plan`.

    Source: FA-HMC Theorem 4.1 and the text after it ("a U curve with respect to T").

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, shared_noise=0.5)
    >>> known = theory.constants(problem, algorithm)
    >>> round(theory.fa_hmc.u_curve(known, algorithm, 2.0), 2)
    3.46
    """
    small = accuracy(eps)
    s = replace(prepared(constants, algorithm), T=1)
    parts = inverse_squared_length(s, small)
    if parts["correlation"] == 0.0:
        return float("inf")
    return max(sqrt((parts["smoothness"] + parts["gradient_noise"]) / parts["correlation"]), 1.0)
