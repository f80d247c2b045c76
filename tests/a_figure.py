"""What is true of every figure, and a small one that is not in the package, for tests of the machinery."""

import json
import re
from types import SimpleNamespace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.text import Text

from reproduce import figure, plot, store
from reproduce.discovery import figures
from reproduce.figure import EXACT, PASS, SCALES, ByScale, Claim, Figure, Parameter
from reproduce.verdicts import BASES, CLAIM_WORDS, FINDING_WORDS

ENDINGS = ("csv", "json", "svg")


def made():
    """Figures that are committed, by id: all, or `test_every_figure_is_made` names those that are not."""
    return {name: one for name, one in figures().items()
            if all((store.FOLDER / f"{name}.{ending}").exists() for ending in ENDINGS)}


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


def assert_storable(tables, folder, name):
    """Nothing is empty or NaN, and what is stored in the folder is these tables."""
    assert tables
    for key, table in tables.items():
        assert len(table) > 0, key
        numbers = table.select_dtypes("number")
        assert not numbers.isna().any().any(), f"{name}: NaN in table {key}"
    stored = store.load_tables(folder, name)
    assert store.differences(stored, tables) == []
    assert store.to_csv(stored) == (folder / f"{name}.csv").read_text()


def assert_reasoned(record):
    """Everything said has a word, a reason in a sentence and a source."""
    judged = record["claims"] + record["findings"]
    assert judged or record["unjudged"]
    for items, words in ((record["claims"], CLAIM_WORDS), (record["findings"], FINDING_WORDS)):
        for item in items:
            assert item["verdict"] in words and item["rests_on"] in BASES
            assert len(item["why"]) > 20 and item["why"].endswith(".")
            assert "nan" not in item["why"].lower().split()
            assert not re.search(r"\d0?e-(1[5-9]|[2-9]\d)|\b0e\+00", item["why"]), "rounding is no number"
    for item in record["claims"] + record["unjudged"]:
        assert item["source"] and not item["source"].startswith("ours")
    for item in record["findings"]:
        assert not item["text"].startswith("ours")
    for item in judged + record["unjudged"]:
        assert item["name"].isidentifier()
    for item in record["parameters"]:
        assert item["origin"] in ("paper", "ours")
        assert item["origin"] == "paper" or item["reason"]


def assert_of_no_machine(folder, name, scale):
    """No path of this machine is written; the scale is."""
    text = (folder / f"{name}.json").read_text() + (folder / f"{name}.csv").read_text()
    assert str(folder) not in text and str(store.FOLDER.parent) not in text
    assert json.loads((folder / f"{name}.json").read_text())["scale"] == scale


def assert_readable(drawing):
    """At the size that pages show: legends hide no data, stay in the picture, and have 9 points or more."""
    assert drawing.get_size_inches()[0] <= plot.WIDEST
    whole, panels = drawing.bbox, [ax for ax in drawing.findobj(Axes) if ax.axison]
    inside = [ax.get_window_extent() for ax in panels]
    for ax in panels:
        for text in (ax.title, ax._left_title, ax.xaxis.label):
            box = text.get_window_extent()
            assert not text.get_text() or (box.x0 >= whole.x0 and box.x1 <= whole.x1), text
    for text in drawing.findobj(Text):
        assert not text.get_text().strip() or not text.get_visible() or text.get_fontsize() >= 9, text
    for legend in drawing.findobj(Legend):
        box = legend.get_window_extent()
        assert whole.x0 - 1 <= box.x0 and box.x1 <= whole.x1 + 1 and whole.y0 - 1 <= box.y0, (
            [text.get_text() for text in legend.get_texts()])
        labels = [ax.xaxis.label.get_window_extent() for ax in panels if ax.get_xlabel()]
        for panel in inside + labels:
            wide = min(box.x1, panel.x1) - max(box.x0, panel.x0)
            high = min(box.y1, panel.y1) - max(box.y0, panel.y0)
            assert wide <= 1 or high <= 1, [text.get_text() for text in legend.get_texts()]
