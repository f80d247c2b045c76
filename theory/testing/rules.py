"""`UpdateRule`: an algorithm from a program of its step with explicit noise, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedsim.interfaces import AlgorithmParts, Problem, offers
from fedsim.samplers.clients import Round
from fedsim.samplers.radius import step_limit
from fedsim.samplers.rounds import kept
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array, positive, set_fields, shown, whole
from fedsim.stability.search import Stability

from .affine_step import AffineStep, affine_step, affine_view
from .nested import Nested, asked, leaves, zeros_of


class Seen(NamedTuple):
    """A rule as matrices, on the entries of its state that are ever read.

    deviation (n, n), shift (n,) and noise (n, n) of the round; view (d, n) and offset (d,) of what is read;
    start (n,) at the origin, and its slope (n, d), or None where the rule's start does not move.
    """

    deviation: Array
    shift: Array
    noise: Array
    view: Array
    offset: Array
    start: Array
    slope: Array | None

    def round(self) -> Round:
        """As rounds of samplers are."""
        return Round(self.deviation[None], self.shift[None], self.noise[None])


@dataclass(frozen=True, eq=False, repr=False)
class UpdateRule(AlgorithmParts):
    """An algorithm that is a program: `make(step_size)` gives `step(state, noise)`, and that the new state.

    Its matrices are the program's values at zero and at unit vectors, so that laws are exact to rounding. It
    goes wherever an algorithm with an exact law goes: `theory.exact_law`, `theory.stationary_law`,
    `theory.check`, `theory.sweep`; it has no replicas of its own.

    Parameters
    ----------
    make : callable(step_size) -> step(state, noise)
        In plain NumPy, and affine in state and noise. The gradient is the program's own.
    problem : e.g. fedsim.Quadratic
        Whose gradient the program has; its target is what laws are compared with.
    step_size : float
    noise : shapes of the noise, optional
        A tuple of integers is one array, as (2,); dicts and lists of shapes are nested arrays. All entries
        are independent standard normals, drawn anew at each step. None for a step without noise.
    start : nested arrays, or callable(point (d,)) -> nested arrays, optional
        The state at round 0: dicts, tuples and lists of arrays. As a function it takes the ``start`` of
        `theory.exact_law`. By default the state is the point itself.
    read : callable(state) -> (d,), optional
        What is compared with the target; by default the state's first array.
    temperature : float
        Of the target.

    Raises
    ------
    ValueError
        For a step that is not affine, with the size of the misfit and its place; for one that draws random
        numbers of its own, or computes in float32; naming an argument that does not fit.

    Source: none; values at zero and at unit vectors are the matrices of any affine map.

    Examples
    --------
    >>> problem = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]], [[0.3, -0.2]])
    >>> def langevin(step_size):
    ...     def step(x, noise):
    ...         return x - step_size * problem.gradient(0, x) + np.sqrt(2 * step_size) * noise
    ...     return step
    >>> rule = theory.testing.UpdateRule(langevin, problem, step_size=0.1, noise=(2,))
    >>> law = theory.exact_law(problem, rule, n_rounds=100)
    >>> bool(np.allclose(law.cov, theory.exact_law(problem, fs.StaleSGLD(0.1, 0), 100).cov, atol=1e-14))
    True
    >>> round(rule.stability(problem).max_step_size, 9)
    0.906163679
    """

    make: Callable[[float], Callable[[Any, Any], Any]]
    problem: Any
    step_size: Any
    noise: Any = None
    start: Any = None
    read: Callable[[Any], Any] | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        offers("problem", self.problem, Problem)
        for name in ("make",) + (("read",) if self.read is not None else ()):
            if not callable(getattr(self, name)):
                raise ValueError(f"{name}={shown(getattr(self, name))} must be a function")
        if not np.isscalar(self.step_size):
            raise ValueError(f"step_size={shown(self.step_size)} must be a number: a rule is made for one")
        set_fields(self, step_size=positive("step_size", self.step_size),
                   temperature=positive("temperature", self.temperature))
        _ = self._seen

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # matrices are found again

    def __repr__(self) -> str:
        name = getattr(self.make, "__name__", type(self.make).__name__)
        return f"UpdateRule({name}, step_size={self.step_size:g})"

    @property
    def convention(self) -> str:
        """Whose gradients are followed: f, as a rule is one chain, whatever is in its state."""
        return "global"

    def target(self, problem: Problem) -> Any:
        """The law that this rule is meant to sample."""
        self.check(problem)
        return problem.target(self.temperature)

    def check(self, problem: Problem) -> None:
        """Raise ValueError for another problem than the rule's own."""
        offers("problem", problem, Problem)
        if problem is not self.problem and problem != self.problem:
            raise ValueError(f"problem={shown(problem)} must be that of the rule, whose gradient is in its "
                             f"program: {shown(self.problem)}")

    @cached_property
    def _states(self) -> Nested:
        if self.start is None:
            return Nested("state", np.zeros(self.problem.dim))
        example = (asked("start(point)", self.start, np.zeros(self.problem.dim)) if callable(self.start)
                   else self.start)
        try:
            states = Nested("state", example)
        except ValueError as error:
            raise ValueError(f"start gives no state: {error}") from None
        if not states.size or not np.isfinite(states.values).all():
            raise ValueError(f"start={shown(self.start)} must give a state of finite numbers, at least one")
        return states

    @property
    def step(self) -> AffineStep:
        """The matrices of the whole state, in the order of its arrays."""
        return self._step

    @cached_property
    def _step(self) -> AffineStep:
        step, states = asked(f"make({self.step_size:g})", self.make, self.step_size), self._states
        if not callable(step):
            raise ValueError(f"make({self.step_size:g}) gives {shown(step)}; it must give step(state, noise)")
        noises = Nested("noise", zeros_of("noise", self.noise))
        refuse_bytes(8.0 * 6 * states.size * (states.size + noises.size), f"a state of {states.size} numbers "
                     f"with {noises.size} of noise", "probe a smaller case")
        return affine_step(step, states, noises)

    @cached_property
    def _seen(self) -> Seen:
        """Its matrices where they are ever read: a counter, or a sum that nothing uses, is left out."""
        states, dim = self._states, self.problem.dim
        read = self.read or (lambda state: next(leaves("state", state))[1])
        view, offset = affine_view(read, states, dim)
        slope = None
        if self.start is None or callable(self.start):
            begin = self.start or (lambda point: point)
            slope = np.stack([states.flat(begin(e)) - states.values for e in np.eye(dim)], axis=1)
        found = self.step
        used = influences(found.deviation, view)
        square = np.ix_(used, used)
        gain = found.gain[used]
        return Seen(found.deviation[square], found.shift[used], gain @ gain.T, view[:, used], offset,
                    states.values[used], None if slope is None else slope[used])

    def _radius(self, problem: Problem) -> float:
        """`Stability.radius`: of what is read, without the sums that a round conserves."""
        self.check(problem)
        rest, _ = kept(self._seen.round())
        size = rest.deviation.shape[-1]
        return float(np.abs(np.linalg.eigvals(np.eye(size) + rest.deviation[0])).max(initial=0.0))

    def stability(self, problem: Problem) -> Stability:
        """Spectral radius of a round, and the step size at which it reaches one.

        Parameters
        ----------
        problem : that of the rule

        Returns
        -------
        fedsim.stability.search.Stability
        """
        own = self._radius(problem)
        limit = step_limit(lambda size: replace(self, step_size=size)._radius(problem), self.step_size)
        return Stability(own, own < 1.0, limit, self.step_size,
                         "radius of a round, without what it conserves")

    def costs(self, problem: Problem, n_rounds: int) -> Mapping[str, float]:
        """Rounds; gradients and floats that are sent are the program's, and not known."""
        self.check(problem)
        return {"communications": whole("n_rounds", n_rounds)}

    def _bind(self, problem: Problem, n_rounds: int | None, n_replicas: int | None = None) -> Any:
        """A program in NumPy has no compiled form."""
        raise ValueError(f"algorithm={self!r} has exact laws and is not simulated: write the same round with "
                         "fs.sampler for replicas")

    def _kernel(self, problem: Problem) -> Any:
        """None: see `_bind`."""
        return self._bind(problem, None)

    def _workspace(self, problem: Problem, start: Any, dtype: Any) -> Any:
        """None: see `_bind`."""
        return self._bind(problem, None)


def influences(deviation: Array, view: Array) -> np.ndarray:
    """Numbers of the entries of a state that what is read ever depends on."""
    found = (view != 0.0).any(axis=0)
    while True:
        more = found | (deviation[found] != 0.0).any(axis=0)
        if (more == found).all():
            return np.flatnonzero(found)
        found = more
