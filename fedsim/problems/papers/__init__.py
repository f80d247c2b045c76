"""The papers' test problems, one function each.

Each function draws its data with NumPy's generator from `seed`, where it has any, and returns an ordinary
problem. What a paper does not print is an argument whose docstring says so.
"""

from .fa_hmc import fa_hmc_gaussian, fa_hmc_logistic, fa_hmc_two_groups
from .fa_ld import FA_LD_COVARIANCE, FA_LD_HETEROGENEITY, fa_ld_simulation, fa_ld_unequal_curvature

__all__ = [
    "FA_LD_COVARIANCE", "FA_LD_HETEROGENEITY", "fa_hmc_gaussian", "fa_hmc_logistic", "fa_hmc_two_groups",
    "fa_ld_simulation", "fa_ld_unequal_curvature",
]
