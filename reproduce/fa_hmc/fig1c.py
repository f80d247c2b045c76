"""FA-HMC figure 1(c): rounds to a marginal error against local steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import plot
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, note, settings
from ..tables import among, groups, spaced
from ..verdicts import DATA_SETS, shares, unanimous
from . import logistic, shared as sim, surrogate

TITLE = "Rounds to a marginal error against local steps (Gaussian surrogate)"
PAPER = "FA-HMC figure 1(c)"
REPRODUCES = ("FA-HMC 1(c)",)
SHOWS = ("Rounds after which the averages of one chain have a given marginal error, against T, for the "
         "Gaussian surrogate of logistic regressions on data of the cited law, and for slow clients of our "
         "own; the error that more rounds do not remove; and simulated logistic regression.")
COST = {"tiny": "3 s", "quick": "25 s", "paper": "about 10 min (estimated)"}
PARAMETERS = [
    *logistic.THOUSAND, *logistic.DATA,
    Parameter("leapfrog_steps", 100, "paper", "section 5.1: K = 100"),
    Parameter("step_size", 0.01, "paper", "section 5.1: eta = 0.01"),
    Parameter("noise", 10.0, "paper", "section 5.1: noisy gradients of variance 100"),
    Parameter("shared_noise", 1.0, "paper", "section 5"),
    Parameter("local_steps", ByScale([1, 10, 30, 70, 100], [1, 2, 5, 10, 20, 30, 50, 70, 100],
                                     [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]), "ours",
              "the paper takes T from 1 to 100"),
    Parameter("accuracies", [0.4, 0.11], "ours", "marginal errors in units of the posterior spread: one that "
              "every T reaches, and with the cited law, whose spread is 0.91, the paper's 0.101"),
    Parameter("most_rounds", ByScale(20000, 20000, 100000), "ours", "beyond them an accuracy counts as never "
              "reached"),
    Parameter("slow_dim", ByScale(10, 20, 100), "ours", "of slow clients, whose coordinates are independent"),
    Parameter("slow_curvature", 0.03, "ours", "slow enough for local steps to save as many rounds as in the "
              "paper: to show how its curve can come about"),
    Parameter("curvature_spread", 0.25, "ours", "of the slow clients' curvatures, log-normal"),
    Parameter("minimizer_spread", 20.0, "ours", "of the slow clients' minimizers: brings the bias near the "
              "accuracies"),
    Parameter("short_leapfrogs", 10, "ours", "K of the simulated runs, with eta = 0.1: as long trajectories"),
    Parameter("short_noise", 3.0, "ours", "their gradient noise: about the same effect at the larger eta"),
    Parameter("short_steps", ByScale([10], [10, 70], [1, 10, 30, 70, 100]), "ours", "their T"),
    Parameter("short_iterations", ByScale(100, 210, 3000), "ours", "their length in local updates"),
    Parameter("n_chains", ByScale(16, 16, 64), "ours", "simulated chains, pooled"),
    *logistic.REFERENCE_CHAINS,
    Parameter("seed", 1, "ours", "of simulation, surrogate and reference"),
]
CITED, SLOW = "cited law", "slow clients"
LESS = 1.05
"""An optimum inside the range of T saves at least so many times the rounds of either end."""
FACTOR = 65.0
"""The paper's saving of rounds over T = 1."""
OPTIMUM = 70
"""The paper's T."""
MARKERS = "os^"


def compute(scale: str) -> Tables:
    """Tables: rounds, bias (both of surrogates), short (simulated, with its surrogate)."""
    p = settings(PARAMETERS, scale)
    tables: dict[str, list[dict[str, Any]]] = {"rounds": [], "bias": [], "short": []}
    for labels, problem in logistic.data_sets(p):
        posterior = surrogate.Posterior(problem)
        named = {"law": CITED, "clients": f"{CITED}, d = {labels['dim']}", "data": labels["data"]}
        _add(tables, p, named, posterior.round_map, posterior.target)
        if labels["dim"] == p.smaller[-1]:
            tables["short"] += _short(p, problem, labels["data"])
    for data in range(p.small_sets):
        note(f"slow clients, data set {data + 1} of {p.small_sets}")
        slow = _slow(p, p.data_seed + data)
        _add(tables, p, {"law": SLOW, "clients": SLOW, "data": data}, partial(surrogate.round_map, slow),
             slow.target())
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def _slow(p: Any, seed: int) -> fs.Quadratic:
    """Clients of our own with independent coordinates."""
    rng, shape = np.random.default_rng(seed), (p.n_clients, p.slow_dim)
    hessians = p.slow_curvature * np.exp(p.curvature_spread * rng.standard_normal(shape))
    return fs.Quadratic(hessians, p.minimizer_spread * rng.standard_normal(shape), gradient_noise=p.noise)


def first_within(counts: np.ndarray, errors: np.ndarray, accuracy: float) -> float:
    """First count with an error within `accuracy`, interpolated on logarithmic scales; infinity if none."""
    return float(np.exp(sim.crossing(np.log(counts), np.log(errors), np.log(accuracy))))


def _add(tables: dict[str, list[dict[str, Any]]], p: Any, labels: dict[str, Any],
         round_map: Callable[[fs.FAHMC], surrogate.Round], target: fs.Gaussian) -> None:
    """Rounds to each accuracy by expected errors of stationary chains, and errors of stationary laws."""
    unit, counts = surrogate.spread_of(target), spaced(p.most_rounds, 24)
    for steps in p.local_steps:
        chain = surrogate.Chain(round_map(fs.FAHMC(p.step_size, p.leapfrog_steps, steps, p.shared_noise)))
        slowest = float(np.abs(chain.factors).max())
        own = {**labels, "local_steps": steps}
        tables["bias"].append({**own, "gain": (1.0 + slowest) / (1.0 - slowest),
                               "error": surrogate.error_of_law(chain.law, target) / unit})
        errors = surrogate.error_of_chain(chain, target, counts) / unit
        tables["rounds"] += [{**own, "accuracy": accuracy, "rounds": first_within(counts, errors, accuracy)}
                             for accuracy in p.accuracies]


def _short(p: Any, problem: fs.LogisticRegression, data: int) -> list[dict[str, Any]]:
    """Simulated logistic regression and its surrogate."""
    posterior = surrogate.Posterior(replace(problem, gradient_noise=p.short_noise))
    step = p.step_size * p.leapfrog_steps / p.short_leapfrogs
    return logistic.runs(p, posterior, {
        f"T = {steps}": (fs.FAHMC(step, p.short_leapfrogs, steps, p.shared_noise),
                         max(4, p.short_iterations // steps)) for steps in p.short_steps}, data)


def draw(tables: Tables) -> Drawing:
    """Rounds against T; what no rounds remove; simulated errors."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.1, 5.2)
    _draw_rounds(left, tables["rounds"])
    _draw_bias(middle, tables)
    for ax in (left, middle):
        ax.set(xscale="log", yscale="log", xlabel="local steps T")
        plot.legend_below(ax, **sim.LEGEND)
    logistic.draw_short(right, tables["short"])
    return drawing


def _draw_rounds(ax: Axes, rounds: pd.DataFrame) -> None:
    kinds = list(dict.fromkeys(rounds["clients"]))
    for (name, accuracy), one in groups(rounds, ["clients", "accuracy"]):
        count = one["data"].nunique()
        sim.draw_spread(ax, one.groupby("local_steps")["rounds"], plot.COLOURS[kinds.index(name)],
                        f"{name}, error {accuracy:g}: " + ("one data set" if count == 1 else
                                                           f"median, all {count} data sets"),
                        linestyle="--" if accuracy == rounds["accuracy"].max() else "-",
                        marker=MARKERS[kinds.index(name)])
    ax.axvline(OPTIMUM, color="#000000", linestyle=":", linewidth=1.0,
               label=f"the paper's optimum, T = {OPTIMUM}")
    ax.set(ylabel=r"rounds to the error, $R_\epsilon$", title="(c) surrogates (no dot: not on all data sets)")


def _draw_bias(ax: Axes, tables: Tables) -> None:
    for (name, one), colour, marker in zip(groups(tables["bias"], "clients"), plot.COLOURS, MARKERS,
                                           strict=False):
        by_steps = one.groupby("local_steps")
        sim.draw_spread(ax, by_steps["error"], colour, f"{name}: stationary error", solid_capstyle="butt",
                        marker=marker)
        gain = by_steps["gain"].median()
        ax.plot(gain.index, np.sqrt(gain / gain.iloc[0]), color=colour, linestyle="--",
                label=f"{name}: slowest mode's sampling error, T = 1 at 1")
    for accuracy in dict.fromkeys(tables["rounds"]["accuracy"]):
        ax.axhline(accuracy, color="#000000", linestyle=":", linewidth=1.0,
                   label="the left panel's accuracies")
    ax.set(ylabel="marginal error / posterior spread", title="what T trades: exact laws")


def _table(tables: Tables, law: str, accuracy: float) -> pd.DataFrame:
    """Rounds by T (rows) and data set (columns)."""
    return among(tables["rounds"], law=law, accuracy=accuracy).pivot(
        index="local_steps", columns="data", values="rounds")


def _span(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _number(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "never"


def judge_inner(tables: Tables, law: str) -> tuple[str, str]:
    """An optimum inside the range of T, on every data set."""
    accuracy = tables["rounds"]["accuracy"].min()
    table = _table(tables, law, accuracy)
    good = table.iloc[1:-1].min() * LESS < np.minimum(table.iloc[0], table.iloc[-1])
    best, middle = table.idxmin(), table.median(axis=1)
    return unanimous(good), (
        f"To an error of {accuracy:g} spreads, in the median: {_number(middle.iloc[0])} rounds at T = "
        f"{table.index[0]}, {_number(table.min().median())} at the best T ({_span(best.to_numpy())}), "
        f"{_number(middle.iloc[-1])} at T = {table.index[-1]}; an inner T saves 5% against both ends "
        f"{shares(good)}.")


def judge_accuracy(tables: Tables, law: str) -> tuple[str, str]:
    """Does the improvement over T = 100 grow as the accuracy falls?"""
    ratios, texts = {}, []
    for accuracy in sorted(set(tables["rounds"]["accuracy"])):
        table = _table(tables, law, accuracy)
        ratio = (table.loc[100] / table.min()).fillna(1.0)  # never at any T: nothing to improve
        ratios[accuracy], median = ratio, ratio.median()
        texts.append(f"{median:.2f}-fold at {accuracy:g}" if np.isfinite(median) else
                     f"never reached with T = 100 at {accuracy:g}")
    fine, coarse = min(ratios), max(ratios)
    good = ratios[fine] > ratios[coarse]
    return unanimous(good), (
        f"Rounds at T = 100 over those at the best T, in the median: {', '.join(texts)}; more at {fine:g} "
        f"than at {coarse:g} {shares(good)}. The best T at {fine:g} is "
        f"{_span(_table(tables, law, fine).idxmin().to_numpy())}.")


def judge_optimum(tables: Tables) -> tuple[str, str]:
    """Is the paper's T the best with the cited law, at the least accuracy?"""
    best = _table(tables, CITED, tables["rounds"]["accuracy"].min()).idxmin()
    return unanimous(best == OPTIMUM), (
        f"The fewest rounds are at T = {_span(best.to_numpy())}; at {OPTIMUM} {shares(best == OPTIMUM)}.")


def judge_factor(tables: Tables) -> tuple[str, str]:
    """Does the best T save as many rounds over T = 1 as the paper says?"""
    table = _table(tables, CITED, tables["rounds"]["accuracy"].min())
    saved = (table.loc[1] / table.min()).fillna(1.0)  # never at any T: nothing saved
    return unanimous(saved > FACTOR), (
        f"Rounds at T = 1 over those at the best T: {_span(saved.to_numpy())}; more than "
        f"{FACTOR:g} {shares(saved > FACTOR)}.")


_PLACE = "section 5.1, figure 1(c)"
_OURS = ("Expected errors on Gaussian surrogates of a chain of K = 100, eta = 0.01 as printed, started in "
         "its stationary law. Rounds rise where the bias, which grows with T and with how unlike clients "
         "are, comes near the accuracy.")
CLAIMS = [
    logistic.sentence(f"The optimal T is {OPTIMUM}: larger and smaller T need more communication.", _PLACE,
                      judge_optimum, "optimum", "Judged at the least of our accuracies."),
    logistic.sentence("A smaller accuracy leads to more improvement of the best T over T = 100.", _PLACE,
                      partial(judge_accuracy, law=CITED), "accuracy", "Accuracies but for 0.101 are ours."),
    logistic.sentence(f"Against T = 1 the best T needs more than {FACTOR:g} times fewer rounds, at an error "
                      "around 0.101.", _PLACE, judge_factor, "factor",
                      "A chain that mixes in a few local updates leaves few rounds to save."),
    *(Finding(f"With {words} some T inside the range from 1 to 100 needs fewer rounds than both its ends.",
              _PLACE, partial(judge_inner, law=law), f"inner_optimum_{law.split()[0]}", DATA_SETS, _OURS)
      for law, words in ((CITED, "the cited data law"), (SLOW, "slow clients of our own"))),
    Finding("With slow clients of our own a smaller accuracy leads to more improvement of the best T over "
            "T = 100.", _PLACE, partial(judge_accuracy, law=SLOW), "more_at_small_accuracy", DATA_SETS,
            _OURS),
    logistic.SURROGATE,
]
