"""Constants, bounds, the catalogue and tuning: what no single theorem owns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from examples_of import fa_ld_pair, small_bound

import fedsim as fs
import theory
from theory.declare.bound import Assumption
from theory.fa_ld.notation import theorem
from theory.tuning import best_step_size, compare, rounds_to


@pytest.fixture(scope="module")
def problem():
    return fa_ld_pair()[0]


@pytest.fixture(scope="module")
def algorithm():
    return fa_ld_pair()[1]


# --- constants

def test_constants_of_a_problem_by_hand(problem, algorithm):
    found = theory.constants(problem, algorithm, start=[1.0, 1.0])
    # f = sum w_c f_c has Hessian diag(.25+2.25, .5+1.125) and gradient zero at w-weighted pulls
    minimizer = np.array([2.25 / 2.5, (0.5 - 1.125) / 1.625])
    gradients = np.array([[1.0, 2.0] * (minimizer - [0.0, 1.0]), [3.0, 1.5] * (minimizer - [1.0, -1.0])])
    np.testing.assert_allclose(found.minimizer, minimizer, rtol=1e-14)
    assert (found.dim, found.n_clients, found.convention) == (2, 2, "federated")
    assert (found.strong_convexity, found.smoothness, found.condition_number) == (1.0, 3.0, 3.0)
    np.testing.assert_allclose(found.gradient_at_minimizer, gradients, rtol=1e-13)
    assert found.heterogeneity == pytest.approx(np.linalg.norm(gradients, axis=1).max(), rel=1e-13)
    np.testing.assert_allclose(found.gradient_noise_traces, [3.0, 2.0])
    assert found.initial_distance == pytest.approx(np.linalg.norm(minimizer - 1.0), rel=1e-13)
    assert found.initial_second_moment == pytest.approx(2.0)
    # from a point, W2^2 is the distance squared plus the trace of the target, 2 (1/2.5 + 1/1.625)
    wanted = np.sqrt(((minimizer - 1.0) ** 2).sum() + 2.0 / 2.5 + 2.0 / 1.625)
    assert found.initial_w2 == pytest.approx(wanted, rel=1e-12)


def test_random_starts_count_their_variance(problem, algorithm):
    point = theory.constants(problem, algorithm, start=[1.0, 2.0])
    spread = theory.constants(problem, algorithm, start=fs.Gaussian([1.0, 2.0], [0.5, 1.5]))
    assert spread.initial_distance**2 == pytest.approx(point.initial_distance**2 + 2.0)
    assert spread.initial_second_moment == pytest.approx(7.0)
    at_target = theory.constants(problem, algorithm, start=algorithm.target(problem))
    assert at_target.initial_w2 == pytest.approx(0.0, abs=1e-12)


def test_dense_and_diagonal_problems_agree(problem, algorithm):
    dense = fs.Quadratic(problem.dense_hessians, problem.minimizers, problem.weights, problem.gradient_noise)
    one, other = (theory.constants(p, algorithm) for p in (problem, dense))
    for name in ("strong_convexity", "smoothness", "heterogeneity", "initial_distance", "initial_w2"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12)


class _Components(fs.FALD):
    convention = "components"


class _Global(fs.FALD):
    convention = "global"


def test_conventions_scale_as_the_glossary_says(problem):
    parts = theory.constants(problem, _Components(0.1))
    whole = theory.constants(problem, _Global(0.1))
    assert (parts.convention, whole.convention) == ("components", "global")
    # w_c m_c: 0.25*1, 0.75*1.5; w_c L_c: 0.25*2, 0.75*3
    assert (parts.strong_convexity, parts.smoothness) == (0.25, 2.25)
    np.testing.assert_allclose(parts.gradient_noise_traces, [3.0 / 16, 2.0 * 9 / 16])
    # gradients of the components add up to that of f at its minimizer: zero
    np.testing.assert_allclose(parts.gradient_at_minimizer.sum(axis=0), 0.0, atol=1e-14)
    assert (whole.strong_convexity, whole.smoothness) == (1.625, 2.5)
    assert whole.n_clients == 1 and whole.heterogeneity == 0.0
    assert whole.gradient_noise_traces[0] == pytest.approx((3.0 + 9 * 2.0) / 16)


def test_a_theorem_refuses_the_wrong_convention(problem):
    for cls in (_Components, _Global):
        with pytest.raises(ValueError, match=r"convention='\w+'.*must be 'federated'"):
            theory.fa_ld.w2_bound(theory.constants(problem, cls(0.1)), fs.FALD(0.1), n_rounds=1)


GOOD = {"dim": 2, "strong_convexity": 1.0, "smoothness": 2.0, "heterogeneity": 1.0, "initial_distance": 1.0}


@pytest.mark.parametrize("changes, words", [
    ({"dim": 0}, "dim=0"), ({"dim": 2.5}, "dim=2.5"), ({"strong_convexity": 0.0}, "strong_convexity=0.0"),
    ({"smoothness": 0.5}, "strong_convexity=1 must be at most smoothness=0.5"),
    ({"smoothness": np.inf}, "smoothness=inf"), ({"heterogeneity": -1.0}, "heterogeneity=-1.0"),
    ({"initial_distance": np.nan}, "initial_distance=nan"), ({"weights": [0.5, 0.6]}, "weights sum to 1.1"),
    ({"gradient_noise_traces": [1.0, -1.0]}, "gradient_noise_traces has a negative entry -1"),
    ({"n_clients": 3, "weights": [0.5, 0.5]}, "weights has shape"), ({"n_clients": 0}, "n_clients=0"),
    ({"gradient_at_minimizer": [[3.0, 4.0]]}, "heterogeneity=1 must be at least 5"),
    ({"gradient_at_minimizer": [[3.0]]}, "gradient_at_minimizer has shape"),
    ({"convention": "mine"}, "convention='mine'"), ({"target": 3}, "target=3"),
    ({"minimizer": [1.0]}, "minimizer has shape"),
])
def test_bad_constants(changes, words):
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        theory.Constants(**(GOOD | changes))


def test_constants_by_hand_suffice_and_what_is_missing_is_named(problem, algorithm):
    made = theory.constants(problem, algorithm)
    by_hand = theory.Constants(
        dim=2, strong_convexity=1.0, smoothness=3.0, weights=[0.25, 0.75], heterogeneity=made.heterogeneity,
        gradient_noise_traces=[3.0, 2.0], initial_distance=made.initial_distance)
    one, other = (theory.fa_ld.w2_bound(c, algorithm, n_rounds=9) for c in (made, by_hand))
    np.testing.assert_array_equal(one.value, other.value)
    for name in ("heterogeneity", "initial_distance"):
        poor = dataclasses.replace(by_hand, **{name: None})
        with pytest.raises(ValueError, match=f"{name}=None"):
            theory.fa_ld.w2_bound(poor, algorithm, n_rounds=9)


def test_constants_need_a_known_problem(algorithm):
    with pytest.raises(ValueError, match="problem="):
        theory.constants("problem", algorithm)


@pytest.mark.parametrize("form", [np.array([1.0, 3.0]), np.array([[1.0, 2.0], [3.0, 1.0]])])
def test_a_number_for_gradient_noise_is_a_deviation_of_every_coordinate(form):
    minimizers, noise = np.array([[0.0, 1.0], [2.0, 0.0]]), 0.7
    one, other = (theory.constants(fs.Quadratic(form, minimizers, None, given), fs.FALD(0.1))
                  for given in (noise, np.tile(noise**2 * np.eye(2), (2, 1, 1))))
    np.testing.assert_allclose(one.gradient_noise_traces, 2 * noise**2, rtol=1e-15)
    np.testing.assert_allclose(other.gradient_noise_traces, one.gradient_noise_traces, rtol=1e-15)


# --- bounds and assumptions

def test_assumption_margin_and_verdict_agree():
    with pytest.raises(ValueError, match="contradicts margin"):
        Assumption("x", True, -0.5)
    with pytest.raises(ValueError, match="margin=nan"):
        Assumption("x", True, np.nan)
    assert Assumption.at_most("x", 1.0 / 3.0 * 3.0 + 1e-16, 1.0) == Assumption("x", True, 0.0)
    assert Assumption.at_most("x", 2.0, 1.0) == Assumption("x", False, -1.0)
    assert Assumption.yes("x", False).margin == -1.0
    name, holds, margin = Assumption("x", True, 0.5)
    assert (name, holds, margin) == ("x", True, 0.5)


def test_a_bound_is_the_sum_of_its_terms():
    bound = small_bound()
    np.testing.assert_array_equal(bound.value, [3.0, 2.0])
    with pytest.raises(ValueError, match="must add up"):
        dataclasses.replace(bound, value=np.array([3.0, 2.1]))
    with pytest.raises(ValueError, match="rounds has shape"):
        dataclasses.replace(bound, rounds=np.array([0]))
    with pytest.raises(ValueError, match="must be finite"):
        small_bound(terms={"a": [np.nan, 1.0]})
    with pytest.raises(ValueError, match="negative"):
        small_bound(terms={"a": [1.0, -1.0]})
    with pytest.raises(ValueError, match="kind='sideways'"):
        small_bound(kind="sideways")
    with pytest.raises(ValueError, match="read-only"):
        bound.value[0] = 1.0


def test_vacuity():
    bound = small_bound()
    assert bound.vacuous_at.tolist() == [True, False] and not bound.is_vacuous and not bound.always_vacuous
    short = small_bound(start_distance=1.5)
    assert short.is_vacuous and not short.always_vacuous and "vacuous up to round 5" in short.remark
    hopeless = small_bound(start_distance=0.5)
    assert hopeless.is_vacuous and hopeless.always_vacuous
    assert "bound vacuous: floor 1 > initial distance 0.5" in hopeless.remark
    for never in ({"start_distance": None}, {"kind": "lower"}):
        assert not small_bound(**never).is_vacuous


def test_summary_and_repr_say_what_fails():
    bound = small_bound(assumptions=(Assumption("step_size <= 1", False, -0.5),), start_distance=0.5)
    assert not bound.hypotheses_hold and bound.violated == ("step_size <= 1",)
    for text in (repr(bound), bound.summary()):
        assert "step_size <= 1" in text and "vacuous" in text and "Theorem 0" in text


# --- the catalogue

def test_catalogue_lists_every_theorem():
    table = theory.catalogue()
    assert list(table.columns) == ["id", "paper", "number", "kind", "quantity", "index", "hypotheses",
                                   "variants", "function", "key"]
    assert table["id"].is_unique and (table["paper"] == "FA-LD").sum() == 25
    assert set(table["quantity"]) <= set(theory.quantities())
    for entry in theory.theorems():
        assert entry.function is getattr(getattr(theory, entry.id.split(".")[0]), entry.function.__name__)
        assert "Source" in entry.function.__doc__


def test_the_decorator_checks_what_all_theorems_share(problem, algorithm):
    facts = theory.constants(problem, algorithm)
    for arguments, words in [((1, algorithm), "constants=1"),
                             ((facts, 2), "algorithm=2 must be a fedsim.FALD")]:
        with pytest.raises(ValueError, match=words):
            theory.fa_ld.w2_bound(*arguments, n_rounds=1)
    with pytest.raises(ValueError, match="variant='wrong' must be one of 'recursion', 'proof', 'printed'"):
        theory.fa_ld.w2_bound(facts, algorithm, n_rounds=1, variant="wrong")
    with pytest.raises(ValueError, match=r"id='fa_ld.w2_bound' is in the catalogue already"):
        theorem("Theorem 1", quantity="w2", terms=("x",))(theory.fa_ld.w2_bound.__wrapped__)


# --- tuning

@pytest.mark.parametrize("step, eps, local_steps", [(0.05, 0.05, 3), (0.002, 0.03, 2), (1e-4, 0.02, 1)])
def test_hitting_time_is_the_first_round_within(problem, step, eps, local_steps):
    chosen = fs.FALD(step, local_steps)
    found = rounds_to(problem, chosen, eps, start=[4.0, 4.0])
    horizon = 60_000
    w2 = theory.exact_law(problem, chosen, horizon, start=[4.0, 4.0], record=np.arange(horizon)).w2()
    inside = np.flatnonzero(w2 <= eps)
    assert found == (int(inside[0]) if len(inside) else None)


def test_hitting_times_at_the_ends(problem):
    chosen = fs.FALD(0.01)
    assert rounds_to(problem, chosen, 100.0) == 0
    assert rounds_to(problem, chosen, 1e-9) is None  # below its bias
    assert rounds_to(problem, chosen, 0.3, max_rounds=2) is None
    slow = rounds_to(problem, fs.FALD(1e-8), 0.1)
    slower = rounds_to(problem, fs.FALD(1e-9), 0.1, max_rounds=10**11)
    assert 10**7 < slow and slower / slow == pytest.approx(10.0, rel=1e-5)
    with pytest.raises(fs.UnstableStepSize):
        rounds_to(problem, fs.FALD(5.0), 0.1)
    with pytest.raises(ValueError, match="eps=-1"):
        rounds_to(problem, chosen, -1.0)


def test_best_step_size_beats_a_fine_grid(problem):
    eps, chosen = 0.05, fs.FALD(1.0, 3)
    found = best_step_size(problem, chosen, eps)
    limit = chosen.stability(problem).max_step_size
    grid = [rounds_to(problem, fs.FALD(step, 3), eps) for step in np.geomspace(1e-3, 0.999, 150) * limit]
    best = min(n for n in grid if n is not None)
    assert found.n_rounds <= best
    assert rounds_to(problem, fs.FALD(found.step_size, 3), eps) == found.n_rounds
    assert best_step_size(problem, chosen, 1e-12, smallest=1e-3 * limit, n_refine=0) is None
    finest = [best_step_size(problem, chosen, eps, n_grid=5, n_refine=n) for n in (10**3, 2**53)]
    assert finest[0] == finest[1]  # no float is left between the neighbours of the best


def test_the_planned_step_size_is_far_from_the_best(problem):
    found = compare(problem, fs.FALD(1.0, 3), 0.2, start=[1.0, 1.0])
    assert found.planned_rounds <= found.predicted_rounds  # the guarantee
    assert found.cost > 100 and found.prediction_ratio >= 1.0
    with pytest.raises(ValueError, match="has no planning rule; there is one for DESGHMC"):
        compare(problem, fs.StaleSGLD(0.01), 0.2)
    with pytest.raises(ValueError, match="must be a fedsim algorithm"):
        compare(problem, problem, 0.2)
