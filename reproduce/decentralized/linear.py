"""Linear regression of DE-SGLD section 5.1: its data, and tables and picture of figures 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from fedsim.stability.search import stability_radius
from theory.de_sgld import clients_w2

from .. import plot
from ..fa_hmc.shared import deviation
from ..figure import ByScale, Drawing, Parameter, Tables, note
from . import shared as de
from .assumptions import assumptions_row

AVERAGE, AGENTS = "average", "mean of the agents"
LEVEL = 0.95
SETTLED = 0.05
"""A curve has settled once it stays within this share of its limit."""

CLIENTS = Parameter("n_clients", 100, "paper", "section 5.1: N = 100 agents")
DATA = Parameter("n_data", 5000, "paper", "section 5.1: 5,000 data points, 50 an agent")
DIM = Parameter("dim", 2, "paper", "section 5.1: x in R^2")
PRIOR = Parameter("prior_variance", 10.0, "paper", "section 5.1: lambda = 10")
NOISE = Parameter("noise_std", 1.0, "paper", "section 5.1: xi = 1")
REPLICAS = Parameter("n_replicas", 100, "paper", "section 5.1: 100 independent runs")
ROUNDS = Parameter("n_rounds", ByScale(40, 60, 60), "ours", "not printed; all curves have settled")
START = Parameter("start", [0.0, 0.0], "ours", "not printed: every agent starts at the origin")
DATA_SEED = Parameter("data_seed", 0, "ours", "not printed: the first data set; x is drawn from the prior")
SEED = Parameter("seed", 1, "ours", "of the replicas")
CHECKED = Parameter("n_checked", ByScale(1280, 1280, 16384), "ours",
                    "replicas compared with the exact moments; 100 are too few for normal scores")
DATA_SETS = Parameter("n_data_sets", ByScale(12, 12, 200), "ours",
                      "claims are judged on the exact laws of this many data sets, each by itself")
LATE = 200
"""An iteration at which every law of these figures has long settled (spectral radii are below 0.92)."""


def problem_of(p: Any, seed: int, batch_size: int | None = None) -> fs.LinearRegression:
    """Model (53) with x from the prior; data are drawn agent by agent, so the first 50 are agent 1's."""
    rng = np.random.default_rng(seed)
    truth = np.sqrt(p.prior_variance) * rng.standard_normal(p.dim)
    features = rng.standard_normal((p.n_data, p.dim))
    targets = features @ truth + p.noise_std * rng.standard_normal(p.n_data)
    agents = np.repeat(np.arange(p.n_clients), p.n_data // p.n_clients)
    return fs.LinearRegression(features, targets, agents, noise_std=p.noise_std,
                               prior_variance=p.prior_variance, batch_size=batch_size)


def settled(w2: np.ndarray, limit: float) -> int:
    """Iterations after which the curve stays within 5% of its limit."""
    outside = np.flatnonzero(np.abs(w2 - limit) > SETTLED * limit)
    return int(outside[-1]) + 1 if len(outside) else 0


def tables(p: Any, algorithm_of: Callable[[Any], Any], bounds: Any) -> Tables:
    """Tables curves, means, floors, hypotheses, replicas, those of `_sets` and, if they have a value, bounds.

    `algorithm_of` a mixing matrix; `bounds` are the theorem's functions for average and agents.
    """
    problem = problem_of(p, p.data_seed)
    curves, means, judged, found, checks = [], [], [], [], []
    for number, (name, network) in enumerate(de.NETWORKS.items()):
        note(f"simulating {network.title}")
        algorithm = algorithm_of(network.mixing(p.n_clients))
        law = theory.exact_law(problem, algorithm, p.n_rounds, start=p.start)
        run = fs.simulate(problem, algorithm, p.n_rounds, p.n_replicas, seed=p.seed + number, start=p.start)
        shown = [(AVERAGE, law, run)] + [(f"agent {i + 1}", law.clients[i], run.clients[i])
                                         for i in range(p.n_agents_shown)]
        for who, exact, seen in shown:
            assert isinstance(seen, fs.Run)
            band = seen.w2_interval(LEVEL)
            curves.append(pd.DataFrame({"network": name, "who": who, "round": exact.rounds,
                                        "exact": exact.w2(), "w2": seen.w2(), "low": band[:, 0],
                                        "high": band[:, 1]}))
        checks.append({"network": name, **checked(p, problem, algorithm, law, p.seed + number,
                                                  range(p.n_agents_shown))})
        means.append(pd.DataFrame({"network": name, "round": law.rounds, "average": law.w2(),
                                   "agents": clients_w2(law)}))
        facts = theory.constants(problem, algorithm, p.start)
        for quantity, theorem in zip((AVERAGE, AGENTS), bounds, strict=True):
            says = de.judgement(theorem, facts, algorithm, p.n_rounds)
            judged.append(de.judgement_row(says, network=name, quantity=quantity, mu=facts.strong_convexity,
                                           L=facts.smoothness))
            found.append(de.bound_rows(says, network=name, quantity=quantity))
    floor = float(fs.distance.w2_floor(problem.target().cov, p.n_replicas))
    result = {"curves": pd.concat(curves), "means": pd.concat(means), "hypotheses": pd.DataFrame(judged),
              "replicas": pd.DataFrame(checks), **_sets(p, algorithm_of, bounds[0]),
              "floors": pd.DataFrame([{"floor": floor, "n_replicas": p.n_replicas,
                                       "posterior_sd": float(np.sqrt(problem.target().variances.sum()))}])}
    if any(len(rows) for rows in found):
        result["bounds"] = pd.concat(rows for rows in found if len(rows))
    return result


def checked(p: Any, problem: Any, algorithm: Any, law: fs.Law, seed: int, agents: Any) -> dict[str, Any]:
    """Largest deviation of more replicas, of average and agents, from the exact moments at three rounds."""
    some = [p.n_rounds // 10, p.n_rounds // 2, p.n_rounds]
    run = fs.simulate(problem, algorithm, p.n_rounds, p.n_checked, seed=seed + 1000, start=p.start,
                      record=some)
    pairs = [(run, law)] + [(run.clients[i], law.clients[i]) for i in agents]
    found = [deviation(seen, exact) for seen, exact in pairs]  # type: ignore[arg-type]
    return {"deviation": max(worst for worst, _ in found), "compared": sum(count for _, count in found),
            "n_checked": p.n_checked}


def _late(problem: Any, algorithm: Any, p: Any) -> tuple[fs.Law, np.ndarray]:
    """The law along the run and once more in the limit; and all agents' W2 there."""
    law = theory.exact_law(problem, algorithm, LATE, start=p.start, record=np.arange(p.n_rounds + 1))
    goal = law.target
    assert goal is not None
    means, covs = (np.stack([part[-1] for part in parts]) for parts in (
        [view.mean for view in law.clients], [np.asarray(view.cov) for view in law.clients]))
    return law, fs.distance.w2_gaussian(means, covs, goal.mean, goal.cov)


def _sets(p: Any, algorithm_of: Callable[[Any], Any], theorem: Any) -> Tables:
    """Exact laws of every data set: table sets (limits, speeds, hypotheses), spread and assumptions."""
    rows, curves, assumptions = [], {}, []
    for seed in range(p.data_seed, p.data_seed + p.n_data_sets):
        note(f"exact laws of data set {seed}")
        problem = problem_of(p, seed)
        point, here = float(np.sqrt(problem.target().variances.sum())), []
        for name, network in de.NETWORKS.items():
            algorithm = algorithm_of(network.mixing(p.n_clients))
            law, late = _late(problem, algorithm, p)
            average, agents = law.w2(), clients_w2(law)
            facts = theory.constants(problem, algorithm, p.start)
            says = de.judgement(theorem, facts, algorithm, 1)
            curves[seed, name] = {"average": average[:-1], "agents": agents[:-1]}
            here.append({"data_set": seed, "network": name, "posterior_sd": point, "start": average[0],
                         "average": average[-1], "agents": agents[-1], "best_agent": late.min(),
                         "worst_agent": late.max(),
                         "radius": stability_radius(problem.as_quadratic(), algorithm),
                         "status": says.status, "why": says.why})
        assumptions.append(assumptions_row((facts.strong_convexity, facts.smoothness), 0.0, data_set=seed))
        rows += speeds_of(here, {name: curves[seed, name] for name in de.NETWORKS})
    return {"sets": pd.DataFrame(rows), "spread": spread_of(curves), "assumptions": pd.DataFrame(assumptions)}


def speeds_of(rows: list[dict[str, Any]], curves: Mapping[str, Mapping[str, np.ndarray]]) -> list[
        dict[str, Any]]:
    """The rows of one data set's networks with iterations until the curves have settled, by two readings.

    "settles" is to within 5% of the own limit; "reaches" is to below the largest of the networks' limits
    and the same 5%.
    """
    found = []
    for row in rows:
        more: dict[str, Any] = {}
        for quantity, w2 in curves[row["network"]].items():
            level = (1.0 + SETTLED) * max(other[quantity] for other in rows)
            above = np.flatnonzero(w2 > level)
            more |= {f"{quantity}_settles": settled(w2, row[quantity]),
                     f"{quantity}_reaches": int(above[-1]) + 1 if len(above) else 0}
        found.append(row | more)
    return found


def spread_of(curves: Mapping[tuple[int, str], Mapping[str, np.ndarray]]) -> pd.DataFrame:
    """Least and largest W2 over the data sets: rows (network, round, (quantity)_low, (quantity)_high)."""
    parts = []
    for name in de.NETWORKS:
        mine = [one for (_, network), one in curves.items() if network == name]
        columns: dict[str, Any] = {"network": name, "round": np.arange(len(next(iter(mine[0].values()))))}
        for quantity in mine[0]:
            stack = np.array([one[quantity] for one in mine])
            columns |= {f"{quantity}_low": stack.min(axis=0), f"{quantity}_high": stack.max(axis=0)}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts)


def printed_components(p: Any, algorithm_of: Callable[[Any], Any]) -> pd.DataFrame:
    """The f_i as printed, without 1/(2 xi^2), beside those of the density: radii, and spread of exp(-f).

    Rows (data_set, network, form, radius, spread); spread is the root of the trace of exp(-f)'s covariance
    over that of the printed V = (X'X/xi^2 + I/lambda)^-1.
    """
    rows = []
    for seed in range(p.data_seed, p.data_seed + p.n_data_sets):
        density = problem_of(p, seed)
        printed = fs.LinearRegression(density.features, density.targets, density.clients,
                                      noise_std=np.sqrt(0.5), prior_variance=p.prior_variance)
        x = density.features
        posterior = np.linalg.inv(x.T @ x / p.noise_std**2 + np.eye(p.dim) / p.prior_variance)
        for form, problem in (("printed", printed), ("density", density)):
            spread = float(np.sqrt(problem.target().variances.sum() / np.trace(posterior)))
            for name in de.CONNECTED:
                algorithm = algorithm_of(de.NETWORKS[name].mixing(p.n_clients))
                rows.append({"data_set": seed, "network": name, "form": form, "spread": spread,
                             "radius": stability_radius(problem.as_quadratic(), algorithm)})
    return pd.DataFrame(rows)


def draw(found: Tables, theorem: str) -> Drawing:
    """A panel a network as in the paper, and the three networks compared."""
    drawing, axes = plot.panels(2, 6.2, 5.2, 2)
    curves, panels = found["curves"], axes.ravel()
    low, top = float(curves["exact"].min()), float(curves["exact"].max())
    limits = plot.room(low, top, 0.16)
    if "bounds" in found:
        limits = 0.4 * low, 30.0 * float(found["bounds"]["bound"].max())
    for letter, ax, (name, network) in zip("abc", panels, de.NETWORKS.items(), strict=False):
        _network(ax, found, name, network, theorem)
        ax.set(title=f"({letter}) {network.title}")
        ax.set_ylim(*limits)
    _compare(panels[3], found)
    for ax in panels:
        ax.set(yscale="log", xlabel="iteration k", ylabel=r"$W_2$(law, posterior)")
        de.legend_below(ax)
    return drawing


def _network(ax: Axes, found: Tables, name: str, network: de.Network, theorem: str) -> None:
    mine = de.among(found["curves"], network=name)
    for i, (who, one) in enumerate(mine.groupby("who", sort=False)):
        average = who == AVERAGE
        colour = network.colour if average else plot.GREY
        label = "exact law, average" if average else f"exact law, agents 1 to {mine['who'].nunique() - 1}"
        plot.exact(ax, one["round"], one["exact"], colour, label, linewidth=2.0 if average else 1.2,
                   zorder=4 if average else 3)
        floor_of_axis = 1e-3 * float(found["floors"]["floor"].iloc[0])
        plot.replicas(ax, one["round"], one["w2"], one["low"].clip(lower=floor_of_axis), one["high"], colour,
                      f"{plot.BAND}, {'average' if average else 'agents'}" if i < 2 else None)
    plot.floor(ax, float(found["floors"]["floor"].iloc[0]), f"{plot.FLOOR}, average")
    if "bounds" in found:
        for quantity, one in de.among(found["bounds"], network=name).groupby("quantity", sort=False):
            average = quantity == AVERAGE
            de.bound(ax, one["round"], one["bound"], bool(one["vacuous"].all()),
                     not one["within_hypotheses"].all(), f"{theorem}, {quantity}",
                     plot.COLOURS[6] if average else plot.COLOURS[3], average)
    says = de.among(found["hypotheses"], network=name).iloc[0]
    if says["status"] == de.NOT_APPLICABLE:
        de.remark(ax, f"no bound: {theorem} does not apply, {says['symbols']}", 0.985, 0.98, fontsize=9)
    elif says["status"] == de.VIOLATED:
        end = "" if says["has_value"] else "\nso the bound has no value"
        de.remark(ax, f"beyond the range of {theorem}:\n{says['symbols']}{end}", 0.985, 0.98, fontsize=9)


def _compare(ax: Axes, found: Tables) -> None:
    means, spread = found["means"], found["spread"]
    for column, words, look in (("agents", AGENTS, "--"), ("average", AVERAGE, "-")):
        for name, network in de.NETWORKS.items():
            one, band = de.among(means, network=name), de.among(spread, network=name)
            plot.exact(ax, one["round"], one[column], network.colour, f"{network.title}, {words}",
                       linestyle=look)
            ax.fill_between(band["round"], band[f"{column}_low"], band[f"{column}_high"],
                            color=network.colour, alpha=0.13, linewidth=0)
    ax.axhline(float(found["floors"]["posterior_sd"].iloc[0]), color=plot.COLOURS[3], linestyle="-.",
               linewidth=1.2, label="a point mass at the posterior's mean")
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.25, linewidth=0,
                    label=f"all {found['sets']['data_set'].nunique()} data sets")
    ax.set(title="(d) ours: the exact laws of all three")
    ax.set_ylim(*plot.room(float(spread["average_low"].min()), float(spread["agents_high"].max()), 0.03))
