"""Shared by FA-LD's figures: the simulated problem's numbers, curves of exact law, replicas and bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
import theory

from .figure import Parameter, note

PAPER = "On convergence of federated averaging Langevin dynamics"
ETA = 1e-7
EPS = 1e-3
LEVEL = 0.95

CLIENTS = Parameter("n_clients", 50, "paper", "section 6: N = 50")
DATA = Parameter("n_data", 1000, "ours", "data per client are not printed; 1000 gives the quoted gamma")
STEP = Parameter("step_size", ETA, "paper", "section 6: eta = 1e-7")
START = Parameter("start", [0.0, 0.0], "ours", "the starting point is not printed")
REPLICAS = Parameter("n_replicas", 300, "paper", "appendix I: R = 300")
DATA_SEED = Parameter("data_seed", 0, "ours", "one data set, the first")
SEED = Parameter("seed", 1, "ours", "seed of the replicas' random numbers")
GRADIENTS = Parameter("gradients", "exact", "ours", "section 6 mentions no minibatches for the simulation")


def w2_curve(problem: Any, algorithm: Any, rounds: np.ndarray, start: Any = None) -> np.ndarray:
    """W2 of the exact law to the target at `rounds`."""
    law = theory.exact_law(problem, algorithm, n_rounds=int(rounds[-1]), record=rounds, start=start)
    return law.w2()[np.searchsorted(law.rounds, rounds)]


def spaced(n_rounds: int, count: int) -> np.ndarray:
    """About `count` log-spaced rounds from 0 (always kept) to n_rounds."""
    return fs.recorded_rounds(n_rounds, np.unique(np.rint(np.geomspace(1, n_rounds, count)).astype(int)))


def exact_rows(problem: Any, algorithm: Any, rounds: np.ndarray, start: Any = None,
               **labels: Any) -> pd.DataFrame:
    """Exact W2 as rows (labels, kind="exact", round, w2, low, high)."""
    w2 = w2_curve(problem, algorithm, rounds, start)
    return pd.DataFrame({**labels, "kind": "exact", "round": rounds, "w2": w2, "low": w2, "high": w2})


def replica_rows(problem: Any, algorithm: Any, rounds: np.ndarray, n_replicas: int, seed: int,
                 start: Any = None, **labels: Any) -> pd.DataFrame:
    """Simulated W2 with its band as rows (labels, kind="replicas", round, w2, low, high).

    The curve is W2 of the Gaussian fitted to the replicas, the papers' estimator: its upward bias is
    the finite-replica floor.
    """
    note("simulating " + ", ".join(f"{name}={value}" for name, value in labels.items()))
    run = fs.simulate(problem, algorithm, n_rounds=int(rounds[-1]), n_replicas=n_replicas, seed=seed,
                      record=rounds, start=start)
    band = np.asarray(run.w2_interval(LEVEL))
    return pd.DataFrame({**labels, "kind": "replicas", "round": run.rounds, "w2": run.w2(),
                         "low": band[:, 0], "high": band[:, 1]})


def bound_rows(bound: Any, **labels: Any) -> pd.DataFrame:
    """A bound as rows (labels, round, bound, vacuous, within_hypotheses)."""
    return pd.DataFrame({**labels, "round": bound.rounds, "bound": bound.value,
                         "vacuous": bool(bound.is_vacuous),
                         "within_hypotheses": all(item.holds for item in bound.assumptions)})


def floor_of(problem: Any, n_replicas: int) -> float:
    """Root mean square W2 that a fit to perfect draws of the target would show."""
    return float(fs.distance.w2_floor(problem.target().cov, n_replicas))


def median_with_infinity(values: np.ndarray) -> float:
    """Median in which "never" is infinitely late (lower of the middle two, so inf means a majority)."""
    return float(np.sort(np.asarray(values, dtype=float))[(len(values) - 1) // 2])


def rounds_to(problem: Any, algorithm: Any, eps: float, start: Any = None) -> float:
    """Rounds of the exact law to W2 <= eps; infinity when it never gets there."""
    found = theory.tuning.rounds_to(problem, algorithm, eps, start=start)
    return np.inf if found is None else float(found)


def tiny(gap: float) -> str:
    """A relative difference in words."""
    return "nothing beyond rounding" if gap < 1e-12 else f"{gap:.0e} relative"
