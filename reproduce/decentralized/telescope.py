"""Figures 9 and 10 of the decentralized paper: accuracy on the MAGIC telescope's data, or a stand-in.

Minibatches are scaled in both ways that the paper may mean: "unbiased" multiplies a minibatch's sum by
n_i / b, as its section 5 defines it; "batch_sum" leaves the factor out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import fedsim as fs
from fedsim.data.magic import N_FEATURES, N_ROWS, read_magic
from fedsim.stability.search import stability_radius

from ..data import read
from ..figure import ByScale, Parameter, Tables, note
from ..surrogate import surrogate
from ..verdicts import MIN_SETS
from . import logistic, shared as de

FILE = "magic04.data"
STAND_IN = "SYNTHETIC STAND-IN"
REAL = "MAGIC telescope"
SCALINGS = ("unbiased", "batch_sum")
PARTS = ("training", "test")
LOOSE = {"curves": ("scaling", "unbiased", 0.03), "contrasts": ("scaling", "unbiased", 0.08)}
"""With n_i / b runs are unstable near the mode; a curve has 100 runs, a contrast 10."""
SHARED = [
    Parameter("n_clients", 6, "paper", "section 5.3: 6 parts"),
    Parameter("batch_size", 100, "paper", "figures 9 and 10: b = 100; drawn with replacement"),
    Parameter("n_runs", ByScale(12, 100, 100), "paper", "section 5.2: 100 independent runs; of the curves"),
    Parameter("n_data_sets", MIN_SETS, "ours", "stand-ins, or splits of the file; curves are of the first"),
    Parameter("n_set_runs", ByScale(6, 10, 20), "ours", "runs on each of them, in pairs between networks"),
    Parameter("test_share", 0.1, "paper", "section 5.3: test data have 10% of the data points"),
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
    Parameter("n_data", ByScale(1900, N_ROWS, N_ROWS), "ours",
              "rows of the stand-in, or the first so many of the file in the order of `split_seed`"),
    Parameter("n_rounds", ByScale(20, 200, 1000), "ours", "iterations; not printed"),
    Parameter("every", ByScale(2, 4, 10), "ours", "iterations between two accuracies"),
    Parameter("features", "standardised on the training data, with an intercept", "ours",
              "dimension 11 is printed, preparation is not"),
    Parameter("scalings", list(SCALINGS), "ours", "n_i / b times a minibatch's sum, as defined, or the sum"),
    Parameter("agent", 0, "ours", "the paper's is randomly picked"),
    Parameter("start", 0.0, "ours", "all agents start at the origin; not printed"),
    Parameter("label_sign", "corrected", "ours", "the loss of (55) is that of y = 1 for every label"),
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


def source_of(p: Any, files: Mapping[str, Path]) -> Callable[[int], logistic.Data]:
    """The data of a number: the file's, or another stand-in for each."""
    if FILE not in files:
        return lambda number: logistic.Data(*stand_in(p.n_data, p.data_seed + number), STAND_IN)
    data = logistic.Data(*read(read_magic, files[FILE]), REAL)
    return lambda number: data


def parts_of(p: Any, data: logistic.Data, number: int) -> dict[str, logistic.Data]:
    """Training and test data of the `number`-th split."""
    features, labels, name = data
    order = np.random.default_rng(p.split_seed + number).permutation(len(labels))[:p.n_data]
    n_test = round(p.test_share * len(order))
    train = features[order[n_test:]]
    # rounded: runs that amplify rounding errors then begin alike on every machine
    return {part: logistic.Data(logistic.with_intercept(np.round(logistic.standardised(
        features[rows], train), 9)), labels[rows], name)
        for part, rows in zip(PARTS, (order[n_test:], order[:n_test]), strict=True)}


def local_radius(problem: fs.LogisticRegression, network: str, p: Any) -> float:
    """Radius of the map of all agents, linearised at the mode of what they follow, without gradient noise.

    A likelihood with the factor s in front and the prior's variance lambda is s times one with the
    variance s lambda: its mode is that posterior's, and s goes to the step size.
    """
    share, algorithm = float(problem.followed_share.min()), de.algorithm_on(network, p)
    near = surrogate(fs.LogisticRegression(problem.features, problem.labels, problem.clients,
                                           prior_variance=problem.prior_variance * share))
    if isinstance(algorithm, fs.DESGHMC):
        root = float(np.sqrt(share))
        return stability_radius(near, fs.DESGHMC(p.step_size * root, p.friction / root, algorithm.mixing))
    return stability_radius(near, fs.DESGLD(p.step_size * share, algorithm.mixing))


def compute(p: Any, files: Mapping[str, Path]) -> Tables:
    """Tables: curves, contrasts, stability, hypotheses, assumptions, setting."""
    source = source_of(p, files)
    rows: logistic.Rows = {name: [] for name in ("curves", "contrasts", "stability", "hypotheses",
                                                 "assumptions", "setting")}
    for number in range(p.n_data_sets):
        parts = parts_of(p, source(number), number)
        for scaling in SCALINGS:
            _add_runs(rows, p, number, parts, scaling)
        exact = logistic.on_agents(parts["training"], p, number)
        logistic.add_hypotheses(rows, p, number, exact)
        if number == 0:
            rows["setting"].append(_setting(p, parts, exact))
    return de.tables_of(rows)


def _add_runs(rows: logistic.Rows, p: Any, number: int, parts: Mapping[str, logistic.Data],
              scaling: str) -> None:
    """Runs of one agent on the data of this number; the first ones make the curves."""
    problem = logistic.on_agents(parts["training"], p, number, grad_scale=scaling)
    accuracy: dict[str, dict[str, np.ndarray]] = {part: {} for part in parts}
    for name, network in de.NETWORKS.items():
        note(f"{network.title} network, {scaling}, {number + 1} of {p.n_data_sets}")
        path = logistic.paths(p, problem, de.algorithm_on(name, p), number, p.every)
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
