"""Shared by the stale-gradient figures on logistic regression: chains of stale SGHMC, one server or several,
and the test loss averaged along them, on several data sets.

Every data set has chains and service times of its own, so that it counts as one independent draw. Within
it every server has its own service times and chains; chain r of different numbers of workers has the same
normal draws, so that differences between them are sharper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim as fs
from fedsim.laws.estimators import combine
from fedsim.stability.search import stability_radius

from ..figure import ByScale, Parameter, note
from ..reference import posterior_reference
from ..tables import spaced
from ..verdicts import intervals
from . import adult, shared as sim

SERVER_COUNTS = [1, 3, 5, 7]
SEEDS_APART = 100
"""Seeds of one data set are so far from the next one's: more than there are servers."""

UPDATE_COST = Parameter("update_cost", 0.1, "ours",
                        "time of an update at the server, in mean service times: the simulated latency")
SERVERS = Parameter("servers", SERVER_COUNTS, "paper", "section 5.2: S = 1, 3, 5, 7")
SCHEDULE_SEED = Parameter("schedule_seed", 3, "ours", "of the service times of the first server and data set")
REPLICA_REASON = "of each data set; the paper shows single runs"
DYNAMICS = [
    sim.SERVICE, UPDATE_COST, SCHEDULE_SEED, sim.SEED,
    Parameter("rate", 0.01, "ours", "h^2 n, Caffe's default rate on the mean loss; not printed for a9a"),
    Parameter("momentum", 0.9, "ours", "m, Caffe's default. The paper prints B = 1 - m; Algorithm 1 keeps "
                                       "1 - B h of the velocity, so that B = (1 - m)/h is meant"),
    Parameter("reference_chains", 8, "ours", "of Metropolis-adjusted HMC, for each data set"),
    Parameter("reference_draws", ByScale(20, 50, 50), "ours", "of each, for the posterior's mean loss"),
]


class Case(NamedTuple):
    """One data set, and the settings with its seeds."""

    p: Any
    data: adult.Adult
    problem: fs.LogisticRegression
    loss: adult.TestLoss


def cases(p: Any, files: Mapping[str, Path] | None) -> list[Case]:
    """All data sets of a figure."""
    found = []
    for number, data in enumerate(adult.adults(p, files or {})):
        moved = {name: getattr(p, name) + SEEDS_APART * number for name in ("seed", "schedule_seed")}
        own = SimpleNamespace(**{**vars(p), **moved})
        found.append(Case(own, data, data.problem(p), adult.TestLoss.of(data.test)))
    return found


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


Group = Sequence[Server]


def servers(case: Case, n_workers: int, n_servers: int = 1) -> list[Server]:
    """Independent servers with as many workers each: chains from the origin, L = W iterations updates."""
    p, found = case.p, []
    for number in range(n_servers):
        note(f"simulating W = {n_workers}, server {number + 1}")
        length, moves = n_workers * p.iterations, algorithm(p, n_workers, number)
        path = fs.sample_path(case.problem, moves, length, seed=p.seed + number, n_chains=p.n_replicas,
                              allow_unstable=True)  # table `setting` has the radius; to check each costs more
        averages = np.cumsum(case.loss(path), axis=1) / np.arange(1, length + 1)
        found.append(Server(averages, moves.staleness.history(length).times, n_workers))
    return found


def combined(group: Group, lengths: Sequence[np.ndarray]) -> np.ndarray:
    """Averages (R, n) of several servers, weighted by time; `lengths` (n,) for each server."""
    parts = [one.at(length) for one, length in zip(group, lengths, strict=True)]
    spans = np.array(lengths, dtype=float)  # all have the same step size
    return np.stack([combine([part[:, i] for part in parts], spans[:, i])
                     for i in range(spans.shape[1])], axis=1)


def averages_at(group: Group, x: Any, axis: str) -> np.ndarray:
    """Averages (R, n) at x "iterations" of every worker on average, or at simulated "time"s x."""
    points = np.atleast_1d(x)
    return combined(group, [one.workers * points if axis == "iterations" else one.made(points)
                            for one in group])


def speedup(p: Any, single: Group, several: Group) -> float:
    """Iterations per worker that one server needs for the mean loss of several halfway, over theirs."""
    half, every = p.iterations // 2, np.arange(1, p.iterations + 1)
    falling = np.minimum.accumulate(averages_at(single, every, "iterations").mean(axis=0))
    level = float(averages_at(several, half, "iterations").mean())
    return float(np.interp(-level, -falling, every)) / half


def speedup_rows(p: Any, groups: Sequence[Group], **labels: Any) -> list[dict[str, Any]]:
    """Speedups of several servers on every data set; `groups` has all servers of each."""
    return [{**labels, "data_set": number, "servers": n, "iterations": p.iterations // 2,
             "speedup": speedup(p, group[:1], group[:n])}
            for number, group in enumerate(groups) for n in p.servers if n > 1]


def curve(groups: Sequence[Group], x: np.ndarray, axis: str, **labels: Any) -> pd.DataFrame:
    """Over data sets, the median of the mean loss and its least and largest value, and the median spread.

    The mean and the spread (standard deviation) are those of the chains of each data set.
    """
    found = [averages_at(group, x, axis) for group in groups]
    mean = np.stack([values.mean(axis=0) for values in found])
    spread = np.stack([values.std(axis=0, ddof=1) for values in found])
    return pd.DataFrame({**labels, "axis": axis, "x": np.asarray(x, dtype=float),
                         "loss": np.median(mean, axis=0), "low": mean.min(axis=0), "high": mean.max(axis=0),
                         "spread": np.median(spread, axis=0)})


def loss_rows(groups: Sequence[Group], x: float, axis: str, **labels: Any) -> list[dict[str, Any]]:
    """Mean loss and spread of the chains of every data set at one x."""
    rows = []
    for number, group in enumerate(groups):
        values = averages_at(group, x, axis)[:, 0]
        rows.append({**labels, "data_set": number, "axis": axis, "x": float(x), "loss": float(values.mean()),
                     "spread": float(values.std(ddof=1))})
    return rows


def variances(group: Group, n_servers: int, iterations: int) -> dict[str, float]:
    """Variance between chains of the average of the first servers, and of single ones, all pooled."""
    several = averages_at(group[:n_servers], iterations, "iterations")
    single = [averages_at([one], iterations, "iterations").var(ddof=1) for one in group]
    return {"variance": float(several.var(ddof=1)), "single": float(np.mean(single))}


def gain(groups: Sequence[Group], n_servers: int, x: np.ndarray, axis: str, **labels: Any) -> pd.DataFrame:
    """Mean loss of the first servers minus that of one, with intervals over data sets, each for itself."""
    values = np.stack([(averages_at(group[:n_servers], x, axis) - averages_at(group[:1], x, axis))
                       .mean(axis=0) for group in groups])
    low, high = intervals(values, 1)
    return pd.DataFrame({**labels, "servers": n_servers, "axis": axis, "x": np.asarray(x, dtype=float),
                         "difference": values.mean(axis=0), "low": low, "high": high})


def posterior(case: Case) -> dict[str, float]:
    """The posterior's mean test loss, what every average should converge to, with its standard error."""
    note("sampling the posterior by Metropolis-adjusted HMC")
    found = posterior_reference(case.problem, n_chains=case.p.reference_chains, seed=case.p.seed,
                                n_draws=case.p.reference_draws, leapfrog_steps=4, warmup=20)
    mean, error = found.mean(lambda x: case.loss(x)[..., None])
    return {"loss": float(mean[0]), "error": float(error[0]), "acceptance": found.acceptance}


def common_tables(found: Sequence[Case], counts: Sequence[int]) -> dict[str, pd.DataFrame]:
    """Tables: data, setting of the first data set, posterior of each."""
    rows = pd.DataFrame([{"data_set": number} | posterior(case) for number, case in enumerate(found)])
    return {"data": adult.data_table([case.data for case in found]), "setting": _setting(found[0], counts),
            "posterior": rows}


def _setting(case: Case, counts: Sequence[int]) -> pd.DataFrame:
    """Ages, stability and simulated clock for each number of workers."""
    rows = []
    for n_workers in counts:
        length, moves = n_workers * case.p.iterations, algorithm(case.p, n_workers)
        past, ages = moves.staleness.history(length), moves.ages(length)
        rows.append({"workers": n_workers, "mean_age": float(ages.mean()), "largest_age": int(ages.max()),
                     "radius": stability_radius(case.problem, moves), "end_time": float(past.times[-1]),
                     "utilisation": float(past.utilisation.mean()),
                     "step_size": float(moves.step_size), "friction": moves.friction})
    return pd.DataFrame(rows)


def grid(last: int, count: int = 40) -> np.ndarray:
    """Log-spaced whole numbers."""
    return spaced(last, count)


def common_times(groups: Sequence[Group], count: int = 40) -> np.ndarray:
    """Log-spaced times at which all servers of all groups have begun, and none has ended."""
    first = max(one.times[0] for group in groups for one in group)
    last = min(one.times[-1] for group in groups for one in group)
    return np.geomspace(first, last, count)


def by_set(table: pd.DataFrame, value: str, columns: str | list[str]) -> np.ndarray:
    """A column (data sets, n), with one column for each value of `columns`, in ascending order."""
    return table.pivot(index="data_set", columns=columns, values=value).sort_index(axis=1).to_numpy()
