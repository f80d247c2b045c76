"""How a budget of evaluations is spent: DIRECT, then restarts of differential evolution and Nelder-Mead.

Every single optimiser sometimes sits in a wrong basin; restarts from independent seeds are what helps, and
whether they agree is what a reader wants to know. One counter sees every evaluation and keeps the best point
itself: optimisers have their own idea of it, and overrun what they are allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

DIRECT_SHARE = 0.15
"""Of the budget: it is deterministic, and covers plateaus."""
EVOLUTION_SHARE = 0.6
"""Of a restart; the rest is Nelder-Mead from its best point."""
RESTARTS, PER_RESTART = 4, 2500
"""At least so many, and one more for each so many evaluations."""
POPULATION = 16
"""Of the differential evolution: a power of two, as Sobol points want it."""
ENDS = 0.05
"""By how much optimisers see the cube extended, and pressed to its faces: suprema often sit there."""
SIMPLEX = (0.2, 0.05, 0.01)
"""Sizes of the first simplex, one after the other as long as a restart lasts."""


class Spent(Exception):
    """The evaluations of a part of the budget are used up."""


@dataclass
class Counter:
    """Counts evaluations of a function to be maximised, and keeps the best point.

    Attributes
    ----------
    function : callable (p,) -> float
        -inf where there is no value.
    allowed : int
        Evaluations up to the end of the present part.
    """

    function: Callable[[Array], float]
    allowed: int = 0
    evaluations: int = 0
    best: float = -np.inf
    at: Array | None = None
    part_best: float = -np.inf
    part_at: Array | None = None
    parts: list[tuple[str, float, int]] = field(default_factory=list)

    def __call__(self, point: Any) -> float:
        """What optimisers minimise: minus the value, or 0 where there is none."""
        if self.evaluations >= self.allowed:
            raise Spent
        self.evaluations += 1
        at = np.clip((1.0 + 2.0 * ENDS) * np.asarray(point, dtype=np.float64) - ENDS, 0.0, 1.0)
        value = self.function(at)
        if value > self.part_best:
            self.part_best, self.part_at = value, at.copy()
        if value > self.best:
            self.best, self.at = value, at.copy()
        return -value if np.isfinite(value) else 0.0

    def part(self, name: str, evaluations: int, work: Callable[[], None]) -> None:
        """Spend a part of the budget; its best is noted also where it is interrupted."""
        self.allowed = self.evaluations + evaluations
        self.part_best, self.part_at = -np.inf, None
        try:
            work()
        except Spent:
            pass
        finally:
            self.parts.append((name, self.part_best, self.evaluations))


def parts_of(budget: int) -> list[tuple[str, int]]:
    """Names and evaluations of the parts of a budget, which they use up."""
    restarts = max(RESTARTS, budget // PER_RESTART)
    first = int(DIRECT_SHARE * budget)
    each, more = divmod(budget - first, restarts)
    return [("direct", first), *((f"restart {i + 1}", each + (i < more)) for i in range(restarts))]


def run(counter: Counter, size: int, budget: int, seed: int, tell: Callable[[Counter], None]) -> None:
    """Spend a budget on a function of `size` unknowns; `tell` hears of every part that ends."""
    for number, (name, evaluations) in enumerate(parts_of(budget)):
        if number == 0:
            counter.part(name, evaluations, lambda: _direct(counter, size))
        else:
            rng = np.random.default_rng([seed, number])
            counter.part(name, evaluations,
                         lambda rng=rng, n=evaluations: _restart(counter, size, n, rng))  # type: ignore[misc]
        tell(counter)


def _direct(counter: Counter, size: int) -> None:
    from scipy.optimize import Bounds, direct

    direct(counter, Bounds(np.zeros(size), np.ones(size)), maxfun=counter.allowed + 10 * size,
           maxiter=10**6, vol_tol=0.0, len_tol=0.0)


def _restart(counter: Counter, size: int, evaluations: int, rng: np.random.Generator) -> None:
    """Differential evolution from Sobol points, then Nelder-Mead from its best."""
    from scipy.optimize import Bounds, differential_evolution, minimize
    from scipy.stats import qmc

    end, bounds = counter.allowed, Bounds(np.zeros(size), np.ones(size))
    counter.allowed = end - evaluations + int(EVOLUTION_SHARE * evaluations)
    points = qmc.Sobol(size, rng=rng).random(POPULATION)
    try:
        differential_evolution(counter, bounds, init=points, maxiter=10**6, tol=0.0, polish=False, rng=rng)
    except Spent:
        pass
    counter.allowed = end
    for number in range(evaluations):  # it ends by the counter
        best = rng.random(size) if counter.part_at is None else (counter.part_at + ENDS) / (1.0 + 2.0 * ENDS)
        steps = SIMPLEX[number % len(SIMPLEX)] * rng.choice((-1.0, 1.0), size)
        corners = best + np.diag(np.where(np.abs(best + steps - 0.5) <= 0.5, steps, -steps))
        minimize(counter, best, method="Nelder-Mead", bounds=bounds,
                 options={"initial_simplex": np.vstack([best, corners]), "adaptive": True, "maxfev": 10**9,
                          "maxiter": 10**9, "xatol": 1e-9, "fatol": 1e-12})
