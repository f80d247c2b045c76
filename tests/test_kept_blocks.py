"""Blocks of a checkpoint: none is lost to Ctrl-C, none silently not kept, none of other code taken."""

import errno
import itertools
import os
import shutil
import threading

import numpy as np
import pytest
from interrupting import ctrl_c_after

import fedsim as fs
from fedsim.engine import block, checkpoint, job, running

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])


def simulate(folder):
    """Four blocks of one round, which is one task each, on two threads."""
    return fs.simulate(PROBLEM, fs.FALD(0.1, 3, 1.0, 0.3), 1, 64 * 4, seed=1, threads=2, block_size=64,
                       checkpoint=folder)


def kept(folder):
    return sorted(path.name for path in folder.glob("block-*.npz"))


def test_the_block_of_the_other_thread_is_kept(tmp_path, monkeypatch):
    """Two of them are under way when the first is handed over."""
    numbers, second, run_to = itertools.count(), threading.Event(), block.BlockPart.run_to

    def after_the_second_has_begun(part, *words):
        if next(numbers):
            second.set()
        assert second.wait(60.0)
        return run_to(part, *words)

    monkeypatch.setattr(block.BlockPart, "run_to", after_the_second_has_begun)
    monkeypatch.setattr(running, "tqdm", ctrl_c_after(1))
    with pytest.raises(KeyboardInterrupt):
        simulate(tmp_path)
    assert len(kept(tmp_path)) == 2


def test_a_block_that_cannot_be_kept_is_an_error(tmp_path, monkeypatch):
    rename = os.replace

    def full(source, target):
        if "block-" in os.path.basename(target):
            raise OSError(errno.ENOSPC, "the disk is full")
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="the disk is full"):
            simulate(tmp_path)
    assert not kept(tmp_path)
    assert simulate(tmp_path).mean.tobytes() == simulate(None).mean.tobytes()


def test_blocks_of_other_code_are_refused(tmp_path, monkeypatch):
    simulate(tmp_path)
    names = kept(tmp_path)
    monkeypatch.setattr(job, "source_hash", lambda: "other code")
    with pytest.raises(ValueError, match="belongs to another simulation"):
        simulate(tmp_path)
    assert kept(tmp_path) == names and len(names) == 4


def test_a_folder_of_another_simulation_says_what_may_differ(tmp_path):
    simulate(tmp_path)
    with pytest.raises(ValueError, match=r"algorithm, n_rounds, n_replicas, seed, start, record, another"):
        fs.simulate(PROBLEM, fs.FALD(0.1, 3, 1.0, 0.3), 1, 64 * 4, seed=1, noise="single",
                    checkpoint=tmp_path)


def test_a_folder_in_the_home_folder_is_not_made_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, problem in (("~/run", r"^checkpoint='~/run' must not begin with ~.*expanduser\('~/run'\)"),
                            ("", "^checkpoint='' must be a folder$")):
        with pytest.raises(ValueError, match=problem):
            simulate(folder)
    assert not list(tmp_path.iterdir())
    assert kept(tmp_path / "~") == [] and simulate("./~/run").n_replicas == 256


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match=r"^checkpoint='.*' must be a folder that can be made.*too long"):
        simulate(str(tmp_path / ("long" * 100)))


def test_a_folder_that_cannot_be_written_is_refused_by_name(tmp_path, monkeypatch):
    def refused(*content, **options):
        raise OSError(errno.EROFS if content[0].parent.name == "disk" else errno.EACCES, "not writable")

    monkeypatch.setattr(checkpoint, "write_atomically", refused)
    for name in ("disk", "folder"):
        with pytest.raises(ValueError, match=rf"^checkpoint='.*{name}' must be .*not writable.*permissions"):
            simulate(tmp_path / name)


def test_what_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    """Nobody is told to remove the work of somebody else."""
    simulate(tmp_path)

    def refused(*content, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    for where, name in ((checkpoint.json, "loads"), (checkpoint, "read_arrays")):
        with monkeypatch.context() as patch, pytest.raises(ValueError) as told:
            patch.setattr(where, name, refused)
            simulate(tmp_path)
        assert "Permission denied); check its path and permissions" in str(told.value)
        assert "remove" not in str(told.value) and "damaged" not in str(told.value)


def test_a_list_of_shards_is_refused_as_a_shard(tmp_path):
    for count in (2, 4):
        with pytest.raises(ValueError, match=r"^replicas=\[\(0, .*must be a pair \(first, last\)"):
            fs.simulate(PROBLEM, fs.FALD(0.1, 3), 1, 64 * 4, seed=1, checkpoint=tmp_path,
                        replicas=fs.shards(64 * 4, count))


# --- sound files that hold other numbers

def with_everything(folder, seed=1):
    return fs.simulate(PROBLEM, fs.FALD(0.1, 3), 2, 128, seed=seed, threads=1, block_size=64,
                       average="square", keep_final=True, checkpoint=folder)


def assert_refused(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match=r"block-\d+-\d+\.npz is damaged or foreign .*digest does not match"):
        with_everything(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["mean", "square", "sums", "final"])
def test_a_number_of_a_block_that_is_another_is_seen(tmp_path, name):
    """By one bit, in whichever field, in an archive that is sound."""
    with_everything(tmp_path)
    block = tmp_path / "block-64-128.npz"
    with np.load(block) as stored:
        fields = {key: stored[key] for key in stored.files}
    fields[name].flat[-1] = np.nextafter(fields[name].flat[-1], np.inf)
    np.savez(block, **fields)
    assert_refused(tmp_path)


def test_the_block_of_another_simulation_is_seen(tmp_path):
    """Of the same size and under the same name."""
    for folder, seed in (("one", 1), ("other", 2)):
        with_everything(tmp_path / folder, seed)
    shutil.copy(tmp_path / "other" / "block-0-64.npz", tmp_path / "one")
    assert_refused(tmp_path / "one")


def test_blocks_that_changed_names_are_seen(tmp_path):
    with_everything(tmp_path)
    first, last = (tmp_path / name for name in kept(tmp_path))
    one, other = first.read_bytes(), last.read_bytes()
    first.write_bytes(other)
    last.write_bytes(one)
    assert_refused(tmp_path)
