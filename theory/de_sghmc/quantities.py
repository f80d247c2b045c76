"""What DE-SGHMC's lemmas are about, beyond what `theory.de_sgld.quantities` has."""

from __future__ import annotations

from typing import Any

from ..de_sgld.quantities import from_coupling, from_joint
from .setting import momentum


def arguments(problem: Any, algorithm: Any) -> dict[str, Any]:
    """alpha, beta and velocities for `theory.de_sgld.coupling`."""
    return {"alpha": float(algorithm.schedule.largest) ** 2, "beta": momentum(algorithm),
            "velocities": algorithm.start_velocities(problem)}


from_joint("velocities", "sum_i E||v_i||^2 of all clients",
           lambda law: law.velocity_second_moment.sum(axis=1))  # type: ignore[union-attr]
from_coupling("extrapolated", "E||x + beta/(1-beta) (x - x_before)||^2 of all clients", arguments)
from_coupling("average_to_damped", "E||average - Euler scheme with the same noise, damped||^2", arguments)
from_coupling("damped_to_euler", "E||damped Euler scheme - full Euler scheme||^2", arguments)
