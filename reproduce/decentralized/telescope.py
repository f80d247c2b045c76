"""DE-SGLD figures 9 and 10: accuracy along iterations on the MAGIC telescope's data.

Minibatches are scaled in both ways that the paper may mean: "unbiased" multiplies a minibatch's sum by
n_i / b, as its appendix D has it for the linear regression; "batch_sum" leaves the factor out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import fedsim as fs
from fedsim.data.magic import N_ROWS
from fedsim.stability.search import stability_radius

from ..figure import DATA_SETS, REPLICAS, ByScale, Claim, Finding, Panel, Parameter, Tables, note, settings
from ..quadratic_surrogate import surrogate
from ..tables import among
from ..verdicts import FAIL, MIN_SETS, NOT_TESTABLE, OUTSIDE, PASS, Judgement, shares, unanimous
from . import claims, logistic, logistic_drawing as drawn, logistic_figures as shared
from .shared import CONNECTED, NETWORKS, algorithm_on, empty, method_of, printed, tables_of
from .telescope_data import FILE, REAL, data_of
from .telescope_drawing import PARTS, SCALINGS, draw

SPOKEN = {"unbiased": "with n_i/b", "batch_sum": "with the minibatch's sum"}
LOOSE = {"curves": ("scaling", "unbiased", 0.03), "contrasts": ("scaling", "unbiased", 0.08)}
"""With n_i / b runs are unstable near the mode; a curve has 100 runs, a contrast 10."""
SHARED = [
    Parameter("n_clients", 6, "paper", "section 5.3: 6 parts"),
    Parameter("batch_size", 100, "paper", "figures 9 and 10: b = 100; drawn with replacement, "
              "as in appendix D"),
    Parameter("n_data_sets", MIN_SETS, "ours", "splits into training and test rows; curves are of the "
              "first"),
    shared.N_SET_RUNS,
    Parameter("test_share", 0.1, "paper", "section 5.3: test data have 10% of the data points"),
    *shared.SIMILAR,
    Parameter("n_data", ByScale(1900, N_ROWS, N_ROWS), "ours",
              "at most so many rows, in the order of `split_seed`; the file has 19,020"),
    Parameter("n_rounds", ByScale(20, 200, 1000), "ours", "iterations; not printed"),
    Parameter("every", ByScale(2, 4, 10), "ours", "iterations between two accuracies"),
    Parameter("features", "standardised on the training data, with an intercept", "ours",
              "dimension 11 is printed, preparation is not"),
    Parameter("scalings", list(SCALINGS), "ours", "n_i / b times a minibatch's sum, or the sum"),
    Parameter("agent", 0, "ours", "the paper's is randomly picked"), shared.START, shared.LABEL_SIGN,
    Parameter("split_seed", 0, "ours", "of split and dealing; the next one has the next seed"),
    Parameter("seed", 1, "ours", "of the runs, likewise"),
]


def parts_of(p: Any, data: logistic.Data, number: int,
             scaled: str = logistic.STANDARDISED) -> dict[str, logistic.Data]:
    """Training and test data of the `number`-th split, scaled as one of `logistic.FEATURES`."""
    features, labels, name = data
    order = np.random.default_rng(p.split_seed + number).permutation(len(labels))[:p.n_data]
    n_test = round(p.test_share * len(order))
    rows = dict(zip(PARTS, (order[n_test:], order[:n_test]), strict=True))
    # rounded: runs that amplify rounding errors then begin alike on every machine
    inputs = np.round(logistic.FEATURES[scaled](features, features[rows["training"]]), 9)
    return {part: logistic.Data(logistic.with_intercept(inputs[own]), labels[own], name)
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
    """Tables: curves, contrasts, stability, hypotheses, setting."""
    rows, data = empty("curves", "contrasts", "stability", "hypotheses", "setting"), data_of(p, files)
    whole = SimpleNamespace(**{**vars(p), "n_data": len(data.labels)})  # fewer rows would admit larger steps
    for number in range(p.n_data_sets):
        parts = parts_of(p, data, number)
        for scaling in SCALINGS:
            _add_runs(rows, p, number, parts, scaling)
        for name in logistic.FEATURES:
            training = parts_of(whole, data, number, name)["training"]
            logistic.add_hypotheses(rows, p, number, logistic.on_agents(training, p, number), features=name)
        if number == 0:
            rows["setting"].append(_setting(p, parts, number))
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


def _setting(p: Any, parts: Mapping[str, logistic.Data], number: int) -> dict[str, Any]:
    """What the first data are, and how draws of their posterior (Laplace) classify them."""
    train = parts["training"]
    exact = logistic.on_agents(train, p, number)
    draws = exact.laplace().sample(500, p.seed)
    facts = {"data": train.name, "n_training": len(train.labels), "n_test": len(parts["test"].labels),
             "dim": exact.dim, "share_of_ones": train.labels.mean(),
             "momentum": 1.0 - p.friction * p.step_size if hasattr(p, "friction") else 0.0}
    for part, data in parts.items():
        right = logistic.accuracies(draws, data)
        facts |= {f"posterior_{part}": right.mean(), f"sd_{part}": right.std(ddof=1)}
    return facts


def _better(tables: Tables, scaling: str) -> tuple[str, str]:
    """Connected against disconnected, training and test data."""
    pairs = list(product(PARTS, CONNECTED))
    table = among(tables["contrasts"], scaling=scaling)
    return shared.compared(
        drawn.wide(table, "difference", ["part", "network"])[pairs], "splits",
        [f"{part}, {NETWORKS[network].title}" for part, network in pairs])


def _rows(tables: Tables) -> str:
    """How a reason begins: with the name of rows that are not the telescope's."""
    name = tables["setting"]["data"].iloc[0]
    return "" if name == REAL else f"{name}. "


def judge_paper(tables: Tables) -> Judgement:
    """The paper's claim in either reading of its minibatches."""
    found = {words: _better(tables, scaling) for scaling, words in SPOKEN.items()}
    why = _rows(tables) + " ".join(f"{words.capitalize()}: {text}." for words, (_, text) in found.items())
    verdicts = {verdict for verdict, _ in found.values()}
    passing = [words for words, (verdict, _) in found.items() if verdict == PASS]
    if not passing:
        return Judgement(FAIL if verdicts == {FAIL} else NOT_TESTABLE, why)
    failing = [words for words, (verdict, _) in found.items() if verdict == FAIL]
    return Judgement(PASS, f"It is so {' and '.join(passing)}. {why}",
                     f"With our features it is the other way round {' and '.join(failing)}; the paper "
                     "prints no preparation." if failing else "")


def judge_range(tables: Tables) -> Judgement:
    """Is the step size in the theorem's range? It depends on the data, where some admit the momentum."""
    setting = tables["setting"].iloc[0]
    if setting["data"] == REAL:
        return claims.judge_range(tables)
    if setting["momentum"] > claims.MOST_MOMENTUM:
        return Judgement(OUTSIDE, f"The momentum 1 - friction*step_size is {setting['momentum']:.4g}: beyond "
                         "1/32, so that the theorem does not cover the figure, whatever the data.")
    table = among(tables["hypotheses"], features=logistic.STANDARDISED)
    return Judgement(NOT_TESTABLE, "What the theorem asks depends on the telescope's data, and these are "
                     f"{setting['data']}. With standardised features its hypotheses hold "
                     f"{claims.covered(table, brief=True)}.")


def judge_better(tables: Tables, scaling: str) -> Judgement:
    """Connected against disconnected with one scaling of the minibatches."""
    verdict, text = _better(tables, scaling)
    return Judgement(verdict, f"{_rows(tables)}{text}.")


def judge_unstable(tables: Tables) -> Judgement:
    """Radius of the linearised map."""
    radii = {scaling: drawn.wide(among(tables["stability"], scaling=scaling), "radius")
             for scaling in SCALINGS}
    good = (radii["unbiased"] > 1.0).all(axis=1)
    texts = [f"{SPOKEN[scaling]} {one.to_numpy().min():.3g} to {one.to_numpy().max():.3g}"
             for scaling, one in radii.items()]
    return Judgement(unanimous(good), f"{_rows(tables)}Radius: {', '.join(texts)}; above 1 with n_i/b on all "
                     f"networks {shares(good, 'splits')}.")


def _claims(method: str, theorem: str, number: str) -> list[Claim | Finding]:
    """Of figure `number`, which shows `method`."""
    static = f"{shared.LATE_TEXT} {shared.INTERVALS}"
    difference = f"Mean accuracy minus the disconnected network's. {static}"
    return [
        Claim(f"{method} performs better for fully connected and circular networks than for the disconnected "
              "one, on training and test data.", f"section 5.3, figure {number}", judge_paper,
              name="disconnected", rests_on=REPLICAS,
              context="Minibatches are scaled in two ways, and either suffices: times n_i/b, as "
                      "appendix D has it for the linear regression (the logistic one \"will be "
                      "similar\"), or as sums. The "
                      f"prior is section 5.2's. {static}",
              echo="Iterations and scaling of features, which are not printed, are ours: nothing here can "
                   "contradict the sentence."),
        claims.range_claim(theorem, number, claims.ILLUSTRATE, judge=judge_range, context=(
            f"{shared.assumed(theorem)} Minibatches are scaled by n_i/b; the intercept alone, if "
            "\"dimension 11\" counts one, makes L at least about n_i/4 (713 with all rows).")),
        Finding("With our features and minibatches scaled by n_i/b the printed step size is unstable near "
                "the posterior's mode, on every split.", f"figure {number}", judge_unstable, name="unstable",
                rests_on=DATA_SETS,
                context="Radius of the map of all agents with exact gradients, linearised at the mode; below "
                        "1 is stable. Straight tails of the loss keep the iterates finite beyond that, but "
                        "they do not settle."),
        Finding("With our features, connected networks perform better with minibatches scaled by n_i/b.",
                f"figure {number}", partial(judge_better, scaling="unbiased"),
                name="better_as_defined", rests_on=REPLICAS, context=difference),
        Finding("With our features, connected networks perform better with sums of minibatches, without the "
                "factor n_i/b.",
                f"figure {number}", partial(judge_better, scaling="batch_sum"),
                name="better_with_sums", rests_on=REPLICAS, context=difference),
    ]


def _panel(number: str, own: list[Parameter]) -> Panel:
    parameters, (method, theorem) = [*own, *SHARED], method_of(item.name for item in own)
    return Panel(
        TITLE="Accuracy of one agent, MAGIC telescope data", PAPER=f"{method} figure {number}",
        SHOWS=("Bayesian logistic regression on the MAGIC telescope's data: accuracy of one agent on "
               "training and test data, minibatches scaled in two ways."),
        COST={"tiny": "4 s", "quick": "12 s", "paper": "1 min (estimated)"}, REPRODUCES=(f"DE {number}",),
        DATA=(FILE,), LOOSE=LOOSE, UNSTABLE=True, PARAMETERS=parameters, draw=draw,
        CLAIMS=_claims(method, theorem, number),
        compute=lambda scale, files: compute(settings(parameters, scale), files))


FIGURES = {"fig9": _panel("9", printed("figure 9", 0.008)),
           "fig10": _panel("10", printed("figure 10", 0.07, 5.0))}
