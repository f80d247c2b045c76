"""EXTRA- and DIGing-SGLD in JAX, float64: all replicas in one array, in one scan over rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .own import OwnTables, ring_and_step


def own(t: OwnTables, n_rounds: int, n_replicas: int, normal: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of a key, giving averages (R, d) after the last round."""
    _, *tables = ring_and_step(t)
    steps, pulls = (jnp.asarray(table) for table in tables)
    shape = (*pulls.shape, n_replicas)

    def mixed(x: Any) -> Any:
        return (1 - 2 * t.share) * x + t.share * (jnp.roll(x, 1, axis=0) + jnp.roll(x, -1, axis=0))

    def one_round(state: tuple[Any, ...], key: Any) -> tuple[tuple[Any, ...], None]:
        x, second, last = state
        # the barrier keeps XLA from computing a normal once for every use
        noise = t.noise_size * lax.optimization_barrier(normal(key, shape))
        pull, met = jnp.matmul(steps, x) - pulls[:, :, None], mixed(x)
        if t.method == "extra":
            return (met - second - pull + noise, second + (x - met) / 2, last), None
        second = mixed(second) + pull - last
        return (met - second + noise, second, pull), None

    def all_replicas(key: Any) -> Any:
        state = (jnp.zeros(shape),) * 3
        return lax.scan(one_round, state, jax.random.split(key, n_rounds))[0][0].mean(axis=0).T

    return all_replicas
