"""FA-LD on README's problem by all routes, at README's step size and at a planned one."""

from __future__ import annotations

from typing import Any

import pandas as pd

import fedsim as fs
import theory

from .. import plot, statistics
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, settings
from ..tables import among, spaced
from ..verdicts import EXACT, FAIL, PASS, REPLICAS, Judgement

TITLE = "One run: published bound, recursion, exact law, replicas"
PAPER = "ours, for FA-LD theorem 4.7"
SHOWS = ("W2 against rounds on README's problem by all four routes, at README's step size and at the one "
         "that the recursion plans for an accuracy.")
COST = {"tiny": "6 s", "quick": "10 s", "paper": "20 s (estimated)"}
_README = "README's problem"
PARAMETERS = [
    Parameter("hessians", [[1.0, 4.0], [2.0, 3.0]], "ours", _README),
    Parameter("minimizers", [[0.0, 1.0], [1.0, 0.0]], "ours", _README),
    Parameter("step_size", 0.02, "ours", _README),
    Parameter("local_steps", 5, "ours", _README),
    Parameter("shared_noise", 0.25, "ours", _README),
    Parameter("n_rounds", 1000, "ours", "everything has levelled off in the left panel"),
    Parameter("eps", 0.1, "ours", "W2 that the recursion plans for, a thirteenth of the start's"),
    Parameter("choices", [1, 2, 5, 10, 20], "ours", "local steps among which the plan chooses"),
    Parameter("n_recorded", ByScale(12, 60, 120), "ours", "points of a curve"),
    Parameter("n_replicas", ByScale(256, 10_000, 100_000), "ours", "README has 10,000"),
    Parameter("seed", 1, "ours", "of the replicas"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, plans, replicas."""
    p = settings(PARAMETERS, scale)
    problem = fs.Quadratic(p.hessians, p.minimizers)
    first = fs.FALD(p.step_size, p.local_steps, shared_noise=p.shared_noise)
    plan = theory.tuning.plan_by_recursion(problem, first, p.eps, local_steps=p.choices)
    paper = theory.tuning.compare(problem, first, p.eps)
    assert plan is not None
    panels = [_curves(p, problem, algorithm, n_rounds, name)
              for name, algorithm, n_rounds in (("README's step size", first, p.n_rounds),
                                                ("planned", plan.algorithm, 2 * plan.n_rounds))]
    plans = {"eps": p.eps, "step_size": plan.algorithm.step_size, "local_steps": plan.algorithm.local_steps,
             "rounds": plan.n_rounds, "exact_rounds": plan.exact_effort, "price": plan.price,
             "published_rounds": paper.predicted_rounds}
    return {"curves": pd.concat([one for one, _ in panels]), "plans": pd.DataFrame([plans]),
            "replicas": pd.DataFrame([one for _, one in panels])}


def _curves(p: Any, problem: fs.Quadratic, algorithm: fs.FALD, n_rounds: int, name: str) -> Any:
    """One panel: everything at recorded rounds, and how far the replicas are off."""
    rounds = spaced(n_rounds, p.n_recorded)
    facts = theory.constants(problem, algorithm)
    law = theory.exact_law(problem, algorithm, n_rounds, record=rounds)
    run = fs.simulate(problem, algorithm, n_rounds, p.n_replicas, seed=p.seed, record=rounds)
    low, high = run.w2_interval().T
    published, ours = (bound(facts, algorithm, n_rounds=n_rounds, record=rounds)
                       for bound in (theory.fa_ld.w2_bound, theory.fa_ld.w2_recursion))
    worst, compared = statistics.deviation(run, law)
    return pd.DataFrame({
        "panel": name, "round": law.rounds, "exact": law.w2(), "replicas": run.w2(), "low": low, "high": high,
        "published": published.value, "recursion": ours.value, "start": ours.start_distance}), {
        "panel": name, "deviation": worst, "compared": compared}


def draw(tables: Tables) -> Drawing:
    """Left: README's step size. Right: the planned one, with the accuracy that was asked for."""
    drawing, ((left, right),) = plot.panels(2, 6.2, 5.2, sharey=True)
    plan = tables["plans"].iloc[0]
    for ax, (_, every) in zip((left, right), tables["curves"].groupby("panel", sort=False), strict=True):
        one = every[every["round"] > 0]
        plot.bound(ax, one["round"], one["published"], bool((one["published"] >= one["start"]).all()), False,
                   "bound: Theorem 4.7")
        ax.plot(one["round"], one["recursion"], color=plot.COLOURS[1], linestyle="-.",
                label="bound: the same coupling, evaluated step by step")
        ax.axhline(float(one["start"].iloc[0]), color=plot.GREY, linestyle=":",
                   label="distance of the start: above it a bound says nothing")
        plot.replicas(ax, one["round"], one["replicas"], one["low"].clip(lower=1e-6), one["high"],
                      plot.COLOURS[2])
        plot.exact(ax, one["round"], one["exact"], plot.COLOURS[0])
        ax.set(xscale="log", yscale="log", xlabel="communication round")
    left.set(ylabel=r"$W_2(\mathrm{law\ of}\ \theta,\ \pi)$", title="step size 0.02, K = 5", ylim=(2e-3, 600))
    right.set(title=rf"planned for $W_2 \leq$ {plan['eps']:g}: step size {plan['step_size']:.2g}, "
              f"K = {plan['local_steps']:.0f}")
    right.plot(plan["rounds"], plan["eps"], "*", color=plot.COLOURS[1], markersize=13, zorder=5,
               label=f"planned by the recursion: {plan['rounds']:.0f} rounds")
    right.plot(plan["exact_rounds"], plan["eps"], "*", color=plot.COLOURS[0], markersize=13, zorder=5,
               label=f"best by exact laws: {plan['exact_rounds']:.0f} rounds (of a larger step size)")
    for ax in (left, right):
        plot.legend_below(ax)
    return drawing


def judge_order(tables: Tables) -> Judgement:
    """Exact law, recursion, published bound, in this order at every round."""
    table = tables["curves"]
    good = bool(((table["exact"] <= table["recursion"] * (1.0 + 1e-12))
                 & (table["recursion"] <= table["published"])).all())
    last = table.groupby("panel", sort=False).tail(1)
    ends = "; ".join(f"{one.exact:.3g}, {one.recursion:.3g}, {one.published:.3g} ({one.panel})"
                     for one in last.itertuples())
    return Judgement(PASS if good else FAIL,
                     f"At the last round exact law, recursion and published bound are {ends}.")


def judge_plan(tables: Tables) -> Judgement:
    """The exact law at the planned round."""
    plan = tables["plans"].iloc[0]
    table = among(tables["curves"], panel="planned")
    after = table[table["round"] >= plan["rounds"]]
    good = bool((after["exact"] <= plan["eps"]).all())
    return Judgement(PASS if good else FAIL, (
        f"From round {plan['rounds']:.0f} on the exact W2 is at most {after['exact'].max():.3g}; "
        f"{plan['eps']:g} was asked for. By exact laws {plan['exact_rounds']:.0f} rounds are enough, at a "
        f"step size of their own ({plan['price']:.0f} times fewer); the published rule asks for "
        f"{plan['published_rounds']:.2g}."))


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """Replicas against the exact law."""
    return statistics.follows(tables["replicas"]["deviation"], tables["replicas"]["compared"])


CLAIMS = [
    Finding("The exact law is below the recursion, and that below the published bound, at every round.",
            "theorem 4.7", judge_order, name="order", rests_on=EXACT),
    Finding("A step size and rounds planned by the recursion reach the accuracy that was asked for.", "",
            judge_plan, name="plan", rests_on=EXACT),
    Finding("Replicas follow the exact law.", "", judge_replicas, name="replicas", rests_on=REPLICAS),
]
