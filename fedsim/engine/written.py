"""What a run computes by bodies that stand outside of fedsim, whose sources its version does not tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..problems.custom.functions import frozen, plain_function
from ..vector.compile import STUBS, body_of

_OWN = __name__.partition(".")[0]


def texts_of(values: Any) -> Iterator[str]:
    """Of the bodies of other people's that are chosen by these NamedTuples, and those in them.

    Raises
    ------
    ValueError
        Where one names what cannot be told from others.
    """
    for value in values:
        if not isinstance(value, tuple):
            continue
        kind = type(value) if hasattr(value, "_fields") else None
        for stub in STUBS if kind else ():
            body: Any = body_of(stub, kind)
            name = f"{stub.__name__} of {getattr(kind, '__name__', '')}"
            if body is not None and not _is_own(plain_function(name, body)):
                text = frozen(f"checkpoint: the body of {name}", body, fields=True).text
                yield f"{stub.__module__} {name}: {text}"
        yield from texts_of(value)


def _is_own(body: Any) -> bool:
    return str(body.__globals__.get("__name__")).partition(".")[0] == _OWN
