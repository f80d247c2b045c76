"""DE-SGHMC's theorem and lemmas, the frictions it allows, its planning rule and errata.

Source: "Decentralized stochastic gradient Langevin dynamics and Hamiltonian Monte Carlo".
"""

from . import errata, quantities
from .beginning import Beginning, beginning
from .bounds import w2_bound, w2_clients_bound
from .clients import coupling_bound, damping_bound, disagreement_bound, gradient_error_bound
from .heavy_ball import Recursion, factor_bound, gradient_coefficient_bound, ratio_bound, recursion
from .lemmas import extrapolation_bound, lyapunov_bound, position_bound, velocity_bound
from .momentum import friction_interval, largest_momentum, step_size_limit
from .planning import least_iterations, plan, remark_step_size
from .rates import budget_rate, step_rate
from .setting import Chain, chain

__all__ = [
    "Beginning", "Chain", "Recursion", "beginning", "budget_rate", "chain", "coupling_bound",
    "damping_bound", "disagreement_bound", "errata", "extrapolation_bound", "factor_bound",
    "friction_interval", "gradient_coefficient_bound", "gradient_error_bound", "largest_momentum",
    "least_iterations", "lyapunov_bound", "plan", "position_bound", "quantities", "ratio_bound", "recursion",
    "remark_step_size", "step_rate", "step_size_limit", "velocity_bound", "w2_bound", "w2_clients_bound",
]
