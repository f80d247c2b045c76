"""`fs.explain`: what it says is read where it is decided."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from algorithms import ROWS, each
from mutants import fa_ld

import fedsim as fs
import theory  # says which exact law answers
from fedsim import interfaces
from fedsim.algorithms.bodies import advance
from fedsim.problems.gradients import langevin
from fedsim.vector.compile import body_of

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]], [[0.0, 1.0]])


def name_of(body):
    return f"{body.__module__}:{body.__name__}"


@pytest.mark.parametrize(**each(lambda row: row.laws))
def test_every_algorithm_is_explained(kind, name):
    problem, algorithm, *_ = ROWS[kind].laws[name]
    told = fs.explain(problem, algorithm)
    followed, bound = algorithm._bind(problem, None)
    assert told["kernel"].startswith(type(bound._kernel(followed)).__name__)
    assert told["advance"] == name_of(body_of(advance, type(bound._kernel(followed))))
    assert told["gradients"].startswith(type(followed._arrays()).__name__)
    assert told["langevin"].startswith(name_of(body_of(langevin, type(followed._arrays()))))
    assert told["exact law"].startswith("theory.exact.") and "stable: radius" in told["stability"]
    assert all(f"  {part}" in str(told) and words in str(told) for part, words in told.parts)
    assert repr(told) == str(told)


class _Another(NamedTuple):
    """FA-LD's kernel as another class."""

    schedule: Any
    local_steps: int
    temperature: float
    shared_noise: float
    clients: Any


class _Changed(fs.FALD):
    def _kernel(self, problem):
        return _Another(*super()._kernel(problem))


def test_another_kernel_class_changes_the_text(monkeypatch):
    before, changed = fs.explain(PROBLEM, fs.FALD(0.1)), _Changed(0.1)
    with pytest.raises(KeyError):
        fs.explain(PROBLEM, changed)["advance"]  # no body is registered yet
    monkeypatch.setitem(advance.bodies, _Another, test_another_kernel_class_changes_the_text)
    after = fs.explain(PROBLEM, changed)
    assert after["kernel"].startswith("_Another(") and before["kernel"].startswith("FALDKernel(")
    assert after["advance"] == name_of(test_another_kernel_class_changes_the_text) != before["advance"]


def test_mutants_are_explained_as_what_they_are():
    mutant = fa_ld.FA_LD.all["scheme I: one client fills all slots"]
    problem, make, *_ = fa_ld.FA_LD.cases[mutant.case]
    assert fs.explain(problem, make(mutant.algorithm))["advance"] == "mutants.fa_ld:_round"


def test_the_general_body_and_the_layout():
    wide = fs.explain(fs.Quadratic(np.ones((3, 4)), np.ones((3, 4)), gradient_noise=0.2), fs.FALD(0.1))
    assert wide["langevin"] == "fedsim.problems.gradients:_langevin (the general one)"
    assert wide["below 28 replicas"] == "pairs of coordinates, of NoisyGradients(CoordinateQuadratic)"
    assert wide["gradient noise"] == "normal, in every gradient" and wide["minibatches"].startswith("none")
    plane = fs.explain(PROBLEM, fs.FALD(0.1))
    assert plane["langevin"] == "fedsim.problems.quadratic.gradients:_langevin_plane"
    assert plane["below 28 replicas"] == "the same" and plane["gradient noise"] == "none"
    batches = fs.explain(fs.GaussianMean([1.0, 2.0, 3.0], batch_size=2), fs.StaleSGLD(0.01, fs.Workers(3)))
    assert batches["minibatches"] == "drawn for every gradient"
    assert batches["past_place"] == "fedsim.algorithms.stale:_after_listed_age"


def test_normals_are_those_of_the_workspace():
    algorithm = fs.DESGLD(0.05, fs.network.ring(11))
    problem = fs.Quadratic(np.ones((11, 2)), np.zeros((11, 2)))
    rows, slots = algorithm._workspace(problem, np.zeros((2, 64)), np.float64).own.slots.shape[1:3]
    assert fs.explain(problem, algorithm)["own normals"] == (
        f"a call draws {rows} rows for each of {slots} slots of 64 lanes")


def test_why_there_is_no_exact_law():
    labels = fs.LogisticRegression([[1.0], [2.0]], [1, 0], [0, 1], prior_variance=1.0)
    with pytest.raises(theory.NoExactLaw) as caught:
        theory.exact_law(labels, fs.FALD(0.01), 3)
    assert fs.explain(labels, fs.FALD(0.01))["exact law"] == f"none: {caught.value}"


def test_without_theory_it_says_whom_to_ask(monkeypatch):
    monkeypatch.setattr(interfaces, "EXPLAINERS", [])
    monkeypatch.setattr("fedsim.explaining.EXPLAINERS", interfaces.EXPLAINERS)
    assert fs.explain(PROBLEM, fs.FALD(0.1))["exact law"] == "import theory: it says which exact law answers"


def test_an_unstable_step_is_explained():
    assert fs.explain(PROBLEM, fs.FALD(9.0))["stability"].startswith("not stable: radius")


@pytest.mark.parametrize(("problem", "algorithm", "message"), [
    (1, fs.FALD(0.1), "problem=1 must be a fedsim problem"),
    (PROBLEM, "FALD", "algorithm='FALD' must be a fedsim algorithm"),
    (PROBLEM, fs.FALD, "an instance and not the class"),
    (PROBLEM, fs.DESGLD(0.1, fs.network.ring(3)), "mixing has shape"),
    (PROBLEM, fs.FALD(0.1, participation=fs.Participation(2, False)), "n_active=2 must be at most")])
def test_bad_input_is_refused(problem, algorithm, message):
    with pytest.raises(ValueError, match=message):
        fs.explain(problem, algorithm)
