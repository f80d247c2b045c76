"""`python -m tools.benchmarks.indices`: what it costs a run to check indices, in gradients that read tables.

Ratios of processor time with and without checks, of pairs one after the other in one process and thread,
with the smallest and the largest; the bits must agree. Loops alone are not checked, so that theirs are noise.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median
from typing import Any

import numpy as np

import fedsim as fs

TABLE = np.tanh(np.linspace(-50.0, 50.0, 10_001))
CLIENTS, REPLICAS, ALGORITHM = 20, 640, fs.FALD(0.01, 5)


def nearest(client, x, table):
    """The nearest entry."""
    return table[round(100.0 * (x + 50.0))]


def between(client, x, table):
    """Between two entries."""
    at = 100.0 * (x + 50.0)
    k = int(at)
    return table[k] + (at - k) * (table[k + 1] - table[k])


def each(client, x, out, table):
    """The same of every coordinate."""
    for i in range(len(x)):
        out[i] = between(client, x[i], table)


def loops(client, x, out, table):
    """No index that depends on the point."""
    for i in range(len(x)):
        out[i] = x[i] * table[client + i]


CASES = {"nearest entry, d = 1": (nearest, 1), "between entries, d = 1": (between, 1),
         "between entries, d = 3": (each, 3), "between entries, d = 12": (each, 12),
         "loops, d = 3": (loops, 3)}


def measured(problem: Any, n_rounds: int) -> tuple[float, bytes]:
    """Processor seconds of a run, and its bits."""
    begin = time.process_time()
    run = fs.simulate(problem, ALGORITHM, n_rounds, REPLICAS, seed=1, threads=1, record=(), covariance="none",
                      allow_unstable=True)
    return time.process_time() - begin, run.mean.tobytes()


def compared(function: Any, dim: int, repeats: int) -> str:
    """Nanoseconds of a gradient with its step, checked and not, and their ratio."""
    both = [fs.Custom(function, CLIENTS, dim, data=TABLE, check_indices=check) for check in (True, False)]
    n_rounds = max(10, 200 // dim)
    if len({measured(problem, 3)[1] for problem in both}) != 1:
        raise AssertionError(f"{function.__name__}: checks change the numbers")
    pairs = [[measured(problem, n_rounds)[0] for problem in both] for _ in range(repeats)]
    ratios = [checked / fast for checked, fast in pairs]
    checked, fast = (1e9 * median(times) / (n_rounds * REPLICAS * CLIENTS * 5 * dim)
                     for times in zip(*pairs, strict=True))
    return (f"{checked:5.1f} ns a coordinate, {fast:5.1f} without checks: {median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f})")


def main() -> int:
    """One line a case."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.indices", description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    for name, (function, dim) in CASES.items():
        print(f"{name:24} {compared(function, dim, repeats)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
