"""fedsim: replicas of federated, decentralized and asynchronous samplers, beside their exact laws."""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import provenance as _provenance, samplers
from .algorithms import bound as _bound, declared as _declared  # what samplers are asked for
from .algorithms.de_sghmc import DESGHMC
from .algorithms.de_sgld import DESGLD
from .algorithms.fa_hmc import FAHMC
from .algorithms.fa_ld import FALD
from .algorithms.stale import StaleSGHMC, StaleSGLD
from .engine import sample_path, shards, simulate, warm_up
from .engine.divergence import DivergedError
from .explaining import explain
from .hints import missing_attribute as _missing_attribute
from .interfaces import validate
from .laws import distance, estimators, lines as _lines, plots as _plots
from .laws.density import Density
from .laws.law import Gaussian, Law, recorded_rounds
from .laws.loading import load
from .laws.plots import animate, plot
from .laws.run import Run
from .old_names import install as _install
from .pickles import keep_names as _keep_names
from .problems import papers
from .problems.custom import Custom
from .problems.failing import GradientError
from .problems.gaussian_mean import GaussianMean
from .problems.quadratic import Quadratic
from .problems.regression import LinearRegression, LogisticRegression, SoftmaxRegression
from .samplers.applied import each
from .samplers.sampler import sampler
from .settings import network, schedules
from .settings.participation import Participation
from .settings.participation_fixed import FixedParticipation
from .settings.participation_independent import IndependentParticipation
from .settings.staleness import Workers
from .settings.support import OutsideWarning
from .settings.validation import UnstableStepSize
from .vector import math
from .vector.cache import CacheWarning

__all__ = [
    "DESGHMC", "DESGLD", "FAHMC", "FALD", "CacheWarning", "Custom", "Density", "DivergedError",
    "FixedParticipation", "Gaussian", "GaussianMean", "GradientError", "IndependentParticipation", "Law",
    "LinearRegression", "LogisticRegression", "OutsideWarning", "Participation", "Quadratic", "Run",
    "SoftmaxRegression", "StaleSGHMC", "StaleSGLD", "UnstableStepSize", "Workers", "animate", "each",
    "estimators", "explain", "load",
    "math", "network", "papers", "plot", "recorded_rounds", "sample_path", "sampler", "samplers", "schedules",
    "shards", "simulate", "validate", "warm_up",
]

_sys.modules.setdefault(f"{__name__}.plot", _plots)  # `from fedsim.plot import exact`; `fs.plot` draws all
_ELSEWHERE = {name: f"theory.{name}" for name in (
    "Bound", "Constants", "NoExactLaw", "Verdict", "catalogue", "check", "constants", "errata", "exact_law",
    "examine", "privacy", "stationary_law", "theorems", "tuning", "worst_case")} | {
    "check_bound": "theory.check(bound, law)", "joint_law": "theory.exact.joint_law",
    "w2_bound": "theory.<paper>.w2_bound, as theory.fa_ld.w2_bound",
    "w2": "fs.distance.w2_gaussian, or law.w2()",
    "Harmonic": "fs.schedules.Harmonic", "ring": "fs.network.ring", "metropolis": "fs.network.metropolis",
    "run": "fs.simulate", "sample": "fs.simulate, or fs.sample_path for single chains"}

_install()
_keep_names(__name__, {_name: globals()[_name] for _name in __all__})
for _module in (distance, estimators, math, network, papers, schedules):
    _name = f"{__name__}.{_module.__name__.split('.')[-1]}"
    _sys.modules.setdefault(_name, _module)  # `import fedsim.network` and the like
    _known = vars(_module).get("__all__") or [_part for _part in vars(_module) if _part[0] != "_"]
    setattr(_module, "__getattr__", _missing_attribute(_name, _known))  # noqa: B010
    if _module is not math:
        _keep_names(_name, vars(_module))
_keep_names(__name__, {  # what public objects hold, by the keys that stored pickles have
    "Provenance": _provenance.Provenance, "Part": _provenance.Identity, "WholeLine": _lines.WholeLine,
    "HalfLine": _lines.HalfLine, "Interval": _lines.Interval})


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _version(name: str) -> str:
    if name != "__version__":
        return _missing_attribute(__name__, __all__, _ELSEWHERE)(name)
    from importlib import metadata  # slow to import

    try:
        return metadata.version("fedsim-theory")
    except metadata.PackageNotFoundError:
        return "0+not.installed"  # a checkout that was never installed


if _TYPE_CHECKING:  # for checkers a name that is not there stays a mistake
    __version__: str
else:
    __getattr__ = _version
