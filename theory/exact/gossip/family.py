"""What the exact laws of decentralized algorithms share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.problems.quadratic import Quadratic
from fedsim.settings.starts import start_moments
from fedsim.settings.validation import Array

from ..affine import Moments
from ..batches import MinibatchNoise, has_minibatches, require_second_moment
from ..evolution import drawn, evolve
from ..families import ExactFamily, keeps_apart, require_constant, require_rounds_to_draw, require_steps
from ..joint_laws import JointLaw
from ..tables import symmetrised
from ..viewed import ENTRIES, viewed
from .average_first import AverageFirst
from .common_hessian import ModeLaw
from .general import Components, GossipMap, Move
from .minibatch import MinibatchMap
from .stepped import matrices, stacker
from .white import WhiteLaw


class DecentralizedFamily(ExactFamily):
    """Laws of any algorithm that says what its steps are, as a `Move`."""

    takes_minibatches = True

    def move(self, algorithm: Any, size: float) -> Move:
        """The step of this size."""
        raise NotImplementedError

    def velocities(self, problem: Any, algorithm: Any) -> Array | None:
        """Velocities at the start (N, d), or None for algorithms without any."""
        return None

    def is_gaussian(self, problem: Any, algorithm: Any) -> bool:
        return not has_minibatches(problem)

    def require_stable(self, problem: Any, algorithm: Any) -> None:
        if not has_minibatches(problem):
            return
        components, step = self._steps(problem, algorithm, True)
        largest = algorithm.schedule.largest
        components.refuse_size(
            step(self.move(algorithm, largest)).size, "for means alone use covariance='none' with "
            "allow_unstable=True, which skips the check of the second moment; otherwise use fewer clients")
        require_second_moment(largest, lambda size: step(self.move(algorithm, size)))

    def _maps(self, algorithm: Any, step: Callable[[Move], Any]) -> Callable[[int], Any]:
        """A function of the step's number, from one of its `Move`."""
        return lambda number: step(self.move(algorithm, float(algorithm.schedule.at(number))))

    def _moves(self, algorithm: Any) -> Callable[[np.ndarray], list[Move]]:
        """A function of numbers of steps, giving their `Move`s."""
        schedule = algorithm.schedule

        def moves(numbers: np.ndarray) -> list[Move]:
            known = schedule.n_steps  # beyond its end nobody looks
            sizes = schedule.at(numbers if known is None else np.minimum(numbers, known - 1))
            return [self.move(algorithm, size) for size in sizes.tolist()]

        return moves

    def moments(self, problem: Any, algorithm: Any, rounds: np.ndarray, mean: Array, cov: Array | None,
                full: bool) -> Iterable[Moments]:
        require_steps(algorithm, int(rounds[-1]))
        if cov is None and has_minibatches(problem):
            problem = problem.curvature_problem()
        law, step = self._law(problem, algorithm, cov, full)
        maps, velocities = self._maps(algorithm, step), self.velocities(problem, algorithm)
        begin = law.begin(mean, velocities, cov)
        if algorithm.schedule.is_constant:
            constant = maps(0)
            if cov is not None and type(constant) is GossipMap:
                white = WhiteLaw.of(constant, rounds)
                if white is not None:
                    return white.views(rounds, begin[0], cov)
            maps = constant.power(rounds)
        elif cov is not None and isinstance(law, Components) and not has_minibatches(problem):
            maps = matrices(law, velocities is not None, self._moves(algorithm)) or maps
        return itertools.starmap(law.views, evolve(rounds, *begin, maps))

    def _steps(self, problem: Any, algorithm: Any, dense: bool) -> tuple[Components, Callable[[Move], Any]]:
        """How moments of the state are held, and a function that makes the map of a `Move`."""
        data = MinibatchNoise(problem) if has_minibatches(problem) else None
        followed = problem if data is None else problem.curvature_problem()
        components = Components(followed, algorithm.mixing, dense)
        if data is None:
            return components, lambda move: GossipMap(components, move)
        return components, lambda move: MinibatchMap(components, move, data)

    def _law(self, problem: Any, algorithm: Any, cov: Array | None,
             full: bool) -> tuple[Components | ModeLaw, Callable[[Move], Any]]:
        """As `_steps`, or by the modes of a common Hessian."""
        if has_minibatches(problem):
            return self._steps(problem, algorithm, True)
        modes = ModeLaw.of(problem, algorithm.mixing, cov, full)
        if modes is not None:
            return modes, modes.map
        correlations = full and (isinstance(problem.gradient_noise, np.ndarray) or (
            cov is not None and cov.ndim == 2))
        return self._steps(problem, algorithm, problem.structure == "dense" or correlations)

    def stationary(self, problem: Any, algorithm: Any, client: int | None) -> tuple[Array, Array]:
        require_constant(algorithm)
        law, step = self._law(problem, algorithm, None, True)
        largest = step(self.move(algorithm, algorithm.schedule.largest))
        if isinstance(law, Components):
            law.refuse_size(largest.size)
        means, covs = law.views(*largest.stationary())
        view = 0 if client is None else client + 1
        return means[view], covs[view]  # type: ignore[index]

    def together(self, problem: Any, algorithms: Sequence[Any], start: Any) -> Any:
        if has_minibatches(problem):
            return None
        one, problem = algorithms[0], self.solvable(problem)
        mean, cov = start_moments(start, problem.dim, problem.n_clients)
        thin, velocities = keeps_apart(problem, one, cov), self.velocities(problem, one)
        size = problem.n_clients * (1 if velocities is None else 2)
        if (problem.dim if thin else problem.dim**2) * size**2 > ENTRIES:
            return None
        components = Components(problem, one.mixing, not thin)
        turned = AverageFirst(components)
        maps = stacker(components, turned)([self.move(each, each.schedule.largest) for each in algorithms])
        state, spread = components.begin(mean, velocities, np.zeros(problem.dim) if cov is None else cov)
        rows = np.eye(components.width, maps.shift.shape[-1]) / np.sqrt(components.clients)
        return viewed(maps.taken(np.s_[:]), np.broadcast_to(rows, (components.groups, *rows.shape)),
                      turned.state(state[..., None])[..., 0], turned.covariance(np.asarray(spread)), thin)

    def joint(self, problem: Any, algorithm: Any, n_steps: int, mean: Array, cov: Array | None) -> JointLaw:
        require_steps(algorithm, n_steps)
        components, step = self._steps(problem, algorithm, True)
        maps, velocities = self._maps(algorithm, step), self.velocities(problem, algorithm)
        state = components.begin(mean, velocities, np.zeros(problem.dim) if cov is None else cov)
        size = problem.n_clients * problem.dim
        means = np.empty((n_steps + 1, problem.n_clients, problem.dim))
        covs, speeds = np.empty((n_steps + 1, size, size)), np.empty((n_steps + 1, problem.n_clients))
        for k in range(n_steps + 1):
            if k:
                state = maps(k - 1).step(*state)
            full = state[1][0]  # type: ignore[index]
            means[k], covs[k] = components.positions(state[0]), symmetrised(full[:size, :size])
            if velocities is not None:
                squares = state[0][0, size:] ** 2 + np.diagonal(full)[size:]
                speeds[k] = squares.reshape(problem.n_clients, problem.dim).sum(axis=1)
        noise, rough = None if components.noise is None else components.noise[0], np.zeros(speeds.shape)
        if noise is not None:
            rough += np.trace(noise, axis1=1, axis2=2)
        if has_minibatches(problem):
            data, shape = MinibatchNoise(problem), (problem.n_clients, problem.dim) * 2
            own = (np.einsum("cicj->cij", cov.reshape(shape)) for cov in covs)
            rough += [np.trace(data.mean(*each), axis1=1, axis2=2) for each in zip(means, own, strict=True)]
        each = Quadratic(components.hessians[0], components.minimizers, None, noise)
        never = np.empty(0, dtype=np.int64)
        return GossipJointLaw(np.arange(n_steps + 1), means, covs, never, means[:0], covs[:0],
                              not has_minibatches(problem), each, algorithm, noise_second_moment=rough,
                              velocity_second_moment=None if velocities is None else speeds)

    def sample(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
               generator: np.random.Generator) -> Array:
        require_rounds_to_draw(problem)
        require_steps(algorithm, int(rounds[-1]))
        components, step = self._steps(problem, algorithm, problem.structure == "dense" or isinstance(
            problem.gradient_noise, np.ndarray))
        maps, each = self._maps(algorithm, step), points[:, None] if points.ndim == 2 else points
        begin = components.state(each, self.velocities(problem, algorithm))
        components.refuse_size(begin.shape[-1])
        states = drawn(rounds, begin, lambda number: maps(number).dense(), algorithm.schedule.is_constant,
                       generator)
        return np.stack([components.positions(state).mean(axis=1) for state in states], axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class GossipJointLaw(JointLaw):
    """First two moments of all clients' positions at every step of a decentralized algorithm.

    Everything speaks of the components f_i and of the uniform average: `problem` holds the f_i (with
    uniform weights), `divergence` is (1/N) sum_i E||x_i - x||^2 of the average x, and
    `gradient_second_moment` that of the stochastic grad f_i. There are no communications at which
    clients would coincide, so `sync_steps` is empty.

    Attributes
    ----------
    noise_second_moment : (n, N)
        E||gradient noise of f_i||^2, of minibatches and additive (Assumption 1, and (122) of appendix D).
    velocity_second_moment : (n, N) or None
        E||v_i||^2 (DE-SGHMC Lemma 13).
    """

    noise_second_moment: Array = field(kw_only=True)
    velocity_second_moment: Array | None = field(default=None, kw_only=True)

    def gradient_second_moment(self) -> Array:
        """E||stochastic grad f_i(x_i)||^2, (n, N)."""
        return self.exact_gradient_second_moment() + self.noise_second_moment

    def exact_gradient_second_moment(self) -> Array:
        """E||grad f_i(x_i)||^2 without gradient noise, (n, N) (DE-SGLD Lemma 5)."""
        hessians = self.problem.dense_hessians
        slope = np.einsum("cij,kcj->kci", hessians, self.mean - self.problem.minimizers)
        return (slope**2).sum(axis=2) + np.einsum("cij,kcjl,cil->kc", hessians, self.client_cov, hessians,
                                                  optimize=True)

    def gradient_error_second_moment(self) -> Array:
        """E||(1/N) sum_i [grad f_i(x) - grad f_i(x_i)]||^2 with x the average, (n,) (DE-SGLD Lemma 7)."""
        hessians, clients = self.problem.dense_hessians, self.n_clients
        rows = (hessians.mean(axis=0) - hessians).transpose(1, 0, 2).reshape(self.dim, -1) / clients
        offset = self.mean.reshape(len(self.mean), -1) @ rows.T
        return (offset**2).sum(axis=1) + np.einsum("ia,kab,ib->k", rows, self.cov, rows, optimize=True)
