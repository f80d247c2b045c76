"""fedsim: replicas of federated, decentralized and asynchronous samplers, beside their exact laws."""

from importlib import metadata as _metadata

from . import estimators, network, schedules
from .algorithms.de_sghmc import DESGHMC
from .algorithms.de_sgld import DESGLD
from .algorithms.fa_hmc import FAHMC
from .algorithms.fa_ld import FALD
from .algorithms.stale import StaleSGHMC, StaleSGLD
from .engine import sample_path, simulate
from .engine.block import DivergedError
from .interfaces import validate
from .law import Gaussian, Law, recorded_rounds
from .participation import Participation
from .problems import papers
from .problems.gaussian_mean import GaussianMean
from .problems.quadratic import Quadratic
from .problems.regression import LinearRegression, LogisticRegression
from .run import Run, load
from .staleness import Workers
from .validation import UnstableStepSize

__all__ = [
    "DESGHMC",
    "DESGLD",
    "FAHMC",
    "FALD",
    "DivergedError",
    "Gaussian",
    "GaussianMean",
    "Law",
    "LinearRegression",
    "LogisticRegression",
    "Participation",
    "Quadratic",
    "Run",
    "StaleSGHMC",
    "StaleSGLD",
    "UnstableStepSize",
    "Workers",
    "estimators",
    "load",
    "network",
    "papers",
    "recorded_rounds",
    "sample_path",
    "schedules",
    "simulate",
    "validate",
]

try:
    __version__ = _metadata.version("fedsim-theory")
except _metadata.PackageNotFoundError:
    __version__ = "0+not.installed"  # a checkout that was never installed
