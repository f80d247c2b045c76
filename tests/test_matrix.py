"""The product of a client's matrix with rows of lanes: its value, and the same bits in every lane."""

import numpy as np
import pytest

from fedsim.vector.compile import compiled
from fedsim.vector.matrix import add_product


@compiled
def _add(out, size, matrices, client, x, centres):
    add_product(out, size, matrices, client, x, centres)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 10])
def test_product(dim):
    rng = np.random.default_rng(dim)
    matrices, centres = rng.standard_normal((3, dim, dim)), rng.standard_normal((3, dim))
    x, start = rng.standard_normal((2, dim, 37))  # two whole tiles and five lanes
    for client in range(3):
        whole = start.copy()
        _add(whole, -0.3, matrices, client, x, centres)
        expected = start - 0.3 * matrices[client] @ (x - centres[client][:, None])
        np.testing.assert_allclose(whole, expected, rtol=0.0, atol=1e-13 * max(1.0, np.abs(expected).max()))
        shifted = start[:, 3:].copy()  # every replica in another lane, the last ones in whole tiles
        _add(shifted, -0.3, matrices, client, x[:, 3:].copy(), centres)
        assert shifted.tobytes() == whole[:, 3:].tobytes()
        gathered = start.copy()
        _add(gathered, -0.3, matrices, np.full(37, client), x, centres)
        assert gathered.tobytes() == whole.tobytes()
    mixed, clients = start.copy(), rng.integers(3, size=37)
    _add(mixed, -0.3, matrices, clients, x, centres)
    for lane, client in enumerate(clients):
        one = start[:, [lane]].copy()
        _add(one, -0.3, matrices, client, x[:, [lane]].copy(), centres)
        assert one.tobytes() == mixed[:, [lane]].tobytes()
