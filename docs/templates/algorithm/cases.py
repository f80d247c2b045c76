"""TEMPLATE of the cases an algorithm is tried on; it becomes `tests/cases/fa_new.py`.

Cases with an exact law, the plainest first, and faults that the comparison with that law must catch.
"""

from __future__ import annotations

import numpy as np
from problems import contrasted, quadratic

import fedsim as fs
from cases import scheme_one, with_starts
from fedsim.algorithms.fa_new import FANewKernel
from mutants import Case, Mutants

LAWS = with_starts({
    "plain": (quadratic(), fs.FANew(0.15, 3)),
    "partly shared noise, gradient noise": (quadratic(noise=1.5), fs.FANew(0.15, 3, 0.4)),
    "diagonal": (quadratic(structure="diagonal"), fs.FANew(0.15, 3, 0.4)),
    "scheme I": (quadratic(), fs.FANew(0.15, 3, participation=scheme_one(2))),
}, {"diagonal": fs.Gaussian([1.0, 2.0], [0.25, 9.0])})

FA_NEW = Mutants(fs.FANew, FANewKernel, {
    "full": Case(contrasted(3, [0.5, 0.3, 0.2]), lambda cls: cls(0.15, 3, 0.4)),
}, n_rounds=5, n_replicas=100_000, seed=21)


@FA_NEW.kernel_change("own noise over the weight, not its root", "full")
def _(kernel, problem):
    return kernel._replace(clients=kernel.clients._replace(private=1.0 / problem.weights))


@FA_NEW.kernel_change("weights ignored in the average", "full")
def _(kernel, problem):
    equal = np.full(problem.n_clients, 1.0 / problem.n_clients)
    return kernel._replace(clients=kernel.clients._replace(shares=equal))
