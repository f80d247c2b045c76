"""`certify`: a rate is looked for in doubles, rounded, and proved in fractions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from fedsim.interfaces import Algorithm
from fedsim.settings.network import complete, ring
from fedsim.settings.validation import Array, array, instance, one_of, shape, shown

from ..facts import Constants
from .contraction import (
    ContractionCertificate,
    ModeProof,
    declaration,
    matrices_of,
    round_of,
    sides_of,
    system_of,
    tables_at,
)
from .finding import Solution, in_doubles, smallest_rate, solved, units_of
from .inequality import Kept, kept, reduced
from .quadratics import slowest
from .spectra import Eigenvalue, NotProved, eigenvalues
from .tracing import Traced

REACH = Fraction(1, 10**12)
"""Least half-width of the eigenvalues for which an inequality is proved, so that others who compute them
elsewhere find theirs inside."""
RATE_DIGITS = 9
SLACKS = (2e-7, 2e-6, 2e-5, 2e-4)
"""By how much a proved rate is above the smallest found one."""
DIGITS = (3, 4, 6, 8, 10, 12)
"""Decimals to which forms and multipliers are rounded, the fewest that are enough."""
LEAST_RATE = 1e-6
MOST_CLIENTS = 12
"""Clients of one inequality for all of them."""


def certify(algorithm: Algorithm, constants: Constants, what: str = "contraction", *, curvatures: Any = None,
            eigenvalues: Any = None) -> ContractionCertificate:
    """Prove, for all clients of a class, how fast two chains with common noise come together.

    Quadratic forms of the differences, one for each eigenvalue of the network, are looked for by a solver of
    semidefinite programs, and rounded; that they fall is proved in fractions, with enclosures of all
    eigenvalues. `theory.worst_case.certify` encloses suprema over quadratic clients of few unknowns; this is
    for every client between m and L. Where the network is directed, or clients' numbers differ, one form is
    of all clients, at most 12.

    Parameters
    ----------
    algorithm : a sampler of `fs.sampler`, or a shipped algorithm
        With a constant step size, whose clients mix by a matrix or average.
    constants : Constants
        m, L, weights and number of clients, of what the algorithm follows; no more is used.
    what : "contraction"
    curvatures : (N, 2), optional
        m and L of each client, in place of those of all.
    eigenvalues : (low, high), optional
        Prove it for all symmetric networks at once whose eigenvalues, but the 1 of the vector of ones, are
        between these, whatever the number of clients.

    Returns
    -------
    ContractionCertificate
        Verified.

    Raises
    ------
    NotProved
        A ValueError: where nothing was found, which never says that a sampler does not contract; and where
        the round is of a kind for which no inequality is written.
    ImportError
        Without the solver (extra `sdp`).
    ValueError
        Naming argument, value and condition.

    Source: derived here; see docs/guide/certificates.md.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=4.0, n_clients=10,
    ...                          convention="components")
    >>> found = theory.certify(fs.DESGHMC(0.1, 4.0, fs.network.ring(10)), known)
    >>> round(found.value, 5), round(found.quadratic, 5)
    (0.97396, 0.97396)
    """
    began = time.process_time()
    one_of("what", what, ("contraction",))
    instance("constants", constants, Constants)
    told = declaration(algorithm)
    convention = told.convention
    if constants.convention != convention:
        raise ValueError(f"convention={constants.convention!r} of the constants must be {convention!r}, as "
                         f"{type(algorithm).__name__} has it; use theory.constants(problem, algorithm)")
    own = _curvatures(constants, curvatures)
    between = None if eigenvalues is None else _range(eigenvalues)
    by_client = len(set(own)) > 1
    if by_client and (len(own) > MOST_CLIENTS or between is not None):
        raise ValueError(f"n_clients={len(own)} with curvatures of each must be at most {MOST_CLIENTS}, of "
                         "one network: there is one inequality for all")
    try:
        rounds = round_of(told, constants.weights, by_client)
    except NotProved:
        if not 1 < len(own) <= MOST_CLIENTS or between is not None:
            raise
        rounds, by_client = round_of(told, constants.weights, True), True
    if between is not None:
        if rounds.network is None:
            raise ValueError(f"eigenvalues={shown(eigenvalues)} must be None: the round mixes by no matrix")
        _refuse_dependence(told, rounds)
        rounds = rounds._replace(network=None)
    weights = tuple(map(Fraction, constants.weights.tolist()))
    empty = ContractionCertificate(shown(told), Fraction(1), 1.0, 0.0, own, weights, rounds, (), (),
                                   between, by_client, 0.0)
    return replace(_found(empty), seconds=time.process_time() - began)


def _refuse_dependence(told: Any, rounds: Traced) -> None:
    """Raise NotProved where the round is another one on other networks, but for the products with W.

    Three others are tried, of two more numbers of clients; `verify` looks at the one that it is given.
    """
    if rounds.n_matrices > 1:
        raise NotProved("the round mixes with two matrices, and a class is of one; certify the network")
    n = len(rounds.network or ())
    for other in (complete(n), complete(n + 1), ring(2 * n + 1)):
        moved = replace(told, **{name: other for name in matrices_of(told)})
        if round_of(moved, np.full(len(other), 1.0 / len(other)), False)._replace(
                network=None) != rounds._replace(network=None):
            raise NotProved("the round has numbers that depend on the network or on the number of clients; "
                            "certify the network")


def _curvatures(constants: Constants, curvatures: Any) -> tuple[tuple[Fraction, Fraction], ...]:
    """m and L of each client."""
    m, L = constants.strong_convexity, max(constants.strong_convexity, constants.smoothness)
    n = len(constants.weights)
    if curvatures is None:
        return ((Fraction(m), Fraction(L)),) * n
    pairs = shape("curvatures", array("curvatures", curvatures, 2), (n, 2))
    if not (pairs[:, 0] >= m * (1.0 - 1e-12)).all() or not (pairs[:, 1] <= L * (1.0 + 1e-12)).all() or (
            pairs[:, 0] > pairs[:, 1]).any():
        raise ValueError(f"curvatures={shown(curvatures)} must be pairs (m_c, L_c) with {m:g} <= m_c <= L_c "
                         f"<= {L:g}, as the constants have it")
    return tuple((Fraction(low), Fraction(high)) for low, high in pairs.tolist())


def _range(eigenvalues: Any) -> tuple[Fraction, Fraction]:
    low, high = shape("eigenvalues", array("eigenvalues", eigenvalues, 1), (2,)).tolist()
    if not -1.0 <= low <= high < 1.0:
        raise ValueError(f"eigenvalues={shown(eigenvalues)} must be (low, high) with -1 <= low <= high < 1")
    return Fraction(low), Fraction(high)


def _places(rounds: Traced, between: tuple[Fraction, Fraction] | None) -> list[Eigenvalue | None]:
    """The modes' eigenvalues; None of the mode of ones."""
    if rounds.rest is None:
        return [None]
    if between is not None:
        low, high = between
        return [None, Eigenvalue((low + high) / 2, (high - low) / 2, 1)]
    if rounds.network is None:
        return [None, None]
    places: list[Eigenvalue | None] = [None]
    for one in eigenvalues(rounds.network):
        centre = Fraction(round(one.centre * 10**15), 10**15)
        reach = max(REACH, 8 * (one.radius + abs(centre - one.centre)))
        places.append(Eigenvalue(centre, reach, one.multiplicity))
    return places


def _found(empty: ContractionCertificate) -> ContractionCertificate:
    """The same with the smallest rate that is found, and its proof."""
    places = _places(empty.rounds, empty.between)
    systems = [system_of(empty.rounds, number) for number in range(len(places))]
    sides = [sides_of(empty.curvatures, one) for one in systems]
    tables = [tables_at(one, at, empty.between is not None) for one, at in zip(systems, places, strict=True)]
    keeps = [_kept(several) for several in tables]
    insides = [[reduced(one, keep) for one in several] for several, keep in zip(tables, keeps, strict=True)]
    worst = slowest([(one, side) for several, side in zip(insides, sides, strict=True) for one in several])
    if not worst.radius < 1.0:
        where = "m" if worst.share < 1e-9 else "L" if worst.share > 1.0 - 1e-9 else (
            f"{worst.share:.3g} of the way from m to L")
        raise NotProved(f"{empty.name} does not contract for quadratic clients with curvatures at {where}: "
                        f"the radius of a round is {worst.radius:.6g}")
    unit = max(high for _, high in empty.curvatures)
    units = [units_of(several[0], side, float(unit)) for several, side in zip(insides, sides, strict=True)]
    doubles = [[in_doubles(one, side, float(unit), own) for one in several]
               for several, side, own in zip(insides, sides, units, strict=True)]
    least = smallest_rate(doubles, max(LEAST_RATE, worst.radius * (1.0 - 1e-9)))
    known = replace(empty, quadratic=worst.radius, share=worst.share)
    refusal: NotProved | None = None
    for slack in SLACKS:
        rate = Fraction(ceil((least + slack) * 10**RATE_DIGITS), 10**RATE_DIGITS)
        solution = solved(doubles, float(rate)) if rate < 1 else None
        if solution is None:
            continue
        for digits in DIGITS:
            proof = replace(known, rate=rate, modes=_rounded(places, keeps, units, solution, digits),
                            multipliers=tuple(max(Fraction(0), _decimal(x, digits)) / unit**2
                                              for x in solution.multipliers))
            try:
                proof.verify()
            except NotProved as error:
                refusal = error
                continue
            return proof
    raise NotProved(f"a rate of {least:.6g} was found in doubles, and is not proved in fractions: {refusal}; "
                    "the sampler may contract nevertheless")


def _kept(several: Sequence[Any]) -> Kept:
    """The quantities that all tables of a mode conserve."""
    found = [kept(one) for one in several]
    if any(one != found[0] for one in found):
        raise NotProved("the round conserves different quantities at both ends of the eigenvalues; certify "
                        "the network")
    return found[0]


def _rounded(places: Sequence[Eigenvalue | None], keeps: Sequence[Kept], units: Sequence[Array],
             solution: Solution, digits: int) -> tuple[ModeProof, ...]:
    made = []
    for at, keep, own, form in zip(places, keeps, units, solution.forms, strict=True):
        r, size = len(form), list(map(Fraction, own.tolist()))
        rows = [[_decimal(form[max(i, j), min(i, j)], digits) / (size[i] * size[j]) for j in range(r)]
                for i in range(r)]
        made.append(ModeProof(at, keep, rows))
    return tuple(made)


def _decimal(x: float, digits: int) -> Fraction:
    return Fraction(round(Fraction(float(x)) * 10**digits), 10**digits)
