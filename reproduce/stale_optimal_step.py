"""The exponents tau^(2/3) L^(-2/3) of stale SGLD's best MSE, tested with the step size optimised."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from theory.stale import mse_step_size

from . import _stale as sim
from . import _stale_optimum as work
from . import plot
from ._stale_optimum import PLAIN, POSTERIOR, SUMS
from .figure import FAIL, PASS, ByScale, Claim, Drawing, Parameter, Tables, settings

TITLE = "Stale SGLD: the best MSE and step size against age, L fixed"
PAPER = "ours, for Stale gradients theorem 3"
SHOWS = ("Exact MSE with the step size optimised for every age at fixed L, and for every L at fixed age: "
         "fitted exponents beside the paper's 2/3 and 1/3; the same for figure 1's model.")
COST = {"tiny": "2 s", "quick": "14 s", "paper": "about 3 min (estimated)"}
PARAMETERS = [
    sim.DATA, sim.BATCH,
    Parameter("ages", ByScale([1, 4, 16], [1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16, 32, 64]), "ours",
              "tau; figure 1 has 1 to 20"),
    Parameter("model_ages", ByScale([1, 5, 20], [1, 5, 10, 20], [1, 2, 5, 10, 15, 20]), "paper",
              "section 5.1: ages of figure 1's model; a part of them below the paper's scale"),
    Parameter("length", ByScale(300, 1500, 8000), "ours", "L, the same for all ages"),
    Parameter("start", "a draw from the target", "ours",
              "theta_0 is not printed; at the mode the best step of a short run would be zero, as theta^2 of "
              "the mode itself is nearly right"),
    Parameter("scan_ages", ByScale([1], [1, 4, 16], [1, 4, 16]), "ours", "ages of the curves against h"),
    Parameter("n_scan", ByScale(5, 11, 13), "ours", "step sizes of each such curve"),
    Parameter("lengths", ByScale([100, 200, 400], [400, 800, 1600, 3200], [1000, 2000, 4000, 8000, 16000]),
              "ours", "L, for the exponents in L"),
    Parameter("length_age", ByScale(2, 8, 8), "ours", "their age"),
    sim.WORKERS,
    Parameter("per_worker", ByScale(50, 250, 1000), "ours", "iterations per worker, with age W - 1"),
    Parameter("n_replicas", ByScale(256, 1024, 16384), "ours", "at the best step sizes"),
    sim.DATA_SEED, sim.SEED,
]
NEAR = 1.0 / 12.0
"""An exponent is accepted when no other multiple of 1/6 is nearer."""


def compute(scale: str) -> Tables:
    """Tables: ages, lengths, slopes, workers, scan, replicas."""
    p = settings(PARAMETERS, scale)
    ages, lengths = work.by_age(p), work.by_length(p)
    return {"ages": ages, "lengths": lengths, "slopes": work.slopes(ages, lengths),
            "workers": work.by_workers(p), "scan": work.scan(p, ages), "replicas": work.replicas(p, ages)}


def draw(tables: Tables) -> Drawing:
    """MSE against h; best MSE and best h against tau; best MSE with W workers."""
    drawing, ((first, second), (third, fourth)) = plot.panels(2, 5.6, 4.2, n_rows=2)
    _scan(first, tables)
    _against_age(second, tables, "mse", "best MSE / best MSE at the first age",
                 "best MSE: slope 2/3 in theory")
    _against_age(third, tables, "step_size", "best step h / best h at the first age",
                 "best step: slope -2/3 in theory")
    _lengths(fourth, tables)
    return drawing


def _scan(ax: Axes, tables: Tables) -> None:
    ages = tables["ages"][tables["ages"]["model"] == PLAIN].set_index("age")
    length = int(ages["iteration"].iloc[0])
    for number, (tau, one) in enumerate(sim.groups(tables["scan"], "age")):
        colour = plot.COLOURS[number]
        plot.exact(ax, one["step_size"], one["mse"], colour, rf"exact law, $\tau$ = {tau}")
        ax.plot(ages.loc[tau, "step_size"], ages.loc[tau, "mse"], "o", color=colour, markersize=7)
        ax.axvline(mse_step_size(length, tau), color=colour, linestyle=":", linewidth=1.1)
    ax.plot([], [], color="#000000", linestyle=":", linewidth=1.1,
            label=r"rule $h = \tau^{-2/3} L^{-1/3}$, by colour")
    ax.set(xscale="log", yscale="log", xlabel="step size h", ylabel=r"MSE of the average of $\theta^2$",
           title=f"target N(0, 1), L = {length}: a best step for each age")
    ax.set_ylim(0.6 * float(tables["scan"]["mse"].min()), 8.0 * float(tables["scan"]["mse"].median()))
    ax.legend(loc="lower left", fontsize=8)


def _against_age(ax: Axes, tables: Tables, name: str, label: str, title: str) -> None:
    slopes = tables["slopes"]
    for number, (model, one) in enumerate(sim.groups(tables["ages"], "model")):
        fit = _slope(slopes, model, name, "tau")
        plot.exact(ax, one["age"], one[name] / one[name].iloc[0], plot.COLOURS[number],
                   f"exact law, {model}: slope {fit['slope']:.2f}", marker="o", markersize=4)
    seen = tables["replicas"]
    if name == "mse":
        first = float(seen["mse"].iloc[0])
        ax.errorbar(seen["age"], seen["replicas_mse"] / first,
                    [(seen["replicas_mse"] - seen["replicas_mse_low"]) / first,
                     (seen["replicas_mse_high"] - seen["replicas_mse"]) / first], fmt="x", color="#000000",
                    markersize=6, capsize=3, zorder=5, label=plot.BAND)
    x = np.array([float(seen["age"].min()), float(seen["age"].max())])
    ax.plot(x, (x / x[0]) ** (2.0 / 3.0 if name == "mse" else -2.0 / 3.0), color="#000000", linestyle=":",
            linewidth=1.1, label=r"$\tau^{2/3}$" if name == "mse" else r"$\tau^{-2/3}$")
    ax.set(xscale="log", yscale="log", xlabel=r"age $\tau$ of the gradients", ylabel=label, title=title)
    low, high = ax.get_ylim()
    ax.set_ylim(*((low, high * 6.0) if name == "mse" else (low / 6.0, high)))
    ax.legend(loc="upper left" if name == "mse" else "lower left", fontsize=8)


def _lengths(ax: Axes, tables: Tables) -> None:
    table = tables["lengths"]
    for number, (name, theory, text) in enumerate((("mse", -2 / 3, "best MSE"),
                                                   ("step_size", -1 / 3, "best step h"))):
        fit = _slope(tables["slopes"], PLAIN, name, "L")
        x, y = table["iteration"].to_numpy(dtype=float), table[name].to_numpy()
        plot.exact(ax, x, y / y[0], plot.COLOURS[number], f"exact law, {text}: slope {fit['slope']:.2f}",
                   marker="o", markersize=4)
        ax.plot(x, (x / x[0]) ** theory, color=plot.COLOURS[number], linestyle=":", linewidth=1.1,
                label=f"slope {'-2/3' if name == 'mse' else '-1/3'}")
    ticks = [int(value) for value in table["iteration"]]
    ax.set(xscale="log", yscale="log", xlabel="iterations L", ylabel="relative to the smallest L",
           title=rf"target N(0, 1), $\tau$ = {table['age'].iloc[0]}: exponents in L")
    ax.set_xticks(ticks, [str(value) for value in ticks])
    ax.set_yticks([1.0, 0.7, 0.5, 0.3, 0.2], ["1", "0.7", "0.5", "0.3", "0.2"])
    ax.minorticks_off()
    ax.legend(loc="lower left", fontsize=8)


def _slope(slopes: pd.DataFrame, model: str, of: str, against: str) -> pd.Series:
    keep = (slopes["model"] == model) & (slopes["of"] == of) & (slopes["against"] == against)
    return slopes[keep].iloc[0]


def _accept(*rows: pd.Series) -> str:
    return PASS if all(abs(row["slope"] - row["paper"]) < NEAR for row in rows) else FAIL


def judge_mse(tables: Tables) -> tuple[str, str]:
    """Best MSE against tau, and against L."""
    age, length = (_slope(tables["slopes"], PLAIN, "mse", name) for name in ("tau", "L"))
    shifted = _slope(tables["slopes"], PLAIN, "mse", "tau + 1/2 + S/(2a)")
    return _accept(age, length), (
        f"Target N(0, 1), exact: slope {sim.slope_text(age)} in tau against 2/3, {sim.slope_text(length)} "
        f"in L against -2/3; off by less than 1/12 is accepted. Against tau + 1/2, where 1/2 is the Euler "
        f"step's own, it is {shifted['slope']:.3f}.")


def judge_step(tables: Tables) -> tuple[str, str]:
    """Best step size against tau, and against L."""
    age, length = (_slope(tables["slopes"], PLAIN, "step_size", name) for name in ("tau", "L"))
    one = tables["ages"][tables["ages"]["model"] == PLAIN]
    scaled = one["step_size"] * one["age"] ** (2 / 3) * one["iteration"] ** (1 / 3)
    return _accept(age, length), (
        f"Target N(0, 1), exact: slope {sim.slope_text(age)} in tau against -2/3, {sim.slope_text(length)} "
        f"in L against -1/3; off by less than 1/12 is accepted. C = h tau^(2/3) L^(1/3) is "
        f"{scaled.min():.2f} to {scaled.max():.2f}, where leading terms give 1.")


def judge_model(tables: Tables, model: str) -> tuple[str, str]:
    """The same exponents for figure 1's model."""
    mse, step = (_slope(tables["slopes"], model, name, "tau") for name in ("mse", "step_size"))
    shifted = _slope(tables["slopes"], model, "mse", "tau + 1/2 + S/(2a)")
    one = tables["ages"][tables["ages"]["model"] == model]
    return _accept(mse, step), (
        f"Exact slopes in tau: best MSE {sim.slope_text(mse)}, best step {sim.slope_text(step)}. Minibatch "
        f"noise of variance S acts like an additional age S/(2a), so that tau + "
        f"{one['noise_age'].iloc[0]:.1f} counts; in that the MSE has slope {shifted['slope']:.3f}.")


def judge_sums(tables: Tables) -> tuple[str, str]:
    """With batch sums."""
    return judge_model(tables, SUMS)


def judge_posterior(tables: Tables) -> tuple[str, str]:
    """The posterior itself."""
    return judge_model(tables, POSTERIOR)


def judge_workers(tables: Tables) -> tuple[str, str]:
    """Best MSE with age W - 1 and L = W Lbar."""
    table = tables["workers"]
    ratio = table["mse"] / table["mse"].iloc[0]
    first, last = table["variance"].iloc[0], table["variance"].iloc[-1]
    return (PASS if 0.9 < float(ratio.min()) and float(ratio.max()) < 2.0 else FAIL), (
        "Best exact MSE with age W - 1 and L = W Lbar: "
        + ", ".join(f"{row.mse:.3g} (W = {row.workers})" for row in table.itertuples())
        + f". More workers never help, and cost a factor of at most {ratio.max():.2f}. Nor does "
        f"the variance fall at these step sizes, which fall with W: it goes from {first:.3g} to {last:.3g}.")


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """Replicas at the best step sizes."""
    table = tables["replicas"]
    score, limit = sim.largest_score(table)
    return (PASS if score <= limit else FAIL), (
        f"Mean and variance of the averages at the best steps of {len(table)} ages are at most {score:.1f} "
        f"standard errors off the exact law; {limit:.1f} would be too many (false-alarm level 0.001).")


CLAIMS = [
    Claim("The optimal MSE is proportional to tau^(2/3) L^(-2/3).", "sections 4 and 5.1", judge_mse),
    Claim("The optimal step size is h = C tau^(-2/3) L^(-1/3).", "section 5.1", judge_step),
    Claim("Both, in figure 1's model read with batch sums (exponents in tau).", "section 5.1", judge_sums),
    Claim("Both, in figure 1's model: the posterior of 1000 data with minibatches of 10 (exponents in tau).",
          "section 5.1", judge_posterior),
    Claim("As tau is about W, W cancels in the optimal MSE: the same as standard SG-MCMC, no speedup.",
          "section 4", judge_workers),
    Claim("ours: replicas agree with the exact law at the best step sizes.", "ours", judge_replicas),
]
