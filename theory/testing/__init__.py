"""Is my sampler right? Programs and kernels of other people under exact laws.

`UpdateRule` makes an algorithm of a program with explicit noise.
"""

from __future__ import annotations

from . import rule_laws as _rule_laws  # registers their family
from .bias import BiasOrder, bias_order
from .rules import UpdateRule

__all__ = ["BiasOrder", "UpdateRule", "bias_order"]
