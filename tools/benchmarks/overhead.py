"""`python -m tools.benchmarks.overhead`: what safety costs, as paired ratios of one process.

Each pair is the same simulation twice, one after the other in an order that changes: without and with a
checkpoint, a progress bar, or short segments; and two threads against two separate Dask workers. The ratio
is of wall-clock time, with the smallest and the largest of the repetitions; the bits must agree.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from statistics import median
from typing import Any

import fedsim as fs
from fedsim.engine.block import BlockRunner

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]] * 10, [[float(i), 1.0 - i] for i in range(10)])
ALGORITHM = fs.FALD(0.05, 5, shared_noise=0.25)
RECORD = [10, 100]


def run(n_rounds: int, n_replicas: int, **options: Any) -> bytes:
    """The bytes of a run."""
    law = fs.simulate(PROBLEM, ALGORITHM, n_rounds, n_replicas, seed=1, record=RECORD, **options)
    assert law.cov is not None
    return law.mean.tobytes() + law.cov.tobytes()


@contextmanager
def one_segment() -> Any:
    """Blocks run in one call of the compiled loop."""
    begin = BlockRunner.__init__

    def without(self: Any, job: Any, *ends: Any, **options: Any) -> None:
        begin(self, job, *ends, **options)
        self._chunk = job.n_rounds

    BlockRunner.__init__ = without  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        BlockRunner.__init__ = begin  # type: ignore[method-assign]


def seconds(work: Callable[[], bytes]) -> tuple[float, bytes]:
    """How long it takes, and what comes out."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def paired(plain: Callable[[], bytes], other: Callable[[], bytes], repeats: int) -> list[float]:
    """Ratios other / plain of so many pairs."""
    ratios = []
    for i in range(repeats):
        order = (plain, other) if i % 2 else (other, plain)
        times = {work: seconds(work) for work in order}
        if times[plain][1] != times[other][1]:
            raise SystemExit("the bits differ")
        ratios.append(times[other][0] / times[plain][0])
    return ratios


def main() -> None:
    """Print a line for each pair."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.overhead", description=__doc__)
    parser.add_argument("--rounds", type=int, default=8_000)
    parser.add_argument("--replicas", type=int, default=64 * 40)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--dask-seconds", type=float, default=30.0, help="0: leave it out")
    options = parser.parse_args()
    size = options.rounds, options.replicas

    def show(what: str, ratios: list[float], base: float) -> None:
        print(f"{what}: {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}), "
              f"{len(ratios)} pairs of {base:.1f} s", flush=True)

    def plain() -> bytes:
        return run(*size, threads=1)

    def kept() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            return run(*size, threads=1, checkpoint=Path(folder) / "kept")

    def with_bar() -> bytes:
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
            return run(*size, threads=1, progress=True)

    def unsegmented() -> bytes:
        with one_segment():
            return run(*size, threads=1)

    plain()
    base = seconds(plain)[0]
    show("with a checkpoint / without", paired(plain, kept, options.repeats), base)
    show("with a progress bar / without", paired(plain, with_bar, options.repeats), base)
    show("in segments / in one call", paired(unsegmented, plain, options.repeats), base)
    if options.dask_seconds:
        from distributed import Client, LocalCluster

        replicas = 64 * max(1, round(options.replicas / 64 * options.dask_seconds / base * 2))
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
                          dashboard_address=None) as cluster, Client(cluster) as client:
            pool = client.get_executor()
            run(100, 64 * 8, executor=pool)  # both have loaded the kernels
            threads, workers = (lambda: run(options.rounds, replicas, threads=2),
                                lambda: run(options.rounds, replicas, executor=pool))
            show("two Dask workers / two threads", paired(threads, workers, 3), seconds(threads)[0])


if __name__ == "__main__":
    main()
