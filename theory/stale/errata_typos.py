"""Slips of the stale-gradient paper's proofs: the statements stand, and the evidence shows both."""

from __future__ import annotations

import numpy as np

from fedsim.algorithms.stale import StaleSGLD
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.lazy_import import lazy

from ..declare.corrections import Evidence
from ..exact import exact_law
from ..exact.delay import long_run_variance, stability_limit, stationary_autocovariance, stationary_variance
from .quantities import gradient_gap
from .setting import erratum, reading

brentq = lazy("scipy.optimize", "brentq")

UNIT = Quadratic(np.eye(1), np.zeros((1, 1)))
"""f = theta^2/2."""


@erratum("brownian_step",
         "proof of Lemma 8, (8) to (10), and its constant, a factor of M_1 in Theorems 2 and 3", "proof",
         "constant", ("gradient_gap_rate", "bias_rate", "mse_rate"),
         "E f(x_ih) <= e^(L_i h) f(x_(i-1)h) + O(h^(K+1)) <= |L_i f_ih| h + O(h^2), with f the length of a "
         "step",
         "in Lemma 8, max ||E L~_i grad U|| in place of C max |L_i f_ih|, with L~_i the local generator of "
         "the gradient in use. This is no M_1: in the stationary law it is O(h), and the bias is of order "
         "tau h (stale.expectations_of_products)")
def _brownian_step() -> Evidence:
    """A step of SGLD is Brownian: E|step| is about (2 h)^(1/2) E|z|, so that E|step|/h is unbounded as h
    -> 0. At the start x_0 of the step, where (9) and (10) take it, L f of f(x) = |x - x_0| is infinite
    (definition (4)); at its end L f = F . (x - x_0)/|x - x_0| + (n - 1)/|x - x_0|, which is |F| at most
    for n = 1, too small for (10), and of order h^(-1/2) for n >= 2: no constant. (The proofs of Theorems
    2 and 3 print ||L_l|| for it.) The lemma's order stands: by Ito's formula for grad U the mean of G
    changes by h E L~_i grad U + O(h^2) per step, tau times; L in place of L~_i changes the sum by O((tau
    h)^2). For SGHMC one stops at theta, whose step h q is O(h).
    """
    # E|step|/h and E (n - 1)/|step| in the stationary law, and the largest ||E(G_old - G)||/(tau h) over 200
    # updates from theta_0 = 1; a = 1, tau = 4.
    tau, steps, gaps = 4, [], []
    numbers: dict[str, float] = {}
    for h in (1e-2, 1e-4, 1e-6):
        lags = stationary_autocovariance(1.0, h, tau, 1)
        variance = 2.0 * (lags[0] - lags[1])  # of a step, normal of mean zero
        steps.append(float(np.sqrt(2.0 * variance / np.pi)) / h)
        gaps.append(float(gradient_gap(UNIT, StaleSGLD(h, tau), 200, start=[1.0]).max()) / (tau * h))
        numbers |= {f"E|step|/h, n=1, a=1, tau=4, h={h:g}": steps[-1],
                    f"E (n - 1)/|step|, n=2, a=1, tau=4, h={h:g}": float(np.sqrt(0.5 * np.pi / variance)),
                    f"max ||E(G_old - G)||/(tau h), a=1, tau=4, h={h:g}": gaps[-1]}
    grows, stays = steps[-1] > 10.0 * steps[0], max(gaps) < 2.0 * min(gaps)
    factor = gaps[-1] / gaps[0]
    return Evidence(grows and stays, numbers,
                    f"With a = 1 and tau = 4, from h = 1e-2 to 1e-6 E|step|/h changes by a factor "
                    f"{steps[-1] / steps[0]:.0f}, and the lemma's left side over tau h "
                    f"{'not at all' if abs(factor - 1.0) < 5e-3 else f'by a factor {factor:.2g}'}.")


@erratum("expectations_of_products", "M_1 and M~_1 of Theorems 2 and 3; C_2 in section D, A_3 in section E",
         "proof", "constant", ("bias_rate", "mse_rate"),
         "|C_2| = (1/L) |sum_l E(G~_old - G) . E grad psi|; ||E grad psi|| in M_1 and M~_1",
         "(1/L) |sum_l E[(G~_old - G) . grad psi]|, which is O(tau h) as well. The rates stand, with M_1 "
         "and M~_1 any positive constants; M_1 and M~_1 as printed do not bound: ||E grad psi|| can be 0 "
         "where the bias is of order tau h")
def _expectations_of_products() -> Evidence:
    """M_1 and M~_1 stand in the statements of Theorems 2 and 3, so that this is at the border of an error of
    the statements. The kind reading takes them for constants, as the rates do: M_1 is not defined (see
    below), and any positive ones will do. C_2 is the mean of a product; the old iterate and the one of
    grad psi are dependent. In the stationary law E G_old = E G makes the printed form 0 for every test
    function. Nor does E grad psi bound: SGLD on U = theta^2/2 with phi = theta^2 has psi = -theta^2/2,
    so that from the posterior mean E grad psi = 0 for all l, while the bias tends, as L -> infinity and
    then h -> 0 at fixed s = tau h, to (1 + sin s)/cos s - 1 = 0.69 at s = 0.5. (The other factor of M_1,
    |L f|, is infinite at the start of a step, so that M_1 is undefined rather than 0.) The rates stand:
    (G_old - G(x)) . grad psi(x) is smooth in x and 0 at the old iterate, so that by Ito's formula its
    mean is O(tau h). In A_3 pairs more than tau apart give O(tau^2 h^2) in the same way and the others
    O(tau^2 h/L), at most of order 1/(L h) for bounded tau h; so is sigma^2 E|grad psi|^2/L, which
    minibatch noise adds to A_3. (Section F bounds E(G . grad psi)^2 by E|G|^2 E|grad psi|^2, where
    fourth moments are needed.)
    """
    # phi = theta^2, a = 1: psi = -theta^2/2 and G = theta, from theta_0 = 1 after 2000 updates.
    from scipy.signal import lfilter  # slow to import

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
        setting = f"a=1, h=0.01, phi=theta^2, tau={tau}"
        numbers |= {f"|E[(G_old - G) . grad psi]|, {setting}": truth,
                    f"|E(G_old - G) . E grad psi|, {setting}": product,
                    f"stationary bias / (tau h + h), {setting}": ratios[-1]}
    centred = exact_law(UNIT, StaleSGLD(h, 50), updates, start=[0.0], covariance="none")
    slope = float(np.abs(centred.mean).max())  # grad psi = -theta
    numbers["max_l ||E grad psi||, a=1, h=0.01, phi=theta^2, tau=50, from theta_0 = 0"] = slope
    biases = []
    for step in (0.05, 0.01, 0.001):
        biases.append(stationary_variance(1.0, step, round(0.5 / step)) - 1.0)
        numbers[f"bias, a=1, phi=theta^2, tau h=0.5, L -> infinity, h={step:g}"] = biases[-1]
    return Evidence(truth > 10.0 * product and max(ratios) < 2.0 and slope < 1e-3 * min(biases), numbers,
                    f"With a = 1, phi = theta^2 and h = 0.01, from theta_0 = 1, at tau = 20 the product of "
                    f"the means is {product:.0e} and the mean of the product {truth:.2g}; the bias is "
                    f"{max(ratios):.2g} times tau h + h at most. From theta_0 = 0 the largest ||E grad psi|| "
                    f"is {slope:.1g}, and the bias at tau h = 0.5 is {biases[-1]:.2g} at h = 0.001.")


@erratum("variance_free_of_staleness",
         "section F, proof of Theorem 4; the theorem says 'for some constant D', the sentence before it "
         "that the variance is independent of tau", "proof", "nothing",
         ("variance_rate", "optimal_variance_rate"),
         "all (A_i - E A_i) are martingale; a constant D independent of (L, h, tau)",
         "the A_1 are correlated over tau updates; D is free of tau as long as tau h and the moments of "
         "Assumption 3 are bounded; on the Gaussian model those moments bound tau h")
def _variance_free_of_staleness() -> Evidence:
    """Neighbouring A_1 = (G_old - G) . grad psi share all but one of their tau steps. Their sum is still
    of the order claimed: A_1 has size (tau h)^(1/2) and is correlated over tau updates, so that the mean
    of L of them has variance of order tau (tau h)/L = (tau h)^2/(L h). On the Gaussian model bounded
    moments bound tau h: E theta^2 = (1 + sin(a tau h))/(a cos(a tau h)) as h -> 0, which keeps a tau h
    away from pi/2. Where it nears pi/2 D grows without limit.
    """
    # phi = theta^2, a = 1: correlation of neighbouring A_1 with psi' = -theta at the time of G, and L h Var
    # as L -> infinity at the h at which E theta^2 = 2.
    tau, h = 20, 0.01
    c = stationary_autocovariance(1.0, h, tau, tau + 1)
    # A_l = (theta_{l-tau} - theta_l) theta_l; Cov(w x, y z) = E[w y] E[x z] + E[w z] E[x y]
    own = (2.0 * c[0] - 2.0 * c[tau]) * c[0] + (c[tau] - c[0]) ** 2
    next_ = (2.0 * c[1] - c[tau + 1] - c[tau - 1]) * c[1] + (c[tau - 1] - c[1]) * (c[tau + 1] - c[1])
    share = float(next_ / own)
    numbers = {f"correlation of neighbouring A_1, a=1, phi=theta^2, tau={tau}, h={h:g}": share}
    bounded = []
    for age in (1, 5, 20, 100):
        top = stability_limit(age) * (1.0 - 1e-9)
        step = brentq(lambda s, age=age: stationary_variance(1.0, s, age) - 2.0, 1e-6, top)
        bounded.append(step * long_run_variance(1.0, step, age))
        numbers[f"L h Var where E theta^2 = 2, a=1, phi=theta^2, tau={age}"] = bounded[-1]
    return Evidence(share > 0.1 and max(bounded) < 3.0 * min(bounded), numbers,
                    f"With a = 1 and phi = theta^2 neighbouring A_1 have correlation {share:.2g} at tau = "
                    f"{tau}, h = {h:g}, where martingale differences have none. Where E theta^2 = 2, L h Var "
                    f"lies in {min(bounded):.2f} to {max(bounded):.2f} over tau = 1, 5, 20, 100.")


reading("fourth_term", "proof of Theorem 3, equations (16) and (17)", "proof", ("mse_rate",),
        "h^(k-1)/(2 L) in the sum over k = 2, ..., K", "h^(k-1)/(k! L), a misprint",
        "The expansion of e^(L h) has k!, as in (12). The misprint is without effect for K <= 2: the sum is "
        "empty for K = 1, and 2! = 2 for K = 2. (17) goes on with k! L^2, where the square of h^(k-1)/(k! L) "
        "gives (k!)^2 L^2: a larger upper bound, harmless.")
