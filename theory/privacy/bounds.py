"""The catalogue's entries for FA-LD's privacy: what the proof of Theorem G.3 says, mechanism by mechanism.

Each claims a pair (epsilon, delta). The bound is the claimed delta, in `inputs` stands the claimed epsilon,
and the exact side (`theory.privacy.Release`) is the smallest delta at that epsilon. A claimed delta above
one is cut to one. Common arguments:

sensitivity, batch_fraction, delta0, delta1, delta2, client_sizes
    As in `PrivacySetting`. `theory.examine` takes standard numbers, drawn by a rule from the problem.

All raise ValueError for constants of another convention, another class of algorithm, shared_noise=1,
n_rounds below 1 or a `record` beyond it where they count, unknown variants, and as `PrivacySetting`.

Not in the catalogue: (66) and (67), which are (73) before (61) is put in; (74), which is the condition of
(75); that post-processing preserves privacy, which has no number.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.law import recorded_rounds
from fedsim.validation import whole

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from .hypotheses import amplification, validity, validity_ceiling
from .setting import PrivacySetting, setting_of
from .terms import compose
from .theorem import guarantee_at

PAPER = "FA-LD"
IN_FORCE = "step_size <= tau (1-shared_noise) batch_fraction^2 min p / (sensitivity^2 log(1.25/delta0)), (57)"
DATA = "bounded sensitivity (G.1), minibatches without replacement (G.2)"
EXCHANGEABLE = ("printed: one record per client, equal weights, one draw in scheme I, nobody sees who was "
                "drawn (or everyone is)")


def private(algorithm: FALD) -> bool:
    """Whether any noise is private; without it (57) leaves no step size."""
    return bool(algorithm.shared_noise < 1.0)


def standard_numbers(algorithm: FALD, constants: Constants, n_rounds: int, lowest: float) -> dict[str, Any]:
    """Numbers for a run without data sets, always the same for the same run.

    `lowest` is log10 of the smallest share of (57) that the step size takes up; the largest is 1.26.
    """
    eta = float(algorithm.schedule.largest)
    key = np.concatenate([constants.weights, [eta, n_rounds, algorithm.local_steps, algorithm.shared_noise]])
    said = " ".join(f"{number:.6g}" for number in key)  # a step size's last digits depend on the processor
    draws = np.random.default_rng(zlib.crc32(said.encode()))
    alone = bool(draws.random() < 0.5)
    fraction = 1.0 if alone or draws.random() < 0.5 else float(10.0 ** draws.uniform(-2.0, 0.0))
    numbers = {"batch_fraction": fraction, "delta0": float(10.0 ** draws.uniform(-9.0, -2.0)),
               "delta1": float(10.0 ** draws.uniform(-9.0, -3.0)),
               "delta2": float(10.0 ** draws.uniform(-9.0, -3.0))}
    unit = validity_ceiling(setting_of(constants, algorithm, 1, sensitivity=1.0, **numbers))
    share = float(10.0 ** draws.uniform(lowest, 0.1))
    return {**numbers, "sensitivity": float(np.sqrt(share * unit / eta)),
            "client_sizes": 1 if alone else None}


def standard(*names: str, lowest: float = -3.0) -> Callable[..., dict[str, Any]]:
    """`standard_numbers` of these names, as a theorem's `inputs`."""
    def choose(problem: Any, algorithm: FALD, constants: Constants, n_rounds: int,
               start: Any) -> dict[str, Any]:
        found = standard_numbers(algorithm, constants, max(n_rounds, 1), lowest)
        return {name: found[name] for name in names}

    return choose


def setting_from(constants: Constants, algorithm: FALD, n_rounds: int, **numbers: Any) -> PrivacySetting:
    """The setting, with whatever is not given chosen so that it has no part."""
    if not private(algorithm):
        raise ValueError(f"shared_noise={algorithm.shared_noise:g} must be less than 1: without private "
                         "noise (57) leaves no step size")
    idle = {"delta0": 0.5, "delta1": 0.0, "delta2": 0.0}
    return setting_of(constants, algorithm, whole("n_rounds", n_rounds, 1), **{**idle, **numbers})


STEP = ("sensitivity", "batch_fraction", "delta0")


@theorem(id="privacy.noisy_step_bound", paper=PAPER, number="Theorem G.3, (54)", kind="upper",
         quantity="privacy_delta", algorithm=FALD, convention="federated", variants=("printed",),
         hypotheses=(IN_FORCE, DATA), index="local_step", applies=private, inputs=standard(*STEP))
def noisy_step_bound(constants: Constants, algorithm: FALD, *, n_rounds: int = 1, record: Any = None,
                     sensitivity: float, batch_fraction: float, delta0: float,
                     variant: str = "printed") -> Bound:
    """One noisy step on a given minibatch that holds the record (Gaussian mechanism).

    Guarantee, with epsilon = sqrt(2 log(1.25/delta0)) (Delta_l/g) sqrt(eta / (2 min p tau (1-rho^2))):

        delta(epsilon) <= delta0

    Source: FA-LD (53) and (54); any step of the run, hence one number.
    Raises: ValueError, see the module.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, sensitivity, batch_fraction, delta0
        See the module; `n_rounds` and `record` have no part in it.
    variant : "printed"

    Returns
    -------
    Bound on "privacy_delta" with the term "gaussian".
    """
    given = setting_from(constants, algorithm, 1, sensitivity=sensitivity, batch_fraction=batch_fraction,
                         delta0=delta0)
    eta = algorithm.schedule.largest
    found = guarantee_at(given, eta)
    return _bound({"gaussian": [given.delta0]}, [1], [found.terms["epsilon_batch"]], given, "step", algorithm,
                  "FA-LD (54)", assumptions=(validity(given, eta),), variant=variant, index="local_step")


@theorem(id="privacy.minibatch_step_bound", paper=PAPER, number="Theorem G.3, (55) and (56)", kind="upper",
         quantity="privacy_delta", algorithm=FALD, convention="federated", variants=("printed",),
         hypotheses=(IN_FORCE, DATA), index="local_step", applies=private, inputs=standard(*STEP))
def minibatch_step_bound(constants: Constants, algorithm: FALD, *, n_rounds: int = 1, record: Any = None,
                         sensitivity: float, batch_fraction: float, delta0: float,
                         variant: str = "printed") -> Bound:
    """One noisy step on a random minibatch.

    Guarantee, with epsilon_1 = 2 Delta_l sqrt(eta log(1.25/delta0) / (tau (1-rho^2) min p)):

        delta(epsilon_1) <= g delta0

    Source: FA-LD (55) and (56), with g the share of a client's records in a minibatch.
    Raises: ValueError, see the module.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, sensitivity, batch_fraction, delta0
        See the module; `n_rounds` and `record` have no part in it.
    variant : "printed"

    Returns
    -------
    Bound on "privacy_delta" with the term "gaussian".
    """
    given = setting_from(constants, algorithm, 1, sensitivity=sensitivity, batch_fraction=batch_fraction,
                         delta0=delta0)
    eta = algorithm.schedule.largest
    found = guarantee_at(given, eta)
    return _bound({"gaussian": [given.batch_fraction * given.delta0]}, [1], [found.terms["epsilon_step"]],
                  given, "minibatch", algorithm, "FA-LD (55) and (56)", assumptions=(validity(given, eta),),
                  variant=variant, index="local_step")


@theorem(id="privacy.client_bound", paper=PAPER, number="Theorem G.3, (58) and (59)", kind="upper",
         quantity="privacy_delta", algorithm=FALD, convention="federated", variants=("printed",),
         hypotheses=(IN_FORCE, DATA), index="local_step", applies=private, inputs=standard(*STEP, "delta1"))
def client_bound(constants: Constants, algorithm: FALD, *, n_rounds: int = 1, record: Any = None,
                 sensitivity: float, batch_fraction: float, delta0: float, delta1: float,
                 variant: str = "printed") -> Bound:
    """The local steps of one client in a round, every one of them seen.

    Guarantee for k = 1..K steps, epsilon = min(sqrt(2k log(1/delta1)) + k (e^epsilon_1 - 1), k) epsilon_1:

        delta(epsilon) <= k g delta0 + delta1

    Source: FA-LD (58) and (59). With minibatches the exact side is a lower bound: the sum of the steps.
    Raises: ValueError, see the module.

    Parameters
    ----------
    constants, algorithm, n_rounds, sensitivity, batch_fraction, delta0, delta1
        See the module; `n_rounds` has no part in it.
    record : sequence of local steps 1..K, optional
    variant : "printed"

    Returns
    -------
    Bound on "privacy_delta" with terms "steps" and "composition".
    """
    given = setting_from(constants, algorithm, 1, sensitivity=sensitivity, batch_fraction=batch_fraction,
                         delta0=delta0, delta1=delta1)
    eta = algorithm.schedule.largest
    steps = counts_from_one(given.local_steps, record)
    one = guarantee_at(given, eta).terms["epsilon_step"]
    return _bound({"steps": [int(k) * given.batch_fraction * given.delta0 for k in steps],
                   "composition": [given.delta1] * len(steps)}, steps,
                  [compose(one, int(k), given.delta1).epsilon for k in steps], given, "client", algorithm,
                  "FA-LD (58) and (59)", assumptions=(validity(given, eta),), variant=variant,
                  index="local_step")


RUN = (*STEP, "delta1", "delta2", "client_sizes")


@theorem(id="privacy.round_bound", paper=PAPER, number="Theorem G.3, (62) and (63)", kind="upper",
         quantity="privacy_delta", algorithm=FALD, convention="federated",
         variants=("record_level", "printed"), hypotheses=(IN_FORCE, DATA, EXCHANGEABLE), applies=private,
         inputs=standard(*STEP, "delta1", "client_sizes"))
def round_bound(constants: Constants, algorithm: FALD, *, n_rounds: int = 1, record: Any = None,
                sensitivity: float, batch_fraction: float, delta0: float, delta1: float,
                client_sizes: Any = None, variant: str = "record_level") -> Bound:
    """The uploads of one round, S of N clients being drawn.

    Guarantee, with epsilon_K and delta_K of `client_bound` and q the chance to be drawn:

        record_level: delta(epsilon_K) <= q delta_K
        printed:      delta(log(1 + q (e^epsilon_K - 1))) <= q delta_K (scheme II), (63) (scheme I)

    Source: FA-LD (62) and (63).
    Raises: ValueError, see the module.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, sensitivity, batch_fraction, delta0, delta1, client_sizes
        See the module; `n_rounds` and `record` have no part in it.
    variant : "record_level" or "printed"
        As in `fa_ld_guarantee`.

    Returns
    -------
    Bound on "privacy_delta" with the term "rounds".
    """
    given = setting_from(constants, algorithm, 1, sensitivity=sensitivity, batch_fraction=batch_fraction,
                         delta0=delta0, delta1=delta1, client_sizes=client_sizes)
    found = guarantee_at(given, algorithm.schedule.largest, variant=variant)
    return _bound({"rounds": [found.terms["delta_round"]]}, [1], [found.terms["epsilon_round"]], given, "run",
                  algorithm, "FA-LD (62) and (63)", assumptions=found.assumptions, variant=variant)


@theorem(id="privacy.run_bound", paper=PAPER, number="Theorems 5.1 and G.3", kind="upper",
         quantity="privacy_delta", algorithm=FALD, convention="federated",
         variants=("record_level", "printed"), hypotheses=(IN_FORCE, DATA, EXCHANGEABLE), applies=private,
         inputs=standard(*RUN))
def run_bound(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
              sensitivity: float, batch_fraction: float, delta0: float, delta1: float, delta2: float,
              client_sizes: Any = None, variant: str = "record_level") -> Bound:
    """The uploads of a whole run.

    Guarantee after r rounds, with (epsilon~_K, delta~_K) of `round_bound` and
    epsilon = min(sqrt(2 r log(1/delta2)) + r (e^epsilon~_K - 1), r) epsilon~_K:

        delta(epsilon) <= r delta~_K + delta2

    Source: FA-LD Theorems 5.1 and G.3, (64) and (65). A schedule counts with its largest step size. Where
    minibatches are random, or clients with `client_sizes` are left out, the exact side is a lower bound.
    Raises: ValueError, see the module.

    Parameters
    ----------
    constants, algorithm, n_rounds, sensitivity, batch_fraction, delta0, delta1, delta2, client_sizes
        See the module.
    record : sequence of rounds, optional
    variant : "record_level" or "printed"
        As in `fa_ld_guarantee`.

    Returns
    -------
    Bound on "privacy_delta" with terms "rounds" and "composition"; rounds count from 1.

    Examples
    --------
    >>> import fedsim as fs, theory
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(1e-7, 2)
    >>> bound = run_bound(theory.constants(problem, algorithm), algorithm, n_rounds=9, sensitivity=2.0,
    ...     batch_fraction=1.0, delta0=1e-5, delta1=0.0, delta2=1e-6)
    >>> release = theory.privacy.Release(bound.inputs["setting"], algorithm.schedule)
    >>> theory.check(bound, release).holds
    True
    """
    given = setting_from(constants, algorithm, n_rounds, sensitivity=sensitivity,
                         batch_fraction=batch_fraction, delta0=delta0, delta1=delta1, delta2=delta2,
                         client_sizes=client_sizes)
    rounds, eta = counts_from_one(given.n_rounds, record), algorithm.schedule.largest
    found = [guarantee_at(replace(given, n_rounds=int(r)), eta, variant=variant) for r in rounds]
    spent = [int(r) * one.terms["delta_round"] for r, one in zip(rounds, found, strict=True)]
    return _bound({"rounds": spent, "composition": [given.delta2] * len(rounds)}, rounds,
                  [one.epsilon for one in found], given, "run", algorithm, "FA-LD Theorems 5.1 and G.3",
                  assumptions=(validity(given, eta), *amplification(given, variant)), variant=variant)


def counts_from_one(last: int, record: Any) -> np.ndarray:
    """The recorded rounds or local steps, 1 to `last`."""
    counts = recorded_rounds(last, record)
    return counts[counts > 0]


def _bound(deltas: dict[str, list[float]], counts: Any, epsilon: list[float], given: PrivacySetting,
           observed: str, algorithm: FALD, source: str, **rest: Any) -> Bound:
    """A claimed delta, cut to one, beside the epsilon that it is claimed for."""
    return Bound.from_terms({name: np.minimum(part, 1.0) for name, part in deltas.items()},
                            np.asarray(counts), quantity="privacy_delta", kind="upper", source=source,
                            inputs={"epsilon": np.array(epsilon), "setting": given, "observed": observed,
                                    "schedule": algorithm.schedule},
                            **rest)
