"""The radius of a round: of its mean map, or of what it makes of second moments where it is random.

Sums that a round conserves are left out. With minibatches noise grows with the distance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..settings.validation import Array
from ..stability.batches import batch_response
from ..stability.search import (
    SMALL_CONE,
    cone_radius,
    gaps_to_one,
    largest_stable,
    leading,
    radius_of,
    random_radius,
)
from .clients import Clients, Round
from .pieces import Noise, Piece, Pieces, after_all
from .rounds import Rounds, kept
from .trace import Trace

SMALLEST_SHARE = 1e-9
"""Share of a step size below which no stable one is looked for."""
DOUBLINGS = 60
"""A step size is doubled so often, at most, before its limit is looked for more finely."""
MOST_NUMBERS = 240
"""Numbers of a state up to which the radius is searched for: the map has their square as unknowns."""


def radius_of_rounds(rounds: Rounds) -> float:
    """The radius of a round, or of all rounds until networks come again, per round."""
    whole, period = rounds.round(), rounds.trace.period
    if whole.spread is not None and period > 1:
        return _radius_of_turns([rounds.round(number) for number in range(period)])
    for number in range(1, period):
        whole = whole.then(rounds.round(number))
    if not all(np.isfinite(table).all() for table in whole if table is not None):
        return float("inf")
    alone = kept(whole)[0]
    if alone.spread is not None and alone.deviation.size:
        parts: Any = alone.deviation, alone.spread
        return random_radius(*((parts[0][0], parts[1][:, 0]) if len(parts[0]) == 1 else parts))
    changes = alone.deviation
    symmetric = np.array_equal(changes, np.swapaxes(changes, 1, 2))
    values = np.linalg.eigvalsh(changes) if symmetric else np.linalg.eigvals(changes)
    gap = float(gaps_to_one(values).min()) if values.size else 1.0
    return radius_of(gap) ** (1.0 / period)


def _radius_of_turns(turns: Sequence[Round]) -> float:
    """The same where rounds take turns and are drawn at random: of second moments."""
    if not all(np.isfinite(table).all() for one in turns for table in one if table is not None):
        return float("inf")
    largest = 0.0
    for group in range(len(turns[0].shift)):
        pieces = [Piece.of(one, group) for one in turns]
        basis = in_all(pieces)[1]
        largest = max(largest, radius_of_cone(linear_map(pieces, basis, _unit), basis.shape[1]))
    return float(largest ** (0.5 / len(turns)))


def _unit(means: Array, covs: Array) -> Array:
    """Noise that is the same everywhere."""
    return np.broadcast_to(np.eye(covs.shape[-1]), covs.shape)


def clients_scale(follows: str, weights: Array) -> Array:
    """Factors (N, 1, 1) of covariances of noise of f_(c) in what is followed."""
    return (weights if follows == "components" else np.ones(len(weights)))[:, None, None] ** 2


def pieces_of(problem: Any, follows: str, trace: Trace) -> Pieces:
    """The rounds in pieces on `problem`, pooled where f is followed."""
    return Pieces(trace, Clients.of(problem.curvature_problem(), follows == "components", True))


def in_all(turns: Sequence[Piece]) -> tuple[Round, Array]:
    """The mean map of these pieces, one after the other, with all that moves the state as its noise, without
    what they conserve; and the basis (n, m) of that."""
    n = turns[0].matrix.shape[1]
    M, shift, moved = np.eye(n), np.zeros(n), np.zeros((n, n))
    for piece in turns:
        M, shift = piece.matrix @ M, piece.matrix @ shift + piece.shift
        moved = piece.after(np.zeros(len(moved)), moved, _unit, False)[1]
        for root, _ in piece.roots:
            moved += root @ root.T
    return kept(Round((M - np.eye(n))[None], shift[None], moved[None]))


def linear_map(turns: Sequence[Piece], basis: Array, noise: Noise) -> Callable[[Array], Array]:
    """The image of a covariance (m, m) on the basis, by the linear part of the noise."""
    still = np.zeros(len(basis))
    return lambda cov: basis.T @ after_all(turns, still, basis @ cov @ basis.T, noise, True)[1] @ basis


def radius_of_cone(apply: Callable[[Array], Array], dim: int) -> float:
    """`cone_radius` where several parts of the state last equally long: in a larger Krylov space."""
    if dim <= SMALL_CONE:
        return cone_radius(apply, dim) if dim else 0.0
    return leading(lambda v: apply(v.reshape(dim, dim)).ravel(), np.eye(dim).ravel(), tol=1e-12, width=60)[0]


def batch_radius(problem: Any, follows: str, trace: Trace) -> float | None:
    """Root of the radius of the second moment's map under minibatches, a round of all that take turns.

    None where their noise does not depend on the point, or is too large to be judged.
    """
    followed = problem.pooled() if follows == "global" else problem
    response = batch_response(followed)[0]
    if response is None or not trace.how_many("grad"):
        return None
    pieces = pieces_of(followed, follows, trace)
    n = sum(pieces.sizes())
    if n > MOST_NUMBERS:
        raise ValueError(f"stability of a state of {n} numbers is not known with minibatches: at most "
                         f"{MOST_NUMBERS} are judged; use fewer clients or dimensions, or pass "
                         "allow_unstable=True")
    turns = [piece for number in range(trace.period) for piece in pieces.round(number)]
    table = clients_scale(follows, followed.weights) * response

    def noise(means: Array, covs: Array) -> Array:
        return (table @ covs.reshape(len(covs), -1, 1)).reshape(covs.shape)

    if not all(np.isfinite(one).all() for piece in turns for one in (piece.matrix, *piece.kicks)):
        return float("inf")
    basis = in_all(turns)[1]
    square = radius_of_cone(linear_map(turns, basis, noise), basis.shape[1])
    return float(square ** (0.5 / trace.period))


def step_limit(radius: Callable[[float], float], size: float) -> float:
    """The largest stable step size, looked for downwards and upwards from `size`; NaN where none is found."""
    below = size
    while not radius(below) < 1.0 and below > SMALLEST_SHARE * size:
        below *= 0.5
    if not radius(below) < 1.0:
        return float("nan")
    above = 2.0 * below
    for _ in range(DOUBLINGS):  # far below the limit, where every step contracts
        if not radius(16.0 * above) < 1.0:
            break
        below, above = above, 2.0 * above
    return largest_stable(radius, below)
