"""Saved laws: what is refused and by which name, and what a file keeps of its place: mode, link, name."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import corpus
import numpy as np
import pytest
from faults import Faults, bits

import fedsim as fs
from fedsim.laws import storage
from fedsim.settings import limits

OLD, NEW = (fs.Law(np.arange(2), np.full((2, 1), mean), np.ones((2, 1))) for mean in (0.0, 1.0))


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """A folder of a process that lets its group write."""
    before = os.umask(0o027)
    yield tmp_path
    os.umask(before)


def mode(path):
    return path.stat().st_mode & 0o777


# --- what is refused

def test_every_malformed_file_is_refused_by_name(tmp_path):
    files, path = corpus.all_files(tmp_path), tmp_path / "malformed.npz"
    wrong = {}
    for name, (data, words) in files.items():
        path.write_bytes(data)
        with pytest.raises(ValueError) as caught:
            fs.load(path)
            wrong[name] = "accepted"
        if not re.search(rf"^path='.*malformed\.npz' must be a file written by Law\.save \(.*{words}",
                         str(caught.value), re.DOTALL):
            wrong[name] = str(caught.value)
    assert not wrong and len(files) >= 95


def test_what_the_malformed_files_are_made_of_is_sound(tmp_path):
    for law in (corpus.run(), corpus.PAIR):
        data = corpus.saved(law, tmp_path)
        for again in (data, corpus.changed(data), corpus.changed(data, method=zipfile.ZIP_DEFLATED),
                      corpus.edited(data, (corpus.LOCAL, 8, 2, 0), (corpus.CENTRAL, 10, 2, 0))):
            (tmp_path / "again.npz").write_bytes(again)
            assert bits(fs.load(tmp_path / "again.npz")) == bits(law)


def fields_of(run):
    """Arguments of a hand-made run, from a file's arrays and meta data, where a file can hold such fields."""
    arrays, meta = corpus.opened(run)
    target = fs.Gaussian(arrays.pop("target_mean"), arrays.pop("target_cov"))
    return {"target": target, **{name: meta[name] for name in ("is_gaussian", "label", "n_replicas", "costs",
                                                               "n_leaves", "seed")},
            **{name: value for name, value in arrays.items() if not name.startswith("client")}}


def test_what_is_refused_of_files_is_refused_of_laws_made_by_hand(tmp_path):
    run = corpus.saved(corpus.run(), tmp_path)
    assert bits(fs.Run(**fields_of(run))) == bits(corpus.run())
    accepted, tried = [], 0
    for name, (data, _) in corpus.fields(run).items():
        if name.startswith(("target", "n_clients", "version", "kind", "of", "mean: objects")):
            continue
        tried += 1
        try:
            fs.Run(**fields_of(data))
            accepted.append(name)
        except ValueError as error:
            assert re.match(rf"{name.split(':')[0]}\b", str(error)), (name, str(error))
    assert not accepted and tried > 35


@pytest.mark.parametrize(("change", "words"), [
    ({"target": fs.Gaussian([0.0, 0.0], [1.0, 1.0])}, "target has dimension 2"),
    ({"target": 3}, "target=3 must be a fedsim.Gaussian"), ({"clients": [3]}, r"clients\[0\]=3 must be"),
    ({"clients": 3}, "clients=3 must be"), ({"rounds": [0, 2.5]}, "rounds="),
    ({"mean": np.ma.array([[0.0], [9.0]], mask=[[0], [1]])}, "mean must not be a masked array"),
    ({"mean": [[0.0], [1.0, 2.0]]}, "mean must be an array"), ({"mean": None}, "mean="),
    ({"clients": (fs.Law(np.arange(1, 3), np.ones((2, 1)), None),)}, r"clients\[0\]\.rounds"),
    ({"clients": (fs.Law(np.arange(3), np.ones((3, 1)), None),)}, r"clients\[0\]\.mean has shape")])
def test_laws_made_by_hand_are_checked(change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(OLD, **change)


def test_rounding_is_no_reason_to_refuse():
    square = np.array([[1.0, 1.0], [1.0, 1.0]])
    for cov in (square * [[1.0, 1.0 + 1e-12], [1.0, 1.0]], square - 1e-13 * np.eye(2), np.diag([1.0, -1e-13]),
                np.zeros((2, 2))):
        law = fs.Law(np.arange(1), np.ones((1, 2)), cov[None])
        assert law.cov.tobytes() == cov.tobytes()


def test_a_bomb_is_not_expanded(tmp_path, monkeypatch):
    """Neither one under a foreign name, nor an array beyond what the machine can hold."""
    data, path = corpus.saved(NEW, tmp_path), tmp_path / "bomb.npz"
    large = np.zeros(2**25, np.uint8)
    for name, words in (("more", "no part of a law"), ("mean", "mean, with what is read before it, needs")):
        path.write_bytes(corpus.changed(data, arrays={name: large}, method=zipfile.ZIP_DEFLATED))
        assert path.stat().st_size < 2**20
        monkeypatch.setattr(limits, "memory_limit", lambda: 2.0**24)
        tracemalloc.start()
        with pytest.raises(ValueError, match=words):
            fs.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
        tracemalloc.stop()


def test_arrays_that_fit_one_by_one_and_not_together_are_refused(tmp_path, monkeypatch):
    law, path = fs.Law(np.arange(100), np.ones((100, 10)), np.ones((100, 10))), tmp_path / "law.npz"
    law.save(path)
    monkeypatch.setattr(limits, "memory_limit", lambda: 1.5 * law.mean.nbytes)
    with pytest.raises(ValueError, match="cov, with what is read before it, needs about"):
        fs.load(path)
    monkeypatch.setattr(limits, "memory_limit", lambda: 4.0 * law.mean.nbytes)
    assert bits(fs.load(path)) == bits(law)


def test_covariances_of_clients_are_factorised(tmp_path):
    """Each correlation may be -0.9, and not all three."""
    one = fs.Law(np.arange(1), np.zeros((1, 3)), np.eye(3)[None])
    data = corpus.saved(dataclasses.replace(one, clients=(one, one)), tmp_path)
    indefinite = 1.9 * np.eye(3)[None] - 0.9
    (tmp_path / "law.npz").write_bytes(corpus.changed(data, arrays={"client1_cov": indefinite}))
    with pytest.raises(ValueError, match=r"clients\[1\]: cov\[0\] has smallest eigenvalue -0\.8"):
        fs.load(tmp_path / "law.npz")


# --- paths

@pytest.mark.parametrize("path", [3, None, b"law.npz", "law\0.npz"])
def test_what_is_no_path_is_refused(path):
    for use in (NEW.save, fs.load):
        with pytest.raises(ValueError, match=r"^path=.* must be a file's path"):
            use(path)


def test_folders_pipes_and_missing_folders(tmp_path):
    with pytest.raises(ValueError, match=r"^path='.*' is a folder"):
        NEW.save(tmp_path)
    with pytest.raises(ValueError, match=r"^path='.*' must be a file written by"):
        fs.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^path='.*none.law\.npz': the folder .* does not exist"):
        NEW.save(tmp_path / "none" / "law.npz")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        fs.load(tmp_path / "pipe")
    assert names_in(tmp_path) == ["pipe"]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_follow_the_umask_and_keep_the_mode_that_they_have(folder):
    NEW.save(folder / "law.npz")
    assert mode(folder / "law.npz") == 0o640
    (folder / "law.npz").chmod(0o604)
    OLD.save(folder / "law.npz")
    assert mode(folder / "law.npz") == 0o604
    fs.simulate(fs.Quadratic([1.0], [[0.0]]), fs.FALD(0.1), 1, 64, seed=1, checkpoint=folder / "run")
    assert [mode(path) for path in (folder / "run").iterdir()] == [0o640, 0o640]


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    OLD.save(tmp_path / "far" / "law.npz")
    (tmp_path / "link.npz").symlink_to(Path("far") / "law.npz")
    (tmp_path / "dangling.npz").symlink_to(Path("far") / "new.npz")
    for name, target in (("link.npz", "law.npz"), ("dangling.npz", "new.npz")):
        NEW.save(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert bits(fs.load(tmp_path / "far" / target)) == bits(NEW)
    assert names_in(tmp_path / "far") == ["law.npz", "new.npz"]


def test_the_longest_names_are_good(tmp_path):
    for name in ("x" * 255, "x" * 251 + ".npz"):
        NEW.save(tmp_path / name)
        assert bits(fs.load(tmp_path / name)) == bits(NEW)


# --- replaced as a whole

def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "law.npz"
    OLD.save(path)
    seen = []
    with Faults(tmp_path, watch=lambda call: seen.append((call, bits(fs.load(path))))):
        NEW.save(path)
    calls, laws = [call for call, _ in seen], [law for _, law in seen]
    assert len(seen) > 20 and calls[-3:] == ["fsync", "replace", "fsync"]  # of the file, then of the folder
    assert all(law == bits(OLD) for law in laws[:-1]) and laws[-1] == bits(fs.load(path)) == bits(NEW)


@pytest.mark.parametrize("name", ["EINVAL", "ENOTSUP", "ENOSYS", "EIO", "ENOSPC"])
def test_only_a_file_system_that_knows_of_no_synchronising_may_leave_it_out(tmp_path, monkeypatch, name):
    """An error of the disk is never taken for that."""
    number, is_refusal = getattr(errno, name), name in ("EIO", "ENOSPC")

    def refuse(handle):
        raise OSError(number, "simulated")

    OLD.save(tmp_path / "law.npz")
    monkeypatch.setattr(os, "fsync", refuse)
    if is_refusal:
        with pytest.raises(OSError, match="simulated"):
            NEW.save(tmp_path / "law.npz")
    else:
        NEW.save(tmp_path / "law.npz")
    assert bits(fs.load(tmp_path / "law.npz")) == bits(OLD if is_refusal else NEW)
    assert names_in(tmp_path) == ["law.npz"]


def test_parts_of_processes_that_may_not_be_asked_stay(tmp_path, monkeypatch):
    """Who runs this may be root, to whom nobody refuses: so the refusal is simulated."""
    def refuse(process, signal):
        raise PermissionError(errno.EPERM, "somebody else's")

    part = storage.write_part(tmp_path / "law.npz", b"half")
    monkeypatch.setattr(os, "kill", refuse)
    NEW.save(tmp_path / "law.npz")
    assert part.exists()
    os.utime(part, (time.time() - storage.ABANDONED_SECONDS - 60,) * 2)
    NEW.save(tmp_path / "law.npz")
    assert names_in(tmp_path) == ["law.npz"]


def test_parts_of_dead_processes_are_swept(tmp_path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True,
                          text=True)
    machine = storage.write_part(tmp_path / "law.npz", b"").name.split("-")[1]
    day = storage.ABANDONED_SECONDS

    def part(machine, process, age):
        path = tmp_path / f".fedsim-{machine}-{process}-{len(names_in(tmp_path))}.part"
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
        return path

    living = [part(machine, os.getpid(), 9), part(machine, os.getppid(), 9), part("elsewhere", 1, 9)]
    gone = [part(machine, dead.stdout.strip(), 0), part("elsewhere", 1, day + 60),
            part(machine, os.getpid(), day + 60), part(machine, "x", day + 60)]
    NEW.save(tmp_path / "law.npz")
    assert all(path.exists() for path in living)
    assert [path.exists() for path in gone] == [False, False, False, True]  # the last is not ours to judge


# --- random damage

def damage(data, random):
    """One of: bits, a cut, a swap, zeroes, a header, a piece twice."""
    data, size = bytearray(data), len(data)
    begin, length = int(random.integers(size)), int(random.integers(1, 200))
    kind = random.integers(6)
    if kind == 0:
        for _ in range(random.integers(1, 9)):
            data[random.integers(size)] ^= 1 << int(random.integers(8))
    elif kind == 1:
        del data[begin:]
    elif kind == 2:
        other = int(random.integers(size))
        data[begin:begin + length], data[other:other + length] = (data[other:other + length],
                                                                  data[begin:begin + length])
    elif kind == 3:
        data[begin:begin + length] = bytes(len(data[begin:begin + length]))
    elif kind == 4:
        places = [match.start() for match in re.finditer(rb"PK..|\x93NUMPY", bytes(data), re.DOTALL)]
        data[min(size - 1, int(random.choice(places) + random.integers(46)))] = int(random.integers(256))
    else:
        data[begin:begin] = data[begin:begin + length]
    return bytes(data)


def search(data, read, path, n, seed):
    """How many damaged files were refused, and how many read as if whole; anything else fails."""
    random, whole, outcomes = np.random.default_rng(seed), read(), {"refused": 0, "same": 0}
    for trial in range(n):
        path.write_bytes(damage(data, random))
        try:
            again = read()
        except ValueError as error:
            assert path.name in str(error)
            outcomes["refused"] += 1
        else:
            assert again == whole, f"damage {trial} of seed {seed} went unnoticed"
            outcomes["same"] += 1
    path.write_bytes(data)
    return outcomes


def everything(law):
    """All that a file keeps."""
    return json.dumps([{name: value.tolist() if isinstance(value, np.ndarray) else str(value)
                        for name, value in vars(one).items()} for one in (law, *law.clients)]), bits(law)


def damaged_files(tmp_path, n, seed):
    checkpoint = tmp_path / "run"

    def simulated():
        return bits(fs.simulate(fs.Quadratic([1.0, 2.0], [[0.0], [1.0]]), fs.FALD(0.1), 3, 128, seed=1,
                                threads=1, block_size=64, checkpoint=checkpoint))

    simulated()
    block, law = checkpoint / "block-64-128.npz", tmp_path / "law.npz"
    found = [search(block.read_bytes(), simulated, block, n, seed)]
    for one in (corpus.run(), corpus.PAIR):
        found.append(search(corpus.saved(one, tmp_path), lambda: everything(fs.load(law)), law, n, seed))
    assert all(sum(outcomes.values()) == n and outcomes["refused"] > n // 2 for outcomes in found)


def test_damaged_files_are_refused_or_read_as_they_were(tmp_path):
    damaged_files(tmp_path, 50, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_many_damaged_files_are_refused_or_read_as_they_were(tmp_path, seed):
    damaged_files(tmp_path, 200, seed)
