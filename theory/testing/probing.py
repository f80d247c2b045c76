"""Kernels with a seed as black boxes: common random numbers give the matrix, many seeds the noise.

The same seed at two states draws the same noise, so that the difference of the answers is the matrix, to the
rounding of the kernel. Many seeds at one state give mean and covariance of the noise, with their errors. From
both follow the stationary law and its distance to the target, with intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedsim.interfaces import Problem, offers
from fedsim.laws.law import Gaussian
from fedsim.samplers.clients import Round
from fedsim.samplers.rounds import conserved, kept
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array, flag, fraction, shown, such, whole

from ..exact.affine import AffineMap, NoExactLaw
from .affine_step import affine_view
from .black_box import Box, image_of, matrix_of, refuse_memory, seeds_from
from .nested import Nested, asked, leaves
from .random_rounds import RandomRounds
from .rules import influences

LEAVES = 50
"""Blocks of draws whose moments are compared for standard errors, and drawn anew by the bootstrap."""
RESAMPLED = 200
"""Draws of the bootstrap."""
MOST_DRAWS = 10_000_000
NO_NOISE = 1e-24
"""Variance of a noise, relative to the target's, that rounding may leave."""
MOST = 1e100
"""Size of numbers whose squares are still numbers."""


class Interval(NamedTuple):
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, eq=False, repr=False)
class Probe:
    """A kernel x' = A x + b + noise, as far as it is known.

    Attributes
    ----------
    matrix : (n, n)
        A, to `rounding`; its average over some seeds where it `is_random`.
    draws : (K, n)
        New states from `point` (n,), one for each seed.
    view : (d, n), offset : (d,)
        What of the state is compared with the target.
    rounding : float
        Relative misfit that the kernel's arithmetic may leave; `errors` (n, n) in each entry of the matrix,
        and `blur` in its radius.
    is_random : bool
        Other seeds have other matrices, as with minibatches: of laws mean and covariance are known.
    target : fedsim.Gaussian

    Examples
    --------
    >>> problem = fs.Quadratic([2.0], [[1.0, 0.0]])
    >>> def kernel(seed, x):
    ...     noise = np.random.default_rng(seed).normal(size=2)
    ...     return x - 0.1 * problem.gradient(0, x) + np.sqrt(0.2) * noise
    >>> found = theory.testing.probe(kernel, problem, n_draws=2000)
    >>> isinstance(found, theory.testing.Probe), found.matrix.round(12).tolist()
    (True, [[0.8, 0.0], [0.0, 0.8]])
    """

    matrix: Array
    draws: Array
    point: Array
    view: Array
    offset: Array
    rounding: float
    is_random: bool
    single: str
    states: Nested
    target: Gaussian
    errors: Array
    blur: float
    matrices: Any = None
    answers: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __repr__(self) -> str:
        return (f"Probe(n_numbers={self.states.size}, n_draws={len(self.draws)}, radius={self.radius:.6g}, "
                f"is_random={self.is_random})")

    @cached_property
    def shift(self) -> Array:
        """b, (n,)."""
        return self.draws.mean(axis=0) - self.matrix @ self.point

    @cached_property
    def noise_cov(self) -> Array:
        """Covariance of the noise, (n, n)."""
        return np.atleast_2d(np.cov(self.draws.T))

    @cached_property
    def shift_error(self) -> Array:
        """Standard errors of `shift`, (n,)."""
        return np.sqrt(np.diag(self.noise_cov) / len(self.draws))

    @cached_property
    def noise_error(self) -> Array:
        """Standard errors of `noise_cov`, (n, n), whatever the law of the noise."""
        gaps = self.draws - self.draws.mean(axis=0)
        fourth = (gaps**2).T @ gaps**2 / len(gaps)
        return np.sqrt(np.maximum(fourth - self.noise_cov**2, 0.0) / len(gaps))

    @cached_property
    def used(self) -> np.ndarray:
        """Numbers of the entries of the state that what is read ever depends on."""
        change = self.matrix - np.eye(len(self.matrix))
        return influences(np.where(np.abs(change) <= self.errors, 0.0, change), self.view)

    @cached_property
    def round(self) -> Round:
        """As rounds of samplers are, of the entries that are used."""
        square = np.ix_(self.used, self.used)
        change = self.matrix - np.eye(len(self.matrix))
        return Round(change[square][None], self.shift[self.used][None], self.noise_cov[square][None])

    @property
    def is_quiet(self) -> bool:
        """Whether what is read has no noise in a call."""
        return float(np.trace(self.view @ self.noise_cov @ self.view.T)) < NO_NOISE * float(
            np.trace(self.target.cov))

    @cached_property
    def image(self) -> tuple[Array, Array]:
        """Columns (n, r) that span how states differ that the kernel gives, and their left inverse, of the
        entries that are used: r < n where an entry is a function of others, as a gradient that is kept."""
        return image_of(self.matrix[self.used][:, self.used], self.draws[:, self.used])

    @cached_property
    def radius(self) -> float:
        """Spectral radius of the matrix, without sums that the kernel conserves; of the second moment, its
        root, where the matrix is random."""
        if self.is_random:
            return self.rounds.radius
        rest, basis = kept(self.round)
        if not basis.size:  # nothing moves
            return 1.0
        values = np.linalg.eigvals(np.eye(rest.deviation.shape[-1]) + rest.deviation[0])
        return float(np.abs(values).max()) if values.size else 1.0  # nothing ever moves

    @cached_property
    def rounds(self) -> RandomRounds:
        """The rounds of a kernel whose matrix depends on the seed."""
        square = np.ix_(np.arange(len(self.matrices)), self.used, self.used)
        shifts = (self.answers - self.matrices @ self.point)[:, self.used]
        return RandomRounds.of(self.matrices[square], shifts, LEAVES)

    def _weighted(self, weights: Array) -> tuple[Array, Array]:
        """Means (B, d) and covariances (B, d, d) of what is read, of blocks of seeds with weights (B, L)."""
        if not self.radius < 1.0:
            raise NoExactLaw(f"the kernel has no stationary law: the radius of its second moment is "
                             f"{self.radius:.6g}")
        means, covs = self.rounds.laws(weights)
        view = self.view[:, self.used]
        return means @ view.T + self.offset, view @ covs @ view.T

    def _by_leaf(self) -> tuple[Array, Array]:
        """Means (L, d) and covariances (L, d, d) at stationarity of each block of draws; of random matrices
        the pseudo-values of the jackknife."""
        if not self.is_random:
            means, seconds = self.leaves
            return self._stationary(self.draws.mean(axis=0) + means, seconds)
        whole = self._weighted(np.ones((1, LEAVES)))
        without = self._weighted(np.ones((LEAVES, LEAVES)) - np.eye(LEAVES))
        mean, cov = (LEAVES * all_of - (LEAVES - 1) * one for all_of, one in zip(whole, without, strict=True))
        return mean, cov

    def _stationary(self, means: Array, noises: Array) -> tuple[Array, Array]:
        """Means (L, d) and covariances (L, d, d) at stationarity, of means (L, n) of the new state at the
        point, and of covariances of the noise (L, n, n)."""
        if not self.radius < 1.0 - self.blur:
            raise NoExactLaw("the kernel has no stationary law: the radius of its matrix is "
                             f"{self.radius:.6g}")
        rest, basis = kept(self.round)
        fixed, view = conserved(self.round), self.view[:, self.used]
        shifts = (means - self.matrix @ self.point)[:, self.used]
        held = fixed @ (fixed.T @ self.point[self.used])
        pulled = basis.T @ self.round.deviation[0] @ held
        count = len(shifts)
        inner = np.repeat(rest.deviation, count, axis=0)
        between = basis.T @ noises[:, self.used[:, None], self.used] @ basis
        mean, cov = AffineMap(inner, shifts @ basis + pulled, between).stationary()
        seen = view @ basis
        return (mean @ basis.T + held) @ view.T + self.offset, seen @ cov @ seen.T

    def stationary_law(self) -> Gaussian:
        """The law that the kernel leaves unchanged, of what is read, or the Gaussian of its moments.

        Raises
        ------
        theory.NoExactLaw
            Where there is none, or the matrix depends on the seed and the state is large.
        """
        if self.is_random:
            mean, cov = self._weighted(np.ones((1, LEAVES)))
        else:
            mean, cov = self._stationary(self.draws.mean(axis=0)[None], self.noise_cov[None])
        return Gaussian(mean[0], cov[0])

    @cached_property
    def leaves(self) -> tuple[Array, Array]:
        """Means (L, n) and second moments about the mean of all (L, n, n) of blocks of the draws."""
        centre = self.draws.mean(axis=0)
        blocks = np.array_split(self.draws - centre, min(LEAVES, len(self.draws) // 2))
        return (np.stack([one.mean(axis=0) for one in blocks]),
                np.stack([one.T @ one / len(one) for one in blocks]))

    def resampled(self) -> Iterator[Gaussian]:
        """Stationary laws of draws drawn anew, block by block."""
        means, seconds = self.leaves
        count = LEAVES if self.is_random else len(means)
        chosen = np.random.default_rng(0).integers(count, size=(RESAMPLED, count))
        if self.is_random:
            laws = self._weighted(np.stack([np.bincount(one, minlength=count) for one in chosen]))
            yield from (Gaussian(mean, cov) for mean, cov in zip(*laws, strict=True))
            return
        grown = np.sqrt(count / (count - 1.0))  # blocks about their own mean spread too little
        gaps = grown * means[chosen].mean(axis=1)
        spreads = self.noise_cov + grown * (seconds[chosen].mean(axis=1) - seconds.mean(axis=0))
        laws = self._stationary(self.draws.mean(axis=0) + gaps, spreads)
        for mean, cov in zip(*laws, strict=True):
            values, vectors = np.linalg.eigh(cov)  # few draws of much noise
            yield Gaussian(mean, (vectors * np.maximum(values, 0.0)) @ vectors.T)

    def w2_interval(self, level: float = 0.95) -> Interval:
        """W2 of the stationary law to the target, and an interval that holds it at least so often.

        It is as far from the estimate as a law from the kernel's own is by chance: W2 is a distance.

        Parameters
        ----------
        level : float in [0, 1]

        Returns
        -------
        Interval : (value, low, high)
        """
        level, law = fraction("level", level), self.stationary_law()
        reach = float(np.quantile([law.w2(other) for other in self.resampled()], level))
        value = float(law.w2(self.target))
        return Interval(value, max(0.0, value - reach), value + reach)

    def gaps_by_leaf(self) -> Array:
        """Stationary mean minus the target's, in standard deviations of the target, of each block (L, d)."""
        found, _ = self._by_leaf()
        return np.linalg.solve(np.linalg.cholesky(self.target.cov), (found - self.target.mean).T).T

    def cov_by_leaf(self) -> Array:
        """Stationary covariance of each block (L, d, d)."""
        return self._by_leaf()[1]

    def ratio_by_leaf(self) -> Array:
        """Stationary variance over the target's, averaged over directions, of each block (L,)."""
        _, covs = self._by_leaf()
        return np.trace(np.linalg.solve(self.target.cov, covs), axis1=1, axis2=2) / self.target.dim

    def variance_ratio(self, level: float = 0.95) -> Interval:
        """The stationary variance over the target's, averaged over directions, with its interval.

        Parameters
        ----------
        level : float in [0, 1]

        Returns
        -------
        Interval : (value, low, high)
        """
        return student(self.ratio_by_leaf(), fraction("level", level))


def student(values: Array, level: float) -> Interval:
    """The mean of independent values of one size, with Student's interval."""
    from scipy import stats

    reach = float(stats.t.ppf(0.5 + 0.5 * level, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    mean = float(values.mean())
    return Interval(mean, mean - reach, mean + reach)


def probe(kernel: Callable[[Any, Any], Any], problem: Problem, *, start: Any = None,
          read: Callable[[Any], Any] | None = None, n_draws: int = 20_000, seed: int = 0,
          batched: bool = False, temperature: float = 1.0) -> Probe:
    """Matrix and noise of somebody's kernel, which is affine in its state for each seed.

    Parameters
    ----------
    kernel : callable(seed, state) -> state
        The seed is an integer, of which the kernel makes its generator or key anew: the same seed has to give
        the same state. The state is made of arrays or tensors, nested in dicts, tuples, lists, dataclasses.
    problem : e.g. fedsim.Quadratic
        Its target is what the stationary law is compared with.
    start : nested arrays, or callable(point (d,)) -> nested arrays, optional
        A state; by default the origin.
    read : callable(state) -> (d,), optional
        What is compared with the target; by default the state's first array.
    n_draws : int
        Seeds at which the noise is drawn.
    seed : int
        The first of the seeds.
    batched : bool
        The kernel takes many seeds (K,) at a state, and each array of the new state has K in front.
    temperature : float
        Of the target.

    Returns
    -------
    Probe

    Raises
    ------
    ValueError
        For a kernel that is not affine, as with a Metropolis step, with the size of the misfit and its place;
        one that gives two answers for one seed; naming an argument that does not fit.

    Source: none; common random numbers.

    Examples
    --------
    >>> problem = fs.Quadratic([2.0], [[1.0, 0.0]])
    >>> def kernel(seed, x):
    ...     noise = np.random.default_rng(seed).normal(size=2)
    ...     return x - 0.1 * problem.gradient(0, x) + np.sqrt(0.2) * noise
    >>> found = theory.testing.probe(kernel, problem, n_draws=2000)
    >>> print(found.variance_ratio())
    1.077 (1.028 to 1.125)
    """
    offers("problem", problem, Problem)
    for name, value in (("kernel", kernel),) + ((("read", read),) if read is not None else ()):
        if not callable(value):
            raise ValueError(f"{name}={shown(value)} must be a function")
    count, seed = whole("n_draws", n_draws, 2 * LEAVES, MOST_DRAWS), whole("seed", seed, 0, 2**31)
    example = asked("start(point)", start, np.zeros(problem.dim)) if callable(start) else start
    try:
        states = Nested("state", np.zeros(problem.dim) if example is None else example)
    except ValueError as error:
        raise ValueError(f"start gives no state: {error}") from None
    far = np.flatnonzero(~(np.abs(states.values) <= MOST))
    if not states.size or far.size:
        where = f"; {states.place(int(far[0]))} is {states.values[far[0]]:g}" if far.size else ""
        raise ValueError(f"start={shown(start)} must give a state of finite numbers up to {MOST:g}, at least "
                         f"one{where}")
    heat = such("temperature", temperature, lambda value: 1.0 / MOST <= value <= MOST,
                f"be between {1.0 / MOST:g} and {MOST:g}")
    refuse_bytes(8.0 * 3 * count * states.size, f"n_draws={count} of {states.size} numbers", "ask for fewer")
    box = Box(kernel, states, flag("batched", batched))
    view, offset = affine_view(read or (lambda state: next(leaves("state", state))[1]), states, problem.dim)
    if not view.any():
        raise ValueError(f"read={shown(read)} must give what depends on the state")
    seeds = seeds_from(seed, count)
    known = matrix_of(box, seeds)
    matrix, matrices, answers = known.mean, None, None
    point = states.values
    if not known.is_random:
        some = box(seeds[:2 * states.size + 2], point)
        if image_of(matrix, some)[0].shape[1] < states.size:
            point = some[0]  # what depends on other entries fits them from there on
    if known.is_random:
        some = seeds[:max(2 * LEAVES, count // (states.size + 1))]
        answers = box(some, states.values)
        moved = np.stack([box(some, states.values + size * e)
                          for size, e in zip(known.sizes, np.eye(states.size), strict=True)], axis=2)
        matrices = (moved - answers[:, :, None]) / known.sizes
        matrix = matrices.mean(axis=0)
    draws = box(seeds, point)
    refuse_memory(box, seeds, draws, point, known.rounding)
    blur = 4.0 * float((known.errors * known.sizes / known.sizes[:, None]).max())
    return Probe(matrix, draws, point, view, offset, known.rounding, known.is_random, box.single, states,
                 problem.target(heat), known.errors, blur, matrices, answers)
