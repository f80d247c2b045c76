"""Out of range, or beyond 64 bits: a gradient of one's own gives Python's number or an error with a place."""

import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import own_gradients as own
import own_indices
import pytest

import fedsim as fs
from fedsim.engine.job import make_job

SLOPES = np.tanh(np.linspace(-5.0, 5.0, 101))
STEP = fs.FALD(0.5, 3, temperature=3.0)


def looked_up(client, x, table):
    """A tabulated slope on [-5, 5]."""
    return table[round(10.0 * (x + 5.0))]


def interpolated(client, x, out, table):
    """The same between entries."""
    for i in range(len(x)):
        at = 10.0 * (x[i] + 5.0)
        k = int(at)
        out[i] = table[k] + (at - k) * (table[k + 1] - table[k])


def writes(client, x, out):
    out[0], out[1] = x[0], x[1]
    if client == 2 and abs(x[0]) > 4.0:
        out[int(10 * abs(x[0]))] = 7.0


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("evaluate", [lambda problem, client, point: problem.gradient(client, point),
                                      own_indices.lanes], ids=["gradient", "runs"])
def test_every_kind_of_index_gives_pythons_number_or_an_error(dim, evaluate):
    wrong, counts = own_indices.mistakes(own_indices.problem(dim), evaluate)
    assert not wrong
    assert min(counts.values()) > 200


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2])
def test_the_comparison_sees_what_is_not_checked(dim):
    """In a process of its own: it may end in a segmentation fault."""
    done = subprocess.run([sys.executable, own_indices.__file__, str(dim)], capture_output=True, text=True,
                          check=False, cwd=Path(__file__).parent)
    assert done.returncode < 0 or int(done.stdout) > 50, done.stderr


def test_a_table_that_ends_is_told_in_gradients_and_in_runs():
    problem = fs.Custom(looked_up, 2, data=SLOPES, curvature=1.0)
    assert problem.gradient(0, [4.9])[0] == looked_up(0, 4.9, SLOPES)
    for x in (5.2, 7.0, 50.0, 1e3, 1e6, 1e9, 1e30, -5.2, -1e6):
        with pytest.raises(fs.GradientError, match=r"of client 1 fails at x=.*: .*Error: .*; ") as told:
            problem.gradient(1, [[0.5], [x], [9.0]])
        assert (told.value.client, told.value.x.tolist(), told.value.round) == (1, [x], None)
    with pytest.raises(fs.GradientError, match="IndexError"):
        problem.pooled().gradient(0, [7.0])
    with pytest.raises(fs.GradientError, match=r"\d fails in round \d+, of replica \d+, at x=") as told:
        fs.simulate(problem, STEP, 400, 64, seed=1)
    told = told.value
    assert not 0 <= round(10.0 * (told.x[0] + 5.0)) <= 100
    assert fs.simulate(problem, STEP, told.round - 1, 64, seed=1).rounds[-1] == told.round - 1
    with pytest.raises(fs.GradientError) as again:
        fs.simulate(problem, STEP, told.round, 640, seed=1, threads=2, block_size=64)
    assert again.value.round <= told.round
    with pytest.raises(fs.GradientError) as path:
        fs.sample_path(problem, STEP, 400, seed=1, n_chains=64)
    copy = pickle.loads(pickle.dumps(path.value))
    for error in (path.value, copy):
        assert str(error) == str(told)
        assert (error.client, error.round, error.replica) == (told.client, told.round, told.replica)


@pytest.mark.slow
def test_writes_are_told_whatever_the_algorithm():
    problem = fs.Custom(writes, 3, 2, gradient_noise=0.1)
    drawn = fs.FALD(0.3, 2, participation=fs.Participation(2, True))
    for algorithm in (drawn, fs.FAHMC(0.3, 2), fs.DESGLD(0.1, fs.network.ring(3)), fs.StaleSGLD(0.1, 1)):
        with pytest.raises(fs.GradientError, match="gradient of client 2 fails in round") as told:
            fs.simulate(problem, algorithm, 100, 100, seed=1, start=[2.0, 2.0])
        assert abs(told.value.x[0]) > 4.0
        assert 0 <= told.value.replica < 100
    with ProcessPoolExecutor(1) as pool, pytest.raises(fs.GradientError, match="of client 2 fails in round"):
        fs.simulate(problem, drawn, 100, 128, seed=1, start=[2.0, 2.0], executor=pool)


def test_checks_change_no_bit_and_can_be_left_out():
    wide = np.tanh(np.linspace(-50.0, 50.0, 1001))
    checked, fast = (fs.Custom(interpolated, 2, 3, data=wide, check_indices=check) for check in (True, False))
    runs = [fs.simulate(problem, fs.FALD(0.1, 2), 5, 130, seed=1, keep_final=True)
            for problem in (checked, fast)]
    assert runs[0].final.tobytes() == runs[1].final.tobytes()
    # a run without checks may hold what one with checks refuses: another checkpoint
    assert checked != fast == pickle.loads(pickle.dumps(fast))
    assert len({make_job(problem, STEP, 5, 64, seed=1).key() for problem in (checked, fast)}) == 2
    with pytest.raises(fs.GradientError, match="IndexError: index is out of bounds"):
        fast.gradient(0, [0.0, 1e6, 0.0])
    with pytest.raises(ValueError, match="check_indices=1 must be one of True, False"):
        fs.Custom(interpolated, 2, 3, data=wide, check_indices=1)


def test_integers_beyond_64_bits_are_told_for_every_client():
    def overflows(client, x, n):
        return x + (float(n * client * (n * client)) * 1e-20 if client == 5 else 0.0)

    with pytest.raises(ValueError, match="gradient of client 5 fails: OverflowError: an integer of more"):
        fs.Custom(overflows, 100, data=4 * 10**9)


def test_the_interpreter_tries_every_client():
    def divides(client, x):
        return x * (2.0 if client == 57 and 1.0 / (client - 57.0) > 5.0 else 1.0)

    with pytest.raises(ValueError, match=r"gradient of client 57 fails at x=.* in Python: ZeroDivisionError"):
        fs.Custom(divides, 100)


def test_what_the_trial_has_seen_is_not_checked_again(monkeypatch):
    """Loops and the client's number cost nothing; what depends on the point is checked, and nothing less."""
    from numba import types

    from fedsim.vector import guards
    from fedsim.vector.compile import guarded

    row, matrix, cube = (types.Array(types.float64, n, "C", readonly=True) for n in (1, 2, 3))
    point = types.Array(types.float64, 1, "A")
    seen = []

    def guards_of(function, *kinds):
        seen.clear()
        guarded(function)._get().compile(kinds)
        return len(seen)

    plain = guards.StrictLower._raise_where
    monkeypatch.setattr(guards.StrictLower, "_raise_where",
                        lambda self, *told: seen.append(told) or plain(self, *told))
    assert guards_of(own.line, types.int64, types.float64, row, row) == 0
    assert guards_of(own.dense, types.int64, point, point, cube, matrix) == 0
    assert guards_of(looked_up, types.int64, types.float64, row) > 0
    assert guards_of(interpolated, types.int64, point, point, row) > 0
    unnamed = types.StarArgTuple((types.int64, types.float64, row))
    assert guards_of(lambda *args: args[2][args[0]], unnamed) > 0  # which of them is the point?


