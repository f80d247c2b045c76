"""FA-HMC figures 1(a), (b) and (d): marginal error against the step size, beside FA-LD."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import plot
from ..figure import ByScale, Drawing, Finding, Panel, Parameter, Tables, Unjudged, note, settings
from ..grid import tabulate
from ..tables import among, groups
from ..verdicts import DATA_SETS, REPLICAS, shares, unanimous
from . import logistic, shared as sim

HMC, LD = "FA-HMC", "FA-LD"
COLOUR = {LD: plot.COLOURS[0], HMC: plot.COLOURS[1]}
CITED = "the data are cited (Mangoubi and Vishnoi, 2018), not printed, and not used here"
SAME = 1.25
"""Dimensions count as alike when errors differ by less: far less than the two of a good step size."""


def _parameters(dim: Any, n_data: Any, noise: float, weak_norm: float, rounds: ByScale) -> list[Parameter]:
    printed, few = n_data == 1000, [[0.1, 1], [0.1, 4]]
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
        Parameter("leapfrogs", ByScale([3, 20], [2, 4, 8, 16], [2, 3, 4, 6, 8, 16, 24, 40]), "ours", "K "
                  "tried for eta >= 0.02, where the paper tunes it; below, K = floor(pi/(3 eta)) as printed"),
        Parameter("norms", {"informative rows": 1.0, "weak rows": weak_norm}, "ours",
                  "norm of a row of features: " + CITED),
        Parameter("prior_variance", 1.0, "ours", CITED + "; with 1 a trajectory of pi/3 suits the prior"),
        Parameter("n_sets", 12, "ours", "data sets of either law, each judged by itself"),
        Parameter("data_seed", 0, "ours", "of the first data set; the others follow"),
        Parameter("short_cases", ByScale(few, few, [[0.02, 1], [0.1, 1], [0.02, 16], [0.1, 4]]), "ours",
                  "step sizes and K of simulated chains"),
        Parameter("short_rounds", rounds, "ours", "of the simulated chains, half of them kept"),
        Parameter("n_chains", ByScale(16, 16, 64), "ours", "simulated chains, pooled: many short ones for "
                  "one long"),
        *logistic.REFERENCE_CHAINS,
        Parameter("seed", 1, "ours", "of simulation, surrogate and reference"),
    ]


def compute(items: list[Parameter], scale: str) -> Tables:
    """Tables: long (the best K of each step size), short (simulated), setting; where asked for, dims."""
    p = settings(items, scale)
    long, short, facts = [], [], []
    for (law, norm), data in product(p.norms.items(), range(p.n_sets)):
        note(f"{law}, data set {data + 1} of {p.n_sets}")
        posterior = logistic.Posterior(p, p.data_seed + data, norm, p.dim, p.n_data)
        labels = {"law": law, "data": data}
        long += [labels | row for row in _long(p, posterior)]
        cases = {f"{law}: $\\eta$ = {step:g}, K = {k}":
                 (fs.FAHMC(step, k, p.local_steps, p.shared_noise), p.short_rounds)
                 for step, k in p.short_cases}
        short += logistic.runs(p, posterior, cases, data)
        values = np.linalg.eigvalsh(posterior.surrogate.mean_hessian)
        facts.append(labels | {"dim": p.dim, "smallest": values[0], "largest": values[-1],
                               "spread": posterior.unit})
    tables = {"long": pd.DataFrame(long), "short": pd.DataFrame(short), "setting": pd.DataFrame(facts)}
    if hasattr(p, "dims"):
        dims = tabulate("dimensions", _dimension, p, {"dim": p.dims, "data": range(p.n_sets)})
        tables["dims"] = dims[["data", "dim", "error"]]
    return tables


def _long(p: Any, posterior: logistic.Posterior) -> list[dict[str, Any]]:
    """Expected marginal error of the surrogate's chains at the best K of each step size."""
    rows = []
    for step in p.step_sizes:
        for name, tried in ((LD, [1]), (HMC, [int(np.pi / 3.0 / step)] if step < 0.02 else p.leapfrogs)):
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
    logistic.draw_short(last, tables["short"])
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


def _errors(tables: Tables, law: str, index: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of FA-HMC and of FA-LD with this law: rows by data set or step size, columns by the other."""
    columns = "step_size" if index == "data" else "data"
    long = among(tables["long"], law=law)
    hmc, ld = (among(long, algorithm=name).pivot(index=index, columns=columns, values="error")
               for name in (HMC, LD))
    return hmc, ld


def _judged(tables: Tables, judge: Callable[..., tuple[str, str]], law: str) -> tuple[str, str]:
    """The judge's verdict, and how far simulated chains on data of this law are from the surrogate."""
    table = logistic.ratios(tables["short"])
    *_, low, high = logistic.alike(table, logistic.CLOSE)
    own, (verdict, why) = table.columns.str.startswith(law), judge(tables, law)
    return verdict, (f"{why} Short simulated chains have {low[own].min():.2f} to {high[own].max():.2f} times "
                     "the surrogate's error.")


def judge_better(tables: Tables, law: str) -> tuple[str, str]:
    """Is the best FA-HMC better than the best FA-LD?"""
    hmc, ld = (table.min(axis=1) for table in _errors(tables, law, "data"))
    ratio = ld / hmc
    return unanimous(ratio > 1.0), (
        f"The least error of FA-LD is {ratio.min():.2f} to {ratio.max():.2f} times that of FA-HMC (medians "
        f"{ld.median():.3g} and {hmc.median():.3g} posterior spreads); FA-HMC's is the smaller "
        f"{shares(ratio > 1.0)}.")


def judge_small(tables: Tables, law: str) -> tuple[str, str]:
    """Is FA-HMC at the smallest step size within twice its least error?"""
    hmc, _ = _errors(tables, law, "data")
    ratio = hmc.iloc[:, 0] / hmc.min(axis=1)
    return unanimous(ratio <= 2.0), (
        f"At eta = {hmc.columns[0]:g} FA-HMC's error is {ratio.min():.1f} to {ratio.max():.1f} times its "
        f"least; within twice {shares(ratio <= 2.0)}.")


def _width(errors: pd.Series, fine: np.ndarray) -> float:
    """Share of the `fine` logarithms of step sizes within twice the least error, by interpolation."""
    stable = np.log(errors.dropna())
    levels = np.interp(fine, np.log(stable.index.to_numpy(float)), stable, right=np.inf)
    return float((levels <= np.log(2.0) + stable.min()).mean())


def judge_wide(tables: Tables, law: str) -> tuple[str, str]:
    """Width of the good range of step sizes."""
    steps = np.log(among(tables["long"], law=law)["step_size"])
    fine = np.linspace(steps.min(), steps.max(), 2001)
    hmc, ld = (table.apply(_width, fine=fine) for table in _errors(tables, law, "step_size"))
    return unanimous(hmc > ld), (
        "Share of the step sizes tried, on a logarithmic scale, within twice the method's least error: "
        f"{100 * hmc.median():.0f}% for FA-HMC and {100 * ld.median():.0f}% for FA-LD in the median; wider "
        f"for FA-HMC {shares(hmc > ld)}.")


def judge_gap(tables: Tables, law: str) -> tuple[str, str]:
    """Is the advantage larger for smaller step sizes?"""
    hmc, ld = _errors(tables, law, "step_size")
    ratio = (ld / hmc).dropna()
    good = ratio.iloc[0] > ratio.iloc[-1]
    return unanimous(good), (
        f"FA-LD's error over FA-HMC's is {ratio.iloc[0].median():.2g} at eta = {ratio.index[0]:g} and "
        f"{ratio.iloc[-1].median():.2g} at {ratio.index[-1]:g} in the median; larger at the smallest "
        f"{shares(good)}.")


def judge_dimension(tables: Tables) -> tuple[str, str]:
    """Are errors in several dimensions equivalent?"""
    table = tables["dims"].pivot(index="data", columns="dim", values="error")
    logs = table.transform(np.log)
    verdict, words, low, high = logistic.alike(logs.iloc[:, 1:].sub(logs.iloc[:, 0], axis=0), SAME)
    ranges = [f"{one:.2f} to {two:.2f}" for one, two in zip(low, high, strict=True)]
    return verdict, (
        f"Mean errors are {', '.join(f'{value:.3f}' for value in table.mean())} at d = "
        f"{', '.join(str(dim) for dim in table)}; over that at d = {table.columns[0]}: {', '.join(ranges)}. "
        f"{words} within a factor {SAME:g} of one.")


_PLACE = "section 5.1, figure 1"
_OURS = ("Data of our own law; expected errors of the Gaussian surrogate's chains of the paper's length, "
         "exactly but for a central limit theorem of their empirical distributions. How far they "
         "stand for the logistic regression is the finding on the surrogate.")
NEEDS = "Needs the data, which are cited (Mangoubi and Vishnoi, 2018) and not printed"
PAPERS = [
    Unjudged("The best FA-HMC has a smaller marginal error than the best FA-LD at equal communication.",
             _PLACE, NEEDS + ": with ours it depends on their law.", "better"),
    Unjudged("The improvement is around 5%.", "section 5.1, figures 1(a) and 1(b)",
             NEEDS + ": with ours the size of the difference depends on their law.", "five"),
    Unjudged("A small step size usually leads to a good performance of FA-HMC.", _PLACE,
             NEEDS + ", and the step sizes meant.", "small"),
    Unjudged("A wide range of step sizes gives FA-HMC a decent performance: it appears to be more robust, "
             "which suggests that it is easier to tune than FA-LD.", _PLACE,
             NEEDS + ", the step sizes tried, and what is decent.", "robust"),
    Unjudged("The performance gap is larger for smaller step sizes.", "section 5.1, figure 1(d)",
             NEEDS + ": with ours it depends on their law.", "gap"),
    Unjudged("FA-HMC is more advantageous in many dimensions: figure 1(b) against 1(d).", "section 5.1",
             NEEDS + ", in 1000 dimensions and in ten.", "dims"),
]


def _each(name: str, text: str, judge: Callable[..., tuple[str, str]], more: str = "") -> list[Finding]:
    """A finding with each law of our data."""
    return [Finding(f"With {law} {text}", _PLACE, partial(_judged, judge=judge, law=law),
                    f"{name}_{law.split()[0]}", DATA_SETS, _OURS + more)
            for law in ("informative rows", "weak rows")]


BETTER = _each("better", "the least marginal error of FA-HMC on the Gaussian surrogate, over step sizes and "
               "K, is below that of FA-LD at equal communication.", judge_better)
SMALL = _each("small_steps", "FA-HMC's marginal error on the Gaussian surrogate is at the smallest step size "
              "within twice its least.", judge_small,
              " There K = floor(pi/(3 eta)) as printed: with T = 10 such long trajectories let clients reach "
              "their own posteriors between communications, a bias that no small eta removes.")
WIDE = _each("wide_range", "the range of step sizes within twice the method's least error on the Gaussian "
             "surrogate is wider for FA-HMC than for FA-LD.", judge_wide, " K is the best of those tried, as "
             "in the paper.")
GAP = _each("gap_at_small_steps", "FA-LD's error over FA-HMC's on the Gaussian surrogate is larger at the "
            "smallest step size than at the largest.", judge_gap)
DIMENSION = Finding("With as many data as dimensions the surrogate's error does not depend on the dimension: "
                    "it varies by less than a quarter.", _PLACE, judge_dimension, "dimension", REPLICAS,
                    "Informative rows, eta = 0.05, K = 8, one error a data set: why fewer dimensions than "
                    "the paper's 1000 can stand for them.")


def _panel(letter: str, title: str, problem: str, cost: dict[str, str], items: list[Parameter],
           sentences: str, more: list[Finding]) -> Panel:
    papers = [one for one in PAPERS if one.name in sentences.split()]
    return Panel(
        TITLE=f"Marginal error against step size, {title} (Gaussian surrogate)",
        PAPER=f"FA-HMC figure 1({letter})", REPRODUCES=(f"FA-HMC 1({letter})",),
        SHOWS=f"Bayesian logistic regression {problem}, FA-HMC and FA-LD at equal communication: chains of "
        "the paper's length of its Gaussian surrogate on 12 data sets of either of two laws, and short "
        "simulated chains.", COST={"tiny": "3 s", **cost}, PARAMETERS=items,
        CLAIMS=[*papers, *BETTER, *SMALL, *WIDE, *more, logistic.SURROGATE],
        compute=partial(compute, items), draw=partial(draw, letter=letter))


MANY = ByScale(20, 40, 100)
FIGURES = {
    "fig1a": _panel(
        "a", "exact gradients", "with exact gradients", {"quick": "7 s", "paper": "about 5 min (estimated)"},
        [*_parameters(MANY, MANY, 0.0, 0.3, ByScale(4, 20, 40)),
         Parameter("dims", ByScale([20, 40], [20, 40, 80], [60, 100, 200]), "ours", "compared"),
         Parameter("dims_case", [0.05, 8], "ours", "their step size and K")],
        "better five small robust", [DIMENSION]),
    "fig1b": _panel(
        "b", "noisy gradients", "with noisy gradients", {"quick": "8 s", "paper": "about 6 min (estimated)"},
        _parameters(MANY, MANY, 10.0, 0.3, ByScale(4, 20, 40)), "better five small robust", []),
    "fig1d": _panel(
        "d", "ten dimensions", "in ten dimensions with noisy gradients",
        {"quick": "10 s", "paper": "about 15 min (estimated)"},
        _parameters(10, 1000, 10.0, 0.1, ByScale(4, 10, 40)), "better small robust gap dims", GAP)}
