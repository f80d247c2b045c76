"""The reader of LIBSVM files: what it reads, and what it refuses with file, line and expectation."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.data.libsvm import read_libsvm

A9A_LINES = "-1 3:1 11:1 14:1 19:1 39:1 \n+1 5:1 7:1 123:1 \n-1 1:1 122:1 \n"


def written(folder, text, name="a9a"):
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_rows_labels_and_places(tmp_path):
    data = read_libsvm(written(tmp_path, A9A_LINES), n_features=123, n_rows=3)
    assert data.features.shape == (3, 123) and data.labels.tolist() == [0.0, 1.0, 0.0]
    assert [np.flatnonzero(row).tolist() for row in data.features] == [
        [2, 10, 13, 18, 38], [4, 6, 122], [0, 121]]
    assert set(data.features.ravel()) == {0.0, 1.0}


@pytest.mark.parametrize("text", ["0 1:1e-3 2:-.5\n1 2:+3.\n", "0 1:1e-3\t2:-.5\r\n1 2:+3.\r\n",
                                  "0 1:0.001 2:-0.5\n1 2:3\n", "-1 1:1e-3 2:-0.5\n+1.0 2:3\n"])
def test_numbers_line_ends_and_kinds_of_labels(tmp_path, text):
    data = read_libsvm(written(tmp_path, text))
    np.testing.assert_array_equal(data.features, [[1e-3, -0.5], [0.0, 3.0]])
    np.testing.assert_array_equal(data.labels, [0.0, 1.0])


def test_a_row_without_features_and_one_class_alone(tmp_path):
    data = read_libsvm(written(tmp_path, "1 2:1\n1\n"))
    assert data.features.tolist() == [[0.0, 1.0], [0.0, 0.0]] and data.labels.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("row", "expected"), [
    ("", "empty row"), ("   ", "empty row"), ("3:1 4:1", "label '3:1'; expected -1 or +1"),
    ("2 1:1", "label '2'"), ("nan 1:1", "label 'nan'"), ("yes 1:1", "label 'yes'"),
    ("0 1:1", "label '0' after -1/+1 labels"), ("+1 1", "entry '1'; expected index:value"),
    ("+1 a:1", "entry 'a:1'"), ("+1 1.0:1", "entry '1.0:1'"), ("+1 -1:1", "entry '-1:1'"),
    ("+1 :1", "entry ':1'"), ("+1 1_0:1", "entry '1_0:1'"),
    ("+1 0:1", "index 0 after 0; expected indices from 1"),
    ("+1 3:1 3:1", "index 3 after 3; expected increasing"), ("+1 4:1 3:1", "index 3 after 4"),
    ("+1 124:1", "index 124; expected at most n_features=123"), ("+1 12:", "value '' of index 12"),
    ("+1 12:x", "value 'x'"), ("+1 12:nan", "value 'nan'"), ("+1 12:inf", "value 'inf'"),
    ("+1 12:1e999", "value '1e999'"), ("+1 12:1_0", "value '1_0'"), ("+1 12:1:2", "value '1:2'"),
    ("+1 # note", "entry '#'"), ("+1 qid:3 1:2", "entry 'qid:3'"),
])
def test_a_malformed_row_is_named(tmp_path, row, expected):
    file = written(tmp_path, f"-1 1:1\n{row}\n+1 2:1\n")
    with pytest.raises(ValueError, match=re.escape(expected)) as caught:
        read_libsvm(file, n_features=123)
    assert str(caught.value).startswith("a9a, line 2: ")


def test_a_missing_folder_compressed_or_empty_file(tmp_path):
    with pytest.raises(ValueError, match="does not exist; expected a text file"):
        read_libsvm(tmp_path / "a9a")
    with pytest.raises(ValueError, match="is a folder"):
        read_libsvm(tmp_path)
    with pytest.raises(ValueError, match="byte 0xff at place 3; expected plain text, or gzip, xz or bzip2"):
        read_libsvm(written(tmp_path, b"1 1\xff\x00"))
    with pytest.raises(ValueError, match="holds bzip2 data that are damaged"):
        read_libsvm(written(tmp_path, b"BZh\xff\x00"))
    with pytest.raises(ValueError, match="a9a is empty"):
        read_libsvm(written(tmp_path, ""))
    with pytest.raises(ValueError, match="names no feature"):
        read_libsvm(written(tmp_path, "1\n-1\n"))


def test_a_truncated_file_is_refused_wherever_it_is_cut(tmp_path):
    for size in range(len(A9A_LINES)):
        with pytest.raises(ValueError, match="a9a"):
            read_libsvm(written(tmp_path, A9A_LINES[:size]), n_features=123, n_rows=3)
    with pytest.raises(ValueError, match="a9a, line 3: the last row has no line end"):
        read_libsvm(written(tmp_path, A9A_LINES[:-3]))
    with pytest.raises(ValueError, match="ends after line 2; expected n_rows=3"):
        read_libsvm(written(tmp_path, A9A_LINES[:A9A_LINES.index("-1 1:1")]), n_rows=3)


@pytest.mark.parametrize(("options", "named"), [
    ({"n_features": 0}, "n_features=0"), ({"n_rows": 0}, "n_rows=0"),
    ({"n_features": 1.5}, "n_features=1.5")])
def test_bad_arguments_are_named(tmp_path, options, named):
    with pytest.raises(ValueError, match=re.escape(named)):
        read_libsvm(written(tmp_path, A9A_LINES), **options)


def test_a_table_that_does_not_fit_is_refused_before_it_is_made(tmp_path):
    with pytest.raises(ValueError, match=r"dense table of 1 rows of n_features=\d+ needs about .* GB"):
        read_libsvm(written(tmp_path, "1 999999999999:1\n"))


@given(st.text(alphabet="+-01 2:9.e\n\t#nax", max_size=40))
def test_garbage_gets_a_valueerror_or_finite_data(tmp_path_factory, text):
    file = written(tmp_path_factory.mktemp("rows"), text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            data = read_libsvm(file)
        except ValueError as error:
            assert file.name in str(error)
            return
    assert np.isfinite(data.features).all() and set(data.labels) <= {0.0, 1.0}
