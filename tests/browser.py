"""Pages in the system's Chromium, headless, and what they do besides what they show.

pytest takes the fixtures and the count of skipped tests from here (`tests/conftest.py`). playwright is
imported where it is used: the tests with the lowest versions of the dependencies do without it.
"""

from __future__ import annotations

from pathlib import Path


def node() -> Path:
    """The node that playwright brings."""
    import playwright

    return Path(playwright.__file__).parent / "driver" / "node"
