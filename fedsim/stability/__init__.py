"""Which step sizes are stable: of federated rounds, gossip, delays, and with minibatches."""

from .search import Stability

__all__ = ["Stability"]
