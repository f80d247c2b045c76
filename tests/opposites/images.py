"""Opposites for the figures on image data: the baseline worse, or better, than every other setting."""

from reproduce.discovery import figures
from reproduce.fa_ld import fig2_4
from reproduce.figure import Claim
from reproduce.verdicts import DOES_NOT_HOLD, ECHOED, HOLDS, NOT_TESTABLE, OPEN

FIGURES = ("fa_ld_fig2_4", "fa_hmc_fig3_4", "fa_hmc_fig6_7")


def by(worse, edge=False):
    """All comparisons with this outcome, and step sizes inside the grid or not."""
    def change(tables):
        compared = tables["compared"].assign(worse=worse, low=worse - 0.01, high=worse + 0.01)
        return tables | {"compared": compared, "tuning": tables["tuning"].assign(edge=edge)}
    return change


def at_edge_of(part):
    """The baseline the worst, and step sizes at an end of the grid in this part alone."""
    def change(tables):
        made = by(0.05)(tables)
        return made | {"tuning": made["tuning"].assign(edge=made["tuning"]["part"] == part)}
    return change


def labels_at_edge(tables):
    """The baseline the best, and a step size of clients with few labels at an end of the grid."""
    return BETTER(tables) | {"labels": tables["labels"].assign(edge=tables["labels"]["chosen"])}


def refused(tables):
    """Chains of the exact predictive that did not move: nothing was compared with it."""
    facts = tables["facts"].assign(acceptance=0.1).drop(columns=["floor", "split_rhat"])
    compared = tables["compared"]
    return tables | {"facts": facts, "compared": compared[compared["part"] != fig2_4.EXACT]}


WORSE, BETTER, EVEN = by(0.05), by(-0.05), by(0.0)
OPPOSITES = {}
for figure in FIGURES:
    for item in figures()[figure].judged:
        OPPOSITES[figure, item.name] = [(ECHOED, WORSE), (NOT_TESTABLE, BETTER), (NOT_TESTABLE, EVEN),
                                        (NOT_TESTABLE, by(0.05, edge=True))] if isinstance(item, Claim) else [
            (HOLDS, WORSE), (DOES_NOT_HOLD, BETTER), (OPEN, EVEN)]
OPPOSITES["fa_ld_fig2_4", "few_labels"] = [
    (HOLDS, BETTER), (DOES_NOT_HOLD, WORSE), (OPEN, EVEN), (OPEN, labels_at_edge)]
OPPOSITES["fa_ld_fig2_4", "reward"].append((OPEN, refused))
for name in ("brier_2", "brier_4"):  # an edge of one figure says nothing of the other
    own, other = sorted(fig2_4.PARTS, key=lambda part: (part == fig2_4.PARTS[0]) != name.endswith("2"))
    OPPOSITES["fa_ld_fig2_4", f"worst_{name}"] += [(ECHOED, at_edge_of(other)),
                                                   (NOT_TESTABLE, at_edge_of(own))]
