"""A small figure that is not in the package, for tests of the machinery."""

from types import SimpleNamespace

import pandas as pd

from reproduce import figure, plot
from reproduce.figure import EXACT, PASS, SCALES, ByScale, Claim, Figure, Parameter


def a_figure(**changes):
    """A small figure that is not in the package."""
    parameters = [Parameter("slope", ByScale(1.0, 2.0, 3.0), "ours", "a choice")]

    def compute(scale):
        slope = figure.settings(parameters, scale).slope
        return {"line": pd.DataFrame({"x": [0, 1], "y": [0.0, slope]})}

    def draw(tables):
        drawing, ((ax,),) = plot.panels(1)
        plot.exact(ax, tables["line"]["x"], tables["line"]["y"], plot.COLOURS[0])
        return drawing

    parts = {"TITLE": "a title", "PAPER": "ours", "SHOWS": "a line", "COST": dict.fromkeys(SCALES, "0 s"),
             "PARAMETERS": parameters, "compute": compute, "draw": draw,
             "CLAIMS": [Claim("It rises.", "nowhere", lambda tables: (PASS, "Because it does, as we see."),
                              name="rises", rests_on=EXACT)]}
    return Figure("a_figure", SimpleNamespace(**parts | changes))
