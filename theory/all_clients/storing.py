"""Certificates as plain values, and back: every number as a fraction in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from fedsim.settings.validation import shown

from .inequality import Kept
from .spectra import Eigenvalue, Rows
from .tracing import System, Traced

LONGEST = 4000
"""Characters of a number."""
KIND = "fedsim contraction certificate"
PLAIN = ("name", "quadratic", "share", "by_client", "seconds")


def to_plain(found: Any) -> dict[str, Any]:
    """The values that JSON holds."""
    rounds: Traced = found.rounds
    return {"kind": KIND} | {name: getattr(found, name) for name in PLAIN} | {
        "rate": str(found.rate),
        "curvatures": list(map(_strings, found.curvatures)),
        "weights": _strings(found.weights),
        "between": None if found.between is None else _strings(found.between),
        "consensus": _system(rounds.consensus),
        "rest": None if rounds.rest is None else _system(rounds.rest),
        "n_matrices": rounds.n_matrices,
        "network": None if rounds.network is None else [
            [i, j, str(x)] for i, row in enumerate(rounds.network) for j, x in enumerate(row[:i]) if x],
        "multipliers": _strings(found.multipliers),
        "modes": [{"eigenvalue": None if one.at is None else
                   [str(one.at.centre), str(one.at.radius), one.at.multiplicity],
                   "conserved": list(map(_strings, one.kept.conserved)),
                   "basis": list(map(_strings, one.kept.basis)),
                   "form": list(map(_strings, one.form))} for one in found.modes]}


def from_plain(text: str, mode: Callable[..., Any]) -> dict[str, Any]:
    """The fields of a certificate; `mode` makes one of its modes.

    Raises
    ------
    ValueError
        For a text that is no certificate.
    """
    try:
        plain = json.loads(text)
        if plain["kind"] != KIND:
            raise ValueError(f"its kind is {plain['kind']!r}")
        weights = _fractions(plain["weights"])
        return {name: plain[name] for name in PLAIN} | {
            "rate": _fraction(plain["rate"]),
            "curvatures": tuple(map(_fractions, plain["curvatures"])),
            "weights": weights,
            "between": None if plain["between"] is None else _fractions(plain["between"]),
            "rounds": Traced(_read_system(plain["consensus"]),
                             None if plain["rest"] is None else _read_system(plain["rest"]),
                             None if plain["network"] is None else _network(plain["network"], len(weights)),
                             int(plain["n_matrices"])),
            "multipliers": _fractions(plain["multipliers"]),
            "modes": tuple(mode(_eigenvalue(one["eigenvalue"]),
                                Kept(_rows(one["conserved"]), _rows(one["basis"])), _rows(one["form"]))
                           for one in plain["modes"])}
    except (KeyError, TypeError, IndexError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"text={shown(text)} must be a certificate as to_json writes it: "
                         f"{error!r}") from None


def _strings(values: Any) -> list[str]:
    return [str(Fraction(x)) for x in values]


def _fraction(text: Any) -> Fraction:
    """A number in words, of a size that a double has, too."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ValueError(f"{shown(text)} must be a fraction in words")
    found = Fraction(text)
    float(found)  # OverflowError
    return found


def _fractions(values: Any) -> tuple[Fraction, ...]:
    return tuple(map(_fraction, values))


def _rows(values: Any) -> Rows:
    return [[_fraction(x) for x in row] for row in values]


def _system(one: System) -> dict[str, Any]:
    return {"parts": list(one.parts)} | {
        name: [list(map(_strings, row)) for row in table]
        for name, table in (("step", one.step), ("points", one.points))}


def _read_system(plain: Any) -> System:
    return System(tuple(plain["parts"]), *([[_fractions(entry) for entry in row] for row in plain[name]]
                                           for name in ("step", "points")))


def _network(entries: Any, n_clients: int) -> Rows:
    """The matrix of these entries below its diagonal, with rows of sum 1."""
    rows = [[Fraction(0)] * n_clients for _ in range(n_clients)]
    for i, j, x in entries:
        if not 0 <= j < i < n_clients:
            raise ValueError(f"entry ({i}, {j}) of the network must be below the diagonal")
        rows[i][j] = rows[j][i] = _fraction(x)
    for i, row in enumerate(rows):
        row[i] = 1 - sum(row, Fraction(0))
    return rows


def _eigenvalue(plain: Any) -> Eigenvalue | None:
    return None if plain is None else Eigenvalue(_fraction(plain[0]), _fraction(plain[1]), int(plain[2]))
