"""figures/index.html: every stored figure with the verdicts on its claims.

The page is made from the stored claims JSON and the theorems' papers, links only to files beside it, and
needs no network.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

import theory

from . import store
from .coverage import NOT_REPRODUCED
from .discovery import figures
from .figure import SCALES
from .verdicts import CLAIM_WORDS, FINDING_WORDS, total

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
.mend{background:#fdf0cf;color:#6b4a00}h3{font-size:1.02rem;margin:1rem 0 .2rem}tr:target{background:#fffbe6}
.soft{color:#666;font-size:.92rem}code{background:#f1f1f1;border-radius:3px;padding:0 .25rem}
details{margin-top:.8rem}summary{cursor:pointer;color:#0072b2}.scroll{overflow-x:auto}
"""
_CLASS = {"PASS": "pass", "FAIL": "fail", "MISPRINT": "mend", "HOLDS": "pass", "DOES NOT HOLD": "mend"}


def _badge(verdict: str) -> str:
    return f'<span class="v {_CLASS.get(verdict, "not")}">{escape(verdict)}</span>'


def _rows(rows: list[list[str]], header: list[str], anchors: list[str] | None = None) -> str:
    """A table; cells are HTML already; `anchors` are the rows' addresses."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    marks = [f' id="{escape(anchor)}"' for anchor in anchors] if anchors else [""] * len(rows)
    body = "".join(f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
                   for mark, row in zip(marks, rows, strict=True))
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _reason(item: dict[str, str]) -> str:
    """Why, what else is true, and what the verdict rests on."""
    parts = [escape(item["why"])]
    if item["remark"]:
        parts.append(f"<b>Remark:</b> {escape(item['remark'])}")
    if item["context"]:
        parts.append(f'<span class="soft">{escape(item["context"])}</span>')
    parts.append(f'<span class="soft">Rests on: {escape(item["rests_on"])}.</span>')
    return "<br>".join(parts)


def _claims(result: dict[str, Any]) -> str:
    """What the paper says, judged; a place for the authors' answer."""
    rows = []
    for item in result["claims"]:
        elsewhere = item["counted_in"]
        counted = (f' <span class="soft">(counted in <a href="#{elsewhere}">{elsewhere}</a>)</span>'
                   if elsewhere else "")
        rows.append([_badge(item["verdict"]) + counted, escape(item["text"]), _reason(item),
                     escape(item["source"]), escape(item["answer"]) or "none yet"])
    return "" if not rows else "<h3>What the paper says</h3>" + _rows(
        rows, ["verdict", "the paper says", "what the numbers say", "where", "the authors' answer"],
        [f"{result['id']}.{item['name']}" for item in result["claims"]])


def _findings(result: dict[str, Any]) -> str:
    rows = [[_badge(item["verdict"]), escape(item["text"]), _reason(item), escape(item["about"])]
            for item in result["findings"]]
    return "" if not rows else "<h3>Findings of ours</h3>" + _rows(
        rows, ["verdict", "our sentence", "what the numbers say", "about"],
        [f"{result['id']}.{item['name']}" for item in result["findings"]])


def _unjudged(result: dict[str, Any]) -> str:
    rows = [[escape(item[key]) for key in ("text", "why", "source")] for item in result["unjudged"]]
    return "" if not rows else "<h3>What the paper says and cannot be judged here</h3>" + _rows(
        rows, ["the paper says", "why it is not judged", "where"],
        [f"{result['id']}.{item['name']}" for item in result["unjudged"]])


def _figure(result: dict[str, Any]) -> str:
    name = escape(result["id"])
    parameters = [[f"<code>{escape(p['name'])}</code>", escape(json.dumps(p["value"])), escape(p["origin"]),
                   escape(p["reason"])] for p in result["parameters"]]
    return (
        f'<section id="{name}"><h2>{escape(result["paper"])}. {escape(result["title"])}</h2>'
        f'<p class="soft"><code>{escape(result["command"])}</code>'
        f' &middot; <a href="{name}.csv">numbers</a> &middot; <a href="{name}.json">claims</a></p>'
        f'<p>{escape(result["shows"])}</p>'
        f'<a href="{name}.png"><img src="{name}.png" alt="{escape(result["title"])}" loading="lazy"></a>'
        + _claims(result) + _findings(result) + _unjudged(result)
        + "<details><summary>parameters</summary>"
        + _rows(parameters, ["name", "value", "origin", "why"]) + "</details></section>")


def _missing() -> str:
    rows = [[escape(row.number), escape(row.shows + (f" (missing: {row.part})" if row.part else "")),
             escape(row.why), escape(row.needs)] for row in NOT_REPRODUCED]
    return ('<section id="missing"><h2>Not reproduced, and why</h2>'
            + _rows(rows, ["figure", "shows", "why it is not here", "what it would take"]) + "</section>")


def _meanings() -> str:
    """What each verdict means."""
    rows = [[_badge(word), escape(meaning)] for words in (CLAIM_WORDS, FINDING_WORDS)
            for word, meaning in words.items()]
    return _rows(rows, ["verdict", "means"])


def _papers() -> str:
    """The papers, under the names they have on this page and in the catalogue."""
    names: dict[str, list[str]] = {}
    for entry in theory.theorems():
        known = names.setdefault(entry.key, [])
        if entry.paper not in known:
            known.append(entry.paper)
    rows = [[escape(", ".join(found)), escape(theory.cite(key)), f"<code>{escape(key)}</code>"]
            for key, found in names.items() if key]
    return ('<section id="papers"><h2>The papers</h2>'
            + _rows(rows, ["called here", "paper", "key in theory/papers.bib"]) + "</section>")


def _scoreboard(path: Path) -> str:
    if not path.exists():
        return ""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = [[escape(str(cell)) for cell in row] for row in table.itertuples(index=False)]
    return ('<section id="scoreboard"><h2>Scoreboard: every theorem against the exact law</h2>'
            '<p class="soft"><code>python -m reproduce scoreboard</code> &middot; '
            '<a href="scoreboard.csv">numbers</a></p>' + _rows(rows, list(table.columns)) + "</section>")


def page(folder: Path, scale: str) -> str:
    """The page's HTML."""
    results = [result for name in figures() if (result := store.load_record(folder, name)) is not None]
    claims, findings = ([item for result in results for item in result[kind]]
                        for kind in ("claims", "findings"))
    unjudged = sum(len(result["unjudged"]) for result in results)
    contents = _rows(
        [[escape(r["paper"]), f'<a href="#{escape(r["id"])}">{escape(r["title"])}</a>',
          *(" ".join(_linked(r, item) for item in r[kind]) for kind in ("claims", "findings"))]
         for r in results], ["figure", "shows", "claims of the paper", "findings of ours"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>fedsim: the figures</title><style>{CSS}</style></head><body><main>"
        "<h1>fedsim: the figures</h1>"
        f"<p>{len(results)} figures at the {escape(scale)} scale. "
        f"Claims of the papers: {total(claims)}; {unjudged} more sentences cannot be judged here. "
        f"Findings of ours: {total(findings)}. "
        'A claim that several figures share counts once. <a href="#missing">What is not reproduced</a>.</p>'
        '<p class="soft">A verdict is decided by the exact law where it exists. '
        "&ldquo;Printed&rdquo; means as it stands in our transcription of the paper, which may have lost a "
        "mark: what we hold against a text is graded in <code>theory.errata()</code>, and what cannot be "
        "told from it is in <code>theory.remarks()</code>.</p>"
        f"<section>{_meanings()}</section><section>{contents}</section>"
        + "".join(_figure(result) for result in results) + _missing() + _papers()
        + _scoreboard(folder / "scoreboard.csv") + "</main></body></html>\n")


def _linked(result: dict[str, Any], item: dict[str, str]) -> str:
    """A badge that leads to its claim and names it when pointed at."""
    return (f'<a href="#{escape(result["id"])}.{escape(item["name"])}" title="{escape(item["text"])}">'
            f'{_badge(item["verdict"])}</a>')


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
