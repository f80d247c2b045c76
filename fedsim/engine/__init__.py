"""simulate: replicas in blocks, on threads or an executor, merged in a fixed order."""

from .paths import sample_path
from .running import simulate, warm_up
from .sharding import shards

__all__ = ["sample_path", "shards", "simulate", "warm_up"]
