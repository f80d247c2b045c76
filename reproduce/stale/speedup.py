"""Shared by the stale-gradient figures 2(a) to 2(c) on the Gaussian model: an asynchronous server with W
workers, its variance along iterations and simulated time, and speedups at equal variance.

Figure 2 of the paper is of logistic regression on a cluster; here the model is that of its figure 1, whose
law is exact, and time is simulated by `fedsim.Workers`. Every data set has service times of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim as fs
from theory.rates import fit_rate
from theory.stale import AverageLaw, first_reaching

from ..figure import ByScale, Parameter, note
from . import shared as sim
from .law import Sums, followed

BATCH = Parameter("batch_size", 10, "ours", "that of the paper's figure 1; figure 2's is not printed")
SCHEDULE_SEED = Parameter("schedule_seed", 0, "ours", "of the service times with the first data set, the "
                                                      "next numbers with the others; one for all replicas")
REPLICAS = Parameter("n_replicas", ByScale(256, 1000, 2000), "ours",
                     "the paper's 10 runs estimate a variance to within a factor of about 2 to 3")
COMMON = [sim.WORKERS, sim.DATA, BATCH, sim.SERVICE, sim.START, SCHEDULE_SEED, sim.DATA_SEED, sim.N_SETS,
          sim.SEED, REPLICAS]
BURN_IN = 3.0
"""Relaxation times 1/(h a) of one worker after which variances are compared: 5% of a start are left."""


class Run(NamedTuple):
    """Exact law of averages on one data set with one number of workers, and what the workers did."""

    law: AverageLaw
    history: Any


def algorithm(p: Any, problem: fs.GaussianMean, ha: float, update_cost: float, n_workers: int,
              k: int) -> fs.StaleSGLD:
    """Stale SGLD with step size h a / a, and W workers; the server handles one gradient at a time."""
    workers = fs.Workers(n_workers, p.service, update_cost=update_cost, seed=p.schedule_seed + k)
    return fs.StaleSGLD(ha / problem.curvature, workers)


def _run(problem: fs.GaussianMean, one: fs.StaleSGLD, ha: float, length: int) -> Run:
    history = one.staleness.history(length)
    return Run(Sums.of(ha, history.ages).law(problem, one.schedule.largest), history)


def runs(p: Any, problems: list[fs.GaussianMean], ha: float, update_cost: float,
         per_worker: int) -> dict[tuple[int, int], Run]:
    """By data set and W, up to L = W per_worker."""
    found = {}
    for k, problem in enumerate(problems):
        note(f"exact laws of data set {k}, h a = {ha:g}, u = {update_cost:g}")
        for n in p.workers:
            found[k, n] = _run(problem, algorithm(p, problem, ha, update_cost, n, k), ha, n * per_worker)
    return found


def curves(p: Any, problems: list[fs.GaussianMean], ha: float, update_cost: float,
           found: dict[tuple[int, int], Run], stream: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of the typical data set by exact law and replicas, for every W; scores of the latter at the end.

    `stream` tells apart the random numbers of several calls.
    """
    k, rows, ends = sim.typical(problems), [], []
    for n in p.workers:
        law, history = found[k, n]
        one, lengths = algorithm(p, problems[k], ha, update_cost, n, k), sim.spaced(int(law.lengths[-1]))
        labels = {"ha": ha, "update_cost": update_cost, "workers": n}
        averages = sim.running_averages(problems[k], one, lengths, p.n_replicas, p.seed + n + 100 * stream,
                                        followed(problems[k]))
        ends.append(labels | sim.scores(averages[:, -1], law))
        rows += [table.assign(per_worker=lengths / n, time=history.times[lengths - 1])
                 for table in (sim.exact_rows(law, lengths, **labels),
                               sim.replica_rows(averages, lengths, law.truth, **labels))]
    table = pd.concat(rows, ignore_index=True).fillna(0.0)  # the exact law has no interval
    return table, pd.DataFrame(ends)


def workers_table(ha: float, update_cost: float, found: dict[tuple[int, int], Run]) -> pd.DataFrame:
    """Ages and throughput of every run."""
    return pd.DataFrame([
        {"ha": ha, "update_cost": update_cost, "data_set": k, "workers": n, "iteration": int(law.lengths[-1]),
         "mean_age": float(history.ages.mean()), "largest_age": int(history.ages.max()),
         "throughput": len(history.times) / float(history.times[-1])}
        for (k, n), (law, history) in found.items()])


def compared(p: Any, ha: float, update_cost: float, found: dict[tuple[int, int], Run],
             axis: str) -> pd.DataFrame:
    """Exact variances of all W at 12 equal places of `axis`, "per_worker" or "time", for every data set.

    From `BURN_IN` to the last place that all reach; interpolated in logarithms.
    """
    rows = []
    for k in range(p.n_data_sets):
        places = {n: found[k, n].law.lengths / n if axis == "per_worker" else found[k, n].history.times
                  for n in p.workers}
        first = float(places[p.workers[0]][round(BURN_IN / ha) - 1])
        grid = np.geomspace(first, min(place[-1] for place in places.values()), 12)
        for n, place in places.items():
            values = np.exp(np.interp(np.log(grid), np.log(place), np.log(found[k, n].law.variance)))
            rows.append(pd.DataFrame({"ha": ha, "update_cost": update_cost, "data_set": k, "workers": n,
                                      axis: grid, "variance": values}))
    return pd.concat(rows, ignore_index=True)


def falls(judged: pd.DataFrame, axis: str) -> np.ndarray:
    """For each data set: is the variance the smaller the more workers, at all places?"""
    wide = judged.pivot(index=["data_set", axis], columns="workers", values="variance").sort_index(axis=1)
    order = pd.Series((np.diff(wide.to_numpy(), axis=1) < 0.0).all(axis=1), index=wide.index)
    return order.groupby("data_set").all().to_numpy()


def gains(judged: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Variance of one worker over that of W at the last place, by data set and W."""
    last = judged[judged[axis] == judged.groupby("data_set")[axis].transform("max")]
    wide = last.pivot(index="data_set", columns="workers", values="variance").sort_index(axis=1)
    return wide.rdiv(wide.iloc[:, 0], axis=0)


def shapes(p: Any, problems: list[fs.GaussianMean], ha: float,
           found: dict[tuple[int, int], Run]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Theorem 4's shape 1/(L h) + h^2 with the least constant that covers one worker's exact curve.

    One worker is followed up to the L that the most workers reach together, so that `ratio`, the largest
    exact variance over that shape, tells what staleness adds. Returns the typical data set's shapes of the
    fewest and the most workers, and the ratios of all.
    """
    h, few, most = ha / problems[0].curvature, min(p.workers), max(p.workers)
    fresh, chosen, drawn, ratios = None, sim.typical(problems), [], []
    for k, problem in enumerate(problems):
        fresh = fresh or Sums.of(ha, np.zeros(len(found[k, most].law.lengths), dtype=np.int64))
        law = fresh.law(problem, h)
        constant = fit_rate(law.lengths, 1.0 / (law.lengths * h) + h**2, law.variance).constant
        for n in p.workers:
            mine = found[k, n].law
            shape = constant * (1.0 / (mine.lengths * h) + h**2)
            ratios.append({"ha": ha, "data_set": k, "workers": n,
                           "ratio": float((mine.variance / shape).max())})
            if k == chosen and n in (few, most):
                at = sim.spaced(int(mine.lengths[-1])) - 1
                drawn.append(pd.DataFrame({"ha": ha, "workers": n, "per_worker": mine.lengths[at] / n,
                                           "constant": constant, "shape": shape[at]}))
    return pd.concat(drawn, ignore_index=True), pd.DataFrame(ratios)


def reaching(lengths: np.ndarray, values: np.ndarray, precision: float) -> float:
    """Where a curve first falls to `precision`, between the lengths; infinite if nowhere."""
    later = np.flatnonzero(values <= precision)
    if not len(later):
        return float("inf")
    k = int(later[0])
    if k == 0:
        return float(lengths[0])
    (x0, x1), (y0, y1) = np.log(lengths[k - 1:k + 1]), np.log(values[k - 1:k + 1])
    return float(np.exp(x0 + (np.log(precision) - y0) / (y1 - y0) * (x1 - x0)))


def _reach(problem: fs.GaussianMean, one: fs.StaleSGLD, ha: float, goal: float, length: int,
           tries: int = 6) -> tuple[Run, int]:
    """The run up to where its exact variance falls to `goal`, and that L."""
    for _ in range(tries):
        run = _run(problem, one, ha, length)
        found = first_reaching(run.law.lengths, run.law.variance, goal)
        if found is not None:
            return run, found
        length = 3 * length // 2
    raise ValueError(f"goal={goal!r} is not reached within {2 * length // 3} iterations")


def speedups(p: Any, problems: list[fs.GaussianMean], ha: float, update_cost: float, single_length: int,
             stream: int | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Iteration and time speedup of every W at the variance that one worker has after `single_length`.

    For every data set; for the typical one also by replicas, given the `stream` of their random numbers.
    """
    rows, seen, chosen = [], [], sim.typical(problems)
    for k, problem in enumerate(problems):
        note(f"exact speedups of data set {k}, h a = {ha:g}, u = {update_cost:g}")
        first_time = goal = 1.0
        for n in p.workers:
            one = algorithm(p, problem, ha, update_cost, n, k)
            if n == 1:
                run, length = _run(problem, one, ha, single_length), single_length
                goal, first_time = float(run.law.variance[-1]), float(run.history.times[-1])
            else:
                run, length = _reach(problem, one, ha, goal, int(1.1 * n * single_length))
            time = float(run.history.times[length - 1])
            row = {"ha": ha, "update_cost": update_cost, "data_set": k, "workers": n, "variance": goal,
                   "iteration": length, "iteration_speedup": single_length * n / length,
                   "time": time, "time_speedup": first_time / time}
            rows.append(row)
            if stream is not None and k == chosen:
                seen.append(row | _by_replicas(p, problem, one, run.law, length, single_length * n,
                                               p.seed + n + 100 * stream))
    return rows, seen


def _by_replicas(p: Any, problem: fs.GaussianMean, one: fs.StaleSGLD, law: AverageLaw, length: int,
                 single: int, seed: int) -> dict[str, float]:
    """Iteration speedup read off the replicas' variance and the ends of its band; scores at the exact L."""
    lengths = np.union1d(sim.spaced(3 * length // 2, 120, max(1, length // 20)), [length])
    averages = sim.running_averages(problem, one, lengths, p.n_replicas, seed, followed(problem))
    found, goal = sim.replica_rows(averages, lengths, law.truth), float(law.variance[length - 1])
    names = {"replicas": "variance", "replicas_low": "variance_high", "replicas_high": "variance_low"}
    speedup = {name: single / reaching(lengths, found[column].to_numpy(), goal)
               for name, column in names.items()}
    return speedup | sim.scores(averages[:, np.searchsorted(lengths, length)], law, length)
