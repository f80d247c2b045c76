"""The notation of a sampler: what its function may call besides + - * / and W @ x."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..settings.participation import Participation, TakesPart
from ..settings.participation_independent import IndependentParticipation
from ..settings.validation import Array, shown
from .applied import Number
from .nodes import Chance
from .tape import KNOWN, Coefficient, Unread, Vector, is_number, open_tape, refuse, word

MOST_AGE = 10_000
"""Rounds that a past vector may be old: each is a part of the state."""


def _vector(what: str, x: Any) -> Vector:
    if isinstance(x, Unread):
        x.refused()
    if not isinstance(x, Vector):
        refuse(f"{what} of {shown(x)}: it takes a vector of clients")
    return x


@word
def grad(x: Vector) -> Vector:
    """Every client's gradient at its own point; each call draws anew where gradients are noisy.

    Parameters
    ----------
    x : vector of clients

    Returns
    -------
    vector of clients
        Of f_(c), of its component w_c f_(c), or of f, as the sampler ``follows``.

    Raises
    ------
    NotationError

    Examples
    --------
    >>> from fedsim.samplers import grad, noise, sqrt
    >>> @fs.sampler
    ... def langevin(x, *, step_size):
    ...     return x - step_size * grad(x) + sqrt(2 * step_size) * noise()
    >>> theory.exact_law(fs.Quadratic([1.0], [[1.0]]), langevin(step_size=0.5), 3).mean[:, 0].tolist()
    [0.0, 0.5, 0.75, 0.875]
    """
    return open_tape("grad()").add("grad", None, (_vector("grad", x).term(),))


@word
def potential(x: Vector) -> Number:
    """Every client's potential at its own point, up to a constant that depends on the client alone.

    It is exact where gradients are noisy, and has the factor that `grad` has: it is f_(c), its component
    w_c f_(c), or f, as the sampler ``follows``. Only the function of an `each` reads it, as a vector (d,)
    all of whose entries are this number.

    Parameters
    ----------
    x : vector of clients

    Returns
    -------
    a number of each client
        Its differences are those of the potential. For quadratic clients and linear regression the least
        value is zero.

    Raises
    ------
    NotationError
        Where anything but `each` reads it.
    ValueError
        When it is run on a problem without a potential, as `fedsim.Custom` is where none was given.

    Examples
    --------
    >>> from fedsim.samplers import each, grad, potential
    >>> def only_down(x, y, change, out):
    ...     for i in range(len(x)):
    ...         out[i] = y[i] if change[0] < 0.0 else x[i]
    >>> def difference(f, g, out):
    ...     for i in range(len(out)):
    ...         out[i] = g[0] - f[0]
    >>> @fs.sampler
    ... def careful_descent(x, *, step_size):
    ...     y = x - step_size * grad(x)
    ...     return each(only_down, x, y, each(difference, potential(x), potential(y)))
    >>> runs = [fs.simulate(fs.Quadratic([9.0], [[1.0]]), careful_descent(step_size=size), 2, 1, seed=1,
    ...                     covariance="none", allow_unstable=True) for size in (0.1, 0.3)]
    >>> [run.mean[:, 0].round(2).tolist() for run in runs]
    [[0.0, 0.9, 0.99], [0.0, 0.0, 0.0]]
    """
    return Number(open_tape("potential()").add("potential", None, (_vector("potential", x).term(),)))


@word
def noise(*, common: bool = False) -> Vector:
    """Standard normals drawn anew at each call, for each client its own or common to all.

    Examples
    --------
    >>> from fedsim.samplers import grad, noise, sqrt
    >>> @fs.sampler
    ... def together(x, *, step_size):
    ...     return x - step_size * grad(x) + sqrt(2 * step_size) * noise(common=True)
    >>> float(theory.exact_law(fs.Quadratic([1.0], [[1.0]]), together(step_size=0.5), 1).cov[-1, 0, 0])
    1.0
    """
    tape = open_tape("noise()")
    if not isinstance(common, bool):
        refuse(f"noise(common={shown(common)}): it must be True or False")
    return tape.add("noise", common)


@word
def mean(x: Vector, *, of: Sequence[Sequence[int]] | None = None, drawn: TakesPart | None = None) -> Vector:
    """sum_c w_c x_c, which all clients get; or an average over some of them.

    Parameters
    ----------
    x : vector of clients
    of : sequence of sets of clients, optional
        One for each round, over and over: the average, by their weights, over those of its turn.
    drawn : fedsim.Participation and the like, optional
        The average over clients drawn at random, by their shares: for each round, and all uses of this
        object in it, one draw. Laws are known by two moments then.

    Examples
    --------
    >>> from fedsim.samplers import mean
    >>> @fs.sampler
    ... def average(x, *, step_size):
    ...     return mean(x)
    >>> print(average(step_size=1.0))
    average(step_size=1.0)
    """
    tape, x = open_tape("mean()"), _vector("mean", x)
    if drawn is not None:
        if of is not None or not isinstance(drawn, TakesPart):
            refuse(f"mean(drawn={shown(drawn)}): it must be a participation, as fs.Participation, and no "
                   "`of` beside it")
        return tape.add("random", _chance(drawn, tape.weights), (x.term(),))
    if of is None:
        return tape.add("mean", tape.weights[None], (x.term(),))
    if not isinstance(of, (list, tuple, np.ndarray)) or not len(of):
        refuse(f"mean(of={shown(of)}): there must be a set of clients at least")
    shares = np.zeros((len(of), tape.n_clients))
    for row, members in zip(shares, of, strict=True):
        chosen = _members(of, members, tape.n_clients)
        row[chosen] = tape.weights[chosen] / tape.weights[chosen].sum()
    return tape.add("mean", shares, (x.term(),))


def _members(of: Any, members: Any, n_clients: int) -> np.ndarray:
    """The numbers of a set of clients, in ascending order."""
    try:
        given = np.array(list(members))
        chosen = np.unique(given.astype(np.int64))
        if (given.dtype.kind in "iuf" and (given == given.astype(np.int64)).all() and len(chosen)
                and chosen[0] >= 0 and chosen[-1] < n_clients):
            return chosen
    except (TypeError, ValueError, OverflowError):
        pass
    refuse(f"mean(of={shown(of)}): each must be a set of clients 0 to {n_clients - 1}")


def _chance(drawn: TakesPart, weights: Array) -> Chance:
    """The shares of clients that are drawn, by their mean and roots of their covariance."""
    N = len(weights)
    if isinstance(drawn, Participation):
        drawn.check(SimpleNamespace(n_clients=N, weights=weights))
        centre, cov = weights, drawn.variance_factor(N) * (np.diag(weights) - np.outer(weights, weights))
    elif isinstance(drawn, IndependentParticipation):
        centre, cov = drawn.shares(weights)
    else:
        refuse(f"mean(drawn={shown(drawn)}): known sets of clients are mean(x, of=sets)")
    if abs(centre.sum() - 1.0) > 1e-12 or np.abs(cov.sum(axis=0)).max() > 1e-12:
        refuse(f"mean(drawn={shown(drawn)}): the shares of its clients do not sum to one, so that it is no "
               "average; fs.FALD(participation=...) says what the server does then")
    values, vectors = np.linalg.eigh(cov)
    roots = (vectors * np.sqrt(np.clip(values, 0.0, None))).T[values > 1e-18 * max(values[-1], 1e-300)]
    return Chance(centre[None], roots[:, None, :], drawn)


@word
def past(x: Vector, age: int) -> Vector:
    """A vector of the state as it was `age` rounds ago; before the start, as it was at the start.

    Examples
    --------
    >>> from fedsim.samplers import grad, noise, past, sqrt
    >>> @fs.sampler
    ... def stale(x, *, step_size, age):
    ...     return x - step_size * grad(past(x, age)) + sqrt(2 * step_size) * noise()
    >>> theory.exact_law(fs.Quadratic([1.0], [[1.0]]), stale(step_size=0.5, age=1), 3).mean[:, 0].tolist()
    [0.0, 0.5, 1.0, 1.25]
    """
    tape, x = open_tape("past()"), _vector("past", x)
    node = tape.nodes[x.term()[0]]
    if node.kind != "state":
        refuse("past(): it takes one of the state's own vectors, and no other")
    if isinstance(age, bool) or not isinstance(age, (int, np.integer)) or age < 0:
        refuse(f"past(age={shown(age)}): the age must be a whole number of rounds, at least 0")
    if age > MOST_AGE:
        refuse(f"past(age={age}): at most {MOST_AGE} rounds are kept; fs.StaleSGLD and fs.StaleSGHMC keep "
               "any number")
    return x if age == 0 else tape.add("past", (node.payload, int(age)))


@word
def weights() -> Coefficient:
    """The clients' weights w_c, one number a client.

    Examples
    --------
    >>> from fedsim.samplers import noise, sqrt, weights
    >>> @fs.sampler
    ... def heat(x, *, step_size):
    ...     return x + sqrt(step_size / weights()) * noise()
    >>> heat(step_size=0.1).step_size
    0.1
    """
    return Coefficient(open_tape("weights()").weights[None].copy())


def _of_coefficient(name: str, function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, Unread):
        value.refused()
    if isinstance(value, Vector):
        refuse(f"{name} of a vector: {KNOWN}")
    with np.errstate(invalid="ignore", over="ignore"):
        if isinstance(value, Coefficient):
            result: Any = function(value.table)
        elif is_number(value):
            result = float(function(float(value)))
        else:
            refuse(f"{name} of {shown(value)}: it takes a coefficient")
    if not np.isfinite(result).all():
        refuse(f"{name} of {shown(value if is_number(value) else value.table.tolist())} is not finite")
    return Coefficient(result) if isinstance(value, Coefficient) else result


@word
def sqrt(value: Any) -> Any:
    """Root of a coefficient: a number, a schedule, or one number a client.

    Examples
    --------
    >>> from fedsim.samplers import sqrt
    >>> sqrt(4.0)
    2.0
    """
    return _of_coefficient("sqrt", np.sqrt, value)


@word
def exp(value: Any) -> Any:
    """Exponential of a coefficient, as `sqrt`.

    Examples
    --------
    >>> from fedsim.samplers import exp
    >>> exp(0.0)
    1.0
    """
    return _of_coefficient("exp", np.exp, value)
