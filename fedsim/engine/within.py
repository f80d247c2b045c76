"""How far blocks on threads are: rounds that are done, and the part of a round that their kernels count."""

from __future__ import annotations

from collections.abc import Callable

from ..vector.memory import signal_of, signals


class Within:
    """Tells a progress bar what is done, in replica-rounds.

    Parameters
    ----------
    places : int
        Blocks that are open at a time, at most.
    counted : int
        How often a kernel counts in a round; 0 where it does not.
    tick : function
        It is given what is done since the last call.

    Attributes
    ----------
    flags : array
        The `signals` of all open blocks.
    """

    def __init__(self, places: int, counted: int, tick: Callable[[int], None]) -> None:
        self.flags = signals(places + 1)  # the last is of no block
        self._free, self._counted, self._tick = list(range(places)), counted, tick
        self._open: dict[int, tuple[int, int]] = {}
        self._done = self._told = 0

    def begin(self, first: int, last: int) -> int:
        """The place of a block in `flags`."""
        place = self._free.pop()
        self._open[first] = place, last - first
        return place

    def done(self, first: int, rounds: int, finished: bool) -> None:
        """A block has run so many rounds, and has perhaps finished."""
        place, replicas = self._open[first]
        signal_of(self.flags, place)[1] -= rounds * self._counted
        self._done += rounds * replicas
        if finished:
            self._free.append(place)
            del self._open[first]
        self.look()

    def look(self) -> None:
        """Tell of what is new: rounds that are done, and what was counted since."""
        part = 0
        if self._counted:
            part = sum(replicas * int(signal_of(self.flags, place)[1]) // self._counted
                       for place, replicas in self._open.values())
        new = self._done + part - self._told
        if new > 0:
            self._told += new
            self._tick(new)
