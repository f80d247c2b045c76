"""Pictures of, and verdicts on, figures 9 and 10 of the decentralized paper."""

from __future__ import annotations

from matplotlib.axes import Axes

from .. import plot
from ..figure import DATA_SETS, FAIL, NOT_TESTABLE, PASS, REPLICAS, Claim, Drawing, Finding, Tables, Unjudged
from ..verdicts import Judgement, shares, unanimous
from .assumptions import ILLUSTRATE, assumptions_claim, range_claim
from .logistic_claims import ASSUMED, INTERVALS, LATE_TEXT, compared, units_of, wide
from .logistic_figure import draw_curve, draw_posterior, legend_below, unit_of
from .shared import CONNECTED, NETWORKS, among
from .telescope import PARTS, REAL, SCALINGS, STAND_IN

NAMES = {"unbiased": "sum times $n_i/b$", "batch_sum": "minibatch sum"}
SPOKEN = {"unbiased": "with n_i/b as defined", "batch_sum": "with the minibatch's sum"}


def source_of(tables: Tables) -> str:
    """STAND_IN or REAL."""
    return str(tables["setting"]["data"].iloc[0])


def draw(tables: Tables, method: str) -> Drawing:
    """Training data, test data, a network in each column; below, differences on all data sets."""
    drawing = Drawing(figsize=(15.6, 13.8), layout="constrained")
    axes = drawing.subplot_mosaic([list("aabbcc"), list("ddeeff"), list("ggghhh")])
    fact, source = tables["setting"].iloc[0], source_of(tables)
    seen = tables["curves"]
    limits = (float((seen["mean"] - seen["sd"].where(seen["scaling"] == "batch_sum", 0.0)).min()) - 0.03,
              float(max(fact["posterior_training"], fact["posterior_test"])) + 0.035)
    for row, part in enumerate(PARTS):
        for letter, name in zip("abc" if row == 0 else "def", NETWORKS, strict=True):
            ax = axes[letter]
            _panel(ax, tables, part, name)
            ax.set(ylim=limits, xlabel="iteration k", title=f"({letter}) {NETWORKS[name].title}: {part} data")
        axes["ad"[row]].set_ylabel(f"accuracy, {part} data")
    for letter, scaling in zip("gh", SCALINGS, strict=True):
        _differences(axes[letter], tables, scaling, letter)
    for letter in "def":
        legend_below(axes[letter])
    for letter in "gh":
        legend_below(axes[letter], 2)
    if source == STAND_IN:
        drawing.suptitle(f"{STAND_IN}, not the telescope's data: give the file with --data magic04.data")
        for letter in "abcdef":
            axes[letter].text(0.5, 0.97, STAND_IN, transform=axes[letter].transAxes, ha="center", va="top",
                              fontsize=13, fontweight="bold", color=plot.GREY, alpha=0.75, zorder=0)
    return drawing


def _panel(ax: Axes, tables: Tables, part: str, name: str) -> None:
    fact = tables["setting"].iloc[0]
    draw_posterior(ax, fact[f"posterior_{part}"], fact[f"sd_{part}"], "posterior (Laplace): mean, sd")
    for scaling, colour, line in (("unbiased", plot.GREY, "--"), ("batch_sum", NETWORKS[name].colour, "-")):
        one = among(tables["curves"], network=name, part=part, scaling=scaling)
        draw_curve(ax, one, colour, NAMES[scaling], line, band=scaling == "batch_sum")


def _differences(ax: Axes, tables: Tables, scaling: str, letter: str) -> None:
    table, places = among(tables["contrasts"], scaling=scaling), iter((-0.24, -0.08, 0.08, 0.24))
    for part, face in zip(PARTS, ("full", "none"), strict=True):
        for name in CONNECTED:
            one, network = among(table, part=part, network=name), NETWORKS[name]
            ax.errorbar(one["data_set"] + 1 + next(places), one["difference"],
                        yerr=[one["difference"] - one["low"], one["high"] - one["difference"]],
                        color=network.colour, marker=network.marker, fillstyle=face, markersize=4.5,
                        linestyle="none", linewidth=1.0,
                        label=f"{network.title}, {part} data")
    ax.axhline(0.0, color="#000000", linewidth=0.8)
    ax.set_xticks(sorted(table["data_set"].unique() + 1))
    radius = among(tables["stability"], scaling=scaling)["radius"]
    ax.set(xlabel=f"number of the {unit_of(tables)} (bars: 95%, from its runs)",
           ylabel="accuracy minus the disconnected one's",
           title=f"({letter}) {NAMES[scaling]}; radius at the mode {radius.min():.3g} to {radius.max():.3g}")


# ---- claims -------------------------------------------------------------------------------------------


def _better(tables: Tables, scaling: str) -> tuple[str, str]:
    """Connected against disconnected, training and test data."""
    table = among(tables["contrasts"], scaling=scaling)
    pairs = [(part, name) for part in PARTS for name in CONNECTED]
    found = wide(table, "difference", ["part", "network"])[pairs]
    return compared(found, units_of(tables), [f"{part}, {NETWORKS[name].title}" for part, name in pairs])


def judge_paper(tables: Tables) -> Judgement:
    """The paper's claim in either reading of its minibatches; only on its data."""
    if source_of(tables) != REAL:
        return Judgement(NOT_TESTABLE, f"The data are a {STAND_IN}: give the telescope's file with --data.")
    found = {scaling: _better(tables, scaling) for scaling in SCALINGS}
    verdicts = [verdict for verdict, _ in found.values()]
    verdict = PASS if PASS in verdicts else FAIL if set(verdicts) == {FAIL} else NOT_TESTABLE
    said = " ".join(f"{SPOKEN[scaling].capitalize()}: {text}." for scaling, (_, text) in found.items())
    passing = [SPOKEN[scaling] for scaling, (one, _) in found.items() if one == PASS]
    return Judgement(verdict, said, f"It passes {' and '.join(passing)}." if passing else "")


def judge_defined(tables: Tables) -> Judgement:
    """Connected against disconnected with the estimator as defined."""
    verdict, said = _better(tables, "unbiased")
    return Judgement(verdict, f"Mean accuracy minus the disconnected network's, {source_of(tables)}: {said}.")


def judge_summed(tables: Tables) -> Judgement:
    """Connected against disconnected with minibatch sums."""
    verdict, said = _better(tables, "batch_sum")
    return Judgement(verdict, f"Mean accuracy minus the disconnected network's, {source_of(tables)}: {said}.")


def judge_unstable(tables: Tables) -> Judgement:
    """Radius of the linearised map."""
    found = {scaling: wide(among(tables["stability"], scaling=scaling), "radius") for scaling in SCALINGS}
    good = (found["unbiased"] > 1.0).all(axis=1)
    texts = [f"{SPOKEN[scaling]} {table.to_numpy().min():.3g} to {table.to_numpy().max():.3g}"
             for scaling, table in found.items()]
    return Judgement(unanimous(good), f"Radius, {source_of(tables)}: {', '.join(texts)}; above 1 as defined "
                     f"on all networks {shares(good, units_of(tables))}.")


def claims(method: str, theorem: str, number: str) -> list[Claim | Finding | Unjudged]:
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
                "defined.", f"figure {number}", judge_defined, name="better_as_defined", rests_on=REPLICAS,
                context=static),
        Finding("On the data at hand, connected networks perform better with sums of minibatches, without "
                "the factor n_i/b.", f"figure {number}", judge_summed, name="better_with_sums",
                rests_on=REPLICAS, context=static),
    ]
