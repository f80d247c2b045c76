"""FA-HMC figure 2: communication rounds to a given accuracy, against the dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from theory.rates import loglog_slope

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, settings
from ..statistics import follows
from ..tables import among, groups
from ..verdicts import EXACT, FAIL, MISPRINT, PASS, REPLICAS
from . import shared as sim
from .dimension import BEST, RULE, tables_of

TITLE = "Rounds to W2^2 < 0.1 against dimension"
PAPER = "FA-HMC figure 2"
REPRODUCES = ("FA-HMC 2",)
SHOWS = ("Rounds against dimension with the paper's step rule, by the exact law at all of the paper's "
         "dimensions and by replicas at some; with the best step size of each; and with one fixed step size.")
COST = {"tiny": "1 s", "quick": "6 s", "paper": "about 6 min (estimated)"}
SQUARED, PLAIN = "W2^2 < 0.1", "W2 < 0.1"
PARAMETERS = [
    Parameter("dims", ByScale([2, 50, 200, 1000], [2, *range(50, 1001, 50)], [2, *range(50, 1001, 50)]),
              "paper", "section 5.2: d = 2, 50, 100, ..., 1000"),
    Parameter("leapfrog_steps", 5, "paper", "section 5.2: K = 5"),
    Parameter("local_steps", 10, "paper", "section 5.2: T = 10"),
    Parameter("step_factor", 0.02, "paper", "section 5.2: eta = 0.02 / d^(1/4)"),
    Parameter("thresholds", {SQUARED: float(np.sqrt(0.1)), PLAIN: 0.1}, "paper",
              "W2 to be reached: section 5.2 has W2^2 < 0.1, the figure's caption W2 < 0.1"),
    Parameter("shared_noise", 1.0, "paper", "section 5: the same momentum on all clients"),
    Parameter("variances", {"4 (gives N(16.2, 1.6))": 4.0, "2 (as printed)": 2.0}, "ours",
              "of the second group's posterior: 2 I is printed, but the overall posterior printed needs 4 I"),
    Parameter("n_clients", 2, "ours", "not printed; of no influence with shared momentum"),
    Parameter("start", 0.0, "ours", "not printed; every coordinate of theta_0"),
    Parameter("simulated_dims", ByScale([2], [2, 50], [2, 50, 200, 500]), "ours", "dimensions with replicas"),
    Parameter("n_replicas", ByScale(2048, 16384, 131072), "ours", "of one coordinate, as all are independent "
              "and alike; the paper's 200 d(d-1)/2 chains of all d coordinates are out of reach"),
    Parameter("window", 0.25, "ours", "replicas are compared within +-25% of the exact rounds"),
    Parameter("best_dims", ByScale([2, 200, 1000], [2, 10, 50, 100, 200, 500, 1000],
                                   [2, 10, 50, 100, 200, 500, 1000, 3000, 10000]), "ours",
              "dimensions whose best step size is searched"),
    Parameter("fixed_dim", 50, "ours", "the fixed step size is the paper's at this dimension"),
    Parameter("fixed_grid", [2, 5, 10, 20, 50, 100, 300, 1000, 3000, 10000, 30000, 100000], "ours",
              "dimensions for the fixed step size"),
    Parameter("shared_check", [0.0, 0.5, 1.0], "ours", "shared noise levels compared at fixed_dim"),
    Parameter("seed", 1, "ours", "of the replicas"),
]


def compute(scale: str) -> Tables:
    """Tables: rounds, fits, replicas, band, best, fixed, checks, posterior."""
    return tables_of(settings(PARAMETERS, scale))


def draw(tables: Tables) -> Drawing:
    """Squared rounds against d; rounds against d; step sizes that are best."""
    drawing, (panels,) = plot.panels(3, 5.1, 5.2)
    _squares(panels[0], tables)
    _loglog(panels[1], tables)
    _steps(panels[2], tables["best"])
    for ax in panels:
        ax.set_xlabel("dimension d")
        plot.legend_below(ax, **sim.LEGEND)
    return drawing


def _symbols(threshold: str) -> str:
    return threshold.replace("W2^2", "$W_2^2$").replace("W2", "$W_2$")


def _squares(ax: Axes, tables: Tables) -> None:
    """Squared rounds; what stands in the corner once more, as the replicas are there."""
    replicas, printed = tables["replicas"], "2 (as printed)"
    corner = ax.inset_axes((0.1, 0.54, 0.4, 0.36))
    shown = (({"threshold": SQUARED}, ""), ({"threshold": PLAIN}, ""),
             ({"threshold": SQUARED, "variance": printed}, ", variance 2 as printed"))
    for (values, slip), colour, marker in zip(shown, plot.COLOURS, "os^", strict=False):
        one, fit = _rounds(tables["rounds"], **values), _rounds(tables["fits"], steps=RULE, **values).iloc[0]
        d = np.array([0.0, float(one["dim"].max())])
        for panel in (ax, corner):
            panel.plot(one["dim"], one["rounds"] ** 2 / 1e6, marker, color=colour,
                       label=f"exact law, {_symbols(values['threshold'])}{slip}")
            panel.plot(d, (fit["affine"] * d + fit["offset"]) / 1e6, color=colour, linewidth=1.0)
        ax.plot([], [], color=colour, linewidth=1.0,
                label=rf"$n^2 = a d + b$, $R^2$ = {fit['r_squared']:.4f}")
    for panel in (ax, corner):
        _replicas(panel, replicas, 2, 1e6, f"{plot.BAND}, $W_2^2$ < 0.1")
    last = replicas.iloc[-1]
    corner.set(xlim=(-0.1 * last["dim"], 1.3 * last["dim"]), ylim=(0.0, 2.5 * last["exact"] ** 2 / 1e6))
    corner.set_title("the corner, enlarged", fontsize=9, fontweight="normal")
    corner.tick_params(labelsize=9)
    ax.set(ylabel=r"squared rounds $n^2$ / $10^6$", title=r"the paper's rule: $\eta = 0.02\, d^{-1/4}$",
           ylim=(0.0, None))


def _replicas(ax: Axes, table: pd.DataFrame, power: int, unit: float, label: str) -> None:
    low, middle, high = (table[name] ** power / unit for name in ("low", "rounds", "high"))
    ax.errorbar(table["dim"], middle, [middle - low, high - middle], fmt="x", color="#000000", markersize=7,
                capsize=3, zorder=5, label=label)


def _loglog(ax: Axes, tables: Tables) -> None:
    """Colours are those of the first panel, where they mean the same."""
    fixed = tables["fixed"]
    for table, key, colour, marker, text in (
            (_rounds(tables["rounds"]), RULE, plot.COLOURS[0], "o", r"$\eta = 0.02\, d^{-1/4}$"),
            (among(tables["best"], threshold=SQUARED), BEST, plot.COLOURS[3], "D", r"best $\eta$ at each d")):
        fit = _fit(tables, steps=key)
        plot.exact(ax, table["dim"], table["rounds"], colour, f"exact law, {text}: slope {fit['slope']:.3f}",
                   marker=marker, markersize=4)
        d = np.geomspace(table["dim"].min(), table["dim"].max(), 100)
        ax.plot(d, fit["root_log"] * np.sqrt(d) * (np.log(d) + fit["log_c"]), color="#000000", linewidth=1.0,
                linestyle="--", label=r"fitted $a \sqrt{d}\,\log(c\,d)$")
    reached = np.isfinite(fixed["rounds"])
    plot.exact(ax, fixed["dim"][reached], fixed["rounds"][reached], plot.COLOURS[4],
               rf"exact law, $\eta$ = {fixed['step_size'].iloc[0]:.4f} at every d", marker="v", markersize=4)
    if not reached.all():
        ax.axvline(float(fixed["dim"][~reached].min()), color=plot.COLOURS[4], linewidth=1.0, linestyle=":",
                   label=r"from here on never with that step")
    _replicas(ax, tables["replicas"], 1, 1.0, plot.BAND)
    ax.set(xscale="log", yscale="log", ylabel="rounds n to $W_2^2$ < 0.1",
           title="ours: what is built into the step rule")


def _steps(ax: Axes, best: pd.DataFrame) -> None:
    for (threshold, one), colour, marker in zip(groups(best, "threshold"), plot.COLOURS, "os", strict=False):
        plot.exact(ax, one["dim"], one["scaled_step"], colour, f"best step, {_symbols(threshold)}",
                   marker=marker, markersize=4)
    ax.axhline(0.02, color="#000000", linestyle=":", linewidth=1.1, label="the paper's rule")
    ax.set(xscale="log", ylabel=r"step size times $d^{1/4}$: $\eta\, d^{1/4}$",
           title=r"ours: is the best $\eta \propto d^{-1/4}$?",
           ylim=(0.0, 1.1 * float(best["scaled_step"].max())))


def _rounds(table: pd.DataFrame, threshold: str = SQUARED, **values: Any) -> pd.DataFrame:
    """Rows of one threshold, by default with the variance that the posterior printed needs."""
    return among(table, **({"variance": table["variance"].iloc[0], "threshold": threshold} | values))


def _fit(tables: Tables, threshold: str = SQUARED, steps: str = RULE) -> pd.Series:
    return _rounds(tables["fits"], threshold, steps=steps).iloc[0]


def _rule(tables: Tables) -> pd.Series:
    """Rounds by dimension with the paper's step rule."""
    return _rounds(tables["rounds"]).set_index("dim")["rounds"]


def judge_linear(tables: Tables) -> tuple[str, str, str]:
    """n^2 against d, both thresholds."""
    squared, plain = _fit(tables), _fit(tables, PLAIN)
    good = all(fit["r_squared"] > 0.99 and abs(fit["slope"] - 0.5) < 0.1 for fit in (squared, plain))
    rule = _rule(tables)
    ratio = rule**2 / rule.index
    return (PASS if good else FAIL), (
        f"The line n^2 = a d + b has R^2 = {squared['r_squared']:.4f} for W2^2 < 0.1 and "
        f"{plain['r_squared']:.4f} for W2 < 0.1 (the caption's threshold); the log-log slope of n is "
        f"{squared['slope']:.3f} and {plain['slope']:.3f}, that of the sentence 0.5."), (
        f"n^2 / d grows {ratio.iloc[-1] / ratio.iloc[0]:.2f}-fold from d = {rule.index[0]}, where the paper "
        f"starts, to {rule.index[-1]}, and {ratio.iloc[-1] / ratio[50]:.2f}-fold from d = 50 on, as the "
        "logarithm has it.")


def judge_log(tables: Tables) -> tuple[str, str]:
    """n = a sqrt(d) log(c d)."""
    fits = [_fit(tables, threshold) for threshold in (SQUARED, PLAIN)]
    good = all(fit["root_log_r_squared"] > 0.9995 and fit["root_log"] > 0.0 for fit in fits)
    return (PASS if good else FAIL), (
        f"n = a sqrt(d) log(c d) fits with R^2 = {fits[0]['root_log_r_squared']:.6f} (W2^2 < 0.1) and "
        f"{fits[1]['root_log_r_squared']:.6f} (W2 < 0.1).")


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """Replicas against the exact law around the exact rounds."""
    table = tables["replicas"]
    verdict, why = follows(table["deviation"], table["compared"])
    return verdict, why + " Exact rounds, and rounds of the replicas with their 95% band: " + "; ".join(
        f"d = {row.dim}: {row.exact}, {row.rounds:.0f} ({row.low:.0f} to {row.high:.0f})"
        for row in table.itertuples()) + "."


def judge_posterior(tables: Tables) -> tuple[str, str]:
    """Which covariance gives the posterior printed, N(16.2, 1.6)?"""
    table = tables["posterior"].set_index("variance")
    near = ((table["mean"] - 16.2).abs() < 0.05) & ((table["spread"] - 1.6).abs() < 0.05)
    laws = ", ".join(f"N(1, {variance:g} I) gives N({row['mean']:.2f} 1, {row['spread']:.2f} I)"
                     for variance, row in table.iterrows())
    if near[2.0]:
        return PASS, f"{laws}: as printed."
    if near[4.0]:
        return MISPRINT, (f"{laws}: with 4 I the overall posterior is as printed, with 2 I it is not "
                          "(erratum fa_hmc.figure_covariance). With 2 read as a standard deviation, beside "
                          "1.6 as a variance, the sentence is right.")
    return FAIL, f"{laws}: neither is the overall posterior printed."


def judge_best(tables: Tables) -> tuple[str, str]:
    """Does the best step scale like d^(-1/4), and do rounds at it grow like sqrt(d) log d?"""
    best, fit = among(tables["best"], threshold=SQUARED).set_index("dim"), _fit(tables, steps=BEST)
    late = best["scaled_step"][best.index >= 50]
    spread = float(late.max() / late.min())
    power = loglog_slope(best.index, best["step_size"])
    costs = (_rule(tables) / best["rounds"]).dropna().iloc[-1]
    return (PASS if spread < 1.25 and fit["root_log_r_squared"] > 0.99 else FAIL), (
        f"The best step size falls like d^({power.value:.3f}); best eta times d^(1/4) varies by a factor "
        f"{spread:.2f} from d = 50 on, and rounds at the best steps follow a sqrt(d) log(c d) with R^2 = "
        f"{fit['root_log_r_squared']:.4f} (log-log slope {fit['slope']:.3f}). The paper's factor 0.02 costs "
        f"{costs:.1f} times the rounds of the best step at the largest common dimension.")


def judge_fixed(tables: Tables) -> tuple[str, str]:
    """With one step size, is growth less than half of that with the step rule, until none suffices?"""
    fixed = tables["fixed"]
    reached = np.isfinite(fixed["rounds"])
    slope = loglog_slope(fixed["dim"][reached], fixed["rounds"][reached]).value
    rule, never = _fit(tables)["slope"], fixed["dim"][~reached]
    return (PASS if slope < 0.5 * rule and len(never) > 0 else FAIL), (
        f"With the step size of d = {tables['checks']['dim'].iloc[0]} at every dimension the log-log slope "
        f"of n is {slope:.3f} up to d = {fixed['dim'][reached].max()}, with the step rule {rule:.3f}; the "
        f"accuracy is out of reach at {len(never)} of {len(fixed)} dimensions"
        + (f", from d = {never.min()} on." if len(never) else "."))


def judge_shared(tables: Tables) -> tuple[str, str]:
    """Rounds by shared noise."""
    checks = tables["checks"]
    spread = float(checks["rounds"].max() / checks["rounds"].min() - 1.0)
    return (PASS if spread <= 0.01 else FAIL), (
        f"At d = {checks['dim'].iloc[0]} the exact rounds are "
        + ", ".join(f"{row.rounds:.0f} (shared noise {row.shared_noise:g})" for row in checks.itertuples())
        + f": they differ by {100 * spread:.1f}%.")


CLAIMS = [
    Claim("The square of the communication rounds is approximately proportional to the dimension.",
          "section 5.2, figure 2", judge_linear, "proportional", EXACT,
          context="Read with both of the paper's thresholds, as erratum fa_hmc.figure_threshold has it, and "
          "with N(1, 4 I) for half of the nodes; with 2 I the figure is as straight."),
    Claim("This aligns with Proposition 4.3, rounds of order sqrt(d) log(d/eps^2)/eps (read for d).",
          "section 5.2", judge_log, "aligned", EXACT, context="The step rule puts this form in: a round "
          "contracts by an amount of order eta^2, so that n is of order log(d)/eta^2."),
    Claim("Half of the nodes N(20, I), the others N(1, 2 I): overall N(16.2, 1.6 I).", "section 5.2",
          judge_posterior, "posterior", EXACT,
          context="The overall posterior is the product of the nodes' to the power of their weights."),
    Finding("Replicas of the algorithm follow the exact law around the rounds at which the accuracy is "
            "reached.", "figure 2", judge_replicas, "replicas", REPLICAS),
    Finding("The best step size at each d is proportional to d^(-1/4), and rounds at it grow like sqrt(d) "
            "log d.", "proposition 4.3", judge_best, "best_step", EXACT, context="A test of the proposition "
            "that no step rule decides: proportional is within a quarter from d = 50 on."),
    Finding("With one step size for all d the rounds grow less than half as steeply as in figure 2, until "
            "the accuracy is out of reach.", "figure 2", judge_fixed, "one_step", EXACT,
            context="The stationary W2 of a step size grows like sqrt(d), so that d makes the step rule "
            "necessary."),
    Finding("Shared noise changes these rounds by less than one percent.", "figure 2", judge_shared,
            "shared_noise", EXACT),
]
