"""FA-HMC figure 1(d): marginal error against step size, noisy gradients, ten dimensions."""

from __future__ import annotations

import pandas as pd

from . import _fa_hmc_logistic as logistic
from . import _fa_hmc_step as panel
from .figure import NOT_TESTABLE, ByScale, Claim, Drawing, Parameter, Tables, settings

TITLE = "FA-HMC and FA-LD: marginal error against step size, ten dimensions"
PAPER = "FA-HMC figure 1(d)"
SHOWS = ("Bayesian logistic regression in ten dimensions with noisy gradients, FA-HMC and FA-LD at equal "
         "communication: long chains of its Gaussian surrogate for two laws of the data, and short "
         "simulated ones.")
COST = {"tiny": "2 s", "quick": "7 s", "paper": "about 15 min (estimated)"}
PARAMETERS = [
    *panel.parameters(10, 1000, 10.0, 0.1, "section 5.1: d = 10", "paper", ByScale(5000, 20000, 500000),
                      ByScale(4, 20, 312)),
    Parameter("more_dims", ByScale(20, 40, 100), "ours", "as many data, for the comparison of dimensions"),
    Parameter("more_norms", {"informative rows": 1.0, "weak rows": 0.3}, "ours", "those of figure 1(b)"),
    Parameter("more_rounds", ByScale(2000, 10000, 100000), "ours", "of figure 1(b)"),
]


def compute(scale: str) -> Tables:
    """Tables: tuned, long, short, setting, and dims, the same in more dimensions."""
    tables = panel.compute(PARAMETERS, scale)
    p = settings(PARAMETERS, scale)
    rows = []
    p.long_rounds = p.more_rounds
    for law, norm in p.more_norms.items():
        posterior = logistic.Posterior(p, norm, p.more_dims, p.more_dims)
        rows += [{"dim": p.more_dims, **row} for row in panel.long_runs(p, posterior, law)]
    tables["dims"] = panel.best_of(pd.DataFrame(rows))
    return tables


def draw(tables: Tables) -> Drawing:
    """Two laws of the data, and short chains."""
    return panel.draw(tables, "d")


def judge_dims(tables: Tables) -> tuple[str, str]:
    """Improvement of the best error, in ten and in more dimensions."""
    few, more = panel.bests(tables), panel.bests(tables, "dims")
    gains = [table[panel.LD] / table[panel.HMC] for table in (few, more)]
    return NOT_TESTABLE, (
        "1000 dimensions are out of reach. On surrogates the best error of FA-LD over that of FA-HMC is, "
        f"at d = {tables['setting']['dim'].iloc[0]} and d = {tables['dims']['dim'].iloc[0]}: "
        + "; ".join(f"{law}: {gains[0][law]:.2f} and {gains[1][law]:.2f}" for law in few.index)
        + "; but curvatures and lengths of the chains differ as well.")


CLAIMS = [panel.BETTER, panel.SMALL, panel.ROBUST, panel.GAP,
          Claim("FA-HMC is more advantageous in many dimensions: figure 1(b) against 1(d).", "section 5.1",
                judge_dims), panel.SURROGATE]
