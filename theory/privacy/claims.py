"""What the catalogue's entries share: hypotheses, the numbers that each takes, and what it claims.

Each claims a pair (epsilon, delta): one of them is the bound, the other stands in `inputs`, and the exact
side (`theory.privacy.Release`) is the smallest value of the first at the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.laws.law import recorded_rounds
from fedsim.settings.validation import whole

from ..bound import Assumption
from ..facts import Constants
from ..paper import Paper
from ..statement import Hypothesis, Terms
from .ceilings import small_in_round, small_in_run
from .hypotheses import amplification, validity
from .setting import PrivacySetting, setting_of


def _all_shared(algorithm: FALD, problem: Any) -> str:
    return "" if algorithm.shared_noise < 1.0 else (
        f"shared_noise={algorithm.shared_noise:g} must be less than 1: without private noise (57) leaves no "
        "step size")


def _valid(s: PrivacySetting, algorithm: FALD) -> Assumption:
    return validity(s, algorithm.schedule.largest)


def _small_in_round(s: PrivacySetting, algorithm: FALD) -> Assumption:
    return small_in_round(s, algorithm.schedule.largest)


def _small_in_run(s: PrivacySetting, algorithm: FALD, variant: str) -> Assumption:
    return small_in_run(s, algorithm.schedule.largest, variant)


def _exchangeable(s: PrivacySetting, variant: str) -> tuple[Assumption, ...]:
    return amplification(s, variant)


IN_FORCE = Hypothesis("step_size <= tau (1-shared_noise) batch_fraction^2 min p / (sensitivity^2 "
                      "log(1.25/delta0)), (57)", _valid, _all_shared)
SMALL_IN_ROUND = Hypothesis("step_size at most (60)", _small_in_round)
SMALL_IN_RUN = Hypothesis("step_size at most (69)", _small_in_run)
OF_ORDER = replace(SMALL_IN_RUN, words="step_size at most (69), of which (74) is the rate")
DATA = Hypothesis("bounded sensitivity (G.1), minibatches without replacement (G.2)")
EXCHANGEABLE = Hypothesis("printed: one record per client, equal weights, one draw in scheme I, nobody sees "
                          "who was drawn (or everyone is)", _exchangeable)
FORMS = {"record_level": "", "printed": "both as in `theory.privacy.fa_ld_guarantee`"}


def _of_step(constants: Constants, algorithm: FALD, *, sensitivity: float, batch_fraction: float,
             delta0: float) -> PrivacySetting:
    return setting_of(constants, algorithm, 1, sensitivity=sensitivity, batch_fraction=batch_fraction,
                      delta0=delta0, delta1=0.0, delta2=0.0)


def _of_client(constants: Constants, algorithm: FALD, *, sensitivity: float, batch_fraction: float,
               delta0: float, delta1: float) -> PrivacySetting:
    return setting_of(constants, algorithm, 1, sensitivity=sensitivity, batch_fraction=batch_fraction,
                      delta0=delta0, delta1=delta1, delta2=0.0)


def _of_round(constants: Constants, algorithm: FALD, *, sensitivity: float, batch_fraction: float,
              delta0: float, delta1: float, client_sizes: Any = None) -> PrivacySetting:
    return setting_of(constants, algorithm, 1, sensitivity=sensitivity, batch_fraction=batch_fraction,
                      delta0=delta0, delta1=delta1, delta2=0.0, client_sizes=client_sizes)


def _of_run(constants: Constants, algorithm: FALD, n_rounds: int, *, sensitivity: float,
            batch_fraction: float, delta0: float, delta1: float, delta2: float, client_sizes: Any = None,
            ) -> PrivacySetting:
    return setting_of(constants, algorithm, n_rounds, sensitivity=sensitivity, batch_fraction=batch_fraction,
                      delta0=delta0, delta1=delta1, delta2=delta2, client_sizes=client_sizes)


def counted(algorithm: FALD, n_rounds: int, record: Any, index: str) -> np.ndarray:
    """The recorded rounds of a run or local steps of a round, which count from 1."""
    last = whole("n_rounds", n_rounds, 1) if index == "round" else algorithm.local_steps
    counts = recorded_rounds(last, record)
    return counts[counts > 0]


RUN = Paper(
    id="privacy", name="FA-LD", key="deng2021", algorithm=FALD, convention="federated", setting=_of_run,
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
"""What the paper's statements about a whole run share."""
ROUND, CLIENT, STEP = (replace(RUN, setting=setting) for setting in (_of_round, _of_client, _of_step))
"""The same of one round, of one client in a round, and of one of its steps: each takes fewer numbers."""


def claim(s: PrivacySetting, algorithm: FALD, observed: str, terms: Mapping[str, Any], rounds: Any = (1,), *,
          epsilon: Any = None, delta: Any = None) -> Terms:
    """What is claimed of an observer: terms of a delta, cut to one, at this epsilon; or of an epsilon."""
    beside = {"delta": np.array(delta)}
    if delta is None:
        terms = {name: np.minimum(part, 1.0) for name, part in terms.items()}
        beside = {"epsilon": np.array(epsilon)}
    return Terms(terms, rounds=np.asarray(rounds),
                 inputs={**beside, "setting": s, "observed": observed, "schedule": algorithm.schedule})
