"""Slopes, fitted constants and shapes of rates."""

from __future__ import annotations

import numpy as np
import pytest

from theory import rates

SEED = 20240711


def test_slopes_cover_the_truth():
    """Scattered power laws: the 90% interval covers the exponent about nine times in ten."""
    rng = np.random.default_rng(SEED)
    x = np.geomspace(1, 100, 8)
    covered = sum(1.5 in rates.loglog_slope(x, x**1.5 * np.exp(0.1 * rng.standard_normal(8)), level=0.9)
                  for _ in range(1000))
    assert 860 <= covered <= 940  # 4 standard deviations
    slope = rates.loglog_slope(x, 3 * x**0.5)
    assert slope.value == pytest.approx(0.5, abs=1e-12) and slope.high - slope.low < 1e-9
    assert "95% interval" in str(slope)


def test_slope_against_the_textbook():
    x, y = np.array([1.0, 2.0, 4.0, 9.0]), np.array([1.0, 3.0, 5.0, 30.0])
    u, v = np.log(x), np.log(y)
    slope, error = np.polyfit(u, v, 1)[0], None
    rest = v - np.polyval(np.polyfit(u, v, 1), u)
    error = np.sqrt((rest**2).sum() / 2 / ((u - u.mean()) ** 2).sum())
    found = rates.loglog_slope(x, y)
    assert found.value == pytest.approx(slope)
    assert found.high - found.value == pytest.approx(4.302652729696142 * error)  # t_{0.975, 2}


def test_fitted_constants_and_drift():
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    right = rates.fit_rate(x, np.sqrt(x), 2.5 * np.sqrt(x))
    assert right.constant == pytest.approx(2.5) and right.spread == pytest.approx(1.0)
    assert right.drift is not None and 0.0 in right.drift
    wrong = rates.fit_rate(x, np.sqrt(x), 2.5 * x)
    assert 0.0 not in wrong.drift and wrong.drift.value == pytest.approx(0.5)
    assert (wrong.curve >= wrong.measured * (1 - 1e-12)).all() and "fitted" in wrong.label
    lower = rates.fit_rate(x, np.sqrt(x), 2.5 * x, side="lower")
    assert (lower.curve <= lower.measured * (1 + 1e-12)).all()
    assert rates.fit_rate([1.0, 2.0], [1.0, 1.0], [1.0, 2.0]).drift is None


@pytest.mark.parametrize("call, words", [
    (lambda: rates.loglog_slope([1.0, 2.0], [1.0, 2.0]), "x has 2 different entries; 3 are needed"),
    (lambda: rates.loglog_slope([1.0, 2.0, 0.0], [1.0, 2.0, 3.0]), "x has an entry 0"),
    (lambda: rates.loglog_slope([1.0, 2.0, 3.0], [1.0, 2.0]), "y has shape"),
    (lambda: rates.loglog_slope([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], level=1.0), "level=1.0"),
    (lambda: rates.fit_rate([1.0, 2.0], [1.0, -2.0], [1.0, 2.0]), "rate has an entry -2"),
    (lambda: rates.fit_rate([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], side="both"), "side='both'"),
    (lambda: rates.fit_affine([1.0, 1.0], [1.0, 2.0]), "x has 1 different entries"),
    (lambda: rates.fit_root_log([1.0, float("nan")], [1.0, 2.0]), "must be finite"),
])
def test_bad_input_of_rates(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_figure_two_fits():
    """n = a sqrt(d) log(c d) is recovered, and n^2 = a d + b nearly fits it too."""
    d = np.array([2, 50, 100, 200, 400, 600, 800, 1000], float)
    n = 20.0 * np.sqrt(d) * np.log(3.0 * d)
    a, log_c, share = rates.fit_root_log(d, n)
    assert (a, log_c, share) == (pytest.approx(20.0), pytest.approx(np.log(3.0)), pytest.approx(1.0))
    assert 0.95 < rates.fit_affine(d, n**2).r_squared < 1.0
