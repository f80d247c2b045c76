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
import theory
from fedsim.problems.magic import N_FEATURES, N_ROWS, read_magic

from ._data import read
from ._de_logistic import (
    Data,
    accuracies,
    contrasts,
    curve,
    late,
    on_agents,
    standardised,
    theorems,
    with_intercept,
)
from ._decentralized import NETWORKS, judgement, judgement_row
from ._fa_hmc_logistic import surrogate
from .figure import ByScale, Parameter, note

FILE = "magic04.data"
STAND_IN = "SYNTHETIC STAND-IN"
REAL = "MAGIC telescope"
SCALINGS = ("unbiased", "batch_sum")
PARTS = ("training", "test")
LOOSE = {"curves": ("scaling", "unbiased", 0.03), "contrasts": ("scaling", "unbiased", 0.02)}
"""With n_i / b runs are unstable near the mode."""
SHARED = [
    Parameter("n_clients", 6, "paper", "section 5.3: 6 parts"),
    Parameter("batch_size", 100, "paper", "figures 9 and 10: b = 100; drawn with replacement"),
    Parameter("n_runs", ByScale(12, 100, 100), "paper", "section 5.2: 100 independent runs"),
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
    Parameter("split_seed", 0, "ours", "of the split, and of the order in which data are dealt to agents"),
    Parameter("data_seed", 0, "ours", "of the stand-in"),
    Parameter("seed", 1, "ours", "of the runs"),
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


def parts_of(p: Any, files: Mapping[str, Path]) -> tuple[Data, Data]:
    """Training and test data."""
    if FILE in files:
        features, labels = read(read_magic, files[FILE])
        name = REAL
    else:
        features, labels = stand_in(p.n_data, p.data_seed)
        name = STAND_IN
    order = np.random.default_rng(p.split_seed).permutation(len(labels))[:p.n_data]
    held = round(p.test_share * len(order))
    test, train = order[:held], order[held:]
    # rounded: runs that amplify rounding errors then begin alike on every machine
    made = [Data(with_intercept(np.round(standardised(features[rows], features[train]), 9)), labels[rows],
                 name) for rows in (train, test)]
    return made[0], made[1]


def local_radius(problem: fs.LogisticRegression, algorithm: Any) -> float:
    """Radius of the map of all agents, linearised at the mode of what they follow, without gradient noise.

    A likelihood with the factor s in front and the prior's variance lambda is s times one with the
    variance s lambda: its mode is that posterior's, and s goes to the step size.
    """
    share = float(problem.followed_share.min())
    near = surrogate(fs.LogisticRegression(problem.features, problem.labels, problem.clients,
                                           prior_variance=problem.prior_variance * share))
    step = float(algorithm.step_size)
    if isinstance(algorithm, fs.DESGHMC):
        root = float(np.sqrt(share))
        return fs.DESGHMC(step * root, algorithm.friction / root, algorithm.mixing).radius(near)
    return fs.DESGLD(step * share, algorithm.mixing).radius(near)


def compute(p: Any, files: Mapping[str, Path], algorithm_on: Callable[[Any], Any]) -> dict[str, pd.DataFrame]:
    """Tables: curves, contrasts, stability, hypotheses, setting."""
    train, test = parts_of(p, files)
    curves, differences, stability, hypotheses = [], [], [], []
    for scaling in SCALINGS:
        problem = on_agents(train, p, grad_scale=scaling)
        kept: dict[str, dict[Any, np.ndarray]] = {part: {} for part in PARTS}
        for name, network in NETWORKS.items():
            note(f"{network.title} network, {scaling}")
            algorithm = algorithm_on(network.mixing(p.n_clients))
            path = fs.sample_path(problem, algorithm, p.n_rounds, seed=p.seed, every=p.every,
                                  n_chains=p.n_runs, client=p.agent, allow_unstable=True)
            for part, data in zip(PARTS, (train, test), strict=True):
                found = accuracies(path, data)
                curves.append(curve(found, p.every).assign(network=name, part=part, scaling=scaling))
                kept[part][name, p.agent] = late(found)
            stability.append({"network": name, "scaling": scaling, "radius": local_radius(problem, algorithm),
                              "share": float(problem.followed_share.max())})
        for part in PARTS:
            differences += contrasts(kept[part], part=part, scaling=scaling)
    exact = on_agents(train, p)
    for name, network in NETWORKS.items():
        algorithm = algorithm_on(network.mixing(p.n_clients))
        said = judgement(theorems(algorithm)[1], theory.constants(exact, algorithm), algorithm, p.n_rounds)
        hypotheses.append(judgement_row(said, network=name, theorem=theorems(algorithm)[0]))
    draws = exact.laplace().sample(500, p.seed)
    seen = [accuracies(draws, data) for data in (train, test)]
    low, high = exact.curvature_bounds("components")
    facts = {"data": train.name, "n_training": len(train.labels), "n_test": len(test.labels),
             "dim": exact.dim, "strong_convexity": low, "smoothness": high,
             "least_size": int(exact.sizes.min()), "share_of_ones": float(train.labels.mean()),
             "posterior_training": seen[0].mean(), "sd_training": seen[0].std(ddof=1),
             "posterior_test": seen[1].mean(), "sd_test": seen[1].std(ddof=1)}
    return {"curves": pd.concat(curves), "contrasts": pd.DataFrame(differences),
            "stability": pd.DataFrame(stability), "hypotheses": pd.DataFrame(hypotheses),
            "setting": pd.DataFrame([facts])}
