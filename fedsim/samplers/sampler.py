"""`fs.sampler`: an algorithm from one function of the notation.

It makes frozen dataclasses of the function's keyword arguments, like the shipped algorithms. All that is
exact follows from the trace of the function, whose notation is in `fedsim.samplers.notation`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..equality import ByValue
from ..interfaces import AlgorithmParts, Problem, offers
from ..pickles import made
from ..settings.limits import refuse_bytes
from ..settings.schedules import Schedule
from ..settings.validation import one_of, shown, whole
from ..stability.search import Stability, first_limit
from .clients import Clients
from .identity import KINDS, digest_of, has_name, packed, text_of
from .radius import batch_radius, radius_of_rounds, step_limit
from .rounds import Rounds
from .tape import Coefficient, Turns
from .telling import explained, prices, require_potential, warn_once
from .trace import Trace, shared_parts, trace
from .words import latex_of, words_of

FOLLOWS = {"clients": "federated", "components": "components", "global": "global"}
"""Whose gradients `grad` has: f_(c), w_c f_(c), or f; and the shipped algorithms' name of it."""
_ROUND_BYTES = 200.0
"""A round's coefficients where they change, with copies while a program is written."""


_BINDERS: list[Callable[[Any, Trace, Problem], Any]] = []
"""Functions that make a sampler ready for a run: compiled code stands above, with the kernels."""


def binds(function: Callable[[Any, Trace, Problem], Any]) -> Callable[[Any, Trace, Problem], Any]:
    """Decorator: the function makes samplers ready for a run, from their round on a problem."""
    _BINDERS.append(function)
    return function


class Sampled(ByValue, AlgorithmParts):
    """Base of the classes that `fs.sampler` makes."""

    _function: ClassVar[Callable[..., Any]]
    _state: ClassVar[tuple[str, ...]]
    _follows: ClassVar[str]
    _told: str | None
    """Hash of its function, and of all that it read, when the sampler was made."""
    _exact_gradients: ClassVar[bool] = False
    """Whether it means what it says only where gradients have no noise."""

    def __post_init__(self) -> None:
        self._normalise_step()
        for name, value in self._fields().items():
            if isinstance(value, (list, np.ndarray)) and name != "step_size":
                object.__setattr__(self, name, _plain(name, value))
        object.__setattr__(self, "_told", digest_of(type(self)._function))

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={_short(value)}" for name, value in self._fields().items())
        return f"{type(self).__name__}({told})"

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name)
                for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def _definition(self) -> dict[str, Any]:
        """The fields, and the function by what it says and reads: two of one name may be two samplers."""
        return {**self._fields(), "function": self._told or type(self)._function, "follows": self._follows}

    def __reduce_ex__(self, protocol: Any) -> Any:
        kind = type(self)
        if has_name(kind):
            return super().__reduce_ex__(protocol)
        key = f"{kind.__module__}.{kind.__qualname__}", self._told, self._follows, self._exact_gradients
        if self._told is not None:
            KINDS.setdefault(key, kind)
        return made, ("fedsim.sampled", key, packed(kind._function), self.__getstate__())

    @property
    def convention(self) -> str:
        """Whose gradients are followed, as `AlgorithmParts.convention`."""
        return FOLLOWS[self._follows]

    def _clients_differ(self, problem: Problem) -> bool:
        """True where every client has a first part of its own."""
        found = self.trace(problem)
        return self._follows != "global" and not shared_parts(found)[found.names[0]]

    def check(self, problem: Problem) -> None:
        """Raise ValueError, or `NotationError`, unless this sampler can run on this problem."""
        offers("problem", problem, Problem)
        found = self.trace(problem)
        require_potential(self, found, problem)
        warn_once(self, found)

    def trace(self, problem: Problem, n_rounds: int | None = None) -> Trace:
        """The nodes of a round on this problem.

        Parameters
        ----------
        problem : e.g. fedsim.Quadratic
        n_rounds : int, optional
            For schedules: the rounds whose coefficients are known.

        Raises
        ------
        NotationError, and ValueError where it needs exact gradients and this problem has none

        Examples
        --------
        >>> from fedsim.samplers import grad, noise, sqrt
        >>> @fs.sampler
        ... def langevin(x, *, step_size):
        ...     return x - step_size * grad(x) + sqrt(2 * step_size) * noise()
        >>> langevin(step_size=0.1).trace(fs.Quadratic([1.0], [[0.0]])).how_many("grad")
        1
        """
        if digest_of(type(self)._function) != self._told:
            raise ValueError(f"{type(self).__name__} reads something from outside its function that has "
                             "changed since this sampler was made; make it anew, or make that a parameter")
        exact = not problem.has_minibatches and problem.gradient_noise is None
        if self._exact_gradients and not exact:
            raise ValueError(f"problem={shown(problem)} must have exact gradients for {type(self).__name__}: "
                             "those of its anchors are, and each grad() of the notation has noise of its own")
        one = self._follows == "global"
        weights = np.ones(1) if one else problem.weights
        return _traced(self, 1 if one else problem.n_clients, weights.tobytes(), exact,
                       None if self.schedule.is_constant else n_rounds or 1)

    @property
    def temperature(self) -> float:  # type: ignore[override]
        """That of the target: the parameter of this name, or 1."""
        return 1.0

    def words(self, problem: Problem) -> str:
        """The round as it was traced, line by line: to be compared with the paper's.

        Examples
        --------
        >>> from fedsim.samplers import grad, noise, sqrt
        >>> @fs.sampler
        ... def langevin(x, *, step_size):
        ...     return x - step_size * grad(x) + sqrt(2 * step_size) * noise()
        >>> print(langevin(step_size=0.5).words(fs.Quadratic([1.0], [[0.0]])))
        g1 = grad(x)
        u1 = x - 0.5 g1 + xi1
        new x = u1
        """
        return words_of(self.trace(problem))

    @classmethod
    def source(cls) -> str:
        """The text of the function, with its decorator; "" where Python has not kept it.

        Examples
        --------
        >>> print(type(fs.samplers.declared(fs.StaleSGLD(0.1, 2))).source().rstrip())
        @sampler(follows="global")
        def stale_sgld(x, *, step_size, age):
            \"\"\"Stale SGLD: the gradient is taken where the chain was.\"\"\"
            return x - step_size * grad(past(x, age)) + sqrt(2 * step_size) * noise()
        """
        return text_of(cls._function.__code__)

    def latex(self, problem: Problem) -> str:
        """The same as LaTeX."""
        return latex_of(self.trace(problem))

    def explained(self, problem: Problem) -> list[tuple[str, str]]:
        """The parts of `fedsim.explain`: round, costs, conserved sums, temperature."""
        return explained(self, problem)

    def _bind(self, problem: Problem, n_rounds: int | None,
              n_replicas: int | None = None) -> tuple[Problem, Any]:
        """The problem that is followed, and the program of a round."""
        trace = self.trace(problem, n_rounds)
        return (problem.pooled() if self._follows == "global" else problem,
                _BINDERS[0](self, trace, problem))

    def _kernel(self, problem: Problem) -> Any:
        """Its program, as `fedsim.algorithms.machine` runs it."""
        return self._bind(problem, None)[1]._kernel(problem)

    def _workspace(self, problem: Problem, start: Any, dtype: Any) -> Any:
        """Room for the program."""
        return self._bind(problem, None)[1]._workspace(problem, start, dtype)

    def _numbered(self, problem: Problem, n_rounds: int) -> int:
        """Steps that have random numbers of their own: noises, of the clients or shared."""
        return n_rounds * max(*self.trace(problem).noises, 1)

    def _gradients_per_step(self, problem: Problem) -> int:
        """Gradients of a round, at most so many of which are evaluated in a step."""
        return self.trace(problem).how_many("grad")

    def _is_gaussian(self, problem: Problem) -> bool:
        """False where clients or matrices are drawn at random, too."""
        found = self.trace(problem)
        return problem.keeps_gaussian and not found.how_many("random") and not found.how_many("each")

    def _is_stable(self, problem: Problem) -> bool:
        """Whether `_radius` is below one; a function of `each` is not judged."""
        return self.trace(problem).how_many("each") > 0 or self._radius(problem) < 1.0

    def _given(self, n_clients: int, n_rounds: int | None) -> dict[str, Any]:
        """The parameters as the notation knows them."""
        given: dict[str, Any] = {}
        for name, value in self._fields().items():
            if isinstance(value, Schedule):
                if not value.is_constant:
                    refuse_bytes(_ROUND_BYTES * (n_rounds or 1), f"n_rounds={n_rounds} with a schedule for "
                                 f"{name}", "run fewer rounds, or a constant step size")
                value = float(value.largest) if value.is_constant else Coefficient(
                    np.asarray(value.at(np.arange(n_rounds or 1)), dtype=np.float64)[:, None])
            elif isinstance(value, np.ndarray) and value.ndim == 1:
                if len(value) != n_clients:
                    raise ValueError(f"{name} has {len(value)} numbers; it must have one a client, "
                                     f"{n_clients}")
                value = Coefficient(value[None])
            elif isinstance(value, np.ndarray) and value.ndim == 3:
                value = Turns(value)
            given[name] = value
        return given

    def rounds(self, problem: Problem, n_rounds: int | None, dense: bool | None = None) -> Rounds:
        """The rounds on quadratic clients, as matrices."""
        found = self.trace(problem, n_rounds)
        followed: Any = problem.pooled() if self._follows == "global" else problem
        dense = followed.structure == "dense" if dense is None else dense
        groups, size = (1, followed.dim) if dense else (followed.dim, 1)
        n = len(found.names) * found.n_clients * size
        refuse_bytes(8.0 * 4 * groups * n * n, f"a round of {type(self).__name__} with {n} numbers",
                     "use fewer clients or dimensions")
        return Rounds.of(found, Clients.of(followed, self._follows == "components", dense))

    def _radius(self, problem: Problem) -> float:
        """`Stability.radius`: of a round, or of all rounds until networks come again; without what is
        conserved."""
        offers("problem", problem, Problem)
        largest = dataclasses.replace(self, step_size=self.schedule.largest)  # type: ignore[type-var]
        second = (batch_radius(problem, self._follows, largest.trace(problem)) if problem.has_minibatches
                  else None)
        if second is not None:
            return second
        return radius_of_rounds(largest.rounds(problem.curvature_problem(), None))

    def stability(self, problem: Problem) -> Stability:
        """Spectral radius of a round on the complement of what it conserves, and the step-size limit.

        Parameters
        ----------
        problem : e.g. fedsim.Quadratic

        Returns
        -------
        fedsim.stability.search.Stability
            The limit is looked for upwards, and NaN where no smaller step size is stable.

        Examples
        --------
        >>> from fedsim.samplers import grad, noise, sqrt
        >>> @fs.sampler
        ... def langevin(x, *, step_size):
        ...     return x - step_size * grad(x) + sqrt(2 * step_size) * noise()
        >>> round(langevin(step_size=0.1).stability(fs.Quadratic([4.0], [[0.0]])).max_step_size, 9)
        0.5
        """
        size = float(self.schedule.largest)

        def radius(step: float) -> float:
            return dataclasses.replace(self, step_size=step)._radius(problem)  # type: ignore[type-var]

        with np.errstate(over="ignore", invalid="ignore"):
            own = radius(size)
            high = (self.stability(problem.curvature_problem()).max_step_size if problem.response_work
                    else np.nan)
            if np.isfinite(high):  # that of the mean
                return Stability(own, own < 1.0, first_limit(radius, high), size,
                                 "radius of the second moment of a round, without what it conserves")
            limit = step_limit(radius, size)
        return Stability(own, own < 1.0, limit, size, "radius of a round, without what it conserves")

    def costs(self, problem: Problem, n_rounds: int) -> dict[str, float]:
        """The price of one replica of `n_rounds`.

        A mixing sends a vector along every link in both directions, an average one from and to every client.
        """
        offers("problem", problem, Problem)
        n_rounds = whole("n_rounds", n_rounds)
        return {name: n_rounds * price for name, price in prices(self, problem).items()}


@lru_cache(maxsize=64)
def _traced(one: Sampled, n_clients: int, weights: bytes, exact: bool, n_rounds: int | None) -> Trace:
    return trace(type(one).__name__, type(one)._function, one._state, one._given(n_clients, n_rounds),
                 n_clients, np.frombuffer(weights), exact)


def _plain(name: str, value: Any) -> Any:
    """An array that nobody can change, where the value is one of numbers."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        return tuple(value)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}={shown(value)} must be finite")
    array.setflags(write=False)
    return array


def _short(value: Any) -> str:
    return f"<{' x '.join(map(str, value.shape))} numbers>" if isinstance(value, np.ndarray) else repr(value)


def sampler(function: Callable[..., Any] | None = None, *, follows: str = "clients") -> Any:
    """Decorator: the algorithm that a function describes, round by round.

    Parameters
    ----------
    function : callable
        Its positional arguments are the state, a vector for each client; the first is what is recorded. It
        begins at the start, and the others at zero. Keyword arguments are parameters, and one of them is
        `step_size`. It returns the new state in the same order.
    follows : "clients", "components" or "global"
        Whether ``grad`` is of f_(c), of w_c f_(c), or of f, which is one client then.

    Returns
    -------
    class
        A frozen dataclass of the keyword arguments: an algorithm for all that takes one.

    Raises
    ------
    ValueError
        Naming an argument that the function must have, or must not have.

    Source: a declaration of this project's own; see docs/guide.

    Examples
    --------
    >>> from fedsim.samplers import grad, noise, sqrt
    >>> @fs.sampler(follows="components")
    ... def extra_sgld(x, s, *, step_size, W):
    ...     return W @ x - s - step_size * grad(x) + sqrt(2 * step_size) * noise(), s + (x - W @ x) / 2
    >>> problem = fs.Quadratic.from_components([1.0, 2.0, 3.0], [[0.5], [-0.5], [1.0]])
    >>> algorithm = extra_sgld(step_size=0.01, W=fs.network.ring(3))
    >>> law = theory.exact_law(problem, algorithm, n_rounds=1000)
    >>> round(float(law.w2()[-1]), 6)
    0.002084
    """
    one_of("follows", follows, tuple(FOLLOWS))
    if function is None:
        return lambda given: sampler(given, follows=follows)
    if not inspect.isfunction(function):
        raise ValueError(f"function={shown(function)} must be a function")
    name, state, fields = function.__name__, [], []
    for part in inspect.signature(function).parameters.values():
        if part.kind in (part.POSITIONAL_ONLY, part.POSITIONAL_OR_KEYWORD):
            if part.default is not part.empty:
                raise ValueError(f"{part.name}={part.default!r} of {name} must have no default: positional "
                                 "arguments are the state; parameters stand after a *")
            state.append(part.name)
        elif part.kind == part.KEYWORD_ONLY:
            given: dict[str, Any] = {} if part.default is part.empty else (
                {"default": part.default} if getattr(type(part.default), "__hash__", None) is not None else
                {"default_factory": lambda default=part.default: default})
            fields.append((part.name, Any, dataclasses.field(kw_only=True, **given)))
        else:
            raise ValueError(f"{name} must take neither *{part.name} nor **{part.name}: every part of the "
                             "state and every parameter has a name")
    if not state:
        raise ValueError(f"{name} must have a state: positional arguments, the first of which is recorded")
    if "step_size" not in [field[0] for field in fields]:
        raise ValueError(f"{name} must have the parameter step_size after a *: it is what searches vary")
    taken = {field[0] for field in fields} & set(dir(Sampled)) - {"step_size", "temperature"}
    if taken:
        raise ValueError(f"{name} must call its parameter {sorted(taken)[0]!r} otherwise: every algorithm "
                         "has something of this name")
    text_of(function.__code__)  # as it is now: the file may be written anew
    kind: Any = dataclasses.make_dataclass(
        name, fields, bases=(Sampled,), frozen=True, eq=False, repr=False, namespace={
            "_function": staticmethod(function), "_state": tuple(state), "_follows": follows,
            "__doc__": function.__doc__})
    if "temperature" in [field[0] for field in fields] and isinstance(kind.temperature, property):
        kind.temperature = 1.0  # a property would refuse the field's value
    kind.__module__, kind.__qualname__ = function.__module__ or "__main__", function.__qualname__
    return kind

