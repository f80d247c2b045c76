"""Problems of one's own: clients whose gradient is a plain Python function."""

from .problem import Custom

__all__ = ["Custom"]
