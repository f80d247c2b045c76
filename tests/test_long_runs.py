"""Shards, the commands of README's "Long runs", and where `python -m reproduce` computes."""

import os
import re
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from test_cluster import BLOCKS, PATIENCE, bits, simulate

import fedsim as fs
from reproduce import command
from reproduce.scoreboard import command as scoreboard

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(("n_replicas", "n_shards"), [(1, 1), (64, 1), (65, 2), (1000, 4), (10**6, 7)])
def test_shards_cover_all_replicas_in_whole_leaves(n_replicas, n_shards):
    ranges = fs.shards(n_replicas, n_shards)
    assert len(ranges) == n_shards and ranges[0][0] == 0 and ranges[-1][1] == n_replicas
    assert all(one[1] == other[0] for one, other in pairwise(ranges))
    assert all(first % 64 == 0 and first < last for first, last in ranges)
    leaves = [-(-last // 64) - first // 64 for first, last in ranges]
    assert max(leaves) - min(leaves) <= 1


def test_more_shards_than_leaves_are_refused():
    with pytest.raises(ValueError, match=r"n_shards=3 must be at most 2: n_replicas=100 are so many"):
        fs.shards(100, 3)
    for bad in ({"n_replicas": 0, "n_shards": 1}, {"n_replicas": 64, "n_shards": 0},
                {"n_replicas": 64.5, "n_shards": 1}):
        with pytest.raises(ValueError, match=r"n_(replicas|shards)=.* must be"):
            fs.shards(**bad)


def test_shards_are_merged_and_nothing_is_computed(tmp_path):
    ranges = fs.shards(64 * BLOCKS, 5)
    for replicas in (ranges[4], ranges[1]):
        simulate(replicas=replicas, checkpoint=tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"replicas='kept' merges .* 448 of 768 replicas are missing: "
                                         r"\(0, 128\), \(256, 576\); run these shards"):
        simulate(replicas="kept", checkpoint=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    for replicas in (ranges[0], ranges[3], ranges[2]):
        simulate(replicas=replicas, checkpoint=tmp_path)
    with ThreadPoolExecutor(1) as pool:
        pool.shutdown()
        merged = simulate(replicas="kept", checkpoint=tmp_path, executor=pool)
    assert bits(merged) == bits(simulate())


def test_a_merge_needs_its_folder(tmp_path):
    for checkpoint in (None, tmp_path / "none", 3):
        with pytest.raises(ValueError, match=r"replicas='kept' needs the folder that holds them"):
            simulate(replicas="kept", checkpoint=checkpoint)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"replicas='all' must be a pair \(first, last\) or 'kept'"):
        simulate(replicas="all")
    for first in range(0, 64 * BLOCKS, 128):
        simulate(replicas=(first, first + 64), checkpoint=tmp_path, n_rounds=3)
    with pytest.raises(ValueError, match=r"\(576, 640\) and 1 more ranges; run"):
        simulate(replicas="kept", checkpoint=tmp_path, n_rounds=3)


def test_a_figure_and_a_theorem_are_computed_on_dask(dask, tmp_path, capsys):
    dask = f"dask={dask}"
    for folder, options in (("here", ["--workers", "1"]), ("there", ["--executor", dask])):
        assert command.main(["de_fig1", "--scale", "tiny", "--out", str(tmp_path / folder), *options]) == 0
    for name in ("de_fig1.csv", "de_fig1.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    rows, _ = next(scoreboard._finished(["de_sgld.w2_bound"], 2, 1, dask))
    assert rows == next(scoreboard._finished(["de_sgld.w2_bound"], 2, 1, None))[0]


@pytest.mark.parametrize(("words", "problem"), [
    ("nonsense", "must be dask=ADDRESS or package.module:name of a callable"),
    ("no_such_module:make", "must be dask=ADDRESS or package.module:name of a callable"),
    ("concurrent.futures:NoSuchPool", "must be dask=ADDRESS or package.module:name of a callable"),
    ("concurrent.futures:Future", "must have the interface of concurrent.futures.Executor"),
    ("gc:collect", "must have the interface of concurrent.futures.Executor"),
    ("os:remove", "calling it failed (TypeError"), ("dask=nowhere", "no scheduler answers there"),
    ("dask", "must be dask=ADDRESS: `dask scheduler` prints"), ("dask=", "must be dask=ADDRESS")])
def test_a_bad_executor_of_the_command_line(words, problem, tmp_path, capsys):
    assert command.main(["de_fig1", "--scale", "tiny", "--out", str(tmp_path), "--executor", words]) == 2
    assert f"error: --executor {words}" in (told := capsys.readouterr().err) and problem in told
    assert not list(tmp_path.iterdir())


def test_an_executor_by_its_import_path(tmp_path, capsys):
    given = ["de_fig1", "--scale", "tiny", "--out", str(tmp_path), "--executor"]
    assert command.main([*given, "concurrent.futures:ThreadPoolExecutor"]) == 0
    assert (tmp_path / "de_fig1.csv").exists()


def commands():
    """The shell lines of README's section, without what they say of themselves."""
    section, = re.findall(r"^## Long runs$(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)
    block, = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    lines = [line.partition("#")[0].strip() for line in block.splitlines()]
    return [line for line in lines if line]


RUN, RESUME, SHARD, MERGE, SCHEDULER, WORKER, DASK, FIGURE = range(8)


def started(line, folder):
    """A shell line of README as a process."""
    program, *words = shlex.split(line.rstrip("& "))
    words = [str(ROOT / word) if word.startswith("docs/") else word for word in words]
    words = ["-m", "dask", *words, "--no-dashboard"] if program == "dask" else words
    return subprocess.Popen([sys.executable, *words], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def printed(line, folder):
    """What a shell line prints when it ends well."""
    process = started(line, folder)
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return output


def main_of_the_script(*words):
    runpy.run_path(str(ROOT / "docs" / "long_runs.py"))["main"](list(words))


@pytest.fixture(scope="module", name="expected")
def _expected(tmp_path_factory):
    """What a run that nothing stops prints."""
    return printed(commands()[RUN], tmp_path_factory.mktemp("run"))


def test_an_interrupted_run_is_resumed(expected, tmp_path):
    lines = commands()
    process, deadline = started(lines[RUN], tmp_path), time.monotonic() + PATIENCE
    try:
        while not list(tmp_path.glob("long-run/block-*.npz")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert expected.startswith("100000 replicas: W2 at rounds [0, 10, 100] is [1.3128, ")
    assert printed(lines[RESUME], tmp_path) == expected


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def interrupted(*words, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(fs, "simulate", interrupted)
    with pytest.raises(SystemExit, match="130"):
        main_of_the_script("--folder", str(tmp_path), "run")
    assert f"interrupted: finished blocks are kept in {tmp_path}" in capsys.readouterr().err


def test_shards_are_run_and_merged_by_commands(expected, tmp_path, monkeypatch, capsys):
    lines = commands()
    assert printed(lines[SHARD], tmp_path).startswith("12544 replicas")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="87456 of 100000 replicas are missing"):
        main_of_the_script("merge")
    for number in (1, 2, 4, 5, 6, 7, 8):
        main_of_the_script("shard", str(number), "--of", "8")
    assert printed(lines[MERGE], tmp_path) == expected
    for words in (["shard", "9", "--of", "8"], ["--folder", "none", "resume"]):
        with pytest.raises(SystemExit, match="2"):
            main_of_the_script(*words)
    told = capsys.readouterr().err
    assert "shard 9 must be one of 1 to 8" in told and "there is nothing to resume" in told


@pytest.fixture(scope="module", name="dask")
def _dask(tmp_path_factory):
    """The address of a Dask cluster that README's two commands made, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    folder = tmp_path_factory.mktemp("dask")
    processes = [started(commands()[which].replace("8786", port), folder) for which in (SCHEDULER, WORKER)]
    try:
        yield f"tcp://127.0.0.1:{port}"
    finally:
        for process in reversed(processes):  # the worker first: it ends its nanny's process too
            process.terminate()
            process.communicate(timeout=PATIENCE)


def test_commands_run_on_dask(dask, expected, tmp_path):
    """The client waits for the scheduler, and the scheduler for the worker."""
    lines = [line.replace("tcp://127.0.0.1:8786", dask) for line in commands()]
    assert printed(lines[DASK], tmp_path) == expected
    assert "de_fig1" in printed(f"{lines[FIGURE]} --scale tiny --out .", tmp_path)
    assert (tmp_path / "de_fig1.csv").exists()


def test_the_commands_are_those():
    lines = [line.split() for line in commands()]
    assert [line[:3] for line in lines[:4]] == [["python", "docs/long_runs.py", name]
                                                for name in ("run", "resume", "shard", "merge")]
    assert [line[:2] for line in lines[4:]] == [["dask", "scheduler"], ["dask", "worker"],
                                                ["python", "docs/long_runs.py"], ["python", "-m"]]
