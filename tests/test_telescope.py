"""Data of DE-SGLD's figures 9 and 10: the telescope's rows, as shipped or given, and others in their
format."""

import lzma
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from a_figure import assert_storable

import fedsim as fs
import theory
from reproduce import data_files, run, store
from reproduce.decentralized import logistic, telescope, telescope_data as data
from reproduce.decentralized.claims import MOST_MOMENTUM
from reproduce.decentralized.shared import CONNECTED, HOLD
from reproduce.discovery import figures
from reproduce.figure import BadInput, settings
from reproduce.verdicts import ECHOED, FAIL, NOT_TESTABLE, PASS

P = settings(telescope.SHARED, "tiny")


def a_file(folder, n, seed=1, labels=None):
    """Rows in the telescope's format, the fifth number constant."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 10))
    own = features[:, 0] + rng.standard_normal(n) > -0.5
    features[:, 4] = 2.5
    classes = ["hg"[int(label)] for label in (own if labels is None else labels)]
    path = folder / "magic04.data"
    path.write_text("".join(",".join([*map(repr, row), name]) + "\n"
                            for row, name in zip(features.tolist(), classes, strict=True)))
    return path


def test_without_a_file_the_telescopes_rows_are_used():
    found = data.data_of(P, {})
    assert found.name == "MAGIC telescope" and found.features.shape == (19_020, 10)
    assert found.labels.sum() == 12_332


def test_the_file_of_the_paper_and_other_rows(tmp_path):
    own = data.data_of(P, {data.FILE: a_file(tmp_path, 150)})
    assert own.name == "150 rows of --data, NOT THE PAPER'S DATA"
    assert own.features[0, 4] == 2.5 and len(own.labels) == 150
    text = lzma.decompress(data_files.shipped(data.FILE).read_bytes()).decode("ascii")
    (tmp_path / data.FILE).write_text(text)
    assert data.data_of(P, {data.FILE: tmp_path / data.FILE}).name == data.REAL
    (tmp_path / data.FILE).write_text(text.replace("28.7967", "28.7968", 1))
    assert data.data_of(P, {data.FILE: tmp_path / data.FILE}).name.endswith("NOT THE PAPER'S DATA")


def test_bad_rows_are_refused_by_name(tmp_path):
    with pytest.raises(BadInput, match=r"magic04\.data has 12 rows; expected at least a test row, and two"):
        data.data_of(P, {data.FILE: a_file(tmp_path, 12)})
    with pytest.raises(BadInput, match=r"magic04\.data has rows of one class alone; expected both, g and h"):
        data.data_of(P, {data.FILE: a_file(tmp_path, 60, labels=np.ones(60))})
    assert len(data.data_of(P, {data.FILE: a_file(tmp_path, 14)}).labels) == 14


def test_features_are_scaled_in_the_units_of_the_training_rows():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((60, 10)) * np.arange(1.0, 11.0) + 5.0
    given = logistic.Data(features, np.arange(60) % 2.0, "")
    parts = {name: data_of(given, name) for name in logistic.FEATURES}
    for name, low, high in (("in [0, 1]", 0.0, 1.0), ("in [-1, 1]", -1.0, 1.0)):
        training = parts[name]["training"].features[:, :-1]
        np.testing.assert_allclose(training.min(axis=0), low, atol=1e-9)
        np.testing.assert_allclose(training.max(axis=0), high, atol=1e-9)
        assert not np.allclose(parts[name]["test"].features[:, :-1].max(axis=0), high)
    whole = np.concatenate([one.features[:, :-1] for one in parts["as they stand"].values()])
    np.testing.assert_allclose(np.sort(whole, axis=0), np.sort(features, axis=0), atol=1e-9)
    np.testing.assert_allclose(parts["standardised"]["training"].features[:, :-1].std(axis=0), 1.0, atol=1e-8)
    assert all((one.features[:, -1] == 1.0).all() for each in parts.values() for one in each.values())


def data_of(given, name):
    return telescope.parts_of(P, given, 0, name)


@pytest.mark.parametrize(("id", "covered"), [("de_fig7", {"standardised", "in [0, 1]", "in [-1, 1]"}),
                                             ("de_fig8", set())])
def test_what_is_covered_does_not_hang_on_the_prior(id, covered):
    """Figure 8's range is left with any prior and scaling: its momentum is 1/2, see the next test."""
    p = settings(figures()[id].module.PARAMETERS, "tiny")
    for variance in (1e-3, 0.1, 10.0, 1e3):
        own, rows = SimpleNamespace(**{**vars(p), "prior_variance": variance}), {"hypotheses": []}
        for name in logistic.FEATURES:
            problem = logistic.on_agents(logistic.breast_cancer(name), own)
            logistic.add_hypotheses(rows, own, 0, problem, features=name)
        status = {name: {row["status"] for row in rows["hypotheses"]
                         if row["features"] == name and row["network"] in CONNECTED}
                  for name in logistic.FEATURES}
        assert {name for name, found in status.items() if found == {HOLD}} == covered


def test_no_data_admit_a_larger_momentum_than_a_thirty_second():
    """Equation (38) solved for any mu <= L, (37)'s step sizes and lazy networks: up to 0.6 of 1/32."""
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(300):
        matrix = np.eye(6) + (fs.network.complete(6) - np.eye(6)) * rng.choice([1e-3, 0.5, 1.0])
        mu = 10.0**rng.uniform(-3.0, 3.0)
        smoothness = mu * 10.0**(rng.uniform(0.0, 2.0) * rng.integers(2))
        step = theory.de_sghmc.step_size_limit(mu, smoothness, matrix) * rng.uniform(0.5, 1.0)
        largest = max(largest, theory.de_sghmc.largest_momentum(mu, smoothness, matrix, step))
    assert MOST_MOMENTUM / 2.0 < largest < MOST_MOMENTUM


def test_a_constant_column_becomes_zero():
    rows = np.column_stack([np.arange(4.0), np.full(4, 0.1)])
    np.testing.assert_allclose(logistic.standardised(rows)[:, 1], 0.0, atol=1e-15)
    np.testing.assert_allclose(logistic.standardised(rows)[:, 0].std(), 1.0, rtol=1e-14)


@pytest.mark.parametrize("id", ["de_fig9", "de_fig10"])
def test_a_figure_of_other_rows_says_so(tmp_path, id):
    figure, path = figures()[id], a_file(tmp_path, 130)
    record, _ = run.make(figure, "tiny", tmp_path, {data.FILE: path})
    tables = store.load_tables(tmp_path, id)
    assert_storable(tables, tmp_path, id)
    drawing = figure.draw(tables)
    marks = [text.get_text() for ax in drawing.get_axes() for text in ax.texts]
    assert marks.count(data_files.NOT_THE_PAPERS) == 6
    plt.close(drawing)
    claim = next(item for item in record["claims"] if item["name"] == "disconnected")
    assert claim["verdict"] in (ECHOED, NOT_TESTABLE)
    assert "130 rows of --data, NOT THE PAPER'S DATA" in claim["why"]
    for name in ("better_as_defined", "better_with_sums", "unstable"):
        assert "130 rows" in next(item for item in record["findings"] if item["name"] == name)["why"]


def test_the_range_is_asked_of_all_given_rows(tmp_path):
    """Also where runs take some of them: the theorem admits larger steps with fewer."""
    p, files = settings(figures()["de_fig9"].module.PARAMETERS, "tiny"), {data.FILE: a_file(tmp_path, 260)}
    own = {**vars(p), "n_data_sets": 1, "step_size": 1.0}
    found = [telescope.compute(SimpleNamespace(**{**own, "n_data": n}), files) for n in (260, 130)]
    assert [int(one["setting"]["n_training"].iloc[0]) for one in found] == [234, 117]
    whole, part = (one["hypotheses"] for one in found)
    assert whole["why"].str.contains("times the limit").any() and whole.equals(part)


def test_either_scaling_suffices_and_the_reason_says_which():
    tables = figures()["de_fig9"].compute("tiny")
    table = tables["contrasts"]

    def judged(**signs):
        difference = table["scaling"].map(signs) * (0.01 + 1e-4 * table["data_set"])
        return telescope.judge_paper(tables | {"contrasts": table.assign(difference=difference)})

    both, sums, none = judged(unbiased=1, batch_sum=1), judged(unbiased=-1, batch_sum=1), judged(
        unbiased=-1, batch_sum=-1)
    assert (both.verdict, sums.verdict, none.verdict) == (PASS, PASS, FAIL)
    assert both.why.startswith("It is so with n_i/b and with the minibatch's sum.")
    assert sums.why.startswith("It is so with the minibatch's sum.") and not both.remark
    assert sums.remark == ("With our features it is the other way round with n_i/b; the paper prints no "
                           "preparation.")
