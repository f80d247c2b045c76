"""Proved for every client of a class: m-strongly convex, L-smooth potentials, and not only quadratic ones.

`theory.certify` finds how fast two chains of a sampler with common noise come together, and proves it in
fractions.
"""

from .certifying import certify
from .contraction import ContractionCertificate
from .spectra import NotProved

__all__ = ["ContractionCertificate", "NotProved", "certify"]
