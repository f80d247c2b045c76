"""DE-SGLD figures 9 and 10: accuracy along iterations, training and test data of the MAGIC telescope."""

from __future__ import annotations

from functools import partial

from matplotlib.axes import Axes

from .. import plot
from ..figure import Claim, Drawing, Finding, Panel, Parameter, Tables, settings
from ..tables import among
from ..verdicts import DATA_SETS, FAIL, NOT_TESTABLE, PASS, REPLICAS, Judgement, shares, unanimous
from . import telescope
from .assumptions import ILLUSTRATE, assumptions_claim, range_claim
from .logistic_claims import ASSUMED, INTERVALS, LATE_TEXT, compared, units_of, wide
from .logistic_drawing import draw_curve, draw_differences, draw_posterior, legend_below, unit_of
from .shared import CONNECTED, NETWORKS
from .telescope import PARTS, REAL, SCALINGS, STAND_IN

NAMES = {"unbiased": "sum times $n_i/b$", "batch_sum": "minibatch sum"}
SPOKEN = {"unbiased": "with n_i/b as defined", "batch_sum": "with the minibatch's sum"}


def source_of(tables: Tables) -> str:
    """STAND_IN or REAL."""
    return str(tables["setting"]["data"].iloc[0])


def draw(tables: Tables) -> Drawing:
    """Training data, test data, a network in each column; below, differences on all data sets."""
    drawing = Drawing(figsize=(15.6, 13.8), layout="constrained")
    axes = drawing.subplot_mosaic([list("aabbcc"), list("ddeeff"), list("ggghhh")])
    facts, curves = tables["setting"].iloc[0], tables["curves"]
    low = (curves["mean"] - curves["sd"].where(curves["scaling"] == "batch_sum", 0.0)).min() - 0.03
    limits = low, max(facts["posterior_training"], facts["posterior_test"]) + 0.035
    for letter, (part, name) in zip("abcdef", [(part, name) for part in PARTS for name in NETWORKS],
                                    strict=True):
        ax, network = axes[letter], NETWORKS[name]
        draw_posterior(ax, facts[f"posterior_{part}"], facts[f"sd_{part}"], "Laplace")
        for scaling, colour, line in (("unbiased", plot.GREY, "--"), ("batch_sum", network.colour, "-")):
            one = among(curves, network=name, part=part, scaling=scaling)
            draw_curve(ax, one, colour, NAMES[scaling], line, band=scaling == "batch_sum")
        ax.set(ylim=limits, xlabel="iteration k", title=f"({letter}) {network.title}: {part} data",
               ylabel=f"accuracy, {part} data" if letter in "ad" else "")
        if source_of(tables) == STAND_IN:
            ax.text(0.5, 0.97, STAND_IN, transform=ax.transAxes, ha="center", va="top", fontsize=13,
                    fontweight="bold", color=plot.GREY, alpha=0.75, zorder=0)
    for letter, scaling in zip("gh", SCALINGS, strict=True):
        _differences(axes[letter], tables, scaling, letter)
    for letter in "defgh":
        legend_below(axes[letter], 2 if letter in "gh" else 1)
    if source_of(tables) == STAND_IN:
        drawing.suptitle(f"{STAND_IN}, not the telescope's data: give the file with --data magic04.data")
    return drawing


def _differences(ax: Axes, tables: Tables, scaling: str, letter: str) -> None:
    table, places = among(tables["contrasts"], scaling=scaling), iter((-0.24, -0.08, 0.08, 0.24))
    for part, face in zip(PARTS, ("full", "none"), strict=True):
        for name in CONNECTED:
            draw_differences(ax, among(table, part=part, network=name), NETWORKS[name], next(places),
                             f"{NETWORKS[name].title}, {part} data", fillstyle=face, linewidth=1.0)
    ax.axhline(0.0, color="#000000", linewidth=0.8)
    radius = among(tables["stability"], scaling=scaling)["radius"]
    ax.set(xlabel=f"number of the {unit_of(tables)} (bars: 95%, from its runs)",
           title=f"({letter}) {NAMES[scaling]}; radius at the mode {radius.min():.3g} to {radius.max():.3g}")


# ---- claims -------------------------------------------------------------------------------------------


def _better(tables: Tables, scaling: str) -> tuple[str, str]:
    """Connected against disconnected, training and test data."""
    pairs = [(part, name) for part in PARTS for name in CONNECTED]
    differences = wide(among(tables["contrasts"], scaling=scaling), "difference", ["part", "network"])[pairs]
    return compared(differences, units_of(tables),
                    [f"{part}, {NETWORKS[name].title}" for part, name in pairs])


def judge_paper(tables: Tables) -> Judgement:
    """The paper's claim in either reading of its minibatches; only on its data."""
    if source_of(tables) != REAL:
        return Judgement(NOT_TESTABLE, f"The data are a {STAND_IN}: give the telescope's file with --data.")
    verdicts, texts = zip(*[_better(tables, scaling) for scaling in SCALINGS], strict=True)
    why = [f"{words.capitalize()}: {text}." for words, text in zip(SPOKEN.values(), texts, strict=True)]
    passing = [words for words, verdict in zip(SPOKEN.values(), verdicts, strict=True) if verdict == PASS]
    verdict = PASS if passing else FAIL if set(verdicts) == {FAIL} else NOT_TESTABLE
    return Judgement(verdict, " ".join(why), f"It passes {' and '.join(passing)}." if passing else "")


def judge_better(tables: Tables, scaling: str) -> Judgement:
    """Connected against disconnected with one scaling of the minibatches."""
    verdict, text = _better(tables, scaling)
    return Judgement(verdict, f"Mean accuracy minus the disconnected network's, {source_of(tables)}: {text}.")


def judge_unstable(tables: Tables) -> Judgement:
    """Radius of the linearised map."""
    radii = {scaling: wide(among(tables["stability"], scaling=scaling), "radius") for scaling in SCALINGS}
    good = (radii["unbiased"] > 1.0).all(axis=1)
    texts = [f"{SPOKEN[scaling]} {table.to_numpy().min():.3g} to {table.to_numpy().max():.3g}"
             for scaling, table in radii.items()]
    return Judgement(unanimous(good), f"Radius, {source_of(tables)}: {', '.join(texts)}; above 1 as defined "
                     f"on all networks {shares(good, units_of(tables))}.")


def _claims(method: str, theorem: str, number: str) -> list[Claim | Finding]:
    """Of figure `number`, which shows `method`."""
    static = f"{LATE_TEXT} {INTERVALS}"
    return [
        Claim(f"{method} performs better for fully connected and circular networks than for the disconnected "
              "one, on training and test data.", f"section 5.3, figure {number}", judge_paper,
              name="disconnected", rests_on=REPLICAS,
              context="Minibatches are scaled in two ways, and either suffices: times n_i/b, as section 5 "
                      f"defines them, or as sums. {static}"),
        assumptions_claim(number, DATA_SETS, ASSUMED, counted_in="" if number == "9" else "de_fig9", least=1),
        range_claim(theorem, number, DATA_SETS, ILLUSTRATE, context=(
            "Minibatches scaled as defined. The multiples are those of the data at hand; an intercept alone, "
            "which \"dimension 11\" suggests, makes L at least about n_i/4 (713 with all rows), whatever "
            "the data.")),
        Finding("With minibatches scaled as defined the printed step size is unstable near the posterior's "
                "mode, on every data set at hand.", f"figure {number}", judge_unstable, name="unstable",
                rests_on=DATA_SETS,
                context="Radius of the map of all agents with exact gradients, linearised at the mode; below "
                        "1 is stable. Straight tails of the loss keep the iterates finite beyond that, but "
                        "they do not settle."),
        Finding("On the data at hand, connected networks perform better with minibatches scaled as "
                "defined.", f"figure {number}", partial(judge_better, scaling="unbiased"),
                name="better_as_defined", rests_on=REPLICAS, context=static),
        Finding("On the data at hand, connected networks perform better with sums of minibatches, without "
                "the factor n_i/b.", f"figure {number}", partial(judge_better, scaling="batch_sum"),
                name="better_with_sums", rests_on=REPLICAS, context=static),
    ]


def _panel(number: str, method: str, theorem: str, own: list[Parameter]) -> Panel:
    parameters = [*own, *telescope.SHARED]
    return Panel(
        TITLE="Accuracy of one agent, MAGIC telescope data or a stand-in", PAPER=f"{method} figure {number}",
        SHOWS=("Bayesian logistic regression on the MAGIC telescope's data (--data magic04.data; a SYNTHETIC "
               "STAND-IN otherwise): accuracy of one agent on training and test data, minibatches scaled in "
               "two ways."),
        COST={"tiny": "3 s", "quick": "6 s", "paper": "40 s (estimated)"}, REPRODUCES=(f"DE {number}",),
        DATA=(telescope.FILE,), LOOSE=telescope.LOOSE, UNSTABLE=True, PARAMETERS=parameters,
        CLAIMS=_claims(method, theorem, number), draw=draw,
        compute=lambda scale, files: telescope.compute(settings(parameters, scale), files))


FIGURES = {
    "fig9": _panel("9", "DE-SGLD", "Theorem 1", [
        Parameter("step_size", 0.008, "paper", "figure 9: eta = 0.008")]),
    "fig10": _panel("10", "DE-SGHMC", "Theorem 11", [
        Parameter("step_size", 0.07, "paper", "figure 10: eta = 0.07"),
        Parameter("friction", 5.0, "paper", "figure 10: gamma = 5")]),
}
