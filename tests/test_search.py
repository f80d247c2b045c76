"""The search for false bounds: what it finds, what it must find, and that it repeats itself.

The long version is `python -m tools.search`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
import theory
from tools.search import __main__ as command
from tools.search.adversary import climb
from tools.search.judge import Outcome, compare, counts_against, entries, judge
from tools.search.numbers import SIZE, Numbers
from tools.search.precise import NotRedone, exact_w2
from tools.search.report import Findings
from tools.search.settings import KINDS, build, draw
from tools.search.shared import Shared

SEED = 10
SETTINGS = 60


def entry(id):
    (found,) = [each for each in theory.theorems() if each.id == id]
    return found


def scaled(id, factor):
    """A theorem that claims `factor` times the bound of the theorem `id`, after the start."""
    original = entry(id)

    def function(*arguments, **named):
        bound = original.function(*arguments, **named)
        share = np.where(bound.rounds > 0, factor, 1.0)
        return replace(bound, value=share * bound.value,
                       terms={name: share * part for name, part in bound.terms.items()})

    return replace(original, function=function)


# --- what it finds


def test_no_bound_fails_within_its_hypotheses_in_random_settings():
    found, chosen = Findings(lambda outcome: ""), entries()
    for number in range(SETTINGS):
        with Shared():
            for outcome in judge(draw(SEED, number), chosen):
                found.add(outcome)
    assert not found.failures, found.lists()
    inside = {row[0] for row, kept in found.rows.items() if kept.inside}
    assert len(inside) >= 0.9 * len(chosen), found.missing(chosen)


@pytest.mark.parametrize("id", ["fa_ld.w2_bound", "fa_hmc.w2_bound", "de_sgld.w2_bound", "de_sghmc.w2_bound",
                                "fa_hmc.lower_bound"])
def test_no_ratio_above_one_is_climbed_to(id):
    result = climb(entry(id), evaluations=150, seed=SEED)
    assert result.best is not None and not result.best.fails, result.best
    assert result.evaluations == 150 and all(np.isfinite(ratio) for ratio in result.ratios.values())


# --- what it must find


@pytest.mark.parametrize(("id", "factor"), [
    ("fa_ld.w2_bound", 0.1), ("fa_ld.second_moment_bound", 0.99), ("fa_hmc.w2_bound", 0.999),
    ("fa_hmc.lower_bound", 1.01), ("de_sgld.w2_bound", 0.92), ("de_sghmc.velocity_bound", 0.97)])
def test_a_false_bound_is_found(id, factor):
    false = climb(scaled(id, factor), evaluations=1000, seed=SEED)
    assert false.best.fails and false.best.later > 1.0
    kind, code = false.best.setting.kind, false.best.setting.numbers.code
    again = compare(scaled(id, factor), false.best.variant, replace(
        build(kind, Numbers.from_code(code)), n_rounds=false.best.setting.n_rounds,
        long_rounds=false.best.setting.long_rounds))
    assert (again.grade, again.ratio) == ("violation", false.best.ratio)


def test_a_false_bound_makes_the_command_fail(monkeypatch, capsys):
    given = ["--settings", "18", "--seed", str(SEED), "--only", "fa_ld.w2_bound"]
    assert command.main(given) == 0
    assert "ABOVE ONE WITHIN THE HYPOTHESES: 0" in capsys.readouterr().out
    monkeypatch.setattr(command, "entries", lambda only: [scaled("fa_ld.w2_bound", 1e-3)])
    assert command.main(given) == 1
    shown = capsys.readouterr().out
    assert "--setting" in shown and "ABOVE ONE WITHIN THE HYPOTHESES: 0" not in shown


def of_the_exact_law(factor):
    """A theorem that claims W2 itself, times a factor."""
    original = entry("de_sgld.w2_bound")

    def function(constants, algorithm, *, law, **named):
        return replace(original.function(constants, algorithm, **named), value=factor * law.w2(),
                       terms={"all": factor * law.w2()}, assumptions=())

    def inputs(problem, algorithm, constants, n_rounds, start):
        return {"law": theory.exact_law(problem, algorithm, n_rounds, start=start)}

    return replace(original, function=function, inputs=inputs)


@pytest.mark.parametrize(("below", "grades"), [(1e-9, {"violation"}), (2e-12, {"tie", "rounding"}),
                                               (1e-14, {"rounding", "below"}), (-1e-6, {"below"})])
def test_what_is_above_by_rounding_alone_does_not_count(below, grades):
    setting = build("DESGLD", Numbers(np.full(SIZE, 0.4)))
    setting = replace(setting, long_rounds=setting.n_rounds)
    found = compare(of_the_exact_law(1.0 - below), entry("de_sgld.w2_bound").variants[0], setting)
    assert found.grade in grades, found
    assert found.fails == (grades == {"violation"})


def test_a_bound_that_fails_by_less_than_the_check_sees_is_redone():
    """Its float64 ratio is above one after the start, so that 60 digits have to decide."""
    setting = build("DESGLD", Numbers(np.full(SIZE, 0.4)))
    found = compare(of_the_exact_law(1.0 - 1e-13), "printed", replace(setting, long_rounds=setting.n_rounds))
    assert "60 digits" in found.note and not found.fails


def test_readings_of_a_corrected_print_do_not_count():
    false, true = replace(entry("fa_ld.w2_bound"), variants=("corrected", "printed")), entry("fa_ld.w2_bound")
    true = replace(true, variants=("proof", "printed"))
    assert [counts_against(false, variant) for variant in false.variants] == [True, False]
    assert [counts_against(true, variant) for variant in true.variants] == [True, True]
    assert not Outcome("a", "printed", False, "violation").fails
    assert Outcome("a", "printed", True, "violation").fails


# --- that it repeats itself


def test_settings_reproduce_by_seed_and_by_code():
    first = [draw(SEED, number) for number in range(30)]
    for number in reversed(range(30)):
        again, other = draw(SEED, number), draw(SEED + 1, number)
        by_code = build(first[number].kind, Numbers.from_code(first[number].numbers.code))
        for setting in (again, by_code):
            assert setting.kind == first[number].kind
            assert np.array_equal(setting.problem.hessians, first[number].problem.hessians)
            assert np.array_equal(setting.problem.weights, first[number].problem.weights)
            assert repr(setting.algorithm) == repr(first[number].algorithm)
            assert repr(setting.start) == repr(first[number].start)
            assert setting.n_rounds == first[number].n_rounds
            assert setting.long_rounds == first[number].long_rounds
        assert not np.array_equal(again.numbers.values, other.numbers.values)


def test_every_kind_is_drawn_and_ranges_are_kept():
    settings = [draw(SEED, number) for number in range(300)]
    assert {setting.kind for setting in settings} == set(KINDS)
    for setting in settings:
        problem = setting.problem
        assert 1 <= problem.n_clients <= 6 and 1 <= problem.dim <= 3
        values = np.linalg.eigvalsh(problem.dense_hessians)
        assert (values[:, -1] / values[:, 0]).max() <= 1e3 * (1.0 + 1e-9)
    for kind in KINDS:  # the corners of the cube are settings too
        for value in (0.0, 1.0):
            build(kind, Numbers(np.full(SIZE, value)))


def test_kept_laws_are_given_back_and_nothing_stays_replaced():
    problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1, 2)
    before = theory.exact_law
    with Shared():
        assert theory.exact_law is not before
        law = theory.exact_law(problem, algorithm, 5)
        assert theory.exact_law(problem, algorithm, 5) is law
        assert theory.exact_law(problem, algorithm, 6) is not law
        assert theory.exact_law(problem, algorithm, 5, start=np.zeros(1)) is not law
        assert theory.exact_law(problem, fs.FALD(0.1, 2), 5) is not law
    assert theory.exact_law is before
    assert np.array_equal(before(problem, algorithm, 5).cov, law.cov)


# --- 60 digits


def test_60_digits_agree_with_the_exact_laws():
    seen = {}
    for number in range(30):
        setting = draw(SEED, number)
        rounds = sorted({0, 1, min(setting.n_rounds, 4)})
        try:
            precise = exact_w2(setting.problem, setting.algorithm, setting.start, rounds)
        except NotRedone:
            continue
        law = theory.exact_law(setting.problem, setting.algorithm, rounds[-1], start=setting.start,
                               allow_unstable=True)
        size = float(np.sqrt(law.target.variances.sum()))
        for round, value in zip(rounds, precise, strict=True):
            assert abs(float(value) - law.w2()[round]) <= 1e-11 * max(size, law.w2()[round])
        seen[setting.kind] = seen.get(setting.kind, 0) + 1
    assert set(seen) == {"FALD", "FAHMC", "DESGLD", "DESGHMC"}


def test_60_digits_see_what_float64_cannot():
    """One Euler step from the target of curvature 1: W2 = 1 - sqrt((1-h)^2 + 2h) in size, about h^2/2."""
    problem, step = fs.Quadratic([1.0], [[0.0]]), 2.0**-30
    target = problem.target()
    (value,) = exact_w2(problem, fs.FALD(step), target, [1])
    assert float(value) == pytest.approx(step**2 / 2.0, rel=1e-8)


def test_60_digits_refuse_what_they_do_not_know():
    problem = fs.Quadratic([1.0, 1.0], [[0.0], [1.0]])
    with pytest.raises(NotRedone, match="participation"):
        exact_w2(problem, fs.FALD(0.1, participation=fs.Participation(1, True)), None, [1])
    with pytest.raises(NotRedone, match="StaleSGLD"):
        exact_w2(problem, fs.StaleSGLD(0.1), None, [1])
