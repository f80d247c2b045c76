"""How far the stationary law of a Langevin chain is from its target: a closed form, sharp in kappa.

X' = X - h (grad f(X) + xi) + N(0, 2 h tau I), with f m-strongly convex and L-smooth, xi centred given X with
E|xi|^2 <= sigma^2, which may depend on X. Where the chain has a stationary law with a second moment, and
h < 2/L, that law has

    W2^2 <= h (tau L d + sigma^2)/(m (2 - h L)).

Proof. With X stationary and g = grad f(X), descent gives
E f(X) = E f(X') <= E f(X) - h (1 - hL/2) E|g|^2 + h tau L d + L h^2 sigma^2/2, which bounds E|g|^2. Let
V = X - h (g + xi) and Y in the target, coupled best with X. The heat flow over the time h tau is the gradient
flow of entropy H, which decreases along it: W2(X')^2 <= E|V - Y|^2 + 2 h tau (H(target) - H(X')). With
Talagrand's inequality for the free energy, E f(X') = E f(X), and strong convexity between X and Y,

    (1 + mh) W2^2 <= E|V - Y|^2 + 2h E(f(X) - f(Y)),   E(f(X) - f(Y)) <= E<g, X - Y> - (m/2) W2^2,
    E|V - Y|^2 = W2^2 - 2h E<g, X - Y> + h^2 E(|g|^2 + |xi|^2),

so that 2 m h W2^2 <= h^2 E(|g|^2 + |xi|^2). Put the first line in.

In print: the same two inequalities give twice the square at small h when they are applied step by step
(durmus2019 of papers.bib); 1.65 kappa sqrt(h d) is Theorem 4 of Dalalyan and Karagulyan (dalalyan2019).
The form with 2 - hL was not found there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedsim.hints import shown
from fedsim.laws.law import Gaussian

from ..declare.bound import Assumption, Bound
from ..declare.statement import Hypothesis, Terms
from ..exact import stationary_law
from ..exact.precision import rounding
from ..judge.checking import Measured, quantity
from .langevin import Potential

ONCE = np.array([0])


def stationary_terms(f: Potential, h: float, noise: float | None) -> Terms:
    """The terms of the bound for a chain of step size h and gradient noise of trace `noise`, if any."""
    if h * f.smoothness >= 2.0:
        raise ValueError(f"step_size={h:g} of the average must be less than 2/smoothness="
                         f"{2.0 / f.smoothness:g}: beyond it the bound has no value")
    scale = h / (f.strong_convexity * (2.0 - h * f.smoothness))
    parts = {"discretization": scale * f.temperature * f.smoothness * f.dim}
    if noise is not None:
        parts["gradient_noise"] = scale * noise
    value = math.sqrt(sum(parts.values()))
    return Terms({name: part / value for name, part in parts.items()}, rounds=ONCE, floor=value,
                 start_distance=None)


BELOW_TWO = Hypothesis("step_size < 2/smoothness", lambda constants, algorithm: Assumption.at_most(
    "step_size < 2/smoothness", algorithm.schedule.largest, 2.0 / constants.smoothness))
UP_TO_TWO = Hypothesis("step_size <= 2/smoothness", lambda constants, algorithm: Assumption.at_most(
    "step_size <= 2/smoothness (beyond it the bound is true but grows)", algorithm.schedule.largest,
    2.0 / constants.smoothness))
STATIONARY = Hypothesis("a stationary law with a second moment")


def measure_stationary(bound: Bound, law: Any, level: float) -> Measured:
    """W2 of a stationary law, a Gaussian or the Gaussian of its moments."""
    if not isinstance(law, Gaussian):
        raise ValueError(f"law={shown(law)} must be the stationary law, see theory.stationary_law")
    target = bound.target
    if target is None:
        raise ValueError("target=None of the bound must be known: use theory.constants(problem, algorithm)")
    return Measured(np.array([law.w2(target)]), ONCE, math.sqrt(float(target.variances.sum())))


quantity("stationary_w2", "W2 between the stationary law of the average iterate and the target",
         measure_stationary, stationary_law, rounding)
