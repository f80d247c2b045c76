"""Files: arrays written atomically without pickle, and read back with a clear error when damaged."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

DAMAGED = (KeyError, ValueError, OSError, EOFError, TypeError, AttributeError, zipfile.BadZipFile)
"""What reading a damaged or foreign file raises."""


def write_atomically(path: Path, data: dict[str, Any]) -> None:
    """Write arrays to `path` so that a reader sees the old file or the whole new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **data)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of a file; one of `DAMAGED` where it is not sound."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def read_payload(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and meta data of a saved law; a ValueError for a damaged or foreign file."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path={path!r} must be a file's path")
    try:
        data = read_arrays(path)
        meta = json.loads(bytes(data.pop("meta")).decode())
        if meta["version"] != 1 or meta["kind"] not in ("Law", "Run"):
            raise KeyError("version or kind")
    except FileNotFoundError:
        raise
    except DAMAGED as error:
        raise ValueError(f"path={str(path)!r} must be a file written by Law.save "
                         f"({type(error).__name__}: {error})") from None
    return data, meta
