"""Samplers in the notation of `fs.sampler`: the shipped algorithms, and successors of theirs."""

from __future__ import annotations

import fedsim as fs
from fedsim.algorithms.declared import (
    de_sghmc as de_sghmc,
    de_sgld as de_sgld,
    fa_hmc as fa_hmc,
    fa_ld as fa_ld,
    stale_sghmc as stale_sghmc,
    stale_sgld as stale_sgld,
)
from fedsim.samplers import exp, grad, mean, noise, past, sqrt, weights


@fs.sampler(follows="components")
def extra_sgld(x, s, *, step_size, W):
    return W @ x - s - step_size * grad(x) + sqrt(2 * step_size) * noise(), s + (x - W @ x) / 2


@fs.sampler(follows="components")
def diging_sgld(x, y, g, *, step_size, W):
    new = grad(x)
    y = W @ y + new - g
    return W @ x - step_size * y + sqrt(2 * step_size) * noise(), y, new


@fs.sampler(follows="components")
def de_baoab(x, v, *, step_size, friction, W):
    c = exp(-friction * step_size)
    v = v - step_size / 2 * grad(x)
    x = W @ x + step_size / 2 * v
    v = c * v + sqrt(1 - c * c) * noise()
    x = x + step_size / 2 * v
    return x, v - step_size / 2 * grad(x)


@fs.sampler
def scaffold_ld(x, c, m, *, step_size, local_steps):
    y = x
    for _ in range(local_steps):
        y = y - step_size * (grad(y) - c + m) + sqrt(2 * step_size / weights()) * noise()
    new = c - m + (x - y) / (local_steps * step_size)
    return mean(y), new, mean(new)


@fs.sampler(follows="components")
def local_gossip(x, *, step_size, W, local_steps):
    for _ in range(local_steps):
        x = x - step_size * grad(x) + sqrt(2 * step_size) * noise()
    return W @ x


@fs.sampler
def known_delays(x, *, step_size, sets, local_steps=1, age=2):
    y = old = past(x, age)
    for _ in range(local_steps):
        y = y - step_size * grad(y) + sqrt(2 * step_size / weights()) * noise()
    return x + mean(y - old, of=sets)


@fs.sampler
def drawn_fa_ld(x, *, step_size, local_steps, clients):
    for _ in range(local_steps):
        x = x - step_size * grad(x) + sqrt(2 * step_size / weights()) * noise()
    return mean(x, drawn=clients)


@fs.sampler(follows="components")
def random_pairs(x, *, step_size, W):
    return W @ (x - step_size * grad(x) + sqrt(2 * step_size) * noise())
