"""What each file of tests may cost: seconds of the processor, with those of the processes that it starts.

Every run prints what was used. It fails only where a file took more than `FACTOR` times its budget, and
`LEEWAY` seconds more than it. Compiling has a budget of its own, for all files together: who needs a kernel
first pays for all, and who is first depends on the number of workers. Slow tests are not counted.

``pytest --seconds FILE`` appends what each test took to FILE, and ``python -m tests.budgets FILE`` makes
`budgets.json` of it; begin with an empty cache of compiled code, in the folder ``NUMBA_CACHE_DIR``.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("budgets.json")
ROOT = Path(__file__).resolve().parent.parent
COMPILING = "compiling"
FACTOR = 5.0
LEEWAY = 20.0
SHOWN = 10


def load() -> dict[str, float]:
    """Seconds by file, and of compiling."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def add(seconds: Counter[str], test: str, own: float, children: float, compiling: float) -> None:
    """Put what a test took to what its file took, without compiling, which is part of `own`."""
    seconds[test.partition("::")[0]] += own - compiling + children
    if compiling:
        seconds[COMPILING] += compiling


def beyond(seconds: Mapping[str, float], budgets: Mapping[str, float]) -> dict[str, float]:
    """What took so much that the run fails."""
    return {name: used for name, used in seconds.items() if name in budgets
            and used > max(FACTOR * budgets[name], budgets[name] + LEEWAY)}


def told(seconds: Mapping[str, float], budgets: Mapping[str, float]) -> list[str]:
    """The total, what was dearest, what is most above its budget, and what has none."""
    allowed = sum(budgets.get(name, 0.0) for name in seconds)
    lines = [f"seconds of the processor: {sum(seconds.values()):.0f} of {allowed:.0f} in the budgets"]
    dearest = sorted(seconds, key=lambda name: -seconds[name])[:SHOWN]
    above = {name: used - budgets.get(name, math.inf) for name, used in seconds.items()}
    over = [name for name in sorted(above, key=lambda name: -above[name]) if above[name] > 0.0]
    worst = [name for name in over[:SHOWN] if name not in dearest]
    for name in (*dearest, *worst):
        budget = f"of {budgets[name]:g}" if name in budgets else "no budget"
        lines.append(f"{seconds[name]:9.1f} {budget:>10}  {name}" + ", above" * (name in over))
    unknown = sorted(seconds.keys() - budgets.keys())
    if unknown:
        lines.append(f"without a budget in tests/budgets.json: {', '.join(unknown)}")
    return lines


class Compiling:
    """Seconds that numba has compiled in this process; a kernel's inner functions are part of it."""

    def __init__(self) -> None:
        self.seconds, self._mine, self._heard = 0.0, threading.local(), False

    def listen(self) -> None:
        """From when on numba is there: nothing is imported for this."""
        event = sys.modules.get("numba.core.event")
        if event is not None and not self._heard:
            self._heard = True
            event.Listener.register(Compiling)
            event.register("numba:compile", self)

    def notify(self, event: object) -> None:
        """Numba begins or ends compiling something."""
        depth = getattr(self._mine, "depth", 0) + (1 if event.is_start else -1)
        if event.is_start and depth == 1:
            self._mine.began = time.thread_time()
        elif depth == 0:
            self.seconds += time.thread_time() - self._mine.began
        self._mine.depth = depth


class Meter:
    """The plugin that measures, adds up over workers, prints and judges."""

    def __init__(self, config: pytest.Config) -> None:
        self.seconds: Counter[str] = Counter()
        self._config, self._compiling = config, Compiling()

    def _now(self) -> tuple[float, float, float]:
        times = os.times()
        return times.user + times.system, times.children_user + times.children_system, self._compiling.seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self._compiling.listen()
        before = self._now()
        result = yield
        if item.get_closest_marker("slow") is None:
            took = [late - early for early, late in zip(before, self._now(), strict=True)]
            add(self.seconds, item.nodeid, *took)
            if self._config.getoption("--seconds"):
                with open(self._config.getoption("--seconds"), "a", encoding="utf-8") as file:
                    file.write(json.dumps([item.nodeid, *took]) + "\n")
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        """Add what a pytest-xdist worker used."""
        self.seconds.update(getattr(node, "workeroutput", {}).get("seconds", {}))

    def pytest_sessionfinish(self, session):
        """Hand the seconds to the controller, or fail the run."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["seconds"] = dict(self.seconds)
        elif beyond(self.seconds, load()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        """The table, and what fails the run."""
        if self.seconds:
            budgets = load()
            for line in told(self.seconds, budgets):
                terminalreporter.write_line(line)
            for name, used in beyond(self.seconds, budgets).items():
                terminalreporter.write_line(
                    f"ERROR: {name} took {used:.1f} s of the processor, more than {FACTOR:g} times its "
                    f"{budgets[name]:g} s of tests/budgets.json", red=True)


def budgeted(lines: list[str], old: Mapping[str, float]) -> dict[str, float]:
    """The table from lines of ``--seconds``; a file they do not name keeps its budget while it exists."""
    seconds: Counter[str] = Counter()
    for line in lines:
        add(seconds, *json.loads(line))
    new: dict[str, float] = {name: max(1, math.ceil(used)) for name, used in seconds.items()}
    kept = {name: used for name, used in old.items() if (ROOT / name).is_file()}
    if kept.keys() - new.keys() and COMPILING in old:  # a part of the tests compiles a part
        new[COMPILING] = old[COMPILING]
    return dict(sorted((kept | new).items()))


def main(names: list[str]) -> None:
    """Rewrite budgets.json."""
    lines = [line for name in names for line in Path(name).read_text(encoding="utf-8").splitlines()]
    table = budgeted(lines, load() if TABLE.exists() else {})
    TABLE.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")
    print(f"{TABLE.name}: {len(table)} budgets, {sum(table.values()):g} s of the processor together")


if __name__ == "__main__":
    main(sys.argv[1:])
