"""Certified suprema: against the exact laws, against grids and random problems, and known values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import theory
from theory.worst_case import certify
from theory.worst_case.closed import CLOSED_FORMS, QUANTITIES
from theory.worst_case.exact_values import of_quantity

TEN = {"curvatures": (1.0, 10.0), "step_size": 0.02, "local_steps": 5}
HMC = {"curvatures": (1.0, 2.5), "step_size": 0.1, "local_steps": 4, "leapfrog_steps": 3}
PAIRS = [(form, row) for form in CLOSED_FORMS.values() for row in form.quantities]
NAMES = [f"{form.name}.{row}-{form.family}" for form, row in PAIRS]


def limit(form, given):
    """Some step size below which all of a class is stable."""
    highest = max(given[name] if np.isscalar(given[name]) else given[name][1] for name in form.curvatures)
    if "leapfrog_steps" in form.counts:
        return 1.9 / (given["leapfrog_steps"] * math.sqrt(highest))
    if "mixing" in form.numbers:
        return (1.99 - 2.0 * np.max(given["mixing"])) / highest
    return (1.99 - given.get("staleness", 0)) / highest


def one_of_each(form, rng, highest=8):
    """Random numbers for all that a form takes, but its curvatures; edges among them."""
    drawn = {"shared_noise": rng.choice([0.0, 1.0, rng.uniform()]),
             "weight": rng.choice([0.5, rng.uniform(0.1, 0.9)]),
             "gradient_noise": rng.choice([0.0, rng.uniform(0.0, 3.0)]), "mixing": rng.uniform(0.05, 0.45)}
    counts = {"local_steps": int(rng.integers(1, highest)), "leapfrog_steps": int(rng.integers(1, 5)),
              "staleness": int(rng.integers(0, 2))}
    given = {name: float(drawn[name]) for name in form.numbers if name != "step_size"}
    return given | {name: counts[name] for name in form.counts}


def evaluated(form, row, values, n_rounds):
    """The quantity by the closed form in floats."""
    found = QUANTITIES[row].objective(form.moments(values, n_rounds))
    return np.sqrt(found) if QUANTITIES[row].squared else found


@pytest.mark.parametrize(("form", "row"), PAIRS, ids=NAMES)
def test_closed_forms_are_the_exact_laws(form, row):
    """At random problems: weights, shared and gradient noise, both ways to be apart, starts on both sides."""
    rng = np.random.default_rng(41)
    for number in range(60):
        values = one_of_each(form, rng)
        curvatures = rng.uniform(0.3, 4.0, len(form.curvatures))
        values |= zip(form.curvatures, sorted(curvatures) if form.family == "rotated" else curvatures,
                      strict=True)
        values["step_size"] = rng.uniform(0.01, 0.95) * limit(form, values)
        values |= {name: float(rng.uniform(*ends)) for name, ends in form.hidden}
        apart = {form.apart[number % len(form.apart)]: rng.uniform(0.0, 3.0)} if form.apart else {}
        values |= {"start": float(rng.choice([0.0, rng.normal()])), "side": int(rng.choice([-1, 1])), **apart,
                   "lighter": 1 if values.get("weight", 0.5) <= 0.5 else 2}
        n_rounds = int(rng.choice([1, 2, 3, 17])) if QUANTITIES[row].at_rounds else None
        found, at = evaluated(form, row, values, n_rounds), form.instance(values)
        exact = of_quantity(row, replace(at, n_rounds=n_rounds or 1)).value
        unit = math.sqrt(at.algorithm.target(at.problem).variances.sum()) if QUANTITIES[row].squared else 1.0
        assert abs(found - exact) <= 1e-9 * exact + 1e-12 * unit, values


def test_every_form_is_certified_here_as_by_name():
    """What stands in the registry is what may be asked for, and every quantity has its own law."""
    assert {(form.name, form.family) for form, _ in PAIRS} == set(CLOSED_FORMS)
    assert {row for _, row in PAIRS} == set(QUANTITIES)
    # a new one: extend `limit`
    assert {name for name, _ in CLOSED_FORMS} == {"fa_ld", "fa_hmc", "de_sgld", "stale"}


def random_class(form, row, rng):
    """Arguments of `certify` for a random class of two unknowns, all of it stable."""
    low = 10.0 ** rng.uniform(-1.0, 1.0)
    ends = (low, low * 10.0 ** rng.uniform(0.05, 1.5))
    given = one_of_each(form, rng, 6) | dict.fromkeys(form.curvatures, ends)
    if row == "stationary_bias" and "local_steps" in given:
        given["local_steps"] += 1  # none after one local step, and 0 is met to no relative width
    step = rng.uniform(0.05, 0.9) * limit(form, given)
    unknown = len(form.curvatures if form.family == "commuting" else form.hidden)
    given["step_size"] = step if unknown == 2 else (0.3 * step, step)
    if QUANTITIES[row].of_minimizers and form.apart:
        given[rng.choice(form.apart)] = rng.uniform(0.0, 3.0) / low
    if QUANTITIES[row].at_rounds:
        given |= {"start": float(rng.choice([0.0, rng.normal()])), "n_rounds": int(rng.integers(1, 8))}
    return given


def asked(form, row, given, **more):
    """`certify` of such a class."""
    rest = {name: value for name, value in given.items() if name not in form.curvatures} | more
    return certify(f"{form.name}.{row}", family=form.family, curvatures=given[form.curvatures[0]], **rest)


def largest(form, row, given, points):
    """The largest value at these points of the cube of unknowns, in floats, on both sides of the start."""
    given = dict(given)
    if form.family == "rotated":
        given |= zip(form.curvatures, given[form.curvatures[0]], strict=True)
    given |= dict(form.hidden)
    n_rounds = given.pop("n_rounds", None)
    ranges = [name for name, value in given.items() if isinstance(value, tuple)]
    values = {"start": 0.0, "lighter": 1 if given.get("weight", 0.5) <= 0.5 else 2, **given}
    if form.apart and not {"distance", "heterogeneity"} & set(given):
        values["distance"] = 0.0
    for name, at in zip(ranges, points, strict=True):
        values[name] = given[name][0] + (given[name][1] - given[name][0]) * at
    return max(float(np.max(evaluated(form, row, {**values, "side": side}, n_rounds))) for side in (1, -1))


@pytest.mark.parametrize(("form", "row"), PAIRS, ids=NAMES)
def test_no_value_on_a_grid_is_above(form, row):
    """A thousand points along each of two unknowns, ends included: none above, and lower is near the best."""
    rng = np.random.default_rng(42)
    axis = np.linspace(0.0, 1.0, 1001 if row == "stationary_w2" else 201)
    given = random_class(form, row, rng)
    found = asked(form, row, given, tolerance=1e-5)
    best = largest(form, row, given, np.meshgrid(axis, axis))
    assert found.closed and best <= found.upper * (1.0 + 1e-12)
    assert best * (1.0 - 1e-5 - 1e-12) <= found.lower <= found.upper
    assert found.lower == 0.0 or found.relative_width <= 1.01e-5


@pytest.mark.parametrize(("form", "row"), PAIRS, ids=NAMES)
def test_no_random_problem_is_above(form, row):
    """Random classes at a coarse tolerance: upper is above 200 problems of each, and lower verifies."""
    rng = np.random.default_rng(43)
    for _ in range(10 if row == "stationary_w2" else 5):
        given = random_class(form, row, rng)
        found = asked(form, row, given, tolerance=1e-2, most_boxes=5000)
        best = largest(form, row, given, rng.uniform(size=(2, 200)))
        assert best <= found.upper * (1.0 + 1e-12) + 1e-13, given
        assert abs(found.verify() - found.lower) <= 1e-9 * found.lower + 1e-11, given
        assert found.lower <= found.upper and set(found.point) <= {*given, *dict(form.hidden)}


KNOWN = {  # quantity, class, value, point
    "condition 10": ("fa_ld.stationary_w2", {**TEN, "distance": 2.0}, 0.110193, (10.0, 2.8929)),
    "condition 100": ("fa_ld.stationary_w2", {"curvatures": (1.0, 100.0), "step_size": 0.002,
                                              "local_steps": 10, "distance": 2.0}, 0.2216805, None),
    "round 3": ("fa_ld.w2", {**TEN, "distance": 2.0, "start": 3.0, "n_rounds": 3}, 1.529118, None),
    "round 20": ("fa_ld.w2", {**TEN, "distance": 2.0, "start": 3.0, "n_rounds": 20}, 0.2652669, (1.0, 1.0)),
    "variance": ("fa_ld.variance_ratio", TEN, 1.257878, None),
    "bounded gradients": ("fa_ld.stationary_w2", {**TEN, "heterogeneity": 3.0}, math.sqrt(0.0153709),
                          (10.0, 1.0)),
    "FA-HMC": ("fa_hmc.stationary_w2", {**HMC, "distance": 2.0}, 0.047483, (1.0, 2.5)),
    "rotated": ("fa_ld.stationary_w2", {**TEN, "heterogeneity": 3.0, "family": "rotated"},
                math.sqrt(0.034092), None),
}
"""Found before by another program, and by searches."""


@pytest.mark.parametrize("name", KNOWN)
def test_known_suprema(name):
    """To all the digits that are known, at the point that is."""
    quantity, given, value, point = KNOWN[name]
    found = certify(quantity, **given, tolerance=1e-6)
    assert found.closed and value * (1.0 - 2e-5) <= found.lower <= found.upper <= value * (1.0 + 2e-5)
    assert found.relative_width <= 1e-6
    assert point is None or sorted(found.point.values()) == pytest.approx(sorted(point), rel=1e-4)
    assert found.verify() == pytest.approx(found.lower, rel=1e-9)


@pytest.mark.parametrize(("given", "value"), [  # functions of u, the step size times the largest curvature
    ({"staleness": 0}, lambda u: 1.0 / (1.0 - u / 2.0)),
    ({"staleness": 1}, lambda u: 2.0 * (1.0 + u) / ((1.0 - u) * (2.0 + u)))])
def test_stale_gradients_are_worst_at_the_largest_curvature(given, value):
    """Both in closed form; without delay the distance is that of FA-LD with one local step."""
    for step in (0.001, 0.05, 0.09):
        found = certify("stale.variance_ratio", curvatures=(1.0, 10.0), step_size=step, tolerance=1e-8,
                        **given)
        assert found.point == {"curvature": 10.0} and found.lower <= value(10.0 * step) * (1.0 + 1e-14)
        assert found.upper >= value(10.0 * step) * (1.0 - 1e-14) and found.relative_width < 1e-8
    alone = certify("stale.stationary_w2", curvatures=(1.0, 10.0), step_size=0.05, tolerance=1e-8)
    assert alone.lower == pytest.approx(math.sqrt(0.1 / (1.0 - 0.25)) - math.sqrt(0.1), rel=1e-8)
    together = certify("fa_ld.stationary_w2", curvatures=(1.0, 10.0), step_size=0.05, distance=0.0,
                       tolerance=1e-8)
    assert together.lower == pytest.approx(alone.lower, rel=2e-8)


def test_one_leapfrog_step_is_a_langevin_step():
    """FA-HMC with K = 1 and step size eta is FA-LD with eta^2/2, at every round."""
    rest = {"curvatures": (1.0, 10.0), "local_steps": 3, "shared_noise": 0.25, "weight": 0.25,
            "heterogeneity": 3.0, "tolerance": 1e-7}
    for row, more in (("stationary_w2", {}), ("stationary_bias", {}),
                      ("w2", {"n_rounds": 5, "start": -1.0})):
        one = certify(f"fa_hmc.{row}", step_size=0.25, **rest, **more)
        other = certify(f"fa_ld.{row}", step_size=0.03125, **rest, **more)
        assert one.lower <= other.upper and other.lower <= one.upper and one.closed and other.closed


def test_more_unknowns_are_worse_and_contain_the_worst_of_fewer():
    """A range of steps, weights and gradients, ending where it was fixed before: three and four unknowns."""
    one = certify("fa_ld.stationary_w2", **TEN, distance=2.0)
    three = certify("fa_ld.stationary_w2", **TEN | {"step_size": (0.01, 0.02)}, distance=2.0)
    four = certify("fa_ld.stationary_w2", **TEN | {"step_size": (0.01, 0.02)}, distance=(1.5, 2.0),
                   tolerance=1e-2)
    assert three.upper >= one.lower and four.upper >= three.lower and three.closed and four.closed
    assert three.lower == pytest.approx(one.lower, rel=2e-4) and three.point["step_size"] == 0.02
    weights = certify("fa_ld.stationary_w2", **TEN, weight=(0.2, 0.7), heterogeneity=3.0, tolerance=1e-3)
    for weight in (0.2, 0.4, 0.5, 0.6, 0.7):
        fixed = certify("fa_ld.stationary_w2", **TEN, weight=weight, heterogeneity=3.0, tolerance=1e-3)
        assert fixed.lower <= weights.upper
    assert weights.verify() == pytest.approx(weights.lower, rel=1e-9)


@pytest.mark.parametrize("apart", ["distance", "heterogeneity"])
def test_starts_and_gradients_point_in_the_worse_direction(apart):
    """Bounded gradients have a free sign, clients at known places have none."""
    rest = {**TEN, "weight": 0.3, "n_rounds": 2, apart: 2.0, "tolerance": 1e-6}
    one, other = (certify("fa_ld.w2", start=start, **rest) for start in (0.4, -0.4))
    assert (abs(one.lower - other.lower) < 1e-6) == (apart == "heterogeneity")
    both = certify("fa_ld.w2", start=(-0.4, 0.4), **rest)
    assert max(one.lower, other.lower) <= both.upper and both.lower <= max(one.upper, other.upper)
    for found in (one, other, both):
        assert found.verify() == pytest.approx(found.lower, rel=1e-9)
        gradients = found.problem.hessians.reshape(2) * found.problem.minimizers.reshape(2)
        if apart == "heterogeneity":  # from x_*, where the larger gradient has the size that is allowed
            assert np.abs(gradients).max() == pytest.approx(2.0, rel=1e-12)
            assert found.problem.weights @ gradients == pytest.approx(0.0, abs=1e-12)
        law = theory.exact_law(found.problem, found.algorithm, 2, start=np.array([found.start]))
        assert law.w2()[-1] == pytest.approx(found.lower, rel=1e-9)


def test_the_worst_of_several_parts():
    """The worse direction of the gradients may be either, and the worst weight on either side of one half."""
    form, axis = CLOSED_FORMS["fa_ld", "commuting"], np.linspace(0.0, 1.0, 201)
    for weight, start in ((0.3, 0.4), (0.7, 0.4), (0.3, -0.4)):
        given = {"weight": weight, "heterogeneity": 20.0, "start": start, "n_rounds": 4, "shared_noise": 0.0}
        found = certify("fa_ld.w2", **TEN, **given, tolerance=1e-6)
        ends = dict.fromkeys(form.curvatures, TEN["curvatures"])
        known = {"step_size": 0.02, "local_steps": 5, "gradient_noise": 0.0}
        best = largest(form, "w2", {**known, **given, **ends}, np.meshgrid(axis, axis))
        assert 0.5754028 * (1.0 - 1e-6) <= found.lower and best <= found.upper <= 0.5754029 * (1.0 + 1e-6)
        assert found.verify() == pytest.approx(found.lower, rel=1e-9)
    noisy = {**TEN, "heterogeneity": 1.0, "gradient_noise": 10.0, "tolerance": 1e-4}
    for weights, worst in (((0.3, 0.6), 0.3), ((0.4, 0.7), 0.7), ((0.3, 0.45), 0.3), ((0.55, 0.7), 0.7)):
        found = certify("fa_ld.stationary_w2", weight=weights, **noisy)
        assert found.point["weight"] == worst
        assert found.lower * (1.0 - 1e-6) <= 0.26331295 <= found.upper * (1.0 + 1e-6)


def test_all_numbers_known():
    """No unknown is a class of one problem: its value, and nothing to search."""
    for form, row in PAIRS:
        if form.family == "commuting":
            given = random_class(form, row, np.random.default_rng(44)) | dict.fromkeys(form.curvatures, 2.0)
            given["step_size"] = 0.2 * limit(form, given)
            found = asked(form, row, given)
            assert found.boxes == 1 and found.point == {} and found.upper - found.lower <= 1e-12
            assert found.closed or row == "stationary_bias"  # of equal clients it is 0
            assert found.verify() == pytest.approx(found.lower, rel=1e-9, abs=1e-12)
    nothing = certify("fa_ld.stationary_bias", curvatures=1.0, step_size=0.1, distance=0.0)
    assert nothing.closed and nothing.lower == 0.0 and nothing.upper < 1e-140
    assert nothing.relative_width == math.inf and nothing.verify() == 0.0


@pytest.mark.parametrize("quantity", ["fa_ld.stationary_w2", "de_sgld.stationary_w2", "fa_hmc.stationary_w2",
                                      "stale.stationary_w2"])
def test_small_steps_close_as_quickly(quantity):
    """What is of first order is not left to a difference: sqrt(T) e/(1 + sqrt(1 + e)) at the stiffest."""
    step = 1e-9
    more = {} if quantity.startswith("stale") else {"heterogeneity": 0.0}
    more |= {"mixing": 0.25} if quantity.startswith("de") else {}
    own = math.sqrt(2.0 * step) if quantity.startswith("fa_hmc") else step  # a leapfrog is half its square
    found = certify(quantity, curvatures=(1.0, 2.0), step_size=own, most_boxes=20_000, **more)
    assert found.closed and found.relative_width <= 1e-4
    if not quantity.startswith("de"):
        excess = step * 2.0 / (2.0 - step * 2.0)
        known = excess / (1.0 + math.sqrt(1.0 + excess)) / math.sqrt(2.0)
        assert found.lower <= known * (1.0 + 1e-7) and known <= found.upper * (1.0 + 1e-7)


def test_long_runs_of_stale_gradients_stay_sharp():
    """Ten thousand updates, one number known to all its digits; and near the limit of stability."""
    for step, n_rounds in ((0.05, 10_000), (0.09, 1000), (0.0999, 100)):
        found = certify("stale.w2", curvatures=10.0, step_size=step, staleness=1, n_rounds=n_rounds,
                        start=3.0)
        assert found.relative_width < 1e-9 and found.verify() == pytest.approx(found.lower, rel=1e-9)
    ranged = certify("stale.w2", curvatures=(1.0, 10.0), step_size=0.05, staleness=1, n_rounds=200, start=3.0)
    assert ranged.closed and ranged.boxes < 1000


@pytest.mark.parametrize("name", ["fa_ld", "fa_hmc"])
def test_one_local_step_has_no_bias(name):
    """Exactly 0, which is seen at once."""
    found = certify(f"{name}.stationary_bias", curvatures=(1.0, 10.0), step_size=0.02, heterogeneity=1.0)
    assert found.lower == 0.0 and found.upper < 1e-140 and found.closed and found.boxes < 10


def test_the_start_is_in_its_range():
    """On whichever side the gradients make it worse."""
    for start in ((-2.0, -1.0), (1.0, 2.0)):
        found = certify("fa_ld.w2", curvatures=(1.0, 10.0), step_size=0.03, local_steps=5, heterogeneity=30.0,
                        weight=0.3, n_rounds=2, start=start, tolerance=1e-3)
        assert start[0] <= found.start == found.point["start"] <= start[1]
        assert found.verify() == pytest.approx(found.lower, rel=1e-9)
