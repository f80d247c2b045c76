"""How the server averages: what is known of the clients' shares s in x' = x + sum_c s_c (beta^c - x).

With shares of mean p and covariance Sigma = L L', independent of all else,

    M - I = sum_c p_c (G_c - I),   v = sum_c p_c a_c,   Q' = sum_ce (p_c p_e + Sigma_ce) Q_ce,
    H_k = sum_c L_ck (G_c - I),    u_k = sum_c L_ck a_c,

in the notation of `affine`, a_c what client c adds. Known sets have Sigma = 0, and p of their round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.settings.participation import Participation
from fedsim.settings.participation_fixed import FixedParticipation
from fedsim.settings.validation import Array

from ..affine import LARGEST_STEPS, NoExactLaw


@dataclass(frozen=True)
class Averaging:
    """Of an algorithm on a problem.

    Parameters
    ----------
    weights : (N,)
    factor : float
        f of schemes I and II, 0 for all clients; without meaning where other `shares` are known.
    mean : (N,), or None with a scheme or known sets
    roots : (k, N), or None where shares are not random
        The rows are the columns of L.
    sets : FixedParticipation, or None
    """

    weights: Array
    factor: float = 0.0
    mean: Any = None
    roots: Any = None
    sets: Any = None

    @classmethod
    def of(cls, problem: Any, algorithm: Any) -> Averaging:
        """What `algorithm.participation` says."""
        chosen, weights = algorithm.participation, problem.weights
        if chosen is None or isinstance(chosen, Participation):
            return cls(weights, algorithm.variance_factor(problem))
        if isinstance(chosen, FixedParticipation):
            return cls(weights, sets=chosen)
        mean, cov = chosen.shares(weights)
        if not cov.any():
            return cls(weights, mean=mean)
        values, vectors = np.linalg.eigh(cov)
        kept = values > 1e-18 * values[-1]
        return cls(weights, mean=mean, roots=(vectors * np.sqrt(np.clip(values, 0.0, None))).T[kept])

    @property
    def by_scheme(self) -> bool:
        """All clients, or drawn by scheme I or II: shares sum to one, and `factor` says all."""
        return self.mean is None and self.sets is None

    @property
    def is_random(self) -> bool:
        """Whether who takes part makes the law a mixture."""
        return self.factor > 0.0 or self.roots is not None

    def means(self, numbers: Any) -> Array:
        """p of these rounds, (n, N)."""
        if self.sets is not None:
            return np.asarray(self.sets.shares_at(self.weights, numbers))
        return np.broadcast_to(self.weights if self.mean is None else self.mean,
                               (len(numbers), len(self.weights)))

    def second_moments(self, means: Array) -> Array:
        """E s_c s_e for p (n, N), (n, N, N)."""
        outer = means[:, :, None] * means[:, None, :]
        return outer if self.roots is None else outer + self.roots.T @ self.roots

    def require_settled(self) -> None:
        """Raise `NoExactLaw` where no law is stationary because known sets take turns."""
        if self.sets is not None and not self.sets.settles:
            why = (f"the {self.sets.n_sets} sets take turns, so that the law is periodic"
                   if self.sets.cyclic else "the sets are a list, which ends")
            raise NoExactLaw(f"participation={self.sets!r}: {why}, and none is left unchanged by a round; "
                             "use exact_law at late rounds, or the same set in every round with cyclic=True")

    def require_few(self, rounds: np.ndarray, leaps: bool = True) -> None:
        """Raise `NoExactLaw` where more rounds of known sets would be stepped through than is reasonable.

        With `leaps` many periods are one step.
        """
        if self.sets is None:
            return
        gaps = np.diff(rounds)
        steps = int((np.minimum(gaps, 3 * self.sets.n_sets) if leaps else gaps).sum())
        if steps > LARGEST_STEPS:
            raise NoExactLaw(f"n_rounds={rounds[-1]} of known sets would be stepped through one by one, "
                             f"{steps} steps of at most {LARGEST_STEPS}; ask for fewer, or record fewer")
