"""What figures on image data share: division of rows, tuning, averages, bootstrap intervals."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import fedsim as fs
from fedsim import estimators
from reproduce.prediction import data, judging, runs
from reproduce.verdicts import FAIL, LEVEL, NOT_TESTABLE, PASS

P = SimpleNamespace(split_seed=0, n_clients=10, prior_variance=1.0, batch_size=10, tuning_seed=1)
PIXELS, LABELS, TITLE = data.pixels_of_digits()


@pytest.mark.parametrize("by_label", [False, True])
def test_rows_are_divided(by_label):
    """Every row is a client's, a validation or a test row, or one of fewer than N left over."""
    numbered = np.column_stack([np.arange(len(LABELS)), PIXELS])
    made = data.divided(numbered, LABELS, TITLE, P, by_label)
    parts = [made.problem.features[:, 0], made.validation.features[:, 0], made.test.features[:, 0]]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together) and 0 <= len(LABELS) - len(together) < 10
    assert [len(part) for part in parts[1:]] == [202, 449]
    assert (LABELS[parts[0].astype(int)] == made.problem.labels).all()
    assert set(made.problem.sizes.tolist()) == {len(parts[0]) // 10}
    held = [len(np.unique(made.problem.labels[made.problem.clients == c])) for c in range(10)]
    assert max(held) <= 3 if by_label else min(held) >= 8


def test_two_digits_are_logistic_regression():
    p = SimpleNamespace(**vars(P) | {"batch_size": None})
    made = data.divided(PIXELS, LABELS, TITLE, p, digits=(3, 8))
    assert isinstance(made.problem, fs.LogisticRegression) and set(np.unique(made.test.labels)) == {0, 1}
    x = np.random.default_rng(1).standard_normal((2, 65))
    chances = runs.probabilities(made.problem, x, made.test.features)
    assert chances.shape == (2, len(made.test.labels), 2)
    odds = np.exp(x @ made.test.features.T)
    np.testing.assert_allclose(chances[..., 1] / chances[..., 0], odds, rtol=1e-10)
    gram = made.problem.features.T @ made.problem.features
    assert made.curvature == pytest.approx(np.linalg.eigvalsh(gram)[-1] / 4 + 1.0, rel=1e-5)


def test_curvature_at_zero_is_that_of_the_hessian():
    made = data.divided(PIXELS, LABELS, TITLE, P)
    top = np.linalg.eigvalsh(made.problem.hessian(np.zeros(650)))[-1]
    assert made.curvature == pytest.approx(top, rel=1e-5) and len(str(made.curvature)) <= 7


def test_averages_are_of_probabilities():
    made = data.divided(PIXELS, LABELS, TITLE, P)
    path = np.random.default_rng(2).standard_normal((3, 650))
    each = made.problem.probabilities(path, made.test.features)
    found = runs.averages(made.problem, path, made.test.features)
    np.testing.assert_allclose(found[1], 0.5 * (each[0] + each[1]), rtol=1e-13)
    after = runs.averages(made.problem, path, made.test.features, left_out=1)
    np.testing.assert_allclose(after[-1], 0.5 * (each[1] + each[2]), rtol=1e-13)


def test_tuning_sees_validation_rows_alone():
    made = data.divided(PIXELS, LABELS, TITLE, P)
    case = [runs.Setting(1, fs.FALD, 10, 5, [0.1, 1.0, 3.0], 1.0 / made.curvature)]
    tuning, each = runs.tuned(made, case, P.tuning_seed)
    assert len(tuning) == 3 and len(each) == 6
    for row in tuning.itertuples():
        path = fs.sample_path(made.problem, fs.FALD(row.step / made.curvature), 10, seed=1, every=5,
                              allow_unstable=True)[0]
        last = made.problem.probabilities(path, made.validation.features).mean(axis=0)
        loss = estimators.log_loss(last, made.validation.labels)
        assert row.validation_nll == pytest.approx(loss, rel=1e-12)
    assert tuning.loc[tuning["chosen"], "validation_nll"].item() == tuning["validation_nll"].min()
    assert tuning["edge"].sum() == tuning["chosen"][[0, 2]].sum()
    wrong = runs.Labelled(made.test.features, made.test.labels[::-1])
    again, _ = runs.tuned(runs.Data(made.problem, made.validation, wrong, ""), case, P.tuning_seed)
    assert (again["validation_nll"] == tuning["validation_nll"]).all()
    assert (again["nll"] != tuning["nll"]).all()


def predictives(rng, n_runs, n_rows, sharpness):
    """Runs' predictives of labels from 0 to 2, the better the sharper; and the labels."""
    labels = rng.integers(0, 3, n_rows)
    hard = rng.standard_normal((n_rows, 3))
    scores = hard + sharpness * np.eye(3)[labels] + 0.2 * rng.standard_normal((n_runs, n_rows, 3))
    parts = np.exp(scores)
    return parts / parts.sum(axis=-1, keepdims=True), labels


def test_differences_are_those_of_the_scores():
    rng = np.random.default_rng(5)
    ends, labels = predictives(rng, 3, 80, 1.0)
    last = {1: ends, 4: predictives(rng, 2, 80, 2.0)[0]}
    table = judging.compared(last, labels, 1, 0)
    for row in table.itertuples():
        score = runs.SCORES[row.score]
        means = [np.mean([score(one, labels) for one in last[value]]) for value in (1, 4)]
        sign = -1.0 if row.score == "accuracy" else 1.0
        assert row.worse == pytest.approx(sign * (means[0] - means[1]), abs=1e-12)
        assert row.low < row.worse < row.high


def test_intervals_cover(alarm):
    """Of two equally good settings; in all scores but ECE, whose bias is no larger than its intervals."""
    wrong, n_sets = 0, 60
    for number in range(n_sets):
        rng = np.random.default_rng([7, number])
        both, labels = predictives(rng, 10, 150, 1.5)
        table = judging.compared({1: both[:5], 2: both[5:]}, labels, 1, number)
        table = table[table["score"] != "ece"]
        wrong += bool(((table["low"] > 0.0) | (table["high"] < 0.0)).any())
    alarm.assert_pvalue(stats.binom.sf(wrong - 1, n_sets, 5 * LEVEL), "missed")  # runs are few: five percent


def test_a_worse_setting_is_found_and_an_equal_one_is_not():
    rng = np.random.default_rng(9)
    both, labels = predictives(rng, 10, 400, 1.5)
    blurred = 0.5 * both[:5] + 0.5 / 3.0
    scores = ["brier", "nll"]
    tables = {name: judging.compared(last, labels, 1, 0).assign(round=4) for name, last in {
        "worse": {1: blurred, 2: both[5:]}, "equal": {1: both[:5], 2: both[5:]},
        "better": {1: both[:5], 2: 0.5 * both[5:] + 0.5 / 3.0}}.items()}
    found = [judging.worst(table, scores, finding=True)[0] for table in tables.values()]
    assert found == [PASS, NOT_TESTABLE, FAIL]
    assert judging.worst(tables["better"], scores)[0] == NOT_TESTABLE  # of a claim
    assert judging.better(tables["better"], "nll", "1", "K")[0] == PASS
