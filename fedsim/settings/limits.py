"""What a call may cost: memory and time are estimated and refused, by name and with advice, before."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any

from .validation import shown


def memory_limit() -> float:
    """Half of the machine's memory, in bytes (4 GB where it is unknown)."""
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4e9


def refuse_bytes(n_bytes: float, what: str | Callable[[], str], advice: str) -> None:
    """Raise ValueError for arrays of more than half of the machine's memory, before they are made.

    `what` says of what, or is called for it when it is wanted.

    Examples
    --------
    >>> from fedsim.settings.limits import refuse_bytes
    >>> refuse_bytes(1e3, "n_clients=10", "use fewer clients")
    """
    if n_bytes > memory_limit():
        words = what if isinstance(what, str) else what()
        raise ValueError(f"{words} needs about {n_bytes / 1e9:.1f} GB, more than half of this machine's "
                         f"memory; {advice}")


LARGEST_WORK = 2e12
"""Operations on large matrices that are begun without being asked twice: minutes."""


def refuse_work(operations: float, what: str, advice: str) -> None:
    """Raise ValueError for more than `LARGEST_WORK` operations, before the first of them.

    Examples
    --------
    >>> from fedsim.settings.limits import refuse_work
    >>> refuse_work(1e6, "n_steps=10", "ask for fewer")
    """
    if operations > LARGEST_WORK:
        raise ValueError(f"{what} would take about {operations:.1g} operations, more than the limit of "
                         f"{LARGEST_WORK:.0g}; {advice}")


def entries(name: str, value: Iterable[Any], most: int) -> list[Any]:
    """What is in a sequence or iterator, or a ValueError beyond `most`: no more than that is ever held.

    Examples
    --------
    >>> from fedsim.settings.limits import entries
    >>> entries("step_size", range(3), 10)
    [0, 1, 2]
    """
    found = list(itertools.islice(value, most + 1))
    if len(found) > most:
        raise ValueError(f"{name}={shown(value)} has more than {most} entries; it must have at most so many")
    return found
