"""Constants of every class of problem: of what the algorithm runs on, all minibatches counted one by one."""

from __future__ import annotations

import dataclasses
from itertools import combinations, product

import naive_regression as naive
import numpy as np
import pytest
from problems import quadratic

import fedsim as fs
import theory
from fedsim.interfaces import ProblemParts
from fedsim.problems.pooled import Pooled
from theory.facts.potentials_of_problem import followed, potentials
from theory.tuning import plan_by_recursion

FEATURES = np.array([[1.0, -0.5], [0.4, 2.0], [-1.5, 0.7], [0.3, 0.1], [2.0, 1.0], [-0.2, -1.1], [0.9, 0.6]])
OWNERS, UNEQUAL = np.array([0, 1, 0, 1, 1, 0, 1]), [0.7, 0.3]
OPTIONS = [
    {}, {"gradient_noise": 0.6}, {"batch_size": 1}, {"batch_size": 2, "replace": False},
    {"batch_size": 3, "replace": False, "gradient_noise": 0.5}, {"batch_size": 2, "weights": UNEQUAL},
    {"batch_size": 3, "weights": UNEQUAL, "gradient_noise": 0.2}, {"weights": UNEQUAL}]


def logistic(**options):
    return fs.LogisticRegression(FEATURES, [0, 1, 1, 0, 1, 0, 0], OWNERS, prior_variance=2.0, **options)


def softmax(**options):
    return fs.SoftmaxRegression(FEATURES, [0, 1, 2, 0, 1, 2, 2], OWNERS, prior_variance=2.0,
                                feature_scale=0.5, **options)


def mean(size=None, replace=False, grad_scale="unbiased"):
    return fs.GaussianMean([0.3, 1.7, -0.8, 2.5, 0.9], prior_variance=0.5, batch_size=size, replace=replace,
                           grad_scale=grad_scale)


def linear(**options):
    return fs.LinearRegression(FEATURES, FEATURES @ [1.0, 2.0] + 0.1, OWNERS, noise_std=0.5,
                               prior_variance=2.0, **options)


PROBLEMS = {
    **{f"quadratic, {structure}, {weights}, noise {noise}": quadratic(3, 2, structure, weights, noise)
       for structure, weights, noise in product(("dense", "diagonal", "isotropic"), ("unequal", None),
                                                (None, 0.7, "cov"))},
    **{f"{make.__name__}, {options}": make(**options) for make in (logistic, softmax) for options in OPTIONS},
    **{f"linear, {options}": linear(**options) for options in ({}, {"weights": UNEQUAL})},
    **{f"mean, {options}": mean(*options) for options in (
        (None,), (1, True), (2, False), (3, True, "batch_sum"), (3, False, "batch_sum"))},
    "pooled quadratic": Pooled(quadratic(3, 2, "dense", "unequal", 0.7)),
    "pooled logistic": Pooled(logistic(gradient_noise=0.6, weights=UNEQUAL))}
FOLLOW = {"federated": fs.FALD(1e-3), "components": None, "global": fs.StaleSGLD(1e-3)}
EXACT = (fs.Quadratic, fs.GaussianMean, fs.LinearRegression)
"""Classes whose noise never depends on the point, as far as they have constants: traces are no bounds."""
UNKNOWN = "Hessian-Lipschitz constant not known"


def of(problem, convention):
    """The constants of an algorithm of this convention."""
    algorithm = FOLLOW[convention] or fs.DESGLD(1e-3, fs.network.complete(problem.n_clients))
    return theory.constants(problem, algorithm)


def estimates(problem, client, x):
    """Every equally likely minibatch's estimate of grad f_(c) at x, without additional noise."""
    if not problem.has_minibatches or isinstance(problem, Pooled):
        return np.asarray(problem.gradient(client, x))[None]
    is_mean = isinstance(problem, fs.GaussianMean)
    mine = range(problem.n_data) if is_mean else naive.rows_of(problem, client)
    size = problem.batch_size
    batches = product(mine, repeat=size) if problem.replace else combinations(mine, size)
    scale = len(mine) / size if problem.grad_scale == "unbiased" else 1.0
    if is_mean:
        return np.array([scale * (size * x - problem.data[list(batch)].sum()) + x / problem.prior_variance
                         for batch in batches])
    return np.array([naive.gradient_from(problem, client, batch, scale, x.tolist()) for batch in batches])


def true_trace(problem, client, x):
    """E||noise||^2 of an evaluation of grad f_(c) at x."""
    drawn, noise = estimates(problem, client, x), problem.gradient_noise
    if not isinstance(problem, fs.GaussianMean) or problem.grad_scale == "unbiased":
        np.testing.assert_allclose(drawn.mean(axis=0), problem.gradient(client, x), rtol=1e-11, atol=1e-11)
    own = 0.0 if noise is None else np.trace(noise[client]) if np.ndim(noise) else noise**2 * problem.dim
    return float(((drawn - drawn.mean(axis=0)) ** 2).sum(axis=1).mean() + own)


def test_every_class_of_problems_is_among_them():
    offered = {cls for cls in vars(fs).values() if isinstance(cls, type) and ProblemParts in cls.__mro__}
    tried = {type(problem) for problem in PROBLEMS.values()}
    assert offered == (tried | {fs.Custom}) - {Pooled}
    own = fs.Custom(lambda client, x: x + x**3 - client, n_clients=2)
    for convention in FOLLOW:
        with pytest.raises(ValueError, match=r"Custom.* has no known constants; make a theory.Constants"):
            of(own, convention)
        with pytest.raises(ValueError, match="no noise trace is known beforehand"):
            of(linear(batch_size=2), convention)
    for made in (logistic, softmax):
        with pytest.raises(ValueError, match="grad_scale='batch_sum' must be 'unbiased'"):
            of(made(batch_size=2, grad_scale="batch_sum"), "federated")


@pytest.mark.parametrize("name", PROBLEMS)
def test_constants_of_stale_algorithms_are_those_of_the_pooled_problem(name):
    problem = PROBLEMS[name]
    one, two = (of(each, "global") for each in (problem, problem.pooled()))
    for field in dataclasses.fields(one):
        first, second = getattr(one, field.name), getattr(two, field.name)
        if field.name == "target":
            assert (first is None) == (second is None)
            assert first is None or first.w2(second) < 1e-12 * np.sqrt(first.variances.sum())
        elif isinstance(first, (float, np.ndarray)):
            np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-13, err_msg=field.name)
        elif field.name != "of":
            assert first == second, field.name


@pytest.mark.parametrize("name", PROBLEMS)
def test_traces_are_those_of_all_minibatches(name):
    """At several points: equal where the noise does not depend on the point, else an upper bound."""
    problem, rng = PROBLEMS[name], np.random.default_rng(3)
    points = [size * rng.standard_normal(problem.dim) for size in (0.0, 1.0, 5.0, 50.0)]
    for convention in FOLLOW:
        run_on = problem.pooled() if convention == "global" else problem
        share = run_on.weights if convention == "components" else np.ones(run_on.n_clients)
        said = of(problem, convention).gradient_noise_traces
        true = np.array([[share[c] ** 2 * true_trace(run_on, c, x) for x in points]
                         for c in range(run_on.n_clients)])
        assert said.shape == (run_on.n_clients,)
        if isinstance(run_on, EXACT) or not run_on.has_minibatches:
            np.testing.assert_allclose(true, np.tile(said[:, None], len(points)), rtol=1e-10, atol=1e-12)
        else:
            assert (true <= said[:, None] * (1 + 1e-12) + 1e-12).all(), (convention, true, said)
            assert (true.max(axis=1) >= 0.1 * said).all()  # and no crude one


@pytest.mark.parametrize("make", [linear, logistic, softmax])
def test_regression_has_the_curvatures_it_says_and_gaps_at_least_its_own(make):
    problem, origin = make(weights=UNEQUAL), np.zeros(6 if make is softmax else 2)
    for convention in FOLLOW:
        known = of(problem, convention)
        assert (known.strong_convexity, known.smoothness) == pytest.approx(
            problem.curvature_bounds(convention), rel=1e-12)
        np.testing.assert_allclose(problem.gradient(None, known.minimizer), 0.0, atol=1e-9)
    facts = potentials(problem)
    for c in range(2):
        near = np.array([problem.potential(c, facts.minimizer + size * np.eye(len(origin)))
                         for size in (-1.0, 0.0, 1.0)]).min()
        assert facts.gaps_at_origin[c] >= problem.potential(c, origin) - near


def test_pooled_minibatches_are_noisier_than_those_of_clients_together():
    """What the constants of stale algorithms once were: without replacement and b = n_c, none at all."""
    problem = fs.LogisticRegression(np.ones((8, 1)), np.arange(8) % 2, np.arange(8), prior_variance=1.0,
                                    batch_size=1, replace=False)
    apart = (problem.weights**2) @ followed(problem, "federated").noise_traces
    true = true_trace(problem.pooled(), 0, np.zeros(1))
    assert apart == 0.0 and true == pytest.approx(16.0)
    assert of(problem, "global").gradient_noise_traces[0] >= true


def test_a_trace_is_attained_far_out_where_features_are_opposed():
    """Slopes are all but 1, and gradients all but cancel: all that is drawn counts."""
    features, clients = 3.0 * np.array([[0.01, 1.0], [0.01, -1.0]] * 4), np.repeat([0, 1], 4)
    for size, replace in product((1, 2, 3), (True, False)):
        problem = fs.LogisticRegression(features, np.zeros(8, int), clients, prior_variance=1.0,
                                        weights=UNEQUAL, batch_size=size, replace=replace)
        for run_on, convention in ((problem, "federated"), (problem.pooled(), "global")):
            true = [true_trace(run_on, c, np.array([1e4, 0.0])) for c in range(run_on.n_clients)]
            np.testing.assert_allclose(true, of(problem, convention).gradient_noise_traces, rtol=1e-3)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_gaps_are_attained_where_the_prior_is_vague_and_classes_are_apart(kind):
    common = {"clients": [0, 0, 0, 1, 1, 1], "prior_variance": 1e6, "weights": UNEQUAL}
    if kind == "logistic":
        problem = fs.LogisticRegression([[1.0], [2.0], [1.0], [1.0], [3.0], [1.0]], np.ones(6, int), **common)
        apart = np.array([12.0])
    else:
        problem = fs.SoftmaxRegression(np.tile(np.eye(3), (2, 1)), [0, 1, 2, 0, 1, 2], **common)
        apart = 12.0 * np.eye(3).ravel()
    for convention in FOLLOW:
        run_on = problem.pooled() if convention == "global" else problem
        share = run_on.weights if convention == "components" else np.ones(run_on.n_clients)
        gaps = [share[c] * (run_on.potential(c, 0.0 * apart) - run_on.potential(c, apart))
                for c in range(run_on.n_clients)]
        np.testing.assert_allclose(gaps, of(problem, convention).gaps_at_origin, rtol=1e-3)


@pytest.mark.parametrize("clients", [quadratic(3, 2, "dense", "unequal", 0.7), mean(3, True, "batch_sum"),
                                     logistic(gradient_noise=0.6, weights=UNEQUAL)])
def test_clients_as_one_have_the_curvature_of_f_and_the_sum_of_gaps(clients):
    one, other = of(Pooled(clients), "global"), of(clients.pooled(), "global")
    for name in ("strong_convexity", "smoothness", "initial_distance", "gradient_noise_traces"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
    assert one.off_target == other.off_target
    apart = of(clients, "federated").gaps_at_origin
    np.testing.assert_allclose(one.gaps_at_origin, clients.weights @ apart, rtol=1e-12)


def test_gaps_of_components_are_those_of_clients_times_their_weights():
    problem = quadratic(3, 2, "dense", "unequal")
    for convention, share in (("federated", 1.0), ("components", problem.weights)):
        gaps = [0.5 * m @ h @ m for h, m in zip(problem.hessians, problem.minimizers, strict=True)]
        np.testing.assert_allclose(of(problem, convention).gaps_at_origin, share * np.array(gaps))


# --- where gradients are those of another law

SUMS = mean(3, True, "batch_sum")


def test_statements_about_the_target_are_refused_by_name():
    words = (r"grad_scale='batch_sum': the gradients have strong_convexity=.* and the target .*, so that the "
             r"average is biased at every step size; .* is about the target")
    of_target = {"w2", "stationary_w2", "average_bias", "average_mse", "langevin_increment", "coupling_sq",
                 "w2_sq_of_average", "rounds_to_w2", "target_second_moment", "w2_clients", "w2_of_euler",
                 "stationary_w2_of_euler", "target_moment"}
    alone = fs.network.complete(1)
    by_words, compared = set(), set()
    for algorithm in (fs.StaleSGLD(1e-3, 0), fs.StaleSGLD(1e-3, 1), fs.FALD(1e-3), fs.FAHMC(1e-2, 1),
                      fs.DESGLD(1e-3, alone), fs.DESGHMC(0.02, 5.0, alone)):
        board = theory.scoreboard(SUMS, algorithm, 20, everything=False)
        by_words |= set(board.loc[board["reason"].str.fullmatch(words), "quantity"])
        compared |= set(board.loc[board["verdict"].isin(["holds", "holds outside", "rate"]), "quantity"])
        assert not board["verdict"].isin(["violated", "fails as transcribed"]).any()
        about = board["quantity"].isin(of_target)  # some ask for an exact law first, which there is not
        assert about.any() and (board.loc[about, "verdict"] == "no value").all()
    assert by_words == of_target - {"w2_sq_of_average"}
    assert {"gradient_gap", "average_variance"} <= compared  # what is not about the target stays


@pytest.mark.parametrize("call", [
    lambda: plan_by_recursion(SUMS, fs.StaleSGLD(1e-3, 0), 0.5),
    lambda: theory.fa_ld.plan(of(SUMS, "federated"), fs.FALD(1e-3), 0.5),
    lambda: theory.fa_ld.fewest_active(of(SUMS, "federated"), fs.FALD(
        1e-3, participation=fs.Participation(1, True)), 0.5),
    lambda: theory.fa_hmc.plan(of(SUMS, "federated"), fs.FAHMC(1e-3, 2), 0.5),
    lambda: theory.fa_hmc.dynamic_plan(of(SUMS, "federated"), fs.FAHMC(1e-3, 2), 0.5),
    lambda: theory.fa_hmc.steady_state(of(SUMS, "federated"), fs.FAHMC(1e-3, 2)),
    lambda: theory.stale.plan(of(SUMS, "global"), fs.StaleSGLD(1e-3, 1), 0.5, time_constant=1.0,
                              step_constant=1.0),
    lambda: theory.examine("stale.w2_recursion", SUMS, fs.StaleSGLD(1e-3, 1), 20)])
def test_plans_for_the_target_are_refused(call):
    with pytest.raises(ValueError, match=r"biased at every step size.* is about the target"):
        call()


def test_the_variance_of_an_average_can_be_planned_for_any_law():
    algorithm, given = fs.StaleSGLD(1e-3, 1), {"time_constant": 1.0, "step_constant": 1.0}
    one, other = (theory.stale.plan(of(problem, "global"), algorithm, 1e-4, "variance", **given)
                  for problem in (SUMS, mean()))
    assert (one.step_size, one.n_iterations) == (other.step_size, other.n_iterations)
    with pytest.raises(ValueError, match=r"time_constant=None: grad_scale='batch_sum'.*; pass time_con"):
        theory.stale.plan(of(SUMS, "global"), algorithm, 1e-4, "variance", step_constant=1.0)


def test_all_data_without_replacement_leave_the_law_as_it_is():
    whole = mean(5, False, "batch_sum")
    assert of(whole, "global").off_target == "" != of(SUMS, "global").off_target
    for make, again in product((fs.LogisticRegression, fs.SoftmaxRegression), (True, False)):
        one, other = (make(FEATURES[:4], [0, 1, 1, 0], [0, 1, 0, 1], prior_variance=2.0, batch_size=2,
                           replace=again, grad_scale=scale) for scale in ("batch_sum", "unbiased"))
        for convention in ("federated", "components"):
            np.testing.assert_array_equal(of(one, convention).gradient_noise_traces,
                                          of(other, convention).gradient_noise_traces)
        with pytest.raises(ValueError, match="grad_scale='batch_sum' must be 'unbiased'"):
            of(one, "global")  # two of four


# --- the Hessian's Lipschitz constant

def largest_change(hessian, dim, rng, tries):
    """Largest |(Hess f(x) - Hess f(y)) u| / (|x-y| |u|_max) found for x near y and corners u."""
    corners = np.array(list(product((-1.0, 1.0), repeat=dim))).T
    best, at = 0.0, np.zeros((2, dim))

    def change(x, along):
        along = 1e-5 * along / np.linalg.norm(along)
        return float(np.linalg.norm((hessian(x + along) - hessian(x - along)) @ corners, axis=0).max() / 2e-5)

    for number in range(tries):
        spread = 1.0 if number < tries // 3 else 0.2
        x, along = (0.0 if spread == 1.0 else at) + spread * rng.standard_normal((2, dim))
        found = change(x, along)
        if found > best:
            best, at = found, np.array([x, along / np.linalg.norm(along)])
    return best


@pytest.mark.parametrize("make", [logistic, softmax])
def test_hessians_change_by_no_more(make):
    """Of f, and of every client as a problem of its own: found by search, and not far below."""
    problem, rng, classes = make(weights=UNEQUAL), np.random.default_rng(5), {}
    if make is softmax:
        classes = {"n_classes": 3, "feature_scale": 0.5}
    found = largest_change(problem.hessian, problem.dim, rng, 300)
    assert 0.3 * of(problem, "global").hessian_smoothness < found <= of(problem, "global").hessian_smoothness
    shares = []
    for c, weight in enumerate(UNEQUAL):
        own = OWNERS == c
        labels = np.arange(own.sum()) % classes.get("n_classes", 2)  # of no influence on the Hessian
        alone = type(problem)(FEATURES[own], labels, np.zeros(own.sum(), int), prior_variance=1e9, **classes)
        shares.append(largest_change(alone.hessian, problem.dim, rng, 300) / weight)
    said = potentials(problem).hessian_smoothness
    assert (0.3 * said < shares).all() and (shares <= said).all()
    assert of(problem, "federated").hessian_smoothness == said.max()
    assert of(problem, "components").hessian_smoothness == (said * UNEQUAL).max()


def test_one_datum_attains_the_logistic_constant_and_two_classes_most_of_softmax():
    one = fs.LogisticRegression([[2.0]], [1], [0], prior_variance=1.0)
    x = np.log((1 + 3**-0.5) / (1 - 3**-0.5)) / 2.0
    slope = (one.hessian([x + 1e-4]) - one.hessian([x - 1e-4]))[0, 0] / 2e-4
    assert abs(slope) == pytest.approx(of(one, "federated").hessian_smoothness, rel=1e-6)
    q, third = (1 - 3**-0.5) / 2, 2 / (3 * 3**0.5)
    two = fs.SoftmaxRegression([[1.0], [0.0]], [0, 1], [0, 0], prior_variance=1.0)
    at, along = np.array([np.log(q / (1 - q)), 0.0]), 1e-4 * np.array([1.0, -1.0]) / 2**0.5
    change = np.linalg.norm((two.hessian(at + along) - two.hessian(at - along)) @ [1.0, -1.0]) / 2e-4
    assert change == pytest.approx(third, rel=1e-6)
    assert change / of(two, "global").hessian_smoothness == pytest.approx(0.77, abs=0.01)


def test_third_derivatives_of_softmax_stay_below_a_half():
    """|a| |b| |c|_max / 2: for all corners c, the largest eigenvalue over a, b, at random classes."""
    rng, largest = np.random.default_rng(6), 0.0
    for count in (2, 3, 4, 6):
        corners = np.array(list(product((-1.0, 1.0), repeat=count)))
        for _ in range(100):
            s = rng.dirichlet(np.full(count, rng.choice([0.3, 1.0, 5.0])))
            away = np.eye(count) - s  # row K: e_K - s
            forms = np.einsum("k,ck,ka,kb->cab", s, corners - (corners @ s)[:, None], away, away)
            largest = max(largest, float(np.abs(np.linalg.eigvalsh(forms)).max()))
    t = np.linspace(0.0, 1.0, 10_001)
    proved = (0.5 * (1 - t**2) * (t + 0.25 + np.sqrt(t**2 + 1 / 16))).max()
    assert 0.37 < largest <= 2 / (3 * 3**0.5) + 1e-12 < proved < 0.4915
