"""One class of problems for a search and a certificate: what is found lies below what is proved."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
from reproduce import random_settings, worst_cases
from theory.worst_case import ProblemClass, certify, from_record, sample, search, to_record
from theory.worst_case.closed import CLOSED_FORMS, QUANTITIES
from theory.worst_case.closed.closed_form import parts_of
from theory.worst_case.search_result import encoded
from theory.worst_case.targets import maker_of
from tools.search import settings

SCALAR = ProblemClass(condition=4.0, step_size=0.05, shared_noise=0.3, weights="equal", gradient_noise=0.0,
                      local_steps=3, leapfrog_steps=2, n_rounds=3, staleness=1, start=0.0, start_variance=0.0,
                      mixing=0.25, heterogeneity=2.0)
PLANE = replace(SCALAR, dim=2, rotated=None, spectra="ends", mixing=None)
PAIRS = [(form, row) for form in CLOSED_FORMS.values() for row in form.quantities]
WIDER = [{}, {"weights": "free"}, {"weights": (0.2, 0.7)}, {"gradient_noise": 3.0},
         {"shared_noise": (0.0, 1.0)},
         {"heterogeneity": None, "distance": (0.5, 2.0)}, {"heterogeneity": None, "minimizers": 2.0},
         {"start": (-1.0, 2.0)}, {"mixing": (0.1, 0.4)}, {"curvature_range": (0.3, 2.0), "condition": 100.0},
         {"step_size": (0.01, 0.05)}, {"local_steps": (1, 4), "n_rounds": (1, 5), "staleness": (0, 1)}]
"""Each of the class above in one way more."""


NOT_PROVED = {"rotated": {"distance", "minimizers", "mixing", "weights"}, "at rounds": {"minimizers"}}
CASES = [pytest.param(form, row, more, id=f"{form.name}.{row}-{form.family}-{more}")
         for form, row in PAIRS for more in WIDER
         if not NOT_PROVED.get(form.family, set()) & set(more)
         and not (QUANTITIES[row].at_rounds and form.apart and "minimizers" in more)]


def require_proved(form, row, more):
    """The worst of members that a search draws lies below what is proved, and the member at its point too."""
    cls, aim = replace(PLANE if form.family == "rotated" else SCALAR, **more), f"{form.name}.{row}"
    worst, found = certify(aim, cls, tolerance=1e-3), sample(aim, cls, 12, seed=1)
    slack = 1e-9 * worst.upper + 1e-12
    assert np.isfinite(found).all() and found.max() <= worst.upper + slack
    assert worst.closed and worst.problem_class is cls and worst.verify() <= worst.upper + slack


@pytest.mark.parametrize(("form", "row", "more"), CASES[::7])
def test_no_member_of_a_class_is_worse_than_what_is_certified_of_it(form, row, more):
    require_proved(form, row, more)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "row", "more"), CASES)
def test_no_member_of_any_class_is_worse_than_what_is_certified_of_it(form, row, more):
    require_proved(form, row, more)


@pytest.mark.parametrize(("aim", "more"), [
    ("fa_ld.stationary_w2", {"weights": "free"}), ("fa_ld.stationary_bias", {"heterogeneity": None,
                                                                             "minimizers": 2.0}),
    ("de_sgld.w2", {"start": (-2.0, 1.0)}), ("stale.variance_ratio", {"gradient_noise": 2.0})], ids=str)
def test_a_search_comes_to_what_is_certified(aim, more):
    """So that the class of the certificate is no larger than that of the search."""
    cls = replace(SCALAR, **more)
    found, worst = search(aim, cls, budget=400), certify(aim, cls, tolerance=1e-6)
    assert worst.lower * (1.0 - 1e-2) <= found.value <= worst.upper * (1.0 + 1e-9)


def test_a_search_in_the_plane_comes_to_what_is_certified():
    found = search("fa_ld.stationary_bias", PLANE, budget=600)
    worst = certify("fa_ld.stationary_bias", PLANE)
    assert worst.family == "rotated" and worst.lower * 0.99 <= found.value <= worst.upper * (1.0 + 1e-9)
    turned = np.linalg.eigvalsh(found.problem.hessians)
    np.testing.assert_allclose(turned, [[1.0, 4.0]] * 2, rtol=1e-12)


def keywords(form, row):
    """Arguments of `certify` of every kind, but not too many unknowns."""
    given = {"curvatures": (1.0, 3.0), "step_size": 0.1 if form.name == "fa_hmc" else 0.05}
    given |= {"mixing": (0.1, 0.3)} if "mixing" in form.numbers else {}
    given |= {"shared_noise": 0.25, "gradient_noise": 0.5} if "shared_noise" in form.numbers else {}
    given |= dict.fromkeys(form.counts, 1)
    if form.apart and QUANTITIES[row].of_minimizers:
        given[form.apart[0]] = 2.0
    return given | ({"start": -1.0, "n_rounds": 2} if QUANTITIES[row].at_rounds else {})


@pytest.mark.parametrize(("form", "row"), PAIRS, ids=[f"{one.name}.{row}-{one.family}" for one, row in PAIRS])
def test_arguments_and_the_class_of_them_are_certified_alike(form, row):
    one = certify(f"{form.name}.{row}", family=form.family, **keywords(form, row))
    two = certify(f"{form.name}.{row}", one.problem_class)
    for name in ("lower", "upper", "at_point", "point", "boxes", "closed", "family", "start", "n_rounds"):
        assert repr(getattr(one, name)) == repr(getattr(two, name)), name


def test_the_worst_of_several_numbers_is_the_worst_of_each():
    cls = replace(SCALAR, local_steps=(1, 3, 6), n_rounds=(1, 4), start=(2.0, 2.0))
    whole = certify("fa_ld.w2", cls)
    each = {(steps, rounds): certify("fa_ld.w2", replace(cls, local_steps=steps, n_rounds=rounds))
            for steps, rounds in itertools.product((1, 3, 6), (1, 4))}
    worst = max(each, key=lambda key: each[key].lower)
    assert (whole.algorithm.local_steps, whole.n_rounds) == worst and whole.point == each[worst].point
    assert whole.lower == each[worst].lower and whole.upper == max(one.upper for one in each.values())
    assert whole.boxes == sum(one.boxes for one in each.values()) and whole.verify() > 0.0


@pytest.mark.parametrize(("quantity", "cls", "message"), [
    ("fa_ld.stationary_w2", replace(SCALAR, dim=2, rotated=False), "dim=2 of the problem class must be 1"),
    ("fa_ld.stationary_w2", replace(SCALAR, n_clients=3, mixing=None), "n_clients=3 .* must be 2"),
    ("fa_ld.stationary_w2", replace(PLANE, spectra="free"), "spectra='free' .* must be 'ends'"),
    ("fa_ld.stationary_w2", replace(PLANE, weights="free"), "weights='free' .* must be 'equal'"),
    ("fa_ld.stationary_w2", replace(PLANE, heterogeneity=None), "heterogeneity=None .* must be given"),
    ("fa_ld.stationary_w2", replace(PLANE, condition=1.0), r"curvatures=1\.0 must be a pair"),
    ("fa_hmc.stationary_w2", PLANE, r"quantity='fa_hmc\.stationary_w2' must be"),
    ("fa_ld.w2", replace(SCALAR, start_variance=1.0), r"start_variance=1\.0 .* must be 0\.0"),
    ("fa_ld.w2", replace(SCALAR, start=2.0), "start=2 of .* must be 0 or a pair"),
    ("fa_ld.w2", replace(SCALAR, heterogeneity=None), "heterogeneity=None .* must be given: of minimizers"),
    ("fa_ld.stationary_w2", replace(SCALAR, step_size=None), "step_size=None of the problem class must be"),
    ("fa_ld.stationary_w2", ProblemClass(step_size=0.01), "6 unknowns .* must be at most 4"),
    ("fa_ld.stationary_w2", replace(SCALAR, step_size=0.6), r"step_size=0\.6 must be less than 2/curvature"),
    ("stale.w2", replace(SCALAR, staleness=(0, 2)), "staleness=2 must be at most 1"),
    ("fa_ld.stationary_w2", replace(SCALAR, curvature_range=(1e-50, 1.0), condition=100.0),
     r"curvatures\[0\]=1e-50 must be between"),
    ("fa_ld.stationary_w2", {"condition": 2.0}, "problem_class=.* must be")], ids=str)
def test_classes_of_which_nothing_is_proved_are_refused(quantity, cls, message, monkeypatch):
    monkeypatch.setattr("theory.worst_case.certifying._maximum", lambda *_: pytest.fail("work has begun"))
    with pytest.raises(ValueError, match=message):
        certify(quantity, cls)


@pytest.mark.parametrize("given", [{"step_size": 0.05}, {"family": "rotated"}, {"local_steps": 2}], ids=str)
def test_a_class_and_arguments_about_it_are_refused(given):
    with pytest.raises(ValueError, match=f"{next(iter(given))}=.* left out: the problem class says it"):
        certify("fa_ld.stationary_w2", SCALAR, **given)


@pytest.mark.parametrize(("ranges", "message"), [
    ({"curvature_range": (2.0, 1.0)}, r"curvature_range=\(2, 1\) is empty"),
    ({"curvature_range": (0.0, 1.0)}, r"curvature_range\[0\]=0\.0 must be greater"),
    ({"curvature_range": (1.0, 3.0), "condition": 2.0}, "condition=2 must be left out where curvature_range"),
    ({"spectra": "ends"}, "spectra='ends' must be of rotated"), ({"spectra": "own"}, "spectra='own' must be"),
    ({"weights": 1.0}, r"weights=1\.0 must lie strictly"),
    ({"weights": (0.5, 1.5)}, r"weights\[1\]=1\.5 must"),
    ({"weights": 0.5, "n_clients": 3}, r"weights=0\.5 must be left out with n_clients=3"),
    ({"mixing": 0.0}, r"mixing=0\.0 must lie strictly"),
    ({"mixing": 0.2, "n_clients": 1}, r"mixing=0\.2 must be left out"),
    ({"distance": -1.0}, r"distance=-1\.0 must be"),
    ({"distance": 1.0, "dim": 2}, "distance=.* must be left out"),
    ({"distance": 1.0, "heterogeneity": 1.0}, "distance=.* must be left out"),
    ({"start": (2.0, 1.0)}, r"start=\(2, 1\) is empty"), ({"start": -1.0}, r"start=-1\.0 must be at least 0"),
    ({"gradient_noise": (-1.0, 1.0)}, r"gradient_noise\[0\]=-1\.0 must"),
    ({"heterogeneity": (1.0,)}, "heterogeneity=.* must be a number, or a pair")], ids=str)
def test_ranges_that_are_none_are_refused(ranges, message):
    with pytest.raises(ValueError, match=message):
        ProblemClass(**ranges)


def test_members_are_within_the_pairs_of_their_class():
    cls = ProblemClass(curvature_range=(0.3, 2.0), distance=(1.0, 2.0), weights=(0.2, 0.4),
                       start=(-3.0, -1.0), gradient_noise=(0.5, 0.7), start_variance=0.0,
                       shared_noise=0.0)
    maker, _ = maker_of("fa_ld.w2_bound", cls, "ratio", None)
    random = np.random.default_rng(0).random((30, maker.size))
    for point in [*random, np.zeros(maker.size), np.ones(maker.size)]:
        one = maker(point)
        curvatures, (_, (distance,)) = one.problem.hessians, one.problem.minimizers
        assert curvatures.min() >= 0.3 and curvatures.max() <= 2.0 and 1.0 <= distance <= 2.0
        assert 0.2 <= one.problem.weights[0] <= 0.4 and 0.5 <= one.problem.gradient_noise <= 0.7
        assert -3.0 <= one.start <= -1.0  # from the first client's minimizer, which is 0
    cls = ProblemClass(heterogeneity=(1.0, 2.0), mixing=(0.1, 0.2), start=(1.0, 4.0), start_variance=0.0)
    maker, _ = maker_of("de_sghmc.w2_bound", cls, "ratio", None)
    for point in np.random.default_rng(0).random((30, maker.size)):
        one = maker(point)
        gradients = one.problem.hessians / 2.0 * (one.problem.minimizer - one.problem.minimizers)
        largest = np.abs(gradients).max()
        assert 1.0 - 1e-9 <= largest <= 2.0 + 1e-9 and 0.1 <= one.algorithm.mixing[0, 1] <= 0.2
        assert 1.0 - 1e-9 <= (one.start - one.problem.minimizer).item() <= 4.0 + 1e-9
        assert not np.any(one.algorithm.start_velocity)


@pytest.mark.parametrize(("aim", "name", "reads"), [
    ("fa_ld.stationary_w2", "weight", lambda one: one.problem.weights[0]),
    ("de_sgld.stationary_w2", "mixing", lambda one: one.algorithm.mixing[0, 1])])
def test_what_is_free_is_as_free_as_in_a_search(aim, name, reads):
    cls = replace(SCALAR, weights="free", mixing=None, step_size=1e-3)
    maker, _ = maker_of(aim, cls, "ratio", None)
    ends = sorted(reads(maker(np.full(maker.size, end))) for end in (0.0, 1.0))
    (part,) = parts_of(aim, cls)
    np.testing.assert_allclose(part.ranges[name], ends, rtol=1e-12)


def test_two_groups_of_clients_know_no_distance():
    for more in ({"heterogeneity": 1.0}, {"distance": 1.0}):
        with pytest.raises(ValueError, match=r"(heterogeneity|distance)=.* must be left out: two groups"):
            search("fa_hmc.lower_bound", ProblemClass(**more), budget=40)


def test_records_name_what_came_later_only_where_it_is_given():
    """Else the stored file would change with every new range."""
    for record in worst_cases.load().values():
        assert encoded(from_record(record).problem_class) == record["problem_class"]
    cls = replace(SCALAR, curvature_range=(0.5, 2.0), condition=100.0, weights=(0.2, 0.4), start=(0.0, 1.0))
    found = search("fa_ld.w2_bound", cls, budget=40)
    record = json.loads(json.dumps(to_record(found)))
    assert from_record(record).problem_class == cls and to_record(from_record(record)) == record
    kept = set(record["problem_class"])
    assert {"curvature_range", "mixing"} <= kept and not {"spectra", "distance"} & kept
    assert isinstance(found.algorithm, fs.FALD)


# --- the scoreboard's random settings, and those of the search for false bounds


def require_member(cls, problem, algorithm, n_rounds):
    """Clients, dimension, curvatures, steps, ages and rounds are the class's."""
    assert problem.n_clients in cls.n_clients and problem.dim in cls.dim and n_rounds in cls.n_rounds
    diagonal = problem.structure == "diagonal"
    values = problem.hessians if diagonal else np.linalg.eigvalsh(problem.hessians)
    assert values.max() <= cls.condition * values.min() * (1.0 + 1e-9)
    for name in ("local_steps", "leapfrog_steps", "staleness"):
        asked = getattr(algorithm, name, None)
        assert not isinstance(asked, int) or asked in getattr(cls, name), name


@pytest.mark.parametrize("kind", random_settings.CLASSES, ids=lambda kind: kind.__name__)
def test_the_scoreboard_draws_from_its_classes_and_from_all_of_them(kind):
    cls, rng = random_settings.CLASSES[kind], np.random.default_rng(0)
    drawn = [random_settings.DRAWS[kind](rng) for _ in range(120)]
    for problem, algorithm, n_rounds, _ in drawn:
        assert isinstance(algorithm, kind)
        require_member(cls, problem, algorithm, n_rounds)
    assert {problem.n_clients for problem, *_ in drawn} == set(cls.n_clients)
    assert {problem.dim for problem, *_ in drawn} == set(cls.dim)
    assert max(n_rounds for *_, n_rounds, _ in drawn) >= 0.9 * max(cls.n_rounds)
    if "local_steps" in vars(drawn[0][1]):
        assert {algorithm.local_steps for _, algorithm, *_ in drawn} == set(cls.local_steps)


def test_the_search_for_false_bounds_draws_from_the_scoreboards_class():
    cls = random_settings.RANDOM
    drawn = [settings.draw(1, number, "FALD").problem for number in range(150)]
    for problem in drawn:
        values = np.linalg.eigvalsh(problem.hessians)
        assert values.max() <= cls.condition * values.min() * (1.0 + 1e-9)
    assert {problem.n_clients for problem in drawn} == set(cls.n_clients)
    assert {problem.dim for problem in drawn} == set(cls.dim)


def test_several_shapes_are_no_class_of_a_search():
    for aim in ("fa_ld.w2_bound", "stale.w2_recursion"):
        with pytest.raises(ValueError, match=r"dim=\(1, 2, 3\) of the problem class must be one number"):
            search(aim, random_settings.RANDOM, budget=40)
    with pytest.raises(ValueError, match=r"dim=\(1, 2, 3\) of the problem class must be 1"):
        certify("fa_ld.stationary_w2", replace(random_settings.RANDOM, step_size=1e-4, rotated=False))
