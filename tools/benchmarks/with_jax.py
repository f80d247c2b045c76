"""FA-LD and FA-HMC in JAX, float64: as one would first write it, as fast as jax.random allows, and beyond.

``JAX natural``      the equations as they stand, for all replicas in one array (N, d, R), in a scan over
                     rounds of scans over steps (one replica under vmap is up to five times slower).
``JAX tuned``        shared noise drawn once per round, and I - eta A_c folded.
``JAX own normals``  the same with our Box-Muller transform ported to jax.numpy in place of
                     jax.random.normal, on JAX's threefry bits: not something that JAX offers, but the
                     most that could be had from it.
``JAX in modes``     FA-HMC tuned, with trajectories along the eigenvectors of the clients' Hessians.

Keys are threefry: in float64 on a processor the rbg and unsafe_rbg generators are three times slower.
Tried and not faster: all noise drawn per round, state (N, R, d), unrolled scans, sums of products instead
of matmul, log, sin and cos of jax.numpy in Box-Muller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .federated import Tables
from .gossip import GossipTables
from .jax_others import gossip, stale
from .jax_own import own
from .own import OwnTables
from .stale import StaleTables

jax.config.update("jax_enable_x64", True)

_HALF_PI = np.pi / 2
_LN2_HIGH = int(np.log(2.0) * 2.0**40) / 2.0**40
_LN2_LOW = 7.371002565167799e-13
_LOG = (0.66666666666666696862, 0.3999999999989950449, 0.28571428625975484946, 0.22222211134795077031,
        0.18182889125261882073, 0.15331721600551690549, 0.14616449685088905054)
_SINE = (-0.16666666666666664624, 0.0083333333333309484855, -0.00019841269836758574323,
         2.7557316102552440095e-6, -2.5051131845003620553e-8, 1.5918129294866380937e-10)
_COSINE = (0.041666666666666665389, -0.0013888888888887397237, 0.000024801587298765687927,
           -2.7557317271729792867e-7, 2.0876146268403195477e-9, -1.1382632425521575557e-11)


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = coefficient + x * value
    return value


def _float(bits: Any) -> Any:
    return lax.bitcast_convert_type(bits, jnp.float64)


def _bits(value: Any) -> Any:
    return lax.bitcast_convert_type(value, jnp.uint64)


def box_muller(high: Any, low: Any) -> tuple[Any, Any]:
    """Two standard normals from two arrays of random uint64: the transform of `fedsim.random.normals`."""
    u = jnp.uint64
    one, root_half = u(0x3FF0000000000000), u(0x3FE6A09E667F3BCD)
    uniform = 2.0 - _float((high >> u(12)) | one)
    shifted = _bits(uniform) + (one - root_half)
    exponent = _float((shifted >> u(52)) | u(0x4330000000000000)) - (4503599627370496.0 + 1023.0)
    f = _float((shifted & u(0x000FFFFFFFFFFFFF)) + root_half) - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    series = z * _polynomial(z, _LOG)
    logarithm = exponent * _LN2_HIGH - ((half - (s * (half + series) + exponent * _LN2_LOW)) - f)
    radius = jnp.sqrt(-2.0 * logarithm)
    quadrant = low >> u(62)
    angle = (_float(((low << u(2)) >> u(12)) | one) - 1.5) * _HALF_PI
    q = angle * angle
    sine = angle + angle * q * _polynomial(q, _SINE)
    cosine = 1.0 - (0.5 * q - q * q * _polynomial(q, _COSINE))
    swap = (quadrant & u(1)) != 0
    first, second = jnp.where(swap, sine, cosine), jnp.where(swap, cosine, sine)
    first_sign, second_sign = ((quadrant + u(1)) & u(2)) << u(62), (quadrant & u(2)) << u(62)
    return radius * _float(_bits(first) ^ first_sign), radius * _float(_bits(second) ^ second_sign)


def own_normal(key: Any, shape: tuple[int, ...]) -> Any:
    """Standard normals of this shape, whose next to last size is even."""
    *before, dim, last = shape
    if dim % 2:
        raise ValueError(f"shape={shape} must have an even next to last size")
    bits = jax.random.bits(key, (2, *before, dim // 2, last), "uint64")
    return jnp.concatenate(box_muller(bits[0], bits[1]), axis=-2)


def leapfrogs(t: Tables, gradient: Callable[[Any], Any], x: Any, p: Any) -> Any:
    """The position after all leapfrog steps, half kicks merged."""
    def one(state: tuple[Any, Any], factor: Any) -> tuple[tuple[Any, Any], None]:
        x, p = state
        p = p - factor * gradient(x)
        return (x + t.step_size * p, p), None

    factors = jnp.full(t.leapfrog_steps, t.step_size).at[0].multiply(0.5)
    return lax.scan(one, (x, p), factors, unroll=True)[0][0]


def natural(t: Tables, n_rounds: int, n_replicas: int) -> Callable[[Any], Any]:
    """A function of a key: averages (R, d) after the last round."""
    n_clients, dim = t.minimizers.shape
    hessians, weights = jnp.asarray(t.hessians), jnp.asarray(t.weights)
    minimizers, own_sizes = jnp.asarray(t.minimizers)[:, :, None], jnp.asarray(t.own_sizes)[:, None, None]

    def gradient(x: Any) -> Any:
        if hessians.ndim == 1:
            return hessians[:, None, None] * (x - minimizers)
        return jnp.einsum("cij,cjr->cir", hessians, x - minimizers)

    def local_step(x: Any, key: Any) -> tuple[Any, None]:
        own_key, shared_key = jax.random.split(key)
        if t.leapfrog_steps:
            p = t.shared_size * jax.random.normal(shared_key, x.shape[1:]) * jnp.ones((n_clients, 1, 1))
            if t.shared_noise < 1:
                p = p + own_sizes * jax.random.normal(own_key, x.shape)
            return leapfrogs(t, gradient, x, p), None
        x = x - t.step_size * gradient(x)
        x = x + own_sizes * jax.random.normal(own_key, x.shape)
        if t.shared_size > 0:
            x = x + t.shared_size * jax.random.normal(shared_key, x.shape[1:])
        return x, None

    def one_round(server: Any, key: Any) -> tuple[Any, None]:
        x = jnp.broadcast_to(server, (n_clients, dim, n_replicas))
        x, _ = lax.scan(local_step, x, jax.random.split(key, t.local_steps))
        return jnp.tensordot(weights, x, axes=1), None

    def all_replicas(key: Any) -> Any:
        start = jnp.zeros((dim, n_replicas))
        return lax.scan(one_round, start, jax.random.split(key, n_rounds))[0].T

    return all_replicas


def tuned(t: Any, n_rounds: int, n_replicas: int, normal: Callable[..., Any] = jax.random.normal,
          together: bool = False, modes: bool = False) -> Callable[[Any], Any]:
    """The same with I - eta A_c folded.

    `together` draws own and shared noise of a step at once; else shared noise comes a round at a time.
    `modes` makes trajectories of FA-HMC along the eigenvectors of every client's Hessian, as fedsim does.
    """
    others: dict[type, Callable[..., Any]] = {OwnTables: own, GossipTables: gossip, StaleTables: stale}
    if type(t) in others:
        return others[type(t)](t, n_rounds, n_replicas, normal)
    n_clients, dim = t.minimizers.shape
    matrix, offset = (jnp.asarray(array) for array in t.affine_step())
    own_sizes, weights = jnp.asarray(t.own_sizes)[:, None, None], jnp.asarray(t.weights)
    shape = (n_clients, dim, n_replicas)

    def move(x: Any) -> Any:
        return (matrix[:, :, None] * x if matrix.ndim == 2 else jnp.matmul(matrix, x)) + offset[:, :, None]

    hessians, minimizers = jnp.asarray(t.hessians), jnp.asarray(t.minimizers)[:, :, None]
    values: Any
    vectors: Any
    values, vectors = jnp.linalg.eigh(hessians) if modes else (None, None)

    def trajectory(x: Any, p: Any) -> Any:
        if modes:
            return leapfrogs(t, lambda at: values[:, :, None] * at, x, jnp.matmul(vectors.mT, p))
        return leapfrogs(t, lambda at: jnp.matmul(hessians, at - minimizers), x, p)

    def local_step(x: Any, given: tuple[Any, ...]) -> tuple[Any, None]:
        key, *shared = given
        if t.leapfrog_steps:
            if t.shared_noise == 1:
                noise = normal(key, (1, dim, n_replicas)) if together else shared[0]
                p = jnp.broadcast_to(t.shared_size * noise, shape)
            elif together and t.shared_size > 0:
                noise = normal(key, (n_clients + 1, dim, n_replicas))
                p = own_sizes * noise[:-1] + t.shared_size * noise[-1]
            else:
                p = own_sizes * lax.optimization_barrier(normal(key, shape))
                p = p + t.shared_size * shared[0] if shared else p
            return trajectory(x, p), None
        if together and t.shared_size > 0:
            noise = normal(key, (n_clients + 1, dim, n_replicas))
            return move(x) + own_sizes * noise[:-1] + t.shared_size * noise[-1], None
        # the barrier keeps XLA from computing a normal once for every use
        x = move(x) + own_sizes * lax.optimization_barrier(normal(key, shape))
        return (x + t.shared_size * shared[0] if shared else x), None

    def one_round(server: Any, key: Any) -> tuple[Any, None]:
        own_key, shared_key = jax.random.split(key)
        given = [jax.random.split(own_key, t.local_steps)]
        if t.shared_size > 0 and not together:
            given.append(normal(shared_key, (t.local_steps, dim, n_replicas)))
        start = jnp.broadcast_to(server, shape)
        x, _ = lax.scan(local_step, jnp.matmul(vectors.mT, start - minimizers) if modes else start,
                        tuple(given))
        x = minimizers + jnp.matmul(vectors, x) if modes else x
        return jnp.tensordot(weights, x, axes=1), None

    def all_replicas(key: Any) -> Any:
        start = jnp.zeros((dim, n_replicas))
        return lax.scan(one_round, start, jax.random.split(key, n_rounds))[0].T

    return all_replicas


class Jax:
    """One contestant; see `worker`."""

    program: Callable[..., Any] = staticmethod(natural)
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, tables: Any, threads: int) -> None:
        self.tables = tables

    def prepare(self, n_rounds: int, n_replicas: int) -> None:
        """Compile, apart from running."""
        function = type(self).program(self.tables, n_rounds, n_replicas, **self.options)
        self.compiled = jax.jit(function).lower(jax.random.key(0)).compile()

    def run(self, seed: int) -> np.ndarray:
        """The average iterates after the last round, (R, d); of stale SGLD (R, 1)."""
        return np.asarray(self.compiled(jax.random.key(seed)))


class JaxTuned(Jax):
    """In its best form with jax.random."""

    program = staticmethod(tuned)


class JaxOwnNormals(JaxTuned):
    """With our transform in place of jax.random.normal."""

    options: ClassVar = {"normal": own_normal, "together": True}


class JaxInModes(JaxTuned):
    """FA-HMC along eigenvectors, with jax.random."""

    options: ClassVar = {"modes": True}


CONTESTANTS = {"JAX natural": Jax, "JAX tuned": JaxTuned, "JAX own normals": JaxOwnNormals,
               "JAX in modes": JaxInModes}
