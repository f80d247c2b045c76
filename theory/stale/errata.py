"""Errata of, and remarks on, the stale-gradient paper; slips of its proofs are in `slips`.

Each demonstration computes its numbers anew, by exact laws of the Gaussian model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.algorithms.stale import StaleSGLD
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.staleness import Workers
from fedsim.settings.validation import Array

from ..declare.corrections import Evidence
from ..exact.delay import average_law
from .curves import first_reaching
from .rules import mse_step_size
from .servers import chain_terms
from .setting import erratum, reading

N_DATA, BATCH_SIZE, CONSTANT, ITERATIONS = 1000, 10, 1.0 / 30.0, 500
AGES = (1, 2, 5, 10, 15, 20)
"""The settings of Figure 1: N, J, C, L_0 (times tau) and tau."""


def least_growth_of_ages_0_and_1(ha: float, n_old: int = ITERATIONS) -> float:
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


def growth_of_repeated_ages(ha: float, ages: Sequence[int]) -> float:
    """Growth per update, as a logarithm, of x <- x - h a x_old where these ages are used over and over."""
    size = max(ages) + 1
    whole = np.eye(size)
    for age in ages:
        update = np.eye(size, k=-1)
        update[0, 0] = 1.0
        update[0, age] -= ha
        whole = update @ whole
    return float(np.log(np.abs(np.linalg.eigvals(whole)).max())) / len(ages)


def growth_of_uniform_ages(has: Sequence[float], largest: Sequence[int], updates: int = 4000,
                           paths: int = 500) -> tuple[Array, Array]:
    """Growth per update of x <- x - h a x_old with ages drawn uniformly on 0, ..., tau, for each h a and tau.

    Returns
    -------
    mean over paths and its standard error, an entry for each tau; the first 10 (max tau + 1) updates are
    left out.
    """
    rng, n_old = np.random.default_rng(0), max(largest) + 1
    ha, tau = np.repeat(has, paths), np.repeat(largest, paths)
    ring, column = np.ones((n_old, len(tau))), np.arange(len(tau))
    grown, settled = np.zeros(len(tau)), 10 * n_old
    for update in range(settled + updates):
        if update % 50 == 0 or update == settled:
            size = np.abs(ring).max(axis=0)
            ring, grown = ring / size, grown + np.log(size)
        if update == settled:
            grown[:] = 0.0
        age = np.minimum((rng.random(len(tau)) * (tau + 1)).astype(int), update)
        ring[(update + 1) % n_old] = ring[update % n_old] - ha * ring[(update - age) % n_old, column]
    each = ((grown + np.log(np.abs(ring).max(axis=0))) / updates).reshape(len(largest), paths)
    return each.mean(axis=1), each.std(axis=1) / np.sqrt(paths)


@erratum("figure_1_step_size", "section 5.1 and Figure 1", "error", "constant", (),
         "h = C tau^(-2/3) L^(-1/3) with C = 1/30, L = 500 tau, 1000 data and minibatches of 10 (scaled by "
         "N/J = 100, equation (2)); approximately the same MSE's for all tau",
         "C < 500^(1/3)/1001 = 0.0079 is stable at constant ages. C = 1/30 would be stable if the "
         "minibatch's sum were not scaled by N/J, which is not the gradient (2) and has a posterior of "
         "precision 11, not 1001. The text does not tell whether C or the scale is misdescribed")
def _figure_1_step_size() -> Evidence:
    """Each minibatch's gradient has the slope 1 + N = 1001, so that, noise aside, theta - theta_* follows
    x <- x - c x_old with c = h a = 4.20/tau. At a constant age it is stable for c < 2 sin(pi/(2 (2 tau +
    1))), which c exceeds at all six tau. But the paper's tau is the largest age. At tau = 1 every
    sequence of ages 0 and 1 diverges: an update of age 0 forgets all but the last iterate, and k updates
    of age 1 later this is multiplied by u_(k+1), where u_0 = 1, u_1 = 1 - c, u_(j+1) = u_j - c u_(j-1),
    that is -3.2, -7.4, 6.1, 37, 12, -145, ..., all above 3 in size up to j = 500. At tau = 2 (c = 2.10)
    constant ages 0, 1, 2 and uniform ages diverge; particular sequences do not: the ages 0, 1, 1,
    repeated, multiply by 1 - 3 c + c^2 = -0.89. With uniform ages paths still grow at tau = 5 and shrink
    from tau = 10 on. With steps h/2 (c = 2.10 at tau = 1) tau = 1 diverges at constant age 0 or 1 and
    with uniform ages.
    """
    # Growth per update (its logarithm) for each kind of ages that tau allows.
    ha = [(N_DATA + 1.0) * mse_step_size(ITERATIONS * tau, tau, CONSTANT) for tau in AGES]
    numbers: dict[str, float] = {}
    constant = [growth_of_repeated_ages(c, [tau]) for c, tau in zip(ha, AGES, strict=True)]
    uniform, errors = growth_of_uniform_ages([*ha, ha[0] / 2.0], [*AGES, 1])
    for tau, growth, mean, error in zip(AGES, constant, uniform, errors, strict=False):
        numbers |= {f"growth per update, a constant age, tau={tau}": growth,
                    f"growth per update, ages uniform on 0..tau, tau={tau}": round(float(mean), 4),
                    f"its standard error, tau={tau}": round(float(error), 4)}
    growing = {
        "a constant age tau": [tau for tau, growth in zip(AGES, constant, strict=True) if growth > 0.0],
        "ages uniform on 0..tau": [tau for tau, mean, error in zip(AGES, uniform, errors, strict=False)
                                   if mean > 3.0 * error]}
    for ages in ((0,), (1,), (0, 1, 1), (0, 0, 2, 0, 2, 2)):
        named = ", ".join(map(str, ages))
        numbers[f"growth per update, tau=2, repeated ages {named}"] = growth_of_repeated_ages(ha[1], ages)
        if max(ages) < 2:
            numbers[f"growth per update, tau=1, steps h/2, repeated ages {named}"] = (
                growth_of_repeated_ages(ha[0] / 2.0, ages))
    numbers["growth per update, tau=1, steps h/2, ages uniform on 0, 1"] = round(float(uniform[-1]), 4)
    any_ages = least_growth_of_ages_0_and_1(ha[0])
    numbers["least growth per update over all ages 0 and 1, tau=1"] = any_ages
    said = "; ".join(f"with {name} at tau = {', '.join(map(str, found)) or 'none of them'}"
                     for name, found in growing.items())
    at_1 = "every sequence grows" if any_ages > 0.0 else "some sequences of ages may shrink"
    return Evidence(any_ages > 0.0, numbers,
                    f"With gradients scaled as in equation (2) paths grow {said}. At tau = 1 {at_1}.")


@erratum("workers_ratio", "section 5.1, convergence speedup of the variance", "error", "nothing",
         ("optimal_variance_rate",),
         "L_1/L_2 = W_1/W_2, the number of workers and iterations at the same variance",
         "L_1/L_2 = W_2/W_1 for iterations per worker: a misprint (the ratio is inverted); the sentence's "
         "conclusion, a linear speedup, is right")
def _workers_ratio() -> Evidence:
    """Corollary 5 is in the iterations of the server, W L for L iterations per worker: equal variance
    means W_1 L_1 = W_2 L_2. (If L counts those of the server, L_1 = L_2.) The iteration speedup, the
    inverse of iterations per worker, is then linear in W as the text says.
    """
    # Iterations per worker of 1 and of 4 workers at equal exact variance. phi = theta^2, a = 1, from the
    # minimizer, workers of equal speed; the variance is 0.3 of its largest value with one worker. The ages, 3
    # with 4 workers, lower the ratio from 4 by a term of order h.
    problem, ratios = Quadratic(np.eye(1), np.zeros((1, 1))), []
    for h in (0.02, 0.01):
        needed, goal = [], 0.0
        for workers in (1, 4):
            law = average_law(problem, StaleSGLD(h, Workers(workers, "deterministic")), 1500)
            goal = goal or 0.3 * float(law.variance.max())
            needed.append((first_reaching(law.lengths, law.variance, goal) or np.nan) / workers)
        ratios.append(needed[0] / needed[1])
    numbers = {"L_1/L_2, W = 1 and 4, phi = theta^2, a = 1, h = 0.02": round(ratios[0], 2),
               "L_1/L_2, W = 1 and 4, phi = theta^2, a = 1, h = 0.01": round(ratios[1], 2),
               "W_1/W_2": 0.25, "W_2/W_1": 4.0}
    inverted = abs(np.log(ratios[1] / 4.0)) < abs(np.log(ratios[1] / 0.25))
    nearer = "W_2/W_1 = 4" if inverted else "W_1/W_2 = 1/4"
    return Evidence(inverted, numbers,
                    f"With phi = theta^2 and a = 1 the iterations per worker at equal variance are in the "
                    f"ratio {ratios[0]:.2f} at h = 0.02 and {ratios[1]:.2f} at h = 0.01, nearer to {nearer}.")


@erratum("factor_of_servers", "section 4, multiple-chain systems", "loose", "nothing",
         ("chains_bias_rate", "chains_mse_rate"),
         "while the variance bound is the same, the single-server architecture improves the bias and MSE "
         "bounds by a factor of S",
         "by a factor of S in the terms in time at one step size, while Tbar <= 1 for the MSE; with tau "
         "about W = S and the best step size of each the bias is of the same order, and the MSE of S servers "
         "is smaller by S^(2/3)")
def _factor_of_servers() -> Evidence:
    """S servers with a worker each: bias 1/(Lbar h) + h, least of order Lbar^(-1/2); MSE 1/(S Lbar h) +
    h^2 + ..., least of order (S Lbar)^(-2/3). One server with S workers, L = S Lbar and tau about S: 1/(S
    Lbar h) + S h and 1/(S Lbar h) + S^2 h^2, least of orders Lbar^(-1/2) and Lbar^(-2/3), as the
    paragraph before says of W. The sentence is true where the terms in time dominate: 1/(L h) of the
    bias, (S^2 - S)/T^2 of the MSE.
    """
    # Bounds of S = 16 servers over those of one server with 16 workers, all constants one.
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


reading("assumption_1", "Assumption 1, part 2", "transcription", (), "E ||U - U~||^2 <= sigma^2",
        "E ||grad U - grad U~||^2 <= sigma^2",
        "A nabla: the sentence says that the variance of the stochastic gradient is bounded.")
reading("chains_mse", "Theorem 6 (MSE)", "transcription", ("chains_mse_rate",),
        "(1 - 1/Tbar)/T + 1/T^2 + (T_m^2/T^2) (M1^2 tau^2 h_s^2 + M2^2 h_s^(2K))",
        "(1 - 1/Tbar)/T + 1/Tbar^2 + (T_m^2/Tbar^2) (M1^2 tau^2 h_m^2 + M2^2 h_m^(2K))",
        "Bars over T: with them the theorem is the last line of its proof, as 1/T - 1/(T Tbar) + 1/Tbar^2 = "
        "1/T + (S^2 - S)/T^2; and the next sentence, that the last two terms are independent of S, is true "
        "with them alone. The same display has h_s for the proof's h_m.", kind="derivation")
reading("chains_variance", "Theorem 7", "transcription", ("chains_variance_rate",),
        "D (1/Tbar + sum_s (T_s/T)^2 h_s^(2K))", "D (1/T + sum_s (T_s/T)^2 h_s^(2K))",
        "A bar over T: the proof ends with 1/T, and the optimum and the speedup in S of the next sentence "
        "need it. With the bar the statement is true, too, because 1/Tbar >= 1/T.", kind="derivation")
