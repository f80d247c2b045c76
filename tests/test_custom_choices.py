"""Out of range by way of what the point chooses: a table, a function, a sign, a count of fewer bits."""

import math

import numpy as np
import own_indices
import pytest

import fedsim as fs

LONG, SHORT = np.arange(1.0, 10.0), np.array([100.0, 200.0, 300.0])
TABLES = LONG, SHORT


def at(look, k):
    return look(k)


def chooses(client, x, long, short):
    both, k, least = (long, short), int(x), 0
    if client == 0:
        return both[int(x > 4.0)][7]
    if client == 1:
        return TABLES[int(x > 4.0)][7]
    if client == 2:
        return ((short, long), both)[int(x < 4.0)][0][7]
    if client == 3:
        return at(lambda k: LONG[k], k + 4)
    if client < 8:
        if x > 4.0:
            least = k - 9223372036854775807 - k - 1
        if client == 4:
            return float(-least)
        if client == 5:
            return float(abs(least))
        if client == 6:
            return float(least // (5 - client))
        return float(divmod(least, 6 - client)[0])
    if client == 8:
        return math.ldexp(1.0, (k > 4) << 32)
    if client == 9:
        return float(k << 62)
    if client == 10:
        return float(1 << (58 + k))
    if client == 11:
        return float(int(-2e18 * x))
    if x > 4.0 and client == 12:
        return long[client]
    return x


@pytest.fixture(scope="module")
def problem():
    return fs.Custom(chooses, 13, data=TABLES)


@pytest.mark.parametrize("evaluate", [lambda problem, client, point: problem.gradient(client, point),
                                      own_indices.lanes], ids=["gradient", "runs"])
@pytest.mark.parametrize("client", range(13))
def test_what_the_point_chooses_is_checked(client, evaluate, problem):
    assert evaluate(problem, client, [1.4]) == chooses(client, 1.4, *TABLES)
    with pytest.raises((fs.GradientError, IndexError, OverflowError)):
        evaluate(problem, client, [6.0])


def test_who_catches_errors_is_refused():
    """An index below zero is an error in compiled code alone, which would be caught there."""
    def catches(client, x, table):
        try:
            return table[int(x) + 4]
        except IndexError:
            return 0.0

    for gradient in (catches, lambda client, x, table: catches(client, x, table)):
        with pytest.raises(ValueError, match="gradient catches errors by try, which compiled code"):
            fs.Custom(gradient, 1, data=LONG)
