"""Laws of a federated algorithm at many step sizes at once: the maps of `rounds`, with sizes for rounds.

With all clients in a round and no memory the server's map x' = M x + v + N(0, Q) has a symmetric M, whatever
the step size. In the eigenbasis of M, with eigenvalues 1 + delta, moments after n rounds are

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

from ..affine import lost
from ..batches import has_minibatches
from ..evolution import matrix_of, variances_of
from ..families import family_of, keeps_apart
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
        tables: Any = (None if table is None else table[index] for table in vars(self).values())
        return Together(*tables)

    @property
    def gaps(self) -> Array:
        """What the second moments lose in a round, 1 - l l', (S, d, d) or (S, d)."""
        return gaps_of(self.changes, self.bases is not None)

    def at(self, rounds: Array) -> tuple[Array, Array]:
        """Moments at rounds (S, R) in the bases: means (S, R, d), covariances or variances (S, R, d[, d])."""
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
            shape = self.means.shape
            return np.broadcast_to(law.mean, shape), np.broadcast_to(law.variances, shape)
        back = np.swapaxes(self.bases, 1, 2)
        return back @ law.mean, back @ law.cov @ self.bases


def powers(changes: Array, rounds: Array) -> Array:
    """(1 + change)^n for whole n >= 0; keeps its digits where it is tiny, as `power_deviation` cannot."""
    negative = changes < -1.0
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0, and 0 times it
        size = np.exp(rounds * np.log1p(np.where(negative, -2.0 - changes, changes)))
    return np.where(rounds == 0, 1.0, np.where(negative & (rounds % 2 == 1), -size, size))


def gaps_of(changes: Array, pairs: bool) -> Array:
    """1 - l_i l_j of l = 1 + changes (S, d), between all pairs or of each with itself."""
    return lost(changes) if pairs else -(2.0 * changes + changes**2)


def laws_together(problem: Any, algorithm: Any, step_sizes: Array, start: Any = None) -> Together | None:
    """Laws of the algorithm with each of these step sizes (S,), or None where rounds are not of this kind.

    Stationary moments of settings that are not stable mean nothing.
    """
    family = family_of(algorithm)
    if not isinstance(family, FederatedFamily) or family.memory(algorithm) or (
            algorithm.participation is not None or has_minibatches(problem)):
        return None
    problem = family.solvable(problem)
    dense, mean, cov = problem.structure == "dense", *start_moments(start, problem.dim)
    if not dense and not keeps_apart(problem, algorithm, cov):
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # beyond stability
        stacks = list(_maps(family, problem, algorithm, np.asarray(step_sizes, dtype=np.float64), dense))
    changes, shifts, noise = (np.concatenate(tables) for tables in zip(*stacks, strict=True))
    cov = np.zeros(problem.dim) if cov is None else cov
    if not dense:
        changes, shifts, noise = changes[..., 0, 0], shifts[..., 0], noise[..., 0, 0]
        bases, start_mean, start_cov = None, mean, variances_of(cov)
    else:
        changes, bases = np.linalg.eigh(symmetrised(changes[:, 0]))
        back = np.swapaxes(bases, 1, 2)
        shifts, noise = (back @ shifts[:, 0, :, None])[..., 0], symmetrised(back @ noise[:, 0] @ bases)
        start_mean, start_cov = back @ mean, back @ matrix_of(cov) @ bases
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return Together(changes, bases, shifts / -changes, noise / gaps_of(changes, dense),
                        np.broadcast_to(start_mean, changes.shape), np.broadcast_to(start_cov, noise.shape))


def _maps(family: FederatedFamily, problem: Quadratic, algorithm: Any, step_sizes: Array, dense: bool) -> Any:
    """Deviations, shifts and noise of rounds, some settings at a time."""
    spectrum, states = Spectrum(problem), States(problem.dim, dense, False)
    numbers = problem.n_clients * problem.dim ** (2 if dense else 1)
    size = max(1, ROOM // numbers)
    for first in range(0, len(step_sizes), size):
        sizes = step_sizes[first:first + size]
        values = np.broadcast_to(spectrum.values, (len(sizes), *spectrum.values.shape))
        motion = local_step(family.chain(algorithm, sizes[:, None, None]), values,
                            problem.gradient_noise is not None)
        clients = round_clients(problem, spectrum, Round([motion], algorithm.local_steps),
                                algorithm.shared_noise, not dense, False)
        yield server_maps(problem, clients, states, 0.0, not dense)[:3]
