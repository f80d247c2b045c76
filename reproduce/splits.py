"""Rows of data dealt to clients, evenly by chance, by label, or unevenly by chance; and rows kept apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedsim.settings.validation import instance, positive, real, whole, whole_numbers

Whole = npt.NDArray[np.int64]
MOST_DRAWS = 1000
"""Of `dirichlet`, before it says that no division will do."""
MOST_EVEN = 1e15
"""The largest alpha: beyond it shares are equal to rounding, and later the sums of draws overflow."""


class Division(NamedTuple):
    """Numbers of the rows for training, validation and test: no row is in two of them."""

    train: Whole
    validation: Whole
    test: Whole


def _labels(labels: npt.ArrayLike) -> Whole:
    found = whole_numbers("labels", labels)
    if found.size == 0:
        raise ValueError("labels=[] must have at least one row")
    return found.astype(np.int64)


def _clients(n_clients: int, n: int) -> int:
    """How many clients, at most one for each of n rows."""
    if whole("n_clients", n_clients, 1) > n:
        raise ValueError(f"n_clients={n_clients} must be at most {n}, the number of rows")
    return int(n_clients)


def _in_turn(order: Whole, n_clients: int) -> Whole:
    """Clients (n,) that get contiguous parts of the rows in this order, equal within one row."""
    clients = np.empty(len(order), np.int64)
    clients[order] = np.arange(len(order)) * n_clients // len(order)
    return clients


def iid(n: int, n_clients: int, rng: np.random.Generator) -> Whole:
    """Rows in a random order, cut into parts that are equal within one row.

    Parameters
    ----------
    n, n_clients : int
        Rows; clients, at most n.
    rng : numpy.random.Generator

    Returns
    -------
    (n,) integers
        The client of each row, 0 to n_clients - 1.

    Raises
    ------
    ValueError
        Naming the argument, its value and what it must be.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduce.splits import iid
    >>> np.bincount(iid(11, 3, np.random.default_rng(0))).tolist()
    [4, 4, 3]
    """
    instance("rng", rng, np.random.Generator)
    n = whole("n", n, 1)
    return _in_turn(rng.permutation(n), _clients(n_clients, n))


def by_label(labels: npt.ArrayLike, n_clients: int) -> Whole:
    """Rows sorted by label, cut into contiguous parts that are equal within one row.

    Parameters
    ----------
    labels : (n,) integers
    n_clients : int
        At most n.

    Returns
    -------
    (n,) integers
        The client of each row. Rows of a label stay in their order.

    Raises
    ------
    ValueError
        Naming the argument, its value and what it must be.

    Examples
    --------
    >>> from reproduce.splits import by_label
    >>> by_label([7, 3, 7, 3, 5, 5], 3).tolist()
    [2, 0, 2, 0, 1, 1]
    """
    found = _labels(labels)
    return _in_turn(np.argsort(found, kind="stable"), _clients(n_clients, len(found)))


def dirichlet(labels: npt.ArrayLike, n_clients: int, alpha: float, rng: np.random.Generator,
              least: int = 1) -> Whole:
    """Rows of every label dealt in shares that are drawn from a symmetric Dirichlet law.

    Parameters
    ----------
    labels : (n,) integers
    n_clients : int
    alpha : float
        Of Dirichlet(alpha, ..., alpha), anew for each label: the larger, the more equal are the shares.
    rng : numpy.random.Generator
    least : int
        Rows that every client must have (those of a minibatch, say): all is drawn again until it has.

    Returns
    -------
    (n,) integers
        The client of each row.

    Raises
    ------
    ValueError
        Naming the argument, its value and what it must be; also where `MOST_DRAWS` draws do not give every
        client `least` rows.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduce.splits import dirichlet
    >>> labels = np.repeat([0, 1], 50)
    >>> clients = dirichlet(labels, 2, 1e9, np.random.default_rng(0))
    >>> [np.bincount(clients[labels == label]).tolist() for label in (0, 1)]
    [[25, 25], [25, 25]]
    """
    found = _labels(labels)
    n_clients, least = _clients(n_clients, len(found)), whole("least", least, 1)
    if positive("alpha", alpha) > MOST_EVEN:
        raise ValueError(f"alpha={alpha} must be at most {MOST_EVEN:g}")
    instance("rng", rng, np.random.Generator)
    if least * n_clients > len(found):
        raise ValueError(f"least={least} rows for each of n_clients={n_clients} must be at most {len(found)} "
                         "in all, the number of rows")
    for _ in range(MOST_DRAWS):
        clients = np.empty(len(found), np.int64)
        for label in np.unique(found):
            rows = rng.permutation(np.flatnonzero(found == label))
            ends = np.cumsum(rng.dirichlet(np.full(n_clients, float(alpha))))[:-1]
            clients[rows] = np.searchsorted(np.rint(ends * len(rows)), np.arange(len(rows)), side="right")
        if np.bincount(clients, minlength=n_clients).min() >= least:
            return clients
    raise ValueError(f"alpha={alpha} gave no division in {MOST_DRAWS} draws in which each of "
                     f"n_clients={n_clients} has least={least} rows; use a larger alpha or fewer clients")


def _share(name: str, value: float) -> float:
    if not 0.0 <= real(name, value) < 1.0:
        raise ValueError(f"{name}={value} must be at least 0 and less than 1")
    return float(value)


def division(n: int, seed: int, *, test_share: float, validation_share: float) -> Division:
    """Rows in a random order, cut into test, validation and training rows.

    Parameters
    ----------
    n : int
        Rows.
    seed : int
    test_share : float
        Of all rows, rounded to whole ones; 0 where the test rows are others.
    validation_share : float
        Of the rows that are left, rounded to whole ones.

    Returns
    -------
    Division

    Raises
    ------
    ValueError
        Naming the argument, its value and what it must be; also where no training row is left.

    Examples
    --------
    >>> from reproduce.splits import division
    >>> [len(part) for part in division(1797, 0, test_share=0.25, validation_share=0.15)]
    [1146, 202, 449]
    """
    order = np.random.default_rng(whole("seed", seed)).permutation(whole("n", n, 1))
    n_test = round(_share("test_share", test_share) * n)
    n_validation = round(_share("validation_share", validation_share) * (n - n_test))
    if n_test + n_validation == n:
        raise ValueError(f"test_share={test_share} and validation_share={validation_share} must leave at "
                         f"least one of n={n} rows for training")
    test, validation, train = np.split(order, [n_test, n_test + n_validation])
    return Division(train, validation, test)
