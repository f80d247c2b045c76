"""Stale gradients figure 2(c): iteration and time speedup against workers, on the Gaussian model."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from theory.stale import first_reaching

from .. import figure as fig, plot
from ..tables import groups, spaced
from ..verdicts import shares, unanimous
from . import shared as sim

TITLE = "Speedup at equal variance against workers, on the Gaussian model"
PAPER = "Stale gradients figure 2(c)"
REPRODUCES = ("Stale 2(c)",)
SHOWS = ("Iteration speedup at three step sizes, and time speedup in simulated time with three costs of an "
         "update at the server: exact law of all data sets, replicas of a typical one. The paper's model is "
         "in stale_fig2_logistic.")
COST = {"tiny": "2 s", "quick": "5 s", "paper": "about 3 min (estimated)"}
PARAMETERS = [
    *sim.WITH_WORKERS,
    fig.Parameter("steps", [0.02, 0.05, 0.1], "ours", "h a, step size times curvature: not printed"),
    fig.Parameter("update_costs", [0.0, 0.1, 0.2], "ours", "time of an update at the server, in mean service "
                  "times, for the first step size; the iteration speedup is shown without it"),
    fig.Parameter("times", fig.ByScale(8.0, 12.0, 30.0), "ours",
                  "the precision is what one worker reaches after this many relaxation times 1/(h a)")]


def compute(scale: str) -> fig.Tables:
    """Tables: sets, speedups (exact, by step size), replicas, times (exact, by cost of an update)."""
    p = fig.settings(PARAMETERS, scale)
    problems = sim.data_sets(p)
    by_step = [_speedups(sim.Server(p, problems, ha, p.update_costs[0]), stream)
               for stream, ha in enumerate(p.steps)]
    by_cost = [_speedups(sim.Server(p, problems, p.steps[0], cost))[0] for cost in p.update_costs[1:]]
    speedups, replicas = (pd.DataFrame(list(chain(*rows))) for rows in zip(*by_step, strict=True))
    return {"sets": sim.sets_table(problems), "speedups": speedups, "replicas": replicas,
            "times": pd.DataFrame(list(chain(by_step[0][0], *by_cost)))}


def _reach(server: sim.Server, k: int, n_workers: int, goal: float, length: int) -> tuple[sim.Run, int]:
    """The run up to where its exact variance falls to `goal`, and that L."""
    for _ in range(6):
        run = server.run(k, n_workers, length)
        reached = first_reaching(run.law.lengths, run.law.variance, goal)
        if reached is not None:
            return run, reached
        length = 3 * length // 2
    raise ValueError(f"goal={goal!r} is not reached within {2 * length // 3} iterations")


def _speedups(server: sim.Server, stream: int | None = None) -> tuple[list[dict[str, Any]], ...]:
    """Iteration and time speedup of every W at the variance that one worker has after `p.times`.

    Rows of every data set; and of the typical one by replicas, given the `stream` of their random numbers.
    """
    p, rows, replicas = server.p, [], []
    single_length = round(p.times / server.ha)
    for k in range(len(server.problems)):
        fig.note(f"exact speedups of data set {k}, h a = {server.ha:g}, u = {server.update_cost:g}")
        single = server.run(k, 1, single_length)
        goal, single_time = float(single.law.variance[-1]), float(single.history.times[-1])
        for n in p.workers:
            run, length = (single, single_length) if n == 1 else (
                _reach(server, k, n, goal, int(1.1 * n * single_length)))
            time = float(run.history.times[length - 1])
            rows.append({**server.labels, "data_set": k, "workers": n, "variance": goal, "iteration": length,
                         "iteration_speedup": single_length * n / length, "time": time,
                         "time_speedup": single_time / time})
            if stream is not None and k == sim.typical(server.problems):
                replicas.append(rows[-1] | _by_replicas(server, k, run, length, single_length * n,
                                                        p.seed + n + 100 * stream))
    return rows, replicas


def _by_replicas(server: sim.Server, k: int, run: sim.Run, length: int, single: int,
                 seed: int) -> dict[str, float]:
    """Iteration speedup read off the replicas' variance and the ends of its band; scores at the exact L."""
    lengths = np.union1d(spaced(3 * length // 2, 120, max(1, length // 20)), [length])
    averages = sim.running_averages(server.problems[k], run.algorithm, lengths, server.p.n_replicas, seed)
    errors, goal = sim.replica_rows(averages, lengths, run.law.truth), float(run.law.variance[length - 1])
    speedup = {name: single / _reaching(lengths, errors[column].to_numpy(), goal) for name, column in
               (("replicas", "variance"), ("replicas_low", "variance_high"),
                ("replicas_high", "variance_low"))}
    return speedup | sim.scores(averages[:, np.searchsorted(lengths, length)], run.law, length)


def _reaching(lengths: np.ndarray, values: np.ndarray, precision: float) -> float:
    """Where a curve first falls to `precision`, between the lengths; infinite if nowhere."""
    below = np.flatnonzero(values <= precision)
    if not len(below):
        return float("inf")
    ends = slice(max(below[0] - 1, 0), below[0] + 1)
    return float(np.exp(np.interp(-np.log(precision), -np.log(values[ends]), np.log(lengths[ends]))))


def draw(tables: fig.Tables) -> fig.Drawing:
    """Iteration speedup, time speedup."""
    drawing, ((left, right),) = plot.panels(2, 5.8, 6.2)
    times = tables["times"]
    for ax, table, by, symbol, kind, colours, title in (
            (left, tables["speedups"], "ha", "$ha$", "iteration", (),
             "iteration speedup, updates cost nothing"),
            (right, times, "update_cost", "u", "time", sim.GREYS,
             f"simulated time, $ha$ = {times['ha'].iloc[0]:g}")):
        several = groups(table, by)
        for (value, one), colour in zip(several, colours or plot.shades(len(several)), strict=False):
            sim.draw_sets(ax, sim.by_set(one, f"{kind}_speedup", "workers"), colour,
                          f"exact law, {symbol} = {value:g}: {sim.EACH}")
        counts = list(table["workers"].unique())
        ax.plot(counts, counts, color=plot.GREY, linewidth=1.0, linestyle="--", label="linear speedup, W")
        sim.linear_band(ax, counts)
        ax.set(ylabel=f"{kind} speedup at equal variance", title=title,
               ylim=(0.0, (1.0 + 1.5 * sim.LINEAR) * max(counts)))
    simulated = plot.shaded(groups(tables["replicas"], "ha"))
    for ((ha, one), colour), shift in zip(simulated, (-0.12, 0.0, 0.12), strict=False):
        reached = one.query("replicas_low + replicas_high < inf")
        sim.draw_replicas(left, reached["workers"] + shift, reached, "replicas", colour,
                          f"typical data set, {plot.BAND}, $ha$ = {ha:g}")
    for cost, grey in zip(times["update_cost"].unique()[1:], sim.GREYS[1:], strict=True):
        right.axhline(1.0 + 1.0 / cost, color=grey, linestyle=":", linewidth=1.1,
                      label=f"limit 1 + 1/u = {1.0 + 1.0 / cost:g}")
    for ax in (left, right):
        plot.legend_below(ax)
    return drawing


def judge_linear(tables: fig.Tables, place: int) -> tuple[str, str]:
    """Is the exact iteration speedup within 20% of W, at the first or last step size?"""
    ha, table = groups(tables["speedups"], "ha")[place]
    speedups = sim.by_set(table, "iteration_speedup", "workers")
    off = np.abs(speedups.to_numpy() / speedups.columns.to_numpy(dtype=float) - 1.0)
    good = (off <= sim.LINEAR).all(axis=1)
    most = speedups.columns[-1]
    return unanimous(good), (
        f"Exact iteration speedups at h a = {ha:g}, medians of the data sets: "
        + ", ".join(f"{value:.2f} (W = {n})" for n, value in speedups.median().items())
        + f"; with W = {most} from {sim.span(speedups[most])}. Within 20 percent of W at all W "
        f"{shares(good)}.")


def judge_latency(tables: fig.Tables) -> tuple[str, str]:
    """Time speedup over iteration speedup of the most workers, without and with the largest cost."""
    table = tables["times"]
    most = table[table["workers"] == table["workers"].max()]
    share = sim.by_set(most.assign(share=most["time_speedup"] / most["iteration_speedup"]), "share",
                       "update_cost")
    free, costly = share.iloc[:, 0], share.iloc[:, -1]
    good = ((free >= 1.0 - sim.LINEAR) & (costly < 1.0 - sim.LINEAR)).to_numpy()
    return unanimous(good), (
        f"With W = {most['workers'].iloc[0]} the time speedup is {sim.span(free)} of the iteration speedup "
        f"without a cost of updates, {sim.span(costly)} with u = {share.columns[-1]:g}; at least 0.8 without "
        f"and less with it {shares(good)}.")


def judge_corollary(tables: fig.Tables) -> tuple[str, str]:
    """L1/L2 = W1/W2 as printed, or its inverse."""
    _, table = groups(tables["speedups"], "ha")[0]
    per_worker = sim.by_set(table.assign(each=table["iteration"] / table["workers"]), "each", "workers")
    ratio, n = per_worker.rdiv(per_worker.iloc[:, 0], axis=0), per_worker.columns.to_numpy(dtype=float)
    printed, inverse = (((ratio / rule - 1.0).abs() <= sim.LINEAR).all(axis=1).to_numpy()
                        for rule in (n[0] / n, n / n[0]))
    readings = {fig.PASS: printed, fig.MISPRINT: inverse}
    return next((word for word, good in readings.items() if unanimous(good) == fig.PASS), fig.NOT_TESTABLE), (
        "Iterations per worker at equal variance, medians of the data sets, are "
        + ", ".join(f"{value:.0f} (W = {w})" for w, value in per_worker.median().items())
        + f": to 20 percent they follow L1/L2 = W1/W2 {shares(printed)}, L1/L2 = W2/W1 {shares(inverse)}.")


CLAIMS = [
    fig.Finding("On the Gaussian model the iteration speedup is within 20 percent of linear at a small step "
                "size, h a = 0.02.", "section 5.1, figure 2(c), and Corollary 5",
                partial(judge_linear, place=0), "linear", fig.DATA_SETS,
                "The paper says it of logistic regression on a9a: see stale_fig2_logistic."),
    fig.Finding("It is so at a large step size, h a = 0.1, too.", "sections 3.2 and 4",
                partial(judge_linear, place=-1), "linear_large", fig.DATA_SETS, "The step sizes are ours. "
                "That a linear speedup is always achievable, with small enough steps, is judged in "
                "stale_speedup_limit."),
    fig.Unjudged("The time speedup deteriorates when the number of workers is large, due to latency.",
                 "section 5.1, figure 2(c)", "It is about the latency of one cluster, which is not printed.",
                 "latency"),
    fig.Finding("In a declared model of the server's latency, u = 0.2 mean service times an update, the time "
                "speedup of nine workers falls more than 20 percent short of their iteration speedup; "
                "without it, it does not.", "figure 2(c)", judge_latency, "declared_latency", fig.DATA_SETS,
                "The server's latency caps the time speedup at about 1 + 1/u."),
    fig.Claim("Corollary 5 indicates L1/L2 = W1/W2 for numbers of workers and iterations at the same "
              "variance.", "section 5.1", judge_corollary, "workers_ratio", fig.DATA_SETS,
              "Corollary 5 is in the server's iterations L = W times those of a worker, so that equal "
              "variance means L1/L2 = W2/W1 for iterations per worker, the linear speedup that the same "
              "sentence names. The inversion follows from this alone; the numbers, at the smallest of our "
              "step sizes, show it."),
    sim.replicas_follow("Replicas follow the exact law where it reaches the variance compared.")]
