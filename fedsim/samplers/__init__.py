"""Samplers of one's own: what a function of `fs.sampler` is written with.

Examples
--------
>>> from fedsim.samplers import grad, noise, sqrt
>>> @fs.sampler
... def langevin(x, *, step_size):
...     return x - step_size * grad(x) + sqrt(2 * step_size) * noise()
>>> theory.stationary_law(fs.Quadratic([1.0], [[0.0]]), langevin(step_size=0.5)).cov.round(6).tolist()
[[1.333333]]
"""

from . import remaking as _remaking  # what pickles ask for
from .applied import each
from .declarations import declared
from .notation import exp, grad, mean, noise, past, potential, sqrt, weights
from .tape import NotationError
from .words import SamplerWarning

__all__ = ["NotationError", "SamplerWarning", "declared", "each", "exp", "grad", "mean", "noise", "past",
           "potential", "sqrt", "weights"]
