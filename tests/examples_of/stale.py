"""One chain with stale gradients, and a model whose minibatches are not normal."""

from __future__ import annotations

import numpy as np

import fedsim as fs
import theory
from theory import stale

PROBLEM = fs.Quadratic([1.0], [[0.0]])
ALGORITHM = fs.StaleSGLD(0.1, 5)


def rate(name, algorithm=ALGORITHM, n_rounds=100, **options):
    """`theory.stale.<name>` of the chain, at its last round."""
    return getattr(stale, name)(theory.constants(PROBLEM, algorithm), algorithm, n_rounds=n_rounds,
                                **{"record": ()} | options)


DATA = np.random.default_rng(1).gamma(0.5, size=30) - 0.5  # skew, so that minibatches are not normal


def mean_model(batch_size=3, replace=False, grad_scale="unbiased", prior_variance=0.1):
    return fs.GaussianMean(DATA, prior_variance=prior_variance, batch_size=batch_size, replace=replace,
                           grad_scale=grad_scale)
