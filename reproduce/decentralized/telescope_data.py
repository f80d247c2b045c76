"""Data for DE-SGLD's figures 9 and 10: the MAGIC telescope's, other rows in their format, or two stand-ins.

One stand-in is synthetic, with as many rows as the telescope's data; the other is real: is a digit even?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from fedsim.data.magic import N_FEATURES, N_ROWS, read_magic

from ..data import read
from ..figure import BadInput
from ..images import digits
from . import logistic

FILE = "magic04.data"
STAND_IN = "SYNTHETIC STAND-IN"
DIGITS = "REAL STAND-IN: even digits"
REAL = "MAGIC telescope (file UNVERIFIED but for its rows and classes)"
NOT_THE_PAPERS = "NOT THE PAPER'S DATA"
N_GAMMA = 12_332
"""Rows of class g, label 1, of the telescope's data; no checksum of its file is known, as `REAL` says."""
SPLITS, STAND_INS = "splits", "stand-in data sets"


class Source(NamedTuple):
    """Data by number: their name, a word across panels, and what one of them is called."""

    name: str
    mark: str
    units: str
    data: Callable[[int], logistic.Data]


def stand_in(n_data: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, 10) and labels, two thirds of them 1 as in the telescope's data; not those data.

    Three factors and noise of their own make ten correlated features, half of them skewed; the label's
    logit is linear in them but for a product of two factors, which no linear classifier sees, so that
    about three quarters can be classified rightly.
    """
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_data, 3))
    raw = factors @ rng.standard_normal((3, N_FEATURES)) + 0.7 * rng.standard_normal((n_data, N_FEATURES))
    raw /= np.sqrt(raw.var(axis=0))
    features = np.where(np.arange(N_FEATURES) < N_FEATURES // 2, np.exp(0.7 * raw), raw)
    scores = logistic.standardised(features) @ (0.5 * rng.standard_normal(N_FEATURES))
    logits = 1.5 * scores / scores.std() + 1.2 * factors[:, 0] * factors[:, 1]
    return features, (rng.random(n_data) < expit(logits + 0.95)).astype(np.float64)


def even_digits() -> tuple[np.ndarray, np.ndarray]:
    """First ten principal components (1797, 10) of scikit-learn's digits; label 1 is an even digit.

    Seen from ten components, about 86 percent can be classified rightly by a linear classifier.
    """
    images = digits()
    pixels = images.rows(np.arange(len(images.labels)))[:, :-1]
    centred = pixels - pixels.mean(axis=0)
    along = np.linalg.svd(centred, full_matrices=False)[2][:N_FEATURES]
    along *= np.sign(along[np.arange(N_FEATURES), np.abs(along).argmax(axis=1)])[:, None]  # of no machine
    return centred @ along.T, (images.labels % 2 == 0).astype(np.float64)


def own_name(n_rows: int) -> str:
    """The name of rows in the telescope's format that are not its data."""
    return f"{n_rows:,} rows of --data, {NOT_THE_PAPERS}"


def sources(p: Any, files: Mapping[str, Path]) -> list[Source]:
    """The file's rows, split anew for every number; without a file both stand-ins.

    Raises
    ------
    BadInput
        Naming the file, where it is malformed, has too few rows, or one class alone.
    """
    if FILE not in files:
        features, labels = even_digits()
        real = logistic.Data(features, labels, DIGITS)
        return [Source(DIGITS, "REAL STAND-IN", SPLITS, lambda number: real),
                Source(STAND_IN, STAND_IN, STAND_INS, lambda number: logistic.Data(
                    *stand_in(p.n_data, p.data_seed + number), STAND_IN))]
    file = files[FILE]
    features, labels = read(lambda path: read_magic(path, n_rows=None), file)
    n_rows = len(labels)
    if n_rows - round(p.test_share * n_rows) < 2 * p.n_clients or round(p.test_share * n_rows) < 1:
        raise BadInput(f"{file.name} has {n_rows} rows; expected at least a test row, and two training rows "
                       f"for each of n_clients={p.n_clients}")
    if len(np.unique(labels)) < 2:
        raise BadInput(f"{file.name} has rows of one class alone; expected both, g and h")
    name = REAL if (n_rows, labels.sum()) == (N_ROWS, N_GAMMA) else own_name(n_rows)
    given = logistic.Data(features, labels, name)
    return [Source(name, "UNVERIFIED" if name == REAL else NOT_THE_PAPERS, SPLITS, lambda number: given)]
