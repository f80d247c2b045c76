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


def test_three_classes_by_hand():
    """With two the wrong class's part equals the label's, and a share of classes may hide."""
    rows, labels = [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], [0, 1]
    assert estimators.brier_score(rows, labels) == pytest.approx((0.38 + 1.04) / 2)
    assert estimators.calibration_error(rows, labels, 1) == pytest.approx(abs(0.5 - 0.55))
    assert estimators.calibration_error([[0.5, 0.5], [0.6, 0.4]], [0, 0], 1) == pytest.approx(0.45)  # a tie


def test_probabilities_may_be_rounded_as_those_of_small_floats_are():
    rows = np.full((1, 3), 1 / 3, np.float32) * np.float32(1 + 3e-7)
    assert abs(float(rows.astype(float).sum()) - 1.0) > 1e-8 and estimators.accuracy(rows, [0]) == 1.0


def test_errors_by_hand():
    """Averages 1, 2, 3 and 6 of the truth 2: mean 3, squares about it 4 + 1 + 0 + 9, about the truth 18."""
    for level, half in ((0.95, 3.182446305284), (0.9, 2.353363434802)):  # Student's, three degrees
        found = estimators.errors([1.0, 2.0, 3.0, 6.0], 2.0, level)
        error = np.sqrt(14 / 3 / 4)
        assert found.bias == pytest.approx((1.0, error, 1.0 - half * error, 1.0 + half * error), rel=1e-11)
        assert found.bias.low < 0.0  # a bias has its sign
        error = np.sqrt(59 / 4)
        assert found.mse == pytest.approx((4.5, error, 0.0, 4.5 + half * error), rel=1e-11)
        error = np.sqrt((24.5 - (14 / 3) ** 2 / 3) / 4)  # from the fourth moment 24.5
        factor = np.exp(half * error / (14 / 3))
        assert found.variance == pytest.approx((14 / 3, error, 14 / 3 / factor, 14 / 3 * factor), rel=1e-11)
    assert estimators.errors([1.0, 1.0, 1.0, 1.0], 0.0).variance == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("arguments", "words"), [
    (([1.0, 2.0, 3.0], 0.0), "averages has 3 entries; it must have at least 4"),
    (([1.0, 2.0, 3.0, np.nan], 0.0), r"averages\[3\]=nan must be finite"),
    (([1.0, 2.0, 3.0, 4.0], 0.0, 1.0), "level=1.0 must be less than 1"),
    (([1.0, 2.0, 3.0, 4.0], 0.0, 0.0), "level=0.0 must be greater than 0")])
def test_bad_averages_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        estimators.errors(*arguments)


def test_servers_count_by_their_times():
    combined = estimators.combine([[1.0, 2.0], [4.0, 5.0], [0.0, 8.0]], times=[4.0, 1.0, 3.0])
    np.testing.assert_allclose(combined, [1.0, 37 / 8], rtol=1e-14)
