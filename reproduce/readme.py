"""`python -m reproduce readme`: the tables of README.md and of docs/, from the stored results.

Each table stands between two HTML comments, ``<!-- name:begin -->`` and ``<!-- name:end -->``; the
rest of a page is written by hand and not touched.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from theory import worst_case

from . import certificates, headlines, store, worst_cases
from .coverage import NOT_REPRODUCED
from .discovery import natural_order
from .verdicts import CLAIM_WORDS, FINDING_WORDS, counted, total

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "tools" / "benchmarks" / "results.csv"
"""Written by `make bench`: one row a contestant, the header is the table's."""
SHOWN = ("i", "iv", "de", "de-minibatch", "stale")
BEFORE_NUMBER = r"^(ours, for )?(FA-LD|FA-HMC|DE-SG\w+|Stale gradients) (figures? )?"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a bar within a cell is escaped.

    >>> print(markdown(["a", "b"], [["1", "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    lines = [header, *rows]
    text = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(header), *text[1:]])


def records(folder: Path = store.FOLDER) -> list[dict[str, Any]]:
    """The claims JSON of every stored figure, in natural order."""
    paths = sorted(folder.glob("*.json"), key=lambda path: natural_order(path.stem))
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [record for record in stored if "claims" in record]


def figure_table(folder: Path = store.FOLDER) -> str:
    """Paper figure -> command -> verdicts on the paper's claims and on our findings."""
    rows = []
    for record in records(folder):
        picture = f"[{record['title']}](../figures/{record['id']}.svg)"
        verdicts = [counted([item["verdict"] for item in record[kind]]) for kind in ("claims", "findings")]
        rows.append([record["paper"], picture, f"`{record['command']}`", *verdicts])
    if not rows:
        return "No figure is stored yet: `make figures`."
    return markdown(["figure", "shows", "command", "claims of the paper", "findings of ours"], rows)


def headline_table(folder: Path = store.FOLDER) -> str:
    """One line a figure, by paper."""
    rows: dict[str, list[list[str]]] = {paper: [] for paper in (*headlines.PAPERS.values(), headlines.OTHERS)}
    for record in records(folder):
        paper = headlines.paper_of(record["id"])
        number = re.sub(BEFORE_NUMBER, "", record["paper"])
        rows[paper].append([number, f"[{record['title']}](figures/{record['id']}.svg)", f"`{record['id']}`",
                            headlines.headline(record)])
    return markdown(["figure", "shows", "id", "claims of the paper"], [
        line for paper, lines in rows.items() if lines for line in [[f"**{paper}**", "", "", ""], *lines]])


def verdict_table(folder: Path = store.FOLDER) -> str:
    """What each verdict means, and how many there are."""
    stored = records(folder)
    rows = [[word, meaning] for word, meaning in CLAIM_WORDS.items()]
    ours = [[word, meaning] for word, meaning in FINDING_WORDS.items()]
    totals = [total(item for record in stored for item in record[kind]) for kind in ("claims", "findings")]
    return "\n".join([
        markdown(["a claim of a paper", "means"], rows), "",
        markdown(["a finding of ours", "means"], ours), "",
        f"The papers' claims: {totals[0]}; {headlines.n_unjudged(stored)} more sentences of theirs cannot be "
        f"judged here. Findings of ours: {totals[1]}. What several figures share counts once."])


def missing_table() -> str:
    """The papers' figures that are not reproduced, and why."""
    rows = [[row.number, row.shows + (f" (missing: {row.part})" if row.part else ""), row.why, row.needs]
            for row in NOT_REPRODUCED]
    return markdown(["figure", "shows", "why it is not here", "what it would take"], rows)


def benchmark_table(path: Path = BENCHMARKS) -> str:
    """The benchmark's own output as a table, and what its cases are."""
    if not path.exists():
        return "Not measured yet: `make bench`."
    header, *rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    whole = path.with_suffix(".json")
    cases = json.loads(whole.read_text(encoding="utf-8"))["cases"] if whole.exists() else {}
    legend = "".join(f"- {name}: {case['title']}\n" for name, case in cases.items())
    return (f"{legend}\n" if legend else "") + markdown(header, rows)


def speed_table(path: Path = BENCHMARKS) -> str:
    """fedsim, NumPy and JAX on the same work, one thread each: the cases of `SHOWN`."""
    cases = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["cases"]
    with path.open(encoding="utf-8", newline="") as file:
        table = {(case, program): rest for case, program, *rest in csv.reader(file)}
    rows = []
    for case in SHOWN:
        step, time, *_ = table[case, "fedsim"]
        rows.append([cases[case]["title"], f"{time} ns per {step}",
                     *(table[case, other][2] for other in ("NumPy", "JAX tuned"))])
    return markdown(["one thread", "fedsim", "NumPy, times fedsim's", "JAX, times fedsim's"], rows)


def worst_table(folder: Path = store.FOLDER) -> str:
    """By theorem the largest ratio of random problems and of searches, and the best without the start."""
    stored = {name: worst_case.from_record(record) for name, record in worst_cases.load(folder).items()}
    with (folder / "scoreboard.csv").open(encoding="utf-8", newline="") as file:
        random = {(row["theorem"], row["variant"]): row["largest_ratio"] for row in csv.DictReader(file)}
    rows = []
    for aim in sorted({found.aim for found in stored.values()}):
        best = {objective: max((found for found in stored.values()
                                if (found.aim, found.objective) == (aim, objective)),
                               key=lambda found: found.value, default=None)
                for objective in ("ratio", "excess", "stationary")}
        found = best["ratio"]
        assert found is not None
        agreed = "agree" if found.agreed else "differ"
        rows.append([f"`{aim}`", random[aim, found.variant], f"{found.value:.4g}",
                     f"{found.problem.n_clients}, {found.problem.dim}", agreed,
                     found.binding.replace("_", " "), *("" if one is None else f"{one.value:.3g}" for one in (
                         best["excess"], best["stationary"]))])
    return markdown(["theorem", "60 random", "found", "N, d", "restarts", "largest term", "excess", "limits"],
                    rows)


def certificate_table(folder: Path = store.FOLDER) -> str:
    """Certified rates by algorithm, step size and curvature."""
    header = [f"eta L = {share:g}, L/m = {L:g}" for share in certificates.SHARES for L in certificates.KAPPAS]
    return markdown(["a round brings chains closer by", *header], certificates.rows(folder))


PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"figures": headline_table, "benchmarks": speed_table},
    "docs/figures.md": {"figures": figure_table, "missing": missing_table},
    "docs/verdicts.md": {"verdicts": verdict_table},
    "docs/benchmarks.md": {"benchmarks": benchmark_table},
    "docs/worst_cases.md": {"worst": worst_table},
    "docs/guide/certificates.md": {"certificates": certificate_table},
}


def filled(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """`text` with every marked part replaced by what it should be now.

    Raises
    ------
    ValueError
        When a part is not marked exactly once.
    """
    for name, part in parts.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, opened, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not opened or not closed or begin in after:
            raise ValueError(f"a page must contain {begin} ... {end} exactly once")
        text = f"{before}{begin}\n{part()}\n{end}{after}"
    return text


def main(arguments: Sequence[str] = ()) -> int:
    """Rewrite the tables of the pages, or with --check only say whether they are up to date."""
    parser = argparse.ArgumentParser(prog="python -m reproduce readme",
                                     description="Fill the tables of README.md and docs/.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 when out of date")
    options = parser.parse_args(list(arguments))
    fresh = {}
    for name, parts in PAGES.items():
        old = (ROOT / name).read_text(encoding="utf-8")
        new = filled(old, parts)
        if new != old:
            fresh[name] = new
    for name, text in ({} if options.check else fresh).items():
        store.publish((ROOT / name).parent, {Path(name).name: text})
    verb = "out of date" if options.check else "tables rewritten"
    print("\n".join(f"{name}: {verb if name in fresh else 'up to date'}" for name in PAGES))
    return int(options.check and bool(fresh))
