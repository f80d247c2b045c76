"""Charts of the notebooks, as Vega-Lite: numbers are sent and not pixels, so that sliders answer at once.

marimo draws them in the browser. With matplotlib a picture takes some 0.2 s.
"""

from __future__ import annotations

import json

import numpy as np

SOLID, DASHED, DOTTED = [1, 0], [7, 4], [2, 3]
TEXT = {"labelFontSize": 12, "titleFontSize": 13}
GREY, PURPLE = "#757575", "#9467BD"  # seen on white and on black
MARKS = {  # the points of a mere line are seen by the pointer alone
    "rule at x": {"type": "rule", "strokeWidth": 1.3},
    "rule at y": {"type": "rule", "strokeWidth": 1.3},
    "outline": {"type": "line", "strokeWidth": 2},
    "line": {"type": "line", "strokeWidth": 2, "point": {"size": 120, "opacity": 0}},
    "line with points": {"type": "line", "strokeWidth": 2, "point": {"size": 45, "opacity": 1}},
    "points": {"type": "circle", "size": 60, "opacity": 1},
}
FRAMELESS = {"view": {"stroke": None}}


class Chart:
    """A Vega-Lite specification that marimo shows."""

    def __init__(self, spec):
        self.spec = spec

    def _mime_(self):
        spec = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", **self.spec}
        return "application/vnd.vegalite.v6+json", json.dumps(spec, allow_nan=False)

    @property
    def rows(self):
        """What is drawn: the rows of every layer, of every chart in it."""
        parts = self.spec.get("concat", [self.spec])
        return [row for part in parts for layer in part["layer"] for row in layer["data"]["values"]]


def line(label, x, y, colour, *, dash=SOLID, points=False, joined=True):
    """A curve through the points (x, y), or with joined=False the points alone."""
    kind = ("line with points" if points else "line") if joined else "points"
    return {"kind": kind, "label": label, "colour": colour, "dash": dash,
            "x": np.asarray(x, float), "y": np.asarray(y, float)}


def outline(label, points, colour, *, dash=SOLID):
    """A closed curve through points (n, 2)."""
    return line(label, *np.transpose(points), colour, dash=dash) | {"kind": "outline"}


def rule(label, colour, *, x=None, y=None, dash=SOLID):
    """A straight line across the whole chart, at one x or at one y."""
    if (x is None) == (y is None):
        raise ValueError(f"x={x!r}, y={y!r}: a rule has one of them")
    name, at = ("x", x) if y is None else ("y", y)
    return {"kind": f"rule at {name}", "label": label, "colour": colour, "dash": dash,
            name: np.array([at], float)}


def words(texts, x, y, *, bold=()):
    """Short texts above the points (x, y), some of them in bold."""
    rows = [{"x": float(a), "y": float(b), "text": text} for text, a, b in zip(texts, x, y, strict=True)]
    return {"rows": rows, "bold": list(bold)}


def chart(*drawn, x, y, log="", title="", width=400, height=280, x_domain=None, y_domain=None):
    """Lines, rules and words on the same axes, with a legend below.

    Parameters
    ----------
    *drawn : results of `line`, `rule` and `words`
        Those with the same label are one entry of the legend.
    x, y : str
        What the axes are.
    log : str
        The axes that are logarithmic: "", "x", "y" or "xy". What has no logarithm is left out.
    x_domain, y_domain : pair of float, optional
        The ends of the axes, instead of those of the data.
    """
    lines = [one for one in drawn if "label" in one]
    axes = {"x": _axis("x", x, log, x_domain), "y": _axis("y", y, log, y_domain)}
    layers = []
    for kind, mark in MARKS.items():
        rows = [row | {"part": part} for part, one in enumerate(lines) if one["kind"] == kind
                for row in _rows(one, log)]
        if rows:
            layers.append({"mark": mark, "data": {"values": rows}, "encoding": {
                **{name: axis for name, axis in axes.items() if name in rows[0]},
                **_looks(lines, dashes=kind != "points"),
                **({"order": {"field": "turn", "type": "quantitative"}, "detail": {"field": "part"}}
                   if "line" in kind else {}),
                "tooltip": [{"field": "label", "title": " "}, *(
                    {"field": name, "type": "quantitative", "title": told, "format": ".4~g"}
                    for name, told in (("x", x), ("y", y)) if name in rows[0])],
            }})
    for one in drawn:
        if "rows" in one:
            for chosen in (True, False):
                rows = [row for row in one["rows"] if (row["text"] in one["bold"]) == chosen]
                mark = {"type": "text", "dy": -14, "fontSize": 12, "color": GREY,
                        "fontWeight": "bold" if chosen else "normal"}
                layers.append({"mark": mark, "data": {"values": rows},
                               "encoding": {**axes, "text": {"field": "text"}}})
    return Chart({"title": title, "width": width, "height": height, "layer": layers})


def network(mixing, values, *, told, marked, title="the network", size=280):
    """Agents on a circle, joined where they talk, the darker the larger their value.

    Parameters
    ----------
    mixing : array, (N, N)
    values : array, (N,)
    told : str
        What the values are.
    marked : dict
        The agents with a coloured rim, and their colours.
    """
    angle = 2 * np.pi * np.arange(len(values)) / len(values)
    at = [(_short(np.sin(one)), _short(np.cos(one))) for one in angle]
    edges = [{"x": at[i][0], "y": at[i][1], "x2": at[j][0], "y2": at[j][1]}
             for i, j in zip(*np.nonzero(np.triu(mixing, 1)), strict=True)]
    agents = [{"x": x, "y": y, "agent": i, "value": _short(values[i]), "rim": marked.get(i, GREY),
               "width": 4 if i in marked else 0.5} for i, (x, y) in enumerate(at)]
    axes = {name: {"field": name, "type": "quantitative", "axis": None, "scale": {"domain": [-1.3, 1.3]}}
            for name in ("x", "y")}
    shade = {"field": "value", "type": "quantitative", "title": told,
             "scale": {"scheme": "blues", "domain": [float(min(values)) / 2, float(max(values))]},
             "legend": {"orient": "bottom", "gradientLength": 250, "titleLimit": 0, "format": ".3g", **TEXT}}
    asked = [{"field": "agent"}, {"field": "value", "title": told, "format": ".3g"}]
    dots = {"type": "circle", "size": 350, "opacity": 1}
    layers = [
        {"mark": {"type": "rule", "color": GREY, "strokeWidth": 0.8}, "data": {"values": edges},
         "encoding": {**axes, "x2": {"field": "x2"}, "y2": {"field": "y2"}}},
        {"mark": dots, "data": {"values": agents}, "encoding": {
            **axes, "color": shade, "tooltip": asked, "stroke": {"field": "rim", "scale": None},
            "strokeWidth": {"field": "width", "type": "quantitative", "scale": None}}},
        {"mark": {"type": "text", "fontSize": 12, "color": GREY},
         "data": {"values": [one | {"x": 1.18 * one["x"], "y": 1.18 * one["y"]} for one in agents]},
         "encoding": {**axes, "text": {"field": "agent"}}},
    ]
    return Chart({"title": title, "width": size, "height": size, "layer": layers, **FRAMELESS})


def square(*lines, x, y, title=""):
    """Lines in a plane whose two axes have the same scale."""
    ends = np.array([[one[name].min(), one[name].max()] for one in lines for name in ("x", "y")])
    low, high = ends.reshape(-1, 2, 2)[..., 0].min(axis=0), ends.reshape(-1, 2, 2)[..., 1].max(axis=0)
    half = 0.53 * (high - low).max()
    domains = [((a + b) / 2 - half, (a + b) / 2 + half) for a, b in zip(low, high, strict=True)]
    return chart(*lines, x=x, y=y, title=title, width=280, x_domain=domains[0], y_domain=domains[1])


def together(*charts):
    """Several charts, two in a row, each with its own legend: one picture is drawn faster than several."""
    own = dict.fromkeys(("color", "strokeDash"), "independent")
    specs = [one.spec for one in charts]
    return Chart({"concat": specs, "columns": 2, "spacing": 30, "resolve": {"scale": own}})


def _looks(lines, dashes):
    """One colour and one dash for each label."""
    labels = {one["label"]: one for one in lines}
    joined = any(one["kind"] != "points" for one in lines)
    legend = {"orient": "bottom", "columns": 2, "labelLimit": 0, "labelFontSize": 12, "symbolStrokeWidth": 2,
              "symbolType": "stroke" if joined else "circle", "symbolSize": 500 if joined else 60}
    looks = {"color": {"field": "label", "title": None, "legend": legend, "scale": {
        "domain": list(labels), "range": [one["colour"] for one in labels.values()]}}}
    if dashes:
        looks["strokeDash"] = {"field": "label", "title": None, "scale": {
            "domain": list(labels), "range": [one["dash"] for one in labels.values()]}}
    return looks


def _axis(name, title, log, domain):
    power = "datum.label && datum.value < 1e-3 ? format(datum.value, '~e') : datum.label"
    short = {"format": "~g", "labelExpr": power}
    scale, written = ({"type": "log"}, short) if name in log else ({"zero": False}, {})
    if domain is not None:
        scale["domain"] = [float(end) for end in domain]
    return {"field": name, "type": "quantitative", "title": title, "scale": scale,
            "axis": {"grid": False, "labelOverlap": True, "tickCount": 6, **TEXT, **written}}


def _rows(one, log):
    """The points of a line that have a place: finite, and on a logarithmic axis positive."""
    names = [name for name in ("x", "y") if name in one]
    at = np.column_stack([one[name] for name in names])
    kept = np.isfinite(at).all(axis=1) & np.all([at[:, i] > 0 for i, name in enumerate(names) if name in log]
                                                or True, axis=0)
    return [dict(zip(names, map(_short, point), strict=True), label=one["label"], turn=turn)
            for turn, point in enumerate(at[kept])]


def _short(number):
    """As many digits as can be seen, because what is long is sent slowly."""
    return float(f"{number:.6g}")
