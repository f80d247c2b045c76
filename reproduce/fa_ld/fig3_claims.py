"""What is said about FA-LD's figures 3(a) to 3(e)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..figure import Claim, Finding, Tables
from ..tables import among
from ..verdicts import DATA_SETS, PASS, REPLICAS, above, intervals, shares, unanimous

MUCH = 0.1  # "much less dependent": a tenth of the change with all clients, or less
STAYS = 0.9  # a bias stays where a hundredth of the step size leaves this part of it


def step_sizes(tables: Tables) -> list[float]:
    """Those of the curves, from the smallest to the largest."""
    return sorted(tables["curves"]["step_size"].unique())


def active(tables: Tables) -> int:
    """S of the panel."""
    return int(tables["panel"]["n_active"].iloc[0])


def _own(tables: Tables, scheme: str, rho: float = 0.0) -> pd.DataFrame:
    """Stationary W2 at the panel's own S: one row a data set, one column a step size."""
    table = among(tables["bias"], scheme=scheme, rho=rho)
    if scheme != "full":
        table = among(table, n_active=active(tables))
    return table.pivot(index="data_set", columns="step_size", values="w2")


def _listed(values: Iterable[float], shape: str) -> str:
    return ", ".join(format(value, shape) for value in values)


def judge_full(tables: Tables) -> tuple[str, str, str]:
    """Larger step sizes: never slower, and a larger bias, on every data set."""
    steps = step_sizes(tables)
    bias = _own(tables, "full")[steps]
    rounds = tables["speed"].pivot(index="data_set", columns="step_size", values="rounds")
    faster = (rounds.diff(axis=1).iloc[:, 1:] <= 0).all(axis=1) & (rounds[steps[0]] > rounds[steps[-1]])
    good = faster & (bias.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    covered = tables["bounds"].groupby("step_size")["within_hypotheses"].all()
    inside = [step for step in steps if covered[step]]
    power = np.polyfit(np.log(steps), np.log(bias.median()), 1)[0]
    return unanimous(good), (
        "Rounds to within a factor of two of the own bias (medians): "
        f"{_listed(rounds.median(), '.0f')}; stationary W2: {_listed(bias.median(), '.1e')} "
        f"for increasing step sizes, the power {power:.2f} of the step size; faster and with a larger "
        f"bias {shares(good)}."), (
        f"At the step sizes that theorem 4.7 covers, {_listed(inside, 'g')}, rounds are "
        f"{_listed(rounds[inside].median(), '.0f')} and stationary W2 "
        f"{_listed(bias[inside].median(), '.1e')}.")


def judge_seen(tables: Tables) -> tuple[str, str]:
    """Is the fitted W2 of 300 replicas larger at each of the two largest step sizes than at the smallest?"""
    table = tables["fits"].pivot(index="data_set", columns="step_size", values="w2")
    low, high = intervals(table.iloc[:, -2:].to_numpy() - table.iloc[:, [0]].to_numpy())
    floor = tables["panel"]["floor"].iloc[0]
    return above(low, high), (
        f"W2 fitted to 300 replicas at the last round, means over {len(table)} data sets: "
        + ", ".join(f"{value:.1e} (eta = {step:g})" for step, value in table.mean().items())
        + f"; root mean square of perfect draws: {floor:.1e}. Over eta = {table.columns[0]:g} the excess is "
        + " and ".join(f"{one:.1e} to {two:.1e} (eta = {step:g})"
                       for one, two, step in zip(low, high, table.columns[-2:], strict=True)) + ".")


def judge_flat(tables: Tables) -> tuple[str, str]:
    """Does the partial bias depend much less on the step size than the full one?"""
    first, *_, last = step_sizes(tables)
    biases = (_own(tables, scheme) for scheme in ("full", "I", "II"))
    full, one, two = (bias[last] / bias[first] for bias in biases)
    good = np.maximum(one, two) - 1.0 < MUCH * (full - 1.0)
    return unanimous(good), (
        f"From eta = {first:g} to {last:g} the stationary W2 grows by the factor {one.median():.2f} (scheme "
        f"I), {two.median():.2f} (scheme II) and {full.median():.0f} (all clients; medians): {MUCH:g} of the "
        f"full change or less {shares(good)}.")


def judge_dominant(tables: Tables) -> tuple[str, str]:
    """The bias grows as S falls, at every step size, and is above the full one."""
    steps, texts, fine = step_sizes(tables), [], []
    table = among(tables["bias"], rho=0.0).query("step_size in @steps")
    w2: Any = table.pivot(index=["data_set", "step_size"], columns=["scheme", "n_active"], values="w2")
    for scheme in ("I", "II"):
        ratio = w2[scheme].div(w2["full"].iloc[:, 0], axis=0)
        fine.append((np.diff(w2[scheme], axis=1) < 0).all(axis=1) & (ratio.min(axis=1) > 1.0))
        first = w2[scheme].xs(steps[0], level="step_size").median()
        texts.append(f"scheme {scheme}: " + ", ".join(f"{value:.1e} (S = {s})" for s, value in first.items())
                     + f", and at every step size {ratio.min().min():.1f} or more times that with all "
                     "clients")
    good = (fine[0] & fine[1]).groupby("data_set").all()
    return unanimous(good), (
        f"Stationary W2 at eta = {steps[0]:g} (medians), {'; '.join(texts)}. It grows as S falls, at every "
        f"step size, {shares(good)}.")


def judge_shared(tables: Tables) -> tuple[str, str, str]:
    """Does the bias stay at rho = 0 however small the step, and does rho = 1 reduce it?"""
    fine, texts, vanishes = [], [], True
    for scheme in ("I", "II"):
        own, shared = (_own(tables, scheme, rho) for rho in (0.0, 1.0))
        small, larger = own.columns[:2]
        fine.append((own[small] / own[larger] > STAYS) & (shared < own).all(axis=1))
        vanishes &= bool((shared[small] / shared[larger] < 1.0 - STAYS).all())
        texts.append(f"scheme {scheme}: {own[larger].median():.1e} and {own[small].median():.1e} with rho = 0"
                     f", {shared[larger].median():.1e} and {shared[small].median():.1e} with rho = 1")
    good = fine[0] & fine[1]
    remark = "With rho = 1 the bias vanishes with the step size, which is more than they claim."
    verdict = unanimous(good)
    return verdict, (
        f"Stationary W2 at eta = {larger:g} and {small:g} (medians), {'; '.join(texts)}. With rho = 0 at "
        f"least {STAYS:g} of it stays, and rho = 1 reduces it at every step size, {shares(good)}."
    ), remark if verdict == PASS and vanishes else ""


FULL_CLAIMS = [
    Claim("Larger learning rates converge faster but lead to larger biases; small learning rates yield "
          "diminishing biases consistently.", "appendix I, figure 3(a)", judge_full, "full", DATA_SETS,
          context="Judged by the exact law. The two largest step sizes are beyond 1/(2L), the range of "
          "theorem 4.7; the sentence names no step sizes."),
    Finding("300 replicas can show the larger bias of larger learning rates.", "appendix I, figure 3(a)",
            judge_seen, "seen", REPLICAS, context="At the two largest of our step sizes, beyond 1/(2L), "
            "against the smallest; replicas are drawn from the exact law of the last round, once on each "
            "data set."),
]


def partial_claims(counted_in: str = "") -> list[Claim]:
    """The claims of figures 3(b) to 3(e), counted in the first of them."""
    return [
        Claim("In partial device scenarios the bias becomes much less dependent on the learning rate.",
              "appendix I", judge_flat, "flat", DATA_SETS, counted_in=counted_in,
              context=f"Much less is read as {MUCH:g} of the change with all clients, or less."),
        Claim("The bias caused by partial devices becomes dominant as the number S of devices falls, for "
              "both schemes, and still exists when the algorithms converge.", "appendix I, figure 3(b)-(e)",
              judge_dominant, "dominant", DATA_SETS, counted_in=counted_in),
        Claim("\"Partial device participation leads to an extra bias regardless of the scale of eta. To "
              "reduce it, we suggest to consider highly correlated injected noise, such as rho = 1, to "
              "reduce the impact of the injected noise.\"", "section 4.4, after theorem 4.10", judge_shared,
              "shared", DATA_SETS, counted_in=counted_in, context="Regardless of eta is read as: of the bias "
              f"at rho = 0 at least {STAYS:g} stays when a small eta becomes a hundred times smaller."),
    ]
