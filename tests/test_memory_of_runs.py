"""What a run would keep is counted and refused before it is allocated; nothing is run here."""

import numpy as np
import pytest

import fedsim as fs
from fedsim.engine.job import make_job
from fedsim.settings import limits

PROBLEM = fs.Quadratic(np.ones(200), np.zeros((200, 50)))
OPTIONS = {"seed": 1, "record": [1], "block_size": 64}


@pytest.fixture(name="_small", autouse=True)
def _small_machine(monkeypatch):
    monkeypatch.setattr(limits, "memory_limit", lambda: 1e8)


def test_the_laws_of_clients_count():
    """Two hundred clients of 50 coordinates: each has a law of its own to record where they differ."""
    assert make_job(PROBLEM, fs.FALD(0.1), 2, 64, **OPTIONS).n_views == 1
    with pytest.raises(ValueError, match="GB"):
        make_job(PROBLEM, fs.DESGLD(0.1, fs.network.ring(200)), 2, 64, **OPTIONS)


@pytest.mark.parametrize("kept", [{"keep_final": True}, {"average": "square"}])
def test_what_is_kept_of_every_replica_counts(kept):
    one = fs.Quadratic([1.0], [[0.0]])
    assert make_job(one, fs.FALD(0.1), 2, 10**8, **OPTIONS).n_replicas == 10**8
    with pytest.raises(ValueError, match="GB"):
        make_job(one, fs.FALD(0.1), 2, 10**8, **OPTIONS, **kept)
