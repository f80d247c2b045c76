"""Which clients take part in a round, drawn anew in every lane."""

from __future__ import annotations

import numpy as np

from ..vector.compile import inlined, inner
from .philox import philox
from .streams import PARTICIPATION


@inlined
def uniform(lane_set, lane, position, draw):
    """A uniform number in [0, 1) with 53 bits, of this lane, position and draw."""
    high, low, _, _ = philox(np.uint64(draw) << np.uint64(16), np.uint64(position),
                             lane_set.replicas[lane], np.uint64(PARTICIPATION),
                             lane_set.key0, lane_set.key1)
    return np.float64(((high << np.uint64(32)) | low) >> np.uint64(11)) * 2.0**-53


@inner
def draw_clients(lane_set, round, replace, cumulative_weights, drawn, pool):
    """Draw the active clients of a round into `drawn` (S, B), anew in every lane.

    With replacement by inverting the cumulative weights; without by a partial Fisher-Yates shuffle
    of `pool` (N, B).
    """
    n_active, n_lanes = drawn.shape
    n_clients = cumulative_weights.shape[0]
    for b in range(n_lanes):
        if replace:
            for slot in range(n_active):
                u = uniform(lane_set, b, round, slot)
                first, last = 0, n_clients - 1  # bisection: compiled eight times faster than a library's
                while first < last:
                    middle = (first + last) // 2
                    if cumulative_weights[middle] <= u:
                        first = middle + 1
                    else:
                        last = middle
                drawn[slot, b] = first
        else:
            for client in range(n_clients):
                pool[client, b] = client
            for slot in range(n_active):
                u = uniform(lane_set, b, round, slot)
                other = slot + int(u * (n_clients - slot))
                chosen = pool[other, b]
                pool[other, b] = pool[slot, b]
                drawn[slot, b] = chosen


@inner
def draw_answers(lane_set, round, weights, probabilities, unbiased, drawn, shares):
    """Who answers in a round, anew in every lane: clients in ascending order into `drawn` (N, B).

    Their shares go into `shares` (N, B); in slots that a lane does not need it is 0, and the client its last
    one. Returns how many slots some lane needs.
    """
    most = 0
    for b in range(drawn.shape[1]):
        count, total = 0, 0.0
        for client in range(weights.shape[0]):
            if uniform(lane_set, b, round, client) < probabilities[client]:
                drawn[count, b] = client
                total += weights[client]
                count += 1
        for slot in range(drawn.shape[0]):
            if slot >= count:
                drawn[slot, b] = drawn[count - 1, b] if count > 0 else 0
                shares[slot, b] = 0.0
            else:
                client = drawn[slot, b]
                shares[slot, b] = weights[client] / (probabilities[client] if unbiased else total)
        if count > most:
            most = count
    return most
