"""Where a figure's results live: one CSV, one claims JSON and one SVG a figure, written atomically.

The CSV holds all tables of a figure, one after the other, with the table's name in the first column.
A column that a table does not have is left blank; a missing value within a column is written nan.
Numbers have ten significant digits. Nothing that changes from run to run is written: no date, path or
version.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedsim.laws.storage import put, remove, sweep, write_part

from .figure import Tables

FOLDER = Path(__file__).resolve().parent.parent / "figures"
RTOL = 1e-6
"""Relative tolerance of `--check`; the same code gives the same digits."""
ATOL_OF_SCALE = 1e-9
"""Absolute tolerance of `--check`, relative to the largest value of the column."""


class MissingResult(ValueError):
    """A figure was asked to be drawn or checked before it was ever made."""


def folder_for(scale: str, out: str | os.PathLike[str] | None = None, with_data: bool = False,
               custom: bool = False) -> Path:
    """figures/ for the quick scale, figures/<scale>/ for others, data/ in it with data files; or `out`.

    What is `custom`, made with other parameters or in another style, is in custom/ of these.
    """
    if out is not None:
        return Path(out)
    folder = FOLDER if scale == "quick" else FOLDER / scale
    folder = folder / "data" if with_data else folder
    return folder / "custom" if custom else folder


def _cell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        text = f"{float(value):.10g}"
        return text if any(mark in text for mark in ".en") else f"{text}.0"  # keeps it a float
    if not isinstance(value, str) or value == "":
        raise ValueError(f"cell {value!r} must be a number or a non-empty text")
    return value


def to_csv(tables: Tables) -> str:
    """All tables as one CSV text."""
    columns = list(dict.fromkeys(name for table in tables.values() for name in table.columns))
    if "table" in columns:
        raise ValueError("column 'table' is reserved for the name of the table")
    empty = [name for name, table in tables.items() if table.empty]
    if empty:
        raise ValueError(f"table {empty[0]} must have at least one row")
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["table", *columns])
    for name, table in tables.items():
        values = {column: table[column].tolist() for column in table.columns}
        for i in range(len(table)):
            writer.writerow([name, *(_cell(values[c][i]) if c in values else "" for c in columns)])
    return file.getvalue()


def _typed(texts: list[str]) -> list[Any]:
    if all(text in ("True", "False") for text in texts):
        return [text == "True" for text in texts]
    for kind in (int, float):
        try:
            return [kind(text) for text in texts]
        except ValueError:
            continue
    return texts


def from_csv(text: str) -> Tables:
    """Inverse of `to_csv`, to the written digits."""
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or rows[0][:1] != ["table"]:
        raise ValueError("csv must begin with a header whose first column is 'table'")
    groups: dict[str, list[list[str]]] = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise ValueError(f"csv line {number} has {len(row)} cells; it must have {len(rows[0])}")
        groups.setdefault(row[0], []).append(row[1:])
    tables = {}
    for name, body in groups.items():
        columns = list(zip(*body, strict=True))
        tables[name] = pd.DataFrame({header: _typed(list(cells)) for header, cells
                                     in zip(rows[0][1:], columns, strict=True) if cells[0] != ""})
    return tables


def to_json(data: Any) -> str:
    """Readable JSON; NaN is refused."""
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return value.tolist()
        raise TypeError(f"cannot write {type(value).__name__} to JSON")

    return json.dumps(data, indent=1, ensure_ascii=True, allow_nan=False, default=plain) + "\n"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C for the few renames of a publication."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if arrived:
        raise KeyboardInterrupt


def publish(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write all `files` into `folder`: first completely beside, then into place by renaming.

    An interruption or an error before the renames leaves every old file as it was.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    parts: dict[str, Path] = {}
    try:
        for name, content in files.items():
            parts[name] = write_part(folder / name, content.encode() if isinstance(content, str) else content)
        with _uninterrupted():
            for name in files:
                put(parts[name], folder / name)
    except BaseException:
        for part in parts.values():
            remove(part)
        raise


def load_tables(folder: Path, name: str) -> Tables:
    """The stored tables of a figure; `MissingResult` says how to make them when there are none."""
    path = folder / f"{name}.csv"
    if not path.exists():
        raise MissingResult(f"figure={name!r} has no stored table {path.name} in {folder.name}/; "
                            f"make it first: python -m reproduce {name}")
    return from_csv(path.read_text())


def load_record(folder: Path, name: str) -> dict[str, Any] | None:
    """The stored claims JSON of a figure, or None."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def differences(stored: Tables, fresh: Tables,
                loose: Mapping[str, tuple[str, str, float]] | None = None) -> list[str]:
    """What differs between two sets of tables beyond tolerance, in words; empty when nothing does.

    `loose` gives a table (column, value, tolerance): an absolute tolerance for its rows with that value.
    """
    texts, loose = [], loose or {}
    for name in dict.fromkeys([*stored, *fresh]):
        if name not in stored or name not in fresh:
            texts.append(f"table {name}: only in the {'stored' if name in stored else 'fresh'} result")
            continue
        old, new = stored[name], fresh[name]
        if set(old.columns) != set(new.columns) or len(old) != len(new):
            texts.append(f"table {name}: stored {len(old)} rows {list(old.columns)}, "
                         f"fresh {len(new)} rows {list(new.columns)}")
            continue
        rows = _tolerance(old, loose.get(name))
        texts += [text for column in old.columns
                  if (text := _column_difference(name, column, old, new, rows))]
    return texts


def _tolerance(table: pd.DataFrame, loose: tuple[str, str, float] | None) -> np.ndarray:
    """Absolute tolerance of each row, 0 where none of its own is given."""
    if loose is None:
        return np.zeros(len(table))
    column, value, tolerance = loose
    return np.where(table[column] == value, tolerance, 0.0)


def _column_difference(name: str, column: str, old: pd.DataFrame, new: pd.DataFrame,
                       loose: np.ndarray) -> str:
    a, b = old[column], new[column]
    if not (pd.api.types.is_numeric_dtype(a) and pd.api.types.is_numeric_dtype(b)):
        wrong = np.flatnonzero(a.astype(str).to_numpy() != b.astype(str).to_numpy())
        return "" if not len(wrong) else (f"table {name}, column {column}, row {wrong[0]}: "
                                          f"stored {a.iloc[wrong[0]]!r}, fresh {b.iloc[wrong[0]]!r}")
    x, y = a.to_numpy(dtype=float), b.to_numpy(dtype=float)
    scale = np.abs(x[np.isfinite(x)]).max(initial=0.0)
    close = np.isclose(y, x, rtol=RTOL, atol=np.maximum(loose, ATOL_OF_SCALE * scale), equal_nan=True)
    if close.all():
        return ""
    worst = int(np.flatnonzero(~close)[0])
    return (f"table {name}, column {column}: {int((~close).sum())} of {len(x)} values differ, first in row "
            f"{worst}: stored {x[worst]:.10g}, fresh {y[worst]:.10g}")
