"""What is judged on several figures of DE-SGLD and DE-SGHMC, on every data set by itself.

First whether the step size of a figure lies in the range of Theorem 1 or 11; where it does not, theorem and
figure do not contradict each other. Then what figures 2 to 4 say of three networks, from their table "sets".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ..claims import Judge
from ..figure import DATA_SETS, REPLICAS, Claim, Finding, Tables
from ..statistics import largest_allowed
from ..tables import among, groups, listed
from ..verdicts import FAIL, MISPRINT, NOT_TESTABLE, OUTSIDE, PASS, Judgement, shares, unanimous
from . import shared as de

VALIDATE = "our main goal is to validate Theorems 1 and 11 in a basic setting", "section 5.1, beginning"
THEORY = "to validate our theory", "section 5, beginning"
SUPPORTS = "which supports our theory", "section 5.2, with figure 5"
ILLUSTRATE = "illustrate our theoretical results", "section 5.3, end"
SAME = 0.01
"""Numbers this close, relative to the larger, count as equal: no picture of the paper shows less."""
MOST_MOMENTUM = 1.0 / 32.0
"""No larger 1 - friction step_size is in Theorem 11's range, whatever mu <= L and the network are.

With mu <= L, (37) gives eta^2 mu <= (1 + lambda_N)/4 <= 1/2; in (38) c_1 <= eta^2 mu/2, so that beta is at
most (eta^2 mu)^2 sqrt((1 + lambda_N)/128) <= (eta^2 mu)^2/8.
"""
READINGS = {"{}_settles": "iterations until W2 stays within 5% of its own limit",
            "{}_reaches": "iterations until it stays below the largest of the networks' limits and 5%",
            "radius": "spectral radius"}
"""What "converges faster" can mean; judged under the reading that is kindest to the authors."""


def by_set(table: pd.DataFrame, good: Any) -> np.ndarray:
    """Whether all rows of a data set are good."""
    return pd.Series(good, table.index).groupby(table["data_set"]).all().to_numpy()


def of_connected(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the connected networks."""
    return table[table["network"].isin(de.CONNECTED)]


def judge_range(tables: Tables, table: str = "hypotheses") -> Judgement:
    """Is the step size in the theorem's range on all connected networks? Of the table of this name.

    Its columns are network, status and why; data_set where there are several; and features where their
    scaling is not printed: the theorem covers the figure where it does so with one of them (the reading
    that is kindest to the authors), and does not where it does with none.
    """
    rows = of_connected(tables[table])
    scaled = groups(rows, "features") if "features" in rows else [("", rows)]
    verdicts = {name: unanimous(by_set(one, one["status"] == de.HOLD)) for name, one in scaled}
    of = [f"with features {name}, " if name else "" for name in verdicts]
    found = set(verdicts.values())
    verdict, opening = (
        (PASS, "The theorem covers this figure") if PASS in found else
        (OUTSIDE, "The theorem does not cover all of it") if found == {FAIL} else
        (NOT_TESTABLE, "Data sets disagree, or are too few"))
    other = [name for name, word in verdicts.items() if word != PASS]
    parts = [words + covered(one, brief=len(scaled) > 1) for words, (_, one) in zip(of, scaled, strict=True)]
    return Judgement(verdict, f"{opening}; its hypotheses hold {'; '.join(parts)}.",
                     f"Not with features {' or '.join(other)}." if verdict == PASS and other else "")


def covered(rows: pd.DataFrame, brief: bool = False) -> str:
    """On how many data sets the hypotheses hold for each connected network, and by how much they fail.

    `brief`: the latter of the first network alone that is not covered.
    """
    parts, told = [], False
    for network in de.CONNECTED:
        one = among(rows, network=network)
        beyond = one[one["status"] != de.HOLD]
        parts.append(f"{de.NETWORKS[network].title} {shares(by_set(one, one['status'] == de.HOLD))}"
                     + (f" ({beyond['why'].iloc[0]})" if len(beyond) and not (brief and told) else ""))
        told |= len(beyond) > 0
    return f"for {', '.join(parts)}"


def range_claim(theorem: str, figure: str, source: tuple[str, str], table: str = "hypotheses",
                context: str = "", judge: Judge | None = None) -> Claim:
    """Whether the theorem covers the figure; `source`: the paper's words on what it shows, their place."""
    words, place = source
    return Claim(f"Figure {figure} shows {theorem} at work on the connected networks (\"{words}\").", place,
                 judge or partial(judge_range, table=table), name="step_size_range", rests_on=DATA_SETS,
                 context=" ".join(filter(None, (
                     "The paper tunes its parameters to the data and says nowhere that they lie in the "
                     "theorem's range; outside it figure and theorem neither bear each other out nor "
                     "contradict. No theorem is about the disconnected network, the baseline.", context))))


def ordered(tables: Tables, column: str, *networks: str) -> np.ndarray:
    """Whether a column is lower on each of these networks than on the next, by data set."""
    wide = tables["sets"].pivot(index="data_set", columns="network", values=column)
    return np.all(np.diff(wide[list(networks)], axis=1) > 0.0, axis=1)


def by_network(tables: Tables, column: str, digits: int = 3) -> str:
    """Medians over data sets in words."""
    return listed([f"{among(tables['sets'], network=name)[column].median():.{digits}f} ({network.title})"
                   for name, network in de.NETWORKS.items()])


def judge_tolerance(tables: Tables) -> Judgement:
    """Agents of connected networks: settled, and nearer than at the start."""
    table, last = of_connected(tables["sets"]), tables["curves"]["round"].max()
    good = by_set(table, (table["worst_agent"] < table["start"]) & (table["agents_settles"] < last))
    ratio = table["agents"] / table["posterior_sd"]
    return Judgement(unanimous(good), (
        "All agents of both networks settle within the run, the worst of them nearer to the posterior than "
        f"the start, {shares(good)}; their mean W2 is then {ratio.min():.1f} to {ratio.max():.1f} times the "
        "posterior's standard deviation (root of its trace)."))


def judge_sampling(tables: Tables) -> Judgement:
    """Is an agent's law nearer to the posterior than a point mass at the posterior's mean?"""
    table = of_connected(tables["sets"])
    nearer = table["best_agent"] < table["posterior_sd"]
    agents, none = by_set(table, nearer), by_set(table, ~nearer)
    average = by_set(table, table["average"] < table["posterior_sd"])
    verdict = PASS if unanimous(agents) == PASS else FAIL if unanimous(none) == PASS else NOT_TESTABLE
    return Judgement(verdict, (
        f"A point mass at the posterior's mean is {table['posterior_sd'].median():.4f} away (median). The "
        f"best of the agents is {table['best_agent'].min():.3f} or more away, nearer than that point on both "
        f"networks {shares(agents)}; the average, at most {table['average'].max():.4f} away, "
        f"{shares(average)}."))


def judge_disconnected(tables: Tables) -> Judgement:
    """Agents without neighbours against those with."""
    good = ordered(tables, "agents", "ring", "disconnected") & ordered(
        tables, "agents", "complete", "disconnected")
    return Judgement(unanimous(good), f"The agents' mean limit of W2 is largest when disconnected "
                                      f"{shares(good)}; medians {by_network(tables, 'agents')}.")


def judge_average_of_disconnected(tables: Tables) -> Judgement:
    """The average of the disconnected network against its agents."""
    alone = among(tables["sets"], network="disconnected")
    good = by_set(alone, alone["average"] < alone["best_agent"])
    return Judgement(unanimous(good), (
        f"The average is nearer than even the best agent {shares(good)}; medians "
        f"{alone['average'].median():.4f} against {alone['best_agent'].median():.3f} (best agent)."))


def judge_averages(tables: Tables) -> Judgement:
    """Averages of the disconnected and the complete network."""
    good = ordered(tables, "average", "complete", "disconnected")
    floor = float(tables["floors"]["floor"].iloc[0])
    return Judgement(unanimous(good), (
        f"The average's limit is larger when disconnected {shares(good)}; medians "
        f"{by_network(tables, 'average', 4)}; a fit to 100 runs cannot see below its floor of {floor:.4f}."))


def judge_faster(tables: Tables, pairs: Sequence[tuple[str, str]],
                 quantities: Sequence[str] = ("average", "agents")) -> Judgement:
    """Is the first network of every pair faster than the second, under one of `READINGS` on all data sets?

    Faster means slower in none of the `quantities`, and faster in one.
    """
    sets = {name: among(tables["sets"], network=name).sort_values("data_set") for name in de.NETWORKS}
    good, medians = {}, {name: list[str]() for name in de.NETWORKS}
    for reading, text in READINGS.items():
        columns = list(dict.fromkeys(reading.format(quantity) for quantity in quantities))
        w2 = {name: table[columns].to_numpy() for name, table in sets.items()}
        ahead = np.array([w2[second] - w2[first] for first, second in pairs])
        good[text] = ((ahead >= 0).all(axis=2) & (ahead > 0).any(axis=2)).all(axis=0)
        for name in sets:
            medians[name].append("/".join(f"{median:.3g}" for median in np.median(w2[name], axis=0)))
    verdicts = {text: unanimous(each) for text, each in good.items()}
    verdict = PASS if PASS in verdicts.values() else (
        FAIL if set(verdicts.values()) == {FAIL} else NOT_TESTABLE)
    orders = "; ".join(f"by {text} {shares(each)}" for text, each in good.items())
    numbers = "; ".join(f"{de.NETWORKS[name].title} {', '.join(parts)}" for name, parts in medians.items())
    other = [text for text, word in verdicts.items() if word != PASS]
    return Judgement(verdict, (
        f"This order is found: {orders}. Medians by these readings ({'/'.join(quantities)}): {numbers}."), (
        f"Not on all data sets by {' or '.join(other)}." if verdict == PASS and other else ""))


def judge_printed(tables: Tables) -> Judgement:
    """The printed f_i: do they give the printed posterior?"""
    verdicts, spreads, radii = {}, [], []
    for form, words in (("printed", "As printed"), ("density", "with the factor 1/(2 xi^2) of its density")):
        one = among(tables["printed"], form=form)
        verdicts[form] = unanimous(by_set(one, (one["spread"] - 1.0).abs() < SAME))
        radius = of_connected(one)["radius"]
        spreads.append(f"{words}, the standard deviation of exp(-f) is {one['spread'].min():.3f} to "
                       f"{one['spread'].max():.3f} times that of N(m, V)")
        radii.append(f"{radius.min():.3f} to {radius.max():.3f} {words[0].lower()}{words[1:]}")
    verdict, corrected = verdicts.values()
    if verdict == FAIL:
        verdict = MISPRINT if corrected == PASS else corrected
    return Judgement(verdict, f"{'; '.join(spreads)}.", "The spectral radius at the figure's step size, with "
                     f"Metropolis weights, is {' and '.join(radii)}; below 1 settles.")


def judge_replicas(tables: Tables) -> Judgement:
    """Replicas against exact moments."""
    table = tables["replicas"]
    worst, limit = float(table["deviation"].max()), largest_allowed(int(table["compared"].sum()))
    return Judgement(PASS if worst <= limit else FAIL, (
        f"Means and covariances of {len(table)} runs of many replicas, of the average and of agents, are at "
        f"most {worst:.1f} standard errors off the exact ones; more than {limit:.1f} is too many "
        "(false-alarm level 0.001)."))


SAMPLING = Finding("An agent's law is nearer to the posterior than a point mass at the posterior's mean.",
                   "section 5.1", judge_sampling, name="sampling", rests_on=DATA_SETS)


def replicas_finding(of: str = "exact laws") -> Finding:
    """The check of the simulation."""
    return Finding(f"Replicas follow the {of}.", "", judge_replicas, name="replicas", rests_on=REPLICAS)
