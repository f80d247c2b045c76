"""DE-SGLD figure 1: the networks, and what their mixing matrices do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

import fedsim as fs

from .. import plot
from ..figure import ByScale, Claim, Drawing, Parameter, Tables, settings
from ..tables import among, groups
from ..verdicts import EXACT, FAIL, PASS, Judgement
from . import shared as de

TITLE = "The networks of DE-SGLD and DE-SGHMC"
PAPER = "DE-SGLD figure 1"
REPRODUCES = ("DE 1",)
SHOWS = ("The three networks of the experiments with their Metropolis weights; the eigenvalues of their "
         "mixing matrices for 100 agents; and spectral gaps against the number of agents.")
COST = {"tiny": "1 s", "quick": "1 s", "paper": "1 s"}
PARAMETERS = [
    Parameter("networks", list(de.NETWORKS), "paper", "figure 1: fully connected, circular, disconnected"),
    Parameter("weights", "Metropolis, degrees count the node itself", "paper", "section 2 and footnote 4"),
    Parameter("n_clients", 100, "paper", "section 5.1: N = 100, of the eigenvalues"),
    Parameter("n_drawn", 12, "ours", "nodes of the drawings: 100 cannot be told apart"),
    Parameter("sizes", ByScale([4, 16, 64], [4, 6, 10, 16, 25, 40, 64, 100, 160, 256],
                               [4, 6, 10, 16, 25, 40, 64, 100, 160, 256, 400, 640, 1000]), "ours",
              "numbers of agents of the last panel; squares also as grids"),
]
FORMULAS = {"complete": lambda n: 1.0, "ring": lambda n: (2.0 / 3.0) * (1.0 - np.cos(2.0 * np.pi / n)),
            "star": lambda n: 1.0 / n}
"""Spectral gaps in closed form; the ring's from four nodes on."""
SLOPE = 0.1
"""Rates closer than this to 1/N are not told apart from it at these sizes."""


def square_grid(n: int) -> Any:
    """A grid of equal sides; none unless n is a square."""
    side = round(np.sqrt(n))
    return fs.network.grid(side, side) if side * side == n else None


OTHERS = {"path": de.Network("path", fs.network.path, plot.COLOURS[4], "v"),
          "star": de.Network("star", fs.network.star, plot.COLOURS[5], "*"),
          "grid": de.Network("grid", square_grid, plot.COLOURS[3], "D")}


def compute(scale: str) -> Tables:
    """Tables: nodes, links, eigenvalues, gaps."""
    p = settings(PARAMETERS, scale)
    angle = 0.5 * np.pi - 2.0 * np.pi * np.arange(p.n_drawn) / p.n_drawn
    nodes = pd.DataFrame({"node": np.arange(p.n_drawn), "x": de.snapped(np.cos(angle)),
                          "y": de.snapped(np.sin(angle))})
    rows = de.empty("links", "eigenvalues")
    for name, network in de.NETWORKS.items():
        mixing = network.mixing(p.n_drawn)
        first, second = np.nonzero(np.triu(mixing))  # with the diagonal, so that no network is without a row
        rows["links"].append(pd.DataFrame({"network": name, "first": first, "second": second,
                                           "weight": mixing[first, second]}))
        values = de.snapped(np.linalg.eigvalsh(network.mixing(p.n_clients))[::-1])
        rows["eigenvalues"].append(pd.DataFrame({"network": name, "number": np.arange(1, p.n_clients + 1),
                                                 "eigenvalue": values}))
    return {"nodes": nodes, **de.tables_of(rows), "gaps": _gaps(p)}


def _gaps(p: Any) -> pd.DataFrame:
    """Spectral gaps and smallest eigenvalues by network and size."""
    every = de.NETWORKS | OTHERS
    matrices = [(name, n, every[name].mixing(n)) for n in p.sizes for name in every]
    return pd.DataFrame([{
        "network": name, "n_clients": n, "gap": fs.network.spectral_gap(mixing),
        "smallest": float(de.snapped(fs.network.smallest_eigenvalue(mixing))),
        "connected": fs.network.is_connected(mixing),
        "formula": float(FORMULAS[name](n)) if name in FORMULAS else -1.0}
        for name, n, mixing in matrices if mixing is not None])


def draw(tables: Tables) -> Drawing:
    """Three networks above, eigenvalues and gaps below."""
    drawing = Drawing(figsize=(plot.WIDEST, 9.6), layout="constrained")
    grid = drawing.add_gridspec(2, 6, height_ratios=[1.0, 1.05], hspace=0.12)
    for column, (letter, name) in enumerate(zip("abc", de.NETWORKS, strict=True)):
        _network(drawing.add_subplot(grid[0, 2 * column:2 * column + 2]), tables, letter, name)
    _eigenvalues(drawing.add_subplot(grid[1, :3]), tables["eigenvalues"])
    _gap_panel(drawing.add_subplot(grid[1, 3:]), tables["gaps"])
    return drawing


def _network(ax: Axes, tables: Tables, letter: str, name: str) -> None:
    nodes, links, network = tables["nodes"], among(tables["links"], network=name), de.NETWORKS[name]
    place = nodes[["x", "y"]].to_numpy()
    apart = links[links["first"] != links["second"]]
    lines = [(place[i], place[j]) for i, j in zip(apart["first"], apart["second"], strict=True)]
    ax.add_collection(LineCollection(lines, colors=network.colour, linewidths=0.9, alpha=0.75))
    ax.plot(nodes["x"], nodes["y"], "o", color=network.colour, markersize=17, markeredgecolor="white")
    for number, (x, y) in enumerate(place, start=1):
        ax.text(x, y, str(number), color="white", ha="center", va="center", fontsize=9, fontweight="bold")
    own = float(links[links["first"] == links["second"]]["weight"].iloc[0])
    link = f"each link {apart['weight'].iloc[0]:.3g}" if len(apart) else "no link"
    ax.set(title=f"({letter}) {network.title}", xticks=[], yticks=[],
           xlabel=f"own weight {own:.3g}, {link}  (N = {len(nodes)} drawn)", aspect="equal",
           xlim=(-1.25, 1.25), ylim=(-1.2, 1.2))
    ax.spines[:].set_visible(False)


def _eigenvalues(ax: Axes, table: pd.DataFrame) -> None:
    for name, one in groups(table, "network"):
        network = de.NETWORKS[name]
        ax.plot(one["number"], one["eigenvalue"], network.marker, color=network.colour, markersize=4,
                label=network.title)
    ax.axhline(-1.0, color="#000000", linestyle=":", linewidth=1.1, label="must stay above: condition (7)")
    ax.set(xlabel="number j of the eigenvalue", ylabel=r"$\lambda_j$ of $W$", ylim=(-1.12, 1.12),
           title=f"(d) ours: eigenvalues of the mixing matrix, N = {table['number'].max()}")
    plot.legend_below(ax, 2)


def _gap_panel(ax: Axes, gaps: pd.DataFrame) -> None:
    for name, network in (de.NETWORKS | dict(sorted(OTHERS.items()))).items():
        one = among(gaps, network=name, connected=True)
        if len(one):
            ax.plot(one["n_clients"], one["gap"], color=network.colour, marker=network.marker, markersize=5,
                    linewidth=1.2, label=network.title)
    n = np.array([gaps["n_clients"].min(), gaps["n_clients"].max()], dtype=float)
    ring = among(gaps, network="ring").iloc[-1]
    for power, style in ((2, "--"), (1, ":")):
        ax.plot(n, ring["gap"] * (n / ring["n_clients"]) ** -power, color="#000000", linewidth=1.0,
                linestyle=style, label=rf"slope of $N^{{-{power}}}$", zorder=1)
    de.remark(ax, "disconnected: gap 0 for every N,\nno theorem applies", 0.02, 0.02, fontsize=9)
    ax.set(xscale="log", yscale="log", xlabel="number of agents N", ylabel=r"spectral gap $1 - \bar\gamma$",
           title="(e) ours: spectral gaps against the number of agents")
    plot.legend_below(ax, 4)


def judge_mixing(tables: Tables) -> Judgement:
    """Condition (7) of the connected networks."""
    used = tables["gaps"][tables["gaps"]["network"] != "disconnected"]
    good = (used["smallest"] > -1.0) & (used["gap"] > 0.0) & used["connected"]
    return Judgement(PASS if good.all() else FAIL, (
        f"On {int(good.sum())} of {len(good)} networks, N = {used['n_clients'].min()} to "
        f"{used['n_clients'].max()}, all eigenvalues but one lie strictly between -1 and 1; the smallest "
        f"is {used['smallest'].min():.3f} or more, the spectral gap {used['gap'].min():.2e} or more."))


def judge_formula(tables: Tables) -> Judgement:
    """gamma-bar = 1/3 + 2/3 cos(2 pi/N), and 0."""
    known = tables["gaps"][tables["gaps"]["network"].isin(de.CONNECTED)]
    worst = float((known["gap"] - known["formula"]).abs().max())
    size = f"{worst:.2g}" if worst > de.ROUNDING else "nothing beyond rounding"
    return Judgement(PASS if worst <= de.ROUNDING else FAIL, (
        f"For {len(known)} matrices, N = {known['n_clients'].min()} to {known['n_clients'].max()}, the "
        f"computed gamma-bar differs from these values by {size}."))


def judge_order(tables: Tables) -> Judgement:
    """Is N (1 - gamma-bar) bounded?"""
    ring = among(tables["gaps"], network="ring").sort_values("n_clients")
    products = (ring["gap"] * ring["n_clients"]).to_numpy()
    bounded = bool((np.diff(products) <= de.ROUNDING).all())
    slope = float(np.polyfit(np.log(ring["n_clients"][-3:]), np.log(ring["gap"][-3:]), 1)[0])
    return Judgement(PASS if bounded else FAIL, (
        f"N times the gap goes from {products[0]:.2f} at N = {ring['n_clients'].iloc[0]} to "
        f"{products[-1]:.3f} at N = {ring['n_clients'].iloc[-1]}, upwards in "
        f"{int((np.diff(products) > de.ROUNDING).sum())} of {len(products) - 1} steps."), (
        f"True, not sharp: the gap closes like N to the power {slope:.2f}."
        if bounded and slope < -1.0 - SLOPE else ""))


def judge_larger(tables: Tables) -> Judgement:
    """Complete against circular."""
    wide = tables["gaps"].pivot(index="n_clients", columns="network", values="gap")
    good, last = wide["complete"] > wide["ring"], wide.iloc[-1]
    return Judgement(PASS if good.all() else FAIL, (
        f"At {int(good.sum())} of {len(good)} sizes; at N = {wide.index[-1]} the gaps are "
        f"{last['complete']:.3g} and {last['ring']:.2e}."))


CLAIMS = [
    Claim("Metropolis weights of a connected network satisfy condition (7).", "section 2", judge_mixing,
          name="condition_7", rests_on=EXACT,
          context="Degrees have to count the node itself, as footnote 4 says, or a circle of even length "
                  "would have the eigenvalue -1."),
    Claim("gamma-bar is 0 on the complete graph and 1/3 + (2/3) cos(2 pi/N) on the circular one.",
          "section 3, after equation (19)", judge_formula, name="formula", rests_on=EXACT),
    Claim("The circular graph's gamma-bar is 1 - O(1/N).", "section 3, after equation (19)", judge_order,
          name="order", rests_on=EXACT,
          context="O is an upper bound: N (1 - gamma-bar) stays bounded. From the formula, 1 - gamma-bar is "
                  "4 pi^2/(3 N^2) to leading order."),
    Claim("The fully connected network has a larger spectral gap than the circular one.", "section 5.1",
          judge_larger, name="larger_gap", rests_on=EXACT),
]
