"""The second moment of DE-SGLD under minibatches, by what clients' own blocks of it do.

One step takes second moments S of all clients, (N d, N d), to T S = M S M + B R C S with the symmetric
M = W - eta A: C takes the clients' own blocks of S, R is what their minibatches answer, and B puts it back
into these blocks. All of them keep matrices positive semidefinite, and for r above the radius of M^2

    radius of T < r  exactly where  radius of H(r) < 1,  H(r) = R C (r - M . M)^(-1) B,  and so with = and >,

for T x = r x means x = (r - M . M)^(-1) B q with q = H(r) q, and H falls as r grows. H maps N blocks (d, d)
instead of (N d)^2 numbers, and in the eigenvectors of M its inverse is a quotient in each entry. For every
positive definite q the radius of H lies between the extreme eigenvalues of q^(-1/2) H(q) q^(-1/2) (Collatz
and Wielandt), so that a few products decide most questions.

Source: derived.
"""

from __future__ import annotations

import numpy as np

from ..interfaces import Problem
from ..settings.validation import Array
from .search import leading

SMALL = 8
"""Numbers of all blocks up to which the radius is that of a dense table."""
TRIES = 12
"""Products after which the radius is computed where its bounds have not decided."""
REFINEMENTS = 40
LARGEST = 1e75
"""Entries of M beyond which second moments would overflow."""


class Step:
    """H of one step size."""

    def __init__(self, matrix: Array, response: Array) -> None:
        self.response = response
        self.clients, self.square = response.shape[:2]
        self.dim = round(self.square**0.5)
        self.values, vectors = np.linalg.eigh(matrix)
        self.vectors = vectors.reshape(self.clients, self.dim, -1)
        self.products = np.multiply.outer(self.values, self.values)

    @property
    def mean_radius(self) -> float:
        """Of M."""
        return float(np.abs(self.values).max())

    def spread(self, blocks: Array) -> Array:
        """B q in the eigenvectors of M, (N d, N d)."""
        size = len(self.values)
        return self.vectors.reshape(size, size).T @ (blocks @ self.vectors).reshape(size, size)

    def answer(self, blocks: Array, level: float) -> Array:
        """H(level) of blocks (N, d, d)."""
        size = len(self.values)
        states = self.spread(blocks) / (level - self.products)
        own = (self.vectors.reshape(size, size) @ states).reshape(self.vectors.shape)
        own = own @ self.vectors.swapaxes(1, 2)
        return (self.response @ own.reshape(self.clients, self.square, 1)).reshape(own.shape)

    def radius(self, blocks: Array, level: float) -> tuple[float, Array]:
        """Radius of H(level) and where it is attained, beginning with some blocks."""
        shape = blocks.shape
        if not self.answer(blocks, level).any():  # the square of a tiny step size is zero
            return 0.0, blocks
        if blocks.size <= SMALL:
            units = np.eye(blocks.size).reshape(-1, *shape)
            values, vectors = np.linalg.eig(
                np.stack([self.answer(unit, level).ravel() for unit in units], axis=1))
            place = int(np.abs(values).argmax())
            return float(np.abs(values[place])), vectors[:, place].real.reshape(shape)
        value, vector = leading(lambda flat: self.answer(flat.reshape(shape), level).ravel(), blocks.ravel(),
                                tol=1e-12)
        return value, vector.reshape(shape)


def bounds(blocks: Array, answer: Array) -> tuple[float, float]:
    """Numbers about the radius of a positive map that takes the positive definite `blocks` to `answer`."""
    inverse = np.linalg.inv(np.linalg.cholesky(blocks))
    values = np.linalg.eigvalsh(inverse @ answer @ inverse.swapaxes(1, 2))
    return float(values.min()), float(values.max())


class SymmetricGossip:
    """Radius of the second moment of all clients of DE-SGLD, as a function of the step size."""

    def __init__(self, problem: Problem, response: Array, mixing: Array) -> None:
        clients, dim = problem.n_clients, problem.dim
        self._gossip = np.kron(mixing, np.eye(dim))
        pulls = np.zeros((clients, dim, clients, dim))
        each = np.arange(clients)
        pulls[each, :, each] = problem.weights[:, None, None] * problem.curvature_problem().dense_hessians
        self._pulls = pulls.reshape(clients * dim, clients * dim)
        self._response = problem.weights[:, None, None] ** 2 * response
        self._unit = np.broadcast_to(np.eye(dim), (clients, dim, dim))

    def _step(self, eta: float) -> Step | None:
        """None where second moments would overflow."""
        if not eta * max(float(np.abs(self._pulls).max()), 1.0) < LARGEST:
            return None
        return Step(self._gossip - eta * self._pulls, eta**2 * self._response)

    def _start(self, blocks: Array) -> Array:
        """Positive definite, of size one."""
        return blocks / np.abs(blocks).max() + 1e-6 * self._unit

    def is_stable(self, eta: float) -> bool:
        """Whether the radius is below one."""
        step, blocks = self._step(eta), np.array(self._unit)
        if step is None or not step.mean_radius < 1.0:
            return False
        for _ in range(TRIES):
            answer = step.answer(blocks, 1.0)
            low, high = bounds(blocks, answer)
            if high < 1.0 or low >= 1.0:
                return high < 1.0
            blocks = self._start(answer)
        return step.radius(blocks, 1.0)[0] < 1.0

    def crossing(self, eta: float) -> float:
        """Rises through one where the radius does: the radius of H(1), at most 2."""
        step = self._step(eta)
        if step is None or not step.mean_radius < 1.0:
            return 2.0
        return min(step.radius(np.array(self._unit), 1.0)[0], 2.0)

    def __call__(self, eta: float) -> float:
        """Root of the radius: Rayleigh's quotient of T at (level - M . M)^(-1) B q, until the level stays."""
        step = self._step(eta)
        if step is None:
            return float("inf")
        floor, blocks = step.mean_radius**2, np.array(self._unit)
        level = max(1.0, 1.01 * floor)
        for _ in range(REFINEMENTS):
            value, blocks = step.radius(self._start(blocks), level)
            if value == 0.0:
                return step.mean_radius
            source = step.spread(blocks)
            state = source / (level - step.products)
            found = level + (value - 1.0) * float((state * source).sum() / (state * state).sum())
            found = max(found, floor + 1e-3 * (level - floor))
            if abs(found - level) <= 1e-13 * level:
                break
            level = found
        return float(np.sqrt(found))
