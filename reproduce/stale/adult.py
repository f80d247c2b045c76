"""The Adult data a9a: read from its files where they are given, otherwise a stand-in that says so.

Stand-in: 14 questions with as many answers as a9a's features have columns, 123 in all. A person gives one
answer to each, answer k of a question with probability proportional to 1/k, but leaves three questions
open with probability 0.043, as in a9a, so that a row has 13.87 ones on average. Labels are drawn from the
logistic model with independent normal coefficients, shifted so that 24 percent of them are 1, as in a9a.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

import fedsim as fs
from fedsim.data.libsvm import Labelled, read_libsvm

from .. import data as reading
from ..figure import BadInput, ByScale, Parameter
from ..verdicts import MIN_SETS

DATA = ("a9a", "a9a.t")
N_FEATURES, N_TRAIN, N_TEST = 123, 32_561, 16_281
ONES = [7_841, 3_846]
"""Rows of label 1 in a9a's two files; no checksum of them is known, as `A9A` says."""
ANSWERS = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)
OPEN = (1, 6, 13)
OPEN_SHARE, SHARE_OF_ONES = 0.043, 0.24
A9A = "a9a (files UNVERIFIED but for their rows and classes)"
STAND_IN = "SYNTHETIC STAND-IN for a9a"

_SIZE = "a9a has 32,561 and 16,281 rows; the quick scale takes the first so many, and fewer where files have"
PARAMETERS = [
    Parameter("n_train", ByScale(150, 1000, N_TRAIN), "ours", _SIZE),
    Parameter("n_test", ByScale(60, 400, N_TEST), "ours", _SIZE),
    Parameter("prior_variance", 1.0, "paper", "section 5.2: normal priors of unit variance"),
    Parameter("batch_size", ByScale(10, 10, 100), "ours", "J is not printed; drawn without replacement"),
    Parameter("spread", 0.8, "ours", "standard deviation of the stand-in's coefficients"),
    Parameter("data_seed", 0, "ours", "of the first stand-in, and of the random splits of given files"),
    Parameter("n_sets", MIN_SETS, "ours", "stand-ins, or splits of given files into training and test rows"),
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


def stand_in(n_rows: int, spread: float, seed: int) -> Labelled:
    """Rows of the stand-in described above."""
    rng = np.random.default_rng(seed)
    features, first = np.zeros((n_rows, N_FEATURES)), 0
    for question, answers in enumerate(ANSWERS):
        odds = 1.0 / np.arange(1, answers + 1)
        answer = rng.choice(answers, n_rows, p=odds / odds.sum())
        answered = rng.random(n_rows) >= (OPEN_SHARE if question in OPEN else 0.0)
        features[np.flatnonzero(answered), first + answer[answered]] = 1.0
        first += answers
    coefficients = spread * rng.standard_normal(N_FEATURES)
    scores, ones = features @ coefficients, features.sum(axis=1)
    shift = brentq(lambda c: expit(scores + c * ones).mean() - SHARE_OF_ONES, -9.0, 9.0)
    return Labelled(features, (rng.random(n_rows) < expit(scores + shift * ones)).astype(np.float64))


def _part(rows: Labelled, chosen: Any) -> Labelled:
    return Labelled(rows.features[chosen], rows.labels[chosen])


def own_name(n_train: int, n_test: int) -> str:
    """The name of rows in a9a's format that are not its data."""
    return f"{n_train:,} and {n_test:,} rows of --data, NOT THE PAPER'S DATA"


def adults(p: Any, files: Mapping[str, Path]) -> Iterator[Adult]:
    """`p.n_sets` data sets: stand-ins, or splits of the given files' rows, cut to the scale's size.

    The first split is that of the files; the others deal all their rows anew. Files with other numbers
    of rows or of ones than a9a's are not the paper's data, and are called so.

    Raises
    ------
    BadInput
        When only one of the two files is given, or a file is malformed, or training rows are fewer than a
        minibatch.
    """
    missing = [name for name in DATA if name not in files]
    if missing and len(missing) < len(DATA):
        raise BadInput(f"data file {missing[0]} is missing beside {next(iter(files))}; training and test "
                         "rows must both be given, or neither")
    if missing:
        for number in range(p.n_sets):
            rows = stand_in(p.n_train + p.n_test, p.spread, p.data_seed + number)
            yield Adult(_part(rows, slice(p.n_train)), _part(rows, slice(p.n_train, None)), STAND_IN)
        return
    parts = [reading.read(partial(read_libsvm, n_features=N_FEATURES), files[name]) for name in DATA]
    sizes = [len(part.labels) for part in parts]
    if sizes[0] < p.batch_size:
        raise BadInput(f"{files[DATA[0]].name} has {sizes[0]} rows; expected at least {p.batch_size}, those "
                       "of a minibatch")
    ones = [int(part.labels.sum()) for part in parts]
    source = A9A if (sizes, ones) == ([N_TRAIN, N_TEST], ONES) else own_name(*sizes)
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
            f"d = {row['dim']}; {row['sets']} data sets")
