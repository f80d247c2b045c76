"""From a recursion to the terms, the floor and the start of a bound.

The floor is where the recursion settles, by Newton's method, with a certificate. F is increasing and concave
with F(0) > 0, so that it has one positive fixed point at most, and F(x) <= x in every component proves that
it is at most x. F lies below its tangents, hence where the tangent at any point contracts its fixed point x
has F(x) <= x, and Newton's method goes down from there. Such a point is looked for far out, where F is
homogeneous: the growth of its tangents is smallest in the direction that F itself keeps, and each tangent's
own direction is a better one than that where it was taken (Howard's iteration). Where parts of the state do
not drive others this can go round in circles; then rounds are followed, by tangents, which come near the
fixed point if there is one. Changes F(x) - x and their derivatives are taken without subtracting large
numbers, so that tiny step sizes keep their digits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from ..declare.statement import Terms
from .rounds import NOTHING, Recursion, changes, evaluate, powers_of, tangent

FAR = 1e18
"""Times the scale, where F is homogeneous."""
LEAST = 1e-19
"""Least entry of a direction: parts of the state that shrink slowly and drive nothing else want it small."""
DIRECTIONS = 50
"""Looked at for a tangent that contracts; without one there is no floor."""
AWAY = 1e3
"""Times the scale, where rounds are followed from."""
FOREVER = 2**62
"""A round by which what rounds depend on has settled."""
DIGITS = 1e-13
"""Growth of a round below which rounding decides."""
LEAPS = 1_000
"""Of many rounds each: a state falls by half in a few."""
ITERATIONS = 100
"""Newton's; 3 to 10 are usual."""
ROOM = 1e-9
"""Relative, by which the fixed point is enlarged at most before it is certified."""


def floor_state(recursion: Recursion, given: Any, scale: float) -> Array | None:
    """The certified limit of the state, (k,); None where rounds grow without limit.

    Parameters
    ----------
    recursion : Recursion
    given : what rounds depend on in the long run
    scale : float
        About the size of the state.

    Raises
    ------
    ArithmeticError
        Where float64 does not tell: Newton's method does not settle at a point that can be certified.
    """
    state = _far(recursion, given, scale)
    if state is None:
        state = _along(recursion, given, scale)
    if state is None:
        return None
    for _ in range(ITERATIONS):
        line = tangent(recursion, state, given)
        try:
            step = np.linalg.solve(-line.deviation, line.shift)
        except np.linalg.LinAlgError as error:
            raise ArithmeticError("the growth of a round is 1 as far as float64 can tell") from error
        state = np.maximum(np.maximum(state + step, 0.5 * ROOM * state), NOTHING * scale)
        if ((np.abs(step) <= 1e-13 * state) | (state <= NOTHING * scale)).all():
            break
    room = np.linalg.solve(-line.deviation, -np.diagonal(line.deviation) * state)
    state = state + ROOM * room / (room / state).max()
    if not ((state >= 0.0).all() and (changes(recursion, state, given) <= 0.0).all()):
        raise ArithmeticError(f"the floor of {recursion!r} could not be certified")
    return state


def _along(recursion: Recursion, given: Any, scale: float) -> Array | None:
    """A state on the way of the rounds whose tangent contracts; None where they leave all bounds."""
    state = np.full(len(recursion.begin()), AWAY * scale)
    for _ in range(LEAPS):
        with np.errstate(over="ignore", invalid="ignore"):  # powers that are not taken
            powers = powers_of(recursion, state, given, FOREVER)
        growth = np.linalg.eigvals(powers[0].deviation).real.max()
        if growth < 0.0:
            return state
        state = np.maximum(state + powers[-1].change(state), NOTHING * scale)
        if not state.max() < FAR * scale:
            if growth > DIGITS:
                return None
            break
    raise ArithmeticError(f"whether {recursion!r} has a floor cannot be told in float64")


def _far(recursion: Recursion, given: Any, scale: float) -> Array | None:
    """A point far out whose tangent contracts."""
    direction = np.ones(len(recursion.begin()))
    for _ in range(DIRECTIONS):
        state = FAR * scale * direction
        growth, vectors = np.linalg.eig(tangent(recursion, state, given).deviation)
        first = int(np.argmax(growth.real))
        if growth[first].real < 0.0:
            return state
        other = np.abs(vectors[:, first].real)
        direction = np.maximum(other / other.max(), LEAST)
    return None


HESSIAN_SMOOTHNESS = {
    "hessian_smoothness": "float, optional: M with |(Hess f(x) - Hess f(y)) u| <= M |x-y| |u| for the global "
                          "f; 0 for quadratics. Not known by default, which is never read as 0; "
                          "constants of federated or global potentials have one."}


def recursion_terms(recursion: Recursion, rounds: np.ndarray) -> Terms:
    """The terms at the recorded rounds, and the floor where all rounds are the same."""
    first = recursion.terms(recursion.begin(), {"initialization": recursion.begin()[0]}, 0)
    terms = evaluate(recursion, rounds)
    return Terms(terms, floor=floor(recursion), start_distance=sum(first.values()))


def floor(recursion: Any) -> float | None:
    """The limit of the bound, infinite where its state has none.

    None for schedules, and where float64 has too few digits to certify it: step sizes near its resolution.
    """
    if not recursion.constant:
        return None
    try:
        last = floor_state(recursion, recursion.given(FOREVER), recursion.scale)
    except ArithmeticError:
        return None
    if last is None:
        return math.inf
    return float(sum(recursion.terms(last.tolist(), {"initialization": float(last[0])}, FOREVER).values()))
