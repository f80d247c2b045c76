"""What all statements about DE-SGLD and about DE-SGHMC share, and their decorators.

Of DE-SGHMC `sghmc_theorem` is for statements about where the iteration starts, which take `begin`;
`theorem_of_constants` for those that do not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD

from ..declare.bound import Assumption
from ..declare.paper import Paper
from ..declare.statement import Hypothesis
from .applicable import require_applicable, require_constant_step
from .setting import Setting, setting
from .sghmc.setting import MOMENTUM_RANGE, STEP_RANGE, chain
from .sghmc.start_terms import of_problem


def step_range(s: Setting) -> tuple[Assumption, ...]:
    """The limits of DE-SGLD Theorem 1."""
    return (Assumption.at_most("step_size <= (1 + lambda_N)/smoothness", s.alpha, (1.0 + s.smallest) / s.L),
            Assumption.at_most("step_size <= 1/(smoothness + strong_convexity)", s.alpha, 1.0 / (s.L + s.mu)))


CONNECTED = Hypothesis("connected network")
"""Judged by `require_applicable`, which refuses."""
THEOREM_1 = (CONNECTED, Hypothesis("constant step_size <= (1 + lambda_N)/smoothness", step_range),
             Hypothesis("step_size <= 1/(smoothness + strong_convexity)"))
"""Hypotheses of DE-SGLD; both limits are judged together."""
THEOREM_11 = (CONNECTED, Hypothesis(f"constant {STEP_RANGE}", lambda s: s.hypotheses),
              Hypothesis(MOMENTUM_RANGE))
"""Hypotheses of DE-SGHMC; both limits are judged together."""

_PROBLEM = ">>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])\n>>> algorithm = "
_RAISES = ("Constants that are not known, a schedule, a mixing matrix of another size. "
           "`theory.de_sgld.NotApplicable`, a ValueError, for a network that is not connected, and where the "
           "formula has no value: ")
_SGLD = Paper(
    id="de_sgld", name="DE-SGLD", key="gurbuzbalaban2021", algorithm=DESGLD, convention="components",
    setting=lambda constants, algorithm: setting(constants, algorithm),
    to_target=("w2", "w2_clients", "w2_of_euler", "target_moment"), require=require_applicable,
    start_distances={"w2": lambda s: s.base.start_distance(False),
                     "w2_of_euler": lambda s: s.base.start_distance(False),
                     "w2_clients": lambda s: s.base.start_distance(True)},
    raises=_RAISES + "step_size*smoothness too large for what it divides by.",
    example=_PROBLEM + "fs.DESGLD(0.01, fs.network.complete(2))")
_OF_CONSTANTS = replace(
    _SGLD, id="de_sghmc", name="DE-SGHMC", algorithm=DESGHMC, to_target=("w2", "w2_clients"),
    setting=lambda constants, algorithm: chain(constants, algorithm),
    arguments={"begin": "Beginning, optional: The problem's own moments at the start, see "
                        "`theory.de_sghmc.beginning`, which make the bound somewhat smaller than those that "
                        "follow from the constants."},
    raises=_RAISES + "far outside (37), (38).",
    example=_PROBLEM + "fs.DESGHMC(0.1, 10.0, fs.network.complete(2))")

sgld_erratum, sgld_reading = _SGLD.erratum, _SGLD.reading
sghmc_erratum, sghmc_reading = _OF_CONSTANTS.erratum, _OF_CONSTANTS.reading
sgld_theorem = partial(_SGLD.theorem, hypotheses=THEOREM_1)
theorem_of_constants = partial(_OF_CONSTANTS.theorem, hypotheses=THEOREM_11)
sghmc_theorem = partial(replace(_OF_CONSTANTS, setting=lambda constants, algorithm, begin=None: chain(
    constants, algorithm, begin=begin)).theorem, hypotheses=THEOREM_11, inputs=of_problem)
recursion_of_sgld = replace(_SGLD, require=lambda algorithm: None, to_target=("w2", "w2_clients"),
                            start_distances={}).theorem
"""Statements for any network and schedule, which find their own start."""
euler_scheme = replace(_SGLD, to_target=("stationary_w2_of_euler",), start_distances={}).theorem
recursion_of_sghmc = replace(_OF_CONSTANTS, require=require_constant_step, to_target=("w2", "w2_clients"),
                             start_distances={}, arguments={}).theorem
