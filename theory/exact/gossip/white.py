"""The law of all clients by the eigenvectors of their step, where noise is white and there are no velocities.

M = W x I - eta A is symmetric, M = V diag(mu) V'. With noise q I and a start m_0 + E z of all clients alike,
z of covariance C_0 and E = 1 x I, the stacked state has after t steps x' = M x + v + noise

    m_t = V diag(mu^t) V' m_0 + V diag((1 - mu^t) / (1 - mu)) V' v,
    S_t = V diag(q (1 - mu^(2t)) / (1 - mu^2)) V' + R_t C_0 R_t',     R_t = V diag(mu^t) V' E,

so that the covariances of all clients at many steps are one product, of products of V's entries and these
numbers.
Source: derived.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.settings.validation import Array
from fedsim.stability.federated import powers_shift

from ..affine import Moments
from ..evolution import matrix_of, variances_of
from ..tables import symmetrised
from .average_first import FLAT, AverageFirst
from .general import POWER_SIZE, Components, GossipMap

WORTH = 16
"""Eigenvectors of n numbers cost as much as about n / 16 steps."""
NEAR = 1e-6
"""Relative gap up to which two eigenvectors are left as they are: what they span matters alone."""
NUMBERS = 2**22
"""Numbers that are held at a time."""


@dataclass(frozen=True)
class WhiteLaw:
    """Eigenvalues mu - 1 (G, n) of M - I and eigenvectors (G, n, n), and the noise's q (G,)."""

    step: GossipMap
    deviations: Array
    vectors: Array
    noise: Array

    @classmethod
    def of(cls, step: GossipMap, rounds: Array) -> WhiteLaw | None:
        """None where noise is not white, and where stepping is cheaper or keeps more digits."""
        large = step.components.groups * step.size**2 > POWER_SIZE**2
        if step.move.keep is not None or large or int(rounds[-1]) * WORTH < step.size:
            return None
        noises = step.noises(step.shift, step.shift)
        noise = noises[:, 0, 0, 0]
        if (noises != noise[:, None, None, None] * np.eye(step.components.width)).any():
            return None
        deviations, vectors = eigenvectors(step)
        if min(-deviations.max(), 2.0 + deviations.min()) < FLAT:  # or M grows
            return None
        return cls(step, deviations, vectors, noise)

    @property
    def components(self) -> Components:
        """Of the step."""
        return self.step.components

    def views(self, rounds: Array, start: Array, cov: Array) -> Iterator[Moments]:
        """Average and clients at `rounds` of a start (G, n) of covariance `cov`, as `Components.views`."""
        c = self.components
        begin = matrix_of(cov)[None] if c.dense else variances_of(cov)[:, None, None]
        alike = np.broadcast_to(np.tile(np.eye(c.width), c.clients), (c.groups, c.width, start.shape[1]))
        columns = np.concatenate([start[:, None], alike[:, :c.width if begin.any() else 0]], axis=1)
        modes, pull = columns @ self.vectors, self.step.shift[:, None] @ self.vectors
        each = self.vectors.reshape(c.groups, c.clients, c.width, -1)
        rows = np.concatenate([each.mean(axis=1)[:, None], each], axis=1)
        length = max(1, NUMBERS // (rows[..., 0].size * c.width + modes.size))
        for first in range(0, len(rounds), length):
            steps = rounds[first:first + length, None, None]
            growth = powers_shift(self.deviations, steps)  # mu^t - 1, (T, G, n)
            scaled = modes * (1.0 + growth[:, :, None])
            scaled[:, :, 0] += growth * (pull[:, 0] / self.deviations)
            moved = (scaled.swapaxes(0, 1).reshape(len(modes), -1, start.shape[1])
                     @ self.vectors.swapaxes(1, 2)).reshape(len(modes), len(steps), -1, start.shape[1])
            means = np.where(steps == 0, start, moved[:, :, 0].swapaxes(0, 1))
            covs = self._covariances(rows, growth)
            if begin.any():
                response = self._clients(moved[:, :, 1:])
                covs += response.swapaxes(-1, -2) @ begin @ response
            for mean, view in zip(means, covs, strict=True):
                x = c.positions(mean)
                yield (np.concatenate([x.mean(axis=0)[None], x]), view[:, 0] if c.dense else view[..., 0, 0])

    def _clients(self, responses: Array) -> Array:
        """R' of average and clients, (T, 1 + N, G, e, e), of states (G, T, e, n)."""
        c = self.components
        each = responses.reshape(*responses.shape[:-1], c.clients, c.width).transpose(1, 3, 0, 2, 4)
        return np.concatenate([each.mean(axis=1)[:, None], each], axis=1)

    def _covariances(self, rows: Array, growth: Array) -> Array:
        """Of the noise, at `rows` (G, 1 + N, e, n) of the eigenvectors: (T, 1 + N, G, e, e)."""
        groups, clients, width, size = rows.shape
        gaps = -self.deviations * (2.0 + self.deviations)
        spectra = np.swapaxes(self.noise[:, None] * (-growth * (2.0 + growth)) / gaps, 0, 1)
        covs = np.empty((len(growth), clients, groups, width, width))
        some = max(1, NUMBERS // (groups * width * width * size))
        for first in range(0, clients, some):
            part = rows[:, first:first + some]
            products = (part[:, :, :, None] * part[:, :, None]).reshape(groups, -1, size)
            table = (spectra @ products.swapaxes(1, 2)).reshape(groups, len(growth), -1, width, width)
            covs[:, first:first + some] = table.transpose(1, 2, 0, 3, 4)
        return symmetrised(covs)


def eigenvectors(step: GossipMap) -> tuple[Array, Array]:
    """Eigenvalues (G, n) and eigenvectors (G, n, n) of M - I for a symmetric M.

    One iteration of Ogita and Aishima (2018), in coordinates in which small eigenvalues do not come from
    large numbers that cancel, gives these the digits that a solver leaves to the largest one.
    """
    coordinates: Any = AverageFirst(step.components)
    deviation = symmetrised(GossipMap(coordinates, step.move).deviation)
    vectors = np.linalg.eigh(deviation)[1]
    turned, unit = vectors.swapaxes(1, 2), np.eye(step.size)
    defect, images = unit - symmetrised(turned @ vectors), symmetrised(turned @ (deviation @ vectors))
    values = np.diagonal(images, axis1=1, axis2=2) / (1.0 - np.diagonal(defect, axis1=1, axis2=2))
    gaps = values[:, None] - values[:, :, None]
    sizes = np.abs(values)
    near = np.abs(gaps) <= NEAR * (sizes[:, None] + sizes[:, :, None])
    turn = np.where(near, 0.5 * defect, (images + values[:, None] * defect) / np.where(near, 1.0, gaps))
    return values, coordinates.state(vectors + vectors @ turn)
