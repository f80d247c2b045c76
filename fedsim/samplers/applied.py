"""Functions of one client's vectors in a sampler: clipping, projection, quantisation, an acceptance test."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..problems.custom.functions import frozen, plain_function
from ..settings.validation import shown, whole
from .nodes import Each
from .tape import Unread, Vector, open_tape, refuse

MOST_VECTORS = 3
"""Vectors that a function may be given."""


class Number(Unread):
    """A number of each client, which only a function of `each` reads: it has no place in a sum."""

    what = "potential(x)"
    meant = "potential(x) is a number of each client, which only the function of each(function, ...) can read"

    def __init__(self, read: Vector) -> None:
        self.read = read

    def __bool__(self) -> bool:
        self.refused()

    def __repr__(self) -> str:
        return self.what


def each(function: Callable[..., Any], *vectors: Vector, uniforms: int = 0) -> Vector:
    """Apply a function to a client's vectors, for each client alone.

    It can be simulated, and has no exact law. It is compiled, once for each function and class of problems.

    Parameters
    ----------
    function : callable
        ``function(x, ..., out)`` of as many vectors (d,) as are given, or ``function(x, ..., u, out)``. It
        writes every entry of `out` (d,), in loops over entries, as a gradient of `fedsim.Custom` does; what
        is not written is NaN.
    *vectors : vectors of clients
        One to three; each may be a ``potential(x)`` too, a number which is every entry of its vector.
    uniforms : int
        Uniform numbers in [0, 1) that it is given as `u` (n,), drawn anew for each client and call.

    Returns
    -------
    vector of clients

    Raises
    ------
    NotationError

    Examples
    --------
    >>> from fedsim.samplers import each, grad, noise, sqrt
    >>> def clip(x, out):
    ...     for i in range(len(x)):
    ...         out[i] = min(max(x[i], -1.0), 1.0)
    >>> @fs.sampler
    ... def clipped(x, *, step_size):
    ...     return x - step_size * each(clip, grad(x)) + sqrt(2 * step_size) * noise()
    >>> problem = fs.Quadratic([1.0], [[8.0]])
    >>> run = fs.simulate(problem, clipped(step_size=0.1), 1, 4000, seed=1)
    >>> bool(abs(run.mean[1, 0] - 0.1) < 0.05)
    True
    """
    tape = open_tape("each()")
    vectors = tuple(one.read if isinstance(one, Number) else one for one in vectors)
    if not vectors or len(vectors) > MOST_VECTORS or not all(isinstance(one, Vector) for one in vectors):
        refuse(f"each({shown(function)}, ...): it takes one to {MOST_VECTORS} vectors of clients")
    try:
        count = whole("uniforms", uniforms, 0, 64)
        text = frozen("each", function).text
        parts = len(inspect.signature(plain_function("each", function)).parameters)
    except ValueError as error:
        refuse(str(error))
    wanted = len(vectors) + (count > 0) + 1
    if parts != wanted:
        refuse(f"each({function.__name__}, ...): the function has {parts} arguments; it must have {wanted}: "
               f"{len(vectors)} vectors{', uniform numbers' if count else ''} and out")
    made = Each(function.__name__, text, function, len(vectors), count)
    return tape.add("each", made, [one.term() for one in vectors])
