"""Opposites for the figures on image data: the baseline worse, or better, than every other setting."""

from reproduce.discovery import figures
from reproduce.figure import Claim
from reproduce.verdicts import DOES_NOT_HOLD, HOLDS, NOT_TESTABLE, OPEN, PASS

FIGURES = ("fa_ld_fig2_4", "fa_hmc_fig3_4", "fa_hmc_fig6_7")


def by(worse, edge=False):
    """All comparisons with this outcome, and step sizes inside the grid or not."""
    def change(tables):
        compared = tables["compared"].assign(worse=worse, low=worse - 0.01, high=worse + 0.01)
        return tables | {"compared": compared, "tuning": tables["tuning"].assign(edge=edge)}
    return change


WORSE, BETTER, EVEN = by(0.05), by(-0.05), by(0.0)
OPPOSITES = {}
for figure in FIGURES:
    for item in figures()[figure].judged:
        OPPOSITES[figure, item.name] = [(PASS, WORSE), (NOT_TESTABLE, BETTER), (NOT_TESTABLE, EVEN),
                                        (NOT_TESTABLE, by(0.05, edge=True))] if isinstance(item, Claim) else [
            (HOLDS, WORSE), (DOES_NOT_HOLD, BETTER), (OPEN, EVEN)]
OPPOSITES["fa_ld_fig2_4", "few_labels"] = [(HOLDS, BETTER), (DOES_NOT_HOLD, WORSE), (OPEN, EVEN)]
