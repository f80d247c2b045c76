"""Malformed data files: each is refused by file and line, or read to finite numbers; nothing else.

Every case is a function of (seed, number): a failure names both.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from fedsim.data.libsvm import Labelled, read_libsvm
from fedsim.data.magic import read_magic

SEED = 11
NUMBERS = ["nan", "inf", "-inf", "1e999", "-1e999", "1e308", "5e-324", "", "x", "0x10", "1_0", "1,5", "--1",
           "1:2", "9" * 400, "-0", ".", "1e", "\u0661", "NaN(1)", "True"]
INDICES = ["0", "-1", "124", "999999999999", "1" * 30, "1.0", "1e2", "", "a", "+3", "03", " 5", "\u0661"]
LABELS = ["", "2", "nan", "yes", "0", "-1", "+1", "1", "1.0", "1e0", "g", "h", "G", "+1 -1", "1:1", "inf"]
BYTES = [b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\x0c", b"\x1a", b"\x85", b"\xc3\xa4", b"\n\n",
         b"\t", b" ", b"#"]


def a9a_like(random):
    """Rows of ones at increasing places, up to 123."""
    return [f"{random.choice(['-1', '+1'])} " + " ".join(
        f"{place}:1" for place in sorted(random.choice(np.arange(1, 124), random.integers(1, 14), False)))
        + " " for _ in range(random.integers(2, 9))]


def libsvm_like(random):
    """Rows of any numbers; labels 0 and 1."""
    return [f"{random.integers(2)} " + " ".join(
        f"{place}:{random.normal():.6g}" for place in sorted(random.choice(np.arange(1, 9), 4, False)))
        for _ in range(random.integers(2, 9))]


def magic_like(random):
    """Rows of ten numbers and a class."""
    return [",".join(f"{value:.4f}" for value in random.normal(size=10)) + "," + random.choice(["g", "h"])
            for _ in range(random.integers(2, 9))]


KINDS = {
    "a9a": (a9a_like, " ", lambda path: read_libsvm(path, n_features=123)),
    "libsvm": (libsvm_like, " ", read_libsvm),
    "magic": (magic_like, ",", lambda path: read_magic(path, n_rows=None)),
}


def _cell(lines, mark, random, change):
    """Change one entry of one row."""
    row = int(random.integers(len(lines)))
    cells = lines[row].split(mark)
    place = int(random.integers(len(cells)))
    cells[place] = change(cells[place])
    lines[row] = mark.join(cells)


def _value(lines, mark, random):
    number = str(random.choice(NUMBERS))
    _cell(lines, mark, random, lambda cell: f"{cell.partition(':')[0]}:{number}" if ":" in cell else number)


def _index(lines, mark, random):
    index = str(random.choice(INDICES))
    _cell(lines, mark, random, lambda cell: f"{index}:{cell.partition(':')[2]}")


def _label(lines, mark, random):
    row, label = int(random.integers(len(lines))), str(random.choice(LABELS))
    cells = lines[row].split(mark)
    cells[0 if mark == " " else -1] = label
    lines[row] = mark.join(cells)


def _twice(lines, mark, random):
    """An entry again: a duplicate index, or one number too many."""
    row = int(random.integers(len(lines)))
    cells = lines[row].split(mark)
    place = int(random.integers(len(cells)))
    lines[row] = mark.join([*cells[:place + 1], *cells[place:]])


def _fewer(lines, mark, random):
    """An entry, the label perhaps, is missing."""
    row = int(random.integers(len(lines)))
    cells = lines[row].split(mark)
    del cells[int(random.integers(len(cells)))]
    lines[row] = mark.join(cells)


def _swap(lines, mark, random):
    """Two rows, or two entries of a row, change places."""
    one, other = random.integers(len(lines), size=2)
    lines[one], lines[other] = lines[other], lines[one]
    cells = lines[one].split(mark)
    i, j = random.integers(len(cells), size=2)
    cells[i], cells[j] = cells[j], cells[i]
    lines[one] = mark.join(cells)


def _foreign(lines, mark, random):
    """A row of another format, or none."""
    other = [*magic_like(random), *libsvm_like(random), *a9a_like(random), "", "   ", "# note", "{", "a,b,c"]
    lines[int(random.integers(len(lines)))] = str(random.choice(other))


def _flip(data, random):
    for _ in range(random.integers(1, 9)):
        data[int(random.integers(len(data)))] ^= 1 << int(random.integers(8))


def _cut(data, random):
    del data[int(random.integers(len(data))):]


def _insert(data, random):
    place = int(random.integers(len(data) + 1))
    data[place:place] = BYTES[random.integers(len(BYTES))]


def _move(data, random):
    """A piece of the file moves, or goes."""
    begin, length = int(random.integers(len(data))), int(random.integers(1, 60))
    piece = bytes(data[begin:begin + length])
    del data[begin:begin + length]
    place = int(random.integers(len(data) + 1))
    data[place:place] = piece if random.integers(2) else b""


OF_LINES, OF_BYTES = (_value, _index, _label, _twice, _fewer, _swap, _foreign), (_flip, _cut, _insert, _move)


def malformed(kind, seed, number):
    """The bytes of a file with one or two kinds of damage."""
    random = np.random.default_rng([seed, number, *kind.encode()])
    make, mark, _ = KINDS[kind]
    lines = make(random)
    for _ in range(random.integers(1, 3)):
        damages = (*OF_LINES, *OF_BYTES)
        damage = damages[random.integers(len(damages))]
        if damage in OF_LINES:
            damage(lines, mark, random)
            continue
        data = bytearray("".join(line + "\n" for line in lines).encode())
        damage(data, random)
        return bytes(data)
    return "".join(line + "\n" for line in lines).encode()


WHOLE_FILE = (r"is empty; expected|names no feature in any row|make a dense table of|"
              r"at place \d+; expected plain text")


def search(kind, n_files, seed, folder):
    """Counts of refused and accepted files, and what broke the promise."""
    path, counts, broken = folder / f"{kind}.data", {"refused": 0, "accepted": 0}, []
    read = KINDS[kind][2]
    for number in range(n_files):
        path.write_bytes(malformed(kind, seed, number))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                data = read(path)
        except ValueError as error:
            counts["refused"] += 1
            if type(error) is not ValueError or path.name not in str(error) or not re.search(
                    rf"line \d+: |{WHOLE_FILE}", str(error)):
                broken.append(f"{kind}, seed {seed}, file {number}: {error!r}")
        except Exception as error:
            broken.append(f"{kind}, seed {seed}, file {number}: {error!r}")
        else:
            counts["accepted"] += 1
            if not (np.isfinite(data.features).all() and set(data.labels) <= {0.0, 1.0}
                    and len(data.features) == len(data.labels)):
                broken.append(f"{kind}, seed {seed}, file {number}: {data}")
    print(f"{kind}: {counts}")
    return counts, broken


@pytest.mark.parametrize("kind", KINDS)
def test_malformed_files_are_refused_by_line_or_read_to_finite_numbers(tmp_path, kind):
    counts, broken = search(kind, 150, SEED, tmp_path)
    assert not broken, "\n".join(broken)
    assert counts["refused"] > 75 and counts["accepted"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_malformed_files(tmp_path, kind):
    counts, broken = search(kind, 1000, SEED + 1, tmp_path)
    assert not broken, "\n".join(broken)
    assert sum(counts.values()) == 1000 and counts["refused"] > 500


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_malformed_files_are_made_of_is_sound(tmp_path, kind):
    make, _, read = KINDS[kind]
    (tmp_path / "sound").write_text("".join(line + "\n" for line in make(np.random.default_rng(SEED))))
    assert np.isfinite(read(tmp_path / "sound").features).all()


def test_the_search_sees_a_reader_that_is_not_strict(tmp_path, monkeypatch):
    """One that takes whatever Python's float takes, and whose errors name no line."""
    def lax(path):
        rows = [line.split() for line in path.read_text("latin-1").splitlines()]
        values = [float(cell.partition(":")[2]) for row in rows for cell in row[1:]]
        return Labelled(np.array(values), np.zeros(len(values)))

    monkeypatch.setitem(KINDS, "libsvm", (*KINDS["libsvm"][:2], lax))
    _, broken = search("libsvm", 100, SEED, tmp_path)
    assert any("nan" in text for text in broken) and any("ValueError" in text for text in broken)
