"""Shared by FA-LD's figures 3(a) to 3(e): W2 against rounds by step size and device sampling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory

from .. import plot
from ..figure import ByScale, Drawing, Parameter, Tables, note, settings
from . import shared as sim

SCHEMES = {"full": "full participation", "I": "scheme I (with replacement)",
           "II": "scheme II (without replacement)"}
SCHEME_COLOURS = {"full": "#000000", "I": plot.COLOURS[1], "II": plot.COLOURS[0]}
CURVES, BIAS = (2e-4, 1e-1), (1e-9, 1e-1)
"""Ranges of W2, the same in every partial figure, so that they can be compared."""


def parameters(schemes: list[str], n_active: int | None) -> list[Parameter]:
    """The parameters of one panel."""
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
        sim.CLIENTS, sim.DATA, sim.START, sim.GRADIENTS, sim.DATA_SEED, sim.DATA_SETS, sim.SEED,
        Parameter("n_replicas", 300, "paper", "appendix I: R = 300"),
        Parameter("n_rounds", 200, "ours", "not printed; the smallest step size has then converged"),
        Parameter("n_simulated", ByScale(2, 50, 200), "ours", "rounds of the replicas"),
        Parameter("n_recorded", ByScale(5, 50, 80), "ours", "points of a curve"),
        Parameter("other_active", [10, 20, 30, 40], "ours", "S of the comparison of biases"),
        Parameter("small_steps", [1e-11, 1e-9], "ours", "for the limit of the bias, exact law only"),
    ]


def algorithm(p: Any, step: float, scheme: str, n_active: int | None, rho: float = 0.0) -> fs.FALD:
    """FA-LD with this panel's local steps."""
    some = scheme != "full"
    return fs.FALD.from_paper(eta=step, K=p.local_steps, rho=rho, S=n_active if some else None,
                              scheme=scheme if some else None)


def compute(items: list[Parameter], scale: str) -> Tables:
    """Tables: curves (exact, replicas), bias (stationary), bounds, panel; of all clients speed, fits too."""
    p = settings(items, scale)
    problem = sim.problem_of(p, p.alpha)
    rounds, short = sim.spaced(p.n_rounds, p.n_recorded), sim.spaced(p.n_simulated, p.n_recorded)
    curves, bounds = [], []
    for scheme in p.schemes:
        for number, step in enumerate(p.step_sizes):
            chosen = algorithm(p, step, scheme, p.n_active, p.rho)
            labels = {"scheme": scheme, "step_size": step}
            curves += [sim.exact_rows(problem, chosen, rounds, p.start, **labels),
                       sim.replica_rows(problem, chosen, short, p.n_replicas, p.seed + number, p.start,
                                        **labels)]
            constants = theory.constants(problem, chosen, p.start)
            bound = theory.fa_ld.w2_bound if scheme == "full" else theory.fa_ld.w2_bound_partial
            bounds.append(sim.bound_rows(bound(constants, chosen, n_rounds=p.n_rounds, record=[p.n_rounds],
                                               variant="printed"), **labels))
    panel = {"n_active": p.n_active or p.n_clients, "floor": sim.floor_of(problem, p.n_replicas)}
    tables = {"curves": pd.concat(curves), "bias": _bias(p), "bounds": pd.concat(bounds),
              "panel": pd.DataFrame([panel])}
    return tables if p.schemes != ["full"] else tables | {"speed": _speed(p), "fits": _fits(p)}


def _data_sets(p: Any) -> list[tuple[int, fs.Quadratic]]:
    return [(number, sim.problem_of(p, p.alpha, number)) for number in range(p.n_data_sets)]


def _bias(p: Any) -> pd.DataFrame:
    """Stationary W2 by step size, scheme, S and rho on every data set, with its limit for small steps.

    At rho = 1, and for small steps, the panel's own S alone is looked at.
    """
    rows = []
    for number, problem in _data_sets(p):
        note(f"stationary laws, data set {number}")
        target = problem.target()
        spread = float(np.sqrt(np.trace(target.cov)))
        for scheme in SCHEMES if p.schemes != ["full"] else ["full"]:
            for n_active in [p.n_clients] if scheme == "full" else sorted({*p.other_active, p.n_active}):
                own = scheme == "full" or n_active == p.n_active
                for rho in (0.0, 1.0) if own else (0.0,):
                    left_out = p.n_clients - (n_active if scheme == "II" else 1)
                    inflation = 0.0 if scheme == "full" else (1.0 - rho**2) * left_out / n_active
                    for step in [*p.small_steps, *p.step_sizes] if own else p.step_sizes:
                        law = theory.stationary_law(problem, algorithm(p, step, scheme, n_active, rho))
                        rows.append({"data_set": number, "scheme": scheme, "n_active": n_active, "rho": rho,
                                     "step_size": step, "w2": law.w2(target),
                                     "limit": (np.sqrt(1.0 + inflation) - 1.0) * spread})
    return pd.DataFrame(rows)


def _speed(p: Any) -> pd.DataFrame:
    """Rounds of the exact law until W2 is within a factor of two of the bias that stays."""
    rows = []
    for number, problem in _data_sets(p):
        for step in p.step_sizes:
            chosen = algorithm(p, step, "full", None)
            bias = theory.stationary_law(problem, chosen).w2(problem.target())
            rows.append({"data_set": number, "step_size": step,
                         "rounds": sim.rounds_to(problem, chosen, 2.0 * bias, p.start)})
    return pd.DataFrame(rows)


def _fits(p: Any) -> pd.DataFrame:
    """W2 fitted to replicas of the last round, drawn from its exact law: one experiment a data set."""
    return pd.DataFrame([
        {"data_set": number, "step_size": step, "w2": sim.fitted_w2(theory.exact.sample_rounds(
            problem, algorithm(p, step, "full", None), p.n_rounds, p.n_replicas,
            seed=p.seed + 1000 * (place + 1) + number, start=p.start), problem.target())[-1]}
        for number, problem in _data_sets(p) for place, step in enumerate(p.step_sizes)])


def _shades(steps: Any) -> dict[float, Any]:
    """A colour a step size, darker for smaller ones; schemes have other colours."""
    ordered = sorted(set(steps))
    map_ = matplotlib.colormaps["viridis"]
    return {step: map_(0.05 + 0.8 * i / max(len(ordered) - 1, 1)) for i, step in enumerate(ordered)}


def _panel(ax: Axes, tables: Tables, scheme: str) -> None:
    curves = tables["curves"][lambda t: (t["scheme"] == scheme) & (t["round"] > 0)]
    colours = _shades(curves["step_size"])
    for step, one in curves[curves["kind"] == "replicas"].groupby("step_size"):
        sim.cloud(ax, one, colours[step])
    for step, line in curves[curves["kind"] == "exact"].groupby("step_size"):
        plot.exact(ax, line["round"], line["w2"], colours[step], rf"exact law, $\eta$ = {step:g}")
    plot.floor(ax, tables["panel"]["floor"].iloc[0], "300 perfect draws would show this")
    bounds = tables["bounds"][tables["bounds"]["scheme"] == scheme]
    beyond = bounds.loc[~bounds["within_hypotheses"], "step_size"].unique()
    label = f"theorem {'4.7' if scheme == 'full' else '4.10'}: {bounds['bound'].min():.2g} or more"
    if bounds["vacuous"].all():
        label += ", vacuous"
    if len(beyond):
        label += ",\nnot for $\\eta$ = " + ", ".join(f"{step:g}" for step in beyond)
    ax.plot([], [], " ", label=label)
    ax.set(xscale="log", yscale="log", xlabel="communication round")


def draw(tables: Tables, letter: str) -> Drawing:
    """One panel a scheme, and the bias against step size."""
    schemes, n_active = list(dict.fromkeys(tables["curves"]["scheme"])), active(tables)
    drawing, (row,) = plot.panels(len(schemes) + 1, 4.9, 6.2)
    for ax, scheme in zip(row, schemes, strict=False):
        _panel(ax, tables, scheme)
        ax.set(title=f"({letter}) {SCHEMES[scheme]}",
               ylim=(3e-6, CURVES[1]) if schemes == ["full"] else CURVES)
    row[0].set_ylabel(r"$W_2$ to the target" + ("" if schemes == ["full"] else
                                                " (of the law's first two moments)"))
    last = row[-1]
    bias = tables["bias"][tables["bias"]["n_active"].isin([n_active, tables["bias"]["n_active"].max()])]
    colours: Mapping[Any, str] = SCHEME_COLOURS
    for (scheme, rho), group in bias.groupby(["scheme", "rho"]):
        name = "all clients" if scheme == "full" else f"scheme {scheme}, S = {n_active}"
        table = group.pivot(index="step_size", columns="data_set", values="w2")
        style: dict[str, Any] = {"linestyle": "-" if rho == 0.0 else (0, (4, 2)),
                                 "color": plot.GREY if scheme == "full" and rho else colours[scheme]}
        last.fill_between(table.index, table.min(axis=1), table.max(axis=1), alpha=0.3, linewidth=0,
                          color=style["color"])
        last.plot(table.index, table.median(axis=1), label=rf"{name}, $\rho$ = {rho:g}", **style)
    last.plot([], [], " ", label=f"exact law: medians and range of {bias['data_set'].nunique()} data sets\n"
                                 "(a range may be narrower than the line)")
    last.set(xscale="log", yscale="log", xlabel=r"step size $\eta$", ylabel=r"stationary $W_2$ (exact law)",
             title="bias that stays", ylim=BIAS)
    for ax in row:
        sim.legend_below(ax)
    return drawing


def active(tables: Tables) -> int:
    """S of the panel."""
    return int(tables["panel"]["n_active"].iloc[0])
