"""FA-LD figures 1(d) and 1(e): density of the target and of samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

import fedsim as fs
import theory

from . import _fa_ld as sim
from . import plot
from .figure import FAIL, PASS, ByScale, Claim, Drawing, Parameter, Tables, note, settings

TITLE = "FA-LD: density of target and samples"
PAPER = "FA-LD figure 1(d), 1(e)"
SHOWS = "The target density, and the density of final replicas of FA-LD (K = 10, alpha = 0) beside it."
COST = {"tiny": "1 s", "quick": "2 s", "paper": "11 s"}
PARAMETERS = [
    Parameter("alpha", 0.0, "paper", "section 6: gamma = 1e8, which is alpha = 0"),
    Parameter("local_steps", 10, "paper", "section 6: K = 10"),
    Parameter("shared_noise", 0.0, "paper", "section 6: rho = 0"),
    sim.CLIENTS, sim.DATA, sim.STEP, sim.START, sim.GRADIENTS, sim.DATA_SEED, sim.SEED,
    Parameter("n_replicas", ByScale(64, 600, 5000), "ours", "the number of samples is not printed"),
    Parameter("n_rounds", ByScale(300, 800, 1000), "ours", "not printed; the law has then converged"),
    Parameter("n_grid", ByScale(12, 56, 80), "ours", "grid points per axis"),
    Parameter("half_width", 3.2, "ours", "of the drawn window, in target standard deviations"),
]


def compute(scale: str) -> Tables:
    """Tables: density (grid), samples, summary (distances and the fit of the samples)."""
    p = settings(PARAMETERS, scale)
    problem = fs.papers.fa_ld_simulation(p.alpha, p.data_seed, n_clients=p.n_clients, n_data=p.n_data)
    algorithm = fs.FALD(p.step_size, p.local_steps, shared_noise=p.shared_noise)
    note("simulating the samples")
    run = fs.simulate(problem, algorithm, n_rounds=p.n_rounds, n_replicas=p.n_replicas, seed=p.seed,
                      start=p.start, record=[p.n_rounds], keep_final=True)
    law = theory.exact_law(problem, algorithm, n_rounds=p.n_rounds, start=p.start, record=[p.n_rounds])
    target = problem.target()
    reach = p.half_width * np.sqrt(np.diag(target.cov))
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
        "n_replicas": p.n_replicas, "w2_exact": law.w2()[-1], "w2_samples": run.w2()[-1],
        "floor": sim.floor_of(problem, p.n_replicas), "target_sd": float(np.sqrt(np.trace(target.cov))),
        "p_value_radii": float(stats.kstest(radii, stats.chi2(2).cdf).pvalue)}])
    return {"density": density, "summary": summary,
            "samples": pd.DataFrame(run.final[: 600], columns=["theta_1", "theta_2"])}


def draw(tables: Tables) -> Drawing:
    """Left: target. Right: samples, with the target's contours over them."""
    table, one = tables["density"], tables["summary"].iloc[0]
    grid = table.pivot(index="theta_2", columns="theta_1")
    x, y = grid["target"].columns.to_numpy(), grid["target"].index.to_numpy()
    true, seen = grid["target"].to_numpy(), grid["samples"].to_numpy()
    levels = true.max() * np.exp(-0.5 * np.array([3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0]) ** 2)
    drawing, ((left, right),) = plot.panels(2, 5.2, 4.6, sharex=True, sharey=True)
    left.contourf(x, y, true, levels=levels, cmap="cividis")
    left.set(title="(d) target density", xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
    filled = right.contourf(x, y, seen, levels=levels, cmap="cividis", extend="max")
    right.contour(x, y, true, levels=levels[[0, 2, 4]], colors="#D55E00", linewidths=1.2)
    points = tables["samples"]
    right.scatter(points["theta_1"], points["theta_2"], s=3, color="#000000", alpha=0.35, linewidth=0,
                  label=f"replicas ({len(points)} of {one['n_replicas']:.0f})")
    right.plot([], [], color="#D55E00", label="target at 1, 2 and 3 sd")
    right.set(title="(e) density of the samples (kernel estimate)", xlabel=r"$\theta_1$",
              xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    right.legend(loc="upper right")
    scale = drawing.colorbar(filled, ax=[left, right], ticks=levels[[0, 2, 4, 6]],
                             label="density of the target at this distance from its mean")
    scale.ax.set_yticklabels(["3 sd", "2 sd", "1 sd", "mean"])
    return drawing


def _approximates(tables: Tables) -> tuple[str, str]:
    one = tables["summary"].iloc[0]
    good = one["w2_exact"] < 0.01 * one["target_sd"] and one["p_value_radii"] > 1e-4
    share = one["w2_exact"] / one["target_sd"]
    return (PASS if good else FAIL), (
        f"W2 of the exact law to the target is {one['w2_exact']:.1e}, {share:.1e} of the target's standard "
        f"deviation; {one['n_replicas']:.0f} samples show {one['w2_samples']:.1e} (floor "
        f"{one['floor']:.1e}), and the chi-squared law of their squared radii has p-value "
        f"{one['p_value_radii']:.2f}.")


CLAIMS = [Claim("The empirical density approximates the true density very well.", "section 6, figure 1(e)",
                _approximates)]
