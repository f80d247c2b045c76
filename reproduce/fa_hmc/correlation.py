"""Shared noise, gradient noise and local steps in FA-HMC: is there a U-curve?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from theory.fa_hmc.rates import rounds_rate
from theory.rates import fit_rate

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, note, settings
from ..verdicts import EXACT, FAIL, PASS, REPLICAS
from . import shared as sim
from .shared import groups

TITLE = "Rounds and bias against local steps, by shared noise and gradient noise"
PAPER = "ours, for FA-HMC Theorem 4.1 and Proposition 4.3"
SHOWS = ("Stationary W2 against T at one step size, and the fewest rounds over the step size against T, for "
         "several levels of shared noise and gradient noise, beside the shape of Theorem 4.1.")
COST = {"tiny": "3 s", "quick": "14 s", "paper": "about 3 min (estimated)"}
_OURS = "the paper has no experiment on it"
PARAMETERS = [
    Parameter("n_clients", 10, "ours", _OURS),
    Parameter("dim", 100, "ours", "coordinates are alike and independent: one of them is followed"),
    Parameter("curvatures", [0.2, 5.0], "ours", "of the clients, evenly spaced on a logarithmic scale"),
    Parameter("minimizers", [-0.5, 0.5], "ours", "of the clients, evenly spaced, the larger the more curved: "
              "in this order their bias is largest"),
    Parameter("leapfrog_steps", 5, "paper", "section 5.2: K = 5"),
    Parameter("eps", 0.1, "ours", "gradient noise then limits the step size at T = 1"),
    Parameter("shared", [1.0, 0.9, 0.0], "ours", "the paper's rho"),
    Parameter("noises", [0.0, 20.0], "ours", "standard deviation per coordinate of gradient noise"),
    Parameter("local_steps", ByScale([1, 10, 100], [1, 2, 4, 10, 30, 100, 300],
                                     [1, 2, 3, 5, 7, 10, 15, 20, 35, 50, 100, 200, 300]), "ours", "T"),
    Parameter("fixed_step", 0.02, "ours", "of the left panel"),
    Parameter("n_grid", ByScale(7, 17, 25), "ours", "step sizes tried per refinement"),
    Parameter("n_refine", ByScale(1, 2, 3), "ours", "refinements"),
    Parameter("n_replicas", ByScale(2048, 16384, 131072), "ours", "of one coordinate, for a check at T = 10"),
    Parameter("seed", 1, "ours", "of the replicas"),
]


def problem_of(p: Any, noise: float) -> fs.Quadratic:
    """One coordinate of the clients."""
    (flat, steep), (left, right) = p.curvatures, p.minimizers
    return fs.Quadratic(np.geomspace(flat, steep, p.n_clients),
                        np.linspace(left, right, p.n_clients)[:, None], gradient_noise=noise or None)


def _algorithm(p: Any, steps: int, shared: float, step: float | None = None) -> fs.FAHMC:
    return fs.FAHMC(p.fixed_step if step is None else step, p.leapfrog_steps, steps, shared)


def compute(scale: str) -> Tables:
    """Tables: bias, rounds, fits, replicas."""
    p = settings(PARAMETERS, scale)
    rounds = _rounds(p)
    return {"bias": _bias(p), "rounds": rounds, "fits": _fits(rounds), "replicas": _replicas(p)}


def _bias(p: Any) -> pd.DataFrame:
    rows = []
    for noise in p.noises:
        problem = problem_of(p, noise)
        for shared in p.shared:
            for steps in p.local_steps:
                law = theory.stationary_law(problem, _algorithm(p, steps, shared))
                rows.append({"noise": noise, "shared": shared, "local_steps": steps,
                             "w2": np.sqrt(p.dim) * law.w2(problem.target()),
                             "mean_part": np.sqrt(p.dim) * abs(float((law.mean - problem.target().mean)[0]))})
    return pd.DataFrame(rows)


def _rounds(p: Any) -> pd.DataFrame:
    """Fewest exact rounds over the step size, and the theorem's shape."""
    rows = []
    for noise in p.noises:
        one = problem_of(p, noise)
        whole = fs.Quadratic(np.repeat(one.dense_hessians[:, 0], p.dim, axis=1),
                             np.repeat(one.minimizers, p.dim, axis=1), gradient_noise=noise or None)
        for shared in p.shared:
            for steps in p.local_steps:
                note(f"best step size, noise {noise:g}, shared {shared:g}, T={steps}")
                algorithm = _algorithm(p, steps, shared)
                best = theory.tuning.best_step_size(one, algorithm, p.eps / np.sqrt(p.dim), smallest=1e-4,
                                                    n_grid=p.n_grid, n_refine=p.n_refine, max_rounds=10**7)
                if best is None:
                    raise ValueError(f"eps={p.eps} is not reached by any step size at T={steps}")
                rate = rounds_rate(theory.constants(whole, algorithm), algorithm, eps=p.eps,
                                   variant="resolved")
                rows.append({"noise": noise, "shared": shared, "local_steps": steps, "rounds": best.n_rounds,
                             "step_size": best.step_size, "shape": float(rate.value[0])})
    return pd.DataFrame(rows)


def _fits(rounds: pd.DataFrame) -> pd.DataFrame:
    """Constants of the theorem's shape, fitted so that it dominates, and the drift of the ratio with T."""
    rows = []
    for (noise, shared), one in groups(rounds, ["noise", "shared"]):
        fit = fit_rate(one["local_steps"], one["shape"], one["rounds"])
        rows.append({"noise": noise, "shared": shared, "constant": fit.constant, "spread": fit.spread,
                     "drift": fit.drift.value if fit.drift else 0.0})
    return pd.DataFrame(rows)


def _replicas(p: Any) -> pd.DataFrame:
    """W2 of replicas started in the stationary law, after 20 rounds of T = 10."""
    rows, seed = [], p.seed
    for noise in p.noises:
        problem = problem_of(p, noise)
        for shared in p.shared:
            note(f"simulating noise {noise:g}, shared {shared:g}")
            algorithm = _algorithm(p, 10, shared)
            law, scale = theory.stationary_law(problem, algorithm), np.sqrt(p.dim)
            run = fs.simulate(problem, algorithm, 20, p.n_replicas, seed=seed, record=[20], start=law)
            seed, scores = seed + 1, sim.deviation(run, theory.exact_law(problem, algorithm, 20, start=law,
                                                                         record=[20]))
            low, high = scale * run.w2_interval(0.95)[-1]
            rows.append({"noise": noise, "shared": shared, "local_steps": 10,
                         "exact": scale * law.w2(problem.target()),
                         "w2": scale * run.w2()[-1], "low": low, "high": high,
                         "floor": scale * float(run.w2_floor()[-1]), "deviation": scores[0],
                         "compared": scores[1]})
    return pd.DataFrame(rows)


def draw(tables: Tables) -> Drawing:
    """Stationary W2; fewest rounds; exact rounds over the theorem's shape."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.1, 5.6)
    _draw_bias(left, tables)
    _draw_rounds(middle, tables)
    _draw_ratio(right, tables)
    for ax in (left, middle, right):
        ax.set(xscale="log", yscale="log", xlabel="local steps T")
    return drawing


def _lines(table: pd.DataFrame) -> list[tuple[pd.DataFrame, dict[str, Any], str]]:
    """Each level's rows with its looks: wide lines below narrow ones, as some curves coincide."""
    shared, noises = list(dict.fromkeys(table["shared"])), list(dict.fromkeys(table["noise"]))
    return [(one, {"color": plot.COLOURS[shared.index(rho)], "linestyle": "--" if noise else "-",
                   "marker": "s" if noise else "o", "markersize": 4,
                   "linewidth": 4.4 - 1.4 * shared.index(rho)},
             rf"shared {rho:g}, gradient noise {noise:g}")
            for noise in noises for rho in shared
            for one in [table[(table["noise"] == noise) & (table["shared"] == rho)]]]


def _draw_bias(ax: Axes, tables: Tables) -> None:
    bias, seen = tables["bias"], tables["replicas"]
    for one, looks, name in _lines(bias):
        ax.plot(one["local_steps"], one["w2"], label=f"exact law, {name}", **looks)
    apart = seen["local_steps"] * np.geomspace(0.8, 1.25, len(seen))
    shared = list(dict.fromkeys(bias["shared"]))
    bottom = 0.5 * min(float(bias["w2"].min()), float(seen["floor"].min()))
    bands = np.stack([seen["w2"] - seen["low"].clip(lower=bottom), seen["high"] - seen["w2"]])
    for i, (noise, level) in enumerate(zip(seen["noise"], seen["shared"], strict=True)):
        ax.errorbar(apart[i:i + 1], seen["w2"][i:i + 1], bands[:, i:i + 1], fmt="s" if noise else "o",
                    color=plot.COLOURS[shared.index(level)], markeredgecolor="#000000", capsize=3, zorder=5)
    ax.errorbar([], [], [], fmt="o", color=plot.GREY, markeredgecolor="#000000", capsize=3,
                label=f"{plot.BAND}: all at T = {seen['local_steps'].iloc[0]}, set apart"
                + ("\n(a band that meets the axis goes on below it)" if (seen["low"] < bottom).any() else ""))
    plot.floor(ax, float(seen["floor"].mean()))
    ax.set(ylabel=r"stationary $W_2$", title=r"bias at a fixed step size ($\eta$ = 0.02)")
    ax.set_ylim(bottom=bottom)
    sim.legend_below(ax)


def _draw_rounds(ax: Axes, tables: Tables) -> None:
    rounds = tables["rounds"]
    for one, looks, name in _lines(rounds):
        ax.plot(one["local_steps"], one["rounds"], label=f"exact law, {name}", **looks)
    ax.set(ylabel=r"fewest rounds to $W_2 \leq$ 0.1", title="the best step size at every T")
    sim.legend_below(ax)


def _draw_ratio(ax: Axes, tables: Tables) -> None:
    rounds = tables["rounds"]
    for one, looks, name in _lines(rounds):
        ax.plot(one["local_steps"], one["rounds"] / one["shape"], label=name, **looks)
    ax.set(ylabel="exact law's rounds / shape of theorem 4.1",
           title="the exact rounds over the theorem's shape")
    sim.legend_below(ax)


def _level(table: pd.DataFrame, noise: float, shared: float) -> pd.DataFrame:
    return table[(table["noise"] == noise) & (table["shared"] == shared)].set_index("local_steps")


def _turn(rounds: pd.Series) -> tuple[float, float]:
    """How much rounds fall to their minimum, and rise from it to the largest T, as factors."""
    least = rounds.min()
    return float(rounds.iloc[0] / least), float(rounds.iloc[-1] / least)


def judge_u(tables: Tables) -> tuple[str, str]:
    """Turns of more than a fifth on both sides, where a part of the momentum is shared."""
    rounds, texts, seen = tables["rounds"], [], []
    for (noise, shared), one in groups(rounds, ["noise", "shared"]):
        if noise > 0.0 and 0.0 < shared < 1.0:
            fall, rise = _turn(one.set_index("local_steps")["rounds"])
            shape = _turn(one.set_index("local_steps")["shape"])
            seen.append(fall > sim.FIFTH and rise > sim.FIFTH)
            texts.append(f"shared noise {shared:g}: exact rounds fall {fall:.2f}-fold and rise "
                         f"{rise:.2f}-fold (the shape {shape[0]:.2f} and {shape[1]:.2f})")
    return (PASS if all(seen) else FAIL), (
        f"From T = {rounds['local_steps'].min()} to the best T to T = {rounds['local_steps'].max()}: "
        f"{'; '.join(texts)}.")


def judge_correlation(tables: Tables) -> tuple[str, str]:
    """Rounds of private over those of shared momentum, at the largest T."""
    rounds, noise = tables["rounds"], tables["rounds"]["noise"].min()
    most, least = rounds["shared"].max(), rounds["shared"].min()
    shared, private = _level(rounds, noise, most)["rounds"], _level(rounds, noise, least)["rounds"]
    late = private.index[-1]
    bias = [_level(tables["bias"], noise, level)["w2"][late] for level in (most, least)]
    return (PASS if private[late] > sim.FIFTH * shared[late] else FAIL), (
        f"The fewest rounds at T = {late} are {shared[late]} with shared and {private[late]} with private "
        f"momentum, and the stationary W2 at the fixed step size is {bias[0]:.3g} and {bias[1]:.3g}.")


def judge_flat(tables: Tables) -> tuple[str, str, str]:
    """Proposition 4.3."""
    rounds = tables["rounds"]
    one = _level(rounds, rounds["noise"].min(), rounds["shared"].max())["rounds"]
    factor, why = sim.limited(one)
    late = one[one.index >= 10]
    return (PASS if factor < 1.0 else FAIL), f"With shared momentum and exact gradients {why}", (
        f"From T = 10 on they vary by a factor {late.max() / late.min():.2f}.")


def judge_noise(tables: Tables) -> tuple[str, str]:
    """Gradient noise makes local steps worth while."""
    rounds = tables["rounds"]
    most = rounds["shared"].max()
    levels = rounds["noise"].min(), rounds["noise"].max()
    exact, noisy = (_level(rounds, level, most)["rounds"] for level in levels)
    gains = [float(one.iloc[0] / one.min()) for one in (exact, noisy)]
    return (PASS if gains[1] > sim.FIFTH * gains[0] else FAIL), (
        f"With shared momentum the best T needs {gains[0]:.2f} times fewer rounds than T = 1 with exact "
        f"gradients and {gains[1]:.2f} times fewer with noisy ones (best T = {exact.idxmin()} and "
        f"{noisy.idxmin()}).")


def judge_shape(tables: Tables) -> tuple[str, str]:
    """Does the shape hold with all constants one?"""
    rounds, fits = tables["rounds"], tables["fits"]
    ratio = rounds["rounds"] / rounds["shape"]
    return (PASS if float(ratio.max()) < 1.0 else FAIL), (
        f"Over all levels and T up to {rounds['local_steps'].max()} the shape is {1.0 / ratio.max():.3g} to "
        f"{1.0 / ratio.min():.2g} times the exact rounds; within a level this factor varies "
        f"{fits['spread'].min():.1f} to {fits['spread'].max():.1f}-fold.")


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """Replicas at T = 10."""
    seen = tables["replicas"]
    return sim.follows(seen["deviation"], seen["compared"])


_TUNED = "Step size tuned for every T; rounds within a fifth count as alike."
CLAIMS = [
    Claim("\"... when there are small stochastic gradients and large correlations between momentum, "
          "communication times have limited variations in T.\"", "section 4.1, proposition 4.3", judge_flat,
          name="flat", rests_on=EXACT, context="Step size tuned for every T. " + sim.LIMITED),
    Finding("On quadratic clients with noisy gradients and momentum not all shared (0.9) the exact rounds "
            "have the U-curve in T that they may have by the shape of Theorem 4.1.",
            "section 4.1, theorem 4.1", judge_u, name="u_curve", rests_on=EXACT,
            context=_TUNED + " With momentum all private the shape has no U here."),
    Finding("On quadratic clients with exact gradients shared momentum alone saves a fifth of the rounds at "
            "the largest T.", "section 4.1, theorem 4.1", judge_correlation, name="shared_saves",
            rests_on=EXACT, context=_TUNED + " Private noise adds variance only as far as curvatures differ. "
            "The theorem's rate in d and eps is not tested by this, nor are clients that are not quadratic."),
    Finding("Noisy gradients make several local steps worth while, as the theorem's noise term d/(K T) says.",
            "theorem 4.1", judge_noise, name="noise", rests_on=EXACT, context=_TUNED),
    Finding("With every unknown constant set to one, the shape of Theorem 4.1 exceeds the exact rounds.",
            "theorem 4.1", judge_shape, name="shape", rests_on=EXACT),
    Finding("Replicas started in the stationary law follow the exact law over 20 rounds of T = 10.",
            "theorem 4.1", judge_replicas, name="replicas", rests_on=REPLICAS),
]
