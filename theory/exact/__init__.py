"""Exact laws on quadratic clients: no Monte Carlo error, derived by hand and apart from the simulator.

`exact_law` and `stationary_law` give the average iterate at communications, `joint_law` all clients at
every local step, `sample_rounds` replicas drawn from the exact law. Each algorithm has one file in
`federated`, `gossip` or `delay`, found by itself: a class derived from `families.ExactFamily` under
the decorator `families.exact`.
"""

from __future__ import annotations

from .affine import NoExactLaw
from .asking import exact_law, joint_law, sample_rounds, stationary_law
from .federated.flow import FAHMCFlow, flow_law, two_group_law
from .joint_laws import JointLaw

__all__ = [
    "FAHMCFlow", "JointLaw", "NoExactLaw", "exact_law", "flow_law", "joint_law", "sample_rounds",
    "stationary_law", "two_group_law",
]
