"""DE-SGLD figure 4(c): W2 of one agent along iterations on three networks, minibatches of 25."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from fedsim.stability.search import stability_radius
from theory.exact.batches import MinibatchNoise

from .. import plot
from ..figure import ByScale, Claim, Finding, Parameter, Tables, note, settings
from ..tables import among, groups
from ..verdicts import DATA_SETS, Judgement, shares, unanimous
from . import batches, claims, linear, shared as de

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
    """Tables: curves, replicas, sets, agents, noise, alone, falling, hypotheses, theorem, floor."""
    p = settings(PARAMETERS, scale)
    problem, exact = (linear.problem_of(p, p.data_seed, size) for size in (p.batch_size, None))
    rows = de.empty("sets", "agents", "noise", "alone", "falling", "hypotheses", "theorem")
    for seed, regression in linear.data_sets(p, p.batch_size):
        _add_set(rows, p, seed, regression)
    algorithms = {name: de.algorithm_on(name, p) for name in de.NETWORKS}
    for name, algorithm in algorithms.items():
        theorem = de.applied(de.AGENTS, theory.constants(exact, algorithm, p.start), algorithm)
        rows["hypotheses"].append(theorem.row(network=name))
        rows["theorem"] += batches.theorem_rows(p, problem, algorithm, network=name)
        note(f"limits, {name}, by step size")
        rows["falling"] += [{"network": name, "step_size": step, **batches.limits(
            p, problem, fs.DESGLD(step, algorithm.mixing))} for step in p.falling_steps]
    rows["floor"] = [{"floor": linear.floor_of(p, problem), "target_sd": linear.spread(problem.target())}]
    runs = [(problem, algorithm, {"network": name}) for name, algorithm in algorithms.items()]
    return batches.simulated(p, runs) | de.tables_of(rows)


def _add_set(rows: dict[str, list[Any]], p: Any, seed: int, problem: fs.LinearRegression) -> None:
    """A data set: limits and speeds by network, of all agents too; noise; and agents left alone."""
    limits, curves = [], {}
    for name in de.NETWORKS:
        algorithm = de.algorithm_on(name, p)
        law = theory.exact_law(problem, algorithm, p.n_rounds, start=p.start)
        ends, curves[name] = batches.stationary(problem, algorithm), batches.along(p, law)
        w2 = batches.distances(ends, problem)
        limits.append({"data_set": seed, "network": name, **batches.named(p, w2),
                       "radius": stability_radius(problem.as_quadratic(), algorithm)})
        rows["agents"].append(pd.DataFrame({"data_set": seed, "network": name,
                                            "agent": np.arange(1, len(w2)), "w2": w2[1:]}))
        noise = _noise_sd(problem, law, ends)
        rows["noise"].append({"data_set": seed, "network": name, "bounded": bool(np.isfinite(noise)),
                              "sd": noise if np.isfinite(noise) else -1.0})
    rows["sets"] += linear.speeds_of(limits, curves)
    rows["alone"].append({"data_set": seed, **_alone(p, problem)})


def _noise_sd(problem: fs.LinearRegression, law: fs.Law, ends: list[fs.Gaussian]) -> float:
    """Largest root of E||gradient noise||^2 of an agent along the law and in its limit; infinite without."""
    if not ends:
        return float("inf")
    noise, clients = MinibatchNoise(problem), law.clients  # with full covariances
    covs: list[Any] = [agent.cov for agent in clients]
    along = zip(np.stack([agent.mean for agent in clients], axis=1), np.stack(covs, axis=1), strict=True)
    limit = np.stack([agent.mean for agent in ends[1:]]), np.stack([agent.cov for agent in ends[1:]])
    return float(np.sqrt(max(np.trace(noise.mean(*moments), axis1=1, axis2=2).max()
                             for moments in [*along, limit])))


def _alone(p: Any, problem: fs.LinearRegression) -> dict[str, float]:
    """W2 to the posterior of disconnected agents at a small step size, and of their own exp(-f_i)."""
    quadratic = problem.as_quadratic()
    laws = batches.stationary(problem, fs.DESGLD(p.alone_step, fs.network.disconnected(p.n_clients)))
    own = [fs.Gaussian(centre, np.linalg.inv(weight * hessian)) for weight, hessian, centre in zip(
        quadratic.weights, quadratic.dense_hessians, quadratic.minimizers, strict=True)]
    agents, alone = batches.distances(laws, problem)[1:], batches.distances(own, problem)
    return {"step_size": p.alone_step, "agents": agents.mean(), "own": alone.mean(), "nearest": alone.min(),
            "off": np.abs(agents / alone - 1.0).max()}


def _draw_curves(ax: Axes, tables: Tables) -> None:
    looks = [(network.title, network.colour) for network in de.NETWORKS.values()]
    batches.draw_curves(ax, tables["curves"], "network", looks, r"(c) agent 1, $\eta$ = 0.008, b = 25")
    de.remark(ax, "Theorem 1 for the agents, not drawn:\n" + "\n".join(
        f"{network.title}: {_theorem(tables, name)}" for name, network in de.NETWORKS.items()), 0.98, 0.02,
        fontsize=9)


def _theorem(tables: Tables, name: str) -> str:
    """Theorem 1's limit for the agents in words."""
    row = among(tables["hypotheses"], network=name).iloc[0]
    bound = among(tables["theorem"], network=name, quantity=de.AGENTS)
    if bound.empty:
        return f"none, {row['symbols']}"
    remarks = ["vacuous"] * bool(bound["vacuous"].iloc[0]) + [row["symbols"]] * (row["status"] != de.HOLD)
    return f"{bound['floor'].iloc[0]:.2g} in the limit" + (f" ({', '.join(remarks)})" if remarks else "")


def _draw_agents(ax: Axes, tables: Tables) -> None:
    agents = tables["agents"]
    share = np.arange(1, agents["agent"].max() + 1) / agents["agent"].max()
    for (name, seed), one in groups(agents, ["network", "data_set"]):
        network, ordered = de.NETWORKS[name], one.sort_values("w2")
        drawn = seed == agents["data_set"].min()
        ax.step(ordered["w2"], share, where="post", color=network.colour, alpha=1.0 if drawn else 0.22,
                linewidth=1.8 if drawn else 0.7, label=network.title if drawn else None)
        if drawn:
            first = ordered["agent"] == 1
            ax.plot(ordered["w2"][first], share[first], network.marker, color=network.colour, markersize=8,
                    markeredgecolor="black", label=f"agent 1, {network.title}", linestyle="none")
    ax.plot([], [], color=plot.GREY, alpha=0.6, linewidth=0.7, label="the other data sets")
    ax.set(xlabel=r"limit of $W_2$ of an agent", ylabel="share of agents at or below", ylim=(0.0, 1.04),
           title="ours: what a random agent may show")


def _draw_falling(ax: Axes, tables: Tables) -> None:
    falling = tables["falling"]
    for name, network in de.NETWORKS.items():
        one = among(falling, network=name)
        plot.exact(ax, one["step_size"], one["agents"], network.colour,
                   f"exact moments, {network.title}", marker=network.marker)
    ax.axhline(float(tables["alone"]["own"].iloc[0]), color="#000000", linestyle="--", linewidth=1.1,
               label="agents' own posteriors")
    de.point_mass(ax, float(tables["floor"]["target_sd"].iloc[0]))
    ax.set(xscale="log", yscale="log", xlabel=r"step size $\eta$",
           ylabel=r"limit of $W_2$, mean of the agents", title="ours: limits by step size",
           ylim=plot.room(float(falling["agents"].min()), float(falling["agents"].max()), 0.02))


draw = batches.three(_draw_curves, _draw_agents, _draw_falling)


def judge_lowest(tables: Tables) -> Judgement:
    """Limits of agent 1 and of the agents' mean."""
    good = {name: claims.ordered(tables, name, "complete", "ring") & claims.ordered(
        tables, name, "complete", "disconnected") for name in ("agent", "agents")}
    return Judgement(unanimous(good["agent"] & good["agents"]), (
        f"The fully connected network has the lowest limit of the agents' mean {shares(good['agents'])} and "
        f"of agent 1 {shares(good['agent'])}; medians of the mean {claims.by_network(tables, 'agents')}, of "
        f"agent 1 {claims.by_network(tables, 'agent')}."))


def judge_away(tables: Tables) -> Judgement:
    """Disconnected agents at a small step size, against the posteriors of their own data."""
    table = tables["alone"]
    good = (table["off"] < claims.SAME) & (table["nearest"] > 0.0)
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


def judge_noise(tables: Tables) -> Judgement:
    """Is the gradient noise bounded along the run and in its limit, on every data set?"""
    table = tables["noise"]
    good = claims.by_set(table, table["bounded"])
    most = table["sd"][table["bounded"]].max()
    return Judgement(unanimous(good), "The variance of the gradient noise is bounded on all networks "
                     + shares(good) + (f", its root by {most:.4g}." if table["bounded"].any() else "."))


CLAIMS = [
    Claim("The fastest convergence is observed for the fully connected network.", "section 5.1, figure 4(c)",
          partial(claims.judge_faster, pairs=[("complete", "ring"), ("complete", "disconnected")],
                  quantities=["agents"]), name="fastest", rests_on=DATA_SETS,
          context="The agent is picked at random: judged on the mean over all agents."),
    Finding("Agent 1 and the mean of the agents reach the lowest level on the fully connected network.",
            "section 5.1, figure 4(c)", judge_lowest, name="lowest", rests_on=DATA_SETS),
    Claim("Disconnected, each agent converges to a law of its own data alone, so that its error stays away "
          "from zero.", "section 5.1, figure 4(c)", judge_away, name="alone", rests_on=DATA_SETS),
    Claim("The example satisfies the assumptions: the variance of the gradient noise is bounded.",
          "section 5, beginning, with Assumption 1 and appendix D; figure 4(c)", judge_noise,
          name="assumptions", rests_on=DATA_SETS,
          context="With minibatches the noise grows with the distance; its variance is bounded where the "
                  "second moment of the iterates settles, which appendix D shows for a small enough step "
                  "size. That components are strongly convex with Lipschitz gradients (appendix E) is so "
                  "whatever the data, and is not counted."),
    Finding("Some agents show another order of the networks than their mean: which agent is picked matters.",
            "section 5.1, figure 4(c)", judge_random, name="random_agent", rests_on=DATA_SETS),
    claims.replicas_finding("exact moments"),
]
