"""What the statements of the paper share: their hypotheses, and the numbers h and tau."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fedsim.algorithms.stale import Stale, StaleSGLD
from fedsim.laws.law import recorded_rounds
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.staleness import Workers, as_staleness
from fedsim.settings.validation import whole
from fedsim.stability.search import stability_radius

from ..declare.bound import ROUNDING, Assumption
from ..declare.paper import Paper
from ..declare.statement import Hypothesis
from ..exact.delay import stability_limit
from ..facts.constants_of_problem import Constants
from ..theorem_parts import constant_step


@dataclass(frozen=True)
class Setting:
    """Numbers of a run under the paper's own letters; tau is worked out where a statement has it."""

    algorithm: Any
    n_rounds: int

    @property
    def h(self) -> float:
        """Step size, the largest of a schedule."""
        return float(self.algorithm.schedule.largest)

    @cached_property
    def tau(self) -> int:
        """Largest age."""
        return largest_age(self.algorithm, self.n_rounds)


def iterations(algorithm: Stale, n_rounds: Any, record: Any, index: str) -> np.ndarray:
    """The L at which a statement is evaluated: recorded rounds without 0."""
    return recorded_rounds(whole("n_rounds", n_rounds, 1), record)[1:]


def each_age(algorithm: Stale, n_rounds: int) -> np.ndarray:
    """Ages of so many updates under every schedule of the algorithm, (m, n_rounds)."""
    staleness, first = as_staleness(algorithm.staleness), algorithm.ages(n_rounds)
    if isinstance(staleness, Workers) and staleness.schedules > 1:
        staleness = staleness.worked_out(n_rounds)  # type: ignore[assignment]
    return np.atleast_2d(getattr(staleness, "values", first))


def largest_age(algorithm: Stale, n_rounds: int) -> int:
    """tau: the age that the schedule settles at, or the largest one in so many updates of any schedule."""
    limit = as_staleness(algorithm.staleness).limit
    return int(each_age(algorithm, n_rounds).max(initial=0)) if limit is None else limit


def stable_step(constants: Constants, algorithm: Stale) -> Assumption:
    """Bounded moments along the chain (Assumption 3, part 2), as far as numbers decide it.

    On quadratic f the moments stay bounded exactly for a stable step size: for stale SGLD with an age that
    settles, h L < 2 sin(pi / (2 (2 tau + 1))); otherwise the noise-free recursion must shrink, at the
    smallest and the largest curvature of f. For other f this is necessary where f is nearly quadratic
    about its minimizer, and not sufficient.
    """
    age, h = as_staleness(algorithm.staleness).limit, float(algorithm.schedule.largest)
    if age is not None and isinstance(algorithm, StaleSGLD):
        name, value = "step_size smoothness < 2 sin(pi/(2 (2 tau + 1)))", h * constants.smoothness
        limit = stability_limit(age)
    else:
        ends = np.array([[constants.strong_convexity, constants.smoothness]])
        name, limit = "growth per update < 1 at strong_convexity and smoothness", 1.0
        value = stability_radius(Quadratic(ends, np.zeros((1, 2))), algorithm)
    room = (limit - value) / limit
    room = room if room > 0.0 else min(room, -ROUNDING)  # the limit itself is not stable
    return Assumption(f"stable step size (bounded moments): {name}", room > 0.0, room)


UNBIASED = Hypothesis("unbiased stochastic gradients of bounded variance, Lipschitz (Assumption 1)")
ONE_STEP_SIZE = constant_step(": the paper's theorems have one h")
OLDEST = Hypothesis("age at most tau")
ASSUMPTIONS = (
    Hypothesis("elliptic or hypoelliptic diffusion (Assumption 2)"),
    Hypothesis("psi and its derivatives up to the third bounded by a function whose moments along the chain "
               "are bounded (Assumption 3)", stable_step),
    Hypothesis("drift infinitely differentiable with bounded derivatives of any order (Assumption 4)"),
)
"""Psi solves the Poisson equation. No number decides them, but for bounded moments: `stable_step`."""
STANDARD = (*ASSUMPTIONS, ONE_STEP_SIZE)
"""Of Lemma 1."""
HYPOTHESES = (UNBIASED, *STANDARD, OLDEST)
"""Of the theorems."""
BEST = (UNBIASED, *ASSUMPTIONS, Hypothesis("constant step size"), OLDEST)
"""Of what speaks about the best step size, whatever that of the algorithm is."""

_PAPER = Paper(
    id="stale", name="Stale gradients", key="chen2016", algorithm=Stale, convention="global", setting=Setting,
    only={"n_clients": 1},
    to_target=("average_bias", "average_mse"), recorded=iterations,
    arguments={"record": "sequence of int, optional: Iterations L, of each server where there are several; "
                         "see `fedsim.recorded_rounds`.",
               "order": "int: K, the order of the integrator.",
               "n_chains": "int: S, the number of servers."},
    raises="Rounds below 1; a step size that is not constant, where the hypotheses ask for one; order, "
           "n_chains or operator_error below their least values.",
    example=""">>> problem = fs.Quadratic([1.0], [[0.0]])
>>> algorithm = fs.StaleSGLD(0.1, staleness=5)""")
theorem, erratum, reading = _PAPER.theorem, _PAPER.erratum, _PAPER.reading
last_iterate = replace(_PAPER, to_target=("w2", "stationary_w2"), arguments={}).theorem
"""For statements about the law of the last iterate."""
rate = partial(theorem, kind="rate", hypotheses=HYPOTHESES)
"""Nearly every statement of the paper."""
