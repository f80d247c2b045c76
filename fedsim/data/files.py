"""What all readers of data files ask first: is there such a file, and can it be read?"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..settings.limits import refuse_bytes
from ..settings.validation import instance

Bytes = npt.NDArray[np.uint8]

N_CLASSES = 10
"""Of labels in files of images, which count from 0."""
LARGEST = 2**30
"""Bytes of a binary file, unpacked, beyond which it is refused."""
_PACKED: dict[bytes, tuple[str, Callable[[io.BytesIO], Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open), b"\xfd7zXZ\x00": ("xz", lzma.open), b"BZh": ("bzip2", bz2.open)}
_PART = 2**20  # bytes that are unpacked at a time


def bytes_of(name: str, path: str | os.PathLike[str], expected: str) -> bytes:
    """All bytes of a file, unpacked where they are gzip, xz or bzip2 data, whatever the file is called.

    The message of a `ValueError` has the argument's name and the file, and says what was `expected`.
    """
    file = Path(instance(name, path, str, os.PathLike))
    named = f"{name}={str(file)!r}"
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise ValueError(f"{named} {what}; expected {expected}")
    try:
        size = file.stat().st_size
        refuse_bytes(3.0 * size, f"{named} with {size} bytes", "split it")
        content = file.read_bytes()
    except OSError as error:
        raise ValueError(f"{named} cannot be read: {error.strerror}") from None
    packed = [found for start, found in _PACKED.items() if content.startswith(start)]
    if not packed:
        return _of_size(content, named)
    (kind, unpack), unpacked = packed[0], bytearray()
    try:
        with unpack(io.BytesIO(content)) as stream:
            while len(unpacked) <= LARGEST and (part := stream.read(_PART)):
                unpacked += part
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{named} holds {kind} data that are damaged or cut short ({error}); "
                         f"expected {expected}") from None
    return _of_size(bytes(unpacked), named)


def check_labels(labels: Bytes, named: str) -> Bytes:
    """Labels from 0 to 9, or a ValueError that begins with `named`, the file."""
    for place in np.flatnonzero(labels >= N_CLASSES):
        raise ValueError(f"{named} has label {labels[place]} in row {place}; expected 0 to {N_CLASSES - 1}")
    return labels


def _of_size(content: bytes, named: str) -> bytes:
    if len(content) > LARGEST:
        raise ValueError(f"{named} holds more than {LARGEST} bytes; expected at most so many")
    return content
