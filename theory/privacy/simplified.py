"""For small step sizes: the linearised rates (74) and (75), and the catalogue's entries for (61), (73), (75).

The rates have the constants that linearising gives. An entry's bound is epsilon, and the claimed delta stands
in `inputs`.

Source: FA-LD section 5 and appendix G, equations (61), (73) to (75).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.settings.validation import positive

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from . import hypotheses
from .bounds import DATA, EXCHANGEABLE, FORMS, IN_FORCE, OF_CLIENT, OF_RUN, claim, statements
from .setting import PrivacySetting
from .terms import amplified, exp, step_epsilon
from .theorem import guarantee_at

LOWEST = -6.0  # log10; unless minibatches are small, (60) and (69) are far below (57)
of_client = statements(*OF_CLIENT, lowest=LOWEST)
of_run = statements(*OF_RUN, rounds=True, lowest=LOWEST)
SMALL_IN_ROUND = Hypothesis("step_size at most (60)", lambda s, algorithm: hypotheses.at_most(
    hypotheses.local_limit(s), algorithm.schedule.largest, "(60)"))
SMALL_IN_RUN = Hypothesis("step_size at most (69)", lambda s, algorithm, variant: hypotheses.small_in_run(
    s, algorithm.schedule.largest, variant))
OF_ORDER = replace(SMALL_IN_RUN, words="step_size at most (69), of which (74) is the rate")


@dataclass(frozen=True)
class Approximation:
    """A linearised expression: its size for small arguments, never a bound (`kind` is "rate").

    `assumptions` are those of the statement that was linearised, each with its margin.

    Examples
    --------
    >>> value, source, kind = theory.privacy.Approximation(0.5, "(75), linearised")
    >>> value, kind
    (0.5, 'rate')
    """

    value: float
    source: str
    kind: str = "rate"
    assumptions: tuple[Assumption, ...] = ()

    def __iter__(self) -> Iterator[float | str]:
        """So that ``value, source, kind = approximation`` works."""
        return iter((self.value, self.source, self.kind))

    @property
    def hypotheses_hold(self) -> bool:
        """True when every hypothesis in `assumptions` holds."""
        return all(one.holds for one in self.assumptions)


def epsilon_rate(given: PrivacySetting, step_size: float, *, variant: str = "record_level") -> Approximation:
    """Equation (75) with the constant that linearising (73) gives, 16; a rate, not a bound.

    16 (S/N) Delta_l sqrt(eta T log(1.25/delta0) log(1/delta1) log(1/delta2) / (tau (1-shared_noise) min p)),
    with 1 in place of S/N for variant="record_level". Its assumptions are those of (73).

    Parameters
    ----------
    given : PrivacySetting
    step_size : float
        eta.
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    Approximation

    Source: FA-LD (75).
    Raises: ValueError when delta1 or delta2 is 0, for a `step_size` not above 0, and an unknown variant.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> [theory.privacy.epsilon_rate(given, step_size).hypotheses_hold for step_size in (1e-12, 1e-3)]
    [True, False]
    """
    variant = hypotheses.named(variant)
    first, second = hypotheses.needed(given, "(75)", "delta1", "delta2")
    eta = positive("step_size", step_size)
    steps = math.sqrt(float(given.local_steps)) * math.sqrt(float(given.n_rounds))
    several = 8.0 * hypotheses.share(given, variant) * steps * math.sqrt(first * second)
    in_force, *others = hypotheses.assumptions(given, eta, variant)
    return Approximation(several * step_epsilon(given, eta), "FA-LD (75), linearised from (73), constant 16",
                         assumptions=(in_force, hypotheses.small_in_run(given, eta, variant), *others))


def step_size_rate(given: PrivacySetting, *, variant: str = "record_level") -> Approximation:
    """Equation (74) with the constant that linearising (69) gives, 1/16; a rate, not a ceiling.

    tau (1-shared_noise) N^2 min p log(1/delta2) / (16 Delta_l^2 S^2 T log(1.25/delta0) log(1/delta1)), with
    1 in place of N/S for variant="record_level". Its assumptions: that it is itself within (57), and those
    of the variant.

    Parameters
    ----------
    given : PrivacySetting
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    Approximation

    Source: FA-LD (74).
    Raises: ValueError when delta1 or delta2 is 0, and for an unknown variant.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> theory.privacy.step_size_rate(given).hypotheses_hold
    True
    """
    variant = hypotheses.named(variant)
    first, second = hypotheses.needed(given, "(74)", "delta1", "delta2")
    steps = math.log(given.local_steps) + math.log(given.n_rounds)
    value = exp(hypotheses.log_unit(given) - math.log(4.0) - 2.0 * math.log(hypotheses.share(given, variant))
                + math.log(second) - math.log(first) - steps)
    return Approximation(value, "FA-LD (74), linearised from (69), constant 1/16",
                         assumptions=hypotheses.assumptions(given, value, variant))


def simplified_client(given: PrivacySetting, step_size: float) -> float:
    """(61)'s bound of eps_K."""
    first, = hypotheses.needed(given, "(61)", "delta1")
    return 2.0 * math.sqrt(2.0 * given.local_steps * first) * step_epsilon(given, step_size)


def simplified(given: PrivacySetting, step_size: float, variant: str) -> float:
    """(73)."""
    _, second = hypotheses.needed(given, "(73)", "delta1", "delta2")
    inner = simplified_client(given, step_size)
    return 2.0 * math.sqrt(2.0 * given.n_rounds * second) * amplified(inner, hypotheses.share(given, variant))


def simplified_epsilon(given: PrivacySetting, step_size: float, *, variant: str = "record_level") -> float:
    """Equation (73): an upper bound of epsilon for step sizes up to `round_ceiling`.

    2 sqrt(2 (T/K) log(1/delta2)) log(1 + (S/N) (e^(4 c Delta sqrt(eta K log(1/delta1) / (...))) - 1)) with
    c = sqrt(2 log(1.25/delta0)), and 1 in place of S/N for variant="record_level"; looser than the theorem,
    but one formula.

    Parameters
    ----------
    given : PrivacySetting
    step_size : float
        eta.
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    float

    Source: FA-LD (73), under (57) and (69).
    Raises: ValueError when delta1 or delta2 is 0, `step_size` is not above 0 or beyond (57) or (69), and when
    a hypothesis of the variant fails.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> round(theory.privacy.simplified_epsilon(given, 1e-10), 4)
    1.852
    """
    eta = positive("step_size", step_size)
    variant = hypotheses.checked_variant(given, variant)
    limit = hypotheses.round_ceiling(given, variant=variant)
    if eta > limit:
        raise ValueError(f"step_size={eta:g} must be at most {limit:.6g}, the smaller of equation (57), "
                         f"{hypotheses.validity_ceiling(given):.6g}, and equation (69), "
                         f"{hypotheses.run_limit(given, variant):.6g}, for (73) to hold")
    return simplified(given, eta, variant)


@of_client("Theorem G.3's proof, (61)", source="FA-LD (61)", quantity="privacy_epsilon",
           terms=("steps",), hypotheses=(IN_FORCE, SMALL_IN_ROUND, DATA), index="local_step")
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
    epsilon = simplified_client(s, algorithm.schedule.largest)
    return claim(s, algorithm, "client", {"steps": epsilon}, [s.local_steps],
                 delta=[s.local_steps * s.batch_fraction * s.delta0 + s.delta1])


@of_run("equations (67) and (73)", source="FA-LD (73)", quantity="privacy_epsilon", terms=("rounds",),
        hypotheses=(IN_FORCE, SMALL_IN_RUN, DATA, EXCHANGEABLE), variants=FORMS)
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
    return _of_rounds(s, algorithm, rounds, variant, simplified)


@of_run("section 5, (75)", source="FA-LD (75)", kind="rate", quantity="privacy_epsilon",
        terms=("rounds",), hypotheses=(IN_FORCE, OF_ORDER, DATA, EXCHANGEABLE), variants=FORMS)
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
    return _of_rounds(s, algorithm, rounds, variant,
                      lambda one, eta, variant: epsilon_rate(one, eta, variant=variant).value)


def _of_rounds(s: PrivacySetting, algorithm: FALD, rounds: np.ndarray, variant: str,
               epsilon: Callable[[PrivacySetting, float, str], float]) -> Terms:
    """What is claimed after each number of rounds, at the delta of the theorem."""
    eta, until = algorithm.schedule.largest, [replace(s, n_rounds=int(r)) for r in rounds]
    return claim(s, algorithm, "run", {"rounds": [epsilon(one, eta, variant) for one in until]}, rounds,
                 delta=[guarantee_at(one, eta, variant=variant).delta for one in until])
