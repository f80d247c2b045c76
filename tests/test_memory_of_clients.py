"""What is recorded of every client counts before it is allocated."""

import numpy as np
import pytest

import fedsim as fs
from fedsim.engine.job import make_job
from fedsim.settings import limits


def test_the_laws_of_clients_count(monkeypatch):
    """Two hundred clients of 50 coordinates: each has a law of its own to record where they differ."""
    monkeypatch.setattr(limits, "memory_limit", lambda: 1e8)
    problem = fs.Quadratic(np.ones(200), np.zeros((200, 50)))
    options = {"seed": 1, "record": [1], "block_size": 64}
    assert make_job(problem, fs.FALD(0.1), 2, 64, **options).n_views == 1
    with pytest.raises(ValueError, match="GB"):
        make_job(problem, fs.DESGLD(0.1, fs.network.ring(200)), 2, 64, **options)
