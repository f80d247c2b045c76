"""Several independent servers whose averages are weighted by time: Theorems 6 and 7 as rates.

With L_s iterations of size h_s, T_s = L_s h_s, T = sum_s T_s, Tbar = T/S, w_s = T_s/T and T_m, h_m the
largest, the proofs end with (all constants one)

    bias      1/Tbar + (T_m/Tbar) (tau h_m + h_m^K)
    MSE       1/T + (S^2 - S)/T^2 + (T_m/Tbar)^2 (tau^2 h_m^2 + h_m^(2K))
    variance  1/T + sum_s w_s^2 h_s^(2K).

The theorems are these, but for bars over T that our transcription has lost or gained (``theory.remarks``).
Variant "weighted" leaves the needless factors T_m/Tbar >= 1 out. Bias: sum_s w_s (tau h_s + h_s^K) stands
in the line before the last. MSE: with b_s = tau h_s + h_s^K the proof's line before the last is at most

    sum_s w_s^2 (1/T_s + b_s^2) + sum_{i != j} w_i w_j (1/T_i + b_i) (1/T_j + b_j),

where w_s/T_s = 1/T, sum_s w_s^2 b_s^2 <= (sum_s w_s b_s)^2, and the mixed terms 2 ((S - 1)/T) sum_s w_s b_s
are at most (S - 1)^2/T^2 + (sum_s w_s b_s)^2. So, up to a constant, the last term of the MSE is
(tau sum_s w_s h_s)^2 + (sum_s w_s h_s^K)^2. For equal servers both variants are one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.alignment import together
from fedsim.settings.validation import array, nonnegative, one_of, shape, whole

from ..registry import named_variant
from ..statement import Hypothesis, Terms
from .setting import HYPOTHESES, Setting, rate

PARALLEL = (*HYPOTHESES, Hypothesis("independent chains weighted by T_s/T"))


def chain_terms(quantity: str, lengths: Any, step_sizes: Any, tau: float, *, order: int = 1,
                variant: str = "weighted") -> dict[str, float]:
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
    variant : "weighted" or "proof"
        Steps of the servers weighted by their times, or the last line of the paper's proof with the longest
        time and the largest step. The variance has one form alone.

    Returns
    -------
    dict of the terms "time", "chains" (MSE alone), "staleness" (not the variance) and "integrator".

    Raises
    ------
    ValueError
        For an unknown quantity or variant, `lengths` or `step_sizes` that are empty, of unequal shapes or not
        greater than 0, tau below 0, and order below 1.

    Source: stale-gradient paper, Theorems 6 and 7, and the proofs' last lines.

    Examples
    --------
    >>> terms = theory.stale.chain_terms("variance", [100, 100], [0.1, 0.1], tau=3)
    >>> {name: round(value, 12) for name, value in terms.items()}
    {'time': 0.05, 'integrator': 0.005}
    """
    one_of("quantity", quantity, ("bias", "mse", "variance"))
    weighted = named_variant(variant, ("weighted", "proof"), "chain_terms") == "weighted"
    lengths, step_sizes = together(0, lengths=lengths, step_sizes=step_sizes)
    counts, steps = array("lengths", lengths, 1), array("step_sizes", step_sizes, 1)
    for name, entries in (("lengths", counts), ("step_sizes", steps)):
        if entries.min() <= 0.0:
            raise ValueError(f"{name} has an entry {entries.min():g}; all must be greater than 0")
    shape("step_sizes", steps, counts.shape, " (one per server)")
    age, K = nonnegative("tau", tau), whole("order", order, 1)
    times, servers = counts * steps, len(counts)
    total = float(times.sum())
    mean, share = total / servers, times / total
    if quantity == "variance":
        return {"time": 1.0 / total, "integrator": float((share**2 * steps ** (2 * K)).sum())}
    if weighted:
        old, integrated = age * float(share @ steps), float(share @ steps**K)
    else:
        longest, h = float(times.max()) / mean, float(steps.max())
        old, integrated = longest * age * h, longest * h**K
    if quantity == "bias":
        return {"time": 1.0 / mean, "staleness": old, "integrator": integrated}
    return {"time": 1.0 / total, "chains": (servers**2 - servers) / total**2, "staleness": old**2,
            "integrator": integrated**2}


MOST_SERVERS = 10**6
"""Servers that are listed one by one."""


def _equal(quantity: str, s: Setting, rounds: np.ndarray, n_chains: int, order: int) -> Terms:
    """The terms of equal servers with as many iterations each as there are rounds."""
    servers = whole("n_chains", n_chains, 1, MOST_SERVERS)
    rows = [chain_terms(quantity, [length] * servers, [s.h] * servers, s.tau, order=order)
            for length in rounds.tolist()]
    return Terms({name: np.array([row[name] for row in rows]) for name in rows[0]},
                 inputs={"n_chains": servers, "tau": s.tau})


@rate("Theorem 6 (bias)", source="Stale gradients Theorem 6", quantity="average_bias",
      terms=("time", "staleness", "integrator"), hypotheses=PARALLEL)
def chains_bias_rate(s: Setting, rounds: np.ndarray, *, n_chains: int = 2, order: int = 1) -> Terms:
    """Shape of the bias of S equal servers, each with L iterations: that of one server.

    Source: stale-gradient paper, Theorem 6, as printed; see `theory.stale.servers`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.7
    """
    return _equal("bias", s, rounds, n_chains, order)


@rate("Theorem 6 (MSE)", source="Stale gradients Theorem 6", quantity="average_mse",
      terms=("time", "chains", "staleness", "integrator"), hypotheses=PARALLEL,
      variants={"proof": "the last line of the proof, which is the theorem with 1/Tbar^2 and "
                         "T_m^2/Tbar^2: without those bars, lost in our transcription, its last two terms "
                         'would not be "independent of S"'}, formerly={"printed": "proof"})
def chains_mse_rate(s: Setting, rounds: np.ndarray, *, n_chains: int = 2, order: int = 1) -> Terms:
    """Shape of the mean squared error of S equal servers, each with L iterations.

    Source: stale-gradient paper, Theorem 6; see `theory.stale.servers`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.315
    """
    return _equal("mse", s, rounds, n_chains, order)


@rate("Theorem 7", quantity="average_variance", terms=("time", "integrator"), hypotheses=PARALLEL,
      formerly={"printed": "proof"},
      variants={"proof": "the last line of the proof, 1/T + ...; our transcription of the theorem has "
                         "1/Tbar, which is true and S times larger"})
def chains_variance_rate(s: Setting, rounds: np.ndarray, *, n_chains: int = 2, order: int = 1) -> Terms:
    """Shape of the variance of S equal servers, each with L iterations: 1/S of that of one server.

    Source: stale-gradient paper, Theorem 7; see `theory.stale.servers`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.055
    """
    return _equal("variance", s, rounds, n_chains, order)
