"""The scoreboard: every theorem on random problems against the exact law."""

from .command import main

__all__ = ["main"]
