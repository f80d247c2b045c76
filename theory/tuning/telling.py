"""What is said on the error stream by what may take longer than one waits in silence."""

from __future__ import annotations

import sys
import time

PATIENCE = 3.0
"""Seconds of silence."""


def say(words: str, begun: float) -> None:
    """A line of progress, with the seconds since something was begun."""
    print(f"{words}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


class Teller:
    """Says how far something has come: every time, or when there was nothing to be read for a while.

    Examples
    --------
    >>> from theory.tuning.telling import Teller
    >>> Teller("search", 4, False).tell(1)  # soon after: nothing is said
    """

    def __init__(self, what: str, total: int, always: bool) -> None:
        self.what, self.total, self.always = what, total, always
        self.begun = self.last = time.monotonic()

    def tell(self, done: int, words: str = "") -> None:
        """`done` of all, with further words."""
        if self.always or time.monotonic() - self.last > PATIENCE:
            self.last = time.monotonic()
            say(f"{self.what}: {done} of {self.total}{words and ', ' + words}", self.begun)
