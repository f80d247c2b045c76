"""Exact laws of samplers of one's own, from the trace of their function.

The round is z' = M z + v + N(0, Q) for the stacked state z, as `fedsim.samplers.rounds` has it; here it is
raised to powers, or stepped through where coefficients or networks change. Sums that a round conserves
(in EXTRA that of s) stay as they are at the start, and are left out of the stationary law.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from fedsim.samplers.clients import Round
from fedsim.samplers.rounds import Rounds, conserved, kept
from fedsim.samplers.sampler import Sampled
from fedsim.settings.validation import Array

from .affine import LARGEST_STEPS, AffineMap, Moments, NoExactLaw
from .batches import has_minibatches, moment_matched
from .evolution import cycled, drawn, evolve, matrix_of, variances_of
from .families import ExactFamily, exact, keeps_apart, require_constant, require_steps
from .traced_joint import RoundJointLaw, averaged_last, joint_of
from .traced_minibatch import MinibatchRounds


@exact(Sampled)
class TracedFamily(ExactFamily):
    """Laws of any sampler on quadratic clients."""

    takes_minibatches = True

    def solvable(self, problem: Any) -> Any:
        """Also minibatches of `GaussianMean`: their noise does not depend on the point."""
        return moment_matched(problem) or super().solvable(problem)

    def is_gaussian(self, problem: Any, algorithm: Any) -> bool:
        return not problem.has_minibatches and self._is_fixed(problem, algorithm)

    def _is_fixed(self, problem: Any, algorithm: Any) -> bool:
        """Is nothing in a round drawn but noise?"""
        return bool(algorithm.trace(problem).how_many("random") == 0)

    def require_stable(self, problem: Any, algorithm: Any) -> None:
        """Also that there is a law."""
        _require_linear(problem, algorithm)
        super().require_stable(problem, algorithm)

    def _dense(self, problem: Any, algorithm: Any, cov: Array | None, full: bool) -> bool:
        return problem.structure == "dense" or (full and not keeps_apart(problem, algorithm, cov))

    def moments(self, problem: Any, algorithm: Any, rounds: np.ndarray, mean: Array, cov: Array | None,
                full: bool) -> Iterable[Moments]:
        require_steps(algorithm, int(rounds[-1]))
        _require_linear(problem, algorithm)
        if has_minibatches(problem):
            if cov is not None:
                batches = MinibatchRounds(problem, algorithm, algorithm.trace(problem, int(rounds[-1])))
                begun: Any = self._begin(batches, mean, cov)
                return self._seen(batches, problem, algorithm, batches.moments(rounds, *begun))
            problem = problem.curvature_problem()
        found = algorithm.rounds(problem, int(rounds[-1]), self._dense(problem, algorithm, cov, full))
        maps, begin = self._maps(algorithm, found), self._begin(found, mean, cov)
        turns, constant = found.trace.period > 1, algorithm.schedule.is_constant
        if turns and constant and self._is_fixed(problem, algorithm):
            path = cycled(rounds, *begin, maps, found.trace.period)
        elif turns or not constant:
            _refuse_steps(maps(0), rounds)
            path = evolve(rounds, *begin, maps)
        else:
            path = evolve(rounds, *begin, maps(0).power(rounds))
        return self._seen(found, problem, algorithm, path)

    def _seen(self, found: Any, problem: Any, algorithm: Any, path: Iterable[Moments]) -> Iterable[Moments]:
        return itertools.starmap(partial(self._views, found, algorithm._clients_differ(problem)), path)

    def _maps(self, algorithm: Any, found: Rounds) -> Callable[[int], AffineMap]:
        made: dict[int, AffineMap] = {}

        def maps(number: int) -> AffineMap:
            place = number % found.trace.period if algorithm.schedule.is_constant else number
            if place not in made:
                if len(made) > found.trace.period:
                    made.clear()
                made[place] = AffineMap(*found.round(place))
            return made[place]

        return maps

    def _begin(self, found: Any, mean: Array, cov: Array | None) -> Moments:
        """The stacked state: the first part, and its past, at the start, all others zero."""
        trace, (G, _, e, _) = found.trace, found.clients.hessians.shape
        first, N = trace.names[0], trace.n_clients
        means, marks = [], []
        for part, size in zip(trace.names, found.sizes(), strict=True):
            rows, root = size // e, part[0] if isinstance(part, tuple) else part
            points = np.broadcast_to(np.atleast_2d(mean), (N, G * e))[:rows] if root == first else np.zeros(
                (rows, G * e))
            means.append(points.reshape(rows, G, e).transpose(1, 0, 2).reshape(G, -1))
            marks.append(np.full(rows, float(root == first)))
        mark = np.concatenate(marks)
        if cov is None:
            return np.concatenate(means, axis=1), None
        blocks = matrix_of(cov)[None] if G == 1 else variances_of(cov)[:, None, None]
        spread = np.einsum("i,j,gab->giajb", mark, mark, blocks)
        return np.concatenate(means, axis=1), spread.reshape(G, len(mark) * e, -1)

    def _views(self, found: Any, differ: bool, state: Array, spread: Array | None) -> Moments:
        """Moments of the average of the first part, and of each client where they differ."""
        (G, _, e, _), size = found.clients.hessians.shape, found.sizes()[0]
        rows = size // e
        points = state[:, :size].reshape(G, rows, e)
        means = points.transpose(1, 0, 2).reshape(rows, G * e)
        means = np.concatenate([means.mean(axis=0)[None], means]) if differ else means.mean(axis=0)[None]
        if spread is None:
            return means if differ else means[0], None
        table = spread[:, :size, :size].reshape(G, rows, e, rows, e)
        own = np.einsum("giaib->igab", table)
        average = table.mean(axis=(1, 3))[None]
        covs = np.concatenate([average, own]) if differ else average
        covs = covs[:, 0] if G == 1 else covs[:, :, 0, 0]
        return (means, covs) if differ else (means[0], covs[0])

    def stationary(self, problem: Any, algorithm: Any, client: int | None) -> tuple[Array, Array]:
        require_constant(algorithm)
        _require_linear(problem, algorithm)
        trace = algorithm.trace(problem)
        if trace.period > 1:
            raise NoExactLaw("networks or sets of clients take turns, so that no law is left unchanged by a "
                             "round; use exact_law")
        if has_minibatches(problem):
            found: Any = MinibatchRounds(problem, algorithm, trace)
            mean, cov = found.stationary()
        else:
            found = algorithm.rounds(problem, None, self._dense(problem, algorithm, None, True))
            whole = found.round()
            _require_one_limit(type(algorithm).__name__, found, whole)
            whole, basis = kept(whole)
            mean, cov = AffineMap(*whole).stationary()
            mean, cov = mean @ basis.T, basis @ cov @ basis.T
        means, covs = self._views(found, algorithm._clients_differ(problem), mean, cov)
        if means.ndim == 1:
            return means, covs  # type: ignore[return-value]
        view = 0 if client is None else client + 1
        return means[view], covs[view]  # type: ignore[index]

    def joint(self, problem: Any, algorithm: Any, n_steps: int, mean: Array,
              cov: Array | None) -> RoundJointLaw:
        require_steps(algorithm, n_steps, f"n_steps={n_steps} asks")
        _require_linear(problem, algorithm)
        if algorithm._follows == "global":
            raise NoExactLaw(f"{type(algorithm).__name__} follows f, which makes one client of all: there is "
                             "no joint law of clients; use exact_law")
        trace = algorithm.trace(problem, n_steps)
        trace, factor = averaged_last(trace) or (trace, 0.0)
        start, batches = np.zeros((problem.dim,) * 2) if cov is None else cov, None
        if has_minibatches(problem):
            found: Any = MinibatchRounds(problem, algorithm, trace)
            step, batches = found.step, found.noise
        else:
            found = Rounds.of(trace, algorithm.rounds(problem, n_steps, True).clients)
            maps = self._maps(algorithm, found)

            def step(number: int, mean: Array, cov: Array) -> Any:
                return maps(number).step(mean, cov)

        begun: Any = self._begin(found, mean, start)
        return joint_of(problem, algorithm, found, factor, begun, n_steps, step,
                        self.is_gaussian(problem, algorithm), batches)

    def sample(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
               generator: np.random.Generator) -> Array:
        _require_linear(problem, algorithm)
        if problem.has_minibatches:
            raise NoExactLaw("with minibatches only moments are known, and rounds cannot be drawn from them; "
                             "use fedsim.simulate")
        found = algorithm.rounds(problem, int(rounds[-1]), problem.structure == "dense"
                            or not keeps_apart(problem, algorithm, None))
        if not self._is_fixed(problem, algorithm):
            raise NoExactLaw("where rounds are drawn at random, only moments are known; use fedsim.simulate")
        if found.trace.period > 1:
            raise NoExactLaw("rounds of networks that take turns cannot be drawn; use fedsim.simulate")
        begun = np.stack([self._begin(found, one, None)[0] for one in points])
        steps = drawn(rounds, begun, self._maps(algorithm, found), algorithm.schedule.is_constant, generator)
        firsts = [np.stack([self._views(found, False, one, None)[0] for one in states])
                  for states in steps]
        return np.stack(firsts, axis=1)


def _require_linear(problem: Any, algorithm: Any) -> None:
    """Raise `NoExactLaw` for a sampler with a function of its own."""
    for node, _ in algorithm.trace(problem).every():
        if node.kind == "each":
            raise NoExactLaw(f"{type(algorithm).__name__} has each({node.payload.name}, ...), which need not "
                             "be linear: it has no law here; use fedsim.simulate")


def _require_one_limit(name: str, found: Rounds, whole: Round) -> None:
    """Raise `NoExactLaw` where a sum that a round conserves carries the start into the limit of the first
    part."""
    fixed, (_, _, e, _) = conserved(whole), found.clients.hessians.shape
    first = found.trace.names[0]
    marks = [float((part[0] if isinstance(part, tuple) else part) == first)
             for part, size in zip(found.trace.names, found.sizes(), strict=True) for _ in range(size // e)]
    given = fixed.T @ np.kron(np.array(marks)[:, None], np.eye(e))
    if np.abs(given).max(initial=0.0) <= 1e-8:
        return
    rest, basis = kept(whole)
    pulled = basis.T @ whole.deviation @ fixed @ given
    moved = fixed @ given - basis @ np.linalg.solve(rest.deviation, pulled)
    if np.abs(moved[:, :found.sizes()[0]]).max() > 1e-8:
        raise NoExactLaw(f"{name} conserves a sum by which the law at the end depends on the start: there is "
                         "no one stationary law; use exact_law")


def _refuse_steps(first: AffineMap, rounds: np.ndarray) -> None:
    """Raise `NoExactLaw` where rounds that are drawn at random would be stepped through for too long."""
    if first.spread is None:
        return
    work = 4.0 * rounds[-1] * first.spread.size * first.width
    if work > 1e13 or rounds[-1] > LARGEST_STEPS:
        raise NoExactLaw(f"n_rounds={rounds[-1]} that take turns and are drawn at random would be stepped "
                         f"through one by one ({work:.1g} operations); ask for fewer rounds")
