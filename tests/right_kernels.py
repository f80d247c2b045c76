"""Right kernels of five algorithms at random problems, step sizes, dimensions and temperatures, many seeds at
once."""

from __future__ import annotations

import numpy as np
from seeded import normals

import fedsim as fs


def problem_of(rng, n_clients, dim, components=False):
    roots = rng.normal(size=(n_clients, dim, dim))
    hessians = roots @ roots.swapaxes(1, 2) / dim + 0.2 * np.eye(dim)
    minima = rng.normal(size=(n_clients, dim))
    if components:
        return hessians, minima, fs.Quadratic.from_components(hessians, minima)
    return hessians, minima, fs.Quadratic(hessians, minima, rng.dirichlet(np.full(n_clients, 5.0)))


def federated(rng, dim):
    n_clients, steps, heat = int(rng.integers(1, 4)), int(rng.integers(1, 4)), float(rng.uniform(0.1, 2.0))
    H, m, problem = problem_of(rng, n_clients, dim)
    w = problem.weights

    def make(step_size, temperature=heat):
        def kernel(seeds, x):
            z = normals(seeds, steps, n_clients, dim) / np.sqrt(w[:, None])
            y = np.broadcast_to(x, (len(seeds), n_clients, dim))
            for k in range(steps):
                y = y - step_size * np.einsum("cij,kcj->kci", H, y - m) + np.sqrt(
                    2 * step_size * temperature) * z[:, k]
            return np.einsum("c,kci->ki", w, y)
        return kernel
    return problem, make, lambda h: fs.FALD(h, steps, temperature=heat), {}, heat


def gossip(rng, dim):
    H, m, problem = problem_of(rng, 3, dim, True)
    mixing = fs.network.complete(3)

    def make(step_size):
        def kernel(seeds, x):
            return mixing @ x - step_size * np.einsum("cij,cj->ci", H, x - m) + np.sqrt(
                2 * step_size) * normals(seeds, 3, dim)
        return kernel
    options = {"start": np.zeros((3, dim)), "read": lambda x: x.mean(axis=0)}
    return problem, make, lambda h: fs.DESGLD(h, mixing), options, 1.0


def stale(rng, dim):
    H, m, problem = problem_of(rng, 1, dim)
    age = int(rng.integers(0, 3))

    def make(step_size):
        def kernel(seeds, past):
            new = past[0] - step_size * (past[age] - m[0]) @ H[0]
            new = new + np.sqrt(2 * step_size) * normals(seeds, dim)
            return (new, *(np.broadcast_to(one, new.shape) for one in past[:-1]))
        return kernel
    options = {"start": tuple(np.zeros((age + 1, dim)))}
    return problem, make, lambda h: fs.StaleSGLD(h, age), options, 1.0


def momentum(rng, dim):
    H, m, problem = problem_of(rng, 1, dim)
    friction = float(rng.uniform(0.5, 3.0))

    def make(step_size):
        def kernel(seeds, state):
            v = (1 - friction * step_size) * state["v"] - step_size * (state["x"] - m[0]) @ H[0]
            v = v + np.sqrt(2 * friction * step_size) * normals(seeds, dim)
            return {"v": v, "x": state["x"] + step_size * v}
        return kernel
    options = {"start": {"x": np.zeros(dim), "v": np.zeros(dim)}, "read": lambda state: state["x"]}
    return problem, make, lambda h: fs.StaleSGHMC(h, friction, 0), options, 1.0


def drawn(number):
    """The right kernel of a number: problem, make, algorithm by step size, options, temperature, step."""
    rng = np.random.default_rng([5, number])
    problem, make, algorithm, options, heat = (federated, gossip, stale, momentum)[number % 4](
        rng, int(rng.integers(1, 5)))
    limit = algorithm(1e-3).stability(problem).max_step_size
    return problem, make, algorithm, options, heat, float(limit * rng.uniform(0.02, 0.8))
