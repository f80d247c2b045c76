"""Claims of DE-SGLD figures 2 to 4, judged on every data set of the table "sets" by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from ..fa_hmc.shared import largest_allowed
from ..figure import FAIL, MISPRINT, NOT_TESTABLE, PASS, REPLICAS, Finding, Tables
from ..verdicts import Judgement, shares, unanimous
from . import shared as de

SAME = 0.01
"""Numbers this close, relative to the larger, count as equal: no picture of the paper shows less."""
READINGS = {"settles": "iterations until W2 stays within 5% of its own limit",
            "reaches": "iterations until it stays below the largest of the networks' limits and 5%",
            "radius": "spectral radius"}
"""What "converges faster" can mean; judged under the reading that is kindest to the authors."""
READING_COLUMNS = {"settles": "{}_settles", "reaches": "{}_reaches", "radius": "radius"}


def per_set(found: Tables, condition: Callable[[pd.DataFrame], pd.Series]) -> np.ndarray:
    """Whether a condition on the table (data set by (column, network)) is true, by data set."""
    return condition(found["sets"].pivot(index="data_set", columns="network")).to_numpy()


def connected(found: Tables, condition: Callable[[pd.DataFrame], pd.Series]) -> np.ndarray:
    """Whether a condition on the rows is true of both connected networks, by data set."""
    table = found["sets"][found["sets"]["network"].isin(de.CONNECTED)]
    return condition(table).groupby(table["data_set"]).all().to_numpy()


def by_network(found: Tables, column: str, digits: int = 3) -> str:
    """Medians over data sets in words."""
    return de.listed([f"{de.among(found['sets'], network=name)[column].median():.{digits}f} ({network.title})"
                      for name, network in de.NETWORKS.items()])


def judge_tolerance(found: Tables) -> Judgement:
    """Agents of connected networks: settled, and nearer than at the start."""
    last = found["curves"]["round"].max()
    good = connected(found, lambda t: (t["worst_agent"] < t["start"]) & (t["agents_settles"] < last))
    table = found["sets"][found["sets"]["network"].isin(de.CONNECTED)]
    ratio = table["agents"] / table["posterior_sd"]
    return Judgement(unanimous(good), (
        "All agents of both networks settle within the run, the worst of them nearer to the posterior than "
        f"the start, {shares(good)}; their mean W2 is then {ratio.min():.1f} to {ratio.max():.1f} times the "
        "posterior's standard deviation (root of its trace)."))


def judge_sampling(found: Tables) -> Judgement:
    """Is an agent's law nearer to the posterior than a point mass at the posterior's mean?"""
    agents = connected(found, lambda t: t["best_agent"] < t["posterior_sd"])
    average = connected(found, lambda t: t["average"] < t["posterior_sd"])
    none = connected(found, lambda t: t["best_agent"] >= t["posterior_sd"])
    verdict = PASS if unanimous(agents) == PASS else FAIL if unanimous(none) == PASS else NOT_TESTABLE
    table = found["sets"][found["sets"]["network"].isin(de.CONNECTED)]
    return Judgement(verdict, (
        f"A point mass at the posterior's mean is {table['posterior_sd'].median():.4f} away (median). The "
        f"best of the agents is {table['best_agent'].min():.3f} or more away, nearer than that point on both "
        f"networks {shares(agents)}; the average, at most {table['average'].max():.4f} away, "
        f"{shares(average)}."))


def judge_disconnected(found: Tables) -> Judgement:
    """Agents without neighbours against those with."""
    good = per_set(found, lambda t: (t["agents", "disconnected"] > t["agents", "ring"])
                   & (t["agents", "disconnected"] > t["agents", "complete"]))
    return Judgement(unanimous(good), f"The agents' mean limit of W2 is largest when disconnected "
                                      f"{shares(good)}; medians {by_network(found, 'agents')}.")


def judge_average_of_disconnected(found: Tables) -> Judgement:
    """The average of the disconnected network against its agents."""
    good = per_set(found, lambda t: t["average", "disconnected"] < t["best_agent", "disconnected"])
    one = de.among(found["sets"], network="disconnected")
    return Judgement(unanimous(good), (
        f"The average is nearer than even the best agent {shares(good)}; medians "
        f"{one['average'].median():.4f} against {one['best_agent'].median():.3f} (best agent)."))


def judge_averages(found: Tables) -> Judgement:
    """Averages of the disconnected and the complete network."""
    good = per_set(found, lambda t: t["average", "disconnected"] > t["average", "complete"])
    floor = float(found["floors"]["floor"].iloc[0])
    return Judgement(unanimous(good), (
        f"The average's limit is larger when disconnected {shares(good)}; medians "
        f"{by_network(found, 'average', 4)}; a fit to 100 runs cannot see below its floor of {floor:.4f}."))


def judge_faster(found: Tables, pairs: Sequence[tuple[str, str]], quantities: Sequence[str]) -> Judgement:
    """Is the first network of every pair faster than the second, under one of `READINGS` on all data sets?

    Faster means slower in none of the `quantities`, and faster in one.
    """
    wide = found["sets"].pivot(index="data_set", columns="network")
    good = {name: _faster(wide, name, pairs, quantities).to_numpy() for name in READINGS}
    words = {name: unanimous(ones) for name, ones in good.items()}
    verdict = PASS if PASS in words.values() else (
        FAIL if set(words.values()) == {FAIL} else NOT_TESTABLE)
    said = "; ".join(f"by {text} {shares(good[name])}" for name, text in READINGS.items())
    medians = []
    for network, one in found["sets"].groupby("network", sort=False):
        parts = ["/".join(f"{one[column].median():.3g}" for column in _columns(name, quantities))
                 for name in READINGS]
        medians.append(f"{de.NETWORKS[str(network)].title} {', '.join(parts)}")
    other = [READINGS[name] for name, word in words.items() if word != PASS]
    return Judgement(verdict, (
        f"This order is found: {said}. Medians by these readings ({'/'.join(quantities)}): "
        f"{'; '.join(medians)}."), (
        f"Not on all data sets by {' or '.join(other)}." if verdict == PASS and other else ""))


def _columns(reading: str, quantities: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(READING_COLUMNS[reading].format(quantity) for quantity in quantities))


def _faster(t: pd.DataFrame, reading: str, pairs: Sequence[tuple[str, str]],
            quantities: Sequence[str]) -> pd.Series:
    good = pd.Series(True, index=t.index)
    for first, second in pairs:
        ahead = pd.concat([t[column, second] - t[column, first] for column in _columns(reading, quantities)],
                          axis=1)
        good &= (ahead >= 0).all(axis=1) & (ahead > 0).any(axis=1)
    return good


def judge_printed(found: Tables) -> Judgement:
    """The printed f_i: do they give the printed posterior?"""
    table = found["printed"]
    good, said, radii = {}, [], []
    for form, words in (("printed", "As printed"), ("density", "with the factor 1/(2 xi^2) of its density")):
        one = de.among(table, form=form)
        fine = (one["spread"] - 1.0).abs() < SAME
        good[form] = unanimous(fine.groupby(one["data_set"]).all())
        radius = one[one["network"].isin(de.CONNECTED)]["radius"]
        said.append(f"{words}, the standard deviation of exp(-f) is {one['spread'].min():.3f} to "
                    f"{one['spread'].max():.3f} times that of N(m, V)")
        radii.append(f"{radius.min():.3f} to {radius.max():.3f} {words[0].lower()}{words[1:]}")
    verdict = good["printed"] if good["printed"] != FAIL else MISPRINT if good["density"] == PASS else (
        good["density"])
    return Judgement(verdict, f"{'; '.join(said)}.", "The spectral radius at the figure's step size, with "
                     f"Metropolis weights, is {' and '.join(radii)}; below 1 settles.")


def judge_replicas(found: Tables) -> Judgement:
    """Replicas against exact moments."""
    table = found["replicas"]
    limit = largest_allowed(int(table["compared"].sum()))
    return Judgement(PASS if float(table["deviation"].max()) <= limit else FAIL, (
        f"Means and covariances of {len(table)} runs of many replicas, of the average and of agents, are at "
        f"most {table['deviation'].max():.1f} standard errors off the exact ones; more than {limit:.1f} is "
        "too many (false-alarm level 0.001)."))


def replicas_finding(of: str = "exact laws") -> Finding:
    """The check of the simulation."""
    return Finding(f"Replicas follow the {of}.", "", judge_replicas, name="replicas", rests_on=REPLICAS)
