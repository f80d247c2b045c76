"""The catalogue's entries for FA-LD's privacy: what the proof of Theorem G.3 says, mechanism by mechanism.

Each claims a pair (epsilon, delta): one of them is the bound, the other stands in `inputs`, and the exact
side (`theory.privacy.Release`) is the smallest value of the first at the second. Here the bound is the
claimed delta, cut to one. `theory.examine` asks for the numbers; searches over random settings draw them.

Not in the catalogue: (66) and (67), which are (73) before (61) is put in; (74), which is the condition of
(75); that post-processing preserves privacy, which has no number.
"""

from __future__ import annotations

import functools
import inspect
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.interfaces import Problem
from fedsim.laws.law import recorded_rounds
from fedsim.settings.validation import whole

from ..declare.paper import Paper
from ..declare.statement import Hypothesis, Terms
from ..facts.constants_of_problem import Constants
from ..theorem_parts import other_kinds, required
from .hypotheses import amplification, validity, validity_ceiling
from .setting import PrivacySetting, setting_of
from .terms import compose
from .theorem import guarantee_at

IN_FORCE = required("step_size <= tau (1-shared_noise) batch_fraction^2 min p / (sensitivity^2 "
                    "log(1.25/delta0)), (57)", lambda algorithm: algorithm.shared_noise < 1.0,
                    "shared_noise={algorithm.shared_noise:g} must be less than 1: without private noise (57) "
                    "leaves no step size", lambda s, algorithm: validity(s, algorithm.schedule.largest))
DATA = Hypothesis("bounded sensitivity (G.1), minibatches without replacement (G.2)", refuses=other_kinds)
EXCHANGEABLE = Hypothesis("printed: one record per client, equal weights, one draw in scheme I, nobody sees "
                          "who was drawn (or everyone is)",
                          lambda s, variant: amplification(s, variant))
FORMS = {"record_level": "", "printed": "both as in `theory.privacy.fa_ld_guarantee`"}


def counted(algorithm: FALD, n_rounds: int, record: Any, index: str) -> np.ndarray:
    """The recorded rounds of a run or local steps of a round, which count from 1."""
    last = whole("n_rounds", n_rounds, 1) if index == "round" else algorithm.local_steps
    counts = recorded_rounds(last, record)
    return counts[counts > 0]


def standard_numbers(algorithm: FALD, constants: Constants, n_rounds: int, lowest: float) -> dict[str, Any]:
    """Numbers for a run without data sets, always the same for the same run.

    `lowest` is log10 of the smallest share of (57) that the step size takes up; the largest is 1.26.
    """
    eta = float(algorithm.schedule.largest)
    key = np.concatenate([constants.weights, [eta, n_rounds, algorithm.local_steps, algorithm.shared_noise]])
    digits = " ".join(f"{number:.6g}" for number in key)  # a step size's last ones depend on the processor
    draws = np.random.default_rng(zlib.crc32(digits.encode()))
    alone = bool(draws.random() < 0.5)
    fraction = 1.0 if alone or draws.random() < 0.5 else float(10.0 ** draws.uniform(-2.0, 0.0))
    numbers = {"batch_fraction": fraction, "delta0": float(10.0 ** draws.uniform(-9.0, -2.0)),
               "delta1": float(10.0 ** draws.uniform(-9.0, -3.0)),
               "delta2": float(10.0 ** draws.uniform(-9.0, -3.0))}
    unit = validity_ceiling(setting_of(constants, algorithm, 1, sensitivity=1.0, **numbers))
    share = float(10.0 ** draws.uniform(lowest, 0.1))
    return {**numbers, "sensitivity": float(np.sqrt(share * unit / eta)),
            "client_sizes": 1 if alone else None}


_PAPER = Paper(
    id="privacy", name="FA-LD", key="deng2021", algorithm=FALD, convention="federated", setting=setting_of,
    recorded=counted,
    arguments={"sensitivity": "float: Delta_l, see `theory.privacy.PrivacySetting`, as for what follows.",
               "batch_fraction": "float: g, the share of a client's records in a minibatch.",
               "delta0": "float: Of one noisy step.", "delta1": "float: Of composing local steps.",
               "delta2": "float: Of composing rounds.",
               "client_sizes": "int or (N,) of ints, optional: Records of every client."},
    raises="Numbers that `theory.privacy.PrivacySetting` refuses; rounds below 1; settings that the "
           "hypotheses exclude.",
    example=""">>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
>>> algorithm = fs.FALD(1e-7, local_steps=2)""")


def statements(*numbers: str, rounds: bool = False, lowest: float = -3.0) -> Callable[..., Any]:
    """Decorator of the statements that take these numbers; other deltas are 0, and there is one round.

    Searches over random settings take `standard_numbers` of them.
    """
    def setting(constants: Constants, algorithm: FALD, n_rounds: int = 1, **given: Any) -> PrivacySetting:
        return setting_of(constants, algorithm, n_rounds, **{"delta1": 0.0, "delta2": 0.0} | given)

    def standard(problem: Problem, algorithm: FALD, constants: Constants, n_rounds: int, start: Any,
                 ) -> dict[str, Any]:
        drawn = standard_numbers(algorithm, constants, max(n_rounds, 1), lowest)
        return {name: drawn[name] for name in numbers}

    names = ("constants", "algorithm", *(["n_rounds"] if rounds else []), *numbers)
    setting.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY,
                          default=None if name == "client_sizes" else inspect.Parameter.empty)
        for name in names])
    return functools.partial(replace(_PAPER, setting=setting).theorem, inputs=standard)


OF_STEP = ("sensitivity", "batch_fraction", "delta0")
OF_CLIENT = (*OF_STEP, "delta1")
OF_RUN = (*OF_CLIENT, "delta2", "client_sizes")


def claim(s: PrivacySetting, algorithm: FALD, observed: str, terms: Mapping[str, Any], rounds: Any = (1,), *,
          epsilon: Any = None, delta: Any = None) -> Terms:
    """What is claimed of an observer: terms of a delta, cut to one, at this epsilon; or of an epsilon."""
    beside = {"delta": np.array(delta)}
    if delta is None:
        terms = {name: np.minimum(part, 1.0) for name, part in terms.items()}
        beside = {"epsilon": np.array(epsilon)}
    return Terms(terms, rounds=np.asarray(rounds),
                 inputs={**beside, "setting": s, "observed": observed, "schedule": algorithm.schedule})


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
    claimed = guarantee_at(s, algorithm.schedule.largest)
    return claim(s, algorithm, "step", {"gaussian": s.delta0}, epsilon=[claimed.terms["epsilon_batch"]])


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
    claimed = guarantee_at(s, algorithm.schedule.largest)
    return claim(s, algorithm, "minibatch", {"gaussian": s.batch_fraction * s.delta0},
                 epsilon=[claimed.terms["epsilon_step"]])


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
    claimed = guarantee_at(s, algorithm.schedule.largest, variant=variant)
    return claim(s, algorithm, "run", {"rounds": claimed.terms["delta_round"]},
                 epsilon=[claimed.terms["epsilon_round"]])


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
    claimed = [guarantee_at(replace(s, n_rounds=int(r)), algorithm.schedule.largest, variant=variant)
             for r in rounds]
    spent = [int(r) * one.terms["delta_round"] for r, one in zip(rounds, claimed, strict=True)]
    return claim(s, algorithm, "run", {"rounds": spent, "composition": s.delta2}, rounds,
                 epsilon=[one.epsilon for one in claimed])
