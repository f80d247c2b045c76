"""Data files in LIBSVM's sparse text format: a row is ``label index:value index:value ...``.

Indices count from 1 and increase within a row; features that are not named are 0. Labels are -1 and +1, or
0 and 1. A file is read wholly or refused: an error names the file, the line and what was expected there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..settings.limits import refuse_bytes
from ..settings.validation import Array, shown, whole
from .files import bytes_of

_INDEX = re.compile(r"[0-9]{1,12}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LABELS = {-1.0: "-1/+1", 0.0: "0/1"}
_FORM = "'label index:value index:value ...'"


class Labelled(NamedTuple):
    """Features (n, d) and labels (n,) of 0 and 1."""

    features: Array
    labels: Array


def _number(text: str) -> float | None:
    """A finite decimal number, or None."""
    value = float(text) if _NUMBER.fullmatch(text) else np.inf
    return value if np.isfinite(value) else None


def _label(text: str) -> float:
    value = _number(text)
    if value is None or value not in (-1.0, 0.0, 1.0):
        raise ValueError(f"label {shown(text)}; expected -1 or +1 (or 0 or 1)")
    return value


def _entry(text: str, before: int, n_features: int | None) -> tuple[int, float]:
    """Index and value of one entry; the index before it is smaller."""
    index, colon, number = text.partition(":")
    if not colon or not _INDEX.fullmatch(index):
        raise ValueError(f"entry {shown(text)}; expected index:value with a whole index from 1")
    place = int(index)
    if place <= before:
        raise ValueError(f"index {place} after {before}; expected " + (
            "indices from 1" if before == 0 else "increasing indices"))
    if n_features is not None and place > n_features:
        raise ValueError(f"index {place}; expected at most n_features={n_features}")
    value = _number(number)
    if value is None:
        raise ValueError(f"value {shown(number)} of index {place}; expected a finite number")
    return place, value


def text_of(path: str | os.PathLike[str], form: str) -> str:
    """A text file with rows of this form, packed or not."""
    content, named = bytes_of("path", path, f"a text file with rows {form}"), f"path={os.fspath(path)!r}"
    refuse_bytes(10.0 * len(content), f"{named} with {len(content)} bytes of text", "split it")
    try:
        return content.decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError(f"{named} has byte {error.object[error.start]:#04x} at place {error.start}; "
                         "expected plain text, or gzip, xz or bzip2 data of it") from None


def rows_of(path: str | os.PathLike[str], lines: list[str], read: Callable[[str], Any], form: str,
            n_rows: int | None) -> list[Any]:
    """Apply `read` to each line and tell the place of its errors; `n_rows` as in `read_libsvm`."""
    name, rows = Path(path).name, []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(read(line))
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from None
    if not rows:
        raise ValueError(f"{name} is empty; expected rows {form}")
    if n_rows is not None and len(rows) != n_rows:
        raise ValueError(f"{name} ends after line {len(rows)}; expected n_rows={n_rows} rows")
    return rows


def read_libsvm(path: str | os.PathLike[str], *, n_features: int | None = None,
                n_rows: int | None = None) -> Labelled:
    """Read a two-class data file.

    Parameters
    ----------
    path : path of a text file
    n_features : int, optional
        d; by default the largest index that occurs. The test part of a data set may not show them all.
    n_rows : int, optional
        The number of rows that the file must have: a truncated file is then refused.

    Returns
    -------
    Labelled
        Features (n, d), dense; labels (n,), -1 read as 0.

    Raises
    ------
    ValueError
        Naming file, line and what was expected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fedsim.data.libsvm import read_libsvm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "small")
    ...     _ = file.write_text("-1 1:0.5 3:2\\n+1 2:1\\n")
    ...     data = read_libsvm(file, n_features=4)
    >>> data.features.tolist(), data.labels.tolist()
    ([[0.5, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0]], [0.0, 1.0])
    """
    limit = None if n_features is None else whole("n_features", n_features, 1)
    n_rows = None if n_rows is None else whole("n_rows", n_rows, 1)
    *lines, rest = text_of(path, _FORM).split("\n")  # splitlines would also cut at form feeds
    if rest:
        raise ValueError(f"{Path(path).name}, line {len(lines) + 1}: the last row has no line end, so the "
                         "file may be cut short; expected every row to end with one")
    low = None  # the label of the other class: -1 or 0

    def read(line: str) -> tuple[float, list[tuple[int, float]]]:
        nonlocal low
        first, *texts = line.split() or [""]
        if not first:
            raise ValueError(f"an empty row; expected {_FORM}")
        label, entries = _label(first), [(0, 0.0)]
        if label != 1.0:
            if low not in (None, label):
                raise ValueError(f"label {shown(first)} after {_LABELS[low]} labels; expected one kind")
            low = label
        for text in texts:
            entries.append(_entry(text, entries[-1][0], limit))
        return label, entries[1:]

    labels, rows = zip(*rows_of(path, lines, read, _FORM, n_rows), strict=True)
    dim = limit if limit is not None else max((place for row in rows for place, _ in row), default=0)
    if dim == 0:
        raise ValueError(f"{Path(path).name} names no feature in any row; expected {_FORM}")
    refuse_bytes(8.0 * len(lines) * dim, f"{Path(path).name}: a dense table of {len(lines)} rows of "
                 f"n_features={dim}", "ask for fewer rows (n_rows), or split it")
    features = np.zeros((len(lines), dim))
    for number, row in enumerate(rows):
        for place, value in row:
            features[number, place - 1] = value
    return Labelled(features, np.array([float(label == 1.0) for label in labels]))
