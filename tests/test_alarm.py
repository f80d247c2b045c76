"""The judge of random comparisons judges as declared."""

from pathlib import Path

import numpy as np
import pytest
from alarm import FALSE_ALARM, MARGIN, MAX_STATISTICS, P_LIMIT, Z_LIMIT, Alarm
from scipy import stats


def test_the_levels_add_up_to_the_declared_one():
    assert MAX_STATISTICS * 2.0 * stats.norm.sf(Z_LIMIT) == pytest.approx(FALSE_ALARM, rel=1e-9)
    assert MAX_STATISTICS * P_LIMIT == pytest.approx(FALSE_ALARM)


def test_limits_are_two_sided_and_counted():
    judge = Alarm()
    judge.assert_normal([[0.0, Z_LIMIT - 1e-9], [1.0, -Z_LIMIT + 1e-9]])
    judge.assert_pvalue(P_LIMIT * 1.001)
    judge.assert_student(Z_LIMIT, dof=5)  # ordinary for five degrees of freedom
    assert judge.count == 6
    for z in (Z_LIMIT + 1e-6, -Z_LIMIT - 1e-6):
        with pytest.raises(AssertionError, match=r"shift\[1\]"):
            judge.assert_normal([0.0, z], "shift")
    with pytest.raises(AssertionError, match="below"):
        judge.assert_pvalue(P_LIMIT * 0.999)
    with pytest.raises(AssertionError, match="below"):
        judge.assert_student(Z_LIMIT * 1.01, dof=10**7)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(bad):
    for judge in (Alarm().assert_normal, Alarm().assert_pvalue, Alarm().must_fail):
        with pytest.raises(AssertionError, match="not finite"):
            judge([0.5, bad])
    with pytest.raises(AssertionError, match="no statistic"):
        Alarm().assert_normal([])


def test_must_fail_needs_a_clear_margin():
    judge = Alarm()
    judge.must_fail([0.0, -MARGIN * Z_LIMIT * 1.001])
    assert judge.count == 0
    with pytest.raises(AssertionError, match="not caught"):
        judge.must_fail([Z_LIMIT * 1.01])


@pytest.mark.parametrize("extra, code", [(0, 0), (1, 1)])
def test_a_run_beyond_its_budget_fails(extra, code, pytester, monkeypatch):
    here = Path(__file__).parent
    pytester.makeconftest((here / "conftest.py").read_text())
    pytester.makepyfile(
        "import numpy as np\nfrom alarm import MAX_STATISTICS\n"
        f"def test_it(alarm):\n    alarm.assert_normal(np.zeros(MAX_STATISTICS + {extra}))\n")
    monkeypatch.setenv("PYTHONPATH", str(here))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == code
    result.stdout.fnmatch_lines([f"*random comparisons: {MAX_STATISTICS + extra} of {MAX_STATISTICS}*"])
