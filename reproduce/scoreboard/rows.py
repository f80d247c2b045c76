"""The scoreboard's rows: a theorem on random problems, each of its variants against the exact quantity.

What is drawn at random for an algorithm stands in `reproduce/random_settings.py`. Every theorem has a random
stream of its own, so that its rows depend neither on the other theorems nor on the order in which they are
worked through.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import theory
from theory.judge.examining import drawn_numbers

from ..random_settings import DRAWS, known

SEED = 2024
TRIES = 40
"""Draws per problem wanted, before a theorem counts as not applicable to what is drawn."""
NOTHING = 1e-12
"""Ratios below this are shown as 0: `theory.check` knows a quantity to this share of its scale."""
DIGITS = 4
"""Significant digits; the last of many more may change between processors."""

OURS = "derived here"
"""How the numbers of statements begin that no paper has."""
SMOOTHNESS = "hessian_smoothness"
RATE = "not compared: a rate holds up to an unknown constant"
NO_SETTINGS = "no random settings for it"
Row = dict[str, Any]


def draws(entry: theory.Theorem, n_problems: int) -> Iterator[tuple[Any, Any, int, Any]]:
    """Problems to which a theorem applies, none for a rate; fewer are the beginning of more."""
    draw = DRAWS.get(entry.id, DRAWS.get(entry.algorithm))
    if draw is None or entry.kind == "rate":
        return
    rng = np.random.default_rng([SEED, zlib.crc32(entry.id.encode())])
    count = 0
    for _ in range(TRIES * n_problems):
        drawn = draw(rng)
        if entry.applies(drawn[1], drawn[0]):
            yield drawn
            count += 1
            if count == n_problems:
                return


def verdicts(entry: theory.Theorem, variant: str, drawn: Iterable[tuple[Any, Any, int, Any]],
             ) -> Iterator[theory.Verdict]:
    """Of each random problem, the verdict on a variant."""
    for problem, algorithm, n_rounds, start in drawn:
        yield theory.examine(entry, problem, algorithm, n_rounds, start=start, variant=variant,
                             known=known(problem, algorithm, n_rounds, start),
                             privacy=drawn_numbers(entry, problem, algorithm, n_rounds, start))


def published(entry: theory.Theorem) -> list[theory.Theorem]:
    """Upper bounds in print of what a bound of ours is about; none for other theorems."""
    if not entry.number.startswith(OURS):
        return []
    return [other for other in theory.theorems()
            if other.quantity == entry.quantity and other.algorithm is entry.algorithm
            and other.kind == entry.kind == "upper" and not other.number.startswith(OURS)]


def gains(entry: theory.Theorem, drawn: Iterable[tuple[Any, Any, int, Any]]) -> Iterator[tuple[float, float]]:
    """Default variants of `published` over ours, where the hypotheses of both hold: least, and at the end.

    A statement that is read with a constant of the Hessian's smoothness is compared with ours that is told it
    too.
    """
    others = published(entry)
    for problem, algorithm, n_rounds, start in drawn if others else ():
        facts = theory.constants(problem, algorithm, start)
        for other in others:
            if not other.applies(algorithm, problem):
                continue
            ours = entry.function(facts, algorithm, n_rounds=n_rounds, **told(other, facts))
            extra = {} if other.inputs is None else other.inputs(problem, algorithm, facts, n_rounds, start)
            theirs = other.function(facts, algorithm, n_rounds=n_rounds, **extra)
            rounds, one, two = np.intersect1d(ours.rounds, theirs.rounds, return_indices=True)
            if rounds[-1] > 0 and ours.hypotheses_hold and theirs.hypotheses_hold:
                ratios = (theirs.value[two] / ours.value[one])[rounds > 0]
                yield float(ratios.min()), float(ratios[-1])


def told(entry: theory.Theorem, facts: theory.Constants) -> dict[str, float | None]:
    """The Hessian's smoothness, which a statement that takes it reads from the constants."""
    reads = SMOOTHNESS in inspect.signature(entry.function).parameters
    return {SMOOTHNESS: facts.hessian_smoothness} if reads else {}


def shown(number: float) -> float:
    """A number as the table has it."""
    return float(f"{number:.{DIGITS}g}")


def ratio(number: float) -> float:
    """A ratio as the table has it."""
    return 0.0 if number < NOTHING else shown(number)


def first_of(judged: Iterable[theory.Verdict]) -> tuple[float, float]:
    """The bound at its last round and the ratio, on the first problem where there is a ratio to see.

    Of the problems within the hypotheses, that is; the last of them where every ratio is 0.
    """
    shown_first = (float("nan"), float("nan"))
    for verdict in judged:
        if verdict.hypotheses_met:
            shown_first = shown(verdict.bound.value[-1]), ratio(verdict.tightness)
            if shown_first[1] > 0.0:
                break
    return shown_first


def rows(entry: theory.Theorem, n_problems: int) -> list[Row]:
    """One row per variant."""
    drawn = list(draws(entry, n_problems))
    gained = np.array(list(gains(entry, drawn))).reshape(-1, 2)
    over = {"least_gain": shown(gained[:, 0].min()),
            "median_gain": shown(float(np.median(gained[:, 1])))} if len(gained) else {}
    return [{"theorem": entry.id, "statement": f"{entry.paper} {entry.number}", "variant": variant,
             "quantity": entry.quantity, **_summary(entry, list(verdicts(entry, variant, drawn))),
             **over}
            for variant in entry.variants]


def _summary(entry: theory.Theorem, judged: list[theory.Verdict]) -> Row:
    """What became of a variant on its problems."""
    inside = [verdict for verdict in judged if verdict.hypotheses_met]
    ratios = [verdict.tightness for verdict in inside]
    wrong = sum(verdict.contradicts_theorem for verdict in judged)
    if not judged:
        word = RATE if entry.kind == "rate" else NO_SETTINGS
    else:
        word = ("violated" if wrong else "holds") if inside else "never within hypotheses"
    of_distance = any(verdict.bound.start_distance is not None for verdict in judged)
    first = first_of(judged)
    known = [erratum.id for erratum in theory.errata(theorem=entry.id)] if wrong else []
    return {"problems": len(judged), "within_hypotheses": len(inside), "verdict": word, "violations": wrong,
            "violations_outside": sum(not verdict.holds for verdict in judged) - wrong,
            "largest_ratio": ratio(max(ratios, default=np.nan)),
            "largest_at_end": ratio(max((verdict.last_ratio for verdict in inside
                                         if not np.isnan(verdict.last_ratio)), default=np.nan)),
            "median_ratio": ratio(float(np.median(ratios)) if ratios else np.nan),
            "first_bound": first[0], "first_ratio": first[1],
            "vacuous": shown(float(np.mean([verdict.is_vacuous for verdict in judged]))
                             if of_distance else np.nan),
            "errata": "; ".join(known)}
