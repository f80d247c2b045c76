"""The binary files of CIFAR-10: rows of a label and the 3,072 bytes of an image, nothing else.

An image has 32 x 32 pixels, of which first all red values are stored, then all green, then all blue. The
files data_batch_1.bin to data_batch_5.bin (training) and test_batch.bin have 10,000 rows each. A file is read
wholly or refused.

Source: A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009; the data set's page
describes the format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..settings.validation import instance, shown, whole
from .files import Bytes, bytes_of, check_labels
from .idx import Images

N_PIXELS = 3072
N_ROWS = 10_000
USUAL_NAMES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
"""Five files of training rows, and one of test rows."""

_FORM = f"rows of {N_PIXELS + 1} bytes, a label and {N_PIXELS} pixels"


def _rows(name: str, file: Path, n_rows: int | None) -> Bytes:
    """Rows (n, 3073) of one file, the value of the argument `name`."""
    content, named = bytes_of(name, file, f"a file with {_FORM}"), f"{name}={str(file)!r}"
    if not content:
        raise ValueError(f"{named} is empty; expected {_FORM}")
    count, rest = divmod(len(content), N_PIXELS + 1)
    if n_rows is not None and len(content) != n_rows * (N_PIXELS + 1):
        raise ValueError(f"{named} has {len(content)} bytes; expected {n_rows * (N_PIXELS + 1)}, "
                         f"n_rows={n_rows} {_FORM}")
    if rest:
        raise ValueError(f"{named} has {rest} bytes after {count} whole rows; expected {_FORM}")
    rows = np.frombuffer(content, np.uint8).reshape(count, N_PIXELS + 1)
    check_labels(rows[:, 0], named)
    return rows


def load_cifar10(paths: Sequence[str | os.PathLike[str]], *, n_rows: int | None = N_ROWS) -> Images:
    """Read binary files of CIFAR-10, one after the other.

    Parameters
    ----------
    paths : list or tuple of paths
        Files as they are, or packed by gzip; not the archive that holds them all.
    n_rows : int or None
        The number of rows that each file must have, so that a truncated file is refused; None for any.

    Returns
    -------
    Images
        Images (n, 3072), red, green and blue after each other, and labels (n,), uint8.

    Raises
    ------
    ValueError
        Naming file, what was expected and what was found: another size, a label beyond 9, a file that is
        named twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fedsim.data.cifar import load_cifar10
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "test_batch.bin")
    ...     _ = file.write_bytes(bytes([3] + 3072 * [0] + [8] + 3072 * [255]))
    ...     data = load_cifar10([file], n_rows=2)
    >>> data.images.shape, data.labels.tolist(), data.images[:, -1].tolist()
    ((2, 3072), [3, 8], [0, 255])
    """
    if n_rows is not None:
        n_rows = whole("n_rows", n_rows, 1)
    if not instance("paths", paths, list, tuple):
        raise ValueError(f"paths={shown(paths)} must name at least one file")
    files = [Path(instance(f"paths[{number}]", path, str, os.PathLike)) for number, path in enumerate(paths)]
    for number, file in enumerate(files):
        if file in files[:number]:
            raise ValueError(f"paths[{number}]={str(file)!r} is named twice; expected different files")
    rows = np.concatenate([_rows(f"paths[{number}]", file, n_rows) for number, file in enumerate(files)])
    return Images(rows[:, 1:], rows[:, 0])
