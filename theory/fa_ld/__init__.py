"""FA-LD's theorems: W2 bounds, lemmas, planning rule and errata.

Source: "On convergence of federated averaging Langevin dynamics".

==============================================  ===========================================================
Theorems 4.7, 4.8, 4.9, 4.10 (B.6 to B.8, C.3)  `theorems`
W2 by the coupling itself, derived here          `recursion`
Lemmas B.1 to B.5, C.2, E.1, E.2, F.1           `lemmas`
sections 4.3 and 4.4: rules; their rates         `planning`, `local_steps` (the choice of K); `rates`
letters, constants, hypotheses                  `notation`
exact values of what is bounded                 `quantities`
errata; remarks and lost marks                  `errata`; `remarks`
==============================================  ===========================================================
"""

from . import errata, quantities
from .lemmas import (
    contraction_bound,
    discretization_bound,
    divergence_bound,
    gradient_moment_bound,
    gradient_noise_bound,
    initial_bound,
    one_step_bound,
    participation_gap_bound,
    second_moment_bound,
)
from .local_steps import best_plan, optimal_local_steps
from .notation import Setting, setting
from .planning import Plan, fewest_active, paper_plan, plan
from .rates import rounds_rate, rounds_rate_decreasing, rounds_rate_partial
from .recursion import stationary_bound, w2_recursion
from .theorems import w2_bound, w2_bound_decreasing, w2_bound_partial

__all__ = [
    "Plan", "Setting", "best_plan", "contraction_bound", "discretization_bound", "divergence_bound",
    "errata", "fewest_active", "gradient_moment_bound", "gradient_noise_bound", "initial_bound",
    "one_step_bound", "optimal_local_steps", "paper_plan", "participation_gap_bound", "plan", "quantities",
    "rounds_rate", "rounds_rate_decreasing", "rounds_rate_partial", "second_moment_bound", "setting",
    "stationary_bound", "w2_bound", "w2_bound_decreasing", "w2_bound_partial", "w2_recursion",
]
