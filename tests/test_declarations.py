"""A theorem is declared once: catalogue, docstring and `Bound` cannot say different things."""

import pickle

import pytest
from examples_of import fa_ld_pair

import fedsim as fs
import theory
from theory.declare import registry
from theory.declare.bound import Assumption
from theory.declare.statement import Hypothesis
from theory.fa_ld.notation import theorem


@pytest.fixture(scope="module")
def problem():
    return fa_ld_pair()[0]


@pytest.fixture(scope="module")
def algorithm():
    return fa_ld_pair()[1]


def declared(body, monkeypatch, **options):
    """A theorem made for a test, which leaves the catalogue as it was."""
    monkeypatch.setattr(registry, "_THEOREMS", dict(registry._THEOREMS))
    return theorem("Theorem 0", **{"quantity": "w2", "terms": ("a", "b"), **options})(body)


def test_a_bound_says_what_its_declaration_says(problem, algorithm, monkeypatch):
    def made(s, rounds, variant):
        """One.

        Source: Theorem 0.
        """
        return {"a": s.m + 0.0 * rounds, "b": 1.0 if variant == "printed" else 2.0}

    function = declared(made, monkeypatch, kind="lower", variants={"proof": "with 2", "printed": ""},
                        hypotheses=(Hypothesis("true", lambda s: Assumption.yes("true", s.m > 0.0)),))
    bound = function(theory.constants(problem, algorithm), algorithm, n_rounds=3)
    entry = registry._THEOREMS["fa_ld.made"]
    assert (bound.quantity, bound.kind, bound.theorem) == (entry.quantity, entry.kind, entry.id)
    assert bound.variant == entry.variants[0] == "proof" and bound.terms["b"][0] == 2.0
    assert [a.name for a in bound.assumptions] == list(entry.hypotheses) == ["true"]
    assert bound.start_distance == pytest.approx(theory.constants(problem, algorithm).initial_w2)
    for words in ("Hypotheses: true.", '"proof": with 2', "Lower bound", '"a" and "b"', "Deng et al. (2021)"):
        assert words in function.__doc__


def test_a_declaration_that_says_nothing_or_too_much_is_refused(problem, algorithm, monkeypatch):
    facts = theory.constants(problem, algorithm)
    more = declared(lambda s, rounds: {"c": 1.0}, monkeypatch)
    with pytest.raises(ValueError, match=r"terms=\['c'\] of .* must be among \('a', 'b'\)"):
        more(facts, algorithm, n_rounds=1)
    with pytest.raises(ValueError, match=r"arguments \['other'\] of .* must be among"):
        declared(lambda s, other: {"a": 1.0}, monkeypatch)
    with pytest.raises(ValueError, match="kind='about' must be one of"):
        declared(lambda s: {"a": 1.0}, monkeypatch, kind="about")


def test_hypotheses_exclude_algorithms_and_problems(problem, algorithm, monkeypatch):
    """What a hypothesis refuses, `applies` and `examine` refuse where they know the problem."""
    lone = Hypothesis("one client", refuses=lambda algorithm, problem: "" if problem is None or (
        problem.n_clients == 1) else f"n_clients={problem.n_clients} must be 1")

    def alone(s, rounds):
        """One."""
        return {"a": 1e9}

    declared(alone, monkeypatch, hypotheses=(lone,))
    entry = registry._THEOREMS["fa_ld.alone"]
    single = fs.Quadratic([1.0], [[2.0]])
    assert entry.applies(algorithm) and entry.applies(algorithm, single)
    assert not entry.applies(algorithm, problem)
    assert theory.examine(entry, single, algorithm, 2).holds
    with pytest.raises(ValueError, match=f"n_clients={problem.n_clients} must be 1"):
        theory.examine(entry, problem, algorithm, 2)


def test_a_declaration_that_contradicts_itself_is_refused(monkeypatch):
    def made(s, rounds):
        return {"a": 1.0}

    for options, message in [
            ({"variants": "printed"}, "variants='printed' must be a tuple of names"),
            ({"variants": ()}, r"variants=\(\) of fa_ld.made must name at least one"),
            ({"formerly": {"old": "gone"}}, r"formerly\['old'\] of fa_ld.made='gone' must be 'printed'"),
            ({"hypotheses": (Hypothesis("x", lambda zeta: None),)}, r"arguments \['zeta'\] of a hypothesis")]:
        with pytest.raises(ValueError, match=message):
            declared(made, monkeypatch, **options)
    with pytest.raises(ValueError, match=r"arguments \['more'\] of .* must have words for the docstring"):
        declared(lambda s, *, more: {"a": more}, monkeypatch)


def test_the_warning_of_a_gone_variant_points_at_the_users_line(problem, algorithm):
    facts = theory.constants(problem, algorithm)
    with pytest.warns(DeprecationWarning, match="variant='corrected' of fa_ld.w2_bound is no more") as seen:
        theory.fa_ld.w2_bound(facts, algorithm, n_rounds=1, variant="corrected")
    assert seen[0].filename == __file__


def test_a_theorem_is_the_same_after_pickling():
    for entry in theory.theorems():
        assert pickle.loads(pickle.dumps(entry)) is entry


def test_a_wrong_call_names_the_theorem(problem, algorithm):
    facts = theory.constants(problem, algorithm)
    with pytest.raises(TypeError, match=r"theory.fa_ld.w2_bound\(\): missing .*'n_rounds'; it takes"):
        theory.fa_ld.w2_bound(facts, algorithm)
