"""Shared by the stale-gradient figures: the Gaussian model, exact and simulated errors of time averages,
and what ages and numbers of workers look like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation
from scipy.optimize import minimize_scalar
from scipy.stats import norm, t as student

import fedsim as fs
from fedsim.laws.estimators import errors
from theory.rates import loglog_slope
from theory.stale import AverageLaw

from .. import plot
from ..figure import FAIL, PASS, Parameter, note

PAPER = "Stochastic gradient MCMC with stale gradients"
LEVEL = 0.95
WORKER_COUNTS = [1, 2, 4, 6, 9]
ITERATIONS_PER_WORKER = r"iterations per worker $\bar L = L/W$"
SIMULATED_TIME = "simulated time (mean service times)"
FITTED = "shape of the rate, fitted constant"
NEAR = 1.0 / 12.0
"""An exponent is accepted when no other multiple of 1/6 is nearer."""
LINEAR = 0.2
"""A speedup is linear when it is within this share of W."""

DATA = Parameter("n_data", 1000, "paper", "section 5.1: 1000 data")
BATCH = Parameter("batch_size", 10, "paper", "section 5.1: minibatches of 10")
WORKERS = Parameter("workers", WORKER_COUNTS, "paper", "section 5.2.1: W = 1, 2, 4, 6, 9")
DATA_SEED = Parameter("data_seed", 0, "ours", "of the first data set, the next numbers of the others; theta "
                                              "is drawn from its prior for each")
N_SETS = Parameter("n_data_sets", 13, "ours", "each judged by itself; odd, so that the median is one of "
                   "them. Curves are those of the data set whose posterior mean has the median distance from "
                   "zero, in posterior standard deviations")
START = Parameter("start", "a draw from the law that is followed", "ours",
                  "theta_0 is not printed; averages from a point also show how far off that point was")
SEED = Parameter("seed", 1, "ours", "of the replicas")
SERVICE = Parameter("service", "exponential", "ours",
                    "law of the time for a gradient, mean 1: the paper's cluster is not to be had")


def gaussian_data(n_data: int, seed: int) -> np.ndarray:
    """d_i ~ N(theta, 1) with theta ~ N(0, 1)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal() + rng.standard_normal(n_data)


def gaussian_model(n_data: int, batch_size: int, seed: int, grad_scale: str = "unbiased") -> fs.GaussianMean:
    """The paper's Gaussian model with minibatches."""
    return fs.GaussianMean(gaussian_data(n_data, seed), batch_size=batch_size, grad_scale=grad_scale)


def data_sets(p: Any, grad_scale: str = "unbiased") -> list[fs.GaussianMean]:
    """The model on each data set."""
    return [gaussian_model(p.n_data, p.batch_size, p.data_seed + k, grad_scale) for k in range(p.n_data_sets)]


def _distance(problem: fs.GaussianMean) -> float:
    """Of the posterior's mean from zero, in its standard deviations: theta^2 is the more linear."""
    target = problem.target()
    return abs(float(target.mean[0])) / float(np.sqrt(target.variances[0]))


def typical(problems: Sequence[fs.GaussianMean]) -> int:
    """Which data set has the median distance."""
    return int(np.argsort([_distance(one) for one in problems])[len(problems) // 2])


def sets_table(problems: Sequence[fs.GaussianMean]) -> pd.DataFrame:
    """The data sets: columns data_set, distance, typical."""
    chosen = typical(problems)
    return pd.DataFrame([{"data_set": k, "distance": _distance(one), "typical": k == chosen}
                         for k, one in enumerate(problems)])


def colour(values: Iterable[Any], value: Any) -> str:
    """The colour of one of several ages or numbers of workers, by its place."""
    return plot.COLOURS[list(values).index(value) % len(plot.COLOURS)]


def workers_label(n_workers: int) -> str:
    """For a legend: W, as in the paper."""
    return f"W = {n_workers}"


def spaced(length: int, count: int = 60, first: int = 1) -> np.ndarray:
    """About `count` log-spaced whole numbers from `first` to `length`, both kept."""
    return np.unique(np.rint(np.geomspace(first, length, count)).astype(np.int64))


def exact_rows(law: AverageLaw, lengths: np.ndarray, **labels: Any) -> pd.DataFrame:
    """Exact errors as rows (labels, kind="exact", iteration, bias, variance, mse)."""
    at = np.searchsorted(law.lengths, lengths)
    return pd.DataFrame({**labels, "kind": "exact", "iteration": lengths, "bias": law.bias[at],
                         "variance": law.variance[at], "mse": law.mse[at]})


def running_averages(problem: Any, algorithm: Any, lengths: np.ndarray, n_replicas: int, seed: int,
                     start: Any = None) -> np.ndarray:
    """(1/L) sum_{l=1..L} |theta_l|^2 of each replica at each L of `lengths`, (R, n)."""
    path = fs.sample_path(problem, algorithm, int(lengths[-1]), seed=seed, n_chains=n_replicas, start=start)
    sums = np.square(path, out=path).sum(axis=2)  # in place: a path can fill much of the memory
    return np.cumsum(sums, axis=1, out=sums)[:, lengths - 1] / lengths


def _log_interval(found: Any, n_replicas: int) -> tuple[float, float]:
    """Student's interval in the logarithm: squared errors are skewed, and the axes are logarithmic."""
    factor = float(np.exp(student.isf(0.5 * (1.0 - LEVEL), n_replicas - 1) * found.error / found.value))
    return found.value / factor, found.value * factor


def replica_rows(averages: np.ndarray, lengths: np.ndarray, truth: float, **labels: Any) -> pd.DataFrame:
    """Errors of replicas with their intervals as rows (labels, kind="replicas", iteration, bias, ...)."""
    rows = []
    for length, column in zip(lengths, averages.T, strict=True):
        found = errors(column, truth, LEVEL)
        row = {**labels, "kind": "replicas", "iteration": length}
        for name in ("bias", "variance", "mse"):
            part = getattr(found, name)
            row |= {name: part.value, f"{name}_low": part.low, f"{name}_high": part.high}
        row |= dict(zip(("mse_low", "mse_high"), _log_interval(found.mse, len(averages)), strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def scores(averages: Any, law: AverageLaw, length: int | None = None) -> dict[str, float]:
    """Mean and variance of replicas' averages against the exact law at one L, in standard errors.

    The standard error of the mean is the exact one; that of the variance comes from the replicas' fourth
    moment, in the logarithm.
    """
    at = -1 if length is None else length - 1
    found, variance = errors(averages, law.truth, LEVEL), float(law.variance[at])
    return {"z_mean": (found.bias.value - float(law.bias[at])) / float(np.sqrt(variance / len(averages))),
            "z_variance": float(np.log(found.variance.value / variance)) * found.variance.value
            / found.variance.error}


def end_row(problem: Any, algorithm: Any, law: AverageLaw, n_replicas: int, seed: int, start: Any = None,
            **labels: Any) -> dict[str, Any]:
    """Replicas against the exact law at one L, with `scores`."""
    length = int(law.lengths[-1])
    note(f"simulating {n_replicas} replicas of L = {length}")
    run = fs.simulate(problem, algorithm, length, n_replicas, seed=seed, start=start, record=(),
                      covariance="none", average="square")
    found = errors(run.averages, law.truth, LEVEL)
    low, high = _log_interval(found.mse, n_replicas)
    return {**labels, "iteration": length, "bias": float(law.bias[-1]), "variance": float(law.variance[-1]),
            "mse": float(law.mse[-1]), "replicas_bias": found.bias.value,
            "replicas_variance": found.variance.value, "replicas_variance_low": found.variance.low,
            "replicas_variance_high": found.variance.high, "replicas_mse": found.mse.value,
            "replicas_mse_low": low, "replicas_mse_high": high,
            **scores(run.averages, law)}


def largest_score(table: pd.DataFrame, false_alarm: float = 1e-3) -> tuple[float, float]:
    """Largest of `scores`, and what it exceeds with at most this probability."""
    scores = table[["z_mean", "z_variance"]].abs().to_numpy()
    return float(scores.max()), float(norm.isf(0.5 * false_alarm / scores.size))


def judge_replicas(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    """The judge of all findings that replicas follow the exact law."""
    table = tables["replicas"]
    score, limit = largest_score(table)
    return (PASS if score <= limit else FAIL), (
        f"At {len(table)} points mean and variance of the replicas' averages are at most {score:.1f} "
        f"standard errors off the exact law; {limit:.1f} would be too many (false-alarm level 0.001).")


def groups(table: pd.DataFrame, columns: Any) -> list[tuple[Any, pd.DataFrame]]:
    """The values of `columns` and their rows, in the table's order."""
    return list(table.groupby(columns, sort=False))


def at_largest(table: pd.DataFrame, name: str) -> pd.Series:
    """The row in which a column is largest."""
    return table.iloc[int(np.argmax(table[name].to_numpy()))]


def slope_row(x: Any, y: Any, theory: float, **labels: Any) -> dict[str, Any]:
    """A fitted log-log slope with its interval, beside the exponent of the paper."""
    found = loglog_slope(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    return {**labels, "slope": found.value, "low": found.low, "high": found.high, "paper": theory,
            "points": found.n_points}


def slope_text(row: Any) -> str:
    """A row of `slope_row` in words."""
    return f"{row['slope']:.3f} (95% interval of the line {row['low']:.3f} to {row['high']:.3f})"


def best_step(mse: Callable[[float], float], guess: float, width: float = 8.0,
              limit: float = np.inf) -> tuple[float, float]:
    """The step size with the least `mse` within a factor `width` of a guess, and below a limit."""
    low, high = np.log(guess / width), np.log(min(guess * width, 0.98 * limit))
    found = minimize_scalar(lambda x: float(np.log(mse(float(np.exp(x))))), bounds=(low, high),
                            method="bounded", options={"xatol": 2e-3})
    return float(np.exp(found.x)), float(np.exp(found.fun))


def replicas_band(ax: Axes, x: Any, table: pd.DataFrame, name: str, colour: str,
                  label: str | None = plot.BAND) -> None:
    """Replicas with their band, from `replica_rows`."""
    plot.replicas(ax, x, table[name], table[f"{name}_low"], table[f"{name}_high"], colour, label)


def shape(ax: Axes, x: Any, y: Any, label: str = FITTED, colour: str = "#000000") -> None:
    """The shape of a rate with a fitted constant: it is not a bound and does not look like one."""
    ax.plot(x, y, color=colour, linewidth=1.1, linestyle=(0, (6, 2, 1, 2)), label=label)


def legend_below(ax: Axes, n_columns: int) -> None:
    """A legend outside the data, under the panel and the name of its axis."""
    drawing = ax.get_figure(root=True)
    assert drawing is not None
    below = ax.transAxes + ScaledTranslation(0.0, -0.55, drawing.dpi_scale_trans)
    plot.once(ax, loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=below, ncols=n_columns,
              fontsize=9, borderaxespad=0.0)


def linear_band(ax: Axes, counts: Sequence[int]) -> None:
    """Where a speedup is called linear."""
    low, high = ([share * n for n in counts] for share in (1.0 - LINEAR, 1.0 + LINEAR))
    ax.fill_between(counts, low, high, color="#000000", alpha=0.08, linewidth=0,
                    label=f"within {100 * LINEAR:.0f}% of W")


def draw_gains(ax: Axes, gains: Mapping[str, pd.DataFrame], label: str, title: str) -> None:
    """Gains of W workers, a row a data set and a column a W, for each of several settings, beside W."""
    styles = (("-", "#000000"), ("--", "#6A6A6A"), ("-.", "#A0A0A0"))
    for (name, table), (line, grey) in zip(gains.items(), styles, strict=False):
        ax.plot(table.columns, table.T, color=grey, linestyle=line, linewidth=0.6, alpha=0.7,
                label=f"exact law, {name}: a data set each")
        ax.plot(table.columns, table.median(), color=grey, linestyle=line, marker="o", markersize=4,
                label=f"exact law, {name}: median")
        counts = [int(n) for n in table.columns]
    linear_band(ax, counts)
    ax.set(xlabel="workers W", ylabel=label, title=title)
    ax.set_xticks(counts)
    ax.set_ylim(0.0)
    legend_below(ax, 1)
