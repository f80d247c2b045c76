"""Softmax regression: gradients, minibatches, curvature, mode; every algorithm against its slow twin."""

import naive_regression
import numpy as np
import pytest
from algorithms import ROWS
from scipy import optimize
from test_naive_parity import assert_parity
from test_regression import evaluate

import fedsim as fs

SIZES = (9, 70, 13)
WEIGHTS = [0.2, 0.5, 0.3]


def problem_of(n_features=3, n_classes=4, sizes=SIZES, seed=0, scale=1.0, **options):
    """Clients that own different, interleaved numbers of rows; every class has rows."""
    rng = np.random.default_rng([seed, n_features, n_classes])
    clients = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    features = scale * rng.standard_normal((len(clients), n_features))
    labels = rng.permutation(np.arange(len(clients)) % n_classes)
    return fs.SoftmaxRegression(features, labels, clients, **({"prior_variance": 3.0} | options))


SHAPES = [(1, 2), (3, 4), (8, 2), (9, 11), (130, 3)]


@pytest.mark.parametrize(("n_features", "n_classes"), SHAPES)
def test_compiled_gradients_are_those_of_numpy(n_features, n_classes):
    """Below, at and above eight features and rows, a strip and a block; for a client, and one per lane."""
    problem = problem_of(n_features, n_classes, weights=WEIGHTS)
    minibatches = problem_of(n_features, n_classes, weights=WEIGHTS, batch_size=3)
    x = np.random.default_rng(2).standard_normal((32, problem.dim))
    numpy = np.stack([problem.gradient(c, x) for c in range(3)])
    scale, each = np.abs(numpy).max(), np.arange(32) % 3
    for made in (problem, minibatches):
        for c in range(3):
            np.testing.assert_allclose(evaluate(made, x, c), numpy[c], rtol=0, atol=1e-13 * scale)
        mixed = evaluate(made, x, each)
        np.testing.assert_allclose(mixed, numpy[each, np.arange(32)], rtol=0, atol=1e-13 * scale)
    together = problem.gradient(None, x)
    np.testing.assert_allclose(np.tensordot(WEIGHTS, numpy, 1), together, atol=1e-12 * scale)


@pytest.mark.parametrize("size", [1.0, 700.0])
def test_gradients_are_derivatives_of_potentials(size):
    """Also where scores are several hundred, and exponentials of them would overflow."""
    problem = problem_of(weights=WEIGHTS)
    x = np.random.default_rng(1).standard_normal(problem.dim)
    x *= size / np.abs(problem.features @ x.reshape(4, 3).T).max()
    for client in (0, 1, 2, None):
        found = problem.gradient(client, x)
        rounding = 1e-16 * float(problem.potential(client, x)) / 1e-5
        difference = optimize.approx_fprime(x, lambda y, c=client: float(problem.potential(c, y)), 1e-5)
        central = 0.5 * (difference - optimize.approx_fprime(
            -x, lambda y, c=client: float(problem.potential(c, -y)), 1e-5))
        np.testing.assert_allclose(found, central, rtol=1e-6, atol=1e-6 * np.abs(found).max() + 10 * rounding)
        weight = 1.0 if client is None else WEIGHTS[client] * 3
        sums, of_prior = found.reshape(4, 3).sum(axis=0), x.reshape(4, 3).sum(axis=0) / 3.0 / weight
        np.testing.assert_allclose(sums, of_prior, atol=1e-11 * np.abs(found).max())
    at = np.tile(x, (16, 1))
    np.testing.assert_allclose(evaluate(problem, at, 1)[0], problem.gradient(1, x), rtol=1e-11, atol=1e-11)


def test_two_classes_are_logistic_regression():
    problem = problem_of(3, 2, weights=WEIGHTS)
    binary = fs.LogisticRegression(problem.features, problem.labels, problem.clients, prior_variance=6.0,
                                   weights=WEIGHTS)
    first, second = problem.mode().reshape(2, 3)
    np.testing.assert_allclose(second - first, binary.mode(), rtol=1e-8)
    np.testing.assert_allclose(problem.probabilities(problem.mode(), problem.features)[:, 1],
                               1.0 / (1.0 + np.exp(-problem.features @ binary.mode())), rtol=1e-8)
    x = np.random.default_rng(3).standard_normal(6)
    gap = x[3:] - x[:3]  # the mean of the two vectors has a normal prior of its own
    mean_part = ((x[3:] + x[:3]) ** 2).sum() / (4 * 3.0)
    expected = binary.potential(None, gap) + mean_part
    np.testing.assert_allclose(problem.potential(None, x), expected, rtol=1e-13)


TWINS = {
    "fa_ld": (fs.FALD(0.05, 3, 0.8, 0.3), {"batch_size": 5}),
    "fa_ld, all data": (fs.FALD(0.02, 2), {}),
    "fa_ld, some clients": (fs.FALD(0.05, 2, participation=fs.Participation(2, True)), {"batch_size": 9}),
    "fa_ld, without replacement": (fs.FALD(0.05, 2), {"batch_size": 7, "replace": False}),
    "fa_ld, noise": (fs.FALD(0.05, 2), {"batch_size": 6, "gradient_noise": 0.5, "grad_scale": "batch_sum"}),
    "fa_hmc": (fs.FAHMC(0.05, 3, 2, 0.4), {"batch_size": 5}),
    "fa_hmc, fresh": (fs.FAHMC(0.05, 2, 2, debias="fresh"), {}),
    "de_sgld": (fs.DESGLD(0.02, fs.network.ring(3)), {"batch_size": 4}),
    "de_sghmc": (fs.DESGHMC(0.05, 2.0, fs.network.ring(3)), {"batch_size": 4}),
}


@pytest.mark.parametrize("name", TWINS)
def test_every_algorithm_is_its_slow_twin(name):
    algorithm, options = TWINS[name]
    problem = problem_of(weights=WEIGHTS, **options)
    assert_parity(ROWS[type(algorithm)], problem, algorithm, None, 2, replicas=(0, 3))


def test_stale_gradients_of_the_pool_are_their_slow_twin():
    problem = problem_of(batch_size=5)
    assert_parity(ROWS[fs.StaleSGLD], problem, fs.StaleSGLD(0.01, 2), None, 4, replicas=(0, 3))


def test_bits_do_not_depend_on_chains_threads_or_padding():
    """One chain fills a tile sixteen times; its gradient is evaluated once."""
    for options in ({}, {"batch_size": 5}):
        problem, algorithm = problem_of(**options), fs.FALD(0.01, 2, 1.0, 0.5)
        full = fs.sample_path(problem, algorithm, 3, seed=5, n_chains=64)
        for n_chains, threads in ((1, 1), (2, 2), (5, 1), (17, 2)):
            path = fs.sample_path(problem, algorithm, 3, seed=5, n_chains=n_chains, threads=threads)
            assert path.tobytes() == full[:n_chains].tobytes()


def test_bytes_are_their_numbers():
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 256, (60, 5)).astype(np.uint8)
    given = {"labels": np.arange(60) % 3, "clients": np.arange(60) % 2, "prior_variance": 1.0,
             "batch_size": 8}
    small = fs.SoftmaxRegression(rows, feature_scale=1 / 256, **given)  # a power of two: the same bits
    large = fs.SoftmaxRegression(rows / 256, **given)
    assert small.features.dtype == np.uint8 and small._arrays().inner.data.features.dtype == np.uint8
    one, other = (fs.sample_path(problem, fs.FALD(0.01, 2), 3, seed=1) for problem in (small, large))
    np.testing.assert_allclose(one, other, rtol=1e-13)
    x = rng.standard_normal(15)
    for name in ("potential", "gradient"):
        np.testing.assert_allclose(getattr(small, name)(None, x), getattr(large, name)(None, x), rtol=1e-13)
    assert small.smoothness == pytest.approx(large.smoothness, rel=1e-12)
    np.testing.assert_allclose(small.probabilities(x, rows), large.probabilities(x, rows / 256), rtol=1e-13)


LANES = 4000


@pytest.mark.parametrize("replace", [True, False])
def test_minibatch_gradients_have_their_mean_and_covariance(replace, alarm):
    size, problem = 3, problem_of(2, 3, SIZES, batch_size=3, replace=replace)
    point = np.random.default_rng(1).standard_normal(6)
    for client, n in enumerate(SIZES):
        drawn = evaluate(problem, np.tile(point, (LANES, 1)), client, step=5)
        each = np.array([naive_regression.slope(problem, row, point)
                         for row in naive_regression.rows_of(problem, client)])
        total = each.sum(axis=0)
        variances = (n * (each**2).sum(axis=0) - total**2) / size / problem.weights[client] ** 2
        if not replace:
            variances *= (n - size) / (n - 1)
        centred = drawn - problem.gradient(client, point)
        alarm.assert_normal(centred.mean(axis=0) / np.sqrt(variances / LANES), "mean")
        squares = centred**2
        error = squares.std(axis=0, ddof=1) / np.sqrt(LANES)
        alarm.assert_normal((squares.mean(axis=0) - variances) / error, "variance")
        alarm.must_fail((squares.mean(axis=0) * (n / size) ** 2 - variances) / error)  # a wrong scale


def test_a_minibatch_of_all_data_is_the_gradient():
    problem, whole = problem_of(), problem_of(sizes=(9, 9, 9))
    every = problem_of(sizes=(9, 9, 9), batch_size=9, replace=False)
    x = np.random.default_rng(2).standard_normal((16, problem.dim))
    np.testing.assert_allclose(evaluate(every, x, 1, step=0), whole.gradient(1, x), rtol=1e-12, atol=1e-12)


def test_curvature():
    """Hessians by differences, against the matrix, its products, and the bounds."""
    problem = problem_of(weights=WEIGHTS)
    rng = np.random.default_rng(4)
    for x in 2.0 * rng.standard_normal((5, problem.dim)):
        by_differences = optimize.approx_fprime(x, lambda y: problem.gradient(None, y), 1e-7)
        np.testing.assert_allclose(problem.hessian(x), by_differences, atol=1e-4)
        along = rng.standard_normal(problem.dim)
        np.testing.assert_allclose(problem.hessian_times(x, along), problem.hessian(x) @ along, rtol=1e-11)
        for client in range(3):
            own = optimize.approx_fprime(x, lambda y, c=client: problem.gradient(c, y), 1e-6)
            values, weight = np.linalg.eigvalsh(0.5 * (own + own.T)), WEIGHTS[client]
            assert 1 / (9 * weight) * (1 - 1e-4) <= values.min() and values.max() <= problem.smoothness
    low, high = problem.curvature_bounds("global")
    gram = problem.features.T @ problem.features
    top = np.linalg.eigvalsh(problem.hessian(np.zeros(problem.dim)))[-1]
    np.testing.assert_allclose(top, np.linalg.eigvalsh(gram)[-1] / 4 + 1 / 3, rtol=1e-12)
    assert (low, high) == pytest.approx((1 / 3, np.linalg.eigvalsh(gram)[-1] / 2 + 1 / 3))
    two = problem_of(3, 2)
    _, bound = two.curvature_bounds("global")
    attained = np.linalg.eigvalsh(two.hessian(np.zeros(6)))[-1]
    np.testing.assert_allclose(attained, bound, rtol=1e-12)


def test_mode_and_laplace():
    problem = problem_of(weights=WEIGHTS)
    mode = problem.mode()
    assert np.abs(problem.gradient(None, mode)).max() < 1e-12
    assert np.abs(mode.reshape(4, 3).sum(axis=0)).max() < 1e-12  # only the prior acts along it
    precision = 0.5 * problem.hessian(mode)
    np.testing.assert_allclose(problem.laplace(2.0).cov @ precision, np.eye(problem.dim), atol=1e-11)
    with pytest.raises(ValueError, match="no closed form"):
        problem.target()
    cold = fs.sample_path(problem_of(), fs.FALD(0.002, 1, 1e-30), 40, seed=1)[0, -1]
    assert np.abs(cold.reshape(4, 3).sum(axis=0)).max() < 1e-10


def test_large_problems_make_no_matrices():
    rows = np.eye(700)
    problem = fs.SoftmaxRegression(rows, np.arange(700) % 3, np.arange(700) % 2, prior_variance=1.0)
    for question in (problem.laplace, lambda: problem.hessian(np.zeros(2100))):
        with pytest.raises(ValueError, match=r"Hessian has 0\.035 GB; dimensions must be at most 2000"):
            question()
    assert np.abs(problem.gradient(None, problem.mode())).max() < 1e-12


GOOD = {"features": np.arange(12.0).reshape(6, 2), "labels": [0, 1, 2, 0, 1, 2],
        "clients": [0, 0, 1, 1, 1, 0], "prior_variance": 1.0}


@pytest.mark.parametrize(("change", "message"), [
    ({"labels": [0, 1, 2, 0, 1, -1]}, r"labels\[5\]=-1 must be at least 0"),
    ({"labels": [0, 1, 2, 0, 1, 3], "n_classes": 3}, r"labels\[5\]=3 must be less than n_classes=3"),
    ({"labels": [0, 1, 3, 0, 1, 3]}, r"labels: class 2 has no rows; .* \(here n_classes=4\)"),
    ({"labels": [0, 1, 2, 0, 1, 2], "n_classes": 10}, "labels: class 3 has no rows"),
    ({"labels": [0] * 6}, "labels: class 1 has no rows"),
    ({"labels": [0, 1, 2**62, 0, 1, 2]}, "labels: class 3 has no rows"),
    ({"labels": [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]}, "labels has dtype float64 .* integers 0, ..., C-1"),
    ({"labels": [[0, 1, 2, 0, 1, 2]]}, r"labels has dtype int64 and shape \(1, 6\)"),
    ({"labels": np.ma.array([0, 1, 2, 0, 1, 2], mask=[1, 0, 0, 0, 0, 0])}, "labels"),
    ({"labels": [0, 1, 2]}, r"labels has shape \(3,\); it must be \(6,\)"),
    ({"n_classes": 1}, "n_classes=1 must be at least 2"),
    ({"n_classes": 3.5}, "n_classes=3.5 must be an integer"),
    ({"feature_scale": 0.0}, "feature_scale=0.0 must be greater than 0"),
    ({"batch_size": 4}, "batch_size=4 must be at most 3, the number of data of client 0"),
    ({"features": np.zeros((6, 2, 1), np.uint8)}, r"features has shape \(6, 2, 1\); it must have 2 axes"),
    ({"features": np.full((6, 2), np.nan)}, r"features\[0, 0\]=nan must be finite"),
    ({"features": np.full((6, 2), 1e100)}, r"features\[0, 0\]=1e\+100 .* curvature is beyond"),
    ({"prior_variance": 0.0}, "prior_variance=0.0 must be greater than 0"),
    ({"gradient_noise": -1.0}, "gradient_noise=-1.0 must be at least 0")])
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        fs.SoftmaxRegression(**(GOOD | change))


def test_bad_points_are_refused():
    problem = fs.SoftmaxRegression(**GOOD)
    with pytest.raises(ValueError, match=r"x has shape \(5,\); its last axis must have the dimension 6"):
        problem.gradient(0, np.zeros(5))
    with pytest.raises(ValueError, match=r"features has shape \(1, 3\); it must be \(1, 2\)"):
        problem.probabilities(np.zeros(6), [[1.0, 2.0, 3.0]])
    assert problem.pooled().n_clients == 1 and problem.pooled().n_classes == 3


def a_line(n_classes, separable, variance):
    """A problem on a line with an intercept; one whose labels the feature separates, or not."""
    x = np.linspace(-1.0, 1.0, 30)
    labels = np.digitize(x, np.linspace(-0.5, 0.5, n_classes - 1))
    labels = labels if separable else np.where(np.arange(30) % 4 == 0, (labels + 1) % n_classes, labels)
    return fs.SoftmaxRegression(np.column_stack([x, np.ones(30)]), labels, np.arange(30) % 3,
                                prior_variance=variance)


@pytest.mark.parametrize("separable", [True, False])
@pytest.mark.parametrize("variance", [1.0, 1e4, 1e8])
def test_laplace_of_two_classes_is_that_of_logistic_regression(separable, variance):
    problem = a_line(2, separable, variance)
    binary = fs.LogisticRegression(problem.features, problem.labels.astype(float), problem.clients,
                                   prior_variance=2.0 * variance)
    across = np.hstack([-np.eye(2), np.eye(2)])
    own, other = problem.laplace(), binary.laplace()
    np.testing.assert_allclose(across @ own.mean, other.mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(across @ own.cov @ across.T, other.cov, rtol=1e-6,
                               atol=1e-16 * variance + 1e-9)


@pytest.mark.parametrize("variance", [1.0, 1e6, 1e12])
def test_vague_priors_cost_no_digits(variance):
    """What all classes share has the prior's variance, and the rest that of a flat prior in the end."""
    problem = a_line(3, False, variance)
    assert np.abs(problem.mode().reshape(3, 2).sum(axis=0)).max() < 1e-13
    cov = problem.laplace().cov
    common = np.kron(np.full(3, 3**-0.5), np.eye(2))
    np.testing.assert_allclose(common @ cov @ common.T, variance * np.eye(2), atol=1e-12 * variance)
    if variance == 1e12:
        np.testing.assert_allclose(problem.mode(), a_line(3, False, 1e9).mode(), rtol=1e-7)


@pytest.mark.parametrize("kind", [fs.SoftmaxRegression, fs.LogisticRegression])
def test_a_mode_that_is_not_found_is_refused(kind):
    x = np.linspace(-1.0, 1.0, 30)
    problem = kind(np.column_stack([x, np.ones(30)]), (x > 0).astype(int), np.arange(30) % 3,
                   prior_variance=1e100)
    with pytest.raises(ValueError, match=r"prior_variance=1e\+100 is too vague for these data: the mode"):
        problem.mode()


def test_a_curvature_lost_to_rounding_is_refused():
    features = np.column_stack([np.tile([1e8, -1e8], 6), np.ones(12)])
    labels = np.tile([0, 1, 1, 0], 3)
    problem = fs.SoftmaxRegression(features, labels, np.arange(12) % 2, prior_variance=1e6)
    with pytest.raises(ValueError, match=r"prior_variance=1e\+06 is too vague .* the least curv"):
        problem.laplace()


@pytest.mark.parametrize("kind", [fs.SoftmaxRegression, fs.LogisticRegression])
def test_unequal_clients_their_batches_and_noise(kind):
    data = np.random.default_rng(0).standard_normal((10, 2)), np.arange(10) % 2, np.repeat([0, 1], [3, 7])
    with pytest.raises(ValueError, match=r"batch_size=5 must be at most 3, the number of data of client 0"):
        kind(*data, prior_variance=1.0, batch_size=5)
    noisy = kind(*data, prior_variance=1.0, gradient_noise=2.0, weights=[0.4, 0.6])
    assert noisy.pooled().gradient_noise == pytest.approx(2.0 * 0.52**0.5)
    with pytest.raises(ValueError, match="clients must be an array of integers, got dtype bool"):
        kind(data[0], data[1], data[2] == 1, prior_variance=1.0)
    for temperature in (0.0, -1.0):
        with pytest.raises(ValueError, match=f"temperature={temperature}"):
            noisy.laplace(temperature)
