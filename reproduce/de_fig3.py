"""DE-SGHMC figure 3: W2 along iterations on three networks, linear regression with exact gradients."""

from __future__ import annotations

import numpy as np

import fedsim as fs
from theory import de_sghmc

from . import _decentralized_claims as claims
from . import _decentralized_linear as linear
from .figure import FAIL, PASS, Claim, Drawing, Parameter, Tables, settings

TITLE = "DE-SGHMC: W2 of agents and average on three networks"
PAPER = "DE-SGHMC figure 3"
SHOWS = ("The regression of figure 2 by DE-SGHMC: replicas, exact law and floor of four agents and of the "
         "average; Theorem 11's hypotheses are violated on every network.")
COST = {"tiny": "2 s", "quick": "10 s", "paper": "about 7 min (estimated)"}
PARAMETERS = [
    linear.CLIENTS, linear.DATA, linear.DIM, linear.PRIOR, linear.NOISE, linear.REPLICAS,
    Parameter("step_size", 0.1, "paper", "section 5.1: eta = 0.1"),
    Parameter("friction", 7.0, "paper", "section 5.1: gamma = 7"),
    Parameter("gradients", "exact", "paper", "the same setting as figure 2"),
    Parameter("n_agents_shown", 4, "paper", "figure 3: the first 4 agents and the average"),
    Parameter("start_velocity", 0.0, "ours", "not printed: at rest"),
    Parameter("likelihood_factor", 0.5, "ours", "f_i with the 1/(2 xi^2) of its density, as in figure 2"),
    linear.ROUNDS, linear.START, linear.DATA_SEED, linear.SEED, linear.CHECKED, linear.data_sets(2, 5, 200),
]


def compute(scale: str) -> Tables:
    """Tables: curves, means, hypotheses, replicas, sets, floors, and bounds where they have a value."""
    p = settings(PARAMETERS, scale)
    return linear.tables(p, lambda mixing: fs.DESGHMC(p.step_size, p.friction, mixing),
                         (de_sghmc.w2_bound, de_sghmc.w2_clients_bound))


def draw(tables: Tables) -> Drawing:
    """Three networks, and their comparison."""
    return linear.draw(tables, "Theorem 11")


def judge_similar(tables: Tables) -> tuple[str, str]:
    """The orderings of figure 2's limits."""
    orders = [claims.share(tables, condition) for condition in (
        lambda t: (t["agents", "disconnected"] > t["agents", "ring"])
        & (t["agents", "ring"] > t["agents", "complete"]),
        lambda t: (t["average", "disconnected"] > t["average", "ring"])
        & (t["average", "ring"] > t["average", "complete"]),
        lambda t: t["average", "disconnected"] < t["best_agent", "disconnected"])]
    agents, average = claims.medians(tables, "agents"), claims.medians(tables, "average")
    return (PASS if all(good == total for good, total in orders) else FAIL), (
        f"Of {orders[0][1]} data sets the agents' limits are ordered as in figure 2 (fully connected, "
        f"circular, disconnected) in {orders[0][0]}, the averages' in {orders[1][0]}, and the disconnected "
        f"average is nearer than its agents in {orders[2][0]}; median limits of agents and average "
        + ", ".join(f"{agents[name]:.3f} and {average[name]:.4f} ({name})" for name in agents) + ".")


def judge_speed(tables: Tables) -> tuple[str, str]:
    """Iterations to settle, fully connected first and disconnected last."""
    average, p = claims.medians(tables, "average_settles"), settings(PARAMETERS, "quick")
    ordered = average["complete"] <= average["ring"] <= average["disconnected"] and (
        average["complete"] < average["disconnected"])
    return (PASS if ordered else FAIL), (
        "Median iterations of average and agents' mean until they stay within 5% of their limits: "
        f"{claims.speeds(tables)}. Limits are ordered as the paper says, speeds are not: "
        "disconnected, the radius is sqrt(1 - gamma eta) = "
        f"{np.sqrt(1.0 - p.friction * p.step_size):.3f}, and gossip couples agents of unequal curvature "
        "into modes that are slower." if not ordered else
        f"Median iterations of average and agents' mean to settle: {claims.speeds(tables)}.")


CLAIMS = [
    Claim("The results are qualitatively similar to those of DE-SGLD.", "section 5.1, figure 3",
          judge_similar),
    Claim("For complete and circular graphs all agents converge to the posterior up to an error tolerance.",
          "section 5.1, of figure 3", claims.judge_tolerance),
    Claim("ours, how large the tolerance is: an agent's law is nearer to the posterior than a point mass at "
          "the posterior's mean.", "ours, for section 5.1", claims.judge_sampling),
    Claim("Convergence is fastest for the fully connected and slowest for the disconnected network.",
          "section 5.1, figure 3", judge_speed),
    Claim("The examples satisfy the assumptions, so that figure 3 validates Theorem 11 on the connected "
          "networks.", "section 5", lambda tables: claims.judge_covered(tables, "Theorem 11")),
    Claim("ours: replicas follow the exact laws.", "ours", claims.judge_replicas),
]
