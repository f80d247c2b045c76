"""FA-HMC's bounds from the recursion of Theorem 4.4: one step, iterated, and in W2.

The recursion, its variants and its constants stand in `theory.fa_hmc.recursion`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.settings.validation import Array, array, nonnegative, one_of

from ..bound import Assumption
from ..facts import Constants
from ..statement import Hypothesis, Terms
from .coupling import coupling_law
from .recursion import VARIANTS, added, contraction, iterated, steady
from .setting import (
    EQUAL_STEPS,
    FULL,
    FULL_TURN,
    MOMENTS,
    REACH,
    Setting,
    equal_within_rounds,
    hessian_theorem,
    known_moments,
    setting,
    trajectory_lengths,
    within,
)

SOURCE = "FA-HMC Theorem 4.4 (section G, last display)"
ROUNDING = 1e-13
"""Of the size of a law: what is left of a distance of 0."""
RANGE = within(REACH, printed=FULL_TURN)
ADDED = ("heterogeneity", "correlation", "gradient_noise", "discretization")


def initial_error(constants: Constants, s: Setting, given: Any = None) -> float:
    """E_0: the squared W2 at the start, or an upper bound of it by Lemma D.2.

    A distance that is rounding of the target's own size (the start is the target) counts as 0.
    """
    if given is not None:
        return nonnegative("initial", given)
    if constants.initial_w2 is not None:
        goal = constants.target
        size = 0.0 if goal is None else float(np.sqrt(goal.variances.sum() + (goal.mean**2).sum()))
        return 0.0 if constants.initial_w2 <= ROUNDING * size else constants.initial_w2**2
    return float((np.sqrt(s.D) + np.sqrt(s.d / s.mu)) ** 2)


def steady_state(constants: Constants, algorithm: FAHMC, *, gradient_moments: Any = None,
                 hessian_smoothness: float = 0.0, variant: str = "corrected") -> float:
    """Limit of the bound on E_t at communications; `w2_bound` tends to its square root.

    Parameters
    ----------
    constants, algorithm, gradient_moments, hessian_smoothness, variant
        As for `w2_bound`; a constant step size.

    Returns
    -------
    float : in units of squared length.

    Raises
    ------
    ValueError
        As for `setting`, for a schedule, and for `gradient_moments` of another shape or below 0.

    Source: derived, as the limit of the bound of `coupling_bound`.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.0001, 50, local_steps=5)
    >>> known = theory.constants(problem, algorithm)
    >>> round(theory.fa_hmc.steady_state(known, algorithm), 4)
    0.0002
    """
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant: a schedule has no steady "
                         "state")
    one_of("variant", variant, tuple(VARIANTS))
    one_of("convention", constants.convention, ("federated",))
    s = setting(constants, algorithm, hessian_smoothness)
    return steady(s, known_moments(s, gradient_moments, variant), variant)


def _along_coupling(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                    start: Any) -> dict[str, Any]:
    """Exact E_t of the coupled pair, and the exact B_c up to then."""
    law = coupling_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)
    return {"coupling": law.distance_sq[:-1] if n_rounds else law.distance_sq,
            "gradient_moments": law.gradient_moments.max(axis=0)}


def _schedule(algorithm: FAHMC, n_steps: int, variant: str) -> Assumption | None:
    if variant != "printed" or algorithm.schedule.is_constant:
        return equal_within_rounds(algorithm, n_steps)
    falling = bool((np.diff(trajectory_lengths(algorithm, n_steps)) <= 0.0).all())
    return Assumption.yes("step_size never increases", falling)


@hessian_theorem(
    "Theorem 4.4 (one step)", quantity="coupling_sq", terms=("contraction", *ADDED), source=SOURCE,
    hypotheses=(RANGE, Hypothesis(EQUAL_STEPS, lambda algorithm, coupling, variant: _schedule(
        algorithm, len(coupling), variant)), MOMENTS, FULL),
    variants=VARIANTS, index="local_step", inputs=_along_coupling)
def one_step_bound(s: Setting, algorithm: FAHMC, variant: str, *, coupling: Any,
                   gradient_moments: Any = None) -> Terms:
    """One update of the coupled pair.

    Guarantee:  E_{t+1} <= (1 - mu X^2/4) E_t + a_j(X), j = t mod T (see `theory.fa_hmc.recursion`).

    Source: FA-HMC section G, the last display, which Theorem 4.4 sums up.

    The bound is on E_1, ..., E_n, where n is the length of `coupling`.

    Examples
    --------
    >>> bound.value[[0, -1]].round(3).tolist()
    [1.06, 0.02]
    """
    before = array("coupling", coupling, 1)
    lengths = trajectory_lengths(algorithm, len(before))
    parts = added(s, lengths, np.arange(len(before)) % s.T, known_moments(s, gradient_moments, variant),
                  variant)
    return Terms({"contraction": contraction(s, lengths) * before, **parts},
                 rounds=np.arange(1, len(before) + 1))


def _iterated(s: Setting, constants: Constants, algorithm: FAHMC, steps: np.ndarray, variant: str,
              gradient_moments: Any, initial: float | None) -> tuple[dict[str, Array], float, float | None]:
    """E_t at local updates `steps` by its terms, E_0, and the limit where there is one."""
    moments = known_moments(s, gradient_moments, variant)
    begin = initial_error(constants, s, initial)
    floor = steady(s, moments, variant) if algorithm.schedule.is_constant else np.nan
    return (iterated(s, algorithm, steps, moments, begin, variant), begin,
            floor if np.isfinite(floor) else None)


@hessian_theorem(
    "Theorem 4.4 (iterated)", quantity="coupling_sq", terms=("initialization", *ADDED), source=SOURCE,
    hypotheses=(RANGE, Hypothesis(EQUAL_STEPS, lambda algorithm, rounds, variant: _schedule(
        algorithm, int(rounds.max()), variant)), MOMENTS, FULL),
    variants=VARIANTS, index="local_step")
def coupling_bound(s: Setting, constants: Constants, algorithm: FAHMC, rounds: np.ndarray, variant: str, *,
                   gradient_moments: Any = None, initial: float | None = None) -> Terms:
    """The coupled pair's E_t after t local updates: `one_step_bound` iterated.

    Source: FA-HMC Theorem 4.4. Its display (1 - mu X_t^2/4)^t E_0 + eta_t^2 Delta_t is what this becomes
    for a constant step size; with decreasing steps the display is false, because errors made with the
    older, larger steps have not died out, and the recursion itself is used.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    1.98
    """
    terms, begin, floor = _iterated(s, constants, algorithm, rounds, variant, gradient_moments, initial)
    return Terms(terms, start_distance=begin, floor=floor)


@hessian_theorem(
    "Theorem 4.4", quantity="w2", terms=("initialization", *ADDED), source=SOURCE,
    hypotheses=(RANGE, Hypothesis(EQUAL_STEPS, lambda algorithm, rounds, variant: _schedule(
        algorithm, int(rounds.max()) * algorithm.local_steps, variant)), MOMENTS, FULL),
    variants=VARIANTS)
def w2_bound(s: Setting, constants: Constants, algorithm: FAHMC, rounds: np.ndarray, variant: str, *,
             gradient_moments: Any = None, initial: float | None = None) -> Terms:
    """W2 bound at communications: the square root of the recursion's E_t at t = n T.

    Source: FA-HMC Theorem 4.4 with the explicit constants of section G (see `theory.fa_hmc.recursion`).

    Its terms are those of E_t over its root: each part's share of the whole.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FAHMC(0.0001, 50, local_steps=5)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_hmc.w2_bound(known, algorithm, n_rounds=300_000)
    >>> round(float(bound.value[-1]), 3), bound.hypotheses_hold, bound.is_vacuous
    (0.017, True, False)
    """
    terms, begin, floor = _iterated(s, constants, algorithm, rounds * s.T, variant, gradient_moments, initial)
    root = np.sqrt(np.sum(list(terms.values()), axis=0))
    return Terms({name: np.divide(part, root, out=np.zeros_like(root), where=root > 0.0)
                  for name, part in terms.items()},
                 start_distance=float(np.sqrt(begin)), floor=None if floor is None else float(np.sqrt(floor)))
