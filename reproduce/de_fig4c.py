"""DE-SGLD figure 4(c): W2 of one agent along iterations on three networks, minibatches of 25."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from theory import constants, de_sgld

from . import _decentralized as de
from . import _decentralized_batches as batches
from . import _decentralized_claims as claims
from . import _decentralized_linear as linear
from . import plot
from .figure import FAIL, PASS, ByScale, Claim, Drawing, Parameter, Tables, note, settings

TITLE = "DE-SGLD: W2 by network, with minibatches"
PAPER = "DE-SGLD figure 4(c)"
SHOWS = ("Replicas and exact moments of one agent on three networks with minibatches of 25; the limits of "
         "all agents; and how they fall with the step size, or do not.")
COST = {"tiny": "3 s", "quick": "9 s", "paper": "about 2 min (estimated)"}
PARAMETERS = [
    *batches.COMMON,
    Parameter("step_size", 0.008, "paper", "section 5.1: eta = 0.008 in figure 4(c)"),
    Parameter("batch_size", 25, "paper", "section 5.1: b = 25"),
    Parameter("falling_steps", ByScale([1e-5, 0.008], [1e-6, 1e-5, 1e-4, 1e-3, 0.008],
                                       [1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.008]), "ours",
              "step sizes of the right panel"),
    Parameter("n_late", 200, "ours", "an iteration at which all laws have settled"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, replicas, agents, speeds, falling, own, hypotheses, theorem, floor."""
    p = settings(PARAMETERS, scale)
    problem = linear.problem_of(p, p.data_seed, p.batch_size)
    goal = problem.target()
    curves, checked, agents, speeds, falling, judged, bounds = [], [], [], [], [], [], []
    for number, (name, network) in enumerate(de.NETWORKS.items()):
        algorithm = fs.DESGLD(p.step_size, network.mixing(p.n_clients))
        rows, check = batches.simulated(p, problem, algorithm, p.seed + number, network=name)
        curves.append(rows)
        checked.append(check)
        speeds.append({"network": name, **batches.speeds(p, problem, algorithm),
                       "radius": algorithm.radius(problem.as_quadratic())})
        found = np.array([law.w2(goal) for law in batches.stationary(problem, algorithm)])
        agents.append(pd.DataFrame({"network": name, "agent": np.arange(1, len(found)), "w2": found[1:]}))
        facts = constants(linear.problem_of(p, p.data_seed), algorithm, p.start)
        judged.append(de.judgement_row(de.judgement(de_sgld.w2_clients_bound, facts, algorithm, 1),
                                       network=name))
        bounds += batches.theorem_rows(p, problem, algorithm, network=name)
        for step in p.falling_steps:
            note(f"limits, {network.title}, step size {step:g}")
            w2 = [law.w2(goal) for law in batches.stationary(problem, fs.DESGLD(step, algorithm.mixing))]
            falling.append({"network": name, "step_size": step, "agent": w2[p.agent_shown],
                            "agents": float(np.mean(w2[1:])), "average": w2[0]})
    floor = float(fs.distance.w2_floor(goal.cov, p.n_replicas))
    return {"curves": pd.concat(curves), "replicas": pd.DataFrame(checked), "agents": pd.concat(agents),
            "speeds": pd.DataFrame(speeds), "falling": pd.DataFrame(falling), "own": _own(p, goal),
            "hypotheses": pd.DataFrame(judged), "theorem": pd.DataFrame(bounds),
            "floor": pd.DataFrame([{"floor": floor, "target_sd": float(np.sqrt(goal.variances.sum()))}])}


def _own(p: Any, goal: fs.Gaussian) -> pd.DataFrame:
    """W2 of the agents' own posteriors, exp(-f_i), to the posterior."""
    quadratic = linear.problem_of(p, p.data_seed).as_quadratic()
    own = [fs.Gaussian(centre, np.linalg.inv(weight * hessian)) for weight, hessian, centre in zip(
        quadratic.weights, quadratic.dense_hessians, quadratic.minimizers, strict=True)]
    return pd.DataFrame({"agent": np.arange(1, p.n_clients + 1), "w2": [law.w2(goal) for law in own]})


def draw(tables: Tables) -> Drawing:
    """Curves; all agents; against the step size."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.1, 4.6)
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
    ax.set_ylim(-0.1, 1.5 * float(shown["high"].max()))
    plot.once(ax, loc="upper right", fontsize=7.8)
    de.remark(ax, "Theorem 1 for the agents, not drawn:\n" + "\n".join(
        f"{network.title}: {_says(tables, name)}" for name, network in de.NETWORKS.items()), 0.02, 0.02,
        fontsize=7.5)


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
    for name, network in de.NETWORKS.items():
        one = de.among(agents, network=name).sort_values("w2").reset_index(drop=True)
        ax.step(one["w2"], share, where="post", color=network.colour, label=network.title)
        first = one.index[one["agent"] == 1][0]
        ax.plot(one["w2"][first], share[first], network.marker, color=network.colour, markersize=8,
                markeredgecolor="black", label="agent 1 of it")
    handles, labels = ax.get_legend_handles_labels()
    ax.set(xlabel=r"limit of $W_2$ of an agent", ylabel="share of agents at or below", ylim=(0.0, 1.04),
           title="ours: what a random agent may show")
    ax.legend(handles[::2] + handles[1:2], [*labels[::2], "agent 1 of each"], loc="lower right")


def _draw_falling(ax: Axes, tables: Tables) -> None:
    falling = tables["falling"]
    for name, network in de.NETWORKS.items():
        one = de.among(falling, network=name)
        plot.exact(ax, one["step_size"], one["agents"], network.colour,
                   f"exact moments, {network.title}", marker=network.marker)
    ax.axhline(float(tables["own"]["w2"].mean()), color="#000000", linestyle="-.", linewidth=1.1,
               label="agents' own posteriors")
    ax.axhline(float(tables["floor"]["target_sd"].iloc[0]), color=plot.COLOURS[3], linestyle="-.",
               linewidth=1.1, label="a point mass at the posterior's mean")
    ax.set(xscale="log", yscale="log", xlabel=r"step size $\eta$",
           ylabel=r"limit of $W_2$, mean of the agents",
           title="ours: alone, small steps do not help")
    ax.set_ylim(*plot.room(float(falling["agents"].min()), float(falling["agents"].max()), 0.3))
    ax.legend(loc="upper left", fontsize=7.8)


def _speed(tables: Tables, name: str) -> dict[str, float]:
    """A column of the speeds by network."""
    return {network: float(de.among(tables["speeds"], network=network)[name].iloc[0])
            for network in de.NETWORKS}


def _first(found: dict[str, float]) -> bool:
    """Is the fully connected network strictly below the others?"""
    return found["complete"] < min(found["ring"], found["disconnected"])


def judge_fastest(tables: Tables) -> tuple[str, str]:
    """Iterations of the agent and of the agents' mean to settle."""
    agent, mean, average = (_speed(tables, f"{name}_settles") for name in ("agent", "agents", "average"))
    return (PASS if _first(agent) and _first(mean) else FAIL), (
        "Iterations of agent 1, of the agents' mean and of the average until they stay within 5% of their "
        "limits: " + "; ".join(f"{network.title} {agent[name]:.0f}, {mean[name]:.0f} and {average[name]:.0f}"
                               for name, network in de.NETWORKS.items())
        + ". The networks differ in how far down they go rather than in how soon.")


def judge_lowest(tables: Tables) -> tuple[str, str]:
    """Limits of agent 1 and of the agents' mean."""
    agent, mean = _speed(tables, "agent"), _speed(tables, "agents")
    return (PASS if _first(agent) and _first(mean) else FAIL), (
        "Limits of agent 1 and of the agents' mean: "
        + "; ".join(f"{network.title} {agent[name]:.3f} and {mean[name]:.3f}"
                    for name, network in de.NETWORKS.items()) + ".")


def judge_away(tables: Tables) -> tuple[str, str]:
    """Disconnected agents at a tiny step size."""
    falling, own = tables["falling"], tables["own"]["w2"]
    least = falling["step_size"].min()
    small = {name: float(de.among(falling, network=name, step_size=least)["agents"].iloc[0])
             for name in de.NETWORKS}
    alone, mean = small["disconnected"], float(own.mean())
    good = abs(alone / mean - 1.0) < 0.01 and max(small[name] for name in de.CONNECTED) < 0.1 * alone
    return (PASS if good else FAIL), (
        f"At eta = {least:g} the agents' mean limit is {alone:.4f} disconnected, that of their own "
        f"posteriors {mean:.4f} (the nearest agent's {own.min():.3f}), but {small['complete']:.2g} fully "
        f"connected and {small['ring']:.2g} circular.")


def judge_random(tables: Tables) -> tuple[str, str]:
    """Does one random agent order the networks like the mean of all?"""
    wide = tables["agents"].pivot(index="agent", columns="network", values="w2")
    same = (wide["complete"] < wide["ring"]) & (wide["ring"] < wide["disconnected"])
    spread = [f"{wide[name].min():.3f} to {wide[name].max():.3f} ({network.title})"
              for name, network in de.NETWORKS.items()]
    return (PASS if same.all() else FAIL), (
        f"{int(same.sum())} of {len(same)} agents have the order fully connected, circular, disconnected; "
        f"limits range from {de.listed(spread)}.")


CLAIMS = [
    Claim("The fastest convergence is observed for the fully connected network, read as iterations until an "
          "agent has settled.", "section 5.1, figure 4(c)", judge_fastest),
    Claim("The same, read as the level reached.", "section 5.1, figure 4(c)", judge_lowest),
    Claim("Disconnected, each agent converges to a law of its own data alone, so that its error stays away "
          "from zero.", "section 5.1, figure 4(c)", judge_away),
    Claim("ours: any randomly picked agent shows the same order of the networks.", "ours", judge_random),
    Claim("ours: replicas follow the exact moments.", "ours", claims.judge_replicas),
]
