"""Laws of one federated algorithm at many step sizes at once: the rounds of `rounds`, with sizes in their place.

With all clients in a round and no memory the server's map x' = M x + v + N(0, Q) has a symmetric M, whatever the
step size. In the eigenbasis of M, with eigenvalues 1 + delta, moments after n rounds are

    m_n = l^n m_0 + (1 - l^n) m,    C_n = (l l')^n o C_0 + [1 - (l l')^n] o C,    l = 1 + delta,

where m and C are the stationary ones. Coordinates that do not mix have variances alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.interfaces import start_moments
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array

from ..batches import has_minibatches
from ..evolution import matrix_of, variances_of
from ..families import family_of
from ..stacked import ROOM
from ..tables import symmetrised
from .chain import Round, local_step
from .rounds import FederatedFamily
from .server import States, server_maps
from .spectrum import Spectrum, round_clients


@dataclass(frozen=True)
class Together:
    """Laws of S settings in the bases (S, d, d) of their maps, or of variances where `bases` is None.

    Parameters
    ----------
    changes : (S, d), delta
    means, covs : (S, d), and (S, d, d) or (S, d); stationary, in the bases
    start_means, start_covs : of the same shapes, at round 0
    """

    changes: Array
    bases: Any
    means: Array
    covs: Array
    start_means: Array
    start_covs: Array

    def of(self, index: Any) -> Together:
        """Some of the settings."""
        return Together(*(None if table is None else table[index] for table in vars(self).values()))

    @property
    def gaps(self) -> Array:
        """What the second moments lose in a round, 1 - l l', (S, d, d) or (S, d)."""
        return lost(self.changes, self.bases is not None)

    def at(self, rounds: Array) -> tuple[Array, Array]:
        """Means (S, R, d) and covariances (S, R, d, d), or variances (S, R, d), at rounds (S, R), in the bases."""
        kept = powers(self.changes[:, None], rounds[:, :, None])
        means = kept * self.start_means[:, None] + (1.0 - kept) * self.means[:, None]
        if self.bases is None:
            both, start = powers(-self.gaps[:, None], rounds[:, :, None]), self.start_covs[:, None]
            return means, both * start + (1.0 - both) * self.covs[:, None]
        both = powers(-self.gaps[:, None], rounds[:, :, None, None])
        return means, both * self.start_covs[:, None] + (1.0 - both) * self.covs[:, None]

    def turned(self, law: Gaussian) -> tuple[Array, Array]:
        """Mean (S, d) and covariance of a law in the bases."""
        if self.bases is None:
            return (np.broadcast_to(table, self.means.shape) for table in (law.mean, law.variances))
        back = np.swapaxes(self.bases, 1, 2)
        return back @ law.mean, back @ law.cov @ self.bases
