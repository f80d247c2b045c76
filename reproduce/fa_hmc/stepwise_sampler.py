"""Simulated FA-HMC whose positions are averaged every T leapfrog steps, as section 5 has it, in NumPy.

Where K divides T it is `fs.FAHMC` with T/K local steps, which is compiled; `stepwise.py` has the exact law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

import fedsim as fs

BEYOND = 1e75
Gradient = Callable[[int, np.ndarray, np.random.Generator], np.ndarray]
"""Of a client's f_(c) at points (n_chains, d), drawn anew at every call."""


def section_5(step_size: float, leapfrog_steps: int, every: int) -> fs.FAHMC | StepwiseFAHMC:
    """FA-HMC with K leapfrog steps and shared momenta, averaged every T leapfrog steps."""
    if every % leapfrog_steps == 0:
        return fs.FAHMC(step_size, leapfrog_steps, every // leapfrog_steps, 1.0)
    return StepwiseFAHMC(step_size, leapfrog_steps, every)


def sample_path(problem: Any, algorithm: Any, n_rounds: int, **options: Any) -> np.ndarray:
    """`fs.sample_path`, also of a `StepwiseFAHMC`."""
    if isinstance(algorithm, StepwiseFAHMC):
        return algorithm.sample_path(problem, n_rounds, options["seed"], options.get("every", 1),
                                     options.get("n_chains", 1))
    return fs.sample_path(problem, algorithm, n_rounds, **options)


@dataclass(frozen=True)
class StepwiseFAHMC:
    """FA-HMC with new momenta every `leapfrog_steps` and averaged positions `every` so many leapfrog steps.

    Momenta are common to all clients when they are drawn; then each client's go their own way.
    """

    step_size: float
    leapfrog_steps: int
    every: int

    def costs(self, problem: Any, n_rounds: int) -> dict[str, float]:
        """As of `fs.FAHMC`: 2K - 1 noisy evaluations, or K exact ones, of a client in a trajectory."""
        noisy = problem.has_minibatches or problem.gradient_noise is not None
        each = 2 * self.leapfrog_steps - 1 if noisy else self.leapfrog_steps
        trajectories = n_rounds * self.every / self.leapfrog_steps
        return {"gradient_evaluations": trajectories * each * problem.n_clients}

    def sample_path(self, problem: Any, n_rounds: int, seed: int, every: int = 1,
                    n_chains: int = 1) -> np.ndarray:
        """Averages after every so many rounds, from the origin: (n_chains, n_rounds // every, d).

        Raises
        ------
        fs.DivergedError
            When a coordinate is beyond `BEYOND`, or not a number.
        """
        rng, gradient, eta = np.random.default_rng(seed), evaluations(problem), self.step_size
        clients, weights = range(problem.n_clients), problem.weights
        x, p = np.zeros((2, problem.n_clients, n_chains, problem.dim))
        kept = np.empty((n_rounds // every, n_chains, problem.dim))
        for step in range(n_rounds * self.every):
            if step % self.leapfrog_steps == 0:
                p[:] = rng.standard_normal((n_chains, problem.dim))
            before = np.array([gradient(c, x[c], rng) for c in clients])
            x += eta * p - 0.5 * eta**2 * before
            n, left = divmod(step + 1, self.every)
            if not np.abs(x).max() < BEYOND:
                raise fs.DivergedError(f"{self}: a coordinate is beyond {BEYOND:g} after round {n}", n)
            if (step + 1) % self.leapfrog_steps:  # else the momenta are not used any more
                p -= 0.5 * eta * (before + np.array([gradient(c, x[c], rng) for c in clients]))
            if left == 0:
                x[:] = np.tensordot(weights, x, 1)
                if n % every == 0:
                    kept[n // every - 1] = x[0]
        return kept.swapaxes(0, 1)


def evaluations(problem: Any) -> Gradient:
    """Evaluations of gradients with a problem's minibatches or noise: of softmax regression, or by points."""
    if problem.has_minibatches:
        return _of_minibatches(problem)
    noise = problem.gradient_noise or 0.0

    def gradient(client: int, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        exact: np.ndarray = problem.gradient(client, x)
        return exact + noise * rng.standard_normal(x.shape) if noise else exact
    return gradient


def _of_minibatches(problem: Any) -> Gradient:
    """Every chain has rows of its own."""
    rows = [np.flatnonzero(problem.clients == c) for c in range(problem.n_clients)]
    features = [problem.feature_scale * problem.features[own].astype(float) for own in rows]
    labels, classes = [problem.labels[own] for own in rows], np.eye(problem.n_classes)
    size: int = problem.batch_size
    pull = 1.0 / (problem.prior_variance * problem.n_clients)

    def gradient(client: int, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(rows[client])
        drawn = (rng.integers(count, size=(len(x), size)) if problem.replace else
                 rng.random((len(x), count)).argsort(axis=1)[:, :size])
        some, theta = features[client][drawn], x.reshape(len(x), problem.n_classes, -1)
        gap = softmax(some @ theta.swapaxes(1, 2), axis=2) - classes[labels[client][drawn]]
        fit = (gap.swapaxes(1, 2) @ some).reshape(x.shape)
        return (count / size * fit + pull * x) / problem.weights[client]
    return gradient
