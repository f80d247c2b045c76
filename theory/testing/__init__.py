"""Is my sampler right? Programs and kernels of other people under exact laws.

`UpdateRule` makes an algorithm of a program with explicit noise, `probe` finds matrix and noise of a kernel
with a seed, `report` says in sentences what it differs in, and `assert_samples` is its form for tests.
`invariance` says whether a kernel with a Metropolis step leaves the target as it is.
"""

from __future__ import annotations

from . import rule_laws as _rule_laws  # registers their family
from .asserting import assert_samples
from .bias import BiasOrder, bias_order
from .exact_draws import invariance
from .findings import Finding, Report
from .probing import Probe, probe
from .reporting import report
from .rules import UpdateRule

__all__ = ["BiasOrder", "Finding", "Probe", "Report", "UpdateRule", "assert_samples", "bias_order",
           "invariance", "probe", "report"]
