"""FA-LD figure 1(c): W2 against rounds for several correlations of the injected noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
import theory

from .. import plot
from ..figure import (
    DATA_SETS,
    EXACT,
    FAIL,
    NOT_TESTABLE,
    PASS,
    ByScale,
    Claim,
    Drawing,
    Finding,
    Parameter,
    Tables,
    settings,
)
from ..verdicts import shares, unanimous
from . import shared as sim

TITLE = "W2 against rounds, by correlation of the noise"
PAPER = "FA-LD figure 1(c)"
REPRODUCES = ("FA-LD 1(c)",)
SHOWS = ("Replicas and exact law for four correlations rho (K = 100, alpha = 0); beside it the stationary "
         "variance when the clients' curvatures differ, where rho does act.")
COST = {"tiny": "1 s", "quick": "8 s", "paper": "30 s (estimated)"}
PARAMETERS = [
    Parameter("rhos", [0.0, 0.3, 0.6, 1.0], "ours", "the values of rho are not printed"),
    Parameter("local_steps", 100, "paper", "section 6: K = 100"),
    Parameter("alpha", 0.0, "paper", "section 6: gamma = 1e8, which is alpha = 0"),
    sim.CLIENTS, sim.DATA, sim.STEP, sim.START, sim.GRADIENTS, sim.DATA_SEED, sim.DATA_SETS, sim.SEED,
    Parameter("n_replicas", ByScale(64, 300, 300), "paper", "appendix I: R = 300"),
    Parameter("n_rounds", ByScale(100, 150, 300), "ours", "not printed; all curves have levelled off"),
    Parameter("n_simulated", ByScale(20, 150, 300), "ours", "rounds of the replicas"),
    Parameter("n_recorded", ByScale(10, 45, 90), "ours", "points of a curve"),
    Parameter("spreads", [0.0, 0.1, 0.3, 0.5], "ours",
              "standard deviation of n_c over its mean, where weights are 1/N beside unequal n_c"),
]
SAME = 1e-6  # relative; beyond rounding
SLIGHT = 1e-3  # a relative change that no reader of a curve could see
APPROACH = 2.0 * sim.EPS  # above it a curve still comes down, below it is near its level


def compute(scale: str) -> Tables:
    """Tables: curves (exact, replicas), bounds, floor, unequal (stationary), gain (largest rho over 0)."""
    p = settings(PARAMETERS, scale)
    rounds, short = sim.spaced(p.n_rounds, p.n_recorded), sim.spaced(p.n_simulated, p.n_recorded)
    problem = sim.problem_of(p, p.alpha)
    curves, bounds = [], []
    for number, rho in enumerate(p.rhos):
        algorithm = _algorithm(p, rho)
        curves += [sim.exact_rows(problem, algorithm, rounds, p.start, rho=rho),
                   sim.replica_rows(problem, algorithm, short, p.n_replicas, p.seed + number, p.start,
                                    rho=rho)]
        bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm, p.start), algorithm,
                                      n_rounds=p.n_rounds, record=rounds, variant="printed")
        bounds.append(sim.bound_rows(bound, rho=rho))
    variants = [(spread, number, sim.unequal_of(p, p.alpha, spread, number))
                for spread in p.spreads for number in range(p.n_data_sets)]
    floor = pd.DataFrame({"floor": [sim.floor_of(problem, p.n_replicas)]})
    return {"curves": pd.concat(curves), "bounds": pd.concat(bounds), "floor": floor,
            "unequal": pd.DataFrame([_stationary(p, *one, rho) for one in variants for rho in p.rhos]),
            "gain": pd.DataFrame([_gain(p, rounds, *one) for one in variants])}


def _algorithm(p: Any, rho: float) -> fs.FALD:
    return fs.FALD.from_paper(eta=p.step_size, K=p.local_steps, rho=rho)


def _stationary(p: Any, spread: float, number: int, problem: fs.Quadratic, rho: float) -> dict[str, float]:
    law, target = theory.stationary_law(problem, _algorithm(p, rho)), problem.target()
    return {"spread": spread, "data_set": number, "rho": rho,
            "excess": float(np.trace(law.cov) / np.trace(target.cov) - 1.0)}


def _gain(p: Any, rounds: np.ndarray, spread: float, number: int, problem: fs.Quadratic) -> dict[str, float]:
    """Relative change of exact W2 from smallest to largest rho: its range while W2 is large, and at the end.

    Curves and not hitting times are compared: a round of K steps is too coarse to show a slight gain.
    """
    own, shared = (sim.w2_curve(problem, _algorithm(p, rho), rounds, p.start)
                   for rho in (min(p.rhos), max(p.rhos)))
    change = shared / own - 1.0
    change[np.abs(change) < SAME] = 0.0
    early = change[(own > APPROACH) & (rounds > 0)]
    return {"spread": spread, "data_set": number, "least": float(early.min()), "most": float(early.max()),
            "last": float(change[-1])}


def draw(tables: Tables) -> Drawing:
    """Left: as in the paper. Right: what rho changes when curvatures differ."""
    curves, bounds, unequal = tables["curves"], tables["bounds"], tables["unequal"]
    rhos = list(dict.fromkeys(curves["rho"]))
    drawing, ((left, right),) = plot.panels(2, 5.6, 6.0)
    for i, (rho, colour) in enumerate(zip(rhos, plot.COLOURS, strict=False)):
        one = curves[(curves["rho"] == rho) & (curves["round"] > 0)]
        line, cloud = (one[one["kind"] == kind] for kind in ("exact", "replicas"))
        sim.cloud(left, cloud, colour)
        plot.exact(left, line["round"], line["w2"], colour, rf"exact law, $\rho$ = {rho:g}",
                   linewidth=8 - 2 * i)
    least = bounds.loc[bounds["round"] > 0, "bound"].min()
    remark = " (vacuous)" if bounds["vacuous"].all() else ""
    left.plot([], [], " ", label=f"theorem 4.7{remark}: {least:.0e} or more, above the axis")
    plot.floor(left, tables["floor"]["floor"].iloc[0], "as many perfect draws would show this")
    left.set(xscale="log", yscale="log", xlabel="communication round",
             ylabel=r"$W_2(\mathrm{law\ of}\ \theta,\ \pi)$", title=f"(c) K = 100, {sim.named(0.0)}")
    left.set_ylim(4e-6, 1e-1)
    for (spread, one), colour in zip(unequal.groupby("spread"), (*plot.COLOURS[4:], plot.GREY), strict=False):
        table = one.pivot(index="rho", columns="data_set", values="excess")
        right.plot(table.index, table, color=colour, linewidth=0.5, alpha=0.4)
        plot.exact(right, table.index, table.median(axis=1), colour,
                   f"sd of $n_c$ {sim.percent(spread)} of its mean", marker="o")
    right.plot([], [], color=plot.GREY, linewidth=0.5, label="exact law: medians (thick), single data sets")
    right.set(xlabel=r"correlation coefficient $\rho$ of the injected noise", yscale="log",
              ylabel="stationary variance / target variance - 1",
              title="ours: clients of unequal curvature")
    sim.legend_below(left)
    sim.legend_below(right)
    return drawing


def judge_accelerates(tables: Tables) -> tuple[str, str]:
    """Is the exact law nearer to the target for larger rho?"""
    exact = tables["curves"].query("kind == 'exact' and round > 0").pivot(
        index="round", columns="rho", values="w2").sort_index(axis=1)
    gap = float(((exact.max(axis=1) - exact.min(axis=1)) / exact.min(axis=1)).max())
    if gap < SAME:
        return FAIL, "The exact curves of all rho coincide: they differ by nothing beyond rounding."
    steps = exact.diff(axis=1).iloc[:, 1:].to_numpy()
    verdict = PASS if (steps <= 0.0).all() else FAIL if (steps >= 0.0).all() else NOT_TESTABLE
    return verdict, f"The exact curves of all rho differ by up to {gap:.0e} relative, " + {
        PASS: "a larger rho being nearer at every round.", FAIL: "a smaller rho being nearer at every round.",
        NOT_TESTABLE: "now one and now the other nearer."}[verdict]


def judge_approach(tables: Tables) -> tuple[str, str]:
    """While W2 is large: lower in every data set?"""
    table = tables["gain"].query("spread > 0.0")
    widest = table["spread"] == table["spread"].max()
    fine = (table["most"] < SLIGHT) & ~(widest & (table["least"] > -SLIGHT))
    good = fine.groupby(table["data_set"]).all()
    texts = [f"{one['least'].min():+.1e} to {one['most'].max():+.1e} (sd of n_c {sim.percent(spread)})"
             for spread, one in table.groupby("spread")]
    return unanimous(good), (
        f"While W2 is above {APPROACH:g} it changes from rho = 0 to the largest rho by the relative amounts "
        f"{', '.join(texts)}: never more than {SLIGHT:g} up, and further down where n_c vary most, "
        f"{shares(good)}.")


def judge_end(tables: Tables) -> tuple[str, str]:
    """At the last round: lower in every data set?"""
    table = tables["gain"].query("spread > 0.0")
    good = (table["last"] < 0.0).groupby(table["data_set"]).all()
    texts = [f"{one['last'].min():+.1e} to {one['last'].max():+.1e} (sd of n_c {sim.percent(spread)})"
             for spread, one in table.groupby("spread")]
    return unanimous(good), (f"At the last round W2 changes from rho = 0 to the largest rho by the relative "
                             f"amounts {', '.join(texts)}: lower {shares(good)}.")


CLAIMS = [
    Claim("\"We ... observe that a larger correlation slightly accelerates the computation.\"",
          "section 6, figure 1(c)", judge_accelerates, "accelerates", EXACT,
          context="With weights p_c = n_c/n (section 2.1) all f^c have the Hessian n Sigma^-1, and by (12) "
          "the averaged noise is standard normal for every rho: the law of the average is the same for "
          "every rho, K and data set. Differences between curves of 300 replicas are chance. Appendix A.1 "
          "asks of weights only to sum to 1; with other weights see the two findings."),
    Finding("Weights 1/N beside unequal n_c: a larger rho approaches the target faster where n_c vary most, "
            "and is never further away by more than a thousandth.",
            "section 6, figure 1(c)", judge_approach, "unequal_approach", DATA_SETS),
    Finding("The same: a larger rho ends nearer to the target.", "section 6, figure 1(c)", judge_end,
            "unequal_end", DATA_SETS),
]
