"""Exact laws of averages of theta^2 along stale SGLD, for many data sets of the Gaussian model at once.

Given h a and the ages, data enter through a few numbers alone: with the start drawn from the law that is
followed, N(mean, 1/a), r_l the response of theta_l to theta_0, and K the covariances of iterates under
noise of variance one,

    E theta_l = mean,      Cov = (2 h + h^2 S) K + r r' / a,

so that sums over K and r, taken once, give the law for every data set. The same numbers as
`theory.exact.delay.average_law`, whose docstring has the rest, in a fraction of the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import fedsim as fs
from fedsim.vector.compile import compiled
from theory.stale import AverageLaw


@compiled
def _accumulate(ha, ages, rows, replies, r, squares, ones, out):
    """What each iterate i + 1 adds to the sums over K (out[:4]), and the sums over responses (out[4:])."""
    depth = rows.shape[0]
    for i in range(ages.shape[0]):
        source = i - ages[i]
        now, old, new = rows[i % depth], rows[source % depth], rows[(i + 1) % depth]
        r[i + 1] = r[i] - ha * r[source]
        square = line = crossed = 0.0
        for m in range(i + 1):
            value = now[m] - ha * old[m]
            new[m] = value
            square += value * value
            line += value
            crossed += value * r[m]
        own = new[i] - ha * new[source] + 1.0
        new[i + 1] = own
        for m in range(max(0, i + 2 - depth), i + 1):  # what other iterates know of the new one
            rows[m % depth, i + 1] = new[m]
        out[0, i] = own
        out[1, i] = 2.0 * square + own * own
        out[2, i] = 2.0 * line + own
        out[3, i] = r[i + 1] * (2.0 * crossed + own * r[i + 1])
        now, old, new = replies[i % depth], replies[source % depth], replies[(i + 1) % depth]
        fourth = third = 0.0
        for s in range(i + 1):
            value = now[s] - ha * old[s] if s < i else 1.0
            new[s] = value
            squares[s] += value * value
            ones[s] += value
            fourth += squares[s] * squares[s]
            third += squares[s] * ones[s]
        out[4, i] = fourth
        out[5, i] = third


class Sums(NamedTuple):
    """What the laws of all data sets have in common, cumulative over iterates.

    Attributes
    ----------
    responses : sums of r_l and of r_l^2
    covariances : trace of K, sum of the squares of its entries, 1' K 1 and r' K r
    minibatches : factors of their fourth and third cumulants
    """

    responses: np.ndarray
    covariances: np.ndarray
    minibatches: np.ndarray

    @classmethod
    def of(cls, ha: float, ages: Any) -> Sums:
        """Sums up to each of the iterates that these ages make."""
        ages = np.ascontiguousarray(ages, dtype=np.int64)
        length, depth = len(ages), int(ages.max()) + 1
        r, out = np.ones(length + 1), np.empty((6, length))
        _accumulate(float(ha), ages, np.zeros((depth, length + 1)), np.zeros((depth, length)), r,
                    np.zeros(length), np.zeros(length), out)
        return cls(np.cumsum([r[1:], r[1:] ** 2], axis=1), np.cumsum(out[:4], axis=1), out[4:])

    def law(self, problem: Any, h: float) -> AverageLaw:
        """The law for one problem, `GaussianMean` or one-dimensional `Quadratic` without noise."""
        (r, rr), (trace, square, both, crossed), (kurtosis, skewness) = self
        noise, third, fourth = getattr(problem, "gradient_cumulants", (0.0, 0.0, 0.0))
        goal = followed(problem)
        mean, spread = float(goal.mean[0]), float(goal.variances[0])
        q, lengths = 2.0 * h + h**2 * noise, np.arange(1, len(r) + 1)
        squares = q**2 * square + 2.0 * q * spread * crossed + (spread * rr) ** 2
        lines = mean**2 * (q * both + spread * r**2)
        minibatches = h**4 * fourth * kurtosis - 4.0 * h**3 * third * mean * skewness
        variances = (2.0 * squares + 4.0 * lines + minibatches) / lengths.astype(float) ** 2
        return AverageLaw(lengths, mean**2 + (spread * rr + q * trace) / lengths, variances,
                          mean**2 + spread, f"average of theta^2, h = {h:g}")


PLAIN = fs.Quadratic(np.ones(1), np.zeros((1, 1)))
"""The target N(0, 1) with exact gradients."""


def law_of(problem: Any, tau: int, length: int, h: float) -> AverageLaw:
    """The law at a constant age."""
    return Sums.of(h * curvature(problem), np.minimum(np.arange(length), tau)).law(problem, h)


def followed(problem: Any) -> fs.Gaussian:
    """The law whose gradient the chain follows, which is not the posterior with batch sums."""
    return (problem.as_quadratic() if isinstance(problem, fs.GaussianMean) else problem).target()


def curvature(problem: Any) -> float:
    """Of the potential of that law: a."""
    return 1.0 / float(followed(problem).variances[0])
