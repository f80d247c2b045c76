"""Known sets and independent answers: options against the slow twins, and cases with an exact law."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
from examples_of import posterior
from problems import contrasted, drawn_quadratic, quadratic

import fedsim as fs
from cases import SINGLE, Group, with_starts

IN_TURN = fs.FixedParticipation([[0, 2], [1], [0, 1, 2]], cyclic=True)
SELDOM = fs.IndependentParticipation([0.2, 0.9, 0.5])
UNBIASED = fs.IndependentParticipation([0.5, 0.9, 0.4], unbiased=True)
LISTED = fs.FixedParticipation([[0, 1], [2], [1, 2, 3], [0, 3], [1], [0, 1, 2, 3], [3], [0, 2]])
_NOISY = contrasted(3, [0.5, 0.3, 0.2])
STEEP = fs.Quadratic(_NOISY.hessians, _NOISY.minimizers, _NOISY.weights)


def ways(n_clients):
    """Of every number of clients: a set of one, all, taking turns, rarely anybody, certainly all."""
    yield fs.FixedParticipation([[n_clients - 1], list(range(n_clients)), [0]])
    yield fs.FixedParticipation(range(n_clients), cyclic=True)
    yield fs.IndependentParticipation(0.3)
    yield fs.IndependentParticipation(np.linspace(0.2, 1.0, n_clients), unbiased=True)
    yield fs.IndependentParticipation(1.0)


def problems(structure, noise, dims, most):
    """Every way to take part, number of clients and dimension; shared noise varies along."""
    rng = np.random.default_rng([len(structure), len(str(noise))])
    for n_clients, dim in itertools.product((1, 2, most), dims):
        for number, chosen in enumerate(ways(n_clients)):
            kind = "isotropic" if structure == "diagonal" and number == 2 else structure
            problem = drawn_quadratic(rng, kind, noise, n_clients, dim, True, singular=number % 2 == 1)
            shared = (0.0, 0.3, 1.0)[(number + n_clients + dim) % 3]
            yield problem, chosen, shared, None if number % 2 else rng.standard_normal(dim)


def langevin(structure, noise, dims, most=4):
    """FA-LD."""
    for problem, chosen, shared, start in problems(structure, noise, dims, most):
        yield problem, fs.FALD(0.1, 2, 0.7, shared, chosen), start


DEBIAS = ((None, "none"), ("stale", "none"), ("stale", "exact"), ("stale", "printed"), ("fresh", "none"))


def hamiltonian(dim):
    """FA-HMC with every debiasing."""
    for debias, first in DEBIAS:
        for problem, chosen, shared, start in problems("dense", None, (dim,), 4):
            yield problem, fs.FAHMC(0.15, 2, 2, shared, debias, first, chosen), start


def regression():
    """Minibatches are drawn for the client, whatever its slot."""
    problem = posterior("logistic", 4, batch_size=3, weights=[0.5, 0.3, 0.2])
    yield problem, fs.FALD(0.3 / problem.smoothness, 2, 0.8, 0.3, IN_TURN), None


FA_LD_GROUPS = {
    "dense, sets and answers": Group(partial(langevin, "dense", None, (2,), 16)),
    "dense, noise, sets and answers": Group(partial(langevin, "dense", "cov", (2,))),
    "diagonal, sets and answers": Group(partial(langevin, "diagonal", None, (1, 2, 3))),
    "single precision, sets and answers": Group(partial(langevin, "dense", None, (2,), 9), SINGLE),
    "regression, sets": Group(regression)}
FA_HMC_GROUPS = {"dense, sets and answers": Group(partial(hamiltonian, 2))}

FA_LD_LAWS = with_starts({
    "known sets": (quadratic(4), fs.FALD(0.15, 3, shared_noise=0.4, participation=LISTED)),
    "known sets, schedule": (quadratic(4, noise="cov"), fs.FALD(
        fs.schedules.Harmonic(6.0, 0.5), 2, 0.6, participation=LISTED)),
    "in turn": (quadratic(), fs.FALD(0.15, 3, participation=IN_TURN)),
    "one after the other": (quadratic(3, structure="diagonal"), fs.FALD(
        0.2, 2, 1.0, 1.0, fs.FixedParticipation(range(3), cyclic=True))),
    "independent answers": (quadratic(), fs.FALD(0.15, 3, shared_noise=0.4, participation=SELDOM)),
    "independent answers, noise": (quadratic(3, 3, noise="cov"), fs.FALD(
        np.linspace(0.2, 0.1, 16), 2, 0.5, participation=SELDOM)),
    "hardly anybody": (quadratic(structure="diagonal"), fs.FALD(
        0.2, 2, participation=fs.IndependentParticipation(0.1))),
    "unbiased answers": (quadratic(), fs.FALD(0.1, 3, shared_noise=0.3, participation=UNBIASED)),
    "unbiased answers, a lone client": (quadratic(1), fs.FALD(
        0.1, 3, participation=fs.IndependentParticipation(0.5, unbiased=True))),
}, {
    "known sets": fs.Gaussian([3.0, -1.0], [[2.0, -1.2], [-1.2, 1.0]]),
    "independent answers": fs.Gaussian([0.0, 5.0], [[0.5, 0.2], [0.2, 4.0]]),
    "hardly anybody": [4.0, -3.0],
    "unbiased answers": [4.0, -3.0],
})
FA_HMC_LAWS = with_starts({
    "known sets": (quadratic(4, noise="cov"), fs.FAHMC(0.25, 3, 2, 0.5, participation=LISTED)),
    "stale, in turn": (STEEP, fs.FAHMC(0.2, 3, 3, 0.5, "stale", participation=IN_TURN)),
    "fresh, in turn": (STEEP, fs.FAHMC(0.2, 3, 3, 0.0, "fresh", participation=IN_TURN)),
    "independent answers": (quadratic(), fs.FAHMC(0.25, 3, 2, 0.5, participation=SELDOM)),
    "stale, independent answers": (STEEP, fs.FAHMC(0.2, 3, 3, 1.0, "stale", participation=SELDOM)),
    "stale, unbiased answers": (STEEP, fs.FAHMC(0.1, 3, 3, 0.5, "stale", "exact", UNBIASED)),
    "fresh, unbiased answers": (STEEP, fs.FAHMC(0.1, 3, 3, 0.5, "fresh", participation=UNBIASED)),
}, {
    "known sets": [4.0, -3.0],
    "stale, independent answers": fs.Gaussian([0.0, 5.0], [[0.5, 0.2], [0.2, 4.0]]),
    "stale, unbiased answers": [4.0, -3.0],
})
