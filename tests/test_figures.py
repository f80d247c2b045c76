"""The figures: every one as it is committed, and the machinery that stores, draws, checks and lists them.

That a fresh computation gives what is committed is said by `python -m reproduce --check`, once for all of CI;
`test_figures_computed.py` computes at the tiny scale.
"""

import itertools
import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from a_figure import (
    ENDINGS,
    a_figure,
    assert_of_no_machine,
    assert_readable,
    assert_reasoned,
    assert_storable,
    made,
)
from matplotlib.figure import Figure as Drawing

from reproduce import command, figure, gallery, picture, run, store
from reproduce.discovery import figures
from reproduce.figure import EXACT, FAIL, PASS, Claim, Finding, Parameter, Unjudged
from reproduce.verdicts import DOES_NOT_HOLD

FIGURES, MADE = figures(), made()


@pytest.fixture(scope="module", name="stored")
def _stored(tmp_path_factory):
    """A copy of what is committed of every figure."""
    folder = tmp_path_factory.mktemp("figures")
    for name, ending in itertools.product(MADE, ENDINGS):
        shutil.copy(store.FOLDER / f"{name}.{ending}", folder)
    return folder


def test_a_missing_extra_is_named():
    """What draws is an extra: the command line says which, in one sentence."""
    code = ("import runpy, sys\nsys.modules['matplotlib'] = None\n"
            "runpy.run_module('reproduce', run_name='__main__', alter_sys=True)")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                           cwd=store.FOLDER.parent)
    assert ended.returncode == 1 and ended.stderr.startswith("error: matplotlib is not installed")
    assert "figures" in ended.stderr and len(ended.stderr.splitlines()) == 1


def test_every_figure_is_made():
    assert not [f"figure {name} is not made: python -m reproduce {name}"
                for name in FIGURES if name not in MADE]


def test_the_fa_ld_figures_are_found_in_order():
    ids = [name for name in FIGURES if name.startswith("fa_ld_fig")]
    assert ids == ["fa_ld_fig1a", "fa_ld_fig1b", "fa_ld_fig1c", "fa_ld_fig1de", "fa_ld_fig2_4", "fa_ld_fig3a",
                   "fa_ld_fig3b", "fa_ld_fig3c", "fa_ld_fig3d", "fa_ld_fig3e"]


@pytest.mark.parametrize("name", MADE)
def test_tables_are_finite_and_survive_storing(stored, name):
    assert_storable(store.load_tables(stored, name), stored, name)


@pytest.mark.parametrize("name", MADE)
def test_everything_said_is_judged_with_reasons(stored, name):
    assert_reasoned(store.load_record(stored, name))


def test_a_claim_that_is_counted_elsewhere_is_counted_there():
    """Under its name, or under that of which it is a case."""
    for one in FIGURES.values():
        for item in one.judged:
            if getattr(item, "counted_in", ""):
                there = [other.name for other in FIGURES[item.counted_in].judged
                         if not getattr(other, "counted_in", "")]
                assert item.counted_in != one.id
                assert any(set(name.split("_")) <= set(item.name.split("_")) for name in there), (
                    f"{one.id}.{item.name}: not counted in {item.counted_in}")


@pytest.mark.parametrize("name", MADE)
def test_drawing_needs_the_tables_only(stored, name, monkeypatch):
    one, drawings = FIGURES[name], []
    draw = one.module.draw

    def refuse(scale):
        raise AssertionError("drawing must not compute")

    def kept(tables):
        drawings.append(draw(tables))
        return drawings[-1]

    monkeypatch.setattr(one.module, "compute", refuse)
    monkeypatch.setattr(one.module, "draw", kept)
    run.redraw(one, "quick", stored, wish=run.Wish(formats=("png",)))
    assert (stored / f"{name}.png").stat().st_size > 5_000
    drawing, = drawings
    assert isinstance(drawing, Drawing)
    panels = [ax for ax in drawing.axes if ax.get_label() != "<colorbar>" and ax.axison]
    assert panels and all(ax.get_xlabel() for ax in panels)
    assert any(ax.get_ylabel() for ax in panels) and all(ax.get_title(loc="left") for ax in panels)
    assert_readable(drawing)
    assert_of_no_machine(stored, name, "quick")


def test_check_compares_reasons_verdicts_and_parameters(tmp_path):
    one = a_figure()
    run.make(one, "tiny", tmp_path)
    assert run.check(one, "tiny", tmp_path) == []
    claim = one.module.CLAIMS[0]
    for changes, words in (
            ({"CLAIMS": [replace(claim, judge=lambda tables: (PASS, "We see it so."))]}, "We see it so"),
            ({"CLAIMS": [replace(claim, judge=lambda tables: (FAIL, "It does not."))]}, "'FAIL'"),
            ({"CLAIMS": []}, "claims: stored"), ({"SHOWS": "another line"}, "shows: stored"),
            ({"CLAIMS": [claim, Finding("It falls.", "", lambda tables: (FAIL, "No."), name="falls",
                                        rests_on=EXACT)]}, "findings: stored"),
            ({"PARAMETERS": [replace(one.module.PARAMETERS[0], reason="another")]}, "parameters: stored")):
        found = run.check(a_figure(**changes), "tiny", tmp_path)
        assert found and words in found[0], found


def test_check_judges_the_fresh_numbers(tmp_path):
    """A verdict that turns within the tolerance of the numbers is a difference too."""
    def judge(tables):
        return (PASS if tables["line"]["y"].iloc[1] <= 2.0 else FAIL), "As the line says."

    said = [Claim("It is low.", "nowhere", judge, name="low", rests_on=EXACT),
            Finding("It is low.", "", judge, name="low_too", rests_on=EXACT)]
    one = a_figure(CLAIMS=said)
    run.make(one, "quick", tmp_path)
    assert run.check(one, "quick", tmp_path) == []
    tables = {"line": one.compute("quick")["line"] * (1 + 1e-8)}
    found = run.check(one, "quick", tmp_path, done=(tables, 0.0))
    assert len(found) == 2 and all("fresh" in text for text in found)


@pytest.mark.parametrize("name", MADE)
def test_what_is_committed_is_what_the_code_says(name):
    stored = store.load_record(store.FOLDER, name)
    fresh = run.record(FIGURES[name], store.load_tables(store.FOLDER, name), "quick", stored.get("files", ()))
    assert json.loads(store.to_json(fresh)) == stored, f"python -m reproduce {name} --draw"


def test_the_committed_pages_are_up_to_date():
    made = gallery.pages(store.FOLDER, "quick")
    for name, text in made.items():
        assert (store.FOLDER / name).read_text(encoding="utf-8") == text, "python -m reproduce gallery"
    assert {path.name for path in store.FOLDER.glob("*.html")} <= set(made)


def test_rounding_changes_no_file(tmp_path):
    """Another processor's last digits are not worth a changed file; a real change is."""
    one = a_figure()
    tables = one.compute("quick")
    run.publish(one, tables, "quick", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    run.publish(one, {"line": tables["line"] * (1 + 1e-9)}, "quick", tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    run.publish(one, {"line": tables["line"] * (1 + 1e-5)}, "quick", tmp_path)
    assert (tmp_path / "a_figure.csv").read_bytes() != before["a_figure.csv"]


def test_findings_have_words_of_their_own(tmp_path):
    said = [Finding("It rises.", "", lambda tables: (FAIL, "It falls."), name="rises", rests_on=EXACT),
            Unjudged("It is blue.", "figure 1", "Nobody can tell.", name="blue")]
    one = a_figure(CLAIMS=said)
    result, _ = run.make(one, "tiny", tmp_path)
    assert [item["verdict"] for item in result["findings"]] == [DOES_NOT_HOLD] and result["claims"] == []
    assert run.verdict_line(result) == "tiny scale;  findings of ours: 1 DOES NOT HOLD"
    assert "DOES NOT HOLD" not in [item["verdict"] for item in result["claims"]]
    with pytest.raises(ValueError, match="MISPRINT"):
        replace(said[0], judge=lambda tables: ("MISPRINT", "It is.")).judged({})


def test_paper_scale_values_of_the_paper():
    """What the paper prints is what the paper scale uses."""
    values = {name: {p["name"]: p["value"] for p in one.parameters("paper") if p["origin"] == "paper"}
              for name, one in FIGURES.items() if name.startswith("fa_ld_fig")}
    for name in ("fa_ld_fig1a", "fa_ld_fig1b", "fa_ld_fig1c", "fa_ld_fig3a", "fa_ld_fig3e"):
        assert values[name]["n_replicas"] == 300 and values[name]["n_clients"] == 50
    assert values["fa_ld_fig1a"]["eps"] == 1e-3 and values["fa_ld_fig1a"]["step_size"] == 1e-7
    assert values["fa_ld_fig1b"]["local_steps"] == 10 and values["fa_ld_fig1c"]["local_steps"] == 100
    assert values["fa_ld_fig1b"]["alphas"] == [0.0, 1.0, 10.0, 100.0, 1000.0]


# ---- the machinery ----------------------------------------------------------------------------------


def test_an_interrupted_figure_leaves_the_previous_one_intact(tmp_path, monkeypatch, capsys):
    one = a_figure()
    run.make(one, "tiny", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == [f"a_figure.{one}" for one in ("csv", "json", "png", "svg")]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "chosen", lambda ids: [a_figure(compute=interrupted)])
    assert command.main(["--scale", "tiny", "--out", str(tmp_path)]) == 130
    assert "previous result is intact" in capsys.readouterr().err
    monkeypatch.setattr(command, "chosen", lambda ids: [a_figure(draw=interrupted)])
    assert command.main(["--scale", "tiny", "--out", str(tmp_path)]) == 130
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_failed_publication_replaces_nothing(tmp_path):
    store.publish(tmp_path, {"a": "old", "b": "old"})
    with pytest.raises(TypeError):
        store.publish(tmp_path, {"a": "new", "b": 5})
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_csv_keeps_types_and_values():
    tables = {"a": pd.DataFrame({"n": [1, 2], "x": [1.0, np.nan], "s": ["u", "v, w"], "b": [True, False]}),
              "c": pd.DataFrame({"x": [np.inf, 1e-300], "n": [3, 4]})}
    found = store.from_csv(store.to_csv(tables))
    assert store.differences(tables, found) == []
    assert [str(found["a"][c].dtype) for c in "nxb"] == ["int64", "float64", "bool"]
    assert store.differences(tables, {"a": found["a"]}) == ["table c: only in the stored result"]
    near = {**found, "a": found["a"].assign(x=[1.001, np.nan])}
    assert len(store.differences(tables, near)) == 1
    assert store.differences(tables, near, {"a": ("s", "u", 0.01)}) == []
    for loose in ({"c": ("n", 3, 1.0)}, {"a": ("s", "v, w", 0.01)}, {"a": ("s", "u", 1e-4)}):
        assert len(store.differences(tables, near, loose)) == 1


@pytest.mark.parametrize("bad", [{"a": pd.DataFrame({"x": []})}, {"a": pd.DataFrame({"table": [1]})},
                                 {"a": pd.DataFrame({"x": [""]})}, {"a": pd.DataFrame({"x": [None]})}])
def test_tables_that_cannot_be_stored_are_refused(bad):
    with pytest.raises(ValueError):
        store.to_csv(bad)


@pytest.mark.parametrize("text", ["", "x,y\n1,2\n", "table,x\na,1,2\n"])
def test_a_damaged_csv_is_refused(text):
    with pytest.raises(ValueError, match="csv"):
        store.from_csv(text)


@pytest.mark.parametrize("name", ["TITLE", "COST", "PARAMETERS", "CLAIMS", "draw"])
def test_an_incomplete_figure_is_named(name):
    with pytest.raises(ValueError, match=f"figure a_figure must define {name}"):
        a_figure(**{name: None})


def test_parameters_and_claims_are_checked():
    with pytest.raises(ValueError, match="origin"):
        Parameter("x", 1, "theirs", "because")
    with pytest.raises(ValueError, match="reason"):
        Parameter("x", 1, "ours")
    with pytest.raises(ValueError, match="verdict"):
        Claim("It rises.", "here", lambda tables: ("MAYBE", "so"), name="x", rests_on=EXACT).judged({})
    with pytest.raises(ValueError, match="rests_on"):
        Claim("It rises.", "nowhere", lambda tables: (PASS, "Yes."), name="x", rests_on="luck")
    with pytest.raises(ValueError, match="name"):
        Unjudged("It rises.", "nowhere", "why", name="not a name")
    twice = Unjudged("It rises.", "nowhere", "why", name="x")
    with pytest.raises(ValueError, match="more than once"):
        a_figure(CLAIMS=[twice, twice])
    with pytest.raises(ValueError, match="scale"):
        figure.settings([], "large")


def test_listing_names_every_figure_with_cost_and_paper():
    lines = command.told(list(FIGURES.values()), "quick", False, False).splitlines()
    assert len(lines) == len(FIGURES)
    for line, (name, one) in zip(lines, FIGURES.items(), strict=True):
        assert line.startswith(f"{name} ") and one.paper in line and one.cost["quick"] in line


def test_unknown_figure_lists_those_that_are_close_or_all(capsys):
    assert command.main(["fa_ld_fig1"]) == 2
    assert capsys.readouterr().err.strip().endswith(
        "did you mean 'fa_ld_fig1a' or 'fa_ld_fig1b' or 'fa_ld_fig1c' or 'fa_ld_fig1de'?")
    assert command.main(["xyz"]) == 2
    message = capsys.readouterr().err
    assert "figure='xyz' must be one of" in message and all(name in message for name in FIGURES)


def test_draw_before_make_says_what_to_do(tmp_path, capsys):
    assert command.main(["fa_ld_fig1b", "--draw", "--out", str(tmp_path)]) == 2
    assert "python -m reproduce fa_ld_fig1b" in capsys.readouterr().err


def test_the_command_line_in_a_process_of_its_own():
    done = subprocess.run([sys.executable, "-m", "reproduce", "--list"], capture_output=True, text=True,
                          cwd=store.FOLDER.parent, check=True)
    assert "fa_ld_fig1a" in done.stdout


def test_results_do_not_depend_on_the_number_of_processes(tmp_path):
    for workers in ("1", "2"):
        subprocess.run([sys.executable, "-m", "reproduce", "de_fig1", "fa_ld_fig1c", "--scale", "tiny",
                        "--workers", workers, "--out", str(tmp_path / workers)],
                       capture_output=True, cwd=store.FOLDER.parent, check=True)
    files = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert sum("fig1" in name for name in files) == 2 * 5 and "index.html" in files
    for name in files:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


SVG = ('<path id="m0123456789" d="M 1.5 {}" style="fill: {}"/><use xlink:href="#{}"/>'
       '<g clip-path="url(#pfedcba9876)">{}</g>')


@pytest.mark.parametrize(("values", "kept"), [
    (("2.01", "#1f77b4", "m0123456789", ""), True),  # a number, by a hundredth of a point
    (("2", "#1f77b4", "mabcdef0123", ""), False), (("2.02", "#1f77b4", "m0123456789", ""), False),
    (("2", "#1f77b5", "m0123456789", ""), False), (("2", "#1f77b4", "m0123456789", "a word"), False),
    (("2 3", "#1f77b4", "m0123456789", ""), False)])
def test_a_picture_is_kept_when_its_svg_looks_alike(tmp_path, values, kept):
    """Names are hashes of what they name, so that they change with its last digit: their order counts."""
    stored, new = SVG.format("2", "#1f77b4", "m0123456789", ""), SVG.format(*values)
    renamed = new.replace("0123456789", "9876543210") if kept else new
    (tmp_path / "a.svg").write_text(stored)
    (tmp_path / "a.png").write_bytes(b"old")
    made = {"a.svg": renamed.encode(), "a.png": b"new", "a.pdf": b"first"}
    found = run.kept_pictures(made, "a.svg", tmp_path)
    assert found == ({"a.svg": stored.encode(), "a.png": b"old", "a.pdf": b"first"} if kept else made)
    assert run.kept_pictures({"none.svg": b"new"}, "none.svg", tmp_path) == {"none.svg": b"new"}


def test_places_of_an_svg_are_rounded_and_nothing_else():
    svg = (b'<g transform="translate(57.132565 -0.001) scale(0.105 -0.105)">'
           b'<path d="M 1.23456 2 L -3.999 5"/>'
           b'<use x="10.126" y="7" style="stroke-width: 0.8125"/><!-- 1.23456 --></g>')
    assert picture.rounded(svg) == (
        b'<g transform="translate(57.13 0) scale(0.105 -0.105)"><path d="M 1.23 2 L -4 5"/>'
        b'<use x="10.13" y="7" style="stroke-width: 0.8125"/><!-- 1.23456 --></g>')


def test_a_picture_says_what_is_not_the_papers():
    figure = FIGURES["fa_hmc_fig3_4"]
    words = figure.departures("quick")
    assert "K of figure 3 = 1, 5, 10, 20 (the paper: 1, 10, 50, 100)" in words
    assert "rounds of figure 4: 20 (not printed)" in words
    assert "K of figure 4 =" in words and "K of figure 4 =" not in figure.departures("paper")
    svg = (store.FOLDER / "fa_hmc_fig3_4.svg").read_text(encoding="utf-8")
    assert "Among what is not the paper's:" in svg and "1, 5, 10, 20" in svg
    assert not FIGURES["fa_hmc_fig2"].departures("quick")
