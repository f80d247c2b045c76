"""What a privacy guarantee of FA-LD depends on, the step size apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.settings.alignment import align_fields
from fedsim.settings.participation import Participation
from fedsim.settings.validation import Array, array, client_weights, instance, set_fields, shape, whole

from ..declare.privacy_numbers import CHECKS, counted


def drawn_probability(chance: float, draws: int) -> float:
    """1 - (1 - chance)^draws: a client's chance to be drawn at least once in scheme I."""
    return 1.0 if chance == 1.0 else -math.expm1(draws * math.log1p(-chance))


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivacySetting:
    """Data, noise and schedule of an FA-LD run, as its privacy analysis sees them.

    Parameters
    ----------
    sensitivity : float
        Delta_l, the largest norm of grad l(theta; x) - grad l(theta; x') over theta and records x, x'
        (Assumption G.1); units of the gradient of one record's loss.
    batch_fraction : float
        Share of a client's records in a minibatch, drawn without replacement, in (0, 1] (the paper's
        gamma, Assumption G.2).
    delta0 : float
        Failure probability of one noisy step, in (0, 1).
    delta1, delta2 : float
        Spent on composing the local steps and the rounds, in [0, 1). Zero leaves basic composition.
    local_steps, n_rounds : int
        K and T/K.
    n_clients : int, optional
        N; may be left out when `weights` is given.
    weights : (N,), optional
        p_c; uniform by default.
    participation : fedsim.Participation, optional
        Clients drawn each round. All by default, which is scheme II with S = N for any weights.
    temperature, shared_noise : float
        tau, and rho^2: only the private share 1 - shared_noise of the noise protects.
    client_sizes : int or (N,) of ints, optional
        Records of every client. Without it a client may hold any number.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-LD section 5, assumptions G.1 and G.2, Theorems 5.1 and G.3.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=0.0,
    ...     delta2=0.0, local_steps=10, n_rounds=100, n_clients=4, participation=fs.Participation(2, False))
    >>> given.n_active, given.scheme, given.weights.tolist()
    (2, 'II', [0.25, 0.25, 0.25, 0.25])
    """

    sensitivity: float
    batch_fraction: float
    delta0: float
    delta1: float
    delta2: float
    local_steps: int
    n_rounds: int
    n_clients: Any = None
    weights: Any = None
    participation: Participation | None = None
    temperature: float = 1.0
    shared_noise: float = 0.0
    client_sizes: Any = None

    def __post_init__(self) -> None:
        set_fields(self, **{name: check(name, getattr(self, name)) for name, check in CHECKS.items()})
        if self.n_clients is None and self.weights is None:
            raise ValueError("n_clients=None must be given when weights is None")
        align_fields(self, "weights", "client_sizes")
        n_clients = len(array("weights", self.weights, 1)) if self.n_clients is None else whole(
            "n_clients", self.n_clients, 1)
        set_fields(self, weights=client_weights(self.weights, n_clients), n_clients=n_clients)
        if self.participation is not None:
            instance("participation", self.participation, Participation, type(None)).check(self)
        set_fields(self, client_sizes=self._checked_sizes(n_clients))

    def _checked_sizes(self, n_clients: int) -> Array | None:
        if self.client_sizes is None:
            return None
        if isinstance(self.client_sizes, (int, float, np.generic)):
            return np.full(n_clients, counted("client_sizes", self.client_sizes), dtype=np.float64)
        sizes = shape("client_sizes", array("client_sizes", self.client_sizes, 1), (n_clients,),
                      " (one per client)")
        if (sizes < 1.0).any() or (sizes != np.floor(sizes)).any():
            raise ValueError(f"client_sizes={np.array2string(sizes, threshold=6)} must be whole numbers, "
                             "at least 1")
        return sizes

    @property
    def n_active(self) -> int:
        """S."""
        return self.n_clients if self.participation is None else self.participation.n_active

    @property
    def scheme(self) -> str:
        """The paper's name of the participation scheme; full participation counts as "II"."""
        return "II" if self.participation is None else self.participation.scheme

    @property
    def everyone_is_drawn(self) -> bool:
        """True when no client is left out of a round, so that drawing clients hides nothing."""
        whole = self.n_active == self.n_clients
        return whole and (self.scheme == "II" or (self.scheme == "I" and self.n_clients == 1))

    @property
    def smallest_weight(self) -> float:
        """min_c p_c: the client with the largest sensitivity relative to its noise."""
        return float(np.min(self.weights))

    @property
    def largest_weight(self) -> float:
        """max_c p_c."""
        return float(np.max(self.weights))

    @property
    def equal_weights(self) -> bool:
        """True when all p_c are 1/N."""
        return self.largest_weight <= self.smallest_weight * (1.0 + 1e-9)

    def chance(self, variant: str) -> float:
        """Probability that scheme I's single draw takes the client: 1/N as printed, else max_c p_c."""
        return 1.0 / self.n_clients if variant == "printed" else self.largest_weight

    def drawn(self, variant: str) -> float:
        """Probability that a round draws the client that holds the changed record, the largest if unequal."""
        if self.scheme == "II":
            return self.n_active / self.n_clients
        return drawn_probability(self.chance(variant), self.n_active)

    def log_noise_scale(self, step_size: float) -> float:
        """log of step_size log(1.25/delta0) / (tau (1 - shared_noise) min p); inf if shared_noise=1."""
        if self.shared_noise == 1.0:
            return math.inf
        private = math.log(self.temperature) + math.log1p(-self.shared_noise) + math.log(self.smallest_weight)
        return math.log(step_size) + math.log(math.log(1.25) - math.log(self.delta0)) - private

    @property
    def fewest_records(self) -> float:
        """Number of records in all; N, the fewest possible, when `client_sizes` is not given."""
        return float(self.n_clients if self.client_sizes is None else self.client_sizes.sum())

    @property
    def largest_client(self) -> float:
        """Records of the largest client; infinite when `client_sizes` is not given."""
        return math.inf if self.client_sizes is None else float(self.client_sizes.max())


def setting_of(problem: Any, algorithm: FALD, n_rounds: int, *, sensitivity: float, batch_fraction: float,
               delta0: float, delta1: float, delta2: float, client_sizes: Any = None) -> PrivacySetting:
    """The setting of an FA-LD run.

    Parameters
    ----------
    problem : a fedsim problem (its weights are used), or the weights (N,) themselves
    algorithm : fedsim.FALD
    n_rounds : int
    sensitivity, batch_fraction, delta0, delta1, delta2, client_sizes
        As in `PrivacySetting`.

    Returns
    -------
    PrivacySetting

    Raises
    ------
    ValueError
        For an algorithm of another class, and as `PrivacySetting`.

    Source: FA-LD section 5, assumptions G.1 and G.2.

    Examples
    --------
    >>> given = theory.privacy.setting_of([0.25, 0.75], fs.FALD(1e-8, 5), 10, sensitivity=2.0,
    ...     batch_fraction=0.1, delta0=1e-6, delta1=0.0, delta2=0.0)
    >>> given.n_clients, given.local_steps, given.smallest_weight
    (2, 5, 0.25)
    """
    instance("algorithm", algorithm, FALD)
    try:
        weights = problem.weights
    except AttributeError:  # not a problem: they are the weights themselves
        weights = array("problem", problem, 1)
    return PrivacySetting(
        sensitivity=sensitivity, batch_fraction=batch_fraction, delta0=delta0, delta1=delta1, delta2=delta2,
        local_steps=algorithm.local_steps, n_rounds=n_rounds, weights=weights,
        participation=algorithm.participation,  # type: ignore[arg-type]  # it refuses other kinds
        temperature=algorithm.temperature,
        shared_noise=algorithm.shared_noise, client_sizes=client_sizes)
