"""The nodes of a tape, and what two of their kinds carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..settings.validation import Array


class Node(NamedTuple):
    """The result of one operation: kind, payload, and the terms (node, coefficient) of its argument."""

    kind: str
    payload: Any = None
    terms: tuple[tuple[int, Any], ...] = ()


class Chance(NamedTuple):
    """A matrix (n, N) that is drawn anew for each round: its mean, and roots (k, n, N) of what it varies by.

    It is mean + sum_k z_k roots_k for uncorrelated z_k, as far as second moments see; `of` names it.
    """

    mean: Array
    roots: Array
    of: Any


class Each(NamedTuple):
    """A function of vectors (d,), uniform numbers (n,) if there are any, and the vector that it writes.

    `text` tells it from all others.
    """

    name: str
    text: str
    function: Callable[..., Any]
    n_vectors: int
    uniforms: int
