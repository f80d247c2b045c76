"""Ways in which a verdict could come out against a theorem that never said what was compared, each closed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim import network

PROBLEM = fs.Quadratic(np.array([[1.0, 2.0], [3.0, 1.5]]), np.array([[0.0, 1.0], [1.0, -1.0]]))
FALD, FAHMC = fs.FALD(0.02, 4), fs.FAHMC(0.05, 2, 2)
GOSSIP = fs.DESGLD(0.01, network.complete(2))
HEAVY = fs.DESGHMC(0.1, 10.0, network.complete(2))
START = [1.0, -2.0]


def pinned(bound, value):
    """The same bound with other values, still of what it was of."""
    value = np.broadcast_to(value, bound.value.shape)
    changed = dataclasses.replace(bound, value=value, terms={"all": value})
    object.__setattr__(changed, "of", bound.of)
    object.__setattr__(changed, "given", getattr(bound, "given", ()))
    return changed


# --- units

@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e2, 1e4, 1e30])
@pytest.mark.parametrize("name", ["gradient_moment_bound", "second_moment_bound", "divergence_bound",
                                  "one_step_bound"])
def test_a_bound_that_is_too_small_is_seen_in_every_unit(name, scale):
    problem = fs.Quadratic(np.array([[1.0, 2.0], [1.5, 1.2]]) / scale**2,
                           np.array([[1.0, 0.0], [-1.0, 2.0]]) * scale, None, 0.3 / scale)
    algorithm = fs.FALD(0.1 * scale**2, 4)
    found = theory.examine(f"fa_ld.{name}", problem, algorithm, 5)
    assert found.holds and found.tightness > 0.0
    law = theory.exact.joint_law(problem, algorithm, 20)
    small = pinned(found.bound, 1e-6 * found.bound.value)
    assert theory.check(small, law).tightness == pytest.approx(1e6 * found.tightness, rel=1e-6)


# --- everything that the library makes says what it is of

def facts_of(algorithm, start=None):
    return theory.constants(PROBLEM, algorithm, start)


def coupled(algorithm, start):
    return theory.de_sgld.coupling(PROBLEM, algorithm, 3, start, alpha=0.01)


def spread(algorithm, start):
    return theory.de_sgld.Spread(theory.exact.joint_law(PROBLEM, algorithm, 3, start=start),
                                 theory.de_sgld.fixed_point(PROBLEM, algorithm, 0.01))


def numbers(algorithm, start):
    return theory.de_sghmc.ratio_bound(facts_of(algorithm, start), algorithm).inputs["recursion"]


CASES = [
    (theory.fa_hmc.coupling_bound, FAHMC, lambda algorithm, start: theory.fa_hmc.coupling_law(
        PROBLEM, algorithm, 6, start=start)),
    (theory.de_sgld.coupling_bound, GOSSIP, coupled), (theory.de_sgld.iterate_bound, GOSSIP, spread),
    (theory.de_sghmc.coupling_bound, HEAVY, coupled), (theory.de_sghmc.ratio_bound, HEAVY, numbers)]


@pytest.mark.parametrize("theorem, algorithm, make", CASES, ids=lambda part: getattr(part, "__name__", ""))
def test_what_is_of_another_start_is_refused(theorem, algorithm, make):
    bound = theorem(facts_of(algorithm, START), algorithm, n_rounds=3)
    same, other = (make(algorithm, start) for start in (START, None))
    assert same.of == bound.of and theory.check(bound, same).note == ""
    with pytest.raises(ValueError, match=r"^start of the law"):
        theory.check(bound, other)


def test_a_coupling_with_numbers_by_hand_is_not_the_algorithms():
    bound = theory.de_sgld.coupling_bound(facts_of(GOSSIP), GOSSIP, n_rounds=3)
    for changed in ({"alpha": 0.5}, {"alpha": 0.01, "beta": 0.5},
                    {"alpha": 0.01, "velocities": np.ones((2, 2))}):
        law = theory.de_sgld.coupling(PROBLEM, GOSSIP, 3, **changed)
        with pytest.raises(ValueError, match=r"^algorithm of the law, alpha=.* by hand, in place of DESGLD"):
            theory.check(bound, law)


def test_the_fixed_point_must_be_that_of_the_iteration():
    bound = theory.de_sgld.iterate_bound(facts_of(GOSSIP), GOSSIP, n_rounds=3)
    law = theory.exact.joint_law(PROBLEM, GOSSIP, 3)
    with pytest.raises(ValueError, match=r"must be the fixed point at alpha=0\.01"):
        theory.check(bound, theory.de_sgld.Spread(law, np.full((2, 2), 1e9)))


@pytest.mark.parametrize("theorem, algorithm", [
    (theory.fa_hmc.target_moment_bound, FAHMC), (theory.de_sgld.target_moment_bound, GOSSIP),
    (theory.fa_ld.discretization_bound, FALD)])
def test_a_gaussian_that_is_not_the_target_is_refused(theorem, algorithm):
    bound = theorem(facts_of(algorithm), algorithm, n_rounds=0)
    assert theory.check(bound, algorithm.target(PROBLEM)).holds
    with pytest.raises(ValueError, match=r"target of the law differs from that of the bound"):
        theory.check(bound, fs.Gaussian([90.0, 0.0], [1e4, 1e4]))


def test_a_release_of_another_setting_is_refused():
    algorithm = fs.FALD(1e-6, 2)
    given = {"sensitivity": 2.0, "batch_fraction": 1.0, "delta0": 1e-5, "delta1": 1e-6, "delta2": 1e-6}
    bound = theory.privacy.run_bound(facts_of(algorithm), algorithm, n_rounds=3, **given)
    setting = bound.inputs["setting"]
    release = theory.privacy.Release(setting, algorithm.schedule)
    assert theory.check(bound, release).holds
    for name, value in (("given", dataclasses.replace(setting, sensitivity=50.0)),
                        ("schedule", fs.FALD(0.1).schedule), ("observed", "client")):
        said = "setting" if name == "given" else name
        with pytest.raises(ValueError, match=rf"{said} of the release, .* differs from that of the bound"):
            theory.check(bound, dataclasses.replace(release, **{name: value}))


# --- arguments given by hand

@pytest.mark.parametrize("theorem, given, source", [
    (theory.fa_hmc.w2_bound, {"gradient_moments": [0.0, 0.0], "initial": 1e-9},
     lambda: theory.exact_law(PROBLEM, FAHMC, 3)),
    (theory.fa_hmc.client_step_bound, {"second_moments": np.zeros(6), "client": 1},
     lambda: theory.exact.joint_law(PROBLEM, FAHMC, 6, start=[50.0, 50.0])),
    (theory.fa_hmc.main_part_bound, {"coupling": np.zeros(6), "gradient_moments": np.zeros(2)},
     lambda: theory.fa_hmc.coupling_law(PROBLEM, FAHMC, 6, start=[50.0, 50.0]))],
    ids=lambda part: getattr(part, "__name__", ""))
def test_arguments_by_hand_accuse_nobody(theorem, given, source):
    start = None if theorem is theory.fa_hmc.w2_bound else [50.0, 50.0]
    bound = theorem(facts_of(FAHMC, start), FAHMC, n_rounds=3, **given)
    assert bound.given == tuple(given)
    verdict = theory.check(pinned(bound, 1e-9 * bound.value), source())
    assert not verdict.holds and not verdict.contradicts_theorem
    if verdict.hypotheses_met:
        names = ", ".join(given)
        assert f"is compared with {names} given by hand: its formula is exceeded" in verdict.message
        assert "contradicts nothing unless they are what the theorem asks for" in verdict.message
    assert "violated" not in verdict.message


def test_what_every_theorem_takes_is_not_by_hand():
    bound = theory.fa_hmc.w2_bound(facts_of(FAHMC), FAHMC, n_rounds=3, record=[2], variant="printed",
                                   gradient_moments=None)
    assert bound.given == ()
    small = pinned(bound, 1e-6)
    verdict = theory.check(small, theory.exact_law(PROBLEM, FAHMC, 3))
    assert not verdict.holds and verdict.contradicts_theorem == verdict.hypotheses_met


def test_examine_works_its_arguments_out():
    verdict = theory.examine("fa_hmc.one_step_bound", PROBLEM, FAHMC, 3)
    assert verdict.bound.given == () and "by hand" not in verdict.message


# --- edits in place

@pytest.mark.parametrize("make, names", [
    (lambda: theory.exact_law(PROBLEM, FALD, 3), ("rounds", "mean", "cov")),
    (lambda: fs.simulate(PROBLEM, FALD, 3, 128, seed=1, keep_final=True),
     ("rounds", "mean", "cov", "final", "leaf_cov", "spread")),
    (lambda: theory.exact_law(PROBLEM, GOSSIP, 3).clients[1], ("mean", "cov")),
    (lambda: theory.exact.joint_law(PROBLEM, FALD, 4), ("mean", "cov", "before_mean", "before_cov", "steps")),
    (lambda: theory.exact.joint_law(PROBLEM, HEAVY, 4), ("mean", "cov", "velocity_second_moment"))])
def test_what_knows_its_provenance_cannot_be_edited(make, names):
    law = make()
    for name in names:
        with pytest.raises(ValueError, match="read-only"):
            getattr(law, name)[-1] = 0


def test_what_a_law_by_hand_is_made_of_stays_its_owners():
    mean = np.zeros((2, 1))
    law = fs.Law(np.arange(2), mean, None)
    mean[0] = 1.0
    assert law.mean[0] == 1.0 and mean.flags.writeable


# --- what is not finite

@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["mean", "cov"])
def test_moments_that_are_not_finite_give_no_verdict(name, bad):
    bound = theory.fa_ld.w2_bound(facts_of(FALD), FALD, n_rounds=3)
    law = theory.exact_law(PROBLEM, FALD, 3)
    changed = getattr(law, name).copy()
    changed[2] = bad
    with pytest.raises(ValueError, match=f"{name} of the law at round 2 must be finite"):
        theory.check(bound, dataclasses.replace(law, **{name: changed}))


@pytest.mark.parametrize("ends, what", [((np.nan, 1.0), "low end"), ((0.0, np.nan), "high end")])
def test_bands_that_are_not_numbers_give_no_verdict(ends, what):
    class Banded(fs.Law):
        def w2_interval(self, level=0.95):
            return np.tile(ends, (len(self.rounds), 1))

    bound, law = theory.fa_ld.w2_bound(facts_of(FALD), FALD, n_rounds=3), theory.exact_law(PROBLEM, FALD, 3)
    with pytest.raises(ValueError, match=rf"{what} of the measured quantity at round 0 is nan"):
        theory.check(bound, Banded(law.rounds, law.mean, law.cov, law.target))


# --- starts

@pytest.mark.parametrize("n_replicas", [2, 3])
def test_few_replicas_of_the_same_start_are_not_refused(n_replicas):
    problem = fs.Quadratic([1.0, 1.0], np.zeros((2, 1)))
    start = FALD.target(problem)  # at distance 0, as no two draws of it are
    bound = theory.fa_ld.w2_bound(theory.constants(problem, FALD, start), FALD, n_rounds=1)
    for seed in range(100):
        assert theory.check(bound, fs.simulate(problem, FALD, 1, n_replicas, seed=seed, start=start)).holds


def test_an_unknown_start_that_lies_farther_is_still_refused():
    bound = theory.fa_ld.w2_bound(facts_of(FALD), FALD, n_rounds=3)
    law = dataclasses.replace(theory.exact_law(PROBLEM, FALD, 3, start=[90.0, 0.0]))
    with pytest.raises(ValueError, match=r"pass the same start to theory\.constants"):
        theory.check(bound, law)
