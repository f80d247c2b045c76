"""What `--list` says: every figure in a line, or all about some of them; as text or as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from fedsim.hints import shown

from . import store
from .claims import Claim, Finding, Unjudged
from .data_files import listed
from .figure import SCALES, Figure

KINDS = {Claim: "claim", Finding: "finding", Unjudged: "unjudged"}


def line(figure: Figure) -> str:
    """A figure in one line, for grep: id, paper, title, cost, data."""
    cost = ", ".join(f"{scale} {figure.cost[scale]}" for scale in SCALES)
    reads = f"; reads {listed(figure.data)}" if figure.data else ""
    return f"{figure.id:<24} {figure.paper}: {figure.title}  [{cost}{reads}]"


def about(figure: Figure, scale: str) -> dict[str, Any]:
    """All about a figure, as plain values."""
    return {"id": figure.id, "paper": figure.paper, "title": figure.title, "shows": figure.shows,
            "reproduces": list(figure.reproduces), "cost": dict(figure.cost), "reads": list(figure.data),
            "scale": scale, "parameters": figure.parameters(scale),
            "said": [{"kind": KINDS[type(item)], "name": item.name, "text": item.text,
                      "source": getattr(item, "source", ""), "about": getattr(item, "about", ""),
                      "rests_on": getattr(item, "rests_on", "")} for item in figure.module.CLAIMS]}


def details(figure: Figure, scale: str) -> str:
    """All about a figure, as text: parameters with value, origin and reason, cost, and what is said."""
    told, lines = about(figure, scale), [figure.id, f"    {figure.paper}: {figure.title}"]
    lines += _wrapped(figure.shows, "    ")
    if figure.data:
        lines.append(f"    reads  {listed(figure.data)} of --data; without it, what the picture names")
    lines += ["    cost   " + ",  ".join(f"{one} {figure.cost[one]}" for one in SCALES),
              f"    parameters at {scale} scale, for --set name=value:"]
    for row in told["parameters"]:
        lines += _wrapped(f"{row['name']} = {_value(row['value'])}   ({row['origin']}"
                          f"{': ' + row['reason'] if row['reason'] else ''})", "      ")
    for item in told["said"]:
        source = item["source"] or item["about"]
        end = f" ({source})" if source else ""
        lines += _wrapped(f"{item['kind']} {item['name']}: {item['text']}{end}", "    ")
    return "\n".join(lines)


def _value(value: Any) -> str:
    """As it can be given to --set, where that is short."""
    text = repr(value)
    return text if len(text) <= 120 else shown(value)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 108, initial_indent=indent, subsequent_indent=indent + "    ",
                         break_long_words=False, break_on_hyphens=False)


def told(figures: Sequence[Figure], scale: str, named: bool, as_json: bool) -> str:
    """The text of --list: details where figures are `named`, else a line each."""
    if as_json:
        return store.to_json([about(figure, scale) for figure in figures]).rstrip()
    if named:
        return "\n\n".join(details(figure, scale) for figure in figures)
    return "\n".join(map(line, figures))
