"""What is computed: all benchmarks, in the order of the table."""

from __future__ import annotations

from . import federated, gossip, own, stale
from .case import Case

CASES: tuple[Case, ...] = (*federated.CASES, *gossip.CASES, *own.CASES, *stale.CASES)
