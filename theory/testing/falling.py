"""A kernel as its step size falls: where covariance and mean tend, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from ..exact.affine import NoExactLaw
from .bias import SETTLED
from .causes import gradient_causes, moves_causes, named, noise_causes
from .findings import Finding
from .likeness import SINGLE_NUMBERS
from .probing import Interval, Probe, student

CLEAR = 10.0
"""Standard errors that a loss of bias must have for its order to be told."""
PARALLEL = 1e-6
"""Relative misfit of a change of the matrix that is a multiple of the target's curvature."""
Series = tuple[tuple[float, float, float, float], ...]


def by_step_size(found: Probe, kernels: Any, size: float, temperature: float,
                 level: float) -> tuple[list[Finding], Series]:
    """Where the stationary covariance and mean tend as the step size falls, in which order, and variances."""
    steps = [1.0, 0.5, 0.25]
    try:
        probes = [found, *(kernels.probe(temperature, step_size=size * share) for share in steps[1:])]
        ratios = np.stack([one.ratio_by_leaf() for one in probes])
    except NoExactLaw as error:
        return [Finding("limit", f"The bias in the step size is not known: {error}.")], ()
    wide = limit(ratios, 0.3 * level)
    differs = not wide.low - SINGLE_NUMBERS <= 1.0 <= wide.high + SINGLE_NUMBERS
    numbers = {"step_size": size, "temperature": temperature, "n_clients": float(kernels.problem.n_clients)}
    causes = _causes(probes, ratios, wide, numbers) if differs else ()
    told = "differs from 1" if differs else "and 1 is within"
    findings = [
        Finding("limit", f"As the step size falls, the stationary variance tends to {wide} times the "
                f"target's: {told}.", differs, *wide, causes, 1.0, "variance, as the step size falls"),
        *([] if differs else _entries(np.stack([one.cov_by_leaf() for one in probes]), found, 0.4 * level)),
        _mean(np.stack([one.gaps_by_leaf() for one in probes]), 0.3 * level)]
    series = tuple((size * share, *student(one, 0.95)) for share, one in zip(steps, ratios, strict=True))
    return findings + _order(ratios[0] - ratios[1], ratios[1] - ratios[2]), series


def _causes(probes: list[Probe], ratios: Array, wide: Interval, numbers: dict[str, float]) -> tuple[str, ...]:
    """Mistakes that are known to leave a variance in this interval, as far as the matrix fits them."""
    if all(one.is_quiet for one in probes):
        return ("no noise is added",)
    if all(np.array_equal(one.matrix, probes[0].matrix) for one in probes[1:]):
        return ("step_size is not used",)
    causes, size = list[str](), numbers["step_size"]
    growth = float(np.log2(ratios[0].mean() / ratios[2].mean()) / 2.0)
    if min(abs(growth - 1.0), abs(growth + 1.0)) < SETTLED:
        causes.append("the noise is multiplied by step_size, and not by its root" if growth > 0 else
                      "the noise does not fall with the step size as its root")
    pull, parallel = _pull(probes[0])
    if parallel and abs(pull / size - 1.0) > 1e-3:
        causes += named(gradient_causes(numbers), pull / size, 0.999 * pull / size, 1.001 * pull / size)
    causes += moves_causes(wide.low, wide.high, pull / size**2)
    root = np.sqrt(np.maximum(wide, 0.0))
    return (*causes, *named(noise_causes(numbers), root[0], root[1], root[2]))


def _pull(found: Probe) -> tuple[float, bool]:
    """c where what is read changes by -c times the target's curvature, and whether that is all it does."""
    if found.is_random or len(found.used) != found.target.dim:
        return float("nan"), False
    curvature = np.linalg.inv(found.target.cov)
    change = found.round.deviation[0]
    pull = -float((change * curvature).sum() / (curvature**2).sum())
    return pull, bool(np.abs(change + pull * curvature).max() <= PARALLEL * np.abs(change).max())


def _entries(covs: Array, found: Probe, level: float) -> list[Finding]:
    """Does each entry of the covariance (3, L, d, d) tend to the target's, in its standard deviations?"""
    target, dim = found.target.cov, found.target.dim
    if dim == 1:
        return []
    spread = np.sqrt(np.diag(target))
    scaled, wanted = covs / np.outer(spread, spread), target / np.outer(spread, spread)
    worst: tuple[float, Interval, int, int] | None = None
    for i in range(dim):
        for j in range(i + 1):
            one = limit(scaled[:, :, i, j], level / (0.5 * dim * (dim + 1)))
            away = max(one.low - wanted[i, j], wanted[i, j] - one.high)
            if worst is None or away > worst[0]:
                worst = away, one, i, j
    assert worst is not None
    away, one, i, j = worst
    entry = f"the variance of coordinate {i}" if i == j else f"the covariance of coordinates {j} and {i}"
    if away <= SINGLE_NUMBERS:
        return [Finding("covariance", "As the step size falls, every entry of the stationary covariance "
                        f"tends to the target's, as far as is seen; {entry} is nearest to its limit.")]
    noise = found.view @ found.noise_cov @ found.view.T
    sizes = np.sqrt(np.diag(noise))
    same = i != j and sizes[i] * sizes[j] > 0.0 and abs(noise[i, j]) > (1.0 - 1e-6) * sizes[i] * sizes[j]
    causes = ("one noise is drawn for several coordinates", "two keys are the same") if same else (
        "a part of the noise is drawn for several coordinates", "a part of the gradient is missing")
    return [Finding("covariance", f"As the step size falls, {entry}, in the target's standard deviations, "
                    f"tends to {one}: differs from {wanted[i, j]:.4g}.", True, *one, causes,
                    float(wanted[i, j]), f"{entry}, as the step size falls")]


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


def limit(values: Array, level: float) -> Interval:
    """Where values (3, L) at a step size, half and a quarter of it tend, with the size of what is neglected.

    Errors of one leaf are alike at all step sizes, whose seeds are the same: they cancel in differences.
    """
    second, third = 2.0 * values[2] - values[1], (values[0] - 6.0 * values[1] + 8.0 * values[2]) / 3.0
    found, rest = student(third, 1.0 - level), abs(float((third - second).mean()))
    return Interval(found.value, found.low - rest, found.high + rest)


def _mean(gaps: Array, level: float) -> Finding:
    """Does the stationary mean tend to the target's, in each direction (3, L, d)?"""
    dim = gaps.shape[2]
    limits = [limit(gaps[:, :, i], level / dim) for i in range(dim)]
    far = [max(one.low, -one.high) for one in limits]
    place = int(np.argmax(far))
    differs, worst = far[place] > SINGLE_NUMBERS, limits[place]
    told = "differs from 0" if differs else "and 0 is within"
    known = ("the noise has a mean", "a part of the gradient is missing, or is there twice")
    return Finding("mean", f"As the step size falls, the stationary mean tends to {worst} standard "
                   f"deviations from the target's, where it is farthest: {told}.", differs, *worst,
                   known if differs else (), 0.0, "mean, as the step size falls")
