"""Exact law of FA-LD on quadratic clients.

With A_c, b_c the client's Hessian and minimizer, S_c the covariance of its gradient noise, tau the
temperature and s the shared noise, K local steps of size eta make in client c

    beta^c = G_c x + (I - G_c) b_c + xi^c,      P_c = I - eta A_c,   G_c = P_c^K,

    Q_ce = Cov(xi^c, xi^e) = 2 eta tau s sum_{j<K} P_c^j P_e^j
           + [c = e] { (2 eta tau (1-s) / p_c) sum_{j<K} P_c^{2j} + eta^2 sum_{j<K} P_c^j S_c P_c^j }.

`chain` makes these sums as functions of curvatures, and `spectrum` says what they mean for matrices.

Source: FA-LD, equations (7) and (11) (Algorithms 1 to 4) for the recursion; the law itself is derived.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD

from ..families import exact
from .chain import Part
from .rounds import FederatedFamily


@exact(FALD)
class FALDFamily(FederatedFamily):
    """A step of gradient descent with noise."""

    def chain(self, algorithm: Any, eta: Any) -> list[Any]:
        return [Part([[0.0]], kick=[eta], noise=[np.sqrt(2.0 * eta * algorithm.temperature)])]
