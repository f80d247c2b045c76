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

from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.settings.alignment import together
from fedsim.settings.validation import nonnegative, one_of, shape, whole

from ..declare.bound import Assumption
from ..declare.registry import named_variant
from ..declare.statement import Hypothesis, Terms
from ..facts.constants_of_problem import Constants
from ..rates import above_zero
from .setting import HYPOTHESES, Setting, rate, stable_step

OF_SERVERS = {"n_chains": "int, optional: S, the number of servers; 2, or as many as the next two say.",
              "step_sizes": "(S,), optional: h_s; all that of the algorithm by default.",
              "speeds": "(S,), optional: Iterations L_s of each server for one of L; all 1 by default."}


def _each_stable(constants: Constants, algorithm: Any, step_sizes: Any) -> Assumption:
    """Of the server with the largest step."""
    largest = algorithm.schedule.largest if step_sizes is None else float(np.max(step_sizes))
    return stable_step(constants, replace(algorithm, step_size=largest))


PARALLEL = (*(replace(one, judge=_each_stable) if one.judge is stable_step else one for one in HYPOTHESES),
            Hypothesis("independent chains weighted by T_s/T"))


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
    counts, steps = above_zero("lengths", lengths), above_zero("step_sizes", step_sizes)
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


def _servers(n_chains: int | None, step_sizes: Any, speeds: Any, h: float) -> tuple[np.ndarray, np.ndarray]:
    """h_s and L_s/L of every server, each (S,); two equal ones where nothing else is said."""
    paired = together(0, step_sizes=step_sizes, speeds=speeds)
    named = zip(("step_sizes", "speeds"), paired, strict=True)
    given = {name: above_zero(name, value) for name, value in named if value is not None}
    count = 2 if n_chains is None else whole("n_chains", n_chains, 1, MOST_SERVERS)
    servers = count if n_chains is not None or not given else len(next(iter(given.values())))
    for name, entries in given.items():
        shape(name, entries, (servers,), " (one per server)")
    return given.get("step_sizes", np.full(servers, h)), given.get("speeds", np.ones(servers))


def _together(quantity: str, s: Setting, rounds: np.ndarray, variant: str, n_chains: int | None,
              step_sizes: Any, speeds: Any, order: int) -> Terms:
    """The terms of all servers when each has so many iterations for one of L."""
    steps, shares = _servers(n_chains, step_sizes, speeds, s.h)
    form = "proof" if variant == "printed" else variant
    rows = [chain_terms(quantity, length * shares, steps, s.tau, order=order, variant=form)
            for length in rounds.tolist()]
    return Terms({name: np.array([row[name] for row in rows]) for name in rows[0]},
                 inputs={"n_chains": len(steps), "tau": s.tau})


WEIGHTED = "steps weighted by the servers' times"


@rate("Theorem 6 (bias)", source="Stale gradients Theorem 6", quantity="average_bias",
      terms=("time", "staleness", "integrator"), hypotheses=PARALLEL, arguments=OF_SERVERS,
      variants={"weighted": WEIGHTED, "printed": "with T_m/Tbar and the largest step, the proof's h_m"})
def chains_bias_rate(s: Setting, rounds: np.ndarray, variant: str, *, n_chains: int | None = None,
                     step_sizes: Any = None, speeds: Any = None, order: int = 1) -> Terms:
    """Shape of the bias of S servers whose averages are weighted by time.

    Guarantee, with T_s = L_s h_s, T their sum and w_s = T_s/T: bias = O(S/T + sum_s w_s (tau h_s + h_s^K)).

    Source: stale-gradient paper, Theorem 6, and the last line but one of its proof; see
    `theory.stale.servers`. Printed: S/T + (T_m/Tbar) (tau h_m + h_m^K). For equal servers both are the bias
    of one server.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.7
    """
    return _together("bias", s, rounds, variant, n_chains, step_sizes, speeds, order)


@rate("Theorem 6 (MSE)", source="Stale gradients Theorem 6", quantity="average_mse",
      terms=("time", "chains", "staleness", "integrator"), hypotheses=PARALLEL, arguments=OF_SERVERS,
      variants={"weighted": WEIGHTED,
                "proof": "the last line of the proof, which is the theorem with 1/Tbar^2 and "
                         "T_m^2/Tbar^2: without those bars, lost in our transcription, its last two terms "
                         'would not be "independent of S"'},
      formerly={"printed": "proof", "corrected": "proof"})
def chains_mse_rate(s: Setting, rounds: np.ndarray, variant: str, *, n_chains: int | None = None,
                    step_sizes: Any = None, speeds: Any = None, order: int = 1) -> Terms:
    """Shape of the mean squared error of S servers whose averages are weighted by time.

    Guarantee: MSE = O(1/T + (S^2 - S)/T^2 + (tau sum_s w_s h_s)^2 + (sum_s w_s h_s^K)^2).

    Source: stale-gradient paper, Theorem 6, with the proof in `theory.stale.servers`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.315
    """
    return _together("mse", s, rounds, variant, n_chains, step_sizes, speeds, order)


@rate("Theorem 7", quantity="average_variance", terms=("time", "integrator"), hypotheses=PARALLEL,
      formerly={"printed": "proof"}, arguments=OF_SERVERS,
      variants={"proof": "the last line of the proof, 1/T + ...; our transcription of the theorem has "
                         "1/Tbar, which is true and S times larger"})
def chains_variance_rate(s: Setting, rounds: np.ndarray, variant: str, *, n_chains: int | None = None,
                         step_sizes: Any = None, speeds: Any = None, order: int = 1) -> Terms:
    """Shape of the variance of S servers whose averages are weighted by time: of equal ones, 1/S of one's.

    Guarantee: Var = O(1/T + sum_s w_s^2 h_s^(2K)).

    Source: stale-gradient paper, Theorem 7; see `theory.stale.servers`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.055
    """
    return _together("variance", s, rounds, variant, n_chains, step_sizes, speeds, order)
