"""The printed limit is where the round map's radius is one, to the last digits."""

import dataclasses

import pytest

import fedsim as fs

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]], [[0.6, 0.1], [0.1, 2.2]]],
                       [[0.0, 1.0], [2.0, 3.0], [-1.5, 0.3]], [0.3, 0.5, 0.2])


@pytest.mark.parametrize("algorithm", [
    fs.FALD(0.1), fs.FALD(0.1, 4), fs.FALD(0.1, 3, participation=fs.Participation(2, True)),
    fs.StaleSGHMC(0.1, 2.0, 2), fs.StaleSGLD(0.1, 3)],
    ids=["one step", "four steps", "drawn clients", "momentum", "stale"])
def test_the_radius_is_one_at_the_limit(algorithm):
    limit = algorithm.stability(PROBLEM).max_step_size
    at, above, below = (dataclasses.replace(algorithm, step_size=factor * limit).stability(PROBLEM)
                        for factor in (1.0, 1.0 + 1e-6, 1.0 - 1e-6))
    assert at.radius == pytest.approx(1.0, abs=1e-9)
    assert below.stable and not above.stable
