"""The Adult data as a9a: rebuilt from the raw rows that come with the project, or read from files of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim as fs
from fedsim.data.adult import LONG_HOURS, N_FEATURES, N_TEST, N_TRAIN, read_adult
from fedsim.data.libsvm import Labelled, read_libsvm

from .. import data_files as reading
from ..figure import BadInput, ByScale, Parameter
from ..verdicts import MIN_SETS

DATA = ("a9a", "a9a.t")
UNSURE = slice(80, 82)
"""Columns in which a9a may differ from what is rebuilt: of the last two ranges of hours."""
REBUILT, A9A = "a9a REBUILT from the Adult data", "a9a"

_SIZE = "a9a has 32,561 and 16,281 rows; the quick scale takes the first so many, and fewer where files have"
PARAMETERS = [
    Parameter("n_train", ByScale(150, 1000, N_TRAIN), "ours", _SIZE),
    Parameter("n_test", ByScale(60, 400, N_TEST), "ours", _SIZE),
    Parameter("prior_variance", 1.0, "paper", "section 5.2: normal priors of unit variance"),
    Parameter("batch_size", ByScale(10, 10, 100), "ours", "J is not printed; drawn without replacement"),
    Parameter("long_hours", LONG_HOURS, "ours", "of the rows with 46 or 47 hours a week, 131 of the training "
              "rows, a9a's range is not known: verdicts are the same with 46"),
    Parameter("data_seed", 0, "ours", "of the second split into training and test rows; the others follow"),
    Parameter("n_sets", MIN_SETS, "ours", "splits; the first is that of the files"),
]


class Adult(NamedTuple):
    """Training and test rows, and where they come from."""

    train: Labelled
    test: Labelled
    source: str

    def problem(self, p: Any) -> fs.LogisticRegression:
        """The posterior given the training rows, with minibatches."""
        return fs.LogisticRegression(*self.train, np.zeros(len(self.train.labels), np.int64),
                                     prior_variance=p.prior_variance, batch_size=p.batch_size, replace=False)

    def loss(self, path: np.ndarray) -> np.ndarray:
        """Mean logistic loss (R, n) of the test rows at points (R, n, d); in parts that stay in the cache."""
        signed = (self.test.features * (1.0 - 2.0 * self.test.labels)[:, None]).T  # minus the margins
        points, size = path.reshape(-1, path.shape[-1]), max(1, 2**18 // len(self.test.labels))
        losses = [np.log(1.0 + np.exp(points[first:first + size] @ signed)).mean(axis=1)
                  for first in range(0, len(points), size)]
        return np.concatenate(losses).reshape(path.shape[:-1])


@cache
def rebuilt(long_hours: int) -> tuple[Labelled, Labelled]:
    """Training and test rows made of those that come with the project."""
    train, test = (read_adult(reading.shipped(name), long_hours=long_hours)
                   for name in ("adult.csv", "adult.test.csv"))
    return train, test


def _part(rows: Labelled, chosen: Any) -> Labelled:
    return Labelled(rows.features[chosen], rows.labels[chosen])


def _same(given: Labelled, known: Labelled) -> bool:
    """Are these rows those that are known, but for hours that are not?"""
    differ = given.features != known.features if given.features.shape == known.features.shape else None
    return (differ is not None and np.array_equal(given.labels, known.labels)
            and not np.delete(differ, np.r_[UNSURE], axis=1).any())


def _given(files: Mapping[str, Path], p: Any) -> tuple[list[Labelled], str]:
    """Training and test rows, and what they are called."""
    missing = [name for name in DATA if name not in files]
    known = rebuilt(p.long_hours)
    if len(missing) == len(DATA):
        return list(known), REBUILT
    if missing:
        raise BadInput(f"data file {missing[0]} is missing beside {next(iter(files))}; training and test "
                       "rows must both be given, or neither")
    parts = [reading.read(partial(read_libsvm, n_features=N_FEATURES), files[name]) for name in DATA]
    sizes = [len(part.labels) for part in parts]
    if sizes[0] < p.batch_size:
        raise BadInput(f"{files[DATA[0]].name} has {sizes[0]} rows; expected at least {p.batch_size}, those "
                       "of a minibatch")
    same = all(_same(one, other) for one, other in zip(parts, known, strict=True))
    return parts, A9A if same else reading.own_rows(f"{sizes[0]:,} and {sizes[1]:,}")


def adults(p: Any, files: Mapping[str, Path]) -> Iterator[Adult]:
    """`p.n_sets` splits of the rows into training and test rows, cut to the scale's size.

    The first split is that of the files; the others deal all their rows anew. Files with other rows than
    a9a's are not the paper's data, and are called so.

    Raises
    ------
    BadInput
        When only one of the two files is given, or a file is malformed, or training rows are fewer than a
        minibatch.
    """
    parts, source = _given(files, p)
    yield Adult(_part(parts[0], slice(p.n_train)), _part(parts[1], slice(p.n_test)), source)
    rows = Labelled(*(np.concatenate(both) for both in zip(*parts, strict=True)))
    for number in range(1, p.n_sets):
        dealt = np.random.default_rng(p.data_seed + number).permutation(len(rows.labels))
        train, test = np.split(dealt, [len(parts[0].labels)])
        yield Adult(_part(rows, train[:p.n_train]), _part(rows, test[:p.n_test]), source)


def data_table(data_sets: Sequence[Adult]) -> pd.DataFrame:
    """One row: the source, how many data sets, and what they look like on average."""
    first = data_sets[0]
    return pd.DataFrame([{
        "source": first.source, "sets": len(data_sets), "n_train": len(first.train.labels),
        "n_test": len(first.test.labels), "dim": first.train.features.shape[1],
        "nonzero_per_row": float(np.mean([(one.train.features != 0.0).sum(axis=1).mean()
                                          for one in data_sets])),
        "share_of_ones": float(np.mean([one.train.labels.mean() for one in data_sets]))}])


def data_text(table: pd.DataFrame) -> str:
    """The data in words, for a picture."""
    row = table.iloc[0]
    return (f"{row['source']}: {row['n_train']:,} training and {row['n_test']:,} test rows, "
            f"d = {row['dim']}; {row['sets']} splits")
