"""TEMPLATE of a federated algorithm's exact law; it becomes `theory/exact/federated/fa_new.py`.

Exact law of FA-NEW on quadratic clients: a local step is theta <- theta - eta g(theta) + sqrt(2 eta) xi.

Derive it by hand, from the paper, and never look into the kernel: otherwise comparing the two proves nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_new import FANew

from ..families import exact
from .chain import Part
from .rounds import FederatedFamily


@exact(FANew)
class FANewFamily(FederatedFamily):
    """A step of gradient descent with noise."""

    def chain(self, algorithm: Any, eta: Any) -> list[Any]:
        # s <- s + change s - kick g + noise xi, for s = (theta,); see chain.py for more parts and numbers
        return [Part([[0.0]], kick=[eta], noise=[np.sqrt(2.0 * eta)])]
