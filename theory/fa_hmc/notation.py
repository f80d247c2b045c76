"""The numbers that all FA-HMC statements share (sections 3 and D.2 of the paper).

Two conventions need a word, because the paper is not of one mind about them:

* sigma_g^2. Assumption 3.4 has E||gradient noise of client c||^2 <= sigma_g^2 L d, every proof uses
  E||...||^2 <= sigma_g^2 d. Here it is the latter, except in variants "printed", which read
  Assumption 3.4 as it stands: their sigma_g^2 is smaller by the factor L.
* sigma^(c). Defined as (E||p^(c)||^2)^(1/2), which contains sqrt(d), and then multiplied by d once more
  in every lemma. Here s_c = shared_noise + (1 - shared_noise)/w_c is the variance per coordinate;
  variants "printed" have s_c d in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.interfaces import Problem
from fedsim.settings.validation import Array, array, instance, nonnegative, shape, whole

from ..declare.bound import Assumption
from ..declare.paper import Paper
from ..declare.statement import Hypothesis
from ..facts.constants_of_problem import NO_BEND, Constants


@dataclass(frozen=True, eq=False)
class Setting:
    """Constants and parameters under the paper's own letters.

    Attributes
    ----------
    mu, L, kappa : float
    d, N, K, T : int
    rho : float
        Shared noise.
    X : float
        Trajectory length K eta, of the largest step size.
    w : (N,)
        Weights.
    s : (N,)
        Variance of a coordinate of each client's momentum, rho + (1 - rho)/w_c.
    spread : float
        sum_c w_c s_c - 1 = (1 - rho)(N - 1): how far momenta are apart.
    sigma_sq : float
        sigma_g^2, from E||noise of client c||^2 <= sigma_g^2 d for every client.
    slopes : (N,)
        ||grad f_c(theta_*)||.
    D : float
        E||theta_0 - theta_*||^2 (the paper's D is squared already).
    L_H : float or None
        Hessian smoothness of Assumption 3.3, 0 for quadratics; None where it is not known.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=4.0, initial_distance=2.0)
    >>> s = theory.fa_hmc.setting(known, fs.FAHMC(0.01, 10))
    >>> s.gradient_moments().tolist(), round(s.c_d, 1)
    ([4224.0], 143.4)
    """

    mu: float
    L: float
    kappa: float
    d: int
    N: int
    K: int
    T: int
    rho: float
    X: float
    w: Array
    s: Array
    spread: float
    sigma_sq: float
    slopes: Array
    D: float
    L_H: float | None

    def of(self, variant: str) -> Setting:
        """Read as printed: s_c d for s_c, and the sigma_g of Assumption 3.4."""
        if variant != "printed":
            return self
        s = self.s * self.d
        return replace(self, s=s, spread=float(self.w @ s) - 1.0, sigma_sq=self.sigma_sq / self.L)

    @property
    def c_d(self) -> float:
        """Constant of the maximal inequalities, Lemma D.10."""
        return maximal_constant(self.d)

    @property
    def bend(self) -> float:
        """c_d L_H^2/L^3, or a ValueError where L_H is not known: that is never read as 0."""
        if self.L_H is None:
            raise ValueError(f"hessian_smoothness=None: {NO_BEND}, and it is needed here; pass "
                             "hessian_smoothness=... to theory.Constants, 0 for quadratics")
        return self.c_d * self.L_H**2 / self.L**3

    @property
    def client_error(self) -> tuple[Array, Array, Array]:
        """Coefficients of B_c, of 1 and of sigma_g^2/K in delta_K^c, equation (9), each (N,)."""
        bend = self.bend
        return ((1.0 + bend * self.s / 8.0) / self.L, (self.s + bend * self.s**2) * self.d,
                (1.0 + bend * self.s) * self.d / self.L)

    @property
    def target_error(self) -> float:
        """delta_pi, equation (17)."""
        return 1.25 * (self.kappa + self.bend) * self.d

    def moment_constants(self, variant: str = "corrected") -> Array:
        """B_a^(c) of Lemma D.7, (N,).

        Corrected: 2 kappa s_c d + 4 ||grad f_c(theta_*)||^2/(3 mu) + sigma_g^2 d/(7 K mu), the printed
        constants with the momentum's variance s_c put in. They come out of (36)-(38) with the splits
        (c_3, c_4) = (9/10, 1/10) and (c_5, c_6) = (1/2, 1/2).
        """
        s = np.ones(self.N) if variant == "printed" else self.s
        sigma_sq = self.of(variant).sigma_sq
        return (2.0 * self.kappa * s * self.d + 4.0 * self.slopes**2 / (3.0 * self.mu)
                + sigma_sq * self.d / (7.0 * self.K * self.mu))

    def second_moments(self, variant: str = "corrected") -> Array:
        """(11): bounds of sup_t E||theta_t^c - theta_*||^2 at the start of updates, (N,)."""
        cost = self.moment_constants(variant)
        return self.D + 8.0 / self.mu * (cost + self.w @ cost)

    def gradient_moments(self, variant: str = "corrected") -> Array:
        """(12): bounds of B_c = sup_t E||grad f_c(theta_t^c)||^2, (N,)."""
        return 2.0 * self.L**2 * self.second_moments(variant) + 2.0 * self.slopes**2


def maximal_constant(dim: int) -> float:
    """c_d = 128 + 32 log(2 d)^2 of Lemma D.10."""
    return float(128.0 + 32.0 * np.log(2.0 * dim) ** 2)


def _other_rounds(algorithm: FAHMC, problem: Problem) -> str:
    if algorithm.participation is not None:
        return (f"participation={algorithm.participation!r} must be None: FA-HMC's theorems are about all "
                "clients")
    return "" if algorithm.debias is None else (
        f"debias={algorithm.debias!r} must be None: FA-HMC's theorems are about gradients that are not "
        "debiased")


FULL = Hypothesis("all clients, not debiased", refuses=_other_rounds)


def setting(constants: Constants, algorithm: FAHMC, hessian_smoothness: float | None = None) -> Setting:
    """Collect what the statements need; a ValueError names a constant that is not known.

    Parameters
    ----------
    constants : Constants
        Convention "federated", with n_clients, initial_distance and the gradients at the minimizer.
    algorithm : fedsim.FAHMC
        All clients, not debiased.
    hessian_smoothness : float, optional
        L_H, at least 0; that of the constants by default, which may not be known.

    Returns
    -------
    Setting

    Raises
    ------
    ValueError
        For constants that are not known, participation, debias, and hessian_smoothness below 0.

    Source: FA-HMC section 3 and appendix D.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.01, 10, local_steps=2)
    >>> s = theory.fa_hmc.setting(theory.constants(problem, algorithm), algorithm)
    >>> s.kappa, s.X, s.s.tolist()
    (3.0, 0.1, [1.0, 1.0])
    """
    instance("constants", constants, Constants)
    instance("algorithm", algorithm, FAHMC)
    FULL.require(algorithm)
    w, rho = constants.weights, algorithm.shared_noise
    N = constants.need("n_clients")
    if constants.gradient_at_minimizer is not None:
        slopes = constants.gradient_norms
    else:
        slopes = np.full(N, 0.0 if N == 1 else constants.need("heterogeneity"))
    s = rho + (1.0 - rho) / w
    return Setting(
        mu=constants.strong_convexity, L=constants.smoothness, kappa=constants.condition_number,
        d=constants.dim, N=N, K=algorithm.leapfrog_steps, T=algorithm.local_steps, rho=rho,
        X=algorithm.leapfrog_steps * algorithm.schedule.largest, w=w, s=s, spread=(1.0 - rho) * (N - 1.0),
        sigma_sq=float(constants.gradient_noise_traces.max()) / constants.dim, slopes=slopes,
        D=constants.need("initial_distance") ** 2,
        L_H=constants.hessian_smoothness if hessian_smoothness is None
        else nonnegative("hessian_smoothness", hessian_smoothness))


def _as_quadratic(constants: Constants, algorithm: FAHMC, hessian_smoothness: float | None = None) -> Setting:
    """`setting`, with L_H = 0 where it is not known: `SMOOTH` then does not hold."""
    s = setting(constants, algorithm, hessian_smoothness)
    return replace(s, L_H=0.0) if s.L_H is None else s


def _is_smooth(constants: Constants, hessian_smoothness: Any) -> Assumption:
    known = hessian_smoothness is not None or constants.hessian_smoothness is not None
    return Assumption.yes("Hessian-Lipschitz constant known" if known else f"{NO_BEND} (0 is taken)", known)


SMOOTH = Hypothesis("Hessian-Lipschitz constant known (Assumption 3.3)", _is_smooth)
"""Of `hessian_theorem`: all of them."""


def known_moments(s: Setting, moments: Any, variant: str) -> Array:
    """B_c, by Lemma D.7 where they are not given (see `hypotheses.MOMENTS`)."""
    if moments is None:
        return s.gradient_moments(variant)
    moments = shape("gradient_moments", array("gradient_moments", moments, 1), (s.N,))
    if (moments < 0.0).any():
        raise ValueError(f"gradient_moments has a negative entry {moments.min():g}; they must be at least 0")
    return moments


def client_number(s: Setting, client: Any) -> int:
    """A client's number; by default the one with the smallest weight."""
    return int(np.argmin(s.w)) if client is None else whole("client", client, 0, s.N - 1)


_PAPER = Paper(
    id="fa_hmc", name="FA-HMC", key="liang2024", algorithm=FAHMC, convention="federated", setting=setting,
    to_target=("w2", "coupling_sq", "rounds_to_w2", "target_second_moment"),
    arguments={
        "coupling": "(n,): E_0, ..., E_{n-1}.",
        "gradient_moments": "(N,), optional: B_c; by default Lemma D.7's bound, with its hypothesis.",
        "initial": "float, optional: E_0; by default the squared W2 of the start, or Lemma D.2's bound where "
                   "that is not known.",
        "client": "int, optional: Its number; the one of smallest weight by default.",
        "eps": "float: W2 to be reached, positive.",
        "hessian_smoothness": "float, optional: L_H of Assumption 3.3, |(Hess f_c(x) - Hess f_c(y)) u| <= "
                              "L_H |x-y| |u|_max, at least 0; that of the constants by default."},
    raises="Constants that are not known, a schedule that ends too early, arguments of another shape, sign "
           "or range than said, and settings that the hypotheses exclude.",
    example=""">>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
>>> algorithm = fs.FAHMC(0.01, 10, local_steps=2)""")
hessian_theorem = replace(_PAPER, setting=_as_quadratic).theorem
"""For statements that depend on hessian_smoothness; SMOOTH is a hypothesis of each."""
theorem = replace(_PAPER, setting=lambda constants, algorithm: setting(constants, algorithm)).theorem
erratum, reading = _PAPER.erratum, _PAPER.reading
