"""Errata of the stale-gradient paper; each demonstration computes its numbers anew."""

from __future__ import annotations

import numpy as np

from fedsim.algorithms.stale import StaleSGLD
from fedsim.problems.quadratic import Quadratic

from ..errata import Evidence, erratum, reading
from ..exact.stale import average_law, companion, long_run_variance, stability_limit
from .rules import mse_step_size
from .servers import chain_terms
from .setting import PAPER

N_DATA, BATCH_SIZE, CONSTANT, ITERATIONS = 1000, 10, 1.0 / 30.0, 500
AGES = (1, 2, 5, 10, 15, 20)
"""The settings of Figure 1: N, J, C, L_0 (times tau) and tau."""


@erratum(id="stale.figure_1_step_size", paper=PAPER, where="section 5.1 and Figure 1",
         printed="h = C tau^(-2/3) L^(-1/3) with C = 1/30, L = 500 tau, 1000 data and minibatches of 10 "
                 "scaled by N/J = 100 (equation (2))",
         corrected="C < 500^(1/3)/1001 = 0.0079 with that scale; C = 1/30 is stable with the sum of a "
                   "minibatch not scaled by N/J", kind="numerical")
def _figure_1_step_size() -> Evidence:
    """h a against the stability limit, for the posterior's precision a = 1001 and for a = 11."""
    numbers, scaled, unscaled, radii = {}, [], [], []
    for tau in AGES:
        h = mse_step_size(ITERATIONS * tau, tau, CONSTANT)
        limit = stability_limit(tau)
        scaled.append((N_DATA + 1) * h / limit)
        unscaled.append((BATCH_SIZE + 1) * h / limit)
        radii.append(float(np.abs(np.linalg.eigvals(companion(N_DATA + 1.0, h, tau))).max()))
        numbers[f"h a / limit, tau={tau}"] = scaled[-1]
    numbers["least radius of the companion map"] = min(radii)
    numbers["largest h a / limit with the sum of a minibatch"] = max(unscaled)
    return Evidence(min(scaled) > 1.0 and min(radii) > 1.0 and max(unscaled) < 1.0, numbers,
                    "With gradients scaled as in equation (2) the chain diverges at every tau of the figure; "
                    "with the sum of the minibatch (a posterior of 10 data) all are stable.")


@erratum(id="stale.figure_1_lower_bound", paper=PAPER, where="section 5.1, on Figure 1",
         printed="the curves are lower bounded by tau^(2/3) L^(-2/3)",
         corrected="only for a start far from the mode; near it a short average is better than that line",
         kind="numerical", harmless=True)
def _figure_1_lower_bound() -> Evidence:
    """Exact error over the line through its end, for the minibatch-sum reading of Figure 1 at tau = 1."""
    size, n = BATCH_SIZE, N_DATA
    noise = float(np.sqrt(size * (n - size) / (n - 1)))  # data of variance one
    problem = Quadratic(np.array([[size + 1.0]]), np.zeros((1, 1)), None, noise)
    length = ITERATIONS
    algorithm = StaleSGLD(mse_step_size(length, 1, CONSTANT), 1)
    least = {}
    for start in (0.0, 3.0):
        law = average_law(problem, algorithm, length, start=[start])
        line = law.mse[-1] * (law.lengths / length) ** (-2.0 / 3.0)
        least[f"least error / line, theta_0 = {start:g}"] = float((law.mse / line).min())
    near, far = least.values()
    return Evidence(near < 0.9 and far > 0.999, least,
                    "From the mode the error of a short average lies below the line; from theta_0 = 3 it "
                    "does not.")


@erratum(id="stale.chains_mse", paper=PAPER, where="Theorem 6 (MSE)",
         printed="(1 - 1/Tbar)/T + 1/T^2 + (T_m/T)^2 (M1^2 tau^2 h_s^2 + M2^2 h_s^(2K))",
         corrected="(1 - 1/Tbar)/T + 1/Tbar^2 + (T_m/Tbar)^2 (M1^2 tau^2 h_m^2 + M2^2 h_m^(2K)), as its "
                   "proof has it: 1/T + (S^2 - S)/T^2 + ...", kind="numerical")
def _chains_mse() -> Evidence:
    """Many servers share one bias; the printed rate vanishes, the proved one does not."""
    problem, tau, length, h = Quadratic(np.eye(1), np.zeros((1, 1))), 4, 2000, 0.05
    law = average_law(problem, StaleSGLD(h, tau), length).at(length)
    ratios = {}
    for variant in ("printed", "corrected"):
        ratio = []
        for servers in (1, 10_000):
            terms = chain_terms("mse", [length] * servers, [h] * servers, tau, variant=variant)
            ratio.append(float(law.bias[0] ** 2 + law.variance[0] / servers) / sum(terms.values()))
        ratios[f"error/{variant} rate, S=10^4 over S=1"] = ratio[1] / ratio[0]
    printed, corrected = ratios.values()
    return Evidence(printed > 10.0 and corrected <= 1.0, ratios,
                    "The average of S equal servers keeps the bias of one. No constant D2 makes the printed "
                    "rate a bound for all S; the denominators Tbar^2 of the proof do.")


@erratum(id="stale.chains_variance", paper=PAPER, where="Theorem 7",
         printed="D (1/Tbar + sum_s (T_s/T)^2 h_s^(2K))",
         corrected="D (1/T + sum_s (T_s/T)^2 h_s^(2K)), as its proof has it", kind="numerical")
def _chains_variance() -> Evidence:
    """The linear speedup in S, which the text draws from the theorem, needs 1/T."""
    numbers = {}
    for variant in ("printed", "corrected"):
        rates = [chain_terms("variance", [2000] * servers, [0.01] * servers, 4, variant=variant)
                 for servers in (1, 16)]
        one, many = (sum(terms.values()) for terms in rates)
        numbers[f"{variant} rate, S=1 over S=16"] = one / many
    printed, corrected = numbers.values()
    return Evidence(printed < 1.1 and abs(corrected - 16.0) < 0.1, numbers,
                    "Independent servers divide the variance by S = 16. The printed rate, true but weaker, "
                    "hardly changes with S, so that the speedup does not follow from it.")


@erratum(id="stale.variance_free_of_staleness", paper=PAPER, where="Theorem 4 and its proof (section F)",
         printed="Var <= D (1/(L h) + h^(2K)) with D independent of tau; all (A_i - E A_i) are martingales",
         corrected="D depends on tau h: the increments of stale gradients are correlated over tau steps. The "
                   "statement describes tau h much smaller than 1/curvature", kind="numerical")
def _variance_free_of_staleness() -> Evidence:
    """L h Var of the average of theta^2 in the stationary law, a = 1, h = 0.005."""
    h = 0.005
    values = {f"L h Var at a tau h = {share:g}": h * long_run_variance(1.0, h, round(share / h))
              for share in (0.0, 0.1, 0.5, 1.0, 1.5)}
    found = list(values.values())
    return Evidence(found[-1] > 1000.0 * found[0] and bool((np.diff(found) > 0.0).all()), values,
                    "The exact variance grows without limit towards the stability limit a tau h = pi/2. The "
                    "average of theta itself has a variance that is exactly free of tau.")


reading(id="stale.assumption_1", paper=PAPER, where="Assumption 1, part 2",
        printed="E ||U - U~||^2 <= sigma^2", corrected="E ||grad U - grad U~||^2 <= sigma^2",
        because="It bounds the variance of the stochastic gradient, as its sentence says.")
reading(id="stale.workers_ratio", paper=PAPER, where="section 5.1, convergence speedup of the variance",
        printed="L_1/L_2 = W_1/W_2", corrected="L_1/L_2 = W_2/W_1 for iterations per worker",
        kind="derivation",
        because="Corollary 5 is in W L, so that equal variance means W_1 L_1 = W_2 L_2; the speedup, the "
                "inverse of iterations per worker, is then linear in W as the text says.")
reading(id="stale.figure_1_is_one_limit", paper=PAPER, where="section 5.1, on Figure 1",
        printed="equal errors at L = L_0 tau verify tau^(2/3) L^(-2/3)",
        corrected="with h = C tau^(-2/3) L^(-1/3) and L = L_0 tau both tau h and L h are the same for all "
                  "tau, so that all chains approximate one stochastic differential equation with delay",
        kind="derivation",
        because="tau h = C L_0^(-1/3) and L h = C L_0^(2/3). Equal errors follow whatever the exponent of "
                "tau is; the step size has to be optimised at fixed L to test it.")
reading(id="stale.expectations_of_products", paper=PAPER,
        where="proofs of Theorems 2 and 3 (sections D and E)",
        printed="E[(G - G~) . grad psi] = E(G - G~) . E grad psi, and the same for products of two such",
        corrected="not in general: the iterate at which grad psi is taken depends on the older one",
        kind="derivation", harmless=False,
        because="A gap of the proof. On the Gaussian model the statements themselves hold up to constants.")
reading(id="stale.constant_m1", paper=PAPER, where="Theorem 2 and the end of its proof",
        printed="M1 with |L f_lh| in the theorem, with ||L_l|| in the proof",
        corrected="|L f_lh|, with f_lh = ||x_lh - x_(l-1)h||, in both",
        because="Lemma 8 bounds the drift of f; the operator's norm is not defined.")
reading(id="stale.fourth_term", paper=PAPER, where="proof of Theorem 3, equation (16)",
        printed="h^(k-1)/(2 L)", corrected="h^(k-1)/(k! L)", because="Equations (12) and (17) have k!.")
