"""Slips of the stale-gradient paper's proofs: the statements stand, and the evidence shows both."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.signal import lfilter

from fedsim.algorithms.stale import StaleSGLD
from fedsim.problems.quadratic import Quadratic

from ..errata import Evidence, erratum, reading
from ..exact import exact_law
from ..exact.stale import long_run_variance, stability_limit, stationary_autocovariance, stationary_variance
from .quantities import gradient_gap
from .setting import PAPER

UNIT = Quadratic(np.eye(1), np.zeros((1, 1)))
"""f = theta^2/2."""


@erratum(id="stale.brownian_step", paper=PAPER, grade="proof", consequence="constant", kind="numerical",
         where="proof of Lemma 8, (8) to (10), and the constant M_1 of Theorems 2 and 3",
         printed="E f(x_ih) <= e^(L_i h) f(x_(i-1)h) + O(h^(K+1)) <= |L_i f_ih| h + O(h^2), with f the "
                 "length of a step",
         corrected="||E L grad U|| in place of |L f|: the gap of the gradients themselves is O(tau h)",
         theorems=("stale.gradient_gap_rate", "stale.bias_rate", "stale.mse_rate"),
         derivation="A step of SGLD is Brownian: E|step| >= (2 h)^(1/2) E|z|, so that E|step|/h is unbounded "
                    "as h -> 0. f(x) = |x - x_0| has no gradient at its own start x_0, and its Laplacian "
                    "(n - 1)/|x - x_0| is infinite there: M_1 = max |L f| is no finite number. (The end of "
                    "the proof prints ||L|| for |L f|.) The lemma's order stands: by Ito's formula for "
                    "grad U the mean of G changes by O(h) per step, tau times. For SGHMC one stops at "
                    "theta, whose step h q is O(h).")
def _brownian_step() -> Evidence:
    """Stationary E|step|/h, and the largest ||E(G_old - G)||/(tau h) from theta_0 = 1; a = 1, tau = 4."""
    tau, steps, gaps = 4, [], []
    numbers: dict[str, float] = {}
    for h in (1e-2, 1e-4, 1e-6):
        lags = stationary_autocovariance(1.0, h, tau, 1)
        steps.append(float(2.0 * np.sqrt((lags[0] - lags[1]) / np.pi)) / h)  # normal, of mean zero
        gaps.append(float(gradient_gap(UNIT, StaleSGLD(h, tau), 200, start=[1.0]).max()) / (tau * h))
        numbers |= {f"E|step|/h at h={h:g}": steps[-1], f"||E(G_old - G)||/(tau h) at h={h:g}": gaps[-1]}
    grows, stays = steps[-1] > 10.0 * steps[0], max(gaps) < 2.0 * min(gaps)
    return Evidence(grows and stays, numbers,
                    f"From h = 1e-2 to 1e-6 E|step|/h changes by a factor {steps[-1] / steps[0]:.3g}, and "
                    f"the lemma's left side over tau h by {gaps[-1] / gaps[0]:.3g}.")


@erratum(id="stale.expectations_of_products", paper=PAPER, grade="proof", consequence="nothing",
         kind="numerical", where="proofs of Theorems 2, 3 (C_2 in section D, A_3 in section E) and 4",
         printed="|C_2| = (1/L) |sum_l E(G~_old - G) . E grad psi|",
         corrected="(1/L) |sum_l E[(G~_old - G) . grad psi]|, which is O(tau h) as well",
         theorems=("stale.bias_rate", "stale.mse_rate"),
         derivation="C_2 is the mean of a product; the old iterate and the one of grad psi are dependent. In "
                    "the stationary law E G_old = E G makes the printed form 0 for every test function, "
                    "where the whole bias of stale gradients sits in the true one. The rates stand: (G_old - "
                    "G(x)) . grad psi(x) is smooth in x and 0 at the old iterate, so that by Ito's formula "
                    "its mean is O(tau h). In A_3 pairs more than tau apart give O(tau^2 h^2) in the same "
                    "way, and the others O(tau^2 h/L), below 1/(L h) for bounded tau h. (Section F bounds "
                    "E(G . grad psi)^2 by E|G|^2 E|grad psi|^2, where fourth moments are needed.)")
def _expectations_of_products() -> Evidence:
    """phi = theta^2, a = 1, from theta_0 = 1: psi = -theta^2/2 and G = theta, after 2000 updates."""
    h, updates, ratios = 0.01, 2000, []
    numbers: dict[str, float] = {}
    for tau in (5, 20):
        taps = np.zeros(tau + 2)
        taps[:2], taps[-1] = (1.0, -1.0), h
        response = lfilter([1.0], taps, np.eye(1, updates)[0])  # of theta to a noise, by its age
        together = 2.0 * h * float(response[tau:] @ response[:-tau] - response @ response)
        law = exact_law(UNIT, StaleSGLD(h, tau), updates, start=[1.0], record=[updates - tau],
                        covariance="none")
        old, now = law.mean[-2:, 0].tolist()
        product = abs((old - now) * now)
        truth = abs(together + (old - now) * now)  # E[(theta_old - theta) theta]
        bias = stationary_variance(1.0, h, tau) - 1.0
        ratios.append(bias / (tau * h + h))
        numbers |= {f"|E[(G_old - G) . grad psi]|, tau={tau}": truth,
                    f"|E(G_old - G) . E grad psi|, tau={tau}": product,
                    f"stationary bias / (tau h + h), tau={tau}": ratios[-1]}
    return Evidence(truth > 10.0 * product and max(ratios) < 2.0, numbers,
                    f"At tau = 20 the product of the means is {product:.2g} and the mean of the product "
                    f"{truth:.2g}; the bias is {max(ratios):.3g} times tau h + h at most.")


@erratum(id="stale.variance_free_of_staleness", paper=PAPER, grade="proof", consequence="nothing",
         kind="numerical", where="Theorem 4 and its proof (section F)",
         printed="all (A_i - E A_i) are martingale; a constant D independent of (L, h, tau)",
         corrected="the A_1 are correlated over tau updates; D is free of tau given the moments that "
                   "Assumption 3 takes as bounded",
         theorems=("stale.variance_rate", "stale.optimal_variance_rate"),
         derivation="Neighbouring A_1 = (G_old - G) . grad psi share all but one of their tau steps. Their "
                    "sum is still of the order claimed: A_1 has size (tau h)^(1/2) and is correlated over "
                    "tau updates, so that the mean of L of them has variance of order tau (tau h)/L = (tau "
                    "h)^2/(L h). Bounded moments bound tau h: on the Gaussian model E theta^2 = (1 + sin(a "
                    "tau h))/(a cos(a tau h)) as h -> 0. Without them D grows towards a tau h = pi/2.")
def _variance_free_of_staleness() -> Evidence:
    """phi = theta^2, a = 1: correlation of neighbouring A_1, and L h Var where E theta^2 = 2."""
    tau, h = 20, 0.005
    c = stationary_autocovariance(1.0, h, tau, tau + 1)
    # A_l = (theta_{l-tau} - theta_l) theta_l; Cov(w x, y z) = E[w y] E[x z] + E[w z] E[x y]
    own = (2.0 * c[0] - 2.0 * c[tau]) * c[0] + (c[tau] - c[0]) ** 2
    next_ = (2.0 * c[1] - c[tau + 1] - c[tau - 1]) * c[1] + (c[tau - 1] - c[1]) * (c[tau + 1] - c[1])
    numbers = {f"correlation of neighbouring A_1, tau={tau}": float(next_ / own)}
    bounded = []
    for age in (1, 5, 20, 100):
        top = stability_limit(age) * (1.0 - 1e-9)
        step = brentq(lambda s, age=age: stationary_variance(1.0, s, age) - 2.0, 1e-6, top)
        bounded.append(step * long_run_variance(1.0, step, age))
        numbers[f"L h Var where E theta^2 = 2, tau={age}"] = bounded[-1]
    numbers["L h Var at a tau h = 1.5"] = h * long_run_variance(1.0, h, 300)
    spread = max(bounded) / min(bounded)
    return Evidence(float(next_ / own) > 0.1 and spread < 3.0, numbers,
                    f"Increments of stale gradients have correlation {next_ / own:.2g}, where martingale "
                    f"differences have none; at one bound of the moments L h Var stays within a factor "
                    f"{spread:.2g} over tau = 1, ..., 100.")


reading(id="stale.fourth_term", paper=PAPER, grade="proof", consequence="nothing",
        where="proof of Theorem 3, equation (16)", printed="h^(k-1)/(2 L) in the sum over k = 2, ..., K",
        corrected="h^(k-1)/(k! L)", theorems=("stale.mse_rate",),
        derivation="The expansion of e^(L h) has k!, as in (12); 2 is its value for k = 2 alone. (17) goes "
                   "on with k!, and its constant D may depend on K.")
