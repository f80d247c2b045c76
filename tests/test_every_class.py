"""Constants of every class of problems and every choice of its options, against enumeration.

Every two values of two options meet in what `make test` runs; `make test-all` runs the whole product.
"""

import dataclasses
import inspect
import itertools

import numpy as np
import pytest
from every_class import followed
from every_class.classes import CLASSES, possible, rows
from every_class.pairwise import cover, name, pairs, product

import fedsim as fs
import theory

FOLLOWERS = {"federated": fs.FALD(0.01), "components": None, "global": fs.StaleSGLD(0.01, 0)}


def follower(problem, convention):
    return FOLLOWERS[convention] or fs.DESGLD(0.01, fs.network.complete(problem.n_clients))


def cells(choose):
    """A parameter for every choice of options of every class."""
    return [pytest.param(kind, choice, id=f"{kind}-{name(choice)}") for kind, row in CLASSES.items()
            for choice in choose(row.options, possible)]


every_pair = pytest.mark.parametrize(("kind", "choice"), cells(cover))
everything = pytest.mark.parametrize(("kind", "choice"), cells(product))


def exported():
    """Classes of problems that fedsim has."""
    return [one for one in vars(fs).values() if inspect.isclass(one) and hasattr(one, "curvature_problem")]


def unnamed(kinds):
    """Classes without a row, and arguments that are neither data nor an option."""
    found = {kind.__name__ for kind in kinds} - set(CLASSES)
    for kind in kinds:
        if row := CLASSES.get(kind.__name__):
            found |= {f"{kind.__name__}.{argument}" for argument in inspect.signature(kind).parameters
                      if argument not in row.data and len(row.options.get(argument, ())) < 2}
    return found


def test_every_option_of_every_class_is_named():
    assert not unnamed(exported()) and {row.kind for row in CLASSES.values()} <= set(exported())

    class Other(fs.GaussianMean):
        pass

    class GaussianMean(fs.GaussianMean):
        def __init__(self, data, *, prior_variance=1.0, batch_size=None, replace=False,
                     grad_scale="unbiased", tempered=False):
            pass

    assert unnamed([Other, GaussianMean]) == {"Other", "GaussianMean.tempered"}


def test_what_pairwise_covers():
    for row in CLASSES.values():
        every = set().union(*map(pairs, product(row.options, possible)))
        few = cover(row.options, possible)
        assert set().union(*map(pairs, few)) == every and len(few) <= 12
        assert set().union(*map(pairs, few[:-1])) < every  # the last one was needed


def known(problem, convention):
    """Constants, or None where they are refused by name."""
    try:
        return theory.constants(problem, follower(problem, convention))
    except ValueError as refusal:
        assert "=" in str(refusal)  # argument and value
        return None


def points(problem, found):
    """The mode and around it, far out in every direction, where slopes are all but -1 and 1."""
    rng = np.random.default_rng(5)
    d = problem.dim
    far = [size * sign * np.ones(d) for size in (1.0, 30.0) for sign in (-1.0, 1.0)]
    return [found.minimizer, np.zeros(d), *far, *(found.minimizer + 3.0 * rng.standard_normal((4, d)))]


def faults(problem, convention):
    """What is wrong with the constants, in words; None where they are refused."""
    found = known(problem, convention)
    if found is None:
        return None
    wrong, at = [], points(problem, found)
    for x in at:
        noise = followed.traces(problem, convention, x)
        if (noise > found.gradient_noise_traces * (1 + 1e-9) + 1e-12).any():
            wrong.append(f"E||noise||^2={noise} at {x}, {found.gradient_noise_traces} in the constants")
    slopes = followed.mean_gradients(problem, convention, found.minimizer)
    size = found.smoothness * (1.0 + np.abs(found.minimizer).max())
    if np.abs(slopes - found.gradient_at_minimizer).max() > 1e-8 * size:
        wrong.append(f"gradients {slopes} at the minimizer, {found.gradient_at_minimizer} in the constants")
    if np.abs(followed.mean_of_f(problem, convention, found.minimizer)).max() > 1e-8 * size:
        wrong.append(f"minimizer {found.minimizer} is not that of the mean gradient")
    wrong += [f"curvature {r} not in [{found.strong_convexity}, {found.smoothness}]"
              for r in curvatures(problem, convention, at)
              if not found.strong_convexity * (1 - 1e-6) <= r <= found.smoothness * (1 + 1e-6)]
    if (most := max(bends(problem, convention, at))) > found.hessian_smoothness * (1 + 1e-6) + 1e-6:
        wrong.append(f"Hessians change by {most}, {found.hessian_smoothness} in the constants")
    return wrong + of_target(problem, convention, found)


def curvatures(problem, convention, at):
    """<grad(x) - grad(y), x - y>/|x - y|^2 of every client, for points a little or far apart."""
    pairs_of = [(x, x + 1e-3 * np.eye(problem.dim)[0]) for x in at] + list(itertools.pairwise(at))
    for x, y in pairs_of:
        if (gap := x - y).any():
            apart = [followed.mean_gradients(problem, convention, z) for z in (x, y)]
            yield from (apart[0] - apart[1]) @ gap / (gap @ gap)


def of_target(problem, convention, found):
    """Is the target, where there is one, exp(-f) of the f that is followed, or known not to be?"""
    target = found.target
    if target is None:
        return []
    at = target.mean + np.multiply.outer([-1.0, 1.0], np.sqrt(target.variances))
    pull = np.array([followed.mean_of_f(problem, convention, x) for x in at])
    cov = target.cov if target.cov.ndim == 2 else np.diag(target.cov)
    right = np.linalg.solve(cov, (at - target.mean).T).T
    alike = np.abs(pull - right).max() <= 1e-8 * np.abs(right).max()
    return [] if alike != bool(found.off_target) else [
        f"at {at} the target pulls with {right}, the mean gradient with {pull} ({found.off_target})"]


def bends(problem, convention, at):
    """|(Hess(x) - Hess(y)) u|/(|x - y| |u|_max) of every client, for corners u of the cube."""
    ways = np.array(list(itertools.product((-1.0, 1.0), repeat=min(problem.dim, 4))))
    ways = np.pad(ways, ((0, 0), (0, problem.dim - ways.shape[1])))
    for x, y in zip(at, [*at[1:], at[0]], strict=True):
        for u in ways:
            twice = [(followed.mean_gradients(problem, convention, z + 1e-4 * u)
                      - followed.mean_gradients(problem, convention, z - 1e-4 * u)) / 2e-4 for z in (x, y)]
            if np.linalg.norm(x - y) > 1e-2:
                yield from np.linalg.norm(twice[0] - twice[1], axis=1) / np.linalg.norm(x - y)


SAYS_NOTHING = ("Custom",)
"""Classes that have no constants of their own."""


JUDGED = {}


def judge(kind, choice):
    """How many conventions have constants, once they are found to be right."""
    key = kind, name(choice)
    if key not in JUDGED:
        problem, JUDGED[key] = CLASSES[kind].build(**choice), 0
        for convention in FOLLOWERS:
            wrong = faults(problem, convention)
            assert not wrong, f"{convention}: {wrong}"
            JUDGED[key] += wrong is not None
    return JUDGED[key]


@every_pair
def test_constants(kind, choice):
    judge(kind, choice)


@pytest.mark.slow
@everything
def test_constants_of_every_choice(kind, choice):
    judge(kind, choice)


def test_every_class_has_constants_somewhere():
    for kind, row in CLASSES.items():
        plain = {option: values[0] for option, values in row.options.items()}
        given = [judge(kind, choice) for choice in cover(row.options, possible)]
        assert any(given) != (kind in SAYS_NOTHING)
        assert judge(kind, plain) == (0 if kind in SAYS_NOTHING else 3)


WRONG = {
    "noise": lambda known: {"gradient_noise_traces": known.gradient_noise_traces / 7},
    "Hessians": lambda known: {"hessian_smoothness": 0.2 * known.hessian_smoothness},
    "curvature": lambda known: {"smoothness": 0.8 * known.smoothness},
    "target": lambda known: {"off_target": ""}}


@pytest.mark.parametrize("word", WRONG)
def test_what_is_wrong_is_seen(word, monkeypatch):
    """A trace without its factor N = 7, part of L_H or L, a target that is not the law followed."""
    features, targets, clients = rows(2, (1,) * 7)
    problem = fs.LogisticRegression(features, (targets > 0).astype(int), clients, prior_variance=0.5,
                                    batch_size=1)
    if word == "target":
        problem = fs.GaussianMean([1.0, 2.0, 3.0], batch_size=1, grad_scale="batch_sum")
    assert not faults(problem, "global")
    found = known(problem, "global")
    monkeypatch.setattr(theory, "constants", lambda *_: dataclasses.replace(found, **WRONG[word](found)))
    assert any(word in text for text in faults(problem, "global"))


def as_it_is_pooled(problem):
    """What differs between the constants of a problem and of the same one pooled, for what follows f."""
    alone, together = (known(one, "global") for one in (problem, problem.pooled()))
    if alone is None or together is None:
        return [] if alone is together else ["one of them is refused"]
    return [field.name for field in dataclasses.fields(theory.Constants) if field.name != "of"
            and not alike(getattr(alone, field.name), getattr(together, field.name))]


def alike(one, other):
    if one is None or other is None or isinstance(one, str):
        return one is other or one == other
    if isinstance(one, fs.Gaussian):
        return one.w2(other) <= 1e-12 * np.sqrt(one.variances.sum())
    return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-9, atol=1e-12)


@every_pair
def test_pooled_is_not_pooled(kind, choice):
    assert not as_it_is_pooled(CLASSES[kind].build(**choice))


@pytest.mark.slow
@everything
def test_every_choice_pooled_is_not_pooled(kind, choice):
    assert not as_it_is_pooled(CLASSES[kind].build(**choice))
