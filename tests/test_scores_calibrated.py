"""P-values of z-scores where the law is not Gaussian: true of skewed and of heavy-tailed laws, and in random
settings with participation."""

import numpy as np
import pytest
from problems import spd
from scipy import stats

import fedsim as fs
import theory
from fedsim.laws.scores import leaf_errors

N_LEAVES = 20


def peaks(rng, shape):
    """Two equal peaks: tails lighter than a Gaussian law's."""
    return 0.3 * rng.standard_normal(shape) + rng.choice([-1.0, 1.0], shape), 1.09


def outliers(rng, shape):
    """One draw in a hundred is far off, always on the same side."""
    return rng.standard_normal(shape) + 10.0 * (rng.random(shape) < 0.01), 1.0 + 100.0 * 0.01 * 0.99


def mixed(rng, shape):
    """One draw in ten has three times the scale."""
    return rng.standard_normal(shape) * np.where(rng.random(shape) < 0.1, 3.0, 1.0), 1.8


LAWS = [peaks, outliers, mixed]


def leaves(law, rng, n_runs):
    """Means of leaves' variances and their spread, (n_runs, 1) each, and the law's variance."""
    draws, variance = law(rng, (n_runs, N_LEAVES, 64))
    own = draws.var(axis=2, ddof=1)
    return (own.mean(axis=1)[:, None], (own.std(axis=1, ddof=1) / np.sqrt(N_LEAVES))[:, None],
            np.full((n_runs, 1), variance))


def scored(law, rng, n_runs):
    """Scores of the variance in so many runs, the rounds of one."""
    found, spread, exact = leaves(law, rng, n_runs)
    rounds, mean = np.arange(n_runs), np.zeros((n_runs, 1))
    run = fs.Run(rounds, mean, found, is_gaussian=False, n_replicas=64 * N_LEAVES, leaf_cov=found,
                 spread=spread, n_leaves=N_LEAVES)
    return run.z_scores(fs.Law(rounds, mean, exact, is_gaussian=False)).cov


@pytest.mark.parametrize(("law", "n_runs"), [(peaks, 4_000), (outliers, 20_000), (mixed, 20_000)])
def test_large_scores_are_as_rare_as_they_say(law, n_runs, alarm):
    z = np.abs(scored(law, np.random.default_rng(1), n_runs))
    for level in (1e-2, 1e-3):
        beyond = int((z > stats.norm.isf(level / 2.0)).sum())
        alarm.assert_pvalue(stats.binomtest(beyond, z.size, level, alternative="greater").pvalue, f"{level}")


def test_the_spread_alone_is_fooled(alarm):
    """What it was once: large deviations of skewed laws looked larger than they are."""
    found, spread, exact = leaves(outliers, np.random.default_rng(1), 20_000)
    beyond = (np.abs((found - exact) / spread) > stats.t.isf(5e-4, N_LEAVES - 1)).sum()
    alarm.must_fail((beyond - 20.0) / np.sqrt(20.0))


@pytest.mark.parametrize("law", LAWS)
def test_errors_are_not_much_larger_than_they_have_to_be(law):
    found, spread, exact = leaves(law, np.random.default_rng(2), 2_000)
    typical = np.median(leaf_errors(found, spread, exact, N_LEAVES))
    assert 0.95 < typical / found.std() < 1.2


def test_a_lucky_spread_is_not_believed():
    """Entries agree on how tails compare with a Gaussian law's; one that is far smaller is chance."""
    exact = np.array([[[2.0, 0.5], [0.5, 1.0]]])
    gaussian = np.sqrt((np.array([[4.0, 2.0], [2.0, 1.0]]) + exact**2) / (63 * N_LEAVES))
    for tails in (0.3, 1.0, 2.0):
        spread = tails * gaussian
        np.testing.assert_allclose(leaf_errors(exact, spread, exact, N_LEAVES), spread, rtol=1e-12)
    spread = gaussian * np.array([[1.1, 0.3], [0.3, 1.4]])
    share = min(1.0, np.mean([1.1**2, 0.3**2, 0.3**2, 1.4**2]))
    found = leaf_errors(exact, spread, exact, N_LEAVES)
    assert found[0, 0, 1] == found[0, 1, 0] == pytest.approx(np.sqrt(share) * gaussian[0, 0, 1], rel=1e-12)
    bound = leaf_errors(exact, gaussian * np.array([[2.0, 0.3], [0.3, 2.0]]), exact, N_LEAVES)
    assert bound[0, 0, 1] == pytest.approx(gaussian[0, 0, 1], rel=1e-12)  # a share is at most 1
    low = leaf_errors(0.25 * exact, gaussian, exact, N_LEAVES)
    np.testing.assert_allclose(low, 4.0 * gaussian, rtol=1e-12)  # as the variances grow to the law's
    np.testing.assert_allclose(leaf_errors(4.0 * exact, gaussian, exact, N_LEAVES), gaussian, rtol=1e-12)
    point = np.zeros((1, 2, 2))
    assert not leaf_errors(point, point, point, N_LEAVES).any()


def participation(rng, n_clients):
    """A scheme of each kind, and whether it asks for equal weights."""
    kind = rng.integers(4)
    if kind == 0:
        return fs.Participation(int(rng.integers(1, n_clients + 2)), replace=True), False
    if kind == 1:
        return fs.Participation(int(rng.integers(1, n_clients + 1)), replace=False), True
    if kind == 2:
        return fs.IndependentParticipation(rng.uniform(0.2, 1.0, n_clients), bool(rng.integers(2))), False
    sets = [sorted(rng.choice(n_clients, int(rng.integers(1, n_clients + 1)), replace=False).tolist())
            for _ in range(int(rng.integers(1, 4)))]
    return fs.FixedParticipation(sets, cyclic=True), False


def setting(number):
    """A random problem and algorithm with participation, and its p-value of replicas against their law."""
    rng = np.random.default_rng([5, number])
    n_clients, dim, n_rounds = int(rng.integers(2, 6)), int(rng.integers(2, 5)), int(rng.integers(1, 8))
    scheme, equal = participation(rng, n_clients)
    hessians = spd(rng, n_clients, dim, 0.3)
    weights = None if equal else rng.dirichlet(np.full(n_clients, 3.0))
    problem = fs.Quadratic(hessians, rng.standard_normal((n_clients, dim)) * rng.choice([0.3, 2.0]), weights,
                           float(rng.choice([0.3, 2.0])))
    step = float(rng.uniform(0.05, 0.8)) / np.linalg.eigvalsh(hessians).max()
    options = {"local_steps": int(rng.integers(1, 4)), "shared_noise": float(rng.choice([0.0, 0.3, 1.0])),
               "participation": scheme}
    algorithm = (fs.FALD(step, temperature=float(rng.choice([1.0, 0.1, 1e-3])), **options) if rng.integers(2)
                 else fs.FAHMC(0.5 * np.sqrt(step), 2, **options))
    start = [None, 3.0 * rng.standard_normal(dim), fs.Gaussian(rng.standard_normal(dim), np.eye(dim))][
        rng.integers(3)]
    about = {"start": start, "record": range(n_rounds + 1), "allow_unstable": True}
    law = theory.exact_law(problem, algorithm, n_rounds, **about)
    run = fs.simulate(problem, algorithm, n_rounds, 1280 + int(rng.integers(1200)), threads=1,
                      seed=int(rng.integers(2**63)), **about)
    return run.z_scores(law).p_value()


def judge(p_values, alarm):
    for level in (0.1, 1e-2, 1e-3):
        below = int((p_values < level).sum())
        chance = stats.binomtest(below, len(p_values), level, alternative="greater").pvalue
        alarm.assert_pvalue(chance, f"{level}")
    alarm.assert_pvalue(min(1.0, len(p_values) * p_values.min()), "the smallest")


def test_random_settings_agree_with_their_laws(alarm):
    judge(np.array([setting(number) for number in range(20)]), alarm)


@pytest.mark.slow
def test_five_hundred_random_settings_agree_with_their_laws(alarm):
    p_values = np.array([setting(number) for number in range(20, 520)])
    judge(p_values, alarm)
    assert (p_values > 0.9).mean() < 0.9  # they do vary
