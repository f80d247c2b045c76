"""The picture of a report: numbers beside what they are compared with, and the bias by step size."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from fedsim.laws.plots import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .findings import Finding, Report

AGREES: dict[str, Any] = {"color": COLOURS[0], "marker": "o", "markerfacecolor": "white", "markersize": 7}
DIFFERS: dict[str, Any] = {"color": COLOURS[1], "marker": "s", "markersize": 7}
SMALLER: dict[str, Any] = {"color": COLOURS[4], "marker": "D", "markersize": 6}
COMPARED: dict[str, Any] = {"color": COLOURS[6], "linestyle": "--", "linewidth": 1.1}
WIDE = 0.12
"""Share of a row on each side of what has to be seen in it."""


def draw_report(report: Report) -> Figure:
    """A row for each finding that is compared with a number, and the variances by step size beside them."""
    rows = [one for one in report.findings if one.expected is not None and one.value is not None]
    if report.by_step_size:
        rows = [one for one in rows if one.about not in ("variance", "limit")]
    if not rows and not report.by_step_size:
        raise ValueError(f"the report {report.title!r} has no number that is compared with another")
    panels = bool(report.by_step_size) + bool(rows)
    figure = new_figure((4.4 * panels + 1.2, max(3.4, 0.9 * len(rows) + 1.6)))
    parts = list(figure.subfigures(1, panels, squeeze=False)[0])
    if report.by_step_size:
        _draw_steps(parts.pop(0).subplots(), report)
    if rows:
        all_axes = parts[0].subplots(len(rows), squeeze=False)[:, 0]
        for axes, one in zip(all_axes, rows, strict=True):
            _draw_row(axes, one)
        parts[0].suptitle("Numbers beside what they are compared with", fontsize=10)
    kinds = {"agrees": AGREES, "differs": DIFFERS}
    if report.by_step_size:
        kinds["biased by its step size"] = SMALLER
    lines = [figure.axes[0].plot([], [], label=label, **look)[0] for label, look in kinds.items()]
    lines += figure.axes[0].plot([], [], label="what it is compared with", **COMPARED)
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False, fontsize=9)
    figure.suptitle(textwrap.fill(report.title, 44 * panels + 10), fontsize=11)
    return figure


def _interval(ax: Axes, x: Any, y: Any, look: dict[str, Any], across: bool) -> None:
    """A marker at (x, y) and the line of its interval; x or y is (value, low, high)."""
    line = {"color": look["color"], "linewidth": 1.6, "solid_capstyle": "butt"}
    ends = ([x[1], x[2]], [y, y]) if across else ([x, x], [y[1], y[2]])
    ax.plot(*ends, **line)
    ax.plot(*(([x[0]], [y]) if across else ([x], [y[0]])), linestyle="none", **look)


def _draw_row(ax: Axes, one: Finding) -> None:
    """A finding in its own units, with the line of what it is compared with."""
    assert one.value is not None and one.expected is not None
    low, high = (one.value if end is None else end for end in (one.low, one.high))
    ax.axvline(one.expected, **COMPARED)
    _interval(ax, (one.value, low, high), 0.0, DIFFERS if one.differs else AGREES, True)
    seen = (low, high, one.value, one.expected)
    room = WIDE * max(max(seen) - min(seen), 0.02 * abs(one.expected), 1e-12)
    ax.set(xlim=(min(seen) - room, max(seen) + room), ylim=(-1, 1), yticks=[])
    told = f"{one.value:.4g}" + ("" if one.low is None else f" ({low:.4g} to {high:.4g})")
    ax.set_title(f"{one.label or one.about}: {told}", loc="left", fontsize=9)
    ax.tick_params(labelsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _draw_steps(ax: Axes, report: Report) -> None:
    """The stationary variance over the target's at each step size, and where it tends."""
    ax.axhline(1.0, **COMPARED)
    for size, *interval in report.by_step_size:
        _interval(ax, size, interval, SMALLER, False)
    limit = report["limit"]
    _interval(ax, 0.0, (limit.value, limit.low, limit.high), DIFFERS if limit.differs else AGREES, False)
    sizes = [0.0, *sorted(size for size, *_ in report.by_step_size)]
    ax.set_xticks(sizes, ["limit", *(f"{size:.3g}" for size in sizes[1:])])
    ax.set(xlabel="step size", ylabel="stationary variance / the target's",
           title="Bias of the variance by step size")
    ax.title.set_fontsize(10)
