"""Exact law of stale SGLD and SGHMC, given the ages of the gradients.

With a constant age tau and step size the last iterates (y(l), ..., y(l - tau)), and the velocity q of
SGHMC, make an affine map of their own (the companion form), whose powers are made by doubling. Otherwise
the recursion of `delays` is stepped through. The chain starts with all iterates before it equal to theta_0.

Source: stale-gradient paper, equation (3) and Algorithm 1; the laws are derived.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from fedsim.algorithms.stale import StaleSGHMC, StaleSGLD
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.staleness import Several, Workers, as_staleness
from fedsim.settings.starts import start_moments
from fedsim.settings.validation import Array

from ..affine import AffineMap, Moments, NoExactLaw
from ..batches import MomentMatched, moment_matched
from ..evolution import correlated, evolve, matrix_of, variances_of
from ..families import ExactFamily, exact, keeps_apart
from ..viewed import ENTRIES, viewed
from .recursion import Delays, Directions

LARGEST_STATE = 600
"""Iterates in a companion state."""
LARGEST_WORK = 3e11
"""Operations after which an exact law is refused rather than waited for."""


def companion_map(directions: Directions, step: float, friction: float | None, tau: int) -> AffineMap:
    """One update of (y(l), ..., y(l - tau)), and q, as a `AffineMap` of deviations from the minimizer."""
    dim, width = len(directions.curvatures), tau + 1 + (friction is not None)
    refuse_bytes(40.0 * len(directions.left) * width * width, f"powers of staleness={tau} at dimension "
                 f"{dim}, with room to work,", "use a smaller staleness, diagonal Hessians or fewer "
                 "dimensions")
    deviation = np.zeros((dim, width, width))
    places = np.arange(1, tau + 1)
    deviation[:, places, places - 1] = 1.0
    deviation[:, places, places] = -1.0
    pull, enters = step * directions.curvatures, np.zeros(width)
    if friction is None:
        deviation[:, 0, tau] -= pull
        enters[0] = 1.0
    else:
        deviation[:, 0, tau] -= step * pull
        deviation[:, 0, -1] += step * (1.0 - friction * step)
        deviation[:, -1, tau] -= pull
        deviation[:, -1, -1] = -friction * step
        enters[[0, -1]] = step, 1.0
    noise = directions.inject(step, friction)[:, None, None] * np.outer(enters, enters)
    shape = (dim, dim, width, width) if directions.all_pairs else (dim, width, width)
    return AffineMap(deviation, np.zeros((dim, width)), noise.reshape(shape))


def _work(pairs: int, rounds: np.ndarray, width: int, oldest: int) -> tuple[float, float]:
    """Operations of stepping through, and of powers; a call of NumPy counts as 10^4."""
    last = float(rounds[-1])
    squarings = np.log2(max(last, 2.0)) * (1.0 + 0.5 * len(rounds))
    return last * (15e4 + 4.0 * pairs * (oldest + 1)), squarings * (6e4 + 4.0 * pairs * width**3)


def refuse_law(work: float, last: int) -> None:
    """Raise `NoExactLaw` for more than `LARGEST_WORK` operations."""
    if work > LARGEST_WORK:
        raise NoExactLaw(f"n_rounds={last}: about {work:.1g} operations for this exact law; only a constant "
                         "age of moderate size and a constant step size have powers of the round map. Ask "
                         "for fewer rounds, or use stationary_law")


def n_schedules(algorithm: Any) -> int:
    """Schedules of ages that replicas are spread over."""
    staleness = as_staleness(algorithm.staleness)
    if isinstance(staleness, Several):
        return len(staleness.values)
    return staleness.schedules if isinstance(staleness, Workers) else 1


def each_schedule(algorithm: Any, n_rounds: int) -> list[Any]:
    """The algorithm with each of its schedules alone."""
    staleness = as_staleness(algorithm.staleness)
    if n_schedules(algorithm) == 1:
        return [algorithm]
    known: Any = staleness.worked_out(n_rounds) if isinstance(staleness, Workers) else staleness
    return [replace(algorithm, staleness=known.one(number)) for number in range(len(known.values))]


def _mixture(parts: list[Iterable[Moments]], full: bool) -> Iterable[Moments]:
    """Moments of an equal mixture."""
    for moments in zip(*parts, strict=True):
        means = np.array([mean for mean, _ in moments])
        mean = means.mean(axis=0)
        cov = np.mean([cov for _, cov in moments], axis=0)
        gaps = (means - mean) / np.sqrt(len(means))
        yield mean, matrix_of(cov) + gaps.T @ gaps if full else variances_of(cov) + (gaps**2).sum(axis=0)


def _tables(pooled: Any) -> tuple[Array, Array, Array]:
    """Hessian, identity and covariance of gradient noise: (d, d), or (d,) where coordinates do not mix."""
    noise, dim = pooled.gradient_noise, pooled.dim
    if pooled.structure != "dense" and np.ndim(noise) == 0:
        return pooled.diagonal_hessians[0], np.ones(dim), np.full(dim, (noise or 0.0) ** 2)
    hessian, covariances = pooled.dense_hessians[0], pooled.noise_covariances
    return hessian, np.eye(dim), np.zeros_like(hessian) if covariances is None else covariances[0]


@exact(StaleSGLD, StaleSGHMC)
class StaleFamily(ExactFamily):
    """What both stale algorithms share."""

    def solvable(self, problem: Any) -> Any:
        """Also minibatches of `GaussianMean`: their noise does not depend on the point."""
        return moment_matched(problem) or super().solvable(problem)

    def is_gaussian(self, problem: Any, algorithm: Any) -> bool:
        return not isinstance(problem, MomentMatched) and n_schedules(algorithm) == 1

    def moments(self, problem: Any, algorithm: Any, rounds: np.ndarray, mean: Array, cov: Array | None,
                full: bool) -> Iterable[Moments]:
        start, last = np.zeros_like(mean) if cov is None else cov, int(rounds[-1])
        if n_schedules(algorithm) > 1:
            refuse_law(n_schedules(algorithm) * last * 15e4, last)
        parts = [self._on_schedule(problem, one, rounds, mean, start, full)
                 for one in each_schedule(algorithm, last)]
        moments = parts[0] if len(parts) == 1 else _mixture(parts, full)
        return moments if cov is not None else ((mean, None) for mean, _ in moments)

    def _on_schedule(self, problem: Any, algorithm: Any, rounds: np.ndarray, mean: Array, cov: Array,
                     full: bool) -> Iterable[Moments]:
        """Moments given one schedule."""
        pooled, last = problem.pooled(), int(rounds[-1])
        directions = Directions.of(pooled, cov, not full)
        begin, pairs = directions.enter(mean, cov)
        friction, staleness = algorithm.friction, as_staleness(algorithm.staleness)
        settled = staleness.limit if hasattr(staleness, "tau") and algorithm.schedule.is_constant else None
        by_steps, by_powers = np.inf, np.inf
        if settled is not None:
            width = settled + 1 + (friction is not None)
            by_steps, by_powers = _work(len(pairs), rounds, width, min(settled, last))
            by_powers = by_powers if width <= LARGEST_STATE else np.inf
        if by_powers < by_steps:
            refuse_law(by_powers, last)
            yield mean, cov  # as it was given, without rounding
            moments = self._powers(directions, algorithm, rounds, begin, pairs, settled or 0)
            yield from islice(moments, 1, None)
            return
        refuse_law(last * 15e4, last)  # before the ages are made
        ages = algorithm.ages(last)
        oldest = int(ages.max(initial=0))
        refuse_law(_work(len(pairs), rounds, 1, oldest)[0], last)
        delays = Delays(directions, friction, oldest, oldest + 1, begin, pairs)
        steps = np.broadcast_to(algorithm.schedule.at(np.arange(last)), last)
        yield mean, cov
        for before, now in pairwise(rounds.tolist()):
            for number in range(before, now):
                delays.step(float(steps[number]), int(ages[number]))
            yield directions.leave(*delays.newest)

    def _powers(self, directions: Directions, algorithm: Any, rounds: np.ndarray, begin: Array,
                pairs: Array, tau: int) -> Iterable[Moments]:
        friction = algorithm.friction
        step = companion_map(directions, algorithm.schedule.largest, friction, tau)
        mean, cov = self._begin(begin, pairs, step.shift.shape[1], friction)
        for after, grown in evolve(rounds, mean, cov.reshape(step.noise.shape), step):
            assert grown is not None
            yield directions.leave(after[:, 0], grown[..., 0, 0].ravel())

    def together(self, problem: Any, algorithms: Sequence[Any], start: Any) -> Any:
        one, problem = algorithms[0], self.solvable(problem)
        staleness = as_staleness(one.staleness)
        if not hasattr(staleness, "tau"):
            return None
        tau, (mean, cov) = staleness.limit, start_moments(start, problem.dim)
        pooled = problem.pooled()
        directions = Directions.of(pooled, cov, keeps_apart(problem, one, cov))
        width = tau + 1 + (one.friction is not None)
        if len(directions.left) * width**2 > ENTRIES:
            return None
        begin, pairs = directions.enter(mean, cov)
        start_state, past = self._begin(begin, pairs, width, one.friction)
        maps = [companion_map(directions, each.schedule.largest, each.friction, tau) for each in algorithms]
        tables = (np.stack([vars(each)[name] for each in maps]) for name in ("deviation", "shift", "noise"))
        rows = np.broadcast_to(np.eye(1, width), (pooled.dim, 1, width))
        return viewed(AffineMap(*tables), rows, start_state, past.reshape(maps[0].noise.shape),
                      not directions.all_pairs, turn=directions.vectors, middle=directions.minimizer)

    def _begin(self, begin: Array, pairs: Array, width: int, friction: float | None) -> tuple[Array, Array]:
        """Moments (d, w) and (p, w, w) of companion states whose iterates are all the start."""
        start = np.ones(width)
        if friction is not None:
            start[-1] = 0.0
        return begin[:, None] * start, pairs[:, None, None] * np.outer(start, start)

    def stationary(self, problem: Any, algorithm: Any, client: int | None) -> tuple[Array, Array]:
        staleness = as_staleness(algorithm.staleness)
        if staleness.limit is None:
            raise NoExactLaw(f"staleness={staleness!r}: ages that never settle have no stationary law; "
                             "exact_law gives the law at each update")
        if not algorithm.schedule.is_constant:
            raise NoExactLaw("the step size of a schedule never settles: there is no stationary law")
        directions = Directions.of(problem.pooled(), None)
        tau, friction = staleness.limit, algorithm.friction
        power = companion_map(directions, algorithm.schedule.largest, friction, tau)
        if power.shift.shape[1] > LARGEST_STATE:
            raise NoExactLaw(f"staleness={tau} makes a state of more than {LARGEST_STATE} iterates")
        for _ in range(60):  # the noise of 2^n updates tends to the stationary covariance
            power = power.squared()
            if np.abs(power.matrix).max() <= 1e-10:  # enters squared
                still = np.zeros(len(directions.curvatures))
                return problem.minimizer, directions.leave(still, power.noise[..., 0, 0].ravel())[1]
        raise NoExactLaw("the powers of the round map do not vanish: the step size is too close to the "
                         "stability limit")

    def sample(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
               generator: np.random.Generator) -> Array:
        """Update by update: the whole past of a chain decides its next iterates."""
        if n_schedules(algorithm) == 1:
            return self._sample(problem, algorithm, rounds, points, generator)
        each = each_schedule(algorithm, int(rounds[-1]))
        chosen = generator.integers(len(each), size=len(points))
        out = np.empty((len(points), len(rounds), points.shape[1]))
        for number, one in enumerate(each):
            followers = chosen == number
            out[followers] = self._sample(problem, one, rounds, points[followers], generator)
        return out

    def _sample(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
                generator: np.random.Generator) -> Array:
        """Replicas that follow one schedule."""
        pooled, last, friction = problem.pooled(), int(rounds[-1]), algorithm.friction
        hessian, unit, noise = _tables(pooled)
        ages = algorithm.ages(last)
        steps = np.broadcast_to(algorithm.schedule.at(np.arange(last)), last)
        depth = int(ages.max(initial=0)) + 1
        past = np.zeros((depth, *points.shape))
        past[0] = points - pooled.minimizer
        velocity = np.zeros_like(past[0])
        out, recorded = np.empty((len(points), len(rounds), pooled.dim)), 1
        out[:, 0] = points
        for number in range(last):
            h, now = float(steps[number]), past[number % depth]
            size = 2.0 * h * (1.0 if friction is None else friction)
            kick = correlated(generator, len(points), size * unit + h**2 * noise)
            stale = past[(number - ages[number]) % depth]
            kick -= h * (stale * hessian if hessian.ndim == 1 else stale @ hessian)
            if friction is None:
                new = now + kick
            else:
                velocity = (1.0 - friction * h) * velocity + kick
                new = now + h * velocity
            past[(number + 1) % depth] = new
            if recorded < len(rounds) and rounds[recorded] == number + 1:
                out[:, recorded] = new + pooled.minimizer
                recorded += 1
        return out
