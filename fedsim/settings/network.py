"""Mixing matrices of gossip: symmetric, doubly stochastic, with positive diagonal.

Degrees count the node itself: without that, two nodes would give [[0, 1], [1, 0]], whose smallest
eigenvalue is -1, which no theorem allows.

Source: Decentralized SGLD and SGHMC, section 2 and footnote 4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..hints import meant, shown
from .alignment import square
from .lazy_import import lazy
from .limits import refuse_bytes
from .validation import Array, array, nonnegative, shape, symmetric, whole

csr_array = lazy("scipy.sparse", "csr_array")
connected_components = lazy("scipy.sparse.csgraph", "connected_components")



class Graph(Protocol):
    """A graph as networkx has it."""

    @property
    def nodes(self) -> Any:
        """The nodes, in the order of rows."""

    def adjacency(self) -> Any:
        """Each node with its neighbours."""


class Sparse(Protocol):
    """A sparse matrix of SciPy."""

    def toarray(self) -> Any:
        """The same, dense."""


Matrix = ArrayLike | Sparse

__all__ = [
    "check_mixing", "complete", "disconnected", "grid", "is_connected", "metropolis", "path",
    "ring", "second_eigenvalue", "smallest_eigenvalue", "spectral_gap", "star",
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
    _refuse_negative("graph", weighted, ": a link has a positive weight, and 0 is no link")
    links = weighted != 0.0
    np.fill_diagonal(links, False)
    degree = links.sum(axis=1) + 1
    weights = np.where(links, 1.0 / np.maximum.outer(degree, degree), 0.0)
    np.fill_diagonal(weights, 1.0 - weights.sum(axis=1))
    return weights


def _refuse_negative(name: str, matrix: Array, why: str = "") -> None:
    for i, j in np.argwhere(matrix < 0.0):
        raise ValueError(f"{name}[{i}, {j}]={matrix[i, j]:g} must be at least 0{why}")


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


def check_mixing(mixing: Matrix, n_clients: int | None = None) -> Array:
    """A mixing matrix that gossip and the theorems allow, or a ValueError saying what is wrong.

    Examples
    --------
    >>> fs.network.check_mixing([[0.5, 0.5], [0.5, 0.5]], n_clients=2).shape
    (2, 2)
    """
    given = array("mixing", square("mixing", matrix_of(mixing)), 2,
                  advice="(N, N), as fs.network.ring(n) makes it")
    size = len(given) if n_clients is None else whole("n_clients", n_clients, 1)
    matrix = symmetric("mixing", shape("mixing", given, (size, size), " (one row per client)"))
    _refuse_negative("mixing", matrix)
    sums = matrix.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > 1e-9:
        raise ValueError(f"mixing: row {worst} sums to {sums[worst]:.12g}; rows must sum to 1"
                         f"{made_of(matrix)}")
    diagonal = np.diagonal(matrix)
    if (diagonal <= 0.0).any():
        worst = int(np.argmin(diagonal))
        raise ValueError(f"mixing[{worst}, {worst}]={diagonal[worst]:g} must be greater than 0"
                         f"{made_of(matrix)}")
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest <= -1.0 + 1e-12:
        raise ValueError(f"mixing has smallest eigenvalue {smallest:g}; it must be greater than -1")
    return matrix


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


BY_NAME = ("complete", "disconnected", "grid", "path", "ring", "star")
"""Networks that `fedsim.network` makes of a number of clients."""


def refuse_nodes(name: str, value: object, n_nodes: int, matrices: int = 6) -> None:
    """Refuse so many dense matrices; Metropolis weights take 6 while they are made."""
    refuse_bytes(8.0 * matrices * n_nodes**2, f"{name}={value!r}: a dense mixing matrix of {n_nodes} nodes",
                 "use fewer nodes")


def is_graph(value: Any) -> bool:
    """A networkx graph, told by what it can do: networkx itself is not needed."""
    return hasattr(value, "adjacency") and hasattr(value, "nodes")


def adjacency(graph: Any) -> Array:
    """Weights of the edges, rows in the order of the nodes; parallel edges add up."""
    refuse_nodes("graph", str(graph), len(graph.nodes))
    if graph.is_directed():
        raise ValueError(f"graph={graph!s} is directed; it must be undirected: pass graph.to_undirected()")
    place = {node: i for i, node in enumerate(graph.nodes)}
    matrix = np.zeros((len(place), len(place)))
    for one, other, given in graph.edges(data="weight", default=1):
        weight = nonnegative(f"graph: weight of the edge {(one, other)!r}", given)
        matrix[place[one], place[other]] += weight
        if one != other:
            matrix[place[other], place[one]] += weight
    return matrix


def dense(name: str, value: Any) -> Any:
    """A sparse matrix of SciPy as an array; anything else as it is."""
    if not (hasattr(value, "toarray") and hasattr(value, "nnz")):
        return value
    refuse_nodes(name, shown(value), max(value.shape), 1)
    return value.toarray()


def matrix_of(mixing: Any) -> Any:
    """What `mixing` holds, where that may be a matrix; a ValueError that says how to make one otherwise."""
    if is_graph(mixing):
        raise ValueError(f"mixing={mixing!s} is a graph; it must be a matrix: pass network.metropolis(graph)")
    if isinstance(mixing, str):
        remedy = (f"pass fs.network.{mixing}(n) of n clients" if mixing in BY_NAME else
                  f"as fs.network.ring(n) makes it{meant(mixing, BY_NAME)}")
        raise ValueError(f"mixing={mixing!r} must be a matrix (N, N): {remedy}")
    if callable(mixing):
        raise ValueError(f"mixing={shown(mixing)} must be a matrix (N, N), not a function: call it with the "
                         "number of clients, as fs.network.ring(n)")
    return dense("mixing", mixing)


def made_of(matrix: Array) -> str:
    """The end of a message about rows or diagonal, where a matrix looks like an adjacency matrix."""
    links = bool(((matrix == 0.0) | (matrix == 1.0)).all()) or not np.diagonal(matrix).any()
    return ": of an adjacency matrix, network.metropolis(mixing) makes one" if links else ""
