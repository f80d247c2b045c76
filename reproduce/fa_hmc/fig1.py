"""FA-HMC figures 1(a), (b) and (d): marginal error against the step size, beside FA-LD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import plot
from ..figure import ByScale, Drawing, Finding, Panel, Parameter, Tables, Unjudged, settings
from ..tables import among, groups
from ..verdicts import DATA_SETS, shares, unanimous
from . import logistic, shared as sim, stepwise, surrogate

HMC, LD = "FA-HMC", "FA-LD"
MARKERS = {LD: "s", sim.ALGORITHM: "o", sim.SECTION: "^"}
"""Of FA-LD, and of FA-HMC in either reading."""
MOST_DENSE = 100
"""Dimensions up to which chains of section 5's reading are worked out."""

def _parameters(sizes: list[Parameter], noise: float, rounds: ByScale) -> list[Parameter]:
    few = [[0.1, 1], [0.1, 4]]
    return [
        *sizes, *logistic.DATA,
        Parameter("noise", noise, "paper", "section 5.1: standard deviation per coordinate, of a gradient "
                  "of the client's energy divided by its weight"),
        Parameter("local_steps", 10, "paper", "section 5.1: T = 10"),
        Parameter("shared_noise", 1.0, "paper", "section 5: the same momentum on all clients"),
        Parameter("iterations", 20_000_000, "paper", "section 5.1: of the surrogate's chains; the second "
                  "half is kept, one average a round"),
        Parameter("step_sizes", ByScale([0.01, 0.05, 0.2], [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4],
                                        [0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4]),
                  "ours", "the grid of eta is not printed; unstable step sizes are left out"),
        Parameter("leapfrogs", ByScale([3, 20], [2, 3, 4, 8], [2, 3, 4, 6, 8, 16, 24, 40]), "ours", "K "
                  "tried for eta >= 0.02, where the paper tunes it; below, K = floor(pi/(3 eta)) as printed"),
        Parameter("leapfrogs_5", ByScale([5, 20], [2, 5, 10, 20], [2, 5, 10, 20, 30, 40]), "ours", "the same "
                  "where T counts leapfrog steps, as in section 5; below 0.02 the multiple of T next below "
                  "floor(pi/(3 eta)), so that chains repeat after a trajectory"),
        Parameter("short_cases", ByScale(few, few, [[0.02, 1], [0.1, 1], [0.02, 16], [0.1, 4]]), "ours",
                  "step sizes and K of simulated chains"),
        Parameter("short_rounds", rounds, "ours", "of the simulated chains, half of them kept"),
        Parameter("n_chains", ByScale(16, 16, 64), "ours", "simulated chains, pooled: many short ones for "
                  "one long"),
        *logistic.REFERENCE_CHAINS,
        Parameter("seed", 1, "ours", "of simulation, surrogate and reference"),
    ]


def compute(items: list[Parameter], scale: str) -> Tables:
    """Tables: long (the best K of each step size), short (simulated, of the last size), setting."""
    p = settings(items, scale)
    long, short, facts = [], [], []
    cases = {f"$\\eta$ = {step:g}, K = {k}":
             (fs.FAHMC(step, k, p.local_steps, p.shared_noise), p.short_rounds) for step, k in p.short_cases}
    for labels, problem in logistic.data_sets(p):
        posterior = surrogate.Posterior(problem)
        long += [labels | row for row in _long(p, posterior)]
        if labels["dim"] <= MOST_DENSE:
            long += [labels | row for row in _stepwise(p, posterior)]
        if labels["dim"] == (p.smaller or [p.dim])[-1]:
            short += logistic.runs(p, posterior, cases, labels["data"])
        values = np.linalg.eigvalsh(posterior.precision)
        facts.append(labels | {"smallest": values[0], "largest": values[-1],
                               "spread": surrogate.spread_of(posterior.target)})
    return {"long": pd.DataFrame(long), "short": pd.DataFrame(short), "setting": pd.DataFrame(facts)}


def _long(p: Any, posterior: surrogate.Posterior) -> list[dict[str, Any]]:
    """Expected marginal error of the surrogate's chains at the best K of each step size, by Algorithm 3."""
    rows = []
    for step in p.step_sizes:
        for name, tried in ((LD, [1]), (HMC, [int(np.pi / 3.0 / step)] if step < 0.02 else p.leapfrogs)):
            rows += _best(p, posterior, step, {"algorithm": name, "reading": sim.ALGORITHM}, {
                k: surrogate.Chain(posterior.round_map(fs.FAHMC(step, k, p.local_steps, p.shared_noise)))
                for k in tried})
    return rows


def _stepwise(p: Any, posterior: surrogate.Posterior) -> list[dict[str, Any]]:
    """The same of FA-HMC where T counts leapfrog steps; where K divides T, T/K iterations a round."""
    rows = []
    for step in p.step_sizes:
        long = int(np.pi / 3.0 / step) // p.local_steps * p.local_steps
        rows += _best(p, posterior, step, {"algorithm": HMC, "reading": sim.SECTION}, {
            k: surrogate.Chain(posterior.round_map(fs.FAHMC(step, k, p.local_steps // k, p.shared_noise)))
            if p.local_steps % k == 0 else stepwise.StepwiseChain(posterior, step, k, p.local_steps)
            for k in ([long] if step < 0.02 else p.leapfrogs_5)})
    return rows


def _best(p: Any, posterior: surrogate.Posterior, step: float, labels: dict[str, str],
          chains: Mapping[int, surrogate.Averages]) -> list[dict[str, Any]]:
    """A row for the best K, with marginal errors of a chain of the paper's length and of its law."""
    kept = p.iterations // p.local_steps // 2
    errors = {k: float(surrogate.error_of_chain(chain, posterior.target, [kept])[0])
              for k, chain in chains.items() if chain.stable}
    return [labels | {"step_size": step, "K": k, "error": errors[k],
                      "stationary": surrogate.error_of_law(chains[k].law, posterior.target)}
            for k in sorted(errors, key=errors.__getitem__)[:1]]


def draw(tables: Tables) -> Drawing:
    """One panel a size: long chains of the surrogate; and the simulated short ones."""
    sizes = groups(tables["long"], "dim")
    drawing, ((*axes, last),) = plot.panels(len(sizes) + 1, 5.1, 4.6)
    for ax, (dim, long) in zip(axes, sizes, strict=True):
        _draw_long(ax, long)
        facts, count = among(tables["setting"], dim=dim), long["data"].nunique()
        ax.set_title(f"d = {dim}, {'one data set' if count == 1 else f'{count} data sets'}: curvature "
                     f"{facts['smallest'].min():.2g} to {facts['largest'].max():.2g}", fontsize=10)
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for ax in axes for line in ax.lines])
    low, high = float(drawn.min()), 1.4 * float(tables["long"]["error"].max())
    for ax in axes:
        ax.set(yscale="log", ylim=(low * (low / high) ** 0.28, high))  # the numbers stand below all
    logistic.draw_short(last, tables["short"])
    axes[0].set_ylabel("marginal error (ME)")
    plot.legend_for([*axes[::-1], last], 3, **sim.LEGEND)
    return drawing


def _draw_long(ax: Axes, long: pd.DataFrame) -> None:
    """Errors by step size, their median over data sets, and the best K at the foot."""
    place = 0.18
    kinds = {LD: among(long, algorithm=LD), **dict(groups(among(long, algorithm=HMC), "reading"))}
    for name, rows in kinds.items():
        one, colour, marker = rows.groupby("step_size"), plot.COLOUR_OF[name], MARKERS[name]
        sim.draw_spread(ax, one["error"], colour, name if name == LD else f"{HMC}, {name}", marker=marker)
        bias = one["stationary"].median()
        bias = bias[bias > 0.1 * one["error"].median()]
        ax.plot(bias.index, bias, color=colour, linestyle="--", linewidth=1.2, marker=marker, markersize=4,
                markerfacecolor="white", zorder=1.9)
        if name != LD:
            place -= 0.07
            for step, k in groups(rows, "step_size"):
                ax.text(step, place, f"{k['K'].median():.0f}", fontsize=9, ha="center", color=colour,
                        transform=ax.get_xaxis_transform(),
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3})
    ax.plot([], [], color=plot.GREY, label="line: median of data sets", **sim.MARKED)
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.25, linewidth=0, label="band: all data sets")
    ax.plot([], [], color=plot.GREY, linestyle="--", linewidth=1.2, marker="o", markersize=4,
            markerfacecolor="white", label="hollow: bias alone, where above a tenth of the error")
    ax.set(xscale="log", xlabel=r"step size $\eta$ (numbers: the best K of FA-HMC)")


def _errors(tables: Tables, index: str, reading: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of FA-HMC in a reading and of FA-LD: rows by data set or step size, columns by the other."""
    columns = "step_size" if index == "data" else "data"
    hmc, ld = among(tables["long"], algorithm=HMC, reading=reading), among(tables["long"], algorithm=LD)
    hmc, ld = (table.pivot(index=index, columns=columns, values="error")
               for table in (hmc, ld[ld["data"].isin(hmc["data"])]))
    return hmc, ld


def judge_better(tables: Tables, reading: str) -> tuple[str, str]:
    """Is the best FA-HMC better than the best FA-LD?"""
    hmc, ld = (table.min(axis=1) for table in _errors(tables, "data", reading))
    ratio = ld / hmc
    return unanimous(ratio > 1.0), (
        f"The least error of FA-LD is {ratio.min():.2f} to {ratio.max():.2f} times that of FA-HMC (medians "
        f"{ld.median():.3g} and {hmc.median():.3g}); FA-HMC's is the smaller "
        f"{shares(ratio > 1.0)}.")


def judge_small(tables: Tables, reading: str) -> tuple[str, str]:
    """Is FA-HMC at the smallest step size within twice its least error?"""
    hmc, _ = _errors(tables, "data", reading)
    ratio = hmc.iloc[:, 0] / hmc.min(axis=1)
    return unanimous(ratio <= 2.0), (
        f"At eta = {hmc.columns[0]:g} FA-HMC's error is {ratio.min():.1f} to {ratio.max():.1f} times its "
        f"least; within twice {shares(ratio <= 2.0)}.")


def _width(errors: pd.Series, fine: np.ndarray) -> float:
    """Share of the `fine` logarithms of step sizes within twice the least error, by interpolation."""
    stable = np.log(errors.dropna())
    levels = np.interp(fine, np.log(stable.index.to_numpy(float)), stable, right=np.inf)
    return float((levels <= np.log(2.0) + stable.min()).mean())


def judge_wide(tables: Tables, reading: str) -> tuple[str, str]:
    """Width of the good range of step sizes."""
    steps = np.log(tables["long"]["step_size"])
    fine = np.linspace(steps.min(), steps.max(), 2001)
    hmc, ld = (table.apply(_width, fine=fine) for table in _errors(tables, "step_size", reading))
    return unanimous(hmc > ld), (
        "Share of the step sizes tried, on a logarithmic scale, within twice the method's least error: "
        f"{100 * hmc.median():.0f}% for FA-HMC and {100 * ld.median():.0f}% for FA-LD in the median; wider "
        f"for FA-HMC {shares(hmc > ld)}.")


def judge_gap(tables: Tables, reading: str) -> tuple[str, str]:
    """Is the advantage larger for smaller step sizes?"""
    hmc, ld = _errors(tables, "step_size", reading)
    ratio = (ld / hmc).dropna()
    good = ratio.iloc[0] > ratio.iloc[-1]
    return unanimous(good), (
        f"FA-LD's error over FA-HMC's is {ratio.iloc[0].median():.2g} at eta = {ratio.index[0]:g} and "
        f"{ratio.iloc[-1].median():.2g} at {ratio.index[-1]:g} in the median; larger at the smallest "
        f"{shares(good)}.")


_PLACE = "section 5.1, figure 1"
_OURS = ("Expected errors of chains of the paper's length of the Gaussian surrogate, "
         "exactly but for a central limit theorem of their empirical distributions. How far they "
         "stand for the logistic regression is the finding on the surrogate.")
FINE = ("Depends on the eta and K tried, which are not printed; and the paper's difference, around 5%, is "
        "less than the surrogate of ours resolves, a factor of two.")
PAPERS = [
    Unjudged("The best FA-HMC has a smaller marginal error than the best FA-LD at equal communication.",
             _PLACE, FINE, "better"),
    Unjudged("The improvement is around 5%.", "section 5.1, figures 1(a) and 1(b)", FINE, "five"),
    Unjudged("A wide range of step sizes gives FA-HMC a decent performance: it appears to be more robust, "
             "which suggests that it is easier to tune than FA-LD.", _PLACE,
             "Needs the step sizes tried, which are not printed, and what is decent.", "robust"),
    Unjudged("FA-HMC is more advantageous in many dimensions: figure 1(b) against 1(d).", "section 5.1",
             FINE, "dims"),
]


def _findings(name: str, text: str, judge: Callable[..., tuple[str, str]]) -> list[Finding]:
    """A sentence of ours in either reading."""
    return [Finding(f"With the cited data law, {words}, {text}", _PLACE, partial(judge, reading=reading),
                    f"{name}_{reading[-1]}", DATA_SETS, _OURS) for reading, words in sim.READINGS.items()]


SMALL = logistic.sentence(
    "A small step size usually leads to a good performance of FA-HMC.", _PLACE, judge_small, "small",
    "Good is read as within twice the least error of the step sizes tried.")
AT_SMALL = _findings(
    "small_steps", "FA-HMC's marginal error on the Gaussian surrogate is at the smallest step size within "
    "twice its least.", judge_small)
BETTER = _findings("least_error", "the least marginal error of FA-HMC on the Gaussian surrogate, over step "
                   "sizes and K, is below that of FA-LD at equal communication.", judge_better)
WIDE = _findings("wide_range", "the range of step sizes within twice the method's least error on the "
                 "Gaussian surrogate is wider for FA-HMC than for FA-LD, K being the best of those tried.",
                 judge_wide)
GAP = [
    logistic.sentence("The performance gap is larger for smaller step sizes.", "section 5.1, figure 1(d)",
                      judge_gap, "gap", "The gap is read as the ratio of errors, at either end of our grid."),
    *_findings("gap_at_small_steps", "FA-LD's error over FA-HMC's on the Gaussian surrogate is larger at the "
               "smallest step size than at the largest.", judge_gap)]


def _panel(letter: str, title: str, problem: str, cost: dict[str, str], items: list[Parameter],
           sentences: str, more: list[Any]) -> Panel:
    papers = [one for one in PAPERS if one.name in sentences.split()]
    small = SMALL if letter == "a" else replace(SMALL, counted_in="fa_hmc_fig1a")
    return Panel(
        TITLE=f"Marginal error against step size, {title} (Gaussian surrogate)",
        PAPER=f"FA-HMC figure 1({letter})", REPRODUCES=(f"FA-HMC 1({letter})",),
        SHOWS=f"Bayesian logistic regression {problem} on data of the cited law, FA-HMC and FA-LD at equal "
        "communication: chains of the paper's length of its Gaussian surrogate, and short simulated chains.",
        COST={"tiny": "3 s", **cost}, PARAMETERS=items,
        CLAIMS=[*papers, small, *BETTER, *AT_SMALL, *WIDE, *more, logistic.SURROGATE],
        compute=partial(compute, items), draw=draw,
        TOGETHER="" if letter == "d" else "thousand")  # gradient noise changes no round's map


TEN = [Parameter("dim", 10, "paper", "section 5.1: d = 10"),
       Parameter("n_data", 1000, "paper", "section 5.1"),
       Parameter("n_sets", 12, "ours", "data sets of this size, each judged by itself"),
       Parameter("smaller", [], "ours", "further sizes: none")]
FIGURES = {
    "fig1a": _panel("a", "exact gradients", "in 1000 dimensions with exact gradients",
                    {"quick": "15 s", "paper": "about 10 min (estimated)"},
                    _parameters(logistic.THOUSAND, 0.0, ByScale(4, 20, 40)), "better five robust", []),
    "fig1b": _panel("b", "noisy gradients", "in 1000 dimensions with noisy gradients",
                    {"quick": "15 s", "paper": "about 10 min (estimated)"},
                    _parameters(logistic.THOUSAND, 10.0, ByScale(4, 20, 40)), "better five robust", []),
    "fig1d": _panel("d", "ten dimensions", "in ten dimensions with noisy gradients",
                    {"quick": "10 s", "paper": "about 15 min (estimated)"},
                    _parameters(TEN, 10.0, ByScale(4, 10, 40)), "better robust dims", GAP)}
