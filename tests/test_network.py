"""Mixing matrices: closed-form eigenvalues, Metropolis weights of graphs, and what is refused."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

import fedsim as fs
from fedsim import network

SIZES = (1, 2, 3, 4, 5, 6, 7, 10, 33, 100)
FAMILIES = {"complete": network.complete, "ring": network.ring, "path": network.path, "star": network.star,
            "disconnected": network.disconnected}


def ring_spectrum(n):
    return [1.0 / 3.0 + 2.0 / 3.0 * np.cos(2.0 * np.pi * j / n) for j in range(n)]


def path_spectrum(n):
    return [1.0 / 3.0 + 2.0 / 3.0 * np.cos(np.pi * j / n) for j in range(n)]


def star_spectrum(n):
    return [1.0, 0.0] + [1.0 - 1.0 / n] * (n - 2)


SPECTRA = {"complete": lambda n: [1.0] + [0.0] * (n - 1), "ring": ring_spectrum, "path": path_spectrum,
           "star": star_spectrum, "disconnected": lambda n: [1.0] * n}


def spectrum(family, n):
    """One node has W = 1, and two nodes that talk are the complete graph."""
    if n <= 2 and family != "disconnected":
        return SPECTRA["complete"](n)
    return SPECTRA[family](n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_eigenvalues_in_closed_form(family, n):
    matrix = FAMILIES[family](n)
    values = np.sort(spectrum(family, n))
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix), values, atol=2e-15 * n)
    second = max(abs(values[-2]), abs(values[0])) if n > 1 else 0.0
    assert network.smallest_eigenvalue(matrix) == pytest.approx(values[0], abs=1e-13)
    assert network.second_eigenvalue(matrix) == pytest.approx(second, abs=1e-13)
    assert network.spectral_gap(matrix) == pytest.approx(1.0 - second, abs=1e-13)
    assert network.is_connected(matrix) == (family != "disconnected" or n == 1)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_mixing_matrices_are_doubly_stochastic(family, n):
    matrix = FAMILIES[family](n)
    assert matrix.shape == (n, n)
    assert (matrix == matrix.T).all() and (matrix >= 0.0).all() and (np.diagonal(matrix) > 0.0).all()
    np.testing.assert_allclose(matrix.sum(axis=0), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(network.check_mixing(matrix, n), matrix)


def test_numbers_of_the_paper_s_ring():
    """Gap 1.3155e-3 of a hundred nodes: about 4 pi^2 / (3 N^2), not of order 1/N."""
    assert network.second_eigenvalue(network.ring(100)) == pytest.approx(0.99868449, abs=1e-8)
    assert network.spectral_gap(network.ring(100)) == pytest.approx(4 * np.pi**2 / 3e4, rel=1e-3)
    assert network.smallest_eigenvalue(network.ring(4)) == pytest.approx(-1.0 / 3.0)
    assert network.second_eigenvalue(network.ring(4)) == pytest.approx(1.0 / 3.0)


def test_degrees_count_the_node_itself():
    """Without the node itself two nodes would swap, with an eigenvalue -1."""
    np.testing.assert_array_equal(network.ring(2), [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(network.star(3), [[1 / 3, 1 / 3, 1 / 3], [1 / 3, 2 / 3, 0], [1 / 3, 0, 2 / 3]])


def test_grids():
    np.testing.assert_array_equal(network.grid(1, 5), network.path(5))
    np.testing.assert_array_equal(network.grid(5, 1), network.path(5))
    np.testing.assert_array_equal(network.grid(2, 2), network.ring(4)[np.ix_([0, 1, 3, 2], [0, 1, 3, 2])])
    graph = networkx.grid_2d_graph(3, 4)
    np.testing.assert_array_equal(network.grid(3, 4), network.metropolis(graph))


GRAPHS = {
    "karate club, weighted": networkx.karate_club_graph(),
    "Petersen": networkx.petersen_graph(),
    "binary tree": networkx.balanced_tree(2, 3),
    "a random graph": networkx.gnp_random_graph(20, 0.2, seed=1),
    "one with a loop": networkx.Graph([(0, 0), (0, 1), (1, 2)]),
    "names for nodes": networkx.Graph([("a", "b"), ("b", "c")]),
    "two parts": networkx.disjoint_union(networkx.cycle_graph(3), networkx.path_graph(2)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_metropolis_weights_of_networkx_graphs(name):
    graph = GRAPHS[name]
    matrix = network.metropolis(graph)
    nodes = list(graph)
    degree = {node: 1 + len(set(graph[node]) - {node}) for node in nodes}
    for i, one in enumerate(nodes):
        for j, other in enumerate(nodes):
            if i != j:
                wanted = 1.0 / max(degree[one], degree[other]) if graph.has_edge(one, other) else 0.0
                assert matrix[i, j] == pytest.approx(wanted, abs=1e-15)
        assert matrix[i, i] >= 1.0 / degree[one] - 1e-15
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-14)
    assert network.is_connected(matrix) == networkx.is_connected(graph)
    adjacency = networkx.to_numpy_array(graph, weight=None)
    np.testing.assert_array_equal(network.metropolis(adjacency), matrix)
    assert network.second_eigenvalue(matrix) <= 1.0 + 1e-12


def test_graphs_of_networkx_are_the_families():
    for family, graph in (("complete", networkx.complete_graph), ("ring", networkx.cycle_graph),
                          ("path", networkx.path_graph), ("star", lambda n: networkx.star_graph(n - 1))):
        np.testing.assert_allclose(network.metropolis(graph(7)), FAMILIES[family](7), atol=1e-15)


def test_rows_are_in_the_order_of_the_graph_s_nodes():
    graph = networkx.Graph([(2, 0), (0, 1)])
    np.testing.assert_array_equal(network.metropolis(graph), network.path(3))  # rows: nodes 2, 0, 1
    in_order = networkx.to_numpy_array(graph, nodelist=[0, 1, 2])
    np.testing.assert_array_equal(network.metropolis(in_order), network.star(3))


@pytest.mark.parametrize("kind", (networkx.Graph, networkx.MultiGraph))
def test_a_zero_weight_is_no_link(kind):
    """In a graph as in its matrix; the size of other weights does not matter."""
    graph = kind()
    graph.add_nodes_from(range(3))
    graph.add_weighted_edges_from([(0, 1, 0.0), (1, 2, 2.5), (2, 2, 1.0)])
    wanted = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    np.testing.assert_array_equal(network.metropolis(graph), wanted)
    np.testing.assert_array_equal(network.metropolis(networkx.to_numpy_array(graph)), wanted)


def test_parallel_edges_are_one_link():
    graph = networkx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    graph.add_edge(0, 2, weight=0.0)
    np.testing.assert_array_equal(network.metropolis(graph), network.path(3))


def test_negative_weights_are_refused():
    """A Laplacian is no adjacency matrix."""
    with pytest.raises(ValueError, match=r"graph\[0, 1\]=-1 must be at least 0"):
        network.metropolis(networkx.laplacian_matrix(networkx.path_graph(3)).toarray())
    for graph in (networkx.Graph(), networkx.MultiGraph()):
        graph.add_edge("a", "b", weight=-2.0)
        graph.add_edge("b", "c", weight=3.0)
        with pytest.raises(ValueError, match=r"edge \('a', 'b'\)=-2.0 must be at least 0"):
            network.metropolis(graph)
    opposite = networkx.MultiGraph()
    opposite.add_edges_from([(0, 1, {"weight": 1.0}), (0, 1, {"weight": -1.0})])
    with pytest.raises(ValueError, match="must be at least 0"):
        network.metropolis(opposite)


@pytest.mark.parametrize("weight", (np.nan, np.inf, "2", None, True))
def test_weights_of_edges_that_are_no_numbers_are_refused(weight):
    graph = networkx.Graph()
    graph.add_edge(0, 1, weight=weight)
    with pytest.raises(ValueError, match=r"graph: weight of the edge \(0, 1\)="):
        network.metropolis(graph)


def test_a_graph_is_no_mixing_matrix():
    graph = networkx.path_graph(3)
    for refuse in (network.check_mixing, lambda w: fs.DESGLD(0.1, w), lambda w: fs.DESGHMC(0.1, 1.0, w)):
        with pytest.raises(ValueError, match=r"mixing=.* is a graph.*pass network\.metropolis\(graph\)"):
            refuse(graph)


HALF = [[0.5, 0.5], [0.5, 0.5]]
BAD_MIXING = {
    "not symmetric": ([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.25, 0.0, 0.75]], r"mixing\[.*symmetric"),
    "not stochastic": ([[0.5, 0.4], [0.4, 0.5]], r"mixing: row \d sums to 0\.9"),
    "zero diagonal": ([[0.0, 1.0], [1.0, 0.0]], r"mixing\[0, 0\]=0 must be greater than 0"),
    "eigenvalue -1": ([[1e-14, 1.0 - 1e-14], [1.0 - 1e-14, 1e-14]], "smallest eigenvalue -1"),
    "negative": ([[1.2, -0.2], [-0.2, 1.2]], r"mixing\[0, 1\]=-0\.2"),
    "not square": ([[0.5, 0.5]], r"mixing has shape \(1, 2\)"),
    "not a number": ([[np.nan, 1.0], [1.0, 0.5]], r"mixing\[0, 0\]=nan"),
    "infinite": ([[np.inf, 0.5], [0.5, 0.5]], r"mixing\[0, 0\]=inf"),
    "one axis": ([1.0], "mixing has shape"),
    "ragged": ([[1.0], [0.5, 0.5]], "mixing must be a rectangular array"),
    "empty": (np.empty((0, 0)), "mixing has shape"),
    "text": ("ring", "mixing"),
    "None": (None, "mixing"),
}


@pytest.mark.parametrize("name", BAD_MIXING)
def test_bad_mixing_matrices_are_refused(name):
    given, message = BAD_MIXING[name]
    for refuse in (network.check_mixing, lambda w: fs.DESGLD(0.1, w), lambda w: fs.DESGHMC(0.1, 1.0, w)):
        with pytest.raises(ValueError, match=message):
            refuse(given)


def test_an_answer_is_of_the_numbers_that_a_matrix_holds_now():
    mixing = np.array(network.ring(4))
    assert network.is_connected(mixing) and network.second_eigenvalue(mixing) < 0.5
    mixing[:] = np.eye(4)
    assert not network.is_connected(mixing) and network.second_eigenvalue(mixing) == 1.0
    mixing[0, 0] = 0.5
    for ask in (network.is_connected, network.smallest_eigenvalue, network.spectral_gap):
        with pytest.raises(ValueError, match="row 0 sums to"):
            ask(mixing)


def test_a_mixing_matrix_of_the_wrong_size_is_refused():
    problem = fs.Quadratic(np.ones(3), np.zeros((3, 2)))
    for algorithm in (fs.DESGLD(0.1, network.ring(4)), fs.DESGHMC(0.1, 1.0, network.ring(4))):
        with pytest.raises(ValueError, match=r"mixing has shape \(4, 4\); it must be \(3, 3\)"):
            fs.simulate(problem, algorithm, 2, 64, seed=0)
    with pytest.raises(ValueError, match="mixing has shape"):
        network.check_mixing(HALF, 3)


def test_bad_graphs_are_refused():
    with pytest.raises(ValueError, match=r"graph=.* is directed; it must be undirected"):
        network.metropolis(networkx.DiGraph([(0, 1)]))
    with pytest.raises(ValueError, match=r"graph.*symmetric"):
        network.metropolis([[0, 1], [0, 0]])
    with pytest.raises(ValueError, match="graph has shape"):
        network.metropolis([[0, 1, 0], [1, 0, 1]])
    with pytest.raises(ValueError, match=r"graph\[0, 1\]=nan"):
        network.metropolis([[0, np.nan], [1, 0]])
    with pytest.raises(ValueError, match="graph"):
        network.metropolis(networkx.Graph())
    for maker in (*FAMILIES.values(), lambda n: network.grid(n, 2), lambda n: network.grid(2, n)):
        for bad in (0, -3, 2.5, True, None, "3"):
            with pytest.raises(ValueError, match=r"^(n|a|b)="):
                maker(bad)


def test_a_list_of_edges_is_no_adjacency():
    with pytest.raises(ValueError, match=r"graph=.* is a list of edges; .*networkx\.Graph"):
        fs.network.metropolis([(0, 1), (1, 2)])
