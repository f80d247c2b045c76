"""What FA-LD's and FA-HMC's theorems share: refusals, sources of quantities, decay."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.federated import Federated
from fedsim.interfaces import Algorithm, Problem
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.participation import Participation
from fedsim.settings.validation import Array, positive, shown

from .declare.bound import Assumption, Bound
from .declare.statement import Hypothesis
from .exact import joint_law
from .exact.joint_laws import JointLaw
from .exact.traced_joint import RoundJointLaw
from .facts.constants_of_problem import Constants
from .judge.checking import Measured, quantity, require_target
from .tuning.first_round import rounds_to


def required(words: str, holds: Callable[[Any], bool], refusal: str,
             judge: Callable[..., Assumption] | None = None) -> Hypothesis:
    """A hypothesis that refuses an algorithm which does not meet it; `refusal` shows parts of {algorithm}."""
    return Hypothesis(words, judge, lambda algorithm, problem: (
        "" if holds(algorithm) else refusal.format(algorithm=algorithm)))


def constant_step(why: str, words: str = "constant step size") -> Hypothesis:
    """A hypothesis that refuses schedules, and says why or what to use for them."""
    return required(words, lambda algorithm: algorithm.schedule.is_constant,
                    "step_size={algorithm.step_size!r} must be constant" + why)


def _equal(constants: Constants, algorithm: Federated) -> Assumption:
    drawn, ratios = algorithm.participation, constants.weights * constants.n_clients
    return Assumption.yes("equal weights or scheme I", drawn is None or drawn.replace
                          or bool((np.abs(ratios - 1.0) <= 1e-9).all()))


def other_kinds(algorithm: Federated, problem: Problem) -> str:
    """Why no theorem speaks about this participation, known sets or answers by chance; "" of others."""
    drawn = algorithm.participation
    return "" if drawn is None or isinstance(drawn, Participation) else (
        f"participation={drawn!r} must be None or a fedsim.Participation: the theorem is about all clients, "
        "or those drawn by scheme I or II")


EQUAL_WEIGHTS = Hypothesis("equal weights for scheme II", _equal, other_kinds)


@dataclass(frozen=True)
class Source:
    """What quantities are read from.

    Parameters
    ----------
    kind : type
    words : str
        What a law has to be; {meaning} stands for that of the quantity.
    make : callable
        What makes such a law: `exact` of a `theory.judge.checking.Quantity`.
    of_run : bool
        Whether it makes it from the run alone.
    """

    kind: type
    words: str
    make: Callable[..., Any]
    of_run: bool = True

    def enter(self, name: str, meaning: str, read: Callable[[Bound, Any], Measured]) -> None:
        """Register a quantity; any other law is a ValueError, at rounds in place of local steps too."""
        def measure(bound: Bound, law: Any, level: float) -> Measured:
            if not isinstance(law, self.kind) or isinstance(law, RoundJointLaw):
                raise ValueError(f"law={shown(law)} must be {self.words.format(meaning=meaning)}")
            return read(bound, law)

        quantity(name, meaning, measure, self.make, of_run=self.of_run)


CLIENTS = Source(JointLaw, "a theory.exact.JointLaw at local steps: the bound is about {meaning}",
                 lambda problem, algorithm, n_rounds, start: joint_law(
                     problem, algorithm, n_rounds * algorithm.local_steps, start=start))
PROBLEM = Source(Quadratic, "the fedsim.Quadratic that is meant: the bound is about {meaning}",
                 lambda problem: problem)
TARGET = Source(Gaussian, "the target, a fedsim.Gaussian, and minimizer known",
                lambda problem, algorithm: algorithm.target(problem))


def of_its_size(value: Any, rounds: Any) -> Measured:
    """A quantity whose rounding errors are those of its own largest value."""
    return Measured(np.atleast_1d(value), np.atleast_1d(rounds), float(np.abs(value).max()))


def minimizer_of(bound: Bound, name: str) -> Array:
    """The minimizer among a bound's inputs, or a ValueError where it is not known."""
    if bound.inputs.get(name) is None:
        raise ValueError("minimizer=None is not known: the bound speaks about moments around it; pass "
                         "minimizer=... to theory.Constants")
    return np.asarray(bound.inputs[name])


def about_minimizer(bound: Bound, target: Gaussian) -> Measured:
    """E||X - minimizer||^2 under the target."""
    require_target(bound, target)
    away = target.mean - minimizer_of(bound, "minimizer")
    return of_its_size(target.variances.sum() + (away**2).sum(), 0)


def _rounds_needed(bound: Bound, law: Any, level: float) -> Measured:
    if law is None:
        raise ValueError("law=None: the accuracy of the bound is never reached")
    return of_its_size(float(law), bound.rounds)


quantity("rounds_to_w2", "first communication at which W2 to the target is at most eps", _rounds_needed,
         lambda problem, algorithm, bound, start: rounds_to(
             problem, algorithm, bound.inputs["eps"], start=start))
ORDER = 100.0
"""Factor up to which "of order" is taken to hold at a single problem."""


def of_order(name: str, value: float, limit: float) -> Assumption:
    """``value = O(limit)``, judged with the constant `ORDER`."""
    return Assumption.at_most(name, value, ORDER * limit)


def accuracy(eps: Any) -> float:
    """W2 to be reached, whose square a rate can take."""
    value = positive("eps", eps)
    if not 1e-150 < value < 1e150:
        raise ValueError(f"eps={eps!r} must be between 1e-150 and 1e150: the rate takes its square")
    return value


def half_start(problem: Problem, algorithm: Algorithm, constants: Constants, *others: Any) -> dict[str, Any]:
    """The accuracy where none is given: half of the distance at the start."""
    return {"eps": 0.5 * (constants.initial_w2 or 1.0)}


def decay(rate: float, steps: Any, lost: bool = False) -> Array:
    """(1 - rate)^steps, or 1 minus it, without loss for tiny rates; rates above 1 count as 1."""
    steps = np.asarray(steps, dtype=np.float64)
    exponent = np.where(steps > 0.0, -np.inf, 0.0) if rate >= 1.0 else steps * np.log1p(-rate)
    return -np.expm1(exponent) if lost else np.exp(exponent)


def shares_of_norm(roots: Mapping[str, Any]) -> dict[str, Array]:
    """Terms of the norm of some parts, each part's share of it: no square leaves the range of float64, and a
    part that is alone is the norm to the last digit."""
    norm = np.asarray(functools.reduce(np.hypot, roots.values()))
    return {name: part * np.divide(part, norm, out=np.zeros_like(norm), where=norm != 0.0)
            for name, part in roots.items()}


def shares_of_root(squared: Mapping[str, Array]) -> dict[str, Array]:
    """Terms of the root of a sum: each part's share of the whole."""
    return shares_of_norm({name: np.sqrt(part) for name, part in squared.items()})
