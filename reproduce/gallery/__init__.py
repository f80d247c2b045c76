"""The gallery: figures/index.html, a page for every figure, the scoreboard, errata, worst cases, explorables.

Pages are made by the templates from what is stored beside them and from the theorems; they link to files
beside them and to the checkout's sources, and need no network.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .. import store
from ..figure import SCALES
from .content import pages

__all__ = ["main", "pages", "write"]


def write(folder: Path, scale: str) -> Path:
    """Write the pages beside the figures; the way in is returned."""
    store.publish(folder, pages(folder, scale))
    return folder / "index.html"


def main(given: Sequence[str]) -> int:
    """`python -m reproduce gallery`."""
    parser = argparse.ArgumentParser(prog="python -m reproduce gallery", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="quick")
    parser.add_argument("--out", metavar="FOLDER")
    arguments = parser.parse_args(given)
    print(write(store.folder_for(arguments.scale, arguments.out), arguments.scale))
    return 0
