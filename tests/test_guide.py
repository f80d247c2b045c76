"""The guide, docs/guide: its code runs and prints what is shown, its links, commands and names are there."""

from __future__ import annotations

import re

import conf
import pages
import pytest

import fedsim as fs
import theory

MAX_LINES = 150
MAX_COLUMNS = 106  # what a page shows without scrolling
PAGES = [pages.DOCS / "index.md", *pages.GUIDE]
BY_NAME = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.mark.parametrize("page", pages.GUIDE, ids=lambda page: page.stem)
def test_a_page_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for shown, printed in pages.printed(page.read_text(encoding="utf-8")):
        assert printed == (shown or "")


@BY_NAME
def test_links_lead_somewhere(page):
    links = pages.links(page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


@BY_NAME
def test_pages_are_short_and_named_in_the_index(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES and re.match(r"# \S", text)
    assert not [line for code, _ in pages.examples(text) for line in code.splitlines()
                if len(line) > MAX_COLUMNS]
    index = PAGES[0].read_text(encoding="utf-8")
    trees = "\n".join(re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL))
    assert page == PAGES[0] or f"guide/{page.stem}" in trees.split()


@BY_NAME
def test_commands_exist(page):
    """Targets of make, figures, scripts and modules that a page's shell blocks name."""
    lines = [line.partition("#")[0].strip() for block in pages.blocks(page.read_text(encoding="utf-8"), "sh")
             for line in block[2].splitlines()]
    assert not [line for line in lines if not known(line)]


def known(line):
    """Is there what this shell line calls?"""
    program, *words = line.split() or ("",)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (pages.ROOT / "Makefile").read_text(), re.MULTILINE)
        return all(word in targets or "=" in word for word in words)
    if (program, *words[:2]) == ("python", "-m", "reproduce"):
        figures = {path.stem for path in (pages.ROOT / "figures").glob("*.json")}
        values = {words[i + 1] for i, word in enumerate(words[:-1]) if word.startswith("--")}
        named = {word for word in words[2:] if not word.startswith("--")} - values
        others = re.findall(r"python -m reproduce (\w+) ", (pages.ROOT / "reproduce/command.py").read_text())
        return named <= figures | set(others)
    if program == "python" and words[0].endswith(".py"):
        return (pages.ROOT / words[0]).exists()
    return program in ("", "git", "cd", "pip")


@pytest.mark.parametrize("line", ["make nonsense", "python -m reproduce fa_ld_fig99", "python docs/none.py",
                                  "python -m reproduce --scale paper nonsense", "mkae docs"])
def test_an_unknown_command_is_seen(line):
    assert not known(line)
    assert known("make docs") and known("python -m reproduce fa_ld_fig1b --scale tiny")


def test_a_stray_output_is_seen():
    text = "# a\n```python\nprint(1)\n```\n```text\n2\n```\n"
    assert pages.printed(text) == [("2\n", "1\n")] and pages.filled(text) == text.replace("2", "1")
    with pytest.raises(ValueError, match="beneath no Python block"):
        pages.examples("# a\n```python\n1\n```\nwords\n```text\n2\n```\n")


def test_docstrings_are_read_as_plain_text():
    lines = ["Says |x| of `a`.", "", "K. is no list, x_* no link:", "", "    |x| <= a*b", "",
             "Uneven", "  lines.", "", "Raises", "------", "ValueError", "    For *args.", "",
             "Source: none.", "", "Examples", "--------", ">>> f(*x)"]
    conf.from_plain_text(None, "function", "f", None, None, lines)
    assert [line.replace("\u200b", "") for line in lines] == [
        r"Says \|x\| of ``a``.", "", r"K. is no list, x\_\* no link:", "", "::", "", "    |x| <= a*b", "",
        "| Uneven", "|   lines.", "", "Source: none.", "",
        "Raises", "------", "ValueError", r"    For \*args.", "", "Examples", "--------", ">>> f(*x)"]


def test_every_public_name_and_theorem_is_in_the_reference():
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages.GUIDE if page.stem.startswith("api"))
    named = set(re.findall(r"^\.\. auto(?:class|function|module|exception):: ([\w.]+)$", text, re.MULTILINE))
    members = re.findall(r"^\.\. automodule:: ([\w.]+)\n   :members: (.*)$", text, re.MULTILINE)
    named |= {f"{module}.{name}" for module, names in members for name in names.split(", ")}
    public = {f"{package.__name__}.{name}" for package in (fs, theory) for name in package.__all__}
    assert public | set(theory.catalogue()["function"]) <= named
