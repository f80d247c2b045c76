"""figures/index.html: every stored figure with the verdicts on its claims.

The page is made from the stored claims JSON alone, links only to files beside it, and needs no network.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from . import store
from .figure import FAIL, NOT_TESTABLE, PASS, SCALES, figures

CSS = """
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fafafa;margin:0}
main{max-width:70rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.7rem;margin:.2rem 0}h2{font-size:1.25rem;margin:0}
section{background:#fff;border:1px solid #e2e2e2;border-radius:8px;padding:1.2rem;margin:1.4rem 0}
img{max-width:100%;height:auto;display:block;margin:.6rem auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #eee}
th{font-weight:600;color:#555}
.v{display:inline-block;white-space:nowrap;border-radius:4px;padding:0 .5rem;font-weight:600;font-size:.82rem}
.pass{background:#dff3ea;color:#00613f}.fail{background:#fbe3d5;color:#8f3500}.not{background:#eceff1;color:#455}
.soft{color:#666;font-size:.92rem}code{background:#f1f1f1;border-radius:3px;padding:0 .25rem}
details{margin-top:.8rem}summary{cursor:pointer;color:#0072b2}.scroll{overflow-x:auto}
"""
_CLASS = {PASS: "pass", FAIL: "fail", NOT_TESTABLE: "not"}


def _badge(verdict: str) -> str:
    return f'<span class="v {_CLASS[verdict]}">{escape(verdict)}</span>'


def _rows(rows: list[list[str]], header: list[str]) -> str:
    """A table; cells are HTML already."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _figure(result: dict[str, Any]) -> str:
    name = escape(result["id"])
    claims = [[_badge(claim["verdict"]), escape(claim["text"]), escape(claim["why"]),
               escape(claim["source"])] for claim in result["claims"]]
    parameters = [[f"<code>{escape(p['name'])}</code>", escape(json.dumps(p["value"])), escape(p["origin"]),
                   escape(p["reason"])] for p in result["parameters"]]
    return (
        f'<section id="{name}"><h2>{escape(result["title"])}</h2>'
        f'<p class="soft">{escape(result["paper"])} &middot; <code>{escape(result["command"])}</code>'
        f' &middot; <a href="{name}.csv">numbers</a> &middot; <a href="{name}.json">claims</a></p>'
        f'<p>{escape(result["shows"])}</p>'
        f'<a href="{name}.png"><img src="{name}.png" alt="{escape(result["title"])}" loading="lazy"></a>'
        + _rows(claims, ["verdict", "the paper says", "what the numbers say", "where"])
        + "<details><summary>parameters</summary>"
        + _rows(parameters, ["name", "value", "origin", "why"]) + "</details></section>")


def _scoreboard(path: Path) -> str:
    if not path.exists():
        return ""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = [[escape(str(cell)) for cell in row] for row in table.itertuples(index=False)]
    return ('<section id="scoreboard"><h2>Scoreboard: every theorem against the exact law</h2>'
            '<p class="soft"><code>python -m reproduce scoreboard</code> &middot; '
            '<a href="scoreboard.csv">numbers</a></p>' + _rows(rows, list(table.columns)) + "</section>")


def _total(claims: list[dict[str, str]], ours: bool) -> str:
    """Number of each verdict on the papers' claims, or on ours."""
    verdicts = [claim["verdict"] for claim in claims if claim["source"].startswith("ours") == ours]
    return " ".join(f"{_badge(v)} {verdicts.count(v)}" for v in (PASS, FAIL, NOT_TESTABLE) if v in verdicts)


def page(folder: Path, scale: str) -> str:
    """The page's HTML."""
    results = [result for name in figures() if (result := store.load_record(folder, name)) is not None]
    claims = [claim for result in results for claim in result["claims"]]
    contents = _rows(
        [[f'<a href="#{escape(r["id"])}">{escape(r["title"])}</a>', escape(r["paper"]),
          " ".join(_badge(claim["verdict"]) for claim in r["claims"])] for r in results],
        ["figure", "paper", "verdicts"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>fedsim: the figures</title><style>{CSS}</style></head><body><main>"
        "<h1>fedsim: the figures</h1>"
        f"<p>{len(results)} figures at the {escape(scale)} scale. "
        f"Claims of the papers: {_total(claims, False)}; ours: {_total(claims, True)}</p>"
        '<p class="soft">A verdict is decided by the exact law where it exists. FAIL means that the exact '
        "law of the set-up as printed contradicts the sentence; the reason stands beside it. "
        "&ldquo;Printed&rdquo; means as it stands in our transcription of the paper, which may have lost a "
        "mark: what we hold against a text is graded in <code>theory.errata()</code>, and what cannot be "
        "told from it is in <code>theory.remarks()</code>.</p>"
        f"<section>{contents}</section>" + "".join(_figure(result) for result in results)
        + _scoreboard(folder / "scoreboard.csv") + "</main></body></html>\n")


def write(folder: Path, scale: str) -> Path:
    """Write index.html beside the figures."""
    store.publish(folder, {"index.html": page(folder, scale)})
    return folder / "index.html"


def main(given: Sequence[str]) -> int:
    """`python -m reproduce gallery`."""
    parser = argparse.ArgumentParser(prog="python -m reproduce gallery", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="quick")
    parser.add_argument("--out", metavar="FOLDER")
    arguments = parser.parse_args(given)
    print(write(store.folder_for(arguments.scale, arguments.out), arguments.scale))
    return 0
