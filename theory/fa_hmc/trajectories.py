"""FA-HMC's lemmas about trajectories from given points: Lemmas D.3 and D.5 (`oracle`: from the target).

Statements are evaluated at u = k eta, k = 1..K (``index == "leapfrog_step"``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.validation import Array, array, shape

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from .bounds import all_clients
from .setting import FULL_TURN, HALF_TURN, PAPER, Setting, client_number, setting, within


def times(s: Setting) -> tuple[np.ndarray, Array]:
    """k = 1..K and u = k eta."""
    k = np.arange(1, s.K + 1)
    return k, np.asarray(k * (s.X / s.K), dtype=np.float64)


def _two_trajectories(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                      start: Any) -> dict[str, Any]:
    """Starts a standard deviation of the target apart, and momenta a vector of ones."""
    return {"position_gap": np.sqrt(algorithm.target(problem).variances),
            "momentum_gap": np.ones(problem.dim)}


@theorem(id="fa_hmc.flow_distance_bound", paper=PAPER, number="Lemma D.3", kind="upper",
         quantity="flow_distance", algorithm=FAHMC, convention="federated", hypotheses=(HALF_TURN,),
         variants=("sharp", "corrected", "printed"), index="leapfrog_step", inputs=_two_trajectories)
def flow_distance_bound(constants: Constants, algorithm: FAHMC, *, position_gap: Any, momentum_gap: Any,
                        n_rounds: int = 0, record: Any = None, variant: str = "sharp") -> Bound:
    """Two exact trajectories of f, from different starts with different momenta.

    Guarantee, for times u <= 1/(2 sqrt(L)):

        ||theta(u) - theta'(u)|| <= (1 - mu u^2/4) ||theta(0) - theta'(0)||
                                    + (sinh(sqrt(L) u)/sqrt(L)) ||p(0) - p'(0)||

    Source: FA-HMC Lemma D.3: its first claim for the momenta, its second for the starts. The second claim
    has C u for the last factor. Its proof needs sinh(h) <= C h up to h = 1/2, so that C >= 2 sinh(1/2) =
    1.042; sinh(1/2) = 0.521 is printed, and false: without any force trajectories part by u ||p - p'||.

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        Its largest step size and number of leapfrog steps say at which times.
    position_gap, momentum_gap : (d,)
        theta(0) - theta'(0) and p(0) - p'(0).
    n_rounds, record
        Of no influence.
    variant : "sharp", "corrected" or "printed"
        "sharp" is the above, "corrected" has C = 2 sinh(1/2) and "printed" C = sinh(1/2).

    Returns
    -------
    Bound at leapfrog steps 1..K with terms "position" and "momentum".

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant; for gaps that are not (d,).
    """
    s = setting(constants, algorithm)
    apart = shape("position_gap", array("position_gap", position_gap, 1), (s.d,))
    push = shape("momentum_gap", array("momentum_gap", momentum_gap, 1), (s.d,))
    k, u = times(s)
    if variant == "sharp":
        reach = np.sinh(np.sqrt(s.L) * u) / np.sqrt(s.L)
    else:
        reach = (2.0 if variant == "corrected" else 1.0) * np.sinh(0.5) * u
    return Bound.from_terms(
        {"position": np.maximum(1.0 - 0.25 * s.mu * u**2, 0.0) * np.linalg.norm(apart),
         "momentum": reach * np.linalg.norm(push)}, k, assumptions=(within(s, HALF_TURN),),
        quantity="flow_distance", kind="upper", source="FA-HMC Lemma D.3", variant=variant,
        index="leapfrog_step", inputs={"times": u, "position_gap": apart, "momentum_gap": push})


def _from_the_middle(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                     start: Any) -> dict[str, Any]:
    """The client of smallest weight, from the global minimizer, with a typical momentum."""
    client = int(np.argmin(problem.weights))
    size = algorithm.shared_noise + (1.0 - algorithm.shared_noise) / problem.weights[client]
    point = problem.minimizer
    return {"client": client, "point": point, "momentum": np.full(problem.dim, np.sqrt(size)),
            "gradient": problem.gradient(client, point)}


@theorem(id="fa_hmc.displacement_bound", paper=PAPER, number="Lemma D.5 (5)", kind="upper",
         quantity="leapfrog_displacement", algorithm=FAHMC, convention="federated",
         hypotheses=(FULL_TURN,), variants=("proof", "printed"), index="leapfrog_step",
         inputs=_from_the_middle, applies=all_clients)
def displacement_bound(constants: Constants, algorithm: FAHMC, *, point: Any, momentum: Any, gradient: Any,
                       client: int | None = None, n_rounds: int = 0, record: Any = None,
                       variant: str = "proof") -> Bound:
    """How far k leapfrog steps of a client lead, from a point with a momentum.

    Guarantee, for k eta <= 1/sqrt(L):

        E||q_k - q_0||^2 <= 2 (k eta)^2 ||p||^2 + (k eta)^4 ||grad f_c(q_0)||^2 + (k eta)^4 sigma_g^2 d/k

    Source: FA-HMC Lemma D.5 (5). The printed splits (3/5, 1/3, 1/15) give the constants up to
    1/(2 sqrt(L)). Proof for the whole range, by L2 norms as for `leapfrog_deviation_bound`:
    e_k <= ((k eta |p| + (k eta)^2 |grad f|/2)^2 + (eta^4/12) k (2k^2+1) sigma_g^2 d)^(1/2)
    + L eta^2 sum_{j<k} (k-j) e_j, and iterated e_k^2 is at most .9855 of the bound (.75 at k = 1).

    Parameters
    ----------
    constants : Constants
        Convention "federated".
    algorithm : fedsim.FAHMC
        Its largest step size counts.
    point, momentum, gradient : (d,)
        q_0, p_0 and grad f_c(q_0).
    client : int, optional
        Whose leapfrog it is; the one of smallest weight by default.
    n_rounds, record
        Of no influence.
    variant : "proof" or "printed"
        "proof" is the above, as the end of the lemma's proof has it; "printed" is without the last 1/k.

    Returns
    -------
    Bound at leapfrog steps 1..K with terms "momentum", "gradient" and "gradient_noise".

    Raises
    ------
    ValueError
        As for `setting`, and for constants of another convention, another class of algorithm, and an unknown
        variant; for vectors that are not (d,), and a client that does not exist.
    """
    s, k, parts, inputs = _moved(constants, algorithm, point, momentum, gradient, client, variant)
    return Bound.from_terms(
        parts, k, assumptions=(within(s, FULL_TURN),), quantity="leapfrog_displacement", kind="upper",
        source="FA-HMC Lemma D.5 (5)", variant=variant, index="leapfrog_step", inputs=inputs)


@theorem(id="fa_hmc.gradient_displacement_bound", paper=PAPER, number="Lemma D.5 (6)", kind="upper",
         quantity="leapfrog_gradient_displacement", algorithm=FAHMC, convention="federated",
         hypotheses=(FULL_TURN,), variants=("proof", "printed"), index="leapfrog_step",
         inputs=_from_the_middle, applies=all_clients)
def gradient_displacement_bound(constants: Constants, algorithm: FAHMC, *, point: Any, momentum: Any,
                                gradient: Any, client: int | None = None, n_rounds: int = 0,
                                record: Any = None, variant: str = "proof") -> Bound:
    """How much a client's gradient changes over k leapfrog steps: L^2 times `displacement_bound`.

    Guarantee, for k eta <= 1/sqrt(L):  E||grad f_c(q_k) - grad f_c(q_0)||^2 <= L^2 times (5).

    Source: FA-HMC Lemma D.5 (6), from (5) by L-smoothness.

    Parameters
    ----------
    constants, algorithm, point, momentum, gradient, client, n_rounds, record, variant
        As for `displacement_bound`.

    Returns
    -------
    Bound at leapfrog steps 1..K with terms "momentum", "gradient" and "gradient_noise".

    Raises
    ------
    ValueError
        As for `displacement_bound`.
    """
    s, k, parts, inputs = _moved(constants, algorithm, point, momentum, gradient, client, variant)
    return Bound.from_terms(
        {name: s.L**2 * part for name, part in parts.items()}, k, assumptions=(within(s, FULL_TURN),),
        quantity="leapfrog_gradient_displacement", kind="upper", source="FA-HMC Lemma D.5 (6)",
        variant=variant, index="leapfrog_step", inputs=inputs)


def _moved(constants: Constants, algorithm: FAHMC, point: Any, momentum: Any, gradient: Any, client: Any,
           variant: str) -> tuple[Setting, np.ndarray, dict[str, Array], dict[str, Any]]:
    """The parts of (5) at k = 1..K, and what the exact value depends on."""
    s = setting(constants, algorithm)
    q, p, g = (shape(name, array(name, value, 1), (s.d,)) for name, value in
               (("point", point), ("momentum", momentum), ("gradient", gradient)))
    k, u = times(s)
    noise = u**4 * s.sigma_sq * s.d
    parts = {"momentum": 2.0 * u**2 * (p**2).sum(), "gradient": u**4 * (g**2).sum(),
             "gradient_noise": noise if variant == "printed" else noise / k}
    return s, k, parts, {"client": client_number(s, client), "point": q, "momentum": p,
                         "step_size": s.X / s.K}
