"""Pages whose sliders move an exact law: local steps, gossip, staleness.

Each page is one file that needs no network: it computes with laws.js, whose formulas tests compare with
`theory`, and draws with plots.js and page.js what its own script says.
"""

from __future__ import annotations

from pathlib import Path

import jinja2

import theory

FOLDER = Path(__file__).parent
NAMES = ("local_steps", "gossip", "staleness")


def _source(name: str) -> str:
    """A script or style of this folder."""
    return (FOLDER / name).read_text(encoding="ascii")


def pages() -> dict[str, str]:
    """HTML of every page by the name of its file, to be written beside the gallery's index.html."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(FOLDER), autoescape=True,
                                     undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.globals |= {"source": _source, "cite": theory.cite}
    return {f"explore_{name}.html": environment.get_template(f"{name}.html.j2").render(script=f"{name}.js")
            for name in NAMES}
