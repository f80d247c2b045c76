"""What a message says after what is wrong: the names that are close, and where a name lives."""

from __future__ import annotations

import difflib
import inspect
import reprlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

MANY = 12
"""More choices than that are not listed where some are close, or the list is long."""
LONG = 240
"""Characters of a long list."""
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def shown(value: object) -> str:
    """One short line for a value in a message, whatever it is."""
    try:
        return " ".join(_REPR.repr(value).split())
    except Exception:  # a message must not fail for what it shows
        return f"<{type(value).__name__}>"


def listed(values: Any, what: str) -> str:
    """An array (n,) as the list that makes it, or what a long one holds, from its first value to its last.

    Examples
    --------
    >>> from fedsim.hints import listed
    >>> listed(np.array([0.2, 0.1]), "step sizes"), listed(np.arange(60), "ages")
    ('[0.2, 0.1]', '<60 ages, 0 to 59>')
    """
    return (str(values.tolist()) if len(values) <= MANY
            else f"<{len(values)} {what}, {values[0]:g} to {values[-1]:g}>")


def close(value: object, choices: Iterable[object], most: int = 5) -> list[str]:
    """Of these names, those that `value` may have meant, the likeliest first; none where it is no text.

    Examples
    --------
    >>> from fedsim.hints import close
    >>> close("Fig1", ["fig1a", "fig1b", "fig2", "table"])
    ['fig1a', 'fig1b']
    """
    if not isinstance(value, str) or not value:
        return []
    names = {name.lower(): name for name in choices if isinstance(name, str)}
    given = value.lower()
    found = [low for low in names if low.startswith(given)]
    if not found:
        found = difflib.get_close_matches(given, names, n=most, cutoff=0.6)
        found += [low for low in names if (len(given) > 2 and given in low)
                  or (len(low) > 3 and given.startswith(low))]
    return [names[low] for low in dict.fromkeys(found)][:most]


def did_you_mean(value: object, choices: Iterable[object]) -> str:
    """The same as the end of a message: "; did you mean 'ring'?", or nothing."""
    found = close(value, choices)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def choice(value: object, choices: Iterable[object], longest: float = LONG) -> str:
    """What `value` must be, in words: the one choice, or one of several, of many only those that are close.

    Lists of more characters than `longest` are not written.

    Examples
    --------
    >>> from fedsim.hints import choice
    >>> choice("ful", ("full", "none"))
    "one of 'full', 'none'; did you mean 'full'?"
    >>> choice("id7", [f"id{i}" for i in range(70, 90)])
    "one of 20 names; did you mean 'id70' or 'id71' or 'id72' or 'id73' or 'id74'?"
    >>> choice("proof", ("printed",))
    "'printed'"
    """
    known = list(choices)
    if len(known) == 1:
        return repr(known[0])
    end, words = did_you_mean(value, known), ", ".join(map(repr, known))
    if len(known) > MANY and (end or len(words) > longest):
        return f"one of {len(known)} names{end or f', as {known[0]!r}'}"
    return f"one of {words}{end}"


def missing_attribute(module: str, names: Iterable[str],
                      elsewhere: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """A module's ``__getattr__``, which says where a name lives that the module lacks.

    Parameters
    ----------
    module : str
        The name by which users know it.
    names : names
        What it has.
    elsewhere : mapping name -> words, optional
        What to write instead.
    """
    def __getattr__(name: str) -> Any:
        if name.startswith("__"):  # what inspect and copy look for
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        told, known = (elsewhere or {}).get(name), list(names)
        few = f", which has {', '.join(known)}" if len(known) <= MANY else ""
        end = f": it is {told}" if told else did_you_mean(name, known) or few
        raise AttributeError(f"module {module!r} has no attribute {name!r}{end}")

    return __getattr__


@cache
def _parameters(made: Any) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Of an ``__init__``: its arguments, those without default, and whether it takes any other."""
    every = list(inspect.signature(made).parameters.values())[1:]
    open_end = any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in every)
    needed = tuple(one.name for one in every if one.default is one.empty and one.kind != one.KEYWORD_ONLY)
    return tuple(one.name for one in every), needed, open_end


class Named:
    """Base of classes whose construction says what to write in place of an argument they do not have.

    `_aliases` has other names of arguments, as a paper's symbols, and what to write for each; and what to
    write for arguments that are easily forgotten.

    Examples
    --------
    >>> fs.FALD(eta=0.1)
    Traceback (most recent call last):
    ...
    TypeError: eta=0.1 is no argument of FALD: write step_size=0.1, or FALD.from_paper(eta=0.1, ...)
    """

    _aliases: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # who reads signatures is to see that of __init__

        def __new__(cls, *args: Any, **options: Any) -> Any:
            if args or options:  # copies are made without
                refuse_call(cls, args, options)
            return super().__new__(cls)


def refuse_call(cls: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """A TypeError where `cls` is given an argument that it has not, or not given one that it needs."""
    names, needed, open_end = _parameters(cls.__init__)
    if open_end:
        return
    for name in options:
        if name not in names:
            raise TypeError(f"{name}={shown(options[name])} is no argument of {cls.__name__}"
                            f"{_instead(cls, name, options[name], names)}")
    for name in needed[len(args):]:
        if name not in options and name in cls._aliases:
            raise TypeError(f"{cls.__name__} needs {name}: {cls._aliases[name]}")


def _instead(cls: Any, name: str, value: object, names: tuple[str, ...]) -> str:
    """What to write in place of an argument that there is not."""
    written = cls._aliases.get(name, "")
    if written.isidentifier():
        written = f"{written}={shown(value)}"
    paper = getattr(cls, "from_paper", None)
    if paper is not None and name in inspect.signature(paper).parameters:
        with_symbols = f"{cls.__name__}.from_paper({name}={shown(value)}, ...)"
        return f": write {written}, or {with_symbols}" if written else f": write {with_symbols}"
    return f": write {written}" if written else did_you_mean(name, names) or f", which has {', '.join(names)}"
