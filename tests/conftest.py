"""What every test shares: one thread of BLAS, no display, one false-alarm level, repeatable properties."""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported
os.environ.setdefault("MPLBACKEND", "Agg")

from pathlib import Path

import browser
import budgets
import fast
import pytest
from alarm import FALSE_ALARM, MAX_STATISTICS, Alarm
from hypothesis import settings

settings.register_profile("fedsim", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("fedsim")

LONGEST = ("naive_parity", "streams", "bits", "mutants", "figures", "templates", "same_bits", "custom",
           "figures_computed", "browser", "calibration", "custom_identity", "recursions", "limits")
"""Files that take long: processes that share the work begin with them, so that none ends alone."""

_ALARM = Alarm()
_OTHERS: list[int] = []  # counts of parallel workers, where there are any


def pytest_addoption(parser):
    """`--fast`, what `make test-fast` asks for, and where to write what each test took."""
    parser.addoption("--fast", action="store_true", help="only what tests/fast.py names: some of every room")
    parser.addoption("--seconds", metavar="FILE", help="append what each test took; see tests/budgets.py")


def pytest_configure(config):
    """Fixtures and a hook of tests that drive a browser, and what measures the seconds of files."""
    config.pluginmanager.register(browser)
    config.pluginmanager.register(budgets.Meter(config))


def pytest_ignore_collect(collection_path, config):
    """Read no file of which nothing is to be run."""
    if config.getoption("--fast") and collection_path.match("test_*.py"):
        path = _shown(collection_path)
        return None if any(start.partition("::")[0] == path for start in fast.starts()) else True
    return None


def _shown(path):
    return f"tests/{path.relative_to(Path(__file__).parent).as_posix()}"


def pytest_collection_modifyitems(config, items):
    """What takes longest comes first; with `--fast` only what `tests/fast.py` names is left."""
    rank = {f"test_{name}.py": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))
    if config.getoption("--fast"):
        left_out = [item for item in items if not fast.selected(item.nodeid)]
        items[:] = [item for item in items if fast.selected(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(name="alarm", scope="session")
def _alarm() -> Alarm:
    """The one judge of random comparisons; see `tests/alarm.py`."""
    return _ALARM


def _used() -> int:
    return _ALARM.count + sum(_OTHERS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Collect the count of a pytest-xdist worker."""
    _OTHERS.append(getattr(node, "workeroutput", {}).get("alarm", 0))


def pytest_sessionfinish(session, exitstatus):
    """Hand the count to the controller, or fail a run that compared more than it declared."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["alarm"] = _ALARM.count
    elif _used() > MAX_STATISTICS:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Say how much of the budget was used."""
    line = (f"random comparisons: {_used()} of {MAX_STATISTICS} allowed, "
            f"false-alarm level {FALSE_ALARM:g} for the whole run")
    if _used() > MAX_STATISTICS:
        terminalreporter.write_line(f"ERROR: {line}: declare a larger budget in tests/alarm.py", red=True)
    else:
        terminalreporter.write_line(line)
