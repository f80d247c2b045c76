"""`Custom`: clients with any potential, given by its gradient."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...equality import ByValue
from ...interfaces import ProblemParts
from ...laws.density import Density
from ...laws.law import Gaussian, NoTarget
from ...pickles import keep_function, made
from ...settings.alignment import aligned, numbered
from ...settings.limits import refuse_bytes
from ...settings.support import Support, shown_support, support_of
from ...settings.validation import (
    Array,
    array,
    as_array,
    client_weights,
    flag,
    locked,
    nonnegative,
    points,
    positive,
    set_fields,
    shape,
    shown,
    unmasked,
    whole,
)
from ..gradients import with_noise
from ..pooled import Pooled
from ..quadratic import Quadratic
from .forms import WITH, checked_gradients, compilable, form_of
from .functions import Frozen, followed
from .trial import ELSEWHERE, compiled_potential, try_gradient, try_potential


def data_of(given: Any) -> tuple[Any, ...]:
    """Arrays and numbers in the types that compiled code knows."""
    if not isinstance(given, tuple):
        return (_part("data", given),)
    named = [(f"data[{i}]", part) for i, part in enumerate(given)]
    parts = aligned(*((name, part, 0) for name, part in named), strict=False)
    return tuple(_part(name, part) for (name, _), part in zip(named, parts, strict=True))


def _part(name: str, given: Any) -> Any:
    unmasked(name, given)
    if isinstance(given, Sized) and not isinstance(given, np.ndarray):
        refuse_bytes(50.0 * len(given), f"{name}={shown(given)}", "pass a NumPy array")
    value = as_array(given)
    if value.dtype.kind not in "biuf":
        raise ValueError(f"{name}={shown(given)} has dtype {value.dtype}; it must be a rectangular array of "
                         "real numbers, or a number")
    if value.dtype.kind == "u" and value.size and value.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has the entry {value.max()}; integers must be less than 2^63")
    kept = np.array(value, dtype=np.float64 if value.dtype.kind == "f" else np.int64, order="C")
    if kept.ndim == 0:
        return kept.item() + 0  # -0 is 0, as fingerprints have it
    return locked(kept)


def curvature_of(given: Any, n_clients: int) -> Any:
    """None, a positive number, or such a number for each client (N,)."""
    if given is None or not isinstance(given, (list, tuple, np.ndarray)):
        return given if given is None else positive("curvature", given)
    values = shape("curvature", array("curvature", given, 1), (n_clients,), " (a number, or one per client)")
    worst = int(np.argmin(values))
    positive(f"curvature[{worst}]", float(values[worst]))
    return values


def check_arguments(potential: Callable[..., Any], data: tuple[Any, ...]) -> None:
    """Raise ValueError unless a potential takes a client, a point and these data."""
    try:
        inspect.signature(potential).bind(0, 0.0, *data)
    except (TypeError, ValueError) as error:  # of a builtin nothing is known
        raise ValueError(f"potential={shown(potential)} must take the arguments potential(client, x"
                         f"{''.join(f', data[{i}]' for i in range(len(data)))}): {error}") from None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Custom(ByValue, ProblemParts):
    """Clients with potentials of one's own, f = sum_c w_c f_(c), by a plain Python gradient that is compiled.

    In dimension 1 `gradient(client, x, *data)` returns the slope of f_(client) at the number x. In more
    dimensions `gradient(client, x, out, *data)` writes the gradient at x (d,) into out (d,), in loops over
    coordinates: it cannot make arrays. It is what FA algorithms follow, f_(c) = f_c / w_c; decentralized
    algorithms take w_c f_(c) and stale ones the sum.

    What it names (globals, closures, functions that it calls) is copied when the problem is made, and a
    fingerprint of it is part of checkpoints and of compiled code on disk: a changed constant is another
    problem, and the same one is not compiled again, in no process. Modules other than math, numpy and fedsim
    cannot be named, and none be handed on as a value. Problems with different potentials differ; one whose
    potential names what cannot be copied equals itself alone.

    Parameters
    ----------
    gradient : function
        Of the client's number, the point, and data. One that numba has compiled is taken as Python wrote it.
    n_clients : int
        N.
    dim : int
        d.
    data : tuple of arrays and numbers, or one array
        Handed to gradient and potential, copied to float64 or int64, read-only and in C order; tables of
        pandas with the same labels in the order of the first.
    weights : (N,), optional
        w_c, positive, summing to one; uniform by default.
    potential : function, optional
        `potential(client, x, *data)`, f_(client) at the number x, or at x (d,), in Python. The gradient is
        compared with it, and in dimension 1 `density` is made of it. A sampler of one's own that reads it
        needs one that can be compiled, in loops over coordinates.
    curvature : float or (N,), optional
        Upper bound of every eigenvalue of every client's Hessian, in size. With it step sizes are judged;
        without, none is.
    gradient_noise : float, optional
        Standard deviation per coordinate of normal noise in every evaluation of grad f_(c).
    support : (lo, hi), optional
        Numbers or arrays (d,), which may be infinite: where the potentials are finite. Replicas that leave it
        are counted in ``Run.outside`` and told, and never moved back.
    check_indices : bool
        Whether runs check indices and integers that depend on the point, at some 5 % of a table's time. With
        False a run that leaves a table goes on with what lies beyond it, or ends Python.

    Raises
    ------
    ValueError
        Naming what was expected and found, for a gradient that cannot be compiled, reads out of range, is
        not finite or is not that of the potential at a few points; and for other bad arguments.

    Notes
    -----
    The gradient is tried at five points of every client, all indices and integers checked; for every client
    up to 1,000 (of more for so many, from the first to the last) its numbers are compared with Python's. So
    whatever is the same at every point, as loops over coordinates and data of the client's number, is known.
    What depends on the point, or is reached at some points alone, is checked in runs, and in
    `gradient` everything is: an index below zero (but a constant, as in ``x[-1]``) or beyond its axis,
    integers of more than 64 bits and integers divided by zero are a `GradientError` with client, round,
    replica and point. The potential is Python's: there a negative index counts from the end.

    In up to eight dimensions loops over replicas vectorise, if what the function calls does: see
    `fedsim.math`. In more a problem class of one's own with a body over rows is faster (docs/own_problems.md
    has a template). Powers of integers are integers, and a negative one an error. Numbers of `math` and NumPy
    functions may differ in the last bit between machines.

    Stability is judged on clients of constant curvature, as for `LogisticRegression`: sufficient for FA-LD
    where potentials are convex.

    Examples
    --------
    >>> def gradient(client, x, centres):
    ...     return x**3 - x - centres[client]
    >>> def potential(client, x, centres):
    ...     return x**4 / 4 - x**2 / 2 - centres[client] * x
    >>> problem = fs.Custom(gradient, n_clients=2, data=[-0.5, 0.5], potential=potential)
    >>> run = fs.simulate(problem, fs.FALD(0.01, local_steps=2), n_rounds=300, n_replicas=2000, seed=1)
    >>> round(float(problem.density().variance), 4), bool(abs(run.cov[-1, 0, 0] - 1.04) < 0.1)
    (1.0418, True)
    """

    gradient_function: Callable[..., Any]
    n_clients: int
    dim: int
    data: tuple[Any, ...]
    weights: Array
    potential_function: Callable[..., Any] | None
    curvature: Any
    gradient_noise: float | None = None
    support: Support | None = None
    check_indices: bool = True
    _form: Any = field(init=False, default=None)
    _copy: Frozen | None = field(init=False, default=None)

    keeps_gaussian = False
    is_convex = False  # nobody says so: a curvature is a size, and the gradient's sign may be wrong

    def __init__(self, gradient: Callable[..., Any], n_clients: int, dim: int = 1, *, data: Any = (),
                 weights: ArrayLike | None = None, potential: Callable[..., Any] | None = None,
                 curvature: ArrayLike | None = None, gradient_noise: float | None = None,
                 support: Any = None, check_indices: bool = True) -> None:
        clients, size = whole("n_clients", n_clients, 1), whole("dim", dim, 1)
        refuse_bytes(32.0 * clients + 400.0 * size, f"n_clients={clients} and dim={size}",
                     "use fewer clients or dimensions")
        if gradient_noise is not None:
            gradient_noise = nonnegative("gradient_noise", gradient_noise) or None
        if potential is not None and not callable(potential):
            raise ValueError(f"potential={shown(potential)} must be a function or None")
        set_fields(self, gradient_function=gradient, n_clients=clients, dim=size,
                   data=data_of(data), potential_function=potential,
                   weights=client_weights(numbered("weights", weights), clients),
                   curvature=curvature_of(curvature, clients), gradient_noise=gradient_noise,
                   support=support_of(support, size),
                   check_indices=flag("check_indices", check_indices))
        self._make_form()
        try_gradient(gradient, self._form, clients, size, self.support)
        if potential is not None:
            check_arguments(potential, self.data)
            try_potential(self.gradient, self._potential, clients, size, self.support)

    def _make_form(self) -> None:
        """And a copy of the potential that nothing can change, where there is one."""
        form = form_of(self.gradient_function, self.dim, self.check_indices, self.potential_function)
        set_fields(self, _form=form(self.data), _copy=followed(self.potential_function))

    @property
    def is_judged(self) -> bool:
        """Whether a curvature was given."""
        return self.curvature is not None

    def gradient(self, client: int, x: Any) -> Array:
        """Exact grad f_(client) at points `x` (..., d); all indices and integers are checked.

        Raises
        ------
        GradientError
            A ValueError that names the point, where the function fails.
        """
        number, at = whole("client", client, 0, self.n_clients - 1), points("x", x, self.dim)
        return checked_gradients(self._form, number, at.reshape(-1, self.dim)).reshape(at.shape)

    def _potential(self, client: int, point: Array) -> float:
        assert self.potential_function is not None
        at = float(point[0]) if self.dim == 1 else point
        try:
            value = (self._copy.function if self._copy else self.potential_function)(client, at, *self.data)
        except OverflowError:  # so far out it is too large
            return float("inf")
        except Exception as error:
            elsewhere = self.support is None and isinstance(error, (ValueError, ArithmeticError))
            raise ValueError(f"potential of client {client} fails at x={shown(at)}: {type(error).__name__}: "
                             f"{error}{ELSEWHERE if elsewhere else ''}") from None
        if np.ndim(value) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ValueError(f"potential returns {shown(value)}, of type {type(value).__name__}, at client "
                             f"{client}; it must return a number")
        return float(value)

    def _potentials(self, client: int, x: Array) -> Array:
        """As `exact_potential` has them."""
        return self.potential(client, x)

    def _without_potential(self) -> str:
        return self._not_compiled

    @cached_property
    def _not_compiled(self) -> str:
        """Why the potential cannot be compiled, or "": tried once, and not before a sampler reads it."""
        if self.potential_function is None:
            return "pass potential= when making the problem"
        found = compilable(self.potential_function)
        if isinstance(found, str):
            return f"compiled, {found}"
        return compiled_potential(self._form, self._potential, self.n_clients, self.dim, self.support,
                                  self.potential_function)

    def potential(self, client: int | None, x: Any) -> Array:
        """f_(client), or f for None, at points `x` (..., d): (...,)."""
        if self.potential_function is None:
            raise ValueError(f"problem={self!r} must have a potential: pass potential= when making it")
        at = points("x", x, self.dim)
        flat = at.reshape(-1, self.dim)
        terms = (tuple(enumerate(self.weights)) if client is None
                 else ((whole("client", client, 0, self.n_clients - 1), 1.0),))
        values = [sum(weight * self._potential(each, point) for each, weight in terms) for point in flat]
        return np.array(values).reshape(at.shape[:-1])

    def density(self, temperature: float = 1.0, *, centre: float = 0.0, scale: float = 1.0) -> Density:
        """The target in one dimension, by quadrature: what runs can be compared with.

        Parameters
        ----------
        temperature : float
            tau of exp(-f / tau).
        centre, scale : float
            About where it is, and how wide; with a support of one end the scale is about how far from it.

        Raises
        ------
        ValueError
            Without a potential, in more dimensions, and where there is no such law or it is not found.
        """
        if self.dim > 1:
            raise ValueError(f"dim={self.dim} must be 1 for quadrature; compare with a reference sample")
        tau = positive("temperature", temperature)
        if tau < 1e-300:
            raise ValueError(f"temperature={temperature!r} must be at least 1e-300: quotients of it overflow")
        ends = None if self.support is None else (float(self.support[0][0]), float(self.support[1][0]))
        try:
            return Density(lambda x: self.potential(None, x[:, None]) / tau, centre=centre, scale=scale,
                           support=ends)
        except ValueError as error:
            if tau == 1.0:
                raise
            raise ValueError(f"{error} (of the potential over temperature={temperature!r})") from None

    def target(self, temperature: float = 1.0) -> Gaussian:
        """Always raises: nothing is known of it in closed form."""
        way = ("problem.density() by quadrature" if self.dim == 1 and self.potential_function is not None
               else "a reference sample")
        raise NoTarget(f"problem={self!r}: the target has no closed form; compare with {way}")

    def pooled(self) -> Pooled:
        """f itself as a problem of one client."""
        return Pooled(self)

    def curvature_problem(self) -> Quadratic:
        """Clients of the given curvature, on which stability is judged.

        Raises
        ------
        ValueError
            With ``curvature=None``.
        """
        if self.curvature is None:
            raise ValueError(f"problem={self!r} has curvature=None: no step size can be judged; pass an "
                             "upper bound of all Hessians as curvature=")
        high = np.broadcast_to(self.curvature, (self.n_clients,))
        return Quadratic(high, np.zeros((self.n_clients, self.dim)), self.weights)

    def _arrays(self) -> Any:
        """The NamedTuple that compiled code sees."""
        return with_noise(self._form, self.gradient_noise)

    def _definition(self) -> dict[str, Any]:
        """What tells it from other problems; a potential that cannot be followed is like no other."""
        gradient, potential = self._told()
        return {"gradient": gradient, "potential": potential or self.potential_function,
                "n_clients": self.n_clients, "dim": self.dim, "data": self.data, "weights": self.weights,
                "curvature": self.curvature, "gradient_noise": self.gradient_noise, "support": self.support}

    def _told(self) -> tuple[str, str | None]:
        """Fingerprints of its functions."""
        return type(self._form).__name__.partition(WITH)[0], self._copy.digest if self._copy else None

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return made, ("fedsim.custom", self._told(), fields)

    def __repr__(self) -> str:
        name = getattr(self.gradient_function, "__name__", "?")
        return (f"Custom({name}, n_clients={self.n_clients}, dim={self.dim}, curvature="
                f"{shown(self.curvature)}, gradient_noise={self.gradient_noise}"
                f"{'' if self.support is None else f', support={shown_support(self.support)}'})")


@keep_function("fedsim.custom")
def _remade(told: tuple[str, str | None], fields: dict[str, Any]) -> Custom:
    """What was pickled; its gradient was tried where it was made."""
    problem = object.__new__(Custom)
    set_fields(problem, **fields)
    problem._make_form()
    functions = {"gradient": problem.gradient_function, "potential": problem.potential_function}
    for (name, function), there, here in zip(functions.items(), told, problem._told(), strict=True):
        if there != here:
            raise ValueError(f"{name}={shown(function)} is another function in this process than where its "
                             "problem was made: it, or a global that it names, has changed; pass what "
                             "changes in data=")
    return problem
