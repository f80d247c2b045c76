"""Exact laws of federated algorithms: a round of clients followed by an average over some of them.

A round takes the server's value x to beta^c = G_c x + (I - G_c) b_c + xi^c in client c, with noise of
covariances Q_ce between clients, and then to an average. With all clients,

    M = sum_c p_c G_c,   v = sum_c p_c (I - G_c) b_c,   Q = sum_ce p_c p_e Q_ce.

With participation the average over the drawn clients has, given the beta^c, mean sum_c p_c beta^c and
f times the variance of beta among clients, where f = 1/S (scheme I) or (N-S)/(S(N-1)) (scheme II):

    H_c = sqrt(f p_c) (G_c - M),  u_c = sqrt(f p_c) [(I - G_c) b_c - v],  Q' = (1-f) Q + f sum_c p_c Q_cc

in the notation of `affine`; `averaging` has the other kinds of participation. An algorithm says what G_c and
Q_ce are. Its clients may also be pulled elsewhere than to b_c, and towards the server's previous value z; the
state of a round is then (x, z).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array

from ..affine import Moments, NoExactLaw
from ..batches import has_minibatches, require_second_moment
from ..evolution import TOGETHER, Batches, batched, cycled, drawn, evolve, matrix_of, variances_of
from ..families import ExactFamily, require_constant, require_rounds_to_draw, require_steps
from ..joint_laws import JointLaw
from ..stacked import ROOM
from .averaging import Averaging
from .chain import BATCH, Steps
from .joint import LocalStep, propagate
from .minibatch import MinibatchRounds, parts_of
from .server import DrawnRound, States, averaged_maps, server_maps
from .spectrum import ClientMaps, Spectrum, local_steps, round_clients

ASKED = "n_rounds and local_steps ask"


class FederatedFamily(ExactFamily):
    """Laws of any algorithm that declares what a local step does."""

    takes_minibatches = True

    def chain(self, algorithm: Any, eta: Any) -> Sequence[Any]:
        """The parts of a local step of size `eta`, a number or an array, see `chain`."""
        raise NoExactLaw(f"{type(algorithm).__name__} declares no chain of a local step")

    def rounds(self, problem: Any, algorithm: Any, variances: bool,
               sampling: bool) -> tuple[Callable[[np.ndarray], ClientMaps], int]:
        """A function of the numbers of rounds giving their `ClientMaps`, and how many it may be asked for.

        `variances`: off-diagonal gradient noise may be dropped (it is not asked for).
        """
        spectrum = Spectrum(problem)
        steps = Steps(self, algorithm, spectrum.values, problem.gradient_noise is not None)
        width = 1 if variances else problem.dim
        pairs = len(spectrum.values) if sampling and algorithm.shared_noise > 0.0 else 1
        together = min(steps.together, BATCH // (problem.n_clients * problem.dim * width * pairs))
        return lambda numbers: round_clients(problem, spectrum, steps.rounds(numbers), algorithm.shared_noise,
                                             variances, sampling), max(1, together)

    def local(self, problem: Any, algorithm: Any) -> Callable[[int], LocalStep]:
        """A function of the local step k giving a `LocalStep`."""
        spectrum = Spectrum(problem)
        steps = Steps(self, algorithm, spectrum.values, problem.gradient_noise is not None)
        as_matrices = partial(local_steps, problem, spectrum, algorithm.shared_noise)
        if steps.equal is None:
            return batched(lambda numbers: list(map(LocalStep, *as_matrices(steps.motions(numbers))[:4])),
                           min(max(1, steps.room // problem.n_clients), TOGETHER))
        same = as_matrices(steps.equal)
        return lambda k: same

    def memory(self, algorithm: Any) -> int:
        """Server values that a round depends on: 2 where the previous one is (`ClientMaps.anchored`).

        Of `LocalStep` the anchor is the oldest of these: 1 means the value at the round's start.
        """
        return 0

    def anchored(self, problem: Any, algorithm: Any, own: ClientMaps, first: np.ndarray) -> ClientMaps:
        """What becomes of clients' own maps where they are pulled elsewhere; `first`: (S,), of round 0."""
        return own

    def together(self, problem: Any, algorithms: Sequence[Any], start: Any) -> Any:
        from .together import laws_together, views  # which asks for families

        sizes = np.array([one.schedule.largest for one in algorithms])
        found = laws_together(problem, algorithms[0], sizes, start)
        return views(problem, algorithms[0], sizes, start) if found is None else found

    def head(self, algorithm: Any) -> int:
        """First rounds that differ from the later ones, apart from their step sizes."""
        return 0

    def require_stable(self, problem: Any, algorithm: Any) -> None:
        if has_minibatches(problem):
            parts_of(algorithm, 1.0, problem.dim)  # refuses what has no moments here
            require_second_moment(algorithm.schedule.largest, lambda size: MinibatchRounds(
                problem, replace(algorithm, step_size=size)))

    def is_gaussian(self, problem: Any, algorithm: Any) -> bool:
        return not Averaging.of(problem, algorithm).is_random and not has_minibatches(problem)

    def moments(self, problem: Any, algorithm: Any, rounds: np.ndarray, mean: Array, cov: Array | None,
                full: bool) -> Iterable[Moments]:
        _require_rounds(algorithm, int(rounds[-1]))
        averaging = Averaging.of(problem, algorithm)
        if has_minibatches(problem):
            if cov is not None:
                return MinibatchRounds(problem, algorithm).moments(rounds, mean, matrix_of(cov))
            problem = problem.curvature_problem()
        correlated = averaging.is_random or _correlated_noise(problem) or (cov is not None and cov.ndim == 2)
        variances = problem.structure != "dense" and not (full and correlated)
        self._refuse_correlations(problem, algorithm, variances)
        if cov is not None:
            cov = variances_of(cov) if variances else matrix_of(cov)
        states, maps = self._maps(problem, algorithm, averaging, variances)
        if averaging.sets is not None and not averaging.sets.settles:
            averaging.require_few(rounds, leaps=averaging.sets.cyclic and algorithm.schedule.is_constant)
            return itertools.starmap(states.present, self._along_sets(
                algorithm, averaging.sets, rounds, *states.begin(mean, cov), maps))
        first = [maps(number) for number in range(min(self.head(algorithm), int(rounds[-1])))]
        later = maps(len(first)).power(rounds) if algorithm.schedule.is_constant else maps
        return itertools.starmap(states.present, evolve(rounds, *states.begin(mean, cov), later, first))

    def _along_sets(self, algorithm: Any, sets: Any, rounds: np.ndarray, mean: Array, cov: Array | None,
                    maps: Any) -> Iterable[Moments]:
        """Moments of states where known sets take turns."""
        if not algorithm.schedule.is_constant:
            return evolve(rounds, mean, cov, maps)
        if not sets.cyclic:
            return evolve(rounds, mean, cov, maps.__call__)
        return cycled(rounds, mean, cov, maps, sets.n_sets, self.head(algorithm))

    def _refuse_correlations(self, problem: Any, algorithm: Any, variances: bool) -> None:
        """Raise ValueError where covariances between coordinates that do not mix would not fit in memory."""
        if problem.structure == "dense" or variances:
            return
        width = 2 if self.memory(algorithm) == 2 else 1
        refuse_bytes(
            8.0 * 9 * (problem.dim * width) ** 2,
            f"correlated coordinates at dimension {problem.dim}, with room to work,",
            "use covariance='diagonal' or 'none', all clients in a round, or fewer dimensions")

    def _maps(self, problem: Any, algorithm: Any, averaging: Averaging,
              variances: bool) -> tuple[States, Any]:
        """How states are held, and a function of the round number giving the server's map."""
        states = States(problem.dim, problem.structure == "dense", self.memory(algorithm) == 2)
        clients, together = self.rounds(problem, algorithm, variances, not averaging.by_scheme)
        if averaging.by_scheme:
            return states, Batches(lambda numbers: server_maps(problem, clients(numbers), states,
                                                               averaging.factor, variances), together)
        batches = Batches(lambda numbers: averaged_maps(clients(numbers), states, averaging, numbers,
                                                        variances), together)
        if averaging.sets is None or not algorithm.schedule.is_constant:
            return states, batches
        head, sets = self.head(algorithm), averaging.sets
        later = lru_cache(maxsize=1)(lambda: clients(np.array([head])))

        @lru_cache(maxsize=max(1, ROOM // (problem.dim * (1 if variances else problem.dim))))
        def of_set(members: tuple[int, ...], number: int) -> Any:
            return averaged_maps(later(), states, averaging, np.array([number]), variances).taken(0)

        places = {members: number for number, members in enumerate(sets.sets)}

        def of_round(number: int) -> Any:
            if number < head:
                return batches(number)
            members = sets.sets[number % sets.n_sets]
            return of_set(members, places[members])

        return states, of_round

    def stationary(self, problem: Any, algorithm: Any, client: int | None) -> tuple[Array, Array]:
        require_constant(algorithm)
        averaging = Averaging.of(problem, algorithm)
        averaging.require_settled()
        if has_minibatches(problem):
            return MinibatchRounds(problem, algorithm).stationary()
        variances = problem.structure != "dense" and not (averaging.is_random or _correlated_noise(problem))
        self._refuse_correlations(problem, algorithm, variances)
        states, maps = self._maps(problem, algorithm, averaging, variances)
        return states.present(*maps(self.head(algorithm)).stationary())  # type: ignore[return-value]

    def joint(self, problem: Any, algorithm: Any, n_steps: int, mean: Array, cov: Array | None) -> JointLaw:
        require_steps(algorithm, n_steps, ASKED)
        if has_minibatches(problem):
            raise NoExactLaw("with minibatches federated algorithms have exact moments at communications "
                             "only; use exact_law")
        averaging = Averaging.of(problem, algorithm)
        if not averaging.by_scheme:
            raise NoExactLaw(f"participation={algorithm.participation!r}: the joint law of clients is for "
                             "what the papers' lemmas speak about, all clients or those that a scheme draws; "
                             "use exact_law")
        return propagate(problem, algorithm, n_steps, mean, cov, self.local(problem, algorithm),
                         averaging.factor, self.memory(algorithm))

    def sample(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
               generator: np.random.Generator) -> Array:
        _require_rounds(algorithm, int(rounds[-1]))
        require_rounds_to_draw(problem)
        variances = problem.structure != "dense" and not _correlated_noise(problem)
        self._refuse_correlations(problem, algorithm, variances)
        averaging = Averaging.of(problem, algorithm)
        if averaging.is_random:
            return self._sample_drawn(problem, algorithm, rounds, points, generator, variances)
        states, maps = self._maps(problem, algorithm, averaging, variances)
        alike = averaging.sets is None or averaging.sets.settles
        if not alike:
            averaging.require_few(rounds, leaps=False)
        replicas = drawn(rounds, states.begin_points(points), maps, alike and algorithm.schedule.is_constant,
                         generator, self.head(algorithm))
        return np.stack([states.present_points(state) for state in replicas], axis=1)

    def _sample_drawn(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
                      generator: np.random.Generator, variances: bool) -> Array:
        """Round by round, because each replica has its own clients."""
        (clients, _), head = self.rounds(problem, algorithm, variances, True), self.head(algorithm)
        out = np.empty((len(points), len(rounds), problem.dim))
        out[:, 0] = points
        previous, draw = np.zeros_like(points), None
        for i, (before, now) in enumerate(itertools.pairwise(rounds.tolist()), start=1):
            for number in range(before, now):
                if draw is None or number <= head or not algorithm.schedule.is_constant:
                    draw = DrawnRound(problem, algorithm.participation, clients(np.array([number])).at(0))
                points, previous = draw(points, previous, generator), points
            out[:, i] = points
        return out


def _require_rounds(algorithm: Any, n_rounds: int) -> None:
    """Raise ValueError where step sizes, or sets of clients, are too few."""
    require_steps(algorithm, n_rounds * algorithm.local_steps, ASKED)
    if algorithm.participation is not None:
        algorithm.participation.require(n_rounds)


def _correlated_noise(problem: Any) -> bool:
    return isinstance(problem.gradient_noise, np.ndarray)
