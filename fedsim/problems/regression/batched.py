"""Who holds which rows of which class, and whether gradients take all of them or minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...equality import ByValue
from ...interfaces import ProblemParts
from ...settings.alignment import align_fields, numbered
from ...settings.validation import Array, array, as_array, flag, locked, one_of, set_fields, unmasked, whole


def in_order(problem: Any) -> Any:
    """The targets; features, targets and clients are in one order now, weights in that of the clients."""
    align_fields(problem, "features", problem._targets_name, "clients")
    align_fields(problem, "features", axis=1)
    set_fields(problem, weights=numbered("weights", problem.weights))
    return vars(problem)[problem._targets_name]


def client_numbers(value: object, n_data: int) -> np.ndarray:
    """Integers 0, ..., N-1 (n,), each of which occurs."""
    if isinstance(value, range) and len(value) != n_data:  # it may be longer than the memory
        raise ValueError(f"clients={value} has {len(value)} numbers; it must have {n_data}, one per row of "
                         "features")
    numbers = as_array(unmasked("clients", value))
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"clients must be an array of integers, got dtype {numbers.dtype}")
    if numbers.shape != (n_data,):
        raise ValueError(f"clients has shape {numbers.shape}; it must be ({n_data},), one per row of "
                         "features")
    for place in np.flatnonzero(numbers < 0):
        raise ValueError(f"clients[{place}]={numbers[place]} must be at least 0")
    missing = np.setdiff1d(np.arange(min(int(numbers.max()) + 1, n_data + 1)), numbers)
    if len(missing):
        raise ValueError(f"clients={int(numbers.max())} occurs but client {missing[0]} has no data; clients "
                         "must be numbered 0, ..., N-1 and each must have data")
    return locked(numbers.astype(np.int64))


def class_numbers(value: object, n_classes: int | None) -> tuple[np.ndarray, int]:
    """Labels 0, ..., C-1 (n,), each of which occurs, and C."""
    numbers = as_array(unmasked("labels", value))
    if numbers.dtype.kind not in "iub" or numbers.ndim != 1 or not len(numbers):
        raise ValueError(f"labels has dtype {numbers.dtype} and shape {numbers.shape}; it must be a list of "
                         "integers 0, ..., C-1, one per row of features")
    count = int(numbers.max()) + 1 if n_classes is None else whole("n_classes", n_classes, 2)
    for place in np.flatnonzero((numbers < 0) | (numbers >= count)):
        condition = "at least 0" if numbers[place] < 0 else f"less than n_classes={count}"
        raise ValueError(f"labels[{place}]={numbers[place]} must be {condition}")
    missing = np.setdiff1d(np.arange(min(count, len(numbers) + 1)), numbers)
    if len(missing) or count < 2:
        raise ValueError(f"labels: class {missing[0] if len(missing) else 1} has no rows; classes must be "
                         f"numbered 0, ..., C-1 (here n_classes={max(count, 2)}) and each must have rows")
    return locked(numbers.astype(np.int64)), count


def bytes_or_numbers(value: Any) -> Array:
    """Features (n, p): bytes as they are, else as `array` has them."""
    if getattr(value, "dtype", None) != np.uint8:
        return array("features", value, 2)
    if np.ndim(value) != 2 or 0 in np.shape(value):
        raise ValueError(f"features has shape {np.shape(value)}; it must have 2 axes and must not be empty")
    return locked(np.array(unmasked("features", value), order="C"))


class Batched(ByValue, ProblemParts):
    """What problems share whose gradients may be estimated from minibatches."""

    batch_size: int | None
    replace: bool
    grad_scale: str

    def _check_batches(self) -> bool:
        """Check how minibatches are drawn; True where they are, and `batch_size` is to be checked too."""
        set_fields(self, replace=flag("replace", self.replace))
        one_of("grad_scale", self.grad_scale, ("unbiased", "batch_sum"))
        if self.batch_size is None and self.grad_scale != "unbiased":
            raise ValueError(f"grad_scale={self.grad_scale!r} must be 'unbiased' when batch_size=None")
        return self.batch_size is not None

    @property
    def has_minibatches(self) -> bool:
        """True with a `batch_size`."""
        return self.batch_size is not None

    @property
    def keeps_gaussian(self) -> bool:
        """False with minibatches, whose noise is not normal or depends on the point."""
        return not self.has_minibatches

    @property
    def _batch_words(self) -> str:
        """The minibatches' part of the readable line."""
        return "" if self.batch_size is None else (
            f", batch_size={self.batch_size}, replace={self.replace}, grad_scale={self.grad_scale!r}")
