"""Searches for the worst problem of a class: what they find, that it comes again, how a budget is spent."""

from __future__ import annotations

import copy
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
import theory
from theory import worst_case
from theory.worst_case import Found, ProblemClass, search_result, searching
from theory.worst_case.exact_values import Instance, of_theorem
from theory.worst_case.targets import maker_of

SMALL = ProblemClass(local_steps=(1, 5), n_rounds=(1, 3))
TEN = ProblemClass(condition=10.0, step_size=0.02, local_steps=5, heterogeneity=3.0, gradient_noise=0.0,
                   weights="equal", shared_noise=0.0)
"""The class whose stationary W2 is known by certified intervals."""


@pytest.mark.parametrize(("aim", "value"), [
    ("fa_hmc.divergence_bound", 0.5), ("fa_ld.discretization_bound", 0.125),
    ("fa_ld.w2_bound_decreasing", np.sqrt(2.0) / 45.0)])
def test_suprema_that_are_known(aim, value):
    """One half, one eighth and sqrt(2)/45: nearly reached, and never above."""
    found = worst_case.search(aim, SMALL, budget=400)
    assert value * (1.0 - 1e-3) <= found.value <= value * (1.0 + 1e-9)
    assert found.verify().holds and found.verify().hypotheses_met


def test_one_seventh_is_harder_to_find():
    """Lemma E.2 of FA-LD, to two percent."""
    found = worst_case.search("fa_ld.gradient_moment_bound", budget=1000)
    assert 0.98 / 7.0 <= found.value <= (1.0 + 1e-9) / 7.0
    assert found.verify().holds and found.verify().hypotheses_met


def test_the_worst_stationary_distance_of_scalar_clients():
    """As certified by interval arithmetic: W2^2 = .0153709 with both curvatures at an end or within."""
    found = worst_case.search("fa_ld.stationary_w2", TEN, budget=400)
    assert found.value**2 == pytest.approx(0.0153709, rel=1e-3) and found.unknowns == 4
    assert found.verify() == pytest.approx(found.value, rel=1e-9)


def test_problems_that_do_not_commute_are_worse():
    """d = 1 is not the worst: in two dimensions no commuting problem comes to .018058, rotated ones do."""
    plane = worst_case.search("fa_ld.stationary_w2", replace(TEN, dim=2, rotated=True), budget=800)
    assert plane.value**2 > 0.0185
    commuting = worst_case.search("fa_ld.stationary_w2", replace(TEN, dim=2, rotated=False), budget=400)
    assert commuting.value**2 <= 0.018058


def test_a_bound_that_fails_is_found():
    """A printed form known to be false within its hypotheses: a search has to see it."""
    found = worst_case.search("fa_hmc.divergence_bound", SMALL, variant="printed", budget=200)
    assert found.value > 1.5 and found.verify().contradicts_theorem
    assert not worst_case.search("fa_hmc.divergence_bound", SMALL, budget=60).verify().contradicts_theorem


def test_same_seed_same_bytes_and_another_seed_another_search():
    for aim in ("fa_ld.w2_bound", "de_sghmc.w2_bound"):
        found = [worst_case.search(aim, SMALL, budget=120, seed=seed) for seed in (3, 3, 4)]
        texts = [json.dumps(worst_case.to_record(one)) for one in found]
        assert texts[0] == texts[1] != texts[2]
        assert found[0].spread == found[1].spread != found[2].spread


def test_the_objectives_are_what_they_say():
    """Read from the bound and the exact law of the instance, by hand."""
    for objective in ("ratio", "excess", "stationary"):
        found = worst_case.search("fa_ld.w2_bound", SMALL, budget=120, objective=objective)
        known = theory.constants(found.problem, found.algorithm, found.start)
        bound = theory.fa_ld.w2_bound(known, found.algorithm, n_rounds=found.n_rounds)
        law = theory.exact_law(found.problem, found.algorithm, found.n_rounds, start=found.start)
        exact, start = law.w2()[1:], np.sqrt(bound.terms["initialization"] * bound.value)[1:]  # of a root
        by_hand = {"ratio": (law.w2() / bound.value).max(),
                   "excess": ((exact - start) / (bound.value[1:] - start)).max(),
                   "stationary": theory.stationary_law(found.problem, found.algorithm).w2(
                       found.problem.target()) / bound.floor}[objective]
        assert found.value == pytest.approx(by_hand, rel=1e-9)
        assert found.objective == objective and (found.round is None) == (objective == "stationary")


def test_a_far_start_makes_a_bound_tight_and_says_nothing():
    """The ratio is that of the start; without it the bound is loose."""
    ratio = worst_case.search("fa_ld.w2_bound", SMALL, budget=200)
    excess = worst_case.search("fa_ld.w2_bound", SMALL, budget=200, objective="excess")
    assert ratio.binding == "initialization" and excess.binding == "discretization"
    assert excess.value < 0.1 < ratio.value


def test_constants_of_the_class_are_weaker_than_those_of_the_instance():
    values = []
    for told in ("instance", "class"):
        found = worst_case.search("fa_ld.w2_bound", ProblemClass(constants=told, start=0.0), budget=300)
        values.append(found.value)
        bound = found.verify().bound
        given = found.known if told == "class" else theory.constants(found.problem, found.algorithm)
        assert (given.smoothness == 100.0) or told == "instance"
        assert bound.hypotheses_hold
    assert values[1] <= values[0] * (1 + 1e-9)


def test_bounds_that_are_rounding_have_no_ratio():
    """A start in the target of a bound that is 0 there: 0/0, and a search must not climb it."""
    instance = Instance(fs.Quadratic([1.0, 1.0], [[0.0], [0.0]]), fs.FALD(1e-9), np.zeros(1), 1)
    entry = next(one for one in theory.theorems() if one.id == "fa_ld.divergence_bound")
    assert of_theorem(entry, "corrected", "ratio", instance).value == -np.inf


# --- how a budget is spent


def bowl(point):
    return 1.0 - float(((point - 0.3) ** 2).sum())


@pytest.mark.parametrize("budget", [40, 100, 1000, 1234])
def test_the_budget_is_used_up_and_not_exceeded(budget):
    seen = []

    def function(point):
        seen.append(point.copy())
        assert ((0.0 <= point) & (point <= 1.0)).all()
        return bowl(point)

    counter, told = searching.Counter(function), []
    searching.spend(counter, 4, budget, 0, lambda counter: told.append(counter.parts[-1][0]))
    assert len(seen) == counter.evaluations == budget
    assert told == [name for name, _ in searching.parts_of(budget)]
    assert sum(count for _, count in searching.parts_of(budget)) == budget
    values = [bowl(point) for point in seen]
    assert counter.best == max(values) and bowl(counter.at) == counter.best


def test_restarts_are_independent_and_the_best_of_each_is_kept():
    counter = searching.Counter(bowl)
    searching.spend(counter, 3, 500, 1, lambda counter: None)
    values = [value for _, value, _ in counter.parts]
    assert len(values) == 5 and max(values) == counter.best > 1.0 - 1e-4
    assert len(set(values)) == 5


def test_an_optimum_in_a_corner_and_on_a_plateau_is_found():
    for function, best in ((lambda z: float(z.sum()), 5.0), (lambda z: float((z > 0.9).sum()), 5.0),
                           (lambda z: -np.inf if z[0] < 0.95 else float(z[1]), 1.0)):
        counter = searching.Counter(function)
        searching.spend(counter, 5, 1500, 0, lambda counter: None)
        assert counter.best == best


def test_restarts_agree_or_they_do_not():
    aim, cls = "fa_ld.discretization_bound", replace(SMALL, start=0.0, gradient_noise=0.0, weights="equal")
    found = worst_case.search(aim, cls, budget=800)
    assert found.agreed and "the restarts agree" in repr(found) and len(found.spread) == 4
    few = worst_case.search(aim, cls, budget=400)
    assert not few.agreed and "were few" in repr(few)  # below 100 evaluations per unknown
    apart = copy.copy(found)
    object.__setattr__(apart, "parts", (("direct", 0.1), ("restart 1", found.value), ("restart 2", 0.2)))
    assert not apart.agreed


# --- Ctrl-C, progress, records


def interrupted_after(count, monkeypatch):
    """A search that is stopped from the keyboard."""
    done = []
    whole = of_theorem

    def counted(*arguments):
        done.append(1)
        if len(done) > count:
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr("theory.worst_case.search_result.of_theorem", counted)


def test_ctrl_c_keeps_what_there_is(monkeypatch):
    maker, _ = maker_of("fa_ld.w2_bound", SMALL, "ratio", None)
    corners = len(list(maker.corners()))
    with monkeypatch.context() as patched:
        interrupted_after(corners + 70, patched)
        found = worst_case.search("fa_ld.w2_bound", SMALL, budget=200)
    assert found.interrupted and found.evaluations == 71 and "interrupted" in repr(found)
    assert found.verify().holds and not found.agreed
    whole = worst_case.search("fa_ld.w2_bound", SMALL, budget=200)
    assert found.parts[0] == whole.parts[0] and found.value <= whole.value
    with pytest.raises(ValueError, match="interrupted=True"):
        worst_case.to_record(found)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        interrupted_after(3, patched)
        worst_case.search("fa_ld.w2_bound", SMALL, budget=200)


def test_progress_is_a_line_a_part(capsys):
    worst_case.search("fa_ld.discretization_bound", budget=60, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5 and "direct" in lines[0] and "after 60 of 60 evaluations" in lines[-1]
    worst_case.search("fa_ld.discretization_bound", budget=60)
    assert capsys.readouterr().err == ""


RECORDED = ("fa_ld.w2_bound", "fa_ld.w2_bound_partial", "fa_ld.w2_bound_decreasing", "fa_hmc.w2_bound",
            "fa_hmc.lower_bound", "de_sgld.w2_bound", "de_sghmc.w2_bound", "stale.w2_recursion")


@pytest.mark.parametrize("aim", RECORDED)
def test_a_record_comes_back_to_the_last_bit(aim):
    for cls in (ProblemClass(), ProblemClass(dim=2, constants="class")):
        found = worst_case.search(aim, cls, budget=40)
        record = worst_case.to_record(found)
        back = worst_case.from_record(json.loads(json.dumps(record)))
        assert worst_case.to_record(back) == record and back.parts == found.parts
        assert back.problem == found.problem and back.algorithm == found.algorithm
        assert worst_case.verify(record).tightness == pytest.approx(found.value, rel=1e-9)


def changed_in_one_bit(text):
    """The next float64 of one in hexadecimal."""
    return np.nextafter(float.fromhex(text), np.inf).item().hex()


def test_a_record_that_was_changed_is_refused():
    record = worst_case.to_record(worst_case.search("fa_ld.w2_bound", ProblemClass(dim=2), budget=40))
    assert worst_case.verify(record).holds
    bit = copy.deepcopy(record)
    bit["problem"]["hessians"][1][0][0] = changed_in_one_bit(bit["problem"]["hessians"][1][0][0])
    for bad, message in ((bit, "it was changed"), ({**record, "budget": 41}, "it was changed"),
                         ({name: record[name] for name in record if name != "start"}, "must have start"),
                         ([], "record=")):
        with pytest.raises(ValueError, match=message):
            worst_case.verify(bad)
    wrong = {**record, "value": changed_in_one_bit(record["value"])}
    assert search_result.digest(wrong) != record["digest"]
    far = {**record, "value": (2.0 * float.fromhex(record["value"])).hex()}
    with pytest.raises(ValueError, match="comes out as"):
        worst_case.verify({**far, "digest": search_result.digest(far)})
    alien = {**record, "algorithm": {"class": "Popen"}}
    with pytest.raises(ValueError, match="class='Popen' must be one of"):
        worst_case.verify({**alien, "digest": search_result.digest(alien)})


def test_an_instance_outside_the_hypotheses_is_refused():
    found = worst_case.search("fa_ld.w2_bound", SMALL, budget=40)
    object.__setattr__(found, "algorithm", fs.FALD(1.5 / found.problem.hessians.max()))
    with pytest.raises(ValueError, match="outside the hypotheses"):
        found.verify()


@pytest.mark.parametrize(("arguments", "message"), [
    ({"aim": "fa_ld.no"}, r"aim='fa_ld.no' must be one of"), ({"aim": 3}, "aim=3 must be one of"),
    ({"aim": "fa_ld.no_w2"}, "aim='fa_ld.no_w2' must be"),
    ({"aim": "stale.mse_rate"}, "must be a bound, or a quantity"),
    ({"aim": "privacy.run_bound"}, "has no instances to search"),
    ({"aim": "fa_ld.w2_bound", "budget": 10}, "budget=10 must be at least 40"),
    ({"aim": "fa_ld.w2_bound", "seed": -1}, "seed=-1"),
    ({"aim": "fa_ld.w2_bound", "variant": "no"}, "variant='no'"),
    ({"aim": "fa_ld.w2_bound", "objective": "no"}, "objective='no'"),
    ({"aim": "fa_hmc.divergence_bound", "objective": "excess"}, "objective='excess' of fa_hmc.divergence"),
    ({"aim": "fa_hmc.divergence_bound", "objective": "stationary"}, "must be an upper bound on W2 with a"),
    ({"aim": "fa_ld.stationary_w2", "variant": "printed"}, "variant='printed' must be left out"),
    ({"aim": "fa_ld.stationary_w2", "objective": "excess"}, "objective='excess' must be left out"),
    ({"aim": "fa_ld.w2_bound", "problem_class": "all"}, "problem_class='all' must be"),
    ({"aim": "fa_ld.w2_bound", "progress": 2}, "progress=2")], ids=str)
def test_what_cannot_be_searched_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        worst_case.search(**arguments)


def test_every_bound_can_be_searched_but_those_about_privacy():
    entries = {entry.id: entry for entry in theory.theorems()}
    found = {aim for aim in worst_case.aims() if aim in entries}
    left = {id for id, entry in entries.items() if entry.kind != "rate"} - found
    assert left == {id for id, entry in entries.items() if id.startswith("privacy.") and entry.kind != "rate"}
    assert isinstance(worst_case.search("fa_ld.w2_bound", budget=40), Found)


def test_what_is_outside_the_hypotheses_is_lost(monkeypatch):
    """However large it is: here every third value beyond the corners, and a hundred times the bound."""
    right, calls = searching.evaluate, itertools.count()

    def sometimes(*given):
        found = right(*given)
        number = next(calls)
        return replace(found, value=100.0, inside=False) if number > 100 and number % 3 == 0 else found

    monkeypatch.setattr(searching, "evaluate", sometimes)
    cls = replace(SMALL, step_size=(1e-3, 5e-3), condition=5.0)
    found = worst_case.search("fa_ld.divergence_bound", cls, budget=150)
    assert 0 < found.lost < 150 and found.value < 1.0 and found.verify().holds
