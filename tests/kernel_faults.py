"""Mistakes of kinds that people report in public, planted in kernels of ours: from none (0) to the whole (1).

Kernels take many seeds together. Each fault is a kernel by its size, and what it says it is.

    python tests/kernel_faults.py     writes the smallest sizes that are caught to tests/kernel_faults.json
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from seeded import normals

import fedsim as fs
import theory
from fedsim.samplers import exp, grad, noise, sqrt

STORED = Path(__file__).with_name("kernel_faults.json")
H = np.array([[2.0, 0.5], [0.5, 1.0]])
B = np.array([0.3, -0.2])
ONE = fs.Quadratic(H[None], B[None])
FORCES = np.stack([H, [[1.0, 0.0], [0.0, 3.0]], [[2.0, -0.5], [-0.5, 2.0]]])
MINIMA, W = np.array([[0.3, -0.2], [1.0, 0.0], [-0.5, 0.4]]), np.array([0.5, 0.3, 0.2])
MANY = fs.Quadratic(FORCES, MINIMA, W)
PARTS = fs.Quadratic.from_components(FORCES, MINIMA)
MIXING = fs.network.ring(3)
STEP, FRICTION, TEMPERATURE, SHARE = 0.05, 1.5, 0.1, 0.2
PAIR = {"x": np.zeros(2), "v": np.zeros(2)}


def g(x):
    return (x - B) @ H


def own(x):
    """grad f_(c) at the clients' points (..., N, d)."""
    return np.einsum("cij,...cj->...ci", FORCES, x - MINIMA)


def towards(factor):
    """1 at size 0, and the factor at size 1."""
    return lambda s: factor**s


def right(size):
    return 1.0


def sgld(size, noise=right, gradient=right, mix=None, mean=0.0, pull=0.0, temperature=1.0):
    def kernel(seeds, x):
        z = normals(seeds, 2)
        z = z + mean * size if mix is None else mix(z, size)
        force = gradient(size) * g(x) + pull * size * x
        return x - STEP * force + noise(size) * np.sqrt(2 * STEP * temperature) * z
    return kernel


def sghmc(size, noise=right, old=0.0, kept=0.0, drag=1.0, gradient=right, onto_x=0.0):
    def kernel(seeds, state):
        z = np.sqrt(2 * FRICTION * STEP) * noise(size) * normals(seeds, 2)
        v = (1 - kept * size) * (1 - FRICTION * STEP * (1 + (drag - 1) * size)) * state["v"]
        v = v - STEP * gradient(size) * g(state["x"]) + (1 - onto_x * size) * z
        moved = (1 - old * size) * v + old * size * state["v"]
        return {"x": state["x"] + STEP * moved + onto_x * size * z, "v": v}
    return kernel


def stale(size, age=0.0):
    def kernel(seeds, state):
        force = (1 - age * size) * g(state["x"]) + age * size * g(state["old"])
        return {"x": state["x"] - STEP * force + np.sqrt(2 * STEP) * normals(seeds, 2),
                "old": np.broadcast_to(state["x"], (len(seeds), 2))}
    return kernel


def leapfrog(size, last=1.0):
    def kernel(seeds, state):
        c, z = np.exp(-FRICTION * STEP), normals(seeds, 2)
        v = c * state["v"] + np.sqrt(1 - c * c) * z - STEP / 2 * g(state["x"])
        x = state["x"] + STEP * v
        return {"x": x, "v": v - STEP / 2 * (1 - last * size) * g(x)}
    return kernel


@fs.sampler(follows="global")
def obab(x, v, *, step_size, friction):
    c = exp(-friction * step_size)
    v = c * v + sqrt(1 - c * c) * noise() - step_size / 2 * grad(x)
    x = x + step_size * v
    return x, v - step_size / 2 * grad(x)


def fa_ld(size, steps=3, shares=None, common=0.0, by_weight=1.0, fewer=0.0, temperature=1.0, heat=1.0):
    weights = W if shares is None else (1 - size) * W + size * shares

    def kernel(seeds, x):
        y = np.broadcast_to(x, (len(seeds), 3, 2))
        z, shared = normals(seeds, steps, 3, 2), normals(seeds, steps, 1, 2, stream=1)
        for k in range(steps):
            step = STEP * (1 - fewer * size * (k == 0))
            own_noise = np.sqrt(2 * step * temperature * heat**size) / np.sqrt(W[:, None]) ** (
                1 + (by_weight - 1) * size)
            z[:, k] = np.sqrt(1 - common * size) * z[:, k] + np.sqrt(common * size) * shared[:, k]
            y = y - step * own(y) + own_noise * z[:, k]
        return np.einsum("c,kci->ki", weights, y)
    return kernel


def de_sgld(size, order=0.0, both=0.0):
    def kernel(seeds, x):
        z = normals(seeds, 3, 2)
        z[:, 1] = np.sqrt(1 - both * size) * z[:, 1] + np.sqrt(both * size) * z[:, 0]
        move = -STEP * own(x) + np.sqrt(2 * STEP) * z
        return MIXING @ x + (1 - order * size) * move + order * size * (MIXING @ move)
    return kernel


def same_normal(z, size):
    """One normal for all coordinates: their correlation is the size."""
    return np.stack([z[:, 0], np.sqrt(size) * z[:, 0] + np.sqrt(1 - size) * z[:, 1]], axis=1)


SGLD, SGHMC = fs.StaleSGLD(STEP, 0), fs.StaleSGHMC(STEP, FRICTION, 0)
COLD = fs.FALD(STEP, temperature=TEMPERATURE)
HERE, MOMENTUM = (ONE, SGLD, {}), (ONE, SGHMC, {"start": PAIR})
CHILLED, CLIENTS = (ONE, COLD, {}), (MANY, fs.FALD(STEP, 3), {})
GOSSIP = (PARTS, fs.DESGLD(STEP, MIXING), {"start": np.zeros((3, 2)), "read": lambda x: x.mean(axis=0)})
FAULTS = {
    # name: (kernel by size, (problem, what it says it is, options), words of a cause that is named)
    "the factor 2 is forgotten": (lambda s: sgld(s, towards(0.5**0.5)), HERE, "factor 2 under the root"),
    "a factor 2 too many": (lambda s: sgld(s, towards(2**0.5)), HERE, "factor 2 too many"),
    "twice the noise": (lambda s: sgld(s, towards(2.0)), HERE, "factor 2 that stands outside"),
    "noise of deviation step_size": (lambda s: sgld(s, towards((STEP / 2) ** 0.5)), HERE,
                                     "root and factor 2"),
    "noise of deviation 2 step_size": (lambda s: sgld(s, towards((2 * STEP) ** 0.5)), HERE,
                                       "root is missing"),
    "noise over root step_size": (lambda s: sgld(s, towards(1 / (STEP * 2**0.5))), HERE,
                                  "is divided by the root"),
    "step_size twice in the noise": (lambda s: sgld(s, towards(STEP)), HERE, "once more"),
    "noise not by step_size": (lambda s: sgld(s, towards(STEP**-0.5)), HERE, "not under the root"),
    "no noise": (lambda s: sgld(s, lambda s: 1 - s), HERE, "no noise"),
    "noise 2 % too large": (lambda s: sgld(s, lambda s: 1 + 0.02 * s), HERE, None),
    "uniform noise on (-1, 1)": (lambda s: sgld(s, towards(3**-0.5)), HERE, None),
    "one normal for all coordinates": (lambda s: sgld(s, mix=same_normal), HERE, "one noise is shared"),
    "noise of mean 1/2": (lambda s: sgld(s, mean=0.5), HERE, None),
    "half the gradient": (lambda s: sgld(s, gradient=towards(0.5)), HERE, "half the gradient"),
    "the gradient twice": (lambda s: sgld(s, gradient=towards(2.0)), HERE, "used twice"),
    "no gradient": (lambda s: sgld(s, gradient=lambda s: 1 - s), HERE, "gradient is not used"),
    "the other sign": (lambda s: sgld(s, gradient=lambda s: 1 - 2 * s), HERE, "other sign"),
    "the gradient not by step_size": (lambda s: sgld(s, gradient=towards(1 / STEP)), HERE, "not multiplied"),
    "N/n missing": (lambda s: sgld(s, gradient=towards(SHARE)), HERE, "N/n is missing"),
    "n/N for N/n": (lambda s: sgld(s, gradient=towards(SHARE**2)), HERE, "n/N stands for N/n"),
    "the prior twice": (lambda s: sgld(s, pull=0.1), HERE, None),
    "the last gradient": (lambda s: stale(s, 1.0), (ONE, SGLD, {"start": {"x": B, "old": B}}), None),
    "no temperature": (lambda s: sgld(s, towards(TEMPERATURE**-0.5), temperature=TEMPERATURE), CHILLED,
                       "does not enter"),
    "temperature outside the root": (lambda s: sgld(s, towards(TEMPERATURE**0.5), temperature=TEMPERATURE),
                                     CHILLED, "stands outside the root"),
    "friction not in the noise": (lambda s: sghmc(s, towards(FRICTION**-0.5)), MOMENTUM, "does not enter"),
    "friction outside the root": (lambda s: sghmc(s, towards(FRICTION**0.5)), MOMENTUM,
                                  "stands outside the root"),
    "noise on the position": (lambda s: sghmc(s, onto_x=1.0), MOMENTUM, None),
    "the old velocity": (lambda s: sghmc(s, old=1.0), MOMENTUM, "old velocity"),
    "the momentum is forgotten": (lambda s: sghmc(s, kept=1.0), MOMENTUM, "state['v'] is forgotten"),
    "no friction": (lambda s: sghmc(s, drag=0.0), MOMENTUM, None),
    "friction twice": (lambda s: sghmc(s, drag=2.0), MOMENTUM, None),
    "half the gradient, with momentum": (lambda s: sghmc(s, gradient=towards(0.5)), MOMENTUM,
                                         "half the gradient"),
    "the last kick is lost": (lambda s: leapfrog(s), (ONE, obab(step_size=STEP, friction=FRICTION),
                                                      {"start": PAIR}), "last kick"),
    "equal weights": (lambda s: fa_ld(s, shares=np.full(3, 1 / 3)), CLIENTS, None),
    "one local step too few": (lambda s: fa_ld(s, fewer=1.0), CLIENTS, None),
    "clients share their noise": (lambda s: fa_ld(s, common=1.0), CLIENTS, None),
    "noise not by weight": (lambda s: fa_ld(s, by_weight=0.0), CLIENTS, None),
    "noise is mixed, too": (lambda s: de_sgld(s, order=1.0), GOSSIP, None),
    "two clients have one key": (lambda s: de_sgld(s, both=1.0), GOSSIP, "one noise is shared"),
}


def asked(name, size):
    """What `assert_samples` says of a fault of this size: a report, or the words of the failure."""
    make, (problem, like, options), _ = FAULTS[name]
    try:
        return theory.testing.assert_samples(make(size), problem, like=like, batched=True,
                                             batch_fraction=SHARE, **options)
    except AssertionError as failure:
        return " ".join(str(failure).split())


def smallest(name):
    """The size that is caught, halved until it is not."""
    size = 1.0
    while size > 1e-15 and isinstance(asked(name, 0.5 * size), str):
        size *= 0.5
    return size


if __name__ == "__main__":
    found = {name: smallest(name) for name in FAULTS}
    STORED.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
