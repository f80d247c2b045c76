"""Theorems of DE-SGLD and DE-SGHMC against exact laws on random problems; units, starts, refusals."""

from __future__ import annotations

import dataclasses
from math import sqrt

import numpy as np
import pytest
from examples_of.decentralized import W, by_hand

import fedsim as fs
import theory
from reproduce import random_settings

SEED = 20240811
LD, HMC = theory.de_sgld, theory.de_sghmc


# --- exact quantity <= bound, on random problems within the hypotheses

def tightness_of(name, problem, algorithm, n_rounds, start, variants):
    """exact / bound of the average and of the clients' mean, for each variant; the exact law is made once."""
    module = {"de_sgld": LD, "de_sghmc": HMC}[name]
    facts = theory.constants(problem, algorithm, start)
    record = [k for k in (1, 2, 3, 7, 20, n_rounds) if k <= n_rounds]
    law = theory.exact_law(problem, algorithm, n_rounds, start=start, record=record)
    found = {}
    for variant in variants:
        for function in (module.w2_bound, module.w2_clients_bound):
            bound = function(facts, algorithm, n_rounds=n_rounds, record=record, variant=variant)
            assert bound.hypotheses_hold, f"{bound.summary()}\n{problem} {algorithm}"
            verdict = theory.check(bound, law)
            assert verdict.holds, f"{verdict}\n{bound.summary()}\n{problem} {algorithm}"
            found[function.__name__, variant] = verdict.tightness
    return found


@pytest.mark.parametrize("name, draw, problems, variants", [
    ("de_sgld", random_settings.draw_de_sgld, 1700, ("without_transient",)),
    ("de_sghmc", random_settings.draw_de_sghmc, 1700, ("without_transient",)),
])
def test_theorems_1_and_11_hold(name, draw, problems, variants):
    rng = np.random.default_rng([SEED, len(name)])
    worst = {}
    for _ in range(problems):
        for key, value in tightness_of(name, *draw(rng), variants).items():
            worst[key] = max(worst.get(key, 0.0), value)
    assert max(worst.values()) <= 1.0 + 1e-9
    assert min(worst.values()) > 0.5  # and near the start the bounds are nearly attained


FALSE = {(f"de_sghmc.{name}_bound", "printed_constant") for name in (
    "coupling", "disagreement", "gradient_error")} | {("de_sghmc.velocity_bound", "printed")}
"""What contains (105) as printed; Lemma 9 as printed is false in a range that these settings do not reach."""


def lemmas():
    return [(entry.id, variant) for entry in theory.theorems() if entry.id.startswith("de_sg")
            for variant in entry.variants if not entry.quantity.startswith("w2_c") and entry.quantity != "w2"
            and entry.id not in random_settings.DRAWS]


@pytest.mark.parametrize("name, variant", lemmas())
def test_lemmas_hold(name, variant):
    draw = random_settings.draw_de_sgld if name.startswith("de_sgld") else random_settings.draw_de_sghmc
    rng = np.random.default_rng([SEED, 1])
    ratios = []
    for _ in range(60):
        problem, algorithm, n_rounds, start = draw(rng)
        verdict = theory.examine(name, problem, algorithm, min(n_rounds, 15), start=start, variant=variant)
        assert verdict.hypotheses_met, verdict.bound.summary()
        if (name, variant) not in FALSE:
            assert verdict.holds, f"{verdict}\n{problem} {algorithm} {start}"
        ratios.append(verdict.tightness)
    # the exact side is not zero by mistake; Lemma 19 and Remark 3 bound a negative number by zero
    assert max(ratios) > 1e-6 or name.endswith(("gradient_coefficient_bound", "connectivity_bound"))


@pytest.mark.parametrize("name, tight", [("growing_noise_bound", 0.3), ("growing_noise_iterate_bound", 0.95)])
def test_appendix_d_holds_with_minibatches(name, tight):
    rng = np.random.default_rng([SEED, 3])
    ratios = []
    for _ in range(80):
        problem, algorithm, n_rounds, start = random_settings.draw_minibatches(rng)
        known = random_settings.known(problem, algorithm, n_rounds, start)
        verdict = theory.examine(f"de_sgld.{name}", problem, algorithm, n_rounds, start=start, known=known)
        assert verdict.holds or not verdict.hypotheses_met, f"{verdict}\n{problem} {algorithm} {start}"
        ratios += [verdict.tightness] * verdict.hypotheses_met
    assert len(ratios) > 60 and tight < max(ratios) <= 1.0


OURS = {"de_sgld.w2_recursion", "de_sgld.w2_clients_recursion", "de_sghmc.w2_recursion",
        "de_sghmc.w2_clients_recursion", "de_sgld.euler_stationary_bound"}
"""Derived here."""


def test_the_catalogue_of_the_paper():
    wanted = {"de_sgld": ("connectivity", "coupling", "disagreement", "euler", "fixed_point", "gradient",
                          "gradient_error", "growing_noise", "growing_noise_iterate", "iterate",
                          "target_moment", "w2", "w2_clients"),
              "de_sghmc": ("connectivity", "coupling", "damping", "disagreement", "extrapolation", "factor",
                           "gradient_coefficient", "gradient_error", "lyapunov", "position", "ratio",
                           "velocity", "w2", "w2_clients")}
    listed = {entry.id for entry in theory.theorems() if entry.id.startswith("de_sg")}
    assert listed == {f"{paper}.{name}_bound" for paper, names in wanted.items() for name in names} | {
        f"{paper}.{name}_rate" for paper in wanted for name in ("budget", "step")} | OURS
    for entry in theory.theorems():
        if entry.id in listed:
            assert entry.function is getattr(getattr(theory, entry.id.split(".")[0]), entry.function.__name__)


def test_bounds_from_constants_alone_are_larger():
    """Theorem 11 with the problem's own start is below the one that knows only constants."""
    rng = np.random.default_rng([SEED, 2])
    for _ in range(100):
        problem, algorithm, n_rounds, start = random_settings.draw_de_sghmc(rng)
        facts = theory.constants(problem, algorithm, start)
        for variant in ("without_transient", "printed", "printed_constant"):
            options = {"n_rounds": n_rounds, "variant": variant}
            own, loose = (HMC.w2_bound(facts, algorithm, begin=begin, **options).value
                          for begin in (HMC.beginning(problem, algorithm, start), None))
            assert (loose >= own * (1.0 - 1e-9)).all()


# --- units, couplings, starts

@pytest.mark.parametrize("scale", [1e-4, 1e5])
def test_bounds_scale_with_the_problem(scale):
    """Lengths times s, Hessians over s^2, eta times s^2 (DE-SGLD) or s (DE-SGHMC): W2 bounds go like s."""
    rng = np.random.default_rng([SEED, 4])
    hessians, minimizers = 1.0 + rng.random((3, 2)), rng.standard_normal((3, 2))
    start, velocity = rng.standard_normal((3, 2)), rng.standard_normal((3, 2))
    values = []
    for s in (1.0, scale):
        problem = fs.Quadratic.from_components(hessians / s**2, minimizers * s, 0.3 / s)
        slow = fs.DESGLD(0.1 * s**2, W)
        fast = fs.DESGHMC(0.3 * s, (1 - 1e-5) / (0.3 * s), W, velocity)
        values.append(np.concatenate([
            theory.examine(name, problem, algorithm, 12, start=start * s).bound.value / s
            for name, algorithm in (("de_sgld.w2_bound", slow), ("de_sgld.w2_clients_bound", slow),
                                    ("de_sghmc.w2_bound", fast), ("de_sghmc.w2_clients_bound", fast))]))
    np.testing.assert_allclose(values[1], values[0], rtol=1e-9)


def responses(problem, mixing, alpha, beta, points, velocities, noises, rough):
    """average, t, y, x and x before after the steps, in plain loops; noises and rough are (steps, N)."""
    n, eta = len(points), sqrt(alpha)
    hessians, centres = problem.weights * problem.hessians, problem.minimizers[:, 0]
    x, v = [float(p) for p in points], [float(u) for u in velocities]
    before, t = [x[i] - eta * v[i] for i in range(n)], sum(x) / n
    y = t
    for w, xi in zip(noises, rough, strict=True):
        slope = [hessians[i] * (x[i] - centres[i]) + xi[i] for i in range(n)]
        heat = sqrt(2 * (1 - beta) / eta * eta)
        v = [beta * v[i] - eta * slope[i] + heat * w[i] for i in range(n)]
        before, x = x, [sum(mixing[i, j] * x[j] for j in range(n)) + eta * v[i] for i in range(n)]
        pull_t, pull_y = (sum(hessians[i] * (z - centres[i]) for i in range(n)) / n for z in (t, y))
        t = t - alpha * pull_t + eta * heat * sum(w) / n
        y = y - alpha * pull_y + sqrt(2 * alpha) * sum(w) / n
    kept = beta / (1 - beta)
    ahead = [x[i] + kept * (x[i] - before[i]) for i in range(n)]
    mean = sum(x) / n
    return np.array([mean - t, t - y, mean - y, *ahead])


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_coupling_against_impulses_in_plain_loops(beta):
    """Second moments of a linear recursion: mean squared plus the squared response to every noise."""
    problem = fs.Quadratic.from_components(np.array([1.0, 2.0, 0.5]), [[1.0], [-2.0], [0.3]], 0.4)
    alpha, steps, n = 0.09, 4, 3
    start, velocities = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.0, -0.5])
    arguments = problem, W, alpha, beta, start, velocities
    silent = np.zeros((steps, n))
    middle = responses(*arguments, silent, silent)
    total = middle**2
    for s in range(steps):
        for i in range(n):
            unit = silent.copy()
            unit[s, i] = 1.0
            total = total + (responses(*arguments, unit, silent) - middle) ** 2
            total = total + (0.4 * (responses(*arguments, silent, unit) - middle)) ** 2
    algorithm = fs.DESGHMC(0.3, (1 - beta) / 0.3, W, velocities[:, None])
    found = LD.coupling(problem, algorithm, steps, start[:, None], alpha=alpha, beta=beta,
                        velocities=velocities[:, None])
    assert found.average_to_damped[-1] == pytest.approx(total[0], rel=1e-12)
    assert found.damped_to_euler[-1] == pytest.approx(total[1], rel=1e-12, abs=1e-30)
    assert found.average_to_euler[-1] == pytest.approx(total[2], rel=1e-12)
    assert found.extrapolated[-1] == pytest.approx(total[3:].sum(), rel=1e-12)


def test_beginning_against_the_exact_law():
    """E||x^(0) - x_a||^2 and E||x^(1) - x_a||^2 from the joint law; x_a is where the mean settles."""
    rng = np.random.default_rng([SEED, 5])
    for _ in range(20):
        problem, algorithm, _, start = random_settings.draw_de_sghmc(rng)
        found = HMC.beginning(problem, algorithm, start)
        law = theory.exact.joint_law(problem, algorithm, 1, start=start)
        fixed = LD.fixed_point(problem, algorithm, algorithm.step_size**2)
        traces = np.einsum("kii->k", law.cov)
        seconds = ((law.mean - fixed) ** 2).sum(axis=(1, 2)) + traces
        np.testing.assert_allclose([found.start_sq, found.first_sq], seconds, rtol=1e-8)
    algorithm = fs.DESGHMC(0.3, 1 / 0.3, W)
    problem = fs.Quadratic.from_components([1.0, 2.0, 1.5], [[1.0], [2.0], [-1.0]])
    settled = [theory.stationary_law(problem, algorithm, client=c).mean[0] for c in range(3)]
    np.testing.assert_allclose(LD.fixed_point(problem, algorithm, 0.09)[:, 0], settled, rtol=1e-12)


def test_constants_of_a_start_per_client():
    problem = fs.Quadratic.from_components([1.0, 2.0, 1.5], [[1.0, 0.0], [2.0, 1.0], [-1.0, 0.5]])
    start = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 0.5]])
    facts = theory.constants(problem, fs.DESGLD(0.1, W), start)
    gaps = start - problem.minimizer
    assert facts.initial_distance**2 == pytest.approx((gaps.mean(axis=0) ** 2).sum())
    assert 3 * (facts.initial_distance**2 + facts.initial_spread) == pytest.approx((gaps**2).sum())
    assert 3 * facts.initial_second_moment == pytest.approx((start**2).sum())
    half = 0.5 * np.array([1.0, 2.0, 1.5]) * (problem.minimizers**2).sum(axis=1)
    np.testing.assert_allclose(facts.gaps_at_origin, half, rtol=1e-14)
    common = theory.constants(problem, fs.DESGLD(0.1, W), start[0])
    assert common.initial_spread == 0.0
    loose = dataclasses.replace(facts, gaps_at_origin=None)  # from gradients: an upper bound
    own, upper = (LD.gradient_bound(known, fs.DESGLD(0.1, W), n_rounds=0).value[0]
                  for known in (facts, loose))
    assert own <= upper


# --- what is refused, and "not applicable"

def test_a_disconnected_network_is_not_applicable():
    problem = fs.Quadratic.from_components(np.ones(4), np.zeros((4, 1)))
    apart = fs.network.metropolis(np.kron(np.eye(2), np.ones((2, 2))))
    for mixing in (fs.network.disconnected(4), apart):
        for algorithm in (fs.DESGLD(0.1, mixing), fs.DESGHMC(0.1, 10.0, mixing)):
            facts = theory.constants(problem, algorithm)
            for entry in theory.theorems():
                if entry.id.endswith("_recursion") and entry.algorithm is type(algorithm):
                    found = entry.function(facts, algorithm, n_rounds=3)  # also where nothing mixes
                    assert np.isfinite(found.value).all()
                elif entry.algorithm is type(algorithm):
                    assert not entry.applies(algorithm)
                    with pytest.raises(LD.NotApplicable, match="mixing is not connected"):
                        entry.function(facts, algorithm, n_rounds=3)
        with pytest.raises(LD.NotApplicable, match="not connected"):
            HMC.friction_interval(1.0, 1.0, mixing, 0.1)


def test_one_client_is_connected():
    problem = fs.Quadratic([[1.0, 2.0]], [[1.0, -1.0]])
    alone = [[1.0]]
    for name, algorithm in (("de_sgld", fs.DESGLD(0.1, alone)),
                            ("de_sghmc", fs.DESGHMC(0.3, 1 / 0.3, alone))):
        verdict = theory.examine(f"{name}.w2_clients_bound", problem, algorithm, 30)
        assert verdict.holds and verdict.hypotheses_met


def test_where_the_formula_has_no_value():
    facts = by_hand()
    with pytest.raises(LD.NotApplicable, match=r"step_size=0.5 must be less than \(1 \+ lambda_N\)"):
        LD.w2_bound(facts, fs.DESGLD(0.5, W), n_rounds=1)
    with pytest.raises(LD.NotApplicable, match="must be less than 2/smoothness"):
        HMC.damping_bound(facts, fs.DESGHMC(1.5, 0.5, W), n_rounds=1)
    beyond = LD.w2_bound(facts, fs.DESGLD(0.4, W), n_rounds=1)  # within (1 + lambda_N)/L, beyond 1/(L + mu)
    assert not beyond.hypotheses_hold and len(beyond.violated) == 1
    with pytest.raises(LD.NotApplicable, match="1 - friction"):
        HMC.w2_bound(facts, fs.DESGHMC(0.3, 1.0, W), n_rounds=1)


def test_refusals():
    facts, algorithm = by_hand(), fs.DESGLD(0.1, W)
    with pytest.raises(ValueError, match="convention='federated' of the constants must be 'components'"):
        LD.w2_bound(by_hand(convention="federated"), algorithm, n_rounds=1)
    with pytest.raises(ValueError, match=r"must be a fedsim\.DESGLD"):
        LD.w2_bound(facts, fs.DESGHMC(0.1, 1.0, W), n_rounds=1)
    with pytest.raises(ValueError, match="must be constant"):
        LD.w2_bound(facts, fs.DESGLD([0.1, 0.05], W), n_rounds=1)
    with pytest.raises(ValueError, match=r"mixing has shape \(2, 2\)"):
        LD.w2_bound(facts, fs.DESGLD(0.1, fs.network.complete(2)), n_rounds=1)
    for name in ("initial_distance", "initial_second_moment", "minimizer"):
        with pytest.raises(ValueError, match=f"{name}=None is not known"):
            LD.w2_clients_bound(by_hand(**{name: None, "gaps_at_origin": None}), algorithm, n_rounds=1)
    with pytest.raises(ValueError, match="gaps_at_origin has a negative entry"):
        by_hand(gaps_at_origin=[1.0, -1.0, 0.0])
    with pytest.raises(ValueError, match="initial_spread"):
        by_hand(initial_spread=-0.1)
    problem = fs.Quadratic.from_components(np.ones(3), np.zeros((3, 1)))
    bound = LD.w2_clients_bound(theory.constants(problem, algorithm), algorithm, n_rounds=3)
    with pytest.raises(ValueError, match="with the laws of clients"):
        theory.check(bound, theory.exact_law(problem, fs.FALD(0.1), 3))
    other = fs.Quadratic.from_components(np.ones(3), np.ones((3, 1)))
    with pytest.raises(ValueError, match="target of the law differs"):
        theory.check(bound, theory.exact_law(other, algorithm, 3))


def test_the_fixed_point_of_any_step_size():
    """Of two clients in closed form, however small the step beside the network."""
    (A, B), (b, c), w = (1.0, 5.0), (3.0, -2.0), 0.3
    problem = fs.Quadratic.from_components([A, B], [[b], [c]])
    algorithm = fs.DESGLD(0.1, np.array([[1.0 - w, w], [w, 1.0 - w]]))
    for alpha in 10.0 ** np.arange(0, -15, -1.0):
        apart = (b - c) / (1.0 + w / alpha * (1.0 / A + 1.0 / B))
        wanted = [b - w * apart / (alpha * A), c + w * apart / (alpha * B)]
        np.testing.assert_allclose(LD.fixed_point(problem, algorithm, alpha)[:, 0], wanted, rtol=1e-12)
