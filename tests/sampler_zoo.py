"""Samplers in the notation of `fs.sampler`: the shipped algorithms, and successors of theirs."""

from __future__ import annotations

import fedsim as fs
from fedsim.samplers import exp, grad, mean, noise, past, sqrt, weights


@fs.sampler(follows="components")
def de_sgld(x, *, step_size, W):
    return W @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()


@fs.sampler(follows="components")
def de_sghmc(x, v, *, step_size, friction, W):
    v = v - step_size * (friction * v + grad(x)) + sqrt(2 * friction * step_size) * noise()
    return W @ x + step_size * v, v


@fs.sampler
def fa_ld(x, *, step_size, local_steps=1, temperature=1.0, shared_noise=0.0):
    for _ in range(local_steps):
        x = (x - step_size * grad(x) + sqrt(2 * step_size * temperature * shared_noise) * noise(common=True)
             + sqrt(2 * step_size * temperature * (1 - shared_noise)) * noise() / sqrt(weights()))
    return mean(x)


@fs.sampler
def fa_hmc(x, *, step_size, leapfrog_steps, local_steps=1, shared_noise=1.0):
    for _ in range(local_steps):
        p = sqrt(shared_noise) * noise(common=True) + sqrt((1 - shared_noise) / weights()) * noise()
        for _ in range(leapfrog_steps):
            p = p - step_size / 2 * grad(x)
            x = x + step_size * p
            p = p - step_size / 2 * grad(x)
    return mean(x)


@fs.sampler(follows="global")
def stale_sgld(x, *, step_size, age):
    return x - step_size * grad(past(x, age)) + sqrt(2 * step_size) * noise()


@fs.sampler(follows="global")
def stale_sghmc(x, q, *, step_size, friction, age):
    q = (1 - friction * step_size) * q - step_size * grad(past(x, age))
    q = q + sqrt(2 * friction * step_size) * noise()
    return x + step_size * q, q


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
def known_delays(x, y, *, step_size, sets):
    y = y - step_size * grad(y) + sqrt(2 * step_size / weights()) * noise()
    x = mean(y, of=sets)
    return x, x


@fs.sampler(follows="components")
def random_pairs(x, *, step_size, W):
    return W @ (x - step_size * grad(x) + sqrt(2 * step_size) * noise())
