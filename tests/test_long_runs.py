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
                {"n_replicas": 64.0, "n_shards": 1}):
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
    ("os:remove", "calling it failed (TypeError"), ("dask=nowhere", "no scheduler answers there")])
def test_a_bad_executor_of_the_command_line(words, problem, tmp_path, capsys):
    assert command.main(["de_fig1", "--scale", "tiny", "--out", str(tmp_path), "--executor", words]) == 2
    assert f"error: --executor {words}" in (told := capsys.readouterr().err) and problem in told
    assert not list(tmp_path.iterdir())


def test_an_executor_by_its_import_path(tmp_path, capsys):
    given = ["de_fig1", "--scale", "tiny", "--out", str(tmp_path), "--executor"]
    assert command.main([*given, "concurrent.futures:ThreadPoolExecutor"]) == 0
    assert (tmp_path / "de_fig1.csv").exists()


def commands():
    """The shell lines of README's section, by what comes after `python docs/long_runs.py` and the like."""
    section, = re.findall(r"^## Long runs$(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)
    block, = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def started(line, folder):
    """A shell line of README as a process."""
    words = shlex.split(line.rstrip("& "))
    if words[0] == "python":
        words = [sys.executable, *(str(ROOT / word) if word.startswith("docs/") else word for word in words[1:])]
    else:  # of Dask
        words = [sys.executable, "-m", "dask", *words[1:], *(["--no-dashboard"])]
    return subprocess.Popen(words, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def said(line, folder, code=0):
    """What it prints when it ends with this exit code."""
    process = started(line, folder)
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == code, errors
    return errors if code else output
