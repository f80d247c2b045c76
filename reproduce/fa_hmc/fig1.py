"""FA-HMC figures 1(a), (b) and (d): marginal error against the step size, beside FA-LD."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import plot
from ..figure import ByScale, Drawing, Panel, Parameter, Tables, note, settings
from ..grid import tabulate
from ..tables import among, groups
from . import fig1_claims as claims, logistic, shared as sim, short as checks
from .fig1_claims import HMC, LD

COLOUR = {LD: plot.COLOURS[0], HMC: plot.COLOURS[1]}
CITED = "the data are cited (Mangoubi and Vishnoi, 2018), not printed, and not used here"
QUARTER = np.pi / 3.0


def _parameters(dim: Any, n_data: Any, noise: float, weak_norm: float,
                short_rounds: ByScale) -> list[Parameter]:
    printed = n_data == 1000
    return [
        Parameter("dim", dim, "paper" if printed else "ours", "section 5.1: d = 10" if printed else
                  "the paper has 1000; figure 1(a)'s finding on dimensions says what that changes"),
        Parameter("n_data", n_data, "paper" if printed else "ours", "section 5.1: 1000" if printed else
                  "as many as dimensions, like the paper's 1000"),
        Parameter("n_clients", 20, "paper", "section 5.1: 20 nodes of equal size"),
        Parameter("noise", noise, "paper", "section 5.1: standard deviation per coordinate, of a gradient "
                  "of the client's energy divided by its weight"),
        Parameter("local_steps", 10, "paper", "section 5.1: T = 10"),
        Parameter("shared_noise", 1.0, "paper", "section 5: the same momentum on all clients"),
        Parameter("iterations", 20_000_000, "paper", "section 5.1: of the surrogate's chains; the second "
                  "half is kept, one average a round"),
        Parameter("step_sizes", ByScale([0.01, 0.05, 0.2], [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4],
                                        [0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4]),
                  "ours", "the grid of eta is not printed; unstable step sizes are left out"),
        Parameter("leapfrogs", ByScale([3, 20], [2, 4, 8, 16], [2, 3, 4, 6, 8, 16, 24, 40]), "ours",
                  "K tried for eta >= 0.02, where the paper tunes it; below, K = floor(pi/(3 eta)) as "
                  "printed"),
        Parameter("norms", {"informative rows": 1.0, "weak rows": weak_norm}, "ours",
                  "norm of a row of features: " + CITED),
        Parameter("prior_variance", 1.0, "ours", CITED + "; with 1 a trajectory of pi/3 suits the prior"),
        Parameter("n_sets", 12, "ours", "data sets of either law, each judged by itself"),
        Parameter("data_seed", 0, "ours", "of the first data set; the others follow"),
        Parameter("short_cases", ByScale([[0.1, 1], [0.1, 4]], [[0.1, 1], [0.1, 4]],
                                         [[0.02, 1], [0.1, 1], [0.02, 16], [0.1, 4]]), "ours",
                  "step sizes and K of simulated chains"),
        Parameter("short_rounds", short_rounds, "ours", "of the simulated chains, half of them kept"),
        Parameter("n_chains", ByScale(16, 16, 64), "ours",
                  "simulated chains, pooled: many short ones for one long"),
        *checks.REFERENCE,
        Parameter("seed", 1, "ours", "of simulation, surrogate and reference"),
    ]


def compute(items: list[Parameter], scale: str) -> Tables:
    """Tables: long (the best K of each step size), short (simulated), setting; where asked for, dims."""
    p = settings(items, scale)
    long, short, facts = [], [], []
    for (law, norm), data in product(p.norms.items(), range(p.n_sets)):
        note(f"{law}, data set {data + 1} of {p.n_sets}")
        posterior = logistic.Posterior(p, p.data_seed + data, norm, p.dim, p.n_data)
        long += [{"law": law, "data": data, **row} for row in _long(p, posterior)]
        cases = {f"{law}: $\\eta$ = {step:g}, K = {k}":
                 (fs.FAHMC(step, k, p.local_steps, p.shared_noise), p.short_rounds)
                 for step, k in p.short_cases}
        short += [{"data": data, **row} for row in checks.runs(p, posterior, cases, p.seed + 1000 * data)]
        values = np.linalg.eigvalsh(posterior.surrogate.mean_hessian)
        facts.append({"law": law, "data": data, "dim": p.dim, "smallest": values[0],
                      "largest": values[-1], "spread": posterior.unit})
    tables = {"long": pd.DataFrame(long), "short": pd.DataFrame(short), "setting": pd.DataFrame(facts)}
    if hasattr(p, "dims"):
        dims = tabulate("dimensions", _dimension, p, {"dim": p.dims, "data": range(p.n_sets)})
        tables["dims"] = dims[["data", "dim", "error"]]
    return tables


def _long(p: Any, posterior: logistic.Posterior) -> list[dict[str, Any]]:
    """Expected marginal error of the surrogate's chains at the best K of each step size."""
    rows = []
    for step in p.step_sizes:
        for name, tried in ((LD, [1]), (HMC, [int(QUARTER / step)] if step < 0.02 else p.leapfrogs)):
            (error, stationary), k = min((_expected(p, posterior, step, k), k) for k in tried)
            if np.isfinite(error):
                rows.append({"algorithm": name, "step_size": step, "K": k, "error": error,
                             "stationary": stationary})
    return rows


def _expected(p: Any, posterior: logistic.Posterior, step: float, k: int) -> tuple[float, float]:
    """Marginal errors of a chain of the paper's length and of the stationary law; infinite if unstable."""
    chain = logistic.Chain(posterior.round_map(fs.FAHMC(step, k, p.local_steps, p.shared_noise)))
    if not chain.stable:
        return np.inf, np.inf
    kept = p.iterations // p.local_steps // 2
    return (float(logistic.error_of_chain(chain, posterior.target, [kept])[0]) / posterior.unit,
            logistic.error_of_law(chain.law, posterior.target) / posterior.unit)


def _dimension(p: Any, dim: int, data: int) -> dict[str, float]:
    """The surrogate's error at one step size and K, with as many data as dimensions."""
    posterior = logistic.Posterior(p, p.data_seed + data, next(iter(p.norms.values())), dim, dim)
    return {"error": _expected(p, posterior, *p.dims_case)[0]}


def draw(tables: Tables, letter: str) -> Drawing:
    """One panel a law of the data: long chains of the surrogate; and the simulated short ones."""
    laws = list(dict.fromkeys(tables["long"]["law"]))
    drawing, ((*axes, last),) = plot.panels(len(laws) + 1, 5.1, 5.2)
    for ax, law in zip(axes, laws, strict=True):
        _draw_long(ax, among(tables["long"], law=law))
        facts = among(tables["setting"], law=law)
        ax.set_title(f"({letter}) {law}: curvature {facts['smallest'].min():.2g} to "
                     f"{facts['largest'].max():.2g}")
        plot.legend_below(ax, **sim.LEGEND)
    checks.draw(last, tables["short"])
    axes[0].set_ylabel("marginal error / posterior spread")
    return drawing


def _draw_long(ax: Axes, long: pd.DataFrame) -> None:
    lowest = float(long["error"].min())
    for name, colour in COLOUR.items():
        one = among(long, algorithm=name).groupby("step_size")
        sim.draw_spread(ax, one["error"], colour, f"{name}: median",
                        f"{name}: all {one.size().max()} data sets")
        bias = one["stationary"].median()
        bias = bias[bias > 0.1 * one["error"].median()]
        lowest = min(lowest, float(bias.min()))
        ax.plot(bias.index, bias, color=colour, linestyle="--",
                label=f"{name}: bias alone, where above a tenth")
    for step, rows in groups(among(long, algorithm=HMC), "step_size"):
        ax.text(step, 0.015, f"K={rows['K'].median():.0f}", transform=ax.get_xaxis_transform(), fontsize=7.5,
                ha="center", color=COLOUR[HMC])
    ax.set(xscale="log", yscale="log", xlabel=r"step size $\eta$",
           ylim=(0.5 * lowest, 1.5 * float(long["error"].max())))


def _panel(letter: str, title: str, problem: str, cost: dict[str, str], items: list[Parameter],
           sentences: list[Any]) -> Panel:
    return Panel(
        TITLE=f"Marginal error against step size, {title} (Gaussian surrogate)",
        PAPER=f"FA-HMC figure 1({letter})", REPRODUCES=(f"FA-HMC 1({letter})",),
        SHOWS=f"Bayesian logistic regression {problem}, FA-HMC and FA-LD at equal communication: chains of "
        "the paper's length of its Gaussian surrogate on 12 data sets of either of two laws, and short "
        "simulated chains.", COST=cost, PARAMETERS=items, CLAIMS=[*sentences, checks.FINDING],
        compute=partial(compute, items), draw=partial(draw, letter=letter))


MANY = ByScale(20, 40, 100)
FIGURES = {
    "fig1a": _panel(
        "a", "exact gradients", "with exact gradients",
        {"tiny": "3 s", "quick": "7 s", "paper": "about 5 min (estimated)"},
        [*_parameters(MANY, MANY, 0.0, 0.3, ByScale(4, 20, 40)),
         Parameter("dims", ByScale([20, 40], [20, 40, 80], [60, 100, 200]), "ours", "compared"),
         Parameter("dims_case", [0.05, 8], "ours", "their step size and K")],
        [*claims.MANY_DIMENSIONS, claims.DIMENSION]),
    "fig1b": _panel(
        "b", "noisy gradients", "with noisy gradients",
        {"tiny": "3 s", "quick": "8 s", "paper": "about 6 min (estimated)"},
        _parameters(MANY, MANY, 10.0, 0.3, ByScale(4, 20, 40)), claims.MANY_DIMENSIONS),
    "fig1d": _panel(
        "d", "ten dimensions", "in ten dimensions with noisy gradients",
        {"tiny": "3 s", "quick": "10 s", "paper": "about 15 min (estimated)"},
        _parameters(10, 1000, 10.0, 0.1, ByScale(4, 10, 40)), claims.TEN_DIMENSIONS)}
