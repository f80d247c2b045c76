"""Exact laws with stale gradients: of iterates, of their time averages, and in closed form.

The whole gradient is taken at an older iterate; given the ages the chain is an affine Gaussian recursion.
"""

from . import family
from .average import AverageLaw, average_law, combine_servers
from .closed import (
    companion,
    continuous_variance,
    long_run_variance,
    stability_limit,
    stationary_autocovariance,
    stationary_variance,
)

__all__ = [
    "AverageLaw", "average_law", "combine_servers", "companion", "continuous_variance", "family",
    "long_run_variance", "stability_limit", "stationary_autocovariance", "stationary_variance",
]
