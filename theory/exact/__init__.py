"""Exact laws on quadratic clients: no Monte Carlo error, derived by hand and apart from the simulator.

`exact_law` and `stationary_law` give the average iterate at communications, `joint_law` all clients at
every local step, `sample_rounds` replicas drawn from the exact law. Each algorithm has one file here,
found by itself: a class derived from `registry.ExactFamily` under the decorator `registry.exact`.
"""

from __future__ import annotations

import importlib
import pkgutil

from .affine import NoExactLaw
from .dispatch import exact_law, joint_law, sample_rounds, stationary_law
from .fa_hmc_flow import FAHMCFlow, flow_law, two_group_law
from .joint import JointLaw

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "FAHMCFlow", "JointLaw", "NoExactLaw", "exact_law", "flow_law", "joint_law", "sample_rounds",
    "stationary_law", "two_group_law",
]
