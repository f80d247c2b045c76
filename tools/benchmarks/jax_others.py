"""DE-SGLD and stale SGLD in JAX, float64: all replicas in one array, as much folded as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .gossip import GossipTables
from .stale import StaleTables

TOGETHER = 32
"""Blocks of stale updates whose normals are drawn at once."""


def gossip(t: GossipTables, n_rounds: int, n_replicas: int,
           normal: Callable[..., Any]) -> Callable[[Any], Any]:
    """DE-SGLD on a ring: a function of a key, giving averages (R, d) after the last round."""
    n_clients, n_data, dim = t.shape
    hessians, pulls = t.quadratic()
    eye, shape = np.eye(dim), (n_clients, dim, n_replicas)
    share = t.prior * np.broadcast_to(eye, hessians.shape) if t.batch_size else hessians
    own = jnp.asarray((1 - 2 * t.share) * eye - t.step_size * share)
    offset = t.step_size * jnp.asarray(pulls)[:, :, None]
    features, targets = jnp.asarray(t.features), jnp.asarray(t.targets)
    clients = jnp.arange(n_clients)[:, None, None]

    def pull(x: Any, key: Any) -> Any:
        """eta times minus the data's part of the gradient that `own` lacks."""
        if t.batch_size is None:
            return offset
        drawn = jax.random.randint(key, (n_clients, t.batch_size, n_replicas), 0, n_data, dtype="uint32")
        rows = [features[:, :, i][clients, drawn] for i in range(dim)]
        slope = targets[clients, drawn] - sum(row * x[:, i, None] for i, row in enumerate(rows))
        return t.step_size * n_data / t.batch_size * jnp.stack([(row * slope).sum(axis=1) for row in rows], 1)

    def one_round(x: Any, key: Any) -> tuple[Any, None]:
        first, second = jax.random.split(key)
        # the barrier keeps XLA from computing a normal once for every use
        noise = lax.optimization_barrier(normal(first, shape))
        around = jnp.roll(x, 1, axis=0) + jnp.roll(x, -1, axis=0)
        return jnp.matmul(own, x) + t.share * around + pull(x, second) + t.noise_size * noise, None

    def all_replicas(key: Any) -> Any:
        return lax.scan(one_round, jnp.zeros(shape), jax.random.split(key, n_rounds))[0].mean(axis=0).T

    return all_replicas


def stale(t: StaleTables, n_rounds: int, n_replicas: int,
          normal: Callable[..., Any]) -> Callable[[Any], Any]:
    """Stale SGLD: a function of a key, giving last iterates or averages of squares (R, 1)."""
    curvature, pull = t.quadratic
    oldest, length = t.staleness, 2 * (t.staleness + 1)
    whole, rest = divmod(n_rounds, length)
    outer, left = divmod(whole, TOGETHER)

    def block(state: tuple[Any, ...], noise: Any, count: int = length) -> tuple[tuple[Any, ...], None]:
        *past, total = state
        for number in range(count):
            gradient = curvature * past[-1 - oldest] - pull
            past.append(past[-1] - t.step_size * gradient + t.noise_size * noise[number])
            if t.averages:
                total = total + past[-1] ** 2
        return (*past[-1 - oldest:], total), None

    def blocks(state: tuple[Any, ...], key: Any, count: int = TOGETHER) -> tuple[tuple[Any, ...], None]:
        return lax.scan(block, state, normal(key, (count, length, n_replicas)))

    def all_replicas(key: Any) -> Any:
        keys = jax.random.split(key, outer + 2)
        state: Any = (jnp.zeros(n_replicas),) * (oldest + 2)
        state, _ = lax.scan(blocks, state, keys[:outer])
        state, _ = blocks(state, keys[outer], left)
        *past, total = block(state, normal(keys[outer + 1], (length, n_replicas)), rest)[0]
        return (total / n_rounds if t.averages else past[-1])[:, None]

    return all_replicas
