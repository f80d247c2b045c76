"""Laws of many settings at once, each seen of an affine map: what it shows, at any rounds.

The state x' = M x + v + N(0, Q) of a setting is seen through rows P, as the average of all clients is. With
the fixed moments x and S and L_n = P M^n,

    m_n = P x + L_n (x_0 - x),     C_n = P S P' + L_n (S_0 - S) L_n',

so that a few rows are followed instead of matrices: by squarings of M, many rounds together. A random map
(see `affine`) is lifted to the vector (C, e e', e), e = mean - centre, which moves by a matrix and is its own
row.
`together` of a family makes them; `federated.together` has what is quicker where M is symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.laws.law import Gaussian
from fedsim.settings.validation import Array

from .affine import AffineMap
from .tables import kron, symmetrised, times

ENTRIES = 16_000
"""Most numbers of a map: beyond, settings are treated one by one."""
VANISHED = 1e-10
"""Of a power of M: it enters squared."""
GROWN = 1e100
SQUARINGS = 60


@dataclass(frozen=True)
class Course:
    """What is shown at rounds (S, R): means (S, R, d), covariances (S, R, d, d) or variances (S, R, d)."""

    means: Array
    covs: Array

    def of(self, index: Any) -> Course:
        """Some of the settings."""
        return Course(self.means[index], self.covs[index])

    def cov(self, places: np.ndarray) -> Array:
        """Covariances of one round of each, (S, d, d)."""
        return np.asarray(self.covs[np.arange(len(self.covs)), places])

    def against(self, slopes: Array) -> tuple[Array, Array]:
        """Sums of slopes (S, d, d) times covariances, (S, R), and the size of what is summed, (S,)."""
        flat = self.covs.reshape(*self.covs.shape[:2], -1)
        one = slopes.reshape(len(slopes), -1, 1)
        return (flat @ one)[..., 0], (np.abs(flat).max(axis=1) * np.abs(one[..., 0])).sum(axis=1)


@dataclass(frozen=True)
class Viewed:
    """Laws of S settings.

    Parameters
    ----------
    powers : list of (., G, m, m), M - I, M^2 - I, M^4 - I, ..., made as they are needed
    places : (S,) int, which of these maps
    rows : (S, G, e, m), P; or the lifted start minus what it tends to, (S, 1, 1, m)
    gaps, spreads : x_0 - x (S, G, m) and S_0 - S, (S, G, m, m) or between groups (S, G, G, m, m);
        where lifted None, and the places of what is shown
    means, covs : stationary, as they are shown
    start_means, start_covs : at round 0
    head : rounds after which all are alike; `rows`, `gaps` and `spreads` are of this one
    turn : columns in which covariances are shown, or None
    middle : (d,), subtracted from what is shown
    contracts : (S,) bool
    """

    powers: list[Array]
    places: np.ndarray
    rows: Array
    gaps: Any
    spreads: Any
    means: Array
    covs: Array
    start_means: Array
    start_covs: Array
    contracts: np.ndarray
    head: int = 0
    turn: Any = None
    middle: Any = field(default=0.0)
    proves = False

    @property
    def thin(self) -> bool:
        """Whether variances are shown."""
        return self.covs.ndim == 2

    def of(self, index: Any) -> Viewed:
        """Some of the settings."""
        def taken(table: Any) -> Any:
            return table if self.gaps is None else table[index]

        return Viewed(self.powers, self.places[index], self.rows[index], taken(self.gaps),
                      taken(self.spreads), self.means[index], self.covs[index], self.start_means[index],
                      self.start_covs[index], self.contracts[index], self.head, self.turn, self.middle)

    def turned(self, law: Gaussian) -> tuple[Array, Array]:
        """Mean (S, d) and covariance of a law as they are shown."""
        mean = np.asarray(law.mean - self.middle)
        if self.turn is not None:
            mean, cov = self.turn.T @ mean, self.turn.T @ law.cov @ self.turn
        else:
            cov = law.variances if self.thin else law.cov
        return np.broadcast_to(mean, self.means.shape), np.broadcast_to(cov, self.covs.shape)

    def at(self, rounds: np.ndarray) -> tuple[Array, Array]:
        """Moments at rounds (S, R), as of `Course`."""
        rows = self._rows(np.maximum(rounds - self.head, 0))  # (S, G, R, e, m)
        if self.gaps is None:
            dim, flat = self.means.shape[1], rows[:, 0, :, 0][..., self.spreads]
            means = self.means[:, None] + flat[..., -dim:]
            covs = self.covs[:, None] + symmetrised(flat[..., :-dim].reshape(*rounds.shape, dim, dim))
        else:
            means = self.means[:, None] + _shown((rows @ self.gaps[:, :, None, :, None])[..., 0])
            covs = self.covs[:, None] + _around(rows, self.spreads, self.thin)
            covs = np.maximum(covs, 0.0) if self.thin else covs  # of a point they are differences
        early = (rounds < self.head)[..., None]
        if early.any():
            means = np.where(early, self.start_means[:, None], means)
            covs = np.where(early if self.thin else early[..., None], self.start_covs[:, None], covs)
        return means, covs

    def along(self, rounds: np.ndarray) -> Course:
        """The same, to be looked at from several sides."""
        return Course(*self.at(rounds))

    def _rows(self, rounds: np.ndarray) -> Array:
        """L_n at rounds (S, R), (S, G, R, e, m)."""
        count = rounds.shape[1]
        run = count > 4 and bool((np.diff(rounds, axis=1) == 1).all())
        wanted = rounds[:, :1] if run else rounds
        rows = np.repeat(self.rows[:, :, None], wanted.shape[1], axis=2)
        for bit in range(int(wanted.max(initial=0)).bit_length()):
            asked = (wanted >> bit & 1).astype(bool)
            if asked.any():
                rows = np.where(asked[:, None, :, None, None], rows + self._moved(rows, bit), rows)
        bit = 0
        while run and rows.shape[2] < count:
            more = rows[:, :, :count - rows.shape[2]]
            rows = np.concatenate([rows, more + self._moved(more, bit)], axis=2)
            bit += 1
        return rows

    def _moved(self, rows: Array, bit: int) -> Array:
        """L (M^(2^bit) - I) of rows (S, G, R, e, m)."""
        while len(self.powers) <= bit:
            self.powers.append(squared(self.powers[-1]))
        flat = rows.reshape(*rows.shape[:2], -1, rows.shape[-1])
        return times(flat, self.powers[bit][self.places]).reshape(rows.shape)


def _shown(table: Array) -> Array:
    """(S, G, R, e) as (S, R, d)."""
    return np.swapaxes(table, 1, 2).reshape(table.shape[0], table.shape[2], -1)


def _around(rows: Array, cov: Array, thin: bool) -> Array:
    """L C L' of rows (S, G, R, e, m), as covariances or, of groups of one row each, as variances."""
    if cov.ndim == 5:  # between groups of one row each
        left = rows[:, :, None, :, 0] @ cov  # (S, G, G, R, m)
        return np.einsum("sijrm,sjrm->srij", left, rows[:, :, :, 0])
    left = rows @ cov[:, :, None]
    if thin:
        return np.swapaxes((left * rows).sum(axis=-1)[..., 0], 1, 2)
    return symmetrised((left @ np.swapaxes(rows, -1, -2))[:, 0])


def squared(deviations: Array) -> Array:
    """M^2 - I of M - I."""
    return 2.0 * deviations + times(deviations, deviations)


def powers_of(deviations: Array) -> tuple[list[Array], np.ndarray]:
    """M - I, M^2 - I, ... of maps (S, G, m, m), and which contract; of the others there are zeros."""
    powers, unit = [deviations], np.eye(deviations.shape[-1])
    alive = np.isfinite(deviations).all(axis=(1, 2, 3))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(SQUARINGS):
            size = np.abs(unit + powers[-1]).max(axis=(1, 2, 3))
            alive &= size < GROWN
            if (size[alive] <= VANISHED).all():
                break
            powers.append(squared(np.where(alive[:, None, None, None], powers[-1], 0.0)))
        return powers, alive & (np.abs(unit + powers[-1]).max(axis=(1, 2, 3)) <= VANISHED)


def _fixed(maps: AffineMap, good: np.ndarray) -> Array:
    """x = M x + v where maps contract, else nothing, (S, G, m)."""
    fixed = np.zeros(maps.shift.shape)
    if good.any():
        fixed[good] = np.linalg.solve(-maps.deviation[good], maps.shift[good][..., None])[..., 0]
    return fixed


def viewed(maps: AffineMap, rows: Array, mean: Array, cov: Array, thin: bool, **rest: Any) -> Viewed:
    """Laws of maps whose tables have a leading axis of settings, seen through `rows` (G, e, m).

    `mean` and `cov` are of the state at round `head`, (G, m) and (G, m, m) or (G, G, m, m), with or without
    an axis of settings; `rest` is of `Viewed`.
    """
    powers, contracts = powers_of(maps.deviation)
    shape, still = maps.shift.shape, maps.noise
    with np.errstate(over="ignore", invalid="ignore"):
        for power in powers:  # the noise of so many rounds, and of twice as many
            whole = np.eye(shape[-1]) + power
            left, right = whole, np.swapaxes(whole, -1, -2)
            if still.ndim == 5:
                left, right = left[:, :, None], right[:, None]
            still = still + left @ still @ right
    fixed, seen = _fixed(maps, contracts), np.broadcast_to(rows, (shape[0], *rows.shape))
    mean, cov, view = np.broadcast_to(mean, shape), np.broadcast_to(cov, still.shape), seen[:, :, None]

    def shown(table: Array) -> Array:
        return _shown((view @ table[:, :, None, :, None])[..., 0])[:, 0]

    first = {"start_means": shown(mean), "start_covs": _around(view, cov, thin)[:, 0]} | rest
    return Viewed(powers, np.arange(len(seen)), seen, mean - fixed, cov - still, shown(fixed),
                  _around(view, still, thin)[:, 0], contracts=contracts, **first)


def lifted(maps: AffineMap, mean: Array, cov: Array, dim: int, **rest: Any) -> Viewed:
    """Laws of random maps of one group, with a leading axis of settings, of which `dim` numbers are shown.

    `mean` (S, m) and `cov` (S, m, m) are of the state at round `head`. Whether the maps contract is not
    asked; of C and e e' the entries that are not above the diagonal are held.
    """
    deviation, spread = maps.deviation[:, 0], np.swapaxes(maps.spread[:, :, 0], 0, 1)
    width, every = deviation.shape[-1], np.asarray(np.isfinite(maps.deviation).all(axis=(1, 2, 3)))
    centre, half = _fixed(maps, every)[:, 0], np.eye(width) + 0.5 * deviation[None]
    residual = (spread @ centre[:, :, None])[..., 0] + np.swapaxes(maps.spread_shift[:, :, 0], 0, 1)
    held, size = np.tril_indices(width), width * (width + 1) // 2
    both, entries = np.zeros((width, width, size)), np.arange(size)
    both[held[0], held[1], entries] = both[held[1], held[0], entries] = 1.0

    def entry(table: Array) -> Array:
        return table.reshape(len(table), width, width, -1)[:, held[0], held[1]]

    own = deviation[None]
    plain = entry(kron(own, half, False) + kron(half, own, False)) @ both.reshape(-1, size)
    squares = entry(kron(spread, spread, False)) @ both.reshape(-1, size)
    mixed = kron(spread, residual[..., None], False).reshape(-1, width, width, width)
    pairs = np.zeros((len(deviation), 2 * size + width, 2 * size + width))
    pairs[:, :size, :size], pairs[:, :size, size:2 * size] = plain + squares, squares
    pairs[:, :size, 2 * size:] = entry(mixed + np.swapaxes(mixed, 1, 2))
    pairs[:, size:2 * size, size:2 * size], pairs[:, 2 * size:, 2 * size:] = plain, deviation
    source = maps.noise[:, 0] + (residual[..., :, None] * residual[..., None, :]).sum(axis=0)
    shift, gap = np.zeros(pairs.shape[:2]), mean - centre
    shift[:, :size] = entry(source)[..., 0]
    begin = np.concatenate([entry(cov)[..., 0], entry(gap[:, :, None] * gap[:, None])[..., 0], gap], axis=1)
    still = _fixed(AffineMap(pairs[:, None], shift[:, None], shift), every)[:, 0]
    number = np.zeros((width, width), int)
    number[held] = number.T[held] = entries
    corner = number[:dim, :dim].ravel()
    first = {"start_means": mean[:, :dim], "start_covs": cov[:, :dim, :dim]} | rest
    return Viewed([np.swapaxes(pairs, 1, 2)[:, None]], np.arange(len(begin)), (begin - still)[:, None, None],
                  None, np.concatenate([corner, 2 * size + np.arange(dim)]), centre[:, :dim],
                  still[:, corner].reshape(-1, dim, dim), contracts=every, **first)
