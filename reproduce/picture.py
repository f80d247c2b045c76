"""Pictures as bytes: PNG, SVG and PDF in the house style, or with a style of one's own on top of it."""

from __future__ import annotations

import io
import logging
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np

from fedsim.hints import choice
from fedsim.settings.validation import Array

from . import plot
from .figure import BadInput, Figure, Tables
from .verdicts import counted

FORMATS: Mapping[str, Mapping[str, Any]] = {
    "png": {"Software": None}, "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None}}
"""Formats, and the metadata that would change from run to run or from version to version."""
SALT = "fedsim"
"""Of the names inside an SVG, which are random without it."""
SHOWN = ("png", "svg")
"""Formats that are always made, in this order: the layout settles while the first is drawn. Pages show the
SVG, which is text and stored; the PNG is for slides."""
DECIMALS = 2
"""Of places in an SVG, in points: more cannot be seen, and each would be stored anew with every drawing."""
MOVED = 0.015
"""Points by which numbers of two drawings that look alike may differ: processors round otherwise."""


def formats_of(text: str) -> list[str]:
    """The formats that `--format` names, and always those of `SHOWN`."""
    names = [name.strip().lower().lstrip(".") for name in text.split(",")]
    for name in names:
        if name not in FORMATS:
            raise BadInput(f"--format {text}: {name!r} must be {choice(name, FORMATS)}")
    return list(dict.fromkeys([*SHOWN, *names]))


def style_of(name: str | None) -> dict[str, Any]:
    """Matplotlib's settings of a style file, or of a style by its name."""
    if name is None:
        return {}
    styles: dict[str, Any] = matplotlib.style.library
    if name in styles:
        return {**styles[name]}
    if not Path(name).is_file():
        known = sorted(one for one in styles if not one.startswith("_"))
        raise BadInput(f"--style {name}: it must be a file that exists, or {choice(name, known)}")
    with _complaints() as complaints:
        try:
            settings: Any = matplotlib.rc_params_from_file(name, use_default_template=False)
        except (ValueError, OSError) as error:
            raise BadInput(f"--style {name}: it must be a matplotlib style file ({error})") from None
    if complaints:
        raise BadInput(f"--style {name}: it must be a matplotlib style file "
                       f"({textwrap.shorten(complaints[0], 160)})")
    return {**settings}


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What matplotlib logs of a style file that it cannot use."""
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    log, handler = logging.getLogger("matplotlib"), Handler(logging.WARNING)
    log.addHandler(handler)
    passed_on, log.propagate = log.propagate, False
    try:
        yield found
    finally:
        log.removeHandler(handler)
        log.propagate = passed_on


def verdict_line(result: Mapping[str, Any]) -> str:
    """The paper's claims and our findings in one line, as a picture shows them."""
    parts = [f"{whose}: {counted([item['verdict'] for item in result[kind]])}"
             for whose, kind in (("claims of the paper", "claims"), ("findings of ours", "findings"))
             if result[kind]]
    return ";  ".join([f"{result['scale']} scale", *parts])


def pictures(figure: Figure, tables: Tables, result: Mapping[str, Any], formats: Sequence[str] = SHOWN,
             style: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """The picture in each format, with its name above and the verdicts of its `result` below.

    Where parameters were changed, that stands beneath the name.
    """
    made = {}
    settings: Any = {"svg.hashsalt": SALT, **(style or {})}
    with plot.style(), matplotlib.rc_context(settings):
        drawing = figure.draw(tables)
        if told := figure.departures(result["scale"]):
            own = drawing.get_suptitle()
            drawing.suptitle(f"{own}\n" * bool(own) + f"Among what is not the paper's: {told}")
        name = f"{figure.paper}. {figure.title}"
        if "changed" in result:
            room = max(30, int(9 * drawing.get_size_inches()[0]))  # letters in a line of bold type
            name = "\n".join([name, *textwrap.wrap(result["changed"]["said"], room)])
        plot.sign(drawing, name, verdict_line(result))
        for kind in formats:
            file = io.BytesIO()
            drawing.savefig(file, format=kind, metadata=dict(FORMATS[kind]))
            made[f"{figure.id}.{kind}"] = rounded(file.getvalue()) if kind == "svg" else file.getvalue()
    return made


def rounded(svg: bytes) -> bytes:
    """An SVG with its places rounded to `DECIMALS`: paths, positions and shifts, and no scale."""
    def shorter(found: re.Match[str]) -> str:
        text = f"{float(found[0]):.{DECIMALS}f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text

    places = r'(?<= d=")[^"]*|(?<= [xy]=")[^"]*|translate\([^)]*\)'
    return re.sub(places, lambda found: re.sub(r"-?\d+\.\d+", shorter, found[0]), svg.decode()).encode()


def look_alike(one: str, other: str) -> bool:
    """Whether two SVG differ in numbers alone, and by at most `MOVED`."""
    (words, numbers), (words_of_other, numbers_of_other) = _parts(one), _parts(other)
    return words == words_of_other and bool((np.abs(numbers - numbers_of_other) <= MOVED).all())


def _parts(svg: str) -> tuple[list[str], Array]:
    """An SVG's words and numbers. Names that are hashes of what they name count by their order."""
    names: dict[str, str] = {}
    plain = re.sub(r"(?<=[#\"][a-z])[0-9a-f]{10}(?=[\")])", lambda found: names.setdefault(
        found[0], f"name{len(names)}"), svg)
    pieces = re.split(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)", plain)
    return pieces[::2], np.array(pieces[1::2], dtype=float)
