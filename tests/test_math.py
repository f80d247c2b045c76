"""Functions that vectorise are right to three units in the last place, and at the ends of their range."""

import numpy as np
import pytest

import fedsim as fs
from fedsim.vector.compile import compiled

RNG = np.random.default_rng(0)
SMALL = np.concatenate([10.0 ** RNG.uniform(-300, 0, 20_000), -(10.0 ** RNG.uniform(-300, -0.01, 20_000))])
NEAR = RNG.normal(size=40_000)
WIDE = RNG.uniform(-700.0, 700.0, 40_000)
WITHIN = {"exp": [NEAR, WIDE], "expm1": [SMALL, NEAR, WIDE], "log": [10.0 ** RNG.uniform(-307, 308, 40_000),
          RNG.uniform(0.5, 2.0, 40_000)], "log1p": [SMALL, RNG.uniform(-0.9, 3.0, 40_000),
          10.0 ** RNG.uniform(0, 300, 20_000)], "tanh": [SMALL, 3.0 * NEAR],
          "sigmoid": [10.0 * NEAR, WIDE], "softplus": [10.0 * NEAR, WIDE]}


def true_value(name, x):
    """In the longest floats that there are."""
    x = x.astype(np.longdouble)
    if name == "sigmoid":
        return 1.0 / (1.0 + np.exp(-x))
    if name == "softplus":
        return np.maximum(x, 0.0) + np.log1p(np.exp(-abs(x)))
    return getattr(np, name)(x)


def in_compiled_code(name):
    function = getattr(fs.math, name)

    @compiled
    def fill(x, out):
        for i in range(len(x)):
            out[i] = function(x[i])

    def values(x):
        out = np.empty(len(x))
        fill(np.asarray(x, dtype=np.float64), out)
        return out

    return values


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="there are no longer floats here")
@pytest.mark.parametrize("name", WITHIN)
def test_units_in_the_last_place(name):
    x = np.concatenate(WITHIN[name])
    exact = true_value(name, x)
    found = in_compiled_code(name)(x)
    units = abs(found - exact) / np.spacing(abs(exact).astype(np.float64))
    assert units.max() < 3.0, x[units.argmax()]
    # the same of Python's, whose last bits may differ
    np.testing.assert_allclose(getattr(fs.math, name)(x), found, rtol=1e-14)


ENDS = np.array([0.0, np.inf, -np.inf, np.nan, 710.0, -710.0, -1.0, 1.0, 1e-320])


@pytest.mark.parametrize("name", WITHIN)
def test_ends(name):
    with np.errstate(all="ignore"):
        expected = true_value(name, ENDS).astype(np.float64)
    found = in_compiled_code(name)(ENDS)
    if name == "log":
        expected[-1] = -np.inf  # numbers below the least normal one
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-300)
