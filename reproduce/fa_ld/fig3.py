"""FA-LD figures 3(a) to 3(e): W2 against rounds by step size, with all clients and with some."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory

from .. import plot
from ..figure import ByScale, Drawing, Panel, Parameter, Tables, settings
from ..tables import among, groups
from ..tabulate import tabulate
from . import fig3_claims as claims, shared as sim

SCHEMES = {"full": "full participation", "I": "scheme I (with replacement)",
           "II": "scheme II (without replacement)"}
COLOURS: dict[Any, str] = {"full": "#000000", "I": plot.COLOURS[1], "II": plot.COLOURS[0]}
CURVES, BIAS = (2e-4, 1e-1), (1e-9, 1e-1)
"""Ranges of W2, the same in every partial figure, so that they can be compared."""


def _parameters(schemes: list[str], n_active: int | None) -> list[Parameter]:
    return [
        Parameter("schemes", schemes, "paper", "appendix I"),
        Parameter("n_active", n_active, "ours", "S of each panel is not printed" if n_active else
                  "all clients: full participation"),
        Parameter("step_sizes", [1e-7, 1e-6, 5e-6, 6e-6], "ours",
                  "not printed; 1e-7 as in section 6, up to near the limit of stability (6.9e-6): below "
                  "about 3.5e-6 a bias with all clients is less than what 300 replicas show without any"),
        Parameter("local_steps", 100, "paper", "appendix I: K = 100"),
        Parameter("alpha", 0.0, "ours", "not printed"),
        Parameter("rho", 0.0, "ours", "not printed; rho = 1 is drawn beside it"),
        *(item for item in sim.SIMULATION if item is not sim.STEP), sim.REPLICAS,
        Parameter("n_rounds", 200, "ours", "not printed; the smallest step size has then converged"),
        Parameter("n_simulated", ByScale(2, 50, 200), "ours", "rounds of the replicas"),
        Parameter("n_recorded", ByScale(5, 50, 80), "ours", "points of a curve"),
        Parameter("other_active", [10, 20, 30, 40], "ours", "S of the comparison of biases"),
        Parameter("small_steps", [1e-11, 1e-9], "ours", "for the limit of the bias, exact law only"),
    ]


def _algorithm(p: Any, step: float, scheme: str = "full", n_active: int | None = None,
               rho: float = 0.0) -> fs.FALD:
    """FA-LD with this panel's local steps."""
    drawn: dict[str, Any] = {} if scheme == "full" else {"S": n_active, "scheme": scheme}
    return fs.FALD.from_paper(eta=step, K=p.local_steps, rho=rho, **drawn)


def compute(items: list[Parameter], scale: str) -> Tables:
    """Tables: curves (exact, replicas), bias (stationary), bounds, panel; of all clients speed, fits too."""
    p = settings(items, scale)
    problem, full = sim.problem_of(p, p.alpha), p.schemes == ["full"]
    curves, bounds = sim.curves_and_bounds(p, [
        ({"scheme": scheme, "step_size": step}, problem,
         _algorithm(p, step, scheme, p.n_active, p.rho), number)
        for scheme in p.schemes for number, step in enumerate(p.step_sizes)], bound_at=[p.n_rounds])
    panel = {"n_active": p.n_active or p.n_clients, "floor": sim.floor_of(problem, p.n_replicas)}
    kinds = [("full", p.n_clients, rho) for rho in (0.0, 1.0)]
    if not full:
        kinds += [(scheme, n_active, rho) for scheme in p.schemes
                  for n_active in sorted({*p.other_active, p.n_active})
                  for rho in ((0.0, 1.0) if n_active == p.n_active else (0.0,))]
    sets = {"data_set": range(p.n_data_sets)}
    bias = tabulate("stationary laws", _bias, p, {**sets, ("scheme", "n_active", "rho"): kinds})
    tables = {"curves": curves, "bias": bias, "bounds": bounds, "panel": pd.DataFrame([panel])}
    return tables if not full else tables | {
        "speed": tabulate("speed", _speed, p, {**sets, "step_size": p.step_sizes}),
        "fits": tabulate("last round", _fit, p, {**sets, "step_size": p.step_sizes})}


def _bias(p: Any, data_set: int, scheme: str, n_active: int, rho: float) -> list[dict[str, float]]:
    """Stationary W2 by step size, with its limit for small ones; these at the panel's own S alone."""
    problem = sim.problem_of(p, p.alpha, data_set)
    target, own = problem.target(), scheme == "full" or n_active == p.n_active
    left_out = p.n_clients - (n_active if scheme == "II" else 1)
    inflation = 0.0 if scheme == "full" else (1.0 - rho**2) * left_out / n_active
    limit = (np.sqrt(1.0 + inflation) - 1.0) * float(np.sqrt(np.trace(target.cov)))
    return [{"step_size": step,
             "w2": theory.stationary_law(problem, _algorithm(p, step, scheme, n_active, rho)).w2(target),
             "limit": limit}
            for step in [*(p.small_steps if own else []), *p.step_sizes]]


def _speed(p: Any, data_set: int, step_size: float) -> dict[str, float]:
    """Rounds of the exact law until W2 is within a factor of two of the bias that stays."""
    problem, algorithm = sim.problem_of(p, p.alpha, data_set), _algorithm(p, step_size)
    bias = theory.stationary_law(problem, algorithm).w2(problem.target())
    return {"rounds": sim.rounds_to(problem, algorithm, 2.0 * bias, p.start)}


def _fit(p: Any, data_set: int, step_size: float) -> dict[str, float]:
    """W2 fitted to replicas of the last round: one experiment a data set."""
    seed = p.seed + 1000 * (p.step_sizes.index(step_size) + 1) + data_set
    problem = sim.problem_of(p, p.alpha, data_set)
    return {"w2": sim.fitted_w2(p, problem, _algorithm(p, step_size), p.n_rounds, seed)[-1]}


def _draw_curves(ax: Axes, tables: Tables, scheme: str) -> None:
    curves = among(tables["curves"], scheme=scheme).query("round > 0")
    steps = claims.step_sizes(tables)  # darker for smaller ones
    colours = dict(plot.shaded(steps))
    for step, one in groups(among(curves, kind="replicas"), "step_size"):
        sim.cloud(ax, one, colours[step])
    for step, line in groups(among(curves, kind="exact"), "step_size"):
        plot.exact(ax, line["round"], line["w2"], colours[step], rf"exact law, $\eta$ = {step:g}")
    plot.floor(ax, tables["panel"]["floor"].iloc[0], "300 perfect draws would show this")
    bounds = among(tables["bounds"], scheme=scheme)
    beyond = bounds.loc[~bounds["within_hypotheses"], "step_size"].unique()
    label = f"theorem {'4.7' if scheme == 'full' else '4.10'}: {bounds['bound'].min():.2g} or more"
    if bounds["vacuous"].all():
        label += ", vacuous"
    if len(beyond):
        label += ",\nnot for $\\eta$ = " + ", ".join(f"{step:g}" for step in beyond)
    ax.plot([], [], " ", label=label)
    ax.set(xlabel="communication round", ylim=(3e-6, CURVES[1]) if scheme == "full" else CURVES)


def _draw_bias(ax: Axes, tables: Tables) -> None:
    bias, n_active = tables["bias"], claims.active(tables)
    shown = bias[bias["n_active"].isin([n_active, bias["n_active"].max()])]
    for (scheme, rho), group in shown.groupby(["scheme", "rho"]):
        name = "all clients" if scheme == "full" else f"scheme {scheme}, S = {n_active}"
        table = group.pivot(index="step_size", columns="data_set", values="w2")
        colour = plot.GREY if scheme == "full" and rho else COLOURS[scheme]
        ax.fill_between(table.index, table.min(axis=1), table.max(axis=1), color=colour, alpha=0.3,
                        linewidth=0)
        ax.plot(table.index, table.median(axis=1), label=rf"{name}, $\rho$ = {rho:g}", color=colour,
                linestyle="-" if rho == 0.0 else (0, (4, 2)))
    ax.plot([], [], " ", label=f"exact law: medians and range of {bias['data_set'].nunique()} data sets\n"
                               "(a range may be narrower than the line)")
    ax.set(xlabel=r"step size $\eta$", ylabel=r"stationary $W_2$ (exact law)", title="bias that stays",
           ylim=BIAS)


def draw(tables: Tables, letter: str) -> Drawing:
    """One panel a scheme, and the bias against step size."""
    schemes = list(dict.fromkeys(tables["curves"]["scheme"]))
    drawing, (row,) = plot.panels(len(schemes) + 1, 4.9, 6.2)
    for ax, scheme in zip(row, schemes, strict=False):
        _draw_curves(ax, tables, scheme)
        ax.set_title(f"({letter}) {SCHEMES[scheme]}")
    row[0].set_ylabel(r"$W_2$ to the target" + ("" if schemes == ["full"] else
                                                " (of the law's first two moments)"))
    _draw_bias(row[-1], tables)
    for ax in row:
        ax.set(xscale="log", yscale="log")
        plot.legend_below(ax)
    return drawing


def _panel(letter: str, schemes: list[str], n_active: int | None, sentences: list[Any],
           **words: Any) -> Panel:
    items = _parameters(schemes, n_active)
    return Panel(PAPER=f"FA-LD figure 3({letter})", REPRODUCES=(f"FA-LD 3({letter})",), PARAMETERS=items,
                 CLAIMS=sentences, compute=partial(compute, items), draw=partial(draw, letter=letter),
                 **words)


FIGURES = {"fig3a": _panel(
    "a", ["full"], None, claims.FULL_CLAIMS, TITLE="W2 against rounds, all clients",
    SHOWS="Full participation (K = 100) at four step sizes: replicas and exact law; beside it the bias that "
    "stays, against the step size.", COST={"tiny": "2 s", "quick": "6 s", "paper": "40 s (estimated)"})}
FIGURES |= {f"fig3{letter}": _panel(
    letter, ["I", "II"], n_active, claims.partial_claims("" if letter == "b" else "fa_ld_fig3b"),
    TITLE=f"W2 against rounds, S = {n_active} of 50 clients",
    SHOWS=f"Partial participation with S = {n_active} (K = 100), schemes I and II, at four step sizes: "
    "replicas and exact law; beside them the bias that stays.",
    COST={"tiny": "4 s", "quick": "9 s", "paper": "about 2 min (estimated)"})
    for letter, n_active in zip("bcde", (40, 30, 20, 10), strict=True)}
