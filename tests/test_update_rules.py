"""Programs with explicit noise: their laws are those by hand and those of traces, and the rest is refused."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest
import sampler_zoo as zoo
from sampler_programs import Program

import fedsim as fs
import theory
from theory.testing import UpdateRule, bias_order
from theory.testing.bias import judged_order
from theory.testing.nested import Nested, zeros_of

RNG = np.random.default_rng(3)
N, D = 3, 2
HESSIANS = np.stack([root @ root.T + np.eye(D) for root in RNG.normal(size=(N, D, D))])
MINIMA, W = RNG.normal(size=(N, D)), np.array([0.5, 0.3, 0.2])
PROBLEM = fs.Quadratic(HESSIANS, MINIMA, W)
PARTS = fs.Quadratic.from_components(HESSIANS, MINIMA)
MIXING = 0.5 * fs.network.ring(N) + 0.5 * np.eye(N)
ROUNDS = [1, 2, 5, 40, 1000]


def g(x):
    return np.einsum("cij,cj->ci", HESSIANS, x - MINIMA)


def fa_ld(h, K=5, s=0.25):
    def step(x, z):
        for k in range(K):
            x = x - h * g(x) + np.sqrt(2*h*s) * z["common"][k] + np.sqrt(2*h*(1-s) / W)[:, None] * z["own"][k]
        return np.broadcast_to(W @ x, (N, D))
    return step


def de_sgld(h):
    return lambda x, z: MIXING @ x - h * g(x) + np.sqrt(2 * h) * z


def de_sghmc(h, friction=2.0):
    def step(s, z):
        v = s["v"] - h * (friction * s["v"] + g(s["x"])) + np.sqrt(2 * friction * h) * z
        return {"x": MIXING @ s["x"] + h * v, "v": v}
    return step


def stale_sgld(h, age=3):
    return lambda s, z: (s[0] - h * W @ g(np.tile(s[age], (N, 1))) + np.sqrt(2 * h) * z, *s[:-1])


def fa_hmc(h, K=3, T=2):
    def step(x, z):
        for p in z:
            for _ in range(K):
                p = p - h / 2 * g(x)
                x, p = x + h * p, p - h / 2 * g(x + h * p)
        return np.broadcast_to(W @ x, (N, D))
    return step


def everywhere(point):
    return np.broadcast_to(point, (N, D))


FIVE = {
    "FA-LD": (PROBLEM, fs.FALD(0.02, 5, shared_noise=0.25), fa_ld,
              {"noise": {"common": (5, 1, D), "own": (5, N, D)}, "start": everywhere,
               "read": lambda x: x.mean(axis=0)}),
    "DE-SGLD": (PARTS, fs.DESGLD(0.02, MIXING), de_sgld,
                {"noise": (N, D), "start": everywhere, "read": lambda x: x.mean(axis=0)}),
    "DE-SGHMC": (PARTS, fs.DESGHMC(0.1, 2.0, MIXING), de_sghmc,
                 {"noise": (N, D), "start": lambda x: {"x": everywhere(x), "v": np.zeros((N, D))},
                  "read": lambda s: s["x"].mean(axis=0)}),
    "stale SGLD": (PROBLEM, fs.StaleSGLD(0.02, 3), stale_sgld, {"noise": (D,), "start": lambda x: (x,) * 4}),
    "FA-HMC": (PROBLEM, fs.FAHMC(0.1, 3, local_steps=2), fa_hmc,
               {"noise": (2, 1, D), "start": everywhere, "read": lambda x: x.mean(axis=0)}),
}


def gap(one, other):
    """Largest difference of two laws, relative to the larger of their sizes."""
    cov = np.abs(one.cov - other.cov).max() / np.abs(other.cov).max()
    return max(cov, np.abs(one.mean - other.mean).max() / max(1.0, np.abs(other.mean).max()))


@pytest.mark.parametrize("name", FIVE)
def test_the_laws_by_hand_come_out_of_five_lines(name):
    problem, algorithm, make, options = FIVE[name]
    rule = UpdateRule(make, problem, algorithm.step_size, **options)
    assert rule.step.misfit < 1e-14
    for start in (None, fs.Gaussian([0.5, -1.0], [[2.0, 0.3], [0.3, 1.0]])):
        laws = [theory.exact_law(problem, one, 1000, start=start, record=ROUNDS) for one in (rule, algorithm)]
        assert gap(*laws) < 1e-13
        assert np.allclose(laws[0].w2(), laws[1].w2(), rtol=1e-10)
    assert gap(theory.stationary_law(problem, rule), theory.stationary_law(problem, algorithm)) < 1e-13
    mine, hand = rule.stability(problem), algorithm.stability(problem)
    assert np.isclose(mine.radius, hand.radius, rtol=1e-10)
    limit = mine.max_step_size / hand.max_step_size  # that of FA-HMC by hand wants stable trajectories, too
    assert abs(limit - 1.0) < 1e-7 or (name == "FA-HMC" and 1.0 < limit < 1.1)
    off = UpdateRule(lambda h: make(1.001 * h), problem, algorithm.step_size, **options)
    assert gap(theory.stationary_law(problem, off), theory.stationary_law(problem, algorithm)) > 1e-8


ZOO = {
    "fa_ld": (PROBLEM, zoo.fa_ld(step_size=0.02, local_steps=3, shared_noise=0.3), 0),
    "fa_hmc": (PROBLEM, zoo.fa_hmc(step_size=0.1, leapfrog_steps=3, local_steps=2), 0),
    "de_sgld": (PARTS, fs.samplers.declared(fs.DESGLD(0.02, MIXING)), 0),
    "de_sghmc": (PARTS, fs.samplers.declared(fs.DESGHMC(0.1, 2.0, MIXING)), 0),
    "stale_sgld": (PROBLEM, fs.samplers.declared(fs.StaleSGLD(0.02, 3)), 3),
    "stale_sghmc": (PROBLEM, fs.samplers.declared(fs.StaleSGHMC(0.05, 1.0, 2)), 3),
    "extra_sgld": (PARTS, zoo.extra_sgld(step_size=0.02, W=MIXING), 0),
    "diging_sgld": (PARTS, zoo.diging_sgld(step_size=0.02, W=MIXING), 0),
    "de_baoab": (PARTS, zoo.de_baoab(step_size=0.1, friction=1.5, W=MIXING), 0),
    "scaffold_ld": (PROBLEM, zoo.scaffold_ld(step_size=0.02, local_steps=3), 0),
    "local_gossip": (PARTS, zoo.local_gossip(step_size=0.02, W=MIXING, local_steps=3), 0),
    "known_delays": (PROBLEM, zoo.known_delays(step_size=0.02, sets=[[0, 1], [2], [1, 2]]), 2),
}


@pytest.mark.parametrize("name", ZOO)
def test_samplers_run_as_programs_give_the_laws_of_their_traces(name):
    problem, sampler, age = ZOO[name]
    rounds = 3 if name == "known_delays" else 1
    rule = Program(sampler, problem, rounds, age).rule(problem)
    start = fs.Gaussian([0.5, -1.0], [2.0, 0.3])
    mine = theory.exact_law(problem, rule, 200, start=start, record=[1, 2, 50], allow_unstable=True)
    theirs = theory.exact_law(problem, sampler, 200 * rounds, start=start, allow_unstable=True,
                              record=[rounds * n for n in (1, 2, 50)])
    assert gap(mine, theirs) < 1e-12
    if rounds == 1:
        assert gap(theory.stationary_law(problem, rule), theory.stationary_law(problem, sampler)) < 1e-10
        assert np.isclose(rule.stability(problem).radius, sampler.stability(problem).radius, rtol=1e-9)


def test_every_sampler_of_the_zoo_is_a_program_or_draws_more_than_noise():
    made = {name for name, one in vars(zoo).items() if isinstance(one, type) and hasattr(one, "_function")}
    assert made - set(ZOO) == {"drawn_fa_ld", "random_pairs"}


def langevin(h):
    return lambda x, z: x - h * W @ g(np.tile(x, (N, 1))) + np.sqrt(2 * h) * z


RULE = UpdateRule(langevin, PROBLEM, 0.05, noise=D)


def test_it_goes_where_algorithms_go():
    table = theory.sweep(PROBLEM, RULE, step_size=[0.05, 0.02, 10.0], eps=0.3)
    assert table["stable"].tolist() == [True, True, False]
    twin = theory.sweep(PROBLEM, fs.StaleSGLD(0.05, 0), step_size=[0.05, 0.02], eps=0.3)
    assert table["rounds"].tolist()[:2] == twin["rounds"].tolist()
    best = theory.tuning.best_step_size(PROBLEM, RULE, eps=0.3)
    other = theory.tuning.best_step_size(PROBLEM, fs.StaleSGLD(0.05, 0), eps=0.3)
    assert best.n_rounds == other.n_rounds
    assert theory.exact_law(PROBLEM, RULE, 50).plot() is not None
    problem, algorithm, make, options = FIVE["FA-LD"]
    law = theory.exact_law(problem, UpdateRule(make, problem, 0.02, **options), 50)
    bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
    verdict = theory.check(bound, law)
    assert verdict.holds and "algorithm of the law is not known" in verdict.note


def test_rounds_are_drawn_from_its_law(alarm):
    drawn = theory.exact.sample_rounds(PROBLEM, RULE, 20, 4000, seed=1, start=[1.0, 2.0])[:, 0]
    law = theory.exact_law(PROBLEM, RULE, 20, start=[1.0, 2.0]).at(20)
    alarm.assert_normal((drawn.mean(axis=0) - law.mean) / np.sqrt(np.diag(law.cov) / 4000), "mean of draws")


def test_what_is_never_read_does_not_count():
    def make(h):
        inner = langevin(h)
        return lambda s, z: {"x": inner(s["x"], z), "n": s["n"] + 1, "sum": 3.0 * s["sum"] + s["x"]}

    rule = UpdateRule(make, PROBLEM, 0.05, noise=D, start=lambda x: {"x": x, "n": 0.0, "sum": 0.0 * x})
    assert gap(theory.stationary_law(PROBLEM, rule), theory.stationary_law(PROBLEM, RULE)) < 1e-14
    assert np.isclose(rule.stability(PROBLEM).radius, RULE.stability(PROBLEM).radius, rtol=1e-12)


def test_a_conserved_sum_that_is_read_has_no_stationary_law():
    rule = UpdateRule(lambda h: lambda x, z: np.array([x[0], x[1] - h * x[1] + z]), PROBLEM, 0.5, noise=())
    with pytest.raises(theory.NoExactLaw, match="conserves carries the start"):
        theory.stationary_law(PROBLEM, rule)


def test_a_start_of_its_own_is_one_that_is_read():
    options = {"noise": D, "start": np.array([1.0, 2.0])}
    rule = UpdateRule(langevin, PROBLEM, 0.05, **options)
    want = theory.exact_law(PROBLEM, RULE, 5, start=[1.0, 2.0])
    assert gap(theory.exact_law(PROBLEM, rule, 5, start=[1.0, 2.0]), want) < 1e-14
    with pytest.raises(ValueError, match=r"start=\[0.0, 0.0\] .* must be what the rule's own start reads"):
        theory.exact_law(PROBLEM, rule, 5)


@pytest.mark.parametrize(("make", "words"), [
    (lambda h: lambda x, z: x - h * np.tanh(x) + z, r"not affine .*: off by .* at state\[[01]\]"),
    (lambda h: lambda x, z: x - 1e-6 * h * np.minimum(x, 0.0) + z, "not affine"),
    (lambda h: lambda x, z: x - h * np.clip(x, -50, 50) + z, "not affine .* from a state of size"),
    (lambda h: lambda x, z: x + z * (1 + 1e-6 * x), "not affine"),
    (lambda h: lambda x, z: np.float32(x - h * x + z), r"float32 \(state is\)"),
    (lambda h: lambda x, z: x - np.float32(h) * np.asarray(np.float32(x), float), "computes in float32"),
    (lambda h: lambda x, z: x + RNG.normal(size=2), "draws random numbers of its own"),
    (lambda h: lambda x, z: x / 0.0, r"the new state\[0\] is not finite"),
    (lambda h: lambda x, z: (x, z), r"the new state has the parts state\[0\], state\[1\]"),
    (lambda h: lambda x, z: x[:1], r"the new state has shape \(1,\); .* must be \(2,\), as start has it"),
    (lambda h: lambda x, z: ["one", "two"], "must be made of numbers"),
    (lambda h: 3.0, r"make\(0.1\) gives 3.0"),
])
def test_what_is_no_affine_program_is_refused(make, words):
    with pytest.raises(ValueError, match=words), np.errstate(all="ignore"):
        UpdateRule(make, PROBLEM, 0.1, noise=D)


@pytest.mark.parametrize(("changes", "words"), [
    ({"step_size": -1.0}, "step_size=-1.0"), ({"step_size": [0.1, 0.2]}, "must be a number"),
    ({"problem": 3}, "problem=3"), ({"make": 3}, "make=3 must be a function"),
    ({"read": 3}, "read=3 must be a function"), ({"noise": (-1,)}, r"noise=\(-1,\)"),
    ({"read": lambda x: x[0]}, r"read\(state\) has shape \(\); it must be \(2,\)"),
    ({"read": np.abs}, r"read\(state\)\[\d\] is not affine"), ({"temperature": 0.0}, "temperature=0.0"),
    ({"start": {}}, "must give a state of finite numbers"),
    ({"start": np.array([np.nan, 0.0])}, "must give a state of finite numbers"),
])
def test_arguments_that_do_not_fit_are_named(changes, words):
    with pytest.raises(ValueError, match=words):
        UpdateRule(**{"make": langevin, "problem": PROBLEM, "step_size": 0.1, "noise": D} | changes)


def test_another_problem_and_simulation_are_refused():
    with pytest.raises(ValueError, match="must be that of the rule"):
        theory.exact_law(PARTS, RULE, 5)
    with pytest.raises(ValueError, match="has exact laws and is not simulated"):
        fs.simulate(PROBLEM, RULE, 5, 64, seed=1)
    with pytest.raises(fs.UnstableStepSize):
        theory.stationary_law(PROBLEM, dataclasses.replace(RULE, step_size=10.0))


def test_orders_are_seen_and_said_only_where_they_are():
    first = bias_order(PROBLEM, RULE)
    assert first.order == 1.0 and first.order == bias_order(PROBLEM, fs.StaleSGLD(0.05, 0)).order

    def obabo(h):
        c = np.exp(-h / 2)

        def step(s, z):
            v = c * s["v"] + np.sqrt(1 - c * c) * z[0] - h / 2 * W @ g(np.tile(s["x"], (N, 1)))
            x = s["x"] + h * v
            v = v - h / 2 * W @ g(np.tile(x, (N, 1)))
            return {"x": x, "v": c * v + np.sqrt(1 - c * c) * z[1]}
        return step

    second = UpdateRule(obabo, PROBLEM, 0.2, noise=(2, D), start=lambda x: {"x": x, "v": 0 * x})
    assert bias_order(PROBLEM, second).order == 2.0
    wrong = UpdateRule(lambda h: lambda x, z: langevin(h)(x, 2 * z), PROBLEM, 0.05, noise=D)
    found = bias_order(PROBLEM, wrong)
    assert found.order == 0.0 and "does not fall" in found.reason
    target = PROBLEM.target()
    root = np.linalg.cholesky(target.cov)
    exact = UpdateRule(lambda h: lambda x, z: target.mean + np.exp(-h) * (x - target.mean)
                       + np.sqrt(-np.expm1(-2 * h)) * root @ z, PROBLEM, 0.1, noise=D)
    assert bias_order(PROBLEM, exact).order is None and "no bias is seen" in bias_order(PROBLEM, exact).reason
    sizes = 0.5 ** np.arange(5)
    assert judged_order(sizes, sizes**0.3, 1.0).order is None
    assert "halve more" in judged_order(sizes, sizes**0.3, 1.0).reason
    assert "rounding" in judged_order(sizes, np.array([1e-9, 1e-14, 1e-14, 1e-14, 1e-14]), 1.0).reason


def test_nested_arrays_keep_their_places():
    Pair = collections.namedtuple("Pair", "x v")
    state = {"a": Pair(np.arange(2.0), [1.0, 2.0]), "b": (3.0, [np.ones((2, 1))])}
    nested = Nested("state", state)
    assert nested.size == 7
    assert [nested.place(i) for i in range(7)] == [
        "state['a'].x[0]", "state['a'].x[1]", "state['a'].v[0]", "state['a'].v[1]", "state['b'][0]",
        "state['b'][1][0][0, 0]", "state['b'][1][0][1, 0]"]
    back = nested.tree(nested.values)
    assert isinstance(back["a"], Pair) and nested.flat(back).tolist() == nested.values.tolist()
    back["a"].x[0] = 9.0  # programs may write to what they get
    assert nested.values[0] == 0.0
    assert Nested("noise", zeros_of("noise", {"a": (2, 3), "b": [4, ()], "c": np.ones(2)})).size == 13
    assert Nested("noise", zeros_of("noise", None)).size == 0
