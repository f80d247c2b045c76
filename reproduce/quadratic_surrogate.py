"""The Gaussian surrogate of a logistic regression: every client's quadratic expansion at the mode."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

import fedsim as fs


def surrogate(problem: fs.LogisticRegression) -> fs.Quadratic:
    """Clients' quadratic expansions at the mode with the same noise; its target is the Laplace law."""
    mode, hessians, minimizers = problem.mode(), [], []
    for c in range(problem.n_clients):
        rows = problem.features[problem.clients == c]
        scores = rows @ mode
        curved = (rows.T * (expit(scores) * expit(-scores))) @ rows / problem.weights[c]
        curved = curved + problem.prior_pull[c] * np.eye(problem.dim)
        hessians.append(curved)
        minimizers.append(mode - np.linalg.solve(curved, problem.gradient(c, mode)))
    return fs.Quadratic(np.array(hessians), np.array(minimizers), problem.weights, problem.gradient_noise)
