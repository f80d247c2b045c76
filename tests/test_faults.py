"""After every fault the old file or the new one, and a run that goes on to the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import corpus
import numpy as np
import pytest
from faults import ALGORITHM, FAULTS, PROBLEM, SCENARIOS, Checkpoint, Faults, bits, every_fault, names

import fedsim as fs
from fedsim.engine import job

CALLS = {"checkpoint": 80, "save": 30, "publish": 12, "cache": 8}
"""Fewest calls of the file system that can fail in each scenario: fewer faults are tried nowhere."""
ROOT = Path(__file__).resolve().parent.parent


def python(*arguments, **options):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    return subprocess.Popen([sys.executable, *map(str, arguments)], env=environment, cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


# --- simulated

def test_every_scenario_and_every_kind_of_fault_is_tried():
    assert CALLS.keys() == SCENARIOS.keys() and len(FAULTS) == 5 and sum(CALLS.values()) * len(FAULTS) >= 650


@pytest.mark.parametrize("scenario", CALLS)
@pytest.mark.parametrize("kind", [kind for kind in FAULTS if kind != "killed"])
def test_every_fault_leaves_old_or_new_and_the_next_run_whole(tmp_path, scenario, kind):
    assert every_fault(scenario, tmp_path, kind) >= CALLS[scenario]


@pytest.mark.parametrize("scenario", CALLS)
def test_every_kill_leaves_old_or_new_and_the_next_run_whole(tmp_path, scenario):
    """Nothing is cleaned up by who dies."""
    process = python("-W", "error", ROOT / "tests" / "faults.py", scenario, tmp_path)
    calls, errors = process.communicate()
    assert process.returncode == 0, errors
    assert int(calls) >= CALLS[scenario]


def test_the_simulated_faults_are_seen(tmp_path, monkeypatch):
    """A writer that writes in place, and one that leaves its part, are found out."""
    class InPlace(SCENARIOS["save"]):
        def act(self, place):
            with open(place / "law.npz", "wb") as file:
                np.savez(file, **self.laws[1]._payload())

    class Littering(SCENARIOS["publish"]):
        def act(self, place):
            (place / "figure.csv.part").write_bytes(b"half")
            os.replace(place / "figure.csv.part", place / "figure.csv")

    for name, faulty in {"in place": InPlace, "littering": Littering}.items():
        monkeypatch.setitem(SCENARIOS, name, faulty)
        with pytest.raises((ValueError, AssertionError)):
            every_fault(name, tmp_path, "no room")


# --- checkpoints

def checkpointed(folder):
    return fs.simulate(PROBLEM, ALGORITHM, 3, 128, seed=1, threads=1, block_size=64, checkpoint=folder)


@pytest.mark.parametrize("left", [["manifest.26562.part"], ["block-0-64.npzab12.part", ".fedsim-0-1-2.part"]])
def test_parts_of_files_do_not_count(tmp_path, left):
    for name in left:
        (tmp_path / name).write_bytes(b"half")
    assert bits(checkpointed(tmp_path)) == Checkpoint().expected


def test_a_manifest_that_appears_meanwhile_is_read(tmp_path, monkeypatch):
    """Of the same simulation it is welcome, another's is refused and stays."""
    other = tmp_path / "other"
    fs.simulate(PROBLEM, ALGORITHM, 4, 128, seed=1, checkpoint=other)
    link, whose = os.link, {}

    def linked(part, path):
        path.write_bytes(whose["manifest"])
        link(part, path)

    monkeypatch.setattr(os, "link", linked)
    whose["manifest"] = (other / "manifest.json").read_bytes()
    with pytest.raises(ValueError, match="belongs to another simulation"):
        checkpointed(tmp_path / "new")
    assert names(tmp_path / "new") == ["manifest.json"]
    assert (tmp_path / "new" / "manifest.json").read_bytes() == whose["manifest"]
    monkeypatch.undo()
    checkpointed(tmp_path / "mine")
    monkeypatch.setattr(os, "link", linked)
    whose["manifest"] = (tmp_path / "mine" / "manifest.json").read_bytes()
    assert bits(checkpointed(tmp_path / "again")) == Checkpoint().expected


def test_file_systems_without_links_will_do(tmp_path, monkeypatch):
    def refused(part, path):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refused)
    assert bits(checkpointed(tmp_path)) == Checkpoint().expected
    assert names(tmp_path) == ["block-0-64.npz", "block-64-128.npz", "manifest.json"]


def test_a_block_is_synchronised_once(tmp_path):
    calls = []
    with Faults(tmp_path, watch=calls.append):
        checkpointed(tmp_path)
    assert calls.count("fsync") == 2 + 2  # of the manifest and its folder, and of each block


@pytest.mark.parametrize("name", corpus.MANIFESTS)
def test_malformed_manifests_are_refused_by_name(tmp_path, name):
    (tmp_path / "manifest.json").write_bytes(corpus.MANIFESTS[name])
    with pytest.raises(ValueError, match=r"^checkpoint='.*(manifest\.json is damaged|another simulation)"):
        checkpointed(tmp_path)


def test_manifests_and_blocks_that_are_folders_and_bad_names(tmp_path):
    (tmp_path / "a" / "manifest.json").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
        checkpointed(tmp_path / "a")
    checkpointed(tmp_path / "b")
    (tmp_path / "b" / "block-64-128.npz").unlink()
    (tmp_path / "b" / "block-64-128.npz").mkdir()
    with pytest.raises(ValueError, match=r"block-64-128\.npz is damaged"):
        checkpointed(tmp_path / "b")
    with pytest.raises(ValueError, match=r"^checkpoint='.*' must be a folder"):
        checkpointed("run\0")


def test_malformed_blocks_are_refused_by_name(tmp_path):
    """What no law's file may be is no block either: compressed strangely, encrypted, larger than it is."""
    checkpointed(tmp_path)
    block = tmp_path / "block-64-128.npz"
    whole = block.read_bytes()
    with np.load(block) as stored:
        arrays = {name: stored[name] for name in stored.files}
    malformed = corpus.archives(corpus.saved(corpus.run(), tmp_path)).values()
    for data, _ in malformed:
        block.write_bytes(data)
        with pytest.raises(ValueError, match=r"block-64-128\.npz is damaged or foreign"):
            checkpointed(tmp_path)
    claim = corpus.header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000000), }")
    block.write_bytes(corpus.packed(arrays | {"mean": claim}))
    with pytest.raises(ValueError, match="mean is not the array of numbers that its header promises"):
        checkpointed(tmp_path)
    block.write_bytes(whole)
    assert bits(checkpointed(tmp_path)) == Checkpoint().expected and len(malformed) > 40


def test_blocks_of_other_code_are_refused(tmp_path, monkeypatch):
    """The key of a checkpoint has the hash of all sources in it."""
    checkpointed(tmp_path)
    monkeypatch.setattr(job, "source_hash", lambda: "another version")
    with pytest.raises(ValueError, match=r"belongs to another simulation \(.* or fedsim version\)"):
        checkpointed(tmp_path)


# --- real processes

SHARED = """
import sys
import fedsim as fs
problem = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])
print("ready", flush=True)
sys.stdin.readline()
fs.simulate(problem, fs.FALD(0.1, 3), int(sys.argv[2]), 64 * 12, seed=1, threads=1, block_size=64,
            checkpoint=sys.argv[1])
"""
ROUNDS = 20_000


def expected(n_rounds):
    return bits(fs.simulate(PROBLEM, ALGORITHM, n_rounds, 64 * 12, seed=1, threads=2))


def kill_until_done(folder, n_kills, seed):
    """Kill a checkpointed run some blocks after it began, then let it end; how many kills met it at work."""
    random, hits = np.random.default_rng(seed), 0
    for _ in range(n_kills):
        process = python("-c", SHARED, folder, ROUNDS, stdin=subprocess.PIPE)
        process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        wanted = len(list(folder.glob("block-*"))) + random.integers(3)
        while process.poll() is None and len(list(folder.glob("block-*"))) < wanted:
            time.sleep(0.005)
        time.sleep(random.uniform(0.0, 0.05))
        process.kill()
        process.communicate()
        hits += process.returncode < 0
    run = fs.simulate(PROBLEM, ALGORITHM, ROUNDS, 64 * 12, seed=1, block_size=64, checkpoint=folder)
    assert bits(run) == expected(ROUNDS)
    assert names(folder) == sorted(["manifest.json", *(f"block-{i}-{i + 64}.npz" for i in range(0, 768, 64))])
    return hits


def start_together(folder, n_processes):
    """Processes that start on a new folder at the same moment; all have to end well."""
    processes = [python("-c", SHARED, folder, 5, stdin=subprocess.PIPE) for _ in range(n_processes)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * n_processes, errors
    run = fs.simulate(PROBLEM, ALGORITHM, 5, 64 * 12, seed=1, checkpoint=folder)
    assert bits(run) == expected(5) and not [name for name in names(folder) if name.endswith(".part")]


def test_killed_runs_go_on(tmp_path):
    assert kill_until_done(tmp_path / "run", 3, 1) > 0


def test_processes_start_together(tmp_path):
    start_together(tmp_path / "run", 4)


@pytest.mark.slow
def test_often_killed_runs_go_on(tmp_path):
    hits = sum(kill_until_done(tmp_path / str(seed), 5, seed) for seed in range(2, 7))
    assert hits > 5


@pytest.mark.slow
def test_many_processes_start_together(tmp_path):
    for number in range(3):
        start_together(tmp_path / str(number), 8)
