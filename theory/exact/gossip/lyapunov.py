"""Solutions of S = M S M' + Q for groups of matrices, for as many Q as wanted."""

from __future__ import annotations

import numpy as np

from fedsim.settings.validation import Array

from ..affine import _powers, symmetrised


class Symmetric:
    """For symmetric M, from deviations M - I (G, n, n): in its eigenvectors entry (i, j) of Q is divided by
    1 - mu_i mu_j, taken from the deviations so that it keeps its digits near mu = 1."""

    def __init__(self, deviations: Array) -> None:
        values, self.vectors = np.linalg.eigh(symmetrised(deviations))
        one, other = values[:, :, None], values[:, None, :]
        self.gaps = -(one + other + one * other)

    def __call__(self, source: Array) -> Array:
        """S, (G, n, n)."""
        back = self.vectors.swapaxes(1, 2)
        return symmetrised(self.vectors @ ((back @ source @ self.vectors) / self.gaps) @ back)


class Doubled:
    """For any M by doubling: a partial sum of M^j Q M'^j gives one twice as long, and nothing cancels."""

    def __init__(self, deviations: Array) -> None:
        self.powers = [_powers(deviation) for deviation in deviations]

    def __call__(self, source: Array) -> Array:
        """S, (G, n, n)."""
        found = []
        for powers, total in zip(self.powers, source, strict=True):
            for matrix in powers:
                total = total + matrix @ total @ matrix.T
            found.append(symmetrised(total))
        return np.stack(found)
