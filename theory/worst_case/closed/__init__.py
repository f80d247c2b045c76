"""Laws of scalar clients in closed form, without cancellation, for any kind of number.

One file per algorithm: a `form` (see `forms`) that gives `Moments` from named numbers, and the instance they
are of. `quantities` has one row per quantity, of which every form has its own: ``"fa_ld.stationary_w2"``.
A new algorithm is one file, named in the import below; a new quantity is one row.
"""

from . import de_sgld, fa_hmc, fa_ld, rotated, stale
from .forms import FORMS, Form, Moments, form
from .quantities import QUANTITIES, Quantity

__all__ = ["FORMS", "QUANTITIES", "Form", "Moments", "Quantity", "form"]
