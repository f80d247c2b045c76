"""Laws of a federated algorithm at many step sizes at once: the maps of `rounds`, with sizes for rounds.

With all clients in a round and nothing remembered the server's map x' = M x + v + N(0, Q) has a symmetric M,
whatever the step size. In the eigenbasis of M, with eigenvalues 1 + delta, moments after n rounds are

    m_n = l^n m_0 + (1 - l^n) m,    C_n = (l l')^n o C_0 + [1 - (l l')^n] o C,    l = 1 + delta,

where m and C are the stationary ones. Coordinates that do not mix have variances alone. Of other rounds there
are `views` (see `viewed`), unless sets of clients take turns, or data are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.interfaces import start_moments
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array
from fedsim.stability.search import gaps_to_one

from ..affine import AffineMap, lost
from ..batches import has_minibatches
from ..evolution import matrix_of, variances_of
from ..families import family_of, keeps_apart
from ..stacked import ROOM, Stacked
from ..tables import symmetrised
from ..viewed import ENTRIES, Course, Viewed, lifted, viewed
from .averaging import Averaging
from .chain import Round, local_step
from .server import States, averaged_maps, server_maps
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

    proves = True
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
    def thin(self) -> bool:
        """Whether variances are shown."""
        return self.bases is None

    @property
    def contracts(self) -> np.ndarray:
        """Which maps do, (S,)."""
        return np.asarray((gaps_to_one(self.changes) > 0.0).all(axis=1))

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

    def along(self, rounds: np.ndarray) -> Any:
        """What is shown at rounds (S, R), to be looked at from several sides."""
        if self.bases is None:
            return Course(*self.at(rounds))
        return _Along(self, rounds, powers(self.changes[:, None], rounds[:, :, None]))

    def turned(self, law: Gaussian) -> tuple[Array, Array]:
        """Mean (S, d) and covariance of a law in the bases."""
        if self.bases is None:
            shape = self.means.shape
            return np.broadcast_to(law.mean, shape), np.broadcast_to(law.variances, shape)
        back = np.swapaxes(self.bases, 1, 2)
        return back @ law.mean, back @ law.cov @ self.bases


@dataclass(frozen=True)
class _Along:
    """As `Course`, of matrices that are not made: powers l^n, (S, R, d), say all."""

    laws: Together
    rounds: np.ndarray
    kept: Array

    def of(self, index: Any) -> _Along:
        """Some of the settings."""
        return _Along(self.laws.of(index), self.rounds[index], self.kept[index])

    @property
    def means(self) -> Array:
        """(S, R, d)."""
        still = self.laws.means[:, None]
        return still + self.kept * (self.laws.start_means[:, None] - still)

    def cov(self, places: np.ndarray) -> Array:
        """Covariances of one round of each, (S, d, d)."""
        return self.laws.at(self.rounds[np.arange(len(self.rounds)), places][:, None])[1][:, 0]

    def against(self, slopes: Array) -> tuple[Array, Array]:
        """Sums of slopes (S, d, d) times covariances, (S, R), and the size of what is summed, (S,)."""
        still, moving = slopes * self.laws.covs, slopes * (self.laws.start_covs - self.laws.covs)
        values = ((self.kept @ moving) * self.kept).sum(axis=2) + still.sum(axis=(1, 2))[:, None]
        return values, (np.abs(still) + np.abs(moving)).sum(axis=(1, 2))


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
    if not hasattr(family, "chain") or family.memory(algorithm) or (
            algorithm.participation is not None or has_minibatches(problem)):
        return None
    problem = family.solvable(problem)
    dense, mean, cov = problem.structure == "dense", *start_moments(start, problem.dim)
    if not dense and not keeps_apart(problem, algorithm, cov):
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # beyond stability
        changes, shifts, noise = _maps(family, problem, algorithm, step_sizes, dense, Averaging.of(
            problem, algorithm))[:3]
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


def views(problem: Any, algorithm: Any, step_sizes: Array, start: Any = None) -> Viewed | None:
    """The same of rounds of other kinds, or None where they are stepped through."""
    family, averaging = family_of(algorithm), Averaging.of(problem, algorithm)
    if has_minibatches(problem) or (averaging.sets is not None and not averaging.sets.settles):
        return None
    problem = family.solvable(problem)
    dim, (mean, cov) = problem.dim, start_moments(start, problem.dim)
    thin, width = keeps_apart(problem, algorithm, cov), dim * max(1, family.memory(algorithm))
    if (width * (width + 2) if averaging.is_random else width)**2 > ENTRIES:
        return None
    if not thin and problem.structure != "dense":
        problem = Quadratic(problem.dense_hessians, problem.minimizers, problem.weights,
                            problem.gradient_noise)
    states = States(dim, not thin, family.memory(algorithm) == 2)
    cov = np.zeros(dim) if cov is None else cov
    begin: Any = states.begin(mean, variances_of(cov) if thin else matrix_of(cov))
    rest: dict[str, Any] = {}
    with np.errstate(over="ignore", invalid="ignore"):
        maps = _maps(family, problem, algorithm, step_sizes, not thin, averaging, family.head(algorithm))
        if family.head(algorithm):
            first = _maps(family, problem, algorithm, step_sizes, not thin, averaging, 0)
            steps = [first.taken(i).step(*begin) for i in range(len(step_sizes))]
            shape = len(step_sizes), dim
            rest = {"head": 1, "start_means": np.broadcast_to(mean, shape), "start_covs": np.broadcast_to(
                variances_of(cov) if thin else matrix_of(cov), (*shape, dim)[:2 if thin else 3])}
            begin = tuple(np.stack(tables) for tables in zip(*steps, strict=True))
        else:
            begin = tuple(np.broadcast_to(table, (len(step_sizes), *table.shape)) for table in begin)
        both = AffineMap(*maps)
        if averaging.is_random:
            return lifted(both, begin[0][:, 0], begin[1][:, 0], dim, **rest)
        rows = np.eye(1 if thin else dim, both.width)
        rows = np.broadcast_to(rows, (maps.shift.shape[1], *rows.shape))
        return viewed(both, rows, begin[0], begin[1], thin, **rest)


def _maps(family: Any, problem: Quadratic, algorithm: Any, step_sizes: Array, dense: bool,
          averaging: Averaging, number: int = 0) -> Stacked:
    """The map of this round at every step size."""
    spectrum, states = Spectrum(problem), States(problem.dim, dense, family.memory(algorithm) == 2)
    size, parts = max(1, ROOM // (problem.n_clients * problem.dim ** (2 if dense else 1))), []
    for first in range(0, len(step_sizes), size):
        sizes = np.asarray(step_sizes[first:first + size], dtype=np.float64)
        values = np.broadcast_to(spectrum.values, (len(sizes), *spectrum.values.shape))
        motion = local_step(family.chain(algorithm, sizes[:, None, None]), values,
                            problem.gradient_noise is not None)
        clients = family.anchored(problem, algorithm, round_clients(
            problem, spectrum, Round([motion], algorithm.local_steps), algorithm.shared_noise, not dense,
            not averaging.by_scheme), np.full(len(sizes), number == 0))
        parts.append(server_maps(problem, clients, states, averaging.factor, not dense) if averaging.by_scheme
                     else averaged_maps(clients, states, averaging, np.full(len(sizes), number), not dense))
    return Stacked(*(None if tables[0] is None else np.concatenate(tables)
                     for tables in zip(*parts, strict=True)))
