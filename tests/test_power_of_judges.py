"""The judges see what they are said to see: a tolerance a hundred times larger, or smaller, fails here."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from alarm import FALSE_ALARM, MARGIN, P_LIMIT, Z_LIMIT
from examples_of import small_bound

import fedsim as fs
import theory
from fedsim.laws.law import Law
from theory.declare.bound import Assumption

MEAN, COV = np.array([[2.0, -1.0]]), np.array([[[2.0, 0.6], [0.6, 1.0]]])
JUST_ROUNDING, MORE = 3e-13, 3e-11
"""Relative errors on either side of a tolerance of 1e-12, each within a factor of a hundred."""


def run_of(cov, mean=MEAN, n_replicas=2_200_000, **fields):
    """A run with these moments."""
    return fs.Run(np.arange(1), mean, cov, n_replicas=n_replicas, **fields)


@pytest.mark.parametrize("form", [np.asarray, lambda cov: np.diagonal(cov, axis1=1, axis2=2)])
def test_a_covariance_less_than_one_percent_off_scores(form, alarm):
    law, off = Law(np.arange(1), MEAN, form(COV)), 1.009
    for n_replicas in (20_001, 40_000, 2_200_000):
        z = run_of(form(off * COV), n_replicas=n_replicas).z_scores(law).cov
        variances = z if z.ndim == 2 else np.diagonal(z, axis1=1, axis2=2)
        np.testing.assert_allclose(variances, 0.009 * np.sqrt((n_replicas - 1) / 2), rtol=1e-10)
    alarm.must_fail(z, "0.9% of a covariance")


def test_means_score_beyond_their_rounding():
    """Errors are a tenth of the deviation, and small where 1e-12 of the mean is."""
    for off, wanted in ((JUST_ROUNDING, 0.0), (MORE, 10.0)):
        shift = off * np.abs(MEAN)
        law = Law(np.arange(1), MEAN, (0.1 * shift) ** 2 * 10_000)
        z = run_of(law.cov, MEAN + shift, n_replicas=10_000).z_scores(law)
        np.testing.assert_allclose(z.mean, np.full((1, 2), wanted), rtol=1e-4)
        assert not z.cov.any()


def test_covariances_score_beyond_their_rounding():
    """Where the law is not Gaussian its errors are measured, and may be as small."""
    law = Law(np.arange(1), 0.0 * MEAN, COV, is_gaussian=False)
    variances = np.diagonal(COV[0])
    gaussian = np.sqrt(np.outer(variances, variances) + COV**2)  # of such a shape all entries' tails agree
    for off, wanted in ((JUST_ROUNDING, 0.0), (MORE, 10.0)):
        run = run_of(COV, 0.0 * MEAN, is_gaussian=False, n_leaves=10**9, leaf_cov=(1.0 + off) * COV,
                     spread=0.1 * off * gaussian)
        np.testing.assert_allclose(run.z_scores(law).cov, wanted * COV / gaussian, rtol=1e-3)


def test_replicas_at_one_point_have_only_rounding():
    """Of a law without variance: what adding up equal numbers leaves, and nothing more."""
    law = Law(np.arange(1), MEAN, 0.0 * COV)
    for off, wanted in ((JUST_ROUNDING, 0.0), (MORE, np.inf)):
        scatter = (off * MEAN[0]) ** 2
        z = run_of(np.diag(scatter)[None], MEAN + off * MEAN).z_scores(law)
        assert z.largest() == wanted and np.abs(np.diagonal(z.cov[0])).tolist() == [wanted] * 2


def test_a_score_of_leaves_may_be_as_large_as_it_is_improbable():
    law = Law(np.arange(1), MEAN, COV, is_gaussian=False)
    run = run_of(COV, is_gaussian=False, n_leaves=10**6, leaf_cov=2.0 * COV, spread=1e-3 * COV)
    np.testing.assert_allclose(run.z_scores(law).cov, 37.0471, rtol=1e-5)  # a tail of 1e-300


@pytest.mark.parametrize("kind", ["upper", "lower"])
@pytest.mark.parametrize("law", [1.0, 1e-9, 1e9])
def test_a_bound_is_violated_by_more_than_rounding(kind, law):
    sign = -1.0 if kind == "upper" else 1.0
    for off, holds in ((JUST_ROUNDING, True), (MORE, False)):
        value = np.full(2, law * (1.0 + sign * off))
        bound = dataclasses.replace(small_bound(), value=value, terms={"all": value}, kind=kind)
        assert theory.check(bound, np.full(2, law)).holds is holds


def test_a_hypothesis_is_violated_by_more_than_rounding():
    for off, holds in ((JUST_ROUNDING, True), (MORE, False)):
        assert Assumption.at_most("step", 0.5 * (1.0 + off), 0.5).holds is holds


def test_terms_that_do_not_add_up_are_seen():
    bound = small_bound()
    assert dataclasses.replace(bound, value=(1.0 + JUST_ROUNDING) * bound.value)
    with pytest.raises(ValueError, match="they must add up to it"):
        dataclasses.replace(bound, value=(1.0 + MORE) * bound.value)


def test_another_target_is_seen():
    """Of a law whose target is not the bound's: by 1e-7 of its size."""
    problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1)
    bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=3)
    law = theory.exact_law(problem, algorithm, 3)
    size = float(np.sqrt(law.target.variances.sum()))
    for off, same in ((3e-8, True), (3e-6, False)):
        moved = dataclasses.replace(law, target=fs.Gaussian(law.target.mean + off * size, law.target.cov))
        if same:
            assert theory.check(bound, moved).n_compared == 4
        else:
            with pytest.raises(ValueError, match="target of the law differs"):
                theory.check(bound, moved)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_band_of_a_run_has_the_width_of_its_noise(level):
    """In one dimension: the quantile of two weighted chi-squares; the floor is the root of their mean."""
    n_replicas, variance = 400, 9.0
    target = fs.Gaussian([0.0], [variance])
    run = run_of(np.array([[[variance]]]), np.array([[5.0]]), n_replicas, target=target)
    parts = np.array([variance / n_replicas, variance / (2 * (n_replicas - 1))])
    rng = np.random.default_rng(1)
    drawn = rng.standard_normal((400_000, 2)) ** 2 @ parts
    low, high = run.w2_interval(level)[0]
    assert (high - 5.0) ** 2 == pytest.approx(np.quantile(drawn, level), rel=0.05)
    assert low == pytest.approx(10.0 - high, rel=1e-12)
    assert run.w2_floor()[0] ** 2 == pytest.approx(parts.sum(), rel=1e-12)


def test_the_alarm_is_as_loud_as_it_is_said_to_be():
    """The numbers that CONTRIBUTING.md names."""
    assert (FALSE_ALARM, P_LIMIT, MARGIN) == (1e-3, 5e-9, 1.5)
    assert pytest.approx(5.847, abs=1e-3) == Z_LIMIT
