"""Simulated faults: the n-th call of the file system below a folder fails, or is the last of its process.

A scenario is run for n = 1, 2, 3, ... until a run makes fewer calls. After each fault a reader must find the
old file or the new one, and the next run, undisturbed, must end with the same bits and leave nothing behind.

`python tests/faults.py <scenario> <folder>` kills: the children of that process end at the n-th call.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import fedsim as fs
from fedsim.vector import cache, compile as compiling
from reproduce import store

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])
ALGORITHM = fs.FALD(0.1, 3)
KILLED = 77
CREATES = os.O_CREAT | getattr(os, "O_TMPFILE", 0)


def _raise(error):
    raise error


FAULTS = {"no room": (lambda: _raise(OSError(errno.ENOSPC, "no room, simulated")), False),
          "no room from then on": (lambda: _raise(OSError(errno.ENOSPC, "no room, simulated")), True),
          "input or output": (lambda: _raise(OSError(errno.EIO, "simulated")), False),
          "no memory": (lambda: _raise(MemoryError("simulated")), False),
          "killed": (lambda: os._exit(KILLED), False)}


class _File:
    """A file whose writes are counted; one that fails has written half."""

    def __init__(self, file, faults):
        self._file, self._faults = file, faults

    def write(self, data):
        def half():
            self._file.write(bytes(data)[:len(data) // 2])
            self._file.flush()

        self._faults.call("write", half)
        return self._file.write(data)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self._file.close()


class Faults:
    """Within ``with``, the n-th call below `folder` fails; or every call is watched by ``watch(name)``."""

    def __init__(self, folder, n=0, kind="no room", watch=None):
        self.folder, self.n, self.watch = os.path.realpath(folder), n, watch
        self.fail, self.stays = FAULTS[kind]
        self.count, self.failed = 0, set()

    def call(self, name, first=lambda: None):
        if self.watch:
            self.watch(name)
        self.count += 1
        if self.n and (self.count == self.n or (self.stays and self.count > self.n and name != "unlink")):
            first()
            self.failed.add(name)
            self.fail()

    def _below(self, path):
        return not isinstance(path, int) and os.path.realpath(path).startswith(self.folder)

    def _counted(self, module, name):
        real = getattr(module, name)

        def call(path, *args, **options):
            if isinstance(path, (int, _File)) or self._below(path):
                self.call(name)
            return real(path, *args, **options)

        return module, name, call

    def _opening(self, module):
        real = module.open

        def call(path, mode="r", *args, **options):
            if self._below(path) and set(mode) & set("wxa+"):
                self.call("open")
                return _File(real(path, mode, *args, **options), self)
            return real(path, mode, *args, **options)

        return module, "open", call

    def _making(self):
        real = os.open

        def call(path, flags, *args, **options):
            if flags & CREATES and self._below(path):
                self.call("open")
            return real(path, flags, *args, **options)

        return os, "open", call

    def __enter__(self):
        patches = [self._counted(os, name) for name in ("replace", "link", "fsync", "mkdir", "unlink")]
        patches += [self._counted(np, "savez"), self._opening(builtins), self._opening(io), self._making()]
        self._before = [(module, name, getattr(module, name)) for module, name, _ in patches]
        for module, name, value in patches:
            setattr(module, name, value)
        return self

    def __exit__(self, *args):
        for module, name, value in self._before:
            setattr(module, name, value)


def bits(law):
    """What must be the same."""
    return [np.asarray(value).tobytes() for value in (law.rounds, law.mean, law.cov)]


class Checkpoint:
    """A run that keeps its blocks in a folder that does not exist yet."""

    raises = (OSError, MemoryError)
    unsaid = frozenset({"link", "unlink"})  # a rename does as well, and a part that stays is swept later

    def __init__(self):
        self.expected = bits(fs.simulate(PROBLEM, ALGORITHM, 3, 128, seed=1, threads=1))

    def prepare(self, place):
        pass

    def act(self, place):
        run = fs.simulate(PROBLEM, ALGORITHM, 3, 128, seed=1, threads=1, block_size=64,
                          checkpoint=place / "a" / "run")
        assert bits(run) == self.expected

    def check(self, place):
        pass

    def restart(self, place):
        self.act(place)
        assert names(place) == ["block-0-64.npz", "block-64-128.npz", "manifest.json"]


class Save:
    """A law over an older one."""

    raises, unsaid = (OSError, MemoryError), frozenset()
    laws = tuple(fs.Law(np.arange(40), np.full((40, 2), mean), np.ones((40, 2))) for mean in (0.0, 1.0))

    def prepare(self, place):
        self.laws[0].save(place / "law.npz")

    def act(self, place):
        self.laws[1].save(place / "law.npz")

    def check(self, place):
        assert bits(fs.load(place / "law.npz")) in [bits(law) for law in self.laws]

    def restart(self, place):
        self.act(place)
        assert bits(fs.load(place / "law.npz")) == bits(self.laws[1]) and names(place) == ["law.npz"]


class Publish:
    """The files of a figure over older ones."""

    raises, unsaid = (OSError, MemoryError), frozenset({"mkdir"})  # the folder is there
    files = tuple({f"figure.{end}": f"{end} {state} " * 999 for end in ("csv", "json", "png")}
                  for state in range(2))

    def prepare(self, place):
        store.publish(place, self.files[0])

    def act(self, place):
        store.publish(place, self.files[1])

    def check(self, place):
        for name in self.files[0]:
            assert (place / name).read_text() in [files[name] for files in self.files]

    def restart(self, place):
        self.act(place)
        assert {name: (place / name).read_text() for name in names(place)} == self.files[1]


def _twice(x):
    return 2.0 * x


class Cache:
    """A function that is compiled and kept; the cache never fails, it only warns."""

    raises, unsaid = (), frozenset({"open", "write", "replace", "mkdir", "unlink"})

    def prepare(self, place):
        pass

    def act(self, place):
        return self._compiled(place)(1.5)

    def check(self, place):
        pass

    def _compiled(self, place):
        before, folder = cache.cache_place, place / "fedsim" / cache.code_hash()
        cache.cache_place = lambda: (folder, "")
        cache._Once.done = False
        try:
            kernel = compiling.compiled(_twice)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cache.CacheWarning)
                assert kernel(1.5) == 3.0
            return kernel
        finally:
            cache.cache_place = before

    def restart(self, place):
        self._compiled(place)
        assert sum(self._compiled(place).stats.cache_hits.values()) == 1, names(place)


SCENARIOS = {"checkpoint": Checkpoint, "save": Save, "publish": Publish, "cache": Cache}


def names(place):
    return sorted(path.name for path in place.rglob("*") if path.is_file())


def parts(place):
    return [name for name in names(place) if name.endswith(".part") or ".tmp." in name]


def _exits(scenario, place, n):
    """True when a child was ended by its n-th call; False when it needed fewer."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            with Faults(place, n, "killed"):
                scenario.act(place)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED), status
    return status == KILLED


def _fails(scenario, place, n, kind):
    """True when a fault came at the n-th call, and all that it may do was done, and no more; it was said."""
    faults, is_said = Faults(place, n, kind), True
    with faults, contextlib.suppress(*scenario.raises):
        scenario.act(place)
        is_said = False
    if faults.count >= n:
        assert not parts(place), (n, parts(place))
        assert is_said or faults.failed <= scenario.unsaid, (n, faults.failed)
    return faults.count >= n


def every_fault(name, folder, kind):
    """Try a scenario with a fault at its first call, its second, ...; how many calls it makes."""
    scenario, n = SCENARIOS[name](), 0
    while True:
        n += 1
        place = Path(folder) / f"{name}-{kind.replace(' ', '-')}-{n}"
        place.mkdir()
        scenario.prepare(place)
        failed = _exits(scenario, place, n) if kind == "killed" else _fails(scenario, place, n, kind)
        scenario.check(place)
        scenario.restart(place)
        if not failed:
            return n - 1


if __name__ == "__main__":
    print(every_fault(sys.argv[1], sys.argv[2], "killed"))
