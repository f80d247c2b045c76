"""FA-LD's theorems and lemmas: by hand at a point, and against exact laws on random problems."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim.schedules import Harmonic

SEED = 20240607


def draw_problem(rng, largest_n=20, largest_d=5, equal_weights=False):
    """A random quadratic: condition number up to 1e3, any scale, unequal weights, gradient noise."""
    n, d = int(rng.integers(1, largest_n + 1)), int(rng.integers(1, largest_d + 1))
    scale = 10.0 ** rng.uniform(-3, 3)
    kappa = 10.0 ** rng.uniform(0, 3)
    kind = rng.integers(5)
    spectra = scale * kappa ** rng.uniform(0, 1, (n, d))
    frames = np.linalg.qr(rng.standard_normal((n, d, d)))[0]
    hessians = (frames * spectra[:, None, :]) @ np.swapaxes(frames, 1, 2)
    hessians = 0.5 * (hessians + np.swapaxes(hessians, 1, 2))
    if kind == 1:  # one Hessian for all
        hessians = np.repeat(hessians[:1], n, axis=0)
    if kind == 2:  # coordinates apart
        hessians = spectra
    spread = 10.0 ** rng.uniform(-2, 2) / np.sqrt(scale)
    minimizers = spread * rng.standard_normal((n, d))
    if kind == 3:  # no heterogeneity of minimizers
        minimizers = np.repeat(minimizers[:1], n, axis=0)
    weights = None
    if not equal_weights and rng.random() < 0.6:
        weights = rng.dirichlet(np.full(n, 0.7)) + 1e-3
        weights = weights / weights.sum()
    noise = None
    if rng.random() < 0.5:
        roots = rng.standard_normal((n, d, d)) * np.sqrt(scale) * 10.0 ** rng.uniform(-2, 1)
        noise = roots @ np.swapaxes(roots, 1, 2)
    return fs.Quadratic(hessians, minimizers, weights, noise)


def draw_start(rng, problem):
    """None, a point near or far, or a Gaussian."""
    size = 10.0 ** rng.uniform(-2, 2) * np.sqrt(np.trace(problem.target().cov))
    point = problem.minimizer + size * rng.standard_normal(problem.dim)
    choice = rng.integers(3)
    if choice == 0:
        return None
    return point if choice == 1 else fs.Gaussian(point, size**2 * rng.random(problem.dim))


def draw_case(rng, participation=False, schedule=False, largest_n=20, largest_d=5, largest_k=30):
    """Problem, algorithm within the theorems' step sizes, start and number of rounds."""
    replace = bool(rng.random() < 0.5)
    problem = draw_problem(rng, largest_n, largest_d, equal_weights=participation and not replace)
    facts = theory.constants(problem, fs.FALD(1e-9))
    m, smooth = facts.strong_convexity, facts.smoothness
    step = 0.5 / smooth * rng.choice([1.0, rng.uniform(0.1, 1.0), 10.0 ** rng.uniform(-3, 0)])
    steps = int(rng.choice([1, 2, rng.integers(1, largest_k + 1)]))
    shared = float(rng.choice([0.0, 1.0, rng.random()]))
    tau = float(10.0 ** rng.uniform(-2, 2))
    drawn = None
    if participation:
        top = 2 * problem.n_clients if replace else problem.n_clients
        drawn = fs.Participation(int(rng.integers(1, top + 1)), replace)
    if schedule:
        step = Harmonic.from_theorem(strong_convexity=m, smoothness=smooth)
    algorithm = fs.FALD(step, steps, tau, shared, drawn)
    return problem, algorithm, draw_start(rng, problem), int(rng.choice([1, 3, 10, 40]))


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
    ("w2_bound", 1200, {}, "proof"),
    ("w2_bound", 300, {}, "printed"),
    ("w2_bound_partial", 1000, {"participation": True}, "printed"),
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
    assert listed == {f"fa_ld.{name}" for name in sizes}


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
            if entry.id.startswith("fa_ld.") and entry.applies(one):
                tight = [theory.examine(entry, *pair, 5).tightness for pair in ((base, one), (scaled, other))]
                assert tight[1] == pytest.approx(tight[0], rel=1e-9), entry.id


# --- each formula by hand at a point

M, L, TAU, ETA, K, RHO2, D = 0.5, 2.0, 3.0, 0.1, 4, 0.25, 3
WEIGHTS = np.array([0.2, 0.3, 0.5])
TRACES = np.array([0.6, 1.2, 0.9])
HETEROGENEITY, DISTANCE = 1.7, 2.4


def by_hand(**changes):
    facts = {"dim": D, "strong_convexity": M, "smoothness": L, "weights": WEIGHTS,
             "heterogeneity": HETEROGENEITY, "gradient_noise_traces": TRACES, "initial_distance": DISTANCE}
    return theory.Constants(**(facts | changes))


def fald(**changes):
    given = {"step_size": ETA, "local_steps": K, "temperature": TAU, "shared_noise": RHO2}
    return fs.FALD(**(given | changes))


# Definition A.4, written out with numbers: D^2 = 5.76/3, T = 3 (.25 + .75/.2) = 12, sigma^2 = 1.2/3
H = 1.92 + 12.0 / 0.5 + 2.89 / (0.25 * 3) + 0.4 / 0.25
KAPPA = 4.0
MEAN_TEMPERATURE = 3.0 * (0.25 + 3 * 0.75)  # tau (rho^2 + N (1 - rho^2))


def test_setting_by_hand():
    s = theory.fa_ld.setting(by_hand(), fald())
    assert (s.m, s.L, s.kappa, s.d, s.N, s.K, s.tau, s.eta) == (M, L, KAPPA, D, 3, K, TAU, ETA)
    assert s.D**2 == pytest.approx(1.92) and s.sigma**2 == pytest.approx(0.4)
    assert s.client_temperature == pytest.approx(12.0)
    assert s.mean_temperature == pytest.approx(MEAN_TEMPERATURE)
    assert s.mean_temperature == pytest.approx(WEIGHTS @ (TAU * (RHO2 + (1 - RHO2) / WEIGHTS)))
    assert s.H == pytest.approx(H, rel=1e-14)


@pytest.mark.parametrize("changes", [
    {"initial_distance": 1e200}, {"heterogeneity": 1e200}, {"strong_convexity": 1e-200},
    {"gradient_noise_traces": 1e300, "smoothness": 1e-9, "strong_convexity": 1e-9}])
def test_constants_beyond_float64_are_refused(changes):
    with pytest.raises(ValueError, match="make H_rho too large for a float64"):
        theory.fa_ld.w2_bound(by_hand(**changes), fald(), n_rounds=1)


def test_w2_bound_by_hand():
    bound = theory.fa_ld.w2_bound(by_hand(), fald(), n_rounds=7)
    start = np.sqrt(6.0) * (np.sqrt(1.92) + np.sqrt(6.0))
    floor = np.sqrt(800) * 4 * np.sqrt(0.1 * 0.5 * 3) * np.sqrt((9 + 4) * H)
    wanted = [(1 - 0.0125) ** (4 * n) * start + floor for n in range(8)]
    np.testing.assert_allclose(bound.value, wanted, rtol=1e-13)
    np.testing.assert_allclose(bound.terms["initialization"][0], start, rtol=1e-14)
    assert bound.floor == pytest.approx(floor, rel=1e-14) and bound.quantity == "w2"
    printed = theory.fa_ld.w2_bound(by_hand(), fald(), n_rounds=7, variant="printed")
    assert printed.floor == pytest.approx(floor * 30 / np.sqrt(800), rel=1e-14)
    # independent noise: T = 3/.2 = 15 replaces 12 in H
    own = theory.fa_ld.w2_bound(by_hand(), fald(shared_noise=0.0), n_rounds=0)
    assert own.floor == pytest.approx(floor * np.sqrt((H + 6.0) / H), rel=1e-13)


def test_w2_bound_decreasing_by_hand():
    schedule = Harmonic.from_theorem(strong_convexity=M, smoothness=L)
    bound = theory.fa_ld.w2_bound_decreasing(by_hand(), fald(step_size=schedule), n_rounds=5)
    wanted = [45 * 4 * np.sqrt((9 + 4) * H) * np.sqrt(0.5 * 3 / (4.0 + 0.5 * 4 * n / 12)) for n in range(6)]
    np.testing.assert_allclose(bound.value, wanted, rtol=1e-13)
    assert bound.hypotheses_hold and bound.floor == 0.0


@pytest.mark.parametrize("replace", [True, False])
def test_w2_bound_partial_by_hand(replace):
    even = by_hand(weights=[1 / 3] * 3)
    hand_h = H - 24.0 + 3.0 * (0.25 + 0.75 * 3) / 0.5
    algorithm = fald(participation=fs.Participation(2, replace))
    start = np.sqrt(6.0) * (np.sqrt(1.92) + np.sqrt(6.0))
    c_s = 1.0 if replace else 0.5
    c_k = 0.2 / (1 - np.exp(-0.1))
    spread = 0.25 + 3 * 0.75
    drawn = 2 * np.sqrt(c_k * 3 * 3.0 * spread * c_s / (2 * 0.5))
    for variant, q in (("informal", 16), ("printed", 9)):
        bound = theory.fa_ld.w2_bound_partial(even, algorithm, n_rounds=3, variant=variant)
        local = 120 * np.sqrt(0.15) * np.sqrt(hand_h * (q + 4))
        np.testing.assert_allclose(
            bound.value, [0.9875 ** (4 * n) * start + local + drawn for n in range(4)], rtol=1e-12)
        assert bound.terms["participation"][0] == pytest.approx(drawn, rel=1e-12)
    default = theory.fa_ld.w2_bound_partial(even, algorithm, n_rounds=3)
    assert default.variant == "printed" and default.floor == pytest.approx(
        120 * np.sqrt(0.15) * np.sqrt(hand_h * 13) + drawn)


def test_lemmas_by_hand():
    lemma = theory.fa_ld
    drift, noise = 9 * 0.01 * 3 * 4 * H, 3 * 0.1 * 3 * MEAN_TEMPERATURE
    for variant, (a, b) in {"corrected": (28, 4), "printed": (112, 8)}.items():
        found = lemma.divergence_bound(by_hand(), fald(), n_rounds=2, variant=variant)
        np.testing.assert_allclose(found.value, a * drift + b * noise, rtol=1e-13)
        assert found.rounds.tolist() == list(range(9)) and found.index == "local_step"
        drawn = fald(participation=fs.Participation(2, True))
        gap = lemma.participation_gap_bound(by_hand(), drawn, n_rounds=3, variant=variant)
        np.testing.assert_allclose(
            gap.value, 0.5 * (a * 16 * 0.01 * 3 * 4 * H + b * 4 * 0.1 * 3 * MEAN_TEMPERATURE), rtol=1e-13)
        assert gap.rounds.tolist() == [1, 2, 3]
    moment = lemma.second_moment_bound(by_hand(), fald(), n_rounds=1)
    np.testing.assert_allclose(moment.value, 5.76 + 36.0 * (12 + 0.8 + 2.89 / 1.5), rtol=1e-13)
    slope = lemma.gradient_moment_bound(by_hand(), fald(), n_rounds=1)
    np.testing.assert_allclose(slope.value, 14 * 3 * 4 * H, rtol=1e-13)
    assert lemma.discretization_bound(by_hand(), fald()).value[0] == pytest.approx(
        2 * 0.01 * 3 * 4 * 2 * 3 + 16 * 0.1 * 9)
    assert lemma.gradient_noise_bound(by_hand(), fald()).value[0] == pytest.approx(1.2 * 0.38)
    assert lemma.gradient_noise_bound(by_hand(), fald(), variant="printed").value[0] == pytest.approx(1.2)
    step = lemma.one_step_bound(by_hand(), fald(), w2=[2.0, 1.0])
    error = 400 * 0.01 * 3 * 4 * H * 13
    np.testing.assert_allclose(step.value, [0.975 * 4.0 + error, 0.975 + error], rtol=1e-13)
    assert step.rounds.tolist() == [1, 2]
    first = lemma.initial_bound(by_hand(), fald())
    assert first.value[0] == pytest.approx(2.4 + np.sqrt(18.0))
    printed = lemma.initial_bound(by_hand(), fald(), variant="printed")
    assert printed.value[0] == pytest.approx(np.sqrt(2) * (2.4 + np.sqrt(18.0)))
    points, others = np.eye(3), np.zeros((3, 3))
    one = lemma.contraction_bound(by_hand(), fald(), points=points, others=others)
    spread = sum(p * ((e - WEIGHTS) ** 2).sum() for p, e in zip(WEIGHTS, points, strict=True))
    assert one.value[0] == pytest.approx(0.95 * 0.38 + 4 * 0.1 * 2 * spread)


def test_a_schedule_takes_the_largest_step_of_the_round():
    steps = [0.1, 0.05, 0.2, 0.02, 0.01, 0.03]
    bound = theory.fa_ld.divergence_bound(by_hand(), fald(step_size=steps, local_steps=3), n_rounds=2)
    # nothing has been done at a synchronization; the first step of a round decides until a larger one
    largest = np.array([0.1, 0.1, 0.1, 0.02, 0.02, 0.02, 0.03])
    np.testing.assert_allclose(bound.terms["noise"], 4 * 2 * largest * 3 * MEAN_TEMPERATURE, rtol=1e-13)
    drawn = fald(step_size=steps, local_steps=3, participation=fs.Participation(1, True))
    gap = theory.fa_ld.participation_gap_bound(by_hand(), drawn, n_rounds=2)
    np.testing.assert_allclose(gap.terms["noise"], 4 * 3 * np.array([0.2, 0.03]) * 3 * MEAN_TEMPERATURE)


# --- hypotheses, vacuity, refusals

@pytest.mark.parametrize("step, holds", [(0.25, True), (0.25 * (1 + 1e-9), False), (0.1, True)])
def test_step_size_margin(step, holds):
    bound = theory.fa_ld.w2_bound(by_hand(), fald(step_size=step), n_rounds=3)
    only, = bound.assumptions
    assert bound.hypotheses_hold is holds and only.holds is holds
    assert only.margin == pytest.approx(1 - step / 0.25, abs=1e-12)


def test_bounds_are_finite_far_outside_their_hypotheses():
    for step in (0.26, 3.0, 1e6):
        bound = theory.fa_ld.w2_bound(by_hand(), fald(step_size=step), n_rounds=50)
        assert not bound.hypotheses_hold and np.isfinite(bound.value).all() and (bound.value > 0).all()


def test_theorem_4_8_asks_for_nothing_but_its_schedule():
    schedule = Harmonic.from_theorem(strong_convexity=M, smoothness=L)
    for steps in (97, 98, 10_000):  # 24 kappa = 96
        for shared in (0.0, RHO2, 1.0):
            algorithm = fald(step_size=schedule, local_steps=steps, shared_noise=shared)
            assert theory.fa_ld.w2_bound_decreasing(by_hand(), algorithm, n_rounds=1).hypotheses_hold
    other = Harmonic(offset=4.0, slope=0.05)
    assert not theory.fa_ld.w2_bound_decreasing(by_hand(), fald(step_size=other), n_rounds=1).hypotheses_hold


def test_scheme_two_needs_equal_weights():
    algorithm = fald(participation=fs.Participation(2, False))
    assert not theory.fa_ld.w2_bound_partial(by_hand(), algorithm, n_rounds=1).hypotheses_hold
    assert theory.fa_ld.w2_bound_partial(by_hand(weights=[1 / 3] * 3), algorithm, n_rounds=1).hypotheses_hold


def test_all_clients_drawn_leaves_no_participation_term():
    drawn = fald(participation=fs.Participation(3, False))
    even = by_hand(weights=[1 / 3] * 3)
    bound = theory.fa_ld.w2_bound_partial(even, drawn, n_rounds=2)
    full = theory.fa_ld.w2_bound(even, fald(), n_rounds=2, variant="printed")
    np.testing.assert_allclose(bound.value, full.value, rtol=1e-14)


@pytest.mark.parametrize("name, algorithm, words", [
    ("w2_bound", fald(participation=fs.Participation(2, True)), "w2_bound_partial"),
    ("w2_bound", fald(step_size=Harmonic(4.0, 0.1)), "w2_bound_decreasing"),
    ("w2_bound_decreasing", fald(), "theory.fa_ld.w2_bound "),
    ("w2_bound_decreasing", fald(step_size=Harmonic(4.0, 0.1), participation=fs.Participation(2, True)),
     "w2_bound_partial"),
    ("w2_bound_partial", fald(), "theory.fa_ld.w2_bound "),
    ("w2_bound_partial", fald(step_size=Harmonic(4.0, 0.1), participation=fs.Participation(2, True)),
     "must be constant"),
    ("w2_bound_partial", fald(participation=fs.Participation(4, False)),
     "n_active=4 must be at most n_clients=3"),
    ("participation_gap_bound", fald(), "participation=None"),
])
def test_the_wrong_theorem_points_at_the_right_one(name, algorithm, words):
    with pytest.raises(ValueError, match=words):
        getattr(theory.fa_ld, name)(by_hand(), algorithm, n_rounds=1)


@pytest.mark.parametrize("n_rounds", [-1, 1.5, None])
def test_bad_rounds(n_rounds):
    for name in ("w2_bound", "divergence_bound"):
        with pytest.raises(ValueError, match=f"n_rounds={n_rounds}"):
            getattr(theory.fa_ld, name)(by_hand(), fald(), n_rounds=n_rounds)


def test_a_schedule_that_ends_too_early():
    short = fald(step_size=[0.1] * 7, participation=fs.Participation(1, True))
    for name in ("divergence_bound", "participation_gap_bound"):
        assert getattr(theory.fa_ld, name)(by_hand(), short, n_rounds=1).hypotheses_hold
        with pytest.raises(ValueError, match="step_size has 7 entries"):
            getattr(theory.fa_ld, name)(by_hand(), short, n_rounds=2)


def test_the_papers_own_problem_is_vacuous():
    """Section 6: kappa = 34, floor above 1e2, true bias about 1.4e-5."""
    problem, algorithm = fs.papers.fa_ld_simulation(0.0, 0), fs.FALD(1e-7, local_steps=10)
    facts = theory.constants(problem, algorithm)
    bound = theory.fa_ld.w2_bound(facts, algorithm, n_rounds=10_000)
    assert facts.condition_number == pytest.approx(33.97, abs=0.01)
    bias = theory.stationary_law(problem, algorithm).w2(algorithm.target(problem))
    assert bias == pytest.approx(1.38e-5, rel=0.01) and bound.floor > 1e2
    assert bound.hypotheses_hold and bound.is_vacuous and bound.always_vacuous
    assert "bound vacuous: floor" in bound.remark
    partial = fs.FALD(1e-7, local_steps=10, participation=fs.Participation(10, False))
    assert theory.fa_ld.w2_bound_partial(facts, partial, n_rounds=100).is_vacuous


def test_a_bound_that_says_something():
    """A step size small enough, followed for long enough, from far away."""
    problem = fs.Quadratic(np.ones(1), np.zeros((1, 1)))
    algorithm = fs.FALD(1e-7)
    facts = theory.constants(problem, algorithm, start=[5.0])
    bound = theory.fa_ld.w2_bound(facts, algorithm, n_rounds=10**9)
    assert bound.hypotheses_hold and not bound.is_vacuous and bound.value[-1] < 0.1 < bound.start_distance
    assert theory.check(bound, theory.exact_law(problem, algorithm, 10**9, start=[5.0])).holds


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
                                                   n_rounds=0).terms["participation"][0])
    np.testing.assert_allclose(np.divide(gaps[:-1], gaps[1:]), 10.0, rtol=0.2)
    assert min(terms) > 0.9 * max(terms) > 100 * gaps[2]


# --- planning

@pytest.mark.parametrize("kappa", [1.0, 2.0, 3.7, 8.0, 33.97, 1000.0])
def test_optimal_local_steps_by_enumeration(kappa):
    tried = np.arange(1, 200)
    for rule, shift in (("(K-1)^2", 1), ("K^2", 0)):
        cost = ((tried - shift) ** 2 + kappa) / tried
        wanted = tried[cost <= cost.min() * (1 + 1e-14)]
        assert theory.fa_ld.optimal_local_steps(kappa, rule=rule) == tuple(wanted)
    assert theory.fa_ld.optimal_local_steps(1.0) == (1, 2)


@pytest.mark.parametrize("eps", [1e-3, 0.1, 3.0])
def test_the_plan_is_guaranteed_by_the_theorem(eps):
    found = theory.fa_ld.plan(by_hand(), fald(), eps)
    assert found.theorem == "fa_ld.w2_bound" and not found.cap_binds
    for variant in ("proof", "printed"):
        bound = theory.fa_ld.w2_bound(by_hand(), found.algorithm, n_rounds=found.n_rounds, variant=variant)
        assert bound.hypotheses_hold and bound.value[-1] <= eps * (1 + 1e-12)
    assert bound.floor == pytest.approx(eps / 2, rel=1e-12)  # by the rule as printed, with 30
    assert found.n_steps == K * found.n_rounds


def test_where_the_cap_binds():
    far = by_hand(initial_distance=1e3, heterogeneity=0.0, gradient_noise_traces=0.0)
    found = theory.fa_ld.plan(far, fald(), 1e6)
    assert found.cap_binds and found.step_size == 0.25 and "cap" in found.note
    assert theory.fa_ld.plan(far, fald(), 1.0).note == ""


def test_best_plan_by_enumeration():
    for eps in (0.5, 30.0, 400.0):
        facts = by_hand(initial_distance=50.0)
        tried = [theory.fa_ld.plan(facts, fald(local_steps=steps), eps).n_rounds for steps in range(1, 60)]
        assert theory.fa_ld.best_plan(facts, fald(), eps).n_rounds == min(tried)


@pytest.mark.parametrize("shared", [0.0, RHO2])
@pytest.mark.parametrize("eps", [0.01, 1.0, 30.0])
def test_the_plan_for_theorem_4_8_is_tight(eps, shared):
    """At its last round the bound is at most eps, and above eps one round before."""
    found = theory.fa_ld.plan(by_hand(), fald(step_size=Harmonic(1.0, 1.0), shared_noise=shared), eps)
    assert found.theorem == "fa_ld.w2_bound_decreasing" and found.algorithm.shared_noise == shared
    assert found.algorithm.schedule == Harmonic(4.0, 0.5 / 12)  # 2 L and m/12
    assert (found.step_size, found.n_steps, found.cap_binds) == (0.25, K * found.n_rounds, False)
    bound = theory.fa_ld.w2_bound_decreasing(by_hand(), found.algorithm, n_rounds=found.n_rounds,
                                             record=[found.n_rounds - 1])
    assert bound.hypotheses_hold and bound.value[-1] <= eps < bound.value[-2]
    # by hand: 45^2 kappa^2 ((K-1)^2 + kappa) H m d/(2L + m k/12) <= eps^2
    h = H + (6.0 if shared == 0.0 else 0.0)
    steps = (2025 * 16 * 13 * h * 0.5 * 3 / eps**2 - 4.0) * 12 / 0.5
    assert found.n_rounds == pytest.approx(np.ceil(steps / K), abs=1)


def test_a_plan_for_theorem_4_8_may_need_no_round():
    found = theory.fa_ld.plan(by_hand(), fald(step_size=Harmonic(1.0, 1.0)), 1e6)
    assert found.n_rounds == 0
    assert theory.fa_ld.w2_bound_decreasing(by_hand(), found.algorithm, n_rounds=0).value[0] <= 1e6


@pytest.mark.parametrize("eps", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("replace", [True, False])
def test_the_plan_for_theorem_4_10_is_thirds(replace, eps):
    """Given the fewest clients that do, each term is at most a third of eps; one client fewer is refused."""
    facts = by_hand(weights=[1 / 400] * 400, initial_distance=100.0, gradient_noise_traces=1.2)
    drawn = fald(participation=fs.Participation(7, replace))
    fewest = theory.fa_ld.fewest_active(facts, drawn, eps)
    found = theory.fa_ld.plan(facts, fald(participation=fs.Participation(fewest, replace)), eps)
    bound = theory.fa_ld.w2_bound_partial(facts, found.algorithm, n_rounds=found.n_rounds)
    assert found.theorem == "fa_ld.w2_bound_partial" and bound.hypotheses_hold
    assert found.algorithm.participation == fs.Participation(fewest, replace)
    for term in bound.terms.values():
        assert term[-1] <= eps / 3 * (1 + 1e-12)
    assert bound.terms["discretization"][-1] == pytest.approx(eps / 3, rel=1e-12)
    assert replace or 1 < fewest <= 400
    with pytest.raises(ValueError, match=f"n_active={fewest - 1} must be at least {fewest} for eps"):
        theory.fa_ld.plan(facts, fald(participation=fs.Participation(fewest - 1, replace)), eps)


def test_one_client_is_drawn_whole():
    facts = theory.Constants(dim=1, strong_convexity=1.0, smoothness=1.0, weights=[1.0], initial_distance=1.0)
    for replace in (True, False):
        drawn = fs.FALD(0.1, participation=fs.Participation(1, replace))
        assert theory.fa_ld.fewest_active(facts, drawn, 1e-6) == 1
        assert theory.fa_ld.plan(facts, drawn, 1e-3).n_rounds > 0


def test_plans_reach_their_accuracy():
    """The exact law at the plan's last round, for the three theorems."""
    problem = fs.Quadratic([1.0, 1.5], [[1.0], [-1.0]])
    drawn = fs.Participation(2, False)
    for algorithm, eps in ((fs.FALD(0.1, 2), 3.0), (fs.FALD(0.1, 2, participation=drawn), 3.0)):
        facts = theory.constants(problem, algorithm, [9.0])
        found = theory.fa_ld.plan(facts, algorithm, eps)
        law = theory.exact_law(problem, found.algorithm, found.n_rounds, start=[9.0], record=[])
        assert law.w2()[0] > eps >= law.w2()[-1]
    facts = theory.constants(problem, fs.FALD(Harmonic(1.0, 1.0)), [9.0])
    found = theory.fa_ld.plan(facts, fs.FALD(Harmonic(1.0, 1.0)), 100.0)
    assert 0 < found.n_rounds < 10_000
    law = theory.exact_law(problem, found.algorithm, found.n_rounds, start=[9.0], record=[])
    assert law.w2()[-1] <= 100.0


def test_best_plan_for_theorem_4_8_by_enumeration():
    for eps in (0.5, 30.0, 400.0, 3000.0):
        facts = by_hand(initial_distance=50.0)
        chosen = fald(step_size=Harmonic(1.0, 1.0))
        tried = [theory.fa_ld.plan(facts, dataclasses.replace(chosen, local_steps=steps), eps).n_rounds
                 for steps in range(1, 40)]
        assert theory.fa_ld.best_plan(facts, chosen, eps).n_rounds == min(tried)


def test_a_schedule_is_compared_by_its_constant_plan():
    problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    schedule = Harmonic.from_theorem(strong_convexity=1.0, smoothness=3.0)
    found, plain = (theory.tuning.compare(problem, fs.FALD(step, 2), 0.5, n_grid=9, n_refine=0)
                    for step in (schedule, 0.1))
    assert found == plain


@pytest.mark.parametrize("call, words", [
    (lambda: theory.fa_ld.plan(by_hand(), fald(), 0.0), "eps=0.0"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(), np.nan), "eps=nan"),
    (lambda: theory.fa_ld.best_plan(by_hand(), fald(participation=fs.Participation(1, True)), 1.0),
     "participation="),
    (lambda: theory.fa_ld.plan(by_hand(), fald(participation=fs.Participation(1, True)), 1.0),
     "n_active=1 must be at least 3241 for eps=1.0"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(participation=fs.Participation(1, False)), 1.0),
     "equal weights or scheme I"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(participation=fs.Participation(4, False)), 1.0),
     "n_active=4 must be at most n_clients=3"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(step_size=Harmonic(4.0, 0.1),
                                               participation=fs.Participation(1, True)), 1.0),
     "must be constant with participation"),
    (lambda: theory.fa_ld.plan(by_hand(), fald(step_size=Harmonic(4.0, 0.1)), 1e-200),
     "eps=1e-200 is too small"),
    (lambda: theory.fa_ld.plan(3, fald(step_size=Harmonic(4.0, 0.1)), 1.0), "constants=3"),
    (lambda: theory.fa_ld.fewest_active(by_hand(), fald(), 1.0), "FALD with participation"),
    (lambda: theory.fa_ld.fewest_active(by_hand(), 3, 1.0), "FALD with participation"),
    (lambda: theory.fa_ld.fewest_active(3, fald(participation=fs.Participation(1, True)), 1.0),
     "constants=3"),
    (lambda: theory.fa_ld.fewest_active(by_hand(), fald(participation=fs.Participation(1, True)), 1e-160),
     "eps=1e-160 is too small"),
    (lambda: theory.fa_ld.plan(by_hand(convention="global"), fald(), 1.0), "convention='global'"),
    (lambda: theory.fa_ld.plan(3, fald(), 1.0), "constants=3"),
    (lambda: theory.fa_ld.plan(by_hand(), 3, 1.0), "algorithm=3"),
    (lambda: theory.fa_ld.optimal_local_steps(0.5), "condition_number=0.5"),
    (lambda: theory.fa_ld.optimal_local_steps(4.0, rule="K"), "rule='K'"),
])
def test_bad_plans(call, words):
    with pytest.raises(ValueError, match=words):
        call()
