"""DE-SGLD figures 5 to 8: accuracy along iterations on three networks, simulated and breast cancer data.

An agent's accuracy on a data set, or on a dealing of one, is the mean of a few runs. Data sets with their
runs are the independent draws; the intervals of all comparisons of a claim are right together with
probability 1 - LEVEL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..figure import DATA_SETS, REPLICAS, ByScale, Claim, Finding, Panel, Parameter, Tables, settings
from ..tables import among
from ..verdicts import FAIL, MIN_SETS, NOT_TESTABLE, PASS, Judgement, above, intervals, shares, unanimous
from . import claims, logistic, logistic_drawing, shared as de
from .logistic_drawing import units_of, wide

PRIOR = Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10")
N_RUNS = Parameter("n_runs", ByScale(12, 100, 100), "paper",
                   "section 5.2: 100 independent runs; of the curves")
SIMILAR = [  # section 5.3 prints neither
    Parameter("prior_variance", 10.0, "ours", "not printed for real data; section 5.2 has lambda = 10"),
    Parameter("n_runs", ByScale(12, 100, 100), "ours", "of the curves; not printed for real data, \"similar "
              "to the previous section\", which has 100")]
N_SET_RUNS = Parameter("n_set_runs", ByScale(6, 10, 20), "ours",
                       "runs on each of them, in pairs between networks")
START = Parameter("start", 0.0, "ours", "all agents start at the origin; not printed")
LABEL_SIGN = Parameter("label_sign", "corrected", "ours", "the loss of (55) is that of y = 1 for every label")
SIMULATED = [
    Parameter("n_data", 1000, "paper", "section 5.2: n = 1000"),
    Parameter("dim", 3, "paper", "section 5.2: x in R^3"),
    Parameter("feature_variance", 20.0, "paper", "section 5.2: X ~ N(0, 20 I)"), PRIOR, N_RUNS,
]
BREAST_CANCER = [
    *SIMILAR, Parameter("features", "standardised, with an intercept", "ours",
                        "dimension 31 is printed; with raw features L is about 5e7 and this step size "
                        "useless"),
]
SHARED = [
    Parameter("n_clients", 6, "paper", "sections 5.2 and 5.3: N = 6"),
    Parameter("batch_size", 32, "paper", "figures 5 to 8: b = 32; drawn with replacement and scaled by "
              "n_i / b, as in appendix D"),
    Parameter("n_data_sets", MIN_SETS, "ours", "data sets, or dealings of the data to the agents; "
                      "the paper has one. Curves and distances are of the first"), N_SET_RUNS,
    Parameter("n_rounds", ByScale(20, 200, 1000), "ours", "iterations of the accuracies; not printed"),
    Parameter("distance_rounds", ByScale(40, 2000, 20000), "ours", "iterations of W2: longer, to see an end"),
    START, Parameter("agent", 0, "ours", "of parts dealt at random; the paper's is randomly picked"),
    LABEL_SIGN,
    Parameter("data_seed", 0, "ours", "of simulated data; the next data set has the next seed"),
    Parameter("split_seed", 0, "ours", "of the order in which data are dealt to the agents, likewise"),
    Parameter("seed", 1, "ours", "of the runs, likewise, and of the reference sample"),
    Parameter("reference_chains", ByScale(20, 100, 400), "ours", "Metropolis-adjusted chains"),
    Parameter("reference_draws", ByScale(20, 100, 400), "ours", "of each of them"),
    Parameter("reference_leapfrogs", 6, "ours", "of each draw"),
    Parameter("reference_warmup", 20, "ours", "draws left out, from starts of the Laplace law"),
    Parameter("reference_step", 0.3, "ours", "leapfrog step in units of the Laplace law's spreads"),
]
INTERVALS = ("Intervals of means over data sets or dealings, each with a few runs, are right together with "
             "probability 99%.")
ASSUMED = ("The example satisfies the theorem's assumptions, as the paper says, with any finite data: a "
           "minibatch drawn with replacement and scaled by n_i/b is unbiased, the gradient of a datum's loss "
           "is at most |X_j| long and its curvature at most |X_j|^2/4, and the prior adds 1/(N lambda) to "
           "each component's.")
ANY_DATA = ("By (37) and (38) no momentum 1 - friction*step_size above 1/32 is in the range, whatever the "
            "features, the prior and the connected network are.")
SCALED = ("The paper does not print how features are scaled: asked are four usual ways, with an "
          "intercept, and one that is covered suffices.")
LATE_TEXT = "Accuracies are means over the last quarter of the iterations of an agent whose part is random."
DEALINGS = ("Measured is the geometric mean over the three networks, on each dealing; the interval of its "
            "mean over the dealings is right with probability 99%.")
NOT_PRINTED = ("Scaling of features and iterations are not printed, and the prior is section 5.2's: nothing "
               "here can contradict the sentence.")


def assumed(theorem: str) -> str:
    """What is said of the theorem's hypotheses on real data, whose features are ours."""
    return " ".join([ASSUMED, SCALED, *([ANY_DATA] if theorem == "Theorem 11" else [])])


def compared(values: pd.DataFrame, units: str, names: list[str], limit: float = 0.0) -> tuple[str, str]:
    """Verdict on "above the limit", and the means with their intervals; a row a data set."""
    low, high = intervals(values)
    texts = [f"{name} {one.mean():.4g} ({lower:.4g} to {upper:.4g}), above {limit:g} "
             f"{shares(one > limit, units)}"
             for name, (_, one), lower, upper in zip(names, values.items(), low, high, strict=True)]
    return above(low, high, limit), "; ".join(texts)


def _connected(tables: Tables, table: pd.DataFrame, column: str, limit: float = 0.0) -> tuple[str, str]:
    """`compared` of a column on the connected networks."""
    titles = [de.NETWORKS[name].title for name in de.CONNECTED]
    return compared(wide(table, column)[list(de.CONNECTED)], units_of(tables), titles, limit)


def judge_disconnected(tables: Tables) -> Judgement:
    """Accuracy of connected minus disconnected."""
    verdict, text = _connected(tables, tables["contrasts"], "difference")
    return Judgement(verdict, f"Mean accuracy minus that of the disconnected network: {text}.")


def judge_works(tables: Tables) -> Judgement:
    """Share of the posterior's gain over the larger class."""
    table = tables["sets"]
    gain = table[["accuracy", "posterior_accuracy"]].sub(table["larger_class"], axis=0)
    table = table.assign(share=gain["accuracy"] / gain["posterior_accuracy"])
    verdict, text = _connected(tables, table, "share", 0.95)
    if verdict == FAIL and _connected(tables, table, "share")[0] != FAIL:  # the 95% are ours
        verdict = NOT_TESTABLE
    complete, ring = (among(table, network=name)["accuracy"].mean() for name in de.CONNECTED)
    return Judgement(verdict, f"Share of the gain over the larger class: {text}. Mean accuracy "
                     f"{complete:.4f} and {ring:.4f}, of draws of the posterior "
                     f"{table['posterior_accuracy'].mean():.4f}.")


def judge_law(tables: Tables) -> Judgement:
    """Is W2 surely larger than the posterior's spread, on every data set?"""
    sets = tables["sets"]
    ratio = wide(sets.assign(ratio=sets["least_w2"] / sets["spread"]), "ratio")[list(de.CONNECTED)]
    good = (ratio > 1.0).all(axis=1)
    texts = [f"{de.NETWORKS[name].title} {ratio[name].min():.3g} to {ratio[name].max():.3g}"
             for name in de.CONNECTED]
    return Judgement(PASS if unanimous(good) == PASS else NOT_TESTABLE,
                     f"Least W2 over the posterior's spread: {', '.join(texts)}; both above 1 "
                     f"{shares(good, units_of(tables))}.")


def judge_order(tables: Tables) -> Judgement:
    """W2 of the agents, disconnected against connected, at the last iteration."""
    table = tables["distances"]
    end = among(table, round=int(table["round"].max())).set_index("network")
    alone, joined = end.loc["disconnected"], end.loc[list(de.CONNECTED)]
    verdict = (PASS if alone["low"] > joined["high"].max() else
               FAIL if alone["high"] < joined["low"].min() else NOT_TESTABLE)
    texts = [f"{network.title} {end['w2'][name]:.3g} ({end['low'][name]:.3g} to {end['high'][name]:.3g})"
             for name, network in de.NETWORKS.items()]
    return Judgement(verdict, f"Mean over agents of W2 to the posterior after {end['round'].iloc[0]} "
                     f"iterations: {', '.join(texts)}.")


def sampling_findings(number: str) -> list[Finding]:
    """What accuracy does not show."""
    return [
        Finding("Accuracy comes before the law: where the accuracies end, an agent's law is still further "
                "from the posterior than a point mass at the posterior's mean, on every data set or dealing.",
                f"figure {number}", judge_law, name="accuracy_first", rests_on=DATA_SETS,
                context="The point mass has a W2 of the posterior's spread, the root of its covariance's "
                        "trace. An agent's W2 is bounded from below by the distance between the means and "
                        "between the spreads, so that this can be shown but not refuted. Accuracy looks at "
                        "the direction of x only."),
        Finding("The same order in W2, on the first data set: at the end of panel (e) disconnected agents "
                "are further from the posterior than connected ones.", f"figure {number}", judge_order,
                name="order_in_w2", rests_on=REPLICAS,
                context="An agent alone follows a sixth of the likelihood, a wider law around another mode. "
                        "The intervals of all agents and networks are right together with probability "
                        "99%.")]


def _ratios(tables: Tables, kind: str) -> pd.DataFrame:
    """DE-SGHMC over DE-SGLD, a row a dealing, a column a network."""
    table = tables["pace"]
    ratio = table.assign(ratio=table[f"{kind}_this"] / table[f"{kind}_other"])
    return wide(ratio, "ratio")[list(de.NETWORKS)]


def _draw_pace(ax: Axes, tables: Tables) -> None:
    """Both ratios on every dealing."""
    for place, kind in ((0, "first"), (4, "sd")):
        for x, (name, ratios) in enumerate(_ratios(tables, kind).items(), start=place):
            network = de.NETWORKS[str(name)]
            ax.plot(x + np.linspace(-0.3, 0.3, len(ratios)), ratios, color=network.colour,
                    marker=network.marker, markersize=4.5, linestyle="none", alpha=0.8)
            ax.plot([x - 0.36, x + 0.36], [np.exp(np.log(ratios).mean())] * 2, color=network.colour)
    ax.axhline(1.0, color="#000000", linewidth=0.8)
    ax.set_xticks([1.0, 5.0], ["iterations to a\ncommon accuracy", "standard deviation\nof accuracy"])
    ax.set(yscale="log", yticks=[0.1, 0.2, 0.5, 1.0], yticklabels=["0.1", "0.2", "0.5", "1"],
           xlabel="colours as in (a) to (c); lines: geometric means", ylabel="DE-SGHMC over DE-SGLD",
           title="(f) ours: the two methods on 12 dealings")


def _below(tables: Tables, kind: str) -> tuple[str, str, pd.Series]:
    """Is the ratio, averaged over the networks, below 1? With its interval; and each network's mean."""
    logs = np.log(_ratios(tables, kind))
    pooled, means = logs.mean(axis=1), np.exp(logs.mean())
    low, high = intervals(pooled)
    texts = [f"{de.NETWORKS[str(name)].title} {mean:.3g}" for name, mean in means.items()]
    return above(-high, -low), (f"{np.exp(pooled.mean()):.3g} ({np.exp(low):.3g} to {np.exp(high):.3g}), "
                                f"below 1 {shares(pooled < 0.0, 'dealings')}; {', '.join(texts)}"), means


def judge_faster(tables: Tables) -> Judgement:
    """Iterations to an accuracy that both reach."""
    verdict, text, ratios = _below(tables, "first")
    remark = (f"Faster by a factor of {1.0 / ratios.max():.2g} to {1.0 / ratios.min():.2g} on the three "
              "networks; \"slightly\" has no number.")
    return Judgement(verdict, f"Iterations of DE-SGHMC over those of DE-SGLD: {text}.",
                     remark if verdict == PASS else "")


def judge_spread(tables: Tables) -> Judgement:
    """Standard deviations, averaged over the iterations."""
    verdict, text, _ = _below(tables, "sd")
    return Judgement(verdict, f"Standard deviation of DE-SGHMC over that of DE-SGLD: {text}.")


def _panel(number: str, own: list[Parameter], data: str, disconnected: str, cost: tuple[str, str],
           shows: str = "", first: Sequence[Claim] = (), more: Sequence[Claim] = (), counted_in: str = "",
           source: tuple[str, str] = claims.THEORY, **drawing: Any) -> Panel:
    """A figure on the simulated or the breast cancer data; the latter need no seed."""
    simulated, (method, theorem) = data == "simulated data", de.method_of(item.name for item in own)
    units, section = ("data sets", "section 5.2") if simulated else ("dealings", "section 5.3")
    parameters = [*own, *(SIMULATED if simulated else BREAST_CANCER),
                  *(item for item in SHARED if simulated or item.name != "data_seed")]
    static = f"{LATE_TEXT} {INTERVALS}"
    return Panel(
        TITLE=f"Accuracy of one agent, {'simulated logistic regression' if simulated else data}",
        PAPER=f"{method} figure {number}", REPRODUCES=(f"DE {number}",), PARAMETERS=parameters,
        SHOWS=(f"Bayesian logistic regression on {'' if simulated else 'the '}{data} with 6 agents and "
               f"minibatches: accuracy of one agent {shows or 'on three networks, the same'} on 12 {units}, "
               "and the distance to the posterior."),
        COST=dict(zip(("tiny", "quick", "paper"), ("3 s", *cost), strict=True)),
        compute=lambda scale: logistic.compute(settings(parameters, scale)),
        draw=lambda tables: logistic_drawing.draw(tables, method, **drawing),
        CLAIMS=[*first, Claim(disconnected, f"{section}, figure {number}",
                              judge_disconnected, name="disconnected", rests_on=REPLICAS,
                              context=static, echo="" if simulated else NOT_PRINTED),
                *more, claims.range_claim(theorem, number, source, context=(
                    ASSUMED if simulated else assumed(theorem))), *sampling_findings(number)])


FIGURES = {
    "fig5": _panel(
        "5", de.printed("figure 5", 0.0003), "simulated data",
        "The disconnected network performs worse than the fully connected and the circular one.",
        ("5 s", "1 min"), source=claims.SUPPORTS, first=[
            Claim("DE-SGLD works well for the fully connected and the circular network.",
                  "section 5.2, figure 5", judge_works, name="works_well", rests_on=REPLICAS, context=(
                      "The paper gives no number. Ours: draws of the posterior (Laplace) classify better "
                      "than the larger class alone; 95% of that gain are asked for, and only an agent "
                      f"without any gain would contradict it. {LATE_TEXT} {INTERVALS}"))]),
    "fig6": _panel(
        "6", de.printed("figure 6", 0.02, 30.0), "simulated data",
        "The fully connected and the circular network perform better than the disconnected one.",
        ("5 s", "about 1 min (estimated)"), counted_in="de_fig5"),
    "fig7": _panel(
        "7", de.printed("figure 7", 0.0008), "breast cancer data",
        "The disconnected network performs worse than the connected ones.", ("7 s", "3 min")),
    "fig8": _panel(
        "8", [*de.printed("figure 8", 0.05, 10.0),
              Parameter("langevin_step_size", 0.0008, "paper", "figure 7: eta = 0.0008, for comparison")],
        "breast cancer data", "The disconnected network performs worse than the connected ones.",
        ("10 s", "3 min"), "with DE-SGHMC, beside DE-SGLD, both", counted_in="de_fig7", more=[
            Claim("DE-SGHMC converges slightly faster than DE-SGLD.", "section 5.3, figures 7 and 8",
                  judge_faster, name="faster", rests_on=REPLICAS, echo=NOT_PRINTED, context=(
                      "Judged is the direction: first iteration with a mean accuracy within 0.01 of the "
                      "lower of both ends (means over the last quarter). DE-SGHMC's eta^2/(gamma eta) is "
                      f"0.005, six times DE-SGLD's eta. {DEALINGS}")),
            Claim("DE-SGHMC has in general a smaller standard deviation of accuracy.",
                  "section 5.3, figures 7 and 8", judge_spread, name="smaller_deviation",
                  rests_on=REPLICAS, echo=NOT_PRINTED,
                  context=f"Between runs, mean over the iterations. {DEALINGS}")],
        other="DE-SGLD of figure 7", last=_draw_pace),
}
