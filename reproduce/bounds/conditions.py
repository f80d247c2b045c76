"""Every algorithm: limits of published bound, recursion and exact law, on harder and harder problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim as fs
import theory

from .. import plot
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, settings
from ..tables import among
from ..tabulate import tabulate
from ..verdicts import DATA_SETS, Judgement, shares, unanimous

TITLE = "Limits of bounds against condition number and heterogeneity"
PAPER = "ours, for all four papers"
SHOWS = ("Where W2 settles by the published bound, by the recursion and by the exact law, for five "
         "algorithms at one step size, against the condition number and against the heterogeneity.")
COST = {"tiny": "5 s", "quick": "15 s", "paper": "1 min (estimated)"}
_CHOICE = "no paper has such an experiment"
PARAMETERS = [
    Parameter("n_clients", 4, "ours", _CHOICE),
    Parameter("dim", 2, "ours", "Hessians can be rotated against each other"),
    Parameter("condition_numbers", ByScale([2.0, 64.0], [1.2, 2, 4, 8, 16, 32, 64, 128, 256],
                                           np.geomspace(1.1, 1024, 21).tolist()), "ours",
              "every client has the eigenvalues 1 and this"),
    Parameter("heterogeneities", ByScale([0.1, 10.0], [0.01, 0.1, 0.3, 1, 3, 10, 30, 100],
                                         np.geomspace(0.01, 100, 17).tolist()), "ours",
              "the clients' gradients at the minimizer, root mean square, over sqrt(smoothness dim)"),
    Parameter("condition_number", 4.0, "ours", "of the right column"),
    Parameter("heterogeneity", 1.0, "ours", "of the left column: as large as a gradient in the posterior"),
    Parameter("share", 0.01, "ours", "of 1/smoothness: step size, or its square if there is a momentum"),
    Parameter("local_steps", 5, "ours", "of FA-LD"),
    Parameter("updates", 2, "ours", "local updates of FA-HMC, of three leapfrogs"),
    Parameter("momentum", 0.1, "ours", "of DE-SGHMC, 1 - friction step_size; Theorem 11 allows at most 3e-6 "
              "here, so that its limit is shown without momentum"),
    Parameter("staleness", 3, "ours", "as with four workers in turn"),
    Parameter("start", [10.0, 0.0], "ours", "ten of the posterior's largest standard deviations away"),
    Parameter("n_data_sets", ByScale(12, 12, 60), "ours", "random problems of each kind; the findings are "
              "judged on each number by itself"),
    Parameter("data_seed", 0, "ours", "of the problems"),
]


class Kind(NamedTuple):
    """An algorithm of the figure, and what is printed about it."""

    words: str
    make: Callable[[Any, float], Any]
    recursion: str
    published: str
    statement: str
    covered: Callable[[Any], Any] = lambda algorithm: algorithm


def _with_momentum(p: Any, L: float) -> Any:
    size = _component_step(p, L) ** 0.5
    return fs.DESGHMC(size, (1.0 - p.momentum) / size, _ring(p))


def _without_momentum(algorithm: Any) -> Any:
    return fs.DESGHMC(algorithm.step_size, 1.0 / algorithm.step_size, algorithm.mixing)


def _ring(p: Any) -> np.ndarray:
    return fs.network.ring(p.n_clients)


def _component_step(p: Any, L: float) -> float:
    return p.share * p.n_clients / L  # clients hold 1/N of the potential


KINDS = {
    "FA-LD": Kind("K = 5", lambda p, L: fs.FALD(p.share / L, p.local_steps), "fa_ld.w2_recursion",
                  "fa_ld.w2_bound", "Theorem 4.7"),
    "FA-HMC": Kind("T = 2, K = 3", lambda p, L: fs.FAHMC((p.share / L) ** 0.5 / 3, 3, local_steps=p.updates),
                   "fa_hmc.w2_recursion", "fa_hmc.w2_bound", "Theorem 4.4, corrected"),
    "DE-SGLD": Kind("ring", lambda p, L: fs.DESGLD(_component_step(p, L), _ring(p)), "de_sgld.w2_recursion",
                    "de_sgld.w2_bound", "Theorem 1"),
    "DE-SGHMC": Kind("ring, momentum 0.1", _with_momentum, "de_sghmc.w2_recursion", "de_sghmc.w2_bound",
                     "Theorem 11, corrected,\nwithout momentum", _without_momentum),
    "stale SGLD": Kind("age 3", lambda p, L: fs.StaleSGLD(p.share / L, p.staleness), "stale.w2_recursion", "",
                       ""),
}
AXES = {"condition number": ("condition_numbers", r"condition number $L/m$"),
        "heterogeneity": ("heterogeneities", r"heterogeneity $\Gamma/\sqrt{L d}$")}
KEYS = ["by", "x", "data_set", "algorithm"]
THEOREMS = {entry.id: entry for entry in theory.theorems()}


def problem_of(p: Any, kappa: float, heterogeneity: float, number: int) -> fs.Quadratic:
    """Clients of eigenvalues 1 and kappa; their gradients at the common minimizer, 0, have a given size."""
    rng = np.random.default_rng([p.data_seed, number])
    values = np.ones(p.dim)
    values[-1] = kappa
    turns = np.linalg.qr(rng.standard_normal((p.n_clients, p.dim, p.dim)))[0]
    hessians = (turns * values) @ turns.swapaxes(1, 2)
    gradients = rng.standard_normal((p.n_clients, p.dim))
    gradients -= gradients.mean(axis=0)
    gradients *= heterogeneity * np.sqrt(kappa * p.dim / np.square(gradients).sum(axis=1).mean())
    return fs.Quadratic(hessians, np.linalg.solve(hessians, -gradients[:, :, None])[:, :, 0])


def compute(scale: str) -> Tables:
    """Tables: limits, published."""
    p = settings(PARAMETERS, scale)
    every = pd.concat([
        tabulate("limits", _limits, p, {"by": [by], "x": getattr(p, name), "data_set": range(p.n_data_sets),
                                        "algorithm": KINDS}) for by, (name, _) in AXES.items()])
    stated = every["covered"].notna()
    return {"limits": every[[*KEYS, "exact", "recursion", "start"]],
            "published": every[stated][[*KEYS, "published", "covered", "ours"]].astype({"covered": bool})}


def _limits(p: Any, by: str, x: float, data_set: int, algorithm: str) -> dict[str, Any]:
    """The limits of one algorithm on one problem, and the distance at the start."""
    kind, first = KINDS[algorithm], by == "condition number"
    kappa, heterogeneity = (x, p.heterogeneity) if first else (p.condition_number, x)
    problem = problem_of(p, kappa, heterogeneity, data_set)
    chosen = kind.make(p, kappa)
    facts = theory.constants(problem, chosen, p.start)
    ours = THEOREMS[kind.recursion].function(facts, chosen, n_rounds=0)
    exact = theory.stationary_law(problem, chosen).w2(chosen.target(problem))
    row = {"exact": exact, "recursion": ours.floor, "start": ours.start_distance, "published": np.nan,
           "covered": None, "ours": np.nan}
    if kind.published:
        covered = kind.covered(chosen)
        theirs, same = (THEOREMS[name].function(facts, covered, n_rounds=0)
                        for name in (kind.published, kind.recursion))
        row |= {"published": theirs.floor, "covered": theirs.hypotheses_hold, "ours": same.floor}
    return row


def draw(tables: Tables) -> Drawing:
    """A row an algorithm; left against the condition number, right against the heterogeneity."""
    drawing, axes = plot.panels(2, 6.2, 3.1, len(KINDS))
    for row, (name, kind) in zip(axes, KINDS.items(), strict=True):
        for ax, (by, (_, words)) in zip(row, AXES.items(), strict=True):
            limits, published = (among(tables[of], algorithm=name, by=by) for of in ("limits", "published"))
            _panel(ax, limits, published, kind)
            ax.set(xscale="log", yscale="log", xlabel=words, ylabel=r"limit of $W_2$",
                   title=f"{name}, {kind.words}{kind.published and f' ({kind.statement})'}")
        low, high = (pick(ax.get_ylim()[i] for ax in row) for i, pick in ((0, min), (1, max)))
        for ax in row:
            ax.set_ylim(low, high)
    plot.legend_for(axes.flat, 3)
    return drawing


def _panel(ax: Any, table: pd.DataFrame, published: pd.DataFrame, kind: Kind) -> None:
    by_x = table.groupby("x")
    ax.fill_between(by_x["exact"].min().index, by_x["exact"].min(), by_x["exact"].max(), alpha=0.25,
                    color=plot.COLOURS[0], linewidth=0)
    plot.exact(ax, by_x["exact"].median().index, by_x["exact"].median(), plot.COLOURS[0],
               f"exact law: median and range of {table['data_set'].nunique()} problems")
    one = table[table["data_set"] == table["data_set"].min()].set_index("x")
    ax.plot(one.index, one["recursion"], color=plot.COLOURS[1], linestyle="-.", marker="o", markersize=4,
            label="bound: recursion")
    theirs = published[published["data_set"] == published["data_set"].min()]
    for some, face, remark in ((theirs["covered"], plot.COLOURS[6], ""),
                               (~theirs["covered"], "none", ", outside its hypotheses")):
        if some.any():
            ax.plot(theirs["x"][some], theirs["published"][some], linestyle="--", marker="s", markersize=5,
                    color=plot.COLOURS[6], markerfacecolor=face, label=f"published bound{remark}")
    ax.plot(one.index, one["start"], color=plot.GREY, linestyle=":",
            label="distance of the start: above it a bound says nothing")


def _by_set(table: pd.DataFrame, good: Any) -> np.ndarray:
    """Whether something is so in all rows of each data set."""
    return table.assign(good=good).groupby("data_set")["good"].all().to_numpy()


def _covered(tables: Tables) -> pd.DataFrame:
    """Settings within the published hypotheses, with both limits."""
    table = tables["published"]
    return table[table["covered"]].merge(tables["limits"], on=KEYS)


def judge_holds(tables: Tables) -> Judgement:
    """The exact limit is below the recursion's."""
    table = tables["limits"]
    share = table["exact"] / table["recursion"]
    good = _by_set(table, share <= 1.0)
    return Judgement(unanimous(good), (
        f"The exact limit is {share.min():.2g} to {share.max():.2g} of the recursion's in {len(table)} "
        f"settings (median {share.median():.2g}), at most 1 {shares(good, 'numbers of problems')}."))


def judge_below(tables: Tables) -> Judgement:
    """The recursion is below the published bound where both apply."""
    table = _covered(tables)
    gain = table["published"] / table["ours"]
    good = _by_set(table, gain >= 1.0)
    by_name = gain.groupby(table["algorithm"], sort=False)
    middle = ", ".join(f"{name} {one.median():.3g}" for name, one in by_name)
    return Judgement(unanimous(good), (
        f"Within the published hypotheses ({len(table)} settings) the published limit is {gain.min():.3g} to "
        f"{gain.max():.3g} times the recursion's, at least 1 {shares(good, 'numbers of problems')}; medians: "
        f"{middle}."))


def judge_informative(tables: Tables) -> Judgement:
    """Which limits are below the distance of the start."""
    table, covered = tables["limits"], _covered(tables)
    ours, theirs = table["recursion"] < table["start"], covered["published"] < covered["start"]
    good = _by_set(table, ours)
    return Judgement(unanimous(good), (
        f"The recursion's limit is below the distance of the start in {ours.sum()} of {len(table)} settings; "
        f"within its hypotheses the published one is in {theirs.sum()} of {len(covered)}."))


CLAIMS = [
    Finding("Where the exact law settles is below the recursion's limit, for every algorithm and problem.",
            "", judge_holds, name="holds", rests_on=DATA_SETS),
    Finding("The recursion's limit is at most the published one wherever both apply.", "", judge_below,
            name="below_published", rests_on=DATA_SETS,
            context="Theorem 11 is read without momentum, where it has a value, and so is the recursion "
                    "beside it. Theorems 4.4 and 11 are in the form that is proved ('corrected')."),
    Finding("By the recursion, a hundredth of 1/smoothness is an informative step size in every setting.", "",
            judge_informative, name="informative", rests_on=DATA_SETS,
            context="Informative: the limit is below the distance of the start, 10 of the posterior's "
                    "largest standard deviations."),
]
