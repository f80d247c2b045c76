"""FA-LD figures 2 and 4: scores of averaged predictions against communication rounds, by local steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, Unjudged, settings
from ..images import SETS, ImageData, usual_names
from ..prediction import data as rows, drawing as shown, judging, runs
from ..tables import among, groups
from ..verdicts import ROWS, Judgement

TITLE = "Accuracy, Brier score and calibration by local steps"
PAPER = "FA-LD figures 2 and 4"
REPRODUCES = ("FA-LD 2", "FA-LD 4")
SHOWS = ("Accuracy, Brier score and expected calibration error of averaged predictions of a softmax "
         "regression against communication rounds, with and without a warm-up.")
COST = {"tiny": "10 s", "quick": "40 s; 10 min (estimate) for each data set of --data",
        "paper": "1 h of one core, reduced"}
MNIST, FASHION = "mnist", "fashion"
DATA = (*usual_names(MNIST), *usual_names(FASHION))
PARTS = ("all samples", "after warm-up")
EXACT, FEW = "exact predictive", "few labels"
CALLED = {**SETS, rows.STAND_IN: "digits", rows.SUBSET: "MNIST, 5,000"}
BASELINE = 1
LABELS = {"last panel, solid: few labels a client": "-",
          "last panel, dotted: parts at random": (0, (1.2, 1.2))}
PARAMETERS = [
    Parameter("n_clients", 10, "paper", "section 6: N = 10 equal parts, drawn at random"),
    Parameter("temperature", 0.05, "paper", "appendix J: tau = 0.05"),
    Parameter("local_steps", ByScale([1, 20], [1, 10, 20, 50], [1, 10, 20, 50, 100]), "ours", "K",
              [1, 10, 20, 50, 100]),
    Parameter("every", 10, "paper", "section 6: a sample after every 10 rounds"),
    Parameter("batch_size", 200, "ours", "appendix J has 200, of 6,000 data a client; not used with digits, "
              "and all of a client's where it has fewer"),
    Parameter("digits_batch_size", 50, "ours", "used with digits, of which a client has 114", 200),
    Parameter("n_rounds", ByScale(40, 100, 150), "ours", "the paper scale is a reduction",
              "not printed, more than 500"),
    Parameter("warmup_samples", ByScale(1, 3, 6), "ours", "left out in figure 4", "500 rounds"),
    Parameter("steps", ByScale([2.4, 10.0, 40.0], [0.2, 0.8, 2.4, 5.0, 10.0, 20.0, 40.0],
                               [0.2, 0.8, 2.4, 5.0, 10.0, 20.0, 40.0]), "ours", "step sizes tried, times the "
              "inverse of the curvature at theta = 0; no grid is printed"),
    Parameter("tuned_on", "validation rows", "ours", "by log loss of the plotted average after all rounds, "
              "on rows that no client holds; the paper tunes for the best performance, read as the plotted "
              "statistic of the test rows (hollow)"),
    Parameter("n_runs", ByScale(2, 16, 16), "ours", "of each K, as many as fill a row of lanes; the paper "
              "seems to have one"),
    Parameter("prior_variance", 1.0, "ours", "of every weight; no prior is printed"),
    Parameter("energy", "sum over data", "ours", "not printed; of a mean only the prior would be left"),
    Parameter("label_steps", ByScale([0.2, 2.4, 10.0], [0.05, 0.2, 0.8, 2.4, 5.0, 10.0],
                                     [0.05, 0.2, 0.8, 2.4, 5.0, 10.0, 20.0]), "ours",
              "the same with clients that hold few labels"),
    Parameter("label_local_steps", [1, 50], "ours", "K with those clients"),
    Parameter("label_rounds", ByScale(40, 60, 100), "ours", "rounds with those clients"),
    Parameter("reference_chains", ByScale(8, 20, 40), "ours", "Metropolis-adjusted chains of the posterior"),
    Parameter("reference_draws", ByScale(10, 30, 100), "ours", "of each of them"),
    Parameter("reference_warmup", 10, "ours", "draws left out, from starts of the Laplace law"),
    Parameter("split_seed", 0, "ours", "of the division into clients, validation and test rows"),
    Parameter("tuning_seed", 1, "ours", "of the chains that are tuned"),
    Parameter("seed", 2, "ours", "of the runs, plus K; and of the exact predictive"),
    Parameter("bootstrap_seed", 3, "ours", "of rows drawn again"),
]


def compute(scale: str, files: Mapping[str, Path]) -> Tables:
    """Tables: tuning, tuning_curves, curves, compared, labels, facts, and distances where they can be had."""
    p = settings(PARAMETERS, scale)
    sets = rows.chosen(scale, files, (MNIST, FASHION))
    made = [{table: one.assign(set=name) for table, one in _tables(p, images).items()}
            for name, images in sets.items()]
    return runs.stacked(made)


def _tables(p: Any, images: ImageData) -> Tables:
    """All tables of one data set; figure 4 is tuned and run for itself, where its step size is another."""
    data = rows.dealt(images, p, rows.batch_size(p, images))
    cases = _cases(p, data, p.local_steps, p.n_rounds, p.steps)
    tries = runs.tried(data, cases, p.tuning_seed)
    made: list[Tables] = []
    steps, paths, ends = dict[int, float](), dict[int, np.ndarray](), dict[int, np.ndarray]()
    for part, left_out in zip(PARTS, (0, p.warmup_samples), strict=True):
        tuning, each = runs.tuned_on(data, tries, left_out)
        old, steps = steps, runs.chosen_steps(tuning)
        new = [case for case in cases if steps[case.value] != old.get(case.value)]
        paths = {case.value: paths[case.value] for case in cases if case not in new and case.value in paths}
        paths |= runs.run(data, new, tuning, p.seed, p.n_runs)
        curves, last = runs.curves(data, cases, paths, left_out)
        compared = runs.against(last, data, BASELINE, p.bootstrap_seed)
        made.append({name: table.assign(part=part) for name, table in {
            "curves": curves, "compared": compared, "tuning": tuning, "tuning_curves": each}.items()})
        ends = ends or last[p.n_rounds]
    by_label, own = _by_label(p, images)
    target, exact = runs.exact(data, p.temperature, p)
    made.append({"compared": own, "labels": by_label,
                 "facts": pd.DataFrame([runs.facts_of(data, part) | exact for part in PARTS])})
    if target is not None:
        table = runs.against({p.n_rounds: {0: target[None]} | ends}, data, 0, p.bootstrap_seed, known=[0])
        made.append({"compared": table.assign(part=EXACT), "distances": runs.distances(ends, target)})
    return runs.stacked(made)


def _cases(p: Any, data: runs.Data, local_steps: list[int], n_rounds: int,
           steps: list[float]) -> list[runs.Setting]:
    return [runs.Setting(k, partial(fs.FALD, local_steps=k, temperature=p.temperature), n_rounds, p.every,
                         steps, 1.0 / data.curvature) for k in local_steps]


def _by_label(p: Any, images: ImageData) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same with clients that hold few labels: tuning, and K = 1 against the largest K."""
    data = rows.dealt(images, p, rows.batch_size(p, images), by_label=True)
    cases = _cases(p, data, p.label_local_steps, p.label_rounds, p.label_steps)
    tuning, _ = runs.tuned(data, cases, p.tuning_seed)
    paths = runs.run(data, cases, tuning, p.seed, p.n_runs)
    _, last = runs.curves(data, cases, paths)
    own = runs.against(last, data, BASELINE, p.bootstrap_seed)
    return tuning, own.assign(part=FEW)


def draw(tables: Tables) -> Drawing:
    """Figure 2 above, figure 4 below; what the score rewards, and clients with few labels, on the right."""
    sets = judging.by_set(tables)
    drawing, axes = plot.panels(4, 3.2, 3.0, n_rows=2 * len(sets))
    for number, own in enumerate(sets.values()):
        above, below = axes[2 * number:2 * number + 2]
        _draw_set(above, below, own, f", {CALLED[own['facts']['set'].iloc[0]]}" if len(sets) > 1 else "")
    plot.legend_for(axes.ravel(), 3, (*shown.MARKS, *LABELS, shown.HALVES))
    drawing.suptitle("; ".join(sets) + ", 10 clients, parts drawn at random;\n"
                     "filled markers: means and standard deviations of runs")
    return drawing


def _draw_set(above: Any, below: Any, tables: Tables, name: str) -> None:
    """Both rows of one data set."""
    for row, part, figure in zip((above, below), PARTS, ("2", "4"), strict=True):
        for ax, score in zip(row, ("accuracy", "brier", "ece"), strict=False):
            shown.scores(ax, tables, part, score, "K", f"figure {figure}{name}: {part}")
    if len(tables.get("distances", ())):
        shown.variations(above[3], tables, "K")
    else:
        above[3].set_axis_off()
    _draw_labels(below[3], tables)


def _draw_labels(ax: Any, tables: Tables) -> None:
    """Brier score against the step size, clients with few labels beside those with parts drawn at random."""
    random = among(tables["tuning"], part=PARTS[0])
    look = shown.looks(sorted({*random["setting"], *tables["labels"]["setting"]}))
    for (who, line), table in zip(LABELS.items(), (tables["labels"], random), strict=True):
        for k, one in groups(table, "setting"):
            if k in set(tables["labels"]["setting"]):
                ax.plot(one["step"], one["brier"], linestyle=line, markersize=4, label=f"_K = {k}, {who}",
                        **look[k])
        ax.plot([], [], color=plot.GREY, linestyle=line, label=who)
    ax.set(xscale="log", xlabel="step size times curvature at 0", ylabel=judging.NAMES["brier"],
           title="ours: few labels, one chain")
    shown.plain_ticks(ax)


def judge_worst(tables: Tables, part: str, score: str, sets: Sequence[str] = (),
                every: bool = True) -> Judgement:
    """Is K = 1 the worst, or worse than some, with best step sizes inside the grid?"""
    return judging.on_sets(tables, lambda own: judging.claimed(
        among(own["compared"], part=part), [score], among(own["tuning"], part=part), "K", every), sets)


def judge_here(tables: Tables, part: str, score: str) -> Judgement:
    """Is it the worst after a quarter of the plotted rounds, on the data at hand?"""
    return judging.on_sets(tables, lambda own: judging.worst(
        judging.early(among(own["compared"], part=part)), [score]))


def judge_labels(tables: Tables) -> Judgement:
    """Is K = 1 better than many local steps where clients hold few labels?"""
    return judging.on_sets(tables, lambda own: judging.better(
        among(own["compared"], part=FEW), own["labels"], "brier", "K = 1", "K"))


def judge_reward(tables: Tables) -> Judgement:
    """Is a tuned chain better calibrated than the exact posterior predictive?"""
    return judging.on_sets(tables, lambda own: judging.beaten(among(own["compared"], part=EXACT), "ece",
                                                              "K", own["facts"]))


_ECE = (" Calibration errors are what so many test rows show, which few rows make too large, the more so the "
        "smaller they are.")
_OURS = ("Read after the last round, with the K tried, each tuned on the average of this figure by the log "
         "loss of validation rows. Intervals are of test rows, the same for all K, and of runs.")
_EARLY = "Step sizes are tuned for the last round. A quarter is counted from the first sample averaged."
_NEED = "Needs MNIST and Fashion-MNIST, and what is not printed: prior, step sizes, number of rounds."
_PLACES = {PARTS[0]: ("2", "section 6, figure 2"), PARTS[1]: ("4", "appendix J, figure 4")}


def _each() -> list[Claim | Finding]:
    """The paper's sentences and ours, for every score, with and without warm-up."""
    made: list[Claim | Finding] = []
    for part, (number, place) in _PLACES.items():
        budget, after = ("the same", "") if number == "2" else ("a fixed", " after a warm-up")
        for score in ("accuracy", "brier", "ece"):
            on_mnist, more = number == "4" and score == "ece", _ECE if score == "ece" else ""
            made += [Claim(f"Under {budget} communication budget, with tuned step sizes, K = 1 performs "
                           f"the worst in {judging.NAMES[score]}{after}"
                           f"{' (MNIST)' if on_mnist else ''}.",
                           place, partial(judge_worst, part=part, score=score,
                                          sets=(MNIST, rows.STAND_IN, rows.SUBSET) if on_mnist else ()),
                           f"worst_{score}_{number}", ROWS, _OURS + more, echo=judging.ECHO),
                     Finding("On the data at hand, after a quarter of the rounds, K = 1 is the worst of the "
                             f"K tried in {judging.NAMES[score]}{after}.", place,
                             partial(judge_here, part=part, score=score), f"early_{score}_{number}", ROWS,
                             _EARLY + more)]
    return made


CLAIMS = [
    *_each(),
    Claim("Under a fixed communication budget, with tuned step sizes, K = 1 does not perform the best in "
          "calibration error (ECE) after a warm-up (Fashion-MNIST).", "appendix J, figure 4",
          partial(judge_worst, part=PARTS[1], score="ece", sets=(FASHION, rows.STAND_IN, rows.SUBSET),
                  every=False),
          "not_best_ece_4", ROWS, _OURS + _ECE, echo=judging.ECHO),
    Unjudged("For different statistics the best K could be different; e.g., on MNIST it is between 50 and "
             "100 in accuracy and around 20 in Brier score.", "section 6, figure 2", _NEED, "optima"),
    Unjudged("Among K = 1, 10, 20, 50, 100, after the warm-up, the best K in accuracy, Brier score and ECE "
             "is 20, 20 and 20 (MNIST); 20, 10 and 50 (Fashion-MNIST).", "appendix J, figure 4", _NEED,
             "optima_warm"),
    Unjudged("The best K with a warm-up could be different from that without: e.g., in Brier score on "
             "Fashion-MNIST it is 100 without and 10 with a warm-up of 500 rounds, which indicates that the "
             "budget of communication also plays a role.", "appendix J, figure 4", _NEED, "moved"),
    Finding("Where clients hold few labels each, K = 1 has a smaller Brier score than K = 50, each at its "
            "tuned step size.", "section 6, figure 2", judge_labels, "few_labels", ROWS,
            "The paper's parts are drawn at random: its sentence is about those. Rows sorted by label and "
            "dealt in ten runs of equal length; step sizes tuned on validation rows."),
    Finding("For some K the tuned chains have a smaller calibration error than the exact posterior "
            "predictive.", "section 6, figure 2", judge_reward, "reward", ROWS,
            "Where it holds, the score rewards something else than closeness to the posterior. It rests on "
            "the exact predictive: Metropolis-adjusted Hamiltonian Monte Carlo at the same temperature, in "
            f"at most {runs.MOST_EXACT:,} dimensions, with {100 * runs.SANE[0]:.0f}% to "
            f"{100 * runs.SANE[1]:.0f}% of proposals accepted; its own Monte Carlo error is "
            "in no interval: the reason says how far halves of its chains are apart." + _ECE),
]
