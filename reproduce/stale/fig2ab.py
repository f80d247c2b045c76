"""Stale gradients figures 2(a) and 2(b) on the Gaussian model: variance with 1 to 9 asynchronous workers
against iterations of a worker and against simulated time.

Figure 2 of the paper is of logistic regression on a cluster; here the model is that of its figure 1, whose
law is exact, and time is simulated.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from theory.rates import fit_rate

from .. import figure as fig, plot
from ..figure import ByScale, Parameter
from ..tables import among, groups, spaced
from ..verdicts import shares, unanimous
from . import shared as sim
from .law import Sums

BURN_IN = 3.0
"""Relaxation times 1/(h a) of one worker after which variances are compared: 5% of a start are left."""
Runs = dict[tuple[int, int], sim.Run]  # by data set and W


def compute_along(axis: str, parameters: list[Parameter], scale: str) -> fig.Tables:
    """Tables: sets, curves (exact, replicas), replicas (at the end), workers, shapes, ratios, judged.

    For every step size "per_worker", with shapes and ratios, or for every cost of updates along "time".
    """
    p = fig.settings(parameters, scale)
    problems, parts = sim.data_sets(p), []
    settings = ([(ha, p.update_cost) for ha in p.steps] if axis == "per_worker" else
                [(p.step, cost) for cost in p.update_costs])
    for stream, (ha, cost) in enumerate(settings):
        fig.note(f"exact laws, h a = {ha:g}, u = {cost:g}")
        server = sim.Server(p, problems, ha, cost)
        runs = {(k, n): server.run(k, n, n * p.per_worker) for k in range(p.n_data_sets) for n in p.workers}
        parts.append(_curves(server, runs, stream) | {"workers": _workers(server, runs)}
                     | (_shapes(server, runs) if axis == "per_worker" else {})
                     | {"judged": _compared(server, runs, axis)})
    return {"sets": sim.sets_table(problems)} | {
        name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]}


def _curves(server: sim.Server, runs: Runs, stream: int) -> fig.Tables:
    """Errors of the typical data set by exact law and replicas, for every W; scores of the latter at the end.

    `stream` tells apart the random numbers of several calls.
    """
    p, k, curves, ends = server.p, sim.typical(server.problems), [], []
    for n in p.workers:
        algorithm, law, history = runs[k, n]
        lengths, labels = spaced(int(law.lengths[-1])), server.labels | {"workers": n}
        averages = sim.running_averages(server.problems[k], algorithm, lengths, p.n_replicas,
                                        p.seed + n + 100 * stream)
        ends.append(labels | sim.scores(averages[:, -1], law))
        curves += [table.assign(per_worker=lengths / n, time=history.times[lengths - 1])
                   for table in (sim.exact_rows(law, lengths, **labels),
                                 sim.replica_rows(averages, lengths, law.truth, **labels))]
    return {"curves": pd.concat(curves).fillna(0.0), "replicas": pd.DataFrame(ends)}  # exact: no interval


def _workers(server: sim.Server, runs: Runs) -> pd.DataFrame:
    """Ages and throughput of every run."""
    return pd.DataFrame([
        {**server.labels, "data_set": k, "workers": n, "iteration": len(history.times),
         "mean_age": float(history.ages.mean()), "largest_age": int(history.ages.max()),
         "throughput": len(history.times) / float(history.times[-1])}
        for (k, n), (_, _, history) in runs.items()])


def _compared(server: sim.Server, runs: Runs, axis: str) -> pd.DataFrame:
    """Exact variances of all W at 12 equal places of an axis, for every data set.

    From `BURN_IN` to the last place that all reach; interpolated in logarithms.
    """
    parts = []
    for k in range(len(server.problems)):
        places = {n: runs[k, n].law.lengths / n if axis == "per_worker" else runs[k, n].history.times
                  for n in server.p.workers}
        first = float(places[server.p.workers[0]][round(BURN_IN / server.ha) - 1])
        grid = np.geomspace(first, min(place[-1] for place in places.values()), 12)
        for n, place in places.items():
            values = np.exp(np.interp(np.log(grid), np.log(place), np.log(runs[k, n].law.variance)))
            parts.append(pd.DataFrame({**server.labels, "data_set": k, "workers": n, axis: grid,
                                       "variance": values}))
    return pd.concat(parts)


def _shapes(server: sim.Server, runs: Runs) -> fig.Tables:
    """Theorem 4's shape 1/(L h) + h^2 with the least constant that covers one worker's exact curve.

    One worker is followed up to the L that the most workers reach together, so that `ratio`, the largest
    exact variance over that shape, tells what staleness adds. The shapes are those of the typical data
    set with the fewest and the most workers, the ratios those of all.
    """
    ha, problems = server.ha, server.problems
    h, few, most = ha / problems[0].curvature, min(server.p.workers), max(server.p.workers)
    fresh, shapes, ratios = Sums.of(ha, np.zeros_like(runs[0, most].history.ages)), [], []
    for (k, n), (_, law, _) in runs.items():
        single = fresh.law(problems[k], h)
        constant = fit_rate(single.lengths, 1.0 / (single.lengths * h) + h**2, single.variance).constant
        shape = constant * (1.0 / (law.lengths * h) + h**2)
        ratios.append({"ha": ha, "data_set": k, "workers": n, "ratio": float((law.variance / shape).max())})
        if k == sim.typical(problems) and n in (few, most):
            lengths = spaced(int(law.lengths[-1]))
            shapes.append(pd.DataFrame({"ha": ha, "workers": n, "per_worker": lengths / n,
                                        "constant": constant, "shape": shape[lengths - 1]}))
    return {"shapes": pd.concat(shapes), "ratios": pd.DataFrame(ratios)}


def _falls(judged: pd.DataFrame, axis: str) -> np.ndarray:
    """For each data set: is the variance the smaller the more workers, at all places?"""
    wide = judged.pivot(index=["data_set", axis], columns="workers", values="variance").sort_index(axis=1)
    return (wide.diff(axis=1).iloc[:, 1:] < 0.0).all(axis=1).groupby("data_set").all().to_numpy()


def _gains(judged: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Variance of one worker over that of W at the last place, by data set and W."""
    last = judged[judged[axis] == judged.groupby("data_set")[axis].transform("max")]
    wide = sim.by_set(last, "variance", "workers")
    return wide.rdiv(wide.iloc[:, 0], axis=0)


def _draw_gains(ax: Axes, judged: pd.DataFrame, axis: str, by: str, label: str, title: str) -> None:
    """Gains of W workers for each of several settings, beside W."""
    for (value, one), line, grey in zip(groups(judged, by), ("-", "--"), sim.GREYS, strict=False):
        sim.draw_sets(ax, _gains(one, axis), grey, f"exact law, {label} = {value:g}: {sim.EACH}", line)
    sim.linear_band(ax, sorted(set(judged["workers"])))
    ax.set(ylabel="Var with one worker / Var with W", title=title)
    plot.legend_below(ax)


def _draw_a(tables: fig.Tables) -> fig.Drawing:
    """One panel a step size, and the gain of W workers on all data sets."""
    steps = groups(tables["curves"], "ha")
    drawing, (axes,) = plot.panels(len(steps) + 1, 5.2, 5.6)
    for ax, (ha, curves) in zip(axes, steps, strict=False):
        exact = among(curves, kind="exact")["variance"]
        sim.draw_runs(ax, curves, "workers", "per_worker", "variance", "exact law, W = {}",
                      xlabel=sim.ITERATIONS_PER_WORKER, title=f"a typical data set, $ha$ = {ha:g}",
                      ylim=(0.5 * exact.min(), 2.0 * exact.max()))
        counts = list(curves["workers"].unique())
        for n, shape in groups(among(tables["shapes"], ha=ha), "workers"):
            sim.shape(ax, shape["per_worker"], shape["shape"],
                      f"Theorem 4's shape, fitted to W = {counts[0]}", dict(plot.shaded(counts))[n])
        plot.legend_below(ax, 2)
    _draw_gains(axes[-1], tables["judged"], "per_worker", "ha", "$ha$", "all data sets, at the end")
    return drawing


def _draw_b(tables: fig.Tables) -> fig.Drawing:
    """One panel a cost of updates; the gain on all data sets; what the server gets done."""
    drawing, (above, (left, right)) = plot.panels(2, 5.8, 5.0, n_rows=2)
    for ax, (cost, curves) in zip(above, groups(tables["curves"], "update_cost"), strict=True):
        words = f"an update costs u = {cost:g}" if cost else "updates cost nothing"
        sim.draw_runs(ax, curves, "workers", "time", "variance", "exact law, W = {}",
                      xlabel=sim.SIMULATED_TIME, title=f"a typical data set: {words}")
        plot.legend_below(ax, 3)
    _draw_gains(left, tables["judged"], "time", "update_cost", "u",
                "all data sets, at the last time of all W")
    _draw_throughput(right, tables["workers"])
    return drawing


def _draw_throughput(ax: Axes, workers: pd.DataFrame) -> None:
    for (cost, one), line, grey in zip(groups(workers, "update_cost"), ("-", "--"), sim.GREYS, strict=False):
        each = one.groupby("workers")["throughput"].agg(["min", "median", "max"])
        ax.errorbar(each.index, each["median"], [each["median"] - each["min"], each["max"] - each["median"]],
                    color=grey, linestyle=line, marker="o", markersize=4, capsize=3,
                    label=f"u = {cost:g}: median and range of all schedules")
        if cost > 0.0:
            ax.axhline(1.0 / cost, color=grey, linestyle=":", linewidth=1.1,
                       label=f"limit 1/u = {1.0 / cost:g} of the server")
    ax.set(xlabel="workers W", ylabel="updates per mean service time", title="what the server gets done",
           xticks=sorted(set(workers["workers"])), ylim=(0.0, None))
    plot.legend_below(ax)


def judge_iterations(tables: fig.Tables, place: int) -> tuple[str, str]:
    """Is the exact variance smaller with more workers, at the first or last step size?"""
    ha, judged = groups(tables["judged"], "ha")[place]
    good, gains = _falls(judged, "per_worker"), _gains(judged, "per_worker")
    most = gains.columns[-1]
    return unanimous(good), (
        f"At h a = {ha:g} the exact variance falls with W at each of 12 numbers of iterations per worker, "
        f"{sim.span(judged['per_worker'], 0)}, {shares(good)}. At the last one W = {most} gains a factor of "
        f"{sim.span(gains[most])} over one worker.")


def judge_constant(tables: fig.Tables) -> tuple[str, str]:
    """Does the least constant that covers one worker cover all, to the tolerance of linear speedups?"""
    worst = tables["ratios"].groupby(["ha", "data_set"], sort=False)["ratio"].max().unstack("ha")
    good = (worst <= 1.0 + sim.LINEAR).all(axis=1).to_numpy()
    return unanimous(good), (
        "By more workers the least D that covers one worker's exact curve up to the same L is exceeded "
        + " and ".join(f"{sim.span(one)} times at h a = {ha:g}" for ha, one in worst.items())
        + f"; at most {1.0 + sim.LINEAR:g} times {shares(good)}.")


def judge_time(tables: fig.Tables) -> tuple[str, str]:
    """In simulated time, for both costs."""
    parts = groups(tables["judged"], "update_cost")
    good = np.all([_falls(one, "time") for _, one in parts], axis=0)
    gains = {cost: _gains(one, "time").iloc[:, -1] for cost, one in parts}
    return unanimous(good), (
        f"The exact variance falls with W at each of 12 simulated times, at both costs, {shares(good)}. At "
        "the last time of all it is " + " and ".join(
            f"{sim.span(gain)} times smaller with W = {gain.name} at u = {cost:g}"
            for cost, gain in gains.items()) + ".")


def judge_saturation(tables: fig.Tables) -> tuple[str, str]:
    """Throughput of the most workers against 1/u and W."""
    n = int(tables["workers"]["workers"].max())
    wide = sim.by_set(among(tables["workers"], workers=n), "throughput", "update_cost")
    free, costly, cost = wide.iloc[:, 0], wide.iloc[:, -1], float(wide.columns[-1])
    good = ((costly * cost >= 1.0 - sim.LINEAR) & (free >= (1.0 - sim.LINEAR) * n)).to_numpy()
    return unanimous(good), (
        f"With W = {n} the server makes {sim.span(costly)} updates per unit of time at u = {cost:g}, where "
        f"1/u = {1.0 / cost:g}, and {sim.span(free)} without the cost; both within 20 percent of 1/u and of "
        f"W {shares(good, 'schedules')}.")


UPDATE_COST = "time of an update at the server, in mean service times"
PARAMETERS_A = [
    *sim.WITH_WORKERS,
    Parameter("steps", [0.02, 0.1], "ours", "h a, step size times curvature: figure 2's is not printed"),
    Parameter("update_cost", 0.2, "ours", UPDATE_COST),
    Parameter("per_worker", ByScale(300, 600, 2000), "ours", "iterations per worker, 12 or 60 times 1/(h a)")]
PARAMETERS_B = [
    *sim.WITH_WORKERS,
    Parameter("step", 0.02, "ours", "h a, step size times curvature: figure 2's is not printed"),
    Parameter("update_costs", [0.0, 0.2], "ours", f"{UPDATE_COST}: a declared model in place of the paper's "
              "cluster; 0.2 lets the server saturate at 5 per unit"),
    Parameter("per_worker", ByScale(300, 600, 2000), "ours", "iterations per worker")]
ELSEWHERE = "The paper says it of logistic regression on a9a: see stale_fig2_logistic."
CLAIMS_A = [
    fig.Finding("On the Gaussian model the variance drops faster, per iteration of a worker, with more "
                "workers, at a small step size.", "section 5.1, figure 2(a)",
                partial(judge_iterations, place=0), "faster", fig.DATA_SETS, ELSEWHERE),
    fig.Finding("It does so at a large step size, too.", "section 5.1, figure 2(a)",
                partial(judge_iterations, place=-1), "faster_large", fig.DATA_SETS,
                "Both step sizes are ours. Staleness matters the less the further the posterior's mean is "
                "from zero, where theta^2 is nearly linear."),
    fig.Finding("The least constant D of Theorem 4, which is free of tau, that covers one worker covers nine "
                "as well, to 20 percent.", "theorem 4", judge_constant, "one_constant", fig.DATA_SETS,
                "A larger D would serve all of these; see stale_speedup_limit."),
    sim.replicas_follow()]
CLAIMS_B = [
    fig.Finding("On the Gaussian model the variance drops faster in simulated time with more workers.",
                "section 5.1, figure 2(b)", judge_time, "faster", fig.DATA_SETS, ELSEWHERE),
    fig.Unjudged("The running times shown, in seconds.", "section 5.1, figure 2(b)",
                 "They are those of five machines with MPI; neither service nor communication times are "
                 "printed.", "seconds"),
    fig.Finding("With a cost u of updates the server saturates at 1/u updates per unit of time; without it "
                "nine workers make nine times the updates of one.", "figure 2(b)", judge_saturation,
                "saturation", fig.DATA_SETS, "Ages are about W - 1 either way: latency changes the time of "
                "updates and not how old gradients are. Service times are drawn anew for each of the "
                "schedules."),
    sim.replicas_follow()]


FIGURES = {
    "fig2a": fig.Panel(
        TITLE="Variance against iterations per worker, on the Gaussian model",
        PAPER="Stale gradients figure 2(a)", REPRODUCES=("Stale 2(a)",),
        SHOWS="Variance of the average of theta^2 with 1 to 9 asynchronous workers, at a small and at a "
              "large step size: exact law and replicas of a typical data set, with Theorem 4's shape fitted "
              "to one worker; what the workers gain on all data sets. The paper's model is in "
              "stale_fig2_logistic.",
        COST={"tiny": "2 s", "quick": "4 s", "paper": "about 2 min (estimated)"},
        PARAMETERS=PARAMETERS_A, CLAIMS=CLAIMS_A, draw=_draw_a,
        compute=partial(compute_along, "per_worker", PARAMETERS_A)),
    "fig2b": fig.Panel(
        TITLE="Variance against simulated time, on the Gaussian model",
        PAPER="Stale gradients figure 2(b)", REPRODUCES=("Stale 2(b)",),
        SHOWS="Variance of the average of theta^2 against simulated time with 1 to 9 asynchronous workers, "
              "without and with a cost of updates at the server: exact law and replicas of a typical data "
              "set; what the workers gain on all data sets, and updates per unit of time. The paper's model "
              "is in stale_fig2_logistic.",
        COST={"tiny": "4 s", "quick": "6 s", "paper": "about 1 min (estimated)"},
        PARAMETERS=PARAMETERS_B, CLAIMS=CLAIMS_B, draw=_draw_b,
        compute=partial(compute_along, "time", PARAMETERS_B))}
