"""Rows of data divided among clients, validation and test."""

from __future__ import annotations

from typing import Any

import numpy as np

import fedsim as fs

from .runs import Data, Labelled

TEST_SHARE, VALIDATION_SHARE = 0.25, 0.15
"""Of all rows, where there are no test rows of their own; and of those that are left."""


def divided(features: np.ndarray, labels: np.ndarray, title: str, p: Any, by_label: bool = False,
            digits: tuple[int, int] | None = None) -> Data:
    """Divide the rows in a random order; `by_label` sorts clients' rows by label before they are dealt.

    `digits` are two labels, to be told apart by logistic regression.
    """
    if digits is not None:
        kept = np.isin(labels, digits)
        features, labels = features[kept], (labels[kept] == digits[1]).astype(np.int64)
    order = np.random.default_rng(p.split_seed).permutation(len(labels))
    n_test = round(TEST_SHARE * len(labels))
    n_validation = round(VALIDATION_SHARE * (len(labels) - n_test))
    test, validation, train = np.split(order, [n_test, n_test + n_validation])
    train = train[:len(train) // p.n_clients * p.n_clients]  # parts of equal size
    if by_label:
        train = train[np.argsort(labels[train], kind="stable")]
    clients = np.repeat(np.arange(p.n_clients), len(train) // p.n_clients)
    options = {"prior_variance": p.prior_variance, "batch_size": p.batch_size}
    make = fs.SoftmaxRegression if digits is None else fs.LogisticRegression
    problem = make(features[train], labels[train], clients, **options)
    return Data(problem, Labelled(features[validation], labels[validation]),
                Labelled(features[test], labels[test]), title)


def pixels_of_digits() -> tuple[np.ndarray, np.ndarray, str]:
    """Scikit-learn's digits in [0, 1] with an intercept (1797, 65), labels, and what they are."""
    from sklearn.datasets import load_digits

    found = load_digits()
    features = np.column_stack([found.data / 16.0, np.ones(len(found.data))])
    return features, found.target.astype(np.int64), "digits (8 x 8, 1,797 real digits)"
