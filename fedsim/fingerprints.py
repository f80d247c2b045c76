"""Fingerprints: a hash by which equal problems and algorithms are known to be equal, and one of sources.

The first is of the class and the normalised fields, the same in every process and for every form in which the
same thing can be given: a matrix or its diagonal, a number or a constant schedule. Files kept between runs
are kept under the second: with other code they are not used.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

KEPT = "_fingerprint"
"""Where a frozen value keeps its fingerprint, beside its fields."""


class _NoFingerprint(TypeError):
    """A value that no hash can tell from another, as a function."""


def feed(digest: Any, value: Any) -> None:
    """Add a value to a hash: numbers, texts, arrays, dataclasses, and tuples and mappings of such.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        value += 0.0  # -0 is 0
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        digest.update(f"{type(value).__name__} {value!r};".encode())
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        digest.update(f"array {value.shape} {value.dtype.str};".encode())
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif isinstance(value, (tuple, list)):
        digest.update(f"{type(value).__name__} {len(value)};".encode())
        for part in value:
            feed(digest, part)
    elif isinstance(value, Mapping):
        feed(digest, sorted(value.items()))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        package = type(value).__module__.split(".")[0]
        digest.update(f"{package}.{type(value).__qualname__};".encode())
        fields = value._definition() if hasattr(value, "_definition") else fields_of(value)
        feed(digest, {name: _same_step(part) for name, part in fields.items()})
    else:
        raise _NoFingerprint(f"value={value!r} must be made of numbers, texts, arrays and dataclasses")


def fingerprint(value: Any) -> str | None:
    """Hash of a problem, algorithm or other value, 32 digits; None where it cannot be told from others.

    Examples
    --------
    >>> from fedsim.fingerprints import fingerprint
    >>> one, other = fs.Quadratic([2.0], [[1.0]]), fs.Quadratic([[[2.0]]], [[1.0]], weights=[1.0])
    >>> fingerprint(one) == fingerprint(other) != fingerprint(fs.Quadratic([2.5], [[1.0]]))
    True
    """
    # a frozen problem is itself for good, and its data may be large: they are hashed once
    kept = vars(value) if _is_frozen(value) and hasattr(value, "__dict__") else {}
    if KEPT in kept:
        return str(kept[KEPT])
    digest = hashlib.sha256()
    try:
        feed(digest, value)
    except _NoFingerprint:
        return None
    return str(kept.setdefault(KEPT, digest.hexdigest()[:32]))


def _is_frozen(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and bool(value.__dataclass_params__.frozen)  # type: ignore[union-attr]


def fields_of(value: Any) -> dict[str, Any]:
    """The fields that define a dataclass; its `_definition` may put them in the form of equal ones."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}


def _same_step(value: Any) -> Any:
    """A constant schedule is its number."""
    return float(value.largest) if getattr(value, "is_constant", False) is True else value


def plain(matrices: np.ndarray) -> np.ndarray:
    """Matrices (..., d, d), or their diagonals (..., d) where nothing else is in them; -0 is 0."""
    diagonals = np.diagonal(matrices, axis1=-2, axis2=-1)
    only = np.count_nonzero(matrices) == np.count_nonzero(diagonals)
    return (diagonals if only else matrices) + 0.0


def hash_of(*paths: Path) -> str:
    """Hash of Python files, given or in given folders, wherever those lie, and of numba's version."""
    from importlib import metadata  # slow to import

    digest = hashlib.sha256(metadata.version("numba").encode())
    files = {(f"{path.name}/{file.relative_to(path).as_posix()}", file)
             for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])}
    for name, file in sorted(files):
        digest.update(f"{name}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def source_hash(*modules: ModuleType) -> str:
    """Hash of the sources of modules and whole packages; of fedsim by default: the version of its numbers."""
    files = (Path(str(module.__file__)).resolve() for module in modules or [sys.modules["fedsim"]])
    return hash_of(*(file.parent if file.stem == "__init__" else file for file in files))
