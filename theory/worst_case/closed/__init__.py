"""Laws of scalar clients in closed form, without cancellation, for any kind of number.

One file per algorithm: a function under `closed_form` gives `Moments` from named numbers, and another the
instance they are of. `QUANTITIES` has one row per quantity: ``"fa_ld.stationary_w2"``. A new algorithm is
one file, named in the import below; a new quantity is one row in `closed_form` and one in `exact_values`.
"""

from . import de_sgld, fa_hmc, fa_ld, stale
from .closed_form import CLOSED_FORMS, QUANTITIES, ClosedForm, Moments, Quantity

__all__ = ["CLOSED_FORMS", "QUANTITIES", "ClosedForm", "Moments", "Quantity"]
