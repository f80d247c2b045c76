"""FA-HMC's statements up to constants: Theorems 4.1, 4.4, C.1 and Proposition 4.3.

They are of kind "rate": shapes, with every unknown constant (and power of log d) set to one. What is
done with them stands in `theory.rates`: ratios, a constant labelled as fitted, slopes. With the squared
trajectory length g = (K eta)^2 and E_0 the squared W2 at the start, Theorem 4.1's rule is

    1/g = L + T sqrt(d)/eps + d T^2 (1-rho) N/eps^2 + d sum_c w_c^2 sigma_g^2/(K eps^2)

up to a constant, and iterations go like (4/(mu g)) log(2 E_0/eps^2): solved from Theorem 4.4, whose two
parts are made eps^2/2 each.

Variants "sharp" use that momenta of different updates are independent: with Lemma D.8 corrected,
correlation enters with T, not T^2, and the rise of rounds with T that Theorem 4.1 reads off its rate (the
right arm of the U) is gone. This is what the explicit recursion gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.law import recorded_rounds
from fedsim.validation import positive, whole

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from .bounds import all_clients, initial_error
from .recursion import contraction
from .setting import FULL_TURN, PAPER, Setting, known_moments, setting, within


def inverse_squared_length(s: Setting, eps: float, power: int = 2) -> dict[str, float]:
    """1/g by its parts; the largest decides. `power` is that of T in the correlation."""
    return {"smoothness": s.L, "bias": s.T * np.sqrt(s.d) / eps,
            "correlation": s.d * float(s.T) ** power * (1.0 - s.rho) * s.N / eps**2,
            "gradient_noise": s.d * float((s.w**2).sum()) * s.sigma_sq / (s.K * eps**2)}


@theorem(id="fa_hmc.rounds_rate", paper=PAPER, number="Theorem 4.1", kind="rate", quantity="rounds_to_w2",
         algorithm=FAHMC, convention="federated",
         hypotheses=("step size by the theorem's rule", "all clients, not debiased"),
         inputs=lambda problem, algorithm, constants, n_rounds, start: {
             "eps": 0.5 * (constants.initial_w2 or 1.0)}, applies=all_clients,
         variants=("corrected", "printed", "sharp"))
def rounds_rate(constants: Constants, algorithm: FAHMC, *, eps: float, n_rounds: int = 0, record: Any = None,
                variant: str = "corrected") -> Bound:
    """Shape of the rounds to W2 <= eps with the step size of Theorem 4.1.

    Guarantee: rounds = O(value), the value being (4/(mu g T)) log(2 E_0/eps^2) with 1/g of this module.

    Source: FA-HMC Theorem 4.1. Printed: (d log(d/eps^2)/eps^2) (T (g + (1-rho) N)
    + sum_c w_c^2 sigma_g^2/(K T)), the same where 1/L does not decide and E_0 = O(d).

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        Its step size is of no influence.
    eps : float
        W2 to be reached, positive.
    n_rounds, record
        Of no influence: the statement is about one number of rounds.
    variant : "corrected", "printed" or "sharp"
        "sharp" has T for T^2 in the correlation.

    Returns
    -------
    Bound of kind "rate" with one entry and terms "smoothness", "bias", "correlation" and "gradient_noise"
    ("printed": the last three).

    Examples
    --------
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> bound = rounds_rate(constants(problem, algorithm), algorithm, eps=0.01)
    >>> bound.kind, float(bound.value[0].round(1))
    ('rate', 3997.6)
    """
    accuracy = positive("eps", eps)
    s = setting(constants, algorithm)
    parts = inverse_squared_length(s, accuracy, 1 if variant == "sharp" else 2)
    if variant == "printed":
        g = 1.0 / max(parts.values())
        log = max(float(np.log(s.d / accuracy**2)), 0.0) * s.d / accuracy**2
        terms = {"bias": log * s.T * g, "correlation": log * s.T * (1.0 - s.rho) * s.N,
                 "gradient_noise": log * float((s.w**2).sum()) * s.sigma_sq / (s.K * s.T)}
    else:
        log = max(float(np.log(2.0 * initial_error(constants, s) / accuracy**2)), 0.0)
        terms = {name: 4.0 / (s.mu * s.T) * log * part for name, part in parts.items()}
    return Bound.from_terms(
        terms, np.array([0]), assumptions=(), quantity="rounds_to_w2", kind="rate",
        source="FA-HMC Theorem 4.1", variant=variant, target=constants.target, inputs={"eps": accuracy})


@theorem(id="fa_hmc.vanilla_rate", paper=PAPER, number="Proposition 4.3", kind="rate",
         quantity="rounds_to_w2", algorithm=FAHMC, convention="federated",
         hypotheses=("1 - shared_noise = O(g/N)", "sigma_g^2 = O(K g)", "all clients, not debiased"),
         variants=("printed",),
         inputs=lambda problem, algorithm, constants, n_rounds, start: {
             "eps": 0.5 * (constants.initial_w2 or 1.0)}, applies=all_clients)
def vanilla_rate(constants: Constants, algorithm: FAHMC, *, eps: float, n_rounds: int = 0, record: Any = None,
                 variant: str = "printed") -> Bound:
    """Shape of the rounds to W2 <= eps for (nearly) shared momenta and (nearly) exact gradients.

    Guarantee: rounds = O(sqrt(d) log(d/eps^2)/eps), whatever the number of local steps is.

    Source: FA-HMC Proposition 4.3.

    Parameters
    ----------
    constants, algorithm, eps, n_rounds, record
        As for `rounds_rate`.

    Returns
    -------
    Bound of kind "rate" with one entry and the term "rounds".
    """
    accuracy, d = positive("eps", eps), constants.dim
    value = np.sqrt(d) * max(float(np.log(d / accuracy**2)), 0.0) / accuracy
    return Bound.from_terms(
        {"rounds": value}, np.array([0]), assumptions=(), quantity="rounds_to_w2", kind="rate",
        source="FA-HMC Proposition 4.3", variant=variant, target=constants.target, inputs={"eps": accuracy})


@theorem(id="fa_hmc.lower_rate", paper=PAPER, number="Theorem C.1", kind="rate", quantity="rounds_to_w2",
         algorithm=FAHMC, convention="federated",
         hypotheses=("two kinds of clients, L > mu", "exact trajectories"), variants=("corrected", "printed"),
         inputs=lambda problem, algorithm, constants, n_rounds, start: {
             "eps": 0.5 * (constants.initial_w2 or 1.0)}, applies=all_clients)
def lower_rate(constants: Constants, algorithm: FAHMC, *, eps: float, n_rounds: int = 0, record: Any = None,
               variant: str = "corrected") -> Bound:
    """Shape of the rounds that the problem of Theorem C.1 needs at least.

    Guarantee: rounds to W2 <= eps on `TwoGroups` = Omega(sqrt(d) log(d/eps)/eps); iterations are T times
    as many.

    Source: FA-HMC Theorem C.1 (I.1), which has iterations, sqrt(d) T log(d/eps)/eps; section 4.1 prints
    the same with T under the root.

    Parameters
    ----------
    constants, algorithm, eps, n_rounds, record
        As for `rounds_rate`.
    variant : "corrected" or "printed"
        "printed" has T under the root as in section 4.1, in rounds: sqrt(d T) log(d/eps)/(eps T).

    Returns
    -------
    Bound of kind "rate" with one entry and the term "rounds".
    """
    accuracy, d, T = positive("eps", eps), constants.dim, algorithm.local_steps
    value = np.sqrt(d) * max(float(np.log(d / accuracy)), 0.0) / accuracy
    return Bound.from_terms(
        {"rounds": value / np.sqrt(T) if variant == "printed" else value}, np.array([0]), assumptions=(),
        quantity="rounds_to_w2", kind="rate", source="FA-HMC Theorem C.1", variant=variant,
        target=constants.target, inputs={"eps": accuracy})


@theorem(id="fa_hmc.error_rate", paper=PAPER, number="Theorem 4.4 (O-form)", kind="rate",
         quantity="coupling_sq", algorithm=FAHMC, convention="federated",
         hypotheses=(FULL_TURN, "all clients, not debiased"), index="local_step", applies=all_clients,
         variants=("corrected", "printed", "sharp"))
def error_rate(constants: Constants, algorithm: FAHMC, *, n_rounds: int, record: Any = None,
               gradient_moments: Any = None, variant: str = "corrected") -> Bound:
    """Shape of E_t after t local updates, with C_1 = C_2 = 1 in Theorem 4.4.

    Guarantee, up to the constants, with X = K eta constant:

        E_t <= (1 - mu X^2/4)^t E_0 + X^2 { T (T-1) [ sum_c w_c B_c X^2 + (1-rho) N d ]
               + sum_c w_c^2 sigma_g^2 d/K }

    Source: FA-HMC Theorem 4.4. Printed: exponent t for E_{t+1}; T^2 for T (T-1), which is not zero for
    T = 1, where clients never part; 1/L in the bracket, so that C_1 must carry the unit of L; and (1-rho) d
    under a sum over c.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        Constant step size, all clients, not debiased.
    n_rounds : int
    record : sequence of local updates, optional
    gradient_moments : (N,), optional
        B_c; by default Lemma D.7's bound.
    variant : "corrected", "printed" or "sharp"
        "sharp" has (T-1)^2 for gradients and T - 1 for the correlation.

    Returns
    -------
    Bound of kind "rate" with terms "initialization", "bias", "correlation" and "gradient_noise".
    """
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant: with decreasing steps the "
                         "theorem's display is false; use theory.fa_hmc.coupling_bound")
    s = setting(constants, algorithm)
    moments, _ = known_moments(s, gradient_moments, "corrected")
    steps = recorded_rounds(whole("n_rounds", n_rounds) * s.T, record)
    of_gradients, of_momenta = {"printed": (s.T**2, s.T**2), "corrected": (s.T * (s.T - 1),) * 2,
                                "sharp": ((s.T - 1) ** 2, s.T - 1)}[variant]
    units = s.L if variant == "printed" else 1.0
    age = np.maximum(steps - 1, 0) if variant == "printed" else steps
    return Bound.from_terms(
        {"initialization": contraction(s, s.X) ** age * initial_error(constants, s),
         "bias": of_gradients * s.X**4 * (s.w @ moments) / units,
         "correlation": of_momenta * s.X**2 * (1.0 - s.rho) * s.N * s.d / units,
         "gradient_noise": s.X**2 / s.K * float((s.w**2).sum()) * s.sigma_sq * s.d},
        steps, assumptions=(within(s, FULL_TURN),), quantity="coupling_sq", kind="rate",
        source="FA-HMC Theorem 4.4", variant=variant, index="local_step", target=constants.target)
