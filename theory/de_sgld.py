"""DE-SGLD's theorem and lemmas, its planning rules, minibatch constants and errata.

Source: "Decentralized stochastic gradient Langevin dynamics and Hamiltonian Monte Carlo".
"""

from .decentralized import quantities
from .decentralized.applicable import NotApplicable
from .decentralized.connectivity import Connectivity
from .decentralized.quantities import clients_w2
from .decentralized.schemes import Coupling, NoiseFree, Spread, coupling, fixed_point
from .decentralized.setting import Setting, setting
from .decentralized.sgld import errata
from .decentralized.sgld.bounds import (
    connectivity,
    connectivity_bound,
    w2_bound,
    w2_clients_bound,
)
from .decentralized.sgld.lemmas import (
    coupling_bound,
    disagreement_bound,
    euler_bound,
    fixed_point_bound,
    gradient_bound,
    gradient_error_bound,
    iterate_bound,
    step_size_limit,
    target_moment_bound,
)
from .decentralized.sgld.minibatch import (
    growing_noise_bound,
    growing_noise_iterate_bound,
    minibatch_constants,
    noise_growth,
)
from .decentralized.sgld.planning import (
    Plan,
    budget_rate,
    least_iterations,
    plan,
    remark_step_size,
    step_rate,
)
from .decentralized.sgld.recursion import w2_clients_recursion, w2_recursion
from .decentralized.sgld.stationary import euler_stationary_bound

__all__ = [
    "Connectivity", "Coupling", "NoiseFree", "NotApplicable", "Plan", "Setting", "Spread", "budget_rate",
    "clients_w2", "connectivity", "connectivity_bound", "coupling", "coupling_bound",
    "disagreement_bound", "errata", "euler_bound", "euler_stationary_bound", "fixed_point",
    "fixed_point_bound", "gradient_bound", "gradient_error_bound", "growing_noise_bound",
    "growing_noise_iterate_bound", "iterate_bound", "least_iterations",
    "minibatch_constants", "noise_growth", "plan", "quantities", "remark_step_size", "setting",
    "step_rate", "step_size_limit", "target_moment_bound", "w2_bound", "w2_clients_bound",
    "w2_clients_recursion", "w2_recursion",
]
