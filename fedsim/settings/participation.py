"""Who takes part in a round: clients drawn by a scheme; what every kind of participation offers.

The server moves by x' = x + sum_c s_c (beta_c - x) with shares s_c of the clients' values beta_c, 0 of those
that do not take part. Shares that sum to one make it their average.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..hints import Named
from .validation import Array, array, client_weights, flag, one_of, set_fields, shown, whole

ALIASES = {"replace": "replace=True draws with replacement (scheme I), replace=False without (scheme II)",
          "S": "n_active", "scheme": "replace=True for scheme I, replace=False for scheme II"}
"""Other names of arguments, and what to write."""


SetsOfClients = Collection[Any] | np.ndarray
"""A set of clients for each round, from which `FixedParticipation` is made."""


class Shares(NamedTuple):
    """Mean (N,) and covariance (N, N) of the clients' shares s in a round, of rounds that are alike."""

    mean: Array
    cov: Array


class TakesPart(Named):
    """What every kind of participation offers."""

    def check(self, problem: Any) -> None:
        """Raise ValueError unless the clients of this problem can take part so."""
        raise NotImplementedError

    def require(self, n_rounds: int) -> None:
        """Raise ValueError unless it is known who takes part in each of so many rounds."""

    def _most_active(self, n_clients: int) -> int:
        """The largest number of clients that work in a round, one drawn twice counted twice."""
        raise NotImplementedError

    def _total_active(self, n_clients: int, n_rounds: int) -> float:
        """How many clients work in so many rounds, all together; expected where the number is random."""
        return n_rounds * self._most_active(n_clients)

    def _words(self, n_clients: int) -> str:
        """Who takes part, for `fedsim.explain`."""
        raise NotImplementedError


def clients_of(problem: Any) -> tuple[int, Array]:
    """N and the weights, or a ValueError where a problem has none."""
    try:
        return whole("n_clients", problem.n_clients, 1), problem.weights
    except (AttributeError, ValueError):
        raise ValueError(f"problem={shown(problem)} must have n_clients and weights") from None


def weights_of_all(value: Any) -> Array:
    """Weights (N,) as they are, positive and summing to one."""
    weights = array("weights", value, 1)
    client_weights(weights, len(weights))
    return weights


@dataclass(frozen=True)
class Participation(TakesPart):
    """`n_active` clients a round, drawn anew for every round and replica.

    Parameters
    ----------
    n_active : int
        S, at least 1.
    replace : bool
        True is scheme I: S independent draws with probabilities w_c; a client drawn twice counts
        twice. False is scheme II: a uniform subset, which needs equal weights and S <= N.

    Source: FA-LD section 4.4 and appendix C.1.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> fs.Participation(1, replace=True).variance_factor(problem.n_clients)
    1.0
    >>> fs.FALD(0.1, participation=fs.Participation(1, replace=True)).stability(problem).stable
    True
    """

    n_active: int
    replace: bool
    _aliases = ALIASES

    def __post_init__(self) -> None:
        set_fields(self, n_active=whole("n_active", self.n_active, 1), replace=flag("replace", self.replace))

    @classmethod
    def from_paper(cls, S: int, scheme: str) -> Participation:
        """Scheme "I" or "II" with S devices, as the paper writes them."""
        return cls(S, one_of("scheme", scheme, ("I", "II")) == "I")

    @property
    def scheme(self) -> str:
        """The paper's name, "I" or "II"."""
        return "I" if self.replace else "II"

    def check(self, problem: Any) -> None:
        """Raise ValueError unless this problem's clients can be drawn so."""
        n_clients, weights = clients_of(problem)
        if self.replace:
            return
        if self.n_active > n_clients:
            raise ValueError(f"n_active={self.n_active} must be at most n_clients={n_clients} "
                             "(scheme II draws without replacement)")
        if np.abs(weights - 1.0 / n_clients).max() > 1e-12:
            raise ValueError(f"weights={np.array2string(weights, threshold=6)} must all equal "
                             "1/n_clients for scheme II (replace=False); use replace=True")

    def variance_factor(self, n_clients: int) -> float:
        """Variance of the average over drawn clients, relative to one client drawn by weight.

        1/S with replacement, (N - S) / (S (N - 1)) without.
        """
        n_clients = whole("n_clients", n_clients, 1)
        if n_clients == 1:  # whoever is drawn
            return 0.0
        if self.replace:
            return 1.0 / self.n_active
        return (n_clients - self.n_active) / (self.n_active * (n_clients - 1))

    def _most_active(self, n_clients: int) -> int:
        return self.n_active

    def _words(self, n_clients: int) -> str:
        everyone = self.n_active == n_clients and self.variance_factor(n_clients) == 0.0
        return "all active" if everyone else f"{self.n_active} drawn"

    def shares(self, weights: Array) -> Shares:
        """Moments of the clients' shares: w, and f (diag w - w w') with f the `variance_factor`."""
        w = weights_of_all(weights)
        return Shares(w, self.variance_factor(len(w)) * (np.diag(w) - np.outer(w, w)))
