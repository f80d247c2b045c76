"""FA-LD's theorems and lemmas against exact laws on random problems."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from examples_of.fa_ld import draw_case, draw_start

import fedsim as fs
import theory
from fedsim.settings.schedules import Harmonic

SEED = 20240607


def assert_theorem(name, case, **options):
    problem, algorithm, start, n_rounds = case
    verdict = theory.examine(name, problem, algorithm, n_rounds, start=start, **options)
    assert verdict.hypotheses_met, f"{verdict.bound.summary()}\n{problem} {algorithm}"
    assert verdict.holds, f"{verdict}\n{verdict.bound.summary()}\n{problem} {algorithm} {start} {n_rounds}"
    assert np.isfinite(verdict.bound.value).all()
    return verdict.tightness


# --- exact quantity <= bound, on random problems within the hypotheses

SMALL = {"largest_n": 5, "largest_d": 3, "largest_k": 8}
GRID = [  # theorem, problems, what is drawn, variant
    ("w2_bound", 1200, {}, "recursion"),
    ("w2_bound", 300, {}, "printed"),
    ("w2_bound_partial", 1000, {"participation": True}, "recursion"),
    ("w2_bound_partial", 300, {"participation": True}, "informal"),
    ("w2_bound_decreasing", 300, {"schedule": True, **SMALL}, "printed"),
    ("initial_bound", 200, {}, "triangle"),
    ("contraction_bound", 300, {}, "printed"),
    ("discretization_bound", 200, {}, "printed"),
    ("gradient_noise_bound", 200, {}, "proof"),
    ("one_step_bound", 300, SMALL, "printed"),
    ("divergence_bound", 300, SMALL, "corrected"),
    ("divergence_bound", 150, {"schedule": True, **SMALL}, "corrected"),
    ("divergence_bound", 150, {"participation": True, **SMALL}, "corrected"),
    ("participation_gap_bound", 300, {"participation": True, **SMALL}, "corrected"),
    ("participation_gap_bound", 100, {"participation": True, "schedule": True, **SMALL}, "corrected"),
    ("second_moment_bound", 200, SMALL, "corrected"),
    ("second_moment_bound", 200, {"participation": True, **SMALL}, "corrected"),
    ("gradient_moment_bound", 200, SMALL, "corrected"),
    ("gradient_moment_bound", 100, {"schedule": True, **SMALL}, "corrected"),
]


@pytest.mark.parametrize("index", range(len(GRID)), ids=[f"{name}-{variant}-{'-'.join(map(str, drawn))}"
                                                         for name, _, drawn, variant in GRID])
def test_exact_quantity_is_below_the_bound(index):
    name, problems, drawn, variant = GRID[index]
    rng = np.random.default_rng([SEED, index])
    tightness = [assert_theorem(f"fa_ld.{name}", draw_case(rng, **drawn), variant=variant)
                 for _ in range(problems)]
    assert max(tightness) > 1e-4  # the exact side is not zero by mistake


def test_grids_are_as_large_as_promised():
    sizes = {name: 0 for name, *_ in GRID}
    for name, problems, *_ in GRID:
        sizes[name] += problems
    assert sum(n for name, n in sizes.items() if name.startswith("w2")) >= 2000
    assert sum(n for name, n in sizes.items() if not name.startswith("w2")) >= 2000
    listed = {entry.id for entry in theory.theorems() if entry.id.startswith("fa_ld.")}
    rates = {entry.id for entry in theory.theorems() if entry.kind == "rate"}
    assert listed - rates == {f"fa_ld.{name}" for name in sizes} | {
        "fa_ld.w2_recursion", "fa_ld.stationary_bound"}


def test_theorem_4_8_holds_for_many_local_steps():
    """Also where K - 1 > 24 kappa, so that the step size more than halves within the first round."""
    rng = np.random.default_rng([SEED, 48])
    for _ in range(20):
        n, d = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        hessians = 1.0 + rng.uniform(0, 1, (n, d)) * rng.choice([0.0, 0.1, 1.0])
        problem = fs.Quadratic(hessians, 10.0 ** rng.uniform(-2, 2) * rng.standard_normal((n, d)), None, 0.3)
        facts = theory.constants(problem, fs.FALD(1e-9))
        steps = int(24 * facts.condition_number * rng.uniform(1.1, 10.0)) + 2
        schedule = Harmonic.from_theorem(strong_convexity=facts.strong_convexity, smoothness=facts.smoothness)
        algorithm = fs.FALD(schedule, steps, shared_noise=float(rng.choice([0.0, 0.5, 1.0])))
        assert_theorem("fa_ld.w2_bound_decreasing", (problem, algorithm, draw_start(rng, problem), 6))


def test_steps_of_the_proof_of_theorem_4_8():
    """The first round is free, and later the step size does not halve within a round."""
    for kappa in np.geomspace(1.0, 1e4, 30):
        for k_local in (1, 2, 3, 10, 100, 1000, 10**5):
            free = 2025 * kappa**2 * ((k_local - 1) ** 2 + kappa) / (2 * kappa + k_local / 12)
            assert free > 60 * 14
            for sync in (k_local, 2 * k_local, 50 * k_local):
                assert 24 * kappa + sync + k_local - 1 < 2 * (24 * kappa + sync)


def test_steps_of_the_proof_of_theorem_c_3():
    """28 K x/(1 - e^-x) <= 50 ((K-1)^2 + kappa): (K-1)^2 as printed, although (36) has K^2."""
    for kappa in np.geomspace(1.0, 1e4, 40):
        steps = np.arange(1, 3000.0)
        x, room = steps / (4 * kappa), (steps - 1) ** 2 + kappa
        spread = 28 * steps * x / -np.expm1(-x)
        assert (spread <= 28 * steps + 7 * steps**2 / kappa).all()
        assert (28 * steps + 7 * steps**2 / kappa <= 50 * room).all()
        assert ((400 * room + spread) / (450 * room)).max() <= 0.968


@pytest.mark.parametrize("name", ["divergence_bound", "participation_gap_bound", "second_moment_bound",
                                  "gradient_moment_bound"])
def test_lemmas_hold_up_to_their_range(name):
    """Step sizes between 1/(L+m) and 2/(L+m)."""
    rng = np.random.default_rng([SEED, len(name)])
    for _ in range(80):
        problem, algorithm, start, n_rounds = draw_case(rng, participation=name.startswith("part"), **SMALL)
        facts = theory.constants(problem, algorithm)
        step = rng.choice([2.0, rng.uniform(1.0, 2.0)]) / (facts.smoothness + facts.strong_convexity)
        wide = dataclasses.replace(algorithm, step_size=step)
        assert_theorem(f"fa_ld.{name}", (problem, wide, start, n_rounds))


def test_the_distance_at_the_start_is_an_upper_bound():
    """A target that leans away: curvature 1 for x > 0 and 100 for x < 0, start -2; W2 by quadrature."""
    x = np.linspace(-1.5, 12.0, 2_000_001)
    density = np.exp(-0.5 * np.where(x > 0.0, 1.0, 100.0) * x**2)
    exact = float(np.sqrt(np.average((x + 2.0) ** 2, weights=density)))
    assert exact == pytest.approx(2.79, abs=0.005)
    facts = theory.Constants(dim=1, strong_convexity=1.0, smoothness=100.0, weights=[1.0],
                             initial_distance=2.0)
    bound = theory.fa_ld.w2_bound(facts, fs.FALD(1e-3), n_rounds=1)
    assert bound.start_distance == pytest.approx(3.0) and bound.start_distance >= exact
    assert theory.fa_ld.initial_bound(facts, fs.FALD(1e-3)).value[0] >= exact


@pytest.mark.parametrize("n_clients", [1, 7])
def test_one_client_and_equal_clients(n_clients):
    """No heterogeneity: the divergence comes from noise alone, and the theorems hold."""
    rng = np.random.default_rng(SEED)
    minimizers = np.repeat(rng.standard_normal((1, 2)), n_clients, axis=0)
    problem = fs.Quadratic(np.full(n_clients, 3.0), minimizers)
    for shared in (0.0, 1.0):
        case = problem, fs.FALD(1.0 / 6.0, 5, shared_noise=shared), None, 10
        for name in ("w2_bound", "one_step_bound", "divergence_bound", "second_moment_bound",
                     "gradient_moment_bound", "contraction_bound"):
            assert_theorem(f"fa_ld.{name}", case)
    drift = theory.exact.joint_law(problem, fs.FALD(0.1, 5, shared_noise=1.0), 5).divergence()
    assert drift.max() <= 1e-12


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_bounds_scale_with_the_problem(scale):
    """Lengths times s, Hessians over s^2, step sizes times s^2: W2 bounds go like s."""
    rng = np.random.default_rng(SEED)
    base = fs.Quadratic(1.0 + rng.random((3, 2)), rng.standard_normal((3, 2)))
    scaled = fs.Quadratic(base.hessians / scale**2, base.minimizers * scale)
    for drawn in (None, fs.Participation(2, False)):
        name = "w2_bound" if drawn is None else "w2_bound_partial"
        one, other = (theory.examine(f"fa_ld.{name}", p, fs.FALD(0.1 * s**2, 4, participation=drawn), 20)
                      for p, s in ((base, 1.0), (scaled, scale)))
        np.testing.assert_allclose(other.bound.value, scale * one.bound.value, rtol=1e-10)
        assert other.tightness == pytest.approx(one.tightness, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_tightness_of_every_statement_is_free_of_units(scale):
    """The same for all of them: no square overflows before the answer does."""
    rng = np.random.default_rng(SEED)
    base = fs.Quadratic(1.0 + rng.random((3, 2)), rng.standard_normal((3, 2)), None, 0.3)
    scaled = fs.Quadratic(base.hessians / scale**2, base.minimizers * scale, None, 0.3 / scale)
    for drawn in (None, fs.Participation(2, False)):
        for entry in theory.theorems():
            one, other = (fs.FALD(0.1 * s**2, 4, participation=drawn) for s in (1.0, scale))
            if entry.id.startswith("fa_ld.") and entry.kind != "rate" and entry.applies(one):
                tight = [theory.examine(entry, *pair, 5).tightness for pair in ((base, one), (scaled, other))]
                assert tight[1] == pytest.approx(tight[0], rel=1e-9), entry.id


# --- printed statements that fail

def test_lemmas_fail_in_their_printed_range():
    """L = 10 m, eta = 1/m < 2/m: the exact moments of two clients exceed Lemmas B.3, E.1 and E.2."""
    problem = fs.Quadratic(np.array([[1.0, 10.0]] * 2), np.array([[1.0, 1.0], [-1.0, -1.0]]))
    algorithm = fs.FALD(1.0, local_steps=20)
    law = theory.exact.joint_law(problem, algorithm, 20, allow_unstable=True)
    facts = theory.constants(problem, algorithm)
    for name in ("divergence_bound", "second_moment_bound", "gradient_moment_bound"):
        printed, corrected = (getattr(theory.fa_ld, name)(facts, algorithm, n_rounds=1, variant=variant)
                              for variant in ("printed", "corrected"))
        verdict = theory.check(printed, law)
        assert verdict.contradicts_theorem and verdict.tightness > 1e10
        assert not corrected.hypotheses_hold and not theory.check(corrected, law).contradicts_theorem


@pytest.mark.parametrize("name", ["divergence_bound", "participation_gap_bound", "second_moment_bound",
                                  "gradient_moment_bound"])
def test_the_slightest_violation_of_a_lemma_is_seen(name):
    """The lemma times its own tightness is attained; a little less of it must fail."""
    problem = fs.Quadratic([1.0, 2.0, 5.0], [[1.0], [-2.0], [0.0]], None, 0.3)
    algorithm = fs.FALD(0.05, 6, participation=fs.Participation(2, False))
    law = theory.exact.joint_law(problem, algorithm, 18)
    bound = getattr(theory.fa_ld, name)(theory.constants(problem, algorithm), algorithm, n_rounds=3)
    tightness = theory.check(bound, law).tightness
    for factor, holds in ((1 + 1e-8, True), (1 - 1e-8, False)):
        value = factor * tightness * bound.value
        assert theory.check(dataclasses.replace(bound, value=value, terms={"all": value}), law).holds is holds


def test_fully_shared_noise_has_no_floor():
    """The bound's participation term stays as the step size falls; with rho = 1 the true bias does not."""
    problem = fs.Quadratic(np.array([1.0, 2.0, 3.0]), np.array([[1.0], [-1.0], [0.0]]))
    gaps, terms = [], []
    for step in (1e-2, 1e-3, 1e-4):
        algorithm = fs.FALD(step, 5, shared_noise=1.0, participation=fs.Participation(2, False))
        gaps.append(theory.stationary_law(problem, algorithm).w2(algorithm.target(problem)))
        terms.append(theory.fa_ld.w2_bound_partial(theory.constants(problem, algorithm), algorithm,
                                                   n_rounds=0, variant="printed").terms["participation"][0])
    np.testing.assert_allclose(np.divide(gaps[:-1], gaps[1:]), 10.0, rtol=0.2)
    assert min(terms) > 0.9 * max(terms) > 100 * gaps[2]
