"""Simulated FA-HMC whose positions are averaged every T leapfrog steps, as section 5 has it, in NumPy.

Where K divides T it is `fs.FAHMC` with T/K local steps, which is compiled; `stepwise.py` has the exact law.
Long steps amplify the last bits, so that gradients of softmax regression are compiled: NumPy's exponentials
and products of matrices differ between processors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

import fedsim as fs
from fedsim.vector.compile import compiled
from fedsim.vector.math import exp

BEYOND = 1e75
Gradient = Callable[[int, np.ndarray, np.random.Generator], np.ndarray]
"""Of a client's f_(c) at points (n_chains, d), drawn anew at every call."""
Gradients = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Of all clients, each at its own points (N, n_chains, d)."""


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
        rng, gradients, eta = np.random.default_rng(seed), evaluations_together(problem), self.step_size
        weights = problem.weights
        x, p = np.zeros((2, problem.n_clients, n_chains, problem.dim))
        kept = np.empty((n_rounds // every, n_chains, problem.dim))
        for step in range(n_rounds * self.every):
            if step % self.leapfrog_steps == 0:
                p[:] = rng.standard_normal((n_chains, problem.dim))
            before = gradients(x, rng)
            x += eta * p - 0.5 * eta**2 * before
            n, left = divmod(step + 1, self.every)
            if not np.abs(x).max() < BEYOND:
                raise fs.DivergedError(f"{self}: a coordinate is beyond {BEYOND:g} after round {n}", n)
            if (step + 1) % self.leapfrog_steps:  # else the momenta are not used any more
                p -= 0.5 * eta * (before + gradients(x, rng))
            if left == 0:
                x[:] = sum(weight * own for weight, own in zip(weights, x, strict=True))
                if n % every == 0:
                    kept[n // every - 1] = x[0]
        return kept.swapaxes(0, 1)


def evaluations(problem: Any) -> Gradient:
    """Evaluations of gradients with a problem's minibatches and noise: of softmax regression, or by points.

    Raises
    ------
    ValueError
        For minibatches of another problem.
    """
    softmax, noise = isinstance(problem, fs.SoftmaxRegression), problem.gradient_noise or 0.0
    if problem.has_minibatches and not softmax:
        raise ValueError(f"problem={problem!r} must be a softmax regression to have minibatches here")
    without: Gradient = _of_softmax(problem) if softmax else lambda client, x, _: problem.gradient(client, x)

    def gradient(client: int, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        value = without(client, x, rng)
        return value + noise * rng.standard_normal(x.shape) if noise else value
    return gradient


def evaluations_together(problem: Any) -> Gradients:
    """The same of all clients, each at its own points (N, n_chains, d), from the same random numbers."""
    one, exact, noise = evaluations(problem), exact_gradients(problem), problem.gradient_noise or 0.0
    if isinstance(problem, fs.SoftmaxRegression):
        return lambda x, rng: np.array([one(c, own, rng) for c, own in enumerate(x)])
    return lambda x, rng: exact(x) + noise * rng.standard_normal(x.shape) if noise else exact(x)


def exact_gradients(problem: Any) -> Callable[[np.ndarray], np.ndarray]:
    """grad f_(c) of every client at its own points (N, n, d): in one go where clients are alike in size."""
    if isinstance(problem, fs.Quadratic) and problem.structure == "dense":
        return lambda x: (x - problem.minimizers[:, None]) @ problem.hessians
    if isinstance(problem, fs.LogisticRegression) and np.ptp(problem.sizes) == 0:
        order = np.argsort(problem.clients, kind="stable").reshape(problem.n_clients, -1)
        rows, labels = problem.features[order], problem.labels[order][:, None]
        pull, weights = 1.0 / problem.n_clients / problem.prior_variance, problem.weights[:, None, None]
        return lambda x: ((expit(x @ rows.swapaxes(1, 2)) - labels) @ rows + pull * x) / weights
    return lambda x: np.array([problem.gradient(c, own) for c, own in enumerate(x)])


@compiled
def _add_fits(features, labels, drawn, theta, scores, fit):
    """Add to fit (.., C, p) the sums over drawn rows of (softmax(theta X_r) - e_y) X_r', theta (.., p, C)."""
    n_features, n_classes = theta.shape[1:]
    for chain in range(drawn.shape[0]):
        for row in drawn[chain]:
            for c in range(n_classes):
                scores[c] = 0.0
            for j in range(n_features):
                value = features[row, j]
                for c in range(n_classes):
                    scores[c] += value * theta[chain, j, c]
            greatest, total = scores[0], 0.0
            for c in range(1, n_classes):
                greatest = max(greatest, scores[c])
            for c in range(n_classes):
                scores[c] = exp(scores[c] - greatest)
                total += scores[c]
            for c in range(n_classes):
                gap = scores[c] / total - (1.0 if labels[row] == c else 0.0)
                for j in range(n_features):
                    fit[chain, c, j] += gap * features[row, j]


def _of_softmax(problem: Any) -> Gradient:
    """Every chain has rows of its own, where a problem has minibatches."""
    rows = [np.flatnonzero(problem.clients == c) for c in range(problem.n_clients)]
    features = [problem.feature_scale * problem.features[own].astype(float) for own in rows]
    labels, scores = [problem.labels[own] for own in rows], np.empty(problem.n_classes)
    size = problem.batch_size
    pull = 1.0 / (problem.prior_variance * problem.n_clients)

    def gradient(client: int, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(rows[client])
        if size is None:
            drawn = np.tile(np.arange(count), (len(x), 1))
        elif problem.replace:
            drawn = rng.integers(count, size=(len(x), size))
        else:
            drawn = rng.random((len(x), count)).argsort(axis=1)[:, :size]
        theta = x.reshape(len(x), problem.n_classes, -1)
        fit = np.zeros_like(theta)
        _add_fits(features[client], labels[client], drawn, theta.swapaxes(1, 2).copy(), scores, fit)
        return (count / drawn.shape[1] * fit.reshape(x.shape) + pull * x) / problem.weights[client]
    return gradient
