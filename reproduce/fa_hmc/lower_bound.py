"""FA-HMC's lower bound: rounds that its worst case needs whatever the step size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from theory.exact import FAHMCFlow
from theory.fa_hmc.theorem_c1 import TwoGroups, fewest_rounds, lower_bound
from theory.rates import fit_rate, fit_root_log, loglog_slope

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, note, settings
from ..statistics import deviation, follows
from ..tables import among, groups
from ..tabulate import tabulate
from ..verdicts import EXACT, FAIL, MISPRINT, PASS, REPLICAS
from . import shared as sim

TITLE = "The lower bound's problem, rounds against dimension"
PAPER = "FA-HMC Theorem C.1 (I.1)"
SHOWS = ("Two kinds of clients along exact trajectories: W2 and its closed-form lower bound along rounds, "
         "and the fewest exact rounds over the trajectory length, against dimension and local steps.")
COST = {"tiny": "1 s", "quick": "5 s", "paper": "about 3 min (estimated)"}
_FREE = "the theorem asks for some problem with theta_L > theta_mu > 0; its numbers are not printed"
PARAMETERS = [
    Parameter("smoothness", 1.0, "ours", _FREE),
    Parameter("strong_convexity", 0.25, "ours", _FREE),
    Parameter("minimizers", [2.0, 1.0], "ours", _FREE),
    Parameter("start", 0.0, "ours", "the theorem starts at N(0, s I) for any s > 0; here the limit s = 0"),
    Parameter("shared_noise", 1.0, "paper", "Theorem C.1 is about the vanilla algorithm"),
    Parameter("eps", 0.3, "ours", "W2 to be reached; a constant start is much further away"),
    Parameter("local_steps", [1, 2, 10, 50], "ours", "T of the curves over d"),
    Parameter("dims", ByScale([10, 1000, 10000, 30000], [10, 30, 100, 300, 1000, 3000, 10000, 30000],
                              [10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000, 300000]), "ours",
              "dimensions"),
    Parameter("sweep", ByScale([1, 10, 40], [1, 2, 3, 5, 10, 20, 40, 80, 160],
                               [1, 2, 3, 5, 10, 20, 40, 80, 160, 320]), "ours", "T of the right panel"),
    Parameter("sweep_dim", 10000, "ours", "that dimension"),
    Parameter("n_grid", ByScale(25, 40, 400), "ours", "trajectory lengths tried, refined once"),
    Parameter("curve_dim", 100, "ours", "dimension of the curves over rounds"),
    Parameter("curve_steps", 10, "ours", "their T"),
    Parameter("curve_length", 0.5, "ours", "their second trajectory length; the first is the best one"),
    Parameter("leapfrog_steps", 20, "ours", "replicas approximate trajectories by so many steps"),
    Parameter("n_replicas", ByScale(2048, 16384, 131072), "ours", "of one coordinate"),
    Parameter("n_rounds", 100, "ours", "length of the curves"),
    Parameter("law_rounds", 50, "ours", "after which the law displayed is compared"),
    Parameter("law_lengths", [0.1, 0.5, 1.0], "ours", "trajectory lengths, at the T above, for that"),
    Parameter("seed", 1, "ours", "of the replicas"),
]

ROUNDING = 1e-9  # relative


def _groups(p: Any, dim: int) -> TwoGroups:
    high, low = p.minimizers
    return TwoGroups(L=p.smoothness, mu=p.strong_convexity, theta_L=high, theta_mu=low, dim=dim,
                     start_mean=p.start)


def _fewest(p: Any, dim: int, local_steps: int) -> tuple[int, float]:
    """Fewest exact rounds over the trajectory length, and that length."""
    return fewest_rounds(_groups(p, dim), p.eps, local_steps, p.shared_noise, n_grid=p.n_grid)


def compute(scale: str) -> Tables:
    """Tables: curves, rounds, fits, sweep, laws."""
    p = settings(PARAMETERS, scale)
    steps = {"local_steps": p.local_steps}
    rounds = tabulate("fewest rounds", _rounds, p, {**steps, "dim": p.dims})
    return {"curves": _curves(p), "rounds": rounds,
            "fits": pd.DataFrame([_fit(p, *one) for one in groups(rounds, "local_steps")]),
            "sweep": tabulate("fewest rounds", _sweep, p, {"local_steps": p.sweep, "dim": [p.sweep_dim]}),
            "laws": tabulate("laws", _laws, p, {**steps, "length": p.law_lengths})}


def _curves(p: Any) -> pd.DataFrame:
    """W2 of the exact law, its lower bound and replicas (of one coordinate, scaled) along rounds."""
    model, every, scale = _groups(p, p.curve_dim), np.arange(p.n_rounds + 1), np.sqrt(p.curve_dim)
    one = fs.papers.fa_hmc_two_groups(curvatures=(p.smoothness, p.strong_convexity), minimizers=p.minimizers)
    lengths, tables = {"best": _fewest(p, p.curve_dim, p.curve_steps)[1], "given": p.curve_length}, []
    for number, (name, length) in enumerate(lengths.items()):
        note(f"simulating trajectories of length {length:.3f}")
        flow = FAHMCFlow(length, p.curve_steps, p.shared_noise)
        bound = lower_bound(theory.constants(model.problem, flow), flow, groups=model, n_rounds=p.n_rounds,
                            variant="printed")
        law = theory.exact_law(model.problem, flow, p.n_rounds, covariance="diagonal")
        leapfrog = fs.FAHMC(length / p.leapfrog_steps, p.leapfrog_steps, p.curve_steps, p.shared_noise)
        run = fs.simulate(one, leapfrog, p.n_rounds, p.n_replicas, seed=p.seed + number)
        own = theory.exact_law(one, leapfrog, p.n_rounds)
        (low, high), (worst, compared) = scale * run.w2_interval(0.95).T, deviation(run, own)
        tables.append(pd.DataFrame({
            "which": name, "length": length, "round": every, "w2": law.w2(),
            "closed_form": model.w2(every, length, p.curve_steps, p.shared_noise), "bound": bound.value,
            "within_hypotheses": all(item.holds for item in bound.assumptions),
            "floor": scale * fs.distance.w2_floor(one.target().cov, p.n_replicas),
            "deviation": worst, "compared": compared, "leapfrog_w2": scale * own.w2(),
            "replicas": scale * run.w2(), "low": low, "high": high}))
    return pd.concat(tables)


def _bound_rounds(model: TwoGroups, eps: float, local_steps: int, length: float, most: int) -> int:
    """First round at which the lower bound is below eps, at most `most`."""
    gamma, fixed = model.fixed_point(length, local_steps)
    bias = model.dim * (fixed - model.theta_star) ** 2
    below = bias + model.dim * fixed**2 * gamma ** (2 * np.arange(most + 1)) <= eps**2
    return int(np.argmax(below)) if below.any() else most


def _rounds(p: Any, local_steps: int, dim: int) -> dict[str, float]:
    rounds, length = _fewest(p, dim, local_steps)
    # whatever the length, the lower bound must be passed first
    lengths = [*np.geomspace(0.2 * length, 1.0 / np.sqrt(p.smoothness), p.n_grid), length]
    certified = min(_bound_rounds(_groups(p, dim), p.eps, local_steps, x, rounds) for x in lengths)
    return {"rounds": rounds, "length": length, "bound_rounds": certified,
            "shape": np.sqrt(dim) * np.log(dim / p.eps) / p.eps}


def _fit(p: Any, local_steps: int, rounds: pd.DataFrame) -> dict[str, float]:
    tail = rounds[rounds["length"] < 0.95 / np.sqrt(p.smoothness)]  # elsewhere the longest is best
    fit = fit_rate(rounds["dim"], rounds["shape"], rounds["rounds"], side="lower")
    a, log_c, explained = fit_root_log(tail["dim"], tail["rounds"])
    slope = loglog_slope(tail["dim"], tail["rounds"]).value if len(tail) >= 3 else 0.5
    return {"local_steps": local_steps, "constant": fit.constant, "spread": fit.spread, "root_log": a,
            "log_c": log_c, "r_squared": explained, "slope": slope, "from_dim": int(tail["dim"].min()),
            "n_dims": len(tail)}


def _sweep(p: Any, local_steps: int, dim: int) -> dict[str, float]:
    """Fewest rounds against T, and the constant (T/4 - 1/6)/T of the fixed point's bias."""
    rounds, length = _fewest(p, dim, local_steps)
    return {"rounds": rounds, "length": length, "iterations": rounds * local_steps,
            "form": (0.25 * local_steps - 1.0 / 6.0) / local_steps}


def _laws(p: Any, local_steps: int, length: float) -> dict[str, float]:
    """Mean and variance of a coordinate after some rounds: exact, in closed form, and as displayed."""
    model, n = _groups(p, 1), p.law_rounds
    roots = np.sqrt([p.smoothness, p.strong_convexity])
    law = theory.exact_law(model.problem, FAHMCFlow(length, local_steps, p.shared_noise), n, record=[n]).at(n)
    mean, variance = model.law(n, length, local_steps, p.shared_noise)
    gamma, _ = model.fixed_point(length, local_steps)
    gone = (np.sin(roots * length) ** 2 / roots).sum()
    return {"mean": float(law.mean[0]), "variance": float(law.variances[0]),
            "closed_mean": float(mean), "closed_variance": float(variance),
            "display_mean": 0.5 * gone * (1.0 - gamma**n) / (1.0 - gamma),
            "display_variance": gamma**2 * (1.0 - gamma ** (2 * n)) / (1.0 - gamma**2),
            "proof_variance": float(model.printed_variance(n, length, local_steps))}


def draw(tables: Tables) -> Drawing:
    """W2 along rounds; fewest rounds against d; against T."""
    drawing, (panels,) = plot.panels(3, 5.1, 5.4)
    _draw_curves(panels[0], tables["curves"])
    _draw_rounds(panels[1], tables)
    _draw_sweep(panels[2], tables["sweep"])
    for ax in panels:
        plot.legend_below(ax, **sim.LEGEND)
    return drawing


def _draw_curves(ax: Axes, curves: pd.DataFrame) -> None:
    for (length, one), colour, mark in zip(groups(curves, "length"), plot.COLOURS[3:], "os", strict=False):
        x = f"x = {length:.2f}"
        plot.replicas(ax, one["round"], one["replicas"], one["low"], one["high"], colour, None)
        plot.exact(ax, one["round"], one["w2"], colour, f"exact law, {x}", marker=mark, markevery=12)
        ax.plot(one["round"], one["bound"], color=colour, linestyle="--", marker=mark, markevery=(6, 12),
                markerfacecolor="white", label=f"lower bound, theorem C.1, {x}")
    bottom = 0.6 * float(curves["bound"].min())
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.3, linewidth=0, label=plot.BAND + (
        ", in part below the axis" if (curves["low"] < bottom).any() else ""))
    plot.floor(ax, float(curves["floor"].iloc[0]))
    ax.axhline(0.3, color="#000000", linewidth=0.9, linestyle="-.", label=r"accuracy $\epsilon$ = 0.3")
    ax.set(yscale="log", xlabel="communication round n", ylabel=r"$W_2$",
           title="d = 100, T = 10, trajectory length x", ylim=(bottom, 1.3 * float(curves["w2"].max())))


def _draw_rounds(ax: Axes, tables: Tables) -> None:
    rounds, hollow = tables["rounds"], {"linestyle": "--", "linewidth": 1.2, "markerfacecolor": "white"}
    for ((steps, one), colour), mark in zip(plot.shaded(groups(rounds, "local_steps")), "os^D", strict=False):
        look: dict[str, Any] = sim.MARKED | {"marker": mark}
        plot.exact(ax, one["dim"], one["rounds"], colour, f"exact law, best x, T = {steps}", **look)
        ax.plot(one["dim"], one["bound_rounds"], color=colour, **look | hollow)
    ax.plot([], [], color=plot.GREY, label="hollow: rounds the lower bound demands", **sim.MARKED | hollow)
    constant = among(tables["fits"], local_steps=steps)["constant"].iloc[0]
    name = rf"shape $\sqrt{{d}}\,\log(d/\epsilon)/\epsilon$, fitted constant {constant:.3g} (T = {steps})"
    ax.plot(one["dim"], constant * one["shape"], color=plot.GREY, lw=4, alpha=0.5, zorder=1, label=name)
    ax.set(xscale="log", yscale="log", xlabel="dimension d", ylabel=r"rounds n to $W_2 \leq$ 0.3",
           title="fewest rounds, over the length",
           ylim=(0.7 * float(rounds["bound_rounds"].clip(lower=1).min()), None))


def _draw_sweep(ax: Axes, sweep: pd.DataFrame) -> None:
    kinds = ("rounds", "rounds n", "o"), ("iterations", "iterations n T", "s")
    for (name, what, marker), colour in zip(kinds, plot.COLOURS, strict=False):
        plot.exact(ax, sweep["local_steps"], sweep[name], colour, f"exact law, best x: {what}",
                   **sim.MARKED | {"marker": marker})
    form = sweep["form"] * sweep["rounds"].iloc[-1] / sweep["form"].iloc[-1]
    ax.plot(sweep["local_steps"], form, "k--", label=r"shape $(T/4 - 1/6)/T$, fitted at the last T")
    ax.set(xscale="log", yscale="log", xlabel="local steps T", ylabel=r"n and n T to $W_2 \leq$ 0.3",
           title=f"rounds and iterations, d = {sweep['dim'].iloc[0]}")


def judge_rate(tables: Tables) -> tuple[str, str, str]:
    """Omega(sqrt(d) log(d/eps)/eps) rounds."""
    fits, rounds = tables["fits"], tables["rounds"]
    good = bool((fits["root_log"] > 0.0).all() and (fits["r_squared"] > 0.99).all())
    ratio = (rounds["rounds"] / rounds["shape"]).groupby(rounds["local_steps"])
    return (PASS if good else FAIL), (
        "Fewest exact rounds over the trajectory length follow a sqrt(d) log(c d), where the best length is "
        f"below 1/sqrt(L), with a from {fits['root_log'].min():.3g} on and R^2 from "
        f"{fits['r_squared'].min():.4f}."), (
        "Over the printed shape they are, at the smallest and the largest d: "
        + "; ".join(f"T = {steps}: {one.iloc[0]:.3f} and {one.iloc[-1]:.3f}" for steps, one in ratio) + ".")


def judge_local(tables: Tables) -> tuple[str, str, str]:
    """Do rounds, iterations over T, vary little?"""
    rounds = tables["sweep"].set_index("local_steps")["rounds"]
    late = rounds[rounds.index >= 10]
    factor, why = sim.limited(rounds)
    return (PASS if factor < 1.0 else FAIL), f"At d = {tables['sweep']['dim'].iloc[0]} {why}", (
        f"The fewest, {rounds.min():.0f}, are at T = {rounds.idxmin()}; from T = 10 on they vary by a factor "
        f"{late.max() / late.min():.2f}.")


def _over(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Mean and variance over the exact ones."""
    return pd.DataFrame({part: table[f"{name}_{part}"] / table[part] for part in ("mean", "variance")})


def _ranges(table: pd.DataFrame) -> str:
    return " and ".join(f"{one.min():.2g} to {one.max():.3g} times the exact {part}"
                        for part, one in _over(table, "display").items())


def judge_display(tables: Tables) -> tuple[str, str]:
    """The law displayed, and the proof's with the variance that a round adds."""
    table = tables["laws"]
    single = table["local_steps"] == 1
    if ((_over(table, "display") - 1.0).abs() <= ROUNDING).all(axis=None):
        return PASS, "Mean and variance displayed are those of the exact law within rounding."
    why = f"At T = 1 the display has {_ranges(table[single])}; at larger T {_ranges(table[~single])}. "
    proof = table["proof_variance"] / table["variance"]
    off = max((_over(table, "closed") - 1.0).abs().max().max(), (proof[single] - 1.0).abs().max())
    if off <= ROUNDING:
        return MISPRINT, why + (
            "The corrected reading is off by nothing beyond rounding (erratum fa_hmc.lower_display). The "
            f"proof's own variance is exact at T = 1 and up to {proof[~single].max():.3f} times the exact "
            "one at larger T (erratum fa_hmc.lower_variance).")
    return FAIL, why + f"The corrected reading is off by up to {off:.1e}."


def judge_bound(tables: Tables) -> tuple[str, str]:
    """Is the lower bound below the exact law?"""
    curves, rounds = tables["curves"], tables["rounds"]
    ratio = curves["bound"] / curves["w2"]
    asked = float((rounds["bound_rounds"] / rounds["rounds"]).min())
    good = bool((ratio <= 1.0 + 1e-9).all() and curves["within_hypotheses"].all())
    return (PASS if good else FAIL), (
        f"The bound is {ratio.min():.2f} to {ratio.max():.2f} of the exact W2 on these curves, and the "
        f"rounds it asks for are at least {100 * asked:.0f}% of the exact ones.")


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """Replicas of the algorithm with short leapfrog steps."""
    curves = tables["curves"]
    runs = curves.groupby("which")[["deviation", "compared"]].first()
    verdict, why = follows(runs["deviation"], runs["compared"])
    gap = float((curves["leapfrog_w2"] - curves["w2"]).abs().max() / curves["w2"].min())
    return (verdict if gap < 0.02 else FAIL), why + (
        f" With 20 leapfrog steps its W2 differs from that of the trajectories by {100 * gap:.2g}% of the "
        "smallest W2 (2% are allowed).")


CLAIMS = [
    Claim("Rounds to W2 <= eps are at least of order sqrt(d) log(d/eps)/eps on some problem, even for an "
          "infinitely small step size (read for d).", "theorem C.1", judge_rate, "rate",
          EXACT, context="Shown on the problem of its proof. The logarithm is that of sqrt(d), and "
          "at T = 1 the length is capped in few dimensions: both make the ratio to the shape fall."),
    Claim("\"Our result in Proposition 4.3 is tight w.r.t. dimension d and local iteration T\" (here for T).",
          "section 4.1", judge_local, "local_steps", EXACT,
          context="Tight in T means that iterations grow like T. The paper concludes that \"communication "
          "times have limited variations in T\". " + sim.LIMITED),
    Claim("Theorem I.1 displays the law of the average after t rounds.", "theorem I.1 and its proof",
          judge_display, "display", EXACT,
          context="The corrected reading is the last line of the proof. At T = 1, where no T can be lost, it "
          "is all the paper's; for T > 1 its mean is the proof's and its variance is ours, that which a "
          "round adds. The lower bound uses the proof's mean alone and stands."),
    Finding("The closed-form lower bound that the proof gives holds for the exact law.", "theorem I.1",
            judge_bound, "bound", EXACT),
    Finding("Replicas of FA-HMC with short leapfrog steps follow the exact law of the trajectories.",
            "theorem I.1", judge_replicas, "replicas", REPLICAS),
]
