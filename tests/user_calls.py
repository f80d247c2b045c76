"""Calls that users write most, and how often README, the guide and the figures write them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUP = """\
import fedsim as fs
import theory
import numpy as np
from fedsim.samplers import grad
from typing import Any

problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
algorithm = fs.FALD(0.02, local_steps=5)
known = theory.constants(problem, algorithm)
mixing = fs.network.ring(4)
law = theory.exact_law(problem, algorithm, n_rounds=10)
run = fs.simulate(problem, algorithm, n_rounds=10, n_replicas=64, seed=1)
bound = theory.fa_ld.w2_bound(known, algorithm, n_rounds=10)
participation = fs.Participation(1, replace=False)
features, labels, clients = np.ones((6, 1)), np.zeros(6), [0, 0, 0, 1, 1, 1]


def gradient(client: int, x: np.ndarray) -> np.ndarray:
    return x


def descent(x: Any, *, step_size: float) -> Any:
    return x - step_size * grad(x)


class Wrong:
    pass


wrong = Wrong()
"""
CALLS = (
    "fs.FALD(0.02, local_steps=5, shared_noise=0.5, participation=participation)",
    "fs.FAHMC(0.02, leapfrog_steps=3, local_steps=5, shared_noise=0.5, debias='gradient')",
    "fs.DESGLD(0.02, mixing)",
    "fs.DESGHMC(0.02, 2.0, mixing)",
    "fs.StaleSGLD(0.02, 3)",
    "fs.StaleSGHMC(0.02, 2.0, 3)",
    "fs.Participation(1, replace=False)",
    "fs.Workers(3)",
    "fs.Quadratic([1.0, 3.0], [[0.0], [1.0]], weights=[0.5, 0.5])",
    "fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])",
    "fs.LinearRegression(features, labels, clients, noise_std=1.0, prior_variance=10.0, batch_size=2)",
    "fs.LogisticRegression(features, labels, clients, prior_variance=10.0)",
    "fs.Custom(gradient, n_clients=2, curvature=[1.0, 2.0])",
    "fs.Gaussian([0.0], [[1.0]])",
    "fs.papers.fa_hmc_two_groups(3, n_clients=20)",
    "fs.network.ring(4)",
    "fs.network.complete(4)",
    "fs.network.metropolis(np.ones((2, 2)))",
    "fs.network.spectral_gap(mixing)",
    "fs.distance.w2_floor(np.eye(1), 64)",
    "fs.simulate(problem, algorithm, n_rounds=10, n_replicas=64, seed=1)",
    "fs.plot(law, run)",
    "fs.sample_path(problem, algorithm, n_rounds=10, seed=1)",
    "fs.warm_up(problem, algorithm)",
    "fs.explain(problem, algorithm)",
    "fs.sampler(descent, follows='clients')",
    "fs.samplers.declared(algorithm)",
    "theory.constants(problem, algorithm)",
    "theory.exact_law(problem, algorithm, n_rounds=10)",
    "theory.stationary_law(problem, algorithm)",
    "theory.examine('fa_ld.w2_bound', problem, algorithm, 10)",
    "theory.check(bound, law)",
    "theory.certify(algorithm, known)",
    "theory.sweep(problem, algorithm, eps=0.1, local_steps=[1, 2])",
    "theory.catalogue()",
    "theory.theorems()",
    "theory.errata()",
    "theory.remarks()",
    "theory.cite('fa_ld')",
    "theory.fa_ld.w2_bound(known, algorithm, n_rounds=10)",
    "theory.fa_ld.w2_recursion(known, algorithm, n_rounds=10)",
    "theory.de_sgld.clients_w2(law)",
    "theory.tuning.best_step_size(problem, algorithm, 0.1)",
    "theory.tuning.plan_by_recursion(problem, algorithm, 0.1, minimise='rounds')",
    "theory.tuning.informative_steps('fa_ld.w2_bound', problem, algorithm, 0.1)",
)


def most_used(number: int) -> list[str]:
    """The public callables that README, the guide and the figures name most, followed by a parenthesis."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "notebooks").rglob("*.py"),
             *(ROOT / "reproduce").rglob("*.py")]
    count = Counter(name for page in pages
                    for name in re.findall(r"\b((?:fs|theory)(?:\.[A-Za-z]\w*)+)\(", page.read_text("utf-8")))
    return sorted(count, key=lambda name: (-count[name], name))[:number]
