"""Products of small matrices against one number at a time: the same bits in every block."""

import numpy as np
import pytest

from fedsim.vector.compile import compiled, fused
from fedsim.vector.memory import aligned
from fedsim.vector.product import DEEP, LANES, add_product, whole_vectors


@compiled
def _product(out, a, b, n_rows, depth):
    add_product(out, a, b, n_rows, depth)


@compiled
def _plain(out, a, b, n_rows, depth):
    for i in range(n_rows):
        for j in range(out.shape[1]):
            for k in range(depth):
                out[i, j] = fused(a[i, k], b[k, j], out[i, j])


def matrices(n_rows, depth, width, seed=0):
    rng, made = np.random.default_rng(seed), []
    for shape in ((n_rows + 1, width), (n_rows + 1, depth + 3), (depth + 2, width)):
        matrix = aligned(shape)
        matrix[...] = rng.standard_normal(shape)
        made.append(matrix)
    return made


@pytest.mark.parametrize("n_rows", [1, 3, 4, 10])
@pytest.mark.parametrize("width", [4, 8, 12, 16, 20, 24])
@pytest.mark.parametrize("depth", [0, 1, 7, DEEP + 5])
def test_blocks_are_the_plain_loops(n_rows, width, depth):
    out, a, b = matrices(n_rows, depth, width)
    other = out.copy()
    _product(out, a, b, n_rows, depth)
    _plain(other, a, b, n_rows, depth)
    assert out.tobytes() == other.tobytes()  # and what lies beyond is not touched
    np.testing.assert_allclose(out[:n_rows], matrices(n_rows, depth, width)[0][:n_rows]
                               + a[:n_rows, :depth] @ b[:depth], rtol=1e-11, atol=1e-11)


def test_widths_are_whole_vectors():
    assert [whole_vectors(n) for n in (1, 4, 5, 65)] == [4, 4, 8, 68] and LANES == 4
