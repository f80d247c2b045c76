"""DE-SGLD figure 8 (DE-SGHMC): accuracy along iterations on three networks, breast cancer data."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from ..figure import DATA_SETS, PASS, REPLICAS, Claim, Drawing, Parameter, Tables, settings
from ..verdicts import Judgement, above, intervals, shares
from . import logistic, logistic_claims as claims, logistic_figure as shared
from .assumptions import THEORY, assumptions_claim, range_claim
from .shared import NETWORKS

TITLE = "Accuracy of one agent, breast cancer data"
PAPER = "DE-SGHMC figure 8"
SHOWS = ("Bayesian logistic regression on the breast cancer data with 6 agents and minibatches: accuracy of "
         "one agent with DE-SGHMC, beside DE-SGLD, both on 12 dealings, and the distance to the posterior.")
COST = {"tiny": "3 s", "quick": "10 s", "paper": "3 min"}
REPRODUCES = ("DE 8",)
PARAMETERS = [
    Parameter("step_size", 0.05, "paper", "figure 8: eta = 0.05"),
    Parameter("friction", 10.0, "paper", "figure 8: gamma = 10"),
    Parameter("langevin_step_size", 0.0008, "paper", "figure 7: eta = 0.0008, for comparison"),
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
    Parameter("features", "standardised, with an intercept", "ours",
              "dimension 31 is printed; with raw features L is about 5e7 and this step size useless"),
    *shared.without(shared.SHARED, "data_seed"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, sets, contrasts, hypotheses, assumptions, distances, pace, setting."""
    p = settings(PARAMETERS, scale)
    data = logistic.breast_cancer()
    return logistic.compute(p, lambda number: data,
                            lambda mixing: fs.DESGHMC(p.step_size, p.friction, mixing),
                            lambda mixing: fs.DESGLD(p.langevin_step_size, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks beside DE-SGLD, differences on all dealings, W2, and the two methods compared."""
    return shared.draw(tables, "DE-SGHMC", "DE-SGLD of figure 7", _pace)


def _ratios(tables: Tables) -> dict[str, pd.DataFrame]:
    """DE-SGHMC over DE-SGLD, a row a dealing, a column a network."""
    table = tables["pace"]
    return {name: claims.wide(table.assign(ratio=table[f"{name}_this"] / table[f"{name}_other"]), "ratio")[
        list(NETWORKS)] for name in ("first", "sd")}


def _pace(ax: Axes, tables: Tables) -> None:
    """Both ratios on every dealing."""
    for place, found in enumerate(_ratios(tables).values()):
        for number, (name, network) in enumerate(NETWORKS.items()):
            x = 4.0 * place + number
            ax.plot(x + np.linspace(-0.3, 0.3, len(found)), found[name], color=network.colour,
                    marker=network.marker, markersize=4.5, linestyle="none", alpha=0.8)
            ax.plot([x - 0.36, x + 0.36], [np.exp(np.log(found[name]).mean())] * 2, color=network.colour)
    ax.axhline(1.0, color="#000000", linewidth=0.8)
    ax.set_xticks([1.0, 5.0], ["iterations to a\ncommon accuracy", "standard deviation\nof accuracy"])
    ax.set(yscale="log", yticks=[0.1, 0.2, 0.5, 1.0], yticklabels=["0.1", "0.2", "0.5", "1"],
           xlabel="colours as in (a) to (c); lines: geometric means", ylabel="DE-SGHMC over DE-SGLD",
           title="(f) the two methods on 12 dealings")


def _below(tables: Tables, kind: str) -> tuple[str, str]:
    """Is the ratio, averaged over the networks, below 1? With its interval and each network's mean."""
    logs = np.log(_ratios(tables)[kind])
    pooled = logs.mean(axis=1)
    low, high = intervals(pooled)
    texts = [f"{network.title} {np.exp(logs[name].mean()):.3g}" for name, network in NETWORKS.items()]
    return above(-high, -low), (f"{np.exp(pooled.mean()):.3g} ({np.exp(low):.3g} to {np.exp(high):.3g}), "
                                f"below 1 {shares(pooled < 0.0, 'dealings')}; {', '.join(texts)}")


def judge_faster(tables: Tables) -> Judgement:
    """Iterations to an accuracy that both reach."""
    verdict, said = _below(tables, "first")
    least, most = (np.exp(-np.log(_ratios(tables)["first"]).mean()).agg(end) for end in ("min", "max"))
    remark = "" if verdict != PASS else (f"Faster by a factor of {least:.2g} to {most:.2g} on the three "
                                         "networks; \"slightly\" has no number.")
    return Judgement(verdict, f"Iterations of DE-SGHMC over those of DE-SGLD: {said}.", remark)


def judge_spread(tables: Tables) -> Judgement:
    """Standard deviations, averaged over the iterations."""
    verdict, said = _below(tables, "sd")
    return Judgement(verdict, f"Standard deviation of DE-SGHMC over that of DE-SGLD: {said}.")


_DEALINGS = ("\"In general\": the geometric mean over the three networks, on each dealing; the interval of "
             "its mean over the dealings is right with probability 99%.")
CLAIMS = [
    claims.disconnected_claim("The disconnected network performs worse than the connected ones.",
                              "section 5.3, figure 8"),
    Claim("DE-SGHMC converges slightly faster than DE-SGLD.", "section 5.3, figures 7 and 8", judge_faster,
          name="faster", rests_on=REPLICAS, context=(
              "Judged is the direction: first iteration with a mean accuracy within 0.01 of the lower of "
              "both ends (means over the last quarter). DE-SGHMC's eta^2/(gamma eta) is 0.005, six times "
              f"DE-SGLD's eta. {_DEALINGS}")),
    Claim("DE-SGHMC has in general a smaller standard deviation of accuracy.",
          "section 5.3, figures 7 and 8", judge_spread, name="smaller_deviation", rests_on=REPLICAS,
          context=f"Between runs, mean over the iterations. {_DEALINGS}"),
    assumptions_claim("8", DATA_SETS, claims.ASSUMED, counted_in="de_fig7", least=1),
    range_claim("Theorem 11", "8", DATA_SETS, THEORY),
    *claims.sampling_findings("8"),
]
