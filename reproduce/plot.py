"""Drawing parts shared by the figures: what each kind of curve looks like and is called."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import matplotlib
import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.text import Annotation, Text
from matplotlib.transforms import ScaledTranslation

from fedsim.laws.plots import BAND, BOUND, COLOURS, EXACT, FLOOR, GREY, bound, exact, floor, once, replicas

__all__ = ["BAND", "BOUND", "COLOURS", "COLOUR_OF", "EXACT", "FLOOR", "GREY", "WIDEST", "bound", "exact",
           "floor", "fold", "legend_below", "legend_for", "once", "panels", "replicas", "room", "shaded",
           "shades", "share_of", "sign", "style"]

T = TypeVar("T")
WIDEST = 12.5
"""Inches, of 96 pixels on a page: what is drawn at 9 points is then read at 9 points."""

COLOUR_OF = {
    # the four papers
    "FA-LD": COLOURS[0], "FA-HMC": COLOURS[1], "DE-SGLD": COLOURS[2], "DE-SGHMC": COLOURS[3],
    "stale SGLD": COLOURS[4], "recursion": COLOURS[1], "published bound": COLOURS[6],
    # FA-LD
    "all clients": COLOURS[6], "scheme I": COLOURS[1], "scheme II": COLOURS[0],
    # FA-HMC
    "algorithm 3": COLOURS[1], "section 5": COLOURS[3],
    # DE-SGLD and DE-SGHMC
    "average": COLOURS[0], "agents": COLOURS[1], "one agent": COLOURS[3],
    # stale gradients
}
"""What is no ordered value and stands in several figures has one colour; ordered values have `shades`."""

BESIDE = 0.6
"""Inches of ticks and label beside an axis."""
FOOT = 0.32
"""Inches of the line of verdicts below everything."""


@contextmanager
def style() -> Iterator[None]:
    """Inside it, everything is drawn in the house style."""
    with matplotlib.rc_context(fname=str(Path(__file__).with_name("style.mplstyle"))):
        yield


def panels(n_columns: int, width: float = 5.2, height: float = 4.2, n_rows: int = 1,
           **options: Any) -> tuple[Drawing, np.ndarray]:
    """A drawing with a row (or rows) of panels, laid out without overlap. Axes have shape (rows, columns).

    It is at most `WIDEST` inches wide: pages show it at this size.
    """
    drawing = Drawing(figsize=(min(width * n_columns, WIDEST), height * n_rows), layout="constrained")
    return drawing, drawing.subplots(n_rows, n_columns, squeeze=False, **options)


def shades(count: int) -> list[str]:
    """Colours for values in their order, from dark to light, so that print keeps the order too."""
    return [colors.to_hex(one) for one in matplotlib.colormaps["viridis"](np.linspace(0.0, 0.82, count))]


def shaded(values: Iterable[T]) -> Iterator[tuple[T, str]]:
    """Ordered values, each with its shade."""
    listed = list(values)
    return zip(listed, shades(len(listed)), strict=True)


def room(low: float, high: float, share: float = 0.26) -> tuple[float, float]:
    """Limits of a logarithmic axis that leave the upper `share` of it to the legend."""
    bottom, top = low / 1.6, high * 1.6
    return bottom, top * (top / bottom) ** (share / (1.0 - share))


def legend_below(ax: Axes, columns: int = 1, **options: Any) -> None:
    """A legend under the panel and the name of its axis, in which every name stands once.

    It has fewer columns, and its lines are broken, where it would be wider than the panel's share of the
    drawing. What stands under the axis has to be there already.
    """
    fold(ax.xaxis.label, share_of(ax) - BESIDE * ax.figure.dpi)
    under = ax.xaxis.get_tightbbox()
    drop = 0.5 if under is None else max(0.5, (ax.bbox.y0 - under.y0) / ax.figure.dpi + 0.06)
    lower = ScaledTranslation(0.0, -drop, ax.figure.dpi_scale_trans)
    look = {"loc": "upper center", "fontsize": 9, "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 0.0,
            "bbox_transform": ax.transAxes + lower, **options}
    for count in range(columns, 0, -1):
        once(ax, ncols=count, **look)
        legend = ax.get_legend()
        room = share_of(ax) - 0.6 * BESIDE * ax.figure.dpi  # its middle is the axis's
        if legend is None or legend.get_window_extent().width <= room:
            return
    for text in legend.get_texts() if legend else ():
        fold(text, room - 0.6 * ax.figure.dpi)  # beside its handle


def legend_for(axes: Iterable[Axes], columns: int = 4, last: Iterable[str] = (), **options: Any) -> None:
    """One legend of several panels, below all of them, in which every name stands once, some of them last."""
    listed = list(axes)
    drawing: Any = listed[0].figure
    named = {name: handle for ax in listed for handle, name in zip(*ax.get_legend_handles_labels(),
                                                                   strict=True)}
    named |= {name: named.pop(name) for name in last if name in named}
    foot = FOOT / drawing.get_figheight()
    for count in range(columns, 0, -1):
        legend = drawing.legend(named.values(), named.keys(), ncols=count, fontsize=9, loc="lower center",
                                bbox_to_anchor=(0.5, foot), borderaxespad=0.0, **options)
        if count == 1 or legend.get_window_extent().width <= 0.96 * drawing.bbox.width:
            break
        legend.remove()
    high = legend.get_window_extent().height / drawing.bbox.height + 0.2 * foot
    drawing.get_layout_engine().set(rect=(0.0, high, 1.0, 1.0 - high))


def share_of(ax: Axes) -> float:
    """Width of the part of the drawing that a panel has, in pixels."""
    place = ax.get_subplotspec()
    share = 1.0 if place is None else len(place.colspan) / place.get_gridspec().ncols
    return 0.96 * share * float(ax.figure.bbox.width)


def fold(text: Text, width: float) -> None:
    """Break a text into lines that are no wider, where it is; formulas and what they equal stay whole."""
    whole = re.sub(r"\$[^$]*\$| = ", lambda one: one[0].replace(" ", "\0"), text.get_text())
    lines = whole.split("\n")
    letters = max(map(len, lines))
    while text.get_window_extent().width > width and letters > 12:
        letters -= 2
        folded = [part for line in lines for part in textwrap.wrap(
            line, letters, break_long_words=False, break_on_hyphens=False)]
        text.set_text("\n".join(folded).replace("\0", " "))


def sign(drawing: Drawing, name: str, verdicts: str) -> None:
    """Name a finished drawing above its panels, and say the verdicts below them."""
    for ax in drawing.findobj(Axes):
        beside = BESIDE * ax.figure.dpi  # a title begins where the axis does
        left: Any = ax._left_title  # type: ignore[attr-defined]
        for text, room in ((ax.title, 0.0), (left, beside), (ax.xaxis.label, beside)):
            fold(text, share_of(ax) - room)
    own = drawing.get_suptitle()
    title = drawing.suptitle(name, fontsize=12, fontweight="bold", x=0.01, ha="left")
    fold(title, 0.97 * drawing.bbox.width)
    if own:  # below it in thinner letters, where blank lines keep the room
        below = Annotation(own, (0.0, 0.0), xycoords=title, fontsize=10, va="bottom")
        drawing.add_artist(below)
        fold(below, 0.97 * drawing.bbox.width)
        title.set_text(title.get_text() + "\n" * len(below.get_text().splitlines()))
    drawing.supxlabel(verdicts, fontsize=9.5, x=0.01, ha="left", color="#404040")
