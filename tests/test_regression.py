"""Linear and logistic regression: gradients, minibatches, laws, and input that must be refused."""

import naive
import naive_fa_hmc
import naive_regression
import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import expit
from test_replicas_against_law import scores

import fedsim as fs
import theory
from fedsim.algorithms.federated import curvatures
from fedsim.compile import compiled
from fedsim.distance import w1_samples
from fedsim.gradients import exact_gradient, gradient_scratch, stochastic_gradient
from fedsim.problems.regression import kernels
from fedsim.streams import lane_set
from reproduce._reference import metropolis_hmc, posterior_reference

SEED = 0x9E3779B97F4A7C15
SIZES = (9, 4, 13)
EYE3 = fs.network.complete(3)


def make(kind, dim=3, sizes=SIZES, seed=0, weights=None, **options):
    """A problem whose clients own different, interleaved numbers of rows."""
    rng = np.random.default_rng(seed)
    clients = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    features = rng.standard_normal((len(clients), dim)) * rng.uniform(0.5, 2.0, dim)
    scores = features @ rng.standard_normal(dim)
    if kind == "linear":
        targets = scores + 0.7 * rng.standard_normal(len(clients))
        return fs.LinearRegression(features, targets, clients, noise_std=0.7, prior_variance=5.0,
                                   weights=weights, **options)
    labels = (rng.random(len(clients)) < expit(scores)).astype(int)
    return fs.LogisticRegression(features, labels, clients, prior_variance=5.0, weights=weights, **options)


@compiled
def _exact(problem, client, x, scratch, out):
    exact_gradient(problem, client, x, scratch, out)


@compiled
def _stochastic(problem, lanes, client, step, draw, x, scratch, out):
    stochastic_gradient(problem, lanes, client, step, draw, x, scratch, out)


def evaluate(problem, x, client, *, step=None, draw=0, first=0):
    """Compiled gradients (B, d) at points `x` (B, d): exact ones, or those of a step."""
    rows = np.ascontiguousarray(x.T)
    out, scratch = np.empty_like(rows), gradient_scratch(problem, *rows.shape, np.float64)
    if step is None:
        _exact(problem._arrays(), client, rows, scratch, out)
    else:
        lanes = lane_set(SEED, first, len(x))  # minibatches go lane by lane and need no whole tiles
        lanes = lanes._replace(replicas=np.arange(first, first + len(x), dtype=np.uint64))
        _stochastic(problem._arrays(), lanes, client, step, draw, rows, scratch, out)
    return out.T


def test_sigmoid_is_expit():
    rng = np.random.default_rng(1)
    z = np.concatenate([np.linspace(-708.0, 708.0, 100_001), rng.standard_normal(100_000) * 5, [0.0, -0.0],
                        10.0 ** np.arange(-300, 3), -(10.0 ** np.arange(-300, 3))])
    found = z.copy()
    kernels._sigmoid_row(found)
    assert (np.abs(found - expit(z)) <= 1.5e-15 * expit(z)).all()
    far = np.array([709.0, 1e4, 1e300, np.inf, -709.0, -1e4, -1e300, -np.inf, np.nan])
    found = far.copy()
    kernels._sigmoid_row(found)
    np.testing.assert_allclose(found[:4], 1.0, rtol=0, atol=0)
    assert (np.abs(found[4:8]) < 1e-300).all() and np.isnan(found[8])


@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("dim", [1, 2, 5, 12])
def test_compiled_gradients_are_those_of_numpy(kind, dim):
    """For a client, and for a client per lane; sizes below, at and above a group of eight rows."""
    weights = [0.2, 0.5, 0.3]
    problem = make(kind, dim, (9, 4, 16), weights=weights)
    minibatches = make(kind, dim, (9, 4, 16), weights=weights, batch_size=3)
    x = np.random.default_rng(2).standard_normal((70, dim)) * 3.0
    numpy = np.stack([problem.gradient(c, x) for c in range(3)])
    scale = np.abs(numpy).max()
    each = np.arange(70) % 3
    for made in (problem, minibatches):
        for c in range(3):
            np.testing.assert_allclose(evaluate(made, x, c), numpy[c], rtol=0, atol=1e-13 * scale)
        mixed = evaluate(made, x, each)
        np.testing.assert_allclose(mixed, numpy[each, np.arange(70)], rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(np.tensordot(weights, numpy, 1), problem.gradient(None, x), atol=1e-12 * scale)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_gradients_are_derivatives_of_potentials(kind):
    problem = make(kind, weights=[0.2, 0.5, 0.3])
    point = np.array([0.3, -1.2, 0.8])
    for client in (0, 1, 2, None):
        difference = optimize.approx_fprime(point, lambda x, c=client: float(problem.potential(c, x)), 1e-7)
        np.testing.assert_allclose(problem.gradient(client, point), difference, rtol=1e-5)
    parts = sum(w * problem.potential(c, point) for c, w in enumerate(problem.weights))
    np.testing.assert_allclose(parts, problem.potential(None, point), rtol=1e-14)


def test_potentials_are_minus_the_log_posterior():
    """Up to the normalisers, by SciPy's densities; the printed potentials of regression are not."""
    x, origin = np.array([[0.3, -1.2, 0.8]]), np.zeros((1, 3))
    for kind in ("linear", "logistic"):
        problem = make(kind)

        def log_density(point, problem=problem, kind=kind):
            score = problem.features @ point[0]
            data = (stats.norm.logpdf(problem.targets, score, 0.7) if kind == "linear"
                    else stats.bernoulli.logpmf(problem.labels, expit(score)))
            return data.sum() + stats.norm.logpdf(point, 0.0, np.sqrt(5.0)).sum()

        gap = problem.potential(None, x) - problem.potential(None, origin)
        np.testing.assert_allclose(gap, log_density(origin) - log_density(x), rtol=1e-12)


CASES = [make("logistic", 2), make("logistic", 9), make("logistic", 1, batch_size=4),
         make("logistic", 4, batch_size=3, replace=False, weights=[0.5, 0.3, 0.2]),
         make("logistic", 9, batch_size=2, gradient_noise=0.4, grad_scale="batch_sum"),
         make("logistic", 3, (30, 21), batch_size=19, replace=False), make("linear", 3),
         make("linear", 3, batch_size=4), make("linear", 2, (30, 21), batch_size=17, replace=False),
         make("linear", 5, batch_size=3, grad_scale="batch_sum", weights=[0.2, 0.2, 0.6])]


def assert_fa_ld_parity(problem, monkeypatch, participation=None, noise="double"):
    monkeypatch.setattr(naive, "stochastic_gradient", lambda seen, streams, client, step, x: (
        naive_regression.stochastic_gradient(seen.regression, streams, client, step, 0, x)))
    algorithm = fs.FALD(0.3 / problem.smoothness, 2, 0.8, 0.3, participation)
    run = fs.simulate(problem, algorithm, 3, 66, seed=SEED, keep_final=True, noise=noise, threads=1)
    for replica in (0, 65):
        slow = naive.fa_ld(naive_regression.as_seen(problem), algorithm, 3, SEED, replica,
                           single=noise == "single")
        error = np.abs(run.final[replica] - slow[-1]).max() / np.abs(slow).max()
        assert error <= (1e-12 if noise == "double" else 1e-5)


@pytest.mark.parametrize("problem", CASES, ids=repr)
def test_fa_ld_is_its_slow_twin(problem, monkeypatch):
    assert_fa_ld_parity(problem, monkeypatch)


@pytest.mark.parametrize("problem", [*CASES[:4], CASES[5]], ids=repr)
def test_a_client_per_lane_is_its_slow_twin(problem, monkeypatch):
    assert_fa_ld_parity(problem, monkeypatch, fs.Participation(2, True))


def test_single_precision_variates_draw_the_same_minibatches(monkeypatch):
    assert_fa_ld_parity(CASES[3], monkeypatch, noise="single")


def test_fa_hmc_is_its_slow_twin():
    """All 2K - 1 evaluations of a local update draw their own minibatch and noise."""
    problem = CASES[4]
    algorithm = fs.FAHMC(0.3 / np.sqrt(problem.smoothness), 3, 2, 0.4)
    run = fs.simulate(problem, algorithm, 2, 66, seed=SEED, keep_final=True, threads=1)
    for replica in (0, 65):
        slow = naive_regression.fa_hmc(problem, algorithm, 2, SEED, replica)
        assert np.abs(run.final[replica] - slow).max() <= 1e-12 * np.abs(slow).max()


@pytest.mark.parametrize("participation", [None, fs.Participation(2, True)])
def test_debiasing_is_its_slow_twin(participation, monkeypatch):
    """The corrections are full gradients, at an anchor, of the clients that take part."""
    problem = make("logistic", 3)
    monkeypatch.setattr(naive_fa_hmc, "exact_gradient", lambda seen, client, x: (
        naive_regression.exact_gradient(seen.regression, client, x)))
    monkeypatch.setattr(naive_fa_hmc, "gradient_noise", lambda *args: [0.0] * 3)
    algorithm = fs.FAHMC(0.2 / np.sqrt(problem.smoothness), 2, 2, 0.4, "fresh", participation=participation)
    run = fs.simulate(problem, algorithm, 3, 66, seed=SEED, keep_final=True, allow_unstable=True, threads=1)
    slow = naive_fa_hmc.fa_hmc(naive_regression.as_seen(problem), algorithm, 3, SEED, 65)
    assert np.abs(run.final[65] - slow[-1]).max() <= 1e-12 * np.abs(slow).max()


def test_decentralized_and_federated_agree_for_one_client():
    problem = make("logistic", 3, (20,), batch_size=6)
    one, step = np.ones((1, 1)), 0.2 / problem.smoothness
    gossip = fs.simulate(problem, fs.DESGLD(step, one), 7, 64, seed=3, keep_final=True)
    federated = fs.simulate(problem, fs.FALD(step), 7, 64, seed=3, keep_final=True)
    np.testing.assert_allclose(gossip.final, federated.final, rtol=1e-12, atol=1e-14)


LANES = 60_000


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_minibatch_gradients_have_their_mean_and_covariance(kind, replace, alarm):
    """Unbiased, with covariance (1/b) (n sum g g' - (sum g)(sum g)'), times (n - b) / (n - 1) without."""
    size, point = 3, np.array([0.4, -0.9])
    problem = make(kind, 2, batch_size=size, replace=replace)
    for client, n in enumerate(SIZES):
        drawn = evaluate(problem, np.tile(point, (LANES, 1)), client, step=5)
        mine = naive_regression.rows_of(problem, client)
        each = np.array([naive_regression.slope(problem, row, point) for row in mine])
        total = each.sum(axis=0)
        cov = (n * each.T @ each - np.outer(total, total)) / size / problem.weights[client] ** 2
        if not replace:
            cov *= (n - size) / (n - 1)
        centred = drawn - problem.gradient(client, point)
        alarm.assert_normal(centred.mean(axis=0) / np.sqrt(np.diag(cov) / LANES), "mean")
        products = np.stack([centred[:, 0] ** 2, centred[:, 1] ** 2, centred[:, 0] * centred[:, 1]], axis=1)
        error = products.std(axis=0, ddof=1) / np.sqrt(LANES)
        expected = np.array([cov[0, 0], cov[1, 1], cov[0, 1]])
        alarm.assert_normal((products.mean(axis=0) - expected) / error, "covariance")


def test_batch_sum_is_labelled_and_smaller(alarm):
    point = np.array([0.4, -0.9])
    problem = make("logistic", 2, batch_size=3, grad_scale="batch_sum")
    drawn = evaluate(problem, np.tile(point, (LANES, 1)), 2, step=5)
    prior = point * problem.prior_pull[2]
    mean = (problem.gradient(2, point) - prior) * 3 / SIZES[2] + prior
    alarm.assert_normal((drawn.mean(axis=0) - mean) / (drawn.std(axis=0, ddof=1) / np.sqrt(LANES)), "mean")
    assert "batch_sum" in repr(problem)


@pytest.mark.parametrize("replace", [True, False])
def test_every_evaluation_draws_its_own_minibatch(replace, alarm):
    """A feature equal to the datum's number shows what was drawn, at x = 0 with targets -1."""
    n, size = 11, 4
    numbers = np.stack([2.0 ** np.arange(n), np.arange(n)], axis=1)
    problem = fs.LinearRegression(numbers, -np.ones(n), np.zeros(n, int), noise_std=1.0, prior_variance=1.0,
                                  batch_size=size, replace=replace, grad_scale="batch_sum")
    zero = np.zeros((LANES, 2))
    codes = {key: evaluate(problem, zero, 0, step=key[0], draw=key[1], first=key[2]).astype(int)
             for key in ((5, 0, 0), (6, 0, 0), (5, 1, 0), (5, 0, LANES))}
    base = codes[5, 0, 0]
    np.testing.assert_array_equal(base, evaluate(problem, zero, 0, step=5).astype(int))
    for key, other in codes.items():
        if key != (5, 0, 0):
            alarm.assert_pvalue(stats.pearsonr(base[:, 1], other[:, 1]).pvalue, f"{key}")
            assert (base[:, 0] == other[:, 0]).mean() < 0.1
    if not replace:  # distinct data: the powers of two add up to a number with `size` ones
        assert {int(code).bit_count() for code in base[:, 0]} == {size}
        members = (base[:, :1] >> np.arange(n)) & 1
        subsets, counts = np.unique(members, axis=0, return_counts=True)
        assert len(subsets) == 330  # 11 choose 4
        alarm.assert_pvalue(stats.chisquare(counts).pvalue, "subsets")
    else:
        single = fs.LinearRegression(numbers, -np.ones(n), np.zeros(n, int), noise_std=1.0,
                                     prior_variance=1.0, batch_size=1, grad_scale="batch_sum")
        drawn = evaluate(single, zero, 0, step=5)[:, 1].astype(int)
        alarm.assert_pvalue(stats.chisquare(np.bincount(drawn, minlength=n)).pvalue, "numbers")


def test_linear_regression_is_quadratic():
    problem = make("linear", weights=[0.2, 0.5, 0.3])
    quadratic, target = problem.as_quadratic(), problem.target()
    features, precision = problem.features, np.eye(3) / 5.0
    inverse = np.linalg.inv(features.T @ features / 0.49 + precision)
    np.testing.assert_allclose(target.cov, inverse, rtol=1e-12)
    np.testing.assert_allclose(target.mean, inverse @ features.T @ problem.targets / 0.49, rtol=1e-12)
    x = np.random.default_rng(3).standard_normal((5, 3))
    for client in range(3):
        np.testing.assert_allclose(quadratic.gradient(client, x), problem.gradient(client, x), rtol=1e-11)


@pytest.mark.parametrize("algorithm", [
    fs.FALD(0.004, 3, shared_noise=0.4), fs.FALD(0.004, 3, 0.5, participation=fs.Participation(2, True))])
def test_linear_replicas_follow_the_exact_law(algorithm, alarm):
    problem = make("linear", 2)
    law = theory.exact_law(problem.as_quadratic(), algorithm, 10, record=[2])
    run = fs.simulate(problem, algorithm, 10, 50_000, seed=21, record=[2])
    alarm.assert_normal(scores(run, law), "full gradients")


def test_minibatches_keep_the_mean_of_linear_replicas(alarm):
    """The law of the mean is that of full gradients; the spread is larger and not Gaussian."""
    problem, full = make("linear", 2, batch_size=3), make("linear", 2)
    algorithm = fs.FALD(0.002, 2)
    law = theory.exact_law(full.as_quadratic(), algorithm, 10, record=[2])
    run = fs.simulate(problem, algorithm, 10, 50_000, seed=22, record=[2])
    assert not run.is_gaussian
    spread = np.sqrt(np.diagonal(run.cov[1:], axis1=1, axis2=2) / run.n_replicas)
    alarm.assert_normal((run.mean[1:] - law.mean[1:]) / spread, "mean")
    assert (np.trace(run.cov[1:], axis1=1, axis2=2) > 1.05 * np.trace(law.cov[1:], axis1=1, axis2=2)).all()


def test_mode_laplace_and_curvature():
    problem = make("logistic", weights=[0.2, 0.5, 0.3])
    mode = problem.mode()
    found = optimize.minimize(lambda x: problem.potential(None, x), np.ones(3), method="Nelder-Mead",
                              options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}).x
    np.testing.assert_allclose(mode, found, atol=1e-6)
    assert np.abs(problem.gradient(None, mode)).max() < 1e-13
    hessian = optimize.approx_fprime(mode, lambda x: problem.gradient(None, x), 1e-6)
    np.testing.assert_allclose(np.linalg.inv(problem.laplace(2.0).cov), hessian / 2.0, rtol=1e-5)
    separable = fs.LogisticRegression([[1e3], [-1e3]], [1, 0], [0, 0], prior_variance=1e6)
    assert abs(float(separable.gradient(None, separable.mode())[0])) < 1e-10


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_curvature_bounds_hold(kind):
    """Hessians by differences, at many points, lie between the bounds; those of DE appendix E."""
    problem = make(kind, weights=[0.2, 0.5, 0.3])
    points = np.random.default_rng(4).standard_normal((20, 3)) * [[3.0]]

    def hessians(client):
        result = [optimize.approx_fprime(x, lambda y: problem.gradient(client, y), 1e-6) for x in points]
        return np.linalg.eigvalsh((np.array(result) + np.swapaxes(result, 1, 2)) / 2)

    values = np.array([hessians(client) for client in range(3)])
    scaled = values * problem.weights[:, None, None]
    for convention, spectrum in (("federated", values), ("components", scaled), ("global", hessians(None))):
        low, high = problem.curvature_bounds(convention)
        assert low <= spectrum.min() * (1 + 1e-5) and spectrum.max() <= high * (1 + 1e-5)
        if kind == "linear":
            np.testing.assert_allclose([low, high], [spectrum.min(), spectrum.max()], rtol=1e-5)
        else:
            assert spectrum.max() > 0.3 * high  # not idle
    assert (problem.strong_convexity, problem.smoothness) == problem.curvature_bounds("federated")
    grams = [problem.features[problem.clients == c] for c in range(3)]
    largest = max(np.linalg.norm(rows, 2) ** 2 for rows in grams)
    factor = 0.25 if kind == "logistic" else 1 / 0.49
    expected = factor * largest + 1 / 15
    np.testing.assert_allclose(problem.curvature_bounds("components")[1], expected, rtol=1e-12)


def test_stability_is_judged():
    linear = make("linear", weights=[0.2, 0.5, 0.3])
    for algorithm in (fs.FALD(0.01, 3), fs.FAHMC(0.02, 2, 2, debias="stale"), fs.DESGLD(0.01, EYE3)):
        found, expected = algorithm.stability(linear), algorithm.stability(linear.as_quadratic())
        assert (found.radius, found.max_step_size) == (expected.radius, expected.max_step_size)
    logistic = make("logistic")
    limit = fs.FALD(0.01, 3).stability(logistic).max_step_size
    np.testing.assert_allclose(limit, 2.0 / logistic.smoothness, rtol=1e-9)
    fs.validate(logistic, fs.FALD(0.99 * limit, 3))
    with pytest.raises(fs.UnstableStepSize, match="step_size"):
        fs.validate(logistic, fs.FALD(1.01 * limit, 3))
    summed = make("logistic", batch_size=2, grad_scale="batch_sum")
    assert fs.FALD(0.01).stability(summed).max_step_size > 1.2 * limit
    for algorithm in (fs.FAHMC(0.05, 3, debias="stale"), fs.DESGHMC(0.05, 10.0, EYE3), fs.DESGLD(0.01, EYE3)):
        assert np.isfinite(algorithm.stability(logistic).max_step_size)
    assert (curvatures(logistic.curvature_problem())[0] == logistic.smoothness).all()


def test_below_the_limit_chains_come_together():
    """What the logistic limit promises: with the same noise, chains never part, from wherever they start."""
    problem = make("logistic", 2)
    algorithm = fs.FALD(0.98 * 2.0 / problem.smoothness, 3, participation=fs.Participation(2, True))
    runs = [fs.simulate(problem, algorithm, 3 * k, 64, seed=5, start=start, keep_final=True)
            for k in (1, 4) for start in ([30.0, -20.0], [-1.0, 2.0])]
    gaps = [np.linalg.norm(a.final - b.final, axis=1) for a, b in (runs[:2], runs[2:])]
    assert (gaps[0] < np.hypot(31.0, 22.0)).all() and (gaps[1] < gaps[0]).all()


def test_no_target_but_everything_else():
    problem = make("logistic")
    with pytest.raises(ValueError, match="no closed form"):
        problem.target()
    run = fs.simulate(problem, fs.FALD(0.01), 5, 128, seed=1)
    assert run.target is None and not run.is_gaussian
    assert run.w2(problem.laplace())[-1] > 0.0
    with pytest.raises(ValueError, match="target=None"):
        run.w2()
    with pytest.raises(theory.NoExactLaw):
        theory.exact_law(problem, fs.FALD(0.01), 5)


def test_same_bits_for_every_block_size():
    problem = make("logistic", 3, batch_size=4, replace=False)
    algorithm = fs.FALD(0.01, 2, participation=fs.Participation(2, True))
    runs = [fs.simulate(problem, algorithm, 4, 300, seed=2, keep_final=True, block_size=size, threads=threads)
            for size, threads in ((64, 1), (128, 2), (320, 1))]
    assert all(run.final.tobytes() == runs[0].final.tobytes() for run in runs)
    path = fs.sample_path(problem, algorithm, 4, seed=2, n_chains=3)
    assert path[:, -1].tobytes() == runs[0].final[:3].tobytes()


def test_w1_of_samples():
    rng = np.random.default_rng(6)
    one, two = rng.standard_normal((500, 3)), 1.5 * rng.standard_normal((500, 3)) + 0.3
    expected = np.mean([stats.wasserstein_distance(one[:, i], two[:, i]) for i in range(3)])
    np.testing.assert_allclose(w1_samples(one, two), expected, rtol=1e-12)
    np.testing.assert_allclose(w1_samples(one, np.repeat(two, 2, axis=0)), expected, rtol=1e-12)
    assert w1_samples(one, one[::-1]) == 0.0
    for first, second, name in ((one, two[:, :2], "second"), (one[0], two, "first"),
                                (one, two * np.nan, "second")):
        with pytest.raises(ValueError, match=name):
            w1_samples(first, second)


def test_the_reference_samples_a_gaussian(alarm):
    law = fs.Gaussian([1.0, -2.0], [[2.0, 0.9], [0.9, 0.5]])
    precision = np.linalg.inv(law.cov)
    made = metropolis_hmc(lambda x: 0.5 * np.einsum("ri,ij,rj->r", x - law.mean, precision, x - law.mean),
                          lambda x: (x - law.mean) @ precision, law.sample(400, 1), n_draws=100, seed=2)
    assert 0.7 < made.acceptance < 1.0
    mean, error = made.mean()
    alarm.assert_student((mean - law.mean) / error, 399, "mean")
    square, error = made.mean(lambda x: np.stack([(x[..., 0] - 1.0) ** 2, (x[..., 1] + 2.0) ** 2,
                                                  (x[..., 0] - 1.0) * (x[..., 1] + 2.0)], axis=-1))
    alarm.assert_student((square - [2.0, 0.5, 0.9]) / error, 399, "covariance")


def quadrature(problem):
    """Normalised density of a one-dimensional posterior, and integrals of functions under it."""
    mode, width = problem.mode()[0], np.sqrt(problem.laplace().cov[0, 0])
    limits = (mode - 15 * width, mode + 15 * width)
    floor = float(problem.potential(None, problem.mode()))

    def integral(function):
        return integrate.quad(lambda x: function(x) * np.exp(floor - problem.potential(None, np.array([x]))),
                              *limits, points=[mode], epsabs=1e-13, limit=200)[0]

    return lambda function: integral(function) / integral(lambda x: 1.0)


def test_the_reference_samples_a_posterior(alarm):
    """Skewed posterior of five data, against quadrature: two moments and the distribution function."""
    problem = fs.LogisticRegression([[1.0], [2.0], [0.5], [3.0], [1.5]], [1, 1, 1, 1, 0], np.zeros(5, int),
                                    prior_variance=9.0)
    expect = quadrature(problem)
    assert abs(expect(lambda x: x) - problem.mode()[0]) > 0.1  # so that the Laplace law would fail
    made = posterior_reference(problem, n_chains=400, n_draws=100, seed=3)
    for function in (lambda x: x, lambda x: x**2, lambda x: np.tanh(x - 1.0)):
        mean, error = made.mean(function)
        alarm.assert_student((mean - expect(function)) / error, 399, "posterior")
    laplace = problem.laplace().sample(400, 1)
    alarm.must_fail((laplace.mean() - expect(lambda x: x)) / (laplace.std() / 20.0) * 10.0, "Laplace law")


@pytest.mark.parametrize("name", ["FA-LD", "FA-HMC"])
def test_samplers_approach_the_posterior(name, alarm):
    """Against quadrature, in units of the posterior's sd: bias below 2 percent of it at a small step,
    and seen beyond that allowance at a large one. Each client holds the data of one label."""
    labels = np.array([1, 1, 0] * 4)
    problem = fs.LogisticRegression(np.linspace(0.5, 2.5, 12)[:, None], labels, labels, prior_variance=9.0)
    expect, unit = quadrature(problem), 1.0 / np.sqrt(problem.smoothness)
    mean = expect(lambda x: x)
    sd = np.sqrt(expect(lambda x: (x - mean) ** 2))
    if name == "FA-LD":
        small, large = (fs.FALD(0.02 * unit**2), 1500), (fs.FALD(0.9 * unit**2, 4), 100)
    else:
        small, large = (fs.FAHMC(0.05 * unit, 4), 400), (fs.FAHMC(0.6 * unit, 3, 4), 50)

    def deviations(algorithm, rounds):
        run = fs.simulate(problem, algorithm, rounds, 8192, seed=9, start=problem.laplace(), record=())
        errors = np.array([1.0 / np.sqrt(8192), 1.0 / np.sqrt(2 * 8192)]) * 1.5  # kurtosis of a skewed law
        gaps = np.array([(run.mean[-1, 0] - mean) / sd, np.sqrt(run.cov[-1, 0, 0]) / sd - 1.0])
        return np.maximum(np.abs(gaps) - 0.02, 0.0) / errors

    alarm.assert_normal(deviations(*small), name)
    alarm.must_fail(deviations(*large), name)


def test_long_chains_have_a_small_marginal_error():
    """One chain of FA-HMC, ergodic, against the reference; the error of a shifted sample is its shift."""
    problem = make("logistic", 3)
    reference = posterior_reference(problem, n_chains=200, n_draws=100, seed=4).pooled()
    sd = reference.std(axis=0)
    algorithm = fs.FAHMC(0.15 / np.sqrt(problem.smoothness), 5)
    chain = fs.sample_path(problem, algorithm, 6000, seed=5, n_chains=4, start=problem.mode()).reshape(-1, 3)
    error = w1_samples(chain / sd, reference / sd)
    assert error < 0.1
    assert abs(w1_samples(reference / sd + 0.5, reference / sd) - 0.5) < 1e-9


GOOD = {"features": np.arange(12.0).reshape(6, 2), "targets": np.arange(6.0), "clients": [0, 0, 0, 1, 1, 2]}
BAD_DATA = [
    ({"features": np.arange(6.0)}, r"features has shape \(6,\)"),
    ({"features": np.full((6, 2), np.nan)}, r"features\[0, 0\]=nan must be finite"),
    ({"features": np.zeros((0, 2))}, r"features has shape \(0, 2\)"),
    ({"features": [["a", "b"]] * 6}, "features must be an array of real numbers"),
    ({"clients": [0, 0, 0, 1, 1]}, r"clients has shape \(5,\); it must be \(6,\)"),
    ({"clients": [0.0, 0, 0, 1, 1, 2]}, "clients must be an array of integers"),
    ({"clients": [0, 0, -1, 1, 1, 2]}, r"clients\[2\]=-1 must be at least 0"),
    ({"clients": [0, 0, 0, 2, 2, 2]}, "client 1 has no data"),
    ({"clients": [1, 1, 1, 1, 1, 1]}, "client 0 has no data"),
    ({"clients": [0, 0, 0, 0, 0, 10**18]}, "client 1 has no data"),
    ({"prior_variance": 0.0}, "prior_variance=0.0 must be greater than 0"),
    ({"prior_variance": np.inf}, "prior_variance=inf must be finite"),
    ({"weights": [0.5, 0.5]}, r"weights has shape \(2,\); it must be \(3,\)"),
    ({"weights": [0.5, 0.6, 0.1]}, "weights sum to 1.2"),
    ({"weights": [0.5, 0.5, 0.0]}, r"weights\[2\]=0 must be greater than 0"),
    ({"batch_size": 2}, "batch_size=2 must be at most 1, the number of data of client 2"),
    ({"batch_size": 2, "replace": False}, "batch_size=2 must be at most 1"),
    ({"batch_size": 0}, "batch_size=0 must be at least 1"),
    ({"batch_size": 1.0}, "batch_size=1.0 must be an integer"),
    ({"batch_size": 1, "replace": 1}, "replace=1 must be one of True, False"),
    ({"batch_size": 1, "grad_scale": "sum"}, "grad_scale='sum' must be one of"),
    ({"grad_scale": "batch_sum"}, "grad_scale='batch_sum' must be 'unbiased' when batch_size=None"),
]


@pytest.mark.parametrize(("change", "message"), BAD_DATA)
def test_bad_data_are_refused(change, message):
    given = {**GOOD, "prior_variance": 1.0, **change}
    with pytest.raises(ValueError, match=message):
        fs.LinearRegression(noise_std=1.0, **given)
    labels = (np.asarray(given.pop("targets")) > 2).astype(int)
    with pytest.raises(ValueError, match=message):
        fs.LogisticRegression(labels=labels, **given)


@pytest.mark.parametrize(("change", "message"), [
    ({"targets": np.zeros(5)}, r"targets has shape \(5,\); it must be \(6,\)"),
    ({"targets": np.full(6, np.inf)}, r"targets\[0\]=inf must be finite"),
    ({"noise_std": 0.0}, "noise_std=0.0 must be greater than 0"), ({"noise_std": "1"}, "noise_std='1'")])
def test_bad_linear_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        fs.LinearRegression(**({**GOOD, "noise_std": 1.0, "prior_variance": 1.0} | change))


@pytest.mark.parametrize(("change", "message"), [
    ({"labels": [0, 1, 2, 0, 1, 1]}, r"labels\[2\]=2 must be 0 or 1"),
    ({"labels": [-1, 1, 1, -1, 1, 1]}, r"labels\[0\]=-1 must be 0 or 1"),
    ({"labels": [0.5] * 6}, r"labels\[0\]=0.5 must be 0 or 1"),
    ({"labels": [0, 1, np.nan, 0, 1, 1]}, r"labels\[2\]=nan must be finite"),
    ({"labels": ["no"] * 6}, "labels must be an array of real numbers"),
    ({"gradient_noise": -1.0}, "gradient_noise=-1.0 must be at least 0")])
def test_bad_logistic_input_is_refused(change, message):
    given = {"features": GOOD["features"], "labels": [0, 1, 1, 0, 1, 1], "clients": GOOD["clients"]}
    with pytest.raises(ValueError, match=message):
        fs.LogisticRegression(**(given | {"prior_variance": 1.0} | change))


def test_truth_values_are_labels():
    given = {"features": GOOD["features"], "clients": GOOD["clients"], "prior_variance": 1.0}
    true = fs.LogisticRegression(labels=[True, False, True, True, False, True], **given)
    assert true.labels.tolist() == [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
