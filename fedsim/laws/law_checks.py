"""What the fields of a law must be, whether it was computed, made by hand or read from a file.

They hold for every one that is made, and pass over the covariances in pieces that fit a processor's cache. A
factor of each costs about what these passes do, and less than a round of the law that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import suppress
from typing import Any

import numpy as np

from ..settings.limits import refuse_bytes
from ..settings.validation import (
    Array,
    entry_of,
    instance,
    nonnegative,
    read_only,
    set_fields,
    shape,
    shown,
    symmetric,
    whole,
    whole_numbers,
)

_PIECE = 2**16
"""Numbers of a piece of a large array."""
_ROUNDING = 1e-9
"""What rounding may take from a covariance, relative to the law's largest."""
_ROUNDING_OF_SQUARE = 1e-15
"""And relative to the square of its largest mean."""
_ROUNDING_OF_ONE = 1e-12
"""Of one matrix that is given by itself, relative to its largest entry."""


def kept(name: str, value: Any) -> Any:
    """An array field as a law keeps it: a view that cannot be written to, or None.

    Raises
    ------
    ValueError
        For a masked or ragged one.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be a masked array; fill or drop what is masked")
    if not isinstance(value, np.ndarray) and isinstance(value, Sized):
        with suppress(TypeError):  # a sparse matrix has no length
            refuse_bytes(40.0 * len(value), f"{name}={shown(value)}", "pass an array")
    try:
        return read_only(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of real numbers ({error})") from None


def _numbers(name: str, value: Any, *axes: int) -> None:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
        raise ValueError(f"{name}={shown(value)} must be an array of real numbers")
    if value.ndim not in axes:
        raise ValueError(f"{name} has shape {value.shape}; it must have {' or '.join(map(str, axes))} axes")


def _pieces(value: Array) -> Iterator[tuple[int, Array]]:
    """Runs of rows of an array that fit a processor's cache, each with the number of its first row."""
    rows = max(1, _PIECE // max(1, value[0].size)) if len(value) else 1
    for begin in range(0, len(value), rows):
        yield begin, value[begin:begin + rows]


def _finite(name: str, value: Array, rounds: np.ndarray | None = None) -> None:
    for begin, piece in _pieces(value):
        if not np.isfinite(piece).all():
            row, *rest = np.argwhere(~np.isfinite(piece))[0]
            what = name if rounds is None else f"{name} of the law at round {rounds[row + begin]}"
            entry = entry_of(name, (row + begin, *rest))
            raise ValueError(f"{what} must be finite; {entry}={piece[row, *rest]}")


def check_covariance(name: str, mean: Array, cov: Any, rounds: np.ndarray) -> None:
    """Shape, finite, variances not negative, and what holds entry by entry of a law's covariances.

    Raises
    ------
    ValueError
        Naming the first round at which something does not hold.
    """
    _numbers(name, cov, 2, 3)
    dim = mean.shape[1]
    shape(name, cov, (*mean.shape, dim) if cov.ndim == 3 else mean.shape, " as mean has it")
    if not len(cov):
        return
    _finite(name, cov, rounds)
    size = max(float(np.abs(piece).max(initial=0.0)) for _, piece in _pieces(cov))
    with np.errstate(over="ignore"):
        slack = float(_ROUNDING * size + _ROUNDING_OF_SQUARE * np.abs(mean).max(initial=0.0)**2)
    for begin, piece in _pieces(cov):
        variances = piece if cov.ndim == 2 else np.diagonal(piece, axis1=1, axis2=2)
        for row, i in np.argwhere(variances < -slack):
            raise ValueError(f"{name}[{begin + row}] has a negative variance {variances[row, i]:g} of "
                             f"coordinate {i}; it must be at least 0")
        if cov.ndim == 3 and dim > 1:
            _check_entries(name, begin, piece, variances, slack)
    if cov.ndim == 3:
        _check_semidefinite(name, cov, slack, size)


def _check_entries(name: str, begin: int, piece: Array, variances: Array, slack: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        lopsided = np.abs(piece - np.swapaxes(piece, 1, 2)) > slack
        scale = np.sqrt(np.maximum(variances, 0.0) + slack)
        large = np.abs(piece) > (1.0 + _ROUNDING) * scale[:, :, None] * scale[:, None, :]
    for wrong, why in ((lopsided, "it must be symmetric"), (large, "no correlation can exceed 1")):
        for row, i, j in np.argwhere(wrong):
            raise ValueError(f"{name}[{begin + row}, {i}, {j}]={piece[row, i, j]:g}; {why}")


def _check_semidefinite(name: str, cov: Array, slack: float, size: float) -> None:
    """Refuse a negative eigenvalue beyond rounding: one that `slack` in each variance would not lift."""
    dim = cov.shape[-1]
    if dim == 1 or slack >= size:  # every eigenvalue is larger than -dim * size
        return
    rounding = 8.0 * float(np.finfo(cov.dtype).eps) if cov.dtype.kind == "f" else 0.0  # of short floats
    lift = dim * max(slack / size, rounding)
    for begin, piece in _pieces(cov):
        scaled = np.asarray(piece, np.float64) / size  # of entries near the largest float64 sums overflow
        try:
            np.linalg.cholesky(scaled + lift * np.eye(dim))
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(scaled)[:, 0]
            row = int(np.argmin(smallest))
            if smallest[row] < -lift:
                raise ValueError(f"{name}[{begin + row}] has smallest eigenvalue {smallest[row] * size:g}; "
                                 "it must be positive semidefinite") from None


def not_negative(name: str, variances: Array) -> Array:
    """Variances (..., d).

    Raises
    ------
    ValueError
        For a negative one.
    """
    if (variances < 0.0).any():
        raise ValueError(f"{name} has a negative variance {variances.min():g}; it must be at least 0")
    return variances


def rounding_of(values: Any, given: object = None) -> Array:
    """What rounding may take from eigenvalues (..., d): about d eps of the largest, with the eps of floats.

    `given` is what their matrices were made of: of short floats they have no more digits.
    """
    kind = getattr(given, "dtype", None)
    short = isinstance(kind, np.dtype) and kind.kind == "f" and kind.itemsize < 8
    eps = float(np.finfo(kind if short else np.float64).eps)
    size: Array = np.abs(values).max(axis=-1)
    return values.shape[-1] * eps * size


def covariance(name: str, value: Array, given: object = None) -> Array:
    """Covariances (..., d, d), exactly symmetric: each by itself is one, up to its own rounding.

    Raises
    ------
    ValueError
        For one that is not symmetric, or has a negative eigenvalue.
    """
    dense = symmetric(name, value)
    values = np.linalg.eigvalsh(dense)
    smallest, size = values[..., 0], np.maximum(np.abs(dense).max(axis=(-1, -2)), 1e-300)
    wrong = smallest < -np.maximum(_ROUNDING_OF_ONE * size, rounding_of(values, given))
    if wrong.any():
        index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        what = entry_of(name, index) if index else name
        raise ValueError(f"{what} has smallest eigenvalue {smallest[index]:g}; it must be positive "
                         "semidefinite")
    return dense


def check_law(law: Any, kind: type, gaussian: type) -> None:
    """Check a law's own fields; `kind` is the class of its clients' laws, `gaussian` that of its target.

    Raises
    ------
    ValueError
        Naming the field, its value and the condition.
    """
    rounds = law.rounds
    _numbers("rounds", rounds, 1)
    if rounds.dtype.kind not in "iu" or not rounds.size or rounds[0] < 0 or (rounds[1:] <= rounds[:-1]).any():
        raise ValueError(f"rounds={shown(rounds)} must be increasing integers, at least 0")
    _numbers("mean", law.mean, 2)
    if law.mean.shape[1] == 0:
        raise ValueError(f"mean has shape {law.mean.shape}; it must have a column per coordinate")
    shape("mean", law.mean, (len(law.rounds), law.dim), " (one row per recorded round)")
    _finite("mean", law.mean, law.rounds)
    if law.cov is not None:
        check_covariance("cov", law.mean, law.cov, law.rounds)
    if law.target is not None:
        instance("target", law.target, gaussian)
        if law.target.dim != law.dim:
            raise ValueError(f"target has dimension {law.target.dim}; it must be that of mean, {law.dim}")
    instance("is_gaussian", law.is_gaussian, bool, np.bool_)
    instance("label", law.label, str)
    for number, client in enumerate(instance("clients", law.clients, tuple, list)):
        instance(f"clients[{number}]", client, kind)
        shape(f"clients[{number}].mean", client.mean, law.mean.shape, " as mean has it")
        if (client.rounds != law.rounds).any():
            raise ValueError(f"clients[{number}].rounds={shown(client.rounds)} must be those of the law")


def check_run(run: Any) -> None:
    """Check what a run has besides the fields of a law.

    Raises
    ------
    ValueError
        Naming the field, its value and the condition.
    """
    set_fields(run, n_replicas=whole("n_replicas", run.n_replicas, 1),
               n_leaves=whole("n_leaves", run.n_leaves), seed=whole("seed", run.seed))
    for name, cost in instance("costs", run.costs, dict).items():
        nonnegative(f"costs[{instance('a name in costs', name, str)!r}]", cost)
    for name, wanted in (("final", (run.n_replicas, run.dim)), ("averages", (run.n_replicas,))):
        value = getattr(run, name)
        if value is not None:
            _numbers(name, value, len(wanted))
            shape(name, value, wanted, " (one row per replica)")
            _finite(name, value)
    if run.outside is not None:
        counts = whole_numbers("outside", run.outside)
        shape("outside", counts, (len(run.rounds),), " (one per recorded round)")
        if counts.min() < 0 or counts.max() > run.n_replicas:
            raise ValueError(f"outside={shown(counts)} must lie in [0, n_replicas={run.n_replicas}]")
        set_fields(run, outside=read_only(counts))
    instance("includes_outside", run.includes_outside, bool, np.bool_)
    for name in ("leaf_cov", "spread"):
        value = getattr(run, name)
        if value is None:
            continue
        if run.cov is None:
            raise ValueError(f"{name} must be None when cov is")
        _numbers(name, value, run.cov.ndim)
        shape(name, value, run.cov.shape, " as cov has it")
        if name == "leaf_cov":
            check_covariance(name, run.mean, value, run.rounds)
        elif run.n_leaves > 1:  # a spread of one leaf is not a number
            _finite(name, value)
