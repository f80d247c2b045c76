"""DE-SGHMC's theorem and lemmas, the frictions it allows, its planning rule and errata.

Source: "Decentralized stochastic gradient Langevin dynamics and Hamiltonian Monte Carlo".
"""

from .decentralized import quantities
from .decentralized.sghmc import errata
from .decentralized.sghmc.bounds import (
    connectivity,
    connectivity_bound,
    coupling_bound,
    damping_bound,
    disagreement_bound,
    gradient_error_bound,
    w2_bound,
    w2_clients_bound,
)
from .decentralized.sghmc.heavy_ball import (
    Recursion,
    extrapolation_bound,
    factor_bound,
    gradient_coefficient_bound,
    lyapunov_bound,
    position_bound,
    ratio_bound,
    recursion,
    velocity_bound,
)
from .decentralized.sghmc.momentum import friction_interval, largest_momentum, step_size_limit
from .decentralized.sghmc.planning import budget_rate, least_iterations, plan, remark_step_size, step_rate
from .decentralized.sghmc.recursion import w2_clients_recursion, w2_recursion
from .decentralized.sghmc.setting import Chain, chain
from .decentralized.sghmc.start_terms import Beginning, beginning

__all__ = [
    "Beginning", "Chain", "Recursion", "beginning", "budget_rate", "chain", "connectivity",
    "connectivity_bound", "coupling_bound", "damping_bound", "disagreement_bound", "errata",
    "extrapolation_bound", "factor_bound", "friction_interval", "gradient_coefficient_bound",
    "gradient_error_bound", "largest_momentum", "least_iterations", "lyapunov_bound", "plan",
    "position_bound", "quantities", "ratio_bound", "recursion", "remark_step_size", "step_rate",
    "step_size_limit", "velocity_bound", "w2_bound", "w2_clients_bound", "w2_clients_recursion",
    "w2_recursion",
]
