"""Deviations of replicas from a law, as standard normal numbers for the `alarm`."""

from __future__ import annotations

import numpy as np
from scipy import stats


def directions(dim):
    """Unit vectors whose variances determine a covariance: axes and diagonals of their planes."""
    axes = np.eye(dim)
    planes = [(axes[i] + sign * axes[j]) / np.sqrt(2.0)
              for i in range(dim) for j in range(i) for sign in (1.0, -1.0)]
    return np.array([*axes, *planes])


def normal_scores(statistic, law):
    """Standard normal numbers with the tail probabilities of `statistic` under `law`, exact far out."""
    low, high = law.logcdf(statistic), law.logsf(statistic)
    tail = np.exp(np.maximum(np.minimum(low, high), -650.0))
    return np.where(high < low, 1.0, -1.0) * stats.norm.isf(np.clip(tail, 1e-280, 0.5))


def scores(run, law):
    """Deviations of a run from a law, as standard normal numbers.

    Of a Gaussian law the sample means are normal and (R-1) u'S u / u'C u has a chi-square law, exactly.
    Otherwise (clients drawn at random) means are normal to the precision of R, and covariances are
    judged by their variation between leaves of 64 replicas.
    """
    np.testing.assert_array_equal(run.rounds, law.rounds)
    assert run.is_gaussian == law.is_gaussian
    if not law.is_gaussian:
        result = run.z_scores(law, same=False)  # mutants differ from the law on purpose
        return np.concatenate([result.mean[1:].ravel(), result.cov[1:].ravel()])
    random = np.flatnonzero(np.trace(law.cov, axis1=1, axis2=2) > 0.0)
    fixed = np.setdiff1d(np.arange(len(law.rounds)), random)  # a start from a point
    np.testing.assert_allclose(run.mean[fixed], law.mean[fixed], rtol=1e-14)
    assert not run.cov[fixed].any()
    deviation = np.sqrt(np.diagonal(law.cov[random], axis1=1, axis2=2) / run.n_replicas)
    mean = (run.mean[random] - law.mean[random]) / deviation
    u = directions(run.dim)
    found = np.einsum("ui,nij,uj->nu", u, run.cov[random], u)
    exact = np.einsum("ui,nij,uj->nu", u, law.cov[random], u)
    freedom = run.n_replicas - 1
    return np.concatenate([mean.ravel(), normal_scores(freedom * found / exact, stats.chi2(freedom)).ravel()])


def all_scores(run, law):
    """`scores` of the average and of every client whose law is recorded."""
    assert len(run.clients) == len(law.clients)
    views = zip((run, *run.clients), (law, *law.clients), strict=True)
    return np.concatenate([scores(one, other) for one, other in views])
