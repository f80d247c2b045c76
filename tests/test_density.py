"""Laws on the line by quadrature."""

import numpy as np
import pytest
from scipy import stats

import fedsim as fs

KNOWN = {
    "normal": (stats.norm(0.3, 1.7), {}), "student": (stats.t(5), {}),
    "logistic": (stats.logistic(1.0, 0.4), {}),
    "far and narrow": (stats.norm(1e4, 0.01), {"centre": 1e4 + 0.1, "scale": 0.05}),
    "two": (None, {}), "wide": (stats.norm(-3.0, 100.0), {})}


class _Two:
    """Two normal laws far apart."""

    parts = (stats.norm(-3.0, 0.2), stats.norm(2.0, 0.5))

    def _mean(self, name, x):
        return 0.5 * sum(getattr(part, name)(x) for part in self.parts)

    def logpdf(self, x):
        return np.logaddexp(*(part.logpdf(x) for part in self.parts))

    def pdf(self, x):
        return self._mean("pdf", x)

    def cdf(self, x):
        return self._mean("cdf", x)

    def std(self):
        return np.sqrt(self.moment(2) - self.moment(1) ** 2)

    def moment(self, order):
        return 0.5 * sum(part.moment(order) for part in self.parts)


@pytest.mark.parametrize("name", KNOWN)
def test_known_laws(name):
    law, options = KNOWN[name]
    law = law or _Two()
    density = fs.Density(lambda x: 7.0 - law.logpdf(x), **options)
    spread = law.std()
    x = law.moment(1) + spread * np.linspace(-4.0, 4.0, 201)
    np.testing.assert_allclose(density.pdf(x), law.pdf(x), rtol=1e-8)
    np.testing.assert_allclose(density.cdf(x), law.cdf(x), rtol=1e-7, atol=1e-9)
    assert abs(density.mean - law.moment(1)) < 1e-8 * spread
    assert abs(density.variance / spread**2 - 1.0) < 1e-7
    chances = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(law.cdf(density.quantile(chances)), chances, atol=1e-9)
    gaussian = density.gaussian()
    assert gaussian.mean[0] == density.mean
    assert gaussian.variances[0] == density.variance


def test_distance_to_a_sample():
    density = fs.Density(lambda x: 0.5 * x**2)
    # one point: the second moment about it
    assert abs(density.w2([1.0]) - np.sqrt(2.0)) < 1e-9
    # perfect quantiles of many points, and moved by .3
    points = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    assert density.w2(points) < 0.01
    assert abs(density.w2(points[:, None] + 0.3) - 0.3) < 1e-3
    assert density.w2(density.sample(20_000, seed=1)) < 0.05
    assert abs(density.w2([-1.0, 1.0]) ** 2 - (2.0 - 4.0 * stats.norm.pdf(0.0))) < 1e-9


def test_a_moment_that_does_not_exist():
    heavy = fs.Density(lambda x: 1.5 * np.log1p(x**2))  # Student's with two degrees of freedom
    assert abs(heavy.mean) < 1e-6
    with pytest.raises(ValueError, match="order=2 must be less"):
        heavy.w2([0.0])
    with pytest.raises(ValueError, match="has a mode near x=5000 that is too narrow"):
        fs.Density(lambda x: -np.logaddexp(-x * x / 2, -((x - 5000.0) ** 2) / 2))
    with pytest.raises(ValueError, match=r"order=4 must be less: the tails are too heavy for E \|x\|\^4"):
        heavy.moment(4)


@pytest.mark.parametrize("make, message", [
    (lambda: fs.Density(lambda x: 0.0 * x), "does not grow enough"),
    (lambda: fs.Density(lambda x: np.log1p(abs(x))), "does not grow enough"),
    (lambda: fs.Density(3), "potential=3 must be a function"),
    (lambda: fs.Density(lambda x: x * np.nan), "it must be a number or inf"),
    (lambda: fs.Density(lambda x: 1.0), r"potential gives shape \(\) at 6001 points"),
    (lambda: fs.Density(lambda x: x**2, scale=-1.0), "scale=-1.0 must be greater than 0"),
    (lambda: fs.Density(lambda x: x**2, centre=np.inf), "centre=inf must be finite"),
    (lambda: fs.Density(lambda x: 0.5 * ((x - 50.0) / 1e-6) ** 2), "has a mode near x=50 that is too narrow"),
    (lambda: fs.Density(lambda x: x**2).quantile(1.5), r"probability=1.5 must lie in \[0, 1\]"),
    (lambda: fs.Density(lambda x: x**2).sample(0, 1), "n=0 must be at least 1"),
    (lambda: fs.Density(lambda x: x**2).w2([]), "must not be empty"),
    (lambda: fs.Density(lambda x: x**2).moment(-1), "order=-1 must be at least 0"),
])
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
