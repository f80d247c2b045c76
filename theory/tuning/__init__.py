"""What a step size costs: the best one by exact laws, those that bounds ask for, and the price between them.

`rounds_to` is the exact hitting time of an accuracy, `best_step_size` minimises it over the step size,
`informative_steps` finds the step sizes at which a bound says anything, `plan` the one with the fewest rounds
that a bound promises, `plan_by_recursion` the local steps too; `compare` puts such a plan beside the best.
`sweep` has many settings in one table, `compare_algorithms` several algorithms.
"""

from .best import TunedStep, best_step_size, with_step as with_step
from .comparing import Comparison, compare, planner as planner
from .contest import compare_algorithms
from .first_round import rounds_to
from .informative import InformativeSteps, informative_steps
from .planning import Plan, Plan as RecursionPlan, plan, plan_by_recursion
from .sweeping import sweep

__all__ = [
    "Comparison", "InformativeSteps", "Plan", "RecursionPlan", "TunedStep", "best_step_size", "compare",
    "compare_algorithms", "informative_steps", "plan", "plan_by_recursion", "rounds_to", "sweep",
]
