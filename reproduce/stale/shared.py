"""Shared by the stale-gradient figures: the Gaussian model, asynchronous servers, exact and simulated errors
of time averages, and how runs, data sets and numbers of workers are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import t as student

import fedsim as fs
from fedsim.laws.estimators import errors
from theory.rates import loglog_slope
from theory.stale import AverageLaw

from .. import figure as fig, plot
from ..statistics import largest_allowed
from ..tables import among
from .law import PLAIN, Sums, followed, law_of

LEVEL = 0.95
WORKER_COUNTS = [1, 2, 4, 6, 9]
ITERATIONS_PER_WORKER = r"iterations per worker $\bar L = L/W$"
SIMULATED_TIME = "simulated time (mean service times)"
NEAR = 1.0 / 12.0
"""An exponent is accepted when no other multiple of 1/6 is nearer."""
EACH = "each data set, median thick"
LINEAR = 0.2
"""A speedup is linear when it is within this share of W."""
OF_AVERAGES = {"mse": r"MSE of the average of $\theta^2$",
               "variance": r"variance of the average of $\theta^2$"}
GREYS = ("#000000", "#6A6A6A", "#A0A0A0")

DATA = fig.Parameter("n_data", 1000, "paper", "section 5.1: 1000 data")
BATCH = fig.Parameter("batch_size", 10, "paper", "section 5.1: minibatches of 10")
WORKERS = fig.Parameter("workers", WORKER_COUNTS, "paper", "section 5.2.1: W = 1, 2, 4, 6, 9")
DATA_SEED = fig.Parameter("data_seed", 0, "ours", "of the first data set, the next numbers of the others; "
                          "theta is drawn from its prior for each")
N_SETS = fig.Parameter("n_data_sets", 13, "ours", "each judged by itself; odd, so that the median is one of "
                       "them. Curves are those of the data set whose posterior mean has the median distance "
                       "from zero, in posterior standard deviations")
START = fig.Parameter("start", "a draw from the law that is followed", "ours",
                      "theta_0 is not printed; averages from a point also show how far off that point was")
SEED = fig.Parameter("seed", 1, "ours", "of the replicas")
SERVICE = fig.Parameter("service", "exponential", "ours",
                        "law of the time for a gradient, mean 1: the paper's cluster is not to be had")
WITH_WORKERS = [
    WORKERS, DATA,
    fig.Parameter("batch_size", 10, "ours", "that of the paper's figure 1; figure 2's is not printed"),
    SERVICE, START,
    fig.Parameter("schedule_seed", 0, "ours", "of the service times with the first data set, the next "
                  "numbers with the others; one for all replicas"),
    DATA_SEED, N_SETS, SEED,
    fig.Parameter("n_replicas", fig.ByScale(256, 1000, 2000), "ours",
                  "the paper's 10 runs estimate a variance to within a factor of about 2 to 3")]
"""Parameters of figure 2 on the Gaussian model."""


def data_sets(p: Any, grad_scale: str = "unbiased") -> list[fs.GaussianMean]:
    """The paper's Gaussian model on each data set: d_i ~ N(theta, 1) with theta ~ N(0, 1)."""
    problems = []
    for k in range(p.n_data_sets):
        rng = np.random.default_rng(p.data_seed + k)
        data = rng.standard_normal() + rng.standard_normal(p.n_data)
        problems.append(fs.GaussianMean(data, batch_size=p.batch_size, grad_scale=grad_scale))
    return problems


def _distances(problems: Sequence[fs.GaussianMean]) -> np.ndarray:
    """Of the posteriors' means from zero, in their standard deviations: theta^2 is the more linear."""
    targets = [one.target() for one in problems]
    return np.array([abs(target.mean[0]) / np.sqrt(target.variances[0]) for target in targets])


def typical(problems: Sequence[fs.GaussianMean]) -> int:
    """Which data set has the median distance."""
    return int(np.argsort(_distances(problems))[len(problems) // 2])


def sets_table(problems: Sequence[fs.GaussianMean]) -> pd.DataFrame:
    """The data sets: columns data_set, distance, typical."""
    numbers = np.arange(len(problems))
    return pd.DataFrame({"data_set": numbers, "distance": _distances(problems),
                         "typical": numbers == typical(problems)})


class Run(NamedTuple):
    """A chain on one data set, the exact law of its averages, and what the workers did."""

    algorithm: fs.StaleSGLD
    law: AverageLaw
    history: Any


class Server(NamedTuple):
    """An asynchronous server, with its step size as h a and its cost of updates, on every data set.

    Time is simulated by `fedsim.Workers`, with service times of its own for every data set.
    """

    p: Any
    problems: list[fs.GaussianMean]
    ha: float
    update_cost: float

    @property
    def labels(self) -> dict[str, float]:
        """What tells its rows from those of others."""
        return {"ha": self.ha, "update_cost": self.update_cost}

    def run(self, k: int, n_workers: int, length: int) -> Run:
        """Up to L = length on data set k, with W workers; gradients are handled one at a time."""
        problem = self.problems[k]
        workers = fs.Workers(n_workers, self.p.service, self.update_cost, seed=self.p.schedule_seed + k)
        algorithm = fs.StaleSGLD(self.ha / problem.curvature, workers)
        history = workers.history(length)
        law = Sums.of(self.ha, history.ages).law(problem, algorithm.schedule.largest)
        return Run(algorithm, law, history)


def exact_rows(law: AverageLaw, lengths: np.ndarray, **labels: Any) -> pd.DataFrame:
    """Exact errors as rows (labels, kind="exact", iteration, bias, variance, mse)."""
    at = np.searchsorted(law.lengths, lengths)
    return pd.DataFrame({**labels, "kind": "exact", "iteration": lengths, "bias": law.bias[at],
                         "variance": law.variance[at], "mse": law.mse[at]})


def running_averages(problem: Any, algorithm: Any, lengths: np.ndarray, n_replicas: int,
                     seed: int) -> np.ndarray:
    """(1/L) sum_{l=1..L} |theta_l|^2 of each replica at each L of `lengths`, (R, n)."""
    path = fs.sample_path(problem, algorithm, int(lengths[-1]), seed=seed, n_chains=n_replicas,
                          start=followed(problem))
    sums = np.square(path, out=path).sum(axis=2)  # in place: a path can fill much of the memory
    return np.cumsum(sums, axis=1, out=sums)[:, lengths - 1] / lengths


def _replica_errors(averages: Any, truth: float) -> dict[str, float]:
    """Errors of replicas with the ends of their intervals, by the names of columns.

    That of the MSE is Student's in the logarithm: squared errors are skewed, and the axes are logarithmic.
    """
    estimated = errors(averages, truth, LEVEL)
    columns: dict[str, float] = {}
    for name in ("bias", "variance", "mse"):
        part = getattr(estimated, name)
        columns |= {name: part.value, f"{name}_low": part.low, f"{name}_high": part.high}
    mse = estimated.mse
    factor = float(np.exp(student.isf(0.5 * (1.0 - LEVEL), len(averages) - 1) * mse.error / mse.value))
    return columns | {"mse_low": mse.value / factor, "mse_high": mse.value * factor}


def replica_rows(averages: np.ndarray, lengths: np.ndarray, truth: float, **labels: Any) -> pd.DataFrame:
    """Errors of replicas with their intervals as rows (labels, kind="replicas", iteration, bias, ...)."""
    return pd.DataFrame([{**labels, "kind": "replicas", "iteration": length, **_replica_errors(column, truth)}
                         for length, column in zip(lengths, averages.T, strict=True)])


def scores(averages: Any, law: AverageLaw, length: int | None = None) -> dict[str, float]:
    """Mean and variance of replicas' averages against the exact law at one L, in standard errors.

    The standard error of the mean is the exact one; that of the variance comes from the replicas' fourth
    moment, in the logarithm.
    """
    at = -1 if length is None else length - 1
    estimated, variance = errors(averages, law.truth, LEVEL), float(law.variance[at])
    off, spread = estimated.bias.value - float(law.bias[at]), estimated.variance
    return {"z_mean": off / float(np.sqrt(variance / len(averages))),
            "z_variance": float(np.log(spread.value / variance)) * spread.value / spread.error}


def end_row(problem: Any, algorithm: Any, law: AverageLaw, n_replicas: int, seed: int,
            **labels: Any) -> dict[str, Any]:
    """Replicas against the exact law at one L, with `scores`."""
    length = int(law.lengths[-1])
    fig.note(f"simulating {n_replicas} replicas of L = {length}")
    run = fs.simulate(problem, algorithm, length, n_replicas, seed=seed, start=followed(problem), record=(),
                      covariance="none", average="square")
    replicas = {f"replicas_{name}": value for name, value in _replica_errors(run.averages, law.truth).items()
                if name not in ("bias_low", "bias_high")}
    return {**labels, "iteration": length, "bias": float(law.bias[-1]), "variance": float(law.variance[-1]),
            "mse": float(law.mse[-1]), **replicas, **scores(run.averages, law)}


def plain_row(p: Any, tau: int, h: float, **labels: Any) -> dict[str, Any]:
    """The same of the target N(0, 1) with exact gradients, at one age and step size."""
    return end_row(PLAIN, fs.StaleSGLD(h, tau), law_of(PLAIN, tau, p.length, h), p.n_replicas, p.seed + tau,
                   **labels)


def judge_replicas(tables: Mapping[str, pd.DataFrame]) -> tuple[str, str]:
    """The judge of all findings that replicas follow the exact law."""
    deviations = tables["replicas"][["z_mean", "z_variance"]].abs().to_numpy()
    worst, limit = float(deviations.max()), largest_allowed(deviations.size)
    return (fig.PASS if worst <= limit else fig.FAIL), (
        f"At {len(deviations)} points mean and variance of the replicas' averages are at most {worst:.1f} "
        f"standard errors off the exact law; {limit:.1f} would be too many (false-alarm level 0.001).")


def replicas_follow(text: str = "Replicas follow the exact law.") -> fig.Finding:
    """The finding that they do."""
    return fig.Finding(text, "", judge_replicas, name="replicas", rests_on=fig.REPLICAS)


def slope_row(x: Any, y: Any, theory: float, **labels: Any) -> dict[str, Any]:
    """A fitted log-log slope with its interval, beside the exponent of the paper."""
    line = loglog_slope(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    return {**labels, "slope": line.value, "low": line.low, "high": line.high, "paper": theory,
            "points": line.n_points}


def slope_text(row: Any) -> str:
    """A row of `slope_row` in words."""
    return f"{row['slope']:.3f} (95% interval of the line {row['low']:.3f} to {row['high']:.3f})"


def is_near(slopes: pd.DataFrame | pd.Series) -> Any:
    """Whether slopes, rows of `slope_row`, are those of the paper."""
    return abs(slopes["slope"] - slopes["paper"]) <= NEAR


def span(values: Any, digits: int = 2) -> str:
    """Least to largest of some numbers, in words."""
    return f"{values.min():.{digits}f} to {values.max():.{digits}f}"


def by_set(table: pd.DataFrame, value: str, columns: str | list[str]) -> pd.DataFrame:
    """A column with a row for each data set, and a column for each value of `columns`, in ascending order."""
    return table.pivot(index="data_set", columns=columns, values=value).sort_index(axis=1)


def draw_runs(ax: Axes, curves: pd.DataFrame, by: str, x: str, y: str, label: str, **axes: Any) -> None:
    """Exact curves, and replicas with their bands, for every value of `by`, which the label names."""
    for value, colour in plot.shaded(curves[by].unique()):
        replicas, exact = (among(curves, kind=kind, **{by: value}) for kind in ("replicas", "exact"))
        plot.replicas(ax, replicas[x], replicas[y], replicas[f"{y}_low"], replicas[f"{y}_high"], colour)
        plot.exact(ax, exact[x], exact[y], colour, label.format(value), linewidth=1.4)
    ax.set(xscale="log", yscale="log", ylabel=OF_AVERAGES[y], **axes)


def draw_sets(ax: Axes, table: pd.DataFrame, colour: str, label: str, line: str = "-",
              marker: str = "o") -> None:
    """A thin line for each data set, a row of `by_set`, and their median."""
    ax.plot(table.columns, table.T, color=colour, linewidth=0.6, alpha=0.6, linestyle=line)
    plot.exact(ax, table.columns, table.median(), colour, label, linestyle=line, marker=marker,
               markersize=4)


def draw_replicas(ax: Axes, x: Any, table: pd.DataFrame, name: str, colour: str, label: str,
                  unit: float = 1.0) -> None:
    """Replicas with their intervals, in units of some value: crosses with bars."""
    values, low, high = (table[f"{name}{end}"] / unit for end in ("", "_low", "_high"))
    ax.errorbar(x, values, [values - low, high - values], fmt="x", color=colour, markersize=6, capsize=3,
                zorder=5, label=label)


def shape(ax: Axes, x: Any, y: Any, label: str, colour: str = "#000000") -> None:
    """The shape of a rate with a fitted constant: it is not a bound and does not look like one."""
    ax.plot(x, y, color=colour, linewidth=1.1, linestyle=(0, (6, 2, 1, 2)), label=label)


def linear_band(ax: Axes, counts: Sequence[int]) -> None:
    """Where a speedup over W, the axis below, is called linear."""
    low, high = ([share * n for n in counts] for share in (1.0 - LINEAR, 1.0 + LINEAR))
    ax.fill_between(counts, low, high, color="#000000", alpha=0.08, linewidth=0,
                    label=f"within {100 * LINEAR:.0f}% of W")
    ax.set(xlabel="workers W", xticks=counts, ylim=(0.0, None))
