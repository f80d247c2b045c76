"""Stale SGLD against the delayed diffusion: W2 of the last iterate, update by update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fedsim.algorithms.stale import StaleSGLD
from fedsim.laws.law import recorded_rounds
from fedsim.settings.staleness import as_staleness

from ..declare.statement import Terms
from ..facts.constants_of_problem import Constants
from ..recursions.bounds import HESSIAN_SMOOTHNESS, floor
from ..recursions.catalogue import recursion_of
from ..recursions.federated import start_distance
from ..recursions.langevin import Moved, Potential, Step, average_step, coupled_step, root
from ..recursions.rounds import Recursion, evaluate
from ..recursions.stationary import BELOW_TWO, STATIONARY, UP_TO_TWO, stationary_terms
from ..theorem_parts import constant_step, required
from .setting import each_age, last_iterate

NAMES = ("initialization", "staleness", "discretization", "gradient_noise")


@dataclass(frozen=True)
class Updates(Recursion):
    """One update of size h; the state is the square of e >= ||theta - Y||.

    As a recursion of `theory.recursions` its rounds are updates of the oldest age, which settle.
    """

    f: Potential
    h: float
    noise: float
    oldest: int
    start: float

    _wandering: dict[int, float] = field(init=False, default_factory=dict, compare=False, repr=False)

    names = NAMES

    def wandering(self, age: int) -> float:
        """D, the change of the diffusion's gradient over the age, integrated over a step."""
        known = self._wandering.get(age)
        if known is None:
            f, h = self.f, self.h
            slope_sq = f.dim * f.smoothness**2
            known = self._wandering[age] = min(math.sqrt(2.0 * slope_sq * h**3 * (age + 1.0 / 3.0)),
                                               h * math.sqrt(2.0 * f.smoothness * f.dim))
        return known

    def after(self, e: Any, lag: Any, age: int) -> Step:
        """What an update makes of e^2; `lag` >= ||(theta - Y) now - (theta - Y) of the age||."""
        if age == 0:
            free = average_step if self.oldest == 0 else coupled_step  # then nothing compares two times
            step = free(e * e, 0.0, self.h, self.f, self.noise)
            return Step(step.change, step.factor, {"staleness": 0.0, **step.added})
        h, f, D = self.h, self.f, self.wandering(age)
        loss, late, noise = f.loss(self.h), h * f.smoothness * lag, h * h * self.noise
        rho, less = 1.0 + loss, loss * e + late + D
        A = rho * e + late
        return Step(less * (2.0 * e + less) + noise, rho * rho,
                    {"staleness": late * (A + rho * e), "discretization": D * (2.0 * A + D),
                     "gradient_noise": noise})

    def move(self, e_old: Any, age: int) -> Any:
        """How far an update moves theta - Y apart from its gradient noise."""
        return self.h * self.f.smoothness * e_old + self.wandering(age)

    def behind(self, moved: Any, age: int) -> Any:
        """The lag of an age over which the updates moved so far in all."""
        return moved + self.h * math.sqrt(self.noise * age)

    # as a recursion whose ages are all the oldest

    @property
    def scale(self) -> float:
        """A size that the state has in the long run."""
        return self.f.reach**2

    @property
    def kept(self) -> float:
        """The least share of e^2 that an update leaves."""
        return self.f.kept(self.h)

    def begin(self) -> list[float]:
        """The state before the first update."""
        return [self.start**2]

    def round(self, state: Sequence[Any], given: None) -> tuple[list[Moved], list[Step]]:
        """An update after many of the same age, all with this e."""
        e = root(state[0])
        step = self.after(e, self.behind(self.oldest * self.move(e, self.oldest), self.oldest), self.oldest)
        return [step.of(state[0])], [step]


@dataclass(frozen=True)
class Window(Updates):
    """Updates whose ages are all the oldest, t; the state are the squares of e_l, ..., e_{l-2t}.

    Before the first update all of them are e_0: so the first t updates, whose gradients are all taken at the
    start, are bounded from above.
    """

    def begin(self) -> list[float]:
        """The state before the first update."""
        return [self.start**2] * (2 * self.oldest + 1)

    def round(self, state: Sequence[Any], given: None) -> tuple[list[Moved], list[Step]]:
        """One update."""
        lag = sum((self.move(root(x), self.oldest) for x in state[self.oldest + 1:]), 0.0)
        step = self.after(root(state[0]), self.behind(lag, self.oldest), self.oldest)
        older = [Moved(newer - x, newer) for newer, x in pairwise(state)]
        return [step.of(state[0]), *older], [step]


def squares(one: Updates, ages: np.ndarray) -> np.ndarray:
    """Parts of e^2 before every update and after the last, (L + 1, 4), for one schedule of ages."""
    e, moved = [one.start], [0.0]
    parts = [one.start**2, 0.0, 0.0, 0.0]
    found = [parts]
    for number, age in enumerate(ages.tolist()):
        old = number - age
        step = one.after(e[-1], one.behind(moved[number] - moved[old], age), age)
        moved.append(moved[-1] + one.move(e[old], age))
        parts = [step.factor * part + step.added.get(name, 0.0)
                 for name, part in zip(NAMES, parts, strict=True)]
        e.append(math.sqrt(sum(parts)))
        found.append(parts)
    return np.array(found)


LARGEST_WORK = 1_000_000
"""Most updates that are gone through one by one, over all schedules of ages."""


ONE_SIZE = constant_step(": ages are counted in equal steps")


@last_iterate("derived here", quantity="w2", terms=NAMES, variants=("proved",), arguments=HESSIAN_SMOOTHNESS,
              source="derived here, for the last iterate; the paper speaks about time averages",
              algorithm=StaleSGLD, hypotheses=(ONE_SIZE, UP_TO_TWO))
def w2_recursion(constants: Constants, algorithm: StaleSGLD, n_rounds: int, record: Any, *,
                 hessian_smoothness: float | None = None) -> Terms:
    """W2 bound of the last iterate of SGLD with stale gradients, evaluated at every update.

    Guarantee, for m-strongly convex and L-smooth f, any known ages and gradient noise of trace at most v:
    e_l >= W2, where e_0 is W2 at the start (or ||theta_0 - theta_*|| + sqrt(d/m) where that is not known),
    and with old = l - t_l, G = d L^2,

        D_l     = min( sqrt(2 G h^3 (t_l + 1/3)), h sqrt(2 L d) )
        lag_l   = sum_{i=old}^{l-1} (h L e_{i - t_i} + D_i) + h sqrt(v t_l)
        e_{l+1} = sqrt( (rho_h e_l + h L lag_l + D_l)^2 + h^2 v ),    rho_h = max(|1 - hm|, |1 - hL|);

    for t_l = 0 the coupling of `theory.recursions.langevin`. For several schedules of ages the root of the
    mean of e_l^2: given the ages this is a mixture.

    Derivation. Y is the diffusion dY = -grad f dt + sqrt(2) dB in its target, driven by the injected noise,
    g_l = grad f(Y_{lh}). With H (between m and L, symmetric) taking theta_old - Y_old to the difference of
    the gradients there, and D_l the integral over the step of grad f(Y_s) - g_old,

        theta' - Y' = (1 - hH)(theta_l - Y_l) + hH [(theta_l - Y_l) - (theta_old - Y_old)] + D_l - h noise.

    The bracket does not see the injected noise: it is the sum of the moves
    -h(grad f(theta) - grad f(Y)) + D_i and of centred gradient noises, which is the lag. D_l is as (D) of
    `theory.recursions.langevin`, but for times that begin t_l h earlier: the spectral density
    2 l min(t_l h + s, t_l h + s') integrates to 2 l h^3 (t_l + 1/3), and it is at most 2, with
    E|grad f(Y)|^2 <= L d. The update's gradient noise is centred given all before it. Couplings are not
    changed in between, because the lag compares one coupling at two times.

    Source: derived here; the papers have bounds of time averages, up to constants.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), round(bound.floor, 3), bound.is_vacuous
    (3.022, 3.098, False)
    """
    rounds, limit = recorded_rounds(n_rounds, record), as_staleness(algorithm.staleness).limit
    one = _updates(Updates, constants, algorithm, 0 if limit is None else limit, hessian_smoothness)
    if limit is not None and n_rounds > LARGEST_WORK:
        many = _updates(Window, constants, algorithm, limit, hessian_smoothness)
        return Terms(evaluate(many, rounds), floor=floor(one), rounds=rounds, start_distance=one.start)
    ages = each_age(algorithm, n_rounds)
    if ages.size > LARGEST_WORK:
        raise ValueError(f"n_rounds={n_rounds} of {len(ages)} schedules would be gone through one by one; "
                         f"they must be at most {LARGEST_WORK} updates in all")
    if limit is None:
        one = replace(one, oldest=int(ages.max(initial=0)))
    parts = np.mean([squares(one, row)[rounds] for row in ages], axis=0)
    value = np.sqrt(parts.sum(axis=1))
    terms = {name: np.divide(part, value, out=np.zeros_like(value), where=value > 0.0)
             for name, part in zip(NAMES, parts.T, strict=True)}
    return Terms(terms, floor=None if limit is None else floor(one), rounds=rounds, start_distance=one.start)


def _updates(kind: type[Updates], constants: Constants, algorithm: StaleSGLD, oldest: int,
             hessian_smoothness: float | None) -> Updates:
    f = Potential(constants.strong_convexity, constants.smoothness, constants.dim, 1.0, hessian_smoothness)
    return kind(f, float(algorithm.schedule.largest), float(constants.gradient_noise_traces.max()), oldest,
                start_distance(constants, f))


@recursion_of.register(StaleSGLD)
def _window(algorithm: StaleSGLD, constants: Constants, hessian_smoothness: float | None) -> Updates:
    limit = as_staleness(algorithm.staleness).limit
    if limit is None:
        raise ValueError(f"staleness={algorithm.staleness!r} must settle at an age, to plan with")
    return _updates(Window, constants, algorithm, limit, hessian_smoothness)


FRESH = required("staleness = 0",
                 lambda algorithm: as_staleness(algorithm.staleness).limit == 0,
                 "staleness={algorithm.staleness!r} must be 0: with older gradients "
                 "theory.stale.w2_recursion has a floor")


@last_iterate("derived here (stationary)", quantity="stationary_w2", variants=("proved",),
              terms=("discretization", "gradient_noise"), algorithm=StaleSGLD,
              source="derived here, from one update as gradient flow",
              hypotheses=(ONE_SIZE, FRESH, STATIONARY, BELOW_TWO), only={"staleness": 0})
def stationary_bound(constants: Constants, algorithm: StaleSGLD) -> Terms:
    """W2 of the stationary law of SGLD with fresh gradients and a constant step size.

    Guarantee, for h < 2/L, with v the trace of the gradient noise, which may depend on the point:

        W2^2 <= h (L d + v)/(m (2 - hL))

    Source: derived here, see `theory.recursions.stationary`.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0], [[0.0]])
    >>> algorithm = fs.StaleSGLD(0.1, staleness=0)
    >>> round(float(bound.value[0]), 4)
    0.2294
    """
    f = Potential(constants.strong_convexity, constants.smoothness, constants.dim)
    noise = float(constants.gradient_noise_traces.max())
    return stationary_terms(f, float(algorithm.schedule.largest), noise)
