"""DE-SGLD figures 9 and 10: accuracy along iterations on the MAGIC telescope's data, or a stand-in.

Minibatches are scaled in both ways that the paper may mean: "unbiased" multiplies a minibatch's sum by
n_i / b, as its section 5 defines it; "batch_sum" leaves the factor out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.special import expit

import fedsim as fs
from fedsim.data.magic import N_FEATURES, N_ROWS, read_magic
from fedsim.stability.search import stability_radius

from .. import plot
from ..data import read
from ..figure import ByScale, Claim, Drawing, Finding, Panel, Parameter, Tables, note, settings
from ..surrogate import surrogate
from ..tables import among
from ..verdicts import DATA_SETS, FAIL, MIN_SETS, NOT_TESTABLE, PASS, REPLICAS, Judgement, shares, unanimous
from . import claims, logistic, logistic_drawing as drawn, logistic_figures as shared
from .shared import CONNECTED, NETWORKS, algorithm_on, empty, method_of, printed, tables_of

FILE = "magic04.data"
STAND_IN = "SYNTHETIC STAND-IN"
REAL = "MAGIC telescope"
SCALINGS = ("unbiased", "batch_sum")
PARTS = ("training", "test")
NAMES = {"unbiased": "sum times $n_i/b$", "batch_sum": "minibatch sum"}
SPOKEN = {"unbiased": "with n_i/b as defined", "batch_sum": "with the minibatch's sum"}
LOOSE = {"curves": ("scaling", "unbiased", 0.03), "contrasts": ("scaling", "unbiased", 0.08)}
"""With n_i / b runs are unstable near the mode; a curve has 100 runs, a contrast 10."""
SHARED = [
    Parameter("n_clients", 6, "paper", "section 5.3: 6 parts"),
    Parameter("batch_size", 100, "paper", "figures 9 and 10: b = 100; drawn with replacement"),
    shared.N_RUNS,
    Parameter("n_data_sets", MIN_SETS, "ours", "stand-ins, or splits of the file; curves are of the first"),
    shared.N_SET_RUNS,
    Parameter("test_share", 0.1, "paper", "section 5.3: test data have 10% of the data points"), shared.PRIOR,
    Parameter("n_data", ByScale(1900, N_ROWS, N_ROWS), "ours",
              "rows of the stand-in, or the first so many of the file in the order of `split_seed`"),
    Parameter("n_rounds", ByScale(20, 200, 1000), "ours", "iterations; not printed"),
    Parameter("every", ByScale(2, 4, 10), "ours", "iterations between two accuracies"),
    Parameter("features", "standardised on the training data, with an intercept", "ours",
              "dimension 11 is printed, preparation is not"),
    Parameter("scalings", list(SCALINGS), "ours", "n_i / b times a minibatch's sum, as defined, or the sum"),
    Parameter("agent", 0, "ours", "the paper's is randomly picked"), shared.START, shared.LABEL_SIGN,
    Parameter("split_seed", 0, "ours", "of split and dealing; the next one has the next seed"),
    Parameter("data_seed", 0, "ours", "of the stand-in, likewise"),
    Parameter("seed", 1, "ours", "of the runs, likewise"),
]


def stand_in(n_data: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, 10) and labels, two thirds of them 1 as in the telescope's data; not those data.

    Three factors and noise of their own make ten correlated features, half of them skewed; the label's
    logit is linear in them but for a product of two factors, which no linear classifier sees, so that
    about three quarters can be classified rightly.
    """
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_data, 3))
    raw = factors @ rng.standard_normal((3, N_FEATURES)) + 0.7 * rng.standard_normal((n_data, N_FEATURES))
    raw /= np.sqrt(raw.var(axis=0))
    features = np.where(np.arange(N_FEATURES) < N_FEATURES // 2, np.exp(0.7 * raw), raw)
    scores = logistic.standardised(features) @ (0.5 * rng.standard_normal(N_FEATURES))
    logits = 1.5 * scores / scores.std() + 1.2 * factors[:, 0] * factors[:, 1]
    return features, (rng.random(n_data) < expit(logits + 0.95)).astype(np.float64)


def parts_of(p: Any, data: logistic.Data, number: int) -> dict[str, logistic.Data]:
    """Training and test data of the `number`-th split."""
    features, labels, name = data
    order = np.random.default_rng(p.split_seed + number).permutation(len(labels))[:p.n_data]
    n_test = round(p.test_share * len(order))
    rows = dict(zip(PARTS, (order[n_test:], order[:n_test]), strict=True))
    # rounded: runs that amplify rounding errors then begin alike on every machine
    scaled = np.round(logistic.standardised(features, features[rows["training"]]), 9)
    return {part: logistic.Data(logistic.with_intercept(scaled[own]), labels[own], name)
            for part, own in rows.items()}


def local_radius(problem: fs.LogisticRegression, network: str, p: Any) -> float:
    """Radius of the map of all agents, linearised at the mode of what they follow, without gradient noise.

    A likelihood with the factor s in front and the prior's variance lambda is s times one with the
    variance s lambda: its mode is that posterior's, and s goes to the step size.
    """
    share, algorithm = float(problem.followed_share.min()), algorithm_on(network, p)
    near = surrogate(fs.LogisticRegression(problem.features, problem.labels, problem.clients,
                                           prior_variance=problem.prior_variance * share))
    if isinstance(algorithm, fs.DESGHMC):
        root = float(np.sqrt(share))
        return stability_radius(near, fs.DESGHMC(p.step_size * root, p.friction / root, algorithm.mixing))
    return stability_radius(near, fs.DESGLD(p.step_size * share, algorithm.mixing))


def compute(p: Any, files: Mapping[str, Path]) -> Tables:
    """Tables: curves, contrasts, stability, hypotheses, assumptions, setting."""
    telescope = logistic.Data(*read(read_magic, files[FILE]), REAL) if FILE in files else None
    rows = empty("curves", "contrasts", "stability", "hypotheses", "assumptions", "setting")
    for number in range(p.n_data_sets):
        data = telescope or logistic.Data(*stand_in(p.n_data, p.data_seed + number), STAND_IN)
        parts = parts_of(p, data, number)
        for scaling in SCALINGS:
            _add_runs(rows, p, number, parts, scaling)
        exact = logistic.on_agents(parts["training"], p, number)
        logistic.add_hypotheses(rows, p, number, exact)
        if number == 0:
            rows["setting"].append(_setting(p, parts, exact))
    return tables_of(rows)


def _add_runs(rows: logistic.Rows, p: Any, number: int, parts: Mapping[str, logistic.Data],
              scaling: str) -> None:
    """Runs of one agent on the data of this number; the first ones make the curves."""
    problem = logistic.on_agents(parts["training"], p, number, grad_scale=scaling)
    accuracy: dict[str, dict[str, np.ndarray]] = {part: {} for part in parts}
    for name, network in NETWORKS.items():
        note(f"{network.title} network, {scaling}, {number + 1} of {p.n_data_sets}")
        path = logistic.paths(p, problem, algorithm_on(name, p), number, p.every)
        labels = {"network": name, "scaling": scaling}
        for part, data in parts.items():
            if number == 0:
                rows["curves"].append(logistic.curve(logistic.accuracies(path, data), p.every, network=name,
                                                     part=part, scaling=scaling))
            accuracy[part][name] = logistic.accuracies(logistic.late(path)[:p.n_set_runs], data).mean(axis=1)
        rows["stability"].append({"data_set": number, **labels, "radius": local_radius(problem, name, p)})
    for part in parts:
        rows["contrasts"] += logistic.contrasts(accuracy[part], data_set=number, part=part, scaling=scaling)


def _setting(p: Any, parts: Mapping[str, logistic.Data], exact: fs.LogisticRegression) -> dict[str, Any]:
    """What the first data are, and how draws of their posterior (Laplace) classify them."""
    train, draws = parts["training"], exact.laplace().sample(500, p.seed)
    facts = {"data": train.name, "units": "stand-in data sets" if train.name == STAND_IN else "splits",
             "n_training": len(train.labels), "n_test": len(parts["test"].labels), "dim": exact.dim,
             "share_of_ones": train.labels.mean()}
    for part, data in parts.items():
        right = logistic.accuracies(draws, data)
        facts |= {f"posterior_{part}": right.mean(), f"sd_{part}": right.std(ddof=1)}
    return facts


def data_of(tables: Tables) -> str:
    """STAND_IN or REAL."""
    return str(tables["setting"]["data"].iloc[0])


def draw(tables: Tables) -> Drawing:
    """Training data, test data, a network in each column; below, differences on all data sets."""
    drawing = Drawing(figsize=(15.6, 13.8), layout="constrained")
    axes = drawing.subplot_mosaic([list("aabbcc"), list("ddeeff"), list("ggghhh")])
    facts, curves = tables["setting"].iloc[0], tables["curves"]
    low = (curves["mean"] - curves["sd"].where(curves["scaling"] == "batch_sum", 0.0)).min() - 0.03
    limits = low, max(facts["posterior_training"], facts["posterior_test"]) + 0.035
    for letter, (part, name) in zip("abcdef", product(PARTS, NETWORKS), strict=True):
        ax, network = axes[letter], NETWORKS[name]
        drawn.draw_posterior(ax, facts[f"posterior_{part}"], facts[f"sd_{part}"], "Laplace")
        for scaling, colour, line in (("unbiased", plot.GREY, "--"), ("batch_sum", network.colour, "-")):
            one = among(curves, network=name, part=part, scaling=scaling)
            drawn.draw_curve(ax, one, colour, NAMES[scaling], line, band=scaling == "batch_sum")
        ax.set(ylim=limits, xlabel="iteration k", title=f"({letter}) {network.title}: {part} data",
               ylabel=f"accuracy, {part} data" if letter in "ad" else "")
        if data_of(tables) == STAND_IN:
            ax.text(0.5, 0.97, STAND_IN, transform=ax.transAxes, ha="center", va="top", fontsize=13,
                    fontweight="bold", color=plot.GREY, alpha=0.75, zorder=0)
    for letter, scaling in zip("gh", SCALINGS, strict=True):
        _differences(axes[letter], tables, scaling, letter)
    for letter in "defgh":
        drawn.legend_below(axes[letter], 2 if letter in "gh" else 1)
    if data_of(tables) == STAND_IN:
        drawing.suptitle(f"{STAND_IN}, not the telescope's data: give the file with --data magic04.data")
    return drawing


def _differences(ax: Axes, tables: Tables, scaling: str, letter: str) -> None:
    table = among(tables["contrasts"], scaling=scaling)
    for place, (part, name) in zip((-0.24, -0.08, 0.08, 0.24), product(PARTS, CONNECTED), strict=True):
        drawn.draw_differences(ax, among(table, part=part, network=name), NETWORKS[name], place,
                               f"{NETWORKS[name].title}, {part} data", linewidth=1.0,
                               fillstyle="full" if part == PARTS[0] else "none")
    ax.axhline(0.0, color="#000000", linewidth=0.8)
    radius = among(tables["stability"], scaling=scaling)["radius"]
    ax.set(xlabel=f"number of the {drawn.unit_of(tables)} (bars: 95%, from its runs)",
           title=f"({letter}) {NAMES[scaling]}; radius at the mode {radius.min():.3g} to {radius.max():.3g}")


def _better(tables: Tables, scaling: str) -> tuple[str, str]:
    """Connected against disconnected, training and test data."""
    pairs = list(product(PARTS, CONNECTED))
    table = drawn.wide(among(tables["contrasts"], scaling=scaling), "difference", ["part", "network"])
    return shared.compared(table[pairs], drawn.units_of(tables),
                           [f"{part}, {NETWORKS[name].title}" for part, name in pairs])


def judge_paper(tables: Tables) -> Judgement:
    """The paper's claim in either reading of its minibatches; only on its data."""
    if data_of(tables) != REAL:
        return Judgement(NOT_TESTABLE, f"The data are a {STAND_IN}: give the telescope's file with --data.")
    verdicts, texts = zip(*[_better(tables, scaling) for scaling in SCALINGS], strict=True)
    why = [f"{words.capitalize()}: {text}." for words, text in zip(SPOKEN.values(), texts, strict=True)]
    passing = [words for words, verdict in zip(SPOKEN.values(), verdicts, strict=True) if verdict == PASS]
    verdict = PASS if passing else FAIL if set(verdicts) == {FAIL} else NOT_TESTABLE
    return Judgement(verdict, " ".join(why), f"It passes {' and '.join(passing)}." if passing else "")


def judge_better(tables: Tables, scaling: str) -> Judgement:
    """Connected against disconnected with one scaling of the minibatches."""
    verdict, text = _better(tables, scaling)
    return Judgement(verdict, f"Mean accuracy minus the disconnected network's, {data_of(tables)}: {text}.")


def judge_unstable(tables: Tables) -> Judgement:
    """Radius of the linearised map."""
    table = tables["stability"]
    radii = {scaling: drawn.wide(among(table, scaling=scaling), "radius") for scaling in SCALINGS}
    good = (radii["unbiased"] > 1.0).all(axis=1)
    texts = [f"{SPOKEN[scaling]} {one.to_numpy().min():.3g} to {one.to_numpy().max():.3g}"
             for scaling, one in radii.items()]
    return Judgement(unanimous(good), f"Radius, {data_of(tables)}: {', '.join(texts)}; above 1 as defined "
                     f"on all networks {shares(good, drawn.units_of(tables))}.")


def _claims(method: str, theorem: str, number: str) -> list[Claim | Finding]:
    """Of figure `number`, which shows `method`."""
    static = f"{shared.LATE_TEXT} {shared.INTERVALS}"
    return [
        Claim(f"{method} performs better for fully connected and circular networks than for the disconnected "
              "one, on training and test data.", f"section 5.3, figure {number}", judge_paper,
              name="disconnected", rests_on=REPLICAS,
              context="Minibatches are scaled in two ways, and either suffices: times n_i/b, as section 5 "
                      f"defines them, or as sums. {static}"),
        claims.assumptions_claim(number, shared.ASSUMED, "" if number == "9" else "de_fig9", 1),
        claims.range_claim(theorem, number, claims.ILLUSTRATE, context=(
            "Minibatches scaled as defined. The multiples are those of the data at hand; an intercept alone, "
            "which \"dimension 11\" suggests, makes L at least about n_i/4 (713 with all rows), whatever "
            "the data.")),
        Finding("With minibatches scaled as defined the printed step size is unstable near the posterior's "
                "mode, on every data set at hand.", f"figure {number}", judge_unstable, name="unstable",
                rests_on=DATA_SETS,
                context="Radius of the map of all agents with exact gradients, linearised at the mode; below "
                        "1 is stable. Straight tails of the loss keep the iterates finite beyond that, but "
                        "they do not settle."),
        Finding("On the data at hand, connected networks perform better with minibatches scaled as "
                "defined.", f"figure {number}", partial(judge_better, scaling="unbiased"),
                name="better_as_defined", rests_on=REPLICAS, context=static),
        Finding("On the data at hand, connected networks perform better with sums of minibatches, without "
                "the factor n_i/b.", f"figure {number}", partial(judge_better, scaling="batch_sum"),
                name="better_with_sums", rests_on=REPLICAS, context=static),
    ]


def _panel(number: str, own: list[Parameter]) -> Panel:
    parameters, (method, theorem) = [*own, *SHARED], method_of(item.name for item in own)
    return Panel(
        TITLE="Accuracy of one agent, MAGIC telescope data or a stand-in", PAPER=f"{method} figure {number}",
        SHOWS=("Bayesian logistic regression on the MAGIC telescope's data (--data magic04.data; a SYNTHETIC "
               "STAND-IN otherwise): accuracy of one agent on training and test data, minibatches scaled in "
               "two ways."),
        COST={"tiny": "3 s", "quick": "6 s", "paper": "40 s (estimated)"}, REPRODUCES=(f"DE {number}",),
        DATA=(FILE,), LOOSE=LOOSE, UNSTABLE=True, PARAMETERS=parameters, draw=draw,
        CLAIMS=_claims(method, theorem, number),
        compute=lambda scale, files: compute(settings(parameters, scale), files))


FIGURES = {"fig9": _panel("9", printed("figure 9", 0.008)),
           "fig10": _panel("10", printed("figure 10", 0.07, 5.0))}
