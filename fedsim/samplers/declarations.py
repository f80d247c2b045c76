"""Which sampler of the notation says the same as an algorithm that has a kernel of its own.

The declarations stand beside the kernels, in `fedsim.algorithms.declared`; here they are looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..settings.validation import shown

if TYPE_CHECKING:
    from ..interfaces import Algorithm
    from .sampler import Sampled

_SAYS: dict[type, Callable[[Any], Any]] = {}


def says(kind: type) -> Callable[[Any], Any]:
    """Decorator: the function makes the sampler that says the same as an algorithm of this class."""
    def keep(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        _SAYS[kind] = function
        return function

    return keep


def declared(algorithm: Algorithm) -> Sampled:
    """The sampler of the notation that says the same as a shipped algorithm.

    Parameters
    ----------
    algorithm : e.g. fedsim.FALD
        Its parameters, schedule, participation and age of gradients are those of the sampler.

    Returns
    -------
    instance of a class that `fedsim.sampler` made
        Its exact law is that of the algorithm, by a derivation that shares no code with the one by hand.

    Raises
    ------
    ValueError
        For an algorithm of another class, and naming an argument that the notation cannot say.

    Source: docs/guide/equations.md shows the functions.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
    >>> print(fs.samplers.declared(fs.DESGLD(0.5, fs.network.complete(2))).words(problem))
    m1 = W @ (x)
    g1 = grad(x)
    u1 = m1 - 0.5 g1 + xi1
    new x = u1
    """
    make = _SAYS.get(type(algorithm))
    if make is None:
        known = ", ".join(sorted(kind.__name__ for kind in _SAYS))
        raise ValueError(f"algorithm={shown(algorithm)} must be of a class that is declared in the notation: "
                         f"{known}")
    said: Sampled = make(algorithm)
    return said
