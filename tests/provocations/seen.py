"""The names that mistakes are made with, as a user has them at hand."""

from __future__ import annotations

import contextlib
import io
import os

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp
from fuzz.known import FOLDER

import fedsim as fs
import theory
from reproduce import command

__all__ = ["np", "nx", "pd", "sp"]

REFUSALS = (ValueError, TypeError, AttributeError, FileNotFoundError)
inf, nan = float("inf"), float("nan")
Q = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
Q2 = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], [[0.0, 1.0], [2.0, 3.0]], [0.3, 0.7])
SHARES = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
X, Y, WHO = [[1.0], [2.0], [-1.0], [0.5]], [0, 1, 1, 0], [0, 0, 1, 1]
LOGISTIC = fs.LogisticRegression(X, Y, WHO, prior_variance=1.0)
LINEAR = fs.LinearRegression(X, Y, WHO, noise_std=1.0, prior_variance=1.0)
STEP = fs.FALD(0.1, 3)
RING = fs.network.ring(4)
GRAPH = nx.cycle_graph(4)
ADJACENCY = nx.to_numpy_array(GRAPH)
LAW = theory.exact_law(Q, STEP, 20, record=[10])
OTHER = theory.exact_law(Q, fs.FALD(0.05), 20, record=[10])
SMALL = fs.FALD(1e-3, 2)
KNOWN = theory.constants(Q, SMALL)
BOUND = theory.fa_ld.w2_bound(KNOWN, SMALL, n_rounds=20, record=[10])
FOREIGN = os.path.join(FOLDER.name, "foreign.npz")
np.savez(FOREIGN, a=np.ones(2))
PICKLED = os.path.join(FOLDER.name, "pickled.npz")
np.savez(PICKLED, meta=np.array([{}], dtype=object))
TEXT = os.path.join(FOLDER.name, "text.npz")
with open(TEXT, "w", encoding="utf-8") as _file:
    _file.write("hello")
MISSING = os.path.join(FOLDER.name, "none", "run.npz")


class Refused(ValueError):
    """What the command line printed before it gave up."""


def simulate(problem=Q, algorithm=STEP, n_rounds=5, n_replicas=64, seed=1, **options):
    """`fs.simulate` of what is not in question."""
    return fs.simulate(problem, algorithm, n_rounds, n_replicas, seed=seed, **options)


def path(problem=Q, algorithm=STEP, n_rounds=5, seed=1, **options):
    """`fs.sample_path` of what is not in question."""
    return fs.sample_path(problem, algorithm, n_rounds, seed=seed, **options)


def exact(problem=Q, algorithm=STEP, n_rounds=5, **options):
    """`theory.exact_law` of what is not in question."""
    return theory.exact_law(problem, algorithm, n_rounds, **options)


def examine(theorem="fa_ld.w2_bound", problem=Q, algorithm=SMALL, n_rounds=10, **options):
    """`theory.examine` of what is not in question."""
    return theory.examine(theorem, problem, algorithm, n_rounds, **options)


def logistic(features=X, labels=Y, clients=WHO, prior_variance=1.0, **options):
    """`fs.LogisticRegression` of what is not in question."""
    return fs.LogisticRegression(features, labels, clients, prior_variance=prior_variance, **options)


def linear(features=X, targets=Y, clients=WHO, noise_std=1.0, prior_variance=1.0, **options):
    """`fs.LinearRegression` of what is not in question."""
    return fs.LinearRegression(features, targets, clients, noise_std=noise_std, prior_variance=prior_variance,
                               **options)


def softmax(features=X, labels=Y, clients=WHO, prior_variance=1.0, **options):
    """`fs.SoftmaxRegression` of what is not in question."""
    return fs.SoftmaxRegression(features, labels, clients, prior_variance=prior_variance, **options)


def shell(words):
    """`python -m reproduce`, in a folder of its own; what it refuses is raised."""
    told = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        try:
            code = command.main([*words.split(), "--out", os.path.join(FOLDER.name, "shell")])
        except SystemExit as ended:
            code = ended.code
    if code != 2:
        return code
    raise Refused(told.getvalue())
