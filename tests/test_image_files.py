"""The readers of IDX and CIFAR-10 files: what they read, and what they refuse with file and expectation."""

import gzip
import re
import struct
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.data import files as reading
from fedsim.data.cifar import N_PIXELS, USUAL_NAMES as CIFAR_NAMES, load_cifar10
from fedsim.data.idx import USUAL_NAMES, load_idx, load_images, load_pair

PIXELS = np.random.default_rng(0).integers(0, 256, (30, 4, 5), np.uint8)
LABELS = (np.arange(30) % 10).astype(np.uint8)
IMAGES = struct.pack(">HBBIII", 0, 8, 3, *PIXELS.shape) + PIXELS.tobytes()
NUMBERS = struct.pack(">HBBI", 0, 8, 1, len(LABELS)) + LABELS.tobytes()


def written(folder, content, name="file"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def refusal(reader, *arguments, **options):
    """The words of a refusal, which is a ValueError and nothing more special."""
    with pytest.raises(ValueError) as caught:
        reader(*arguments, **options)
    assert type(caught.value) is ValueError
    return str(caught.value)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_packed_or_not_and_whatever_the_name(tmp_path, pack, name):
    path = written(tmp_path, pack(IMAGES), name)
    for kind in (None, "images"):
        found = load_idx(path, kind=kind)
        assert found.dtype == np.uint8 and not found.flags.writeable
        np.testing.assert_array_equal(found, PIXELS)
    path = str(written(tmp_path, pack(NUMBERS), name))
    np.testing.assert_array_equal(load_idx(path, kind="labels"), LABELS)


def test_sizes_are_read_with_the_highest_byte_first(tmp_path):
    labels = np.arange(0x102).astype(np.uint8) % 10
    path = written(tmp_path, bytes([0, 0, 8, 1, 0, 0, 1, 2]) + labels.tobytes())
    np.testing.assert_array_equal(load_idx(path), labels)


@pytest.mark.parametrize(("content", "words"), [
    (b"", "is empty; expected an IDX file"), (b"\0\0\x08", "ends after 3 bytes; expected an IDX file"),
    (b"P5 4 4 255 ", "begins with the bytes 80, 53, 32, 52; expected an IDX file"),
    (b"\1" + IMAGES[1:], "begins with the bytes 1, 0, 8, 3"),
    (IMAGES[:2] + b"\x0d" + IMAGES[3:], "has type code 0x0d; expected 0x08, unsigned bytes"),
    (IMAGES[:3] + b"\2" + IMAGES[4:], "has 2 axes; expected an IDX file"),
    (IMAGES[:9], "ends after 9 bytes; expected a header of 16"),
    (IMAGES[:16], "is cut short: 0 entries; expected 600, 30 x 4 x 5"),
    (IMAGES[:-1], "is cut short: 599 entries; expected 600"),
    (IMAGES + b"\0", "goes on after its end: 601 entries; expected 600"),
    (struct.pack(">HBB", 0, 8, 3) + b"\xff" * 12, f"is cut short: 0 entries; expected {(2**32 - 1)**3},"),
    (struct.pack(">HBBIII", 0, 8, 3, 0, 4, 4), "has no entries, its sizes are 0 x 4 x 4;"),
    (struct.pack(">HBBI", 0, 8, 1, 0), "has no entries, its sizes are 0;"),
])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_is_no_idx_file_is_refused(tmp_path, content, words, pack):
    path = written(tmp_path, pack(content))
    assert refusal(load_idx, path).startswith(f"path={str(path)!r} ") and words in refusal(load_idx, path)


def test_labels_and_images_are_not_confused(tmp_path):
    images, labels = written(tmp_path, IMAGES, "one"), written(tmp_path, NUMBERS, "two")
    assert "holds images; expected an IDX file of labels" in refusal(load_idx, images, kind="labels")
    assert "holds labels; expected an IDX file of images" in refusal(load_idx, labels, kind="images")
    assert "two' holds labels; expected an IDX file of images" in refusal(load_pair, labels, images)
    assert "kind='pictures' must be one of" in refusal(load_idx, images, kind="pictures")


def test_labels_beyond_nine_are_refused_where_labels_are_asked_for(tmp_path):
    path = written(tmp_path, NUMBERS[:-2] + b"\x0a\x09")
    assert refusal(load_idx, path, kind="labels").endswith("has label 10 in row 28; expected 0 to 9")
    assert load_idx(path)[28] == 10


def test_a_missing_file_a_folder_and_damaged_gzip_data(tmp_path):
    assert "gone' does not exist; expected an IDX file of labels" in refusal(
        load_idx, tmp_path / "gone", kind="labels")
    assert "is a folder; expected an IDX file" in refusal(load_idx, tmp_path)
    assert "path=3 must be" in refusal(load_idx, 3)
    packed = gzip.compress(IMAGES)
    for bad in (packed[:-1], packed[:20], packed[:2], packed + b"x", packed[:-6] + bytes(6),
                packed[:40] + b"\xff" + packed[41:]):
        assert "gzip data that are damaged or cut short" in refusal(load_idx, written(tmp_path, bad))


def test_what_would_unpack_to_more_than_there_is_room_for_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LARGEST", 2**20)
    bomb = gzip.compress(bytes(2**24))
    assert "holds more than 1048576 bytes" in refusal(load_idx, written(tmp_path, bomb))
    assert "holds more than 1048576 bytes" in refusal(load_idx, written(tmp_path, bytes(2**20 + 1)))
    assert "is cut short" in refusal(load_idx, written(tmp_path, struct.pack(">HBBI", 0, 8, 1, 2**20)
                                                       + bytes(2**20 - 8)))


def test_as_many_labels_as_images(tmp_path):
    images, labels = written(tmp_path, IMAGES, "one"), written(tmp_path, NUMBERS, "two")
    pair = load_pair(images, labels)
    np.testing.assert_array_equal(pair.images, PIXELS)
    np.testing.assert_array_equal(pair.labels, LABELS)
    fewer = written(tmp_path, struct.pack(">HBBI", 0, 8, 1, 29) + LABELS[:-1].tobytes(), "two")
    words = refusal(load_pair, images, fewer)
    assert words == f"labels={str(labels)!r} has 29 labels; expected 30, as images={str(images)!r} has images"


def a_set(folder, *, pack=bytes, suffix=""):
    """Four files; the test part is the first 10 images."""
    fewer = struct.pack(">HBBIII", 0, 8, 3, 10, 4, 5) + PIXELS[:10].tobytes()
    labels = struct.pack(">HBBI", 0, 8, 1, 10) + LABELS[:10].tobytes()
    for name, content in zip(USUAL_NAMES, (IMAGES, NUMBERS, fewer, labels), strict=True):
        written(folder, pack(content), name + suffix)
    return folder


def test_a_folder_of_four_files(tmp_path):
    for found in (load_images(a_set(tmp_path / "raw")),
                  load_images(a_set(tmp_path / "packed", pack=gzip.compress, suffix=".gz"))):
        np.testing.assert_array_equal(found.train_images, PIXELS)
        np.testing.assert_array_equal(found.train_labels, LABELS)
        np.testing.assert_array_equal(found.test_images, PIXELS[:10])
        np.testing.assert_array_equal(found.test_labels, LABELS[:10])
    written(tmp_path / "raw", b"", f"{USUAL_NAMES[0]}.gz")  # read in the place of the other
    assert f"{USUAL_NAMES[0]}.gz' is empty" in refusal(load_images, tmp_path / "raw")


def test_a_folder_that_lacks_a_file_or_mixes_sizes(tmp_path):
    folder = a_set(tmp_path / "set")
    written(folder, struct.pack(">HBBIII", 0, 8, 3, 10, 5, 4) + PIXELS[:10].tobytes(), USUAL_NAMES[2])
    assert f"{USUAL_NAMES[2]}' has images of 5 x 4 pixels; expected 4 x 5, as in" in refusal(
        load_images, folder)
    (folder / USUAL_NAMES[3]).unlink()
    assert refusal(load_images, folder) == (
        f"folder={str(folder)!r} does not hold {USUAL_NAMES[3]}; expected it, or {USUAL_NAMES[3]}.gz")
    assert "is not a folder" in refusal(load_images, folder / USUAL_NAMES[0])


BEGINNINGS = [b"", IMAGES[:16], NUMBERS[:8], b"\x1f\x8b", gzip.compress(b"", mtime=0)]


@given(st.binary(max_size=40), st.sampled_from(BEGINNINGS))
def test_garbage_gets_a_valueerror_or_is_read_wholly(tmp_path_factory, rest, begin):
    path = written(tmp_path_factory.mktemp("garbage"), begin + rest)
    try:
        found = load_idx(path)
    except ValueError as error:
        assert type(error) is ValueError and str(path) in str(error)
        return
    assert found.size and found.tobytes() == path.read_bytes()[-found.size:]


# ---- CIFAR-10 ---------------------------------------------------------------------------------------

ROWS = np.random.default_rng(1).integers(0, 256, (20, 1 + N_PIXELS), np.uint8)
ROWS[:, 0] %= 10


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_rows_of_label_and_pixels(tmp_path, pack):
    files = [written(tmp_path, pack(part.tobytes()), name)
             for name, part in (("b", ROWS[:12]), ("a", ROWS[12:]))]
    found = load_cifar10(files, n_rows=None)
    np.testing.assert_array_equal(found.images, ROWS[:, 1:])
    np.testing.assert_array_equal(found.labels, ROWS[:, 0])
    assert found.images.dtype == found.labels.dtype == np.uint8
    np.testing.assert_array_equal(load_cifar10(files[:1], n_rows=12).labels, ROWS[:12, 0])


def test_cifar_files_that_are_not_whole_or_not_right(tmp_path):
    whole, read = ROWS.tobytes(), partial(load_cifar10, n_rows=20)
    for content, words in ((b"", "is empty; expected rows of 3073 bytes"),
                           (whole[:-1], "has 61459 bytes; expected 61460, n_rows=20 rows"),
                           (whole + b"\0", "has 61461 bytes; expected 61460"),
                           (whole[:-3073], "has 58387 bytes; expected 61460"),
                           (whole[:3073] + b"\x0a" + whole[3074:], "has label 10 in row 1; expected 0 to 9")):
        path = written(tmp_path, content)
        assert refusal(read, [path]).startswith(f"paths[0]={str(path)!r} ") and words in refusal(read, [path])
    path = written(tmp_path, whole[:-1])
    assert "has 3072 bytes after 19 whole rows" in refusal(load_cifar10, [path], n_rows=None)
    assert "expected 30730000, n_rows=10000 rows" in refusal(load_cifar10, [written(tmp_path, whole)])


def test_bad_arguments_of_cifar_are_named(tmp_path):
    path = written(tmp_path, ROWS.tobytes())
    assert "paths=[] must name at least one file" in refusal(load_cifar10, [])
    assert re.match(r"paths='.*' must be a list or a tuple", refusal(load_cifar10, str(path)))
    assert "paths[1]=3 must be" in refusal(load_cifar10, [path, 3])
    assert "paths[1]=" in refusal(load_cifar10, [path, str(path)], n_rows=20)
    assert "n_rows=0 must be at least 1" in refusal(load_cifar10, [path], n_rows=0)
    assert "does not exist; expected a file with rows of 3073" in refusal(load_cifar10, [tmp_path / "gone"])


def test_the_names_are_those_of_the_data_sets():
    assert USUAL_NAMES == tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k")
                                for kind in ("images-idx3", "labels-idx1"))
    assert CIFAR_NAMES[:1] + CIFAR_NAMES[-2:] == ("data_batch_1.bin", "data_batch_5.bin", "test_batch.bin")
