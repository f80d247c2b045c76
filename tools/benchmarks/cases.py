"""What is computed: all benchmarks, in the order of the table."""

from __future__ import annotations

from . import federated, gossip, stale
from .case import Case

CASES: tuple[Case, ...] = (*federated.CASES, *gossip.CASES, *stale.CASES)
