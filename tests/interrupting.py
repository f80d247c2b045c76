"""A progress bar during which the user presses Ctrl-C."""

from __future__ import annotations

from typing import Any


def ctrl_c_after(work: int) -> type:
    """A class of such bars: Ctrl-C comes once, after so many replica-rounds of all its bars together."""
    class Interrupting:
        done = 0

        def __init__(self, **options: Any) -> None:
            pass

        def __enter__(self) -> Interrupting:
            return self

        def __exit__(self, *error: object) -> bool:
            return False

        def update(self, amount: int) -> None:
            before, Interrupting.done = self.done, self.done + amount
            if before < work <= self.done:
                raise KeyboardInterrupt

    return Interrupting
