"""Mixing matrices as they are given, and the conditions: symmetric, doubly stochastic, positive diagonal.

Source: Decentralized SGLD and SGHMC, section 2 and footnote 4.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..hints import did_you_mean, shown
from .alignment import square
from .limits import refuse_bytes
from .validation import Array, array, nonnegative, shape, symmetric, whole


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
    refuse_negative("mixing", matrix)
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


def refuse_negative(name: str, matrix: Array, why: str = "") -> None:
    """Raise ValueError at the first negative entry."""
    for i, j in np.argwhere(matrix < 0.0):
        raise ValueError(f"{name}[{i}, {j}]={matrix[i, j]:g} must be at least 0{why}")


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
        weight = nonnegative(f"graph: weight of the edge {shown((one, other))}", given)
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
                  f"as fs.network.ring(n) makes it{did_you_mean(mixing, BY_NAME)}")
        raise ValueError(f"mixing={shown(mixing)} must be a matrix (N, N): {remedy}")
    if callable(mixing):
        raise ValueError(f"mixing={shown(mixing)} must be a matrix (N, N), not a function: call it with the "
                         "number of clients, as fs.network.ring(n)")
    return dense("mixing", mixing)


def made_of(matrix: Array) -> str:
    """The end of a message about rows or diagonal, where a matrix looks like an adjacency matrix."""
    links = bool(((matrix == 0.0) | (matrix == 1.0)).all()) or not np.diagonal(matrix).any()
    return ": of an adjacency matrix, network.metropolis(mixing) makes one" if links else ""
