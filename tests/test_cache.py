"""The cache of compiled code makes processes start sooner; nothing that happens to it stops one."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numba
import pytest

import fedsim as fs
from fedsim.vector import cache, compile as compiling, kept


def twice(x):
    return 2 * x


def thrice(x):
    return 3 * x


@pytest.fixture(name="place")
def _place(tmp_path, monkeypatch):
    """The folder of this version, empty, in a process that has not warned yet."""
    folder = tmp_path / "fedsim" / cache.code_hash()
    monkeypatch.setattr(cache, "cache_place", lambda: (folder, ""))
    monkeypatch.setattr(cache._Once, "done", False)
    return folder


def called(function, *values):
    """What a new process would get of a compiled function, how often it read code, and its warnings."""
    kernel = compiling.compiled(function)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        results = [kernel(value) for value in values]
    assert all(issubclass(one.category, cache.CacheWarning) for one in heard), heard
    return results, sum(kernel.stats.cache_hits.values()), [str(one.message) for one in heard]


def files(place, end):
    return sorted(path for path in place.rglob(f"*{end}"))


def _cut(path):
    path.write_bytes(path.read_bytes()[:100])


def _empty(path):
    path.write_bytes(b"")


def _garbage(path):
    path.write_bytes(b"garbage" * 99)


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) * 3 // 4] ^= 4
    path.write_bytes(data)


def _folder(path):
    path.unlink()
    path.mkdir()


def _of_numba(path):
    """A plain index, or code, of an older version."""
    path.write_bytes(pickle.dumps("0.0.1") + pickle.dumps(("stamp", {"key": "name"})))


DAMAGES = [_cut, _empty, _garbage, _flip, _folder, _of_numba]


@pytest.mark.parametrize("end", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_replaced_with_one_warning(place, damage, end):
    assert called(twice, 1.5) == ([3.0], 0, []) and called(thrice, 1) == ([3], 0, [])
    assert called(twice, 1.5) == ([3.0], 1, [])
    for path in files(place, end):
        damage(path)
    results, hits, heard = called(twice, 1.5)
    assert results == [3.0] and hits == 0 and len(heard) == 1
    assert str(place) in heard[0] and "remove the folder, or set NUMBA_CACHE_DIR" in heard[0]
    assert called(thrice, 1) == ([3], 0, [])  # as damaged, and warned of already
    if damage is not _folder:
        assert called(twice, 1.5) == ([3.0], 1, []) and called(thrice, 1) == ([3], 1, [])


@pytest.mark.parametrize("end", [".nbi", ".nbc"])
def test_sound_files_of_another_function_are_not_used(place, end):
    called(twice, 1), called(thrice, 1)
    one, other = files(place, end)
    shutil.copy(one, other)
    assert called(twice, 5)[0] == [10] and called(thrice, 5)[0] == [15]
    assert called(twice, 5) == ([10], 1, []) and called(thrice, 5) == ([15], 1, [])


def test_code_of_another_signature_is_not_used(place):
    """Two processes that begin an index at once give one file's name to both of their signatures."""
    assert called(twice, 3, 0.25) == ([6, 0.5], 0, [])
    one, other = files(place, ".nbc")
    for source, target in ((one, other), (other, one)):
        called(twice, 3, 0.25)
        shutil.copy(source, target)
        results, hits, heard = called(twice, 3, 0.25)
        assert results == [6, 0.5] and hits == 1 and not heard


def test_a_folder_that_is_removed_is_made_again(place):
    called(twice, 1)
    for gone in (place, place.parent):
        shutil.rmtree(gone)
        assert called(twice, 1) == ([2], 0, []) and called(twice, 1) == ([2], 1, [])
        assert place.parent.stat().st_mode & 0o777 == place.stat().st_mode & 0o777 == 0o700


def test_a_place_that_cannot_be_written_to_costs_one_warning(place):
    place.parent.write_text("a file where a folder was")
    results, hits, heard = called(twice, 1, 1.5)
    assert results == [2, 3.0] and not hits and len(heard) == 1
    assert called(thrice, 1) == ([3], 0, [])


def test_without_any_folder_there_is_one_warning(place, monkeypatch):
    monkeypatch.setattr(cache, "cache_place", lambda: (None, "why not"))
    results, hits, heard = called(twice, 1, 1.5)
    assert results == [2, 3.0] and not hits and len(heard) == 1 and "why not" in heard[0]
    assert called(thrice, 1) == ([3], 0, [])


def test_the_sources_folder_is_no_substitute(place):
    """numba's own choice when a folder is not writable; edits of callees would go unnoticed there."""
    place.parent.write_text("a file where a folder was")
    called(twice, 1)
    assert not files(Path(__file__).parent, ".nbi")


def test_numba_keeps_its_own_folder():
    assert numba.config.CACHE_DIR == os.environ.get("NUMBA_CACHE_DIR", "")


# --- whose folder it is

@pytest.fixture(name="home")
def _home(tmp_path, monkeypatch):
    """Two candidates: one chosen by the user, and one in the temporary folder."""
    (tmp_path / "chosen").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    before = os.umask(0o002)
    yield tmp_path
    os.umask(before)


def mode(path):
    return path.stat().st_mode & 0o777


def spare(home):
    return home / "temporary" / f"fedsim-{os.getuid()}"


def test_the_folder_is_private(home):
    folder, refused = cache.private_folder("0" * 16)
    assert folder == home / "chosen" / "fedsim" / ("0" * 16) and not refused
    assert mode(folder) == mode(folder.parent) == 0o700


@pytest.mark.parametrize("others", [0o020, 0o002])
def test_what_others_could_have_written_is_thrown_away(home, others):
    parent = home / "chosen" / "fedsim"
    (parent / ("0" * 16) / "engine").mkdir(parents=True)
    (parent / ("0" * 16) / "engine" / "planted.nbi").write_bytes(b"pickle")
    (parent / "link").symlink_to(home)
    parent.chmod(0o755 | others)
    folder, _ = cache.private_folder("0" * 16)
    assert folder.parent == parent and mode(parent) == 0o700
    assert not list(folder.iterdir()) and home.is_dir() and not (parent / "link").is_symlink()


def test_what_only_the_user_could_have_written_stays(home):
    folder, _ = cache.private_folder("0" * 16)
    folder.parent.chmod(0o755)
    (folder / "kept").write_bytes(b"x")
    assert cache.private_folder("0" * 16)[0] == folder and (folder / "kept").exists()


def test_a_link_of_the_users_to_a_large_disk_will_do(home):
    (home / "disk").mkdir(mode=0o700)
    (home / "chosen" / "fedsim").symlink_to(home / "disk")
    assert cache.private_folder("0" * 16)[0] == home / "chosen" / "fedsim" / ("0" * 16)


def test_no_link_is_followed_in_the_temporary_folder(home):
    shutil.rmtree(home / "chosen")
    (home / "chosen").write_text("no folder")
    (home / "disk").mkdir()
    spare(home).symlink_to(home / "disk")
    folder, refused = cache.private_folder("0" * 16)
    assert folder is None and "is not a folder" in refused and not list((home / "disk").iterdir())
    spare(home).unlink()
    assert cache.private_folder("0" * 16)[0] == spare(home) / ("0" * 16) and mode(spare(home)) == 0o700


def test_folders_of_somebody_else_are_not_used(home, monkeypatch):
    for folder in (home / "chosen" / "fedsim", home / "temporary" / f"fedsim-{os.getuid() + 1}"):
        folder.mkdir(mode=0o700)
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    folder, refused = cache.private_folder("0" * 16)
    assert folder is None and refused.count("belongs to another user") == 2
    assert [list(path.iterdir()) for path in (home / "chosen" / "fedsim", spare(home))] == [[], []]


def test_a_machine_without_room_for_a_temporary_file(home, monkeypatch):
    def none():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(cache.tempfile, "gettempdir", none)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(home / "chosen" / "file" / "below"))
    (home / "chosen" / "file").write_text("")
    assert cache.private_folder("0" * 16)[0] is None


def test_old_versions_and_unfinished_files_are_removed(home):
    folder, _ = cache.private_folder("0" * 16)
    (folder / "engine").mkdir()
    for name, age in {"a.nbi.tmp.1": 9, "b.nbi.tmp.2": 2, "c.nbi": 99}.items():
        (folder / "engine" / name).write_bytes(b"x")
        os.utime(folder / "engine" / name, (time.time() - age * 8e4,) * 2)
    for name in ("1" * 16, "notes"):
        (folder.parent / name).mkdir()
        os.utime(folder.parent / name, (time.time() - 40 * 86400,) * 2)
    cache.private_folder("0" * 16)
    assert sorted(path.name for path in (folder / "engine").iterdir()) == ["c.nbi"]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["0" * 16, "notes"]


# --- a whole simulation

CODE = """
import warnings
import fedsim as fs
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    run = fs.simulate(fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1), 5, 100, seed=1,
                      start=fs.Gaussian([0.0], [1.0]))
print(run.mean.tobytes().hex(), [one.category.__name__ for one in heard])
"""


def test_a_simulation_outlives_a_damaged_cache(tmp_path):
    """All indices of this version but the largest kernel's are cut off; the next process is quick again."""
    expected = fs.simulate(fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1), 5, 100, seed=1,
                           start=fs.Gaussian([0.0], [1.0])).mean.tobytes().hex()
    folder = tmp_path / "fedsim" / cache.code_hash()
    shutil.copytree(cache.cache_place()[0], folder)
    tmp_path.chmod(0o700)
    folder.parent.chmod(0o700)
    for path in files(folder, ".nbi"):
        if "run_rounds" not in path.name:
            path.write_bytes(b"")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path),
                                "PYTHONPATH": str(Path(fs.__file__).parent.parent)}
    for heard in (["CacheWarning"], []):
        result = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True)
        assert result.stdout.strip() == f"{expected} {heard}", result.stderr


TOGETHER = """
import sys
import fedsim as fs
from fedsim.vector.compile import compiled_here
print("ready", flush=True)
sys.stdin.readline()
run = fs.simulate(fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1), n_rounds=2, n_replicas=2, seed=1)
print(len(compiled_here()), run.mean.sum().hex())
"""


def test_processes_that_begin_together_compile_once(tmp_path):
    """One compiles, the other waits and reads what it kept."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [subprocess.Popen([sys.executable, "-c", TOGETHER], stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.PIPE, env=environment) for _ in range(2)]
    assert [one.stdout.readline() for one in processes] == ["ready\n"] * 2
    for one in processes:
        one.stdin.write("go\n")
        one.stdin.flush()
    told = [one.communicate()[0].split() for one in processes]
    assert sorted(count for count, _ in told) == ["0", "1"] and told[0][1] == told[1][1]


HOLDING = """
import sys
from pathlib import Path
from fedsim.vector.kept import Turn
Turn.take(Path(sys.argv[1]), sys.argv[2])
print("taken", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(name="held")
def _held(tmp_path):
    """A process that has the turn of "a"."""
    process = subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path), "a"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "taken\n"
    yield process
    process.communicate("end\n")
    kept.Turn.leave()


def test_a_turn_is_of_one_kernel_and_ends_with_its_process(held, tmp_path, monkeypatch):
    assert kept.Turn.take(tmp_path, "b")
    monkeypatch.setattr(kept, "PATIENCE", 0.3)
    assert not kept.Turn.take(tmp_path, "a")  # who waits too long compiles too
    monkeypatch.setattr(kept, "PATIENCE", 1e9)
    held.kill()
    assert kept.Turn.take(tmp_path, "a")


def test_without_locks_nobody_waits(held, tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "PATIENCE", 1e9)
    assert not kept.Turn.take(tmp_path / "no such folder", "a")
    monkeypatch.setattr(kept, "fcntl", None)
    assert not kept.Turn.take(tmp_path, "a")


def test_what_cannot_be_compiled_keeps_no_turn(place):
    def wrong(x):
        return x.no_such_part

    called(thrice, 1.0)  # which makes the folder
    with pytest.raises(numba.TypingError):
        compiling.compiled(wrong)(1.0)
    assert kept.Turn._file is None
    assert called(twice, 1.0)[0] == [2.0] and kept.Turn._file is None
