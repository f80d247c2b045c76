"""`report`: what is found about a kernel, from one or more step sizes, temperatures and batch sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedsim.interfaces import Problem
from fedsim.settings.validation import Array, flag, positive, shown, whole, whole_numbers

from ..exact.affine import NoExactLaw
from .black_box import Box, seeds_from
from .causes import named
from .comparing import compared, fitting, level as level_of
from .falling import by_step_size, limit
from .findings import Finding, Report
from .likeness import SINGLE_NUMBERS
from .nested import asked
from .probing import LEAVES, Interval, Probe, probe, student

LEAST_DRAWS = 1000
"""Draws of which intervals are as sure as they say."""
MOST_NUMBERS = 100
"""Numbers of a state: seconds for stationary laws of all blocks of draws."""
COARSE = 1e-9
"""Size of an error in a radius that only float32, or less, leaves."""
BATCH_SEEDS = 200
"""Seeds, at least, over which changes by minibatches are averaged."""


class Settings:
    """Kernels of one maker at other settings, each probed once with the same seeds."""

    def __init__(self, make: Callable[..., Any], given: dict[str, Any], options: dict[str, Any],
                 problem: Problem) -> None:
        self.make, self.given, self.options, self.problem = make, given, options, problem

    def kernel(self, **changes: Any) -> Any:
        """The kernel with these settings changed."""
        given = {**self.given, **changes}
        told = f"make({', '.join(f'{name}={value:g}' for name, value in given.items())})"
        found = asked(told, lambda: self.make(**given))
        if not callable(found):
            raise ValueError(f"{told} gives {shown(found)}; it must give a kernel")
        return found

    def probe(self, at: float, /, **changes: Any) -> Probe:
        """Its probe, with the target at this temperature."""
        kernel = self.kernel(**changes)
        try:
            return probe(kernel, self.problem, temperature=at, **self.options)
        except ValueError as error:
            raise ValueError(f"make at step_size={changes.get('step_size', self.given['step_size']):g}: "
                             f"{error}") from error


def report(make: Callable[..., Any], problem: Problem, *, step_size: float, temperature: float = 1.0,
           batch_size: Sequence[int] | None = None, like: Any = None, start: Any = None,
           read: Callable[[Any], Any] | None = None, batched: bool = False, n_draws: int = 20_000,
           seed: int = 0, false_alarm: float = 1e-4) -> Report:
    """Say of somebody's sampler all that is found: a sentence each, with its number and a likely cause.

    The stationary law of a sampler with a step size is biased; so it is compared as the step size falls, and
    with the law of the algorithm that it says it is.

    Parameters
    ----------
    make : callable(step_size) -> kernel(seed, state) -> state
        Where it has parameters `temperature` and `batch_size` they are given by name, too.
    problem : e.g. fedsim.Quadratic
        Whose gradient the kernel has.
    step_size, temperature : float
    batch_size : sequence of int, optional
        Sizes of minibatches that are compared, if the maker takes one; the largest is used elsewhere.
    like : an algorithm, optional
        Shipped, of `fedsim.sampler`, or an `UpdateRule`, with its own step size: what the kernel says it is.
    start, read, batched, n_draws, seed
        As for `probe`.
    false_alarm : float
        Chance, at most, that a right kernel is said to differ.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        As for `probe`.

    Source: none; see docs/guide/is_my_sampler_right.md.

    Examples
    --------
    >>> problem = fs.Quadratic([2.0], [[1.0, 0.0]])
    >>> def make(step_size):
    ...     def kernel(seed, x):
    ...         noise = np.random.default_rng(seed).normal(size=2)
    ...         return x - step_size * problem.gradient(0, x) + np.sqrt(step_size) * noise
    ...     return kernel
    >>> found = theory.testing.report(make, problem, step_size=0.1, n_draws=2000)
    >>> found.differs, found["limit"].causes
    (True, ('the factor 2 under the root is missing',))
    """
    if like is not None:
        fitting(problem, like)
    given: dict[str, Any] = {"step_size": positive("step_size", step_size)}
    temperature, level = positive("temperature", temperature), level_of("false_alarm", false_alarm)
    n_draws = whole("n_draws", n_draws, LEAST_DRAWS)
    if not callable(make):
        raise ValueError(f"make={shown(make)} must be a function of step_size that gives a kernel")
    takes = asked("the signature of make", inspect.signature, make).parameters
    if "temperature" in takes:
        given["temperature"] = temperature
    sizes = [] if batch_size is None else [
        whole("batch_size", one, 1) for one in whole_numbers("batch_size", batch_size).tolist()]
    if sizes and "batch_size" not in takes:
        raise ValueError(f"batch_size={shown(batch_size)} must be a parameter of make, which has "
                         f"{', '.join(takes)}")
    if sizes:
        given["batch_size"] = max(sizes)
    options = {"start": start, "read": read, "batched": flag("batched", batched), "n_draws": n_draws,
               "seed": seed}
    kernels = Settings(make, given, options, problem)
    found = kernels.probe(temperature)
    if found.states.size > MOST_NUMBERS:
        raise ValueError(f"start gives a state of {found.states.size} numbers; reports are for at most "
                         f"{MOST_NUMBERS}: take a problem of fewer dimensions")
    findings, series = _alone(found, read is None), tuple[tuple[float, float, float, float], ...]()
    if like is not None:
        findings += compared(found, problem, like, 0.4 * level, {})
    if found.radius < 1.0 - found.blur:
        more, series = by_step_size(found, kernels, given["step_size"], temperature, 0.3 * level)
        findings += more
    if "temperature" in takes and not found.is_quiet:
        findings += _by_temperature(found, kernels, temperature, 0.2 * level)
    if len(sizes) > 1:
        findings += _by_batch(found, kernels, sorted(sizes), 0.1 * level)
    name = getattr(make, "__name__", type(make).__name__)
    beside = "" if like is None else f", against {shown(like)}"
    return Report(f"{name} at {', '.join(f'{key}={value:g}' for key, value in given.items())}{beside}",
                  tuple(findings), series)


def _alone(found: Probe, first_is_read: bool) -> list[Finding]:
    """Findings of matrix and noise by themselves."""
    digits = f"it computes in float32 ({found.single} is), " if found.single else ""
    parts = list(found.states.parts())
    told = (f" Compared with the target is {parts[0][0]}, the first part of the state."
            if first_is_read and len(parts) > 1 else "")
    findings = [Finding("affine", f"For each seed the kernel is affine in its state, {digits}to "
                        f"{found.rounding:.0e} of its size.{told}")]
    change = found.matrix - np.eye(len(found.matrix))
    if found.is_random:
        findings.append(Finding("matrix", "The matrix depends on the seed, as with minibatches: of laws "
                                "mean and covariance are known."))
    for place, part in parts[1:]:
        kept_part = (np.abs(found.matrix[:, part]) > found.errors[:, part]).any()
        told = "kept from one call to the next" if kept_part else "drawn anew at each call, or not used"
        findings.append(Finding("state", f"{place} is {told}."))
    if found.radius < 1.0 - found.blur:
        ratio, w2 = found.variance_ratio(), found.w2_interval()
        findings += [
            Finding("variance", f"The stationary variance is {ratio} times the target's, averaged over "
                    "directions.", False, *ratio, expected=1.0, label="stationary variance"),
            Finding("w2", f"W2 of the stationary law to the target is {w2}.", False, *w2)]
    else:
        findings.append(_without_law(found, bool((np.abs(change) <= found.errors).all())))
    return findings + _shared(found)


def _without_law(found: Probe, still: bool) -> Finding:
    """A kernel that has no stationary law, or none that its arithmetic can tell."""
    coarse = found.blur > COARSE and found.radius < 1.0 + found.blur
    told = f"The radius of the matrix is {found.radius:.6g}"
    if still and not coarse:
        told = "The matrix is the identity"
    if coarse:
        return Finding("target", f"{told}, which float32 cannot tell from 1: let the kernel compute in "
                       "float64, or with a larger step_size.", False, found.radius)
    causes = ("the gradient is not used", "the only kick comes after the last move, and is thrown away "
              "with its momentum") if still or found.radius < 1.0 + 1e-6 else (
        "the step size is beyond the stability limit", "the gradient has the other sign")
    return Finding("target", f"{told}: with these settings the kernel has no stationary law, and differs "
                   "from a sampler of the target.", True, found.radius, causes=causes)


def _shared(found: Probe) -> list[Finding]:
    """Coordinates of what is read whose noises are the same: told, and no difference by itself."""
    noise = found.view @ found.noise_cov @ found.view.T
    spread = np.sqrt(np.diag(noise))
    if len(noise) < 2 or found.is_quiet or not (spread > 0.0).all():
        return []
    between = np.abs(noise / np.outer(spread, spread) - np.eye(len(noise)))
    place = np.unravel_index(int(np.argmax(between)), between.shape)
    if between[place] < 1.0 - 1e-6:
        return []
    return [Finding("coordinates", f"The noises of coordinates {min(place)} and {max(place)} are the same, "
                    "up to their size.", False, float(between[place]))]


def _by_temperature(found: Probe, kernels: Settings, temperature: float, level: float) -> list[Finding]:
    """Does the stationary variance follow the temperature, as the step size falls if not at this one?"""
    def share_at(scale: float) -> Array:
        step = {"step_size": scale * kernels.given["step_size"]}
        whole = found if scale == 1.0 else kernels.probe(temperature, **step)
        half = kernels.probe(0.5 * temperature, temperature=0.5 * temperature, **step)
        return 0.5 * half.ratio_by_leaf() / whole.ratio_by_leaf()

    try:
        shares = [share_at(1.0)]
        share, falls = student(shares[0], 1.0 - 0.5 * level), ""
        if _is_half(share):
            return [_of_temperature(share, falls, False)]
        shares += [share_at(0.5), share_at(0.25)]  # noise of gradients has no temperature
        share, falls = limit(np.stack(shares), 0.5 * level), "As the step size falls, "
    except NoExactLaw:
        half = kernels.probe(0.5 * temperature, temperature=0.5 * temperature)
        return [_noise_by_temperature(found, half)]
    return [_of_temperature(share, falls, not _is_half(share))]


def _is_half(share: Interval) -> bool:
    return share.low - SINGLE_NUMBERS <= 0.5 <= share.high + SINGLE_NUMBERS


def _of_temperature(share: Interval, falls: str, differs: bool) -> Finding:
    causes = {"momenta that are drawn do not follow the temperature, or it does not enter the noise": 1.0,
              "the temperature stands outside the root, or is there twice": 0.25,
              "the root of the temperature is taken twice": np.sqrt(0.5)}
    likely = named(causes, share.value, share.low - 0.01, share.high + 0.01) if differs else ()
    at = "at half the temperature the stationary variance is"
    return Finding("temperature", f"{falls}{at if falls else at.capitalize()} {share} times as large; the "
                   "target's is 0.5 times.", differs, *share, likely, 0.5, "variance at half the temperature")


def _noise_by_temperature(found: Probe, half: Probe) -> Finding:
    """The same of the noise, where there is no stationary law."""
    share = float(np.trace(half.noise_cov) / max(np.trace(found.noise_cov), 1e-300))
    return Finding("temperature", f"At half the temperature the variance of the noise is {share:.4g} times "
                   "as large.", False, share)


def _by_batch(found: Probe, kernels: Settings, sizes: list[int], level: float) -> list[Finding]:
    """Is the change of the state the same, on average, whatever the size of the minibatches?"""
    seeds = seeds_from(kernels.options["seed"], max(BATCH_SEEDS, kernels.options["n_draws"] // 4))
    direction = np.ones(len(found.point))
    changes = []
    for size in sizes:
        box = Box(kernels.kernel(batch_size=size), found.states, kernels.options["batched"])
        changes.append(box(seeds, found.point + direction) - box(seeds, found.point) - direction)
    largest = changes[-1].mean(axis=0)
    factors = [one @ largest / max(float(largest @ largest), 1e-300) for one in changes]
    findings = []
    for size, factor in zip(sizes[:-1], factors[:-1], strict=True):
        gaps = [part.mean() for part in np.array_split(factor - factors[-1], LEAVES)]
        gap = student(np.array(gaps), 1.0 - level / len(sizes))
        share = Interval(1.0 + gap.value, 1.0 + gap.low, 1.0 + gap.high)
        differs = not gap.low - SINGLE_NUMBERS <= 0.0 <= gap.high + SINGLE_NUMBERS
        part = size / sizes[-1]
        known = {"N/n is missing in the gradient": part, "n/N stands for N/n in the gradient": part**2,
                 "N/n is there twice": 1.0 / part}
        causes = named(known, share.value, 0.85 * share.low, 1.15 * share.high) if differs else ()
        findings.append(Finding("batch_size", f"With minibatches of {size} the gradient is {share} times "
                                f"that with {sizes[-1]}, on average.", differs, *share, causes, 1.0,
                                f"gradient of {size} beside {sizes[-1]}"))
    return findings
