"""The picture of DE-SGLD's figures 9 and 10."""

from __future__ import annotations

from itertools import product

from matplotlib.axes import Axes

from .. import plot
from ..data_files import NOT_THE_PAPERS
from ..figure import Drawing, Tables
from ..tables import among
from . import logistic_drawing as drawn
from .shared import CONNECTED, NETWORKS
from .telescope_data import REAL

SCALINGS = ("unbiased", "batch_sum")
PARTS = ("training", "test")
NAMES = {"unbiased": "sum times $n_i/b$", "batch_sum": "ours: minibatch sum"}


def draw(tables: Tables) -> Drawing:
    """Training data, test data, a network in each column; below, differences on all splits."""
    drawing = Drawing(figsize=(plot.WIDEST, 13.0), layout="constrained")
    axes = drawing.subplot_mosaic([list("aabbcc"), list("ddeeff"), list("ggghhh")])
    facts, curves = tables["setting"].iloc[0], tables["curves"]
    low = (curves["mean"] - curves["sd"].where(curves["scaling"] == "batch_sum", 0.0)).min() - 0.03
    limits = low, max(facts["posterior_training"], facts["posterior_test"]) + 0.035
    for letter, (part, name) in zip("abcdef", product(PARTS, NETWORKS), strict=True):
        ax, network = axes[letter], NETWORKS[name]
        drawn.draw_posterior(ax, facts[f"posterior_{part}"], facts[f"sd_{part}"], "Laplace")
        for scaling, colour, line in (("unbiased", plot.GREY, "--"), ("batch_sum", network.colour, "-")):
            one = among(curves, network=name, part=part, scaling=scaling)
            drawn.draw_curve(ax, one, colour, NAMES[scaling], line, band=scaling == "batch_sum")
        ax.set(ylim=limits, xlabel="iteration k", title=f"({letter}) {network.title}: {part} data",
               ylabel=f"accuracy, {part} data" if letter in "ad" else "")
        if facts["data"] != REAL:
            ax.text(0.5, 0.97, NOT_THE_PAPERS, transform=ax.transAxes, ha="center", va="top", fontsize=13,
                    fontweight="bold", color=plot.GREY, alpha=0.75, zorder=0)
    for letter, scaling in zip("gh", SCALINGS, strict=True):
        _differences(axes[letter], tables, scaling, letter)
    for letter in "defgh":
        drawn.legend_below(axes[letter], 2 if letter in "gh" else 1)
    drawing.suptitle(f"{facts['data']}: {facts['n_training']:,} training and {facts['n_test']:,} test rows, "
                     f"d = {facts['dim']}")
    return drawing


def _differences(ax: Axes, tables: Tables, scaling: str, letter: str) -> None:
    table = among(tables["contrasts"], scaling=scaling)
    for place, (part, name) in zip((-0.24, -0.08, 0.08, 0.24), product(PARTS, CONNECTED), strict=True):
        drawn.draw_differences(ax, among(table, part=part, network=name), NETWORKS[name], place,
                               f"{NETWORKS[name].title}, {part} data", linewidth=1.0,
                               fillstyle="full" if part == PARTS[0] else "none")
    ax.axhline(0.0, color="#000000", linewidth=0.8)
    radius = among(tables["stability"], scaling=scaling)["radius"]
    ax.set(xlabel="number of the split (bars: 95%, from its runs)",
           title=f"({letter}) ours: {NAMES[scaling].removeprefix('ours: ')}; radius at the mode "
                 f"{radius.min():.3g} to {radius.max():.3g}")
