"""Make, redraw or check one figure."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import store
from .discovery import figures
from .figure import NOT_TESTABLE, BadInput, Figure, Tables, clear_note
from .parameter_overrides import FAILURES, Changes, judged, options
from .picture import SHOWN, look_alike, pictures, verdict_line as verdict_line
from .verdicts import OPEN


def record(figure: Figure, tables: Tables, scale: str, files: Collection[str] = (),
           changes: Changes | None = None) -> dict[str, Any]:
    """Everything about a result that is not a number of its tables: what the claims JSON holds."""
    parts = {"claims": figure.claims(tables), "findings": figure.findings(tables),
             "unjudged": figure.unjudged(), "parameters": figure.parameters(scale),
             } if not changes else judged(figure, tables, changes, scale)
    return {
        "id": figure.id, "title": figure.title, "paper": figure.paper, "shows": figure.shows,
        "scale": scale, "command": " ".join([figure.command(scale, files), *options(changes or {})]),
        "cost": dict(figure.cost), **({"files": list(files)} if files else {}), **parts,
        "tables": {name: {"rows": len(table), "columns": list(table.columns)}
                   for name, table in tables.items()},
    }


@dataclass(frozen=True)
class Wish:
    """What the command line says of how a figure is to be made and shown.

    Attributes
    ----------
    changes : mapping
        Other values of parameters, by name.
    formats : sequence of str
        Of the picture.
    style : mapping
        Settings of matplotlib on top of the house style.
    """

    changes: Changes = field(default_factory=dict)
    formats: Sequence[str] = SHOWN
    style: Mapping[str, Any] = field(default_factory=dict)


def publish(figure: Figure, tables: Tables, scale: str, folder: Path, with_csv: bool = True,
            files_read: Collection[str] = (), wish: Wish = Wish()) -> dict[str, Any]:
    """Judge, draw and store; nothing is replaced unless all of it succeeds."""
    text = kept(figure, store.to_csv(tables), folder)
    written = store.from_csv(text)  # so that --draw sees exactly what was drawn and judged here
    result = record(figure, written, scale, files_read, wish.changes)
    files: dict[str, str | bytes] = {f"{figure.id}.csv": text} if with_csv else {}
    made = kept_pictures(pictures(figure, written, result, wish.formats, wish.style), f"{figure.id}.svg",
                         folder)
    store.publish(folder, {**files, f"{figure.id}.json": store.to_json(result), **made})
    return result


def kept(figure: Figure, text: str, folder: Path) -> str:
    """The stored CSV if `text` says the same within `--check`'s tolerance, else `text`.

    Another processor rounds otherwise; that alone must change no file.
    """
    path = folder / f"{figure.id}.csv"
    if not path.exists():
        return text
    old = path.read_text(encoding="utf-8")
    try:
        stored = store.from_csv(old)
    except ValueError:
        return text
    fresh = store.from_csv(text)
    same = list(stored) == list(fresh) and all(list(stored[name]) == list(fresh[name]) for name in fresh)
    return old if same and not store.differences(stored, fresh, figure.loose) else text


def kept_pictures(made: Mapping[str, bytes], svg: str, folder: Path) -> dict[str, str | bytes]:
    """The stored pictures if the stored SVG looks like the new one, else the new ones."""
    if svg not in made or not (folder / svg).exists():
        return {**made}
    same = look_alike(made[svg].decode(), (folder / svg).read_text(encoding="utf-8"))
    return {name: (folder / name).read_bytes() if same and (folder / name).exists() else new
            for name, new in made.items()}


def computed(figure: Figure, scale: str, given: Mapping[str, Path] | None = None,
             changes: Changes | None = None) -> tuple[Tables, float]:
    """A figure's tables from the `given` data files, and the seconds they took."""
    began = time.perf_counter()
    try:
        return figure.compute(scale, given, changes=changes), time.perf_counter() - began
    finally:
        clear_note()


def computed_by_id(ids: Sequence[str], scale: str, given: Mapping[str, Path], changes: Changes | None = None,
                   ) -> list[tuple[str, tuple[Tables, float] | Exception]]:
    """The same for another process, which knows figures by their ids; or what is wrong with their input."""
    expected = FAILURES if changes else (BadInput,)
    made: list[tuple[str, tuple[Tables, float] | Exception]] = []
    for id in ids:
        try:
            made.append((id, computed(figures()[id], scale, given, changes)))
        except expected as error:
            made.append((id, error))
    return made


def make(figure: Figure, scale: str, folder: Path, given: Mapping[str, Path] | None = None,
         done: tuple[Tables, float] | None = None, wish: Wish = Wish()) -> tuple[dict[str, Any], float]:
    """Compute and publish a figure, from the `given` data files. Returns its record and the seconds.

    `done` is what `computed` gave, where that is done already.
    """
    tables, seconds = computed(figure, scale, given, wish.changes) if done is None else done
    read = figure.files(given or {})
    return publish(figure, tables, scale, folder, files_read=read, wish=wish), seconds


def redraw(figure: Figure, scale: str, folder: Path, source: Path | None = None,
           wish: Wish = Wish()) -> dict[str, Any]:
    """Draw and judge again from the tables stored in `source` (default the same folder), without simulating.

    What was made with other parameters keeps them, and is marked again.
    """
    source = source or folder
    tables, old = store.load_tables(source, figure.id), store.load_record(source, figure.id) or {}
    wish = replace(wish, changes=old.get("changed", {}).get("values", {}))
    return publish(figure, tables, scale, folder, with_csv=source != folder,
                   files_read=old.get("files", ()), wish=wish)


def check(figure: Figure, scale: str, folder: Path, given: Mapping[str, Path] | None = None,
          done: tuple[Tables, float] | None = None, changes: Changes | None = None) -> list[str]:
    """Compute afresh, or take what is `done`, and compare with what is stored. Returns the differences."""
    stored = store.load_tables(folder, figure.id)
    tables, _ = computed(figure, scale, given, changes) if done is None else done
    fresh = store.from_csv(store.to_csv(tables))
    differing = store.differences(stored, fresh, figure.loose)
    old = store.load_record(folder, figure.id)
    if old is None:
        return [*differing, f"{figure.id}.json is missing"]
    again = json.loads(store.to_json(record(figure, stored, scale, old.get("files", ()), changes)))
    for key in dict.fromkeys([*again, *old]):
        if again.get(key) != old.get(key):
            differing.append(f"{figure.id}.json, {key}: stored {_first(old.get(key), again.get(key))}; "
                             f"the code says {_first(again.get(key), old.get(key))}")
    now = record(figure, fresh, scale, old.get("files", ()), changes)
    for kind in ("claims", "findings"):
        for new, before in zip(now[kind], again[kind], strict=True):
            if new["verdict"] != before["verdict"] and not (
                    figure.unstable and {NOT_TESTABLE, OPEN} & {new["verdict"], before["verdict"]}):
                differing.append(f"{new['text']!r}: stored {before['verdict']}, fresh {new['verdict']}")
    return differing


def _first(one: Any, other: Any) -> str:
    """Where `one` first differs from `other`."""
    if isinstance(one, list) and isinstance(other, list):
        return next((repr(a) for a, b in itertools.zip_longest(one, other) if a != b), repr(one))
    return repr(one)
