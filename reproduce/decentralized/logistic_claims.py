"""Verdicts on decentralized logistic regression: what figures 5 to 10 share.

An agent's accuracy on a data set, or on a dealing of one, is the mean of a few runs. Data sets with their
runs are the independent draws; the intervals of all comparisons of a claim are right together with
probability 1 - LEVEL.
"""

from __future__ import annotations

import pandas as pd

from ..figure import DATA_SETS, REPLICAS, Claim, Finding, Tables
from ..tables import among
from ..verdicts import FAIL, NOT_TESTABLE, PASS, Judgement, above, intervals, shares, unanimous
from .shared import CONNECTED, NETWORKS

INTERVALS = ("Intervals of means over data sets or dealings, each with a few runs, are right together with "
             "probability 99%.")
ASSUMED = ("True of any finite data: a minibatch drawn with replacement and scaled by n_i/b is unbiased, the "
           "gradient of a datum's loss is at most |X_j| long and its curvature at most |X_j|^2/4, and the "
           "prior adds 1/(N lambda) to each component's.")
LATE_TEXT = "Accuracies are means over the last quarter of the iterations of an agent whose part is random."


def units_of(tables: Tables) -> str:
    """What the independent draws are called."""
    return str(tables["setting"]["units"].iloc[0])


def wide(table: pd.DataFrame, column: str, columns: str | list[str] = "network") -> pd.DataFrame:
    """A row for each data set."""
    return table.pivot(index="data_set", columns=columns, values=column)


def compared(values: pd.DataFrame, units: str, names: list[str], limit: float = 0.0) -> tuple[str, str]:
    """Verdict on "above the limit", and the means with their intervals; a row a data set."""
    low, high = intervals(values)
    texts = [f"{name} {one.mean():.4g} ({lower:.4g} to {upper:.4g}), above {limit:g} "
             f"{shares(one > limit, units)}"
             for name, (_, one), lower, upper in zip(names, values.items(), low, high, strict=True)]
    return above(low, high, limit), "; ".join(texts)


def _connected(tables: Tables, table: pd.DataFrame, column: str, limit: float = 0.0) -> tuple[str, str]:
    """`compared` of a column on the connected networks."""
    titles = [NETWORKS[name].title for name in CONNECTED]
    return compared(wide(table, column)[list(CONNECTED)], units_of(tables), titles, limit)


def judge_disconnected(tables: Tables) -> Judgement:
    """Accuracy of connected minus disconnected."""
    verdict, text = _connected(tables, tables["contrasts"], "difference")
    return Judgement(verdict, f"Mean accuracy minus that of the disconnected network: {text}.")


def judge_works(tables: Tables) -> Judgement:
    """Share of the posterior's gain over the larger class."""
    table = tables["sets"]
    gain = table[["accuracy", "posterior_accuracy"]].sub(table["larger_class"], axis=0)
    table = table.assign(share=gain["accuracy"] / gain["posterior_accuracy"])
    verdict, text = _connected(tables, table, "share", 0.95)
    if verdict == FAIL and _connected(tables, table, "share")[0] != FAIL:  # the 95% are ours
        verdict = NOT_TESTABLE
    complete, ring = (among(table, network=name)["accuracy"].mean() for name in CONNECTED)
    return Judgement(verdict, f"Share of the gain over the larger class: {text}. Mean accuracy "
                     f"{complete:.4f} and {ring:.4f}, of draws of the posterior "
                     f"{table['posterior_accuracy'].mean():.4f}.")


def judge_law(tables: Tables) -> Judgement:
    """Is W2 surely larger than the posterior's spread, on every data set?"""
    sets = tables["sets"]
    ratio = wide(sets.assign(ratio=sets["least_w2"] / sets["spread"]), "ratio")[list(CONNECTED)]
    good = (ratio > 1.0).all(axis=1)
    texts = [f"{NETWORKS[name].title} {ratio[name].min():.3g} to {ratio[name].max():.3g}"
             for name in CONNECTED]
    return Judgement(PASS if unanimous(good) == PASS else NOT_TESTABLE,
                     f"Least W2 over the posterior's spread: {', '.join(texts)}; both above 1 "
                     f"{shares(good, units_of(tables))}.")


def judge_order(tables: Tables) -> Judgement:
    """W2 of the agents, disconnected against connected, at the last iteration."""
    table = tables["distances"]
    end = among(table, round=int(table["round"].max())).set_index("network")
    alone, joined = end.loc["disconnected"], end.loc[list(CONNECTED)]
    verdict = (PASS if alone["low"] > joined["high"].max() else
               FAIL if alone["high"] < joined["low"].min() else NOT_TESTABLE)
    texts = [f"{network.title} {end['w2'][name]:.3g} ({end['low'][name]:.3g} to {end['high'][name]:.3g})"
             for name, network in NETWORKS.items()]
    return Judgement(verdict, f"Mean over agents of W2 to the posterior after {end['round'].iloc[0]} "
                     f"iterations: {', '.join(texts)}.")


def disconnected_claim(text: str, source: str) -> Claim:
    """The sentence of each figure about its third network."""
    return Claim(text, source, judge_disconnected, name="disconnected", rests_on=REPLICAS,
                 context=f"{LATE_TEXT} {INTERVALS}")


def sampling_findings(number: str) -> list[Finding]:
    """What accuracy does not show."""
    return [
        Finding("Accuracy comes before the law: where the accuracies end, an agent's law is still further "
                "from the posterior than a point mass at the posterior's mean, on every data set or dealing.",
                f"figure {number}", judge_law, name="accuracy_first", rests_on=DATA_SETS,
                context="The point mass has a W2 of the posterior's spread, the root of its covariance's "
                        "trace. An agent's W2 is bounded from below by the distance between the means and "
                        "between the spreads, so that this can be shown but not refuted. Accuracy looks at "
                        "the direction of x only."),
        Finding("The same order in W2, on the first data set: at the end of panel (e) disconnected agents "
                "are further from the posterior than connected ones.", f"figure {number}", judge_order,
                name="order_in_w2", rests_on=REPLICAS,
                context="An agent alone follows a sixth of the likelihood, a wider law around another mode. "
                        "The intervals of all agents and networks are right together with probability "
                        "99%.")]
