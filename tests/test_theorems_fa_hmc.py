"""FA-HMC's theorems and lemmas: by hand at a point, and against exact laws on random problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm

import fedsim as fs
import theory
from theory import fa_hmc, rates
from theory.exact import FAHMCFlow

SEED = 20240711
VARIANTS = ("corrected", "consistent")  # "printed" is expected to fail, see below


def draw_problem(rng):
    """A random quadratic: any scale, condition up to 1e3, very unequal weights, gradient noise."""
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    scale = 10.0 ** rng.uniform(-3, 3)
    kappa = 10.0 ** rng.choice([0.0, rng.uniform(0, 1), rng.uniform(0, 3)])
    spectra = scale * kappa ** rng.uniform(0, 1, (n, d))
    frames = np.linalg.qr(rng.standard_normal((n, d, d)))[0]
    hessians = (frames * spectra[:, None, :]) @ np.swapaxes(frames, 1, 2)
    hessians = 0.5 * (hessians + np.swapaxes(hessians, 1, 2))
    kind = rng.integers(4)
    if kind == 1:  # one Hessian for all
        hessians = np.repeat(hessians[:1], n, axis=0)
    if kind == 2:  # coordinates apart
        hessians = spectra
    minimizers = 10.0 ** rng.uniform(-2, 2) / np.sqrt(scale) * rng.standard_normal((n, d))
    if kind == 3:  # no heterogeneity of minimizers
        minimizers = np.repeat(minimizers[:1], n, axis=0)
    weights = None
    if rng.random() < 0.7:
        weights = rng.dirichlet(np.full(n, 0.4)) + 1e-3
        weights = weights / weights.sum()
    noise = None
    if rng.random() < 0.5:
        roots = rng.standard_normal((n, d, d)) * np.sqrt(scale) * 10.0 ** rng.uniform(-2, 1.5)
        noise = roots @ np.swapaxes(roots, 1, 2)
    return fs.Quadratic(hessians, minimizers, weights, noise)


def draw_start(rng, problem):
    """The origin, a point up to 1000 standard deviations away, a Gaussian, the target itself."""
    size = 10.0 ** rng.uniform(-2, 3) * np.sqrt(np.trace(problem.target().cov))
    point = problem.minimizer + size * rng.standard_normal(problem.dim)
    return [None, point, fs.Gaussian(point, size**2 * rng.random(problem.dim)), problem.target()][
        rng.integers(4)]


def draw_case(rng, longest="half"):
    """Problem, algorithm within the hypotheses, start and number of rounds.

    `longest` trajectory: "half" and "full" of 1/sqrt(L), "reach" of the recursion, "moments" of Lemma D.7.
    """
    problem = draw_problem(rng)
    curvatures = np.linalg.eigvalsh(problem.dense_hessians)
    low, high = curvatures.min(), curvatures.max()
    limit = {"half": 0.5 / np.sqrt(high), "full": 1.0 / np.sqrt(high),
             "reach": min(1.0 / np.sqrt(high), 0.5 / np.sqrt(low)),
             "moments": 0.5 * np.sqrt(low) / high}[longest]
    limit *= 1.0 - 1e-13  # the theorems' own eigenvalues may differ in the last digit
    length = limit * rng.choice([1.0, rng.uniform(0.1, 1.0), 10.0 ** rng.uniform(-2, 0)])
    K, T = (int(rng.choice([1, 2, rng.integers(1, 12)])) for _ in range(2))
    shared = float(rng.choice([0.0, 1.0, rng.random()]))
    return problem, fs.FAHMC(length / K, K, T, shared), draw_start(rng, problem), int(rng.choice([1, 2, 5]))


# --- the exact side

def noises(problem, algorithm, n_steps):
    """Names of the independent standard Gaussian vectors of n_steps updates."""
    K = algorithm.leapfrog_steps
    clients = range(problem.n_clients)
    return ([("start",), ("oracle",)] + [("shared", t) for t in range(n_steps)]
            + [("own", t, c) for t in range(n_steps) for c in clients]
            + [("gradient", t, c, i) for t in range(n_steps) for c in clients for i in range(2 * K - 1)])


def run_once(problem, algorithm, n_steps, mean, root, roots, tie, value):
    """Clients and oracle by plain loops; `value(name)` is the noise vector of that name.

    The oracle's flow is the exponential of its Hamiltonian matrix, its start the target's, tied to the
    clients' by the map `tie`. Returns the averages minus the oracle, and the clients, at 0..n_steps.
    """
    N, d, w = problem.n_clients, problem.dim, problem.weights
    K, T, eta, s = (algorithm.leapfrog_steps, algorithm.local_steps, float(algorithm.schedule.largest),
                    algorithm.shared_noise)
    hessians, target = problem.dense_hessians, problem.target()
    overall = np.einsum("c,cij->ij", w, hessians)
    zero = np.zeros((d, d))
    flow = expm(K * eta * np.block([[zero, np.eye(d)], [-overall, zero]]))
    oracle = target.mean + np.linalg.cholesky(target.cov) @ value(("oracle",))
    x = np.repeat((mean + root @ value(("start",)) + tie @ (oracle - target.mean))[None], N, axis=0)
    gaps, clients = [w @ x - oracle], [x.copy()]

    def slope(c, point, name):
        return hessians[c] @ (point - problem.minimizers[c]) + roots[c] @ value(name)

    for t in range(n_steps):
        momenta = [np.sqrt(s) * value(("shared", t)) + np.sqrt((1 - s) / w[c]) * value(("own", t, c))
                   for c in range(N)]
        state = np.concatenate([oracle - target.mean, w @ np.array(momenta)])
        oracle = target.mean + (flow @ state)[:d]
        for c in range(N):
            q, p, draw = x[c], momenta[c], 0
            first = slope(c, q, ("gradient", t, c, draw))
            for k in range(K):
                q = q + eta * p - 0.5 * eta**2 * first
                if k + 1 < K:
                    second = slope(c, q, ("gradient", t, c, draw + 1))
                    p = p - 0.5 * eta * (first + second)
                    first, draw = slope(c, q, ("gradient", t, c, draw + 2)), draw + 2
            x[c] = q
        if (t + 1) % T == 0:
            x[:] = w @ x
        gaps.append(w @ x - oracle)
        clients.append(x.copy())
    return np.array(gaps), np.array(clients)


@pytest.mark.parametrize("kind", ["point", "gaussian"])
def test_the_coupling_against_plain_loops(kind):
    """E_t and gradients from the responses to every single noise vector."""
    rng = np.random.default_rng(SEED)
    frames = rng.standard_normal((3, 2, 2))
    noise = rng.standard_normal((3, 2, 2))
    noise = noise @ np.swapaxes(noise, 1, 2)
    problem = fs.Quadratic(np.eye(2) + frames @ np.swapaxes(frames, 1, 2), rng.standard_normal((3, 2)),
                           [0.1, 0.3, 0.6], noise)
    algorithm, n_steps, d = fs.FAHMC(0.1, 3, 2, 0.3), 5, 2
    mean, target = np.array([1.0, -2.0]), problem.target()
    root, tie, start = np.zeros((d, d)), np.zeros((d, d)), mean
    if kind == "gaussian":  # commuting with the target, so that the optimal map is a multiple
        start, tie = fs.Gaussian(mean, 4.0 * target.cov), 2.0 * np.eye(d)
    law = fa_hmc.coupling_law(problem, algorithm, n_steps, start=start)
    roots = np.linalg.cholesky(noise)

    def run(active=None, i=0):
        def value(name):
            return np.eye(d)[i] if name == active else np.zeros(d)

        return run_once(problem, algorithm, n_steps, mean, root, roots, tie, value)

    gap, centre = run()
    distance = (gap**2).sum(axis=1)
    slopes = problem.dense_hessians
    pull = np.einsum("cij,tcj->tci", slopes, centre - problem.minimizers)
    gradients = (pull**2).sum(axis=2)
    for name in noises(problem, algorithm, n_steps):
        for i in range(d):
            moved, clients = run(name, i)
            distance += ((moved - gap) ** 2).sum(axis=1)
            gradients += (np.einsum("cij,tcj->tci", slopes, clients - centre) ** 2).sum(axis=2)
    np.testing.assert_allclose(law.distance_sq, distance, rtol=1e-11)
    np.testing.assert_allclose(law.gradient_moments, gradients, rtol=1e-11)
    assert law.distance_sq[0] == pytest.approx(theory.constants(problem, algorithm, start).initial_w2**2)


def test_the_coupling_agrees_with_the_joint_law():
    rng = np.random.default_rng([SEED, 1])
    for _ in range(20):
        problem, algorithm, start, rounds = draw_case(rng)
        steps = rounds * algorithm.local_steps
        law = fa_hmc.coupling_law(problem, algorithm, steps, start=start)
        joint = theory.exact.joint_law(problem, algorithm, steps, start=start)
        for c in range(problem.n_clients):
            np.testing.assert_allclose(law.gradient_moments[:, c],
                                       fa_hmc.quantities.gradient_moments(joint, c), rtol=1e-7)
        w2 = theory.exact_law(problem, algorithm, rounds, start=start).w2()
        every = law.distance_sq[::algorithm.local_steps]
        assert (w2**2 <= every + 1e-10 * law.scale).all() and every[0] == pytest.approx(
            w2[0] ** 2, abs=1e-10 * law.scale)


def test_the_main_part_by_hand():
    """One client, curvature a: (I) = (1 - a X^2/2)(theta - theta^pi) + (a X^3/6)/K^2 p."""
    a, K, X = 2.0, 4, 0.3
    problem, algorithm = fs.Quadratic([a], [[1.0]]), fs.FAHMC(X / K, K)
    law = fa_hmc.coupling_law(problem, algorithm, 3, start=[3.0])
    left = X**3 * a / 6 - (K**3 - K) * (X / K) ** 3 * a / 6
    np.testing.assert_allclose(law.main_part, (1 - a * X**2 / 2) ** 2 * law.distance_sq[:-1] + left**2,
                               rtol=1e-12)


# --- exact quantity <= bound, on random problems within the hypotheses

def checked(bound, law, case):
    verdict = theory.check(bound, law)
    assert verdict.hypotheses_met, f"{bound.summary()}\n{case}"
    assert verdict.holds, f"{verdict}\n{bound.summary()}\n{case}"
    assert np.isfinite(bound.value).all()
    return verdict.tightness


def test_the_recursion_on_two_thousand_problems():
    """One step from every exact E_t, and iterated, with the exact B_c; far starts among them."""
    rng = np.random.default_rng([SEED, 2])
    largest = dict.fromkeys(VARIANTS, 0.0)
    for number in range(2000):
        case = problem, algorithm, start, rounds = draw_case(rng, "half" if number % 2 else "reach")
        law = fa_hmc.coupling_law(problem, algorithm, rounds * algorithm.local_steps, start=start)
        facts, moments = theory.constants(problem, algorithm, start), law.gradient_moments.max(axis=0)
        for variant in VARIANTS:
            options = {"gradient_moments": moments, "variant": variant}
            bound = fa_hmc.one_step_bound(facts, algorithm, coupling=law.distance_sq[:-1], **options)
            largest[variant] = max(largest[variant], checked(bound, law, case))
            if number % 4 == 0:
                checked(fa_hmc.coupling_bound(facts, algorithm, n_rounds=rounds, **options), law, case)
    assert min(largest.values()) > 0.99  # far starts contract about as fast as allowed


def test_the_recursion_with_listed_steps():
    """Step sizes that change from round to round, also upwards."""
    rng = np.random.default_rng([SEED, 3])
    for _ in range(150):
        problem, algorithm, start, rounds = draw_case(rng)
        steps = np.repeat(rng.uniform(0.01, 1.0, rounds), algorithm.local_steps) * algorithm.schedule.largest
        case = problem, algorithm, start, rounds = (
            problem, fs.FAHMC(steps, algorithm.leapfrog_steps, algorithm.local_steps,
                              algorithm.shared_noise), start, rounds)
        law = fa_hmc.coupling_law(problem, algorithm, len(steps), start=start)
        facts = theory.constants(problem, algorithm, start)
        options = {"gradient_moments": law.gradient_moments.max(axis=0)}
        checked(fa_hmc.one_step_bound(facts, algorithm, coupling=law.distance_sq[:-1], **options), law, case)
        bound = fa_hmc.coupling_bound(facts, algorithm, n_rounds=rounds, **options)
        checked(bound, law, case)
        assert bound.floor is None


def test_w2_against_the_exact_law():
    """Nothing but constants goes in: B_c by Lemma D.7."""
    rng = np.random.default_rng([SEED, 4])
    tightness = []
    for _ in range(250):
        case = problem, algorithm, start, _ = draw_case(rng, "moments")
        facts = theory.constants(problem, algorithm, start)
        law = theory.exact_law(problem, algorithm, 10**6, start=start, record=[1, 2, 5, 1000])
        bound = fa_hmc.w2_bound(facts, algorithm, n_rounds=10**6, record=[1, 2, 5, 1000])
        tightness.append(checked(bound, law, case))
        floor = theory.stationary_law(problem, algorithm).w2(problem.target())
        assert floor <= bound.floor * (1 + 1e-9) + 1e-12 and bound.floor**2 == pytest.approx(
            fa_hmc.steady_state(facts, algorithm), rel=1e-12)
        assert bound.floor <= np.sqrt(spec_steady_state(facts, algorithm)) * (1 + 1e-12)
    assert max(tightness) > 0.99


def spec_steady_state(facts, algorithm):
    """4/(mu X^2) times the largest of the terms added in a round."""
    s = fa_hmc.setting(facts, algorithm)
    parts = fa_hmc.recursion.added(s, np.full(s.T, s.X), np.arange(s.T), s.gradient_moments(), "corrected")
    return 4.0 / (s.mu * s.X**2) * float(np.max(sum(parts.values())))


def test_lemmas_about_clients():
    """Lemmas D.4, D.6, D.7 and D.8 with exact moments, every client, on random problems."""
    rng = np.random.default_rng([SEED, 5])
    largest = {}

    def note(name, value):
        largest[name] = max(largest.get(name, 0.0), value)

    for _ in range(120):
        case = problem, algorithm, start, rounds = draw_case(rng, "moments")
        facts = theory.constants(problem, algorithm, start)
        law = theory.exact.joint_law(problem, algorithm, rounds * algorithm.local_steps, start=start)
        pair = fa_hmc.coupling_law(problem, algorithm, rounds * algorithm.local_steps, start=start)
        moments = [fa_hmc.quantities.gradient_moments(law, c).max() for c in range(problem.n_clients)]
        note("D.8", checked(fa_hmc.divergence_bound(
            facts, algorithm, n_rounds=rounds, gradient_moments=moments), law, case))
        for variant in VARIANTS:
            note("D.4", checked(fa_hmc.main_part_bound(
                facts, algorithm, coupling=pair.distance_sq[:-1], gradient_moments=moments,
                variant=variant), pair, case))
        for c in range(problem.n_clients):
            before = law.second_moment_about(problem.minimizer)[:-1, c]
            for name, bound in {
                    "D.6 (7)": fa_hmc.leapfrog_deviation_bound(facts, algorithm, client=c,
                                                               gradient_moments=moments),
                    "D.6 (8)": fa_hmc.leapfrog_gradient_deviation_bound(facts, algorithm, client=c,
                                                                        gradient_moments=moments),
                    "D.7 (10)": fa_hmc.client_step_bound(facts, algorithm, second_moments=before, client=c),
                    "D.7 (11)": fa_hmc.client_moment_bound(facts, algorithm, n_rounds=rounds, client=c),
                    "D.7 (12)": fa_hmc.client_gradient_bound(facts, algorithm, n_rounds=rounds, client=c),
            }.items():
                note(name, checked(bound, law, case))
    assert set(largest) == {"D.4", "D.8", "D.6 (7)", "D.6 (8)", "D.7 (10)", "D.7 (11)", "D.7 (12)"}
    assert min(largest.values()) > 0.05, largest


def test_lemmas_about_trajectories():
    """Lemmas D.2, D.3, D.5, D.9 and D.10 on random problems, D.5 and D.9 on longer trajectories."""
    rng = np.random.default_rng([SEED, 6])
    largest = {}
    for _ in range(150):
        case = problem, algorithm, _, _ = draw_case(rng)
        facts = theory.constants(problem, algorithm)
        apart, push = rng.standard_normal((2, problem.dim)) * 10.0 ** rng.uniform(-2, 2, (2, 1))
        longer = fs.FAHMC(2 * algorithm.step_size, algorithm.leapfrog_steps)
        bounds = {"D.2": fa_hmc.target_moment_bound(facts, algorithm),
                  "D.9 (14)": fa_hmc.oracle_deviation_bound(
                      facts, fs.FAHMC(20 * algorithm.step_size, algorithm.leapfrog_steps)),
                  "D.9 (15)": fa_hmc.oracle_reach_bound(facts, longer),
                  "D.9 (16)": fa_hmc.oracle_gradient_bound(facts, longer),
                  "D.10": fa_hmc.maxima_bound(facts, algorithm, momentum_variance=rng.uniform(0.1, 10))}
        for variant in ("corrected", "sharp"):
            bounds[f"D.3 {variant}"] = fa_hmc.flow_distance_bound(
                facts, algorithm, position_gap=apart, momentum_gap=push, variant=variant)
        client = int(rng.integers(problem.n_clients))
        point = problem.minimizers[client] + apart
        for variant in ("proof", "printed"):
            given = {"point": point, "momentum": push, "gradient": problem.gradient(client, point),
                     "client": client, "variant": variant}
            for name, moved in (("D.5 (5)", fa_hmc.displacement_bound),
                                ("D.5 (6)", fa_hmc.gradient_displacement_bound)):
                found = checked(moved(facts, longer, **given), problem, case)
                largest[name] = max(largest.get(name, 0.0), found)
        for name, bound in bounds.items():
            source = problem.target() if name == "D.2" else problem
            largest[name] = max(largest.get(name, 0.0), checked(bound, source, case))
    assert min(largest.values()) > 0.01 and largest["D.3 sharp"] > 0.99, largest


def test_gaussian_maxima_by_other_means():
    """d = 1 exactly, d = 2 by E max(x, y) = 1/sqrt(pi) type integrals, larger d by sampling."""
    square = fa_hmc.quantities.largest_square
    assert square(1) == pytest.approx(1.0, rel=1e-9) and square(1, 2) == pytest.approx(3.0, rel=1e-9)
    # max(x^2, y^2) = (x^2 + y^2)/2 + |x^2 - y^2|/2, and |x^2 - y^2| = |u v| of two independent sums
    assert square(2) == pytest.approx(1.0 + 2.0 / np.pi, rel=1e-9)
    drawn = np.random.default_rng(SEED).standard_normal((200_000, 20))
    top = (drawn**2).max(axis=1)
    for power in (1, 2):
        spread = (top**power).std() / np.sqrt(len(top))
        assert abs((top**power).mean() - square(20, power)) < 5 * spread
    mixed = (drawn**2).sum(axis=1) * top
    assert abs(mixed.mean() - 22 * square(20)) < 5 * mixed.std() / np.sqrt(len(top))


def test_every_theorem_is_examined():
    """The catalogue's own way: every statement of the paper on one problem, all default variants."""
    problem, algorithm = fs.Quadratic([1.0, 3.0], [[1.0], [2.0]]), fs.FAHMC(0.01, 10, 5, 0.3)
    entries = [entry for entry in theory.theorems() if entry.id.startswith("fa_hmc.")]
    assert len(entries) == 24
    for entry in entries:
        if entry.kind == "rate":
            with pytest.raises(ValueError, match="is a rate"):
                theory.examine(entry, problem, algorithm, 20)
            continue
        chosen = FAHMCFlow(0.3, 5) if entry.algorithm is FAHMCFlow else algorithm
        for rounds in (0, 20):
            if rounds or entry.index == "round":
                verdict = theory.examine(entry, problem, chosen, rounds)
                assert verdict.holds and verdict.hypotheses_met, entry.id


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_bounds_scale_with_the_problem(scale):
    """Lengths times s, Hessians over s^2, step sizes times s: W2 bounds go like s."""
    rng = np.random.default_rng(SEED)
    base = fs.Quadratic(1.0 + rng.random((3, 2)), rng.standard_normal((3, 2)), [0.2, 0.3, 0.5], 0.7)
    scaled = fs.Quadratic(base.hessians / scale**2, base.minimizers * scale, base.weights, 0.7 / scale)
    for variant in VARIANTS:
        one, other = (theory.examine("fa_hmc.w2_bound", p, fs.FAHMC(0.02 * s, 5, 4, 0.4), 20,
                                     variant=variant) for p, s in ((base, 1.0), (scaled, scale)))
        np.testing.assert_allclose(other.bound.value, scale * one.bound.value, rtol=1e-10)


# --- each formula by hand at a point

MU, L, D, K, T, ETA, RHO, BEND = 0.5, 2.0, 3, 4, 3, 0.04, 0.25, 1.5
WEIGHTS, TRACES, SLOPES = np.array([0.2, 0.3, 0.5]), np.array([0.6, 1.2, 0.9]), np.array([1.7, 0.8, 0.3])
DISTANCE, W2 = 2.4, 2.0
X = 0.16
S = np.array([4.0, 2.75, 1.75])  # 1/4 + 3/(4 w)
MOMENTS = np.array([3.0, 5.0, 7.0])
C_D = 128 + 32 * math.log(6.0) ** 2
FACTS = {"dim": D, "strong_convexity": MU, "smoothness": L, "weights": WEIGHTS,
         "gradient_at_minimizer": SLOPES, "gradient_noise_traces": TRACES, "initial_distance": DISTANCE,
         "initial_w2": W2}


def by_hand(**changes):
    return theory.Constants(**(FACTS | changes))


def fahmc(**changes):
    given = {"step_size": ETA, "leapfrog_steps": K, "local_steps": T, "shared_noise": RHO}
    return fs.FAHMC(**(given | changes))


def hand_added(j, variant):
    """a_j written out: weights, s_c, sigma_g^2 = 1.2/3, bend = c_d L_H^2/L^3."""
    literal = variant == "printed"
    sigma = 0.4 / L if literal else 0.4
    s = S * D if literal else S
    bend = C_D * BEND**2 / 8.0
    own = [(1 + bend * v / 8) * m / L + (v + bend * v**2) * D + sigma * D / (K * L) * (1 + bend * v)
           for v, m in zip(s, MOMENTS, strict=True)]
    oracle = 1.25 * (4.0 + BEND**2 * C_D / 8) * D
    rest = (X**6 * 4 * sum(w * v for w, v in zip(WEIGHTS, s, strict=True)) * D / 8
            + X**4 / (3 * K) * 0.38 * sigma * D
            + X**6 * 8 / (9 * 0.5) * (sum(w * e for w, e in zip(WEIGHTS, own, strict=True)) + oracle))
    if variant == "corrected":
        apart = j**2 * X**4 * sum(w * (31 / 30 * m + 2 / 9 * L * v * D + sigma * D / (18 * K))
                                  for w, m, v in zip(WEIGHTS, MOMENTS, s, strict=True))
        apart += 2 * j * X**2 * (0.75 * 2 * D + X**2 / (4 * K) * (0.16 + 0.21 + 0.25) * sigma * D)
        return 15 / 7 * L * X**2 * apart + rest
    spread = sum(w * v for w, v in zip(WEIGHTS, s, strict=True)) - 1 if literal else 1.5
    delta = [5 / 9 * m / L + v * D / 81 + sigma * D / (6 * K * L) + spread * D / (L * X**2)
             for m, v in zip(MOMENTS, s, strict=True)]
    return 3 * X**6 * 4 * T * j * sum(
        w * (1 - w) * e for w, e in zip(WEIGHTS, delta, strict=True)) + rest


def test_setting_by_hand():
    s = fa_hmc.setting(by_hand(), fahmc(), BEND)
    assert (s.mu, s.L, s.kappa, s.d, s.N, s.K, s.T, s.rho) == (MU, L, 4.0, D, 3, K, T, RHO)
    assert s.X == pytest.approx(X) and s.D == pytest.approx(5.76) and s.sigma_sq == pytest.approx(0.4)
    np.testing.assert_allclose(s.s, S, rtol=1e-14)
    assert s.spread == pytest.approx(WEIGHTS @ S - 1) == 1.5 and s.c_d == pytest.approx(C_D)
    cost = [8 * v * 3 + 4 * g**2 / 1.5 + 0.4 * 3 / (7 * 4 * 0.5) for v, g in zip(S, SLOPES, strict=True)]
    np.testing.assert_allclose(s.moment_constants(), cost, rtol=1e-13)
    mean = 0.2 * cost[0] + 0.3 * cost[1] + 0.5 * cost[2]
    second = [5.76 + 16 * (c + mean) for c in cost]
    np.testing.assert_allclose(s.second_moments(), second, rtol=1e-13)
    np.testing.assert_allclose(s.gradient_moments(), [8 * m + 2 * g**2 for m, g in
                                                      zip(second, SLOPES, strict=True)], rtol=1e-13)
    printed = [24 + 4 * g**2 / 1.5 + 0.2 * 3 / (7 * 4 * 0.5) for g in SLOPES]
    np.testing.assert_allclose(s.moment_constants("printed"), printed, rtol=1e-13)
    alone = theory.Constants(dim=1, strong_convexity=1.0, smoothness=1.0, initial_distance=1.0)
    assert fa_hmc.setting(alone, fahmc()).slopes.tolist() == [0.0]


@pytest.mark.parametrize("variant", ["corrected", "printed", "consistent"])
def test_recursion_by_hand(variant):
    options = {"gradient_moments": MOMENTS, "hessian_smoothness": BEND, "variant": variant}
    a = [hand_added(j, variant) for j in range(3)]
    keep = 1 - 0.5 * X**2 / 4
    step = fa_hmc.one_step_bound(by_hand(), fahmc(), coupling=[2.0, 1.0, 3.0, 5.0], **options)
    np.testing.assert_allclose(step.value, [2 * keep + a[0], keep + a[1], 3 * keep + a[2], 5 * keep + a[0]],
                               rtol=1e-13)
    assert step.rounds.tolist() == [1, 2, 3, 4] and step.hypotheses_hold
    E = [W2**2]
    for t in range(12):
        E.append(keep * E[-1] + a[t % 3])
    bound = fa_hmc.coupling_bound(by_hand(), fahmc(), n_rounds=4, **options)
    np.testing.assert_allclose(bound.value, E, rtol=1e-12)
    listed = fa_hmc.coupling_bound(by_hand(), fahmc(step_size=np.full(12, ETA)), n_rounds=4, **options)
    np.testing.assert_allclose(listed.value, E, rtol=1e-12)
    w2 = fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=4, **options)
    np.testing.assert_allclose(w2.value, np.sqrt(E[::3]), rtol=1e-12)
    for _ in range(3000):
        E.append(keep * E[-1] + a[(len(E) - 1) % 3])
    while (len(E) - 1) % 3:
        E.append(keep * E[-1] + a[(len(E) - 1) % 3])
    assert fa_hmc.steady_state(by_hand(), fahmc(), **options) == pytest.approx(E[-1], rel=1e-3)
    assert w2.floor == pytest.approx(np.sqrt(fa_hmc.steady_state(by_hand(), fahmc(), **options)), rel=1e-14)
    far = fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=10**8, record=[10**8], **options)
    assert far.value[-1] == pytest.approx(w2.floor, rel=1e-9)


def test_lemmas_by_hand():
    facts, algorithm = by_hand(), fahmc()
    apart = [hand_added(j, "corrected") - hand_added(0, "corrected") for j in range(3)]
    drift = fa_hmc.divergence_bound(facts, algorithm, n_rounds=1, gradient_moments=MOMENTS)
    np.testing.assert_allclose(drift.value, [*(np.array(apart) / (15 / 7 * L * X**2)), 0.0], atol=1e-15)
    main = fa_hmc.main_part_bound(facts, algorithm, coupling=[2.0, 1.0], gradient_moments=MOMENTS)
    kick = X**6 * 4 * 2.5 * 3 / 9
    np.testing.assert_allclose(main.value, [2 * (1 - 0.0064) + kick,
                                            1 - 0.0064 + 2 * X**2 * L * drift.value[1] + kick], rtol=1e-13)
    u = ETA * np.arange(1, 5)
    k = np.arange(1, 5)
    seven = fa_hmc.leapfrog_deviation_bound(facts, algorithm, gradient_moments=MOMENTS)
    np.testing.assert_allclose(seven.value, u**4 / 3 * (3 + 2 * 4 * 3 + 0.4 * 3 / k), rtol=1e-13)
    assert seven.inputs["client"] == 0 and seven.index == "leapfrog_step"
    eight = fa_hmc.leapfrog_gradient_deviation_bound(facts, algorithm, client=2, gradient_moments=MOMENTS,
                                                     hessian_smoothness=BEND)
    bend = C_D * BEND**2 / 8
    wanted = (1 + bend * 1.75 / 8) * 3.5 + (1.75 + bend * 1.75**2) * 3
    wanted = wanted + 0.4 * 3 / (2 * k) * (1 + bend * 1.75)
    np.testing.assert_allclose(eight.value, u**4 * 8 * wanted, rtol=1e-13)
    cost = 8 * 4 * 3 + 4 * 1.7**2 / 1.5 + 0.4 * 3 / 14
    step = fa_hmc.client_step_bound(facts, algorithm, second_moments=[6.0], client=0)
    assert step.value[0] == pytest.approx((1 - X**2 / 8 + 4 / 3 * X**6 * 16) * 6 + X**2 * cost, rel=1e-13)
    loose = fa_hmc.client_step_bound(facts, algorithm, second_moments=[6.0], client=0, variant="printed")
    assert loose.value[0] == pytest.approx((1 - 0.5 * X**2 / 4 + 4 * X**6 * 16) * 6 + X**2 * 4 * (
        24 + 4 * 1.7**2 / 1.5 + 0.2 * 3 / 14))
    assert fa_hmc.target_moment_bound(facts, algorithm).value[0] == 6.0
    flow = fa_hmc.flow_distance_bound(facts, algorithm, position_gap=[3.0, 0, 4], momentum_gap=[0, 1.0, 0],
                                      variant="corrected")
    np.testing.assert_allclose(flow.value, 5 * (1 - u**2 / 8) + 2 * np.sinh(0.5) * u, rtol=1e-13)
    sharp = fa_hmc.flow_distance_bound(facts, algorithm, position_gap=[3.0, 0, 4], momentum_gap=[0, 1.0, 0])
    np.testing.assert_allclose(sharp.terms["momentum"], np.sinh(np.sqrt(2) * u) / np.sqrt(2), rtol=1e-13)
    moved = fa_hmc.displacement_bound(facts, algorithm, point=[0.0] * 3, momentum=[1.0, 2, 2],
                                      gradient=[0.0, 3, 4])
    np.testing.assert_allclose(moved.value, 18 * u**2 + 25 * u**4 + 1.2 * u**4 / k, rtol=1e-13)
    six = fa_hmc.gradient_displacement_bound(facts, algorithm, point=[0.0] * 3, momentum=[1.0, 2, 2],
                                             gradient=[0.0, 3, 4], variant="printed")
    np.testing.assert_allclose(six.value, 4 * (18 * u**2 + 25 * u**4 + 1.2 * u**4), rtol=1e-13)
    np.testing.assert_allclose(fa_hmc.oracle_deviation_bound(facts, algorithm).value, 6 * u**4, rtol=1e-13)
    np.testing.assert_allclose(fa_hmc.oracle_reach_bound(facts, algorithm).value, u**2 * C_D, rtol=1e-13)
    oracle = fa_hmc.oracle_gradient_bound(facts, algorithm, hessian_smoothness=BEND)
    np.testing.assert_allclose(oracle.value, 8 * 1.25 * (4 + bend) * 3 * u**4, rtol=1e-13)
    np.testing.assert_allclose(fa_hmc.maxima_bound(facts, algorithm, momentum_variance=2.0).value,
                               C_D * np.array([2, 12, 4]), rtol=1e-14)


def test_rates_by_hand():
    eps, facts = 0.1, by_hand()
    parts = {"smoothness": 2.0, "bias": 3 * np.sqrt(3) / 0.1, "correlation": 3 * 9 * 0.75 * 3 / 0.01,
             "gradient_noise": 3 * 0.38 * 0.4 / (4 * 0.01)}
    bound = fa_hmc.rounds_rate(facts, fahmc(), eps=eps, variant="resolved")
    assert bound.kind == "rate" and bound.hypotheses_hold and len(bound.assumptions) == 3
    for name, part in parts.items():
        assert bound.terms[name][0] == pytest.approx(4 / (0.5 * 3) * np.log(2 * 4 / 0.01) * part, rel=1e-13)
    sharp = fa_hmc.rounds_rate(facts, fahmc(), eps=eps)
    assert sharp.terms["correlation"][0] == pytest.approx(bound.terms["correlation"][0] / 3, rel=1e-13)
    falling = fa_hmc.dynamic_rate(facts, fahmc(), eps=eps)
    for name, part in sharp.terms.items():
        logs = 1.0 if name == "smoothness" else np.log(2 * 4 / 0.01)
        assert falling.terms[name][0] == pytest.approx(part[0] / logs, rel=1e-13)
    printed = fa_hmc.rounds_rate(facts, fahmc(), eps=eps, variant="printed")
    g = 1 / max(parts.values())
    assert printed.value[0] == pytest.approx(
        300 * np.log(300) * (3 * (g + 2.25) + 0.38 * 0.4 / 12), rel=1e-12)
    assert fa_hmc.dynamic_rate(facts, fahmc(), eps=eps, variant="printed").value[0] == pytest.approx(
        300 * C_D * (3 * (g + 2.25) + 0.38 * 0.4 / 12), rel=1e-12)
    assert fa_hmc.vanilla_rate(facts, fahmc(), eps=eps).value[0] == pytest.approx(
        10 * np.sqrt(3) * np.log(300))
    assert fa_hmc.lower_rate(facts, fahmc(), eps=eps).value[0] == pytest.approx(10 * np.sqrt(3) * np.log(30))
    error = fa_hmc.error_rate(facts, fahmc(), n_rounds=1, gradient_moments=MOMENTS)
    wanted = 5 * X**4 * (5.6 + L * 2.5 * 3) + 2 * X**2 * 0.75 * 2 * 3
    wanted += X**2 / (K * L) * (0.38 + 5 * L * X**2) * 0.4 * 3
    np.testing.assert_allclose(error.value, (1 - 0.5 * X**2 / 4) ** np.arange(4) * 4 + wanted, rtol=1e-13)
    said = fa_hmc.error_rate(facts, fahmc(), n_rounds=1, gradient_moments=MOMENTS, variant="printed")
    wanted = X**2 * (9 * (5.6 * X**2 + 0.75 * 9) / L + 0.38 * 0.4 / L * 3 / 4)
    age = np.array([0, 0, 1, 2])
    np.testing.assert_allclose(said.value, (1 - 0.5 * X**2 / 4) ** age * 4 + wanted, rtol=1e-13)
    for bad in (0.0, -1.0, float("nan"), "x"):
        with pytest.raises(ValueError, match="eps="):
            fa_hmc.rounds_rate(facts, fahmc(), eps=bad)
    with pytest.raises(ValueError, match="a rate holds up to an unknown constant"):
        theory.check(bound, [1.0])


# --- hypotheses, refusals, bad input

@pytest.mark.parametrize("length, holds", [(0.5, True), (0.5 * (1 + 1e-9), False), (0.1, True)])
def test_trajectory_margin(length, holds):
    facts = by_hand(strong_convexity=1.0, smoothness=1.0)
    bound = fa_hmc.w2_bound(facts, fahmc(step_size=length / K), n_rounds=3, gradient_moments=MOMENTS)
    only, = bound.assumptions
    assert bound.hypotheses_hold is holds and only.margin == pytest.approx(1 - length / 0.5, abs=1e-12)
    own = fa_hmc.w2_bound(facts, fahmc(step_size=length / K), n_rounds=3)
    assert len(own.assumptions) == 2 and own.hypotheses_hold is holds  # mu/(4 L^2) = 1/4 here


def test_margins_of_the_variants():
    for smoothness, holds in ((1.0, False), (2.0, True)):  # mu X^2 <= 1/4 binds below a condition of 4
        algorithm = fahmc(step_size=0.99 / np.sqrt(smoothness) / K)
        printed, corrected = (fa_hmc.coupling_bound(
            by_hand(smoothness=smoothness), algorithm, n_rounds=1, gradient_moments=MOMENTS, variant=v)
            for v in ("printed", "corrected"))
        assert printed.hypotheses_hold and corrected.hypotheses_hold is holds
    rising = fahmc(step_size=[0.01, 0.02, 0.02])
    for variant, name in (("printed", "step_size never increases"),
                          ("corrected", "constant step_size within each round")):
        bound = fa_hmc.coupling_bound(by_hand(), rising, n_rounds=1, gradient_moments=MOMENTS,
                                      variant=variant)
        assert bound.violated == (name,)


def test_bounds_are_finite_far_outside_their_hypotheses():
    for step in (0.3, 3.0, 1e3):
        bound = fa_hmc.w2_bound(by_hand(), fahmc(step_size=step), n_rounds=50)
        assert not bound.hypotheses_hold and np.isfinite(bound.value).all() and (bound.value > 0).all()
        assert np.isfinite(bound.floor) and bound.is_vacuous


def test_unknown_distances_are_bounded():
    facts = by_hand(initial_w2=None)
    bound = fa_hmc.coupling_bound(facts, fahmc(), n_rounds=0)
    assert bound.value[0] == pytest.approx((2.4 + np.sqrt(6)) ** 2)
    assert fa_hmc.coupling_bound(facts, fahmc(), n_rounds=0, initial=9.0).value[0] == 9.0
    with pytest.raises(ValueError, match="initial_distance=None"):
        fa_hmc.coupling_bound(by_hand(initial_distance=None), fahmc(), n_rounds=0)


@pytest.mark.parametrize("convention", ["components", "global"])
def test_the_wrong_convention_is_refused(convention):
    facts = by_hand(convention=convention)
    for entry in theory.theorems():
        if entry.id.startswith("fa_hmc."):
            chosen = FAHMCFlow(0.1) if entry.algorithm is FAHMCFlow else fahmc()
            with pytest.raises(ValueError, match=f"convention='{convention}'"):
                entry.function(facts, chosen, n_rounds=1)
    for rule in (fa_hmc.plan, fa_hmc.dynamic_plan, fa_hmc.u_curve):
        with pytest.raises(ValueError, match=f"convention='{convention}'"):
            rule(facts, fahmc(), 0.1)


@pytest.mark.parametrize("changes, words", [
    ({"participation": fs.Participation(2, True)}, "participation="),
    ({"debias": "stale"}, "debias='stale'"),
])
def test_other_rounds_are_refused(changes, words):
    problem = fs.Quadratic([1.0, 2.0, 3.0], np.zeros((3, 1)))
    for name in ("w2_bound", "divergence_bound", "client_moment_bound", "rounds_rate", "error_rate"):
        extra = {"eps": 0.1} if name == "rounds_rate" else {}
        with pytest.raises(ValueError, match=words):
            getattr(fa_hmc, name)(by_hand(), fahmc(**changes), n_rounds=1, **extra)
    with pytest.raises(ValueError, match=words):
        fa_hmc.coupling_law(problem, fahmc(**changes), 1)


@pytest.mark.parametrize("call, words", [
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=-1), "n_rounds=-1"),
    (lambda: fa_hmc.coupling_bound(by_hand(), fahmc(), n_rounds=1.5), "n_rounds=1.5"),
    (lambda: fa_hmc.error_rate(by_hand(), fahmc(), n_rounds=None), "n_rounds=None"),
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1, gradient_moments=[1.0]), "gradient_moments"),
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1, gradient_moments=[1.0, -1, 1]),
     "gradient_moments has a negative entry"),
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1, hessian_smoothness=-1.0), "hessian_smoothness"),
    (lambda: fa_hmc.coupling_bound(by_hand(), fahmc(), n_rounds=1, initial=-1.0), "initial=-1"),
    (lambda: fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1, variant="proof"), "variant='proof'"),
    (lambda: fa_hmc.one_step_bound(by_hand(), fahmc(), coupling=[[1.0]]), "coupling"),
    (lambda: fa_hmc.one_step_bound(by_hand(), fahmc(step_size=[0.1]), coupling=[1.0, 1.0]),
     "step_size has 1 entries"),
    (lambda: fa_hmc.steady_state(by_hand(), fahmc(step_size=[0.1])), "no steady state"),
    (lambda: fa_hmc.error_rate(by_hand(), fahmc(step_size=[0.1] * 3), n_rounds=1), "must be constant"),
    (lambda: fa_hmc.client_moment_bound(by_hand(), fahmc(), n_rounds=1, client=3), "client=3"),
    (lambda: fa_hmc.flow_distance_bound(by_hand(), fahmc(), position_gap=[1.0], momentum_gap=[1.0] * 3),
     "position_gap"),
    (lambda: fa_hmc.maxima_bound(by_hand(), fahmc(), momentum_variance=0.0), "momentum_variance=0.0"),
    (lambda: fa_hmc.coupling_law(fs.Quadratic([1.0], [[0.0]]), fahmc(), -1), "n_steps=-1"),
    (lambda: fa_hmc.coupling_law("problem", fahmc(), 1), "problem='problem'"),
    (lambda: fa_hmc.plan(by_hand(), fahmc(), 0.0), "eps=0.0"),
    (lambda: fa_hmc.plan(by_hand(), fs.FALD(0.1), 0.1), "must be a FAHMC"),
    (lambda: fa_hmc.plan(by_hand(), fahmc(), 1e-200), "eps=1e-200 is too small"),
    (lambda: fa_hmc.theorem_step_size(by_hand(), fahmc(), 0.1, constant=-1.0), "constant=-1.0"),
    (lambda: fa_hmc.dynamic_plan(by_hand(), fahmc(), 0.1, order="cubic"), "order='cubic'"),
    (lambda: fa_hmc.dynamic_plan(by_hand(), fahmc(), 0.1, order="quadratic"), "exact gradients"),
    (lambda: fa_hmc.dynamic_plan(by_hand(), fahmc(), 1e-6), "more than 10000000"),
    (lambda: fa_hmc.TwoGroups(1.0, 2.0, 1.0, 1.0), "must be at least mu"),
    (lambda: fa_hmc.TwoGroups(1.0, 0.0, 1.0, 1.0), "mu=0.0"),
    (lambda: fa_hmc.TwoGroups.of(fs.Quadratic([1.0, 2.0, 2.0], np.zeros((3, 1)))), "weight 1/2 each"),
    (lambda: fa_hmc.fewest_rounds(fa_hmc.TwoGroups(1.0, 0.25, 2.0, 1.0, 10**6), 1e-6, 5, n_grid=12),
     "is not reached"),
    (lambda: theory.check(fa_hmc.w2_bound(by_hand(), fahmc(), n_rounds=1), fa_hmc.coupling_law(
        fs.Quadratic([1.0], [[0.0]]), fs.FAHMC(0.1, 1), 1)), "must be a fedsim.Law"),
    (lambda: theory.check(fa_hmc.coupling_bound(by_hand(), fahmc(), n_rounds=1), theory.exact_law(
        fs.Quadratic([1.0], [[0.0]]), fs.FAHMC(0.1, 1), 1)), "must be a theory.fa_hmc.CouplingLaw"),
    (lambda: theory.check(fa_hmc.client_moment_bound(by_hand(), fahmc(), n_rounds=1), "law"), "JointLaw"),
    (lambda: theory.check(fa_hmc.oracle_deviation_bound(by_hand(), fahmc()), "law"), "fedsim.Quadratic"),
])
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# --- printed statements that fail, and their corrected forms

def test_printed_statements_fail_where_corrected_ones_hold():
    """Lemmas D.7 and D.8 and the recursion, read as printed, on random problems within their hypotheses."""
    rng = np.random.default_rng([SEED, 7])
    wrong = dict.fromkeys(("one step", "D.7 (10)", "D.8"), 0)
    for _ in range(150):
        problem, algorithm, start, rounds = draw_case(rng, "moments")
        steps, facts = rounds * algorithm.local_steps, theory.constants(problem, algorithm, start)
        pair = fa_hmc.coupling_law(problem, algorithm, steps, start=start)
        law = theory.exact.joint_law(problem, algorithm, steps, start=start)
        moments, client = pair.gradient_moments.max(axis=0), int(np.argmin(problem.weights))
        before = law.second_moment_about(problem.minimizer)[:-1, client]
        for name, variant, bound, source in (
                ("one step", "printed", fa_hmc.one_step_bound(
                    facts, algorithm, coupling=pair.distance_sq[:-1], gradient_moments=moments,
                    variant="printed"), pair),
                ("D.7 (10)", "printed", fa_hmc.client_step_bound(
                    facts, algorithm, second_moments=before, client=client, variant="printed"), law),
                ("D.8", "consistent", fa_hmc.divergence_bound(
                    facts, algorithm, n_rounds=rounds, gradient_moments=moments, variant="consistent"), law)):
            assert bound.variant == variant
            verdict = theory.check(bound, source)
            wrong[name] += not verdict.holds and verdict.hypotheses_met
            assert not verdict.contradicts_theorem and bound.given  # the exact numbers, but given by hand
    assert min(wrong.values()) >= 3, wrong


def test_uniform_moments_fail_for_a_light_client():
    """(11) as printed: weight 0.001, private momenta; its variance inside a round is near 1000."""
    problem = fs.Quadratic([1.0, 1.0], np.zeros((2, 1)), [0.999, 0.001])
    algorithm = fs.FAHMC(0.05, 10, 60, 0.0)
    facts = theory.constants(problem, algorithm)
    law = theory.exact.joint_law(problem, algorithm, 60)
    printed, corrected = (theory.check(fa_hmc.client_moment_bound(
        facts, algorithm, n_rounds=1, variant=v), law) for v in ("printed", "corrected"))
    assert printed.contradicts_theorem and printed.bound.value[0] < 40
    assert law.second_moment_about([0.0])[:, 1].max() > 900 and corrected.holds


# --- the lower bound

GROUPS = {"L": 1.0, "mu": 0.25, "theta_L": 2.0, "theta_mu": 1.0}


def test_lower_bound_by_hand_and_below_the_exact_law():
    for L, mu in ((1.0, 0.25), (1.0, 1.0), (4.0, 0.1), (100.0, 1.0)):
        for x in (1.0 / np.sqrt(L), 0.3 / np.sqrt(L), 0.02 / np.sqrt(L)):
            for steps in (1, 2, 10, 50):
                groups = fa_hmc.TwoGroups(L, mu, 2.0, 1.0, 3, start_variance=0.5)
                problem = fs.Quadratic([L, mu, L, mu], [[2.0] * 3, [1.0] * 3] * 2)
                start = fs.Gaussian(np.zeros(3), np.full(3, 0.5))
                for shared in (0.0, 0.4, 1.0):
                    algorithm = FAHMCFlow(x, steps, shared)
                    record = [1, 3, 10, 100]
                    law = theory.exact_law(problem, algorithm, 1000, start=start, record=record)
                    facts = theory.constants(problem, algorithm, start)
                    for variant in ("printed", "mean"):
                        bound = fa_hmc.lower_bound(facts, algorithm, groups=groups, n_rounds=1000,
                                                   record=record, variant=variant)
                        verdict = theory.check(bound, law)
                        assert verdict.holds and verdict.hypotheses_met, verdict.message
                    if shared == 1.0:  # and the closed form is that law
                        np.testing.assert_allclose(groups.w2(law.rounds, x, steps), law.w2(), rtol=1e-7,
                                                   atol=1e-12)
                c_l, c_m = np.cos(np.sqrt(L) * x) ** steps, np.cos(np.sqrt(mu) * x) ** steps
                gamma = 0.5 * (c_l + c_m)
                fixed = (2.0 * (1 - c_l) + (1 - c_m)) / (2 * (1 - gamma))
                goal = (2 * L + mu) / (L + mu)
                wanted = np.sqrt(3 * ((fixed - goal) ** 2 + fixed**2 * gamma ** (2 * law.rounds)))
                bound = fa_hmc.lower_bound(facts, algorithm, groups=groups, n_rounds=1000, record=record,
                                           variant="printed")
                np.testing.assert_allclose(bound.value, wanted, rtol=1e-7, atol=1e-12)


def test_lower_bound_reads_the_problem():
    problem = fs.Quadratic([1.0, 0.25, 1.0, 0.25], [[2.0, 2.0], [1.0, 1.0]] * 2)
    verdict = theory.examine("fa_hmc.lower_bound", problem, FAHMCFlow(0.5, 10), 40)
    assert verdict.holds and verdict.hypotheses_met and verdict.tightness > 0.5
    away = theory.examine("fa_hmc.lower_bound", problem, FAHMCFlow(0.5, 10), 40, start=[1.0, 1.0],
                          variant="printed")
    assert away.bound.violated == ("start of mean zero",)
    exact = theory.examine("fa_hmc.lower_bound", problem, FAHMCFlow(0.5, 10), 40, start=[1.0, 1.0])
    assert exact.holds and exact.hypotheses_met
    for other in (fs.Quadratic([1.0, 0.5, 0.25], np.zeros((3, 1))),
                  fs.Quadratic([1.0, 0.5], [[0.0, 1.0], [0.0, 0.0]]),
                  fs.Quadratic([[1.0, 2.0], [1.0, 0.5]], np.zeros((2, 2)))):
        with pytest.raises(ValueError, match="two kinds of clients"):
            theory.examine("fa_hmc.lower_bound", other, FAHMCFlow(0.5, 10), 4)


def test_fewest_rounds_grow_like_the_lower_rate():
    """8, 32, 118 and 430 rounds at d = 10 .. 10^4, and hardly any dependence on T beyond T = 10."""
    dims = (10, 100, 1000, 10_000)
    found = [fa_hmc.fewest_rounds(fa_hmc.TwoGroups(**GROUPS, dim=d), 0.3, 10, n_grid=60)[0] for d in dims]
    assert found == [8, 32, 118, 430]
    for d, n in zip(dims[:2], found[:2], strict=True):  # by brute force over a fine grid
        groups = fa_hmc.TwoGroups(**GROUPS, dim=d)
        lengths = np.geomspace(1e-3, 1.0, 1000)
        assert n == min(int(np.argmax(inside)) for length in lengths if (
            inside := groups.w2(np.arange(2 * n), length, 10) <= 0.3).any())
    shape = [fa_hmc.lower_rate(by_hand(dim=d), fahmc(), eps=0.3).value[0] for d in dims]
    fit = rates.fit_rate(dims, shape, found, side="lower")
    assert fit.spread < 2.0 and 0.1 < fit.constant < 0.2
    many = fa_hmc.fewest_rounds(fa_hmc.TwoGroups(**GROUPS, dim=100), 0.3, 100, n_grid=60)[0]
    assert abs(many - found[1]) <= 3


# --- planning

@pytest.mark.parametrize("eps", [2.0, 0.3, 0.05])
@pytest.mark.parametrize("shared, noise", [(1.0, None), (0.0, 0.5)])
def test_the_plan_keeps_its_promise(eps, shared, noise):
    problem = fs.Quadratic([1.0, 2.0], [[0.0, 1.0], [1.0, -1.0]], [0.3, 0.7], noise)
    algorithm = fs.FAHMC(1.0, 4, 5, shared)
    facts = theory.constants(problem, algorithm, [4.0, 4.0])
    plan = fa_hmc.plan(facts, algorithm, eps)
    bound = fa_hmc.w2_bound(facts, plan.algorithm, n_rounds=plan.n_rounds, record=[plan.n_rounds])
    assert bound.hypotheses_hold and bound.value[-1] <= eps * (1 + 1e-9)
    assert plan.trajectory_length == pytest.approx(4 * plan.step_size) and plan.n_steps == 5 * plan.n_rounds
    assert plan.cap_binds == (plan.trajectory_length == pytest.approx(np.sqrt(1 / 16), rel=1e-9))
    law = theory.exact_law(problem, plan.algorithm, plan.n_rounds, start=[4.0, 4.0], record=[])
    assert law.w2()[-1] <= eps
    if not plan.cap_binds and plan.n_rounds:
        kept = fa_hmc.planning.kept_error(fa_hmc.setting(facts, plan.algorithm), plan.trajectory_length**2)
        assert kept == pytest.approx(eps**2 / 2, rel=1e-9)


def test_the_plan_enters_the_comparison():
    problem = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
    found = theory.tuning.compare(problem, fs.FAHMC(0.1, 3, 2), 0.2, start=[3.0], n_grid=9, n_refine=1)
    assert found.predicted_rounds >= found.planned_rounds >= found.best_rounds >= 1


def test_the_papers_rules_by_hand():
    facts, eps = by_hand(), 0.1
    inverse = max(2.0, 3 * np.sqrt(3) / 0.1, 3 * 9 * 0.75 * 3 / 0.01, 3 * 0.38 * 0.4 / 0.04)
    step = fa_hmc.theorem_step_size(facts, fahmc(), eps, constant=0.7)
    assert step == pytest.approx(np.sqrt(0.7 / inverse) / 4, rel=1e-13)
    vanilla = fa_hmc.vanilla_algorithm(facts, fahmc(), eps, constant=0.7, correlation_constant=2.0)
    g = 0.7 * min(0.5, 0.1 / (3 * np.sqrt(3)))
    assert vanilla.step_size == pytest.approx(np.sqrt(g) / 4)
    assert vanilla.shared_noise == pytest.approx(1 - 2 * 2 * g / 3)
    best = fa_hmc.u_curve(facts, fahmc(), 2.0)
    noise, apart = 3 * 0.38 * 0.4 / 16, 3 * 0.75 * 3 / 4
    assert best == pytest.approx(max(np.sqrt((2 + noise) / apart), 1.0))
    assert fa_hmc.u_curve(facts, fahmc(shared_noise=1.0), 2.0) == np.inf
    wide = by_hand(smoothness=200.0)
    steps = np.arange(1, 200)
    rounds = [fa_hmc.rounds_rate(wide, fahmc(local_steps=int(t)), eps=2.0, variant="resolved").value[0]
              for t in steps]
    assert abs(steps[int(np.argmin(rounds))] - fa_hmc.u_curve(wide, fahmc(), 2.0)) <= 1


@pytest.mark.parametrize("order, shared", [("linear", 0.5), ("linear", 1.0), ("quadratic", 1.0)])
def test_dynamic_schedules_reach_every_stage(order, shared):
    """The recursion's own bound and the exact coupling are below D/2^s (D/4^s) when stage s ends."""
    problem = fs.Quadratic([1.0, 1.1], [[0.0], [0.2]])
    algorithm, start = fs.FAHMC(1.0, 2, 2, shared), [3.0]
    facts = theory.constants(problem, algorithm, start)
    begin = facts.initial_w2**2
    eps = facts.initial_w2 / 3 if order == "linear" else facts.initial_w2 / 9
    found = fa_hmc.dynamic_plan(facts, algorithm, eps, order=order)
    ends = np.cumsum(found.stage_rounds)
    shrink = 2.0 if order == "linear" else 4.0
    assert found.n_rounds == ends[-1] and len(found.schedule.values) == 2 * ends[-1]
    np.testing.assert_allclose(found.targets, begin / shrink ** np.arange(1, len(ends) + 1), rtol=1e-12)
    assert found.targets[-1] <= eps**2 < found.targets[-1] * shrink * (1 + 1e-9)
    np.testing.assert_allclose(np.divide(found.stage_rounds[1:], found.stage_rounds[:-1]), 2.0)
    np.testing.assert_allclose(np.divide(found.trajectory_lengths[:-1], found.trajectory_lengths[1:]),
                               np.sqrt(2.0), rtol=1e-12)
    bound = fa_hmc.coupling_bound(facts, found.algorithm, n_rounds=int(ends[-1]), record=2 * ends)
    assert bound.hypotheses_hold
    assert (bound.value[1:] <= np.array(found.targets) * (1 + 1e-9)).all()
    law = theory.exact_law(problem, found.algorithm, int(ends[-1]), start=start, record=ends)
    assert (law.w2()[1:] ** 2 <= found.targets).all()


def test_dynamic_schedule_of_no_stages():
    facts = by_hand()
    found = fa_hmc.dynamic_plan(facts, fahmc(), 3.0)  # starts within 3
    assert found.n_rounds == 0 and found.stage_rounds == (0,) and found.targets == (4.0,)
    assert fa_hmc.w2_bound(facts, found.algorithm, n_rounds=0).value[0] <= 3.0


# --- rates in general

def test_slopes_cover_the_truth():
    """Scattered power laws: the 90% interval covers the exponent about nine times in ten."""
    rng = np.random.default_rng(SEED)
    x = np.geomspace(1, 100, 8)
    covered = sum(1.5 in rates.loglog_slope(x, x**1.5 * np.exp(0.1 * rng.standard_normal(8)), level=0.9)
                  for _ in range(1000))
    assert 860 <= covered <= 940  # 4 standard deviations
    slope = rates.loglog_slope(x, 3 * x**0.5)
    assert slope.value == pytest.approx(0.5, abs=1e-12) and slope.high - slope.low < 1e-9
    assert "95% interval" in str(slope)


def test_slope_against_the_textbook():
    x, y = np.array([1.0, 2.0, 4.0, 9.0]), np.array([1.0, 3.0, 5.0, 30.0])
    u, v = np.log(x), np.log(y)
    slope, error = np.polyfit(u, v, 1)[0], None
    rest = v - np.polyval(np.polyfit(u, v, 1), u)
    error = np.sqrt((rest**2).sum() / 2 / ((u - u.mean()) ** 2).sum())
    found = rates.loglog_slope(x, y)
    assert found.value == pytest.approx(slope)
    assert found.high - found.value == pytest.approx(4.302652729696142 * error)  # t_{0.975, 2}


def test_fitted_constants_and_drift():
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    right = rates.fit_rate(x, np.sqrt(x), 2.5 * np.sqrt(x))
    assert right.constant == pytest.approx(2.5) and right.spread == pytest.approx(1.0)
    assert right.drift is not None and 0.0 in right.drift
    wrong = rates.fit_rate(x, np.sqrt(x), 2.5 * x)
    assert 0.0 not in wrong.drift and wrong.drift.value == pytest.approx(0.5)
    assert (wrong.curve >= wrong.measured * (1 - 1e-12)).all() and "fitted" in wrong.label
    lower = rates.fit_rate(x, np.sqrt(x), 2.5 * x, side="lower")
    assert (lower.curve <= lower.measured * (1 + 1e-12)).all()
    assert rates.fit_rate([1.0, 2.0], [1.0, 1.0], [1.0, 2.0]).drift is None


@pytest.mark.parametrize("call, words", [
    (lambda: rates.loglog_slope([1.0, 2.0], [1.0, 2.0]), "x has 2 different entries; 3 are needed"),
    (lambda: rates.loglog_slope([1.0, 2.0, 0.0], [1.0, 2.0, 3.0]), "x has an entry 0"),
    (lambda: rates.loglog_slope([1.0, 2.0, 3.0], [1.0, 2.0]), "y has shape"),
    (lambda: rates.loglog_slope([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], level=1.0), "level=1.0"),
    (lambda: rates.fit_rate([1.0, 2.0], [1.0, -2.0], [1.0, 2.0]), "rate has an entry -2"),
    (lambda: rates.fit_rate([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], side="both"), "side='both'"),
    (lambda: rates.fit_affine([1.0, 1.0], [1.0, 2.0]), "x has 1 different entries"),
    (lambda: rates.fit_root_log([1.0, float("nan")], [1.0, 2.0]), "must be finite"),
])
def test_bad_input_of_rates(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_figure_two_fits():
    """n = a sqrt(d) log(c d) is recovered, and n^2 = a d + b nearly fits it too."""
    d = np.array([2, 50, 100, 200, 400, 600, 800, 1000], float)
    n = 20.0 * np.sqrt(d) * np.log(3.0 * d)
    a, log_c, share = rates.fit_root_log(d, n)
    assert (a, log_c, share) == (pytest.approx(20.0), pytest.approx(np.log(3.0)), pytest.approx(1.0))
    assert 0.95 < rates.fit_affine(d, n**2).r_squared < 1.0
