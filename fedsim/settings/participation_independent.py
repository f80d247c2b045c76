"""Clients that answer by chance, each with a probability of its own; the moments of their shares.

With independent answers z_c of probability q_c and T = sum_c w_c z_c, the average over those who answered has
shares s_c = w_c z_c / T (0 where nobody did). From 1/T = int e^{-Tt} dt and 1/T^2 = int t e^{-Tt} dt, with
f_c(t) = 1 - q_c + q_c e^{-w_c t} and F = prod_c f_c,

    E s_c     = w_c q_c int e^{-w_c t} F / f_c dt,        E s_c^2 = w_c^2 q_c int t e^{-w_c t} F / f_c dt,
    E s_c s_e = w_c w_e q_c q_e int t e^{-(w_c + w_e) t} F / (f_c f_e) dt.

In y = log t the integrands are analytic in a strip and vanish fast at both ends, where the trapezoidal rule
converges exponentially.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..equality import ByValue
from ..hints import listed
from .limits import refuse_bytes
from .participation import Shares, TakesPart, clients_of, weights_of_all
from .validation import Array, array, entry_of, flag, locked, real, set_fields, shape, shown, whole

_STEP, _BELOW, _DECAY = 0.125, 44.0, 48.0
"""Distance of nodes in log t, exact in binary; -log t of the first; w t of the last, w the least weight."""


@dataclass(frozen=True, eq=False, repr=False)
class IndependentParticipation(ByValue, TakesPart):
    """A client answers with its own probability, independently of clients, rounds and replicas: stragglers.

    The server averages over those who answered, with shares w_c / (sum of their weights), and keeps its value
    where nobody did; those who answer seldom count for less than their weight then. With `unbiased` it adds
    sum of (w_c/q_c) (theta_c - theta) over them, whose mean is that of all clients. A client's own noise has
    the variance that it has with all clients, 1/w_c times that of the average.

    Parameters
    ----------
    probabilities : float or (N,)
        q_c of every client, or one for all; in (0, 1].
    unbiased : bool
        Weigh by inverse probabilities.

    Raises
    ------
    ValueError
        For probabilities outside (0, 1]; by the problem, unless there is one for each client.

    Source: a set-up of practice, not of the papers.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> for unbiased in (False, True):
    ...     seldom = fs.IndependentParticipation([0.9, 0.3], unbiased)
    ...     theory.exact_law(problem, fs.FALD(0.1, participation=seldom), 500).mean[-1].round(4)
    array([0.3929])
    array([0.75])
    """

    probabilities: Any
    unbiased: bool = False

    def __post_init__(self) -> None:
        given = self.probabilities
        several = isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim > 0)
        given = array("probabilities", given, 1) if several else real("probabilities", given)
        for place, value in np.ndenumerate(given):
            if not 0.0 < value <= 1.0:
                name = entry_of("probabilities", place) if several else "probabilities"
                raise ValueError(f"{name}={value:g} must lie in (0, 1]")
        set_fields(self, probabilities=given, unbiased=flag("unbiased", self.unbiased))

    def of_clients(self, n_clients: int) -> Array:
        """q_c of each client, (N,)."""
        n_clients = whole("n_clients", n_clients, 1, 2**31)
        if isinstance(self.probabilities, float):
            refuse_bytes(8.0 * n_clients, f"n_clients={n_clients}", "use fewer clients")
            return np.full(n_clients, self.probabilities)
        return shape("probabilities", self.probabilities, (n_clients,), " (one for each of n_clients)")

    def check(self, problem: Any) -> None:
        n_clients, weights = clients_of(problem)
        with np.errstate(over="ignore"):
            factors = weights / self.of_clients(n_clients)
        if self.unbiased and not factors.max() < 1e150:  # shares' squares have to be numbers
            worst = int(np.argmax(factors))
            raise ValueError(f"probabilities={shown(self.probabilities)} must be larger with unbiased=True: "
                             f"client {worst} would count {factors[worst]:g} times")

    def _most_active(self, n_clients: int) -> int:
        return n_clients

    def _total_active(self, n_clients: int, n_rounds: int) -> float:
        return n_rounds * float(self.of_clients(n_clients).sum())

    def _words(self, n_clients: int) -> str:
        return f"each answers by chance, {self.of_clients(n_clients).sum():g} expected"

    def shares(self, weights: Array) -> Shares:
        """Moments of the clients' shares, of weights (N,) that sum to one; read-only.

        Examples
        --------
        >>> fs.IndependentParticipation(0.5).shares(np.array([0.5, 0.5])).mean
        array([0.375, 0.375])
        """
        given = weights_of_all(weights)
        chances = np.ascontiguousarray(self.of_clients(len(given)))
        refuse_bytes(24.0 * len(given) ** 2, f"{len(given)} weights", "use fewer clients")
        return _shares(given.tobytes(), chances.tobytes(), self.unbiased)

    def __repr__(self) -> str:
        chances = self.probabilities
        what = chances if isinstance(chances, float) else listed(chances, "probabilities")
        return f"IndependentParticipation({what}{', unbiased=True' * self.unbiased})"


@lru_cache(maxsize=8)
def _shares(weights: bytes, chances: bytes, unbiased: bool) -> Shares:
    w, q = np.frombuffer(weights), np.frombuffer(chances)
    if unbiased or (q == 1.0).all():
        moments = Shares(w.copy(), np.diag(w * w * (1.0 - q) / q))
    else:
        moments = _ratio_moments(w, q)
    return Shares(*map(locked, moments))


def _ratio_moments(w: Array, q: Array) -> Shares:
    """By quadrature, see above."""
    y = np.arange(-_BELOW, np.log(_DECAY / w.min()), _STEP)
    t = np.exp(y)
    with np.errstate(divide="ignore", under="ignore"):  # q = 1
        never, often = np.log1p(-q), np.log(q)
        decay = -np.outer(t, w)
        factors = np.logaddexp(never, often + decay)  # log f_c
        others = factors.sum(axis=1, keepdims=True) - factors
        once = np.exp(decay + others)
        mean = w * q * ((_STEP * t) @ once)
        squares = w * w * q * ((_STEP * t * t) @ once)
        # products of square roots, so that the table is symmetric
        half = 0.5 * factors.sum(axis=1, keepdims=True)
        roots = np.sqrt(_STEP) * t[:, None] * np.exp(decay - factors + half)
        second = np.outer(w * q, w * q) * (roots.T @ roots)
    np.fill_diagonal(second, squares)
    return Shares(mean, second - np.outer(mean, mean))
