"""Few choices in which every two values of two options meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Choice = dict[str, Any]


def product(options: Mapping[str, Sequence[Any]], allowed: Callable[[Choice], bool] = lambda choice: True
            ) -> list[Choice]:
    """All choices of one value for every option, without those that are not allowed."""
    every = (dict(zip(options, values, strict=True)) for values in itertools.product(*options.values()))
    return [choice for choice in every if allowed(choice)]


def pairs(choice: Choice) -> set[frozenset[tuple[str, Any]]]:
    """What meets in a choice: its values two by two, and each by itself."""
    return {frozenset(pair) for pair in itertools.combinations_with_replacement(choice.items(), 2)}


def cover(options: Mapping[str, Sequence[Any]], allowed: Callable[[Choice], bool] = lambda choice: True
          ) -> list[Choice]:
    """Choices in which every pair that is allowed at all occurs, greedily: that with most new pairs first."""
    every = product(options, allowed)
    if not every:
        return []
    numbers: dict[Any, int] = {}
    met = np.array([[numbers.setdefault(pair, len(numbers)) for pair in
                     itertools.combinations_with_replacement(choice.items(), 2)] for choice in every])
    wanted, chosen = np.ones(len(numbers), dtype=bool), []
    while wanted.any():
        best = int(wanted[met].sum(axis=1).argmax())
        chosen.append(every[best])
        wanted[met[best]] = False
    return chosen


def name(choice: Choice) -> str:
    """For the id of a test."""
    return "-".join(f"{option}={value}" for option, value in choice.items())
