"""What the decentralized paper assumes, judged on its figures: two questions that are kept apart.

Section 5 says that its examples satisfy the assumptions: the gradient noise has a bounded variance
(Assumption 1, appendix D) and the components are strongly convex with Lipschitz gradients (appendix E).
Whether the step size of a figure lies in the range of Theorem 1 or 11 is the other question; where it
does not, theorem and figure do not contradict each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs

from ..figure import Claim, Tables
from ..tables import among
from ..verdicts import FAIL, MIN_SETS, NOT_TESTABLE, OUTSIDE, PASS, Judgement, shares, unanimous
from . import shared as de

ASSUMPTIONS, RANGE = "assumptions", "step_size_range"
"""Names of the two claims."""


def assumptions_row(curvature: tuple[float, float], noise_sd: float, **labels: Any) -> dict[str, Any]:
    """A row (labels, strong_convexity, smoothness, noise_bounded, noise_sd) of the table "assumptions".

    `noise_sd` is the largest root of E||gradient noise||^2 of an agent: 0 for exact gradients, infinite
    where it has no bound; stored as -1 then.
    """
    bounded = bool(np.isfinite(noise_sd))
    return {**labels, "strong_convexity": float(curvature[0]), "smoothness": float(curvature[1]),
            "noise_bounded": bounded, "noise_sd": float(noise_sd) if bounded else -1.0}


def logistic_noise_sd(problem: fs.LogisticRegression) -> float:
    """A bound of the noise of logistic minibatches at every point, for any state and step size.

    The gradient of a datum's loss is at most its |X_j| long, so that E||noise||^2 of an unbiased minibatch
    is at most (n_i/b) sum_j |X_j|^2.
    """
    assert problem.batch_size is not None
    lengths = np.square(problem.features).sum(axis=1)
    sums, sizes = np.bincount(problem.clients, weights=lengths), np.bincount(problem.clients)
    return float(np.sqrt((sizes * sums / problem.batch_size).max()))


def by_set(table: pd.DataFrame, good: Any) -> np.ndarray:
    """Whether all rows of a data set are good."""
    return pd.Series(good, table.index).groupby(table["data_set"]).all().to_numpy()


def of_connected(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the connected networks."""
    return table[table["network"].isin(de.CONNECTED)]


def judge_assumptions(tables: Tables, least: int = MIN_SETS) -> Judgement:
    """Strong convexity, Lipschitz gradients and bounded noise, on every data set of table "assumptions".

    `least` is 1 where the outcome is the same for all data.
    """
    table = tables[ASSUMPTIONS]
    bounded, convex = by_set(table, table["noise_bounded"]), by_set(table, table["strong_convexity"] > 0.0)
    smooth = by_set(table, np.isfinite(table["smoothness"]))
    noise = table["noise_sd"][table["noise_bounded"]].max()
    root = f", its root by {noise:.4g}" if noise > 0.0 else ", with sigma = 0" if noise == 0.0 else ""
    return Judgement(unanimous(bounded & convex & smooth, least), (
        f"The variance of the gradient noise is bounded {shares(bounded)}{root}; the components are strongly "
        f"convex (least mu {table['strong_convexity'].min():.3g}) {shares(convex)}, their gradients "
        f"Lipschitz (largest L {table['smoothness'].max():.4g}) {shares(smooth)}."))


def judge_range(tables: Tables, table: str = "hypotheses") -> Judgement:
    """Is the step size in the theorem's range on all connected networks? Of the table of this name.

    Its columns are network, status and why, and data_set where there are several.
    """
    rows, parts = of_connected(tables[table]), []
    for network in de.CONNECTED:
        one = among(rows, network=network)
        beyond = one[one["status"] != de.HOLD]
        parts.append(f"{de.NETWORKS[network].title} {shares(by_set(one, one['status'] == de.HOLD))}"
                     + (f" ({beyond['why'].iloc[0]})" if len(beyond) else ""))
    verdict, opening = {PASS: (PASS, "The theorem covers this figure"),
                        FAIL: (OUTSIDE, "The theorem does not cover all of it"),
                        NOT_TESTABLE: (NOT_TESTABLE, "Data sets disagree, or are too few"),
                        }[unanimous(by_set(rows, rows["status"] == de.HOLD))]
    return Judgement(verdict, f"{opening}; its hypotheses hold for {', '.join(parts)}.")


def assumptions_claim(figure: str, rests_on: str, context: str = "", counted_in: str = "",
                      least: int = MIN_SETS) -> Claim:
    """Section 5's sentence about its examples."""
    return Claim("The example satisfies the assumptions: the variance of the gradient noise is bounded, and "
                 "the components are strongly convex with Lipschitz gradients.",
                 f"section 5, beginning, with Assumption 1 and appendices D and E; figure {figure}",
                 lambda tables: judge_assumptions(tables, least), name=ASSUMPTIONS, rests_on=rests_on,
                 context=context, counted_in=counted_in)


def range_claim(theorem: str, figure: str, rests_on: str, said: tuple[str, str],
                table: str = "hypotheses", context: str = "") -> Claim:
    """Whether the theorem covers the figure; `said`: the paper's words on what it shows, and their place."""
    words, place = said
    return Claim(f"Figure {figure} shows {theorem} at work on the connected networks (\"{words}\").", place,
                 lambda tables: judge_range(tables, table=table), name=RANGE, rests_on=rests_on,
                 context=" ".join(filter(None, (
                     "The paper tunes its parameters to the data and says nowhere that they lie in the "
                     "theorem's range; outside it figure and theorem neither bear each other out nor "
                     "contradict. No theorem is about the disconnected network, the baseline.", context))))


VALIDATE = "our main goal is to validate Theorems 1 and 11 in a basic setting", "section 5.1, beginning"
THEORY = "to validate our theory", "section 5, beginning"
SUPPORTS = "which supports our theory", "section 5.2, with figure 5"
ILLUSTRATE = "illustrate our theoretical results", "section 5.3, end"
