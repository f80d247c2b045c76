"""What all DE-SGHMC statements share, and their decorators.

`theorem` is for statements about where the iteration starts, which take `begin`; `theorem_of_constants` for
those that do not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fedsim.algorithms.de_sghmc import DESGHMC

from ...paper import Paper
from ...statement import Hypothesis
from ..sgld.paper import START_DISTANCES, require_applicable
from .beginning import of_problem
from .setting import MOMENTUM_RANGE, PAPER, STEP_RANGE, chain

HYPOTHESES = (Hypothesis("connected network"), Hypothesis(f"constant {STEP_RANGE}", lambda s: s.hypotheses),
              Hypothesis(MOMENTUM_RANGE))
"""Those of Theorem 11; both limits are judged together, the network by `chain`, which refuses."""
CONSTANT_105 = {"printed": "with the corrected (105) for c_5",
                "printed_constant": "with (105) as printed"}
VARIANTS = {"without_transient": "without the term for a start apart, and with the corrected (105) for c_5",
            "printed": "with that term, and with the corrected (105)",
            "printed_constant": "with that term, and (105) as printed, which the theorem itself does not "
                                "contain"}

_PAPER = Paper(
    id="de_sghmc", name=PAPER, key="gurbuzbalaban2021", algorithm=DESGHMC, convention="components",
    setting=lambda constants, algorithm, begin=None: chain(constants, algorithm, begin=begin),
    to_target=("w2", "w2_clients"), start_distances=START_DISTANCES, require=require_applicable,
    arguments={"begin": "Beginning, optional: The problem's own moments at the start, see "
                        "`theory.de_sghmc.beginning`, which make the bound somewhat smaller than those that "
                        "follow from the constants."},
    raises="Constants that are not known, a schedule, a mixing matrix of another size. "
           "`theory.de_sgld.NotApplicable`, a ValueError, for a network that is not connected, and where the "
           "formula has no value: far outside (37), (38).",
    example=""">>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
>>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))""")
theorem = partial(_PAPER.theorem, inputs=of_problem)
theorem_of_constants = replace(
    _PAPER, setting=lambda constants, algorithm: chain(constants, algorithm)).theorem
