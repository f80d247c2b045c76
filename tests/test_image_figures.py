"""The figures on images with data sets of `--data`: one of them, both, and too small ones."""

import gzip
import struct

import matplotlib.pyplot as plt
import numpy as np
import pytest
from a_figure import assert_storable

from reproduce import data_files as reading, images, run, store
from reproduce.discovery import figures
from reproduce.fa_hmc import fig6_7
from reproduce.figure import BadInput
from reproduce.prediction import runs
from reproduce.verdicts import NOT_TESTABLE, OPEN

DIGITS = images.digits()


def a_set(folder, n_train=400, n_test=120):
    """Four IDX files: digits with a margin, 9 x 9 pixels."""
    folder.mkdir(parents=True)
    pixels = np.pad(15 * DIGITS.pixels.reshape(-1, 8, 8), ((0, 0), (1, 0), (1, 0)))
    for part, rows in (("train", slice(n_train)), ("t10k", slice(n_train, n_train + n_test))):
        some, labels = pixels[rows], DIGITS.labels[rows].astype(np.uint8)
        n = len(labels)
        for name, content in (
                (f"{part}-images-idx3-ubyte.gz", struct.pack(">HBBIII", 0, 8, 3, n, 9, 9) + some.tobytes()),
                (f"{part}-labels-idx1-ubyte.gz", struct.pack(">HBBI", 0, 8, 1, n) + labels.tobytes())):
            (folder / name).write_bytes(gzip.compress(content))
    return folder


def made(id, folders, out):
    """A figure's tables, record and picture at tiny scale."""
    figure = figures()[id]
    given = reading.chosen_files(folders, [figure])
    record, _ = run.make(figure, "tiny", out, given, wish=run.Wish(formats=("png",)))
    tables = store.load_tables(out, id)
    assert_storable(tables, out, id)
    return tables, record, figure.draw(tables)


def verdicts(record):
    return {item["name"]: item for item in record["claims"] + record["findings"]}


def headline(drawing):
    text = drawing.get_suptitle()
    plt.close(drawing)
    return text


def test_both_sets_of_fa_ld(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "MOST_EXACT", 819)  # of 820 dimensions
    folders = [a_set(tmp_path / "mnist"), a_set(tmp_path / "fashion", 300, 90)]
    tables, record, drawing = made("fa_ld_fig2_4", folders, tmp_path)
    names = [f"{name} (files not the official ones)" for name in ("MNIST", "Fashion-MNIST")]
    assert len(drawing.axes) == 16 and headline(drawing).startswith("; ".join(names))
    facts = tables["facts"].drop_duplicates("set")
    assert facts["n_train"].tolist() == [340, 250] and facts["n_test"].tolist() == [120, 90]
    assert facts["batch_size"].tolist() == [34, 25] and not facts["papers_data"].any()
    assert "distances" not in tables
    found = verdicts(record)
    assert all(name in found["worst_brier_2"]["why"] for name in names)
    assert names[0] in found["worst_ece_4"]["why"] and names[1] not in found["worst_ece_4"]["why"]
    assert found["not_best_ece_4"]["why"].startswith(names[1])
    assert found["reward"]["verdict"] == OPEN and "no exact predictive" in found["reward"]["why"]


def test_one_set_of_fa_ld(tmp_path):
    tables, record, drawing = made("fa_ld_fig2_4", [a_set(tmp_path / "mnist")], tmp_path)
    assert len(drawing.axes) == 8 and headline(drawing).startswith("MNIST (files not the official ones), 10 ")
    found = verdicts(record)["not_best_ece_4"]
    assert found["verdict"] == NOT_TESTABLE
    assert found["why"].endswith("give fashion with --data.")
    assert set(tables["curves"]["set"]) == set(tables["distances"]["set"]) == {"mnist"}


def test_the_set_of_fa_hmc_3_and_4(tmp_path):
    _, record, drawing = made("fa_hmc_fig3_4", [a_set(tmp_path / "fashion")], tmp_path)
    assert headline(drawing).startswith("Fashion-MNIST (files not the official ones), 10 clients")
    assert record["files"] == list(images.usual_names("fashion"))
    assert all("Fashion-MNIST (files not" in item["why"] for item in verdicts(record).values())


def test_the_sets_of_fa_hmc_6_and_7(tmp_path, monkeypatch):
    own = images.ImageData("two of ours", DIGITS.pixels, DIGITS.labels, 16).of_classes(1, 7, "two of ours")
    monkeypatch.setattr(fig6_7, "cifar_two", lambda files: own)
    tables, record, drawing = made("fa_hmc_fig6_7", [a_set(tmp_path / "kmnist")], tmp_path)
    titles = {ax.get_title() for ax in drawing.axes}
    assert titles == {f"{n}: {name}, {reading}" for n in (6, 7) for name in (
        "KMNIST", "airplane against automobile") for reading in ("section 5", "algorithm 3")}
    assert headline(drawing).startswith("Kuzushiji-MNIST (files not the official ones);\ntwo of ours;")
    found = verdicts(record)
    assert ": two of ours. How much worse" in found["cf2_6"]["why"]
    assert "Kuzushiji" in found["km_7"]["why"]
    assert tables["facts"].groupby("set")["batch_size"].first().to_dict() == {"KM": 34, "CF2": 0}


@pytest.mark.parametrize("id", ["fa_ld_fig2_4", "fa_hmc_fig3_4"])
def test_too_small_a_set_is_refused(tmp_path, id):
    figure = figures()[id]
    given = reading.chosen_files([a_set(tmp_path / "fashion", 11, 3)], [figure])
    with pytest.raises(BadInput, match=r"Fashion-MNIST \(files not the official ones\), 0 training rows"):
        figure.compute("tiny", given)
