"""Steps whose size changes: as matrices, many made at a time, where states are small."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..evolution import TOGETHER, Batches
from ..stacked import Stacked
from .average_first import AverageFirst
from .general import Components, Move

ROOM = 2_000_000
"""Numbers held at a time."""
FEWEST = 8
"""Steps at a time below which one by one is as fast."""


def matrices(components: Components, velocities: bool,
             moves: Callable[[np.ndarray], list[Move]]) -> Batches | None:
    """A function of the step's number, from one of the `Move`s of many; None where states are large."""
    size = components.clients * components.width * (2 if velocities else 1)
    together = min(TOGETHER, ROOM // (3 * components.groups * size**2))
    if together < FEWEST:
        return None
    make = stacker(components)
    return Batches(lambda numbers: make(moves(numbers)), together)


def stacker(components: Components, turned: AverageFirst | None = None) -> Callable[[list[Move]], Stacked]:
    """A function of `Move`s that makes their maps, in the coordinates of clients or in those `turned`."""
    c, size = components, components.clients * components.width
    unit = np.broadcast_to(np.eye(size), (c.groups, size, size))
    unit, held = unit.reshape(c.groups, c.clients, c.width, size), turned or c
    hessian, network = (table.reshape(c.groups, size, size)
                        for table in (held.pulled(unit), held.mixed(unit)))
    each = np.arange(c.clients)

    def make(given: list[Move]) -> Stacked:
        velocities, parts = given[0].keep is not None, given[0].parts
        eta, heat = (np.array([getattr(move, name) for move in given])[:, None, None, None]
                     for name in ("size", "heat"))
        kicks = np.array([move.kicks for move in given])[:, None]  # (S, 1, parts)
        deviation = np.zeros((len(given), c.groups, parts, size, parts, size))
        deviation[:, :, 0, :, 0] = network
        for part in range(parts):
            kick = kicks[:, :, part, None, None] * eta
            deviation[:, :, part, :, 0] -= kick * hessian
        if velocities:
            keep, lost = (np.array([getattr(move, name) for move in given])[:, None, None, None]
                          for name in ("keep", "lost"))
            deviation[:, :, 0, :, 1] = eta * keep * np.eye(size)
            deviation[:, :, 1, :, 1] = -lost * np.eye(size)
        own = np.broadcast_to(heat[..., None] * np.eye(c.width),
                              (len(given), c.groups, c.clients, c.width, c.width))
        if c.noise is not None:
            own = own + eta[..., None] * (eta[..., None] * c.noise)  # where a square leaves the range too
        noise = np.zeros((len(given), c.groups, parts, c.clients, c.width, parts, c.clients, c.width))
        for a in range(parts):
            for b in range(parts):
                both = (kicks[..., a] * kicks[..., b])[:, :, None, None, None]
                noise[:, :, a, each, :, b, each] = np.moveaxis(both * own, 2, 0)
        shift = kicks[..., None] * eta * held.pulls.reshape(c.groups, 1, size)
        wide = len(given), c.groups, parts * size
        noise = noise.reshape(*wide, -1)
        if turned is not None:
            noise = turned.covariance(noise.reshape(-1, *noise.shape[2:])).reshape(noise.shape)
        return Stacked(deviation.reshape(*wide, -1), shift.reshape(wide), noise)

    return make
