"""What all DE-SGLD statements share, and their decorator `theorem`."""

from __future__ import annotations

from typing import Any

from fedsim.algorithms.de_sgld import DESGLD

from ...bound import Assumption
from ...paper import Paper
from ...statement import Hypothesis
from .applicable import require_connected, require_constant_step
from .setting import PAPER, Setting, setting


def require_applicable(algorithm: Any) -> None:
    """What every statement asks for: a constant step size and a connected network."""
    require_constant_step(algorithm)
    require_connected(algorithm.mixing)


def hypotheses(s: Setting) -> tuple[Assumption, ...]:
    """Those of DE-SGLD Theorem 1."""
    return (Assumption.at_most("step_size <= (1 + lambda_N)/smoothness", s.alpha, (1.0 + s.smallest) / s.L),
            Assumption.at_most("step_size <= 1/(smoothness + strong_convexity)", s.alpha, 1.0 / (s.L + s.mu)))


HYPOTHESES = (Hypothesis("connected network"),
              Hypothesis("constant step_size <= (1 + lambda_N)/smoothness", hypotheses),
              Hypothesis("step_size <= 1/(smoothness + strong_convexity)"))
"""Those of Theorem 1; both limits are judged together, the network by `require_applicable`."""
START_DISTANCES = {"w2": lambda s: s.base.start_distance(False),
                   "w2_of_euler": lambda s: s.base.start_distance(False),
                   "w2_clients": lambda s: s.base.start_distance(True)}
"""Of a `Setting`, or of DE-SGHMC's `Chain`."""

theorem = Paper(
    id="de_sgld", name=PAPER, key="gurbuzbalaban2021", algorithm=DESGLD, convention="components",
    setting=lambda constants, algorithm: setting(constants, algorithm),
    to_target=("w2", "w2_clients", "w2_of_euler", "target_moment"), start_distances=START_DISTANCES,
    require=require_applicable,
    raises="Constants that are not known, a schedule, a mixing matrix of another size. "
           "`theory.de_sgld.NotApplicable`, a ValueError, for a network that is not connected, and where the "
           "formula has no value: step_size*smoothness too large for what it divides by.",
    example=""">>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
>>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))""").theorem
