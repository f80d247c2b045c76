"""Where the published constants lose what: the ladders of docs/losses_federated.md and docs/losses_gossip.md.

    python docs/losses.py            rewrites the numbers of their tables
    python docs/losses.py --check    changes nothing; exit code 1 where they differ

A ladder begins at a published bound's limit. Each next row repairs one inequality of its proof and is again
a bound (`losses_proofs.py`); the last of them is the recursion of `theory`. Then come the recursion that
knows that Hessians are constant, and the exact law.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import floor, isnan, log10, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from losses_proofs import ALL, DRAWN, GOSSIP, LEAPS, MOMENTUM, PAIR, RING, SINGLE, fa_hmc, fa_ld, gossip

import fedsim as fs
import theory

FOLDER = Path(__file__).resolve().parent
PAGES = {"losses_federated.md": ("fa_ld", "steps", "fa_hmc"),
         "losses_gossip.md": ("de_sgld", "de_sghmc", "stale")}


class Ladder(NamedTuple):
    """Limits: as published, by repairs up to the recursion, and what `theory` says of the rest."""

    published: float
    rungs: list[float]
    recursion: float
    constant_hessians: float
    exact: float

    @classmethod
    def of(cls, problem: Any, algorithm: Any, paper: Any, bound: str, rungs: list[float]) -> Ladder:
        """With these repairs."""
        known, clients = theory.constants(problem, algorithm), "clients" in bound
        again = getattr(paper, "w2_clients_recursion" if clients else "w2_recursion")
        laws = [theory.stationary_law(problem, algorithm, client=i)
                for i in (range(problem.n_clients) if clients else [None])]
        return cls(getattr(paper, bound)(known, algorithm, n_rounds=1).floor, rungs,
                   again(known, algorithm, n_rounds=1).floor,
                   again(known, algorithm, n_rounds=1, hessian_smoothness=0.0).floor,
                   float(np.mean([law.w2(problem.target()) for law in laws])))

    @property
    def rows(self) -> list[float]:
        """From the published limit to the exact one."""
        return [self.published, *self.rungs, self.constant_hessians, self.exact]


def ladders() -> dict[str, list[Ladder]]:
    """By table: one a column."""
    sgld = list(zip(*(gossip(level) for level in (1, 3, 4, 5, 6, 7)), strict=True))
    sghmc = list(zip(*(gossip(level, momentum=True) for level in (1, 2, 3, 7)), strict=True))
    bounds = ("w2_bound", "w2_clients_bound")
    return {"fa_ld": [Ladder.of(PAIR, one, theory.fa_ld, bound, [fa_ld(one, level) for level in range(1, 10)])
                      for one, bound in ((ALL, "w2_bound"), (DRAWN, "w2_bound_partial"))],
            "fa_hmc": [Ladder.of(PAIR, LEAPS, theory.fa_hmc, "w2_bound", [fa_hmc(i) for i in range(1, 6)])],
            "de_sgld": [Ladder.of(RING, GOSSIP, theory.de_sgld, bound, list(column))
                        for bound, column in zip(bounds, sgld, strict=True)],
            "de_sghmc": [Ladder.of(RING, MOMENTUM, theory.de_sghmc, bound, list(column))
                         for bound, column in zip(bounds, sghmc, strict=True)]}


def step_sizes() -> list[list[float]]:
    """FA-LD by step size, local steps and shared noise: published, recursion, constant Hessians, exact."""
    settings = ((.02, 5, .25), (.02, 1, .25), (.001, 5, .25), (.001, 1, .25), (.001, 5, 1.0))
    each = [Ladder.of(PAIR, fs.FALD(size, count, shared_noise=shared), theory.fa_ld, "w2_bound", [])
            for size, count, shared in settings]
    return [[one.published, one.recursion, one.constant_hessians, one.exact] for one in each]


def ages() -> list[list[float]]:
    """Stale SGLD by age: recursion and exact law at a step size, and at a quarter of it."""
    found = []
    for age in (0, 1, 2, 5, 10):
        each = [fs.StaleSGLD(size, staleness=age) for size in (0.001, 0.00025)]
        found.append([number for one in each for number in (
            theory.stale.w2_recursion(theory.constants(SINGLE, one), one, n_rounds=1).floor,
            theory.stationary_law(SINGLE, one).w2(SINGLE.target()))])
    return found


def tables() -> dict[str, list[list[str]]]:
    """The numbers of every table by row; of ladders limits and the factors gained."""
    found = {"steps": step_sizes(), "stale": ages()}
    for name, columns in ladders().items():
        rows = list(zip(*(column.rows for column in columns), strict=True))
        found[name] = [[cell for old, new in zip(before, row, strict=True) for cell in (new, old / new)]
                       for before, row in zip([(nan,) * len(columns), *rows], rows, strict=False)]
    return {name: [["" if isnan(cell) else f"{cell:.3g}" for cell in row] for row in rows]
            for name, rows in found.items()}


def filled(text: str, name: str, rows: Sequence[Sequence[str]]) -> str:
    """A page with the numbers of one table put in, from its second column on; the words stay."""
    begin, end = f"<!-- losses:{name}:begin -->\n", f"<!-- losses:{name}:end -->"
    before, rest = text.split(begin)
    table, after = rest.split(end)
    first, second, *lines = table.splitlines(keepends=True)
    whole = []
    for line, row in zip(lines, rows, strict=True):
        cells = line.strip().split("|")
        cells[2:2 + len(row)] = [f" {number} " if number else " " for number in row]
        whole.append("|".join(cells) + "\n")
    return before + begin + first + second + "".join(whole) + end + after


def differ(shown: str, computed: str) -> bool:
    """Whether two lines differ by more than one unit in the third digit of a number between bars."""
    old, new = shown.split("|"), computed.split("|")
    return len(old) != len(new) or not all(same(*pair) for pair in zip(old, new, strict=True))


def same(shown: str, computed: str) -> bool:
    """Of one cell."""
    if shown == computed:
        return True
    try:
        old, new = float(shown), float(computed)
    except ValueError:
        return False
    return new > 0.0 and abs(old - new) <= 1.001 * 10.0 ** (floor(log10(new)) - 2)


def main(arguments: Sequence[str]) -> int:
    """Rewrite the tables, or with --check only say which lines are out of date."""
    computed, wrong = tables(), []
    for page, names in PAGES.items():
        old = new = (FOLDER / page).read_text(encoding="utf-8")
        for name in names:
            new = filled(new, name, computed[name])
        if "--check" not in arguments:
            (FOLDER / page).write_text(new, encoding="utf-8")
        wrong += [f"{page}: {shown}" for shown, line in zip(old.splitlines(), new.splitlines(), strict=True)
                  if differ(shown, line)]
    print("\n".join(wrong) or "all numbers agree")
    return int(bool(wrong) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
