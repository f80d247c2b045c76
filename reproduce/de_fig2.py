"""DE-SGLD figure 2: W2 along iterations on three networks, linear regression with exact gradients."""

from __future__ import annotations

import fedsim as fs
from theory import de_sgld

from . import _decentralized_claims as claims
from . import _decentralized_linear as linear
from .figure import FAIL, PASS, Claim, Drawing, Parameter, Tables, settings

TITLE = "DE-SGLD: W2 of agents and average on three networks"
PAPER = "DE-SGLD figure 2"
SHOWS = ("Bayesian linear regression with 100 agents: replicas, exact law, floor and Theorem 1 of four "
         "agents and of the average on complete, circular and disconnected networks.")
COST = {"tiny": "2 s", "quick": "5 s", "paper": "about 2 min (estimated)"}
PARAMETERS = [
    linear.CLIENTS, linear.DATA, linear.DIM, linear.PRIOR, linear.NOISE, linear.REPLICAS,
    Parameter("step_size", 0.009, "paper", "section 5.1: eta = 0.009"),
    Parameter("gradients", "exact", "paper", "section 5.1: deterministic gradients, sigma = 0"),
    Parameter("n_agents_shown", 4, "paper", "figure 2: the first 4 agents and the average"),
    Parameter("likelihood_factor", 0.5, "ours", "f_i with the 1/(2 xi^2) that its density has: with the "
                                                "f_i as printed, without it, this step size diverges"),
    linear.ROUNDS, linear.START, linear.DATA_SEED, linear.SEED, linear.CHECKED, linear.data_sets(2, 12, 200),
]


def compute(scale: str) -> Tables:
    """Tables: curves, hypotheses, replicas, sets, floors, bounds."""
    p = settings(PARAMETERS, scale)
    return linear.tables(p, lambda mixing: fs.DESGLD(p.step_size, mixing),
                         (de_sgld.w2_bound, de_sgld.w2_clients_bound))


def draw(tables: Tables) -> Drawing:
    """Three networks, and their comparison."""
    return linear.draw(tables, "Theorem 1")


def judge_faster(tables: Tables) -> tuple[str, str]:
    """Iterations to settle."""
    average, agents = (claims.medians(tables, name) for name in ("average_settles", "agents_settle"))
    faster = average["complete"] < average["ring"] and agents["complete"] <= agents["ring"]
    return (PASS if faster else FAIL), (
        "Median iterations of average and agents' mean until they stay within 5% of their limits: "
        f"{claims.speeds(tables)}. The networks differ little in speed; what is seen are their limits.")


CLAIMS = [
    Claim("For complete and circular graphs all agents converge to the posterior up to an error tolerance.",
          "section 5.1, figure 2", claims.judge_tolerance),
    Claim("ours, how large the tolerance is: an agent's law is nearer to the posterior than a point mass at "
          "the posterior's mean.", "ours, for section 5.1", claims.judge_sampling),
    Claim("Agents of the disconnected network do worse than those of the connected ones.",
          "section 5.1, figure 2", claims.judge_disconnected),
    Claim("Disconnected, the average is nearer to the target than individual agents.",
          "section 5.1, figure 2", claims.judge_average_of_disconnected),
    Claim("Disconnected, the average is worse than the average of the fully connected network.",
          "section 5.1, figure 2", claims.judge_averages),
    Claim("The fully connected network converges faster than the circular one.", "section 5.1, figure 2",
          judge_faster),
    Claim("The examples satisfy the assumptions, so that figure 2 validates Theorem 1 on the connected "
          "networks.", "section 5", lambda tables: claims.judge_covered(tables, "Theorem 1")),
    Claim("ours: replicas follow the exact laws.", "ours", claims.judge_replicas),
]
