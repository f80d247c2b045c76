"""What the exact laws of decentralized algorithms share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array

from ..affine import Moments, NoExactLaw, chain, correlated, evolve, leap
from ..batches import MinibatchNoise, has_minibatches
from ..families import ExactFamily
from ..federated.joint import JointLaw
from .general import Components, GossipMap, Move, Stacked
from .minibatch import MinibatchMap, require_second_moment
from .modes import ModeLaw


class DecentralizedFamily(ExactFamily):
    """Laws of any algorithm that says what its steps are, as a `Move`."""

    clients_differ = True

    def move(self, algorithm: Any, size: float) -> Move:
        """The step of this size."""
        raise NotImplementedError

    def velocities(self, problem: Any, algorithm: Any) -> Array | None:
        """Velocities at the start (N, d), or None for algorithms without any."""
        return None

    def solvable(self, problem: Any) -> Any:
        """Quadratic problems, and linear regression with minibatches as it is."""
        return problem if has_minibatches(problem) else super().solvable(problem)

    def is_gaussian(self, problem: Any, algorithm: Any) -> bool:
        return not has_minibatches(problem)

    def require_stable(self, problem: Any, algorithm: Any) -> None:
        if not has_minibatches(problem):
            return
        components = Components(problem.curvature_problem(), algorithm.mixing, True)
        data = MinibatchNoise(problem)
        components.refuse_size(self.move(algorithm, algorithm.schedule.largest).parts,
                               "for means alone use covariance='none' with allow_unstable=True, which skips "
                               "the check of the second moment; otherwise use fewer clients")
        require_second_moment(lambda size: MinibatchMap(components, self.move(algorithm, size), data),
                              algorithm.schedule.largest)

    def _moves(self, algorithm: Any) -> Any:
        """A function of the step's number."""
        return lambda number: self.move(algorithm, float(algorithm.schedule.at(number)))

    def moments(self, problem: Any, algorithm: Any, rounds: np.ndarray, mean: Array, cov: Array | None,
                covariance: str) -> Iterable[Moments]:
        check_steps(algorithm, int(rounds[-1]))
        if covariance == "none":
            cov = None
            problem = problem.curvature_problem() if has_minibatches(problem) else problem
        elif cov is None:
            cov = np.zeros(problem.dim)
        law, make = self._law(problem, algorithm, cov, covariance == "full")
        moves = self._moves(algorithm)
        state = law.begin(mean, self.velocities(problem, algorithm), cov)
        if algorithm.schedule.is_constant:
            step = make(moves(0))
            maps: Any = step.power(rounds) if isinstance(step, GossipMap) else step
        else:
            maps = lambda number: make(moves(number))  # noqa: E731
        return (law.views(*found) for found in evolve(rounds, state[0], state[1], maps))

    def _law(self, problem: Any, algorithm: Any, cov: Array | None, full: bool) -> tuple[Any, Any]:
        """How the state's moments are held, and a function that makes the map of a `Move`."""
        parts = self.move(algorithm, algorithm.schedule.largest).parts
        if has_minibatches(problem):
            components = Components(problem.curvature_problem(), algorithm.mixing, True)
            data = MinibatchNoise(problem)
            return Stacked(components, parts), lambda move: MinibatchMap(components, move, data)
        modes = ModeLaw.of(problem, algorithm.mixing, cov, full)
        if modes is not None:
            return modes, modes.map
        correlations = full and (isinstance(problem.gradient_noise, np.ndarray) or (
            cov is not None and cov.ndim == 2))
        components = Components(problem, algorithm.mixing, problem.structure == "dense" or correlations)
        return Stacked(components, parts), lambda move: GossipMap(components, move)

    def stationary(self, problem: Any, algorithm: Any, client: int | None) -> tuple[Array, Array]:
        if not algorithm.schedule.is_constant:
            raise NoExactLaw(f"step_size={algorithm.step_size!r} changes from step to step, so that no law "
                             "is left unchanged by a round; use exact_law, or a constant step size")
        law, make = self._law(problem, algorithm, None, True)
        move = self.move(algorithm, algorithm.schedule.largest)
        if isinstance(law, Stacked):
            law.components.refuse_size(law.parts)
        means, covs = law.views(*make(move).stationary())
        view = 0 if client is None else client + 1
        return means[view], covs[view]

    def joint(self, problem: Any, algorithm: Any, n_steps: int, mean: Array, cov: Array | None) -> JointLaw:
        check_steps(algorithm, n_steps)
        minibatches = has_minibatches(problem)
        followed = problem.curvature_problem() if minibatches else problem
        components = Components(followed, algorithm.mixing, True)
        data = MinibatchNoise(problem) if minibatches else None
        moves = self._moves(algorithm)
        velocities = self.velocities(problem, algorithm)
        parts, size = 1 if velocities is None else 2, problem.n_clients * problem.dim
        law = Stacked(components, parts)
        state = law.begin(mean, velocities, np.zeros(problem.dim) if cov is None else cov)
        means = np.empty((n_steps + 1, problem.n_clients, problem.dim))
        covs, speeds = np.empty((n_steps + 1, size, size)), np.empty((n_steps + 1, problem.n_clients))
        for k in range(n_steps + 1):
            if k:
                move = moves(k - 1)
                step = GossipMap(components, move) if data is None else MinibatchMap(components, move, data)
                state = step.step(*state)
            full = state[1][0]  # type: ignore[index]
            means[k], covs[k] = law.positions(state[0]), 0.5 * (full[:size, :size] + full[:size, :size].T)
            if velocities is not None:
                squares = state[0][0, size:] ** 2 + np.diagonal(full)[size:]
                speeds[k] = squares.reshape(problem.n_clients, problem.dim).sum(axis=1)
        noise = None if components.noise is None else components.noise[0]
        each = Quadratic(components.hessians[0], followed.minimizers, None, noise)
        never = np.empty(0, dtype=np.int64)
        return GossipJointLaw(np.arange(n_steps + 1), means, covs, never, means[:0], covs[:0],
                              not minibatches, each, algorithm,
                              velocity_second_moment=None if velocities is None else speeds)

    def sample(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
               generator: np.random.Generator) -> Array:
        if has_minibatches(problem):
            raise NoExactLaw("with minibatches only moments are known, and rounds cannot be drawn from them; "
                             "use fedsim.simulate")
        check_steps(algorithm, int(rounds[-1]))
        components = Components(problem, algorithm.mixing, problem.structure == "dense" or isinstance(
            problem.gradient_noise, np.ndarray))
        moves, parts = self._moves(algorithm), self.move(algorithm, algorithm.schedule.largest).parts
        components.refuse_size(parts)
        each = np.broadcast_to(points[:, None] if points.ndim == 2 else points,
                               (len(points), problem.n_clients, problem.dim))
        velocities = self.velocities(problem, algorithm)
        tables = [each] if velocities is None else [each, np.broadcast_to(velocities, each.shape)]
        state = np.stack(tables, axis=1)  # (R, parts, N, d)
        if components.dense:
            state = state.reshape(len(points), 1, -1)
        else:
            state = state.transpose(0, 3, 1, 2).reshape(len(points), problem.dim, -1)
        out = np.empty((len(points), len(rounds), problem.dim))
        powers: Any = [GossipMap(components, moves(0)).dense()] if algorithm.schedule.is_constant else None

        def average() -> Array:
            split = state.reshape(len(points), components.groups, parts, components.clients, -1)
            return split[:, :, 0].mean(axis=2).reshape(len(points), problem.dim)

        out[:, 0] = average()
        for i, (before, now) in enumerate(pairwise(rounds.tolist()), start=1):
            total = leap(powers, now - before) if powers else chain(
                GossipMap(components, moves(number)).dense() for number in range(before, now))
            moved = (total.matrix @ state.transpose(1, 2, 0)).transpose(2, 0, 1) + total.shift
            state = moved + correlated(generator, len(points), total.noise)
            out[:, i] = average()
        return out


@dataclass(frozen=True, eq=False, repr=False)
class GossipJointLaw(JointLaw):
    """First two moments of all clients' positions at every step of a decentralized algorithm.

    Everything speaks of the components f_i and of the uniform average: `problem` holds the f_i (with
    uniform weights), `divergence` is (1/N) sum_i E||x_i - x||^2 of the average x, and
    `gradient_second_moment` that of the stochastic grad f_i. There are no communications at which
    clients would coincide, so `sync_steps` is empty.

    Attributes
    ----------
    velocity_second_moment : (n, N) or None
        E||v_i||^2 (DE-SGHMC Lemma 13).
    """

    velocity_second_moment: Array | None = field(default=None)

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


def check_steps(algorithm: Any, n_steps: int) -> None:
    """Raise ValueError where the schedule is shorter than `n_steps`."""
    known = algorithm.schedule.n_steps
    if known is not None and known < n_steps:
        raise ValueError(f"step_size has {known} entries; n_rounds={n_steps} asks for {n_steps}")
