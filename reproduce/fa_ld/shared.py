"""Shared by FA-LD's figures: the simulated problem's numbers, curves of exact law, replicas and bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory

from .. import plot
from ..figure import ByScale, Parameter, note

PAPER = "On convergence of federated averaging Langevin dynamics"
ETA = 1e-7
EPS = 1e-3
LEVEL = 0.95
AROUND = 10.0**0.5
"""The paper's "around": within half a power of ten, either way."""
EARLY = 128
QUOTED = {0.0: "1e8", 1.0: "4e11", 10.0: "4e12", 100.0: "4e13", 1000.0: "4e14"}
"""What section 6 calls gamma, by alpha."""

CLIENTS = Parameter("n_clients", 50, "paper", "section 6: N = 50")
DATA = Parameter("n_data", 1000, "ours", "data per client are not printed; 1000 gives the quoted gamma")
STEP = Parameter("step_size", ETA, "paper", "section 6: eta = 1e-7")
START = Parameter("start", [0.0, 0.0], "ours", "the starting point is not printed")
REPLICAS = Parameter("n_replicas", 300, "paper", "appendix I: R = 300")
DATA_SEED = Parameter("data_seed", 0, "ours", "of the first data set; the others have the next seeds")
DATA_SETS = Parameter("n_data_sets", ByScale(12, 15, 101), "ours", "the paper has one; each is judged")
SEED = Parameter("seed", 1, "ours", "seed of the replicas' random numbers")
GRADIENTS = Parameter("gradients", "exact", "ours", "section 6 mentions no minibatches for the simulation")


def problem_of(p: Any, alpha: float, number: int = 0) -> fs.Quadratic:
    """The simulated problem, on the data set of this number."""
    return fs.papers.fa_ld_simulation(alpha, p.data_seed + number, n_clients=p.n_clients, n_data=p.n_data)


def unequal_of(p: Any, alpha: float, spread: float, number: int = 0) -> fs.Quadratic:
    """Our variant, weights 1/N beside unequal n_c, on the data set of this number."""
    return fs.papers.fa_ld_unequal_curvature(alpha, p.data_seed + number, spread=spread,
                                             n_clients=p.n_clients, n_data=p.n_data)


def fitted_w2(draws: np.ndarray, target: fs.Gaussian) -> np.ndarray:
    """W2 of the Gaussian fitted to replicas (first axis), the paper's estimator, for every round (second)."""
    mean = draws.mean(axis=0)
    gap = draws - mean
    cov = np.einsum("rni,rnj->nij", gap, gap) / (len(draws) - 1)
    return np.asarray(fs.distance.w2_gaussian(mean, cov, target.mean, target.cov))


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
    early = np.flatnonzero(w2_curve(problem, algorithm, np.arange(EARLY + 1), start) <= eps)
    if len(early):  # spares most calls a search over a thousand rounds
        return float(early[0])
    found = theory.tuning.rounds_to(problem, algorithm, eps, start=start)
    return np.inf if found is None else float(found)


def named(alpha: Any) -> str:
    """Label of a heterogeneity, with the number that the paper gives for it."""
    return rf"$\alpha$ = {alpha:g} (the paper's $\gamma$ = {QUOTED[alpha]})"


def percent(share: Any) -> str:
    """A share in percent."""
    return f"{100.0 * float(share):.0f}%"


def cloud(ax: Axes, table: pd.DataFrame, colour: Any) -> None:
    """Replicas of one curve: a thin line and its band."""
    ax.fill_between(table["round"], table["low"], table["high"], color=colour, alpha=0.2, linewidth=0)
    ax.plot(table["round"], table["w2"], color=colour, linewidth=0.7)
    ax.plot([], [], color=plot.GREY, linewidth=0.7, label="thin, with 95% band: fitted to replicas")


def legend_below(ax: Axes, ncols: int = 1, **options: Any) -> None:
    """A legend under the axes, every name once."""
    handles, labels = ax.get_legend_handles_labels()
    found = dict(zip(labels, handles, strict=True))
    ax.legend(found.values(), found.keys(), loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=ncols,
              **{"fontsize": 9.0, **options})


def tiny(gap: float) -> str:
    """A relative difference in words."""
    return "nothing beyond rounding" if gap < 1e-12 else f"{gap:.0e} relative"
