"""Findings of a kernel against the algorithm that it says it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedsim.interfaces import validate_sizes
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array, shown, such

from .causes import gradient_causes, named, noise_causes
from .findings import Finding
from .likeness import Match, match, matrices_of, noise_tests, tolerance
from .probing import Probe
from .rules import Seen, UpdateRule

NEARLY = 1e-3
"""Relative width in which a factor of the gradient is taken for a known one, where nothing is random."""

SEEN = 1e-4
"""Relative size of a deviation of the matrix from which on causes of its form are named."""
SPREAD = "standard deviation of the noise"
"""A finding's name in a picture."""


def fitting(problem: Any, like: Any) -> None:
    """Raise ValueError for what is no algorithm, or one that does not fit the problem."""
    try:
        validate_sizes(problem, like)
    except ValueError as error:
        raise ValueError(f"like={shown(like)}: {error}") from None


def level(name: str, value: Any) -> float:
    """A probability that normal tails can tell from 0."""
    return such(name, value, lambda one: 1e-12 <= one < 1.0, "be at least 1e-12 and less than 1")


def numbers_of(like: Any, problem: Any, more: Mapping[str, float]) -> dict[str, float]:
    """The numbers of which causes are made: step size, temperature, friction and number of clients."""
    found = {"step_size": float(like.schedule.largest), "temperature": float(like.temperature),
             "n_clients": float(problem.n_clients)}
    if isinstance(getattr(like, "friction", None), float):
        found["friction"] = like.friction
    return found | dict(more)


def compared(found: Probe, problem: Any, like: Any, false_alarm: float,
             more: Mapping[str, float]) -> list[Finding]:
    """Matrix to rounding, noise by tests at this level for all of them together."""
    wanted, numbers = matrices_of(like, problem), numbers_of(like, problem, more)
    name = shown(like)
    if found.is_random:
        return [Finding("matrix", f"The matrix depends on the seed, and differs from that of {name}, whose "
                        "does not.", True, causes=("the gradient is that of a minibatch",
                                                   "what is drawn is multiplied by the state"))]
    same = match(found, wanted)
    if same.misfit > tolerance(found, wanted):
        findings = [_of_matrix(found, problem, like, wanted, same, numbers)]
        if same.misfit > 1.0 or not np.array_equal(same.into, np.eye(len(wanted.deviation))):
            return findings  # where it is in the algorithm's state is not known
    else:
        told = "to rounding" if same.misfit < 1e-12 else f"to {same.misfit:.1g} of its change"
        findings = [Finding("matrix", f"The matrix agrees with that of {name} {told}.", False, same.misfit)]
    return [*findings, _of_noise(found, wanted, same, name, false_alarm, numbers)]


def _of_matrix(found: Probe, problem: Any, like: Any, wanted: Seen, same: Match,
               numbers: Mapping[str, float]) -> Finding:
    mine, causes = found.round.deviation[0], list[str]()
    factor, told = same.misfit, f"by {same.misfit:.3g} of its change, {same.place}"
    known = gradient_causes(numbers)
    if mine.shape == wanted.deviation.shape:
        size = float((wanted.deviation**2).sum())
        share = float((mine * wanted.deviation).sum()) / max(size, 1e-300)
        rest = np.abs(mine - share * wanted.deviation).max() / max(np.abs(wanted.deviation).max(), 1e-300)
        if rest <= NEARLY:
            factor, told = share, f"it changes the state {share:.6g} times as much"
            width = NEARLY * abs(share) + rest
            causes += named(known, share, share - width, share + width)
        causes += _structural(mine, wanted.deviation, found)
    for place, part in found.states.parts():
        lost = (np.abs(found.matrix[:, part]) <= found.errors[:, part]).all()
        if lost and len(mine) < len(wanted.deviation):
            causes.append(f"{place} is forgotten at each call")
    if not causes:
        causes += _scaled(found, problem, like, known)
    return Finding("matrix", f"The matrix differs from that of {shown(like)}: {told}.", True, factor,
                   causes=tuple(causes))


def _structural(mine: Array, wanted: Array, found: Probe) -> list[str]:
    """Mistakes of the order of moves, of a position and a momentum."""
    dim, causes = found.target.dim, list[str]()
    if len(mine) != 2 * dim:
        return causes
    unit, size = np.eye(dim), float(np.abs(wanted).max())
    x, v = slice(0, dim), slice(dim, None)
    near = 1e-6 * size
    momentum = wanted[v] + np.eye(2 * dim)[v]
    if np.abs(mine[v] - wanted[v]).max() <= near:
        gained = momentum - np.concatenate([0.0 * unit, unit], axis=1)
        step = float(((wanted[x] - mine[x]) * gained).sum() / max((gained**2).sum(), 1e-300))
        if abs(step) > SEEN * size and np.abs(wanted[x] - mine[x] - step * gained).max() <= near:
            causes.append("the position moves with the old velocity")
    forces = np.linalg.inv(found.target.cov) @ (mine[x] + np.eye(2 * dim)[x])
    missing = mine[v] - wanted[v]
    kick = float((missing * forces).sum() / max((forces**2).sum(), 1e-300))
    alone = np.abs(mine[x] - wanted[x]).max() <= near and np.abs(missing - kick * forces).max() <= near
    if alone and abs(kick) * np.abs(forces).max() > SEEN * size:
        causes.append("the last kick of the momentum is lost")
    return causes


def _scaled(found: Probe, problem: Any, like: Any, known: Mapping[str, float]) -> list[str]:
    """Factors of the gradient with which the algorithm has the kernel's matrix."""
    if isinstance(like, UpdateRule) or not isinstance(problem, Quadratic):
        return []
    causes = []
    for words, factor in known.items():
        if factor <= 0.0:
            continue
        other = Quadratic(factor * problem.dense_hessians, problem.minimizers, problem.weights)
        try:
            wanted = matrices_of(like, other)
        except ValueError:
            continue
        if match(found, wanted).misfit <= tolerance(found, wanted):
            causes.append(words)
    return causes


def _of_noise(found: Probe, wanted: Seen, same: Match, name: str, false_alarm: float,
              numbers: Mapping[str, float]) -> Finding:
    tests = noise_tests(found, wanted, same, 1.0 - false_alarm)
    count = len(found.draws)
    told = f"{tests.scale:.4g} ({tests.low:.4g} to {tests.high:.4g}) times the standard deviation"
    if not tests.differs(false_alarm):
        return Finding("noise", f"The noise agrees with that of {name}: {told}, by {count} draws; the "
                       f"smallest of {len(tests.pvalues)} p-values is {tests.worst()[1]:.2g}.", False,
                       tests.scale, tests.low, tests.high, expected=1.0, label=SPREAD)
    which, chance = tests.worst()
    causes = list[str]()
    if not tests.low <= 1.0 <= tests.high:
        causes += named(noise_causes(numbers), tests.scale, 0.995 * tests.low, 1.005 * tests.high)
    shape = _shape_of_noise(found, wanted, same.into)
    causes = [*shape, *causes]
    if which == "mean":
        told = "another mean; " + told
    if which == "stray":
        told = f"noise where that of the algorithm has none ({tests.stray:.3g} of its size); " + told
    return Finding("noise", f"The noise differs from that of {name}: {told}; p-value {chance:.2g} ({which}).",
                   True, tests.scale, tests.low, tests.high, tuple(causes), 1.0, SPREAD)


def _shape_of_noise(found: Probe, wanted: Seen, into: Array) -> list[str]:
    """Mistakes that are seen in the correlations."""
    mine = into @ found.round.noise[0] @ into.T
    rank = [int((np.linalg.eigvalsh(cov) > 1e-9 * max(np.trace(cov), 1e-300)).sum())
            for cov in (mine, wanted.noise)]
    if 0 < rank[0] < rank[1] and np.trace(mine) > 1e-9 * np.trace(wanted.noise):
        return [f"one noise is shared by several coordinates: {rank[0]} independent ones, and "
                f"{rank[1]} in the algorithm"]
    return []
