"""Intervals of differences of scores: few runs, shared test rows, a biased score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedsim import estimators
from reproduce.prediction import judging
from reproduce.verdicts import LEVEL

MEANS, SPREADS = {1: 3.2, 2: 3.0, 3: 3.1}, {1: 0.3, 2: 0.05, 3: 0.15}


def additive(rng, n_runs, n_rows, of_rows=0.3, of_runs=1.0):
    """Predictives of two classes whose log losses are a mean, a row's and a run's normal part; labels."""
    last = {}
    for value, mean in MEANS.items():
        losses = mean + of_rows * rng.standard_normal(n_rows) + (
            of_runs * SPREADS[value] * rng.standard_normal((n_runs, 1)))
        chances = np.exp(-losses)
        last[value] = np.stack([chances, 1.0 - chances], axis=-1)
    return last, np.zeros(n_rows, dtype=int)


def drawn_again(last, labels, seed):
    """The wrong form: rows and runs drawn again, and the bootstrap's own quantile, of the log loss."""
    rng, n_rows = np.random.default_rng(seed), len(labels)
    losses = {value: -np.log(one[:, :, 0]) for value, one in last.items()}
    weights = rng.multinomial(n_rows, np.full(n_rows, 1.0 / n_rows), judging.N_DRAWS) / n_rows
    again = {}
    for value, one in losses.items():
        runs = rng.multinomial(len(one), np.full(len(one), 1.0 / len(one)), judging.N_DRAWS) / len(one)
        again[value] = (runs * (weights @ one.T)).sum(axis=1)
    worse = np.array([losses[1].mean() - losses[value].mean() for value in (2, 3)])
    draws = np.array([again[1] - again[value] for value in (2, 3)])
    spread = draws.std(axis=1, ddof=1)
    shift = (np.abs(draws - worse[:, None]) / spread[:, None]).max(axis=0)
    half = np.quantile(shift, 1.0 - LEVEL) * spread
    return worse - half, worse + half


@pytest.mark.parametrize("n_runs", [2, 5])
def test_intervals_of_few_runs_cover(alarm, monkeypatch, n_runs):
    """Both differences at once, at the level; with runs drawn again they do not."""
    monkeypatch.setattr(judging, "N_DRAWS", 200)
    truth, wrong, n_sets = np.array([0.2, 0.1]), {"ours": 0, "drawn again": 0}, 600
    for number in range(n_sets):
        last, labels = additive(np.random.default_rng([n_runs, number]), n_runs, 60)
        table = judging.compared(last, labels, 1, number)
        table = table[table["score"] == "nll"]
        wrong["ours"] += bool(((table["low"] > truth) | (table["high"] < truth)).any())
        low, high = drawn_again(last, labels, number)
        wrong["drawn again"] += bool(((low > truth) | (high < truth)).any())
    alarm.assert_pvalue(stats.binom.sf(wrong["ours"] - 1, n_sets, LEVEL), "missed")
    expected = n_sets * LEVEL
    alarm.must_fail((wrong["drawn again"] - expected) / np.sqrt(expected * (1.0 - LEVEL)), "drawn again")


def halves(table, score):
    own = table[table["score"] == score].set_index("setting")
    return 0.5 * (own["high"] - own["low"])


def test_the_half_width_is_the_sum_of_squares():
    """Of Student's for each part: runs alone, rows alone, both; at the level over two comparisons."""
    rng, tail = np.random.default_rng(3), LEVEL / 4.0
    for of_rows, of_runs, known in ((0.0, 1.0, ()), (0.3, 0.0, ()), (0.3, 1.0, ()), (0.3, 1.0, (3,))):
        last, labels = additive(rng, 4, 300, of_rows, of_runs)
        found = halves(judging.compared(last, labels, 1, 0, known), "nll")
        losses = {value: -np.log(one[:, :, 0]) for value, one in last.items()}
        for value in (2, 3):
            rows = (losses[1] - losses[value]).mean(axis=0).var() / 300
            runs = sum(losses[one].mean(axis=1).var(ddof=1) / 4 for one in {1, value} - set(known))
            half = np.sqrt(stats.t.isf(tail, 299) ** 2 * rows + stats.t.isf(tail, 3) ** 2 * runs)
            assert found[value] == pytest.approx(half, rel=1e-9 if of_rows == 0.0 else 0.1)


def test_more_comparisons_are_wider():
    last, labels = additive(np.random.default_rng(4), 3, 50, of_rows=0.0)
    two = halves(judging.compared(last, labels, 1, 0), "nll")[2]
    one = halves(judging.compared({1: last[1], 2: last[2]}, labels, 1, 0), "nll")[2]
    assert two / one == pytest.approx(stats.t.isf(LEVEL / 4.0, 2) / stats.t.isf(LEVEL / 2.0, 2), rel=1e-9)


def test_rows_are_those_of_all_settings():
    """What a row adds to both is in no difference."""
    last, labels = additive(np.random.default_rng(5), 3, 100, of_runs=0.0)
    same = {1: last[1], 2: last[1] ** 1.0}
    assert halves(judging.compared(same, labels, 1, 0), "nll")[2] == pytest.approx(0.0, abs=1e-12)
    assert halves(judging.compared(last, labels, 1, 0), "nll")[2] > 0.05


def test_a_single_run_is_refused():
    last, labels = additive(np.random.default_rng(6), 2, 20)
    with pytest.raises(ValueError, match=r"last\[2\] has 1 runs; it must have at least 2"):
        judging.compared(last | {2: last[2][:1]}, labels, 1, 0)
    assert len(judging.compared(last | {2: last[2][:1]}, labels, 1, 0, known=[2])) == 8


def test_the_half_width_of_a_calibration_error_has_its_bias():
    """Rows drawn again make it larger on average: that shift is in the half width, beside its spread."""
    rng, n_rows = np.random.default_rng(7), 300
    chance = rng.uniform(0.5, 1.0, n_rows)
    labels = (rng.random(n_rows) > chance).astype(int)
    many = np.stack([chance, 1.0 - chance], axis=-1)
    single = np.tile([0.9, 0.1], (n_rows, 1))  # far from calibrated: no bias
    found = halves(judging.compared({1: many[None], 2: single[None]}, labels, 1, 0, known=[1, 2]), "ece")[2]
    plain = estimators.calibration_error(many, labels) - estimators.calibration_error(single, labels)
    moved = []
    for _ in range(1000):
        rows = rng.integers(0, n_rows, n_rows)
        moved.append(estimators.calibration_error(many[rows], labels[rows])
                     - estimators.calibration_error(single[rows], labels[rows]) - plain)
    student = stats.t.isf(LEVEL / 2.0, n_rows - 1)
    assert found == pytest.approx(student * np.sqrt(np.mean(np.square(moved))), rel=0.1)
    assert found > 1.15 * student * np.std(moved)


def test_rows_on_the_edge_of_a_bin():
    """They are in the bin that the score has them in."""
    rng = np.random.default_rng(8)
    chance = np.concatenate([rng.choice(np.arange(8, 15) / 15, 60), rng.uniform(0.5, 1.0, 60)])
    labels = (rng.random(120) > chance).astype(int)
    edges, other = np.stack([chance, 1.0 - chance], axis=-1), np.tile([0.9, 0.1], (120, 1))
    table = judging.compared({1: edges[None], 2: other[None]}, labels, 1, 0, known=[1, 2])
    difference = estimators.calibration_error(edges, labels) - estimators.calibration_error(other, labels)
    assert table.set_index("score")["worse"]["ece"] == pytest.approx(difference, abs=1e-12)
