"""Mixing matrices of gossip: symmetric, doubly stochastic, with positive diagonal.

Degrees count the node itself: without that, two nodes would give [[0, 1], [1, 0]], whose smallest
eigenvalue is -1, which no theorem allows.

Source: Decentralized SGLD and SGHMC, section 2 and footnote 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..equality import ByValue
from ..hints import shown
from .alignment import square
from .lazy_import import lazy
from .mixing import (
    Graph,
    Matrix,
    adjacency,
    check_mixing as check_mixing,
    dense,
    is_graph,
    refuse_negative,
    refuse_nodes,
)
from .validation import Array, array, set_fields, shape, symmetric, whole

csr_array = lazy("scipy.sparse", "csr_array")
connected_components = lazy("scipy.sparse.csgraph", "connected_components")




__all__ = [
    "check_mixing", "complete", "disconnected", "grid", "is_connected", "metropolis", "path", "random",
    "random_pairs", "ring", "second_eigenvalue", "smallest_eigenvalue", "spectral_gap", "star",
]


def metropolis(graph: Graph | Matrix) -> Array:
    """Metropolis weights of a graph: W_ij = 1 / max(d_i, d_j) on edges, rows summing to one.

    Parameters
    ----------
    graph : networkx graph, or adjacency matrix (N, N), also a sparse one of SciPy
        Undirected. A weight of zero is no link, in a graph (edge attribute "weight", 1 where it is missing)
        as in a matrix; how large a weight is, and self loops, do not matter.

    Returns
    -------
    (N, N) mixing matrix. Degrees d_i count the node itself. Row i is client i: the i-th row of the matrix,
    or node ``list(graph.nodes)[i]``. That is the order in which a networkx graph got its nodes, not that of
    their names; ``networkx.to_numpy_array(graph, nodelist=...)`` is a matrix in an order of one's own.

    Raises
    ------
    ValueError
        For a directed graph, a matrix that is not square or not symmetric, and for a weight that is
        negative or no finite number, which is named; and for more nodes than the memory has matrices of.

    Source: Decentralized SGLD and SGHMC, section 2, after equation (7), and footnote 4.

    Examples
    --------
    >>> import networkx
    >>> graph = networkx.Graph([(2, 0), (0, 1)])
    >>> list(graph.nodes)
    [2, 0, 1]
    >>> fs.network.metropolis(graph).round(3)
    array([[0.667, 0.333, 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.333, 0.667]])
    >>> fs.network.metropolis(networkx.to_numpy_array(graph, nodelist=[0, 1, 2])).round(3)
    array([[0.333, 0.333, 0.333],
           [0.333, 0.667, 0.   ],
           [0.333, 0.   , 0.667]])
    """
    if isinstance(graph, (list, tuple)) and graph and all(
            isinstance(row, tuple) and len(row) == 2 for row in graph):
        raise ValueError(f"graph={shown(graph)} is a list of edges; it must be a graph or an adjacency "
                         "matrix: pass networkx.Graph(edges)")
    given = array("graph", adjacency(graph) if is_graph(graph) else dense("graph", square("graph", graph)), 2)
    weighted = symmetric("graph", shape("graph", given, (len(given), len(given)), " (an adjacency matrix)"))
    refuse_negative("graph", weighted, ": a link has a positive weight, and 0 is no link")
    links = weighted != 0.0
    np.fill_diagonal(links, False)
    degree = links.sum(axis=1) + 1
    weights = np.where(links, 1.0 / np.maximum.outer(degree, degree), 0.0)
    np.fill_diagonal(weights, 1.0 - weights.sum(axis=1))
    return weights


def _nodes(n: object) -> int:
    """A number of nodes, whose Metropolis weights the memory has room for."""
    size = whole("n", n, 1)
    refuse_nodes("n", n, size)
    return size


def _from_edges(n: int, edges: Any) -> Array:
    links = np.zeros((n, n))
    for i, j in edges:
        if i != j:
            links[i, j] = links[j, i] = 1.0
    return metropolis(links)


def complete(n: int) -> Array:
    """Every node talks to every other: W = 1 1' / N.

    Examples
    --------
    >>> fs.network.complete(2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    size = whole("n", n, 1)
    refuse_nodes("n", n, size, 1)
    return np.full((size, size), 1.0 / size)


def ring(n: int) -> Array:
    """A cycle; eigenvalues (1 + 2 cos(2 pi j / N)) / 3 from three nodes on.

    Examples
    --------
    >>> fs.network.ring(4)[0].round(3).tolist()
    [0.333, 0.333, 0.0, 0.333]
    """
    size = _nodes(n)
    return _from_edges(size, ((i, (i + 1) % size) for i in range(size)))


def path(n: int) -> Array:
    """A line of nodes.

    Examples
    --------
    >>> fs.network.path(3).round(3).tolist()
    [[0.667, 0.333, 0.0], [0.333, 0.333, 0.333], [0.0, 0.333, 0.667]]
    """
    size = _nodes(n)
    return _from_edges(size, ((i, i + 1) for i in range(size - 1)))


def star(n: int) -> Array:
    """One hub (node 0) and N - 1 leaves; second eigenvalue 1 - 1/N.

    Examples
    --------
    >>> round(fs.network.second_eigenvalue(fs.network.star(5)), 6)
    0.8
    """
    size = _nodes(n)
    return _from_edges(size, ((0, i) for i in range(1, size)))


def grid(a: int, b: int) -> Array:
    """An a-by-b grid, node i * b + j at row i and column j.

    Examples
    --------
    >>> fs.network.grid(2, 3).shape
    (6, 6)
    """
    rows, columns = whole("a", a, 1), whole("b", b, 1)
    refuse_nodes("a, b", (rows, columns), rows * columns)
    along = [(i * columns + j, i * columns + j + 1) for i in range(rows) for j in range(columns - 1)]
    down = [(i * columns + j, (i + 1) * columns + j) for i in range(rows - 1) for j in range(columns)]
    return _from_edges(rows * columns, along + down)


def disconnected(n: int) -> Array:
    """Nobody talks: W = I. Theorems that need a connected network do not apply.

    Examples
    --------
    >>> fs.network.spectral_gap(fs.network.disconnected(3))
    0.0
    """
    size = whole("n", n, 1)
    refuse_nodes("n", n, size, 1)
    return np.eye(size)


REMEMBERED = 2**15
"""Entries of the largest matrix of which answers are kept: statements ask again and again."""


@lru_cache(maxsize=64)
def _remembered(question: Callable[[Array], Any], numbers: bytes, shape: tuple[int, ...]) -> Any:
    return question(check_mixing(np.ndarray(shape, np.float64, numbers)))


def _answer(question: Callable[[Array], Any], mixing: Any) -> Any:
    """What a function says of a mixing matrix, which is checked; asked once of equal ones."""
    if type(mixing) is np.ndarray and mixing.dtype == np.float64 and mixing.size <= REMEMBERED:
        return _remembered(question, mixing.tobytes(), mixing.shape)
    return question(check_mixing(mixing))


def _reaches_all(matrix: Array) -> bool:
    return bool(connected_components(csr_array(matrix != 0.0), directed=False)[0] == 1)


def _extremes(matrix: Array) -> tuple[float, float]:
    """lambda_N, and gamma-bar."""
    values = np.linalg.eigvalsh(matrix)
    return float(values[0]), float(max(abs(values[-2]), abs(values[0]))) if len(values) > 1 else 0.0


def is_connected(mixing: Matrix) -> bool:
    """True when every node can be reached from every other; ValueError as `check_mixing`.

    Examples
    --------
    >>> fs.network.is_connected(fs.network.ring(5)), fs.network.is_connected(fs.network.disconnected(5))
    (True, False)
    """
    return bool(_answer(_reaches_all, mixing))


def smallest_eigenvalue(mixing: Matrix) -> float:
    """lambda_N of a mixing matrix; ValueError as `check_mixing`.

    Examples
    --------
    >>> round(fs.network.smallest_eigenvalue(fs.network.ring(4)), 6)
    -0.333333
    """
    return float(_answer(_extremes, mixing)[0])


def second_eigenvalue(mixing: Matrix) -> float:
    """max(|lambda_2|, |lambda_N|), the paper's gamma-bar; 0 for a single node. ValueError as `check_mixing`.

    Examples
    --------
    >>> round(fs.network.second_eigenvalue(fs.network.ring(4)), 6)
    0.333333
    """
    return float(_answer(_extremes, mixing)[1])


def spectral_gap(mixing: Matrix) -> float:
    """1 - `second_eigenvalue`; ValueError as `check_mixing`.

    Examples
    --------
    >>> round(fs.network.spectral_gap(fs.network.complete(4)), 6)
    1.0
    """
    return 1.0 - second_eigenvalue(mixing)


@dataclass(frozen=True, eq=False)
class RandomMixing(ByValue):
    """One of several mixing matrices (m, N, N), drawn with these chances (m,) for each round."""

    matrices: Array
    chances: Array

    def __post_init__(self) -> None:
        try:
            listed = list(self.matrices)
        except TypeError:
            raise ValueError(f"matrices={shown(self.matrices)} must be a sequence of mixing matrices"
                             ) from None
        if not listed:
            raise ValueError("matrices=[] must have a mixing matrix at least")
        rows: list[Array] = []
        for place, one in enumerate(listed):
            try:
                rows.append(check_mixing(one, len(rows[0]) if rows else None))
            except ValueError as error:
                raise ValueError(f"matrices[{place}]: {error}") from None
        matrices = np.stack(rows)
        equal = np.full(len(listed), 1.0 / len(listed))
        given: Any = equal if self.chances is None else self.chances
        chances = shape("chances", array("chances", given, 1), (len(listed),), " (one for each matrix)")
        if (chances < 0.0).any() or abs(chances.sum() - 1.0) > 1e-12:
            raise ValueError(f"chances={shown(chances.tolist())} must be at least 0 and sum to one")
        set_fields(self, matrices=matrices, chances=chances)


def random(matrices: Sequence[Array], chances: Sequence[float] | None = None) -> RandomMixing:
    """A mixing matrix drawn anew for each round, for samplers of one's own.

    Parameters
    ----------
    matrices : sequence of mixing matrices
        Each (N, N), as `fedsim.network.check_mixing` wants it.
    chances : sequence of float, optional
        Their probabilities; equal by default.

    Returns
    -------
    RandomMixing
        For ``W @ x`` in a function of `fedsim.sampler`.

    Raises
    ------
    ValueError
        Naming the matrix or the chances that are none.

    Examples
    --------
    >>> fs.network.random([fs.network.ring(4), fs.network.complete(4)], [0.9, 0.1]).chances
    array([0.9, 0.1])
    """
    return RandomMixing(matrices, chances)  # type: ignore[arg-type]


def random_pairs(mixing: Array) -> RandomMixing:
    """Asynchronous gossip: in each round the two ends of one link, drawn at random, take their average.

    Parameters
    ----------
    mixing : (N, N)
        A mixing matrix, whose links are drawn alike.

    Raises
    ------
    ValueError
        As `check_mixing`, and for a network without a link.

    Source: randomized gossip by pairs, as the literature on decentralized optimization has it.

    Examples
    --------
    >>> fs.network.random_pairs(fs.network.ring(3)).matrices.shape
    (3, 3, 3)
    """
    W = check_mixing(mixing)
    links = [(i, j) for i in range(len(W)) for j in range(i) if W[i, j] != 0.0]
    if not links:
        raise ValueError(f"mixing={shown(W.tolist())} must have a link")
    matrices = np.repeat(np.eye(len(W))[None], len(links), axis=0)
    for one, (i, j) in zip(matrices, links, strict=True):
        one[np.ix_((i, j), (i, j))] = 0.5
    return RandomMixing(matrices, None)  # type: ignore[arg-type]
