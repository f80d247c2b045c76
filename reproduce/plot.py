"""Drawing parts shared by the figures: what each kind of curve looks like and is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.transforms import ScaledTranslation

from fedsim.laws.drawing import BAND, BOUND, COLOURS, EXACT, FLOOR, GREY, bound, exact, floor, once, replicas

__all__ = ["BAND", "BOUND", "COLOURS", "EXACT", "FLOOR", "GREY", "bound", "exact", "floor", "legend_below",
           "once", "panels", "replicas", "room", "sign", "style"]

WIDEST = 12.5
"""Inches, of 96 pixels on a page: what is drawn at 9 points is then read at 9 points."""


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


def room(low: float, high: float, share: float = 0.26) -> tuple[float, float]:
    """Limits of a logarithmic axis that leave the upper `share` of it to the legend."""
    bottom, top = low / 1.6, high * 1.6
    return bottom, top * (top / bottom) ** (share / (1.0 - share))


def legend_below(ax: Axes, columns: int = 1, below: float | None = None, **options: Any) -> None:
    """A legend under the panel and the name of its axis, in which every name stands once.

    It is `below` panel heights under the panel; by default half an inch, whatever the height.
    """
    place: dict[str, Any] = {"bbox_to_anchor": (0.5, -(below or 0.0))}
    if below is None:
        half_inch = ScaledTranslation(0.0, -0.5, ax.figure.dpi_scale_trans)
        place |= {"bbox_transform": ax.transAxes + half_inch, "borderaxespad": 0.0}
    once(ax, **{"loc": "upper center", "ncols": columns, "fontsize": 9, **place, **options})


def sign(drawing: Drawing, name: str, verdicts: str) -> None:
    """Name a finished drawing above its panels, and say the verdicts below them."""
    own = drawing.get_suptitle()
    drawing.suptitle("\n".join(filter(None, (name, own))), fontsize=12, fontweight="bold", x=0.01, ha="left")
    drawing.supxlabel(verdicts, fontsize=9.5, x=0.01, ha="left", color="#404040")
