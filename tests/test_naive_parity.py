"""The compiled kernel of every algorithm equals its slow twin on the same noise, for every option."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from algorithms import ROWS, each
from cases import ONE_LEAF_AND_TWO, fa_hmc, fa_ld

import fedsim as fs
from fedsim.algorithms.bodies import advance
from fedsim.algorithms.clients import AllClients, DrawnClients, FixedClients, choose_clients
from fedsim.algorithms.de_sgld import DESGLDKernel
from fedsim.algorithms.fa_hmc_update import FAHMCKernel, set_anchor
from fedsim.algorithms.fa_ld import FALDKernel
from fedsim.algorithms.stale import StaleKernel, move, past_place
from fedsim.engine.job import make_job
from fedsim.engine.state import lane_state
from fedsim.problems.failing import Traced
from fedsim.problems.gradients import NoisyGradients, exact_gradient, stochastic_gradient
from fedsim.problems.pooled import PooledClients
from fedsim.problems.quadratic.gradients import (
    CoordinateQuadratic,
    DenseQuadratic,
    DiagonalQuadratic,
    NoisyQuadratic,
    PlaneQuadratic,
)
from fedsim.problems.regression.gradients import LogisticModel
from fedsim.problems.regression.minibatch import Minibatch
from fedsim.problems.regression.softmax_gradients import SoftmaxBatch, SoftmaxModel
from fedsim.random.normals import SingleLaneSet, normals
from fedsim.random.streams import LaneSet

SEED = 0x9E3779B97F4A7C15
TOLERANCE = {"double": 1e-12, "single": 1e-5}


def test_every_algorithm_has_a_row():
    exported = (getattr(fs, name) for name in fs.__all__)
    assert {value for value in exported if hasattr(value, "_kernel")} == set(ROWS)


def assert_parity(row, problem, algorithm, start, n_rounds, noise="double", replicas=ONE_LEAF_AND_TWO,
                  average=None):
    """The average of replicas, and every client's path where it is alone in its run."""
    options = {"seed": SEED, "start": start, "allow_unstable": True, "noise": noise, "threads": 1,
               "average": average}
    run = fs.simulate(problem, algorithm, n_rounds, max(replicas) + 1, keep_final=True, **options)
    for replica in replicas:
        slow = row.twin(problem, algorithm, n_rounds, SEED, replica, start, noise == "single")
        path = slow if slow.ndim == 2 else slow.mean(axis=1)
        error = np.abs(run.final[replica] - path[-1]).max() / np.abs(slow).max()
        if average == "square":
            squares = np.mean((path[1:]**2).sum(axis=1))
            error = max(error, np.abs(run.averages[replica] - squares) / (slow**2).sum(axis=-1).max())
        assert error <= TOLERANCE[noise], (
            f"replica {replica}: {problem}, {algorithm}, start={start}: {error:g}")
    if slow.ndim == 3:
        alone = fs.simulate(problem, algorithm, n_rounds, 1, covariance="none", **options)
        slow = row.twin(problem, algorithm, n_rounds, SEED, 0, start, noise == "single")
        for client, law in enumerate(alone.clients):
            error = np.abs(law.mean - slow[:, client]).max() / np.abs(slow).max()
            assert error <= TOLERANCE[noise], (
                f"client {client}: {problem}, {algorithm}, start={start}: {error:g}")


@pytest.mark.parametrize(**each(lambda row: row.groups))
def test_kernel_is_its_slow_twin(kind, name):
    group = ROWS[kind].groups[name]
    for noise, (problem, algorithm, start) in itertools.product(group.noises, group.options()):
        assert_parity(ROWS[kind], problem, algorithm, start, group.n_rounds, noise, group.replicas,
                      group.average)


@pytest.mark.parametrize(**each(lambda row: row.laws))
def test_what_has_an_exact_law_has_a_slow_twin(kind, name):
    row = ROWS[kind]
    assert_parity(row, *row.laws[name], row.n_rounds)


@pytest.mark.parametrize(**each(lambda row: row.bits))
def test_every_round_of_a_path(kind, name):
    """`sample_path` is replica i of the same streams, at every round."""
    row = ROWS[kind]
    problem, algorithm, start = row.laws[name]
    paths = fs.sample_path(problem, algorithm, row.n_rounds, seed=SEED, n_chains=71, start=start)
    for replica in (1, 70):
        slow = row.path(problem, algorithm, row.n_rounds, SEED, replica, start)
        np.testing.assert_allclose(paths[replica], slow[1:], atol=1e-12 * np.abs(slow).max(), rtol=0)


@pytest.mark.parametrize("kind", ROWS)
def test_the_twins_are_not_the_same_code(kind):
    """A change of the slow twin is noticed: the comparison can fail."""
    row = ROWS[kind]
    problem, algorithm, start = row.plainest
    other = dataclasses.replace(algorithm, step_size=algorithm.step_size * (1.0 + 1e-9))
    run = fs.simulate(problem, algorithm, 3, 64, seed=SEED, start=start, keep_final=True)
    assert np.abs(run.final[0] - row.path(problem, other, 3, SEED, 0, start)[-1]).max() > 1e-12


# what meets in one compiled body; more kernels would show no more, and each takes seconds to compile

QUADRATICS = {PlaneQuadratic, DenseQuadratic, DiagonalQuadratic}
NOISES = {NoisyGradients, NoisyQuadratic}
FEDERATED = {FALDKernel, FAHMCKernel}
SEVERAL, ODD = "several groups of clients", "an odd dimension"
WITH_TWINS_ELSEWHERE = {SoftmaxModel, SoftmaxBatch, PooledClients, Traced}
"""Softmax in its own file; sums of clients and what looks for a fault add no arithmetic."""


def ours(*stubs):
    """The classes of this package with a body of one of these functions, not those of users' functions."""
    return {cls for stub in stubs for cls in stub.bodies
            if getattr(cls, "__module__", "").startswith("fedsim.") and not hasattr(cls, "made_at_run_time")}


def classes_of(value):
    """The classes of what compiled code is given, and of what is in it."""
    return {type(value)}.union(*map(classes_of, value)) if hasattr(value, "_fields") else set()


@functools.cache
def seen():
    """Of every kernel that is compared: its classes, and the class of problem that it was handed.

    `SEVERAL` is there where clients' normals are drawn in several groups, `ODD` where dimensions are odd.
    """
    found = set()
    for row in ROWS.values():
        runs = [(*example, row.n_rounds, 66, "double") for example in row.laws.values()]
        runs += [(*row.laws[name], row.n_rounds, 7, "double") for name in row.bits]  # of 71 chains the last
        runs += [(problem, algorithm, start, group.n_rounds, max(group.replicas) + 1, noise)
                 for group in row.groups.values() for problem, algorithm, start in group.options()
                 for noise in group.noises]
        for problem, algorithm, start, n_rounds, n_replicas, noise in runs:
            job = make_job(problem, algorithm, n_rounds, n_replicas, seed=SEED, start=start, noise=noise,
                           allow_unstable=True)
            state = lane_state(job, 0, n_replicas)
            classes = frozenset().union(*map(classes_of, state[:3]))
            clients = getattr(state.work, "local", getattr(state.work, "positions", [()])[0])
            classes |= {SEVERAL} if len(clients) > state.work.own.slots.shape[2] else set()
            classes |= {ODD} if problem.dim % 2 else set()
            found.add((classes, type(state.arrays)))
    return found


def missing(*factors):
    """Combinations of one class of each that no kernel has."""
    return {combination for combination in itertools.product(*factors)
            if not any(set(combination) <= classes for classes, _ in seen())}


def missing_exact(*factors):
    """The same, with quadratics without noise."""
    return {combination for combination in itertools.product(*factors, QUADRATICS)
            if not any(set(combination) <= classes and combination[-1] is exact for classes, exact in seen())}


def test_every_kernel_meets_every_class_of_quadratic_and_noise_and_lanes():
    """Bodies of their own for exact gradients have the federated algorithms."""
    rows = [row for row in ROWS.values() if row.groups]  # a new algorithm may have laws alone at first
    bound = [row.plainest.algorithm._bind(row.plainest.problem, row.n_rounds) for row in rows]
    kernels = {type(algorithm._kernel(problem)) for problem, algorithm in bound}
    assert len(kernels) > 4 and kernels <= ours(advance)
    assert not missing(kernels, QUADRATICS | {CoordinateQuadratic} | NOISES)
    assert not missing(kernels, ours(normals))
    assert not missing(NOISES, QUADRATICS) and not missing(ours(past_place), ours(move))
    assert not missing_exact(FEDERATED, {AllClients, DrawnClients})


def test_every_class_of_problem_has_a_twin():
    classes = ours(exact_gradient, stochastic_gradient) - WITH_TWINS_ELSEWHERE
    assert not missing(classes)
    assert not missing(FEDERATED, {AllClients, DrawnClients}, {LogisticModel})
    assert not missing({FALDKernel}, {AllClients, DrawnClients, FixedClients}, {Minibatch})


def test_every_way_to_take_part_meets_algorithms_precisions_and_noise():
    """A client is a number for all or fixed ones, and one per lane for drawn and independent ones."""
    assert not missing(FEDERATED, ours(choose_clients))
    assert not missing({FALDKernel}, ours(choose_clients), {LaneSet, SingleLaneSet}, {SEVERAL})
    assert not missing({FAHMCKernel}, {AllClients, DrawnClients}, {LaneSet, SingleLaneSet})
    assert not missing({FAHMCKernel}, {AllClients, DrawnClients}, {SingleLaneSet}, {SEVERAL})
    assert not missing({FALDKernel, FAHMCKernel, DESGLDKernel}, {SingleLaneSet}, {SEVERAL}, {ODD})
    assert not missing({StaleKernel}, {LaneSet, SingleLaneSet}, {ODD})
    assert not missing({FALDKernel}, ours(choose_clients), {NoisyQuadratic})
    assert not missing(FEDERATED, {AllClients, DrawnClients}, NOISES)
    assert not missing(ours(set_anchor), {LaneSet, SingleLaneSet}, {PlaneQuadratic})


def test_every_schedule_meets_all_clients_and_drawn_ones():
    for cases in (fa_ld, fa_hmc):
        assert {(schedule, sampled) for *_, schedule, sampled in cases.GRID} == set(
            itertools.product(cases.SCHEDULES, (False, True)))


def test_the_options_of_fa_hmc_cover_the_pairs():
    """Each way of debiasing meets each amount of shared noise and each number of leapfrog steps."""
    seen = [(a.debias, a.first_round, a.shared_noise, a.leapfrog_steps)
            for case in fa_hmc.GRID for _, a, _ in fa_hmc.options(*case)]
    assert {(d, f, s) for d, f, s, _ in seen} == {(*d, s) for d in fa_hmc.DEBIAS for s in (0.0, 0.5, 1.0)}
    assert {(d, f, k) for d, f, _, k in seen} == {(*d, k) for d in fa_hmc.DEBIAS for k in (1, 2, 5)}
