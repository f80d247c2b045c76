"""What a bound and a verdict look like."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsim.laws import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_bound(bound: Any, ax: Axes | None) -> Axes:
    """A bound against rounds, with its terms where it has several, and the distance at the start."""
    axes = plots.new_axes(ax)
    plots.bound(axes, bound.rounds, bound.value, bound.is_vacuous, not bound.hypotheses_hold, bound.source)
    for number, (name, part) in enumerate(bound.terms.items() if len(bound.terms) > 1 else ()):
        axes.plot(bound.rounds, part, color=plots.COLOURS[number % 6], linewidth=1.1, label=f"term: {name}",
                  marker="os^Dv"[number % 5], markersize=3, markevery=max(1, len(bound.rounds) // 8))
    if bound.start_distance is not None:
        plots.floor(axes, bound.start_distance, "distance at the start")
    axes.set(xlabel=f"{bound.index.replace('_', ' ')}s", ylabel=bound.quantity)
    plots.finish(axes, int(bound.rounds[-1]))
    return axes


def draw_verdict(verdict: Any, ax: Axes | None) -> Axes:
    """Bound and exact quantity at the rounds compared; the round that decides is marked."""
    if verdict.compared is None:
        raise ValueError("compared=None: a verdict made by hand has nothing to draw; use theory.check")
    (rounds, limit, value), bound, axes = verdict.compared, verdict.bound, plots.new_axes(ax)
    plots.bound(axes, rounds, limit, bound.is_vacuous, not bound.hypotheses_hold, bound.source)
    plots.exact(axes, rounds, value, plots.COLOURS[0], f"{bound.quantity}, exact or of replicas")
    marked = verdict.worst_round if verdict.holds else verdict.first_violation
    what = f"tightest: ratio {verdict.tightness:.3g}" if verdict.holds else "first violation"
    place = int(np.searchsorted(rounds, marked))
    axes.plot(rounds[place], value[place], "o", color=plots.COLOURS[1],
              label=f"{what}, {bound.index} {marked}")
    axes.set(xlabel=f"{bound.index.replace('_', ' ')}s", ylabel=bound.quantity)
    axes.set_title("\n".join(wrap(verdict.message, 72)), fontsize=9)
    plots.finish(axes, int(rounds[-1]))
    return axes
