"""Known sets of clients: a set for every round, or sets that come round again."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ..equality import ByValue
from .limits import refuse_bytes
from .participation import TakesPart, clients_of, weights_of_all
from .validation import Array, flag, locked, set_fields, shown, unmasked, whole, whole_numbers

_LARGEST = 2**31 - 1
"""Client numbers up to which sets are taken; far fewer can be simulated."""
_ROW_BYTES, _MEMBER_BYTES = 100.0, 40.0


@dataclass(frozen=True, eq=False, repr=False)
class FixedParticipation(ByValue, TakesPart):
    """Known sets of clients take part, the same in all replicas.

    The server averages over the round's set with shares w_c / (sum of w over the set). A client's own noise
    has the variance that it has with all clients, 1/w_c times that of the average.

    Parameters
    ----------
    sets : sequence of sequences of int, or array (n_rounds, S), (n_rounds,) of int, (n_rounds, N) of bool
        Clients, numbered from 0, that take part in each round, at least one and none twice; or the one
        client of each round; or who of the N does. Kept as a tuple of tuples in ascending order.
    cyclic : bool
        Whether the sets are repeated from the first on; else there must be one for each round.

    Raises
    ------
    ValueError
        Naming the set: one that is empty or names a client twice, and what are no client numbers. By the
        problem, for a client that it has not, and by a run, for fewer sets than rounds.

    Source: a set-up of practice, not of the papers.

    Examples
    --------
    >>> one_by_one = fs.FixedParticipation(range(2), cyclic=True)
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> theory.exact_law(problem, fs.FALD(0.1, participation=one_by_one), n_rounds=600).mean[-1].round(4)
    array([0.8108])
    >>> fs.FALD(0.1, participation=[[1], [1, 0]]).participation
    FixedParticipation([(1,), (0, 1)])
    """

    sets: Any
    cyclic: bool = False
    first: np.ndarray = field(init=False)
    """Where the members of each set begin, (n_sets + 1,)."""
    members: np.ndarray = field(init=False)
    """The clients of all sets, one set after the other."""
    n_sets: int = field(init=False)
    """How many sets there are: the period where they are cyclic."""

    def __post_init__(self) -> None:
        first, members = _table(self.sets)
        flat, ends = members.tolist(), first.tolist()
        set_fields(self, sets=tuple(tuple(flat[a:b]) for a, b in pairwise(ends)),
                   cyclic=flag("cyclic", self.cyclic), first=locked(first), members=locked(members),
                   n_sets=len(first) - 1)

    def _definition(self) -> dict[str, Any]:
        """For its fingerprint, which long lists would take long to give."""
        return {"first": self.first, "members": self.members, "cyclic": self.cyclic}

    @property
    def settles(self) -> bool:
        """Whether the same clients take part in every round for ever."""
        return self.cyclic and all(members == self.sets[0] for members in self.sets)

    def check(self, problem: Any) -> None:
        n_clients, _ = clients_of(problem)
        for place in np.flatnonzero(self.members >= n_clients):
            number = int(np.searchsorted(self.first, place, side="right")) - 1
            raise ValueError(f"sets[{number}]={shown(list(self.sets[number]))} has client "
                             f"{self.members[place]}; it must have clients below n_clients={n_clients}")

    def require(self, n_rounds: int) -> None:
        if not self.cyclic and whole("n_rounds", n_rounds) > self.n_sets:
            raise ValueError(f"participation has {self.n_sets} sets; n_rounds={n_rounds} needs one for each "
                             "round, or cyclic=True")

    def _most_active(self, n_clients: int) -> int:
        return int(np.diff(self.first).max())

    def _total_active(self, n_clients: int, n_rounds: int) -> int:
        self.require(n_rounds)
        times, rest = divmod(n_rounds, self.n_sets)
        return times * len(self.members) + int(self.first[rest])

    def _words(self, n_clients: int) -> str:
        return f"{self.n_sets} known set{'s' * (self.n_sets != 1)}{', cyclic,' * self.cyclic}"

    def _flat_shares(self, weights: Array) -> Array:
        """The share of each of `members` in its set."""
        own, sizes = weights[self.members], np.diff(self.first)
        totals = np.add.reduceat(own, self.first[:-1])
        totals[sizes == len(weights)] = 1.0  # as the weights sum to one
        return own / np.repeat(totals, sizes)

    def shares_at(self, weights: Array, rounds: Any) -> Array:
        """Shares (n, N) of all clients in these rounds (n,), which may lie beyond the last of a list."""
        weights = weights_of_all(weights)
        if _lists(rounds, list, tuple, range):
            _length("rounds", rounds, 8.0 * (3 + len(weights)))
        numbers = whole_numbers("rounds", rounds).astype(np.int64)
        if self.members.max() >= len(weights):
            raise ValueError(f"weights has shape {weights.shape}; there must be one for client "
                             f"{self.members.max()} too")
        if len(numbers) and numbers.min() < 0:
            raise ValueError(f"rounds={shown(rounds)} must be at least 0")
        numbers = numbers % self.n_sets if self.cyclic else np.minimum(numbers, self.n_sets - 1)
        sizes, shares = np.diff(self.first)[numbers], np.zeros((len(numbers), len(weights)))
        rows = np.repeat(np.arange(len(numbers)), sizes)
        begins = np.repeat(self.first[numbers] - np.cumsum(sizes) + sizes, sizes)
        places = begins + np.arange(len(rows))
        shares[rows, self.members[places]] = self._flat_shares(weights)[places]
        return shares

    def __repr__(self) -> str:
        listed = len(self.members) <= 12
        what = str(list(self.sets)) if listed else f"<{self.n_sets} sets of {len(self.members)} clients>"
        return f"FixedParticipation({what}{', cyclic=True' * self.cyclic})"


def _table(sets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where each set begins, and the members of all in ascending order."""
    unmasked("sets", sets)
    if not _lists(sets, list, tuple, range):
        raise ValueError(f"sets={shown(sets)} must be a sequence of sets of client numbers, one set a round")
    count = _length("sets", sets, _ROW_BYTES)
    if count == 0:
        raise ValueError(f"sets={shown(sets)} must have at least one set")
    rows, width = [], None
    for number, given in enumerate(sets):
        row, flags = _row(f"sets[{number}]", given)
        if number and flags != width:
            raise ValueError(f"sets[{number}]={shown(given)} must be "
                             f"{'client numbers' if width is None else f'{width} booleans'}, as sets[0] is")
        width = flags
        rows.append(row)
    first = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    return first, np.concatenate(rows)


def _lists(value: Any, *kinds: type) -> bool:
    """Whether it is of these kinds, or an array with axes."""
    return isinstance(value, kinds) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _length(name: str, value: Any, each: float) -> int:
    """Its length, where so many entries of `each` bytes fit in memory."""
    try:
        count = len(value)
    except OverflowError:
        raise ValueError(f"{name}={shown(value)} is longer than a list can be") from None
    refuse_bytes(each * count, lambda: f"{name}={shown(value)} of {count} entries", "name fewer")
    return count


def _row(name: str, given: Any) -> tuple[np.ndarray, int | None]:
    """The members of a set in ascending order; and of how many booleans it was made, if it was."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return np.array([whole(name, given, 0, _LARGEST)]), None
    if not _lists(given, list, tuple, range, set, frozenset):
        raise ValueError(f"{name}={shown(given)} must be a set of client numbers, or one client's number")
    unmasked(name, given)
    count, width = _length(name, given, _MEMBER_BYTES), None
    if not isinstance(given, np.ndarray):
        entries, ordered = list(given), isinstance(given, (list, tuple))
        if count and ordered and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
            given = np.array(entries, dtype=bool)
        else:
            given = np.array([whole(f"{name}[{place}]", entry, 0, _LARGEST)
                              for place, entry in enumerate(entries)], dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iub":
        raise ValueError(f"{name} of shape {given.shape} and dtype {given.dtype} must be a set of client "
                         "numbers: integers, or booleans (N,)")
    if given.dtype.kind == "b":
        row, width = np.flatnonzero(given), count
    else:
        row = np.sort(given)
    if not len(row):
        raise ValueError(f"{name}={shown(given.tolist())} must have at least one client")
    if row[0] < 0 or row[-1] > _LARGEST:
        raise ValueError(f"{name}={shown(given.tolist())} must have client numbers from 0 to {_LARGEST}")
    for client in row[1:][row[1:] == row[:-1]]:
        raise ValueError(f"{name}={shown(given.tolist())} has client {client} twice; it must have each "
                         "client at most once")
    return row.astype(np.int64), width


def as_participation(value: object) -> Any:
    """A sequence or an array of sets becomes `FixedParticipation`; anything else is itself."""
    if not _lists(value, list, tuple, range):
        return value
    try:
        return FixedParticipation(value)
    except ValueError as error:
        raise ValueError(f"participation: {error}") from None
