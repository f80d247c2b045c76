"""The bits that are promised: one hash a case, whatever the processor, threads, blocks and processes."""

import asyncio
import itertools
import json
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import bits
import pytest
from algorithms import ROWS
from interrupting import ctrl_c_after
from llvmlite.binding import get_host_cpu_features
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from fedsim.engine import running

ROOT = Path(__file__).resolve().parent.parent
PROMISED = bits.table()
RENEW = ("the bits of a promised run changed. If that is meant, run `python -m tests.bits` and commit "
         "tests/bits.json by itself, saying why the numbers had to change")
FIRST = [f"{algorithm}: {next(iter(cases))}" for algorithm, cases in bits.CASES.items()]
QUICK = [*(f"{case}, {precision}" for case in FIRST for precision in bits.PRECISIONS),
         "FALD: logistic, minibatches, double", "FAHMC: stale, exact first round, double"]
PLAIN = QUICK[0]
HOST = {name for name, has in get_host_cpu_features().items() if has}
AVX2 = ("sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "cx16", "popcnt", "avx", "f16c", "avx2", "bmi",
        "bmi2", "fma", "lzcnt", "movbe")
TARGETS = {"AVX2": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in AVX2)},
           "plain x86-64": {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "-avx,-fma"}}
USED = {"AVX2": {"ymm", "vfmadd"}, "plain x86-64": {"fma"}}
"""What the code of a target has besides xmm; features alone decide, whatever the processor's name."""
OTHER = {"an older BLAS": {"OPENBLAS_CORETYPE": "Prescott"},
         "a recent BLAS": {"OPENBLAS_CORETYPE": "Haswell"},
         "plain NumPy loops": {"NPY_DISABLE_CPU_FEATURES": " ".join(
             name for name in __cpu_dispatch__ if __cpu_features__.get(name))}}
PAIRS = {target: [f"{case}, {bits.PRECISIONS[(number + turn) % 2]}" for number, case in enumerate(FIRST)]
         + QUICK[2 * len(FIRST):] for turn, target in enumerate(TARGETS)}
"""Every pair of algorithm, precision and target: a body, the normals and the registers meet no other way."""
on_intel_or_amd = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"),
                                     reason="the targets are those of x86-64")


def elsewhere(names, *options, **environment):
    """What `python -m tests.bits --print` says in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "tests.bits", "--print", *names, *options], cwd=ROOT,
                          env=os.environ | {"PYTHONPATH": str(ROOT)} | environment, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_promised(hashes):
    assert not [name for name, value in hashes.items() if value != PROMISED[name]], RENEW


def test_every_algorithm_is_promised_in_both_precisions():
    assert set(PROMISED) == set(bits.EVERY), RENEW
    assert len(set(PROMISED.values())) == len(bits.EVERY)
    assert list(bits.CASES) == [kind.__name__ for kind in ROWS]
    assert all(type(case.algorithm).__name__ == kind for kind, cases in bits.CASES.items()
               for case in cases.values())


@pytest.mark.parametrize("name", QUICK)
def test_threads_and_blocks(name):
    """On this processor."""
    assert_promised({name: bits.sha(bits.simulate(name))})
    for threads, block_size in ((1, 64), (2, 64), (2, 128), (4, 64), (4, None)):
        assert bits.sha(bits.simulate(name, threads=threads, block_size=block_size)) == PROMISED[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", bits.EVERY)
def test_every_case(name):
    assert_promised({name: bits.sha(bits.simulate(name))})
    assert bits.sha(bits.simulate(name, threads=2, block_size=64)) == PROMISED[name]


@on_intel_or_amd
def test_the_code_of_this_processor_uses_its_registers(tmp_path):
    said = elsewhere([PLAIN], "--code", NUMBA_CACHE_DIR=str(tmp_path))
    assert (said["code"]["zmm"] > 0) == ("avx512f" in HOST)
    assert (said["code"]["vfmadd"] > 0) == ("fma" in HOST)
    assert_promised(said["hashes"])


def runs_on(target):
    return target == "plain x86-64" or set(AVX2) <= HOST


def check(target, names, folder):
    """The bits of another processor's code, compiled here; the code is looked at: it is that processor's."""
    if not runs_on(target):
        pytest.skip(f"this processor cannot run {target}")
    said = elsewhere(names, "--code", NUMBA_CACHE_DIR=str(folder), **TARGETS[target])
    assert said["code"].pop("xmm") > 0
    assert {part for part, count in said["code"].items() if count} == USED[target]
    assert_promised(said["hashes"])


@on_intel_or_amd
@pytest.mark.parametrize("target", TARGETS)
def test_processors(target, tmp_path):
    check(target, PAIRS[target], tmp_path)


def test_the_cases_on_processors_cover_the_pairs():
    """`test_every_case_on_processors` has the product."""
    cases = {(target, *name.rsplit(", ", 1)) for target, names in PAIRS.items() for name in names}
    for case, precision in itertools.product(FIRST, bits.PRECISIONS):
        assert any(one[1:] == (case, precision) for one in cases)
    for target, name in itertools.product(TARGETS, FIRST + list(bits.PRECISIONS)):
        assert any(one[0] == target and name in one[1:] for one in cases)
    assert {name for names in PAIRS.values() for name in names} == set(QUICK)


@on_intel_or_amd
@pytest.mark.slow
@pytest.mark.parametrize("algorithm", bits.CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_every_case_on_processors(target, algorithm, tmp_path):
    check(target, [name for name in bits.EVERY if name.startswith(f"{algorithm}: ")], tmp_path)


@pytest.mark.parametrize("library", OTHER)
def test_libraries_have_no_say(library):
    """What compiled code is given is worked out without BLAS, LAPACK and loops that choose a processor."""
    said = elsewhere([PLAIN], **OTHER[library])
    assert said["inputs"] == {name: bits.inputs(name) for name in bits.EVERY}
    assert_promised(said["hashes"])


def test_a_leaf_that_two_kept_blocks_have_counts_once(tmp_path):
    bits.simulate(PLAIN, replicas=(0, 128), checkpoint=tmp_path / "one", block_size=128)
    bits.simulate(PLAIN, replicas=(64, bits.N_REPLICAS), checkpoint=tmp_path / "two", block_size=128)
    overlapping, = (tmp_path / "two").glob("block-64-*.npz")
    shutil.copy(overlapping, tmp_path / "one")
    assert bits.sha(bits.simulate(PLAIN, checkpoint=tmp_path / "one")) == PROMISED[PLAIN]


@pytest.mark.parametrize("name", [PLAIN, QUICK[-1]])
def test_shards_and_an_interruption(name, tmp_path, monkeypatch):
    for shard in ((128, bits.N_REPLICAS), (0, 128)):
        bits.simulate(name, replicas=shard, checkpoint=tmp_path / "shards", block_size=64)
    assert bits.sha(bits.simulate(name, checkpoint=tmp_path / "shards")) == PROMISED[name]

    with monkeypatch.context() as patch:
        patch.setattr(running, "tqdm", ctrl_c_after(64 * bits.N_ROUNDS))
        with pytest.raises(KeyboardInterrupt):
            bits.simulate(name, checkpoint=tmp_path / "kept", block_size=64)
    assert len(list((tmp_path / "kept").glob("block-*.npz"))) == 1
    assert bits.sha(bits.simulate(name, checkpoint=tmp_path / "kept")) == PROMISED[name]


def test_a_pool_of_new_processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert bits.sha(bits.simulate(PLAIN, executor=pool, block_size=64)) == PROMISED[PLAIN]


FORKED = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from tests import bits
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
    print(bits.sha(bits.simulate({name!r}, executor=pool, block_size=64)), end="")
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there are no forks here")
@pytest.mark.parametrize("seed", ["0", "7"])
def test_forked_processes_and_other_hashes_of_strings(seed):
    """In a process of its own, which has no threads yet."""
    done = subprocess.run([sys.executable, "-c", FORKED.format(name=PLAIN)], cwd=ROOT, text=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
                          capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, PROMISED[PLAIN]), done.stderr


def test_four_threads_simulate_at_once():
    together = threading.Barrier(4)

    def run(name):
        together.wait()
        return name, bits.sha(bits.simulate(name, threads=2, block_size=64))

    with ThreadPoolExecutor(4) as pool:
        assert_promised(dict(pool.map(run, QUICK[:4])))


def test_tasks_of_asyncio():
    async def gathered():
        return await asyncio.gather(*(asyncio.to_thread(bits.simulate, name) for name in QUICK[:3]))

    assert_promised(dict(zip(QUICK, map(bits.sha, asyncio.run(gathered())), strict=False)))


def test_a_changed_number_changes_the_hash():
    run = bits.simulate(PLAIN)
    for part in (run.mean, run.cov, run.leaf_cov, run.spread, run.final, run.averages):
        before = part.flat[-1]
        part.flags.writeable = True
        part.flat[-1] = before * (1.0 + 2.0**-52)
        assert bits.sha(run) != PROMISED[PLAIN]
        part.flat[-1] = before
    assert bits.sha(run) == PROMISED[PLAIN]
