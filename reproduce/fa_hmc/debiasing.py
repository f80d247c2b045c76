"""What debiased gradients repair in FA-HMC, and what they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory

from .. import plot
from ..figure import DATA_SETS, REPLICAS, ByScale, Drawing, Finding, Parameter, Tables, note, settings
from ..verdicts import shares, unanimous
from . import shared as sim
from .shared import groups

TITLE = "What debiased gradients repair, and what they cost"
PAPER = "ours, for FA-HMC section 6 and Algorithm B.2"
SHOWS = ("On 12 random problems: errors of mean and covariance of the stationary law against the number of "
         "local steps, without, with stale and with fresh debiasing; W2 along rounds with replicas; and "
         "where the recursion is stable.")
COST = {"tiny": "3 s", "quick": "8 s", "paper": "about 30 s (estimated)"}
_OURS = "the paper proposes the correction without an experiment on it"
ROUNDING = 1e-9
"""Means nearer to the target's than this share of their size are equal to it."""
KINDS = {"not debiased": None, "stale anchor": "stale", "fresh anchor": "fresh"}
PARAMETERS = [
    Parameter("n_clients", 10, "ours", _OURS),
    Parameter("dim", 2, "ours", _OURS),
    Parameter("curvatures", [0.02, 1.0], "ours", "clients' Hessians have eigenvalues in this range"),
    Parameter("spread", 3.0, "ours", "standard deviation of the clients' minimizers"),
    Parameter("n_sets", 12, "ours", "problems, each judged by itself"),
    Parameter("problem_seed", 0, "ours", "of the first problem; the others follow"),
    Parameter("step_size", 0.15, "ours", _OURS),
    Parameter("leapfrog_steps", 4, "ours", _OURS),
    Parameter("shared_noise", 1.0, "paper", "the experiments' choice"),
    Parameter("local_steps", ByScale([1, 10, 100], [1, 2, 4, 7, 10, 14, 20, 28, 40, 56, 80, 160, 320],
                                     [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 56, 80,
                                      112, 160, 224, 320]), "ours", "T of the left panel"),
    Parameter("curve_steps", 20, "ours", "T of the middle panel"),
    Parameter("n_rounds", ByScale(20, 60, 100), "ours", "length of the curves"),
    Parameter("n_replicas", ByScale(2048, 16384, 131072), "ours", "of the curves"),
    Parameter("lengths", ByScale([0.6, 1.2], [0.1, 0.2, 0.4, 0.6, 1.2],
                                 [0.1, 0.14, 0.2, 0.28, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4]), "ours",
              "trajectory lengths of the right panel"),
    Parameter("most_steps", ByScale(300, 1000, 10000), "ours", "largest T tried for stability"),
    Parameter("n_tried", ByScale(12, 16, 60), "ours", "values of T tried up to there"),
    Parameter("seed", 1, "ours", "of the replicas"),
]


def problem_of(p: Any, number: int) -> fs.Quadratic:
    """Clients of different curvature, directions and minimizers."""
    rng = np.random.default_rng(p.problem_seed + number)
    hessians = np.empty((p.n_clients, p.dim, p.dim))
    low, high = p.curvatures
    for c in range(p.n_clients):
        basis = np.linalg.qr(rng.standard_normal((p.dim, p.dim)))[0]
        hessians[c] = (basis * np.exp(rng.uniform(np.log(low), np.log(high), p.dim))) @ basis.T
    return fs.Quadratic(hessians, p.spread * rng.standard_normal((p.n_clients, p.dim)))


def _algorithm(p: Any, kind: str | None, local_steps: int, length: float | None = None) -> fs.FAHMC:
    step = p.step_size if length is None else length / p.leapfrog_steps
    return fs.FAHMC(step, p.leapfrog_steps, local_steps, p.shared_noise, debias=kind)


def _stationary(problem: fs.Quadratic, algorithm: fs.FAHMC) -> fs.Gaussian | None:
    """The stationary law; None where there is none."""
    try:
        return theory.stationary_law(problem, algorithm)
    except fs.UnstableStepSize:
        return None


def compute(scale: str) -> Tables:
    """Tables: bias, curves (of the first problem), floor, stability."""
    p = settings(PARAMETERS, scale)
    bias, stability = [], []
    for data in range(p.n_sets):
        note(f"problem {data + 1} of {p.n_sets}")
        problem = problem_of(p, data)
        bias += [{"data": data, **row} for row in _bias(p, problem)]
        stability += [{"data": data, **row} for row in _stability(p, problem)]
    first = problem_of(p, 0)
    floor = pd.DataFrame([{"floor": float(fs.distance.w2_floor(first.target().cov, p.n_replicas))}])
    return {"bias": pd.DataFrame(bias), "curves": _curves(p, first), "floor": floor,
            "stability": pd.DataFrame(stability)}


def _bias(p: Any, problem: fs.Quadratic) -> list[dict[str, Any]]:
    """Stationary errors: distance of means, and W2 between the laws centred."""
    target, rows = problem.target(), []
    centred = fs.Gaussian(np.zeros(p.dim), target.cov)
    for name, kind in KINDS.items():
        for steps in p.local_steps:
            law = _stationary(problem, _algorithm(p, kind, steps))
            if law is None:
                continue
            off = float(np.linalg.norm(law.mean - target.mean))
            rows.append({"kind": name, "local_steps": steps,
                         "mean_error": off if off > ROUNDING * np.linalg.norm(target.mean) else 0.0,
                         "spread_error": fs.Gaussian(centred.mean, law.cov).w2(centred),
                         "w2": law.w2(target)})
    return rows


def _curves(p: Any, problem: fs.Quadratic) -> pd.DataFrame:
    tables = []
    for number, (name, kind) in enumerate(KINDS.items()):
        note(f"simulating: {name}")
        algorithm = _algorithm(p, kind, p.curve_steps)
        law = theory.exact_law(problem, algorithm, p.n_rounds)
        run = fs.simulate(problem, algorithm, p.n_rounds, p.n_replicas, seed=p.seed + number)
        band, exact = run.w2_interval(0.95), law.w2()
        deviation, compared = sim.deviation(run, law)
        tables.append(pd.DataFrame({"kind": name, "round": law.rounds, "exact": exact, "w2": run.w2(),
                                    "low": band[:, 0], "high": band[:, 1],
                                    "deviation": deviation, "compared": compared}))
    return pd.concat(tables)


def _stability(p: Any, problem: fs.Quadratic) -> list[dict[str, Any]]:
    """Smallest unstable T by trajectory length; infinity when there is none up to most_steps."""
    rows = []
    grid = np.unique(np.rint(np.geomspace(1, p.most_steps, p.n_tried)).astype(int))
    for name, kind in KINDS.items():
        for length in p.lengths:
            found = next((float(steps) for steps in grid
                          if _stationary(problem, _algorithm(p, kind, int(steps), length)) is None), np.inf)
            rows.append({"kind": name, "length": length, "unstable_from": found, "tried_to": int(grid[-1])})
    return rows


def draw(tables: Tables) -> Drawing:
    """Stationary errors against T; W2 along rounds; stability."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.1, 5.6)
    _draw_bias(left, tables["bias"])
    _draw_curves(middle, tables)
    _draw_stability(right, tables["stability"])
    return drawing


def _draw_bias(ax: Axes, bias: pd.DataFrame) -> None:
    parts = (("spread_error", "--", "covariance's part"), ("mean_error", "-", "mean's part"))
    for column, dashes, what in parts:
        for (name, one), colour in zip(bias.groupby("kind", sort=False), plot.COLOURS, strict=False):
            seen = one.groupby("local_steps")[column].agg(["min", "median", "max"])
            if seen["max"].max() == 0.0:
                ax.plot([], [], " ", label=f"exact law, {name}: {what} is 0")
                continue
            ax.fill_between(seen.index, seen["min"], seen["max"], color=colour, alpha=0.15, linewidth=0)
            ax.plot(seen.index, seen["median"], color=colour, linestyle=dashes, marker="o", markersize=4,
                    label=f"exact law, {name}: {what}")
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.3,
                    label="all problems, where stable (lines: medians)")
    ax.set(xscale="log", yscale="log", xlabel="local steps T", ylabel=r"part of stationary $W_2$",
           title="what is left after infinitely many rounds")
    sim.legend_below(ax)


def _draw_curves(ax: Axes, tables: Tables) -> None:
    curves = tables["curves"]
    for (name, one), colour in zip(curves.groupby("kind", sort=False), plot.COLOURS, strict=False):
        plot.replicas(ax, one["round"], one["w2"], one["low"].clip(lower=1e-9), one["high"], colour)
        plot.exact(ax, one["round"], one["exact"], colour, f"exact law, {name}")
    plot.floor(ax, float(tables["floor"]["floor"].iloc[0]))
    ax.set(yscale="log", xlabel="communication round", ylabel=r"$W_2$ of law and target",
           title="T = 20, started at 0, first problem")
    low = min(float(tables["floor"]["floor"].iloc[0]), float(curves["exact"].min()))
    ax.set_ylim(0.6 * low, 1.5 * float(curves["exact"].max()))
    sim.legend_below(ax)


def _draw_stability(ax: Axes, table: pd.DataFrame) -> None:
    top = 2.0 * float(table["tried_to"].max())
    for i, (name, one) in enumerate(groups(table, "kind")):
        x = one["length"] * 1.07 ** (i - 1)  # set apart
        ax.plot(x, one["unstable_from"].clip(upper=top), "os^"[i], color=plot.COLOURS[i], markersize=5,
                alpha=0.6, label=f"{name}, each problem")
    ax.axhline(top / 1.4, color=plot.GREY, linewidth=0.8,
               label=f"above: stable up to T = {table['tried_to'].max()}, the largest tried")
    ax.set(xscale="log", yscale="log", xlabel=r"trajectory length $K\eta$", ylabel="smallest unstable T",
           title="stability")
    ax.set_ylim(0.8, 1.6 * top)
    sim.legend_below(ax)


ANCHORS = ("stale anchor", "fresh anchor")


def _table(tables: Tables, kind: str, column: str) -> pd.DataFrame:
    """By T (rows) and problem (columns); NaN where unstable."""
    bias = tables["bias"]
    return bias[bias["kind"] == kind].pivot(index="local_steps", columns="data", values=column)


def judge_mean(tables: Tables) -> tuple[str, str]:
    """Do the debiased stationary laws have the target's mean?"""
    plain = _table(tables, "not debiased", "mean_error")
    worst = pd.concat([_table(tables, kind, "mean_error").max() for kind in ANCHORS], axis=1).max(axis=1)
    good = (worst == 0.0) & (plain.max() > 0.0)
    return unanimous(good), (
        f"Without correction the stationary mean is off by {plain.iloc[0].median():.2g} at T = "
        f"{plain.index[0]} and {plain.iloc[-1].median():.2g} at T = {plain.index[-1]} in the median; with "
        "either anchor it is off by "
        + (f"up to {worst.max():.2g}" if worst.max() > 0.0 else f"less than {ROUNDING:g} of its size")
        + f" wherever the recursion is stable: repaired {shares(good, 'problems')}.")


def _against_plain(tables: Tables, column: str) -> dict[str, pd.DataFrame]:
    """Errors with each anchor over those without correction, where stable."""
    return {kind: _table(tables, kind, column) / _table(tables, "not debiased", column) for kind in ANCHORS}


def _extremes(parts: dict[str, pd.DataFrame], low: float) -> str:
    """Ratios at the T nearest to `low` and at the largest stable one, medians over problems."""
    texts = []
    for kind, ratio in parts.items():
        few = min(ratio.index, key=lambda steps: abs(steps - low))
        last = ratio.apply(lambda one: one.dropna().iloc[-1])
        texts.append(f"{kind}: {ratio.loc[few].median():.2g} at T = {few}, {last.median():.2g} at the "
                     "largest stable T")
    return "; ".join(texts)


def judge_covariance(tables: Tables) -> tuple[str, str]:
    """Is at most a tenth of the covariance's part left?"""
    parts = _against_plain(tables, "spread_error")
    good = pd.concat([ratio.max() < 0.1 for ratio in parts.values()], axis=1).all(axis=1)
    return unanimous(good), (
        "The covariance's part of the stationary W2 over that without correction, in the median: "
        f"{_extremes(parts, 10)}; below a tenth at every stable T {shares(good, 'problems')}.")


def judge_helps(tables: Tables) -> tuple[str, str]:
    """Is W2 smaller at every stable T?"""
    parts = _against_plain(tables, "w2")
    good = pd.concat([ratio.max() < 1.0 for ratio in parts.values()], axis=1).all(axis=1)
    return unanimous(good), (
        f"Stationary W2 over that without correction, in the median: {_extremes(parts, 10)}; smaller at "
        f"every stable T {shares(good, 'problems')}.")


def judge_stable(tables: Tables) -> tuple[str, str]:
    """Is there no unstable T?"""
    table = tables["stability"]
    worst = table.pivot_table(index="data", columns="kind", values="unstable_from", aggfunc="min")
    good = np.isinf(worst[list(ANCHORS)]).all(axis=1)
    return unanimous(good), (
        "Smallest unstable T over all lengths: "
        + ", ".join(f"{kind} " + ("none" if np.isinf(found).all() else
                                    f"{found.min():g} to {found.max():g}")
                    for kind, found in worst[list(KINDS)].items())
        + f". With either anchor every T is stable {shares(good, 'problems')}.")


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """Replicas of all three."""
    runs = tables["curves"].groupby("kind")[["deviation", "compared"]].first()
    return sim.follows(runs["deviation"], runs["compared"])


_ABOUT = "section 6 and Algorithm B.2"
_FUTURE = "The paper proposes this as future work and claims none of it."
CLAIMS = [
    Finding("Debiased gradients remove the bias of unlike clients from the mean of the stationary law.",
            _ABOUT, judge_mean, name="mean", rests_on=DATA_SETS, context=_FUTURE),
    Finding("Debiased gradients remove the bias of the covariance as well: less than a tenth is left at "
            "every stable number of local steps.", _ABOUT, judge_covariance, name="covariance",
            rests_on=DATA_SETS,
            context=_FUTURE + " Within a round the correction shifts gradients by a constant, and leaves "
            "every client's own curvature in the noise."),
    Finding("The stationary W2 is smaller with debiased gradients at every stable number of local steps.",
            _ABOUT, judge_helps, name="w2", rests_on=DATA_SETS,
            context=_FUTURE + " Near its limit of stability a correction amplifies the noise of rounds."),
    Finding("Debiased gradients are stable for every number of local steps.", _ABOUT, judge_stable,
            name="stability", rests_on=DATA_SETS,
            context=_FUTURE + " Where clients reach their own laws within a round, the round multiplies the "
            "anchor's error by I - H, H being about mean Hessian times mean inverse Hessian, which is above "
            "2 for clients of very different curvature."),
    Finding("Replicas follow the exact laws, debiased or not.", _ABOUT, judge_replicas, name="replicas",
            rests_on=REPLICAS, context=_FUTURE),
]
