"""Claims of DE-SGLD figures 2 to 4, judged on the tables of `_decentralized_linear`."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from . import _decentralized as de
from ._decentralized_linear import AVERAGE
from ._fa_hmc import largest_allowed
from .figure import FAIL, PASS, Tables


def medians(found: Tables, column: str) -> dict[str, float]:
    """Median over data sets by network."""
    return {name: float(de.among(found["sets"], network=name)[column].median()) for name in de.NETWORKS}


def share(found: Tables, condition: Callable[[pd.DataFrame], pd.Series]) -> tuple[int, int]:
    """In how many data sets a condition on the table (data set by (column, network)) holds, of how many."""
    wide = found["sets"].pivot(index="data_set", columns="network")
    good = condition(wide)
    return int(good.sum()), len(good)


def judge_tolerance(found: Tables) -> tuple[str, str]:
    """Agents of connected networks: settled, and nearer than at the start."""
    table = found["sets"][found["sets"]["network"].isin(de.CONNECTED)]
    good = (table["worst_agent"] < table["start"]) & (table["agents_settle"] < found["curves"]["round"].max())
    ratio = table["agents"] / table["posterior_sd"]
    return (PASS if good.all() else FAIL), (
        f"In {int(good.sum())} of {len(good)} data sets and connected networks all agents settle within the "
        "run, the worst of them nearer to the posterior than the start; but their mean W2 is "
        f"{ratio.min():.1f} to {ratio.max():.1f} times the posterior's standard deviation (root of its "
        "trace), as the noise of an agent's last step is its own, not yet averaged." if good.all() else
        f"Only in {int(good.sum())} of {len(good)} data sets and connected networks do all agents settle "
        "nearer to the posterior than their start.")


def judge_sampling(found: Tables) -> tuple[str, str]:
    """Is an agent's law nearer to the posterior than a point mass at the posterior's mean?"""
    table = found["sets"][found["sets"]["network"].isin(de.CONNECTED)]
    agents, average = (table[column] < table["posterior_sd"] for column in ("best_agent", "average"))
    return (PASS if agents.all() else FAIL), (
        f"A point mass at the posterior's mean is {table['posterior_sd'].median():.4f} away (median); the "
        f"best of the agents is {table['best_agent'].min():.3f} or more away in every connected case, nearer "
        f"than that point in {int(agents.sum())} of {len(agents)}; the average, at most "
        f"{table['average'].max():.4f} away, in {int(average.sum())} of {len(average)}.")


def judge_disconnected(found: Tables) -> tuple[str, str]:
    """Agents without neighbours against those with."""
    good, total = share(found, lambda t: (t["agents", "disconnected"] > t["agents", "ring"])
                        & (t["agents", "disconnected"] > t["agents", "complete"]))
    means = medians(found, "agents")
    return (PASS if good == total else FAIL), (
        f"The agents' mean limit of W2 is largest when disconnected in {good} of {total} data sets; medians "
        + ", ".join(f"{value:.3f} ({de.NETWORKS[name].title})" for name, value in means.items()) + ".")


def judge_average_of_disconnected(found: Tables) -> tuple[str, str]:
    """The average of the disconnected network against its agents."""
    good, total = share(found, lambda t: t["average", "disconnected"] < t["best_agent", "disconnected"])
    return (PASS if good == total else FAIL), (
        f"The average is nearer than even the best agent in {good} of {total} data sets; medians "
        f"{medians(found, 'average')['disconnected']:.4f} against "
        f"{medians(found, 'best_agent')['disconnected']:.3f} (best agent).")


def judge_averages(found: Tables) -> tuple[str, str]:
    """Averages of the disconnected and the complete network."""
    good, total = share(found, lambda t: t["average", "disconnected"] > t["average", "complete"])
    means, floor = medians(found, "average"), float(found["floors"]["floor"].iloc[0])
    return (PASS if good == total else FAIL), (
        f"The average's limit is larger when disconnected in {good} of {total} data sets; medians "
        + ", ".join(f"{value:.4f} ({de.NETWORKS[name].title})" for name, value in means.items())
        + f"; a fit to 100 runs cannot see below its floor of {floor:.4f}.")


def speeds(found: Tables) -> str:
    """Median iterations to settle and radii in words."""
    average, agents = medians(found, "average_settles"), medians(found, "agents_settle")
    radius = medians(found, "radius")
    return "; ".join(f"{network.title}: {average[name]:.0f} and {agents[name]:.0f}, spectral radius "
                     f"{radius[name]:.3f}" for name, network in de.NETWORKS.items())


def judge_covered(found: Tables, theorem: str) -> tuple[str, str]:
    """Are the hypotheses met?"""
    sets = found["sets"]
    counts = {name: int((de.among(sets, network=name)["status"] == de.HOLD).sum()) for name in de.NETWORKS}
    total, here = sets["data_set"].nunique(), de.among(found["hypotheses"], quantity=AVERAGE)
    return (PASS if min(counts[name] for name in de.CONNECTED) == total else FAIL), (
        f"{theorem}'s hypotheses hold in "
        + de.listed([f"{count} of {total} data sets ({de.NETWORKS[name].title})"
                     for name, count in counts.items()])
        + "; in the one drawn: " + "; ".join(f"{de.NETWORKS[name].title}: {why}" for name, why
                                              in zip(here["network"], here["why"], strict=True)) + ".")


def judge_replicas(found: Tables) -> tuple[str, str]:
    """Replicas against exact moments."""
    table = found["replicas"]
    limit = largest_allowed(int(table["compared"].sum()))
    return (PASS if float(table["deviation"].max()) <= limit else FAIL), (
        f"Means and covariances of {table['n_checked'].max()} replicas, of the average and of agents, are at "
        f"most {table['deviation'].max():.1f} standard errors off the exact ones; {limit:.1f} would be too "
        "many (false-alarm level 0.001).")
