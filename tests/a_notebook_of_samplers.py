"""Samplers of a module that no other process can import, as those of a notebook are."""

from __future__ import annotations

import types

import fedsim as fs

NOWHERE = types.ModuleType("a_notebook")
exec("""
import fedsim as fs
from fedsim.samplers import grad, mean, noise, sqrt

@fs.sampler(follows="components")
def extra(x, s, *, step_size, W):
    return W @ x - s - step_size * grad(x) + sqrt(2 * step_size) * noise(), s + (x - W @ x) / 2

@fs.sampler
def drawn(x, *, step_size, who):
    for _ in range(3):
        x = x - step_size * grad(x) + sqrt(2 * step_size) * noise(common=True)
    return mean(x, drawn=who)

@fs.sampler(follows="components")
def scheduled(x, v, *, step_size, W):
    v = v - step_size * (2.0 * v + grad(x)) + sqrt(4.0 * step_size) * noise()
    return W @ x + step_size * v, v
""", NOWHERE.__dict__)
RING = fs.network.ring(4)
SAMPLERS = {"extra": NOWHERE.extra(step_size=0.05, W=RING),
            "drawn": NOWHERE.drawn(step_size=0.05, who=fs.Participation(2, True)),
            "scheduled": NOWHERE.scheduled(step_size=fs.schedules.Harmonic(8.0, 0.5), W=RING)}
