"""What is compiled when, and that it is told: in processes of their own, with a cache of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fedsim as fs

PROBLEM = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
SETUP = """
import json
import pickle
import fedsim as fs
import numba.core.event as event
from fedsim.vector.compile import compiled_here
problem = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]] * 3, [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
def kernels(call, *args, **options):
    before = len(compiled_here())
    call(pickle.loads(pickle.dumps(problem)), *args, **options)
    return len(compiled_here()) - before
"""


def in_a_new_process(tmp_path: Path, code: str) -> tuple[object, str]:
    """What `code` prints as JSON, and standard error."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    done = subprocess.run([sys.executable, "-c", SETUP + code], env=environment, capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout), done.stderr


def test_one_kernel_serves_all_schedules_records_paths_and_sizes(tmp_path):
    """A schedule, what is recorded and a trajectory are data: after one run nothing else is compiled."""
    code = """
listed, harmonic = [0.1] * 40, fs.schedules.Harmonic(10.0, 0.1)
print(json.dumps([
    fs.warm_up(problem, fs.FALD(0.1)),
    kernels(fs.simulate, fs.FALD(0.1, 3), 10, 128, seed=1),
    kernels(fs.simulate, fs.FALD(listed, 2, shared_noise=0.5), 10, 200, seed=1, covariance="diagonal"),
    kernels(fs.simulate, fs.FALD(harmonic), 10, 100, seed=1, covariance="none", record=[10], keep_final=True),
    kernels(fs.sample_path, fs.FALD(0.1, 2), 20, seed=1, every=5),
    kernels(fs.simulate, pickle.loads(pickle.dumps(fs.FALD(listed, 2))), 10, 100, seed=1),
    kernels(fs.simulate, fs.FALD(0.1, participation=fs.Participation(2, True)), 10, 128, seed=1),
]))
"""
    counts, told = in_a_new_process(tmp_path, code)
    assert counts == [1, 0, 0, 0, 0, 0, 1]
    lines = [line for line in told.splitlines() if "compiling" in line]
    assert lines == ["fedsim: compiling run_rounds, FALDKernel, PlaneQuadratic (once)"] * 2

    again, quiet = in_a_new_process(tmp_path, "print(json.dumps(fs.warm_up(problem, fs.FALD(0.1))))")
    assert again == 0 and "compiling" not in quiet


def test_few_functions_are_compiled_for_a_kernel(tmp_path):
    """Each takes a tenth of a second, and one that is compiled for two types twice that."""
    code = """
with event.install_recorder("numba:compile") as events:
    fs.warm_up(problem, fs.FALD(0.1))
ended = [one.data for _, one in events.buffer if one.is_end]
functions = [(data["dispatcher"].py_func.__name__, data["args"]) for data in ended]
print(json.dumps([len(functions), len(set(functions))]))
"""
    number, different = in_a_new_process(tmp_path, code)[0]
    assert number == different <= 31


def test_a_random_start_and_a_test_function_are_kernels_of_their_own(tmp_path):
    code = """
start = fs.Gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
options = {"start": start, "average": "square"}
print(json.dumps([fs.warm_up(problem, fs.StaleSGLD(0.05), **options),
                  kernels(fs.simulate, fs.StaleSGLD(0.01, 2), 9, 128, seed=1, **options)]))
"""
    assert in_a_new_process(tmp_path, code)[0] == [2, 0]


@pytest.mark.parametrize(("options", "message"), [
    ({"noise": "loud"}, "noise='loud'"), ({"n_replicas": 0}, "n_replicas=0"),
    ({"start": [1.0, 2.0]}, "start")])
def test_bad_arguments_are_those_of_simulate(options, message):
    with pytest.raises(ValueError, match=message):
        fs.warm_up(PROBLEM, fs.FALD(0.1), **options)
