"""theory: what the papers prove, and the exact laws it is checked against.

``theory.<paper>`` holds the theorems of one algorithm. Every module of this package is found by itself, so
that a new paper, theorem or erratum is one new file.
"""

import importlib as _importlib
import pkgutil as _pkgutil
import typing as _typing

for _found in _pkgutil.walk_packages(__path__, f"{__name__}."):
    _importlib.import_module(_found.name)

from . import exact, privacy, tuning, worst_case
from .bibliography import cite, papers
from .bound import Assumption, Bound
from .checking import Verdict, check, examine, quantities
from .corrections import Erratum, Evidence, errata, errata_frame, remarks, remarks_frame
from .exact import NoExactLaw, exact_law, stationary_law
from .facts import Constants, constants
from .ranges import PrecisionWarning
from .registry import Theorem, catalogue, theorems

if _typing.TYPE_CHECKING:  # type checkers and editors cannot follow the loop above
    from . import de_sghmc as de_sghmc, de_sgld as de_sgld, fa_hmc as fa_hmc, fa_ld as fa_ld, stale as stale

__all__ = [
    "Assumption", "Bound", "Constants", "Erratum", "Evidence", "NoExactLaw", "PrecisionWarning", "Theorem",
    "Verdict", "catalogue", "check", "cite", "constants", "errata", "errata_frame", "exact", "exact_law",
    "examine",
    "papers", "privacy", "quantities", "remarks", "remarks_frame", "stationary_law", "theorems", "tuning",
    "worst_case",
]
