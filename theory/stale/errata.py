"""Errata of, and remarks on, the stale-gradient paper; slips of its proofs are in `slips`.

Each demonstration computes its numbers anew, by exact laws of the Gaussian model.
"""

from __future__ import annotations

import numpy as np

from fedsim.algorithms.stale import StaleSGLD
from fedsim.problems.quadratic import Quadratic
from fedsim.staleness import Workers

from ..errata import Evidence, erratum, reading
from ..exact.stale import average_law
from . import slips
from .rules import mse_step_size
from .servers import chain_terms
from .setting import PAPER
from .speedup import first_reaching

__all__ = ["slips"]

N_DATA, BATCH_SIZE, CONSTANT, ITERATIONS = 1000, 10, 1.0 / 30.0, 500
AGES = (1, 2, 5, 10, 15, 20)
"""The settings of Figure 1: N, J, C, L_0 (times tau) and tau."""


def least_growth_of_ages_0_and_1(ha: float, n_old: int = 200) -> float:
    """Least growth per update, as a logarithm, of x <- x - h a x_old over all sequences of ages 0 and 1.

    An update of age 0 forgets all but the last iterate. Up to the next one, k updates of age 1 later, the
    iterate is multiplied by u_{k+1}, where u_0 = 1, u_1 = 1 - h a and u_{j+1} = u_j - h a u_{j-1}: the
    growth per update is at least the smallest of log|u_{k+1}|/(k + 1), taken over k <= `n_old`.
    """
    before, now, least = 1.0, 1.0 - ha, np.inf
    for count in range(1, n_old + 2):
        least = min(least, float(np.log(abs(now))) / count)
        before, now = now, now - ha * before
    return least


@erratum(id="stale.figure_1_step_size", paper=PAPER, where="section 5.1 and Figure 1", grade="error",
         printed="h = C tau^(-2/3) L^(-1/3) with C = 1/30, L = 500 tau, 1000 data and minibatches of 10 "
                 "(scaled by N/J = 100, equation (2)); approximately the same MSE's for all tau",
         corrected="C < 500^(1/3)/1001 = 0.0079 is stable with that scale at a constant age; C = 1/30 is "
                   "with the sum of a minibatch not scaled by N/J",
         consequence="constant", theorems=(), kind="numerical",
         derivation="The posterior has precision a = 1001, so that h a = 4.2 at tau = 1 and 2.1 at tau = 2: "
                    "beyond 2, where fresh gradients diverge. At a constant age tau the limit is 2 sin(pi/"
                    "(2 (2 tau + 1))), and h a exceeds it at all six tau. The paper's tau is the largest "
                    "age. Ages below it help at large tau, not at tau = 1, 2; at tau = 1 each sequence of "
                    "ages 0 and 1 diverges. tau = 1 does so with steps h/2, too (h a/2 = 2.1).")
def _figure_1_step_size() -> Evidence:
    """Growth per update (its logarithm) at a constant age, and with ages uniform on 0, ..., tau."""
    problem, updates = Quadratic(np.array([[N_DATA + 1.0]]), np.zeros((1, 1))), 20_000
    growing: dict[str, list[int]] = {"a constant age": [], "ages uniform on 0..tau": []}
    numbers = {}
    ages = np.random.default_rng(0).random(updates)
    for tau in AGES:
        h = mse_step_size(ITERATIONS * tau, tau, CONSTANT)
        uniform = np.minimum((ages * (tau + 1)).astype(int), np.arange(updates))
        for (name, found), staleness in zip(growing.items(), (tau, uniform), strict=True):
            growth = float(np.log(StaleSGLD(h, staleness).radius(problem)))
            numbers[f"growth per update, {name}, tau={tau}"] = growth
            if growth > 0.0:
                found.append(tau)
    any_ages = least_growth_of_ages_0_and_1((N_DATA + 1.0) * mse_step_size(ITERATIONS, 1, CONSTANT))
    numbers["least growth per update over all ages 0 and 1, tau=1"] = any_ages
    said = "; ".join(f"with {name} at tau = {', '.join(map(str, found)) or 'none of them'}"
                     for name, found in growing.items())
    return Evidence(all({1, 2} <= set(found) for found in growing.values()) and any_ages > 0.0, numbers,
                    f"With gradients scaled as in equation (2) paths grow {said}. Where they grow the MSE of "
                    "the figure cannot have come from this setting.")


@erratum(id="stale.workers_ratio", paper=PAPER, where="section 5.1, convergence speedup of the variance",
         printed="L_1/L_2 = W_1/W_2, the number of workers and iterations at the same variance",
         corrected="L_1/L_2 = W_2/W_1 for iterations per worker", grade="error", consequence="nothing",
         theorems=("stale.optimal_variance_rate",), kind="numerical",
         derivation="Corollary 5 is in the iterations of the server, W L for L iterations per worker: equal "
                    "variance means W_1 L_1 = W_2 L_2. (If L counts those of the server, L_1 = L_2.) The "
                    "iteration speedup, the inverse of iterations per worker, is then linear in W as the "
                    "text says.")
def _workers_ratio() -> Evidence:
    """Iterations per worker of 1 and of 4 workers at equal exact variance, phi = theta^2, a = 1."""
    problem, needed, goal = Quadratic(np.eye(1), np.zeros((1, 1))), [], 0.0
    for workers in (1, 4):
        law = average_law(problem, StaleSGLD(0.01, Workers(workers, "deterministic")), 1500)
        goal = goal or 0.3 * float(law.variance.max())
        needed.append((first_reaching(law.lengths, law.variance, goal) or np.nan) / workers)
    ratio = needed[0] / needed[1]
    numbers = {"L_1/L_2, W = 1 and 4": ratio, "W_1/W_2": 0.25, "W_2/W_1": 4.0}
    return Evidence(abs(np.log(ratio / 4.0)) < abs(np.log(ratio / 0.25)), numbers,
                    f"At equal variance the iterations per worker are in the ratio {ratio:.3g}.")


@erratum(id="stale.factor_of_servers", paper=PAPER, where="section 4, multiple-chain systems", grade="loose",
         printed="while the variance bound is the same, the single-server architecture improves the bias and "
                 "MSE bounds by a factor of S",
         corrected="by a factor of S in the terms in time at one step size, while Tbar <= 1 for the MSE; "
                   "with tau about W = S and the best step size of each the bias is of the same order, and "
                   "the MSE of S servers is smaller by S^(2/3)",
         consequence="nothing", theorems=("stale.chains_bias_rate", "stale.chains_mse_rate"),
         kind="numerical",
         derivation="S servers with a worker each: bias 1/(Lbar h) + h, least of order Lbar^(-1/2); MSE 1/(S "
                    "Lbar h) + h^2 + ..., least of order (S Lbar)^(-2/3). One server with S workers, L = S "
                    "Lbar and tau about S: 1/(S Lbar h) + S h and 1/(S Lbar h) + S^2 h^2, least of orders "
                    "Lbar^(-1/2) and Lbar^(-2/3), as the paragraph before says of W. The sentence is true "
                    "where the terms in time dominate: 1/(L h) of the bias, (S^2 - S)/T^2 of the MSE.")
def _factor_of_servers() -> Evidence:
    """Bounds of S = 16 servers over those of one server with 16 workers, all constants one."""
    servers, length, numbers = 16, 10_000, {}
    steps = np.geomspace(1e-4, 1.0, 400)
    for quantity in ("bias", "mse"):
        several = [chain_terms(quantity, [length] * servers, [h] * servers, 0.0) for h in steps]
        single = [chain_terms(quantity, [length * servers], [h], float(servers)) for h in steps]
        total = [np.array([sum(terms.values()) for terms in rates]) for rates in (several, single)]
        in_time = [rates[0]["time"] + rates[0].get("chains", 0.0) for rates in (several, single)]
        numbers[f"{quantity}: ratio in time alone, Tbar = 1"] = in_time[0] / in_time[1]
        numbers[f"{quantity}: ratio at the best step sizes"] = float(total[0].min() / total[1].min())
    best = [value for name, value in numbers.items() if "best" in name]
    return Evidence(max(best) < 0.5 * servers, numbers,
                    f"The factor S = {servers} stands against {best[0]:.3g} (bias) and {best[1]:.3g} (MSE) "
                    "at the best step sizes.")


reading(id="stale.assumption_1", paper=PAPER, where="Assumption 1, part 2", grade="transcription",
        printed="E ||U - U~||^2 <= sigma^2", corrected="E ||grad U - grad U~||^2 <= sigma^2",
        consequence="nothing", theorems=(),
        derivation="A nabla: the sentence says that the variance of the stochastic gradient is bounded.")
reading(id="stale.chains_mse", paper=PAPER, where="Theorem 6 (MSE)", grade="transcription",
        printed="(1 - 1/Tbar)/T + 1/T^2 + (T_m^2/T^2) (M1^2 tau^2 h_s^2 + M2^2 h_s^(2K))",
        corrected="(1 - 1/Tbar)/T + 1/Tbar^2 + (T_m^2/Tbar^2) (M1^2 tau^2 h_m^2 + M2^2 h_m^(2K))",
        consequence="nothing", theorems=("stale.chains_mse_rate",), kind="derivation",
        derivation="Bars over T: with them the theorem is the last line of its proof, as 1/T - 1/(T Tbar) + "
                   "1/Tbar^2 = 1/T + (S^2 - S)/T^2; and the next sentence, that the last two terms are "
                   "independent of S, is true with them alone. The same display has h_s for the proof's h_m.")
reading(id="stale.chains_variance", paper=PAPER, where="Theorem 7", grade="transcription",
        printed="D (1/Tbar + sum_s (T_s/T)^2 h_s^(2K))", corrected="D (1/T + sum_s (T_s/T)^2 h_s^(2K))",
        consequence="nothing", theorems=("stale.chains_variance_rate",), kind="derivation",
        derivation="A bar over T: the proof ends with 1/T, and the optimum and the speedup in S of the next "
                   "sentence need it. With the bar the statement is true, too, because 1/Tbar >= 1/T.")
