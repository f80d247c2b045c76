"""simulate: replicas in blocks, on threads or an executor, merged in a fixed order."""

from .paths import sample_path
from .running import simulate
from .sharding import shards
from .warming import warm_up

__all__ = ["sample_path", "shards", "simulate", "warm_up"]
