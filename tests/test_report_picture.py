"""The picture of a report about a kernel: what is drawn is what was found."""

import json
import sys

import numpy as np
import pytest

import fedsim as fs
import theory
from theory.testing import Finding, Report

PROBLEM = fs.Quadratic([[[2.0, 0.0], [0.0, 1.0]]], [[1.0, 0.0]])


def maker(step_size, temperature=1.0, batch_size=10):
    def kernel(seed, x):
        noise = np.random.default_rng(seed).normal(size=2)
        part = batch_size / 10
        return x - step_size * part * PROBLEM.gradient(0, x) + np.sqrt(step_size * temperature) * noise
    return kernel


@pytest.fixture(scope="module")
def found():
    return theory.testing.report(maker, PROBLEM, step_size=0.1, batch_size=[5, 10], n_draws=2000)


def markers(axes):
    return {(line.get_marker(), *np.round([line.get_xdata()[0], line.get_ydata()[0]], 9))
            for line in axes.lines if line.get_marker() in "osD" and len(line.get_xdata())}


def test_what_is_drawn_is_what_was_found(found):
    steps, *rows = found.plot().axes
    limit = found["limit"]
    assert [one[0] for one in found.by_step_size] == [0.1, 0.05, 0.025]
    expected = {("D", *np.round(one[:2], 9)) for one in found.by_step_size}
    assert markers(steps) == expected | {("s", 0.0, round(limit.value, 9))} and limit.differs
    bars = {tuple(np.round(line.get_ydata(), 9)) for line in steps.lines if len(line.get_ydata()) == 2}
    assert {(round(one[2], 9), round(one[3], 9)) for one in found.by_step_size} <= bars
    compared = [one for one in found.findings if one.about in ("mean", "temperature", "batch_size")]
    assert len(rows) == len(compared) == 3 and {one.differs for one in compared} == {True, False}
    for axes, one in zip(rows, compared, strict=True):
        assert axes.get_title(loc="left").startswith(f"{one.label}: {one.value:.4g} ({one.low:.4g} to ")
        assert markers(axes) == {("s" if one.differs else "o", round(one.value, 9), 0.0)}
        assert one.expected in [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]
        low, high = axes.get_xlim()
        assert low < min(one.low, one.expected) <= max(one.high, one.expected) < high


def test_the_values_by_step_size_are_those_of_probes(found):
    for size, value, low, high in found.by_step_size:
        ratio = theory.testing.probe(maker(size), PROBLEM, n_draws=2000).variance_ratio()
        assert (value, low, high) == pytest.approx(tuple(ratio), abs=1e-12)
    assert json.loads(found.to_json())["by_step_size"] == [list(one) for one in found.by_step_size]


def test_the_legend_names_what_is_there(found):
    def names(report):
        return [text.get_text() for text in report.plot().legends[0].get_texts()]

    assert names(found) == ["agrees", "differs", "biased by its step size", "what it is compared with"]
    noise = Report("b", (Finding("noise", "The noise is 2 times that of a.", True, 2.0, expected=1.0),))
    assert names(noise) == ["agrees", "differs", "what it is compared with"]
    assert noise.plot().axes[0].get_title(loc="left") == "noise: 2"


def test_without_numbers_there_is_nothing_to_draw(monkeypatch):
    empty = Report("b", (Finding("reach", "Whether the target is reached is not looked at."),))
    with pytest.raises(ValueError, match="the report 'b' has no number that is compared"):
        empty.plot()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"fedsim-theory\[plot\]"):
        Report("b", (Finding("noise", "", True, 2.0, expected=1.0),)).plot()
