"""What the catalogue's entries share: hypotheses, the numbers that each takes, and what it claims.

Each claims a pair (epsilon, delta): one of them is the bound, the other stands in `inputs`, and the exact
side (`theory.privacy.Release`) is the smallest value of the first at the second.
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
from fedsim.laws.law import recorded_rounds
from fedsim.settings.validation import whole

from ..facts import Constants
from ..paper import Paper
from ..statement import Hypothesis, Terms
from .hypotheses import amplification, validity, validity_ceiling
from .setting import PrivacySetting, setting_of


def _all_shared(algorithm: FALD, problem: Any) -> str:
    return "" if algorithm.shared_noise < 1.0 else (
        f"shared_noise={algorithm.shared_noise:g} must be less than 1: without private noise (57) leaves no "
        "step size")


IN_FORCE = Hypothesis("step_size <= tau (1-shared_noise) batch_fraction^2 min p / (sensitivity^2 "
                      "log(1.25/delta0)), (57)",
                      lambda s, algorithm: validity(s, algorithm.schedule.largest), _all_shared)
DATA = Hypothesis("bounded sensitivity (G.1), minibatches without replacement (G.2)")
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

    `theory.examine` takes `standard_numbers` of them.
    """
    def setting(constants: Constants, algorithm: FALD, n_rounds: int = 1, **given: Any) -> PrivacySetting:
        return setting_of(constants, algorithm, n_rounds, **{"delta1": 0.0, "delta2": 0.0} | given)

    def standard(problem: Any, algorithm: FALD, constants: Constants, n_rounds: int, start: Any,
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
