"""Constants, bounds, the catalogue, check, errata and tuning: what no single theorem owns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fedsim as fs
import theory
from theory.bound import Assumption, Bound
from theory.catalogue import theorem
from theory.tuning import best_step_size, compare, rounds_to


@pytest.fixture(scope="module")
def problem():
    return fs.Quadratic([[1.0, 2.0], [3.0, 1.5]], [[0.0, 1.0], [1.0, -1.0]], [0.25, 0.75],
                        gradient_noise=np.array([np.diag([1.0, 2.0]), np.eye(2)]))


@pytest.fixture(scope="module")
def algorithm():
    return fs.FALD(0.02, local_steps=4, temperature=2.0, shared_noise=0.25)


def small_bound(**changes):
    given = {"terms": {"a": [2.0, 1.0], "b": 1.0}, "rounds": np.array([0, 5]),
             "assumptions": (Assumption("x", True, 0.5),), "quantity": "w2", "kind": "upper",
             "source": "Theorem 0", "start_distance": 2.5, "floor": 1.0}
    return Bound.from_terms(**(given | changes))


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
    ({"dim": 0}, "dim=0"), ({"dim": 2.0}, "dim=2.0"), ({"strong_convexity": 0.0}, "strong_convexity=0.0"),
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
    assert table["id"].is_unique and (table["paper"] == "FA-LD").sum() == 20
    assert set(table["quantity"]) <= set(theory.quantities())
    for entry in theory.theorems():
        assert entry.function is getattr(getattr(theory, entry.id.split(".")[0]), entry.function.__name__)
        assert "Source" in entry.function.__doc__


def test_the_decorator_checks_what_all_theorems_share(problem, algorithm):
    facts = theory.constants(problem, algorithm)
    for arguments, words in [((1, algorithm), "constants=1"), ((facts, 2), "algorithm=2 must be a FALD")]:
        with pytest.raises(ValueError, match=words):
            theory.fa_ld.w2_bound(*arguments, n_rounds=1)
    with pytest.raises(ValueError, match="variant='wrong' must be one of 'proof', 'printed'"):
        theory.fa_ld.w2_bound(facts, algorithm, n_rounds=1, variant="wrong")
    with pytest.raises(ValueError, match=r"id='fa_ld.w2_bound' is in the catalogue already"):
        theorem(id="fa_ld.w2_bound", paper="x", number="Theorem 1", kind="upper", quantity="w2",
                hypotheses=(), algorithm=fs.FALD, convention="federated")(lambda constants, algorithm: None)


# --- check

def pair(problem, algorithm, n_rounds=30):
    bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=n_rounds)
    return bound, theory.exact_law(problem, algorithm, n_rounds)


def test_check_reads_off_the_largest_ratio(problem, algorithm):
    bound, law = pair(problem, algorithm)
    verdict = theory.check(bound, law)
    ratio = law.w2() / bound.value
    assert verdict and verdict.holds and verdict.hypotheses_met and verdict.first_violation is None
    assert verdict.tightness == pytest.approx(ratio.max(), rel=1e-14)
    assert (verdict.worst_round, verdict.n_compared) == (int(ratio.argmax()), 31)
    assert verdict.is_vacuous and "vacuous" in str(verdict)


def scaled(bound, factor):
    terms = {name: factor * part for name, part in bound.terms.items()}
    return dataclasses.replace(bound, value=np.sum(list(terms.values()), axis=0), terms=terms)


def test_check_detects_a_violated_bound(problem, algorithm):
    """A bound shrunk to just below the exact value fails at the very round where it is tightest."""
    bound, law = pair(problem, algorithm)
    tightness = theory.check(bound, law).tightness
    assert theory.check(scaled(bound, tightness * (1 + 1e-9)), law).holds
    wrong = theory.check(scaled(bound, tightness * (1 - 1e-9)), law)
    assert not wrong.holds and not wrong and wrong.contradicts_theorem
    assert wrong.first_violation == wrong.worst_round and wrong.tightness > 1.0
    assert f"violated from round {wrong.first_violation}" in wrong.message
    failed = dataclasses.replace(scaled(bound, tightness / 2), assumptions=(Assumption.yes("never", False),))
    assert not theory.check(failed, law).contradicts_theorem


def test_the_first_violation_is_the_first(problem, algorithm):
    bound, law = pair(problem, algorithm)
    value = np.where(bound.rounds >= 7, 1e-3, 10.0) * law.w2()
    later = dataclasses.replace(bound, value=value, terms={"all": value})
    assert theory.check(later, law).first_violation == 7


def test_check_compares_common_rounds_only(problem, algorithm):
    bound, _ = pair(problem, algorithm, 30)
    law = theory.exact_law(problem, algorithm, 40, record=[3, 5, 40])
    assert theory.check(bound, law).n_compared == 3  # rounds 0, 3 and 5
    far = dataclasses.replace(bound, rounds=bound.rounds + 100)
    with pytest.raises(ValueError, match="must have one in common"):
        theory.check(far, law)


def test_check_compares_like_with_like(problem, algorithm):
    bound, law = pair(problem, algorithm)
    hot = dataclasses.replace(algorithm, temperature=4.0)
    with pytest.raises(ValueError, match="target of the law differs"):
        theory.check(bound, theory.exact_law(problem, hot, 30))
    drift = theory.fa_ld.divergence_bound(theory.constants(problem, algorithm), algorithm, n_rounds=2)
    with pytest.raises(ValueError, match=r"must be a theory\.exact\.JointLaw"):
        theory.check(drift, law)
    with pytest.raises(ValueError, match=r"must be a fedsim\.Law or Run"):
        theory.check(bound, problem)
    with pytest.raises(ValueError, match=r"must be a theory\.Bound"):
        theory.check(law, bound)
    for other in (theory.exact_law(problem, algorithm, 30, start=np.full(problem.dim, 1e3)),
                  fs.simulate(problem, algorithm, 1, 64, seed=1, start=np.full(problem.dim, 1e3))):
        with pytest.raises(ValueError, match="start of the law is at W2="):  # no violation: another chain
            theory.check(bound, other)
    unknown = dataclasses.replace(bound, target=None)
    assert "target is not known" in theory.check(unknown, law).note


def test_rates_are_refused_and_lower_bounds_reversed(problem, algorithm):
    bound, law = pair(problem, algorithm)
    with pytest.raises(ValueError, match="kind='rate'"):
        theory.check(dataclasses.replace(bound, kind="rate"), law)
    exact = law.w2()
    lower = dataclasses.replace(bound, kind="lower", value=0.5 * exact, terms={"all": 0.5 * exact})
    verdict = theory.check(lower, law)
    assert verdict.holds and verdict.tightness == pytest.approx(0.5)
    above = dataclasses.replace(lower, value=1.01 * exact, terms={"all": 1.01 * exact})
    assert not theory.check(above, law).holds


def test_arrays_are_the_quantity_itself(problem, algorithm):
    bound, law = pair(problem, algorithm)
    assert theory.check(bound, law.w2()).tightness == theory.check(bound, law).tightness
    with pytest.raises(ValueError, match="law has shape"):
        theory.check(bound, np.ones(3))
    with pytest.raises(ValueError, match="must be finite"):
        theory.check(bound, np.full(31, np.nan))


def test_rounding_is_no_violation(problem, algorithm):
    bound, law = pair(problem, algorithm)
    exact = law.w2()
    for factor, holds in ((1 - 1e-15, True), (1 - 1e-9, False)):
        same = dataclasses.replace(bound, value=factor * exact, terms={"all": factor * exact})
        assert theory.check(same, law).holds is holds


class _Measured(fs.Law):
    """A law with a band of plus and minus `half` around its distance, as replicas have."""

    half = 0.01

    def w2_interval(self, level=0.95):
        value = self.w2()
        return np.stack([value - self.half, value + self.half], axis=1)


def test_a_run_violates_only_outside_its_band(problem, algorithm):
    bound, law = pair(problem, algorithm)
    run = _Measured(law.rounds, law.mean, law.cov, law.target)
    exact = law.w2()
    for distance, holds in ((0.005, True), (0.015, False)):
        below = exact - distance
        tight = dataclasses.replace(bound, value=below, terms={"all": below})
        verdict = theory.check(tight, run)
        assert verdict.holds is holds and "replicas" in verdict.note
        assert not theory.check(tight, law).holds  # the exact law has no band


def test_the_band_of_a_run_is_a_joint_one(problem, algorithm):
    """31 rounds share the false-alarm level: each gets a 31st of it."""
    asked = []

    class Asked(_Measured):
        def w2_interval(self, level=0.95):
            asked.append(level)
            return super().w2_interval(level)

    bound, law = pair(problem, algorithm)
    theory.check(bound, Asked(law.rounds, law.mean, law.cov, law.target), level=0.99)
    assert asked == [pytest.approx(1 - 0.01 / 31, rel=1e-12)]


@pytest.mark.parametrize("form", [np.array([1.0, 3.0]), np.array([[1.0, 2.0], [3.0, 1.0]])])
def test_a_number_for_gradient_noise_is_a_deviation_of_every_coordinate(form):
    minimizers, noise = np.array([[0.0, 1.0], [2.0, 0.0]]), 0.7
    one, other = (theory.constants(fs.Quadratic(form, minimizers, None, given), fs.FALD(0.1))
                  for given in (noise, np.tile(noise**2 * np.eye(2), (2, 1, 1))))
    np.testing.assert_allclose(one.gradient_noise_traces, 2 * noise**2, rtol=1e-15)
    np.testing.assert_allclose(other.gradient_noise_traces, one.gradient_noise_traces, rtol=1e-15)


def test_replicas_are_checked_like_laws(problem, algorithm):
    bound, law = pair(problem, algorithm, 5)
    run = fs.simulate(problem, algorithm, 5, 640, seed=3)
    assert theory.check(bound, run).holds
    assert not theory.check(scaled(bound, 1e-3 * theory.check(bound, law).tightness), run).holds


def test_examine_names_an_unknown_theorem(problem, algorithm):
    with pytest.raises(ValueError, match="theorem='nothing'"):
        theory.examine("nothing", problem, algorithm, 3)


# --- verdicts: no rounding over rounding, and nothing said against a theorem that does not apply

def pinned(bound, value, **changes):
    return dataclasses.replace(bound, value=value, terms={"all": value}, **changes)


def test_rounding_over_rounding_gives_no_ratio():
    """From the target on, FA-HMC's coupling and its bound at step 0 are rounding errors of zero."""
    rng, silent = np.random.default_rng(1), 0
    for _ in range(20):
        n, dim = rng.integers(1, 5), rng.integers(1, 4)
        factor = rng.normal(size=(n, dim, dim))
        hessians = factor @ np.swapaxes(factor, 1, 2) + 0.3 * np.eye(dim)
        problem = fs.Quadratic(hessians, rng.normal(size=(n, dim)))
        for rounds in (0, 3):
            verdict = theory.examine("fa_hmc.coupling_bound", problem, fs.FAHMC(0.02, 5, 3, 0.4), rounds,
                                     start=problem.target())
            assert verdict.holds and verdict.tightness <= 1.0
            silent += "there is no ratio" in verdict.note and verdict.tightness == 0.0
    assert silent == 20  # those of no round


def test_rounds_of_rounding_do_not_hide_the_others(problem, algorithm):
    bound, law = pair(problem, algorithm)
    exact = law.w2()
    rounds = np.arange(len(exact))
    limit, value = np.where(rounds < 5, 1e-16, 2.0 * exact), np.where(rounds < 5, 3e-16, exact)
    verdict = theory.check(pinned(bound, limit), value)
    assert verdict.holds and verdict.tightness == 0.5 and verdict.worst_round >= 5
    assert "ratio" not in verdict.note
    value[3] = 1e-3  # more than rounding: no bound of 1e-16 covers it
    wrong = theory.check(pinned(bound, limit), value)
    assert wrong.first_violation == wrong.worst_round == 3 and wrong.tightness == pytest.approx(1e13)


@pytest.mark.parametrize("kind", ["upper", "lower"])
def test_an_excess_within_rounding_is_a_tie(problem, algorithm, kind):
    bound, law = pair(problem, algorithm)
    exact, sign = law.w2(), -1.0 if kind == "upper" else 1.0
    limit = np.where(np.arange(31) == 7, 1.0 + sign * 3e-14, 1.0 - sign * 0.5) * exact
    verdict = theory.check(pinned(bound, limit, kind=kind), law)
    assert verdict.holds and verdict.tightness == 1.0 and verdict.worst_round == 7
    assert "equal up to rounding: w2 at round 7" in verdict.note and "not redone" in verdict.note
    clear = theory.check(pinned(bound, np.where(np.arange(31) == 7, 1.0 + sign * 1e-9, limit / exact) * exact,
                                kind=kind), law)
    assert not clear.holds and clear.tightness > 1.0 and "rounding" not in clear.note


def test_tightness_never_exceeds_one_while_a_bound_holds():
    rng, bound = np.random.default_rng(2), small_bound()
    seen = []
    for _ in range(3000):
        sizes = 10.0 ** rng.choice([-300, -16, -13, -12, -1, 0], size=(2, 2)) * rng.random((2, 2)).round(1)
        value, limit = sizes if rng.random() < 0.5 else (sizes[0], sizes[0] * (1 + rng.normal() * 1e-12))
        verdict = theory.check(pinned(bound, limit, kind=str(rng.choice(["upper", "lower"]))), value)
        assert 0.0 <= verdict.tightness and (verdict.tightness <= 1.0) == verdict.holds, (value, limit)
        seen.append(verdict.tightness)
    assert sum(ratio == 1.0 for ratio in seen) > 50 and sum(ratio > 1.0 for ratio in seen) > 50


def test_an_estimate_beyond_the_bound_but_within_its_band_is_no_ratio_above_one(problem, algorithm):
    bound, law = pair(problem, algorithm)
    run = _Measured(law.rounds, law.mean, law.cov, law.target)
    verdict = theory.check(pinned(bound, law.w2() - 0.005), run)
    assert verdict.holds and verdict.tightness == 1.0 and "within its band" in verdict.note


def test_a_mixture_cannot_refute_a_lower_bound(problem, algorithm):
    """W2 of the Gaussian with the same moments may be smaller than that of the mixture itself."""
    bound, law = pair(problem, algorithm)
    above = pinned(bound, 1.5 * law.w2(), kind="lower")
    mixture = fs.Law(law.rounds, law.mean, law.cov, law.target, is_gaussian=False)
    assert theory.check(above, mixture).holds and not theory.check(above, law).holds


def test_a_theorem_that_does_not_apply_is_not_violated(problem, algorithm):
    bound, law = pair(problem, algorithm)
    failed = (Assumption("step_size <= 1", False, -0.5), Assumption("x", True, 0.5))
    for kind, factor, word in (("upper", 0.7, "exceeded"), ("lower", 1.4, "not reached")):
        verdict = theory.check(pinned(bound, factor * law.w2(), kind=kind, assumptions=failed), law)
        assert not verdict.holds and not verdict.hypotheses_met and not verdict.contradicts_theorem
        assert verdict.message.startswith(
            f"{bound.source} ({bound.variant}) does not apply (step_size <= 1 fails): "
            f"its formula is {word}, first at round 0 (ratio 1.4")
        assert "contradicts nothing" in verdict.message and "violated" not in verdict.message
        fine = theory.check(pinned(bound, law.w2() / factor, kind=kind, assumptions=failed), law)
        assert fine.holds and "does not apply (step_size <= 1 fails): its formula holds all" in str(fine)
    several = dataclasses.replace(bound, assumptions=tuple(Assumption.yes(name, False) for name in "ab"))
    assert "does not apply (a; b fail)" in str(theory.check(several, law))


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


def test_the_planned_step_size_is_far_from_the_best(problem):
    found = compare(problem, fs.FALD(1.0, 3), 0.2, start=[1.0, 1.0])
    assert found.planned_rounds <= found.predicted_rounds  # the guarantee
    assert found.cost > 100 and found.prediction_ratio >= 1.0
    with pytest.raises(ValueError, match="has no planning rule"):
        compare(problem, problem, 0.2)
