"""Verdicts on decentralized logistic regression: what figures 5 to 10 share.

An agent's accuracy on a data set, or on a dealing of one, is the mean of a few runs. Data sets with their
runs are the independent draws; the intervals of all comparisons of a claim are right together with
probability 1 - LEVEL.
"""

from __future__ import annotations

import pandas as pd

from ..figure import DATA_SETS, FAIL, NOT_TESTABLE, PASS, REPLICAS, Claim, Finding, Tables
from ..verdicts import Judgement, above, intervals, shares, unanimous
from .shared import CONNECTED, NETWORKS, among

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


def compared(found: pd.DataFrame, units: str, names: list[str], limit: float = 0.0) -> tuple[str, str]:
    """Verdict on "above the limit", and the means with their intervals; a row a data set."""
    low, high = intervals(found.to_numpy())
    texts = [f"{name} {mean:.4g} ({one:.4g} to {other:.4g}), above {limit:g} {shares(good, units)}"
             for name, mean, one, other, good in zip(names, found.mean(), low, high,
                                                     (found > limit).to_numpy().T, strict=True)]
    return above(low, high, limit), "; ".join(texts)


def judge_disconnected(tables: Tables) -> Judgement:
    """Accuracy of connected minus disconnected."""
    found = wide(tables["contrasts"], "difference")[list(CONNECTED)]
    verdict, said = compared(found, units_of(tables), [NETWORKS[name].title for name in CONNECTED])
    return Judgement(verdict, f"Mean accuracy minus that of the disconnected network: {said}.")


def judge_works(tables: Tables) -> Judgement:
    """Share of the posterior's gain over the larger class."""
    table = tables["sets"]
    least = table["larger_class"]
    share = (table["accuracy"] - least) / (table["posterior_accuracy"] - least)
    found = wide(table.assign(share=share), "share")[list(CONNECTED)]
    verdict, said = compared(found, units_of(tables), [NETWORKS[name].title for name in CONNECTED], 0.95)
    if verdict == FAIL:  # the 95% are ours
        verdict = FAIL if above(*intervals(found.to_numpy())) == FAIL else NOT_TESTABLE
    late = wide(table, "accuracy").mean()
    return Judgement(verdict, f"Share of the gain over the larger class: {said}. Mean accuracy "
                     f"{late[CONNECTED[0]]:.4f} and {late[CONNECTED[1]]:.4f}, of draws of the posterior "
                     f"{table['posterior_accuracy'].mean():.4f}.")


def judge_law(tables: Tables) -> Judgement:
    """Is W2 surely larger than the posterior's spread, on every data set?"""
    ratio = wide(tables["sets"].assign(ratio=tables["sets"]["least_w2"] / tables["sets"]["spread"]), "ratio")
    good = (ratio[list(CONNECTED)] > 1.0).all(axis=1)
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
