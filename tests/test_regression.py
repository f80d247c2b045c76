"""Linear and logistic regression: gradients, minibatches, laws, and input that must be refused."""

import naive_regression
import numpy as np
import pytest
from examples_of import posterior
from scipy import optimize, stats
from scipy.special import expit
from scores import scores

import fedsim as fs
import theory
from fedsim.problems.gradients import exact_gradient, stochastic_gradient
from fedsim.problems.regression import gradients
from fedsim.random.streams import lane_set
from fedsim.vector.compile import compiled

SEED = 0x9E3779B97F4A7C15
SIZES = (9, 4, 13)


@compiled
def _exact(problem, client, x, scratch, out):
    exact_gradient(problem, client, x, scratch, out)


@compiled
def _stochastic(problem, lanes, client, step, draw, x, scratch, out):
    stochastic_gradient(problem, lanes, client, step, draw, x, scratch, out)


def evaluate(problem, x, client, *, step=None, draw=0, first=0):
    """Compiled gradients (B, d) at points `x` (B, d): exact ones, or those of a step."""
    rows = np.ascontiguousarray(x.T)
    out, scratch = np.empty_like(rows), problem._scratch(*rows.shape, np.float64)
    if step is None:
        _exact(problem._arrays(), client, rows, scratch, out)
    else:
        lanes = lane_set(SEED, first, len(x))
        assert len(lanes.replicas) == len(x)  # minibatches need whole tiles
        _stochastic(problem._arrays(), lanes, client, step, draw, rows, scratch, out)
    return out.T


@compiled
def _sigmoid(z):
    gradients.sigmoid_row(z)


def test_sigmoid_is_expit():
    rng = np.random.default_rng(1)
    z = np.concatenate([np.linspace(-708.0, 708.0, 100_001), rng.standard_normal(100_000) * 5, [0.0, -0.0],
                        10.0 ** np.arange(-300, 3), -(10.0 ** np.arange(-300, 3))])
    found = z.copy()
    _sigmoid(found)
    assert (np.abs(found - expit(z)) <= 1.5e-15 * expit(z)).all()
    far = np.array([709.0, 1e4, 1e300, np.inf, -709.0, -1e4, -1e300, -np.inf, np.nan])
    found = far.copy()
    _sigmoid(found)
    np.testing.assert_allclose(found[:4], 1.0, rtol=0, atol=0)
    assert (np.abs(found[4:8]) < 1e-300).all() and np.isnan(found[8])


@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("dim", [1, 2, 5, 12])
def test_compiled_gradients_are_those_of_numpy(kind, dim):
    """For a client, and for a client per lane; sizes below, at and above a group of eight rows."""
    weights = [0.2, 0.5, 0.3]
    problem = posterior(kind, dim, (9, 4, 16), weights=weights)
    minibatches = posterior(kind, dim, (9, 4, 16), weights=weights, batch_size=3)
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
    problem = posterior(kind, weights=[0.2, 0.5, 0.3])
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
        problem = posterior(kind)

        def log_density(point, problem=problem, kind=kind):
            score = problem.features @ point[0]
            data = (stats.norm.logpdf(problem.targets, score, 0.7) if kind == "linear"
                    else stats.bernoulli.logpmf(problem.labels, expit(score)))
            return data.sum() + stats.norm.logpdf(point, 0.0, np.sqrt(5.0)).sum()

        gap = problem.potential(None, x) - problem.potential(None, origin)
        np.testing.assert_allclose(gap, log_density(origin) - log_density(x), rtol=1e-12)


def test_decentralized_and_federated_agree_for_one_client():
    problem = posterior("logistic", 3, (20,), batch_size=6)
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
    problem = posterior(kind, 2, batch_size=size, replace=replace)
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
    problem = posterior("logistic", 2, batch_size=3, grad_scale="batch_sum")
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
    problem = posterior("linear", weights=[0.2, 0.5, 0.3])
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
    problem = posterior("linear", 2)
    law = theory.exact_law(problem.as_quadratic(), algorithm, 10, record=[2])
    run = fs.simulate(problem, algorithm, 10, 50_000, seed=21, record=[2])
    alarm.assert_normal(scores(run, law), "full gradients")


def test_minibatches_keep_the_mean_of_linear_replicas(alarm):
    """The law of the mean is that of full gradients; the spread is larger and not Gaussian."""
    problem, full = posterior("linear", 2, batch_size=3), posterior("linear", 2)
    algorithm = fs.FALD(0.002, 2)
    law = theory.exact_law(full.as_quadratic(), algorithm, 10, record=[2])
    run = fs.simulate(problem, algorithm, 10, 50_000, seed=22, record=[2])
    assert not run.is_gaussian
    spread = np.sqrt(np.diagonal(run.cov[1:], axis1=1, axis2=2) / run.n_replicas)
    alarm.assert_normal((run.mean[1:] - law.mean[1:]) / spread, "mean")
    assert (np.trace(run.cov[1:], axis1=1, axis2=2) > 1.05 * np.trace(law.cov[1:], axis1=1, axis2=2)).all()


def test_same_bits_for_every_block_size():
    problem = posterior("logistic", 3, batch_size=4, replace=False)
    algorithm = fs.FALD(0.01, 2, participation=fs.Participation(2, True))
    runs = [fs.simulate(problem, algorithm, 4, 300, seed=2, keep_final=True, block_size=size, threads=threads)
            for size, threads in ((64, 1), (128, 2), (320, 1))]
    assert all(run.final.tobytes() == runs[0].final.tobytes() for run in runs)
    path = fs.sample_path(problem, algorithm, 4, seed=2, n_chains=3)
    assert path[:, -1].tobytes() == runs[0].final[:3].tobytes()


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
    ({"batch_size": 1.5}, "batch_size=1.5 must be an integer"),
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


HUGE = {"features": {"features": np.array(GOOD["features"]) * 1e200},
        "one feature": {"features": [[1e308, 0.0], *np.array(GOOD["features"])[1:]]},
        "weights": {"weights": [1e-160, 0.5, 0.5]},
        "prior_variance": {"prior_variance": 1e-200}}
LINEAR = {"targets": {"targets": np.array(GOOD["targets"]) * 1e307}, "long noise": {"noise_std": 1e200},
          "short noise": {"noise_std": 1e-200}}


@pytest.mark.parametrize("name", [*HUGE, *LINEAR])
def test_what_overflows_in_a_curvature_is_refused_by_name(name):
    """Each entry has a float64; the sums of their squares, or the inverse, have none. No warning either."""
    changed = (HUGE | LINEAR)[name]
    word = next(iter(changed)) if name != "weights" else "features"
    given = GOOD | {"noise_std": 1.0, "prior_variance": 1.0} | changed
    with np.errstate(all="raise"), pytest.raises(ValueError, match=rf"^{word}(\[.*\])?=.*overflow"):
        fs.LinearRegression(**given)
    if name in HUGE:
        given = {key: value for key, value in given.items() if key not in ("noise_std", "targets")}
        with np.errstate(all="raise"), pytest.raises(ValueError, match=rf"^{word}(\[.*\])?=.*overflow"):
            fs.LogisticRegression(labels=[0, 1, 1, 0, 1, 1], **given)


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_what_does_not_overflow_is_worked_out_without_a_warning(size):
    problem = fs.LinearRegression(np.array(GOOD["features"]) * size, np.array(GOOD["targets"]) * size,
                                  GOOD["clients"], noise_std=size, prior_variance=1.0)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        fs.validate(problem, fs.FALD(1e-3, 2))
        assert np.isfinite(problem.target().cov).all()
