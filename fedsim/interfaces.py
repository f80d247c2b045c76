"""What a problem and an algorithm offer: to users, to the engine and to the theory.

`Problem`, `Algorithm` and `SimulatedAlgorithm` list what each must offer; `ProblemParts` and
`AlgorithmParts`, from which a class derives, what it may offer, with the one default of each part. So no
caller asks whether a part is there: `validate` looks for all of them once, before anything is computed.
Names with an underscore are called by the engine alone. Shapes: N clients, dimension d, B lanes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np

from .settings.schedules import Schedule, as_schedule
from .settings.starts import start_moments as start_moments, start_of as start_of
from .settings.support import Support
from .settings.validation import Array, shown
from .vector.memory import Scratch, aligned

if TYPE_CHECKING:
    from .laws.law import Gaussian
    from .problems.quadratic import Quadratic
    from .stability.search import Stability


_MISSING = object()
_OFFERED: WeakKeyDictionary[type, dict[type, tuple[frozenset[str], frozenset[str]]]] = WeakKeyDictionary()
"""What is known of classes that offered an interface: the methods, which an instance may have of its own, and
the parts that each instance must have, because the class has them not. Laws ask thousands of times."""


def offers(name: str, value: object, interface: type) -> None:
    """Raise ValueError unless `value` has every part of `interface`, and its methods can be called."""
    if isinstance(value, type):
        raise ValueError(f"{name}={shown(value)} must be a fedsim {name}, an instance and not the class")
    fields = getattr(value, "__dict__", {})
    known = _OFFERED.setdefault(type(value), {})
    methods, own_parts = known.get(interface, (None, frozenset[str]()))
    if methods is not None and own_parts <= fields.keys() and methods.isdisjoint(fields):
        return
    members = _members(interface)
    for part, (declared, is_stub) in members.items():
        method = inspect.isfunction(declared)
        own = getattr(type(value), part, _MISSING)  # of the class: no property is computed
        if own is _MISSING or (method and part in fields):
            own = fields.get(part, _MISSING)
        missing = own is _MISSING or (is_stub and own is declared)
        if missing or (method and not callable(getattr(value, part))):
            what = f"no method {part}()" if method else f"no {part}"
            raise ValueError(f"{name}={shown(value)} must be a fedsim {name}: {type(value).__name__} has "
                             f"{what}: {inspect.getdoc(declared)}")
    known[interface] = (
        frozenset(part for part, (declared, _) in members.items() if inspect.isfunction(declared)),
        frozenset(part for part in members if getattr(type(value), part, _MISSING) is _MISSING))


@cache
def _members(interface: type) -> dict[str, tuple[Any, bool]]:
    """Declaration of each part by name, those first that a class must offer: theirs do nothing.

    What it may offer is in `ProblemParts` and `AlgorithmParts`, with defaults.
    """
    parts: dict[str, tuple[Any, bool]] = {}
    for cls in interface.__mro__:
        for name, part in vars(cls).items():
            if not name.startswith("__") and (isinstance(part, property) or inspect.isfunction(part)):
                parts.setdefault(name, (part, not cls.__name__.endswith("Parts")))
    return parts


@runtime_checkable
class ProblemParts(Protocol):
    """What a problem may offer; derive from this class for the defaults."""

    @property
    def gradient_noise(self) -> Any:
        """Additive normal noise of gradients; None without."""
        return None

    @property
    def has_minibatches(self) -> bool:
        """True where gradients are estimated from minibatches of data."""
        return False

    @property
    def keeps_gaussian(self) -> bool:
        """True where gradients are affine and their noise is normal and does not depend on the point."""
        return True

    @property
    def is_judged(self) -> bool:
        """False where nothing bounds the Hessians, so that no step size can be judged."""
        return True

    @property
    def is_convex(self) -> bool:
        """True where f is known to be convex, so that a stable step size cannot run away."""
        return self.is_judged

    @property
    def support(self) -> Support | None:
        """Ends (d,) and (d,) of the box outside which the potentials are infinite; None without."""
        return None

    @property
    def response_work(self) -> float | None:
        """Operations that `batch_response` takes; None where there is none."""
        return None

    def batch_response(self) -> Array | None:
        """How the noise of a gradient grows with the distance, (N, d^2, d^2); None where it does not."""
        return None

    def _coordinate_arrays(self, n_replicas: int) -> Any:
        """The compiled form with pairs of coordinates as lanes; None where coordinates mix."""
        return None

    def _coordinates(self, first: int, last: int) -> Any:
        """These coordinates as a problem, for compiled code; None where coordinates mix."""
        return None

    def _potentials(self, client: int, x: Array) -> Array:
        """f_(client) at points `x` (..., d), up to a constant: in NumPy, as `exact_potential` has it."""
        raise ValueError(f"problem={self!r} has no potential: {self._without_potential()}")

    def _without_potential(self) -> str:
        """Why `exact_potential` has no body for the compiled form; "" where it has one."""
        return f"{type(self).__name__} has none, with a body of fedsim.problems.gradients.exact_potential"

    def _scratch(self, dim: int, n_lanes: int, dtype: Any) -> Any:
        """What a gradient needs to work in, whose normals have this dtype."""
        return Scratch(aligned((dim, n_lanes)), aligned((dim, n_lanes), dtype))


class Problem(ProblemParts, Protocol):
    """What a problem must offer: clients with potentials f_(c), and weights w_c."""

    @property
    def n_clients(self) -> int:
        """Number of clients N."""

    @property
    def dim(self) -> int:
        """Dimension d."""

    @property
    def weights(self) -> Array:
        """The weights w_c (N,), positive, summing to one."""

    def target(self, temperature: float = 1.0) -> Gaussian:
        """The law proportional to exp(-f / temperature); `fedsim.law.NoTarget` without a closed form."""

    def gradient(self, client: int, x: Array) -> Array:
        """Exact grad f_(c) at points `x` (..., d), in NumPy."""

    def pooled(self) -> Problem:
        """f as a problem of one client."""

    def curvature_problem(self) -> Quadratic:
        """The quadratic problem that stability is judged on."""

    def _arrays(self) -> Any:
        """The NamedTuple that compiled code sees, with a body of what `problems.gradients` declares."""


class AlgorithmParts(Protocol):
    """What an algorithm may offer; derive from this class for the defaults."""

    if TYPE_CHECKING:  # at run time a dataclass would take it for the default of its field

        @property
        def step_size(self) -> Any:
            """A number or a schedule."""

    @property
    def convention(self) -> str:
        """Whose gradients are followed: "federated" f_(c) = f_c / w_c, "components" f_c, or "global" f."""
        return "federated"

    @property
    def temperature(self) -> float:
        """tau of the target exp(-f/tau)."""
        return 1.0

    def _clients_differ(self, problem: Problem) -> bool:
        """True where every client keeps a state of its own, with a start and a law of its own."""
        return False

    def _normalise_step(self) -> None:
        """Check and convert `step_size`; called by ``__post_init__``."""
        schedule = as_schedule(self.step_size)
        number = schedule.is_constant and not isinstance(self.step_size, Schedule)
        object.__setattr__(self, "step_size", schedule.largest if number else schedule)

    @property
    def schedule(self) -> Schedule:
        """The step size as a schedule."""
        return as_schedule(self.step_size)

    def target(self, problem: Problem) -> Gaussian:
        """The law that this algorithm is meant to sample on `problem`."""
        offers("problem", problem, Problem)
        return problem.target(self.temperature)

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless this algorithm can run on this problem."""
        offers("problem", problem, Problem)

    def n_active(self, problem: Problem) -> int:
        """Clients that work in a round."""
        offers("problem", problem, Problem)
        return problem.n_clients

    def variance_factor(self, problem: Problem) -> float:
        """`Participation.variance_factor`, 0 when all clients take part."""
        offers("problem", problem, Problem)
        return 0.0

    def _participation_words(self, problem: Problem) -> str:
        """Who takes part in a round, in words."""
        return "all active"

    def _steps(self, n_rounds: int) -> int:
        """Steps in `n_rounds` rounds: what schedules count."""
        return n_rounds

    def _numbered(self, problem: Problem, n_rounds: int) -> int:
        """Steps that have random numbers of their own: what the streams count."""
        return self._steps(n_rounds)

    def _counted(self, problem: Problem) -> int:
        """How often a round counts in ``stop[1]`` of its workspace; 0 where rounds are too short for it."""
        return 0

    def _noise_so_far(self, problem: Problem, n_rounds: Array) -> Array:
        """Variance per coordinate, about, that all noise of so many rounds would have without a gradient."""
        time = self.schedule.total(self._steps(n_rounds))  # type: ignore[arg-type]
        return time * (2.0 * self.temperature + self.schedule.largest * largest_noise(problem) ** 2)

    def _gradients_per_step(self, problem: Problem) -> int:
        """Gradient evaluations of a client in a step, each with random numbers of its own."""
        return 1

    def _is_stable(self, problem: Problem) -> bool:
        """Whether `_radius` is below one, which may be cheaper to tell."""
        return cast(Algorithm, self)._radius(problem) < 1.0

    def _separates(self, problem: Problem) -> bool:
        """True when a step treats each coordinate alone, given a problem that does."""
        return False

    def _is_gaussian(self, problem: Problem) -> bool:
        """False where the law is not Gaussian."""
        return problem.keeps_gaussian

    def _twin(self, problem: Problem, streams: Any, start: Array) -> Any:
        """Replicas in NumPy, from the random streams and a start (R, d), or (N, R, d).

        Raises
        ------
        ValueError
            Where there are none.
        """
        raise ValueError(f"algorithm={self!r} has no twin in NumPy: compiled=False is for samplers of one's "
                         "own, as fs.sampler makes them")

    def _blamed(self, error: Exception) -> ValueError | None:
        """What to say of an error of compiled code where a function of this algorithm is at fault."""
        return None

    def _bind(self, problem: Problem, n_rounds: int | None,
              n_replicas: int | None = None) -> tuple[Problem, Any]:
        """The problem and the algorithm that are run, for so many rounds (None: only to be looked at) and at
        most so many replicas (None: any number)."""
        return problem, self


class Algorithm(AlgorithmParts, Protocol):
    """What an algorithm must offer, also one that has laws and is never simulated."""

    def costs(self, problem: Problem, n_rounds: int) -> Mapping[str, float]:
        """What one replica costs: communications, gradient_evaluations, floats_sent; expected if random."""

    def stability(self, problem: Problem) -> Stability:
        """Growth of the round map at the largest step size, and the step-size limit."""

    def _radius(self, problem: Problem) -> float:
        """`Stability.radius` without the search for the limit."""


class SimulatedAlgorithm(Algorithm, Protocol):
    """What an algorithm must offer to be simulated."""

    def _kernel(self, problem: Problem) -> Any:
        """The NamedTuple that compiled code sees, with a body of `algorithms.bodies.advance`."""

    def _workspace(self, problem: Problem, start: Array, dtype: Any) -> Any:
        """State of a block of lanes beginning at `start` (d, B), with a body of `observe`."""


def largest_noise(problem: Problem) -> float:
    """Standard deviation per coordinate of a gradient's additive noise, at most; 0 without."""
    noise = problem.gradient_noise
    if noise is None or isinstance(noise, float):
        return noise or 0.0
    return float(np.sqrt(np.abs(noise).max()))  # of covariances


EXPLAINERS: list[Callable[[Problem, Algorithm], str]] = []
"""Who says something in `fedsim.explain` besides the simulator: what exact law there is, once known."""


def validate(problem: Problem, algorithm: Algorithm, start: object = None) -> None:
    """Every check that needs two objects: sizes, participation, stability, start.

    Parameters
    ----------
    problem, algorithm : e.g. `fedsim.Quadratic` and `fedsim.FALD`
    start : point (d,) or `fedsim.Gaussian`, optional

    Raises
    ------
    ValueError, and `UnstableStepSize` beyond stability

    Examples
    --------
    >>> fs.validate(fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1), start=[2.0])
    """
    validate_sizes(problem, algorithm, start)
    if problem.is_judged and not algorithm._is_stable(problem):  # the limit is dearer
        algorithm.stability(problem).require()


def validate_sizes(problem: Problem, algorithm: Algorithm, start: object = None) -> None:
    """`validate` without the stability check (for ``allow_unstable=True``)."""
    offers("problem", problem, Problem)
    offers("algorithm", algorithm, Algorithm)
    algorithm.check(problem)
    start_of(problem, algorithm, start)
