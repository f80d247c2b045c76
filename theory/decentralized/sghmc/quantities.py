"""What DE-SGHMC's lemmas are about, beyond what `theory.de_sgld.quantities` has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...bound import Bound
from ...checking import Measured, quantity
from ..sgld.coupling import Coupling, coupling
from ..sgld.quantities import from_coupling, from_joint
from .setting import momentum


def arguments(problem: Any, algorithm: Any) -> dict[str, Any]:
    """alpha, beta and velocities for `theory.de_sgld.coupling`."""
    return {"alpha": float(algorithm.schedule.largest) ** 2, "beta": momentum(algorithm),
            "velocities": algorithm.start_velocities(problem)}


from_joint("velocities", "sum_i E||v_i||^2 of all clients",
           lambda law: law.velocity_second_moment.sum(axis=1))  # type: ignore[union-attr]
from_joint("positions", "sum_i E||x_i||^2 of all clients",
           lambda law: np.square(law.mean).sum(axis=(1, 2)) + np.einsum("kii->k", law.cov))
from_coupling("extrapolated", "E||x + beta/(1-beta) (x - x_before)||^2 of all clients", arguments)
from_coupling("average_to_damped", "E||average - Euler scheme with the same noise, damped||^2", arguments)
from_coupling("damped_to_euler", "E||damped Euler scheme - full Euler scheme||^2", arguments)


def _lyapunov(bound: Bound, law: Any, level: float) -> Measured:
    if not isinstance(law, Coupling):
        raise ValueError(f"law={law!r} must be a theory.de_sgld.Coupling: the bound is on V_k of (88)")
    value = bound.inputs["weight"] * law.energy + law.distance
    return Measured(value, law.rounds, float(value.max()))


quantity("lyapunov", "V_k of the heavy-ball recursion: b E[Fbar(x_before) - min] + E||extrapolated - x_a||^2",
         _lyapunov, lambda problem, algorithm, bound, n_rounds, start, record: coupling(
             problem, algorithm, n_rounds, start, **arguments(problem, algorithm)))
