"""FA-HMC's figures 1(a), (b) and (d): marginal error against the step size, beside FA-LD."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import plot
from ..figure import ByScale, Drawing, Parameter, Tables, note, settings
from . import errors, logistic, shared as sim, short as checks

HMC, LD = "FA-HMC", "FA-LD"
COLOUR = {LD: plot.COLOURS[0], HMC: plot.COLOURS[1]}
CITED = "the data are cited (Mangoubi and Vishnoi, 2018), not printed, and not used here"
QUARTER = np.pi / 3.0


def parameters(dim: Any, n_data: Any, noise: float, weak_norm: float, dim_reason: str, dim_origin: str,
               short_rounds: ByScale) -> list[Parameter]:
    """Of one panel."""
    return [
        Parameter("dim", dim, dim_origin, dim_reason),
        Parameter("n_data", n_data, "paper" if n_data == 1000 else "ours",
                  "section 5.1: 1000" if n_data == 1000 else "as many as dimensions, like the paper's 1000"),
        Parameter("n_clients", 20, "paper", "section 5.1: 20 nodes of equal size"),
        Parameter("noise", noise, "paper", "section 5.1: standard deviation per coordinate, of a gradient "
                  "of the client's energy divided by its weight"),
        Parameter("local_steps", 10, "paper", "section 5.1: T = 10"),
        Parameter("shared_noise", 1.0, "paper", "section 5: the same momentum on all clients"),
        Parameter("iterations", 20_000_000, "paper", "section 5.1: of the surrogate's chains; the second "
                  "half is kept, one average a round"),
        Parameter("step_sizes", ByScale([0.01, 0.05, 0.2], [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4],
                                        [0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4]),
                  "ours", "the grid of eta is not printed; unstable step sizes are left out"),
        Parameter("leapfrogs", ByScale([3, 20], [2, 4, 8, 16], [2, 3, 4, 6, 8, 16, 24, 40]), "ours",
                  "K tried for eta >= 0.02, where the paper tunes it; below, K = floor(pi/(3 eta)) as "
                  "printed"),
        Parameter("norms", {"informative rows": 1.0, "weak rows": weak_norm}, "ours",
                  "norm of a row of features: " + CITED),
        Parameter("prior_variance", 1.0, "ours", CITED + "; with 1 a trajectory of pi/3 suits the prior"),
        Parameter("n_sets", 12, "ours", "data sets of either law, each judged by itself"),
        Parameter("data_seed", 0, "ours", "of the first data set; the others follow"),
        Parameter("short_cases", ByScale([[0.1, 1], [0.1, 4]], [[0.1, 1], [0.1, 4]],
                                         [[0.02, 1], [0.1, 1], [0.02, 16], [0.1, 4]]), "ours",
                  "step sizes and K of simulated chains"),
        Parameter("short_rounds", short_rounds, "ours", "of the simulated chains, half of them kept"),
        Parameter("n_chains", ByScale(16, 16, 64), "ours",
                  "simulated chains, pooled: many short ones for one long"),
        Parameter("reference_chains", ByScale(30, 50, 400), "ours", "Metropolis-adjusted chains"),
        Parameter("reference_draws", ByScale(40, 60, 250), "ours", "of each of them"),
        Parameter("seed", 1, "ours", "of simulation, surrogate and reference"),
    ]


def compute(given: list[Parameter], scale: str) -> Tables:
    """Tables: long (the best K of each step size), short (simulated), setting."""
    p = settings(given, scale)
    long, short, facts = [], [], []
    for law, norm in p.norms.items():
        for data in range(p.n_sets):
            note(f"{law}, data set {data + 1} of {p.n_sets}")
            posterior = logistic.Posterior(p, p.data_seed + data, norm, p.dim, p.n_data)
            long += [{"law": law, "data": data, **row} for row in _long(p, posterior)]
            cases = {f"{law}: $\\eta$ = {step:g}, K = {k}":
                     (fs.FAHMC(step, k, p.local_steps, p.shared_noise), p.short_rounds)
                     for step, k in p.short_cases}
            short += [{"data": data, **row}
                      for row in checks.runs(p, posterior, cases, p.seed + 1000 * data)]
            values = np.linalg.eigvalsh(posterior.surrogate.mean_hessian)
            facts.append({"law": law, "data": data, "dim": p.dim, "smallest": values[0],
                          "largest": values[-1], "spread": posterior.unit})
    return {"long": pd.DataFrame(long), "short": pd.DataFrame(short), "setting": pd.DataFrame(facts)}


def _long(p: Any, posterior: logistic.Posterior) -> list[dict[str, Any]]:
    """Expected marginal error of the surrogate's chains at the best K of each step size."""
    rows = []
    for step in p.step_sizes:
        counts = [int(QUARTER / step)] if step < 0.02 else p.leapfrogs
        for name, tried in ((LD, [1]), (HMC, counts)):
            found = [(expected(p, posterior, step, k), k) for k in tried]
            (error, stationary), k = min(found)
            if np.isfinite(error):
                rows.append({"algorithm": name, "step_size": step, "K": k, "error": error,
                             "stationary": stationary})
    return rows


def expected(p: Any, posterior: logistic.Posterior, step: float, k: int) -> tuple[float, float]:
    """Marginal errors of a chain of the paper's length and of the stationary law; infinite if unstable."""
    chain = logistic.Chain(posterior.rounds.map(fs.FAHMC(step, k, p.local_steps, p.shared_noise)))
    if not chain.stable:
        return np.inf, np.inf
    kept = p.iterations // p.local_steps // 2
    return (float(errors.error_of_chain(chain, posterior.target, [kept])[0]) / posterior.unit,
            errors.error_of_law(chain.law, posterior.target) / posterior.unit)


def dimensions(p: Any) -> pd.DataFrame:
    """The surrogate's error at one step size and K in several dimensions, with as many data."""
    norm, (step, k) = next(iter(p.norms.values())), p.dims_case
    return pd.DataFrame([
        {"data": data, "dim": dim,
         "error": expected(p, logistic.Posterior(p, p.data_seed + data, norm, dim, dim), step, k)[0]}
        for dim in p.dims for data in range(p.n_sets)])


def draw(tables: Tables, letter: str) -> Drawing:
    """One panel a law of the data: long chains of the surrogate; and the simulated short ones."""
    laws = list(dict.fromkeys(tables["long"]["law"]))
    drawing, (axes,) = plot.panels(len(laws) + 1, 5.1, 5.2)
    for ax, law in zip(axes, laws, strict=False):
        _long_panel(ax, tables, law, letter)
    checks.draw(axes[-1], tables["short"])
    axes[0].set_ylabel("marginal error / posterior spread")
    return drawing


def _long_panel(ax: Axes, tables: Tables, law: str, letter: str) -> None:
    long = tables["long"][tables["long"]["law"] == law]
    facts = tables["setting"][tables["setting"]["law"] == law]
    lowest = float(long["error"].min())
    for name, colour in COLOUR.items():
        one = long[long["algorithm"] == name].groupby("step_size")
        error, bias = one["error"].agg(["min", "median", "max"]), one["stationary"].median()
        ax.fill_between(error.index, error["min"], error["max"], color=colour, alpha=0.25, linewidth=0,
                        label=f"{name}: all {one.size().max()} data sets")
        ax.plot(error.index, error["median"], color=colour, marker="o", markersize=4,
                label=f"{name}: median")
        seen = bias[bias > 0.1 * error["median"]]
        lowest = min(lowest, float(seen.min()))
        ax.plot(seen.index, seen, color=colour, linestyle="--",
                label=f"{name}: bias alone, where above a tenth")
    shown = long[long["algorithm"] == HMC].groupby("step_size")["K"].median()
    for eta, steps in zip(shown.index.to_numpy(float), shown, strict=True):
        ax.text(eta, 0.015, f"K={steps:.0f}", transform=ax.get_xaxis_transform(), fontsize=7.5,
                ha="center", color=COLOUR[HMC])
    ax.set(xscale="log", yscale="log", xlabel=r"step size $\eta$",
           title=f"({letter}) {law}: curvature {facts['smallest'].min():.2g} to {facts['largest'].max():.2g}")
    ax.set_ylim(0.5 * lowest, 1.5 * float(long["error"].max()))
    sim.legend_below(ax)
