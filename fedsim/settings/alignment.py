"""Rows that belong together come in one order: by the labels of pandas, by position where there are none.

The one rule, wherever arguments are paired (rows of data, clients, coordinates):

- the same labels in the same order: nothing happens;
- the same labels in another order: brought into the order of the first argument that has any;
- other labels: refused, with the argument and the first label that is missing;
- labels that occur twice, in another order: refused, for nobody knows which belongs to which;
- an argument without labels (a list, an array) is taken by position.

Labels are told by what they can do: pandas itself is not needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..hints import shown
from .validation import set_fields

POSITIONS = "pass {name}.to_numpy() where positions are meant"


class _Part(NamedTuple):
    """One labelled axis of an argument, or of an entry of a list."""

    name: str
    labels: Any
    place: tuple[Any, ...]
    axis: int


def labels_of(value: Any, axis: int = 0) -> Any:
    """The labels of rows (0) or columns (1) of what has some, else None."""
    labels = getattr(value, ("index", "columns")[axis], None) if axis < 2 else None
    return labels if all(hasattr(labels, name) for name in ("get_indexer", "equals", "is_unique")) else None


def _parts(name: str, value: Any, axis: int, place: tuple[Any, ...] = ()) -> list[_Part]:
    """What is labelled along an axis; entries of a list are its first axis."""
    if isinstance(value, (list, tuple)):
        if axis == 0 or not all(hasattr(entry, "index") and hasattr(entry, "iloc") for entry in value):
            return []
        return [part for i, entry in enumerate(value)
                for part in _parts(f"{name}[{i}]", entry, axis - 1, (*place, i))]
    labels = labels_of(value, axis)
    return [] if labels is None else [_Part(name, labels, place, axis)]


def _what(part: _Part) -> str:
    return ("the index of " if part.axis == 0 else "the columns of ") + part.name


def _said(label: Any) -> str:
    return shown(label.item() if isinstance(label, np.generic) else label)


def _order(first: _Part, other: _Part) -> np.ndarray | None:
    """Where in `other` the labels of `first` stand; None where they stand as they should."""
    if first.labels.equals(other.labels):
        return None
    end = POSITIONS.format(name=other.name)
    for one in (first, other):
        if not one.labels.is_unique:
            label = one.labels[one.labels.duplicated()][0]
            raise ValueError(f"{_what(other)} differs from {_what(first)}, and {_what(one)} has "
                             f"{_said(label)} more than once; labels must be unique to be aligned: {end}")
    for one, two in ((first, other), (other, first)):
        for lost in np.flatnonzero(two.labels.get_indexer(one.labels) < 0):
            raise ValueError(f"{_what(two)} has no {_said(one.labels[lost])}, which {_what(one)} has; "
                             f"both must have the same labels, in any order: {end}")
    found: np.ndarray = other.labels.get_indexer(first.labels)
    return None if (found == np.arange(len(found))).all() else found


def _taken(value: Any, place: tuple[Any, ...], axis: int, order: np.ndarray) -> Any:
    """A copy of a value, of which this part has another order."""
    if place:
        return [_taken(entry, place[1:], axis, order) if i == place[0] else entry
                for i, entry in enumerate(value)]
    return value.iloc[order] if axis == 0 else value.iloc[:, order]


def aligned(*arguments: tuple[str, Any, int], strict: bool = True) -> list[Any]:
    """Values whose axes are paired, in one order.

    Parameters
    ----------
    arguments : (name, value, axis)
        Axis 0 are the rows, 1 the columns; of a list of frames 0 are its entries, 1 their rows, 2 their
        columns.
    strict : bool
        Without it, what has other labels than the first stays as it is: it need not belong to it.

    Raises
    ------
    ValueError
        For other labels, and for labels that are not unique where orders differ.

    Examples
    --------
    >>> import pandas as pd
    >>> from fedsim.settings.alignment import aligned
    >>> x, y = pd.Series([1, 2], index=["a", "b"]), pd.Series([20, 10], index=["b", "a"])
    >>> [part.tolist() for part in aligned(("x", x, 0), ("y", y, 0), ("z", pd.array([5, 6]), 0))]
    [[1, 2], [10, 20], [5, 6]]
    """
    values = [value for _, value, _ in arguments]
    first: _Part | None = None
    for i, (name, value, axis) in enumerate(arguments):
        for part in _parts(name, value, axis):
            first = first or part
            if not strict and set(part.labels) != set(first.labels):
                continue
            order = _order(first, part)
            if order is not None:
                values[i] = _taken(values[i], part.place, part.axis, order)
    return values


def together(*axes: int, **arguments: Any) -> list[Any]:
    """`aligned` of several arguments along each of these axes.

    Examples
    --------
    >>> import pandas as pd
    >>> from fedsim.settings.alignment import together
    >>> x, y = pd.DataFrame([[1, 2]], columns=["a", "b"]), pd.DataFrame([[4, 3]], columns=["b", "a"])
    >>> [part.to_numpy().tolist() for part in together(0, 1, x=x, y=y)]
    [[[1, 2]], [[3, 4]]]
    """
    values = list(arguments.values())
    for axis in axes:
        values = aligned(*((name, value, axis) for name, value in zip(arguments, values, strict=True)))
    return values


def align_fields(frozen: object, *names: str, axis: int = 0) -> None:
    """The same of fields of a frozen dataclass; for its ``__post_init__``, before they are checked."""
    given = {name: getattr(frozen, name) for name in names}
    set_fields(frozen, **dict(zip(given, together(axis, **given), strict=True)))


def square(name: str, value: Any) -> Any:
    """A matrix whose columns are in the order of its rows, or a list of such.

    Where rows or columns are only numbered 0, 1, ..., and the others are named, positions are meant.

    Raises
    ------
    ValueError
        For a frame whose columns have other labels than its index.
    """
    if isinstance(value, (list, tuple)):
        return [square(f"{name}[{i}]", entry) for i, entry in enumerate(value)] if all(
            labels_of(entry, 1) is not None for entry in value) else value
    index, columns = labels_of(value), labels_of(value, 1)
    if index is None or columns is None or len(index) != len(columns):
        return value
    numbers = range(len(index))
    if set(index) != set(columns) and (_numbered(index, numbers) or _numbered(columns, numbers)):
        return value
    order = _order(_Part(name, index, (), 0), _Part(name, columns, (), 1))
    return value if order is None else value.iloc[:, order]


def _numbered(labels: Any, numbers: range) -> bool:
    return all(label == number for label, number in zip(labels, numbers, strict=True))


def numbered(name: str, value: Any) -> Any:
    """One value per client in the order of their numbers 0, 1, ..., which labels, if any, have to be.

    Raises
    ------
    ValueError
        For other labels.
    """
    labels = labels_of(value)
    if labels is None:
        return value
    count = len(labels)
    if set(labels) != set(range(count)):
        wrong = next((label for label in labels if label not in range(count)), labels[0])
        raise ValueError(f"the index of {name} has {_said(wrong)}; it must be the clients' numbers 0, ..., "
                         f"{count - 1}, in any order: {POSITIONS.format(name=name)}")
    order = labels.get_indexer(range(count))
    return value if (order == np.arange(count)).all() else value.iloc[order]
