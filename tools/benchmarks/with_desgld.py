"""The package desgld 0.1.6: DE-SGLD in pure Python, one client and one datum after the other.

It always draws minibatches, b data with replacement from all but a client's last one; it adds up their
gradients without the factor n / b; its prior is twice as strong as ours and not shared among clients; and
it starts at standard normal draws. A datum that is never drawn, data scaled by sqrt(n / b) and a wider
prior make up for the first three. But every client reads what the clients before it have just written:
that is another map with another law, so that it is timed and not judged.
"""

from __future__ import annotations

import numpy as np
from desgld import DeSGLD  # type: ignore[import-not-found]

from .gossip import GossipTables


class Desgld:
    """One contestant; see `worker`."""

    def __init__(self, tables: GossipTables, threads: int) -> None:
        n_clients, n_data, dim = tables.shape
        batch = tables.batch_size or n_data
        scale = np.sqrt(n_data / batch)
        self.given = {
            "size_w": n_clients, "sigma": 1.0, "eta": tables.step_size, "dim": dim, "b": batch,
            "lam": 2.0 * tables.prior_variance * n_clients,
            "x": scale * np.concatenate([tables.features, np.zeros((n_clients, 1, dim))], axis=1),
            "y": scale * np.concatenate([tables.targets, np.zeros((n_clients, 1))], axis=1),
            "w": tables.mixing(), "hv": None, "reg_type": "linear"}

    def prepare(self, n_rounds: int, n_replicas: int) -> None:
        """Fix the sizes."""
        self.sizes = {"N": n_replicas, "T": n_rounds}

    def run(self, seed: int) -> np.ndarray:
        """The average iterates after the last round, (R, d)."""
        np.random.seed(seed)  # noqa: NPY002 (what it draws from)
        _, averages = DeSGLD(**self.given, **self.sizes).vanila_desgld()
        return averages[-1].T


CONTESTANTS = {"desgld": Desgld}
