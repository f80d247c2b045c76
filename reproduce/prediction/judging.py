"""Is one setting worse than every other, whatever test rows and runs were drawn?

A difference of two mean scores errs by its test rows, which all settings share, and by the runs of either
setting. For rows, drawn again, the error is the root of the mean square of what that changes; runs, which
are few, have their standard deviation, with n - 1, over root n. The half width is the root of the sum of
squares of these, each times its own Student quantile at `LEVEL` over the number of comparisons of one score
on one data set at one number of rounds: whatever share each has in the variance of a normal difference, an
interval misses no more often (Banerjee, 1960: the distribution function of a squared normal is concave).

The calibration error is a sum of absolute values, so that few rows make it too large, and more so where it
is small. Its intervals are of what so many test rows show in expectation, as the papers plot; what the bias
adds when rows are drawn again is part of the half width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from fedsim.laws.predictions import N_BINS

from ..claims import Tables
from ..tables import among, groups, listed
from ..verdicts import FAIL, LEVEL, NOT_TESTABLE, PASS, Judgement

WORSE = {"accuracy": -1.0, "brier": 1.0, "ece": 1.0, "nll": 1.0}
"""Which way a score is worse."""
NAMES = {"accuracy": "accuracy", "brier": "Brier score", "ece": "calibration error (ECE)",
         "nll": "negative log likelihood"}
N_DRAWS = 1000
ECHO = ("Prior and number of rounds are not printed; step sizes, which the paper tunes for the best "
        "statistic, are tuned by log loss of validation rows; data are stand-ins where --data gives "
        "none: nothing here can contradict the sentence.")
"""Of the papers' sentences about predictions."""


def _parts(predictives: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """What each row adds to a score, (n_runs, m, parts): ECE has a part for each bin."""
    n_runs, n_rows, n_classes = predictives.shape
    confidence, right = predictives.max(axis=2), predictives.argmax(axis=2) == labels
    bins = np.searchsorted(np.arange(1, N_BINS) / N_BINS, confidence)
    gaps = np.zeros((n_runs, n_rows, N_BINS))
    np.put_along_axis(gaps, bins[..., None], (right - confidence)[..., None], axis=2)
    chance = np.take_along_axis(predictives, labels[None, :, None], axis=2)
    squares = ((predictives - np.eye(n_classes)[labels]) ** 2).sum(axis=2, keepdims=True)
    return {"accuracy": right[..., None].astype(float), "brier": squares, "ece": gaps,
            "nll": -np.log(np.maximum(chance, 1e-300))}


def compared(last: Mapping[int, np.ndarray], labels: np.ndarray, baseline: int, seed: int,
             known: Sequence[int] = ()) -> pd.DataFrame:
    """How much worse the baseline is than every other setting, with intervals.

    Parameters
    ----------
    last : {setting: predictives (n_runs, m, C)}
    labels : (m,)
    baseline : one of the settings
    seed : int
    known : settings of which another run would give the same predictive

    Returns
    -------
    A row for each score and other setting: `worse` (mean over runs), `low`, `high`.

    Raises
    ------
    ValueError
        Where a setting that is not `known` has a single run.
    """
    alone = [value for value, one in last.items() if len(one) < 2 and value not in known]
    if alone:
        raise ValueError(f"last[{alone[0]}] has {len(last[alone[0]])} runs; it must have at least 2")
    rng, others = np.random.default_rng(seed), [value for value in last if value != baseline]
    n_rows, tail = len(labels), LEVEL / (2.0 * len(others))
    counts = rng.multinomial(n_rows, np.full(n_rows, 1.0 / n_rows), N_DRAWS) / n_rows
    parts = {value: _parts(predictives, labels) for value, predictives in last.items()}
    rows = []
    for name, sign in WORSE.items():
        mean, again, of_runs = {}, {}, {}
        for value in last:
            each = _scores(parts[value][name], np.full((1, n_rows), 1.0 / n_rows))[0]
            mean[value], again[value] = each.mean(), _scores(parts[value][name], counts).mean(axis=1)
            of_runs[value] = 0.0 if value in known else (
                stats.t.isf(tail, len(each) - 1) ** 2 * each.var(ddof=1) / len(each))
        for value in others:
            worse = sign * (mean[baseline] - mean[value])
            moved = sign * (again[baseline] - again[value]) - worse
            of_rows = stats.t.isf(tail, n_rows - 1) ** 2 * (moved**2).mean()
            half = float(np.sqrt(of_rows + of_runs[baseline] + of_runs[value]))
            rows.append({"score": name, "setting": value, "worse": worse, "low": worse - half,
                         "high": worse + half})
    return pd.DataFrame(rows)


def _scores(parts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A score of each run from its rows' parts (n_runs, m, k), with weights of rows: (draws, n_runs)."""
    total: np.ndarray = np.abs(np.tensordot(weights, parts, axes=(1, 1))).sum(axis=2)
    return total


def at_end(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last round."""
    return among(table, round=table["round"].max())


def early(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first round at which settings are compared."""
    return among(table, round=table["round"].min())


def worst(table: pd.DataFrame, scores: Sequence[str], every: bool = True) -> tuple[str, str]:
    """Is the baseline surely worse in each of these scores: than every other setting, or only than some?

    FAIL where in some score it is surely not.
    """
    texts, verdicts = [], []
    for name in scores:
        one = among(table, score=name)
        good, bad = one["low"] > 0.0, one["high"] < 0.0
        verdicts.append(PASS if (good.all() if every else good.any()) else FAIL if (
            bad.any() if every else bad.all()) else NOT_TESTABLE)
        texts.append(f"{NAMES[name]} " + ", ".join(
            f"{row.worse:+.4f} ({row.low:+.4f} to {row.high:+.4f}) than {row.setting}"
            for row in one.itertuples()))
    verdict = PASS if set(verdicts) == {PASS} else FAIL if FAIL in verdicts else NOT_TESTABLE
    words = {PASS: "It is worse", FAIL: "It is not worse", NOT_TESTABLE: "It is not certainly worse"}[verdict]
    return verdict, (f"How much worse it is after {table['round'].iloc[0]} rounds, below 0 better: "
                     f"{'; '.join(texts)}. {words} than {'all' if every else 'some'}.")


def claimed(table: pd.DataFrame, scores: Sequence[str], tuning: pd.DataFrame, name: str,
            every: bool = True) -> Judgement:
    """`worst` at the last round, and earlier in the remark.

    Where a best step size lies at an end of the grid a wider one might turn the verdict: NOT TESTABLE.
    """
    verdict, text = worst(at_end(table), scores, every=every)
    sooner = [number for number, one in groups(table, "round") if number < table["round"].max()
              and worst(one, scores, every=every)[0] == PASS]
    remark = (f"After {listed([str(number) for number in sooner])} rounds, each by itself, it certainly is."
              if sooner and verdict != PASS else "")
    edges = among(tuning, edge=True)["setting"].tolist()
    if not edges:
        return Judgement(verdict, text, remark)
    return Judgement(NOT_TESTABLE, f"{text.rpartition('. ')[0]}. {_at_edge(edges, name)}", remark)


def _at_edge(edges: Sequence[int], name: str) -> str:
    where = ", ".join(f"{name} = {value}" for value in edges)
    return f"The best step size lies at an end of the grid for {where}: a wider one may turn it."


def by_set(tables: Tables) -> dict[str, Tables]:
    """The rows of every data set, by its name as it has to be printed."""
    facts = tables["facts"].drop_duplicates("set")
    return {str(data): {name: among(table, set=one) for name, table in tables.items()}
            for one, data in zip(facts["set"], facts["data"], strict=True)}


def on_sets(tables: Tables, judge: Callable[[Tables], Any], sets: Sequence[str] = ()) -> Judgement:
    """`judge` on the rows of every data set, of those named where `sets` names some; all must agree to PASS.

    The reason begins with the name of the data.
    """
    every = by_set(tables)
    used = {name: own for name, own in every.items() if not sets or own["facts"]["set"].iloc[0] in sets}
    if not used:
        return Judgement(NOT_TESTABLE, f"The data are {listed(list(every))}: give {sets[0]} with --data.")
    found = [Judgement(*judge(own)) for own in used.values()]
    verdicts = {one.verdict for one in found}
    verdict = PASS if verdicts == {PASS} else FAIL if FAIL in verdicts else NOT_TESTABLE
    why = " ".join(f"{name}. {one.why}" for name, one in zip(used, found, strict=True))
    return Judgement(verdict, why, " ".join(one.remark for one in found if one.remark))


def better(table: pd.DataFrame, tuning: pd.DataFrame, score: str, what: str, name: str) -> tuple[str, str]:
    """Is the baseline, `what`, surely better than the only other setting, with step sizes inside the grid?"""
    row = among(at_end(table), score=score).iloc[0]
    verdict = PASS if row["high"] < 0.0 else FAIL if row["low"] > 0.0 else NOT_TESTABLE
    words = {PASS: "it is better", FAIL: "it is worse", NOT_TESTABLE: "which is better is open"}[verdict]
    text = (f"{NAMES[score]} of {what} less that of {name} = {row['setting']}: {row['worse']:+.4f} "
            f"({row['low']:+.4f} to {row['high']:+.4f})")
    edges = among(tuning, edge=True)["setting"].tolist()
    if edges:
        return NOT_TESTABLE, f"{text}. {_at_edge(edges, name)}"
    return verdict, f"{text}; {words}."


def beaten(table: pd.DataFrame, score: str, name: str, facts: pd.DataFrame) -> tuple[str, str]:
    """Is some setting surely better than the baseline, the exact predictive, of which `facts` tell?"""
    fact = facts.iloc[0]
    accepted = f"{100 * fact.get('acceptance', np.nan):.0f}% of its proposals accepted"
    if table.empty:
        return NOT_TESTABLE, "There is no exact predictive " + (
            f"with {accepted}." if pd.notna(fact.get("acceptance")) else
            f"in {int(fact['dim']):,} dimensions, which are too many.")
    one = among(at_end(table), score=score)
    verdict = PASS if (one["low"] > 0.0).any() else FAIL if (one["high"] < 0.0).all() else NOT_TESTABLE
    words = {PASS: "some setting is", FAIL: "no setting is", NOT_TESTABLE: "none certainly is"}[verdict]
    text = ", ".join(f"{row.worse:+.4f} ({row.low:+.4f} to {row.high:+.4f}) for {name} = {row.setting}"
                     for row in one.itertuples())
    return verdict, (f"{NAMES[score]} of the exact predictive ({accepted}, split R-hat "
                     f"{fact['split_rhat']:.2f}, halves of the chains {fact['floor']:.4f} apart) less that "
                     f"of the runs: {text}; {words} better.")
