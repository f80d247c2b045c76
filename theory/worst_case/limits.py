"""The largest step size within a theorem's hypotheses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..declare.registry import Theorem
from ..facts.constants_of_problem import Constants
from .forms import Draft

PROBED = 1e-3
"""Of the largest step size: where the margins are read."""
AT_LIMIT, BELOW = 1.0 - 1e-12, 1.0 - 1e-9
"""Of a limit that belongs to the interval, and of one that does not."""


@dataclass
class StepLimits:
    """Reads limits from the margins of a theorem's hypotheses.

    A margin is 1 - value/limit, and a value is a power of the step size: two readings give the power, which
    is kept, and each further problem needs one.
    """

    entry: Theorem
    variant: str
    powers: dict[str, float] = field(default_factory=dict)

    def largest(self, draft: Draft, facts: Constants, n_rounds: int) -> float:
        """For this problem, algorithm and start; at most `draft.largest`."""
        first = PROBED * draft.largest
        shares = self._shares(draft, facts, first, n_rounds)
        if set(shares) - set(self.powers):
            for name, half in self._shares(draft, facts, 0.5 * first, n_rounds).items():
                told = shares.get(name, 0.0) > 0.0 and half > 0.0
                self.powers[name] = round(math.log2(shares[name] / half), 6) if told else 0.0
        limits = [draft.largest]
        for name, share in shares.items():
            power = self.powers.get(name, 0.0)
            if power > 0.1 and share > 0.0:
                limits.append(first * share ** (-1.0 / power) * (BELOW if " < " in name else AT_LIMIT))
        return min(limits)

    def _shares(self, draft: Draft, facts: Constants, step: float, n_rounds: int) -> dict[str, float]:
        """value / limit of every hypothesis."""
        algorithm = draft.make(step)
        extra = {}
        if self.entry.inputs is not None:
            extra = self.entry.inputs(draft.problem, algorithm, facts, n_rounds, draft.start)
        bound = self.entry.function(facts, algorithm, n_rounds=n_rounds, variant=self.variant, **extra)
        return {one.name: 1.0 - one.margin for one in bound.assumptions}
