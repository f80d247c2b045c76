"""Ctrl-C loses no block that another thread was finishing."""

import pytest

import fedsim as fs
from fedsim.engine import running


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
    """Blocks of one round are one task each; two of them are under way when the first is handed over."""
    monkeypatch.setattr(running, "tqdm", _Interrupting)
    problem = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])
    with pytest.raises(KeyboardInterrupt):
        fs.simulate(problem, fs.FALD(0.1, 3, 1.0, 0.3), 1, 64 * 4, seed=1, threads=2, block_size=64,
                    checkpoint=tmp_path)
    assert len(list(tmp_path.glob("block-*.npz"))) == 2
