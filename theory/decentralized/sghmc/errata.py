"""Errata of the paper's DE-SGHMC part; each demonstration computes its numbers anew, from the displays.

`errata_constants` has those of the explicit constant (105). Where momentum does not matter the instances
have friction 1/eta, beta = 0: then p^(k) = 0, c_2 = 0 and q_1 = 0 in appendix B.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsim.settings.validation import Array

from ...declare.corrections import Evidence
from ...exact import joint_law
from ..errata_transient import pair
from ..paper import sghmc_erratum as erratum, sghmc_reading as reading
from .bounds import average_terms
from .errata_constants import Case, moments
from .momentum import first_constant, largest_beta

Settings = Sequence[tuple[float, float, float, float, float]]


@erratum("strong_convexity_factor", "proof of Lemma 13, equation (102)", "proof", "nothing",
         ("velocity_bound",), "E|x^(k) - x_a|^2 <= (1/mu) E[Fbar(x^(k)) - Fbar^*] <= c_3/(mu b)",
         "(2/mu) E[Fbar(x^(k)) - Fbar^*] <= 2 c_3/(mu b), as (83) has it")
def strong_convexity(factor: float = 1.0, curvatures: Sequence[float] = (0.5, 3.0)) -> Evidence:
    """mu-strong convexity gives Fbar(x) - Fbar^* >= (mu/2)|x - x_a|^2, equation (83), with equality for a
    quadratic of curvature mu. So the step gives 2 c_3/(mu b) here and 4 c_3/(mu b) for 2 c_3/(mu b) in
    the bound of E|x^(k)|^2 after it. Yet c_3/(mu b) bounds E|x^(k) - x_a|^2: x^(k) - x_a = (1-beta)(x^(k)
    + p^(k) - x_a) + beta (x^(k-1) - x_a) is a convex combination, so E|x^(k) - x_a|^2 <= max(c_3, E|x^(0)
    - x_a|^2); c_3, taken from (95), is at least b L_a E|x^(0) - x_a|^2, L_a >= mu; and mu b < 1, as by
    (86) mu b <= 2 alpha mu (1 - alpha mu + beta)/(1-beta), alpha mu < 1/2, beta <= alpha mu/16. So both
    bounds, and the O(1) of Lemma 13, stand.
    """
    # Both inequalities of (102), with (factor/mu) in the middle, and its ends, along exact laws. The paper
    # prints the factor 1. Two clients of curvature mu with minimizers 0 start at 10; beta = 0. V_1 of c_3 is
    # (95).
    inner = outer = 0.0
    for mu in curvatures:
        case = Case((mu, mu), (0.0, 0.0), (10.0, 10.0), pair(0.0), 0.1 / mu)
        law = joint_law(case.problem, case.algorithm, 100, start=case.first)
        mean = law.mean[:, :, 0]
        second = law.cov + mean[:, :, None] * mean[:, None, :]
        curvature = mu * np.eye(2) + (np.eye(2) - case.algorithm.mixing) / case.alpha
        energy = 0.5 * np.einsum("ij,kji->k", curvature, second)  # E[Fbar(x) - Fbar^*], x_a = 0
        apart = np.trace(second, axis1=1, axis2=2)
        inner = max(inner, float((apart / (factor / mu * energy)).max()))
        outer = max(outer, float(apart.max() * mu * case.chain.b / (factor * case.c3)))
    fails, stands = inner > 1.0 + 1e-9, outer <= 1.0
    return Evidence(fails and stands, {
        "E|x - x_a|^2 / middle of (102), largest": inner,
        "E|x - x_a|^2 / right end of (102), largest": outer},
        f"With the factor {factor:g} in the middle of (102) its first inequality "
        f"{'fails' if fails else 'holds'} for two clients of equal curvature that start at 10 and have their "
        f"minimizer at 0; the right end {'bounds' if stands else 'does not bound'} the left side.")


def settings(n: int, seed: int) -> list[tuple[float, float, float, float, float]]:
    """mu, L, lambda_N, alpha within (37) and the largest beta of (38); lambda_N also near -1."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(n):
        L, least = float(10.0 ** rng.uniform(-3.0, 3.0)), -1.0 + 2.0 * float(rng.uniform(0.03, 1.0)) ** 4
        mu = L / (1.0 + float(10.0 ** rng.uniform(-8.0, 3.0)))
        alpha = (1.0 + least) / (2.0 * (L + mu)) * min(1.0, float(10.0 ** rng.uniform(-1.0, 1.0)))
        rows.append((mu, L, least, alpha, max(largest_beta(mu, L, least, alpha), 0.0)))
    return rows


def numerators(mu: float, L: float, least: float, alpha: float, beta: float) -> tuple[float, float, float]:
    """a (1-beta)^2 of q_1 = a/b by (85), the same as Lemma 20's proof prints it, and b (1-beta)^2 by (86)."""
    c1 = first_constant(mu, L, least, alpha, beta)
    perturbed = beta**2 * (1.0 - least) ** 2 * (1.0 + 1.0 / c1) / mu  # c_2 (1-beta)^2/(4 mu), printed c_2
    inside = beta - mu * alpha + 2.0 * mu * (1.0 - beta) * alpha / (
        alpha * (L + mu) + 1.0 - least) - 2.0 * c1 * alpha * mu
    return (2.0 * alpha * beta + 8.0 * perturbed, 2.0 * alpha * beta + 4.0 * perturbed, 2.0 * alpha * inside)


def lemma_20(cases: Settings) -> Evidence:
    """The printed numerator against (85), and q_1 with the printed c_2 and the printed 64 of (38)."""
    rows = np.array([numerators(*case) for case in cases])
    moving = rows[rows[:, 1] > 0.0]
    ratio = float((moving[:, 0] / moving[:, 1]).max()) if len(moving) else 1.0
    q1 = float((rows[:, 0] / rows[:, 2]).max())
    fails, stands = ratio > 1.0 + 1e-9, q1 < 1.0
    return Evidence(fails and stands, {"a (1-beta)^2 / printed numerator, largest": ratio,
                                       "q_1, largest, printed c_2 and 64": q1},
                    ("The printed numerator is smaller than (85) gives it. " if fails else
                     "The printed numerator is that of (85) here. ")
                    + f"q_1 < 1 {'holds' if stands else 'is violated'} at each of {len(rows)} settings with "
                    "the printed c_2 and the momentum given.")


@erratum("lemma_20", "proof of Lemma 20, first display", "proof", "nothing", ("ratio_bound",),
         "q_1 = a/b = (2 alpha beta + 4 beta^2 (1 - lambda_N)^2 (1 + 1/c_1)/mu)/(...)",
         "8 beta^2 here, in (116) and (117); after (117) c_1 + 1 < 2 is replaced by c_1 < (1 + lambda_N)/8, "
         "that is 8 beta^2 (1 - lambda_N)^2 (1 + c_1) on the left; c_2 and the 64 stay")
def _lemma_20() -> Evidence:
    """a (1-beta)^2 = 2 alpha beta + 2 c_2 (1-beta)^2/mu by (85), and c_2 (1-beta)^2 = 4 beta^2 (1-l)^2
    (1+1/c_1), l = lambda_N: (117) has 8 beta^2 (1-l)^2 (1+c_1) on the left. The chain needs at most 2 c_1
    (alpha mu)^3 (1+l)/4 there, so with beta^2 <= c_1 (alpha mu)^3 (1+l)/64, (75), that (1-l)^2 (1+c_1) <=
    4. By (73) c_1 < alpha mu/2 <= (1+l)/8, and (2-e)^2 (1+e/8), e = 1+l, is 4 at e = 0 and decreases. So
    q_1 < 1. The kinder cause is c_2 itself: it has 1+1/c_1 where (81) gives 1+1/(2c_1). With that the
    left of (117) is 4 beta^2 (1-l)^2 (1+2c_1) < 8 beta^2 (1-l)^2, and the chain stands from there as
    printed.
    """
    # At the largest beta that (38) allows.
    return lemma_20(settings(2000, 0))


@erratum("first_lyapunov_value", "proof of Lemma 13, equations (94) and (95)", "proof", "nothing",
         ("extrapolation_bound",),
         "V_1 = b E[Fbar(x^(0)) - Fbar^*] + E|x^(0) + beta/(1-beta) (x^(1) - x^(0)) - x_a|^2",
         "x^(1) in place of the first x^(0) of the last term")
def first_value(apart: float = 0.0) -> Evidence:
    """V_(k+1) has |x^(k+1) + p^(k+1) - x_a|^2 with p^(k+1) = beta/(1-beta) (x^(k+1) - x^(k)); at k = 0
    that is x^(1) + beta/(1-beta) (x^(1) - x^(0)), and V_1 can be larger. From x^(0) = x_a the printed
    value is 0 at beta = 0, and the noise of the first step is not. (95) has x^(0) as well, so it is no
    loss of our text. V_1 = O(1), which is all that c_3 needs, stands.
    """
    # V_1 as (94) has it, and by its definition, from a start at `apart` times x_a beyond x_a; beta = 0. Both
    # have b E[Fbar(x^(0)) - Fbar^*]; the rest is E|x^(0) - x_a|^2 in (94), E|x^(1) - x_a|^2 by definition.
    case = Case((1.0, 2.0), (1.0, -1.0), (0.0, 0.0), pair(0.0), 0.01)
    c, fixed = case.chain, case.fixed
    law = joint_law(case.problem, case.algorithm, 400, start=(1.0 + apart) * fixed)
    off = ((law.mean - fixed) ** 2).sum(axis=(1, 2)) + np.trace(law.cov, axis1=1, axis2=2)
    c3 = 0.5 * c.b * c.L_alpha * off[0] + off[1] + c.rest / (2.0 * c.c1)
    printed, defined = float(off[0]), float(off[1])
    fails, stands = defined > printed, float((off[1:] / c3).max()) <= 1.0
    return Evidence(fails and stands, {
        "E|x^(0) - x_a|^2, printed in V_1": printed, "E|x^(1) - x_a|^2, in V_1 by definition": defined,
        "sup E|x^(k) - x_a|^2 / c_3 with V_1 by definition": float((off[1:] / c3).max())},
        ("V_1 by its definition can be larger than (94) and (95) have it: here they miss the "
         "first step's noise. "
         if fails else "(95) is an upper bound of V_1 here. ")
        + ("With V_1 by its definition c_3 bounds the iterates." if stands else "c_3 is violated."))


@erratum("order_of_remainder", "proof of Lemma 13, after equation (101)", "proof", "nothing", (),
         "(1/(1-q)) (2/(1-beta)^2 (eta^4 sigma^2 N + eta^3 2 gamma N d) + c_2 |x_a|^2) = "
         "O(eta^3)/Theta(eta^2) = O(eta)", "O(eta^2)/Theta(eta^2) = O(1)")
def order_of_remainder(noise: float = 0.0, heat: float = 1.0) -> Evidence:
    """gamma eta = Theta(1) by (92), so 2 gamma eta^3 N d is of order eta^2, and 1 - q of order eta^2 by
    (100). The quotient is O(1), which is all that c_3 = O(1) needs.
    """
    # (1/(1-q)) (2/(1-beta)^2 (eta^4 sigma^2 N + 2 gamma eta^3 N d)) at eta/10 over that at eta; beta = 0.
    # `heat` scales the second part; the theorem has 1, and allows no gradient noise.
    mu, L, N, values = 1.0, 2.0, 2, []
    for eta in (0.1, 0.01):
        c1 = first_constant(mu, L, 0.0, eta**2, 0.0)  # q = 1 - 2 c_1, gamma = 1/eta, d = 1
        values.append(2.0 * (eta**4 * noise**2 * N + heat * 2.0 * eta**2 * N) / (2.0 * c1))
    ratio = values[1] / values[0]
    wrong = ratio > 10.0**-0.5
    return Evidence(wrong, {"the term at eta/10 over that at eta": ratio, "for O(eta) at most about": 0.1,
                            "the term at eta": values[0]},
                    "The term does not fall with eta, and is bounded." if wrong else
                    "The term falls at least like eta here.")


def mixing_of(values: tuple[float, float, float]) -> Array:
    """Four clients: eigenvalues 1 and, on (1,1,-1,-1), (1,-1,1,-1), (1,-1,-1,1), those given."""
    basis = 0.5 * np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])
    return basis.T @ np.diag((1.0, *values)) @ basis


@erratum("monotone", "footnote 5 (section 5.1), against Remark 12", "loose", "nothing",
         ("w2_bound", "w2_clients_bound"),
         "our upper bounds ... in Theorem 1 and Theorem 11 are both monotonically increasing in gamma-bar "
         "(see Remark 3 and Remark 12)",
         "Theorem 11's apart from c_5, \"whose dependency to gamma-bar is more complicated to determine\" "
         "(Remark 12)")
def monotone(first: tuple[float, float, float] = (0.0, 0.3, 0.0),
             second: tuple[float, float, float] = (0.31, 0.0, 0.0)) -> Evidence:
    """Footnote 5 omits the reservation that Remark 12, which it cites, makes for c_5. With c_5 held fixed
    every term increases, as the remark says. With the least c_5 of (46) on each network it need not:
    better mixing of clients that pull apart makes larger velocities. The sentence that the footnote
    supports is about Figure 2, DE-SGLD, for which Theorem 1 and Remark 3 are enough.
    """
    # Theorem 11's floor eta E_4 on two networks, gamma-bar larger on the second. mu = L = 1, beta = 0, sigma
    # = 0, d = 1. Clients pull apart along (1,1,-1,-1), which the network of smaller gamma-bar mixes at once.
    # Once c_5 is the least constant with (46) of each network, once the larger of the two.
    far = (1e3, 1e3, -1e3, -1e3)
    cases = [Case((1.0,) * 4, far, far, mixing_of(values), 0.999 * 0.25) for values in (first, second)]
    seconds = [case.chain.base.second for case in cases]
    least = [moments(case.problem, case.algorithm, case.first).least for case in cases]

    def floors(constants: Sequence[float]) -> list[float]:
        terms = [average_terms(case.chain, c5, np.zeros(1), "without_transient")
                 for case, c5 in zip(cases, constants, strict=True)]
        return [float(each["discretization"] + each["disagreement"]) for each in terms]

    own, common = floors(least), floors([max(least)] * 2)
    falls, grow = own[1] < own[0], common[1] >= common[0]
    numbers = {"gamma-bar, first": seconds[0], "gamma-bar, second": seconds[1]}
    numbers |= {f"floor, {name}, {place}": value
                for name, both in (("each network's own c_5", own), ("one c_5 for both", common))
                for place, value in zip(("first", "second"), both, strict=True)}
    return Evidence(falls and grow, numbers,
                    f"With each network's least c_5 of (46) the bound is {'smaller' if falls else 'larger'} "
                    f"on the network of larger gamma-bar ({seconds[1]:.2g} against {seconds[0]:.2g}); "
                    f"with one c_5 for both it is {'larger' if grow else 'smaller'} there.")


reading("matrix_q", "proof of Lemma 13, equation (87)", "transcription", ("factor_bound",),
        "2 alpha mu L_a/((1-beta)(L + mu)) in Q", "2 alpha mu L_a/((1-beta)(L_a + mu))",
        "The inequality before it, and S_s = sM - Q in the proof of Lemma 21, have L_a + mu: the subscript "
        "may be lost in our text.")
reading("symbols_of_the_proofs", "section 4.1 (the SDE, and before (51)) and the proof of Lemma 17", "proof",
        ("damping_bound",),
        "dX_t = -(1/N) grad f(x_k) dt + ...; By (47), we get v = (x^(k) - x^(k-1))/eta; |x^(k+1) - "
        "x~_(k+1)|^2 in Lemma 17's proof (x^(k) the average)", "grad f(X_t); (48); |x~_(k+1) - x_(k+1)|^2",
        "The SDE is (25); (48) is the line that has x and v; Lemma 17's first display is about x~ - x, and "
        "the two after it have the letters of Lemma 16. The arguments are right with the symbols exchanged.")
