"""How fast two chains with common noise come together, for all clients of a class: a proof in fractions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fedsim.pickles import keep_function, made
from fedsim.problems.quadratic import Quadratic
from fedsim.samplers.declarations import declared
from fedsim.samplers.sampler import Sampled
from fedsim.settings.schedules import Schedule
from fedsim.settings.validation import shown

from .each_client import traced_by_client
from .inequality import Kept, ModeTables, Sides, mode_tables, reduced, refuse, refuse_between
from .quadratics import slowest
from .spectra import Eigenvalue, NotProved, Rows, eigenvalues
from .storing import from_plain, to_plain
from .telling import latex, sentence
from .tracing import System, Traced, traced

SAME = 1e-6
"""Relative difference of two computations of one radius."""


class ModeProof(NamedTuple):
    """The form P (r, r) of a mode, with what the round conserves there; `at` is None for the mode of ones,
    and where no network is."""

    at: Eigenvalue | None
    kept: Kept
    form: Rows


@dataclass(frozen=True, eq=False, repr=False)
class ContractionCertificate:
    """A proved rate: sum_j z_j'P_j z_j of two chains with the same noise falls by rate^2 in every round.

    z_j are the differences of all the state in mode j of the network. It holds for all clients whose
    potentials are m-strongly convex and L-smooth, alike or not, in every dimension, from all starts for which
    the certificate speaks (`starts`), with gradients that are exact or have additive noise. So the laws of
    two such chains, of the whole state, come together, too.

    Attributes
    ----------
    name : str
        The sampler.
    value : float
        The rate of a round, rounded upward; `rate` is the Fraction that is proved.
    quadratic : float
        The radius of a round, in doubles, for the slowest quadratic clients that were found: no smaller rate
        is true. Their curvatures are all `share` of the way from m to L. It may be far below the rate.
    curvatures : tuple of (Fraction, Fraction)
        m and L of what the sampler follows, of each client.
    weights : tuple of Fraction
        Of the clients, in averages.
    rounds : Traced
        The round on differences.
    modes : tuple of ModeProof
    multipliers : tuple of Fraction
        One of each gradient, for all modes.
    between : (Fraction, Fraction) or None
        Where not one network is meant, but all whose eigenvalues, but the 1 of the vector of ones, are
        between these, with any number of clients.
    by_client : bool
        There are no modes: the one form is of the differences of all clients.
    seconds : float
        Of the processor, to find it.

    Source: derived here; see docs/guide/certificates.md.

    Examples
    --------
    >>> algorithm = fs.DESGLD(0.1, fs.network.ring(10))
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=4.0, n_clients=10,
    ...                          convention="components")
    >>> found = theory.certify(algorithm, known)
    >>> isinstance(found, theory.all_clients.ContractionCertificate), found.verify(), round(found.value, 5)
    (True, True, 0.9)
    """

    name: str
    rate: Fraction
    quadratic: float
    share: float
    curvatures: tuple[tuple[Fraction, Fraction], ...]
    weights: tuple[Fraction, ...]
    rounds: Traced
    modes: tuple[ModeProof, ...]
    multipliers: tuple[Fraction, ...]
    between: tuple[Fraction, Fraction] | None
    by_client: bool
    seconds: float

    @property
    def n_clients(self) -> int:
        """N"""
        return len(self.weights)

    @property
    def value(self) -> float:
        """The rate, rounded upward."""
        near = float(self.rate)
        return near if Fraction(near) >= self.rate else float(np.nextafter(near, 2.0))

    @property
    def starts(self) -> tuple[str, ...]:
        """The sums that both chains must share at the start; empty where there are none."""
        over = "" if self.by_client else "the weighted sum over clients of "
        found = [over + _told(u, self.rounds.consensus.parts) for one in self.modes[:1]
                 for u in one.kept.conserved]
        if self.rounds.rest is not None:
            for one in self.modes[1:]:
                found += [f"each client's {_told(u, self.rounds.rest.parts)}" for u in one.kept.conserved]
        return tuple(dict.fromkeys(found))

    def verify(self, algorithm: Any = None) -> bool:
        """Check all of it in fractions: the network's eigenvalues, what is conserved, and every inequality.

        No solver is needed, and no float is believed of what is proved; `quadratic` is computed again.

        Parameters
        ----------
        algorithm : optional
            Whose round must be the one that is stored.

        Returns
        -------
        bool
            True.

        Raises
        ------
        NotProved
            Saying what does not hold.

        Examples
        --------
        >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=4.0, convention="global")
        >>> theory.certify(fs.StaleSGLD(0.05, staleness=1), known).verify(fs.StaleSGLD(0.05, staleness=1))
        True
        """
        _refuse_class(self)
        if algorithm is not None:
            self._refuse_algorithm(algorithm)
        _refuse_eigenvalues(self)
        insides = []
        for number, one in enumerate(self.modes):
            system = system_of(self.rounds, number)
            try:
                sides = sides_of(self.curvatures, system)
                for tables in tables_at(system, one.at, self.between is not None):
                    refuse(tables, one.kept, one.form, self.multipliers, sides, self.rate**2)
                    insides.append((reduced(tables, one.kept), sides))
            except NotProved as error:
                raise NotProved(f"{_mode(number, one.at)}: {error}") from None
        below = slowest(insides)
        if not abs(self.quadratic - below.radius) <= SAME * below.radius:
            raise NotProved(f"quadratic={self.quadratic:g} must be {below.radius:g}, the radius for "
                            "quadratic clients")
        return True

    def _refuse_algorithm(self, algorithm: Any) -> None:
        """A network of the algorithm may be another one, if its eigenvalues are among those of the forms."""
        weights = np.array([float(w) for w in self.weights])
        if self.between is not None:
            n = max((len(one) for one in matrices_of(declaration(algorithm)).values()), default=len(weights))
            weights = np.full(n, 1.0 / n)
        own = round_of(algorithm, weights, self.by_client)
        if own._replace(network=None) != self.rounds._replace(network=None):
            raise NotProved(f"the round of {shown(algorithm)} is not the one of this certificate")
        if own.network is not None:
            places = [one.at for one in self.modes[1:]] if self.between is None else [_spanned(self.between)]
            _refuse_others(own.network, places, f"the network of {shown(algorithm)}")

    def __reduce__(self) -> Any:
        return made, ("theory.all_clients.ContractionCertificate", self.to_json())

    def to_latex(self) -> str:
        """The inequality with its matrices, for an appendix."""
        return latex(self)

    def to_json(self) -> str:
        """All that `verify` needs, and what was measured, as JSON; `from_json` reads it."""
        return json.dumps(to_plain(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> ContractionCertificate:
        """The certificate that `to_json` wrote; what it says is believed once `verify` has been called.

        Raises
        ------
        ValueError
            For a text that is no certificate.
        """
        return cls(**from_plain(text, ModeProof))

    def __str__(self) -> str:
        return sentence(self)

    __repr__ = __str__


@keep_function("theory.all_clients.ContractionCertificate")
def _unpickled(text: str) -> ContractionCertificate:
    return ContractionCertificate.from_json(text)


def _told(u: Sequence[Fraction], parts: Sequence[str]) -> str:
    """A conserved quantity, as s, or q - p."""
    terms = sorted(((x, part) for x, part in zip(u, parts, strict=True) if x), key=lambda term: term[0] < 0)
    told = " + ".join(("" if x == 1 else "-" if x == -1 else f"{float(x):g} ") + part for x, part in terms)
    return told.replace("+ -", "- ")


def _refuse_class(found: ContractionCertificate) -> None:
    if not 0 < found.rate < 1:
        raise NotProved(f"rate={shown(found.rate)} must be between 0 and 1")
    if len(found.curvatures) != len(found.weights) or any(not 0 < m <= L for m, L in found.curvatures):
        raise NotProved("of every client the curvatures must be 0 < m <= L")
    if not found.by_client and len(set(found.curvatures)) > 1:
        raise NotProved("where clients have curvatures of their own there are no modes")
    if min(found.weights) <= 0:
        raise NotProved("weights must be greater than 0")
    rounds, several = found.rounds, len(found.weights) > 1
    networks = (rounds.network is not None) + (found.between is not None)
    if found.by_client:
        if rounds.rest is not None or networks or len(found.modes) != 1 or (
                len(rounds.consensus.points) % len(found.weights)):
            raise NotProved("a form of all clients must be the only one, with a gradient of each client, and "
                            "no network beside it")
    elif several and (rounds.rest is None or len(rounds.rest.points) != len(rounds.consensus.points)):
        raise NotProved("of several clients there must be the round in modes beside that of ones, too")
    elif networks > 1 or (networks and (not several or len(set(found.weights)) > 1)):
        raise NotProved("there must be one network, or a class of them, of several clients with equal "
                        "weights")


def _refuse_eigenvalues(found: ContractionCertificate) -> None:
    """Raise NotProved unless the modes are that of ones and one for every other eigenvalue of the network."""
    rounds, rest = found.rounds, [one.at for one in found.modes[1:]]
    if not found.modes or found.modes[0].at is not None:
        raise NotProved("the first mode must be that of ones")
    if found.between is not None:
        low, high = found.between
        one = rest[0] if len(rest) == 1 else None
        if rounds.rest is None or one is None or not one.centre - one.radius <= low <= high <= (
                one.centre + one.radius):
            raise NotProved("for a class of networks there must be one mode beside that of ones, of all "
                            "eigenvalues of the class")
    elif rounds.network is None:
        beside = rounds.rest is not None
        if rest != [None] * beside or beside != (found.n_clients > 1 and not found.by_client):
            raise NotProved("without a network there must be the mode of ones and, of several clients, "
                            "another")
    elif len(rounds.network) != found.n_clients or rounds.rest is None:
        raise NotProved(f"the network is of {len(rounds.network)} clients, and n_clients={found.n_clients}")
    else:
        _refuse_others(rounds.network, rest, "the network")


def _spanned(between: tuple[Fraction, Fraction]) -> Eigenvalue:
    low, high = between
    return Eigenvalue((low + high) / 2, (high - low) / 2, 1)


def _refuse_others(network: Rows, places: Sequence[Eigenvalue | None], name: str) -> None:
    """Raise NotProved for an eigenvalue that is not in one of these places."""
    for centre, radius, _ in eigenvalues(network):
        if not any(one is not None and abs(centre - one.centre) + radius <= one.radius for one in places):
            raise NotProved(f"{name} has an eigenvalue near {float(centre):.6g} for which there is no "
                            "inequality")


def _mode(number: int, at: Eigenvalue | None) -> str:
    return ("mode of ones" if not number else "modes beside that of ones" if at is None else
            f"mode with eigenvalue {float(at.centre):.6g}")


def round_of(algorithm: Any, weights: np.ndarray, by_client: bool) -> Traced:
    """The round of an algorithm on differences, of clients with these weights."""
    n = len(weights)
    told = declaration(algorithm)
    for name, value in parameters(told).items():
        if isinstance(value, Schedule) and not value.is_constant:
            raise NotProved(f"{name}={shown(value)} changes from round to round; certificates are for rounds "
                            "that do not change")
    found = told.trace(Quadratic(np.ones(n), np.zeros((n, 1)), weights))
    if found.n_clients != n:
        raise ValueError(f"n_clients={n} must be {found.n_clients} for {shown(told)}, which follows f as one "
                         "client")
    return traced_by_client(found) if by_client else traced(found)


def declaration(algorithm: Any) -> Sampled:
    """The sampler, or the declaration of a shipped algorithm."""
    return algorithm if isinstance(algorithm, Sampled) else declared(algorithm)


def parameters(told: Any) -> dict[str, Any]:
    """The parameters of a sampler by name, the step size among them as a schedule."""
    return {one.name: getattr(told, one.name) for one in fields(told)} | {"step_size": told.schedule}


def matrices_of(told: Any) -> dict[str, Any]:
    """The parameters that are square matrices, by name."""
    return {name: value for name, value in parameters(told).items()
            if isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[0] == value.shape[1]}


def system_of(rounds: Traced, number: int) -> System:
    """The tables of the mode of this number."""
    if number and rounds.rest is None:
        raise NotProved("there is one mode alone where there is one client")
    return rounds.rest if number and rounds.rest is not None else rounds.consensus


def tables_at(system: System, at: Eigenvalue | None, both_ends: bool) -> Sequence[ModeTables]:
    """Tables at an eigenvalue, or at both ends of what it stands for."""
    tables = mode_tables(system, at)
    return refuse_between(tables) if both_ends and at is not None else (tables,)


def sides_of(curvatures: Sequence[tuple[Fraction, Fraction]], system: System) -> Sides:
    """m and L of each gradient of a round; clients take turns where there are several curvatures."""
    return [curvatures[i % len(curvatures)] for i in range(len(system.points))]
