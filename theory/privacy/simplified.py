"""The catalogue's entries for the simplified bounds of epsilon, (61) and (73), and the rate (75).

The bound is epsilon, and the claimed delta stands in `inputs`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedsim.algorithms.fa_ld import FALD

from ..statement import Terms
from .bounds import ALL, ONE, standard
from .ceilings import simplified, simplified_client
from .claims import (
    CLIENT,
    DATA,
    EXCHANGEABLE,
    FORMS,
    IN_FORCE,
    OF_ORDER,
    RUN,
    SMALL_IN_ROUND,
    SMALL_IN_RUN,
    claim,
)
from .rates import epsilon_rate
from .setting import PrivacySetting
from .theorem import guarantee_at

LOWEST = -6.0  # log10; unless minibatches are small, (60) and (69) are far below (57)


@CLIENT.theorem("Theorem G.3's proof, (61)", source="FA-LD (61)", quantity="privacy_epsilon",
                terms=("steps",), hypotheses=(IN_FORCE, SMALL_IN_ROUND, DATA), index="local_step",
                inputs=standard(*ONE, "delta1", lowest=LOWEST))
def simplified_client_bound(s: PrivacySetting, algorithm: FALD) -> Terms:
    """Epsilon of all K local steps of one client, for small step sizes.

    Guarantee, with delta_K = K g delta0 + delta1:

        epsilon(delta_K) <= 2 sqrt(2 K log(1/delta1)) epsilon_1

    Source: FA-LD (61), under (57) and (60).

    It is a bound at local step K, and asks for a positive delta1.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(1e-7, local_steps=2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.privacy.simplified_client_bound(known, algorithm, sensitivity=2.0,
    ...     batch_fraction=1.0, delta0=1e-5, delta1=1e-6)
    >>> bound.value.round(5).tolist(), bound.inputs["delta"].round(9).tolist()
    ([0.09111], [2.1e-05])
    """
    return claim(s, algorithm, "client", {"steps": simplified_client(s, algorithm.schedule.largest)},
                 [s.local_steps], delta=[s.local_steps * s.batch_fraction * s.delta0 + s.delta1])


@RUN.theorem("equations (67) and (73)", source="FA-LD (73)", quantity="privacy_epsilon", terms=("rounds",),
             hypotheses=(IN_FORCE, SMALL_IN_RUN, DATA, EXCHANGEABLE), variants=FORMS,
             inputs=standard(*ALL, lowest=LOWEST))
def simplified_run_bound(s: PrivacySetting, algorithm: FALD, rounds: np.ndarray, variant: str) -> Terms:
    """Epsilon of a whole run, for small step sizes.

    Guarantee after r rounds, with delta = r delta~_K + delta2 of `run_bound`, and q the chance to be drawn
    ("printed") or 1 ("record_level"):

        epsilon(delta) <= 2 sqrt(2 r log(1/delta2)) log(1 + q (e^(2 sqrt(2 K log(1/delta1)) epsilon_1) - 1))

    Source: FA-LD (73), under (57) and (69); for scheme II there, q extends it to scheme I.

    Rounds count from 1. It asks for positive delta1 and delta2. (69) is the tighter the more rounds there
    are: that of the last round is everyone's.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(1e-9, 2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.privacy.simplified_run_bound(known, algorithm, n_rounds=9, sensitivity=2.0,
    ...     batch_fraction=1.0, delta0=1e-5, delta1=1e-6, delta2=1e-6)
    >>> release = theory.privacy.Release(bound.inputs["setting"], algorithm.schedule)
    >>> theory.check(bound, release).holds, bound.hypotheses_hold
    (True, True)
    """
    eta, until = algorithm.schedule.largest, _until(s, rounds)
    return claim(s, algorithm, "run", {"rounds": [simplified(one, eta, variant) for one in until]}, rounds,
                 delta=[guarantee_at(one, eta, variant=variant).delta for one in until])


@RUN.theorem("section 5, (75)", source="FA-LD (75)", kind="rate", quantity="privacy_epsilon",
             terms=("rounds",), hypotheses=(IN_FORCE, OF_ORDER, DATA, EXCHANGEABLE), variants=FORMS,
             inputs=standard(*ALL, lowest=LOWEST))
def epsilon_rate_bound(s: PrivacySetting, algorithm: FALD, rounds: np.ndarray, variant: str) -> Terms:
    """The order of epsilon in step size, iterations and drawn clients.

    Up to a constant, with T = r K and q as in `simplified_run_bound`:

        epsilon = O( q Delta_l sqrt(eta T log(1.25/delta0) log(1/delta1) log(1/delta2)
                                    / (tau (1-rho^2) min p)) )

    Source: FA-LD section 5 and (75), for step sizes of order (74). Evaluated with 16, the constant that
    linearising (73) gives.

    Rounds count from 1. It asks for positive delta1 and delta2.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(1e-9, 2)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.privacy.epsilon_rate_bound(known, algorithm, n_rounds=9, sensitivity=2.0,
    ...     batch_fraction=1.0, delta0=1e-5, delta1=1e-6, delta2=1e-6)
    >>> bound.value[[0, 3, 8]].round(4).tolist()
    [0.0958, 0.1916, 0.2874]
    """
    eta, until = algorithm.schedule.largest, _until(s, rounds)
    return claim(s, algorithm, "run",
                 {"rounds": [epsilon_rate(one, eta, variant=variant).value for one in until]}, rounds,
                 delta=[guarantee_at(one, eta, variant=variant).delta for one in until])


def _until(s: PrivacySetting, rounds: np.ndarray) -> list[PrivacySetting]:
    """The setting of as many rounds each."""
    return [replace(s, n_rounds=int(r)) for r in rounds]
