"""Shared by the stale-gradient figures on logistic regression: chains of stale SGHMC, one server or several,
and the test loss averaged along them.

Every server has workers with service times of its own, and chains of its own; chain r of different numbers
of workers has the same normal draws, so that differences between them are sharper than their bands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from scipy.stats import t as student

import fedsim as fs
from fedsim.estimators import combine

from . import _adult, plot
from . import _stale as sim
from ._adult import TestLoss
from ._reference import posterior_reference
from .figure import FAIL, NOT_TESTABLE, PASS, ByScale, Claim, Parameter, Tables, note

LOSS = "test loss averaged along the chain"
SERVER_COUNTS = [1, 3, 5, 7]
NETWORKS = ("not reproduced: Bayesian convolutional networks on MNIST and CIFAR-10 in Caffe are out of scope "
            "for a simulator of two cores, and their settings are Caffe's defaults of 2016")
NO_NETWORKS = "The rows of MNIST and CIFAR-10 (convolutional networks) are not reproduced."
NO_LAW = "No exact law: the posterior is not Gaussian."

UPDATE_COST = Parameter("update_cost", 0.1, "ours",
                        "time of an update at the server, in mean service times: the simulated latency")
SERVERS = Parameter("servers", SERVER_COUNTS, "paper", "section 5.2: S = 1, 3, 5, 7")
SCHEDULE_SEED = Parameter("schedule_seed", 3, "ours", "of the service times; server s has this plus s")
DYNAMICS = [
    sim.SERVICE, UPDATE_COST, SCHEDULE_SEED, sim.SEED,
    Parameter("rate", 0.01, "ours", "h^2 n, Caffe's default rate on the mean loss; not printed for a9a"),
    Parameter("momentum", 0.9, "ours", "m, Caffe's default. The paper prints B = 1 - m; Algorithm 1 keeps "
                                       "1 - B h of the velocity, so that B = (1 - m)/h is meant"),
    Parameter("n_resamples", ByScale(20, 200, 400), "ours", "of the chains, for intervals of speedups"),
    Parameter("reference_chains", ByScale(8, 32, 32), "ours", "of Metropolis-adjusted HMC"),
    Parameter("reference_draws", ByScale(20, 200, 200), "ours", "of each, for the posterior's mean loss"),
]


def algorithm(p: Any, n_workers: int, server: int = 0) -> fs.StaleSGHMC:
    """Stale SGHMC of one server."""
    h = float(np.sqrt(p.rate / p.n_train))
    workers = fs.Workers(n_workers, p.service, p.update_cost, seed=p.schedule_seed + server)
    return fs.StaleSGHMC(h, (1.0 - p.momentum) / h, workers)


class Server(NamedTuple):
    """Running averages (R, L) of the test loss along the chains of a server, and the time of each update."""

    averages: np.ndarray
    times: np.ndarray
    workers: int

    def at(self, lengths: np.ndarray) -> np.ndarray:
        """Averages (R, n) after so many updates."""
        return self.averages[:, lengths - 1]

    def made(self, times: Any) -> np.ndarray:
        """Updates made by these times."""
        return np.searchsorted(self.times, times, side="right")


def server(p: Any, problem: fs.LogisticRegression, loss: TestLoss, n_workers: int, number: int = 0) -> Server:
    """Chains from the origin, L = W iterations-per-worker updates."""
    note(f"simulating W = {n_workers}, server {number + 1}")
    length, moves = n_workers * p.iterations, algorithm(p, n_workers, number)
    path = fs.sample_path(problem, moves, length, seed=p.seed + 1000 * number, n_chains=p.n_replicas)
    averages = np.cumsum(loss(path), axis=1) / np.arange(1, length + 1)
    return Server(averages, moves.staleness.history(length).times, n_workers)


def all_servers(p: Any, problem: fs.LogisticRegression, loss: TestLoss, n_workers: int,
                n_servers: int) -> list[Server]:
    """Independent servers with as many workers each."""
    return [server(p, problem, loss, n_workers, number) for number in range(n_servers)]


def combined(servers: Sequence[Server], lengths: Sequence[np.ndarray]) -> np.ndarray:
    """Averages (R, n) of several servers, weighted by time; `lengths` (n,) for each server."""
    parts = [one.at(length) for one, length in zip(servers, lengths, strict=True)]
    spans = np.array(lengths, dtype=float)  # all have the same step size
    return np.stack([combine([part[:, i] for part in parts], spans[:, i])
                     for i in range(spans.shape[1])], axis=1)


def by_iteration(servers: Sequence[Server], per_worker: np.ndarray) -> np.ndarray:
    """Averages (R, n) when every worker has made so many iterations on average."""
    return combined(servers, [one.workers * per_worker for one in servers])


def by_time(servers: Sequence[Server], times: np.ndarray) -> np.ndarray:
    """Averages (R, n) at simulated times, by which every server must have made an update."""
    return combined(servers, [one.made(times) for one in servers])


def speedup_row(p: Any, single: Sequence[Server], several: Sequence[Server], **labels: Any) -> dict[str, Any]:
    """Iterations per worker that one server needs for the mean loss that several have halfway, over theirs.

    The interval comes from resampled chains.
    """
    half, every = p.iterations // 2, np.arange(1, p.iterations + 1)
    curve, level = by_iteration(single, every), by_iteration(several, np.array([half]))[:, 0]
    rng, found = np.random.default_rng(p.seed), []
    for number in range(p.n_resamples + 1):  # the first is the sample itself
        chosen = rng.integers(len(curve), size=len(curve)) if number else np.arange(len(curve))
        falling = np.minimum.accumulate(curve[chosen].mean(axis=0))
        found.append(float(np.interp(-level[chosen].mean(), -falling, every)) / half)
    return {**labels, "servers": len(several), "iterations": half, "speedup": found[0]} | _interval(found[1:])


NO_SPEEDUP = "None is counted if every interval reaches down to 1 and every estimate is below 1.1."


def no_speedup(table: pd.DataFrame) -> bool:
    """Whether no speedup of `speedup_row`s is significant; said in words by `NO_SPEEDUP`."""
    return bool((table["low"] <= 1.0).all() and (table["speedup"] < 1.1).all())


def variance_ratio(p: Any, first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    """Variance of `first` (R,) over the mean one of `second` (R, k), paired, with its interval.

    The interval comes from resampled chains, so that common draws of the two are accounted for.
    """
    rng, found = np.random.default_rng(p.seed), []
    for number in range(p.n_resamples + 1):  # the first is the sample itself
        chosen = rng.integers(len(first), size=len(first)) if number else np.arange(len(first))
        found.append(float(first[chosen].var(ddof=1) / second[chosen].var(axis=0, ddof=1).mean()))
    return {"ratio": found[0]} | _interval(found[1:])


def _interval(found: Sequence[float]) -> dict[str, float]:
    """Percentiles of resampled values."""
    tail = 0.5 * (1.0 - sim.LEVEL)
    low, high = np.quantile(found, [tail, 1.0 - tail])
    return {"low": float(low), "high": float(high)}


def half_width(values: np.ndarray) -> Any:
    """Half the interval of the mean over chains, by Student's t, of values (R, ...)."""
    n = len(values)
    return student.isf(0.5 * (1.0 - sim.LEVEL), n - 1) / np.sqrt(n) * values.std(axis=0, ddof=1)


def loss_rows(averages: np.ndarray, x: np.ndarray, axis: str, **labels: Any) -> pd.DataFrame:
    """Mean over chains with its interval, and standard deviation between chains, as rows."""
    mean, spread = averages.mean(axis=0), averages.std(axis=0, ddof=1)
    reach = half_width(averages)
    return pd.DataFrame({**labels, "axis": axis, "x": np.asarray(x, dtype=float), "loss": mean,
                         "low": mean - reach, "high": mean + reach, "spread": spread})


def difference_row(first: np.ndarray, second: np.ndarray, **labels: Any) -> dict[str, Any]:
    """Mean difference (R,) - (R,) of paired chains, with its interval."""
    gap = first - second
    mean, reach = float(gap.mean()), float(half_width(gap))
    return {**labels, "difference": mean, "low": mean - reach, "high": mean + reach}


def posterior_loss(p: Any, problem: fs.LogisticRegression, loss: TestLoss) -> pd.DataFrame:
    """The posterior's mean test loss, what every average should converge to, with its standard error."""
    note("sampling the posterior by Metropolis-adjusted HMC")
    found = posterior_reference(problem, n_chains=p.reference_chains, n_draws=p.reference_draws, seed=p.seed,
                                leapfrog_steps=4, warmup=20)
    mean, error = found.mean(lambda x: loss(x)[..., None])
    return pd.DataFrame([{"loss": float(mean[0]), "error": float(error[0]), "acceptance": found.acceptance}])


def setting(p: Any, problem: fs.LogisticRegression, counts: Sequence[int]) -> pd.DataFrame:
    """Ages, stability and simulated clock for each number of workers."""
    rows = []
    for n_workers in counts:
        length, moves = n_workers * p.iterations, algorithm(p, n_workers)
        past, ages = moves.staleness.history(length), moves.ages(length)
        rows.append({"workers": n_workers, "mean_age": float(ages.mean()), "largest_age": int(ages.max()),
                     "radius": moves.radius(problem), "end_time": float(past.times[-1]),
                     "utilisation": float(past.utilisation.mean()),
                     "step_size": float(moves.step_size), "friction": moves.friction})
    return pd.DataFrame(rows)


def grid(last: int, count: int = 40) -> np.ndarray:
    """Log-spaced whole numbers."""
    return sim.spaced(last, count)


def common_times(groups: Sequence[Sequence[Server]], count: int = 40) -> np.ndarray:
    """Log-spaced times at which all servers of all groups have begun, and none has ended."""
    first = max(one.times[0] for group in groups for one in group)
    last = min(one.times[-1] for group in groups for one in group)
    return np.geomspace(first, last, count)


def draw_losses(ax: Axes, table: pd.DataFrame, name: str, label: str, tables: Tables,
                widest: float = 1.5) -> None:
    """A curve with its band for each value of the column `name`, above the posterior's level.

    Curves that coincide remain visible when the first is drawn widest.
    """
    widths = np.linspace(widest, 1.5, table[name].nunique())
    for (value, one), colour, width in zip(table.groupby(name, sort=True), colours(), widths, strict=False):
        plot.replicas(ax, one["x"], one["loss"], one["low"], one["high"], colour, None)
        ax.plot(one["x"], one["loss"], color=colour, linewidth=width, label=f"{label} = {value}")
    level = tables["posterior"].iloc[0]
    ax.axhline(level["loss"], color="#000000", linestyle=":", linewidth=1.1, label="posterior (MH-HMC)")
    ax.set(xscale="log")


def legend_below(ax: Axes, tables: Tables, share: float = 0.42, **options: Any) -> None:
    """The legend beneath the curves and the posterior's level."""
    low, high = float(tables["posterior"]["loss"].iloc[0]), ax.get_ylim()[1]
    low = min(low, ax.get_ylim()[0])
    ax.set_ylim(low - (high - low) * share / (1.0 - share), high)
    ax.legend(loc="lower left", **({"fontsize": 8} | options))


def colours() -> list[str]:
    """Colours of up to nine curves: the house's, then two greys."""
    return [*plot.COLOURS, "#6E6E6E", "#B0B0B0"]


def headline(drawing: Drawing, text: str) -> None:
    """A line above all panels: the data, and what is ours."""
    drawing.suptitle(text, fontsize=10, x=0.01, ha="left")


def networks_claim(text: str, source: str) -> Claim:
    """A claim about the convolutional networks, which are not reproduced."""
    return Claim(text, source, lambda tables: (NOT_TESTABLE, f"The rows of these networks are {NETWORKS}."))


def on_a9a(text: str, source: str, judge: Callable[[Tables], tuple[str, str]]) -> list[Claim]:
    """The paper's claim, judged on its data only, and the same of the data at hand."""
    def on_its_data(tables: Tables) -> tuple[str, str]:
        if _adult.is_real(tables["data"]):
            return judge(tables)
        return NOT_TESTABLE, (f"The data are a {_adult.STAND_IN}: give a9a's files with --data. What it "
                              "shows is judged in the next claim.")

    def at_hand(tables: Tables) -> tuple[str, str]:
        found, why = judge(tables)
        return found, f"On {tables['data']['source'].iloc[0]}. {why}"

    return [Claim(text, source, on_its_data),
            Claim(f"ours, on the data at hand: {text[0].lower()}{text[1:]}", f"ours, for {source}", at_hand)]


def verdict(holds: bool) -> str:
    """PASS or FAIL."""
    return PASS if holds else FAIL
