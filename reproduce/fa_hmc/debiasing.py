"""What debiased gradients repair in FA-HMC, and what they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from fedsim.stability.search import stability_radius

from .. import plot
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, note, settings
from ..statistics import deviation, follows
from ..tables import among, groups, spaced
from ..tabulate import tabulate
from ..verdicts import DATA_SETS, REPLICAS, shares, unanimous
from . import shared as sim

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
_, *ANCHORS = KINDS
LOOKS: dict[str, dict[str, Any]] = {name: {"color": colour, "marker": marker} for name, colour, marker in zip(
    KINDS, plot.COLOURS, "os^", strict=False)}
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


def _algorithm(p: Any, kind: str, local_steps: int, length: float | None = None) -> fs.FAHMC:
    step = p.step_size if length is None else length / p.leapfrog_steps
    return fs.FAHMC(step, p.leapfrog_steps, local_steps, p.shared_noise, debias=KINDS[kind])


def _stationary(problem: fs.Quadratic, algorithm: fs.FAHMC) -> fs.Gaussian | None:
    """The stationary law; None where there is none."""
    try:
        return theory.stationary_law(problem, algorithm)
    except fs.UnstableStepSize:
        return None


def compute(scale: str) -> Tables:
    """Tables: bias, curves (of the first problem), floor, stability."""
    p = settings(PARAMETERS, scale)
    kinds = {"data": range(p.n_sets), "kind": KINDS}
    floor = float(fs.distance.w2_floor(problem_of(p, 0).target().cov, p.n_replicas))
    return {"bias": tabulate("bias", _bias, p, {**kinds, "local_steps": p.local_steps}),
            "curves": _curves(p), "floor": pd.DataFrame([{"floor": floor}]),
            "stability": tabulate("stability", _stability, p, {**kinds, "length": p.lengths})}


def _bias(p: Any, data: int, kind: str, local_steps: int) -> list[dict[str, float]]:
    """Stationary errors: distance of means, and W2 between the laws centred; none where unstable."""
    problem = problem_of(p, data)
    law, target = _stationary(problem, _algorithm(p, kind, local_steps)), problem.target()
    if law is None:
        return []
    off, zero = float(np.linalg.norm(law.mean - target.mean)), np.zeros(p.dim)
    return [{"mean_error": off if off > ROUNDING * np.linalg.norm(target.mean) else 0.0,
             "spread_error": fs.Gaussian(zero, law.cov).w2(fs.Gaussian(zero, target.cov)),
             "w2": law.w2(target)}]


def _curves(p: Any) -> pd.DataFrame:
    tables, problem = [], problem_of(p, 0)
    for number, kind in enumerate(KINDS):
        note(f"simulating: {kind}")
        algorithm = _algorithm(p, kind, p.curve_steps)
        law = theory.exact_law(problem, algorithm, p.n_rounds)
        run = fs.simulate(problem, algorithm, p.n_rounds, p.n_replicas, seed=p.seed + number)
        (low, high), (worst, compared) = run.w2_interval(0.95).T, deviation(run, law)
        tables.append(pd.DataFrame({"kind": kind, "round": law.rounds, "exact": law.w2(), "w2": run.w2(),
                                    "low": low, "high": high, "deviation": worst, "compared": compared}))
    return pd.concat(tables)


def _stability(p: Any, data: int, kind: str, length: float) -> dict[str, float]:
    """Smallest unstable T; infinity when there is none up to most_steps."""
    problem, grid = problem_of(p, data), spaced(p.most_steps, p.n_tried)
    unstable = (float(steps) for steps in grid
                if not stability_radius(problem, _algorithm(p, kind, int(steps), length)) < 1.0)
    return {"unstable_from": next(unstable, np.inf), "tried_to": int(grid[-1])}


def draw(tables: Tables) -> Drawing:
    """Stationary errors against T; W2 along rounds; stability."""
    drawing, (panels,) = plot.panels(3, 5.1, 4.6)
    _draw_bias(panels[0], tables["bias"])
    _draw_curves(panels[1], tables["curves"], float(tables["floor"]["floor"].iloc[0]))
    _draw_stability(panels[2], tables["stability"])
    plot.legend_for(panels, 3, **sim.LEGEND)
    return drawing


def _draw_bias(ax: Axes, bias: pd.DataFrame) -> None:
    """Both parts; where one is 0 at every T, that is said below the axis."""
    none = []
    for column, dashes in (("spread_error", "--"), ("mean_error", "-")):
        for name, one in groups(bias, "kind"):
            if one[column].max() == 0.0:
                none.append(name)
            else:
                sim.draw_spread(ax, one.groupby("local_steps")[column], LOOKS[name]["color"], "", alpha=0.15,
                                linestyle=dashes, marker=LOOKS[name]["marker"])
    for name in KINDS:
        ax.plot([], [], markersize=4, label=f"exact law, {name}", **LOOKS[name])
    ax.plot([], [], color=plot.GREY, linestyle="--", label="left panel, dashed: the covariance's part")
    ax.plot([], [], color=plot.GREY, label="left panel, solid: the mean's part")
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.3, linewidth=0,
                    label="left panel: all problems, where stable (lines: medians)")
    ax.set(xscale="log", yscale="log", ylabel=r"part of stationary $W_2$",
           title="what is left after infinitely many rounds",
           xlabel="local steps T" + (f" (mean's part is 0: {', '.join(none)})" if none else ""))


def _draw_curves(ax: Axes, curves: pd.DataFrame, floor: float) -> None:
    for name, one in groups(curves, "kind"):
        plot.replicas(ax, one["round"], one["w2"], one["low"].clip(lower=1e-9), one["high"],
                      LOOKS[name]["color"], None)
        plot.exact(ax, one["round"], one["exact"], LOOKS[name]["color"], "", marker=LOOKS[name]["marker"],
                   markersize=4, markevery=max(1, len(one) // 8))
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.22, linewidth=0,
                    label=f"middle panel: {plot.BAND}")
    plot.floor(ax, floor)
    ax.set(yscale="log", xlabel="communication round", ylabel=r"$W_2$ of law and target",
           title="T = 20, started at 0, first problem",
           ylim=(0.6 * min(floor, curves["exact"].min()), 1.5 * curves["exact"].max()))


def _draw_stability(ax: Axes, table: pd.DataFrame) -> None:
    """A mark's area is the number of problems; those that are always stable stand above the axis's break."""
    most = int(table["tried_to"].max())
    first = table.assign(shown=table["unstable_from"].clip(upper=2.0 * most))
    for number, (name, own) in enumerate(groups(first, "kind")):
        count = own.groupby(["length", "shown"]).size().rename("count").reset_index()
        ax.scatter(count["length"] * 1.12 ** (number - 1), count["shown"], s=8.0 * count["count"],
                   alpha=0.7, linewidths=0, **LOOKS[name])
    ax.scatter([], [], s=70.0, color=plot.GREY, label="right panel: the larger a mark, the more problems")
    ax.axhline(1.4 * most, color=plot.GREY, linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel=r"trajectory length $K\eta$ (marks set apart)",
           ylabel="smallest unstable T", title="stability",
           ylim=(0.6 * float(first["shown"].min()), 3.0 * most))
    ticks = [10**power for power in range(7) if ax.get_ylim()[0] <= 10**power <= most]
    ax.set_yticks([*ticks, 2 * most], [*map(str, ticks), f"none\nto {most}"])


def _errors(tables: Tables, column: str) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Without correction, and with each anchor, by T (rows) and problem (columns); NaN where unstable."""
    plain, *others = (one.pivot(index="local_steps", columns="data", values=column)
                      for one in (among(tables["bias"], kind=kind) for kind in KINDS))
    return plain, dict(zip(ANCHORS, others, strict=True))


def judge_mean(tables: Tables) -> tuple[str, str]:
    """Do the debiased stationary laws have the target's mean?"""
    plain, anchored = _errors(tables, "mean_error")
    worst = pd.concat([one.max() for one in anchored.values()], axis=1).max(axis=1)
    good = (worst == 0.0) & (plain.max() > 0.0)
    return unanimous(good), (
        f"Without correction the stationary mean is off by {plain.iloc[0].median():.2g} at T = "
        f"{plain.index[0]} and {plain.iloc[-1].median():.2g} at T = {plain.index[-1]} in the median; with "
        "either anchor it is off by "
        + (f"up to {worst.max():.2g}" if worst.max() > 0.0 else f"less than {ROUNDING:g} of its size")
        + f" wherever the recursion is stable: repaired {shares(good, 'problems')}.")


def _judge_ratio(tables: Tables, column: str, limit: float, what: str, below: str) -> tuple[str, str]:
    """Are errors with either anchor below `limit` times those without correction, wherever stable?

    In words: ratios at the T nearest to 10 and at the largest stable one, medians over problems.
    """
    plain, anchored = _errors(tables, column)
    texts, fine = [], []
    for kind, one in anchored.items():
        ratio = one / plain
        few = min(ratio.index, key=lambda steps: abs(steps - 10))
        last = ratio.apply(lambda problem: problem.dropna().iloc[-1])
        texts.append(f"{kind}: {ratio.loc[few].median():.2g} at T = {few}, {last.median():.2g} at the "
                     "largest stable T")
        fine.append(ratio.max() < limit)
    good = fine[0] & fine[1]
    return unanimous(good), (f"{what} over that without correction, in the median: {'; '.join(texts)}; "
                             f"{below} at every stable T {shares(good, 'problems')}.")


def judge_covariance(tables: Tables) -> tuple[str, str]:
    """Is at most a tenth of the covariance's part left?"""
    return _judge_ratio(tables, "spread_error", 0.1, "The covariance's part of the stationary W2",
                        "below a tenth")


def judge_helps(tables: Tables) -> tuple[str, str]:
    """Is W2 smaller at every stable T?"""
    return _judge_ratio(tables, "w2", 1.0, "Stationary W2", "smaller")


def judge_stable(tables: Tables) -> tuple[str, str]:
    """Is there no unstable T?"""
    worst = tables["stability"].groupby(["data", "kind"])["unstable_from"].min().unstack()
    good = np.isinf(worst[list(ANCHORS)]).all(axis=1)
    return unanimous(good), (
        "Smallest unstable T over all lengths: "
        + ", ".join(f"{kind} " + ("none" if np.isinf(first).all() else f"{first.min():g} to {first.max():g}")
                    for kind, first in worst[list(KINDS)].items())
        + f". With either anchor every T is stable {shares(good, 'problems')}.")


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """Replicas of all three."""
    runs = tables["curves"].groupby("kind")[["deviation", "compared"]].first()
    return follows(runs["deviation"], runs["compared"])


_ABOUT = "section 6 and Algorithm B.2"
_FUTURE = "The paper proposes this as future work and claims none of it."
CLAIMS = [
    Finding("Debiased gradients remove the bias of unlike clients from the mean of the stationary law.",
            _ABOUT, judge_mean, "mean", DATA_SETS, context=_FUTURE),
    Finding("Debiased gradients remove the bias of the covariance as well: less than a tenth is left at "
            "every stable number of local steps.", _ABOUT, judge_covariance, "covariance", DATA_SETS,
            context=_FUTURE + " Within a round the correction shifts gradients by a constant, and leaves "
            "every client's own curvature in the noise."),
    Finding("The stationary W2 is smaller with debiased gradients at every stable number of local steps.",
            _ABOUT, judge_helps, "w2", DATA_SETS,
            context=_FUTURE + " Near its limit of stability a correction amplifies the noise of rounds."),
    Finding("Debiased gradients are stable for every number of local steps.", _ABOUT, judge_stable,
            "stability", DATA_SETS, context=_FUTURE + " Where clients reach their own laws within a round, "
            "the round multiplies the anchor's error by I - H, H being about mean Hessian times mean inverse "
            "Hessian, which is above 2 for clients of very different curvature."),
    Finding("Replicas follow the exact laws, debiased or not.", _ABOUT, judge_replicas, "replicas",
            REPLICAS, context=_FUTURE),
]
