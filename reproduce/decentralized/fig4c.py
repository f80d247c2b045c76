"""DE-SGLD figure 4(c): W2 of one agent along iterations on three networks, minibatches of 25."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from fedsim.stability.search import stability_radius
from theory import constants, de_sgld
from theory.exact.batches import MinibatchNoise

from .. import plot
from ..figure import DATA_SETS, ByScale, Claim, Drawing, Finding, Parameter, Tables, note, settings
from ..verdicts import Judgement, shares, unanimous
from . import batches, claims, linear, shared as de
from .assumptions import assumptions_claim, assumptions_row
from .claims import SAME

TITLE = "W2 by network, with minibatches"
PAPER = "DE-SGLD figure 4(c)"
REPRODUCES = ("DE 4(c)",)
SHOWS = ("Replicas and exact moments of one agent on three networks with minibatches of 25; the limits of "
         "all agents; and how they fall with the step size, or do not.")
COST = {"tiny": "13 s", "quick": "18 s", "paper": "about 6 min (estimated)"}
PARAMETERS = [
    *batches.COMMON,
    Parameter("step_size", 0.008, "paper", "section 5.1: eta = 0.008 in figure 4(c)"),
    Parameter("batch_size", 25, "paper", "section 5.1: b = 25"),
    Parameter("falling_steps", ByScale([1e-5, 0.008], [1e-6, 1e-5, 1e-4, 1e-3, 0.008],
                                       [1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.008]), "ours",
              "step sizes of the right panel"),
    Parameter("alone_step", 1e-6, "ours", "small enough for the law that a disconnected agent tends to"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, replicas, agents, sets, assumptions, alone, falling, hypotheses, theorem, floor."""
    p = settings(PARAMETERS, scale)
    problem = linear.problem_of(p, p.data_seed, p.batch_size)
    goal = problem.target()
    curves, checked, falling, judged, bounds = [], [], [], [], []
    for number, (name, network) in enumerate(de.NETWORKS.items()):
        algorithm = fs.DESGLD(p.step_size, network.mixing(p.n_clients))
        rows, check = batches.simulated(p, problem, algorithm, p.seed + number, network=name)
        curves.append(rows)
        checked.append(check)
        facts = constants(linear.problem_of(p, p.data_seed), algorithm, p.start)
        judged.append(de.judgement_row(de.judgement(de_sgld.w2_clients_bound, facts, algorithm, 1),
                                       network=name))
        bounds += batches.theorem_rows(p, problem, algorithm, network=name)
        for step in p.falling_steps:
            note(f"limits, {network.title}, step size {step:g}")
            falling.append({"network": name, "step_size": step,
                            **batches.limits(p, problem, fs.DESGLD(step, algorithm.mixing))})
    floor = float(fs.distance.w2_floor(goal.cov, p.n_replicas))
    return {"curves": pd.concat(curves), "replicas": pd.DataFrame(checked), **_sets(p),
            "falling": pd.DataFrame(falling), "hypotheses": pd.DataFrame(judged),
            "theorem": pd.DataFrame(bounds),
            "floor": pd.DataFrame([{"floor": floor, "target_sd": float(np.sqrt(goal.variances.sum()))}])}


def _sets(p: Any) -> Tables:
    """Every data set: limits and speeds by network, of all agents too; noise; and agents left alone."""
    sets, agents, assumptions, alone = [], [], [], []
    for seed in range(p.data_seed, p.data_seed + p.n_data_sets):
        note(f"exact moments of data set {seed}")
        problem = linear.problem_of(p, seed, p.batch_size)
        rows, along, goal = [], {}, problem.target()
        for name, network in de.NETWORKS.items():
            algorithm = fs.DESGLD(p.step_size, network.mixing(p.n_clients))
            along[name], law = batches.curves(p, problem, algorithm, p.n_rounds)
            found = batches.stationary(problem, algorithm) if batches.settles(problem, algorithm) else []
            w2 = batches.distances(found, goal) if found else np.full(p.n_clients + 1, np.inf)
            rows.append({"data_set": seed, "network": name, "average": w2[0], "agent": w2[p.agent_shown],
                         "agents": w2[1:].mean(),
                         "radius": stability_radius(problem.as_quadratic(), algorithm)})
            agents.append(pd.DataFrame({"data_set": seed, "network": name,
                                        "agent": np.arange(1, len(w2)), "w2": w2[1:]}))
            assumptions.append(assumptions_row(problem.curvature_bounds("components"),
                                               _noise_sd(problem, law, found), data_set=seed, network=name))
        sets += linear.speeds_of(rows, along)
        alone.append({"data_set": seed, **_alone(p, problem)})
    return {"sets": pd.DataFrame(sets), "agents": pd.concat(agents), "assumptions": pd.DataFrame(assumptions),
            "alone": pd.DataFrame(alone)}


def _noise_sd(problem: fs.LinearRegression, law: fs.Law, limit: list[fs.Gaussian]) -> float:
    """Largest root of E||gradient noise||^2 of an agent along the law and in its limit; infinite without."""
    if not limit:
        return float("inf")
    noise, traces = MinibatchNoise(problem), []
    for k in range(len(law.rounds)):
        means, covs = (np.stack([np.asarray(part)[k] for part in parts]) for parts in (
            [one.mean for one in law.clients], [one.cov for one in law.clients]))
        traces.append(np.trace(noise.mean(means, covs), axis1=1, axis2=2).max())
    last = noise.mean(np.stack([one.mean for one in limit[1:]]),
                      np.stack([np.asarray(one.cov) for one in limit[1:]]))
    return float(np.sqrt(max(*traces, np.trace(last, axis1=1, axis2=2).max())))


def _alone(p: Any, problem: fs.LinearRegression) -> dict[str, float]:
    """W2 to the posterior of disconnected agents at a small step size, and of their own exp(-f_i)."""
    goal, quadratic = problem.target(), problem.as_quadratic()
    law = batches.stationary(problem, fs.DESGLD(p.alone_step, fs.network.disconnected(p.n_clients)))
    own = [fs.Gaussian(centre, np.linalg.inv(weight * hessian)) for weight, hessian, centre in zip(
        quadratic.weights, quadratic.dense_hessians, quadratic.minimizers, strict=True)]
    seen, wanted = batches.distances(law, goal)[1:], batches.distances(own, goal)
    return {"step_size": p.alone_step, "agents": seen.mean(), "own": wanted.mean(), "nearest": wanted.min(),
            "off": np.abs(seen / wanted - 1.0).max()}


def draw(tables: Tables) -> Drawing:
    """Curves; all agents; against the step size."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.4, 5.4)
    _draw_curves(left, tables)
    _draw_agents(middle, tables)
    _draw_falling(right, tables)
    return drawing


def _draw_curves(ax: Axes, tables: Tables) -> None:
    curves = tables["curves"]
    for name, network in de.NETWORKS.items():
        batches.draw_curves(ax, de.among(curves, network=name), batches.AGENT, network.colour,
                            f"exact moments, {network.title}")
    shown = de.among(curves, who=batches.AGENT)
    ax.set(xlabel="iteration k", ylabel=r"$W_2$(law of agent 1, posterior)",
           title=r"(c) agent 1, $\eta$ = 0.008, b = 25")
    ax.set_ylim(0.0, 1.05 * float(shown["high"].max()))
    de.legend_below(ax)
    de.remark(ax, "Theorem 1 for the agents, not drawn:\n" + "\n".join(
        f"{network.title}: {_says(tables, name)}" for name, network in de.NETWORKS.items()), 0.98, 0.02,
        fontsize=9)


def _says(tables: Tables, name: str) -> str:
    """Theorem 1's limit for the agents in words."""
    row = de.among(tables["hypotheses"], network=name).iloc[0]
    bound = de.among(tables["theorem"], network=name, quantity=linear.AGENTS)
    if bound.empty:
        return f"none, {row['symbols']}"
    remarks = ["vacuous"] * bool(bound["vacuous"].iloc[0]) + [row["symbols"]] * (row["status"] != de.HOLD)
    return f"{bound['floor'].iloc[0]:.2g} in the limit" + (f" ({', '.join(remarks)})" if remarks else "")


def _draw_agents(ax: Axes, tables: Tables) -> None:
    agents = tables["agents"]
    share = np.arange(1, agents["agent"].max() + 1) / agents["agent"].max()
    drawn = agents["data_set"].min()
    for (name, seed), one in agents.groupby(["network", "data_set"], sort=False):
        network, ordered = de.NETWORKS[str(name)], one.sort_values("w2").reset_index(drop=True)
        here = seed == drawn
        ax.step(ordered["w2"], share, where="post", color=network.colour, alpha=1.0 if here else 0.22,
                linewidth=1.8 if here else 0.7, label=network.title if here else None)
        if here:
            first = ordered.index[ordered["agent"] == 1][0]
            ax.plot(ordered["w2"][first], share[first], network.marker, color=network.colour, markersize=8,
                    markeredgecolor="black", label=f"agent 1, {network.title}", linestyle="none")
    ax.plot([], [], color=plot.GREY, alpha=0.6, linewidth=0.7, label="the other data sets")
    ax.set(xlabel=r"limit of $W_2$ of an agent", ylabel="share of agents at or below", ylim=(0.0, 1.04),
           title="ours: what a random agent may show")
    de.legend_below(ax)


def _draw_falling(ax: Axes, tables: Tables) -> None:
    falling = tables["falling"]
    for name, network in de.NETWORKS.items():
        one = de.among(falling, network=name)
        plot.exact(ax, one["step_size"], one["agents"], network.colour,
                   f"exact moments, {network.title}", marker=network.marker)
    ax.axhline(float(tables["alone"]["own"].iloc[0]), color="#000000", linestyle="--", linewidth=1.1,
               label="agents' own posteriors")
    ax.axhline(float(tables["floor"]["target_sd"].iloc[0]), color=plot.COLOURS[3], linestyle="-.",
               linewidth=1.1, label="a point mass at the posterior's mean")
    ax.set(xscale="log", yscale="log", xlabel=r"step size $\eta$",
           ylabel=r"limit of $W_2$, mean of the agents",
           title="ours: limits by step size")
    ax.set_ylim(*plot.room(float(falling["agents"].min()), float(falling["agents"].max()), 0.02))
    de.legend_below(ax)


def judge_fastest(tables: Tables) -> Judgement:
    """Speeds of the agents' mean, which is what a randomly picked agent shows on average."""
    return claims.judge_faster(tables, [("complete", "ring"), ("complete", "disconnected")], ("agents",))


def judge_lowest(tables: Tables) -> Judgement:
    """Limits of agent 1 and of the agents' mean."""
    wide = tables["sets"].pivot(index="data_set", columns="network")
    good = {name: ((wide[name, "complete"] < wide[name, "ring"])
                   & (wide[name, "complete"] < wide[name, "disconnected"])) for name in ("agent", "agents")}
    return Judgement(unanimous(good["agent"] & good["agents"]), (
        f"The fully connected network has the lowest limit of the agents' mean {shares(good['agents'])} and "
        f"of agent 1 {shares(good['agent'])}; medians of the mean {claims.by_network(tables, 'agents')}, of "
        f"agent 1 {claims.by_network(tables, 'agent')}."))


def judge_away(tables: Tables) -> Judgement:
    """Disconnected agents at a small step size, against the posteriors of their own data."""
    table = tables["alone"]
    good = (table["off"] < SAME) & (table["nearest"] > 0.0)
    return Judgement(unanimous(good), (
        f"At eta = {table['step_size'].iloc[0]:g} every disconnected agent's W2 is within 1% of that of its "
        f"own posterior exp(-f_i), which is not zero, {shares(good)}, at most "
        f"{100 * table['off'].max():.2g}% off; medians of the agents' mean "
        f"{table['agents'].median():.4f} and {table['own'].median():.4f}, of the "
        f"nearest agent {table['nearest'].median():.3f}."))


def judge_random(tables: Tables) -> Judgement:
    """Do some agents order the networks otherwise than the mean of all?"""
    wide = tables["agents"].pivot(index=["data_set", "agent"], columns="network", values="w2")
    same = (wide["complete"] < wide["ring"]) & (wide["ring"] < wide["disconnected"])
    by_set = same.groupby("data_set")
    return Judgement(unanimous(~by_set.all()), (
        f"{100 * same.mean():.1f}% of the agents have the order fully connected, circular, disconnected; all "
        f"of them {shares(by_set.all())}, at least {by_set.sum().min()} of {by_set.size().max()} on each."))


CLAIMS = [
    Claim("The fastest convergence is observed for the fully connected network.", "section 5.1, figure 4(c)",
          judge_fastest, name="fastest", rests_on=DATA_SETS,
          context="The agent is picked at random: judged on the mean over all agents."),
    Finding("Agent 1 and the mean of the agents reach the lowest level on the fully connected network.",
            "section 5.1, figure 4(c)", judge_lowest, name="lowest", rests_on=DATA_SETS),
    Claim("Disconnected, each agent converges to a law of its own data alone, so that its error stays away "
          "from zero.", "section 5.1, figure 4(c)", judge_away, name="alone", rests_on=DATA_SETS),
    assumptions_claim("4(c)", DATA_SETS, "With minibatches the noise grows with the distance; its variance "
                      "is bounded where the second moment of the iterates settles, as appendix D argues."),
    Finding("Some agents show another order of the networks than their mean: which agent is picked matters.",
            "section 5.1, figure 4(c)", judge_random, name="random_agent", rests_on=DATA_SETS),
    claims.replicas_finding("exact moments"),
]
