"""FA-LD figures 1(d) and 1(e): density of the target and of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import fedsim as fs

from .. import plot
from ..figure import ByScale, Claim, Drawing, Parameter, Tables, note, settings
from ..tabulate import tabulate
from ..verdicts import DATA_SETS, LEVEL, NOT_TESTABLE, PASS, shares, unanimous
from . import shared as sim

TITLE = "Density of target and samples"
PAPER = "FA-LD figure 1(d), 1(e)"
REPRODUCES = ("FA-LD 1(d)", "FA-LD 1(e)")
SHOWS = "The target density, and the density of final replicas of FA-LD (K = 10, alpha = 0) beside it."
COST = {"tiny": "1 s", "quick": "8 s", "paper": "20 s (estimated)"}
PARAMETERS = [
    Parameter("alpha", 0.0, "paper", "section 6: gamma = 1e8, which is alpha = 0"),
    Parameter("local_steps", 10, "paper", "section 6: K = 10"),
    sim.SHARED_NOISE, *sim.SIMULATION,
    Parameter("n_replicas", ByScale(64, 2000, 5000), "ours", "the number of samples is not printed"),
    Parameter("n_rounds", 800, "ours", "not printed; the law has then converged"),
    Parameter("n_grid", ByScale(12, 56, 80), "ours", "grid points per axis"),
    Parameter("half_width", 4.0, "ours", "of the drawn window, in target standard deviations"),
]
WELL = 0.01  # of the target's standard deviation: no reader of a density could see it
SHOWN = 600  # samples drawn as dots


def compute(scale: str) -> Tables:
    """Tables: density (grid), summary (the fit of the samples), laws (exact, by data set), samples."""
    p = settings(PARAMETERS, scale)
    problem = sim.problem_of(p, p.alpha)
    note("simulating the samples")
    run = fs.simulate(problem, _algorithm(p), n_rounds=p.n_rounds, n_replicas=p.n_replicas, seed=p.seed,
                      start=p.start, record=[p.n_rounds], keep_final=True)
    target = problem.target()
    reach = p.half_width * np.sqrt(target.variances)
    assert run.final is not None  # keep_final
    axes = [np.linspace(-r, r, p.n_grid) + m for m, r in zip(target.mean, reach, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    density = pd.DataFrame({
        "theta_1": grid[:, 0], "theta_2": grid[:, 1],
        "target": stats.multivariate_normal(target.mean, target.cov).pdf(grid),
        "samples": stats.gaussian_kde(run.final.T)(grid.T)})
    gap = run.final - target.mean
    radii = np.einsum("ri,ij,rj->r", gap, np.linalg.inv(target.cov), gap)
    summary = pd.DataFrame([{
        "n_replicas": p.n_replicas, "w2_samples": run.w2()[-1], "floor": sim.floor_of(problem, p.n_replicas),
        "p_value_radii": float(stats.kstest(radii, stats.chi2(2).cdf).pvalue)}])
    return {"density": density, "summary": summary,
            "laws": tabulate("exact law", _law, p, {"data_set": range(p.n_data_sets)}),
            "samples": pd.DataFrame(run.final[:SHOWN], columns=["theta_1", "theta_2"])}


def _algorithm(p: Any) -> fs.FALD:
    return fs.FALD(p.step_size, p.local_steps, shared_noise=p.shared_noise)


def _law(p: Any, data_set: int) -> dict[str, float]:
    """Exact W2 at the last round on one data set, in target standard deviations."""
    problem = sim.problem_of(p, p.alpha, data_set)
    w2 = sim.w2_curve(problem, _algorithm(p), np.array([p.n_rounds]), p.start)[-1]
    return {"share": float(w2 / np.sqrt(np.trace(problem.target().cov)))}


def draw(tables: Tables) -> Drawing:
    """Left: target. Right: samples, with the target's contours over them."""
    table, one = tables["density"], tables["summary"].iloc[0]
    grid = table.pivot(index="theta_2", columns="theta_1")
    x, y = grid["target"].columns.to_numpy(), grid["target"].index.to_numpy()
    true, estimate = grid["target"].to_numpy(), grid["samples"].to_numpy()
    levels = true.max() * np.exp(-0.5 * np.array([3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0]) ** 2)
    drawing, ((left, right),) = plot.panels(2, 5.2, 5.2, sharex=True, sharey=True)
    left.contourf(x, y, true, levels=levels, cmap="cividis")
    left.set(title="(d) target density", xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
    filled = right.contourf(x, y, estimate, levels=levels, cmap="cividis", extend="max")
    right.contour(x, y, true, levels=levels[[0, 2, 4]], colors="#D55E00", linewidths=1.2)
    points = tables["samples"]
    right.scatter(points["theta_1"], points["theta_2"], s=3, color="#000000", alpha=0.35, linewidth=0,
                  label=f"replicas ({len(points)} of {one['n_replicas']:.0f})")
    right.plot([], [], color="#D55E00", label="target at 1, 2 and 3 sd")
    right.set(title="(e) density of the samples (kernel estimate)", xlabel=r"$\theta_1$",
              xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    plot.legend_below(right)
    ticks = dict(zip(levels[[0, 2, 4, 6]], ("3 sd", "2 sd", "1 sd", "its mean"), strict=True))
    scale = drawing.colorbar(filled, ax=[left, right], ticks=list(ticks),
                             label="density, one scale for both panels")
    scale.ax.set_yticklabels([f"{level:.0f}, target at {name}" for level, name in ticks.items()])
    return drawing


def judge_density(tables: Tables) -> tuple[str, str]:
    """Is the exact law as good as the target on every data set, and do the samples not tell against it?"""
    one, share = tables["summary"].iloc[0], tables["laws"]["share"]
    verdict = unanimous(share < WELL)
    if verdict == PASS and one["p_value_radii"] < LEVEL:
        verdict = NOT_TESTABLE
    return verdict, (
        f"W2 of the exact law to the target is {share.min():.1e} to {share.max():.1e} of the target's "
        f"standard deviation: below {WELL:g} {shares(share < WELL)}. {one['n_replicas']:.0f} samples on the "
        f"first show W2 = {one['w2_samples']:.1e} (root mean square of perfect draws: {one['floor']:.1e}), "
        f"and the p-value of their squared radii under the chi-squared law is {one['p_value_radii']:.2g}, "
        + ("which tells against them." if one["p_value_radii"] < LEVEL else "nothing against them."))


CLAIMS = [Claim("The empirical density approximates the true density very well.", "section 6, figure 1(e)",
                judge_density, "density", DATA_SETS,
                context=f"Very well is read as W2 below {WELL:g} standard deviations, which nobody can see; "
                "samples of the exact law then give the true density up to chance.")]
