"""The catalogue's entries for the simplified bounds of epsilon, (61) and (73), and the rate (75).

The bound is epsilon, the claimed delta stands in `inputs`, and the exact side is the smallest epsilon at
which that delta is enough. Arguments as in `theory.privacy.bounds`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .bounds import (
    DATA,
    EXCHANGEABLE,
    IN_FORCE,
    PAPER,
    RUN,
    STEP,
    counts_from_one,
    private,
    setting_from,
    standard,
)
from .ceilings import epsilon_rate, simplified, simplified_client
from .setting import PrivacySetting
from .theorem import guarantee_at

LOWEST = -6.0  # log10; unless minibatches are small, (60) and (69) are far below (57)


@theorem(id="privacy.simplified_client_bound", paper=PAPER, number="Theorem G.3's proof, (61)", kind="upper",
         quantity="privacy_epsilon", algorithm=FALD, convention="federated", variants=("printed",),
         hypotheses=(IN_FORCE, "step_size at most (60)", DATA), index="local_step", applies=private,
         inputs=standard(*STEP, "delta1", lowest=LOWEST))
def simplified_client_bound(constants: Constants, algorithm: FALD, *, n_rounds: int = 1, record: Any = None,
                            sensitivity: float, batch_fraction: float, delta0: float, delta1: float,
                            variant: str = "printed") -> Bound:
    """Epsilon of all K local steps of one client, for small step sizes.

    Guarantee, with delta_K = K g delta0 + delta1:

        epsilon(delta_K) <= 2 sqrt(2 K log(1/delta1)) epsilon_1

    Source: FA-LD (61), under (57) and (60).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, sensitivity, batch_fraction, delta0, delta1
        See the module; `n_rounds` and `record` have no part in it. delta1 must be positive.
    variant : "printed"

    Returns
    -------
    Bound on "privacy_epsilon" with the term "steps", at local step K.

    Raises
    ------
    ValueError
        As for `theory.privacy.bounds`, and when delta1 is 0.
    """
    given = setting_from(constants, algorithm, 1, sensitivity=sensitivity, batch_fraction=batch_fraction,
                         delta0=delta0, delta1=delta1)
    value, assumptions = simplified_client(given, algorithm.schedule.largest)
    delta = given.local_steps * given.batch_fraction * given.delta0 + given.delta1
    return _bound("steps", [value], [given.local_steps], [delta], given, "client", algorithm, assumptions,
                  source="FA-LD (61)", kind="upper", variant=variant, index="local_step")


@theorem(id="privacy.simplified_run_bound", paper=PAPER, number="equations (67) and (73)", kind="upper",
         quantity="privacy_epsilon", algorithm=FALD, convention="federated",
         variants=("record_level", "printed"), applies=private,
         hypotheses=(IN_FORCE, "step_size at most (69)", DATA, EXCHANGEABLE),
         inputs=standard(*RUN, lowest=LOWEST))
def simplified_run_bound(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
                         sensitivity: float, batch_fraction: float, delta0: float, delta1: float,
                         delta2: float, client_sizes: Any = None, variant: str = "record_level") -> Bound:
    """Epsilon of a whole run, for small step sizes.

    Guarantee after r rounds, with delta = r delta~_K + delta2 of `run_bound`, and q the chance to be drawn
    ("printed") or 1 ("record_level"):

        epsilon(delta) <= 2 sqrt(2 r log(1/delta2)) log(1 + q (e^(2 sqrt(2 K log(1/delta1)) epsilon_1) - 1))

    Source: FA-LD (73), under (57) and (69); for scheme II there, q extends it to scheme I.

    Parameters
    ----------
    constants, algorithm, n_rounds, sensitivity, batch_fraction, delta0, delta1, delta2, client_sizes
        See the module; delta1 and delta2 must be positive.
    record : sequence of rounds, optional
    variant : "record_level" or "printed"
        As in `simplified_epsilon`.

    Returns
    -------
    Bound on "privacy_epsilon" with the term "rounds"; rounds count from 1.

    Raises
    ------
    ValueError
        As for `theory.privacy.bounds`, and when delta1 or delta2 is 0.
    """
    given = setting_from(constants, algorithm, n_rounds, sensitivity=sensitivity,
                         batch_fraction=batch_fraction, delta0=delta0, delta1=delta1, delta2=delta2,
                         client_sizes=client_sizes)
    rounds, eta = counts_from_one(given.n_rounds, record), algorithm.schedule.largest
    until = [replace(given, n_rounds=int(r)) for r in rounds]
    values = [simplified(one, eta, variant)[0] for one in until]
    deltas = [guarantee_at(one, eta, variant=variant).delta for one in until]
    # (69) is the tighter the more rounds there are: that of the last round is everyone's
    return _bound("rounds", values, rounds, deltas, given, "run", algorithm,
                  simplified(given, eta, variant)[1], source="FA-LD (73)", kind="upper", variant=variant)


@theorem(id="privacy.epsilon_rate_bound", paper=PAPER, number="section 5, (75)", kind="rate",
         quantity="privacy_epsilon", algorithm=FALD, convention="federated",
         variants=("record_level", "printed"), applies=private,
         hypotheses=(IN_FORCE, "step_size at most (69), of which (74) is the rate", DATA, EXCHANGEABLE),
         inputs=standard(*RUN, lowest=LOWEST))
def epsilon_rate_bound(constants: Constants, algorithm: FALD, *, n_rounds: int, record: Any = None,
                       sensitivity: float, batch_fraction: float, delta0: float, delta1: float,
                       delta2: float, client_sizes: Any = None, variant: str = "record_level") -> Bound:
    """The order of epsilon in step size, iterations and drawn clients.

    Up to a constant, with T = r K and q as in `simplified_run_bound`:

        epsilon = O( q Delta_l sqrt(eta T log(1.25/delta0) log(1/delta1) log(1/delta2)
                                    / (tau (1-rho^2) min p)) )

    Source: FA-LD section 5 and (75), for step sizes of order (74). Evaluated with 16, the constant that
    linearising (73) gives.

    Parameters
    ----------
    constants, algorithm, n_rounds, sensitivity, batch_fraction, delta0, delta1, delta2, client_sizes
        See the module; delta1 and delta2 must be positive.
    record : sequence of rounds, optional
    variant : "record_level" or "printed"
        As in `epsilon_rate`.

    Returns
    -------
    Bound of kind "rate" on "privacy_epsilon" with the term "rounds"; rounds count from 1.

    Raises
    ------
    ValueError
        As for `theory.privacy.bounds`, and when delta1 or delta2 is 0.
    """
    given = setting_from(constants, algorithm, n_rounds, sensitivity=sensitivity,
                         batch_fraction=batch_fraction, delta0=delta0, delta1=delta1, delta2=delta2,
                         client_sizes=client_sizes)
    rounds, eta = counts_from_one(given.n_rounds, record), algorithm.schedule.largest
    until = [replace(given, n_rounds=int(r)) for r in rounds]
    return _bound("rounds", [epsilon_rate(one, eta, variant=variant).value for one in until], rounds,
                  [guarantee_at(one, eta, variant=variant).delta for one in until], given, "run", algorithm,
                  epsilon_rate(given, eta, variant=variant).assumptions, source="FA-LD (75)", kind="rate",
                  variant=variant)


def _bound(term: str, values: list[float], counts: Any, deltas: list[float], given: PrivacySetting,
           observed: str, algorithm: FALD, assumptions: tuple[Assumption, ...], **rest: Any) -> Bound:
    """A bound of epsilon beside the delta that it is claimed for."""
    return Bound.from_terms({term: np.array(values)}, np.asarray(counts), quantity="privacy_epsilon",
                            inputs={"delta": np.array(deltas), "setting": given, "observed": observed,
                                    "schedule": algorithm.schedule},
                            assumptions=assumptions, **rest)
