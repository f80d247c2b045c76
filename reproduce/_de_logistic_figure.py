"""Pictures of, and verdicts on, decentralized logistic regression: what figures 5 to 8 share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from . import plot
from ._decentralized import CONNECTED, HOLD, NETWORKS, VIOLATED, among, listed, remark
from .figure import FAIL, NOT_TESTABLE, PASS, ByScale, Claim, Drawing, Parameter, Tables

SHARED = [
    Parameter("n_clients", 6, "paper", "section 5.2: N = 6"),
    Parameter("batch_size", 32, "paper", "section 5.2: b = 32; drawn with replacement, scaled by n_i / b"),
    Parameter("n_runs", ByScale(12, 100, 100), "paper", "section 5.2: 100 independent runs"),
    Parameter("n_rounds", ByScale(20, 200, 1000), "ours", "iterations of the accuracies; not printed"),
    Parameter("distance_rounds", ByScale(40, 2000, 20000), "ours", "iterations of W2: longer, to see an end"),
    Parameter("start", 0.0, "ours", "all agents start at the origin; not printed"),
    Parameter("agent", 0, "ours", "the agent drawn; the paper's is randomly picked. All are in the tables"),
    Parameter("label_sign", "corrected", "ours", "the loss of (55) is that of y = 1 for every label"),
    Parameter("data_seed", 0, "ours", "of simulated data"),
    Parameter("split_seed", 0, "ours", "of the order in which data are dealt to the agents"),
    Parameter("seed", 1, "ours", "of the runs, and of the reference sample"),
    Parameter("reference_chains", ByScale(20, 100, 400), "ours", "Metropolis-adjusted chains"),
    Parameter("reference_draws", ByScale(20, 100, 400), "ours", "of each of them"),
    Parameter("reference_leapfrogs", 6, "ours", "of each draw"),
    Parameter("reference_warmup", 20, "ours", "draws left out, from starts of the Laplace law"),
    Parameter("reference_step", 0.3, "ours", "leapfrog step in units of the Laplace law's spreads"),
]


def without(parameters: list[Parameter], *names: str) -> list[Parameter]:
    """All but those of these names."""
    return [item for item in parameters if item.name not in names]


LETTERS = ("(a)", "(b)", "(c)", "(d)")


def end_of(table: pd.DataFrame, n_rounds: int | None = None) -> int:
    """The last round recorded, up to `n_rounds`."""
    rounds = table["round"].to_numpy()
    return int(rounds.max() if n_rounds is None else rounds[rounds <= n_rounds].max())


def draw(tables: Tables, method: str, other: str = "") -> Drawing:
    """Accuracy on three networks; W2 on all."""
    drawing, axes = plot.panels(2, 5.4, 4.1, 2)
    top = 1.0 - (1.0 - float(tables["curves"]["mean"].max())) * 0.2
    for ax, letter, name in zip(axes.flat, LETTERS, NETWORKS, strict=False):
        _accuracy(ax, tables, name, method, other)
        ax.set(xscale="log", ylim=(0.8, top), xlabel="iteration k", ylabel="accuracy over the data set",
               title=f"{letter} {NETWORKS[name].title}: one agent")
    _distance(axes[1, 1], tables)
    return drawing


def _accuracy(ax: Axes, tables: Tables, name: str, method: str, other: str) -> None:
    fact = tables["setting"].iloc[0]
    draw_posterior(ax, fact["posterior_accuracy"], fact["posterior_sd"])
    if other:
        one = among(tables["curves"], network=name, method="other")
        draw_curve(ax, one, plot.GREY, other, "--", band=False)
    draw_curve(ax, among(tables["curves"], network=name, method="this"), NETWORKS[name].colour, method)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.2), fontsize=8)
    said = tables["hypotheses"].set_index("network").loc[name]
    remark(ax, {HOLD: f"{said['theorem']}: hypotheses hold",
                VIOLATED: f"{said['theorem']}: hypotheses violated\n{said['symbols']}"}.get(
        str(said["status"]), f"{said['theorem']} does not apply: {said['symbols']}"), 0.98, 0.02)


def draw_posterior(ax: Axes, mean: float, sd: float, name: str = "posterior (reference): mean, sd") -> None:
    """Accuracy of draws of the posterior."""
    ax.axhspan(mean - sd, mean + sd, color="#000000", alpha=0.10, linewidth=0)
    ax.axhline(mean, color="#000000", linestyle="-.", linewidth=1.1, label=name)


def draw_curve(ax: Axes, one: pd.DataFrame, colour: str, name: str, line: str = "-",
               band: bool = True) -> None:
    """Mean accuracy of the runs with its interval, and their standard deviation."""
    x = one["round"]
    if band:
        ax.fill_between(x, one["mean"] - one["sd"], one["mean"] + one["sd"], color=colour, alpha=0.16,
                        linewidth=0, label=f"{name}: sd of the replicas")
    ax.fill_between(x, one["low"], one["high"], color=colour, alpha=0.45, linewidth=0)
    ax.plot(x, one["mean"], color=colour, linestyle=line, linewidth=1.6,
            label=f"{name}: mean of the replicas" + (" (95% band)" if band else ""))


def _distance(ax: Axes, tables: Tables) -> None:
    seen, spread = tables["distances"][tables["distances"]["round"] > 0], tables["setting"]["spread"].iloc[0]
    for name, network in NETWORKS.items():
        for who, line in (("clients", "--"), ("average", "-")):
            one = among(seen, network=name, who=who)
            ax.plot(one["round"], one["w2"], color=network.colour, linestyle=line,
                    linewidth=3.6 if name == "complete" else 1.6, alpha=0.6 if name == "complete" else 1.0,
                    label=f"{network.title}, {'mean of the agents' if who == 'clients' else 'average'}")
            if who == "clients":
                ax.fill_between(one["round"], one["low"], one["high"], color=network.colour, alpha=0.15,
                                linewidth=0)
    one = among(seen, network="complete", who="average")
    ax.plot(one["round"], one["floor"], color="#000000", linestyle=":", linewidth=1.1,
            label=f"{plot.FLOOR}, average")
    ax.axhline(spread, color=plot.COLOURS[3], linestyle="-.", linewidth=1.1,
               label="a point mass at the posterior's mean")
    ax.set(xscale="log", yscale="log", xlabel="iteration k", ylabel=r"$W_2$(fitted law, posterior)",
           title="(d) ours: distance to the posterior, replicas (95%)")
    low = float(min(seen["w2"].min(), one["floor"].min()))
    ax.set_ylim(*_between(low, float(seen["w2"].max())))
    ax.legend(loc="lower left", fontsize=7.4)
    if "bounds" in tables:
        last = among(tables["bounds"], who="clients")
        texts = [f"{NETWORKS[str(name)].title} {one['bound'].iloc[-1]:.1e}"
                 for name, one in last.groupby("network", sort=False)]
        remark(ax, f"{tables['hypotheses']['theorem'].iloc[0]}, mean of the agents, at the end:\n"
               f"{', '.join(texts)} (vacuous, off the scale)", 0.98, 0.98)
    else:
        remark(ax, f"{tables['hypotheses']['theorem'].iloc[0]} has no value here: hypotheses violated",
               0.98, 0.98)


def _between(low: float, high: float) -> tuple[float, float]:
    """Limits of a logarithmic axis with the upper 16 and the lower 40 percent left free."""
    decades = float(np.log(1.1 * high / low)) / 0.44
    return float(low * np.exp(-0.40 * decades)), float(high * np.exp(0.16 * decades))


# ---- claims -------------------------------------------------------------------------------------------


def _late(tables: Tables, name: str) -> pd.Series:
    shown = tables["agents"]
    return among(shown, network=name, agent=int(shown["agent"].min())).iloc[0]


def _spoken(row: Any) -> str:
    return f"{row['difference']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})"


def judge_disconnected(tables: Tables) -> tuple[str, str]:
    """Accuracy of connected minus disconnected, in pairs of runs."""
    found = tables["contrasts"]
    shown = found[found["agent"] == 0]
    better, worse = bool((shown["low"] > 0.0).all()), bool((shown["high"] < 0.0).any())
    others = found[found["agent"] >= 0]
    agree = int(others.groupby("agent")["low"].min().gt(0.0).sum())
    texts = [f"{NETWORKS[row['network']].title} {_spoken(row)}" for _, row in shown.iterrows()]
    return (PASS if better else FAIL if worse else NOT_TESTABLE), (
        f"Accuracy over the last quarter of the iterations, minus that of the disconnected network, agent 0, "
        f"95% interval of paired runs: {listed(texts)}; the same holds for {agree} of "
        f"{others['agent'].nunique()} agents.")


def judge_works(tables: Tables) -> tuple[str, str]:
    """Share of the posterior's gain over the larger class."""
    fact = tables["setting"].iloc[0]
    gain = fact["posterior_accuracy"] - fact["larger_class"]
    shares = {name: (_late(tables, name)["low"] - fact["larger_class"]) / gain for name in CONNECTED}
    texts = [f"{NETWORKS[name].title} {_late(tables, name)['accuracy']:.4f} ({100 * share:.1f}%)"
             for name, share in shares.items()]
    return (PASS if min(shares.values()) >= 0.95 else FAIL), (
        f"A draw of the posterior classifies {fact['posterior_accuracy']:.4f} rightly, the larger class "
        f"alone {fact['larger_class']:.4f}; agent 0 over the last quarter {listed(texts)}, in brackets the "
        "share of that gain which its lower 95% limit reaches; 95% are asked for.")


def judge_hypotheses(tables: Tables) -> tuple[str, str]:
    """The hypotheses of Theorem 1 or 11 on the connected networks."""
    said = tables["hypotheses"].set_index("network")
    texts = [f"{NETWORKS[name].title}: {said.loc[name, 'why']!s}" for name in CONNECTED]
    fact = tables["setting"].iloc[0]
    return (PASS if all(said.loc[name, "status"] == HOLD for name in CONNECTED) else FAIL), (
        f"With mu = {fact['strong_convexity']:.3g} and L = {fact['smoothness']:.4g} of the components, "
        f"{said['theorem'].iloc[0]}: {'; '.join(texts)}. It never covers the disconnected network.")


def judge_sampling(tables: Tables) -> tuple[str, str]:
    """W2 of the agents against the posterior's spread where the accuracies end."""
    table, spread = tables["distances"], float(tables["setting"]["spread"].iloc[0])
    end, last = end_of(table, end_of(tables["curves"])), end_of(table)
    rows = {name: among(table, network=name, who="clients") for name in CONNECTED}
    at = {name: among(one, round=end).iloc[0] for name, one in rows.items()}
    texts = [f"{NETWORKS[name].title} {one['w2']:.3g} ({one['low']:.3g} to {one['high']:.3g}), after {last} "
             f"{among(rows[name], round=last)['w2'].iloc[0]:.3g}" for name, one in at.items()]
    near, far = all(one["high"] < spread for one in at.values()), all(
        one["low"] > spread for one in at.values())
    return (PASS if near else FAIL if far else NOT_TESTABLE), (
        f"A point mass at the posterior's mean has W2 = {spread:.3g} (halves of the reference sample are "
        f"{tables['setting']['halves_w2'].iloc[0]:.2g} apart); the agents' mean W2 after {end} "
        f"iterations is {'; '.join(texts)}."
        + ("" if near else " Accuracy looks at the direction of x only and says little about the law."))


def judge_order(tables: Tables) -> tuple[str, str]:
    """W2 of the agents, disconnected against connected, at the last iteration."""
    table = tables["distances"]
    end, last = end_of(table, end_of(tables["curves"])), end_of(table)
    clients = among(table, who="clients")
    found = {k: among(clients, round=k).set_index("network") for k in (end, last)}
    texts = [f"after {k}: " + ", ".join(
        f"{network.title} {one['w2'][name]:.3g} ({one['low'][name]:.3g} to {one['high'][name]:.3g})"
        for name, network in NETWORKS.items()) for k, one in found.items()]
    alone, joined = found[last].loc["disconnected"], found[last].loc[list(CONNECTED)]
    further, nearer = alone["low"] > joined["high"].max(), alone["high"] < joined["low"].min()
    return (PASS if further else FAIL if nearer else NOT_TESTABLE), (
        f"Mean over agents of W2 to the posterior with 95% intervals, {'; '.join(texts)}. An agent alone "
        "follows a sixth of the likelihood, a wider law around another mode"
        + ("." if further else ", which W2 does not show before the transient has ended."))


def hypotheses_claim(number: str) -> Claim:
    """Section 5's sentence about all examples."""
    return Claim("The example satisfies the paper's assumptions.", f"section 5, beginning; figure {number}",
                 judge_hypotheses)


def sampling_claims(number: str) -> list[Claim]:
    """Ours: what accuracy does not show."""
    return [
        Claim("ours, what accuracy misses: where the accuracies end, an agent's law is nearer to the "
              "posterior than a point mass at the posterior's mean.", f"ours, for figure {number}",
              judge_sampling),
        Claim("ours, the same order in W2: at the end of panel (d) disconnected agents are further from "
              "the posterior than connected ones.", f"ours, for figure {number}", judge_order)]
