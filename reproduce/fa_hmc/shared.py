"""Shared by FA-HMC's figures: the Gaussian experiment in one coordinate, and rounds by the exact law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import norm

import fedsim as fs
import theory

from ..figure import FAIL, PASS

EPS = float(np.sqrt(0.1))
"""W2^2 = 0.1, the threshold of section 5.2."""
FIFTH = 1.2
"""Numbers of rounds within this factor count as alike."""

LIMITED = ("Limited is read over the whole range of T: rounds vary by less than the square root of T's "
           "growth, halfway between not at all and like T.")


def rounds_to(problem: Any, algorithm: Any, eps: float) -> float:
    """Rounds of the exact law to W2 <= eps; infinity when it never gets there."""
    found = theory.tuning.rounds_to(problem, algorithm, eps)
    return np.inf if found is None else float(found)


def rounds_alike(one: fs.Quadratic, algorithm: Any, eps: float, dim: int) -> float:
    """The same for `dim` independent coordinates like that of `one`: sqrt(dim) times its W2."""
    return rounds_to(one, algorithm, eps / float(np.sqrt(dim)))


def paper_step(dim: int, factor: float = 0.02) -> float:
    """eta = 0.02 / d^(1/4)."""
    return float(factor / dim**0.25)


def groups(table: pd.DataFrame, columns: Any) -> list[tuple[Any, pd.DataFrame]]:
    """The values of `columns` and their rows, in the table's order."""
    return list(table.groupby(columns, sort=False))


def limited(rounds: pd.Series) -> tuple[float, str]:
    """The variation of rounds, by local steps, over what `LIMITED` allows; and in words."""
    growth, factor = rounds.index[-1] / rounds.index[0], float(rounds.max() / rounds.min())
    return factor / float(np.sqrt(growth)), (
        f"the fewest rounds vary by a factor {factor:.1f} from T = {rounds.index[0]} to {rounds.index[-1]}; "
        f"the root of T's growth is {np.sqrt(growth):.1f}.")


def deviation(run: fs.Run, law: fs.Law) -> tuple[float, int]:
    """Largest deviation of replicas' moments from a law in standard errors, and how many were compared."""
    scores = run.z_scores(law)
    return scores.largest(), sum(part.size for part in scores if part is not None)


def largest_allowed(count: int, false_alarm: float = 1e-3) -> float:
    """What the largest of `count` normal scores exceeds with at most this probability, however dependent."""
    return float(norm.isf(0.5 * false_alarm / count))


def follows(deviations: Any, compared: Any) -> tuple[str, str]:
    """Do replicas follow the exact law? From the largest deviation of each run and how many it is of.

    The false-alarm level of all runs together is 0.001, however dependent the deviations are.
    """
    worst, limit = float(np.max(deviations)), largest_allowed(int(np.sum(compared)))
    return (PASS if worst <= limit else FAIL), (
        f"The replicas' moments are at most {worst:.1f} standard errors off the exact law; more than "
        f"{limit:.1f} would be too many (false-alarm level 0.001).")


def legend_below(ax: Axes, below: float = 0.15) -> None:
    """A legend under the axes, off the data, in which every name stands once."""
    handles, labels = ax.get_legend_handles_labels()
    found = dict(zip(labels, handles, strict=True))
    ax.legend(found.values(), found.keys(), loc="upper center", bbox_to_anchor=(0.5, -below), fontsize=9,
              handlelength=3.2)
