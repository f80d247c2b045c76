"""Scores of predicted probabilities, by hand; each value would be another one with a usual slip."""

import numpy as np
import pytest

from fedsim import estimators

ROWS, LABELS = [[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]], [0, 1, 0]


def test_scores_by_hand():
    assert estimators.accuracy(ROWS, LABELS) == pytest.approx(1 / 3)  # a tie goes to the first class
    assert estimators.brier_score(ROWS, LABELS) == pytest.approx((0 + 0.5 + 1.28) / 3)  # not divided by C
    assert estimators.log_loss(ROWS, LABELS) == pytest.approx((np.log(2) + np.log(5)) / 3)
    assert estimators.calibration_error(ROWS, LABELS) == pytest.approx((0 + 0.5 + 0.8) / 3)
    assert estimators.log_loss([[0.0, 1.0]], [0]) == pytest.approx(300 * np.log(10))


@pytest.mark.parametrize(("confidences", "correct", "n_bins", "expected"), [
    ((0.8, 0.75), (False, True), 15, 0.275),  # both in (11/15, 12/15]; 0.525 with bins closed on the left
    ((0.72, 0.78), (True, False), 15, 0.53),  # in two bins; 0.25 with ten bins, which hold both
    ((0.72, 0.78), (True, False), 10, 0.25),
    ((0.9, 0.6), (True, True), 1, 0.25),
    ((1.0, 0.5), (False, False), 15, 0.75)])
def test_bins_of_confidence(confidences, correct, n_bins, expected):
    rows = [[c, 1.0 - c] for c in confidences]
    labels = [0 if right else 1 for right in correct]
    assert estimators.calibration_error(rows, labels, n_bins) == pytest.approx(expected, abs=1e-12)


def test_there_are_15_bins_unless_told():
    assert estimators.calibration_error([[0.72, 0.28], [0.78, 0.22]], [0, 1]) == pytest.approx(0.53)


def test_gaps_within_a_bin_cancel():
    """|sum|, not the sum of sizes."""
    rows = [[0.7, 0.3], [0.7, 0.3], [0.7, 0.3]]
    assert estimators.calibration_error(rows, [0, 0, 1]) == pytest.approx(abs(2 / 3 - 0.7))


def test_predictive_averages_probabilities():
    """Neither their logarithms nor the scores; and its scores are not averages of scores."""
    samples = np.array([[[0.9, 0.1]], [[0.1, 0.9]], [[0.8, 0.2]]])
    running = estimators.predictive(samples, running=True)
    np.testing.assert_allclose(running[:, 0, 0], [0.9, 0.5, 0.6], rtol=1e-14)
    np.testing.assert_allclose(estimators.predictive(samples), running[-1], rtol=1e-14)
    losses = [estimators.log_loss(sample, [0]) for sample in samples]
    assert estimators.log_loss(running[-1], [0]) == pytest.approx(-np.log(0.6))
    assert abs(np.mean(losses) + np.log(0.6)) > 0.1


SCORES = [estimators.accuracy, estimators.brier_score, estimators.log_loss, estimators.calibration_error]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("rows", "labels", "message"), [
    ([[0.5, 0.501]], [0], r"probabilities\[0\] has entries from 0.5 on and the sum 1.001"),
    ([[0.5, 0.6]], [0], r"probabilities\[0\] has entries from 0.5 on and the sum 1.1"),
    ([[1.0, 0.0], [-0.5, 1.5]], [0, 1], r"probabilities\[1\] has entries from -0.5 on"),
    ([[0.5, 0.5]], [2], r"labels\[0\]=2 must lie in 0, ..., 1"), ([[0.5, 0.5]], [-1], r"labels\[0\]=-1"),
    ([[0.5, 0.5]], [0.0], "labels must be an array of integers"), ([[0.5, 0.5]], [0, 1], "labels has shape"),
    ([0.5, 0.5], [0], "probabilities has shape"), ([[np.nan, 0.5]], [0], r"probabilities\[0, 0\]=nan")])
def test_bad_input_is_refused(score, rows, labels, message):
    with pytest.raises(ValueError, match=message):
        score(rows, labels)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="n_bins=0 must be at least 1"):
        estimators.calibration_error(ROWS, LABELS, 0)
    with pytest.raises(ValueError, match="running=2"):
        estimators.predictive([ROWS], running=2)
