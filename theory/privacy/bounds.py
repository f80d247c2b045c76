"""The catalogue's entries for FA-LD's privacy: what the proof of Theorem G.3 says, mechanism by mechanism.

The bound is the claimed delta, cut to one; the claimed epsilon stands in `inputs`. `theory.examine` takes
standard numbers, drawn by a rule from the problem.

Not in the catalogue: (66) and (67), which are (73) before (61) is put in; (74), which is the condition of
(75); that post-processing preserves privacy, which has no number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD

from ..statement import Terms
from .claims import (
    DATA,
    EXCHANGEABLE,
    FORMS,
    IN_FORCE,
    OF_CLIENT,
    OF_RUN,
    OF_STEP,
    claim,
    counted,
    statements,
)
from .setting import PrivacySetting
from .terms import compose
from .theorem import guarantee_at

of_step, of_client = statements(*OF_STEP), statements(*OF_CLIENT)
of_round, of_run = statements(*OF_CLIENT, "client_sizes"), statements(*OF_RUN, rounds=True)


@of_step("Theorem G.3, (54)", source="FA-LD (54)", quantity="privacy_delta", terms=("gaussian",),
         hypotheses=(IN_FORCE, DATA), index="local_step")
def noisy_step_bound(s: PrivacySetting, algorithm: FALD) -> Terms:
    """One noisy step on a given minibatch that holds the record (Gaussian mechanism).

    Guarantee, with epsilon = sqrt(2 log(1.25/delta0)) (Delta_l/g) sqrt(eta / (2 min p tau (1-rho^2))):

        delta(epsilon) <= delta0

    Source: FA-LD (53) and (54); any step of the run, hence one number.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(1e-7, local_steps=2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.privacy.noisy_step_bound(known, algorithm, sensitivity=2.0, batch_fraction=0.5,
    ...     delta0=1e-5)
    >>> bound.value.tolist(), bound.inputs["epsilon"].round(5).tolist()
    ([1e-05], [0.00613])
    """
    found = guarantee_at(s, algorithm.schedule.largest)
    return claim(s, algorithm, "step", {"gaussian": s.delta0}, epsilon=[found.terms["epsilon_batch"]])


@of_step("Theorem G.3, (55) and (56)", source="FA-LD (55) and (56)", quantity="privacy_delta",
         terms=("gaussian",), hypotheses=(IN_FORCE, DATA), index="local_step")
def minibatch_step_bound(s: PrivacySetting, algorithm: FALD) -> Terms:
    """One noisy step on a random minibatch.

    Guarantee, with epsilon_1 = 2 Delta_l sqrt(eta log(1.25/delta0) / (tau (1-rho^2) min p)):

        delta(epsilon_1) <= g delta0

    Source: FA-LD (55) and (56), with g the share of a client's records in a minibatch.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(1e-7, local_steps=2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.privacy.minibatch_step_bound(known, algorithm, sensitivity=2.0, batch_fraction=0.5,
    ...     delta0=1e-5)
    >>> bound.value.tolist(), bound.inputs["epsilon"].round(5).tolist()
    ([5e-06], [0.00613])
    """
    found = guarantee_at(s, algorithm.schedule.largest)
    return claim(s, algorithm, "minibatch", {"gaussian": s.batch_fraction * s.delta0},
                 epsilon=[found.terms["epsilon_step"]])


@of_client("Theorem G.3, (58) and (59)", source="FA-LD (58) and (59)", quantity="privacy_delta",
           terms=("steps", "composition"), hypotheses=(IN_FORCE, DATA), index="local_step",
           arguments={"record": "sequence of int, optional: Local steps from 1 to K."})
def client_bound(s: PrivacySetting, algorithm: FALD, record: Any) -> Terms:
    """The local steps of one client in a round, every one of them seen.

    Guarantee for k = 1..K steps, epsilon = min(sqrt(2k log(1/delta1)) + k (e^epsilon_1 - 1), k) epsilon_1:

        delta(epsilon) <= k g delta0 + delta1

    Source: FA-LD (58) and (59). With minibatches the exact side is a lower bound: the sum of the steps.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(1e-7, local_steps=2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.privacy.client_bound(known, algorithm, sensitivity=2.0, batch_fraction=1.0,
    ...     delta0=1e-5, delta1=0.0)
    >>> bound.rounds.tolist(), bound.value.tolist(), bound.inputs["epsilon"].round(5).tolist()
    ([1, 2], [1e-05, 2e-05], [0.00613, 0.01226])
    """
    steps = counted(algorithm, 1, record, "local_step")
    one = guarantee_at(s, algorithm.schedule.largest).terms["epsilon_step"]
    return claim(s, algorithm, "client", {"steps": [int(k) * s.batch_fraction * s.delta0 for k in steps],
                                          "composition": s.delta1},
                 steps, epsilon=[compose(one, int(k), s.delta1).epsilon for k in steps])


@of_round("Theorem G.3, (62) and (63)", source="FA-LD (62) and (63)", quantity="privacy_delta",
          terms=("rounds",), hypotheses=(IN_FORCE, DATA, EXCHANGEABLE), variants=FORMS)
def round_bound(s: PrivacySetting, algorithm: FALD, variant: str) -> Terms:
    """The uploads of one round, S of N clients being drawn.

    Guarantee, with epsilon_K and delta_K of `client_bound` and q the chance to be drawn:

        record_level: delta(epsilon_K) <= q delta_K
        printed:      delta(log(1 + q (e^epsilon_K - 1))) <= q delta_K (scheme II), (63) (scheme I)

    Source: FA-LD (62) and (63).

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(1e-7, local_steps=2, participation=fs.Participation(1, replace=False))
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.privacy.round_bound(known, algorithm, sensitivity=2.0, batch_fraction=1.0,
    ...     delta0=1e-5, delta1=0.0)
    >>> bound.value.tolist(), bound.inputs["epsilon"].round(5).tolist()
    ([1e-05], [0.01226])
    """
    found = guarantee_at(s, algorithm.schedule.largest, variant=variant)
    return claim(s, algorithm, "run", {"rounds": found.terms["delta_round"]},
                 epsilon=[found.terms["epsilon_round"]])


@of_run("Theorems 5.1 and G.3", quantity="privacy_delta", terms=("rounds", "composition"),
        hypotheses=(IN_FORCE, DATA, EXCHANGEABLE), variants=FORMS)
def run_bound(s: PrivacySetting, algorithm: FALD, rounds: np.ndarray, variant: str) -> Terms:
    """The uploads of a whole run.

    Guarantee after r rounds, with (epsilon~_K, delta~_K) of `round_bound` and
    epsilon = min(sqrt(2 r log(1/delta2)) + r (e^epsilon~_K - 1), r) epsilon~_K:

        delta(epsilon) <= r delta~_K + delta2

    Source: FA-LD Theorems 5.1 and G.3, (64) and (65). A schedule counts with its largest step size. Where
    minibatches are random, or clients with `client_sizes` are left out, the exact side is a lower bound.

    Rounds count from 1.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(1e-7, 2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.privacy.run_bound(known, algorithm, n_rounds=9, sensitivity=2.0, batch_fraction=1.0,
    ...     delta0=1e-5, delta1=0.0, delta2=1e-6)
    >>> release = theory.privacy.Release(bound.inputs["setting"], algorithm.schedule)
    >>> theory.check(bound, release).holds
    True
    """
    found = [guarantee_at(replace(s, n_rounds=int(r)), algorithm.schedule.largest, variant=variant)
             for r in rounds]
    spent = [int(r) * one.terms["delta_round"] for r, one in zip(rounds, found, strict=True)]
    return claim(s, algorithm, "run", {"rounds": spent, "composition": s.delta2}, rounds,
                 epsilon=[one.epsilon for one in found])
