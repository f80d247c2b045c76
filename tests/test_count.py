"""The size that CONTRIBUTING states is true to `tools.count.ROOM` lines; fragments make a short page."""

from __future__ import annotations

import re
import tomllib
from collections import Counter

import pytest

from tools import count

ROOT = count.ROOT
MOST = 40
"""Lines of a release's page."""


def test_a_line_is_of_one_kind():
    source = '"""Words\n\nand more."""\n\nimport os\nfrom a import (\n    b,\n)\n\n# why\nx = 1  # here\n' \
        'def f():\n    """Do."""\n    return (x,\n\n            """no docstring""")\n'
    assert count.kinds(source) == Counter(docstring=4, blank=3, comment=1, code=4) + Counter({"import": 4})


def test_the_table_is_written_again_when_the_code_has_grown():
    stored = count.written(count.PAGE.read_text(encoding="utf-8"))
    grown = sum(count.count(package)["code"] for package in count.SHIPPED) - stored
    assert grown <= count.ROOM, (f"{grown} lines of code more than CONTRIBUTING has: write the table anew "
                                 "(python -m tools.count --write), and say in a fragment what they buy")
    assert count.written(count.table()) - stored == grown


def fragments():
    return sorted(path for path in (ROOT / "docs" / "changes").iterdir())


@pytest.mark.parametrize("path", fragments(), ids=lambda path: path.name)
def test_a_fragment_is_named_and_short(path):
    types = {row["directory"] for row in tomllib.loads(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]["type"]}
    assert re.fullmatch(rf"\w+\.({'|'.join(sorted(types))})\.md", path.name)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert 1 <= len(lines) <= 3 and all(0 < len(line) <= 130 for line in lines)


def test_the_page_of_the_next_release_has_at_most_forty_lines():
    """A heading and a blank line for the release, and for each type with a blank line beneath."""
    kinds = {path.name.split(".")[1] for path in fragments()}
    assert 2 + 3 * len(kinds) + sum(len(path.read_text(encoding="utf-8").splitlines())
                                    for path in fragments()) <= MOST
