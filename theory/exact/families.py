"""Which file knows the exact law of which algorithm, and what a file of this package provides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array, shown

from .affine import LARGEST_STEPS, Moments, NoExactLaw
from .batches import has_minibatches

if TYPE_CHECKING:
    from .joint_laws import JointLaw

_FAMILIES: dict[type, ExactFamily] = {}


class ExactFamily:
    """What a file of this package provides for its algorithm; a missing part raises `NoExactLaw`."""

    takes_minibatches = False

    def solvable(self, problem: Any) -> Any:
        """The problem whose moments are followed: `problem`, or a quadratic one with the same law.

        Linear regression stays as it is where the family `takes_minibatches`.
        """
        if self.takes_minibatches and has_minibatches(problem):
            return problem
        if not isinstance(problem, Quadratic) and problem.keeps_gaussian:
            problem = problem.as_quadratic()
        if not isinstance(problem, Quadratic):
            raise NoExactLaw(f"problem={problem!r}: exact laws need affine gradients with additive noise, as "
                             "of fedsim.Quadratic, or of fedsim.LinearRegression without batch_size; "
                             "fs.simulate draws replicas of any problem")
        return problem

    def require_stable(self, problem: Any, algorithm: Any) -> None:
        """Raise `UnstableStepSize` for what the algorithm's own `stability` does not see."""

    def moments(self, problem: Any, algorithm: Any, rounds: np.ndarray, mean: Array, cov: Array | None,
                full: bool) -> Iterable[Moments]:
        """Moments of the average iterate at `rounds`, from those of the start.

        Where `cov` is None so are the others. They are (d, d), or (d,) variances unless `full`, or where
        coordinates are uncorrelated. Where clients differ after a round: stacked, the average first.
        """
        raise NoExactLaw(f"{type(algorithm).__name__} has no exact law here")

    def is_gaussian(self, problem: Any, algorithm: Any) -> bool:
        """Is the law Gaussian, rather than known by its first two moments only?"""
        return True

    def stationary(self, problem: Any, algorithm: Any, client: int | None) -> tuple[Array, Array]:
        """Mean and covariance, (d, d) or (d,), that a communication leaves unchanged."""
        raise NoExactLaw(f"{type(algorithm).__name__} has no stationary law here")

    def together(self, problem: Any, algorithms: Sequence[Any], start: Any) -> Any:
        """Laws of algorithms that differ in step size (and friction) alone, as of `viewed`; None where there
        are none. Those of settings that do not contract mean nothing."""
        return None

    def joint(self, problem: Any, algorithm: Any, n_steps: int, mean: Array, cov: Array | None) -> JointLaw:
        """Every client at every local step."""
        raise NoExactLaw(f"{type(algorithm).__name__} has no joint law of clients here")

    def sample(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
               generator: np.random.Generator) -> Array:
        """Replicas (R, n, d) at `rounds`, from `points` (R, d), or (R, N, d) of clients, at round 0."""
        raise NoExactLaw(f"{type(algorithm).__name__} has no sampler of rounds here")


def exact(*algorithm_classes: type) -> Callable[[type[ExactFamily]], type[ExactFamily]]:
    """Class decorator: this `ExactFamily` knows the exact laws of these algorithms."""
    def add(family: type[ExactFamily]) -> type[ExactFamily]:
        _FAMILIES.update(dict.fromkeys(algorithm_classes, family()))
        return family

    return add


def family_of(algorithm: Any) -> Any:
    """The `ExactFamily` of this algorithm's class, or of the nearest base that has one."""
    for cls in type(algorithm).__mro__:
        if cls in _FAMILIES:
            return _FAMILIES[cls]
    raise NoExactLaw(f"algorithm={shown(algorithm)}: no exact law is known for {type(algorithm).__name__}; "
                     f"there is one for {', '.join(sorted(c.__name__ for c in _FAMILIES))}")


def keeps_apart(problem: Any, algorithm: Any, cov: Array | None) -> bool:
    """Do coordinates stay uncorrelated from a start with this covariance, so that variances give W2?"""
    if problem.structure == "dense" or not family_of(algorithm).is_gaussian(problem, algorithm):
        return False  # what is drawn at random moves all coordinates at once
    tables: Any = (problem.gradient_noise, cov)
    return not any(np.ndim(one) > 1 and np.count_nonzero(one) > np.count_nonzero(
        np.diagonal(one, axis1=-2, axis2=-1)) for one in tables)


def refuse_steps(algorithm: Any, n_rounds: int, n_kept: int, record: Any) -> None:
    """Raise ValueError for more than `LARGEST_STEPS` rounds that are recorded, or stepped through."""
    if n_kept > LARGEST_STEPS:
        raise ValueError(f"record={shown(record)} of {n_kept} rounds must have at most {LARGEST_STEPS}, as "
                         "each is a step; record fewer, as range(0, n_rounds, 1000) does")
    if n_rounds > LARGEST_STEPS and not algorithm.schedule.is_constant:
        raise NoExactLaw(f"n_rounds={n_rounds} must be at most {LARGEST_STEPS} where the step size changes, "
                         "because rounds are stepped through one by one; ask for fewer rounds")


def require_steps(algorithm: Any, n_steps: int, asked: str = "") -> None:
    """Raise ValueError where the schedule is shorter than the `n_steps` that what is `asked` asks for."""
    known, asked = algorithm.schedule.n_steps, asked or f"n_rounds={n_steps} asks"
    if known is not None and known < n_steps:
        raise ValueError(f"step_size has {known} entries; {asked} for {n_steps}")


def require_constant(algorithm: Any) -> None:
    """Raise `NoExactLaw` where no law is stationary because the step size changes."""
    if not algorithm.schedule.is_constant:
        raise NoExactLaw(f"step_size={algorithm.step_size!r} changes from step to step, so that no law "
                         "is left unchanged by a round; use exact_law, or a constant step size")


def require_rounds_to_draw(problem: Any) -> None:
    """Raise `NoExactLaw` where only moments are known."""
    if has_minibatches(problem):
        raise NoExactLaw("with minibatches only moments are known, and rounds cannot be drawn from them; "
                         "use fedsim.simulate")
