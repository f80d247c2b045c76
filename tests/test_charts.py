"""The charts of the lecture notebooks: what they leave out, and that they can be read on both backgrounds."""

from __future__ import annotations

import json

import charts
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sampler_zoo import extra_sgld
from test_notebooks import NAMES, controls, first_run, moved, notebooks

import fedsim as fs
import theory

LIGHT, DARK = "#FFFFFF", "#333333"
"""The backgrounds on which marimo draws charts."""


def shown(picture):
    kind, text = picture._mime_()
    assert kind.startswith("application/vnd.vegalite")
    return json.loads(text)


@pytest.mark.parametrize(("log", "kept"), [("", 4), ("x", 3), ("y", 3), ("xy", 2)])
def test_what_has_no_place_is_left_out(log, kept):
    x, y = [0.0, 1.0, 2.0, 3.0, np.inf, 5.0], [1.0, 0.5, -1.0, 2.0, 1.0, np.nan]
    picture = charts.chart(charts.line("it", x, y, "#0072B2"), x="x", y="y", log=log)
    assert len(picture.rows) == kept
    assert [row["x"] for row in picture.rows] == sorted(row["x"] for row in picture.rows)
    shown(picture)


def test_a_rule_is_at_one_place():
    assert charts.rule("here", charts.GREY, x=2.0)["x"] == [2.0]
    for places in ({}, {"x": 1.0, "y": 2.0}):
        with pytest.raises(ValueError, match="a rule has one of them"):
            charts.rule("here", charts.GREY, **places)


def test_together_is_all_of_them():
    one, two = (charts.chart(charts.line(label, [0, 1], [size, 2 * size], "#0072B2"), x="x", y="y")
                for label, size in (("small", 1), ("large", 10)))
    both = charts.together(one, two)
    assert both.rows == one.rows + two.rows
    assert [part["layer"][0]["encoding"]["color"]["scale"]["domain"] for part in shown(both)["concat"]] == [
        ["small"], ["large"]]


def test_a_square_has_one_scale():
    wide = charts.square(charts.outline("it", [[0, 0], [4, 0], [4, 1], [0, 1]], "#0072B2"), x="x", y="y")
    scales = [shown(wide)["layer"][0]["encoding"][name]["scale"]["domain"] for name in ("x", "y")]
    assert np.ptp(scales[0]) == pytest.approx(np.ptp(scales[1])) and np.mean(scales[1]) == pytest.approx(0.5)
    assert wide.spec["width"] == wide.spec["height"]


def test_a_network_has_its_agents_and_edges():
    ring = np.eye(4) / 2 + np.roll(np.eye(4), 1, axis=0) / 4 + np.roll(np.eye(4), -1, axis=0) / 4
    picture = charts.network(ring, [1.0, 2.0, 3.0, 4.0], told="W2", marked={3: "#D55E00"})
    edges, agents, names = (layer["data"]["values"] for layer in shown(picture)["layer"])
    assert len(edges) == 4 and [one["agent"] for one in names] == [0, 1, 2, 3]
    assert [one["value"] for one in agents] == [1.0, 2.0, 3.0, 4.0]
    assert [one["rim"] for one in agents] == [charts.GREY] * 3 + ["#D55E00"]


def contrast(one, other):
    """By WCAG 2, from 1 to 21."""
    linear = [[c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
              for colour in (one, other)]
    light, dark = sorted((np.dot([0.2126, 0.7152, 0.0722], each) for each in linear), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@notebooks
def test_every_colour_is_seen_on_both_backgrounds(name):
    parts = shown(first_run(name)[0]["picture"])["concat"]
    used = {colour for part in parts for layer in part["layer"]
            for colour in layer["encoding"].get("color", {}).get("scale", {}).get("range", [])}
    assert len(used) >= 3
    assert not {colour for colour in used if min(contrast(colour, ground) for ground in (LIGHT, DARK)) < 2}
    assert contrast("#000000", DARK) < 2


@notebooks
def test_curves_of_a_chart_differ_without_colour_too(name):
    """By their dash; straight lines across the whole chart by that alone, and points by their label."""
    for part in shown(first_run(name)[0]["picture"])["concat"]:
        for layer in part["layer"]:
            looks = layer["encoding"].get("strokeDash")
            if layer["mark"]["type"] == "line" and looks:
                dashes = dict(zip(looks["scale"]["domain"], map(tuple, looks["scale"]["range"]), strict=True))
                labels = {row["label"] for row in layer["data"]["values"]}
                assert len({dashes[label] for label in labels}) == len(labels), labels


ELSEWHERE = {"heterogeneity": {"shared_noise": 1.0, "local_steps": 5},
             "leapfrog": {"local_steps": 5, "dim": 100}, "staleness": {"staleness": 2, "noise": 4.0},
             "gossip": {"step_size": 0.01, "n_agents": 7},
             "bound": {"local_steps": 2, "step_size": 1e-3, "n_rounds": 30},
             "own_algorithm": {"step_size": 0.05, "n_agents": 6}}


def ends_by_hand(name, problem, at):
    """Where each curve of a notebook's chart of laws ends, with its sliders there."""

    def end(algorithm, n_rounds):
        return theory.exact_law(problem, algorithm, n_rounds).w2()[-1]

    if name == "heterogeneity":
        return {label: end(fs.FALD(at["step_size"], k, shared_noise=at["shared_noise"]), 300)
                for label, k in ((f"K = {at['local_steps']}", at["local_steps"]), ("every step (K = 1)", 1))}
    if name == "leapfrog":
        return {f"K = {k}": end(fs.FAHMC(at["step_size"], k, at["local_steps"]), 200)
                for k in (at["leapfrog_steps"], 1)}
    if name == "staleness":
        return {label: end(fs.StaleSGLD(at["step_size"], staleness=tau), 600)
                for label, tau in ((f"staleness {at['staleness']}", at["staleness"]), ("fresh gradients", 0))}
    if name == "gossip":
        law, late = (theory.exact_law(problem, fs.DESGLD(at["step_size"], fs.network.ring(at["n_agents"])), n,
                                      record=[n]) for n in (400, 10_000))
        agents, in_the_end = ([one.w2()[-1] for one in each.clients] for each in (law, late))
        worst, best = int(np.argmax(in_the_end)), int(np.argmin(in_the_end))
        return {"average of all agents": law.w2()[-1], f"worst agent ({worst})": agents[worst],
                f"best agent ({best})": agents[best]}
    if name == "own_algorithm":
        law = theory.exact_law(problem, extra_sgld(step_size=at["step_size"], W=fs.network.ring(
            at["n_agents"])), 300)
        agents = [one.w2()[-1] for one in law.clients]
        worst = int(np.argmax(agents))
        return {"average of the clients": law.w2()[-1], f"worst client ({worst})": agents[worst]}
    algorithm, n_rounds = fs.FALD(at["step_size"], at["local_steps"]), at["n_rounds"]
    constants = theory.constants(problem, algorithm)
    promises = {"the theorem": theory.fa_ld.w2_bound, "its argument, step by step": theory.fa_ld.w2_recursion}
    return {"exact law": end(algorithm, n_rounds),
            **{label: bound(constants, algorithm, n_rounds=n_rounds).value[-1]
               for label, bound in promises.items()}}


@pytest.mark.parametrize(("name", "places"), [(name, places) for name in ELSEWHERE
                                          for places in ({}, ELSEWHERE[name])])
def test_curves_are_what_their_labels_say(name, places):
    defined = moved(name, **places)
    at = {key: one.value for key, one in controls(name).items()} | places
    expected = ends_by_hand(name, defined["problem"], at)
    part = next(part for part in shown(defined["picture"])["concat"]
                if "round" in part["title"] or "update by" in part["title"] or "promise" in part["title"])
    curves, = (layer for layer in part["layer"] if layer["mark"]["type"] == "line")
    drawn = {}
    for row in curves["data"]["values"]:
        assert row["x"] >= drawn.get(row["label"], row)["x"]
        drawn[row["label"]] = row
    assert {label: row["y"] for label, row in drawn.items()} == pytest.approx(expected, rel=1e-5)
    assert len(set(expected.values())) == len(expected)
    scales = {key: curves["encoding"][key]["scale"].get("type") for key in ("x", "y")}
    assert scales == {"x": None, "y": "log"}
    assert curves["encoding"]["y"]["title"] == "W2 to the posterior"


@notebooks
def test_legends_have_the_looks_that_were_asked_for(name):
    """A label has one colour and one dash, and each label that is drawn is in the legend."""
    for part in shown(first_run(name)[0]["picture"])["concat"]:
        for layer in part["layer"]:
            labels = {row["label"] for row in layer["data"]["values"] if "label" in row}
            for key in labels and set(layer["encoding"]) & {"color", "strokeDash"}:
                scale = layer["encoding"][key]["scale"]
                assert labels <= set(scale["domain"]) and len(scale["domain"]) == len(scale["range"])


def test_every_notebook_is_compared():
    assert set(ELSEWHERE) == set(NAMES)
