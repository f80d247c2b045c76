"""The mean that a step leaves unchanged: (I - W + a A) x = a A b, however small the rate a."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.lazy_import import lazy
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array

block_diag, eye_array, kron = lazy("scipy.sparse", "block_diag", "eye_array", "kron")
spsolve = lazy("scipy.sparse.linalg", "spsolve")


def fixed_positions(components: Any, rate: float, group: int) -> Array:
    """x (N, e) of a group of coordinates.

    sum_i A_i x_i = sum_i A_i b_i stands for the row of the stiffest client: it is the sum of all rows, from
    which W has gone, so that a small rate is not lost in the rounding of I - W.
    """
    clients, width = components.clients, components.width
    hessians, pulls = components.hessians[group], components.pulls[group]
    sizes = np.abs(hessians).max(axis=(1, 2))
    stiffest, scale = int(np.argmax(sizes)), sizes.max()
    sums, rows = np.hstack(list(hessians / scale)), slice(stiffest * width, (stiffest + 1) * width)
    right = rate * pulls
    right[stiffest] = (pulls / scale).sum(axis=0)
    mixing = components.mixing
    if isinstance(mixing, np.ndarray):
        size = clients * width
        refuse_bytes(24.0 * size * size, f"a system of {clients} clients x {width} coordinates",
                     "use fewer clients or a sparse network")
        matrix = np.kron(-mixing, np.eye(width))
        blocks = matrix.reshape(clients, width, clients, width)
        each = np.arange(clients)
        blocks[each, :, each, :] += rate * hessians
        matrix[rows] = sums
        solved = np.linalg.solve(matrix, right.ravel())
    else:
        system = (block_diag(list(rate * hessians)) - kron(mixing, eye_array(width))).tolil()
        system[rows] = sums
        solved = spsolve(system.tocsc(), right.ravel())
    return np.asarray(solved).reshape(clients, width)
