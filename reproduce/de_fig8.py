"""DE-SGLD figure 8 (DE-SGHMC): accuracy along iterations on three networks, breast cancer data."""

from __future__ import annotations

import numpy as np

import fedsim as fs

from . import _de_logistic as logistic
from . import _de_logistic_figure as shared
from ._decentralized import NETWORKS, among
from .figure import FAIL, PASS, Claim, Drawing, Parameter, Tables, settings

TITLE = "DE-SGHMC: accuracy of one agent, breast cancer data"
PAPER = "DE-SGHMC figure 8"
SHOWS = ("Bayesian logistic regression on the breast cancer data with 6 agents and minibatches: accuracy of "
         "one agent with DE-SGHMC, beside DE-SGLD, and the distance to the posterior.")
COST = {"tiny": "3 s", "quick": "10 s", "paper": "3 min"}
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
    """Tables: curves, agents, contrasts, distances, hypotheses, setting."""
    p = settings(PARAMETERS, scale)
    return logistic.compute(p, logistic.breast_cancer(),
                            lambda mixing: fs.DESGHMC(p.step_size, p.friction, mixing),
                            lambda mixing: fs.DESGLD(p.langevin_step_size, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, and W2."""
    return shared.draw(tables, "DE-SGHMC", "DE-SGLD of figure 7")


def judge_faster(tables: Tables) -> tuple[str, str]:
    """First iteration at a level that both reach."""
    outcomes, texts = [], []
    for name, network in NETWORKS.items():
        one, other = (among(tables["curves"], network=name, method=m) for m in ("this", "other"))
        level = min(one["mean"].iloc[-1], other["mean"].iloc[-1]) - 0.01
        first = [int(c["round"].iloc[int(np.argmax(c["mean"].to_numpy() >= level))]) for c in (one, other)]
        outcomes.append(first[0] < first[1])
        texts.append(f"{network.title} {first[0]} against {first[1]} (accuracy {level:.3f})")
    return (PASS if all(outcomes) else FAIL), (
        "First iteration with a mean accuracy within 0.01 of the lower of both ends, DE-SGHMC against "
        f"DE-SGLD: {', '.join(texts)}. DE-SGHMC's eta^2/(gamma eta) is 0.005, six times DE-SGLD's eta.")


def judge_spread(tables: Tables) -> tuple[str, str]:
    """Standard deviations, averaged over the iterations."""
    outcomes, texts = [], []
    for name, network in NETWORKS.items():
        one, other = (among(tables["curves"], network=name, method=m)["sd"].to_numpy()
                      for m in ("this", "other"))
        outcomes.append(one.mean() < other.mean())
        texts.append(f"{network.title} {one.mean():.4f} against {other.mean():.4f}, smaller in "
                     f"{100 * (one < other).mean():.0f}% of the iterations")
    return (PASS if all(outcomes) else FAIL), (
        f"Mean over iterations of the standard deviation of accuracy, DE-SGHMC against DE-SGLD: "
        f"{'; '.join(texts)}.")


CLAIMS = [
    Claim("The disconnected network performs worse than the connected ones.", "section 5.3, figure 8",
          shared.judge_disconnected),
    Claim("DE-SGHMC converges slightly faster than DE-SGLD.", "section 5.3, figures 7 and 8", judge_faster),
    Claim("DE-SGHMC has in general a smaller standard deviation of accuracy.",
          "section 5.3, figures 7 and 8", judge_spread),
    shared.hypotheses_claim("8"),
    *shared.sampling_claims("8"),
]
