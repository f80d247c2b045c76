"""Stale gradients figures 3 and 4, a9a: test loss with 1 to 9 workers of one server against iterations and
time, and with 1 to 7 servers of 2 workers each against iterations."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .. import figure as fig, plot
from ..data_files import Files
from ..figure import ByScale, Parameter
from ..tables import among, spaced
from . import adult, logistic as blr, logistic_figure as shown, network_figure, shared as sim

PARAMETERS_3 = [*adult.PARAMETERS, sim.WORKERS, *blr.DYNAMICS,
                *blr.lengths_of(ByScale(20, 400, 400), ByScale(4, 8, 4)), *network_figure.PARAMETERS]
PARAMETERS_4 = [*adult.PARAMETERS, blr.SERVERS, *blr.DYNAMICS,
                Parameter("workers_per_server", 2, "paper", "section 5.2.2: 2 workers a server"),
                *blr.lengths_of(ByScale(20, 400, 400), ByScale(4, 8, 4))]


def compute_3(scale: str, files: Files | None = None) -> fig.Tables:
    """Tables: data, setting, posterior, curves, ends (losses of every data set), and maybe network."""
    p = fig.settings(PARAMETERS_3, scale)
    cases = blr.cases(p, files)
    groups = {n: [blr.servers(case, n) for case in cases] for n in p.workers}
    curves, ends = blr.against_both(p, groups, lambda n, axis: {"workers": n})
    return (blr.common_tables(cases, p.workers) | {"curves": pd.concat(curves), "ends": ends}
            | network_figure.tables(p))


def compute_4(scale: str, files: Files | None = None) -> fig.Tables:
    """Tables: data, setting, posterior, curves, gains (over one server), variances (at the end)."""
    p = fig.settings(PARAMETERS_4, scale)
    cases, x = blr.cases(p, files), spaced(p.iterations, 40)
    groups = [blr.servers(case, p.workers_per_server, max(p.servers)) for case in cases]
    return blr.common_tables(cases, [p.workers_per_server]) | {
        "curves": pd.concat(blr.curve(groups, x, "iterations", n, servers=n) for n in p.servers),
        "gains": pd.concat(blr.gain(groups, n, x, "iterations") for n in p.servers[1:]),
        "ends": blr.losses_at(groups, p.iterations, "iterations"),
        "variances": pd.DataFrame([{"data_set": number, "servers": n, **_variances(group, n, p.iterations)}
                                   for number, group in enumerate(groups) for n in p.servers])}


def _variances(group: blr.Group, n_servers: int, iterations: int) -> dict[str, float]:
    """Variance between chains of the average of the first servers, and of single ones, all pooled."""
    several = blr.averages_at(group[:n_servers], iterations, "iterations").var(ddof=1)
    single = [blr.averages_at([one], iterations, "iterations").var(ddof=1) for one in group]
    return {"variance": float(several), "single": float(np.mean(single))}


def draw_3(tables: fig.Tables) -> fig.Drawing:
    """Against iterations per worker; against simulated time; what chains differ by; maybe a network."""
    has_network = "network" in tables
    drawing, axes = plot.panels(2, 6.2, 5.2, n_rows=2) if has_network else plot.panels(3, 5.1, 5.2)
    first, second, third, *more = axes.ravel()
    for ax in more:
        network_figure.draw(ax, tables["network"])
        plot.legend_below(ax)
    for ax, axis, label, title in (
            (first, "iterations", sim.ITERATIONS_PER_WORKER, "loss against iterations"),
            (second, "time", sim.SIMULATED_TIME, "loss against simulated time")):
        shown.draw_losses(ax, among(tables["curves"], axis=axis), "workers", "W", tables)
        ax.set(xlabel=label, title=title)
        plot.legend_below(ax, 3)
    _draw_distances(third, tables)
    plot.legend_below(third)
    shown.headline(drawing, f"{adult.data_text(tables['data'])}. {shown.NO_LAW}", f"{shown.BAND}.",
                   f"Stale SGHMC from the origin; h, B, J and service times are ours. {shown.NO_NETWORKS}")
    return drawing


def _draw_distances(ax: Axes, tables: fig.Tables) -> None:
    """Distance to the posterior's loss and spread of single chains, for the fewest and most workers."""
    level = float(tables["posterior"]["loss"].median())
    curves = shown.looks(among(tables["curves"], axis="iterations"), "workers")
    for n, one, look in (curves[0], curves[-1]):
        ax.plot(one["x"], (one["loss"] - level).abs(), color=look["color"],
                label=f"W = {n}: median loss, distance from the posterior's")
        ax.plot(one["x"], one["spread"], color=look["color"], linestyle=(0, (1.2, 1.2)),
                label=f"W = {n}: standard deviation of single chains")
    ax.set(xscale="log", yscale="log", xlabel=sim.ITERATIONS_PER_WORKER, ylabel="part of the loss",
           title="distance and spread")


def draw_4(tables: fig.Tables) -> fig.Drawing:
    """Mean loss; what more servers change in it; spread of single runs."""
    drawing, ((first, second, third),) = plot.panels(3, 5.1, 5.2)
    shown.draw_losses(first, among(tables["curves"], servers=1), "servers", "S", tables)
    first.set(title="loss of one server")
    shown.draw_gains(second, tables["gains"])
    second.set(title="S servers against one (99% intervals)")
    _draw_spread(third, tables["curves"])
    for ax in (first, second, third):
        ax.set(xlabel=sim.ITERATIONS_PER_WORKER)
        plot.legend_below(ax, 2)
    shown.headline(drawing, f"{adult.data_text(tables['data'])}. {shown.NO_LAW}", f"{shown.BAND}.",
                   "Stale SGHMC from the origin, 2 workers a server; h, B, J, service times: ours. "
                   f"{shown.NO_NETWORKS}")
    return drawing


def _draw_spread(ax: Axes, curves: pd.DataFrame) -> None:
    """Spread for each number of servers, and what independent servers would have."""
    single = among(curves, servers=1)
    for n, one, look in shown.looks(curves, "servers"):
        ax.plot(one["x"], one["spread"], linewidth=1.6, label=f"S = {n}", **look)
        if n > 1:
            ax.plot(single["x"], single["spread"] / np.sqrt(n), color=plot.GREY, linewidth=0.9,
                    label=r"that of S = 1 over $\sqrt{S}$" if n == curves["servers"].max() else None)
    ax.set(xscale="log", yscale="log", ylabel="standard deviation of single runs",
           title="spread (median of the data sets)")


def losses(tables: fig.Tables, axis: str, last: bool = True, value: str = "loss") -> np.ndarray:
    """A column of `ends` (data sets, numbers of workers) at the last place of an axis, or else the first."""
    table = among(tables["ends"], axis=axis)
    return shown.by_set(among(table, x=table["x"].max() if last else table["x"].min()), value, "workers")


def judge_slope(tables: fig.Tables, axis: str) -> tuple[str, str]:
    """Does the mean loss fall with the logarithm of W?

    At equal iterations per worker, after a tenth of them and at the end; or at the end of simulated time.
    """
    places, unit = {"iterations": ((False, True), "iterations per worker"),
                    "time": ((True,), "units of simulated time")}[axis]
    counts = np.array(sorted(tables["ends"]["workers"].unique()))
    at = [losses(tables, axis, last) for last in places]
    fall = np.stack([-np.polyfit(np.log2(counts), one.T, 1)[0] for one in at], axis=1)
    verdict, low, high = shown.all_positive(fall)
    x = among(tables["ends"], axis=axis)["x"].max()
    words = ", ".join(f"{value:.4f} (W = {n})" for n, value in zip(counts, at[-1].mean(axis=0), strict=True))
    return verdict, (
        f"Mean loss at {x:.0f} {unit}: {words}; by the line in log W, twice the workers lower it by "
        f"{' and '.join(shown.means(fall))}.{shown.undecided(verdict, low, high)}")


def judge_reason(tables: fig.Tables) -> tuple[str, str]:
    """Is the slow curve of one worker what single runs show by chance?"""
    ends, spread = losses(tables, "iterations"), losses(tables, "iterations", value="spread")[:, 0]
    gap = ends[:, 0] - ends[:, -1]
    verdict, low, high = shown.all_positive((shown.SEEN * spread - gap)[:, None])
    words = {fig.PASS: "chance explains it", fig.NOT_TESTABLE: "that is undecided",
             fig.FAIL: "it is a gap in the mean, the transient of a chain with fewer updates"}[verdict]
    return verdict, (f"With the fewest workers the loss ends above that with the most by {gap.mean():.4f}, "
                     f"and single runs differ by {spread.mean():.4f} (standard deviation); {shown.SEEN:g} of "
                     f"those less the gap are {low[0]:.4f} to {high[0]:.4f}: {words}."
                     + shown.undecided(verdict, low, high))


def judge_spread(tables: fig.Tables) -> tuple[str, str]:
    """Does a single chain come closer to its expectation with more workers?"""
    spread = losses(tables, "iterations", value="spread")
    verdict, low, high = shown.all_positive(np.log(spread[:, :1] / spread[:, -1:]))
    return verdict, (f"Standard deviation of single chains at the end: {spread[:, 0].mean():.4f} with the "
                     f"fewest workers, {spread[:, -1].mean():.4f} with the most; their ratio is "
                     f"{np.exp(low[0]):.2f} to {np.exp(high[0]):.2f}.{shown.undecided(verdict, low, high)}")


def judge_small(tables: fig.Tables) -> tuple[str, str]:
    """Is the spread of single runs small against the fall of the loss?"""
    ends = tables["ends"]
    fall, spread = np.log(2.0) - ends["loss"].to_numpy(), ends["spread"].to_numpy()
    verdict, low, high = shown.all_positive((shown.NEAR * fall - shown.SEEN * spread)[:, None])
    return verdict, (
        f"In {ends['x'].iloc[0]:.0f} iterations per worker one server's mean loss falls by "
        f"{fall.mean():.4f}, and single runs differ by {spread.mean():.4f} (standard deviation); "
        f"{shown.NEAR:g} of the fall less {shown.SEEN:g} of those is {low[0]:.4f} to {high[0]:.4f}."
        + shown.undecided(verdict, low, high))


def judge_variance(tables: fig.Tables) -> tuple[str, str]:
    """Is the variance of several servers lower?"""
    table = tables["variances"].query("servers > 1")
    several, single = (shown.by_set(table, name, "servers") for name in ("variance", "single"))
    verdict, low, high = shown.all_positive(1.0 - several / single.mean())
    each = zip(sorted(table["servers"].unique()), several.mean(axis=0) / single.mean(axis=0), low, high,
               strict=True)
    return verdict, "Variance over that of a single server, pooled over the servers: " + ", ".join(
        f"{share:.3f} ({1.0 - b:.3f} to {1.0 - a:.3f}; 1/S is {1.0 / n:.3f}) for S = {n}"
        for n, share, a, b in each) + "."


CLAIMS_3 = [
    *shown.on_a9a("Generally the loss decreases faster with more workers, against iterations per worker.",
                  "section 5.2.1", partial(judge_slope, axis="iterations"), "faster"),
    *shown.on_a9a("Generally the loss decreases faster with more workers, against time.", "section 5.2.1",
                  partial(judge_slope, axis="time"), "in_time",
                  "The clock is simulated, with an update cost of our choice."),
    *shown.on_a9a("With one worker the loss decreases much more slowly because of high estimation variance.",
                  "section 5.2.1", judge_reason, "reason", f"Read: the gap is within {shown.SEEN:g} standard "
                  "deviations of single runs. The start, the step size and the length of the runs are ours. "
                  "The paper adds that in theory one worker has the same level of bias."),
    *shown.on_a9a("A single run converges faster to its expectation with more workers.", "section 5.2",
                  judge_spread, "spread", "From a common start chains first have to move apart, and those "
                  "with more updates have moved further; figure 2 has the variance from draws near the "
                  "posterior."),
    *network_figure.CLAIMS,
    shown.networks("MNIST and CIFAR-10: the loss decreases faster with more workers.", "section 5.2.1")]
CLAIMS_4 = [
    shown.no_speedup("On the logistic regression several servers show no significant speedup.",
                     "section 5.2.2"),
    *shown.on_a9a("The reason is probably that the sample variance is too small for several servers to take "
                  "effect.", "section 5.2.2", judge_small, "small_variance", f"Read: {shown.SEEN:g} standard "
                  f"deviations of single runs of one server are less than {shown.NEAR:g} of the fall of its "
                  "loss.", ours="Single runs of one server differ by little against the fall of the loss."),
    fig.Finding("The average of several servers has a smaller variance than that of one.", "Theorem 7",
                judge_variance, "variance", fig.REPLICAS, "Theorem 7 is an upper bound; its leading term "
                "1/T, as its proof has it, falls like 1/S, as the variance of independent equal servers "
                f"does. {shown.ON_SETS}"),
    shown.more_servers("MNIST and CIFAR-10: with more servers the loss decreases faster.", "section 5.2.2")]
FIGURES = {
    "fig3_logistic": fig.Panel(
        TITLE="Test loss of stale SGHMC against iterations and time, 1 to 9 workers (a9a)",
        PAPER="Stale gradients figure 3 (a9a alone)", REPRODUCES=("Stale 3",), DATA=adult.DATA,
        SHOWS="Bayesian logistic regression with one server: the test loss averaged along the chain for 1 to "
              "9 workers, at equal iterations per worker and at equal simulated time, and what single chains "
              "differ by; at the paper scale also where a small network on digits ends.",
        COST={"tiny": "2 s", "quick": "20 s (on a busy machine)",
              "paper": "about 14 min (estimated), 4 of them for the network"},
        PARAMETERS=PARAMETERS_3, CLAIMS=CLAIMS_3, compute=compute_3, draw=draw_3),
    "fig4_logistic": fig.Panel(
        TITLE="Test loss of stale SGHMC against iterations, 1 to 7 servers (a9a)",
        PAPER="Stale gradients figure 4 (a9a alone)", REPRODUCES=("Stale 4",), DATA=adult.DATA,
        SHOWS="Bayesian logistic regression with 1 to 7 servers of 2 workers: the averaged test loss, its "
              "difference to that of one server, and the spread of single runs.",
        COST={"tiny": "2 s", "quick": "14 s (on a busy machine)", "paper": "about 7 min (estimated)"},
        PARAMETERS=PARAMETERS_4, CLAIMS=CLAIMS_4, compute=compute_4, draw=draw_4)}
