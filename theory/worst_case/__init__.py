"""The worst problem of a class: searched, and certified where it can be.

`search` looks for the problem of a `ProblemClass` at which a bound is tightest, or a quantity largest.
`certify` proves two ends of a quantity's supremum, over classes of a few unknowns. The reductions say what
dimension, how many clients and which angles are enough.
"""

from .boxes import Maximum, maximise
from .certifying import Certified, certify
from .numbers import Dual, Interval, sqrt
from .problem_class import ProblemClass
from .reductions import (
    Clients,
    CommutingSupremum,
    RotatedBias,
    commuting_bias,
    commuting_supremum,
    enough_clients,
    least_contraction,
    rotated_bias,
    rotated_bias_at,
)
from .search_result import Found, from_record, to_record, verify
from .searching import sample, search
from .targets import aims, objectives, unknowns

__all__ = [
    "Certified", "Clients", "CommutingSupremum", "Dual", "Found", "Interval", "Maximum", "ProblemClass",
    "RotatedBias", "aims", "certify", "commuting_bias", "commuting_supremum", "enough_clients",
    "from_record", "least_contraction", "maximise", "objectives", "rotated_bias", "rotated_bias_at", "sample",
    "search", "sqrt", "to_record", "unknowns", "verify",
]
