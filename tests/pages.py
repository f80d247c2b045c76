"""The pages of docs/ as the tests read them: blocks of code, what is shown beneath them, links.

    python -m tests.pages [NAME ...]    runs pages of docs/guide and writes what they print beneath each block
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GUIDE = sorted((DOCS / "guide").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)


def blocks(text, language):
    """The blocks of one language, as matches: group 2 is what stands in them."""
    return [match for match in BLOCK.finditer(text) if match[1] == language]


def examples(text):
    """[(code, shown)] of a page's Python blocks; shown is the text block just beneath, or None."""
    found, before = [], None
    for match in BLOCK.finditer(text):
        if match[1] == "python":
            found.append((match[2], None))
            before = match.end()
        elif match[1] == "text":
            if before is None or text[before:match.start()].strip():
                raise ValueError(f"a text block stands beneath no Python block: {match[2][:60]}")
            found[-1], before = (found[-1][0], match[2]), None
    return found


def printed(text):
    """[(shown, printed)] of a page: its Python blocks are executed in order, in one namespace."""
    names, result = {"__name__": "page"}, []
    for code, shown in examples(text):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "page", "exec"), names)
        result.append((shown, out.getvalue()))
    return result


def filled(text):
    """A page with what its blocks print beneath them."""
    text = re.sub(r"^```text\n.*?^```$\n", "", text, flags=re.MULTILINE | re.DOTALL)
    outputs = iter(printed(text))

    def with_output(match):
        if match[1] != "python":
            return match[0]
        _, out = next(outputs)
        return match[0] + (f"```text\n{out}```\n" if out else "")
    return BLOCK.sub(with_output, text)


def links(text):
    """Relative links of a page outside its blocks of code, without the part after #."""
    prose = re.sub(r"`[^`\n]*`", "", BLOCK.sub("", text))
    return [link for link in re.findall(r"\]\(([^)#\s]+)", prose) if "://" not in link]


if __name__ == "__main__":
    for page in GUIDE:
        if page.stem in sys.argv[1:] or len(sys.argv) == 1:
            page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
