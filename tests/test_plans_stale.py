"""Stale gradients: speedups, optimal step sizes and plans."""

from __future__ import annotations

import numpy as np
import pytest
from examples_of.stale import ALGORITHM, PROBLEM, rate

import fedsim as fs
import theory
from theory import stale
from theory.exact.delay import average_law, stability_limit

# --- speedups

def test_first_reaching_waits_for_the_maximum():
    lengths, curve = np.arange(1, 8), [0.0, 0.5, 1.0, 0.6, 0.2, 0.1, 0.05]
    assert stale.first_reaching(lengths, curve, 0.2) == 5
    assert stale.first_reaching(lengths, curve, 0.01) is None
    assert stale.first_reaching(lengths, curve, 2.0) == 3
    with pytest.raises(ValueError, match="lengths must increase"):
        stale.first_reaching([2, 1], [1.0, 1.0], 1.0)


def test_iteration_speedup_is_linear_while_staleness_is_small():
    def law(h, workers):
        return average_law(PROBLEM, fs.StaleSGLD(h, fs.Workers(workers, "deterministic")), 6000)

    speed = {}
    for h in (0.005, 0.1):
        single = law(h, 1)
        peak = int(np.argmax(single.variance))
        assert 0 < peak < len(single.variance) / 2  # from a fixed start it rises first
        goal = 0.3 * single.variance[peak]
        speed[h] = [stale.iteration_speedup(single, law(h, w), w, goal) for w in (1, 4, 9)]
    assert speed[0.005][0] == 1.0 and speed[0.005][1] == pytest.approx(4.0, rel=0.05)
    assert speed[0.005][2] == pytest.approx(9.0, rel=0.1)
    assert speed[0.1][2] < 0.75 * 9.0  # h a W is no longer small


def test_time_speedup_saturates_with_the_cost_of_updates():
    h, goal = 0.01, None
    speed = {}
    for cost in (0.0, 0.5):
        laws, clocks = [], []
        for n in (1, 8):
            workers = fs.Workers(n, "deterministic", update_cost=cost)
            laws.append(average_law(PROBLEM, fs.StaleSGLD(h, workers), 3000))
            clocks.append(workers.history(3000).times)
        goal = 0.3 * laws[0].variance.max()
        speed[cost] = stale.time_speedup(*laws, *clocks, goal)
    assert speed[0.0] == pytest.approx(8.0, rel=0.1)
    assert speed[0.5] < 3.5  # at most (1 + 0.5) / 0.5 = 3 updates in the time of one worker's
    with pytest.raises(ValueError, match="not reached by single"):
        stale.time_speedup(laws[0], laws[1].at(1000), *clocks, 1e-12 * goal)
    with pytest.raises(ValueError, match="times_single has 5 entries"):
        stale.time_speedup(*laws, clocks[0][:5], clocks[1], goal)


# --- optima and plans

def test_rates_at_the_best_step_are_those_of_the_shapes():
    """Minimised over h the shapes fall with L and tau as the catalogue says, up to one constant."""
    steps = np.geomspace(1e-6, 1.0, 4000)
    found = {"optimal_bias_rate": [], "optimal_mse_rate": [], "chains_optimal_variance_rate": []}
    for length, tau, servers in ((10**4, 2, 2), (10**6, 2, 2), (10**6, 50, 30)):
        shapes = {
            "optimal_bias_rate": 1 / (length * steps) + tau * steps,
            "optimal_mse_rate": 1 / (length * steps) + (tau * steps) ** 2,
            "chains_optimal_variance_rate": 1 / (servers * length * steps) + steps**2 / servers}
        for name, shape in shapes.items():
            options = {"n_chains": servers} if name.startswith("chains") else {}
            value = rate(name, fs.StaleSGLD(0.01, tau), length, **options).value[-1]
            found[name].append(float(shape.min()) / value)
    for name, ratios in found.items():
        assert max(ratios) / min(ratios) == pytest.approx(1.0, abs=1e-3), name
    printed, default = (rate("chains_optimal_variance_rate", n_chains=8, variant=variant).value[-1]
                        for variant in ("printed", "optimised"))
    assert printed == pytest.approx(800 ** (-2 / 3)) and default == pytest.approx(printed / 2)
    fresh = rate("optimal_mse_rate", fs.StaleSGLD(0.1, 0))
    assert fresh.violated == ("the term of staleness dominates: tau >= 1",)
    assert fresh.value[-1] == rate("optimal_mse_rate", fs.StaleSGLD(0.1, 1)).value[-1]


@pytest.mark.parametrize("tau", [0, 1, 7, 30])
@pytest.mark.parametrize(("a", "mean", "noise"), [(1.0, 0.0, 0.0), (2.0, 1.5, 0.0), (3.0, 0.3, 4.0)])
def test_plans_meet_the_wanted_mse(tau, a, mean, noise):
    """By the stationary law: the error tends to what was asked for as it becomes small."""
    problem, algorithm = fs.Quadratic([a], [[mean]], None, noise), fs.StaleSGLD(0.1, tau)
    known, shares = theory.constants(problem, algorithm), []
    for eps in (1e-3, 1e-5, 1e-7):
        found = stale.plan(known, algorithm, eps)
        h = found.step_size
        bias = theory.exact.delay.stationary_variance(a, h, tau, noise**2) - 1 / a
        variance = theory.exact.delay.long_run_variance(a, h, tau, mean, noise**2) / found.n_iterations
        shares.append((bias**2 + variance) / eps)
        if not found.capped and eps < 1e-4:
            assert variance / bias**2 == pytest.approx(2.0, rel=0.05)  # the shape's own optimum
    assert shares[-1] == pytest.approx(1.0, abs=0.005) and max(shares) < 1.15
    assert found.kind == "rate" and found.tau == tau and "rate of the mse" in found.label


def test_plans_for_bias_and_variance():
    problem = fs.Quadratic([[1.0, 3.0]], [[1.0, 0.5]])
    start, algorithm = [4.0, 0.0], fs.StaleSGLD(0.1, 3)
    known = theory.constants(problem, algorithm, start)
    for eps in (1.0, 0.3):
        found = stale.plan(known, algorithm, eps, "bias")
        law = average_law(problem, fs.StaleSGLD(found.step_size, 3), found.n_iterations, start=start)
        assert 0.3 * eps < abs(law.bias[-1]) < 1.1 * eps
    bias = stale.plan(known, algorithm, 0.01, "bias", time_constant=2.0, step_constant=0.5)
    assert bias.step_size == pytest.approx(stale.bias_step_size(bias.n_iterations, 3, 0.25), rel=1e-4)
    assert stale.bias_optimum(bias.n_iterations, 3, 0.25) * 2.0 == pytest.approx(0.01, rel=1e-4)
    mse = stale.plan(known, algorithm, 1e-4, time_constant=2.0, step_constant=1.0)
    assert mse.step_size == pytest.approx(stale.mse_step_size(mse.n_iterations, 3, 1.0), rel=1e-4)
    variance = stale.plan(known, algorithm, 1e-4, "variance", time_constant=2.0, step_constant=1.0)
    assert variance.step_size == pytest.approx(stale.variance_step_size(variance.n_iterations), rel=1e-4)
    assert variance.n_iterations < mse.n_iterations  # its shape has no tau


def test_plans_stay_within_stability_and_name_what_is_missing():
    known = theory.constants(PROBLEM, ALGORITHM)
    crude = stale.plan(known, ALGORITHM, 100.0)
    assert crude.capped and crude.step_size == pytest.approx(0.1 * stability_limit(5))
    workers = fs.StaleSGHMC(0.1, 2.0, fs.Workers(4, seed=2))
    found = stale.plan(known, workers, 0.01, time_constant=4.0, step_constant=2.0)
    assert found.tau == fs.Workers(4, seed=2).ages(4000).max()
    listed = stale.plan(known, fs.StaleSGLD(0.1, [0, 1, 2, 1]), 0.01)
    assert listed.tau == 2
    sums = fs.GaussianMean([1.0, 2.0, 3.0, 4.0], batch_size=2, grad_scale="batch_sum")
    for make, words in (
            (lambda: stale.plan(known, workers, 0.01), "time_constant=None is known for stale SGLD"),
            (lambda: stale.plan(known, ALGORITHM, 0.01, "variance"), "step_constant=None has no default"),
            (lambda: stale.plan(theory.constants(sums, ALGORITHM), ALGORITHM, 0.01), "biased at every step"),
            (lambda: stale.plan(known, ALGORITHM, 0.0), "eps=0.0 must be greater than 0"),
            (lambda: stale.plan(known, ALGORITHM, 1e-16), "must be larger"),
            (lambda: stale.plan(known, ALGORITHM, 0.1, "w2"), "quantity='w2' must be one of"),
            (lambda: stale.plan(known, ALGORITHM, 0.1, step_constant=0.0), "step_constant=0.0 must be"),
            (lambda: stale.plan(None, ALGORITHM, 0.1), "must be a theory.Constants of convention 'global'"),
            (lambda: stale.plan(known, fs.FALD(0.1), 0.1),
             "must be a fedsim.StaleSGLD or a fedsim.StaleSGHMC")):
        with pytest.raises(ValueError, match=words):
            make()
