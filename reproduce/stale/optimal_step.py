"""The exponents tau^(2/3) L^(-2/3) of stale SGLD's best MSE, tested with the step size optimised."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.optimize import minimize_scalar

from theory.exact.delay import stability_limit
from theory.stale import mse_step_size, optimal_constant

from .. import figure as fig, plot
from ..tables import among, groups
from ..verdicts import shares, unanimous
from . import optimal_bound, shared as sim
from .law import PLAIN, curvature, followed, law_of

TITLE = "The best MSE and step size against age, L fixed"
PAPER = "ours, for Stale gradients theorem 3"
SHOWS = ("Exact MSE with the step size optimised for every age at fixed L, and for every L at fixed age: "
         "fitted exponents beside the paper's 2/3 and 1/3; the same for figure 1's model on all data sets.")
COST = {"tiny": "1 s", "quick": "5 s", "paper": "about 2 min (estimated)"}
PARAMETERS = [
    sim.DATA, sim.BATCH,
    fig.Parameter("ages", fig.ByScale([1, 4, 16], [1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16, 32, 64]), "ours",
                  "tau; figure 1 has 1 to 20"),
    fig.Parameter("model_ages", fig.ByScale([1, 5, 10, 20], [1, 5, 10, 20], [1, 2, 5, 10, 15, 20]), "paper",
                  "section 5.1: ages of figure 1's model; a part of them below the paper's scale"),
    fig.Parameter("length", fig.ByScale(300, 1500, 8000), "ours", "L, the same for all ages"),
    sim.START,
    fig.Parameter("scan_ages", fig.ByScale([1], [1, 4, 16], [1, 4, 16]), "ours",
                  "ages of the curves against h"),
    fig.Parameter("n_scan", fig.ByScale(5, 25, 25), "ours", "step sizes of each such curve"),
    fig.Parameter("lengths",
                  fig.ByScale([100, 200, 400], [400, 800, 1600, 3200], [1000, 2000, 4000, 8000, 16000]),
                  "ours", "L, for the exponents in L"),
    fig.Parameter("length_age", fig.ByScale(2, 8, 8), "ours", "their age"),
    sim.WORKERS,
    fig.Parameter("per_worker", fig.ByScale(50, 250, 1000), "ours", "iterations per worker, with age W - 1"),
    fig.Parameter("n_replicas", fig.ByScale(256, 1024, 16384), "ours", "at the best step sizes"),
    sim.N_SETS, sim.DATA_SEED, sim.SEED]
SUMS, POSTERIOR = "batch sums", "posterior"
OLD = 4.0
"""So many times 1/2 + S/(2a) an age dominates it."""


def compute(scale: str) -> fig.Tables:
    """Tables: sets, bound, shared, ages, lengths, slopes, models, model_slopes, workers, scan, replicas."""
    p = fig.settings(PARAMETERS, scale)
    best = _by_age(PLAIN, p.ages, p.length)
    ages, steps = pd.DataFrame(best), [(row["age"], row["step_size"]) for row in best]
    lengths = pd.DataFrame([_best(PLAIN, p.length_age, length) for length in p.lengths])
    models = pd.DataFrame([{"model": model, "data_set": k, **row}
                           for model, grad_scale in ((SUMS, "batch_sum"), (POSTERIOR, "unbiased"))
                           for k, problem in enumerate(sim.data_sets(p, grad_scale))
                           for row in _by_age(problem, p.model_ages, p.length)])
    return optimal_bound.tables(p) | {
            "sets": sim.sets_table(sim.data_sets(p)), "ages": ages, "lengths": lengths,
            "slopes": _slopes(ages, lengths), "models": models, "model_slopes": _model_slopes(models),
            "workers": pd.DataFrame([_by_workers(n, n * p.per_worker) for n in p.workers]),
            "scan": pd.DataFrame([row for tau, h in steps for row in _scan(p, tau, h)]),
            "replicas": pd.DataFrame([sim.plain_row(p, tau, h, age=tau) for tau, h in steps])}


def _guess(problem: Any, tau: int, length: int) -> tuple[float, float]:
    """h that balances the leading terms, bias h (tau + 1/2 + S/(2a)) against variance; and 1/2 + S/(2a)."""
    a, noise = curvature(problem), getattr(problem, "gradient_variance", 0.0)
    age = tau + 0.5 + 0.5 * noise / a
    constant = optimal_constant(a, float(followed(problem).mean[0]))
    h = mse_step_size(length, max(age, 1.0), constant) * max(1.0, age ** (-2.0 / 3.0))
    return h, 0.5 + 0.5 * noise / a


def _best(problem: Any, tau: int, length: int, factor: float = 1.0) -> dict[str, Any]:
    """Best step size and its MSE, within a factor 3 of the guess times `factor`."""
    fig.note(f"best step size at tau = {tau}, L = {length}")
    width, start = 3.0, factor * _guess(problem, tau, length)[0]
    limit = stability_limit(tau) / curvature(problem)
    least = minimize_scalar(lambda x: float(np.log(law_of(problem, tau, length, float(np.exp(x))).mse[-1])),
                            bounds=(np.log(start / width), np.log(min(start * width, 0.98 * limit))),
                            method="bounded", options={"xatol": 2e-3})
    h = float(np.exp(least.x))
    if abs(np.log(h / start)) > 0.95 * np.log(width):
        raise ValueError(f"width={width:g} must be larger: step size {h:.4g} is at the edge of the search")
    return {"age": tau, "iteration": length, "step_size": h, "mse": float(np.exp(least.fun))}


def _by_age(problem: Any, ages: list[int], length: int) -> list[dict[str, Any]]:
    """Best step size and MSE of one problem for each age; `noise_age` acts like an additional age."""
    rows, factor = [], 1.0
    for tau in ages:
        best, (guess, noise_age) = _best(problem, tau, length, factor), _guess(problem, tau, length)
        factor = best["step_size"] / guess  # the next age's is not far from it
        rows.append(best | {"noise_age": noise_age})
    return rows


def _by_workers(n_workers: int, length: int) -> dict[str, Any]:
    """Best MSE of W workers in turn, age W - 1 and L = W Lbar, for the plain target."""
    best = _best(PLAIN, n_workers - 1, length)
    law = law_of(PLAIN, best.pop("age"), length, best["step_size"])
    return {"workers": n_workers, **best, "variance": float(law.variance[-1])}


def _scan(p: Any, tau: int, best: float) -> list[dict[str, Any]]:
    """MSE against the step size for the plain target, around its best, at some of the ages."""
    steps = best * np.geomspace(1.0 / 6.0, 6.0, p.n_scan if tau in p.scan_ages else 0)
    return [{"age": tau, "step_size": h, "mse": float(law_of(PLAIN, tau, p.length, h).mse[-1])}
            for h in steps[steps < 0.98 * stability_limit(tau)].tolist()]


def _slopes(ages: pd.DataFrame, lengths: pd.DataFrame) -> pd.DataFrame:
    """Fitted log-log slopes of the plain target with intervals."""
    return pd.DataFrame([
        sim.slope_row(table[x], table[of], theory / 3.0, of=of, against=against)
        for against, x, table, of, theory in (
            ("tau", "age", ages, "mse", 2.0), ("tau", "age", ages, "step_size", -2.0),
            ("L", "iteration", lengths, "mse", -2.0), ("L", "iteration", lengths, "step_size", -1.0))])


def _model_slopes(models: pd.DataFrame) -> pd.DataFrame:
    """Those of figure 1's model on every data set, in tau and in tau + 1/2 + S/(2a)."""
    return pd.DataFrame([
        sim.slope_row(one["age"] + shift, one[of], theory / 3.0, model=model, data_set=k, of=of,
                      against=against, noise_age=noise_age)
        for (model, k, noise_age), one in groups(models, ["model", "data_set", "noise_age"])
        for against, shift in (("tau", 0.0), ("tau + noise", noise_age))
        for of, theory in (("mse", 2.0), ("step_size", -2.0))])


def draw(tables: fig.Tables) -> fig.Drawing:
    """MSE against h; best MSE and best h against tau; exponents in L."""
    drawing, ((first, second), (third, fourth)) = plot.panels(2, 6.0, 5.4, n_rows=2,
                                                             subplot_kw={"xscale": "log", "yscale": "log"})
    _draw_scan(first, tables)
    _draw_ages(second, tables, "mse", "2/3", ylabel="best MSE / best MSE at the first age",
               title="best MSE: slope 2/3 in theory")
    replicas = tables["replicas"]
    sim.draw_replicas(second, replicas["age"], replicas, "replicas_mse", plot.COLOURS[0],
                      f"N(0, 1), {plot.BAND}", replicas["mse"].iloc[0])
    _draw_ages(third, tables, "step_size", "-2/3", ylabel="best step h / best h at the first age",
               title="best step: slope -2/3 in theory")
    _draw_lengths(fourth, tables)
    for ax, n_columns in ((first, 2), (second, 1), (third, 1), (fourth, 2)):
        plot.legend_below(ax, n_columns)
    return drawing


def _draw_scan(ax: Axes, tables: fig.Tables) -> None:
    ages, scan = tables["ages"].set_index("age"), tables["scan"]
    length = int(ages["iteration"].iloc[0])
    for (tau, one), colour in plot.shaded(groups(scan, "age")):
        plot.exact(ax, one["step_size"], one["mse"], colour, rf"exact law, $\tau$ = {tau}")
        ax.plot(ages.loc[tau, "step_size"], ages.loc[tau, "mse"], "o", color=colour, markersize=7)
        ax.axvline(mse_step_size(length, tau), color=colour, linestyle=":", linewidth=1.1)
    ax.plot([], [], color="#000000", linestyle=":", linewidth=1.1,
            label=r"rule $h = \tau^{-2/3} L^{-1/3}$, by colour")
    ax.plot([], [], "o", color="#000000", markersize=7, label="the least, by colour")
    ax.set(xlabel="step size h", ylabel=sim.OF_AVERAGES["mse"],
           title=f"target N(0, 1), L = {length}: a best step for each age",
           ylim=(0.7 * scan["mse"].min(), 8.0 * scan["mse"].median()))


def _draw_ages(ax: Axes, tables: fig.Tables, name: str, exponent: str, **axes: str) -> None:
    plain, slope = tables["ages"], among(tables["slopes"], of=name, against="tau").iloc[0]
    plot.exact(ax, plain["age"], plain[name] / plain[name].iloc[0], plot.COLOURS[0],
               f"exact law, N(0, 1), exact gradients: slope {slope['slope']:.2f}", marker="o", markersize=4)
    for (model, one), colour in zip(groups(tables["models"], "model"), plot.COLOURS[1:], strict=False):
        each = sim.by_set(one, name, "age")
        slopes = among(tables["model_slopes"], model=model, of=name, against="tau")["slope"]
        sim.draw_sets(ax, each.div(each.iloc[:, 0], axis=0), colour,
                      f"exact law, figure 1's model, {model}: slopes {sim.span(slopes)}")
    x = plain["age"].to_numpy(dtype=float)
    ax.plot(x, (x / x[0]) ** slope["paper"], color="#000000", linestyle=":", linewidth=1.1,
            label=rf"$\tau^{{{exponent}}}$")
    ax.set(xlabel=r"age $\tau$ of the gradients", **axes)


def _draw_lengths(ax: Axes, tables: fig.Tables) -> None:
    table = tables["lengths"]
    x = table["iteration"].to_numpy(dtype=float)
    for name, theory, text, marker in (("mse", "-2/3", "best MSE", "o"),
                                       ("step_size", "-1/3", "best step h", "s")):
        slope = among(tables["slopes"], of=name, against="L").iloc[0]
        plot.exact(ax, x, table[name] / table[name].iloc[0], plot.COLOURS[0],
                   f"exact law, {text}: slope {slope['slope']:.2f}", marker=marker, markersize=5)
        ax.plot(x, (x / x[0]) ** slope["paper"], color="#000000", linestyle=":", marker=marker, markersize=3,
                linewidth=1.1, label=f"slope {theory}")
    ticks, levels = table["iteration"].tolist(), [1.0, 0.7, 0.5, 0.3, 0.2]
    ax.set(xlabel="iterations L", ylabel="relative to the smallest L",
           title=rf"target N(0, 1), $\tau$ = {table['age'].iloc[0]}: exponents in L", xticks=ticks,
           xticklabels=ticks, yticks=levels, yticklabels=[f"{level:g}" for level in levels])
    ax.minorticks_off()


def judge_plain(tables: fig.Tables, of: str) -> tuple[str, str, str]:
    """The best exact MSE or step size against tau, and against L."""
    age, length = (among(tables["slopes"], of=of, against=name).iloc[0] for name in ("tau", "L"))
    near = sim.is_near(age) and sim.is_near(length)
    return (fig.PASS if near else fig.FAIL), (
        f"Exact, on N(0, 1): slope {sim.slope_text(age)} in tau against {age['paper']:.3f}, "
        f"{sim.slope_text(length)} in L against {length['paper']:.3f}; "
        + ("both within 1/12." if near else "not both within 1/12, at ages and L of ours.")), (
        "; ".join(f"the line's interval in {row['against']} does not contain the exponent, which is "
                  "approached only at larger L" for row in (age, length)
                  if near and not row["low"] <= row["paper"] <= row["high"]))


def judge_in_tau(tables: fig.Tables) -> tuple[str, str]:
    """Both exponents in tau on figure 1's model with batch sums, at ages beside which its noise is small."""
    table = among(tables["models"], model=SUMS)
    slopes = _model_slopes(table[table["age"] >= OLD * table["noise_age"]])
    mse, step = (among(slopes, of=of, against="tau") for of in ("mse", "step_size"))
    good = sim.is_near(mse).to_numpy() & sim.is_near(step).to_numpy()
    theirs = among(tables["models"], model=POSTERIOR)["noise_age"]
    return unanimous(good), (
        f"Exact slopes in tau are {sim.span(mse['slope'], 3)} of the best MSE and "
        f"{sim.span(step['slope'], 3)} of the best step, within 1/12 of 2/3 and -2/3 {shares(good)}. "
        f"1/2 + S/(2a) is {sim.span(table['noise_age'])}; with gradients scaled by N/J, as equation (2) has "
        f"it, it is {sim.span(theirs, 1)}, beside ages up to {table['age'].max():g}.")


def judge_shifted(tables: fig.Tables) -> tuple[str, str]:
    """The exponent of the MSE in tau + 1/2 + S/(2a), for both readings of figure 1's minibatches."""
    slopes = dict(groups(among(tables["model_slopes"], of="mse", against="tau + noise"), "model"))
    good = np.all([sim.is_near(one) for one in slopes.values()], axis=0)
    return unanimous(good), (
        "Exact slopes of the best MSE in tau + 1/2 + S/(2a) are "
        + " and ".join(f"{sim.span(one['slope'], 3)} ({model})" for model, one in slopes.items())
        + f"; both within 1/12 of 2/3 {shares(good)}.")


def judge_workers(tables: fig.Tables) -> tuple[str, str]:
    """Best MSE with age W - 1 and L = W Lbar: nearer to no speedup than to that of fresh gradients?"""
    table = tables["workers"]
    ratio, half = table["mse"] / table["mse"].iloc[0], int(table["workers"].iloc[-1]) ** (1.0 / 3.0)
    same = 1.0 / half < ratio.min() and ratio.max() < half
    return (fig.PASS if same else fig.FAIL), (
        "Best exact MSE with age W - 1 and L = W Lbar: "
        + ", ".join(f"{row.mse:.3g} (W = {row.workers})" for row in table.itertuples())
        + f": {sim.span(ratio)} times that of one worker. Fresh gradients would gain W^(2/3) = "
        f"{half**2:.1f}; "
        + (f"less than half of that, in logarithms, is {half:.2f}." if same else
           f"half of it, in logarithms, is {half:.2f}, on a target and at an Lbar of ours."))


CLAIMS = [
    *optimal_bound.CLAIMS,
    *(fig.Finding(f"On N(0, 1) with exact gradients the {text} of the exact law has these exponents, too.",
                  "section 5.1", partial(judge_plain, of=of), f"exact_{of}", fig.EXACT,
                  "An exponent is accepted when no other multiple of 1/6 is nearer; ages and L are ours.")
      for of, text in (("mse", "best MSE"), ("step_size", "best step size"))),
    fig.Finding("In figure 1's model with batch sums the best MSE and the best step size have the exponents "
                f"2/3 and -2/3 in tau, at ages of {OLD:g} times 1/2 + S/(2a) or more.", "section 5.1",
                judge_in_tau, "in_figure_1", fig.DATA_SETS, "Section 4 derives them where the terms with tau "
                "of Theorem 3 dominate the integrator's; minibatch noise of variance S adds S/(2a) to the "
                "age. L is ours. Figure stale_fig1 has the paper's sentence, and both readings of its "
                "minibatches."),
    fig.Finding("In figure 1's model, read either way, the best MSE has the exponent 2/3 in tau + 1/2 + "
                "S/(2a).", "theorem 3", judge_shifted, "noise_age", fig.DATA_SETS, "Minibatch noise of "
                "variance S acts like an additional age S/(2a), and 1/2 is the Euler step's own."),
    fig.Finding("On N(0, 1) the best exact MSE of W workers, age W - 1, is nearer to no speedup than to that "
                "of fresh gradients.", "section 4", judge_workers, "exact_workers", fig.EXACT,
                "Lbar is ours."),
    sim.replicas_follow("Replicas follow the exact law at the best step sizes.")]
