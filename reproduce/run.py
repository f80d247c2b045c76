"""Make, redraw or check one figure."""

from __future__ import annotations

import io
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from . import plot, store
from .figure import NOT_TESTABLE, Figure, Tables, clear_note


def record(figure: Figure, tables: Tables, scale: str, files: Collection[str] = ()) -> dict[str, Any]:
    """Everything about a result that is not a number of its tables: what the claims JSON holds."""
    return {
        "id": figure.id, "title": figure.title, "paper": figure.paper, "shows": figure.shows,
        "scale": scale, "command": figure.command(scale, files), "cost": dict(figure.cost),
        **({"files": list(files)} if files else {}),
        "claims": figure.claims(tables), "parameters": figure.parameters(scale),
        "tables": {name: {"rows": len(table), "columns": list(table.columns)}
                   for name, table in tables.items()},
    }


def png(figure: Figure, tables: Tables) -> bytes:
    """The picture as PNG."""
    file = io.BytesIO()
    with plot.style():
        figure.draw(tables).savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def publish(figure: Figure, tables: Tables, scale: str, folder: Path,
            with_csv: bool = True, files_read: Collection[str] = ()) -> dict[str, Any]:
    """Judge, draw and store; nothing is replaced unless all of it succeeds."""
    text = store.to_csv(tables)
    written = store.from_csv(text)  # so that --draw sees exactly what was drawn and judged here
    result = record(figure, written, scale, files_read)
    files: dict[str, str | bytes] = {f"{figure.id}.csv": text} if with_csv else {}
    files |= {f"{figure.id}.json": store.to_json(result), f"{figure.id}.png": png(figure, written)}
    store.publish(folder, files)
    return result


def make(figure: Figure, scale: str, folder: Path,
         given: Mapping[str, Path] | None = None) -> tuple[dict[str, Any], float]:
    """Compute and publish a figure, from the `given` data files. Returns its record and the seconds."""
    began = time.perf_counter()
    try:
        tables = figure.compute(scale, given)
    finally:
        clear_note()
    result = publish(figure, tables, scale, folder, files_read=figure.files(given or {}))
    return result, time.perf_counter() - began


def redraw(figure: Figure, scale: str, folder: Path) -> dict[str, Any]:
    """Draw and judge again from the stored tables, without simulating."""
    tables, old = store.load_tables(folder, figure.id), store.load_record(folder, figure.id)
    return publish(figure, tables, scale, folder, with_csv=False,
                   files_read=old.get("files", ()) if old else ())


def check(figure: Figure, scale: str, folder: Path, given: Mapping[str, Path] | None = None) -> list[str]:
    """Compute afresh and compare with what is stored. Returns the differences in words."""
    stored = store.load_tables(folder, figure.id)
    try:
        fresh = store.from_csv(store.to_csv(figure.compute(scale, given)))
    finally:
        clear_note()
    found = store.differences(stored, fresh, figure.loose)
    old = store.load_record(folder, figure.id)
    if old is None:
        return [*found, f"{figure.id}.json is missing"]
    for claim, before in zip(figure.claims(fresh), old["claims"], strict=False):
        if figure.loose and claim["text"] == before["text"] and NOT_TESTABLE in (
                claim["verdict"], before["verdict"]):
            continue  # an interval of such a run may take in zero or not
        if (claim["text"], claim["verdict"]) != (before["text"], before["verdict"]):
            found.append(f"claim {claim['text']!r}: stored {before['verdict']}, fresh {claim['verdict']}")
    if len(old["claims"]) != len(figure.module.CLAIMS):
        found.append(f"stored {len(old['claims'])} claims, fresh {len(figure.module.CLAIMS)}")
    return found
