"""DE-SGLD figures 5 to 8: accuracy along iterations on three networks, simulated and breast cancer data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..figure import ByScale, Claim, Panel, Parameter, Tables, settings
from ..verdicts import DATA_SETS, MIN_SETS, PASS, REPLICAS, Judgement, above, intervals, shares
from . import logistic, logistic_claims as claims, logistic_drawing
from .assumptions import SUPPORTS, THEORY, assumptions_claim, range_claim
from .shared import NETWORKS

SIMULATED = [
    Parameter("n_data", 1000, "paper", "section 5.2: n = 1000"),
    Parameter("dim", 3, "paper", "section 5.2: x in R^3"),
    Parameter("feature_variance", 20.0, "paper", "section 5.2: X ~ N(0, 20 I)"),
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
]
BREAST_CANCER = [
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
    Parameter("features", "standardised, with an intercept", "ours",
              "dimension 31 is printed; with raw features L is about 5e7 and this step size useless"),
]
SHARED = [
    Parameter("n_clients", 6, "paper", "section 5.2: N = 6"),
    Parameter("batch_size", 32, "paper", "section 5.2: b = 32; drawn with replacement, scaled by n_i / b"),
    Parameter("n_runs", ByScale(12, 100, 100), "paper", "section 5.2: 100 independent runs; of the curves"),
    Parameter("n_data_sets", MIN_SETS, "ours", "data sets, or dealings of the data to the agents; the "
              "paper has one. Curves and distances are of the first"),
    Parameter("n_set_runs", ByScale(6, 10, 20), "ours", "runs on each of them, in pairs between networks"),
    Parameter("n_rounds", ByScale(20, 200, 1000), "ours", "iterations of the accuracies; not printed"),
    Parameter("distance_rounds", ByScale(40, 2000, 20000), "ours", "iterations of W2: longer, to see an end"),
    Parameter("start", 0.0, "ours", "all agents start at the origin; not printed"),
    Parameter("agent", 0, "ours", "of parts dealt at random; the paper's is randomly picked"),
    Parameter("label_sign", "corrected", "ours", "the loss of (55) is that of y = 1 for every label"),
    Parameter("data_seed", 0, "ours", "of simulated data; the next data set has the next seed"),
    Parameter("split_seed", 0, "ours", "of the order in which data are dealt to the agents, likewise"),
    Parameter("seed", 1, "ours", "of the runs, likewise, and of the reference sample"),
    Parameter("reference_chains", ByScale(20, 100, 400), "ours", "Metropolis-adjusted chains"),
    Parameter("reference_draws", ByScale(20, 100, 400), "ours", "of each of them"),
    Parameter("reference_leapfrogs", 6, "ours", "of each draw"),
    Parameter("reference_warmup", 20, "ours", "draws left out, from starts of the Laplace law"),
    Parameter("reference_step", 0.3, "ours", "leapfrog step in units of the Laplace law's spreads"),
]
DEALINGS = ("\"In general\": the geometric mean over the three networks, on each dealing; the interval of "
            "its mean over the dealings is right with probability 99%.")


def _ratios(tables: Tables, kind: str) -> pd.DataFrame:
    """DE-SGHMC over DE-SGLD, a row a dealing, a column a network."""
    table = tables["pace"]
    ratio = table.assign(ratio=table[f"{kind}_this"] / table[f"{kind}_other"])
    return claims.wide(ratio, "ratio")[list(NETWORKS)]


def _draw_pace(ax: Axes, tables: Tables) -> None:
    """Both ratios on every dealing."""
    for place, kind in ((0, "first"), (4, "sd")):
        for x, (name, ratios) in enumerate(_ratios(tables, kind).items(), start=place):
            network = NETWORKS[str(name)]
            ax.plot(x + np.linspace(-0.3, 0.3, len(ratios)), ratios, color=network.colour,
                    marker=network.marker, markersize=4.5, linestyle="none", alpha=0.8)
            ax.plot([x - 0.36, x + 0.36], [np.exp(np.log(ratios).mean())] * 2, color=network.colour)
    ax.axhline(1.0, color="#000000", linewidth=0.8)
    ax.set_xticks([1.0, 5.0], ["iterations to a\ncommon accuracy", "standard deviation\nof accuracy"])
    ax.set(yscale="log", yticks=[0.1, 0.2, 0.5, 1.0], yticklabels=["0.1", "0.2", "0.5", "1"],
           xlabel="colours as in (a) to (c); lines: geometric means", ylabel="DE-SGHMC over DE-SGLD",
           title="(f) the two methods on 12 dealings")


def _below(tables: Tables, kind: str) -> tuple[str, str, pd.Series]:
    """Is the ratio, averaged over the networks, below 1? With its interval; and each network's mean."""
    logs = np.log(_ratios(tables, kind))
    pooled, means = logs.mean(axis=1), np.exp(logs.mean())
    low, high = intervals(pooled)
    texts = [f"{NETWORKS[str(name)].title} {mean:.3g}" for name, mean in means.items()]
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


def _panel(number: str, method: str, data: str, own: list[Parameter], said: list[Claim], seconds: str,
           minutes: str, shows: str = "", **drawing: Any) -> Panel:
    """A figure on the simulated or the breast cancer data; the latter need no seed."""
    simulated = data == "simulated data"
    parameters = [*own, *(SIMULATED if simulated else BREAST_CANCER),
                  *(item for item in SHARED if simulated or item.name != "data_seed")]
    shows = shows or f"on three networks, the same on 12 {'data sets' if simulated else 'dealings'}"
    return Panel(
        TITLE=f"Accuracy of one agent, {'simulated logistic regression' if simulated else data}",
        PAPER=f"{method} figure {number}", REPRODUCES=(f"DE {number}",), PARAMETERS=parameters,
        SHOWS=(f"Bayesian logistic regression on {'' if simulated else 'the '}{data} with 6 agents and "
               f"minibatches: accuracy of one agent {shows}, and the distance to the posterior."),
        COST={"tiny": "3 s", "quick": seconds, "paper": minutes},
        CLAIMS=[*said, *claims.sampling_findings(number)],
        compute=lambda scale: logistic.compute(settings(parameters, scale)),
        draw=lambda tables: logistic_drawing.draw(tables, method, **drawing))


FIGURES = {
    "fig5": _panel(
        "5", "DE-SGLD", "simulated data", [
            Parameter("step_size", 0.0003, "paper", "figure 5: eta = 0.0003")], [
            Claim("DE-SGLD works well for the fully connected and the circular network.",
                  "section 5.2, figure 5", claims.judge_works, name="works_well", rests_on=REPLICAS, context=(
                      "The paper gives no number. Ours: draws of the posterior (Laplace) classify better "
                      "than the larger class alone; 95% of that gain are asked for, and only an agent "
                      f"without any gain would contradict it. {claims.LATE_TEXT} {claims.INTERVALS}")),
            claims.disconnected_claim("The disconnected network performs worse than the fully connected and "
                                      "the circular one.", "section 5.2, figure 5"),
            assumptions_claim("5", DATA_SETS, claims.ASSUMED, least=1),
            range_claim("Theorem 1", "5", DATA_SETS, SUPPORTS)],
        "5 s", "1 min"),
    "fig6": _panel(
        "6", "DE-SGHMC", "simulated data", [
            Parameter("step_size", 0.02, "paper", "figure 6: eta = 0.02"),
            Parameter("friction", 30.0, "paper", "figure 6: gamma = 30")], [
            claims.disconnected_claim("The fully connected and the circular network perform better than the "
                                      "disconnected one.", "section 5.2, figure 6"),
            assumptions_claim("6", DATA_SETS, claims.ASSUMED, counted_in="de_fig5", least=1),
            range_claim("Theorem 11", "6", DATA_SETS, THEORY)],
        "5 s", "about 1 min (estimated)"),
    "fig7": _panel(
        "7", "DE-SGLD", "breast cancer data", [
            Parameter("step_size", 0.0008, "paper", "figure 7: eta = 0.0008")], [
            claims.disconnected_claim("The disconnected network performs worse than the connected ones.",
                                      "section 5.3, figure 7"),
            assumptions_claim("7", DATA_SETS, claims.ASSUMED, least=1),
            range_claim("Theorem 1", "7", DATA_SETS, THEORY,
                        context="Features are standardised, which is ours.")],
        "7 s", "3 min"),
    "fig8": _panel(
        "8", "DE-SGHMC", "breast cancer data", [
            Parameter("step_size", 0.05, "paper", "figure 8: eta = 0.05"),
            Parameter("friction", 10.0, "paper", "figure 8: gamma = 10"),
            Parameter("langevin_step_size", 0.0008, "paper", "figure 7: eta = 0.0008, for comparison")], [
            claims.disconnected_claim("The disconnected network performs worse than the connected ones.",
                                      "section 5.3, figure 8"),
            Claim("DE-SGHMC converges slightly faster than DE-SGLD.", "section 5.3, figures 7 and 8",
                  judge_faster, name="faster", rests_on=REPLICAS, context=(
                      "Judged is the direction: first iteration with a mean accuracy within 0.01 of the "
                      "lower of both ends (means over the last quarter). DE-SGHMC's eta^2/(gamma eta) is "
                      f"0.005, six times DE-SGLD's eta. {DEALINGS}")),
            Claim("DE-SGHMC has in general a smaller standard deviation of accuracy.",
                  "section 5.3, figures 7 and 8", judge_spread, name="smaller_deviation", rests_on=REPLICAS,
                  context=f"Between runs, mean over the iterations. {DEALINGS}"),
            assumptions_claim("8", DATA_SETS, claims.ASSUMED, counted_in="de_fig7", least=1),
            range_claim("Theorem 11", "8", DATA_SETS, THEORY)],
        "10 s", "3 min", "with DE-SGHMC, beside DE-SGLD, both on 12 dealings", other="DE-SGLD of figure 7",
        last=_draw_pace),
}
