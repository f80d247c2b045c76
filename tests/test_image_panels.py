"""Panels of the figures on images draw what the tables say, and mark what is ours."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from reproduce import plot
from reproduce.prediction import drawing
from reproduce.tables import among

SCORES = ("accuracy", "brier", "ece", "nll")
OURS = ("filled: tuned on validation rows (ours)", "exact posterior predictive (ours)")


def tables():
    """Two parts, settings 1 and 5, three runs, two step sizes: 0.5 is best in part a, 2.0 in part b."""
    curves, tuning, each = [], [], []
    for shift, part in enumerate("ab"):
        for setting in (1, 5):
            for number in (10, 20, 30):
                curves += [{"part": part, "setting": setting, "run": run, "round": number, **dict.fromkeys(
                    SCORES, 0.1 * setting + shift + number / 100 + (0.0, 0.01, 0.05)[run]),
                    "gradients": number * setting} for run in range(3)]
            for step in (0.5, 2.0):
                loss = 0.1 if (step < 1.0) == (part == "a") else 0.3
                ends = {"accuracy": 1.0 - loss, "brier": loss, "ece": loss, "nll": loss}
                tuning.append({"part": part, "setting": setting, "step": step, **ends})
                each += [{"part": part, "setting": setting, "step": step, "round": number, **{
                    name: value + number / 1000 for name, value in ends.items()}} for number in (10, 20)]
    facts = pd.DataFrame({"part": ["a", "b"], "exact_brier": [0.2, np.nan], "floor": 0.001})
    return {"curves": pd.DataFrame(curves), "tuning": pd.DataFrame(tuning),
            "tuning_curves": pd.DataFrame(each), "facts": facts}


@pytest.fixture
def ax():
    figure, made = plt.subplots()
    yield made
    plt.close(figure)


def drawn(ax):
    """Lines with data, by marker, colour of the marker and label."""
    return [line for line in ax.get_lines() if len(line.get_xdata())]


@pytest.mark.parametrize(("part", "best"), [("a", 0.5), ("b", 2.0)])
@pytest.mark.parametrize("score", ["accuracy", "brier"])
def test_scores_are_means_bands_and_the_best_tuned(ax, part, best, score):
    own = tables()
    drawing.scores(ax, own, part, score, "K", "figure 2: all")
    filled = [line for line in drawn(ax) if line.get_label().startswith("K = ")]
    hollow = [line for line in drawn(ax) if isinstance(line.get_markerfacecolor(), str)
              and line.get_markerfacecolor() == "white"]
    assert [line.get_label() for line in filled] == ["K = 1", "K = 5"] and len(hollow) == 2
    for setting, line, thin, band in zip((1, 5), filled, hollow, ax.collections, strict=True):
        curve = among(own["curves"], part=part, setting=setting).groupby("round")[score]
        np.testing.assert_allclose(line.get_ydata(), curve.mean(), rtol=1e-12)
        high = band.get_paths()[0].vertices[:, 1].max()
        assert high == pytest.approx((curve.mean() + curve.std(ddof=1)).max(), rel=1e-12)
        tuned = among(own["tuning_curves"], part=part, setting=setting, step=best)
        np.testing.assert_array_equal(thin.get_ydata(), tuned[score])
        assert thin.get_marker() == line.get_marker() and list(thin.get_color()) == list(line.get_color())
        assert thin.get_linewidth() >= 1.0
    labels = ax.get_legend_handles_labels()[1]
    assert OURS[0] in labels
    exact = part == "a" and score == "brier"
    assert (OURS[1] in labels) is exact
    if exact:
        line = drawn(ax)[-1]
        assert set(line.get_ydata()) == {0.2}


def test_computation_is_on_the_axis(ax):
    own = tables()
    drawing.against_gradients(ax, own, "b", "K", "by computation")
    assert [line.get_xdata().tolist() for line in drawn(ax)] == [[10, 20, 30], [50, 100, 150]]
    np.testing.assert_allclose(drawn(ax)[1].get_ydata(), 1.52 + np.array([0.1, 0.2, 0.3]), rtol=1e-12)


def test_distances_are_those_of_every_run(ax):
    own = tables() | {"distances": pd.DataFrame({"setting": [1, 1, 5, 5], "variation": [0.1, 0.2, 0.3, 0.4]})}
    drawing.variations(ax, own, "K")
    one, five, floor = drawn(ax)
    assert one.get_ydata().tolist() == [0.1, 0.2] and five.get_ydata().tolist() == [0.3, 0.4]
    assert set(floor.get_ydata()) == {0.001} and ax.get_title(loc="center").startswith("ours")


@pytest.mark.parametrize(("low", "high", "ticks"), [
    (0.04, 0.6, [0.05, 0.1, 0.2, 0.3, 0.5]), (0.01, 3.0, [0.01, 0.1, 1.0])])
def test_long_axes_keep_powers_of_ten(ax, low, high, ticks):
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    drawing.plain_ticks(ax)
    shown = [tick for tick in ax.get_yticks() if low <= tick <= high]
    np.testing.assert_allclose(shown, ticks, rtol=1e-12)


def test_panels_beside_each_other_have_one_axis():
    figure, (left, right) = plt.subplots(1, 2)
    for ax, values in ((left, (0.04, 0.2)), (right, (0.1, 0.7))):
        ax.plot(values)
        ax.set_ylabel("score")
        drawing.plain_ticks(ax)
    low, high = left.get_ylim()[0], right.get_ylim()[1]
    drawing.alike([left, right])
    plt.close(figure)
    assert left.get_ylim() == right.get_ylim() == (low, high)
    ticks = [0.05, 0.1, 0.2, 0.3, 0.5]
    for ax in (left, right):
        np.testing.assert_allclose([tick for tick in ax.get_yticks() if low <= tick <= high], ticks)
    assert (left.get_ylabel(), right.get_ylabel()) == ("score", "")
    assert left.yaxis.get_tick_params()["labelleft"] and not right.yaxis.get_tick_params()["labelleft"]


@pytest.mark.parametrize(("width", "columns"), [(9.0, 3), (3.6, 2), (2.6, 1)])
def test_one_legend_of_all_panels(width, columns):
    """Every name once, some last, in as many columns as fit, between the panels and the line at the foot."""
    with plot.style():
        figure, ((left, right),) = plot.panels(2, width / 2, 3.0)
        for ax, names in ((left, ("first", "last", "second")), (right, ("second", "third"))):
            for name in names:
                ax.plot([0, 1], label=f"the {name} line")
            ax.set_xlabel("round")
        plot.legend_for((left, right), 3, ["the last line", "never drawn"])
        plot.sign(figure, "", "verdicts")
        figure.draw_without_rendering()
        legend, = figure.legends
        box = legend.get_window_extent()
        lowest = min(ax.xaxis.label.get_window_extent().y0 for ax in (left, right))
        foot = figure._supxlabel.get_window_extent().y1
    plt.close(figure)
    assert [text.get_text() for text in legend.get_texts()] == [
        f"the {name} line" for name in ("first", "second", "third", "last")]
    assert legend._ncols == columns and foot <= box.y0 < box.y1 <= lowest
    assert box.x0 >= 0.0 and box.x1 <= figure.bbox.width
