"""The worst problem of a class: found, certified, and what bounds say of the class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import fedsim as fs
import theory
from theory import worst_case
from theory.worst_case import ProblemClass, searching

from .. import plot
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, settings
from ..tables import among
from ..tabulate import tabulate
from ..verdicts import DATA_SETS, EXACT, FAIL, PASS, Judgement, shares, unanimous

TITLE = "The worst problem of a class, and what random problems say of it"
PAPER = "ours, for FA-LD"
SHOWS = ("Left: the largest stationary W2 of FA-LD with two clients, whose curvatures lie between 1 and the "
         "condition number, as it is certified, found by a search, met among random problems, and allowed by "
         "two bounds that are told the class. Right: the largest ratio of exact to bound so far, of random "
         "problems and in searches, for Lemma B.3 with K = 2 or 5, against the number of evaluations.")
COST = {"tiny": "5 s", "quick": "50 s", "paper": "6 min (estimated)"}
_CHOICE = "no paper has such an experiment"
PARAMETERS = [
    Parameter("condition_numbers", ByScale([4.0], [2.0, 4.0, 10.0, 30.0, 100.0],
                                           np.geomspace(1.5, 300.0, 11).tolist()), "ours", _CHOICE),
    Parameter("share", 0.2, "ours", "of 1/smoothness: the step size"),
    Parameter("local_steps", 5, "ours", _CHOICE),
    Parameter("heterogeneity", 3.0, "ours", "largest gradient of a client at the minimizer, over sqrt(m)"),
    Parameter("budget", ByScale(60, 1000, 5000), "ours", "evaluations of a search for the largest W2"),
    Parameter("n_random", 60, "ours", "random problems, as many as the scoreboard has of each theorem"),
    Parameter("further", ByScale(60, 300, 2000), "ours", "evaluations of every search of the right panel"),
    Parameter("n_seeds", ByScale(12, 12, 20), "ours", "searches, and sets of random problems"),
    Parameter("tolerance", 1e-3, "ours", "relative width of the certified intervals"),
]
THEOREM = "fa_ld.divergence_bound"
QUANTITY = "fa_ld.stationary_w2"
WAYS = ("random", "search")


FEW_STEPS = ProblemClass(local_steps=(2, 5), n_rounds=1)
"""Of the right panel: all else is free."""


def class_of(p: Any, kappa: float, dim: int) -> ProblemClass:
    """Two clients of equal weight, private noise only."""
    return ProblemClass(dim=dim, condition=kappa, heterogeneity=p.heterogeneity, weights="equal",
                        shared_noise=0.0, gradient_noise=0.0, step_size=p.share / kappa,
                        local_steps=p.local_steps)


def compute(scale: str) -> Tables:
    """Tables: limits, largest."""
    p = settings(PARAMETERS, scale)
    return {"limits": tabulate("largest W2", _limits, p, {"kappa": p.condition_numbers}),
            "largest": tabulate("largest ratio", _largest, p, {"way": WAYS, "seed": range(p.n_seeds)})}


def _limits(p: Any, kappa: float) -> dict[str, float]:
    """Of one class: what is certified, found, met and allowed."""
    cls = class_of(p, kappa, 2)
    found = worst_case.search(QUANTITY, cls, budget=p.budget)
    same: Any = {"curvatures": (1.0, kappa), "step_size": p.share / kappa, "local_steps": p.local_steps,
                 "heterogeneity": p.heterogeneity, "tolerance": p.tolerance}
    commuting = worst_case.commuting_supremum(2, QUANTITY, **same)
    rotated = worst_case.certify(QUANTITY, replace(cls, spectra="ends"), tolerance=p.tolerance)
    known = theory.Constants(dim=2, strong_convexity=1.0, smoothness=kappa, n_clients=2, initial_distance=1.0,
                             initial_w2=1.0, gradient_at_minimizer=[p.heterogeneity] * 2)
    algorithm = fs.FALD(p.share / kappa, p.local_steps)
    published, recursion = (bound(known, algorithm, n_rounds=0).floor
                            for bound in (theory.fa_ld.w2_bound, theory.fa_ld.w2_recursion))
    return {"random": float(max(worst_case.sample(QUANTITY, cls, p.n_random, seed=0))), "found": found.value,
            "commuting_low": commuting.lower, "commuting_high": commuting.upper,
            "rotated_low": rotated.lower, "rotated_high": rotated.upper,
            "published": float(published or np.nan), "recursion": float(recursion or np.nan)}


def _largest(p: Any, way: str, seed: int) -> list[dict[str, float]]:
    """The largest ratio so far, where a part of the search ends."""
    ends = np.cumsum([evaluations for _, evaluations in searching.parts_of(p.further)])
    if way == "search":
        found = worst_case.search(THEOREM, FEW_STEPS, budget=p.further, seed=seed)
        largest = np.maximum.accumulate([value for _, value in found.parts])
    else:
        values = worst_case.sample(THEOREM, FEW_STEPS, p.further, seed=seed)
        largest = np.maximum.accumulate(values)[ends - 1]
    return [{"evaluations": int(end), "ratio": float(ratio)}
            for end, ratio in zip(ends, largest, strict=True)]


def draw(tables: Tables) -> Drawing:
    """The class's largest W2 and its bounds, the same over what is certified, and one theorem's ratio."""
    drawing, ((ax, middle, right),) = plot.panels(3, 5.2, 5.2)
    limits = tables["limits"].set_index("kappa")
    ax.plot(limits["published"], "s--", color=plot.COLOURS[6],
            label="bound: Theorem 4.7, limit for the class")
    ax.plot(limits["recursion"], "o-.", markersize=4, color=plot.COLOURS[1],
            label="bound: recursion, limit for the class")
    shares = limits[["rotated_low", "commuting_low", "found", "random"]].div(limits["rotated_low"], axis=0)
    for panel, table in ((ax, limits), (middle, shares)):
        plot.exact(panel, table.index, table["rotated_low"], plot.COLOURS[0],
                   "exact, certified: rotated Hessians\nof eigenvalues 1 and $L/m$")
        panel.plot(table["commuting_low"], linestyle=(0, (5, 1, 1, 1)), color=plot.COLOURS[2],
                   label="exact, certified: all commuting Hessians")
        panel.plot(table["found"], "D", color=plot.COLOURS[0], markerfacecolor="none", markersize=8,
                   label="exact: found by a search")
        panel.plot(table["random"], "x", color=plot.GREY, label="exact: largest of 60 random problems")
        panel.set(xscale="log", xlabel=r"condition number $L/m$")
        plot.legend_below(panel, 1)
    ax.set(yscale="log", ylabel=r"largest stationary $W_2$", title="FA-LD, two clients, K = 5, d = 2")
    middle.set(ylim=(0.0, 1.15), ylabel=r"$W_2$ over that of rotated pairs",
               title="The exact ones of the left panel")
    for way, style, colour, words in (("search", "o-", plot.COLOURS[0], "searches"),
                                      ("random", "x:", plot.GREY, "random problems")):
        one = among(tables["largest"], way=way).groupby("evaluations")["ratio"]
        right.fill_between(one.min().index, one.min(), one.max(), alpha=0.2, color=colour, linewidth=0)
        right.plot(one.median().index, one.median(), style, color=colour,
                   label=f"exact / bound, {words}:\nmedian and range of {one.size().min()} seeds")
    right.set(xlabel="evaluations", ylabel="largest exact / bound", ylim=(0.0, None),
              title="FA-LD Lemma B.3, corrected, K = 2 or 5")
    plot.legend_below(right, 1)
    return drawing


def _held(good: bool) -> str:
    return PASS if good else FAIL


def judge_between(tables: Tables) -> Judgement:
    """What a search finds in the whole class is not above what is certified of a part of it."""
    table = tables["limits"]
    found, random = (table[name] / table["rotated_high"] for name in ("found", "random"))
    return Judgement(_held(bool((found <= 1.0).all())), (
        f"Of the certified value searches find {found.min():.3g} to {found.max():.5g} at {len(table)} "
        f"condition numbers, and 60 random problems {random.min():.2g} to {random.max():.2g}."))


def judge_rotated(tables: Tables) -> Judgement:
    """Whether rotated Hessians exceed all commuting ones."""
    table = tables["limits"]
    gain = table["rotated_low"] / table["commuting_high"]
    return Judgement(_held(bool((gain > 1.0).all())), (
        f"By certified intervals two clients with rotated Hessians come to {gain.min():.3g} to "
        f"{gain.max():.3g} times the largest W2 of all that commute."))


def judge_bounds(tables: Tables) -> Judgement:
    """How far the bounds are above what is certified."""
    table = tables["limits"]
    ours, theirs = (table[name] / table["rotated_low"] for name in ("recursion", "published"))
    return Judgement(_held(bool(((ours >= 1.0) & (ours <= theirs)).all())), (
        f"Told the class, the recursion's limit is {ours.min():.3g} to {ours.max():.3g} times the certified "
        f"W2 of the rotated pair, the published one {theirs.min():.3g} to {theirs.max():.3g} times."))


def judge_random(tables: Tables) -> Judgement:
    """What random problems miss."""
    table = tables["largest"]
    last = table[table["evaluations"] == table["evaluations"].max()]
    by_seed = last.set_index(["way", "seed"])["ratio"].unstack("way")
    gain = by_seed["search"] / by_seed["random"]
    good = (gain > 1.0).to_numpy()
    return Judgement(unanimous(good), (
        f"After {table['evaluations'].max()} evaluations a search's largest ratio is {gain.min():.3g} to "
        f"{gain.max():.3g} times that of as many random problems (median {gain.median():.3g}), more "
        f"{shares(good, 'seeds')}; the medians are {by_seed['search'].median():.3g} and "
        f"{by_seed['random'].median():.3g}."))


CLAIMS = [
    Finding("No search in the whole class finds a worse problem than is certified of rotated pairs with the "
            "eigenvalues 1 and L/m.", "", judge_between, name="between", rests_on=EXACT,
            context="It is no theorem: with one local step, or little heterogeneity, both Hessians L I are "
                    "worse, and pairs with other eigenvalues are not excluded."),
    Finding("Problems whose Hessians do not commute are worse than all that do.", "", judge_rotated,
            name="rotated", rests_on=EXACT),
    Finding("Told only the class, both bounds hold, and the recursion is the lower one.", "", judge_bounds,
            name="bounds", rests_on=EXACT),
    Finding("Random problems do not show how tight a bound is: searches of the same cost find larger ratios.",
            "", judge_random, name="random", rests_on=DATA_SETS),
]
