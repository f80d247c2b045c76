"""Normals of several clients or steps drawn together are those drawn one by one."""

import numpy as np
import pytest
from algorithms import ROWS
from numba.core.errors import TypingError

import fedsim as fs
from fedsim.random.normals import as_single, normals
from fedsim.random.slots import Listed, Numbers, normal_room
from fedsim.random.streams import OWN_NOISE, by_coordinates, lane_set
from fedsim.vector.compile import compiled
from fedsim.vector.memory import aligned, aligned_copy

SEED = 7_771
LANES = {"double": lambda: lane_set(SEED, 5, 48), "single": lambda: as_single(lane_set(SEED, 5, 48)),
         "coordinates": lambda: by_coordinates(lane_set(SEED, 5, 4), 4, 12),
         "a tile and a part": lambda: by_coordinates(lane_set(SEED, 5, 3), 3, 7),
         "a part": lambda: by_coordinates(lane_set(SEED, 5, 3), 3, 5)}
WIDTHS = {"double": 6, "single": 8, "coordinates": 2, "a tile and a part": 2, "a part": 2}
TABLE = np.arange(48)[None, :] % 5 + 10 * np.arange(3)[:, None]


@compiled
def _fill(lanes, position, client, out):
    normals(lanes, OWN_NOISE, position, client, out)


@pytest.mark.parametrize("kind", LANES)
@pytest.mark.parametrize("vary", ["clients", "positions", "listed"])
def test_a_slot_has_its_own_numbers(kind, vary):
    lanes, n_slots = LANES[kind](), 4
    B, table = len(lanes.replicas), np.ascontiguousarray(TABLE[:, :len(lanes.replicas)])
    kind_of = np.float32 if kind == "single" else np.float64
    together = np.full((WIDTHS[kind], n_slots * B), np.nan, kind_of)
    position = Numbers(40) if vary == "positions" else 40
    client = {"clients": Numbers(3), "positions": 3, "listed": Listed(table, 1)}[vary]
    _fill(lanes, position, client, together)
    for slot in range(n_slots):
        alone = np.full((WIDTHS[kind], B), np.nan, kind_of)
        number = {"clients": 3 + slot, "positions": 3, "listed": table[min(1 + slot, 2)]}[vary]
        _fill(lanes, 40 + slot if vary == "positions" else 40, number, alone)
        assert together[:, B * slot:B * (slot + 1)].tobytes() == alone.tobytes()
    assert np.abs(together).max() < 6 and np.std(together) > 0.8  # filled, and not with one number
    if vary != "listed":
        assert len(np.unique(together)) == together.size


@pytest.mark.parametrize("client", [np.arange(96)[::2], np.arange(48, dtype=np.int32), np.arange(48.0)])
def test_numbers_of_lanes_are_words_in_order(client):
    """Vector instructions would read what lies between the numbers, or beyond them."""
    with pytest.raises(TypingError, match=r"contiguous array of 64 bits|must be integers"):
        _fill(LANES["double"](), 40, client, np.empty((2, 48)))


@pytest.mark.parametrize("kind", ["double", "coordinates"])
def test_rows_of_normals_are_in_order(kind):
    for out in (np.empty((2, 96))[:, :48], np.empty((2, 48), np.float32)):
        with pytest.raises(TypingError):
            _fill(LANES[kind](), 40, 3, out)


@pytest.mark.parametrize(("shape", "kind"), [((3, 16), np.float64), (7, np.float32), ((0, 4), np.int64)])
def test_rows_begin_at_cache_lines(shape, kind):
    every, between = [], []  # all kept, so that the allocator finds new places
    for size in range(1, 40):
        every.append(aligned(shape, kind))
        between.append(bytearray(24 * size))
    for rows in every:
        assert rows.ctypes.data % 64 == 0 or not rows.size
        assert rows.dtype == kind and rows.flags.c_contiguous
        assert rows.shape == np.zeros(shape).shape and not rows.any()
    values = np.arange(24.0).reshape(4, 6).T
    copy = aligned_copy(values)
    assert (copy == values).all() and copy.flags.c_contiguous and not np.shares_memory(copy, values)


@pytest.mark.parametrize("count", [1, 2, 11, 50, 53, 997])
@pytest.mark.parametrize(("rows", "n_lanes"), [(2, 16), (2, 128), (2, 304), (4, 64), (10, 320), (2, 9000)])
def test_room(count, rows, n_lanes):
    once, all_of_them = (normal_room(count, rows, n_lanes, np.float64, keep) for keep in (False, True))
    groups, _, together, _ = all_of_them.slots.shape
    assert once.slots.shape == (1, rows, together, n_lanes)
    assert (groups - 1) * together < count <= groups * together
    assert together == 1 or together * rows * n_lanes <= 2048
    assert groups * together <= 1.1 * count + 1  # little is drawn for nobody
    for room in (once, all_of_them):
        assert np.shares_memory(room.rows, room.slots) and not room.rows.any()
        room.slots[0, rows - 1, together - 1, 0] = 1.0
        assert room.rows[0, rows - 1, (together - 1) * n_lanes] == 1.0


N, REPLICAS, SEEN = 11, 130, (0, 77, 129)  # the last of several groups is not full
RNG = np.random.default_rng(31)


def problem(dim, n_clients=N):
    weights = RNG.uniform(0.5, 1.5, n_clients)
    return fs.Quadratic(RNG.uniform(0.5, 2.0, (n_clients, dim)), RNG.standard_normal((n_clients, dim)),
                        weights / weights.sum())


PLANE, LINE, CUBE = problem(2), problem(1), problem(3)
EQUAL = fs.Quadratic(PLANE.hessians, PLANE.minimizers)
RING = fs.network.ring(N)


MANY = {
    "FA-LD": (PLANE, fs.FALD(0.05, 3, 1.0, 0.3), 3),
    "FA-LD, d=1": (LINE, fs.FALD(0.05, 3, 1.0, 0.3), 3),
    "FA-LD, d=3": (CUBE, fs.FALD(0.05, 3, 1.0, 0.3), 3),
    "FA-LD, scheme I": (PLANE, fs.FALD(0.05, 3, participation=fs.Participation(7, True)), 3),
    "FA-LD, scheme II": (EQUAL, fs.FALD(0.05, 3, participation=fs.Participation(10, False)), 3),
    "DE-SGLD": (PLANE, fs.DESGLD(0.05, RING), 4),
    "DE-SGLD, d=1": (LINE, fs.DESGLD(0.05, RING), 5),
    "stale SGLD": (PLANE, fs.StaleSGLD(0.05, 3), 70),
    "stale SGLD, d=1": (LINE, fs.StaleSGLD(0.05, 3), 131),
    "stale SGHMC": (PLANE, fs.StaleSGHMC(0.05, friction=1.0, staleness=2), 70),
}


@pytest.mark.parametrize("noise", ["double", "single"])
@pytest.mark.parametrize("case", MANY)
def test_twins(case, noise):
    """Where a call draws for several clients or updates, and the last one for fewer, nobody is mistaken."""
    on, algorithm, n_rounds = MANY[case]
    run = fs.simulate(on, algorithm, n_rounds, REPLICAS, seed=SEED, noise=noise, keep_final=True, threads=1)
    twin = ROWS[type(algorithm)].path
    slow = [twin(on, algorithm, n_rounds, SEED, replica, None, noise == "single")[-1] for replica in SEEN]
    error = np.abs(run.final[list(SEEN)] - slow).max()
    assert error < (1e-12 if noise == "double" else 5e-6)


@pytest.mark.parametrize("case", MANY)
def test_block_sizes(case):
    """Blocks of other sizes draw for other numbers of clients at once."""
    on, algorithm, n_rounds = MANY[case]

    def final(**options):
        run = fs.simulate(on, algorithm, n_rounds, 300, seed=SEED, keep_final=True, **options)
        return run.final.tobytes()

    assert len({final(block_size=size, threads=threads)
                for size, threads in ((64, 2), (128, 1), (320, 1), (None, 2))}) == 1
