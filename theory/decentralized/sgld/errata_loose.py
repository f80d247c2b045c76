"""Remarks on the paper's DE-SGLD part: statements that are true, and how far they are from sharp."""

from __future__ import annotations

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.network import complete, ring, second_eigenvalue

from ...corrections import Evidence, erratum
from ...exact import stationary_law
from .setting import PAPER


@erratum(id="de_sgld.target_moment", paper=PAPER, where="Lemma 10",
         printed="E||X - x_*||^2 <= 2 d N^-1/mu", corrected="d/(N mu)", kind="numerical",
         grade="loose", consequence="nothing", theorems=("de_sgld.target_moment_bound",),
         derivation="f is (N mu)-strongly convex: E<X - x_*, grad f(X)> = d by parts, and the left side is "
                    "at least N mu E|X - x_*|^2. The proof's Ito term has room for the factor 2.")
def _target_moment() -> Evidence:
    """The largest ratio over isotropic components and 200 random ones."""
    rng, ratios = np.random.default_rng(0), []
    for spread in [0.0, *rng.uniform(0.0, 5.0, 200)]:
        N, d = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        hessians = 10.0 ** rng.uniform(0.0, spread, (N, d))
        moment = float(Quadratic.from_components(hessians, np.ones((N, d))).target().variances.sum())
        ratios.append(moment / (2.0 * d / (N * hessians.min())))
    return Evidence(max(ratios) <= 0.5 + 1e-12, {"largest exact / printed bound": max(ratios)},
                    "Over quadratics, isotropic ones among them; the sharper constant allows 1/2.")


@erratum(id="de_sgld.circle_gap", paper=PAPER, where="after equation (19)",
         printed="gamma-bar = 1/3 + (2/3) cos(2 pi/N) = 1 - O(1/N)",
         corrected="1 - gamma-bar = 4 pi^2/(3 N^2) + O(N^-4)", kind="numerical",
         grade="loose", consequence="nothing", theorems=(),
         derivation="1 - cos(2 pi/N) = 2 pi^2/N^2 + O(N^-4), and O(1/N^2) is O(1/N): true, not sharp.")
def _circle_gap() -> Evidence:
    """N^2 (1 - gamma-bar) settles, N (1 - gamma-bar) falls."""
    gaps = {N: 1.0 - second_eigenvalue(ring(N)) for N in (20, 200)}
    numbers = {f"N^2 (1 - gamma-bar), N={N}": N**2 * gap for N, gap in gaps.items()}
    numbers |= {f"N (1 - gamma-bar), N={N}": N * gap for N, gap in gaps.items()}
    settles = abs(200**2 * gaps[200] / (20**2 * gaps[20]) - 1.0) < 0.02
    return Evidence(settles, numbers, "Ten times as many nodes divide the gap by "
                                      f"{gaps[20] / gaps[200]:.1f}; 4 pi^2/3 = {4 * np.pi**2 / 3:.2f}.")


@erratum(id="de_sgld.order_of_error", paper=PAPER, where="Remark 2",
         printed="limsup W_2(L(average), pi) = O(sqrt(eta))",
         corrected="O(eta) on quadratic components; the clients' too, once eta is far below the target's "
                   "variance", kind="numerical",
         grade="loose", consequence="nothing", theorems=("de_sgld.w2_bound", "de_sgld.w2_clients_bound"),
         derivation="O is an upper bound, and it is proved. On quadratics the stationary mean and covariance "
                    "of the average are smooth functions of eta that are right at eta = 0, so W2 is O(eta).")
def _order_of_error() -> Evidence:
    """Slopes of the exact stationary W2 in the step size, 100 clients of equal curvature."""
    problem = Quadratic.from_components(np.ones(100), np.cos(np.arange(100.0))[:, None])
    goal = problem.target()
    slopes: dict[str, float] = {}
    for regime, steps in (("far below the variance", (1e-6, 1e-5)), ("far above it", (0.05, 0.2))):
        both = []
        for step in steps:
            algorithm = DESGLD(step, complete(100))
            both.append([stationary_law(problem, algorithm).w2(goal), float(np.mean([
                stationary_law(problem, algorithm, client=c).w2(goal) for c in (0, 50)]))])
        found = np.log(np.divide(both[1], both[0])) / np.log(steps[1] / steps[0])
        slopes |= {f"slope, average, eta {regime}": float(found[0]),
                   f"slope, clients, eta {regime}": float(found[1])}
    average, clients, _, _ = slopes.values()
    return Evidence(min(average, clients) > 0.5, slopes,
                    "Slopes of log W2 in log eta; the printed order allows 1/2 and more.")


@erratum(id="de_sgld.lipschitz", paper=PAPER, where="appendix E",
         printed="L = 2 max_i (sum_j |X_j|^2) + 1/(lambda N)",
         corrected="2 max_i lmax(X_i'X_i) + 1/(lambda N) for the f_i of (126); half the first term for those "
                   "of the density", kind="numerical",
         grade="loose", consequence="nothing", theorems=(),
         derivation="A trace is at least the largest eigenvalue: the printed L is a Lipschitz constant of "
                    "the gradient of (126), and a fortiori of the f_i with 1/2. It shortens the step size "
                    "that Theorem 1 allows.")
def _lipschitz() -> Evidence:
    """Section 5.1's features: 50 data of dimension 2 for each of 100 clients."""
    features = np.random.default_rng(0).standard_normal((100, 50, 2))
    grams = np.swapaxes(features, -1, -2) @ features
    printed = 2.0 * float(np.trace(grams, axis1=1, axis2=2).max()) + 1e-3
    sharp = 2.0 * float(np.linalg.eigvalsh(grams).max()) + 1e-3
    return Evidence(printed > sharp * (1.0 + 1e-9), {"printed L": printed, "least L of (126)": sharp},
                    f"Their ratio is {printed / sharp:.2f}.")
