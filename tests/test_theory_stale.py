"""Stale gradients in theory: rates, rules, fits, and Lemmas 8 and 9."""

from __future__ import annotations

import numpy as np
import pytest
from examples_of.stale import ALGORITHM, PROBLEM, rate

import fedsim as fs
import theory
from theory import stale
from theory.exact.delay import average_law, stability_limit
from theory.rates import fit_rate


def test_rates_by_hand():
    """h = 0.1, tau = 5, L = 100, so T = 10."""
    expected = {
        "generic_bias_rate": (0.1 + 0.1, {}), "generic_mse_rate": (0.1 + 0.01, {}),
        "bias_rate": (0.1 + 0.5 + 0.1, {}), "mse_rate": (0.1 + 0.25 + 0.01, {}),
        "variance_rate": (0.1 + 0.01, {}),
        "optimal_variance_rate": (100 ** (-2 / 3), {}),
        "optimal_bias_rate": (0.05**0.5, {}), "optimal_mse_rate": (0.05 ** (2 / 3), {}),
        "gradient_gap_rate": (0.5, {}), "fluctuation_rate": (0.1, {}),
        "chains_optimal_variance_rate": (100 ** (-2 / 3) / 4, {"n_chains": 4}),
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


@pytest.mark.parametrize("name", ["mse_rate", "fluctuation_rate"])
def test_a_rate_says_how_its_constants_are_fitted(name):
    bound = rate(name, record=range(1, 101))
    with pytest.raises(ValueError, match="unknown constant") as refused:
        theory.examine(f"stale.{name}", PROBLEM, ALGORITHM, 100)
    words = str(refused.value).rpartition(": ")[2]  # which run when pasted
    fit = eval(words, {"theory": theory, "bound": bound, "measured": 3.0 * bound.value})
    np.testing.assert_allclose(fit.curve, 3.0 * bound.value, rtol=1e-9)


def test_servers_that_differ():
    """The proof's last line keeps T_m/Tbar and h_m; without them a smaller form is proved."""
    lengths, steps, tau = [100, 50, 10], [0.1, 0.2, 0.01], 3
    total, mean = 20.1, 6.7
    proof = stale.chain_terms("mse", lengths, steps, tau, variant="proof")
    assert proof["time"] == pytest.approx(1 / total) and proof["chains"] == pytest.approx(6 / total**2)
    assert proof["staleness"] == pytest.approx((10 / mean * 3 * 0.2) ** 2)
    assert proof["integrator"] == pytest.approx((10 / mean * 0.2) ** 2)
    weighted = (10 * 0.1 + 10 * 0.2 + 0.1 * 0.01) / total
    default = stale.chain_terms("mse", lengths, steps, tau)
    assert default["staleness"] == pytest.approx((3 * weighted) ** 2)
    assert default["integrator"] == pytest.approx(weighted**2)
    assert stale.chain_terms("bias", lengths, steps, tau)["staleness"] == pytest.approx(3 * weighted)
    variance = stale.chain_terms("variance", lengths, steps, tau)
    assert variance == stale.chain_terms("variance", lengths, steps, tau, variant="proof")
    assert variance["time"] == pytest.approx(1 / total)


@pytest.mark.parametrize("quantity", ["bias", "mse"])
def test_the_default_for_servers_is_the_smaller_form(quantity):
    rng = np.random.default_rng(4)
    for _ in range(100):
        servers = int(rng.integers(1, 7))
        lengths, steps = rng.integers(1, 1000, servers), 10.0 ** rng.uniform(-3, 0, servers)
        order, tau = int(rng.integers(1, 4)), int(rng.integers(0, 9))
        small, large = ({name: np.array(value) for name, value in stale.chain_terms(
            quantity, lengths, steps, tau, order=order, variant=variant).items()}
            for variant in ("weighted", "proof"))
        assert list(small) == list(large)
        assert all(small[name] <= large[name] * (1 + 1e-12) for name in small)
        if servers == 1:
            assert all(small[name] == pytest.approx(large[name], rel=1e-12) for name in small)


@pytest.mark.parametrize("tau", [0, 6])
def test_the_smaller_form_bounds_the_exact_errors_of_unequal_servers(tau):
    """One constant covers the exact MSE of servers that differ, from one server to many."""
    ratios = []
    for servers in (1, 2, 16, 256):
        lengths = [2000, 250] * (servers // 2) or [2000]
        steps = [0.02, 0.002] * (servers // 2) or [0.02]
        one = {length: average_law(PROBLEM, fs.StaleSGLD(h, tau), length, start=[2.0]).at(length)
               for length, h in zip(lengths[:2], steps[:2], strict=True)}
        law = stale.combine_servers([one[length] for length in lengths], np.array(lengths) * np.array(steps))
        for quantity, value in (("mse", law.mse), ("bias", abs(law.bias)), ("variance", law.variance)):
            bound = rate(f"chains_{quantity}_rate", fs.StaleSGLD(0.01, tau), n_rounds=2000, record=[2000],
                         step_sizes=steps, speeds=np.array(lengths) / 2000)
            assert bound.hypotheses_hold and bound.inputs["n_chains"] == len(lengths)
            assert bound.value[-1] == pytest.approx(sum(stale.chain_terms(
                quantity, lengths, steps, tau).values()))
            ratios.append(float(value[0]) / bound.value[-1])
    assert max(ratios) < 4.0  # 2/a^3 is the constant of one server's variance


def test_rates_of_servers_that_differ():
    """By hand at L = 100: T_s = 10, 5, 4 of steps .1, .1, .2; and the step that is judged is the largest."""
    options = {"step_sizes": [0.1, 0.1, 0.2], "speeds": [1.0, 0.5, 0.2]}
    total, tau = 19.0, 5
    mean_step = (10 * 0.1 + 5 * 0.1 + 4 * 0.2) / total
    assert rate("chains_bias_rate", **options).value[-1] == pytest.approx(3 / total + (tau + 1) * mean_step)
    assert rate("chains_mse_rate", **options).value[-1] == pytest.approx(
        1 / total + 6 / total**2 + (tau**2 + 1) * mean_step**2)
    assert rate("chains_variance_rate", **options).value[-1] == pytest.approx(
        1 / total + (10**2 * 0.01 + 5**2 * 0.01 + 4**2 * 0.04) / total**2)
    printed = rate("chains_bias_rate", variant="printed", **options)
    assert printed.value[-1] == pytest.approx(3 / total + 30 / total * (tau + 1) * 0.2)
    limit = stability_limit(5)
    for largest, holds in ((0.999 * limit, True), (1.001 * limit, False)):
        bound = rate("chains_mse_rate", step_sizes=[0.01, largest])
        assert bound.hypotheses_hold is holds and bound.inputs["n_chains"] == 2
    assert rate("chains_mse_rate", speeds=[1.0] * 4).value == rate("chains_mse_rate", n_chains=4).value


@pytest.mark.parametrize("options, words", [
    ({"step_sizes": [0.1, 0.0]}, "step_sizes has an entry 0"), ({"speeds": [-1.0]}, "speeds has an entry -1"),
    ({"n_chains": 3, "speeds": [1.0, 2.0]}, r"speeds has shape \(2,\)"), ({"step_sizes": "x"}, "step_sizes"),
    ({"step_sizes": [0.1], "speeds": [1.0, 1.0]}, r"speeds has shape \(2,\)"), ({"speeds": []}, "speeds"),
    ({"n_chains": 0}, "n_chains=0")])
def test_servers_that_are_none(options, words):
    with pytest.raises(ValueError, match=words):
        rate("chains_mse_rate", **options)


def test_forms_that_only_our_transcription_has_are_gone():
    for name in ("chains_mse_rate", "chains_variance_rate"):
        for retired in ("printed", "corrected"):  # for one release they mean the default
            with pytest.warns(DeprecationWarning, match=retired):
                old = rate(name, n_chains=4, variant=retired)
            assert old.variant == "proof" and old.value.tolist() == rate(name, n_chains=4).value.tolist()
    with pytest.raises(ValueError, match="variant='printed'"):
        stale.chain_terms("mse", [10], [0.1], 1, variant="printed")


RATES = [name for name in dir(stale) if name.endswith("_rate")]


@pytest.mark.parametrize("name", RATES)
def test_rates_carry_their_assumptions(name):
    """A step size beyond stability is outside the hypotheses; Assumption 4 is among them."""
    entry = next(t for t in theory.catalogue().to_dict("records") if t["id"] == f"stale.{name}")
    assert "Assumption 4" in entry["hypotheses"]
    assert ("Assumption 1" in entry["hypotheses"]) == (name not in (
        "generic_bias_rate", "generic_mse_rate", "fluctuation_rate"))
    fresh = name == "generic_mse_rate"
    limit = stability_limit(0 if fresh else 5)
    for share, holds in ((0.999, True), (1.0, False), (1.001, False), (3.0, False)):
        bound = rate(name, fs.StaleSGLD(share * limit, 0 if fresh else 5))
        assert bound.hypotheses_hold == holds, (share, bound.violated)
        assert any("stable step size" in a.name for a in bound.assumptions)
    moving = fs.Workers(6, seed=3)
    hamilton = [fs.StaleSGHMC(h, 2.0, 0 if fresh else moving) for h in (0.05, 1.5)]
    assert [rate(name, one).hypotheses_hold for one in hamilton] == [True, False]


def test_the_assumption_is_that_of_the_recursion():
    """Both ends of the curvatures decide; the margin vanishes at the limit of the algorithm itself."""
    problem = fs.Quadratic([[1.0, 7.0]], [[0.0, 0.0]])
    for make in (lambda h: fs.StaleSGLD(h, 3), lambda h: fs.StaleSGHMC(h, 1.5, 3),
                 lambda h: fs.StaleSGLD(h, fs.Workers(4, "lognormal", seed=2))):
        limit = make(1.0).stability(problem).max_step_size
        for share in (0.5, 0.99, 1.01, 2.0):
            chosen = make(share * limit)
            bound = stale.bias_rate(theory.constants(problem, chosen), chosen, n_rounds=50)
            assert bound.hypotheses_hold == (chosen._radius(problem) < 1.0) == (share < 1.0)
    known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=8.0, convention="global")
    assert not stale.mse_rate(known, fs.StaleSGLD(0.2, 1), n_rounds=5).hypotheses_hold  # h L = 1.6 > 1
    assert stale.mse_rate(known, fs.StaleSGLD(0.2, 0), n_rounds=5).hypotheses_hold


def test_lemma_1_asks_for_fresh_gradients_where_it_divides_by_L():
    old, fresh = (rate("generic_mse_rate", fs.StaleSGLD(0.1, tau), operator_error=1.0) for tau in (1, 0))
    assert old.violated == ("unbiased gradients: all ages are 0",) and fresh.hypotheses_hold
    assert rate("generic_bias_rate").hypotheses_hold


def test_the_age_of_a_rate_is_the_largest_that_occurs():
    several = fs.StaleSGLD(0.01, fs.Workers(4, seed=1, schedules=8))
    each = [several.staleness.history(50, number).ages.max() for number in range(8)]
    assert rate("bias_rate", several, 50).inputs["tau"] == max(each) > each[0]
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
                                   "Corollary 5", "Theorem 6 (bias)", "Theorem 6 (MSE)", "Theorem 7",
                                   "Lemma 8", "Lemma 8 (quadratic f)", "Lemma 9 (A_2)", "after Theorem 7",
                                   "section 4 (bias)", "section 4 (MSE)", "derived here",
                                   "derived here (stationary)"}
    assert set(mine.index[mine["kind"] != "rate"]) == {"stale.gradient_gap_bound", "stale.w2_recursion",
                                                       "stale.stationary_bound"}
    assert set(mine["quantity"]) <= set(theory.quantities())
    assert not mine["variants"].str.contains("corrected").any()
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
    assert stale.bias_optimum(5e-324, 4) == pytest.approx(4.0 / 5e-324**0.5)
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
        bias = theory.exact.delay.stationary_variance(a, h, tau) - 1 / a
        variance = theory.exact.delay.long_run_variance(a, h, tau, mean) / length
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
    """C = 1/30 gives roughly the same error for every tau with a minibatch's sum, about precision 11."""
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


# --- Lemmas 8 and 9

def test_lemma_8_with_its_constant():
    """The exact gap is at most the bound, and equal to it while the first gradients are in use."""
    rng = np.random.default_rng(7)
    for number in range(60):
        dim, tau = int(rng.integers(1, 4)), int(rng.integers(0, 12))
        curvatures = 10.0 ** rng.uniform(-2, 2, (1, dim))
        problem = fs.Quadratic(curvatures, rng.standard_normal((1, dim)), None, 0.3)
        staleness = (tau, fs.Workers(tau + 1, "pareto", seed=number, cap=tau),
                     fs.Workers(tau + 1, seed=number, cap=tau, schedules=3))[number % 3]
        h = rng.uniform(0.05, 1.0) / (tau + 1) / curvatures.max()
        algorithm = fs.StaleSGLD(h, staleness)
        start = [fs.Gaussian(np.full(dim, 2.0), np.eye(dim)), np.full(dim, -3.0)][number % 2]
        verdict = theory.examine("stale.gradient_gap_bound", problem, algorithm, 80, start=start)
        assert verdict.hypotheses_met and verdict.holds, (number, verdict)
    problem, algorithm = fs.Quadratic([2.0], [[0.5]]), fs.StaleSGLD(0.1, 3)
    bound = stale.gradient_gap_bound(theory.constants(problem, algorithm, [1.5]), algorithm, n_rounds=6)
    gap = stale.gradient_gap(problem, algorithm, 6, start=[1.5])
    np.testing.assert_allclose(gap[:4], bound.value[:4], rtol=1e-12)
    assert theory.check(bound, gap).tightness == pytest.approx(1.0)


def test_the_bound_of_lemma_8_says_where_it_does_not_apply():
    steep = rate("gradient_gap_bound", fs.StaleSGLD(0.2, 5))
    assert steep.violated == ("(tau + 1) step_size smoothness <= 1",)
    logistic = fs.LogisticRegression(np.ones((4, 1)), np.array([1, 0, 1, 1]), np.zeros(4, int),
                                     prior_variance=1.0)
    algorithm = fs.StaleSGLD(0.01, 2)
    bound = stale.gradient_gap_bound(theory.constants(logistic, algorithm), algorithm, n_rounds=5)
    assert bound.violated == ("f is quadratic (its target is known to be normal)",)
    with pytest.raises(ValueError, match="StaleSGLD"):
        rate("gradient_gap_bound", fs.StaleSGHMC(0.1, 1.0, 2))
    with pytest.raises(ValueError, match="must be an array"):
        theory.check(rate("gradient_gap_bound"), average_law(PROBLEM, ALGORITHM, 100))


def test_the_gap_is_of_order_tau_h_although_steps_are_of_order_root_h():
    """Also for SGHMC."""
    for make in (lambda h: fs.StaleSGLD(h, 4), lambda h: fs.StaleSGHMC(h, 2.0, 4)):
        shares = []
        for h in (2e-2, 4e-3, 1e-3):
            gap = stale.gradient_gap(PROBLEM, make(h), round(2 / h), start=[1.0]).max()
            shares.append(float(gap) / rate("gradient_gap_rate", make(h)).value[-1])
        assert max(shares) <= 1.0 + 1e-9 and max(shares) / min(shares) < 1.2


def test_lemma_9_by_replicas_and_by_its_order(alarm):
    """E A_2 from the conditional variances of psi, computed path by path."""
    problem, m = fs.Quadratic([[1.0, 4.0]], [[0.5, -0.25]], None, 0.7), np.array([0.5, -0.25])
    a, h, tau, length, runs = np.array([1.0, 4.0]), 0.04, 2, 12, 100_000
    rng, start = np.random.default_rng(9), np.array([1.0, 0.0])
    size = 2 * h + h**2 * 0.7**2
    path, total = [np.tile(start - m, (runs, 1))], np.zeros(runs)

    def psi(y):
        return -0.5 * (y**2 / a).sum(axis=1) - 2.0 * (m * y / a).sum(axis=1)

    for update in range(length):
        mu = path[-1] - h * a * path[max(update - tau, 0)]
        path.append(mu + np.sqrt(size) * rng.standard_normal((runs, 2)))
        total += (psi(path[-1]) - psi(mu) + 0.5 * (size / a).sum()) ** 2
    found = stale.fluctuation(problem, fs.StaleSGLD(h, tau), length, start=start)
    score = (total.mean() - found[-1] * (length * h) ** 2) / total.std() * np.sqrt(runs)
    alarm.assert_student([score], runs - 1, "E A_2")
    shares = [stale.fluctuation(PROBLEM, fs.StaleSGLD(h, 5), n)[-1] * n * h
              for h, n in ((0.02, 1000), (0.01, 2000), (0.01, 8000))]
    assert max(shares) / min(shares) < 1.15 and shares[-1] == pytest.approx(2.0, rel=0.05)
    for algorithm, words in ((fs.StaleSGHMC(0.1, 1.0), "StaleSGLD"),
                             (fs.StaleSGLD(fs.schedules.Harmonic(5.0, 1.0)), "one step size")):
        with pytest.raises(theory.NoExactLaw, match=words):
            stale.fluctuation(PROBLEM, algorithm, 5)
    with pytest.raises(theory.NoExactLaw, match="not normal"):
        stale.fluctuation(fs.GaussianMean([1.0, 2.0], batch_size=1), fs.StaleSGLD(0.01), 5)


def test_lemma_8_from_the_target_is_rounding_on_both_sides():
    """The start is the minimizer up to rounding: no ratio, and nothing against the lemma."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        roots = rng.random((4, 3, 3))
        problem = fs.Quadratic(roots @ roots.swapaxes(1, 2) + np.eye(3), 10.0 * rng.standard_normal((4, 3)))
        algorithm = fs.StaleSGLD(0.9 / (2.0 * theory.constants(problem, fs.StaleSGLD(0.01)).smoothness), 1)
        start = problem.minimizer * (1.0 + 1e-16)
        verdict = theory.examine("stale.gradient_gap_bound", problem, algorithm, 10, start=start)
        assert verdict.holds and verdict.hypotheses_met and verdict.tightness <= 1.0
        away = theory.examine("stale.gradient_gap_bound", problem, algorithm, 10, start=start + 1.0)
        assert away.holds and away.tightness > 0.05
