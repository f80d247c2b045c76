"""A kernel as a function of seeds and a flat state, and its matrix by common random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedsim.settings.validation import Array, shown

from .affine_step import coarse_part
from .nested import Nested, asked

DOUBLE, SINGLE = 1e-10, 3e-5
"""Relative misfit that the rounding of float64 and of float32 may leave."""
MATRICES = 4
"""Seeds whose matrices are compared."""


def seeds_from(seed: int, count: int) -> np.ndarray:
    """Distinct seeds (count,) below 2^31, as generators of all libraries take them."""
    return 1 + (seed * 2_654_435_761) % 2**30 + np.arange(count)


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


def matrix_of(box: Box, seeds: np.ndarray) -> tuple[Array, float, bool]:
    """The matrix, what rounding leaves in it, and whether it depends on the seed."""
    states, point, generator = box.states, box.states.values, np.random.default_rng(0)
    first = box(seeds, point)
    if not np.array_equal(first, box(seeds, point)):
        raise ValueError("the kernel gives two answers for one seed and state; it must make its generator or "
                         "key anew of the seed at each call")
    scale = 2.0 ** np.ceil(np.log2(max(1.0, float(np.abs(first).max()), float(np.abs(point).max()))))
    moved = np.stack([box(seeds, point + scale * e) for e in np.eye(states.size)], axis=2)
    matrices = (moved - first[:, :, None]) / scale
    rounding = SINGLE if box.single else DOUBLE
    for size in (0.3, 1.0, 30.0):
        change = size * scale * generator.standard_normal((states.size,))
        got = box(seeds, point + change) - first
        summed = np.abs(matrices).max(axis=0) @ np.abs(change) + np.abs(first).max()
        off = np.abs(got - matrices @ change).max(axis=0) / max(float(summed.max()), 1e-300)
        if not off.max() <= rounding:
            place = int(np.argmax(off))
            raise ValueError(f"the kernel is not affine in its state: off by {off[place]:.2g} of its size "
                             f"at {states.place(place)}, from a change of size {size * scale:.2g}; "
                             + _perhaps(box, matrices, place))
    spread = float(np.abs(matrices - matrices[0]).max() / max(1e-3, float(np.abs(matrices).max())))
    return matrices.mean(axis=0), rounding, spread > 10.0 * rounding


def _perhaps(box: Box, matrices: Array, place: int) -> str:
    """Why a kernel may not be affine at an entry of its state."""
    if not matrices[:, :, place].any():
        return (f"no new state depends on {box.states.place(place)}, as on a density that is only told: "
                "leave it out of the state")
    if box.single:
        return f"{box.single} is in float32 or less: let the kernel compute in float64"
    return "a kernel that accepts or rejects, or clips, has no matrix"
