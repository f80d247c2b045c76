"""DE-SGLD figure 2: W2 along iterations on three networks, linear regression with exact gradients."""

from __future__ import annotations

import fedsim as fs
from theory import de_sgld

from ..figure import DATA_SETS, Claim, Drawing, Finding, Parameter, Tables, settings
from . import claims, linear
from .assumptions import VALIDATE, assumptions_claim, range_claim

TITLE = "W2 of agents and average on three networks"
PAPER = "DE-SGLD figure 2"
REPRODUCES = ("DE 2",)
SHOWS = ("Bayesian linear regression with 100 agents: replicas, exact law, floor and Theorem 1 of four "
         "agents and of the average on complete, circular and disconnected networks.")
COST = {"tiny": "4 s", "quick": "6 s", "paper": "about 2 min (estimated)"}
PARAMETERS = [
    linear.CLIENTS, linear.DATA, linear.DIM, linear.PRIOR, linear.NOISE, linear.REPLICAS,
    Parameter("step_size", 0.009, "paper", "section 5.1: eta = 0.009"),
    Parameter("gradients", "exact", "paper", "section 5.1: deterministic gradients, sigma = 0"),
    Parameter("n_agents_shown", 4, "paper", "figure 2: the first 4 agents and the average"),
    Parameter("likelihood_factor", 0.5, "ours", "f_i with the 1/(2 xi^2) that its density has: with the "
                                                "f_i as printed, without it, this step size diverges"),
    linear.ROUNDS, linear.START, linear.DATA_SEED, linear.SEED, linear.CHECKED, linear.DATA_SETS,
]


def _algorithm(step_size: float):
    return lambda mixing: fs.DESGLD(step_size, mixing)


def compute(scale: str) -> Tables:
    """Tables: curves, means, hypotheses, replicas, sets, spread, assumptions, printed, floors, bounds."""
    p = settings(PARAMETERS, scale)
    algorithm_of = _algorithm(p.step_size)
    return {**linear.tables(p, algorithm_of, (de_sgld.w2_bound, de_sgld.w2_clients_bound)),
            "printed": linear.printed_components(p, algorithm_of)}


def draw(tables: Tables) -> Drawing:
    """Three networks, and their comparison."""
    return linear.draw(tables, "Theorem 1")


def _faster(tables: Tables) -> claims.Judgement:
    return claims.judge_faster(tables, [("complete", "ring")], ("average", "agents"))


CLAIMS = [
    Claim("For complete and circular graphs all agents converge to the posterior up to an error tolerance.",
          "section 5.1, figure 2", claims.judge_tolerance, name="tolerance", rests_on=DATA_SETS,
          context="The noise of an agent's last step is its own, not yet averaged."),
    Finding("An agent's law is nearer to the posterior than a point mass at the "
            "posterior's mean.", "section 5.1", claims.judge_sampling, name="sampling", rests_on=DATA_SETS),
    Claim("Agents of the disconnected network do worse than those of the connected ones.",
          "section 5.1, figure 2", claims.judge_disconnected, name="disconnected", rests_on=DATA_SETS),
    Claim("Disconnected, the average is nearer to the target than individual agents.",
          "section 5.1, figure 2", claims.judge_average_of_disconnected, name="average_of_disconnected",
          rests_on=DATA_SETS),
    Claim("Disconnected, the average is worse than the average of the fully connected network.",
          "section 5.1, figure 2", claims.judge_averages, name="averages", rests_on=DATA_SETS),
    Claim("The fully connected network converges faster than the circular one.", "section 5.1, figure 2",
          _faster, name="faster", rests_on=DATA_SETS),
    assumptions_claim("2", DATA_SETS, "With exact gradients sigma = 0, and a Hessian X_i'X_i/xi^2 + "
                                      "I/(lambda N) is positive and finite whatever the data.", least=1),
    range_claim("Theorem 1", "2", DATA_SETS, VALIDATE, "sets", "The circular network's lambda_N is that "
                "of the Metropolis weights; with none below 0 all would rest on 1/(L + mu), as complete."),
    Claim("The f_i are sums of (y_j - x'X_j)^2 and |x|^2/(2 lambda N): exp(-sum f_i) is the posterior "
          "N(m, V).", "section 5.1, before figure 2; also appendix D and (126)",
          claims.judge_printed, name="printed_components", rests_on=DATA_SETS,
          context="The density printed below them has the factor 1/(2 xi^2), xi = 1. All figures of section "
                  "5.1 are made here with that factor."),
    claims.replicas_finding(),
]
