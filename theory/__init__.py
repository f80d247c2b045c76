"""theory: what the papers prove, and the exact laws it is checked against.

``theory.<paper>`` holds the theorems of one algorithm. Every module of this package is found by itself, so
that a new paper, theorem or erratum is one new file.
"""

import importlib as _importlib
import pkgutil as _pkgutil
import typing as _typing

for _found in _pkgutil.walk_packages(__path__, f"{__name__}."):
    _importlib.import_module(_found.name)

import fedsim as _fedsim
from fedsim.hints import missing_attribute as _missing_attribute
from fedsim.pickles import keep_names as _keep_names

from . import all_clients, certificates as certificates, exact, privacy, testing, tuning, worst_case
from .all_clients import certify
from .declare.bibliography import cite, papers
from .declare.bound import Assumption, Bound
from .declare.corrections import Erratum, Evidence, errata, errata_frame, remarks, remarks_frame
from .declare.registry import Theorem, catalogue, theorems
from .exact import NoExactLaw, exact_law, stationary_law
from .facts import Constants, constants
from .float_range import PrecisionWarning
from .judge.checking import Verdict, check, quantities
from .judge.examining import examine
from .judge.scoring import scoreboard
from .tuning import Plan, compare_algorithms, plan, sweep

if _typing.TYPE_CHECKING:  # type checkers and editors cannot follow the loop above
    from . import de_sghmc as de_sghmc, de_sgld as de_sgld, fa_hmc as fa_hmc, fa_ld as fa_ld, stale as stale

__all__ = [
    "Assumption", "Bound", "Constants", "Erratum", "Evidence", "NoExactLaw", "Plan", "PrecisionWarning",
    "Theorem", "Verdict", "all_clients", "catalogue", "certify", "check", "cite", "compare_algorithms",
    "constants", "errata", "errata_frame", "exact", "exact_law", "examine", "papers", "plan", "privacy",
    "quantities", "remarks", "remarks_frame", "scoreboard", "stationary_law", "sweep", "testing", "theorems",
    "tuning", "worst_case",
]

_papers = tuple(found.name for found in _pkgutil.iter_modules(__path__))
_keep_names(__name__, {_name: globals()[_name] for _name in __all__})
_keep_names("theory.testing", {"Nested": testing.nested.Nested})  # which a Probe holds
_keep_names("theory.exact", {"GossipJointLaw": exact.gossip.family.GossipJointLaw,
                             "RoundJointLaw": exact.traced_joint.RoundJointLaw})
for _name in _papers:
    _keep_names(f"{__name__}.{_name}", vars(globals()[_name]))


def __dir__() -> list[str]:
    return sorted({*__all__, "certificates", "de_sghmc", "de_sgld", "fa_hmc", "fa_ld", "rates", "stale"})


_ELSEWHERE = {name: f"fedsim.{name}" for name in _fedsim.__all__} | {
    "check_bound": "theory.check(bound, law)",
    "w2_bound": "theory.<paper>.w2_bound, as theory.fa_ld.w2_bound",
    "joint_law": "theory.exact.joint_law", "best_step_size": "theory.tuning.best_step_size",
    "compare": "theory.tuning.compare", "rounds_to": "theory.tuning.rounds_to",
    "guarantee": "theory.privacy.guarantee"}

if not _typing.TYPE_CHECKING:  # for checkers a name that is not there stays a mistake
    __getattr__ = _missing_attribute(__name__, (*__all__, *_papers), _ELSEWHERE)
    for _module in (all_clients, exact, privacy, testing, tuning, worst_case, de_sghmc, de_sgld, fa_hmc,
                    fa_ld, stale):
        _known = [one for one in vars(_module) if one[0] != "_"]
        _module.__getattr__ = _missing_attribute(_module.__name__, _known)
