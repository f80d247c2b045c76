"""FA-HMC figure 1(c): rounds to a marginal error against local steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import plot
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, settings
from ..tables import among, groups, spaced
from ..verdicts import DATA_SETS, shares, unanimous
from . import logistic, shared as sim, surrogate
from .stepwise import StepwiseChain
from .stepwise_sampler import StepwiseFAHMC

TITLE = "Rounds to a marginal error against local steps (Gaussian surrogate)"
PAPER = "FA-HMC figure 1(c)"
REPRODUCES = ("FA-HMC 1(c)",)
SHOWS = ("Rounds after which the averages of one chain have a given marginal error, against T in either "
         "reading, for the Gaussian surrogate of logistic regressions on data of the cited law; the error "
         "that more rounds do not remove; and simulated logistic regression.")
COST = {"tiny": "3 s", "quick": "25 s", "paper": "about 10 min (estimated)"}
PARAMETERS = [
    *logistic.THOUSAND, *logistic.DATA,
    Parameter("leapfrog_steps", 100, "paper", "section 5.1: K = 100"),
    Parameter("step_size", 0.01, "paper", "section 5.1: eta = 0.01"),
    Parameter("noise", 10.0, "paper", "section 5.1: noisy gradients of variance 100"),
    Parameter("shared_noise", 1.0, "paper", "section 5"),
    Parameter("local_steps", ByScale([1, 10, 50, 70, 100], [1, 10, 20, 30, 50, 70, 100],
                                     [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]), "ours",
              "the paper takes T from 1 to 100"),
    Parameter("accuracies", [0.4, 0.2, 0.11, 0.08], "ours", "marginal errors in units of the posterior "
              "spread: with the cited law, whose spread is 0.91, 0.11 is the paper's 0.101; others are ours"),
    Parameter("most_rounds", 100_000, "ours", "beyond them an accuracy counts as never reached"),
    Parameter("short_leapfrogs", 10, "ours", "K of the simulated runs, with eta = 0.1: as long trajectories"),
    Parameter("short_noise", 3.0, "ours", "their gradient noise: about the same effect at the larger eta"),
    Parameter("short_steps", ByScale([10], [10, 70], [1, 10, 30, 70, 100]), "ours", "their T"),
    Parameter("short_every", 7, "ours", "T of section 5, in leapfrog steps, of simulated runs: as 70 of 100"),
    Parameter("short_leapfrog_steps", ByScale(140, 350, 3500), "ours", "their length"),
    Parameter("short_iterations", ByScale(100, 210, 3000), "ours", "their length in local updates"),
    Parameter("n_chains", ByScale(16, 16, 64), "ours", "simulated chains, pooled"),
    *logistic.REFERENCE_CHAINS,
    Parameter("seed", 1, "ours", "of simulation, surrogate and reference"),
]
MARKERS = "o^Dp"
HOLLOW: dict[str, Any] = {"linestyle": "--", "linewidth": 1.2, "markerfacecolor": "white"}
"""Of the larger dimension."""
PAPERS = 0.11
"""The paper's accuracy, in units of the posterior spread."""
LESS = 1.05
"""An optimum inside the range of T saves at least so many times the rounds of either end."""
FACTOR = 65.0
"""The paper's saving of rounds over T = 1."""
TENFOLD = 10.0
OPTIMUM = 70
"""The paper's T."""

def compute(scale: str) -> Tables:
    """Tables: rounds, bias (both of surrogates), short (simulated, with its surrogate)."""
    p = settings(PARAMETERS, scale)
    tables: dict[str, list[dict[str, Any]]] = {"rounds": [], "bias": [], "short": []}
    for labels, problem in logistic.data_sets(p):
        posterior = surrogate.Posterior(problem)
        for steps in p.local_steps:
            by_iterations = fs.FAHMC(p.step_size, p.leapfrog_steps, steps, p.shared_noise)
            _add(tables, p, labels | {"reading": sim.ALGORITHM, "local_steps": steps},
                 surrogate.Chain(posterior.round_map(by_iterations)), posterior.target)
        if labels["dim"] in p.smaller:
            for steps in p.local_steps:
                _add(tables, p, labels | {"reading": sim.SECTION, "local_steps": steps},
                     StepwiseChain(posterior, p.step_size, p.leapfrog_steps, steps), posterior.target)
        if labels["dim"] == p.smaller[-1]:
            tables["short"] += _short(p, problem, labels["data"])
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def first_within(counts: np.ndarray, errors: np.ndarray, accuracy: float) -> float:
    """First count with an error within `accuracy`, interpolated on logarithmic scales; infinity if none."""
    return float(np.exp(sim.crossing(np.log(counts), np.log(errors), np.log(accuracy))))


def _add(tables: dict[str, list[dict[str, Any]]], p: Any, labels: dict[str, Any], chain: surrogate.Averages,
         target: fs.Gaussian) -> None:
    """Rounds to each accuracy by expected errors of a stationary chain, and the error of its law."""
    unit, counts = surrogate.spread_of(target), spaced(p.most_rounds, 24)
    tables["bias"].append({**labels, "error": surrogate.error_of_law(chain.law, target) / unit})
    errors = surrogate.error_of_chain(chain, target, counts) / unit
    tables["rounds"] += [{**labels, "accuracy": accuracy, "rounds": first_within(counts, errors, accuracy)}
                         for accuracy in p.accuracies]


def _short(p: Any, problem: fs.LogisticRegression, data: int) -> list[dict[str, Any]]:
    """Simulated logistic regression and its surrogate."""
    posterior = surrogate.Posterior(replace(problem, gradient_noise=p.short_noise))
    step = p.step_size * p.leapfrog_steps / p.short_leapfrogs
    cases: dict[str, Any] = {
        f"T = {steps}": (fs.FAHMC(step, p.short_leapfrogs, steps, p.shared_noise),
                         max(4, p.short_iterations // steps)) for steps in p.short_steps}
    every = p.short_every
    cases[f"section 5: K = {p.short_leapfrogs}, T = {every}"] = (
        StepwiseFAHMC(step, p.short_leapfrogs, every), p.short_leapfrog_steps // every)
    return logistic.runs(p, posterior, cases, data)


def draw(tables: Tables) -> Drawing:
    """Rounds against T in either reading; what no rounds remove; simulated errors."""
    drawing, (above, (left, right)) = plot.panels(2, 6.2, 3.7, n_rows=2)
    for ax, (reading, rounds) in zip(above, groups(tables["rounds"], "reading"), strict=True):
        _draw_rounds(ax, rounds)
        ax.set(title=f"(c) {sim.READINGS[reading]}", ylabel=r"rounds to the error, $R_\epsilon$")
    _draw_bias(left, tables)
    logistic.draw_short(right, tables["short"])
    plot.legend_for([*above, left, right], 4, **sim.LEGEND)
    return drawing


def _accuracies(rounds: pd.DataFrame) -> dict[float, dict[str, Any]]:
    """Colour and marker of each, from the coarsest on."""
    shown = plot.shaded(sorted(set(rounds["accuracy"]), reverse=True))
    return {value: {"color": colour, "marker": marker}
            for (value, colour), marker in zip(shown, MARKERS, strict=False)}


def _draw_rounds(ax: Axes, rounds: pd.DataFrame) -> None:
    fewest = rounds["dim"].min()
    for accuracy, look in _accuracies(rounds).items():
        for dim, one in groups(among(rounds, accuracy=accuracy), "dim"):
            sim.draw_spread(ax, one.groupby("local_steps")["rounds"], look["color"], "",
                            marker=look["marker"], **HOLLOW if dim > fewest else {})
        ax.plot([], [], markersize=4, label=f"error {accuracy:g}", **look)
    ax.axvline(OPTIMUM, color="#000000", linestyle=":", linewidth=1.0,
               label=f"the paper's optimum, T = {OPTIMUM}")
    ax.set(xscale="log", yscale="log", xlabel="T (no mark: not reached on all data sets)")


def _draw_bias(ax: Axes, tables: Tables) -> None:
    """The error that is left, by reading and dimension, beside the accuracies of the panels above."""
    bias = tables["bias"]
    hollow: Any = {dim: HOLLOW if dim > bias["dim"].min() else {} for dim in bias["dim"].unique()}
    for (reading, own), marker in zip(groups(bias, "reading"), "sv", strict=True):
        look: Any = {"color": plot.COLOUR_OF[reading], "marker": marker}
        for dim, one in groups(own, "dim"):
            sim.draw_spread(ax, one.groupby("local_steps")["error"], look["color"], "", marker=marker,
                            **hollow[dim])
        ax.plot([], [], markersize=4, label=reading, **look)
    for dim, one in groups(bias, "dim"):
        count = one["data"].nunique()
        sets = "one data set" if count == 1 else f"median; band: all {count} data sets"
        ax.plot([], [], color=plot.GREY, label=f"d = {dim}, {sets}", **sim.MARKED | hollow[dim])
    for accuracy, look in _accuracies(tables["rounds"]).items():
        ax.axhline(accuracy, color=look["color"], linestyle=":", linewidth=1.2)
        ax.text(1.01, accuracy, f"{accuracy:g}", transform=ax.get_yaxis_transform(), fontsize=9, va="center")
    ax.set(xscale="log", yscale="log", xlabel="T (dotted: the errors of the panels above)",
           ylabel="marginal error / posterior spread",
           title="ours: the error that no rounds remove, exact laws")


def _table(tables: Tables, reading: str, accuracy: float) -> pd.DataFrame:
    """Rounds by T (rows) and data set (columns)."""
    return among(tables["rounds"], reading=reading, accuracy=accuracy).pivot(
        index="local_steps", columns="data", values="rounds")


def _span(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _number(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "never"


def judge_inner(tables: Tables, reading: str) -> tuple[str, str]:
    """An optimum inside the range of T, on every data set."""
    table = _table(tables, reading, PAPERS)
    good = table.iloc[1:-1].min() * LESS < np.minimum(table.iloc[0], table.iloc[-1])
    best, middle = table.idxmin(), table.median(axis=1)
    return unanimous(good), (
        f"To an error of {PAPERS:g} spreads, in the median: {_number(middle.iloc[0])} rounds at T = "
        f"{table.index[0]}, {_number(table.min().median())} at the best T ({_span(best.to_numpy())}), "
        f"{_number(middle.iloc[-1])} at T = {table.index[-1]}; an inner T saves 5% against both ends "
        f"{shares(good)}.")


def judge_accuracy(tables: Tables, reading: str) -> tuple[str, str]:
    """Does the improvement over T = 100 grow as the accuracy falls?"""
    ratios, texts = {}, []
    for accuracy in sorted(set(tables["rounds"]["accuracy"]), reverse=True):
        table = _table(tables, reading, accuracy)
        ratio = (table.loc[100] / table.min()).fillna(1.0)  # never at any T: nothing to improve
        ratios[accuracy], median = ratio, ratio.median()
        texts.append(f"{median:.2f}-fold at {accuracy:g}" if np.isfinite(median) else
                     f"never reached with T = 100 at {accuracy:g}")
    fine, coarse = min(ratios), max(ratios)
    good = ratios[fine] > ratios[coarse]
    return unanimous(good), (
        f"Rounds at T = 100 over those at the best T, in the median: {', '.join(texts)}; more at {fine:g} "
        f"than at {coarse:g} {shares(good)}. The best T at {fine:g} is "
        f"{_span(_table(tables, reading, fine).idxmin().to_numpy())}.")


def judge_optimum(tables: Tables, reading: str) -> tuple[str, str]:
    """Is the paper's T the best at its accuracy?"""
    best = _table(tables, reading, PAPERS).idxmin()
    return unanimous(best == OPTIMUM), (
        f"The fewest rounds are at T = {_span(best.to_numpy())}; at {OPTIMUM} {shares(best == OPTIMUM)}.")


def judge_factor(tables: Tables, reading: str, least: float = FACTOR) -> tuple[str, str]:
    """Does the best T save more than `least` times the rounds of T = 1?"""
    saved = {accuracy: (table.loc[1] / table.min()).fillna(1.0)  # never at any T: nothing saved
             for accuracy in sorted(set(tables["rounds"]["accuracy"]), reverse=True)
             for table in [_table(tables, reading, accuracy)]}
    good = saved[PAPERS] > least
    texts = [f"{_span(ratio.to_numpy())} at {accuracy:g}" for accuracy, ratio in saved.items()]
    return unanimous(good), (
        f"Rounds at T = 1 over those at the best T: {', '.join(texts)}; more than {least:g} at {PAPERS:g} "
        f"{shares(good)}.")


_PLACE = "section 5.1, figure 1(c)"
_OURS = ("Expected errors on Gaussian surrogates of a chain of K = 100, eta = 0.01 as printed, started in "
         "its stationary law, a sample after every round. Rounds rise where the bias, which grows with T and "
         "with how unlike clients are, comes near the accuracy.")
OURS = "prior, grid of T and most accuracies"
CLAIMS = [
    logistic.sentence(f"The optimal T is {OPTIMUM}: larger and smaller T need more communication.", _PLACE,
                      judge_optimum, "optimum", "Judged at the paper's 0.101.", OURS),
    logistic.sentence("A smaller accuracy leads to more improvement of the best T over T = 100.", _PLACE,
                      judge_accuracy, "accuracy", "Accuracies but for 0.101 are ours.", OURS),
    logistic.sentence(f"Against T = 1 the best T needs more than {FACTOR:g} times fewer rounds, at an error "
                      "around 0.101.", _PLACE, judge_factor, "factor",
                      "How many rounds lie between samples is not printed; here it is one.", OURS),
    *(Finding(f"With the cited data law, {words}, {text}", _PLACE, partial(judge, reading=reading),
              f"{name}_{reading[-1]}", DATA_SETS, _OURS)
      for text, judge, name in (
          ("some T inside the range from 1 to 100 needs fewer rounds than both its ends.", judge_inner,
           "inner_optimum"),
          (f"the best T needs more than {TENFOLD:g} times fewer rounds than T = 1.",
           partial(judge_factor, least=TENFOLD), "tenfold"))
      for reading, words in sim.READINGS.items()),
    logistic.SURROGATE,
]
