"""DE-SGLD figures 2 and 3: W2 along iterations on three networks, linear regression with exact gradients."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes

from .. import plot
from ..figure import Claim, Drawing, Panel, Parameter, Tables, settings
from ..tables import among, groups
from ..verdicts import DATA_SETS, NOT_TESTABLE, Judgement, shares, unanimous
from . import claims, linear, shared as de

LANGEVIN = [
    *linear.MODEL,
    *de.printed("section 5.1", 0.009),
    Parameter("gradients", "exact", "paper", "section 5.1: deterministic gradients, sigma = 0"),
    Parameter("n_agents_shown", 4, "paper", "figure 2: the first 4 agents and the average"),
    Parameter("likelihood_factor", 0.5, "ours", "f_i with the 1/(2 xi^2) that its density has: with the "
                                                "f_i as printed, without it, this step size diverges"),
    *linear.RUNS, *linear.JUDGED,
]
HAMILTONIAN = [
    *linear.MODEL,
    *de.printed("section 5.1", 0.1, 7.0),
    Parameter("gradients", "exact", "paper", "the same setting as figure 2"),
    Parameter("n_agents_shown", 4, "paper", "figure 3: the first 4 agents and the average"),
    Parameter("start_velocity", 0.0, "ours", "not printed: at rest"),
    Parameter("likelihood_factor", 0.5, "ours", "f_i with the 1/(2 xi^2) of its density, as in figure 2"),
    *linear.RUNS, *linear.JUDGED,
]


def draw(tables: Tables, theorem: str) -> Drawing:
    """A panel a network as in the paper, and the three networks compared."""
    drawing, axes = plot.panels(2, 6.2, 5.2, 2)
    curves, panels = tables["curves"], axes.ravel()
    low, top = float(curves["exact"].min()), float(curves["exact"].max())
    limits = plot.room(low, top, 0.16)
    if "bounds" in tables:
        limits = 0.4 * low, 30.0 * float(tables["bounds"]["bound"].max())
    for letter, ax, name in zip("abc", panels, de.NETWORKS, strict=False):
        _network(ax, tables, name, theorem)
        ax.set(title=f"({letter}) {de.NETWORKS[name].title}", ylim=limits)
    _compare(panels[3], tables)
    for ax in panels:
        ax.set(yscale="log", xlabel="iteration k", ylabel=r"$W_2$(law, posterior)")
        plot.legend_below(ax, 2)
    return drawing


def _network(ax: Axes, tables: Tables, name: str, theorem: str) -> None:
    curves, floor = among(tables["curves"], network=name), float(tables["floors"]["floor"].iloc[0])
    agents = f"agents 1 to {curves['who'].nunique() - 1}"
    for i, (who, one) in enumerate(groups(curves, "who")):
        colour, views, width, order = plot.GREY, agents, 1.2, 3
        if who == de.AVERAGE:
            colour, views, width, order = de.NETWORKS[name].colour, who, 2.0, 4
        plot.exact(ax, one["round"], one["exact"], colour, f"exact law, {views}", linewidth=width,
                   zorder=order)
        plot.replicas(ax, one["round"], one["w2"], one["low"].clip(lower=1e-3 * floor), one["high"], colour,
                      f"{plot.BAND}, {('average', 'agents')[i]}" if i < 2 else None)
    plot.floor(ax, floor, f"{plot.FLOOR}, average")
    bounds = groups(among(tables["bounds"], network=name), "quantity") if "bounds" in tables else []
    for quantity, one in bounds:
        average = quantity == de.AVERAGE
        de.bound(ax, one["round"], one["bound"], bool(one["vacuous"].all()),
                 not one["within_hypotheses"].all(), f"{theorem}, {quantity}",
                 plot.COLOURS[6] if average else plot.COLOURS[3], average)
    hypotheses = among(tables["hypotheses"], network=name).iloc[0]
    end = "" if hypotheses["has_value"] else "\nso the bound has no value"
    remark = {de.NOT_APPLICABLE: f"no bound: {theorem} does not apply, {hypotheses['symbols']}",
              de.VIOLATED: f"beyond the range of {theorem}:\n{hypotheses['symbols']}{end}"}
    if hypotheses["status"] in remark:
        de.remark(ax, remark[hypotheses["status"]], 0.985, 0.98, fontsize=9)


def _compare(ax: Axes, tables: Tables) -> None:
    means, spread = tables["means"], tables["spread"]
    for column, words, look in (("agents", de.AGENTS, "--"), ("average", de.AVERAGE, "-")):
        for name, network in de.NETWORKS.items():
            one, band = among(means, network=name), among(spread, network=name)
            plot.exact(ax, one["round"], one[column], network.colour, f"{network.title}, {words}",
                       linestyle=look)
            ax.fill_between(band["round"], band[f"{column}_low"], band[f"{column}_high"],
                            color=network.colour, alpha=0.13, linewidth=0)
    de.point_mass(ax, float(tables["floors"]["posterior_sd"].iloc[0]), 1.2)
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.25, linewidth=0,
                    label=f"all {tables['sets']['data_set'].nunique()} data sets")
    ax.set(title="(d) ours: the exact laws of all three",
           ylim=plot.room(float(spread["average_low"].min()), float(spread["agents_high"].max()), 0.03))


def compute_langevin(scale: str) -> Tables:
    """Tables: curves, means, hypotheses, replicas, sets, spread, floors, bounds, printed."""
    p = settings(LANGEVIN, scale)
    return linear.tables(p) | {"printed": linear.printed_components(p)}


def judge_similar(tables: Tables) -> Judgement:
    """The orderings of figure 2's limits, and its tolerance."""
    alone = among(tables["sets"], network="disconnected")
    orders = [*(claims.ordered(tables, column, "complete", "ring", "disconnected")
                for column in ("agents", "average")), (alone["average"] < alone["best_agent"]).to_numpy()]
    settled, text, _ = claims.judge_tolerance(tables)
    verdict = unanimous(np.all(orders, axis=0))
    return Judgement(verdict if settled == verdict else NOT_TESTABLE, (
        "Limits are ordered as in figure 2, fully connected, circular, disconnected, of the agents "
        f"{shares(orders[0])} and of the averages {shares(orders[1])}; the disconnected average is nearer "
        f"than its agents {shares(orders[2])}. Medians: agents {claims.by_network(tables, 'agents')}, "
        f"average {claims.by_network(tables, 'average', 4)}. {text}"))


LANGEVIN_CLAIMS = [
    Claim("For complete and circular graphs all agents converge to the posterior up to an error tolerance.",
          "section 5.1, figure 2", claims.judge_tolerance, name="tolerance", rests_on=DATA_SETS,
          context="The noise of an agent's last step is its own, not yet averaged."),
    claims.SAMPLING,
    Claim("Agents of the disconnected network do worse than those of the connected ones.",
          "section 5.1, figure 2", claims.judge_disconnected, name="disconnected", rests_on=DATA_SETS),
    Claim("Disconnected, the average is nearer to the target than individual agents.",
          "section 5.1, figure 2", claims.judge_average_of_disconnected, name="average_of_disconnected",
          rests_on=DATA_SETS),
    Claim("Disconnected, the average is worse than the average of the fully connected network.",
          "section 5.1, figure 2", claims.judge_averages, name="averages", rests_on=DATA_SETS),
    Claim("The fully connected network converges faster than the circular one.", "section 5.1, figure 2",
          partial(claims.judge_faster, pairs=[("complete", "ring")]), name="faster", rests_on=DATA_SETS),
    claims.range_claim(
        "Theorem 1", "2", claims.VALIDATE, "sets", "The examples satisfy the theorem's assumptions, as the "
        "paper says: sigma = 0 with exact gradients, and a Hessian X_i'X_i/xi^2 + I/(lambda N) is positive "
        "and finite whatever the data. The circular network's lambda_N is that of the Metropolis weights; "
        "with none below 0 all would rest on 1/(L + mu), as complete."),
    Claim("The f_i are sums of (y_j - x'X_j)^2 and |x|^2/(2 lambda N): exp(-sum f_i) is the posterior "
          "N(m, V).", "section 5.1, before figure 2; also appendix D and (126)",
          claims.judge_printed, name="printed_components", rests_on=DATA_SETS,
          context="The density printed below them has the factor 1/(2 xi^2), xi = 1. All figures of section "
                  "5.1 are made here with that factor."),
    claims.replicas_finding(),
]
HAMILTONIAN_CLAIMS = [
    Claim("The results are qualitatively similar to those of DE-SGLD.", "section 5.1, figure 3",
          judge_similar, name="similar", rests_on=DATA_SETS,
          context="Read: all agents of the connected networks settle nearer to the posterior, and limits "
                  "are ordered as in figure 2."),
    claims.SAMPLING,
    Claim("Convergence is fastest for the fully connected and slowest for the disconnected network.",
          "section 5.1, figure 3", partial(claims.judge_faster, pairs=list(combinations(de.NETWORKS, 2))),
          name="faster", rests_on=DATA_SETS,
          context="Disconnected, the spectral radius is sqrt(1 - gamma eta) = 0.548 where the modes "
                  "oscillate; gossip couples agents of unequal curvature into modes that are slower."),
    claims.range_claim("Theorem 11", "3", claims.VALIDATE, "sets"),
    claims.replicas_finding(),
]
FIGURES = {
    "fig2": Panel(
        TITLE="W2 of agents and average on three networks", PAPER="DE-SGLD figure 2", REPRODUCES=("DE 2",),
        SHOWS=("Bayesian linear regression with 100 agents: replicas, exact law, floor and Theorem 1 of four "
               "agents and of the average on complete, circular and disconnected networks."),
        COST={"tiny": "4 s", "quick": "6 s", "paper": "about 2 min (estimated)"}, PARAMETERS=LANGEVIN,
        CLAIMS=LANGEVIN_CLAIMS, compute=compute_langevin, draw=partial(draw, theorem="Theorem 1")),
    "fig3": Panel(
        TITLE="W2 of agents and average on three networks", PAPER="DE-SGHMC figure 3", REPRODUCES=("DE 3",),
        SHOWS=("The regression of figure 2 by DE-SGHMC: replicas, exact law and floor of four agents and of "
               "the average; Theorem 11's hypotheses are violated on every network."),
        COST={"tiny": "10 s", "quick": "15 s", "paper": "about 7 min (estimated)"}, PARAMETERS=HAMILTONIAN,
        CLAIMS=HAMILTONIAN_CLAIMS, compute=lambda scale: linear.tables(settings(HAMILTONIAN, scale)),
        draw=partial(draw, theorem="Theorem 11")),
}
