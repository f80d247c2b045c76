"""What the z-scores of a run say of themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedsim.laws.scores import ZScores


def scores(largest=3.35, n_rounds=24, dim=2):
    """Normal scores, the largest given; at the first round the law is a point."""
    rng = np.random.default_rng(1)
    mean, cov = np.zeros((n_rounds + 1, dim)), np.zeros((n_rounds + 1, dim, dim))
    mean[1:] = rng.uniform(-1.0, 1.0, (n_rounds, dim))
    for i in range(dim):
        for j in range(i + 1):
            cov[1:, i, j] = cov[1:, j, i] = rng.uniform(-1.0, 1.0, n_rounds)
    mean[3, 1] = -largest
    return ZScores(mean, cov)


def test_a_line_says_whether_the_largest_is_usual():
    z = scores()
    assert z.n_random == 24 * (2 + 3) and z.largest() == 3.35
    assert repr(z) == str(z) == (
        "ZScores(largest |z| = 3.35 among 120, usually about 2.76, p <= 0.097: "
        "agrees with the law at level 0.01)")
    z.note = "start of the law is not known"
    assert repr(z).endswith("agrees with the law at level 0.01. start of the law is not known)")
    mean, cov = z  # still a pair
    assert mean is z.mean and cov is z.cov and len(z) == 2


@pytest.mark.parametrize("largest", [1.5, 3.35, 6.0, np.inf])
def test_its_numbers_are_those_of_the_largest_of_normals(largest):
    z = scores(largest)
    tail = 2.0 * stats.norm.sf(largest)
    assert z.p_value() == pytest.approx(min(1.0, 120 * tail), rel=1e-12)
    assert stats.chi(1).cdf(z.usual_largest()) ** 120 == pytest.approx(0.5, rel=1e-12)


def test_fewer_parts():
    z = scores()
    diagonal = ZScores(z.mean, np.diagonal(z.cov, axis1=1, axis2=2))
    assert diagonal.n_random == 24 * 4 and ZScores(z.mean, None).n_random == 48
    point = ZScores(np.zeros((3, 2)), None)
    assert repr(point) == ("ZScores(largest |z| = 0 among 0, usually about 0, p <= 1: "
                           "agrees with the law at level 0.01)")


def test_the_line_turns_at_its_level():
    edge = float(stats.norm.isf(0.01 / 240))
    assert "agrees with the law" in repr(scores(edge - 1e-3)) and "differs from" in repr(scores(edge + 1e-3))
    assert "differs from" in repr(scores(np.inf))


@pytest.mark.parametrize("part", ["mean", "cov"])
def test_what_is_not_a_number_agrees_with_nothing(part):
    z = scores()
    getattr(z, part)[5] = np.nan
    assert np.isnan(z.largest()) and np.isnan(z.p_value()) and "cannot be compared with the law" in repr(z)
