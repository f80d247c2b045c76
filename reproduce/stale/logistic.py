"""Shared by the stale-gradient figures on logistic regression: chains of stale SGHMC, one server or several,
and the test loss averaged along them, on several data sets.

Every data set has chains and service times of its own, so that it counts as one independent draw. Within
it every server has its own service times and chains; chain r of different numbers of workers has the same
normal draws, so that differences between them are sharper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim as fs
from fedsim.laws.estimators import combine
from fedsim.stability.search import stability_radius

from .. import figure as fig
from ..data_files import Files
from ..figure import ByScale, Parameter
from ..reference import posterior_reference
from ..tables import spaced
from ..verdicts import intervals
from . import adult, shared as sim

SEEDS_APART = 100
"""Seeds of one data set are so far from the next one's: more than there are servers."""
UPDATE_COST = Parameter("update_cost", 0.1, "ours",
                        "time of an update at the server, in mean service times: the simulated latency")
SERVERS = Parameter("servers", [1, 3, 5, 7], "paper", "section 5.2: S = 1, 3, 5, 7")
SCHEDULE_SEED = Parameter("schedule_seed", 3, "ours",
                          "of the service times of the first server and data set")
DYNAMICS = [
    sim.SERVICE, UPDATE_COST, SCHEDULE_SEED, sim.SEED,
    Parameter("rate", 0.01, "ours", "h^2 n, Caffe's default rate on the mean loss; not printed for a9a"),
    Parameter("momentum", 0.9, "ours", "m, Caffe's default. The paper prints B = 1 - m; Algorithm 1 keeps 1 "
              "- B h of the velocity, so that B = (1 - m)/h is meant"),
    Parameter("reference_chains", 8, "ours", "of Metropolis-adjusted HMC, for each data set"),
    Parameter("reference_draws", ByScale(20, 50, 50), "ours", "of each, for the posterior's mean loss")]


def lengths_of(iterations: ByScale, n_replicas: ByScale) -> list[Parameter]:
    """The parameters that say how long and how many the chains are."""
    return [Parameter("iterations", iterations, "ours", "per worker; the paper's axis is not readable"),
            Parameter("n_replicas", n_replicas, "ours", "of each data set; the paper shows single runs")]


class Case(NamedTuple):
    """One data set, and the settings with its seeds."""

    p: Any
    data: adult.Adult
    problem: fs.LogisticRegression


def cases(p: Any, files: Files | None) -> list[Case]:
    """All data sets of a figure."""
    every = []
    for number, data in enumerate(adult.adults(p, files or {})):
        seeds = {name: getattr(p, name) + SEEDS_APART * number for name in ("seed", "schedule_seed")}
        own = SimpleNamespace(**(vars(p) | seeds))
        every.append(Case(own, data, data.problem(p)))
    return every


def workers(p: Any, n_workers: int, server: int = 0) -> fs.Workers:
    """The workers of one server."""
    return fs.Workers(n_workers, p.service, p.update_cost, seed=p.schedule_seed + server)


def algorithm(p: Any, n_workers: int, server: int = 0) -> fs.StaleSGHMC:
    """Stale SGHMC of one server."""
    h = float(np.sqrt(p.rate / p.n_train))
    return fs.StaleSGHMC(h, (1.0 - p.momentum) / h, workers(p, n_workers, server))


class Server(NamedTuple):
    """Running averages (R, L) of the test loss along the chains of a server, and the time of each update."""

    averages: np.ndarray
    times: np.ndarray
    workers: int


Group = Sequence[Server]  # the servers of one data set
Groups = Sequence[Group]  # of every data set


def servers(case: Case, n_workers: int, n_servers: int = 1) -> list[Server]:
    """Independent servers with as many workers each: chains from the origin, L = W iterations updates."""
    p, group = case.p, []
    for number in range(n_servers):
        fig.note(f"simulating W = {n_workers}, server {number + 1}")
        length, moves = n_workers * p.iterations, algorithm(p, n_workers, number)
        path = fs.sample_path(case.problem, moves, length, seed=p.seed + number, n_chains=p.n_replicas,
                              allow_unstable=True)  # table `setting` has the radius; to check each costs more
        averages = np.cumsum(case.data.loss(path), axis=1) / np.arange(1, length + 1)
        group.append(Server(averages, workers(p, n_workers, number).history(length).times, n_workers))
    return group


def averages_at(group: Group, x: Any, axis: str) -> np.ndarray:
    """Averages (R, n) of several servers, weighted by time: all have the same step size.

    At x "iterations" of every worker on average, or at simulated "time"s x.
    """
    x = np.atleast_1d(x)
    lengths = np.array([one.workers * x if axis == "iterations" else
                        np.searchsorted(one.times, x, side="right") for one in group])
    parts = [one.averages[:, length - 1] for one, length in zip(group, lengths, strict=True)]
    return np.stack([combine([part[:, i] for part in parts], spans) for i, spans in
                     enumerate(lengths.T.astype(float))], axis=1)


def _losses(groups: Groups, n_servers: int, x: Any, axis: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread (standard deviation) of the chains of the first servers, (data sets, n) each."""
    each = [averages_at(group[:n_servers], x, axis) for group in groups]
    return (np.stack([averages.mean(axis=0) for averages in each]),
            np.stack([averages.std(axis=0, ddof=1) for averages in each]))


def curve(groups: Groups, x: np.ndarray, axis: str, n_servers: int = 1, **labels: Any) -> pd.DataFrame:
    """Over data sets, the median of the mean loss and its least and largest value, and the median spread."""
    mean, spread = _losses(groups, n_servers, x, axis)
    return pd.DataFrame({**labels, "axis": axis, "x": x.astype(float), "loss": np.median(mean, axis=0),
                         "low": mean.min(axis=0), "high": mean.max(axis=0),
                         "spread": np.median(spread, axis=0)})


def losses_at(groups: Groups, x: float, axis: str, n_servers: int = 1, **labels: Any) -> pd.DataFrame:
    """Mean loss and spread of the chains of every data set at one x."""
    mean, spread = _losses(groups, n_servers, x, axis)
    return pd.DataFrame({**labels, "data_set": np.arange(len(groups)), "axis": axis, "x": float(x),
                         "loss": mean[:, 0], "spread": spread[:, 0]})


def gain(groups: Groups, n_servers: int, x: np.ndarray, axis: str, **labels: Any) -> pd.DataFrame:
    """Mean loss of the first servers minus that of one, with intervals over data sets, each for itself."""
    values = np.stack([(averages_at(group[:n_servers], x, axis) - averages_at(group[:1], x, axis))
                       .mean(axis=0) for group in groups])
    low, high = intervals(values, 1)
    return pd.DataFrame({**labels, "servers": n_servers, "axis": axis, "x": x.astype(float),
                         "difference": values.mean(axis=0), "low": low, "high": high})


def against_both(p: Any, groups: Mapping[int, Groups],
                 labels: Callable[[int, str], dict[str, Any]]) -> tuple[list[pd.DataFrame], pd.DataFrame]:
    """For every number of workers, curves against iterations and time, and losses of every data set.

    The latter after a tenth of the iterations, at their end, and at the last time that all have.
    """
    clock, end = common_times([group for every in groups.values() for group in every]), p.iterations
    curves = [curve(every, x, axis, **labels(n, axis)) for n, every in groups.items()
              for axis, x in (("iterations", spaced(end, 40)), ("time", clock))]
    ends = [losses_at(every, x, axis, workers=n) for n, every in groups.items() for axis, x in (
        ("iterations", max(1, end // 10)), ("iterations", end), ("time", clock[-1]))]
    return curves, pd.concat(ends)


def common_times(groups: Groups) -> np.ndarray:
    """Log-spaced times at which all servers of all groups have begun, and none has ended."""
    times = [one.times for group in groups for one in group]
    return np.geomspace(max(one[0] for one in times), min(one[-1] for one in times), 40)


def common_tables(every: Sequence[Case], counts: Sequence[int]) -> fig.Tables:
    """Tables: data, setting of the first data set, posterior of each."""
    return {"data": adult.data_table([case.data for case in every]),
            "setting": pd.DataFrame([_setting(every[0], n) for n in counts]),
            "posterior": pd.DataFrame([{"data_set": number} | _posterior(case)
                                       for number, case in enumerate(every)])}


def _posterior(case: Case) -> dict[str, float]:
    """The posterior's mean test loss, what every average should converge to, with its standard error."""
    fig.note("sampling the posterior by Metropolis-adjusted HMC")
    sample = posterior_reference(case.problem, n_chains=case.p.reference_chains, seed=case.p.seed,
                                 n_draws=case.p.reference_draws, leapfrog_steps=4, warmup=20)
    mean, error = sample.mean(lambda x: case.data.loss(x)[..., None])
    return {"loss": float(mean[0]), "error": float(error[0]), "acceptance": sample.acceptance}


def _setting(case: Case, n_workers: int) -> dict[str, float]:
    """Ages, stability and simulated clock for a number of workers."""
    length, moves = n_workers * case.p.iterations, algorithm(case.p, n_workers)
    history = workers(case.p, n_workers).history(length)
    return {"workers": n_workers, "mean_age": float(history.ages.mean()),
            "largest_age": int(history.ages.max()), "radius": stability_radius(case.problem, moves),
            "end_time": float(history.times[-1]), "utilisation": float(history.utilisation.mean()),
            "step_size": float(moves.schedule.largest), "friction": moves.friction}
