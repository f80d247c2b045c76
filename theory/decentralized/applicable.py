"""What the decentralized statements ask of an algorithm, and the refusal where they say nothing."""

from __future__ import annotations

from typing import Any

from fedsim.algorithms.gossip import Decentralized
from fedsim.settings.network import is_connected
from fedsim.settings.validation import Array


class NotApplicable(ValueError):
    """A theorem says nothing here, and its formula has no value: never a number in its place.

    Examples
    --------
    >>> issubclass(theory.de_sgld.NotApplicable, ValueError)
    True
    """


def require_constant_step(algorithm: Decentralized) -> float:
    """eta; a ValueError for a schedule."""
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant for this theorem; the paper "
                         "has none for schedules")
    return float(algorithm.schedule.largest)


def require_rows(mixing: Array, n_clients: int) -> None:
    """Refuse a network of another size than that of the constants."""
    if len(mixing) != n_clients:
        raise ValueError(f"mixing has shape {mixing.shape}; it must be one row for each of the "
                         f"n_clients={n_clients} of the constants")


def require_connected(mixing: Array) -> None:
    """Raise `NotApplicable` for a network that is not connected."""
    if not is_connected(mixing):
        raise NotApplicable("mixing is not connected (second_eigenvalue = 1): the theorems say nothing about "
                            "it and have no value")


def require_applicable(algorithm: Any) -> None:
    """What every statement asks for: a constant step size and a connected network."""
    require_constant_step(algorithm)
    require_connected(algorithm.mixing)
