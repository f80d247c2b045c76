"""FA-HMC's bounds from the recursion of Theorem 4.4: one step, iterated, and in W2.

The recursion, its variants and its constants stand in `theory.fa_hmc.recursion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.law import recorded_rounds
from fedsim.validation import Array, array, nonnegative, one_of, whole

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .coupling import coupling_law
from .recursion import VARIANTS, added, contraction, iterated, ranges, steady
from .setting import EQUAL_STEPS, PAPER, REACH, Setting, known_moments, setting, trajectory_lengths

SOURCE = "FA-HMC Theorem 4.4 (section G, last display)"
ROUNDING = 1e-13
"""Of the size of a law: what is left of a distance of 0."""
HYPOTHESES = (REACH, EQUAL_STEPS, "all clients, not debiased")


def all_clients(algorithm: FAHMC) -> bool:
    """What FA-HMC's theorems are about: all clients, gradients not debiased."""
    return algorithm.participation is None and algorithm.debias is None


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
    """
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant: a schedule has no steady "
                         "state")
    one_of("variant", variant, VARIANTS)
    one_of("convention", constants.convention, ("federated",))
    s = setting(constants, algorithm, hessian_smoothness)
    return steady(s, known_moments(s, gradient_moments, variant)[0], variant)


def _along_coupling(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                    start: Any) -> dict[str, Any]:
    """Exact E_t of the coupled pair, and the exact B_c up to then."""
    law = coupling_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)
    return {"coupling": law.distance_sq[:-1] if n_rounds else law.distance_sq,
            "gradient_moments": law.gradient_moments.max(axis=0)}


@theorem(id="fa_hmc.one_step_bound", paper=PAPER, number="Theorem 4.4 (one step)", kind="upper",
         quantity="coupling_sq", algorithm=FAHMC, convention="federated",
         hypotheses=HYPOTHESES,
         variants=VARIANTS, index="local_step", inputs=_along_coupling,
         applies=all_clients)
def one_step_bound(constants: Constants, algorithm: FAHMC, *, coupling: Any, gradient_moments: Any = None,
                   hessian_smoothness: float = 0.0, n_rounds: int = 0, record: Any = None,
                   variant: str = "corrected") -> Bound:
    """One update of the coupled pair.

    Guarantee:  E_{t+1} <= (1 - mu X^2/4) E_t + a_j(X), j = t mod T (see `theory.fa_hmc.recursion`).

    Source: FA-HMC section G, the last display, which Theorem 4.4 sums up.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        All clients, not debiased.
    coupling : (n,)
        E_0, ..., E_{n-1}.
    gradient_moments : (N,), optional
        B_c; by default Lemma D.7's bound, with its hypothesis.
    hessian_smoothness : float
        L_H of Assumption 3.3, 0 for quadratics.
    n_rounds, record
        Of no influence: `coupling` decides.
    variant : "corrected", "printed" or "consistent"

    Returns
    -------
    Bound on E_1, ..., E_n with terms "contraction", "heterogeneity", "correlation", "gradient_noise" and
    "discretization".

    Raises
    ------
    ValueError
        As for `coupling_bound`; for `coupling` that is not (n,).
    """
    s = setting(constants, algorithm, hessian_smoothness)
    before = array("coupling", coupling, 1)
    moments, more = known_moments(s, gradient_moments, variant)
    lengths = trajectory_lengths(algorithm, len(before))
    parts = added(s, lengths, np.arange(len(before)) % s.T, moments, variant)
    return Bound.from_terms(
        {"contraction": contraction(s, lengths) * before, **parts}, np.arange(1, len(before) + 1),
        assumptions=(*ranges(s, algorithm, len(before), variant), *more), quantity="coupling_sq",
        kind="upper", source=SOURCE, variant=variant, index="local_step", target=constants.target)


def _prepared(constants: Constants, algorithm: FAHMC, steps: np.ndarray, given: Any, start: Any,
              bend: float, variant: str) -> tuple[Mapping[str, Array], tuple[Assumption, ...], float, float]:
    s = setting(constants, algorithm, bend)
    moments, more = known_moments(s, given, variant)
    initial = initial_error(constants, s, start)
    terms = iterated(s, algorithm, steps, moments, initial, variant)
    floor = steady(s, moments, variant) if algorithm.schedule.is_constant else np.nan
    return terms, (*ranges(s, algorithm, int(steps.max()), variant), *more), initial, floor


@theorem(id="fa_hmc.coupling_bound", paper=PAPER, number="Theorem 4.4 (iterated)", kind="upper",
         quantity="coupling_sq", algorithm=FAHMC, convention="federated",
         hypotheses=HYPOTHESES,
         variants=VARIANTS, index="local_step",
         applies=all_clients)
def coupling_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int, record: Any = None,
                   gradient_moments: Any = None, initial: float | None = None,
                   hessian_smoothness: float = 0.0, variant: str = "corrected") -> Bound:
    """The coupled pair's E_t after t local updates: `one_step_bound` iterated.

    Source: FA-HMC Theorem 4.4. Its display (1 - mu X_t^2/4)^t E_0 + eta_t^2 Delta_t is what this becomes
    for a constant step size; with decreasing steps the display is false, because errors made with the
    older, larger steps have not died out, and the recursion itself is used.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        All clients, not debiased.
    n_rounds : int
    record : sequence of local updates, optional
    gradient_moments : (N,), optional
        B_c; by default Lemma D.7's bound, with its hypothesis.
    initial : float, optional
        E_0, by default the squared W2 of the start (or Lemma D.2's bound where that is not known).
    hessian_smoothness : float
    variant : "corrected", "printed" or "consistent"

    Returns
    -------
    Bound on "coupling_sq" with terms "initialization", "heterogeneity", "correlation", "gradient_noise"
    and "discretization".

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant; for n_rounds below 0, a `record` beyond it, a schedule that ends too early,
        `gradient_moments` of another shape or below 0, and `initial` below 0.
    """
    steps = recorded_rounds(whole("n_rounds", n_rounds) * algorithm.local_steps, record)
    terms, assumptions, begin, floor = _prepared(constants, algorithm, steps, gradient_moments, initial,
                                                 hessian_smoothness, variant)
    return Bound.from_terms(
        terms, steps, assumptions=assumptions, quantity="coupling_sq", kind="upper", source=SOURCE,
        variant=variant, index="local_step", target=constants.target, start_distance=begin,
        floor=floor if np.isfinite(floor) else None)


@theorem(id="fa_hmc.w2_bound", paper=PAPER, number="Theorem 4.4", kind="upper", quantity="w2",
         algorithm=FAHMC, convention="federated",
         hypotheses=HYPOTHESES,
         variants=VARIANTS,
         applies=all_clients)
def w2_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int, record: Any = None,
             gradient_moments: Any = None, initial: float | None = None, hessian_smoothness: float = 0.0,
             variant: str = "corrected") -> Bound:
    """W2 bound at communications: the square root of the recursion's E_t at t = n T.

    Source: FA-HMC Theorem 4.4 with the explicit constants of section G (see `theory.fa_hmc.recursion`).

    Parameters
    ----------
    constants, algorithm, n_rounds, gradient_moments, initial, hessian_smoothness, variant
        As for `coupling_bound`.
    record : sequence of rounds, optional

    Returns
    -------
    Bound on "w2". Its terms are those of E_t over its root: each part's share of the whole.

    Raises
    ------
    ValueError
        As for `coupling_bound`.

    Examples
    --------
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FAHMC(0.0001, 50, local_steps=5)
    >>> bound = w2_bound(constants(problem, algorithm), algorithm, n_rounds=300_000)
    >>> round(float(bound.value[-1]), 3), bound.hypotheses_hold, bound.is_vacuous
    (0.017, True, False)
    """
    rounds = recorded_rounds(n_rounds, record)
    terms, assumptions, begin, floor = _prepared(
        constants, algorithm, rounds * algorithm.local_steps, gradient_moments, initial, hessian_smoothness,
        variant)
    root = np.sqrt(np.sum(list(terms.values()), axis=0))
    shares = {name: np.divide(part, root, out=np.zeros_like(root), where=root > 0.0)
              for name, part in terms.items()}
    return Bound.from_terms(
        shares, rounds, assumptions=assumptions, quantity="w2", kind="upper", source=SOURCE,
        variant=variant, target=constants.target, start_distance=float(np.sqrt(begin)),
        floor=float(np.sqrt(floor)) if np.isfinite(floor) else None)
