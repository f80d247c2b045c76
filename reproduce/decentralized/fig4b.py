"""DE-SGLD figure 4(b): W2 along iterations for several step sizes, minibatches of 25."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

import fedsim as fs
from theory.rates import loglog_slope

from .. import plot
from ..figure import ByScale, Claim, Finding, Parameter, Tables, note, settings
from ..tables import among, groups, listed
from ..verdicts import DATA_SETS, FAIL, NOT_TESTABLE, OUTSIDE, PASS, Judgement, shares, unanimous
from . import batches, claims, linear, shared as de

TITLE = "W2 by step size"
PAPER = "DE-SGLD figure 4(b)"
REPRODUCES = ("DE 4(b)",)
SHOWS = ("Replicas and exact moments of one agent for several step sizes with minibatches of 25; the limits "
         "against the step size beside Theorem 1's; and the iterations until a curve settles.")
COST = {"tiny": "9 s", "quick": "20 s", "paper": "about 5 min (estimated)"}
LOOSE = {"small": ("step_size", 1e-6, 1e-11)}
"""At step size 1e-6 a limit is solved for with condition number 1e6: processors differ by 2e-12."""

PARAMETERS = [
    *batches.COMMON,
    Parameter("batch_size", 25, "paper", "section 5.1: b = 25 in figure 4(b)"),
    Parameter("network", "complete", "paper", "section 5.1: 4(a) and (b) on the fully connected network"),
    Parameter("step_sizes", ByScale([0.001, 0.004, 0.009], *2 * [[0.001, 0.002, 0.004, 0.006, 0.008, 0.009]]),
              "ours", "not printed; up to the step size of figure 4(a)"),
    Parameter("small_steps", ByScale([1e-7, 1e-5, 1e-4], [1e-8, 1e-6, 1e-5, 1e-4, 3e-4],
                                     [1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4]), "ours",
              "further step sizes of the middle panel, where Theorem 1 says something"),
    Parameter("set_steps", ByScale([0.004, 0.009], [0.002, 0.004, 0.009], [0.002, 0.004, 0.006, 0.009]),
              "ours", "step sizes at which the claims are judged on every data set"),
    Parameter("set_small_steps", [1e-6, 1e-5, 1e-4], "ours", "the same for the order of the error"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, replicas, speeds, limits, theorem, sets, starts, small, floor."""
    p = settings(PARAMETERS, scale)
    problem, mixing = linear.problem_of(p, p.data_seed, p.batch_size), fs.network.complete(p.n_clients)
    algorithms = {step: fs.DESGLD(step, mixing) for step in sorted({
        *p.small_steps, *p.step_sizes, *p.set_steps, *p.set_small_steps})}
    rows = de.empty("speeds", "limits", "theorem", "sets", "starts", "small")
    rows["speeds"] = [{"step_size": step, **batches.speeds(p, problem, algorithms[step])}
                      for step in p.step_sizes]
    for step in [*p.small_steps, *p.step_sizes]:
        note(f"limits, step size {step:g}")
        rows["limits"].append({"step_size": step, **batches.limits(p, problem, algorithms[step])})
        rows["theorem"] += batches.theorem_rows(p, problem, algorithms[step], step_size=step)
    for seed, noisy in linear.data_sets(p, p.batch_size):
        exact = linear.problem_of(p, seed)
        for step in p.set_steps:
            labels = {"data_set": seed, "step_size": step}
            rows["sets"].append(labels | batches.speeds(p, noisy, algorithms[step]))
            constants = batches.constants_of(p, exact, algorithms[step])
            status, *_, bound = de.applied(de.AGENTS, constants, algorithms[step])
            if bound is not None:  # without gradient noise
                rows["starts"].append({**labels, "covered": status == de.HOLD, "floor": bound.floor,
                                       "start": bound.start_distance})
        rows["small"] += [{"data_set": seed, "step_size": step, **batches.limits(p, noisy, algorithms[step])}
                          for step in p.set_small_steps]
    rows["floor"] = [{"floor": linear.floor_of(p, problem), "target_sd": linear.spread(problem.target())}]
    runs = [(problem, algorithms[step], {"step_size": step}) for step in p.step_sizes]
    return batches.simulated(p, runs) | de.tables_of(rows)


def _draw_curves(ax: Axes, tables: Tables) -> None:
    batches.draw_curves_by(ax, tables["curves"], "step_size", r"$\eta$ = {:g}".format,
                           "(b) agent 1, fully connected, b = 25; bands: replicas")


def _draw_limits(ax: Axes, tables: Tables) -> None:
    limits, theorem, facts = tables["limits"], tables["theorem"], tables["floor"].iloc[0]
    batches.draw_limits(ax, "step_size", limits, theorem, facts["floor"], tables["small"], tables["sets"])
    ax.axvline(facts["target_sd"] ** 2, color=plot.GREY, linewidth=1.0, linestyle=":",
               label="posterior's variance (its trace)")
    ax.set(xlabel=r"step size $\eta$", title="ours: the limits, and where Theorem 1 speaks",
           ylim=plot.room(float(limits["average"].min()), float(theorem["floor"].max()), 0.02))


def _draw_speeds(ax: Axes, tables: Tables) -> None:
    speeds, sets = tables["speeds"], tables["sets"]
    for column, (name, colour, marker) in batches.VIEWS.items():
        plot.exact(ax, speeds[f"{column}_settles"], speeds[column], colour, f"exact moments, {name}",
                   marker=marker, markersize=5)
    for i, row in enumerate(speeds.to_dict("records")):
        ax.annotate(f"{row['step_size']:g}", (row["average_settles"], row["average"]), fontsize=9,
                    textcoords="offset points", xytext=(5, 4) if i % 2 else (-5, -11),
                    ha="left" if i % 2 else "right")
    for column, (_, colour, marker) in batches.VIEWS.items():
        ax.plot(sets[f"{column}_settles"], sets[column], marker, color=colour, markersize=3, alpha=0.35,
                label=f"all {sets['data_set'].nunique()} data sets")
    ax.set(xscale="log", yscale="log", xlabel=r"iterations until $W_2$ stays within 5% of its limit",
           ylabel=r"limit of $W_2$", title=r"ours: the trade-off ($\eta$ at the points)",
           ylim=plot.room(float(speeds["average"].min()), float(speeds["agents"].max()), 0.02))


draw = batches.three(_draw_curves, _draw_limits, _draw_speeds)


def judge_trade(tables: Tables) -> Judgement:
    """Faster and less accurate with the step size, for agent, agents' mean and average, on every data set."""
    sets, names = tables["sets"].sort_values("step_size"), ["agent", "agents", "average"]
    limits, rounds = (np.array([one[columns] for _, one in sets.groupby("data_set")])
                      for columns in (names, [f"{name}_settles" for name in names]))
    worse = (np.diff(limits, axis=1) > 0.0).all(axis=(1, 2))
    faster = (np.diff(rounds, axis=1) <= 0.0).all(axis=(1, 2)) & (rounds[:, -1] < rounds[:, 0]).all(axis=1)
    first, last = (among(sets, step_size=sets["step_size"].agg(end)).median() for end in ("min", "max"))
    medians = [f"{name} {first[f'{name}_settles']:.0f} and {last[f'{name}_settles']:.0f} iterations at "
               f"{first[name]:.5f} and {last[name]:.5f}" for name in names]
    return Judgement(unanimous(worse & faster), (
        f"From eta = {first['step_size']:g} to {last['step_size']:g} limits rise {shares(worse)} and "
        f"the iterations to within 5% of them fall {shares(faster)}; medians: {'; '.join(medians)}."))


def judge_theorem(tables: Tables) -> Judgement:
    """Does Theorem 1's limit rise, where it covers the figure?"""
    theorem = among(tables["theorem"], quantity=de.AGENTS).sort_values("step_size")
    used = theorem[theorem["step_size"].isin(tables["speeds"]["step_size"]) & theorem["within_hypotheses"]]
    if len(used) < 2:
        return Judgement(OUTSIDE, f"Theorem 1 covers {len(used)} of the figure's step sizes.")
    steps = np.diff(used["floor"])
    return Judgement(unanimous(steps > 0.0, 1), (
        f"At {len(used)} of {len(tables['speeds'])} step sizes of the figure its hypotheses hold; its limit "
        f"for the agents goes from {used['floor'].iloc[0]:.3g} to {used['floor'].iloc[-1]:.3g}, upwards in "
        f"{int((steps > 0.0).sum())} of {len(steps)} steps."))


def judge_vacuous(tables: Tables) -> Judgement:
    """Is Theorem 1's limit nearer than the start, even without gradient noise?"""
    used = tables["starts"][tables["starts"]["covered"]]
    if used.empty:
        return Judgement(NOT_TESTABLE, f"Theorem 1 covers none of {len(tables['starts'])} cases.")
    near = used["floor"] < used["start"]
    all_near, none = claims.by_set(used, near), claims.by_set(used, ~near)
    verdict = PASS if unanimous(all_near) == PASS else FAIL if unanimous(none) == PASS else NOT_TESTABLE
    ratio = used["floor"] / used["start"]
    return Judgement(verdict, (
        f"Where its hypotheses hold its limit for the agents, without any gradient noise, is "
        f"{ratio.min():.3g} to {ratio.max():.3g} times the distance of the start, below it at every step "
        f"size {shares(all_near)} and at none {shares(none)}."))


def judge_order(tables: Tables) -> Judgement:
    """Is W2 / sqrt(eta) of the average bounded as eta falls?"""
    small = tables["small"].sort_values("step_size")
    bounded, powers = [], {name: list[float]() for name in ("average", "agents")}
    for _, one in groups(small, "data_set"):
        ratio = (one["average"] / np.sqrt(one["step_size"])).to_numpy()
        bounded.append(bool((np.diff(ratio) >= -claims.SAME * ratio[1:]).all()))
        for name, slopes in powers.items():
            slopes.append(loglog_slope(one["step_size"], one[name]).value)
    verdict = unanimous(bounded)
    ranges = [f"{min(slopes):.3f} to {max(slopes):.3f} ({name})" for name, slopes in powers.items()]
    return Judgement(verdict, (
        f"From eta = {small['step_size'].max():g} down to {small['step_size'].min():g} the average's limit "
        f"over sqrt(eta) does not rise {shares(bounded)}."), (
        f"True, not sharp: limits go like eta to the power {listed(ranges)}." if verdict == PASS else ""))


CLAIMS = [
    Claim("A larger step size converges faster to a region of less accuracy.", "section 5.1, figure 4(b)",
          judge_trade, name="trade_off", rests_on=DATA_SETS),
    Claim("as predicted by Theorem 1, read as the direction.", "section 5.1, figure 4(b)", judge_theorem,
          name="predicted", rests_on=DATA_SETS,
          context="Every term of the limit rises with eta and the factor 1 - mu eta of the first falls, "
                  "whatever the data; these decide only which step sizes are in its range."),
    Finding("At the figure's step sizes Theorem 1's limit is nearer than the start.", "Theorem 1",
            judge_vacuous, name="informative", rests_on=DATA_SETS,
            context="Gradient noise makes the limit larger, so that leaving it out is the kindest case."),
    Claim("The asymptotic error is of order sqrt(eta).", "Remark 2", judge_order, name="order",
          rests_on=DATA_SETS, context="O is an upper bound: W2 over sqrt(eta) stays bounded as eta falls."),
    claims.replicas_finding("exact moments"),
]
