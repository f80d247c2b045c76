"""Checks of numbers and arrays: every message names the argument, its value and the condition."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..hints import choice, shown as shown
from .limits import refuse_bytes

Array = npt.NDArray[np.float64]
A = TypeVar("A", bound=np.ndarray)


class UnstableStepSize(ValueError):
    """The step size lies outside the region where mean and second moment contract.

    Attributes
    ----------
    step_size, limit : float
        The refused value and the largest stable one (NaN where there is none, or it is not known).

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> try:
    ...     fs.validate(problem, fs.FALD(1.9))
    ... except fs.UnstableStepSize as error:
    ...     print(error.step_size, round(error.limit, 6))
    1.9 1.0
    """

    def __init__(self, message: str, step_size: float, limit: float) -> None:
        super().__init__(message)
        self.step_size = step_size
        self.limit = limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.step_size, self.limit)


def public_name(kind: type) -> str:
    """The name by which users know a class: that of the first package that has it."""
    parts = kind.__module__.split(".")
    for n in range(1, len(parts) + 1):
        package = ".".join(parts[:n])
        if getattr(sys.modules.get(package), kind.__name__, None) is kind:
            return kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"
    return f"{kind.__module__}.{kind.__name__}"


def instance(name: str, value: object, *kinds: type, advice: str = "") -> Any:
    """Who is who: an instance of one of these classes (``type(None)`` where None is allowed).

    The message says what was wanted, what came, and `advice` (a condition, a remedy) where there is any.

    Examples
    --------
    >>> from fedsim.settings.validation import instance
    >>> instance("law", 3, fs.Law)
    Traceback (most recent call last):
    ...
    ValueError: law=3 must be a fedsim.Law, not of type int
    """
    if isinstance(value, kinds):
        return value
    wanted = " or ".join(f"a {public_name(kind)}" if kind is not type(None) else "None" for kind in kinds)
    came = f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
    raise ValueError(f"{name}={shown(value)} must be {wanted}, not {came}{advice and '; ' + advice}")


def real(name: str, value: object) -> float:
    """A finite real number, or a ValueError naming `name`.

    NumPy's scalars of any precision become a float64 of the same value.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name}={shown(value)} must be a real number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name}={shown(value)} is too large for a float64") from None
    if not np.isfinite(number):
        raise ValueError(f"{name}={shown(value)} must be finite")
    return number


def such(name: str, value: object, holds: Callable[[float], bool], condition: str) -> float:
    """A finite real number of which this holds."""
    number = real(name, value)
    if not holds(number):
        raise ValueError(f"{name}={shown(value)} must {condition}")
    return number


def positive(name: str, value: object) -> float:
    """A finite real number greater than zero."""
    return such(name, value, lambda number: number > 0.0, "be greater than 0")


def nonnegative(name: str, value: object) -> float:
    """A finite real number, zero or more."""
    return such(name, value, lambda number: number >= 0.0, "be at least 0")


def fraction(name: str, value: object) -> float:
    """A real number in [0, 1]."""
    return such(name, value, lambda number: 0.0 <= number <= 1.0, "lie in [0, 1]")


def all_positive(name: str, values: Array) -> Array:
    """Numbers (n,), each greater than zero."""
    worst = int(np.argmin(values))
    if values[worst] <= 0.0:
        raise ValueError(f"{name}[{worst}]={values[worst]:g} must be greater than 0")
    return values


def is_listed(value: Any) -> bool:
    """Whether it lists numbers, as a list, an array or a Series does."""
    return isinstance(value, (list, tuple)) or (hasattr(value, "__array__") and getattr(value, "ndim", 0) > 0)


_EXACT = 2**53
"""Up to there a float64 tells an integer from the next."""


def _is_whole(value: object) -> bool:
    """A float that says which integer it means."""
    if not isinstance(value, (float, np.floating)):
        return False
    number = float(value)
    return abs(number) <= _EXACT and number.is_integer() and bool(value == number)  # of a longer float


def whole(name: str, value: object, at_least: int = 0, at_most: int = 2**64 - 1) -> int:
    """An integer within limits; a float that is whole, as 1e4, becomes one.

    NumPy's small integers become Python's, whose products do not wrap.
    """
    if isinstance(value, (bool, np.bool_)) or not (isinstance(value, (int, np.integer)) or _is_whole(value)):
        raise ValueError(f"{name}={shown(value)} must be an integer")
    number = int(value)  # type: ignore[call-overload]
    if number < at_least:
        raise ValueError(f"{name}={shown(value)} must be at least {at_least}")
    if number > at_most:
        raise ValueError(f"{name}={shown(value)} must be at most {at_most}")
    return number


def as_array(value: Any) -> np.ndarray:
    """`np.asarray`; of what is ragged, or too long for memory, an array of no numbers."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError, MemoryError):
        return np.asarray(None)


def whole_numbers(name: str, value: object) -> np.ndarray:
    """A sequence of integers (n,), in the type in which it came, or a ValueError naming `name`.

    Floats that are all whole become int64.
    """
    numbers, advice = np.atleast_1d(as_array(unmasked(name, value))), ""
    if numbers.ndim == 1 and numbers.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            broken = np.flatnonzero(~((np.abs(numbers) <= _EXACT) & (numbers == np.rint(numbers))))
        if not len(broken):
            return numbers.astype(np.int64)
        advice = (f": {name}[{broken[0]}]={numbers[broken[0]]:g}; use "
                  f"np.unique(np.asarray({name}).astype(int))")
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError(f"{name}={shown(value)} must be a sequence of integers{advice}")
    return numbers


def one_of(name: str, value: object, choices: tuple[object, ...]) -> Any:
    """One of a few allowed values."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise ValueError(f"{name}={shown(value)} must be {choice(value, choices)}")
    return value


def unmasked(name: str, value: Any) -> Any:
    """The value itself, or a ValueError where entries are masked: NumPy would use what is under the mask.

    Examples
    --------
    >>> from fedsim.settings.validation import unmasked
    >>> unmasked("record", np.ma.array([1, 999], mask=[False, True]))
    Traceback (most recent call last):
    ...
    ValueError: record has masked entries; fill them or leave them out
    """
    if isinstance(value, (list, tuple)):
        for part in value:
            unmasked(name, part)
    elif isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries; fill them or leave them out")
    return value


def array(name: str, value: object, *dims: tuple[int, ...] | int, advice: str = "") -> Array:
    """A finite C-ordered float64 array; `dims` are the allowed numbers of axes, `advice` how to have them.

    The result is a read-only copy, so that a problem cannot change under a run.
    """
    unmasked(name, value)
    try:
        numbers = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{name} must be a rectangular array of numbers ({error})") from None
    except MemoryError:
        raise ValueError(f"{name}={shown(value)} has more entries than there is memory for") from None
    if numbers.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be an array of real numbers, not {shown(value)} "
                         f"(dtype {numbers.dtype})")
    if dims and numbers.ndim not in dims:
        axes = f"{' or '.join(map(str, dims))} {'axis' if dims == (1,) else 'axes'}"
        raise ValueError(f"{name} has shape {numbers.shape}; it must have {axes}{advice and ': ' + advice}")
    if numbers.size == 0:
        raise ValueError(f"{name} has shape {numbers.shape}; it must not be empty")
    with np.errstate(over="ignore"):  # of a longer float: refused below
        result = np.array(numbers, dtype=np.float64, order="C")
    if not np.isfinite(result).all():
        where = tuple(np.argwhere(~np.isfinite(result))[0])
        raise ValueError(f"{entry_of(name, where)}={result[where]} must be finite")
    return locked(result)


def points(name: str, value: object, dim: int) -> Array:
    """Finite points (..., d)."""
    checked = array(name, value)
    if checked.shape[-1:] != (dim,):
        raise ValueError(f"{name} has shape {checked.shape}; its last axis must have the dimension {dim}")
    return checked


def set_fields(frozen: object, **fields: Any) -> None:
    """Give a frozen dataclass its fields in the form that was checked; for its ``__post_init__``."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


def locked(value: A) -> A:
    """The array itself, which nobody writes to any more."""
    value.setflags(write=False)
    return value


def read_only(value: Any) -> Any:
    """A view that cannot be written to; None stays None."""
    return None if value is None else locked(np.asarray(value).view())


def entry_of(name: str, place: Iterable[Any]) -> str:
    """How a message writes an entry of an array: name[i, j]."""
    return f"{name}[{', '.join(str(int(i)) for i in place)}]"


def flag(name: str, value: object) -> bool:
    """True or False, of Python or NumPy."""
    return bool(one_of(name, value, (True, False)))


def shape(name: str, value: Array, wanted: tuple[int, ...], why: str = "") -> Array:
    """Exactly this shape."""
    if value.shape != wanted:
        raise ValueError(f"{name} has shape {value.shape}; it must be {wanted}{why}")
    return value


def symmetric(name: str, value: Array) -> Array:
    """Symmetric matrices up to rounding; the result is exactly symmetric. Shape (..., d, d)."""
    with np.errstate(over="ignore"):
        gap = np.abs(value - np.swapaxes(value, -1, -2))
    scale = np.abs(value).max(axis=(-1, -2), keepdims=True)
    if (gap > 1e-10 * scale).any():
        worst = np.unravel_index(int(np.argmax(gap - 1e-10 * scale)), value.shape)
        raise ValueError(f"{entry_of(name, worst)}={value[worst]:g} differs from its transpose by "
                         f"{gap[worst]:g}; {name} must be symmetric")
    return locked(0.5 * value + 0.5 * np.swapaxes(value, -1, -2))


def definite(name: str, smallest: Array, strictly: bool = True) -> None:
    """Check the smallest eigenvalue of each of a stack of matrices, shape (N,)."""
    worst = int(np.argmin(smallest))
    if smallest[worst] < 0.0 or (strictly and smallest[worst] == 0.0):
        raise ValueError(f"{name}[{worst}] has smallest eigenvalue {smallest[worst]:g}; it must be positive "
                         f"{'definite' if strictly else 'semidefinite'}")


def client_weights(value: object, n_clients: int) -> Array:
    """Client weights: positive, summing to one within 1e-9; uniform when None."""
    if value is None:
        refuse_bytes(16.0 * n_clients, f"n_clients={n_clients}", "use fewer clients")
        weights = np.full(n_clients, 1.0 / n_clients)
    else:
        weights = shape("weights", array("weights", value, 1), (n_clients,), " (one per client)")
        all_positive("weights", weights)
        with np.errstate(over="ignore"):
            total = weights.sum()
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"weights sum to {total:.12g}; they must sum to 1: divide them by their sum, "
                             "weights / weights.sum()")
        weights = weights / total
    return locked(weights)
