"""FA-HMC's lemmas about trajectories from given points: Lemmas D.3 and D.5 (`oracle`: from the target).

Statements are evaluated at u = k eta, k = 1..K (``index == "leapfrog_step"``), eta the largest step size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import Array, array, shape

from ..facts import Constants
from ..statement import Terms
from .setting import FULL, FULL_TURN, HALF_TURN, Setting, client_number, theorem, within


def times(s: Setting) -> tuple[np.ndarray, Array]:
    """k = 1..K and u = k eta."""
    k = np.arange(1, s.K + 1)
    return k, np.asarray(k * (s.X / s.K), dtype=np.float64)


def _two_trajectories(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                      start: Any) -> dict[str, Any]:
    """Starts a standard deviation of the target apart, and momenta a vector of ones."""
    return {"position_gap": np.sqrt(algorithm.target(problem).variances),
            "momentum_gap": np.ones(problem.dim)}


@theorem("Lemma D.3", quantity="flow_distance", terms=("position", "momentum"),
         hypotheses=(within(HALF_TURN), FULL), index="leapfrog_step", inputs=_two_trajectories,
         variants={"sharp": "", "corrected": "C = 2 sinh(1/2)", "printed": "C = sinh(1/2)"},
         arguments={"position_gap": "(d,): theta(0) - theta'(0).", "momentum_gap": "(d,): p(0) - p'(0)."})
def flow_distance_bound(s: Setting, variant: str, *, position_gap: Any, momentum_gap: Any) -> Terms:
    """Two exact trajectories of f, from different starts with different momenta.

    Guarantee, for times u <= 1/(2 sqrt(L)):

        ||theta(u) - theta'(u)|| <= (1 - mu u^2/4) ||theta(0) - theta'(0)||
                                    + (sinh(sqrt(L) u)/sqrt(L)) ||p(0) - p'(0)||

    Source: FA-HMC Lemma D.3: its first claim for the momenta, its second for the starts. The second claim
    has C u for the last factor. Its proof needs sinh(h) <= C h up to h = 1/2, so that C >= 2 sinh(1/2) =
    1.042; sinh(1/2) = 0.521 is printed, and false: without any force trajectories part by u ||p - p'||.

    The algorithm's largest step size and number of leapfrog steps say at which times.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.806
    """
    apart, push = (shape(name, array(name, value, 1), (s.d,)) for name, value in
                   (("position_gap", position_gap), ("momentum_gap", momentum_gap)))
    k, u = times(s)
    if variant == "sharp":
        reach = np.sinh(np.sqrt(s.L) * u) / np.sqrt(s.L)
    else:
        reach = (2.0 if variant == "corrected" else 1.0) * np.sinh(0.5) * u
    return Terms({"position": np.maximum(1.0 - 0.25 * s.mu * u**2, 0.0) * np.linalg.norm(apart),
                  "momentum": reach * np.linalg.norm(push)}, rounds=k,
                 inputs={"times": u, "position_gap": apart, "momentum_gap": push})


def _from_the_middle(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                     start: Any) -> dict[str, Any]:
    """The client of smallest weight, from the global minimizer, with a typical momentum."""
    client = int(np.argmin(problem.weights))
    size = algorithm.shared_noise + (1.0 - algorithm.shared_noise) / problem.weights[client]
    point = problem.minimizer
    return {"client": client, "point": point, "momentum": np.full(problem.dim, np.sqrt(size)),
            "gradient": problem.gradient(client, point)}


MOVED: dict[str, Any] = {
    "terms": ("momentum", "gradient", "gradient_noise"), "hypotheses": (within(FULL_TURN), FULL),
    "variants": {"proof": "as the end of the lemma's proof has it", "printed": "without the last 1/k"},
    "index": "leapfrog_step", "inputs": _from_the_middle,
    "arguments": {"point": "(d,): q_0.", "momentum": "(d,): p_0.", "gradient": "(d,): grad f_c(q_0)."}}


@theorem("Lemma D.5 (5)", quantity="leapfrog_displacement", **MOVED)
def displacement_bound(s: Setting, variant: str, *, point: Any, momentum: Any, gradient: Any,
                       client: int | None = None) -> Terms:
    """How far k leapfrog steps of a client lead, from a point with a momentum.

    Guarantee, for k eta <= 1/sqrt(L):

        E||q_k - q_0||^2 <= 2 (k eta)^2 ||p||^2 + (k eta)^4 ||grad f_c(q_0)||^2 + (k eta)^4 sigma_g^2 d/k

    Source: FA-HMC Lemma D.5 (5). The printed splits (3/5, 1/3, 1/15) give the constants up to
    1/(2 sqrt(L)). Proof for the whole range, by L2 norms as for `leapfrog_deviation_bound`:
    e_k <= ((k eta |p| + (k eta)^2 |grad f|/2)^2 + (eta^4/12) k (2k^2+1) sigma_g^2 d)^(1/2)
    + L eta^2 sum_{j<k} (k-j) e_j, and iterated e_k^2 is at most .9855 of the bound (.75 at k = 1).

    Of a schedule the largest step size counts.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.02
    """
    return _moved(s, variant, point, momentum, gradient, client)


@theorem("Lemma D.5 (6)", quantity="leapfrog_gradient_displacement", **MOVED)
def gradient_displacement_bound(s: Setting, variant: str, *, point: Any, momentum: Any, gradient: Any,
                                client: int | None = None) -> Terms:
    """How much a client's gradient changes over k leapfrog steps: L^2 times `displacement_bound`.

    Guarantee, for k eta <= 1/sqrt(L):  E||grad f_c(q_k) - grad f_c(q_0)||^2 <= L^2 times (5).

    Source: FA-HMC Lemma D.5 (6), from (5) by L-smoothness.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.181
    """
    return _moved(s, variant, point, momentum, gradient, client, s.L**2)


def _moved(s: Setting, variant: str, point: Any, momentum: Any, gradient: Any, client: Any,
           factor: float = 1.0) -> Terms:
    """The parts of (5) at k = 1..K, and what the exact value depends on."""
    q, p, g = (shape(name, array(name, value, 1), (s.d,)) for name, value in
               (("point", point), ("momentum", momentum), ("gradient", gradient)))
    k, u = times(s)
    noise = u**4 * s.sigma_sq * s.d
    parts = {"momentum": 2.0 * u**2 * (p**2).sum(), "gradient": u**4 * (g**2).sum(),
             "gradient_noise": noise if variant == "printed" else noise / k}
    return Terms({name: factor * part for name, part in parts.items()}, rounds=k,
                 inputs={"client": client_number(s, client), "point": q, "momentum": p,
                         "step_size": s.X / s.K})
