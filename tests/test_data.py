"""Data files: the reader of the telescope's data, and how `--data` hands files to the figures."""

import bz2
import gzip
import json
import lzma
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from fedsim.data.magic import N_ROWS, read_magic
from reproduce import command, data_files as reading, plot
from reproduce.figure import EXACT, PASS, SCALES, BadInput, Claim, Figure

GOOD = "28.7967,16.0021,2.6449,0.3918,0.1982,27.7004,22.011,-8.2027,40.092,81.8828,g"
ROWS = [GOOD, GOOD.replace("g", "h"), GOOD.replace("28.7967", "1e2")]


def written(folder, text, name="magic04.data"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ---- the telescope's data ---------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "", "\n\n", "\r\n"])
def test_rows_and_labels(tmp_path, end):
    line_end = "\r\n" if "\r" in end else "\n"
    data = read_magic(written(tmp_path, line_end.join(ROWS) + end), n_rows=3)
    assert data.features.shape == (3, 10) and data.labels.tolist() == [1.0, 0.0, 1.0]
    assert data.features[:, 0].tolist() == [28.7967, 28.7967, 100.0] and data.features[0, 7] == -8.2027


@pytest.mark.parametrize(("bad", "words"), [
    (GOOD[:-2], "10 entries; expected 11: ten numbers and a class g or h"),
    (GOOD + ",g", "12 entries; expected 11"),
    (GOOD.replace("2.6449", "x"), "entry 3 is 'x'; expected a finite number"),
    (GOOD.replace("2.6449", "nan"), "entry 3 is 'nan'; expected a finite number"),
    (GOOD.replace("28.7967", "inf"), "entry 1 is 'inf'; expected a finite number"),
    (GOOD.replace("28.7967", "1_0"), "entry 1 is '1_0'; expected a finite number"),
    (GOOD.replace("81.8828", ""), "entry 10 is ''; expected a finite number"),
    (GOOD[:-1] + "G", "class 'G'; expected g or h"), (GOOD[:-1] + "1", "class '1'; expected g or h"),
    ("", "an empty row; expected ten numbers"), (GOOD.replace(",", " "), "1 entries; expected 11"),
])
def test_a_bad_row_is_named_with_file_line_and_expectation(tmp_path, bad, words):
    path = written(tmp_path, "\n".join([ROWS[0], bad, ROWS[1]]) + "\n")
    with pytest.raises(ValueError) as caught:
        read_magic(path, n_rows=3)
    assert str(caught.value).startswith("magic04.data, line 2: ") and words in str(caught.value)


def test_a_truncated_file_is_refused(tmp_path):
    whole = "\n".join(ROWS) + "\n"
    with pytest.raises(ValueError, match="ends after line 3; expected n_rows=19020 rows"):
        read_magic(written(tmp_path, whole))
    with pytest.raises(ValueError, match=r"magic04\.data, line 3: 9 entries"):
        read_magic(written(tmp_path, whole[:-12]), n_rows=3)
    assert N_ROWS == 19_020


@pytest.mark.parametrize(("text", "words"), [
    ("", "is empty"), ("\n\n", "is empty"),
    (b"\xff\xfe1,2", "byte 0xff at place 0; expected plain text, or gzip"),
    (b"\x1f\x8b\x08", "gzip data that are damaged"), (b"\xfd7zXZ\x00\x00", "xz data that are damaged"),
    (b"BZh9\x00", "bzip2 data that are damaged")])
def test_not_a_data_file(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        read_magic(written(tmp_path, text))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_packed_files_are_read_as_they_are(tmp_path, pack):
    text = "\n".join(ROWS) + "\n"
    plain, packed = (read_magic(written(tmp_path, one), n_rows=3) for one in (text, pack(text.encode())))
    np.testing.assert_array_equal(plain.features, packed.features)
    np.testing.assert_array_equal(plain.labels, packed.labels)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ValueError, match=r"gone\.data.* does not exist"):
        read_magic(tmp_path / "gone.data")
    with pytest.raises(ValueError, match="is a folder"):
        read_magic(tmp_path)
    with pytest.raises(ValueError, match="n_rows=0"):
        read_magic(tmp_path, n_rows=0)


@given(text=st.text(st.sampled_from("0123456789.,gh-+eE_naif \n\t\rx"), max_size=300))
def test_garbage_gets_a_value_error_or_is_read_wholly(tmp_path_factory, text):
    path = written(tmp_path_factory.mktemp("magic"), text)
    try:
        data = read_magic(path, n_rows=None)
    except ValueError as error:
        assert "magic04.data" in str(error)
        return
    assert np.isfinite(data.features).all() and len(data.labels) == len(data.features) >= 1


# ---- --data -----------------------------------------------------------------------------------------


def a_figure(name="reads", data=("rows.txt",)):
    """A figure that counts the lines of its files."""
    def compute(scale, *files):
        counts = {key: reading.read(_counted, path) for key, path in (files[0] if files else {}).items()}
        return {"lines": pd.DataFrame({"file": [*counts, "total"], "n": [*counts.values(),
                                                                         sum(counts.values())]})}

    def draw(tables):
        drawing, ((ax,),) = plot.panels(1)
        ax.plot(tables["lines"]["n"])
        return drawing

    parts = {"TITLE": "a title", "PAPER": "ours", "SHOWS": "a line", "COST": dict.fromkeys(SCALES, "0 s"),
             "PARAMETERS": [], "compute": compute, "draw": draw,
             "CLAIMS": [Claim("It counts.", "nowhere", lambda tables: (PASS, "It counted all of the rows."),
                              name="counts", rests_on=EXACT)]}
    return Figure(name, SimpleNamespace(**parts, **({"DATA": data} if data else {})))


def _counted(path):
    text = path.read_text()
    if "bad" in text:
        raise ValueError(f"{path.name}, line 1: 'bad'; expected good")
    return len(text.splitlines())


def test_a_folder_gives_files_by_their_usual_names(tmp_path):
    one, two, none = a_figure(), a_figure("more", ("rows.txt", "more.txt")), a_figure("none", ())
    rows = written(tmp_path, "1\n2\n", "rows.txt")
    files = reading.chosen_files([tmp_path], [one, two, none])
    assert files == {"rows.txt": rows} and none.files(files) == {}
    assert one.compute("tiny", files)["lines"]["n"].tolist() == [2, 2]
    assert one.compute("tiny")["lines"]["n"].tolist() == [0]
    assert none.compute("tiny", files)["lines"]["n"].tolist() == [0]
    assert one.command("paper", files) == "python -m reproduce reads --scale paper --data rows.txt"


def test_a_file_may_have_another_name_where_one_file_is_read(tmp_path):
    path = written(tmp_path, "1\n", "renamed.csv")
    assert reading.chosen_files([path], [a_figure()]) == {"rows.txt": path}
    two = a_figure("more", ("rows.txt", "more.txt"))
    with pytest.raises(BadInput, match=r"renamed\.csv: the chosen figures read rows\.txt, more\.txt"):
        reading.chosen_files([path], [two])
    both = [written(tmp_path, "1\n", name) for name in two.data]
    assert reading.chosen_files(both, [two]) == dict(zip(two.data, both, strict=True))


def test_data_that_nothing_reads_or_that_is_missing_is_refused(tmp_path):
    with pytest.raises(BadInput, match="none of the chosen figures reads data"):
        reading.chosen_files([tmp_path], [a_figure(data=())])
    with pytest.raises(BadInput, match=r"the folder must hold at least one of rows\.txt"):
        reading.chosen_files([tmp_path], [a_figure()])
    with pytest.raises(BadInput, match="there is no such file or folder"):
        reading.chosen_files([tmp_path / "gone"], [a_figure()])
    rows = written(tmp_path, "1\n", "rows.txt")
    with pytest.raises(BadInput, match=r"rows\.txt was given twice"):
        reading.chosen_files([rows, tmp_path], [a_figure()])
    assert reading.chosen_files([], [a_figure(data=())]) == {}


def test_the_command_line_reads_writes_beside_and_refuses(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "chosen", lambda ids: [a_figure()])
    rows, out = written(tmp_path, "1\n2\n3\n", "rows.txt"), tmp_path / "out"
    words = ["--scale", "tiny", "--out", str(out), "--data", str(rows)]
    assert command.main(words) == 0
    record = json.loads((out / "reads.json").read_text())
    assert record["files"] == ["rows.txt"] and record["command"].endswith("--data rows.txt")
    assert str(tmp_path) not in (out / "reads.json").read_text()
    assert command.main([*words, "--check"]) == 0 and command.main([*words[:4], "--check"]) == 1
    assert command.main([*words[:4], "--draw"]) == 0
    assert json.loads((out / "reads.json").read_text()) == record
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    written(tmp_path, "bad\n", "rows.txt")
    capsys.readouterr()
    assert command.main(words) == 2
    assert "error: rows.txt, line 1: 'bad'; expected good" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert command.main([*words[:4], "--data", str(tmp_path / "gone")]) == 2


def test_results_from_data_files_do_not_replace_the_committed_ones():
    folder = command.folder_of(SimpleNamespace(scale="quick", out=None, data=["x"]))
    assert (folder.parent.name, folder.name) == ("figures", "data")
