"""`theory.check`: what it compares, what it refuses, and what its verdicts say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from examples_of import fa_ld_pair, small_bound

import fedsim as fs
import theory
from theory.declare.bound import Assumption


@pytest.fixture(scope="module")
def problem():
    return fa_ld_pair()[0]


@pytest.fixture(scope="module")
def algorithm():
    return fa_ld_pair()[1]


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


def just_below(bound, run, share):
    """The bound, `share` of the way from the low end of the run's band at level 0.999 to the proved one."""
    n = len(run.rounds)
    band, proved = (ends[:, 0] for ends in (run.w2_interval(1 - 1e-3 / n), run.w2_proved(1 - 1e-7 / n)))
    value = np.full(n, 1e3)
    value[3] = (1.0 - share) * band[3] + share * proved[3]
    assert 0.0 < value[3] < band[3]
    return dataclasses.replace(bound, value=value, terms={"all": value})


def test_replicas_contradict_a_theorem_only_where_it_is_proved(problem, algorithm):
    bound, _ = pair(problem, algorithm, 5)
    run = fs.simulate(problem, algorithm, 5, 640, seed=3)
    for share, proved in ((0.5, False), (0.999, False), (1.001, True)):
        verdict = theory.check(just_below(bound, run, share), run)
        assert not verdict.holds and verdict.first_violation == 3 and verdict.hypotheses_met
        assert verdict.proved is verdict.contradicts_theorem is proved
        assert ("lies below the band of the replicas, first at round 3" in str(verdict)) is not proved
        assert ("is not proved and contradicts nothing" in str(verdict)) is not proved
        assert ("is violated from round 3" in str(verdict)) is proved
    mixture = dataclasses.replace(run, is_gaussian=False)
    assert not theory.check(just_below(bound, run, 1.001), mixture).contradicts_theorem
    low = pinned(bound, 2.0 * run.w2_proved(1 - 1e-7 / 6)[:, 1], kind="lower")
    assert theory.check(low, run).contradicts_theorem
    middle = pinned(bound, run.w2_proved()[:, 1] * 0.999, kind="lower")
    verdict = theory.check(middle, run)
    assert not verdict.holds and not verdict.contradicts_theorem and "above the band" in str(verdict)


def test_a_band_without_a_proof_contradicts_nothing(problem, algorithm):
    bound, law = pair(problem, algorithm)
    run = _Measured(law.rounds, law.mean, law.cov, law.target)
    verdict = theory.check(pinned(bound, law.w2() - 0.015), run)
    assert not verdict.holds and not verdict.proved and not verdict.contradicts_theorem
    assert theory.check(pinned(bound, law.w2() - 0.015), law).contradicts_theorem


def test_agents_contradict_only_where_it_is_proved():
    """The mean over agents of what each of them proves."""
    problem = fs.Quadratic.from_components([1.0, 2.0], [[2.5], [-0.5]])
    algorithm = fs.DESGLD(0.1, fs.network.path(2))
    run = fs.simulate(problem, algorithm, 10, 1280, seed=1, record=[10])
    n = 2 * len(run.rounds)
    low, proved = (np.mean([ends(client, 1 - miss / n) for client in run.clients], axis=0)[1:, 0]
                   for ends, miss in ((fs.Run.w2_interval, 1e-3), (fs.Run.w2_proved, 1e-7)))
    assert 0.0 < proved[0] < low[0]
    for value, contradicts in ((0.5 * (low + proved), False), (0.999 * proved, True)):
        verdict = theory.check(pinned(small_bound(), value, quantity="w2_clients", rounds=run.rounds[1:],
                                      target=run.target), run)
        assert not verdict.holds and verdict.contradicts_theorem is contradicts


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


@pytest.mark.parametrize("quantity", ["w2", "w2_clients"])
def test_variances_or_mixtures_refute_no_lower_bound(quantity):
    """They say less than the law: from a start with correlations W2 of independent coordinates is smaller."""
    slanted = np.array([[[2.0, 0.9], [0.9, 1.0]], [[2.0, -0.9], [-0.9, 1.0]]])
    problem = fs.Quadratic(slanted, [[0.0, 0.0], [1.0, 0.0]])
    algorithm = fs.DESGLD(0.1, fs.network.complete(2))
    about = {"start": fs.Gaussian([0.0, 0.0], [[1.0, 0.95], [0.95, 1.0]]), "n_rounds": 3}
    law, thin = (theory.exact_law(problem, algorithm, covariance=kind, **about)
                 for kind in ("full", "diagonal"))
    exact = law.w2() if quantity == "w2" else theory.de_sgld.clients_w2(law)

    def lower(factor):
        return pinned(small_bound(), factor * exact, kind="lower", quantity=quantity, rounds=law.rounds,
                      target=law.target)

    run = fs.simulate(problem, algorithm, n_replicas=20_000, seed=1, covariance="diagonal", **about)
    mixture = dataclasses.replace(law, is_gaussian=False)
    for factor, said in ((0.99, (law, thin, run, mixture)), (1.2, (thin, run, mixture))):
        for one in said:
            verdict = theory.check(lower(factor), one)
            assert verdict.holds and not verdict.contradicts_theorem and verdict.tightness <= 1.0
    assert "variances alone" in theory.check(lower(0.99), thin).note
    assert theory.check(lower(1.2), law).contradicts_theorem
    full = fs.simulate(problem, algorithm, n_replicas=20_000, seed=1, **about)
    assert theory.check(lower(1.2), full).contradicts_theorem


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
