"""One contestant in one process with its own number of threads, told what to do on standard input.

    python -m tools.benchmarks.worker CONTESTANT CASE THREADS FACTOR

Each line in is a JSON object with "do"; each line out is its answer:

    import                            -> seconds
    prepare  what, rounds, replicas   -> seconds (compiling)
    run      what, seed, path         -> seconds, cpu (samples are saved to path)
    first    replicas                 -> seconds, cpu (from the call to the result of one round)
    memory                            -> bytes (peak of this process)

`what` is "timed", "check", "floor" or the name of a mutation.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

HOME = {"fedsim": "with_fedsim", "NumPy": "with_numpy", "JAX": "with_jax", "desgld": "with_desgld"}


def pin(threads: int) -> None:
    """Use the last processors: the first one serves most interrupts."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


def peak_memory() -> int:
    """Peak resident bytes of this process.

    The kernel's VmHWM where there is one: ru_maxrss also remembers the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Worker:
    """Answers requests."""

    def __init__(self, contestant: str, case: str, threads: int, factor: float) -> None:
        from .cases import CASES

        self.contestant, self.threads = contestant, threads
        found = next(one for one in CASES if one.name == case)
        self.tables = found.shortened(factor).tables()
        self.made: dict[str, Any] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked."""
        begin, cpu = time.perf_counter(), time.process_time()
        samples = None
        if request["do"] == "import":
            self.module = __import__(f"{__package__}.{HOME[self.contestant.split()[0]]}", fromlist=["x"])
        elif request["do"] == "memory":
            return {"bytes": peak_memory()}
        elif request["do"] == "prepare":
            what = request["what"]
            tables = self.tables.mutations().get(what, self.tables)
            programs = self.module.FLOORS if what == "floor" else self.module.CONTESTANTS
            self.made[what] = programs[self.contestant](tables, self.threads)
            self.made[what].prepare(request["rounds"], request["replicas"])
        elif request["do"] == "first":
            program = self.module.CONTESTANTS[self.contestant](self.tables, self.threads)
            program.prepare(1, request["replicas"])
            if not getattr(program, "runs_when_prepared", False):
                program.run(0)
        elif request["do"] == "run":
            samples = self.made[request["what"]].run(request["seed"])
        else:
            raise ValueError(f"do={request['do']!r} is not known")
        result = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu}
        if samples is not None:
            import numpy as np

            np.save(request["path"], samples)
        return result


def main(arguments: list[str]) -> None:
    """Answer line by line until the input ends."""
    contestant, case, threads, factor = arguments
    pin(int(threads))
    worker = Worker(contestant, case, int(threads), float(factor))
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
