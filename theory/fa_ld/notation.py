"""The numbers that all FA-LD statements share (Definition A.4 and section 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.settings.participation import Participation
from fedsim.settings.validation import Array, instance

from ..declare.bound import Assumption
from ..declare.paper import Paper
from ..declare.statement import Hypothesis
from ..facts.constants_of_problem import Constants
from ..theorem_parts import constant_step, required


@dataclass(frozen=True)
class Setting:
    """Constants and parameters under the paper's own letters.

    Attributes
    ----------
    m, L, kappa : float
    d, N, K : int
    tau : float
        Temperature.
    eta : float
        The (largest) step size.
    D : float
        sqrt(E||theta_0 - theta_*||^2 / d).
    gamma : float
        Heterogeneity, max_c ||grad f_c(theta_*)||.
    sigma : float
        From E||noise_c||^2 <= sigma^2 d for every client: sqrt(max_c trace / d).
    client_temperature : float
        max_c T_{c,rho} = tau (rho^2 + (1-rho^2) / min_c p_c).
    mean_temperature : float
        sum_c p_c T_{c,rho} = tau (rho^2 + N (1-rho^2)), whatever the weights are.
    H : float
        H_rho = D^2 + client_temperature/m + gamma^2/(m^2 d) + sigma^2/m^2.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.01, local_steps=2)
    >>> s = theory.fa_ld.setting(theory.constants(problem, algorithm), algorithm)
    >>> s.m, s.L, s.K, s.tau, round(s.start, 3)
    (1.0, 3.0, 2, 1.0, 2.475)
    """

    m: float
    L: float
    kappa: float
    d: int
    N: int
    K: int
    tau: float
    eta: float
    D: float
    gamma: float
    sigma: float
    client_temperature: float
    mean_temperature: float
    H: float

    @property
    def start(self) -> float:
        """sqrt(2 d) (D + sqrt(tau / m)), Lemma F.1's bound of W2 at the start."""
        return float(np.sqrt(2 * self.d) * (self.D + np.sqrt(self.tau / self.m)))

    @property
    def nearest_start(self) -> float:
        """The same without sqrt(2), which is all that the triangle inequality asks for (`initial_bound`)."""
        return float(np.sqrt(self.d) * (self.D + np.sqrt(self.tau / self.m)))


def setting(constants: Constants, algorithm: FALD) -> Setting:
    """Collect what the statements need; a ValueError names a constant that is not known.

    Parameters
    ----------
    constants : Constants
        Convention "federated", with n_clients, heterogeneity and initial_distance.
    algorithm : fedsim.FALD

    Returns
    -------
    Setting

    Raises
    ------
    ValueError
        For constants that are not known, and where H_rho is too large for a float64.

    Source: FA-LD sections 3 and 4.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.01, local_steps=2)
    >>> round(theory.fa_ld.setting(theory.constants(problem, algorithm), algorithm).H, 4)
    3.125
    """
    instance("constants", constants, Constants)
    instance("algorithm", algorithm, FALD)
    m, L, d = constants.strong_convexity, constants.smoothness, constants.dim
    tau, shared = algorithm.temperature, algorithm.shared_noise
    N = constants.need("n_clients")
    gamma = 0.0 if N == 1 and constants.heterogeneity is None else constants.need("heterogeneity")
    D = constants.need("initial_distance") / np.sqrt(d)
    sigma_sq = float(constants.gradient_noise_traces.max()) / d
    hottest = tau * (shared + (1.0 - shared) / constants.weights.min())
    with np.errstate(over="ignore"):
        H = D**2 + hottest / m + np.square(gamma / m) / d + sigma_sq / m / m
    if not np.isfinite(H):
        raise ValueError(f"initial_distance={constants.initial_distance:g}, heterogeneity={gamma:g} and "
                         f"gradient_noise_traces up to {sigma_sq * d:g} at strong_convexity={m:g} make H_rho "
                         "too large for a float64")
    return Setting(m, L, constants.condition_number, d, N, algorithm.local_steps, tau,
                   algorithm.schedule.largest, float(D), gamma, float(np.sqrt(sigma_sq)), float(hottest),
                   tau * (shared + N * (1.0 - shared)), float(H))


def largest_step_of_round(algorithm: FALD, steps: np.ndarray, before: bool = False) -> Array:
    """Largest step size used between the last synchronization and each local step, (n,).

    `before` looks at the round that ends at the step, for steps where clients synchronize.
    """
    schedule, K = algorithm.schedule, algorithm.local_steps
    if schedule.is_constant:
        return np.full(len(steps), schedule.largest)
    if schedule.n_steps is not None and steps.max() > schedule.n_steps:
        raise ValueError(f"step_size has {schedule.n_steps} entries; it must have at least {steps.max()}, "
                         "one per local step")
    firsts = np.maximum(steps - int(before), 0) // K * K
    lasts = np.maximum(steps - 1, firsts)
    if schedule.n_steps is not None:
        firsts, lasts = (np.minimum(ends, schedule.n_steps - 1) for ends in (firsts, lasts))
    return np.array([schedule.at(np.arange(first, last + 1)).max()
                     for first, last in zip(firsts, lasts, strict=True)])


def within(limit: str, printed: str = "") -> Hypothesis:
    """The step-size range of a statement, another one for the variant "printed" where it has one.

    Parameters
    ----------
    limit, printed : "1/(2L)", "1/(L+m)", "2/(L+m)" or "2/m"
    """
    def judge(s: Setting, variant: str) -> Assumption:
        words, largest = LIMITS[printed if printed and variant == "printed" else limit]
        return Assumption.at_most(words, s.eta, largest(s))

    return Hypothesis(LIMITS[limit][0], judge)


LIMITS: dict[str, tuple[str, Callable[[Setting], float]]] = {
    "1/(2L)": ("step_size <= 1/(2 smoothness)", lambda s: 0.5 / s.L),
    "1/(L+m)": ("step_size <= 1/(smoothness + strong_convexity)", lambda s: 1.0 / (s.L + s.m)),
    "2/(L+m)": ("step_size <= 2/(smoothness + strong_convexity)", lambda s: 2.0 / (s.L + s.m)),
    "2/m": ("step_size <= 2/strong_convexity", lambda s: 2.0 / s.m)}


FULL = required("full participation", lambda algorithm: algorithm.participation is None,
                "participation={algorithm.participation!r} must be None for this theorem; use "
                "theory.fa_ld.w2_bound_partial (Theorem 4.10)")
CONSTANT = constant_step(" for this theorem; for the harmonic schedule use theory.fa_ld.w2_bound_decreasing "
                         "(Theorem 4.8)", "constant step_size")
DRAWN = required("participation by scheme I or II",
                 lambda algorithm: isinstance(algorithm.participation, Participation),
                 "participation={algorithm.participation!r} must be a fedsim.Participation for this "
                 "theorem; with all clients use theory.fa_ld.w2_bound (Theorem 4.7)")


def start_distance(constants: Constants, s: Setting) -> float:
    """W2 at the start; where it is not known an upper bound of it, so that a bound is never called
    vacuous without reason.

    The upper bound is ||theta_0 - theta_*|| + sqrt(d tau/m): from the start to the minimizer, and from there
    to the target, whose mean square distance to the minimizer is at most d tau/m. (The root of the sum of
    squares is less than W2 where the target leans away from the start.)
    """
    if constants.initial_w2 is not None:
        return constants.initial_w2
    return s.nearest_start


_PAPER = Paper(
    id="fa_ld", name="FA-LD", key="deng2021", algorithm=FALD, convention="federated", setting=setting,
    to_target=("w2", "stationary_w2", "langevin_increment", "w2_sq_of_average", "rounds_to_w2"),
    start_distances={"w2": start_distance}, arguments={"eps": "float: W2 to be reached, positive."},
    raises="Constants that are not known, or that make H_rho too large for a float64; a schedule that ends "
           "too early.",
    example=""">>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
>>> algorithm = fs.FALD(0.01, local_steps=2)""")
theorem, erratum, reading = _PAPER.theorem, _PAPER.erratum, _PAPER.reading
