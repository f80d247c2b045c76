"""One home each: the hash of sources, the loop of an executor, the limit of memory; what is kept stays."""

from __future__ import annotations

import ast
import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from layout import imports_of, name_of, sources, statements, tree_of

from reproduce import pool
from reproduce.figure import BadInput
from reproduce.resume_file import ResumeFile

HOMES = {("fedsim.fingerprints", "reads all sources"), ("fedsim.engine.pool", "waits for futures"),
         ("fedsim.settings.limits", "asks for the machine's memory")}


def signs(path):
    """What a file does that has one home."""
    calls = [ast.unparse(node) for node in statements(tree_of(path)) if isinstance(node, ast.Call)]
    if any("glob('*.py')" in call for call in calls):
        yield "reads all sources"
    if any(module == "concurrent.futures" and name in ("wait", "as_completed")
           for _, module, name in imports_of(path)):
        yield "waits for futures"
    if any("os.sysconf('SC_PHYS" in call or "virtual_memory(" in call for call in calls):
        yield "asks for the machine's memory"


def test_each_has_one_home():
    assert {(name_of(path), sign) for path in sources("fedsim", "theory", "reproduce")
            for sign in signs(path)} == HOMES


def test_no_limit_of_memory_has_a_number_of_its_own():
    """Who says in GB that something is too large asks `refuse_bytes`; softmax's limit is one of work."""
    told = {name_of(path) for path in sources("fedsim", "theory", "reproduce") if any(
        isinstance(node, ast.Raise) and " GB" in ast.unparse(node) for node in statements(tree_of(path)))}
    assert told == {"fedsim.settings.limits", "fedsim.problems.regression.softmax"}


# --- executors of the command line


@pytest.fixture(name="results")
def _results(monkeypatch):
    """`reproduce.pool.results` on an executor, through the door of the command line."""
    def results(function, items, executor):
        monkeypatch.setattr(sys.modules[__name__], "given", lambda: executor, raising=False)
        return pool.results(function, items, 1, f"{__name__}:given")

    return results


def test_results_come_as_they_finish(results):
    gate = threading.Event()
    with ThreadPoolExecutor(2) as executor:
        coming = results(lambda item: (item or gate.wait(60)) and item, [0, 1], executor)
        assert next(coming) == 1
        gate.set()
        assert list(coming) == [0]


class Held(ThreadPoolExecutor):
    """It does its first task at once, and no other; after so many it takes none."""

    def __init__(self, takes):
        super().__init__(1)
        self.takes, self.futures = takes, []

    def submit(self, function, *args):
        if len(self.futures) == self.takes:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.futures.append(Future())
        if len(self.futures) == 1:
            self.futures[0].set_result(function(*args))
        return self.futures[-1]


def test_who_leaves_early_leaves_no_task(results):
    executor = Held(9)
    coming = results(str, [7, 8, 9], executor)
    assert next(coming) == "7"
    coming.close()
    assert [future.cancelled() for future in executor.futures] == [False, True, True]


def test_an_executor_that_takes_no_more_is_named(results):
    executor = Held(2)
    with pytest.raises(BadInput, match=r"^--executor test_one_home:given: executor=.* must not be shut down"):
        list(results(str, [7, 8, 9], executor))
    assert executor.futures[1].cancelled()


def test_a_worker_with_other_sources_is_refused(results, monkeypatch):
    versions = iter(["here", "there"])
    monkeypatch.setattr(pool, "source_hash", lambda *modules: next(versions))
    with ThreadPoolExecutor(1) as executor, pytest.raises(BadInput, match="another version of this checkout"):
        list(results(str, [7], executor))


# --- what is kept


def stopped(*arguments, **options):
    raise KeyboardInterrupt


def test_no_moment_of_a_ctrl_c_loses_what_is_kept(tmp_path, monkeypatch):
    kept = ResumeFile(tmp_path, "work", (sys.modules[__name__],))
    kept.load()
    kept.add("a", 1.5)
    kept.add("b", [])
    content = kept.path.read_bytes()

    def cut_off(path, text, **options):
        path.write_bytes(text[:10].encode())
        raise KeyboardInterrupt

    moments = (Path, "write_text", cut_off), (os, "replace", stopped), (os, "fsync", stopped)
    for place, name, fault in moments:
        with monkeypatch.context() as patched:
            patched.setattr(place, name, fault)
            with suppress(KeyboardInterrupt):
                kept.load()
        assert kept.path.read_bytes() == content and kept.load() == {"a": 1.5, "b": []}
    assert list(tmp_path.iterdir()) == [kept.path]
