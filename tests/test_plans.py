"""The one planner: fewest rounds under any bound on W2, confirmed by it, and never more than by halves."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left

import numpy as np
import pytest
from scipy.optimize import brentq

import fedsim as fs
import theory
from fedsim.settings.schedules import Harmonic
from reproduce import random_settings
from theory.declare.registry import named
from theory.recursions.catalogue import first_within, recursion
from theory.tuning import Plan, compare, plan, plan_by_recursion
from theory.tuning.best import with_step
from theory.tuning.fewest import largest_step

SEED = 20261128
PAIR = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
MIXING = fs.network.complete(2)


def setting(rng):
    """A random problem with a start, an accuracy and local steps."""
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    high, kappa = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(0, 2.5)
    hessians = high / kappa ** rng.random((n, d))
    hessians[0, 0] = high
    problem = fs.Quadratic(hessians, rng.standard_normal((n, d)), rng.dirichlet(np.full(n, 3.0)),
                           rng.choice([None, 0.1, 5.0]))
    start = rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 2)
    w2 = theory.constants(problem, fs.FALD(0.1), start).initial_w2
    return problem, start, w2 * 10.0 ** rng.uniform(-3, 0.5), int(rng.integers(1, 20))


def confirmed(found, facts, eps, **given):
    """The bound is at most eps from the planned round on, and not one round before; hypotheses hold."""
    first = max(found.n_rounds - 1, 0)
    later = [found.n_rounds + more for more in (0, 1, 3, 10, 100, 10**4, 10**6)]
    bound = named(found.theorem).function(facts, found.algorithm, n_rounds=later[-1], record=[first, *later],
                                          **given)
    assert bound.hypotheses_hold and (bound.value[bound.rounds >= found.n_rounds] <= eps).all()
    assert found.n_rounds == 0 or bound.value[bound.rounds == first] > eps
    assert bound.floor == found.floor and bound.value[bound.rounds == found.n_rounds] == found.value <= eps


def by_halves(bound, chosen, eps, cap):
    """Rounds with the largest step size up to `cap` whose limit is half of eps; None beyond 2^52."""
    def excess(log):
        return np.log(bound(chosen(np.exp(log)), n_rounds=0).floor / (0.5 * eps))

    high = low = np.log(cap)
    while excess(low) > 0.0:
        low -= 5.0
    step = cap if low == high else np.exp(brentq(excess, low, min(low + 5.0, high), xtol=1e-10) - 1e-9)
    first = bisect_left(range(2**52 + 1), True, key=lambda k: bool(
        bound(chosen(step), n_rounds=k, record=[k]).value[-1] <= eps))
    return None if first > 2**52 else first


def federated(rng):
    """Constants, the plan, the paper's plan, and what else the bound is given; of FA-LD and FA-HMC."""
    problem, start, eps, K = setting(rng)
    for paper, algorithm in ((theory.fa_ld, fs.FALD(0.1, K, 10.0 ** rng.uniform(-1, 1), rng.random())),
                             (theory.fa_hmc, fs.FAHMC(0.1, int(rng.integers(1, 6)), K, rng.random()))):
        facts = theory.constants(problem, algorithm, start)
        halves = paper.paper_plan(facts, algorithm, eps).n_rounds
        if halves <= 2**52:
            yield facts, eps, paper.plan(facts, algorithm, eps), halves


def decentralized(rng):
    """The same of DE-SGLD and DE-SGHMC, whose Remarks plan for a budget and not for an accuracy."""
    problem, start, eps, _ = setting(rng)
    mixing, share = random_settings.network(rng, problem.n_clients), float(rng.choice([0.0, 0.5, 1.0]))
    for paper, algorithm in ((theory.de_sgld, fs.DESGLD(0.1, mixing)),
                             (theory.de_sghmc, fs.DESGHMC(0.1, 10.0, mixing))):
        facts = theory.constants(problem, algorithm, start)
        mu, L = facts.strong_convexity, facts.smoothness

        def chosen(step, paper=paper, algorithm=algorithm, mu=mu, L=L):
            if paper is theory.de_sgld:
                return dataclasses.replace(algorithm, step_size=step)
            lost = 1.0 - share * paper.largest_momentum(mu, L, mixing, step)
            return dataclasses.replace(algorithm, step_size=step, friction=lost / step)

        cap = paper.step_size_limit(mu, L, mixing) * (1.0 - 1e-6)
        halves = by_halves(lambda one, paper=paper, facts=facts, **how: paper.w2_bound(facts, one, **how),
                           chosen, eps, cap)
        if halves is not None:
            given = {"share": share} if paper is theory.de_sghmc else {}
            yield facts, eps, paper.plan(facts, algorithm, eps, **given), halves


@pytest.mark.parametrize("count", [8, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("draw", [federated, decentralized])
def test_never_more_rounds_than_with_half_of_eps_for_each_part(draw, count):
    rng, shares = np.random.default_rng([SEED, count]), []
    for _ in range(count):
        for facts, eps, found, halves in draw(rng):
            assert found.n_rounds <= halves
            confirmed(found, facts, eps)
            shares.append(found.n_rounds / max(halves, 1))
    assert len(shares) > count and np.median(shares) < 0.75


@pytest.mark.parametrize(("theorem", "algorithm", "given"), [
    ("fa_ld.w2_bound", fs.FALD(0.1, 3), {}), ("fa_ld.w2_bound", fs.FALD(0.1, 3), {"variant": "printed"}),
    ("fa_ld.w2_bound_partial", fs.FALD(0.1, 3, participation=fs.Participation(2, True)), {}),
    ("fa_hmc.w2_bound", fs.FAHMC(0.1, 3, 2), {"variant": "consistent"}),
    ("fa_hmc.w2_bound", fs.FAHMC(0.1, 3, 2), {"initial": 2.0, "hessian_smoothness": 0.5}),
    ("de_sgld.w2_bound", fs.DESGLD(0.1, MIXING), {}),
    ("de_sghmc.w2_bound", fs.DESGHMC(0.1, 10.0, MIXING), {}),
    ("fa_ld.w2_recursion", fs.FALD(0.1, 3), {"hessian_smoothness": 0.5}),
    ("fa_hmc.w2_recursion", fs.FAHMC(0.1, 3, 2), {}), ("de_sgld.w2_recursion", fs.DESGLD(0.1, MIXING), {}),
    ("stale.w2_recursion", fs.StaleSGLD(0.1, 3), {})])
def test_a_fine_grid_of_step_sizes_has_no_fewer_rounds(theorem, algorithm, given):
    """By bisection on the bound itself, or for recursions by its rounds."""
    facts, eps = theory.constants(PAIR, algorithm, [30.0]), 8.0 if "partial" in theorem else 1.0
    found, entry = plan(theorem, facts, algorithm, eps, **given), named(theorem)
    if "w2_recursion" not in theorem:
        confirmed(found, facts, eps, **given)

    def within(one, rounds):
        try:
            bound = entry.function(facts, one, n_rounds=rounds, record=[rounds], **given)
        except ValueError:
            return False
        return bound.hypotheses_hold and bound.value[-1] <= eps

    for share in np.geomspace(0.05, 20.0, 60):
        try:
            one = with_step(algorithm, share * found.step_size, True)
        except ValueError:
            continue
        assert not within(one, found.n_rounds - 1 - found.n_rounds // 100_000), share
    assert within(found.algorithm, found.n_rounds) and found.n_rounds > 4


@pytest.mark.parametrize("algorithm", [
    fs.FALD(0.01, 5), fs.FAHMC(0.1, 2), fs.StaleSGLD(0.01, 2), fs.DESGLD(0.01, MIXING),
    fs.DESGHMC(0.1, 7.0, MIXING)], ids=lambda one: type(one).__name__)
def test_plans_by_recursion_are_as_good_as_a_fine_grid(algorithm):
    """Of 60 step sizes none is within eps a round before, as the tangents are that the plan is found by."""
    facts = theory.constants(fs.Quadratic([[1.0, 4.0], [2.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]]), algorithm)
    found = plan_by_recursion(facts, algorithm, 0.5, local_steps=5)
    assert 1 < found.n_rounds < 5000
    bound = named(found.theorem).function(facts, found.algorithm, n_rounds=found.n_rounds, record=[
        found.n_rounds - 1])
    assert bound.value[-1] <= 0.5 < bound.value[-2] and bound.floor == found.floor
    for size in np.geomspace(0.1, 10.0, 60) * found.step_size:
        if size < largest_step(facts, algorithm):
            needed = first_within(recursion(facts, with_step(found.algorithm, size, True)), 0.5, 10**6,
                                  enough=found.n_rounds)
            assert needed is None or needed[0] >= found.n_rounds, size


def test_a_schedule_stays():
    schedule = Harmonic.from_theorem(strong_convexity=1.0, smoothness=3.0)
    one = fs.FALD(schedule, 2)
    found = plan("FA-LD Theorem 4.8", PAIR, one, 0.5)
    assert (found.limited_by, found.algorithm, found.n_rounds) == ("schedule", one, theory.fa_ld.plan(
        theory.constants(PAIR, one), one, 0.5).n_rounds)
    with pytest.raises(ValueError, match=r"must be constant for this theorem"):
        plan("fa_ld.w2_bound", PAIR, one, 0.5)
    with pytest.raises(ValueError, match=r"theorem='fa_ld.w2_recursion' has no limit"):
        plan("fa_ld.w2_recursion", PAIR, one, 0.5)


@pytest.mark.parametrize(("theorem", "algorithm", "eps", "given", "words"), [
    ("fa_ld.w2_bound", fs.FALD(0.1), 0.0, {}, "eps=0.0 must be greater than 0"),
    ("fa_ld.w2_bound", fs.FALD(0.1), 1e-6, {}, r"eps=1e-06 is too small: more than 2\^52 rounds"),
    ("fa_ld.w2_bound", fs.FALD(0.1), 1e-155, {}, "eps=1e-155 is too small: within the hypotheses of"),
    ("fa_ld.w2_bound_partial", fs.FALD(0.1, participation=fs.Participation(1, True)), 1.0, {},
     "eps=1.0 is too small: within .* at least 4 at"),
    ("fa_ld.w2_bound", fs.FALD(0.1), 0.1, {"variant": "x"}, "variant='x' must be one of"),
    ("fa_ld.w2_bound", fs.FALD(0.1, participation=fs.Participation(1, True)), 0.1, {}, "participation="),
    ("fa_ld.w2_bound", fs.DESGLD(0.1, MIXING), 0.1, {}, "must be a fedsim.FALD"),
    ("fa_ld.rounds_rate", fs.FALD(0.1), 0.1, {}, "must be an upper bound on W2 by rounds"),
    ("fa_hmc.coupling_bound", fs.FAHMC(0.1, 2), 0.1, {}, "must be an upper bound on W2 by rounds"),
    ("de_sghmc.w2_bound", fs.DESGHMC(0.1, 9.0, MIXING), 0.3, {}, r"1 - friction\*step_size=0.1 must be"),
    ("de_sgld.w2_bound", fs.DESGLD(0.1, fs.network.disconnected(2)), 0.3, {}, "not connected")])
def test_what_cannot_be_planned(theorem, algorithm, eps, given, words):
    with pytest.raises(ValueError, match=words):
        plan(theorem, PAIR, algorithm, eps, **given)


def test_scheme_two_with_unequal_weights_is_not_planned():
    """The recursion has a value there, but is not proved."""
    problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]], [0.3, 0.7])
    algorithm = fs.FALD(0.01, participation=fs.Participation(1, False))
    with pytest.raises(ValueError, match="hypotheses that fail at every step size tried: equal weights"):
        plan("fa_ld.w2_recursion", theory.constants(problem, fs.FALD(0.01)), algorithm, 1.0)


@pytest.mark.parametrize("made", [theory.Plan, theory.fa_hmc.DynamicPlan])
def test_a_plan_has_no_order_of_fields(made):
    """The classes that `Plan` replaced had three orders: a value without its name may be any field's."""
    algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    with pytest.raises(TypeError, match="positional"):
        made(0.1, 0.01, 500, False, algorithm)  # as theory.de_sgld.Plan had them
    named = made(eps=0.1, step_size=0.01, n_rounds=500, algorithm=algorithm, theorem="de_sgld.w2_bound")
    assert named.n_steps == 500


def test_names_of_before():
    papers = (theory.fa_ld.Plan, theory.fa_hmc.Plan, theory.de_sgld.Plan, theory.tuning.RecursionPlan)
    assert all(one is Plan for one in papers)
    found = plan("fa_hmc.w2_bound", PAIR, fs.FAHMC(0.1, 5, local_steps=10), 0.3)
    assert found.n_steps == 10 * found.n_rounds and found.trajectory_length == 5 * found.step_size
    assert found.effort == found.costs["communications"] == found.n_rounds and np.isnan(found.price)
    assert not found.cap_binds and found.note == ""


def test_compare_by_a_theorem():
    ours, printed = (compare(PAIR, fs.FALD(0.01, 2), 0.3, by=by, n_grid=9, n_refine=0)
                     for by in ("paper", "fa_ld.w2_bound"))
    assert ours == printed
    with pytest.raises(ValueError, match="by='luck' must be one of"):
        compare(PAIR, fs.FALD(0.01, 2), 0.3, by="luck")


@pytest.mark.parametrize("eps", [1.0, 10.0])
def test_rounds_of_stale_gradients_are_those_of_the_bound(eps):
    """Whose first updates have younger gradients than the recursion that is planned by."""
    algorithm = fs.StaleSGLD(0.01, 20)
    facts = theory.constants(PAIR, algorithm, [30.0])
    found = plan("stale.w2_recursion", facts, algorithm, eps)
    value = theory.stale.w2_recursion(facts, found.algorithm, n_rounds=found.n_rounds).value
    assert value[-1] == found.value <= eps < value[-2]


def test_rounds_are_counted_from_where_the_bound_stays():
    """With momenta it is at most eps at the start, and above it in the next rounds."""
    problem, mixing = fs.Quadratic([0.3, 2.0, 1.0, 4.0], [[3.0], [-2.0], [1.0], [-3.0]]), fs.network.ring(4)
    algorithm = fs.DESGHMC(0.15, 4.0, mixing)
    facts = theory.constants(problem, algorithm, problem.minimizer + 3.0)
    eps = 1.001 * facts.initial_w2
    found = plan("de_sghmc.w2_recursion", facts, algorithm, eps)
    value = theory.de_sghmc.w2_recursion(facts, found.algorithm, n_rounds=found.n_rounds + 400,
                                         record=range(found.n_rounds + 401)).value
    assert value[0] <= eps < value[found.n_rounds - 1] and (value[found.n_rounds:] <= eps).all()
