"""The random numbers: Philox, the Box-Muller transform, the law of the draws and their independence."""

import itertools
import math

import naive
import numpy as np
import pytest
from scipy import special, stats

from fedsim.random.normals import as_single, box_muller, box_muller_single, normals, steps_per_draw
from fedsim.random.philox import philox, rounds
from fedsim.random.streams import (
    GRADIENT_NOISE,
    OWN_NOISE,
    PARTICIPATION,
    SHARED_NOISE,
    START,
    by_coordinates,
    lane_set,
)
from fedsim.vector.compile import compiled

SEED = 20_240_229
ONES = 0xFFFFFFFF


@compiled
def _fill(lanes, tag, position, client, out):
    normals(lanes, tag, position, client, out)


BITS = np.uint64(32)


@compiled
def _philox_all(counters, key0, key1, out):
    for i in range(counters.shape[0]):
        w0, w1, w2, w3 = philox(counters[i, 0], counters[i, 1], counters[i, 2], counters[i, 3], key0, key1)
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = w0, w1, w2, w3


@compiled
def _transform(words, out):
    for i in range(words.shape[0]):
        high, low = (words[i, 0] << BITS) | words[i, 1], (words[i, 2] << BITS) | words[i, 3]
        first, second = box_muller(high, low)
        out[i, 0], out[i, 1] = first, second


@compiled
def _transform_single(words, out):
    for i in range(words.shape[0]):
        first, second = box_muller_single(words[i, 0], words[i, 1])
        out[i, 0], out[i, 1] = first, second


def draw(rows, replicas, tag=OWN_NOISE, position=0, client=0, seed=SEED, first=0, single=False):
    """Normals (rows, replicas)."""
    lanes = lane_set(seed, first, replicas)
    out = np.empty((rows, len(lanes.replicas)), np.float32 if single else np.float64)
    _fill(as_single(lanes) if single else lanes, tag, position, client, out)
    assert (out[:, replicas:] == out[:, [replicas - 1]]).all()
    return out[:, :replicas]


@pytest.fixture(scope="module", params=[False, True], ids=["double", "single"])
def many(request):
    """Over 10^7 draws: (whether single, values)."""
    rows = [draw(40, 2**16, position=k, single=request.param) for k in range(4)]
    values = np.concatenate(rows).astype(np.float64).ravel()
    assert values.size > 10_000_000
    return request.param, values


# Known answers of the Random123 distribution: counter, key, words.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


def compiled_philox(counters, key):
    out = np.empty((len(counters), 4), np.uint64)
    _philox_all(np.array(counters, np.uint64), np.uint64(key[0]), np.uint64(key[1]), out)
    return out


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_known_answers(counter, key, words):
    assert naive.philox(counter, key) == words
    assert rounds(*counter, *key) == words
    assert tuple(compiled_philox([counter], key)[0].tolist()) == words


def test_philox_is_its_slow_twin():
    rng = np.random.default_rng(0)
    counters = rng.integers(0, 2**32, (500, 4), dtype=np.uint64)
    for key in ((0, ONES), (123, 456)):
        expected = [naive.philox(tuple(c), key) for c in counters.tolist()]
        np.testing.assert_array_equal(compiled_philox(counters, key), np.array(expected, np.uint64))


def corner_words():
    """Radii at both ends and at powers of two, angles at the ends of quadrants."""
    edges = [0, 1, 0xFFF, 0x1000, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xBFFFFFFF, 0xC0000000,
             ONES - 1, ONES]
    return np.array(list(itertools.product(edges, repeat=4)), np.uint64)


def exact_pairs(radius, angle, quadrant):
    """(r cos, r sin) of angle + quadrant pi/2, with libm in extended precision where there is one."""
    angle = angle.astype(np.longdouble)
    cos, sin = np.cos(angle), np.sin(angle)
    first = np.choose(quadrant, [cos, -sin, -cos, sin])
    second = np.choose(quadrant, [sin, cos, -sin, -cos])
    return np.stack([radius * first, radius * second], axis=1)


def test_transform_against_libm():
    rng = np.random.default_rng(1)
    words = np.concatenate([rng.integers(0, 2**32, (1_200_000, 4), dtype=np.uint64), corner_words()])
    out = np.empty((len(words), 2))
    _transform(words, out)
    high = ((words[:, 0] << np.uint64(32)) | words[:, 1]) >> np.uint64(12)
    low = (words[:, 2] << np.uint64(32)) | words[:, 3]
    uniform = 1 - high.astype(np.longdouble) * np.longdouble(2.0) ** -52
    fraction = ((low >> np.uint64(10)) & np.uint64(2**52 - 1)).astype(np.longdouble) * 2.0**-52
    angle = (fraction - 0.5) * (np.longdouble(math.pi) / 2)
    expected = exact_pairs(np.sqrt(-2 * np.log(uniform)), angle, (low >> np.uint64(62)).astype(np.int64))
    assert np.isfinite(out).all()
    assert np.abs(out - expected).max() <= 4e-15
    assert np.hypot(*out.T).max() <= math.sqrt(-2 * math.log(2.0**-52)) + 1e-12


def test_single_transform_against_the_double_formula():
    rng = np.random.default_rng(2)
    edges = corner_words()[:, 2:].astype(np.uint32)
    random = rng.integers(0, 2**32, (1_200_000, 2), dtype=np.uint32)
    words = np.concatenate([random, np.unique(edges, axis=0)])
    out = np.empty((len(words), 2), np.float32)
    _transform_single(words, out)
    half = ((words[:, 0] >> np.uint32(1)).astype(np.float32) + np.float32(0.5)).astype(np.float64)
    part = (words[:, 1] & np.uint32(0x3FFFFFFF)).astype(np.float32).astype(np.float64)
    radius = np.sqrt(-2 * np.log(half * 2.0**-31))
    angle = (part * 2.0**-30 - 0.5) * (math.pi / 2)
    expected = exact_pairs(radius, angle, (words[:, 1] >> np.uint32(30)).astype(np.int64))
    assert np.isfinite(out).all()
    assert np.abs(out - expected).max() <= 1e-5
    assert np.abs(out).max() <= 6.7


@pytest.mark.parametrize("single", [False, True])
def test_draws_are_their_slow_twins(single):
    """Rows, odd and even, at the ends of every field of the counter."""
    tolerance = 1e-5 if single else 1e-14
    places = [(OWN_NOISE, 0, 0, 0), (SHARED_NOISE, 2**32 - 1, 65535, 2**32 - 3), (START, 5, 1, 63),
              (GRADIENT_NOISE + 7, 12345, 40000, 2**31)]
    for (tag, position, client, first), rows in itertools.product(places, (1, 2, 3, 4, 5, 6, 7, 8)):
        out = draw(rows, 3, tag, position, client, 2**64 - 1, first, single)
        for lane in range(3):
            slow = naive.Streams(2**64 - 1, first + lane, single).normals(tag, position, client, rows)
            np.testing.assert_allclose(out[:, lane], slow, atol=tolerance, rtol=0)


@pytest.mark.parametrize(("pairs", "replicas"), [(1, 1), (3, 5), (6, 5), (4, 8), (11, 3), (40, 31)])
def test_coordinates_as_lanes_are_the_same_numbers(pairs, replicas):
    """The layout for few replicas in many dimensions holds the bits of the ordinary one."""
    folded = np.empty((2, pairs * replicas))
    _fill(by_coordinates(lane_set(SEED, 7, replicas), replicas, pairs), OWN_NOISE, 3, 2, folded)
    usual = draw(2 * pairs, replicas, OWN_NOISE, 3, 2, first=7)
    np.testing.assert_array_equal(
        folded.reshape(2, pairs, replicas).transpose(1, 0, 2).reshape(-1, replicas), usual)


def test_no_normal_of_a_call_is_wasted():
    for dtype, per_call in ((np.float64, 2), (np.float32, 4)):
        for dim in range(1, 12):
            steps = steps_per_draw(dim, dtype)
            assert steps * dim % per_call == 0
            assert all(earlier * dim % per_call for earlier in range(1, steps))


def test_moments(many, alarm):
    _, x = many
    n = x.size
    square = x * x
    alarm.assert_normal([
        x.mean() * math.sqrt(n), (square.mean() - 1) * math.sqrt(n / 2),
        (square * x).mean() * math.sqrt(n / 15), ((square * square).mean() - 3) * math.sqrt(n / 96),
        (x**5).mean() * math.sqrt(n / 945), ((square**3).mean() - 15) * math.sqrt(n / 10170)], "moment")


def test_distribution(many, alarm):
    """Kolmogorov-Smirnov over all draws, and a chi-square over cells of equal probability."""
    _, x = many
    n, cells = x.size, 4096
    uniform = special.ndtr(x)
    counts = np.bincount(np.minimum((uniform * cells).astype(np.int64), cells - 1), minlength=cells)
    alarm.assert_pvalue(stats.chisquare(counts).pvalue, "cells")
    uniform.sort()
    grid = np.arange(n)
    distance = max((uniform - grid / n).max(), ((grid + 1) / n - uniform).max())
    alarm.assert_pvalue(stats.kstwobign.sf(distance * math.sqrt(n)), "Kolmogorov-Smirnov")


def test_tails(many, alarm):
    _, x = many
    values = []
    for size in (3.0, 3.5, 4.0, 4.5, 5.0):
        for count in ((x > size).sum(), (x < -size).sum()):
            values.append(stats.binomtest(int(count), x.size, float(special.ndtr(-size))).pvalue)
    alarm.assert_pvalue(values, "tail")


def test_the_tests_of_law_have_power(many, alarm):
    """A scale off by half a percent, or every twentieth draw uniform, would be seen."""
    _, x = many
    n = x.size
    alarm.must_fail(((1.005 * x) ** 2).mean() * math.sqrt(n / 2) - math.sqrt(n / 2))
    mixed = np.where(np.arange(n) % 20 == 0, math.sqrt(12) * (special.ndtr(x) - 0.5), x)
    alarm.must_fail(((mixed**4).mean() - 3) * math.sqrt(n / 96))


def test_independence(alarm):
    """Streams that differ in one field of the counter, or in the seed, are uncorrelated."""
    n = 2**20
    base = {"tag": OWN_NOISE, "position": 7, "client": 3, "seed": SEED, "first": 0}
    x = draw(4, n, **base)
    others = {
        "shared": {"tag": SHARED_NOISE}, "start": {"tag": START}, "participation": {"tag": PARTICIPATION},
        "gradient": {"tag": GRADIENT_NOISE}, "second gradient": {"tag": GRADIENT_NOISE + 1},
        "next step": {"position": 8}, "far step": {"position": 7 + 2**31},
        "next client": {"client": 4}, "first client": {"client": 0}, "far client": {"client": 3 + 2**15},
        "next seed": {"seed": SEED + 1}, "other seed word": {"seed": SEED + 2**32},
        "next replica": {"first": 1}, "next replicas": {"first": n},
    }
    z = {}

    def compare(name, a, b):
        size = math.sqrt(a.size)
        z[name] = (a * b).sum() / size
        z[name + " (squares)"] = ((a * a - 1) * (b * b - 1)).sum() / (2 * size)
        z[name + " (mixed)"] = ((a * a - 1) * b).sum() / (math.sqrt(2) * size)

    for name, change in others.items():
        compare(name, x.ravel(), draw(4, n, **(base | change)).ravel())
    compare("halves of a pair", x[0], x[1])
    compare("halves of the next pair", x[2], x[3])
    compare("pairs", x[0], x[2])
    compare("pairs, crosswise", x[1], x[2])
    alarm.assert_normal(list(z.values()), "correlation")
    alarm.must_fail((x * x).sum() / math.sqrt(x.size), "a stream with itself")


def test_independence_of_single_precision_quadruples(alarm):
    x = draw(8, 2**20, single=True).astype(np.float64)
    n = math.sqrt(x.shape[1])
    pairs = list(itertools.combinations(range(8), 2))
    alarm.assert_normal([(x[i] * x[j]).sum() / n for i, j in pairs], "product")
    alarm.assert_normal([((x[i]**2 - 1) * (x[j]**2 - 1)).sum() / (2 * n) for i, j in pairs], "squares")
