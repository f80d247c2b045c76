"""Stale gradients in theory: rates, rules, speedups, fits and errata."""

from __future__ import annotations

import numpy as np
import pytest

import fedsim as fs
import theory
from theory import stale
from theory.exact.stale import average_law, stability_limit
from theory.rates import fit_rate

PROBLEM = fs.Quadratic([1.0], [[0.0]])
ALGORITHM = fs.StaleSGLD(0.1, 5)


def rate(name, algorithm=ALGORITHM, n_rounds=100, **options):
    return getattr(stale, name)(theory.constants(PROBLEM, algorithm), algorithm, n_rounds=n_rounds,
                                **{"record": ()} | options)


def test_rates_by_hand():
    """h = 0.1, tau = 5, L = 100, so T = 10."""
    expected = {
        "generic_bias_rate": (0.1 + 0.1, {}), "generic_mse_rate": (0.1 + 0.01, {}),
        "bias_rate": (0.1 + 0.5 + 0.1, {}), "mse_rate": (0.1 + 0.25 + 0.01, {}),
        "variance_rate": (0.1 + 0.01, {}),
        "optimal_variance_rate": (100 ** (-2 / 3), {}),
        "chains_bias_rate": (0.1 + 0.5 + 0.1, {"n_chains": 4}),
        "chains_mse_rate": (1 / 40 + 12 / 1600 + 0.25 + 0.01, {"n_chains": 4}),
        "chains_variance_rate": (1 / 40 + 0.01 / 4, {"n_chains": 4}),
    }
    for name, (value, options) in expected.items():
        bound = rate(name, **options)
        assert bound.kind == "rate" and bound.rounds.tolist() == [100]
        assert bound.value[-1] == pytest.approx(value, rel=1e-12), name
        with pytest.raises(ValueError, match="rate"):
            theory.check(bound, average_law(PROBLEM, ALGORITHM, 100))
    second = rate("mse_rate", order=2)
    assert second.terms["integrator"][-1] == pytest.approx(1e-4)
    assert rate("generic_bias_rate", operator_error=0.3).value[-1] == pytest.approx(0.5)
    assert rate("generic_mse_rate", operator_error=0.3).value[-1] == pytest.approx(0.113)


def test_printed_variants():
    printed = rate("chains_mse_rate", n_chains=4, variant="printed")
    assert printed.value[-1] == pytest.approx((1 - 1 / 10) / 40 + 1 / 1600 + (0.25 + 0.01) / 16)
    printed = rate("chains_variance_rate", n_chains=4, variant="printed")
    assert printed.value[-1] == pytest.approx(0.1 + 0.01 / 4)
    for name in ("chains_bias_rate", "chains_mse_rate", "chains_variance_rate"):
        one = [rate(name, n_chains=1, variant=variant).value for variant in ("corrected", "printed")]
        np.testing.assert_allclose(*one, rtol=1e-14)  # a single server has no misprint
    unequal = stale.chain_terms("mse", [100, 50], [0.1, 0.2], 3)
    assert unequal["time"] == pytest.approx(1 / 20) and unequal["staleness"] == pytest.approx(0.36)


def test_the_age_of_a_rate_is_the_largest_that_occurs():
    workers = fs.StaleSGHMC(0.1, 3.0, fs.Workers(4, seed=1))
    assert rate("bias_rate", workers, 50).inputs["tau"] == workers.ages(50).max()
    listed = fs.StaleSGLD(0.1, [0, 1, 2, 1])
    assert rate("bias_rate", listed, 4).inputs["tau"] == 2
    with pytest.raises(ValueError, match="must be constant"):
        rate("bias_rate", fs.StaleSGLD(fs.schedules.Harmonic(5.0, 1.0), 2))


def test_the_catalogue_knows_them():
    table = theory.catalogue().set_index("id")
    mine = table[table["paper"] == "Stale gradients"]
    assert set(mine["number"]) == {"Lemma 1 (bias)", "Lemma 1 (MSE)", "Theorem 2", "Theorem 3", "Theorem 4",
                                   "Corollary 5", "Theorem 6 (bias)", "Theorem 6 (MSE)", "Theorem 7"}
    assert (mine["kind"] == "rate").all() and set(mine["quantity"]) <= set(theory.quantities())
    for name, row in mine.iterrows():
        assert row["function"] == f"theory.stale.{name.split('.')[1]}"
        assert hasattr(stale, name.split(".")[1])


def test_rules_minimise_their_rates():
    for tau in (1, 4, 20):
        L, M = 5000.0, 2.7
        h = stale.bias_step_size(L, tau, M)
        value = 1 / (L * h) + M * tau * h
        assert value == pytest.approx(stale.bias_optimum(L, tau, M))
        assert all(1 / (L * f * h) + M * tau * f * h > value for f in (0.99, 1.01))
        C = (2 * M) ** (-1 / 3)
        h = stale.mse_step_size(L, tau, C)
        value = 1 / (L * h) + M * tau**2 * h**2
        assert value == pytest.approx(stale.mse_optimum(L, tau, C))
        assert all(1 / (L * f * h) + M * (tau * f * h) ** 2 > value for f in (0.99, 1.01))
    assert stale.mse_step_size(1000, 0) == stale.mse_step_size(1000, 1)
    assert stale.variance_step_size(1000) == pytest.approx(0.1)
    assert stale.variance_step_size(32, order=2) == pytest.approx(0.5)


@pytest.mark.parametrize(("a", "mean"), [(1.0, 0.0), (2.0, 1.5)])
def test_the_optimal_constant_is_that_of_the_exact_law(a, mean):
    """From the stationary law, at small a tau h: scanning C finds C_opt within the scan's step."""
    tau, length = 40, 20_000
    guess = stale.optimal_constant(a, mean)
    assert guess == pytest.approx(np.cbrt(1 / a**3 + 4 * mean**2 / a**2))
    errors = []
    factors = np.array([0.6, 0.8, 1.0, 1.25, 1.6])
    for factor in factors:
        h = stale.mse_step_size(length, tau, factor * guess)
        bias = theory.exact.stale.stationary_variance(a, h, tau) - 1 / a
        variance = theory.exact.stale.long_run_variance(a, h, tau, mean) / length
        errors.append(bias**2 + variance)
    assert factors[int(np.argmin(errors))] in (0.8, 1.0)  # higher orders of a tau h favour less


def test_stable_settings_of_figure_1():
    """C = 1/30 is unstable for the posterior's own precision, and stable below C = 500^(1/3)/1001."""
    problem = fs.GaussianMean(np.random.default_rng(0).standard_normal(1000), batch_size=10)
    limit = 500 ** (1 / 3) / 1001
    for tau in (1, 2, 5, 10, 15, 20):
        with pytest.raises(fs.UnstableStepSize):
            printed = fs.StaleSGLD(stale.mse_step_size(500 * tau, tau, 1 / 30), tau)
            fs.simulate(problem, printed, 5, 64, seed=1)
        algorithm = fs.StaleSGLD(stale.mse_step_size(500 * tau, tau, 0.99 * limit), tau)
        assert algorithm.stability(problem).stable
    beyond = fs.StaleSGLD(stale.mse_step_size(500, 1, 1.01 * limit), 1)
    assert not beyond.stability(problem).stable
    assert beyond.stability(problem).max_step_size == pytest.approx(stability_limit(1) / 1001)


def test_equal_errors_of_figure_1():
    """The reading that gives roughly the same error for every tau: the sum of a minibatch."""
    # moments of the data as a Gaussian problem: precision 11, variance one, mean 0.0788
    n, size = 1000, 10
    problem = fs.Quadratic([[size + 1.0]], [[size * 0.0788 / (size + 1)]], None,
                           np.sqrt(size * (n - size) / (n - 1)))
    ends = []
    for tau in (1, 2, 5, 10):
        algorithm = fs.StaleSGLD(stale.mse_step_size(500 * tau, tau, 1 / 30), tau)
        ends.append(average_law(problem, algorithm, 500 * tau).mse[-1])
    assert max(ends) / min(ends) < 1.12 and ends[0] == pytest.approx(9.5e-4, rel=0.1)


def test_fitted_constants_and_drift():
    """Theorem 2 fits the exact bias; Theorem 4's shape drifts with tau."""
    taus, h, length = np.array([2, 4, 8, 16, 128]), 0.005, 4000
    start = fs.Gaussian([0.0], [[1.0]])
    laws = [average_law(PROBLEM, fs.StaleSGLD(h, int(tau)), length, start=start).at(length) for tau in taus]
    bounds = [rate("bias_rate", fs.StaleSGLD(h, int(tau)), length) for tau in taus]
    small = slice(0, 4)  # a tau h at most 0.08
    terms = {name: [bound.terms[name][-1] for bound in bounds[small]] for name in ("staleness", "integrator")}
    fit = stale.fit_constants(terms, [abs(law.bias[0]) for law in laws[small]])
    assert fit.constants["staleness"] == pytest.approx(1.0, abs=0.05) and fit.largest_error < 0.05
    assert fit.constants["integrator"] == pytest.approx(0.5, abs=0.1)
    assert "fitted" in fit.label
    flat = [rate("variance_rate", fs.StaleSGLD(h, int(tau)), length).value[-1] for tau in taus]
    drift = fit_rate(taus, flat, [law.variance[0] for law in laws])
    assert drift.spread > 2.0  # Theorem 4 has one constant for all of them
    assert drift.curve == pytest.approx(drift.constant * np.array(flat))
    for bad, words in (({}, "terms must name"), ({"a": [1.0]}, r"terms\['a'\] has shape")):
        with pytest.raises(ValueError, match=words):
            stale.fit_constants(bad, [1.0, 2.0])
    with pytest.raises(ValueError, match="measured has an entry -1"):
        stale.fit_constants({"a": [1.0, 1.0]}, [1.0, -1.0])


def test_the_variance_falls_as_in_corollary_5():
    lengths = np.array([1000, 4000, 16_000])
    start = fs.Gaussian([0.0], [[1.0]])
    found = []
    for n in lengths.tolist():
        algorithm = fs.StaleSGLD(stale.variance_step_size(n, 0.5), 1)
        found.append(average_law(PROBLEM, algorithm, n, start=start).variance[-1])
    early, late = np.diff(np.log(found)) / np.log(4.0) + 2 / 3
    assert abs(late) < abs(early) < 0.03 and abs(late) < 0.015


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


# --- errata

@pytest.mark.parametrize("entry", theory.errata("Stale gradients"), ids=lambda entry: entry.id)
def test_errata_have_evidence(entry):
    found = entry.evidence()
    assert found.demonstrated == (entry.kind == "numerical") and found.text.endswith((".", "text"))
    assert all(np.isfinite(value) for value in found.numbers.values())
