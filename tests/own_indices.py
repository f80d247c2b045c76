"""Indices and integers of every kind in gradients of one's own: each client has one.

What a gradient gives has to be what Python gives, with arrays in which a computed index below zero counts as
out of range, or an error. `python own_indices.py 1` counts the mistakes of runs in dimension 1 with checks
switched off.
"""

import math
import sys

import numpy as np

import fedsim as fs
from fedsim.problems.custom import forms
from fedsim.vector.memory import Scratch, aligned

LINE = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 5.0, 3.5])
TABLE = LINE[:5] + 10 * np.arange(4.0)[:, None]
PLACES = np.array([4, 2, 0, 7, 8, 1, 3, 5, 6])
GRID = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])
GLOBAL = LINE[::-1].copy()
DATA = LINE, TABLE, PLACES, GRID


def place(values, k):
    return values[k]


def put(out, k, value):
    out[k] = value


def number(client, x, line, table, places, grid):
    """In one dimension."""
    k, total = int(x), 0.0
    if client == 0:
        return line[int(x + 4.0)]
    if client == 1:
        return line[round(x) + 4]
    if client == 2:
        return line[math.floor(x) + 4] + line[math.ceil(x) + 3]
    if client == 3:
        return line[4 + client * k]
    if client == 4:
        return line[places[k + 4]]
    if client == 5:
        return line[-k + 4]
    if client == 6:
        return table[k + 2, 1]
    if client == 7:
        return table[1, k + 2]
    if client == 8:
        return table[k + 2][3]
    if client == 9:
        return table[:, k + 2][0] + table[k + 2, 1:][1]
    if client == 10:
        return line[min(k, 3) + 4]
    if client == 11:
        return line[k % 9]
    if client == 12:
        return line[k // 2 + 4]
    if client == 13:
        return line[k * k]
    if client == 14:
        while grid[k + 2] < x:
            k += 1
        return line[k + 2]
    if client == 15:
        at = 0
        for i in range(6):
            at = i
            if grid[i] > x:
                break
        return line[at]
    if client == 16:
        for i in range(k + 3):
            total += line[i]
        return total
    if client == 17:
        return line[9] if x > 3.0 else line[-1]
    if client == 18:
        return line[client] if x > 3.0 else line[client - 10]
    if client == 19:
        if x < 3.0:
            return 1.0
        for i in range(10):
            total += line[i]
        return total
    if client == 20:
        at = 2 if x < 3.0 else 11
        return line[at]
    if client == 21:
        return (1.0, 2.0, 3.0)[k + 1]
    if client == 22:
        return line[4:k + 6][0]
    if client == 23:
        return line[k + 4:][0]
    if client == 24:
        return line[min(max(k, 0), 8)]
    if client == 25:
        return place(line, k + 4) + place(table[2], k + 2)
    if client == 26:
        return GLOBAL[k + 4]
    if client == 27:
        return float((k * 4000000000 * k) % 7 + (k << 40) % 7 + (k + 9000000000000000000) % 7)
    if client == 28:
        return float(k**41 % 5 + pow(k, 3) % 5 + (k - 9223372036854775807) % 5)
    if client == 29:
        return float(12 // (3 - k)) + float(7 % (3 - k))
    if client == 30:
        return float(pow(k, 30) % 7) + float(np.int8(k))
    if client == 31:
        return line[int(math.fabs(x + 3.0) ** 0.5)]
    return x


def vector(client, x, out, line, table, places, grid):
    """In two dimensions: all that as a function that is called, and reads and writes of x and out."""
    k = int(x[0])
    out[0], out[1] = x[0], x[1]
    if client < 32:
        out[1] = number(client, x[0], line, table, places, grid)
    elif client == 32:
        out[abs(k)] = 7.0
    elif client == 33:
        out[1] = x[k + 1 - (k >= 1)]
    elif client == 34:
        for i, value in enumerate(x):
            out[i] = line[int(value) + 4]
    elif client == 35:
        put(out, abs(k), 5.0)
    elif client == 36:
        out[abs(k)] += 1.0
    elif client == 37:
        if x[0] > 3.0:
            out[client] = 1.0
    elif client == 38:
        for i in range(len(x) + (k > 2)):
            out[i] = line[i]
    elif client == 39:
        part = x[k:]
        for i in range(len(part)):
            out[i] = part[i] + line[i + 7 + len(part) - 2]


N_CLIENTS = {1: 33, 2: 40}
FAR = (-4.5, -6.0, -9.2, -3.9, 3.2, 4.6, 5.5, 6.0, 9.7, 40.0, 1e5, -1e5, 1e12, 3e18, 1e30)
NEAR = (0.3, -0.6, 1.4)


def points(dim):
    """(R, d)"""
    first = np.array(NEAR + FAR)
    return first[:, None] if dim == 1 else np.stack([first, np.full(len(first), 0.25)], axis=1)


class Watched:
    """An array of which a computed index below zero is out of range; Python's own -1 in `line[-1]` is not."""

    def __init__(self, values, constants=()):
        self.values, self.constants = values, constants
        self.shape = np.shape(values)

    def __len__(self):
        return len(self.values)

    def _seen(self, index):
        for part in index if isinstance(index, tuple) else (index,):
            if not isinstance(part, slice) and part < 0 and part not in self.constants:
                raise IndexError(part)
        return index

    def __getitem__(self, index):
        found = self.values[self._seen(index)]
        return Watched(found) if np.ndim(found) else float(found) if isinstance(found, float) else int(found)

    def __setitem__(self, index, value):
        self.values[self._seen(index)] = value

    def __iter__(self):
        return iter(self.values.tolist())


def by_python(client, point):
    """The gradient (d,), or None where Python has none."""
    if client == 21 and int(point[0]) + 1 < 0:  # a tuple is not watched
        return None
    data = tuple(Watched(part, (-1,) if client == 17 else ()) for part in DATA)
    before, globals()["GLOBAL"] = GLOBAL, Watched(GLOBAL)
    try:
        if len(point) == 1:
            return np.array([number(client, float(point[0]), *data)])
        out = Watched(np.full(len(point), np.nan))
        vector(client, Watched(point.copy()), out, *data)
        return out.values
    except (IndexError, ValueError, OverflowError, ZeroDivisionError):
        return None
    finally:
        globals()["GLOBAL"] = before


def lanes(problem, client, point):
    """As runs compute it: two lanes, the other of which is fine."""
    rows = np.ascontiguousarray(np.stack([np.full(problem.dim, 0.25), point], axis=1))
    out = np.full(rows.shape, np.nan)
    forms.evaluate(problem._form, client, rows, Scratch(aligned((0, 0)), aligned((0, 0))), out)
    return out[:, 1]


def problem(dim, check_indices=True):
    """All clients."""
    return fs.Custom(number if dim == 1 else vector, N_CLIENTS[dim], dim, data=DATA,
                     check_indices=check_indices)


LARGE = 27, 28, 30, 24
"""Clients of integers that Python has and compiled code has not: an error is right there too."""


def mistakes(made, evaluate):
    """Where the numbers are neither Python's nor an error; and how often they are numbers, and errors."""
    wrong, counts = [], {"number": 0, "error": 0}
    for client in range(made.n_clients):
        for point in points(made.dim):
            expected = by_python(client, point)
            try:
                found = evaluate(made, client, point)
            except (IndexError, OverflowError, ZeroDivisionError, ValueError) as error:
                counts["error"] += 1
                if expected is not None and not (client in LARGE or abs(point[0]) > 9e18):
                    wrong.append((client, point[0], type(error).__name__, expected.tolist()))
                continue
            counts["number"] += 1
            if expected is None or not np.allclose(found, expected, rtol=1e-12, atol=0.0):
                wrong.append((client, point[0], found.tolist(), expected))
    return wrong, counts


if __name__ == "__main__":
    print(len(mistakes(problem(int(sys.argv[1]), False), lanes)[0]))
