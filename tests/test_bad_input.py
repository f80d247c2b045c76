"""Bad input gets a ValueError that names the argument, before anything is compiled or run."""

import dataclasses
import importlib
import math
import pickle
import re

import numpy as np
import pytest
from algorithms import ROWS, each
from hypothesis import example, given, settings, strategies as st
from numba.core.dispatcher import Dispatcher

import fedsim as fs
from fedsim.settings.validation import instance

NAN, INF = float("nan"), float("inf")
GOOD = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], [[0.0, 1.0], [2.0, 3.0]],
                    [0.3, 0.7])
STEP = fs.FALD(0.1, 3)


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    """In this file no kernel may be compiled, and no block may be made."""
    def refuse(*args, **options):
        raise AssertionError("compiled or run before the arguments were checked")

    monkeypatch.setattr(Dispatcher, "_compile_for_args", refuse)
    monkeypatch.setattr(Dispatcher, "compile", refuse)
    for module, name in (("running", "run_on_threads"), ("running", "run_on_executor"),
                         ("block", "lane_state"), ("block", "run_rounds")):
        monkeypatch.setattr(importlib.import_module(f"fedsim.engine.{module}"), name, refuse)


def quadratic(**change):
    return fs.Quadratic(**{"hessians": GOOD.hessians, "minimizers": GOOD.minimizers} | change)


def simulate(**change):
    options = {"problem": GOOD, "algorithm": STEP, "n_rounds": 5, "n_replicas": 64, "seed": 1} | change
    return fs.simulate(options.pop("problem"), options.pop("algorithm"), **options)


def path(**change):
    options = {"problem": GOOD, "algorithm": STEP, "n_rounds": 5, "seed": 1} | change
    return fs.sample_path(options.pop("problem"), options.pop("algorithm"), **options)


def with_entry(array, index, value):
    changed = np.array(array, dtype=float)
    changed[index] = value
    return changed


SCHEME_II = fs.FALD(0.1, participation=fs.Participation(1, False))
# What is called, and what the message must say: the argument, its value and the condition.
CASES = {
    "Hessian not symmetric": (lambda: quadratic(hessians=with_entry(GOOD.hessians, (0, 0, 1), 0.9)),
                              r"hessians\[0, ., .\]=0\.\d+ .*must be symmetric"),
    "Hessian indefinite": (lambda: quadratic(hessians=with_entry(GOOD.hessians, (1, 0, 0), -1.0)),
                           r"hessians\[1\] has smallest eigenvalue -1; it must be positive definite"),
    "Hessian singular": (lambda: quadratic(hessians=with_entry(GOOD.hessians, (1, 0, 0), 0.0)),
                         r"hessians\[1\] has smallest eigenvalue 0; it must be positive definite"),
    "curvature zero": (lambda: fs.Quadratic([1.0, 0.0], [[0.0], [1.0]]), r"hessians\[1\].*positive definite"),
    "curvature negative": (lambda: fs.Quadratic([[1.0, -2.0]], [[0.0, 1.0]]), r"hessians\[0\].*-2.*positive"),
    "Hessian NaN": (lambda: quadratic(hessians=with_entry(GOOD.hessians, (0, 1, 1), NAN)),
                    r"hessians\[0, 1, 1\]=nan must be finite"),
    "minimizer infinite": (lambda: quadratic(minimizers=with_entry(GOOD.minimizers, (1, 0), INF)),
                           r"minimizers\[1, 0\]=inf must be finite"),
    "weights that do not sum to one": (lambda: quadratic(weights=[0.5, 0.6]),
                                       r"weights sum to 1\.1; they must sum to 1"),
    "weight zero": (lambda: quadratic(weights=[1.0, 0.0]), r"weights\[1\]=0 must be greater than 0"),
    "weight negative": (lambda: quadratic(weights=[1.5, -0.5]), r"weights\[1\]=-0\.5 must be greater"),
    "weight NaN": (lambda: quadratic(weights=[NAN, 0.5]), r"weights\[0\]=nan must be finite"),
    "too many weights": (lambda: quadratic(weights=[0.5, 0.25, 0.25]), r"weights has shape \(3,\).*\(2,\)"),
    "wrong shape of Hessians": (lambda: quadratic(hessians=np.ones((2, 3))), r"hessians has shape \(2, 3\)"),
    "gradient noise without a finite variance": (lambda: quadratic(gradient_noise=1e200),
                                                 r"gradient_noise=1e\+200 must be at most 1e150"),
    "target that is no Gaussian": (lambda: fs.Law(np.arange(1), np.zeros((1, 1)), np.ones((1, 1))).w2(3),
                                   r"target=3 must be a fedsim.Gaussian"),
    "ragged": (lambda: quadratic(minimizers=[[0.0], [1.0, 2.0]]), "minimizers must be a rectangular array"),
    "text": (lambda: quadratic(minimizers=[["a", "b"]]), "minimizers must be an array of real numbers"),
    "complex": (lambda: quadratic(minimizers=[[1j, 0], [0, 0]]), "minimizers must be an array of real"),
    "no clients": (lambda: fs.Quadratic(np.empty((0, 2, 2)), np.empty((0, 2))), "empty"),
    "noise negative": (lambda: quadratic(gradient_noise=-1.0), r"gradient_noise=-1\.0 must be at least 0"),
    "noise NaN": (lambda: quadratic(gradient_noise=NAN), "gradient_noise=nan must be finite"),
    "noise indefinite": (lambda: quadratic(gradient_noise=[np.diag([1.0, -1.0])] * 2),
                         r"gradient_noise\[0\].*-1; it must be positive semidefinite"),
    "noise of wrong shape": (lambda: quadratic(gradient_noise=np.ones((2, 2))), "gradient_noise has shape"),
    "components": (lambda: fs.Quadratic.from_components([1.0, 2.0], [[0.0]]), "hessians has shape"),
    "step negative": (lambda: fs.FALD(-0.1), r"step_size=-0\.1 must be greater than 0"),
    "step zero": (lambda: fs.FALD(0.0), r"step_size=0\.0 must be greater than 0"),
    "step NaN": (lambda: fs.FALD(NAN), "step_size=nan must be finite"),
    "step text": (lambda: fs.FALD("0.1"), "step_size='0.1' must be a real number"),
    "step in a list": (lambda: fs.FALD([0.1, -0.2]), r"step_size\[1\]=-0\.2 must be greater than 0"),
    "no local steps": (lambda: fs.FALD(0.1, local_steps=0), "local_steps=0 must be at least 1"),
    "half a local step": (lambda: fs.FALD(0.1, local_steps=1.5), r"local_steps=1\.5 must be an integer"),
    "temperature": (lambda: fs.FALD(0.1, temperature=-1.0), r"temperature=-1\.0 must be greater than 0"),
    "shared noise": (lambda: fs.FALD(0.1, shared_noise=1.1), r"shared_noise=1\.1 must lie in \[0, 1\]"),
    "rho": (lambda: fs.FALD.from_paper(0.1, rho=-0.1), r"rho=-0\.1 must lie in \[0, 1\]"),
    "S without scheme": (lambda: fs.FALD.from_paper(0.1, S=2), "S=2 and scheme=None must be given together"),
    "unknown scheme": (lambda: fs.FALD.from_paper(0.1, S=2, scheme="III"), "scheme='III' must be one of"),
    "participation": (lambda: fs.FALD(0.1, participation=2),
                      r"participation=2 must be a fedsim\.Participation"),
    "nobody takes part": (lambda: fs.Participation(0, True), "n_active=0 must be at least 1"),
    "replace": (lambda: fs.Participation(1, "no"), "replace='no' must be one of True, False"),
    "unequal weights, scheme II": (lambda: fs.validate(GOOD, SCHEME_II),
                                   r"weights=\[0\.3 0\.7\] must all equal 1/n_clients for scheme II"),
    "S beyond N": (lambda: fs.validate(quadratic(), fs.FALD(0.1, participation=fs.Participation(3, False))),
                   "n_active=3 must be at most n_clients=2"),
    "unstable": (lambda: simulate(algorithm=fs.FALD(1.9)),
                 r"step_size=1\.9 must be less than the stability limit \d"),
    "unstable path": (lambda: path(algorithm=fs.FALD(1.9)),
                      r"step_size=1\.9 must be less than the stability limit \d"),
    "no replicas": (lambda: simulate(n_replicas=0), "n_replicas=0 must be at least 1"),
    "one replica": (lambda: simulate(n_replicas=1),
                    "n_replicas=1 must be at least 2 to estimate a covariance"),
    "rounds negative": (lambda: simulate(n_rounds=-1), "n_rounds=-1 must be at least 0"),
    "rounds fractional": (lambda: simulate(n_rounds=2.5), r"n_rounds=2\.5 must be an integer"),
    "rounds beyond the counter": (lambda: simulate(n_rounds=2**31), "n_rounds=.* makes 6442450944 steps"),
    "replicas beyond the counter": (lambda: simulate(n_replicas=2**33), "n_replicas=8589934592 must be at"),
    "clients drawn beyond the counter": (
        lambda: simulate(algorithm=fs.FALD(0.1, participation=fs.Participation(2**16 + 1, True))),
        "n_active=65537 must be at most 65536"),
    "seed negative": (lambda: simulate(seed=-1), "seed=-1 must be at least 0"),
    "seed too large": (lambda: simulate(seed=2**64), f"seed={2**64} must be at most"),
    "seed None": (lambda: simulate(seed=None), "seed=None must be an integer"),
    "start of wrong shape": (lambda: simulate(start=[0.0]), r"start has shape \(1,\); it must be \(2,\)"),
    "start NaN": (lambda: simulate(start=[0.0, NAN]), r"start\[1\]=nan must be finite"),
    "start in another dimension": (lambda: simulate(start=fs.Gaussian([0.0], [1.0])),
                                   "start has dimension 1; it must be 2"),
    "start per client": (lambda: simulate(start=np.zeros((2, 2))), "start has shape"),
    "record beyond": (lambda: simulate(record=[6]), r"record contains 6; it must lie in \[0, n_rounds=5\]"),
    "record negative": (lambda: simulate(record=[-1]), "record contains -1"),
    "record fractional": (lambda: simulate(record=[1.5]), "record=.*sequence of integers"),
    "covariance": (lambda: simulate(covariance="some"),
                   "covariance='some' must be one of 'full', 'diagonal', 'none'"),
    "average": (lambda: simulate(average="cube"), "average='cube' must be one of"),
    "noise": (lambda: simulate(noise="half"), "noise='half' must be one of 'double', 'single'"),
    "keep_final": (lambda: simulate(keep_final="yes"), "keep_final='yes' must be one of"),
    "allow_unstable": (lambda: simulate(allow_unstable="yes"), "allow_unstable='yes' must be one of"),
    "progress": (lambda: simulate(progress="yes"), "progress='yes' must be one of"),
    "block_size": (lambda: simulate(block_size=100), "block_size=100 must be a multiple of 64"),
    "block_size zero": (lambda: simulate(block_size=0), "block_size=0 must be at least 64"),
    "threads": (lambda: simulate(threads=0), "threads=0 must be at least 1"),
    "executor": (lambda: simulate(executor=4), "executor=4 must have the interface"),
    "checkpoint": (lambda: simulate(checkpoint=4), "checkpoint=4 must be"),
    "shard": (lambda: simulate(replicas=(0, 32)), r"replicas=\(0, 32\) must be a non-empty range"),
    "shard of one number": (lambda: simulate(replicas=5), r"replicas=5 must be a pair"),
    "empty shard": (lambda: simulate(replicas=(64, 64)), "replicas"),
    "shard beyond": (lambda: simulate(replicas=(0, 128)), r"replicas\[1\]=128 must be at most 64"),
    "schedule too short": (lambda: simulate(algorithm=fs.FALD([0.1] * 14, 3)),
                           "step_size has 14 entries; n_rounds=5 needs 15 local steps"),
    "path: schedule too short": (lambda: path(algorithm=fs.FALD([0.1] * 14, 3)), "step_size has 14 entries"),
    "path: every": (lambda: path(every=0), "every=0 must be at least 1"),
    "path: chains": (lambda: path(n_chains=0), "n_chains=0 must be at least 1"),
    "problem": (lambda: simulate(problem="quadratic"), "problem='quadratic' must be a fedsim problem"),
    "problem class": (lambda: simulate(problem=fs.Quadratic), "problem=.* must be a fedsim problem"),
    "algorithm": (lambda: simulate(algorithm=None), "algorithm=None must be a fedsim algorithm"),
    "algorithm for a problem": (lambda: simulate(problem=STEP), "problem=.* must be a fedsim problem"),
    "Gaussian, negative variance": (lambda: fs.Gaussian([0.0], [-1.0]), "cov has a negative variance -1"),
    "Gaussian, indefinite": (lambda: fs.Gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "cov.*semidefinite"),
    "Gaussian, not symmetric": (lambda: fs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "cov.*symmetric"),
    "Gaussian, shape": (lambda: fs.Gaussian([0.0, 0.0], [1.0]), r"cov has shape \(1,\); it must be \(2,\)"),
    "Gaussian, other dimension": (lambda: fs.Gaussian([0.0], [1.0]).w2(fs.Gaussian([0.0, 0.0], [1.0, 1.0])),
                                  "other.mean has shape"),
    "Gaussian, other": (lambda: fs.Gaussian([0.0], [1.0]).w2(3), "other=3 must be a fedsim.Gaussian"),
    "Gaussian, no draws": (lambda: fs.Gaussian([0.0], [1.0]).sample(0, 1), "n=0 must be at least 1"),
    "Harmonic": (lambda: fs.schedules.Harmonic(0.0, 1.0), r"offset=0\.0 must be greater than 0"),
    "Harmonic, slope": (lambda: fs.schedules.Harmonic(1.0, -1.0), r"slope=-1\.0 must be at least 0"),
    "theorem's schedule": (lambda: fs.schedules.Harmonic.from_theorem(strong_convexity=-1.0, smoothness=1.0),
                           r"strong_convexity=-1\.0 must be greater than 0"),
    "Listed": (lambda: fs.schedules.Listed([]), r"step_size has shape \(0,\); it must not be empty"),
    "temperature of a target": (lambda: GOOD.target(0.0), r"temperature=0\.0 must be greater than 0"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_message_names_argument_value_and_condition(name):
    call, message = CASES[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_the_refusal_of_instability_travels_between_processes():
    with pytest.raises(fs.UnstableStepSize) as caught:
        fs.validate(GOOD, fs.FALD(1.9))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert (copy.step_size, copy.limit) == (caught.value.step_size, caught.value.limit)
    assert math.isfinite(copy.limit)


def test_arrays_are_copied_and_read_only():
    hessians, minimizers, weights = np.eye(2)[None].repeat(2, 0), np.zeros((2, 2)), np.array([0.4, 0.6])
    problem = fs.Quadratic(hessians, minimizers, weights)
    hessians[0, 0, 0], minimizers[0, 0], weights[0] = -5.0, 7.0, 0.0
    assert problem.hessians[0, 0, 0] == 1.0 and problem.minimizers[0, 0] == 0.0 and problem.weights[0] == 0.4
    for array in (problem.hessians, problem.minimizers, problem.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


# Garbage: whatever comes, the answer is a ValueError or a sound object.

scalars = st.one_of(
    st.none(), st.booleans(), st.text(max_size=3), st.integers(-3, 5), st.integers(), st.binary(max_size=2),
    st.floats(), st.complex_numbers(), st.sampled_from([NAN, INF, -INF, 1e308, -1e308, 5e-324, 0.0, -0.0,
                                                        2**63, 2**64, 10**400]),
    st.sampled_from([np.float32(0.5), np.int8(1), np.uint8(255), np.bool_(True), np.datetime64("2020-01-01"),
                     np.array(0.5), np.float64("nan"), np.str_("x"), object(), int, len, ..., {}, {1.0}]))
numbers = st.one_of(st.floats(), st.integers(-3, 3), st.sampled_from([1e308, -1e308, 1e-320, 1e200, 1.0]))
arrays = st.one_of(
    scalars, st.lists(numbers, max_size=4), st.lists(st.lists(numbers, max_size=3), max_size=3),
    st.lists(scalars, max_size=3), st.lists(st.lists(scalars, max_size=2), max_size=2),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), numbers).map(
        lambda t: np.full(t[:3], float(t[3]))),
    st.tuples(st.integers(1, 3), st.integers(1, 3), numbers).map(
        lambda t: np.array([np.eye(t[1]) * float(t[2])] * t[0])))


def sound(value):
    """No NaN or infinity anywhere among the numbers of a result."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return bool(np.isfinite(value).all())
    if isinstance(value, (tuple, list)):
        return all(sound(part) for part in value)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return all(sound(part) for part in vars(value).values())
    return not isinstance(value, float) or math.isfinite(value)


def refused_or_sound(names, call):
    """Returns what `call` gives, or None after a ValueError that names one of the arguments."""
    try:
        result = call()
    except ValueError as error:
        text = str(error)
        assert any(re.search(rf"\b{name}\b", text) for name in names), f"{text!r} names none of {names}"
        return None
    assert sound(result), f"{result!r} holds NaN or infinity"
    return result


garbage = settings(max_examples=150)


@garbage
@given(arrays, arrays, arrays, arrays)
def test_garbage_for_quadratic(hessians, minimizers, weights, noise):
    names = ("hessians", "minimizers", "weights", "gradient_noise")
    for given_ in ((hessians, minimizers, weights, noise), (hessians, GOOD.minimizers, None, None),
                   (GOOD.hessians, minimizers, None, None), (GOOD.hessians, GOOD.minimizers, weights, None),
                   (GOOD.hessians, GOOD.minimizers, None, noise)):
        problem = refused_or_sound(names, lambda given_=given_: fs.Quadratic(*given_))
        if problem is not None:
            refused_or_sound((*names, "cov", "mean", "minimizer"), lambda problem=problem: problem.target())
            repr(problem)
    refused_or_sound(names, lambda: fs.Quadratic.from_components(hessians, minimizers, noise))
    refused_or_sound(names, lambda: fs.Quadratic.from_components(GOOD.hessians, GOOD.minimizers, noise))
    refused_or_sound(names, lambda: fs.Quadratic.from_components(hessians, GOOD.minimizers))


def fields_of(row):
    return [field.name for field in dataclasses.fields(row.mutants.program)]


@pytest.mark.parametrize(**each(fields_of))
def test_a_wrong_field_of_any_algorithm_is_named(kind, name):
    """Or it is right, and the algorithm is sound."""
    good = ROWS[kind].plainest.algorithm

    @garbage
    @given(arrays)
    @example(NAN)
    @example(INF)
    @example(-1)
    @example(0)
    @example(10**400)
    @example(None)
    @example("text")
    def check(value):
        repr(refused_or_sound((name,), lambda: dataclasses.replace(good, **{name: value})))

    check()


@garbage
@given(arrays, scalars, scalars, scalars, scalars)
def test_garbage_for_fa_ld(step_size, local_steps, temperature, shared, participation):
    names = ("step_size", "local_steps", "temperature", "shared_noise", "participation")
    for given_ in ((step_size, local_steps, temperature, shared, participation), (step_size,),
                   (0.1, local_steps), (0.1, 1, temperature), (0.1, 1, 1.0, shared),
                   (0.1, 1, 1.0, 0.0, participation)):
        algorithm = refused_or_sound(names, lambda given_=given_: fs.FALD(*given_))
        if algorithm is not None:
            repr(algorithm)
            refused_or_sound(names, lambda algorithm=algorithm: fs.validate(GOOD, algorithm))
    paper = ("step_size", "eta", "K", "local_steps", "tau", "temperature", "rho", "shared_noise", "S",
             "scheme", "n_active")
    refused_or_sound(paper, lambda: fs.FALD.from_paper(step_size, local_steps, temperature, shared))
    refused_or_sound(paper, lambda: fs.FALD.from_paper(0.1, rho=shared, S=local_steps, scheme=participation))
    refused_or_sound(paper, lambda: fs.FALD.from_paper(0.1, S=local_steps, scheme="I"))


@garbage
@given(arrays, scalars, scalars)
def test_garbage_for_small_classes(values, first, second):
    refused_or_sound(("n_active", "replace"), lambda: fs.Participation(first, second))
    refused_or_sound(("n_active", "scheme", "S"), lambda: fs.Participation.from_paper(first, second))
    refused_or_sound(("mean", "cov"), lambda: fs.Gaussian(values, values))
    refused_or_sound(("mean", "cov"), lambda: fs.Gaussian([0.0, 1.0], values))
    refused_or_sound(("mean", "cov"), lambda: fs.Gaussian(values, [[1.0]]))
    refused_or_sound(("n", "seed"), lambda: fs.Gaussian([0.0], [1.0]).sample(3, first))
    refused_or_sound(("offset", "slope", "step_size"), lambda: fs.schedules.Harmonic(first, second))
    refused_or_sound(("strong_convexity", "smoothness", "offset", "slope"), lambda: (
        fs.schedules.Harmonic.from_theorem(strong_convexity=first, smoothness=second)))
    refused_or_sound(("step_size",), lambda: fs.schedules.Constant(first))
    refused_or_sound(("step_size",), lambda: fs.schedules.Listed(values))
    refused_or_sound(("temperature", "cov"), lambda: GOOD.target(first))
    refused_or_sound(("n_rounds", "record"), lambda: fs.recorded_rounds(5, values))


@garbage
@given(scalars.filter(lambda value: not isinstance(value, int) or abs(value) > 3))
def test_garbage_for_recorded_rounds(n_rounds):
    refused_or_sound(("n_rounds",), lambda: fs.recorded_rounds(n_rounds))


OPTIONS = ("n_rounds", "n_replicas", "seed", "start", "record", "covariance", "average", "keep_final",
           "noise", "allow_unstable", "replicas", "block_size", "threads", "executor", "progress")
HARMLESS = {"n_rounds": (int, np.integer), "n_replicas": (int, np.integer), "seed": (int, np.integer),
            "start": (list, np.ndarray), "record": (list, np.ndarray, int, np.integer),
            "threads": (int, np.integer), "block_size": (int, np.integer), "replicas": (list,)}


@garbage
@given(arrays, st.sampled_from(OPTIONS))
def test_garbage_for_simulate(value, name):
    """Refused with a ValueError; what is sound would reach the engine, which refuses to run here."""
    try:
        simulate(**{name: value})
    except ValueError as error:
        assert re.search(rf"\b({name}|n_replicas|n_rounds|record)\b", str(error)), str(error)
    except AssertionError as error:
        assert "before the arguments were checked" in str(error)
        assert value is None or isinstance(value, (bool, np.bool_, *HARMLESS.get(name, ()))), (
            f"{name}={value!r} was let through")


@garbage
@given(arrays, st.sampled_from(("n_rounds", "seed", "every", "n_chains", "start", "client")))
def test_garbage_for_sample_path(value, name):
    try:
        path(**{name: value})
    except ValueError as error:
        assert re.search(rf"\b({name}|n_replicas)\b", str(error)), str(error)
    except AssertionError as error:
        assert "before the arguments were checked" in str(error)
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        assert value is None or whole or isinstance(value, (int, np.integer, list, np.ndarray)), (name, value)


@garbage
@given(scalars, scalars, arrays)
def test_garbage_for_validate(problem, algorithm, start):
    for given_ in ((problem, STEP), (GOOD, algorithm), (GOOD, STEP, start), (problem, algorithm, start)):
        refused_or_sound(("problem", "algorithm", "start"), lambda given_=given_: fs.validate(*given_))


@pytest.mark.parametrize(("value", "kinds", "message"), [
    (3, (fs.Law,), r"thing=3 must be a fedsim\.Law, not of type int$"),
    (fs.Law, (fs.Law, type(None)), r"must be a fedsim\.Law or None, not the class Law$"),
    (list(range(10**6)), (fs.Participation,),
     r"^thing=\[0, 1, 2.{0,60}must be .*Participation, not of type list"),
])
def test_who_is_who(value, kinds, message):
    """One function says what was wanted and what came, in a short line."""
    with pytest.raises(ValueError, match=message):
        instance("thing", value, *kinds)
    law = fs.Law(np.zeros(1, int), np.zeros((1, 1)), None)
    assert instance("thing", law, fs.Law) is law


def test_who_is_who_is_told_of_what_cannot_be_shown():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    with pytest.raises(ValueError, match=r"must be a fedsim\.Law, not of type Broken"):
        instance("thing", Broken(), fs.Law)
