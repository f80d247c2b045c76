"""Minibatch gradients against their slow twin, and the same bits wherever a replica's lane lies."""

import naive
import naive_regression
import numpy as np
import pytest
from examples_of import posterior
from scipy.special import expit

from fedsim.problems.gradients import stochastic_gradient
from fedsim.problems.regression import tile_sums
from fedsim.problems.regression.gradients import LogisticModel
from fedsim.problems.regression.minibatch import draw_indices
from fedsim.random.streams import lane_set
from fedsim.settings import limits
from fedsim.vector.compile import compiled
from fedsim.vector.memory import TILE, aligned, aligned_copy

SEED = 0x9E3779B97F4A7C15
SIZES = (9, 4, 13)
LANES = 3 * TILE
STEP, DRAW, FIRST = 70_001, 2, 2**32 - LANES
EACH = np.arange(LANES) % 3


@compiled
def _draw(batch, lanes, client, step, draw, indices):
    draw_indices(batch, lanes, client, step, draw, indices)


@compiled
def _gradient(problem, lanes, client, step, draw, x, scratch, out):
    stochastic_gradient(problem, lanes, client, step, draw, x, scratch, out)


@compiled
def _blocks(model, table, indices, size, x, room, out, lane):
    tile_sums.sum_blocks(model, table, indices, size, 1.0, 0.0, x, room, out, lane)


@compiled
def _one_block(model, table, indices, size, x, room, out, lane):
    tile_sums.sum_one_block(model, table, indices, size, 1.0, 0.0, x, room, out, lane)


def streams_of(lanes):
    return [naive.Streams(SEED, int(replica)) for replica in lanes.replicas]


def evaluate(problem, lanes, client, x):
    """Compiled gradients (d, B) at x (d, B)."""
    out = np.empty_like(x)
    _gradient(problem._arrays(), lanes, client, STEP, DRAW, x, problem._scratch(*x.shape, np.float64), out)
    return out


@pytest.mark.parametrize("replace", [True, False])
def test_what_is_drawn(replace):
    """The rule of `minibatch`, in integers: for batches of whole Philox calls and others, up to all data."""
    lanes = lane_set(SEED, FIRST, LANES)
    streams = streams_of(lanes)
    for size in (1, 2, 3, 4, 5, 8, 11, 16):
        problem = posterior("linear", 2, (16, 23, 16), batch_size=size, replace=replace)
        indices = problem._scratch(2, LANES, np.float64).indices
        for client in (0, 1, 2, EACH):
            _draw(problem._arrays(), lanes, client, STEP, DRAW, indices)
            for lane, owner in enumerate(np.broadcast_to(client, LANES)):
                rows = naive_regression.draw_rows(problem, streams[lane], int(owner), STEP, DRAW)
                assert (indices[:size, lane] == np.array(rows) + problem._data.first[owner]).all()


def test_numbers_of_many_data():
    """Products of 32-bit words and of the most data a client may have."""
    n_data = 2**18
    table = tile_sums.packed(np.ones((1, 1)), np.ones(1))
    problem = posterior("linear", 2, batch_size=3)
    batch = problem._arrays()
    for replace in (True, False):
        data = batch.inner.data._replace(first=np.array([7]), sizes=np.array([n_data]))
        many = batch._replace(inner=batch.inner._replace(data=data), table=table, size=3, replace=replace)
        lanes, indices = lane_set(SEED, 0, LANES), aligned((8, LANES), np.uint32)
        _draw(many, lanes, 0, STEP, DRAW, indices)
        for lane, streams in enumerate(streams_of(lanes)):
            words = streams.words(2**16 + DRAW, STEP, 0, 0)[:3]
            least = n_data if replace else n_data - 2
            assert [7 + (word * (least + k * (not replace)) >> 32) for k, word in enumerate(words)] == (
                indices[:3, lane].tolist())


@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 7, 8, 12])
def test_gradients_are_those_of_the_slow_twin(kind, dim):
    lanes = lane_set(SEED, FIRST, LANES)
    streams = streams_of(lanes)
    x = np.random.default_rng(dim).standard_normal((dim, LANES)) * 3.0
    for size, replace in ((1, True), (3, False), (4, True), (4, False)):
        problem = posterior(kind, dim, SIZES, weights=[0.2, 0.5, 0.3], batch_size=size, replace=replace)
        for client in (2, EACH):
            found = evaluate(problem, lanes, client, x)
            for lane, owner in enumerate(np.broadcast_to(client, LANES)):
                twin = np.array(naive_regression.stochastic_gradient(
                    problem, streams[lane], int(owner), STEP, DRAW, x[:, lane].tolist()))
                assert (np.abs(found[:, lane] - twin) <= 1e-13 * np.abs(twin).max()).all()


@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("dim", [2, 3, 6])
def test_bits_do_not_depend_on_the_lane(kind, dim):
    """Nor on the lanes beside it, on how many there are, or on whether its client is the others' too."""
    lanes = lane_set(SEED, 0, LANES)
    x = np.random.default_rng(dim).standard_normal((dim, LANES)) * 3.0
    problem = posterior(kind, dim, SIZES, batch_size=4, replace=False)
    whole = evaluate(problem, lanes, 1, x)
    for order in (np.arange(LANES)[::-1], np.roll(np.arange(LANES), 5), np.arange(TILE) + 7,
                  np.full(TILE, 20)):
        moved = lanes._replace(replicas=aligned_copy(lanes.replicas[order]))
        for client in (1, np.ones(len(order), np.int64)):
            part = evaluate(problem, moved, client, np.ascontiguousarray(x[:, order]))
            assert part.tobytes() == whole[:, order].tobytes()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_registers_give_the_bits_of_the_room(dim):
    problem = posterior("logistic" if dim == 2 else "linear", dim, SIZES, batch_size=4)
    batch, scratch = problem._arrays(), problem._scratch(dim, LANES, np.float64)
    _draw(batch, lane_set(SEED, 0, LANES), 2, STEP, DRAW, scratch.indices)
    x, sums = np.random.default_rng(dim).standard_normal((dim, LANES)), []
    for compute in (_one_block, _blocks):
        sums.append(np.zeros_like(x))
        for lane in range(0, LANES, TILE):
            compute(batch.inner, batch.table, scratch.indices, 4, x, scratch.tile, sums[-1], lane)
    assert sums[0].tobytes() == sums[1].tobytes() and sums[0].all()


def test_fused_sigmoid_is_expit():
    """One datum with feature 1 and label 0, at the score; also far out and where there is no number."""
    rng = np.random.default_rng(1)
    z = np.concatenate([np.linspace(-708.0, 708.0, 100_001), rng.standard_normal(100_000) * 5, [0.0, -0.0],
                        10.0 ** np.arange(-300, 3), -(10.0 ** np.arange(-300, 3))])
    z = np.concatenate([z, np.zeros(-len(z) % TILE)])
    far = np.array([709.0, 1e4, 1e300, 1.7e308, -709.0, -1e4, -1e300, -1.7e308] + [np.nan] * 8)
    model = LogisticModel(posterior("logistic", 1)._data, np.ones(1), np.ones(1), 1)
    table = tile_sums.packed(np.ones((1, 1)), np.zeros(1))

    def sigmoid(scores):
        x = scores[None].copy()
        out, indices = np.empty_like(x), np.zeros((1, x.shape[1]), np.uint32)
        for lane in range(0, x.shape[1], TILE):
            _one_block(model, table, indices, 1, x, tile_sums.sums_room(1), out, lane)
        return out[0]

    assert (np.abs(sigmoid(z) - expit(z)) <= 1.5e-15 * expit(z)).all()
    beyond = sigmoid(far)
    assert (beyond[:4] == 1.0).all() and (np.abs(beyond[4:8]) < 1e-300).all() and np.isnan(beyond[8:]).all()


def test_a_table_without_room_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "memory_limit", lambda: 1000.0)
    with pytest.raises(ValueError, match="batch_size with 40 data of 5 features: a table"):
        tile_sums.packed(np.ones((5, 40)), np.ones(40))
    assert tile_sums.packed(np.ones((5, 15)), np.ones(15)).shape == (15, 8)
