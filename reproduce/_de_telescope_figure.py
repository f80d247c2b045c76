"""Pictures of, and verdicts on, figures 9 and 10 of the decentralized paper."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from . import plot
from ._de_logistic_figure import draw_curve, draw_posterior
from ._de_telescope import PARTS, REAL, STAND_IN
from ._decentralized import CONNECTED, HOLD, NETWORKS, among, remark
from .figure import FAIL, NOT_TESTABLE, PASS, Claim, Drawing, Tables

NAMES = {"unbiased": "sum times $n_i/b$ (as defined)", "batch_sum": "minibatch sum"}
LETTERS = "abcdef"


def source_of(tables: Tables) -> str:
    """STAND_IN or REAL."""
    return str(tables["setting"]["data"].iloc[0])


def draw(tables: Tables, method: str) -> Drawing:
    """Training data above, test data below, a network in each column."""
    drawing, axes = plot.panels(3, 5.2, 3.9, 2)
    fact, source = tables["setting"].iloc[0], source_of(tables)
    seen = tables["curves"]
    limits = (float((seen["mean"] - seen["sd"]).min()) - 0.09,
              float(max(fact["posterior_training"], fact["posterior_test"])) + 0.035)
    for row, part in enumerate(PARTS):
        for column, name in enumerate(NETWORKS):
            ax = axes[row, column]
            _panel(ax, tables, part, name)
            ax.set(ylim=limits, xlabel="iteration k", ylabel=f"accuracy, {part} data",
                   title=f"({LETTERS[3 * row + column]}) {NETWORKS[name].title}: {part} data")
    _remarks(list(axes[0]), tables)
    if source == STAND_IN:
        drawing.suptitle(f"{method}, one agent. {STAND_IN}, not the telescope's data: "
                         "give the file with --data magic04.data", fontweight="bold", color=plot.COLOURS[1])
        for ax in axes.flat:
            ax.text(0.5, 0.97, STAND_IN, transform=ax.transAxes, ha="center", va="top", fontsize=13,
                    fontweight="bold", color=plot.GREY, alpha=0.75, zorder=0)
    else:
        drawing.suptitle(f"{method}, one agent, {source} data", fontweight="bold")
    return drawing


def _panel(ax: Axes, tables: Tables, part: str, name: str) -> None:
    fact = tables["setting"].iloc[0]
    draw_posterior(ax, fact[f"posterior_{part}"], fact[f"sd_{part}"], "posterior (Laplace): mean, sd")
    for scaling, colour, line in (("unbiased", plot.GREY, "--"), ("batch_sum", NETWORKS[name].colour, "-")):
        one = among(tables["curves"], network=name, part=part, scaling=scaling)
        draw_curve(ax, one, colour, NAMES[scaling], line)
    if part == PARTS[-1]:
        ax.legend(loc="lower right", fontsize=7.8)


def _remarks(axes: list[Axes], tables: Tables) -> None:
    radius = tables["stability"].set_index(["network", "scaling"])["radius"]
    said = tables["hypotheses"].set_index("network")
    for ax, name in zip(axes, NETWORKS, strict=True):
        theorem, network = said["theorem"].iloc[0], said.loc[name]
        text = f"{theorem}: hypotheses hold"
        if network["status"] != HOLD:
            text = (f"{theorem}: hypotheses violated\n{network['symbols']}" if name in CONNECTED else
                    f"{theorem} does not apply:\n{network['symbols']}")
        remark(ax, f"radius at the mode: {radius[name, 'unbiased']:.1f} with $n_i/b$,\n"
                   f"{radius[name, 'batch_sum']:.3f} with the sum\n{text}", 0.98, 0.03)


# ---- claims -------------------------------------------------------------------------------------------


def _differences(tables: Tables, scaling: str) -> tuple[pd.DataFrame, str]:
    found = among(tables["contrasts"], scaling=scaling)
    texts = [f"{row['part']}, {NETWORKS[row['network']].title} {row['difference']:+.4f} "
             f"({row['low']:+.4f} to {row['high']:+.4f})" for _, row in found.iterrows()]
    return found, "; ".join(texts)


def _compared(found: pd.DataFrame) -> str:
    if (found["low"] > 0.0).all():
        return PASS
    return FAIL if (found["high"] < 0.0).any() else NOT_TESTABLE


def judge_paper(tables: Tables) -> tuple[str, str]:
    """The paper's claim; only on its data."""
    defined, said = _differences(tables, "unbiased")
    _, also = _differences(tables, "batch_sum")
    words = (f"Accuracy over the last quarter of the iterations minus that of the disconnected network, 95% "
             f"intervals of paired runs; with n_i/b as defined: {said}; with the minibatch's sum: {also}.")
    if source_of(tables) != REAL:
        return NOT_TESTABLE, f"The data are a {STAND_IN}: give the telescope's file with --data. {words}"
    return _compared(defined), words


def judge_defined(tables: Tables) -> tuple[str, str]:
    """Connected against disconnected with the estimator as defined."""
    found, said = _differences(tables, "unbiased")
    return _compared(found), (
        f"On the {source_of(tables)} data, minus the disconnected network, 95% intervals of paired runs: "
        f"{said}. The iterates oscillate, with or without gossip.")


def judge_summed(tables: Tables) -> tuple[str, str]:
    """Connected against disconnected with minibatch sums."""
    found, said = _differences(tables, "batch_sum")
    return _compared(found), (
        f"On the {source_of(tables)} data, minus the disconnected network, 95% intervals of paired runs: "
        f"{said}.")


def judge_stable(tables: Tables) -> tuple[str, str]:
    """Radius of the linearised map."""
    radius = tables["stability"].set_index(["network", "scaling"])["radius"]
    texts = [f"{NETWORKS[name].title} {radius[name, 'unbiased']:.1f} (with the sum "
             f"{radius[name, 'batch_sum']:.3f})" for name in NETWORKS]
    worst = max(radius[name, "unbiased"] for name in NETWORKS)
    return (PASS if worst < 1.0 else FAIL), (
        f"On the {source_of(tables)} data the map of all agents with exact gradients, linearised at the "
        f"mode, has the radius {', '.join(texts)}; below 1 is stable. Straight tails of the loss "
        "keep the iterates finite, but they do not settle.")


def judge_hypotheses(tables: Tables) -> tuple[str, str]:
    """The step-size hypotheses; decided by standardised features alone."""
    said, fact = tables["hypotheses"].set_index("network"), tables["setting"].iloc[0]
    texts = [f"{NETWORKS[name].title}: {said.loc[name, 'why']!s}" for name in CONNECTED]
    return (PASS if all(said.loc[name, "status"] == HOLD for name in CONNECTED) else FAIL), (
        f"L = {fact['smoothness']:.4g}, {said['theorem'].iloc[0]}: {'; '.join(texts)}. This hardly "
        "depends on which data they are: with standardised features and an intercept L is at least about "
        f"n_i / 4 = {fact['least_size'] / 4:.0f}.")


def claims(method: str, number: str) -> list[Claim]:
    """Of figure `number`, which shows `method`."""
    return [
        Claim(f"{method} performs better for fully connected and circular networks than for the disconnected "
              "one, on training and test data.", f"section 5.3, figure {number}", judge_paper),
        Claim("The example satisfies the paper's assumptions.", f"section 5, beginning; figure {number}",
              judge_hypotheses),
        Claim("ours, the printed step size is stable near the posterior's mode with minibatches scaled as "
              "defined.", f"ours, for figure {number}", judge_stable),
        Claim("ours, on the data at hand: connected networks perform better with minibatches scaled as "
              "defined.", f"ours, for figure {number}", judge_defined),
        Claim("ours, on the data at hand: connected networks perform better with sums of minibatches, "
              "without the factor n_i / b.", f"ours, for figure {number}", judge_summed),
    ]
