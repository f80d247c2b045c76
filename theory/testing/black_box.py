"""A kernel as a function of seeds and a flat state, and its matrix by common random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.validation import Array, shown

from .affine_step import coarse_part
from .nested import Nested, asked

DOUBLE, SINGLE = 1e-10, 3e-5
"""Relative misfit that the rounding of float64 and of float32 may leave."""
MATRICES = 4
"""Seeds whose matrices are compared entry by entry."""
ALIKE = 400
"""Seeds more of which one change of the state is compared."""
DEPENDENT = 1e-7
"""Relative size below which an entry of the state has nothing of its own."""
TWO_ANSWERS = ("the kernel gives two answers for one seed and state; it must make its generator or key anew "
               "of the seed at each call")


def seeds_from(seed: int, count: int) -> np.ndarray:
    """Distinct seeds (count,) up to 2^30, as generators of all libraries take them; far apart, for kernels
    that make others by adding to one."""
    return 1 + (seed * 2_654_435_761 + np.arange(count) * 668_265_263) % 2**30


class Box:
    """A kernel as a function of seeds and a flat state, evaluated one by one or many seeds together."""

    def __init__(self, kernel: Callable[[Any, Any], Any], states: Nested, batched: bool) -> None:
        self.kernel, self.states, self.batched = kernel, states, batched
        self.single = ""

    def _answers(self, seeds: np.ndarray, x: Array) -> tuple[Any, Array]:
        """The last state as it came, and all of them."""
        if self.batched:
            state = asked("kernel(seeds, state) of this problem", self.kernel, seeds, self.states.tree(x))
            return state, self.states.flat(state, stacked=True)
        found = np.empty((len(seeds), self.states.size))
        for i, seed in enumerate(seeds.tolist()):
            state = asked("kernel(seed, state) of this problem", self.kernel, seed, self.states.tree(x))
            found[i] = self.states.flat(state)
        return state, found

    def __call__(self, seeds: np.ndarray, x: Array) -> Array:
        """New states (K, n)."""
        try:
            state, found = self._answers(seeds, x)
        except ValueError as error:
            raise ValueError(f"kernel, with batched={self.batched}: {error}") from error
        self.single = self.single or coarse_part(state, self.states)
        if len(found) != len(seeds) or not np.isfinite(found).all():
            raise ValueError(f"kernel gives {shown(found)} of {len(seeds)} seeds; it must give a finite "
                             "state for each")
        return found


class Matrix(NamedTuple):
    """A kernel's matrix as it is found.

    mean : (n, n), over some seeds; sizes : (n,), by how much each entry of the state was changed
    errors : (n, n), what the kernel's arithmetic may leave in an entry
    rounding : float, relative misfit that it leaves; is_random : bool, other seeds have other matrices
    """

    mean: Array
    sizes: Array
    errors: Array
    rounding: float
    is_random: bool


def matrix_of(box: Box, seeds: np.ndarray) -> Matrix:
    """The matrix by the first few seeds, whether all have it, and what rounding leaves in it."""
    states, point, generator = box.states, box.states.values, np.random.default_rng(0)
    few, many = seeds[:MATRICES], seeds[MATRICES:MATRICES + ALIKE]
    first = box(few, point)
    if not np.array_equal(first, box(few, point)):
        raise ValueError(TWO_ANSWERS)
    sizes = _by_part(states, np.maximum(np.abs(first).max(axis=0), np.abs(point)), 1.0)
    sizes = 2.0 ** np.ceil(np.log2(sizes))
    moved = np.stack([box(few, point + size * e) for size, e in zip(sizes, np.eye(states.size), strict=True)],
                     axis=2)
    matrices = (moved - first[:, :, None]) / sizes
    rounding, unit = (SINGLE, 2.0**-23) if box.single else (DOUBLE, 2.0**-52)
    for size in (0.3, 1.0, 30.0, 1e3):
        change = size * sizes * generator.standard_normal((states.size,))
        off = _off(box, few, first, matrices, change)
        if not off.max() <= rounding:
            place = int(np.argmax(off))
            raise ValueError(f"the kernel is not affine in its state: off by {off[place]:.2g} of its size "
                             f"at {states.place(place)}, from a change of size "
                             f"{size * sizes[place]:.2g}; " + _perhaps(box, matrices, place))
    mean = matrices.mean(axis=0)
    change = sizes * generator.standard_normal((states.size,))
    parted = np.broadcast_to(matrices[0], matrices.shape)
    off = _off(box, few, first, parted, change).max()
    if len(many):
        off = max(off, _off(box, many, box(many, point), np.broadcast_to(mean, (len(many), *mean.shape)),
                            change).max())
    largest = np.maximum(np.abs(first).max(axis=0)[:, None], np.abs(moved).max(axis=0))
    return Matrix(mean, sizes, 8.0 * unit * largest / sizes, rounding, bool(off > 10.0 * rounding))


def refuse_memory(box: Box, seeds: np.ndarray, draws: Array, point: Array, rounding: float) -> None:
    """Raise ValueError where the first seeds, asked again in another order, have other answers than `draws`.

    To rounding alone: compilers add up differently for another number of seeds.
    """
    few, sizes = draws[:MATRICES], _by_part(box.states, np.abs(draws).max(axis=0), 1e-300)
    if not (np.abs(box(seeds[MATRICES - 1::-1], point)[::-1] - few) <= rounding * sizes).all():
        raise ValueError(TWO_ANSWERS)


def _by_part(states: Nested, sizes: Array, least: float) -> Array:
    """The largest size of each part of the state, of all its entries; `least` where all are 0."""
    made = np.empty(states.size)
    for _, part in states.parts():
        made[part] = sizes[part].max(initial=0.0) or least
    return made


def _off(box: Box, seeds: np.ndarray, first: Array, matrices: Array, change: Array) -> Array:
    """By how much answers differ from those of matrices, relative to what is added up in each part."""
    got = box(seeds, box.states.values + change) - first
    summed = np.abs(matrices).max(axis=0) @ np.abs(change) + np.abs(first).max(axis=0)
    off = np.abs(got - np.einsum("kij,j->ki", matrices, change)).max(axis=0)
    return np.asarray(off / _by_part(box.states, summed, 1e-300))


def image_of(matrix: Array, draws: Array) -> tuple[Array, Array]:
    """A basis (n, r) of how new states differ, by the matrix and the noise, and its left inverse."""
    few = draws[:2 * len(matrix) + 2]
    moved = np.concatenate([matrix, (few - few[0]).T], axis=1)
    rows = np.maximum(np.abs(moved).max(axis=1, initial=0.0), 1e-300)
    left, sizes, _ = np.linalg.svd(moved / rows[:, None], full_matrices=False)
    kept = left[:, sizes > DEPENDENT * sizes.max(initial=0.0)]
    return rows[:, None] * kept, kept.T / rows


def _perhaps(box: Box, matrices: Array, place: int) -> str:
    """Why a kernel may not be affine at an entry of its state."""
    if not matrices[:, :, place].any():
        return (f"no new state depends on {box.states.place(place)}, as on a density that is only told: "
                "leave it out of the state")
    if box.single:
        return f"{box.single} is in float32 or less: let the kernel compute in float64"
    return "a kernel that accepts or rejects, or clips, has no matrix"
