"""Laws of scalar clients in closed form, without cancellation, for any kind of number.

One file per algorithm: a function under `closed_form` gives `Moments` from named numbers, and another the
instance they are of. `quantities` has one row per quantity: ``"fa_ld.stationary_w2"``. A new algorithm is
one file, named in the import below; a new quantity is one row here and one in `values`.
"""

from . import de_sgld, fa_hmc, fa_ld, rotated, stale
from .closed_form import CLOSED_FORMS, ClosedForm, Moments
from .quantities import QUANTITIES, Quantity

__all__ = ["CLOSED_FORMS", "QUANTITIES", "ClosedForm", "Moments", "Quantity"]
