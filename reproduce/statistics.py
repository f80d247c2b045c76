"""What several papers' figures compute alike: rounds to an accuracy, and how far replicas are off a law."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

import fedsim as fs
import theory

from .verdicts import FAIL, PASS


def rounds_to(problem: Any, algorithm: Any, eps: float, start: Any = None) -> float:
    """Rounds of the exact law to W2 <= eps; infinity when it never gets there."""
    rounds = theory.tuning.rounds_to(problem, algorithm, eps, start=start)
    return np.inf if rounds is None else float(rounds)


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
