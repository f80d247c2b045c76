"""Shared by the stale-gradient figures 2(a) to 2(c) on the Gaussian model: an asynchronous server with W
workers, its variance along iterations and simulated time, and speedups at equal variance.

Figure 2 of the paper is of logistic regression on a cluster; here the model is that of its figure 1, whose
law is exact, and time is simulated by `fedsim.Workers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
from theory.exact.stale import average_law
from theory.rates import fit_rate
from theory.stale import AverageLaw, first_reaching

from . import _stale as sim
from .figure import ByScale, Parameter

BATCH = Parameter("batch_size", 10, "ours", "that of the paper's figure 1; figure 2's is not printed")
START = Parameter("start", 0.0, "ours", "theta_0 is not printed")
SCHEDULE_SEED = Parameter("schedule_seed", 0, "ours", "of the service times; one schedule for all replicas")
REPLICAS = Parameter("n_replicas", ByScale(128, 1000, 2000), "ours",
                     "the paper's 10 runs estimate a variance to within a factor of about 2 to 3")
COMMON = [sim.WORKERS, sim.DATA, BATCH, sim.SERVICE, START, SCHEDULE_SEED, sim.DATA_SEED, sim.SEED, REPLICAS]


def server(p: Any, n_workers: int, update_cost: float) -> fs.Workers:
    """W workers, and a server that handles one gradient at a time."""
    return fs.Workers(n_workers, p.service, update_cost=update_cost, seed=p.schedule_seed)


def model(p: Any) -> fs.GaussianMean:
    """The Gaussian model."""
    return sim.gaussian_model(p.n_data, p.batch_size, p.data_seed)


def algorithm(problem: fs.GaussianMean, ha: float, workers: fs.Workers) -> fs.StaleSGLD:
    """Stale SGLD with step size h a / a."""
    return fs.StaleSGLD(ha / problem.curvature, workers)


def curves(p: Any, ha: float, update_cost: float, per_worker: int,
           replicas: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors by exact law and replicas for every W up to L = W per_worker; what the workers did."""
    problem, rows, done = model(p), [], []
    for n_workers in p.workers:
        workers, length = server(p, n_workers, update_cost), n_workers * per_worker
        one, lengths = algorithm(problem, ha, workers), sim.spaced(length)
        labels = {"ha": ha, "update_cost": update_cost, "workers": n_workers}
        history = workers.history(length)
        law = average_law(problem, one, length, start=[p.start])
        found = [sim.exact_rows(law, lengths, **labels)]
        if replicas:
            averages = sim.running_averages(problem, one, lengths, p.n_replicas, p.seed + n_workers,
                                            [p.start])
            found.append(sim.replica_rows(averages, lengths, law.truth, **labels))
        for table in found:
            rows.append(table.assign(per_worker=table["iteration"] / n_workers,
                                     time=history.times[lengths - 1]))
        done.append({**labels, "iteration": length, "mean_age": float(history.ages.mean()),
                     "largest_age": int(history.ages.max()), "time": float(history.times[-1]),
                     "throughput": length / float(history.times[-1]),
                     "utilisation": float(history.utilisation.mean()),
                     "step_size": float(one.schedule.largest),
                     "share_of_limit": float(ha / problem.curvature / one.stability(problem).max_step_size)})
    return pd.concat(rows, ignore_index=True).fillna(0.0), pd.DataFrame(done)


def fitted_shapes(p: Any, table: pd.DataFrame, done: pd.DataFrame) -> pd.DataFrame:
    """Theorem 4's shape 1/(L h) + h^2 with the least constant that covers one worker's exact curve.

    One worker is followed up to the L that the most workers reach together, so that `ratio`, exact variance
    over that shape, tells what staleness adds.
    """
    problem, rows = model(p), []
    for (ha, n_workers), one in table[table["kind"] == "exact"].groupby(["ha", "workers"], sort=False):
        mine = done[(done["ha"] == ha) & (done["workers"] == n_workers)]
        h = float(mine["step_size"].iloc[0])
        if n_workers == 1:
            law = average_law(problem, fs.StaleSGLD(h, 0), int(table["iteration"].max()), start=[p.start])
            constant = fit_rate(law.lengths, 1.0 / (law.lengths * h) + h**2, law.variance).constant
        shape = constant * (1.0 / (one["iteration"].to_numpy() * h) + h**2)
        rows.append(pd.DataFrame({"ha": ha, "workers": n_workers, "iteration": one["iteration"].to_numpy(),
                                  "per_worker": one["per_worker"].to_numpy(), "constant": constant,
                                  "shape": shape, "ratio": one["variance"].to_numpy() / shape}))
    return pd.concat(rows, ignore_index=True)


def reaching(lengths: np.ndarray, values: np.ndarray, peak: int, precision: float) -> float:
    """Where a curve falls to `precision` after its place `peak`, between the lengths; infinite if nowhere."""
    later = np.flatnonzero(values[peak:] <= precision)
    if not len(later):
        return float("inf")
    k = peak + int(later[0])
    if k == peak:
        return float(lengths[k])
    (x0, x1), (y0, y1) = np.log(lengths[k - 1:k + 1]), np.log(values[k - 1:k + 1])
    return float(np.exp(x0 + (np.log(precision) - y0) / (y1 - y0) * (x1 - x0)))


def _reach(problem: fs.GaussianMean, one: fs.StaleSGLD, start: float, goal: float, length: int,
           tries: int = 5) -> tuple[AverageLaw, int]:
    """The exact law up to where its variance falls to `goal`, and that L."""
    for _ in range(tries):
        law = average_law(problem, one, length, start=[start])
        found = first_reaching(law.lengths, law.variance, goal)
        if found is not None and found < length:
            return law, found
        length *= 2
    raise ValueError(f"goal={goal!r} is not reached within {length // 2} iterations")


def speedups(p: Any, ha: float, update_cost: float, single_length: int,
             replicas: bool) -> list[dict[str, Any]]:
    """Iteration and time speedup of every W at the variance that one worker has after `single_length`."""
    problem, rows, first_time, goal = model(p), [], 1.0, 1.0
    for n_workers in p.workers:
        workers = server(p, n_workers, update_cost)
        one = algorithm(problem, ha, workers)
        if n_workers == 1:
            law = average_law(problem, one, 2 * single_length, start=[p.start])
            goal = float(law.at(single_length).variance[0])
            length = first_reaching(law.lengths, law.variance, goal) or 0
            first_time = float(workers.history(single_length).times[length - 1])
        else:
            law, length = _reach(problem, one, p.start, goal, int(1.25 * n_workers * single_length))
        time = float(workers.history(length).times[length - 1])
        row = {"ha": ha, "update_cost": update_cost, "workers": n_workers, "variance": goal,
               "iteration": length, "iteration_speedup": single_length * n_workers / length,
               "time": time, "time_speedup": first_time / time}
        if replicas:
            row |= _by_replicas(p, problem, one, n_workers, goal, length, single_length)
        rows.append(row)
    return rows


def _by_replicas(p: Any, problem: fs.GaussianMean, one: fs.StaleSGLD, n_workers: int, goal: float,
                 length: int, single_length: int) -> dict[str, float]:
    """Iteration speedup read off the replicas' variance and off the ends of its band."""
    last = 3 * length // 2
    lengths = sim.spaced(last, 120, max(1, length // 20))
    averages = sim.running_averages(problem, one, lengths, p.n_replicas, p.seed + n_workers, [p.start])
    truth = sim.followed_truth(problem)
    found = sim.replica_rows(averages, lengths, truth)
    peak = int(np.argmax(found["variance"].to_numpy()))  # of both ends of the band as well
    names = {"replicas": "variance", "replicas_low": "variance_high", "replicas_high": "variance_low"}
    return {name: single_length * n_workers / reaching(lengths, found[column].to_numpy(), peak, goal)
            for name, column in names.items()}
