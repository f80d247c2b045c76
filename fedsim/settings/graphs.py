"""What users have in place of a mixing matrix: graphs, sparse and adjacency matrices, and names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..hints import meant, shown
from .limits import refuse_bytes
from .validation import Array, nonnegative

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
