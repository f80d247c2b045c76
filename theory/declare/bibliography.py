"""The papers, from ``papers.bib``: what a docstring, the catalogue or a figure cites by key."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from fedsim.settings.validation import one_of

FILE = Path(__file__).with_name("papers.bib")


@cache
def papers() -> dict[str, dict[str, str]]:
    """Every entry of ``papers.bib``: key -> field -> text without braces.

    Examples
    --------
    >>> theory.papers()["chen2016"]["title"]
    'Stochastic Gradient MCMC with Stale Gradients'
    """
    entries = {}
    for key, body in re.findall(r"@\w+\{(\w+),\n(.*?)\n\}", FILE.read_text(encoding="utf-8"), re.DOTALL):
        fields = re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", body, re.MULTILINE)
        entries[key] = {name: re.sub("[{}]", "", text) for name, text in fields}
    return entries


def cite(key: str) -> str:
    """A paper in one line: authors (year), title, where.

    Parameters
    ----------
    key : str
        Of ``papers.bib``.

    Raises
    ------
    ValueError
        For an unknown key.

    Examples
    --------
    >>> theory.cite("chen2016")
    'Chen et al. (2016). Stochastic Gradient MCMC with Stale Gradients. Advances in Neural Information ...'
    """
    entry = papers()[one_of("key", key, tuple(papers()))]
    names = [name.split()[-1] for name in entry["author"].split(" and ")]
    authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    where = entry.get("journal") or entry.get("booktitle") or ""
    return f"{authors} ({entry['year']}). {entry['title']}. {where}." + (
        f" doi:{entry['doi']}" if "doi" in entry else "")
