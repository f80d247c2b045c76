"""Figures 9 and 10 of the decentralized paper: accuracy on the MAGIC telescope's data, or a stand-in.

Minibatches are scaled in both ways that the paper may mean: "unbiased" multiplies a minibatch's sum by
n_i / b, as its section 5 defines it; "batch_sum" leaves the factor out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import fedsim as fs
from fedsim.data.magic import N_FEATURES, N_ROWS, read_magic
from fedsim.stability.search import stability_radius

from ..data import read
from ..figure import ByScale, Parameter, Tables, note
from ..surrogate import surrogate
from ..verdicts import MIN_SETS
from .logistic import (
    LATE,
    Data,
    accuracies,
    assumed_row,
    contrasts,
    curve,
    late,
    on_agents,
    range_row,
    standardised,
    with_intercept,
)
from .shared import NETWORKS

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
    scores = standardised(features) @ (0.5 * rng.standard_normal(N_FEATURES))
    logits = 1.5 * scores / scores.std() + 1.2 * factors[:, 0] * factors[:, 1]
    return features, (rng.random(n_data) < expit(logits + 0.95)).astype(np.float64)


def source_of(p: Any, files: Mapping[str, Path]) -> Callable[[int], tuple[np.ndarray, np.ndarray, str]]:
    """Features, labels and name of the data of a number: the file's, or another stand-in for each."""
    if FILE not in files:
        return lambda number: (*stand_in(p.n_data, p.data_seed + number), STAND_IN)
    features, labels = read(read_magic, files[FILE])
    return lambda number: (features, labels, REAL)


def parts_of(p: Any, data: tuple[np.ndarray, np.ndarray, str], number: int) -> tuple[Data, Data]:
    """Training and test data of the `number`-th split."""
    features, labels, name = data
    order = np.random.default_rng(p.split_seed + number).permutation(len(labels))[:p.n_data]
    held = round(p.test_share * len(order))
    test, train = order[:held], order[held:]
    # rounded: runs that amplify rounding errors then begin alike on every machine
    made = [Data(with_intercept(np.round(standardised(features[rows], features[train]), 9)), labels[rows],
                 name) for rows in (train, test)]
    return made[0], made[1]


def at_the_mode(problem: fs.LogisticRegression) -> fs.Quadratic:
    """The clients' quadratic expansions at the mode of what all agents follow.

    A likelihood with the factor s in front and the prior's variance lambda is s times one with the
    variance s lambda: its mode is that posterior's, and s goes to the step size.
    """
    share = float(problem.followed_share.min())
    return surrogate(fs.LogisticRegression(problem.features, problem.labels, problem.clients,
                                           prior_variance=problem.prior_variance * share))


def local_radius(near: fs.Quadratic, share: float, algorithm: Any) -> float:
    """Radius of the map of all agents, linearised at the mode, without gradient noise."""
    step = float(algorithm.step_size)
    if isinstance(algorithm, fs.DESGHMC):
        root = float(np.sqrt(share))
        damped = fs.DESGHMC(step * root, algorithm.friction / root, algorithm.mixing)
        return stability_radius(near, damped)
    return stability_radius(near, fs.DESGLD(step * share, algorithm.mixing))


def compute(p: Any, files: Mapping[str, Path], algorithm_on: Callable[[Any], Any]) -> Tables:
    """Tables: curves, contrasts, stability, hypotheses, assumptions, setting."""
    source = source_of(p, files)
    parts = [_on_one_set(p, number, *parts_of(p, source(number), number), algorithm_on)
             for number in range(p.n_data_sets)]
    found = {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]}
    return {**found, "setting": pd.DataFrame([_setting(p, *parts_of(p, source(0), 0))])}


def _on_one_set(p: Any, number: int, train: Data, test: Data,
                algorithm_on: Callable[[Any], Any]) -> dict[str, pd.DataFrame]:
    """Runs of one agent on the data of this number; the first ones make the curves."""
    curves, differences, stability = [], [], []
    is_first = number == 0
    for scaling in SCALINGS:
        problem = on_agents(train, p, number, grad_scale=scaling)
        near, share = at_the_mode(problem), float(problem.followed_share.min())
        kept: dict[str, dict[str, np.ndarray]] = {part: {} for part in PARTS}
        for name, network in NETWORKS.items():
            note(f"{network.title} network, {scaling}, {number + 1} of {p.n_data_sets}")
            algorithm = algorithm_on(network.mixing(p.n_clients))
            path = fs.sample_path(problem, algorithm, p.n_rounds, seed=p.seed + number, every=p.every,
                                  n_chains=p.n_runs if is_first else p.n_set_runs, client=p.agent,
                                  allow_unstable=True)
            if not is_first:  # only the last quarter is looked at
                path = path[:, -max(1, int(LATE * path.shape[1])):]
            for part, data in zip(PARTS, (train, test), strict=True):
                found = accuracies(path, data)
                if is_first:
                    curves.append(curve(found, p.every).assign(network=name, part=part, scaling=scaling))
                kept[part][name] = late(found[:p.n_set_runs]) if is_first else (
                    found[:p.n_set_runs].mean(axis=1))
            stability.append({"data_set": number, "network": name, "scaling": scaling,
                              "radius": local_radius(near, share, algorithm)})
        for part in PARTS:
            differences += contrasts(kept[part], data_set=number, part=part, scaling=scaling)
    exact = on_agents(train, p, number)
    hypotheses = [range_row(exact, algorithm_on(network.mixing(p.n_clients)), data_set=number, network=name)
                  for name, network in NETWORKS.items()]
    tables = {"contrasts": differences, "stability": stability, "hypotheses": hypotheses,
              "assumptions": [assumed_row(exact, data_set=number)]}
    return {"curves": pd.concat(curves) if curves else pd.DataFrame(),
            **{name: pd.DataFrame(rows) for name, rows in tables.items()}}


def _setting(p: Any, train: Data, test: Data) -> dict[str, Any]:
    """What the first data are, and how draws of their posterior (Laplace) classify them."""
    exact = on_agents(train, p)
    draws = exact.laplace().sample(500, p.seed)
    seen = [accuracies(draws, data) for data in (train, test)]
    return {"data": train.name, "units": "stand-in data sets" if train.name == STAND_IN else "splits",
            "n_training": len(train.labels), "n_test": len(test.labels), "dim": exact.dim,
            "share_of_ones": float(train.labels.mean()),
            "posterior_training": seen[0].mean(), "sd_training": seen[0].std(ddof=1),
            "posterior_test": seen[1].mean(), "sd_test": seen[1].std(ddof=1)}
