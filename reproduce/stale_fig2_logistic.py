"""Stale gradients figure 2 on logistic regression: variance against iterations, time and workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from fedsim.estimators import errors
from theory.stale import first_reaching, fit_constants

from . import _adult, plot
from . import _stale as sim
from . import _stale_logistic as blr
from ._adult import DATA
from ._stale_logistic import verdict
from .figure import NOT_TESTABLE, ByScale, Claim, Drawing, Parameter, Tables, note, settings

__all__ = ["DATA"]

TITLE = "Stale SGLD: variance of the averaged test loss, 1 to 9 workers (a9a or a stand-in)"
PAPER = "Stale gradients figure 2 (a9a)"
SHOWS = ("Bayesian logistic regression: variance of the averaged test loss against iterations per worker and "
         "simulated time, speedups of 1 to 9 workers at equal variance; and the same from the origin.")
COST = {"tiny": "2 s", "quick": "10 s", "paper": "about 6 min (estimated)"}
PARAMETERS = [
    *_adult.PARAMETERS, sim.WORKERS, sim.SERVICE, blr.UPDATE_COST, blr.SCHEDULE_SEED, sim.SEED,
    Parameter("share", 0.2, "ours", "h L, with L the largest curvature that f can have; h is not printed"),
    Parameter("updates", ByScale(200, 3000, 3000), "ours", "at the server, the same for every W"),
    Parameter("every", ByScale(5, 10, 10), "ours", "one iterate in so many enters the average, for speed"),
    Parameter("n_replicas", ByScale(16, 128, 128), "ours",
              "the paper has 10 runs, whose variance has a relative standard error of 47 percent"),
    Parameter("precision_at", 0.5, "ours", "speedups are at the variance that one worker has reached after "
                                           "this share of the updates"),
    Parameter("n_resamples", ByScale(50, 400, 1000), "ours", "of the replicas, for the speedups' intervals"),
]


class Runs:
    """Running averages (R, n) of the test loss of one number of workers, and the simulated clock."""

    def __init__(self, p: Any, problem: fs.LogisticRegression, loss: _adult.TestLoss, n_workers: int,
                 from_origin: bool) -> None:
        note(f"simulating W = {n_workers}")
        workers = fs.Workers(n_workers, p.service, p.update_cost, seed=p.schedule_seed)
        self.algorithm = fs.StaleSGLD(p.share / problem.curvature_bounds("global")[1], workers)
        path = fs.sample_path(problem, self.algorithm, p.updates, seed=p.seed, n_chains=p.n_replicas,
                              every=p.every, start=None if from_origin else problem.laplace())
        kept = np.arange(1, path.shape[1] + 1)
        self.lengths, self.n_workers = kept * p.every, n_workers
        self.averages = np.cumsum(loss(path), axis=1) / kept
        self.times = workers.history(p.updates).times[self.lengths - 1]

    def rows(self, truth: float, start: str, at: np.ndarray) -> pd.DataFrame:
        """Variance with its interval at these places."""
        found = [errors(self.averages[:, i], truth, sim.LEVEL).variance for i in at]
        return pd.DataFrame({
            "start": start, "workers": self.n_workers, "updates": self.lengths[at],
            "iterations": self.lengths[at] / self.n_workers, "time": self.times[at],
            "variance": [one.value for one in found], "low": [one.low for one in found],
            "high": [one.high for one in found]})

    def reached(self, precision: float, chosen: Any = slice(None)) -> tuple[float, float, bool]:
        """Iterations per worker and time to a variance, and whether it is reached at all (else the end)."""
        length = first_reaching(self.lengths, self.averages[chosen].var(axis=0, ddof=1), precision)
        end = int(self.lengths[-1]) if length is None else length
        return end / self.n_workers, float(self.times[self.lengths == end][0]), length is not None


def compute(scale: str, files: Mapping[str, Path] | None = None) -> Tables:
    """Tables: data, setting, posterior (its mean loss), variances, fit, speedups, slopes, decay."""
    p = settings(PARAMETERS, scale)
    data = _adult.adult(p, files or {})
    problem, loss = data.problem(p), _adult.TestLoss.of(data.test)
    truth = float(loss(problem.laplace().sample(2000, p.seed)[None]).mean())
    runs = {n: Runs(p, problem, loss, n, False) for n in p.workers}
    places = blr.grid(p.updates // p.every) - 1
    variances = [one.rows(truth, "posterior", places) for one in runs.values()]
    origin = {n: Runs(p, problem, loss, n, True) for n in (p.workers[0], p.workers[-1])}
    variances += [one.rows(truth, "origin", places) for one in origin.values()]
    speedups, slopes = _speedups(p, runs)
    decay = [_decay(p, problem, one, start) for start, group in (("posterior", runs), ("origin", origin))
             for one in (group[p.workers[0]], group[p.workers[-1]])]
    return {"data": _adult.data_table(data), "setting": _setting(problem, runs, truth),
            "variances": pd.concat(variances), "fit": _fit(runs[p.workers[0]], variances[0]),
            "speedups": speedups, "slopes": slopes, "decay": pd.DataFrame(decay)}


def _setting(problem: fs.LogisticRegression, runs: Mapping[int, Runs], truth: float) -> pd.DataFrame:
    rows = []
    for n, one in runs.items():
        ages = one.algorithm.ages(int(one.lengths[-1]))
        rows.append({"workers": n, "step_size": float(one.algorithm.step_size),
                     "step_limit": float(one.algorithm.stability(problem).max_step_size or np.inf),
                     "mean_age": float(ages.mean()), "largest_age": int(ages.max()), "laplace_loss": truth})
    return pd.DataFrame(rows)


def _fit(one: Runs, rows: pd.DataFrame) -> pd.DataFrame:
    """The rate of Theorem 4 with constants fitted to the last half of one worker's updates."""
    h, half = float(one.algorithm.step_size), rows[rows["updates"] >= one.lengths[-1] / 2]
    lengths = half["updates"].to_numpy(dtype=float)
    fitted = fit_constants({"time": 1.0 / (lengths * h), "integrator": np.full(len(lengths), h * h)},
                           half["variance"])
    at = rows["updates"].to_numpy(dtype=float)
    at = at[at >= 0.1 * one.lengths[-1]]
    curve = fitted.constants["time"] / (at * h) + fitted.constants["integrator"] * h * h
    return pd.DataFrame({"updates": at, "curve": curve, "fitted_time": fitted.constants["time"],
                         "fitted_integrator": fitted.constants["integrator"],
                         "largest_error": fitted.largest_error})


def _decay(p: Any, problem: fs.LogisticRegression, one: Runs, start: str) -> dict[str, Any]:
    """Slope of log variance in log L over the last two thirds, with its interval from resampled replicas."""
    rng, first = np.random.default_rng(p.seed), len(one.lengths) // 3
    ends, slopes = one.averages[:, [first, -1]], []
    span = np.log(one.lengths[-1] / one.lengths[first])
    for number in range(p.n_resamples + 1):
        chosen = rng.integers(p.n_replicas, size=p.n_replicas) if number else np.arange(p.n_replicas)
        slopes.append(float(np.diff(np.log(ends[chosen].var(axis=0, ddof=1)))[0] / span))
    tail = 0.5 * (1.0 - sim.LEVEL)
    low, high = np.quantile(slopes[1:], [tail, 1.0 - tail])
    return {"start": start, "workers": one.n_workers, "from_updates": int(one.lengths[first]),
            "to_updates": int(one.lengths[-1]), "slope": slopes[0], "low": float(low), "high": float(high),
            "span": float(one.algorithm.step_size) * p.updates,
            "slowest": 1.0 / problem.curvature_bounds("global")[0]}


def _speedups(p: Any, runs: Mapping[int, Runs]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Speedups at equal variance, and their slope in log W, with intervals from resampled replicas."""
    single, counts = runs[p.workers[0]], np.array(p.workers)
    place = round(p.precision_at * len(single.lengths)) - 1
    rng, found, censored = np.random.default_rng(p.seed), [], np.zeros(len(counts))
    for number in range(p.n_resamples + 1):  # the first is the sample itself
        chosen = rng.integers(p.n_replicas, size=p.n_replicas) if number else np.arange(p.n_replicas)
        precision = float(single.averages[chosen, place].var(ddof=1)) * (1.0 + 1e-9)  # against rounding
        reached = [one.reached(precision, chosen) for one in runs.values()]
        found.append([[reached[0][i] / one[i] for one in reached] for i in range(2)])
        censored += [not one[2] for one in reached]
    table = np.array(found)  # (resamples + 1, kind, W)
    tail = 0.5 * (1.0 - sim.LEVEL)
    rows, slopes = [], []
    precision = float(single.averages[:, place].var(ddof=1))
    for i, kind in enumerate(("iterations", "time")):
        low, high = np.quantile(table[1:, i], [tail, 1.0 - tail], axis=0)
        rows += [{"kind": kind, "workers": n, "speedup": table[0, i, j], "low": low[j], "high": high[j],
                  "precision": precision, "not_reached": censored[j] / len(table)}
                 for j, n in enumerate(counts.tolist())]
        slope = np.polyfit(np.log(counts), np.log(table[:, i]).T, 1)[0]
        ends = np.quantile(slope[1:], [tail, 1.0 - tail])
        slopes.append({"kind": kind, "slope": float(slope[0]), "low": float(ends[0]), "high": float(ends[1]),
                       "paper": 1.0, "points": len(counts)})
    return pd.DataFrame(rows), pd.DataFrame(slopes)


def draw(tables: Tables) -> Drawing:
    """Variance against iterations and time, speedups, and variance from the origin."""
    drawing, ((first, second), (third, fourth)) = plot.panels(2, 5.9, 4.2, n_rows=2)
    table = tables["variances"]
    steady = table[table["start"] == "posterior"]
    _draw_variances(first, steady, "iterations", sim.ITERATIONS_PER_WORKER,
                    "(a) variance falls faster with more workers")
    sim.shape(first, tables["fit"]["updates"], tables["fit"]["curve"],
              "shape of Theorem 4 for W = 1, fitted constants")
    first.set_ylim(0.3 * float(steady["low"].min()), None)
    first.legend(loc="lower left", fontsize=8)
    _draw_variances(second, steady, "time", sim.SIMULATED_TIME, "(b) the same against simulated time")
    _draw_speedups(third, tables)
    _draw_variances(fourth, table[table["start"] == "origin"], "iterations", sim.ITERATIONS_PER_WORKER,
                    "variance from the origin: the transient hides it")
    fourth.legend(loc="lower left", fontsize=8)
    blr.headline(drawing, f"{_adult.data_text(tables['data'])}. Stale SGLD, (a)-(c) from draws of the "
                          "Laplace law; h, J and service times are ours.\n"
                          f"{blr.NO_LAW} Exact curves are in the figures of the Gaussian model.")
    return drawing


def _draw_variances(ax: Axes, table: pd.DataFrame, x: str, label: str, title: str) -> None:
    counts = sorted(table["workers"].unique().tolist())
    for n in counts:
        one, colour = table[table["workers"] == n], sim.colour(sim.WORKER_COUNTS, n)
        banded = n in (counts[0], counts[-1])
        if banded:
            plot.replicas(ax, one[x], one["variance"], one["low"], one["high"], colour, None)
        ax.plot(one[x], one["variance"], color=colour, linewidth=1.4,
                label=f"replicas{' (95% band)' if banded else ''}, {sim.workers_label(n)}")
    ax.set(xscale="log", yscale="log", xlabel=label, ylabel="variance of the averaged test loss", title=title)


def _draw_speedups(ax: Axes, tables: Tables) -> None:
    for kind, colour, marker, words in (("iterations", plot.COLOURS[0], "o", "iteration speedup"),
                                        ("time", plot.COLOURS[1], "s", "time speedup, simulated clock")):
        one = tables["speedups"][tables["speedups"]["kind"] == kind]
        low, high = one["speedup"] - one["low"], one["high"] - one["speedup"]
        ax.errorbar(one["workers"], one["speedup"], [low.clip(lower=0.0), high.clip(lower=0.0)], color=colour,
                    marker=marker, capsize=3, linewidth=1.4, label=f"{words} (95% interval)")
    counts = tables["speedups"]["workers"].unique()
    ax.plot(counts, counts, color="#000000", linestyle=":", linewidth=1.1, label="linear")
    ax.set(xlabel="workers W", ylabel="speedup at equal variance", title="(c) speedup against workers")
    ax.legend(loc="upper left", fontsize=8)


def _compared(tables: Tables, axis: str) -> tuple[bool, str]:
    """Is the variance of more workers lower where the curves of all of them exist last?"""
    table = tables["variances"].query("start == 'posterior'")
    last = float(table.groupby("workers")[axis].max().min())
    rows = [(n, *(np.exp(np.interp(np.log(last), np.log(one[axis]), np.log(one[name])))
                  for name in ("variance", "low", "high"))) for n, one in table.groupby("workers")]
    falls = bool(np.all(np.diff([row[1] for row in rows]) < 0.0)) and rows[-1][3] < rows[0][2]
    words = ", ".join(f"{value:.2g} (W = {n}; {low:.2g} to {high:.2g})" for n, value, low, high in rows)
    return falls, f"at {last:.0f} {{}} the variance is {words}, with 95% intervals."


def judge_iterations(tables: Tables) -> tuple[str, str]:
    """Variance at equal iterations per worker."""
    falls, words = _compared(tables, "iterations")
    return verdict(falls), ("From the Laplace law, " + words.format("iterations per worker"))


def judge_time(tables: Tables) -> tuple[str, str]:
    """Variance at equal simulated time."""
    falls, words = _compared(tables, "time")
    return verdict(falls), ("From the Laplace law, " + words.format("units of simulated time"))


def judge_linear(tables: Tables) -> tuple[str, str]:
    """Is the iteration speedup linear?"""
    slope = tables["slopes"].iloc[0]
    rows = tables["speedups"].query("kind == 'iterations'")
    words = ", ".join(f"{row.speedup:.2f} ({row.low:.2f} to {row.high:.2f}) for W = {row.workers}"
                      for row in rows.itertuples())
    near = bool(((rows["speedup"] / rows["workers"] - 1.0).abs() <= 0.2).all())
    return verdict(near and slope["low"] <= 1.0 <= slope["high"]), (
        f"Iteration speedups {words} (95% intervals from resampled replicas); slope in log W "
        f"{sim.slope_text(slope)}, where linear is 1; within 20 percent of W is asked of each.")


def judge_latency(tables: Tables) -> tuple[str, str]:
    """Time speedups: the clock is ours."""
    rows = tables["speedups"].query("kind == 'time'")
    words = ", ".join(f"{row.speedup:.2f} for W = {row.workers}" for row in rows.itertuples())
    return NOT_TESTABLE, ("It is about the latency of one cluster; on the simulated clock, whose update cost "
                          f"we chose, time speedups are {words}.")


def judge_decay(tables: Tables) -> tuple[str, str]:
    """Is the leading term of Theorem 4 reached?"""
    table = tables["decay"]
    holds = bool(((table["low"] <= -1.0) & (table["high"] >= -1.0)).all())
    words = "; ".join(f"from the {'Laplace law' if row['start'] == 'posterior' else 'origin'}, "
                      f"W = {row['workers']}: {sim.slope_text(row)}" for _, row in table.iterrows())
    row = table.iloc[0]
    return verdict(holds), (
        f"Slopes of log variance in log L between {row['from_updates']} and {row['to_updates']} updates: "
        f"{words}. L h is {row['span']:.2g} at the end, and the relaxation time of the slowest directions up "
        f"to {row['slowest']:.2g}; from one point chains have to move apart first.")


CLAIMS = [
    *blr.on_a9a("The variance drops faster with more workers, against iterations per worker.",
                "section 5.1", judge_iterations),
    *blr.on_a9a("The variance drops faster with more workers, against time.",
                "section 5.1", judge_time),
    *blr.on_a9a("The iteration speedup is approximately linear in the number of workers (Corollary 5).",
                "section 5.1", judge_linear),
    Claim("The time speedup deteriorates for many workers because of system latency.", "section 5.1",
          judge_latency),
    Claim("The variance falls like 1/(L h), the leading term of Theorem 4: ours, read for the last two "
          "thirds of the updates.", "Theorem 4", judge_decay),
]
