"""Errata of FA-HMC's lower bound, Theorem C.1 (I.1), each with a computed demonstration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..declare.corrections import Evidence
from ..exact import FAHMCFlow, exact_law
from .notation import erratum
from .theorem_c1 import TwoGroups

GROUPS = TwoGroups(L=1.0, mu=0.25, theta_L=2.0, theta_mu=1.0)


@erratum("lower_display", "Theorem I.1, display of theta_t", "error", "nothing", ("lower_bound",),
         "(1-gamma^t)/(1-gamma) (1/2) ((1-cos^2)/sqrt(L) + (1-cos^2)/sqrt(mu)) + gamma "
         "sqrt((1-gamma^(2t))/(1-gamma^2)) p",
         "(1-gamma^t) theta_eta + sqrt(Q (1-gamma^(2t))/(1-gamma^2)) p, Q the variance that a round adds; "
         "the proof derives the mean so")
def _lower_display() -> Evidence:
    """The mean must move with the minimizers theta_L, theta_mu, which are not in the display; the proof
    has theta_eta (1-gamma^t). The proof's factor of p is half the sum of a round's two amplitudes, for
    shared momenta exact for T = 1 and an upper bound for T > 1; the display has gamma. The bound rests on
    the proof's mean alone.
    """
    # Mean and stationary variance of a coordinate against the display; t counts rounds.
    groups, x, T, n = GROUPS, 0.5, 10, 50
    gamma, _ = groups.fixed_point(x, T)
    law = exact_law(groups.problem, FAHMCFlow(x, T), n)
    root = np.sqrt([groups.L, groups.mu])
    printed = float((1 - gamma**n) / (1 - gamma) * 0.5 * (np.sin(root * x) ** 2 / root).sum())
    exact, closed = float(law.mean[-1, 0]), float(groups.law(n, x, T)[0])
    spread, display = float(groups.law(np.inf, x, T)[1]), gamma**2 / (1 - gamma**2)
    return Evidence(abs(closed / exact - 1) < 1e-9 < min(abs(printed / exact - 1), abs(display / spread - 1)),
                    {"exact mean": exact, "mean of the proof": closed, "mean of the display": printed,
                     "exact stationary variance": spread,
                     "variance of the proof": float(groups.printed_variance(10**6, x, T)),
                     "variance of the display": display},
                    "L = 1, mu = 1/4, minimizers 2 and 1, trajectories of length 1/2, T = 10, 50 rounds.")


@erratum("lower_exponent", "proof of Theorem I.1", "proof", "nothing", ("lower_bound", "lower_rate"),
         "'This proves the first claim for t being the multiples of T'; t = Omega(sqrt(d) T log(d/eps)/eps)",
         "t counts rounds in theta_t and gamma^t, and iterations in the conclusion")
def _lower_exponent() -> Evidence:
    """gamma = (cos^T + cos^T)/2 is the factor of a round, and the proof's recursion theta_t ->
    theta_{t+1} is one round. With t a multiple of T in iterations gamma^t would be T times too high a
    power. Further down t/T stands for the rounds, so that this slip does not touch the conclusion.
    """
    # The mean's distance to its fixed point after three rounds.
    groups, x, T, n = GROUPS, 0.1, 10, 3
    gamma, fixed = groups.fixed_point(x, T)
    left = 1.0 - float(exact_law(groups.problem, FAHMCFlow(x, T), n).mean[-1, 0]) / fixed
    return Evidence(abs(left / gamma**n - 1) < 1e-9 < abs(left / gamma ** (n * T) - 1),
                    {"exact share left": left, "gamma^3": gamma**n, "gamma^30": gamma ** (n * T)},
                    "L = 1, mu = 1/4, trajectories of length .1, T = 10, 3 rounds.")


@erratum("lower_variance", "proof of Theorem I.1", "proof", "nothing", ("lower_bound",),
         "p_t (1/2) ((1-cos^(2T)(sqrt(L) x))^(1/2)/sqrt(L) + (1-cos^(2T)(sqrt(mu) x))^(1/2)/sqrt(mu))",
         "for shared momenta, variance (1/4)(A^2 + B^2 + 2 s_L s_mu (1-(c_L c_mu)^T)/(1-c_L c_mu)), A and B "
         "the two terms in the bracket, s_a = sin(sqrt(a) x)/sqrt(a), c_a = cos(sqrt(a) x); for private ones "
         "(A^2 + B^2)/2")
def _lower_variance() -> Evidence:
    """sum_j p_j s_L c_L^j and sum_j p_j s_mu c_mu^j, of variances A^2 and B^2, are different sums of the
    same momenta, so that they are not multiples of one p_0 (unless T = 1 or L = mu). By Cauchy and
    Schwarz the printed variance (A + B)^2/4 is too large for shared momenta; for private ones, w_c = 1/N,
    it is too small (L > mu). The closed form of Theorem I.1 falls with it; the lower bound on t uses only
    the means.
    """
    # Printed over exact variance; exact law from the recursion, not from the closed form.
    numbers = {}
    for L, mu, x, T in ((1.0, 0.25, 0.5, 1), (1.0, 1.0, 0.5, 10), (1.0, 0.25, 0.1, 10), (1.0, 0.25, 0.5, 10),
                        (4.0, 0.25, 0.5, 10), (100.0, 1.0, 0.1, 100)):
        groups = replace(GROUPS, L=L, mu=mu)
        exact = float(exact_law(groups.problem, FAHMCFlow(x, T), 10**6, record=[]).at(10**6).variances[0])
        numbers[f"printed / exact, L={L:g}, mu={mu:g}, x={x:g}, T={T}"] = float(
            groups.printed_variance(10**6, x, T)) / exact
    one, same, *others = numbers.values()
    return Evidence(max(others) > 1.0 + 1e-9 and max(abs(one - 1), abs(same - 1)) < 1e-9, numbers,
                    "Stationary variances, shared momenta; the first two cases are T = 1 and L = mu.")


@erratum("lower_bias", "proof of Theorem I.1", "proof", "nothing", ("lower_bound", "lower_rate"),
         "'for K eta <= 1/sqrt(L) there exist C_1, C_2 such that' (theta_eta - theta_*)^2 >= C_2 T^2 ((L^2 "
         "theta_L + mu^2 theta_mu)/(L+mu))^2 (K eta)^4",
         "for L > mu (theta_L > theta_mu is the theorem's) and T L (K eta)^2 bounded; to leading order "
         "theta_eta - theta_* = -(T/4-1/6) x^2 L mu (L-mu)(theta_L-theta_mu)/(L+mu)^2, x = K eta")
def _lower_bias() -> Evidence:
    """The bias vanishes for L = mu, which nothing in the proof excludes (its 'L >= mu' is for theta_eta
    <= theta_*, where it is right), and it is bounded while T^2 grows. Theorem C.1 claims one sampling
    task: take L > mu. Theorem I.1 claims it for every theta_L > theta_mu > 0, without L > mu, and has to
    be read with it. W2 <= eps for small eps enforces a small bias, hence T L x^2 bounded, and there C_2 >
    0 exists.
    """
    # The bias for L = mu, and bias/(T x^2) where L > mu.
    level, groups = replace(GROUPS, mu=1.0), GROUPS
    none = abs(level.fixed_point(0.1, 10)[1] - level.theta_star)
    ratios = {f"bias/(T x^2), L = 1, mu = 1/4, T={T}, T x^2={T * x**2:.2g}": float(
        abs(groups.fixed_point(x, T)[1] - groups.theta_star) / (T * x**2))
        for T in (1, 10, 1000) for x in (0.1 / np.sqrt(T), 1.0 / np.sqrt(T))}
    shares = ratios.values()
    return Evidence(none < 1e-12 and min(shares) > 0.0, {"bias, L = mu": none, **ratios},
                    "For L = 1, mu = 1/4, minimizers one apart, and the T and T x^2 tried, the ratio is "
                    f"{min(shares):.3g} to {max(shares):.3g}.")
