"""Statements on problems whose gradients are affine, against exact laws; no Monte Carlo.

The scoreboard judges. Where a problem's class has no exact law of its own for a statement, the exact side
is that of the quadratic problem with the same moments, and the bound still that of the problem's constants.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fedsim as fs
import theory
from theory.declare.registry import named
from theory.judge.examining import drawn_numbers
from tools.search.judge import counts_against

ROUNDS = 12
COMPARED = ("holds", "violated", "fails as transcribed", "holds outside", "fails outside")
WITHIN = COMPARED[:3]


@dataclass(frozen=True)
class Judged:
    """A variant of a statement on a problem.

    `within` its hypotheses, `fails` what it claims, and `uncompared`: it had a value within its hypotheses,
    and nothing to compare it with.
    """

    theorem: str
    variant: str
    within: bool
    fails: bool
    uncompared: bool
    ratio: float
    why: str

    def __str__(self) -> str:
        return f"{self.theorem} ({self.variant}): exact/bound {self.ratio:.4g}. {self.why}"


NOISE_FREE = ("fixed_point_distance", "w2_of_euler", "stationary_w2_of_euler", "damped_to_euler")
"""Quantities that gradient noise does not enter."""
STATE_DEPENDENT = {
    "de_sgld.coupling_bound": "the Euler scheme beside it is not in the law of the clients",
    "de_sghmc.coupling_bound": "as for DE-SGLD", "de_sghmc.extrapolation_bound": "two steps of all clients",
    "de_sghmc.lyapunov_bound": "as the extrapolation"}
"""No exact side with minibatches of linear regression, whose noise depends on the state, and why."""


def twin(problem: Any) -> Any:
    """The quadratic problem with the same moments; with the same means alone, where noise depends on x."""
    if isinstance(problem, fs.LinearRegression):
        problem = dataclasses.replace(problem, batch_size=None)
    return problem if isinstance(problem, fs.Quadratic) else problem.as_quadratic()


def _board(problem: Any, algorithm: Any, start: Any, known: Any) -> dict[tuple[str, str], Any]:
    entry = named("privacy.run_bound")
    private = isinstance(algorithm, entry.algorithm) and entry.applies(algorithm, problem)
    board = theory.scoreboard(problem, algorithm, ROUNDS, start=start, variants="all", everything=False,
                              known=known, privacy=drawn_numbers(entry, problem, algorithm, ROUNDS, start)
                              if private else None)
    return {(row.theorem, row.variant): row for row in board[board.kind != "rate"].itertuples()}


def judge(problem: Any, algorithm: Any, start: Any = None, known: Any = None) -> Iterator[Judged]:
    """Every variant that is claimed of every bound about them."""
    constants = theory.constants(problem, algorithm, start) if known is None else known
    own = _board(problem, algorithm, start, constants)
    other = own if twin(problem) is problem else _board(twin(problem), algorithm, start, constants)
    by_state = isinstance(problem, fs.LinearRegression) and problem.has_minibatches
    for key, row in own.items():
        if row.verdict not in COMPARED and (not by_state or row.quantity in NOISE_FREE):
            row = other.get(key, row)
        if not counts_against(named(row.theorem), row.variant):
            continue
        inside = row.verdict in WITHIN
        excused = by_state and row.theorem in STATE_DEPENDENT
        yield Judged(row.theorem, row.variant, inside, inside and row.verdict != "holds",
                     row.verdict == "not compared" and not row.hypotheses and not excused, row.ratio,
                     row.reason)
