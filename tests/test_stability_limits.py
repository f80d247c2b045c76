"""The printed limit is where the round map's radius is one, to the last digits."""

import dataclasses
import warnings
from types import SimpleNamespace

import pytest

import fedsim as fs
import theory
from fedsim.engine.divergence import Fault, diverged
from fedsim.samplers import grad, noise, sqrt
from fedsim.samplers.words import SamplerWarning

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


@fs.sampler(follows="global")
def uphill(x, *, step_size):
    return x + step_size * grad(x) + sqrt(2.0 * step_size) * noise()


@fs.sampler(follows="global")
def langevin(x, *, step_size):
    return x - step_size * grad(x) + sqrt(2.0 * step_size) * noise()


def said(act):
    """What is printed, or the refusal; that such a sampler aims at no law is another matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerWarning)
        try:
            return str(act())
        except ValueError as error:
            return str(error)


UPHILL = uphill(step_size=0.1)


@pytest.mark.parametrize("act", [
    lambda: fs.explain(PROBLEM, UPHILL), lambda: fs.validate(PROBLEM, UPHILL),
    lambda: fs.simulate(PROBLEM, UPHILL, 5, 64, seed=1), lambda: fs.sample_path(PROBLEM, UPHILL, 5, seed=1),
    lambda: theory.exact_law(PROBLEM, UPHILL, 5), lambda: theory.stationary_law(PROBLEM, UPHILL),
    lambda: theory.tuning.rounds_to(PROBLEM, UPHILL, 0.1),
    lambda: theory.tuning.best_step_size(PROBLEM, UPHILL, 0.1),
    lambda: theory.compare_algorithms(PROBLEM, {"up": UPHILL, "FA-LD": fs.FALD(0.1)}, 0.1)["reason"][0],
    lambda: diverged(SimpleNamespace(problem=PROBLEM, algorithm=UPHILL), Fault(3, 0, "far")),
], ids=["explain", "validate", "simulate", "sample_path", "exact_law", "stationary_law", "rounds_to",
        "best_step_size", "compare_algorithms", "diverged"])
def test_where_no_step_size_is_stable_that_is_said(act):
    words = said(act)
    assert "no step size is stable" in words and "nan" not in words


def test_a_limit_that_was_not_found_is_no_number_either():
    """A step so small that the search upwards ends before the limit."""
    far = dataclasses.replace(langevin(step_size=0.1).stability(PROBLEM), max_step_size=float("nan"))
    assert far.stable and far.limit == "limit not found"
    for step in (0.1, 1e-7):
        assert "nan" not in said(lambda step=step: fs.explain(PROBLEM, langevin(step_size=step)))
