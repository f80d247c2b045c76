"""What is stored of the benchmarks: the table and its cases, and no more."""

from __future__ import annotations

from tools.benchmarks.__main__ import HERE
from tools.benchmarks.cases import CASES
from tools.benchmarks.judge import ALLOWED
from tools.benchmarks.report import kept
from tools.benchmarks.stored import HEADER, load

ORDER = tuple(case.name for case in CASES)
STORED = ("results.json", "results.csv")


def test_what_is_stored_is_what_the_benchmarks_write(tmp_path):
    found = load(HERE)
    found.save(tmp_path)
    for name in STORED:
        assert (tmp_path / name).read_text() == (HERE / name).read_text(), "`make bench` writes it"
    assert list(found.cases) == [name for name in ORDER if name in found.cases]
    assert list(found.cases) == list(dict.fromkeys(row[0] for row in found.rows))
    assert all(len(row) == len(HEADER) for row in found.rows)
    assert 0 < found.statistics <= ALLOWED


def measured(case, ns, statistics):
    """As `report.record` gives it, of one program."""
    spread = dict.fromkeys(("median", "min", "max"), ns)
    row = {"case": case, "contestant": "fedsim", "threads": 1, "step": "step", "valid": True, "note": "",
           "failure": "", "ns_per_step": spread, "first_seconds": [0.1, 0.3, 0.2], "peak_megabytes": 7.4}
    return {"cases": {case: {"title": case.upper(), "statistics": statistics, "machine": {"cores": ns},
                             "versions": {}, "load_before_and_after": [0.0, 1.0]}}, "results": [row]}


def test_a_case_that_is_measured_again_takes_the_place_of_what_was_stored(tmp_path):
    kept(measured("b", 1.0, 10)).save(tmp_path)
    for again in (measured("a", 2.0, 20), measured("b", 3.0, 30)):
        load(tmp_path).joined(kept(again), ("a", "b")).save(tmp_path)
    found = load(tmp_path)
    assert found.rows == [("a", "fedsim", "step", "2", "1", "", "", "", "0.2", "7", ""),
                          ("b", "fedsim", "step", "3", "1", "", "", "", "0.2", "7", "")]
    assert found.statistics == 50 and found.cases["b"]["machine"] == {"cores": 3.0}
