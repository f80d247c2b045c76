"""Theorems of stale-gradient SG-MCMC as rates, its step-size rules, plans, speedups and errata.

Every statement of the paper holds up to unknown constants, so that it gives a shape (`..._rate`), to which
`fit_constants` and `theory.rates` fit constants that are labelled as fitted; `plan` turns the shapes into
a step size and a number of iterations. Lemma 8 alone has an explicit constant, on quadratic f
(`gradient_gap_bound`), and the W2 of the last iterate has one that is derived here
(`w2_recursion`). The exact side is `average_law`, `gradient_gap` and `fluctuation`.

Source: "Stochastic gradient MCMC with stale gradients".
"""

from ..exact.delay import AverageLaw, average_law, combine_servers
from . import errata, quantities
from .curves import TermFit, first_reaching, fit_constants, iteration_speedup, time_speedup
from .planning import StalePlan, optimal_constant, plan
from .quantities import fluctuation, fluctuation_rate, gradient_gap, gradient_gap_bound, gradient_gap_rate
from .rates import (
    bias_rate,
    chains_optimal_variance_rate,
    generic_bias_rate,
    generic_mse_rate,
    mse_rate,
    optimal_bias_rate,
    optimal_mse_rate,
    optimal_variance_rate,
    variance_rate,
)
from .recursion import stationary_bound, w2_recursion
from .rules import bias_optimum, bias_step_size, mse_optimum, mse_step_size, variance_step_size
from .servers import chain_terms, chains_bias_rate, chains_mse_rate, chains_variance_rate

__all__ = [
    "AverageLaw", "StalePlan", "TermFit", "average_law", "bias_optimum", "bias_rate", "bias_step_size",
    "chain_terms", "chains_bias_rate", "chains_mse_rate", "chains_optimal_variance_rate",
    "chains_variance_rate", "combine_servers", "errata", "first_reaching", "fit_constants", "fluctuation",
    "fluctuation_rate", "generic_bias_rate", "generic_mse_rate", "gradient_gap", "gradient_gap_bound",
    "gradient_gap_rate", "iteration_speedup", "mse_optimum", "mse_rate", "mse_step_size",
    "optimal_bias_rate", "optimal_constant", "optimal_mse_rate", "optimal_variance_rate", "plan",
    "quantities", "stationary_bound", "time_speedup", "variance_rate", "variance_step_size", "w2_recursion",
]
