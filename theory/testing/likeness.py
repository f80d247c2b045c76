"""Is a kernel the algorithm that it says it is? Matrix to rounding, noise by tests of a stated level.

Both are seen in the coordinates of the algorithm: what is read, and what it was changed by before, tell where
in its state the kernel is. There the noise of the algorithm has a known law, and sums of squares of whitened
draws are chi-squared, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fedsim.problems.quadratic import Quadratic
from fedsim.samplers import declared
from fedsim.samplers.sampler import Sampled
from fedsim.settings.validation import Array, shown

from .probing import Probe
from .rules import Seen, UpdateRule, influences

SINGLE_NUMBERS = 2e-6
"""Relative misfit that a parameter in float32 leaves."""
MOST_LEFT = 0.02
"""Share of a change that rounding may hide."""
NONE = 1e-9
"""Relative size below which a direction has no noise."""


def matrices_of(algorithm: Any, problem: Any) -> Seen:
    """A round of an algorithm as matrices: of a program, a sampler, or a shipped algorithm by its sampler.

    Raises
    ------
    ValueError
        For one that draws more than noise, or whose rounds differ.
    """
    if isinstance(algorithm, UpdateRule):
        algorithm.check(problem)
        return algorithm._seen
    sampler = algorithm if isinstance(algorithm, Sampled) else declared(algorithm)
    plain = isinstance(problem, Quadratic) or not problem.keeps_gaussian
    solved = problem if plain else problem.as_quadratic()
    if not isinstance(solved, Quadratic) or solved.has_minibatches:
        raise ValueError(f"problem={shown(problem)} must have affine gradients, as fedsim.Quadratic has, for "
                         f"a comparison with like={shown(algorithm)}")
    trace = sampler.trace(solved)
    if trace.period > 1 or trace.how_many("random") or not sampler.schedule.is_constant:
        raise ValueError(f"like={shown(algorithm)} must do the same in each round: no sets or networks in "
                         "turn, nothing drawn but noise, and one step size")
    found = sampler.rounds(solved, None, True)
    whole, dim = found.round(), solved.dim
    rows = found.sizes()[0] // dim
    size = whole.shift.shape[1]
    view = np.zeros((dim, size))
    view[:, :rows * dim] = np.tile(np.eye(dim), rows) / rows
    used = influences(whole.deviation[0], view)
    square = np.ix_(used, used)
    return Seen(whole.deviation[0][square], whole.shift[0][used], whole.noise[0][square], view[:, used],
                np.zeros(dim), np.zeros(len(used)), None)


def shown_by(deviation: Array, view: Array, count: int, scale: float) -> Array:
    """How a state is seen in `count` rounds: rows P, P D, P D^2, ..."""
    rows = [view]
    for _ in range(count - 1):
        rows.append(rows[-1] @ deviation / scale)
    return np.concatenate(rows)


class Match(NamedTuple):
    """How a kernel's matrix is that of an algorithm.

    misfit : float, relative to the largest entry of A - I; place : where it is largest
    into : (n, m), base : (n,)
        The algorithm's state from the kernel's.
    """

    misfit: float
    place: str
    into: Array
    base: Array


def match(found: Probe, wanted: Seen) -> Match:
    """Compare matrices: entry by entry where states agree, else by what is read in successive rounds."""
    mine, view = found.round.deviation[0], found.view[:, found.used]
    scale = max(float(np.abs(wanted.deviation).max(initial=0.0)), 1e-6)
    alike = mine.shape == wanted.deviation.shape and np.allclose(view, wanted.view, atol=1e-12)
    if alike:
        off = np.abs(mine - wanted.deviation) / scale
        row, column = np.unravel_index(int(np.argmax(off)), off.shape)
        names = [found.states.place(int(found.used[i])) for i in (row, column)]
        direct = Match(float(off.max()), f"from {names[1]} to {names[0]}", np.eye(len(mine)),
                       np.zeros(len(mine)))
        if direct.misfit <= tolerance(found, wanted):
            return direct
    seen = _by_reads(found, wanted, np.eye(len(mine)), np.eye(len(mine)), scale)
    columns, inverse = found.image
    if seen.misfit > tolerance(found, wanted) and columns.shape[1] < len(mine):
        seen = min(seen, _by_reads(found, wanted, columns, inverse, scale), key=lambda one: one.misfit)
    return direct if alike and seen.misfit > tolerance(found, wanted) else seen


def _by_reads(found: Probe, wanted: Seen, columns: Array, inverse: Array, scale: float) -> Match:
    """Compare what is read in successive rounds, of states that differ by these columns (n, r)."""
    mine, view = inverse @ found.round.deviation[0] @ columns, found.view[:, found.used] @ columns
    count = max(len(mine), len(wanted.deviation)) + 1
    theirs = shown_by(wanted.deviation, wanted.view, count, scale)
    ours = shown_by(mine, view, count, scale)
    into = np.asarray(np.linalg.lstsq(theirs, ours, rcond=1e-10)[0], dtype=np.float64) @ inverse
    off = np.abs(theirs @ into @ columns - ours) / np.abs(ours).max()
    place = f"what is read after {int(np.argmax(off.max(axis=1))) // found.target.dim} rounds"
    return Match(float(off.max()), place, into, _base(found, wanted, into))


def _base(found: Probe, wanted: Seen, into: Array) -> Array:
    """The constant beside `into` times the kernel's state: both read the same, and change alike where the
    algorithm has no noise."""
    values, vectors = np.linalg.eigh(wanted.noise)
    still = vectors[:, values <= NONE * max(float(values.max(initial=0.0)), 1e-300)]
    point, after = found.point[found.used], found.draws[0, found.used]
    moved = into @ after - into @ point - wanted.deviation @ into @ point - wanted.shift
    read = found.view[:, found.used] @ point + found.offset - wanted.view @ into @ point - wanted.offset
    equations = np.concatenate([wanted.view, still.T @ wanted.deviation])
    return np.asarray(np.linalg.lstsq(equations, np.concatenate([read, still.T @ moved]), rcond=1e-10)[0])


def tolerance(found: Probe, wanted: Seen) -> float:
    """The largest `Match.misfit` that rounding leaves of a small change: that of a kernel, and of numbers
    that it holds in float32.

    Raises
    ------
    ValueError
        Where it leaves no more than noise of the change.
    """
    size = float(np.abs(wanted.deviation).max(initial=0.0))
    left = found.blur / max(size, 1e-300)
    if left > MOST_LEFT:
        told = f"{found.single} is in float32 or less, and " if found.single else ""
        raise ValueError(f"{told}a call changes the state by {size:.2g} of itself, of which rounding leaves "
                         f"too little: let the kernel compute in float64, or with a larger step_size")
    return max(SINGLE_NUMBERS, left)


@dataclass(frozen=True, eq=False)
class NoiseTests:
    """Tests of the noise of a kernel against that of an algorithm, each with an exact p-value.

    Attributes
    ----------
    names : what is tested, and pvalues (n,)
    scale : standard deviation of the noise over the algorithm's, and its `low` and `high` ends
    stray : size of noise, relative to the algorithm's, where that has none
    rank : number of independent noises
    """

    names: tuple[str, ...]
    pvalues: Array
    scale: float
    low: float
    high: float
    stray: float
    rank: int

    def worst(self) -> tuple[str, float]:
        """The test with the smallest p-value."""
        place = int(np.argmin(self.pvalues))
        return self.names[place], float(self.pvalues[place])

    def differs(self, false_alarm: float) -> bool:
        """Whether any test says so, at this level for all together."""
        return bool((self.pvalues <= levels(len(self.pvalues), false_alarm)).any())


def levels(count: int, false_alarm: float) -> Array:
    """Levels (count,) of single tests: half of it for the first, which is of the scale, the rest shared."""
    shares = np.full(count, 0.5 / max(count - 1, 1))
    shares[0] = 0.5
    return false_alarm * shares


def noise_tests(found: Probe, wanted: Seen, same: Match, level: float = 0.999) -> NoiseTests:
    """Compare the draws of a kernel with the noise of an algorithm, in the algorithm's coordinates."""
    from scipy import stats

    # where the kernel is at the point, the algorithm is too: the mean after a round is known
    point = same.into @ found.point[found.used] + same.base
    ahead = found.draws[:, found.used] @ same.into.T + same.base
    gaps = ahead - (point + wanted.deviation @ point + wanted.shift)
    values, vectors = np.linalg.eigh(wanted.noise)
    largest = max(float(values.max(initial=0.0)), 1e-300)
    noisy = values > NONE * largest
    white = gaps @ vectors[:, noisy] / np.sqrt(values[noisy])
    still = gaps @ vectors[:, ~noisy]
    stray = float(np.abs(still).max(initial=0.0) / np.sqrt(largest))
    room = 1e3 * found.rounding * max(1.0, float(np.abs(ahead).max(initial=0.0) / np.sqrt(largest)))
    count, rank = white.shape
    if not rank:
        return NoiseTests(("stray",), np.array([float(stray <= room)]), 1.0, 1.0, 1.0, stray, 0)
    squares = white.T @ white
    names, sums, sizes = ["scale"], [float(np.trace(squares))], [rank * count]
    names.append("mean")
    sums.append(float(count * (white.mean(axis=0) ** 2).sum()))
    sizes.append(rank)
    own = np.diag(squares)
    for i in range(rank if rank > 1 else 0):
        names.append(f"noise {i}")
        sums.append(float(own[i]))
        sizes.append(count)
        for j in range(i):
            names += [f"noises {j} and {i} together", f"noises {j} and {i} apart"]
            sums += [float(0.5 * (own[i] + own[j]) + sign * squares[i, j]) for sign in (1.0, -1.0)]
            sizes += [count, count]
    chi = stats.chi2(np.array(sizes, float))
    pvalues = np.minimum(1.0, 2.0 * np.minimum(chi.cdf(sums), chi.sf(sums)))
    pvalues[1] = stats.chi2(rank).sf(sums[1])  # a mean is too far away, never too near
    if stray > room:
        names.append("stray")
        pvalues = np.append(pvalues, 0.0)
    outer = 0.5 * (1.0 - level)
    both = stats.chi2(rank * count)
    total = sums[0]
    return NoiseTests(tuple(names), pvalues, float(np.sqrt(total / (rank * count))),
                      float(np.sqrt(total / both.isf(outer))), float(np.sqrt(total / both.ppf(outer))), stray,
                      rank)


def draws_for(smallest: float, false_alarm: float, missed: float, rank: int) -> int:
    """Draws with which a noise that is `smallest` too large or too small, relatively, is seen but for a
    share `missed` of the times: by the test of the scale."""
    from scipy import stats

    reach = float(stats.norm.isf(0.25 * false_alarm) + stats.norm.isf(missed))
    change = 2.0 * smallest - smallest**2  # of the variance
    return int(np.ceil(2.0 * (reach / change) ** 2 / max(rank, 1)))
