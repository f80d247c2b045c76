"""Blocks of a checkpoint: none is lost to Ctrl-C, none silently not kept, none of other code taken."""

import errno
import os

import pytest

import fedsim as fs
from fedsim.engine import job, running

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])


def simulate(folder):
    """Four blocks of one round, which is one task each, on two threads."""
    return fs.simulate(PROBLEM, fs.FALD(0.1, 3, 1.0, 0.3), 1, 64 * 4, seed=1, threads=2, block_size=64,
                       checkpoint=folder)


def kept(folder):
    return sorted(path.name for path in folder.glob("block-*.npz"))


class _Interrupting:
    """A progress bar during which the user presses Ctrl-C, when the first block is done."""

    def __init__(self, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def update(self, amount):
        raise KeyboardInterrupt


def test_the_block_of_the_other_thread_is_kept(tmp_path, monkeypatch):
    """Two of them are under way when the first is handed over."""
    monkeypatch.setattr(running, "tqdm", _Interrupting)
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
