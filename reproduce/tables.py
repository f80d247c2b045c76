"""Small helpers of tables: groups in their order, rows by values, log-spaced numbers, lists in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def groups(table: pd.DataFrame, columns: Any) -> list[tuple[Any, pd.DataFrame]]:
    """The values of `columns` and their rows, in the table's order."""
    return list(table.groupby(columns, sort=False))


def among(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows with these values."""
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def spaced(last: int, count: int = 60, first: int = 1) -> np.ndarray:
    """About `count` log-spaced whole numbers from `first` to `last`, both kept."""
    return np.unique(np.rint(np.geomspace(first, last, count)).astype(np.int64))


def listed(items: list[str]) -> str:
    """Items in words: a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
