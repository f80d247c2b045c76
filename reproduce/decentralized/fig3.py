"""DE-SGHMC figure 3: W2 along iterations on three networks, linear regression with exact gradients."""

from __future__ import annotations

import numpy as np

import fedsim as fs
from theory import de_sghmc

from ..figure import DATA_SETS, NOT_TESTABLE, Claim, Drawing, Finding, Parameter, Tables, settings
from ..verdicts import Judgement, shares, unanimous
from . import claims, linear
from .assumptions import VALIDATE, assumptions_claim, range_claim

TITLE = "W2 of agents and average on three networks"
PAPER = "DE-SGHMC figure 3"
REPRODUCES = ("DE 3",)
SHOWS = ("The regression of figure 2 by DE-SGHMC: replicas, exact law and floor of four agents and of the "
         "average; Theorem 11's hypotheses are violated on every network.")
COST = {"tiny": "10 s", "quick": "15 s", "paper": "about 7 min (estimated)"}
PARAMETERS = [
    linear.CLIENTS, linear.DATA, linear.DIM, linear.PRIOR, linear.NOISE, linear.REPLICAS,
    Parameter("step_size", 0.1, "paper", "section 5.1: eta = 0.1"),
    Parameter("friction", 7.0, "paper", "section 5.1: gamma = 7"),
    Parameter("gradients", "exact", "paper", "the same setting as figure 2"),
    Parameter("n_agents_shown", 4, "paper", "figure 3: the first 4 agents and the average"),
    Parameter("start_velocity", 0.0, "ours", "not printed: at rest"),
    Parameter("likelihood_factor", 0.5, "ours", "f_i with the 1/(2 xi^2) of its density, as in figure 2"),
    linear.ROUNDS, linear.START, linear.DATA_SEED, linear.SEED, linear.CHECKED, linear.DATA_SETS,
]


def compute(scale: str) -> Tables:
    """Tables: curves, means, hypotheses, replicas, sets, spread, assumptions, floors; bounds if any."""
    p = settings(PARAMETERS, scale)
    return linear.tables(p, lambda mixing: fs.DESGHMC(p.step_size, p.friction, mixing),
                         (de_sghmc.w2_bound, de_sghmc.w2_clients_bound))


def draw(tables: Tables) -> Drawing:
    """Three networks, and their comparison."""
    return linear.draw(tables, "Theorem 11")


def judge_similar(tables: Tables) -> Judgement:
    """The orderings of figure 2's limits, and its tolerance."""
    orders = [claims.per_set(tables, condition) for condition in (
        lambda t: (t["agents", "disconnected"] > t["agents", "ring"])
        & (t["agents", "ring"] > t["agents", "complete"]),
        lambda t: (t["average", "disconnected"] > t["average", "ring"])
        & (t["average", "ring"] > t["average", "complete"]),
        lambda t: t["average", "disconnected"] < t["best_agent", "disconnected"])]
    settled, text, _ = claims.judge_tolerance(tables)
    verdict = unanimous(np.all(orders, axis=0))
    return Judgement(verdict if settled == verdict else NOT_TESTABLE, (
        "Limits are ordered as in figure 2, fully connected, circular, disconnected, of the agents "
        f"{shares(orders[0])} and of the averages {shares(orders[1])}; the disconnected average is nearer "
        f"than its agents {shares(orders[2])}. Medians: agents {claims.by_network(tables, 'agents')}, "
        f"average {claims.by_network(tables, 'average', 4)}. {text}"))


def _faster(tables: Tables) -> Judgement:
    return claims.judge_faster(tables, [("complete", "ring"), ("complete", "disconnected"),
                                        ("ring", "disconnected")], ("average", "agents"))


CLAIMS = [
    Claim("The results are qualitatively similar to those of DE-SGLD.", "section 5.1, figure 3",
          judge_similar, name="similar", rests_on=DATA_SETS,
          context="Read: all agents of the connected networks settle nearer to the posterior, and limits "
                  "are ordered as in figure 2."),
    Finding("An agent's law is nearer to the posterior than a point mass at the "
            "posterior's mean.", "section 5.1", claims.judge_sampling, name="sampling", rests_on=DATA_SETS),
    Claim("Convergence is fastest for the fully connected and slowest for the disconnected network.",
          "section 5.1, figure 3", _faster, name="faster", rests_on=DATA_SETS,
          context="Disconnected, the spectral radius is sqrt(1 - gamma eta) = 0.548 where the modes "
                  "oscillate; gossip couples agents of unequal curvature into modes that are slower."),
    assumptions_claim("3", DATA_SETS, "As in figure 2: the same components, exact gradients.", "de_fig2",
                      least=1),
    range_claim("Theorem 11", "3", DATA_SETS, VALIDATE, "sets"),
    claims.replicas_finding(),
]
