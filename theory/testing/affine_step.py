"""The matrices of a program that is affine: its values at zero and at unit vectors.

    state' = state + D state + v + G noise

is all there is to know of it. That nothing else is in the program is tried at random points of several
sizes, and refused where it is not so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from .nested import Nested, as_numbers, asked, leaves

ROUNDING = 1e-11
"""Misfit, relative to what is added up, that rounding may leave."""
PROGRAM = "step(state, noise) of this problem, with the shapes of start and noise,"
SCALES = (1.0, 30.0, 1e3)
"""Sizes of the random points at which a program is compared with its matrices."""


@dataclass(frozen=True)
class AffineStep:
    """A program as matrices.

    Attributes
    ----------
    deviation : (n, n), of the state, minus the identity where the program gives a state
    shift : (n,)
    gain : (n, m), of the noise
    misfit : float
        Largest difference between program and matrices, relative to what is added up.
    """

    deviation: Array
    shift: Array
    gain: Array
    misfit: float


def affine_step(step: Callable[[Any, Any], Any], states: Nested, noises: Nested) -> AffineStep:
    """The matrices of `step(state, noise)`.

    Raises
    ------
    ValueError
        For what is not affine, is not finite, draws random numbers of its own, or computes in float32; with
        the size of the misfit and its place.
    """
    def f(x: Array, z: Array) -> Array:
        value = states.flat(asked(PROGRAM, step, states.tree(x), noises.tree(z)))
        if not np.isfinite(value).all():
            place = states.place(int(np.argmin(np.isfinite(value))))
            raise ValueError(f"the new {place} is not finite at this step_size, of a state of size "
                             f"{np.abs(x).max(initial=0):g}; it must be")
        return value

    n, m = states.size, noises.size
    still, quiet = np.zeros(n), np.zeros(m)
    shift = f(still, quiet)
    scale = 2.0 ** np.ceil(np.log2(max(1.0, float(np.abs(shift).max(initial=0.0)))))
    single = coarse_part(step(states.tree(still), noises.tree(quiet)), states)
    # one binary scale for all: no rounding, and little cancels where the shift is large
    columns = [f(scale * e, quiet) - shift - scale * e for e in np.eye(n)]
    deviation = np.stack(columns, axis=1) / scale if n else np.zeros((0, 0))
    gain = (np.stack([f(still, scale * e) - shift for e in np.eye(m)], axis=1) / scale if m
            else np.zeros((n, 0)))
    worst = _refuse_misfit(f, AffineStep(deviation, shift, gain, 0.0), states, scale, single)
    return AffineStep(deviation, shift, gain, worst)


def affine_view(read: Callable[[Any], Any], states: Nested, dim: int) -> tuple[Array, Array]:
    """Matrix (d, n) and shift (d,) of `read(state)`, which has to be affine and of shape (d,)."""
    def r(x: Array) -> Array:
        value = as_numbers("read(state)", asked("read(state)", read, states.tree(x)))
        if value.shape != (dim,):
            raise ValueError(f"read(state) has shape {value.shape}; it must be ({dim},), the problem's "
                             "dimension: say by read=... what of the state that start gives is compared with "
                             "the target")
        return value

    shift = r(np.zeros(states.size))
    matrix = np.stack([r(e) - shift for e in np.eye(states.size)], axis=1)
    point = 10.0 * np.random.default_rng(0).standard_normal(states.size)
    want, got = r(point), matrix @ point + shift
    off = np.abs(want - got) / max(float(np.abs(matrix).max() * np.abs(point).max()), 1e-300)
    if not off.max(initial=0.0) <= ROUNDING:
        place = int(np.argmax(off))
        raise ValueError(f"read(state)[{place}] is not affine: off by {off[place]:.2g} of its size; it "
                         "must be")
    return matrix, shift


def coarse_part(value: Any, states: Nested) -> str:
    """The first part of a new state that is in single precision, or less; "" where none is."""
    for place, one in leaves(states.name, value):
        kind = str(getattr(one, "dtype", ""))
        if any(word in kind for word in ("float32", "float16", "bfloat16")):
            return place
    return ""


def _refuse_misfit(f: Callable[[Array, Array], Array], found: AffineStep, states: Nested, scale: float,
                   single: str) -> float:
    """Compare the program with its matrices at random points; the largest misfit."""
    generator, worst = np.random.default_rng(0), 0.0
    matrix = found.deviation + np.eye(len(found.shift))
    for size in SCALES:
        x: Array = size * scale * generator.standard_normal((len(found.shift),))
        z: Array = scale * generator.standard_normal(found.gain.shape[1:])
        got = f(x, z)
        if not np.array_equal(got, f(x, z)):
            raise ValueError("the step gives another state for the same state and noise: it draws random "
                             "numbers of its own, which must come in by its second argument; for a kernel "
                             "with a seed use theory.testing.probe")
        want = matrix @ x + found.gain @ z + found.shift
        summed = np.abs(matrix) @ np.abs(x) + np.abs(found.gain) @ np.abs(z) + np.abs(found.shift)
        off = np.abs(got - want) / max(float(summed.max(initial=0.0)), 1e-300)
        place = int(np.argmax(off)) if len(off) else 0
        if off.size and not off[place] <= ROUNDING:
            where = states.place(place)
            told = f"off by {off[place]:.2g} of its size at {where}, from a state of size {size * scale:.2g}"
            if single or (off[place] < 1e-4 and _is_coarse(f, x, z)):
                named = f" ({single} is)" if single else ""
                raise ValueError(f"the step computes in float32{named}: {told}; let it compute in float64, "
                                 "so that its matrices are known to rounding")
            raise ValueError(f"the step is not affine in state and noise: {told}; it must be")
        worst = max(worst, float(off.max(initial=0.0)))
    return worst


def _is_coarse(f: Callable[[Array, Array], Array], x: Array, z: Array) -> bool:
    """Does the program answer to small changes in jumps, because it rounds more coarsely than float64?

    They are some of float32's spacings: of anything smooth second differences are rounding.
    """
    size = float(np.abs(x).max())
    answers = np.stack([f(x + 3e-8 * k * size, z) - x - 3e-8 * k * size for k in range(9)])
    return bool(np.abs(np.diff(answers, 2, axis=0)).max() > 1e-13 * max(size, np.abs(answers).max()))
