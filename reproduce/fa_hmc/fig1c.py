"""FA-HMC figure 1(c): rounds to a marginal error against local steps."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import plot
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, Unjudged, note, settings
from ..tables import among, groups, spaced
from ..verdicts import DATA_SETS, shares, unanimous
from . import logistic, shared as sim
from .fig1 import CITED, NEEDS

TITLE = "Rounds to a marginal error against local steps"
PAPER = "FA-HMC figure 1(c)"
REPRODUCES = ("FA-HMC 1(c)",)
SHOWS = ("Rounds after which the averages of one chain have a given marginal error, against T, for 12 "
         "Gaussian surrogates of either of two kinds of clients; the error that more rounds do not remove; "
         "and simulated logistic regression.")
COST = {"tiny": "3 s", "quick": "9 s", "paper": "about 5 min (estimated)"}
PARAMETERS = [
    Parameter("leapfrog_steps", 100, "paper", "section 5.1: K = 100"),
    Parameter("step_size", 0.01, "paper", "section 5.1: eta = 0.01"),
    Parameter("noise", 10.0, "paper", "section 5.1: noisy gradients of variance 100"),
    Parameter("n_clients", 20, "paper", "section 5.1"),
    Parameter("shared_noise", 1.0, "paper", "section 5"),
    Parameter("local_steps", ByScale([1, 10, 30, 70, 100], [1, 2, 5, 10, 20, 30, 50, 70, 100],
                                     [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]), "ours",
              "the paper takes T from 1 to 100"),
    Parameter("dim", ByScale(10, 20, 100), "ours", "the paper has 1000; coordinates are independent here"),
    Parameter("curvature", 0.03, "ours", CITED + "; slow enough for local steps to save many rounds, another "
              "problem than that of the other panels"),
    Parameter("curvature_spread", 0.25, "ours", "of the clients' curvatures, log-normal"),
    Parameter("spreads", {"alike clients": 1.0, "unlike clients": 20.0}, "ours",
              "of the clients' minimizers; the second brings the bias near the accuracies"),
    Parameter("accuracies", [0.2, 0.1], "ours", "marginal errors in units of the posterior spread; "
              "the paper's one number is 0.101 without a unit"),
    Parameter("most_rounds", ByScale(20000, 20000, 100000), "ours", "beyond them an accuracy counts as never "
              "reached"),
    Parameter("n_sets", 12, "ours", "data sets, each judged by itself"),
    Parameter("data_seed", 0, "ours", "of the first data set; the others follow"),
    Parameter("seed", 1, "ours", "of simulation, surrogate and reference"),
    Parameter("logistic", {"dim": 10, "n_data": 200, "feature_norm": 0.1, "prior_variance": 100.0}, "ours",
              "of the simulated regression"),
    Parameter("short_leapfrogs", 10, "ours", "K of the simulated runs, with eta = 0.1: as long trajectories"),
    Parameter("short_noise", 3.0, "ours", "their gradient noise: about the same effect at the larger eta"),
    Parameter("short_steps", ByScale([10], [10, 70], [1, 10, 30, 70, 100]), "ours", "their T"),
    Parameter("short_iterations", ByScale(100, 420, 3000), "ours", "their length in local updates"),
    Parameter("n_chains", ByScale(16, 16, 64), "ours", "simulated chains, pooled"),
    *logistic.REFERENCE_CHAINS,
]
LESS = 1.05
"""An optimum inside the range of T saves at least so many times the rounds of either end."""


def compute(scale: str) -> Tables:
    """Tables: rounds, bias (both of surrogates), short (simulated, with its surrogate)."""
    p = settings(PARAMETERS, scale)
    rounds, bias = _surrogates(p)
    return {"rounds": rounds, "bias": bias, "short": _short(p)}


def _problem(p: Any, seed: int, spread: float) -> fs.Quadratic:
    """Clients with independent coordinates; problems of different spread share their random numbers."""
    rng = np.random.default_rng(seed)
    hessians = p.curvature * np.exp(p.curvature_spread * rng.standard_normal((p.n_clients, p.dim)))
    return fs.Quadratic(hessians, spread * rng.standard_normal((p.n_clients, p.dim)), gradient_noise=p.noise)


def first_within(counts: np.ndarray, errors: np.ndarray, accuracy: float) -> float:
    """First count with an error within `accuracy`, interpolated on logarithmic scales; infinity if none."""
    return float(np.exp(sim.crossing(np.log(counts), np.log(errors), np.log(accuracy))))


def _surrogates(p: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rounds to each accuracy by expected errors of stationary chains, and errors of stationary laws."""
    rounds, biases, counts = [], [], spaced(p.most_rounds, 24)
    for name, data, steps in product(p.spreads, range(p.n_sets), p.local_steps):
        note(f"surrogate, {name}, data set {data + 1} of {p.n_sets}, T = {steps}")
        problem = _problem(p, p.data_seed + data, p.spreads[name])
        algorithm = fs.FAHMC(p.step_size, p.leapfrog_steps, steps, p.shared_noise)
        chain, target = logistic.Chain(logistic.round_map(problem, algorithm)), problem.target()
        unit, slowest = logistic.spread_of(target), float(np.abs(chain.factors).max())
        labels = {"clients": name, "data": data, "local_steps": steps}
        biases.append({**labels, "gain": (1.0 + slowest) / (1.0 - slowest),
                       "error": logistic.error_of_law(chain.law, target) / unit})
        errors = logistic.error_of_chain(chain, target, counts) / unit
        rounds += [{**labels, "accuracy": accuracy, "rounds": first_within(counts, errors, accuracy)}
                   for accuracy in p.accuracies]
    return pd.DataFrame(rounds), pd.DataFrame(biases)


def _short(p: Any) -> pd.DataFrame:
    """Simulated logistic regression and its surrogate."""
    p.prior_variance, p.noise = p.logistic["prior_variance"], p.short_noise
    law = {name: p.logistic[name] for name in ("feature_norm", "dim", "n_data")}
    step, rows = p.step_size * p.leapfrog_steps / p.short_leapfrogs, []
    cases = {f"T = {steps}": (fs.FAHMC(step, p.short_leapfrogs, steps, p.shared_noise),
                              max(4, p.short_iterations // steps)) for steps in p.short_steps}
    for data in range(p.n_sets):
        note(f"simulating, data set {data + 1} of {p.n_sets}")
        posterior = logistic.Posterior(p, p.data_seed + data, **law)
        rows += logistic.runs(p, posterior, cases, data)
    return pd.DataFrame(rows)


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
        sim.draw_spread(ax, one.groupby("local_steps")["rounds"], plot.COLOURS[kinds.index(name)],
                        f"{name}, error {accuracy:g}: median, all data sets",
                        linestyle="--" if accuracy == rounds["accuracy"].max() else "-")
    ax.axvline(70, color="#000000", linestyle=":", linewidth=1.0, label="the paper's optimum, T = 70")
    ax.set(ylabel=r"rounds to the error, $R_\epsilon$", title="(c) surrogates, one chain")


def _draw_bias(ax: Axes, tables: Tables) -> None:
    bias = tables["bias"]
    for (name, one), colour in zip(groups(bias, "clients"), plot.COLOURS, strict=False):
        sim.draw_spread(ax, one.groupby("local_steps")["error"], colour,
                        f"exact law, {name}: stationary error", solid_capstyle="butt")
    gain = bias.groupby("local_steps")["gain"].median()
    ax.plot(gain.index, np.sqrt(gain / gain.iloc[0]), color=plot.GREY, linestyle="--",
            label="exact law: slowest mode's sampling error, T = 1 at 1")
    for accuracy in dict.fromkeys(tables["rounds"]["accuracy"]):
        ax.axhline(accuracy, color="#000000", linestyle=":", linewidth=1.0,
                   label="the left panel's accuracies")
    ax.set(ylabel="marginal error / posterior spread", title="what T trades")


def _table(tables: Tables, name: str, accuracy: float) -> pd.DataFrame:
    """Rounds by T (rows) and data set (columns)."""
    return among(tables["rounds"], clients=name, accuracy=accuracy).pivot(
        index="local_steps", columns="data", values="rounds")


def _number(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "never"


def judge_optimum(tables: Tables, name: str) -> tuple[str, str]:
    """An optimum inside the range of T, on every data set."""
    accuracy = tables["rounds"]["accuracy"].min()
    table = _table(tables, name, accuracy)
    good = table.iloc[1:-1].min() * LESS < np.minimum(table.iloc[0], table.iloc[-1])
    best, middle = table.idxmin(), table.median(axis=1)
    return unanimous(good), (
        f"To an error of {accuracy:g} spreads, in the median: {_number(middle.iloc[0])} rounds at T = "
        f"{table.index[0]}, {_number(table.min().median())} at the best T ({best.min()} to {best.max()}), "
        f"{_number(middle.iloc[-1])} at T = {table.index[-1]}; an inner T saves 5% against both ends "
        f"{shares(good)}.")


def judge_accuracy(tables: Tables, name: str) -> tuple[str, str]:
    """Does the improvement over T = 100 grow as the accuracy falls?"""
    ratios, texts = {}, []
    for accuracy in sorted(set(tables["rounds"]["accuracy"])):
        table = _table(tables, name, accuracy)
        ratio = (table.loc[100] / table.min()).fillna(1.0)  # never at any T: nothing to improve
        ratios[accuracy], median = ratio, ratio.median()
        texts.append(f"{median:.2f}-fold at {accuracy:g}" if np.isfinite(median) else
                     f"never reached with T = 100 at {accuracy:g}")
    fine, coarse = min(ratios), max(ratios)
    good = ratios[fine] > ratios[coarse]
    return unanimous(good), (
        f"Rounds at T = 100 over those at the best T, in the median: {', '.join(texts)}; more at {fine:g} "
        f"than at {coarse:g} {shares(good)}.")


_PLACE = "section 5.1, figure 1(c)"
_OURS = ("Surrogates of our own; expected errors of a chain of K = 100, eta = 0.01 as printed, started in "
         "its stationary law.")
CLAIMS = [
    Unjudged("The optimal T is 70: larger and smaller T need more communication.", _PLACE, NEEDS +
             ": where rounds turn is decided by curvature and by how unlike clients are.", "optimum"),
    Unjudged("A smaller accuracy leads to more improvement of the best T over T = 100.", _PLACE,
             NEEDS + ", and the accuracies.", "accuracy"),
    Unjudged("Against T = 1 the best T needs more than 65 times fewer rounds, at an error around 0.101.",
             _PLACE, NEEDS + ": the factor follows from the curvature, which we chose.", "factor"),
    *(Finding(f"With {name} some T inside the range from 1 to 100 needs fewer rounds than both its ends.",
              _PLACE, partial(judge_optimum, name=name), f"inner_optimum_{name.split()[0]}",
              DATA_SETS, context=_OURS + " Rounds rise where the bias, which grows with T and with "
              "how unlike clients are, comes near the accuracy.")
      for name in ("alike clients", "unlike clients")),
    Finding("With unlike clients a smaller accuracy leads to more improvement of the best T over T = 100.",
            _PLACE, partial(judge_accuracy, name="unlike clients"), "more_at_small_accuracy",
            DATA_SETS, context=_OURS),
    logistic.SURROGATE,
]
