"""Shared by FA-LD's figures: the simulated problem's numbers, curves of exact law, replicas and bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory

from .. import plot, statistics
from ..figure import ByScale, Parameter, note
from ..tables import among

EPS = 1e-3
AROUND = 10.0**0.5
"""The paper's "around": within half a power of ten, either way."""
SAME = 1e-6
"""Relative differences below it are rounding: of the target's mean it is 1e-9 of W2 at the end."""
EARLY = 128
QUOTED = {0.0: "1e8", 1.0: "4e11", 10.0: "4e12", 100.0: "4e13", 1000.0: "4e14"}
"""What section 6 calls gamma, by alpha."""

ALPHAS = Parameter("alphas", list(QUOTED), "paper", "section 6")
SHARED_NOISE = Parameter("shared_noise", 0.0, "paper", "section 6: rho = 0")
STEP = Parameter("step_size", 1e-7, "paper", "section 6: eta = 1e-7")
SIMULATION = [
    Parameter("n_clients", 50, "paper", "section 6: N = 50"),
    Parameter("n_data", 1000, "ours", "data per client are not printed; 1000 gives the quoted gamma"),
    STEP,
    Parameter("start", [0.0, 0.0], "ours", "the starting point is not printed"),
    Parameter("gradients", "exact", "ours", "section 6 mentions no minibatches for the simulation"),
    Parameter("data_seed", 0, "ours", "of the first data set; the others have the next seeds"),
    Parameter("n_data_sets", ByScale(12, 15, 101), "ours", "the paper has one; each is judged"),
    Parameter("seed", 1, "ours", "seed of the replicas' random numbers"),
]
REPLICAS = Parameter("n_replicas", 300, "paper", "appendix I: R = 300")


def problem_of(p: Any, alpha: float, number: int = 0, spread: float = 0.0) -> fs.Quadratic:
    """The simulated problem on the data set of this number; with a spread, our variant of unequal n_c."""
    return fs.papers.fa_ld_unequal_curvature(alpha, p.data_seed + number, spread=spread,
                                             n_clients=p.n_clients, n_data=p.n_data)


def fitted_w2(p: Any, problem: fs.Quadratic, algorithm: fs.FALD, n_rounds: int, seed: int,
              record: Any = None) -> np.ndarray:
    """W2 at recorded rounds of the Gaussian fitted to replicas, the paper's estimator.

    Replicas are drawn from the exact law of their path.
    """
    draws = theory.exact.sample_rounds(problem, algorithm, n_rounds, p.n_replicas, seed=seed, start=p.start,
                                       record=record)
    mean, target = draws.mean(axis=0), problem.target()
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


def curves_and_bounds(p: Any, cases: Iterable[tuple[dict[str, Any], fs.Quadratic, fs.FALD, int]],
                      bound_at: Any = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Curves and printed bounds of cases (labels, problem, algorithm, number added to the seed).

    The replicas' curve is W2 of the Gaussian fitted to them, the paper's estimator: its upward bias is the
    finite-replica floor. Bounds are at the curves' rounds, or at `bound_at`.

    Returns
    -------
    curves : (labels, kind, round, w2, low, high), kind "exact" or "replicas"
    bounds : (labels, round, bound, vacuous, within_hypotheses)
    """
    rounds, short = spaced(p.n_rounds, p.n_recorded), spaced(p.n_simulated, p.n_recorded)
    curves, bounds = [], []
    for labels, problem, algorithm, number in cases:
        note("simulating " + ", ".join(f"{name}={value}" for name, value in labels.items()))
        run = fs.simulate(problem, algorithm, n_rounds=int(short[-1]), n_replicas=p.n_replicas,
                          seed=p.seed + number, record=short, start=p.start)
        low, high = run.w2_interval(0.95).T
        curves += [exact_rows(problem, algorithm, rounds, p.start, **labels),
                   pd.DataFrame({**labels, "kind": "replicas", "round": run.rounds, "w2": run.w2(),
                                 "low": low, "high": high})]
        statement = theory.fa_ld.w2_bound_partial if algorithm.participation else theory.fa_ld.w2_bound
        bound = statement(theory.constants(problem, algorithm, p.start), algorithm, n_rounds=p.n_rounds,
                          record=rounds if bound_at is None else bound_at, variant="printed")
        bounds.append(pd.DataFrame({**labels, "round": bound.rounds, "bound": bound.value,
                                    "vacuous": bool(bound.is_vacuous),
                                    "within_hypotheses": all(item.holds for item in bound.assumptions)}))
    return pd.concat(curves), pd.concat(bounds)


def floor_of(problem: Any, n_replicas: int) -> float:
    """Root mean square W2 that a fit to perfect draws of the target would show."""
    return float(fs.distance.w2_floor(problem.target().cov, n_replicas))


def median_with_infinity(values: Any) -> float:
    """Median in which "never" is infinitely late (lower of the middle two, so inf means a majority)."""
    return float(np.sort(np.asarray(values, dtype=float))[(len(values) - 1) // 2])


def first_within(w2: np.ndarray, eps: float) -> float:
    """First round at which the curve over all rounds is at most eps, infinity when it never is."""
    return float(np.argmax(w2 <= eps)) if w2.min() <= eps else np.inf


def rounds_to(problem: Any, algorithm: Any, eps: float, start: Any = None) -> float:
    """Rounds of the exact law to W2 <= eps; infinity when it never gets there."""
    early = first_within(w2_curve(problem, algorithm, np.arange(EARLY + 1), start), eps)
    # spares most calls a search over a thousand rounds
    return early if np.isfinite(early) else statistics.rounds_to(problem, algorithm, eps, start=start)


def named(alpha: Any) -> str:
    """Label of a heterogeneity, with the number that the paper gives for it."""
    return rf"$\alpha$ = {alpha:g} (the paper's $\gamma$ = {QUOTED[alpha]})"


def cloud(ax: Axes, table: pd.DataFrame, colour: Any) -> None:
    """Replicas of one curve: a thin line and its band."""
    ax.fill_between(table["round"], table["low"], table["high"], color=colour, alpha=0.2, linewidth=0)
    ax.plot(table["round"], table["w2"], color=colour, linewidth=0.7)
    ax.plot([], [], color=plot.GREY, linewidth=0.7, label="thin, with 95% band: fitted to replicas")


def draw_curve(ax: Axes, curve: pd.DataFrame, colour: Any, label: str, **options: Any) -> None:
    """Replicas and exact law of one curve along rounds, from round 1 on."""
    late = curve[curve["round"] > 0]
    cloud(ax, among(late, kind="replicas"), colour)
    line = among(late, kind="exact")
    plot.exact(ax, line["round"], line["w2"], colour, f"exact law, {label}", **options)


def exact_curves(curves: pd.DataFrame, by: str) -> pd.DataFrame:
    """W2 of the exact law: a row a round after the start, a column for each value of `by`."""
    return among(curves, kind="exact").query("round > 0").pivot(index="round", columns=by, values="w2")


def largest_gap(w2: pd.DataFrame) -> float:
    """How far exact curves, the columns, are apart at most, relative to the lowest."""
    return float((w2.max(axis=1) / w2.min(axis=1)).max() - 1.0)


def size_of(gap: float) -> str:
    """A relative difference in words."""
    return "nothing beyond rounding" if gap < SAME else f"{gap:.0e} relative"
