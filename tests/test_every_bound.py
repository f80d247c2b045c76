"""Every bound on every class of problems with affine gradients and every option, against exact laws.

Where minibatches make the law not normal, its W2 is that of the normal law with its moments: a lower bound.
"""

import inspect

import numpy as np
import pytest
from every_class import affine
from every_class.algorithms import FAMILIES, START, possible, start
from every_class.classes import CLASSES, possible as is_problem
from every_class.pairwise import cover, name, product

import fedsim as fs
import theory
from theory.exact import FAHMCFlow
from tools.search.settings import draw

AFFINE = ("Quadratic", "LinearRegression", "GaussianMean")


def cells(choose):
    """A parameter for choices of options: `choose` those of the class, and a cover of the algorithm's."""
    found = []
    for kind in AFFINE:
        for family, row in FAMILIES.items():
            def allowed(choice, kind=kind, family=family):
                return is_problem(choice) and possible(kind, family, choice)

            rest = {**row.options, "start": START}
            if choose is cover:
                chosen = cover({**CLASSES[kind].options, **rest}, allowed)
            else:
                fixed = [{option: (value,) for option, value in choice.items()}
                         for choice in product(CLASSES[kind].options, is_problem)]
                chosen = [one for choice in fixed for one in cover(choice | rest, allowed)]
            found += [pytest.param(kind, family, choice, id=f"{kind}-{family}-{name(choice)}")
                      for choice in chosen]
    return found


def made(kind, family, choice):
    """Problem, algorithm, start, and constants where they are not `theory.constants`."""
    parts = dict(choice)
    where = parts.pop("start")
    problem = CLASSES[kind].build(**{option: parts.pop(option) for option in CLASSES[kind].options})
    algorithm = FAMILIES[family].build(problem, **parts)
    begin = start(problem, where, problem.target(), problem.target().mean)
    if kind != "LinearRegression" or not problem.has_minibatches:
        return problem, algorithm, begin
    return problem, algorithm, begin, theory.de_sgld.minibatch_constants(
        problem, algorithm, begin, known="a_posteriori", n_rounds=affine.ROUNDS)


JUDGED = {}


def judged(kind, family, choice):
    """What is said of it, once."""
    key = kind, family, name(choice)
    if key not in JUDGED:
        JUDGED[key] = list(affine.judge(*made(kind, family, choice)))
    return JUDGED[key]


def assert_right(found):
    assert not [str(one) for one in found if one.fails]
    assert not [str(one) for one in found if one.uncompared]


@pytest.mark.parametrize(("kind", "family", "choice"), cells(cover))
def test_bounds(kind, family, choice):
    assert_right(judged(kind, family, choice))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "family", "choice"), cells(product))
def test_bounds_of_every_choice(kind, family, choice):
    assert_right(judged(kind, family, choice))


def flow_of_two_groups(seed=1):
    """What the lower bound speaks about: exact trajectories."""
    setting = draw(seed, 1, "FAHMCFlow")
    return setting.problem, setting.algorithm, setting.start


def one_client():
    """The setting of bounds on one chain: one client, one local step, exact gradients."""
    return fs.Quadratic([[1.0, 2.0]], [[1.0, -0.5]]), fs.FALD(0.1), None


def test_the_lower_bound():
    found = list(affine.judge(*flow_of_two_groups()))
    assert_right(found)
    assert {one.theorem for one in found if one.within} == {"fa_hmc.lower_bound"}


def test_every_bound_is_compared_within_its_hypotheses():
    """On quadratic clients, some by some; and no ratio is so small that only its sign is looked at."""
    bounds = [entry for entry in theory.theorems() if entry.kind != "rate"]
    assert {entry.algorithm for entry in bounds} == {row.kind for row in FAMILIES.values()} | {FAHMCFlow}
    met = {one.theorem for setting in (flow_of_two_groups(), one_client()) for one in affine.judge(*setting)
           if one.within}
    for cell in cells(cover):
        if cell.values[0] == "Quadratic":
            met |= {one.theorem for one in judged(*cell.values) if one.within}
    assert met == {entry.id for entry in bounds}


def test_every_option_of_every_algorithm_is_named():
    """Or it follows from the problem."""
    for row in FAMILIES.values():
        named = {*row.given, *row.options} - {"schedule"}  # a step size
        assert named == set(inspect.signature(row.kind).parameters)


def plain(kind, family, **changes):
    """The first value of every option, or another."""
    options = {**CLASSES[kind].options, **FAMILIES[family].options, "start": START}
    return {option: values[0] for option, values in options.items()} | changes


def test_what_is_wrong_is_seen():
    """Constants of half of the data."""
    choice = plain("GaussianMean", "StaleSGLD", start="target")
    problem, algorithm, begin = made("GaussianMean", "StaleSGLD", choice)
    known = theory.constants(problem, algorithm, begin)
    assert_right(affine.judge(problem, algorithm, begin))
    twice = fs.GaussianMean(np.tile(problem.data, 2), prior_variance=problem.prior_variance)
    found = affine.judge(twice, algorithm, problem.target(), known)
    assert [one for one in found if one.fails or one.uncompared]
