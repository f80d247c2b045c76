"""Known mistakes, by the number that they leave: factors of the noise and of the gradient.

They are of the kinds that people report in public. A cause is never sure: another mistake, or a choice that
is none, may leave the same number.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

NEAR = 3
"""Causes that are named at most."""
MOST_MOVES = 100
"""Moves of a trajectory that are looked for, at most."""


def noise_causes(numbers: Mapping[str, float]) -> dict[str, float]:
    """Factors of the standard deviation of the noise, by what may have been done.

    `numbers` has step_size, and where they are known temperature, n_clients, friction and share (n/N of a
    minibatch).
    """
    h = numbers["step_size"]
    found = {
        "no noise is added": 0.0,
        "the factor 2 under the root is missing": np.sqrt(0.5),
        "a factor 2 too many under the root": np.sqrt(2.0),
        "a factor 2 that stands outside the root, or is there twice": 2.0,
        "half the noise: a factor 2 divides outside the root": 0.5,
        "the noise has standard deviation step_size: root and factor 2 are missing": np.sqrt(h / 2.0),
        "the noise has standard deviation 2 step_size: the root is missing": np.sqrt(2.0 * h),
        "the noise is multiplied by step_size once more": h,
        "the noise is divided by the root of step_size, and not multiplied":  1.0 / (h * np.sqrt(2.0)),
        "the step size is not under the root: the noise is too large by its inverse root": 1.0 / np.sqrt(h),
        "the root of the root is taken: the noise goes as step_size**(1/4)": (2.0 * h) ** -0.25,
    }
    for name, words in (("temperature", "the temperature"), ("friction", "the friction"),
                        ("n_clients", "the number of clients")):
        value = numbers.get(name, 1.0)
        if value != 1.0:
            found |= {f"{words} does not enter the noise": value**-0.5,
                      f"{words} stands outside the root, or twice under it": value**0.5,
                      f"the noise is divided by {words} and should be multiplied by its root": value**-1.5}
    share = numbers.get("share", 1.0)
    if share != 1.0:
        found |= {"the noise is multiplied by the root of n/N": share**0.5,
                  "the noise is divided by the root of n/N": share**-0.5,
                  "the noise is multiplied by n/N": share, "the noise is divided by n/N": 1.0 / share}
    return found


def gradient_causes(numbers: Mapping[str, float]) -> dict[str, float]:
    """Factors of the gradient, by what may have been done."""
    h = numbers["step_size"]
    found = {
        "the gradient is not used": 0.0,
        "half the gradient is used": 0.5,
        "the gradient is used twice": 2.0,
        "the gradient has the other sign": -1.0,
        "the gradient is not multiplied by step_size": 1.0 / h,
        "the gradient is multiplied by step_size once more": h,
        "the gradient is multiplied by the root of step_size": h**-0.5,
    }
    for name, words in (("temperature", "the temperature"), ("n_clients", "the number of clients")):
        value = numbers.get(name, 1.0)
        if value != 1.0:
            found |= {f"the gradient is divided by {words}": 1.0 / value,
                      f"the gradient is multiplied by {words}": value}
    share = numbers.get("share", 1.0)
    if share != 1.0:
        found |= {"N/n is missing in the gradient of the minibatch": share,
                  "n/N stands for N/n in the gradient of the minibatch": share**2,
                  "N/n is there twice": 1.0 / share}
    return found


def moves_causes(low: float, high: float, pull: float) -> tuple[str, ...]:
    """The cause of a stationary variance in this interval, as steps fall, with momenta that are drawn anew.

    It is L/(L - 1): of L moves, each before its kick, only the L - 1 kicks between them count. `pull` is by
    how many times step_size^2 and the curvature a call changes the state, L (L - 1)/2 there for small steps;
    NaN where it is not known.
    """
    known = [length for length in range(2, MOST_MOVES) if low <= length / (length - 1) <= high
             and not abs(2.0 * pull / (length * (length - 1)) - 1.0) > 0.5]
    if len(known) != 1:
        return ()  # none, or no number that would say it
    (length,) = known
    return (f"each of {length} moves comes before its kick, from momenta that are drawn anew: "
            f"{length}/{length - 1}",)


def named(causes: Mapping[str, float], value: float, low: float, high: float) -> tuple[str, ...]:
    """The causes whose factor lies between `low` and `high`, the nearest to `value` first."""
    fit = [(abs(factor - value), words) for words, factor in causes.items() if low <= factor <= high]
    return tuple(words for _, words in sorted(fit)[:NEAR])
