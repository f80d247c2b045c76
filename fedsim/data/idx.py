"""Images and labels in IDX files, the format of MNIST and of the sets that took its place.

A file begins with the bytes 0, 0, 8 (entries are unsigned bytes) and the number of axes, then has the sizes
of the axes, four bytes each with the highest first, then the entries. One axis is that of labels, three axes
are images, rows and columns. A file is read wholly or refused, packed by gzip or not.

Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", which has the format.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..settings.validation import instance, one_of
from .files import Bytes, bytes_of, check_labels

USUAL_NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
               "t10k-labels-idx1-ubyte")
"""The four files of a data set: MNIST, Fashion-MNIST and Kuzushiji-MNIST have the same names."""

_UNSIGNED_BYTE = 0x08
_AXES = {"labels": 1, "images": 3}
_FORMS = {"labels": "an IDX file of labels, which begins with 0, 0, 8, 1",
          "images": "an IDX file of images, which begins with 0, 0, 8, 3",
          None: "an IDX file, which begins with 0, 0, 8, 1 (labels) or 0, 0, 8, 3 (images)"}


class Images(NamedTuple):
    """Images, one in every row, and their labels (n,), whole numbers from 0 to 9."""

    images: Bytes
    labels: Bytes


class ImageSet(NamedTuple):
    """Training images (n, rows, cols) and labels (n,), test images (m, rows, cols) and labels (m,)."""

    train_images: Bytes
    train_labels: Bytes
    test_images: Bytes
    test_labels: Bytes


def _sizes(content: bytes, kind: str | None, named: str) -> tuple[int, ...]:
    """Sizes of the axes, from a header that is checked."""
    expected = f"; expected {_FORMS[kind]}"
    if not content:
        raise ValueError(f"{named} is empty{expected}")
    if len(content) < 4:
        raise ValueError(f"{named} ends after {len(content)} bytes{expected}")
    zero, code, n_axes = content[:2], content[2], content[3]
    if zero != b"\0\0":
        raise ValueError(f"{named} begins with the bytes {', '.join(map(str, content[:4]))}{expected}")
    if code != _UNSIGNED_BYTE:
        raise ValueError(f"{named} has type code {code:#04x}; expected {_UNSIGNED_BYTE:#04x}, unsigned bytes")
    if n_axes not in _AXES.values():
        raise ValueError(f"{named} has {n_axes} axes{expected}")
    if kind is not None and n_axes != _AXES[kind]:
        other = next(name for name, n in _AXES.items() if n == n_axes)
        raise ValueError(f"{named} holds {other}{expected}")
    if len(content) < 4 + 4 * n_axes:
        raise ValueError(f"{named} ends after {len(content)} bytes; expected a header of {4 + 4 * n_axes}")
    return tuple(np.frombuffer(content, ">u4", n_axes, offset=4).tolist())


def load_idx(path: str | os.PathLike[str], *, kind: str | None = None) -> Bytes:
    """Read one IDX file of unsigned bytes.

    Parameters
    ----------
    path : path of a file, as it is or packed by gzip (its content tells, not its name)
    kind : "images" or "labels", optional
        What the file has to hold; labels are then checked to be 0 to 9. Either by default.

    Returns
    -------
    uint8 array, read-only
        Labels (n,), or images (n, rows, cols).

    Raises
    ------
    ValueError
        Naming file, what was expected and what was found: another kind, format or type, a size that is 0,
        entries that are missing or too many.

    Examples
    --------
    >>> import gzip, pathlib, tempfile
    >>> from fedsim.data.idx import load_idx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "labels")
    ...     _ = file.write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9])))
    ...     labels = load_idx(file, kind="labels")
    >>> labels
    array([7, 0, 9], dtype=uint8)
    """
    return _entries("path", path, one_of("kind", kind, (None, *_AXES)))


def _entries(name: str, path: str | os.PathLike[str], kind: str | None) -> Bytes:
    """What `load_idx` reads, for a message that has this name of the argument."""
    content = bytes_of(name, path, _FORMS[kind])
    named = f"{name}={str(Path(path))!r}"
    sizes = _sizes(content, kind, named)
    shape, begin = " x ".join(map(str, sizes)), 4 + 4 * len(sizes)
    found, wanted = len(content) - begin, math.prod(sizes)
    if wanted == 0:
        raise ValueError(f"{named} has no entries, its sizes are {shape}; expected sizes from 1")
    if found != wanted:
        what = "is cut short" if found < wanted else "goes on after its end"
        raise ValueError(f"{named} {what}: {found} entries; expected {wanted}, {shape}")
    entries = np.frombuffer(content, np.uint8, offset=begin).reshape(sizes)
    return check_labels(entries, named) if kind == "labels" else entries


def load_pair(images: str | os.PathLike[str], labels: str | os.PathLike[str]) -> Images:
    """Read an IDX file of images and the one of their labels.

    Parameters
    ----------
    images, labels : paths of files, as they are or packed by gzip

    Returns
    -------
    Images
        Images (n, rows, cols) and labels (n,), uint8.

    Raises
    ------
    ValueError
        As of `load_idx`, or where there are not as many labels as images.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fedsim.data.idx import load_pair
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [pathlib.Path(folder, name) for name in ("images", "labels")]
    ...     _ = files[0].write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4]))
    ...     _ = files[1].write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 0]))
    ...     pair = load_pair(*files)
    >>> pair.images.tolist(), pair.labels.tolist()
    ([[[1, 2]], [[3, 4]]], [7, 0])
    """
    return _pair(images, labels)


def _pair(images: str | os.PathLike[str], labels: str | os.PathLike[str], part: str = "") -> Images:
    """What `load_pair` reads; the arguments' names begin with `part`."""
    pair = Images(_entries(f"{part}images", images, "images"), _entries(f"{part}labels", labels, "labels"))
    if len(pair.images) != len(pair.labels):
        raise ValueError(f"{part}labels={str(Path(labels))!r} has {len(pair.labels)} labels; expected "
                         f"{len(pair.images)}, as {part}images={str(Path(images))!r} has images")
    return pair


def load_four(train_images: str | os.PathLike[str], train_labels: str | os.PathLike[str],
              test_images: str | os.PathLike[str], test_labels: str | os.PathLike[str]) -> ImageSet:
    """Read the four IDX files of a data set.

    Parameters
    ----------
    train_images, train_labels, test_images, test_labels : paths of files, as they are or packed by gzip

    Returns
    -------
    ImageSet
        uint8 arrays.

    Raises
    ------
    ValueError
        As of `load_pair`, or where test images have another size than training images.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fedsim.data.idx import load_four
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     images, labels = pathlib.Path(folder, "images"), pathlib.Path(folder, "labels")
    ...     _ = images.write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 50, 60]))
    ...     _ = labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 7]))
    ...     found = load_four(images, labels, images, labels)
    >>> found.test_images.tolist(), found.train_labels.tolist()
    ([[[50, 60]]], [7])
    """
    train, test = _pair(train_images, train_labels, "train_"), _pair(test_images, test_labels, "test_")
    sizes = [" x ".join(map(str, part.images.shape[1:])) for part in (train, test)]
    if sizes[0] != sizes[1]:
        raise ValueError(f"test_images={str(Path(test_images))!r} has images of {sizes[1]} pixels; expected "
                         f"{sizes[0]}, as in train_images={str(Path(train_images))!r}")
    return ImageSet(*train, *test)


def load_images(folder: str | os.PathLike[str]) -> ImageSet:
    """Read the four IDX files of a data set from a folder.

    Parameters
    ----------
    folder : path
        It holds the files under their usual names (`USUAL_NAMES`), each as it is or with ``.gz`` at the end;
        where both are there, the latter is read.

    Returns
    -------
    ImageSet
        uint8 arrays.

    Raises
    ------
    ValueError
        As of `load_four`, or naming the folder where a file is missing in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fedsim.data.idx import USUAL_NAMES, load_images
    >>> images = bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 50, 60])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in USUAL_NAMES:
    ...         content = images if "images" in name else bytes([0, 0, 8, 1, 0, 0, 0, 1, 7])
    ...         _ = pathlib.Path(folder, name).write_bytes(content)
    ...     found = load_images(folder)
    >>> found.train_images.shape, found.test_labels.tolist()
    ((1, 1, 2), [7])
    """
    place = Path(instance("folder", folder, str, os.PathLike))
    named = f"folder={str(place)!r}"
    if not place.is_dir():
        raise ValueError(f"{named} is not a folder; expected one that holds {', '.join(USUAL_NAMES)}")
    files = []
    for name in USUAL_NAMES:
        here = [file for file in (place / f"{name}.gz", place / name) if file.is_file()]
        if not here:
            raise ValueError(f"{named} does not hold {name}; expected it, or {name}.gz")
        files.append(here[0])
    return load_four(*files)
