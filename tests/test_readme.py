"""What the README says is true: its example's output, its tables, its links and its commands."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from reproduce import readme

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_is_shown():
    shown = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", TEXT, re.DOTALL)
    assert shown
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(shown[1], "README.md", "exec"), {})
    assert printed.getvalue() == shown[2]


def test_tables_are_up_to_date():
    assert readme.filled(TEXT) == TEXT, "python -m reproduce readme"


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", TEXT) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_commands_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", TEXT, re.MULTILINE))
    assert {"figures", "test"} <= named <= targets


def test_a_table_is_filled_from_the_stored_claims(tmp_path):
    claims = [{"verdict": verdict, "counted_in": ""} for verdict in ("PASS", "FAIL", "PASS")]
    claims.append({"verdict": "PASS", "counted_in": "b"})
    (tmp_path / "a.json").write_text(json.dumps({
        "id": "a", "paper": "P 1", "title": "t|u", "command": "do a", "claims": claims,
        "findings": [{"verdict": "OPEN"}], "unjudged": [{}, {}]}))
    (tmp_path / "other.json").write_text("{}")
    table = readme.figure_table(tmp_path)
    assert table.splitlines()[2:] == ["| P 1 | [t\\|u](figures/a.png) | `do a` | 3 PASS, 1 FAIL | 1 OPEN |"]
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
