"""What a run computes by bodies that stand outside of fedsim, whose sources its version does not tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..problems.custom.functions import frozen, plain_function
from ..vector.compile import STUBS, body_of

_OWN = __name__.partition(".")[0]


def texts_of(values: Any) -> list[str]:
    """Of the bodies of other people's that are chosen by these NamedTuples, and those in them.

    Other people's functions that choose a body are asked where one of their bodies calls them, if it does.

    Raises
    ------
    ValueError
        Where one names what cannot be told from others.
    """
    kinds = list(_kinds(values))
    own = [stub for stub in STUBS if _is_own(stub.__module__)]
    texts = list(_texts(own, kinds))
    return texts + list(_texts([stub for stub in STUBS if stub not in own], kinds)) if texts else []


def _kinds(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                yield type(value)
            yield from _kinds(value)


def _texts(stubs: Iterable[Any], kinds: Iterable[Any]) -> Iterator[str]:
    for stub in stubs:
        for kind in kinds:
            body: Any = body_of(stub, kind)
            name = f"{stub.__name__} of {kind.__name__}"
            if body is not None and not _is_own(plain_function(name, body).__globals__.get("__name__")):
                text = frozen(f"checkpoint: the body of {name}", body, fields=True).text
                yield f"{stub.__module__} {name}: {text}"


def _is_own(module: Any) -> bool:
    return str(module).partition(".")[0] == _OWN
