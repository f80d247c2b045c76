"""Trajectory lengths, and the conditions of FA-HMC's theorems on them and on schedules."""

from __future__ import annotations

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis
from .notation import Setting

HALF_TURN = "trajectory length <= 1/(2 sqrt(smoothness))"
FULL_TURN = "trajectory length <= 1/sqrt(smoothness)"
REACH = "trajectory length <= min(1/sqrt(smoothness), 1/(2 sqrt(strong_convexity)))"
MOMENT_RANGE = "trajectory length^2 <= strong_convexity/(4 smoothness^2)"
EQUAL_STEPS = "constant step_size within each round"


def trajectory_lengths(algorithm: FAHMC, n_steps: int) -> Array:
    """K eta_t of the local updates 0..n_steps-1."""
    schedule = algorithm.schedule
    if schedule.n_steps is not None and schedule.n_steps < n_steps:
        raise ValueError(f"step_size has {schedule.n_steps} entries; it must have at least {n_steps}, one "
                         "per local update")
    refuse_bytes(32.0 * n_steps, f"n_steps={n_steps}", "each step's length is looked at; ask for fewer")
    return algorithm.leapfrog_steps * np.asarray(schedule.at(np.arange(n_steps)), dtype=np.float64)


def _limited(s: Setting, name: str) -> Assumption:
    """A limit on the trajectory length by its name."""
    limit = {HALF_TURN: 0.5 / np.sqrt(s.L), FULL_TURN: 1.0 / np.sqrt(s.L),
             REACH: min(1.0 / np.sqrt(s.L), 0.5 / np.sqrt(s.mu)), MOMENT_RANGE: s.mu / (4.0 * s.L**2)}[name]
    return Assumption.at_most(name, s.X**2 if name == MOMENT_RANGE else s.X, limit)


def within(name: str, printed: str = "") -> Hypothesis:
    """A limit on the trajectory length, another one for the variant "printed" where it has one."""
    return Hypothesis(name, lambda s, variant: _limited(s, printed if printed and variant == "printed"
                                                        else name))


def equal_within_rounds(algorithm: FAHMC, n_steps: int) -> Assumption | None:
    """The hypothesis on schedules; none is needed for a constant step size."""
    if algorithm.schedule.is_constant:
        return None
    lengths = trajectory_lengths(algorithm, n_steps)
    firsts = lengths[np.arange(n_steps) // algorithm.local_steps * algorithm.local_steps]
    return Assumption.yes(EQUAL_STEPS, bool((np.abs(lengths - firsts) <= 1e-12 * firsts).all()))


def steps_allowed(algorithm: FAHMC, n_steps: int, variant: str) -> Assumption | None:
    """Theorem 4.4's: as printed step sizes never increase, else they are constant within each round."""
    if variant != "printed" or algorithm.schedule.is_constant:
        return equal_within_rounds(algorithm, n_steps)
    falling = bool((np.diff(trajectory_lengths(algorithm, n_steps)) <= 0.0).all())
    return Assumption.yes("step_size never increases", falling)


SHORT = within(MOMENT_RANGE)
MOMENTS = Hypothesis(f"{MOMENT_RANGE}, unless gradient_moments are given",
                     lambda s, gradient_moments: None if gradient_moments is not None
                     else _limited(s, MOMENT_RANGE))
EQUAL = Hypothesis(EQUAL_STEPS, lambda algorithm, rounds: equal_within_rounds(algorithm, int(rounds.max())))
EQUAL_ALONG = Hypothesis(EQUAL_STEPS, lambda algorithm, coupling: equal_within_rounds(
    algorithm, len(coupling)))
