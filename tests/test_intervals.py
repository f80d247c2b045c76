"""Coverage and width of the intervals of W2, over dimensions, replicas, spectra and targets.

Sample covariances are drawn by Wishart's law, a stack of them is given as the rounds of one run, and the
interval at each is asked for the distance that is known.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import linalg, optimize, stats
from scipy.special import gammaincinv

import fedsim as fs
import theory
from fedsim.laws import intervals
from fedsim.laws.distance import w2_floor_parts

SLACK = 0.02
"""What may be missing of the level."""


def wishart(rng, spectrum, n, count):
    """`count` sample covariances with n degrees of freedom of a law with these eigenvalues."""
    dim, root = len(spectrum), np.sqrt(spectrum)
    if n < 2 * dim:
        normal = rng.standard_normal((count, n, dim))
    else:  # Bartlett: a triangle instead
        normal = np.triu(rng.standard_normal((count, dim, dim)), 1)
        normal[:, np.arange(dim), np.arange(dim)] = np.sqrt(rng.chisquare(n - np.arange(dim), (count, dim)))
    normal *= root
    return np.swapaxes(normal, 1, 2) @ normal / n


def sampled(rng, spectrum, n_replicas, count, target, diagonal=False):
    """Fits to `count` samples of N(0, diag(spectrum)), as the rounds of one run."""
    mean = rng.standard_normal((count, len(spectrum))) * np.sqrt(spectrum / n_replicas)
    cov = wishart(rng, spectrum, n_replicas - 1, count)
    if diagonal:
        cov = np.diagonal(cov, axis1=1, axis2=2)
    return fs.Run(np.arange(count), mean, cov, target, n_replicas=n_replicas)


def covered(run, spectrum, level, ends=fs.Run.w2_interval):
    """At how many rounds."""
    true = fs.Gaussian(np.zeros(run.dim), spectrum).w2(run.target)
    low, high = ends(run, level).T
    return int(((low <= true) & (true <= high)).sum())


def judge(alarm, hits, count, level, what):
    least = max(level - SLACK, 1e-3)
    alarm.assert_pvalue(stats.binomtest(hits, count, least, alternative="less").pvalue, what)


def spectra(dim):
    """Equal, one alone, one large among many, a power law, half of them hardly there."""
    yield "equal", np.ones(dim)
    if dim > 1:
        number = np.arange(1.0, dim + 1)
        yield "one", np.where(number == 1, 1.0, 1e-12)
        yield "spike", np.where(number == 1, 10.0 * dim, 1.0)
        yield "power", 1.0 / number**2
        yield "half", np.where(number <= dim / 2, 1.0, 1e-6)


def targets(rng, spectrum):
    """The law itself, a wider one, a narrower one, one that is turned, and one far away."""
    dim, zero = len(spectrum), np.zeros(len(spectrum))
    yield "same", fs.Gaussian(zero, np.diag(spectrum))
    yield "wide", fs.Gaussian(zero, 100.0 * np.diag(spectrum))
    yield "narrow", fs.Gaussian(zero, 0.01 * np.diag(spectrum))
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    turned = basis * spectrum @ basis.T
    yield "turned", fs.Gaussian(zero, 0.5 * (turned + turned.T))
    yield "far", fs.Gaussian(np.where(np.arange(dim) == 0, 10.0 * math.sqrt(spectrum.sum()), 0.0),
                             np.diag(spectrum))


def cells(rng, dims, replicas, count, levels, kinds=None):
    """Runs with their spectra and levels, over a grid."""
    for dim in dims:
        for n_replicas in replicas:
            for name, spectrum in spectra(dim):
                for where, target in targets(rng, spectrum):
                    if kinds is None or (name, where) in kinds:
                        run = sampled(rng, spectrum, n_replicas, count, target)
                        for level in levels:
                            yield run, spectrum, level, f"{dim=} {n_replicas=} {name} {where} {level=}"


HARDEST = {("equal", "same"), ("one", "same"), ("power", "narrow"), ("half", "far")}


def test_intervals_cover(alarm):
    rng = np.random.default_rng(1)
    for run, spectrum, level, what in cells(rng, (1, 2, 5, 20), (2, 3, 5, 20, 60, 400), 100, (0.6, 0.95),
                                            HARDEST):
        judge(alarm, covered(run, spectrum, level), 100, level, what)
    for n_replicas in (2, 10, 100):  # far into the tail, where the scale decides
        run = sampled(rng, np.ones(1), n_replicas, 20_000, fs.Gaussian([0.0], [1.0]))
        miss = 20_000 - covered(run, np.ones(1), 0.9999)
        alarm.assert_pvalue(stats.binomtest(miss, 20_000, 1e-4, alternative="greater").pvalue, "tail")


def test_low_levels_are_covered_too(alarm):
    """One large eigenvalue among many small ones, whose part of the distance is never near 0."""
    rng, spectrum = np.random.default_rng(11), np.where(np.arange(12) == 0, 120.0, 1.0)
    for n_replicas, dim in ((2, 5), (24, 12), (150, 12)):
        own = spectrum[:dim]
        run = sampled(rng, own, n_replicas, 400, fs.Gaussian(np.zeros(dim), np.diag(own)))
        for level in (0.05, 0.1, 0.2, 0.4):
            judge(alarm, covered(run, own, level), 400, level, f"{n_replicas=} {level=}")


@pytest.mark.parametrize("factor", ["spectrum_factor", "scale_factor"])
def test_both_factors_are_needed(factor, alarm, monkeypatch):
    """Without one of them the intervals miss: of few replicas in many dimensions, or in one."""
    monkeypatch.setattr(intervals, factor, lambda *arguments: 1.0)
    dim, n_replicas = (20, 30) if factor == "spectrum_factor" else (1, 5)
    spectrum = np.ones(dim)
    run = sampled(np.random.default_rng(2), spectrum, n_replicas, 600, fs.Gaussian(np.zeros(dim), spectrum))
    if dim > 1:
        run = fs.Run(run.rounds, run.mean, run.cov, fs.Gaussian(np.zeros(dim), np.eye(dim)),
                     n_replicas=n_replicas)
    least = 0.95 - SLACK
    alarm.must_fail((covered(run, spectrum, 0.95) - 600 * least) / math.sqrt(600 * least * (1 - least)))


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 3, 5, 10, 20])
def test_intervals_cover_over_a_grid(dim, alarm):
    """2,000 samples a cell, every spectrum and target."""
    rng = np.random.default_rng([3, dim])
    replicas = (2, 3, 5, 10, 20, 50, 200, 1000, 10_000) if dim < 20 else (2, 10, 30, 200, 10_000)
    for run, spectrum, level, what in cells(rng, (dim,), replicas, 2000, (0.5, 0.95, 0.999),
                                            HARDEST if dim == 20 else None):
        judge(alarm, covered(run, spectrum, level), 2000, level, what)


def eigenvalues(rng, rank, n, count):
    """Of sample covariances of equal unit variances: of a bidiagonal matrix (Dumitriu and Edelman)."""
    small, large = sorted((rank, n))
    found = np.zeros((count, rank))
    for row in found:
        diagonal = np.sqrt(rng.chisquare(large - np.arange(small)))
        below = np.sqrt(rng.chisquare(small - 1.0 - np.arange(small - 1)))
        squares = diagonal**2
        squares[1:] += below**2
        row[:small] = linalg.eigvalsh_tridiagonal(squares, diagonal[:-1] * below) / n
    return np.maximum(found, 0.0)


def of_equal(rng, dim, rank, n_replicas, count, levels):
    """How many fits to samples of `rank` unit variances in `dim` dimensions are within the half widths."""
    values = np.zeros((count, dim))
    values[:, :rank] = eigenvalues(rng, rank, n_replicas - 1, count)
    gap = np.sqrt(rng.chisquare(rank, count) / n_replicas
                  + ((1.0 - np.sqrt(values[:, :rank]))**2).sum(axis=1))
    cross = np.sqrt(values) if n_replicas >= 10 * dim else None
    return [int((gap <= intervals.of_eigenvalues(values, cross, n_replicas, level, np.ones(count))).sum())
            for level in levels]


@pytest.mark.slow
@pytest.mark.parametrize("dim", [50, 100, 200])
def test_intervals_cover_in_many_dimensions(dim, alarm):
    """2,000 samples a cell, of 1, some and all dimensions that are there, from the target itself."""
    rng, levels = np.random.default_rng([4, dim]), (0.5, 0.95, 0.999)
    for n_replicas in (2, 3, 5, 10, 20, 50, 100, 200, 500, 2000, 10_000):
        for rank in (1, dim // 5, dim):
            for level, hits in zip(levels, of_equal(rng, dim, rank, n_replicas, 2000, levels), strict=True):
                judge(alarm, hits, 2000, level, f"{dim=} {rank=} {n_replicas=} {level=}")


def test_half_widths_are_those_of_the_eigenvalues():
    """What the slow test asks for is what a run is told."""
    rng, spectrum = np.random.default_rng(5), np.ones(6)
    for n_replicas in (4, 30, 100):
        run = sampled(rng, spectrum, n_replicas, 20, fs.Gaussian(np.zeros(6), np.eye(6)))
        values = np.linalg.eigvalsh(run.cov).clip(0.0)
        cross = np.sqrt(values) if n_replicas >= 60 else None
        half = intervals.of_eigenvalues(values, cross, n_replicas, 0.95, np.ones(20))
        np.testing.assert_allclose(run.w2_interval()[:, 1], run.w2() + half, rtol=1e-9)


def leading(run, level):
    """Half the width to leading order, as it was once given for every R: a second writing."""
    parts = np.concatenate(w2_floor_parts(run.cov, run.n_replicas, run.target.cov), axis=1)
    mean, variance = parts.sum(axis=1), 2.0 * (parts**2).sum(axis=1)
    return np.sqrt(variance / mean * gammaincinv(mean**2 / variance, level))


def test_intervals_are_not_wide_from_ten_replicas_a_dimension_on():
    rng, widest = np.random.default_rng(6), 0.0
    for dim in (1, 2, 5, 20):
        for n_replicas in (10 * dim, 100 * dim):
            for run, _, level, what in cells(rng, (dim,), (n_replicas,), 5, (0.95,)):
                half = run.w2_interval(level)[:, 1] - run.w2()
                ratio = (half / leading(run, level)).max()
                assert ratio <= 1.5, (what, ratio)
                widest = max(widest, ratio)
    assert widest > 1.2  # in one dimension


def test_of_many_replicas_the_factors_are_one():
    assert intervals.spectrum_factor(1e-4) == pytest.approx(1.0, abs=1e-4)
    assert intervals.scale_factor(10_000, 0.95) == pytest.approx(1.0, abs=0.01)
    assert intervals.spectrum_factor(0.1) == pytest.approx(1.065, abs=1e-3)
    assert intervals.scale_factor(10, 0.95) == pytest.approx(1.674, abs=1e-3)


def test_variances_alone_are_covered_whatever_their_correlation(alarm):
    rng, dim, count = np.random.default_rng(7), 30, 400
    for factor in (np.eye(dim), np.ones((1, dim))):
        for n_replicas in (3, 20, 300):
            normal = rng.standard_normal((count, n_replicas, len(factor))) @ factor
            run = fs.Run(np.arange(count), normal.mean(axis=1), normal.var(axis=1, ddof=1),
                         fs.Gaussian(np.zeros(dim), np.ones(dim)), n_replicas=n_replicas)
            for level in (0.5, 0.95):
                judge(alarm, covered(run, np.ones(dim), level), count, level, f"{len(factor)} {n_replicas=}")


# --- what is proved

@pytest.mark.parametrize("diagonal", [False, True])
def test_proved_ends_hold(diagonal, alarm):
    """At level 0.5, where proofs are loose: they hold nearly always."""
    rng = np.random.default_rng(8)
    for dim in (1, 2, 6):
        for n_replicas in (2, 10, 100, 1000):
            for _, spectrum in spectra(dim):
                for where, target in targets(rng, spectrum):
                    if diagonal and where == "turned":
                        continue
                    run = sampled(rng, spectrum, n_replicas, 100, target, diagonal)
                    hits = covered(run, spectrum, 0.5, fs.Run.w2_proved)
                    alarm.assert_pvalue(stats.binomtest(hits, 100, 0.85, alternative="less").pvalue, where)


@pytest.mark.parametrize("diagonal", [False, True])
def test_proved_ends_are_those_of_the_proof(diagonal):
    """A second writing, event by event; every part decides somewhere."""
    rng, decided = np.random.default_rng(10), set()
    for dim, n_replicas, level in itertools.product((1, 4, 30), (3, 200, 4000), (0.3, 1.0 - 1e-9)):
        spectrum, goal = 1.0 / np.arange(1.0, dim + 1), 10.0 ** rng.uniform(-3, 3)
        run = sampled(rng, spectrum, n_replicas, 1, fs.Gaussian(np.ones(dim), goal * np.eye(dim)), diagonal)
        n, x, cov = n_replicas - 1, math.log(5.0 / (1.0 - level)), run.cov[0]
        size = float((cov if diagonal else np.diag(cov)).sum())
        off = (math.sqrt(1.0 / n) + math.sqrt(2.0 * (x + math.log(dim)) / n) if diagonal
               else math.sqrt(dim / n) + math.sqrt(2.0 * x / n))

        def left(log, n=n, x=x):
            return math.expm1(log) - log - 2.0 * x / n

        low, high = (math.exp(optimize.brentq(left, *ends)) for ends in ((-700.0, 0.0), (0.0, 20.0)))
        traces = [size / low] + [size / (1.0 - off) ** 2] * (off < 1.0)
        trace = top = min(traces)
        if not diagonal and off < 1.0:
            top = min(trace, float(np.linalg.eigvalsh(cov)[-1]) / (1.0 - off) ** 2)
        of_mean = (math.sqrt(trace) + math.sqrt(2.0 * x * top)) / math.sqrt(n_replicas)
        of_cov = min(off * math.sqrt(trace), math.sqrt(trace + size))
        means, total = float(np.linalg.norm(run.mean[0] - 1.0)), goal * dim
        covs = math.sqrt(max(run.w2()[0] ** 2 - means**2, 0.0))
        parts = [0.0, covs - of_cov, math.sqrt(size / high) - math.sqrt(total),
                 math.sqrt(total) - math.sqrt(trace)]
        decided.add(parts.index(max(parts)))
        lower = math.hypot(max(0.0, means - of_mean), max(parts))
        np.testing.assert_allclose(run.w2_proved(level)[0], [
            lower, math.hypot(means + of_mean, covs + of_cov)], rtol=1e-6, atol=1e-9)
    assert {0, 1} <= decided and len(decided) > 2


def test_proved_ends_prove_something():
    """Of 1,000 replicas: within a third of a distance that is ten times the law's size; and from few, not."""
    rng, spectrum = np.random.default_rng(9), np.ones(3)
    far = fs.Gaussian([math.sqrt(300.0), 0.0, 0.0], np.eye(3))
    low, high = sampled(rng, spectrum, 1000, 5, far).w2_proved().T
    assert (low > 16.0).all() and (high < 19.0).all()
    assert (sampled(rng, spectrum, 3, 5, far).w2_proved()[:, 0] == 0.0).all()
    run = sampled(rng, spectrum, 1000, 5, fs.Gaussian(np.zeros(3), 100.0 * np.eye(3)))
    assert (run.w2_proved()[:, 0] > 14.0).all()  # of 15.6: by traces alone
    mixture = fs.Run(run.rounds, run.mean, run.cov, run.target, is_gaussian=False, n_replicas=1000)
    assert mixture.w2_proved().tolist() == [[0.0, math.inf]] * 5


@pytest.mark.parametrize(("dim", "n_replicas"), [(50, 20), (20, 20), (10, 2)])
def test_few_replicas_contradict_no_proved_bound(dim, n_replicas):
    """They once did, in every run: W2 of a fit with no more replicas than dimensions is far too large."""
    problem, algorithm = fs.Quadratic(np.ones((2, dim)), np.zeros((2, dim))), fs.FALD(0.01)
    bound = theory.fa_ld.w2_recursion(theory.constants(problem, algorithm), algorithm, n_rounds=400)
    law = theory.exact_law(problem, algorithm, 400, record=[400])
    for seed in range(5):
        run = fs.simulate(problem, algorithm, 400, n_replicas, seed=seed, record=[400])
        low, high = run.w2_interval(0.999)[-1]
        assert low <= law.w2()[-1] <= high
        assert theory.check(bound, run).holds
