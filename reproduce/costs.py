"""What figures cost, as measured, and the order in which they are made.

`costs.json` has the CPU seconds of every figure at the quick scale, drawing included and compiling apart; the
kernels that it compiles where nothing is kept of them, and the seconds of one; and those of `calibration`
where it was measured. `python -m reproduce costs` measures them again, figures that share runs together, each
time in a new process with nothing compiled. Nothing else runs meanwhile, or the seconds are too many.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fedsim.vector.cache import cache_place
from fedsim.vector.compile import compiled_here

from . import store
from .discovery import chosen, figures
from .figure import Figure

FILE = Path(__file__).with_name("costs.json")
AT_ONCE = 5.0
"""Seconds within which a figure without kernels is among the first: something is to be seen soon."""
UNKNOWN = {"seconds": 10.0, "kernels": []}
"""Of a figure that was not measured yet."""


@cache
def measured() -> dict[str, Any]:
    """What `costs.json` has."""
    known: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return known


def calibration() -> float:
    """CPU seconds of a little work like that of figures: Python, small matrices and long arrays."""
    matrices, numbers = np.eye(20) + np.ones((200, 20, 20)), np.arange(2e5)
    began = time.process_time()
    for _ in range(5):
        np.linalg.eigvalsh(matrices)
        np.sort(np.sin(numbers))
        sum(divmod(number, 7)[1] for number in range(50_000))
    return time.process_time() - began


def cost(figure: Figure) -> dict[str, Any]:
    """Seconds and kernels of a figure."""
    known: dict[str, Any] = measured()["figures"].get(figure.id, UNKNOWN)
    return known


def jobs(todo: Sequence[Figure]) -> list[list[Figure]]:
    """Figures that share runs together: first what is soon done and compiles nothing, then the longest.

    So pictures come early, and no process has long work left when the others are done.
    """
    together: dict[str, list[Figure]] = {}
    for figure in todo:
        together.setdefault(figure.together or figure.id, []).append(figure)
    seconds = {name: sum(_alone(figure) for figure in group) for name, group in together.items()}
    soon = [name for name, group in together.items()
            if seconds[name] <= AT_ONCE and not any(cost(figure)["kernels"] for figure in group)]
    order = sorted(together, key=lambda name: (name not in soon, seconds[name] * (1 if name in soon else -1)))
    return [together[name] for name in order]


def _alone(figure: Figure) -> float:
    """Seconds of a figure that compiles all its kernels."""
    known = cost(figure)
    return float(known["seconds"] + measured()["compiling"] * len(known["kernels"]))


def expected(todo: Sequence[Figure], workers: int) -> tuple[float, float]:
    """Seconds that figures take here in so many processes, and those of them that compiling takes."""
    speed = calibration() / measured()["calibration"]
    at_once = min(workers, os.cpu_count() or 1)
    kernels = {name for figure in todo for name in cost(figure)["kernels"]}
    compiling = 0.0 if _is_warm() else measured()["compiling"] * len(kernels)
    whole = sum(cost(figure)["seconds"] for figure in todo) + compiling
    longest = max(sum(map(_alone if compiling else lambda one: cost(one)["seconds"], group))
                  for group in jobs(todo))
    return speed * max(whole / at_once, longest), speed * compiling / at_once


def _is_warm() -> bool:
    """Is compiled code kept from before?"""
    folder = cache_place()[0]
    return folder is not None and any(folder.glob("*/*run_rounds*.nbi"))


def told(todo: Sequence[Figure], workers: int) -> str:
    """What will be done, and how long that takes here."""
    seconds, compiling = expected(todo, workers)
    count = f"{len(todo)} figures" if len(todo) > 1 else "1 figure"
    compiled = f", {_words(compiling)} of it to compile, once" if compiling else ""
    return (f"{count} in {workers} process{'es' if workers > 1 else ''}: about {_words(seconds)} on this "
            f"machine{compiled}. Ctrl-C keeps what is done.")


def _words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def main(given: Sequence[str]) -> int:
    """Measure what figures cost; those named, or all."""
    line = argparse.ArgumentParser(prog="python -m reproduce costs", description=main.__doc__)
    line.add_argument("figures", nargs="*", metavar="figure", help="ids from --list; all when none is given")
    line.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # in this process, and print
    arguments = line.parse_args(given)
    todo = chosen(arguments.figures)
    if arguments.one:
        print(json.dumps(_measured_here(todo)))
        return 0
    known = json.loads(FILE.read_text(encoding="utf-8"))
    known["calibration"] = round(min(calibration() for _ in range(5)), 4)
    compiling: list[tuple[float, int]] = []
    for group in jobs(todo):
        own = _apart(group)
        known["figures"] |= own["figures"]
        compiling.append((own["compiling"], sum(len(one["kernels"]) for one in own["figures"].values())))
        seconds, kernels = np.sum(compiling, axis=0)
        if kernels:
            known["compiling"] = round(float(seconds / kernels), 2)
        known["figures"] = {name: known["figures"][name] for name in figures() if name in known["figures"]}
        FILE.write_text(store.to_json(known), encoding="utf-8")  # what is measured is not lost
        print(", ".join(f"{name} {one['seconds']:g} s" for name, one in own["figures"].items()), flush=True)
    return 0


def _apart(group: Sequence[Figure]) -> dict[str, Any]:
    """What figures cost in a new process in which nothing is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            [sys.executable, "-m", __package__, "costs", "--one", *(figure.id for figure in group)],
            env={**os.environ, "NUMBA_CACHE_DIR": folder}, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return found


def _measured_here(todo: Sequence[Figure]) -> dict[str, Any]:
    """Seconds and kernels of figures that are made in this process, and seconds of compiling."""
    from .run import make

    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for figure in todo:
            began, before = time.process_time(), len(compiled_here())
            make(figure, "quick", Path(folder))
            own = compiled_here()[before:]
            seconds = time.process_time() - began - sum(compiling for _, compiling in own)
            made[figure.id] = {"seconds": round(seconds, 1), "kernels": [name for name, _ in own]}
    return {"compiling": sum(seconds for _, seconds in compiled_here()), "figures": made}
