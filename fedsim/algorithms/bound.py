"""A sampler made ready for a run: plain arrays, which travel to processes without the user's function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from ..interfaces import AlgorithmParts, Problem, largest_noise
from ..problems.quadratic import Quadratic
from ..random.plain import PlainStreams
from ..samplers import operations as ops
from ..samplers.clients import Clients
from ..samplers.nodes import Each
from ..samplers.operations import Program
from ..samplers.program import functions_in, program_of
from ..samplers.rounds import Rounds
from ..samplers.sampler import binds
from ..samplers.trace import Trace
from ..samplers.twin import Twin
from ..settings.validation import Array
from ..stability.search import Stability
from ..vector.trajectories import NoModes, modes_of
from .each_bodies import uncompilable
from .machine import MachineKernel, MachineWork, kernel_of, workspace_of

DOUBLINGS = 64
"""Numbers of rounds, as powers of two, that fit the engine's counters."""


@dataclass(frozen=True, eq=False)
class Bound(AlgorithmParts):
    """A sampler as the engine runs it, for one problem and number of rounds.

    Parameters
    ----------
    trace : Trace
    program : Program
    scale : (N,)
        Factors of the clients' gradients.
    clients_differ : bool
        Whether clients have first parts of their own.
    asked : optional
        The sampler itself, for what the calling process asks; it stays behind where this is pickled.
    """

    trace: Trace
    program: Program
    scale: Array
    clients_differ: bool
    asked: Any = field(repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "asked": None}

    @property
    def step_size(self) -> Any:  # type: ignore[override]
        """As the sampler has it."""
        return self.asked.step_size

    def target(self, problem: Problem) -> Any:
        """As the sampler has it."""
        return self.asked.target(problem)

    def costs(self, problem: Problem, n_rounds: int) -> Mapping[str, float]:
        """As the sampler has them."""
        costs: Mapping[str, float] = self.asked.costs(problem, n_rounds)
        return costs

    def stability(self, problem: Problem) -> Stability:
        """As the sampler has it."""
        found: Stability = self.asked.stability(problem)
        return found

    def _radius(self, problem: Problem) -> float:
        return float(self.asked._radius(problem))

    def _is_gaussian(self, problem: Problem) -> bool:
        return not len(self.program.draws) and not self.functions and problem.keeps_gaussian

    def _clients_differ(self, problem: Problem) -> bool:
        return self.clients_differ

    def _separates(self, problem: Problem) -> bool:
        """True where nobody is drawn at random, as lanes that are coordinates draw apart, and no function
        needs whole vectors."""
        return not len(self.program.draws) and not self.functions

    def _counted(self, problem: Problem) -> int:
        """Steps of the program, in all turns of its loops."""
        count, times, open_turns = 0, 1, []
        for kind, turns, *_ in self.program.steps.tolist():
            count += times
            if kind == ops.LOOP:
                open_turns.append(turns)
                times *= turns
            elif kind == ops.END:
                times //= open_turns.pop()
        return count

    def _noise_so_far(self, problem: Problem, n_rounds: Array) -> Array:
        if self.functions:
            return np.full(np.shape(n_rounds), np.inf)
        largest = largest_noise(problem)
        if largest not in self._growth:
            self._growth[largest] = noise_growth(self.trace, largest)
        doublings = np.ceil(np.log2(np.maximum(n_rounds, 1.0))).astype(np.int64)
        return self._growth[largest][np.minimum(doublings, DOUBLINGS - 1)]

    @cached_property
    def functions(self) -> list[Each]:
        """Those of `each`."""
        return functions_in(self.trace)

    @cached_property
    def _growth(self) -> dict[float, Array]:
        return {}

    def _twin(self, problem: Problem, streams: PlainStreams, start: Array) -> Twin:
        return Twin(self.trace, problem, self.scale, streams, start)

    def _blamed(self, error: Exception) -> ValueError | None:
        return uncompilable(self.functions, error)

    def _kernel(self, problem: Problem) -> MachineKernel:
        modes: Any = NoModes()
        if _has_modes(problem):  # no work without use, and the same compiled code
            used = len(problem.hessians) if (self.program.code[:, 0] >= ops.TURN).any() else 0
            modes = modes_of(problem.hessians[:used], problem.minimizers[:used])
        return kernel_of(self.program, self.functions, self.trace.n_clients, modes)

    def _workspace(self, problem: Problem, start: Array, dtype: Any) -> MachineWork:
        return workspace_of(self.program, self.program.marks[5:].tolist(), problem, start, dtype)


@binds
def bound(asked: Any, trace: Trace, problem: Problem) -> Bound:
    """A sampler whose round on this problem is `trace`."""
    scale = problem.weights if asked._follows == "components" else np.ones(trace.n_clients)
    return Bound(trace, program_of(trace, scale, _has_modes(problem)), scale, asked._clients_differ(problem),
                 asked)


def _has_modes(problem: Problem) -> TypeGuard[Quadratic]:
    """True where clients have eigenvectors of their own, and exact gradients."""
    return isinstance(problem, Quadratic) and problem.structure == "dense" and problem.gradient_noise is None


def noise_growth(trace: Trace, gradient_noise: float) -> Array:
    """Variance of a coordinate of the average after 2^k rounds without gradients, (DOUBLINGS,)."""
    shape = 1, trace.n_clients, 1, 1
    clients = Clients(np.zeros(shape), np.zeros(shape[:3]), np.full(shape, gradient_noise))
    rounds = Rounds.of(trace, clients)
    size, whole, found = rounds.sizes()[0], rounds.round()._replace(spread=None, spread_shift=None), []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(DOUBLINGS):
            found.append(float(whole.noise[0, :size, :size].mean()))
            whole = whole.then(whole)
    return np.maximum.accumulate(np.nan_to_num(found, nan=np.inf))
