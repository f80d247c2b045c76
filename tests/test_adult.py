"""The Adult data: a9a is rebuilt as known rows of it say, and given files are read, cut and told apart."""

import hashlib
import lzma
from types import SimpleNamespace

import numpy as np
import pytest

from fedsim.data.adult import CATEGORIES, LABEL, N_FEATURES, QUESTIONS, RANGES, read_adult
from fedsim.data.libsvm import Labelled
from reproduce import data_files
from reproduce.discovery import figures
from reproduce.figure import BadInput, settings
from reproduce.stale import adult
from reproduce.verdicts import FAIL, PASS

FIGURES = ["stale_fig2_logistic", "stale_fig3_logistic", "stale_fig4_logistic", "stale_figs6_11_logistic"]
QUICK = settings(adult.PARAMETERS, "quick")
TRAIN, TEST = adult.rebuilt(48)
KNOWN = """-1 3 11 14 19 39 42 55 64 67 73 75 76 80 83
-1 5 7 14 19 39 40 51 63 67 73 74 76 78 83
-1 2 6 18 19 39 40 52 61 71 72 74 76 80 95
+1 2 6 14 29 39 42 52 64 67 72 75 76 82 83
+1 3 6 15 25 38 40 48 63 68 73 74 76 80
-1 3 6 17 27 35 40 57 63 69 73 74 76 81 103
-1 5 6 18 22 36 43 49 66 71 72 74 76 78 83
+1 5 16 20 37 40 63 68 73 74 76 82 93
-1 4 6 16 22 36 40 48 63 67 73 74 76 80 83"""
"""Rows 0, 1, 4, 8, 14, 15, 21, 27 and 29 of a9a: every group of columns, a missing answer, both labels."""


def as_text(rows):
    """Rows in LIBSVM's format, labels -1 and +1."""
    lines = []
    for row, label in zip(rows.features, rows.labels, strict=True):
        lines.append(("+1" if label else "-1") + "".join(f" {i + 1}:{row[i]:g}" for i in np.flatnonzero(row)))
    return " \n".join([*lines, ""])


@pytest.fixture(name="files")
def _files(tmp_path, monkeypatch):
    """Files of 40 and 30 rows, in the place of a9a's."""
    rows = Labelled(TRAIN.features[:70], TRAIN.labels[:70])
    parts = [Labelled(rows.features[cut], rows.labels[cut]) for cut in (slice(40), slice(40, 70))]
    monkeypatch.setattr(adult, "rebuilt", lambda long_hours: tuple(parts))
    for name, part in zip(adult.DATA, parts, strict=True):
        (tmp_path / name).write_text(as_text(part))
    return rows, {name: tmp_path / name for name in adult.DATA}


@pytest.mark.parametrize("name", data_files.SHIPPED)
def test_the_data_are_those_whose_licence_is_named(name):
    packed = data_files.shipped(name)
    found = hashlib.md5(lzma.decompress(packed.read_bytes()), usedforsecurity=False).hexdigest()
    assert found == data_files.SHIPPED[name]
    notice = (packed.parent / "NOTICE.md").read_text(encoding="utf-8")
    assert f"`{packed.name}`" in notice and "creativecommons.org/licenses/by/4.0" in notice
    assert {file.name for file in packed.parent.iterdir()} == {
        "NOTICE.md", *(f"{one}.xz" for one in data_files.SHIPPED)}


def test_known_rows_of_a9a_come_out():
    numbers = (0, 1, 4, 8, 14, 15, 21, 27, 29)
    for number, known in zip(numbers, KNOWN.split("\n"), strict=True):
        label, *places = known.split()
        assert (1 + np.flatnonzero(TRAIN.features[number])).tolist() == [int(place) for place in places]
        assert TRAIN.labels[number] == (label == "+1")


def test_the_rebuilt_rows_have_a9as_counts():
    assert TRAIN.features.shape == (32_561, 123) and TEST.features.shape == (16_281, 123)
    assert (TRAIN.labels.sum(), TEST.labels.sum()) == (7_841, 3_846)
    assert sum(len(as_text(part)) for part in (TRAIN, TEST)) == 3_494_503  # the size of both files of LIBSVM
    assert set(np.unique(TRAIN.features)) == {0.0, 1.0}


def test_ranges_of_fnlwgt_are_quintiles_of_the_training_rows():
    text = lzma.decompress(data_files.shipped("adult.csv").read_bytes()).decode("ascii").split("\n")[1:-1]
    weights = [float(line.split(",")[2]) for line in text]
    np.testing.assert_array_equal(np.quantile(weights, [0.2, 0.4, 0.6, 0.8]), RANGES["fnlwgt"])


def test_hours_that_are_not_known_change_131_training_rows():
    for hours, n_train in ((47, None), (46, 131)):
        train, test = adult.rebuilt(hours)
        differ = train.features != TRAIN.features
        assert set(np.flatnonzero(differ.any(axis=0))) == {80, 81} == set(range(*adult.UNSURE.indices(123)))
        assert n_train in (None, differ.any(axis=1).sum()) and (train.labels == TRAIN.labels).all()
        assert (test.features != TEST.features).any(axis=1).sum() <= 80


@pytest.mark.parametrize(("place", "answer", "words"), [
    (0, "old", "line 3: age is 'old'; expected a whole number or ?"),
    (1, "Privat", "line 3: workclass is 'Privat'; expected a category of UCI's or ?"),
    (14, "50K", "line 3: .*; expected 14 answers and an income, <=50K or >50K")])
def test_a_wrong_answer_is_named(tmp_path, place, answer, words):
    row = ("39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,Male,0,0,40,Cuba,"
           "<=50K").split(",")
    wrong = [answer if i == place else cell for i, cell in enumerate(row)]
    file = tmp_path / "adult.csv"
    file.write_text("\n".join(",".join(cells) for cells in ([*QUESTIONS, LABEL], row, wrong)))
    with pytest.raises(ValueError, match=rf"adult\.csv, {words}"):
        read_adult(file)


def test_other_headers_and_hours_are_refused(tmp_path):
    file = tmp_path / "adult.csv"
    file.write_text("age,sex\n")
    with pytest.raises(ValueError, match=r"adult\.csv, line 1: 'age,sex'; expected 'age,workclass,"):
        read_adult(file)
    file.write_text(",".join([*QUESTIONS, LABEL]) + "\n")
    with pytest.raises(ValueError, match=r"adult\.csv has no row below its header"):
        read_adult(file)
    with pytest.raises(ValueError, match="long_hours=45 must be 46, 47 or 48"):
        read_adult(file, long_hours=45)


def test_columns_are_a9as():
    widths = [len(CATEGORIES[name].split()) if name in CATEGORIES else 1 + len(RANGES.get(name, (0,) * 4))
              for name in QUESTIONS]
    assert widths == [5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41] and sum(widths) == N_FEATURES


def test_without_files_the_rows_are_called_rebuilt_and_cut_into_two():
    data = next(adult.adults(QUICK, {}))
    table = adult.data_table([data])
    assert data.source == "a9a REBUILT from the Adult data" == table["source"].iloc[0]
    np.testing.assert_array_equal(data.train.features, TRAIN.features[:QUICK.n_train])
    np.testing.assert_array_equal(data.test.labels, TEST.labels[:QUICK.n_test])
    assert adult.data_text(table).startswith("a9a REBUILT from the Adult data: 1,000 training and 400 test")


def test_given_files_are_read_and_cut(files):
    rows, paths = files
    p = SimpleNamespace(**{**vars(QUICK), "n_train": 25, "n_test": 10})
    data = next(adult.adults(p, paths))
    assert data.source == "a9a"
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


def test_half_of_the_files_or_a_broken_one_is_refused(files):
    paths = files[1]
    with pytest.raises(BadInput, match=r"a9a\.t is missing beside a9a"):
        next(adult.adults(QUICK, {"a9a": paths["a9a"]}))
    text = paths["a9a.t"].read_text()
    paths["a9a.t"].write_text(text.replace(":1", ":one", 1))
    with pytest.raises(BadInput, match=r"a9a\.t, line 1: value 'one'"):
        next(adult.adults(QUICK, paths))


@pytest.mark.parametrize(("column", "name"), [(80, "a9a"), (79, "40 and 30 rows of --data")])
def test_files_may_differ_in_the_hours_that_are_not_known_alone(files, column, name):
    rows, paths = files
    rows.features[3, column] = 1.0 - rows.features[3, column]
    paths["a9a"].write_text(as_text(Labelled(rows.features[:40], rows.labels[:40])))
    rows.features[3, column] = 1.0 - rows.features[3, column]
    assert next(adult.adults(QUICK, paths)).source.startswith(name)


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
    for said in figure.claims(tables):
        assert said["verdict"] not in (PASS, FAIL) and "rows of --data, NOT THE PAPER'S DATA" in said["why"]
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
