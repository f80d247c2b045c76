"""What README and docs/ say is true: examples, one-line answers, tables, links and commands."""

from __future__ import annotations

import contextlib
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import networkx
import pytest

from reproduce import readme

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ["README.md", "CONTRIBUTING.md",
         *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


def shown_and_printed(text):
    """Of a page: its example's printed output as shown, what it prints, and the names it leaves behind."""
    shown = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    assert shown
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(compile(shown[1], "page", "exec"), names)
    return shown[2], printed.getvalue(), names


@pytest.mark.parametrize("name", ["README.md", "docs/worst_cases.md"])
def test_the_example_prints_what_is_shown(name):
    shown, printed, _ = shown_and_printed((ROOT / name).read_text(encoding="utf-8"))
    assert printed == shown


def test_answers_in_one_line_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {**shown_and_printed(TEXT)[2], "graph": networkx.path_graph(2)}
    table = TEXT.split("## Answers in one line")[1].split("\n## ")[0]
    lines = re.findall(r"^\| [^|]*\? \| `([^`]+)`", table, re.MULTILINE)
    assert len(lines) >= 10
    with ThreadPoolExecutor(2) as pool, contextlib.redirect_stdout(io.StringIO()) as printed:
        answers = {line: eval(line, {**names, "pool": pool}) for line in lines}
    assert all(answer is not None for line, answer in answers.items() if not line.startswith("print"))
    assert len(printed.getvalue()) > 100 and (tmp_path / "run1").is_dir()


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_up_to_date(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert readme.filled(text, readme.PAGES.get(name, {})) == text, "python -m reproduce readme"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    path = ROOT / name
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
             if "://" not in link]
    assert links or name != "README.md"
    assert not [link for link in links if not (path.parent / link).exists()]


@pytest.mark.parametrize("name", PAGES)
def test_paths_exist(name):
    """Files and folders that a page names in code type are there; names with < are patterns."""
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:fedsim|theory|reproduce|tests|tools|docs|figures)/[\w./]*)`", text)
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_commands_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", TEXT, re.MULTILINE))
    assert {"figures", "test"} <= named <= targets


def test_a_table_is_filled_from_the_stored_claims(tmp_path):
    claims = [{"verdict": verdict, "counted_in": ""} for verdict in ("PASS", "FAIL", "PASS")]
    claims.append({"verdict": "PASS", "counted_in": "b"})
    (tmp_path / "a.json").write_text(json.dumps({
        "id": "a", "paper": "P 1", "title": "t|u", "command": "do a", "claims": claims,
        "findings": [{"verdict": "OPEN"}], "unjudged": [{"text": "a"}, {"text": "b"}]}))
    (tmp_path / "other.json").write_text("{}")
    table = readme.figure_table(tmp_path)
    assert table.splitlines()[2:] == [
        "| P 1 | [t\\|u](../figures/a.svg) | `do a` | 3 PASS, 1 FAIL | 1 OPEN |"]
    words = readme.verdict_table(tmp_path)
    assert "The papers' claims: 2 PASS, 1 FAIL; 2 more" in words and "Findings of ours: 1 OPEN." in words
    (tmp_path / "b.csv").write_text("who,ms\nx,1\n")
    assert readme.benchmark_table(tmp_path / "b.csv") == "| who | ms |\n|---|---|\n| x | 1 |"
    text = "a\n<!-- t:begin -->\nold\n<!-- t:end -->\nz\n"
    once = readme.filled(text, {"t": lambda: "new"})
    assert once == "a\n<!-- t:begin -->\nnew\n<!-- t:end -->\nz\n"
    assert readme.filled(once, {"t": lambda: "new"}) == once
    for broken in ("no mark", "<!-- t:begin -->", text + text):
        with pytest.raises(ValueError, match="exactly once"):
            readme.filled(broken, {"t": lambda: "new"})
