"""The MAGIC gamma telescope data (UCI): rows of ten numbers and a class, separated by commas.

The class is g (gamma, read as label 1) or h (hadron, 0). The file `magic04.data` has 19,020 rows. A file is
read wholly or refused: an error names the file, the line and what was expected there.
"""

from __future__ import annotations

import os

import numpy as np

from ..settings.validation import shown, whole
from .libsvm import Labelled, rows_of, text_of

N_FEATURES = 10
N_ROWS = 19_020
CLASSES = {"g": 1.0, "h": 0.0}
_FORM = "ten numbers and a class g or h, separated by commas"


def _row(line: str) -> tuple[list[float], float]:
    """Features and label of one row."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != N_FEATURES + 1:
        raise ValueError(f"{len(cells)} entries; expected {N_FEATURES + 1}: {_FORM}" if line.strip()
                         else f"an empty row; expected {_FORM}")
    values = []
    for place, cell in enumerate(cells[:-1], start=1):
        try:
            value = float(cell) if "_" not in cell else np.nan  # Python would read 1_0 as ten
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise ValueError(f"entry {place} is {shown(cell)}; expected a finite number")
        values.append(value)
    if cells[-1] not in CLASSES:
        raise ValueError(f"class {shown(cells[-1])}; expected g or h")
    return values, CLASSES[cells[-1]]


def read_magic(path: str | os.PathLike[str], *, n_rows: int | None = N_ROWS) -> Labelled:
    """Read the telescope's data.

    Parameters
    ----------
    path : path of a text file
    n_rows : int or None
        The number of rows that the file must have, so that a truncated file is refused; None for any.

    Returns
    -------
    Labelled
        Features (n, 10) as they stand in the file; labels (n,), 1 for gamma and 0 for hadron.

    Raises
    ------
    ValueError
        Naming file, line and what was expected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fedsim.data.magic import read_magic
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "small.data")
    ...     _ = file.write_text("1,2,3,4,5,6,7,8,9,10,g\\n0,0,0,0,0,0,0,0,0,-1.5,h\\n")
    ...     data = read_magic(file, n_rows=2)
    >>> data.features[:, -1].tolist(), data.labels.tolist()
    ([10.0, -1.5], [1.0, 0.0])
    """
    n_rows = None if n_rows is None else whole("n_rows", n_rows, 1)
    lines = text_of(path, f"of {_FORM}").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()  # line ends after the last row
    features, labels = zip(*rows_of(path, lines, _row, f"of {_FORM}", n_rows), strict=True)
    return Labelled(np.array(features), np.array(labels))
