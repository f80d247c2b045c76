"""What algorithms are tried on, by algorithm: options against the slow twin, and cases with an exact law."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from examples_of import posterior

import fedsim as fs

ONE_LEAF_AND_TWO = (0, 63, 65)
"""Replicas compared: 64 make a leaf, and two more may be laid out otherwise."""
ALONE = (0, 2)
"""Of three replicas: so few may have coordinates as lanes."""


DOUBLE, SINGLE, BOTH = ("double",), ("single",), ("double", "single")


class Group(NamedTuple):
    """Options that are compared with the slow twin: triples of problem, algorithm and start.

    `options` is called for them; `noises` are the precisions of the variates that are tried.
    `average` is the test function that is averaged along, as `tests/bits.py` does, with the same kernels.
    """

    options: Callable[[], Iterable[tuple[Any, Any, Any]]]
    noises: tuple[str, ...] = DOUBLE
    replicas: tuple[int, ...] = ONE_LEAF_AND_TWO
    n_rounds: int = 3
    average: str | None = None


class Example(NamedTuple):
    """A problem and an algorithm whose law is known, and a start."""

    problem: Any
    algorithm: Any
    start: Any = None


def scheme_one(n_active):
    """So many clients, drawn with replacement."""
    return fs.Participation(n_active, True)


def scheme_two(n_active):
    """So many clients, all different."""
    return fs.Participation(n_active, False)


def with_starts(pairs, starts):
    """Named pairs of problem and algorithm as `Example`s; those without a start begin at the origin."""
    assert set(starts) <= set(pairs)
    return {name: Example(*pair, starts.get(name)) for name, pair in pairs.items()}


POSTERIORS = [
    posterior("logistic", 2), posterior("logistic", 9), posterior("logistic", 1, batch_size=4),
    posterior("logistic", 4, batch_size=3, replace=False, weights=[0.5, 0.3, 0.2]),
    posterior("logistic", 9, batch_size=2, gradient_noise=0.4, grad_scale="batch_sum"),
    posterior("logistic", 3, (30, 21), batch_size=19, replace=False), posterior("linear", 3),
    posterior("linear", 3, batch_size=4), posterior("linear", 3, (30, 21), batch_size=17, replace=False),
    posterior("linear", 5, batch_size=3, grad_scale="batch_sum", weights=[0.2, 0.2, 0.6])]
