"""`report`: what is found about a kernel, from one or more step sizes, temperatures and batch sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedsim.interfaces import Problem
from fedsim.settings.validation import Array, flag, positive, shown, whole, whole_numbers

from ..exact.affine import NoExactLaw
from .bias import SETTLED
from .black_box import Box, seeds_from
from .causes import moves_causes, named, noise_causes
from .comparing import compared, fitting, level as level_of
from .findings import Finding, Report
from .likeness import SINGLE_NUMBERS
from .nested import asked
from .probing import LEAVES, Interval, Probe, probe, student

CLEAR = 10.0
"""Standard errors that a loss of bias must have for its order to be told."""
BATCH_SEEDS = 200
"""Seeds over which the matrices of minibatches are averaged."""


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
    findings, series = _alone(found, 0.1 * level), tuple[tuple[float, float, float, float], ...]()
    if like is not None:
        findings += compared(found, problem, like, 0.4 * level, {})
    if found.radius < 1.0 - found.rounding:
        more, series = _by_step_size(found, kernels, given["step_size"], temperature, 0.2 * level)
        findings += more
    if "temperature" in takes:
        findings += _by_temperature(found, kernels, temperature, 0.2 * level)
    if len(sizes) > 1:
        findings += _by_batch(found, kernels, sorted(sizes), 0.1 * level)
    name = getattr(make, "__name__", type(make).__name__)
    beside = "" if like is None else f", against {shown(like)}"
    return Report(f"{name} at {', '.join(f'{key}={value:g}' for key, value in given.items())}{beside}",
                  tuple(findings), series)


def _alone(found: Probe, level: float) -> list[Finding]:
    """Findings of matrix and noise by themselves."""
    digits = f"it computes in float32 ({found.single} is), " if found.single else ""
    findings = [Finding("affine", f"For each seed the kernel is affine in its state, {digits}to "
                        f"{found.rounding:.0e} of its size.")]
    change = found.matrix - np.eye(len(found.matrix))
    tiny = 10.0 * found.rounding * max(1.0, float(np.abs(found.matrix).max()))
    if found.is_random:
        findings.append(Finding("matrix", "The matrix depends on the seed, as with minibatches: of laws "
                                "mean and covariance are known."))
    for place, part in list(found.states.parts())[1:]:
        kept_part = np.abs(found.matrix[:, part]).max(initial=0.0) > tiny
        told = "kept from one call to the next" if kept_part else "drawn anew at each call, or not used"
        findings.append(Finding("state", f"{place} is {told}."))
    if not found.radius < 1.0 - found.rounding:
        still = np.abs(change).max() <= tiny
        told = "The matrix is the identity" if still else f"The radius of the matrix is {found.radius:.6g}"
        causes = ("the gradient is not used", "the only kick comes after the last move, and is thrown away "
                  "with its momentum") if still or found.radius < 1.0 + 1e-6 else (
            "the step size is beyond the stability limit", "the gradient has the other sign")
        findings.append(Finding(
            "target", f"{told}: with these settings the kernel has no stationary law, and differs from a "
            "sampler of the target.", True, found.radius, causes=causes))
    else:
        ratio, w2 = found.variance_ratio(), found.w2_interval()
        findings += [
            Finding("variance", f"The stationary variance is {ratio} times the target's, averaged over "
                    "directions.", False, *ratio, expected=1.0, label="stationary variance"),
            Finding("w2", f"W2 of the stationary law to the target is {w2}.", False, *w2)]
    return findings + _shared(found, level)


def _shared(found: Probe, level: float) -> list[Finding]:
    """Are the noises of the coordinates of what is read independent where the target's are?"""
    from scipy import stats

    noise = found.view @ found.noise_cov @ found.view.T
    spread = np.sqrt(np.diag(noise))
    if len(noise) < 2 or not (spread > 0.0).all():
        return []
    between = np.abs(noise / np.outer(spread, spread) - np.eye(len(noise)))
    place = np.unravel_index(int(np.argmax(between)), between.shape)
    i, j, most = min(place), max(place), float(between.max())
    if most < 1.0 - 1e-6:
        if not np.allclose(found.target.cov, np.diag(found.target.variances), rtol=0.0, atol=1e-12):
            return []  # those of a preconditioned sampler need not be independent
        free = len(found.draws) - 2.0
        chance = 2.0 * float(stats.t.sf(most * np.sqrt(free / (1.0 - most**2)), free))
        if chance * len(noise) * (len(noise) - 1.0) / 2.0 > level:
            return []
        return [Finding("coordinates", f"The noises of coordinates {i} and {j} have correlation {most:.4g}, "
                        "and differ from independent ones, which the target's coordinates are; p-value "
                        f"{chance:.2g}.", True, most,
                        causes=("a part of the noise is drawn for several coordinates",))]
    return [Finding("coordinates", f"The noises of coordinates {i} and {j} are the same, up "
                    "to their size, and differ from independent ones.", True, most,
                    causes=("one noise is drawn for all coordinates", "two keys are the same"))]


def _by_step_size(found: Probe, kernels: Settings, size: float, temperature: float,
                  level: float) -> tuple[list[Finding], tuple[tuple[float, float, float, float], ...]]:
    """Where the stationary variance tends as the step size falls, in which order, and its values."""
    steps = [1.0, 0.5, 0.25]
    try:
        smaller = [kernels.probe(temperature, step_size=size * share) for share in steps[1:]]
        ratios = np.stack([one.ratio_by_leaf() for one in (found, *smaller)])
    except NoExactLaw as error:
        return [Finding("limit", f"The bias in the step size is not known: {error}.")], ()
    gaps = np.stack([one.gaps_by_leaf() for one in (found, *smaller)])
    wide = _limit(ratios, 0.5 * level)
    differs = not wide.low <= 1.0 <= wide.high
    first, last = (max(float(one.mean()), 1e-300) for one in (ratios[0], ratios[2]))  # a noise may be none
    growth = float(np.log2(first / last) / 2.0)
    causes = list[str]()
    if differs:
        if min(abs(growth - 1.0), abs(growth + 1.0)) < SETTLED:
            causes.append("the noise is multiplied by step_size, and not by its root" if growth > 0 else
                          "the noise does not fall with the step size as its root")
        root = np.sqrt(np.maximum(wide, 0.0))
        numbers = {"step_size": size, "temperature": temperature,
                   "n_clients": float(kernels.problem.n_clients)}
        causes += moves_causes(wide.low, wide.high)
        causes += named(noise_causes(numbers), root[0], root[1], root[2])
    told = "differs from 1" if differs else "and 1 is within"
    findings = [Finding("limit", f"As the step size falls, the stationary variance tends to {wide} times the "
                        f"target's: {told}.", differs, *wide, tuple(causes), 1.0,
                        "variance, as the step size falls")]
    findings.append(_mean(gaps, 0.5 * level))
    series = tuple((size * share, *student(one, 0.95)) for share, one in zip(steps, ratios, strict=True))
    return findings + _order(ratios[0] - ratios[1], ratios[1] - ratios[2]), series


def _order(first: Array, last: Array) -> list[Finding]:
    """In which order the bias falls, from what each leaf loses (L,) as the step size is halved, and again.

    Nothing is said where chance is not small beside what is lost: the logarithm of chance is no order.
    """
    values = np.stack([first, last])
    means = values.mean(axis=1)
    errors = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    if not (np.abs(means) > np.maximum(CLEAR * errors, 1e-9)).all() or means[0] * means[1] < 0.0:
        return []
    without = (values.sum(axis=1, keepdims=True) - values) / (values.shape[1] - 1.0)
    alone = np.log2(np.abs(means[0] / means[1]))
    pseudo = alone - (values.shape[1] - 1.0) * (np.log2(np.abs(without[0] / without[1])) - alone)
    order = student(pseudo, 0.95)
    return [Finding("order", f"As the step size is halved, and again, the bias loses less in order {order}.",
                    False, *order)]


def _limit(values: Array, level: float) -> Interval:
    """Where values (3, L) at a step size, half and a quarter of it tend, with the size of what is neglected.

    Errors of one leaf are alike at all step sizes, whose seeds are the same: they cancel in differences.
    """
    second, third = 2.0 * values[2] - values[1], (values[0] - 6.0 * values[1] + 8.0 * values[2]) / 3.0
    limit, rest = student(third, 1.0 - level), abs(float((third - second).mean()))
    return Interval(limit.value, limit.low - rest, limit.high + rest)


def _mean(gaps: Array, level: float) -> Finding:
    """Does the stationary mean tend to the target's, in each direction (3, L, d)?"""
    dim = gaps.shape[2]
    limits = [_limit(gaps[:, :, i], level / dim) for i in range(dim)]
    far = [max(one.low, -one.high) for one in limits]
    place = int(np.argmax(far))
    differs, worst = far[place] > 0.0, limits[place]
    told = "differs from 0" if differs else "and 0 is within"
    known = ("the noise has a mean", "a part of the gradient is missing, or is there twice")
    return Finding("mean", f"As the step size falls, the stationary mean tends to {worst} standard "
                   f"deviations from the target's, where it is farthest: {told}.", differs, *worst,
                   known if differs else (), 0.0, "mean, as the step size falls")


def _by_temperature(found: Probe, kernels: Settings, temperature: float, level: float) -> list[Finding]:
    """Does the stationary variance follow the temperature?"""
    try:
        half = kernels.probe(0.5 * temperature, temperature=0.5 * temperature)
        shares = 0.5 * half.ratio_by_leaf() / found.ratio_by_leaf()
    except NoExactLaw:
        return [_noise_by_temperature(found, half)]
    share = student(shares, 1.0 - level)
    differs = not share.low - SINGLE_NUMBERS <= 0.5 <= share.high + SINGLE_NUMBERS
    causes = {"momenta that are drawn do not follow the temperature, or it does not enter the noise": 1.0,
              "the temperature stands outside the root, or is there twice": 0.25,
              "the root of the temperature is taken twice": np.sqrt(0.5)}
    likely = named(causes, share.value, share.low - 0.01, share.high + 0.01) if differs else ()
    return [Finding("temperature", f"At half the temperature the stationary variance is {share} times as "
                    "large; the target's is 0.5 times.", differs, *share, likely, 0.5,
                    "variance at half the temperature")]


def _noise_by_temperature(found: Probe, half: Probe) -> Finding:
    """The same of the noise, where there is no stationary law."""
    share = float(np.trace(half.noise_cov) / max(np.trace(found.noise_cov), 1e-300))
    return Finding("temperature", f"At half the temperature the variance of the noise is {share:.4g} times "
                   "as large.", False, share)


def _by_batch(found: Probe, kernels: Settings, sizes: list[int], level: float) -> list[Finding]:
    """Is the change of the state the same, on average, whatever the size of the minibatches?"""
    seeds = seeds_from(kernels.options["seed"], BATCH_SEEDS)
    factors: list[Array] = []
    changes = []
    for size in sizes:
        box = Box(kernels.kernel(batch_size=size), found.states, kernels.options["batched"])
        first = box(seeds, found.point)
        moved = np.stack([box(seeds, found.point + e) for e in np.eye(len(found.point))], axis=2)
        changes.append(moved - first[:, :, None] - np.eye(len(found.point)))
    largest = changes[-1].mean(axis=0)
    weight = float((largest**2).sum())
    factors = [np.einsum("kij,ij->k", one, largest) / max(weight, 1e-300) for one in changes]
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
