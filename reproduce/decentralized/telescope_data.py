"""Data for DE-SGLD's figures 9 and 10: the MAGIC telescope's, or other rows in their format."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fedsim.data.libsvm import Labelled
from fedsim.data.magic import read_magic

from ..data_files import own_rows, read, shipped
from ..figure import BadInput
from . import logistic

FILE = "magic04.data"
REAL = "MAGIC telescope"


@cache
def telescope() -> Labelled:
    """The telescope's rows, which come with the project."""
    return read_magic(shipped(FILE))


def data_of(p: Any, files: Mapping[str, Path]) -> logistic.Data:
    """The telescope's rows, or those of a given file, with their name: the same rows are called the same.

    Raises
    ------
    BadInput
        Naming the file, where it is malformed, has too few rows, or one class alone.
    """
    if FILE not in files:
        return logistic.Data(*telescope(), REAL)
    file = files[FILE]
    given = read(lambda path: read_magic(path, n_rows=None), file)
    n_rows = len(given.labels)
    if n_rows - round(p.test_share * n_rows) < 2 * p.n_clients or round(p.test_share * n_rows) < 1:
        raise BadInput(f"{file.name} has {n_rows} rows; expected at least a test row, and two training rows "
                       f"for each of n_clients={p.n_clients}")
    if len(np.unique(given.labels)) < 2:
        raise BadInput(f"{file.name} has rows of one class alone; expected both, g and h")
    same = all(np.array_equal(one, other) for one, other in zip(given, telescope(), strict=True))
    return logistic.Data(*given, REAL if same else own_rows(f"{n_rows:,}"))
