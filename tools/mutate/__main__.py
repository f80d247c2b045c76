"""`python -m tools.mutate`: every fault in a copy of the project, and whether the tests see it.

Exit code 1 when a fault survives its tests, 2 when of one there is no verdict, or the tests fail without it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import ROOT, Fault, faults

LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "*.egg-info", "*.png",
                                  "build", "dist", ".hypothesis")
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
MEMORY = 8 * 2**30
VERDICTS = {0: "SURVIVED", 1: "caught"}
UNKNOWN = "NO VERDICT"


def bounded() -> None:
    """Bound the memory of this process and its tests: a fault may be that a limit is ignored."""
    try:
        import resource
    except ImportError:  # not on Unix
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if most < 0 else min(MEMORY, most), most))


def copied(folder: Path) -> Path:
    """A copy of the project in this folder."""
    return Path(shutil.copytree(ROOT, folder / "project", ignore=LEFT_OUT))


def run(tests: tuple[str, ...], root: Path, timeout: float, cache: Path | None) -> tuple[str, str]:
    """What pytest says of these tests in a copy: a verdict on the fault in it, and its last words."""
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    process = subprocess.Popen([*PYTEST, *tests], cwd=root, env=environment, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        words, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the session that was made for it, its workers too
        process.communicate()
        return UNKNOWN, f"stopped after {timeout:g} s"
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return VERDICTS.get(process.returncode, UNKNOWN), words


def judged(fault: Fault, timeout: float) -> tuple[str, str]:
    """The verdict on one fault, in a copy of its own with a compile cache of its own."""
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        root = copied(Path(folder))
        fault.apply(root)
        compiles = fault.file.startswith("fedsim/")
        return run(fault.tests, root, timeout, Path(folder) / "compiled" if compiles else None)


def sound(chosen: list[Fault], timeout: float) -> bool:
    """Do the tests pass without a fault? What they say of one would mean nothing otherwise."""
    with tempfile.TemporaryDirectory(prefix="no-fault-") as folder:
        root = copied(Path(folder))
        for tests in dict.fromkeys(fault.tests for fault in chosen):
            verdict, words = run(tests, root, timeout, None)
            if verdict != VERDICTS[0]:
                print(f"without a fault {' '.join(tests)} does not pass:\n{words}")
                return False
    return True


def main() -> int:
    """Judge the faults that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORDS",
                        help="faults with such a name or file")
    parser.add_argument("--timeout", type=float, default=900.0, metavar="SECONDS",
                        help="for the tests of a fault")
    parser.add_argument("--list", action="store_true", help="only show them")
    arguments = parser.parse_args()
    chosen = [fault for fault in faults()
              if any(words in f"{fault.name} {fault.file}" for words in arguments.only)]
    if arguments.list:
        print(*(f"{fault.file:45} {fault.name}: {' '.join(fault.tests)}" for fault in chosen), sep="\n")
        return 0
    bounded()
    if not chosen or not sound(chosen, arguments.timeout):
        return 2
    counts = dict.fromkeys((*VERDICTS.values(), UNKNOWN), 0)
    for fault in chosen:
        began = time.monotonic()
        verdict, words = judged(fault, arguments.timeout)
        counts[verdict] += 1
        print(f"{verdict:11}{time.monotonic() - began:6.0f} s  {fault.file}: {fault.name}", flush=True)
        if verdict == UNKNOWN:
            print(*(f"    {line}" for line in words.splitlines()[-8:]), sep="\n", flush=True)
    print(", ".join(f"{count} {verdict.lower()}" for verdict, count in counts.items()))
    return 1 if counts["SURVIVED"] else 2 if counts[UNKNOWN] else 0


if __name__ == "__main__":
    sys.exit(main())
