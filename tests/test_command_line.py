"""`python -m reproduce` with another set-up, format or style: what is made, where, and how it is marked."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from a_figure import a_figure
from matplotlib import image

from reproduce import command, discovery, figure, parameter_overrides, picture, run, store
from reproduce.figure import EXACT, FAIL, PASS, Claim, Finding, Parameter
from reproduce.verdicts import DOES_NOT_HOLD, NOT_TESTABLE, OPEN

ROOT = Path(__file__).resolve().parent.parent
MARK = "with slope=5.0 in place of 1.0: not the paper's set-up"


def judge(tables):
    """What fails unless the slope is the figure's own; there is no such table where it is 7."""
    slope = tables["line"]["y"].iloc[1]
    return (PASS if slope < 4.0 else FAIL), f"The slope is {slope}." if slope != 7.0 else tables["none"]


SAID = [Claim("It is flat.", "nowhere", judge, name="flat", rests_on=EXACT),
        Finding("It is flat.", "", judge, name="flat_too", rests_on=EXACT)]


@pytest.fixture(name="one")
def _one(monkeypatch, tmp_path):
    """A small figure in the place of all others, and a folder in the place of figures/."""
    one = a_figure(CLAIMS=SAID)
    monkeypatch.setattr(discovery, "figures", lambda: {"a_figure": one, "b_figure": one})
    monkeypatch.setattr("reproduce.run.figures", lambda: {"a_figure": one})
    monkeypatch.setattr("reproduce.gallery.content.figures", lambda: {"a_figure": one})
    monkeypatch.setattr(store, "FOLDER", tmp_path.resolve() / "figures")
    return one


def made(*words):
    return command.main(["a_figure", "--scale", "tiny", *words])


def test_a_parameter_is_set_and_everything_says_so(one, tmp_path):
    assert made() == 0 and made("--set", "slope=5") == 0
    own = tmp_path / "figures" / "tiny"
    custom = own / "custom"
    assert store.load_tables(own, "a_figure")["line"]["y"].tolist() == [0.0, 1.0]
    assert store.load_tables(custom, "a_figure")["line"]["y"].tolist() == [0.0, 5.0]
    record = store.load_record(custom, "a_figure")
    claim, finding = record["claims"][0], record["findings"][0]
    assert claim["verdict"] == NOT_TESTABLE and claim["why"] == f"{MARK}."
    assert claim["remark"] == "Of these numbers alone its judge says FAIL: The slope is 5.0."
    assert finding["verdict"] == DOES_NOT_HOLD and finding["remark"] == f"{MARK}."
    assert record["changed"] == {"said": MARK, "values": {"slope": 5.0}}
    assert record["parameters"][0] == {"name": "slope", "value": 5.0, "origin": "set",
                                       "reason": "in place of 1.0, which is ours"}
    words = shlex.split(record["command"])
    assert words[2:] == ["reproduce", "a_figure", "--scale", "tiny", "--set", "slope=5.0"]
    assert command.main([*words[3:], "--check"]) == 0
    assert one.compute("tiny")["line"]["y"].tolist() == [0.0, 1.0]  # nothing of it stays


def test_what_cannot_be_judged_or_computed_is_said(one, tmp_path, capsys, monkeypatch):
    assert made("--set", "slope=7") == 0
    record = store.load_record(tmp_path / "figures" / "tiny" / "custom", "a_figure")
    assert record["claims"][0]["verdict"] == NOT_TESTABLE and record["findings"][0]["verdict"] == OPEN
    assert "These numbers cannot be judged (KeyError: 'none')." in record["findings"][0]["why"]

    def refuse(scale):
        raise ValueError("slope=5 must be less than 4")

    monkeypatch.setattr(one.module, "compute", refuse)
    assert made("--set", "slope=5") == 2
    assert f"error: a_figure {MARK}: slope=5 must be less than 4" in capsys.readouterr().err
    with pytest.raises(ValueError, match="less than 4"):  # a fault of the figure itself stays one
        made()


def test_a_drawing_stays_marked(one, tmp_path):
    folder = tmp_path / "mine"
    assert made("--set", "slope=5", "--out", str(folder)) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert made("--draw", "--out", str(folder)) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert made("--draw", "--format", "svg", "--out", str(folder)) == 0
    assert f"<!-- {MARK[:30]}" in (folder / "a_figure.svg").read_text()
    assert made("--check", "--out", str(folder)) == 1  # it is not the figure itself


def test_the_mark_takes_room_of_its_own(one, tmp_path):
    tables = one.compute("tiny")
    records = [run.record(one, tables, "tiny", (), values) for values in ({}, {"slope": 1.0})]
    plain, marked = (picture.pictures(one, tables, record)["a_figure.png"] for record in records)
    (tmp_path / "plain.png").write_bytes(plain)
    (tmp_path / "marked.png").write_bytes(marked)
    top = [np.flatnonzero((image.imread(tmp_path / f"{name}.png")[..., :3] < 0.5).all(axis=2).any(axis=1))
           for name in ("plain", "marked")]
    lines = [1 + int((np.diff(rows[rows < 120]) > 3).sum()) for rows in top]
    assert lines[1] > lines[0]


def test_formats_have_the_same_bytes_again_and_another_style_is_another_picture(one, tmp_path):
    style = tmp_path / "my.mplstyle"
    style.write_text("axes.facecolor: FFFF00\n")
    found = []
    for number, options in enumerate(([], [], ["--style", str(style)], ["--style", "ggplot"])):
        folder = tmp_path / str(number)
        assert made("--format", "svg,pdf", "--out", str(folder), *options) == 0
        found.append({kind: (folder / f"a_figure.{kind}").read_bytes() for kind in picture.FORMATS})
        assert b"Date" not in found[-1]["pdf"] and b"dc:date" not in found[-1]["svg"]
    assert found[0] == found[1]
    for kind in picture.FORMATS:
        assert len({one[kind] for one in found}) == 3, kind
    assert b"#ffff00" in found[2]["svg"] and b"#ffff00" not in found[0]["svg"]


def test_another_style_does_not_replace_what_is_stored(one, tmp_path):
    assert made() == 0
    stored = tmp_path / "figures" / "tiny"
    before = {path.name: path.read_bytes() for path in stored.glob("a_figure.*")}
    assert made("--draw", "--style", "ggplot") == 0 and made("--style", "ggplot") == 0
    assert {path.name: path.read_bytes() for path in stored.glob("a_figure.*")} == before
    custom = stored / "custom"
    assert (custom / "a_figure.csv").read_bytes() == before["a_figure.csv"]
    assert (custom / "a_figure.png").read_bytes() != before["a_figure.png"]


NUMBER, LIST = Parameter("slope", 1.5, "ours", "x"), Parameter("sizes", [1, 2], "ours", "x")
REFUSED = {
    "--set slope": "it must be name=value, as --set local_steps=50",
    "--set =5": "it must be name=value",
    "--set slop=5": "'slop' must be a parameter of a_figure: 'slope'; "
                    "python -m reproduce --list a_figure shows them",
    "--set slope=[5]": "slope=[5] must be a finite number, as its own 1.0",
    "--set slope=Infinity": "slope=inf must be a finite number",
    "--set slope=NaN": "slope=nan must be a finite number",
    "--set slope=steep": "slope='steep' must be a finite number",
    "--set slope=true": "slope=True must be a finite number",
    f"--set slope=1{'0' * 400}": "slope is too large for a float64",
    "--set slope=2 --set slope=3": "slope was set twice; give it once",
    "--set slope=2 --draw": "it must be given without --draw",
    "--set slope=2 --out FOLDER/figures": "must not replace what is stored there; leave --out away, or name",
    "--set slope=2 --out FOLDER/figures/paper": "must not replace what is stored there",
    "--style ggplott": "must be a file that exists, or one of",
    "--style FOLDER/none.mplstyle": "a file that exists",
    "--style FOLDER/bad.mplstyle": "must be a matplotlib style file (Bad key lines.linewith",
    "--style FOLDER/value.mplstyle": "must be a matplotlib style file (Bad value in",
    "--format svgz": "'svgz' must be one of 'png', 'svg', 'pdf'; did you mean 'svg'?",
    "--format ,": "'' must be one of 'png', 'svg', 'pdf'",
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_mistake_is_named_before_anything_is_computed(words, one, tmp_path, capsys, monkeypatch):
    (tmp_path / "bad.mplstyle").write_text("lines.linewith: 3\n")
    (tmp_path / "value.mplstyle").write_text("font.size: big\n")
    monkeypatch.setattr(one.module, "compute", lambda scale: pytest.fail("computed"))
    before = sorted(tmp_path.rglob("*"))
    assert made(*shlex.split(words.replace("FOLDER", str(tmp_path)))) == 2
    told = capsys.readouterr().err
    option = "--out" if "--out" in words else words.split()[0]
    assert told.startswith(f"error: {option} ") and REFUSED[words] in told
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("own", "written", "value"), [
    (1.5, "2", 2.0), (3, "4.0", 4), ([1, 2], "[5]", [5]), ([0.5, 1], "[1, 2]", [1.0, 2.0]), ("a", "b", "b"),
    ("a", '"b c"', "b c"), (True, "false", False), ([(0.0, 1)], "[(2, 3)]", [(2.0, 3)]), (None, "4", 4),
    ({"a": 1.0}, '{"b": 2}', {"b": 2.0}), ([], "[1]", [1]), (["a"], "['b', 'c']", ["b", "c"]),
    (1.5, "1.5", 1.5), ([[1.0, 2]], "[[3, 4]]", [[3.0, 4]])])
def test_values_get_the_type_of_the_parameter(own, written, value):
    one = a_figure(PARAMETERS=[Parameter("it", own, "ours", "x")])
    found = parameter_overrides.read([f"it={written}"], [one], "quick")["it"]
    assert found == value and type(found) is type(value)
    if isinstance(value, list) and value:
        assert [type(entry) for entry in found] == [type(entry) for entry in value]


@pytest.mark.parametrize(("own", "written", "condition"), [
    (3, "4.5", "an integer"), (3, "true", "an integer"), (3, "null", "an integer"), ("a", "3", "a text"),
    (True, "1", "true or false"), ([1, 2], "3", "a list: write [3]"), ([1], "[]", "at least one entry"),
    ([1], "[1.5]", "an integer"), ([(0.0, 1)], "[(1, 2, 3)]", "a list of length 2 at each"),
    ({"a": 1}, "3", "a mapping"),
    ([[1.0, 2.0]], "[1, 2]", "a list of length 2 at each")])
def test_values_of_another_type_or_shape_are_refused(own, written, condition):
    one = a_figure(PARAMETERS=[Parameter("it", own, "ours", "x")])
    with pytest.raises(figure.BadInput, match=re.escape(condition)):
        parameter_overrides.read([f"it={written}"], [one], "quick")


def test_every_parameter_of_every_figure_can_be_set_to_what_it_is():
    for one in discovery.figures().values():
        for scale in figure.SCALES:
            for row in one.parameters(scale):
                text = f"{row['name']}={json.dumps(row['value'])}"
                found = parameter_overrides.read([text], [one], scale)[row["name"]]
                assert json.dumps(found) == json.dumps(row["value"]), f"{one.id}: {text}"


def test_json_of_a_run_a_check_and_a_list(one, capsys):
    def said(*words):
        assert made(*words, "--json") in (0, 1)
        return json.loads(capsys.readouterr().out)

    run_, = said()
    assert run_["id"] == "a_figure" and run_["claims"][0]["verdict"] == PASS
    assert said("--check") == [{"id": "a_figure", "differences": []}]
    one.module.SHOWS = one.shows = "another line"
    (checked,) = said("--check")
    assert len(checked["differences"]) == 1 and "another line" in checked["differences"][0]
    listed, = said("--list")
    assert listed["parameters"] == run_["parameters"] and listed["cost"] == {"tiny": "0 s", "quick": "0 s",
                                                                             "paper": "0 s"}
    assert [(item["kind"], item["name"]) for item in listed["said"]] == [("claim", "flat"),
                                                                         ("finding", "flat_too")]


def test_a_figure_by_itself_is_listed_with_all_that_is_known(one, capsys):
    one.module.PARAMETERS.append(replace(LIST, reason="sizes of ours"))
    assert made("--list") == 0
    text = capsys.readouterr().out
    for words in ("slope = 1.0   (ours: a choice)", "sizes = [1, 2]   (ours: sizes of ours)",
                  "cost   tiny 0 s", "claim flat: It is flat. (nowhere)", "finding flat_too: It is flat."):
        assert words in text
    assert command.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def shown_commands():
    section, = re.findall(r"^## Another set-up.*?$(.*?)^## ", (ROOT / "docs" / "figures.md").read_text(),
                          re.MULTILINE | re.DOTALL)
    block, = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [line.partition("#")[0].partition("|")[0].strip() for line in block.splitlines()]


@pytest.mark.parametrize("line", shown_commands())
def test_the_commands_of_the_page_run(line, tmp_path, monkeypatch, capsys):
    """At the tiny scale, in a copy of the folder."""
    program, *words = shlex.split(line)
    assert (program, *words[:2]) == ("python", "-m", "reproduce")
    (tmp_path / "tiny").mkdir()
    for name in ("fa_ld_fig1b.csv", "fa_ld_fig1b.json"):
        shutil.copy(store.FOLDER / name, tmp_path / "tiny")
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    assert command.main([*words[2:], "--scale", "tiny"]) == 0
    told = capsys.readouterr().out
    assert ("--json" not in words) or json.loads(told)
    if "--set" in words:
        assert "local_steps=50 in place of 10" in (tmp_path / "tiny/custom/fa_ld_fig1b.json").read_text()
