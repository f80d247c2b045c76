"""What `certify` refuses, says and survives: bad classes, too few boxes, Ctrl-C, and wrong formulas."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from theory.worst_case import boxes, certify, certifying
from theory.worst_case.closed import CLOSED_FORMS
from theory.worst_case.numbers import Dual

W2, AT, RATIO = "fa_ld.stationary_w2", "fa_ld.w2", "fa_ld.variance_ratio"
TEN = {"curvatures": (1.0, 10.0), "step_size": 0.02, "local_steps": 5}
TWO = {**TEN, "distance": 2.0}
PLANE = {**TEN, "heterogeneity": 3.0, "family": "rotated"}
STEP = {"curvatures": (1.0, 10.0), "step_size": 0.02}
NET = {**STEP, "mixing": 0.25, "distance": 2.0}
HMC = {"curvatures": (1.0, 10.0), "step_size": 0.1, "distance": 2.0}
PARTS = {**TEN, "heterogeneity": 2.0, "weight": (0.2, 0.7), "start": 1.0, "n_rounds": 2}
"""Searched in four parts: two for the lighter client, two for the side of the start."""
KNOWN = 0.11019296
"""Of W2 over the class TWO."""

BAD = [  # quantity, arguments, what the message says
    (W2, {**TWO, "curvatures": (10.0, 1.0)}, r"curvatures=\(10\.0, 1\.0\) must be a range with low < high"),
    (W2, {**TWO, "curvatures": (1.0, 1.0)}, r"curvatures=\(1\.0, 1\.0\) must be .*one number"),
    (W2, {**TWO, "curvatures": (1.0, 2.0, 3.0)}, r"curvatures=\(1\.0, 2\.0, 3\.0\) must be a number, or"),
    (W2, {**TWO, "curvatures": ()}, r"curvatures=\(\) must be"),
    (W2, {**TWO, "curvatures": (0.0, 1.0)}, r"curvatures\[0\]=0\.0 must be greater than 0"),
    (W2, {**TWO, "curvatures": (-1.0, 1.0)}, r"curvatures\[0\]=-1\.0 must be greater than 0"),
    (W2, {**TWO, "curvatures": (1.0, math.inf)}, r"curvatures\[1\]=inf must be finite"),
    (W2, {**TWO, "curvatures": (math.nan, 1.0)}, r"curvatures\[0\]=nan must be finite"),
    (W2, {**TWO, "curvatures": ("1", "10")}, r"curvatures\[0\]='1' must be a real number"),
    (W2, {**TWO, "curvatures": np.array([1.0, 10.0])}, r"curvatures=array.* must be"),
    (W2, {**TWO, "step_size": True}, "step_size=True must be a real number"),
    (W2, {**TWO, "step_size": (0.02, 0.01)}, r"step_size=\(0\.02, 0\.01\) must be"),
    (W2, {**TWO, "step_size": 0.0}, r"step_size=0\.0 must be greater than 0"),
    (W2, {**TWO, "step_size": None}, "step_size=None must be"),
    (W2, {**TWO, "shared_noise": 1.5}, r"shared_noise=1\.5 must"),
    (W2, {**TWO, "shared_noise": (-0.5, 0.5)}, r"shared_noise\[0\]=-0\.5 must"),
    (W2, {**TWO, "weight": 1.0}, r"weight=1\.0 must lie strictly between 0 and 1"),
    (W2, {**TWO, "weight": (0.0, 0.5)}, r"weight\[0\]=0\.0 must lie strictly"),
    (W2, {**TWO, "gradient_noise": -1.0}, r"gradient_noise=-1\.0 must"),
    (W2, {**TWO, "distance": -2.0}, r"distance=-2\.0 must"),
    (W2, {**TWO, "distance": "far"}, "distance='far' must be a real number"),
    (W2, {**TWO, "local_steps": 0}, "local_steps=0 must be"),
    (W2, {**TWO, "local_steps": (1, 5)}, r"local_steps=\(1, 5\) must be"),
    (W2, {**TWO, "local_steps": 2.5}, r"local_steps=2\.5 must be"),
    (W2, {**TWO, "local_steps": 10**9}, "local_steps=1000000000 must be"),
    (W2, {**TWO, "tolerance": 0.0}, r"tolerance=0\.0 must be greater than 0"),
    (W2, {**TWO, "tolerance": math.nan}, "tolerance=nan must"),
    (W2, {**TWO, "most_boxes": 0}, "most_boxes=0 must"),
    (W2, {**TWO, "progress": "loud"}, "progress='loud' must be"),
    # what belongs together, and what does not
    (W2, TEN, "distance=None, heterogeneity=None: exactly one of distance and heterogeneity must be given"),
    (W2, {**TWO, "heterogeneity": 1.0}, r"distance=2\.0, heterogeneity=1\.0: exactly one"),
    (W2, {**TWO, "mixing": 0.25}, r"mixing=0\.25 must be left out: fa_ld\.stationary_w2 of the commuting"),
    (W2, {**TWO, "leapfrog_steps": 3}, "leapfrog_steps=3 must be left out"),
    (W2, {**TWO, "staleness": 1}, "staleness=1 must be left out"),
    (W2, {**TWO, "start": 1.0}, r"start=1\.0 must be left out"),
    (W2, {**TWO, "n_rounds": 3}, "n_rounds=3 must be left out"),
    (AT, TWO, "n_rounds=None must be given"),
    (AT, {**TWO, "n_rounds": 0}, "n_rounds=0 must be"),
    (AT, {**TWO, "n_rounds": 3, "start": (1.0, -1.0)}, r"start=\(1\.0, -1\.0\) must be a range"),
    (AT, {**TWO, "n_rounds": 3, "start": math.inf}, "start=inf must be finite"),
    (RATIO, TWO, r"distance=2\.0 must be left out: fa_ld\.variance_ratio"),
    (RATIO, {**TEN, "heterogeneity": 0.0}, r"heterogeneity=0\.0 must be left out"),
    ("de_sgld.stationary_w2", {**STEP, "distance": 2.0}, "mixing=None must be given"),
    ("de_sgld.stationary_w2", {**NET, "local_steps": 5}, "local_steps=5 must be left out"),
    ("de_sgld.stationary_w2", {**NET, "weight": 0.25}, r"weight=0\.25 must be left out"),
    ("de_sgld.stationary_w2", {**NET, "mixing": 0.0}, r"mixing=0\.0 must lie strictly"),
    ("stale.stationary_w2", {**STEP, "distance": 2.0}, r"distance=2\.0 must be left out"),
    ("stale.stationary_w2", {**STEP, "staleness": 2}, "staleness=2 must be"),
    (W2, {**PLANE, "distance": 1.0}, r"distance=1\.0 must be left out: .* of the rotated family"),
    (W2, {**PLANE, "weight": 0.25}, r"weight=0\.25 must be left out"),
    (W2, {**PLANE, "curvatures": 3.0}, r"curvatures=3\.0 must be a pair \(low, high\)"),
    (W2, {**PLANE, "heterogeneity": None}, "heterogeneity=None: exactly one of heterogeneity"),
    # which quantities there are
    ("fa_ld.stationary_w3", TWO, r"quantity='fa_ld\.stationary_w3' must be .*'fa_ld\.stationary_w2'"),
    ("stationary_w2", TWO, "quantity='stationary_w2' must be"),
    ("stale.stationary_bias", STEP,
     r"quantity='stale\.stationary_bias' must be one of 15 names; did you mean"),
    ("fa_ld.w2", {**PLANE, "n_rounds": 3}, r"quantity='fa_ld\.w2' must be .*'fa_ld\.stationary_bias'"),
    (3, TWO, "quantity=3 must be"), (W2, {**TWO, "family": "bent"}, "family='bent' must be"),
    # what float64 would not hold the powers of
    ("fa_ld.stationary_bias", {**TEN, "heterogeneity": 1e160}, r"ity=1e\+160 must be between 1e-40 and 1e"),
    (W2, {**TWO, "curvatures": (1e-300, 1.0)}, r"curvatures\[0\]=1e-300 must be between .* other units"),
    (W2, {**TWO, "step_size": 1e-301}, "step_size=1e-301 must be between"),
    # too many unknowns
    (W2, {**TWO, "step_size": (0.01, 0.02), "weight": (0.2, 0.5), "distance": (1.0, 2.0)},
     r"5 unknowns \(curvature_1, curvature_2, step_size, weight, distance\) must be at most 4"),
    # what is not stable somewhere in the class: the largest of all ends
    (W2, {**TWO, "step_size": 0.2}, r"step_size=0\.2 must be less than 2/curvature=0\.2 at the largest"),
    (W2, {**TWO, "step_size": (0.01, 0.3)}, r"step_size=0\.3 must be less than 2/curvature=0\.2"),
    (W2, {**TWO, "curvatures": 200.0}, r"step_size=0\.02 must be less than 2/curvature=0\.01"),
    (W2, {**PLANE, "step_size": 0.21}, r"step_size=0\.21 must be less than 2/curvature"),
    ("fa_hmc.stationary_w2", {**HMC, "step_size": 0.64}, r"step_size=0\.64 must be less than 2/sqrt\(curv"),
    ("fa_hmc.stationary_w2", {**HMC, "leapfrog_steps": 10}, "leapfrog_steps=10 must be less than 9.8"),
    ("de_sgld.stationary_w2", {**NET, "step_size": 0.16}, r"step_size=0\.16 must be less than \(2 - 2\*mix"),
    ("de_sgld.stationary_w2", {**NET, "mixing": (0.1, 0.95)}, r"less than .*=0\.01 at .* mixing 0\.95"),
    ("stale.stationary_w2", {**STEP, "step_size": 0.2}, r"must be less than 2/curvature=0\.2 .* staleness=0"),
    ("stale.w2", {**STEP, "step_size": 0.1, "staleness": 1, "n_rounds": 3}, r"1/curvature=0\.1 .*ness=1"),
]


@pytest.mark.parametrize(("quantity", "given", "words"), BAD, ids=range(len(BAD)))
def test_bad_classes_are_refused_before_any_work(quantity, given, words, monkeypatch):
    """Naming argument, value and condition."""
    monkeypatch.setattr(certifying, "_maximum", lambda *given: pytest.fail("work has begun"))
    with pytest.raises(ValueError, match=words):
        certify(quantity, **given)


@pytest.mark.parametrize(("quantity", "given"), [
    (W2, {**TWO, "step_size": 0.19999}), (W2, {**PLANE, "step_size": 0.199}),
    ("stale.stationary_w2", {**STEP, "step_size": 0.09999, "staleness": 1}),
    ("de_sgld.stationary_w2", {**NET, "step_size": 0.1499}),
    ("fa_hmc.stationary_w2", {**HMC, "leapfrog_steps": 9})])
def test_what_is_just_stable_is_taken(quantity, given):
    """Limits are the limits, and not half of them; the worst is finite, though large."""
    found = certify(quantity, **given, tolerance=1e-2)
    assert found.closed and found.upper < 1e3 and found.verify() == pytest.approx(found.lower, rel=1e-9)


@pytest.mark.parametrize("most", [1, 2, 3, 20, 100])
def test_with_too_few_boxes_it_is_still_true(most):
    """Not closed, which the text says too, and on both sides of what is known."""
    found = certify(W2, **TWO, tolerance=1e-8, most_boxes=most)
    assert found.lower <= KNOWN * (1 + 1e-6) and found.upper >= KNOWN * (1 - 1e-6)
    assert not found.closed and not found.interrupted and found.boxes <= most
    assert repr(found).endswith(f"{found.boxes} boxes, not closed)")
    assert found.relative_width == pytest.approx((found.upper - found.lower) / found.lower)
    assert found.verify() == pytest.approx(found.lower, rel=1e-9)
    several = certify(AT, **PARTS, most_boxes=most)
    assert several.upper >= several.lower and several.boxes <= max(most, 4) and not several.closed


@pytest.mark.parametrize("call", [1, 2, 5, 9])
def test_ctrl_c_leaves_a_true_interval(call, monkeypatch):
    """In whatever batch it comes: `interrupted`, also in the text, the known value between the ends."""
    batches, right = itertools.count(1), boxes._halved

    def stopped(*given):
        if next(batches) == call:
            raise KeyboardInterrupt
        return right(*given)

    monkeypatch.setattr(boxes, "BATCH", 4)
    monkeypatch.setattr(boxes, "_halved", stopped)
    found = certify(W2, **TWO, tolerance=1e-8)
    assert found.interrupted and not found.closed and "boxes, interrupted)" in repr(found)
    assert found.lower <= KNOWN * (1 + 1e-6) and found.upper >= KNOWN * (1 - 1e-6)
    assert found.verify() == pytest.approx(found.lower, rel=1e-9)
    batches = itertools.count(1)  # in the first of four parts: the others are looked at once
    parts = certify(AT, **PARTS, tolerance=1e-8)
    assert parts.interrupted and not parts.closed and parts.boxes >= 4
    monkeypatch.undo()
    whole = certify(AT, **PARTS, tolerance=1e-2)
    assert parts.upper >= whole.lower and parts.lower <= whole.upper


def test_text_and_progress(monkeypatch, capsys):
    """The point by name, the family where it is not the usual one, and a line now and then."""
    found = certify(W2, **TWO)
    assert repr(found).startswith("Certified(fa_ld.stationary_w2 in [0.110")
    assert " at curvature_1=10, curvature_2=2.8" in repr(found)
    assert repr(found).endswith(f", {found.boxes} boxes)") and found.relative_width < 1e-4
    assert repr(certify(W2, **PLANE)).startswith("Certified(fa_ld.stationary_w2 (rotated) in [")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(boxes, "SECONDS", 0.0)
    certify(W2, **TWO, progress=True)
    assert "open" in capsys.readouterr().out


@pytest.mark.parametrize("key", list(CLOSED_FORMS), ids="-".join)
@pytest.mark.parametrize("part", ["offset_sq", "excess", "precision"])
def test_a_formula_that_is_off_by_a_thousandth_does_not_verify(key, part, monkeypatch):
    """In any of the three moments of any form: the exact laws say no."""
    right = CLOSED_FORMS[key]

    def wrong(values, n_rounds):
        return [one._replace(**{part: getattr(one, part) * 1001 / 1000})
                for one in right.moments(values, n_rounds)]

    given = {"curvatures": (1.0, 4.0), "step_size": 0.2 if "leapfrog_steps" in right.counts else 0.05}
    given |= {"mixing": 0.25} if "mixing" in right.numbers else {}
    given |= {"leapfrog_steps": 3} if "leapfrog_steps" in right.counts else {}
    given |= {"local_steps": 3} if "local_steps" in right.counts else {}
    given |= {"heterogeneity": 3.0, "family": right.family} if right.apart else {}
    if not right.apart and part == "offset_sq":
        given |= {"start": 3.0, "n_rounds": 2}
    quantity = f"{right.name}.{'w2' if 'n_rounds' in given else 'stationary_w2'}"
    assert certify(quantity, **given).verify() > 0.0
    monkeypatch.setitem(CLOSED_FORMS, key, replace(right, moments=wrong))
    with pytest.raises(ValueError, match="comes out as"):
        certify(quantity, **given).verify()


def test_a_gradient_that_is_too_short_is_seen_in_the_supremum(monkeypatch):
    """Half of every product's gradient: what would be certified then is below the known value."""
    right = Dual.__mul__

    def wrong(self, other):
        found = right(self, other)
        return Dual(found.value, found.gradient / 2)

    monkeypatch.setattr(Dual, "__mul__", wrong)
    assert certify(W2, **TWO, tolerance=1e-8).upper < KNOWN * (1 - 1e-6)


def test_a_problem_that_is_refused_is_refused_before_any_work(monkeypatch):
    """Instances at both ends of the class are made at first, though only the one that is found is shown."""
    key = ("fa_ld", "commuting")

    def refusing(values):
        raise ValueError("gradient_noise is not what it has to be")

    monkeypatch.setattr(certifying, "_maximum", lambda *given: pytest.fail("work has begun"))
    monkeypatch.setitem(CLOSED_FORMS, key, replace(CLOSED_FORMS[key], instance=refusing))
    with pytest.raises(ValueError, match="gradient_noise is not"):
        certify(W2, **TWO)


def test_what_rounding_leaves_open_verifies():
    """Two hundred leapfrogs widen the value at the point; the exact law lies in what is left open."""
    found = certify("fa_hmc.stationary_w2", curvatures=2.0, step_size=0.01, leapfrog_steps=2000 // 10,
                    heterogeneity=1.0)
    assert found.closed and found.lower <= found.verify() <= found.at_point
    assert found.at_point == found.upper  # all is known: one point is the class
    apart = replace(found, lower=found.lower * 1.5, at_point=found.lower * 1.6)
    with pytest.raises(ValueError, match="comes out as"):
        apart.verify()


def test_no_class_is_closed_without_an_upper_end():
    """An infinite end is not near to anything, however large the tolerance."""
    found = boxes.maximise(lambda x: 1 / x[0], [(-1.0, 1.0)], tolerance=1e300, most_boxes=50)
    assert found.upper == math.inf and not found.closed
