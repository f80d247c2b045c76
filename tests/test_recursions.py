"""Coupling recursions: against plain twins, the exact law, published bounds, and what must come out equal."""

from __future__ import annotations

from dataclasses import replace

import drawn_for_recursions as drawn
import naive_recursions as naive
import numpy as np
import pytest

import fedsim as fs
import theory
from theory.recursions import langevin, rounds as rounds_room
from theory.recursions.catalogue import recursion
from theory.stale import recursion as stale_room

README = fs.Quadratic([[1.0, 4.0], [2.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]])
RING = fs.network.ring(4)
N_ROUNDS = 30
OF_AVERAGE = {"fa_ld": theory.fa_ld.w2_recursion, "fa_hmc": theory.fa_hmc.w2_recursion,
              "de_sgld": theory.de_sgld.w2_recursion, "de_sghmc": theory.de_sghmc.w2_recursion,
              "stale": theory.stale.w2_recursion}
OF_CLIENTS = {"de_sgld": theory.de_sgld.w2_clients_recursion,
              "de_sghmc": theory.de_sghmc.w2_clients_recursion}
PUBLISHED = {"fa_ld": (theory.fa_ld.w2_bound, theory.fa_ld.w2_bound_partial,
                       theory.fa_ld.w2_bound_decreasing),
             "fa_hmc": (theory.fa_hmc.w2_bound,), "de_sgld": (theory.de_sgld.w2_bound,),
             "de_sghmc": (theory.de_sghmc.w2_bound,), "stale": ()}
PUBLISHED_OF_CLIENTS = {"de_sgld": theory.de_sgld.w2_clients_bound,
                        "de_sghmc": theory.de_sghmc.w2_clients_bound}


def settings(name, seed, count):
    """Random problems, algorithms and starts."""
    rng = np.random.default_rng([seed, len(name)])
    for _ in range(count):
        problem, algorithm = drawn.DRAWS[name](rng, N_ROUNDS)
        yield problem, algorithm, drawn.start(rng, problem, algorithm), rng


def twins(name, known, algorithm, M):
    """The naive values, of the average and where there is a bound of the clients; None without a twin."""
    if name == "fa_hmc" and not algorithm.schedule.is_constant:
        return None
    if name == "de_sghmc" and 1.0 - algorithm.friction * algorithm.step_size < 1e-9:
        return naive.de_sgld(known, fs.DESGLD(algorithm.step_size**2, algorithm.mixing), N_ROUNDS, M)
    if name == "stale":
        return [naive.stale(known, algorithm, algorithm.ages(N_ROUNDS).tolist(), M)]
    found = getattr(naive, name)(known, algorithm, N_ROUNDS, M)
    return [found] if found.ndim == 1 else found


@pytest.mark.parametrize("name", OF_AVERAGE)
def test_recursions_are_their_plain_twins(name):
    compared = 0
    for problem, algorithm, start, rng in settings(name, 1, 50):
        if name in OF_CLIENTS and rng.random() < 0.4:  # clients that start apart, and move
            start = rng.standard_normal((problem.n_clients, problem.dim))
            if name == "de_sghmc":
                algorithm = replace(algorithm, start_velocity=rng.standard_normal(start.shape))
        known, M = theory.constants(problem, algorithm, start), (None, 0.5)[rng.integers(2)]
        wanted = twins(name, known, algorithm, M)
        if wanted is None:
            continue
        functions = [OF_AVERAGE[name], *([OF_CLIENTS[name]] if name in OF_CLIENTS else [])]
        for function, values in zip(functions, wanted, strict=True):
            bound = function(known, algorithm, n_rounds=N_ROUNDS, hessian_smoothness=M)
            np.testing.assert_allclose(bound.value[1:], values[1:], rtol=1e-12)
            assert all((part >= 0.0).all() for part in bound.terms.values())
            compared += 1
    assert compared > 30


@pytest.mark.parametrize("name", OF_AVERAGE)
def test_exact_law_below_recursion_below_published(name):
    """With no Monte Carlo; the distance of clients is their mean W2.

    FA-HMC's Theorem 4.4 is read with the constant of a quadratic's third derivative, 0, which the recursion
    is then told too: not told, it can be above (`test_an_exception`).
    """
    useful = 0
    for problem, algorithm, start, _ in settings(name, 2, 60):
        law = theory.exact_law(problem, algorithm, N_ROUNDS, start=start, allow_unstable=True)
        known, scale = theory.constants(problem, algorithm, start), np.sqrt(law.target.variances.sum())
        both = [(OF_AVERAGE[name], PUBLISHED[name], law.w2())]
        if name in OF_CLIENTS:
            both.append((OF_CLIENTS[name], (PUBLISHED_OF_CLIENTS[name],),
                         np.mean([client.w2(law.target) for client in law.clients], axis=0)))
        for function, published, exact in both:
            ours = function(known, algorithm, n_rounds=N_ROUNDS)
            assert (exact <= ours.value * (1.0 + 1e-9) + 1e-9 * scale).all(), (algorithm, start)
            useful += not ours.is_vacuous
            for theirs in published:
                try:
                    bound = theirs(known, algorithm, n_rounds=N_ROUNDS)
                except ValueError:  # it says nothing about these settings
                    continue
                if bound.hypotheses_hold:
                    if name == "fa_hmc":
                        ours = function(known, algorithm, n_rounds=N_ROUNDS, hessian_smoothness=0.0)
                    assert (ours.value[1:] <= bound.value[1:] * (1.0 + 1e-12)).all(), (algorithm, start)
    assert useful > 20


def test_an_exception():
    """Short trajectories: Theorem 4.4 knows of a third derivative; the recursion need not."""
    problem, algorithm = fs.Quadratic([1.0, 1.5], [[0.0], [1.0]]), fs.FAHMC(0.015, 1, shared_noise=1.0)
    known = theory.constants(problem, algorithm, algorithm.target(problem))
    published = theory.fa_hmc.w2_bound(known, algorithm, n_rounds=4000, record=())
    assert published.hypotheses_hold
    unknown, told = (theory.fa_hmc.w2_recursion(known, algorithm, n_rounds=4000, record=(),
                                                hessian_smoothness=M) for M in (None, 0.0))
    assert told.value[-1] < published.value[-1] < unknown.value[-1]


@pytest.mark.parametrize(("eta", "K", "unknown", "quadratic"), [
    (0.02, 5, 0.5403, 0.3936), (0.02, 1, 0.3312, 0.1423), (0.001, 5, 0.1106, 0.0620),
    (0.001, 1, 0.0720, 0.0071)])
def test_floors_of_the_readme_problem(eta, K, unknown, quadratic):
    """As they were derived, to their digits; and rounds one by one go there."""
    algorithm = fs.FALD(eta, K, shared_noise=0.25)
    known, n_rounds = theory.constants(README, algorithm), round(60 / eta / K)
    for M, wanted in ((None, unknown), (0.0, quadratic)):
        bound = theory.fa_ld.w2_recursion(known, algorithm, n_rounds=n_rounds, record=(),
                                          hessian_smoothness=M)
        assert bound.floor <= 1.001 * wanted + 5e-5
        assert bound.value[-1] == pytest.approx(bound.floor, rel=1e-9)
        assert bound.value[-1] == pytest.approx(wanted, abs=6e-5)


@pytest.mark.parametrize("name", OF_AVERAGE)
def test_floors(name, monkeypatch):
    """From near and from far, many rounds go there."""
    monkeypatch.setattr(rounds_room, "LARGEST_WORK", 500)
    seen = 0
    for problem, algorithm, _, rng in settings(name, 3, 60 if name == "stale" else 24):
        listed = name == "stale" and not isinstance(algorithm.staleness, int)
        if listed or not algorithm.schedule.is_constant:
            continue
        known = theory.constants(problem, algorithm, np.full(problem.dim, (0.0, 1e3)[rng.integers(2)]))
        floor = OF_AVERAGE[name](known, algorithm, n_rounds=1).floor
        if not np.isfinite(floor):  # rounds grow without limit, until they leave the range, which is refused
            assert grows(OF_AVERAGE[name], known, algorithm)
            continue
        n_rounds = 2000 if name == "stale" else 10**8
        near, last = OF_AVERAGE[name](known, algorithm, n_rounds=n_rounds, record=[n_rounds // 2]).value[1:]
        if abs(last / floor - 1.0) > 1e-8:  # on its way
            assert (near - floor) * (last - floor) > 0.0 and abs(last - floor) < abs(near - floor)
        else:
            seen += 1
    assert seen > 5


def grows(bound, known, algorithm):
    """Whether there is no limit within 10^12 rounds."""
    try:
        values = bound(known, algorithm, n_rounds=10**12, record=[10**10]).value
    except ValueError:
        return True
    return values[-1] > 1.0001 * values[-2]


def test_a_limit_where_directions_go_in_circles():
    """Found by following rounds: a large condition number under DE-SGHMC."""
    algorithm = fs.DESGHMC(0.03, 30.0, RING)
    for kappa in (32.0, 64.0, 100.0):
        problem = fs.Quadratic(np.array([[1.0, kappa], [kappa, 1.0]] * 2), np.zeros((4, 2)))
        known = theory.constants(problem, algorithm, [10.0, 0.0])
        bound = theory.de_sghmc.w2_recursion(known, algorithm, n_rounds=10**7, record=())
        assert bound.value[-1] == pytest.approx(bound.floor, rel=1e-8)


def test_steps_that_float64_cannot_follow_have_no_floor():
    """Neither a wrong one nor an infinite one."""
    for size in (1e-300, 1e-100, 1e-16, 1e-12):
        for bound, algorithm in ((theory.fa_ld.w2_recursion, fs.FALD(size)),
                                 (theory.de_sgld.w2_recursion, fs.DESGLD(size, fs.network.complete(2))),
                                 (theory.stale.w2_recursion, fs.StaleSGLD(size, 1))):
            found = bound(theory.constants(README, algorithm), algorithm, n_rounds=1).floor
            assert found is None or 0.0 < found < 1e-3


def test_parts_of_the_state_that_stay_zero():
    """Clients alike and round: nothing pushes them apart, and roots have no tangent at 0."""
    problem = fs.Quadratic(np.ones(4), np.zeros((4, 2)))
    for bound, algorithm in ((theory.de_sgld.w2_recursion, fs.DESGLD(1e-4, RING)),
                             (theory.de_sghmc.w2_recursion, fs.DESGHMC(0.01, 50.0, RING))):
        known = theory.constants(problem, algorithm, [3.0, 0.0])
        found = bound(known, algorithm, n_rounds=10**7, record=[600_000])
        assert found.value[-1] == pytest.approx(found.floor, rel=1e-8)
    for momentum in (0.5, 0.9, 0.95):  # rounds grow, with parts that vanish
        algorithm = fs.DESGHMC(1.0, 1.0 - momentum, fs.network.complete(4))
        known = theory.constants(problem, algorithm, [1.0, 0.0])
        assert theory.de_sghmc.w2_recursion(known, algorithm, n_rounds=5).floor == np.inf


@pytest.mark.parametrize("name", OF_AVERAGE)
def test_tangents_bound_many_rounds(name, monkeypatch):
    """From above, and closely; whatever is recorded."""
    checked, works = 0, ((rounds_room, "LARGEST_WORK", 100), (stale_room, "LARGEST_WORK", 1000))
    for problem, algorithm, start, rng in settings(name, 4, 60 if name == "stale" else 24):
        listed = name == "stale" and not isinstance(algorithm.staleness, int)
        if listed or not algorithm.schedule.is_constant:
            continue
        if name in OF_CLIENTS and rng.random() < 0.3:
            start = rng.standard_normal((problem.n_clients, problem.dim))
        known, record = theory.constants(problem, algorithm, start), [250, 300, 333, 700]
        if not np.isfinite(OF_AVERAGE[name](known, algorithm, n_rounds=1).floor):
            continue
        plain = OF_AVERAGE[name](known, algorithm, n_rounds=1500, record=record)
        with monkeypatch.context() as context:
            for one in works:
                context.setattr(*one)
            fast = OF_AVERAGE[name](known, algorithm, n_rounds=1500, record=record)
        assert (fast.value >= plain.value * (1.0 - 1e-11)).all()
        # stale: ages that are still younger count as the oldest, and may push beyond
        assert name == "stale" or (fast.value <= plain.value * 1.02).all()
        checked += 1
    assert checked > 10


def test_updates_of_one_age_are_a_recursion_of_a_window():
    """Where ages have settled at once, as with an age of 0, exactly; then from above, and closely."""
    for age, slack in ((0, 1e-12), (1, 0.01), (4, 0.03)):
        algorithm = fs.StaleSGLD(1e-3, age)
        known = theory.constants(README, algorithm, [30.0, 0.0])
        window = recursion(known, algorithm)
        every = np.arange(3000)
        plain = theory.stale.w2_recursion(known, algorithm, n_rounds=2999, record=every)
        found = sum(rounds_room.evaluate(window, every).values())
        assert (found >= plain.value * (1.0 - 1e-12)).all()
        assert (found <= plain.value * (1.0 + slack)).all()
        long = theory.stale.w2_recursion(known, algorithm, n_rounds=10**9, record=())
        assert long.value[-1] == pytest.approx(plain.floor, rel=1e-8)


def test_a_bound_that_grows_is_refused():
    """At once, however many rounds are asked for."""
    for bound, algorithm in ((theory.de_sgld.w2_recursion, fs.DESGLD(1.2, fs.network.complete(2))),
                             (theory.fa_ld.w2_recursion, fs.FALD(0.6, 2)),
                             (theory.stale.w2_recursion, fs.StaleSGLD(0.1, 9))):
        with pytest.raises(ValueError, match="leaves the range of float64"):
            bound(theory.constants(README, algorithm), algorithm, n_rounds=10**8, record=())


def test_many_rounds_are_quick():
    """10^9 rounds by tangents: the floor."""
    algorithm = fs.FALD(1e-4, 5, shared_noise=0.25)
    known = theory.constants(README, algorithm)
    bound = theory.fa_ld.w2_recursion(known, algorithm, n_rounds=10**9, record=())
    assert bound.value[-1] == pytest.approx(bound.floor, rel=1e-8)
    listed = fs.FALD(fs.schedules.Harmonic(60.0, 0.01), 5)
    with pytest.raises(ValueError, match=r"n_rounds=1000000000 .* must be at most"):
        theory.fa_ld.w2_recursion(theory.constants(README, listed), listed, n_rounds=10**9, record=())


def test_the_constant_of_what_is_predicted():
    """c_P is the supremum of (1 - (1 - e^-z)/z)^2/z, rounded up."""
    z = np.linspace(2.1, 2.2, 100_001)
    largest = ((1.0 - (1.0 - np.exp(-z)) / z) ** 2 / z).max()
    assert largest <= langevin.PREDICTED < 1.000002 * largest


# --- what must come out equal

def value(function, problem, algorithm, start=None, **options):
    known = theory.constants(problem, algorithm, start)
    return function(known, algorithm, n_rounds=N_ROUNDS, **options).value


def test_one_leapfrog_is_at_most_a_langevin_step():
    """A step of size eta of FA-HMC with one leapfrog is one of FA-LD with eta^2/2."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        problem = drawn.problem(rng)
        h = 10 ** rng.uniform(-3, 0) / drawn.steepest(problem)
        shared, K = float(rng.choice([0, 0.3, 1])), int(rng.integers(1, 8))
        leapt = fs.FAHMC(np.sqrt(2 * h), 1, K, shared_noise=shared)
        hmc = value(theory.fa_hmc.w2_recursion, problem, leapt)
        ld = value(theory.fa_ld.w2_recursion, problem, fs.FALD(h, K, shared_noise=shared))
        assert (hmc <= ld * (1.0 + 1e-12)).all()


def test_no_momentum_is_the_recursion_without():
    rng = np.random.default_rng(7)
    for _ in range(10):
        problem, mixing, limit = drawn.gossip(rng)
        eta = np.sqrt(0.3 * limit)
        for name in ("w2_recursion", "w2_clients_recursion"):
            np.testing.assert_allclose(
                value(getattr(theory.de_sghmc, name), problem, fs.DESGHMC(eta, 1.0 / eta, mixing)),
                value(getattr(theory.de_sgld, name), problem, fs.DESGLD(eta**2, mixing)), rtol=1e-12)


@pytest.mark.parametrize("name", OF_AVERAGE)
def test_scales(name):
    """Lengths in other units: x -> s x with f(x/s), noise G/s^2; the Hessian's Lipschitz constant M/s^3."""
    for problem, algorithm, _, rng in settings(name, 8, 12):
        if not algorithm.schedule.is_constant:
            continue
        s = 10 ** rng.uniform(-2, 2)
        noise = problem.gradient_noise
        other = fs.Quadratic(problem.hessians / s**2, problem.minimizers * s, problem.weights,
                             None if noise is None else noise / s if np.ndim(noise) == 0 else noise / s**2)
        size = float(algorithm.schedule.largest)
        longer = {"de_sghmc": {"step_size": size * s, "friction": algorithm.friction / s}
                  if name == "de_sghmc" else {}, "fa_hmc": {"step_size": size * s}}.get(
            name, {"step_size": size * s**2})
        M = 0.3
        np.testing.assert_allclose(
            value(OF_AVERAGE[name], other, replace(algorithm, **longer), hessian_smoothness=M / s**3),
            s * value(OF_AVERAGE[name], problem, algorithm, hessian_smoothness=M), rtol=1e-9)


def test_known_curvature_and_noise_order_the_bounds():
    """Larger L, Gamma or noise never help; an M that is too large to matter is as if it were unknown."""
    known = theory.constants(README, fs.FALD(0.02, 5))
    for algorithm in (fs.FALD(0.02, 5, shared_noise=0.25), fs.FALD(0.05, 1)):
        least = theory.fa_ld.w2_recursion(known, algorithm, n_rounds=40).value
        for worse in (replace(known, smoothness=5.0), replace(known, strong_convexity=0.8),
                      replace(known, gradient_at_minimizer=2.0 * known.gradient_at_minimizer,
                              heterogeneity=None), replace(known, gradient_noise_traces=1.0)):
            assert (theory.fa_ld.w2_recursion(worse, algorithm, n_rounds=40).value[1:] > least[1:]
                    * (1 - 1e-12)).all()
        unknown, huge, flat = (theory.fa_ld.w2_recursion(known, algorithm, n_rounds=40, hessian_smoothness=M)
                               for M in (None, 1e6, 0.0))
        assert (huge.value == unknown.value).all() and (flat.value[1:] < unknown.value[1:]).all()


def test_where_clients_do_not_drift():
    """Equal curvatures, one client, or everything shared."""
    same = fs.Quadratic([2.0, 2.0], [[0.0], [1.0]])
    alone = fs.Quadratic([[1.0, 3.0]], [[1.0, 0.0]])
    for problem, algorithm in ((same, fs.FALD(0.1, 5)), (alone, fs.FALD(0.1, 5))):
        bound = theory.fa_ld.w2_recursion(theory.constants(problem, algorithm), algorithm, n_rounds=20)
        assert (bound.terms["client_drift"] == 0.0).all()
    everyone = fs.FALD(0.1, 3, participation=fs.Participation(2, False))
    np.testing.assert_array_equal(value(theory.fa_ld.w2_recursion, README, everyone),
                                  value(theory.fa_ld.w2_recursion, README, fs.FALD(0.1, 3)))


def test_refusals():
    algorithm = fs.FAHMC(0.9, 3)
    with pytest.raises(theory.fa_hmc.NotCertified, match=r"step_size=0.9 with leapfrog_steps=3"):
        theory.fa_hmc.w2_recursion(theory.constants(README, algorithm), algorithm, n_rounds=3)
    with pytest.raises(ValueError, match="debias='fresh' must be None"):
        debiased = fs.FAHMC(0.1, 2, debias="fresh")
        theory.fa_hmc.w2_recursion(theory.constants(README, debiased), debiased, n_rounds=3)
    with pytest.raises(ValueError, match="hessian_smoothness=-1"):
        theory.fa_ld.w2_recursion(theory.constants(README, fs.FALD(0.1)), fs.FALD(0.1), n_rounds=3,
                                  hessian_smoothness=-1.0)


def test_next_to_the_stability_limit_the_law_has_fewer_digits():
    """By hand W2 is 3e-8 below the bound, and eight digits of the law are left: equal, not violated."""
    step, noise, weights = 2.0 * (1.0 - 1e-9), 1e3, np.array([0.25, 0.75])
    problem = fs.Quadratic([1.0, 1.0], [[0.0], [1.0]], weights, noise)
    variance = (2.0 + step * noise**2 * (weights @ weights)) / (2.0 - step)
    verdict = theory.examine("fa_ld.stationary_bound", problem, fs.FALD(step), 0)
    assert np.sqrt(variance) - 1.0 < verdict.bound.value[0] and verdict.holds and verdict.tightness <= 1.0
    apart = verdict.bound.value[0] / (np.sqrt(variance) - 1.0) - 1.0
    assert 0.0 < apart < 1e-7
    away = theory.examine("fa_ld.stationary_bound", problem, fs.FALD(0.5 * step), 0)
    assert away.holds and away.tightness < 1.0 - 1e-7
