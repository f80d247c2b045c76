"""What figures on image data share: division of rows, tuning, averages, bootstrap intervals."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import fedsim as fs
from fedsim import estimators
from reproduce import images
from reproduce.figure import BadInput
from reproduce.prediction import data, judging, runs
from reproduce.verdicts import FAIL, NOT_TESTABLE, PASS

P = SimpleNamespace(split_seed=0, n_clients=10, prior_variance=1.0, tuning_seed=1)
DIGITS = images.digits()


def dealt(batch_size=10, whole=DIGITS, **options):
    return data.dealt(whole, P, batch_size, **options)


@pytest.mark.parametrize("by_label", [False, True])
def test_rows_are_divided(by_label):
    """Every row is a client's, a validation or a test row, or one of fewer than N left over."""
    numbers = np.arange(1797)
    numbered = images.ImageData("numbers", np.column_stack([numbers % 256, numbers // 256]).astype(np.uint8),
                                DIGITS.labels, 255)
    made = dealt(whole=numbered, by_label=by_label)
    parts = [part[:, 0] + 256 * part[:, 1].astype(int) for part in (
        made.problem.features, made.validation.features, made.test.features)]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together) and 0 <= len(DIGITS.labels) - len(together) < 10
    assert [len(part) for part in parts[1:]] == [202, 449]
    for part, labels in zip(parts, (made.problem.labels, made.validation.labels, made.test.labels),
                            strict=True):
        assert (DIGITS.labels[part] == labels).all()
    assert set(made.problem.sizes.tolist()) == {len(parts[0]) // 10}
    held = [len(np.unique(made.problem.labels[made.problem.clients == c])) for c in range(10)]
    assert max(held) <= 3 if by_label else min(held) >= 8


def test_equal_labels_keep_their_random_order():
    """The same rows at the same clients on every processor."""
    train, _, _ = DIGITS.divided(0)
    wanted = sorted(train[:10 * (len(train) // 10)].tolist(), key=lambda row: DIGITS.labels[row])
    np.testing.assert_array_equal(dealt(by_label=True).problem.features, DIGITS.features[wanted])


def test_step_sizes_that_diverge_are_left_out():
    made = dealt()
    case = runs.Setting(1, fs.FALD, 60, 10, [1.0, 1e12], 1.0 / made.curvature)
    tries = runs.tried(made, [case], 1)
    assert [step for _, step, _ in tries] == [1.0]
    tuning = pd.DataFrame({"setting": [1], "step": [1e12], "chosen": [True]})
    assert runs.run(made, [case], tuning, 1, 2) == {}


def test_two_classes_move_as_logistic_regression():
    """With half the prior variance, and the same step sizes in units of the curvature."""
    two = DIGITS.of_classes(3, 8, "3 and 8")
    made = dealt(None, two)
    rows = made.problem.features * made.problem.feature_scale
    logistic = fs.LogisticRegression(rows, made.problem.labels, made.problem.clients, prior_variance=1.0)
    top = np.linalg.eigvalsh(rows.T @ rows)[-1] / 4.0 + 1.0
    assert made.curvature == pytest.approx(2.0 * top, rel=1e-5)
    cold = {"local_steps": 3, "temperature": 1e-30}
    ours = fs.sample_path(made.problem, fs.FALD(0.5 / made.curvature, **cold), 4, seed=1)[0]
    other = fs.sample_path(logistic, fs.FALD(1.0 / made.curvature, **cold), 4, seed=1)[0]
    np.testing.assert_allclose(ours[:, 65:] - ours[:, :65], other, rtol=1e-9, atol=1e-12)
    chances = made.problem.probabilities(ours, made.test.features)
    odds = np.exp(other @ (made.test.features * made.problem.feature_scale).T)
    np.testing.assert_allclose(chances[..., 1] / chances[..., 0], odds, rtol=1e-8)


def test_a_minibatch_is_at_most_a_clients_data():
    assert dealt(200).problem.batch_size == dealt().problem.sizes[0] == 114
    assert dealt(100).problem.batch_size == 100 and dealt(None).problem.batch_size is None


def few(n):
    """The first n digits."""
    return images.ImageData(f"{n} digits", DIGITS.pixels[:n], DIGITS.labels[:n], 16)


@pytest.mark.parametrize(("n", "message"), [
    (12, r"12 digits, 0 training rows dealt to 10 clients: labels has dtype int64 and shape \(0,\)"),
    (20, r"20 digits, 10 training rows dealt to 10 clients: labels: class 3 has no rows"),
])
def test_too_few_rows_are_refused_by_name(n, message):
    with pytest.raises(BadInput, match=message):
        dealt(whole=few(n))


def test_which_data_are_used(monkeypatch):
    given = {"mnist": DIGITS, "fashion": None}
    monkeypatch.setattr(data, "idx_set", lambda folder, files: given[folder] if files else None)
    assert data.chosen("quick", {"a": ""}, ["mnist", "fashion"]) == {"mnist": DIGITS}
    stand_in = data.chosen("quick", {}, ["mnist", "fashion"])
    assert [one.name for one in stand_in.values()] == [
        "digits (8 x 8, 1,797 real digits) in place of MNIST and Fashion-MNIST"]
    assert [one.name for one in data.chosen("paper", {}, ["fashion"]).values()] == [
        "digits (8 x 8, 1,797 real digits) in place of Fashion-MNIST",
        "MNIST, 5,000 of 60,000 in place of Fashion-MNIST"]


def test_no_exact_predictive_in_many_dimensions(monkeypatch):
    monkeypatch.setattr(runs, "MOST_EXACT", 649)
    assert runs.exact(dealt(), 1.0, P) == (None, {})


def test_curvature_at_zero_is_that_of_the_hessian(monkeypatch):
    monkeypatch.setattr(runs, "ROWS_AT_A_TIME", 500)
    made = dealt()
    top = np.linalg.eigvalsh(made.problem.hessian(np.zeros(650)))[-1]
    assert made.curvature == pytest.approx(top, rel=1e-5) and len(str(made.curvature)) <= 7


@pytest.mark.parametrize(("left_out", "kept"), [(0, [30, 50, 100]), (3, [50, 70, 100])])
def test_settings_are_compared_after_a_quarter_a_half_and_all(left_out, kept):
    """Of 10 samples those after 3, 5 and 10; of the last 7 those after 2, 4 and 7."""
    made = dealt()
    path = np.random.default_rng(3).standard_normal((1, 10, 650))
    case = runs.Setting(4, partial(fs.FAHMC, leapfrog_steps=4, local_steps=3), 100, 10, [1.0], 1e-3)
    table, last = runs.curves(made, [case], {4: path}, left_out)
    assert list(last) == kept and table["round"].tolist() == list(range(10 * left_out + 10, 101, 10))
    each = made.problem.probabilities(path[0], made.test.features)
    for number, at in last.items():
        np.testing.assert_allclose(at[4][0], each[left_out:number // 10].mean(axis=0), rtol=1e-9)
    assert (table["gradients"] == 3 * 7 * table["round"]).all()  # of minibatches 2 K - 1 in T updates


def test_size_of_minibatches():
    """Digits have their own."""
    p = SimpleNamespace(digits_batch_size=50, batch_size=200)
    larger = images.ImageData("larger", np.tile(DIGITS.pixels, 2), DIGITS.labels, 16)
    assert (data.batch_size(p, DIGITS), data.batch_size(p, larger)) == (50, 200)


def test_averages_are_of_probabilities():
    made = dealt()
    path = np.random.default_rng(2).standard_normal((3, 650))
    each = made.problem.probabilities(path, made.test.features)
    found = runs.averages(made.problem, path, made.test.features)
    np.testing.assert_allclose(found[1], 0.5 * (each[0] + each[1]), rtol=1e-13)
    after = runs.averages(made.problem, path, made.test.features, left_out=1)
    np.testing.assert_allclose(after[-1], 0.5 * (each[1] + each[2]), rtol=1e-13)


def test_tuning_sees_validation_rows_alone():
    made = dealt()
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


def test_a_worse_setting_is_found_and_an_equal_one_is_not():
    rng = np.random.default_rng(9)
    both, labels = predictives(rng, 10, 400, 1.5)
    blurred = 0.5 * both[:5] + 0.5 / 3.0
    scores = ["brier", "nll"]
    tables = {name: judging.compared(last, labels, 1, 0).assign(round=4) for name, last in {
        "worse": {1: blurred, 2: both[5:]}, "equal": {1: both[:5], 2: both[5:]},
        "better": {1: both[:5], 2: 0.5 * both[5:] + 0.5 / 3.0}}.items()}
    found = [judging.worst(table, scores)[0] for table in tables.values()]
    assert found == [PASS, NOT_TESTABLE, FAIL]
    inside, outside = (pd.DataFrame({"setting": [2], "edge": [edge]}) for edge in (False, True))
    assert judging.better(tables["better"], inside, "nll", "1", "K")[0] == PASS
    assert judging.better(tables["better"], outside, "nll", "1", "K")[0] == NOT_TESTABLE


def test_all_data_sets_have_to_agree():
    facts = pd.DataFrame({"set": ["m", "m", "f"], "data": ["MNIST", "MNIST", "Fashion"]})
    wanted = pd.DataFrame({"set": ["m", "f"], "verdict": [PASS, NOT_TESTABLE]})

    def judge(own):
        return own["wanted"]["verdict"].item(), f"So it is ({len(own['facts'])})."

    def judged(*verdicts, sets=()):
        return judging.on_sets({"facts": facts, "wanted": wanted.assign(verdict=verdicts)}, judge, sets)

    assert judged(PASS, PASS) == (PASS, "MNIST. So it is (2). Fashion. So it is (1).", "")
    assert judged(PASS, NOT_TESTABLE).verdict == NOT_TESTABLE and judged(NOT_TESTABLE, FAIL).verdict == FAIL
    assert judged(PASS, NOT_TESTABLE, sets=["m"]) == (PASS, "MNIST. So it is (2).", "")
    found = judged(PASS, PASS, sets=["kmnist"])
    assert found.verdict == NOT_TESTABLE
    assert found.why == "The data are MNIST and Fashion: give kmnist with --data."
