"""What is decided without rounding: matrices of fractions, signs at growing precision; and what endangers it.

`semidefinite` is the one exact LDL' of the house, for any certificate that says "this rational matrix is
positive semidefinite". `decided` gives the sign of a long rational expression where fractions would grow
too large. `refuse_flushing` is asked before anything is proved by floats that are rounded outward.
"""

from .enclosures import Enclosure, Undecided, decided
from .ldl import Semidefinite, semidefinite
from .subnormals import refuse_flushing

__all__ = ["Enclosure", "Semidefinite", "Undecided", "decided", "refuse_flushing", "semidefinite"]
