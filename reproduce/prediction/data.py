"""Image data for a figure: which it uses, and their rows dealt to clients, validation and test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fedsim as fs

from ..figure import BadInput
from ..images import SETS, ImageData, digits, idx_set, mnist_5k
from .runs import Data, Labelled

STAND_IN, SUBSET = "stand-in", "MNIST-5k"
"""Images in place of a paper's: small ones, and at paper scale beside them 5,000 of MNIST's."""


def stand_in(scale: str, in_place_of: str) -> ImageData:
    """Scikit-learn's digits; at paper scale, 5,000 images of MNIST."""
    return mnist_5k(in_place_of) if scale == "paper" else digits(in_place_of)


def chosen(scale: str, files: Mapping[str, Path], folders: Sequence[str]) -> dict[str, ImageData]:
    """The data sets of these `folders` that `--data` gave, by folder; without any, stand-ins for all."""
    given = {folder: idx_set(folder, files) for folder in folders}
    found = {folder: images for folder, images in given.items() if images is not None}
    if found:
        return found
    names = " and ".join(SETS[folder] for folder in folders)
    return {STAND_IN: digits(names)} | ({SUBSET: mnist_5k(names)} if scale == "paper" else {})


def batch_size(p: Any, images: ImageData) -> int:
    """Of digits, or of larger images."""
    size: int = p.digits_batch_size if images.is_small else p.batch_size
    return size


def dealt(images: ImageData, p: Any, batch_size: int | None, by_label: bool = False) -> Data:
    """Deal the rows in a random order; `by_label` sorts clients' rows by label before they are dealt.

    A minibatch has at most all rows of a client. Two classes have half the prior variance: the difference of
    their vectors then moves as the only one of logistic regression does, at step sizes in units of the
    curvature.

    Raises
    ------
    BadInput
        Naming the data, where a client has no row or a class has none among the training rows.
    """
    train, validation, test = images.divided(p.split_seed)
    size = len(train) // p.n_clients
    train = train[:size * p.n_clients]  # parts of equal size
    features, labels = images.features, images.labels
    if by_label:
        train = train[np.argsort(labels[train], kind="stable")]
    n_classes = int(labels.max(initial=0)) + 1
    try:
        problem = fs.SoftmaxRegression(
            features[train], labels[train], np.repeat(np.arange(p.n_clients), size), n_classes=n_classes,
            feature_scale=images.feature_scale,
            batch_size=None if batch_size is None else min(batch_size, size),
            prior_variance=p.prior_variance / 2.0 if n_classes == 2 else p.prior_variance)
    except ValueError as error:
        raise BadInput(f"{images.name}, {len(train)} training rows dealt to {p.n_clients} clients: "
                       f"{error}") from None
    return Data(problem, Labelled(features[validation], labels[validation]),
                Labelled(features[test], labels[test]), images.name, images.is_paper)
