"""Trajectories along eigenvectors: the leapfrog itself, to rounding, and the same bits in every lane."""

import numpy as np
import pytest

import fedsim as fs
from fedsim.random.slots import Normals
from fedsim.vector.compile import compiled
from fedsim.vector.memory import TILE
from fedsim.vector.trajectories import (
    from_modes,
    modes_of,
    to_modes,
    trajectory_in_modes,
    trajectory_of_normals,
)

STEP = 0.3


@compiled
def _run(modes, client, step_size, n_steps, n_updates, x, velocities, room):  # room begins as x
    to_modes(modes, client, x, room)
    for update in range(n_updates):
        trajectory_in_modes(modes, client, step_size, n_steps, x, velocities[update])
    from_modes(modes, client, x, room)


@compiled
def _of_rows(modes, client, n_steps, z, velocity):
    trajectory_in_modes(modes, client, STEP, n_steps, z, velocity)


@compiled
def _of_normals(modes, client, n_steps, z, size, normals):
    trajectory_of_normals(modes, client, STEP, n_steps, z, size, normals)


def problem(dim, seed=0):
    rng = np.random.default_rng(seed + dim)
    basis = np.linalg.qr(rng.standard_normal((3, dim, dim)))[0]
    values = np.exp(rng.uniform(np.log(1e-3), np.log(10.0), (3, dim)))
    dense = np.einsum("cij,cj,ckj->cik", basis, values, basis)
    return fs.Quadratic(0.5 * (dense + np.swapaxes(dense, 1, 2)), 3.0 * rng.standard_normal((3, dim)))


def leapfrog(hessian, centre, x, p, n_steps):
    """Positions and momenta half a step apart, as it is written in textbooks."""
    for _ in range(n_steps):
        p = p - 0.5 * STEP * hessian @ (x - centre)
        x = x + STEP * p
        p = p - 0.5 * STEP * hessian @ (x - centre)
    return x


@pytest.mark.parametrize("n_steps", [1, 2, 5, 9])
@pytest.mark.parametrize("dim", [2, 3, 4, 7, 10])
def test_it_is_the_leapfrog(dim, n_steps):
    rng, on = np.random.default_rng(dim), problem(dim)
    x, momenta = 4.0 * rng.standard_normal((dim, 2 * TILE)), rng.standard_normal((3, dim, 2 * TILE))
    for client in range(3):
        moved, velocities = x.copy(), STEP * momenta
        _run(modes_of(on.hessians, on.minimizers), client, STEP, n_steps, 3, moved, velocities, x.copy())
        assert velocities.tobytes() == (STEP * momenta).tobytes()
        expected = x
        for p in momenta:
            expected = leapfrog(on.hessians[client], on.minimizers[client][:, None], expected, p, n_steps)
        np.testing.assert_allclose(moved, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [2, 3, 10])
def test_velocities_need_not_be_made(dim, kind):
    """Of the rows of normals of several slots and steps, those of this one are read, at their size."""
    rng, on = np.random.default_rng(dim), problem(dim)
    on = modes_of(on.hessians, on.minimizers)
    values = rng.standard_normal((3 * dim, 4, 2 * TILE)).astype(kind)
    for client, slot, step in ((0, 0, 0), (1, 3, 1), (2, 2, 2)):
        z = rng.standard_normal((dim, 2 * TILE))
        rows = 0.7 * values[step * dim:(step + 1) * dim, slot].astype(np.float64)
        expected = z.copy()
        _of_rows(on, client, 4, expected, rows)
        _of_normals(on, client, 4, z, 0.7, Normals(values, slot, step * dim))
        np.testing.assert_allclose(z, expected, rtol=0.0, atol=1e-13)


def test_every_lane_has_the_same_bits():
    on, rng = problem(5), np.random.default_rng(3)
    x, velocities = rng.standard_normal((5, 3 * TILE)), rng.standard_normal((2, 5, 3 * TILE))
    together = x.copy()
    _run(modes_of(on.hessians, on.minimizers), 1, STEP, 4, 2, together, velocities, x.copy())
    turn = np.roll(np.arange(3 * TILE), 5)
    apart = x[:, turn].copy()
    modes = modes_of(on.hessians, on.minimizers)
    _run(modes, 1, STEP, 4, 2, apart, velocities[:, :, turn].copy(), apart.copy())
    assert apart.tobytes() == together[:, turn].tobytes()


def test_rows_that_are_not_whole_tiles_are_refused():
    with pytest.raises(ValueError, match=f"20 lanes; rows must be padded to a multiple of {TILE}"):
        fs.FAHMC(STEP, 3)._workspace(problem(2), np.zeros((2, 20)), np.float64)


@pytest.mark.parametrize("n_replicas", [1, 2, 15, 17, 64, 65])
def test_any_number_of_replicas(n_replicas):
    on, algorithm = problem(3), fs.FAHMC(STEP, 4, 3, 0.3)
    given = dict(seed=5, keep_final=True, covariance="none")
    run = fs.simulate(on, algorithm, 3, n_replicas, **given)
    many = fs.simulate(on, algorithm, 3, 130, **given)
    assert run.final.shape == (n_replicas, 3) and run.final.tobytes() == many.final[:n_replicas].tobytes()
    path = fs.sample_path(on, algorithm, 3, n_chains=n_replicas, seed=5)
    assert path[:, -1].tobytes() == run.final.tobytes()
