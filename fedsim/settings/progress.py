"""Progress bars of what is worked out before a run, shown where the run shows its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .lazy_import import lazy

tqdm = lazy("tqdm.auto", "tqdm")  # laws need none
_SHOWN: ContextVar[bool] = ContextVar("bars are shown", default=False)
_FEW = 2**17


@contextmanager
def bars_shown(shown: bool) -> Iterator[None]:
    """Within it every `progress_bar` of this thread is shown, or not.

    Examples
    --------
    >>> from fedsim.settings.progress import bars_shown, progress_bar
    >>> with bars_shown(False), progress_bar(10, "schedule of workers") as bar:
    ...     bar.disable
    True
    """
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def progress_bar(total: int, what: str) -> Any:
    """A bar of `total` steps where there are so many that it can be read; see `bars_shown`."""
    return tqdm(total=total, disable=not _SHOWN.get() or total < _FEW, unit_scale=True, desc=what)
