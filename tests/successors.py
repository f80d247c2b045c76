"""Samplers of nobody's paper here, declared for tests."""

import fedsim as fs
from fedsim.samplers import exp, grad, mean, noise, sqrt, weights


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
