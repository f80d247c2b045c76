"""Valid but extreme problems at random, and what must hold of every answer to them.

Conditions to 1e12, scales from 1e-300 to 1e300, weights to 1e-300, minimizers to 1e300, one dimension, one
client, one local step, no rounds, step sizes to 1e-15 below the limit, equal clients. `judge` asks for
stability, exact laws, the stationary law, constants and a bound; the only exception allowed is a ValueError.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

import fedsim as fs
import theory

SCALES = (-300, -200, -150, -100, -8, -2, 0, 0, 0, 0, 2, 8, 100, 150, 200, 300)
SHARES = (1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.99, 1 - 1e-6, 1 - 1e-9, 1 - 1e-11, 1 - 1e-13, 1 - 1e-15)
LONG = 2**50
KINDS = ("FALD", "FAHMC", "DESGLD", "DESGHMC", "StaleSGLD", "StaleSGHMC")
BOUNDS = {"FALD": "fa_ld.w2_bound", "FAHMC": "fa_hmc.w2_bound", "DESGLD": "de_sgld.w2_bound",
          "DESGHMC": "de_sghmc.w2_bound", "StaleSGLD": "", "StaleSGHMC": ""}


@dataclass(frozen=True)
class Case:
    """A problem, a step size as a share of the limit, and an algorithm for each step size."""

    kind: str
    problem: fs.Quadratic
    share: float
    algorithm: object
    n_rounds: int

    def __repr__(self):
        curvature = self.problem.hessians
        return (f"{self.kind} share={self.share!r} n_rounds={self.n_rounds} {self.problem!r} "
                f"hessians {np.abs(curvature).max():g} weights >= {self.problem.weights.min():g} "
                f"minimizers <= {np.abs(self.problem.minimizers).max():g} {self.algorithm!r}")


def _hessians(rng, clients, dim, equal):
    scale, width = 10.0 ** rng.choice(SCALES), rng.choice([0.0, 1.0, 4.0, 8.0, 12.0])
    values = scale * 10.0 ** -rng.uniform(0.0, width, (1 if equal else clients, dim))
    if rng.random() < 0.5:
        return np.repeat(values, clients, axis=0) if equal else values
    turns = np.linalg.qr(rng.standard_normal((len(values), dim, dim)))[0]
    dense = (turns * values[:, None, :]) @ turns.swapaxes(1, 2)
    dense = 0.5 * dense + 0.5 * dense.swapaxes(1, 2)
    return np.repeat(dense, clients, axis=0) if equal else dense


def _weights(rng, clients):
    if clients == 1 or rng.random() < 0.5:
        return None
    weights = np.ones(clients)
    weights[1:] = 10.0 ** -rng.choice([0.5, 3.0, 12.0, 200.0, 300.0], clients - 1)
    return weights / weights.sum()


def _algorithm(rng, kind, clients, largest):
    """A function of the step size."""
    friction = float(10.0 ** rng.uniform(-2, 2) * np.sqrt(largest))
    steps = int(rng.choice([1, 1, 2, 5]))
    drawn = fs.Participation(1, bool(rng.integers(2))) if clients > 1 and rng.random() < 0.3 else None
    shared, network = float(rng.choice([0.0, 0.5, 1.0])), fs.network.complete(clients)
    if clients > 3:
        network = fs.network.ring(clients)
    if kind == "FALD":
        return lambda eta: fs.FALD(eta, steps, shared_noise=shared, participation=drawn)
    if kind == "FAHMC":
        leaps, debias = int(rng.choice([1, 1, 2, 7])), rng.choice([None, None, "stale", "fresh"])
        return lambda eta: fs.FAHMC(eta, leaps, steps, shared, debias=debias, participation=drawn)
    if kind == "DESGLD":
        return lambda eta: fs.DESGLD(eta, network)
    if kind == "DESGHMC":
        return lambda eta: fs.DESGHMC(eta, friction, network)
    age = int(rng.choice([0, 1, 3, 20]))
    if kind == "StaleSGLD":
        return lambda eta: fs.StaleSGLD(eta, age)
    return lambda eta: fs.StaleSGHMC(eta, friction, age)


def draw(seed, number):
    """Case `number` of this seed; None where the numbers drawn make no problem or no algorithm."""
    rng = np.random.default_rng([seed, number])
    kind = KINDS[number % len(KINDS)]
    clients, dim = int(rng.choice([1, 2, 3, 5])), int(rng.choice([1, 1, 2, 4]))
    hessians = _hessians(rng, clients, dim, rng.random() < 0.2)
    minimizers = 10.0 ** rng.choice([-300, -100, 0, 0, 0, 0, 3, 100, 150, 300]) * rng.uniform(-1, 1, (
        clients, dim))
    make, share = _algorithm(rng, kind, clients, np.abs(hessians).max()), float(rng.choice(SHARES))
    n_rounds = int(rng.choice([0, 1, 7, 50]))
    noise = float(10.0 ** rng.choice([-150, 0, 100])) if rng.random() < 0.2 else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = fs.Quadratic(hessians, minimizers, _weights(rng, clients), noise)
        return Case(kind, problem, share, _scaled(make, problem, share, kind), n_rounds)


def _scaled(make, problem, share, kind):
    """The algorithm at this share of its limit."""
    largest = float(np.abs(problem.hessians).max())
    begin = 1e-3 / largest if kind in ("FALD", "DESGLD", "StaleSGLD") else 1e-2 / np.sqrt(largest)
    return make(share * make(float(begin)).stability(problem).max_step_size)


def _finite(*tables):
    for table in tables:
        assert np.isfinite(table).all(), "an answer is not finite"


def judge(case):
    """What came of a case: words for each question; an AssertionError where a promise is broken."""
    words, problem, algorithm = {}, case.problem, case.algorithm
    warned = []
    for name, question in (("stability", _stability), ("exact", _exact), ("long", _long),
                           ("stationary", _stationary), ("constants", _constants), ("bound", _bound)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("error")
            warnings.simplefilter("always", getattr(theory, "PrecisionWarning", DeprecationWarning))
            try:
                words[name] = question(case, problem, algorithm)
            except ValueError as error:  # all that is allowed, and ours
                assert not isinstance(error, np.linalg.LinAlgError), error
                assert "f(a) and f(b)" not in str(error), error
                words[name] = error
        warned += caught
    if isinstance(words["long"], fs.Law) and isinstance(words["stationary"], fs.Gaussian) and not warned:
        _agree(words["long"].at(LONG), words["stationary"], algorithm._radius(problem))
    return words, warned


def _stability(case, problem, algorithm):
    found = algorithm.stability(problem)
    assert found.radius >= 0.0 and not np.isnan(found.radius), "the radius is not a number"
    assert found.stable or case.share > 0.999999 or case.kind == "FAHMC", f"falsely refused: {found}"
    return found


def _exact(case, problem, algorithm):
    law = theory.exact_law(problem, algorithm, case.n_rounds)
    _finite(law.mean, law.cov, law.w2())
    return law


def _long(case, problem, algorithm):
    law = theory.exact_law(problem, algorithm, LONG, record=[])
    _finite(law.mean, law.cov, law.w2())
    return law


def _stationary(case, problem, algorithm):
    law = theory.stationary_law(problem, algorithm)
    _finite(law.mean, law.variances, law.w2(algorithm.target(problem)))
    return law


def _constants(case, problem, algorithm):
    known = theory.constants(problem, algorithm)
    _finite(known.initial_w2, known.initial_distance, known.heterogeneity)
    return known


def _bound(case, problem, algorithm):
    if not BOUNDS[case.kind]:
        return None
    step = algorithm.schedule.largest / case.share  # within the hypotheses more often
    small = replace(algorithm, step_size=1e-3 * step) if case.kind != "DESGHMC" else algorithm
    verdict = theory.examine(BOUNDS[case.kind], problem, small, max(case.n_rounds, 1))
    _finite(verdict.bound.value)
    assert verdict.holds or not verdict.hypotheses_met, f"a bound is violated: {verdict}"
    return verdict


def _agree(long, stationary, radius):
    """2^50 rounds come to the stationary law, where so many forget the start.

    A radius nearer to one than 1e-13 does not tell how much of the start is left.
    """
    if not radius < 1.0 - 1e-13:
        return
    gap = np.abs(long.variances - stationary.variances).max() / stationary.variances.max()
    assert gap < 1e-4, f"long run and stationary law differ by {gap:g}"
