"""Where a recursion settles: its floor, by Newton's method, with a certificate.

F is increasing and concave with F(0) > 0, so that its positive fixed point is unique, and F(x) <= x in every
component proves that it is at most x. Newton's method begins at such an x and goes down: the tangent lies
above F. Changes F(x) - x and their derivatives are taken without subtraction of large numbers, so that tiny
step sizes keep their digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from .rounds import Recursion, changes, tangent

DOUBLINGS = 200
"""Of the start; a recursion that still grows there has no floor."""
ITERATIONS = 200
"""Newton's; 3 to 10 are usual."""
ROOM = 1e-10
"""Relative, by which the fixed point is enlarged before it is certified."""


def floor_state(recursion: Recursion, given: Any, scale: float) -> Array | None:
    """The certified limit of the state, (k,); None where rounds grow without limit.

    Parameters
    ----------
    recursion : Recursion
    given : what rounds depend on in the long run
    scale : float
        A guess of E's size, from which the start is doubled.

    Raises
    ------
    ArithmeticError
        Where Newton's method does not settle at a point that can be certified.
    """
    state = np.full(len(recursion.begin()), scale)
    for _ in range(DOUBLINGS):
        now = changes(recursion, state, given)
        if (now <= 0.0).all():
            break
        state = 4.0 * state
    else:
        return None
    for _ in range(ITERATIONS):
        line = tangent(recursion, state, given)
        after = state + np.linalg.solve(-line.deviation, line.shift)
        if not (after > 0.0).all():
            after = state + line.shift
        settled = (np.abs(after - state) <= 1e-13 * state).all()
        state = after
        if settled:
            break
    state = (1.0 + ROOM) * state
    if not (changes(recursion, state, given) <= 0.0).all():
        raise ArithmeticError(f"the floor of {recursion!r} could not be certified")
    return state
