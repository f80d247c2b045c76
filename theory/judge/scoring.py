"""scoreboard: every theorem of the catalogue on one problem, in one table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsim.interfaces import Algorithm, Problem, validate
from fedsim.laws.recording import recorded_rounds
from fedsim.settings.validation import instance, one_of, whole

from ..declare.bound import Bound
from ..declare.corrections import errata, remarks
from ..declare.privacy_numbers import NUMBERS
from ..declare.registry import Theorem, named, theorems
from ..facts.constants_of_problem import Constants, constants
from .checking import Measured, verdict_on
from .examining import bound_of, checked_numbers, measured_of, numbers_of

if TYPE_CHECKING:
    import pandas as pd

RECORDED = 20
INTERRUPTED = "interrupted"
RATE = "a rate holds up to an unknown constant; theory.rates.fit_rate fits one to measured values"


def scoreboard(problem: Problem, algorithm: Algorithm, n_rounds: int = 100, *, start: Any = None,
               record: Any = None, variants: str = "default", everything: bool = True,
               known: Constants | None = None, privacy: Mapping[str, Any] | None = None,
               progress: bool = False) -> pd.DataFrame:
    """Every theorem of the catalogue on a problem: what it says, what is true, and how far apart they are.

    Bounds, rates, recursions and statements on privacy alike. The exact side has no Monte Carlo error.

    Parameters
    ----------
    problem, algorithm, start
        As for `theory.exact_law`.
    n_rounds : int
        Communications, at least 1.
    record : sequence of int, optional
        Rounds to compare at, where a statement counts rounds; by default `RECORDED` of them, evenly in
        their logarithm.
    variants : "default" or "all"
        "all" adds the printed and other forms of each statement.
    everything : bool
        Also a row for each statement that is not about this problem or algorithm, with the reason.
    known : Constants, optional
        In place of ``theory.constants(problem, algorithm, start)``.
    privacy : mapping, optional
        Numbers for the statements on privacy, as those of `theory.privacy.guarantee`: sensitivity,
        batch_fraction, delta0, delta1, delta2, client_sizes. A statement that lacks one has no value.
    progress : bool
        A line for every statement about the algorithm, on the error stream. Ctrl-C leaves those that are
        not yet compared without their exact side, and ends with the table; a second one ends at once.

    Returns
    -------
    DataFrame
        One row per statement, those about the algorithm first, with columns

        theorem, number, kind, quantity, variant : as in `theory.catalogue`
        verdict : str
            "holds"; "violated" (within its hypotheses, in its default form: this would contradict it) or
            "fails as transcribed" (in another form: see `reason`); "holds outside" or "fails outside" (its
            hypotheses fail, so nothing is contradicted); "rate"; "no value" (refused, or beyond the range
            of floats); "not compared" (no exact side); "not about it".
        index, at : str, int
            What rounds count, and the last of them that was compared.
        bound, exact : float
            There; NaN where there is none.
        ratio, last_ratio, worst_at, n_compared : float, float, int, int
            Largest exact / bound (bound / exact for lower bounds), the one at `at`, where the largest is, and
            of how many rounds. A recursion starts from the exact distance, with a ratio of 1 at round 0. A
            rate has none: it holds up to an unknown constant, and some are for step sizes of their own.
        vacuous, start_distance, floor : True, False or None; floats
            Whether an upper bound is below the distance at the start nowhere (of a bound on privacy,
            whether it says nothing: a delta of 1), that distance, and the bound's limit; None and NaN where
            there are none.
        hypotheses : str
            Those that fail.
        reason : str
            Why there is no verdict, or what limits it.

    Raises
    ------
    ValueError
        Naming argument, value and condition; `UnstableStepSize` beyond stability.

    Source: none; each theorem names its own.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> board = theory.scoreboard(problem, fs.FALD(0.01, local_steps=2), 50)
    >>> row = board[board["theorem"] == "fa_ld.w2_bound"].iloc[0]
    >>> row["verdict"], row["vacuous"], round(float(row["ratio"]), 3)
    ('holds', True, 0.589)
    >>> len(board["theorem"].unique()) == len(theory.catalogue())
    True
    """
    import pandas as pd

    validate(problem, algorithm, start)
    numbers = checked_numbers(privacy)
    count = whole("n_rounds", n_rounds, 1)
    facts = constants(problem, algorithm, start) if known is None else instance("known", known, Constants)
    each = one_of("variants", variants, ("default", "all")) == "all"
    one_of("everything", everything, (True, False))
    one_of("progress", progress, (True, False))
    if record is None:
        record = np.rint(np.geomspace(1, count, RECORDED)).astype(int)
    record = recorded_rounds(count, record)
    measure = partial(measured_of, problem=problem, algorithm=algorithm, n_rounds=count, start=start,
                      known={})
    about, others, begun, stopped = [], [], time.monotonic(), False
    for entry in theorems():
        refusal = _refusal(entry, problem, algorithm)
        for variant in entry.variants if each else entry.variants[:1]:
            if refusal:
                others.append(_row(entry, variant, refusal))
                continue
            make = partial(_bound, entry, problem, algorithm, count, facts, numbers, variant=variant,
                           start=start, record=record if entry.index == "round" else None)
            about.append(_row(entry, variant, "") | _judged(make, None if stopped else measure, record))
            stopped |= about[-1]["reason"] == INTERRUPTED
            if progress:
                print(f"{entry.id}: {about[-1]['verdict']}, {time.monotonic() - begun:.0f} s",
                      file=sys.stderr, flush=True)
    table = pd.DataFrame(about + (others if everything else []))
    return table.astype(dict.fromkeys(("at", "worst_at", "n_compared"), "Int64"))


def _bound(entry: Theorem, problem: Problem, algorithm: Algorithm, n_rounds: int, facts: Constants,
           numbers: Mapping[str, Any], **options: Any) -> Bound:
    """A statement's bound, with those numbers on privacy that it takes."""
    return bound_of(entry, problem, algorithm, n_rounds, facts, given=numbers_of(entry, numbers), **options)


def _refusal(entry: Theorem, problem: Problem, algorithm: Algorithm) -> str:
    """Why a statement is not about these; "" where it is."""
    if not isinstance(algorithm, entry.algorithm):
        return f"it is about {entry.algorithm.__name__}"
    try:
        entry.require(algorithm, problem)
    except ValueError as refusal:
        return str(refusal)
    return ""


def _row(entry: Theorem, variant: str, reason: str) -> dict[str, Any]:
    """What is known of a statement before it is evaluated."""
    return {"theorem": entry.id, "number": f"{entry.paper} {entry.number}", "kind": entry.kind,
            "quantity": entry.quantity, "variant": variant, "verdict": "not about it", "index": entry.index,
            "at": None, "bound": np.nan, "exact": np.nan, "ratio": np.nan, "last_ratio": np.nan,
            "worst_at": None, "n_compared": None, "vacuous": None, "start_distance": np.nan,
            "floor": np.nan, "hypotheses": "",
            "reason": reason}


def _judged(make: Callable[[], Bound], measure: Callable[..., Measured] | None,
            record: np.ndarray) -> dict[str, Any]:
    """What a row says of a statement that is about the algorithm."""
    row: dict[str, Any] = {}
    try:
        bound = make()
        row = {"at": int(bound.rounds[-1]), "bound": float(bound.value[-1]),
               "hypotheses": "; ".join(bound.violated), "vacuous": _says_nothing(bound),
               "start_distance": _or_nan(bound.start_distance), "floor": _or_nan(bound.floor),
               "reason": _numbers(bound)}
        if (servers := bound.inputs.get("n_chains", 1)) != 1:
            return row | {"verdict": "rate", "reason": _joined(RATE, f"of {servers} servers")}
        if measure is None:
            raise KeyboardInterrupt
        asked = record[record <= bound.rounds[-1]] if bound.index == "round" else None
        measured = measure(bound, record=asked)
    except ValueError as refusal:
        return row | {"verdict": "not compared" if row else "no value", "reason": str(refusal)}
    except KeyboardInterrupt:
        if measure is None and not row:  # asked twice
            raise
        return row | {"verdict": "not compared", "reason": INTERRUPTED}
    if bound.kind == "rate":
        rounds, of_bound, of_law = np.intersect1d(bound.rounds, measured.rounds, return_indices=True)
        value, exact = float(bound.value[of_bound[-1]]), float(measured.value[of_law[-1]])
        return row | {"verdict": "rate", "at": int(rounds[-1]), "bound": value, "exact": exact,
                      "reason": _joined(row["reason"], RATE)}
    verdict = verdict_on(bound, measured, "", True)
    fails = "violated" if bound.variant == named(bound.theorem).variants[0] else "fails as transcribed"
    word = ("holds" if verdict.holds else fails) if verdict.hypotheses_met else (
        "holds outside" if verdict.holds else "fails outside")
    assert verdict.compared is not None
    known = [one.id for one in (*errata(theorem=bound.theorem), *remarks(theorem=bound.theorem))
             ] if word == fails else []
    told = f"see theory.errata and theory.remarks on {', '.join(known)}" if known else ""
    last, limit, exact = (side[-1].item() for side in verdict.compared)
    vacuity = "" if row["vacuous"] is None else bound.vacuity
    return row | {"verdict": word, "at": last, "bound": limit, "exact": exact, "ratio": verdict.tightness,
                  "last_ratio": verdict.last_ratio, "worst_at": verdict.worst_round,
                  "n_compared": verdict.n_compared,
                  "reason": _joined(row["reason"], vacuity, verdict.note, told)}


def _or_nan(number: float | None) -> float:
    return np.nan if number is None else float(number)


def _says_nothing(bound: Bound) -> bool | None:
    """Is it vacuous? None where that has no meaning, as of a bound on the start itself."""
    if bound.quantity == "privacy_delta":
        return bool((bound.value >= 1.0).all())
    return None if bound.start_distance is None or bound.rounds[-1] == 0 else bound.is_vacuous


def _joined(*parts: str) -> str:
    return ". ".join(filter(None, parts))


def _numbers(bound: Bound) -> str:
    """What a statement on privacy is evaluated at."""
    setting = bound.inputs.get("setting")
    if setting is None:
        return ""
    numbers = {name: bound.inputs[name][-1] for name in ("epsilon", "delta") if name in bound.inputs}
    numbers |= {name: np.max(vars(setting)[name]) for name in NUMBERS if vars(setting)[name] is not None}
    return "at " + ", ".join(f"{name}={value:.3g}" for name, value in numbers.items())
