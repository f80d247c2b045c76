"""The Adult data: the stand-in is what it says, and given files are read, cut and checked."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from fedsim.data.libsvm import Labelled
from reproduce.discovery import figures
from reproduce.figure import BadInput, settings
from reproduce.stale import adult
from reproduce.verdicts import NOT_TESTABLE

FIGURES = ["stale_fig2_logistic", "stale_fig3_logistic", "stale_fig4_logistic", "stale_figs6_11_logistic"]
QUICK = settings(adult.PARAMETERS, "quick")


def as_text(rows):
    """Rows in LIBSVM's format, labels -1 and +1."""
    lines = []
    for row, label in zip(rows.features, rows.labels, strict=True):
        lines.append(("+1" if label else "-1") + "".join(f" {i + 1}:{row[i]:g}" for i in np.flatnonzero(row)))
    return " \n".join([*lines, ""])


@pytest.fixture(name="files")
def _files(tmp_path, monkeypatch):
    """Files of 40 and 30 rows, in the place of a9a's."""
    monkeypatch.setattr(adult, "N_TRAIN", 40)
    monkeypatch.setattr(adult, "N_TEST", 30)
    rows = adult.stand_in(70, 1.0, 5)
    monkeypatch.setattr(adult, "ONES", [int(rows.labels[:40].sum()), int(rows.labels[40:].sum())])
    for name, first, last in (("a9a", 0, 40), ("a9a.t", 40, 70)):
        (tmp_path / name).write_text(as_text(Labelled(rows.features[first:last], rows.labels[first:last])))
    return rows, {name: tmp_path / name for name in adult.DATA}


def test_the_stand_in_looks_like_a9a():
    rows = adult.stand_in(20_000, 0.8, 0)
    assert rows.features.shape == (20_000, 123) and set(np.unique(rows.features)) == {0.0, 1.0}
    np.testing.assert_allclose(rows.features.sum(axis=1).mean(), 13.87, atol=0.01)
    np.testing.assert_allclose(rows.labels.mean(), 0.24, atol=0.012)  # four standard errors
    ends = np.cumsum((0, *adult.ANSWERS))
    for question, (first, last) in enumerate(pairwise(ends)):
        answers = rows.features[:, first:last].sum(axis=1)
        assert answers.max() == 1.0 and (question in adult.OPEN or answers.min() == 1.0)
    assert (adult.stand_in(50, 0.8, 0).features == adult.stand_in(50, 0.8, 0).features).all()


def test_the_stand_in_is_called_so_and_cut_into_two():
    data = next(adult.adults(QUICK, {}))
    table = adult.data_table([data])
    assert data.source == "SYNTHETIC STAND-IN for a9a" == table["source"].iloc[0]
    assert len(data.train.labels) == QUICK.n_train and len(data.test.labels) == QUICK.n_test
    assert adult.data_text(table).startswith("SYNTHETIC STAND-IN for a9a: 1,000 training and 400 test rows")


def test_given_files_are_read_and_cut(files):
    rows, paths = files
    p = SimpleNamespace(**{**vars(QUICK), "n_train": 25, "n_test": 10})
    data = next(adult.adults(p, paths))
    assert data.source == adult.A9A and "UNVERIFIED" in adult.A9A
    np.testing.assert_array_equal(data.train.features, rows.features[:25])
    np.testing.assert_array_equal(data.train.labels, rows.labels[:25])
    np.testing.assert_array_equal(data.test.features, rows.features[40:50])


def test_further_splits_deal_all_rows_of_the_files(files):
    rows, paths = files
    found = list(adult.adults(QUICK, paths))
    assert len(found) == QUICK.n_sets == 12
    everything = np.sort(rows.features @ np.arange(1.0, 124.0))
    for number, one in enumerate(found):
        assert (len(one.train.labels), len(one.test.labels)) == (40, 30)
        dealt = np.concatenate([one.train.features, one.test.features])
        np.testing.assert_array_equal(np.sort(dealt @ np.arange(1.0, 124.0)), everything)
        assert (dealt == rows.features).all() == (number == 0)


def test_stand_ins_differ():
    found = list(adult.adults(QUICK, {}))
    assert len({one.train.features.tobytes() for one in found}) == 12
    assert adult.data_table(found)["sets"].iloc[0] == 12


def test_half_of_the_files_or_a_broken_one_is_refused(files):
    paths = files[1]
    with pytest.raises(BadInput, match=r"a9a\.t is missing beside a9a"):
        next(adult.adults(QUICK, {"a9a": paths["a9a"]}))
    text = paths["a9a.t"].read_text()
    paths["a9a.t"].write_text(text.replace(":1", ":one", 1))
    with pytest.raises(BadInput, match=r"a9a\.t, line 1: value 'one'"):
        next(adult.adults(QUICK, paths))


def test_as_many_rows_of_other_classes_are_not_a9a(files, monkeypatch):
    monkeypatch.setattr(adult, "ONES", [adult.ONES[0], adult.ONES[1] + 1])
    assert next(adult.adults(QUICK, files[1])).source == adult.own_name(40, 30)


def test_other_rows_are_read_and_called_so(files):
    paths = files[1]
    text = paths["a9a"].read_text()
    paths["a9a"].write_text(text[:text.rindex("\n", 0, -1) + 1])
    found = list(adult.adults(QUICK, paths))
    assert {one.source for one in found} == {"39 and 30 rows of --data, NOT THE PAPER'S DATA"}
    assert {len(one.train.labels) for one in found} == {39}
    assert "NOT THE PAPER'S DATA" in adult.data_text(adult.data_table(found))
    figure = figures()["stale_fig2_logistic"]
    tables = figure.compute("tiny", paths)
    for claim in figure.claims(tables):
        assert claim["verdict"] == NOT_TESTABLE and "rows of --data, NOT THE PAPER'S DATA" in claim["why"]
    assert any("NOT THE PAPER'S DATA" in one["why"] for one in figure.findings(tables))
    paths["a9a"].write_text("\n".join(text.split("\n")[:9]) + "\n")
    with pytest.raises(BadInput, match="a9a has 9 rows; expected at least 10, those of a minibatch"):
        next(adult.adults(QUICK, paths))


def test_the_test_loss_is_the_mean_logistic_loss():
    data = next(adult.adults(QUICK, {}))
    points = np.random.default_rng(0).standard_normal((3, 700, 123))
    problem = adult.Adult(data.test, data.test, "").problem(QUICK)
    expected = (problem.potential(None, points) - 0.5 * (points**2).sum(axis=-1)) / len(data.test.labels)
    np.testing.assert_allclose(data.loss(points), expected, rtol=1e-10)


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_read_the_given_files(files, name):
    assert figures()[name].data == ("a9a", "a9a.t")
    table = figures()[name].compute("tiny", files[1])["data"]
    assert table["source"].iloc[0] == adult.A9A and table["n_train"].iloc[0] == 40
