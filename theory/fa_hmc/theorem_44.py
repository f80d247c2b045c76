"""FA-HMC's convergence theorem, Theorem 4.4, with explicit constants: one step, iterated, and in W2.

theta_t = sum_c w_c theta_t^c is coupled with theta_t^pi, which starts in the target and follows exact
trajectories of f with the averaged momentum; E_t = E||theta_t - theta_t^pi||^2 >= W2(theta_t, target)^2.
With X = K eta the trajectory length and j = t - t_0 the updates since the last communication,

    E_{t+1} <= (1 - mu X^2/4) E_t + a_j(X),

    a_j = (15/7) L X^2 V_j + X^6 L^2 sum_c w_c s_c d/8 + X^4/(3K) sum_c w_c^2 sigma_g^2 d
          + X^6 L^3/(9 mu) (sum_c w_c delta_K^c + delta_pi),

    V_j = j^2 X^4 sum_c w_c [ (31/30) B_c + (2/9) L s_c d + sigma_g^2 d/(18 K) ]
          + 2 j X^2 [ (1-rho)(N-1) d + (X^2/(4K)) sum_c w_c (1-w_c) sigma_g^2 d ],

B_c = sup_t E||grad f_c(theta_t^c)||^2, delta_K^c and delta_pi as in (9) and (17), for X <= 1/sqrt(L) and
mu X^2 <= 1/4. The second limit is what 1/c_1 = (1 - mu X^2/4)/(1 - mu X^2/2) <= 15/14 of section G needs;
Lemmas D.4 to D.6, D.8 and D.9 hold up to 1/sqrt(L) (see there).

Variants. "corrected" is the above: the paper's proof with Lemma D.8 in its corrected form.
"consistent" has the constants printed at the end of section G, with s_c for sigma^(c) and sigma_g^2 of
the proofs; the term 3 X^6 L^2 T sum_i sum_c w_c (1-w_c) Delta_i^c in it rests on the printed Lemma D.8,
which is false for unequal weights. "printed" reads the definitions literally (see `notation`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array, array, nonnegative, one_of

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from ..facts.constants_of_problem import Constants, refuse_off_target
from ..theorem_parts import decay, shares_of_root
from .coupling import coupling_law
from .hypotheses import EQUAL_STEPS, FULL_TURN, MOMENTS, REACH, steps_allowed, trajectory_lengths, within
from .notation import FULL, SMOOTH, Setting, hessian_theorem, known_moments, setting

SOURCE = "FA-HMC Theorem 4.4 (section G, last display)"
ROUNDING = 1e-13
"""Of the size of a law: what is left of a distance of 0."""
VARIANTS = {"corrected": "with Lemma D.8 corrected",
            "printed": "as printed, sigma^(c) and Assumption 3.4 read literally",
            "consistent": "as printed, with s_c for sigma^(c) and the proofs' sigma_g^2"}
ADDED = ("heterogeneity", "correlation", "gradient_noise", "discretization")
DIVERGENCE = ("gradients", "momenta", "correlation", "gradient_noise")


def divergence(s: Setting, X: Array, j: np.ndarray, moments: Array, variant: str) -> dict[str, Array]:
    """Lemma D.8's parts: of gradients, of the momenta's size, of their distance, of noise.

    Corrected, or as it stands: T j X^4 sum_c w_c (1-w_c) L Delta^c with Delta^c of (13).
    """
    share, j = s.w * (1.0 - s.w), j.astype(np.float64)
    if variant == "corrected":
        parts = (j**2 * X**4 * (31.0 / 30.0) * (s.w @ moments),
                 j**2 * X**4 * (2.0 / 9.0) * s.L * (s.w @ s.s) * s.d,
                 2.0 * j * X**2 * s.spread * s.d,
                 (j**2 * X**4 / (18.0 * s.K) + j * X**4 / (2.0 * s.K) * share.sum()) * s.sigma_sq * s.d)
    else:
        parts = (s.T * j * X**4 * (5.0 / 9.0) * (share @ moments),
                 s.T * j * X**4 * s.L * (share @ s.s) * s.d / 81.0,
                 s.T * j * X**2 * share.sum() * s.spread * s.d,
                 s.T * j * X**4 * share.sum() * s.sigma_sq * s.d / (6.0 * s.K))
    return dict(zip(DIVERGENCE, parts, strict=True))


def added(s: Setting, X: Array, j: np.ndarray, moments: Array, variant: str) -> dict[str, Array]:
    """a_j(X) by its parts, at trajectory lengths X and updates since communication j of equal shapes."""
    s = s.of(variant)
    of_moments, of_momentum, of_noise = s.client_error
    numerical = X**6 * s.L**3 / (9.0 * s.mu)
    noise = X**4 / (3.0 * s.K) * (s.w**2).sum() * s.sigma_sq * s.d
    factor = (15.0 / 7.0 if variant == "corrected" else 3.0) * s.L * X**2
    slopes, momenta, apart, random = divergence(s, X, j, moments, variant).values()
    return {
        "heterogeneity": factor * slopes,
        "correlation": factor * apart,
        "gradient_noise": factor * random + noise + numerical * (s.w @ of_noise) * s.sigma_sq / s.K,
        "discretization": factor * momenta + X**6 * s.L**2 * (s.w @ s.s) * s.d / 8.0
        + numerical * (s.w @ (of_moments * moments + of_momentum) + s.target_error)}


def contraction(s: Setting, length: Any) -> Array:
    """1 - mu X^2/4, and 0 beyond."""
    return np.maximum(1.0 - 0.25 * s.mu * np.asarray(length, dtype=np.float64) ** 2, 0.0)


def _summed(begin: Array, keep: Array, table: Array) -> Array:
    """x_{t+1} = keep_t x_t + table_t for t = 0..n-1 from `begin`, by parts: (parts, n+1)."""
    values = np.repeat(begin[:, None], len(keep) + 1, axis=1)
    for t, share in enumerate(keep):
        values[:, t + 1] = share * values[:, t] + table[:, t]
    return values


def _one_round(s: Setting, moments: Array, variant: str) -> tuple[Array, float]:
    """sum_{i<j} keep^(j-1-i) a_i for j = 0..T by parts, at a constant step size, and 1 - keep^T."""
    lengths = np.full(s.T, s.X)
    table = np.array(list(added(s, lengths, np.arange(s.T), moments, variant).values()))
    return (_summed(np.zeros(len(table)), contraction(s, lengths), table),
            float(decay(0.25 * s.mu * s.X**2, s.T, lost=True)))


def initial_error(constants: Constants, s: Setting, initial: Any = None) -> float:
    """E_0: the squared W2 at the start, or an upper bound of it by Lemma D.2.

    A distance that is rounding of the target's own size (the start is the target) counts as 0.
    """
    if initial is not None:
        return nonnegative("initial", initial)
    if constants.initial_w2 is not None:
        goal = constants.target
        size = 0.0 if goal is None else float(np.sqrt(goal.variances.sum() + (goal.mean**2).sum()))
        return 0.0 if constants.initial_w2 <= ROUNDING * size else constants.initial_w2**2
    return float((np.sqrt(s.D) + np.sqrt(s.d / s.mu)) ** 2)


def steady_state(constants: Constants, algorithm: FAHMC, *, gradient_moments: Any = None,
                 hessian_smoothness: float | None = None, variant: str = "corrected") -> float:
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
        As for `setting`, for a schedule, for `gradient_moments` of another shape or below 0, and where
        neither argument nor constants have a `hessian_smoothness`.

    Source: derived, as the limit of the bound of `coupling_bound`.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.0001, 50, local_steps=5)
    >>> known = theory.constants(problem, algorithm)
    >>> round(theory.fa_hmc.steady_state(known, algorithm), 4)
    0.0002
    """
    s = setting(constants, algorithm, hessian_smoothness)
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant: a schedule has no steady "
                         "state")
    one_of("variant", variant, tuple(VARIANTS))
    one_of("convention", constants.convention, ("federated",))
    refuse_off_target(constants, "theory.fa_hmc.steady_state")
    sums, once = _one_round(s, known_moments(s, gradient_moments, variant), variant)
    return float(sums[:, -1].sum()) / once


def along_coupling(problem: Quadratic, algorithm: FAHMC, constants: Any, n_rounds: int,
                   start: Any) -> dict[str, Any]:
    """Exact E_t of the coupled pair, and the exact B_c up to then."""
    law = coupling_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)
    return {"coupling": law.distance_sq[:-1] if n_rounds else law.distance_sq,
            "gradient_moments": law.gradient_moments.max(axis=0)}


def _proved(schedule: Callable[..., Assumption | None]) -> dict[str, Any]:
    """What the three statements share; `schedule` judges the step sizes."""
    return {"source": SOURCE, "variants": VARIANTS, "hypotheses": (
        within(REACH, printed=FULL_TURN), Hypothesis(EQUAL_STEPS, schedule), MOMENTS, SMOOTH, FULL)}


@hessian_theorem("Theorem 4.4 (one step)", quantity="coupling_sq", terms=("contraction", *ADDED),
                 index="local_step", inputs=along_coupling,
                 **_proved(lambda algorithm, coupling, variant: steps_allowed(
                     algorithm, len(coupling), variant)))
def one_step_bound(s: Setting, algorithm: FAHMC, variant: str, *, coupling: Any,
                   gradient_moments: Any = None) -> Terms:
    """One update of the coupled pair.

    Guarantee:  E_{t+1} <= (1 - mu X^2/4) E_t + a_j(X), j = t mod T (see `theory.fa_hmc.theorem_44`).

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


def _guaranteed(s: Setting, constants: Constants, algorithm: FAHMC, steps: np.ndarray, variant: str,
                gradient_moments: Any, initial: float | None) -> Terms:
    """The recursion's E_t at local updates `steps`, by the parts of E_0 and of a_j, E_0, and the limit."""
    moments, begin = known_moments(s, gradient_moments, variant), initial_error(constants, s, initial)
    names = ("initialization", *ADDED)
    if not algorithm.schedule.is_constant:
        last = int(steps.max())
        lengths = trajectory_lengths(algorithm, last)
        parts = added(s, lengths, np.arange(last) % s.T, moments, variant).values()
        errors = _summed(np.array([begin, 0.0, 0.0, 0.0, 0.0]), contraction(s, lengths),
                         np.array([np.zeros(last), *parts]))
        return Terms(dict(zip(names, errors[:, steps], strict=True)), start_distance=begin)
    sums, once = _one_round(s, moments, variant)
    rate, (rounds, rest) = 0.25 * s.mu * s.X**2, np.divmod(steps, s.T)
    series = decay(rate, rounds * float(s.T), lost=True) / once if once > 0.0 else rounds.astype(np.float64)
    floor = float(sums[:, -1].sum() / once) if once > 0.0 else np.inf
    errors = np.vstack([decay(rate, steps) * begin,
                        decay(rate, rest) * sums[:, -1:] * series + sums[:, rest]])
    return Terms(dict(zip(names, errors, strict=True)), start_distance=begin,
                 floor=floor if np.isfinite(floor) else None)


@hessian_theorem("Theorem 4.4 (iterated)", quantity="coupling_sq", terms=("initialization", *ADDED),
                 index="local_step", **_proved(lambda algorithm, rounds, variant: steps_allowed(
                     algorithm, int(rounds.max()), variant)))
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
    return _guaranteed(s, constants, algorithm, rounds, variant, gradient_moments, initial)


@hessian_theorem("Theorem 4.4", quantity="w2", terms=("initialization", *ADDED),
                 **_proved(lambda algorithm, rounds, variant: steps_allowed(
                     algorithm, int(rounds.max()) * algorithm.local_steps, variant)))
def w2_bound(s: Setting, constants: Constants, algorithm: FAHMC, rounds: np.ndarray, variant: str, *,
             gradient_moments: Any = None, initial: float | None = None) -> Terms:
    """W2 bound at communications: the square root of the recursion's E_t at t = n T.

    Source: FA-HMC Theorem 4.4 with the explicit constants of section G (see `theory.fa_hmc.theorem_44`).

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
    squared = _guaranteed(s, constants, algorithm, rounds * s.T, variant, gradient_moments, initial)
    return Terms(shares_of_root(squared.terms),
                 start_distance=float(np.sqrt(initial_error(constants, s, initial))),
                 floor=None if squared.floor is None else float(np.sqrt(squared.floor)), is_root=True)
