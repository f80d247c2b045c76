"""Tables with rows for every combination of some values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

import pandas as pd

from .figure import note


def tabulate(what: str, rows: Callable[..., Any], p: Any,
             values: Mapping[Any, Iterable[Any]]) -> pd.DataFrame:
    """A table over every combination of `values`, the last of which varies fastest.

    Parameters
    ----------
    what : str
        Told on the terminal with each combination.
    rows : p, **combination -> mapping, or list of them
        The rest of the combination's row, or of its rows.
    p : namespace
        The figure's settings.
    values : {name: values}, or {(name, name): pairs of values}
        The first columns.
    """
    table = []
    for combination in product(*values.values()):
        labels: dict[str, Any] = {}
        for name, value in zip(values, combination, strict=True):
            labels |= {name: value} if isinstance(name, str) else dict(zip(name, value, strict=True))
        note(", ".join([what, *(f"{name}={value}" for name, value in labels.items())]))
        fresh = rows(p, **labels)
        table += [labels | row for row in (fresh if isinstance(fresh, list) else [fresh])]
    return pd.DataFrame(table)
