"""Kernels whose matrix depends on the seed, as with minibatches: two moments of their stationary law.

With y = (x, 1) a round is y' = G y, and E y y' obeys M = E[G M G'], a linear equation in M whose
coefficients, E[G (x) G], are averaged over seeds. The law is not Gaussian: mean and covariance
are all that is known of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedsim.settings.validation import Array

from ..exact.affine import NoExactLaw

MOST_NUMBERS = 12
"""Largest state of which products of matrices are averaged."""


@dataclass(frozen=True, eq=False)
class RandomRounds:
    """Rounds x' = A x + b drawn at random.

    Attributes
    ----------
    products : (L, (n + 1)^2, (n + 1)^2)
        E[G (x) G] of each block of seeds.
    """

    products: Array

    @classmethod
    def of(cls, matrices: Array, shifts: Array, blocks: int) -> RandomRounds:
        """From matrices (K, n, n) and shifts (K, n).

        Raises
        ------
        NoExactLaw
            For more numbers than are averaged.
        """
        count, size = shifts.shape
        if size > MOST_NUMBERS:
            raise NoExactLaw("the matrix of the kernel depends on the seed, and its state has "
                             f"{size} numbers: stationary covariances are known up to {MOST_NUMBERS}")
        whole = np.zeros((count, size + 1, size + 1))
        whole[:, :size, :size], whole[:, :size, size], whole[:, size, size] = matrices, shifts, 1.0
        length = (size + 1) ** 2
        return cls(np.stack([np.einsum("kij,klm->iljm", one, one).reshape(length, length) / len(one)
                             for one in np.array_split(whole, blocks)]))

    def _parts(self, product: Array) -> tuple[Array, Array]:
        """The action of E[G (x) G] on M but for its last entry, which is 1, and what that entry adds."""
        return product[:-1, :-1], product[:-1, -1]

    @property
    def radius(self) -> float:
        """Root of the spectral radius of the second moment."""
        inner, _ = self._parts(self.products.mean(axis=0))
        return float(np.sqrt(np.abs(np.linalg.eigvals(inner)).max()))

    def laws(self, weights: Array) -> tuple[Array, Array]:
        """Means (B, n) and covariances (B, n, n) of blocks with these weights (B, L)."""
        means, covs = [], []
        for one in weights:
            inner, added = self._parts(np.tensordot(one / one.sum(), self.products, axes=1))
            found = np.append(np.linalg.solve(np.eye(len(inner)) - inner, added), 1.0)
            size = int(np.sqrt(len(found)))
            moments = found.reshape(size, size)
            mean = moments[:-1, -1]
            means.append(mean)
            covs.append(0.5 * (moments + moments.T)[:-1, :-1] - np.outer(mean, mean))
        return np.stack(means), np.stack(covs)
