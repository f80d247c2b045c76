"""Several independent servers whose averages are weighted by time: Theorems 6 and 7 as rates.

With L_s iterations of size h_s, T_s = L_s h_s, T = sum_s T_s, Tbar = T/S and T_m, h_m the largest:

    bias      1/Tbar + (T_m/Tbar) (M1 tau h_m + M2 h_m^K)
    MSE       1/T + (S^2 - S)/T^2 + (T_m/Tbar)^2 (M1^2 tau^2 h_m^2 + M2^2 h_m^(2K))
    variance  1/T + sum_s (T_s/T)^2 h_s^(2K)

as their proofs give them, all constants one. Printed: h_s for h_m in Theorem 6; (1 - 1/Tbar)/T + 1/T^2
and (T_m/T)^2 in its MSE, where the last two denominators are Tbar^2; 1/Tbar for 1/T in Theorem 7.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.stale import Stale
from fedsim.validation import array, nonnegative, one_of, shape, whole

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from .rates import HYPOTHESES
from .setting import PAPER, fixed_step, iterations, largest_age


def chain_terms(quantity: str, lengths: Any, step_sizes: Any, tau: float, *, order: int = 1,
                variant: str = "corrected") -> dict[str, float]:
    """Terms of a rate for servers that may differ.

    Parameters
    ----------
    quantity : "bias", "mse" or "variance"
    lengths, step_sizes : (S,)
        L_s and h_s.
    tau : float
        Largest age.
    order : int
        K.
    variant : "corrected" or "printed"
        For the printed h_s of Theorem 6 the largest step size is taken.

    Returns
    -------
    dict of the terms "time", "chains" (MSE alone), "staleness" (not the variance) and "integrator".

    Examples
    --------
    >>> terms = chain_terms("variance", [100, 100], [0.1, 0.1], tau=3)
    >>> {name: round(value, 12) for name, value in terms.items()}
    {'time': 0.05, 'integrator': 0.005}
    """
    one_of("quantity", quantity, ("bias", "mse", "variance"))
    one_of("variant", variant, ("corrected", "printed"))
    counts = array("lengths", lengths, 1)
    steps = shape("step_sizes", array("step_sizes", step_sizes, 1), counts.shape, " (one per server)")
    if counts.min() <= 0.0 or steps.min() <= 0.0:
        raise ValueError(f"lengths and step_sizes have entries {counts.min():g} and {steps.min():g}; all "
                         "must be greater than 0")
    age, K, printed = nonnegative("tau", tau), whole("order", order, 1), variant == "printed"
    times, servers = counts * steps, len(counts)
    total, longest, h = float(times.sum()), float(times.max()), float(steps.max())
    mean = total / servers
    if quantity == "bias":
        return {"time": 1.0 / mean, "staleness": longest / mean * age * h,
                "integrator": longest / mean * h**K}
    if quantity == "variance":
        return {"time": 1.0 / (mean if printed else total),
                "integrator": float(((times / total) ** 2 * steps ** (2 * K)).sum())}
    first = {"time": 1.0 / total, "chains": (servers**2 - servers) / total**2}
    if printed:  # (1 - 1/Tbar)/T + 1/T^2; the negative part is kept with the second term
        first["chains"] = 1.0 / total**2 - 1.0 / (mean * total)
    weight = (longest / (total if printed else mean)) ** 2
    return {**first, "staleness": weight * (age * h) ** 2, "integrator": weight * h ** (2 * K)}


def _chains(constants: Constants, algorithm: Any, quantity: str, source: str, n_rounds: int, record: Any,
            n_chains: int, order: int, variant: str) -> Bound:
    lengths, h = iterations(n_rounds, record), fixed_step(algorithm)
    servers, tau = whole("n_chains", n_chains, 1), largest_age(algorithm, n_rounds)
    rows = [chain_terms(quantity, [length] * servers, [h] * servers, tau, order=order, variant=variant)
            for length in lengths.tolist()]
    terms = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Bound.from_terms(terms, lengths, assumptions=(), quantity=f"average_{quantity}", kind="rate",
                            source=f"{PAPER} {source}", variant=variant, target=constants.target,
                            inputs={"n_chains": servers, "tau": tau})


@theorem(id="stale.chains_bias_rate", paper=PAPER, number="Theorem 6 (bias)", kind="rate",
         quantity="average_bias", algorithm=Stale, convention="global", hypotheses=HYPOTHESES)
def chains_bias_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                     n_chains: int = 2, order: int = 1, variant: str = "corrected") -> Bound:
    """Shape of the bias of S equal servers, each with L iterations: that of one server.

    Source: stale-gradient paper, Theorem 6; see `theory.stale.servers`.

    Parameters
    ----------
    constants : Constants
        Convention "global".
    algorithm : fedsim.StaleSGLD or fedsim.StaleSGHMC
        Constant step size.
    n_rounds, record
        Iterations L of each server.
    n_chains : int
        S.
    order : int
        K.
    variant : "corrected" or "printed"
        The same for equal servers.

    Returns
    -------
    Bound of kind "rate" with terms "time", "staleness" and "integrator".
    """
    return _chains(constants, algorithm, "bias", "Theorem 6", n_rounds, record, n_chains, order, variant)


@theorem(id="stale.chains_mse_rate", paper=PAPER, number="Theorem 6 (MSE)", kind="rate",
         quantity="average_mse", algorithm=Stale, convention="global", hypotheses=HYPOTHESES)
def chains_mse_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                    n_chains: int = 2, order: int = 1, variant: str = "corrected") -> Bound:
    """Shape of the mean squared error of S equal servers, each with L iterations.

    Source: stale-gradient paper, Theorem 6; see `theory.stale.servers`.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, n_chains, order
        As for `chains_bias_rate`.
    variant : "corrected" or "printed"
        The printed one vanishes with S, which a bias does not; for Tbar < 1 - 1/S it can be negative and
        is refused.

    Returns
    -------
    Bound of kind "rate" with terms "time", "chains", "staleness" and "integrator".
    """
    return _chains(constants, algorithm, "mse", "Theorem 6", n_rounds, record, n_chains, order, variant)


@theorem(id="stale.chains_variance_rate", paper=PAPER, number="Theorem 7", kind="rate",
         quantity="average_variance", algorithm=Stale, convention="global", hypotheses=HYPOTHESES)
def chains_variance_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                         n_chains: int = 2, order: int = 1, variant: str = "corrected") -> Bound:
    """Shape of the variance of S equal servers, each with L iterations: 1/S of that of one server.

    Source: stale-gradient paper, Theorem 7; see `theory.stale.servers`.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, n_chains, order
        As for `chains_bias_rate`.
    variant : "corrected" or "printed"
        The printed one does not show the speedup in S.

    Returns
    -------
    Bound of kind "rate" with terms "time" and "integrator".
    """
    return _chains(constants, algorithm, "variance", "Theorem 7", n_rounds, record, n_chains, order, variant)
